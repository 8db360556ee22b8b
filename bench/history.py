"""History: turns in, commits per second and the cost of opening, encoding and appending out.

The bars are about shape, not about the disk: opening and encoding a conversation of ten times the
turns may take ten times as long and a little more, and appending to it no longer than before.
Commits per second are told for the disk that the benchmark runs on, with ``synchronous=FULL``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from bench.report import Options, Section, table
from streamnorm import Conversation, ToolCall, ToolResult, Turn
from streamnorm.encoding.mending import mend
from streamnorm.history import History, MemoryHistory, SQLiteHistory
from streamnorm.wire import provider

SIZES = (1_000, 10_000)
SLACK = 3.0  # of a linear cost: memory management, and a machine that does other things
COMMITS = 100


def run(options: Options) -> Section:
    section = Section("History: commits, and conversations that grow long")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_measure, section, Path(folder), options)
    return section


async def _measure(section: Section, folder: Path, options: Options) -> None:
    stores: dict[str, Callable[[str], History]] = {
        "memory": lambda name: MemoryHistory(),
        "SQLite, FULL": lambda name: SQLiteHistory(folder / f"{name}.db"),
    }
    if dsn := os.environ.get("STREAMNORM_POSTGRES"):
        from streamnorm.history import PostgresHistory

        stores["PostgreSQL"] = lambda name: PostgresHistory(dsn, schema="streamnorm_bench")
    rows = []
    for done, (name, opened) in enumerate(stores.items()):
        options.tick(done, len(stores), name)
        figures = [await _figures(section, opened, size, options.quick) for size in SIZES]
        rows += [[name, f"{size:,}", *_cells(f)] for size, f in zip(SIZES, figures, strict=True)]
        _compare(section, name, *figures)
        section.data[name] = dict(zip(map(str, SIZES), figures, strict=True))
    head = ["store", "turns", "commits/s", "append, ms", "open, ms", "mend, ms", "encode, ms"]
    section.lines = [table(head, rows)]


async def _figures(
    section: Section, opened: Callable[[str], History], size: int, quick: bool
) -> dict[str, float]:
    async with opened(f"h{size}") as history:
        turns = _turns(size)
        await history.commit("c", "fill", 0, turns, create=True)
        appends = [await _timed(_append(history, n)) for n in range(20 if quick else COMMITS)]
        began = time.perf_counter()
        stored = await history.load("c")
        opening = time.perf_counter() - began
        if stored.turns[:size] != turns:
            section.wrong.append(f"{type(history).__name__}: other turns came back")
        await history.delete("c")
    mending, conversation = _spent(lambda: mend(stored.conversation).conversation)
    encoding, _ = _spent(lambda: provider("anthropic").request(conversation, model="m"))
    append = statistics.median(appends)
    return {"append": append, "open": opening, "mend": mending, "encode": encoding}


def _append(history: History, number: int) -> Awaitable[Any]:
    return history.commit("c", "append", number, Conversation().user(f"{number}").turns)


async def _timed(job: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await job
    return time.perf_counter() - began


def _spent(job: Callable[[], Any]) -> tuple[float, Any]:
    """The best of three, and what came out."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        value = job()
        times.append(time.perf_counter() - began)
    return min(times), value


def _turns(size: int) -> list[Turn]:
    """A talk with tools: a question, a call, its result, an answer, again and again."""
    talk = Conversation()
    for n in range(size // 4):
        call = ToolCall(
            0, f"call_{n}", "look", {"n": n, "where": "here"}, f'{{"n":{n},"where":"here"}}'
        )
        talk.user(f"Question {n}").add(Turn("assistant", (call,)))
        talk.results([ToolResult.for_call(call, {"found": n})]).assistant(f"Answer {n}")
    return talk.turns


def _cells(figures: dict[str, float]) -> list[str]:
    told = [f"{figures[name] * 1e3:.2f}" for name in ("append", "open", "mend", "encode")]
    return [f"{1 / figures['append']:,.0f}", *told]


def _compare(section: Section, name: str, short: dict[str, float], long: dict[str, float]) -> None:
    times = SIZES[1] / SIZES[0]
    for what, most in (("append", 1), ("open", times), ("mend", times), ("encode", times)):
        section.figure(
            f"{name}: {what} at ten times the turns",
            long[what] / short[what],
            "times",
            most * SLACK,
        )
