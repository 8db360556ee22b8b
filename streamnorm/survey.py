"""One stream comes in, as a take; its facts go out: what it is, its calls, how it ended, and when.

    facts = survey(read_take("answer.sse"))
    facts.provider, facts.end, [(call.told.name, call.end) for call in facts.calls]

Rule: facts only, gathered in one pass; the saying itself is not kept, but for what calls and results
hold. Times are seconds from the start, and None where the take has none. Nothing is logged: what was
tolerated is among the facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from .events import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallStart,
    Usage,
)
from .notes import unheard
from .takes.pipe import Heard, pipe_for, resume_in

if TYPE_CHECKING:
    from .takes.format import Take

__all__ = ["CallFacts", "Recorded", "ResultFacts", "Survey", "Surveying", "survey", "utf8_size"]

PIECE = 256 * 1024  # bytes that are heard at once: what they say is in memory until it is counted


class CallFacts(msgspec.Struct, frozen=True):
    """One call that ended: what was told of it, and when it began and ended."""

    told: ToolCall | BrokenToolCall
    started: float | None = None
    ended: float | None = None

    @property
    def end(self) -> str:
        """``whole``, or why it broke."""
        return "whole" if type(self.told) is ToolCall else self.told.reason  # type: ignore[union-attr]

    @property
    def size(self) -> int:
        """Bytes of its text."""
        return utf8_size(self.told.raw)


class ResultFacts(msgspec.Struct, frozen=True):
    """What a tool gave that the provider ran, and when."""

    told: ProviderToolResult
    ended: float | None = None


class Survey(msgspec.Struct, frozen=True):
    """What is in one stream."""

    provider: str
    model: str | None
    response_id: str | None
    captured: str | None
    header: dict[
        str, Any
    ]  # of the take: address, status and headers of the response, if it has them
    torn: bool
    finished: bool
    bytes: int
    chunks: int
    frames: int
    events: dict[str, int]  # kind -> how many, in the order in which they first came
    text_chars: int
    reasoning_chars: int
    calls: list[CallFacts]  # in the order in which they ended
    results: list[ResultFacts]
    notes: dict[str, int]
    usage: Usage | None
    ending: Finish | Failed
    seconds: float | None  # when the last bytes came
    first_event: float | None
    first_token: float | None  # of text, of reasoning, or the beginning of a call
    first_call: float | None  # when the first call began

    @property
    def end(self) -> str:
        """``finish`` or ``failed``."""
        return self.ending.kind

    @property
    def reason(self) -> str:
        """Why it ended, in our words."""
        return self.ending.reason

    @property
    def detail(self) -> str:
        """The same in the words of the wire, or what went wrong."""
        end = self.ending
        return (end.raw_reason or "") if isinstance(end, Finish) else end.error

    @property
    def recorded(self) -> str:
        """``finished``, ``unfinished``, ``torn``, or ``not told`` by a file that is not our recorder's."""
        if self.torn:
            return "torn"
        if self.finished:
            return "finished"
        if "made" not in self.header:
            return "not told"
        from .takes.recorder import MADE  # here, as it needs what writing needs

        return "unfinished" if self.header["made"] == MADE else "not told"


def survey(take: Take, provider: str | None = None) -> Survey:
    """Everything there is to say about one stream.

    >>> from streamnorm.takes.format import parse_take
    >>> facts = survey(parse_take(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n'))
    >>> facts.provider, facts.events, facts.reason
    ('openai_chat', {'stream_start': 1, 'text_delta': 1, 'failed': 1}, 'truncated')
    """
    with unheard():
        surveying = Surveying(take, provider)
        for at, chunk in take.chunks:
            surveying.hear(chunk, at if take.timed else None)
        return surveying.end()


class Recorded(Heard, Protocol):
    """What is heard, and what is known of its recording at the end."""

    @property
    def torn(self) -> bool:
        """Was it cut while it was written?"""

    @property
    def finished(self) -> bool:
        """Was it recorded to its end?"""


