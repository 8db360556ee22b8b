"""Cohere v2 chat, the way back: turns in, ``messages`` and ``tools`` out.

    {role: assistant, tool_plan?, tool_calls: [{id, type, function: {name, arguments: text}}]}
    {role: assistant, content: text | [{type: thinking}, {type: text}]}
    {role: tool, tool_call_id, content}

The choice is REQUIRED, NONE or nothing at all; one tool is chosen by declaring only that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...encoding.encoder import Body, Called, Encoder, Entry, Said, filled
from ...encoding.ids import Grammar
from ...encoding.names import IDENTIFIER
from ...text.written import data_uri
from ...tools import File, Tool, ToolChoice

__all__ = ["ENCODER", "CohereEncoder"]

CHOICES = {"none": "NONE", "required": "REQUIRED"}


class CohereEncoder(Encoder):
    """One v2 chat request."""

    name = "cohere"
    grammar = Grammar("[!-~]{1,128}")
    naming = IDENTIFIER
    narrowed = {"allowed": "auto", "tool": "required"}
    says_system_anywhere = True
    says_parallel = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        opening = [{"role": "system", "content": system}] if system else []
        said = {
            "model": self.options.model,
            "messages": [*opening, *self.entries(talk)],
            **tools,
            "max_tokens": self.options.max_tokens,
            "stream": self.options.stream or None,
        }
        return filled(said)

    def system(self, said: Said) -> list[Entry]:
        return [{"role": "system", "content": said.text}]

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        thoughts = [part for part in said.parts if isinstance(part, Reasoning)]
        message: Entry = {"role": "assistant"}
        if plan := "".join(part.text for part in thoughts if _is_plan(part)):
            message["tool_plan"] = plan
        if calls := [_call(p) for p in said.parts if isinstance(p, Called)]:
            message["tool_calls"] = calls
        if content := _content(said.text, [p.text for p in thoughts if not _is_plan(p)]):
            message["content"] = content
        return [message] if len(message) > 1 else []

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        parts = said.pieces
        if len(parts) == 1 and isinstance(parts[0], Text):
            return [{"role": "user", "content": parts[0].text}]
        return [{"role": "user", "content": [_piece(part) for part in parts]}]

    def answers(self, said: Said) -> list[Entry]:
        return [
            {"role": "tool", "tool_call_id": answer.called.id, "content": answer.text}
            for answer in said.answers
        ]

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {"name": name, "description": tool.description or None, "parameters": schema}
        return {"type": "function", "function": filled(said)}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said = CHOICES.get(choice.mode)
        return {} if said is None else {"tool_choice": said}


def _is_plan(part: Reasoning) -> bool:
    return any(echo.get("type") == "tool_plan" for echo in part.echoes)


def _content(text: str, thoughts: list[str]) -> str | list[Entry]:
    if not thoughts:
        return text
    said = [{"type": "thinking", "thinking": thought} for thought in thoughts]
    return [*said, *([{"type": "text", "text": text}] if text else [])]


def _call(part: Called) -> Entry:
    function = {"name": part.name, "arguments": part.text}
    return {"id": part.id, "type": "function", "function": function, **part.echo}


def _piece(part: Text | File) -> Entry:
    if isinstance(part, File) and part.modality == "image":
        return {"type": "image_url", "image_url": {"url": data_uri(part.data, part.type)}}
    return {"type": "text", "text": part.text if isinstance(part, Text) else part.summary}


ENCODER = CohereEncoder
