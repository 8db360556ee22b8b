"""The stores that the tests of histories run over: memory, a SQLite file, a real PostgreSQL."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamnorm import Conversation, Text, ToolCall, ToolResult, Turn
from streamnorm.history import History, MemoryHistory, SQLiteHistory

Opener = Callable[[], History]

DSN = os.environ.get("STREAMNORM_POSTGRES")
NO_POSTGRES = "STREAMNORM_POSTGRES names no PostgreSQL"
needs_postgres = pytest.mark.skipif(not DSN, reason=NO_POSTGRES)
EVERYWHERE = ["memory", "sqlite", pytest.param("postgres", marks=needs_postgres)]
ON_DISK = EVERYWHERE[1:]


@contextmanager
def postgres_schema() -> Iterator[str]:
    """A schema of its own, gone at the end."""
    import psycopg
    from psycopg import sql

    name = f"t_{uuid.uuid4().hex}"
    yield name
    with psycopg.connect(str(DSN), autocommit=True) as db:
        db.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@contextmanager
def opener(kind: str, folder: Path) -> Iterator[Opener]:
    """A function that opens the same store each time it is called."""
    if kind == "memory":
        history = MemoryHistory()
        yield lambda: history
    elif kind == "sqlite":
        yield lambda: SQLiteHistory(folder / "history.db")
    else:
        from streamnorm.history import PostgresHistory

        with postgres_schema() as schema:
            yield lambda: PostgresHistory(str(DSN), schema=schema)


# --- turns to store -------------------------------------------------------------------------------


def user(text: str = "Hi") -> Turn:
    return Turn("user", (Text(text),))


def call(id: str = "call_1", name: str = "f", **arguments: object) -> ToolCall:
    return ToolCall(0, id, name, arguments, "{}")


def asks(*calls: ToolCall) -> Turn:
    return Turn("assistant", calls)


def gives(*calls: ToolCall, output: object = "done") -> Turn:
    return Turn("tool", tuple(ToolResult.for_call(c, output) for c in calls))


def talk(*turns: Turn) -> Conversation:
    return Conversation(list(turns))
