"""Many write into one file at once: whatever goes wrong in what they share, each hears how it went.

SQLite itself is made to fail: by a word to its authorizer, by a trigger in the file, by values that it
cannot take, and by what a driver may raise.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from streamnorm import UsageError
from streamnorm.ui.log import Busy, Conflict, Gone, LogError, LogUnavailable, SQLiteLog, Writer

CROWD = 4
Told = dict[int, str]


async def together(log: SQLiteLog, *acts: Callable[[], Awaitable[Any]]) -> Told:
    """All of these in one transaction; what each of them was told."""
    told: Told = {}

    async def run(number: int, act: Callable[[], Awaitable[Any]]) -> None:
        try:
            await act()
            told[number] = "kept"
        except LogError as error:
            told[number] = type(error).__name__

    async with anyio.create_task_group() as group, log._turns[True]:
        for number, act in enumerate(acts):
            group.start_soon(run, number, act)
        while len(log._waiting) < len(acts):
            await anyio.lowlevel.checkpoint()
    return told


async def kept(log: SQLiteLog, writer: Writer) -> list[bytes]:
    page = await log._look(writer.stream, "ann", 0, 100)
    assert page.last == len(page.entries)
    return [entry.data for entry in page.entries]


async def crowd(log: SQLiteLog) -> list[Writer]:
    return [await log.create(owner="ann", chat=f"c{n}") for n in range(CROWD)]


def appends(writers: list[Writer], payload: bytes = b"x") -> list[Callable[[], Awaitable[Any]]]:
    return [lambda writer=writer: writer.append([payload]) for writer in writers]  # type: ignore[misc]


# What SQLite asks its authorizer about, and with which word.
STEPS = {
    "begin": (sqlite3.SQLITE_TRANSACTION, "BEGIN"),
    "savepoint": (sqlite3.SQLITE_SAVEPOINT, "BEGIN"),
    "look": (sqlite3.SQLITE_READ, "streams"),
    "insert": (sqlite3.SQLITE_INSERT, "entries"),
    "update": (sqlite3.SQLITE_UPDATE, "streams"),
    "release": (sqlite3.SQLITE_SAVEPOINT, "RELEASE"),
    "commit": (sqlite3.SQLITE_TRANSACTION, "COMMIT"),
}


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_that_fails_fails_all_and_keeps_nothing(step: str, tmp_path: Path) -> None:
    def refuse(action: int, *words: str | None) -> int:
        is_it = action == STEPS[step][0] and STEPS[step][1] in words
        return sqlite3.SQLITE_DENY if is_it else sqlite3.SQLITE_OK

    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)
        log._dbs[True].set_authorizer(refuse)
        told = await together(log, *appends(writers))
        assert told == dict.fromkeys(range(CROWD), "LogUnavailable")
        assert [await kept(log, writer) for writer in writers] == [[]] * CROWD
        assert await together(log, *appends(writers)) == dict.fromkeys(range(CROWD), "kept")
        assert [await kept(log, writer) for writer in writers] == [[b"x"]] * CROWD


async def test_one_that_cannot_be_undone_alone_takes_the_others_with_it(tmp_path: Path) -> None:
    def refuse(action: int, *words: str | None) -> int:
        is_undoing = action == sqlite3.SQLITE_SAVEPOINT and "ROLLBACK" in words
        return sqlite3.SQLITE_DENY if is_undoing else sqlite3.SQLITE_OK

    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)
        await log._append(writers[1].stream, 1, [b"another"], "open")
        log._dbs[True].set_authorizer(refuse)
        told = await together(log, *appends(writers))
        assert told == dict.fromkeys(range(CROWD), "LogUnavailable")
        assert [await kept(log, w) for w in writers] == [[], [b"another"], [], []]


@pytest.mark.parametrize("how", ["ABORT", "FAIL", "ROLLBACK"])
async def test_a_trigger_of_the_file_that_refuses_one_entry(how: str, tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)
        log._dbs[True].execute(
            "CREATE TRIGGER no BEFORE INSERT ON entries WHEN NEW.data = x'00'"
            f" BEGIN SELECT RAISE({how}, 'not this one'); END"
        )
        acts = [*appends(writers[:2]), *appends(writers[2:3], b"\0"), *appends(writers[3:])]
        assert await together(log, *acts) == dict.fromkeys(range(CROWD), "LogUnavailable")
        assert [await kept(log, writer) for writer in writers] == [[]] * CROWD
        del writers[2]  # that would try it again
        assert await together(log, *appends(writers)) == dict.fromkeys(range(3), "kept")


@pytest.mark.parametrize(
    "value", ["half \ud800 a pair", 2**70, object()], ids=["text", "number", "object"]
)
async def test_a_value_that_the_driver_cannot_take(value: Any, tmp_path: Path) -> None:
    """None gets here: it is refused at the door. If one did, nobody would be told that he was stored."""
    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)

        async def odd() -> None:
            await log._append(writers[1].stream, 1, [value], "open")

        told = await together(log, *appends(writers[:1]), odd, *appends(writers[2:]))
        assert told == dict.fromkeys(range(CROWD), "LogUnavailable")
        assert [await kept(log, writer) for writer in writers] == [[]] * CROWD


@pytest.mark.parametrize("error", [ValueError, MemoryError, SystemExit, KeyboardInterrupt])
async def test_whatever_a_driver_raises(error: type[BaseException], tmp_path: Path) -> None:
    def raising(_: bytes) -> str:
        raise error("from the driver")

    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)
        log._dbs[True].text_factory = raising  # asked for the name of the stream that runs

        async def ask() -> None:
            await log.create(owner="ann", chat="c1")

        told = await together(log, *appends(writers[:2]), ask, *appends(writers[2:]))
        assert told == dict.fromkeys(range(CROWD + 1), "LogUnavailable")
        assert [await kept(log, writer) for writer in writers] == [[]] * CROWD
        with pytest.raises(Busy):  # a new connection is as good as new
            await ask()


async def test_the_error_says_what_it_came_from(tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        writer = await log.create(owner="ann")
        with pytest.raises(LogUnavailable, match=r"log\.db.*UnicodeEncodeError") as raised:
            await log._append(writer.stream, 1, ["\ud800"], "open")  # type: ignore[list-item]
        assert isinstance(raised.value.__cause__, UnicodeEncodeError)


@pytest.mark.parametrize("writes", [True, False])
async def test_a_connection_that_somebody_closed_is_made_again(
    writes: bool, tmp_path: Path
) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)
        assert await kept(log, writers[0]) == []
        log._dbs[writes].close()
        if writes:
            told = await together(log, *appends(writers))
            assert told == dict.fromkeys(range(CROWD), "LogUnavailable")
        else:
            with pytest.raises(LogUnavailable):
                await kept(log, writers[0])
        assert await together(log, *appends(writers)) == dict.fromkeys(range(CROWD), "kept")
        assert [await kept(log, writer) for writer in writers] == [[b"x"]] * CROWD


async def test_who_fails_alone_leaves_nothing_of_what_he_did(tmp_path: Path) -> None:
    """A chat that is busy is found out after old streams were thrown away: that, too, is undone."""
    now = 1000.0
    async with SQLiteLog(tmp_path / "log.db", keep_for=60, clock=lambda: now) as log:
        old = await log.create(owner="ann", chat="old")
        now += 55
        busy = await log.create(owner="ann", chat="c")
        now += 10

        async def ask() -> None:
            await log.create(owner="ann", chat="c")

        assert await together(log, ask, lambda: busy.append([b"x"])) == {0: "Busy", 1: "kept"}
        assert await log.streams(owner="ann", chat="old") == [old.stream]
        assert await kept(log, busy) == [b"x"]


async def test_one_job_that_fails_after_it_wrote_is_undone_alone(tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        writers = await crowd(log)

        def job(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO entries VALUES (?, 1, x'00')", (writers[1].stream,))
            db.execute("UPDATE streams SET last = 1 WHERE id = ?", (writers[1].stream,))
            raise Conflict("found out too late")

        acts = [*appends(writers[:1]), lambda: log._write(job), *appends(writers[2:])]
        assert await together(log, *acts) == {0: "kept", 1: "Conflict", 2: "kept", 3: "kept"}
        assert [await kept(log, w) for w in writers] == [[b"x"], [], [b"x"], [b"x"]]


# --- at the door ----------------------------------------------------------------------------------


async def test_half_a_character_in_a_name_is_refused_at_the_door(tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        for owner, chat in (("\ud800", None), ("ann", "a \udfff b")):
            with pytest.raises(UsageError, match="half"):
                await log.create(owner=owner, chat=chat)
        assert await log.active(owner="\ud800", chat="c") is None
        writer = await log.create(owner="ann")
        for stream, owner in ((writer.stream, "\ud800"), ("\ud800", "ann")):
            with pytest.raises(Gone):
                await log.read(stream, owner=owner).page(within=0)
            with pytest.raises(Gone):
                await log.stop(stream, owner=owner)


async def test_payloads_are_bytes(tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        writer = await log.create(owner="ann")
        with pytest.raises(UsageError, match="bytes, not str"):
            await writer.append(["text"])  # type: ignore[list-item]


# --- cancelled ------------------------------------------------------------------------------------


async def test_who_is_cancelled_while_he_waits_is_not_written_later(tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "log.db") as log:
        async with anyio.create_task_group() as group, log._turns[True]:

            async def ask() -> None:
                await log.create(owner="ann", chat="c")

            group.start_soon(ask)
            while not log._waiting:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        await log.create(owner="bob")
        assert await log.streams(owner="ann", chat="c") == []


def test_a_task_that_is_cancelled_with_the_transaction_of_others_in_hand(tmp_path: Path) -> None:
    """Each that was told that it is kept, is. ``asyncio`` cancels wherever a task waits."""

    async def main() -> None:
        async with SQLiteLog(tmp_path / "log.db") as log:
            writers = [await log.create(owner="ann") for _ in range(20)]
            told: set[int] = set()

            async def append(number: int, round: int) -> None:
                await log._append(writers[number].stream, round, [b"%d" % round], "open")
                told.add(number)

            for round in range(1, 31):
                told.clear()
                tasks = [asyncio.create_task(append(n, round)) for n in range(20)]
                for step in range(round % 7):
                    await asyncio.sleep(0)
                    tasks[(round * 3 + step) % 20].cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for number, writer in enumerate(writers):
                    entries = await kept(log, writer)
                    assert number not in told or len(entries) == round
                    await log._append(writer.stream, round, [b"%d" % round], "open")

    asyncio.run(main())


async def test_what_failed_holds_up_nobody_while_its_error_is_looked_at(tmp_path: Path) -> None:
    """Its traceback knows a cursor that has more to give, and while it does SQLite does not close."""

    def job(db: sqlite3.Connection) -> None:
        rows = db.execute("SELECT id FROM streams")
        db.execute("UPDATE streams SET stopped = 1")
        raise ValueError(f"not after {next(rows)}")

    path = tmp_path / "log.db"
    async with SQLiteLog(path) as log:
        await crowd(log)
        with pytest.raises(LogUnavailable) as told:
            await log._write(job)
        other = sqlite3.connect(path, timeout=0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT sum(stopped) FROM streams").fetchone() == (0,)
        other.close()
        assert told.value.__cause__ is not None
