"""Chat streams: 1,000 readers on one stream, 1,000 streams in one process; seconds and checks out.

Every reader checks all that it hears against what was appended. SQLite works on a file in a temporary
folder; Redis is measured where ``STREAMNORM_REDIS`` names one. The cost of encoding is per event of a
tool-heavy stream, each event fed alone, which is the worst case.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from bench.report import Options, Section, table
from streamnorm import Finish, StreamStart, TextDelta, ToolCall, ToolCallDelta, ToolCallStart
from streamnorm.ui import ag_ui, plain, vercel
from streamnorm.ui.log import EventLog, MemoryLog, SQLiteLog

MANY = 1000
APPENDS, BATCH = 100, 5  # of the stream that many read
SHORT = 20  # appends of each of many streams
Work = Callable[[EventLog, int, Section], Awaitable[int]]


def run(options: Options) -> Section:
    section = Section("Chat streams: readers and producers")
    many = 100 if options.quick else MANY
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in _logs(Path(folder)).items():
            for what, work in (("readers, 1 stream", _readers), ("streams, 1 reader", _streams)):
                rows.append(anyio.run(_measured, section, name, make, f"{many} {what}", work, many))
    section.lines = [
        "All readers hear all that was appended, live, and check it.",
        "",
        table(["log", "what", "payloads heard", "seconds", "heard per s"], rows, 2),
        "",
        table(["encoder", "µs per event"], [[n, f"{us:.1f}"] for n, us in _encoders(section)]),
    ]
    return section


def _logs(folder: Path) -> dict[str, Callable[[], EventLog]]:
    logs: dict[str, Callable[[], EventLog]] = {
        "memory": MemoryLog,
        "SQLite": lambda: SQLiteLog(folder / "log.db"),
    }
    if url := os.environ.get("STREAMNORM_REDIS"):
        from streamnorm.ui.log import RedisLog

        logs["Redis"] = lambda: RedisLog(url, prefix="bench")
    return logs


async def _measured(
    section: Section,
    name: str,
    make: Callable[[], EventLog],
    what: str,
    work: Work,
    many: int,
) -> list[str]:
    async with make() as log:
        start = time.perf_counter()
        heard = await work(log, many, section)
        seconds = time.perf_counter() - start
    section.data[f"{name}, {what}"] = {"seconds": seconds, "heard": heard}
    return [name, what, f"{heard:,}", f"{seconds:.2f}", f"{heard / seconds:,.0f}"]


async def _readers(log: EventLog, many: int, section: Section) -> int:
    writer = await log.create(owner="bench")
    told = _payloads(APPENDS * BATCH)
    counts: list[int] = []

    async def produce() -> None:
        for at in range(0, len(told), BATCH):
            await writer.append(told[at : at + BATCH])
        await writer.close()

    async with anyio.create_task_group() as group:
        for _ in range(many):
            group.start_soon(_read, log, writer.stream, told, counts, section)
        group.start_soon(produce)
    return sum(counts)


async def _streams(log: EventLog, many: int, section: Section) -> int:
    told = _payloads(SHORT)
    counts: list[int] = []

    async def produce() -> None:
        writer = await log.create(owner="bench")
        async with anyio.create_task_group() as group:
            group.start_soon(_read, log, writer.stream, told, counts, section)
            for payload in told:
                await writer.append([payload])
            await writer.close()

    async with anyio.create_task_group() as group:
        for _ in range(many):
            group.start_soon(produce)
    return sum(counts)


async def _read(
    log: EventLog, stream: str, told: list[bytes], counts: list[int], section: Section
) -> None:
    heard = [entry.data async for entry in log.read(stream, owner="bench")]
    counts.append(len(heard))
    if heard != told:
        section.wrong.append(f"a reader heard {len(heard)} of {len(told)} payloads, or others")


def _payloads(n: int) -> list[bytes]:
    return [b'{"type":"text-delta","id":"text-1","delta":"word %d "}' % i for i in range(n)]


def _encoders(section: Section) -> list[tuple[str, float]]:
    events = _events()
    kinds: dict[str, Callable[[], Any]] = {
        "vercel": vercel.Encoder,
        "ag_ui": lambda: ag_ui.Encoder(protocol_version="1.0"),
        "plain": plain.Encoder,
    }
    taken = {name: min(_encode(make(), events) for _ in range(5)) for name, make in kinds.items()}
    section.data["encoders"] = taken
    return list(taken.items())


def _encode(encoder: Any, events: list[Any]) -> float:
    start = time.process_time()
    for event in events:
        encoder.feed(event)
    encoder.close()
    return (time.process_time() - start) / len(events) * 1e6


def _events() -> list[Any]:
    events: list[Any] = [StreamStart("anthropic", "m", "r")]
    events += [TextDelta("word ") for _ in range(1000)]
    for call in range(20):
        events.append(ToolCallStart(call, f"call_{call}", "write_file"))
        events += [ToolCallDelta(call, '{"text":"') for _ in range(1)]
        events += [ToolCallDelta(call, "x" * 20) for _ in range(100)]
        arguments = {"text": "x" * 2000}
        events.append(ToolCall(call, f"call_{call}", "write_file", arguments, ""))
    return [*events, Finish("tool_calls")]
