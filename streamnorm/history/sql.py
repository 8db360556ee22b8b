"""Commits come in; statements go out to a database, in one transaction each, by one thread.

Rule: one thread writes and one reads, each with a connection of its own (a connection of SQLite
belongs to its thread, and a second writer in the same process could only wait). A cancelled caller
waits for the statement that is under way: it is told "cancelled" either before anything began or
after all of it is stored. Every value is a bound parameter.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

import anyio
from anyio import to_thread

from ..conversation import Turn
from ..errors import UsageError
from ..events import ToolCall
from ..text.shown import words_of
from ..tools import ToolResult
from . import rows
from .base import CallState, Committed, History, State, Stored
from .errors import (
    CommitConflict,
    ConversationMoved,
    ForeignResult,
    StoreCorrupt,
    UnknownConversation,
)
from .settled import Settled
from .spool import Spool

__all__ = ["SQLHistory"]

T = TypeVar("T")

FIND = "SELECT key, system, service_id, turns FROM streamnorm_conversations WHERE id = ?"
CREATE = (
    "INSERT INTO streamnorm_conversations (id, system) VALUES (?, ?) ON CONFLICT (id) DO NOTHING"
)
FIND_COMMIT = (
    "SELECT first, count, digest FROM streamnorm_commits"
    " WHERE conversation = ? AND run = ? AND sequence = ?"
)
LAST_COMMIT = (
    "SELECT sequence FROM streamnorm_commits WHERE conversation = ? AND run = ?"
    " ORDER BY sequence DESC LIMIT 1"
)
ADD_TURN = "INSERT INTO streamnorm_turns (conversation, seq, body, digest) VALUES (?, ?, ?, ?)"
ADD_CALL = (
    "INSERT INTO streamnorm_calls (conversation, seq, position, id, name, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
FIND_CALL = (
    "SELECT seq, position, checksum, answered, settled IS NOT NULL FROM streamnorm_calls"
    " WHERE conversation = ? AND id = ? ORDER BY seq DESC, position DESC LIMIT 1"
)
ANSWER = (
    "UPDATE streamnorm_calls SET answered = ? WHERE conversation = ? AND seq = ? AND position = ?"
)
SETTLE = (
    "UPDATE streamnorm_calls SET settled = ?, settled_digest = ?"
    " WHERE conversation = ? AND seq = ? AND position = ?"
)
GROW = (
    "UPDATE streamnorm_conversations SET turns = ?, system = coalesce(?, system),"
    " service_id = coalesce(?, service_id) WHERE key = ?"
)
ADD_COMMIT = (
    "INSERT INTO streamnorm_commits (conversation, run, sequence, first, count, digest)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
FORGET = (
    "DELETE FROM streamnorm_calls WHERE conversation = ?",
    "DELETE FROM streamnorm_turns WHERE conversation = ?",
)
HAND_OVER = (
    "UPDATE streamnorm_conversations SET turns = 0, service_id = ?, system = coalesce(?, system)"
    " WHERE key = ?"
)
TURNS = (
    "SELECT seq, body, digest FROM streamnorm_turns WHERE conversation = ? AND seq < ? ORDER BY seq"
)
CALLS = (
    "SELECT seq, id, name, checksum, answered, settled, settled_digest FROM streamnorm_calls"
    " WHERE conversation = ? AND seq < ? ORDER BY seq, position"
)
ALL = "SELECT id FROM streamnorm_conversations ORDER BY key"
DELETE = "DELETE FROM streamnorm_conversations WHERE id = ?"


class _Taken(Exception):
    """A call that is to be claimed has a record or a result."""


class Database(Protocol):
    """A connection, as this file uses it."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any: ...


