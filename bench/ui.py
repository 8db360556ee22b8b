"""Chat streams: events in, µs per event of each encoder and of each log out.

Encoders are fed event by event, each alone, which is their worst case, with what the pipe makes of
generated streams; what each says is read back and compared once, outside the clock. Logs are
appended to in batches, as a router does while a page is told thirty times a second, and read to the
end; SQLite works on a file in a temporary folder, Redis is measured where ``STREAMNORM_REDIS`` names
one.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bench import page, workloads
from bench.measure import best_of, events_of, floor
from bench.report import Options, Section, number, table
from streamnorm.ui import ag_ui, plain, vercel
from streamnorm.ui.log import EventLog, MemoryLog, SQLiteLog

__all__ = ["ENCODERS", "encoders", "run"]

STREAMS = {
    "text": ("openai_chat", "W1"),
    "calls in pieces": ("anthropic", "W2"),
    "2,000 whole calls": ("gemini", "W2"),
}
ENCODERS: dict[str, Callable[[], Any]] = {
    "AI SDK": vercel.Encoder,
    "AG-UI": lambda: ag_ui.Encoder(protocol_version="1.0"),
    "plain": plain.Encoder,
}
PER_EVENT, PER_APPENDED = 2.5, 10.0  # µs
BATCHES = {50: PER_APPENDED, 10: None}  # payloads at once, and the bar
APPENDED = 3200
PAYLOAD = b'{"type":"text-delta","id":"text-1","delta":"word %d "}'


def run(options: Options) -> Section:
    section = Section("Chat streams: encoders and resumable logs")
    rounds = 4 if options.quick else 12
    options.tick(0, 2, "encoders")
    encoded = [encoders(section, name, rounds) for name in STREAMS]
    options.tick(1, 2, "logs")
    with tempfile.TemporaryDirectory() as folder:
        logs = _logs(Path(folder))
        kept = [
            anyio.run(_log, section, name, make, rounds, batch)
            for batch in BATCHES
            for name, make in logs.items()
        ]
    if "Redis" not in logs:
        section.notes.append("left out: the log in Redis (STREAMNORM_REDIS names none)")
    section.lines = [
        "µs of CPU per event of ours, fed alone:",
        "",
        table(["encoder", *ENCODERS], encoded),
        "",
        "Appended in batches, then read to the end and compared:",
        "",
        table(["log", "batch", "CPU µs/appended", "time µs/appended", "CPU µs/read"], kept),
    ]
    return section


# Encoders.


def encoders(section: Section, stream: str, rounds: int) -> list[str]:
    workload = workloads.build(*STREAMS[stream])
    events = events_of(workload.wire, [workload.body])
    runs = {name: partial(_encode, make, events) for name, make in ENCODERS.items()}
    for name, make in ENCODERS.items():
        section.wrong += [
            f"{name}, {stream}: {what}" for what in _wrong(name, make, workload, events)
        ]
    best = best_of({"floor": floor(workload)} | runs, rounds)
    cells = []
    for name in ENCODERS:
        micros = best[name] / len(events) * 1e6
        section.data[f"{name}, {stream}"] = micros
        per_floor = best[name] / len(events) / (best["floor"] / workload.events)
        section.figure(f"{name}, {stream}: times the floor of an event", per_floor)
        cells.append(section.figure(f"{name}, {stream}", micros, "µs", PER_EVENT))
    return [stream, *cells]


def _encode(make: Callable[[], Any], events: list[Any]) -> int:
    encoder = make()
    feed = encoder.feed
    size = 0
    for event in events:
        size += len(feed(event))
    return size + len(encoder.close())


def _wrong(
    name: str, make: Callable[[], Any], workload: workloads.Workload, events: list[Any]
) -> list[str]:
    """What a page would get wrong, and whether the timed loop gives as much."""
    encoder = make()
    told = b"".join([*map(encoder.feed, events), encoder.close()])
    wrong = page.check(name, workload, told)
    if (size := _encode(make, events)) != len(told):
        wrong.append(f"{size} bytes in the timed run, {len(told)} in the checked one")
    return wrong


# Logs.


def _logs(folder: Path) -> dict[str, Callable[[], EventLog]]:
    logs: dict[str, Callable[[], EventLog]] = {
        "memory": MemoryLog,
        "SQLite": lambda: SQLiteLog(folder / "log.db"),
    }
    if url := os.environ.get("STREAMNORM_REDIS"):
        from streamnorm.ui.log import RedisLog

        logs["Redis"] = lambda: RedisLog(url, prefix="bench")
    return logs


async def _log(
    section: Section, name: str, make: Callable[[], EventLog], rounds: int, batch: int
) -> list[str]:
    told = [PAYLOAD % n for n in range(APPENDED)]
    best = dict.fromkeys(("append", "time", "read"), 1e9)
    async with make() as log:
        for _ in range(rounds):
            writer = await log.create(owner="bench")
            began, start = time.perf_counter(), time.process_time()
            for at in range(0, len(told), batch):
                await writer.append(told[at : at + batch])
            appended, ended = time.process_time(), time.perf_counter()
            await writer.close()
            heard = [entry.data async for entry in log.read(writer.stream, owner="bench")]
            read = time.process_time() - appended
            taken = {"append": appended - start, "time": ended - began, "read": read}
            best = {key: min(value, taken[key]) for key, value in best.items()}
            if heard != told:
                section.wrong.append(f"{name}: {len(heard)} of {len(told)} payloads, or others")
    micros = {key: value / len(told) * 1e6 for key, value in best.items()}
    section.data[f"log in {name}, {batch} at once"] = micros
    what = f"log in {name}, {batch} at once"
    cell = section.figure(what, micros["append"], "µs", BATCHES[batch])
    return [name, str(batch), cell, number(micros["time"]), number(micros["read"])]
