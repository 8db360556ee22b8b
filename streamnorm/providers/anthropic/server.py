"""Anthropic Messages, served: events in, blocks out.

    message_start -> block* -> message_delta -> message_stop

Each text, thought and call is a block with an index of its own. Thinking of another provider has an
envelope as its signature, if that is wanted, or none. An envelope of a text is a block of its own, told
before the next one: a message never ends with it, as clients take its last block for the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from ...encoding.server import Body, Server, ServerOptions, Serving, served_text
from ...events import Failed, Finish, ProviderToolResult, ReasoningDelta, TextDelta, ToolCall
from ...text.exact import parse
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
# A delta -> its field, which that of its block is, too, unless it is an input.
DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
# The type of an error, by its status.
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicServer(Server):
    """One Messages stream."""

    name = "anthropic"
    id_prefix = "msg_"
    binds_thoughts = True

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        super().__init__(**options)
        self._next = 0
        self._block: tuple[str, int] | None = None  # the text that is being told: kind and part
        self._at = 0  # its index
        self._aside: list[str] = []  # envelopes of texts that have ended

    def opening(self) -> Iterable[bytes]:
        message: dict[str, Any] = {
            "id": self.response_id, "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        return (self._event("message_start", message=message),)

    def keep_alive(self) -> bytes:
        return self._event("ping")

    # --- text and thinking ------------------------------------------------------------------------

    def text(self, event: TextDelta) -> Iterable[bytes]:
        if event.text:
            yield from self._go_on("text", event.part, {"type": "text", "text": ""})
            yield self._block_delta(self._at, type="text_delta", text=event.text)

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        echo = event.echo if isinstance(event.echo, dict) and self.source == self.name else {}
        if echo and echo.get("type") != "thinking":
            yield from self._next_block()
            yield from self._whole_block(echo)
            return
        if not event.text and not echo and not (self.seals and event.echo):
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
            yield from self._next_block()
            self._block, self._at = (kind, part), self._next
            yield self._block_start(start)

    def run_ended(self) -> Iterable[bytes]:
        block, self._block = self._block, None
        thought = block is not None and block[0] == "thinking"
        envelope = self.envelope(reasoning=thought)
        if envelope is not None and thought:
            yield self._block_delta(self._at, type="signature_delta", signature=envelope)
        elif envelope is not None:
            self._aside.append(envelope)
        if block is not None:
            yield self._event("content_block_stop", index=self._at)

    def _next_block(self) -> Iterable[bytes]:
        yield from self.run_ended()
        aside, self._aside = self._aside, []
        for envelope in aside:
            yield from self._whole_block({"type": "redacted_thinking", "data": envelope})

    # --- calls ------------------------------------------------------------------------------------

    def call_opened(self, call: Serving) -> Iterable[bytes]:
        yield from self._next_block()
        call.place = self._next
        yield self._block_start({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        return (self._block_delta(call.place, type="input_json_delta", partial_json=text),)

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        return (self._event("content_block_stop", index=call.place),)

    def hosted_call(self, call: ToolCall) -> Iterable[bytes]:
        yield from self._next_block()
        kind = BLOCKS.get(call.family, "server_tool_use")
        place = self._next
        block = {"type": kind, "id": call.id, "name": call.name, "input": {}, **(call.echo or {})}
        yield self._block_start(block)
        yield self._block_delta(place, type="input_json_delta", partial_json=served_text(call))
        yield self._event("content_block_stop", index=place)

    def hosted_result(self, result: ProviderToolResult) -> Iterable[bytes]:
        if isinstance(result.echo, dict):
            yield from self._next_block()
            yield from self._whole_block(result.echo)

    def _whole_block(self, block: dict[str, Any]) -> Iterable[bytes]:
        place = self._next
        return (self._block_start(block), self._event("content_block_stop", index=place))

    def adopted(self, said: list[Body], calls: dict[str, Serving]) -> None:
        self._next, texts = 0, list[int]()  # the blocks of texts that are open
        for payload in said:
            kind, at, block = (payload.get(key) for key in ("type", "index", "content_block"))
            if not isinstance(at, int):
                continue
            if kind == "content_block_start" and isinstance(block, dict):
                self._next = max(self._next, at + 1)
                call = calls.get(str(block.get("id")))
                if call is not None:
                    call.place = at
                else:
                    texts.append(at)
            elif kind == "content_block_stop" and at in texts:
                texts.remove(at)
        if texts:
            self._at = texts[-1]
        else:
            self._block = None

    # --- the end ----------------------------------------------------------------------------------

    def finished(self, finish: Finish) -> Iterable[bytes]:
        yield from self.run_ended()
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
        yield self._event("message_delta", delta=delta, usage=self._counts())
        yield self._event("message_stop")

    def failed(self, failure: Failed) -> Iterable[bytes]:
        own = self.source in ("", self.name) or failure.code in ERRORS.values()
        kind = failure.code if own and failure.code else "api_error"
        return (self._event("error", error={"type": kind, "message": failure.error}),)

    def error_body(self, status: int, message: str, code: str | None) -> Body:
        kind = ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    def gathered(self, said: list[Body]) -> Body:
        message: Body = {}
        blocks: list[Body] = []
        pieces: dict[tuple[int, str], list[str]] = {}
        for payload in said:
            match payload["type"]:
                case "message_start":
                    message = dict(payload["message"])
                case "content_block_start":
                    blocks.append(dict(payload["content_block"]))
                case "content_block_delta":
                    field = DELTAS[payload["delta"]["type"]]
                    piece = payload["delta"][field]
                    pieces.setdefault((payload["index"], field), []).append(piece)
                case "message_delta":
                    message |= payload["delta"]
                    message["usage"] = {"input_tokens": 0, **payload["usage"]}
        for (index, field), texts in pieces.items():
            text = "".join(texts)
            is_input = field == DELTAS["input_json_delta"]
            blocks[index] |= {"input": parse(text)} if is_input else {field: text}
        return {**message, "content": blocks}

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
        return self._event("content_block_start", index=place, content_block=block)

    def _block_delta(self, place: int, **delta: Any) -> bytes:
        return self._event("content_block_delta", index=place, delta=delta)

    def _event(self, kind: str, **fields: Any) -> bytes:
        return self.say({"type": kind, **fields}, kind)


SERVER = AnthropicServer
