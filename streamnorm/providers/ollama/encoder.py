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
from ...encoding.ids import Grammar
from ...text.written import in_base64
from ...tools import File, Tool, ToolChoice

__all__ = ["ENCODER", "OllamaEncoder"]


class OllamaEncoder(Encoder):
    """One request to /api/chat."""

    name = "ollama"
    grammar = Grammar("[!-~]{1,128}", needed=False, within="turn")
    narrowed = {"allowed": "auto", "none": "nothing"}
    says_system_anywhere = True
    says_parallel = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        opening = [{"role": "system", "content": system}] if system else []
        said: Body = {
            "model": self.options.model,
            "messages": [*opening, *self.entries(talk)],
            **tools,
            "stream": self.options.stream,  # it streams unless told not to
        }
        if self.options.max_tokens is not None:
            said["options"] = {"num_predict": self.options.max_tokens}
        return filled(said)

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
        texts = [said.text, *(m.summary for m in media if m.modality != "image")]
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
