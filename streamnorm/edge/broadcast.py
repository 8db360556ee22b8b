"""One stream comes in; the same events go out to several readers.

Rule: nothing is read unless a reader waits for it, and no reader is ever further ahead of another
than ``buffer`` events. A read belongs to no reader: it runs as a job of its own, so that a reader
that is cancelled takes nothing away from the others. At any time there is at most one such job, and
none when nobody waits.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import anyio

from ..errors import StreamnormError, UsageError
from .runtime import spawn

if TYPE_CHECKING:
    from ..events import Event

__all__ = ["Broadcast", "Consumer", "ConsumerTooSlow", "Shared"]


class Shared(Protocol):
    """What can be told to several readers; a ``Stream`` is one."""

    @property
    def at_hand(self) -> int:
        """How many events can be had without waiting."""

    async def __anext__(self) -> Event: ...

    async def aclose(self) -> None: ...


class ConsumerTooSlow(StreamnormError):
    """This reader of a broadcast was too far behind the others and was dropped, as asked."""


class Broadcast:
    """The readers of one stream: unpack it, or enter it to have the stream closed at the end.

    ::

        ui, log = stream.broadcast(2)
        async with stream.broadcast(2) as (ui, log): ...

    The stream is closed when all readers are closed or dropped, too.
    """

    def __init__(self, stream: Shared, n: int, *, buffer: int, on_slow: str) -> None:
        if n < 1 or buffer < 1 or on_slow not in ("wait", "drop"):
            raise UsageError("broadcast(n >= 1, buffer >= 1, on_slow='wait' or 'drop')")
        self._hub = _Hub(stream, buffer, drop=on_slow == "drop")
        self._consumers = tuple(Consumer(self._hub) for _ in range(n))

    def __iter__(self) -> Iterator[Consumer]:
        return iter(self._consumers)

    def __len__(self) -> int:
        return len(self._consumers)

    def __getitem__(self, index: int) -> Consumer:
        return self._consumers[index]

    async def __aenter__(self) -> tuple[Consumer, ...]:
        return self._consumers

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream and all its readers."""
        for consumer in self._consumers:
            consumer._left = True
        await self._hub.stream.aclose()
        self._hub.tell()


class Consumer:
    """One reader of a broadcast: an async iterator of events."""

    def __init__(self, hub: _Hub) -> None:
        self._hub = hub
        self._queue: deque[Event] = deque()
        self._left = False  # closed, or dropped for being slow
        self._dropped = False
        hub.consumers.add(self)

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Event:
        while not self._queue:
            if self._dropped:
                raise ConsumerTooSlow(
                    f"{self._hub.buffer} events behind the others; read faster, or raise `buffer`"
                )
            if self._left:
                raise StopAsyncIteration
            if self._hub.over:
                self._left = True
                if self._hub.error is not None:
                    raise self._hub.error
                raise StopAsyncIteration
            await self._hub.more()
        event = self._queue.popleft()
        if len(self._queue) == self._hub.buffer - 1:
            self._hub.tell()  # there is room again
        return event

    async def aclose(self) -> None:
        """Leave; the others go on. The last one to leave closes the stream."""
        self._left = True
        self._queue.clear()
        self._hub.tell()
        if not self._hub.alive():
            await self._hub.stream.aclose()

    def __del__(self) -> None:
        if not self._left and not self._hub.over:
            self._hub.tell()


class _Hub:
    """What the readers share. It knows them weakly: one that was dropped holds up nobody."""

    def __init__(self, stream: Shared, buffer: int, *, drop: bool) -> None:
        self.stream = stream
        self.buffer = buffer
        self.drop = drop
        self.consumers: weakref.WeakSet[Consumer] = weakref.WeakSet()
        self.over = False
        self.error: Exception | None = None
        self._reading = False
        self._news: anyio.Event | None = None

    def alive(self) -> list[Consumer]:
        return [c for c in self.consumers if not c._left]

    def tell(self) -> None:
        """Something changed: everybody looks again."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def more(self) -> None:
        """Have one read made, unless one is under way or a slow reader is waited for."""
        if not self._reading and self._has_room():
            self._reading = True
            if not spawn(self._read):  # pragma: no cover - there is a loop, as this is awaited
                raise UsageError("no event loop runs here")
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()

    def _has_room(self) -> bool:
        full = [c for c in self.alive() if len(c._queue) >= self.buffer]
        if full and self.drop:
            for consumer in full:
                consumer._queue.clear()
                consumer._left = consumer._dropped = True
            full = []
        return not full

    async def _read(self) -> None:
        """One event, and those that came with it as far as there is room, to everybody."""
        try:
            self._give(await self.stream.__anext__())
            while self.stream.at_hand and self._has_room():
                self._give(await self.stream.__anext__())
        except StopAsyncIteration:
            self.over = True
        except Exception as error:  # noqa: BLE001 - raised again in every reader
            self.over, self.error = True, error
        finally:
            self._reading = False
            self.tell()

    def _give(self, event: Event) -> None:
        for consumer in self.alive():
            consumer._queue.append(event)
