"""Anthropic Messages. Every word of that wire that we know is in this file.

    message_start -> block* -> message_delta+ -> message_stop        ping, error: anywhere
    block = content_block_start(index) -> content_block_delta(index)* -> content_block_stop(index)

A call is a block and is found by its ``index`` alone; its id is ``content_block.id``. Blocks may
interleave. Server results come whole in ``content_block_start``. The end mark is ``message_stop``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Raw

from ...core import even
from ...core.calls import BEGUN_LATE, OPEN, UNPLACED, Call, Evidence, Kind, State
from ...core.parser import (
    UNREADABLE,
    Decode,
    Failure,
    Handler,
    Heading,
    Parser,
    Payload,
    StreamFailed,
    StreamOver,
    count,
    first_text,
    items_of,
)
from ...core.row import Item
from ...core.stencil import NEVER, read_text
from ...events import Citation, Event, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from ...text.halves import decoded

__all__ = ["CALLS", "ITEMS", "PARSER", "AnthropicParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------


class Text(Payload, tag="text_delta", tag_field="type"):
    text: str


class Json(Payload, tag="input_json_delta", tag_field="type"):
    partial_json: str


class Thinking(Payload, tag="thinking_delta", tag_field="type"):
    thinking: str
    estimated_tokens: int | None = None


class Signature(Payload, tag="signature_delta", tag_field="type"):
    signature: str


class Cited(Payload, tag="citations_delta", tag_field="type"):
    citation: Any


class Compaction(Payload, tag="compaction_delta", tag_field="type"):
    content: str | None = None
    encrypted_content: str | None = None


class MessageStart(Payload, tag="message_start", tag_field="type"):
    message: Any = None


class BlockStart(Payload, tag="content_block_start", tag_field="type"):
    content_block: Raw
    index: int | None = None


class BlockDelta(Payload, tag="content_block_delta", tag_field="type"):
    delta: Text | Json | Thinking | Signature | Cited | Compaction
    index: int | None = None


class BlockStop(Payload, tag="content_block_stop", tag_field="type"):
    index: int | None = None


class MessageDelta(Payload, tag="message_delta", tag_field="type"):
    delta: dict[str, Any] = {}
    usage: dict[str, Any] | None = None
    context_management: Any = None
    input_transformations: Any = None


class MessageStop(Payload, tag="message_stop", tag_field="type"):
    metrics: Any = msgspec.field(default=None, name="amazon-bedrock-invocationMetrics")


class Ping(Payload, tag="ping", tag_field="type"):
    pass


class Error(Payload, tag="error", tag_field="type"):
    error: Any = None
    request_id: str | None = None


Payloads: TypeAlias = (
    MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping | Error
)


class _Opening(msgspec.Struct, frozen=True):
    id: str | None = None
    model: str | None = None


class _Header(msgspec.Struct):
    message: _Opening = _Opening()


class _Block(msgspec.Struct):
    """What a block that calls a tool says; read beside the plain form to keep ``input`` exact."""

    input: Raw = Raw()


_as_block = msgspec.json.Decoder(_Block).decode


def input_in(block: bytes) -> str:
    """The input of a call's block, as its text stands there."""
    return str(decoded(block, _as_block).input, "utf-8", "replace")


# --- the types of tool blocks -------------------------------------------------------------------

