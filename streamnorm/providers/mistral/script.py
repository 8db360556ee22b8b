"""Mistral chat, told from a script: the Chat wire, in Mistral's way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Result, Show
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import data_uri
from ..openai_chat.script import Chat

__all__ = ["SCRIPT", "Mistral"]


class Mistral(Chat):
    """Chat's shape with its own habits: whole calls, short ids, thinking as a list of chunks."""

    name = "mistral"
    MODEL = "mistral-small-latest"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
    }

    def show(self, picture: Show) -> Told:
        """A part of the content."""
        part = {"type": "image_url", "image_url": {"url": data_uri(picture.data, picture.type)}}
        return Told(deltas=[self.delta(content=[part])])

    def start(self) -> list[Json]:
        return [self.delta(role="assistant", content="")]

    def think(self, text: str) -> Told:
        parts = [[{"type": "text", "text": piece}] for piece in fragments(text)]
        chunks = [[{"type": "thinking", "thinking": part}] for part in parts]
        return Told(deltas=[self.delta(content=chunk) for chunk in chunks])

    def call(self, call: Call) -> Told:
        at, self.calls = self.calls, self.calls + 1
        key = (call.id or self.id("", at, size=9)) if call.has_id else "null"
        function = {"name": call.name, "arguments": call.written(spaced=True)}
        there = at if call.index is None else call.index
        entry = {"id": key, "function": function, "index": there}
        return Told(deltas=[self.delta(tool_calls=[entry])])

    def served(self, call: Call, result: Result) -> list[Json]:
        return Teller.served(self, call, result)

    def finish(self, reason: str) -> list[Json]:
        usage = {"prompt_tokens": self.used.input, "completion_tokens": self.used.output}
        usage |= {"total_tokens": self.used.input + self.used.output}
        return [self.delta(self.reason(reason), content="") | {"usage": usage}]

    def delta(self, finish: str | None = None, /, **delta: Any) -> Json:
        body = self.body() | {"id": self.id("", size=32).lower()}
        return body | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


SCRIPT = Mistral
