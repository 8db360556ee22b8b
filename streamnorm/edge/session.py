"""A connection that many responses share comes in; a ``Stream`` for each of them goes out.

Rule: messages are pulled, as everywhere at the edge. Whoever waits, for the next stream or for an
event of one, reads the connection; one reads at a time, and what comes for others waits in their
lanes. So streams can be read one after the other or at the same time, by one task or by many, and if
nobody reads, nothing is read.

What waits is bounded (``Limits.unread``). If it grows beyond, the stream with the most of it fails,
and says so; the others go on. Nobody waits for a reader who does not come. A message that its reader
waits for is as good as taken: how big it may be is said by the limits of its stream.

No task is started here. A socket can be cancelled while it is waited for; an async generator that is
cancelled is over, and so is the session then.
"""

from __future__ import annotations

import os
import weakref
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import anyio
from anyio import lowlevel

from ..demultiplexer import Move, Router, Step, as_line, notice, seed_of, too_many
from ..errors import StreamTruncated, UsageError
from ..events import Unrecognized
from ..limits import LimitReached, Limits
from ..providers import AUTO
from .failures import CutShort, Reported
from .messages import Lost, messages_of
from .reading import IDLE, Reading
from .sources import Item, Source, is_transport
from .stream import Stream

__all__ = ["LaneStream", "Session", "session"]

NOTICES, NOTICE_BYTES = 256, 1024 * 1024  # that are kept: the newest ones
_UNTAKEN = "more streams wait than are kept; those that begin now are lost: take them as they begin"
_UNANSWERED = "the connection was closed before any response had begun"
WAITING = 4096  # streams that nobody has taken; each has a pipe of its own, of some 10 KB


def session(
    source: Any,
    provider: str | None = None,
    *,
    record: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    seed: str | None = None,
    idle: float | None = IDLE,
    deadline: float | None = None,
    on_bad_event: str = "fail",
) -> Session:
    """The streams of a connection that many responses share, such as a WebSocket.

    ``source``: an open connection of websockets, httpx-ws, aiohttp or trio-websocket; that of the
    openai SDK (``client.responses.connect()``); any iterable, async or not, of messages (text, bytes,
    dicts, SDK objects); or the path of a file with one message on each line. Requests are sent by you,
    on the connection itself.

    ``record`` is a folder: each stream becomes a take there. The other options are those of
    ``normalize``, for each stream.

    >>> messages = ['{"type":"response.completed","response":{"id":"r","model":"m"}}'] * 1
    >>> [[event.kind for event in stream] for stream in session(messages)]
    [['stream_start', 'finish']]
    """
    if record is not None and not os.path.isdir(record):
        raise UsageError(
            "record is a folder for a session, with a take for each stream: make it first"
        )
    reading = Reading(
        record=record, limits=limits, strict=strict, seed=seed, idle=idle, deadline=deadline,
        on_bad_event=on_bad_event,
    )  # fmt: skip
    return Session(messages_of(source), provider or AUTO, reading)


class LaneStream(Stream):
    """One response of a session: a ``Stream`` that knows its lane."""

    def __init__(self, lane: _Lane, provider: str, reading: Reading) -> None:
        super().__init__(lane, provider, reading)
        self._lane = lane

    @property
    def lane(self) -> str | None:
        """What the wire calls the place of this response on the connection; None: it has no name."""
        return self._lane.name


