"""Hugging Face TGI's own API, the way back: turns in, one text out.

    {inputs: text, parameters: {details: true, return_full_text: false, max_new_tokens?}}

The server puts no template around ``inputs``. So one turn of the user is sent as it is, and a longer
talk as lines that say who speaks, open for the answer. Pictures stand in the text as Markdown. There
are no tools: the same server has them at its Chat address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conversation import Text
from ...encoding.encoder import Body, Called, Encoder, Entry, Said
from ...encoding.fields import NUMBER, TEXTS, WHOLE, Field, Form, nameless
from ...encoding.ids import Grammar
from ...options import Format, RequestOptions
from ...text.written import data_uri
from ...tools import File, Link, Tool, ToolChoice

__all__ = ["ENCODER", "TgiEncoder"]

SYSTEM, USER, ASSISTANT = "System", "User", "Assistant"
ELSEWHERE = "ask the same server at /v1/chat/completions, as openai_chat"


# --- how to answer --------------------------------------------------------------------------------


def _read_grammar(said: Any) -> Format | None:
    match said:
        case {"type": "json", "value": dict(schema), **rest} if not rest:
            return Format(schema)
    return None


def _write_grammar(format: Format | None, options: RequestOptions) -> Any:
    if format is None or format.schema is None:
        return None
    return nameless({"type": "json", "value": format.schema}, format)


FIELDS = (
    Field("max_tokens", "parameters.max_new_tokens", WHOLE),
    Field("temperature", "parameters.temperature", NUMBER),
    Field("top_p", "parameters.top_p", NUMBER),
    Field("top_k", "parameters.top_k", WHOLE),
    Field("stop", "parameters.stop", TEXTS),
    Field("seed", "parameters.seed", WHOLE),
    Field("frequency_penalty", "parameters.frequency_penalty", NUMBER),
    Field("format", "parameters.grammar", Form(_read_grammar, _write_grammar)),
)


class TgiEncoder(Encoder):
    """One request to /generate_stream."""

    name = "tgi"
    grammar = Grammar("[!-~]{1,128}", needed=False)
    fields = FIELDS
    narrowed = {"allowed": "auto", "none": "nothing"}
    says_system_anywhere = True

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        opening = [{SYSTEM: system}] if system else []
        parameters = {"details": True, "return_full_text": False}
        return {"inputs": _prompt([*opening, *self.entries(talk)]), "parameters": parameters}

    def system(self, said: Said) -> list[Entry]:
        return [{SYSTEM: said.text}]

    def user(self, said: Said) -> list[Entry]:
        return [{USER: "".join(_shown(piece) for piece in said.pieces)}]

    def assistant(self, said: Said) -> list[Entry]:
        if any(isinstance(part, Called) for part in said.parts):
            raise self.cannot("a tool call", ELSEWHERE)
        return [{ASSISTANT: said.text}] if said.text else []

    def answers(self, said: Said) -> list[Entry]:
        raise self.cannot("the result of a tool call", ELSEWHERE)

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        raise self.cannot("that there are tools", ELSEWHERE)

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        return {}  # without tools there is nothing to choose


def _prompt(entries: list[Entry]) -> str:
    turns = [(who, text) for entry in entries for who, text in entry.items()]
    if len(turns) == 1 and turns[0][0] == USER:
        return str(turns[0][1])
    return "\n".join([*(f"{who}: {text}" for who, text in turns), f"{ASSISTANT}:"])


def _shown(piece: Text | File | Link) -> str:
    if isinstance(piece, Text):
        return piece.text
    if isinstance(piece, File) and piece.modality == "image":
        return f"![]({data_uri(piece.data, piece.type)})"
    return piece.words


ENCODER = TgiEncoder
