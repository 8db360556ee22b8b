"""Cohere v2 chat. Every word of that wire that we know is in this file.

    message-start -> tool-plan-delta* -> call* | content* -> (citation-start, -end)* -> message-end
    call    = tool-call-start(index) -> tool-call-delta(index)* -> tool-call-end(index)
    content = content-start(index) -> content-delta(index)* -> content-end(index)

A call is found by its ``index`` among calls; ``delta.message.tool_calls`` is one object, no list.
The end mark is ``message-end``, after which some deployments still say ``[DONE]``.

The wire before this one, v1, is known and not read: lines of ``{"event_type":"text-generation",…}``, and before
that ``{"text":…,"is_finished":false}``, as Command R answers ``InvokeModelWithResponseStream``. Its calls have
no ids, and go back in another shape of request. A stream of it fails at once, and says what to ask for.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec

from ...core import even
from ...core.calls import UNPLACED, Call, Evidence, State
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
    first_text,
)
from ...core.row import Item
from ...events import Citation, Event, FinishReason, ReasoningDelta, TextDelta, Usage
from ...framing import Framer
from ...framing.lines import Values
from ...framing.sse import SSE

__all__ = ["ITEMS", "PARSER", "CohereParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------


class Content(Payload):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None


class ContentMessage(Payload):
    content: Content | None = None
    role: Any = None


class ContentIn(Payload):
    message: ContentMessage | None = None


class ContentStart(Payload, tag="content-start", tag_field="type"):
    index: int = 0
    delta: ContentIn | None = None


class ContentDelta(Payload, tag="content-delta", tag_field="type"):
    index: int = 0
    delta: ContentIn | None = None
    logprobs: Any = None


class ContentEnd(Payload, tag="content-end", tag_field="type"):
    index: int = 0


class PlanMessage(Payload):
    tool_plan: str | None = None


class PlanIn(Payload):
    message: PlanMessage | None = None


class PlanDelta(Payload, tag="tool-plan-delta", tag_field="type"):
    delta: PlanIn | None = None
    index: Any = None


class Function(Payload):
    name: str | None = None
    arguments: str | None = None


class Entry(Payload):
    id: str | None = None
    type: str | None = None
    function: Function | None = None


class CallMessage(Payload):
    tool_calls: Entry | None = None


class CallIn(Payload):
    message: CallMessage | None = None


class CallStart(Payload, tag="tool-call-start", tag_field="type"):
    index: int | None = None
    delta: CallIn | None = None


class CallDelta(Payload, tag="tool-call-delta", tag_field="type"):
    index: int | None = None
    delta: CallIn | None = None
    logprobs: Any = None


class CallEnd(Payload, tag="tool-call-end", tag_field="type"):
    index: int | None = None


class CitationMessage(Payload):
    citations: Any = None


class CitationIn(Payload):
    message: CitationMessage | None = None


class CitationStart(Payload, tag="citation-start", tag_field="type"):
    index: int = 0
    delta: CitationIn | None = None


class CitationEnd(Payload, tag="citation-end", tag_field="type"):
    index: int = 0


class MessageStart(Payload, tag="message-start", tag_field="type"):
    id: Any = None
    delta: Any = None


class Ending(Payload):
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class MessageEnd(Payload, tag="message-end", tag_field="type"):
    delta: Ending | None = None
    id: Any = None


class Debug(Payload, tag="debug", tag_field="type"):
    prompt: Any = None


class OldEvent(Payload):
    """One of v1: what it is told by."""

    event_type: str | None = None
    is_finished: bool | None = None
    text: Any = None
    generation_id: Any = None
    finish_reason: Any = None
    response: Any = None
    tool_calls: Any = None
    tool_call_delta: Any = None
    citations: Any = None
    documents: Any = None
    search_queries: Any = None
    search_results: Any = None


Payloads: TypeAlias = (
    ContentDelta | ContentStart | ContentEnd | PlanDelta | CallStart | CallDelta | CallEnd
    | CitationStart | CitationEnd | MessageStart | MessageEnd | Debug
)  # fmt: skip


class _Header(msgspec.Struct):
    id: str | None = None


# --- the types of tool entries ------------------------------------------------------------------

_OLD = (b'"event_type"', b'"is_finished"')
_decode_new = msgspec.json.Decoder(Payloads).decode
_decode_old = msgspec.json.Decoder(OldEvent).decode


def _decode(data: bytes) -> Any:
    try:
        return _decode_new(data)
    except msgspec.ValidationError:
        if b'"type"' in data or not any(word in data for word in _OLD):
            raise
        return _decode_old(data)


_ID = "tool_calls.id"
ITEMS = (
    Item("tool_calls", "function", "call", "client", "natural", _ID,
         "tool_calls.function.arguments, JSON text"),
    Item("role=tool", "function", "output", "client", "natural", "tool_call_id", "content",
         "tool_call_id", "request only"),
)  # fmt: skip
ERRORS = {"ERROR", "TIMEOUT"}  # reasons that are failures
BEGINNINGS = {
    "message-start",
    "content-start",
    "tool-plan-delta",
    "stream-start",
    "text-generation",
}
OLD = (
    "this is Cohere's v1 chat, which is not read: ask for v2 (/v2/chat; at Amazon Bedrock, "
    "ConverseStream instead of InvokeModelWithResponseStream)"
)

# --- odd shapes, made even ----------------------------------------------------------------------

_entries = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _only_one(value: bytes) -> bytes | None:
    """A list of one entry, as Chat has it, is that entry; of several none can be the one."""
    entries = _entries(value) if value[:1] == b"[" else []
    return bytes(entries[0]) if len(entries) == 1 else even.DROP


def _as_content(value: bytes) -> bytes | None:
    """Plain text is content of type text, and a list of one content is that one."""
    if value[:1] == b"[" and len(_entries(value)) > 1:
        raise even.Uneven("several contents in place of one")  # passed on whole
    return b'{"text":' + value + b"}" if value[:1] == b'"' else _only_one(value)


# --- the way in ---------------------------------------------------------------------------------


class CohereParser(Parser):
    """One v2 chat stream."""

    name = "cohere"
    END = "message-end"
    TYPE_FIELD = "type"
    decode: ClassVar[Decode] = staticmethod(_decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "COMPLETE": "stop",
        "STOP_SEQUENCE": "stop",
        "MAX_TOKENS": "length",
        "TOOL_CALL": "tool_calls",
        "ERROR": "other",  # told as a failure
        "TIMEOUT": "other",  # told as a failure
        "ERROR_TOXIC": "content_filter",  # older
        "ERROR_LIMIT": "length",  # older
    }
    EVIDENCE = Evidence(
        "tool-call-end of its index",
        "nothing",
        "message-end with a known reason",
        "at tool-call-end",
    )
    CALL_TEXTS = ("delta.message.tool_calls.function.arguments",)
    CALL_KEYS = ("index",)
    CALL_WORDS = (b'"tool_calls"', b'"function"', b'"arguments"')
    ERRORS_AT = ("error",)
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "delta.message.tool_calls": ("wire.shape_odd", _only_one),
        "delta.message.tool_calls.function.arguments": ("args.object", even.object_text),
        "delta.message.content": ("wire.shape_odd", _as_content),
        "index": ("wire.shape_odd", even.integer),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._calls: dict[int | None, Call] = {}  # one that says no index has a place as well
        self._usage: dict[str, Any] = {}

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Values(limit) if start == "json" else SSE(limit)  # v1 comes in lines

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        kind = payload.get("type", payload.get("event_type"))
        if kind is None:
            return isinstance(payload.get("is_finished"), bool)
        return str(kind) in BEGINNINGS

    def heading(self, data: bytes) -> Heading:
        return Heading(None, first_text(msgspec.json.decode(data, type=_Header).id))

    def means(self, payload: Any) -> bool:
        """Content of a kind that we do not know has lost its only field by now."""
        content = _content_of(payload) if type(payload) in (ContentStart, ContentDelta) else None
        return content is None or content.type in (None, "text", "thinking")

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        index, kind = payload.get("index"), str(payload.get("type"))
        if kind.startswith(("content-", "citation-", "tool-plan-")):
            return []  # those are counted by themselves, or not at all
        if type(index) is not int:
            return None
        return [self._calls[index]] if index in self._calls else []

    # the hot kind first

    def _content(self, p: ContentDelta | ContentStart, out: Out) -> None:
        content = _content_of(p)
        if content is None:
            return
        if content.text:
            out.append(TextDelta(content.text, p.index))
        if content.thinking:
            out.append(ReasoningDelta(content.thinking, p.index))

    def _plan(self, p: PlanDelta, out: Out) -> None:
        """What the model means to do: reasoning, but it goes back as ``tool_plan``."""
        message = p.delta.message if p.delta is not None else None
        if message is not None and message.tool_plan:
            out.append(ReasoningDelta(message.tool_plan, 0, 0, {"type": "tool_plan"}))

    def _call_start(self, p: CallStart, out: Out) -> None:
        entry = _entry_of(p)
        function = entry.function or Function()
        call = self._calls.get(p.index)
        unplaced = p.index is None and call is not None and call.state < State.CLOSED
        if call is None or not self.calls.restarts(call, entry.id, function.name, out):
            if call is not None:
                self.scribe.note("call.index_reused", index=p.index)
            call = self.calls.open(
                out, id=entry.id, field=_ID, name=function.name, seen=p, place=(p.index,),
                instead=call,
            )  # fmt: skip
            if p.index is not None or not self.calls.lossy:  # one that cannot be read is no place
                self._calls[p.index] = call
            if unplaced:
                self.calls.taint(call, UNPLACED)
        if entry.id is None and entry.function is None:
            self.calls.taint(call, "its start says nothing of it")
        if function.arguments:
            self.calls.append(call, function.arguments, out)

    def _call_delta(self, p: CallDelta, out: Out) -> None:
        entry = _entry_of(p)
        function = entry.function or Function()
        call = self._calls.get(p.index)
        if call is None:
            self.calls.astray((p.index,), index=p.index)
            return
        if entry.id or function.name:
            self.calls.hear(call, out, id=entry.id, field=_ID, name=function.name)
        if function.arguments:
            grow = self.calls.merge_object if self.even_objects else self.calls.append
            grow(call, function.arguments, out)
        elif function.arguments is None and not (entry.id or function.name):
            self.calls.textless(call)

    def _call_end(self, p: CallEnd, out: Out) -> None:
        call = self._calls.get(p.index)
        if call is not None:
            self.calls.close(call, out)

    def _citation(self, p: CitationStart, out: Out) -> None:
        cited = p.delta.message.citations if p.delta is not None and p.delta.message else None
        for citation in cited if isinstance(cited, list) else (cited,):
            if citation:
                out.append(Citation(_part_of(citation), citation))

    def _message_end(self, p: MessageEnd, out: Out) -> None:
        ending = p.delta or Ending()
        self._usage = ending.usage or {}
        self.raw_reason = ending.finish_reason
        if ending.error or ending.finish_reason in ERRORS:
            raise StreamFailed(_failure(ending))
        self.reason = self.finish_reason(ending.finish_reason)
        raise StreamOver

    def _message_start(self, p: MessageStart, out: Out) -> None:
        self.begin_answer(out)

    def _old(self, p: OldEvent, out: Out) -> None:
        """Not this wire: nothing of it may be heard as if it were."""
        raise StreamFailed(Failure("protocol", OLD, "v1"))

    def _nothing(self, p: Any, out: Out) -> None:
        """Known, and of no use to us."""

    def _done(self, out: Out) -> None:
        """Comes after the end, if at all; alone it completes nothing."""

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        return Usage(  # billed_units counts something else
            count(raw, "tokens", "input_tokens"), count(raw, "tokens", "output_tokens"),
            count(raw, "cached_tokens"), None, count(raw, "tokens", "reasoning_tokens"), raw,
        )  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {
        ContentDelta: _content,
        ContentStart: _content,
        ContentEnd: _nothing,
        PlanDelta: _plan,
        CallStart: _call_start,
        CallDelta: _call_delta,
        CallEnd: _call_end,
        CitationStart: _citation,
        CitationEnd: _nothing,
        MessageStart: _message_start,
        MessageEnd: _message_end,
        Debug: _nothing,
        OldEvent: _old,
    }
    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done, b'"[DONE]"': _done}


def _content_of(p: ContentDelta | ContentStart) -> Content | None:
    message = p.delta.message if p.delta is not None else None
    return message.content if message is not None else None


def _entry_of(p: CallStart | CallDelta) -> Entry:
    message = p.delta.message if p.delta is not None else None
    return (message.tool_calls if message is not None else None) or Entry()


def _part_of(citation: Any) -> int:
    """The content that a citation is about."""
    return (count(citation, "content_index") or 0) if isinstance(citation, dict) else 0


def _failure(ending: Ending) -> Failure:
    raw, error = ending.finish_reason, ending.error
    message = error.get("message") if isinstance(error, dict) else error
    said = str(message or f"the answer ended with {raw}")
    return Failure("provider_error", said, raw, raw in ERRORS)


PARSER = CohereParser
