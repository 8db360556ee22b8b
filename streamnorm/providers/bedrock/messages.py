"""Amazon Bedrock Converse, a body read back. See ``encoder`` for what stands in it.

Each block is an object with one field, which says what it is. No id is used twice in a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ...conversation import Text
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
    under,
)
from ...encoding.pairs import UNAVAILABLE
from ...text.written import in_base64, json_text
from ...tools import Mode, Tool, ToolChoice
from .encoder import CHOICES, FORMATS

__all__ = ["MESSAGES", "BedrockMessages"]

MODES: Mapping[str, Mode] = {said: mode for mode, said in CHOICES.items()}
# The block that media stand in, and what it calls them -> the media type.
TYPES = {said: type for type, said in FORMATS.items()}
# Fields of a body, and blocks, that no other provider writes.
OWN_FIELDS = ("modelId", "toolConfig", "inferenceConfig", "additionalModelRequestFields")
OWN = ("toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent")


class BedrockMessages(Blocks):
    """The messages of one request."""

    unique = True
    beside = ("system", "toolConfig.tools", "toolConfig.toolChoice")
    tools_at, choice_at = "toolConfig.tools", "toolConfig.toolChoice"
    known = frozenset(
        {"role", "content", "text", "image", "document", "video", "format", "source", "name",
         "toolResult", "toolUseId", "status"}
    )  # fmt: skip
    opaque = frozenset({"bytes", "json"})

    def is_own(self, entry: Entry) -> bool:
        blocks = blocks_of(entry, "content")
        return any("type" not in b and ("text" in b or any(o in b for o in OWN)) for b in blocks)

    def is_own_body(self, body: Entry) -> bool:
        return any(field in body for field in OWN_FIELDS)

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        if "toolSpec" not in entry:
            yield self.hosted(entry)
            return
        said = dict(entry["toolSpec"])
        said["inputSchema"] = said["inputSchema"]["json"]
        tool = self.function(said, "inputSchema")
        extra = {provider: {"toolSpec": fields} for provider, fields in tool.extra.items()}
        yield msgspec.structs.replace(tool, extra=extra)

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        if said is None:
            return None
        (kind,) = said
        if kind == "tool":
            return ToolChoice("tool", (said[kind]["name"],))
        return ToolChoice(MODES[kind])

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        return under(block, "toolUse", "toolUseId")

    def result(self, block: Entry) -> Named | None:
        return under(block, "toolResult", "toolUseId")

    def returned(self, block: Entry) -> Returned:
        said = block["toolResult"]
        return said.get("content"), said.get("status") == "error"

    def closed(self, call: Found) -> Entry:
        content = [{"text": UNAVAILABLE}]
        return {"toolResult": {"toolUseId": call.id, "content": content, "status": "error"}}

    def name_call(self, block: Entry, id: str) -> None:
        block["toolUse"]["toolUseId"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["toolResult"]["toolUseId"] = id

    def even(self, block: Entry) -> bool:
        return as_object(block["toolUse"], "input")

    # --- what was said ----------------------------------------------------------------------------

    def system(self, body: Entry) -> Any:
        return body.get("system")

    def text(self, text: str) -> Entry:
        return {"text": text}

    def piece(self, block: Entry) -> Piece | None:
        if "json" in block:
            return Text(json_text(block["json"]))
        for kind in ("image", "document", "video"):
            if kind in block:
                said = block[kind]
                type = TYPES.get((kind, said["format"]), f"{kind}/{said['format']}")
                return media(said["source"]["bytes"], type, said.get("name"))
        return None

    def output(self, content: Any) -> Any:
        match content:
            case [{"json": value}]:
                return value
        return super().output(content)

    def told(self, entry: Entry) -> Iterator[Entry]:
        yield {"messageStart": {"role": "assistant"}}
        for at, block in enumerate(self.blocks(entry)):
            for kind, said in _block(block):
                yield {f"contentBlock{kind}": {"contentBlockIndex": at, **said}}
            yield {"contentBlockStop": {"contentBlockIndex": at}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def _block(block: Entry) -> Iterator[tuple[str, Entry]]:
    if isinstance(use := block.get("toolUse"), dict):
        start = {key: value for key, value in use.items() if key != "input"}
        yield "Start", {"start": {"toolUse": start}}
        yield "Delta", {"delta": {"toolUse": {"input": json_text(use.get("input", {}))}}}
    elif isinstance(result := block.get("toolResult"), dict):  # of a tool that the provider ran
        start = {key: value for key, value in result.items() if key != "content"}
        yield "Start", {"start": {"toolResult": start}}
        yield "Delta", {"delta": {"toolResult": result.get("content", [])}}
    elif isinstance(thought := block.get("reasoningContent"), dict):
        said = thought.get("reasoningText") or thought
        for key in ("text", "signature", "redactedContent"):
            if isinstance(said, dict) and said.get(key):
                yield "Delta", {"delta": {"reasoningContent": {key: _plain(said[key])}}}
    elif block.get("text"):
        yield "Delta", {"delta": {"text": block["text"]}}


def _plain(value: Any) -> Any:
    return in_base64(value) if isinstance(value, bytes) else value


MESSAGES = BedrockMessages
