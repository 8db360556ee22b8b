"""The command line, from the outside: arguments in; output and exit code out."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamnorm.cli import main
from streamnorm.providers import PROVIDERS
from tests.conftest import CALLING

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "streamnorm.cli"]


def sse(*payloads: dict) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (p["type"].encode(), json.dumps(p).encode()) for p in payloads
    )


def start(block: dict, index: int = 0) -> dict:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int = 0, **what: str) -> dict:
    kind = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}
    (field,) = what
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind[field], **what}}


def stop(index: int = 0) -> dict:
    return {"type": "content_block_stop", "index": index}


BEGIN = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1},
    },
}  # fmt: skip
END = (
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 7},
    },
    {"type": "message_stop"},
)
TEXT = {"type": "text", "text": ""}
HELLO = (start(TEXT), delta(text="Hello\n"), delta(text="there"), stop())


def tool(name: str, id: str, arguments: str, index: int = 1) -> tuple[dict, ...]:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return start(block, index), delta(index, partial_json=arguments), stop(index)


CALL = tool("read_file", "toolu_1", '{"path": "a.py"}')


@pytest.fixture
def write(tmp_path):
    def write(*payloads: dict, head: str = ': streamnorm {"provider":"anthropic"}\n') -> str:
        path = tmp_path / "take.sse"
        path.write_bytes(head.encode() + sse(*payloads))
        return str(path)

    return write


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)


# --- replay, for people


def test_replay_shows_text_the_call_its_id_and_the_ending(write, capsys):
    assert main(["replay", write(BEGIN, *HELLO, *CALL, *END)]) == 0
    assert capsys.readouterr().out == (
        "anthropic · claude-x · msg_1\n"
        "  Hello\n"
        "  there\n"
        "… read_file begins\n"
        '● read_file  {"path": "a.py"}\n'
        "    id toolu_1, natural, from content_block.id\n"
        "Σ tokens: 10 in, 7 out\n"
        "■ finished: tool_calls (the wire said tool_use)\n"
    )


def test_reasoning_stands_apart_from_the_answer(write, capsys):
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    main(["replay", write(BEGIN, start(thinking, 5), delta(5, thinking="Hm.\nYes."), *HELLO, *END)])
    assert "\n┆ Hm.\n┆ Yes.\n  Hello\n" in capsys.readouterr().out


def test_interleaved_calls_are_each_printed_once_and_whole(write, capsys):
    one, two = tool("one", "t1", '{"a":', 1), tool("two", "t2", '{"b":', 2)
    payloads = (
        one[0], two[0], one[1], two[1], delta(1, partial_json="1}"), delta(2, partial_json="2}"),
        two[2], one[2],
    )  # fmt: skip
    assert main(["replay", write(BEGIN, *payloads, *END)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("●")] == [
        '● two  {"b": 2}',
        '● one  {"a": 1}',
    ]


def test_long_arguments_are_shown_one_per_line_within_the_width(write, capsys):
    arguments = json.dumps({"path": "a.py", "content": "x\n" * 500})
    main(["replay", write(BEGIN, *tool("write_file", "t1", arguments), *END)])
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("● write_file")
    assert lines[at + 1] == '    path: "a.py"'
    assert lines[at + 2].startswith(r'    content: "x\nx\n')
    assert lines[at + 2].endswith("…")
    assert max(map(len, lines)) <= 80


def test_a_cut_stream_shows_the_broken_call_with_its_reason_and_exits_with_3(write, capsys):
    assert main(["replay", write(BEGIN, *CALL[:2])]) == 3
    out = capsys.readouterr().out
    assert "✗ read_file  broken: truncated\n" in out
    assert '    heard: {"path": "a.py"}\n' in out
    assert "■ failed: truncated\n" in out
    assert "●" not in out


def test_a_broken_call_alone_makes_the_exit_code_3(write, capsys):
    assert main(["replay", write(BEGIN, *tool("f", "t1", "{oops"), *END)]) == 3
    assert "✗ f  broken: invalid_json\n" in capsys.readouterr().out


def test_notes_are_told_at_the_end_with_their_sentence(write, capsys):
    main(["replay", write(BEGIN, *HELLO, {"type": "ping"}, {"type": "ping"}, *END)])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("? note wire.keepalive x 2  ")


def test_several_choices_do_not_garble_each_other(tmp_path, capsys):
    def chunk(choice: int, text: str, finish: str | None = None) -> bytes:
        choices = [{"index": choice, "delta": {"content": text}, "finish_reason": finish}]
        payload = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": choices}
        return b"data: " + json.dumps(payload).encode() + b"\n\n"

    path = tmp_path / "take.sse"
    path.write_bytes(
        chunk(0, "ab") + chunk(1, "12") + chunk(0, "cd", "stop") + chunk(1, "34", "stop")
        + b"data: [DONE]\n\n"
    )  # fmt: skip
    main(["replay", str(path), "--provider", "openai_chat"])
    assert "\n  abcd\nchoice 1:\n  1234\n" in capsys.readouterr().out


# --- what the wire must not do to a terminal

NASTY = "\x1b]52;c;aGk=\x07\x9b2J\u202e\u2028\u200b\x7f\r● fake"


def nasty_take(write) -> str:
    return write(
        {**BEGIN, "message": {**BEGIN["message"], "model": NASTY, "id": NASTY}},
        start(TEXT), delta(text=NASTY + "\n" + NASTY), stop(),
        *tool(NASTY, NASTY, json.dumps({NASTY: NASTY})),
        *tool(NASTY, NASTY + "2", json.dumps({"k" * 200: NASTY}), 2),
        {"type": NASTY.replace("\r", "").replace("\u2028", ""), "payload": NASTY},
        {"type": "error", "error": {"type": NASTY, "message": NASTY}},
    )  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--json"], ["--log", "debug"]])
def test_no_control_or_hidden_character_of_the_wire_reaches_the_terminal(write, capsys, options):
    main(["replay", nasty_take(write), *options])
    said = capsys.readouterr()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\u200b]", said.out + said.err)


def test_wire_text_cannot_pass_for_a_line_of_ours(write, capsys):
    main(["replay", write(BEGIN, start(TEXT), delta(text="a\n● fake\n■ finished: stop"), stop())])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("●", "■"))] == ["■ failed: truncated"]


# --- replay, for programs


def test_json_prints_one_event_per_line(write, capsys):
    assert main(["replay", write(BEGIN, *HELLO, *CALL, *END), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["kind"] for event in events] == [
        "stream_start", "text_delta", "text_delta", "tool_call_start", "tool_call_delta",
        "tool_call", "usage", "finish",
    ]  # fmt: skip
    assert events[5]["arguments"] == {"path": "a.py"}


def test_json_keeps_the_values_it_escapes(write, capsys):
    main(["replay", write(BEGIN, start(TEXT), delta(text=NASTY), stop(), *END), "--json"])
    events = [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]
    assert events[1]["text"] == NASTY


def test_json_exits_with_3_as_well(write, capsys):
    assert main(["replay", write(BEGIN, *CALL[:2]), "--json"]) == 3
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["kind"] == "failed"


def test_json_is_utf_8_whatever_the_locale(write):
    path = write(BEGIN, start(TEXT), delta(text="naïve 日本"), stop(), *END)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*COMMAND, "replay", path, "--json"], capture_output=True, env=env, check=True
    )
    assert "naïve 日本" in done.stdout.decode()


def test_a_terminal_without_unicode_gets_plain_signs(write):
    path = write(BEGIN, start(TEXT), delta(text="naïve"), stop(), *CALL, *END)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "replay", path], capture_output=True, env=env, check=True)
    assert b"  na\\xefve\n. read_file begins\n* read_file" in done.stdout


def test_the_same_take_mints_the_same_ids_every_time(tmp_path, capsys):
    payload = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "f", "args": {}}}],
                },
                "finishReason": "STOP",
            }
        ]
    }
    path = tmp_path / "take.sse"
    path.write_bytes(b"data: " + json.dumps(payload).encode() + b"\n\n")
    outs = []
    for _ in range(2):
        assert main(["replay", str(path), "--provider", "gemini", "--json"]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]
    assert '"id_source":"synthetic"' in outs[0]


def test_a_response_body_from_stdin_is_replayed(write):
    body = Path(write(BEGIN, *CALL, *END, head="")).read_bytes()
    done = subprocess.run(
        [*COMMAND, "replay", "-", "--json"], input=body, capture_output=True, check=True
    )
    assert b'"kind":"tool_call"' in done.stdout


def test_a_provider_that_is_named_wins_over_the_takes_own(write, capsys):
    path = write(BEGIN, *CALL, *END, head=': streamnorm {"provider":"gemini"}\n')
    assert main(["replay", path, "--provider", "anthropic"]) == 0


def test_the_log_goes_to_stderr_and_only_when_asked_for(write, capsys):
    path = write(BEGIN, *CALL, *END)
    main(["replay", path, "--json"])
    assert capsys.readouterr().err == ""
    main(["replay", path, "--json", "--log", "info"])
    said = capsys.readouterr()
    assert "toolu_1" in said.err
    assert all(json.loads(line) for line in said.out.splitlines())


# --- colour


def test_there_is_no_colour_in_a_pipe_unless_asked_for(write, capsys):
    path = write(BEGIN, *CALL, *END)
    main(["replay", path])
    assert "\x1b" not in capsys.readouterr().out
    main(["replay", path, "--color", "always"])
    assert "\x1b[1m" in capsys.readouterr().out


def on_a_terminal(*arguments: str, **env: str) -> str:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "40", **env}
    with subprocess.Popen([*COMMAND, *arguments], stdout=theirs, env=environ):
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:  # how Linux says that the other side of a terminal is closed
            pass
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour_unless_no_color_is_set(write):
    path = write(BEGIN, *CALL, *END)
    assert "\x1b[32m" in on_a_terminal("replay", path)
    assert "\x1b" not in on_a_terminal("replay", path, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal("replay", path, "--no-color")
    assert "\x1b" not in on_a_terminal("replay", path, TERM="dumb")


def test_text_is_wrapped_before_the_terminal_wraps_it_to_its_first_column(write):
    text = "x" * 38 + "● fake" + "日" * 30
    said = on_a_terminal(
        "replay", write(BEGIN, start(TEXT), delta(text=text), stop()), "--no-color"
    )
    flowing = said.splitlines()[1:4]
    assert flowing == ["  " + "x" * 38, "  ● fake" + "日" * 16, "  " + "日" * 14]


# --- usage


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["replay"], "FILE"),
        (["replay", "nowhere.sse"], "nowhere.sse cannot be read"),
        (["replay", "x", "--pace", "-1"], "not a number from 0 up"),
        (["replay", "x", "--pace", "nan"], "not a number from 0 up"),
        (["replay", "x", "--color", "blue"], "blue"),
        (["demo", "nowhere"], "no takes in nowhere"),
    ],
)
def test_usage_errors_exit_with_2_and_say_what_to_do(arguments, says, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""


def test_an_unknown_provider_exits_with_2_and_lists_those_there_are(write, capsys):
    assert main(["replay", write(BEGIN), "--provider", "acme\x1b"]) == 2
    said = capsys.readouterr().err
    assert "anthropic" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("command", [[], ["replay"], ["demo"], ["providers"]])
def test_every_command_has_help(command, capsys):
    assert main([*command, "--help"]) == 0
    assert "usage: streamnorm" in capsys.readouterr().out


def test_the_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"streamnorm \d+\.\d+\.\d+\n", capsys.readouterr().out)


# --- endings that are nobody's fault


def test_a_closed_pipe_ends_quietly(write):
    path = write(BEGIN, start(TEXT), *[delta(text="word " * 200)] * 2000, stop(), *END)
    with subprocess.Popen(
        [*COMMAND, "replay", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_ends_quietly_with_130(tmp_path):
    path = tmp_path / "slow.sse"
    path.write_bytes(
        b': streamnorm {"provider":"anthropic"}\n: +0\n' + sse(BEGIN) + b": +59\n" + sse(*END)
    )
    with subprocess.Popen(
        [*COMMAND, "replay", str(path), "--pace", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert b"claude-x" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130


def test_a_pace_without_arrival_times_is_mentioned(write, capsys):
    main(["replay", write(BEGIN, *END), "--pace", "1"])
    assert "no arrival times" in capsys.readouterr().err


# --- providers and demo


def test_providers_lists_every_provider(capsys):
    assert main(["providers"]) == 0
    head, *rows = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert head.split() == ["name", "wire", "framing", "cannot", "serves"]
    assert [row.split()[0] for row in rows] == list(PROVIDERS)
    assert " serve multiplex connect " in rows[list(PROVIDERS).index("bedrock")]


def test_providers_lists_the_agent_programs_apart_with_what_is_read_of_them(capsys):
    assert main(["providers"]) == 0
    head, *rows = capsys.readouterr().out.partition("\n\n")[2].splitlines()
    assert head.split() == ["program", "title", "framing", "reads"]
    assert [row.split()[0] for row in rows] == ["claude_code", "codex"]
    assert main(["providers", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in told if "name" in row] == list(PROVIDERS)
    reads = {row["program"]: row["reads"] for row in told if "program" in row}
    assert list(reads) == ["claude_code", "codex"]
    assert reads["codex"] == "codex exec --json, and its saved sessions (rollouts)"


def test_one_program_can_be_asked_for(capsys):
    assert main(["providers", "--provider", "claude_code"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert (head.split()[0], [row.split()[0] for row in rows]) == ("program", ["claude_code"])
    assert main(["providers", "--types", "--provider", "claude_code"]) == 0


def test_the_demo_ends_with_a_table_of_the_calls_of_each_provider(capsys):
    assert main(["demo", str(ROOT / "recordings")]) == 0
    *_, table = capsys.readouterr().out.split("All calls, normalized\n\n")
    head, *rows = table.splitlines()
    assert head.split() == ["provider", "name", "arguments", "id", "id", "source"]
    held = {path.name for path in (ROOT / "recordings").iterdir()}
    assert {row.split()[0] for row in rows} == held & set(CALLING)
    assert {row.split()[-1] for row in rows} <= {"natural", "conflated", "synthetic"}
