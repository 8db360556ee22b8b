"""Events of one or more streams come in; moves of a message go out: what was opened, told and closed.

Everything that makes a message of events reads these moves: ``Turn.from_events`` and the encoders of
the chat protocols.

Rule: whatever is opened is closed, exactly once, however the events end. A call has its own life and
may be open beside others; of text and reasoning at most one run per choice, or per agent, is open, and it
ends when something else begins. A stream is a step of the message; a tool loop tells several.

Text that comes with an echo of some type is of that type (a refusal, say), so it is a run of its own.
An echo is kept with its run once, at the place in the text where it came. What two agents say is
never one run, whatever part they say it in. A picture is shown where it came, a sound when it is over.

Ids in a message are unique. A wire may use an id twice (a server that counts from 0 in each turn), or
tell the real one after another was heard: a page keeps the first name it heard for a call, and the
metadata of the call tells ``id``, what its result is paired with.

Besides events a loop may tell ``ToolResult`` for what it ran, ``Approval`` for what it must ask,
``Denied`` for what was refused, and ``Said`` for what the user asked. Anything else is counted and
left out. The answer to an ``Approval`` is a ``Decision``; it may come in another message, whose
results are then of calls that the page knows from before (``known``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from .errors import UsageError
from .events import (
    BrokenToolCall,
    Citation,
    Echo,
    Event,
    Failed,
    Finish,
    Media,
    ProviderToolResult,
    ReasoningDelta,
    RecorderFailed,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    Usage,
)
from .tools import ToolResult

__all__ = [
    "Approval", "Decision", "Denied", "Fold", "Item", "Move", "Said", "denial", "echoes_of",
    "output_of",
]  # fmt: skip


class Approval(msgspec.Struct, frozen=True, gc=False):
    """A loop asks: may this call be run? ``id`` is what the answer is paired with.

    >>> call = ToolCall(0, "call_1", "pay", {"euro": 5}, '{"euro":5}')
    >>> Approval("ask_1", call).call.name
    'pay'
    """

    kind: ClassVar[Literal["approval"]] = "approval"
    id: str
    call: ToolCall
    reason: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer to an ``Approval``, by its ``id``.

    ``arguments``: it may run with these, all of them, instead of those that the model said.

    >>> Decision(id="ask_1", allow=False, reason="too much").allow
    False
    """

    id: str
    allow: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        names = self.arguments if isinstance(self.arguments, dict) else ()
        if wrong := [name for name in names if not isinstance(name, str)]:
            raise UsageError(f"the names of arguments are texts, not {wrong[0]!r}")


def denial(reason: str = "") -> str:
    """What the model is told of a call that was not allowed.

    >>> denial("too much")
    'The user denied this call: too much'
    """
    return f"The user denied this call: {reason}" if reason else "The user denied this call."


class Denied(msgspec.Struct, frozen=True, gc=False):
    """A call that was not allowed to run.

    >>> Denied(ToolCall(0, "call_1", "pay", {}, ""), "too much").reason
    'too much'
    """

    kind: ClassVar[Literal["denied"]] = "denied"
    call: ToolCall
    reason: str = ""


class Said(msgspec.Struct, frozen=True, gc=False):
    """What the user said, for those who show a chat from its log alone. ``to`` names who was asked.

    >>> Said("Hello").text
    'Hello'
    """

    kind: ClassVar[Literal["said"]] = "said"
    text: str
    to: str = ""


Item: TypeAlias = Event | ToolResult | Approval | Denied | Said
BEFORE = 0  # the step of a call of an earlier message
RunKind: TypeAlias = Literal["text", "reasoning"]
Voice: TypeAlias = int | tuple[int, str]  # who tells a run: a choice, or an agent in one


# --- moves ----------------------------------------------------------------------------------------


class _Part(msgspec.Struct, eq=False, gc=False):
    """What pieces belong to: equal to itself alone. Nothing that it holds can refer back to it."""


class _Move(msgspec.Struct, gc=False):
    """What an item changes. A struct, because one is made for nearly every event."""


class Run(_Part):
    """A run of text or reasoning. ``type`` is that of its echoes where they say what the text is."""

    kind: RunKind
    number: int  # among all runs of the message
    step: int
    part: int
    choice: int
    type: str | None = None
    echoes: list[Echo] = []
    marks: list[int] = []  # after how many characters each echo came
    size: int = 0
    agent: str | None = None

    def goes_on(self, event: TextDelta | ReasoningDelta) -> bool:
        """Is this event of the same run, if its text is of the same type?"""
        return self.part == event.part and self.kind == _KINDS[type(event)]

    def add(self, text: str) -> None:
        self.size += len(text)


