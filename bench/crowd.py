"""A crowd: thousands of streams open at once in one event loop in, CPU and memory of each out.

The server begins when all are open, and then tells each an event three times a second, but never one
before the one before it was read: whoever lags would find several at once, and look the cheaper for it.
Connecting is over by then and not counted. Four wires, mixed; every stream's text and call are compared. What a
stream holds is traced (``tracemalloc``) over streams that are open and have told nothing yet but
their first event: first with httpx alone, then with a ``Stream`` around each.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import cycle, islice
from typing import Any

from bench import workloads
from bench.crew import Crew
from bench.judge import Heard, judge
from bench.readers import BARE, OURS, PATHS, SSE, heard_from
from bench.report import Options, Section, number, table
from bench.server import RATE
from bench.workloads import WIRES

__all__ = ["PER_CLIENT", "hold", "read_all", "run"]

STREAMS = 2_000
HELD = 400  # streams whose memory is traced
PER_CLIENT = 100  # what one httpx client allows; its pool is slow with more
WORKLOAD = "CROWD"
OF_BARE = 1.25


def run(options: Options) -> Section:
    section = Section("A crowd: streams open at once in one event loop")
    streams, rounds = STREAMS, 1 if options.quick else 3
    best: dict[str, float] = {}
    whole: dict[str, float] = {}
    with Crew(peers=False) as crew:
        turns = [name for _ in range(rounds) for name in (BARE, OURS, SSE)]
        for done, name in enumerate(turns):
            options.tick(done, len(turns) + 1, f"{streams:,} streams, {name}")
            answer = _asked(crew, name, job="crowd", streams=streams)
            section.wrong += [f"crowd, {name}: {what}" for what in answer["wrong"]]
            best[name] = min(best.get(name, 1e9), answer["reading"])
            whole[name] = min(whole.get(name, 1e9), answer["whole"])
        options.tick(len(turns), len(turns) + 1, "memory")
        held = _asked(crew, OURS, job="holding", streams=HELD)
    events = streams * sum(workloads.build(wire, WORKLOAD).events for wire in WIRES) / len(WIRES)
    ratio = best[OURS] / best[BARE]
    section.figure(f"{streams:,} streams: times bare httpx", ratio, bar=OF_BARE)
    section.figure("streams with connecting: times bare httpx", whole[OURS] / whole[BARE])
    section.figure("held by an open Stream", held["ours"] / 1024, "KiB")
    section.data = {
        "streams": streams, "events": events, "reading": best, "with_connecting": whole,
        "bytes_per_stream": held,
    }  # fmt: skip
    rows = [
        [name, number(best[name] / events * 1e6), f"{number(best[name] / best[BARE])} x",
         f"{number(whole[name] / whole[BARE])} x"]
        for name in best
    ]  # fmt: skip
    section.lines = [
        f"{streams:,} streams, all open before the first event, each then told an event every"
        f" {streams / RATE:.1f} s.",
        "",
        table(["reader", "CPU µs/event", "times bare", "with connecting"], rows),
        "",
        f"An open httpx response holds {number(held['httpx'] / 1024)} KiB, the `Stream` around it"
        f" {number(held['ours'] / 1024)} KiB more.",
    ]
    return section


def _asked(crew: Crew, name: str, **job: Any) -> dict[str, Any]:
    answer = crew.ask(name, **job)
    if answer is None or "error" in answer:
        raise RuntimeError(f"crowd, {name}: {crew.left_out.get(name) or answer}")
    return answer


# In the process that reads.


async def read_all(base: str, contender: str, streams: int) -> dict[str, Any]:
    """CPU seconds from the moment that all are open, and of everything; and what is wrong."""
    import httpx

    truth = {wire: workloads.build(wire, WORKLOAD) for wire in WIRES}
    wires = list(islice(cycle(WIRES), streams))
    marks: list[float] = []
    left = streams

    def opened() -> None:
        nonlocal left
        left -= 1
        if not left:
            marks.append(time.process_time())

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(verify=False, timeout=600))
            for _ in range(-(-streams // PER_CLIENT))
        ]
        gc.collect()
        start = time.process_time()
        jobs = [
            _one(clients[n // PER_CLIENT], _address(base, wire, streams), wire, contender, opened)
            for n, wire in enumerate(wires)
        ]
        heard = await asyncio.gather(*jobs)
        end = time.process_time()
    wrong = [
        what
        for wire, one in zip(wires, heard, strict=True)
        if one is not None
        for what in judge(truth[wire], one)
    ]
    return {"reading": end - marks[0], "whole": end - start, "wrong": wrong[:3]}


def _address(base: str, wire: str, streams: int) -> str:
    return f"{base}/crowd-{streams}/{wire}/{WORKLOAD}{PATHS[wire]}"


async def _one(
    client: Any, url: str, wire: str, contender: str, opened: Callable[[], None]
) -> Heard | None:
    async with client.stream("POST", url) as response:
        opened()
        return await _READ[contender](response, wire)


async def _bare(response: Any, wire: str) -> None:
    async for _ in response.aiter_bytes():
        pass


async def _sse(response: Any, wire: str) -> None:
    import orjson
    from httpx_sse import EventSource

    async for event in EventSource(response).aiter_sse():
        if event.data != "[DONE]":
            orjson.loads(event.data)


_READ: dict[str, Callable[[Any, str], Awaitable[Heard | None]]] = {
    BARE: _bare,
    SSE: _sse,
    OURS: heard_from,
}


async def hold(base: str, contender: str, streams: int) -> dict[str, Any]:
    """Bytes held by an open response of httpx, and by the ``Stream`` around it."""
    import httpx

    from streamnorm import normalize

    wires = list(islice(cycle(WIRES), streams))
    await read_all(base, OURS, 4)  # everything that is imported or cached once
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(verify=False, timeout=600))
            for _ in range(-(-streams // PER_CLIENT))
        ]
        gc.collect()
        tracemalloc.start()
        before = _traced()
        responses = []
        for n, wire in enumerate(wires):
            # A crowd that never becomes complete: it is told nothing.
            url = _address(base, wire, streams + 1)
            request = clients[n // PER_CLIENT].stream("POST", url)
            responses.append(await stack.enter_async_context(request))
        opened = _traced()
        wrapped = [normalize(response) for response in responses]
        reads = [asyncio.ensure_future(anext(stream)) for stream in wrapped]
        await asyncio.sleep(0.1)
        ended = _traced()
        tracemalloc.stop()
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        for stream in wrapped:
            await stream.aclose()
    return {"httpx": (opened - before) / streams, "ours": (ended - opened) / streams}


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
