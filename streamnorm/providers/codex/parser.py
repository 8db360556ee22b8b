"""Codex: lines of ``codex exec --json`` or of a rollout in, one turn's events out.

    thread.started -> turn*                                       on standard output
    turn = turn.started -> item* -> turn.completed | turn.failed          error: anywhere
    item = item.started -> item.updated* -> item.completed        or item.completed alone

    session_meta -> turn*                                         a rollout, a saved session
    turn = event_msg(task_started) -> (response_item | event_msg)* -> event_msg(task_complete)

One turn of the program is one stream, and this parser reads one: standard output does not say where one
answer of the model ends and the next begins. The program runs the tools itself, so calls run on the
provider's side, and what came out of them is told behind them. An item of standard output says a call
and what came out of it, and is known by its id: without one it is read when it is completed, as nobody
could tell then that it is the same. An input that is missing, or of another type, breaks its call.
A rollout has the items of the Responses wire, which are read by its parser. What the program says of
itself beside the items repeats them, and is not read.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from ...core.calls import Call, Evidence, Kind
from ...core.parser import (
    Failure,
    Handler,
    Heading,
    StreamFailed,
    StreamOver,
    count,
    decoder_of,
    first_text,
    plain,
    silent_kinds,
)
from ...core.row import Item
from ...events import Event, ReasoningDelta, TextDelta, Unrecognized, Usage
from ...framing import Framer
from ...framing.lines import Lines
from ...text.halves import decoded
from ..openai_responses.items import TOOLS, Tool, name_of, tools_by_type
from ..openai_responses.parser import RETRYABLE, ResponsesParser

__all__ = ["ITEMS", "KNOWN", "PARSER", "CodexParser", "Step"]

Out: TypeAlias = list[Event]

# --- the lines ----------------------------------------------------------------------------------
# Of a line that frames an item we read what is about the item; the rest is the program's own.


class _Line(msgspec.Struct, gc=False, kw_only=True):
    """One line."""


class _OfStep(_Line):
    item: Raw


class StepStarted(_OfStep, tag="item.started", tag_field="type"):
    pass


class StepUpdated(_OfStep, tag="item.updated", tag_field="type"):
    pass


class StepCompleted(_OfStep, tag="item.completed", tag_field="type"):
    pass


class TurnStarted(_Line, tag="turn.started", tag_field="type"):
    pass


class TurnCompleted(_Line, tag="turn.completed", tag_field="type"):
    usage: dict[str, Any] | None = None


class TurnFailed(_Line, tag="turn.failed", tag_field="type"):
    error: Any = None


class Error(_Line, tag="error", tag_field="type"):
    message: Any = None


class ResponseItem(_Line, tag="response_item", tag_field="type"):
    payload: Raw


class EventMsg(_Line, tag="event_msg", tag_field="type"):
    payload: dict[str, Any] = {}


class TurnContext(_Line, tag="turn_context", tag_field="type"):
    payload: Any = None


class TokenUsage(_Line, tag="token_usage_record", tag_field="type"):
    payload: dict[str, Any] = {}


class _Placed(NamedTuple):
    """An item as the Responses wire says that it is done."""

    item: Raw
    output_index: int
    agent: Any = None


class _About(msgspec.Struct, frozen=True):
    type: str | None = None
    turn_id: str | None = None
    model: str | None = None


class _Header(msgspec.Struct):
    payload: _About = _About()


# Lines that are known and of no use to us.
KNOWN = (
    "compacted", "inter_agent_communication", "session_meta", "session_state", "thread.started",
    "world_state",
)  # fmt: skip


# --- the types of items -------------------------------------------------------------------------


class Step(NamedTuple):
    """One type of item on standard output that calls a tool, and what of it is what.

    ``early``: it says all of its call when it starts, if it says anything; else when it is completed.
    It is told when it is completed either way, or at the end of its turn.
    """

    type: str
    family: str
    arguments: tuple[str, ...]  # the fields that make an object, or the one that is an object
    output: tuple[str, ...]
    early: bool = False
    name_field: str = ""  # else it is called as its type
    nullable: bool = False  # it may say that it has no arguments

    @property
    def item(self) -> Item:
        return Item(self.type, self.family, "call+output", "provider", "conflated", "item.id",
                    "fields " + " ".join(self.arguments))  # fmt: skip


STEPS = (
    Step("command_execution", "local-shell", ("command",), ("aggregated_output", "exit_code"), True),
    Step("file_change", "apply-patch", ("changes",), ("status",)),
    Step("mcp_tool_call", "mcp", ("arguments",), ("result", "error"), True, "tool", True),
    Step("collab_tool_call", "multi-agent", ("sender_thread_id", "receiver_thread_ids", "prompt"),
         ("agents_states",), True, "tool"),
    Step("web_search", "web-search", ("query", "action"), ()),
    Step("todo_list", "plan", ("items",), ()),
)  # fmt: skip
# What its fields are; one that is null is not there.
_TYPES: dict[str, type] = {
    "command": str, "changes": list, "arguments": dict, "sender_thread_id": str,
    "receiver_thread_ids": list, "prompt": str, "query": str, "action": dict, "items": list,
}  # fmt: skip
_STEPS = {step.type: step for step in STEPS}
_FAILED = {"failed", "declined"}
_UNSAID = "its name or its input is missing, or of another type"
_OF_NEXT = "the next turn began before the end of its own"
_LEFT = Failure("truncated", "the next turn began before this one ended")
_REMEMBERED = 64  # texts of items, to know one that comes again
_OF_CLIENTS = {tool.type for tool in TOOLS if tool.runs_on == "client"}  # here the program is one
# How they say their input, and the types of those fields.
_FORMS: dict[str, tuple[type, ...]] = {
    "input": (str,),
    "code": (str,),
    "object": (dict,),
    "one of": (dict, list),  # one, or several
}
_INPUTS = ("arguments", "input", "action", "operation", "code")  # wherever: no number is one
_THERE = tuple(tool._replace(runs_on="provider") for tool in TOOLS)
# What the program adds to items of the wire.
_ADDED = ("internal_chat_message_metadata_passthrough", "metadata")

ITEMS = (*(step.item for step in STEPS), *(tool.item for tool in _THERE))

# --- the way in ---------------------------------------------------------------------------------


class CodexParser(ResponsesParser):
    """One turn."""

    name = "codex"
    END = "turn.completed or turn.failed; task_complete or turn_aborted in a rollout"
    TOOLS: ClassVar[dict[str, Tool]] = tools_by_type(_THERE)
    EVIDENCE = Evidence(
        "its item: item.completed, or the end of the turn; response_item in a rollout",
        "item.completed of what was said at item.started",
        "turn.completed, task_complete",
        "when its item is completed",
    )
    CALL_TEXTS = ()
    CALL_KEYS = ()
    CALL_WORDS = (b'"arguments"', b'"call_id"', b'"command"')
    QUIRKS = {}

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._part = 0
        self._steps: dict[str | None, Call] = {}  # calls by the id of their item
        self._told: dict[int, dict[str, Any]] = {}  # what they were told with
        self._alike: dict[Any, deque[Call]] = {}  # by their types, names and arguments
        self._completed: set[int] = set()  # calls whose items are completed
        self._spoken: dict[tuple[Any, str], str] = {}  # the last texts, by the ids of their items
        self._wrong: Failure | None = None  # what was said to be wrong, last
        self._total: Any = None
        self._tasked = False  # the program says when its turns begin and end; it did not always
        self._turn: str | None = None  # the id of the turn
        self._answered = False  # the last item was a message

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Lines(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        kind = str(payload.get("type", ""))
        if kind in ("response_item", "event_msg", "session_meta", "turn_context"):
            return isinstance(payload.get("payload"), dict)
        return kind.startswith(("thread.", "turn.", "item."))

    def heading(self, data: bytes) -> Heading:
        about = msgspec.json.decode(data, type=_Header).payload
        return Heading(about.model, about.turn_id)

    # --- standard output ------------------------------------------------------------------------

    def _step_started(self, p: StepStarted, out: Out) -> None:
        item, _ = self.sound(p.item)
        step = _step_of(item)
        if step is not None and self._has_id(item):
            # else nothing is told yet, and its end says all again
            whole = step.early and bool(_given(item, step.arguments)) and _is_said(step, item)
            self._call_of_step(step, item, p.item, out, whole=whole)
        self.calls.lossy = ""

    def _has_id(self, item: Any) -> bool:
        """Without an id nobody could tell that what is completed is what has started."""
        has = first_text(item.get("id")) is not None
        if not has:
            self.scribe.note("wire.shape_odd", where="item.id")
        return has

    def _step_updated(self, p: StepUpdated, out: Out) -> None:
        item, _ = self.sound(p.item)
        step = _step_of(item)
        if step is not None and self._has_id(item):
            call = self._call_of_step(step, item, p.item, out, whole=False)
            self.calls.progress(out, call, "updated", _given(item, (*step.arguments, *step.output)))
        self.calls.lossy = ""

    def _step_completed(self, p: StepCompleted, out: Out) -> None:
        item, _ = self.sound(p.item)
        step = _step_of(item)
        if step is None:
            self._said(item, out)
        else:
            call = self._call_of_step(step, item, p.item, out, whole=True)
            self.calls.close(call, out)
            output = _given(item, step.output)
            failed = item.get("status") in _FAILED or item.get("error") is not None
            if step.output and call.ordinal not in self._completed:
                self.calls.result(
                    out, output, id=call.id, family=step.family, call=call, is_error=failed
                )
            self._completed.add(call.ordinal)
        self.calls.lossy = ""

    def _call_of_step(self, step: Step, item: Any, raw: Raw, out: Out, *, whole: bool) -> Call:
        id = first_text(item.get("id"))
        name = first_text(item.get(step.name_field) if step.name_field else step.type)
        call = self._steps.get(id) if id else self._running(step, name, raw)
        if call is None:
            kind = Kind(step.family, "provider", id_source="conflated")
            call = self.calls.open(out, kind, id=id, field="item.id", name=name, seen=item)
            server = item.get("server")
            call.echo = {"server": server} if server else None
            self._steps[id] = call
        else:
            self.calls.hear(call, out, name=name)
        if whole and not call.fragments:
            if not _is_said(step, item):
                self.calls.taint(call, _UNSAID)
            self._told[call.ordinal] = _given(item, step.arguments)
            text = _arguments(step, raw)
            self._alike.setdefault((step.type, name, text), deque()).append(call)
            self.calls.append(call, text, out)
            if self.calls.lossy:
                self.calls.taint(call, self.calls.lossy)
        elif whole:
            self._compare(call, step, item, raw, out)
        if call.kind.family != step.family:  # one without a name gets any
            self.calls.fail(call, "conflict", "it was started under another name", out)
        return call

    def _running(self, step: Step, name: str | None, raw: Raw) -> Call | None:
        """The first call that says just this, and is not completed yet."""
        alike = self._alike.get((step.type, name, _arguments(step, raw)), deque())
        while alike and alike[0].ordinal in self._completed:
            alike.popleft()
        return alike[0] if alike else None

    def _compare(self, call: Call, step: Step, item: Any, raw: Raw, out: Out) -> None:
        """What is completed is what was started; what was empty may be filled."""
        told, said = self._told[call.ordinal], _given(item, step.arguments)
        if any(value and field in said and said[field] != value for field, value in told.items()):
            self.scribe.note("args.mismatch", call_id=call.id)
            why = "it was completed with another input than it was started with"
            self.calls.fail(call, "conflict", why, out)
        elif said == told and _is_said(step, item):
            self.calls.settle(call, _arguments(step, raw), out)

    def end_of_calls(self, out: Out) -> None:
        self._close_running(out)

    def _close_running(self, out: Out) -> None:
        """The turn is over: what was started and never completed ran as it was started."""
        for call in self.calls.unfinished():
            if call.ordinal in self._told:
                self.calls.close(call, out)

    def _said(self, item: Any, out: Out) -> None:
        kind = item.get("type") if isinstance(item, dict) else None
        text = first_text(item.get("text")) if isinstance(item, dict) else None
        if kind in _TEXTS:
            if self._is_again(kind, item, text or ""):
                return
            if text:
                out.append(_TEXTS[kind](text, self._part))
            self._part += 1
        elif kind == "error":  # the turn goes on
            out.append(Unrecognized("item/error", item))
        else:
            self.unknown({"type": f"item/{kind}", "item": item}, "item", out)

    def _is_again(self, kind: Any, item: dict[str, Any], text: str) -> bool:
        """Was a text of this id told before? The last ones are remembered."""
        id = first_text(item.get("id"))
        if id is None or len(id) > self.calls.limits.id:
            return False
        held = self._spoken.get((kind, id))
        if held is None:
            self._spoken[kind, id] = text
            if len(self._spoken) > _REMEMBERED:
                del self._spoken[next(iter(self._spoken))]
            return False
        self.scribe.note("stream.repeated" if held == text else "wire.text_mismatch", id=id)
        return True

    def _turn_started(self, p: TurnStarted, out: Out) -> None:
        """Its end is not that of what came before it."""
        if self.calls.unfinished():
            self.calls.taint_open(_OF_NEXT)

    def _leave_running(self) -> None:
        """What is running may be completed in the turn that begins."""
        for call in self.calls.unfinished():
            if call.ordinal in self._told:
                self.calls.taint(call, _OF_NEXT)

    def _turn_completed(self, p: TurnCompleted, out: Out) -> None:
        self._usage = p.usage or {}
        self._complete_turn()

    def _turn_failed(self, p: TurnFailed, out: Out) -> None:
        self._close_running(out)
        raise StreamFailed(_failure(p.error))

    def _error_said(self, p: Error, out: Out) -> None:
        """It may try again: what follows tells."""
        self._wrong = _failure(p.message)
        out.append(Unrecognized("error", {"type": "error", "message": p.message}))

    def _complete_turn(self) -> None:
        self.reason, self.raw_reason = "stop", "completed"
        raise StreamOver

    def end_of_input(self, out: Out) -> None:
        self._close_running(out)
        if self._wrong is not None:
            raise StreamFailed(self._wrong)
        if not self._tasked and self._answered:
            self.reason = "stop"

    # --- rollouts -------------------------------------------------------------------------------

    def _response_item(self, p: ResponseItem, out: Out) -> None:
        item, raw = self.sound(p.payload)
        if isinstance(item, dict) and item.get("role") in (None, "assistant"):
            self._wrong = None  # the model was heard again
            placed: Any = _Placed(_of_the_wire(raw), self._part)
            self._item_done(placed, out)
            self._answered = item.get("type") == "message"
            self._part += 1
        self.calls.lossy = ""

    def _call_item(
        self, call: Call, tool: Tool, item: dict[str, Any], raw: bytes, index: int | None, out: Out
    ) -> None:
        """Nothing restates an item here: what is missing of it, or of another type, is lost."""
        form, *fields = tool.said
        kinds = _FORMS.get(form, ()) if tool.type in _OF_CLIENTS else ()
        said = any(isinstance(item.get(f), kind) for f, kind in zip(fields, kinds, strict=False))
        numbers = any(isinstance(item.get(field), int | float) for field in _INPUTS)
        if numbers or name_of(tool, item) is None or (kinds and not said):
            self.calls.lossy = _UNSAID
        super()._call_item(call, tool, item, raw, index, out)

    def _event_msg(self, p: EventMsg, out: Out) -> None:
        handler = EVENTS.get(str(p.payload.get("type")))
        if handler is not None:
            handler(self, p.payload, out)

    def _turn_context(self, p: TurnContext, out: Out) -> None:
        """It comes before the items of a turn: behind some, it is of the next one. A task says by itself
        when it is over; there only one that names another turn is of the next."""
        self._leave_running()
        said = p.payload.get("turn_id") if isinstance(p.payload, dict) else None
        turn = first_text(said)
        if self._part and not self._tasked:
            self._complete_turn()
        if self._part and turn is not None and self._turn not in (None, turn):
            raise StreamFailed(_LEFT)
        self._turn = self._turn or turn

    def _task_started(self, said: dict[str, Any], out: Out) -> None:
        if self._part:  # the one that was open was left
            raise StreamFailed(_LEFT)
        self._leave_running()
        self._tasked, self._turn = True, first_text(said.get("turn_id"))

    def _task_complete(self, said: dict[str, Any], out: Out) -> None:
        if said.get("error") is not None:
            self._wrong = _failure(said["error"])
        if self._wrong is not None:
            raise StreamFailed(self._wrong)
        self._complete_turn()

    def _turn_aborted(self, said: dict[str, Any], out: Out) -> None:
        why = first_text(said.get("reason")) or "aborted"
        raise StreamFailed(Failure("cancelled", f"the turn was ended by the user: {why}", why))

    def _error_event(self, said: dict[str, Any], out: Out) -> None:
        self._wrong = _failure(said.get("message"))

    def _token_count(self, said: dict[str, Any], out: Out) -> None:
        """How much each answer cost; said again whenever a limit changes."""
        info = said.get("info")
        if not isinstance(info, dict) or info.get("total_token_usage") == self._total:
            return
        self._total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if isinstance(last, dict) and not self._usage.get("turn"):
            for name, n in last.items():
                if isinstance(n, int):
                    self._usage[name] = self._usage.get(name, 0) + n

    def _token_usage(self, p: TokenUsage, out: Out) -> None:
        usage = p.payload.get("turn_token_usage")
        if isinstance(usage, dict):
            self._usage = {**usage, "turn": True}

    def _silent(self, p: Any, out: Out) -> None:
        """Known, and of no use to us."""

    def usage(self) -> Usage | None:
        raw = {name: n for name, n in self._usage.items() if name != "turn"}
        return Usage(
            count(raw, "input_tokens"), count(raw, "output_tokens"),
            count(raw, "cached_input_tokens"), count(raw, "cache_write_input_tokens"),
            count(raw, "reasoning_output_tokens"), raw,
        ) if raw else None  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {
        StepStarted: _step_started,
        StepUpdated: _step_updated,
        StepCompleted: _step_completed,
        TurnStarted: _turn_started,
        TurnCompleted: _turn_completed,
        TurnFailed: _turn_failed,
        Error: _error_said,
        ResponseItem: _response_item,
        EventMsg: _event_msg,
        TurnContext: _turn_context,
        TokenUsage: _token_usage,
    }


_TEXTS: dict[Any, type[TextDelta] | type[ReasoningDelta]] = {
    "agent_message": TextDelta,
    "reasoning": ReasoningDelta,
}
# What is read of the events in a rollout; all others say what items say.
EVENTS: dict[str, Handler] = {
    "task_started": CodexParser._task_started,
    "turn_started": CodexParser._task_started,
    "task_complete": CodexParser._task_complete,
    "turn_complete": CodexParser._task_complete,
    "turn_aborted": CodexParser._turn_aborted,
    "error": CodexParser._error_event,
    "token_count": CodexParser._token_count,
}


def _step_of(item: Any) -> Step | None:
    return _STEPS.get(str(item.get("type"))) if isinstance(item, dict) else None


def _is_said(step: Step, item: dict[str, Any]) -> bool:
    """Is its name there, and its input, each field of its type?"""
    if step.name_field and first_text(item.get(step.name_field)) is None:
        return False
    fits = all(isinstance(item.get(f), (_TYPES[f], type(None))) for f in step.arguments)
    none = step.nullable and step.arguments[0] in item
    return fits and (none or any(item.get(f) is not None for f in step.arguments))


def _given(item: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {f: item[f] for f in fields if item.get(f) is not None}


_as_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def _fields_of(item: bytes) -> dict[str, Raw]:
    """The exact fields of an item, whatever its characters are."""
    return decoded(item, _as_fields)


def _arguments(step: Step, raw: Raw) -> str:
    """The arguments as JSON text: an object of the fields, or the one object."""
    fields = _fields_of(bytes(raw))
    there = {f: fields[f] for f in step.arguments if bytes(fields.get(f, Raw(b"null"))) != b"null"}
    if step.arguments == ("arguments",) and there:
        return bytes(there["arguments"]).decode("utf-8", "replace")
    return msgspec.json.encode(there).decode("utf-8", "replace")


def _of_the_wire(item: bytes) -> Raw:
    """An item without what the program added to it; the rest of its text as it came."""
    fields = _fields_of(item)
    if fields.keys().isdisjoint(_ADDED):
        return Raw(item)
    return Raw(msgspec.json.encode({k: v for k, v in fields.items() if k not in _ADDED}))


def _failure(error: Any) -> Failure:
    """What went wrong; the provider's own words are in there as JSON, if it was the provider."""
    said = error if isinstance(error, dict) else {"message": error}
    message = first_text(said.get("message"))
    try:
        inner = plain((message or "").encode())["error"]
        code, theirs = first_text(inner.get("code"), inner.get("type")), inner.get("message")
    except (msgspec.MsgspecError, UnicodeEncodeError, LookupError, TypeError, AttributeError):
        code, theirs = None, None
    message = first_text(theirs, message) or "the program reported an error"
    return Failure("provider_error", message, code, code in RETRYABLE)


CodexParser.KINDS = {
    **CodexParser.KINDS,
    **silent_kinds(KNOWN, _Line, CodexParser._silent),
}
CodexParser.decode = staticmethod(decoder_of(CodexParser.KINDS))

PARSER = CodexParser
