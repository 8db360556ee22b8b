"""A log that is away: whoever waits for it hears so soon, and everything goes on when it is back.

Redis is a real one that is stopped, killed, or behind a line that loses its replies.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from starlette.applications import Starlette

from streamnorm import Finish, StreamStart, TextDelta
from streamnorm.ui import chat_router, follow
from streamnorm.ui.log import (
    EventLog,
    LogUnavailable,
    MemoryLog,
    ProducerLost,
    RedisLog,
    SQLiteLog,
    Writer,
)
from tests.ui.redis_server import DURABLE, RedisServer, needs_server

BODIES: dict[str, dict[str, Any]] = {
    "ai-sdk": {
        "id": "c1",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Go"}]}],
    },
    "ag-ui": {
        "threadId": "c1", "runId": "r1", "protocolVersion": "1.0", "state": {}, "tools": [],
        "context": [], "forwardedProps": {},
        "messages": [{"id": "m1", "role": "user", "content": "Go"}],
    },
    "plain": {"id": "c1", "messages": [{"role": "user", "text": "Go"}]},
}  # fmt: skip
AWAY = "The answer cannot be read right now. It goes on: come back in a moment."
# What a page hears at the end of a body, if the log is away; and at the end of an answer.
TOLD: dict[str, list[dict[str, Any]]] = {
    "ai-sdk": [
        {"type": "error", "errorText": AWAY}, {"type": "finish", "finishReason": "error"},
    ],
    "ag-ui": [{"type": "RUN_ERROR", "message": AWAY, "code": "unavailable"}],
    "plain": [
        {"kind": "failed", "reason": "transport", "error": AWAY, "retryable": True,
         "code": "unavailable"},
        {"kind": "end"},
    ],
}  # fmt: skip
LAST = {"ai-sdk": "[DONE]", "ag-ui": "RUN_FINISHED", "plain": '{"kind":"end"}'}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    redis = RedisServer(tmp_path, *DURABLE)
    yield redis
    redis.kill()


LONG, SHORT = 60.0, 0.3  # seconds of patience: nothing fails because the machine is busy


def gone(server: RedisServer, log: RedisLog, how: str = "stopped") -> None:
    """From now on Redis does not answer, and it is not waited for."""
    (server.pause if how == "stopped" else server.kill)()
    log._carriers.patience = SHORT


def back(server: RedisServer, log: RedisLog, how: str = "stopped") -> None:
    log._carriers.patience = LONG
    (server.go_on if how == "stopped" else server.start)()


class Loop:
    """Says one word, waits to be let on, and says the rest."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()

    async def __call__(self, chat: Any) -> AsyncIterator[Any]:
        yield StreamStart("anthropic")
        yield TextDelta("One, ")
        await self.go_on.wait()
        for word in ("two, ", "three."):
            yield TextDelta(word)
        yield Finish("stop")


@asynccontextmanager
async def served(loop: Any, log: EventLog, protocol: str) -> AsyncIterator[httpx.AsyncClient]:
    routes = chat_router(loop, owner=lambda request: "ann", protocol=protocol, log=log, within=0)
    transport = httpx.ASGITransport(Starlette(routes=list(routes.routes)))
    async with httpx.AsyncClient(transport=transport, base_url="http://chat") as http:
        yield http
        await routes.aclose()


def events_of(body: str) -> list[tuple[str | None, str]]:
    """Position and payload of each event."""
    out = []
    for block in body.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.split("\n") if line)
        if "data" in fields:
            out.append((fields.get("id"), fields["data"]))
    return out


def place(body: str) -> dict[str, str]:
    """The header with which a browser comes back."""
    ids = [line for line in body.split("\n") if line.startswith("id: ")]
    return {"last-event-id": ids[-1].removeprefix("id: ")}


def ours(told: list[tuple[str | None, str]]) -> list[dict[str, Any]]:
    """What is not of the log, but for the beginning of a message that had none."""
    parts = [json.loads(data) for at, data in told if at is None and data != "[DONE]"]
    return [part for part in parts if part != {"type": "start"}]


