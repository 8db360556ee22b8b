"""OpenAI Chat Completions and those who imitate it, the way back: turns in, ``messages`` out.

    {role: assistant, content, tool_calls: [{id, type, function: {name, arguments: text}}]}
    {role: tool, tool_call_id, content}        one message for each result, after their calls

A result is text. What imitators want back of their reasoning stands beside the content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...conversation import Made, Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Place, Said, filled
from ...encoding.fields import (
    FLAG,
    NUMBER,
    SWITCH,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Form,
    efforts,
    read_format,
)
from ...encoding.ids import Grammar
from ...encoding.schemas import PLAIN_OBJECTS
from ...events import Echo, ProviderToolResult
from ...options import Format, RequestOptions
from ...text.written import data_uri, in_base64
from ...tools import File, Link, Tool, ToolChoice
from .entries import BUILTIN

__all__ = ["ENCODER", "ChatEncoder"]

SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
# Where reasoning stands beside what else a vendor wants back of it; most say `reasoning_content`.
REASONING = {"reasoning_details": "reasoning", "reasoning_opaque": "reasoning_text"}


# --- how to answer --------------------------------------------------------------------------------


def _read_format(said: Any) -> Format | None:
    match said:
        case {"type": "json_object", **rest} if not rest:
            return Format()
        case {"type": "json_schema", "json_schema": dict(inner), **rest} if not rest:
            return read_format(inner)
    return None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None:
        return None
    if format.schema is None:
        return {"type": "json_object"}
    said = {
        "name": format.name, "description": format.description or None,
        "schema": format.schema, "strict": format.strict,
    }  # fmt: skip
    return {"type": "json_schema", "json_schema": filled(said)}


def _tells_usage(usage: bool | None, options: RequestOptions) -> bool | None:
    """It stands at the end of a stream, if it is asked for."""
    return None if not options.stream else True if usage is None else usage


FORMAT = Form(_read_format, _write_format)
FIELDS = (
    Field("model", "model", TEXT),
    Field("max_tokens", "max_completion_tokens", WHOLE),
    Field("max_tokens", "max_tokens", WHOLE, reads_only=True),
    Field("stream", "stream", SWITCH, unsaid=False),
    Field("usage", "stream_options.include_usage", Form(FLAG.read, _tells_usage)),
    Field("temperature", "temperature", NUMBER),
    Field("top_p", "top_p", NUMBER),
    Field("stop", "stop", TEXTS, most=4),
    Field("seed", "seed", WHOLE),
    Field("frequency_penalty", "frequency_penalty", NUMBER),
    Field("presence_penalty", "presence_penalty", NUMBER),
    Field(
        "effort", "reasoning_effort", efforts("none", "minimal", "low", "medium", "high", "xhigh")
    ),
    Field("verbosity", "verbosity", TEXT),
    Field("format", "response_format", FORMAT),
    Field("user", "user", TEXT, most=64),
)


class ChatEncoder(Encoder):
    """One Chat Completions request."""

    name = "openai_chat"
    # Results stand right behind their calls, and some servers number their calls anew in each turn.
    grammar = Grammar("[!-~]{1,40}", within="turn")
    dialect = PLAIN_OBJECTS
    fields: ClassVar[tuple[Field, ...]] = FIELDS
    says_text_tools = True
    narrowed = {}
    says_system_anywhere = True
    reasons = False  # the server thinks in the open: it misses that where it is left out

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        self.reasons = any(_thinks_openly(said) for said in talk)
        opening = [{"role": "system", "content": system}] if system else []
        return {"messages": [*opening, *self.entries(talk)], **tools}

    def system(self, said: Said) -> list[Entry]:
        return [{"role": "system", "content": _text_of(said)}]

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        called = [part for part in said.parts if isinstance(part, Called) and _goes_back(part)]
        calls = [self.call(part) for part in called]
        message = {
            "role": "assistant",
            "content": self.content(said),
            **self.beside(said, bool(calls)),
        }
        if calls:
            message["tool_calls"] = calls
        given = [{**part.echo, "tool_call_id": call.id} for part in said.parts for call in called
                 if isinstance(part, ProviderToolResult) and part.id == call.call.id
                 and isinstance(part.echo, dict)]  # fmt: skip
        message_first = [message] if message["content"] is not None or len(message) > 2 else []
        return [*message_first, *given]

    def content(self, said: Said) -> Any:
        return _text_of(said) or None

    def beside(self, said: Said, has_calls: bool) -> Entry:
        """Reasoning and refusals, where the wire has them: beside the content."""
        beside: Entry = {}
        refusal = "".join(p.text for p in said.parts if isinstance(p, Text) and _refused(p))
        if refusal:
            beside["refusal"] = refusal
        thoughts = [part for part in said.parts if isinstance(part, Reasoning)]
        echo = _joined(echo for part in thoughts for echo in part.echoes)
        text = "".join(part.text for part in thoughts)
        field = said.facts.get("reasoning_field") or next(
            (REASONING[key] for key in echo if key in REASONING), "reasoning_content"
        )
        beside |= _media(said)
        # With its details, or with a call: elsewhere nobody wants it, and some refuse it.
        if (text and (echo or has_calls)) or (has_calls and self.reasons and not echo):
            beside[field] = text
        return beside | echo

    def place_of(self, part: Made, own: bool) -> Place:
        return "turn" if own and (_voice(part) or _pictured(part) is not None) else "nowhere"

    def call(self, part: Called) -> Entry:
        if part.own and part.call.family == "custom":
            said: Entry = {"type": "custom", "custom": {"name": part.name, "input": part.call.raw}}
        else:
            said = {"type": "function", "function": {"name": part.name, "arguments": part.text}}
        return {"id": part.id, **said, **part.echo}

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        parts = said.pieces
        if len(parts) == 1 and isinstance(parts[0], Text):
            return [{"role": "user", "content": parts[0].text}]
        return [{"role": "user", "content": self.contents(said, self.piece)}]

    def linked(self, part: Link) -> Entry | None:
        is_image = part.is_of("image/*")
        return {"type": "image_url", "image_url": {"url": part.url}} if is_image else None

    def answers(self, said: Said) -> list[Entry]:
        return [*map(self.answer, said.answers)]

    def answer(self, answer: Answer) -> Entry:
        return {"role": "tool", "tool_call_id": answer.called.id, "content": answer.text}

    def piece(self, part: Text | File) -> Entry:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if part.modality == "image":
            return {"type": "image_url", "image_url": {"url": data_uri(part.data, part.type)}}
        if part.type in SOUNDS:
            sound = {"data": in_base64(part.data), "format": SOUNDS[part.type]}
            return {"type": "input_audio", "input_audio": sound}
        if part.type == "application/pdf":
            file = {
                "filename": part.name or "file.pdf",
                "file_data": data_uri(part.data, part.type),
            }
            return {"type": "file", "file": file}
        return {"type": "text", "text": part.words}

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {
            "name": name, "description": tool.description or None, "parameters": schema,
            "strict": tool.strict,
        }  # fmt: skip
        return {"type": "function", "function": filled(said)}

    def text_tool(self, tool: Tool, name: str) -> Entry:
        said: Entry = {"name": name, "description": tool.description or None}
        if tool.grammar is not None:
            grammar = {"syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
            said["format"] = {"type": "grammar", "grammar": grammar}
        return {"type": "custom", "custom": filled(said)}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        chosen = [self.chosen(tool, name) for tool, name in tools if tool.name in choice.names]
        said: Any = choice.mode
        if choice.mode == "tool":
            said = chosen[0]
        elif choice.mode == "allowed":
            said = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": chosen}}
        return {"tool_choice": said} | ({} if choice.parallel else {"parallel_tool_calls": False})

    def chosen(self, tool: Tool, name: str) -> Entry:
        kind = "custom" if self.takes_text(tool) else "function"
        return {"type": kind, kind: {"name": name}}


def _goes_back(part: Called) -> bool:
    """What the client runs; and the provider's own function, which it answers as well."""
    return part.call.runs_on == "client" or part.echo.get("type") == BUILTIN