class SQLHistory(History):
    """What SQLite and PostgreSQL have in common; a subclass opens connections and names errors."""

    LOCK: ClassVar[str] = FIND  # finds a conversation and keeps other writers from it

    def __init__(self, spool: Spool | None = None) -> None:
        self.spool = spool
        self._writer: ThreadPoolExecutor | None = None
        self._reader: ThreadPoolExecutor | None = None
        self._closed = False

    # --- what a database adds ---------------------------------------------------------------------

    def _transaction(self, *, write: bool) -> AbstractContextManager[Database]:
        """A transaction; in the thread that owns the connection."""
        raise NotImplementedError

    def _named(self) -> AbstractContextManager[None]:
        """Errors of the database, as ours."""
        raise NotImplementedError

    def _close(self, *, write: bool) -> None:
        """Close the connection; in the thread that owns it."""
        raise NotImplementedError

    def at(self, moment: str) -> None:
        """Called at the named moments of a write, in the writer's thread: ``begun``, ``turn``,
        ``grown``, ``forgotten``, ``recorded``, ``committed``, ``journal``, ``journalled``. Tests of
        crashes die here."""

    # --- the promises -----------------------------------------------------------------------------

    async def create(self, conversation: str, *, system: str | None = None) -> None:
        await self._write(lambda db: db.execute(CREATE, (_key(conversation), _maybe(system))))

    async def commit(
        self,
        conversation: str,
        run: str,
        sequence: int,
        turns: Sequence[Turn],
        *,
        settled: Sequence[Settled] = (),
        system: str | None = None,
        service_id: str | None = None,
        expect: int | None = None,
        create: bool = False,
    ) -> Committed:
        if not conversation or not run or sequence < 0:
            raise UsageError("a commit needs a conversation, a run and a sequence from 0 up")
        if (spool := self.spool) is not None:  # on the disk before the turn that refers to it
            turns = await to_thread.run_sync(lambda: [spool.kept(turn) for turn in turns])
        commit = _Commit(
            conversation, run, sequence, turns, settled, system, service_id, expect, create
        )
        done = await self._write(lambda db: commit.write(db, self.LOCK, self.at))
        self.at("committed")
        return done

    async def settle(self, conversation: str, record: Settled) -> None:
        data = rows.settled_to_bytes(record)

        def job(db: Database) -> None:
            key = _found(db, self.LOCK, conversation)[0]
            seq, position, *_ = _called(db, key, record.id, record.checksum, conversation)
            db.execute(SETTLE, (data, _digest(data), key, seq, position))
            self.at("journal")

        await self._write(job)
        self.at("journalled")

    async def claim(self, conversation: str, records: Sequence[Settled]) -> bool:
        written = [(record, rows.settled_to_bytes(record)) for record in records]

        def job(db: Database) -> bool:
            key = _found(db, self.LOCK, conversation)[0]
            for record, data in written:
                seq, position, _, answered, is_settled = _called(
                    db, key, record.id, record.checksum, conversation
                )
                if answered is not None or is_settled:
                    raise _Taken
                db.execute(SETTLE, (data, _digest(data), key, seq, position))
            self.at("journal")
            return True

        try:
            claimed = await self._write(job)
        except _Taken:  # raised, so that nothing of it is kept
            return False
        self.at("journalled")
        return claimed

    async def hand_over(
        self,
        conversation: str,
        service_id: str,
        *,
        system: str | None = None,
        expect: int | None = None,
    ) -> None:
        def job(db: Database) -> None:
            db.execute(CREATE, (_key(conversation), _maybe(system)))
            key, _, _, count = _found(db, self.LOCK, conversation)
            self.at("begun")
            _check_count(conversation, count, expect)
            for statement in FORGET:
                db.execute(statement, (key,))
                self.at("forgotten")
            db.execute(HAND_OVER, (_key(service_id), _maybe(system), key))
            self.at("recorded")

        await self._write(job)
        self.at("committed")

    async def load(self, conversation: str, *, until: int | None = None) -> Stored:
        spool = self.spool

        def job(db: Database) -> Stored:
            stored = _load(db, conversation, until)
            if spool is not None:
                stored.turns[:] = [spool.filled(turn) for turn in stored.turns]
            return stored

        return await self._read(job)

    async def conversations(self) -> list[str]:
        return await self._read(lambda db: [_text(row[0]) for row in db.execute(ALL).fetchall()])

    async def delete(self, conversation: str) -> None:
        await self._write(lambda db: db.execute(DELETE, (_key(conversation),)))

    async def aclose(self) -> None:
        self._closed = True
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        with anyio.CancelScope(shield=True):
            for executor, write in ((reader, False), (writer, True)):
                if executor is not None:
                    await _wait(executor, partial(self._close, write=write))
                    executor.shutdown(wait=False)

    # --- threads ----------------------------------------------------------------------------------

    async def _write(self, job: Callable[[Database], T]) -> T:
        return await _wait(self._executor(write=True), lambda: self._done(job, write=True))

    async def _read(self, job: Callable[[Database], T]) -> T:
        return await _wait(self._executor(write=False), lambda: self._done(job, write=False))

    def _done(self, job: Callable[[Database], T], *, write: bool) -> T:
        with self._named(), self._transaction(write=write) as db:
            return job(db)

    def _executor(self, *, write: bool) -> ThreadPoolExecutor:
        if self._closed:
            raise UsageError("this history is closed")
        if write:
            self._writer = self._writer or ThreadPoolExecutor(1, "streamnorm-writer")
            return self._writer
        self._reader = self._reader or ThreadPoolExecutor(1, "streamnorm-reader")
        return self._reader


