"""Gemini generateContent. Every word of that wire that we know is in this file.

    chunk* -> end of input        chunk = candidates[].content.parts[], finishReason, usageMetadata

A chunk is a whole response with news in it, and a part has no kind: the field it has is its kind. A
``functionCall`` is a whole call with ``args``, or with ``willContinue`` one that is told value by
value (``partialArgs``) until a part does not continue. Ids are optional. ``finishReason`` may stand
on every chunk, so only the end of input is the end. Candidates are kept apart.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from ...calls import FUNCTION, Call, Kind
from ...events import (
    Citation,
    Echo,
    Event,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    Unrecognized,
    Usage,
)
from ...framing import Fields, Framer
from ...framing.json_array import JsonArray
from ...framing.lines import Whole
from ...framing.sse import SSE
from .. import _even
from .._base import (
    UNREADABLE,
    Decode,
    Failure,
    Handler,
    Heading,
    Item,
    Parser,
    StreamFailed,
    Wire,
    count,
    first_text,
    plain,
)

__all__ = ["ITEMS", "GeminiParser"]

Out: TypeAlias = list[Event]
Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

# --- the payloads of this wire ------------------------------------------------------------------
# The hot types have the few fields of the usual chunk; any other chunk is read as the full ones.
# Fields stand in the order of the wire: msgspec looks for the next field first.

_ABSENT = Raw()


class HotCalled(Wire):
    name: str
    args: Raw = _ABSENT
    id: str | None = None


class HotPart(Wire, rename="camel"):
    text: str | None = None
    function_call: HotCalled | None = None
    thought: bool | None = None
    thought_signature: str | None = None


class HotContent(Wire):
    parts: list[HotPart]
    role: Any = None


class HotCandidate(Wire, rename="camel"):
    content: HotContent
    index: int = 0
    safety_ratings: Any = None


class HotChunk(Wire, rename="camel"):
    candidates: list[HotCandidate]
    usage_metadata: Raw = _ABSENT
    # Read once, by ``heading``.
    model_version: Any = None
    response_id: Any = None
    create_time: Any = None


class Called(Wire, rename="camel"):
    name: str | None = None
    args: Raw = _ABSENT
    id: str | None = None
    partial_args: list[dict[str, Raw]] | None = None
    will_continue: bool | None = None


class ServerCalled(Wire, rename="camel"):
    tool_type: str | None = None
    args: Raw = _ABSENT
    id: str | None = None


class Part(Wire, rename="camel"):
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


class Content(Wire):
    parts: list[Part] | None = None
    role: Any = None


class Candidate(Wire, rename="camel"):
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


class Chunk(Wire, rename="camel"):
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
CODE = Kind("code-execution", "provider", "code")
SERVER = Kind("generic-server-tool", "provider")

MEDIA = ("inline_data", "file_data")
CITED = ("grounding_metadata", "citation_metadata", "url_context_metadata")
# Finish reasons that are failures -> may the same request succeed if it is sent again?
ERRORS = {
    "OTHER": False,
    "MALFORMED_FUNCTION_CALL": True,
    "MALFORMED_RESPONSE": True,
    "UNEXPECTED_TOOL_CALL": True,
    "TOO_MANY_TOOL_CALLS": False,
    "NO_IMAGE": False,
    "IMAGE_OTHER": False,
}
RETRYABLE = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED",
             "429", "500", "503", "504"}  # fmt: skip


def _even_index(value: bytes) -> bytes:
    digits = value.strip(b'"')
    return digits if digits.isdigit() else b"0"


class _Choice:
    """What is known of one candidate."""

    __slots__ = ("cited", "kind", "part", "reason", "told")

    def __init__(self) -> None:
        self.part = -1  # the run of text that is being told …
        self.kind: type | None = None  # … and of which kind; None: the next text begins another
        self.reason: FinishReason | None = None
        self.told: list[_Told] = []  # calls that are told value by value and have not ended
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
        **dict.fromkeys(ERRORS, "stop"),
    }
    QUIRKS: ClassVar[dict[str, tuple[str, _even.Quirk]]] = {
        "candidates": ("wire.shape_odd", lambda v: b"[" + v + b"]"),
        "candidates[].index": ("wire.shape_odd", _even_index),
        "candidates[].finishReason": ("wire.shape_odd", _even.json_text),
        "candidates[].content.parts": ("wire.shape_odd", lambda v: b"[" + v + b"]"),
        "candidates[].content.parts[].functionCall.id": ("wire.shape_odd", _even.json_text),
        "candidates[].content.parts[].functionCall.partialArgs": (
            "wire.shape_odd", lambda v: b"[" + v + b"]",
        ),
    }  # fmt: skip

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._whole = self.calls.whole
        self._choices: dict[int, _Choice] = {}
        self._usage = _ABSENT  # parsed once, at the end
        self._failure: Failure | None = None
        self._answered: set[int] = set()  # calls whose result came

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

    # the hot handler: text, and whole calls

    def _hot_chunk(self, p: HotChunk, out: Out) -> None:
        if p.usage_metadata is not _ABSENT:
            self._usage = p.usage_metadata
        for candidate in p.candidates:
            number = candidate.index
            choice = self._choices.get(number) or self._choices.setdefault(number, _Choice())
            for part in candidate.content.parts:
                if part.thought is not None or part.thought_signature is not None:
                    self._part(number, choice, _full(part), out)
                elif part.text:
                    if choice.kind is not TextDelta:
                        choice.run(TextDelta)
                    out.append(TextDelta(part.text, choice.part, number))
                elif (said := part.function_call) is not None:
                    if choice.told or not said.name:
                        self._part(number, choice, _full(part), out)
                        continue
                    choice.kind = None
                    text = self._json(said.args)
                    self._whole(out, text, FUNCTION, number, said.id, _ID, said.name, None, said)

    # every other chunk; its parts have a table

    def _chunk(self, p: Chunk, out: Out) -> None:
        if p.candidates is None or p.prompt_feedback is not None or p.error is not None:
            self._rare_chunk(p, out)
        if p.usage_metadata is not _ABSENT:
            self._usage = p.usage_metadata
        for candidate in p.candidates or ():
            number = candidate.index or 0
            choice = self._choices.get(number) or self._choices.setdefault(number, _Choice())
            content = candidate.content
            for part in (content.parts or ()) if content is not None else ():
                self._part(number, choice, part, out)
            if candidate.finish_reason is not None:
                self._finish_choice(choice, number, candidate)
            if (
                candidate.grounding_metadata is not None or candidate.citation_metadata is not None
                or candidate.url_context_metadata is not None or candidate.continuation_token is not None
            ):  # fmt: skip
                self._cite(choice, candidate, out)

    def _part(self, number: int, choice: _Choice, part: Part, out: Out) -> None:
        if part.text is not None:
            self._text(number, choice, part, out)
        elif part.function_call is not None:
            self._call(number, choice, part, part.function_call, out)
        else:
            self._rare_part(number, choice, part, out)

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
        text = self._json(said.args)
        self._whole(out, text, FUNCTION, number, said.id, _ID, said.name, echo, said)

    def _piece(self, number: int, choice: _Choice, part: Part, said: Called, out: Out) -> None:
        """A call told value by value, or a whole one between its pieces."""
        told = _continued(choice.told, said)
        if told is None:
            if not said.name and not (said.args is not _ABSENT or said.id):
                late = "call.unannounced" if said.partial_args else "call.late"
                self.scribe.note(late, where="functionCall")
                return
            told = self._begin(number, choice, said, out)
        elif said.id:
            self.calls.hear(told.call, out, id=said.id, field=_ID)
        if part.thought_signature is not None:
            told.call.echo = told.call.echo or _signature(part)
        try:
            self._tell_values(told, said, out)
            if not said.will_continue:
                self._end_told(choice, told, out)
        except _Conflict as conflict:
            self.calls.fail(told.call, "conflict", str(conflict), out)
            choice.told.remove(told)

    def _begin(self, number: int, choice: _Choice, said: Called, out: Out) -> _Told:
        call = self.calls.open(
            out, FUNCTION, choice=number, id=said.id, field=_ID, name=said.name, seen=said
        )
        told = _Told(call)
        choice.told.append(told)
        return told

    def _tell_values(self, told: _Told, said: Called, out: Out) -> None:
        whole = self._json(said.args)
        # An empty object says nothing beside values, or while they are still to come.
        is_all = not (said.will_continue or said.partial_args or told.values)
        if whole.strip("{} \r\n\t") or (whole and is_all):
            told.say((), whole, False)
        for partial in said.partial_args or ():
            value = self._value(partial)
            if value is not None and (text := told.say(*value)):
                self.calls.append(told.call, text, out)

    def _value(self, partial: dict[str, Raw]) -> tuple[Path, str, bool] | None:
        """Where a partial value stands, its JSON text, and whether it is a piece of a string."""
        said = {_camel(key): self._json(raw) for key, raw in partial.items()}
        path = _path(said.pop("jsonPath", ""))
        said.pop("willContinue", None)
        values = [(k, v) for k, v in said.items() if k.endswith("Value")]
        for key in said.keys() - dict(values).keys():
            self.scribe.note("wire.field_unknown", where=f"partialArgs[].{key}")
        key, text = next((v for v in values if v[1]), values[0] if values else ("", ""))
        if key == "stringValue":
            return path, text[1:-1], True
        if key == "nullValue":
            return path, "null", False
        if key == "numberValue":  # a double that JSON cannot say comes as a text: "NaN"
            text = text.strip('"')
        return (path, text, False) if text else None

    def _end_told(self, choice: _Choice, told: _Told, out: Out) -> None:
        text = told.end()
        if told.ordered:
            if text:
                self.calls.append(told.call, text, out)
        elif told.call.fragments:  # what was told stays told; the call itself is right
            self.scribe.note("wire.shape_odd", where="partialArgs, out of order")
            self.calls.replace(told.call, text)
        else:
            self.calls.append(told.call, text, out)
        choice.told.remove(told)
        self.calls.close(told.call, out)

    def _json(self, raw: Raw) -> str:
        """The exact text of a JSON value; nothing for null."""
        try:
            text = str(raw, "utf-8")
        except UnicodeDecodeError:
            self.scribe.note("wire.bad_utf8")
            text = bytes(raw).decode("utf-8", "replace")
        return "" if text == "null" else text

    # --- parts that are rare ----------------------------------------------------------------------

    def _rare_part(self, number: int, choice: _Choice, part: Part, out: Out) -> None:
        known = [field for field in PARTS if getattr(part, field) is not None]
        for field in known:
            PARTS[field](self, (number, choice, part), out)
            choice.kind = None
        if known:
            return
        if part.thought_signature:
            self._text(number, choice, part, out)
        elif part.unknown is not None:
            self.unknown(part.unknown, "part", out)

    def _code(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        number, _, part = at
        said = part.executable_code or {}
        call = self.calls.open(
            out, CODE, choice=number, id=first_text(said.get("id")), field="executableCode.id",
            name="code_execution", seen=said,
        )  # fmt: skip
        call.echo = _beside(said, {"id", "code"}) | _signature(part) or None
        if code := first_text(said.get("code")):
            self.calls.append(call, code, out)
        self.calls.close(call, out)

    def _server_call(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        number, _, part = at
        said = part.tool_call or ServerCalled()
        call = self.calls.open(
            out, SERVER, choice=number, id=said.id, field="toolCall.id", name=_tool_name(said.tool_type),
            seen=said,
        )  # fmt: skip
        echo: Echo = {"toolType": said.tool_type} if said.tool_type else {}
        call.echo = echo | _signature(part) or None
        if text := self._json(said.args):
            self.calls.append(call, text, out)
        self.calls.close(call, out)

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
        """Paired by id; without one, with the last call of that name that has no result."""
        number, _, part = at
        field, failed = how
        id = first_text(said.get("id"))
        call = self.calls.by_id(number, id) if id else None
        if call is None:
            call = self._unanswered(number, name, id)
        if call is not None:
            self._answered.add(call.ordinal)
        echo = {field: said} | _signature(part)
        self.calls.result(out, output, id=id, call=call, choice=number, is_error=failed, echo=echo)

    def _unanswered(self, number: int, name: str, id: str | None) -> Call | None:
        for call in reversed(self.calls.all):
            if call.choice == number and call.name == name and call.ordinal not in self._answered:
                return call if id is None or call.wire_id is None else None
        return None

    def _media(self, at: tuple[int, _Choice, Part], out: Out) -> None:
        """No event of ours carries media: passed on whole."""
        part = at[2]
        for field in MEDIA:
            if (value := getattr(part, field)) is not None:
                name = _camel(field)
                out.append(Unrecognized(f"media/{name}", {name: value} | _signature(part)))

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

    def _finish_choice(self, choice: _Choice, number: int, candidate: Candidate) -> None:
        """Remembered; the end of input decides. STOP may stand on every chunk, so the rest wins."""
        raw = candidate.finish_reason
        if not raw:
            return
        reason = self.finish_reason(raw)
        if raw == "STOP" and choice.told and _goes_on(candidate):
            return  # on every chunk, also on those that promise more of a call
        if choice.reason is not None:
            self.scribe.note("finish.repeated", raw_reason=raw)
        if choice.reason not in (None, "stop") or self._failure is not None:
            return
        choice.reason = reason
        if raw in ERRORS:
            message = candidate.finish_message or f"the answer ended with {raw}"
            self._failure = Failure("provider_error", message, raw, ERRORS[raw])
        elif candidate.finish_message and reason != "stop":
            self.echo["finishMessage"] = candidate.finish_message
        if (number == 0 or self.reason is None) and self.reason in (None, "stop"):
            self.reason, self.raw_reason = reason, raw

    def end_of_input(self, out: Out) -> None:
        if self._failure is not None:
            raise StreamFailed(self._failure)
        # Nothing but the last byte marks the end, so half an event behind a STOP is a cut.
        if self.scribe.counts["stream.cut_event"] or self._somebody_goes_on():
            self.reason = None
            return
        for number, choice in self._choices.items():
            reason = choice.reason or self.reason
            for told in choice.told:
                broken = ("length", "the token limit fell inside the arguments")
                if reason != "length":
                    broken = ("truncated", "the wire promised more of this call, and ended")
                self.calls.fail(told.call, *broken, out)  # type: ignore[arg-type]
            self.calls.end_turn(out, reason, number)

    def _somebody_goes_on(self) -> bool:
        blocked = self.reason == "content_filter"  # the prompt: no candidate has to say anything
        return not blocked and any(choice.reason is None for choice in self._choices.values())

    def usage(self) -> Usage | None:
        try:
            raw = plain(self._usage) if self._usage is not _ABSENT else None
        except UNREADABLE:
            raw = None
        if not isinstance(raw, dict) or not raw:
            return None
        said = {_camel(key): value for key, value in raw.items()}
        return Usage(
            _sum(count(said, "promptTokenCount"), count(said, "toolUsePromptTokenCount")),
            _sum(count(said, "candidatesTokenCount"), count(said, "thoughtsTokenCount")),
            count(said, "cachedContentTokenCount"), None, count(said, "thoughtsTokenCount"), raw,
        )  # fmt: skip

    # --- odd shapes -------------------------------------------------------------------------------

    def _repaired(self, data: bytes, error: msgspec.ValidationError, event: str) -> bytes:
        complaint = _even.complaint(error)
        *at, field = map(str, complaint.path[-3:]) if complaint.unknown else ("",)
        change: _even.Quirk | None = None
        if "_" in field and _camel(field) in FIELDS:
            note, change = "wire.shape_odd", _in_camel_case
        elif at[:1] == ["parts"]:
            note, change = "wire.field_unknown", lambda part: _set_aside(part, field)
        if change is None or not _is_utf8(data):
            return super()._repaired(data, error, event)
        self.scribe.note(note, where=complaint.where)
        return _even.change(data, complaint.path[:-1], change)

    KINDS: ClassVar[dict[type, Handler]] = {HotChunk: _hot_chunk, Chunk: _chunk}


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


# --- a call told value by value -----------------------------------------------------------------


class _Conflict(Exception):
    """The values of one call contradict each other."""


class _Level(NamedTuple):
    """An object or a list that is being written, and the keys or indexes it has."""

    is_list: bool
    seen: set[Step]

    def mark(self, step: Step) -> str | None:
        """What stands before the value at ``step``; None if it cannot stand next."""
        if isinstance(step, int) is not self.is_list or step in self.seen:
            return None
        if self.is_list and step != len(self.seen):
            return None
        comma = "," if self.seen else ""
        self.seen.add(step)
        return comma if self.is_list else f"{comma}{_quoted(step)}:"


class _Told:
    """A call whose arguments come as (path, value): each as the JSON text that it adds.

    Values in order are written as they come. One that belongs into something already written ends
    that; the text is then built from all values when the call ends.
    """

    __slots__ = ("_in_string", "_levels", "_steps", "_where", "call", "ordered", "values")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.values: list[tuple[Path, str, bool]] = []
        self.ordered = True
        self._levels: list[_Level] = []
        self._steps: list[Step] = []  # that lead into the levels after the first
        self._where: Path | None = None  # the last value
        self._in_string = False

    def say(self, path: Path, text: str, is_string: bool) -> str:
        """One more value, or one more piece of a string; the text to tell."""
        self.values.append((path, text, is_string))
        if not self.ordered:
            return ""
        if is_string and self._in_string and path == self._where:
            return text
        between = self._reach(path)
        if between is None:
            self.ordered = False
            return ""
        self._where, self._in_string = path, is_string
        return f'{between}"{text}' if is_string else between + text

    def end(self) -> str:
        """What closes the text; the whole text if it could not be told in order."""
        if not self.ordered:
            return _built(self.values)
        return self._leave(0) + "}" if self._levels else ""

    def _reach(self, path: Path) -> str | None:
        """The text between the last value and the one at ``path``."""
        if not path:
            return None
        shared = 0
        for mine, its in zip(self._steps, path[:-1], strict=False):
            if mine != its:
                break
            shared += 1
        text = self._leave(shared) if self._levels else self._enter(path[0])
        for step, inner in zip(path[shared:], (*path[shared + 1 :], None), strict=True):
            mark = self._levels[-1].mark(step)
            if mark is None:
                return None
            text += mark
            if inner is not None:
                self._steps.append(step)
                text += self._enter(inner)
        return text

    def _enter(self, step: Step) -> str:
        is_list = isinstance(step, int)
        self._levels.append(_Level(is_list, set()))
        return "[" if is_list else "{"

    def _leave(self, depth: int) -> str:
        """Close the string and all levels that lie deeper."""
        text = '"' if self._in_string else ""
        self._in_string = False
        while len(self._levels) > depth + 1:
            text += "]" if self._levels.pop().is_list else "}"
            self._steps.pop()
        return text


class _Leaf(NamedTuple):
    texts: list[str]
    is_string: bool


Tree: TypeAlias = dict[Step, Any]  # step -> Tree or _Leaf


def _built(values: list[tuple[Path, str, bool]]) -> str:
    """The JSON text of values in any order."""
    top: Tree = {}
    for path, text, is_string in values:
        tree = top
        for step in ("$", *path)[:-1]:
            tree = tree.setdefault(step, {})
            if isinstance(tree, _Leaf):
                raise _Conflict(f"a value stands both at and below {step!r}")
        last = path[-1] if path else "$"
        leaf = tree.setdefault(last, _Leaf([], is_string))
        if not isinstance(leaf, _Leaf) or leaf.is_string is not is_string:
            raise _Conflict(f"two kinds of value at {last!r}")
        if not is_string and leaf.texts and leaf.texts != [text]:
            raise _Conflict(f"two values at {last!r}")
        if is_string or not leaf.texts:
            leaf.texts.append(text)
    return _written(top["$"])


def _written(node: Any) -> str:
    if isinstance(node, _Leaf):
        text = "".join(node.texts)
        return f'"{text}"' if node.is_string else text
    if all(isinstance(step, str) for step in node):
        return "{" + ",".join(f"{_quoted(k)}:{_written(v)}" for k, v in node.items()) + "}"
    if node.keys() != set(range(len(node))):
        raise _Conflict("a list with gaps or keys in it")
    return "[" + ",".join(_written(node[index]) for index in range(len(node))) + "]"


_step = re.compile(
    r"""\.?([^.\[\]'"$][^.\[\]]*)"""  # .name
    r"""|\[(\d{1,9})\]"""  # [0]
    r"""|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""",  # ['odd name']
    re.S,
)
MAX_DEPTH = 200  # beyond what arguments may have, and short of Python's own limit


def _path(quoted: str) -> Path:
    """The steps of a path: ``$.a[0]['b c']`` -> ("a", 0, "b c")."""
    try:
        text = plain(quoted.encode())
    except UNREADABLE:
        text = None
    if not isinstance(text, str):
        raise _Conflict("a value without a path")
    at = 1 if text.startswith("$") else 0
    steps: list[Step] = []
    while at < len(text):
        match = _step.match(text, at)
        if match is None or len(steps) > MAX_DEPTH:
            raise _Conflict(f"a path that we cannot read: {text[:80]!r}")
        name, index, *in_quotes = match.groups()
        key = next((k for k in in_quotes if k is not None), None)
        steps.append(int(index) if index else name or re.sub(r"\\(.)", r"\1", key or ""))
        at = match.end()
    return tuple(steps)


def _continued(told: list[_Told], said: Called) -> _Told | None:
    """The call that a part goes on with, or None if it begins one.

    ``willContinue`` promises that the next part without an id belongs to the same call; some repeat
    its name. Another name, or a name and nothing else, begins a call.
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
    bare = said.partial_args is None and said.args is _ABSENT
    return None if bare or said.name != last.call.name else last


def _goes_on(candidate: Candidate) -> bool:
    parts = (candidate.content and candidate.content.parts) or ()
    return any(
        part.function_call is not None and part.function_call.will_continue for part in parts
    )


# --- small helpers ------------------------------------------------------------------------------


def _camel(name: str) -> str:
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
    try:
        fields = _fields(value)
    except msgspec.DecodeError as error:
        raise _even.Uneven("not an object") from error
    return msgspec.json.encode({_camel(k): v for k, v in fields.items() if bytes(v) != b"null"})


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _set_aside(part: bytes, field: str) -> bytes:
    """A part with a field that we do not know: kept, in case that the part has no other."""
    fields = _fields(part)
    value = fields.pop(field)
    aside = {**_fields(fields.get("?", Raw(b"{}"))), field: value}
    return msgspec.json.encode({**fields, "?": Raw(msgspec.json.encode(aside))})


def _signature(part: Part) -> Echo:
    return {"thoughtSignature": part.thought_signature} if part.thought_signature else {}


def _beside(said: dict[str, Any], fields: set[str]) -> Echo:
    return {k: v for k, v in said.items() if k not in fields and v is not None}


def _tool_name(tool_type: str | None) -> str:
    return (tool_type or "server_tool").lower()


def _quoted(text: Step) -> str:
    return msgspec.json.encode(text).decode()


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def _failure(error: Any) -> Failure:
    if not isinstance(error, dict):
        return Failure("provider_error", str(error) or "the provider reported an error")
    number = error.get("code")
    code = first_text(error.get("status")) or (None if number is None else str(number))
    message = first_text(error.get("message"), code) or "the provider reported an error"
    return Failure("provider_error", message, code, bool({code, str(number)} & RETRYABLE))
