"""The call state machine: what a wire says about tool calls in, events out.

Rule 1: whatever decides when a call exists, grows or ends is in this file.
Rule 2: this file knows no provider.
Rule 3: parsable is not finished. A call ends when the wire says so, or it ends broken.

A provider's parser finds the ``Call`` (by index, id, block …) and says one of six verbs about it.
``TABLE`` has one row for every verb in every state; there is no other path.

    hear    its id or name became known        settle  the wire says the whole argument text
    append  a fragment of its arguments        close   the wire says that this call is complete
    end     the turn ended (normally or not)   break   the stream failed under it

Fragments are joined once and parsed once. The one thing done per fragment is a list append.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeAlias

import msgspec

from . import halves
from .events import (
    Boundary,
    BrokenReason,
    BrokenToolCall,
    Event,
    FinishReason,
    IdSource,
    Provenance,
    ProviderToolResult,
    RunsOn,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    is_tool_name,
)
from .exact import Refused, parse
from .limits import LimitReached, Limits
from .mint import Mint
from .notes import DEBUG, INFO, WARNING, Scribe, structure

__all__ = ["FUNCTION", "TABLE", "Call", "Calls", "Kind", "State"]

Out: TypeAlias = list[Event]


class State(IntEnum):
    """Where a call is in its life."""

    WAITING = 0  # heard of, but without a name, or without id and fragment: not told yet
    OPEN = 1  # started; fragments flow
    CLOSED = 2  # the wire closed it, but the turn must say whether it counts
    OVER = 3  # told, whole or broken; nothing changes it any more


WAITING, OPEN, CLOSED, OVER = State


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What sort of tool is called. ``key`` names the one argument of a tool whose input is text."""

    family: str = "function"
    runs_on: RunsOn = "client"
    key: str | None = None  # None: the argument text is JSON
    id_source: IdSource = "natural"


FUNCTION = Kind()


class Call(msgspec.Struct, eq=False):
    """A call being told. Mutable and private; events are the values that leave."""

    ordinal: int
    choice: int
    kind: Kind
    state: State = WAITING
    id: str = ""  # what results are paired with: the wire's, or minted
    wire_id: str | None = None
    field: str | None = None
    source: IdSource = "synthetic"
    name: str = ""
    started: bool = False
    counted: tuple[int, int] = (0, 0)  # fragments and characters measured so far
    fragments: list[str] = []
    minted: bool = False
    boundary: Boundary = "stated"
    echo: dict[str, Any] | None = None
    rivals: tuple[str, ...] = ()  # closing copies that differ from the fragments
    latched: str | None = None  # what was held when a snapshot was assumed; "": twice
    seen: Any = None  # what brought it, for the log if its id is missing

    @property
    def raw(self) -> str:
        return "".join(self.fragments)

    @property
    def size(self) -> int:
        """Characters of its argument text."""
        return len(self.raw) or self.counted[1]

    def __repr__(self) -> str:
        return f"<Call {self.ordinal} {self.name!r} {self.id!r} {self.state.name}>"


