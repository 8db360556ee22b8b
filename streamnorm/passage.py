"""The bytes of a stream that is handed on come in; those that its reader may have by now go out.

    feed(chunk) -> bytes      whole frames, unchanged and in order
    close() -> bytes          the input has ended: the rest, if the stream came to its end
    failure                   what the reader has to be told in place of the rest

Rule: whoever reads what goes out never runs a call whose turn did not end normally, nor one that is
not whole. From the first frame with which a client of the wire may run one (its closing mark, a copy
of its whole text, any word for the end of the turn while it is open; where nothing closes a call, the
piece that makes its text an object) all bytes are held until the pipe has told a normal end, and never
leave if another end comes, or if a call of the client's is broken. What goes out is the beginning of
what came, and after a normal end all of it. A frame is given out when the pipe has read it, never
earlier.

No error is written here: how a wire says it is for whoever hands the bytes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

from .core.calls import NORMAL
from .core.cursor import At
from .events import Event, Failed, FailedReason, Finish, ToolCallStart
from .framing import sniff
from .framing.borders import REACH, Borders, all_ends, borders_of, last_end
from .limits import Limits
from .normalizer import Normalizer
from .providers import AUTO

__all__ = ["Passage"]

SNIFF = 80  # bytes that decide what a body is, as in the pipe
_END, _LONG_END = b"\n\n", b"\r\n\r\n"  # asked one by one: a tuple of both takes twice as long
# Ends that the wire has told in its own words; all others were found out here.
_WORDED = frozenset({"provider_error", "cancelled"})
Listener: TypeAlias = Callable[[list[Event]], object]


class Way(IntEnum):
    """What becomes of the next bytes."""

    UNKNOWN = 0  # held until they say how they are framed
    EVENTS = 1  # server-sent events: read by the chunk, given out up to the last that is whole
    FRAMES = 2  # any other framing: read and given out frame by frame
    HELD = 3  # a call may be run with them: held for the end
    FREE = 4  # the stream has ended, and its reader may hear how: all that follows is given out
    STOPPED = 5  # nothing more is given out


UNKNOWN, EVENTS, FRAMES, HELD, FREE, STOPPED = Way


class Passage:
    """One stream of one wire that is handed on.

    >>> passage = Passage("openai_chat")
    >>> text = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n'
    >>> passage.feed(text) == text, passage.close(), passage.failure.reason
    (True, b'', 'truncated')

    ``listener`` hears the events of each chunk, whether or not its bytes may go. ``eager`` holds no
    call back that is whole when it is closed: a cut is still told, but what was run before it was run.
    """

    def __init__(
        self,
        provider: str = AUTO,
        *,
        eager: bool = False,
        listener: Listener | None = None,
        limits: Limits | None = None,
        seed: str | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._pipe = Normalizer(provider, limits=self._limits, seed=seed)
        self._read = self._pipe.feed
        self._marks = self._pipe.marks
        self._eager = eager
        self._marks.eager = eager
        if not eager:
            self._pipe.watch()
        self._listener = listener
        self._way = UNKNOWN
        self._borders: Borders | None = None
        self._rest: list[bytes] = []  # of a frame that has not ended; while it is held, all of it
        self._tail = b""  # the last bytes of that, in which an end may have begun
        self._size = 0  # bytes that are held for the end
        self._frames = 0  # that the pipe had read when bytes were last given out, frame by frame
        self._last = b""  # what was given out last
        self.bytes = 0  #: bytes that were given out
        self.ending: Finish | Failed | None = None  #: the last event, once it is told
        #: Why what was given out has no end of its own; None if there is nothing to tell.
        self.failure: Failed | None = None

    @property
    def provider(self) -> str:
        """The wire; ``"auto"`` until the first payload has told."""
        return self._pipe.provider

    @property
    def seed(self) -> str:
        """What minted ids are made from, for a recording."""
        return self._pipe.seed

    @property
    def notes(self) -> Counter[str]:
        """How often each tolerance happened, by name."""
        return self._pipe.notes

    @property
    def frames(self) -> int:
        """How many frames were read."""
        return self._pipe.frames

    @property
    def model(self) -> str | None:
        """The model that answers, if the stream has said it."""
        return self._pipe.heading.model

    @property
    def response_id(self) -> str | None:
        """The id of the answer, if the stream has said it."""
        return self._pipe.heading.response_id

    @property
    def number(self) -> At | None:
        """Where the last frame that was given out says that it is, on a wire that numbers them."""
        ends = all_ends(self._last) if self._borders is None else [len(self._last)]
        frames = [self._last[begin:end] for begin, end in pairwise([0, *ends])]
        places = map(self._pipe.place_of, reversed(frames))
        return next((place for place in places if place is not None), None)

    @property
    def hesitates(self) -> bool:
        """Has a call begun of which the listener has not heard yet?"""
        return self._pipe.hesitates

    @property
    def holds(self) -> bool:
        """Are there frames that the listener has heard, and that were not given out?"""
        return self._way is HELD

    def is_odd(self, start: ToolCallStart, *, needs_id: bool = True) -> bool:
        """Has a call that begins so another id or place than its wire should have given it?"""
        return self._pipe.is_odd(start, needs_id=needs_id)

    # --- in and out -----------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> bytes:
        """Bytes in any chunking; those that may go to the reader now."""
        if type(chunk) is not bytes:
            chunk = bytes(chunk)
        if self._way is not EVENTS:
            if self._way is not UNKNOWN:
                return self._given(_WAYS[self._way](self, chunk))
            first = self._begun_with(chunk)
            return self.feed(first) if first else b""
        events = self._read(chunk)
        if events and self._listener is not None:
            self._listener(events)
        if not self._marks.quiet:
            return self._given(self._decided(b"".join((*self._rest, chunk)), events))
        # The short way: whole events, and nothing else.
        whole = not self._rest and (chunk.endswith(_END) or chunk.endswith(_LONG_END))
        given = chunk if whole else self._up_to_last(chunk)
        if given:
            self.bytes += len(given)
            self._last = given
        return given

    def close(self) -> bytes:
        """The input has ended: what was held, if that was its end."""
        if self._way is UNKNOWN and self._rest:  # bytes that do not say what they are
            self._rest = [b"".join(self._rest)]
            self._hear(self._rest[0])
        frames = self._pipe.frames
        events = self._told(self._pipe.close())
        if not events:
            return b""
        data = b"".join(self._rest)
        # What was left was a frame of its own, or half of one that nobody has heard.
        end = len(data) if self._pipe.frames > frames else 0
        return self._given(self._ended(events[-1], data, end=end))

    def conceal(self, hide: Callable[[str], str]) -> None:
        """What is logged goes through this first: it takes secrets out."""
        self._pipe.conceal(hide)

    def fail(self, reason: FailedReason, message: str, *, retryable: bool = False) -> None:
        """The input broke, or nobody waits for it any longer: what is held will never go."""
        for event in self._told(self._pipe.fail(reason, message, retryable=retryable))[-1:]:
            self._ended(event, b"")

    def _given(self, data: bytes) -> bytes:
        if data:
            self.bytes += len(data)
            self._last = data
        return data

    def _hear(self, data: bytes) -> list[Event]:
        return self._told(self._read(data))

    def _told(self, events: list[Event]) -> list[Event]:
        if events and self._listener is not None:
            self._listener(events)
        return events

    # --- the ways -------------------------------------------------------------------------------

    def _begun_with(self, chunk: bytes) -> bytes:
        """The first bytes, once they say how they are framed; until then nothing."""
        self._rest.append(chunk)
        first = b"".join(self._rest)
        start = sniff(first[:SNIFF])
        if start is None and len(first) < SNIFF:
            return b""
        self._rest, self._way = [], EVENTS
        if start not in (None, "text"):
            self._way, self._borders = FRAMES, borders_of(start, self._limits.frame_bytes)
        return first

    def _up_to_last(self, chunk: bytes) -> bytes:
        """The pipe has read this chunk: the events that are whole by now."""
        end = last_end(chunk)
        if not end and self._tail:  # it may have begun in the chunk before
            end = max(0, last_end(self._tail + chunk[:REACH]) - len(self._tail))
        if not end:
            self._rest.append(chunk)
            self._tail = (self._tail + chunk[-REACH:])[-REACH:]
            return b""
        whole, rest = chunk[:end], chunk[end:]
        if len(self._rest) == 1:
            whole = self._rest[0] + whole
        elif self._rest:
            whole = b"".join((*self._rest, whole))
        self._rest, self._tail = [rest] if rest else [], rest[-REACH:]
        return whole

    def _by_frame(self, chunk: bytes) -> bytes:
        assert self._borders is not None
        given, at = list[bytes](), 0
        ends = self._borders.ends(chunk)
        for end in (*ends, len(chunk)):
            if self._way is not FRAMES:  # by what the one before it said
                given.append(_WAYS[self._way](self, chunk[at:]))
                break
            given.append(self._frame(chunk[at:end], whole=end in ends))
            at = end
        return b"".join(given)

    def _frame(self, piece: bytes, *, whole: bool) -> bytes:
        """A frame, or a piece of one. What the pipe keeps to itself is kept here, too."""
        events = self._hear(piece)
        self._rest.append(piece)
        if not self._marks.quiet:
            return self._decided(b"".join(self._rest), events)
        if not whole or self._pipe.frames == self._frames:
            return b""
        self._frames = self._pipe.frames
        given, self._rest = b"".join(self._rest), []
        return given

    def _hold(self, chunk: bytes) -> bytes:
        events = self._hear(chunk)
        self._rest.append(chunk)
        self._size += len(chunk)
        if self._size > self._limits.held and not self._pipe.ended:
            why = f"more than {self._limits.held} bytes behind a call (held); raise Limits(held=…)"
            events = self._told(self._pipe.fail("limit", why, code="held"))
        return self._ended(events[-1], b"".join(self._rest)) if self._pipe.ended else b""

    def _pass(self, chunk: bytes) -> bytes:
        self._hear(chunk)  # what follows the end is noted
        return chunk

    def _drop(self, chunk: bytes) -> bytes:
        return b""

    # --- what may go, and what may not ----------------------------------------------------------

    @property
    def _is_ripe(self) -> bool:
        """Was there a frame with which a client may run a call?"""
        return self._marks.behind_ripe is not None

    def _decided(self, data: bytes, events: list[Event]) -> bytes:
        """These bytes begin where a frame does. With one of them a call may be run, or the stream
        has ended, or both."""
        behind = self._marks.behind_ripe if self._is_ripe else self._marks.behind_end
        begin, end = self._place(data, behind)
        if self._pipe.ended:
            return self._ended(events[-1], data, begin, end)
        self._way = HELD
        self._rest, self._size = [data[begin:]], len(data) - begin
        return data[:begin]

    def _place(self, data: bytes, behind: int | None) -> tuple[int, int | None]:
        """Where the frame begins and ends that has so many behind it; None: what follows them all.
        Where the pipe has split the bytes in another way, it may be any of them."""
        if self._borders is not None:
            return 0, len(data)
        ends = all_ends(data)
        if len(ends) != self._pipe.latest_frames:
            return 0, None
        at = len(ends) - (0 if behind is None else behind + 1)
        return [0, *ends][at], [*ends, None][at]

    def _ended(self, ending: Event, data: bytes, begin: int = 0, end: int | None = None) -> bytes:
        """The stream is over. Of the last bytes, ``begin`` is where the frame begins that decides,
        and ``end`` where it ends if it is the reader's to hear."""
        assert isinstance(ending, Finish | Failed)
        self.ending = ending
        self._rest, self._way = [], STOPPED
        if isinstance(ending, Finish):
            self.failure = self._objection(ending)
            if self.failure is None:
                self._way = FREE
                return data
        elif ending.reason in _WORDED and not self._is_ripe and end is not None:
            return data[:end]
        else:
            self.failure = ending
        return data[:begin]

    def _objection(self, ending: Finish) -> Failed | None:
        """Why what is held must not go, though the stream came to its end."""
        if ending.reason in NORMAL:
            return None if self._marks.broke is None else _not_whole(self._marks.broke)
        ripe = self._is_ripe and (self._marks.cut or not self._eager)
        return _not_to_be_run(ending) if ripe else None


def _not_whole(name: str) -> Failed:
    return Failed("protocol", f"the call {name!r} is not whole", True)


def _not_to_be_run(ending: Finish) -> Failed:
    word = ending.raw_reason or ending.reason
    what = f"the answer ended with {word!r} and a tool call in it, which must not be run so"
    return Failed("provider_error", what, False, ending.reason)


_WAYS: dict[Way, Callable[[Passage, bytes], bytes]] = {
    FRAMES: Passage._by_frame,
    HELD: Passage._hold,
    FREE: Passage._pass,
    STOPPED: Passage._drop,
}
