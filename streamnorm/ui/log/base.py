"""Payloads of a stream come in; any reader gets them all, from any position, now or later.

Rule: append, then deliver. A payload has a number (1, 2, 3 … without a hole) before anybody sees it,
and readers see only what is in the log. So a reader that comes back after number n gets exactly the
rest, whoever dies in between; and what cannot be given is said: ``Gap`` if the position was trimmed
or is unknown, ``Gone`` if the stream is, ``ProducerLost`` if its producer died and left no end.

A stream belongs to an owner, and its id cannot be guessed (256 bits). For somebody else it is gone.
A producer holds a lease and renews it; when it runs out, nobody waits any longer. Appending the same
number again changes nothing, so an append whose answer was lost can be repeated.

Readers that wait cost nothing: whoever appends rings them, and one look every ``poll`` seconds, for
all streams that are read here, finds what nobody rang for. It also finds that the engine is away.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Literal, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import anyio

from ...edge.runtime import spawn
from ...errors import StreamnormError, UsageError

__all__ = [
    "NAMED",
    "Busy",
    "Conflict",
    "Entry",
    "EventLog",
    "Gap",
    "Gone",
    "LogError",
    "LogUnavailable",
    "Page",
    "ProducerLost",
    "Reader",
    "View",
    "Writer",
    "is_name",
    "is_writable",
]

LEASE = 15.0  # seconds after which a producer that says nothing is taken for dead
KEEP_FOR = 900.0  # seconds that a stream is kept after its last append
PAGE = 512  # entries that a reader takes at once
LONGEST = 512  # characters of an owner's or a chat's name
MOST = 2**53  # no stream has a number like that

State: TypeAlias = Literal["open", "done"]


class LogError(StreamnormError):
    """The base of what a log reports."""


class Gap(LogError):
    """The position is not in the log any more, or never was. ``first_available`` is what is."""

    def __init__(self, first_available: int) -> None:
        super().__init__(f"that position is not kept; the first one that is: {first_available}")
        self.first_available = first_available


class Gone(LogError):
    """There is no such stream: expired, never there, or somebody else's. Nobody is told which."""

    def __init__(self) -> None:
        super().__init__("there is no such stream")


class ProducerLost(LogError):
    """The producer's lease ran out before it told an end: nothing more will come."""

    def __init__(self) -> None:
        super().__init__("the producer of this stream is gone and left no end")


class Busy(LogError):
    """The chat has a stream that is still told; ``stream`` is its id."""

    def __init__(self, stream: str) -> None:
        super().__init__("this chat has a stream that is still told: resume it, or stop it first")
        self.stream = stream


class Conflict(LogError):
    """A number was appended twice with different payloads: two producers write one stream."""


class LogUnavailable(LogError):
    """The engine behind the log does not answer, or must not be used; the message says why."""


class Entry(NamedTuple):
    """One payload and its number."""

    seq: int
    data: bytes


class Page(NamedTuple):
    """What one look into the log shows.

    ``first`` and ``last`` are the numbers that are kept (``last`` is ``first - 1`` when none is);
    ``alive`` says whether the producer's lease holds.
    """

    entries: Sequence[Entry]
    first: int
    last: int
    state: State
    alive: bool


View: TypeAlias = tuple[int, State, bool]  # of a stream: its last number, its state, is it alive?


class Bell:
    """Rung once. A log knows it weakly: it is there while somebody waits for it."""

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.seen: View | None = None  # what those who wait know of the stream
        self.error: LogError | None = None  # why it was rung, if there are no news
        self.looks: dict[tuple[str, int], _Look] = {}  # that are under way: for whom, from where

    async def wait(self, within: float) -> None:
        with anyio.move_on_after(within):
            await self.event.wait()
        if self.error is not None:
            raise self.error.with_traceback(None)


class _Look:
    """A look that is under way, and what it shows."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.page: Page | None = None
        self.error: LogError | None = None


class _Lookout:
    """Looks every now and then for all who wait for a log's streams, and rings where something is new."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self.runs = spawn(self._run)

    async def aclose(self) -> None:
        """Nobody looks any more."""
        self._scope.cancel()
        if self.runs:
            await self._ended.wait()

    async def _run(self) -> None:
        try:
            with self._scope:
                while self._log._bells:
                    await anyio.sleep(self._log._pause)
                    await self._look()
        finally:
            self.runs = False
            self._ended.set()

    async def _look(self) -> None:
        bells = {s: bell for s, bell in self._log._bells.items() if bell.seen is not None}
        if not bells:
            return
        try:
            views = await self._log._views(list(bells))
        except LogError as error:  # told to all, or each of them would find out for himself
            for stream, bell in bells.items():
                self._log._ring(stream, bell, error)
        else:
            for stream, bell in bells.items():
                if views.get(stream) != bell.seen:
                    self._log._ring(stream, bell)