class Medium(_Part):
    """A picture, a sound or a file: its bytes, piece by piece, or where they are."""

    number: int  # among all media of the message
    step: int
    part: int
    choice: int
    type: str
    url: str | None = None
    agent: str | None = None
    pieces: list[bytes] = []
    echoes: list[Echo] = []

    @property
    def data(self) -> bytes | None:
        return b"".join(self.pieces) if self.pieces else None


class Call(_Part):
    """A call as the page knows it. ``id`` is unique in the message; ``wire`` is the event's id."""

    id: str
    wire: str
    name: str
    by_provider: bool
    step: int
    ordinal: int
    pieces: list[str] = []  # the argument text that was told so far
    state: Literal["open", "whole", "broken"] = "open"
    answered: bool = False
    denied: bool = False
    agent: str | None = None

    def add(self, text: str) -> None:
        self.pieces.append(text)

    @property
    def sent(self) -> str:
        return "".join(self.pieces)


class Step(_Move):
    number: int
    start: StreamStart | None


class StepEnd(_Move):
    number: int


class RunOpen(_Move):
    run: Run


class RunText(_Move):
    run: Run
    pieces: list[str]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class RunClose(_Move):
    run: Run


class Shown(_Move):
    medium: Medium


class CallOpen(_Move):
    call: Call


class CallText(_Move):
    call: Call
    pieces: list[str]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class CallWhole(_Move):
    call: Call
    event: ToolCall


class CallBroken(_Move):
    call: Call
    event: BrokenToolCall


class Result(_Move):
    call: Call
    event: ProviderToolResult | ToolResult

    @property
    def output(self) -> Any:
        return output_of(self.event)


class Orphan(_Move):
    """A result of a call that the page never heard of."""

    id: str
    event: ProviderToolResult | ToolResult

    @property
    def output(self) -> Any:
        return output_of(self.event)


class Progress(_Move):
    call: Call | None
    event: ToolProgress


class Cited(_Move):
    event: Citation


class Asked(_Move):
    call: Call
    approval: Approval


class Refused(_Move):
    call: Call
    reason: str


Move: TypeAlias = (
    Step | StepEnd | RunOpen | RunText | RunClose | Shown | CallOpen | CallText | CallWhole | CallBroken
    | Result | Orphan | Progress | Cited | Asked | Refused
)  # fmt: skip


# --- the walk -------------------------------------------------------------------------------------


