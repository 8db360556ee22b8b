"""OpenAI Chat Completions and those who imitate it. Every word of that wire is in this file.

    chunk{delta.role} -> chunk{delta.*}* -> chunk{finish_reason} -> [chunk{usage}] -> [DONE]

A chunk has no kind; its ``delta`` says what it says. A call is an entry of ``delta.tool_calls``,
found by ``entries.Choice``. No call has a closing mark of its own: a ``finish_reason`` that is a known,
normal word completes those before it, ``[DONE]`` alone only whole objects. Choices are kept apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec

from ...core import even
from ...core.calls import OPEN, Call, Evidence, Kind, State
from ...core.media import Shown
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
    Word,
    count,
    first_count,
    first_text,
    items_of,
    replaces,
)
from ...core.stencil import NEVER, Stencil
from ...events import (
    Citation,
    Echo,
    Event,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from ...framing import Framer
from ...framing.lines import Whole
from ...framing.sse import SSE
from ...limits import LimitReached
from ...text.written import json_text
from .content import pictures, sound, tell
from .entries import (
    AFTER_THE_END,
    BUILTIN,
    EXECUTED,
    ITEMS,
    LEGACY,
    NO_CALL_THERE,
    STEPS,
    Choice,
    Entry,
    FullEntry,
    FullFunction,
    said,
)

__all__ = ["ITEMS", "PARSER", "ChatParser", "failure_of"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# The hot types have the few fields of the usual chunk. A chunk that uses another one does not fit
# them and is read again as a ``Full…`` type, with all fields that any imitator is known to send.
# Fields stand in the order of the wire: msgspec looks for the next field first.


class Delta(Payload):
    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: None = None
    tool_calls: list[Entry] | None = None
    function_call: None = None
    audio: None = None


class Part(Payload):
    index: int = 0
    delta: Delta | None = None
    logprobs: Any = None
    finish_reason: str | None = None
    native_finish_reason: Any = None
    content_filter_results: Any = None


class Chunk(Payload):
    # What follows the envelope first: most chunks are read from there (see ``envelope``).
    choices: list[Part]
    usage: dict[str, Any] | None = None
    obfuscation: Any = None
    id: Any = None
    provider: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None


class FullDelta(Payload):
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
    reasoning_steps: list[Any] | None = None
    error: Any = None
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


class FullPart(Payload):
    delta: FullDelta | None = None
    index: int = 0
    finish_reason: str | None = None
    error: Any = None
    usage: dict[str, Any] | None = None
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
    text: str | None = None  # of a completion that is no chat; beside a delta it says the same
    role: Any = None
    message: Any = (
        None  # beside a delta; alone in an answer that is no stream (see ``_whole_answer``)
    )
    trace_details: Any = None


class FullChunk(Payload):
    choices: list[FullPart] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    x_groq: Any = None
    citations: Any = None
    search_results: Any = None
    web_search: Any = None
    related_questions: Any = None
    images: Any = None
    base_resp: Any = None
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
    # An error may also be the payload itself.
    message: Any = None
    detail: Any = None
    code: Any = None
    errors: Any = None
    kv_transfer_params: Any = None
    input_sensitive: Any = None
    output_sensitive: Any = None
    input_sensitive_type: Any = None
    output_sensitive_type: Any = None
    output_sensitive_int: Any = None


class _Header(msgspec.Struct):
    id: str | None = None
    model: str | None = None


# Sources beside the choices: of a search, of the pictures in it, of what to ask next.
SOURCES = ("citations", "search_results", "web_search", "images", "related_questions")
# What a chunk says of whose it is. One that says no more has lost its choices; padding says some.
_HEAD = {"id", "object", "created", "model", "service_tier", "system_fingerprint", "provider"}
# What may stand before the choices of every chunk and be skipped, as it says nothing to us.
_SAYING = {"choices", "usage", "error", "errors", "x_groq", "type", "base_resp", *SOURCES}
_Envelope = msgspec.defstruct(
    "_Envelope",
    [
        (name, None if name in _SAYING else Any, None)
        for name in FullChunk.__struct_encode_fields__
        if name != "choices"
    ],
    forbid_unknown_fields=True,
)


# Where servers were seen to count these, best first.
CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
    ("cache_read_input_tokens",),
)
WRITTEN = (("prompt_tokens_details", "cache_write_tokens"), ("cache_creation_input_tokens",))
REASONING = (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))
RETRYABLE = {"rate_limit_exceeded", "server_error", "overloaded", "overloaded_error", "timeout",
             "429", "500", "502", "503", "504", "529"}  # fmt: skip
# MiniMax's codes of errors that pass, after its "Error Codes" (to be retried later) and the ``base_resp`` of
# its API reference: unknown, timeout, requests a minute, internal, internal, of a system behind it, tokens
# a minute, connections, too sudden a growth. 2056 is none: that limit lasts for hours.
PASSING = {1000, 1001, 1002, 1013, 1024, 1033, 1039, 1041, 2045}
_ANSWERS = 16  # so many are remembered: where there are more, chunks have ids of their own
# Words for an end that is a failure -> may the same request succeed if it is sent again?
ERRORS = {
    "error": True,
    "insufficient_system_resource": True,  # DeepSeek
    "network_error": True,  # Z.ai
    "engine_overloaded": True,  # Moonshot
    "timeout": True,
    "abort": True,  # vLLM, SGLang: the request was aborted
    "cancelled": False,
    "malformed_function_call": True,  # Gemini's compatible endpoint, in three spellings
    "MALFORMED_FUNCTION_CALL": True,
    "function_call_filter: MALFORMED_FUNCTION_CALL": True,
    "UNEXPECTED_TOOL_CALL": True,
}


# --- the way in ---------------------------------------------------------------------------------


class ChatParser(Parser):
    """One Chat Completions stream."""

    name = "openai_chat"
    END = "finish_reason or [DONE]"
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Chunk).decode)
    decode_all: ClassVar[Decode | None] = staticmethod(msgspec.json.Decoder(FullChunk).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        **dict.fromkeys(
            ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE", "STOP"), "stop"
        ),
        **dict.fromkeys(
            ("length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens",
             "model_context_window_exceeded"), "length",
        ),
        **dict.fromkeys(("tool_calls", "tool_use", "TOOL_CALL", "function_call"), "tool_calls"),
        **dict.fromkeys(
            ("content_filter", "content_filtered", "sensitive", "guardrail_intervened", "SAFETY",
             "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"), "content_filter",
        ),
        "refusal": "refusal",
        "repetition": "other",  # vLLM stopped a model that went in circles
        **dict.fromkeys(ERRORS, "other"),
    }  # fmt: skip
    EVIDENCE = Evidence(
        "",
        "nothing",
        "finish_reason, a known normal word; [DONE] alone for whole objects",
        "at the end of its choice",
    )
    RUNS_ALONE = True  # by its stencil
    SIGNED: ClassVar[Echo] = {}  # what goes back beside the signature of a thought
    CALL_TEXTS = (
        "choices[].delta.tool_calls[].function.arguments",
        "choices[].delta.tool_calls[].custom.input",
        "choices[].delta.function_call.arguments",
        "choices[].delta.tool_calls[].function",  # an entry that has none of these may say it elsewhere
        "choices[].delta.tool_calls[].custom",
    )
    CALL_KEYS = ("choices[].delta.tool_calls[].index", "choices[].index")
    CALL_WORDS = (b'"tool_calls"', b'"function"', b'"arguments"', b'"function_call"')
    QUIRKS = {
        "choices[].delta.tool_calls[].function.arguments": ("args.object", even.object_text),
        "choices[].delta.function_call.arguments": ("args.object", even.object_text),
        "choices[].delta.tool_calls[].index": ("wire.shape_odd", even.integer),
        "choices[].delta.tool_calls[].id": ("wire.shape_odd", even.number_text),
        "choices[].index": ("wire.shape_odd", even.integer),
        "choices[].finish_reason": ("wire.shape_odd", even.quoted),
        "choices[].delta.tool_calls": ("wire.shape_odd", even.wrapped),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls.eager = False  # names may come in pieces
        self._first = Choice(0, self.calls, self.scribe)
        self._choices: dict[int, Choice] = {0: self._first}
        self._stencil = Stencil()
        self._enveloped: str | None = None  # the id in the envelope that chunks repeat
        self._said_id: Any = None  # of the last chunk; None: that one, or none
        self._whose: str | None = None  # the answer that it is of, …
        self._left: set[str] = set()  # … those that were left for another, …
        self._pieces = 0  # … and how many pieces of calls there were then
        self._usage: dict[str, Any] = {}
        self._refused: set[int] = set()  # choices
        self._failure: Failure | None = None
        self._cited: dict[str, Any] = {}
        self._steps: set[str] = set()
        self._answered: set[int] = set()  # calls of the provider's own functions

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Whole(limit) if start == "json" else SSE(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        return (
            isinstance(payload.get("choices"), list)
            or "base_resp" in payload
            or ("error" in payload and "type" not in payload and "event_type" not in payload)
        )

    def envelope(self, data: bytes) -> int:
        """Only fields that say nothing: some put usage, citations or an error before the choices."""
        at = max(0, data.find(b'"choices":'))
        try:
            held = msgspec.json.decode(data[:at].rstrip(b", \r\n\t") + b"}", type=_Envelope)
        except UNREADABLE:
            return 0
        self._enveloped = first_text(getattr(held, "id", None))
        return at

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
            or payload.errors is not None
            or payload.x_groq is not None
            or payload.base_resp is not None
            or payload.object == "chat.completion.chunk"  # see recordings: chunk_without_choices
            or payload.type in ("ping", "error")
            or payload.object == "error"
            or payload.detail is not None
        )

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        choices = payload.get("choices")
        if not isinstance(choices, list) or not choices:
            return None
        named: list[Call] = []
        for part in choices:
            number = part.get("index") if isinstance(part, dict) else None
            if type(number) is not int:
                return self.calls.unfinished()
            delta = part.get("delta")
            entries = delta.get("tool_calls") if isinstance(delta, dict) else None
            named += self._choice(number).named(entries)
        return named

    # the hot handler: text, then argument fragments of a known index

    def run(self, lines: Iterator[bytes], envelope: bytes, out: Out) -> Any:
        """As ``_chunk`` for one text, or for one fragment of an open call, of the first choice: first
        by the stencil of the ones before it, else read in full. Written out, as a function call less
        per payload can be measured (``make bench``)."""
        first, stencil, decode = self._first, self._stencil, self.decode
        functions, before, last = first.functions, stencil.before, self.calls.last
        whose = self._said_id
        grown: Call | None = None  # whose fragments the stencil is of; none: it is of text
        if stencil.place is not None:
            grown = functions.get(stencil.place)
            if grown is None or grown.state is not OPEN or first.reason is not None:
                before = NEVER
        for line in lines:
            rest = line.removeprefix(before)  # itself if it begins otherwise
            if rest is not line and (text := stencil.text(rest)):
                if grown is None:
                    first.spoke = True
                    out.append(TextDelta(text))
                    continue
                if text[0] != "{" and text[-1] not in last:
                    first.last, first.spoke = grown, True
                    grown.fragments.append(text)
                    out.append(ToolCallDelta(grown.ordinal, text))
                    continue
            rest = line.removeprefix(envelope)
            p = decode(line if rest is line or not envelope else b"{" + rest)
            choices = p.choices
            if len(choices) != 1 or p.usage is not None or p.id != whose:
                return p
            choice = choices[0]
            delta = choice.delta
            if (
                choice.index
                or choice.finish_reason
                or delta is None
                or delta.reasoning_content
                or delta.reasoning
            ):
                return p
            entries = delta.tool_calls
            if not entries:
                if delta.content:
                    out.append(TextDelta(delta.content))
                    if stencil.is_due(None):
                        self._learn(line, p)
                        before, grown = stencil.before, None
                first.spoke = True
                continue
            entry = entries[0]
            function = entry.function
            if (
                function is None
                or not (text := function.arguments)
                or (call := functions.get(entry.index)) is None
                or call.state is not OPEN
                or text[0] == "{"
                or text[-1] in last
                or function.name is not None
                or entry.id is not None
                or delta.content
                or len(entries) != 1
                or first.reason is not None
            ):
                return p
            first.last, first.spoke = call, True
            call.fragments.append(text)
            out.append(ToolCallDelta(call.ordinal, text))
            if stencil.is_due(entry.index):
                self._learn(line, p)
                before, grown = stencil.before, call
        return None

    def _learn(self, line: bytes, p: Chunk) -> None:
        """The stencil of a chunk that was heard, whose one text is that of its delta."""
        whole = self.decode(line)  # it may have been read without its envelope
        delta = whole.choices[0].delta
        function = delta.tool_calls[0].function if delta.tool_calls else None

        def says(made: bytes, text: str, padding: str) -> bool:
            if function is not None:
                function.arguments = text
            else:
                delta.content = text
            if padding:
                whole.obfuscation = padding
            return bool(self.decode(made) == whole)

        key = b'"content":' if function is None else b'"arguments":'
        self._stencil.learn(line, key, b'"obfuscation"', says)

    def _hear_whose(self, said_id: Any) -> None:
        """Chunks say whose they are, all the same. Some servers change it on the way, or with each chunk; but
        one that comes back says that two answers are mixed, and one that gives way to another in the midst
        of a call, where it was said of pieces before, that the call is cut."""
        self._said_id = said_id
        # The first chunks may all have been cut: then they were of the envelope's answer.
        last, id = self._whose or self._enveloped, first_text(said_id) or self._enveloped
        if id is None:
            return
        self._whose = id
        if last in (None, id):
            return
        self._stencil.before = NEVER  # it says whose it is, too
        pieces = self.calls.pieces()
        if id in self._left:
            self.calls.taint_open("chunks of two answers came through each other")
        elif pieces > self._pieces + 1:
            self._doubt_growing("a chunk of another answer came in the midst of it")
        self._pieces = pieces
        if len(self._left) < _ANSWERS:
            self._left.add(last)

    def _chunk(self, p: Chunk, out: Out) -> None:
        if p.id != self._said_id:
            self._hear_whose(p.id)
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
                        and (call := first.functions.get(entry.index)) is not None  # type: ignore[arg-type]
                        and (text := function.arguments)
                    ):
                        first.last = call
                        if (
                            call.state is OPEN
                            and text[0] != "{"
                            and text[-1] not in self.calls.last
                            and first.reason is None
                        ):
                            call.fragments.append(text)
                            out.append(ToolCallDelta(call.ordinal, text))
                        else:
                            first.with_word = said(choice.finish_reason) is not None
                            first.hear(entries, out, objects=False)
                    else:
                        whose = self._choice(number)
                        whose.with_word = said(choice.finish_reason) is not None
                        whose.hear(entries, out, objects=False)
            if number:
                self._choice(number)
            else:
                self._first.spoke = True
            if choice.finish_reason:
                self._finish_choice(number, choice.finish_reason, out)
                entries = delta.tool_calls if delta is not None else None
                self._choice(number).hear_end(bool(entries), entries)
        if p.usage is not None:
            self._count(p.usage)

    def _choice(self, number: int) -> Choice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = Choice(number, self.calls, self.scribe)
            if len(self._choices) > self.calls.limits.calls:  # each may call something
                raise LimitReached("calls", self.calls.limits.calls)
        choice.spoke = True
        return choice

    def _think(self, thought: str, number: int, delta: Delta, out: Out) -> None:
        out.append(ReasoningDelta(thought, 0, number))
        if delta.reasoning:  # the field that such a server wants it back in
            self.echo.setdefault("reasoning_field", "reasoning")

    # --- the end of a choice, and of all --------------------------------------------------------

    def _finish_choice(self, number: int, word: str, out: Out) -> None:
        choice, raw = self._choice(number), said(word)
        if raw is None:
            return self.scribe.note("wire.shape_odd", where="choices[].finish_reason")
        if raw in ERRORS:
            self._fail(Failure("provider_error", f"the answer ended with {raw}", raw, ERRORS[raw]))
        if choice.reason is not None:
            self.scribe.note("finish.repeated", raw_reason=raw)
        reason, held = self.finish_reason(raw), choice.reason
        unknown = choice.raw_reason not in self.REASONS  # some say such a word on every chunk
        if held is None or unknown or replaces(reason, held):
            choice.reason, choice.raw_reason = reason, raw
        else:
            reason = held
        if self._failure is None:
            since = len(out)
            self.calls.announce_end(out, reason, number)
            if choice.builtin:
                self._give_back(out, since)

    def _give_back(self, out: Out, since: int) -> None:
        """A function of the provider's own is answered with its arguments, as they are: they name what
        it has found. So the result is known as soon as the call is."""
        for call in [event for event in out[since:] if type(event) is ToolCall]:
            if (call.echo or {}).get("type") == BUILTIN and call.call not in self._answered:
                self._answered.add(call.call)
                echo: Echo = {"role": "tool", "tool_call_id": call.id, "name": call.name}
                self.calls.result(
                    out, call.arguments, id=call.id, family=call.family,
                    call=self.calls.all[call.call], echo=echo | {"content": call.raw},
                )  # fmt: skip

    def _fail(self, failure: Failure) -> None:
        """Remembered: usage may still follow. Nothing is whole by an end that comes after it."""
        self._failure = self._failure or failure

    def _done(self, out: Out) -> None:
        """No more comes. Choices beyond the first may lack a reason, as a proxy was seen to do."""
        heard = self._end_choices()
        if not heard:
            raise StreamFailed(Failure("truncated", "[DONE] came before any choice", None, True))
        if heard[0].reason is None and any(choice.reason for choice in heard):
            raise StreamFailed(Failure("truncated", "the first choice has no end", None, True))
        raise StreamOver

    def end_of_input(self, out: Out) -> None:
        """Without the end mark a reason that stands beside a piece of a call may stand on every chunk:
        then it is the end only of what cannot go on."""
        heard = self._end_choices()
        if any(choice.reason is None for choice in heard):
            self.reason = None
        for choice in heard if not self.decoded else ():
            if choice.beside and choice.reason in ("stop", "tool_calls"):
                choice.reason = None
            for call in self.calls.unfinished(choice.number) if choice.beside else ():
                if self.calls.may_go_on(call):
                    self.calls.fail(call, "truncated", "more of it may have been to come", out)

    def _end_choices(self) -> list[Choice]:
        """The choices that said anything; the reason of the first is that of the stream."""
        if self._failure is not None:
            raise StreamFailed(self._failure)
        heard = [choice for _, choice in sorted(self._choices.items()) if choice.spoke]
        first = heard[0] if heard else self._first
        self.choice, self.reason, self.raw_reason = first.number, first.reason, first.raw_reason
        if first.number in self._refused and self.reason == "stop":
            self.reason = "refusal"
        if first.builtin and self.reason == "tool_calls" and not self._asks(first.number):
            self.reason = "pause"
        return heard

    def _asks(self, number: int) -> bool:
        """Does the choice call anything that the client runs?"""
        called = (call for call in self.calls.all if call.choice == number)
        return any(call.kind.runs_on == "client" for call in called)

    def end_of_calls(self, out: Out) -> None:
        copied = any(choice.copy is not None for choice in self._choices.values())
        calls = defaultdict[int, list[Call]](list)
        for call in self.calls.all if copied else ():
            calls[call.choice].append(call)
        for choice in self._choices.values():
            since = len(out)
            self.calls.end_turn(out, choice.reason, choice.number)
            choice.end_copy(calls[choice.number], out)
            if choice.builtin:
                self._give_back(out, since)

    # --- chunks that use rare fields ------------------------------------------------------------

    def _full_chunk(self, p: FullChunk, out: Out) -> None:
        if p.type == "ping":
            self.scribe.note("wire.keepalive")
        self._hear_whose(p.id)
        self._ask_for_choices(p)
        errors = [error for error in (p.error, *items_of(p.errors)) if error is not None]
        if errors:
            raise StreamFailed(failure_of(errors[0]))
        if p.object == "error" or p.type == "error" or (p.choices is None and p.detail is not None):
            raise StreamFailed(failure_of(_said_of(p)))
        if isinstance(p.base_resp, dict):
            self._hear_status(p.base_resp)
        if isinstance(p.x_groq, dict):
            if p.x_groq.get("error"):
                raise StreamFailed(failure_of(p.x_groq["error"]))
            self._count(p.x_groq.get("usage"))
        for part in p.choices or ():
            held = self._choices.get(part.index)
            spoke = held is not None and held.spoke
            again = spoke and p.object == "chat.completion"
            self._choice(part.index)
            if part.delta is not None:
                self._choice(part.index).with_word = said(part.finish_reason) is not None
                self._full_delta(part.index, part.delta, out)
                if part.finish_reason and part.message is not None:
                    spoke = spoke or bool(part.delta.content)
                    self._said_only_there(part.index, part.message, out, spoke=spoke)
            elif part.message is not None and again:
                self._said_again(part.index, part.message, out)
            elif part.message is not None:
                self._at_once(p.object, part.index, part.message, out)
            elif part.text:
                self.scribe.note("wire.shape_odd", where="choices[].text")
                out.append(TextDelta(part.text, 0, part.index))
            if part.error is not None:
                self._fail(failure_of(part.error))
            if part.finish_reason:
                self._finish_choice(part.index, part.finish_reason, out)
                entries = part.delta.tool_calls if part.delta is not None else None
                self._choice(part.index).hear_end(_calls_something(part.delta), entries)
            self._count(part.usage)
        for name in SOURCES:
            self._cite_once(name, getattr(p, name), out)
        self._count(p.usage)

    def _ask_for_choices(self, p: Any) -> None:
        """Has the chunk nothing to say?"""
        if all(getattr(p, name) is None for name in p.__struct_fields__ if name not in _HEAD):
            self.scribe.note("wire.field_odd", where="choices")
            self._doubt_growing("a chunk came without its choices")

    def _hear_status(self, status: dict[str, Any]) -> None:
        """MiniMax says on every chunk how it goes; zero is well."""
        code = status.get("status_code")
        if code:
            message = first_text(status.get("status_msg")) or f"the provider reported {code}"
            raise StreamFailed(Failure("provider_error", message, str(code), code in PASSING))

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
        if delta.error is not None:
            self._fail(failure_of(delta.error))
        if isinstance(delta.content, list):
            self._content(number, delta.content, out)
        elif delta.content:
            out.append(TextDelta(delta.content, 0, number))
        if delta.refusal:
            self._refused.add(number)
            out.append(TextDelta(delta.refusal, 0, number, {"type": "refusal"}))
        if delta.tool_calls:
            self._choice(number).hear(delta.tool_calls, out, objects=self.even_objects)
        if delta.function_call is not None:
            self._legacy(number, delta.function_call, out)
        for annotation in delta.annotations or ():
            out.append(Citation(0, annotation))
        self._cite_once("citations", delta.citations, out)
        for tool in delta.executed_tools or ():
            self._executed(number, tool, out)
        for step in delta.reasoning_steps or ():
            self._step(number, step, out)
        if delta.audio is not None:
            sound(delta.audio, lambda shown: self.show(out, shown, choice=number, place="audio"))
        if delta.images is not None:
            pictures(delta.images, lambda shown: self.show(out, shown, choice=number))

    def _at_once(self, object: Any, number: int, message: Any, out: Out) -> None:
        """A gateway that says all at once says it where an answer that is no stream has it."""
        if object == "chat.completion":
            raise StreamFailed(_whole_answer())
        self.scribe.note("wire.shape_odd", where="choices[].message")
        try:
            delta = msgspec.convert(message, FullDelta)
        except msgspec.ValidationError as error:
            self.calls.taint_open(f"a message could not be read ({error})", number)
            return self.unknown({"type": "message", "message": message}, "message", out)
        self._full_delta(number, delta, out)

    def _said_again(self, number: int, message: Any, out: Out) -> None:
        """MiniMax ends with the whole answer once more: of that, only its calls may say news."""
        self.scribe.note("wire.shape_odd", where="choices[].message")
        entries = message.get("tool_calls") if isinstance(message, dict) else None
        if entries:
            self._at_once("", number, {"tool_calls": entries}, out)

    def _said_only_there(self, number: int, message: Any, out: Out, *, spoke: bool) -> None:
        """The whole answer beside the last delta is a copy, unless no delta said anything of it."""
        said = message if isinstance(message, dict) else {}
        entries = self._entries_of_no_delta(number, said.get("tool_calls"))
        news: dict[str, Any] = {"tool_calls": entries} if entries else {}
        if not spoke and said.get("content"):
            news["content"] = said["content"]
        if news:
            self._at_once("", number, news, out)

    def _entries_of_no_delta(self, number: int, entries: Any) -> Any:
        """Those of which no delta said anything: all if none did, or, where each call that was heard is
        among them, those of other ids."""
        choice = self._choice(number)
        if not (choice.ids or choice.bare):
            return entries
        listed = [entry for entry in items_of(entries) if isinstance(entry, dict)]
        ids = [first_text(entry.get("id")) for entry in listed]
        if not choice.ids.issubset(ids) or (choice.bare and None not in ids):
            return []
        news = {id for id in ids if id is not None} - choice.ids
        return [entry for entry, id in zip(listed, ids, strict=True) if id in news]

    def _content(self, number: int, parts: list[Any], out: Out) -> None:
        def show(shown: Shown) -> None:
            self.show(out, shown, choice=number)

        for kind, part in tell(parts, number, self.SIGNED, show, out):
            if self._is_worded(json_text(part).encode("utf-8", "replace")):
                self.calls.taint_open("a part of the content has words of a call", number)
            self.unknown({"type": f"content/{kind}", "part": part}, "content", out)

    def _legacy(self, number: int, function: FullFunction, out: Out) -> None:
        choice = self._choice(number)
        call = choice.legacy
        if call is None or call.state is State.OVER:
            if choice.last is not None:
                return choice.hear_copy(function)
            if function.arguments and said(function.name) is None:
                self.calls.taint_open(NO_CALL_THERE)  # the number of its choice may be wrong
            call = choice.legacy = self.calls.open(
                out, LEGACY, choice=number, field="function_call", seen=function
            )
            choice.bare += 1
        if name := said(function.name):
            choice.hear_name(call, name, out)
        if function.arguments:
            if choice.is_over(call):
                self.calls.taint(call, AFTER_THE_END)
            self.calls.ask_whether_text(call)
            self.calls.extend(call, function.arguments, out)

    def _executed(self, number: int, tool: dict[str, Any], out: Out) -> None:
        """Groq's own tools: the call first, then the same entry with what it produced."""
        choice = self._choice(number)
        index = tool.get("index")
        index = index if isinstance(index, int) else 0
        call = choice.executed.get(index)
        if call is None:
            call = choice.executed[index] = self.calls.open(
                out, EXECUTED, choice=number, name=first_text(tool.get("name"), tool.get("type")),
                field="executed_tools[]", seen=tool,
            )  # fmt: skip
            choice.bare += 1
        arguments = tool.get("arguments")
        if isinstance(arguments, str) and arguments:
            self.calls.restate(call, arguments, out)
            self.calls.close(call, out)
        elif arguments:
            self.calls.taint(call, "its arguments are no text")
        output = {
            k: v for k, v in tool.items() if k not in {"index", "type", "name", "arguments"} and v
        }
        if tool.get("output") is not None and call.state is State.OVER:
            self.calls.result(out, output, id=call.id, family=EXECUTED.family, call=call)

    def _step(self, number: int, step: Any, out: Out) -> None:
        """Perplexity's steps: a thought, and what was run for it. Some say them all again."""
        text = json_text(step)
        if text in self._steps:
            return
        self._steps.add(text)
        said = step if isinstance(step, dict) else {"thought": step}
        if thought := first_text(said.get("thought")):
            out.append(ReasoningDelta(thought, 0, number))
        ran = [key for key in said if key not in ("thought", "type") and said[key]]
        for name in ran:
            family, asked = STEPS.get(name, ("server-tool", ()))
            fields = said[name] if isinstance(said[name], dict) else {"output": said[name]}
            arguments = {key: value for key, value in fields.items() if key in asked}
            self._choice(number).bare += 1
            call = self.calls.whole(
                out, json_text(arguments), Kind(family, "provider"), number, None,
                "reasoning_steps[]", name, None, step,
            )  # fmt: skip
            output = {key: value for key, value in fields.items() if key not in asked}
            self.calls.result(out, output, id=call.id, family=family, call=call)

    def _cite_once(self, name: str, cited: Any, out: Out) -> None:
        """Some vendors repeat the whole list on every chunk: told when it changes."""
        if cited and self._cited.get(name) != cited:
            self._cited[name] = cited
            out.append(Citation(0, {name: cited}))

    # --- usage ----------------------------------------------------------------------------------

    def _count(self, usage: Any) -> None:
        """Cumulative, or all zero on the way: the last that counts anything wins, field by field, as
        one that says less takes nothing back."""
        if isinstance(usage, dict) and (not self._usage or any(usage.values())):
            self._usage.update(
                {k: v for k, v in usage.items() if v is not None or k not in self._usage}
            )

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        asked, said = count(raw, "prompt_tokens"), count(raw, "completion_tokens")
        thought = first_count(raw, *REASONING)
        beside = count(raw, "completion_tokens_details", "reasoning_tokens") is None
        if (
            beside
            and thought
            and said is not None
            and count(raw, "total_tokens") != (asked or 0) + said
        ):
            said += thought  # Copilot counts reasoning beside the answer
        cached, written = first_count(raw, *CACHED), first_count(raw, *WRITTEN)
        return Usage(asked, said, cached, written, thought, raw)

    KINDS: ClassVar[dict[type, Handler]] = {Chunk: _chunk, FullChunk: _full_chunk}
    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done}


def _calls_something(delta: FullDelta | None) -> bool:
    return delta is not None and bool(delta.tool_calls or delta.function_call)


def _reasoning_echo(delta: FullDelta) -> Echo:
    names = ("reasoning_details", "reasoning_opaque", "reasoning_encrypted", "thinking_blocks",
             "reasoning_signature", "signature")  # fmt: skip
    return {name: value for name in names if (value := getattr(delta, name))}


def _details_text(details: list[Any] | None) -> str:
    parts = [d for d in details or () if isinstance(d, dict)]
    return "".join(first_text(d.get("text"), d.get("summary")) or "" for d in parts)


def _whole_answer() -> Failure:
    return Failure("protocol", "the body is a whole answer, not a stream: ask with stream=true")


def _said_of(p: FullChunk) -> dict[str, Any]:
    said = p.message if isinstance(p.message, str) else p.detail
    return {"message": said if isinstance(said, str) else str(said), "code": p.code}


def failure_of(error: Any) -> Failure:
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


PARSER = ChatParser
