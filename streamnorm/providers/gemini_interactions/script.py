"""Gemini Interactions, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ...encoding.steps import Call, Error, Result, Show
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import in_base64, sse

__all__ = ["SCRIPT", "Interactions"]


class Interactions(Teller):
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

    def show(self, picture: Show) -> Told:
        image = {"type": "image", "data": in_base64(picture.data), "mime_type": picture.type}
        return self._step({"type": "model_output"}, [image])

    def call(self, call: Call) -> Told:
        key = self._key(call)
        step = {"type": "function_call"} | key | {"name": call.name, "arguments": {}}
        pieces = fragments(call.written())
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


SCRIPT = Interactions