async def has_said(log: EventLog, word: str) -> str:
    """The stream of the chat, once it has this word."""
    while True:
        with_it = await log.active(owner="ann", chat="c1")
        if with_it is not None:
            page = await log._look(with_it, "ann", 0, 100)
            if any(word.encode() in entry.data for entry in page.entries):
                return with_it
        await anyio.lowlevel.checkpoint()


def payloads(count: int, start: int = 1) -> list[bytes]:
    return [b"payload %d" % n for n in range(start, start + count)]


async def all_of(log: EventLog, stream: str) -> list[bytes]:
    page = await log._look(stream, "ann", 0, 10_000)
    assert [entry.seq for entry in page.entries] == list(range(1, page.last + 1))
    return [entry.data for entry in page.entries]


# --- a page ---------------------------------------------------------------------------------------


@needs_server
@pytest.mark.parametrize("protocol", BODIES)
@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_page_hears_that_redis_is_gone_and_the_rest_when_it_is_back(
    how: str, protocol: str, server: RedisServer
) -> None:
    loop, bodies = Loop(), []
    async with (
        RedisLog(server.url, poll=0.05, patience=LONG) as log,
        served(loop, log, protocol) as http,
        anyio.create_task_group() as group,
    ):

        async def ask() -> None:
            bodies.append(await http.post("/api/chat", json=BODIES[protocol]))

        group.start_soon(ask)
        stream = await has_said(log, "One, ")
        gone(server, log, how)
        loop.go_on.set()
        while not bodies:
            await anyio.lowlevel.checkpoint()
        assert bodies[0].status_code == 200
        told = events_of(bodies[0].text)
        assert ours(told) == TOLD[protocol]
        other = BODIES[protocol] | {"id": "c2", "threadId": "c2"}
        refused = await http.post("/api/chat", json=other)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")

        back(server, log, how)
        heard = [(position, data) for position, data in told if position is not None]
        rest = await http.get("/api/chat/c1/stream", headers=place(bodies[0].text))
        heard += events_of(rest.text)
    assert [position for position, _ in heard] == [f"{stream}.{n + 1}" for n in range(len(heard))]
    words = [word for _, data in heard for word in ("One, ", "two, ", "three.") if word in data]
    assert words == ["One, ", "two, ", "three."]
    assert LAST[protocol] in heard[-1][1]


def failing_once(log: SQLiteLog) -> None:
    """The next look into the file fails; the one after it does not."""
    log._dbs[False].set_authorizer(lambda *_: sqlite3.SQLITE_DENY)


@pytest.mark.parametrize("protocol", BODIES)
async def test_any_log_that_fails_while_it_is_read_is_told_in_the_protocol(
    protocol: str, tmp_path: Path
) -> None:
    loop, bodies = Loop(), []
    async with (
        SQLiteLog(tmp_path / "log.db", poll=0.01) as log,
        served(loop, log, protocol) as http,
        anyio.create_task_group() as group,
    ):

        async def ask() -> None:
            bodies.append(await http.post("/api/chat", json=BODIES[protocol]))

        group.start_soon(ask)
        stream = await has_said(log, "One, ")
        failing_once(log)
        while not bodies:
            await anyio.lowlevel.checkpoint()
        told = events_of(bodies[0].text)
        assert ours(told) == TOLD[protocol]
        loop.go_on.set()
        positions = [at for at, _ in told if at is not None]
        headers = place(bodies[0].text)
        rest = events_of((await http.get("/api/chat/c1/stream", headers=headers)).text)
        numbers = [str(at).rpartition(".")[2] for at in (*positions, *(at for at, _ in rest))]
        assert numbers == [str(n + 1) for n in range(len(numbers))]
        assert LAST[protocol] in rest[-1][1]
        assert len(await all_of(log, stream)) == len(numbers)