def _media(said: Said) -> Entry:
    """What the model made: a voice by its id, pictures as they came."""
    made = [part for part in said.parts if isinstance(part, Made)]
    voices = [{"audio": {"id": id}} for part in made if (id := _voice(part))]
    pictures = [image for part in made if (image := _pictured(part)) is not None]
    return (voices[-1] if voices else {}) | ({"images": pictures} if pictures else {})


def _voice(part: Made) -> str | None:
    """The id under which the provider keeps a voice."""
    said = [echo["audio"] for echo in part.echoes if isinstance(echo.get("audio"), dict)]
    return next((str(audio["id"]) for audio in said if audio.get("id")), None)


def _pictured(part: Made) -> Entry | None:
    beside = next((echo["images"] for echo in part.echoes if "images" in echo), None)
    if beside is None or (part.data is None and part.url is None):
        return None
    url = part.url if part.data is None else data_uri(part.data, part.type)
    return {"type": "image_url", "image_url": {"url": url}, **beside}


def _refused(part: Text) -> bool:
    return any(echo.get("type") == "refusal" for echo in part.echoes)


def _text_of(said: Said) -> str:
    return "".join(p.text for p in said.parts if isinstance(p, Text) and not _refused(p))


def _thinks_openly(said: Said) -> bool:
    return any(isinstance(p, Reasoning) and p.text and not p.echoes for p in said.parts)


def _joined(echoes: Any) -> Echo:
    """What many deltas brought, as one: details by their index, lists in a row, the rest as last."""
    joined: Echo = {}
    for echo in echoes:
        for key, value in echo.items():
            before = joined.get(key)
            if key == "reasoning_details":
                joined[key] = _details(before or [], value)
            elif isinstance(before, list) and isinstance(value, list):
                joined[key] = [*before, *value]
            else:
                joined[key] = value
    return joined


def _details(held: list[Any], more: list[Any]) -> list[Any]:
    """Details with one index and type are pieces of one; what grows in them are texts."""
    merged = list(held)
    for detail in more:
        at = _place_of(detail, merged)
        if at is None:
            merged.append(detail)
        else:
            merged[at] = _grown(merged[at], detail)
    return merged


def _place_of(detail: Any, held: list[Any]) -> int | None:
    key = _key(detail)
    return next((at for at, d in enumerate(held) if key and _key(d) == key), None)


def _key(detail: Any) -> tuple[Any, Any] | None:
    has_index = isinstance(detail, dict) and detail.get("index") is not None
    return (detail["index"], detail.get("type")) if has_index else None


GROWING = ("text", "summary", "data")


def _grown(held: Entry, more: Entry) -> Entry:
    grown = {**held, **{key: value for key, value in more.items() if value is not None}}
    for key in GROWING:
        if isinstance(held.get(key), str) and isinstance(more.get(key), str):
            grown[key] = held[key] + more[key]
    return grown


ENCODER = ChatEncoder
