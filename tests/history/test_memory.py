"""The history in memory: what is its own beside the file's."""

from __future__ import annotations

import gc
import sqlite3

import pytest

from streamnorm.history import MemoryHistory


def connections() -> list[sqlite3.Connection]:
    return [one for one in gc.get_objects() if isinstance(one, sqlite3.Connection)]


async def test_a_history_in_memory_that_nobody_closes_closes_its_database_when_it_goes():
    before = {id(one) for one in connections()}
    history = MemoryHistory()
    await history.create("c")
    (database,) = (one for one in connections() if id(one) not in before)
    assert database.execute("SELECT 1").fetchone() == (1,)
    del history
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")
