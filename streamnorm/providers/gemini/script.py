"""Gemini generateContent, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result, Show
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import in_base64

__all__ = ["SCRIPT", "Gemini"]


class Gemini(Teller):
    """Every chunk is a whole response; a call comes whole, in one part."""

    name = "gemini"
    MODEL = "gemini-3-flash-preview"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "UNAVAILABLE",
        "rate_limit": "RESOURCE_EXHAUSTED",
        "server": "INTERNAL",
        "invalid": "INVALID_ARGUMENT",
        "auth": "UNAUTHENTICATED",
    }
    NUMBERS: ClassVar[Mapping[str, int]] = {
        "UNAVAILABLE": 503,
        "RESOURCE_EXHAUSTED": 429,
        "INVALID_ARGUMENT": 400,
        "UNAUTHENTICATED": 401,
    }

    def say(self, text: str) -> Told:
        return Told(deltas=[self._chunk({"text": piece}) for piece in fragments(text)])

    def think(self, text: str) -> Told:
        pieces = fragments(text)
        return Told(deltas=[self._chunk({"text": piece, "thought": True}) for piece in pieces])

    def show(self, picture: Show) -> Told:
        data = {"mimeType": picture.type, "data": in_base64(picture.data)}
        return Told(deltas=[self._chunk({"inlineData": data})])

    def call(self, call: Call) -> Told:
        said = self._key(call) | {"name": call.name, "args": call.value()}
        return Told(deltas=[self._chunk({"functionCall": said})])

    def served(self, call: Call, result: Result) -> list[Json]:
        kind = self._key(call) | {"toolType": call.name}
        answer = result.output if isinstance(result.output, dict) else {"output": result.output}
        return [
            self._chunk({"toolCall": kind | {"args": call.value()}}),
            self._chunk({"toolResponse": kind | {"response": answer}}),
        ]

    def finish(self, reason: str) -> list[Json]:
        return [self._chunk({"text": ""}, finishReason=self.reason(reason))]

    def fail(self, error: Error) -> list[Json]:
        return [self.refusal(error)]

    def refusal(self, error: Error) -> Json:
        code = self.code(error)
        number = error.status or self.NUMBERS.get(code, 500)
        return {"error": {"code": number, "message": self.words(error), "status": code}}

    def _key(self, call: Call) -> Json:
        self.calls += 1
        return {"id": call.id or self.id("", self.calls, size=8).lower()} if call.has_id else {}

    def _chunk(self, part: Json, **candidate: Any) -> Json:
        said = {"content": {"parts": [part], "role": "model"}} | candidate | {"index": 0}
        used = self.used
        usage: Json = {"promptTokenCount": used.input, "candidatesTokenCount": used.output}
        usage |= {"totalTokenCount": used.input + used.output}
        usage |= {"cachedContentTokenCount": used.cached} if used.cached else {}
        body: Json = {"candidates": [said], "usageMetadata": usage, "modelVersion": self.MODEL}
        return body | {"responseId": self.id("")}


SCRIPT = Gemini
