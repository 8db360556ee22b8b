"""Hugging Face TGI's own API. Every word of that wire that we know is in this file.

    {token: {text, special}, generated_text: null}* -> {token, generated_text, details}

One token per event, and no call ever: what a model says of tools is text. The last event repeats the
whole text, which was told already; ``details`` (why it ended, counts) stand there only if the request
asked for them. Special tokens, such as the end of a turn, are no part of the text. An error is
``{"error": "…", "error_type": "…"}``, also after HTTP 200.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec

from ...core.calls import Evidence
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
from ...events import Event, FinishReason, TextDelta, Usage

__all__ = ["ITEMS", "PARSER", "TgiParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------
# Fields stand in the order of the wire: msgspec looks for the next field first.


class Token(Payload):
    id: Any = None
    text: str | None = None
    logprob: Any = None
    special: bool | None = None


class Details(Payload):
    finish_reason: str | None = None
    generated_tokens: Any = None
    seed: Any = None
    input_length: Any = None


class Step(Payload):
    index: Any = None
    token: Token | None = None
    generated_text: str | None = None
    details: Details | None = None
    error: Any = None
    error_type: Any = None
    # Known, and of no use to us.
    top_tokens: Any = None


ITEMS: tuple[Item, ...] = ()  # nothing on this wire is about a tool
RETRYABLE = {"overloaded", "incomplete_generation", "incomplete_generation_stream"}

# --- the way in ---------------------------------------------------------------------------------


class TgiParser(Parser):
    """One stream of /generate_stream."""

    name = "tgi"
    END = "generated_text"
    SAYS_TOOL_CALLS = False
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Step).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "eos_token": "stop",
        "stop_sequence": "stop",
        "length": "length",
    }
    EVIDENCE = Evidence(ended_by="generated_text, a known finish_reason", told="never")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._usage: dict[str, Any] = {}
        self._said = False

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        return "generated_text" in payload or "error_type" in payload

    def heading(self, data: bytes) -> Heading:
        return Heading()  # the wire names neither a model nor a response

    def kind_of(self, payload: Any) -> str:
        return "step"

    def means(self, payload: Any) -> bool:
        return any(s is not None for s in (payload.token, payload.generated_text, payload.error))

    def _step(self, p: Step, out: Out) -> None:
        if p.error is not None:
            raise StreamFailed(_failure(p))
        token = p.token
        if token is not None and token.text and not token.special:
            self._said = True
            out.append(TextDelta(token.text))
        if p.generated_text is not None:
            self._end(p, p.generated_text, out)

    def _end(self, p: Step, text: str, out: Out) -> None:
        if text and not self._said and p.token is None:  # an imitator that sends no tokens
            out.append(TextDelta(text))
        details = p.details or Details()
        counts = ("input_length", "generated_tokens")
        self._usage = {k: v for k in counts if (v := getattr(details, k)) is not None}
        self.raw_reason = raw = details.finish_reason
        self.reason = self.finish_reason(raw) if raw else "stop"  # nobody asked why it ended
        raise StreamOver

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        return Usage(count(raw, "input_length"), count(raw, "generated_tokens"), raw=raw)

    KINDS: ClassVar[dict[type, Handler]] = {Step: _step}


def _failure(p: Step) -> Failure:
    code = first_text(p.error_type)
    message = first_text(p.error, code) or "the provider reported an error"
    return Failure("provider_error", message, code, code in RETRYABLE)


PARSER = TgiParser