class Calls:
    """All calls of one stream: the list is the truth, whatever keys a parser uses."""

    def __init__(self, scribe: Scribe, mint: Mint, limits: Limits) -> None:
        self.all: list[Call] = []
        self.finished_client_call = False
        # Tell a start as soon as id and name are known; a wire that may send its names in pieces
        # waits for the first fragment.
        self.eager = True
        self.mended = False  # halves of characters may stand in the fragments
        self.tainted = False  # argument text came that belongs to no call we know
        self._told = 0  # characters of the calls that are over
        self._names: set[str] = set()  # names that were looked at
        self._scribe = scribe
        self._mint = mint
        self._limits = limits
        self._open: dict[int, Call] = {}  # not over yet, by ordinal
        self._ids: dict[tuple[int, str], Call] = {}

    # --- finding --------------------------------------------------------------------------------

    def by_id(self, choice: int, wire_id: str) -> Call | None:
        """The call that the wire calls so."""
        return self._ids.get((choice, wire_id))

    def unfinished(self, choice: int | None = None) -> list[Call]:
        """The calls that have not ended, in order."""
        return [c for c in self._open.values() if choice is None or c.choice == choice]

    # --- the verbs, in the order of a call's life -----------------------------------------------

    def open(
        self, out: Out, kind: Kind = FUNCTION, *, choice: int = 0, id: str | None = None,
        field: str | None = None, name: str | None = None, inferred: bool = False, seen: Any = None,
        source: IdSource | None = None,
    ) -> Call:  # fmt: skip
        """A new call was heard of. It starts as soon as it can be named and identified."""
        if len(self.all) >= self._limits.calls:
            raise LimitReached("calls", self._limits.calls)
        if len(self._open) >= self._limits.open_calls:
            raise LimitReached("open_calls", self._limits.open_calls)
        call = Call(len(self.all), choice, kind)
        if inferred:
            call.boundary = "inferred"
        call.seen = seen
        call.field = field
        self.all.append(call)
        self._open[call.ordinal] = call
        self.hear(call, out, id=id, field=field, name=name, source=source)
        return call

    def hear(
        self, call: Call, out: Out, *, id: str | None = None, field: str | None = None,
        name: str | None = None, source: IdSource | None = None,
    ) -> None:  # fmt: skip
        """An id or a name of this call."""
        if id and id != call.wire_id:
            self._identify(call, id, field, source or call.kind.id_source)
        if name and name != call.name:
            self._name(call, name)
        TABLE["hear", call.state](self, call, "", out)

    def append(self, call: Call, text: str, out: Out) -> None:
        """A fragment of its arguments. The hot verb: the usual state is asked first."""
        if call.state is OPEN:
            call.fragments.append(text)
            out.append(ToolCallDelta(call.ordinal, text))
        else:
            TABLE["append", call.state](self, call, text, out)

    def extend(self, call: Call, text: str, out: Out) -> None:
        """As ``append``, for wires that may say everything again: only the news are kept."""
        if text[0] == "{" and call.fragments and not (text := self._news(call, text)):
            return
        if call.state is OPEN:  # as append, one function call less
            call.fragments.append(text)
            out.append(ToolCallDelta(call.ordinal, text))
        else:
            TABLE["append", call.state](self, call, text, out)

    def settle(self, call: Call, text: str, out: Out) -> None:
        """The wire's own copy of the whole argument text."""
        TABLE["settle", call.state](self, call, text, out)

    def replace(self, call: Call, text: str) -> None:
        """Forget the fragments for this text; nothing is told, what was told stays told."""
        call.fragments[:] = [text] if text else []
        call.counted = 0, 0

    def merge_object(self, call: Call, text: str, out: Out) -> None:
        """One more object of arguments for the same call: keys are added, never lost."""
        held = call.raw
        if not held:
            return self.append(call, text, out)
        if held == text:
            return self._scribe.note("args.repeated", call_id=call.id)
        inner = text.strip()[1:-1].strip()
        if inner and (stem := held.rstrip()).endswith("}"):
            glue = "" if stem[1:-1].strip() == "" else ","
            self._scribe.note("args.merged", call_id=call.id)
            self.replace(call, f"{stem[:-1]}{glue}{inner}}}")

    def whole(
        self, out: Out, text: str, kind: Kind, choice: int, id: str | None, field: str | None,
        name: str | None, echo: dict[str, Any] | None, seen: Any,
    ) -> Call:  # fmt: skip
        """A call that the wire says all at once: ``open``, ``append`` and ``close`` in one.

        The usual case is written out, as some wires say thousands of calls so (``make bench``).
        """
        ordinal = len(self.all)
        arguments: Any = None
        if id and name and text and self._is_usual(id, name, choice, kind):
            self._bound(len(text), self._told + len(text))
            try:
                arguments = parse(text, max_depth=self._limits.depth)
            except Refused:
                arguments = None  # the steps will say why
        if type(arguments) is not dict or not id or not name:
            return self._whole_by_steps(out, text, kind, choice, id, field, name, echo, seen)
        source, family, runs_on = kind.id_source, kind.family, kind.runs_on
        size = 0, len(text)
        call = Call(ordinal, choice, kind, OVER, id, id, field, source, name, True, size)
        self._told += len(text)
        self.all.append(call)
        self._ids[choice, id] = call
        if runs_on == "client":
            self.finished_client_call = True
        scribe = self._scribe
        origin = Provenance(source, id, field, "stated", scribe.provider, scribe.response_id)
        out.append(ToolCallStart(ordinal, id, name, family, runs_on))
        out.append(ToolCallDelta(ordinal, text))
        out.append(
            ToolCall(ordinal, id, name, arguments, text, family, runs_on, choice, origin, echo)
        )
        return call

    def _is_usual(self, id: str, name: str, choice: int, kind: Kind) -> bool:
        return (
            name in self._names  # so it is neither too long nor odd
            and (choice, id) not in self._ids
            and len(id) <= self._limits.id
            and len(self.all) < self._limits.calls
            and not self.mended
            and not self._scribe.info_on
            and kind.key is None
        )

    def _whole_by_steps(
        self, out: Out, text: str, kind: Kind, choice: int, id: str | None, field: str | None,
        name: str | None, echo: dict[str, Any] | None, seen: Any,
    ) -> Call:  # fmt: skip
        call = self.open(out, kind, choice=choice, id=id, field=field, name=name, seen=seen)
        call.echo = echo
        if text:
            self.append(call, text, out)
        self.close(call, out)
        return call

    def close(self, call: Call, out: Out) -> None:
        """The wire says that this call is complete."""
        TABLE["close", call.state](self, call, "", out)

    def end_turn(self, out: Out, reason: FinishReason | None, choice: int | None = None) -> None:
        """The turn ended: every call of it counts now, or never. None: it did not say how."""
        for call in self.unfinished(choice):
            TABLE["end", call.state](self, call, reason, out)

    def break_all(self, out: Out, reason: BrokenReason, detail: str) -> None:
        """The stream failed: what is not whole by now never will be."""
        for call in self.unfinished():
            self.fail(call, reason, detail, out)

    def fail(self, call: Call, reason: BrokenReason, detail: str, out: Out) -> None:
        """This call is broken."""
        TABLE["break", call.state](self, call, (reason, detail), out)

    def measure(self) -> None:
        """Hold the open calls against the limits; only asked once a stream is long enough to matter."""
        held = [self._size(call) for call in self._open.values()]
        self._bound(max(held, default=0), self._told + sum(held))

    def _bound(self, size: int, total: int) -> None:
        limits = self._limits
        if size > limits.arguments:
            raise LimitReached("arguments", limits.arguments)
        if total > limits.arguments_total:
            raise LimitReached("arguments_total", limits.arguments_total)

    def _size(self, call: Call) -> int:
        """Characters held; each fragment is counted once, whenever somebody first asks."""
        since, size = call.counted
        size += sum(map(len, call.fragments[since:]))
        call.counted = len(call.fragments), size
        return size

    # --- what the provider runs itself ----------------------------------------------------------

    def result(
        self, out: Out, output: Any, *, id: str | None, call: Call | None = None, choice: int = 0,
        is_error: bool = False, echo: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """What a provider-run tool produced; paired by call or by id, an orphan is told too."""
        call = call or (self.by_id(choice, id) if id else None)
        if call is None:
            self._scribe.note("result.orphan", call_id=id or "")
            id = id or self._mint.id(len(self.all), "orphan")
        event = ProviderToolResult(
            call.ordinal if call else None, call.id if call else id or "", output, is_error
        )
        out.append(event if echo is None else _with_echo(event, echo))

    def progress(
        self, out: Out, call: Call | None, status: str, payload: Any = None, *, id: str = ""
    ) -> None:
        """How far a provider-run tool is."""
        event = ToolProgress(call.ordinal if call else None, call.id if call else id, status)
        if payload is not None:
            event = ToolProgress(event.call, event.id, status, payload)
        out.append(event)

    # --- identity -------------------------------------------------------------------------------

    def _identify(self, call: Call, id: str, field: str | None, source: IdSource) -> None:
        if len(id) > self._limits.id:
            raise LimitReached("id", self._limits.id)
        if call.wire_id is not None:
            if len(self._ids) < self._limits.calls * 2:  # a wire may change it with every fragment
                self._ids.setdefault((call.choice, id), call)
            return self._scribe.note("call.id_changed", call_id=call.id)
        call.wire_id, call.field = id, field
        if (call.choice, id) in self._ids:
            self._scribe.note("call.id_duplicate", call_id=id)
            return self._mint_id(call)
        self._ids[call.choice, id] = call
        if call.minted:
            self._scribe.note("call.id_late", call_id=id)
        call.id, call.source, call.minted = id, source, False

    def _mint_id(self, call: Call) -> None:
        call.id, call.source, call.minted = self._mint.id(call.ordinal), "synthetic", True

    def _name(self, call: Call, name: str) -> None:
        if len(call.name) + len(name) > self._limits.name:
            raise LimitReached("name", self._limits.name)
        if call.started:
            self._scribe.note("call.name_changed", call_id=call.id)
        else:
            call.name = name

    def _start_if_ready(self, call: Call, _: str, out: Out) -> None:
        """A start is told once there is a name, and an id or a fragment (else an id may still come)."""
        if call.name and (call.fragments or (self.eager and call.id)):
            self._start(call, out)

    def _start(self, call: Call, out: Out) -> None:
        if not call.id:
            self._mint_for_want_of_one(call)
        call.started = True
        call.state = OPEN
        self._look_at(call.name)
        out.append(
            ToolCallStart(call.ordinal, call.id, call.name, call.kind.family, call.kind.runs_on)
        )
        if call.fragments:
            out.append(ToolCallDelta(call.ordinal, call.raw))
        if self._scribe.debug_on:
            self._scribe.log(
                DEBUG,
                "tool_call.started",
                call_id=call.id,
                id_source=call.source,
                wire_field=call.field,
                name=call.name,
                call=call.ordinal,
            )

    def _look_at(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            if not is_tool_name(name):
                self._scribe.note("call.name_invalid", name=name)

    def _mint_for_want_of_one(self, call: Call) -> None:
        self._mint_id(call)
        self._scribe.note(
            "call.id_synthetic", call_id=call.id, call=call.ordinal, name=call.name,
            reason=f"no id in {call.field or 'the payload'}",
            strategy="minted: HMAC of the stream's secret and the call's number",
            structure=structure(call.seen),
        )  # fmt: skip

    # --- growing --------------------------------------------------------------------------------

    def _hold(self, call: Call, text: str, out: Out) -> None:
        call.fragments.append(text)
        self._start_if_ready(call, "", out)

    def _late(self, call: Call, text: str, out: Out) -> None:
        if text:
            self.tainted = True  # it may have been meant for a call that now looks empty
            self._scribe.note("call.late", call_id=call.id)

    def astray(self, **where: Any) -> None:
        """Argument text came for a call that was never opened."""
        self.tainted = True
        self._scribe.note("call.unannounced", **where)

    def _news(self, call: Call, text: str) -> str:
        """What ``text`` adds, if it says again what is held; else all of it.

        Nothing is compared unless ``text`` is at least as long as what is held: the work is linear.
        """
        if len(text) < self._size(call):
            return text
        held = call.raw
        if text == held:
            if not _whole(held):
                return text
            self._scribe.note("args.repeated", call_id=call.id)
            return ""
        if held[0] == "{" and text.startswith(held):
            self._scribe.note("args.cumulative", call_id=call.id)
            # It may also be a fragment that begins like the whole: remembered once, tried at the end.
            call.latched = "" if call.latched is not None else held
            return text[len(held) :]
        if held.strip() == "{}":
            self._scribe.note("args.placeholder", call_id=call.id)
            self.replace(call, "")
        return text

    def _compare(self, call: Call, text: str, out: Out) -> None:
        """A closing copy: it fills a gap, confirms the fragments, or is a rival of them."""
        held, text = self._mended(call.raw), self._mended(text)
        if text == held:
            call.rivals = ()
        elif not text:
            self._scribe.note("args.done_empty", call_id=call.id)
        elif not held:
            self.append(call, text, out)
        else:
            self._scribe.note("args.mismatch", call_id=call.id)
            call.rivals += (text,)
            if call.rivals.count(text) > 1:  # two copies of the wire against one
                self.replace(call, text)
                call.rivals = ()

    def _compare_closed(self, call: Call, text: str, out: Out) -> None:
        if not call.fragments and text:
            call.fragments.append(text)
        else:
            self._compare(call, text, out)

    def _compare_over(self, call: Call, text: str, out: Out) -> None:
        if text and self._mended(text) != call.raw:
            self._scribe.note("args.mismatch", call_id=call.id)

    def _mended(self, text: str) -> str:
        return halves.join(text) if self.mended else text

    # --- ending ---------------------------------------------------------------------------------

    def _close(self, call: Call, _: Any, out: Out) -> None:
        """A whole object is a call at once; the rest waits for the turn's end."""
        if call.name and call.fragments and not call.rivals:
            arguments = self._arguments(call)
            if type(arguments) is dict:
                return self._tell(call, arguments, out)
        if call.name and not call.started:
            self._start(call, out)
        call.state = CLOSED

    def _end(self, call: Call, reason: FinishReason | None, out: Out) -> None:
        """The turn ended: decide."""
        if call.rivals:
            self.replace(call, call.rivals[-1])
            call.rivals = ()
        if not call.name:
            return self._break(call, ("conflict", "the wire never named this call"), out)
        arguments = self._arguments(call)
        if arguments is NOTHING and self.tainted:
            return self._break(call, _ASTRAY, out)
        if arguments is NOTHING and reason in _NORMAL:
            arguments = {} if call.kind.key is None else {call.kind.key: ""}
        if type(arguments) is dict:
            return self._tell(call, arguments, out)
        self._break(call, _why_broken(arguments, reason), out)

    def _arguments(self, call: Call) -> Any:
        """The arguments as a dict, ``NOTHING`` for no text, or what is wrong with them."""
        raw = self._mended(call.raw)
        self._bound(len(raw), self._told + len(raw))
        if self.mended:
            self.replace(call, raw)
        if call.kind.key is not None:
            return {call.kind.key: raw} if raw else NOTHING
        if not raw or raw.isspace():
            return NOTHING
        try:
            value = parse(raw, max_depth=self._limits.depth)
        except Refused as refused:
            return self._unlatched(call, refused)
        return self._unwrapped(call, value) if type(value) is str else value

    def _unlatched(self, call: Call, refused: Refused) -> Any:
        """A snapshot was assumed once and gives no JSON: was it a fragment after all?"""
        if not call.latched:
            return refused
        heard = call.latched + call.raw
        try:
            value = parse(heard, max_depth=self._limits.depth)
        except Refused:
            return refused
        self.replace(call, heard)
        return value

    def _unwrapped(self, call: Call, text: str) -> Any:
        try:
            value = parse(text, max_depth=self._limits.depth)
        except Refused:
            return text
        if type(value) is not dict:
            return text
        self._scribe.note("args.double_encoded", call_id=call.id)
        return value

    def _tell(self, call: Call, arguments: dict[str, Any], out: Out) -> None:
        if not call.started:
            self._start(call, out)
        self._over(call)
        if call.kind.runs_on == "client":
            self.finished_client_call = True
        kind = call.kind
        out.append(
            ToolCall(
                call.ordinal,
                call.id,
                call.name,
                arguments,
                call.raw,
                kind.family,
                kind.runs_on,
                call.choice,
                self._provenance(call),
                call.echo,
            )
        )
        if self._scribe.info_on:
            self._scribe.log(
                INFO,
                "tool_call.finished",
                call_id=call.id,
                id_source=call.source,
                wire_field=call.field,
                name=call.name,
                call=call.ordinal,
                size=len(call.raw),
            )

    def _break(self, call: Call, why: tuple[BrokenReason, str], out: Out) -> None:
        reason, detail = why
        if call.name and not call.started:
            self._start(call, out)
        if not call.id:
            self._mint_id(call)
        self._over(call)
        raw = self._mended(call.raw)
        kind = call.kind
        out.append(
            BrokenToolCall(
                call.ordinal,
                call.id,
                call.name,
                raw,
                reason,
                detail,
                kind.family,
                kind.runs_on,
                call.choice,
                self._provenance(call),
            )
        )
        self._scribe.log(
            WARNING, "tool_call.broken", call_id=call.id, id_source=call.source, name=call.name,
            call=call.ordinal, size=len(raw), reason=reason,
        )  # fmt: skip

    def _over(self, call: Call) -> None:
        call.state = OVER
        self._told += self._size(call)
        del self._open[call.ordinal]

    def _provenance(self, call: Call) -> Provenance:
        scribe = self._scribe
        return Provenance(
            call.source, call.wire_id, call.field if call.wire_id else None, call.boundary,
            scribe.provider, scribe.response_id,
        )  # fmt: skip

    def _ignore(self, call: Call, _: Any, out: Out) -> None:
        """Said again; it changes nothing."""


NOTHING = object()  # no argument text at all, which is not the text "null"
_NORMAL = {"stop", "tool_calls", "pause"}
_ASTRAY: tuple[BrokenReason, str] = (
    "conflict",
    "no arguments came for this call, but some came that belong to no call we know",
)


def _whole(text: str) -> bool:
    try:
        return type(parse(text)) is dict
    except Refused:
        return False


def _why_broken(arguments: Any, reason: FinishReason | None) -> tuple[BrokenReason, str]:
    if reason == "length":
        return "length", "the token limit fell inside the arguments"
    if arguments is NOTHING:
        return "truncated", f"no arguments came, and the turn ended with {reason or 'no reason'}"
    if isinstance(arguments, Refused):
        return "invalid_json", str(arguments)
    return "not_object", f"the arguments are {type(arguments).__name__}, not an object"


def _with_echo(event: ProviderToolResult, echo: dict[str, Any]) -> ProviderToolResult:
    return ProviderToolResult(event.call, event.id, event.output, event.is_error, echo)


Action: TypeAlias = Callable[[Calls, Call, Any, Out], None]

# Verb x state -> what happens. Total: a test asks for every pair; docs/states.md is drawn from it.
TABLE: dict[tuple[str, State], Action] = {
    ("hear", WAITING): Calls._start_if_ready,
    ("hear", OPEN): Calls._ignore,
    ("hear", CLOSED): Calls._ignore,
    ("hear", OVER): Calls._ignore,
    ("append", WAITING): Calls._hold,
    ("append", OPEN): Calls.append,
    ("append", CLOSED): Calls._late,
    ("append", OVER): Calls._late,
    ("settle", WAITING): Calls._compare,
    ("settle", OPEN): Calls._compare,
    ("settle", CLOSED): Calls._compare_closed,
    ("settle", OVER): Calls._compare_over,
    ("close", WAITING): Calls._close,
    ("close", OPEN): Calls._close,
    ("close", CLOSED): Calls._close,
    ("close", OVER): Calls._ignore,
    ("end", WAITING): Calls._end,
    ("end", OPEN): Calls._end,
    ("end", CLOSED): Calls._end,
    ("end", OVER): Calls._ignore,
    ("break", WAITING): Calls._break,
    ("break", OPEN): Calls._break,
    ("break", CLOSED): Calls._break,
    ("break", OVER): Calls._ignore,
}
