"""What a client cannot give back comes in under the id that it was told; by that id it is found again.

    served id -> the call's own id, where that came from, and what its provider wants back with it

Rule: of a call no arguments and no results are kept: only what it needs to go back to the provider that
made it, the thoughts before it included if that wants them back. In memory the oldest rows go when there
are too many; in a file, too. A file that fails at the start is refused; one that fails later keeps
nothing, which is noted, and no exchange ends by it.

    the id of an item -> the item (``Named``), for clients that leave it to their provider to keep it
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..conversation import Reasoning
from ..errors import UsageError
from ..events import Echo, Provenance, ToolCall
from ..notes import Scribe
from ..text.written import json_bytes

__all__ = ["FileStore", "Kept", "MemoryStore", "Named", "NotedStore", "Store", "store_at"]

MOST_KEPT = 20_000  # calls
MOST_BYTES = 64 * 1024 * 1024
LARGEST = 1024 * 1024  # bytes of one row: an echo can be an encrypted item, and no more


class Kept(msgspec.Struct, frozen=True):
    """What is to be known of a call that comes back."""

    id: str
    name: str  # of the tool, as the client calls it
    provenance: Provenance
    echo: Echo | None = None
    thoughts: tuple[Reasoning, ...] = ()  # since the call before, in envelopes …
    leads: int = 0  # … and how many of them came before all text

    @classmethod
    def of(
        cls, call: ToolCall, name: str, thoughts: tuple[Reasoning, ...] = (), leads: int = 0
    ) -> Kept:
        """Of this call, to a tool that the client calls so."""
        return cls(call.id, name, call.provenance, call.echo or None, thoughts, leads)

    def restored(self, call: ToolCall) -> ToolCall:
        """The call that came back, as its provider made it."""
        return msgspec.structs.replace(call, id=self.id, provenance=self.provenance, echo=self.echo)


class Store(Protocol):
    """Where such rows are kept."""

    def put(self, served: str, kept: Kept) -> None:
        """Keep it under the id that the client was told."""

    def get(self, served: str) -> Kept | None:
        """What was kept under that id."""


class MemoryStore:
    """For as long as the process lives.

    >>> store = MemoryStore(most=1)
    >>> store.put("a", Kept("1", "f", Provenance("natural")))
    >>> store.put("b", Kept("2", "f", Provenance("natural")))
    >>> store.get("a"), store.get("b").id
    (None, '2')
    """

    def __init__(self, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES) -> None:
        self._rows = _Rows(most, most_bytes)

    def put(self, served: str, kept: Kept) -> None:
        self._rows.put(served, _written(kept))

    def get(self, served: str) -> Kept | None:
        row = self._rows.get(served)
        return None if row is None else _read(row)

    def close(self) -> None:
        self._rows.clear()


class Named:
    """What clients were told and may later only name; in memory alone, and the latest of it.

    >>> named = Named()
    >>> named.put({"msg_1": {"text": "Hi"}})
    >>> named.get("msg_1"), named.get("msg_2")
    ({'text': 'Hi'}, None)
    """

    def __init__(self, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES) -> None:
        self._rows = _Rows(most, most_bytes)

    def put(self, told: Mapping[str, dict[str, Any]]) -> None:
        """Keep each under its name."""
        for name, said in told.items():
            self._rows.put(name, json_bytes(said))

    def get(self, name: str) -> dict[str, Any] | None:
        """What was told under that name."""
        row = self._rows.get(name)
        return None if row is None else msgspec.json.decode(row)


class _Rows:
    """The latest so many, and so many bytes."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._rows: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def put(self, key: str, row: bytes) -> None:
        self._size += len(row) - len(self._rows.pop(key, b""))
        self._rows[key] = row
        while len(self._rows) > self._most or self._size > self._most_bytes:
            self._size -= len(self._rows.popitem(last=False)[1])

    def get(self, key: str) -> bytes | None:
        row = self._rows.get(key)
        if row is not None:
            self._rows.move_to_end(key)
        return row

    def clear(self) -> None:
        self._rows.clear()
        self._size = 0


# Of a damaged schema SQLite speaks in the words of the file, which may be no text.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)


class FileStore:
    """In a file of this user's alone, which the next start finds."""

    def __init__(self, path: str | os.PathLike[str], most: int = MOST_KEPT) -> None:
        self._most = most
        where = Path(path)
        try:
            if not where.exists():  # one that is there keeps its rights, whatever it is
                where.touch(mode=0o600)
            self._file = sqlite3.connect(where, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS calls "
                "(number INTEGER PRIMARY KEY, served TEXT UNIQUE NOT NULL, kept BLOB NOT NULL)"
            )
            self._try_out()
        except (OSError, *_DAMAGED) as error:
            raise UsageError(f"cannot keep calls in {where}: {error}. Name another file") from error

    def _try_out(self) -> None:
        """A table that is there may be another's, or damaged: do all that is done later, and undo it."""
        self._file.execute("BEGIN IMMEDIATE")
        self.put("", Kept("", "", Provenance("natural")))
        self.get("")
        self._file.execute("ROLLBACK")

    def put(self, served: str, kept: Kept) -> None:
        with closing(self._file.cursor()) as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO calls (served, kept) VALUES (?, ?)",
                (served, _written(kept)),
            )
            cursor.execute("DELETE FROM calls WHERE number <= ?", (cursor.lastrowid - self._most,))  # type: ignore[operator]

    def get(self, served: str) -> Kept | None:
        with closing(self._file.cursor()) as cursor:
            found = cursor.execute("SELECT kept FROM calls WHERE served = ?", (served,)).fetchone()
        return None if found is None else _read(found[0])

    def close(self) -> None:
        self._file.close()


class NotedStore:
    """A store as one exchange has it: that it fails is noted, and is no reason to end."""

    def __init__(self, store: Store, scribe: Scribe) -> None:
        self._store, self._scribe = store, scribe

    def put(self, served: str, kept: Kept) -> None:
        try:
            self._store.put(served, kept)
        except _DAMAGED as error:
            self._scribe.note("call.forgotten", reason=str(error))

    def get(self, served: str) -> Kept | None:
        try:
            return self._store.get(served)
        except _DAMAGED as error:
            self._scribe.note("call.forgotten", reason=str(error))
            return None


def store_at(path: str | os.PathLike[str] | None) -> MemoryStore | FileStore:
    """In that file, or in memory."""
    return MemoryStore() if path is None else FileStore(path)


def _written(kept: Kept) -> bytes:
    row = msgspec.json.encode(kept)
    return row if len(row) <= LARGEST else msgspec.json.encode(
        msgspec.structs.replace(kept, echo=None, thoughts=())
    )  # fmt: skip


def _read(row: bytes) -> Kept | None:
    try:
        return msgspec.json.decode(row, type=Kept)
    except (msgspec.DecodeError, msgspec.ValidationError, TypeError, RecursionError):
        return None  # a file that others wrote to: the call goes back as the client has it
