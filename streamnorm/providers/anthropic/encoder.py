"""Anthropic Messages, the way back: turns in, ``messages`` and ``tools`` out.

    assistant {content: [thinking | text | tool_use | server_tool_use | *_tool_result]}
    user      {content: [tool_result, …, text | image | document]}

Results lead the user message that follows their calls. Thinking goes back with its signature, other
blocks as they came. Roles take turns, so neighbours are one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Said, filled, merge
from ...encoding.ids import Grammar
from ...encoding.schemas import UNBOUNDED
from ...events import Echo
from ...text.written import in_base64
from ...tools import File, Tool, ToolChoice
from .parser import CALLS

__all__ = ["ENCODER", "AnthropicEncoder"]

MAX_TOKENS = 4096  # the wire wants a number; this is ours where the caller gives none
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
# The type of the block for a call, by what sort of tool it calls.
BLOCKS = {kind.family: block for block, kind in CALLS.items()}
CHOICES = {"auto": "auto", "none": "none", "required": "any", "tool": "tool"}


class AnthropicEncoder(Encoder):
    """One Messages request."""

    name = "anthropic"
    grammar = Grammar("[a-zA-Z0-9_-]{1,64}", ("toolu_", 22))
    dialect = UNBOUNDED

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        said = {
            "model": self.options.model,
            "max_tokens": self.options.max_tokens or MAX_TOKENS,
            "system": system,
            "messages": merge(self.entries(talk), "content"),
            **tools,
            "container": _container(talk),
            "stream": self.options.stream or None,
        }
        return filled(said)

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        content = self.parts(said)
        return [{"role": "assistant", "content": content}] if content else []

    def text(self, part: Text) -> list[Entry]:
        if not part.text.strip():
            return []  # a blank text is refused
        block: Entry = {"type": "text", "text": part.text}
        return [{**block, "citations": list(part.citations)} if part.citations else block]

    def reasoning(self, part: Reasoning) -> list[Entry]:
        """Signed thinking, or a block that is opaque to us. What nobody signed is not taken back."""
        block: Entry = {}
        for echo in part.echoes:
            block |= echo
        if block.get("type") == "thinking":
            return [{"type": "thinking", "thinking": part.text, "signature": block["signature"]}]
        if not block:
            self.drop("assistant", "thinking", "it came without a signature")
        return [block] if block else []

    def called(self, part: Called) -> list[Entry]:
        hosted = part.call.runs_on == "provider"
        block = {
            "type": BLOCKS.get(part.call.family, "server_tool_use") if hosted else "tool_use",
            "id": part.id,
            "name": part.name,
            "input": part.call.arguments,
        }
        return [{**block, **part.echo}]

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        content = [block for part in said.pieces if (block := self._piece(part)) is not None]
        return [{"role": "user", "content": content}] if content else []

    def answers(self, said: Said) -> list[Entry]:
        return [{"role": "user", "content": [self._answer(answer) for answer in said.answers]}]

    def _answer(self, answer: Answer) -> Entry:
        block: Entry = {"type": "tool_result", "tool_use_id": answer.called.id}
        if answer.result.media and answer.result.inline:
            pieces = [Text(p) if isinstance(p, str) else p for p in answer.pieces]
            block["content"] = [b for piece in pieces if (b := self._piece(piece)) is not None]
        elif text := answer.result.text:
            block["content"] = text
        return {**block, "is_error": True} if answer.result.is_error else block

    def _piece(self, part: Text | File) -> Entry | None:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text} if part.text.strip() else None
        return _media(part)

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {
            "name": name, "description": tool.description or None, "input_schema": schema,
            "strict": tool.strict,
        }  # fmt: skip
        return filled(said)

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said: Entry = {"type": CHOICES[choice.mode]}
        if choice.mode == "tool":
            said["name"] = next(n for tool, n in tools if tool.name == choice.names[0])
        if not choice.parallel and choice.mode != "none":
            said["disable_parallel_tool_use"] = True
        return {"tool_choice": said}


def _media(media: File) -> Entry:
    source = {"type": "base64", "media_type": media.type, "data": in_base64(media.data)}
    if media.type in IMAGES:
        return {"type": "image", "source": source}
    if media.type == "application/pdf":
        return _titled({"type": "document", "source": source}, media)
    if media.type == "text/plain":
        text = media.data.decode("utf-8", "replace")
        plain = {"type": "text", "media_type": media.type, "data": text}
        return _titled({"type": "document", "source": plain}, media)
    return {"type": "text", "text": media.summary}


def _titled(block: Entry, media: File) -> Entry:
    return {**block, "title": media.name} if media.name else block


def _container(talk: list[Said]) -> str | None:
    """The sandbox that the last turn used; the next one goes on in it."""
    held: Echo = {}
    for said in talk:
        held = said.facts if said.facts.get("container") else held
    container = held.get("container")
    return container.get("id") if isinstance(container, dict) else container


ENCODER = AnthropicEncoder
