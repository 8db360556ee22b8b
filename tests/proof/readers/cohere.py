"""Cohere v2 chat, read plainly: a call is known by its index among calls (see ``places``)."""

from __future__ import annotations

import json
from typing import Any

from tests.proof.frames import sse
from tests.proof.readers.anthropic import kind_of, place_of
from tests.proof.readers.places import Places, mentions, rough_place
from tests.proof.readers.said import (
    Open,
    Reading,
    name_in,
    place_in,
    sound_object,
    text_in,
    unknown,
)

NORMAL = {"COMPLETE", "STOP_SEQUENCE", "TOOL_CALL"}
KNOWN = {"MAX_TOKENS", "ERROR_LIMIT", "ERROR_TOXIC"}
FAILING = {"ERROR", "TIMEOUT"}
HARMLESS = {"message-start", "content-start", "content-delta", "content-end", "tool-plan-delta",
            "citation-start", "citation-end", "debug"}  # fmt: skip
ENTRY_FIELDS = {"id", "type", "function"}
FUNCTION_FIELDS = {"name", "arguments"}


def read(body: bytes) -> Reading:
    calls = Places()
    for payload in sse(body):
        said, kind = payload.value, kind_of(payload)
        if payload.word:
            continue
        if (
            payload.rough
            and text_in(payload.rough.get("type")) in HARMLESS
            and not mentions(payload.rough)
        ):
            continue  # what was replaced in it is of no call
        if not isinstance(said, dict):
            calls.lost(rough_place(payload))
        elif kind in ("tool-call-start", "tool-call-delta"):
            hear(calls, place_of(said), said, kind == "tool-call-start")
        elif kind == "tool-call-end":
            if mentions(said.get("delta")):
                calls.lost(place_of(said))
            calls.stop(place_of(said))
        elif kind == "message-end":
            end(calls, said.get("delta"))
            break
        elif kind not in HARMLESS:
            calls.unknown(place_in(said.get("index")), said.get("type"), said)
    return calls.reading


def hear(calls: Places, place: int | None, said: dict[str, Any], starts: bool) -> None:
    delta = said.get("delta")
    message = delta.get("message") if isinstance(delta, dict) else None
    entry = message.get("tool_calls") if isinstance(message, dict) else None
    entry = entry[0] if isinstance(entry, list) and len(entry) == 1 else entry
    function = entry.get("function") if isinstance(entry, dict) else None
    if starts:
        id = text_in(entry.get("id")) if isinstance(entry, dict) else ""
        name = name_in(function.get("name")) if isinstance(function, dict) else ""
        calls.start(place, Open(id or None, name))
    if not isinstance(entry, dict) or not isinstance(function, dict):
        calls.lost(place)
        return
    text = function.get("arguments")
    odd = unknown(entry, ENTRY_FIELDS) or unknown(function, FUNCTION_FIELDS)
    if text is None and (odd or not starts):
        calls.lost(place)
    elif isinstance(text, dict) and sound_object(text):
        calls.fragment(place, json.dumps(text))
    elif text is not None:
        calls.fragment(place, text)
    if not starts and place is not None:
        learn(calls.at.get(place), entry, function)


def learn(call: Open | None, entry: dict[str, Any], function: dict[str, Any]) -> None:
    """Late ids and names."""
    if call is not None:
        call.name = call.name or name_in(function.get("name"))
        if id := text_in(entry.get("id")):
            call.ids.add(id)
            call.id = call.id or id


def end(calls: Places, delta: Any) -> None:
    said = delta if isinstance(delta, dict) else {}
    reason = text_in(said.get("finish_reason"))
    if reason in FAILING or said.get("error"):
        calls.reading.ended = "failed"
    else:
        calls.end("normal" if reason in NORMAL else "length" if reason in KNOWN else "other")
