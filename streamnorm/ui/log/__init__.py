"""Logs that streams are told from: frames in, the frames behind any position out.

Rule: a position is never reused, and a gap is told, so that a reader may leave and come back.

MemoryLog()                     one process; the default
SQLiteLog("streams.db")         one machine, many processes, restarts
RedisLog("redis://…")           many machines (extra ``redis``)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import (
    Busy,
    Conflict,
    Entry,
    EventLog,
    Gap,
    Gone,
    LogError,
    LogUnavailable,
    ProducerLost,
    Reader,
    Writer,
)
from .memory import MemoryLog
from .sqlite import SQLiteLog

if TYPE_CHECKING:
    from .redis import RedisLog

__all__ = [
    "Busy",
    "Conflict",
    "Entry",
    "EventLog",
    "Gap",
    "Gone",
    "LogError",
    "LogUnavailable",
    "MemoryLog",
    "ProducerLost",
    "Reader",
    "RedisLog",
    "SQLiteLog",
    "Writer",
]


def __getattr__(name: str) -> Any:
    if name == "RedisLog":  # takes redis with it, where that is installed
        from .redis import RedisLog

        return RedisLog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
