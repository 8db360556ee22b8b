"""A loop and a chat come in; the answer goes into the log, whoever listens.

Rule: the producer belongs to nobody's connection. It runs in the background and goes on when readers
leave, stall or never come; it ends with its events, when told to stop, or with the server, and says
which in the stream. A log that is away is waited for: what was to be kept then is kept when it is
back, and meanwhile no more is read ahead than fits.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import anyio

from ..conversation import Conversation, Turn
from ..edge.runtime import spawn
from ..events import Failed
from ._encoder import INTERNAL, Encoder, Item
from ._pace import pump
from .inbox import Inbox
from .log.base import LogError, LogUnavailable, Writer

__all__ = ["Chat", "Loop", "Looped", "Producers"]

BEAT = 1.0  # seconds between signs of life, and so until a stop from another machine is heard
PATIENCE = 300.0  # seconds that an answer waits for a log that is away
PAUSE = 0.5  # … between two attempts

log_of_ui = logging.getLogger("streamnorm.ui")

Events: TypeAlias = AsyncIterable[Item]


@dataclass(frozen=True, slots=True)
class Chat:
    """What a loop is given: who asks, in which chat, and what was posted."""

    id: str
    owner: str
    inbox: Inbox

    @property
    def conversation(self) -> Conversation:
        """What was posted, as a conversation."""
        return self.inbox.conversation

    @property
    def name(self) -> str:
        """One name of owner and chat, for a history: no owner can name another's chat.

        >>> Chat("c1", "ann", Inbox("c1", Conversation())).name
        '3:ann:c1'
        """
        return f"{len(self.owner)}:{self.owner}:{self.id}"


class Looped(Protocol):
    """What is used of a ``ToolLoop``."""

    history: Any

    def run(self, said: Any = None, *, conversation: Any = None, decisions: Any = ()) -> Any:
        """An async iterable of events."""


Loop: TypeAlias = Looped | Callable[[Chat], Events | Awaitable[Events]]


class Producers:
    """The answers that are made in this process, by the name of their streams."""

    def __init__(self, loop: Loop, within: float) -> None:
        self._loop, self._within = loop, within
        self._running: dict[str, _Producer] = {}

    def start(self, chat: Chat, encoder: Encoder, writer: Writer) -> None:
        """Begin an answer; this returns at once."""
        producer = _Producer(_Source(self._loop, chat), encoder, writer, self._within)
        self._running[writer.stream] = producer
        spawn(lambda: self._run(producer))

    async def _run(self, producer: _Producer) -> None:
        try:
            await producer.run()
        finally:
            del self._running[producer.writer.stream]

    def stop(self, stream: str) -> None:
        """End an answer where it is, if it is made here."""
        if (producer := self._running.get(stream)) is not None:
            producer.stop()

    async def aclose(self) -> None:
        """End all of them because the server ends."""
        for producer in list(self._running.values()):
            await producer.aclose()


class _Source:
    """The events of a loop, made in the task that reads them."""

    def __init__(self, loop: Loop, chat: Chat) -> None:
        self._loop, self._chat = loop, chat
        self._events: Any = None

    def __aiter__(self) -> _Source:
        return self

    async def __anext__(self) -> Item:
        if self._events is None:
            made = self._made()
            self._events = aiter(await made if inspect.isawaitable(made) else made)
        item: Item = await anext(self._events)
        return item

    async def aclose(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    def _made(self) -> Any:
        run = getattr(self._loop, "run", None)
        if run is None:
            return self._loop(self._chat)  # type: ignore[operator]
        if getattr(self._loop, "history", None) is None:
            return run(None, conversation=self._chat.conversation)
        said, decisions = _last_said(self._chat.conversation), self._chat.inbox.approvals.values()
        return run(said, conversation=self._chat.name, decisions=decisions)


def _last_said(conversation: Conversation) -> Turn | None:
    """What the user said last; with a history the rest is known, and better."""
    last = conversation.turns[-1] if conversation.turns else None
    return last if last is not None and last.role == "user" else None


class _Producer:
    """Reads the events of one answer and appends them to its log, whoever listens."""

    def __init__(self, events: Events, encoder: Encoder, writer: Writer, within: float) -> None:
        self.writer = writer
        self._events, self._encoder, self._within = events, encoder, within
        self._scope, self._ended = anyio.CancelScope(), anyio.Event()
        self._stopped = False
        self._leaving = False  # is it over, with time for one more attempt and no more?
        self._heard = False  # was anything appended since the last beat?

    def stop(self) -> None:
        """End the answer where it is. Reading goes on: readers hear that it was stopped."""
        self._stopped = True
        self._scope.cancel()

    async def aclose(self) -> None:
        """End the answer because the server ends."""
        self._scope.cancel()
        await self._ended.wait()

    async def run(self) -> None:
        """All of it. Never raises: there is nobody to raise to."""
        failed: Failed | None = Failed("cancelled", "the server is stopping")
        end: list[bytes] | None = None
        is_told = False
        try:
            with self._scope:
                failed = await self._tell()
                end = self._encoder.closing(failed)
                await self._close(end)
                is_told = True
        finally:
            if not is_told:
                self._leaving = True
                if self._stopped and end is None:
                    failed = Failed("cancelled", "stopped")
                with anyio.CancelScope(shield=True):
                    await self._close(self._encoder.closing(failed) if end is None else end)
            self._ended.set()

    async def _tell(self) -> Failed | None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._beat)
            failed = await self._pumped()
            group.cancel_scope.cancel()
        return failed

    async def _pumped(self) -> Failed | None:
        try:
            await pump(self._events, self._sink, within=self._within)
        except Exception:  # whatever a loop raises: the page hears that it failed, the log why
            log_of_ui.exception("a chat answer failed")
            return Failed("transport", "the answer could not be made", code=INTERNAL)
        return None

    async def _sink(self, items: list[Item]) -> None:
        payloads = self._encoder.payloads(*items)
        if payloads and await self._kept(lambda: self.writer.append(payloads)):
            self.stop()
        self._heard = True

    async def _kept(self, keep: Callable[[], Awaitable[Any]]) -> Any:
        """What is to be kept, once the log is there for it."""
        since = anyio.current_time()
        is_told = False
        while True:
            try:
                return await keep()
            except LogUnavailable as error:
                if self._leaving or anyio.current_time() - since >= PATIENCE:
                    raise
                if not is_told:
                    log_of_ui.warning("a chat answer waits for its log: %s", error)
                    is_told = True
            await anyio.sleep(PAUSE)

    async def _beat(self) -> None:
        while True:
            await anyio.sleep(min(BEAT, self.writer.log.lease / 3))
            heard, self._heard = self._heard, False
            if heard:
                continue
            with suppress(LogError):  # the next one may get through
                if await self.writer.beat():
                    self.stop()

    async def _close(self, end: list[bytes]) -> None:
        try:
            await self._kept(lambda: self.writer.close(end))
        except LogError:  # readers hear of it when the lease runs out
            log_of_ui.exception("the end of a chat answer could not be kept")
