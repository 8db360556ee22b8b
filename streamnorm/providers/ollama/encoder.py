"""Ollama's own API, the way back: turns in, ``messages`` and ``tools`` out.

    {role: assistant, content, thinking?, tool_calls: [{id?, function: {name, arguments: object}}]}
    {role: tool, tool_name, tool_call_id?, content}        {role: user, content, images: [base64]}

A result is paired by the tool's name and by order, on newer servers by id. There is no choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...ids import Grammar
from ...tools import Media, Tool, ToolChoice
from .._out import Answer, Body, Called, Encoder, Entry, Said, in_base64

__all__ = ["ENCODER", "OllamaEncoder"]


class OllamaEncoder(Encoder):
    """One request to /api/chat."""

    name = "ollama"
    path = "/api/chat"
    container = "messages"
    grammar = Grammar("[!-~]{1,128}", needed=False, within="turn")
    narrowed = {"allowed": "auto", "none": "nothing"}
    says_system_anywhere = True

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        opening = [{"role": "system", "content": system}] if system else []
        said: Body = {
            "model": self.options.model,
            "messages": [*opening, *(entry for said in talk for entry in self.said(said))],
            **tools,
            "stream": self.options.stream,  # it streams unless told not to
        }
        if self.options.max_tokens is not None:
            said["options"] = {"num_predict": self.options.max_tokens}
        return {field: value for field, value in said.items() if value is not None}

    def system(self, said: Said) -> list[Entry]:
        return [{"role": "system", "content": _text_of(said)}]

    def assistant(self, said: Said) -> list[Entry]:
        message: Entry = {"role": "assistant", "content": _text_of(said)}
        if thoughts := "".join(p.text for p in said.parts if isinstance(p, Reasoning)):
            message["thinking"] = thoughts
        if calls := [_call(p) for p in said.parts if isinstance(p, Called)]:
            message["tool_calls"] = calls
        return [message] if message["content"] or len(message) > 2 else []

    def user(self, said: Said) -> list[Entry]:
        media = [part for part in said.parts if isinstance(part, Media)]
        texts = [_text_of(said), *(m.summary for m in media if m.modality != "image")]
        message: Entry = {"role": "user", "content": "\n".join(t for t in texts if t)}
        if images := [in_base64(m.data) for m in media if m.modality == "image"]:
            message["images"] = images
        return [message]

    def answers(self, said: Said) -> list[Entry]:
        shown = [
            media for answer in said.answers for media in answer.result.media
            if media.modality == "image" and answer.result.inline and self.options.images == "user"
        ]  # fmt: skip
        results = [_answer(answer) for answer in said.answers]
        return [*results, *(self.user(Said("user", tuple(shown))) if shown else [])]

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        function: Entry = {"name": name, "description": tool.description, "parameters": schema}
        if not tool.description:
            del function["description"]
        return {"type": "function", "function": function}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        if choice.mode != "auto":
            raise self.cannot("that a tool must be called", 'choose "auto", "none" or some tools')
        if not choice.parallel:
            self.drop("tool_choice", "parallel", "this wire cannot ask for one call at a time")
        return {}


def _text_of(said: Said) -> str:
    return "".join(part.text for part in said.parts if isinstance(part, Text))


def _call(part: Called) -> Entry:
    id = {} if part.id is None else {"id": part.id}
    return {**id, "function": {"name": part.name, "arguments": part.call.arguments}, **part.echo}


def _answer(answer: Answer) -> Entry:
    id = {} if answer.called.id is None else {"tool_call_id": answer.called.id}
    return {"role": "tool", "tool_name": answer.called.name, **id, "content": answer.text}


ENCODER = OllamaEncoder