@pytest.mark.parametrize("protocol", BODIES)
async def test_our_own_client_comes_back_by_itself(protocol: str, tmp_path: Path) -> None:
    loop, waits = Loop(), []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    async with (
        SQLiteLog(tmp_path / "log.db", poll=0.01) as log,
        served(loop, log, protocol) as http,
        anyio.create_task_group() as group,
    ):

        async def somebody_waits() -> None:
            while not any(bell.seen for bell in log._bells.values()):
                await anyio.lowlevel.checkpoint()

        async def fail_later() -> None:
            await has_said(log, "One, ")
            await somebody_waits()
            failing_once(log)
            while not waits:
                await anyio.lowlevel.checkpoint()
            await somebody_waits()
            loop.go_on.set()

        group.start_soon(fail_later)
        url, body = "http://chat/api/chat", BODIES[protocol]
        async with follow(url, json=body, client=http, wait=wait) as events:
            told = [json.dumps(getattr(e, "text", e), default=str) async for e in events]
    assert len(waits) == 1
    for word in ("One, ", "two, ", "three."):
        assert sum(word in said for said in told) == 1


@pytest.mark.parametrize("name", ["half \ud800", "x" * 513], ids=["half", "long"])
async def test_a_name_that_cannot_be_kept_is_refused_and_not_a_crash(name: str) -> None:
    routes = chat_router(Loop(), owner=lambda request: name).routes
    transport = httpx.ASGITransport(Starlette(routes=list(routes)))
    async with httpx.AsyncClient(transport=transport, base_url="http://chat") as http:
        for answer in (
            await http.post("/api/chat", json=BODIES["ai-sdk"]),
            await http.get("/api/chat/c1/stream"),
            await http.post("/api/chat/c1/stop"),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "bad_owner")


@pytest.mark.parametrize("protocol", BODIES)
async def test_a_model_that_says_those_words_is_heard(protocol: str) -> None:
    async def loop(chat: Any) -> AsyncIterator[Any]:
        for event in (StreamStart("anthropic"), TextDelta(AWAY), Finish("stop")):
            yield event

    async with (
        served(loop, MemoryLog(), protocol) as http,
        follow("http://chat/api/chat", json=BODIES[protocol], client=http) as events,
    ):
        told = [event async for event in events]
    assert sum(AWAY in repr(event) for event in told) == 1


async def test_an_answer_waits_for_its_log(tmp_path: Path) -> None:
    """The disk is full, and then it is not: nothing of the answer is lost, nothing is told twice."""
    loop = Loop()
    async with SQLiteLog(tmp_path / "log.db") as log, served(loop, log, "plain") as http:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: http.post("/api/chat", json=BODIES["plain"]))
            stream = await has_said(log, "One, ")
            deny = log._dbs[True]
            deny.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
            loop.go_on.set()
            with anyio.fail_after(30):
                while b"end" not in (await all_of(log, stream))[-1]:
                    await anyio.lowlevel.checkpoint()
        told = b"".join(await all_of(log, stream))
    assert log._dbs.get(True) is not deny
    assert [told.count(word) for word in (b"One, ", b"two, ", b"three.")] == [1, 1, 1]


# --- readers and producers ------------------------------------------------------------------------


@needs_server
async def test_readers_that_wait_hear_of_it_all_of_them(server: RedisServer) -> None:
    heard: list[int] = []
    async with RedisLog(server.url, poll=0.05, patience=LONG) as log:
        writers = [await log.create(owner="ann") for _ in range(5)]

        async def read(number: int, writer: Writer) -> None:
            with pytest.raises(LogUnavailable, match="does not answer"):
                await log.read(writer.stream, owner="ann").page()
            heard.append(number)

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(read, number, writers[number % 5])
            while len(log._bells) < 5:
                await anyio.lowlevel.checkpoint()
            gone(server, log)
        back(server, log)
    assert sorted(heard) == list(range(50))


@needs_server
async def test_who_could_not_renew_his_lease_is_not_taken_for_dead(server: RedisServer) -> None:
    async with RedisLog(server.url, lease=0.2, poll=0.05, patience=LONG) as log:
        writer = await log.create(owner="ann", chat="c")
        reader = log.read(writer.stream, owner="ann")
        gone(server, log)
        with pytest.raises(LogUnavailable):
            await log.check()
        back(server, log)
        assert await log.active(owner="ann", chat="c") == writer.stream
        assert await reader.page(within=0) is None
        await writer.append([b"x"])
        assert [entry.data for entry in await reader.page() or ()] == [b"x"]
    async with RedisLog(
        server.url, lease=0.2, poll=0.05, patience=LONG
    ) as log:  # of another process, that saw nothing
        with pytest.raises(ProducerLost):
            await log.read(writer.stream, owner="ann", after=1).page()