_RESULT = "content_block.content, whole"
_INPUT = "input, as JSON text in input_json_delta"
ITEMS = (
    Item("tool_use", "function", "call", "client", "natural", "content_block.id", _INPUT),
    Item(
        "server_tool_use", "server-tool", "call", "provider", "natural", "content_block.id", _INPUT
    ),
    Item("mcp_tool_use", "mcp", "call", "provider", "natural", "content_block.id", _INPUT),
    *(
        Item(type_, family, "output", runs_on, "natural", "tool_use_id", _RESULT, "tool_use_id")
        for type_, family, runs_on in (
            ("tool_result", "function", "client"),
            ("mcp_tool_result", "mcp", "provider"),
            ("web_search_tool_result", "web-search", "provider"),
            ("web_fetch_tool_result", "web-fetch", "provider"),
            ("code_execution_tool_result", "code-execution", "provider"),
            ("bash_code_execution_tool_result", "bash-code-execution", "provider"),
            ("text_editor_code_execution_tool_result", "text-editor", "provider"),
            ("tool_search_tool_result", "tool-search", "provider"),
            ("advisor_tool_result", "advisor", "provider"),
        )
    ),
)
CALLS = {i.type: Kind(i.family, i.runs_on) for i in ITEMS if i.role == "call"}  # type: ignore[arg-type]
RESULTS = {i.type: i.family for i in ITEMS if i.role == "output"}
# The family of a server tool, by its name; one that is not here has that of its block.
SERVER_TOOLS = {
    "web_search": "web-search",
    "web_fetch": "web-fetch",
    "code_execution": "code-execution",
    "bash_code_execution": "bash-code-execution",
    "text_editor_code_execution": "text-editor",
    "tool_search_tool_regex": "tool-search",
    "tool_search_tool_bm25": "tool-search",
    "advisor": "advisor",
}
# Blocks that are no tools and no text, and must go back as they came.
OPAQUE = {"redacted_thinking", "container_upload", "fallback", "mcp_tool_listing"}
# Beside these, what a call block says must go back with it.
_OF_THE_CALL = {"type", "id", "name", "input"}
_BESIDE = {"caller", "cache_control"}  # objects that a call block is known to have …
_KNOWN = {*_BESIDE, "server_name"}  # … and all else
_ELSEWHERE = "its input may be in a field that we do not know"
RETRYABLE = {"overloaded_error", "rate_limit_error", "api_error", "timeout_error"}

# How the service writes its deltas, up to the index and from there to the text.
_FRAGMENT = "input_json_delta"
DELTA = b'{"type":"content_block_delta","index":'
JSON = b',"delta":{"type":"input_json_delta","partial_json":'
TEXT = b',"delta":{"type":"text_delta","text":'

# --- the way in ---------------------------------------------------------------------------------


