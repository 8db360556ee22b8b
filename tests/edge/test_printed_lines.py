"""Lines of a program as sources of a session: pipes of asyncio and anyio, files, objects of an SDK."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamnorm import replay
from streamnorm.sessions import session
from tests.conftest import RECORDINGS, calls_of
from tests.providers.test_programs import lines, told

NAME = "claude_code/sub_agent_partial"
EXPECTED = told("claude_code", lines(NAME))
PRINT = "import sys; [sys.stdout.buffer.write(open(sys.argv[1], 'rb').read()[n:n + 777]) or \
sys.stdout.flush() for n in range(0, 10**6, 777)]"


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    path = tmp_path / "printed.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines(NAME)))
    return path


async def heard(source: Any) -> list[Any]:
    async with session(source, seed="tests", idle=None) as streams:
        return [(stream.lane, [event async for event in stream]) async for stream in streams]


def test_the_output_of_an_asyncio_subprocess(printed):
    async def main() -> list[Any]:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PRINT, str(printed), stdout=asyncio.subprocess.PIPE
        )
        found = await heard(program.stdout)
        await program.wait()
        return found

    assert asyncio.run(main()) == EXPECTED


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_output_of_an_anyio_process(printed, backend):
    if backend == "trio":
        pytest.importorskip("trio")

    async def main() -> list[Any]:
        async with await anyio.open_process([sys.executable, "-c", PRINT, str(printed)]) as program:
            return await heard(program.stdout)

    assert anyio.run(main, backend=backend) == EXPECTED


def test_the_output_of_a_subprocess_in_a_for_loop(printed):
    with (
        subprocess.Popen(
            [sys.executable, "-c", PRINT, str(printed)], stdout=subprocess.PIPE
        ) as run,
        session(run.stdout, seed="tests") as streams,
    ):
        assert [(stream.lane, list(stream)) for stream in streams] == EXPECTED


def test_a_line_longer_than_a_pipe_is_one_line(tmp_path):
    long = {"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "x" * 300_000}}
    said = {"type": "assistant", "message": {"id": "m", "model": "m", "content": [long]}}
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(said) + "\n" + '{"type":"result","subtype":"success"}\n')
    with path.open("rb") as pipe, session(pipe) as streams:
        (events,) = [list(stream) for stream in streams]
    assert [len(c.arguments["content"]) for c in calls_of(events)] == [300_000]


def test_the_path_of_a_saved_session(printed):
    with session(printed, seed="tests") as streams:
        assert [(stream.lane, list(stream)) for stream in streams] == EXPECTED


def test_each_answer_of_a_session_can_be_kept_as_a_take(printed, tmp_path):
    folder = tmp_path / "takes"
    folder.mkdir()
    with session(printed, record=folder) as streams:
        found = [list(stream) for stream in streams]
    takes = sorted(folder.iterdir())
    assert len(takes) == len(found) == 3
    again = [list(replay(path)) for path in takes]
    assert sorted(e.id for events in again for e in calls_of(events)) == sorted(
        e.id for events in found for e in calls_of(events)
    )
    assert {events[0].provider for events in again} == {"claude_code"}
    assert [events[-1].kind for events in again] == ["finish"] * 3


# --- the agent SDK --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    sorted(p.stem for p in (RECORDINGS / "claude_code").glob("*.sse") if "saved" not in p.stem),
)
def test_messages_of_the_agent_sdk_are_told_as_the_lines_they_were_made_from(name):
    parser = pytest.importorskip("claude_agent_sdk._internal.message_parser")
    said = [json.loads(line) for line in lines(f"claude_code/{name}")]
    objects = [made for line in said if (made := parser.parse_message(line)) is not None]
    with session(objects, seed="tests") as streams:
        again = [(stream.lane, list(stream)) for stream in streams]
    assert again == told("claude_code", said)


def test_an_object_of_the_agent_sdk_is_known_by_its_module():
    @dataclass
    class StreamEvent:
        uuid: str
        session_id: str
        event: dict[str, Any]
        parent_tool_use_id: str | None = None

    StreamEvent.__module__ = "claude_agent_sdk.types"
    events = [json.loads(line) for line in lines(NAME)]
    objects = [
        StreamEvent(e["uuid"], e["session_id"], e["event"], e["parent_tool_use_id"])
        for e in events
        if e["type"] == "stream_event"
    ]
    with session(objects) as streams:
        found = [list(stream) for stream in streams]
    assert [c.name for events in found for c in calls_of(events)] == ["Agent"]
    assert [events[-1].kind for events in found] == ["finish", "finish"]
