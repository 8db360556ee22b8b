"""Anthropic Messages, served: events in, blocks out.

    message_start -> block* -> message_delta -> message_stop

Each text, thought and call is a block with an index of its own. Thinking of another provider has no
signature.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...encoding.server import Server, Serving, served_text
from ...events import Failed, Finish, ProviderToolResult, ReasoningDelta, TextDelta, ToolCall
from ...text.written import sse
from .encoder import BLOCKS

__all__ = ["SERVER", "AnthropicServer"]

REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",  # the wire has no other word for it
    "refusal": "refusal",
    "pause": "pause_turn",
    "other": "end_turn",  # the wire has no word for it, unless it is its own
}


class AnthropicServer(Server):
    """One Messages stream."""

    name = "anthropic"

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self._next = 0
        self._block: tuple[str, int] | None = None  # the text that is being told: kind and part
        self._at = 0  # its index

    def opening(self) -> Iterable[bytes]:
        message: dict[str, Any] = {
            "id": self.response_id, "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        return (_event("message_start", message=message),)

    # --- text and thinking ------------------------------------------------------------------------

    def text(self, event: TextDelta) -> Iterable[bytes]:
        if event.text:
            yield from self._go_on("text", event.part, {"type": "text", "text": ""})
            yield self._block_delta(self._at, type="text_delta", text=event.text)

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        echo = event.echo if isinstance(event.echo, dict) and self.source == self.name else {}
        if echo and echo.get("type") != "thinking":
            yield from self._end_text()
            yield from self._whole_block(echo)
            return
        if not event.text and not echo:
            return
        start = {"type": "thinking", "thinking": "", "signature": ""}
        yield from self._go_on("thinking", event.part, start)
        if event.text:
            yield self._block_delta(self._at, type="thinking_delta", thinking=event.text)
        if "signature" in echo:
            yield self._block_delta(self._at, type="signature_delta", signature=echo["signature"])

    def _go_on(self, kind: str, part: int, start: dict[str, Any]) -> Iterable[bytes]:
        """The block that a text belongs to; another part is another block."""
        if self._block != (kind, part):
            yield from self._end_text()
            self._block, self._at = (kind, part), self._next
            yield self._block_start(start)

    def _end_text(self) -> Iterable[bytes]:
        if self._block is not None:
            self._block = None
            yield _event("content_block_stop", index=self._at)

    # --- calls ------------------------------------------------------------------------------------

    def call_opened(self, id: str, name: str, family: str) -> tuple[int, Iterable[bytes]]:
        ended = [*self._end_text()]
        place = self._next
        block = {"type": "tool_use", "id": id, "name": name, "input": {}}
        return place, (*ended, self._block_start(block))

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        return (self._block_delta(call.place, type="input_json_delta", partial_json=text),)

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        return (_event("content_block_stop", index=call.place),)

    def hosted_call(self, call: ToolCall) -> Iterable[bytes]:
        yield from self._end_text()
        kind = BLOCKS.get(call.family, "server_tool_use")
        place = self._next
        block = {"type": kind, "id": call.id, "name": call.name, "input": {}, **(call.echo or {})}
        yield self._block_start(block)
        yield self._block_delta(place, type="input_json_delta", partial_json=served_text(call))
        yield _event("content_block_stop", index=place)

    def hosted_result(self, result: ProviderToolResult) -> Iterable[bytes]:
        if isinstance(result.echo, dict):
            yield from self._end_text()
            yield from self._whole_block(result.echo)

    def _whole_block(self, block: dict[str, Any]) -> Iterable[bytes]:
        place = self._next
        return (self._block_start(block), _event("content_block_stop", index=place))

    # --- the end ----------------------------------------------------------------------------------

    def finished(self, finish: Finish) -> Iterable[bytes]:
        yield from self._end_text()
        reason = REASONS[finish.reason]
        if finish.reason == "other" and self.source == self.name and finish.raw_reason:
            reason = finish.raw_reason
        delta: dict[str, Any] = {"stop_reason": reason, "stop_sequence": None}
        if (
            self.source == self.name
            and isinstance(finish.echo, dict)
            and "container" in finish.echo
        ):
            delta["container"] = finish.echo["container"]
        yield _event("message_delta", delta=delta, usage=self._counts())
        yield _event("message_stop")

    def failed(self, message: str, failure: Failed | None) -> Iterable[bytes]:
        code = failure.code if failure is not None else None
        return (_event("error", error={"type": code or "api_error", "message": message}),)

    def _counts(self) -> dict[str, int]:
        """This wire does not count cached tokens as input."""
        usage = self.usage
        if usage is None:
            return {"output_tokens": 0}
        cached, written = usage.cached_input or 0, usage.cache_write or 0
        return {
            "input_tokens": max(0, (usage.input or 0) - cached - written),
            "output_tokens": usage.output or 0,
            "cache_read_input_tokens": cached, "cache_creation_input_tokens": written,
        }  # fmt: skip

    def _block_start(self, block: dict[str, Any]) -> bytes:
        place, self._next = self._next, self._next + 1
        return _event("content_block_start", index=place, content_block=block)

    def _block_delta(self, place: int, **delta: Any) -> bytes:
        return _event("content_block_delta", index=place, delta=delta)


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


SERVER = AnthropicServer
