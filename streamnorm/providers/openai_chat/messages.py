"""Chat Completions, a body read back. See ``encoder`` for what stands in it.

Results stand directly behind the message with their calls, one message each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from ...encoding.messages import (
    Entry,
    Found,
    Lines,
    Messages,
    Named,
    Piece,
    Returned,
    Step,
    blocks_of,
    media,
    media_at,
    media_of,
)
from ...encoding.pairs import UNAVAILABLE
from ...tools import Grammar, Mode, Tool, ToolChoice
from .encoder import SOUNDS

__all__ = ["MESSAGES", "MODES", "ChatMessages", "declared_function"]

MODES: Mapping[str, Mode] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
}
RESULTS = ("tool", "function")  # the older role names the function, as there was one call at a time
# What the wire calls a sound -> its media type.
TYPES = {said: type for type, said in reversed(SOUNDS.items())}


class ChatMessages(Lines):
    """The messages of one request."""

    calls = "tool_calls"
    is_usual = True
    is_usual_list = True
    beside: ClassVar[tuple[str, ...]] = ("tools", "tool_choice", "parallel_tool_calls")
    tools_at, choice_at, parallel_at = "tools", "tool_choice", "parallel_tool_calls"
    known = frozenset(
        {"role", "content", "type", "text", "tool_call_id", "image_url", "url", "input_audio",
         "format", "file", "filename"}
    )  # fmt: skip
    opaque = frozenset({"data", "file_data"})

    def is_like(self, entry: Entry) -> bool:
        return self.calls in entry or entry.get("role") == "tool"

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        if entry["type"] != "custom":
            yield declared_function(self, entry)
            return
        said, grammar = entry["custom"], None
        match said.get("format"):
            case {"type": "grammar", "grammar": {"syntax": str(syntax), "definition": str(text)}}:
                grammar = Grammar(syntax, text)
        known = {"name", "description", *(["format"] if grammar else [])}
        inside = {key: value for key, value in said.items() if key not in known}
        extra = _beside(entry, "custom") | ({"custom": inside} if inside else {})
        name, description = said["name"], said.get("description") or ""
        yield Tool.of_text(name, description, grammar, extra={self.provider: extra})

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        parallel = self.parallel(body)
        if said is None:
            return None if parallel else ToolChoice(parallel=False)
        if isinstance(said, str):
            return ToolChoice(MODES[said], parallel=parallel)
        if said["type"] == "allowed_tools":
            inner = said["allowed_tools"]
            if inner["mode"] != "auto":
                raise ValueError("a choice among some that has to be made")
            return ToolChoice("allowed", tuple(map(_name, inner["tools"])), parallel)
        return ToolChoice("tool", (_name(said),), parallel)

    def parallel(self, body: Entry) -> bool:
        """May there be more than one call at a time?"""
        return body.get(self.parallel_at) is not False

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        inner = block.get("function") or block.get("custom")
        return block.get("id"), inner.get("name") if isinstance(inner, dict) else None

    def result(self, block: Entry) -> Named | None:
        if block.get("role") not in RESULTS:
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
            return media_at(said["url"] if isinstance(said, dict) else said, "image/*")
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
        reason = "tool_calls" if blocks_of(entry, self.calls) else "stop"
        yield {"choices": [{"index": 0, "delta": self._delta(entry), "finish_reason": reason}]}

    def answered(self, answer: Entry) -> Iterator[Entry]:
        choices = [
            {**choice, "delta": self._delta(message)}
            for choice in blocks_of(answer, "choices")
            if isinstance(message := choice.get("message"), dict)
        ]
        # An error beside them comes last, as in a stream: before them it would hide their calls.
        begun = [{**choice, "finish_reason": None} for choice in choices]
        ended = [
            {k: v for k, v in choice.items() if k not in ("message", "delta")} for choice in choices
        ]
        yield {"id": answer.get("id"), "model": answer.get("model"), "choices": begun}
        yield {**answer, "choices": ended}

    def _delta(self, entry: Entry) -> Entry:
        calls = blocks_of(entry, self.calls)
        numbered = [{**call, "index": index} for index, call in enumerate(calls)]
        delta = {key: value for key, value in entry.items() if value is not None}
        return delta | ({self.calls: numbered} if numbered else {})


def _name(said: Entry) -> str:
    """Of a tool that is chosen."""
    name = said[said["type"]]["name"]
    if not isinstance(name, str):
        raise TypeError("a name is a text")
    return name


def declared_function(messages: Messages, entry: Entry) -> Tool:
    """A function, in a field of its entry; any other is run by the provider."""
    kind = entry["type"]
    if kind != "function":
        return messages.hosted(entry)
    tool = messages.function(entry[kind], "parameters")
    inside = {kind: tool.extra[messages.provider]} if tool.extra else {}
    extra = _beside(entry, kind) | inside
    return msgspec.structs.replace(tool, extra={messages.provider: extra} if extra else {})


def _beside(entry: Entry, kind: str) -> Entry:
    return {key: value for key, value in entry.items() if key not in ("type", kind)}


MESSAGES = ChatMessages