class EventLog(ABC):
    """Where streams are kept while they are told. Three engines, one behaviour.

    ::

        writer = await log.create(owner="ann", chat="c1")
        await writer.append([b"one", b"two"])
        await writer.close()

        async for entry in log.read(writer.stream, owner="ann", after=1):
            print(entry.seq, entry.data)
    """

    lease: float = LEASE
    poll: float = 1.0  # seconds between looks where nobody rings

    def __init__(self) -> None:
        self._bells: WeakValueDictionary[str, Bell] = WeakValueDictionary()
        self._lookout: _Lookout | None = None

    async def create(self, *, owner: str, chat: str | None = None) -> Writer:
        """A new stream. A chat has one at a time: ``Busy`` if another is still told."""
        _named(owner, "owner")
        if chat is not None:
            _named(chat, "chat")
        stream = secrets.token_hex(32)  # never like an option where somebody types it
        await self._create(stream, owner, chat)
        return Writer(self, stream)

    async def active(self, *, owner: str, chat: str) -> str | None:
        """The stream of this chat that is still told, or None."""
        streams = await self.streams(owner=owner, chat=chat)
        with suppress(Gone, IndexError):
            page = await self._look(streams[-1], owner, 0, 0)
            return streams[-1] if page.state == "open" and self._lives(page) else None
        return None

    @abstractmethod
    async def streams(self, *, owner: str, chat: str) -> list[str]:
        """The streams of this chat in the order in which they were told; the oldest may be gone."""

    def read(self, stream: str, *, owner: str, after: int = 0) -> Reader:
        """The entries after number ``after``, then each new one, to the end of the stream."""
        return Reader(self, stream, owner, after)

    @abstractmethod
    async def stop(self, stream: str, *, owner: str) -> None:
        """Ask the producer, wherever it runs, to stop. ``Gone`` as for a read."""

    async def aclose(self) -> None:
        """Close what the log holds open."""
        if self._lookout is not None:
            await self._lookout.aclose()
        for stream in list(self._bells):
            self._ring(stream)

    async def __aenter__(self) -> EventLog:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # --- of each engine ---------------------------------------------------------------------------

    @abstractmethod
    async def _create(self, stream: str, owner: str, chat: str | None) -> None:
        """Keep a new stream, or raise ``Busy``."""

    @abstractmethod
    async def _append(
        self, stream: str, first: int, payloads: Sequence[bytes], state: State
    ) -> bool:
        """Keep the payloads under the numbers from ``first``, renew the lease; told to stop?"""

    @abstractmethod
    async def _look(self, stream: str, owner: str, after: int, limit: int) -> Page:
        """Entries after ``after``, at most ``limit``, or ``Gone``."""

    @abstractmethod
    async def _views(self, streams: Sequence[str]) -> dict[str, View]:
        """What there is of these streams, without those that are gone. One request for all of them."""

    # --- of all -----------------------------------------------------------------------------------

    def _lives(self, page: Page) -> bool:
        """Is there a producer, as far as the engine knows?"""
        return page.alive

    async def _glance(self, stream: str, owner: str, after: int, bell: Bell) -> Page:
        """As ``_look``; those who stand at one place look once for all of them."""
        if not is_writable(stream, owner):
            raise Gone
        key = owner, after
        while (
            look := bell.looks.get(key)
        ) is not None:  # begun since the bell hangs there: new enough
            await look.done.wait()
            if look.error is not None:
                raise look.error.with_traceback(None)
            if look.page is not None:
                return look.page
        look = bell.looks[key] = _Look()
        try:
            look.page = await self._look(stream, owner, after, PAGE)
            return look.page
        except LogError as error:
            look.error = error
            raise
        finally:
            del bell.looks[key]
            look.done.set()

    @property
    def _pause(self) -> float:
        return min(self.poll, self.lease / 3)

    def _bell(self, stream: str) -> Bell:
        """What is rung at the next append; taken before a look, so that none is missed."""
        bell = self._bells.get(stream)
        if bell is None:
            bell = self._bells[stream] = Bell()
        return bell

    def _ring(self, stream: str, only: Bell | None = None, error: LogError | None = None) -> None:
        """There is something new, or nothing to be had."""
        bell = self._bells.get(stream)
        if bell is not None and only in (None, bell):
            del self._bells[stream]
            bell.error = error
            bell.event.set()

    async def _wait(self, bell: Bell, page: Page, within: float) -> None:
        """Until there is something that this page does not show."""
        if bell.seen is None:
            bell.seen = page.last, page.state, page.alive
        if self._lookout is None or not self._lookout.runs:
            self._lookout = _Lookout(self)
        # A producer may be believed to live for a while, though the engine knows of none.
        await bell.wait(within if page.alive else min(within, self._pause))