class Session:
    """The responses of one connection, each as a stream, in the order in which they begin.

    ::

        async with session(websocket) as streams:
            async for stream in streams:
                async for event in stream: ...

    ``async with`` closes the connection at the end of the scope, and what is open on it.
    """

    def __init__(self, source: Source, provider: str, reading: Reading) -> None:
        self._source, self._reading = source, reading
        self._limits = reading.limits or Limits()
        self._router = Router(provider, limits=self._limits)
        self._new: deque[LaneStream] = deque()  # that nobody has taken yet
        self._lanes: dict[int, _Lane] = {}  # by the number of their stream
        self._given: weakref.WeakSet[_Lane] = weakref.WeakSet()  # all that somebody still has
        self._notices: deque[tuple[str | None, Unrecognized]] = deque()
        self._sizes: deque[int] = deque()  # of those
        self.unread = 0  # bytes that wait …
        self.holding: set[_Lane] = set()  # … in these lanes
        self._busy = False  # somebody reads …
        self._scope: anyio.CancelScope | None = None  # … in here
        self._waiting: dict[object, anyio.Event] = {}
        self._over = False
        self._begun = False  # has there been a response?
        self.why: Exception | None = None  # the connection failed, or the session was closed
        self._untold = False  # and no stream was there to say so

    # --- streams ----------------------------------------------------------------------------------

    def __aiter__(self) -> Session:
        return self

    async def __anext__(self) -> LaneStream:
        if self._source.instant:
            await lowlevel.checkpoint()
            self.read_now(lambda: bool(self._new))
        else:
            await self.read(self, lambda: bool(self._new))
        if not self._new:
            self._raise_untold()
            raise StopAsyncIteration
        return self._new.popleft()

    def __iter__(self) -> Session:
        if not self._source.is_sync:
            raise UsageError("this connection is async: use `async for`")
        return self

    def __next__(self) -> LaneStream:
        self.read_now(lambda: bool(self._new))
        if not self._new:
            self._raise_untold()
            raise StopIteration
        return self._new.popleft()

    def _raise_untold(self) -> None:
        error, untold = self.why, self._untold
        self._untold = False
        if error is not None and untold:
            if isinstance(error, CutShort):
                raise StreamTruncated(f"{error.reason}: {error}", provider=self.provider)
            raise error

    # --- looking ----------------------------------------------------------------------------------

    @property
    def provider(self) -> str:
        """The provider's name; ``"auto"`` until a message has told."""
        return self._router.provider

    @property
    def notes(self) -> Counter[str]:
        """What was tolerated outside of streams, by name; each stream has notes of its own."""
        return self._router.notes

    @property
    def notices(self) -> list[tuple[str | None, Unrecognized]]:
        """Messages that belong to no stream, each with its lane, the newest ones last."""
        return list(self._notices)

    # --- closing ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Session:
        return iter(self)

    def __exit__(self, *_: object) -> None:
        self.close()

    async def aclose(self) -> None:
        """Close the connection. Streams that are open end as cancelled."""
        self._stop()
        for stream in self._new:
            await stream.aclose()
        self._new.clear()
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + 2.0):
            await self._source.aclose()

    def close(self) -> None:
        """As ``aclose``, for a session that is read in a ``for`` loop."""
        self._stop()
        for stream in self._new:
            stream.close()
        self._new.clear()
        self._source.close()

    def _stop(self) -> None:
        for lane in self._given:
            lane.closable = False  # closed with the session: nothing to warn about
        if not self._over:
            self._end(CutShort("cancelled", "the session was closed"))
            self._untold = False
        if self._scope is not None:
            self._scope.cancel()

    # --- reading, for whoever waits ---------------------------------------------------------------

    async def read(self, who: object, enough: Callable[[], bool]) -> None:
        """Read until there is enough for this one, or the connection ends. What comes for others is
        kept for them; somebody else may be the one who reads."""
        try:
            while not self._over and not enough():
                if self._busy:
                    await self._wait(who)
                else:
                    await self._read_one(who)
        finally:
            if not self._busy and self._waiting:  # somebody else reads on
                next(iter(self._waiting.values())).set()

    async def _wait(self, who: object) -> None:
        event = self._waiting[who] = anyio.Event()
        try:
            await event.wait()
        finally:
            if self._waiting.get(who) is event:
                del self._waiting[who]

    async def _read_one(self, who: object) -> None:
        self._busy, item = True, None
        try:
            with anyio.CancelScope() as self._scope:
                item = await self._source.next()
        except Exception as error:  # noqa: BLE001 - raised again in everybody who reads
            return self._end(error)
        finally:
            self._busy, self._scope = False, None
        if item is None:
            return self._end(None)
        if self._take(item) - {who}:
            await lowlevel.checkpoint()  # those whom it is for, too

    def read_now(self, enough: Callable[[], bool]) -> None:
        """As ``read``, blocking."""
        while not self._over and not enough():
            try:
                item = self._source.next_now()
            except Exception as error:  # noqa: BLE001 - raised again in everybody who reads
                return self._end(error)
            if item is None:
                return self._end(None)
            self._take(item)

    def _take(self, item: Item) -> set[object]:
        """One message to where it belongs; for whom it was."""
        return {_STEPS[move.step](self, move) for move in self._router.route(as_line(item))}

    def _end(self, error: Exception | None) -> None:
        """Nothing more comes; a connection that failed is told by every stream that was open."""
        if self._over:
            return
        self._over = True
        if error is None and self._source.is_socket and not self._begun:
            error = CutShort("truncated", _UNANSWERED, retryable=True)
        if error is not None:
            self.why = self._cut_short(error)
            self._untold = not self._lanes
        for move in self._router.close():
            self._finish(move)
        for event in self._waiting.values():
            event.set()

    def _cut_short(self, error: Exception) -> Exception:
        if isinstance(error, CutShort) or not is_transport(error):
            return error
        redacted = self._source.facts.redacted
        if isinstance(error, Lost):
            return CutShort("transport", redacted(str(error)), retryable=True)
        said = Reported(error, redacted)
        return CutShort(said.reason, said.message, retryable=said.retryable, code=said.code)

    # --- what a message does ----------------------------------------------------------------------

    def _begin(self, move: Move) -> object:
        assert move.stream is not None
        self._begun = True
        lane = self._lanes[move.stream] = _Lane(self, self._source, move)
        if len(self._new) > WAITING:
            lane.left = True
            self._router.note("session.stream_dropped", lane=move.lane)
            return None
        if len(self._new) == WAITING:  # this one tells it of all that follow
            lane.cut(CutShort("limit", _UNTAKEN, code="unread"))
        self._given.add(lane)
        seed = seed_of(self._reading.seed, move.stream)
        self._new.append(LaneStream(lane, self.provider, self._reading.with_seed(seed)))
        return self._wake(self)

    def _hear(self, move: Move) -> object:
        assert move.stream is not None
        lane = self._lanes[move.stream]
        if not lane.left:
            lane.hold(move.line)
            if self.unread > self._limits.unread:
                slowest = max(self.holding, key=lambda lane: lane.size)
                slowest.cut(CutShort("limit", slowest.too_much(self._limits), code="unread"))
        return self._wake(lane)

    def _finish(self, move: Move) -> object:
        assert move.stream is not None
        lane = self._lanes.pop(move.stream)
        lane.over = True
        lane.failure = lane.failure or self.why
        return self._wake(lane)

    def _refuse(self, move: Move) -> object:
        assert move.stream is not None
        lane = self._lanes.pop(move.stream)
        lane.cut(CutShort("limit", too_many(self._limits), code="lanes"))
        return self._wake(lane)

    def _outside(self, move: Move) -> object:
        self._notices.append((move.lane, notice(move.line)))
        self._sizes.append(len(move.line))
        while len(self._sizes) > NOTICES or (sum(self._sizes) > NOTICE_BYTES and self._sizes):
            self._notices.popleft()
            self._sizes.popleft()
            self._router.note("session.notice_dropped")
        return None

    def _wake(self, who: object) -> object:
        if (event := self._waiting.get(who)) is not None:
            event.set()
        return who


