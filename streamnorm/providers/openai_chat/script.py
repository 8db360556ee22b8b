"""OpenAI Chat Completions, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result, Show
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import data_uri, json_text, sse

__all__ = ["SCRIPT", "Chat"]


class Chat(Teller):
    """Chunks of one choice; the fragments of a call are found by its index."""

    name = "openai_chat"
    MODEL = "gpt-4.1-mini-2025-04-14"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
        "content_filter": "content_filter",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "server_error",
        "rate_limit": "rate_limit_exceeded",
        "server": "server_error",
        "invalid": "invalid_request_error",
        "auth": "invalid_api_key",
    }

    def start(self) -> list[Json]:
        return [self.delta(role="assistant", content="", refusal=None)]

    def say(self, text: str) -> Told:
        return Told(deltas=[self.delta(content=piece) for piece in fragments(text)])

    def think(self, text: str) -> Told:
        pieces = fragments(text)
        return Told(deltas=[self.delta(content=None, reasoning_content=p) for p in pieces])

    def show(self, picture: Show) -> Told:
        """As vendors do it: beside the content."""
        url = {"url": data_uri(picture.data, picture.type)}
        return Told(deltas=[self.delta(images=[{"type": "image_url", "image_url": url}])])

    def call(self, call: Call) -> Told:
        at, self.calls = self.calls, self.calls + 1
        there = at if call.index is None else call.index
        entry: Json = {"index": there, "type": "function"}
        if call.has_id:
            entry["id"] = call.id or self.id("call_", at, size=24)
        opened = entry | {"function": {"name": call.name, "arguments": ""}}
        return Told(
            [self.delta(tool_calls=[opened])],
            [
                self.delta(tool_calls=[{"index": there, "function": {"arguments": piece}}])
                for piece in fragments(call.written())
            ],
        )

    def served(self, call: Call, result: Result) -> list[Json]:
        ran: Json = {"index": self.calls, "type": call.name, "arguments": call.written()}
        self.calls += 1
        output = result.output if isinstance(result.output, str) else json_text(result.output)
        return [
            self.delta(executed_tools=[ran]),
            self.delta(executed_tools=[ran | {"output": output}]),
        ]

    def finish(self, reason: str) -> list[Json]:
        return [
            self.delta(self.reason(reason)),
            self.body() | {"choices": [], "usage": self.usage()},
        ]

    def fail(self, error: Error) -> list[Json]:
        return [self.refusal(error)]

    def refusal(self, error: Error) -> Json:
        said = {"message": self.words(error), "type": self.code(error), "param": None}
        return {"error": said | {"code": self.code(error)}}

    def end(self) -> bytes:
        return sse("[DONE]")

    def body(self) -> Json:
        body: Json = {"id": self.id("chatcmpl-"), "object": "chat.completion.chunk"}
        return body | {"created": 1767225600, "model": self.MODEL}

    def delta(self, finish: str | None = None, /, **delta: Any) -> Json:
        said = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self.body() | {"choices": [said]}

    def usage(self) -> Json:
        used = self.used
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning},
        }


SCRIPT = Chat
