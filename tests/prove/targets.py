"""What bytes that somebody makes up are given to: each target takes any bytes and raises if a promise breaks.

Rule: only our own errors may leave the library, and what a target checks beside that is said in its first line.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamnorm import (
    Conversation,
    Failed,
    File,
    Finish,
    Limits,
    Normalizer,
    Tool,
    ToolCall,
    ToolResult,
    provider,
)
from streamnorm.errors import StreamnormError, UsageError
from streamnorm.framing import Framer
from streamnorm.framing.aws import EventStream
from streamnorm.framing.json_array import JsonArray
from streamnorm.framing.lines import Lines
from streamnorm.framing.sse import SSE
from streamnorm.history.transcript import from_messages
from streamnorm.providers import PROVIDERS
from streamnorm.request import read_request
from streamnorm.takes.format import parse_take
from streamnorm.ui.inbox import BadBody, from_ag_ui, from_ai_sdk, from_plain, parse_body
from streamnorm.wire import repair
from tests.framing.reference_sse import messages
from tests.proof.judge import misshapen

__all__ = ["JSON", "TARGETS", "changed", "samples"]

ROOT = Path(__file__).resolve().parents[2]
SMALL = Limits(frame_bytes=4096, arguments=2048, arguments_total=8192, calls=64, open_calls=16)
FRAMERS: tuple[Callable[[int], Framer], ...] = (SSE, JsonArray, Lines, EventStream)
POSTS = (from_ai_sdk, from_ag_ui, from_plain)


def frames(data: bytes) -> None:
    """Any chunking gives the same frames; server-sent events are those of the specification."""
    head, body = data[:1], data[1:]
    number = head[0] if head else 0
    make = FRAMERS[number % len(FRAMERS)]
    whole = framed(make, [body])
    assert framed(make, chunks(body, number)) == whole
    if make is SSE and not whole[1]:
        dispatched = list(map(SSE(4096).read, framed(make, [body], rest=False)[0]))
        told = [fields.data.decode("utf-8", "replace") for fields in dispatched if fields.data]
        wanted = [message.data for message in messages(body) if message.data]
        assert told == wanted, (told, wanted)


def framed(
    make: Callable[[int], Framer], pieces: list[bytes], *, rest: bool = True
) -> tuple[list[bytes], bool]:
    framer, told = make(4096), []
    for piece in pieces:
        told += framer.feed(piece)
        if framer.overflow:
            return [], True
    return told + (framer.rest() if rest else []), framer.overflow


def wires(data: bytes) -> None:
    """One ending, and last; every start ends once; any chunking gives the same events."""
    number = data[0] if data else 0
    names = ("auto", *PROVIDERS)
    name, body = names[number % len(names)], data[1:]
    bad = "skip" if number > 127 else "fail"
    events = told(name, [body], bad)
    assert not misshapen(events), misshapen(events)
    assert told(name, chunks(body, number), bad) == events


def told(name: str, pieces: list[bytes], bad: str) -> list[Any]:
    pipe = Normalizer(name, seed="fuzz", limits=SMALL, on_bad_event=bad)
    events = [event for piece in pieces for event in pipe.feed(piece)] + pipe.close()
    assert isinstance(events[-1], Finish | Failed)
    return events


def takes(data: bytes) -> None:
    """A take, or an error of ours that says why it is none; what was read has all chunks."""
    with suppress(StreamnormError):
        take = parse_take(data)
        assert b"".join(chunk for _, chunk in take.chunks) == take.wire


def bodies(data: bytes) -> None:
    """Requests of any wire: read, repaired and read as messages, or refused in our words."""
    number = data[0] if data else 0
    name = tuple(PROVIDERS)[number % len(PROVIDERS)]
    body = decoded(data[1:])
    if body is None:
        return
    for who in (name, "auto"):
        for read in (read_request, repair, from_messages):
            with suppress(StreamnormError):
                read(who, body)  # type: ignore[operator]


def posts(data: bytes) -> None:
    """What a page posts: a conversation, or the place that is wrong."""
    number = data[0] if data else 0
    with suppress(BadBody):
        POSTS[number % len(POSTS)](parse_body(data[1:]))


def decoded(data: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    return None


def chunks(body: bytes, seed: int) -> list[bytes]:
    dice, pieces, at = random.Random(seed), [], 0
    while at < len(body):
        size = dice.randint(1, dice.choice((1, 5, 60, 900)))
        pieces.append(body[at : at + size])
        at += size
    return pieces


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": frames, "wires": wires, "takes": takes, "bodies": bodies, "posts": posts,
}  # fmt: skip


JSON = ("bodies", "posts")  # whose bytes behind the first one are JSON, mostly

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**70, "", "text", "\ud83d", "data:,x", "data:image/png;base64,!", [], {},
    [None], [7], [[]], {"type": "text"}, {"text": 1}, {"type": "tool_use", "id": 1}, {"role": "user"},
)  # fmt: skip


def changed(data: bytes, seed: int) -> bytes:
    """The same with one to three values of its JSON lost, moved or made odd, or as it is if it has none."""
    value = decoded(data[1:])
    if not isinstance(value, dict | list):
        return data
    try:
        change(value, random.Random(seed))
        return data[:1] + json.dumps(value).encode()
    except RecursionError:  # nested very deeply
        return data


def change(value: Any, dice: random.Random) -> None:
    for _ in range(dice.choice((1, 1, 2, 3))):
        where = list(spots(value))
        if not where:
            break
        holder, key = dice.choice(where)
        act = dice.randrange(4)
        if act == 0 and isinstance(holder, dict):
            del holder[key]
        elif act == 1:
            holder[key] = [holder[key]]
        elif act == 2:
            other, elsewhere = dice.choice(where)
            holder[key] = json.loads(json.dumps(other[elsewhere]))
        else:
            holder[key] = copy.deepcopy(dice.choice(ODD))


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in it: who holds it, and where."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from spots(value[key])


# --- where to begin -------------------------------------------------------------------------------


def samples(target: str) -> Iterator[bytes]:
    """Honest bytes for a target, from which a fuzzer goes on."""
    small = [
        path for path in sorted((ROOT / "recordings").glob("*/*.sse")) if path.stat().st_size < 6000
    ]
    if target == "takes":
        yield from (path.read_bytes() for path in small)
    elif target in ("frames", "wires"):
        names = ("auto", *PROVIDERS)
        for path in small:
            number = names.index(path.parent.name) if path.parent.name in names else 0
            first = bytes([number if target == "wires" else number % 4])
            yield first + parse_take(path.read_bytes()).wire
    elif target == "bodies":
        yield from requests()
    else:
        yield from (
            bytes([number]) + json.dumps(post).encode() for number, post in enumerate(_POSTS)
        )


def requests() -> Iterator[bytes]:
    """What we say to each provider."""
    call = ToolCall(0, "call_1", "weather", {"city": "Oslo"}, '{"city":"Oslo"}')
    tool = Tool("weather", "Weather in a city", {"type": "object", "properties": {"city": {}}})
    talk = (
        Conversation(system="Be brief.")
        .user("Weather in Oslo?", File(b"png", "image/png"))
        .assistant([call])
        .results([ToolResult.for_call(call, {"celsius": 7})])
    )
    for number, (name, row) in enumerate(PROVIDERS.items()):
        tools = [tool] if row.tools else []
        said = talk if row.tools else Conversation().user("Hi")
        with suppress(UsageError):
            body = provider(name).request(said, tools=tools, model="m")
            yield bytes([number]) + json.dumps(body, default=repr).encode()


_POSTS = (
    {
        "id": "c", "trigger": "submit-message", "messages": [
            {"id": "1", "role": "user", "parts": [
                {"type": "text", "text": "Hi"},
                {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,SGk="}]},
            {"id": "2", "role": "assistant", "parts": [
                {"type": "step-start"}, {"type": "reasoning", "text": "hm"},
                {"type": "tool-weather", "toolCallId": "a", "state": "output-available",
                 "input": {"city": "Oslo"}, "output": {"celsius": 7}},
                {"type": "dynamic-tool", "toolName": "f", "toolCallId": "b", "state": "output-error",
                 "input": {}, "errorText": "no"},
                {"type": "tool-g", "toolCallId": "d", "state": "approval-responded", "input": {},
                 "approval": {"id": "x", "approved": True}}]}]},
    {
        "threadId": "c", "runId": "r", "state": {}, "context": [], "forwardedProps": {},
        "tools": [{"name": "weather", "description": "", "parameters": {"type": "object"}}],
        "messages": [
            {"id": "1", "role": "user", "content": "Hi"},
            {"id": "2", "role": "assistant", "content": "", "toolCalls": [
                {"id": "a", "type": "function",
                 "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]},
            {"id": "3", "role": "tool", "toolCallId": "a", "content": "7"}]},
    {"chat": "c", "message": "Hi", "messages": [{"role": "user", "text": "Hi"}], "approvals": {}},
)  # fmt: skip
