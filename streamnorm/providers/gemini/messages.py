"""Gemini generateContent, a body read back. See ``encoder`` for what stands in it.

Calls need no id: a response answers the call of its name, in order. Responses may stand anywhere in
the content after their calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ...encoding.messages import (
    Blocks,
    Entry,
    Found,
    Named,
    Piece,
    Returned,
    as_object,
    blocks_of,
    media,
    under,
)
from ...encoding.pairs import UNAVAILABLE
from ...tools import File, Link, Mode, Tool, ToolChoice
from .encoder import SCHEMA
from .spelling import as_json_schema, evened

__all__ = ["MESSAGES", "GeminiMessages", "link_of"]

UPLOADED = "generativelanguage.googleapis.com"  # where files lie that a key of this provider opens
MODES: Mapping[str, Mode] = {
    "AUTO": "auto", "NONE": "none", "ANY": "required", "VALIDATED": "allowed",
}  # fmt: skip


class GeminiMessages(Blocks):
    """The contents of one request."""

    key = "parts"
    model = "model"
    clients = ("user", "function", "tool")
    results_first = False
    needs_id = False
    beside = ("systemInstruction", "tools", "toolConfig.functionCallingConfig")
    tools_at, choice_at = "tools", "toolConfig.functionCallingConfig"
    known = frozenset(
        {"role", "parts", "text", "inlineData", "fileData", "fileUri", "mimeType",
         "functionResponse", "id", "name"}
    )  # fmt: skip
    opaque = frozenset({"data", "response"})

    def is_own(self, entry: Entry) -> bool:
        return self.key in entry

    def is_own_body(self, body: Entry) -> bool:
        return self.container in body

    def evened(self, body: Any) -> Any:
        return evened(body)

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        """An entry may declare functions, and beside them tools that the provider runs."""
        for field, said in entry.items():
            if field == "functionDeclarations":
                yield from map(self._function, said)
            else:
                yield self.hosted({field: said})

    def _function(self, said: Entry) -> Tool:
        if SCHEMA not in said and isinstance(said.get("parameters"), dict):
            rest = {key: value for key, value in said.items() if key != "parameters"}
            said = {**rest, SCHEMA: as_json_schema(said["parameters"])}
        return self.function(said, SCHEMA)

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        if said is None:
            return None
        names = tuple(said.get("allowedFunctionNames") or ())
        if said["mode"] == "ANY" and len(names) == 1:
            return ToolChoice("tool", names)
        if bool(names) is not (said["mode"] == "VALIDATED"):
            raise ValueError("a choice that only this wire has")
        return ToolChoice(MODES[said["mode"]], names)

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        return under(block, "functionCall", "id")

    def result(self, block: Entry) -> Named | None:
        return under(block, "functionResponse", "id")

    def returned(self, block: Entry) -> Returned:
        said = block["functionResponse"]
        output, is_error = said.get("response"), False
        for key in ("output", "error"):
            if isinstance(output, dict) and set(output) == {key}:
                output, is_error = output[key], key == "error"
        parts = blocks_of(said, "parts")
        return [{"text": output}, *parts] if parts and isinstance(output, str) else output, is_error

    def output(self, content: Any) -> Any:
        """File of a response stand beside its text, which says of each that it was there."""
        read = super().output(content)
        if not isinstance(read, list):
            return read
        shown = {piece.summary for piece in read if isinstance(piece, File)}
        lines = read[0].split("\n") if read and isinstance(read[0], str) else []
        text = "\n".join(line for line in lines if line not in shown)
        return [*([text] if text else []), *read[1:]] if lines else read

    def closed(self, call: Found) -> Entry:
        id = {"id": call.id} if call.id else {}
        return {"functionResponse": {**id, "name": call.name, "response": {"error": UNAVAILABLE}}}

    def name_call(self, block: Entry, id: str) -> None:
        block["functionCall"]["id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["functionResponse"]["id"] = id

    def even(self, block: Entry) -> bool:
        call = block["functionCall"]
        return call.get("args") is not None and as_object(call, "args")

    # --- what was said ----------------------------------------------------------------------------

    def system(self, body: Entry) -> Any:
        said = body.get("systemInstruction")
        return said.get(self.key) if isinstance(said, dict) else said

    def text(self, text: str) -> Entry:
        return {"text": text}

    def piece(self, block: Entry) -> Piece | None:
        if "fileData" in block:
            said = block["fileData"]  # only films may be without a type
            return link_of(said["fileUri"], said.get("mimeType") or "video/*")
        data = block["inlineData"]
        return media(data["data"], data["mimeType"])

    def told(self, entry: Entry) -> Iterator[Entry]:
        content = {"role": "model", "parts": self.blocks(entry)}
        yield {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}

    def answered(self, answer: Entry) -> Iterator[Entry]:
        yield answer  # each chunk of a stream has this very form


def link_of(uri: str, type: str) -> Link:
    """What is on the web; a file that was uploaded to this provider is nobody else's to read."""
    if urlsplit(uri).hostname == UPLOADED:
        raise ValueError("a file that only this provider has")
    return Link(uri, type)


MESSAGES = GeminiMessages
