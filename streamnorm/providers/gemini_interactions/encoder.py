"""Gemini Interactions, the way back: turns in, ``input`` steps and ``tools`` out.

    user_input · thought · model_output · function_call {id, name, arguments}
    function_result {call_id, name, result, is_error}

Every step stands by itself; what the model said goes back step by step, as it came. (A caller who
leaves the history with the provider sends only what is new, and ``previous_interaction_id``.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...conversation import Reasoning, Text
from ...events import ProviderToolResult
from ...ids import Grammar
from ...names import DOTTED
from ...schemas import Dialect
from ...tools import Media, Tool, ToolChoice
from .._out import Answer, Body, Called, Encoder, Entry, Said, in_base64
from .parser import ITEMS

__all__ = ["ENCODER", "InteractionsEncoder"]

# The type of the step for a call, by what sort of tool it calls.
STEPS = {item.family: item.type for item in ITEMS if item.role == "call"}
MODES = {"auto": "auto", "none": "none", "required": "any"}


class InteractionsEncoder(Encoder):
    """One request for an interaction."""

    name = "gemini_interactions"
    path = "/v1beta/interactions"
    container = "input"
    grammar = Grammar("[!-~]{1,128}")
    naming = DOTTED
    dialect = Dialect(
        known=frozenset(
            {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum",
             "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf",
             "properties", "additionalProperties", "required", "propertyOrdering", "minLength",
             "maxLength", "minProperties", "maxProperties", "uniqueItems", "contains", "minContains",
             "maxContains"}
        )
    )  # fmt: skip
    choice_at = ("generation_config", "tool_choice")
    narrowed = {}

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        settings = dict(tools)
        config = settings.pop("generation_config", {})
        if self.options.max_tokens is not None:
            config = {**config, "max_output_tokens": self.options.max_tokens}
        said = {
            "model": self.options.model,
            "system_instruction": system,
            "input": [step for said in talk for step in self.said(said)],
            **settings,
            "generation_config": config or None,
            "stream": self.options.stream or None,
        }
        return {field: value for field, value in said.items() if value is not None}

    def assistant(self, said: Said) -> list[Entry]:
        return [step for part in said.parts for step in PARTS[type(part)](self, part)]

    def _text(self, part: Text) -> list[Entry]:
        if not part.text:
            return []
        content: Entry = {"type": "text", "text": part.text}
        if part.citations:
            content["annotations"] = list(part.citations)
        return [{"type": "model_output", "content": [content]}]

    def _reasoning(self, part: Reasoning) -> list[Entry]:
        step: Entry = {"type": "thought"}
        for echo in part.echoes:
            step |= echo
        if part.text:
            step["summary"] = [{"type": "text", "text": part.text}]
        return [step]

    def _call(self, part: Called) -> list[Entry]:
        call = part.call
        hosted = call.runs_on == "provider"
        step: Entry = {"type": STEPS.get(call.family, "function_call"), "id": part.id}
        if not hosted or step["type"] == "mcp_server_tool_call":
            step["name"] = part.name
        if not hosted or call.arguments:
            step["arguments"] = call.arguments
        return [{**step, **part.echo}]

    def _result_of_server(self, part: ProviderToolResult) -> list[Entry]:
        return [part.echo] if isinstance(part.echo, dict) else []

    def user(self, said: Said) -> list[Entry]:
        content = [_piece(part) for part in said.parts if isinstance(part, Text | Media)]
        return [{"type": "user_input", "content": content}]

    def answers(self, said: Said) -> list[Entry]:
        return [self._answer(answer) for answer in said.answers]

    def _answer(self, answer: Answer) -> Entry:
        result: Any = answer.result.text
        if answer.result.media and answer.result.inline:
            result = [_piece(Text(p) if isinstance(p, str) else p) for p in answer.pieces]
        step = {
            "type": "function_result", "call_id": answer.called.id, "name": answer.called.name,
            "result": result,
        }  # fmt: skip
        return {**step, "is_error": True} if answer.result.is_error else step

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said: Entry = {"type": "function", "name": name, "description": tool.description}
        if not tool.description:
            del said["description"]
        return {**said, "parameters": schema}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said: Any = MODES.get(choice.mode)
        if said is None:
            mode = "any" if choice.mode == "tool" else "validated"
            names = [name for tool, name in tools if tool.name in choice.names]
            said = {"allowed_tools": {"mode": mode, "tools": names}}
        if not choice.parallel:
            self.drop("tool_choice", "parallel", "this wire cannot ask for one call at a time")
        return {"generation_config": {"tool_choice": said}}


def _piece(part: Text | Media) -> Entry:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": part.modality, "data": in_base64(part.data), "mime_type": part.type}


PARTS: Mapping[type, Callable[[InteractionsEncoder, Any], list[Entry]]] = {
    Text: InteractionsEncoder._text,
    Reasoning: InteractionsEncoder._reasoning,
    Called: InteractionsEncoder._call,
    ProviderToolResult: InteractionsEncoder._result_of_server,
}
ENCODER = InteractionsEncoder
