"""The judge: a workload and what somebody understood of it in, what is wrong with that out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from bench.workloads import Call, Workload

__all__ = ["Heard", "judge"]

MOST = 3


@dataclass
class Heard:
    """What somebody understood of a stream. ``calls`` are (id, name, arguments as text or dict)."""

    text: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    end: str = "finish"


def judge(workload: Workload, heard: Heard) -> list[str]:
    """What is wrong with what was heard; an empty list is a pass."""
    wrong = []
    if heard.end != "finish":
        wrong.append(f"the stream ended with {heard.end}")
    if heard.text != workload.text:
        wrong.append(f"{len(heard.text)} characters of text instead of {len(workload.text)}")
    if len(heard.calls) != len(workload.calls):
        wrong.append(f"{len(heard.calls)} calls instead of {len(workload.calls)}")
    for heard_call, call in zip(heard.calls, workload.calls, strict=False):
        wrong += _judge_call(workload.wire, heard_call, call)
    return wrong if len(wrong) <= MOST else [*wrong[:MOST], f"and {len(wrong) - MOST} more"]


def _judge_call(wire: str, heard: tuple[str, str, Any], call: Call) -> list[str]:
    """Argument text has to be the wire's own, to the byte; Gemini sends objects instead."""
    call_id, name, arguments = heard
    wrong = []
    if call.id and call_id != call.id:
        wrong.append(f"id {call_id!r} instead of {call.id!r}")
    if name != call.name:
        wrong.append(f"name {name!r} instead of {call.name!r}")
    if wire == "gemini" and isinstance(arguments, str):
        arguments = json.loads(arguments)
    if arguments != (call.arguments if isinstance(arguments, str) else json.loads(call.arguments)):
        wrong.append(f"the arguments of {call.id or call.name} differ")
    return wrong
