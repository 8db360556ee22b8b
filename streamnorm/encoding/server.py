"""Events served as another wire: events in, the bytes of a stream out, one event at a time.

This file decides, in no provider's words: what of a call may be told and when, under which id and
name. A provider's ``Server`` writes payloads for text, reasoning, calls and the end.

Rule: a client never sees a whole call that was not whole here, and calls stand in the order in which
they began. Fragments are passed on as they come; if a call then breaks, or turns out to be another than
its fragments said, the stream fails. With ``release="end"`` nothing that makes a client run a call is
told before the answer has ended normally; after any other end its calls are never closed. What a wire
has no word for (a picture, most often) is logged.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypedDict, get_args

import msgspec

from ..core.calls import NORMAL
from ..core.mint import PREFIX
from ..errors import EncodeError, UsageError
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
from ..text.written import json_bytes, json_text, one_line, sse
from ..tools import Tool
from .envelope import Sealing
from .socket import Socket

__all__ = [
    "Body",
    "Refused",
    "Served",
    "Server",
    "ServerOptions",
    "Serving",
    "served_text",
    "status_of",
]

MODEL = "unknown"
Body: TypeAlias = dict[str, Any]
Release: TypeAlias = Literal["call", "end"]
RELEASES = get_args(Release)
CUT = "the stream ended before the answer did"


class ServerOptions(TypedDict, total=False):
    """How a stream is served. All of it may be left out."""

    whole: bool  # nothing of a call is told before it is complete
    release: Release  # when a client may run a call: when it is complete, or at the normal end
    tools: Mapping[str, Tool]  # what the client declared, by the names that events have
    ids: Callable[[int, ToolCallStart | ToolCall], str]  # the id under which a call is served
    model: str | None  # as the client asked for it
    response_id: str | None
    created: int  # seconds since 1970
    seal: bool  # what another provider wants back rides in a field that the client cannot read
    tell_usage: bool  # where a client is told the counts only if it asked


class Serving(msgspec.Struct):
    """A call on its way to the client. ``place`` is its number on the served wire."""

    id: str
    name: str
    called: str  # the name that its events have
    text: bool = False  # its input is plain text
    namespace: str | None = None
    place: int = -1
    pieces: list[str] = []
    made: ToolCall | None = None  # once it is whole

    @property
    def sent(self) -> str:
        """What was told of its input."""
        return "".join(self.pieces)


class Refused(NamedTuple):
    """An answer that is no stream, in the client's own form."""

    status: int
    headers: dict[str, str]
    body: Body