class AnthropicParser(Parser):
    """One Messages stream."""

    name = "anthropic"
    CALLED: ClassVar[dict[str, Kind]] = CALLS
    END = "message_stop"
    TYPE_FIELD = "type"
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Payloads).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "pause_turn": "pause",
        "compaction": "pause",
        "refusal": "refusal",
    }
    EVIDENCE = Evidence(
        "content_block_stop of its index",
        "nothing; a whole input in its start counts if no fragment follows",
        "a known stop_reason, then message_stop",
        "at content_block_stop",
    )
    CALL_TEXTS = ("delta.partial_json",)
    CALL_KEYS: ClassVar[tuple[str, ...]] = ("index", "content_block")
    CALL_WORDS = (b'"partial_json"', b'"tool_use"', b'"input"')
    ERRORS_AT = ("error",)
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "index": ("wire.shape_odd", even.integer)
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._blocks: dict[int | None, Call] = {}  # one that says no index has a place as well
        self._before: dict[int | None, Call] = {}  # of answers that are said again
        self._usage: dict[str, Any] = {}
        # How the last delta began, up to its text; its index, and its call if it is of one: see ``run``.
        self._delta: tuple[bytes, int, Call | None] = NEVER, 0, None

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        kind = str(payload.get("type"))
        return kind in {"message_start", "content_block_start"} or (
            kind == "error"
            and isinstance(payload.get("error"), dict)
            and "sequence_number" not in payload
        )

    def heading(self, data: bytes) -> Heading:
        opening = msgspec.json.decode(data, type=_Header).message
        return Heading(opening.model, opening.id)

    def kind_of(self, payload: Any) -> str:
        inner = payload.get("delta") if isinstance(payload, dict) else None
        kind = super().kind_of(payload)
        return f"{kind}/{inner['type']}" if isinstance(inner, dict) and "type" in inner else kind

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        index = payload.get("index")
        if type(index) is not int:
            return [self._blocks[None]] if None in self._blocks else None
        if index not in self._blocks:  # a fragment there is nobody's
            delta = payload.get("delta")
            return None if isinstance(delta, dict) and delta.get("type") == _FRAGMENT else []
        return [self._blocks[index]]

    # the hot kind first; the rare deltas have a table of their own

    def run(self, lines: Iterator[bytes], envelope: bytes, out: Out) -> Any:
        """As ``_block_delta`` for fragments of open calls, and for text while there are no calls. Where
        a delta begins as the service writes those of the block before it, and ends so, only its text
        is read; all else of it is compared. Written out, as each step can be measured (``make bench``).
        """
        blocks, decode = self._blocks, self.decode
        before, index, grown = self._delta
        if grown is None:
            before = NEVER if blocks else before
        elif blocks.get(index) is not grown or grown.state is not OPEN:
            before = NEVER
        for line in lines:
            rest = line.removeprefix(before)  # itself if it begins otherwise, as in all of these
            if (
                rest is not line
                and (inner := rest.removesuffix(b"}")) is not rest
                and (token := (inner := inner.rstrip(b" ")).removesuffix(b"}")) is not inner
            ):
                try:
                    text = read_text(token)
                except UNREADABLE:
                    text = ""
                if text:
                    if grown is None:
                        out.append(TextDelta(text, index))
                    else:
                        grown.fragments.append(text)
                        out.append(ToolCallDelta(grown.ordinal, text))
                    continue
            p = decode(line)
            if type(p) is not BlockDelta:
                return p
            delta = p.delta
            if p.index is None:
                return p
            index = p.index
            if type(delta) is Json:
                call, text = blocks.get(index), delta.partial_json
                if call is None or call.state is not OPEN or not text:
                    return p
                call.fragments.append(text)
                out.append(ToolCallDelta(call.ordinal, text))
                before, grown = b"%b%d%b" % (DELTA, index, JSON), call
            elif type(delta) is Text and delta.text and not blocks:
                out.append(TextDelta(delta.text, index))
                before, grown = b"%b%d%b" % (DELTA, index, TEXT), None
            else:
                return p
            self._delta = before, index, grown
        return None

    def _block_delta(self, p: BlockDelta, out: Out) -> None:
        delta = p.delta
        kind = type(delta)
        if kind is Json:
            call = self._blocks.get(p.index)
            text = delta.partial_json  # type: ignore[union-attr]
            if call is not None and call.state is OPEN and text:
                call.fragments.append(text)  # as Calls.append, without the call: measurable here
                out.append(ToolCallDelta(call.ordinal, text))
            elif not text:
                return
            elif call is not None:
                self.calls.append(call, text, out)
            else:
                self.calls.astray((p.index,), index=p.index)
        elif kind is Text:
            text = delta.text  # type: ignore[union-attr]
            if text:
                out.append(TextDelta(text, p.index or 0))
            if self._blocks:
                self._taint_at(p.index)
        else:
            self._taint_at(p.index)
            DELTAS[kind](self, (p.index or 0, delta), out)

    def _taint_at(self, index: int | None) -> None:
        """What is no argument came for this place: if it is a call's, that was its fragment."""
        call = self._blocks.get(index)
        if call is not None and call.state is not State.OVER:
            self.calls.taint(call, "something else came in place of its arguments")

    def _thinking(self, p: tuple[int, Thinking], out: Out) -> None:
        if p[1].thinking:
            out.append(ReasoningDelta(p[1].thinking, p[0]))

    def _signature(self, p: tuple[int, Signature], out: Out) -> None:
        echo = {"type": "thinking", "signature": p[1].signature}
        out.append(ReasoningDelta("", p[0], 0, echo))

    def _cited(self, p: tuple[int, Cited], out: Out) -> None:
        out.append(Citation(p[0], p[1].citation))

    def end_of_input(self, out: Out) -> None:
        """Without the end mark the turn did not end: only what was closed, and is there, is whole."""
        if self.reason is not None:
            self.calls.end_turn(out, None)

    def _compaction(self, p: tuple[int, Compaction], out: Out) -> None:
        said = {k: v for k, v in msgspec.structs.asdict(p[1]).items() if v is not None}
        if said:
            out.append(ReasoningDelta("", p[0], 0, {"type": "compaction", **said}))

    def _message_start(self, p: MessageStart, out: Out) -> None:
        message = p.message if isinstance(p.message, dict) else {}
        if self.begin_answer(out):
            self._before |= self._blocks
            self._blocks = {}
        self._count(message.get("usage"))
        self._keep_container(message)
        # A gateway was seen to put the first blocks into the opening message.
        for index, block in enumerate(items_of(message.get("content"))):
            self._block_start(BlockStart(Raw(msgspec.json.encode(block)), index), out)

    def _block_start(self, p: BlockStart, out: Out) -> None:
        block, raw = self.sound(p.content_block)
        self._start_block(block, raw, p.index, out)
        self.calls.lossy = ""

    def _start_block(self, block: Any, raw: bytes, index: int | None, out: Out) -> None:
        part = index or 0
        kind = str(block.get("type")) if isinstance(block, dict) else ""
        if kind not in CALLS:
            self.calls.restarts(self._blocks.pop(index, None), None, None, out)
        if kind == "text":
            self._text_start(block, part, out)
        elif kind == "thinking":
            self._thinking_start(block, part, out)
        elif kind in CALLS:
            self._call_start(block, raw, index, out)
        elif kind in RESULTS or kind.endswith("_tool_result"):
            self._result(block, out)
        elif kind in OPAQUE:
            out.append(ReasoningDelta("", part, 0, block))
        elif kind == "compaction":
            said = {k: v for k, v in block.items() if v is not None}
            out.append(ReasoningDelta("", part, 0, said))
        else:
            self.unknown(
                {"type": f"content_block_start/{kind}", "content_block": block}, "block", out
            )

    def _text_start(self, block: dict[str, Any], index: int, out: Out) -> None:
        if text := first_text(block.get("text")):
            out.append(TextDelta(text, index))
        for citation in items_of(block.get("citations")):
            out.append(Citation(index, citation))

    def _thinking_start(self, block: dict[str, Any], index: int, out: Out) -> None:
        if text := first_text(block.get("thinking")):
            out.append(ReasoningDelta(text, index))
        if block.get("signature"):
            echo = {"type": "thinking", "signature": block["signature"]}
            out.append(ReasoningDelta("", index, 0, echo))

    def _call_start(self, block: dict[str, Any], raw: bytes, index: int | None, out: Out) -> None:
        self.ask_once(raw)
        id, name = first_text(block.get("id")), first_text(block.get("name"))
        given = block.get("input")
        held = self._blocks.get(index) or self._before.pop(index, None)
        unplaced = index is None and held is not None and held.state < State.CLOSED
        if index is None:
            held = self.calls.again(held, id, out)
        if held is not None and self.calls.restarts(held, id, name, out):
            self._blocks[index] = held
            return self._give(held, given, raw)
        call = self.calls.open(
            out, self._kind_of(block["type"], name), id=id, field="content_block.id", name=name, seen=block,
            place=(index,), instead=held,
        )  # fmt: skip
        echo = {k: v for k, v in block.items() if k not in _OF_THE_CALL and v is not None}
        call.echo = echo or None
        self._give(call, given, raw)
        if self.reason is not None:
            self.calls.taint(call, BEGUN_LATE)
        if unplaced:
            self.calls.taint(call, UNPLACED)
        if self.calls.lossy:
            self.calls.taint(call, self.calls.lossy)
        if index is not None or not self.calls.lossy:  # one that could not be read is no place
            self._blocks[index] = call

    def _kind_of(self, type_: str, name: str | None) -> Kind:
        kind = self.CALLED[type_]
        family = SERVER_TOOLS.get(name or "") if type_ == "server_tool_use" else None
        return Kind(family, kind.runs_on) if family else kind

    def _give(self, call: Call, given: Any, raw: bytes) -> None:
        """The whole input at once: the fragments, if any follow, win. An empty one says nothing."""
        if given is None and _may_have_input(call):
            self.calls.taint(call, _ELSEWHERE)
        text = input_in(raw) if given else ""
        if not isinstance(given, dict | None) or call.given not in ("", text):
            self.calls.taint(call, "the input in its start is no object, or was another before")
        call.given = call.given or text

    def _result(self, block: dict[str, Any], out: Out) -> None:
        content = block.get("content")
        error = isinstance(content, dict) and str(content.get("type", "")).endswith("_error")
        self.calls.result(
            out, content, id=first_text(block.get("tool_use_id")), family=_family_of(block),
            echo=block,
            is_error=bool(block.get("is_error")) or error,
        )  # fmt: skip

    def _block_stop(self, p: BlockStop, out: Out) -> None:
        call = self._blocks.get(p.index)
        if call is not None:
            self._fill_from_start(call, out)
            self.calls.close(call, out)

    def _fill_from_start(self, call: Call, out: Out) -> None:
        given, call.given = call.given, ""
        if not given:
            if not self.calls.has_text(call) and (_may_have_input(call) or _lacks_input(call)):
                self.calls.taint(call, _ELSEWHERE)
            return
        if self.calls.has_text(call):
            self.scribe.note("args.replaced", call_id=call.id)
        else:
            self.calls.give(call, given, out)

    def _message_delta(self, p: MessageDelta, out: Out) -> None:
        self._count(p.usage)
        self._keep_container(p.delta)
        if details := p.delta.get("stop_details"):
            self.echo["stop_details"] = details
        if p.context_management:
            self.echo["context_management"] = p.context_management
        if raw := first_text(p.delta.get("stop_reason")):
            self.end_with(raw)

    def end_of_calls(self, out: Out) -> None:
        for call in self.calls.unfinished():
            self._fill_from_start(call, out)

    def _message_stop(self, p: MessageStop, out: Out) -> None:
        if self.reason is None:  # said to be over, but never how
            self.reason = self.finish_reason(None)
        raise StreamOver

    def _ping(self, p: Ping, out: Out) -> None:
        self.scribe.note("wire.keepalive")

    def _error(self, p: Error, out: Out) -> None:
        said = p.error if isinstance(p.error, dict) else {"message": str(p.error)}
        code = first_text(said.get("type"), said.get("code"))
        message = first_text(said.get("message"), code) or "the provider reported an error"
        raise StreamFailed(Failure("provider_error", message, code, code in RETRYABLE))

    def _keep_container(self, said: dict[str, Any]) -> None:
        if said.get("container"):
            self.echo["container"] = said["container"]

    def _count(self, usage: Any) -> None:
        """Counts are cumulative: what is said later replaces, what is null does not."""
        if isinstance(usage, dict):
            self._usage.update((k, v) for k, v in usage.items() if v is not None)

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        cached, written = (
            count(raw, "cache_read_input_tokens"),
            count(raw, "cache_creation_input_tokens"),
        )
        fresh = count(raw, "input_tokens")  # this wire does not count cached tokens as input
        return Usage(
            None if fresh is None else fresh + (cached or 0) + (written or 0),
            count(raw, "output_tokens"), cached, written,
            count(raw, "output_tokens_details", "thinking_tokens"), raw,
        )  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {
        BlockDelta: _block_delta,
        BlockStart: _block_start,
        BlockStop: _block_stop,
        MessageStart: _message_start,
        MessageDelta: _message_delta,
        MessageStop: _message_stop,
        Ping: _ping,
        Error: _error,
    }


def _may_have_input(call: Call) -> bool:
    """Does its block bring an object, or the text of one, in a field that we do not know?"""
    beside = [said for name, said in (call.echo or {}).items() if name not in _BESIDE]
    return any(isinstance(s, dict | list) or (type(s) is str and s[:1] == "{") for s in beside)


def _lacks_input(call: Call) -> bool:
    """Says its block no input, not even an empty one, and something that we do not know? That may be a
    field of the input, whatever it is."""
    return "input" not in call.seen and not _KNOWN.issuperset(call.echo or ())


def _family_of(result: dict[str, Any]) -> str:
    type_ = str(result["type"])
    return RESULTS.get(type_) or type_.removesuffix("_tool_result").replace("_", "-")


DELTAS: dict[type, Handler] = {
    Thinking: AnthropicParser._thinking,
    Signature: AnthropicParser._signature,
    Cited: AnthropicParser._cited,
    Compaction: AnthropicParser._compaction,
}


PARSER = AnthropicParser