class Writer:
    """The producer's side of one stream. ``append`` returns True once somebody asked to stop.

    If it raises ``LogUnavailable``, nobody knows whether the payloads were kept. They are not
    forgotten: append them once more, or go on, and they come before what is appended next, once.
    """

    def __init__(self, log: EventLog, stream: str, last: int = 0) -> None:
        self.log = log
        self.stream = stream
        self.last = last
        self._unsure: list[bytes] = []  # what follows the last one, and may be kept already
        self._turn = anyio.Lock()
        self._closed = False

    async def append(self, payloads: Sequence[bytes]) -> bool:
        """Keep these payloads. When this returns they are in the log, and only then told."""
        return await self._add(payloads, "open")

    async def beat(self) -> bool:
        """Renew the lease; to be called every third of it while nothing is appended."""
        return await self._add((), "open")

    async def close(self, payloads: Sequence[bytes] = ()) -> None:
        """Keep the last payloads and say that there are no more."""
        if not self._closed:
            await self._add(payloads, "done")
            self._closed = True

    async def _add(self, payloads: Sequence[bytes], state: State) -> bool:
        if self._closed:
            raise UsageError("this stream is closed; nothing can be appended")
        for payload in payloads:
            if not isinstance(payload, bytes):
                raise UsageError(f"payloads are bytes, not {type(payload).__name__}")
        # Shielded: a producer that is stopped in the middle must know what was kept.
        async with self._turn:
            batch = self._behind_unsure(payloads) if payloads or state == "done" else []
            with anyio.CancelScope(shield=True):
                asked = await self.log._append(self.stream, self.last + 1, batch, state)
            if batch:
                self.last += len(batch)
                self._unsure = []
        return asked

    def _behind_unsure(self, payloads: Sequence[bytes]) -> list[bytes]:
        """What is to be appended: the same numbers get the same payloads."""
        again = list(payloads[: len(self._unsure)]) == self._unsure
        self._unsure = [*(() if again else self._unsure), *payloads]
        return self._unsure


class Reader:
    """The reader's side: an async iterator of entries. It holds no task and no scope.

    ``page`` gives what is there as a list and waits if there is nothing; an empty list is the end.
    """

    def __init__(self, log: EventLog, stream: str, owner: str, after: int) -> None:
        self.log, self.stream, self.owner = log, stream, owner
        self.after = min(after, MOST)
        self._rest: list[Entry] = []
        self.over = False

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Entry:
        if not self._rest:
            self._rest = list(reversed(await self.page() or ()))
            if not self._rest:
                raise StopAsyncIteration
        return self._rest.pop()

    async def page(self, within: float | None = None) -> list[Entry] | None:
        """The next entries; an empty list at the end; None if none came within so many seconds."""
        until = None if within is None else anyio.current_time() + within
        while not self.over:
            bell = self.log._bell(self.stream)
            page = await self.log._glance(self.stream, self.owner, self.after, bell)
            entries = self._fitting(page)
            if entries:
                self.after = entries[-1].seq
                return entries
            if page.state == "done":
                self.over = True
            elif not self.log._lives(page):
                raise ProducerLost
            else:
                left = inf if until is None else until - anyio.current_time()
                if left <= 0:
                    return None
                await self.log._wait(bell, page, left)
        return []

    def _fitting(self, page: Page) -> list[Entry]:
        """The entries, if they follow on from where the reader is."""
        entries = list(page.entries)
        if self.after + 1 < page.first or self.after > page.last:
            raise Gap(page.first)
        expected = range(self.after + 1, self.after + 1 + len(entries))
        if any(entry.seq != seq for entry, seq in zip(entries, expected, strict=True)):
            raise Gap(page.first)
        return entries


NAMED = f"a text of 1 to {LONGEST} characters, none of them half"


def _named(name: str, what: str) -> None:
    if not is_name(name):
        raise UsageError(f"the {what} is {NAMED}")


def is_name(name: object) -> bool:
    """May an owner or a chat be named so?"""
    return isinstance(name, str) and 0 < len(name) <= LONGEST and is_writable(name)


def is_writable(*names: str) -> bool:
    """Half of a surrogate pair can be written nowhere, so nothing has such a name."""
    try:
        return all(name.encode() is not None for name in names)
    except UnicodeEncodeError:
        return False
