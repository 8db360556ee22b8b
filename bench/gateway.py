"""The gateway: CPU and latency that it adds to a stream, held against handing bytes on.

A server, something in between, and a client, each in a process of its own. In between stands what hands
bytes on with httpx and Starlette and does nothing else, then our gateway: once with the client's own
wire behind it, once with another. CPU is that of the process in between. Latency: the server writes the
time into each event; what is added is more than the client hears it later than without anything between.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from bench.crowd import PER_CLIENT
from bench.latency import percentile
from bench.readers import PATHS
from bench.report import Options, Section, number, table

__all__ = ["run"]

WIRE, OTHER = "anthropic", "openai_chat"
STREAMS, AT_ONCE = 40, 8
CROWD = 500
LATE, CPU = 2000.0, 1.5  # the bars: µs, times what hands bytes on
_STAMP = re.compile(rb"\d{20}")
BODY = {"max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
KINDS = {
    "handing on": ("passing", WIRE), "gateway, one wire": ("gateway", WIRE),
    "gateway, another wire": ("gateway", OTHER),
}  # fmt: skip


def run(options: Options) -> Section:
    section = Section("The gateway: what it adds to a stream")
    rounds = 2 if options.quick else 5
    seen: dict[str, dict[str, float]] = {name: {} for name in KINDS}
    with _serving("bench.server") as port, _serving("bench.front", "passing", port) as plain, _serving(
        "bench.front", "gateway", port
    ) as ours:  # fmt: skip
        fronts = {"passing": plain, "gateway": ours}
        direct = 1e9
        for done in range(rounds):
            options.tick(done, rounds, "latency and CPU")
            direct = min(direct, asyncio.run(_late(f"{port}", None, WIRE)))
            for name, (kind, wire) in KINDS.items():
                round_ = asyncio.run(_measured(fronts[kind], kind, wire))
                before = seen[name] or round_
                seen[name] = {key: min(v, before[key]) for key, v in round_.items()}
        for name, (kind, wire) in KINDS.items():
            options.tick(rounds, rounds, f"{CROWD} streams, {name}")
            seen[name]["crowd"] = asyncio.run(_crowd(fronts[kind], kind, wire, section))
    base = seen["handing on"]
    for name in list(KINDS)[1:]:
        one, bar = seen[name], CPU if name == "gateway, one wire" else None
        section.figure(f"{name}: p50 added", one["late"] - direct, "µs", LATE)
        section.figure(f"{name}, text: times handing on", one["W1"] / base["W1"], bar=bar)
        section.figure(f"{name}, tools: times handing on", one["W2"] / base["W2"], bar=bar)
        section.figure(
            f"{name}, {CROWD} at once: times handing on", one["crowd"] / base["crowd"], bar=bar
        )
    section.data = {"direct_p50": direct, **seen}
    rows = [
        [name, number(one["late"] - direct), number(one["W1"] * 1e3), number(one["W2"] * 1e3),
         number(one["crowd"] / CROWD * 1e3), f"{number(one['W1'] / base['W1'])} x",
         f"{number(one['W2'] / base['W2'])} x", f"{number(one['crowd'] / base['crowd'])} x"]
        for name, one in seen.items()
    ]  # fmt: skip
    head = ["between", "p50 added µs", "text ms", "tools ms", "crowd ms", "text", "tools", "crowd"]
    section.lines = [
        f"CPU ms of the process in between for one stream of 2,000 events, {AT_ONCE} at a time, and of"
        f" {CROWD} that are open at once; the best of {rounds} rounds.",
        "",
        table(head, rows),
    ]
    return section


@contextmanager
def _serving(module: str, *arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(30)


def _address(
    port: str, kind: str | None, wire: str, way: str, name: str
) -> tuple[str, dict[str, Any]]:
    if kind == "gateway":
        return f"http://127.0.0.1:{port}{PATHS[WIRE]}", {**BODY, "model": f"{way}.{wire}.{name}/m"}
    path = f"/{way}/{wire}/{name}" + (PATHS[wire] if kind is None else "")
    return f"http://127.0.0.1:{port}{path}", {**BODY, "model": "m"}


async def _measured(port: str, kind: str, wire: str) -> dict[str, float]:
    found = {"late": await _late(port, kind, wire)}
    for workload in ("W1", "W2"):
        found[workload] = await _cpu(port, kind, wire, workload)
    return found


async def _late(port: str, kind: str | None, wire: str) -> float:
    """µs from the server's write to the client, at the middle."""
    import httpx

    url, body = _address(port, kind, wire, "paced", "STAMP-500")
    waits: list[float] = []
    async with (
        httpx.AsyncClient(verify=False, timeout=600) as client,
        client.stream("POST", url, json=body) as response,
    ):
        async for chunk in response.aiter_raw():
            now = time.monotonic_ns()
            waits += [(now - int(stamp)) / 1000 for stamp in _STAMP.findall(chunk)[:1]]
    return percentile(waits[50:450], 50)


async def _cpu(port: str, kind: str, wire: str, name: str) -> float:
    """CPU seconds of the process in between for one stream."""
    import httpx

    url, body = _address(port, kind, wire, "event", name)
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(client: Any) -> None:
        async with limit, client.stream("POST", url, json=body) as response:
            async for _ in response.aiter_raw():
                continue

    async with httpx.AsyncClient(verify=False, timeout=600) as client:
        await one(client)
        before = float((await client.get(f"http://127.0.0.1:{port}/cpu")).text)
        await asyncio.gather(*(one(client) for _ in range(STREAMS)))
        after = float((await client.get(f"http://127.0.0.1:{port}/cpu")).text)
    return (after - before) / STREAMS


async def _crowd(port: str, kind: str, wire: str, section: Section) -> float:
    """CPU seconds of the process in between for a crowd; all of it must arrive."""
    import httpx

    url, body = _address(port, kind, wire, f"crowd-{CROWD}", "CROWD")

    async def one(client: Any) -> bytes:
        async with client.stream("POST", url, json=body) as response:
            return b"".join([chunk async for chunk in response.aiter_raw()])

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(verify=False, timeout=600))
            for _ in range(CROWD // PER_CLIENT)
        ]
        before = float((await clients[0].get(f"http://127.0.0.1:{port}/cpu")).text)
        bodies = await asyncio.gather(*(one(clients[n // PER_CLIENT]) for n in range(CROWD)))
        after = float((await clients[0].get(f"http://127.0.0.1:{port}/cpu")).text)
    end = b"message_stop" if kind == "gateway" or wire == WIRE else b"[DONE]"
    broken = sum(end not in said or b'"error"' in said for said in bodies)
    if broken:
        section.wrong.append(f"gateway, {kind}, {wire}: {broken} of {CROWD} streams are not whole")
    return after - before
