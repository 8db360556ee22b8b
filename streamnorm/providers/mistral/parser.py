"""Mistral chat. The Chat Completions wire (``openai_chat``) with these words of its own:

    delta.content = text, or a list of chunks {type: text | thinking | reference | media …}
    thinking      = {thinking: [text | reference …], signature?, closed?}

A call usually comes whole in one delta, its arguments as text or as an object. An id of ``"null"``
is none. How entries become calls, and what completes them, is Chat's: see ``ChatParser``.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec

from ...events import Citation, Event, FinishReason, ReasoningDelta, TextDelta, Unrecognized, Usage
from .._base import Decode, Handler, Item, StreamFailed, Wire, count, first_text
from ..openai_chat.parser import ChatParser, Entry, _failure

__all__ = ["ITEMS", "MistralParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# One set of types is enough here: this wire has few fields. They stand in the order of the wire.


class Delta(Wire):
    role: str | None = None
    content: str | list[Any] | None = None
    tool_calls: list[Entry] | None = None
    # Known, and of no use to us.
    index: Any = None
    metadata: Any = None
    prefix: Any = None
    refusal: Any = None
    tool_call_id: Any = None


class Choice(Wire):
    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    # Known, and of no use to us.
    logprobs: Any = None
    prompt_logprobs: Any = None
    message: Any = None


class Chunk(Wire):
    # ``id`` and ``model`` are read once, by ``heading``.
    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    # An error may also be the payload itself.
    message: Any = None
    detail: Any = None
    type: Any = None
    code: Any = None
    # Known, and of no use to us. (``p`` is padding against guessing by length.)
    param: Any = None
    raw_status_code: Any = None
    request_id: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    p: Any = None


# --- the types of tool entries ------------------------------------------------------------------

_ID = "tool_calls[].id"
ITEMS = (
    Item("tool_calls[].function", "function", "call", "client", "nullable", _ID,
         "function.arguments, JSON text or an object",
         note="an id that is sent back has nine letters or digits"),
    Item("role=tool", "function", "output", "client", "natural", "tool_call_id", "content",
         "tool_call_id", "request only"),
)  # fmt: skip

# --- the way in ---------------------------------------------------------------------------------


class MistralParser(ChatParser):
    """One Mistral chat stream."""

    name = "mistral"
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Chunk).decode)
    decode_all: ClassVar[Decode | None] = None
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "stop": "stop",
        "length": "length",
        "model_length": "length",
        "tool_calls": "tool_calls",
        "error": "stop",  # told as a failure in the end
    }

    def means(self, payload: Any) -> bool:
        return (
            payload.choices is not None
            or payload.usage is not None
            or payload.error is not None
            or payload.object == "error"
            or payload.detail is not None
        )

    def _payload(self, p: Chunk, out: Out) -> None:
        for choice in p.choices or ():
            if choice.delta is not None:
                self._delta(choice.index, choice.delta, out)
            if choice.index:
                self._more_choices.add(choice.index)
            if choice.finish_reason:
                self._finish_choice(choice.index, choice.finish_reason, out)
        self._objects = False
        if p.usage is not None:
            self._count(p.usage)
        if p.error is not None or p.object == "error" or p.detail is not None:
            self._error(p)

    def _delta(self, number: int, delta: Delta, out: Out) -> None:
        content = delta.content
        if isinstance(content, list):
            self._content(number, content, out)
        elif content:
            out.append(TextDelta(content, 0, number))
        if delta.tool_calls:
            self._entries(number, delta.tool_calls, out)

    def _error(self, p: Chunk) -> None:
        said = p.error if p.error is not None else p.message if p.message is not None else p.detail
        if isinstance(said, dict):
            raise StreamFailed(_failure(said))
        raise StreamFailed(_failure({"message": said, "code": p.code, "type": p.type}))

    # --- content that is a list -----------------------------------------------------------------

    def _content(self, number: int, chunks: list[Any], out: Out) -> None:
        for chunk in chunks:
            kind = str(chunk.get("type", "text")) if isinstance(chunk, dict) else "?"
            handler = CHUNKS.get(kind)
            if handler is not None:
                handler(self, (number, chunk), out)
            else:
                self.unknown({"type": f"content/{kind}", "chunk": chunk}, "content", out)

    def _text(self, p: tuple[int, dict[str, Any]], out: Out) -> None:
        if text := first_text(p[1].get("text")):
            out.append(TextDelta(text, 0, p[0]))

    def _thinking(self, p: tuple[int, dict[str, Any]], out: Out) -> None:
        number, chunk = p
        thoughts = chunk.get("thinking")
        for thought in thoughts if isinstance(thoughts, list) else ({"text": thoughts},):
            self._thought(number, thought, out)
        if signature := chunk.get("signature"):
            echo = {"type": "thinking", "signature": signature}
            out.append(ReasoningDelta("", 0, number, echo))

    def _thought(self, number: int, thought: Any, out: Out) -> None:
        said = thought if isinstance(thought, dict) else {"text": thought}
        if text := first_text(said.get("text")):
            out.append(ReasoningDelta(text, 0, number))
        elif said.get("type", "text") != "text":  # a reference to a source, or to a tool's output
            out.append(Citation(0, said))

    def _reference(self, p: tuple[int, dict[str, Any]], out: Out) -> None:
        out.append(Citation(0, p[1]))

    def _media(self, p: tuple[int, dict[str, Any]], out: Out) -> None:
        """No event of ours carries media: passed on whole."""
        out.append(Unrecognized(f"media/content.{p[1]['type']}", p[1]))

    # --- usage ----------------------------------------------------------------------------------

    def usage(self) -> Usage | None:
        usage = super().usage()
        if usage is None or usage.cached_input is not None:
            return usage
        cached = count(usage.raw, "num_cached_tokens")  # an older word
        return msgspec.structs.replace(usage, cached_input=cached)

    KINDS: ClassVar[dict[type, Handler]] = {Chunk: _payload}


CHUNKS: dict[str, Handler] = {
    "text": MistralParser._text,
    "thinking": MistralParser._thinking,
    "reference": MistralParser._reference,
    "tool_reference": MistralParser._reference,
    **dict.fromkeys(
        ("image_url", "document_url", "file", "input_audio", "resource", "resource_link"),
        MistralParser._media,
    ),
}
