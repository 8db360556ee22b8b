"""Our own client of our own streams, through a line that is cut: nothing is lost, nothing doubled.

A real router behind a real server, a real log, and between them a proxy that cuts connections after
so many bytes. Nobody sleeps: pauses are counted instead.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("uvicorn", reason="the extra `ui` is not installed")

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from streamnorm import (
    Event,
    Failed,
    Finish,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolResult,
    UsageError,
)
from streamnorm.ui import Said, follow
from streamnorm.ui.client import FollowError, Following
from streamnorm.ui.log import EventLog, MemoryLog, SQLiteLog
from streamnorm.ui.router import Chat, chat_router

REDIS = os.environ.get("STREAMNORM_REDIS", "")
needs_redis = pytest.mark.skipif(not REDIS, reason="STREAMNORM_REDIS names no Redis")

CALL = ToolCall(0, "call_1", "pay", {"euro": 2**70}, '{"euro":1180591620717411303424}')
EVENTS: list[Event] = [
    StreamStart("anthropic", "m", "r"), TextDelta("Paying "), CALL, Finish("tool_calls"),
    StreamStart("anthropic", "m", "r2"), TextDelta("Done: ü \u2028 <b>"), Finish("stop"),
]  # fmt: skip
RESULT = {
    "kind": "client_tool_result", "call": 0, "id": "call_1", "output": {"paid": True},
    "is_error": False,
}  # fmt: skip
SAID = {"kind": "said", "text": "Pay", "to": ""}
HEARD = [SAID, *EVENTS[:4], RESULT, *EVENTS[4:]]
BODIES: dict[str, dict[str, Any]] = {
    "plain": {"id": "c1", "messages": [{"role": "user", "text": "Pay"}]},
    "ai-sdk": {
        "id": "c1",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Pay"}]}],
    },
    "ag-ui": {
        "threadId": "c1", "runId": "r1", "protocolVersion": "1.0", "state": {}, "tools": [],
        "context": [], "forwardedProps": {},
        "messages": [{"id": "m1", "role": "user", "content": "Pay"}],
    },
}  # fmt: skip


class Loop:
    """Tells the answer, one event at a time; before number ``gate`` it waits to be let on."""

    def __init__(self, gate: int | None = None) -> None:
        self.gate, self.open = gate, anyio.Event()
        self.asked = 0

    async def __call__(self, chat: Chat) -> AsyncIterator[Any]:
        self.asked += 1
        return self._tell()

    async def _tell(self) -> AsyncIterator[Any]:
        result = ToolResult.for_call(CALL, {"paid": True})
        for number, item in enumerate([Said("Pay"), *EVENTS[:4], result, *EVENTS[4:]]):
            if number == self.gate:
                await self.open.wait()
            yield item


class Proxy:
    """Hands bytes on, and cuts each connection after as many bytes as are told for it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.cuts: list[int] = []  # the next connections; when there are none, nothing is cut
        self.on_cut: Callable[[], Any] = lambda: None
        self.connections = 0

    async def __call__(self, down: asyncio.StreamReader, up: asyncio.StreamWriter) -> None:
        self.connections += 1
        left = self.cuts.pop(0) if self.cuts else None
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        jobs = [
            asyncio.create_task(self._hand_on(down, writer, None)),
            asyncio.create_task(self._hand_on(reader, up, left)),
        ]
        await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
        writer.transport.abort()
        up.transport.abort()

    async def _hand_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int | None
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(4096):
                writer.write(data[:left])
                await writer.drain()
                if left is not None and (left := max(0, left - len(data))) == 0:
                    self.on_cut()
                    return


class Line:
    """Where a stream is followed, through the proxy; pauses are counted and not waited for."""

    def __init__(self, url: str, proxy: Proxy) -> None:
        self.url, self.proxy = url, proxy
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], Any] = anyio.lowlevel.checkpoint  # done in each pause

    def follow(self, path: str, **options: Any) -> Following:
        return follow(f"{self.url}{path}", wait=self._wait, **options)

    async def all(self, path: str, **options: Any) -> list[Any]:
        async with self.follow(path, **options) as told:
            return [item async for item in told]

    async def ask(self, protocol: str = "plain") -> list[Any]:
        return await self.all("/api/chat", json=BODIES[protocol])

    async def _wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self.meanwhile()


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[Line]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    proxy = Proxy(listener.getsockname()[1])
    between = await asyncio.start_server(proxy, "127.0.0.1", 0)
    try:
        yield Line(f"http://127.0.0.1:{between.sockets[0].getsockname()[1]}", proxy)
    finally:
        between.close()
        server.should_exit = True
        await serving


