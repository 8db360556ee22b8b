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
from typing import TypeVar

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
    LogUnavailable,
    Page,
    State,
)

__all__ = ["SQLiteLog"]

T = TypeVar("T")
BUSY = 30.0  # seconds to wait for another process

SCHEMA = """
CREATE TABLE IF NOT EXISTS streams (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, chat TEXT, made REAL NOT NULL, touched REAL NOT NULL,
    first INTEGER NOT NULL DEFAULT 1, last INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'open', stopped INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chats ON streams (owner, chat, made);
CREATE INDEX IF NOT EXISTS ages ON streams (touched);
CREATE TABLE IF NOT EXISTS entries (
    stream TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
"""
NEWEST = (
    "SELECT id, state, touched FROM streams WHERE owner = ? AND chat = ? ORDER BY made DESC LIMIT 1"
)


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
        self._turns: dict[bool, anyio.CapacityLimiter] = {}

    async def aclose(self) -> None:
        for writes in list(self._dbs):
            db = self._dbs.pop(writes)
            await to_thread.run_sync(db.close, limiter=self._turns[writes])

    async def stop(self, stream: str, *, owner: str) -> None:
        def job(db: sqlite3.Connection) -> int:
            mark = "UPDATE streams SET stopped = 1 WHERE id = ? AND owner = ?"
            return db.execute(mark, (stream, owner)).rowcount

        if not await self._run(job):
            raise Gone

    async def _create(self, stream: str, owner: str, chat: str | None) -> None:
        now = self._clock()

        def job(db: sqlite3.Connection) -> None:
            self._expire(db, now)
            row = db.execute(NEWEST, (owner, chat)).fetchone() if chat is not None else None
            if row is not None and row[1] == "open" and now - row[2] < self.lease:
                raise Busy(row[0])
            db.execute(
                "INSERT INTO streams (id, owner, chat, made, touched) VALUES (?, ?, ?, ?, ?)",
                (stream, owner, chat, now, now),
            )

        await self._run(job)

    async def _chat_stream(self, owner: str, chat: str) -> str | None:
        def job(db: sqlite3.Connection) -> str | None:
            row = db.execute(NEWEST, (owner, chat)).fetchone()
            return None if row is None else str(row[0])

        return await self._run(job, writes=False)

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

        stopped = await self._run(job)
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

        return await self._run(job, writes=False)

    def _expire(self, db: sqlite3.Connection, now: float) -> None:
        old = db.execute("SELECT id FROM streams WHERE touched <= ?", (now - self._keep_for,))
        for (stream,) in old.fetchall():
            db.execute("DELETE FROM entries WHERE stream = ?", (stream,))
            db.execute("DELETE FROM streams WHERE id = ?", (stream,))

    # --- one job at a time, in a thread -----------------------------------------------------------

    async def _run(self, job: Callable[[sqlite3.Connection], T], *, writes: bool = True) -> T:
        if writes not in self._turns:
            self._turns[writes] = anyio.CapacityLimiter(1)
        return await to_thread.run_sync(self._within, job, writes, limiter=self._turns[writes])

    def _within(self, job: Callable[[sqlite3.Connection], T], writes: bool) -> T:
        try:
            db = self._opened(writes)
            db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                value = job(db)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        except sqlite3.Error as error:
            raise LogUnavailable(f"the log {self._path!r} cannot be used: {error}") from error
        return value

    def _opened(self, writes: bool) -> sqlite3.Connection:
        db = self._dbs.get(writes)
        if db is None:
            # The limiter lets one thread in at a time, so the threads may differ.
            db = sqlite3.connect(
                self._path, timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            self._dbs[writes] = db
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(SCHEMA)
        return db


def _fresh(
    db: sqlite3.Connection, stream: str, last: int, first: int, payloads: Sequence[bytes]
) -> list[tuple[str, int, bytes]]:
    """What of these is new; the same again is fine, something else under a used number is not."""
    rows = [(stream, seq, data) for seq, data in enumerate(payloads, first)]
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
