"""Ollama's own API. Every word of that wire that we know is in this file.

    {message: {content, thinking, tool_calls}, done: false}* -> {done: true, done_reason, counts}

One JSON object per line. A call is whole when its line is: every entry of ``tool_calls`` is a call
of its own, its arguments an object, with an ``id`` on newer servers only. ``/api/generate`` says
the same without ``message``. An error is a line ``{"error": "…"}``, also after HTTP 200.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Raw

from ...core import even
from ...core.calls import ALL, FUNCTION, Evidence
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
    count,
    first_text,
)
from ...core.row import Item
from ...events import Event, FinishReason, ReasoningDelta, TextDelta, Usage
from ...framing import Framer
from ...framing.lines import Lines
from ...framing.sse import SSE

__all__ = ["ITEMS", "PARSER", "OllamaParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# Fields stand in the order of the wire: msgspec looks for the next field first.


class Function(Payload):
    index: Any = None  # every entry is a new call, whatever its index is
    name: str | None = None
    arguments: Raw = Raw()  # exact, as it becomes the call's raw text
    description: Any = None


class Entry(Payload):
    id: str | None = None
    type: Any = None
    function: Function | None = None


class Message(Payload):
    role: Any = None
    content: str | None = None
    thinking: str | None = None
    images: Any = None
    tool_calls: list[Entry] | None = None
    # Known, and of no use to us.
    tool_name: Any = None
    tool_call_id: Any = None


class Line(Payload):
    model: Any = None
    remote_model: Any = None
    remote_host: Any = None
    created_at: Any = None
    message: Message | None = None
    # /api/generate has no message.
    response: str | None = None
    thinking: str | None = None
    tool_calls: None = None  # see ``FullLine``
    done: bool | None = None
    done_reason: str | None = None
    total_duration: Any = None
    load_duration: Any = None
    prompt_eval_count: Any = None
    prompt_eval_duration: Any = None
    eval_count: Any = None
    eval_duration: Any = None
    error: Any = None
    image: Any = None
    # Known, and of no use to us.
    context: Any = None
    logprobs: Any = None
    status: Any = None
    completed: Any = None
    total: Any = None
    debug_info: Any = msgspec.field(default=None, name="_debug_info")


class FullLine(Line):
    """As few lines are: with calls where there is no message, as in /api/generate, or beside one."""

    tool_calls: list[Entry] | None = None  # type: ignore[assignment]


class _Header(msgspec.Struct):
    model: str | None = None


# --- the types of tool entries ------------------------------------------------------------------

_ID = "tool_calls[].id"
ITEMS = (
    Item("message.tool_calls[]", "function", "call", "client", "nullable", _ID,
         "function.arguments, a whole object"),
    Item("role=tool", "function", "output", "client", "nullable", "tool_name", "content",
         "tool_name, tool_call_id on newer servers", "request only"),
)  # fmt: skip
COUNTS = (
    "prompt_eval_count", "eval_count", "total_duration", "load_duration", "prompt_eval_duration",
    "eval_duration",
)  # fmt: skip

# --- the way in ---------------------------------------------------------------------------------


class OllamaParser(Parser):
    """One stream of /api/chat or /api/generate."""

    name = "ollama"
    END = "done: true"
    STARTS = frozenset({"json"})
    SAYS_TOOL_CALLS = False
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Line).decode)
    decode_all: ClassVar[Decode | None] = staticmethod(msgspec.json.Decoder(FullLine).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "stop": "stop",
        "length": "length",
        "load": "stop",  # nothing was asked: the model was loaded …
        "unload": "stop",  # … or unloaded
    }
    EVIDENCE = Evidence(
        "the message that holds it", "nothing", "done: true with a known reason", "at the message"
    )
    CALL_TEXTS = (
        "message.tool_calls[].function.arguments",
        "tool_calls[].function.arguments",
        "message.tool_calls[].function",
        "tool_calls[].function",
    )
    CALL_WORDS = (b'"function"', b'"arguments"', b'"tool_calls"')
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "message.tool_calls": ("wire.shape_odd", even.wrapped),
        "message.tool_calls[].id": ("wire.shape_odd", even.number_text),
        "done_reason": ("wire.shape_odd", even.quoted),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._usage: dict[str, Any] = {}

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return SSE(limit) if start == "text" else Lines(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        return isinstance(payload.get("done"), bool) and "choices" not in payload

    def heading(self, data: bytes) -> Heading:
        return Heading(first_text(msgspec.json.decode(data, type=_Header).model))

    def kind_of(self, payload: Any) -> str:
        return "line"

    def means(self, payload: Any) -> bool:
        said = (payload.message, payload.response, payload.thinking, payload.tool_calls)
        return bool(payload.done) or payload.error is not None or any(s is not None for s in said)

    def _line(self, p: Line, out: Out) -> None:
        if p.error is not None:
            raise StreamFailed(_failure(p.error))
        said = p.message
        if said is None:
            said = Message(None, p.response, p.thinking, p.image)
        if said.thinking:
            out.append(ReasoningDelta(said.thinking))
        if said.content:
            out.append(TextDelta(said.content))
        if said.tool_calls:
            self._entries(said.tool_calls, out)
        if said.images:
            self._pictures(said.images, out)
        if p.done:
            self._done(p, out)

    def _full_line(self, p: FullLine, out: Out) -> None:
        """Calls that stand beside the message, or where there is none. Of those that a message with its
        own has beside it, nobody knows whether they are others."""
        said = p.message or Message(None, p.response, p.thinking, p.image)
        if said.tool_calls and p.tool_calls:
            self.calls.lossy = "calls came in two places of one line"
            self._entries(p.tool_calls, out)
            self.calls.lossy = ""
        elif p.tool_calls:
            said.tool_calls = p.tool_calls
        p.message = said
        self._line(p, out)

    def _pictures(self, images: Any, out: Out) -> None:
        for image in images if isinstance(images, list) else [images]:
            self.show(out, Shown("media/message.images", image, image, echo={"images": {}}))

    def _entries(self, entries: list[Entry], out: Out) -> None:
        self.calls.since = len(self.calls.all)  # of one message, two that say the same are two
        for entry in entries:
            self._entry(entry, out)
        self.calls.since = ALL

    def _entry(self, entry: Entry, out: Out) -> None:
        function, doubt = entry.function or Function(), self.calls.lossy
        text = self._arguments(function.arguments)
        self.calls.whole(out, text, FUNCTION, 0, entry.id, _ID, function.name, None, entry)
        self.calls.lossy = doubt

    def _arguments(self, raw: Raw) -> str:
        text = self.exact(raw)
        if text[:1] != '"':
            return text
        self.scribe.note("wire.shape_odd", where="message.tool_calls[].function.arguments")
        return str(self.sound(text.encode())[0])

    def _done(self, p: Line, out: Out) -> None:
        self._usage = {k: v for k in COUNTS if (v := getattr(p, k)) is not None}
        self.raw_reason = p.done_reason
        older = p.done_reason is None  # older servers say no reason at all
        self.reason = self.finish_reason("stop" if older else p.done_reason)
        raise StreamOver

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        return Usage(count(raw, "prompt_eval_count"), count(raw, "eval_count"), raw=raw)

    KINDS: ClassVar[dict[type, Handler]] = {Line: _line, FullLine: _full_line}


def _failure(error: Any) -> Failure:
    said = error if isinstance(error, dict) else {"message": str(error)}
    code = next((str(c) for c in (said.get("code"), said.get("type")) if c), None)
    message = first_text(said.get("message"), code)
    return Failure("provider_error", message or "the provider reported an error", code)


PARSER = OllamaParser
