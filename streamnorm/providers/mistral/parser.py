"""Mistral chat. The Chat Completions wire (``openai_chat``) with these words of its own:

    delta.content = text, or a list of chunks {type: text | thinking | reference | media …}
    thinking      = {thinking: [text | reference …], signature?, closed?}

A call usually comes whole in one delta, its arguments as text or as an object. An id of ``"null"``
is none. How entries become calls, and what completes them, is Chat's: see ``ChatParser``.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec

from ...core.parser import Decode, Handler, Payload, StreamFailed, count
from ...core.row import Item
from ...events import Echo, Event, FinishReason, TextDelta, Usage
from ..openai_chat.entries import Entry
from ..openai_chat.parser import ChatParser, failure_of

__all__ = ["ITEMS", "PARSER", "MistralParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# One set of types is enough here: this wire has few fields. They stand in the order of the wire.


class Delta(Payload):
    role: str | None = None
    content: str | list[Any] | None = None
    tool_calls: list[Entry] | None = None
    error: Any = None
    # Known, and of no use to us.
    index: Any = None
    metadata: Any = None
    prefix: Any = None
    refusal: Any = None
    tool_call_id: Any = None


class Choice(Payload):
    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    error: Any = None
    message: Any = None  # alone in an answer that is no stream
    # Known, and of no use to us.
    logprobs: Any = None
    prompt_logprobs: Any = None


class Chunk(Payload):
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


class Usual(Chunk, kw_only=True):
    """One that says something of the answer. Any other is read whole: what it says depends on all of it."""

    choices: list[Choice]


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
    SIGNED: ClassVar[Echo] = {"type": "thinking"}
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Usual).decode)
    decode_all: ClassVar[Decode | None] = staticmethod(msgspec.json.Decoder(Chunk).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "stop": "stop",
        "length": "length",
        "model_length": "length",
        "tool_calls": "tool_calls",
        "error": "other",  # told as a failure in the end
    }

    def means(self, payload: Any) -> bool:
        return (
            payload.choices is not None
            or payload.usage is not None
            or payload.object == "chat.completion.chunk"
            or payload.error is not None
            or payload.object == "error"
            or payload.detail is not None
            or isinstance(payload.message, str)
        )

    def _payload(self, p: Chunk, out: Out) -> None:
        self._hear_whose(p.id)
        bare = p.choices is None
        refused = bare and p.message is not None
        if p.error is not None or p.object == "error" or p.detail is not None or refused:
            self._error(p)
        if bare:
            self._ask_for_choices(p)
        for choice in p.choices or ():
            self._choice(choice.index).with_word = choice.finish_reason is not None
            if choice.delta is not None:
                self._delta(choice.index, choice.delta, out)
            elif choice.message is not None:
                self._at_once(p.object, choice.index, choice.message, out)
            if choice.error is not None:
                self._fail(failure_of(choice.error))
            if choice.finish_reason:
                self._finish_choice(choice.index, choice.finish_reason, out)
                entries = choice.delta.tool_calls if choice.delta is not None else None
                self._choice(choice.index).hear_end(bool(entries), entries)
        self._count(p.usage)

    def _delta(self, number: int, delta: Delta, out: Out) -> None:
        content = delta.content
        if delta.error is not None:
            self._fail(failure_of(delta.error))
        if isinstance(content, list):
            self._content(number, content, out)
        elif content:
            out.append(TextDelta(content, 0, number))
        if delta.tool_calls:
            self._choice(number).hear(delta.tool_calls, out, objects=self.even_objects)

    def _error(self, p: Chunk) -> None:
        said = p.error if p.error is not None else p.message if p.message is not None else p.detail
        if isinstance(said, dict):
            raise StreamFailed(failure_of(said))
        raise StreamFailed(failure_of({"message": said, "code": p.code, "type": p.type}))

    # --- usage ----------------------------------------------------------------------------------

    def usage(self) -> Usage | None:
        usage = super().usage()
        if usage is None or usage.cached_input is not None:
            return usage
        cached = count(usage.raw, "num_cached_tokens")  # an older word
        return msgspec.structs.replace(usage, cached_input=cached)

    KINDS: ClassVar[dict[type, Handler]] = {Usual: _payload, Chunk: _payload}


PARSER = MistralParser
