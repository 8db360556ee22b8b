"""Mistral conversations: messages, calls that nothing closes, executions and handoffs that close."""

from __future__ import annotations

from typing import Any

from tests.proof.conversations.parts import (
    NAMES,
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

CONNECTORS = ("web_search", "code_interpreter", "image_generation", "document_library", "my_mcp")


def mistral_conversations(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    makers = (message, call, call, call, execution, execution, handoff)
    tracks = [
        dice.choice(makers)(dice, {"created_at": "2026-01-01T08:00:00Z", "output_index": n}, said)
        for n in range(dice.randint(1, 4))
    ]
    opening = {"type": "conversation.response.started", "conversation_id": ident(dice, "conv_")}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    frames = [
        typed(opening),
        *merged(dice, tracks, 0.3),
        typed({"type": "conversation.response.done", "usage": usage}, True),
    ]
    if dice.random() < 0.1:
        frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said


def message(dice: Dice, at: dict[str, Any], said: list[Said]) -> list[Frame]:
    base = {"id": ident(dice, "entry_"), "content_index": 0, "model": "m", "role": "assistant"}
    contents: list[Any] = list(fragments(dice, prose(dice)))
    if dice.random() < 0.2:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": prose(dice)}]}
        contents.insert(0, thought)
    if dice.random() < 0.2:
        contents.append({"type": "tool_reference", "tool": "web_search", "title": prose(dice)})
    return [typed({"type": "message.output.delta", **at, **base, "content": c}) for c in contents]


def call(dice: Dice, at: dict[str, Any], said: list[Said]) -> list[Frame]:
    """Each piece says whose it is; nothing says that it was the last."""
    made = client_call(dice, "")
    base = {"id": ident(dice, "entry_"), "model": "m", "name": made.name, "tool_call_id": made.id}
    if dice.random() < 0.3:
        base["agent_id"] = "ag_1"
    if dice.random() < 0.1:
        base["confirmation_status"], made.runs_on = "pending", "provider"
    said.append(Said(made.id, made.name, made.arguments, made.runs_on))
    pieces = fragments(dice, made.text) or [""]
    return [
        typed({"type": "function.call.delta", **at, **base, "arguments": p}, True) for p in pieces
    ]


def execution(dice: Dice, at: dict[str, Any], said: list[Said]) -> list[Frame]:
    """What the provider runs: its arguments at once, or in pieces; then what came out."""
    made = client_call(dice, "")
    base = {"id": ident(dice, "entry_"), "name": dice.choice((*CONNECTORS, *NAMES[:2]))}
    said.append(Said(base["id"], base["name"], made.arguments, "provider", conflated=True))
    first, *rest = fragments(dice, made.text) or [""]
    done: dict[str, Any] = {"type": "tool.execution.done", **at, **base}
    if dice.random() < 0.7:
        done["info"] = {"output": prose(dice)}
    return [
        typed({"type": "tool.execution.started", **at, **base, "arguments": first}, True),
        *(
            typed({"type": "tool.execution.delta", **at, **base, "arguments": p}, True)
            for p in rest
        ),
        typed(done, True),
    ]


def handoff(dice: Dice, at: dict[str, Any], said: list[Said]) -> list[Frame]:
    """From one agent to another; one that the client is to make has only a beginning."""
    base = {"id": ident(dice, "entry_")}
    before = {"previous_agent_id": ident(dice, "ag_"), "previous_agent_name": dice.choice(NAMES)}
    after = {"next_agent_id": ident(dice, "ag_"), "next_agent_name": dice.choice(NAMES)}
    frames = [typed({"type": "agent.handoff.started", **at, **base, **before}, True)]
    told = dict(before)
    if dice.random() < 0.8:
        frames.append(typed({"type": "agent.handoff.done", **at, **base, **after}, True))
        told |= after
    said.append(Said(base["id"], "agent.handoff", told, "provider", conflated=True))
    return frames
