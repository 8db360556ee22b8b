"""Anthropic Messages, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result
from ...encoding.teller import Json, Teller, Told, fragments
from ...text.written import json_text, sse

__all__ = ["SCRIPT", "Anthropic"]


class Anthropic(Teller):
    """Blocks with an index; each is started, grows and is stopped."""

    name = "anthropic"
    MODEL = "claude-sonnet-4-5-20250929"
    KEEP_ALIVE = b'event: ping\ndata: {"type": "ping"}\n\n'
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "refusal": "refusal",
        "pause": "pause_turn",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "overloaded_error",
        "rate_limit": "rate_limit_error",
        "server": "api_error",
        "invalid": "invalid_request_error",
        "auth": "authentication_error",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.index = -1

    def start(self) -> list[Json]:
        message: Json = {"model": self.MODEL, "id": self.id("msg_01"), "type": "message"}
        message |= {"role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}
        usage = {"input_tokens": self.used.input - self.used.cached, "output_tokens": 1}
        usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": self.used.cached}
        return [{"type": "message_start", "message": message | {"usage": usage}}]

    def say(self, text: str) -> Told:
        pieces = [{"type": "text_delta", "text": piece} for piece in fragments(text)]
        return self._block({"type": "text", "text": ""}, pieces)

    def think(self, text: str) -> Told:
        pieces: list[Json] = [{"type": "thinking_delta", "thinking": p} for p in fragments(text)]
        signature = self.id("", "signature", self.index, size=40)
        pieces.append({"type": "signature_delta", "signature": signature})
        return self._block({"type": "thinking", "thinking": "", "signature": ""}, pieces)

    def call(self, call: Call) -> Told:
        return self._called(call, "tool_use", "toolu_01")

    def served(self, call: Call, result: Result) -> list[Json]:
        told = self._called(call, "mcp_tool_use", "mcptoolu_01", server_name="tools")
        used = told.opening[0]["content_block"].get("id")
        content = [{"type": "text", "text": _text(result.output)}]
        block = {"type": "mcp_tool_result", "tool_use_id": used, "is_error": result.is_error}
        answer = self._block(block | {"content": content}, [])
        return [*told.all, *answer.all]

    def finish(self, reason: str) -> list[Json]:
        delta = {"stop_reason": self.reason(reason), "stop_sequence": None}
        usage = {"output_tokens": self.used.output}
        return [
            {"type": "message_delta", "delta": delta, "usage": usage},
            {"type": "message_stop"},
        ]

    def fail(self, error: Error) -> list[Json]:
        return [self.refusal(error)]

    def refusal(self, error: Error) -> Json:
        said = {"type": self.code(error), "message": self.words(error)}
        return {"type": "error", "error": said}

    def frame(self, payload: Json) -> bytes:
        return sse(payload, payload["type"])

    def bad(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type": \n\n'

    def _called(self, call: Call, kind: str, prefix: str, **more: Any) -> Told:
        self.index += 1
        self.calls += 1
        block: Json = {"type": kind, "id": call.id or self.id(prefix, self.calls)}
        block = {k: v for k, v in block.items() if k != "id" or call.has_id}
        block |= {"name": call.name, "input": {}} | more
        at = self.index if call.index is None else call.index
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in ["", *_pieces(call)]]
        return Told(
            [{"type": "content_block_start", "index": self.index, "content_block": block}],
            [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas],
            [{"type": "content_block_stop", "index": self.index}],
        )

    def _block(self, block: Json, deltas: list[Json]) -> Told:
        self.index += 1
        return Told(
            [{"type": "content_block_start", "index": self.index, "content_block": block}],
            [{"type": "content_block_delta", "index": self.index, "delta": d} for d in deltas],
            [{"type": "content_block_stop", "index": self.index}],
        )


def _pieces(call: Call) -> list[str]:
    return fragments(call.written(spaced=True))


def _text(output: Any) -> str:
    return output if isinstance(output, str) else json_text(output)


SCRIPT = Anthropic
