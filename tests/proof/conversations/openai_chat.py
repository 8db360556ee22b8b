"""OpenAI Chat Completions: entries of one index, in one or several choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.proof.conversations.parts import (
    Called,
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


def openai_chat(dice: Dice) -> tuple[list[Frame], list[Said]]:
    envelope = {"id": ident(dice, "chatcmpl-"), "object": "chat.completion.chunk",
                "created": 1700000000, "model": "gpt-x"}  # fmt: skip
    if dice.random() < 0.3:
        envelope["system_fingerprint"] = "fp_1"
    count = dice.choice((1, 1, 1, 1, 1, 2, 3))
    said: list[Said] = []
    usage_everywhere = dice.random() < 0.2
    tracks = [chat_choice(dice, number, said) for number in range(count)]

    def chunk(choices: list[dict[str, Any]], about: bool, usage: Any = None) -> Frame:
        payload: dict[str, Any] = {**envelope, "choices": choices}
        if usage is not None or usage_everywhere:
            payload["usage"] = usage
        return Frame(payload, "", about)

    entries = merged(dice, tracks, 0.7 if count > 1 else 0.0)
    frames = [chunk([f.payload], f.about) for f in entries]
    counts = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
    where = dice.random()
    if where < 0.4:
        frames.append(chunk([], False, counts))
    elif where < 0.6:
        last = frames[-1]
        frames[-1] = Frame({**last.payload, "usage": counts}, "", last.about)
    if dice.random() < 0.9:
        frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said


def chat_choice(dice: Dice, number: int, said: list[Said]) -> list[Frame]:
    def delta(what: dict[str, Any], about: bool = False, finish: str | None = None) -> Frame:
        entry: dict[str, Any] = {"index": number, "delta": what, "finish_reason": finish}
        return Frame(entry, "", about)

    frames = [delta({"role": "assistant", "content": dice.choice(("", None))})]
    if dice.random() < 0.2:
        field = dice.choice(("reasoning_content", "reasoning"))
        frames += [delta({field: p}) for p in fragments(dice, prose(dice))]
    if dice.random() < 0.4:
        frames += [delta({"content": p}) for p in fragments(dice, prose(dice))]
    calls = [client_call(dice, "call_") for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    tracks = [chat_call(dice, index, call, delta) for index, call in enumerate(calls)]
    frames += merged(dice, tracks, 0.3)
    said += [Said(c.id, c.name, c.arguments, "client", number) for c in calls]
    word = dice.choice(("tool_calls", "tool_calls", "stop")) if calls else "stop"
    if calls and dice.random() < 0.15:  # the finish stands on the last piece itself
        last = frames[-1].payload
        frames[-1] = Frame({**last, "finish_reason": word}, "", True)
    else:
        frames.append(delta({}, True, word))
    return frames


def chat_call(dice: Dice, index: int, call: Called, delta: Callable[..., Frame]) -> list[Frame]:
    if dice.random() < 0.12:  # a tool whose input is plain text
        call.text = prose(dice) or "x"
        call.key, call.arguments = "input", {"input": call.text}
    kind, field = ("custom", "input") if call.key else ("function", "arguments")
    pieces = fragments(dice, call.text)
    first = pieces.pop(0) if pieces and dice.random() < 0.4 else ""
    start = {"index": index, "id": call.id, "type": kind, kind: {"name": call.name, field: first}}
    always = {"type": kind} if dice.random() < 0.2 else {}
    rest = [{"index": index, **always, kind: {field: p}} for p in pieces]
    return [delta({"tool_calls": [entry]}, True) for entry in (start, *rest)]
