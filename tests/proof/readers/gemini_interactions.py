"""Gemini Interactions, read plainly: a call is a step, known by its index (see ``places``).

Arguments come as JSON text in fragments, or as an object in the step's start or in a delta. The
final interaction says the steps again and counts where none was heard.
"""

from __future__ import annotations

import json
from typing import Any

from tests.proof.frames import Twice, sse
from tests.proof.readers.anthropic import kind_of
from tests.proof.readers.places import Places, rough_place
from tests.proof.readers.said import (
    Open,
    Reading,
    arguments_of,
    name_in,
    place_in,
    sound_object,
    text_in,
)

NAMED = {"function_call", "mcp_server_tool_call"}
CALLS = NAMED | {"code_execution_call", "file_search_call", "google_maps_call", "google_search_call",
                 "processing_call", "retrieval_call", "url_context_call"}  # fmt: skip
NORMAL = {"completed", "requires_action", "requires_continuation"}
KNOWN = {"incomplete", "budget_exceeded"}
FAILING = {"failed", "cancelled"}
OTHER = {"text", "text_annotation_delta", "thought_summary", "thought_signature", "image", "audio",
         "video", "document"}  # fmt: skip
GOING_ON = {"", "in_progress", "queued"}


class Steps(Places):
    """The calls of one interaction."""

    def __init__(self) -> None:
        super().__init__()
        self.strays: set[int | None] = set()  # places of pieces that came before any call did


def read(body: bytes) -> Reading:
    steps, status, started = Steps(), "", False
    for payload in sse(body):
        said, kind = payload.value, kind_of(payload, "event_type")
        if payload.word:
            if status:
                break
            continue
        if not isinstance(said, dict):
            steps.lost(rough_place(payload))
            continue
        place = place_in(said.get("index"))
        if says_twice(said):
            doubt(steps, place)
        if kind == "step.start":
            started = True
            # without a step it begins nothing: a payload that cannot be read, and names a place
            if isinstance(said.get("step"), dict):
                steps.start(place, call_in(said["step"]))
                if place is not None and (status or place in steps.strays):
                    doubt(steps, place)  # behind the end of the turn, or behind a piece of it
            if not isinstance(said.get("step"), dict):
                steps.lost(place)
            elif carries_text(
                said.get("delta")
            ):  # two have become one: the place is of one of them
                steps.lost(None)
        elif kind == "step.delta":
            hear_delta(steps, place, said.get("delta"))
        elif kind == "step.stop":
            if carries_text(said.get("delta")):
                steps.lost(None)
            if text_in(said.get("status")) in FAILING | KNOWN:
                steps.lost(place)
            if place is None or status:
                doubt(steps, place)
            steps.stop(place)
        elif kind == "error":
            status = "failed"
            break
        elif kind in ("interaction.created", "interaction.completed", "interaction.status_update"):
            inner = said.get("interaction")
            inner = inner if isinstance(inner, dict) else {}
            if kind == "interaction.completed" and started:
                over = text_in(inner.get("status")) in NORMAL
                compared(steps, inner.get("steps"), over=over)
            elif kind == "interaction.completed":
                restated(steps, inner.get("steps"))
            word = said.get("status") if kind.endswith("update") else inner.get("status")
            word = text_in(word) or ("completed" if kind.endswith("completed") else "")
            if (not status or status in NORMAL) and word not in GOING_ON:
                status = word
            if inner.get("errors"):
                status = "failed"
        else:
            steps.unknown(place, said.get("event_type", said.get("type")), said)
    if status in FAILING:
        steps.reading.ended = "failed"
    elif status:
        steps.end("normal" if status in NORMAL else "length" if status in KNOWN else "other")
    return steps.reading


def says_twice(said: Any) -> bool:
    """A field, and differently."""
    if isinstance(said, dict):
        return bool(isinstance(said, Twice) and said.differs) or any(map(says_twice, said.values()))
    return isinstance(said, list) and any(map(says_twice, said))


def doubt(steps: Steps, place: int | None) -> None:
    """Whoever takes this for a loss may believe the final interaction, where the two differ."""
    for call in steps.all:
        call.doubted |= place is None or steps.at.get(place) is call


