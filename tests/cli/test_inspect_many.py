"""``streamnorm inspect`` of many files: a line for each stream, then totals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamnorm.cli import main
from tests.captures.test_forms import FILES
from tests.conftest import RECORDINGS

WHOLE = RECORDINGS / "anthropic" / "parallel_calls.sse"
CUT = RECORDINGS / "anthropic" / "cut_in_arguments.sse"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_each_stream_is_a_line_and_the_last_ones_are_totals(capsys):
    assert (
        main(["inspect", str(WHOLE), str(FILES / "ruby_vcr.yaml#1"), str(CUT), "--no-color"]) == 3
    )
    shown = lines(capsys)
    assert shown[0] == f"{WHOLE}  finish: tool_calls · anthropic · 2 calls · {size(WHOLE)} bytes"
    assert shown[1].startswith(
        f"{FILES}/ruby_vcr.yaml#1  finish: tool_calls · openai_chat · 1 call · 2618"
    )
    assert shown[2].startswith(f"{CUT}  failed: truncated · anthropic · 1 call, 1 broken · ")
    assert shown[3] == ""
    assert shown[4].startswith("Σ 3 streams · 3 files · ")
    assert shown[5:] == [
        "providers: anthropic 2, openai_chat 1",
        "endings: finish: tool_calls 2, failed: truncated 1",
        "calls: whole 3, broken: truncated 1",
        "ids: natural 4",
        "oddities: stream.cut_event 1" if "odd" in shown[2] else "oddities: none",
    ]


def size(path: Path) -> int:
    from streamnorm import read_take

    return len(read_take(path).wire)


def test_a_bad_file_is_said_and_the_others_are_inspected(tmp_path, capsys):
    (tmp_path / "b.html").write_text("<html>")
    (tmp_path / "c.sse").write_bytes(WHOLE.read_bytes())
    assert main(["inspect", str(tmp_path), str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert "b.html is an HTML or XML page" in captured.err
    assert "nowhere cannot be read: No such file or directory" in captured.err
    assert "Σ 1 stream · 3 files" in captured.out
    assert "2 not read" in captured.out


def test_for_programs_each_stream_is_an_object_and_the_last_one_has_totals(capsys):
    main(["inspect", str(FILES / "mitmproxy.har"), "--json"])
    *streams, totals = map(json.loads, lines(capsys))
    assert [one["name"] for one in streams] == [f"{FILES}/mitmproxy.har#{n}" for n in range(1, 6)]
    assert [one["form"] for one in streams] == ["har"] * 5
    assert totals == {
        "totals": {
            "streams": 5,
            "bytes": sum(one["bytes"] for one in streams),
            "providers": {"openai_chat": 1, "anthropic": 1, "openai_responses": 1, "ollama": 1,
                          "bedrock": 1},
            "endings": {"finish: tool_calls": 4, "failed: provider_error": 1},
            "calls": {"whole": 4},
            "id_sources": totals["totals"]["id_sources"],
            "notes": totals["totals"]["notes"],
            "files": 1,
            "unreadable": 0,
        }
    }  # fmt: skip
    assert sum(totals["totals"]["id_sources"].values()) == 4


def test_one_stream_keeps_its_page_and_its_object(capsys):
    main(["inspect", str(FILES / "mitmproxy.har#2"), "--json"])
    (told,) = map(json.loads, lines(capsys))
    assert (told["provider"], told["headers"]["status"]) == ("anthropic", 200)
    assert "name" not in told
    main(["inspect", str(FILES / "curl.txt")])
    assert lines(capsys)[0].startswith("openai_chat · ")


def test_a_stream_that_is_not_there_is_said(capsys):
    assert main(["inspect", str(FILES / "curl_several.txt#9")]) == 2
    assert "has 5 streams, and no #9." in capsys.readouterr().err


def test_a_file_without_a_stream_is_a_sentence_and_no_totals(tmp_path, capsys):
    (tmp_path / "a.sse").write_bytes(b"")
    assert main(["inspect", str(tmp_path / "a.sse")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"streamnorm: {tmp_path}/a.sse is empty.\n"


def test_names_of_files_are_cleaned(tmp_path, capsys):
    for name in ("a\x1b[31m.sse", "b.sse"):
        (tmp_path / name).write_bytes(WHOLE.read_bytes())
    (tmp_path / "c\x07.html").write_text("<html>")
    main(["inspect", str(tmp_path), "--no-color"])
    captured = capsys.readouterr()
    assert not set(captured.out + captured.err) & set("\x1b\x07")


def test_events_of_ours_beside_takes_are_one_line_and_no_failure(tmp_path, capsys):
    (tmp_path / "a.sse").write_bytes(WHOLE.read_bytes())
    for name in ("a.events.jsonl", "b.events.jsonl"):
        (tmp_path / name).write_text('{"kind":"stream_start","provider":"x"}\n')
    assert main(["inspect", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == (
        "streamnorm: 2 files hold events of streamnorm, which are no streams: passed over.\n"
    )
    assert "Σ 1 stream · 3 files · " in captured.out
    assert "not read" not in captured.out


def test_events_of_ours_that_are_named_are_a_failure(tmp_path, capsys):
    (tmp_path / "a.sse").write_bytes(WHOLE.read_bytes())
    (tmp_path / "b.jsonl").write_text('{"kind":"stream_start","provider":"x"}\n')
    assert main(["inspect", str(tmp_path / "a.sse"), str(tmp_path / "b.jsonl")]) == 2
    assert "b.jsonl holds events of streamnorm, not what" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such pipes here")
@pytest.mark.parametrize("pattern", ["", "*"])
def test_a_pipe_in_a_folder_is_said_and_not_waited_for(pattern, tmp_path, capsys):
    (tmp_path / "a.sse").write_bytes(WHOLE.read_bytes())
    (tmp_path / "dead.sse").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert main(["inspect", str(tmp_path / pattern)]) == 2
    captured = capsys.readouterr()
    assert "pipe is a pipe, a socket or a device, which is read only if it is named" in captured.err
    assert "dead.sse cannot be read: No such file or directory" in captured.err
    assert "Σ 1 stream · 3 files · " in captured.out


def test_a_file_whose_name_has_a_number_sign_is_one_stream(tmp_path, capsys):
    (tmp_path / "a#2").write_bytes(WHOLE.read_bytes())
    assert main(["replay", str(tmp_path / "a#2")]) == 0
    assert capsys.readouterr().out.startswith("anthropic · ")