@asynccontextmanager
async def chat(loop: Loop, log: EventLog, protocol: str = "plain") -> AsyncIterator[Line]:
    router = chat_router(loop, owner=lambda request: "ann", protocol=protocol, log=log, within=0)
    async with served(Starlette(routes=list(router.routes))) as line:
        yield line


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=needs_redis)])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    if request.param == "memory":
        made: EventLog = MemoryLog()
    elif request.param == "sqlite":
        made = SQLiteLog(tmp_path / "log.db")
    else:
        from streamnorm.ui.log import RedisLog

        made = RedisLog(REDIS, prefix=f"test-{os.getpid()}-{tmp_path.name}", poll=0.05)
    async with made:
        yield made


# --- cuts -----------------------------------------------------------------------------------------


async def test_events_are_typed_and_what_is_no_event_is_plain(log: EventLog) -> None:
    async with chat(Loop(), log) as line:
        assert await line.ask() == HEARD
        assert await line.all("/api/chat/c1/log") == HEARD


async def test_a_cut_after_any_byte_loses_and_doubles_nothing(log: EventLog) -> None:
    async with chat(Loop(), log) as line:
        await line.ask()
        async with httpx.AsyncClient() as http:
            size = len((await http.get(f"{line.url}/api/chat/c1/log")).content)
        for cut in range(1, size + 500, 61):  # the headers are cut, too
            line.proxy.cuts = [cut]
            before = line.proxy.connections
            assert await line.all("/api/chat/c1/log") == HEARD, cut
            assert line.proxy.connections - before <= 2
        assert size > 1000


async def test_many_cuts_on_the_way_through_many_answers(log: EventLog) -> None:
    async with chat(Loop(), log) as line:
        for _ in range(3):
            await line.ask()
        line.proxy.cuts = [700 + 13 * n for n in range(40)]
        before = line.proxy.connections
        assert await line.all("/api/chat/c1/log") == HEARD * 3
        assert line.proxy.connections - before > 5


async def test_an_answer_that_is_still_told_is_taken_up_where_the_line_was_cut(
    log: EventLog,
) -> None:
    loop = Loop(gate=3)
    async with chat(loop, log) as line:
        line.proxy.cuts = [600]
        line.proxy.on_cut = loop.open.set  # told on only when nobody listens
        with anyio.fail_after(20):
            assert await line.ask() == HEARD
        assert loop.asked == 1
        assert line.pauses[:1] == [0.25]


@pytest.mark.parametrize("after", range(len(HEARD)))
async def test_a_stream_is_followed_from_a_position(after: int) -> None:
    async with chat(Loop(), MemoryLog()) as line:
        positions = []
        async with line.follow("/api/chat", json=BODIES["plain"]) as told:
            async for _ in told:
                positions.append(told.position)
        assert told.heard == len(HEARD)
        rest = await line.all("/api/chat/c1/stream", after=positions[after])
    assert rest == HEARD[after + 1 :]


@pytest.mark.parametrize(
    ("protocol", "first", "last"),
    [("ai-sdk", "start", "finish"), ("ag-ui", "RUN_STARTED", "RUN_FINISHED")],
)
async def test_other_protocols_are_followed_part_by_part(
    protocol: str, first: str, last: str, log: EventLog
) -> None:
    async with chat(Loop(), log, protocol) as line:
        told = await line.ask(protocol)
        assert (told[0]["type"], told[-1]["type"]) == (first, last)
        for cut in range(200, 3000, 331):
            line.proxy.cuts = [cut]
            assert await line.all("/api/chat/c1/log") == told, cut


# --- ends -----------------------------------------------------------------------------------------


async def test_a_chat_in_which_nothing_is_told_gives_nothing() -> None:
    async with chat(Loop(), MemoryLog()) as line, line.follow("/api/chat/c1/stream") as told:
        assert [item async for item in told] == []
        assert told.heard == 0


async def test_a_producer_that_died_is_heard_as_a_failure(tmp_path: Path) -> None:
    log = MemoryLog(lease=0.01)
    writer = await log.create(owner="ann", chat="c1")
    await writer.append([b'{"kind":"text_delta","text":"Pay"}'])
    async with chat(Loop(), log) as line:
        told = await line.all("/api/chat/c1/log")
    failed = Failed("truncated", "The answer was cut off.", code="internal")
    assert told == [TextDelta("Pay"), failed]


async def test_after_too_many_cuts_without_an_event_the_position_is_told() -> None:
    async with chat(Loop(), MemoryLog()) as line:
        await line.ask()
        line.proxy.cuts = [700, *[20] * 20]
        heard: list[Any] = []
        told = line.follow("/api/chat/c1/log", retries=4)
        with pytest.raises(FollowError, match="cannot be heard to its end") as raised:
            await gathered(told, heard)
        assert heard == HEARD[: len(heard)]
        assert 0 < len(heard) < len(HEARD)
        assert line.pauses == [0.25, 0.5, 1.0, 2.0]
        assert raised.value.position == told.position
        line.proxy.cuts = []
        assert heard + await line.all("/api/chat/c1/log", after=told.position) == HEARD


async def gathered(told: Following, heard: list[Any]) -> None:
    async for item in told:
        heard.append(item)