class Fold:
    """The state of one message. ``feed`` takes items, ``close`` ends what is open.

    ``end`` is the last ``Finish`` or ``Failed``, ``usage`` what each step spent, ``skipped`` counts
    what was not told. ``known`` are calls of an earlier message that may be answered in this one:
    the event's id and the page's. ``read`` makes an item of what is none, where it can.
    """

    def __init__(
        self,
        *,
        used: Iterable[str] = (),
        known: Mapping[str, str] | None = None,
        echo: bool = True,
        read: Callable[[Any], Any] | None = None,
    ) -> None:
        self.end: Finish | Failed | None = None
        self.usage: list[tuple[StreamStart | None, Usage]] = []
        self.asked: list[tuple[Call, Approval]] = []
        self.skipped: Counter[str] = Counter()
        self.start: StreamStart | None = None
        self._used, self._again = set(used), dict[str, int]()
        self._echo, self._read = echo, read
        self._steps = 0
        self._in_step = False
        self._runs: dict[Voice, Run] = {}  # the one that each tells now
        self._run_count = 0
        self._media: dict[int, Medium] = {}  # by choice: the sound that may go on
        self._media_count = 0
        self._open: dict[int, Call] = {}  # by ordinal in the stream: not ended yet
        self._ordinals: dict[int, Call] = {}  # all of this step
        self._ids: dict[str, Call] = {  # by the event's id: the last one of that id
            wire: Call(id, wire, "", False, BEFORE, 0, state="whole")
            for wire, id in (known or {}).items()
        }

    def feed(self, items: Iterable[Item]) -> list[Move]:
        """What these items change; neighbouring pieces of the same part become one."""
        out: list[Move] = []
        for item in items:
            hear = _HEARD.get(type(item))
            if hear is None:
                self._other(item, out)
            else:
                hear(self, item, out)
        return out

    def going(self, item: Any) -> Run | Call | None:
        """The open part that this item only adds a text to, if that is all that it does.

        Whoever then tells the text says so to the part (``add``) and does not feed the item.
        """
        kind = type(item)
        if kind is ToolCallDelta:
            return self._open.get(item.call) if item.text else None
        if kind not in _KINDS or item.echo is not msgspec.UNSET or not item.text:
            return None
        voice = item.choice if item.agent is None else (item.choice, item.agent)
        run = self._runs.get(voice)
        return run if run is not None and run.type is None and run.goes_on(item) else None

    def begun(self, event: ToolCallStart) -> Call | None:
        """As ``feed``, if a call begins and nothing else changes: that call."""
        if not self._in_step or self._runs or event.call in self._open:
            return None
        return self._enter(event)

    def ended(self, event: ToolCall) -> Call | None:
        """As ``feed``, if a call that is open is whole now: that call."""
        return self._complete(event) if event.call in self._open else None

    def _other(self, item: Any, out: list[Move]) -> None:
        item = item if self._read is None else self._read(item)
        hear = _HEARD.get(type(item))
        if hear is None:
            self.skipped[getattr(item, "kind", type(item).__name__)] += 1
        else:
            hear(self, item, out)

    def close(self) -> list[Move]:
        """End the message: runs, calls that never ended, the step."""
        out: list[Move] = []
        self._settle(out, "the stream ended here")
        if self._in_step:
            self._in_step = False
            out.append(StepEnd(self._steps))
        return out

    @property
    def waiting(self) -> list[tuple[Call, Approval]]:
        """What was asked and is not answered: the message is not cut off, it pauses."""
        return [(call, approval) for call, approval in self.asked if not call.answered]

    @property
    def unanswered(self) -> list[Call]:
        """The whole calls that the client is to run and that nobody answered, in order."""
        return [c for c in self._ids.values() if not c.answered and not c.by_provider]

    # --- steps and ends ---------------------------------------------------------------------------

    def _begin(self, event: StreamStart | None, out: list[Move]) -> None:
        out.extend(self.close())
        self._steps += 1
        self._in_step = True
        self._ordinals = {}
        self.start, self.end = event, None
        out.append(Step(self._steps, event))

    def _need_step(self, out: list[Move]) -> None:
        if not self._in_step:
            self._begin(None, out)

    def _finish(self, event: Finish | Failed, out: list[Move]) -> None:
        self._settle(out, "the stream ended here")
        self.end = event

    def _settle(self, out: list[Move], why: str) -> None:
        self._close_runs(out)
        self._show_held(out)
        for ordinal, call in list(self._open.items()):
            self._break(_cut(ordinal, call, why), out)

    def _spend(self, event: Usage, out: list[Move]) -> None:
        self.usage.append((self.start, event))

    # --- text and reasoning -----------------------------------------------------------------------

    def _say(self, event: TextDelta | ReasoningDelta, out: list[Move]) -> None:
        echo = event.echo if self._echo and event.echo is not msgspec.UNSET else None
        text = event.text
        if not text and echo is None:
            return
        kind = _type_of(echo) if text and echo else None
        voice = event.choice if event.agent is None else (event.choice, event.agent)
        run = self._runs.get(voice)
        if run is None or run.type != kind or not run.goes_on(event):
            run = self._open_run(event, voice, kind, out)
        if echo is not None and (not run.echoes or run.echoes[-1] != echo):
            run.echoes.append(echo)
            run.marks.append(run.size)
        if not text:
            return
        run.add(text)
        if out and isinstance(last := out[-1], RunText) and last.run is run:
            last.pieces.append(text)
        else:
            out.append(RunText(run, [text]))

    def _open_run(
        self, event: TextDelta | ReasoningDelta, voice: Voice, of: str | None, out: list[Move]
    ) -> Run:
        self._need_step(out)
        before = self._runs.get(voice)
        if before is not None:
            out.append(RunClose(before))
        self._run_count += 1
        kind = _KINDS[type(event)]
        run = Run(kind, self._run_count, self._steps, event.part, event.choice, of)
        run.agent = event.agent
        self._runs[voice] = run
        out.append(RunOpen(run))
        return run

    def _close_runs(self, out: list[Move]) -> None:
        if self._runs:
            out.extend([RunClose(run) for run in self._runs.values()])
            self._runs.clear()

    # --- media ------------------------------------------------------------------------------------

    def _show(self, event: Media, out: list[Move]) -> None:
        """Sounds come in pieces, and are held until they are over; all else is whole."""
        self._need_step(out)
        medium = self._media.get(event.choice)
        if medium is None or (medium.part, medium.url) != (event.part, event.url):
            self._show_held(out, event.choice)
            self._close_runs(out)
            medium = self._medium(event)
        if event.data:
            medium.pieces.append(event.data)
        if self._echo and event.echo is not msgspec.UNSET and medium.echoes[-1:] != [event.echo]:
            medium.echoes.append(event.echo)
        if not event.mime_type.startswith("audio/"):
            self._show_held(out, event.choice)

    def _medium(self, event: Media) -> Medium:
        self._media_count += 1
        medium = self._media[event.choice] = Medium(
            self._media_count, self._steps, event.part, event.choice, event.mime_type, event.url,
            event.agent,
        )  # fmt: skip
        return medium

    def _show_held(self, out: list[Move], choice: int | None = None) -> None:
        for each in list(self._media) if choice is None else [choice]:
            if (medium := self._media.pop(each, None)) is not None:
                out.append(Shown(medium))

    def _cite(self, event: Citation, out: list[Move]) -> None:
        self._need_step(out)
        out.append(Cited(event))

    # --- calls ------------------------------------------------------------------------------------

    def _adopt(self, event: ToolCallStart | ToolCall | BrokenToolCall, out: list[Move]) -> Call:
        if not self._in_step:
            self._need_step(out)
        if self._runs:
            self._close_runs(out)
        if (before := self._open.get(event.call)) is not None:
            self._break(_cut(event.call, before, "another call began in its place"), out)
        call = self._enter(event)
        out.append(CallOpen(call))
        return call

    def _enter(self, event: ToolCallStart | ToolCall | BrokenToolCall) -> Call:
        ordinal, id = event.call, event.id
        name = self.unique(id) if id in self._used or not id else id
        self._used.add(name)
        by_provider = event.runs_on == "provider"
        call = Call(name, id, event.name or "unknown", by_provider, self._steps, ordinal)
        if event.agent is not None:
            call.agent = event.agent
        self._open[ordinal] = self._ordinals[ordinal] = call
        return call

    def unique(self, id: str) -> str:
        """An id that no call of the message has: this one, or one like it."""
        name = own = id or "call"
        if name in self._used:
            again = self._again.get(own, 2)  # all before it are taken
            while (name := f"{own}_{again}") in self._used:
                again += 1
            self._again[own] = again + 1
        self._used.add(name)
        return name

    def _grow(self, event: ToolCallDelta, out: list[Move]) -> None:
        call = self._open.get(event.call)
        if call is None:
            self.skipped["tool_call_delta"] += 1
        elif text := event.text:
            call.add(text)
            if out and isinstance(last := out[-1], CallText) and last.call is call:
                last.pieces.append(text)
            else:
                out.append(CallText(call, [text]))

    def _whole(self, event: ToolCall, out: list[Move]) -> None:
        if event.call not in self._open:
            self._adopt(event, out)
        out.append(CallWhole(self._complete(event), event))

    def _complete(self, event: ToolCall) -> Call:
        call = self._open.pop(event.call)
        call.wire, call.name = event.id, event.name
        call.by_provider = event.runs_on == "provider"
        call.state = "whole"
        self._ids[event.id] = call
        return call

    def _break(self, event: BrokenToolCall, out: list[Move]) -> None:
        call = self._open.pop(event.call, None)
        if call is None:
            call = self._adopt(event, out)
            del self._open[event.call]
        call.wire, call.answered, call.state = event.id, True, "broken"
        out.append(CallBroken(call, event))

    def _progress(self, event: ToolProgress, out: list[Move]) -> None:
        self._need_step(out)
        out.append(Progress(self._known(event.call, event.id), event))

    def _ran(self, event: ToolStarted | ToolEnded, out: list[Move]) -> None:
        """A tool of the client begins or ends, between the steps of a loop."""
        facts: dict[str, Any] = {"checksum": event.checksum}
        if isinstance(event, ToolEnded):
            facts |= {"outcome": event.outcome, "seconds": event.seconds}
        status = event.kind.removeprefix("tool_")
        told = ToolProgress(event.call, event.id, status, facts)
        out.append(Progress(self._known(event.call, event.id), told))

    # --- results ----------------------------------------------------------------------------------

    def _known(self, ordinal: int | None, id: str) -> Call | None:
        """The call of this step, or else the last one with that id."""
        here = self._ordinals.get(ordinal) if ordinal is not None else None
        return here if here is not None and here.wire == id else self._ids.get(id)

    def _answerable(self, ordinal: int | None, id: str) -> Call | None:
        """Such a call if it is whole: no other is run, answered, allowed or refused."""
        call = self._known(ordinal, id)
        return call if call is not None and call.state == "whole" else None

    def _provided(self, event: ProviderToolResult, out: list[Move]) -> None:
        self._answer(event.call, event, event.id, out)

    def _returned(self, result: ToolResult, out: list[Move]) -> None:
        self._answer(result.call.call, result, result.call.id, out)

    def _answer(
        self,
        ordinal: int | None,
        event: ProviderToolResult | ToolResult,
        id: str,
        out: list[Move],
    ) -> None:
        call = self._answerable(ordinal, id)
        if call is None or call.step != BEFORE:
            self._need_step(out)
        if call is None:
            out.append(Orphan(id, event))
        elif not call.denied:  # or it was told already
            call.answered = True
            out.append(Result(call, event))

    def _ask(self, approval: Approval, out: list[Move]) -> None:
        ordinal, id = approval.call.call, approval.call.id
        if self._known(ordinal, id) is None and ordinal not in self._open:
            self._whole(approval.call, out)  # of an earlier message, which the page does not have
        call = self._answerable(ordinal, id)
        if call is None:
            self.skipped["approval"] += 1
        else:
            self.asked.append((call, approval))
            out.append(Asked(call, approval))

    def _refuse(self, denied: Denied, out: list[Move]) -> None:
        call = self._answerable(denied.call.call, denied.call.id)
        if call is None:
            self.skipped["denied"] += 1
        else:
            call.answered = call.denied = True
            out.append(Refused(call, denied.reason))