async def _wait(executor: ThreadPoolExecutor, job: Callable[[], T]) -> T:
    # A limiter of its own, so that handlers which fill the shared threads do not hold up a commit.
    # Not abandoned when cancelled: a commit that is under way ends, and its caller knows.
    return await to_thread.run_sync(
        lambda: executor.submit(job).result(), limiter=anyio.CapacityLimiter(1)
    )


class _Commit:
    """One commit on its way; prepared in the caller's thread, written in the writer's."""

    def __init__(
        self,
        conversation: str,
        run: str,
        sequence: int,
        turns: Sequence[Turn],
        settled: Sequence[Settled],
        system: str | None,
        service_id: str | None,
        expect: int | None,
        create: bool,
    ) -> None:
        self.conversation, self.run, self.sequence = conversation, run, sequence
        self.turns = list(turns)
        self.bodies = [rows.turn_to_bytes(turn) for turn in turns]
        # In the order of the turns, as an id may be used again in a later one.
        self.settled: dict[tuple[str, str], deque[bytes]] = defaultdict(deque)
        for record in settled:
            self.settled[record.id, record.checksum].append(rows.settled_to_bytes(record))
        self.system, self.service_id = system, service_id
        self.expect, self.create = expect, create
        self.digest = hashlib.sha256(b"\n".join(self.bodies)).digest()

    def write(self, db: Database, lock: str, at: Callable[[str], None]) -> Committed:
        if self.create:
            db.execute(CREATE, (_key(self.conversation), _maybe(self.system)))
        key, _, _, count = _found(db, lock, self.conversation)
        at("begun")
        if (before := self._before(db, key)) is not None:
            return before
        self._check(db, key, count)
        for seq, turn in enumerate(self.turns, start=count):
            self._add(db, key, seq, turn, self.bodies[seq - count])
            at("turn")
        for (id, checksum), records in self.settled.items():
            for data in records:  # of calls whose results are not in these turns
                seq, position, *_ = _called(db, key, id, checksum, self.conversation)
                db.execute(SETTLE, (data, _digest(data), key, seq, position))
        grown = (count + len(self.turns), _maybe(self.system), _maybe(self.service_id), key)
        db.execute(GROW, grown)
        at("grown")
        name = (key, _key(self.run), self.sequence)
        db.execute(ADD_COMMIT, (*name, count, len(self.turns), self.digest))
        at("recorded")
        return Committed(count, len(self.turns))

    def _before(self, db: Database, key: int) -> Committed | None:
        row = db.execute(FIND_COMMIT, (key, _key(self.run), self.sequence)).fetchone()
        if row is None:
            return None
        if _bytes(row[2]) != self.digest:
            raise CommitConflict(
                f"commit {self.sequence} of run {self.run!r} is stored with other content"
            )
        return Committed(_number(row[0]), _number(row[1]), repeated=True)

    def _check(self, db: Database, key: int, count: int) -> None:
        last = db.execute(LAST_COMMIT, (key, _key(self.run))).fetchone()
        expected = 0 if last is None else _number(last[0]) + 1
        if self.sequence != expected:
            raise CommitConflict(
                f"run {self.run!r} is at commit {expected}, and {self.sequence} was sent"
            )
        _check_count(self.conversation, count, self.expect)

    def _add(self, db: Database, key: int, seq: int, turn: Turn, body: bytes) -> None:
        db.execute(ADD_TURN, (key, seq, body, _digest(body)))
        for position, part in enumerate(turn.parts):
            if isinstance(part, ToolCall) and part.runs_on == "client":
                told = (_key(part.id), _key(part.name), part.checksum)
                db.execute(ADD_CALL, (key, seq, position, *told))
            elif isinstance(part, ToolResult):
                call = part.call
                at = _called(db, key, call.id, call.checksum, self.conversation)
                if at[3] is not None:
                    raise ForeignResult(f"the call {call.id!r} has its result in turn {at[3]}")
                db.execute(ANSWER, (seq, key, at[0], at[1]))
                if records := self.settled.get((call.id, call.checksum)):
                    data = records.popleft()
                    db.execute(SETTLE, (data, _digest(data), key, at[0], at[1]))


# --- rows -----------------------------------------------------------------------------------------


