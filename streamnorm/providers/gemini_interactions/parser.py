"""Gemini Interactions. Every word of that wire that we know is in this file.

    interaction.created -> step* -> interaction.completed -> [DONE]
    interaction.status_update, error: anywhere
    step = step.start(index) -> step.delta(index)* -> step.stop(index)

A call is a step and is found by its ``index`` alone; its id is ``step.id``, and a result step names
it in ``call_id``. Arguments of functions come as JSON text in ``arguments_delta``; those of server
tools as an object in the step, in its delta, or in both. The end mark is a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Raw

from ...core import even
from ...core.calls import BEGUN_LATE, Call, Evidence, Kind, State
from ...core.cursor import At
from ...core.media import Shown
from ...core.parser import (
    Decode,
    Failure,
    Handler,
    Heading,
    Parser,
    Payload,
    StreamFailed,
    StreamOver,
    Word,
    count,
    field_of,
    first_text,
    items_of,
)
from ...core.row import Item
from ...events import (
    BrokenReason,
    Citation,
    Echo,
    Event,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from ...framing import Framer
from ...framing.lines import Whole
from ...framing.sse import SSE

__all__ = ["ITEMS", "PARSER", "InteractionsParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------

_ABSENT = Raw()


class Step(Payload):
    """What a step says when it starts, and what a delta adds: their fields are the same."""

    type: Literal[
        "model_output", "thought", "user_input",
        "text", "arguments_delta", "text_annotation_delta", "thought_summary", "thought_signature",
        "image", "audio", "video", "document",
        "function_call", "code_execution_call", "file_search_call", "google_maps_call",
        "google_search_call", "mcp_server_tool_call", "processing_call", "retrieval_call",
        "url_context_call",
        "function_result", "code_execution_result", "file_search_result", "google_maps_result",
        "google_search_result", "mcp_server_tool_result", "processing_result", "retrieval_result",
        "url_context_result",
    ]  # fmt: skip
    text: str | None = None
    arguments: Raw = _ABSENT
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    server_name: str | None = None
    search_type: str | None = None
    retrieval_type: str | None = None
    signature: str | None = None
    result: Any = None
    is_error: bool | None = None
    content: Any = None
    summary: Any = None
    annotations: list[Any] | None = None
    error: Any = None
    data: Any = None
    mime_type: Any = None
    uri: Any = None
    resolution: Any = None
    rate: Any = None
    sample_rate: Any = None
    channels: Any = None


class StepStart(Payload, tag="step.start", tag_field="event_type"):
    step: Step
    index: int = -1
    event_id: Any = None


class Metadata(Payload):
    total_usage: dict[str, Any] | None = None


class StepDelta(Payload, tag="step.delta", tag_field="event_type"):
    delta: Step
    index: int = -1
    event_id: Any = None
    metadata: Metadata | None = None


class StepStop(Payload, tag="step.stop", tag_field="event_type"):
    index: int = -1
    event_id: Any = None
    usage: dict[str, Any] | None = None
    step_usage: Any = None
    status: Any = None


class Interaction(Payload):
    status: str | None = None
    usage: dict[str, Any] | None = None
    steps: list[Step] | None = None
    continuation_token: Any = None
    errors: list[Any] | None = None
    # Known, and of no use to us. (``id`` and ``model`` are read once, by ``heading``.)
    id: Any = None
    model: Any = None
    agent: Any = None
    object: Any = None
    created: Any = None
    updated: Any = None
    role: Any = None
    service_tier: Any = None
    previous_interaction_id: Any = None
    environment_id: Any = None
    input: Any = None
    tools: Any = None
    system_instruction: Any = None
    generation_config: Any = None
    output_text: Any = None


class Created(Payload, tag="interaction.created", tag_field="event_type"):
    interaction: Interaction | None = None
    event_id: Any = None


class Completed(Payload, tag="interaction.completed", tag_field="event_type"):
    interaction: Interaction | None = None
    event_id: Any = None


class StatusUpdate(Payload, tag="interaction.status_update", tag_field="event_type"):
    status: str | None = None
    usage: dict[str, Any] | None = None
    continuation_token: Any = None
    interaction_id: Any = None
    event_id: Any = None


class Error(Payload, tag="error", tag_field="event_type"):
    error: Any = None
    event_id: Any = None


Payloads: TypeAlias = StepDelta | StepStart | StepStop | Created | Completed | StatusUpdate | Error


class _Opening(msgspec.Struct, frozen=True):
    id: Any = None
    model: Any = None
    agent: Any = None


class _Header(msgspec.Struct):
    interaction: _Opening = _Opening()


# --- the types of tool steps --------------------------------------------------------------------

_TEXT = "arguments_delta, JSON text; or an object in step.start"
_OBJECT = "arguments, an object in step.start, the delta, or both"
_TOOLS = (
    # step, family, where it runs, its arguments
    ("function", "function", "client", _TEXT),
    ("code_execution", "code-execution", "provider", _OBJECT),
    ("file_search", "file-search", "provider", "none"),
    ("google_maps", "google-maps", "provider", _OBJECT),
    ("google_search", "google-search", "provider", _OBJECT),
    ("mcp_server_tool", "mcp", "provider", _OBJECT),
    ("processing", "media-processing", "provider", "none"),
    ("retrieval", "retrieval", "provider", _OBJECT),
    ("url_context", "url-context", "provider", _OBJECT),
)
ITEMS = (
    *(Item(f"{tool}_call", family, "call", runs_on, "natural", "step.id", arguments)
      for tool, family, runs_on, arguments in _TOOLS),
    *(Item(f"{tool}_result", family, "output", runs_on, "natural", "step.call_id", "result", "call_id")
      for tool, family, runs_on, _ in _TOOLS),
)  # fmt: skip
CALLS = {i.type: Kind(i.family, i.runs_on) for i in ITEMS if i.role == "call"}  # type: ignore[arg-type]
RESULTS = {i.type: i.family for i in ITEMS if i.role == "output"}
OF_CALLS = {*CALLS, "arguments_delta"}  # deltas that can be of a call
NAMED = {"function_call", "mcp_server_tool_call"}  # the others take the name of their tool
MEDIA = {"image", "audio", "video", "document"}
# What a step that stops may say against itself, in the words of interactions.
_CUT: tuple[BrokenReason, str] = ("truncated", "its step says that it is incomplete")
DENIALS: dict[str, tuple[BrokenReason, str]] = {
    "failed": ("provider_error", "its step says that it failed"),
    **dict.fromkeys(("incomplete", "cancelled", "budget_exceeded"), _CUT),
}
# Beside these, what a call step says must go back with it.
_OF_THE_CALL = {"type", "id", "name", "arguments"}
RETRYABLE = {"unavailable", "resource_exhausted", "internal", "deadline_exceeded",
             "429", "500", "503", "504"}  # fmt: skip


# Where a step stands: its index. One that says none has a place as well, -1.
Placed: TypeAlias = tuple[int, Step]


class _Result:
    """A result step: told once, when it stops."""

    __slots__ = ("_outputs", "heard", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self._outputs = [step.result]  # texts or lists that add up, or one value
        self.heard = False  # a delta replaces what the start said; deltas add up

    @property
    def output(self) -> Any:
        """All that was heard, joined once."""
        first, *more = self._outputs
        if more and isinstance(first, str):
            return "".join(self._outputs)
        return list(chain.from_iterable(self._outputs)) if more else first

    def add(self, delta: Step) -> None:
        more = delta.result
        if more is not None:
            first = self._outputs[0]
            both = self.heard and type(more) is type(first) and isinstance(more, str | list)
            self._outputs = self._outputs if both else []
            self._outputs.append(more)
            self.heard = True
        said = {k: v for k, v in _said(delta).items() if k not in ("type", "result")}
        self.step = msgspec.structs.replace(self.step, **said)


# --- the way in ---------------------------------------------------------------------------------


class InteractionsParser(Parser):
    """One stream of an interaction."""

    name = "gemini_interactions"
    END = "interaction.completed"
    MARKED = False  # [DONE] may follow, or not
    TYPE_FIELD = "event_type"
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Payloads).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "completed": "stop",
        "requires_action": "tool_calls",
        "requires_continuation": "pause",
        "incomplete": "length",
        "budget_exceeded": "length",
    }
    EVIDENCE = Evidence(
        "step.stop of its index",
        "the final interaction",
        "status completed or requires_action",
        "at step.stop",
    )
    CALL_TEXTS = ("delta.arguments", "step.arguments")
    CALL_KEYS = ("index",)
    CALL_WORDS = (b'"arguments"', b'_call"')
    ERRORS_AT = ("error", "interaction.error")
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "index": ("wire.shape_odd", even.integer)
    }
    GOING_ON: ClassVar[set[str | None]] = {None, "", "in_progress", "queued"}

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._reached = 0  # how many steps have begun, by their places
        self._calls: dict[int, Call] = {}
        self._results: dict[int, _Result] = {}
        self._usage: dict[str, Any] = {}
        self._failure: Failure | None = None
        self._event_id: Any = None  # of the last event that has one
        self._before = 0  # how many steps began over a connection before this one, …
        self._ended_here: set[int] = set()  # … and which of them ended over this one
        self._heard = False  # a step has begun
        self._over = False  # the interaction was said to be completed
        self._looked = 0  # calls that a final interaction was held against, …
        self._ids: set[str] = set()  # … and their ids

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Whole(limit) if start == "json" else SSE(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        kind = payload.get("event_type")
        return isinstance(kind, str) and kind.startswith(("interaction.", "step.", "error"))

    def heading(self, data: bytes) -> Heading:
        opening = msgspec.json.decode(data, type=_Header).interaction
        return Heading(first_text(opening.model, opening.agent), first_text(opening.id))

    # --- where it can be resumed ------------------------------------------------------------------

    def place_of(self, data: bytes) -> str | None:
        return first_text(field_of(data, "event_id"))

    def place(self) -> str | None:
        return first_text(self._event_id)

    def begun(self) -> int:
        return max(self._before, self._reached)

    def resumed(self, at: At, begun: int) -> None:
        self._event_id, self._before = at, begun

    def _began_before(self, index: int) -> bool:
        """Did this step begin over another connection? One that names no place is none."""
        return 0 <= index < self._before

    def begins(self, data: bytes) -> bool:
        return bool(field_of(data, "event_type") == "interaction.created")

    def kind_of(self, payload: Any) -> str:
        said = payload if isinstance(payload, dict) else {}
        inner = said.get("delta", said.get("step"))
        kind = str(said.get("event_type", "?"))
        return f"{kind}/{inner['type']}" if isinstance(inner, dict) and "type" in inner else kind

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        index = payload.get("index")
        if type(index) is not int:
            return None
        return [self._calls[index]] if index in self._calls else []

    # --- steps ------------------------------------------------------------------------------------

    def _step_delta(self, p: StepDelta, out: Out) -> None:
        self._event_id = p.event_id or self._event_id
        if p.metadata is not None:
            self._count(p.metadata.total_usage)
        DELTAS[p.delta.type](self, (p.index, p.delta), out)
        if p.index in self._calls and p.delta.type not in OF_CALLS:
            call = self._calls[p.index]
            if call.state < State.CLOSED or bytes(p.delta.arguments):
                self.calls.taint(call, "something else came in place of its arguments")

    def _step_start(self, p: StepStart, out: Out) -> None:
        self._event_id = p.event_id or self._event_id
        self._reached, self._heard = max(self._reached, p.index + 1), True
        if p.index < 0:
            self.calls.taint_open(
                "a step began that does not say its place: what comes may be of it"
            )
        if p.step.type not in CALLS:
            self.calls.restarts(self._calls.pop(p.index, None), None, None, out)
        STARTS[p.step.type](self, (p.index, p.step), out)

    def _step_stop(self, p: StepStop, out: Out) -> None:
        self._event_id = p.event_id or self._event_id
        self._count(p.usage)
        call = self._calls.get(p.index)
        if call is not None:
            if self._over and call.state < State.CLOSED:
                self.calls.taint(call, "it went on after the end of its turn")
            self._fill_from_start(call, out)
            if (denial := DENIALS.get(str(p.status))) is not None:
                self.calls.deny(call, *denial)
            self.calls.close(call, out)
        else:
            self._ended_here.add(p.index)  # asked for if it began before this connection
        self._tell_result(p.index, out)

    # --- text and thoughts ------------------------------------------------------------------------

    def _text(self, p: Placed, out: Out) -> None:
        if p[1].text:
            out.append(TextDelta(p[1].text, p[0]))
        self._cited(p, out)

    def _cited(self, p: Placed, out: Out) -> None:
        for annotation in p[1].annotations or ():
            out.append(Citation(p[0], annotation))

    def _output_start(self, p: Placed, out: Out) -> None:
        index, step = p
        for content in _contents(step.content):
            if text := _text_of(content):
                out.append(TextDelta(text, index))
                for annotation in items_of(content.get("annotations")):
                    out.append(Citation(index, annotation))
            elif str(content.get("type")) in MEDIA:
                self._shown(index, content, "media/", {}, out)
        if step.error is not None:
            self._failure = _failure(step.error)

    def _thought_start(self, p: Placed, out: Out) -> None:
        for content in _contents(p[1].summary):
            self._summarized(p[0], content, out)
        self._signature(p, out)

    def _thought(self, p: Placed, out: Out) -> None:
        for content in _contents(p[1].content):
            self._summarized(p[0], content, out)

    def _summarized(self, index: int, content: dict[str, Any], out: Out) -> None:
        if text := _text_of(content):
            out.append(ReasoningDelta(text, index))
        elif str(content.get("type")) in MEDIA:
            self._shown(index, content, "media/thought_summary.", {"thought": True}, out)

    def _signature(self, p: Placed, out: Out) -> None:
        if p[1].signature:
            echo: Echo = {"type": "thought", "signature": p[1].signature}
            out.append(ReasoningDelta("", p[0], 0, echo))

    def _media(self, p: Placed, out: Out) -> None:
        self._shown(p[0], _said(p[1]), "media/", {}, out)

    def _shown(self, index: int, content: dict[str, Any], kind: str, more: Echo, out: Out) -> None:
        """A picture, a video, a document, or a piece of a sound. A thought's own is marked."""
        echo = {key: value for key, value in content.items() if key != "data"} | more
        shown = Shown(
            f"{kind}{content['type']}", content, content.get("data"), content.get("uri"),
            content.get("mime_type"), echo=echo,
        )  # fmt: skip
        self.show(out, shown, place=index)

    def _nothing(self, p: Placed, out: Out) -> None:
        """What the caller said himself."""

    # --- calls ------------------------------------------------------------------------------------

    def _call_start(self, p: Placed, out: Out) -> None:
        index, step = p
        held = self._calls.get(index)
        if held is not None and self.calls.restarts(held, step.id, _name(step), out):
            return self._start_again(held, step)
        if held is not None:
            self.scribe.note("call.index_reused", index=index)
        call = self.calls.open(
            out, CALLS[step.type], id=step.id, field="step.id", name=_name(step), seen=_said(step),
            place=index, instead=held,
        )  # fmt: skip
        self._calls[index] = call
        if index < 0:
            self.calls.taint(call, "it does not say its place")
        if self._over:
            self.calls.taint(call, BEGUN_LATE)
        self._keep_echo(call, step)
        call.given = self._brought(call, step)

    def _start_again(self, call: Call, step: Step) -> None:
        """The start of a call was said again: what it brings must be the same."""
        text = self._brought(call, step)
        if call.retold is not None:
            call.given = text
        elif text != call.given:
            self.calls.taint(call, "its start was said twice, and differently")

    def _brought(self, call: Call, step: Step) -> str:
        """The arguments in a start; an empty object stands there before any fragment."""
        text = self.exact(step.arguments, call)
        return "" if _says_nothing(text) else text

    def _arguments(self, p: Placed, out: Out) -> None:
        """A fragment of a function's arguments, or an object with all of them."""
        index, delta = p
        call = self._calls.get(index)
        if call is None:
            if self._began_before(index):  # of a call that broke when the connection was lost
                self.scribe.note("call.unannounced", index=index)
            else:
                self.calls.astray(index, index=index)
            return
        self._keep_echo(call, delta)
        other = delta.type in CALLS and CALLS[delta.type] is not call.kind
        if other or delta.id not in (None, "", call.wire_id):
            self.calls.taint(call, "what came in its place is of another call")
        text = self.exact(delta.arguments, call)
        if text.startswith('"'):
            if fragment := self.sound(text.encode())[0]:
                self.calls.append(call, fragment, out)
        elif text.startswith("{"):
            if delta.type not in CALLS:  # which bring an object each
                self.scribe.note("args.object", call_id=call.id)
            self._object(call, text, out)
        else:
            self.calls.taint(call, "a fragment of its arguments is neither text nor an object")

    def _object(self, call: Call, text: str, out: Out) -> None:
        """All arguments at once: there can be nothing beside them. An empty one says nothing."""
        if _says_nothing(text):
            return self.calls.hollow(call)
        if self.calls.has_text(call):
            self.calls.taint(call, "an object came between the fragments of its arguments")
        else:
            self.calls.append(call, text, out)

    def _fill_from_start(self, call: Call, out: Out) -> None:
        """What the step's start brought counts unless the deltas said it: never twice."""
        given, call.given = call.given, ""
        if not given:
            return
        if not self.calls.has_text(call):
            self.calls.append(call, given, out)
        elif call.raw != given:
            self.scribe.note("args.replaced", call_id=call.id)
            if given[0] != "{":  # text may have been the first fragment
                self.calls.taint(call, "its start brought arguments that are no object")

    def _keep_echo(self, call: Call, step: Step) -> None:
        said = {k: v for k, v in _said(step).items() if k not in _OF_THE_CALL and v != ""}
        if said:
            call.echo = {**(call.echo or {}), **said}

    # --- results ----------------------------------------------------------------------------------

    def _result_start(self, p: Placed, out: Out) -> None:
        self._tell_result(p[0], out)
        self._results[p[0]] = _Result(p[1])

    def _result(self, p: Placed, out: Out) -> None:
        held = self._results.get(p[0])
        if held is None:
            held = self._results[p[0]] = _Result(msgspec.structs.replace(p[1], result=None))
        held.add(p[1])

    def _tell_result(self, index: int, out: Out) -> None:
        held = self._results.pop(index, None)
        if held is None:
            return
        step, output = held.step, held.output
        echo = {k: v for k, v in _said(step).items() if k != "result"}
        if output is not None:
            echo["result"] = output
        self.calls.result(
            out, output, id=step.call_id, family=RESULTS[step.type],
            is_error=bool(step.is_error), echo=echo,
        )  # fmt: skip

    # --- the end ----------------------------------------------------------------------------------

    def _created(self, p: Created, out: Out) -> None:
        self._event_id = p.event_id or self._event_id
        self.begin_answer(out)
        if p.interaction is not None:
            self._hear_status(p.interaction.status, p.interaction.continuation_token)

    def _completed(self, p: Completed, out: Out) -> None:
        self._event_id = p.event_id or self._event_id
        said = p.interaction or Interaction(status="completed")
        self._count(said.usage)
        heard = self._heard
        listed = self._reconcile(said.steps or [], out)
        for index, step in enumerate(said.steps or ()):
            if self._is_open_call(index, step) if self._began_before(index) else not heard:
                self._step_at(index, step, out)
            elif self._is_unheard_call(index, step):
                self._unheard_call(step, out, listed=listed)
        if said.errors:
            self._failure = _failure(said.errors[0])
        self._hear_status(said.status, said.continuation_token)
        self.reason = self.reason or "other"  # it does not say how
        self._over = True

    def _step_at(self, index: int, step: Step, out: Out) -> None:
        """A step that is said at once. A call that the list has once more is that one."""
        known = self.calls.by_id(0, step.id or "") if step.type in CALLS else None
        if known is not None:
            return self._compare(known, step, out)
        self._step_start(StepStart(step, index), out)
        self._step_stop(StepStop(index), out)

    def _is_open_call(self, index: int, step: Step) -> bool:
        """Was this a call that began before this connection, and ended over it?"""
        return index in self._ended_here and step.type in CALLS

    def _is_unheard_call(self, index: int, step: Step) -> bool:
        """Is this a call of which nothing came over this connection, which heard all of its own?"""
        known = step.type not in CALLS or not step.id or self.calls.by_id(0, step.id) is not None
        return not (known or self._began_before(index))

    def _unheard_call(self, step: Step, out: Out, *, listed: bool) -> None:
        """A call of which only the final interaction says anything."""
        place = self.begun()  # that no other has
        self.scribe.note("call.unannounced", index=place)
        self._step_start(StepStart(step, place), out)
        if not listed:
            why = "it may be one that was heard under another id"
            self.calls.fail(self._calls[place], "conflict", why, out)
        self._step_stop(StepStop(place), out)

    def _reconcile(self, steps: list[Step], out: Out) -> bool:
        """The final interaction says again what the steps said. Does it list all calls that were heard?"""
        said = {step.id: step for step in steps if step.type in CALLS and step.id}
        listed = said.keys() >= self._ids
        for call in self._to_reconcile(said) if steps else ():
            step = said.get(call.wire_id or "")
            if step is None:
                listed = False
                self.scribe.note("call.unlisted", call_id=call.id)
                self.calls.fail(call, "conflict", "the final interaction has no such call", out)
            else:
                self._compare(call, step, out)
        return listed

    def _to_reconcile(self, said: Mapping[str, Step]) -> list[Call]:
        """The calls that this final interaction may change. It may be said again and again: those that are
        over, and that one before it was held against, only by what it says of them."""
        looked, self._looked = self._looked, len(self.calls.all)
        named = (self.calls.by_id(0, id) for id in said)
        known = {
            call.ordinal: call for call in (*named, *self.calls.unfinished()) if call is not None
        }
        new = self.calls.all[looked:]
        self._ids.update(call.wire_id or "" for call in new)
        return [*(known[ordinal] for ordinal in sorted(known) if ordinal < looked), *new]

    def _compare(self, call: Call, step: Step, out: Out) -> None:
        """A call as the final interaction says it. An empty object is no text for one that has none."""
        self.calls.hear(call, out, name=_name(step))
        if CALLS[step.type] is not call.kind:
            why = "the final interaction says that it is of another kind"
            self.calls.fail(call, "conflict", why, out)
        self._fill_from_start(call, out)
        text = self.exact_copy(step.arguments)
        if text is None:
            self.calls.taint(call, "the final interaction says it in bytes that are not UTF-8")
        elif text.strip(_OF_NOTHING) or (call.state is State.OVER and text and call.size):
            self.calls.restate(call, text, out)
        elif text and not _says_nothing(call.raw):
            self.calls.taint(call, "the final interaction says none of its arguments")
        elif "{" in text:  # the same, however it is written
            self.calls.restate(call, call.raw, out)

    def _status_update(self, p: StatusUpdate, out: Out) -> None:
        self._event_id = p.event_id or self._event_id
        self._count(p.usage)
        self._hear_status(p.status, p.continuation_token)

    def _hear_status(self, status: str | None, token: Any) -> None:
        """Remembered; more may follow the word (usage, an error that says why)."""
        if token is not None:
            self.echo["continuation_token"] = token
        if status in self.GOING_ON:
            return
        if status == "cancelled":
            self._failure = Failure("cancelled", "the interaction was cancelled", status)
        elif status == "failed":
            self._failure = self._failure or Failure(
                "provider_error", "the interaction failed", status
            )
        else:
            self.end_with(status)

    def _done(self, out: Out) -> None:
        """[DONE] says that no more comes, not that the answer is whole."""
        self.end_of_input(out)
        if self.reason is None:
            raise StreamFailed(
                Failure("truncated", "the stream ended before its end mark", None, True)
            )
        raise StreamOver

    def end_of_input(self, out: Out) -> None:
        for index in list(self._results):
            self._tell_result(index, out)
        if self._failure is not None:
            raise StreamFailed(self._failure)

    def end_of_calls(self, out: Out) -> None:
        for call in self.calls.unfinished():
            self._fill_from_start(call, out)

    def _error(self, p: Error, out: Out) -> None:
        raise StreamFailed(_failure(p.error))

    def _count(self, usage: dict[str, Any] | None) -> None:
        """Cumulative: the last one wins."""
        if usage:
            self._usage = usage

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        thought = count(raw, "total_thought_tokens")
        return Usage(  # this wire counts neither thoughts as output nor tool use as input
            _sum(count(raw, "total_input_tokens"), count(raw, "total_tool_use_tokens")),
            _sum(count(raw, "total_output_tokens"), thought),
            count(raw, "total_cached_tokens"), None, thought, raw,
        )  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {
        StepDelta: _step_delta,
        StepStart: _step_start,
        StepStop: _step_stop,
        Created: _created,
        Completed: _completed,
        StatusUpdate: _status_update,
        Error: _error,
    }
    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done}


