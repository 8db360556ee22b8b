"""Ollama's own API: whole calls, line by line."""

from __future__ import annotations

from typing import Any

from tests.proof.conversations.parts import Dice, client_call, fragments, prose
from tests.proof.talk import Frame, Said


def ollama(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    base = {"model": "llama-x", "created_at": "2025-01-01T00:00:00Z"}

    def line(message: dict[str, Any], about: bool = False) -> Frame:
        whole = {"role": "assistant", "content": "", **message}
        return Frame({**base, "message": whole, "done": False}, "", about)

    frames = []
    if dice.random() < 0.3:
        frames += [line({"thinking": p}) for p in fragments(dice, prose(dice))]
    if dice.random() < 0.5:
        frames += [line({"content": p}) for p in fragments(dice, prose(dice))]
    entries = []
    with_ids = dice.random() < 0.5
    for index in range(dice.choice((0, 1, 1, 2, 3))):
        call = client_call(dice, "call_")
        function: dict[str, Any] = {"name": call.name, "arguments": call.arguments}
        if dice.random() < 0.5:
            function = {"index": index, **function}
        entries.append(
            {"id": call.id, "function": function} if with_ids else {"function": function}
        )
        said.append(Said(call.id if with_ids else None, call.name, call.arguments))
    if entries and dice.random() < 0.5:
        frames.append(line({"tool_calls": entries}, True))
    else:
        frames += [line({"tool_calls": [entry]}, True) for entry in entries]
    counts = {"total_duration": 5, "prompt_eval_count": 6, "eval_count": 7}
    last = {"role": "assistant", "content": ""}
    frames.append(Frame({**base, "message": last, "done": True, "done_reason": "stop", **counts}))
    return frames, said
