"""A PostgreSQL address comes in; a history for many machines goes out.

Rule: the row of a conversation is locked while one commit appends to it, so sequences are gapless
whoever writes. A commit that is lost with its connection is sent once more over a new one: it has a
name, so it is stored once.

psycopg works in the two threads of ``SQLHistory``, not on the event loop: its async connections know
asyncio only, and these run under trio as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ..errors import needs
from .errors import (
    HistoryError,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    WrongVersion,
)
from .migrations import POSTGRES
from .spool import Spool
from .sql import FIND, Database, SQLHistory

with suppress(ImportError):  # an extra, asked for when a history is made
    import psycopg
    from psycopg import errors, sql

__all__ = ["PostgresHistory"]

T = TypeVar("T")

CONNECT_SECONDS = 10
MIGRATION_LOCK = 0x53746E6D  # one process migrates, others wait


class PostgresHistory(SQLHistory):
    """Conversations in PostgreSQL; the tables stand in ``schema``, which is made if it is missing.
    With a ``spool``, large media that a model made lie there.

    ::

        async with PostgresHistory("postgresql://app@db/chats") as history: ...
    """

    LOCK = FIND + " FOR UPDATE"

    def __init__(self, dsn: str, *, schema: str = "public", spool: Spool | None = None) -> None:
        needs("psycopg", "PostgresHistory", extra="postgres")
        super().__init__(spool)
        self._dsn, self._schema = dsn, schema
        self._db: dict[bool, psycopg.Connection[Any]] = {}

    # --- for SQLHistory ---------------------------------------------------------------------------

    def _done(self, job: Callable[[Database], T], *, write: bool) -> T:
        try:
            return super()._done(job, write=write)
        except StoreUnavailable:
            if not self._lost(write=write):
                raise
            return super()._done(job, write=write)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Database]:
        db = self._connected(write=write)
        with db.transaction():
            yield _Postgres(db)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise _ours(error) from error

    def _close(self, *, write: bool) -> None:
        if (db := self._db.pop(write, None)) is not None:
            with suppress(psycopg.Error):
                db.close()

    # --- opening ----------------------------------------------------------------------------------

    def _lost(self, *, write: bool) -> bool:
        """Was there a connection that is gone now?"""
        if (db := self._db.get(write)) is None or not (db.closed or db.broken):
            return False
        self._close(write=write)
        return True

    def _connected(self, *, write: bool) -> psycopg.Connection[Any]:
        if write not in self._db:
            db = psycopg.connect(self._dsn, connect_timeout=CONNECT_SECONDS, autocommit=True)
            try:
                self._prepare(db, write=write)
            except BaseException:
                db.close()
                raise
            self._db[write] = db
        return self._db[write]

    def _prepare(self, db: psycopg.Connection[Any], *, write: bool) -> None:
        schema = sql.Identifier(self._schema)
        db.execute(sql.SQL("SET search_path TO {}").format(schema))
        if _version(db) < len(POSTGRES):
            self._migrate(db, schema)
        if not write:
            # One picture of the conversation, whatever others append meanwhile.
            db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    def _migrate(self, db: psycopg.Connection[Any], schema: sql.Identifier) -> None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            db.execute("CREATE TABLE IF NOT EXISTS streamnorm_version (version BIGINT NOT NULL)")
            for number, step in enumerate(POSTGRES[_version(db) :], start=_version(db) + 1):
                for statement in step:
                    db.execute(statement)
                db.execute("DELETE FROM streamnorm_version")
                db.execute("INSERT INTO streamnorm_version VALUES (%s)", (number,))


class _Postgres:
    """A connection that takes the statements of ``SQLHistory``."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        return self._db.execute(statement.replace("?", "%s"), values, binary=True)


def _version(db: psycopg.Connection[Any]) -> int:
    found = db.execute("SELECT to_regclass('streamnorm_version')").fetchone()
    row = (
        db.execute("SELECT version FROM streamnorm_version").fetchone()
        if found and found[0]
        else None
    )
    version: int = row[0] if row else 0
    if version > len(POSTGRES):
        raise WrongVersion(
            f"this history is of version {version}, and this library knows {len(POSTGRES)}; "
            "update streamnorm"
        )
    return version


def _errors() -> tuple[tuple[type[Exception], type[HistoryError], str], ...]:
    """psycopg's error -> ours, and what it means; the first that fits counts."""
    return (
        (errors.ReadOnlySqlTransaction, StoreReadOnly, "it can only be read"),
        (errors.InsufficientPrivilege, StoreReadOnly, "no permission"),
        (errors.DiskFull, StoreFull, "the disk is full"),
        (errors.DataCorrupted, StoreCorrupt, "it is damaged"),
        (errors.IndexCorrupted, StoreCorrupt, "it is damaged"),
        (psycopg.OperationalError, StoreUnavailable, "it cannot be reached"),
        (psycopg.InterfaceError, StoreUnavailable, "it cannot be reached"),
    )


def _ours(error: psycopg.Error) -> HistoryError:
    for theirs, ours, why in _errors():
        if isinstance(error, theirs):
            named = ours(f"PostgreSQL: {why} ({error})")
            if isinstance(named, StoreCorrupt):
                named.turns = getattr(error, "turns", [])
            return named
    return HistoryError(f"PostgreSQL: {error}")
