"""Gemini Interactions, the way back: turns in, ``input`` steps and ``tools`` out.

    user_input · thought · model_output · function_call {id, name, arguments}
    function_result {call_id, name, result, is_error}

Every step stands by itself; what the model said goes back step by step, as it came. (A caller who
leaves the history with the provider sends only what is new, and ``previous_interaction_id``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Made, Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Place, Said, filled
from ...encoding.fields import (
    NUMBER,
    SWITCH,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Form,
    efforts,
    nameless,
)
from ...encoding.ids import Grammar
from ...encoding.names import DOTTED
from ...encoding.schemas import Dialect
from ...options import Format, RequestOptions
from ...text.written import in_base64
from ...tools import File, Link, Mode, Tool, ToolChoice
from .parser import ITEMS

__all__ = ["ENCODER", "InteractionsEncoder"]

# The type of the step for a call, by what sort of tool it calls.
STEPS = {item.family: item.type for item in ITEMS if item.role == "call"}
MODES: dict[Mode, str] = {"auto": "auto", "none": "none", "required": "any"}


# --- how to answer --------------------------------------------------------------------------------

JSON = {"type": "text", "mime_type": "application/json"}


def _read_format(said: Any) -> Format | None:
    if not isinstance(said, dict):
        return None
    schema = said.get("schema")
    is_json = {key: value for key, value in said.items() if key != "schema"} == JSON
    return Format(schema) if is_json and isinstance(schema, dict | None) else None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None:
        return None
    return nameless(filled({**JSON, "schema": format.schema}), format)


FIELDS = (
    Field("model", "model", TEXT),
    Field("stream", "stream", SWITCH, unsaid=False),
    Field("max_tokens", "generation_config.max_output_tokens", WHOLE),
    Field("temperature", "generation_config.temperature", NUMBER),
    Field("top_p", "generation_config.top_p", NUMBER),
    Field("stop", "generation_config.stop_sequences", TEXTS),
    Field("seed", "generation_config.seed", WHOLE),
    Field("effort", "generation_config.thinking_level",
          efforts("minimal", "low", "medium", "high", "xhigh")),
    Field("format", "response_format", Form(_read_format, _write_format)),
)  # fmt: skip


class InteractionsEncoder(Encoder):
    """One request for an interaction."""

    name = "gemini_interactions"
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
    fields = FIELDS
    choice_at = ("generation_config", "tool_choice")
    narrowed = {}
    says_parallel = False
    says_strict = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        return filled({"system_instruction": system, "input": self.entries(talk), **tools})

    def assistant(self, said: Said) -> list[Entry]:
        return self.parts(said)

    def text(self, part: Text) -> list[Entry]:
        if not part.text:
            return []
        content: Entry = {"type": "text", "text": part.text}
        if part.citations:
            content["annotations"] = list(part.citations)
        return [{"type": "model_output", "content": [content]}]

    def reasoning(self, part: Reasoning) -> list[Entry]:
        step: Entry = {"type": "thought"}
        for echo in part.echoes:
            step |= echo
        if part.text:
            step["summary"] = [{"type": "text", "text": part.text}]
        return [step]

    def place_of(self, part: Made, own: bool) -> Place:
        """A thought's own drafts are not taken back; its signature is."""
        if any(echo.get("thought") for echo in part.echoes):
            return "item"
        return "turn" if part.data is not None or (own and part.url) else "nowhere"

    def made(self, part: Made) -> list[Entry]:
        content: Entry = {"type": File(b"", part.type).modality, "mime_type": part.type}
        for echo in part.echoes:
            content |= echo
        if part.data is not None:
            content["data"] = in_base64(part.data)
        return [{"type": "model_output", "content": [content]}]

    def called(self, part: Called) -> list[Entry]:
        call = part.call
        hosted = call.runs_on == "provider"
        step: Entry = {"type": STEPS.get(call.family, "function_call"), "id": part.id}
        if not hosted or step["type"] == "mcp_server_tool_call":
            step["name"] = part.name
        if not hosted or call.arguments:
            step["arguments"] = call.arguments
        return [{**step, **part.echo}]

    def user(self, said: Said) -> list[Entry]:
        return [{"type": "user_input", "content": self.contents(said, _piece)}]

    def linked(self, part: Link) -> Entry | None:
        return filled({"type": part.modality, "uri": part.url, "mime_type": part.exact_type})

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
        said = {"type": "function", "name": name, "description": tool.description or None}
        return {**filled(said), "parameters": schema}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said: Any = MODES.get(choice.mode)
        if said is None:
            mode = "any" if choice.mode == "tool" else "validated"
            names = [name for tool, name in tools if tool.name in choice.names]
            said = {"allowed_tools": {"mode": mode, "tools": names}}
        return {"generation_config": {"tool_choice": said}}


def _piece(part: Text | File) -> Entry:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": part.modality, "data": in_base64(part.data), "mime_type": part.type}


ENCODER = InteractionsEncoder
