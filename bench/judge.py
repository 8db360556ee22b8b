"""The judge: a workload and what somebody understood of it in, what is wrong with that out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from bench.workloads import Call, Workload

__all__ = ["Heard", "judge", "judge_take", "parsed"]

MOST = 3


@dataclass
class Heard:
    """What somebody understood of a stream. ``calls`` are (id, name, arguments as text or dict).

    ``recording`` is what a summary says of it, empty if nothing; None if none was to be made.
    """

    text: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    end: str = "finish"
    recording: dict[str, Any] | None = None


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
    if heard.recording is not None:
        wrong += judge_take(workload, **heard.recording)
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
        arguments = parsed(arguments)
    if arguments != (call.arguments if isinstance(arguments, str) else json.loads(call.arguments)):
        wrong.append(f"the arguments of {call.id or call.name} differ")
    return wrong


def parsed(text: str) -> Any:
    """The JSON value in a text; None if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def judge_take(workload: Workload, path: str = "", failed: str | None = None) -> list[str]:
    """What is wrong with a recording: it has to be finished, and to read back to the body."""
    from streamnorm import read_take  # here: peers are judged where it is not installed
    from streamnorm.errors import RecordingError

    if failed is not None:
        return [f"the recording failed: {failed}"]
    if not path:
        return ["nothing was recorded"]
    try:
        take = read_take(path)
    except RecordingError as error:
        return [f"the take cannot be read: {error.__cause__ or error}"]
    wrong = [] if take.finished else ["the take is not finished"]
    if take.wire != workload.body:
        wrong.append(
            f"the take reads back to {len(take.wire)} bytes instead of {len(workload.body)},"
            " or to others"
        )
    return wrong
