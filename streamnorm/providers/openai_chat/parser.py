"""OpenAI Chat Completions and those who imitate it. Every word of that wire is in this file.

    chunk{delta.role} -> chunk{delta.*}* -> chunk{finish_reason} -> [chunk{usage}] -> [DONE]

A chunk has no kind; its ``delta`` says what it says. A call is an entry of ``delta.tool_calls``,
found by ``index`` in theory and by ``_find`` in practice. No call has a closing mark of its own:
``finish_reason`` (or ``[DONE]``) completes those before it. Choices are kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import msgspec

from ...calls import FUNCTION, OPEN, Call, Kind, State
from ...events import (
    Citation,
    Echo,
    Event,
    FinishReason,
    ReasoningDelta,
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
    Decode,
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
)

__all__ = ["ITEMS", "ChatParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# The hot types have the few fields of the usual chunk. A chunk that uses another one does not fit
# them and is read again as a ``Full…`` type, with all fields that any imitator is known to send.
# Fields stand in the order of the wire: msgspec looks for the next field first.


class Function(Wire):
    name: str | None = None
    arguments: str | None = None


class Entry(Wire):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: Function | None = None


class Delta(Wire):
    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: None = None
    tool_calls: list[Entry] | None = None
    function_call: None = None
    audio: None = None


class Choice(Wire):
    index: int = 0
    delta: Delta | None = None
    logprobs: Any = None
    finish_reason: str | None = None
    native_finish_reason: Any = None
    content_filter_results: Any = None


class Chunk(Wire):
    # What follows the envelope first: most chunks are read from there (see ``envelope``).
    choices: list[Choice]
    usage: dict[str, Any] | None = None
    obfuscation: Any = None
    id: Any = None
    provider: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None


class FullFunction(Wire):
    name: str | None = None
    arguments: str | None = None
    # Known, and of no use to us.
    description: Any = None
    parameters: Any = None
    strict: Any = None


class Custom(Wire):
    name: str | None = None
    input: str | None = None


class FullEntry(Wire):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FullFunction | None = None
    custom: Custom | None = None
    extra_content: Any = None
    thought_signature: Any = None
    provider_specific_fields: Any = None


class FullDelta(Wire):
    content: str | list[Any] | None = None
    tool_calls: list[FullEntry] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    function_call: FullFunction | None = None
    audio: Any = None
    images: Any = None
    annotations: list[Any] | None = None
    citations: Any = None
    reasoning_details: list[Any] | None = None
    reasoning_text: str | None = None
    reasoning_opaque: Any = None
    reasoning_encrypted: Any = None
    reasoning_signature: Any = None
    signature: Any = None
    thinking_blocks: Any = None
    executed_tools: list[dict[str, Any]] | None = None
    # Known, and of no use to us.
    role: Any = None
    name: Any = None
    channel: Any = None
    token_id: Any = None
    provider_metadata: Any = None
    graph_data: Any = None
    image_data: Any = None
    llm_data: Any = None
    translation_data: Any = None
    web_search_data: Any = None
    tool_call_id: Any = None
    prefix: Any = None
    content_blocks: Any = None
    provider_specific_fields: Any = None


class FullChoice(Wire):
    delta: FullDelta | None = None
    index: int = 0
    finish_reason: str | None = None
    # Known, and of no use to us.
    logprobs: Any = None
    native_finish_reason: Any = None
    content_filter_results: Any = None
    content_filter_result: Any = None
    content_filter_offsets: Any = None
    stop_reason: Any = None
    matched_stop: Any = None
    token_ids: Any = None
    obfuscation: Any = None
    seed: Any = None
    text: Any = None
    role: Any = None
    message: Any = (
        None  # beside a delta; alone in an answer that is no stream (see ``_whole_answer``)
    )
    trace_details: Any = None


class FullChunk(Wire):
    choices: list[FullChoice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    x_groq: Any = None
    citations: Any = None
    search_results: Any = None
    # Known, and of no use to us. (``id`` and ``model`` are read once, by ``heading``.)
    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    obfuscation: Any = None
    provider: Any = None
    prompt_filter_results: Any = None
    prompt_token_ids: Any = None
    stream_options: Any = None
    time_info: Any = None
    timings: Any = None
    moderation: Any = None
    copilot_usage: Any = None
    cost: Any = None
    created_at: Any = None
    generation_id: Any = msgspec.field(default=None, name="generationId")
    latency_checkpoint: Any = None
    model_id: Any = None
    model_version: Any = None
    sla_metrics: Any = None
    system: Any = None
    type: Any = None
    request_id: Any = None
    metrics: Any = None
    nvext: Any = None
    kv_transfer_params: Any = None


class _Header(msgspec.Struct):
    id: str | None = None
    model: str | None = None


# --- the types of tool entries ------------------------------------------------------------------

_ID = "tool_calls[].id"
ITEMS = (
    Item("tool_calls[].function", "function", "call", "client", "natural", _ID, "function.arguments, JSON text"),
    Item("tool_calls[].custom", "custom", "call", "client", "natural", _ID, "custom.input, free text"),
    Item("function_call", "function", "call", "client", "synthetic", "", "function_call.arguments, JSON text",
         note="legacy: one per message, no id on the wire"),
    Item("role=tool", "function", "output", "client", "natural", "tool_call_id", "content", "tool_call_id",
         "request only"),
    Item("role=function", "function", "output", "client", "synthetic", "name", "content", "name",
         "legacy, request only"),
    Item("executed_tools[]", "server-tool", "call+output", "provider", "synthetic", "",
         "arguments, JSON text", "index", "Groq"),
)  # fmt: skip
CUSTOM = Kind("custom", "client", "input")
EXECUTED = Kind("server-tool", "provider")

RETRYABLE = {"rate_limit_exceeded", "server_error", "overloaded", "overloaded_error", "timeout",
             "429", "500", "502", "503", "504", "529"}  # fmt: skip
_NOT_AN_ID = {"", "null", "None"}
_ERRORS = {"error", "insufficient_system_resource"}


def _said(text: str | None) -> str | None:
    """An id or a name; the literal "null" and the empty text mean that none was said."""
    return None if text in _NOT_AN_ID else text


class _Choice:
    """What is known of the calls of one choice."""

    __slots__ = ("by_index", "executed", "last", "legacy", "reason", "row")

    def __init__(self) -> None:
        self.by_index: dict[int, Call] = {}
        self.row: list[Call] = []  # the calls of the last chunk that had several entries
        self.last: Call | None = None
        self.legacy: Call | None = None
        self.executed: dict[int, Call] = {}
        self.reason: FinishReason | None = None


# --- the way in ---------------------------------------------------------------------------------


class ChatParser(Parser):
    """One Chat Completions stream."""

    name = "openai_chat"
    END = "finish_reason or [DONE]"
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Chunk).decode)
    decode_all: ClassVar[Decode | None] = staticmethod(msgspec.json.Decoder(FullChunk).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "stop": "stop",
        "eos": "stop",
        "end_turn": "stop",
        "stop_sequence": "stop",
        "COMPLETE": "stop",
        "STOP": "stop",
        "length": "length",
        "max_tokens": "length",
        "MAX_TOKENS": "length",
        "model_length": "length",
        "tool_calls": "tool_calls",
        "tool_use": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
        "refusal": "refusal",
        "error": "stop",
        "insufficient_system_resource": "stop",
    }
    QUIRKS = {
        "choices[].delta.tool_calls[].function.arguments": ("args.object", _even.json_text),
        "choices[].message.tool_calls[].function.arguments": ("args.object", _even.json_text),
        "choices[].delta.function_call.arguments": ("args.object", _even.json_text),
        "choices[].delta.tool_calls[].index": ("wire.shape_odd", lambda value: _integer(value)),  # noqa: PLW0108 - defined below
        "choices[].delta.tool_calls[].id": ("wire.shape_odd", _even.json_text),
        "choices[].index": ("wire.shape_odd", lambda v: _integer(v) or b"0"),
        "choices[].finish_reason": ("wire.shape_odd", _even.json_text),
        "choices[].delta.tool_calls": ("wire.shape_odd", lambda v: b"[" + v + b"]"),
        "choices": ("wire.shape_odd", lambda v: b"[]"),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls.eager = False  # names may come in pieces
        self._first = _Choice()
        self._choices: dict[int, _Choice] = {0: self._first}
        self._more_choices: set[int] = set()  # those beyond the first that were heard of
        self._usage: dict[str, Any] = {}
        self._refused = False
        self._failure: Failure | None = None
        self._cited: dict[str, Any] = {}
        self._objects = False  # this payload's arguments came as objects

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Whole(limit) if start == "json" else SSE(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        return isinstance(payload.get("choices"), list) or (
            "error" in payload and "type" not in payload and "event_type" not in payload
        )

    def envelope(self, data: bytes) -> int:
        return max(0, data.find(b'"choices":'))

    def heading(self, data: bytes) -> Heading:
        header = msgspec.json.decode(data, type=_Header)
        return Heading(first_text(header.model), first_text(header.id))

    def kind_of(self, payload: Any) -> str:
        known = payload.get("type") or payload.get("object") if isinstance(payload, dict) else None
        return str(known or "chunk")

    def means(self, payload: Any) -> bool:
        return (
            payload.choices is not None
            or (payload.usage is not None and payload.type is None)  # other wires have kinds
            or payload.error is not None
            or payload.x_groq is not None
            or payload.object == "chat.completion.chunk"  # see recordings: chunk_without_choices
            or payload.type == "ping"
        )

    # the hot handler: text, then argument fragments of a known index

    def _chunk(self, p: Chunk, out: Out) -> None:
        for choice in p.choices:
            number, delta = choice.index, choice.delta
            if delta is not None:
                thought = delta.reasoning_content or delta.reasoning
                if thought:
                    self._think(thought, number, delta, out)
                if delta.content:
                    out.append(TextDelta(delta.content, 0, number))
                entries = delta.tool_calls
                if entries:
                    # One fragment and nothing else, of a call that is known by its index: the
                    # usual entry, written out as every function call can be measured here.
                    entry, first = entries[0], self._first
                    function = entry.function
                    if (
                        function is not None
                        and function.name is None
                        and entry.id is None
                        and not number
                        and len(entries) == 1
                        and (call := first.by_index.get(entry.index)) is not None  # type: ignore[arg-type]
                        and (text := function.arguments)
                    ):
                        first.last = call
                        if call.state is OPEN and text[0] != "{":
                            call.fragments.append(text)
                            out.append(ToolCallDelta(call.ordinal, text))
                        else:
                            self.calls.extend(call, text, out)
                    else:
                        self._entries(number, entries, out)
            if number:
                self._more_choices.add(number)
            if choice.finish_reason:
                self._finish_choice(number, choice.finish_reason, out)
        if p.usage is not None:
            self._count(p.usage)

    def _think(self, thought: str, number: int, delta: Delta, out: Out) -> None:
        out.append(ReasoningDelta(thought, 0, number))
        if delta.reasoning:  # the field that such a server wants it back in
            self.echo.setdefault("reasoning_field", "reasoning")

    def _entries(self, number: int, entries: Sequence[Entry | FullEntry], out: Out) -> None:
        choice = self._choices.setdefault(number, _Choice())
        for position, entry in enumerate(entries):
            self._entry(number, choice, entry, (position, len(entries)), out)

    # --- which call is meant --------------------------------------------------------------------

    def _entry(
        self,
        number: int,
        choice: _Choice,
        entry: Entry | FullEntry,
        place: tuple[int, int],
        out: Out,
    ) -> None:
        id, name, text = _said(entry.id), _name_of(entry), _text_of(entry)
        call = self._find(number, choice, entry, (id, name, text), place)
        if call is None:
            call = self._open(number, choice, entry, id, place, out)
        else:
            self.calls.hear(call, out, id=id, field=_ID)
        if name:
            self._hear_name(call, name, out)
        self._keep_echo(call, entry)
        choice.last = call
        if text:
            if self._objects:
                self.calls.merge_object(call, text, out)
            else:
                self.calls.extend(call, text, out)

    def _find(
        self, number: int, choice: _Choice, entry: Entry | FullEntry,
        said: tuple[str | None, str | None, str | None], place: tuple[int, int],
    ) -> Call | None:  # fmt: skip
        """The call that an entry continues, or None if it begins one. Name is never a key."""
        id, name, text = said
        if entry.index is not None:
            return self._find_by_index(number, choice, entry.index, said)
        self.scribe.note("call.index_missing")
        if id is not None:
            known = self.calls.by_id(number, id)
            return known or _unnamed_yet(choice.last)
        if place[1] > 1:
            at = place[0]
            return (
                choice.row[at]
                if at < len(choice.row) and not _begins(choice.row[at], name, text)
                else None
            )
        if choice.last is None or _begins(choice.last, name, text):
            return None
        return choice.last

    def _find_by_index(
        self, number: int, choice: _Choice, index: int,
        said: tuple[str | None, str | None, str | None],
    ) -> Call | None:  # fmt: skip
        id, name, text = said
        held = choice.by_index.get(index)
        known = self.calls.by_id(number, id) if id is not None else None
        if held is None:
            # An id that is known under another index: the same call only if nothing begins here.
            return known if name is None else None
        if known is not None and known is not held and held.wire_id != id:
            return known
        if id is None or id == held.wire_id or known is held:
            return None if id is None and _begins(held, name, text) else held
        if held.wire_id is None:
            return None if _begins(held, name, text) else held
        return None if name or (_starts_object(text) and _is_whole(held)) else held

    def _open(
        self, number: int, choice: _Choice, entry: Entry | FullEntry, id: str | None, place: tuple[int, int],
        out: Out,
    ) -> Call:  # fmt: skip
        reused = entry.index is not None and entry.index in choice.by_index
        if reused:
            self.scribe.note("call.index_reused", index=entry.index)
        call = self.calls.open(
            out, CUSTOM if _custom(entry) is not None else FUNCTION, choice=number, id=id, field=_ID,
            inferred=id is None and (reused or entry.index is None), seen=entry,
        )  # fmt: skip
        if entry.index is not None:
            choice.by_index[entry.index] = call
        if place[1] > 1:
            if place[0] == 0:
                choice.row = []
            choice.row.append(call)
        return call

    def _hear_name(self, call: Call, name: str, out: Out) -> None:
        """Names come whole, again and again, or in pieces before the first fragment."""
        held = call.name
        if held and not call.started and name != held:
            if held.startswith(name) and call.fragments:
                return
            name = name if name.startswith(held) else held + name
        elif held and call.started:
            return
        self.calls.hear(call, out, name=name)

    def _keep_echo(self, call: Call, entry: Entry | FullEntry) -> None:
        for key in ("extra_content", "thought_signature", "provider_specific_fields"):
            value = getattr(entry, key, None)
            if value is not None:
                call.echo = {**(call.echo or {}), key: value}

    # --- the end of a choice, and of all --------------------------------------------------------

    def _finish_choice(self, number: int, raw: str, out: Out) -> None:
        choice = self._choices.setdefault(number, _Choice())
        reason = self.finish_reason(raw)
        if raw in _ERRORS:
            self._failure = Failure("provider_error", f"the answer ended with {raw}", raw, True)
        if choice.reason is not None:
            self.scribe.note("finish.repeated", raw_reason=raw)
        if choice.reason in (None, "stop"):
            choice.reason = reason
            if number == 0 or self.reason is None:
                self.reason, self.raw_reason = reason, raw
        if self._failure is None:
            self.calls.end_turn(out, reason, number)

    def _done(self, out: Out) -> None:
        self.calls.end_turn(out, None)
        self.end_of_input(out)
        raise StreamOver

    def end_of_input(self, out: Out) -> None:
        if self._failure is not None:
            raise StreamFailed(self._failure)
        if any(number not in self._choices or self._choices[number].reason is None
               for number in self._more_choices):  # fmt: skip
            self.reason = None
        if self._refused and self.reason == "stop":
            self.reason = "refusal"

    # --- chunks that use rare fields ------------------------------------------------------------

    def _evened(self, data: bytes, event: str) -> Any:
        before = self.scribe.counts["args.object"]
        payload = super()._evened(data, event)
        self._objects = self.scribe.counts["args.object"] > before
        return payload

    def _full_chunk(self, p: FullChunk, out: Out) -> None:
        if p.type == "ping":
            self.scribe.note("wire.keepalive")
        if p.error is not None:
            raise StreamFailed(_failure(p.error))
        if isinstance(p.x_groq, dict):
            if p.x_groq.get("error"):
                raise StreamFailed(_failure(p.x_groq["error"]))
            self._count(p.x_groq.get("usage"))
        for choice in p.choices or ():
            if choice.delta is not None:
                self._full_delta(choice.index, choice.delta, out)
            elif choice.message is not None and p.object == "chat.completion":
                raise StreamFailed(_whole_answer())
            if choice.index:
                self._more_choices.add(choice.index)
            if choice.finish_reason:
                self._finish_choice(choice.index, choice.finish_reason, out)
        self._objects = False
        for name in ("citations", "search_results"):
            self._cite_once(name, getattr(p, name), out)
        if p.usage is not None:
            self._count(p.usage)

    def _full_delta(self, number: int, delta: FullDelta, out: Out) -> None:
        text = delta.reasoning_content or delta.reasoning or delta.reasoning_text or ""
        echo = _reasoning_echo(delta)
        if delta.reasoning:
            self.echo.setdefault("reasoning_field", "reasoning")
        if echo:
            out.append(
                ReasoningDelta(text or _details_text(delta.reasoning_details), 0, number, echo)
            )
        elif text:
            out.append(ReasoningDelta(text, 0, number))
        if isinstance(delta.content, list):
            self._content(number, delta.content, out)
        elif delta.content:
            out.append(TextDelta(delta.content, 0, number))
        if delta.refusal:
            self._refused = True
            out.append(TextDelta(delta.refusal, 0, number, {"type": "refusal"}))
        if delta.tool_calls:
            self._entries(number, delta.tool_calls, out)
        if delta.function_call is not None:
            self._legacy(number, delta.function_call, out)
        for annotation in delta.annotations or ():
            out.append(Citation(0, annotation))
        self._cite_once("citations", delta.citations, out)
        for tool in delta.executed_tools or ():
            self._executed(number, tool, out)
        for media in ("audio", "images"):  # no event of ours carries media: passed on whole
            if getattr(delta, media) is not None:
                out.append(Unrecognized(f"media/delta.{media}", getattr(delta, media)))

    def _content(self, number: int, parts: list[Any], out: Out) -> None:
        """Content as a list of typed parts: texts are told, the rest is passed on whole."""
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                out.append(TextDelta(text, 0, number))
            else:
                kind = part.get("type") if isinstance(part, dict) else None
                self.unknown({"type": f"content/{kind}", "part": part}, "content", out)

    def _legacy(self, number: int, function: FullFunction, out: Out) -> None:
        choice = self._choices.setdefault(number, _Choice())
        call = choice.legacy
        if call is None or call.state is State.OVER:
            call = choice.legacy = self.calls.open(
                out, choice=number, field="function_call", seen=function
            )
        if name := _said(function.name):
            self._hear_name(call, name, out)
        if function.arguments:
            self.calls.extend(call, function.arguments, out)

    def _executed(self, number: int, tool: dict[str, Any], out: Out) -> None:
        """Groq's own tools: the call first, then the same entry with what it produced."""
        choice = self._choices.setdefault(number, _Choice())
        index = tool.get("index")
        index = index if isinstance(index, int) else 0
        call = choice.executed.get(index)
        if call is None:
            call = choice.executed[index] = self.calls.open(
                out, EXECUTED, choice=number, name=first_text(tool.get("name"), tool.get("type")),
                field="executed_tools[]", seen=tool,
            )  # fmt: skip
        arguments = tool.get("arguments")
        if isinstance(arguments, str) and arguments:
            self.calls.settle(call, arguments, out)
            self.calls.close(call, out)
        output = {
            k: v for k, v in tool.items() if k not in {"index", "type", "name", "arguments"} and v
        }
        if tool.get("output") is not None and call.state is State.OVER:
            self.calls.result(out, output, id=call.id, call=call)

    def _cite_once(self, name: str, cited: Any, out: Out) -> None:
        """Some vendors repeat the whole list on every chunk: told when it changes."""
        if cited and self._cited.get(name) != cited:
            self._cited[name] = cited
            out.append(Citation(0, {name: cited}))

    # --- usage ----------------------------------------------------------------------------------

    def _count(self, usage: Any) -> None:
        """Cumulative, or all zero on the way: the last that counts anything wins."""
        if isinstance(usage, dict) and (not self._usage or any(usage.values())):
            self._usage = usage

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        cached = count(raw, "prompt_tokens_details", "cached_tokens")
        if cached is None:
            cached = count(raw, "prompt_cache_hit_tokens")
        return Usage(
            count(raw, "prompt_tokens"), count(raw, "completion_tokens"), cached,
            count(raw, "prompt_tokens_details", "cache_write_tokens"),
            count(raw, "completion_tokens_details", "reasoning_tokens"), raw,
        )  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {Chunk: _chunk, FullChunk: _full_chunk}
    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done}


