"""``streamnorm import``: takes of what other programs captured."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from streamnorm.captures import Found, read_take, streams_of
from streamnorm.cli import main
from streamnorm.survey import survey
from streamnorm.takes.redact import Redactor
from tests.captures.test_forms import FILES, HELD, entry, events_of, har
from tests.conftest import RECORDINGS, over_takes

CAPTURES = sorted(FILES / name for name in HELD)
SESSIONS = [
    RECORDINGS / "claude_code" / "sub_agent.sse",
    RECORDINGS / "codex" / "rollout_two_questions.sse",
]


def imported(file: Path, to: Path) -> list[Path]:
    main(["import", str(file), "-o", str(to), "--json"])
    return sorted(to.glob("*.sse"), key=lambda path: (len(path.name), path.name))


@pytest.mark.parametrize("file", [*CAPTURES, *SESSIONS], ids=lambda path: path.name)
def test_the_replay_of_an_imported_take_gives_the_events_of_the_capture(file, tmp_path):
    found = [one for one in streams_of(file.read_bytes(), name="a") if isinstance(one, Found)]
    paths = imported(file, tmp_path / "takes")
    assert [events_of(read_take(path)) for path in paths] == [events_of(one.take) for one in found]


@over_takes("file", quick=30)
def test_a_take_that_is_imported_tells_the_same(file, tmp_path):
    found = [one for one in streams_of(file.read_bytes(), name="a") if isinstance(one, Found)]
    paths = imported(file, tmp_path / "takes")
    assert len(paths) == len(found)
    for path, one in zip(paths, found, strict=True):
        take = read_take(path)
        assert take.wire == Redactor().whole(one.take.wire)
        if take.wire == one.take.wire:
            assert events_of(take) == events_of(one.take)
        assert (take.provider, take.seed, take.timed, take.finished) == (
            one.take.provider, one.take.seed, one.take.timed, one.take.finished,
        )  # fmt: skip
        assert survey(take).end == survey(one.take).end


def test_takes_are_private_new_and_named_by_us(tmp_path, capsys):
    file = tmp_path / "..my session\x1b[31m (1).har"
    body = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    file.write_bytes(har(entry(body), entry(body)))
    to = tmp_path / "takes"
    assert main(["import", str(file), "-o", str(to)]) == 0
    assert sorted(os.listdir(to)) == ["my-session-31m-1-1.sse", "my-session-31m-1-2.sse"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in to.iterdir()} == {0o600}
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "finish: stop · openai_chat · 0 calls · from" in shown
    assert shown.endswith(f"Σ 2 takes written to {to}\n")


def test_nothing_is_overwritten_unless_that_is_asked_for(tmp_path, capsys):
    to = tmp_path / "takes"
    to.mkdir()
    (to / "body.sse").write_text("mine")
    (to / "target").write_text("theirs")
    file = str(FILES / "body.sse")
    assert main(["import", file, "-o", str(to)]) == 2
    assert (
        "is there already. Name another folder, or overwrite it with --force."
        in capsys.readouterr().err
    )
    assert (to / "body.sse").read_text() == "mine"
    assert main(["import", file, "-o", str(to), "--force"]) == 0
    assert read_take(to / "body.sse").wire == (FILES / "body.sse").read_bytes()
    (to / "body.sse").unlink()
    (to / "body.sse").symlink_to(to / "target")
    assert main(["import", file, "-o", str(to), "--force"]) == 0
    assert (to / "target").read_text() == "theirs"
    assert sorted(os.listdir(to)) == ["body.sse", "target"]  # nothing half-written stays


def test_two_files_of_one_name_are_two_takes(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "body.sse").write_bytes((FILES / "body.sse").read_bytes())
    to = tmp_path / "takes"
    assert main(["import", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(to)]) == 0
    assert sorted(os.listdir(to)) == ["body.2.sse", "body.sse"]


def test_a_dry_run_writes_nothing(tmp_path, capsys):
    to = tmp_path / "takes"
    assert main(["import", str(FILES / "ruby_vcr.yaml"), "-o", str(to), "--dry-run"]) == 0
    assert not to.exists()
    assert capsys.readouterr().out.endswith("Σ 5 takes would be written\n")


def test_each_take_is_an_object_for_programs(tmp_path, capsys):
    main(["import", str(FILES / "ruby_vcr.yaml"), "-o", str(tmp_path), "--json"])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["form"], one["provider"], one["end"], one["calls"]) for one in told] == [
        ("vcr", "openai_chat", "finish", 1), ("vcr", "anthropic", "finish", 1),
        ("vcr", "openai_responses", "failed", 0), ("vcr", "ollama", "finish", 1),
        ("vcr", "bedrock", "finish", 1),
    ]  # fmt: skip
    assert told[0]["path"] == str(tmp_path / "ruby_vcr-1.sse")


def test_one_stream_of_a_capture_may_be_named(tmp_path):
    assert main(["import", f"{FILES}/ruby_vcr.yaml#2", "-o", str(tmp_path)]) == 0
    assert os.listdir(tmp_path) == ["ruby_vcr-2.sse"]


def test_what_is_no_stream_is_said_and_spares_the_others(tmp_path, capsys):
    page = tmp_path / "page.html"
    page.write_text("<html>")
    to = tmp_path / "takes"
    files = [str(page), str(tmp_path / "nowhere"), str(FILES / "body.sse")]
    assert main(["import", *files, "-o", str(to)]) == 2
    said = capsys.readouterr().err
    assert f"{page} is an HTML or XML page" in said
    assert "nowhere cannot be read: No such file or directory" in said
    assert os.listdir(to) == ["body.sse"]


def test_keys_in_a_body_are_overwritten_in_its_take(tmp_path):
    file = tmp_path / "a.sse"
    key = "sk-" + "abcdefghij0123456789klmn"
    file.write_text(f'data: {{"error":{{"message":"no {key}"}}}}\n\n')
    main(["import", str(file), "-o", str(tmp_path / "takes")])
    written = (tmp_path / "takes" / "a.sse").read_text()
    assert key not in written
    assert '"made":"imported by streamnorm","from":"saved body, server-sent events"' in written


def test_a_place_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["import", str(FILES / "body.sse"), "-o", str(tmp_path / "file")]) == 2
    assert "cannot be made: File exists. Name another folder." in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--force"]], ids=["new", "forced"])
def test_a_disk_that_is_full_is_said_and_nothing_half_written_stays(
    more, tmp_path, capsys, monkeypatch
):
    there = os.write

    def full(file: int, data: bytes) -> int:
        if file > 2:
            raise OSError(28, "No space left on device")
        return there(file, data)

    monkeypatch.setattr(os, "write", full)
    to = tmp_path / "takes"
    assert main(["import", str(FILES / "body.sse"), "-o", str(to), *more]) == 2
    monkeypatch.undo()
    assert "could not be written" in capsys.readouterr().err
    assert os.listdir(to) == []


@pytest.mark.parametrize(
    ("name", "take"),
    [
        ("gpt-4.5.sse", "gpt-4.5.sse"),
        ("gpt-4.5", "gpt-4.5.sse"),
        ("v1.2.gz", "v1.2.sse"),
        ("answer.sse.gz", "answer.sse"),
        ("a#1.sse", "a-1.sse"),
        ("a#2", "a-2.sse"),
        ("C#/answer.sse", "answer.sse"),
        ("C#/more/answer.sse", "answer.sse"),
    ],
)
def test_a_take_is_called_as_its_file_without_what_names_the_form(name, take, tmp_path):
    file = tmp_path / "in" / name
    file.parent.mkdir(parents=True)
    file.write_bytes((FILES / "body.sse").read_bytes())
    assert main(["import", str(file), "-o", str(tmp_path / "takes")]) == 0
    assert os.listdir(tmp_path / "takes") == [take]


def test_each_take_of_a_session_is_one_stream_when_it_is_read_again(tmp_path, capsys):
    paths = imported(SESSIONS[0], tmp_path / "takes")
    assert len(paths) > 1
    for path in paths:
        (found,) = streams_of(path.read_bytes(), name="a")
        assert isinstance(found, Found)
    capsys.readouterr()
    main(["inspect", str(tmp_path / "takes"), "--json"])
    totals = json.loads(capsys.readouterr().out.splitlines()[-1])["totals"]
    assert (totals["streams"], totals["files"]) == (len(paths), len(paths))
