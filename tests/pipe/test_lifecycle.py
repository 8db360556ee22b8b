"""Nothing leaks: connections, tasks and warnings, over hundreds of streams that end in every way.

``python -X dev -W error::ResourceWarning -m tests.pipe.test_lifecycle 100`` runs the same cycles alone.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest

from streamnorm.captures import read_take
from streamnorm.edge.connect import connect
from streamnorm.edge.replay import replay
from streamnorm.edge.stream import Stream, normalize
from streamnorm.errors import ProviderError
from streamnorm.events import Event
from tests.conftest import ROOT, Chat, run, take_paths
from tests.edge.servers import Answer, Provider, Request

HALF = Chat.call(0, "call_1", "get_weather", '{"city":')
WHOLE = HALF + Chat.call(0, None, None, '"Oslo"}') + Chat.end()


def answer(request: Request) -> Answer:
    """The last word of the path says how."""
    how = request.path.rpartition("/")[2]
    if how == "endless":
        return Answer(endless(), then="hang")
    if how == "refuse":
        return Answer([b'{"error":{"message":"no"}}'], status=400)
    return Answer([WHOLE if how == "end" else HALF], then=how)


def endless() -> Iterator[bytes]:
    return (Chat.text("a") for _ in itertools.count())


# --- the ways to end ------------------------------------------------------------------------------

Way = Callable[[Any, str], Awaitable[None]]


async def read_to_the_end(client: Any, url: str) -> None:
    async with _stream(client, url + "/end") as stream:
        assert (await _kinds(stream))["finish"] == 1


async def leave_the_scope(client: Any, url: str) -> None:
    async with _stream(client, url + "/endless") as stream:
        async for _ in stream:
            break


async def fail_in_the_loop(client: Any, url: str) -> None:
    try:
        async with _stream(client, url + "/endless") as stream:
            async for _ in stream:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass


async def be_cancelled(client: Any, url: str) -> None:
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in _stream(client, url + "/hang"):
            begun.set()

    task = asyncio.ensure_future(read())
    await begun.wait()
    task.cancel()
    assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], BaseException)


async def be_cancelled_by_a_scope(client: Any, url: str) -> None:
    with anyio.CancelScope() as scope:
        async for _ in _stream(client, url + "/hang"):
            scope.cancel()
    assert scope.cancelled_caught


async def be_closed_by_another_task(client: Any, url: str) -> None:
    stream = _stream(client, url + "/hang")
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in stream:
            begun.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await begun.wait()
        await stream.aclose()


async def be_reset(client: Any, url: str) -> None:
    assert (await _kinds(_stream(client, url + "/reset")))["failed"] == 1


async def be_cut(client: Any, url: str) -> None:
    assert (await _kinds(_stream(client, url + "/cut")))["failed"] == 1


async def wait_too_long(client: Any, url: str) -> None:
    assert (await _kinds(_stream(client, url + "/hang", idle=0.001)))["failed"] == 1


async def be_refused(client: Any, url: str) -> None:
    with pytest.raises(ProviderError):
        await _kinds(_stream(client, url + "/refuse"))


WAYS: list[Way] = [
    read_to_the_end, leave_the_scope, fail_in_the_loop, be_cancelled, be_cancelled_by_a_scope,
    be_closed_by_another_task, be_reset, be_cut, wait_too_long, be_refused,
]  # fmt: skip


def _stream(client: Any, url: str, **options: Any) -> Stream:
    return connect(url, provider="openai_chat", json={}, client=client, retries=0, **options)


async def _kinds(stream: Stream) -> Counter[str]:
    return Counter([event.kind async for event in stream])


async def cycles(n: int, library: Any = httpx) -> list[float]:
    """Every way, again and again; how long it took each time until nothing was open."""
    times = []
    with Provider(answer) as server:
        limits = library.Limits(max_keepalive_connections=0)  # a kept connection is an open one
        async with library.AsyncClient(limits=limits) as client:
            for _, way in zip(range(n), itertools.cycle(WAYS), strict=False):
                await way(client, server.url)
                times.append(await anyio.to_thread.run_sync(server.wait_closed, 5.0))
                others = asyncio.all_tasks() - {asyncio.current_task()}
                assert not others, f"{way.__name__} leaves {others}"
        assert server.open == 0
    return times


def in_time(times: list[float]) -> bool:
    """The promise is 250 ms; one in twenty may be late on a machine that does other things."""
    return sorted(times)[int(len(times) * 0.95)] < 0.25


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_five_hundred_cycles_leave_nothing_open(library):
    n = 500 if library == "httpx" else 100
    times = await cycles(n, pytest.importorskip(library))
    assert len(times) == n
    assert in_time(times), sorted(times)[-20:]


async def test_cycles_of_aiohttp_leave_nothing_open():
    aiohttp = pytest.importorskip("aiohttp")
    times = []
    with Provider(answer) as server:
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            for how in ("end", "endless", "hang", "cut", "reset") * 10:
                response = await session.post(f"{server.url}/{how}")
                async with normalize(response, "openai_chat", idle=0.05) as stream:
                    async for _ in stream:
                        if how == "endless":
                            break
                times.append(await anyio.to_thread.run_sync(server.wait_closed, 5.0))
    assert in_time(times)


def test_cycles_of_blocking_streams_leave_nothing_open():
    with Provider(answer) as server:
        limits = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(limits=limits) as client:
            for how in ("end", "endless", "cut", "reset") * 10:
                request = client.build_request("POST", f"{server.url}/{how}")
                response = client.send(request, stream=True)
                with normalize(response, "openai_chat") as stream:
                    for _ in stream:
                        if how == "endless":
                            break
                server.wait_closed(5)


def test_cycles_on_trio_leave_nothing_open():
    pytest.importorskip("trio")
    ways = [read_to_the_end, leave_the_scope, fail_in_the_loop, be_cancelled_by_a_scope,
            be_reset, be_cut, wait_too_long, be_refused]  # fmt: skip

    async def job() -> None:
        with Provider(answer) as server:
            limits = httpx.Limits(max_keepalive_connections=0)
            async with httpx.AsyncClient(limits=limits) as client:
                for way in ways * 5:
                    await way(client, server.url)
                    await anyio.to_thread.run_sync(server.wait_closed, 5.0)

    anyio.run(job, backend="trio")


async def test_what_is_dropped_is_closed_within_a_second():
    with Provider(answer) as server:
        async with httpx.AsyncClient() as client:
            for _ in range(10):
                with pytest.warns(ResourceWarning):
                    await _read_one(_stream(client, server.url + "/endless"))
                assert await anyio.to_thread.run_sync(server.wait_closed, 5.0) < 1


async def _read_one(stream: Stream) -> None:
    async for _ in stream:
        break


def test_the_cycles_are_clean_in_development_mode():
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-m", "tests.pipe.test_lifecycle",
         "60"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    bad = ("ResourceWarning", "never retrieved", "destroyed", "Exception ignored", "Traceback")
    assert not [word for word in bad if word in done.stderr], done.stderr
    assert done.stdout.strip() == "60 cycles"


async def test_a_thousand_streams_at_once_are_all_right():
    takes = [read_take(path) for path in take_paths()]
    wanted = [run(take.provider or "auto", [take.wire], seed=take.seed) for take in takes]
    heard: dict[int, list[Event]] = {}

    async def read(n: int) -> None:
        heard[n] = [event async for event in replay(takes[n % len(takes)], chunking=64)]

    async with anyio.create_task_group() as group:
        for n in range(1000):
            group.start_soon(read, n)
    assert [n for n in range(1000) if heard[n] != wanted[n % len(takes)]] == []


if __name__ == "__main__":
    asyncio.run(cycles(int(sys.argv[1])))
    print(f"{sys.argv[1]} cycles")
