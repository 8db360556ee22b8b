"""Ollama's own API, a body read back. See ``encoder`` for what stands in it.

A result is paired by the tool's name and by order, on newer servers by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ...encoding.messages import (
    Entry,
    Found,
    LeftOut,
    Lines,
    Named,
    Piece,
    Returned,
    Step,
    UserSaid,
    as_object,
    gathered,
    media,
)
from ...encoding.pairs import UNAVAILABLE
from ...tools import Tool
from ..openai_chat.messages import declared_function

__all__ = ["MESSAGES", "OllamaMessages"]


class OllamaMessages(Lines):
    """The messages of one request."""

    calls = "tool_calls"
    needs_id = False
    beside = ("tools",)
    tools_at = "tools"
    known = frozenset({"role", "content", "text", "tool_name", "tool_call_id", "name"})
    opaque = frozenset({"images"})

    def is_own(self, entry: Entry) -> bool:
        return "tool_name" in entry or isinstance(entry.get("images"), list)

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        yield declared_function(self, {"type": "function", **entry})

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        inner = block.get("function")
        return block.get("id"), inner.get("name") if isinstance(inner, dict) else None

    def result(self, block: Entry) -> Named | None:
        if block.get("role") != "tool":
            return None
        return block.get("tool_call_id"), block.get("tool_name") or block.get("name")

    def returned(self, block: Entry) -> Returned:
        return block.get("content"), False

    def closed(self, call: Found) -> Entry:
        id = {"tool_call_id": call.id} if call.id else {}
        return {"role": "tool", "tool_name": call.name, **id, "content": UNAVAILABLE}

    def name_call(self, block: Entry, id: str) -> None:
        block["id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["tool_call_id"] = id

    def even(self, block: Entry) -> bool:
        inner = block.get("function")
        return isinstance(inner, dict) and "arguments" in inner and as_object(inner, "arguments")

    # --- what was said ----------------------------------------------------------------------------

    def user(self, entry: Entry, where: str) -> Iterator[Step]:
        said = self.content(entry.get("content"), where)
        return gathered(UserSaid, where, chain(said, self._images(entry, where)))

    def _images(self, entry: Entry, where: str) -> Iterator[Piece | LeftOut]:
        images = entry.get("images")
        for image in images if isinstance(images, list) else ():
            try:
                yield media(image, "image/png")
            except (TypeError, ValueError):
                yield LeftOut(where, "an image that is no base64 has no place in a conversation")

    def told(self, entry: Entry) -> Iterator[Entry]:
        yield {"message": entry, "done": True, "done_reason": "stop"}


MESSAGES = OllamaMessages
