"""Hugging Face TGI's own API, told from a script: one token per event, and no tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ...encoding.steps import Call, Error
from ...encoding.teller import Json, Teller, Told, fragments
from ...errors import UsageError
from ...text.written import json_bytes

__all__ = ["SCRIPT", "Tgi"]


class Tgi(Teller):
    """Tokens; the last event says the whole text again."""

    name = "tgi"
    MODEL = "meta-llama/Llama-3.1-8B-Instruct"
    KEEP_ALIVE = b":\n\n"
    REASONS: ClassVar[Mapping[str, str]] = {"stop": "eos_token", "length": "length"}
    CODES: ClassVar[Mapping[str, str]] = {
        "rate_limit": "overloaded",
        "server": "generation",
        "invalid": "validation",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.index = 0
        self.text = ""

    def say(self, text: str) -> Told:
        self.text += text
        return Told(deltas=[self._step(piece) for piece in fragments(text)])

    def think(self, text: str) -> Told:
        raise UsageError(f"{self.name} has no reasoning: leave think() out, or use another wire")

    def call(self, call: Call) -> Told:
        raise UsageError(f"{self.name} has no tools: leave call() out, or choose another wire")

    def finish(self, reason: str) -> list[Json]:
        special = reason == "stop"
        details = {"finish_reason": self.reason(reason), "generated_tokens": self.used.output}
        details |= {"seed": None, "input_length": self.used.input}
        last = self._step("<|eot_id|>" if special else "", special=special)
        return [last | {"generated_text": self.text, "details": details}]

    def fail(self, error: Error) -> list[Json]:
        return [self.refusal(error)]

    def refusal(self, error: Error) -> Json:
        return {"error": self.words(error), "error_type": self.code(error)}

    def frame(self, payload: Json) -> bytes:
        return b"data:%b\n\n" % json_bytes(payload)  # without a space, as the server does

    def bad(self) -> bytes:
        return b'data:{"index": \n\n'

    def _step(self, text: str, *, special: bool = False) -> Json:
        self.index += 1
        token = {"id": 1000 + self.index, "text": text, "logprob": -0.25, "special": special}
        return {"index": self.index, "token": token, "generated_text": None, "details": None}


SCRIPT = Tgi