def call_in(step: Any) -> Open | None:
    kind = text_in(step.get("type")) if isinstance(step, dict) else ""
    if kind not in CALLS:
        return None
    own = text_in(step.get("retrieval_type")) or kind.removesuffix("_call")
    name = name_in(step.get("name")) if kind in NAMED else own
    runs_on = "client" if kind == "function_call" else "provider"
    id = text_in(step.get("id"))
    call = Open(id or None, name, runs_on, kind=kind, given=step.get("arguments"))
    if isinstance(call.given, str):
        call.fragments, call.given = [call.given] if call.given else [], None
    elif call.given is not None and not isinstance(call.given, dict):
        call.tainted, call.given = True, None  # of a wrong type, as a fragment may be
    return call


def carries_text(delta: Any) -> bool:
    """A delta where none belongs: it may have been somebody's arguments."""
    return isinstance(delta, str) or (isinstance(delta, dict) and "arguments" in delta)


def hear_delta(steps: Steps, place: int | None, delta: Any) -> None:
    kind = text_in(delta.get("type")) if isinstance(delta, dict) else ""
    call = steps.at.get(place) if place is not None else None
    if kind == "arguments_delta" or kind in CALLS:
        said = delta.get("arguments")
        if call is not None and is_of_another(call, kind, delta):
            steps.lost(place)
        elif call is not None and call.closed and text_in(delta.get("id")) == call.id:
            return  # said again after its end, and nobody else's
        elif isinstance(said, dict):
            whole(steps, place, call, said)
        elif said is not None or kind == "arguments_delta":
            steps.fragment(place, said)
            if call is None:  # nobody's, or of one that begins only now
                doubt(steps, None)
                steps.strays.add(place)
    elif kind not in OTHER or "arguments" in delta:
        steps.lost(place)
    else:  # something else in the place of a call
        doubt(steps, place)


def is_of_another(call: Open, kind: str, delta: dict[str, Any]) -> bool:
    """Does it say that it belongs to a call of another type, or of another id?"""
    id = text_in(delta.get("id"))
    return (kind in CALLS and kind != call.kind) or bool(id and call.id and id != call.id)


def whole(steps: Steps, place: int | None, call: Open | None, said: dict[str, Any]) -> None:
    """A delta with all arguments at once; an empty object says nothing."""
    if said and call is not None and not call.closed and not call.text and sound_object(said):
        call.fragments.append(json.dumps(said))
    elif said:
        steps.fragment(place, None)


def restated(steps: Steps, listed: Any) -> None:
    for index, step in enumerate(listed if isinstance(listed, list) else ()):
        steps.start(index, call_in(step))
        steps.stop(index)


def compared(steps: Steps, listed: Any, *, over: bool) -> None:
    """The final interaction says the calls that were heard again, and perhaps one that was not."""
    copies = [
        call for step in (listed if isinstance(listed, list) else ()) if (call := call_in(step))
    ]
    said = {copy.id: copy for copy in copies if copy.id}
    heard = {call.id for call in steps.all}
    for call in steps.all if listed else ():
        if call.id not in said:
            call.tainted = True
            continue
        call.name = call.name or said[call.id].name
        if call.doubted and call.name and (stated := stated_by(said[call.id])):
            steps.reading.also.append(call.heard(stated))
        if not call.state.get("told"):
            copied(steps, call, said[call.id], over=over)
    for number, (id, copy) in enumerate(said.items()):
        if id not in heard and heard <= set(said):
            steps.start(10**9 + number, copy)
            steps.stop(10**9 + number)


def stated_by(copy: Open) -> dict[str, Any] | None:
    """The arguments that a step of the final interaction states."""
    stated = arguments_of(copy, copy.text) if copy.text else copy.given
    return stated if sound_object(stated) else None


def copied(steps: Steps, call: Open, copy: Open, *, over: bool) -> None:
    """The copy counts, unless it says something else than a text of which nothing can be missing. Where it
    is the end of the interaction nothing takes it back: a second one, of a stream that is mixed with this
    one, comes when it was told."""
    stated = stated_by(copy)
    held = arguments_of(call, call.text) if call.text else call.given
    if not stated:
        return
    differs = json.dumps(held, sort_keys=True) != json.dumps(stated, sort_keys=True)
    if held and differs and not call.tainted:
        call.state["rival"] = call.tainted = True
    if call.state.get("rival"):
        return
    call.fragments, call.given, call.tainted = [], stated, False
    if call.closed:
        steps.tell(call)
    elif over and call.name:
        steps.reading.also.append(call.heard(stated))
