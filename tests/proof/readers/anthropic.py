"""Anthropic Messages, read plainly: a call is a block, known by its index (see ``places``)."""

from __future__ import annotations

from typing import Any

from tests.proof.frames import Payload, sse
from tests.proof.readers.places import Places, rough_place
from tests.proof.readers.said import Open, Reading, name_in, place_in, text_in, unknown

RUNS_ON = {"tool_use": "client", "server_tool_use": "provider", "mcp_tool_use": "provider"}
NORMAL = {"end_turn", "stop_sequence", "tool_use", "pause_turn", "compaction"}
KNOWN = {"max_tokens", "model_context_window_exceeded", "refusal"}
BLOCK_FIELDS = {"type", "id", "name", "input", "caller", "server_name", "cache_control"}

OTHER = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature",
         "citations_delta": "citation", "compaction_delta": "content"}  # fmt: skip


def read(body: bytes) -> Reading:
    blocks = Places()
    for payload in sse(body):
        said, kind = payload.value, kind_of(payload)
        if payload.word:
            continue
        if not isinstance(said, dict):
            blocks.lost(rough_place(payload))
        elif kind == "message_start":
            message = said.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            for index, block in enumerate(content if isinstance(content, list) else ()):
                blocks.start(index, call_in(block))
        elif kind == "content_block_start":
            blocks.start(place_of(said), call_in(said.get("content_block")))
            if carries_text(said.get("delta")):
                blocks.lost(None)
        elif kind == "content_block_delta":
            hear_delta(blocks, place_of(said), said.get("delta"))
        elif kind == "content_block_stop":
            if carries_text(said.get("delta")):  # two have become one: the place is of one of them
                blocks.lost(None)
            blocks.stop(place_of(said))
        elif kind == "message_delta":
            delta = said.get("delta")
            reason = text_in(delta.get("stop_reason")) if isinstance(delta, dict) else ""
            if reason:
                known = "length" if reason in KNOWN else "other"
                blocks.end("normal" if reason in NORMAL else known)
        elif kind == "message_stop":
            break
        elif kind == "error":
            blocks.reading.ended = "failed"
            break
        elif kind != "ping":
            if payload.event == "content_block_start":  # its name says what its type does not
                blocks.start(place_of(said), call_in(said.get("content_block")))
            blocks.unknown(place_in(said.get("index")), said.get("type"), said)
    return blocks.reading


def place_of(said: dict[str, Any]) -> int | None:
    """The index; to name none is a place as well."""
    return -1 if said.get("index") is None else place_in(said["index"])


def kind_of(payload: Payload, field: str = "type") -> str:
    """Its ``type``; the name of the event where that is missing, or null."""
    said = payload.value
    kind = said.get(field) if isinstance(said, dict) else ""
    kind = payload.event if kind is None else kind
    return kind if isinstance(kind, str) else ""


def call_in(block: Any) -> Open | None:
    """The call that a block begins, if it does."""
    kind = text_in(block.get("type")) if isinstance(block, dict) else ""
    if kind not in RUNS_ON:
        return None
    id = text_in(block.get("id"))
    call = Open(id or None, name_in(block.get("name")), RUNS_ON[kind], given=block.get("input"))
    call.tainted = call.given is None and unknown(block, BLOCK_FIELDS)
    return call


def carries_text(delta: Any) -> bool:
    """A delta where none belongs: it may have been somebody's text."""
    return isinstance(delta, str) or (isinstance(delta, dict) and "partial_json" in delta)


def hear_delta(blocks: Places, place: int | None, delta: Any) -> None:
    if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        blocks.fragment(place, delta.get("partial_json"))
    elif not isinstance(delta, dict) or OTHER.get(text_in(delta.get("type"))) not in delta:
        blocks.lost(place)
