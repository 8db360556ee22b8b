"""Anthropic Messages, a body read back. See ``encoder`` for what stands in it.

Results lead the message of the user after their calls, and no id is used twice in a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from ...tools import Link, Mode, Tool, ToolChoice
from .encoder import CHOICES, LINKED

__all__ = ["MESSAGES", "AnthropicMessages"]

# Blocks that no other provider writes.
OWN = {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"}
MODES: Mapping[str, Mode] = {said: mode for mode, said in CHOICES.items()}


class AnthropicMessages(Blocks):
    """The messages of one request."""

    unique = True
    beside = ("system", "tools", "tool_choice")
    tools_at, choice_at = "tools", "tool_choice"
    known = frozenset(
        {
            "role",
            "content",
            "type",
            "text",
            "source",
            "url",
            "media_type",
            "title",
            "tool_use_id",
            "is_error",
        }
    )
    opaque = frozenset({"data"})

    def is_own(self, entry: Entry) -> bool:
        return any(type_of(block) in OWN for block in blocks_of(entry, "content"))

    def is_own_body(self, body: Entry) -> bool:
        if self.container not in body:
            return False
        return isinstance(body.get("system"), str) or bool(_typed(body.get("system")))

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        if entry.get("type", "custom") != "custom":
            yield self.hosted(entry)
        else:
            yield self.function(_without(entry, "type"), "input_schema")

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        if said is None:
            return None
        names = (said["name"],) if said["type"] == "tool" else ()
        parallel = not said.get("disable_parallel_tool_use")
        return ToolChoice(MODES[said["type"]], names, parallel)

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
        if source["type"] == "url":
            return Link(source["url"], LINKED[type_of(block)], block.get("title"))
        if source["type"] != "base64":
            return None
        return media(source["data"], source["media_type"], block.get("title"))

    def told(self, entry: Entry) -> Iterator[Entry]:
        return self.answered({**entry, "stop_reason": "end_turn"})

    def answered(self, answer: Entry) -> Iterator[Entry]:
        told: Entry = {key: answer[key] for key in ("id", "model") if key in answer}
        message: Entry = {**told, "type": "message", "role": "assistant", "content": []}
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(self.blocks(answer)):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        if (reason := answer.get("stop_reason")) is not None:
            ended = {"stop_reason": reason, "stop_sequence": answer.get("stop_sequence")}
            usage = answer.get("usage") or {}
            yield {"type": "message_delta", "delta": ended, "usage": usage}
            yield {"type": "message_stop"}


def _without(entry: Entry, *keys: str) -> Entry:
    return {key: value for key, value in entry.items() if key not in keys}


def _typed(blocks: Any) -> list[Entry]:
    return [b for b in blocks_of({"": blocks}, "") if "type" in b]


MESSAGES = AnthropicMessages
