"""Codex, read plainly: a turn has items, and an item is a call and what came out of it.

On standard output a call is known by the id of its item, and told once: as it starts, where all of it
is said then, else when it is completed. In a rollout the items are those of the Responses wire, each
of them done. An input that is missing, or of another type, is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.proof.frames import lines, whole_in
from tests.proof.readers import openai_responses
from tests.proof.readers.openai_responses import Items
from tests.proof.readers.said import Heard, Reading, name_in, sound_object, text_in


class Step(NamedTuple):
    """One type of item: where its input is, of what types, and when that is said."""

    fields: dict[str, type]
    early: bool = False
    name: str = ""  # the field that has its name; else it is called as its type


MAYBE = type(None)
STEPS = {
    "command_execution": Step({"command": str}, True),
    "file_change": Step({"changes": list}),
    "mcp_tool_call": Step({"arguments": dict}, True, "tool"),
    "collab_tool_call": Step(
        {"sender_thread_id": str, "receiver_thread_ids": list, "prompt": str}, True, "tool"
    ),
    "web_search": Step({"query": str, "action": dict}),
    "todo_list": Step({"items": list}),
}
TOOLS = {kind: tool._replace(runs_on="provider") for kind, tool in openai_responses.TOOLS.items()}


def read(body: bytes) -> Reading:
    reading = Reading()
    turn = Turn(reading)
    for payload in lines(body):
        said = whole_in(payload, "item", "type")
        said = said if isinstance(said, dict) else whole_in(payload, "payload", "type")
        if not isinstance(said, dict):  # whatever it was, no item has parts elsewhere
            continue
        kind = text_in(said.get("type"))
        inner = said.get("payload")
        event = text_in(inner.get("type")) if isinstance(inner, dict) else ""
        if kind.startswith("item."):
            turn.item(kind.removeprefix("item."), said.get("item"))
        elif kind == "response_item":
            turn.response_item(inner)
        elif kind in ("turn.started", "turn.completed", "turn.failed"):
            if kind == "turn.completed":
                turn.over()
            turn = Turn(reading)
            reading.ended = {"turn.completed": "normal"}.get(kind, "failed")
        elif kind == "turn_context" and not turn.goes_on(turn_in(inner)):
            if not turn.tasked and turn.number:  # only the next one tells that it has ended
                turn.over()
            turn = Turn(reading)
        elif kind == "event_msg" and event in ("task_started", "turn_started"):
            turn = Turn(reading)
            turn.tasked, turn.id = True, turn_in(inner)
        elif kind == "event_msg" and event in ("task_complete", "turn_complete"):
            turn.over()
            turn = Turn(reading)
            reading.ended = "normal"
        elif kind == "event_msg" and event == "turn_aborted":
            turn = Turn(reading)
    return reading


def turn_in(payload: Any) -> str:
    return text_in(payload.get("turn_id")) if isinstance(payload, dict) else ""


class Turn:
    """The items of one turn."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.told: set[tuple[str, str]] = set()  # types and ids of items
        self.running: list[Heard] = []  # told, and not completed yet
        self.items = Items(TOOLS)
        self.items.reading.calls, self.items.reading.also = reading.calls, reading.also
        self.number = 0  # of items in a rollout
        self.tasked, self.id = False, ""

    def goes_on(self, id: str) -> bool:
        """Is what says this id, or none, of this turn? One without a task says by none that it is over."""
        return (self.tasked and not id) or bool(self.id and self.id == id)

    def item(self, what: str, item: Any) -> None:
        kind = text_in(item.get("type")) if isinstance(item, dict) else ""
        step = STEPS.get(kind)
        if step is None:
            return
        early = step.early and what == "started" and bool(text_in(item.get("id")))
        if what != "completed" and not early:
            return
        call = call_in(step, kind, item)
        if call is None or (early and all(item.get(f) is None for f in step.fields)):
            return
        same = [r for r in self.running if (r.name, r.arguments) == (call.name, call.arguments)]
        same = [
            r for r in same if call.id in (None, r.id)
        ]  # one without an id is the first of them
        if same and what == "completed":
            self.running.remove(same[0])
        elif (kind, call.id) in self.told:  # said once more; if differently, one of both is told
            self.reading.also += [call] if call not in self.reading.calls else []
        elif not same:
            self.reading.calls.append(call)
            self.told |= {(kind, call.id)} if call.id else set()
            self.running += [call] if what == "started" else []

    def response_item(self, item: Any) -> None:
        if not isinstance(item, dict) or item.get("role") not in (None, "assistant"):
            return
        self.items.item({"item": item, "output_index": self.number}, True)
        self.number += 1

    def over(self) -> None:
        """The turn is complete: calls without any text count."""
        self.items.end("completed", None)


def call_in(step: Step, kind: str, item: dict[str, Any]) -> Heard | None:
    """The call of an item whose whole input is there."""
    if not all(isinstance(item.get(f), (kind, MAYBE)) for f, kind in step.fields.items()):
        return None
    arguments = {f: item[f] for f in step.fields if item.get(f) is not None}
    if "arguments" in step.fields and "arguments" in item:  # it may say that there are none
        arguments = item["arguments"] or {}
    elif not arguments:
        return None
    name = name_in(item.get(step.name)) if step.name else kind
    if not name or not sound_object(arguments):
        return None
    id = text_in(item.get("id"))
    return Heard(id or None, name, arguments, "provider", ids=frozenset({id} if id else ()))
