"""Anthropic Messages, a body read back. See ``encoder`` for what stands in it.

Results lead the message of the user after their calls, and no id is used twice in a request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...encoding.messages import (
    Blocks,
    Entry,
    Found,
    Named,
    Piece,
    Returned,
    as_object,
    blocks_of,
    media,
    type_of,
)
from ...encoding.pairs import UNAVAILABLE

__all__ = ["MESSAGES", "AnthropicMessages"]

# Blocks that no other provider writes.
OWN = {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"}


class AnthropicMessages(Blocks):
    """The messages of one request."""

    unique = True

    def is_own(self, entry: Entry) -> bool:
        return any(type_of(block) in OWN for block in blocks_of(entry, "content"))

    def is_own_body(self, body: Entry) -> bool:
        if self.container not in body:
            return False
        return isinstance(body.get("system"), str) or bool(_typed(body.get("system")))

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        return (block.get("id"), block.get("name")) if block.get("type") == "tool_use" else None

    def result(self, block: Entry) -> Named | None:
        return (block.get("tool_use_id"), None) if block.get("type") == "tool_result" else None

    def returned(self, block: Entry) -> Returned:
        return block.get("content"), bool(block.get("is_error"))

    def closed(self, call: Found) -> Entry:
        return {
            "type": "tool_result", "tool_use_id": call.id, "content": UNAVAILABLE, "is_error": True,
        }  # fmt: skip

    def name_call(self, block: Entry, id: str) -> None:
        block["id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["tool_use_id"] = id

    def even(self, block: Entry) -> bool:
        return as_object(block, "input")

    # --- what was said ----------------------------------------------------------------------------

    def system(self, body: Entry) -> Any:
        return body.get("system")

    def text(self, text: str) -> Entry:
        return {"type": "text", "text": text}

    def piece(self, block: Entry) -> Piece | None:
        source = block["source"]
        if source["type"] == "text":
            return media(source["data"].encode(), source["media_type"], block.get("title"))
        if source["type"] != "base64":
            return None
        return media(source["data"], source["media_type"], block.get("title"))

    def told(self, entry: Entry) -> Iterator[Entry]:
        message = {"type": "message", "role": "assistant", "content": []}
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(self.blocks(entry)):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
        yield {"type": "message_stop"}


def _typed(blocks: Any) -> list[Entry]:
    return [b for b in blocks_of({"": blocks}, "") if "type" in b]


MESSAGES = AnthropicMessages