def _type_of(echo: Echo | None) -> str | None:
    type = echo.get("type") if echo else None
    return type if isinstance(type, str) else None


def _cut(ordinal: int, call: Call, why: str) -> BrokenToolCall:
    return BrokenToolCall(
        ordinal, call.wire, call.name, call.sent, "truncated", why, agent=call.agent
    )


_KINDS: dict[type, RunKind] = {TextDelta: "text", ReasoningDelta: "reasoning"}

_Heard: TypeAlias = Callable[[Fold, Any, list[Move]], object]

_HEARD: dict[type, _Heard] = {
    StreamStart: Fold._begin,
    TextDelta: Fold._say,
    ReasoningDelta: Fold._say,
    Media: Fold._show,
    ToolCallStart: Fold._adopt,
    ToolCallDelta: Fold._grow,
    ToolCall: Fold._whole,
    BrokenToolCall: Fold._break,
    ToolProgress: Fold._progress,
    ToolStarted: Fold._ran,
    ToolEnded: Fold._ran,
    ProviderToolResult: Fold._provided,
    Citation: Fold._cite,
    Usage: Fold._spend,
    Finish: Fold._finish,
    Failed: Fold._finish,
    RecorderFailed: lambda fold, event, out: None,  # of this machine, and nothing that was said
    ToolResult: Fold._returned,
    Approval: Fold._ask,
    Denied: Fold._refuse,
}


def echoes_of(runs: Iterable[Run]) -> tuple[tuple[Echo, ...], tuple[int, ...]]:
    """The echoes of what was told in these runs, and where in their whole text each came."""
    echoes: list[Echo] = []
    marks: list[int] = []
    size = 0
    for run in runs:
        for echo, at in zip(run.echoes, run.marks, strict=True):
            if not echoes or echoes[-1] != echo:
                echoes.append(echo)
                marks.append(size + at)
        size += run.size
    return tuple(echoes), tuple(marks)


def output_of(event: ProviderToolResult | ToolResult) -> Any:
    """What a tool gave, as plain values; media are described."""
    if isinstance(event, ProviderToolResult):
        return event.output
    return event.text if event.pieces else event.value
