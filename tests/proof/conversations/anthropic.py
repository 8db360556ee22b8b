"""Anthropic Messages: blocks of one index, started, filled and stopped."""

from __future__ import annotations

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
    typed,
)
from tests.proof.talk import Frame, Said


def anthropic(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []
    for _ in range(dice.randint(1, 4)):
        index = len(tracks)
        roll = dice.random()
        if roll < 0.2:
            tracks.append(anthropic_text(dice, index))
        elif roll < 0.3:
            tracks.append(anthropic_thinking(dice, index))
        elif roll < 0.45:
            tracks += anthropic_server(dice, index, said)
        else:
            call = client_call(dice, "toolu_")
            tracks.append(anthropic_call(dice, index, call))
            said.append(Said(call.id, call.name, call.arguments))
    usage = {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 0}
    start: dict[str, Any] = {
        "id": ident(dice, "msg_"), "type": "message", "role": "assistant", "model": "claude-x",
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    reason = "tool_use" if any(s.runs_on == "client" for s in said) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    frames = [
        typed({"type": "message_start", "message": start}),
        *merged(dice, tracks, 0.3),
        typed({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 33}}),
        typed({"type": "message_stop"}),
    ]
    pings = [typed({"type": "ping"})] * dice.choice((0, 0, 1, 2))
    return sprinkled(dice, frames, [*pings, *comments(dice)]), said


def block(
    index: int, what: dict[str, Any], deltas: list[dict[str, Any]], about: bool
) -> list[Frame]:
    return [
        typed({"type": "content_block_start", "index": index, "content_block": what}, about),
        *(typed({"type": "content_block_delta", "index": index, "delta": delta}, about)
          for delta in deltas),
        typed({"type": "content_block_stop", "index": index}, about),
    ]  # fmt: skip


def anthropic_text(dice: Dice, index: int) -> list[Frame]:
    deltas = [{"type": "text_delta", "text": p} for p in fragments(dice, prose(dice))]
    return block(index, {"type": "text", "text": ""}, deltas, False)


def anthropic_thinking(dice: Dice, index: int) -> list[Frame]:
    deltas = [{"type": "thinking_delta", "thinking": p} for p in fragments(dice, prose(dice))]
    deltas.append({"type": "signature_delta", "signature": "c2ln"})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas, False)


def anthropic_call(dice: Dice, index: int, call: Called, kind: str = "tool_use") -> list[Frame]:
    start: dict[str, Any] = {"type": kind, "id": call.id, "name": call.name, "input": {}}
    start |= call.extra
    pieces = fragments(dice, call.text)
    if call.arguments and dice.random() < 0.1:  # whole at once, as programmatic calls are
        start["input"], pieces = call.arguments, []
    deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces]
    return block(index, start, deltas, True)


def anthropic_server(dice: Dice, index: int, said: list[Said]) -> list[list[Frame]]:
    call = client_call(dice, "srvtoolu_")
    kind = dice.choice(("server_tool_use", "mcp_tool_use"))
    call.name = "web_search" if kind == "server_tool_use" else call.name
    call.extra = {"server_name": "docs"} if kind == "mcp_tool_use" else {}
    said.append(Said(call.id, call.name, call.arguments, "provider"))
    result = {
        "type": "web_search_tool_result" if kind == "server_tool_use" else "mcp_tool_result",
        "tool_use_id": call.id,
        "content": [{"type": "text", "text": prose(dice)}],
    }
    # a result follows its call: one track for both
    return [
        [*anthropic_call(dice, index, call, kind), *block(index + 1, result, [], False)],
        [],
    ]
