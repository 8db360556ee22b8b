"""A file comes in; a history that many processes may write goes out. The embedded default.

Rule: a file that we make is nobody else's to read, and so are those beside it. WAL with
``synchronous=FULL`` (a commit that was acknowledged survives a power cut), and every
write begins with ``BEGIN IMMEDIATE``: a transaction that starts to read and then writes would fail
at once with "database is locked", however long we were ready to wait.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..private import private_database
from ..text.shown import clean
from .errors import (
    HistoryError,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    WrongVersion,
)
from .migrations import SQLITE
from .spool import Spool
from .sql import Database, SQLHistory

__all__ = ["MemoryHistory", "SQLiteHistory", "turn_wal_on"]

MEMORY = ":memory:"
BUSY = 30.0  # seconds to wait for another process
APPLICATION = 0x53746E6D  # "Stnm", in the header of the file: whose database it is

# The primary code of SQLite's error -> ours, and what it means
_ERRORS: dict[int, tuple[type[HistoryError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreUnavailable, "another process kept it locked"),
    sqlite3.SQLITE_LOCKED: (StoreUnavailable, "another process kept it locked"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "it can only be read"),
    sqlite3.SQLITE_PERM: (StoreReadOnly, "no permission"),
    sqlite3.SQLITE_FULL: (StoreFull, "the disk or the allowed size is used up"),
    sqlite3.SQLITE_IOERR: (StoreFull, "the disk does not take or give the bytes"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "the file is damaged"),
    sqlite3.SQLITE_NOTADB: (WrongVersion, "the file is no database"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "it cannot be opened"),
}


class SQLiteHistory(SQLHistory):
    """Conversations in one SQLite file. ``max_bytes`` bounds its size; with a ``spool``, large media
    that a model made lie there.

    >>> import anyio
    >>> from streamnorm import Conversation
    >>> async def main():
    ...     async with SQLiteHistory(":memory:") as history:
    ...         await history.commit("c", "run", 0, Conversation().user("Hi").turns, create=True)
    ...         return (await history.load("c")).turns[0].text
    >>> anyio.run(main)
    'Hi'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy: float = BUSY,
        max_bytes: int | None = None,
        spool: Spool | None = None,
    ) -> None:
        super().__init__(spool)
        self.path = os.fspath(path)
        self._busy, self._max_bytes = busy, max_bytes
        self._db: dict[bool, sqlite3.Connection] = {}  # by: does it write?

    async def settings(self) -> dict[str, Any]:
        """What the database says of itself: journal mode, synchronous, schema version, its check."""
        names = ("journal_mode", "synchronous", "user_version", "quick_check")

        def job(db: Database) -> dict[str, Any]:
            return {name: db.execute(_PRAGMAS[name]).fetchone()[0] for name in names}

        return await self._write(job)

    # --- for SQLHistory ---------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Database]:
        db = self._connected(write=write)
        db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield db
        except BaseException:
            with suppress(sqlite3.Error):  # after some errors SQLite has rolled back by itself
                db.execute("ROLLBACK")
            raise
        try:
            db.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._ours(error) from error
        except UnicodeDecodeError as error:  # what SQLite says of a schema that is damaged
            raise StoreCorrupt(f"{self.path}: the file is damaged ({error.reason})") from error

    def _close(self, *, write: bool) -> None:
        if (db := self._db.pop(write, None)) is not None:
            db.close()

    def _executor(self, *, write: bool) -> Any:
        # A database in memory is one connection, so one thread does both.
        return super()._executor(write=write or self.path == MEMORY)

    # --- opening ----------------------------------------------------------------------------------

    def _connected(self, *, write: bool) -> sqlite3.Connection:
        write = write or self.path == MEMORY
        if write not in self._db:
            self._db[write] = self._open_writer() if write else self._open_reader()
        return self._db[write]

    def _open_writer(self) -> sqlite3.Connection:
        private_database(self.path)
        db = sqlite3.connect(
            self.path, timeout=self._busy, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")
        if _version(db) < len(SQLITE):
            self._migrate(db)
        if self._max_bytes is not None:
            size = db.execute("PRAGMA page_size").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {max(1, self._max_bytes // size)}")

    def _migrate(self, db: sqlite3.Connection) -> None:
        turn_wal_on(db, self._busy)
        db.execute("BEGIN EXCLUSIVE")
        try:
            for number, step in enumerate(SQLITE[_version(db) :], start=_version(db) + 1):
                for statement in step:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    def _open_reader(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            self._open_writer().close()  # a new history is empty, not an error
        last: sqlite3.Error | None = None
        for option in self._reading():
            db = sqlite3.connect(
                f"{Path(self.path).resolve().as_uri()}?{option}", uri=True,
                timeout=self._busy, isolation_level=None, check_same_thread=False,
            )  # fmt: skip
            try:
                if _version(db) < len(SQLITE):
                    db.close()
                    self._open_writer().close()
                    return self._open_reader()
                return db
            except sqlite3.OperationalError as error:
                db.close()
                last = error
            except BaseException:
                db.close()
                raise
        assert last is not None
        raise last

    def _reading(self) -> tuple[str, ...]:
        # A WAL database in a folder that nobody may write can only be read as one that never
        # changes, which is true as long as there is no log beside it.
        log = Path(self.path + "-wal")
        is_still = not log.exists() or log.stat().st_size == 0
        return ("mode=ro", "mode=ro&immutable=1") if is_still else ("mode=ro",)

    def _ours(self, error: sqlite3.Error) -> HistoryError:
        code = getattr(error, "sqlite_errorcode", None)
        kind, why = _ERRORS.get((code or 0) & 0xFF, (HistoryError, "the database failed"))
        ours = kind(f"{self.path}: {why} ({clean(str(error))})")
        if isinstance(ours, StoreCorrupt):
            ours.turns = getattr(error, "turns", [])
        return ours


class MemoryHistory(SQLiteHistory):
    """A history that lives as long as the object: SQLite without a file, for tests.

    It is the same code as the file, so what a test shows with it holds for that, too. It need not be
    closed: with the object its database goes.
    """

    def __init__(self) -> None:
        super().__init__(MEMORY)
        weakref.finalize(self, _close_all, self._db)


def _close_all(connections: dict[bool, sqlite3.Connection]) -> None:
    for db in connections.values():
        db.close()


_PRAGMAS = {
    "journal_mode": "PRAGMA journal_mode",
    "synchronous": "PRAGMA synchronous",
    "user_version": "PRAGMA user_version",
    "quick_check": "PRAGMA quick_check",
}


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    owner: int = db.execute("PRAGMA application_id").fetchone()[0]
    if version > len(SQLITE) and owner == APPLICATION:
        raise WrongVersion(
            f"this history is of version {version}, and this library knows {len(SQLITE)}; "
            "update streamnorm"
        )
    if owner != APPLICATION and (owner or version or _has_tables(db)):
        raise WrongVersion("this SQLite file is no history of streamnorm; choose another path")
    return version


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone())


def turn_wal_on(db: sqlite3.Connection, patience: float) -> None:
    """Have readers and a writer side by side, in this file and for good."""
    # SQLite does not wait for the lock that this takes, so processes that open a new file together
    # ask again.
    end = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.005)
