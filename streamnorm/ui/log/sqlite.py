"""Streams in a SQLite file: for one machine, any number of processes, and restarts.

Rule: one connection writes and one reads, each used by one thread at a time, so that readers never
keep the producer waiting; every write is a transaction that begins ``IMMEDIATE`` and is safe to
repeat. Those who wait share one, and whatever goes wrong in it, nothing of it is kept and each of them
hears so. WAL with ``synchronous=NORMAL``: an acknowledged entry survives
the death of the process, and the last ones may not survive a power cut, which is right for what a
page was about to show and history keeps better. Readers in this process are rung; news of others
are found by one look every ``poll`` seconds.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count, repeat
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from ...history.sqlite import turn_wal_on
from ...private import private_database
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
    View,
    is_writable,
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
VIEW = "SELECT id, last, state, touched FROM streams WHERE id = ?"


class _Job:
    """A piece of a transaction, and what came of it."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self._work = work
        self.done = False
        self.dropped = False  # nobody waits for it any more
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
        # Tasks wait for their turn. A thread that a cancelled task left behind is waited for, too.
        self._turns = {True: anyio.Lock(), False: anyio.Lock()}
        self._locks = {True: threading.Lock(), False: threading.Lock()}
        self._waiting: deque[_Job] = deque()

    async def aclose(self) -> None:
        await super().aclose()
        for writes in (True, False):
            async with self._turns[writes]:
                await self._in_thread(self._close, writes)

    def _close(self, writes: bool) -> None:
        with self._locks[writes]:
            self._drop(writes)

    async def stop(self, stream: str, *, owner: str) -> None:
        def job(db: sqlite3.Connection) -> int:
            mark = "UPDATE streams SET stopped = 1 WHERE id = ? AND owner = ?"
            return db.execute(mark, (stream, owner)).rowcount

        if not is_writable(stream, owner) or not await self._write(job):
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

        return await self._read(job) if is_writable(owner, chat) else []

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
        if payloads or state == "done":
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

    async def _views(self, streams: Sequence[str]) -> dict[str, View]:
        since = self._clock()

        def job(db: sqlite3.Connection) -> dict[str, View]:
            rows = [db.execute(VIEW, (stream,)).fetchone() for stream in streams]
            return {
                id: (last, state, since - touched < self.lease)
                for id, last, state, touched in filter(None, rows)
                if since - touched < self._keep_for
            }

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
        try:
            async with self._turns[True]:
                if not job.done:
                    await self._in_thread(self._commit)
        except BaseException:  # cancelled: if it was not begun, it never will be
            job.dropped = True
            raise
        if job.error is not None:
            raise job.error
        value: T = job.value
        return value

    def _commit(self) -> None:
        with self._locks[True]:
            jobs = self._taken()
            try:
                self._commit_all(jobs)
            except BaseException as error:  # noqa: BLE001  whatever it is, each of them must hear of it
                self._spoil(jobs, error)
            finally:
                for job in jobs:
                    job.done = True

    def _taken(self) -> list[_Job]:
        """Those that wait now; more may come meanwhile."""
        jobs: list[_Job] = []
        with suppress(IndexError):
            while True:
                jobs.append(self._waiting.popleft())
        return [job for job in jobs if not job.dropped]

    def _commit_all(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        db = self._opened(True)
        db.execute("BEGIN IMMEDIATE")
        if len(jobs) == 1:
            jobs[0].run(db, "ROLLBACK")
        else:
            _run_apart(db, jobs)
        if db.in_transaction:
            db.execute("COMMIT")

    def _spoil(self, jobs: list[_Job], error: BaseException) -> None:
        """Nothing of this transaction is kept, and all who had a part in it hear so."""
        self._drop(True)  # which undoes it, whatever state the connection is in
        for job in jobs:
            job.error = self._unusable(error)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._turns[False]:
            return await self._in_thread(self._seen, work)

    def _seen(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._locks[False]:
            try:
                db = self._opened(False)
                db.execute("BEGIN")  # what is seen is of one moment
                try:
                    return work(db)
                finally:
                    db.execute("COMMIT")
            except LogError:
                raise
            except BaseException as error:
                self._drop(False)
                raise self._unusable(error) from error

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        # A limiter of its own, so that handlers which fill the shared threads hold up nobody here.
        return await to_thread.run_sync(work, *args, limiter=anyio.CapacityLimiter(1))

    def _unusable(self, error: BaseException) -> LogUnavailable:
        known = isinstance(error, sqlite3.Error)
        why = str(error) if known else f"{type(error).__name__}: {error}"
        unusable = LogUnavailable(f"the log {self._path!r} cannot be used: {why}")
        unusable.__cause__ = error
        return unusable

    def _opened(self, writes: bool) -> sqlite3.Connection:
        db = self._dbs.get(writes)
        if db is None:
            private_database(self._path)
            # The lock lets one thread in at a time, so the threads may differ.
            db = self._dbs[writes] = sqlite3.connect(
                self._path, timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            turn_wal_on(db, BUSY)
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(SCHEMA)
        return db

    def _drop(self, writes: bool) -> None:
        """Undo what a connection did not commit, and close it; the next one is a new one."""
        if (db := self._dbs.pop(writes, None)) is not None:
            with suppress(sqlite3.Error):
                db.rollback()  # closing does not, while the traceback of an error holds a cursor
            with suppress(sqlite3.Error):
                db.close()


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
