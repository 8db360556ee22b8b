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
from ...encoding.fields import (
    NUMBER,
    SWITCH,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Form,
    Otherwise,
    efforts,
    nameless,
    only,
)
from ...encoding.ids import Grammar
from ...encoding.schemas import UNBOUNDED
from ...events import Echo
from ...options import Format, RequestOptions
from ...text.written import in_base64
from ...tools import File, Link, Mode, Tool, ToolChoice
from .parser import CALLS

__all__ = ["ENCODER", "AnthropicEncoder"]

# The wire wants a number; these are ours where the caller gives none. Whoever streams need not wait for
# a long answer, and a program that writes files is cut in the midst of them by a small one.
MAX_TOKENS, MAX_STREAMED = 4096, 32_000
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
# Blocks that take an address -> what may be there.
LINKED = {"image": "image/*", "document": "application/pdf"}
# The type of the block for a call, by what sort of tool it calls.
BLOCKS = {kind.family: block for block, kind in CALLS.items()}
CHOICES: dict[Mode, str] = {"auto": "auto", "none": "none", "required": "any", "tool": "tool"}


# --- how to answer --------------------------------------------------------------------------------


def _read_format(said: Any) -> Format | None:
    match said:
        case {"type": "json_schema", "schema": dict(schema), **rest} if not rest:
            return Format(schema)
    return None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None or format.schema is None:
        return None
    return nameless({"type": "json_schema", "schema": format.schema}, format)


def _thinks(thinking: bool | None, options: RequestOptions) -> str | None:
    if thinking is False:
        return "disabled"
    return "enabled" if _budget(options) else "adaptive" if thinking else None


def _budget(options: RequestOptions) -> int | None:
    """Thought is a part of the answer, and smaller than all of it."""
    budget = options.thinking_budget if options.thinking is not False else None
    room = _most(options) - 1  # for an answer, too
    return min(max(budget, LEAST), room) if budget and room > 0 else None


def _most(options: RequestOptions) -> int:
    return options.max_tokens or (MAX_STREAMED if options.stream else MAX_TOKENS)


def _write_budget(budget: int | None, options: RequestOptions) -> Any:
    said = _budget(options)
    if said is None or said == budget:
        return said
    return Otherwise(said, f"said as {said}: at least {LEAST}, and less than max_tokens")


LEAST = 1024  # tokens to think with
FIELDS = (
    Field("model", "model", TEXT),
    Field("max_tokens", "max_tokens", Form(only(int).read, lambda _, options: _most(options))),
    Field("stream", "stream", SWITCH, unsaid=False),
    Field("temperature", "temperature", NUMBER, most=1),
    Field("top_p", "top_p", NUMBER),
    Field("top_k", "top_k", WHOLE),
    Field("stop", "stop_sequences", TEXTS),
    Field("thinking_budget", "thinking.budget_tokens", Form(only(int).read, _write_budget)),
    Field("thinking", "thinking.type", Form(
        {"enabled": True, "adaptive": True, "disabled": False}.get, _thinks)),
    Field("effort", "output_config.effort", efforts("low", "medium", "high", "xhigh", "max")),
    Field("format", "output_config.format", Form(_read_format, _write_format)),
    Field("user", "metadata.user_id", TEXT),
)  # fmt: skip


class AnthropicEncoder(Encoder):
    """One Messages request."""

    name = "anthropic"
    grammar = Grammar("[a-zA-Z0-9_-]{1,64}", ("toolu_", 22))
    dialect = UNBOUNDED
    fields = FIELDS

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        said = {
            "system": system,
            "messages": merge(self.entries(talk), "content"),
            **tools,
            "container": _container(talk),
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
        content = self.contents(said, self._piece)
        return [{"role": "user", "content": content}] if content else []

    def linked(self, part: Link) -> Entry | None:
        kind = next((kind for kind, type in LINKED.items() if part.is_of(type)), None)
        if kind is None:
            return None
        return _titled({"type": kind, "source": {"type": "url", "url": part.url}}, part)

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
    return {"type": "text", "text": media.words}


def _titled(block: Entry, media: File | Link) -> Entry:
    titled = media.name and block["type"] == "document"
    return {**block, "title": media.name} if titled else block


def _container(talk: list[Said]) -> str | None:
    """The sandbox that the last turn used; the next one goes on in it."""
    held: Echo = {}
    for said in talk:
        held = said.facts if said.facts.get("container") else held
    container = held.get("container")
    return container.get("id") if isinstance(container, dict) else container


ENCODER = AnthropicEncoder
