"""``session``: a connection that many responses share, over the real libraries, on loopback."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamnorm import Limits, Normalizer, replay
from streamnorm.errors import BrokenCallError, StreamTruncated, UsageError
from streamnorm.events import BrokenToolCall, Event, Failed, Finish, ToolCall
from streamnorm.sessions import Demultiplexer, Session, session
from tests.conftest import RECORDINGS
from tests.pipe.test_demultiplexer import CALL, SESSIONS, created, delta, ended, kinds
from tests.pipe.test_laws import payloads_of

TIDES = RECORDINGS / "openai_responses" / "parallel_calls.sse"
WEATHER = RECORDINGS / "openai_responses" / "interleaved_calls.sse"


def messages_of(path: Path, lane: str | None = None) -> list[str]:
    added = {"stream_id": lane} if lane else {}
    return [json.dumps(payload | added) for payload in payloads_of(path)]


@cache
def alone(path: Path) -> list[Event]:
    pipe = Normalizer("openai_responses")
    return [e for p in payloads_of(path) for e in pipe.feed_payload(p)] + pipe.close()


def woven(*takes: list[str]) -> list[str]:
    return [m for group in zip_longest(*takes) for m in group if m]


LANES = woven(messages_of(TIDES, "a"), messages_of(WEATHER, "b"))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


async def later(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def read_all(streams: Session) -> list[tuple[str | None, list[Event]]]:
    return [(stream.lane, [event async for event in stream]) async for stream in streams]


# --- at hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
@pytest.mark.parametrize("how", ["file", "list", "generator", "async generator", "dicts"])
async def test_a_session_tells_what_the_demultiplexer_does(path: Path, how: str):
    lines = lines_of(path)
    turns = Demultiplexer(seed="s")
    told = [one for line in lines for one in turns.feed(line)] + turns.close()
    expected: dict[Any, list[Event]] = {}
    for one in told:
        expected.setdefault((one.stream, one.lane), []).extend(one.events)
    source: Any = {
        "file": lambda: path, "list": lambda: lines, "generator": lambda: iter(lines),
        "async generator": lambda: later(lines), "dicts": lambda: [json.loads(x) for x in lines],
    }[how]()  # fmt: skip
    async with session(source, seed="s") as streams:
        heard = await read_all(streams)
    told_in_streams = [(lane, events) for (n, lane), events in expected.items() if n is not None]
    assert heard == told_in_streams
    outside = [(lane, e) for (n, lane), events in expected.items() if n is None for e in events]
    assert sorted(streams.notices, key=str) == sorted(outside, key=str)
    assert streams.notes == turns.notes


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_can_be_read_in_a_for_loop(path: Path):
    with session(path, seed="s") as streams:
        heard = [[event for event in stream] for stream in streams]  # noqa: C416
    assert [events[-1].kind in ("finish", "failed") for events in heard] == [True] * len(heard)
    assert heard == [[*stream] for stream in session(path.read_bytes().splitlines(), seed="s")]


async def test_streams_have_all_that_streams_have():
    async with session(later(LANES)) as streams:
        first = await anext(streams)
        assert [call.name async for call in first.calls()] == ["get_weather", "get_tides"]
        assert first.summary["counts"]["tool_call"] == 2
        assert first.cursor is not None
        assert isinstance(first.end, Finish)
        second = await anext(streams)
        assert "".join([text async for text in second.text()]) == ""
        assert (first.lane, second.lane, streams.provider) == ("a", "b", "openai_responses")


async def test_streams_can_be_read_at_the_same_time_in_any_order():
    heard = {}

    async def read(stream: Any) -> None:
        heard[stream.lane] = [event async for event in stream]

    async with session(later(LANES)) as streams, anyio.create_task_group() as tasks:
        async for stream in streams:
            tasks.start_soon(read, stream)
    assert heard == {"a": alone(TIDES), "b": alone(WEATHER)}


async def test_streams_can_be_read_later_than_others():
    async with session(later(LANES)) as streams:
        first, second = await anext(streams), await anext(streams)
        assert [event async for event in second] == alone(WEATHER)
        assert [event async for event in first] == alone(TIDES)


def test_an_async_connection_cannot_be_read_in_a_for_loop():
    with pytest.raises(UsageError, match="this connection is async: use `async for`"):
        iter(session(later([])))


def test_messages_that_are_none_at_all_are_no_streams(tmp_path: Path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with (tmp_path / "empty.jsonl").open("rb") as pipe:
        assert [list(session(source)) for source in ([], pipe)] == [[], []]


def test_what_is_not_open_is_refused():
    class Manager:
        async def recv(self) -> str: ...

    with pytest.raises(UsageError, match="a Manager is not open: enter it"):
        session(Manager())


def test_a_session_of_a_provider_that_has_none_is_refused():
    with pytest.raises(UsageError, match="anthropic cannot multiplex"):
        session([], "anthropic")


# --- over the network -----------------------------------------------------------------------------

Reply = Callable[[Any, str], Awaitable[None]]


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    """A server of the websockets library: what is sent to it says what it answers."""
    server = pytest.importorskip("websockets.asyncio.server")

    async def answer(socket: Any) -> None:
        async for request in socket:
            said = json.loads(request)
            for message in ANSWERS[said.get("answer") or said["model"]]:
                await socket.send(message)
            if said.get("then") == "abort":
                socket.transport.abort()
            elif said.get("then") == "close":
                await socket.close(said.get("code", 1000))

    async with server.serve(answer, "127.0.0.1", 0) as running:
        yield running.sockets[0].getsockname()[1]


ANSWERS: dict[str, list[str]] = {
    "tides": messages_of(TIDES),
    "weather": messages_of(WEATHER),
    "lanes": LANES,
    "half": messages_of(TIDES)[:10],
    "half lanes": LANES[:24],
}


class Asked:
    """A connection of one library, and how to send on it."""

    def __init__(self, connection: Any, send: Callable[[str], Awaitable[Any]]) -> None:
        self.connection, self._send = connection, send

    async def ask(self, answer: str, **more: Any) -> None:
        await self._send(json.dumps({"answer": answer, **more}))


@asynccontextmanager
async def over_websockets(port: int) -> AsyncIterator[Asked]:
    client = pytest.importorskip("websockets.asyncio.client")
    async with client.connect(f"ws://127.0.0.1:{port}/v1/responses") as socket:
        yield Asked(socket, socket.send)


@asynccontextmanager
async def over_aiohttp(port: int) -> AsyncIterator[Asked]:
    aiohttp = pytest.importorskip("aiohttp")
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"http://127.0.0.1:{port}/") as socket,
    ):
        yield Asked(socket, socket.send_str)


@asynccontextmanager
async def over_httpx(port: int) -> AsyncIterator[Asked]:
    library = pytest.importorskip("httpx_ws")
    async with library.aconnect_ws(f"http://127.0.0.1:{port}/") as socket:
        yield Asked(socket, socket.send_text)


@asynccontextmanager
async def over_the_sdk(port: int) -> AsyncIterator[Asked]:
    openai = pytest.importorskip("openai")
    async with (
        openai.AsyncOpenAI(api_key="sk-test", base_url=f"http://127.0.0.1:{port}/v1") as client,
        client.responses.connect() as connection,
    ):
        yield Asked(connection, connection.send_raw)


LIBRARIES = [over_websockets, over_aiohttp, over_httpx, over_the_sdk]
over_libraries = pytest.mark.parametrize("library", LIBRARIES)


@over_libraries
async def test_turns_follow_each_other_on_one_connection(library: Any):
    async with serving() as port, library(port) as asked, session(asked.connection) as streams:
        for name, path in [("tides", TIDES), ("weather", WEATHER), ("tides", TIDES)]:
            await asked.ask(name)
            stream = await anext(streams)
            assert [event async for event in stream] == alone(path)
        assert streams.unread == 0


@over_libraries
async def test_lanes_interleave_on_one_connection(library: Any):
    heard = {}

    async def read(stream: Any) -> None:
        heard[stream.lane] = [event async for event in stream]

    async with serving() as port, library(port) as asked, session(asked.connection) as streams:
        await asked.ask("lanes", then="close")
        async with anyio.create_task_group() as tasks:
            async for stream in streams:
                tasks.start_soon(read, stream)
    assert heard == {"a": alone(TIDES), "b": alone(WEATHER)}


@over_libraries
@pytest.mark.parametrize(("then", "code", "reason"), [
    ("close", 1000, "truncated"), ("close", 1011, "transport"), ("abort", 1006, "transport"),
])  # fmt: skip
async def test_a_connection_that_ends_fails_every_stream_that_is_open_and_breaks_its_calls(
    library: Any, then: str, code: int, reason: str
):
    async with serving() as port, library(port) as asked, session(asked.connection) as streams:
        await asked.ask("half lanes", then=then, code=code)
        heard = await read_all(streams)
    assert [lane for lane, _ in heard] == ["a", "b"]
    for _, events in heard:
        assert isinstance(events[-1], Failed)
        assert (events[-1].reason, events[-1].retryable) == (reason, True)
        assert [event.reason for event in events if isinstance(event, BrokenToolCall)] == [
            "truncated"
        ] * len([event for event in events if isinstance(event, BrokenToolCall)])
    assert any(isinstance(event, BrokenToolCall) for _, events in heard for event in events)


@over_libraries
async def test_a_connection_that_fails_between_turns_is_raised_as_no_stream_can_tell_it(
    library: Any,
):
    async with serving() as port, library(port) as asked, session(asked.connection) as streams:
        await asked.ask("tides", then="abort")
        stream = await anext(streams)
        assert [event async for event in stream] == alone(TIDES)
        with pytest.raises(StreamTruncated, match="transport: "):
            await anext(streams)
        with pytest.raises(StopAsyncIteration):
            await anext(streams)


async def test_the_typed_events_of_the_sdk_are_messages_too():
    pytest.importorskip("openai")
    async with serving() as port, over_the_sdk(port) as asked:
        await asked.ask("lanes", then="close")
        typed = [event async for event in asked.connection]
    assert type(typed[0]).__name__ == "ResponseWsCreated"
    heard = dict(await read_all(session(typed)))
    assert {
        lane: [e for e in events if isinstance(e, ToolCall)] for lane, events in heard.items()
    } == {
        "a": [e for e in alone(TIDES) if isinstance(e, ToolCall)],
        "b": [e for e in alone(WEATHER) if isinstance(e, ToolCall)],
    }
    assert {lane: kinds(events) for lane, events in heard.items()} == {
        "a": kinds(alone(TIDES)), "b": kinds(alone(WEATHER)),
    }  # fmt: skip


async def test_requests_are_sent_with_the_sdk_itself():
    async with serving() as port, over_the_sdk(port) as asked, session(asked.connection) as streams:
        await asked.connection.response.create(model="weather", input="What is it like?")
        assert [event async for event in await anext(streams)] == alone(WEATHER)


def test_a_blocking_connection_is_read_in_a_for_loop():
    client = pytest.importorskip("websockets.sync.client")
    server = pytest.importorskip("websockets.sync.server")
    import threading

    def answer(socket: Any) -> None:
        for request in socket:
            for message in ANSWERS[json.loads(request)["answer"]]:
                socket.send(message)

    with server.serve(answer, "127.0.0.1", 0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            url = f"ws://127.0.0.1:{running.socket.getsockname()[1]}"
            with client.connect(url) as socket, session(socket) as streams:
                for name, path in [("tides", TIDES), ("weather", WEATHER)]:
                    socket.send(json.dumps({"answer": name}))
                    assert list(next(streams)) == alone(path)
        finally:
            running.shutdown()
            thread.join()


def test_it_works_on_trio():
    library = pytest.importorskip("trio_websocket")
    trio = pytest.importorskip("trio")
    heard = {}

    async def answer(request: Any) -> None:
        socket = await request.accept()
        for message in LANES:
            await socket.send_message(message)
        await trio.sleep_forever()  # the client closes first: if the server does, the library leaks

    async def job() -> None:
        async def read(stream: Any) -> None:
            heard[stream.lane] = [event async for event in stream]

        async with trio.open_nursery() as nursery:
            server = await nursery.start(library.serve_websocket, answer, "127.0.0.1", 0, None)
            async with (
                library.open_websocket("127.0.0.1", server.port, "/", use_ssl=False) as socket,
                session(socket) as streams,
                anyio.create_task_group() as tasks,
            ):
                for _ in "ab":
                    tasks.start_soon(read, await anext(streams))
            nursery.cancel_scope.cancel()

    anyio.run(job, backend="trio")
    assert heard == {"a": alone(TIDES), "b": alone(WEATHER)}


# --- time -----------------------------------------------------------------------------------------


class Wire:
    """Messages that come when a test says so."""

    def __init__(self) -> None:
        self.send, self.receiver = anyio.create_memory_object_stream[str](1000)
        self.closed = False
        self.cancelled = 0

    async def recv(self) -> str:
        try:
            return await self.receiver.receive()
        except BaseException as error:
            self.cancelled += not isinstance(error, Exception)
            raise

    async def close(self) -> None:
        self.closed = True
        self.send.close()
        self.receiver.close()


async def test_a_lane_that_is_silent_fails_alone_and_takes_nothing_from_the_others():
    wire = Wire()
    async with session(wire, idle=0.05) as streams:
        for message in (created("a"), created("b"), delta("x", "b")):
            wire.send.send_nowait(json.dumps(message))
        first, second = await anext(streams), await anext(streams)
        assert [event async for event in first][-1].reason == "idle"
        wire.send.send_nowait(json.dumps(ended("b")))
        assert kinds([event async for event in second]) == ["stream_start", "text_delta", "finish"]
    assert wire.cancelled == 1


async def test_a_reader_that_is_cancelled_takes_nothing_from_the_others():
    wire = Wire()
    async with session(wire, idle=None) as streams:
        for message in (created("a"), created("b")):
            wire.send.send_nowait(json.dumps(message))
        first, second = await anext(streams), await anext(streams)
        assert (await anext(first)).kind == "stream_start"
        async with anyio.create_task_group() as tasks:
            heard: list[Event] = []

            async def read() -> None:
                heard.extend([event async for event in second])

            with anyio.move_on_after(0.01):
                await anext(first)  # this one reads the connection
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            for message in (delta("x", "b"), ended("b")):
                wire.send.send_nowait(json.dumps(message))
    assert kinds(heard) == ["stream_start", "text_delta", "finish"]


async def test_another_reader_reads_on_when_the_one_who_reads_is_done():
    wire = Wire()
    heard: dict[Any, list[str]] = {}

    async def read(stream: Any) -> None:
        heard[stream.lane] = kinds([event async for event in stream])

    async with session(wire, idle=None) as streams:
        for message in (created("a"), created("b"), created("c")):
            wire.send.send_nowait(json.dumps(message))
        async with anyio.create_task_group() as tasks:
            for _ in "abc":
                tasks.start_soon(read, await anext(streams))
            for lane in "bac":
                await anyio.wait_all_tasks_blocked()
                wire.send.send_nowait(json.dumps(ended(lane)))
    assert heard == {lane: ["stream_start", "finish"] for lane in "abc"}


async def test_others_get_their_turn_though_messages_are_always_there():
    """A socket that never waits: whoever reads it lets those read for whom the messages are."""

    class Ready(Wire):
        async def recv(self) -> str:
            return self.receiver.receive_nowait() if left() else await super().recv()

    wire = Ready()
    messages = [
        created("a"),
        created("b"),
        *(delta("x" * 1000, "b") for _ in range(30)),
        ended("b"),
        ended("a"),
    ]
    for message in messages:
        wire.send.send_nowait(json.dumps(message))

    def left() -> int:
        return wire.receiver.statistics().current_buffer_used

    heard: dict[Any, str] = {}

    async def read(stream: Any) -> None:
        heard[stream.lane] = [event async for event in stream][-1].kind

    async with session(wire, idle=None, limits=Limits(unread=5000)) as streams:
        first, second = await anext(streams), await anext(streams)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, first)
            tasks.start_soon(read, second)
    assert heard == {"a": "finish", "b": "finish"}


async def test_a_deadline_is_for_each_stream():
    wire = Wire()
    async with session(wire, idle=None, deadline=0.03) as streams:
        wire.send.send_nowait(json.dumps(created("a")))
        events = [event async for event in await anext(streams)]
    assert (events[-1].reason, events[-1].code) == ("limit", "deadline")


# --- bounds ---------------------------------------------------------------------------------------


async def test_the_slowest_stream_fails_when_too_much_waits_and_the_others_go_on():
    messages = [created("slow"), created("quick")]
    messages += [delta("x" * 1000, "slow") for _ in range(20)]
    messages += [delta("y" * 500, "quick") for _ in range(6)] + [ended("quick"), ended("slow")]
    async with session(
        later([json.dumps(m) for m in messages]), limits=Limits(unread=10_000)
    ) as streams:
        slow, quick = await anext(streams), await anext(streams)
        assert isinstance([event async for event in quick][-1], Finish)
        end = [event async for event in slow][-1]
        assert (end.reason, end.code) == ("limit", "unread")
        assert end.error.startswith("its reader is too far behind")
        assert streams.unread == 0


async def test_a_stream_that_has_ended_and_is_not_read_counts_too():
    one = [created("a"), delta("x" * 7000, "a"), ended("a")]
    two = [created("b"), delta("y" * 6000, "b"), ended("b")]
    messages = [*one, *two, created("c"), ended("c")]
    async with session(
        later([json.dumps(m) for m in messages]), limits=Limits(unread=10_000)
    ) as streams:
        first, second, third = [await anext(streams) for _ in "abc"]
        assert isinstance([event async for event in third][-1], Finish)
        assert isinstance([event async for event in second][-1], Finish)
        assert [event async for event in first][-1].code == "unread"


BIG = [created("a"), delta("x" * 20_000, "a"), ended("a")]


async def test_a_message_that_its_reader_waits_for_does_not_count_as_unread():
    messages = [json.dumps(m) for m in [created("b"), delta("y", "b"), *BIG, ended("b")]]
    async with session(later(messages), limits=Limits(unread=10_000)) as streams:
        first, second = await anext(streams), await anext(streams)
        heard: dict[Any, str] = {}

        async def read(stream: Any) -> None:
            heard[stream.lane] = [event async for event in stream][-1].kind

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, second)
            tasks.start_soon(read, first)
    assert heard == {"a": "finish", "b": "finish"}
    assert streams.unread == 0


def test_a_message_that_its_reader_waits_for_in_a_for_loop_does_not_count_either():
    with session([json.dumps(m) for m in BIG], limits=Limits(unread=10_000)) as streams:
        assert [[*stream][-1].kind for stream in streams] == ["finish"]


async def test_a_message_that_is_too_big_for_its_stream_fails_by_that_streams_limit():
    limits = Limits(unread=10_000, frame_bytes=15_000)
    async with session(later([json.dumps(m) for m in BIG]), limits=limits) as streams:
        events = [event async for event in await anext(streams)]
    assert (events[-1].reason, events[-1].code) == ("limit", "frame_bytes")


async def test_one_message_that_is_more_than_may_wait_is_no_slow_reader():
    big = created("a")
    big["response"]["instructions"] = "x" * 20_000
    async with session(later([json.dumps(big)]), limits=Limits(unread=10_000)) as streams:
        events = [event async for event in await anext(streams)]
    assert events[-1].code == "unread"
    assert events[-1].error.startswith("one message is larger than all that may wait")


async def test_a_stream_that_was_cut_says_why_though_the_connection_fails_then():
    async def source() -> AsyncIterator[str]:
        for message in [created("b"), created("a"), *[delta("x" * 6000, "a")] * 2, delta("y", "b")]:
            yield json.dumps(message)
        raise ConnectionResetError("gone")

    async with session(source(), limits=Limits(unread=10_000)) as streams:
        first, second = await anext(streams), await anext(streams)
        assert [event async for event in first][-1].reason == "transport"
        assert [event async for event in second][-1].code == "unread"


@pytest.mark.parametrize("open_at_once", [True, False], ids=["refused", "ended"])
async def test_streams_that_nobody_takes_are_kept_up_to_a_number(open_at_once: bool):
    began = [[created(f"l{n}"), delta("x", f"l{n}")] for n in range(4100)]
    begun = [m for n, said in enumerate(began) for m in (*said, ended(f"l{n}"))]
    if open_at_once:
        begun = [*(said[0] for said in began), ended("l0")]
    messages = [created("a"), *begun, ended("a"), created("z"), ended("z")]
    async with session(messages, limits=Limits(lanes=2)) as streams:
        first = await anext(streams)
        assert [event async for event in first][-1].kind == "finish"
        assert len(streams._new) == 4097
        assert streams.notes["session.stream_dropped"] == 3
        ends = [(stream.lane, [event async for event in stream][-1]) async for stream in streams]
    lanes = [lane for lane, _ in ends]
    assert lanes == [*(f"l{n}" for n in range(4097)), "z"]
    told = ends[4096][1]
    assert (told.reason, told.code) == ("limit", "unread")
    assert told.error.startswith("more streams wait than are kept")
    assert ends[4095][1].kind == ("failed" if open_at_once else "finish")
    assert ends[-1][1].kind == "finish"


async def test_nothing_is_read_while_nobody_waits():
    taken = []

    async def counted() -> AsyncIterator[str]:
        for message in LANES:
            taken.append(message)
            yield message

    async with session(counted()) as streams:
        stream = await anext(streams)
        assert len(taken) == 1
        assert (await anext(stream)).kind == "stream_start"
        await anyio.wait_all_tasks_blocked()
        assert len(taken) == 1


async def test_more_lanes_than_may_be_open_fail_as_they_begin():
    messages = [created(lane) for lane in "abc"] + [ended(lane) for lane in "abc"]
    heard = await read_all(session(messages, limits=Limits(lanes=2)))
    assert [events[-1].kind for _, events in heard] == ["finish", "finish", "failed"]
    assert heard[2][1][-1].code == "lanes"


async def test_the_newest_notices_are_kept_and_the_number_of_the_others_is_noted():
    messages = [{"type": "session.odd", "n": n} for n in range(300)]
    async with session(messages, "openai_responses") as streams:
        assert [stream async for stream in streams] == []
    assert [event.payload["n"] for _, event in streams.notices] == [*range(44, 300)]
    assert streams.notes == {"session.outside": 300, "session.notice_dropped": 44}


async def test_a_mebibyte_of_notices_is_kept_the_newest_ones():
    sizes = [400_000, 400_000, 400_000, 10, 2_000_000, 20]
    messages = [{"type": "session.odd", "n": n, "s": "x" * s} for n, s in enumerate(sizes)]
    kept = []
    async with session(messages, "openai_responses") as streams:
        for count in range(1, len(messages) + 1):
            streams.read_now(lambda count=count: streams.notes["session.outside"] == count)
            kept.append([event.payload["n"] for _, event in streams.notices])
    assert kept == [[0], [0, 1], [1, 2], [1, 2, 3], [], [5]]
    assert streams.notes["session.notice_dropped"] == 5


async def test_streams_that_were_read_are_forgotten():
    messages = [m for n in range(300) for m in (created(f"l{n}"), ended(f"l{n}"))]
    async with session(messages) as streams:
        assert len(await read_all(streams)) == 300
        assert (streams._lanes, streams.holding, streams.unread) == ({}, set(), 0)


# --- closing --------------------------------------------------------------------------------------


async def test_closing_the_session_closes_the_connection_and_ends_what_is_read():
    wire = Wire()
    heard: list[Event] = []

    async def read(stream: Any) -> None:
        heard.extend([event async for event in stream])

    async with anyio.create_task_group() as tasks:
        streams = session(wire, idle=None)
        for message in (created("a"), CALL | {"stream_id": "a"}):
            wire.send.send_nowait(json.dumps(message))
        tasks.start_soon(read, await anext(streams))
        await anyio.wait_all_tasks_blocked()
        await streams.aclose()
    assert wire.closed
    assert kinds(heard) == ["stream_start", "tool_call_start", "broken_tool_call", "failed"]
    assert (heard[-1].reason, heard[-1].error) == ("cancelled", "the session was closed")


async def test_a_generator_that_is_read_is_ended_when_the_session_is_closed():
    async def hanging() -> AsyncIterator[str]:
        yield json.dumps(created("a"))
        await anyio.sleep_forever()

    heard: list[Event] = []
    async with anyio.create_task_group() as tasks:
        streams = session(hanging(), idle=None)
        stream = await anext(streams)

        async def read() -> None:
            heard.extend([event async for event in stream])

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        await streams.aclose()
    assert heard[-1].reason == "cancelled"


async def test_a_stream_that_is_closed_leaves_the_others_alone():
    async with session(later(LANES)) as streams:
        async with await anext(streams) as first:
            await anext(first)
        assert [event async for event in await anext(streams)] == alone(WEATHER)
        assert streams.unread == 0


async def test_a_stream_that_is_dropped_is_left_and_says_so():
    async with session(later(LANES)) as streams:
        stream = await anext(streams)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del stream
            gc.collect()
        assert [w.category for w in caught] == [ResourceWarning]
        assert [event async for event in await anext(streams)] == alone(WEATHER)
        assert streams.unread == 0


async def test_a_mistake_in_the_source_is_raised_and_not_hidden():
    async def broken() -> AsyncIterator[str]:
        yield json.dumps(created("a"))
        raise TypeError("a mistake")

    async with session(broken()) as streams:
        stream = await anext(streams)
        with pytest.raises(TypeError, match="a mistake"):
            [event async for event in stream]


async def test_a_call_that_broke_is_raised_by_its_own_stream_only():
    done = CALL | {"type": "response.output_item.done"}
    bad = {**done, "item": {**done["item"], "arguments": "{", "status": "completed"}}
    good = {**done, "item": {**done["item"], "arguments": "{}", "status": "completed"}}
    messages = [created("a"), created("b"), bad | {"stream_id": "a"}, good | {"stream_id": "b"}]
    async with session([*messages, ended("a"), ended("b")]) as streams:
        first, second = await anext(streams), await anext(streams)
        with pytest.raises(BrokenCallError):
            [call async for call in first.calls()]
        assert [call.name async for call in second.calls()] == ["now"]


# --- recording ------------------------------------------------------------------------------------


def inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def test_each_stream_is_recorded_as_a_take_of_its_own(tmp_path: Path):
    async with session(later(LANES), record=tmp_path, seed="s") as streams:
        heard = await read_all(streams)
    replayed = [[event async for event in replay(path)] for path in inside(tmp_path)]
    assert sorted(replayed, key=str) == sorted((events for _, events in heard), key=str)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="record is a folder for a session"):
        session([], record=tmp_path / "nowhere")
