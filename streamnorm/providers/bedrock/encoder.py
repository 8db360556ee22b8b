"""Amazon Bedrock Converse, the way back: turns in, ``messages`` and ``toolConfig`` out.

    assistant {content: [{text} | {reasoningContent} | {toolUse: {toolUseId, name, input}}]}
    user      {content: [{toolResult: {toolUseId, content: […], status}}, …, {text} | {image}]}

Roles take turns, so neighbours are one message. Bytes are bytes, as the AWS SDKs want them; in JSON
they are base64 (which ``msgspec.json.encode`` makes of them). The model is ``modelId``, which stands
in the path. Tools that the history calls must be declared.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Said, filled, merge
from ...encoding.fields import (
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Form,
    Otherwise,
    efforts,
    read_format,
)
from ...encoding.ids import Grammar
from ...encoding.schemas import UNBOUNDED
from ...events import ProviderToolResult
from ...options import Format, RequestOptions
from ...text.written import json_text
from ...tools import File, Mode, Tool, ToolChoice

__all__ = ["ENCODER", "BedrockEncoder"]

# media type -> the block it goes into, and what the block calls it
FORMATS = {
    "image/png": ("image", "png"),
    "image/jpeg": ("image", "jpeg"),
    "image/gif": ("image", "gif"),
    "image/webp": ("image", "webp"),
    "application/pdf": ("document", "pdf"),
    "text/csv": ("document", "csv"),
    "text/html": ("document", "html"),
    "text/plain": ("document", "txt"),
    "text/markdown": ("document", "md"),
    "application/msword": ("document", "doc"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ("document", "docx"),
    "application/vnd.ms-excel": ("document", "xls"),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ("document", "xlsx"),
    "video/mp4": ("video", "mp4"),
    "video/webm": ("video", "webm"),
    "video/quicktime": ("video", "mov"),
}
CHOICES: dict[Mode, str] = {"auto": "auto", "required": "any"}


# --- how to answer --------------------------------------------------------------------------------


def _read_format(said: Any) -> Format | None:
    """A schema stands there as a text; one that we would write otherwise stays as it is."""
    match said:
        case {"type": "json_schema", "structure": {"jsonSchema": {"schema": str(text)}}}:
            try:
                schema = json.loads(text)
            except (ValueError, RecursionError):
                return None
            is_ours = isinstance(schema, dict) and json_text(schema) == text
            return (
                read_format({**said["structure"]["jsonSchema"], "schema": schema})
                if is_ours
                else None
            )
    return None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None or format.schema is None:
        return None
    said = {
        "schema": json_text(format.schema), "name": format.name,
        "description": format.description or None,
    }  # fmt: skip
    whole = {"type": "json_schema", "structure": {"jsonSchema": filled(said)}}
    return Otherwise(whole, "this wire has no strict of a format") if format.strict else whole


FIELDS = (
    Field("model", "modelId", TEXT),
    Field("max_tokens", "inferenceConfig.maxTokens", WHOLE),
    Field("temperature", "inferenceConfig.temperature", NUMBER, most=1),
    Field("top_p", "inferenceConfig.topP", NUMBER),
    Field("stop", "inferenceConfig.stopSequences", TEXTS),
    Field("effort", "outputConfig.effort", efforts("low", "medium", "high", "xhigh", "max")),
    Field("format", "outputConfig.textFormat", Form(_read_format, _write_format)),
)


class BedrockEncoder(Encoder):
    """One Converse request."""

    name = "bedrock"
    grammar = Grammar("[a-zA-Z0-9_-]{1,64}", ("tooluse_", 22))
    dialect = UNBOUNDED
    fields = FIELDS
    choice_at = ("toolChoice",)
    names_history_tools = True
    says_parallel = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        entries = merge(self.entries(talk), "content")
        opening = {"system": [{"text": system}]} if system else {}
        return {"messages": entries, **tools, **opening}

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        content = self.parts(said)
        return [{"role": "assistant", "content": content}] if content else []

    def text(self, part: Text) -> list[Entry]:
        return [{"text": part.text}] if part.text.strip() else []  # a blank text is refused

    def reasoning(self, part: Reasoning) -> list[Entry]:
        said: Entry = {"text": part.text}
        blocks: list[Entry] = []
        for echo in part.echoes:
            if "redactedContent" in echo:
                blocks.append({"redactedContent": base64.b64decode(echo["redactedContent"])})
            else:
                said |= echo
        if part.text or "signature" in said:
            blocks.insert(0, {"reasoningText": said})
        return [{"reasoningContent": block} for block in blocks]

    def called(self, part: Called) -> list[Entry]:
        said = {"toolUseId": part.id, "name": part.name, "input": part.call.arguments}
        # What an agent wants back is no matter of this request.
        echo = {k: v for k, v in part.echo.items() if k != "returnControl"}
        return [{"toolUse": {**said, **echo}}]

    def hosted_result(self, part: ProviderToolResult) -> list[Entry]:
        return [{"toolResult": part.echo}] if isinstance(part.echo, dict) else []

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        content = self.contents(said, _piece)
        return [{"role": "user", "content": content}] if content else []

    def answers(self, said: Said) -> list[Entry]:
        return [{"role": "user", "content": [self._answer(answer) for answer in said.answers]}]

    def _answer(self, answer: Answer) -> Entry:
        result = answer.result
        pieces = [Text(p) if isinstance(p, str) else p for p in answer.pieces]
        content = [block for piece in pieces if (block := _piece(piece)) is not None]
        if isinstance(result.value, dict):
            content = [{"json": result.value}]
        said = {
            "toolUseId": answer.called.id,
            "content": content or [{"json": {}}],  # a blank text is refused
            "status": "error" if result.is_error else "success",
        }
        return {"toolResult": said}

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {
            "name": name, "description": tool.description or None, "inputSchema": {"json": schema},
            "strict": tool.strict,
        }  # fmt: skip
        return {"toolSpec": filled(said)}

    def tool_fields(self, tools: list[Entry], choice: Body) -> Body:
        return {"toolConfig": {"tools": tools, **choice}} if tools else {}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        if choice.mode == "none":
            if tools:
                raise self.cannot(
                    "that no tool may be called", "leave out the choice, or all tools"
                )
            return {}
        if choice.mode == "tool":
            name = next(name for tool, name in tools if tool.name == choice.names[0])
            return {"toolChoice": {"tool": {"name": name}}}
        return {"toolChoice": {CHOICES[choice.mode]: {}}}


def _piece(part: Text | File) -> Entry | None:
    if isinstance(part, Text):
        return {"text": part.text} if part.text.strip() else None
    block, format = FORMATS.get(part.type, ("", ""))
    if not block:
        return {"text": part.words}
    said: Entry = {"format": format, "source": {"bytes": part.data}}
    if block == "document":
        said["name"] = re.sub(r"[^A-Za-z0-9 ()\[\]-]+", "-", part.name or "document")[:200]
    return {block: said}


ENCODER = BedrockEncoder
