"""The pipe without I/O: bytes in any chunking, or payloads, in; a list of events out.

Rule: any chunking of the same bytes gives the same events. So everything is decided at a frame,
never at a chunk, and limits fall at the same frame or byte whatever the chunks are. The last event
is ``Finish`` or ``Failed``, exactly one of them, and nothing follows it.

Hot is the loop in ``_read``; everything unusual leaves it through one ``except``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from . import providers
from .calls import Calls
from .errors import NoteRaised, UsageError
from .events import (
    BrokenReason,
    Event,
    Failed,
    FailedReason,
    Finish,
    FinishReason,
    StreamStart,
)
from .framing import Framer, sniff
from .halves import Halves, stand_in
from .limits import LimitReached, Limits
from .mint import Mint
from .notes import INFO, Scribe
from .providers._base import (
    UNREADABLE,
    Failure,
    Heading,
    NotJson,
    Parser,
    StreamFailed,
    StreamOver,
    plain,
)

__all__ = ["Normalizer"]

MEASURE_EVERY = 64  # frames, once a stream is long enough to hold too much
SNIFF = 80  # bytes that decide what a body is, and are shown if it is none
_BROKEN: dict[str, BrokenReason] = {
    "provider_error": "provider_error", "limit": "limit", "cancelled": "cancelled",
}  # fmt: skip


class Normalizer:
    """One stream of one provider.

    >>> pipe = Normalizer("openai_chat")
    >>> events = pipe.feed(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n')
    >>> [e.kind for e in events + pipe.close()]
    ['stream_start', 'text_delta', 'failed']

    ``strict=True`` raises the first tolerance instead of noting it. ``seed`` makes minted ids
    reproducible (a recording keeps one). ``on_bad_event="skip"`` leaves out an event that is not
    JSON, and breaks the calls that were open then, instead of failing the stream.
    """

    def __init__(
        self,
        provider: str = "auto",
        *,
        strict: bool = False,
        limits: Limits | None = None,
        seed: str | None = None,
        on_bad_event: str = "fail",
    ) -> None:
        if on_bad_event not in ("fail", "skip"):
            raise UsageError(f"on_bad_event is 'fail' or 'skip', not {on_bad_event!r}")
        self._wires = providers.parsers_of(provider)  # several: the first payload decides
        self._limits = limits or Limits()
        self._mint = Mint(seed)
        self._scribe = Scribe(provider, strict=strict)
        self._calls = Calls(self._scribe, self._mint, self._limits)
        self._parser: Parser = self._wires[0](self._calls, self._scribe)
        self._halves = Halves(self._scribe.note)
        self._skip_bad = on_bad_event == "skip"
        self._framer: Framer | None = None
        self._first = b""  # bytes held until the framing is known
        self._excerpt = b""  # how the body begins
        self._left = self._limits.stream
        self._frames = 0
        self._blank = 0  # frames without data
        self._heading = Heading()
        self._started = False
        self._ended = False
        self._unsure = len(self._wires) > 1  # which wire it is, or which response
        self._calm = False  # the stream has started
        self._long = (
            self._limits.stream - self._limits.arguments
        )  # bytes left when calls may be too big
        self._envelope: bytes | None = None  # see Parser.envelope
        self._skip, self._enveloped = 0, False  # where the last frame was cut

    @property
    def provider(self) -> str:
        """The provider's name; ``"auto"`` until the first payload has told."""
        return self._scribe.provider

    @property
    def seed(self) -> str:
        """The stand-in for this stream's secret: the same seed mints the same ids."""
        return self._mint.stand_in

    @property
    def notes(self) -> Counter[str]:
        """How often each tolerance happened, by name; ``streamnorm.NOTES`` explains them."""
        return self._scribe.counts

    @property
    def frames(self) -> int:
        """How many frames were read."""
        return self._frames

    @property
    def ended(self) -> bool:
        """Has the last event been told? Reading on would change nothing."""
        return self._ended

    # --- in -------------------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> list[Event]:
        """Bytes in any chunking; the events that they complete."""
        out: list[Event] = []
        self._left -= len(chunk)
        framer = self._framer
        if framer is None or self._left < 0 or not self._calm:
            return self._feed_slowly(chunk, out)
        blocks = framer.feed(chunk)
        if blocks:
            self._take(blocks, out)
        if framer.overflow:
            self._overflow("event", out)
        return out

    def _feed_slowly(self, chunk: bytes, out: list[Event]) -> list[Event]:
        """Until the stream has started, and the last bytes that the limit allows."""
        over = self._left < 0
        if over:
            chunk, self._left = chunk[: self._left], 0
        self._excerpt += chunk[: SNIFF - len(self._excerpt)]
        if self._framer is None and not self._frame_by(chunk, out):
            return out
        chunk, self._first = self._first + chunk, b""
        assert self._framer is not None
        self._take(self._framer.feed(chunk), out)
        if over or self._framer.overflow:
            self._overflow("event" if self._framer.overflow else "stream", out)
        return out

    def _overflow(self, name: str, out: list[Event]) -> None:
        if self._ended:
            return
        try:
            self._fail(out, _limit_failure(LimitReached(name, getattr(self._limits, name))))
        except NoteRaised as raised:
            raised.events = tuple(out)
            raise

    def feed_payload(self, payload: dict[str, Any]) -> list[Event]:
        """One decoded payload, such as an SDK object's dict."""
        try:
            data = msgspec.json.encode(payload)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"the payload is not plain JSON ({error}); pass the SDK object's dict, "
                "e.g. chunk.model_dump(mode='json')"
            ) from error
        if self._framer is None:
            self._framer = _Payloads()
        out: list[Event] = []
        self._take([data], out)
        return out

    def close(self) -> list[Event]:
        """End of input: whatever is open is decided now."""
        out: list[Event] = []
        if not self._ended:
            try:
                self._close(out)
            except NoteRaised as raised:
                self._ended = True
                raised.events = raised.events or tuple(out)
                raise
        return out

    def _close(self, out: list[Event]) -> None:
        if self._framer is None:
            self._choose_framer(self._first, out)
            if self._framer is not None and not self._ended:
                self._take(self._framer.feed(self._first), out)
        if not self._ended and self._framer is not None:
            self._take_last(self._framer.rest(), out)
        if not self._ended:
            self._end_of_input(out)

    def fail(
        self,
        reason: FailedReason,
        message: str,
        *,
        retryable: bool = False,
        code: str | None = None,
    ) -> list[Event]:
        """End the stream from outside: ``transport``, ``idle``, ``cancelled``, ``limit``."""
        out: list[Event] = []
        if not self._ended:
            self._fail(out, Failure(reason, message, code, retryable))
        return out

    # --- framing --------------------------------------------------------------------------------

    def _frame_by(self, chunk: bytes, out: list[Event]) -> bool:
        """Hold the first bytes until they say what the body is."""
        first = self._first + chunk
        start = sniff(first[:SNIFF])
        if (start is None or start in _NO_STREAM) and len(first) < SNIFF:
            self._first = (
                first  # what is no stream is told with an excerpt that no chunking changes
            )
            return False
        self._choose_framer(first, out)
        return self._framer is not None and not self._ended

    def _choose_framer(self, first: bytes, out: list[Event]) -> None:
        start = sniff(first[:SNIFF]) or "text"
        parser = self._parser if self.provider != providers.AUTO else framed_by(start, self._wires)
        self._framer = parser.framer(start, self._limits.event)
        if start in _NO_STREAM:
            excerpt = self._excerpt.decode("utf-8", "backslashreplace")
            self._fail(out, Failure("protocol", f"{_NO_STREAM[start]} It begins {excerpt!r}."))

    # --- the loop -------------------------------------------------------------------------------

    def _take(self, blocks: list[bytes], out: list[Event]) -> None:
        """Frames in, events out. Under ``strict`` a note may end it anywhere, with what was heard."""
        unread = iter(blocks)
        try:
            self._take_frames(unread, blocks, out)
        except NoteRaised as raised:
            self._ended = True
            raised.frame = self._frames - sum(1 for _ in unread)
            raised.events = tuple(out)
            raise

    def _take_frames(self, unread: Iterator[bytes], blocks: list[bytes], out: list[Event]) -> None:
        """Ends the stream where a frame says so."""
        if self._ended:
            return self._after_end(blocks)
        before = self._frames
        self._frames += len(blocks)
        try:
            if self._calm and self._left >= self._long and self._frames <= self._limits.events:
                self._read(unread, out)
            else:
                self._read_carefully(unread, before, out)
        except StreamOver:
            self._finish(out)
        except StreamFailed as failed:
            self._fail(out, failed.failure)
        except LimitReached as reached:
            self._fail(out, _limit_failure(reached))
        except NotJson as error:  # inside a field that was read on its own
            self._fail(out, Failure("protocol", f"an event is not JSON ({error})"))
        except _UNEXPECTED as error:
            self._give_up(error, out)
        if self._ended:
            self._after_end(list(unread))

    def _give_up(self, error: Exception, out: list[Event]) -> None:
        """A payload whose shape no handler expected: whatever a wire sends, nothing but our own
        errors leaves the pipe. The fuzz tests ask that this never happens."""
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{at.tb_frame.f_code.co_name}:{at.tb_lineno}" if at is not None else "?"
        what = f"a payload has a shape that cannot be read ({type(error).__name__} in {where})"
        self._fail(out, Failure("protocol", what))
        self._scribe.note("wire.unreadable", error=type(error).__name__, where=where)

    def _read(self, blocks: Iterator[bytes], out: list[Event]) -> None:
        """The hot loop. A frame is cut where the one before it was, and the decoder is the judge:
        bytes cut at a wrong place are no payload, and the frame is looked at again."""
        parser, skip, enveloped = self._parser, self._skip, self._enveloped
        kinds = parser.KINDS
        decode = _refuse if self._halves.held else parser.decode
        for block in blocks:
            try:
                payload = decode(b"{" + block[skip:] if enveloped else block[skip:])
            except UNREADABLE:
                payload = self._look_again(block, out)
                skip, enveloped = self._skip, self._enveloped
                decode = _refuse if self._halves.held else parser.decode
                if payload is None:
                    continue
            kinds[type(payload)](parser, payload, out)

    def _look_again(self, block: bytes, out: list[Event]) -> Any:
        """Not cut where the last one was: find its own head, or read it the long way."""
        assert self._framer is not None
        enveloped = self._envelope is not None and block.startswith(self._envelope)
        head = self._envelope if enveloped else self._framer.head_of(block)
        skip = len(head or b"")
        # A frame that is all head (a comment, an unknown field) says nothing about the next one.
        usual = skip < len(block) and (skip, enveloped) != (self._skip, self._enveloped)
        if usual and not self._halves.held:
            self._skip, self._enveloped = skip, enveloped
            try:
                return self._parser.decode(b"{" + block[skip:] if enveloped else block[skip:])
            except UNREADABLE:
                pass
        self._odd(block, out)
        return None

    def _read_carefully(self, blocks: Iterator[bytes], at: int, out: list[Event]) -> None:
        """One by one: until the stream has started, and once it is long enough to hold too much."""
        limits = self._limits
        for block in blocks:
            at += 1
            if at > limits.events:
                raise LimitReached("events", limits.events)
            if not self._started or self._unsure:
                self._begin(block, out)
            else:
                self._read(iter((block,)), out)
            if at % MEASURE_EVERY == 0:
                self._calls.measure()
            self._calm = self._started and not self._unsure
            if self._calm and self._left >= self._long and self._frames <= limits.events:
                return self._read(blocks, out)

    def _odd(self, block: bytes, out: list[Event]) -> None:
        """An unusual frame or payload; the same handlers hear it in the end."""
        since = len(out)
        framer = self._framer
        assert framer is not None
        fields = framer.read(block)
        for _ in range(fields.comments):
            self._scribe.note("wire.keepalive")
        if fields.data is None:
            self._blank += 1
        try:
            if fields.error is not None:
                self._scribe.note("wire.error_field")
                self._parser.hear(b'{"error":' + _as_json(fields.error) + b"}", "", out)
            if fields.data is not None:
                self._parser.hear(fields.data, fields.event, out)
        except NotJson as error:
            self._bad_event(fields.data or b"", str(error), out)
        finally:
            if self._calls.mended:
                self._halves.mend(out, since)

    def _bad_event(self, data: bytes, why: str, out: list[Event]) -> None:
        if not data.strip():
            return
        excerpt = data[:80].decode("utf-8", "backslashreplace")
        if not self._skip_bad:
            raise StreamFailed(
                Failure("protocol", f"an event is not JSON ({why}). It begins {excerpt!r}.")
            )
        self._scribe.note("wire.bad_event_skipped", size=len(data))
        self._calls.break_all(out, "conflict", "an event that was not JSON was skipped")

    def _begin(self, block: bytes, out: list[Event]) -> None:
        """Up to the first payload that says something: ``StreamStart`` comes before it."""
        heard: list[Event] = []
        if len(self._wires) > 1 and not self._choose_wire(block):
            return
        self._learn_heading(block)
        try:
            self._read(iter((block,)), heard)
        finally:
            if heard or all(self._heading):
                self._tell_start(out)
                out.extend(heard)
            nothing_known = all(event.kind == "unrecognized" for event in heard)
            self._unsure = len(self._wires) > 1 or (nothing_known and not all(self._heading))

    def _choose_wire(self, block: bytes) -> bool:
        """Several wires are spoken under this name: which one is this?"""
        assert self._framer is not None
        fields = self._framer.read(block)
        for _ in range(fields.comments):
            self._scribe.note("wire.keepalive")
        payload = _plainly(fields.data or b"")
        if isinstance(payload, dict) and fields.event and "type" not in payload:
            payload = {"type": fields.event, **payload}
        if payload is None:
            return False
        wire = providers.recognize(payload, self._wires)
        if wire is None and self.provider != providers.AUTO:
            return (
                True  # nothing that we know: passed on by the first wire, the next payload may tell
            )
        if wire is None:
            raise StreamFailed(Failure("protocol", _unlike_any(payload, self._wires)))
        if self.provider == providers.AUTO:
            self._scribe.provider = wire.name
        self._parser, self._wires = wire(self._calls, self._scribe), (wire,)
        return True

    def _learn_heading(self, block: bytes) -> None:
        assert self._framer is not None
        data = self._framer.read(block).data
        if data is None:
            return
        try:
            heading = self._parser.heading(data)
        except UNREADABLE:
            return
        self._keep_envelope(block, data)
        known = self._heading
        self._heading = Heading(
            known.model or heading.model, known.response_id or heading.response_id
        )
        self._scribe.response_id = self._heading.response_id

    def _keep_envelope(self, block: bytes, data: bytes) -> None:
        """From now on, frames that begin with the same envelope are read from behind it."""
        assert self._framer is not None
        head, at = self._framer.head_of(block), self._parser.envelope(data)
        if at > 1 and block.startswith(head + data[:at]):
            self._envelope = head + data[:at]

    def _tell_start(self, out: list[Event]) -> None:
        if not self._started:
            self._started = True
            out.append(StreamStart(self.provider, *self._heading))

    # --- the end --------------------------------------------------------------------------------

    def _take_last(self, blocks: list[bytes], out: list[Event]) -> None:
        """The bytes ended inside a frame: it counts only if it is whole."""
        assert self._framer is not None
        for block in blocks:
            data = self._framer.read(block).data
            if data is None or data.strip() in self._parser.WORDS or _is_json(data):
                self._take([block], out)
            else:
                self._scribe.note("stream.cut_event")

    def _end_of_input(self, out: list[Event]) -> None:
        parser = self._parser
        try:
            parser.end_of_input(out)
        except StreamFailed as failed:
            return self._fail(out, failed.failure)
        except LimitReached as reached:
            return self._fail(out, _limit_failure(reached))
        if parser.reason is not None and not self._calls.unfinished():
            if parser.MARKED:
                self._scribe.note("stream.end_unmarked")
            return self._finish(out)
        self._fail(out, self._why_truncated())

    def _why_truncated(self) -> Failure:
        parser, unknown = self._parser, self.notes["wire.kind_unknown"]
        if self.provider == providers.AUTO or self._frames == self._blank:
            return self._why_nothing()
        if self._frames - self._blank > unknown:
            return Failure(
                "truncated", f"the stream ended before its end mark ({parser.END})", None, True
            )
        return Failure(
            "protocol",
            f"none of the {self._frames} events is known to {parser.name!r}{self._better()}",
        )

    def _why_nothing(self) -> Failure:
        """No payload came. A cut in the first event may be tried again; what is no stream may not."""
        read = self._limits.stream - self._left
        begun = self.notes["stream.cut_event"] and self._excerpt.lstrip()[:1] in _BEGINNINGS
        cut = not read or bool(begun) or bool(self.notes["wire.keepalive"])
        seen = self._excerpt.decode("utf-8", "backslashreplace")
        what = f"It begins {seen!r}." if seen else "The body was empty."
        whose = (
            f"Is this the streaming body of {self._parser.name}?"
            if self.provider != providers.AUTO
            else f"Name the provider, one of: {', '.join(providers.PROVIDERS)}."
        )
        sentence = f"{read} bytes and no event in them. {what} {whose}"
        return Failure("truncated" if cut else "protocol", sentence, None, cut)

    def _better(self) -> str:
        return "; is it another provider? There are: " + ", ".join(providers.PROVIDERS)

    def _finish(self, out: list[Event]) -> None:
        parser, calls = self._parser, self._calls
        self._halves.flush(out)
        reason: FinishReason = parser.reason or "stop"
        try:
            calls.end_turn(out, reason)
        except LimitReached as reached:
            return self._fail(out, _limit_failure(reached))
        if reason == "stop" and calls.finished_client_call:
            if parser.SAYS_TOOL_CALLS and parser.raw_reason:
                self._scribe.note("finish.reread")
            reason = "tool_calls"
        end = Finish(reason, parser.raw_reason)
        if parser.echo:
            end = Finish(reason, parser.raw_reason, parser.echo)
        self._tell_end(out, end)

    def _fail(self, out: list[Event], failure: Failure) -> None:
        self._ended = True  # whatever happens now, nothing more is read
        self._halves.flush(out)
        broken = _BROKEN.get(failure.reason, "truncated")
        self._calls.break_all(out, broken, failure.message)
        self._tell_end(
            out, Failed(failure.reason, failure.message, failure.retryable, failure.code)
        )

    def _tell_end(self, out: list[Event], end: Finish | Failed) -> None:
        self._ended = True
        if self._started and (usage := self._parser.usage()) is not None:
            out.append(usage)
        out.append(end)
        if self._scribe.info_on:
            self._summarize(end)

    def _after_end(self, blocks: list[bytes]) -> None:
        assert self._framer is not None
        for block in blocks:
            data = self._framer.read(block).data
            if data and data.strip() not in self._parser.WORDS:
                self._scribe.note("stream.after_end")

    def _summarize(self, end: Finish | Failed) -> None:
        calls = [
            {"call_id": c.id, "id_source": c.source, "name": c.name, "size": c.size}
            for c in self._calls.all
        ]
        self._scribe.log(
            INFO, "stream.finished" if end.kind == "finish" else "stream.failed",
            reason=end.reason, call_ids=[c["call_id"] for c in calls], calls=calls,
            bytes=self._limits.stream - self._left, frames=self._frames, notes=dict(self.notes),
        )  # fmt: skip


