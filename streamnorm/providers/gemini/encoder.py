"""Gemini generateContent, the way back: turns in, ``contents`` and ``tools`` out.

    model {parts: [{text, thought?} | {functionCall: {id?, name, args}}, thoughtSignature beside]}
    user  {parts: [{functionResponse: {id?, name, response: {output | error}, parts?}} | …]}

A signature goes back on the part that it came with, so texts are cut where it came. An id is sent
only if a wire gave one. The model stands in the path, not in the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...conversation import Made, Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Place, Said, filled, merge
from ...encoding.fields import NUMBER, TEXTS, WHOLE, Field, Form, efforts, nameless
from ...encoding.ids import Grammar
from ...encoding.names import DOTTED
from ...encoding.schemas import Dialect
from ...events import Echo, ToolCall
from ...options import Format, RequestOptions
from ...text.written import in_base64
from ...tools import File, Link, Tool, ToolChoice
from .spelling import as_json_schema

__all__ = ["ENCODER", "SIGNATURE", "GeminiEncoder", "part_of"]

# What a function's schema may use.
KEYWORDS = frozenset(
    {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items",
     "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties",
     "additionalProperties", "required", "propertyOrdering"}
)  # fmt: skip
SCHEMA = "parametersJsonSchema"
MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY", "allowed": "VALIDATED"}
_generation = re.compile(r"gemini-(\d{1,3})(?!\d)").match
# File that a function's response may hold itself, for models of the third generation; others stand
# beside it.
RESPONSE_MEDIA = {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
SIGNATURE = "thoughtSignature"
# What the third generation wants on the first call of a turn that it did not make itself.
UNSIGNED = "skip_thought_signature_validator"


# --- how to answer --------------------------------------------------------------------------------


def _write_schema(format: Format | None, options: RequestOptions) -> Any:
    if format is None or format.schema is None:
        return None
    return nameless(format.schema, format)


def _read_older(said: Any) -> Format | None:
    """A schema in the older dialect, where it is one of JSON: a single word is an answer in plain text."""
    is_json = isinstance(said, dict) and said.get("type") in ("OBJECT", "ARRAY")
    return Format(as_json_schema(said)) if is_json else None


def _read_budget(said: Any) -> int | None:
    return said if type(said) is int and said > 0 else None


def _budget(budget: int | None, options: RequestOptions) -> int | None:
    return budget if budget and options.thinking is not False else None


def _thinks(thinking: bool | None, options: RequestOptions) -> int | None:
    """No tokens to think with is no thought, and less than none is as many as it likes."""
    if thinking is None or (thinking and (options.thinking_budget or options.effort)):
        return None
    return -1 if thinking else 0


def _read_thinks(said: Any) -> bool | None:
    return {0: False, -1: True}.get(said) if type(said) is int else None


JSON = "application/json"
THINKING = "generationConfig.thinkingConfig.thinkingBudget"
FIELDS = (
    Field("max_tokens", "generationConfig.maxOutputTokens", WHOLE),
    Field("temperature", "generationConfig.temperature", NUMBER),
    Field("top_p", "generationConfig.topP", NUMBER),
    Field("top_k", "generationConfig.topK", WHOLE),
    Field("stop", "generationConfig.stopSequences", TEXTS, most=5),
    Field("seed", "generationConfig.seed", WHOLE),
    Field("frequency_penalty", "generationConfig.frequencyPenalty", NUMBER),
    Field("presence_penalty", "generationConfig.presencePenalty", NUMBER),
    Field("thinking_budget", THINKING, Form(_read_budget, _budget)),
    Field("thinking", THINKING, Form(_read_thinks, _thinks)),
    Field("effort", "generationConfig.thinkingConfig.thinkingLevel",
          efforts("minimal", "low", "medium", "high", spelled=str.upper)),
    Field("format", "generationConfig.responseJsonSchema", Form(
        lambda said: Format(said) if isinstance(said, dict) else None, _write_schema)),
    Field("format", "generationConfig.responseSchema", Form(_read_older), reads_only=True),
    Field("format", "generationConfig.responseMimeType", Form(
        lambda said: Format() if said == JSON else None, lambda format, _: JSON if format else None)),
)  # fmt: skip


class GeminiEncoder(Encoder):
    """One generateContent request."""

    name = "gemini"
    grammar = Grammar("[!-~]{1,128}", needed=False, within="turn")
    naming = DOTTED
    dialect = Dialect(known=KEYWORDS)
    fields = FIELDS
    choice_at = ("toolConfig",)
    narrowed = {}
    says_parallel = False
    says_strict = False

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        said: Body = {"contents": merge(self.entries(talk), "parts"), **tools}
        if system:
            said["systemInstruction"] = {"parts": [{"text": system}]}
        return said

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        parts = self.parts(said)
        return [{"role": "model", "parts": self._marked(said, parts)}] if parts else []

    @property
    def _is_third(self) -> bool:
        """Is it of the third generation, or later? What names none is taken for an older one."""
        named = _generation((self.options.model or "").rpartition("/")[2])
        return named is not None and int(named[1]) >= 3

    def _marked(self, said: Said, parts: list[Entry]) -> list[Entry]:
        """Calls that another model made, for one that checks signatures: said to have none."""
        first = next((part for part in said.parts if isinstance(part, Called)), None)
        if first is None or first.own or not self._is_third:
            return parts
        at = next(at for at, part in enumerate(parts) if "functionCall" in part)
        return [*parts[:at], {**parts[at], SIGNATURE: UNSIGNED}, *parts[at + 1 :]]

    def text(self, part: Text) -> list[Entry]:
        return _cut(part, {})

    def reasoning(self, part: Reasoning) -> list[Entry]:
        return _cut(part, {"thought": True})

    def called(self, part: Called) -> list[Entry]:
        return [part_of(part.call, part.id, part.name, part.echo)]

    def place_of(self, part: Made, own: bool) -> Place:
        """Its own as it came; any other bytes, too, as the model's parts are like the user's."""
        return "turn" if part.data is not None or (own and part.url) else "nowhere"

    def made(self, part: Made) -> list[Entry]:
        beside: Entry = {}
        for echo in part.echoes:
            beside |= echo
        said = {"inlineData": {"mimeType": part.type}} if part.data is not None else {}
        entry = {**said, **beside}
        if part.data is not None:
            entry["inlineData"] = {**entry["inlineData"], "data": in_base64(part.data)}
        return [entry]

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        return [{"role": "user", "parts": self.contents(said, _piece)}]

    def linked(self, part: Link) -> Entry | None:
        """Only films may be without a type."""
        if part.exact_type is None and part.modality != "video":
            return None
        return {"fileData": filled({"mimeType": part.exact_type, "fileUri": part.url})}

    def answers(self, said: Said) -> list[Entry]:
        parts = [entry for answer in said.answers for entry in self._answer(answer)]
        return [{"role": "user", "parts": parts}]

    def _answer(self, answer: Answer) -> list[Entry]:
        id = {} if answer.called.id is None else {"id": answer.called.id}
        media = answer.result.media if answer.result.inline else []
        taken = RESPONSE_MEDIA if self._is_third else ()
        inside = [_inline(m) for m in media if m.type in taken]
        beside = [_inline(m) for m in media if m.type not in taken]
        response: Entry = {**id, "name": answer.called.name, "response": _response(answer)}
        if inside:
            response["parts"] = inside
        return [{"functionResponse": response}, *beside]

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        return filled({"name": name, "description": tool.description or None, SCHEMA: schema})

    def tools(self, entries: list[Entry]) -> list[Entry]:
        """All functions in one entry, then the tools that the provider runs."""
        functions = [entry for entry in entries if "name" in entry]
        others = [entry for entry in entries if "name" not in entry]
        return [*([{"functionDeclarations": functions}] if functions else []), *others]

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        said: Entry = {"mode": MODES[choice.mode]}
        if choice.names:
            said["allowedFunctionNames"] = [n for tool, n in tools if tool.name in choice.names]
        return {"toolConfig": {"functionCallingConfig": said}}


def _cut(part: Text | Reasoning, flags: Entry) -> list[Entry]:
    """A text in the pieces that signatures make of it; each ends with its own."""
    signed = [(at, echo) for at, echo in zip(part.marks, part.echoes, strict=False)
              if SIGNATURE in echo]  # fmt: skip
    if not signed:
        return [{"text": part.text, **flags}] if part.text else []
    at, echo = signed[0]
    before = [{"text": part.text[:at], **flags}] if at else []
    return [*before, {"text": part.text[at:], **flags, SIGNATURE: echo[SIGNATURE]}]


def part_of(call: ToolCall, id: str | None, name: str, echo: Echo) -> Entry:
    """The part that says a call; the signature of its echo stands beside it."""
    beside = {SIGNATURE: echo[SIGNATURE]} if SIGNATURE in echo else {}
    rest = {key: value for key, value in echo.items() if key != SIGNATURE}
    field, said = CALLS.get(call.family, _function)(call, name)
    return {field: {**({} if id is None else {"id": id}), **said, **rest}, **beside}


def _function(call: ToolCall, name: str) -> tuple[str, Entry]:
    return "functionCall", {"name": name, "args": call.arguments}


def _code(call: ToolCall, _: str) -> tuple[str, Entry]:
    return "executableCode", {"code": call.raw}


def _server_tool(call: ToolCall, _: str) -> tuple[str, Entry]:
    return "toolCall", {"args": call.arguments}


# What sort of tool is called -> the field of the part, and what it says.
CALLS: Mapping[str, Callable[[ToolCall, str], tuple[str, Entry]]] = {
    "code-execution": _code,
    "generic-server-tool": _server_tool,
}


def _response(answer: Answer) -> Echo:
    """An object: the output under one key, an error under another."""
    result = answer.result
    plain = result.text if result.pieces or result.value is None else result.value
    return {"error": plain} if result.is_error else {"output": plain}


def _piece(part: Text | File) -> Entry:
    return {"text": part.text} if isinstance(part, Text) else _inline(part)


def _inline(media: File) -> Entry:
    return {"inlineData": {"mimeType": media.type, "data": in_base64(media.data)}}


ENCODER = GeminiEncoder
