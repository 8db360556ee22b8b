"""Streams: recorded takes in, thousands of streams read at once in one event loop out.

Every stream is opened and read to its first event, so that all are open together; what they hold
then is the memory per stream. Then all are read to their ends, round and round, and each must have
said what the pipe says about the same bytes.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

from bench.report import Options, Section, table
from streamnorm.edge.replay import replay
from streamnorm.edge.stream import Stream
from streamnorm.events import Event
from streamnorm.normalizer import Normalizer
from streamnorm.takes.format import Take, read_take

ROOT = Path(__file__).resolve().parent.parent
MANY, FEW = 10_000, 1_000
CHUNK = 256  # bytes: a few events
TAKES = ("anthropic", "openai_chat", "openai_responses", "gemini")
BAR_KIB = 64.0  # held by one open stream


def run(options: Options) -> Section:
    section = Section("Streams read at once in one event loop")
    many = FEW if options.quick else MANY
    takes = [_take(provider) for provider in TAKES]
    wanted = [_events(take) for take in takes]
    rows = []
    for n in sorted({FEW, many}):
        opened, held = asyncio.run(_memory(takes, n))
        seconds, right = asyncio.run(_time(takes, wanted, n))
        if right != n:
            section.wrong.append(f"streams: {n - right} of {n} are not what the pipe says")
        heard = sum(len(wanted[i % len(takes)]) for i in range(n))
        verdict = section.bar(f"{n} streams, KiB each", held / n / 1024, BAR_KIB)
        section.data[str(n)] = {
            "right": right, "seconds": seconds, "events_per_second": heard / seconds,
            "bytes_per_stream": held / n, "open_at_once": opened,
        }  # fmt: skip
        rows.append([f"{n:,}", f"{right:,}", f"{n / seconds:,.0f}", f"{heard / seconds:,.0f}",
                     f"{held / n / 1024:.1f} {verdict}"])  # fmt: skip
    head = ["open at once", "right", "streams/s", "events/s", "KiB per stream"]
    section.lines = [
        table(head, rows, words=0),
        "",
        f"Takes of {', '.join(TAKES)} in chunks of {CHUNK} bytes; each read yields to the others.",
    ]
    return section


def _take(provider: str) -> Take:
    take = read_take(ROOT / "recordings" / provider / "parallel_calls.sse")
    wire = take.wire
    pieces = [(0.0, wire[i : i + CHUNK]) for i in range(0, len(wire), CHUNK)]
    return replace(take, chunks=pieces)


def _events(take: Take) -> list[Event]:
    pipe = Normalizer(take.provider or "auto", seed=take.seed)
    return pipe.feed(take.wire) + pipe.close()


async def _memory(takes: list[Take], n: int) -> tuple[int, int]:
    """How many streams are open, and the bytes that all of them hold."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    streams: list[Stream] = []
    for i in range(n):
        streams.append(replay(takes[i % len(takes)]))
        await anext(streams[-1])
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    for stream in streams:
        await stream.aclose()
    return len(streams), held


async def _time(takes: list[Take], wanted: list[list[Event]], n: int) -> tuple[float, int]:
    async def read(i: int) -> bool:
        events = [event async for event in replay(takes[i % len(takes)])]
        return events == wanted[i % len(takes)]

    began = time.perf_counter()
    right = sum(await asyncio.gather(*(read(i) for i in range(n))))
    return time.perf_counter() - began, right