@needs_server
async def test_no_answer_is_taken_for_that_of_another(server: RedisServer) -> None:
    """Requests that nobody answered in time, and those after them, over the same few connections."""
    async with RedisLog(server.url, lease=60, patience=LONG) as log:
        writers = [await log.create(owner="ann") for _ in range(40)]
        refused: list[int] = []

        async def append(number: int) -> None:
            try:
                await writers[number].append([b"%d" % number])
            except LogUnavailable:
                refused.append(number)

        for _ in range(3):
            gone(server, log)
            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(append, number)
            back(server, log)
        assert len(refused) == 120
        for number, writer in enumerate(writers):
            await writer.append([b"%d" % number])
            assert await all_of(log, writer.stream) == [b"%d" % number]
        clients = await log._redis.client_list()
        assert len([c for c in clients if c["name"] == ""]) <= 4


@needs_server
async def test_who_asks_and_goes_away_spoils_nothing(server: RedisServer) -> None:
    async with RedisLog(server.url, lease=60, patience=LONG) as log:
        writers = [await log.create(owner="ann") for _ in range(10)]
        for step in range(12):
            tasks = [asyncio.create_task(w.append([b"%d" % step])) for w in writers]
            for _ in range(step):
                await asyncio.sleep(0)
            for task in tasks[step % 3 :: 3]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in writers:
                await writer.append([b"then %d" % step])
        for writer in writers:
            told = await all_of(log, writer.stream)
            then = [data for data in told if data.startswith(b"then")]
            assert then == [b"then %d" % step for step in range(12)]
            assert len(set(told)) == len(told)


@needs_server
async def test_a_redis_that_has_forgotten_the_scripts_is_told_them(server: RedisServer) -> None:
    async with RedisLog(server.url, patience=LONG) as log:
        writer = await log.create(owner="ann")
        for payload in payloads(5):
            await log._redis.script_flush()
            await writer.append([payload])
        assert await all_of(log, writer.stream) == payloads(5)


# --- what is no Redis for a log -------------------------------------------------------------------


@needs_server
async def test_a_cluster_is_refused_with_a_sentence(tmp_path: Path) -> None:
    node = RedisServer(tmp_path, *DURABLE, "--cluster-enabled", "yes")
    try:
        async with RedisLog(node.url, patience=LONG) as log:
            for ask in (log.create(owner="ann"), log.streams(owner="ann", chat="c"), log.check()):
                with pytest.raises(
                    LogUnavailable, match=r"a node of a cluster.*cluster-enabled no"
                ):
                    await ask
    finally:
        node.kill()


@needs_server
async def test_a_sentinel_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "sentinel.conf").write_text("")
    sentinel = RedisServer(tmp_path, config=tmp_path / "sentinel.conf")
    try:
        async with RedisLog(sentinel.url, patience=LONG) as log:
            with pytest.raises(LogUnavailable, match=r"this is a Sentinel.*address of the Redis"):
                await log.create(owner="ann")
    finally:
        sentinel.kill()


# --- a line that loses replies --------------------------------------------------------------------


class Line:
    """Between a client and a Redis. While ``drops``, what Redis answers does not arrive: the connection
    is cut, or as if it were still coming (``silent``)."""

    def __init__(self, port: int, *, silent: bool) -> None:
        self._port, self._silent = port, silent
        self.drops: Callable[[bytes], bool] = lambda request: False
        self.dropped = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Line:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:  # a client may have left a connection that is silent
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        far, there = await asyncio.open_connection("127.0.0.1", self._port)
        drops = False

        async def forth() -> None:
            nonlocal drops
            while data := await near.read(65536):
                drops = self.drops(data)
                there.write(data)
            there.close()

        task = asyncio.create_task(forth())
        try:
            while data := await far.read(65536):
                if not drops:
                    back.write(data)
                    continue
                self.dropped += 1
                if not self._silent:
                    break
        except ConnectionError:
            pass
        finally:
            task.cancel()
            back.close()
            there.close()


