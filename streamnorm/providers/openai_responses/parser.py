"""OpenAI Responses. Every word of that wire that we know is in this file.

    response.created -> response.in_progress -> item* -> response.completed | .incomplete | .failed
    item = output_item.added -> (deltas and .done of text, reasoning, arguments, code …)* ->
           output_item.done                                            or `error`, anywhere

Items interleave. A call is found by ``call_id`` where an item is at hand, else by ``output_index``,
else by ``item_id`` (which some gateways change from event to event), else it is the last open one
of its type. Every text is said up to four times (deltas, ``.done``, item, final response): copies
are compared by the accumulator. The end mark is the final response.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from ...calls import OPEN, Call, Kind, State
from ...events import (
    Citation,
    Echo,
    Event,
    FinishReason,
    IdSource,
    ReasoningDelta,
    RunsOn,
    TextDelta,
    ToolCallDelta,
    Unrecognized,
    Usage,
)
from ...framing import Framer
from ...framing.lines import Whole
from ...framing.sse import SSE
from .. import _even
from .._base import (
    Failure,
    Handler,
    Heading,
    Item,
    Parser,
    StreamFailed,
    StreamOver,
    Wire,
    Word,
    count,
    first_text,
    items_of,
)

__all__ = ["CALL_ID", "ITEM_ID", "TOOLS", "ResponsesParser", "Tool", "tools_by_type"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------


class TextPiece(Wire, tag="response.output_text.delta", tag_field="type"):
    sequence_number: Any = None
    item_id: Any = None
    output_index: int = 0
    content_index: Any = None
    delta: str = ""
    logprobs: Any = None
    obfuscation: Any = None
    response_id: Any = None
    agent: Any = None


class ArgumentsPiece(Wire, tag="response.function_call_arguments.delta", tag_field="type"):
    sequence_number: Any = None
    item_id: str | None = None
    output_index: int | None = None
    delta: str = ""
    obfuscation: Any = None
    call_id: str | None = None
    response_id: Any = None
    agent: Any = None


class _Placed(Wire):
    """Where in the response something happens. Any of it may be missing."""

    sequence_number: Any = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: Any = None
    summary_index: Any = None
    obfuscation: Any = None
    response_id: Any = None
    agent_reference: Any = None
    agent: Any = None  # of several, the one that speaks; the item says it too


class _Piece(_Placed):
    delta: Any = ""
    command_index: int | None = None
    logprobs: Any = None


class _Said(_Placed):
    """The whole of something, under the name its kind has for it."""

    name: str | None = None
    call_id: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    code: str | None = None
    diff: str | None = None
    command: str | None = None
    command_index: int | None = None
    output: Any = None
    part: Any = None
    logprobs: Any = None
    transcript: str | None = None
    status: Any = None


class _Status(_Placed):
    partial_image_b64: str | None = None
    partial_image_index: int | None = None
    background: Any = None
    output_format: Any = None
    quality: Any = None
    size: Any = None
    cost: Any = None


class _Annotated(_Placed):
    annotation: Any = None
    annotation_index: Any = None


class _OfItem(Wire):
    item: Raw
    sequence_number: Any = None
    output_index: int | None = None
    response_id: Any = None
    agent_reference: Any = None
    agent: Any = None


class _OfResponse(Wire):
    response: Raw = Raw(b"{}")
    sequence_number: Any = None
    copilot_usage: Any = None
    agent_reference: Any = None
    agent: Any = None


class _Error(Wire):
    code: Any = None
    message: str | None = None
    param: Any = None
    error: Any = None
    sequence_number: Any = None
    status: Any = None
    headers: Any = None
    agent: Any = None


class _Final(msgspec.Struct):
    """What is read of the last response; the rest of it repeats the request."""

    status: str | None = None
    error: Any = None
    incomplete_details: Any = None
    usage: dict[str, Any] | None = None
    output: list[Raw] | None = None


class _Opening(msgspec.Struct, frozen=True):
    id: str | None = None
    model: str | None = None


class _Header(msgspec.Struct):
    response: _Opening = _Opening()


# --- the types of tool items --------------------------------------------------------------------


class Tool(NamedTuple):
    """One type of item that calls a tool or brings a tool's output.

    ``said``: how it says its arguments, a form and the fields it needs:
    ``text`` JSON text · ``object`` an object · ``one of`` the first object there is · ``fields`` an
    object made of those fields · ``code`` / ``input`` plain text.
    ``ids``: fields that identify it, best first, with what kind of id that makes.
    ``output``: the fields its result is in (a hybrid brings call and result at once).
    """

    type: str
    family: str
    role: str
    runs_on: RunsOn
    ids: tuple[tuple[str, IdSource], ...]
    said: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    name: str = ""  # of tools that have no name of their own
    name_field: str = "name"
    note: str = ""
    usually: tuple[str, str] | None = None  # its id, where the first of ``ids`` may be missing

    @property
    def kind(self) -> Kind:
        key = self.said[0] if self.said and self.said[0] in ("code", "input") else None
        return Kind(self.family, self.runs_on, key)

    @property
    def item(self) -> Item:
        field, source = self.usually or self.ids[0]
        ref = field if "output" in self.role and self.role != "call+output" else ""
        return Item(self.type, self.family, self.role, self.runs_on, source, field,
                    " ".join(self.said), ref, self.note)  # fmt: skip


CALL_ID: tuple[tuple[str, IdSource], ...] = (("call_id", "natural"), ("id", "conflated"))
ITEM_ID: tuple[tuple[str, IdSource], ...] = (("id", "conflated"),)
_OPTIONAL = ("call_id", "nullable")
_JSON = ("text", "arguments")
TOOLS = (
    Tool("function_call", "function", "call", "client", CALL_ID, _JSON),
    Tool("function_call_output", "function", "output", "client", CALL_ID, output=("output",),
         usually=_OPTIONAL),
    Tool("custom_tool_call", "custom", "call", "client", CALL_ID, ("input", "input")),
    Tool("custom_tool_call_output", "custom", "output", "client", CALL_ID, output=("output",)),
    Tool("computer_call", "computer-use", "call", "client", CALL_ID, ("one of", "action", "actions"),
         name="computer_use"),
    Tool("computer_call_output", "computer-use", "output", "client", CALL_ID, output=("output",)),
    Tool("local_shell_call", "local-shell", "call", "client", CALL_ID, ("object", "action"),
         name="local_shell"),
    Tool("local_shell_call_output", "local-shell", "output", "client", CALL_ID, output=("output",),
         note="its own id is the call's", usually=("id", "conflated")),
    Tool("shell_call", "function-shell", "call", "client", CALL_ID, ("object", "action"), name="shell",
         note="runs where its `environment` says"),
    Tool("shell_call_output", "function-shell", "output", "client", CALL_ID, output=("output",)),
    Tool("apply_patch_call", "apply-patch", "call", "client", CALL_ID, ("object", "operation"),
         name="apply_patch"),
    Tool("apply_patch_call_output", "apply-patch", "output", "client", CALL_ID, output=("output",)),
    Tool("tool_search_call", "tool-search", "call", "provider", CALL_ID, ("object", "arguments"),
         name="tool_search", note="runs where its `execution` says", usually=_OPTIONAL),
    Tool("tool_search_output", "tool-search", "output", "provider", CALL_ID, output=("tools",),
         usually=_OPTIONAL),
    Tool("file_search_call", "file-search", "call+output", "provider", ITEM_ID, ("fields", "queries"),
         ("results",), "file_search"),
    Tool("web_search_call", "web-search", "call", "provider", ITEM_ID, ("object", "action"),
         name="web_search"),
    Tool("code_interpreter_call", "code-interpreter", "call+output", "provider", ITEM_ID,
         ("code", "code"), ("outputs",), "code_interpreter"),
    Tool("image_generation_call", "image-gen", "call+output", "provider", ITEM_ID,
         ("fields", "prompt", "revised_prompt", "action", "size", "quality", "background",
          "output_format"), ("result",), "image_generation"),
    Tool("mcp_call", "mcp", "call+output", "provider", ITEM_ID, _JSON, ("output", "error")),
    Tool("mcp_list_tools", "mcp", "call+output", "provider", ITEM_ID, ("fields", "server_label"),
         ("tools", "error"), "mcp_list_tools", note="a listing that the provider makes by itself"),
    Tool("mcp_approval_request", "mcp", "call", "provider", (("id", "natural"),),
         ("fields", "name", "server_label", "arguments"), name="mcp_approval_request",
         note="the client decides; answered by mcp_approval_response"),
    Tool("mcp_approval_response", "mcp", "output", "client", (("approval_request_id", "natural"),),
         output=("approve", "reason")),
    Tool("program", "programmatic", "call", "provider", CALL_ID, ("code", "code"), name="program"),
    Tool("program_output", "programmatic", "output", "provider", CALL_ID, output=("result",)),
    Tool("multi_agent_call", "multi-agent", "call", "provider", CALL_ID, _JSON, name_field="action"),
    Tool("multi_agent_call_output", "multi-agent", "output", "provider", CALL_ID, output=("output",)),
)  # fmt: skip

# Items that are no tools, no text, and must go back as they came.
OPAQUE = {"compaction", "compaction_trigger", "configuration_update", "additional_tools",
          "item_reference", "agent_message"}  # fmt: skip
_OF_THE_CALL = {"type", "call_id", "name", "arguments", "input", "code", "status", "action",
                "operation", "outputs", "results", "result", "output", "queries"}  # fmt: skip
_FAILED = {"failed", "incomplete"}
_THOUGHTS = {"reasoning_text", "summary_text"}

RETRYABLE = {
    "server_error",
    "rate_limit_exceeded",
    "overloaded",
    "slow_down",
    "vector_store_timeout",
}
_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "steered": "pause",
}


def tools_by_type(*tables: tuple[Tool, ...]) -> dict[str, Tool]:
    """Rows of tool items by their type."""
    return {tool.type: tool for table in tables for tool in table}


# --- the way in ---------------------------------------------------------------------------------


class ResponsesParser(Parser):
    """One Responses stream."""

    name = "openai_responses"
    END = "response.completed, .incomplete or .failed"
    TYPE_FIELD = "type"
    SAYS_TOOL_CALLS = False
    OF_AGENTS: ClassVar[bool] = False  # its responses say which agent speaks
    TOOLS: ClassVar[dict[str, Tool]] = tools_by_type(TOOLS)
    REASONS: ClassVar[dict[str, FinishReason]] = _INCOMPLETE
    QUIRKS = {
        "arguments": ("args.object", _even.json_text),
        "output_index": ("wire.shape_odd", lambda value: _even.DROP),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._by_output: defaultdict[str, dict[int, Call]] = defaultdict(dict)
        self._functions = self._by_output["function_call"]
        self._by_item: dict[tuple[str, str], Call] = {}
        self._of_type: defaultdict[str, list[Call]] = defaultdict(list)
        self._names: dict[int, str] = {}
        self._places: dict[str, int | None] = {}  # item id -> output index
        self._answered: set[int] = set()
        self._text_at: int | None = None
        self._texts: set[int | None] = set()  # items whose text was told
        self._thoughts: set[int | None] = set()  # items whose reasoning was told
        self._echoed: set[str] = set()
        self._refused = False
        self._usage: dict[str, Any] = {}

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Whole(limit) if start == "json" else SSE(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        kind, response = str(payload.get("type", "")), payload.get("response")
        if isinstance(response, dict) and "agent_reference" in response and not cls.OF_AGENTS:
            return False
        return kind.startswith("response.") or (
            kind == "error" and ("sequence_number" in payload or "message" in payload)
        )

    def heading(self, data: bytes) -> Heading:
        opening = msgspec.json.decode(data, type=_Header).response
        return Heading(opening.model, opening.id)

    # --- text and reasoning ---------------------------------------------------------------------

    def _text_piece(self, p: TextPiece, out: Out) -> None:
        if p.output_index != self._text_at:
            self._text_at = p.output_index
            self._texts.add(p.output_index)
        if p.delta:
            out.append(TextDelta(p.delta, p.output_index))

    def _other_text(self, p: _Piece, out: Out) -> None:
        self._tell_text(p.output_index, str(p.delta or ""), out)

    def _refusal_piece(self, p: _Piece, out: Out) -> None:
        self._texts.add(p.output_index)
        self._refuse(str(p.delta), p.output_index, out)

    def _text_said(self, p: _Said, out: Out) -> None:
        """The whole text: told only if its pieces never came."""
        part = p.part if isinstance(p.part, dict) else {}
        if str(part.get("type")) in _THOUGHTS:
            self._thought_said(p, out)
        elif p.output_index not in self._texts:
            self._tell_part({"text": p.text, "refusal": p.refusal, **part}, p.output_index, out)

    def _tell_text(self, index: int | None, text: str, out: Out) -> None:
        self._texts.add(index)
        if text:
            out.append(TextDelta(text, index or 0))

    def _tell_part(self, part: dict[str, Any], index: int | None, out: Out) -> None:
        if first_text(part.get("refusal")):
            self._texts.add(index)
            self._refuse(part["refusal"], index, out)
        elif text := first_text(part.get("text")):
            self._tell_text(index, text, out)

    def _refuse(self, text: str, index: int | None, out: Out) -> None:
        self._refused = True
        if text:
            out.append(TextDelta(text, index or 0, 0, {"type": "refusal"}))

    def _thought_piece(self, p: _Piece, out: Out) -> None:
        text = p.delta.get("text") if isinstance(p.delta, dict) else p.delta
        self._thoughts.add(p.output_index)
        if isinstance(text, str) and text:
            out.append(ReasoningDelta(text, p.output_index or 0))

    def _thought_said(self, p: _Said, out: Out) -> None:
        part = p.part if isinstance(p.part, dict) else {}
        text = first_text(p.text, part.get("text"))
        if text and p.output_index not in self._thoughts:
            self._thoughts.add(p.output_index)
            out.append(ReasoningDelta(text, p.output_index or 0))

    def _annotated(self, p: _Annotated, out: Out) -> None:
        out.append(Citation(p.output_index or 0, p.annotation))

    def _media(self, p: _Piece, out: Out) -> None:
        """No event of ours carries media: passed on whole."""
        out.append(Unrecognized(f"media/{_kind(p)}", p.delta))

    # --- pieces of calls ------------------------------------------------------------------------

    def _arguments_piece(self, p: ArgumentsPiece, out: Out) -> None:
        call = self._functions.get(p.output_index)  # type: ignore[arg-type]
        text = p.delta
        if call is not None and call.state is OPEN and text:
            call.fragments.append(text)  # as Calls.append, without the call: measurable here
            out.append(ToolCallDelta(call.ordinal, text))
        else:
            self._call_piece(p, out)

    def _call_piece(self, p: _Piece | ArgumentsPiece, out: Out) -> None:
        call = self._call_of(p, OF[type(p)], out)
        if p.delta:
            self.calls.append(call, str(p.delta), out)

    def _call_said(self, p: _Said, out: Out) -> None:
        """The whole arguments, code or input of a call: its own closing mark."""
        call = self._call_of(p, OF[type(p)], out)
        self.calls.hear(call, out, id=first_text(p.call_id), field="call_id")
        if call.wire_id:
            self.calls.hear(call, out, name=first_text(p.name))
        elif p.name:  # the item itself will say who it is; if it never comes, the name is needed
            self._names[call.ordinal] = p.name
        text = next((t for t in (p.arguments, p.code, p.input) if t is not None), "")
        self.calls.settle(call, text, out)
        if call.name and call.wire_id:
            self.calls.close(call, out)

    def _progress_piece(self, p: _Piece, out: Out) -> None:
        """Commands and diffs are parts of an object that comes whole with its item."""
        payload = {"delta": p.delta}
        if p.command_index is not None:
            payload["command_index"] = p.command_index
        self._progress(p, STATUS[type(p)], payload, out)

    def _progress_said(self, p: _Said, out: Out) -> None:
        said = {k: v for k in ("command", "command_index", "diff", "output")
                if (v := getattr(p, k)) is not None}  # fmt: skip
        self._progress(p, STATUS[type(p)], said, out)

    def _status(self, p: _Status, out: Out) -> None:
        image = {"b64": p.partial_image_b64, "index": p.partial_image_index}
        self._progress(p, STATUS[type(p)], image if p.partial_image_b64 else None, out)

    def _progress(self, p: Any, status: str, payload: Any, out: Out) -> None:
        """A status is no evidence that a call exists: without one it is told alone."""
        call = self._known(p.output_index, p.item_id, OF[type(p)])
        if call is None:
            self.scribe.note("call.unannounced", wire_kind=_kind(p))
        self.calls.progress(out, call, status, payload, id=p.item_id or "")

    # --- which call is meant --------------------------------------------------------------------

    def _call_of(self, p: Any, type_: str, out: Out) -> Call:
        return self._known(p.output_index, p.item_id, type_) or self._open_unannounced(
            p, type_, out
        )

    def _known(self, index: int | None, item_id: str | None, type_: str) -> Call | None:
        """By place, by item, or the last open one of that type; the type must fit in any case."""
        call = self._by_output[type_].get(index) if index is not None else None
        if call is None and item_id:
            call = self._by_item.get((type_, item_id))
        if call is None and (index is None or not item_id):
            open_ones = [c for c in self._of_type[type_] if c.state < State.CLOSED]
            call = open_ones[-1] if open_ones else None
        return call

    def _open_unannounced(self, p: Any, type_: str, out: Out) -> Call:
        self.scribe.note("call.unannounced", wire_kind=_kind(p))
        return self._open(self.TOOLS[type_], {"id": p.item_id}, p.output_index, out, named=False)

    def _open(
        self, tool: Tool, item: dict[str, Any], index: int | None, out: Out, *, named: bool = True
    ) -> Call:
        id, field, source = _identity(tool, item) if named else (None, tool.ids[0][0], None)
        call = self.calls.open(
            out, _kind_for(tool, item), id=id, field=field, source=source,
            name=_name_of(tool, item) if named else None, seen=item,
        )  # fmt: skip
        self._remember(call, tool.type, index, first_text(item.get("id")))
        self._of_type[tool.type].append(call)
        return call

    def _remember(self, call: Call, type_: str, index: int | None, item_id: str | None) -> None:
        if index is not None:
            self._by_output[type_][index] = call
        if item_id:
            self._by_item[type_, item_id] = call

    # --- items ----------------------------------------------------------------------------------

    def _item_added(self, p: _OfItem, out: Out) -> None:
        item, _ = self.sound(p.item)
        tool = self._tool_of(item)
        if tool is not None and "call" in tool.role:
            call = self._find_item(tool, item, p.output_index)
            if call is None:
                call = self._open(tool, item, p.output_index, out)
            self._learn(call, tool, item, out)
            call.echo = _echo(item)
        elif tool is not None:
            self._output_added(tool, item, p.output_index)
        elif _is_plain_item(item):
            self._places[_id_of(item)] = p.output_index
        else:
            self._other_item(item, p.output_index, out, done=False)

    def _tool_of(self, item: Any) -> Tool | None:
        return self.TOOLS.get(str(item.get("type"))) if isinstance(item, dict) else None

    def _output_added(self, tool: Tool, item: dict[str, Any], index: int | None) -> None:
        """Events about an output that is still growing are progress of its call."""
        call = self.calls.by_id(0, _identity(tool, item)[0] or "")
        if call is not None:
            self._remember(call, tool.type, index, first_text(item.get("id")))

    def _item_done(self, p: _OfItem, out: Out) -> None:
        item, raw = self.sound(p.item)
        tool = self._tool_of(item)
        index = p.output_index if p.output_index is not None else self._places.get(_id_of(item))
        if tool is None:
            self._other_item(item, index, out, done=True)
        elif "call" in tool.role:
            self._call_item(tool, item, raw, index, out)
        else:
            self._output_item(tool, item, out)

    def _call_item(
        self, tool: Tool, item: dict[str, Any], raw: bytes, index: int | None, out: Out
    ) -> None:
        call = self._find_item(tool, item, index) or self._open(tool, item, index, out)
        self._learn(call, tool, item, out)
        if call.state is not State.OVER:
            call.echo = _echo(item)
        self.calls.settle(call, FORMS[tool.said[0]](tool, item, raw), out)
        if item.get("status") != "incomplete":
            self.calls.close(call, out)
        if tool.output and call.ordinal not in self._answered:
            self._answered.add(call.ordinal)
            self._tell_output(tool, item, call, out)

    def _tell_output(self, tool: Tool, item: dict[str, Any], call: Call, out: Out) -> None:
        """A hybrid's result. It may be told before the call where that waits for the turn's end."""
        if call.state is not State.OVER and not call.fragments:
            self.calls.settle(call, "{}", out)
            self.calls.close(call, out)
        self.calls.result(
            out, _output(tool, item), id=call.id, call=call, is_error=_is_error(item), echo=item
        )

    def _output_item(self, tool: Tool, item: dict[str, Any], out: Out) -> None:
        if self._heard_before(item):
            return
        id, _, _ = _identity(tool, item)
        call = self.calls.by_id(0, id) if id else None
        if call is None:
            call = self._unanswered(tool.family)
        if call is not None:
            self._answered.add(call.ordinal)
        self.calls.result(
            out, _output(tool, item), id=id, call=call, is_error=_is_error(item), echo=item
        )

    def _unanswered(self, family: str) -> Call | None:
        """The last call of a family that has no output yet, for outputs that name none."""
        return next(
            (c for c in reversed(self.calls.all)
             if c.kind.family == family and c.wire_id is not None and c.ordinal not in self._answered
             and c.source == "conflated"),
            None,
        )  # fmt: skip

    def _find_item(self, tool: Tool, item: dict[str, Any], index: int | None) -> Call | None:
        call_id = first_text(item.get("call_id"))
        call = self.calls.by_id(0, call_id) if call_id else None
        if call is not None and call.kind.family == tool.family:
            return call
        call = self._known(index, first_text(item.get("id")), tool.type)
        if call is not None and call_id and call.wire_id not in (None, call_id):
            return None if call.source == "natural" else call
        return call

    def _learn(self, call: Call, tool: Tool, item: dict[str, Any], out: Out) -> None:
        id, field, source = _identity(tool, item)
        if call.wire_id is None or call.source == "natural":
            self.calls.hear(
                call, out, id=id if call.wire_id is None else None, field=field, source=source
            )
        self.calls.hear(call, out, name=_name_of(tool, item))

    def _other_item(self, item: Any, index: int | None, out: Out, *, done: bool) -> None:
        kind = str(item.get("type")) if isinstance(item, dict) else ""
        if kind in ("message", "output_message"):
            self._message(item, index, out)
        elif kind == "reasoning":
            self._reasoning(item, index, out)
        elif kind in OPAQUE:
            if done:
                self._echo_item(item, index, out)
        elif done and not self._heard_before(item):
            self.unknown({"type": f"output_item/{kind}", "item": item}, "item", out)

    def _message(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        told = index in self._texts
        for part in items_of(item.get("content")):
            if isinstance(part, dict) and not told:
                self._tell_part(part, index, out)
        self._echo_text(item, index, out)

    def _echo_text(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        echo = {k: item[k] for k in ("type", "id", "phase", "status") if item.get(k)}
        if item.get("id") and not self._heard_before(item):
            out.append(TextDelta("", index or 0, 0, echo))

    def _reasoning(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        parts = [*items_of(item.get("summary")), *items_of(item.get("content"))]
        texts = [first_text(p.get("text")) for p in parts if isinstance(p, dict)]
        text = "\n".join(t for t in texts if t)
        if text and index not in self._thoughts:
            self._thoughts.add(index)
            out.append(ReasoningDelta(text, index or 0))
        self._echo_item(item, index, out)

    def _echo_item(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        """What must go back as it came; once, although it may be said again at the end."""
        if not self._heard_before(item):
            out.append(ReasoningDelta("", index or 0, 0, item))

    def _heard_before(self, item: Any) -> bool:
        """Items are said again at the end. One without an id is known by what it says."""
        key = _id_of(item) or repr(item)
        heard = key in self._echoed
        self._echoed.add(key)
        return heard

    # --- the end --------------------------------------------------------------------------------

    def _over(self, p: _OfResponse, out: Out) -> None:
        final = self._final(p.response)
        if final.usage:
            self._usage = final.usage
        status = STATUS[type(p)] or final.status or "completed"
        if status == "failed":
            raise StreamFailed(_failure(final.error))
        if status == "cancelled":
            raise StreamFailed(Failure("cancelled", "the response was cancelled"))
        self._reconcile(final.output or [], out)
        self.reason, self.raw_reason = self._why_over(status, final.incomplete_details)
        for call in self.calls.unfinished():
            if not call.name:
                self.calls.hear(call, out, name=self._names.get(call.ordinal))
        self.calls.end_turn(out, self.reason)
        raise StreamOver

    def _final(self, raw: Raw) -> _Final:
        said, data = self.sound(raw)
        try:
            return msgspec.json.decode(data, type=_Final)
        except msgspec.ValidationError:
            self.scribe.note("wire.field_odd", where="response")
            status = said.get("status") if isinstance(said, dict) else None
            return _Final(status=first_text(status))

    def _why_over(self, status: str, details: Any) -> tuple[FinishReason, str]:
        if status == "incomplete":
            raw = first_text(details.get("reason") if isinstance(details, dict) else None) or status
            return ("length" if raw == status else self.finish_reason(raw)), raw
        return ("refusal" if self._refused else "stop"), status

    def _reconcile(self, output: list[Raw], out: Out) -> None:
        """The final response says everything once more; what was never heard is told now."""
        nothing_said = not self._texts
        for index, raw in enumerate(output):
            item, data = self.sound(raw)
            tool = self._tool_of(item)
            if tool is None:
                if isinstance(item, dict) and (item.get("type") != "message" or nothing_said):
                    self._late_item(item, index, out)
            elif "call" in tool.role:
                self._call_item(tool, item, data, self._place(tool, item, index), out)
            else:
                self._output_item(tool, item, out)

    def _late_item(self, item: dict[str, Any], index: int, out: Out) -> None:
        heard = _id_of(item) in self._echoed or (item.get("type") == "reasoning" and self._thoughts)
        if not heard:
            self._other_item(item, index, out, done=True)

    def _place(self, tool: Tool, item: dict[str, Any], index: int) -> int | None:
        """The place in the final list, unless ids say more: gateways number these anew."""
        return index if self._by_output[tool.type].get(index) is not None else None

    def _error(self, p: _Error, out: Out) -> None:
        said = p.error if isinstance(p.error, dict) else {}
        raise StreamFailed(_failure({"code": p.code, "message": p.message, **said}))

    def _keepalive(self, p: Any, out: Out) -> None:
        self.scribe.note("wire.keepalive")

    def _silent(self, p: Any, out: Out) -> None:
        """Known, and of no use to us."""

    def _done(self, out: Out) -> None:
        """Some proxies add the end mark of another wire; alone it is no evidence."""

    def usage(self) -> Usage | None:
        raw = self._usage
        return Usage(
            count(raw, "input_tokens"), count(raw, "output_tokens"),
            count(raw, "input_tokens_details", "cached_tokens"),
            count(raw, "input_tokens_details", "cache_write_tokens"),
            count(raw, "output_tokens_details", "reasoning_tokens"), raw,
        ) if raw else None  # fmt: skip

    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done}


# --- how items say things -----------------------------------------------------------------------


def _identity(tool: Tool, item: dict[str, Any]) -> tuple[str | None, str, IdSource | None]:
    for field, source in tool.ids:
        if value := first_text(item.get(field)):
            return value, field if field == "call_id" else f"item.{field}", source
    return None, tool.ids[0][0], None


def _name_of(tool: Tool, item: dict[str, Any]) -> str | None:
    return tool.name or first_text(item.get(tool.name_field))


def _kind_for(tool: Tool, item: dict[str, Any]) -> Kind:
    execution = item.get("execution")
    if execution in ("client", "server"):
        return msgspec.structs.replace(
            tool.kind, runs_on="client" if execution == "client" else "provider"
        )
    environment = item.get("environment")
    if tool.type == "shell_call" and isinstance(environment, dict):
        remote = environment.get("type") == "container_reference"
        return msgspec.structs.replace(tool.kind, runs_on="provider" if remote else "client")
    return tool.kind


def _fields(raw: bytes) -> dict[str, Raw]:
    return msgspec.json.decode(raw, type=dict[str, Raw])


def _as_text(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    value = item.get(tool.said[1])
    return value if isinstance(value, str) else _as_object(tool, item, raw)


def _as_object(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    """The exact text of the object in the named field."""
    if not isinstance(item.get(tool.said[1]), dict | list):
        return first_text(item.get(tool.said[1])) or ""
    return bytes(_fields(raw)[tool.said[1]]).decode()


def _as_one_of(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    one, many = tool.said[1:]
    return (
        _as_object(tool, item, raw)
        if item.get(one)
        else _as_fields(tool._replace(said=("fields", many)), item, raw)
    )


def _as_fields(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    fields = _fields(raw)
    there = {name: fields[name] for name in tool.said[1:] if item.get(name) is not None}
    return msgspec.json.encode(there).decode()


FORMS: dict[str, Callable[[Tool, dict[str, Any], bytes], str]] = {
    "text": _as_text,
    "code": _as_text,
    "input": _as_text,
    "object": _as_object,
    "one of": _as_one_of,
    "fields": _as_fields,
}


def _echo(item: dict[str, Any]) -> Echo | None:
    return {k: v for k, v in item.items() if k not in _OF_THE_CALL and v is not None} or None


def _output(tool: Tool, item: dict[str, Any]) -> Any:
    """The result: the one field it is in, or those of several that are there."""
    there = {name: item[name] for name in tool.output if item.get(name) is not None}
    return next(iter(there.values()), None) if len(there) < 2 else there


def _is_error(item: dict[str, Any]) -> bool:
    return str(item.get("status")) in _FAILED or item.get("error") is not None


def _id_of(item: Any) -> str:
    return str(item.get("id", "")) if isinstance(item, dict) else ""


def _is_plain_item(item: Any) -> bool:
    """Items that say nothing yet when they are added."""
    return isinstance(item, dict) and str(item.get("type")) in {
        "message",
        "reasoning",
        "output_message",
        *OPAQUE,
    }


def _failure(error: Any) -> Failure:
    said = error if isinstance(error, dict) else {}
    code = first_text(said.get("code"), said.get("type"))
    message = first_text(said.get("message"), code) or "the provider reported an error"
    return Failure("provider_error", message, code, code in RETRYABLE)


def _kind(payload: Any) -> str:
    return str(type(payload).__struct_config__.tag)


# --- one row per kind of event ------------------------------------------------------------------
# kind, its payload type, its handler; then the type of item it is about and the status it tells.


class Row(NamedTuple):
    kind: str
    payload: type[Wire]
    handler: Handler
    of: str = ""
    status: str = ""


P = ResponsesParser
ROWS = (
    Row("response.output_item.added", _OfItem, P._item_added),
    Row("response.output_item.done", _OfItem, P._item_done),
    Row("response.text.delta", _Piece, P._other_text),
    Row("response.output_text.done", _Said, P._text_said),
    Row("response.content_part.added", _Said, P._silent),
    Row("response.content_part.done", _Said, P._text_said),
    Row("response.refusal.delta", _Piece, P._refusal_piece),
    Row("response.refusal.done", _Said, P._text_said),
    Row("response.output_text.annotation.added", _Annotated, P._annotated),
    Row("response.output_text_annotation.added", _Annotated, P._annotated),
    Row("response.audio.delta", _Piece, P._media),
    Row("response.audio.done", _Said, P._silent),
    *(
        row for transcript in ("response.audio.transcript", "response.audio_transcript") for row in (
            Row(f"{transcript}.delta", _Piece, P._other_text),
            Row(f"{transcript}.done", _Said, P._silent),
        )
    ),
    *(
        row for thought in ("reasoning_text", "reasoning_summary_text", "reasoning", "reasoning_summary")
        for row in (
            Row(f"response.{thought}.delta", _Piece, P._thought_piece),
            Row(f"response.{thought}.done", _Said, P._thought_said),
        )
    ),
    Row("response.reasoning_summary_part.added", _Said, P._silent),
    Row("response.reasoning_summary_part.done", _Said, P._thought_said),
    Row("response.function_call_arguments.done", _Said, P._call_said, "function_call"),
    Row("response.mcp_call_arguments.delta", _Piece, P._call_piece, "mcp_call"),
    Row("response.mcp_call_arguments.done", _Said, P._call_said, "mcp_call"),
    Row("response.mcp_call.arguments_delta", _Piece, P._call_piece, "mcp_call"),
    Row("response.mcp_call.arguments_done", _Said, P._call_said, "mcp_call"),
    Row("response.custom_tool_call_input.delta", _Piece, P._call_piece, "custom_tool_call"),
    Row("response.custom_tool_call_input.done", _Said, P._call_said, "custom_tool_call"),
    Row("response.code_interpreter_call_code.delta", _Piece, P._call_piece, "code_interpreter_call"),
    Row("response.code_interpreter_call_code.done", _Said, P._call_said, "code_interpreter_call"),
    Row("response.shell_call_command.added", _Said, P._progress_said, "shell_call", "command"),
    Row("response.shell_call_command.delta", _Piece, P._progress_piece, "shell_call", "command"),
    Row("response.shell_call_command.done", _Said, P._progress_said, "shell_call", "command_done"),
    Row("response.shell_call_output_content.delta", _Piece, P._progress_piece,
        "shell_call_output", "output"),
    Row("response.shell_call_output_content.done", _Said, P._progress_said,
        "shell_call_output", "output_done"),
    Row("response.apply_patch_call_operation_diff.delta", _Piece, P._progress_piece,
        "apply_patch_call", "diff"),
    Row("response.apply_patch_call_operation_diff.done", _Said, P._progress_said,
        "apply_patch_call", "diff_done"),
    *(
        Row(f"response.{of}.{status}", _Status, P._status, of, status)
        for of, statuses in {
            "code_interpreter_call": ("in_progress", "interpreting", "completed"),
            "file_search_call": ("in_progress", "searching", "completed"),
            "web_search_call": ("in_progress", "searching", "completed"),
            "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
            "mcp_call": ("in_progress", "completed", "failed"),
            "mcp_list_tools": ("in_progress", "completed", "failed"),
        }.items()
        for status in statuses
    ),
    Row("response.created", _OfResponse, P._silent),
    Row("response.in_progress", _OfResponse, P._silent),
    Row("response.queued", _OfResponse, P._silent),
    Row("response.compaction.compacting", _Status, P._silent),
    Row("response.completed", _OfResponse, P._over, status="completed"),
    Row("response.incomplete", _OfResponse, P._over, status="incomplete"),
    Row("response.failed", _OfResponse, P._over, status="failed"),
    Row("response.cancelled", _OfResponse, P._over, status="cancelled"),
    Row("response.done", _OfResponse, P._over),
    Row("error", _Error, P._error),
    Row("ping", _Status, P._keepalive),
    Row("keepalive", _Status, P._keepalive),
)  # fmt: skip
OF: dict[type, str] = {ArgumentsPiece: "function_call"}
STATUS: dict[type, str] = {}


def payload_types(rows: tuple[Row, ...]) -> dict[type, Handler]:
    """A tagged payload type for each row: its kind is its tag, so msgspec does the dispatch."""
    kinds: dict[type, Handler] = {}
    for row in rows:
        tagged = msgspec.defstruct(
            row.kind, (), bases=(row.payload,), forbid_unknown_fields=True, gc=False,
            tag=row.kind, tag_field="type",
        )  # fmt: skip
        kinds[tagged], OF[tagged], STATUS[tagged] = row.handler, row.of, row.status
    return kinds


P.KINDS = {TextPiece: P._text_piece, ArgumentsPiece: P._arguments_piece, **payload_types(ROWS)}


def _any_of(kinds: Any) -> Any:
    union: Any = None
    for kind in kinds:
        union = kind if union is None else union | kind
    return union


P.decode = staticmethod(msgspec.json.Decoder(_any_of(P.KINDS)).decode)
