"""Ollama's own API, read plainly: every entry of ``tool_calls`` is a whole call.

A call without arguments counts only if the answer is then done with a known word.
"""

from __future__ import annotations

import json
from typing import Any

from tests.proof.frames import Twice, lines
from tests.proof.readers.said import Heard, Reading, exact, name_in, sound_object, text_in, unknown

NORMAL = {"stop", "load", "unload"}
FUNCTION_FIELDS = {"name", "arguments", "index", "description"}


def read(body: bytes) -> Reading:
    reading, empty = Reading(), list[Heard]()
    before: list[Heard] = []
    for payload in lines(body):
        said = payload.value
        if payload.rough:
            reading.also += unharmed(payload.rough)
        if not isinstance(said, dict):
            continue
        if said.get("error") is not None:
            reading.ended = "failed"
            break
        for entry in entries_in(said):
            heard, stated = call_in(entry)
            if heard is not None and not (heard.id and heard in before):  # or it is said once more
                (reading.calls if stated else empty).append(heard)
        before = [*reading.calls, *empty]
        unsaid = isinstance(said, Twice) and said.differs  # two words for one thing are none
        if said.get("done") is True and not unsaid:
            word = "stop" if said.get("done_reason") is None else text_in(said["done_reason"])
            reading.ended = (
                "normal" if word in NORMAL else "length" if word == "length" else "other"
            )
            break
    if reading.ended == "normal":
        reading.calls += empty
    return reading


def entries_in(said: dict[str, Any]) -> list[Any]:
    """Those of its message; where that has none, those that stand beside it."""
    message = said.get("message")
    entries = message.get("tool_calls") if isinstance(message, dict) else None
    entries = entries or said.get("tool_calls")
    entries = [entries] if isinstance(entries, dict) else entries
    return entries if isinstance(entries, list) else []


def unharmed(rough: dict[str, Any]) -> list[Heard]:
    """The calls of a line that is no UTF-8 which the damage did not touch: each entry is a whole call,
    and what was replaced in another is no part of it."""
    whole = [e for e in entries_in(rough) if "\\ufffd" not in json.dumps(e)]
    calls = (call_in(entry) for entry in whole)
    return [heard for heard, stated in calls if heard is not None and stated]


def call_in(entry: Any) -> tuple[Heard | None, bool]:
    """The call of an entry, and whether its arguments were stated at all."""
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict):
        return None, False
    name, said = name_in(function.get("name")), function.get("arguments")
    stated = bool(said) or isinstance(said, dict)
    if isinstance(said, str):
        said = exact(said) if said.strip() else {}
    elif said is None and not unknown(function, FUNCTION_FIELDS):
        said = {}
    if not name or not isinstance(said, dict) or not sound_object(said):
        return None, False
    id = entry.get("id")
    id = id if isinstance(id, str) else str(id) if isinstance(id, int) else ""
    return Heard(id or None, name, said, ids=frozenset({id} if id else ())), stated
