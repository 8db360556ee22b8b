"""Bedrock ConverseStream, read plainly: a call is a block, known by its index (see ``places``)."""

from __future__ import annotations

import json
from typing import Any

from tests.proof.frames import aws
from tests.proof.readers.places import Places
from tests.proof.readers.said import Open, Reading, name_in, place_in, sound_object, text_in

NORMAL = {"end_turn", "stop_sequence", "tool_use"}
KNOWN = {"max_tokens", "model_context_window_exceeded", "guardrail_intervened", "content_filtered"}
FAILING = {"malformed_model_output", "malformed_tool_use"}

OTHER = {"text", "reasoningContent", "citation", "toolResult", "image"}


def read(body: bytes) -> Reading:
    blocks = Places()
    for payload in aws(body):
        said, kind = payload.value, payload.event
        if payload.error:
            if blocks.reading.ended == "cut":
                blocks.reading.ended = "failed"
            break
        if not isinstance(said, dict):
            if said is not None:
                blocks.lost(None)
            continue
        index = said.get("contentBlockIndex")
        place = -1 if index is None else place_in(index)  # to name none is a place as well
        if kind == "contentBlockStart":
            hear_start(blocks, place, said.get("start"))
            if carries_text(said.get("delta")):
                blocks.lost(None)
        elif kind == "contentBlockDelta":
            hear_delta(blocks, place, said.get("delta"))
        elif kind == "contentBlockStop":
            if carries_text(said.get("delta")):
                blocks.lost(None)
            blocks.stop(place)
        elif kind == "messageStop":
            reason = text_in(said.get("stopReason"))
            if reason in FAILING:
                blocks.reading.ended = "failed"
                break
            blocks.end("normal" if reason in NORMAL else "length" if reason in KNOWN else "other")
        elif kind not in ("messageStart", "metadata"):
            blocks.unknown(None if index is None else place, kind, said)
    return blocks.reading


def carries_text(delta: Any) -> bool:
    """A delta where none belongs: it may have been somebody's text."""
    return isinstance(delta, str) or (isinstance(delta, dict) and "toolUse" in delta)


def hear_start(blocks: Places, place: int | None, start: Any) -> None:
    use = start.get("toolUse") if isinstance(start, dict) else None
    if not isinstance(use, dict):  # a place may have other things beside its call
        if use is not None or not isinstance(start, dict) or not OTHER & set(start):
            blocks.start(place, None)
        return None
    runs_on = "client" if use.get("type") in (None, "tool_use") else "provider"
    id = text_in(use.get("toolUseId"))
    return blocks.start(place, Open(id or None, name_in(use.get("name")), runs_on))


def hear_delta(blocks: Places, place: int | None, delta: Any) -> None:
    use = delta.get("toolUse") if isinstance(delta, dict) else None
    if isinstance(use, dict):
        text = use.get("input")
        blocks.fragment(place, json.dumps(text) if sound_object(text) else text)
    elif not isinstance(delta, dict) or not OTHER & set(delta):  # a place may have text as well
        blocks.lost(place)
