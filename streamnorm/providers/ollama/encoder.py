"""Ollama's own API, the way back: turns in, ``messages`` and ``tools`` out.

    {role: assistant, content, thinking?, tool_calls: [{id?, function: {name, arguments: object}}]}
    {role: tool, tool_name, tool_call_id?, content}        {role: user, content, images: [base64]}

A result is paired by the tool's name and by order, on newer servers by id. There is no choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Made, Reasoning
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Place, Said, filled
from ...encoding.fields import (
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Form,
    efforts,
    nameless,
)
from ...encoding.ids import Grammar
from ...options import Format, RequestOptions
from ...text.written import in_base64
from ...tools import File, Tool, ToolChoice

__all__ = ["ENCODER", "OllamaEncoder"]


# --- how to answer --------------------------------------------------------------------------------


def _read_format(said: Any) -> Format | None:
    return Format() if said == "json" else Format(said) if isinstance(said, dict) and said else None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None:
        return None
    return nameless("json" if format.schema is None else format.schema, format)


def _thinks(thinking: bool | None, options: RequestOptions) -> bool | None:
    return thinking if options.effort is None else None


FIELDS = (
    Field("model", "model", TEXT),
    Field("stream", "stream", FLAG, unsaid=True),  # it streams unless told not to
    Field("max_tokens", "options.num_predict", WHOLE),
    Field("temperature", "options.temperature", NUMBER),
    Field("top_p", "options.top_p", NUMBER),
    Field("top_k", "options.top_k", WHOLE),
    Field("stop", "options.stop", TEXTS),
    Field("seed", "options.seed", WHOLE),
    Field("frequency_penalty", "options.frequency_penalty", NUMBER),
    Field("presence_penalty", "options.presence_penalty", NUMBER),
    Field("effort", "think", efforts("low", "medium", "high")),
    Field("thinking", "think", Form(FLAG.read, _thinks)),
    Field("format", "format", Form(_read_format, _write_format)),
)


class OllamaEncoder(Encoder):
    """One request to /api/chat."""

    name = "ollama"
    grammar = Grammar("[!-~]{1,128}", needed=False, within="turn")
    fields = FIELDS
    narrowed = {"allowed": "auto", "none": "nothing"}
    says_system_anywhere = True
    says_parallel = False
    says_strict = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        opening = [{"role": "system", "content": system}] if system else []
        return {"messages": [*opening, *self.entries(talk)], **tools}

    def system(self, said: Said) -> list[Entry]:
        return [{"role": "system", "content": said.text}]

    def assistant(self, said: Said) -> list[Entry]:
        message: Entry = {"role": "assistant", "content": said.text}
        if thoughts := "".join(p.text for p in said.parts if isinstance(p, Reasoning)):
            message["thinking"] = thoughts
        if images := [in_base64(p.data) for p in said.parts if isinstance(p, Made) and p.data]:
            message["images"] = images
        if calls := [_call(p) for p in said.parts if isinstance(p, Called)]:
            message["tool_calls"] = calls
        return [message] if message["content"] or len(message) > 2 else []

    def place_of(self, part: Made, own: bool) -> Place:
        return "turn" if part.data is not None and part.type.startswith("image/") else "nowhere"

    def user(self, said: Said) -> list[Entry]:
        media = [part for part in said.parts if isinstance(part, File)]
        texts = [said.text, *(m.words for m in media if m.modality != "image")]
        message: Entry = {"role": "user", "content": "\n".join(t for t in texts if t)}
        if images := [in_base64(m.data) for m in media if m.modality == "image"]:
            message["images"] = images
        return [message]

    def answers(self, said: Said) -> list[Entry]:
        return [*map(_answer, said.answers)]

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {"name": name, "description": tool.description or None, "parameters": schema}
        return {"type": "function", "function": filled(said)}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        if choice.mode != "auto":
            raise self.cannot("that a tool must be called", 'choose "auto", "none" or some tools')
        return {}


def _call(part: Called) -> Entry:
    id = {} if part.id is None else {"id": part.id}
    return {**id, "function": {"name": part.name, "arguments": part.call.arguments}, **part.echo}


def _answer(answer: Answer) -> Entry:
    id = {} if answer.called.id is None else {"tool_call_id": answer.called.id}
    return {"role": "tool", "tool_name": answer.called.name, **id, "content": answer.text}


ENCODER = OllamaEncoder
