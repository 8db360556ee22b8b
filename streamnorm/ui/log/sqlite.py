"""Streams in a SQLite file: for one machine, any number of processes, and restarts.

Rule: one connection writes and one reads, each used by one thread at a time, so that readers never
keep the producer waiting; every write is a transaction that begins ``IMMEDIATE`` and is safe to
repeat. WAL with ``synchronous=NORMAL``: an acknowledged entry survives
the death of the process, and the last ones may not survive a power cut, which is right for what a
page was about to show and history keeps better. Readers in this process are rung; those in others
look every ``poll`` seconds.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from .base import (
    KEEP_FOR,
    LEASE,
    Busy,
    Conflict,
    Entry,
    EventLog,
    Gone,
    LogError,
    LogUnavailable,
    Page,
    State,
)

__all__ = ["SQLiteLog"]

T = TypeVar("T")
BUSY = 30.0  # seconds to wait for another process

SCHEMA = """
CREATE TABLE IF NOT EXISTS streams (
    key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, chat TEXT,
    touched REAL NOT NULL, first INTEGER NOT NULL DEFAULT 1, last INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'open', stopped INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS streams_by_chat ON streams (owner, chat);
CREATE INDEX IF NOT EXISTS streams_by_age ON streams (touched);
CREATE TABLE IF NOT EXISTS entries (
    stream TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
"""
OF_CHAT = "SELECT id, state, touched FROM streams WHERE owner = ? AND chat = ? ORDER BY key"
LATEST = f"{OF_CHAT} DESC LIMIT 1"


class _Job:
    """A piece of a transaction, and what came of it."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self._work = work
        self.done = False
        self.value: Any = None
        self.error: LogError | None = None

    def run(self, db: sqlite3.Connection, undo: str) -> None:
        try:
            self.value = self._work(db)
        except LogError as error:  # this job alone is undone
            db.execute(undo)
            self.error = error


class SQLiteLog(EventLog):
    """An ``EventLog`` in one SQLite file.

    ::

        async with SQLiteLog("streams.db") as log: ...
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        lease: float = LEASE,
        keep_for: float = KEEP_FOR,
        keep: int | None = None,
        poll: float = 0.25,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.lease, self.poll = lease, poll
        self._path = os.fspath(path)
        self._keep_for, self._keep, self._clock = keep_for, keep, clock
        self._dbs: dict[bool, sqlite3.Connection] = {}  # by: does it write?
        self._turns = {True: anyio.Lock(), False: anyio.Lock()}
        self._waiting: list[_Job] = []

    async def aclose(self) -> None:
        for writes in list(self._dbs):
            async with self._turns[writes]:
                await to_thread.run_sync(self._dbs.pop(writes).close)

    async def stop(self, stream: str, *, owner: str) -> None:
        def job(db: sqlite3.Connection) -> int:
            mark = "UPDATE streams SET stopped = 1 WHERE id = ? AND owner = ?"
            return db.execute(mark, (stream, owner)).rowcount

        if not await self._write(job):
            raise Gone

    async def _create(self, stream: str, owner: str, chat: str | None) -> None:
        now = self._clock()

        def job(db: sqlite3.Connection) -> None:
            self._expire(db, now)
            row = db.execute(LATEST, (owner, chat)).fetchone() if chat is not None else None
            if row is not None and row[1] == "open" and now - row[2] < self.lease:
                raise Busy(row[0])
            fresh = "INSERT INTO streams (id, owner, chat, touched) VALUES (?, ?, ?, ?)"
            db.execute(fresh, (stream, owner, chat, now))

        await self._write(job)

    async def streams(self, *, owner: str, chat: str) -> list[str]:
        def job(db: sqlite3.Connection) -> list[str]:
            return [row[0] for row in db.execute(OF_CHAT, (owner, chat))]

        return await self._read(job)

    async def _append(
        self, stream: str, first: int, payloads: Sequence[bytes], state: State
    ) -> bool:
        now = self._clock()

        def job(db: sqlite3.Connection) -> bool:
            row = db.execute("SELECT last, stopped FROM streams WHERE id = ?", (stream,)).fetchone()
            if row is None:
                raise Gone
            fresh = _fresh(db, stream, row[0], first, payloads)
            db.executemany("INSERT INTO entries VALUES (?, ?, ?)", fresh)
            last = row[0] + len(fresh)
            db.execute(
                "UPDATE streams SET last = ?, state = ?, touched = ? WHERE id = ?",
                (last, state, now, stream),
            )
            if self._keep is not None:
                _trim(db, stream, last - self._keep)
            return bool(row[1])

        stopped = await self._write(job)
        self._ring(stream)
        return stopped

    async def _look(self, stream: str, owner: str, after: int, limit: int) -> Page:
        now = self._clock()

        def job(db: sqlite3.Connection) -> Page:
            row = db.execute(
                "SELECT first, last, state, touched FROM streams WHERE id = ? AND owner = ?",
                (stream, owner),
            ).fetchone()
            if row is None or now - row[3] >= self._keep_for:
                raise Gone
            rows = db.execute(
                "SELECT seq, data FROM entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
                (stream, after, limit),
            ).fetchall()
            alive = now - row[3] < self.lease
            return Page([Entry(*each) for each in rows], row[0], row[1], row[2], alive)

        return await self._read(job)

    def _expire(self, db: sqlite3.Connection, now: float) -> None:
        old = db.execute("SELECT id FROM streams WHERE touched <= ?", (now - self._keep_for,))
        for (stream,) in old.fetchall():
            db.execute("DELETE FROM entries WHERE stream = ?", (stream,))
            db.execute("DELETE FROM streams WHERE id = ?", (stream,))

    # --- jobs, in a thread ------------------------------------------------------------------------

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do this in a transaction. Whoever's turn it is commits for all who wait: one sync for many."""
        job = _Job(work)
        self._waiting.append(job)
        async with self._turns[True]:
            if not job.done:
                jobs, self._waiting = self._waiting, []
                await to_thread.run_sync(self._commit, jobs)
        if job.error is not None:
            raise job.error
        value: T = job.value
        return value

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            db = self._opened(True)
            db.execute("BEGIN IMMEDIATE")
            if len(jobs) == 1:
                jobs[0].run(db, "ROLLBACK")
            else:
                _run_apart(db, jobs)
            if db.in_transaction:
                db.execute("COMMIT")
        except sqlite3.Error as error:
            self._spoil(jobs, error)
        for job in jobs:
            job.done = True

    def _spoil(self, jobs: list[_Job], error: sqlite3.Error) -> None:
        """Nothing of this transaction is kept, and all who had a part in it hear so."""
        if (db := self._dbs.get(True)) is not None and db.in_transaction:
            db.execute("ROLLBACK")
        for job in jobs:
            job.error = self._unusable(error)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._turns[False]:
            return await to_thread.run_sync(self._seen, work)

    def _seen(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            db = self._opened(False)
            db.execute("BEGIN")  # what is seen is of one moment
            try:
                return work(db)
            finally:
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> LogUnavailable:
        return LogUnavailable(f"the log {self._path!r} cannot be used: {error}")

    def _opened(self, writes: bool) -> sqlite3.Connection:
        db = self._dbs.get(writes)
        if db is None:
            # The lock lets one thread in at a time, so the threads may differ.
            db = sqlite3.connect(
                self._path, timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            self._dbs[writes] = db
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(SCHEMA)
        return db


def _run_apart(db: sqlite3.Connection, jobs: list[_Job]) -> None:
    """Several jobs in one transaction, each of which may fail alone."""
    for job in jobs:
        db.execute("SAVEPOINT job")
        job.run(db, "ROLLBACK TO job")
        db.execute("RELEASE job")


def _fresh(
    db: sqlite3.Connection, stream: str, last: int, first: int, payloads: Sequence[bytes]
) -> list[tuple[str, int, bytes]]:
    """What of these is new; the same again is fine, something else under a used number is not."""
    rows = list(zip(repeat(stream), count(first), payloads))
    if first > last + 1:
        raise Conflict(f"number {first} was not expected after {last}")
    for _, seq, data in rows[: max(0, last + 1 - first)]:
        kept = db.execute("SELECT data FROM entries WHERE stream = ? AND seq = ?", (stream, seq))
        if (row := kept.fetchone()) is not None and row[0] != data:
            raise Conflict(f"number {seq} was told differently before")
    return rows[max(0, last + 1 - first) :]


def _trim(db: sqlite3.Connection, stream: str, through: int) -> None:
    if through > 0:
        db.execute("DELETE FROM entries WHERE stream = ? AND seq <= ?", (stream, through))
        db.execute("UPDATE streams SET first = max(first, ?) WHERE id = ?", (through + 1, stream))
