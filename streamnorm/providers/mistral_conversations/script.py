"""Mistral conversations, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import sse

__all__ = ["SCRIPT", "Conversations"]


class Conversations(Teller):
    """Entries with an output index; a call says its id and name with every piece."""

    name = "mistral_conversations"
    MODEL = "mistral-medium-latest"
    REASONS: ClassVar[Mapping[str, str]] = {"stop": "done", "tool_calls": "done"}
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "503",
        "rate_limit": "429",
        "server": "500",
        "invalid": "422",
        "auth": "401",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.at = -1

    def start(self) -> list[Json]:
        said = {"conversation_id": self.id("conv_", size=32).lower()}
        return [{"type": "conversation.response.started"} | said]

    def say(self, text: str) -> Told:
        return self._message(list(fragments(text)))

    def think(self, text: str) -> Told:
        parts = [[{"type": "text", "text": piece}] for piece in fragments(text)]
        return self._message([{"type": "thinking", "thinking": part} for part in parts])

    def call(self, call: Call) -> Told:
        self.at += 1
        at, self.calls = self.calls, self.calls + 1
        key = {"tool_call_id": call.id or self.id("", at, size=9)} if call.has_id else {}
        same = {"output_index": self.at if call.index is None else call.index, "name": call.name}
        same |= {"model": self.MODEL} | key | ({"id": self.id("fc_", at)} if key else {})
        pieces = fragments(call.written(spaced=True)) if key else [call.written(spaced=True)]
        kind = "function.call.delta"
        return Told(deltas=[{"type": kind, "arguments": piece} | same for piece in pieces or [""]])

    def served(self, call: Call, result: Result) -> list[Json]:
        self.at += 1
        at, self.calls = self.calls, self.calls + 1
        same: Json = {"output_index": self.at, "name": call.name}
        same |= {"id": call.id or self.id("tool_exec_", at)} if call.has_id else {}
        output: Any = result.output
        info = output if isinstance(output, dict) else {"output": output}
        return [
            {"type": "tool.execution.started", "arguments": call.written(spaced=True)} | same,
            {"type": "tool.execution.done", "info": info} | same,
        ]

    def finish(self, reason: str) -> list[Json]:
        self.reason(reason)
        used = {"prompt_tokens": self.used.input, "completion_tokens": self.used.output}
        used |= {"total_tokens": self.used.input + self.used.output}
        return [{"type": "conversation.response.done", "usage": used}]

    def fail(self, error: Error) -> list[Json]:
        code = self.code(error)
        said = {"message": self.words(error), "code": int(code) if code.isdigit() else code}
        return [{"type": "conversation.response.error"} | said]

    def frame(self, payload: Json) -> bytes:
        return sse(payload, payload["type"])

    def bad(self) -> bytes:
        return b'event: message.output.delta\ndata: {"type": \n\n'

    def _message(self, contents: list[Any]) -> Told:
        self.at += 1
        same = {"output_index": self.at, "content_index": 0, "role": "assistant"}
        same |= {"id": self.id("msg_", self.at), "model": self.MODEL}
        kind = "message.output.delta"
        return Told(deltas=[{"type": kind, "content": content} | same for content in contents])


SCRIPT = Conversations
