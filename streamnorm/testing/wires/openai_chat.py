"""OpenAI Chat Completions, and Mistral, which says the same in its own way, from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..steps import Call, Error, Result
from ._base import Json, Told, Wire, dumps, fragments, sse


class Chat(Wire):
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
                for piece in fragments(call.text())
            ],
        )

    def served(self, call: Call, result: Result) -> list[Json]:
        ran: Json = {"index": self.calls, "type": call.name, "arguments": call.text()}
        self.calls += 1
        output = result.output if isinstance(result.output, str) else dumps(result.output)
        return [
            self.delta(executed_tools=[ran]),
            self.delta(executed_tools=[ran | {"output": output}]),
        ]

    def finish(self, reason: str) -> list[Json]:
        return [
            self.delta(self.reason(reason)),
            self.body() | {"choices": [], "usage": self._usage()},
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

    def _usage(self) -> Json:
        used = self.used
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning},
        }


class Mistral(Chat):
    """Chat's shape with its own habits: whole calls, short ids, thinking as a list of chunks."""

    name = "mistral"
    MODEL = "mistral-small-latest"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
    }

    def start(self) -> list[Json]:
        return [self.delta(role="assistant", content="")]

    def think(self, text: str) -> Told:
        parts = [[{"type": "text", "text": piece}] for piece in fragments(text)]
        chunks = [[{"type": "thinking", "thinking": part}] for part in parts]
        return Told(deltas=[self.delta(content=chunk) for chunk in chunks])

    def call(self, call: Call) -> Told:
        at, self.calls = self.calls, self.calls + 1
        key = (call.id or self.id("", at, size=9)) if call.has_id else "null"
        function = {"name": call.name, "arguments": call.text(spaced=True)}
        there = at if call.index is None else call.index
        entry = {"id": key, "function": function, "index": there}
        return Told(deltas=[self.delta(tool_calls=[entry])])

    def served(self, call: Call, result: Result) -> list[Json]:
        return Wire.served(self, call, result)

    def finish(self, reason: str) -> list[Json]:
        usage = {"prompt_tokens": self.used.input, "completion_tokens": self.used.output}
        usage |= {"total_tokens": self.used.input + self.used.output}
        return [self.delta(self.reason(reason), content="") | {"usage": usage}]

    def delta(self, finish: str | None = None, /, **delta: Any) -> Json:
        body = self.body() | {"id": self.id("", size=32).lower()}
        return body | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
