"""A recording that cannot go on is told in the stream, when it happens; the stream goes on."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamnorm import (
    Failed,
    Finish,
    RecorderFailed,
    StreamStart,
    event_from_dict,
    event_to_dict,
    normalize,
)
from streamnorm.agent.loop import ToolLoop
from streamnorm.testing import call, say, script
from streamnorm.ui import ag_ui, plain, vercel
from tests.conftest import assert_well_formed, run

needs_limit = pytest.mark.skipif(
    not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit to set here"
)

# A disk that is full: no file of this process may grow beyond so many bytes.
FULL = """
import asyncio, json, os, resource, signal, sys, time
from streamnorm import event_from_dict, event_to_dict, normalize
from streamnorm.testing import call, say, script
path, how, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
chunks = script(say("All of it arrives. " * 40), call("f", city="Oslo")).chunks("anthropic")
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

async def slowly():
    for number, chunk in enumerate(chunks):
        yield chunk
        while number == 12 and how == "later" and not stream.summary["recording"]["failed"]:
            await asyncio.sleep(0.001)  # until its thread has found out

async def main():
    global stream
    async with normalize(slowly(), "anthropic", record=path) as stream:
        return [event async for event in stream]

def now():
    global stream
    with normalize(iter(chunks), "anthropic", record=path) as stream:
        return list(stream)

events = now() if how == "sync" else asyncio.run(main())
print(json.dumps([[event_to_dict(event) for event in events], stream.summary["recording"]]))
"""


def told(path: Path, how: str, size: int) -> tuple[list[Any], dict[str, Any]]:
    import json

    command = [sys.executable, "-c", FULL, str(path), how, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    events, recording = json.loads(done.stdout)
    return [event_from_dict(event) for event in events], recording


@needs_limit
@pytest.mark.parametrize("how", ["async", "sync", "later"])
@pytest.mark.parametrize("size", [300, 1500])
def test_a_full_disk_is_told_among_the_events(how: str, size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.sse"
    events, recording = told(path, how, size)
    failed = RecorderFailed(str(path), "OSError: File too large")
    assert events.count(failed) == 1
    assert_well_formed(events)
    chunks = script(say("All of it arrives. " * 40), call("f", city="Oslo")).chunks("anthropic")
    whole = run("anthropic", chunks)
    assert [e.kind for e in events if e != failed] == [e.kind for e in whole]
    assert isinstance(events[-1], Finish)
    assert events.index(failed) < len(events) - 1
    assert recording == {"path": str(path), "failed": "OSError: File too large"}
    if how == "later":  # told when it happened, and not at the end
        assert any(e.kind == "text_delta" for e in events[events.index(failed) :])


def closed_tape(stream: Any) -> None:
    """Somebody closes the file of the tape under it."""
    import os

    os.close(stream._intake._recorder._file)


def test_it_is_told_before_a_failure_of_the_stream(tmp_path: Path) -> None:
    chunks = script(say("Hello there")).chunks("anthropic")[:4]
    with normalize(iter(chunks), "anthropic", record=tmp_path / "a.sse") as stream:
        assert isinstance(next(stream), StreamStart)
        closed_tape(stream)
        rest = list(stream)
    assert [type(event) for event in rest][-2:] == [RecorderFailed, Failed]
    assert stream.summary["recording"]["failed"] == rest[-2].error == "OSError: Bad file descriptor"
    assert stream.summary["counts"]["recorder_failed"] == 1


async def test_it_is_told_before_a_time_that_is_up(tmp_path: Path) -> None:
    import anyio

    async def source() -> Any:
        yield script(say("Hello")).chunks("anthropic")[0]
        await anyio.sleep_forever()

    async with normalize(source(), "anthropic", record=tmp_path / "a.sse", idle=0.05) as stream:
        events = [await anext(stream)]
        closed_tape(stream)
        events += [event async for event in stream]
    kinds = [event.kind for event in events]
    assert kinds == ["stream_start", "usage", "recorder_failed", "failed"]


def test_a_stream_that_never_began_says_it_in_its_summary_alone(tmp_path: Path) -> None:
    with normalize(iter([]), "anthropic", record=tmp_path / "a.sse") as stream:
        closed_tape(stream)
        events = list(stream)
    assert [event.kind for event in events] == ["failed"]
    assert stream.summary["recording"]["failed"] == "OSError: Bad file descriptor"


def test_a_recording_that_works_says_nothing(tmp_path: Path) -> None:
    chunks = script(say("Hello there")).chunks("anthropic")
    with normalize(iter(chunks), "anthropic", record=tmp_path / "a.sse") as stream:
        assert "recorder_failed" not in {event.kind for event in stream}
    assert stream.summary["recording"]["failed"] is None


FAILED = RecorderFailed("takes/a.sse", "OSError: No space left on device")


def test_it_survives_as_plain_values() -> None:
    assert event_to_dict(FAILED) == {
        "kind": "recorder_failed", "path": "takes/a.sse",
        "error": "OSError: No space left on device",
    }  # fmt: skip
    assert event_from_dict(event_to_dict(FAILED)) == FAILED


@pytest.mark.parametrize("protocol", [vercel, ag_ui, plain], ids=["ai-sdk", "ag-ui", "plain"])
def test_a_page_is_not_told_which_file_of_the_server_it_was(protocol: Any) -> None:
    events = run("anthropic", script(say("Hello"), call("f", city="Oslo")).chunks("anthropic"))
    options = {"thread_id": "t", "run_id": "r"} if protocol is ag_ui else {}
    with_it = [*events[:3], FAILED, *events[3:]]
    said = b"".join(protocol.Encoder(**options).payloads(*with_it))
    assert b"a.sse" not in said
    assert b"recorder" not in said
    assert b"Hello" in said


async def test_a_loop_passes_it_on_and_keeps_the_turn_as_it_was() -> None:
    events = run("anthropic", script(say("Hello")).chunks("anthropic"))
    loop = ToolLoop(lambda conversation, tools: iter_of([*events[:2], FAILED, *events[2:]]), [])
    async with loop.run("Hi") as running:
        heard = [event async for event in running]
    assert FAILED in heard
    assert running.text == "Hello"


async def iter_of(events: list[Any]) -> Any:
    for event in events:
        yield event