async def test_pauses_grow_to_a_limit() -> None:
    async with chat(Loop(), MemoryLog()) as line:
        line.proxy.cuts = [1] * 20
        with pytest.raises(FollowError):
            await line.all("/api/chat/c1/log")
    assert line.pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


async def test_what_was_posted_is_never_posted_again() -> None:
    loop = Loop()
    async with chat(loop, MemoryLog()) as line:
        line.proxy.cuts = [10]
        with pytest.raises(FollowError, match="whether it was asked is not known"):
            await line.ask()
    assert loop.asked == 1


async def test_an_answer_that_ended_unheard_is_an_error() -> None:
    log = MemoryLog()

    async def over() -> None:
        while await log.active(owner="ann", chat="c1"):
            await anyio.lowlevel.checkpoint()

    async with chat(Loop(), log) as line, httpx.AsyncClient() as http:
        await line.ask()
        headers = (await http.get(f"{line.url}/api/chat/c1/log")).headers.raw
        line.proxy.cuts = [sum(len(name) + len(value) + 4 for name, value in headers) + 30]
        line.meanwhile = over
        with pytest.raises(FollowError, match="ended while nobody listened"):
            await line.ask()
        assert await line.all("/api/chat/c1/log") == HEARD * 2


async def test_an_address_at_which_nobody_listens_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    line = Line(f"http://127.0.0.1:{port}", Proxy(port))
    with pytest.raises(FollowError, match="cannot connect"):
        await line.all("/api/chat/c1/stream")
    assert line.pauses == []


# --- refusals -------------------------------------------------------------------------------------


def answering(*answers: Response) -> Starlette:
    left = list(answers)

    async def answer(request: Any) -> Response:
        return left.pop(0) if len(left) > 1 else left[0]

    return Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])


def event_stream(body: str) -> Response:
    return Response(body, media_type="text/event-stream")


async def test_a_server_that_is_busy_is_asked_again() -> None:
    told = event_stream(
        'id: s.1\ndata: {"kind":"finish","reason":"stop"}\n\ndata: {"kind":"end"}\n\n'
    )
    async with served(
        answering(Response(status_code=503), Response(status_code=429), told)
    ) as line:
        assert await line.all("/") == [Finish("stop")]
        assert line.pauses == [0.25, 0.5]


@pytest.mark.parametrize(
    ("answer", "says", "status"),
    [
        (Response('{"error":{"message":"who is asking?"}}', 401), "401: who is asking?", 401),
        (Response('{"error":"no"}', 404), "answered 404", 404),
        (Response("<html>", 403), "answered 403", 403),
        (Response(b"\xff" * 100_000, 400), "answered 400", 400),
        (Response(status_code=307, headers={"location": "http://x.example"}), "answered 307", 307),
        (Response("{}", media_type="application/json"), "no stream of events", None),
        (event_stream("data: no\n\n"), "no stream of ours: it says 'no'", None),
        (event_stream("data: [1]\n\n"), "no stream of ours", None),
    ],
)
async def test_what_is_no_stream_is_told(answer: Response, says: str, status: int | None) -> None:
    async with served(answering(answer)) as line:
        with pytest.raises(FollowError, match=says) as raised:
            await line.all("/")
    assert raised.value.status == status
    assert line.pauses == []


async def test_a_post_that_is_refused_is_not_tried_again() -> None:
    async with served(answering(Response(status_code=503))) as line:
        with pytest.raises(FollowError, match="answered 503"):
            await line.all("/", json={"id": "c1"})
        assert line.proxy.connections == 1


async def test_half_of_a_character_is_told_as_one_that_cannot_be_shown() -> None:
    body = 'data: {"kind":"text_delta","text":"\\ud83d"}\n\ndata: {"kind":"end"}\n\n'
    async with served(answering(event_stream(body))) as line:
        assert await line.all("/") == [TextDelta("\ufffd")]


def test_a_message_and_a_position_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="either post a message"):
        follow("http://x.example", json={}, after="s.1")


async def test_a_client_of_ones_own_stays_open() -> None:
    async with chat(Loop(), MemoryLog()) as line, httpx.AsyncClient() as http:
        await line.all("/api/chat", json=BODIES["plain"], client=http)
        assert not http.is_closed


async def test_a_stream_without_ids_that_is_cut_is_not_heard_again_from_its_beginning() -> None:
    body = 'data: {"kind":"text_delta","text":"Hi"}\n\n'
    async with served(answering(event_stream(body))) as line:
        with pytest.raises(FollowError, match="its events have no ids"):
            await line.all("/")
        assert (line.proxy.connections, line.pauses) == (1, [])


@pytest.mark.parametrize(
    "options", [{"after": "é"}, {"headers": {"x": "é"}}, {"headers": {"x": "a\nb"}}]
)
def test_a_header_that_cannot_be_sent_is_told(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be ASCII"):
        follow("http://127.0.0.1/", **options)
