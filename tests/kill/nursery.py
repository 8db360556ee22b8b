"""Forks writers, kills them, has others look: one JSON line for each kill (see ``tests/kill``).

It starts no thread and opens no store itself, so that forking is safe.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import anyio

from streamnorm.history import History, SQLiteHistory, UnknownConversation
from streamnorm.history.settled import Settled
from streamnorm.history.spool import Artifact
from streamnorm.ui.log import EventLog, Gone, ProducerLost, SQLiteLog, Writer
from tests.history.crash.driver import ended, forked, heard, told
from tests.history.stores import DSN, asks, call, gives, user

Tell = Callable[[Any], None]
LEASE = 0.3  # seconds
LONGEST = 0.06  # seconds that a writer lives after the first that it was told …
SLOW = 5  # … and how many times that, where each step is slow


class Histories:
    """Commits of three turns, each with a call that is settled before its result is told."""

    def __init__(self, kind: str, where: str) -> None:
        self.kind, self._where = kind, where

    def open(self) -> History:
        if self.kind == "sqlite":
            return SQLiteHistory(self._where)
        from streamnorm.history import PostgresHistory

        return PostgresHistory(str(DSN), schema=self._where)

    async def write(self, number: int, tell: Tell) -> None:
        """Until it is killed; tells what was acknowledged."""
        async with self.open() as history:
            for step in range(10**9):
                for part in range(3):
                    await self.act(history, number, step, part)
                    tell(3 * step + part + 1)

    async def act(self, history: History, number: int, step: int, part: int) -> None:
        """A question and the call, then what came of the call, then its result: all of it may be repeated."""
        made, name = _call(number, step), f"k{number}"
        if part == 0:
            told = [user(f"{number} {step}"), asks(made)]
            await history.commit(name, "r", 2 * step, told, create=True)
        elif part == 1:
            await history.settle(name, _record(number, step))
        else:
            await history.commit(name, "r", 2 * step + 1, [gives(made)])

    async def check(self, number: int, acknowledged: int) -> list[str]:
        """What is wrong after that kill. What the dead one was doing is done once more."""
        wrong: list[str] = []
        async with self.open() as history:
            kept = await self._kept(history, number, wrong)
            if not acknowledged <= kept <= acknowledged + 1:
                wrong.append(f"{acknowledged} steps were acknowledged, {kept} are there")
            for again in range(max(0, kept - 2), kept + 1):
                await self.act(history, number, again // 3, again % 3)
            if (after := await self._kept(history, number, wrong)) != kept + 1:
                wrong.append(f"{kept} steps, two of them and one more done: {after} are there")
            if isinstance(history, SQLiteHistory):
                said = (await history.settings())["quick_check"]
                wrong += [] if said == "ok" else [f"quick_check: {said}"]
        return [f"history, kill {number}: {what}" for what in wrong]

    async def _kept(self, history: History, number: int, wrong: list[str]) -> int:
        """How many steps are there, from the first on and each of them whole."""
        try:
            stored = await history.load(f"k{number}")
        except UnknownConversation:
            return 0
        steps = len(stored.calls)
        expected = []
        for step in range(steps):
            made = _call(number, step)
            expected += [user(f"{number} {step}"), asks(made), gives(made)]
        if stored.turns not in (expected, expected[:-1]):
            wrong.append(f"{len(stored.turns)} turns that were never committed so")
        records = [state.settled for state in stored.calls]
        if records[:-1] != [_record(number, step) for step in range(steps - 1)]:
            wrong.append("a settled record is not there, or another")
        is_answered = len(stored.turns) == len(expected)
        is_settled = records[-1:] == [_record(number, steps - 1)]
        if is_answered and not is_settled:
            wrong.append("the last settled record is not there, or another")
        return 3 * (steps - 1) + 1 + is_settled + is_answered


class Logs:
    """Appends of one to three entries, and another log's in between."""

    def __init__(self, kind: str, where: str) -> None:
        self.kind, self._where = kind, where

    def open(self) -> EventLog:
        if self.kind == "sqlite":
            return SQLiteLog(self._where, lease=LEASE, poll=0.02)
        from streamnorm.ui.log import RedisLog

        where = os.environ["STREAMNORM_REDIS"]
        return RedisLog(
            where, lease=LEASE, poll=0.05, prefix=self._where, keep_for=600, patience=60
        )

    async def write(self, number: int, tell: Tell) -> None:
        async with self.open() as log, anyio.create_task_group() as group:
            writer = await log.create(owner="ann", chat=f"k{number}")
            other = await log.create(owner="bob")
            group.start_soon(self._beside, other)
            tell(0)
            while True:
                await writer.append(_entries(writer.last, 1 + writer.last % 3))
                tell(writer.last)

    async def _beside(self, writer: Writer) -> None:
        while True:  # two who write share their transactions
            await writer.append([b"beside"])

    async def check(self, number: int, acknowledged: int) -> list[str]:
        wrong: list[str] = []
        async with self.open() as log:
            streams = await log.streams(owner="ann", chat=f"k{number}")
            if not streams:
                wrong += ["the stream is not there"] if acknowledged else []
                return [f"log, kill {number}: {what}" for what in wrong]
            kept = await self._heard(log, streams[0], wrong)
            most = acknowledged + 1 + acknowledged % 3
            if kept not in (acknowledged, most):
                wrong.append(f"{acknowledged} entries were acknowledged, {kept} are there")
            again = Writer(log, streams[0], acknowledged)  # as if the reply had been lost
            await again.close(_entries(acknowledged, 1 + acknowledged % 3))
            page = [entry.data async for entry in log.read(streams[0], owner="ann")]
            if page != _entries(0, most):
                wrong.append(f"told again: {len(page)} entries are there, not {most}")
        return [f"log, kill {number}: {what}" for what in wrong]

    async def _heard(self, log: EventLog, stream: str, wrong: list[str]) -> int:
        """What a reader hears, until he is told that the producer is gone."""
        entries: list[bytes] = []
        try:
            with anyio.fail_after(60):
                async for entry in log.read(stream, owner="ann"):
                    entries.append(entry.data)
            wrong.append("the stream ended as if its producer lived")
        except ProducerLost:
            pass
        except (Gone, TimeoutError) as error:
            wrong.append(f"instead of the death of its producer a reader heard {error!r}")
        if entries != _entries(0, len(entries)):
            wrong.append("the entries are not those that were appended")
        return len(entries)


