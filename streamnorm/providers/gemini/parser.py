"""Gemini generateContent. Every word of that wire that we know is in this file.

    chunk* -> end of input        chunk = candidates[].content.parts[], finishReason, usageMetadata

A chunk is a whole response with news in it, and a part has no kind: the field it has is its kind. A
``functionCall`` is a whole call with ``args``, or with ``willContinue`` one that is told value by
value (``partialArgs``) until a part does not continue. Ids are optional. ``finishReason`` may stand
on every chunk, so only the end of input is the end. Candidates are kept apart.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Raw

from ...core import even
from ...core.calls import ALL, FUNCTION, Call, Evidence, Kind, State
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
    first_text,
    plain,
    replaces,
)
from ...core.row import Item
from ...events import (
    Citation,
    Echo,
    Event,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from ...framing import Fields, Framer
from ...framing.json_array import JsonArray
from ...framing.lines import Whole
from ...framing.sse import SSE
from ...limits import LimitReached
from ...text.exact import Refused, parse
from .told import Conflict, Path, Told, path_of

__all__ = ["ITEMS", "PARSER", "GeminiParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# The hot types have the few fields of the usual chunk; any other chunk is read as the full ones.
# Fields stand in the order of the wire: msgspec looks for the next field first.

_ABSENT = Raw()


class HotCalled(Payload):
    name: str
    args: Raw = _ABSENT
    id: str | None = None


class HotPart(Payload, rename="camel"):
    text: str | None = None
    function_call: HotCalled | None = None
    thought: bool | None = None
    thought_signature: str | None = None


class HotContent(Payload):
    parts: list[HotPart]
    role: Any = None


class HotCandidate(Payload, rename="camel"):
    content: HotContent
    index: int = 0
    safety_ratings: Any = None


class HotChunk(Payload, rename="camel"):
    candidates: list[HotCandidate]
    usage_metadata: Raw = _ABSENT
    # Read once, by ``heading``.
    model_version: Any = None
    response_id: Any = None
    create_time: Any = None


class Called(Payload, rename="camel"):
    name: str | None = None
    args: Raw = _ABSENT
    id: str | None = None
    partial_args: list[dict[str, Raw]] | None = None
    will_continue: bool | None = None


class ServerCalled(Payload, rename="camel"):
    tool_type: str | None = None
    args: Raw = _ABSENT
    id: str | None = None


class Part(Payload, rename="camel"):
    text: str | None = None
    function_call: Called | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    executable_code: dict[str, Any] | None = None
    code_execution_result: dict[str, Any] | None = None
    tool_call: ServerCalled | None = None
    tool_response: dict[str, Any] | None = None
    function_response: dict[str, Any] | None = None
    inline_data: Any = None
    file_data: Any = None
    audio_transcription: Any = None
    unknown: dict[str, Any] | None = msgspec.field(default=None, name="?")  # see ``_set_aside``
    # Known, and of no use to us.
    video_metadata: Any = None
    media_resolution: Any = None
    part_metadata: Any = None
    media_processing: Any = None
    speech_metadata: Any = None


class Content(Payload):
    parts: list[Part] | None = None
    role: Any = None


class Candidate(Payload, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None
    index: int | None = None
    finish_message: str | None = None
    grounding_metadata: Any = None
    citation_metadata: Any = None
    url_context_metadata: Any = None
    continuation_token: Any = None
    # Known, and of no use to us.
    safety_ratings: Any = None
    avg_logprobs: Any = None
    logprobs_result: Any = None
    token_count: Any = None
    grounding_attributions: Any = None


class Chunk(Payload, rename="camel"):
    candidates: list[Candidate] | None = None
    usage_metadata: Raw = _ABSENT
    # Read once, by ``heading``.
    model_version: Any = None
    response_id: Any = None
    create_time: Any = None
    prompt_feedback: dict[str, Any] | None = None
    error: Any = None
    response: Chunk | None = None  # Code Assist puts the chunk into an envelope
    # Known, and of no use to us.
    model_status: Any = None
    trace_id: Any = None
    sdk_http_response: Any = None
    automatic_function_calling_history: Any = None
    parsed: Any = None


class _Header(msgspec.Struct, rename="camel"):
    model_version: Any = None
    response_id: Any = None
    response: _Header | None = None


# --- the types of parts that are about tools ----------------------------------------------------

_ID = "functionCall.id"
ITEMS = (
    Item("functionCall", "function", "call", "client", "nullable", _ID,
         "args, an object; or partialArgs, value by value", note="thoughtSignature stands beside it"),
    Item("functionResponse", "function", "output", "client", "nullable", "functionResponse.id",
         "response, an object", "id, else name and order"),
    Item("executableCode", "code-execution", "call", "provider", "nullable", "executableCode.id",
         "code, a text"),
    Item("codeExecutionResult", "code-execution", "output", "provider", "nullable",
         "codeExecutionResult.id", "outcome and output", "id, else order"),
    Item("toolCall", "generic-server-tool", "call", "provider", "nullable", "toolCall.id", "args, an object"),
    Item("toolResponse", "generic-server-tool", "output", "provider", "nullable", "toolResponse.id",
         "response, an object", "id, else toolType and order"),
)  # fmt: skip
FAMILIES = {item.type: item.family for item in ITEMS}
CODE = Kind("code-execution", "provider", "code")
SERVER = Kind("generic-server-tool", "provider")

# The fields of parts that hold media: where in them the bytes are, or their address.
MEDIA = {"inline_data": ("data", ""), "file_data": ("", "fileUri")}
CITED = ("grounding_metadata", "citation_metadata", "url_context_metadata")
# Finish reasons that are failures -> may the same request succeed if it is sent again?
ERRORS = {
    "OTHER": False,
    "MALFORMED_FUNCTION_CALL": True,
    "MALFORMED_RESPONSE": True,
    "UNEXPECTED_TOOL_CALL": True,
    "TOO_MANY_TOOL_CALLS": False,
    "MISSING_THOUGHT_SIGNATURE": False,
    "NO_IMAGE": False,
    "IMAGE_OTHER": False,
}
RETRYABLE = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED",
             "429", "500", "503", "504"}  # fmt: skip


class _Choice:
    """What is known of one candidate."""

    __slots__ = ("astray", "cited", "kind", "part", "raw_reason", "reason", "told")

    def __init__(self) -> None:
        self.part = -1  # the run of text that is being told …
        self.kind: type | None = None  # … and of which kind; None: the next text begins another
        self.astray = False  # values came that no call claims
        self.reason: FinishReason | None = None
        self.raw_reason: str | None = None
        self.told: list[Told] = []  # calls that are told value by value and have not ended
        self.cited: dict[str, Any] = {}

    def run(self, kind: type) -> int:
        """The number of the run that a text of this kind belongs to."""
        if self.kind is not kind:
            self.kind = kind
            self.part += 1
        return self.part


# --- the way in ---------------------------------------------------------------------------------


class GeminiParser(Parser):
    """One streamGenerateContent stream."""

    name = "gemini"
    END = "finishReason"
    MARKED = False
    SAYS_TOOL_CALLS = False
    STARTS = frozenset({"array"})
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(HotChunk).decode)
    decode_all: ClassVar[Decode | None] = staticmethod(msgspec.json.Decoder(Chunk).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "STOP": "stop",
        "FUNCTION_CALL": "tool_calls",  # early servers and stand-ins say so; the API says STOP
        "MAX_TOKENS": "length",
        "CONTINUATION": "pause",
        "SAFETY": "content_filter",
        "RECITATION": "content_filter",
        "LANGUAGE": "content_filter",
        "BLOCKLIST": "content_filter",
        "PROHIBITED_CONTENT": "content_filter",
        "SPII": "content_filter",
        "IMAGE_SAFETY": "content_filter",
        "IMAGE_PROHIBITED_CONTENT": "content_filter",
        "IMAGE_RECITATION": "content_filter",
        "ESCALATION": "content_filter",
        "MODEL_ARMOR": "content_filter",
        "PUP_LIMITED_DISABLED": "content_filter",
        **dict.fromkeys(ERRORS, "other"),
    }
    EVIDENCE = Evidence(
        "a functionCall that does not continue",
        "args beside or after partialArgs",
        "finishReason STOP of its candidate, then the end of input",
        "at the part",
    )
    CALL_TEXTS = (
        "candidates[].content.parts[].functionCall.args",
        "candidates[].content.parts[].functionCall.partialArgs[]",
        "candidates[].content.parts[].toolCall.args",
    )
    CALL_KEYS = (
        "candidates[].content.parts[].functionCall.willContinue",
        "candidates[].index",
    )
    CALL_WORDS = (b'"functionCall"', b'"partialArgs"', b'"args"')
    ERRORS_AT = ("candidates[].error",)
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "candidates": ("wire.shape_odd", even.wrapped),
        "candidates[].index": ("wire.shape_odd", even.integer),
        "candidates[].finishReason": ("wire.shape_odd", even.quoted),
        "candidates[].content.parts": ("wire.shape_odd", even.wrapped),
        "candidates[].content.parts[].functionCall.id": ("wire.shape_odd", even.number_text),
        "candidates[].content.parts[].functionCall.partialArgs": (
            "wire.shape_odd", even.wrapped,
        ),
    }  # fmt: skip

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._whole = self.calls.whole
        self.calls.unwraps = False
        self._choices: dict[int, _Choice] = {}
        self._usage = _ABSENT  # parsed once, at the end
        self._counts: dict[str, Any] = {}  # of frames that said more than the last one
        self._failure: Failure | None = None
        self._answered: set[int] = set()  # calls whose result came
        self._queued = 0  # calls that stand in a queue by now
        self._waiting: defaultdict[tuple[int, str], deque[Call]] = defaultdict(deque)

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return FRAMERS.get(start, _BareOrSSE)(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        error = payload.get("error")
        return isinstance(payload.get("candidates"), list) or (
            not payload.keys().isdisjoint({"promptFeedback", "usageMetadata"})
            or (isinstance(error, dict) and {"code", "status"} <= error.keys())
        )

    def heading(self, data: bytes) -> Heading:
        header = msgspec.json.decode(data, type=_Header)
        header = header.response or header
        return Heading(first_text(header.model_version), first_text(header.response_id))

    def kind_of(self, payload: Any) -> str:
        return "/".join(payload) if isinstance(payload, dict) and len(payload) == 1 else "chunk"

    def means(self, payload: Chunk) -> bool:
        return payload != Chunk()

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        """A candidate's place is that of all its open calls: a part names none."""
        candidates = payload.get("candidates")
        if not isinstance(candidates, list):
            return None
        numbers = [c.get("index", 0) if isinstance(c, dict) else None for c in candidates]
        if not all(type(number) is int for number in numbers):
            return None
        return [call for number in numbers for call in self.calls.unfinished(number)]

    # the hot handler: text, and whole calls

    def run(self, lines: Iterator[bytes], envelope: bytes, out: Out) -> Any:
        """As ``_hot_chunk`` for one text, or one whole call, and counts as long as those before them:
        written out, as a function call less per payload can be measured (``make bench``)."""
        choices, whole = self._choices, self._whole
        size = len(self._usage)
        for p in map(self.decode, lines):
            usage = p.usage_metadata
            if len(usage) != size:
                return p
            try:
                (candidate,) = p.candidates
                (part,) = candidate.content.parts
                choice = choices[candidate.index]
            except (ValueError, KeyError):  # several, none, or one that begins
                return p
            text, said = part.text, part.function_call
            if part.thought is not None or part.thought_signature is not None:
                return p
            if said is None:
                if not text:
                    return p
                if choice.kind is not TextDelta:
                    choice.run(TextDelta)
                out.append(TextDelta(text, choice.part, candidate.index))
            elif choice.told or text or not said.name:
                return p
            else:
                choice.kind = None
                try:
                    text = str(said.args, "utf-8")
                except UnicodeDecodeError:
                    return p
                if text == "null":
                    return p
                number = candidate.index
                whole(out, text, FUNCTION, number, said.id, _ID, said.name, None, said)
            self._usage = usage
        return None

    def _hot_chunk(self, p: HotChunk, out: Out) -> None:
        if p.usage_metadata is not _ABSENT:
            if len(p.usage_metadata) != len(self._usage):
                self._count(p.usage_metadata)
            self._usage = p.usage_metadata
        calls = self.calls
        for candidate in p.candidates:
            calls.since = len(calls.all)  # of one candidate, two calls are two
            number = candidate.index
            choice = self._choices.get(number) or self._begin_choice(number)
            for part in candidate.content.parts:
                if part.thought is not None or part.thought_signature is not None:
                    self._part(number, choice, _full(part), out)
                elif part.text and part.function_call is None:
                    if choice.kind is not TextDelta:
                        choice.run(TextDelta)
                    out.append(TextDelta(part.text, choice.part, number))
                elif (said := part.function_call) is not None:
                    if choice.told or part.text or not said.name:
                        self._part(number, choice, _full(part), out)
                        continue
                    choice.kind = None
                    text = self.exact(said.args)
                    self._whole(out, text, FUNCTION, number, said.id, _ID, said.name, None, said)
                    calls.lossy = ""
                else:
                    self._part(number, choice, _full(part), out)
        calls.since = ALL

    # every other chunk; its parts have a table

    def _chunk(self, p: Chunk, out: Out) -> None:
        if p.candidates is None or p.prompt_feedback is not None or p.error is not None:
            self._rare_chunk(p, out)
        if p.usage_metadata is not _ABSENT:
            self._count(p.usage_metadata)
        for candidate in p.candidates or ():
            self.calls.since = len(self.calls.all)
            number = candidate.index or 0
            choice = self._choices.get(number) or self._begin_choice(number)
            content = candidate.content
            for part in (content.parts or ()) if content is not None else ():
                self._part(number, choice, part, out)
            if candidate.finish_reason:
                self._finish_choice(choice, candidate.finish_reason, candidate)
            self._cite(choice, candidate, out)
        self.calls.since = ALL

    def _begin_choice(self, number: int) -> _Choice:
        if len(self._choices) >= self.calls.limits.calls:  # each may call something
            raise LimitReached("calls", self.calls.limits.calls)
        choice = self._choices[number] = _Choice()
        return choice

    def _part(self, number: int, choice: _Choice, part: Part, out: Out) -> None:
        """What it says, all of it: an empty text may stand beside anything."""
        said = part.function_call
        rare = [field for field in PARTS if getattr(part, field) is not None]
        if part.text or not (said is not None or rare or self._says_nothing(choice, part, out)):
            self._text(number, choice, part, out)
        if said is not None:
            self._call(number, choice, part, said, out)
        for field in rare:
            PARTS[field](self, (number, choice, part), out)
            choice.kind = None

    def _says_nothing(self, choice: _Choice, part: Part, out: Out) -> bool:
        """No field that we know: it may have been a piece of a call that is going on."""
        bare = part.text is None and not part.thought_signature
        if bare and part.unknown is not None:
            self.unknown(part.unknown, "part", out)
        for told in choice.told if bare else ():
            self.calls.taint(told.call, "a part came that says nothing")
        return bare

    def _text(self, number: int, choice: _Choice, part: Part, out: Out) -> None:
        """A thought, or a text that carries a signature: that closes its run."""
        delta = ReasoningDelta if part.thought else TextDelta
        text = part.text or ""
        if part.thought_signature:
            out.append(delta(text, choice.run(delta), number, _signature(part)))
            choice.kind = None
        elif text:
            out.append(delta(text, choice.run(delta), number))

    # --- calls that the client runs ---------------------------------------------------------------

    def _call(self, number: int, choice: _Choice, part: Part, said: Called, out: Out) -> None:
        choice.kind = None
        if choice.told or said.will_continue or said.partial_args or not said.name:
            self._piece(number, choice, part, said, out)
            return
        echo = _signature(part) if part.thought_signature is not None else None
        doubt = self.calls.lossy
        text = self.exact(said.args)
        self._whole(out, text, FUNCTION, number, said.id, _ID, said.name, echo, said)
        self.calls.lossy = doubt

    def _piece(self, number: int, choice: _Choice, part: Part, said: Called, out: Out) -> None:
        """A call told value by value, or a whole one between its pieces."""
        told = _continued(choice.told, said)
        begins = bool(said.name and said.will_continue)
        if begins and told is not None and told.values and not _says_more(said):
            self._void(choice, told, out)
            told = None
        if len(choice.told) > 1 and not (said.id or said.name):
            for each in choice.told:
                self.calls.taint(each.call, "a piece came that does not say of which call it is")
        if told is None:
            if not said.name and not (said.args is not _ABSENT or said.id):
                if said.partial_args:
                    choice.astray = True
                    self.calls.astray(choice=number, where="functionCall")
                else:
                    self.scribe.note("call.late", where="functionCall")
                return None
            for each in [t for t in choice.told if t.call.wire_id is None]:
                self._void(choice, each, out)  # nothing could go on with it any more
            told = self._begin(number, choice, said, out)
        else:
            told.repeats = told.repeats or said.name is not None
            self.calls.hear(told.call, out, id=said.id, field=_ID, name=said.name)
        if part.thought_signature is not None:
            told.call.echo = told.call.echo or _signature(part)
        if told.call.state is State.OVER:  # what follows is of the one that broke
            return None if said.will_continue else choice.told.remove(told)
        try:
            self._tell_values(told, said, out)
            if not said.will_continue:
                self._end_told(choice, told, out)
        except Conflict as conflict:
            self.calls.fail(told.call, "conflict", str(conflict), out)
            self.calls.lost = True  # what has no place in it may have been another's
            self.calls.doubt_next(number, told.call.wire_id)
            if not said.will_continue:
                choice.told.remove(told)

    def _void(self, choice: _Choice, told: Told, out: Out) -> None:
        """What was told of it may have been of the one that begins now."""
        if told.values:
            choice.astray = self.calls.lost = True  # those out of order are no fragments
        choice.told.remove(told)
        self.calls.void(told.call, out)

    def _begin(self, number: int, choice: _Choice, said: Called, out: Out) -> Told:
        call = self.calls.by_id(number, said.id or "")
        if call is None or not self.calls.restarts(call, said.id, said.name, out):
            call = self.calls.open(
                out, FUNCTION, choice=number, id=said.id, field=_ID, name=said.name, seen=said
            )
        told = Told(call, self.calls.limits.arguments_total)
        choice.told.append(told)
        if choice.astray and (not _is_all(said) or said.args is _ABSENT):
            choice.astray = False
            self.calls.taint(call, "values came before it that no call claims")
        return told

    def _tell_values(self, told: Told, said: Called, out: Out) -> None:
        whole = self.exact_copy(said.args)
        if whole is None:
            raise Conflict("its arguments are said in bytes that are not UTF-8")
        told.call.given = told.call.given or whole
        # An empty object says nothing beside values, or while they are still to come.
        is_all = not (said.will_continue or said.partial_args or told.values)
        if whole.strip("{} \r\n\t") or (whole and is_all):
            if told.values or said.partial_args:
                told.restated = whole
            else:
                told.say((), whole, False)
        for partial in said.partial_args or ():
            value = self._value(partial, told)
            if value is not None and (text := told.say(*value)):
                self.calls.append(told.call, text, out)

    def _value(self, partial: dict[str, Raw], told: Told) -> tuple[Path, str, bool] | None:
        """Where a partial value stands, its JSON text, and whether it is a piece of a string."""
        call = told.call
        said = {_camel(key): self.exact(raw, call) for key, raw in partial.items()}
        path = path_of(said.pop("jsonPath", ""))
        goes_on = said.pop("willContinue", "")
        if goes_on not in _YES_OR_NO:
            self.calls.taint(call, "whether a value of its arguments goes on could not be read")
        told.promise(path, goes_on == "true")
        values = [(k, v) for k, v in said.items() if k.endswith("Value")]
        for key in said.keys() - dict(values).keys():
            self.scribe.note("wire.field_unknown", where=f"partialArgs[].{key}")
        (key, text), *more = [v for v in values if v[1]] or values or [("", "")]
        if more:
            self.calls.taint(call, "a value of its arguments is said in two ways")
            return None
        if key == "nullValue" and text in _NULLS:
            return path, "null", False
        if key == "numberValue" and text.strip('"')[:1] in ("N", "I", "-"):
            text = text.strip('"')  # a double that JSON cannot say comes as a text: "NaN"
        if key not in VALUES or not text or text[0] not in VALUES[key]:
            self.calls.taint(call, f"a value of its arguments could not be read ({key or 'none'})")
            return None
        return (path, text[1:-1], True) if key == "stringValue" else (path, text, False)

    def _end_told(self, choice: _Choice, told: Told, out: Out) -> None:
        if told.restated:
            return self._end_restated(choice, told, out)
        text = told.end()
        if told.ordered:
            if text:
                self.calls.append(told.call, text, out)
        elif self.calls.has_text(told.call):  # what was told stays told; the call itself is right
            self.scribe.note("wire.shape_odd", where="partialArgs, out of order")
            self.calls.replace(told.call, text)
        else:
            self.calls.append(told.call, text, out)
        choice.told.remove(told)
        self.calls.close(told.call, out)

    def _end_restated(self, choice: _Choice, told: Told, out: Out) -> None:
        """The wire's own word for all arguments: the values before it may be the beginning of it."""
        try:
            agrees = told.is_restated(parse(told.restated))
        except Refused as refused:
            raise Conflict(f"its arguments are said again, as no JSON: {refused}") from None
        if not agrees:
            raise Conflict("its arguments are said twice, and differently")
        choice.told.remove(told)
        self.calls.settle(told.call, told.restated, out)
        self.calls.close(told.call, out)

    # --- parts that are rare ----------------------------------------------------------------------

    def _code(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        number, _, part = at
        said, doubt = part.executable_code or {}, self.calls.lossy
        code = said.get("code")
        if not isinstance(code, str):
            self.calls.lossy = "its code is no text"
        self.calls.whole(
            out, first_text(code) or "", CODE, number, first_text(said.get("id")), "executableCode.id",
            "code_execution", _beside(said, {"id", "code"}) | _signature(part) or None, said,
        )  # fmt: skip
        self.calls.lossy = doubt

    def _server_call(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        number, _, part = at
        said, doubt = part.tool_call or ServerCalled(), self.calls.lossy
        echo: Echo = {"toolType": said.tool_type} if said.tool_type else {}
        self.calls.whole(
            out, self.exact(said.args), SERVER, number, said.id, "toolCall.id",
            _tool_name(said.tool_type), echo | _signature(part) or None, said,
        )  # fmt: skip
        self.calls.lossy = doubt

    def _code_result(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        said = at[2].code_execution_result or {}
        failed = said.get("outcome") not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED")
        output = _beside(said, {"id"})
        self._result(at, "code_execution", said, output, ("codeExecutionResult", failed), out)

    def _server_result(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        said = at[2].tool_response or {}
        name = _tool_name(first_text(said.get("toolType"), said.get("tool_type")))
        self._result(at, name, said, said.get("response"), ("toolResponse", False), out)

    def _function_result(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        said = at[2].function_response or {}
        response = said.get("response")
        failed = isinstance(response, dict) and "error" in response
        self._result(
            at,
            first_text(said.get("name")) or "",
            said,
            response,
            ("functionResponse", failed),
            out,
        )

    def _result(
        self, at: tuple[int, _Choice, Part], name: str, said: dict[str, Any], output: Any,
        how: tuple[str, bool], out: Out,
    ) -> None:  # fmt: skip
        """Paired by id; without one, with the first call of that name that has no result."""
        number, _, part = at
        field, failed = how
        id = first_text(said.get("id"))
        call = self.calls.by_id(number, id) if id else None
        if call is None:
            call = self._unanswered(number, name, id)
        if call is not None:
            self._answered.add(call.ordinal)
        echo = {field: said} | _signature(part)
        self.calls.result(
            out, output, id=id, family=FAMILIES[field], call=call, choice=number, is_error=failed,
            echo=echo,
        )  # fmt: skip

    def _unanswered(self, number: int, name: str, id: str | None) -> Call | None:
        """Calls and results without ids pair in order, the first with the first."""
        for call in self.calls.all[self._queued :]:
            self._waiting[call.choice, call.name].append(call)
        self._queued = len(self.calls.all)
        waiting = self._waiting.get((number, name))
        while waiting and waiting[0].ordinal in self._answered:
            waiting.popleft()
        if not waiting or (id is not None and waiting[0].wire_id is not None):
            return None
        return waiting[0]

    def _media(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        """A picture, or a piece of a sound. Drafts that the model thinks in are marked as thoughts."""
        number, _, part = at
        for field, (data, url) in MEDIA.items():
            if (value := getattr(part, field)) is None:
                continue
            name, said = _camel(field), value if isinstance(value, dict) else {}
            said = {_camel(key): each for key, each in said.items()}
            beside = {"thought": True} if part.thought else {}
            echo = {name: _beside(said, {data})} | beside | _signature(part)
            shown = Shown(
                f"media/{name}", {name: value} | _signature(part), said.get(data), said.get(url),
                said.get("mimeType"), echo=echo,
            )  # fmt: skip
            self.show(out, shown, choice=number)

    def _transcript(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        number, choice, part = at
        said = part.audio_transcription
        if text := first_text(said.get("text") if isinstance(said, dict) else said):
            out.append(TextDelta(text, choice.run(TextDelta), number, {"audioTranscription": said}))

    # --- chunks that are rare, and what stands beside the parts -----------------------------------

    def _rare_chunk(self, p: Chunk, out: Out) -> None:
        if p.error is not None:
            raise StreamFailed(_failure(p.error))
        if p.response is not None:
            self._chunk(p.response, out)
        feedback = p.prompt_feedback or {}
        blocked = first_text(feedback.get("blockReason"), feedback.get("block_reason"))
        if blocked is not None:
            self.reason, self.raw_reason = "content_filter", blocked
            self.echo["promptFeedback"] = feedback

    def _cite(self, choice: _Choice, candidate: Candidate, out: Out) -> None:
        """Told when it changes: some chunks repeat it, and empty ones come before it."""
        for field in CITED:
            value = getattr(candidate, field)
            if value and choice.cited.get(field) != value:
                choice.cited[field] = value
                out.append(Citation(max(choice.part, 0), {_camel(field): value}))
        if candidate.continuation_token is not None:
            self.echo["continuationToken"] = candidate.continuation_token

    # --- the end ----------------------------------------------------------------------------------

    def _finish_choice(self, choice: _Choice, raw: str, candidate: Candidate) -> None:
        """Remembered; the end of input decides. STOP may stand on every chunk, so the rest wins."""
        reason = self.finish_reason(raw)
        if raw == "STOP" and _goes_on(candidate):
            return  # on every chunk, also on those that promise more of a call
        if choice.reason is not None:
            self.scribe.note("finish.repeated", raw_reason=raw)
        if self._failure is not None or not replaces(reason, choice.reason):
            return
        choice.reason, choice.raw_reason = reason, raw
        if raw in ERRORS:
            message = candidate.finish_message or f"the answer ended with {raw}"
            self._failure = Failure("provider_error", message, raw, ERRORS[raw])
        elif candidate.finish_message and reason != "stop":
            self.echo["finishMessage"] = candidate.finish_message

    def _done(self, out: Out) -> None:
        """Proxies add the end mark of another wire: it says no more than the end of input does."""
        self.end_of_input(out)
        if self.reason is not None:
            raise StreamOver

    def end_of_input(self, out: Out) -> None:
        """The reason is that of the first candidate; None unless every candidate has one."""
        if self._failure is not None:
            raise StreamFailed(self._failure)
        # Nothing but the last byte marks the end, so half an event behind a STOP is a cut.
        if self.scribe.counts["stream.cut_event"] or self._somebody_goes_on():
            self.reason = None
            return
        if self._choices and self.reason is None:
            self.choice = min(self._choices)
            first = self._choices[self.choice]
            self.reason, self.raw_reason = first.reason, first.raw_reason

    def end_of_calls(self, out: Out) -> None:
        for number, choice in self._choices.items():
            for told in choice.told:
                broken = ("length", "the token limit fell inside the arguments")
                if choice.reason != "length":
                    broken = ("truncated", "the wire promised more of this call, and ended")
                self.calls.fail(told.call, *broken, out)  # type: ignore[arg-type]
            self.calls.end_turn(out, choice.reason, number)

    def _somebody_goes_on(self) -> bool:
        blocked = self.reason == "content_filter"  # the prompt: no candidate has to say anything
        return not blocked and any(choice.reason is None for choice in self._choices.values())

    def _count(self, said: Raw) -> None:
        """The last frame that counts may say less than one before it: nothing that was said is lost."""
        self._counts |= _counts(self._usage)
        self._usage = said

    def usage(self) -> Usage | None:
        raw = self._counts | _counts(self._usage)
        if not raw:
            return None
        said = {_camel(key): value for key, value in raw.items()}
        return Usage(
            _sum(count(said, "promptTokenCount"), count(said, "toolUsePromptTokenCount")),
            _sum(count(said, "candidatesTokenCount"), count(said, "thoughtsTokenCount")),
            count(said, "cachedContentTokenCount"), None, count(said, "thoughtsTokenCount"), raw,
        )  # fmt: skip

    # --- odd shapes -------------------------------------------------------------------------------

    def _repaired(
        self, data: bytes, error: msgspec.ValidationError, event: str, repairs: even.Repairs
    ) -> bytes:
        complaint = even.complaint(error)
        *at, field = map(str, complaint.path[-3:]) if complaint.unknown else ("",)
        change: even.Quirk | None = None
        if "_" in field and _camel(field) in FIELDS:
            note, change = "wire.shape_odd", _in_camel_case
            beside = even.fields_at(data, complaint.path[:-1])
            if len(set(map(_camel, beside))) < len(beside):
                self._loss = "a field is said in two spellings"
        elif at[:1] == ["parts"]:
            note, change = "wire.field_unknown", lambda part: self._set_aside(part, field)
        if change is None:
            return super()._repaired(data, error, event, repairs)
        repairs.begin(complaint.path)
        self.scribe.note(note, where=complaint.where)
        return even.change(data, complaint.path[:-1], change)

    def is_loss(self, complaint: even.Complaint, value: bytes, beside: dict[str, Raw]) -> bool:
        """Values that are not said to go on end their call: what stands there may say so. Beside empty
        arguments it may be what they lack."""
        if bytes(beside.get("args", Raw())).strip(b"{} \r\n\t") in (b"", b"null"):
            beside = {name: raw for name, raw in beside.items() if name != "args"}
        ends = "partialArgs" in beside and "willContinue" not in beside
        ends = ends and value != b"null"
        return (complaint.unknown and ends) or super().is_loss(complaint, value, beside)

    def _set_aside(self, part: bytes, field: str) -> bytes:
        """A part with a field that we do not know: kept, in case that the part has no other."""
        fields = _fields(part)
        value = fields.pop(field)
        if any(word in bytes(b'"%b"%b' % (field.encode(), value)) for word in self.CALL_WORDS):
            self._loss = f"a part's {field} could not be read"
        aside = {**_fields(fields.get("?", Raw(b"{}"))), field: value}
        return msgspec.json.encode({**fields, "?": Raw(msgspec.json.encode(aside))})

    KINDS: ClassVar[dict[type, Handler]] = {HotChunk: _hot_chunk, Chunk: _chunk}
    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done}


# A kind of partial value -> how its JSON text can begin.
VALUES = {
    "stringValue": '"',
    "numberValue": "-0123456789NI",
    "boolValue": "tf",
    "structValue": "{",
    "listValue": "[",
}
_YES_OR_NO = {"true", "false", ""}
_NULLS = {"", '"NULL_VALUE"', "0"}  # how null can be written as a value of its own
# The field that a part has -> what it says.
PARTS: dict[str, Handler] = {
    "executable_code": GeminiParser._code,
    "code_execution_result": GeminiParser._code_result,
    "tool_call": GeminiParser._server_call,
    "tool_response": GeminiParser._server_result,
    "function_response": GeminiParser._function_result,
    "audio_transcription": GeminiParser._transcript,
    "inline_data": GeminiParser._media,
    "file_data": GeminiParser._media,
}


def _full(part: HotPart) -> Part:
    said = part.function_call
    called = Called(said.name, said.args, said.id) if said is not None else None
    return Part(part.text, called, part.thought, part.thought_signature)


class _BareOrSSE(SSE):
    """SSE, in which Vertex was seen to report an error as bare JSON between two events."""

    def read(self, frame: bytes) -> Fields:
        return Fields(frame) if frame[:1] == b"{" else super().read(frame)


FRAMERS: dict[str, type[JsonArray] | type[Whole]] = {"array": JsonArray, "json": Whole}


def _continued(told: list[Told], said: Called) -> Told | None:
    """The call that a part goes on with, or None if it begins one.

    ``willContinue`` promises that the next part without an id belongs to the same call; some repeat
    its name. Another name begins a call, and so does a name alone, with the promise of more or as a
    call without arguments, unless each piece says the name: then one that promises nothing is the last.
    """
    if not told:
        return None
    last = told[-1]
    if said.id:
        known = next((t for t in told if t.call.wire_id == said.id), None)
        if known is not None or said.name:
            return known
    if not said.name:
        return last
    goes_on = _says_more(said) or (last.repeats and not said.will_continue)
    return last if goes_on and said.name == last.call.name else None


def _is_all(said: Called) -> bool:
    """Is this a call that is said at once?"""
    return not (said.will_continue or said.partial_args)


def _says_more(said: Called) -> bool:
    """More than who is called?"""
    return said.partial_args is not None or said.args is not _ABSENT


def _goes_on(candidate: Candidate) -> bool:
    parts = (candidate.content and candidate.content.parts) or ()
    return any(
        part.function_call is not None and part.function_call.will_continue for part in parts
    )


# --- small helpers ------------------------------------------------------------------------------

_is_snake_case = re.compile("[a-z]+(_[a-z]+)+").fullmatch


def _camel(name: str) -> str:
    """A name of the wire for one of its Python SDK; any other is as it was."""
    if not _is_snake_case(name):
        return name
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


# All fields whose name an SDK spells otherwise.
FIELDS = {
    name
    for wire in (Chunk, Candidate, Content, Part, Called, ServerCalled)
    for name, ours in zip(wire.__struct_encode_fields__, wire.__struct_fields__, strict=True)
    if name != ours and name != "?"
}
_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def _in_camel_case(value: bytes) -> bytes:
    """An SDK object's dict: the wire's names are spelt otherwise, and what is absent is null."""
    fields = _fields(value).items()
    return msgspec.json.encode({_camel(k): v for k, v in fields if bytes(v) != b"null"})


def _signature(part: Part) -> Echo:
    return {"thoughtSignature": part.thought_signature} if part.thought_signature else {}


def _beside(said: dict[str, Any], fields: set[str]) -> Echo:
    return {k: v for k, v in said.items() if k not in fields and v is not None}


def _tool_name(tool_type: str | None) -> str:
    return (tool_type or "server_tool").lower()


def _counts(usage: Raw) -> dict[str, Any]:
    """The counts that a frame says; what is null is not said."""
    try:
        said = plain(usage) if usage is not _ABSENT else None
    except UNREADABLE:
        said = None
    return {k: v for k, v in said.items() if v is not None} if isinstance(said, dict) else {}


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def _failure(error: Any) -> Failure:
    if not isinstance(error, dict):
        return Failure("provider_error", str(error) or "the provider reported an error")
    number = error.get("code")
    code = first_text(error.get("status")) or (None if number is None else str(number))
    message = first_text(error.get("message"), code) or "the provider reported an error"
    return Failure("provider_error", message, code, bool({code, str(number)} & RETRYABLE))


PARSER = GeminiParser
