"""Mistral chat: calls in pieces, or all of them whole beside the finish."""

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
)
from tests.proof.talk import Frame, Raw, Said


def mistral(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    envelope = {
        "id": ident(dice, ""),
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }

    def chunk(delta: dict[str, Any], finish: str | None = None, about: bool = False) -> Frame:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return Frame({**envelope, "choices": [choice]}, "", about)

    frames = [chunk({"role": "assistant", "content": ""})]
    if dice.random() < 0.3:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": prose(dice)}]}
        frames.append(chunk({"content": [thinking]}))
    if dice.random() < 0.4:
        frames += [chunk({"content": p}) for p in fragments(dice, prose(dice))]
    calls = [client_call(dice, "") for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    together = dice.random() < 0.5  # all whole, in the chunk that also says the finish
    tracks: list[list[Frame]] = []
    entries = []
    for index, call in enumerate(calls):
        as_object = dice.random() < 0.15
        text: Any = call.arguments if as_object else call.text or "{}"
        said.append(Said(call.id, call.name, call.arguments))
        whole = {"id": call.id, "index": index, "function": {"name": call.name, "arguments": text}}
        entries.append(whole)
        if as_object or dice.random() < 0.5:
            tracks.append([chunk({"tool_calls": [whole]}, about=True)])
            continue
        first, *rest = fragments(dice, text) or [""]
        pieces = [{**whole, "function": {"name": call.name, "arguments": first}}]
        pieces += [
            {"id": "null", "index": index, "function": {"name": "", "arguments": p}} for p in rest
        ]
        tracks.append([chunk({"tool_calls": [p]}, about=True) for p in pieces])
    word = "tool_calls" if calls else "stop"
    if calls and together:
        frames.append(chunk({"tool_calls": entries}, word, True))
    else:
        frames += [*merged(dice, tracks, 0.2), chunk({"content": ""}, word, bool(calls))]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    frames[-1] = frames[-1]._replace(payload={**frames[-1].payload, "usage": usage})
    frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said
