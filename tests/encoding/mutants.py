"""Bodies of requests, as programs write them on each wire, and bodies that nobody should write.

``mutant`` damages a value where it has a structure: a value becomes one of another type, is dropped, nested
in itself, said twice, swapped with another, or becomes too long, too deep or too odd to be JSON.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias

from streamnorm import Conversation, File, Reasoning, Text, Tool, ToolCall, ToolResult, Turn
from streamnorm.events import Provenance
from streamnorm.providers import PROVIDERS
from streamnorm.wire import provider

Path: TypeAlias = tuple[Any, ...]
WIRES = [name for name, row in PROVIDERS.items() if row.encoder and row.messages]
PIXEL = bytes.fromhex("89504e470d0a1a0a")
TOOLS = [
    Tool("get_weather", "Weather", {"type": "object", "properties": {"city": {"type": "string"}}}),
    Tool("now"),
]


def talk_on(wire: str) -> Conversation:
    natural = Provenance("natural", "call_1", "id", "stated", wire, None)
    one = ToolCall(
        0, "call_1", "get_weather", {"city": "Oslo"}, '{"city":"Oslo"}', provenance=natural
    )
    two = ToolCall(1, "call_2", "now", {}, "{}", provenance=natural)
    return (
        Conversation()
        .user("What is the weather?", File(PIXEL, "image/png"))
        .add(Turn("assistant", (Reasoning("Hm."), Text("Let me look."), one, two), provider=wire))
        .results([ToolResult.for_call(one, {"celsius": 7}), ToolResult.for_call(two, "noon", is_error=True)])
        .assistant("It is cold.")
        .user("Thanks")
    )  # fmt: skip


@cache
def valid(wire: str) -> Any:
    """A body that this wire takes, with a bit of everything."""
    made, with_tools = provider(wire), PROVIDERS[wire].tools
    talk = (
        talk_on(wire) if with_tools else Conversation().user("Hello").assistant("Hi").user("Well?")
    )
    return made.prepare(
        talk, TOOLS if with_tools else None, None, "Be brief.", "m", 99, stream=True
    ).body


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where something stands, from the outside in."""
    yield path
    rows = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in rows:
        yield from places(item, (*path, key))


def _deep(depth: int, kind: type) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value] if kind is list else {"content": value}
    return value


def _itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


ODD: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: False, lambda: 0, lambda: -1, lambda: 7, lambda: 2**70,
    lambda: 1.5, lambda: float("nan"), lambda: float("inf"), lambda: "", lambda: "x", lambda: "\ud800",
    lambda: "a\x00b", lambda: "\u202e\x1b[2J", lambda: "x" * 100_000, lambda: "9" * 5000, lambda: [],
    lambda: [7], lambda: [[]], lambda: [None], lambda: [1], lambda: ["x"], lambda: {}, lambda: {"": None},
    lambda: {"type": 7}, lambda: {"type": []}, lambda: {"type": {}}, lambda: {"text": 7}, lambda: {"x": "\udfff"},
    lambda: {1: 2}, lambda: {None: []}, lambda: (1, 2), lambda: b"bytes", lambda: {1, 2}, object,
    lambda: 1j, lambda: Exception, lambda: "data:image/png;base64,!!!", lambda: "data:,", lambda: "e30",
    lambda: "streamnorm1.", lambda: "streamnorm1.eJw", lambda: '{"a":1', lambda: "{}", lambda: "[]", lambda: "null",
    lambda: "1e999", lambda: _deep(200, list), lambda: _deep(200, dict), lambda: _deep(100_000, list),
    lambda: _deep(100_000, dict), _itself, lambda: {"role": "user"}, lambda: {"role": ["user"], "content": 7},
    lambda: "[" * 100_000, lambda: "user", lambda: "assistant", lambda: "tool", lambda: [{}],
    lambda: [{"type": "text"}],
)  # fmt: skip


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _put(body: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    at(body, path[:-1])[path[-1]] = value
    return body


def _drop(dice: random.Random, body: Any, path: Path) -> Any:
    if path:
        del at(body, path[:-1])[path[-1]]
    return body


def _again(dice: random.Random, body: Any, path: Path) -> Any:
    """The same thing stands twice: as another row, or under another key."""
    if not path:
        return [body, body]
    holder, value = at(body, path[:-1]), at(body, path)
    if isinstance(holder, list):
        holder.insert(dice.randint(0, len(holder)), value)
    else:
        holder[dice.choice([*holder, "id", "type", "content", "name"])] = value
    return body


def _swapped(dice: random.Random, body: Any, path: Path) -> Any:
    other = dice.choice(list(places(body)))
    return _put(body, path, copy.deepcopy(at(body, other)))


def _nested(dice: random.Random, body: Any, path: Path) -> Any:
    value = at(body, path)
    return _put(body, path, dice.choice([[value], {"content": value}, {"type": value}, [[value]]]))


def _renamed(dice: random.Random, body: Any, path: Path) -> Any:
    holder = at(body, path[:-1]) if path else body
    if isinstance(holder, dict) and path:
        holder[dice.choice(["role", "type", "content", "id", "name", "text", "x", ""])] = (
            holder.pop(path[-1])
        )
    return body


def _retyped(dice: random.Random, body: Any, path: Path) -> Any:
    return _put(body, path, dice.choice(ODD)())


def _shuffled(dice: random.Random, body: Any, path: Path) -> Any:
    value = at(body, path)
    if isinstance(value, list):
        dice.shuffle(value)
    return body


_WAYS = (_retyped, _retyped, _retyped, _drop, _again, _swapped, _nested, _renamed, _shuffled)


def mutant(body: Any, seed: int) -> Any:
    """The body, damaged in one to three places; the same for the same seed."""
    dice = random.Random(seed)
    body = copy.deepcopy(body)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        try:
            paths = list(places(body))
        except RecursionError:
            break
        body = dice.choice(_WAYS)(dice, body, dice.choice(paths))
    return body


def dumped(value: Any) -> bytes:
    """A value as JSON; what no JSON has, as something that is none."""
    try:
        return json.dumps(value).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 100_000
    except (TypeError, ValueError):
        return b'{"a":' * 1000


def flipped(data: bytes, dice: random.Random) -> bytes:
    """Bytes of which a few are others, missing, or too many."""
    made = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 5])):
        at = dice.randrange(len(made) or 1)
        match dice.randrange(4) if made else 3:
            case 0:
                made[at] ^= 1 << dice.randrange(8)
            case 1:
                made[at : at + 1] = dice.randbytes(3)
            case 2:
                del made[at : at + dice.randrange(20)]
            case _:
                made[at:at] = dice.choice(_JUNK)
    return bytes(made)


_JUNK = (
    b"\xff\xfe", b"\0", b"\n\n", b"data: [", b": +1e999\n", b": +-1\n", b": streamnorm {}\n",
    b": streamnorm [1]\n", b': streamnorm {"container":"chunks"}\n', b"event: base64\ndata: !!\n\n",
    b': streamnorm {"seed":7,"provider":[]}\n', b'"\\ud800"', b"1" * 5000, b"[" * 2000,
)  # fmt: skip
