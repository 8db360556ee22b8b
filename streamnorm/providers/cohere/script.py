"""Cohere v2 chat, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import sse

__all__ = ["SCRIPT", "Cohere"]


class Cohere(Teller):
    """Typed events; a call is started, grows and ends under its index."""

    name = "cohere"
    MODEL = "command-a-03-2025"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "COMPLETE",
        "tool_calls": "TOOL_CALL",
        "length": "MAX_TOKENS",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.contents = 0

    def start(self) -> list[Json]:
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
        start: Json = {"id": self.id(""), "type": "message-start"}
        return [start | {"delta": {"message": message | {"citations": []}}}]

    def say(self, text: str) -> Told:
        return self._content(text, "text")

    def think(self, text: str) -> Told:
        return self._content(text, "thinking")

    def call(self, call: Call) -> Told:
        at, self.calls = self.calls, self.calls + 1
        there = at if call.index is None else call.index
        key = call.id or f"{call.name}_{self.id('', at, size=12).lower()}"
        entry: Json = ({"id": key} if call.has_id else {}) | {"type": "function"}
        entry |= {"function": {"name": call.name, "arguments": ""}}
        return Told(
            [_said("tool-call-start", at, tool_calls=entry)],
            [
                _said("tool-call-delta", there, tool_calls={"function": {"arguments": piece}})
                for piece in fragments(call.written(spaced=True))
            ],
            [_said("tool-call-end", at)],
        )

    def finish(self, reason: str) -> list[Json]:
        return [self._end(self.reason(reason))]

    def fail(self, error: Error) -> list[Json]:
        return [self._end("ERROR", error=self.words(error))]

    def refusal(self, error: Error) -> Json:
        return {"message": self.words(error)}

    def frame(self, payload: Json) -> bytes:
        return sse(payload, payload["type"])

    def bad(self) -> bytes:
        return b'event: content-delta\ndata: {"type": \n\n'

    def _content(self, text: str, kind: str) -> Told:
        at, self.contents = self.contents, self.contents + 1
        return Told(
            [_said("content-start", at, content={"type": kind, kind: ""})],
            [_said("content-delta", at, content={kind: piece}) for piece in fragments(text)],
            [_said("content-end", at)],
        )

    def _end(self, reason: str, **more: Any) -> Json:
        tokens = {"input_tokens": self.used.input, "output_tokens": self.used.output}
        usage: Json = {"billed_units": tokens, "tokens": tokens, "cached_tokens": self.used.cached}
        delta = {"finish_reason": reason} | more | {"usage": usage}
        return {"type": "message-end", "delta": delta}


def _said(kind: str, index: int, **message: Any) -> Json:
    payload: Json = {"type": kind, "index": index}
    return payload | ({"delta": {"message": message}} if message else {})


SCRIPT = Cohere
