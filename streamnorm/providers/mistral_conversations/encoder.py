"""Mistral conversations, the way back: turns in, ``inputs`` and ``tools`` out.

    message.input {role, content} · message.output {content} · function.call {tool_call_id, name, arguments}
    function.result {tool_call_id, result} · tool.execution {name, arguments, info} · agent.handoff

Every entry stands by itself; what the model said goes back entry by entry, as it came. (A caller who
leaves the history with the provider posts only what is new, to ``/v1/conversations/<id>``.) How to answer
stands in ``completion_args``; an agent, in place of a model, is a matter of ``extra``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Said, filled
from ...encoding.fields import SWITCH, TEXT, Field
from ...encoding.ids import Grammar
from ...events import ProviderToolResult
from ...text.written import data_uri
from ...tools import File, Link, Tool, ToolChoice
from ..mistral.encoder import SAMPLING, linked
from .parser import HANDOFF

__all__ = ["ENCODER", "ConversationsEncoder"]

EXECUTION = "tool.execution"


FIELDS = (
    Field("model", "model", TEXT),
    Field("stream", "stream", SWITCH, unsaid=False),
    *(Field(name, f"completion_args.{field}", form) for name, field, form in SAMPLING),
)


class ConversationsEncoder(Encoder):
    """One request that begins or goes on with a conversation."""

    name = "mistral_conversations"
    grammar = Grammar("[a-zA-Z0-9]{9}", ("", 9))
    fields = FIELDS
    choice_at = ("completion_args", "tool_choice")
    narrowed = {"allowed": "auto", "tool": "required"}
    says_parallel = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        return filled({"instructions": system, "inputs": self.entries(talk), **tools})

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        entries = self.parts(said)
        merged: list[Entry] = []
        for entry in entries:  # what a tool gave stands in the entry of its call
            held = next((e for e in merged if e.get("id") == entry.get("of")), None)
            if "of" not in entry:
                merged.append(entry)
            elif held is not None:
                held["info"] = entry["info"]
        return merged

    def text(self, part: Text) -> list[Entry]:
        return [_output([{"type": "text", "text": part.text}])] if part.text else []

    def reasoning(self, part: Reasoning) -> list[Entry]:
        chunk: Entry = {"type": "thinking", "thinking": []}
        for echo in part.echoes:
            chunk |= echo
        if part.text:
            chunk["thinking"] = [{"type": "text", "text": part.text}]
        return [_output([chunk])]

    def called(self, part: Called) -> list[Entry]:
        call = part.call
        if call.name == HANDOFF and call.runs_on == "provider":
            if not call.arguments.get("next_agent_id"):  # one that the client was to make
                self.drop("assistant", HANDOFF, "nobody was handed the conversation")
                return []
            return [{"type": HANDOFF, "id": call.id, **call.arguments}]
        if call.runs_on == "provider" and "confirmation_status" not in part.echo:
            entry: Entry = {
                "type": EXECUTION,
                "id": call.id,
                "name": part.name,
                "arguments": part.text,
            }
            return [{**entry, **part.echo}]
        entry = {"type": "function.call", "tool_call_id": part.id, "name": part.name}
        return [{**entry, "arguments": part.text, **part.echo}]

    def hosted_result(self, part: ProviderToolResult) -> list[Entry]:
        info = part.echo.get("info") if isinstance(part.echo, dict) else None
        return [{"of": part.id, "info": info}] if info is not None else []

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        parts = said.pieces
        content: Any = self.contents(said, _piece)
        if len(parts) == 1 and isinstance(parts[0], Text):
            content = parts[0].text
        return [{"type": "message.input", "role": "user", "content": content}]

    def linked(self, part: Link) -> Entry | None:
        return linked(part)

    def answers(self, said: Said) -> list[Entry]:
        return [self._answer(answer) for answer in said.answers]

    def _answer(self, answer: Answer) -> Entry:
        id = answer.called.id
        return {"type": "function.result", "tool_call_id": id, "result": answer.text}

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {"name": name, "description": tool.description or None, "parameters": schema}
        return {"type": "function", "function": filled({**said, "strict": tool.strict})}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        return {"completion_args": {"tool_choice": choice.mode}}


def _output(content: list[Entry]) -> Entry:
    return {"type": "message.output", "role": "assistant", "content": content}


def _piece(part: Text | File) -> Entry:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.modality == "image":
        return {"type": "image_url", "image_url": data_uri(part.data, part.type)}
    if part.type == "application/pdf":
        return {"type": "document_url", "document_url": data_uri(part.data, part.type)}
    return {"type": "text", "text": part.words}


ENCODER = ConversationsEncoder
