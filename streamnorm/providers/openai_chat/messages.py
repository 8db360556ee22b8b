"""Chat Completions, a body read back. See ``encoder`` for what stands in it.

Results stand directly behind the message with their calls, one message each.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...encoding.messages import (
    Entry,
    Found,
    Lines,
    Named,
    Piece,
    Returned,
    Step,
    blocks_of,
    media,
    media_of,
)
from ...encoding.pairs import UNAVAILABLE
from .encoder import SOUNDS

__all__ = ["MESSAGES", "ChatMessages"]

# What the wire calls a sound -> its media type.
TYPES = {said: type for type, said in reversed(SOUNDS.items())}


class ChatMessages(Lines):
    """The messages of one request."""

    calls = "tool_calls"
    is_usual = True
    is_usual_list = True

    def is_like(self, entry: Entry) -> bool:
        return self.calls in entry or entry.get("role") == "tool"

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        inner = block.get("function") or block.get("custom")
        return block.get("id"), inner.get("name") if isinstance(inner, dict) else None

    def result(self, block: Entry) -> Named | None:
        if block.get("role") != "tool":
            return None
        return block.get("tool_call_id"), block.get("name")

    def returned(self, block: Entry) -> Returned:
        return block.get("content"), False

    def closed(self, call: Found) -> Entry:
        return {"role": "tool", "tool_call_id": call.id, "content": UNAVAILABLE}

    def name_call(self, block: Entry, id: str) -> None:
        block["id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["tool_call_id"] = id

    # --- what was said ----------------------------------------------------------------------------

    def piece(self, block: Entry) -> Piece | None:
        if "image_url" in block:
            said = block["image_url"]
            return media_of(said["url"] if isinstance(said, dict) else said)
        if "input_audio" in block:
            said = block["input_audio"]
            return media(said["data"], TYPES.get(said["format"], f"audio/{said['format']}"))
        if "file" in block:
            return media_of(block["file"]["file_data"], block["file"].get("filename"))
        return None

    def message(self, entry: Entry, where: str) -> Iterator[Step]:
        if entry.get("role") == "tool" and str(entry.get("name")).startswith("$"):
            return  # of the provider's own function, whose call has said it
        yield from super().message(entry, where)

    def told(self, entry: Entry) -> Iterator[Entry]:
        calls = blocks_of(entry, self.calls)
        numbered = [{**call, "index": index} for index, call in enumerate(calls)]
        delta = {key: value for key, value in entry.items() if value is not None}
        delta |= {self.calls: numbered} if numbered else {}
        reason = "tool_calls" if numbered else "stop"
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


MESSAGES = ChatMessages