def _found(db: Database, sql: str, conversation: str) -> Any:
    row = db.execute(sql, (_key(conversation),)).fetchone()
    if row is None:
        raise UnknownConversation(f"no conversation {conversation!r} in this history")
    key, system, service_id, count = row
    return _number(key), system, service_id, _number(count)


def _check_count(conversation: str, count: int, expect: int | None) -> None:
    if expect is not None and expect != count:
        raise ConversationMoved(
            f"{conversation!r} has {count} turns, not {expect}: somebody else has appended to it; "
            "load it again"
        )


def _called(db: Database, key: int, id: str, checksum: str, conversation: str) -> Any:
    """The latest call of that id: some providers use an id again in a later turn."""
    row = db.execute(FIND_CALL, (key, _key(id))).fetchone()
    if row is None or row[2] != checksum:
        raise ForeignResult(f"the conversation {conversation!r} has no such call {id!r}")
    _number(row[0])
    _number(row[1])
    return row


def _load(db: Database, conversation: str, until: int | None) -> Stored:
    key, system, service_id, count = _found(db, FIND, conversation)
    count = count if until is None else min(until, count)
    turns = _turns(db, key, count, conversation)
    try:
        calls = list(_calls(db, key, count, turns))
    except StoreCorrupt as damage:
        damage.turns = damage.turns or turns
        raise
    return Stored(conversation, turns, _maybe_text(system), _maybe_text(service_id), calls)


def _turns(db: Database, key: int, count: int, conversation: str) -> list[Turn]:
    turns: list[Turn] = []
    try:
        for seq, body, digest in db.execute(TURNS, (key, count)):
            body = _bytes(body)
            if seq != len(turns) or _digest(body) != _bytes(digest):
                raise StoreCorrupt(f"turn {len(turns)} of {conversation!r} is damaged", turns)
            turns.append(_turn(body, turns, conversation))
    except StoreCorrupt as damage:
        damage.turns = damage.turns or turns
        raise
    except Exception as error:
        error.turns = turns  # type: ignore[attr-defined]  # whoever names the error takes them
        raise
    if len(turns) != count:
        raise StoreCorrupt(f"{conversation!r} has {len(turns)} turns of {count}", turns)
    return turns


def _turn(body: bytes, before: list[Turn], conversation: str) -> Turn:
    try:
        return rows.turn_from_bytes(body)
    except Exception as error:  # whole, and no turn: not written by this library, or by another
        raise StoreCorrupt(
            f"turn {len(before)} of {conversation!r} cannot be read ({words_of(error)}); "
            f"load(…, until={len(before)}) gives those before it",
            before,
        ) from error


def _calls(db: Database, key: int, count: int, turns: list[Turn]) -> Iterator[CallState]:
    for seq, id, name, checksum, answered, data, digest in db.execute(CALLS, (key, count)):
        settled = None if data is None else _record(_bytes(data), digest, checksum, turns)
        state: State = "unresolved" if settled is None else "settled"
        if answered is not None and _number(answered) < count:
            state = "answered"
        yield CallState(_number(seq), _text(id), _text(name), str(checksum), state, settled)


def _record(data: bytes, digest: Any, checksum: str, turns: list[Turn]) -> Settled:
    """A settled record, if it is what was stored and of the call it stands with."""
    if digest is not None and _digest(data) != _bytes(digest):
        raise StoreCorrupt("a settled record is damaged", turns)
    try:
        record = rows.settled_from_bytes(data)
    except StoreCorrupt:
        raise
    except Exception as error:
        raise StoreCorrupt(f"a settled record cannot be read ({words_of(error)})", turns) from error
    if record.checksum != checksum:
        raise StoreCorrupt(f"the record of {record.id!r} is not that of its call", turns)
    return record


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def _key(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: Any) -> str:
    try:
        return _bytes(data).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise StoreCorrupt("a name in this store is no text: it is damaged") from error


def _bytes(value: Any) -> bytes:
    """As it was stored; a file that was damaged may hold a value of any type in any place."""
    if not isinstance(value, bytes | memoryview):
        raise StoreCorrupt(f"bytes were stored where {type(value).__name__} is: it is damaged")
    return bytes(value)


def _number(value: Any) -> int:
    if type(value) is not int:
        raise StoreCorrupt(f"a number was stored where {type(value).__name__} is: it is damaged")
    return value


def _maybe(text: str | None) -> bytes | None:
    return None if text is None else _key(text)


def _maybe_text(data: Any) -> str | None:
    return None if data is None else _text(data)
