"""Conversations that survive: turns and settled calls in, the same conversation out, after a crash too.

Rule: what was acknowledged is there, whole and once. One interface, three stores:

    async with SQLiteHistory("chat.db") as history:          # one machine, many processes
    async with PostgresHistory("postgresql://…") as history: # many machines
    async with MemoryHistory() as history:                   # tests

``docs/history.md`` tells what is stored when, and what is left after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import CallState, Committed, History, Stored
from .errors import (
    CommitConflict,
    ConversationMoved,
    ForeignDecision,
    ForeignResult,
    HistoryConflict,
    HistoryError,
    NotStorable,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownConversation,
    WrongVersion,
)
from .sqlite import MemoryHistory, SQLiteHistory

if TYPE_CHECKING:
    from .postgres import PostgresHistory

__all__ = [
    "CallState",
    "CommitConflict",
    "Committed",
    "ConversationMoved",
    "ForeignDecision",
    "ForeignResult",
    "History",
    "HistoryConflict",
    "HistoryError",
    "MemoryHistory",
    "NotStorable",
    "PostgresHistory",
    "SQLiteHistory",
    "StoreCorrupt",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "Stored",
    "UnknownConversation",
    "WrongVersion",
]


def __getattr__(name: str) -> Any:
    if name == "PostgresHistory":  # takes psycopg with it, where that is installed
        from .postgres import PostgresHistory

        return PostgresHistory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