def _entries(after: int, count: int) -> list[bytes]:
    return [b"payload %d" % n for n in range(after + 1, after + 1 + count)]


def _call(number: int, step: int) -> Any:
    return call(f"call_{number}_{step}", step=step)


def _record(number: int, step: int) -> Settled:
    made = Artifact.of(f"step {step} ran")
    return Settled.of(_call(number, step), made, started=1.0, seconds=0.5)


def killed(store: Histories | Logs, number: int, dice: random.Random) -> int:
    """A writer that was killed, some way into what it does; the last that it was told."""
    pid, out = forked(lambda tell: store.write(number, tell))
    last = b""
    if dice.random() < 0.9:  # the others die while they open the store
        last = os.read(out, 65536)
    longest = LONGEST * (SLOW if isinstance(store, Histories) and store.kind == "postgres" else 1)
    until = time.monotonic() + dice.random() * longest
    while (left := until - time.monotonic()) > 0:
        if select.select([out], [], [], left)[0]:
            last = (last + os.read(out, 65536))[-200:]
    os.kill(pid, signal.SIGKILL)
    rest = heard(out)
    assert ended(pid) == signal.SIGKILL
    lines = [line for line in last.split(b"\n")[:-1] if line.isdigit()]
    return int(rest[-1]) if rest else int(lines[-1]) if lines else 0


def main() -> None:
    name, where, kills, seed = sys.argv[1:]
    kind, _, what = name.partition("-")
    store = Histories(kind, where) if what == "history" else Logs(kind, where)
    for module in ("anyio._backends._asyncio", "sqlite3", "psycopg", "redis.asyncio"):
        with suppress(ImportError):  # once, and not by every child
            import_module(module)
    dice = random.Random(int(seed))
    kept = 0
    for number in range(int(kills)):
        acknowledged = killed(store, number, dice)
        kept += acknowledged

        async def look(tell: Tell, number: int = number, acknowledged: int = acknowledged) -> None:
            try:
                tell(await store.check(number, acknowledged))
            except Exception as error:  # noqa: BLE001  whatever it is, it should have been otherwise
                tell([f"{name}, kill {number}: {error!r}"])

        (violated,) = told(look)
        line = {"kills": number + 1, "kept": kept, "violated": violated}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
