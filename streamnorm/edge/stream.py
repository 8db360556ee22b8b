"""A live source comes in; events come out, in an ``async for`` or a ``for`` loop.

Rule: events are pulled. One read at a time, when the reader has taken all that the last one gave;
so a slow reader slows the wire and memory stays bounded. Nothing that a wire or a connection does
raises while events are read: ``Failed`` is an event. ``calls()`` and ``text()`` raise it at the end.

Whatever a stream wraps is closed when it ends, fails or is cancelled, and when its scope is left.
No task group and no cancel scope is open while the reader has control (``watch.py`` has the timer).
The class is an iterator and no generator, as closing a generator does not close those inside it.

Hot is ``__anext__``, where the usual read is written out; everything unusual goes to ``_fill``.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import anyio
from anyio import lowlevel

from ..errors import BrokenCallError, NoteRaised, ProviderError, UsageError
from ..events import Event, Failed, FailedReason, Finish, Provenance, TextDelta, ToolCall
from ..framing.inflate import NotInflated
from ..limits import Limits
from ..normalizer import Normalizer
from .broadcast import Broadcast
from .failures import CutShort, Reported, error_of
from .intake import Intake
from .reading import IDLE, Reading, named_secrets
from .runtime import CLOSE_WITHIN, spawn
from .sources import Item, Source, as_item, is_transport, source_of
from .summary import PIECES, Tally
from .timer import Timer, TimeUp
from .watch import OnAsyncio, Watch, watch_for

if TYPE_CHECKING:
    import os

__all__ = ["Picked", "Stream", "normalize"]

T = TypeVar("T")
# The watch, the source's tap, the timer, the tally and its counts, and the pipe if chunks may go
# straight to it.
Usual: TypeAlias = tuple[
    OnAsyncio, Callable[[], Any], list[Any], Timer, Tally, Counter[type[Event]],
    Callable[[bytes], list[Event]] | None,
]  # fmt: skip

_NOT_YET: Any = None  # there was no read yet that could tell
AT_HAND: Any = object()  # what a read is told to give that need not wait
DRAIN_WITHIN = 0.05  # seconds, and bytes, for the end of a body after the last event: only a body
DRAIN_BYTES = 64 * 1024  # that was read to its end leaves a connection that can be used again


def normalize(
    source: Any,
    provider: str | None = None,
    *,
    record: str | os.PathLike[str] | None = None,
    secrets: Iterable[str] = (),
    limits: Limits | None = None,
    strict: bool = False,
    seed: str | None = None,
    idle: float | None = IDLE,
    deadline: float | None = None,
    on_bad_event: str = "fail",
) -> Stream:
    """The events of anything that streams an answer.

    ``source``: a response of httpx, httpx2, aiohttp or requests; a stream object of the openai,
    anthropic or google-genai SDK; an ``httpx_sse.EventSource``; or any iterable, async or not, of
    bytes, str, payloads or SDK model objects. The provider is told from the object, its address or
    its first payload, unless named.

    ``record`` keeps the raw bytes as a take. Neither there nor in an error or a log are the keys of the
    request, nor the ``secrets`` that are named. ``idle`` is how many seconds may pass without an event
    (keep-alives do not count, nor does the time that the reader takes), ``deadline`` how many the
    whole stream may take. The rest is handed to ``Normalizer``.

    >>> wire = [b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\n']
    >>> [event.kind for event in normalize(wire, "openai_chat")]
    ['stream_start', 'text_delta', 'finish']
    """
    reading = Reading(
        record=record, secrets=named_secrets(secrets), limits=limits, strict=strict, seed=seed, idle=idle,
        deadline=deadline, on_bad_event=on_bad_event,
    )  # fmt: skip
    return Stream(source_of(source), provider, reading)


class Stream:
    """One answer, event by event. Made by ``normalize``, ``connect`` and ``replay``.

    ::

        async with normalize(response) as stream:
            async for event in stream: ...

    With ``async with`` (or ``with``) it is closed at the end of the scope. Without, it is closed at
    its end, and after a ``break`` when it is dropped, which also warns (``ResourceWarning``).
    """

    def __init__(self, source: Source, provider: str | None, reading: Reading) -> None:
        self._source = source
        self._pipe: Normalizer = reading.pipe(provider or source.whose())
        source.feeds(self._pipe)
        source.bound(reading.limits or Limits(), reading.secrets)
        self._pipe.conceal(source.facts.redacted)
        self._queue: deque[Event] = deque()
        self._over = False  # nothing follows what is in the queue, but perhaps …
        self._error: Exception | None = None  # … this, once
        self._cause: Exception | None = None  # what the transport raised
        self._free = False  # may the usual read begin?
        self._busy = False  # is another one under way?
        self._closing = False
        self._unwound: anyio.Event | None = None  # set when that read is over
        self._timer = Timer(reading.idle, reading.deadline)
        self._watch: Watch | None = None  # over the reads, once there was one
        self._usual: Usual = _NOT_YET  # what the usual read needs
        self._tally = Tally()
        self._intake = Intake(source, self._pipe, self._tally, reading)
        self._feed = self._intake.feed
        self._shut_done = False  # is the source closed? It is ours to close from here on
        if source.ready:
            self._intake.open()

    # --- reading ----------------------------------------------------------------------------------

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        queue = self._queue
        if queue:
            return queue.popleft()
        since = None  # the last read ended without an event, at this time
        while self._free:  # the usual read: one coroutine between reader and source
            self._free = False
            watch, pull, box, timer, tally, counts, straight = self._usual
            try:
                if timer.deadline is not None:
                    timer.begin(watch.now())
                step = pull()
                waiting = next(step, AT_HAND)  # if it is, nobody waits: there is nothing to watch
                if waiting is not AT_HAND:
                    await watch.wait(step, waiting)
                    if watch.fired:
                        self._heed()
                    watch.task = None
                item = box[0]
                if type(item) is not bytes:
                    item = as_item(item)
            except BaseException as error:  # noqa: BLE001  the end of the source among them
                await self._fill(error)
                break
            self._free = not self._closing  # a source may have swallowed its interruption
            try:
                if straight is not None and type(item) is bytes:
                    tally.chunks += 1
                    tally.bytes += len(item)
                    events = straight(item)
                else:
                    events = self._feed(item)
                if events:
                    timer.waited = 0.0
                    event = events[0]
                    if len(events) == 1 and type(event) in PIECES:  # says no more than itself
                        counts[type(event)] += 1
                        tally.last = time.monotonic()
                        return event
                    if type(events[-1]) is Failed:
                        events = self._concealed(events)
                    tally.hear(events)
                    queue.extend(events)
                    if tally.end is None and self._free:
                        return queue.popleft()
                    self._free = False
            except (NoteRaised, ProviderError) as objection:
                self._object(objection)
            except BaseException as error:
                await self._abandon(error)
                raise
            if not queue:
                now = watch.now()
                self._pause(now, since if waiting is AT_HAND else timer.since)
                since = now
            if not self._free:
                await self._fill()
                break
            if queue:
                break
        if not queue:
            await self._fill()
            if not queue:
                self._raise_error()
                raise StopAsyncIteration
        return queue.popleft()

    def __iter__(self) -> Stream:
        if not self._source.is_sync:
            raise UsageError("this source is async: use `async for`, or a sync client and `for`")
        return self

    def __next__(self) -> Event:
        if not self._queue:
            self._fill_now()
            if not self._queue:
                self._raise_error()
                raise StopIteration
        return self._queue.popleft()

    def calls(self) -> Picked[ToolCall]:
        """The whole calls only, as an iterator for ``async for`` or ``for``.

        At its end it raises if the stream failed (``StreamTruncated``, ``ProviderError``,
        ``FrameError``) or if a call of it is broken (``BrokenCallError``).
        """
        return Picked(self, lambda event: event if isinstance(event, ToolCall) else None, True)

    def text(self, choice: int = 0) -> Picked[str]:
        """The visible text only, piece by piece; raises at its end if the stream failed."""

        def pick(event: Event) -> str | None:
            is_text = isinstance(event, TextDelta) and event.choice == choice
            return event.text if is_text and isinstance(event, TextDelta) else None

        return Picked(self, pick, False)

    def broadcast(self, n: int, *, buffer: int = 64, on_slow: str = "wait") -> Broadcast:
        """The same events for ``n`` readers, each at its own pace.

        ``on_slow``: with a reader ``buffer`` events behind, ``"wait"`` for it, or ``"drop"`` it
        (it then hears ``ConsumerTooSlow``). ``ui, log = stream.broadcast(2)``
        """
        return Broadcast(self, n, buffer=buffer, on_slow=on_slow)

    # --- looking ----------------------------------------------------------------------------------

    @property
    def provider(self) -> str:
        """The provider's name; ``"auto"`` until the first payload has told."""
        return self._pipe.provider

    @property
    def notes(self) -> Counter[str]:
        """How often each tolerance happened, by name; ``streamnorm.NOTES`` explains them."""
        return self._pipe.notes

    @property
    def seed(self) -> str:
        """What minted ids are made from; the same seed mints the same ids."""
        return self._pipe.seed

    @property
    def cursor(self) -> str | None:
        """Where the provider can go on if this is cut, for ``connect(..., after=cursor)``.

        Text that can be kept; None where the wire has no such place.
        """
        return self._pipe.cursor

    @property
    def end(self) -> Finish | Failed | None:
        """The last event, once it was read."""
        return self._tally.end

    @property
    def provenance(self) -> dict[int, Provenance]:
        """Where each call that has ended, and its id, comes from, by the call's ordinal."""
        return {row["call"]: row["provenance"] for row in self._tally.calls}

    @property
    def summary(self) -> dict[str, Any]:
        """What was read so far, as plain values: every id with its source, counts, end, timing."""
        summary = self._tally.summary()
        summary |= {"provider": self.provider, "seed": self.seed, "notes": dict(self.notes)}
        return summary | self._intake.recording()

    @property
    def at_hand(self) -> int:
        """How many events were read from the wire and not yet taken."""
        return len(self._queue)

    def raise_for_end(self, *, broken_calls: bool = True) -> None:
        """Raise if the stream failed or, unless told otherwise, if a call of it is broken."""
        end = self._tally.end
        if isinstance(end, Failed):
            raise error_of(end, self.provider) from self._cause
        if broken_calls and (broken := self._tally.broken):
            first = broken[0]
            raise BrokenCallError(
                f"{len(broken)} of {len(self._tally.calls)} calls broke; the first is "
                f"{first['name']!r} ({first['id']}): {first['broken']}", provider=self.provider,
            )  # fmt: skip

    # --- closing ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Stream:
        return iter(self)

    def __exit__(self, *_: object) -> None:
        self.close()

    async def aclose(self) -> None:
        """Close what is wrapped, from any task. A read that is under way ends as cancelled."""
        if self._is_read():
            self._closing = True
            self._unwound = self._unwound or anyio.Event()
            if self._watch is not None:
                self._watch.interrupt()
            await self._unwound.wait()
            return await self._cancel()
        self._stop()
        try:
            await self._drain()
        finally:
            await self._shut()

    def close(self) -> None:
        """As ``aclose``, for a stream that is read in a ``for`` loop."""
        if not self._source.is_sync:
            raise UsageError("this source is async: `await stream.aclose()`, or use `async with`")
        self._stop()
        self._shut_now()

    def __del__(self) -> None:
        if getattr(self, "_shut_done", True):
            return
        self._shut_done = True
        self._rest()
        source = self._source
        if not source.closable:
            return
        if source.is_async:
            spawn(source.aclose)
        else:
            source.close()
        if self._queue or not self._pipe.ended:
            warnings.warn(
                "a Stream was dropped before its end and closed only then; use `async with`",
                ResourceWarning, source=self, stacklevel=2,
            )  # fmt: skip

    # --- one read, async --------------------------------------------------------------------------

    async def _fill(self, met: BaseException | None = None) -> None:
        """Read until there is an event, or the end. ``met``: what the usual read has met with."""
        if met is None:
            self._refuse_second_reader()
        self._busy = True
        try:
            if met is not None:
                await self._step(met)
            while not self._queue and not self._over:
                if self._closing:
                    await self._cancel()
                elif self._pipe.ended:
                    await self._wind_up()
                else:
                    await self._step()
            if self._pipe.ended and not isinstance(self.end, Finish):
                await self._shut()  # nothing good comes from there any more
        except BaseException as error:  # cancelled, or a mistake in somebody's code
            await self._abandon(error)
            raise
        finally:
            met = None  # its traceback knows this frame: no cycle
            self._busy = False
            self._free = self._is_usual()
            self._release()

    async def _step(self, met: BaseException | None = None) -> None:
        try:
            item = await (self._read() if met is None else self._met(met))
        except TimeUp as up:
            self._expire(up)
        except Exception as error:
            if not self._lose(error):
                raise
        else:
            self._take(item)
            if not self._queue and self._watch is not None:
                self._pause(self._watch.now(), self._timer.since)
        finally:
            met = None

    async def _read(self) -> Item | None:
        if self._source.instant:
            if self._timer.deadline is not None:
                self._timer.begin(anyio.current_time())
            await lowlevel.checkpoint()  # the others, too
            return self._source.next_now()
        watch = self._watch = self._watch or watch_for(self._timer)
        connected = self._source.ready
        if not self._source.is_async:  # in a thread, where a read cannot be interrupted
            self._timer.begin(watch.now(), connected=connected)
            return await self._source.next()
        item: Item | None = await watch.read(self._source.next, connected=connected)
        return item

    async def _met(self, error: BaseException) -> None:
        """The usual read ended with this: None, if it is the end of the source."""
        try:
            if self._watch is not None:
                await self._watch.end_with(error)
            if not isinstance(error, StopAsyncIteration):
                raise error
        finally:
            del error

    def _is_usual(self) -> bool:
        """Will the next read be one of a source that is open and has nothing odd about it?"""
        if self._over or self._closing or self._pipe.ended:
            return False
        if self._usual is _NOT_YET and isinstance(self._watch, OnAsyncio):
            tap = self._source.tap()
            if tap is not None:
                timer, tally = self._timer, self._tally
                timer.connected = True
                straight = self._intake.straight()
                self._usual = self._watch, *tap, timer, tally, tally.counts, straight
        return self._usual is not _NOT_YET

    def _heed(self) -> None:
        """The usual read was interrupted, and gave something all the same."""
        self._usual[0].end()
        self._release()

    def _release(self) -> None:
        """Those who wait for the end of this read may go on."""
        if self._unwound is not None:
            self._unwound.set()

    async def _abandon(self, error: BaseException) -> None:
        self._stop(type(error).__name__)
        await self._shut()

    async def _cancel(self) -> None:
        """Another task closes the stream: its reader hears that, and what it breaks."""
        self._end()
        self._hear(self._pipe.fail("cancelled", "closed while it was read"))
        await self._shut()

    async def _wind_up(self) -> None:
        await self._drain()
        await self._shut()
        self._end()

    async def _drain(self) -> None:
        """Read on to the end of the body, if it is already there."""
        if self._source.instant:
            return self._drain_now()
        if self._shut_done or not isinstance(self.end, Finish) or not self._source.is_async:
            return None
        left = DRAIN_BYTES
        with anyio.move_on_after(DRAIN_WITHIN):
            try:
                while left > 0 and (item := await self._source.next()) is not None:
                    left -= self._intake.feed_rest(item)
            except NotInflated:
                return None
            except Exception as error:
                if not is_transport(error):
                    raise

    async def _shut(self) -> None:
        if self._shut_done:
            return
        self._shut_done = True
        self._rest()
        # Shielded, or a cancelled task would leave the connection open; not for ever, though.
        within = anyio.current_time() + CLOSE_WITHIN
        with anyio.CancelScope(shield=True, deadline=within):
            await self._source.aclose()

    # --- one read, blocking -----------------------------------------------------------------------

    def _fill_now(self) -> None:
        self._refuse_second_reader()
        self._busy = True
        try:
            while not self._queue and not self._over:
                if self._pipe.ended:
                    self._wind_up_now()
                else:
                    self._step_now()
        except BaseException as error:
            self._stop(type(error).__name__)
            self._shut_now()
            raise
        finally:
            self._busy = False

    def _step_now(self) -> None:
        # A read that blocks cannot be interrupted: time is told before the next one.
        try:
            self._timer.begin(time.monotonic(), connected=self._source.ready)
            item = self._source.next_now()
        except TimeUp as up:
            self._expire(up)
        except Exception as error:
            if not self._lose(error):
                raise
        else:
            self._take(item)
            if not self._queue:
                self._pause(time.monotonic(), self._timer.since)
        if self._pipe.ended and not isinstance(self.end, Finish):
            self._shut_now()

    def _wind_up_now(self) -> None:
        if self._source.instant:  # otherwise a read for the end of a body could block for long
            self._drain_now()
        self._shut_now()
        self._end()

    def _drain_now(self) -> None:
        left = DRAIN_BYTES
        if isinstance(self.end, Finish) and not self._shut_done:
            while left > 0 and (item := self._source.next_now()) is not None:
                left -= self._intake.feed_rest(item)

    def _shut_now(self) -> None:
        if not self._shut_done:
            self._shut_done = True
            self._rest()
            self._source.close()

    # --- what both have in common -----------------------------------------------------------------

    def _is_read(self) -> bool:
        return self._busy or (self._usual is not _NOT_YET and self._usual[0].task is not None)

    def _refuse_second_reader(self) -> None:
        if self._is_read():
            raise UsageError("two readers on one stream; stream.broadcast(2) gives each its own")

    def _end(self) -> None:
        """Nothing follows what is in the queue."""
        self._over = True
        self._free = False

    def _rest(self) -> None:
        """There will be no more reads."""
        self._intake.close()
        if self._watch is not None:
            self._watch.stop()

    def _take(self, item: Item | None) -> None:
        """A chunk, a payload or the end, on its way to the pipe."""
        try:
            self._hear(self._feed(item))
        except (NoteRaised, ProviderError) as objection:
            self._object(objection)

    def _object(self, objection: NoteRaised | ProviderError) -> None:
        """What was fed is not accepted."""
        if isinstance(objection, ProviderError):
            return self._refuse(objection)
        self._hear(list(objection.events))
        self._error = objection
        return self._end()

    def _hear(self, events: list[Event]) -> None:
        events = self._intake.told(events)
        if events:
            self._timer.heard()
            if type(events[-1]) is Failed:
                events = self._concealed(events)
            self._tally.hear(events)
            self._queue.extend(events)
            if self._tally.end is not None:
                self._free = False

    def _concealed(self, events: list[Event]) -> list[Event]:
        """The same; a provider that tells a failure in its stream may repeat the key that it was sent."""
        end = events[-1]
        assert isinstance(end, Failed)
        hide = self._source.facts.redacted
        code = end.code and hide(end.code)
        return [*events[:-1], Failed(end.reason, hide(end.error), end.retryable, code)]

    def _pause(self, now: float, since: float | None) -> None:
        """A read gave no event that began then; None: it took no time."""
        try:
            self._timer.pause(now if since is None else since, now)
        except TimeUp as up:
            self._expire(up)

    def _expire(self, up: TimeUp) -> None:
        """The time is up, or somebody closes the stream while it is being read."""
        if self._closing:
            return None  # told by _cancel
        if (refusal := self._intake.refusal()) is not None:
            return self._refuse(refusal)
        why = self._timer.why(up)
        if self._timer.is_deadline(up):
            return self._hear(self._pipe.fail("limit", why, code="deadline"))
        return self._hear(self._pipe.fail("idle", why, retryable=True))

    def _lose(self, error: Exception) -> bool:
        """The source raised. False: it was a mistake, to be passed on."""
        if type(error).__name__ in ("StreamConsumed", "ResponseNotRead"):
            raise UsageError("the body was read already; a stream can be read only once") from error
        if isinstance(error, CutShort):
            said = str(error), error.retryable, error.code
            self._hear(self._pipe.fail(error.reason, said[0], retryable=said[1], code=said[2]))
        elif isinstance(error, ProviderError):
            self._refuse(error)
        elif isinstance(error, NotInflated):
            self._leave_packed(error)
        elif not is_transport(error):
            return False
        elif (refusal := self._intake.refusal()) is not None:
            self._refuse(refusal)
        else:
            # Without its traceback, which would hold this stream in a cycle.
            self._source.claim(error)
            self._cause = error.with_traceback(None)
            reported = Reported(error, self._source.facts.redacted)
            if reported.hides:  # a traceback would show it
                self._cause = None
            self._fail(reported)
        return True

    def _leave_packed(self, error: NotInflated) -> None:
        """The body must not be unpacked, or cannot be. From its headers that is a refusal."""
        refusal = self._intake.refusal()
        if refusal is None and error.code == "encoding":
            refusal = ProviderError(str(error), status=self._source.facts.status)
        if refusal is not None:
            return self._refuse(refusal)
        reason: FailedReason = "limit" if error.is_limit else "protocol"
        return self._hear(self._pipe.fail(reason, str(error), code=error.code))

    def _fail(self, said: Reported) -> None:
        if said.status >= 400 and not self._tally.events:
            return self._refuse(said.as_refusal(self.provider))
        return self._hear(
            self._pipe.fail(said.reason, said.message, retryable=said.retryable, code=said.code)
        )

    def _refuse(self, refusal: ProviderError) -> None:
        """It never was a stream: raised, as there are no events that could tell it."""
        refusal.provider = refusal.provider or self.provider
        said = (refusal.message, refusal.retryable, refusal.code)
        self._pipe.fail("provider_error", said[0], retryable=said[1], code=said[2])
        self._tally.hear([Failed("provider_error", *said)])
        self._error = refusal
        self._end()

    def _stop(self, why: str = "closed before its end") -> None:
        """No more events, whatever was still to come."""
        if events := self._pipe.fail("cancelled", why):
            self._tally.hear(events)
        self._queue.clear()
        self._error = None
        self._end()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # its traceback knows this frame: no cycle


class Picked(Generic[T]):
    """One kind of thing out of a stream's events; raises at the end if the stream failed."""

    __slots__ = ("_calls", "_pick", "_stream")

    def __init__(self, stream: Stream, pick: Callable[[Event], T | None], calls: bool) -> None:
        self._stream, self._pick, self._calls = stream, pick, calls

    def __aiter__(self) -> Picked[T]:
        return self

    async def __anext__(self) -> T:
        async for event in self._stream:
            if (picked := self._pick(event)) is not None:
                return picked
        self._stream.raise_for_end(broken_calls=self._calls)
        raise StopAsyncIteration

    def __iter__(self) -> Picked[T]:
        iter(self._stream)
        return self

    def __next__(self) -> T:
        for event in self._stream:
            if (picked := self._pick(event)) is not None:
                return picked
        self._stream.raise_for_end(broken_calls=self._calls)
        raise StopIteration
