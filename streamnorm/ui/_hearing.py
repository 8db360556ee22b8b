"""A log and a position come in; the bytes of a response go out, as the log has them and as they come.

Rule: a reader hears what is in the log, in order, each entry with a position to come back to. What
cannot be given is told in the protocol: an answer whose producer died is ended for it, and so is one
whose entries are not kept any more. If the log is away that is told, and where to come back: the
position is that of the last entry. Never a hole in silence.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ..text.written import sse
from ._encoder import UNAVAILABLE
from ._protocol import ChatProtocol
from .log.base import Entry, EventLog, Gap, Gone, LogError, ProducerLost, Reader

__all__ = ["Bodies", "Body", "Hearing"]

KEEP_ALIVE = 15.0  # seconds of silence after which a comment is sent

log_of_ui = logging.getLogger("streamnorm.ui")


class Body:
    """The bytes of a response: what the log has, as it comes, with positions to resume after."""

    def __init__(self, reader: Reader, first: list[Entry], protocol: ChatProtocol) -> None:
        self._reader, self._first, self._protocol = reader, first, protocol
        self._last: list[bytes] = []  # what was written last
        self._over = False

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        if self._over:
            raise StopAsyncIteration
        if self._first:
            entries, self._first = self._first, []
            return self._written(entries)
        try:
            page = await self._reader.page(within=KEEP_ALIVE)
        except LogError as error:
            self._over = True
            return await self._end(error)
        if page == []:
            raise StopAsyncIteration
        return b": still here\n\n" if page is None else self._written(page)

    def _written(self, entries: list[Entry]) -> bytes:
        stream = self._reader.stream
        self._last = [entries[-1].data]
        return b"".join([sse(e.data, id=f"{stream}.{e.seq}") for e in entries])

    async def _end(self, error: LogError) -> bytes:
        """What is told instead of the rest."""
        if isinstance(error, ProducerLost):
            try:
                return b"".join(map(sse, await self._lost()))
            except LogError as another:
                error = another
        if isinstance(error, Gap | Gone):  # it read so slowly that the log has moved on
            return b"".join(map(sse, self._protocol.lost([])))
        log_of_ui.warning("a reader was sent away: %s", error)
        # A position without an event: who has heard nothing yet knows where to come back, too.
        where = f"id: {self._reader.stream}.{self._reader.after}\n\n".encode()
        return where + b"".join(map(sse, self._protocol.lost(self._last, UNAVAILABLE)))

    async def _lost(self) -> list[bytes]:
        """The producer died: what it left open is closed for it, and the failure told."""
        told: list[bytes] = []
        again = self._reader.log.read(self._reader.stream, owner=self._reader.owner)
        try:
            async for entry in again:
                told.append(entry.data)
        except ProducerLost:
            return self._protocol.lost(told)
        return []


class Bodies:
    """The bytes of several streams, one after the other; those that are gone by now are left out."""

    def __init__(self, hearing: Hearing, streams: list[str], after: int) -> None:
        self._hearing = hearing
        self._streams, self._after = list(reversed(streams)), after
        self._body: Body | None = None

    async def begin(self) -> bool:
        """Find the next stream with something in it; False: there is none."""
        self._body = None
        while self._streams and self._body is None:
            after, self._after = self._after, 0
            with suppress(Gone):
                self._body = await self._next(self._streams.pop(), after)
        return self._body is not None

    async def _next(self, stream: str, after: int) -> Body | None:
        try:
            return await self._hearing.body(stream, after)
        except Gap:
            if after:
                raise
            return self._hearing.whole(stream)  # its beginning is not kept: the body tells that

    def __aiter__(self) -> Bodies:
        return self

    async def __anext__(self) -> bytes:
        while self._body is not None:
            try:
                return await anext(self._body)
            except StopAsyncIteration:
                await self.begin()
        raise StopAsyncIteration


class Hearing:
    """What one owner may hear of a log."""

    def __init__(self, log: EventLog, protocol: ChatProtocol, owner: str) -> None:
        self._log, self._protocol, self._owner = log, protocol, owner

    def whole(self, stream: str) -> Body:
        """A stream from its start, as it comes."""
        return Body(self._log.read(stream, owner=self._owner), [], self._protocol)

    async def body(self, stream: str, after: int) -> Body | None:
        """What follows that position in a stream; None if nothing does."""
        reader = self._log.read(stream, owner=self._owner, after=after)
        first: list[Entry] | None = []
        with suppress(ProducerLost):  # told by the body itself
            first = await reader.page(within=0)
            if first == []:
                return None
        return Body(reader, first or [], self._protocol)

    async def bodies(self, streams: list[str], after: int) -> Bodies | None:
        """What follows that position in the first of these streams, and all others."""
        bodies = Bodies(self, streams, after)
        return bodies if await bodies.begin() else None
