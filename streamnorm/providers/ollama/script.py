"""Ollama's own chat wire, lines of JSON, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Show
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import in_base64, json_text

__all__ = ["SCRIPT", "Ollama"]


class Ollama(Teller):
    """One object per line; calls come whole, with their arguments as an object."""

    name = "ollama"
    MODEL = "qwen3:4b"
    KEEP_ALIVE = b"\n"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "tool_calls": "stop",
        "length": "length",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.lines = 0

    def say(self, text: str) -> Told:
        return Told(deltas=[self._line(content=piece) for piece in fragments(text)])

    def think(self, text: str) -> Told:
        return Told(deltas=[self._line(thinking=piece) for piece in fragments(text)])

    def show(self, picture: Show) -> Told:
        return Told(deltas=[self._line(images=[in_base64(picture.data)])])

    def call(self, call: Call) -> Told:
        at, self.calls = self.calls, self.calls + 1
        there = at if call.index is None else call.index
        key = {"id": call.id or self.id("call_", at, size=8).lower()} if call.has_id else {}
        function = {"index": there, "name": call.name, "arguments": call.value()}
        return Told(deltas=[self._line(tool_calls=[key | {"function": function}])])

    def finish(self, reason: str) -> list[Json]:
        counts: Json = {"done_reason": self.reason(reason), "total_duration": 2361567204}
        counts |= {"prompt_eval_count": self.used.input, "eval_count": self.used.output}
        return [self._line() | {"done": True} | counts]

    def fail(self, error: Error) -> list[Json]:
        return [self.refusal(error)]

    def refusal(self, error: Error) -> Json:
        return {"error": self.words(error)}

    def frame(self, payload: Json) -> bytes:
        return json_text(payload).encode() + b"\n"

    def bad(self) -> bytes:
        return b'{"oops": \n'

    def _line(self, **message: Any) -> Json:
        self.lines += 1
        at = f"2026-01-01T00:00:{self.lines % 60:02}.204117Z"
        said = {"role": "assistant", "content": ""} | message
        return {"model": self.MODEL, "created_at": at, "message": said, "done": False}


SCRIPT = Ollama
