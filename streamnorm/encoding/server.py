"""Events served as another wire: events in, the bytes of a stream out, one event at a time.

This file decides, in no provider's words: what of a call may be told and when. A provider's
``Server`` writes payloads for text, reasoning, calls and the end.

Rule: a client never sees a whole call that was not whole here. Fragments are passed on as they come;
if a call then breaks, or turns out to be another than its fragments said, the stream fails there
unless the wire has its own way to say so. What a wire has no word for (a picture, most often) is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from ..core.mint import PREFIX
from ..events import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    Media,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from ..notes import WARNING, Scribe
from ..text.written import json_text

__all__ = ["Server", "Serving", "served_text"]

MODEL = "unknown"


class Serving(msgspec.Struct):
    """A call on its way to the client. ``place`` is its number on the served wire."""

    id: str
    name: str
    place: int
    sent: str = ""
    over: bool = False


class Server:
    """One stream on its way to a client. A provider's folder has a subclass."""

    name: ClassVar[str]

    def __init__(self, *, whole: bool = False) -> None:
        self._hold = whole
        self._held: dict[int, ToolCallStart] = {}  # started, and not told yet
        self._calls: dict[int, Serving] = {}
        self._hosted: set[int] = set()  # calls that the provider runs
        self._others: set[int] = set()  # calls of another answer than the first
        self._several = False  # there are several: a start does not say whose it is
        self._over = False
        self.started = False
        self.source = ""  # whose stream it is
        self.agent: str | None = None  # who speaks, where there are several
        self.model = MODEL
        self.response_id = "streamnorm"
        self.usage: Usage | None = None

    def serve(self, events: Iterable[Event]) -> Iterator[bytes]:
        """The bytes of each event; events that this wire has no word for give none."""
        for event in events:
            if self._over:
                return
            data = b"".join(self._tell(event))
            if data:
                yield data
        if not self._over:
            yield b"".join(
                self._opened(self.failed("the stream ended before the answer did", None))
            )

    def _tell(self, event: Event) -> Iterable[bytes]:
        handler = EVENTS.get(type(event))
        if handler is None:
            return ()
        if getattr(event, "choice", None):  # only the first of several answers
            handler = Server._other_answer
        self.agent = getattr(event, "agent", None)
        said = handler(self, event)
        silent = isinstance(event, StreamStart | Usage) or handler is Server._other_answer
        return said if silent else self._opened(said)

    def _opened(self, said: Iterable[bytes]) -> Iterable[bytes]:
        """What a stream begins with comes before the first thing that is said."""
        if not self.started:
            self.started = True
            yield from self.opening()
        yield from said

    # --- what a provider says ---------------------------------------------------------------------

    def opening(self) -> Iterable[bytes]:
        raise NotImplementedError

    def text(self, event: TextDelta) -> Iterable[bytes]:
        raise NotImplementedError

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        raise NotImplementedError

    def media(self, event: Media) -> Iterable[bytes] | None:
        """What tells a picture or a sound; None if this wire has no word for it."""
        return None

    def call_opened(self, id: str, name: str, family: str) -> tuple[int, Iterable[bytes]]:
        """The number of the call on this wire, and what tells that it begins."""
        raise NotImplementedError

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        raise NotImplementedError

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        raise NotImplementedError

    def hosted_call(self, call: ToolCall) -> Iterable[bytes]:
        """A call that this very provider made and ran."""
        return ()

    def hosted_result(self, result: ProviderToolResult) -> Iterable[bytes]:
        return ()

    def finished(self, finish: Finish) -> Iterable[bytes]:
        raise NotImplementedError

    def failed(self, message: str, failure: Failed | None) -> Iterable[bytes]:
        raise NotImplementedError

    # --- events -----------------------------------------------------------------------------------

    def _start(self, event: StreamStart) -> Iterable[bytes]:
        self.source = event.provider
        self.model = event.model or self.model
        self.response_id = event.response_id or self.response_id
        return ()

    def _other_answer(self, event: Any) -> Iterable[bytes]:
        """Nothing of it is served. A call of it that was begun, as none were known, cannot be unsaid."""
        self._several = True
        if not isinstance(event, ToolCall | BrokenToolCall):
            return ()
        self._others.add(event.call)
        self._held.pop(event.call, None)
        if event.call in self._calls:
            return self._fail(f"the call {event.name!r} is of another answer")
        return ()

    def _usage(self, event: Usage) -> Iterable[bytes]:
        self.usage = event
        return ()

    def _text(self, event: TextDelta) -> Iterable[bytes]:
        return self.text(event)

    def _reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        return self.reasoning(event)

    def _media(self, event: Media) -> Iterable[bytes]:
        said = self.media(event)
        if said is None:
            Scribe(self.name).log(
                WARNING, "serve.media_left_out", mime_type=event.mime_type, part=event.part,
                size=len(event.data or b""), reason="this wire has no word for it",
            )  # fmt: skip
        return said or ()

    def _call_start(self, event: ToolCallStart) -> Iterable[bytes]:
        if event.runs_on == "provider":
            self._hosted.add(event.call)
        elif (
            self._hold or self._several or event.family != "function" or event.id.startswith(PREFIX)
        ):
            # A minted id may yet be replaced, and an input that is plain text becomes JSON.
            self._held[event.call] = event
        else:
            return self._open(event.call, event.id, event.name, event.family)
        return ()

    def _open(self, ordinal: int, id: str, name: str, family: str) -> Iterable[bytes]:
        place, said = self.call_opened(id, name, family)
        self._calls[ordinal] = Serving(id, name, place)
        return said

    def _call_delta(self, event: ToolCallDelta) -> Iterable[bytes]:
        call = self._calls.get(event.call)
        return () if call is None or not event.text else self._send(call, event.text)

    def _send(self, call: Serving, text: str) -> Iterable[bytes]:
        call.sent += text
        return self.fragment(call, text)

    def _call(self, event: ToolCall) -> Iterable[bytes]:
        if event.runs_on == "provider":
            return self.hosted_call(event) if self.source == self.name else ()
        return self._whole_call(event)

    def _whole_call(self, event: ToolCall) -> Iterable[bytes]:
        self._held.pop(event.call, None)
        if event.call not in self._calls:
            yield from self._open(event.call, event.id, event.name, event.family)
        call = self._calls[event.call]
        text = served_text(event)
        told = (call.id, call.name) == (event.id, event.name) and text.startswith(call.sent)
        if not told:
            yield from self._fail(f"the call {event.name!r} is not what its fragments said")
            return
        if rest := text[len(call.sent) :]:
            yield from self._send(call, rest)
        call.over = True
        yield from self.call_closed(call)

    def _broken_call(self, event: BrokenToolCall) -> Iterable[bytes]:
        """It stays open; the end must say that it is not whole, also of one that has no name."""
        self._held.pop(event.call, None)
        if event.runs_on == "client":
            self._calls.setdefault(event.call, Serving(event.id, event.name, -1))
        return ()

    def _result(self, event: ProviderToolResult) -> Iterable[bytes]:
        own = self.source == self.name and event.call not in self._others
        return self.hosted_result(event) if own else ()

    def _finish(self, event: Finish) -> Iterable[bytes]:
        cut = next((call for call in self._calls.values() if not call.over), None)
        if cut is not None and event.reason != "length":
            return self._fail(f"the call {cut.name!r} is not whole")
        self._over = True
        return self.finished(event)

    def _failed(self, event: Failed) -> Iterable[bytes]:
        self._over = True
        return self.failed(event.error, event)

    def _fail(self, message: str) -> Iterable[bytes]:
        self._over = True
        return self.failed(message, None)


def served_text(call: ToolCall) -> str:
    """The argument text as JSON; that of a tool whose input is plain text is made so."""
    plain = call.arguments in ({"input": call.raw}, {"code": call.raw})
    if plain or (not call.raw and call.arguments):
        return json_text(call.arguments)
    return call.raw or "{}"


EVENTS: Mapping[type, Callable[[Server, Any], Iterable[bytes]]] = {
    StreamStart: Server._start,
    TextDelta: Server._text,
    ReasoningDelta: Server._reasoning,
    Media: Server._media,
    ToolCallStart: Server._call_start,
    ToolCallDelta: Server._call_delta,
    ToolCall: Server._call,
    BrokenToolCall: Server._broken_call,
    ProviderToolResult: Server._result,
    Usage: Server._usage,
    Finish: Server._finish,
    Failed: Server._failed,
}