class Server:
    """One stream on its way to a client. A provider's folder has a subclass.

    ``tell`` gives the bytes of each event and ``end`` those that end a stream whose events just
    stop; ``over`` says that nothing more will be told, ``shown`` that the client has heard anything.
    """

    name: ClassVar[str]
    takes_texts: ClassVar[bool] = False  # this wire has calls whose input is plain text
    # Its clients take the beginning of a call for the end of the one before: a call that begins while
    # another is told is told after it.
    one_by_one: ClassVar[bool] = False
    id_prefix: ClassVar[str] = ""  # what the ids of its responses begin with
    # Its clients give thoughts back to a model of the name that they asked for, and to no other.
    binds_thoughts: ClassVar[bool] = False
    socket: ClassVar[type[Socket] | None] = None  # how its clients speak on a WebSocket, if they do

    def __init__(
        self,
        *,
        whole: bool = False,
        release: Release = "call",
        tools: Mapping[str, Tool] | None = None,
        ids: Callable[[int, ToolCallStart | ToolCall], str] | None = None,
        model: str | None = None,
        response_id: str | None = None,
        created: int = 0,
        seal: bool = False,
        tell_usage: bool = True,
    ) -> None:
        if release not in RELEASES:
            raise UsageError(f"release is {' or '.join(map(repr, RELEASES))}, not {release!r}")
        self._hold = whole
        self.releases_at_end = release == "end"
        self._tools = tools or {}
        self._ids = ids
        self._asked_for = model
        self._held: dict[int, ToolCallStart] = {}  # started, and not told yet
        self._calls: dict[int, Serving] = {}
        self._ready: dict[int, Serving | ToolCall] = {}  # whole, and not told so yet
        self._waiting: list[tuple[int, ToolCall]] = []  # whole, behind one that is not: a heap
        self._queue: list[int] = []  # all that were held, and some that are no more: a heap
        self._unfinished: set[int] = set()  # begun here, and not whole
        self._others: set[int] = set()  # calls of another answer than the first
        self._several = False  # there are several: a start does not say whose it is
        self._seal = seal
        self._run: tuple[Any, ...] | None = None  # the text that is being told
        self._sealing = Sealing()  # its echoes
        self._lead: bytes | None = None  # what the stream begins with
        self._kept: list[Body] | None = None  # payloads, where a whole answer is made of them
        self.over = False
        self.shown = False
        self.failure: Failed | None = None
        self.source = ""  # whose stream it is …
        self.said_by: str | None = None  # … and of which model
        self.agent: str | None = None  # who speaks, where there are several
        self.model = model or MODEL
        self.response_id = response_id or "streamnorm"
        self._own_id = response_id is not None
        self.created = created
        self.tell_usage = tell_usage
        self.usage: Usage | None = None

    @classmethod
    def gives_back(cls, body: Body) -> bool:
        """Will the client that asked so send back what it cannot read, so that it can be sealed?"""
        return True

    @classmethod
    def may_name(cls, body: Body) -> bool:
        """May the client that asked so later send the name of what it was told, in its place?"""
        return False

    @property
    def nameable(self) -> dict[str, Body]:
        """What the answer has told by now, by the names that a later request may say in its place."""
        return {}

    def tell(self, event: Event) -> bytes:
        """The bytes of this event; none for one that this wire has no word for."""
        handler = EVENTS.get(type(event))
        if self.over or handler is None:
            return b""
        if getattr(event, "choice", None):  # only the first of several answers
            handler = Server._other_answer
        self.agent = getattr(event, "agent", None)
        return self._led(handler, event)

    def end(self) -> bytes:
        """What tells that no more events come; nothing if the stream has ended already."""
        return b"" if self.over else self._led(Server._failed, Failed("truncated", CUT, True))

    def alive(self) -> bytes:
        """What tells a client that has heard nothing for a while that its answer is still being made."""
        return b"" if self.over else self._led(Server._still_there, None)

    def _still_there(self, _: None) -> Iterable[bytes]:
        return (self.keep_alive(),)

    def _led(self, handler: Handler, event: Any) -> bytes:
        """What a stream begins with comes before the first thing that is said."""
        if self._lead is None and not isinstance(event, StreamStart | Usage):
            self._lead = b"".join(self.opening())
        said = b"".join(handler(self, event))
        if said and not self.shown:
            self.shown = True
            said = (self._lead or b"") + said
        return said

    # --- answers that are no streams --------------------------------------------------------------

    def answer(self, events: Iterable[Event]) -> tuple[int, Body]:
        """All of it at once: a status and a body. A turn that failed is an error without a call."""
        self.releases_at_end, self._kept = True, []
        for event in events:
            self.tell(event)
        self.end()
        if self.failure is not None:
            status = status_of(self.failure)
            return status, self.error_body(status, self.failure.error, self.failure.code)
        return 200, self.gathered(self._kept)

    def refused(
        self,
        status: int,
        message: str,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> Refused:
        """A request that is not answered, in the form in which this wire's clients hear that."""
        headers = {"content-type": "application/json"}
        if retry_after is not None:
            headers["retry-after"] = f"{retry_after:.3f}".rstrip("0").rstrip(".")
        return Refused(status, headers, self.error_body(status, message, code))

    def broken_off(
        self,
        message: str,
        failure: Failed | None = None,
        *,
        model: str | None = None,
        response_id: str | None = None,
        number: int = 0,
    ) -> bytes:
        """What ends a stream of this very wire that somebody else has told so far.

        ``number`` is that of the next payload, on wires that count them.
        """
        self.model, self.response_id = model or self.model, response_id or self.response_id
        self.counted_from(number)
        ended = failure or Failed("transport", message, True)
        return b"".join(self._failed(msgspec.structs.replace(ended, error=message)))

    # --- what a provider says ---------------------------------------------------------------------

    def opening(self) -> Iterable[bytes]:
        raise NotImplementedError

    def keep_alive(self) -> bytes:
        """Says nothing. A comment, unless a wire has a word of its own for it."""
        return b": keep-alive\n\n"

    def text(self, event: TextDelta) -> Iterable[bytes]:
        raise NotImplementedError

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        raise NotImplementedError

    def media(self, event: Media) -> Iterable[bytes] | None:
        """What tells a picture or a sound; None if this wire has no word for it."""
        return None

    def call_opened(self, call: Serving) -> Iterable[bytes]:
        """What tells that the call begins; sets its ``place`` on this wire."""
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

    def failed(self, failure: Failed) -> Iterable[bytes]:
        raise NotImplementedError

    def run_ended(self) -> Iterable[bytes]:
        """A text ends, and with it its ``envelope`` is told, on a wire that has a place for one."""
        self.envelope()
        return ()

    def takes_over(self, said: Iterable[Body]) -> None:
        """What was told here so far, the client has heard from the provider itself, on this very wire,
        in these payloads: go on from there. Its calls are found by their ids."""
        self.shown, self._lead = True, b""
        self.adopted([*said], {call.id: call for call in self._calls.values()})

    def adopted(self, said: list[Body], calls: dict[str, Serving]) -> None:
        """The places of what these payloads have told, instead of those that it would have had here."""
        raise EncodeError(f"{self.name} cannot be gone on with")

    def counted_from(self, number: int) -> None:
        """The next payload has this number, on a wire that counts them."""

    def gathered(self, said: list[Body]) -> Body:
        """The whole answer, from the payloads of its stream."""
        raise EncodeError(f"{self.name} cannot be served as a whole answer; serve a stream")

    def error_body(self, status: int, message: str, code: str | None) -> Body:
        """What a client of this wire hears with such a status."""
        return {"error": {"message": message, "code": code}}

    def say(self, payload: Body, event: str | None = None) -> bytes:
        """One payload as it is sent."""
        if self._kept is not None:
            self._kept.append(payload)
        return sse(one_line(json_bytes(payload)), event)

    # --- events -----------------------------------------------------------------------------------

    def _start(self, event: StreamStart) -> Iterable[bytes]:
        self.source, self.said_by = event.provider, event.model
        if self._asked_for is None:
            self.model = event.model or self.model
        if not self._own_id:
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
        return self._waited()

    def _usage(self, event: Usage) -> Iterable[bytes]:
        self.usage = event
        return ()

    def _text(self, event: TextDelta) -> Iterable[bytes]:
        return self._said(event, self.text) if self.seals else self.text(event)

    def _reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        return self._said(event, self.reasoning) if self.seals else self.reasoning(event)

    def _said(
        self, event: TextDelta | ReasoningDelta, say: Callable[[Any], Iterable[bytes]]
    ) -> Iterable[bytes]:
        run = (type(event), event.part, event.agent)
        if self._run != run:
            yield from self.run_ended()
        yield from say(event)
        self._run = run
        self._sealing.add(event.text, event.echo)

    @property
    def seals(self) -> bool:
        """Is it another provider's stream, of which the client keeps what that wants back?"""
        return self._seal and self.source not in ("", self.name)

    def envelope(self, *, reasoning: bool = False) -> str | None:
        """What is wanted back of the text that ends here. Reasoning always says whose it is."""
        told, self._sealing, self._run = self._sealing, Sealing(), None
        if not self.seals or not (told or reasoning):
            return None
        return told.sealed(self.source, self.said_by, reasoning=reasoning)

    def _media(self, event: Media) -> Iterable[bytes]:
        said = self.media(event)
        if said is None:
            Scribe(self.name).log(
                WARNING, "serve.media_left_out", mime_type=event.mime_type, part=event.part,
                size=len(event.data or b""), reason="this wire has no word for it",
            )  # fmt: skip
        return said or ()

    # --- calls ------------------------------------------------------------------------------------

    def _call_start(self, event: ToolCallStart) -> Iterable[bytes]:
        if event.runs_on == "provider":
            return ()
        # Behind one that is held it waits as well: clients run calls in the order in which they hear them.
        waits = self._hold or self._held or self._several or self._must_wait
        if waits or not self._can_begin(event):
            self._held[event.call] = event
            heappush(self._queue, event.call)
            return ()
        return self._open(event)[1]

    @property
    def _must_wait(self) -> bool:
        """Is another call being told, in whose midst none may begin?"""
        return self.one_by_one and bool(self._unfinished)

    def _can_begin(self, event: ToolCallStart) -> bool:
        """Will its id stay, and are its fragments those of the call that is served?"""
        stays = self._ids is not None or not event.id.startswith(PREFIX)
        as_text = self._is_text(event)
        return stays and event.family == ("custom" if as_text else "function")

    def _is_text(self, event: ToolCallStart | ToolCall) -> bool:
        tool = self._tools.get(event.name)
        meant = event.family == "custom" or (tool is not None and tool.text)
        return self.takes_texts and meant

    def _open(self, event: ToolCallStart | ToolCall) -> tuple[Serving, Iterable[bytes]]:
        tool = self._tools.get(event.name)
        id = event.id if self._ids is None else self._ids(event.call, event)
        call = Serving(id, event.name, event.name, self._is_text(event))
        if tool is not None:
            call.name = tool.name if tool.namespace is None else tool.own_name
            call.namespace = tool.namespace
        self._calls[event.call] = call
        self._unfinished.add(event.call)
        return call, self.call_opened(call)

    def _call_delta(self, event: ToolCallDelta) -> Iterable[bytes]:
        call = self._calls.get(event.call)
        return () if call is None or not event.text else self._send(call, event.text)

    def _send(self, call: Serving, text: str) -> Iterable[bytes]:
        call.pieces.append(text)
        return self.fragment(call, text)

    def _call(self, event: ToolCall) -> Iterable[bytes]:
        if event.runs_on == "provider":
            return self.hosted_call(event) if self.source == self.name else ()
        return self._whole_call(event)

    def _whole_call(self, event: ToolCall) -> Iterable[bytes]:
        self._held.pop(event.call, None)
        call, text = self._calls.get(event.call), self._input(event)
        if wrong := self._objection(event, call, text):
            yield from self._fail(wrong)
        elif call is None and self._hold and self.releases_at_end:
            self._ready[event.call] = event
        else:
            if call is None:
                heappush(self._waiting, (event.call, event))
            else:
                yield from self._complete(event, call, text or "")
            yield from self._waited()

    def _waited(self) -> Iterable[bytes]:
        """Calls that are whole and need wait no longer: they are told in the order of their starts."""
        while self._waiting and not self._must_wait:
            if self._is_behind_another(self._waiting[0][0]):
                return
            _, event = heappop(self._waiting)
            yield from self._complete(event, None, self._input(event) or "")

    def _is_behind_another(self, number: int) -> bool:
        """Has one that began earlier not been told yet?"""
        while self._queue and self._queue[0] not in self._held:
            heappop(self._queue)
        return bool(self._queue) and self._queue[0] < number

    def _complete(self, event: ToolCall, call: Serving | None, text: str) -> Iterable[bytes]:
        if call is None:
            call, opened = self._open(event)
            yield from opened
        if rest := text[len(call.sent) :]:
            yield from self._send(call, rest)
        call.made = event
        self._unfinished.discard(event.call)
        if self.releases_at_end and not self.over:
            self._ready[event.call] = call
        else:
            yield from self.call_closed(call)

    def _input(self, event: ToolCall) -> str | None:
        """The text of its input as the client is to hear it; None if there is no such text."""
        if not self._is_text(event):
            return served_text(event)
        if event.family == "custom":
            return event.raw
        said = event.arguments.get("input")
        return said if isinstance(said, str) and len(event.arguments) == 1 else None

    def _objection(self, event: ToolCall, call: Serving | None, text: str | None) -> str | None:
        if text is None:
            return f"the input of the call {event.name!r} is no text"
        if call is None:
            return None
        same_id = self._ids is not None or call.id == event.id
        if same_id and call.called == event.name and text.startswith(call.sent):
            return None
        return f"the call {event.name!r} is not what its fragments said"

    def _broken_call(self, event: BrokenToolCall) -> Iterable[bytes]:
        """It stays open; the end must say that it is not whole, also of one that has no name."""
        self._held.pop(event.call, None)
        if event.runs_on == "client":
            self._calls.setdefault(event.call, Serving(event.id, event.name, event.name))
            self._unfinished.add(event.call)
        return self._waited()

    def _result(self, event: ProviderToolResult) -> Iterable[bytes]:
        own = self.source == self.name and event.call not in self._others
        return self.hosted_result(event) if own else ()

    # --- the end ----------------------------------------------------------------------------------

    def _finish(self, event: Finish) -> Iterable[bytes]:
        cut = [self._calls[number].name for number in sorted(self._unfinished)]
        cut += [start.name for start in self._held.values()]
        ready = [self._ready[number] for number in sorted(self._ready)]
        if event.reason not in NORMAL and (cut or ready):
            # Also of a cut one: clients would take {} for what they heard of its input.
            name = (cut or [ready[0].name])[0]
            what = f"the answer ended with {event.reason!r}: its call {name!r} is not to be run"
            yield from self._failed(Failed("provider_error", what, False, event.reason))
            return
        if cut:
            yield from self._fail(f"the call {cut[0]!r} is not whole")
            return
        self.over = True
        for call in ready:
            if isinstance(call, Serving):
                yield from self.call_closed(call)
            else:
                yield from self._complete(call, None, self._input(call) or "")
        yield from self.finished(event)

    def _failed(self, event: Failed) -> Iterable[bytes]:
        self.over, self.failure = True, event
        return self.failed(event)

    def _fail(self, message: str) -> Iterable[bytes]:
        return self._failed(Failed("protocol", message, True))


def served_text(call: ToolCall) -> str:
    """The argument text as JSON; that of a tool whose input is plain text is made so."""
    plain = call.arguments in ({"input": call.raw}, {"code": call.raw})
    if plain or (not call.raw and call.arguments):
        return json_text(call.arguments)
    return call.raw or "{}"


def status_of(failure: Failed) -> int:
    """What stands for such a failure where nothing was told before it."""
    if failure.reason == "idle":
        return 504
    if failure.reason == "provider_error":
        return 503 if failure.retryable else 400  # what would end so again is not to be asked again
    return 502


Handler: TypeAlias = Callable[[Server, Any], Iterable[bytes]]
EVENTS: Mapping[type, Handler] = {
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


class Served:
    """What a client hears of these events, as they come: for ``for``, and for ``async for`` if the
    events come so. Whoever opened their source closes it."""

    def __init__(self, server: Server, events: Iterable[Event] | AsyncIterable[Event]) -> None:
        self._server = server
        self._events = events
        self._now: Iterator[Event] | None = None
        self._later: AsyncIterator[Event] | None = None

    def __iter__(self) -> Served:
        return self

    def __next__(self) -> bytes:
        if self._now is None:
            if not isinstance(self._events, Iterable):
                raise UsageError("these events come one by one: use `async for`")
            self._now = iter(self._events)
        while not self._server.over:
            event = next(self._now, None)
            if data := self._server.end() if event is None else self._server.tell(event):
                return data
        raise StopIteration

    def __aiter__(self) -> Served:
        return self

    async def __anext__(self) -> bytes:
        if self._later is None:
            if not isinstance(self._events, AsyncIterable):
                raise UsageError("these events are all here: use `for`")
            self._later = aiter(self._events)
        while not self._server.over:
            event = await anext(self._later, None)
            if data := self._server.end() if event is None else self._server.tell(event):
                return data
        raise StopAsyncIteration
