"""Cohere v2: calls started, filled and ended."""

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


def cohere(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []

    def event(
        kind: str, message: dict[str, Any] | None, index: int | None, about: bool = False
    ) -> Frame:
        payload: dict[str, Any] = {"type": kind}
        payload |= {} if index is None else {"index": index}
        payload |= {} if message is None else {"delta": {"message": message}}
        return typed(payload, about)

    start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    opening = {"type": "message-start", "id": ident(dice, ""), "delta": {"message": start}}
    tracks: list[list[Frame]] = []
    frames = [typed(opening)]
    if dice.random() < 0.4:
        plan = fragments(dice, prose(dice))
        frames += [event("tool-plan-delta", {"tool_plan": p}, None) for p in plan]
    for index in range(dice.choice((0, 1, 1, 2, 3))):
        call = client_call(dice, "")
        pieces = fragments(dice, call.text)
        first = pieces.pop(0) if pieces and dice.random() < 0.2 else ""
        entry = {"id": call.id, "type": "function",
                 "function": {"name": call.name, "arguments": first}}  # fmt: skip
        tracks.append([
            event("tool-call-start", {"tool_calls": entry}, index, True),
            *(event("tool-call-delta", {"tool_calls": {"function": {"arguments": p}}}, index, True)
              for p in pieces),
            event("tool-call-end", None, index, True),
        ])  # fmt: skip
        said.append(Said(call.id, call.name, call.arguments))
    if not tracks or dice.random() < 0.3:
        content: dict[str, Any] = {"type": "text", "text": ""}
        tracks.append([
            event("content-start", {"content": content}, 0),
            *(event("content-delta", {"content": {"text": p}}, 0) for p in fragments(dice, prose(dice))),
            event("content-end", None, 0),
        ])  # fmt: skip
    frames += merged(dice, tracks, 0.2)
    usage = {"tokens": {"input_tokens": 5, "output_tokens": 6}}
    ending = {"finish_reason": "TOOL_CALL" if said else "COMPLETE", "usage": usage}
    frames.append(typed({"type": "message-end", "delta": ending}))
    if dice.random() < 0.3:
        frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said
