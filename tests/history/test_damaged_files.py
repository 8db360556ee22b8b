"""A SQLite file that a disk has damaged: what can be read is read, and the rest is an error of ours."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamnorm.errors import StreamnormError
from streamnorm.history import SQLiteHistory
from streamnorm.history.errors import StoreCorrupt, UnknownConversation, WrongVersion
from tests.conftest import ALL
from tests.encoding.mutants import talk_on

NAMES = [f"chat {number} é" for number in range(4)]
TURNS = talk_on("anthropic").turns
OURS = StreamnormError


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("intact") / "history.db"

    async def fill() -> None:
        async with SQLiteHistory(path) as history:
            for name in NAMES:
                await history.commit(name, "run", 0, TURNS[:2], create=True, system="Be brief é")
                await history.commit(name, "run", 1, TURNS[2:])

    anyio.run(fill)
    _in_one_file(path)
    return path.read_bytes()


def _in_one_file(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode=DELETE")
    db.close()


def damaged(data: bytes, dice: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 5, 30, 300])):
        at = dice.randrange(len(made))
        match dice.randrange(8):
            case 0 | 1 | 2 | 3:
                made[at] ^= 1 << dice.randrange(8)
            case 4 | 5:
                made[at] = dice.randrange(256)
            case 6:
                made[at : at + 64] = dice.randbytes(64)
            case _:
                del made[at + 1 :]
    return bytes(made)


async def everything(path: Path) -> None:
    """Each thing that can be asked of a history, whatever the one before it met."""
    async with SQLiteHistory(path, busy=0.2) as history:
        acts: list[Any] = [
            history.conversations, history.settings, lambda: history.load(NAMES[1]),
            lambda: history.load(NAMES[2], until=1), lambda: history.commit(NAMES[1], "run", 2, TURNS[:1]),
            lambda: history.commit(NAMES[2], "run", 1, TURNS[2:]), lambda: history.delete(NAMES[3]),
            lambda: history.create("new"), lambda: history.hand_over(NAMES[0], "service"),
            lambda: history.load(NAMES[0]),
        ]  # fmt: skip
        for act in acts:
            try:
                await act()
            except OURS:
                continue


def test_flipped_bytes_of_a_history_raise_nothing_foreign(intact: bytes, tmp_path: Path):
    for seed in range(3_000 if ALL else 120):
        path = tmp_path / f"{seed}.db"
        path.write_bytes(damaged(intact, random.Random(seed)))
        with suppress(OURS):
            anyio.run(everything, path)
        for end in ("", "-wal", "-shm", "-journal"):
            if os.path.exists(f"{path}{end}"):
                os.remove(f"{path}{end}")


# Every column, with a value of another type in it: SQLite takes any.
COLUMNS = [
    ("conversations", "id"), ("conversations", "system"), ("conversations", "service_id"),
    ("conversations", "turns"), ("turns", "seq"), ("turns", "body"), ("turns", "digest"), ("calls", "seq"),
    ("calls", "position"), ("calls", "id"), ("calls", "name"), ("calls", "checksum"), ("calls", "answered"),
    ("calls", "settled"), ("calls", "settled_digest"), ("commits", "sequence"), ("commits", "first"),
    ("commits", "count"), ("commits", "digest"),
]  # fmt: skip
VALUES = [None, 7, -1, 2**62, 1.5, "x", "é", b"", b"\xff\xfe", b"{}", b'{"id":[]}', b"[" * 5000]


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=map(".".join, COLUMNS))
async def test_a_value_of_another_type_is_damage(
    intact: bytes, tmp_path: Path, table: str, column: str
):
    for number, value in enumerate(VALUES):
        path = tmp_path / f"{number}.db"
        path.write_bytes(intact)
        with closing(sqlite3.connect(path)) as db, db:
            try:
                sql = f"UPDATE streamnorm_{table} SET {column} = ?"  # noqa: S608
                db.execute(sql, (value,))
            except sqlite3.IntegrityError:
                continue  # it does mind
        await everything(path)


def _change(path: Path, data: bytes, sql: str, values: tuple[Any, ...]) -> None:
    path.write_bytes(data)
    with sqlite3.connect(path) as db:
        db.execute(sql, values)
    db.close()


async def _refused(
    data: bytes, path: Path, sql: str, values: tuple[Any, ...] = ()
) -> StreamnormError:
    _change(path, data, sql, values)
    async with SQLiteHistory(path) as history:
        with pytest.raises(StreamnormError) as caught:
            await history.load(NAMES[0])
    return caught.value


async def test_a_damaged_call_leaves_the_turns_readable(intact: bytes, tmp_path: Path):
    error = await _refused(
        intact, tmp_path / "h.db", "UPDATE streamnorm_calls SET name = ?", (b"\xff\xfe",)
    )
    assert isinstance(error, StoreCorrupt)
    assert error.turns == TURNS


async def test_a_record_that_is_none_leaves_the_turns_readable(intact: bytes, tmp_path: Path):
    error = await _refused(
        intact, tmp_path / "h.db", "UPDATE streamnorm_calls SET settled = ?", (b'{"id":7}',)
    )
    assert isinstance(error, StoreCorrupt)
    assert error.turns == TURNS
    assert "settled record" in str(error)


async def test_a_schema_that_is_no_text_is_damage(intact: bytes, tmp_path: Path):
    """SQLite says so with the words of the file, which Python then cannot read."""
    at = intact.index(b"CREATE TABLE streamnorm_turns")
    path = tmp_path / "history.db"
    path.write_bytes(intact[:at] + b"\xff\xfe\x1b[2J" + intact[at + 6 :])
    async with SQLiteHistory(path) as history:
        with pytest.raises((StoreCorrupt, WrongVersion)) as caught:
            await history.load(NAMES[0])
    assert "\x1b" not in str(caught.value)


async def test_what_is_intact_is_read(intact: bytes, tmp_path: Path):
    path = tmp_path / "history.db"
    path.write_bytes(intact)
    async with SQLiteHistory(path) as history:
        assert await history.conversations() == NAMES
        assert (await history.load(NAMES[0])).turns == TURNS
        with pytest.raises(UnknownConversation):
            await history.load("another")
