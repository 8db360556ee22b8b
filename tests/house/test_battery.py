"""The battery: its streams are what their names say, its judge says the right word, and ours is never silent."""

from __future__ import annotations

from typing import Any

import pytest

from bench.battery.cases import SAID, WIRES, Case, cuts, oddities
from bench.battery.judge import SILENT, verdict
from bench.battery.run import CUT_HEAD, main, serving
from bench.readers import OURS
from streamnorm import BrokenToolCall, Failed, Normalizer, ToolCall

FIRST, SECOND = SAID
PLAIN = Case("x", "openai_chat", b"")
CASES = [case for wire in WIRES for case in (*cuts(wire, 12), *oddities(wire))]


def ours(case: Case) -> dict[str, Any]:
    pipe = Normalizer(case.wire)
    events = pipe.feed(case.body)
    events += pipe.close() if case.ends == "clean" else pipe.fail("transport", "cut")
    return {
        "calls": [(e.name, e.arguments) for e in events if isinstance(e, ToolCall)],
        "told": next((e.reason for e in events if isinstance(e, BrokenToolCall | Failed)), ""),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.wire}: {case.name}")
def test_ours_is_never_silently_wrong(case: Case):
    assert verdict(case, ours(case)) not in SILENT


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_not_odd_is_right(wire: str):
    case = next(case for case in oddities(wire) if case.name == "nothing odd")
    assert verdict(case, ours(case)) == "right"


@pytest.mark.parametrize(("wire", "count"), list(zip(WIRES, (24, 21, 19, 10), strict=True)))
def test_each_wire_has_its_oddities(wire: str, count: int):
    names = [case.name for case in oddities(wire)]
    assert len(set(names)) == len(names) == count
    bodies = {case.body for case in oddities(wire)}
    assert len(bodies) == count - 1  # one of them is odd in its chunks


@pytest.mark.parametrize(
    ("heard", "word"),
    [
        ({"calls": SAID}, "right"),
        ({"calls": [(FIRST[0], '{"path":"ACC-1","n":120000,"dry_run":true}'), SECOND]}, "right"),
        ({"told": "ValueError"}, "told"),
        ({"calls": [FIRST], "told": "failed: truncated"}, "told"),
        ({"calls": [FIRST]}, "lost"),
        ({"calls": []}, "lost"),
        ({"calls": [FIRST, (SECOND[0], '{"pa')]}, "half"),
        ({"calls": [FIRST, (SECOND[0], {})]}, "wrong"),
        ({"calls": [FIRST, FIRST]}, "wrong"),
        ({"calls": [(FIRST[0], FIRST[1] | {"n": 1200}), SECOND]}, "wrong"),
        ({"calls": [(FIRST[0], FIRST[1] | {"n": 1200})], "told": "failed"}, "wrong"),
        ({"calls": [("read_fileedit_file", FIRST[1]), SECOND]}, "wrong"),
    ],
)  # fmt: skip
def test_one_word_for_what_was_heard(heard: dict[str, Any], word: str):
    assert verdict(PLAIN, heard) == word


def test_where_calls_may_be_missing_whoever_tells_none_is_right():
    case = Case("x", "openai_chat", b"", may=[FIRST], all=False)
    assert verdict(case, {"calls": [FIRST]}) == verdict(case, {"calls": []}) == "right"
    assert verdict(case, {"calls": [FIRST, (SECOND[0], {})]}) == "wrong"


def test_ours_is_read_over_http(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.promises.results.FILE", tmp_path / "results.json")
    assert main(["--only", OURS, "--cuts", "3"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "  ".join(CUT_HEAD) in said
    assert said[-1].endswith("ours was silently wrong 0 times")
    assert not (tmp_path / "results.json").exists()


def test_a_broken_connection_breaks():
    import httpx

    case = Case("x", "openai_chat", b"abc", ends="abrupt")
    with serving([case]) as url, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{url}/0/v1", trust_env=False)