_STEPS: dict[Step, Callable[[Session, Move], object]] = {
    Step.BEGIN: Session._begin,
    Step.HEAR: Session._hear,
    Step.END: Session._finish,
    Step.REFUSE: Session._refuse,
    Step.OUTSIDE: Session._outside,
}


class _Lane(Source):
    """What a stream of a session reads from: the messages that came for it."""

    def __init__(self, session: Session, source: Source, move: Move) -> None:
        super().__init__(facts=source.facts, instant=source.instant)
        self._session, self._both = session, (source.is_async, source.is_sync)
        self.name = move.lane
        self.closable = True
        self.over = False  # no more will come
        self.left = False  # nobody wants more
        self.failure: Exception | None = None
        self.size = 0  # of what waits in it
        self._awaited = False  # somebody waits for what comes next; if he is cancelled, it is left
        self._lines: list[bytes] = []

    @property
    def is_async(self) -> bool:
        return self._both[0] or self.instant

    @property
    def is_sync(self) -> bool:
        return self._both[1]

    def hold(self, line: bytes) -> None:
        """A message that came for this one."""
        if self._lines or not self._awaited:
            self._count(len(line))
        self._lines.append(line)

    def too_much(self, limits: Limits) -> str:
        """Why it is the one that fails when too much waits."""
        reached = LimitReached("unread", limits.unread)
        if len(self._lines) == 1 and self.size > limits.unread:
            return f"one message is larger than all that may wait: {reached}"
        return f"its reader is too far behind, and other streams wait: {reached}"

    def cut(self, failure: CutShort) -> None:
        """It ends here; what waits in it is not told any more. The first reason is told."""
        self._drop()
        self.failure, self.over = self.failure or failure, True

    async def next(self) -> Item | None:
        self._awaited = True
        try:
            await self._session.read(self, self._ready)
        finally:
            self._awaited = False
        return self._taken()

    def next_now(self) -> Item | None:
        self._awaited = True
        try:
            self._session.read_now(self._ready)
        finally:
            self._awaited = False
        return self._taken()

    async def aclose(self) -> None:
        self._drop()

    def close(self) -> None:
        self._drop()

    def _ready(self) -> bool:
        return bool(self._lines) or self.over

    def _taken(self) -> Item | None:
        if self._lines:
            lines, self._lines = b"".join(self._lines), []
            self._count(-self.size)
            return lines
        if self.failure is not None:
            raise self.failure
        return None

    def _drop(self) -> None:
        self.left = True
        self._lines = []
        self._count(-self.size)

    def _count(self, size: int) -> None:
        self.size += size
        self._session.unread += size
        if self.size:
            self._session.holding.add(self)
        else:
            self._session.holding.discard(self)
