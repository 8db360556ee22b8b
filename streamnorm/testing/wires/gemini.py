"""Gemini generateContent and Gemini Interactions, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..steps import Call, Error, Result
from ._base import Json, Told, Wire, fragments, sse


class Gemini(Wire):
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


class Interactions(Wire):
    """Steps with an index; each is started, grows and is stopped."""

    name = "gemini_interactions"
    MODEL = "gemini-3-flash-preview"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "completed",
        "tool_calls": "requires_action",
        "length": "incomplete",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "unavailable",
        "rate_limit": "resource_exhausted",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.at = -1
        self.body: Json = {"id": self.id("v1_"), "object": "interaction", "model": self.MODEL}

    def start(self) -> list[Json]:
        made = self.body | {"status": "in_progress"}
        status = {"interaction_id": self.body["id"], "status": "in_progress"}
        return [
            {"event_type": "interaction.created", "interaction": made},
            {"event_type": "interaction.status_update"} | status,
        ]

    def say(self, text: str) -> Told:
        deltas = [{"type": "text", "text": piece} for piece in fragments(text)]
        return self._step({"type": "model_output"}, deltas)

    def think(self, text: str) -> Told:
        pieces = [{"type": "text", "text": piece} for piece in fragments(text)]
        deltas: list[Json] = [{"type": "thought_summary", "content": piece} for piece in pieces]
        signature = self.id("", "signature", self.at, size=40)
        deltas.append({"type": "thought_signature", "signature": signature})
        return self._step({"type": "thought"}, deltas)

    def call(self, call: Call) -> Told:
        key = self._key(call)
        step = {"type": "function_call"} | key | {"name": call.name, "arguments": {}}
        pieces = fragments(call.text())
        deltas = [{"type": "arguments_delta", "arguments": piece} for piece in pieces]
        told = self._step(step, deltas)
        if call.index is not None:
            wrong = [delta | {"index": call.index} for delta in told.deltas]
            told = Told(told.opening, wrong, told.closing)
        return told

    def served(self, call: Call, result: Result) -> list[Json]:
        key = self._key(call)
        asked: Json = {"name": call.name, "server_name": "tools", "arguments": call.value()}
        kind = "mcp_server_tool"
        first = self._step(
            {"type": f"{kind}_call"} | key | asked, [{"type": f"{kind}_call"} | asked]
        )
        answer: Json = {"result": result.output} | ({"is_error": True} if result.is_error else {})
        step = {"type": f"{kind}_result", "call_id": key.get("id")} | answer
        return first.all + self._step(step, [{"type": f"{kind}_result"} | answer]).all

    def finish(self, reason: str) -> list[Json]:
        used = self.used
        usage = {"total_input_tokens": used.input, "total_output_tokens": used.output}
        usage |= {"total_cached_tokens": used.cached, "total_thought_tokens": used.reasoning}
        usage |= {"total_tokens": used.input + used.output}
        body = self.body | {"status": self.reason(reason), "usage": usage}
        return [{"event_type": "interaction.completed", "interaction": body}]

    def fail(self, error: Error) -> list[Json]:
        said = {"code": self.code(error), "message": self.words(error)}
        return [{"event_type": "error", "error": said}]

    def frame(self, payload: Json) -> bytes:
        return sse(payload, payload["event_type"])

    def end(self) -> bytes:
        return sse("[DONE]", "done")

    def bad(self) -> bytes:
        return b'event: step.delta\ndata: {"event_type": \n\n'

    def _key(self, call: Call) -> Json:
        self.calls += 1
        return {"id": call.id or self.id("", self.calls, size=8).lower()} if call.has_id else {}

    def _step(self, step: Json, deltas: list[Json]) -> Told:
        self.at += 1
        return Told(
            [{"event_type": "step.start", "index": self.at, "step": step}],
            [{"event_type": "step.delta", "index": self.at, "delta": d} for d in deltas],
            [{"event_type": "step.stop", "index": self.at}],
        )
