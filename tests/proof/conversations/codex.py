"""Codex: turns of items, printed as they start, change and are completed, or saved in a rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.proof.conversations.openai_responses import (
    custom_item,
    function_item,
    search_item,
    shell_item,
)
from tests.proof.conversations.parts import Dice, client_call, ident, merged, prose, sprinkled
from tests.proof.talk import Frame, Said

Item = dict[str, Any]


def codex(dice: Dice) -> tuple[list[Frame], list[Said]]:
    return printed(dice) if dice.random() < 0.6 else saved(dice)


# --- standard output ------------------------------------------------------------------------------


def printed(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    frames = [Frame({"type": "thread.started", "thread_id": ident(dice, "th_")})]
    number = 0
    for _ in range(dice.choice((1, 1, 1, 2))):
        tracks = []
        for _ in range(dice.randint(1, 4)):
            maker = dice.choice(
                (text, command, command, command, mcp, mcp, change, search, plan, asked)
            )
            tracks.append(maker(dice, {"id": f"item_{number}"}, said))
            number += 1
        usage = {"input_tokens": 5, "output_tokens": 6, "cached_input_tokens": 0}
        frames += [
            Frame({"type": "turn.started"}),
            *merged(dice, tracks, 0.3),
            Frame({"type": "turn.completed", "usage": usage}),
        ]
    warning = {"type": "item.completed", "item": {"id": "item_w", "type": "error", "message": "x"}}
    return sprinkled(dice, frames, [Frame(warning)] * dice.choice((0, 0, 0, 1))), said


def line(kind: str, *parts: Item, about: bool = True) -> Frame:
    item: Item = {}
    for part in parts:
        item |= part
    return Frame({"type": f"item.{kind}", "item": item}, "", about)


def text(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    kind = dice.choice(("agent_message", "reasoning"))
    return [line("completed", base, {"type": kind, "text": prose(dice)}, about=False)]


def told(base: Item, name: str, arguments: Item) -> Said:
    return Said(base["id"], name, arguments, "provider", conflated=True)


def command(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    """A command is said when it starts; what came out, when it is completed."""
    base = {**base, "type": "command_execution", "command": f"bash -lc '{prose(dice)}'"}
    said.append(told(base, "command_execution", {"command": base["command"]}))
    running = {"aggregated_output": "", "exit_code": None, "status": "in_progress"}
    code = dice.choice((0, 0, 3))
    over = {"aggregated_output": prose(dice), "exit_code": code,
            "status": "failed" if code else "completed"}  # fmt: skip
    return begun(dice, base, running, over)


def begun(dice: Dice, base: Item, running: Item, over: Item) -> list[Frame]:
    """Started, perhaps changed, and completed; some are completed only."""
    frames = [line("completed", base, over)]
    if dice.random() < 0.2:
        frames.insert(0, line("updated", base, running))
    return [line("started", base, running), *frames] if dice.random() < 0.85 else frames


def mcp(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    call = client_call(dice, "")
    base = {**base, "type": "mcp_tool_call", "server": "docs", "tool": call.name,
            "arguments": call.arguments}  # fmt: skip
    said.append(told(base, call.name, call.arguments))
    result = {"content": [{"type": "text", "text": prose(dice)}], "structured_content": None}
    running = {"result": None, "error": None, "status": "in_progress"}
    return begun(dice, base, running, {"result": result, "error": None, "status": "completed"})


def change(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    changes = [{"path": prose(dice), "kind": dice.choice(("add", "update", "delete"))}]
    base = {**base, "type": "file_change", "changes": changes}
    said.append(told(base, "file_change", {"changes": changes}))
    return begun(dice, base, {"status": "in_progress"}, {"status": "completed"})


def search(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    """It says what it searches for only when it is completed."""
    base = {**base, "type": "web_search"}
    arguments: Item = {"query": prose(dice) or "x"}
    if dice.random() < 0.5:
        arguments["action"] = {"type": "search", "query": arguments["query"]}
    said.append(told(base, "web_search", arguments))
    return [line("started", base, {"query": ""}), line("completed", base, arguments)]


def plan(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    """It is told as it is in the end."""
    base = {**base, "type": "todo_list"}
    items = [{"text": prose(dice), "completed": False} for _ in range(dice.randint(1, 2))]
    done = [{**item, "completed": True} for item in items]
    said.append(told(base, "todo_list", {"items": done}))
    return [
        line("started", base, {"items": items}),
        *(line("updated", base, {"items": items}) for _ in range(dice.choice((0, 1)))),
        line("completed", base, {"items": done}),
    ]


def asked(dice: Dice, base: Item, said: list[Said]) -> list[Frame]:
    """Another agent is asked: it may have no thread yet."""
    own = {
        "sender_thread_id": "th_1",
        "receiver_thread_ids": ["th_2"],
        "prompt": prose(dice) or "x",
    }
    name = dice.choice(("spawn_agent", "send_input"))
    base = {**base, "type": "collab_tool_call", "tool": name, **own}
    said.append(told(base, name, own))
    states = {"th_2": {"status": "completed", "message": prose(dice)}}
    running = {"agents_states": {}, "status": "in_progress"}
    return begun(dice, base, running, {"agents_states": states, "status": "completed"})


# --- rollouts -------------------------------------------------------------------------------------

OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def saved(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    frames: list[Frame] = [saying("session_meta", {"id": ident(dice, ""), "cwd": "/"})]
    for _ in range(dice.choice((1, 1, 1, 2))):
        turn = {"turn_id": ident(dice, "turn_")}
        question = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "x"}],
        }
        frames += [
            saying("event_msg", {"type": "task_started", **turn}),
            saying("turn_context", {**turn, "model": "gpt-x"}),
            saying("response_item", question),
            *(f for _ in range(dice.randint(1, 4)) for f in rollout_item(dice, said)),
            saying("event_msg", {"type": "task_complete", **turn, "last_agent_message": "x"}),
        ]
    if dice.random() < 0.6:
        frames = [f._replace(payload={"ordinal": n, **f.payload}) for n, f in enumerate(frames)]
    own = saying("event_msg", {"type": "item_completed", "item": {"type": "AgentMessage"}})
    return sprinkled(dice, frames, [own] * dice.choice((0, 0, 1))), said


def saying(kind: str, payload: Item, about: bool = False) -> Frame:
    return Frame({"type": kind, "payload": payload}, "", about)


def rollout_item(dice: Dice, said: list[Said]) -> list[Frame]:
    if dice.random() < 0.2:
        part = {"type": "output_text", "text": prose(dice)}
        message = {
            "type": "message",
            "id": ident(dice, "msg_"),
            "role": "assistant",
            "content": [part],
        }
        return [saying("response_item", message)]
    own: list[Said] = []
    makers: tuple[Callable[..., Any], ...] = (function_item, function_item, custom_item, shell_item,
                                              search_item)  # fmt: skip
    item = dice.choice(makers)(dice, own).done
    said += [replace(call, runs_on="provider") for call in own]
    if dice.random() < 0.3:
        item = {**item, "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    frames = [saying("response_item", item, True)]
    if item["type"] in OUTPUTS:
        output = {"type": OUTPUTS[item["type"]], "call_id": item["call_id"], "output": prose(dice)}
        frames.append(saying("response_item", output, True))
    return frames
