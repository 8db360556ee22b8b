"""Events come in one by one; batches go out, the first at once and later ones at a calm pace.

Rule: one task reads, from the first event to the last, so that a source may use whatever it likes;
it reads at most ``ROOM`` events ahead. Nothing is lost: what was read before an error is handed on
before the error is raised. No generator and no scope that is open across a yield.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

from ..edge.runtime import spawn
from ..events import Failed
from ._encoder import INTERNAL

if TYPE_CHECKING:
    from ._encoder import Encoder, Item

__all__ = ["WITHIN", "Encoded", "pump"]

WITHIN = 0.03  # seconds: a page shows thirty changes a second and no more
ROOM = 1024  # events read ahead
CLOSE_WITHIN = 2.0


class _Box:
    """What reader and writer share."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.news = anyio.Event()
        self.room = anyio.Event()
        self.over = anyio.Event()
        self.error: Exception | None = None
        self.fault: Exception | None = None  # of the sink

    def put(self, item: Item) -> None:
        self.items.append(item)
        self.news.set()

    def take(self) -> list[Item]:
        items, self.items = self.items, []
        self.news = anyio.Event()
        self.room.set()
        return items


async def pump(
    events: AsyncIterable[Item],
    sink: Callable[[list[Item]], Awaitable[None]],
    *,
    within: float = WITHIN,
) -> None:
    """Hand all events to ``sink``, in batches, at most one per ``within`` seconds.

    Raises what the events or the sink raised; the events are closed in any case.
    """
    box = _Box()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_write, box, sink, within, group.cancel_scope)
            await _read(box, events)
    finally:
        await _close(events)
    if (error := box.fault or box.error) is not None:
        raise error


async def _read(box: _Box, events: AsyncIterable[Item]) -> None:
    try:
        async for item in events:
            box.put(item)
            if len(box.items) >= ROOM:
                box.room = anyio.Event()
                await box.room.wait()
    except Exception as error:  # noqa: BLE001 - raised again by pump, after what came before it
        box.error = error
    finally:
        box.over.set()
        box.news.set()


async def _write(
    box: _Box,
    sink: Callable[[list[Item]], Awaitable[None]],
    within: float,
    scope: anyio.CancelScope,
) -> None:
    try:
        while not box.over.is_set() or box.items:
            await box.news.wait()
            if items := box.take():
                await sink(items)
            if within and not box.over.is_set():
                with anyio.move_on_after(within):
                    await box.over.wait()
    except Exception as error:  # noqa: BLE001 - raised again by pump
        box.fault = error
        scope.cancel()


async def _close(events: Any) -> None:
    close = getattr(events, "aclose", None)
    if close is not None:
        within = anyio.current_time() + CLOSE_WITHIN
        with anyio.CancelScope(shield=True, deadline=within):
            await close()


class Encoded:
    """Events as the bytes of a protocol: an async iterator. Made by an ``encode`` function.

    The events are read in a task of their own. ``aclose``, a cancelled reader, or dropping the
    iterator ends it; a failure of the events is told in the protocol first and raised then.
    """

    def __init__(self, events: AsyncIterable[Item], encoder: Encoder, within: float) -> None:
        self._job = _Job(events, encoder, within)
        self._started = False

    def __aiter__(self) -> Encoded:
        return self

    async def __anext__(self) -> bytes:
        if not self._started:
            self._started = True
            self._job.start()
        try:
            return await self._job.next()
        except BaseException:
            self._job.scope.cancel()
            raise

    async def aclose(self) -> None:
        """Stop reading the events and close them."""
        if not self._started:
            return await _close(self._job.events)
        self._job.scope.cancel()
        await self._job.ended.wait()

    def __del__(self) -> None:
        job = getattr(self, "_job", None)
        if job is not None and self._started and not job.ended.is_set():
            job.scope.cancel()


class _Job:
    """The task behind ``Encoded``; it knows nothing of the iterator, so that can be dropped."""

    def __init__(self, events: AsyncIterable[Item], encoder: Encoder, within: float) -> None:
        self.events, self.encoder, self.within = events, encoder, within
        self.error: Exception | None = None

    def start(self) -> None:
        self.scope, self.ended = anyio.CancelScope(), anyio.Event()
        self.give, self.take = anyio.create_memory_object_stream[bytes](1)
        spawn(self.run)

    async def next(self) -> bytes:
        try:
            return await self.take.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self.take.close()
            if (error := self.error) is not None:
                self.error = None
                raise error from None
            raise StopAsyncIteration from None

    async def run(self) -> None:
        try:
            with self.scope:
                await self._all()
        finally:
            self.give.close()
            if self.scope.cancel_called:  # nobody reads any more
                self.take.close()
            self.ended.set()

    async def _all(self) -> None:
        failed = None
        try:
            await pump(self.events, self._sink, within=self.within)
        except Exception as error:  # noqa: BLE001 - told in the protocol, then raised to the reader
            self.error = error
            failed = Failed("transport", "the events could not be read", code=INTERNAL)
        await self.give.send(self.encoder.close(failed))

    async def _sink(self, items: list[Item]) -> None:
        if data := self.encoder.feed(*items):
            await self.give.send(data)