class Surveying:
    """The facts of one stream while it is read."""

    def __init__(self, stream: Recorded, provider: str | None = None) -> None:
        self._stream = stream
        self._pipe = pipe_for(stream, provider)
        self._heard = _Heard()
        self._size = self._chunks = 0
        self._at: float | None = None

    def hear(self, data: bytes, at: float | None, *, goes_on: bool = False) -> None:
        """A chunk, or more of the last one; no bytes: those of another connection follow."""
        self._at = at
        self._size += len(data)
        self._chunks += not goes_on
        if len(data) <= PIECE:
            if not data:
                resume_in(self._pipe)
                self._chunks -= 1
            elif events := self._pipe.feed(data):
                self._heard.hear(events, at)
            return
        for begin in range(0, len(data), PIECE):
            if events := self._pipe.feed(data[begin : begin + PIECE]):
                self._heard.hear(events, at)

    def end(self) -> Survey:
        """All of it was heard."""
        pipe, heard, stream = self._pipe, self._heard, self._stream
        heard.hear(pipe.close(), self._at)
        start, ending = heard.start, heard.ending
        assert ending is not None
        header = stream.header
        return Survey(
            start.provider if start else pipe.provider,
            (start and start.model) or _text(header.get("model")),
            start.response_id if start else None,
            _text(header.get("captured")),
            header,
            stream.torn,
            stream.finished,
            self._size,
            self._chunks,
            pipe.frames,
            {kind.kind: count for kind, count in heard.counts.items()},
            heard.text_chars,
            heard.reasoning_chars,
            heard.calls,
            heard.results,
            dict(sorted(pipe.notes.items())) if pipe.notes else {},
            heard.usage,
            ending,
            self._at,
            heard.first_event,
            heard.first_token,
            heard.first_call,
        )


class _Heard:
    """What was said so far."""

    __slots__ = (
        "calls", "counts", "ending", "first_call", "first_event", "first_token", "reasoning_chars",
        "results", "start", "started", "text_chars", "usage",
    )  # fmt: skip

    def __init__(self) -> None:
        self.counts: dict[type[Event], int] = {}
        self.text_chars = self.reasoning_chars = 0
        self.calls: list[CallFacts] = []
        self.results: list[ResultFacts] = []
        self.started: dict[int, float | None] = {}  # call -> when
        self.start: StreamStart | None = None
        self.usage: Usage | None = None
        self.ending: Finish | Failed | None = None
        self.first_event: float | None = None
        self.first_token: float | None = None
        self.first_call: float | None = None

    def hear(self, events: list[Event], at: float | None) -> None:
        """These were told at that time."""
        counts = self.counts
        if not counts:
            self.first_event = at
        for event in events:
            kind = type(event)
            counts[kind] = counts.get(kind, 0) + 1
            if kind is TextDelta:
                self.text_chars += len(event.text)  # type: ignore[union-attr]
                if self.first_token is None:
                    self.first_token = at
            elif kind in _HEARD:
                _HEARD[kind](self, event, at)

    def _reasoning(self, event: ReasoningDelta, at: float | None) -> None:
        self.reasoning_chars += len(event.text)
        if self.first_token is None:
            self.first_token = at

    def _begin(self, event: ToolCallStart, at: float | None) -> None:
        self.started[event.call] = at
        if self.first_token is None:
            self.first_token = at
        if self.first_call is None:
            self.first_call = at

    def _call(self, event: ToolCall | BrokenToolCall, at: float | None) -> None:
        self.calls.append(CallFacts(event, self.started.get(event.call), at))

    def _result(self, event: ProviderToolResult, at: float | None) -> None:
        self.results.append(ResultFacts(event, at))

    def _start(self, event: StreamStart, at: float | None) -> None:
        self.start = event

    def _usage(self, event: Usage, at: float | None) -> None:
        self.usage = event

    def _end(self, event: Finish | Failed, at: float | None) -> None:
        self.ending = event


# Kinds of events of which more than the number counts -> who hears them.
_HEARD: dict[type[Event], Any] = {
    ReasoningDelta: _Heard._reasoning,
    ToolCallStart: _Heard._begin,
    ToolCall: _Heard._call,
    BrokenToolCall: _Heard._call,
    ProviderToolResult: _Heard._result,
    StreamStart: _Heard._start,
    Usage: _Heard._usage,
    Finish: _Heard._end,
    Failed: _Heard._end,
}


def utf8_size(text: str) -> int:
    """The bytes of a text in UTF-8; half a character counts as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
