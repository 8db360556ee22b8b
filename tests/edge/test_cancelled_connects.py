"""A connect that is cancelled, at any step of it, leaves nothing open in the client that was given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from streamnorm import connect

PIECE = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
STEPS = 60  # of the event loop: by then the whole answer is there


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer, in pieces."""
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        writer.write(b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(3):
            writer.write(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions"
    server.close()


async def read(url: str, client: httpx.AsyncClient | None) -> str:
    async with connect(url, json={}, client=client, retries=0) as stream:
        async for _ in stream:
            pass
    assert stream.end is not None
    return stream.end.kind


async def by_asyncio(job: Any, steps: int) -> str:
    task = asyncio.create_task(job)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return str(await task)
    except asyncio.CancelledError:
        return "cancelled"


async def by_a_scope(job: Any, steps: int) -> str:
    scope, said = anyio.CancelScope(), "cancelled"

    async def run() -> None:
        nonlocal said
        with scope:
            said = await job

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for _ in range(steps):
            await asyncio.sleep(0)
        scope.cancel()
    return said


async def by_wait_for(job: Any, steps: int) -> str:
    try:
        return str(await asyncio.wait_for(job, steps / 20_000))
    except TimeoutError:
        return "cancelled"


@pytest.mark.parametrize(
    "cancelled", [by_asyncio, by_a_scope, by_wait_for], ids=lambda f: f.__name__
)
def test_nothing_stays_open_in_a_client_that_goes_on(cancelled: Any) -> None:
    async def main() -> None:
        said = set()
        async with served() as url, httpx.AsyncClient() as client:
            pool = client._transport._pool  # type: ignore[attr-defined]
            for steps in [*range(STEPS)] * 3:
                said.add(await cancelled(read(url, client), steps))
                open_ones = [c for c in pool.connections if not (c.is_idle() or c.is_closed())]
                assert (steps, open_ones, pool._requests) == (steps, [], [])
            assert "cancelled" in said
            assert await read(url, client) in ("finish", "failed")  # it is as good as new

    asyncio.run(main())


def test_a_task_is_left_behind_by_none_of_it() -> None:
    async def main() -> None:
        async with served() as url, httpx.AsyncClient() as client:
            before = asyncio.all_tasks()
            for steps in range(STEPS):
                await by_asyncio(read(url, client if steps % 2 else None), steps)
            ours = [t for t in asyncio.all_tasks() - before if "answer" not in repr(t)]
            assert ours == []

    asyncio.run(main())


class Slow(httpx.AsyncBaseTransport):
    """Answers at once. What it gives takes its time to be closed."""

    def __init__(self) -> None:
        self.closing, self.may_end = asyncio.Event(), asyncio.Event()
        self.closed = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=SlowBody(self))


class SlowBody(httpx.AsyncByteStream):
    def __init__(self, transport: Slow) -> None:
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield PIECE

    async def aclose(self) -> None:
        self._transport.closing.set()
        await self._transport.may_end.wait()
        self._transport.closed += 1


def test_what_is_being_closed_is_closed_to_its_end_though_its_reader_is_cancelled() -> None:
    async def main() -> None:
        transport = Slow()
        async with httpx.AsyncClient(transport=transport) as client:
            task = asyncio.create_task(read("http://x.example/v1/chat/completions", client))
            await transport.closing.wait()
            task.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            transport.may_end.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert transport.closed == 1

    asyncio.run(main())
