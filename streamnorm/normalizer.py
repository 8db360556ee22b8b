"""The pipe without I/O: bytes in any chunking, or payloads, in; a list of events out.

Rule: any chunking of the same bytes gives the same events. So everything is decided at a frame,
never at a chunk, and limits fall at the same frame or byte whatever the chunks are. The last event
is ``Finish`` or ``Failed``, exactly one of them, and nothing follows it.

Hot are the short way in ``feed`` and the loops in ``_read_run``, in ``Parser.run`` and in ``_read``;
everything unusual leaves them through one ``except``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import length_hint
from typing import Any, TypeAlias

import msgspec

from . import providers
from .core.calls import Calls
from .core.cursor import At, Cursor, Seam
from .core.marks import Marks
from .core.mend import Halves
from .core.mint import Mint
from .core.parser import (
    UNREADABLE,
    Failure,
    Heading,
    NotJson,
    Parser,
    StreamFailed,
    StreamOver,
)
from .errors import NoteRaised, UsageError
from .events import (
    BrokenReason,
    Event,
    Failed,
    FailedReason,
    Finish,
    FinishReason,
    StreamStart,
    ToolCallStart,
)
from .framing import CR, LF, Framer
from .framing.sse import SSE, Uncut
from .limits import LimitReached, Limits
from .notes import INFO, WARNING, Scribe
from .opening import Opening, is_json
from .text.exact import SHALLOW, is_deep

__all__ = ["Normalizer"]

MEASURE_EVERY = 64  # frames, once a stream is long enough to hold too much
FEW_BYTES = 64 * 1024  # that may stay in hand when a stream is over, to tell where it ended
_BROKEN: dict[str, BrokenReason] = {
    "provider_error": "provider_error", "limit": "limit", "cancelled": "cancelled",
}  # fmt: skip
Read: TypeAlias = Callable[[Iterator[bytes], list[Event]], None]


class Normalizer:
    """One stream of one provider.

    >>> pipe = Normalizer("openai_chat")
    >>> events = pipe.feed(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n')
    >>> [e.kind for e in events + pipe.close()]
    ['stream_start', 'text_delta', 'failed']

    ``strict=True`` raises the first tolerance instead of noting it. ``seed`` makes minted ids
    reproducible (a recording keeps one). ``on_bad_event="skip"`` leaves out an event that is not
    JSON, and breaks the calls that were open then, instead of failing the stream. ``after`` is the
    cursor of a stream that was cut: this one goes on where that one was, and tells nothing twice.
    """

    # What few streams have stands here: Python finds the attributes of an object at once as long as
    # it has fewer than thirty of its own, and takes a tenth longer for each frame if it has more.
    _at: At | None = None  # the place of the last event, once the stream has ended
    _seam: Seam | None = None  # to what came over a connection before this one
    _packed: dict[str, str] | None = None  # payloads are put into these frames again
    _skip_bad = False  # an event that is not JSON is left out

    def __init__(
        self,
        provider: str = "auto",
        *,
        strict: bool = False,
        limits: Limits | None = None,
        seed: str | None = None,
        on_bad_event: str = "fail",
        after: str | None = None,
    ) -> None:
        named = None if provider == providers.AUTO else provider
        cursor = None if after is None else Cursor.read(after, named)
        if cursor is not None:
            provider = cursor.provider
        if on_bad_event not in ("fail", "skip"):
            raise UsageError(f"on_bad_event is 'fail' or 'skip', not {on_bad_event!r}")
        self._limits = limits or Limits()
        self._mint = Mint(seed)
        self._scribe = Scribe(provider, strict=strict)
        self._calls = Calls(self._scribe, self._mint, self._limits)
        self._halves = Halves(self._scribe.note)
        if on_bad_event == "skip":
            self._skip_bad = True
        self._opening = Opening(
            provider, self._calls, self._scribe, self._limits.frame_bytes
        )  # asked until the stream has started
        self._speak(self._opening.parser)
        self._framer: Framer | None = None
        self._sse: SSE | None = None  # the framer, if it is that
        self._left = self._limits.stream
        # bytes left when calls may be too big
        self._long = self._limits.stream - self._limits.arguments
        # … and when the first of all limits is near: a frame has two bytes at least
        self._near = self._limits.stream - min(
            self._limits.stream,
            self._limits.arguments,
            self._limits.frame_bytes,
            2 * self._limits.frames - 2,
        )
        self._frames = self._blank = 0  # frames, and those without data
        self._calm = self._started = self._ended = False  # calm: nothing is left to be found out
        # What the last frame began with, and was cut off: its head, and what payloads repeat.
        self._head = self._lead = self._envelope = b""
        self._end = b""  # what ended it; nothing unless the next frame begins with the next chunk
        self._latest: list[bytes] = []  # the frames of the last chunk …
        self._latest_cut = b""  # … and what was cut off each
        if cursor is not None:
            self._go_on_after(cursor)

    def conceal(self, hide: Callable[[str], str]) -> None:
        """What is logged, and raised under ``strict``, goes through this first: it takes secrets out."""
        self._scribe.hide = hide

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
    def latest_frames(self) -> int:
        """How many frames ended in the last chunk, those behind the end of the stream too."""
        marks = self._calls.marks
        return len(self._latest) if marks.behind_end is None else marks.in_last_chunk

    @property
    def heading(self) -> Heading:
        """Model and response id, as far as the stream has told them."""
        return self._opening.heading

    @property
    def marks(self) -> Marks:
        """Where in the last chunk a client may run a call, and where the stream ended, in frames."""
        return self._calls.marks

    @property
    def hesitates(self) -> bool:
        """Has a call begun of which nothing is told yet?"""
        return any(not call.started for call in self._calls.unfinished())

    def is_odd(self, start: ToolCallStart, *, needs_id: bool = True) -> bool:
        """Has a call that begins so another id or place than its wire should have given it?"""
        return self._calls.is_odd(start.call, start.id, needs_id=needs_id)

    def watch(self) -> None:
        """The ``marks`` are to say, too, when the text of a call may be taken for whole."""
        self._calls.watch()

    @property
    def cursor(self) -> str | None:
        """Where the provider can go on if this is cut; None where its wire has no such place.

        >>> pipe = Normalizer("openai_responses")
        >>> for number, kind in enumerate(["created", "in_progress"]):
        ...     said = {"type": f"response.{kind}", "sequence_number": number}
        ...     _ = pipe.feed_payload({**said, "response": {"id": "resp_1", "model": "m"}})
        >>> pipe.cursor
        'openai_responses:resp_1:1:0'
        """
        at, id = self._place(), self._opening.heading.response_id
        if at is None or not id:
            return None
        before = self._seam.begun if self._seam is not None else 0
        return str(Cursor(self.provider, id, at, max(before, self._parser.begun())))

    @property
    def ended(self) -> bool:
        """Has the last event been told? Reading on would change nothing."""
        return self._ended

    # --- in -------------------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> list[Event]:
        """Bytes in any chunking; the events that they complete."""
        out: list[Event] = []
        self._left = left = self._left - len(chunk)
        if type(chunk) is not bytes:  # others do not give themselves back where nothing is cut
            chunk = bytes(chunk)
        alone = self._alone
        data = chunk.removeprefix(self._head if alone is None else self._lead)
        # The short way: exactly one frame that begins and ends as the one before it.
        if data is not chunk:
            line = data.removesuffix(self._end)
            if (
                line is not data
                and LF not in line
                and CR not in line
                and len(line) <= SHALLOW
                and (left >= self._near or self._is_far(len(chunk)))
                and not self._calls.mended
                and not self._ended
            ):
                decode = self._decode  # bound first: CPython is slow to call an attribute
                try:
                    if alone is None:
                        payload = decode(b"{" + line if self._envelope else line)
                    else:
                        payload = alone(iter((line,)), self._envelope, out)
                except UNREADABLE:
                    return self._feed(chunk, out)
                self._frames += 1
                self._latest, self._latest_cut = [chunk], b""
                if payload is None:
                    return out
                try:
                    self._kinds[type(payload)](self._parser, payload, out)
                except _STOPS as error:
                    self._stop(error, out)
                return out
        return self._feed(chunk, out)

    def _is_far(self, size: int) -> bool:
        """Is no limit due at a frame of that size?"""
        limits, number = self._limits, self._frames + 1
        if self._left < self._long and number % MEASURE_EVERY == 0:
            return False
        return self._left >= 0 and size <= limits.frame_bytes and number <= limits.frames

    def _feed(self, chunk: bytes, out: list[Event]) -> list[Event]:
        """Any bytes: parts of frames, or several of them."""
        framer = self._framer
        if framer is None or self._left < 0 or not self._calm:
            return self._feed_slowly(chunk, out)
        if (sse := self._sse) is not None:
            lead = self._lead
            lines = sse.run(chunk, lead)
            if lines is not None:
                self._end = sse.end
                if self._ended:
                    self._after_end([_whole(line, lead) for line in lines])
                    return out
                return self._take_run(lines, lead, out)
            blocks = sse.feed(chunk)
            self._end = sse.end
        else:
            blocks = framer.feed(chunk)
        if blocks:
            self._take(blocks, out)
        if framer.overflow:
            self._overflow("frame_bytes", out)
        return out

    def _feed_slowly(self, chunk: bytes, out: list[Event]) -> list[Event]:
        """Until the stream has started, and the last bytes that the limit allows."""
        over = self._left < 0
        if over:
            chunk, self._left = chunk[: self._left], 0
        self._opening.see(chunk)
        if self._framer is None:
            chunk = self._framed(chunk, out)
        framer = self._framer
        if framer is not None:
            self._take(framer.feed(chunk), out)
            if over or framer.overflow:
                self._overflow("frame_bytes" if framer.overflow else "stream", out)
        return out

    def _framed(self, chunk: bytes | None, out: list[Event]) -> bytes:
        """The bytes that can be framed by now; None: no more will come."""
        try:
            opening = self._opening
            held = opening.all_held() if chunk is None else opening.frame(chunk)
            self._split_by(opening.framer)
            self._expect(opening.head, b"")
        except StreamFailed as failed:
            self._framer = self._opening.framer
            self._fail(out, failed.failure)
            return b""
        return held

    def _split_by(self, framer: Framer | None) -> None:
        self._framer, self._sse = framer, framer if isinstance(framer, SSE) else None

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
        from .text.written import json_bytes  # here, as bytes never need it

        if self._framer is None and len(payload) == 1:
            self._packed = providers.frames_around(payload, self.provider)
        try:
            if self._packed is not None:
                return self._feed_packed(payload, self._packed)
            data = json_bytes(payload)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"the payload is not plain JSON ({error}); pass the SDK object's dict, "
                "e.g. chunk.model_dump(mode='json')"
            ) from error
        if self._framer is None:
            self._framer = self._opening.framer = _Payloads()
        if not isinstance(self._framer, _Payloads):
            raise UsageError(
                "a payload after bytes: use feed or feed_payload for a stream, not both"
            )
        out: list[Event] = []
        self._take([data], out)
        return out

    def _feed_packed(self, payload: dict[str, Any], raw: dict[str, str]) -> list[Event]:
        """Events that hold another wire, or a piece of its body: that wire is read as it came.
        Beside them there are exceptions alone."""
        from .framing.aws import event_frame

        frames = [event_frame(name, said, raw.get(name)) for name, said in payload.items()]
        return [event for frame in frames for event in self.feed(frame)]

    def close(self) -> list[Event]:
        """End of input: whatever is open is decided now."""
        out: list[Event] = []
        if not self._ended:
            try:
                self._close(out)
            except NoteRaised as raised:
                self._ended = True
                raised.events = tuple(out)
                raise
        return out

    def _close(self, out: list[Event]) -> None:
        if self._framer is None:
            self._framed(None, out)  # bytes that do not say what they are say nothing else
        self._take_last(out)
        if not self._ended:
            self._end_of_input(out)

    # --- another leg ----------------------------------------------------------------------------

    def resume(self) -> None:
        """The connection was lost, and the next bytes are those of another, which goes on after
        ``cursor``. Half an event at the end is forgotten, as it comes again. What was heard before
        is dropped; a hole between them breaks the calls that are open."""
        at = self._place()
        if self._ended or at is None:
            why = "it has ended" if self._ended else "its wire has no place to go on from"
            raise UsageError(f"this stream cannot be resumed: {why}")
        held = self._opening.forget().strip()
        if held or (self._framer is not None and self._framer.rest()):
            self._scribe.note("stream.cut_event")
        if not isinstance(self._framer, _Payloads):
            self._framer = self._sse = None
            self._expect(b"", b"")
            self._end = b""
        self._scribe.note("stream.resumed")
        self._latest, self._calm = [], False
        if self._seam is None:
            self._seam = Seam(at, self._parser)
        else:
            self._seam.lost_again()

    def _go_on_after(self, cursor: Cursor) -> None:
        """Another stream told what came before."""
        self._opening.heading = Heading(None, cursor.response_id)
        self._scribe.response_id = cursor.response_id
        self._seam = Seam(cursor.at, None, cursor.begun)

    def _place(self) -> At | None:
        """Of the last event that was heard. The parser counts; the last frames say it themselves,
        unless they came before."""
        if self._at is not None:
            return self._at
        if self._seam is not None:
            return self._seam.at
        at = self._parser.place()
        if at is None or self._framer is None:
            return at
        datas = (
            self._framer.read(_whole(block, self._latest_cut)).data
            for block in reversed(self._latest)
        )
        places = (self._parser.place_of(data) for data in datas if data)
        return next((place for place in places if place is not None), at)

    def place_of(self, frame: bytes) -> At | None:
        """Where a frame of this stream says that it is, on a wire that can be resumed."""
        data = self._framer.read(frame).data if self._framer is not None else None
        return self._parser.place_of(data) if data else None

    def _came_before(self, block: bytes) -> bool:
        """Behind a seam: was it heard over the connection before this one?"""
        assert self._framer is not None
        data, seam = self._framer.read(block).data, self._seam
        if data is None or seam is None:
            return False
        self._refuse_another(data)
        old = seam.drops(data, self._parser)
        if old:
            self._scribe.note("stream.overlap")
        if seam.over:
            self._seam = None
        return old

    def _refuse_another(self, data: bytes) -> None:
        """Behind a seam: what names another is another response, and not the rest of this."""
        known = self._opening.heading.response_id
        try:
            began = self._parser.heading(data).response_id
        except UNREADABLE:
            return
        if began and began != known:  # the first that names one was learnt from
            raise StreamFailed(Failure("protocol", "this is another response, not the rest of it"))

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

    # --- the loop -------------------------------------------------------------------------------

    def _take(self, blocks: list[bytes], out: list[Event]) -> None:
        """Frames in, events out."""
        if self._ended:
            return self._after_end(blocks)
        self._latest, self._latest_cut = blocks, b""
        self._calls.marks.unread = unread = iter(blocks)
        before = self._frames
        self._frames += len(blocks)
        read = self._read_deep if _are_deep(blocks) else self._read
        try:
            if self._calm and self._left >= self._long and self._frames <= self._limits.frames:
                read(unread, out)
            else:
                self._read_carefully(unread, before, out, read)
        except _STOPS as error:
            self._stop(error, out, unread)

    def _take_run(self, lines: list[bytes], lead: bytes, out: list[Event]) -> list[Event]:
        """What stands behind the one head that was cut off all these frames in, events out."""
        if _are_deep(lines):
            self._take([_whole(line, lead) for line in lines], out)
            return out
        self._latest, self._latest_cut = lines, lead
        self._frames = frames = self._frames + len(lines)
        calls = self._calls
        calls.marks.unread = unread = iter(lines)
        try:
            if self._left < self._near and self._is_due(frames - len(lines), frames):
                self._read_carefully(
                    unread, frames - len(lines), out,
                    lambda some, out: self._read_run(some, unread, lines, out),
                )  # fmt: skip
                return out
            if (run := self._run) is not None and not calls.mended:
                # as in ``_read_run``, which goes on if not all are as usual
                try:
                    payload = run(unread, self._envelope, out)
                except UNREADABLE:
                    self._read_odd(unread, unread, lines, out)
                else:
                    if payload is None:
                        return out
                    self._kinds[type(payload)](self._parser, payload, out)
            self._read_run(unread, unread, lines, out)
        except _STOPS as error:
            self._stop(error, out, unread, lead)
        return out

    def _is_due(self, before: int, frames: int) -> bool:
        """Is a limit to be looked at among the frames from ``before`` on?"""
        measured = self._left < self._long and frames // MEASURE_EVERY != before // MEASURE_EVERY
        return measured or frames > self._limits.frames

    def _stop(
        self, error: Exception, out: list[Event], unread: Iterable[bytes] = (), cut: bytes = b""
    ) -> None:
        """A frame ended the stream. Under ``strict`` a note may end it anywhere."""
        rest = list(unread)
        self._latest = self._latest[: len(self._latest) - len(rest)]
        marks = self._calls.marks
        marks.unread, marks.behind_end = iter(range(len(rest))), len(rest)
        marks.in_last_chunk = len(self._latest) + len(rest)
        try:
            self._end_by(error, out)
        except NoteRaised as raised:
            self._ended = True
            raised.frame = self._frames - len(rest)
            raised.events = tuple(out)
            raise
        if sum(map(len, self._latest)) > FEW_BYTES:  # asked now, so as not to hold it
            self._at, self._latest = self._place(), []
        self._after_end([_whole(block, cut) for block in rest])

    def _end_by(self, error: Exception, out: list[Event]) -> None:
        """What the readers raise, told as the end of the stream."""
        if isinstance(error, StreamOver):
            self._finish(out)
        elif isinstance(error, StreamFailed):
            self._fail(out, error.failure)
        elif isinstance(error, LimitReached):
            self._fail(out, _limit_failure(error))
        elif isinstance(error, NotJson):  # inside a field that was read on its own
            self._fail(out, Failure("protocol", f"an event is not JSON ({error})"))
        elif isinstance(error, _UNEXPECTED):
            self._give_up(error, out)
        else:
            raise error

    def _give_up(self, error: Exception, out: list[Event]) -> None:
        """A payload whose shape no handler expected: whatever a wire sends, nothing but our own
        errors leaves the pipe. The fuzz tests ask that this never happens."""
        import traceback

        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        where = f"{frame.f_code.co_name}:{line}"
        what = f"a payload has a shape that cannot be read ({type(error).__name__} in {where})"
        self._fail(out, Failure("protocol", what))
        self._scribe.note("wire.unreadable", error=type(error).__name__, where=where)

    def _read_run(
        self, some: Iterator[bytes], unread: Iterator[bytes], lines: list[bytes], out: list[Event]
    ) -> None:
        """The hot loop over ``some`` of the payloads that are ``unread``; ``lines`` are all of them as
        they came. The wire's own loop gives back any payload that is not the usual one."""
        parser, kinds, calls, run = self._parser, self._kinds, self._calls, self._run
        envelope = self._envelope
        while run is not None and not calls.mended:
            try:
                payload = run(some, envelope, out)
            except UNREADABLE:
                self._read_odd(some, unread, lines, out)
            else:
                if payload is None:
                    return
                kinds[type(payload)](parser, payload, out)
        decode = _refuse if calls.mended else self._decode
        for line in some:
            try:
                # What payloads repeat is cut where it is the same to the byte: so every byte of a
                # frame is either compared or read. A line that begins otherwise stays itself.
                if envelope and (rest := line.removeprefix(envelope)) is not line:
                    payload = decode(b"{" + rest)
                else:
                    payload = decode(line)
            except UNREADABLE:
                self._read_odd(some, unread, lines, out)
                decode = _refuse if calls.mended else self._decode
            else:
                kinds[type(payload)](parser, payload, out)

    def _read_odd(
        self, some: Iterator[bytes], unread: Iterator[bytes], lines: list[bytes], out: list[Event]
    ) -> None:
        """The line that was just read: unusual, or of another head than those around it. So may be
        those behind it: they are not tried in vain."""
        at = len(lines) - length_hint(unread)
        if type(lines[at - 1]) is not Uncut:
            return self._odd(self._lead + lines[at - 1], out)
        self._read_uncut(lines[at - 1], out)
        while at < len(lines) and type(lines[at]) is Uncut and next(some, None) is not None:
            self._read_uncut(lines[at], out)
            at += 1

    def _read_uncut(self, block: bytes, out: list[Event]) -> None:
        """A frame of another head between those of one."""
        assert self._sse is not None
        rest = block[len(self._sse.head_of(block)) :]
        if LF in rest or self._calls.mended:
            return self._odd(block, out)
        try:
            payload = self._decode(rest)
        except UNREADABLE:
            return self._odd(block, out)
        self._kinds[type(payload)](self._parser, payload, out)

    def _read(self, blocks: Iterator[bytes], out: list[Event]) -> None:
        """The loop for all other frames. One that begins with the very bytes of the one before it is
        cut behind them; any other is looked at. So here, too, every byte is compared or read."""
        parser, kinds, head, enveloped = self._parser, self._kinds, self._head, self._envelope
        decode = _refuse if self._calls.mended else self._decode
        single = self._framer is not None and self._framer.single_lines
        for block in blocks:
            rest = block.removeprefix(head)  # compared and cut; itself if it begins otherwise
            # A line more is no data, unless it says so; where frames have no head they are all data.
            if (rest is not block and (single or LF not in rest)) or not head:
                try:
                    payload = decode(b"{" + rest if enveloped else rest)
                except UNREADABLE:
                    pass
                else:
                    kinds[type(payload)](parser, payload, out)
                    continue
            payload = self._look_again(block, out)
            head, enveloped = self._head, self._envelope
            decode = _refuse if self._calls.mended else self._decode
            if payload is not None:
                kinds[type(payload)](parser, payload, out)

    def _read_deep(self, blocks: Iterator[bytes], out: list[Event]) -> None:
        """Some of these frames are nested too deeply: which of them is found the long way."""
        for block in blocks:
            self._odd(block, out)

    def _look_again(self, block: bytes, out: list[Event]) -> Any:
        """Not cut where the last one was: find its own head, or read it the long way."""
        assert self._framer is not None
        lead, envelope = self._opening.lead, self._opening.envelope
        if not envelope or not block.startswith(lead + envelope):
            lead, envelope = self._framer.head_of(block), b""
        head = lead + envelope
        rest = block[len(head) :]
        # A frame that is all head (a comment, an unknown field) says nothing about the next one.
        usual = rest and head != self._head and not self._calls.mended
        if usual and not (head and LF in rest):
            self._head, self._lead, self._envelope = head, lead, envelope
            try:
                return self._decode(b"{" + rest if envelope else rest)
            except UNREADABLE:
                pass
        self._odd(block, out)
        return None

    def _expect(self, lead: bytes, envelope: bytes) -> None:
        """What the next frame will begin with, and its payload."""
        self._head, self._lead, self._envelope = lead + envelope, lead, envelope

    def _read_carefully(
        self, blocks: Iterator[bytes], at: int, out: list[Event], read: Read
    ) -> None:
        """One by one until the stream has started, and in steps once it is long enough to hold too
        much: a limit falls at the same frame in any chunking. ``at``: frames that were read before."""
        limits, last = self._limits, self._frames
        while at < last:
            if at >= limits.frames:
                next(blocks)
                raise LimitReached("frames", limits.frames)
            calm, free = self._calm, self._calm and self._left >= self._long
            due = last if free else at + (MEASURE_EVERY - at % MEASURE_EVERY if calm else 1)
            step = min(due, last, limits.frames) - at
            if calm:
                read(islice(blocks, step), out)
            else:
                self._begin(next(blocks), out)
            at += step
            if not free and at % MEASURE_EVERY == 0:
                self._calls.measure()

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
        if fields.event and not (fields.data and fields.data.strip()):
            self._parser.hear_no_data(fields.event)
        try:
            if fields.strays:
                self._hear_strays(block, fields.strays, out)
            if fields.error is not None:
                self._scribe.note("wire.error_field")
                self._parser.hear(b'{"error":' + _as_json(fields.error) + b"}", "", out)
            if fields.data is not None:
                if fields.data.strip():  # else the event of that number was lost
                    self._parser.hear_id(fields.id)
                self._parser.hear(fields.data, fields.event, out)
        except NotJson as error:
            self._bad_event(fields.data or b"", str(error), out)
        finally:
            if self._calls.mended:
                self._halves.mend(out, since)

    def _hear_strays(self, block: bytes, lines: int, out: list[Event]) -> None:
        """Lines to be ignored by the specification: they may be data whose field name was damaged.
        An error that a server writes into its stream without any field is heard."""
        self._scribe.note("wire.stray_line", lines=lines)
        if b'"error"' in block and block[:1] == b"{" and is_json(block):
            self._parser.hear(block, "", out)
        self._calls.taint_open("a line came that is neither a field nor a comment")

    def _bad_event(self, data: bytes, why: str, out: list[Event]) -> None:
        if not data.strip():
            return
        excerpt = data[:80].decode("utf-8", "backslashreplace")
        if not self._skip_bad:
            raise StreamFailed(
                Failure("protocol", f"an event is not JSON ({why}). It begins {excerpt!r}.")
            )
        self._scribe.note("wire.bad_event_skipped", size=len(data))
        self._calls.taint_open("an event that was not JSON was skipped")

    def _begin(self, block: bytes, out: list[Event]) -> None:
        """Up to the first payload that says something: ``StreamStart`` comes before it."""
        heard: list[Event] = []
        opening = self._opening
        if opening.is_undecided and not opening.choose_wire(block):
            return
        self._split_by(opening.framer)  # the wire may have its own
        self._speak(opening.parser)
        opening.learn_heading(block)
        if self._seam is not None and self._came_before(block):
            return
        try:
            read = self._read_deep if is_deep(block) else self._read
            read(iter((block,)), heard)
        finally:
            told = all(opening.heading)
            if told:
                self._tell_start(out)
            self._tell(heard, out)
            known = told or any(event.kind != "unrecognized" for event in heard)
            self._calm = known and not (opening.is_undecided or self._seam)
            if self._calm and opening.envelope:
                self._expect(opening.lead, opening.envelope)

    def _speak(self, parser: Parser) -> None:
        """This is the wire, as far as is known."""
        self._parser, self._decode, self._kinds = parser, parser.decode, parser.KINDS
        self._run = parser.run
        self._alone = parser.run if parser.RUNS_ALONE else None

    def _tell(self, events: list[Event], out: list[Event]) -> None:
        """These may be the first ones of all."""
        if events:
            self._tell_start(out)
            out.extend(events)

    def _tell_start(self, out: list[Event]) -> None:
        if not self._started:
            self._started = True
            out.append(StreamStart(self.provider, *self._opening.heading))

    # --- the end --------------------------------------------------------------------------------

    def _take_last(self, out: list[Event]) -> None:
        """The bytes ended inside a frame: it counts only if it is whole."""
        assert self._framer is not None
        for block in self._framer.rest():
            fields = self._framer.read(block)
            data = block if fields.strays else fields.data
            if data is None or data.strip() in self._parser.WORDS or is_json(data):
                self._take([block], out)
            else:
                self._scribe.note("stream.cut_event")

    def _end_of_input(self, out: list[Event]) -> None:
        parser = self._parser
        parser.decoded = getattr(self._framer, "decoded", False)
        try:
            self._last_words(out)
        except StreamFailed as failed:
            return self._fail(out, failed.failure)
        except LimitReached as reached:
            return self._fail(out, _limit_failure(reached))
        if parser.reason is not None:
            if parser.MARKED:
                self._scribe.note("stream.end_unmarked")
            return self._finish(out)
        self._fail(out, self._why_truncated())

    def _last_words(self, out: list[Event]) -> None:
        """What the end of input makes the parser tell."""
        heard: list[Event] = []
        try:
            self._parser.end_of_input(heard)
        finally:
            self._tell(heard, out)

    def _why_truncated(self) -> Failure:
        parser, unknown = self._parser, self.notes["wire.kind_unknown"]
        if self.provider == providers.AUTO or self._frames == self._blank:
            return self._opening.why_nothing(self._limits.stream - self._left)
        if self._frames - self._blank > unknown:
            return Failure(
                "truncated", f"the stream ended before its end mark ({parser.END})", None, True
            )
        return Failure(
            "protocol",
            f"none of the {self._frames} events is known to {parser.name!r}{self._better()}",
        )

    def _better(self) -> str:
        return "; is it another provider? There are: " + ", ".join(providers.PROVIDERS)

    def _finish(self, out: list[Event]) -> None:
        self._tell_start(out)
        parser, calls, since = self._parser, self._calls, len(out)
        self._halves.flush(out)
        reason: FinishReason = parser.reason or "stop"
        try:
            parser.end_of_calls(out)
            calls.end_turn(out, reason)
        except LimitReached as reached:
            return self._fail(out, _limit_failure(reached))
        if reason == "stop" and parser.choice in calls.called:
            if parser.SAYS_TOOL_CALLS and parser.raw_reason:
                self._scribe.note("finish.reread")
            reason = "tool_calls"
        end = Finish(reason, parser.raw_reason)
        if parser.echo:
            end = Finish(reason, parser.raw_reason, parser.echo)
        self._tell_end(out, end, since)

    def _fail(self, out: list[Event], failure: Failure) -> None:
        self._at = self._place()  # while the calls that grew are open
        self._ended = True  # whatever happens now, nothing more is read
        since = len(out)
        last: list[Event] = []
        try:
            self._halves.flush(last)
            self._calls.break_all(last, _BROKEN.get(failure.reason, "truncated"), failure.message)
        finally:
            self._tell(last, out)
        self._tell_end(
            out, Failed(failure.reason, failure.message, failure.retryable, failure.code), since
        )

    def _tell_end(self, out: list[Event], end: Finish | Failed, since: int) -> None:
        self._ended = True
        self._calls.marks.quiet = False
        if self._started and (usage := self._parser.usage()) is not None:
            out.append(usage)
        out.append(end)
        if self._calls.mended:
            self._halves.mend(out, since)
        if self._scribe.is_on(INFO) or end.kind == "failed":
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
        level, event = (
            (INFO, "stream.finished") if end.kind == "finish" else (WARNING, "stream.failed")
        )
        self._scribe.log(
            level, event,
            reason=end.reason, call_ids=[c["call_id"] for c in calls], calls=calls,
            bytes=self._limits.stream - self._left, frames=self._frames, notes=dict(self.notes),
        )  # fmt: skip


def _are_deep(blocks: list[bytes]) -> bool:
    """Is one of these nested too deeply? Most are too short to be looked at."""
    return max(map(len, blocks), default=0) > SHALLOW and any(map(is_deep, blocks))


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


# What ends a stream in the middle of a frame.
_STOPS = (StreamOver, StreamFailed, LimitReached, NotJson, NoteRaised, *_UNEXPECTED)


class _Payloads:
    """The framing of decoded payloads: each is its own frame."""

    decoded = True
    overflow = False
    single_lines = True

    def feed(self, chunk: bytes) -> list[bytes]:
        raise UsageError("bytes after payloads: use feed or feed_payload for a stream, not both")

    def rest(self) -> list[bytes]:
        return []

    def head_of(self, frame: bytes) -> bytes:
        return b""

    def read(self, frame: bytes) -> Any:
        from .framing import Fields

        return Fields(frame)


def _whole(block: bytes, cut: bytes) -> bytes:
    return block if type(block) is Uncut else cut + block


def _refuse(data: bytes) -> Any:
    raise msgspec.DecodeError("half a character came: events are mended from now on")


def _as_json(data: bytes) -> bytes:
    from .text.written import json_bytes

    return data if is_json(data) else json_bytes(data.decode("utf-8", "replace"))


def _limit_failure(reached: LimitReached) -> Failure:
    return Failure("limit", str(reached), reached.name)
