"""Bedrock ConverseStream, binary frames with their checksums, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result, Show
from ...encoding.teller import Json, Teller, Told, fragments
from ...framing.aws import write_frame
from ...text.written import in_base64, json_text

__all__ = ["SCRIPT", "Bedrock"]


class Bedrock(Teller):
    """Blocks with an index, each event in an AWS frame; a payload is kept under its event's name."""

    name = "bedrock"
    MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    KEEP_ALIVE = b""  # this framing has none
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "content_filtered",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "serviceUnavailableException",
        "rate_limit": "throttlingException",
        "server": "internalServerException",
        "invalid": "validationException",
        "auth": "accessDeniedException",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.at = -1

    def start(self) -> list[Json]:
        return [{"messageStart": {"role": "assistant"}}]

    def say(self, text: str) -> Told:
        self.at += 1  # text has no contentBlockStart
        deltas = [self._delta(text=piece) for piece in fragments(text)]
        return Told(deltas=deltas, closing=[self._stop()])

    def think(self, text: str) -> Told:
        self.at += 1
        signature = {"signature": self.id("", "signature", self.at, size=40)}
        deltas: list[Json] = [{"text": piece} for piece in fragments(text)]
        said = [self._delta(reasoningContent=delta) for delta in [*deltas, signature]]
        return Told(deltas=said, closing=[self._stop()])

    def show(self, picture: Show) -> Told:
        self.at += 1
        start = self._start(image={"format": picture.type.removeprefix("image/")})
        delta = self._delta(image={"source": {"bytes": in_base64(picture.data)}})
        return Told([start], [delta], [self._stop()])

    def call(self, call: Call) -> Told:
        return self._told(call, {})

    def served(self, call: Call, result: Result) -> list[Json]:
        told = self._told(call, {"type": "server_tool_use"})
        used = told.opening[0]["contentBlockStart"]["start"]["toolUse"].get("toolUseId")
        self.at += 1
        status = "error" if result.is_error else "success"
        start = {"toolUseId": used, "type": f"{call.name}_result", "status": status}
        text = isinstance(result.output, str)
        content = [{"text" if text else "json": result.output}]
        return [
            *told.all,
            self._start(toolResult=start),
            self._delta(toolResult=content),
            self._stop(),
        ]

    def finish(self, reason: str) -> list[Json]:
        used = self.used
        usage = {"inputTokens": used.input, "outputTokens": used.output}
        usage |= {"totalTokens": used.input + used.output, "cacheReadInputTokens": used.cached}
        return [
            {"messageStop": {"stopReason": self.reason(reason)}},
            {"metadata": {"metrics": {"latencyMs": 925}, "usage": usage}},
        ]

    def fail(self, error: Error) -> list[Json]:
        return [{self.code(error): {"message": self.words(error)}}]

    def refusal(self, error: Error) -> Json:
        return {"message": self.words(error)}

    def frame(self, payload: Json) -> bytes:
        ((kind, body),) = payload.items()
        return _frame(kind, json_text(body).encode())

    def bad(self) -> bytes:
        return _frame("contentBlockDelta", b'{"oops": ')

    def _told(self, call: Call, more: Json) -> Told:
        self.at += 1
        self.calls += 1
        key = {"toolUseId": call.id or self.id("tooluse_", self.calls)} if call.has_id else {}
        there = self.at if call.index is None else call.index
        deltas = [{"toolUse": {"input": p}} for p in fragments(call.written(spaced=True))]
        return Told(
            [self._start(toolUse=key | {"name": call.name} | more)],
            [{"contentBlockDelta": {"contentBlockIndex": there, "delta": d}} for d in deltas],
            [self._stop()],
        )

    def _start(self, **start: Any) -> Json:
        return {"contentBlockStart": {"contentBlockIndex": self.at, "start": start}}

    def _delta(self, **delta: Any) -> Json:
        return {"contentBlockDelta": {"contentBlockIndex": self.at, "delta": delta}}

    def _stop(self) -> Json:
        return {"contentBlockStop": {"contentBlockIndex": self.at}}


def _frame(kind: str, body: bytes) -> bytes:
    event = not kind.endswith("Exception")
    headers = {
        ":event-type" if event else ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "event" if event else "exception",
    }
    return write_frame(headers, body)


SCRIPT = Bedrock
