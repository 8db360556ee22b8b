"""DashScope's own wire, told from a script: Chat's deltas as messages, in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result, Show
from ...encoding.teller import Json, Teller, Told
from ...text.written import json_text
from ..openai_chat.script import Chat

__all__ = ["SCRIPT", "DashScope"]


class DashScope(Chat):
    """Events with a number and a status; the reason is the text "null" until the last one."""

    name = "dashscope"
    MODEL = "qwen-plus"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "ServiceUnavailable",
        "rate_limit": "Throttling.RateQuota",
        "server": "InternalError",
        "invalid": "InvalidParameter",
        "auth": "InvalidApiKey",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.numbers = count(1)

    def start(self) -> list[Json]:
        return []

    def served(self, call: Call, result: Result) -> list[Json]:
        return Teller.served(self, call, result)

    def show(self, picture: Show) -> Told:
        return Teller.show(self, picture)

    def finish(self, reason: str) -> list[Json]:
        return [self.delta(self.reason(reason), content="")]

    def refusal(self, error: Error) -> Json:
        said = {"code": self.code(error), "message": self.words(error)}
        return said | {"request_id": self.id("", size=32)}

    def delta(self, finish: str | None = None, /, **delta: Any) -> Json:
        message = {"role": "assistant", "content": "", **delta}
        message["content"] = message["content"] or ""
        output = {"choices": [{"message": message, "finish_reason": finish or "null"}]}
        used = {"input_tokens": self.used.input, "output_tokens": self.used.output}
        used |= {"total_tokens": self.used.input + self.used.output}
        used["prompt_tokens_details"] = {"cached_tokens": self.used.cached}  # type: ignore[assignment]
        return {"output": output, "usage": used, "request_id": self.id("", size=32)}

    def frame(self, payload: Json) -> bytes:
        head = f"id:{next(self.numbers)}\nevent:{'error' if 'code' in payload else 'result'}\n"
        return f"{head}data:{json_text(payload)}\n\n".encode()

    def end(self) -> bytes:
        return b""


SCRIPT = DashScope
