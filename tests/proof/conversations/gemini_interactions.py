"""Gemini Interactions: steps, started, filled and stopped."""

from __future__ import annotations

from typing import Any

from tests.proof.conversations.parts import (
    Dice,
    client_call,
    comments,
    fragments,
    ident,
    merged,
    prose,
    sprinkled,
    typed,
)
from tests.proof.talk import Frame, Raw, Said


def gemini_interactions(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []
    for index in range(dice.randint(1, 4)):
        roll = dice.random()
        if roll < 0.25:
            tracks.append(
                step(
                    index,
                    {"type": "model_output"},
                    [{"type": "text", "text": p} for p in fragments(dice, prose(dice))],
                    False,
                )
            )
        elif roll < 0.35:
            summary = {"type": "thought_summary", "content": {"type": "text", "text": prose(dice)}}
            tracks.append(step(index, {"type": "thought"}, [summary], False))
        elif roll < 0.5:
            tracks.append(server_step(dice, index, said))
        else:
            tracks.append(function_step(dice, index, said))
    base = {"id": ident(dice, "int_"), "model": "gemini-x", "object": "interaction"}
    status = "requires_action" if any(s.runs_on == "client" for s in said) else "completed"
    usage = {"total_input_tokens": 3, "total_output_tokens": 4}

    final = {**base, "status": status, "usage": usage}
    if dice.random() < 0.3:
        final["steps"] = stated(tracks, said)

    def told(payload: dict[str, Any]) -> Frame:
        return typed(payload, False, "event_type")

    frames = [
        told({"event_type": "interaction.created",
              "interaction": {**base, "status": "in_progress"}}),
        *merged(dice, tracks, 0.2),
        told({"event_type": "interaction.completed", "interaction": final}),
    ]  # fmt: skip
    if dice.random() < 0.6:
        frames.append(Frame(Raw("[DONE]"), "done"))
    return sprinkled(dice, frames, comments(dice)), said


def stated(tracks: list[list[Frame]], said: list[Said]) -> list[dict[str, Any]]:
    """All steps as the final interaction says them again."""
    arguments = {call.id: call.arguments for call in said}
    starts = [track[0].payload["step"] for track in tracks]
    return [
        {**start, "arguments": arguments[start["id"]]} if "id" in start else start
        for start in starts
    ]


def step(
    index: int, start: dict[str, Any], deltas: list[dict[str, Any]], about: bool
) -> list[Frame]:
    at = {"index": index}
    events = [
        {"event_type": "step.start", **at, "step": start},
        *({"event_type": "step.delta", **at, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", **at},
    ]
    return [typed(event, about, "event_type") for event in events]


def function_step(dice: Dice, index: int, said: list[Said]) -> list[Frame]:
    call = client_call(dice, "")
    start: dict[str, Any] = {"type": "function_call", "id": call.id, "name": call.name,
                             "arguments": {}}  # fmt: skip
    said.append(Said(call.id, call.name, call.arguments))
    pieces = fragments(dice, call.text)
    if call.arguments and dice.random() < 0.15:
        start["arguments"], pieces = call.arguments, []
    deltas = [{"type": "arguments_delta", "arguments": p} for p in pieces]
    return step(index, start, deltas, True)


def server_step(dice: Dice, index: int, said: list[Said]) -> list[Frame]:
    tool = dice.choice(("google_search", "code_execution", "url_context", "mcp_server_tool"))
    call = client_call(dice, "")
    arguments = call.arguments or {"queries": [prose(dice)]}
    named = {"name": call.name, "server_name": "docs"} if tool == "mcp_server_tool" else {}
    start: dict[str, Any] = {"type": f"{tool}_call", "id": call.id, **named}
    said.append(Said(call.id, call.name if named else tool, arguments, "provider"))
    if dice.random() < 0.5:
        return step(index, {**start, "arguments": arguments}, [], True)
    delta = {"type": f"{tool}_call", "id": call.id, "arguments": arguments}
    return step(index, {**start, "arguments": {}}, [delta], True)
