"""What a pipe brings is told as it comes, and a large file takes little memory."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamnorm.cli import main
from streamnorm.testing import call, finish, say, script
from tests.captures.test_forms import saved
from tests.conftest import ALL, RECORDINGS

LOOK = script(say("One."), say("Two."), call("get_weather", city="Oslo"), finish())
HERE = [sys.executable, "-m", "streamnorm.cli"]
SYNTHETIC = "calls_without_ids.sse"  # all of its ids are minted
MEGABYTES = 200 if ALL else 16
PEAK = 65  # megabytes, of which Python and its modules are forty; read at once, a file takes three times its size


class Piped:
    """The command, fed by hand."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen(
            [*HERE, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> bytes:
        """The next line; waits for it."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def __enter__(self) -> Piped:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.__exit__(None, None, None)


@pytest.mark.parametrize("provider", ["openai_chat", "anthropic", "gemini", "ollama", "bedrock"])
def test_a_writer_hears_each_event_before_it_writes_on(provider):
    """After each chunk it waits for the events of it: none would come if all were read first."""
    from streamnorm import Normalizer
    from streamnorm.events import event_to_json

    body = LOOK.bytes(provider)
    pipe = Normalizer(seed="s")
    with Piped("replay", "-", "--json", "--seed", "s") as piped:
        for at in range(0, len(body), 40):
            piped.write(body[at : at + 40])
            for event in pipe.feed(body[at : at + 40]):
                assert piped.line() == event_to_json(event) + b"\n"
        piped.process.stdin.close()
        for event in pipe.close():
            assert piped.line() == event_to_json(event) + b"\n"
        assert piped.line() == b""
    assert piped.process.returncode == 0


def test_a_take_that_is_still_written_is_told_as_it_comes():
    data = (RECORDINGS / "anthropic" / "parallel_calls.sse").read_bytes()
    at = data.index(b"\n\n", 600) + 2
    with Piped("replay", "-", "--json") as piped:
        piped.write(data[:at])
        assert json.loads(piped.line())["kind"] == "stream_start"
        piped.write(data[at:])
    assert piped.process.returncode == 0


def test_the_answers_of_an_agent_are_told_as_it_prints_them():
    lines = saved("claude_code/partial_messages").splitlines(keepends=True)
    with Piped("replay", "-", "--json") as piped:
        for line in lines:
            piped.write(line)
            if b'"message_start"' in line:
                assert json.loads(piped.line())["kind"] == "stream_start"
                break


def test_a_packed_pipe_is_read_as_well():
    import gzip

    with Piped("replay", "-", "--json") as piped:
        piped.write(gzip.compress(LOOK.bytes("gemini")))
        piped.process.stdin.close()
        kinds = [json.loads(line)["kind"] for line in piped.process.stdout]
    assert kinds[-1] == "finish"


@pytest.mark.parametrize(
    "data", [b"hello\n" * 3, b"", b"<html></html>", b'{"model":"m","messages":[]}']
)
def test_a_pipe_without_a_stream_is_a_sentence(data):
    with Piped("replay", "-") as piped:
        piped.write(data)
        piped.process.stdin.close()
        said = piped.process.stderr.read()
    assert said.startswith(b"streamnorm: stdin ")
    assert said.count(b"\n") == 1
    assert piped.process.returncode == 2


def test_a_har_may_come_through_a_pipe(capsys):
    from tests.captures.test_forms import FILES

    with Piped("inspect", "-", "--json") as piped:
        piped.write((FILES / "mitmproxy.har").read_bytes())
        piped.process.stdin.close()
        *streams, totals = map(json.loads, piped.process.stdout)
    assert len(streams) == totals["totals"]["streams"] == 5


def test_what_ids_are_minted_from_is_the_file_and_of_a_pipe_made_up(tmp_path, capsys):
    body = (RECORDINGS / "gemini" / SYNTHETIC).read_bytes().partition(b"\n")[2]
    file = tmp_path / "a.sse"
    file.write_bytes(body)

    def ids_of_file() -> list[str]:
        main(["replay", str(file), "--json"])
        return ids(capsys.readouterr().out.splitlines())

    def ids_of_pipe(*more: str) -> list[str]:
        with Piped("replay", "-", "--json", *more) as piped:
            piped.write(body)
            piped.process.stdin.close()
            return ids([line.decode() for line in piped.process.stdout])

    assert ids_of_file() == ids_of_file() != []
    assert ids_of_pipe() != ids_of_pipe()
    assert ids_of_pipe("--seed", "s") == ids_of_pipe("--seed", "s") != ids_of_file()


def ids(lines: list[str]) -> list[str]:
    told = map(json.loads, lines)
    return [one["id"] for one in told if one["kind"] == "tool_call"]


# --- large files ----------------------------------------------------------------------------------

CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":'
    b'{"content":"some words of an answer that is long, "},"finish_reason":null}]}\n\n'
)
LINE = (
    b'{"type":"assistant","message":{"id":"msg_%08d","type":"message","role":"assistant","model":"m",'
    b'"content":[{"type":"text","text":"%b"}],'
    b'"stop_reason":"end_turn"},"sessionId":"s","uuid":"u%08d","parent_tool_use_id":null}\n'
)
WORDS = b"some words of it " * 650
HEAD = b': streamnorm {"provider":"openai_chat"%b}\n'


def large(kind: str) -> Iterator[bytes]:
    """A file of that kind, in pieces."""
    if kind == "take":
        yield HEAD % b',"seed":"s"'
        for number in range(MEGABYTES * 5000):
            yield b": +%d.%03d\n%b" % (number // 100, number % 100, CHUNK)
    elif kind == "container":
        yield HEAD % b',"container":"chunks"'
        for _ in range(MEGABYTES * 4000):
            yield b"event: text\ndata: " + json.dumps(CHUNK.decode()).encode() + b"\n\n"
    elif kind == "session":
        for number in range(MEGABYTES * 90):
            yield LINE % (number, WORDS, number)
    else:
        piece = CHUNK * 1000
        for _ in range(MEGABYTES * 5):
            yield piece


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
@pytest.mark.parametrize("kind", ["take", "body", "container", "session"])
@pytest.mark.parametrize("command", ["inspect", "replay"])
def test_memory_does_not_grow_with_the_file(kind, command, tmp_path):
    file = tmp_path / "large.sse"
    with file.open("wb") as out:
        out.writelines(large(kind))
    code = (
        "import sys; from streamnorm.cli import main\n"
        "status = main(sys.argv[1:])\n"
        # of this program alone: what getrusage says begins with the size of the one that started it
        "peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "print(status, *peak, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(file), "--json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True,
    )  # fmt: skip
    status, kilobytes = map(int, done.stderr.split()[-2:])
    assert status in (0, 3)  # it never ends, but for the session
    assert kilobytes < PEAK * 1024


def test_a_bar_is_shown_on_a_terminal_and_gone_at_the_end(tmp_path):
    file = tmp_path / "large.sse"
    with file.open("wb") as out:
        out.writelines(large("body"))
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*HERE, "inspect", str(file), "--json"], stdout=subprocess.PIPE, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
        told = process.stdout.read()
    os.close(ours)
    assert json.loads(told)["provider"] == "openai_chat"
    assert shown == b"" or (b"reading " in shown and shown.endswith(b"\r"))
    assert b"\n" not in shown


def test_a_file_is_not_needed_twice_at_once(tmp_path):
    """A folder of it is read one after the other."""
    for name in "ab":
        (tmp_path / f"{name}.sse").write_bytes(
            Path(RECORDINGS / "gemini" / "parallel_calls.sse").read_bytes()
        )
    assert main(["inspect", str(tmp_path)]) == 0
