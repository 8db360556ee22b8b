"""DashScope's own generation wire: texts and arguments in pieces, or whole with every event."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from tests.proof.conversations.parts import (
    Called,
    Dice,
    client_call,
    comments,
    fragments,
    ident,
    prose,
    sprinkled,
)
from tests.proof.talk import Frame, Said


def dashscope(dice: Dice) -> tuple[list[Frame], list[Said]]:
    calls = [client_call(dice, "call_") for _ in range(dice.choice((0, 1, 1, 1, 2, 3)))]
    said = [Said(c.id, c.name, c.arguments) for c in calls]
    word = "tool_calls" if calls else "stop"
    steps = in_pieces(dice, calls, word) if dice.random() < 0.5 else all_again(dice, calls, word)
    about = {"request_id": ident(dice, "")}
    frames = []
    for number, (message, finish) in enumerate(steps, 1):
        whole = {"role": "assistant", "content": "", **message}
        output = {"choices": [{"message": whole, "finish_reason": finish}]}
        usage = {"input_tokens": 9, "output_tokens": number, "total_tokens": 9 + number}
        told = bool(message.get("tool_calls")) or (bool(calls) and finish != "null")
        frames.append(Frame({"output": output, "usage": usage, **about}, "result", told, number))
    if dice.random() < 0.25:  # a relay may leave the numbers out
        frames = [frame._replace(number=None) for frame in frames]
    return sprinkled(dice, frames, comments(dice)), said


def entry(index: int, call: Called, text: str, first: bool = True) -> dict[str, Any]:
    return {
        "index": index, "id": call.id if first else "", "type": "function",
        "function": {"name": call.name if first else "", "arguments": text},
    }  # fmt: skip


def in_pieces(dice: Dice, calls: list[Called], word: str) -> list[tuple[dict[str, Any], str]]:
    """``incremental_output``: each event has what is new; only the first entry names its call."""
    steps: list[tuple[dict[str, Any], str]] = []
    if dice.random() < 0.2:
        steps += [({"reasoning_content": p}, "null") for p in fragments(dice, prose(dice))]
    if dice.random() < 0.4 or not calls:
        steps += [({"content": p}, "null") for p in fragments(dice, prose(dice))]
    for index, call in enumerate(calls):
        pieces = fragments(dice, call.text) or [""]
        steps += [
            ({"tool_calls": [entry(index, call, p, not n)]}, "null") for n, p in enumerate(pieces)
        ]
    if calls and dice.random() < 0.2:  # the finish stands on the last piece itself
        return [*steps[:-1], (steps[-1][0], word)]
    return [*steps, ({}, word)]


def all_again(dice: Dice, calls: list[Called], word: str) -> list[tuple[dict[str, Any], str]]:
    """Each event has all that was said so far."""
    steps: list[tuple[dict[str, Any], str]] = []
    text: dict[str, Any] = {}
    if dice.random() < 0.4 or not calls:
        for whole in accumulate(fragments(dice, prose(dice), halves=False)):
            text = {"content": whole}
            steps.append((text, "null"))
    before: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        for whole in list(accumulate(fragments(dice, call.text, halves=False))) or [""]:
            told = [*before, entry(index, call, whole)]
            steps.append(({**text, "tool_calls": told}, "null"))
        before = [*before, entry(index, call, call.text)]
    last = {**text, "tool_calls": before} if before else text
    return [*steps, (last, word)]
