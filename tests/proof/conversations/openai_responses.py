"""OpenAI Responses: items, added, filled, stated again and done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
from tests.proof.talk import Frame, Said


def openai_responses(dice: Dice) -> tuple[list[Frame], list[Said]]:
    return responses(dice, RESPONSES_CALLS)


def responses(
    dice: Dice, makers: tuple[Callable[[Dice, list[Said]], Item], ...]
) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []
    output: list[dict[str, Any]] = []
    for _ in range(dice.randint(1, 4)):
        roll = dice.random()
        if roll < 0.15:
            item = text_item(dice)
        elif roll < 0.25:
            item = reasoning_item(dice)
        else:
            item = dice.choice(makers)(dice, said)
        tracks.append(item_frames(dice, item, len(output)))
        output.append(item.done)
    response = {"id": ident(dice, "resp_"), "object": "response", "model": "gpt-x",
                "status": "in_progress", "output": []}  # fmt: skip
    usage = {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}
    final = {**response, "status": "completed", "usage": usage,
             "output": output if dice.random() < 0.8 else []}  # fmt: skip
    frames = [
        typed({"type": "response.created", "response": response}),
        typed({"type": "response.in_progress", "response": response}),
        *merged(dice, tracks, 0.3),
        typed({"type": "response.completed", "response": final}),
    ]
    if dice.random() < 0.8:
        frames = [
            f._replace(payload={**f.payload, "sequence_number": n}) for n, f in enumerate(frames)
        ]
    return sprinkled(dice, frames, comments(dice)), said


@dataclass
class Item:
    """An item as it is added, the events between, and as it is done."""

    added: dict[str, Any]
    done: dict[str, Any]
    between: list[dict[str, Any]] = field(default_factory=list)
    about: bool = True


def item_frames(dice: Dice, item: Item, index: int) -> list[Frame]:
    where = {"output_index": index, "item_id": item.done.get("id", "")}
    events = [
        {"type": "response.output_item.added", "output_index": index, "item": item.added},
        *({"type": e["type"], **where, **e} for e in item.between),
        {"type": "response.output_item.done", "output_index": index, "item": item.done},
    ]
    return [typed(event, item.about) for event in events]


def text_item(dice: Dice) -> Item:
    text = prose(dice)
    part = {"type": "output_text", "text": text, "annotations": []}
    base = {"id": ident(dice, "msg_"), "type": "message", "role": "assistant"}
    at = {"content_index": 0}
    between = [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": p} for p in fragments(dice, text)),
        {"type": "response.output_text.done", **at, "text": text},
        {"type": "response.content_part.done", **at, "part": part},
    ]
    added = {**base, "status": "in_progress", "content": []}
    return Item(added, {**base, "status": "completed", "content": [part]}, between, False)


def reasoning_item(dice: Dice) -> Item:
    base = {"id": ident(dice, "rs_"), "type": "reasoning"}
    text = prose(dice)
    between = [
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": p}
        for p in fragments(dice, text)
    ]
    done = {**base, "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "x"}
    return Item({**base, "summary": []}, done, between, False)


def said_text(
    dice: Dice, stem: str, field: str, text: str, name: str | None = None
) -> list[dict[str, Any]]:
    """Fragments of a text and the whole of it again."""
    pieces = fragments(dice, text) if dice.random() < 0.9 else []
    events: list[dict[str, Any]] = [{"type": f"{stem}.delta", "delta": p} for p in pieces]
    done: dict[str, Any] = {"type": f"{stem}.done", field: text}
    if name is not None and dice.random() < 0.4:
        done["name"] = name
    return [*events, done] if dice.random() < 0.9 else events


def function_item(dice: Dice, said: list[Said]) -> Item:
    call = client_call(dice, "call_")
    base = {
        "id": ident(dice, "fc_"),
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
    }
    said.append(Said(call.id, call.name, call.arguments))
    between = said_text(dice, "response.function_call_arguments", "arguments", call.text, call.name)
    added = {**base, "arguments": "", "status": "in_progress"}
    return Item(added, {**base, "arguments": call.text, "status": "completed"}, between)


def custom_item(dice: Dice, said: list[Said]) -> Item:
    text, id = prose(dice), ident(dice, "call_")
    name = dice.choice(NAMES)
    base = {"id": ident(dice, "ctc_"), "type": "custom_tool_call", "call_id": id, "name": name}
    said.append(Said(id, name, {"input": text}))
    between = said_text(dice, "response.custom_tool_call_input", "input", text)
    added = {**base, "input": "", "status": "in_progress"}
    return Item(added, {**base, "input": text, "status": "completed"}, between)


def mcp_item(dice: Dice, said: list[Said]) -> Item:
    call, id = client_call(dice, ""), ident(dice, "mcp_")
    base = {"id": id, "type": "mcp_call", "name": call.name, "server_label": "docs"}
    text = call.text or "{}"
    said.append(Said(id, call.name, call.arguments, "provider", conflated=True))
    between = [
        {"type": "response.mcp_call.in_progress"},
        *said_text(dice, "response.mcp_call_arguments", "arguments", text),
        {"type": "response.mcp_call.completed"},
    ]
    done = {**base, "arguments": text, "status": "completed", "output": prose(dice), "error": None}
    return Item({**base, "arguments": "", "status": "in_progress"}, done, between)


def code_item(dice: Dice, said: list[Said]) -> Item:
    text, id = prose(dice), ident(dice, "ci_")
    base = {"id": id, "type": "code_interpreter_call", "container_id": "cntr_1"}
    said.append(Said(id, "code_interpreter", {"code": text}, "provider", conflated=True))
    between = [
        {"type": "response.code_interpreter_call.in_progress"},
        *said_text(dice, "response.code_interpreter_call_code", "code", text),
        {"type": "response.code_interpreter_call.interpreting"},
        {"type": "response.code_interpreter_call.completed"},
    ]
    done = {**base, "code": text, "outputs": [{"type": "logs", "logs": "1"}], "status": "completed"}
    return Item({**base, "code": "", "outputs": None, "status": "in_progress"}, done, between)


def search_item(dice: Dice, said: list[Said]) -> Item:
    id, action = ident(dice, "ws_"), {"type": "search", "query": prose(dice)}
    base = {"id": id, "type": "web_search_call"}
    said.append(Said(id, "web_search", action, "provider", conflated=True))
    between = [
        {"type": f"response.web_search_call.{s}"} for s in ("in_progress", "searching", "completed")
    ]
    added = {**base, "status": "in_progress", "action": action}
    return Item(added, {**base, "status": "completed", "action": action}, between)


def file_search_item(dice: Dice, said: list[Said]) -> Item:
    id, queries = ident(dice, "fs_"), [prose(dice)]
    base = {"id": id, "type": "file_search_call", "queries": queries}
    said.append(Said(id, "file_search", {"queries": queries}, "provider", conflated=True))
    between = [
        {"type": f"response.file_search_call.{s}"}
        for s in ("in_progress", "searching", "completed")
    ]
    added = {**base, "queries": [], "status": "in_progress", "results": None}
    return Item(added, {**base, "status": "completed", "results": []}, between)


def shell_item(dice: Dice, said: list[Said]) -> Item:
    kind, name, field, action = dice.choice((
        ("local_shell_call", "local_shell", "action", {"type": "exec", "command": ["ls", prose(dice)]}),
        ("shell_call", "shell", "action", {"commands": [prose(dice)], "timeout_ms": 1000}),
        ("apply_patch_call", "apply_patch", "operation",
         {"type": "update_file", "path": "a.py", "diff": prose(dice)}),
        ("computer_call", "computer_use", "action", {"type": "click", "x": 1, "y": 2}),
    ))  # fmt: skip
    id = ident(dice, "call_")
    base = {"id": ident(dice, "it_"), "type": kind, "call_id": id, field: action}
    said.append(Said(id, name, action))
    return Item({**base, "status": "in_progress"}, {**base, "status": "completed"})


RESPONSES_CALLS = (
    function_item, function_item, function_item, function_item, custom_item, custom_item, mcp_item,
    code_item, search_item, file_search_item, shell_item,
)  # fmt: skip
