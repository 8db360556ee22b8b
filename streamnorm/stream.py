"""A live source comes in; events come out, in an ``async for`` or a ``for`` loop.

Rule: events are pulled. One read at a time, when the reader has taken all that the last one gave;
so a slow reader slows the wire and memory stays bounded. Nothing that a wire or a connection does
raises while events are read: ``Failed`` is an event. ``calls()`` and ``text()`` raise it at the end.

Whatever a stream wraps is closed when it ends, fails or is cancelled, and when its scope is left.
No task group and no cancel scope is open while the reader has control: a timer lives for one read.
The class is an iterator and no generator, as closing a generator does not close those inside it.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from anyio import lowlevel

from .errors import (
    BrokenCall,
    FrameError,
    NoteRaised,
    ProviderError,
    StreamTruncated,
    UsageError,
    WireError,
)
from .events import (
    BrokenToolCall,
    Event,
    Failed,
    FailedReason,
    Finish,
    Provenance,
    StreamStart,
    TextDelta,
    ToolCall,
    Usage,
    event_to_dict,
)
from .normalizer import Normalizer
from .providers import AUTO
from .refusals import Gate
from .sources import Item, Source, is_transport, source_of, spawn

if TYPE_CHECKING:
    import os

    from .limits import Limits
    from .recorder import Recorder
    from .sharing import Broadcast

__all__ = ["Stream", "normalize"]

T = TypeVar("T")

IDLE = 120.0  # seconds without an event
CLOSE_WITHIN = 2.0  # seconds that closing may take, cancelled or not
DRAIN_WITHIN = 0.05  # seconds, and bytes, for the end of a body after the last event: only a body
DRAIN_BYTES = 64 * 1024  # that was read to its end leaves a connection that can be used again
RATIO, RATIO_AFTER = 100, 1024 * 1024  # unpacked to packed bytes, once that many were unpacked


def normalize(
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
) -> Stream:
    """The events of anything that streams an answer.

    ``source``: a response of httpx, httpx2, aiohttp or requests; a stream object of the openai,
    anthropic or google-genai SDK; an ``httpx_sse.EventSource``; or any iterable, async or not, of
    bytes, str, payloads or SDK model objects. The provider is told from the object, its address or
    its first payload, unless named.

    ``record`` keeps the raw bytes as a take. ``idle`` is how many seconds may pass without an event
    (keep-alives do not count, nor does the time that the reader takes), ``deadline`` how many the
    whole stream may take. The rest is handed to ``Normalizer``.

    >>> wire = [b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\n']
    >>> [event.kind for event in normalize(wire, "openai_chat")]
    ['stream_start', 'text_delta', 'finish']
    """
    wrapped = source_of(source)
    pipe = Normalizer(
        provider or wrapped.provider or AUTO,
        limits=limits, strict=strict, seed=seed, on_bad_event=on_bad_event,
    )  # fmt: skip
    return Stream(wrapped, pipe, record=record, idle=idle, deadline=deadline)


class Stream:
    """One answer, event by event. Made by ``normalize``, ``connect`` and ``replay``.

    ::

        async with normalize(response) as stream:
            async for event in stream: ...

    With ``async with`` (or ``with``) it is closed at the end of the scope. Without, it is closed at
    its end, and after a ``break`` when it is dropped, which also warns (``ResourceWarning``).
    """

    def __init__(
        self,
        source: Source,
        pipe: Normalizer,
        *,
        record: str | os.PathLike[str] | None = None,
        idle: float | None = IDLE,
        deadline: float | None = None,
    ) -> None:
        self._shut_done = False  # is the source closed? First, as __del__ asks
        self._source = source
        self._pipe = pipe
        self._idle, self._deadline = idle, deadline
        self._queue: deque[Event] = deque()
        self._over = False  # nothing follows what is in the queue, but perhaps …
        self._error: Exception | None = None  # … this, once
        self._cause: Exception | None = None  # what the transport raised
        self._busy = False
        self._closing = False
        self._scope: anyio.CancelScope | None = None  # of the read that is under way
        self._unwound: anyio.Event | None = None  # set when that read is over
        self._began: float | None = None  # by the clock of the event loop
        self._waited = 0.0  # seconds spent in reads since the last event
        self._gate: Gate | None = None
        self._recorder: Recorder | None = None
        self._record = record
        self._tally = _Tally()
        if source.ready:
            self._open()

    # --- reading ----------------------------------------------------------------------------------

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        if not self._queue:
            await self._fill()
            if not self._queue:
                self._raise_error()
                raise StopAsyncIteration
        return self._queue.popleft()

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
        ``FrameError``) or if a call of it is broken (``BrokenCall``).
        """
        return Picked(self, lambda event: event if isinstance(event, ToolCall) else None, True)

    def text(self, choice: int = 0) -> Picked[str]:
        """The visible text only, piece by piece; raises at its end if the stream failed."""

        def pick(event: Event) -> str | None:
            is_text = isinstance(event, TextDelta) and event.choice == choice
            return event.text if is_text and isinstance(event, TextDelta) else None

        return Picked(self, pick, False)

    def broadcast(self, n: int, *, buffer: int = 64, on_slow: str = "wait") -> Broadcast:
        """The same events for ``n`` readers; see ``streamnorm.sharing``.

        ``on_slow``: with a reader ``buffer`` events behind, ``"wait"`` for it, or ``"drop"`` it
        (it then hears ``ConsumerTooSlow``). ``ui, log = stream.broadcast(2)``
        """
        from .sharing import Broadcast

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
        if self._recorder is not None:
            summary["recording"] = {"path": self._recorder.path, "failed": self._recorder.failed}
        return summary

    def raise_for_end(self, *, broken_calls: bool = True) -> None:
        """Raise if the stream failed or, unless told otherwise, if a call of it is broken."""
        end = self._tally.end
        if isinstance(end, Failed):
            raise error_of(end, self.provider) from self._cause
        if broken_calls and (broken := [c for c in self._tally.calls if "broken" in c]):
            first = broken[0]
            raise BrokenCall(
                f"{len(broken)} of {len(self._tally.calls)} calls broke; the first is "
                f"{first['name']!r} ({first['id']}): {first['broken']}", provider=self.provider,
            )  # fmt: skip

    # --- closing ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Stream:
        return iter(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def aclose(self) -> None:
        """Close what is wrapped, from any task. A read that is under way ends as cancelled."""
        if self._busy:
            self._closing = True
            self._unwound = self._unwound or anyio.Event()
            if self._scope is not None:
                self._scope.cancel()
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
        self._close_recorder()
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

    async def _fill(self) -> None:
        """Read until there is an event, or the end."""
        self._occupy()
        try:
            while not self._queue and not self._over:
                if self._closing:
                    await self._cancel()
                elif self._pipe.ended:
                    await self._wind_up()
                else:
                    await self._step()
        except BaseException as error:  # cancelled, or a mistake in somebody's code
            self._stop(type(error).__name__)
            await self._shut()
            raise
        finally:
            self._busy = False
            if self._unwound is not None:
                self._unwound.set()

    async def _step(self) -> None:
        try:
            item = await self._read()
        except _TimeUp as up:
            self._expire(up)
        except Exception as error:
            if not self._lose(error):
                raise
        else:
            self._take(item)
        if self._pipe.ended and not isinstance(self.end, Finish):
            await self._shut()  # nothing good comes from there any more

    async def _read(self) -> Item | None:
        if self._source.instant:
            if self._deadline is not None:
                self._patience(anyio.current_time())
            await lowlevel.checkpoint()  # the others, too
            return self._source.next_now()
        now = anyio.current_time()
        until = self._patience(now)
        with anyio.CancelScope(deadline=until) as self._scope:
            try:
                return await self._source.next()
            finally:
                self._waited += anyio.current_time() - now
                self._scope = None
        raise _TimeUp(anyio.current_time())

    async def _cancel(self) -> None:
        """Another task closes the stream: its reader hears that, and what it breaks."""
        self._over = True
        self._hear(self._pipe.fail("cancelled", "closed while it was read"))
        await self._shut()

    async def _wind_up(self) -> None:
        await self._drain()
        await self._shut()
        self._over = True

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
                    left -= self._take_rest(item)
            except Exception as error:
                if not is_transport(error):
                    raise

    async def _shut(self) -> None:
        if self._shut_done:
            return
        self._shut_done = True
        self._close_recorder()
        # Shielded, or a cancelled task would leave the connection open; not for ever, though.
        within = anyio.current_time() + CLOSE_WITHIN
        with anyio.CancelScope(shield=True, deadline=within):
            await self._source.aclose()

    # --- one read, blocking -----------------------------------------------------------------------

    def _fill_now(self) -> None:
        self._occupy()
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
        now = time.monotonic()
        try:
            self._patience(now)
            item = self._source.next_now()
        except _TimeUp as up:
            self._expire(up)
        except Exception as error:
            if not self._lose(error):
                raise
        else:
            self._waited += time.monotonic() - now
            self._take(item)
        if self._pipe.ended and not isinstance(self.end, Finish):
            self._shut_now()

    def _wind_up_now(self) -> None:
        if self._source.instant:  # otherwise a read for the end of a body could block for long
            self._drain_now()
        self._shut_now()
        self._over = True

    def _drain_now(self) -> None:
        left = DRAIN_BYTES
        if isinstance(self.end, Finish) and not self._shut_done:
            while left > 0 and (item := self._source.next_now()) is not None:
                left -= self._take_rest(item)

    def _shut_now(self) -> None:
        if not self._shut_done:
            self._shut_done = True
            self._close_recorder()
            self._source.close()

    # --- what both have in common -----------------------------------------------------------------

    def _occupy(self) -> None:
        if self._busy:
            raise UsageError("two readers on one stream; stream.broadcast(2) gives each its own")
        self._busy = True

    def _open(self) -> None:
        """The facts are known: look at the status, begin the recording."""
        facts = self._source.facts
        gate = Gate(facts, self.provider)
        self._gate = None if gate.open else gate
        if self._record is not None:
            from .recorder import Recorder

            self._recorder = Recorder.open(
                self._record,
                provider=self.provider,
                seed=self.seed,
                url=facts.url,
                headers=facts.headers,
                request_headers=facts.request_headers,
                secrets=facts.secrets,
                status=facts.status,
            )

    def _patience(self, now: float) -> float:
        """Until when the next read may take. Time counts only while waiting for the wire."""
        if self._began is None:
            self._began = now
        until = float("inf")
        # While connecting, its own timeouts and retries say how long.
        if self._idle is not None and self._source.ready:
            until = now + max(0.0, self._idle - self._waited)
        if self._deadline is not None:
            until = min(until, self._began + self._deadline)
        if now >= until:
            raise _TimeUp(now)
        return until

    def _take(self, item: Item | None) -> None:
        """A chunk, a payload or the end, on its way to the pipe."""
        if not self._tally.chunks and not self._source.ready:
            self._source.ready = True
            self._open()
        try:
            self._hear(self._feed(item))
        except NoteRaised as raised:
            self._hear(list(raised.events))
            self._error = raised
            self._over = True
        except ProviderError as refusal:
            self._refuse(refusal)

    def _feed(self, item: Item | None) -> list[Event]:
        if item is None:
            return self._feed_end()
        self._keep(item)
        if isinstance(item, dict):
            return self._pipe.feed_payload(item)
        if self._gate is not None:
            item = self._gate.let_in(item)
        if self._tally.bytes > RATIO_AFTER and self._is_bomb():
            return self._pipe.fail(
                "limit", f"more than {RATIO} times as long unpacked as packed", code="ratio"
            )
        return self._pipe.feed(item)

    def _feed_end(self) -> list[Event]:
        if self._gate is None or self._gate.open:
            return self._pipe.close()
        events = self._pipe.feed(self._gate.at_end()) + self._pipe.close()
        if isinstance(events[-1], Failed) and events[-1].reason != "provider_error":
            raise self._gate.no_stream()
        return events

    def _is_bomb(self) -> bool:
        received = self._source.received()
        return received is not None and self._tally.bytes > RATIO * received

    def _keep(self, item: Item) -> int:
        """Count and record what came; returns its size."""
        size = 0 if isinstance(item, dict) else len(item)
        self._tally.chunks += 1
        self._tally.bytes += size
        if self._recorder is not None:
            if isinstance(item, dict):
                self._recorder.payload(item)
            else:
                self._recorder.chunk(item)
        return size

    def _take_rest(self, item: Item) -> int:
        """What follows the last event: recorded, and noted by the pipe."""
        size = self._keep(item)
        if isinstance(item, bytes):
            self._pipe.feed(item)
        return size or 1

    def _hear(self, events: list[Event]) -> None:
        if events:
            self._waited = 0.0
            self._tally.hear(events)
            self._queue.extend(events)

    def _expire(self, up: _TimeUp) -> None:
        """The time is up, or somebody closes the stream while it is being read."""
        if self._closing:
            return None  # told by _cancel
        if self._gate is not None and self._gate.refused:
            return self._refuse(self._gate.error())
        assert self._began is not None
        if self._deadline is not None and up.at >= self._began + self._deadline:
            why = f"not at its end after {self._deadline:g} s (deadline)"
            return self._hear(self._pipe.fail("limit", why, code="deadline"))
        why = f"no event for {self._idle:g} s, not counting keep-alives"
        return self._hear(self._pipe.fail("idle", why, retryable=True))

    def _lose(self, error: Exception) -> bool:
        """The source raised. False: it was a mistake, to be passed on."""
        if type(error).__name__ in ("StreamConsumed", "ResponseNotRead"):
            raise UsageError("the body was read already; a stream can be read only once") from error
        if isinstance(error, ProviderError):
            self._refuse(error)
        elif not is_transport(error):
            return False
        elif self._gate is not None and self._gate.refused:
            self._refuse(self._gate.error())
        else:
            # Without its traceback, which would hold this stream in a cycle.
            self._cause = error.with_traceback(None)
            self._fail(_Reported(error, self._source.facts.redacted))
        return True

    def _fail(self, said: _Reported) -> None:
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
        self._over = True

    def _stop(self, why: str = "closed before its end") -> None:
        """No more events, whatever was still to come."""
        if events := self._pipe.fail("cancelled", why):
            self._tally.hear(events)
        self._queue.clear()
        self._error = None
        self._over = True

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # its traceback knows this frame: no cycle

    def _close_recorder(self) -> None:
        if self._recorder is not None:
            end = self._tally.end
            cut_short = isinstance(end, Failed) and end.reason in _CUT_SHORT
            self._recorder.close(finished=end is not None and not cut_short)


_CUT_SHORT = ("transport", "idle", "limit", "cancelled")  # the body went on, or would have


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


class _TimeUp(Exception):
    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at


class _Tally:
    """What a stream has said so far, without the saying itself."""

    def __init__(self) -> None:
        self.chunks = 0
        self.bytes = 0
        self.calls: list[dict[str, Any]] = []
        self.end: Finish | Failed | None = None
        self._counts: Counter[type] = Counter()
        self._start = StreamStart("")
        self._usage: Usage | None = None
        self._born = time.monotonic()
        self._first: float | None = None
        self._last = self._born

    @property
    def events(self) -> int:
        return self._counts.total()

    def hear(self, events: list[Event]) -> None:
        self._last = time.monotonic()
        if self._first is None:
            self._first = self._last
        before = self._ended_calls()
        self._counts.update(map(type, events))  # counts in C; the loop below is for few
        if self._ended_calls() != before:
            self.calls += [_row(e) for e in events if isinstance(e, ToolCall | BrokenToolCall)]
        if isinstance(events[0], StreamStart):
            self._start = events[0]
        if isinstance(events[-1], Finish | Failed):
            self.end = events[-1]
            self._usage = next((e for e in events[-2:] if isinstance(e, Usage)), None)

    def _ended_calls(self) -> int:
        return self._counts[ToolCall] + self._counts[BrokenToolCall]

    def summary(self) -> dict[str, Any]:
        end = event_to_dict(self.end) if self.end else {}
        return {
            "model": self._start.model,
            "response_id": self._start.response_id,
            "calls": [_plain_row(row) for row in self.calls],
            "counts": {kind.kind: n for kind, n in self._counts.items() if n},  # type: ignore[attr-defined]
            "end": end.pop("kind", None),
            "reason": end.pop("reason", None),
            **{k: end[k] for k in ("error", "retryable", "code", "raw_reason") if k in end},
            "usage": event_to_dict(self._usage) if self._usage else None,
            "bytes": self.bytes,
            "chunks": self.chunks,
            "timing": {
                "first_event": None if self._first is None else round(self._first - self._born, 6),
                "last_event": round(self._last - self._born, 6),
            },
        }


def _row(call: ToolCall | BrokenToolCall) -> dict[str, Any]:
    row = {
        "call": call.call, "id": call.id, "name": call.name, "family": call.family,
        "runs_on": call.runs_on, "choice": call.choice, "provenance": call.provenance,
    }  # fmt: skip
    return row | ({"broken": call.reason} if isinstance(call, BrokenToolCall) else {})


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    where: Provenance = row["provenance"]
    plain = {k: v for k, v in row.items() if k != "provenance"}
    return plain | {
        "id_source": where.id_source, "wire_id": where.wire_id, "wire_field": where.wire_field,
        "boundary": where.boundary,
    }  # fmt: skip


class _Reported:
    """What an exception of a source says: the provider's own report, or a failed connection."""

    def __init__(self, error: Exception, redacted: Callable[[str], str]) -> None:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        self.status = status if isinstance(status, int) else 0
        is_report = bool(self.status or getattr(error, "body", None))
        name = type(error).__name__
        self.code: str | None = None
        self.reason: FailedReason
        if is_report:
            self.reason = "provider_error"
            words = getattr(error, "message", None) or str(error)
            code = getattr(error, "status", None) or getattr(error, "code", None)
            self.code = str(code) if code else None
            self.retryable = self.status in (408, 409, 429) or self.status >= 500
        else:
            self.reason = "protocol" if "Decode" in name or "UnknownApi" in name else "transport"
            words = f"{type(error).__module__.partition('.')[0]}.{name}: {error}".rstrip(": ")
            self.retryable = self.reason == "transport"
        self.message = redacted(str(words))

    def as_refusal(self, provider: str) -> ProviderError:
        return ProviderError(
            self.message, code=self.code, status=self.status, retryable=self.retryable,
            provider=provider,
        )  # fmt: skip


_ERRORS: dict[str, type[WireError]] = {
    "truncated": StreamTruncated, "transport": StreamTruncated, "idle": StreamTruncated,
    "cancelled": StreamTruncated, "protocol": FrameError, "limit": FrameError,
}  # fmt: skip


def error_of(failed: Failed, provider: str = "") -> WireError:
    """The exception for an event: whose fault it is, in the same words.

    >>> error_of(Failed("provider_error", "Overloaded", True, "overloaded_error")).retryable
    True
    """
    if failed.reason == "provider_error":
        return ProviderError(
            failed.error, code=failed.code, retryable=failed.retryable, provider=provider
        )
    return _ERRORS[failed.reason](f"{failed.reason}: {failed.error}", provider=provider)
