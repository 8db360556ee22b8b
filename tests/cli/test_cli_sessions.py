"""``streamnorm replay`` of what an agent program printed or saved: its streams one after the other."""

from __future__ import annotations

import json

import pytest

from streamnorm.cli import main
from tests.conftest import RECORDINGS
from tests.providers.test_programs import lines
from tools.golden import golden_of


def test_each_answer_is_shown_and_the_agent_below_is_named(capsys):
    assert main(["replay", str(RECORDINGS / "claude_code" / "sub_agent.sse")]) == 0
    shown = capsys.readouterr().out
    heads = [line for line in shown.splitlines() if line.startswith("── ")]
    assert heads == ["── 1", "── 2, agent toolu_01bIqWMYFvLNm1zway8b13cs", "── 3"]
    assert "They said from-below." in shown


@pytest.mark.parametrize("name", ["claude_code/saved_two_questions", "codex/rollout_two_questions"])
def test_a_saved_session_tells_by_its_lines_whose_it_is(name, tmp_path, capsys):
    saved = tmp_path / "saved.jsonl"
    saved.write_bytes(b"".join(line + b"\n" for line in lines(name)))
    assert main(["replay", str(saved), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    golden = golden_of(RECORDINGS / f"{name}.sse").read_bytes().splitlines()
    assert [e["kind"] for e in told] == [json.loads(line)["kind"] for line in golden]


def test_an_answer_that_was_cut_is_trouble(capsys):
    assert main(["replay", str(RECORDINGS / "claude_code" / "cut_in_arguments.sse")]) == 3
    assert "truncated" in capsys.readouterr().out
