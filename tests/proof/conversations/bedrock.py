"""Bedrock ConverseStream: blocks of one index."""

from __future__ import annotations

from typing import Any

from tests.proof.conversations.parts import Dice, client_call, fragments, merged, prose
from tests.proof.talk import Frame, Said


def bedrock(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []

    def event(kind: str, payload: dict[str, Any], about: bool = False) -> Frame:
        padded = {**payload, "p": "abcdefgh"} if dice.random() < 0.3 else payload
        return Frame(padded, kind, about)

    for index in range(dice.randint(1, 4)):
        at = {"contentBlockIndex": index}
        stop = event("contentBlockStop", at, True)
        if dice.random() < 0.3:
            kind = dice.choice(("text", "reasoningContent"))
            pieces = fragments(dice, prose(dice))
            deltas = [{"text": p} if kind == "text" else {kind: {"text": p}} for p in pieces]
            tracks.append([*(event("contentBlockDelta", {"delta": d, **at}) for d in deltas), stop])
            continue
        call = client_call(dice, "tooluse_")
        use: dict[str, Any] = {"toolUseId": call.id, "name": call.name}
        if dice.random() < 0.15:
            use["type"], call.runs_on = "server_tool_use", "provider"
        said.append(Said(call.id, call.name, call.arguments, call.runs_on))
        tracks.append([
            event("contentBlockStart", {"start": {"toolUse": use}, **at}, True),
            *(event("contentBlockDelta", {"delta": {"toolUse": {"input": p}}, **at}, True)
              for p in fragments(dice, call.text)),
            stop,
        ])  # fmt: skip
    client = any(s.runs_on == "client" for s in said)
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    return [
        event("messageStart", {"role": "assistant"}),
        *merged(dice, tracks, 0.2),
        event("messageStop", {"stopReason": "tool_use" if client else "end_turn"}),
        event("metadata", {"usage": usage, "metrics": {"latencyMs": 5}}),
    ], said