def _custom(entry: Entry | FullEntry) -> Custom | None:
    return entry.custom if isinstance(entry, FullEntry) else None


def _name_of(entry: Entry | FullEntry) -> str | None:
    source = _custom(entry) or entry.function
    return _said(source.name) if source is not None else None


def _text_of(entry: Entry | FullEntry) -> str | None:
    if (custom := _custom(entry)) is not None:
        return custom.input
    return entry.function.arguments if entry.function is not None else None


def _starts_object(text: str | None) -> bool:
    return bool(text) and text.lstrip()[:1] == "{"  # type: ignore[union-attr]


def _is_whole(call: Call) -> bool:
    """Are the arguments held so far one whole object? Asked seldom, and cheap to deny."""
    if not call.fragments or not call.fragments[-1].rstrip().endswith("}"):
        return False
    try:
        return type(msgspec.json.decode(call.raw)) is dict
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _begins(held: Call, name: str | None, text: str | None) -> bool:
    """Without an id: does this begin a call after ``held``, rather than go on with it?"""
    if held.state is State.OVER:
        return bool(name or text)
    if name is None or not _is_whole(held):
        return False
    if name != held.name and not text:
        return True
    return _starts_object(text) and not text.startswith(held.raw)  # type: ignore[union-attr]


def _unnamed_yet(last: Call | None) -> Call | None:
    """A late id belongs to the last call if that has neither an id nor fragments yet."""
    if (
        last is not None
        and last.wire_id is None
        and not last.fragments
        and last.state < State.CLOSED
    ):
        return last
    return None


def _reasoning_echo(delta: FullDelta) -> Echo:
    names = ("reasoning_details", "reasoning_opaque", "reasoning_encrypted", "thinking_blocks",
             "reasoning_signature", "signature")  # fmt: skip
    return {name: value for name in names if (value := getattr(delta, name))}


def _details_text(details: list[Any] | None) -> str:
    parts = [d for d in details or () if isinstance(d, dict)]
    return "".join(first_text(d.get("text"), d.get("summary")) or "" for d in parts)


def _integer(value: bytes) -> bytes | None:
    digits = value.strip(b'"')
    return digits if digits.isdigit() else None


def _whole_answer() -> Failure:
    return Failure("protocol", "the body is a whole answer, not a stream: ask with stream=true")


def _failure(error: Any) -> Failure:
    if not isinstance(error, dict):
        return Failure("provider_error", str(error) or "the provider reported an error")
    code = next(
        (str(c) for c in (error.get("code"), error.get("type"), error.get("status_code")) if c),
        None,
    )
    message = first_text(error.get("message"), error.get("error"), code)
    return Failure(
        "provider_error", message or "the provider reported an error", code, code in RETRYABLE
    )
