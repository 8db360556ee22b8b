"""Mistral chat, the way back: Chat Completions (``openai_chat``) with these words of its own:

ids of nine letters or digits · {role: tool, tool_call_id, name, content} · tool_choice "any"
content = [{type: thinking, thinking: […], signature?}, {type: text}] after reasoning
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Entry, Said
from ...encoding.ids import Grammar
from ...encoding.schemas import ANY_KEYWORD
from ...text.written import data_uri
from ...tools import File, Tool, ToolChoice
from ..openai_chat.encoder import ChatEncoder

__all__ = ["ENCODER", "MistralEncoder"]


class MistralEncoder(ChatEncoder):
    """One Mistral chat request."""

    name = "mistral"
    grammar = Grammar("[a-zA-Z0-9]{9}", ("", 9))
    dialect = ANY_KEYWORD
    narrowed = {"allowed": "auto"}
    says_system_anywhere = False

    def settings(self) -> Body:
        return {"max_tokens": self.options.max_tokens, "stream": self.options.stream or None}

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

    def piece(self, part: Text | File) -> Entry:
        if isinstance(part, File) and part.modality == "image":
            return {"type": "image_url", "image_url": data_uri(part.data, part.type)}
        if isinstance(part, File) and part.type == "application/pdf":
            return {"type": "document_url", "document_url": data_uri(part.data, part.type)}
        return super().piece(part) if isinstance(part, Text) else super().piece(Text(part.summary))

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said = super().choice(choice, tools)
        return {**said, "tool_choice": "any"} if choice.mode == "required" else said


ENCODER = MistralEncoder