# What Python raises for a value of another type than expected.
_UNEXPECTED = (
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    ValueError,
    RecursionError,
    msgspec.MsgspecError,
)
# How the first event of a stream that was cut can begin: data:, event:, JSON, an AWS frame, a comment.
_BEGINNINGS = {b"d", b"e", b"{", b"[", b"\0", b":"}
_NO_STREAM = {
    "gzip": "the bytes are gzip, not text: feed decoded bytes (httpx: aiter_bytes, not aiter_raw).",
    "html": "the body is an HTML page, not a stream: look at the URL, the proxy and the status.",
}


class _Payloads:
    """The framing of decoded payloads: each is its own frame."""

    overflow = False

    def feed(self, chunk: bytes) -> list[bytes]:
        raise UsageError("bytes after payloads: use feed or feed_payload for a stream, not both")

    def rest(self) -> list[bytes]:
        return []

    def head_of(self, frame: bytes) -> bytes:
        return b""

    def read(self, frame: bytes) -> Any:
        from .framing import Fields

        return Fields(frame)


def _refuse(data: bytes) -> Any:
    raise msgspec.DecodeError("half a character is held")


def _plainly(data: bytes) -> Any:
    """The value of a payload whatever is odd about it, or None if it is no JSON."""
    try:
        return plain(stand_in(data.decode("utf-8", "replace").encode()))
    except UNREADABLE:
        return None


def _is_json(data: bytes) -> bool:
    return _plainly(data) is not None


def framed_by(start: str, wires: tuple[type[Parser], ...]) -> type[Parser]:
    """The first wire that has a framing of its own for a body that begins so."""
    return next((wire for wire in wires if start in wire.STARTS), wires[0])


def _unlike_any(payload: Any, wires: tuple[type[Parser], ...]) -> str:
    fields = ", ".join(map(repr, list(payload)[:8])) if isinstance(payload, dict) else ""
    seen = f"has the fields {fields}" if fields else f"is {payload!r:.80}"
    return (
        f"cannot tell whose stream this is: the first payload {seen}; name the "
        f"provider, one of: {', '.join(wire.name for wire in wires)}"
    )


def _as_json(data: bytes) -> bytes:
    return data if _is_json(data) else msgspec.json.encode(data.decode("utf-8", "replace"))


def _limit_failure(reached: LimitReached) -> Failure:
    return Failure("limit", str(reached), reached.name)