_P = InteractionsParser
# What a step of that type says when it starts …
STARTS: dict[str, Handler] = {
    **dict.fromkeys(CALLS, _P._call_start),
    **dict.fromkeys(RESULTS, _P._result_start),
    **dict.fromkeys(MEDIA, _P._media),
    "model_output": _P._output_start,
    "thought": _P._thought_start,
    "user_input": _P._nothing,
    "text": _P._text,
    "text_annotation_delta": _P._cited,
    "arguments_delta": _P._arguments,
    "thought_summary": _P._thought,
    "thought_signature": _P._signature,
}
# … and what a delta of that type adds.
DELTAS: dict[str, Handler] = {
    **STARTS,
    **dict.fromkeys(CALLS, _P._arguments),
    **dict.fromkeys(RESULTS, _P._result),
}


# --- small helpers ------------------------------------------------------------------------------


def _said(step: Step) -> dict[str, Any]:
    """The fields that a step has, ``arguments`` aside."""
    fields = msgspec.structs.asdict(step).items()
    return {k: v for k, v in fields if v is not None and k != "arguments"}


_OF_NOTHING = '"{} \r\n\t'  # all that there is of an empty object, or of the text of one


def _says_nothing(text: str) -> bool:
    """Is it no text, an empty one, or an empty object?"""
    return text == '""' or not text.strip("{} \r\n\t")


def _name(step: Step) -> str | None:
    if step.type in NAMED:
        return first_text(step.name)
    return first_text(step.retrieval_type) or step.type.removesuffix("_call")


def _contents(said: Any) -> list[dict[str, Any]]:
    return [c for c in (said if isinstance(said, list) else [said]) if isinstance(c, dict)]


def _text_of(content: dict[str, Any]) -> str | None:
    return first_text(content.get("text")) if content.get("type", "text") == "text" else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def _failure(error: Any) -> Failure:
    said = error if isinstance(error, dict) else {"message": str(error or "")}
    code = next((str(c) for c in (said.get("code"), said.get("status")) if c), None)
    message = first_text(said.get("message"), code) or "the provider reported an error"
    return Failure("provider_error", message, code, (code or "").lower() in RETRYABLE)


PARSER = InteractionsParser
