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
from ...encoding.fields import (
    NUMBER,
    SWITCH,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Form,
    nameless,
)
from ...encoding.ids import Grammar
from ...encoding.names import IDENTIFIER
from ...options import Format, RequestOptions
from ...text.written import data_uri
from ...tools import File, Link, Mode, Tool, ToolChoice

__all__ = ["ENCODER", "CohereEncoder"]

CHOICES: dict[Mode, str] = {"none": "NONE", "required": "REQUIRED"}


# --- how to answer --------------------------------------------------------------------------------


def _read_format(said: Any) -> Format | None:
    match said:
        case {"type": "json_object", **rest} if not rest:
            return Format()
        case {"type": "json_object", "json_schema": dict(schema), **rest} if not rest:
            return Format(schema)
    return None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None:
        return None
    return nameless(filled({"type": "json_object", "json_schema": format.schema}), format)


def _budget(budget: int | None, options: RequestOptions) -> int | None:
    return budget if options.thinking is not False else None


def _thinks(thinking: bool | None, options: RequestOptions) -> str | None:
    if thinking is None and options.thinking_budget is None:
        return None
    return "disabled" if thinking is False else "enabled"


def _read_thinks(said: Any) -> bool | None:
    return said == "enabled" if said in ("enabled", "disabled") else None


FIELDS = (
    Field("model", "model", TEXT),
    Field("stream", "stream", SWITCH, unsaid=False),
    Field("max_tokens", "max_tokens", WHOLE),
    Field("temperature", "temperature", NUMBER),
    Field("top_p", "p", NUMBER, least=0.01, most=0.99),
    Field("top_k", "k", WHOLE, most=500),
    Field("stop", "stop_sequences", TEXTS, most=5),
    Field("seed", "seed", WHOLE),
    Field("frequency_penalty", "frequency_penalty", NUMBER, least=0, most=1),
    Field("presence_penalty", "presence_penalty", NUMBER, least=0, most=1),
    Field("thinking_budget", "thinking.token_budget", Form(WHOLE.read, _budget)),
    Field("thinking", "thinking.type", Form(_read_thinks, _thinks)),
    Field("format", "response_format", Form(_read_format, _write_format)),
)


class CohereEncoder(Encoder):
    """One v2 chat request."""

    name = "cohere"
    grammar = Grammar("[!-~]{1,128}")
    naming = IDENTIFIER
    fields = FIELDS
    narrowed = {"allowed": "auto", "tool": "required"}
    says_system_anywhere = True
    says_parallel = False
    says_strict = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        opening = [{"role": "system", "content": system}] if system else []
        return {"messages": [*opening, *self.entries(talk)], **tools}

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
        return [{"role": "user", "content": self.contents(said, _piece)}]

    def linked(self, part: Link) -> Entry | None:
        is_image = part.is_of("image/*")
        return {"type": "image_url", "image_url": {"url": part.url}} if is_image else None

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
    return {"type": "text", "text": part.text if isinstance(part, Text) else part.words}


ENCODER = CohereEncoder
