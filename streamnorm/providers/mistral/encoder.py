"""Mistral chat, the way back: Chat Completions (``openai_chat``) with these words of its own:

ids of nine letters or digits · {role: tool, tool_call_id, name, content} · tool_choice "any"
content = [{type: thinking, thinking: […], signature?}, {type: text}] after reasoning
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Entry, Said
from ...encoding.fields import NUMBER, SWITCH, TEXT, TEXTS, WHOLE, Field, efforts
from ...encoding.ids import Grammar
from ...encoding.schemas import ANY_KEYWORD
from ...text.written import data_uri
from ...tools import File, Link, Tool, ToolChoice
from ..openai_chat.encoder import FORMAT, ChatEncoder

__all__ = ["ENCODER", "LINKED", "MistralEncoder", "linked"]

# Blocks that take an address -> what may be there.
LINKED = {"image_url": "image/*", "document_url": "application/*"}
# How to answer, on the chat and in conversations.
SAMPLING = (
    ("max_tokens", "max_tokens", WHOLE),
    ("temperature", "temperature", NUMBER),
    ("top_p", "top_p", NUMBER),
    ("stop", "stop", TEXTS),
    ("seed", "random_seed", WHOLE),
    ("frequency_penalty", "frequency_penalty", NUMBER),
    ("presence_penalty", "presence_penalty", NUMBER),
    ("effort", "reasoning_effort", efforts("none", "high")),
    ("format", "response_format", FORMAT),
)
FIELDS = (
    Field("model", "model", TEXT),
    Field("stream", "stream", SWITCH, unsaid=False),
    *(Field(*row) for row in SAMPLING),
    Field("top_k", "top_k", WHOLE),
)


class MistralEncoder(ChatEncoder):
    """One Mistral chat request."""

    name = "mistral"
    grammar = Grammar("[a-zA-Z0-9]{9}", ("", 9))
    dialect = ANY_KEYWORD
    fields = FIELDS
    says_text_tools = False
    narrowed = {"allowed": "auto"}
    says_system_anywhere = False

    def content(self, said: Said) -> Any:
        """Text, or a list of chunks where there is thinking in it."""
        chunks = [self._chunk(part) for part in said.parts if isinstance(part, Text | Reasoning)]
        if any(chunk["type"] == "thinking" for chunk in chunks):
            return chunks
        return "".join(chunk["text"] for chunk in chunks) or None

    def _chunk(self, part: Text | Reasoning) -> Entry:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        chunk: Entry = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
        for echo in part.echoes:
            chunk |= echo
        return chunk

    def beside(self, said: Said, has_calls: bool) -> Entry:
        return {}

    def call(self, part: Called) -> Entry:
        function = {"name": part.name, "arguments": part.text}
        return {"id": part.id, "type": "function", "function": function, **part.echo}

    def answer(self, answer: Answer) -> Entry:
        said = super().answer(answer)
        return {**said, "name": answer.called.name}

    def shown(self, said: Said) -> list[Entry]:
        """A user may not speak between results and the answer to them: pictures are described."""
        if said.pictures:
            self.drop("results", "images", "this wire takes no user message after results")
        return []

    def linked(self, part: Link) -> Entry | None:
        return linked(part)

    def piece(self, part: Text | File) -> Entry:
        if isinstance(part, File) and part.modality == "image":
            return {"type": "image_url", "image_url": data_uri(part.data, part.type)}
        if isinstance(part, File) and part.type == "application/pdf":
            return {"type": "document_url", "document_url": data_uri(part.data, part.type)}
        return super().piece(part) if isinstance(part, Text) else super().piece(Text(part.words))

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said = super().choice(choice, tools)
        return {**said, "tool_choice": "any"} if choice.mode == "required" else said


def linked(part: Link) -> Entry | None:
    """The block that takes what is at an address, if one does."""
    kind = next((kind for kind, type in LINKED.items() if part.is_of(type)), None)
    return None if kind is None else {"type": kind, kind: part.url}


ENCODER = MistralEncoder
