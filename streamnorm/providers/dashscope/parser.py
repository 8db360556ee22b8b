"""DashScope's own generation wire. Every word of that wire that we know is in this file.

    {output: {choices: [{message: {role, content, reasoning_content, tool_calls}, finish_reason}]},
     usage, request_id}
    {output: {text, finish_reason}, usage, request_id}           the older form
    event: error, {code, message, request_id}

Messages have the shape of Chat's, and their calls are found as there (``ChatParser``). A reason stands
with every event, the text "null" until the last one; there is no other end mark.

Texts and arguments come in pieces, or whole with every event (``incremental_output``). The request says
which, and no answer repeats it, so it is told by what comes (``growth``). For texts that is a guess where
pieces happen to go on from one another ("1", "12", "123" are read as one that grows). For arguments it is
not: whole ones name their call every time, pieces do not, and a call whose texts fit neither is broken.

Events are numbered in the field ``id``: a hole breaks the calls that are open (``numbering``).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec

from ...core import even
from ...core.calls import Call, Evidence
from ...core.parser import (
    Decode,
    Failure,
    Handler,
    Heading,
    Payload,
    StreamFailed,
    count,
    first_count,
    first_text,
)
from ...core.row import Item
from ...events import Event, ReasoningDelta, TextDelta, Usage
from ..openai_chat.entries import Choice, FullEntry, said
from ..openai_chat.parser import ChatParser
from .growth import Arguments, Growth, News
from .numbering import Numbers

__all__ = ["ITEMS", "PARSER", "DashScopeParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------


class Message(Payload):
    role: Any = None
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    tool_calls: list[FullEntry] | None = None
    # Known, and of no use to us.
    name: Any = None
    phase: Any = None
    extra: Any = None
    status: Any = None
    annotations: Any = None
    partial: Any = None
    tool_call_id: Any = None


class Part(Payload):
    message: Message | None = None
    finish_reason: str | None = None
    index: int | None = None
    logprobs: Any = None
    error: Any = None


class Output(Payload):
    choices: list[Part] | None = None
    text: str | None = None
    finish_reason: str | None = None
    search_info: Any = None
    audio: Any = None
    error: Any = None
    # Known, and of no use to us.
    model_name: Any = None


class Answer(Payload):
    output: Output | None = None
    usage: dict[str, Any] | None = None
    request_id: Any = None
    error: Any = None
    # An error may also be the payload itself, and an object of the SDK says that there is none.
    code: Any = None
    message: Any = None
    status_code: Any = None
    headers: Any = None


class Told(Answer, kw_only=True):
    """The usual one. Of any other, the name of its event may say what it is."""

    output: Output


class _Header(msgspec.Struct):
    request_id: str | None = None


# --- the types of tool entries ------------------------------------------------------------------

_ID = "tool_calls[].id"
ITEMS = (
    Item("tool_calls[].function", "function", "call", "client", "natural", _ID,
         "function.arguments, JSON text, in pieces or whole with every event"),
    Item("role=tool", "function", "output", "client", "natural", "tool_call_id", "content",
         "tool_call_id", "request only"),
)  # fmt: skip
# How codes begin of errors that pass: those of 429, 500, 503 and 504 in "Error codes" of Alibaba Cloud's Model
# Studio, and in ``ErrorCode`` of its SDK.
RETRYABLE = {"Throttling", "InternalError", "ServiceUnavailable", "SystemError", "RequestTimeOut",
             "ModelServiceFailed", "ModelServingError", "ModelUnavailable", "GatewayTimeout"}  # fmt: skip
# What stands where an error would, and is none.
WELL = {"", "200", "ok", "success"}
CACHED = (("prompt_tokens_details", "cached_tokens"), ("cached_tokens",))
REASONING = (("output_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))

# --- the way in ---------------------------------------------------------------------------------

_MESSAGE = "output.choices[].message"
_DIGITS = 9  # longer ids are no numbers of events


class DashScopeParser(ChatParser):
    """One generation."""

    name = "dashscope"
    END = "finish_reason"
    MARKED = False
    TYPE_FIELD = ""
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Told).decode)
    decode_all: ClassVar[Decode | None] = staticmethod(msgspec.json.Decoder(Answer).decode)
    EVIDENCE = Evidence(
        "",
        "nothing",
        "finish_reason, a known normal word, then the end of input",
        "at the end of its choice",
    )
    CALL_TEXTS = (  # type: ignore[assignment]
        f"{_MESSAGE}.tool_calls[].function.arguments",
        f"{_MESSAGE}.tool_calls[].function",
    )
    CALL_KEYS = (f"{_MESSAGE}.tool_calls[].index", "output.choices[].index")
    QUIRKS = {
        f"{_MESSAGE}.tool_calls[].function.arguments": ("args.object", even.object_text),
        f"{_MESSAGE}.tool_calls[].index": ("wire.shape_odd", even.integer),
        f"{_MESSAGE}.tool_calls[].id": ("wire.shape_odd", even.number_text),
        f"{_MESSAGE}.tool_calls": ("wire.shape_odd", even.wrapped),
        "output.choices[].index": ("wire.shape_odd", even.integer),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._growth = Growth()
        self._arguments = Arguments()
        self._numbers = Numbers()

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        output = payload.get("output")
        told = isinstance(output, dict) and not output.keys().isdisjoint({"choices", "text"})
        return told or {"code", "message", "request_id"} <= payload.keys()

    def envelope(self, data: bytes) -> int:
        return 0

    def heading(self, data: bytes) -> Heading:
        return Heading(None, first_text(msgspec.json.decode(data, type=_Header).request_id))

    def means(self, payload: Any) -> bool:
        told = payload.output, payload.usage, payload.error
        return any(p is not None for p in told) or _is_error(payload)

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        output = payload.get("output")
        parts = output.get("choices") if isinstance(output, dict) else None
        if not isinstance(parts, list):
            return None
        heard = [part if isinstance(part, dict) else {} for part in parts]
        return super().calls_named(
            {"choices": [{"index": 0, **part, "delta": part.get("message")} for part in heard]}
        )

    def hear_id(self, id: bytes) -> None:
        id = id.strip()
        number = int(id) if id.isdigit() and len(id) <= _DIGITS else None
        if number is not None and not self._numbers.go_on(number):
            self.scribe.note("wire.gap", number=number)
            self.calls.taint_open("events of the stream are missing, or came twice")

    def _answer(self, p: Answer, out: Out) -> None:
        self._hear_whose(p.request_id)
        output = p.output or Output()
        errors = (p.error, output.error, *(part.error for part in output.choices or ()))
        error = next((error for error in errors if error is not None), None)
        if error is not None or _is_error(p):
            self._tell(self._growth.settled(), out)
            raise StreamFailed(_failure(error, p))
        for at, part in enumerate(output.choices or ()):
            number = at if part.index is None else part.index
            self._choice(number)
            if part.message is not None:
                last = said(part.finish_reason) is not None
                self._message(number, part.message, out, last=last)
            self._end_choice(number, part.finish_reason, out)
        if output.choices is None and output.text is not None:
            self._choice(0)
            self._say(0, "", output.text, out, last=said(output.finish_reason) is not None)
            self._end_choice(0, output.finish_reason, out)
        self._cite_once("search_info", output.search_info, out)
        if output.audio is not None:
            self.unknown({"type": "output.audio", "audio": output.audio}, "audio", out)
        self._count(p.usage)

    def _message(self, number: int, message: Message, out: Out, *, last: bool) -> None:
        content = message.content
        rest: list[Any] = []
        if isinstance(content, list):
            texts = [c.get("text") if isinstance(c, dict) else c for c in content]
            rest = [c for c, text in zip(content, texts, strict=True) if not isinstance(text, str)]
            content = "".join(text for text in texts if isinstance(text, str))
        self._say(number, message.reasoning_content or "", content or "", out, last=last)
        if rest or message.tool_calls:  # beside a call, a text that is said is said again
            self._tell(self._growth.settled(whole=bool(content) or None), out)
        if rest:
            self._content(number, rest, out)
        if message.tool_calls:
            self._hear_calls(number, message.tool_calls, out)

    def _hear_calls(self, number: int, entries: list[FullEntry], out: Out) -> None:
        choice, indexes, doubted = self._choice(number), list[int](), list[Call | None]()
        for entry in entries:
            function = entry.function
            if entry.index is None or function is None:
                continue
            id, name, text = said(entry.id), said(function.name), function.arguments or ""
            place, named, fits = (number, entry.index), bool(id or name), True
            if not self.even_objects:
                function.arguments = self._arguments.news(place, id, text, named=named)
                fits = function.arguments is not None
                held = choice.by_index.get(entry.index)
                if held is not None and held.name and text and function.arguments == "":
                    # All of it is said again: under another name it is a doubt, and no other call.
                    fits, function.name = name in (None, held.name), None
            elsewhere = self._elsewhere(choice, id, entry.index)
            if not fits or elsewhere is not None:
                indexes.append(entry.index)
                doubted += [choice.by_index.get(entry.index), elsewhere]
        choice.hear(entries, out, objects=self.even_objects)
        for call in (*doubted, *(choice.by_index.get(index) for index in indexes)):
            if call is not None:
                self.calls.taint(call, "its arguments are neither pieces nor whole every time")
        for call in (choice.by_index.get(entry.index or 0) for entry in entries):
            if (
                call is not None and call.latches
            ):  # a piece that begins as what came before it is a piece all the same
                self.calls.as_pieces(call)

    def _elsewhere(self, choice: Choice, id: str | None, index: int) -> Call | None:
        """The call in another place that has this id: then nobody can say which of both is meant."""
        known = self.calls.by_id(choice.number, id or "")
        return None if known is choice.by_index.get(index) else known

    def _say(self, number: int, thought: str, text: str, out: Out, *, last: bool = False) -> None:
        for place, new in (((ReasoningDelta, number), thought), ((TextDelta, number), text)):
            if new:
                self._tell(self._growth.news(place, new, last=last), out)
            else:
                nothing = last and not (thought or text)
                self._tell(self._growth.silence(place, last=nothing), out)

    def _tell(self, news: News, out: Out) -> None:
        out.extend(delta(text, 0, number) for (delta, number), text in news)

    def _end_choice(self, number: int, word: str | None, out: Out) -> None:
        if (reason := said(word)) is not None:
            self._tell(self._growth.settled(), out)
            self._finish_choice(number, reason, out)
            self._choice(number).hear_end(False, None)  # it stands with the last event alone

    def end_of_input(self, out: Out) -> None:
        self._tell(self._growth.settled(), out)
        super().end_of_input(out)

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        return Usage(
            count(raw, "input_tokens"), count(raw, "output_tokens"), first_count(raw, *CACHED),
            None, first_count(raw, *REASONING), raw,
        )  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {Told: _answer, Answer: _answer}


def _is_error(p: Answer) -> bool:
    """A code or a message is one, unless it says that there is none."""
    if not (p.code or p.message or p.status_code):
        return False
    failed = isinstance(p.status_code, int) and p.status_code >= 400
    return failed or any(str(said or "").lower() not in WELL for said in (p.code, p.message))


def _failure(error: Any, p: Answer) -> Failure:
    said = error if isinstance(error, dict) else {"code": p.code, "message": error or p.message}
    code = str(said.get("code") or "") or None
    message = first_text(said.get("message"), code) or "the provider reported an error"
    passes = (code or "").partition(".")[0] in RETRYABLE
    return Failure("provider_error", message, code, passes)


PARSER = DashScopeParser