@needs_server
@pytest.mark.parametrize("silent", [False, True], ids=["cut", "silent"])
async def test_an_append_whose_reply_is_lost_is_done_again_and_kept_once(
    silent: bool, server: RedisServer
) -> None:
    async with (
        Line(server.port, silent=silent) as line,
        RedisLog(server.url, patience=LONG) as direct,
        RedisLog(line.url, lease=60, patience=LONG) as log,
    ):
        writer = await direct.create(owner="ann")  # Redis is there
        writer = await log.create(owner="ann")
        log._carriers.patience = SHORT if silent else LONG
        asked = 0

        def every_third(request: bytes) -> bool:
            nonlocal asked
            asked += b"payload" in request
            return b"payload" in request and asked % 3 == 0

        line.drops = every_third
        for payload in payloads(30):
            while True:
                try:
                    await writer.append([payload])
                    break
                except LogUnavailable:
                    assert silent
        line.drops = lambda request: False
        log._carriers.patience = LONG
        await writer.close([b"end"])
        assert line.dropped >= 10
        assert await all_of(direct, writer.stream) == [*payloads(30), b"end"]


@needs_server
async def test_who_goes_on_after_a_lost_reply_loses_nothing_either(server: RedisServer) -> None:
    """The producer does not know whether it was kept, and says something else."""
    async with (
        Line(server.port, silent=True) as line,
        RedisLog(server.url, patience=LONG) as direct,
        RedisLog(line.url, lease=60, patience=LONG) as log,
    ):
        await direct.create(owner="ann")
        writer = await log.create(owner="ann")
        line.drops = lambda request: b"payload" in request
        log._carriers.patience = SHORT
        with pytest.raises(LogUnavailable):
            await writer.append([b"payload 1"])
        line.drops = lambda request: False
        log._carriers.patience = LONG
        await writer.beat()
        await writer.append([b"two"])
        await writer.close([b"three"])
        assert await all_of(direct, writer.stream) == [b"payload 1", b"two", b"three"]


@needs_server
async def test_a_new_stream_whose_reply_is_lost_is_not_busy_with_itself(
    server: RedisServer,
) -> None:
    async with (
        Line(server.port, silent=False) as line,
        RedisLog(server.url, patience=LONG) as direct,
        RedisLog(line.url, patience=LONG) as log,
    ):
        await direct.create(owner="ann")
        await log.check()
        await log.create(owner="ann", chat="first")
        lost = iter([True])
        line.drops = lambda request: b"EVALSHA" in request and next(lost, False)
        writer = await log.create(owner="ann", chat="c")
        assert line.dropped == 1
        assert await direct.streams(owner="ann", chat="c") == [writer.stream]


@needs_server
async def test_a_crowd_that_asks_waits_for_a_redis_that_is_gone_no_longer_than_one(
    server: RedisServer,
) -> None:
    """What three connections carry at once is 192: one batch after the other would take 20 s."""
    told = []
    async with RedisLog(server.url, patience=LONG) as log:
        await log.check()
        server.pause()
        log._carriers.patience = 1.0

        async def ask() -> None:
            with pytest.raises(LogUnavailable):
                await log.check()
            told.append("unavailable")

        with anyio.fail_after(12):
            async with anyio.create_task_group() as group:
                for _ in range(4000):
                    group.start_soon(ask)
        server.go_on()
    assert len(told) == 4000


# --- what rings -----------------------------------------------------------------------------------


@needs_server
@pytest.mark.parametrize("prefix", ["app[1]", "what?*", "back\\slash", "plain"])
async def test_readers_are_rung_whatever_the_prefix_is_and_whoever_calls(
    prefix: str, server: RedisServer
) -> None:
    """Nobody looks by himself here: without a ring it would be minutes."""
    async with RedisLog(server.url, prefix=prefix, lease=999, poll=999, patience=LONG) as log:
        writer = await log.create(owner="ann")
        await writer.append(payloads(1))
        reader = log.read(writer.stream, owner="ann")
        assert len(await reader.page() or ()) == 1
        while not await log._redis.pubsub_numpat():
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(reader.page)
                while log._lookout is None:  # it waits
                    await anyio.lowlevel.checkpoint()
                assert await log._redis.publish(f"{prefix}:bell:".encode() + b"\xff", 1)
                await writer.append(payloads(1, 2))
        assert reader.after == 2
