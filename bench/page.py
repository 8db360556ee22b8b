"""What a page is told: the server-sent events of an encoder in, what they say out.

Rule: only the JSON of the ``data:`` lines is read, by the names that the protocols use, and with
nothing of ours; so what an encoder lost or changed is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.judge import Heard, judge, parsed
from bench.workloads import Workload

__all__ = ["PROTOCOLS", "Protocol", "check", "hear"]


@dataclass(frozen=True)
class Protocol:
    """How one says it: ``kind`` is the key that names an item, ``key`` the one that names its call.

    The others are an item and its keys: a piece of text, a call's beginning (its id and name), a
    piece of its arguments, and its end, with the arguments again or None. ``last`` are the last two.
    """

    kind: str
    key: str
    text: tuple[str, str]
    start: tuple[str, str, str]
    piece: tuple[str, str]
    whole: tuple[str, str | None]
    last: tuple[Any, Any]


PROTOCOLS = {
    "AI SDK": Protocol(
        "type",
        "toolCallId",
        text=("text-delta", "delta"),
        start=("tool-input-start", "toolCallId", "toolName"),
        piece=("tool-input-delta", "inputTextDelta"),
        whole=("tool-input-available", "input"),
        last=("finish", "[DONE]"),
    ),
    "AG-UI": Protocol(
        "type",
        "toolCallId",
        text=("TEXT_MESSAGE_CONTENT", "delta"),
        start=("TOOL_CALL_START", "toolCallId", "toolCallName"),
        piece=("TOOL_CALL_ARGS", "delta"),
        whole=("TOOL_CALL_END", None),
        last=("STEP_FINISHED", "RUN_FINISHED"),
    ),
    "plain": Protocol(
        "kind",
        "call",
        text=("text_delta", "text"),
        start=("tool_call_start", "id", "name"),
        piece=("tool_call_delta", "text"),
        whole=("tool_call", "arguments"),
        last=("finish", "end"),
    ),
}


def check(name: str, workload: Workload, told: bytes) -> list[str]:
    """What is wrong with what an encoder told of a workload."""
    heard, wrong = hear(PROTOCOLS[name], told)
    return judge(workload, heard) + wrong


def hear(protocol: Protocol, told: bytes) -> tuple[Heard, list[str]]:
    """What a page understands, and where it is told two things."""
    items = [_item(protocol, line) for line in told.decode().split("\n") if line]
    text: list[str] = []
    open_calls: dict[Any, tuple[str, str, list[str]]] = {}
    calls: list[tuple[str, str, Any]] = []
    wrong: list[str] = []
    for item in items:
        kind, key = item[protocol.kind], item.get(protocol.key)
        if kind == protocol.text[0]:
            text.append(item[protocol.text[1]])
        elif kind == protocol.start[0]:
            open_calls[key] = (item[protocol.start[1]], item[protocol.start[2]], [])
        elif kind == protocol.piece[0]:
            open_calls.setdefault(key, ("", "", []))[2].append(item[protocol.piece[1]])
        elif kind == protocol.whole[0]:
            call_id, name, pieces = open_calls.pop(key, ("", "", []))
            calls.append((call_id, name, "".join(pieces)))
            again = protocol.whole[1]
            if again is not None and item[again] != parsed("".join(pieces)):
                wrong.append(f"the arguments of {call_id} are not those of its pieces")
    end = tuple(item[protocol.kind] for item in items[-2:])
    return Heard("".join(text), calls, "finish" if end == protocol.last else str(end)), wrong


def _item(protocol: Protocol, line: str) -> dict[str, Any]:
    """One line; what is no object (``[DONE]``) is an item of that kind."""
    item = parsed(line.removeprefix("data: "))
    return item if isinstance(item, dict) else {protocol.kind: line.removeprefix("data: ")}
