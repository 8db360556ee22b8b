"""Damage: frames in, broken frames out; or bytes in, broken bytes out.

Rule: an operator does one thing that happens to streams (a frame is lost, said twice, of another
type …) at a place that the dice choose, mostly where a call is being told. It knows no wire but for
the few words in the tables below. ``FRAMEWISE`` and ``BYTEWISE`` are the whole list.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from tests.proof.conversations import converse
from tests.proof.talk import Comment, Frame, Raw, Said, Talk

Dice: TypeAlias = random.Random
Frames: TypeAlias = list[Frame]
FrameOp: TypeAlias = Callable[[Dice, Frames, Talk], Frames]
ByteOp: TypeAlias = Callable[[Dice, bytes], bytes]

ODD_VALUES: tuple[Any, ...] = (
    5, 0, -1, 1.5, True, False, None, "", "x", "0", "null", "{}", "{", [], {}, [1], {"a": 1}, ["x"],
    {"text": "x"}, "\ud83d", 2**64,
)  # fmt: skip
FINISH_FIELDS = {"finish_reason", "stop_reason", "finishReason", "done_reason", "status", "reason",
                 "stopReason"}  # fmt: skip
FINISH_WORDS: tuple[Any, ...] = (
    "null", "normal", "stop", "STOP", "length", "error", "network_error", "abort", "sensitive",
    "repetition", "malformed_function_call", "MALFORMED_FUNCTION_CALL", "model_context_window_exceeded",
    "max_tokens", "MAX_TOKENS", "content_filter", "incomplete", "failed", "cancelled", "whatever",
    "tool_calls", "tool_use", "completed", "refusal", "SAFETY", "OTHER", "TIMEOUT", "COMPLETE",
    "guardrail_intervened", "budget_exceeded", None, "", 5, {}, [],
)  # fmt: skip
INDEX_FIELDS = {"index", "output_index", "contentBlockIndex", "content_index"}
ID_FIELDS = {"id", "call_id", "item_id", "tool_use_id", "toolUseId", "tool_call_id",
             "parent_tool_use_id"}  # fmt: skip
TYPE_FIELDS = {"type", "event_type"}
TEXT_FIELDS = {"partial_json", "arguments", "delta", "input", "code", "text", "stringValue",
               "content", "args", "name"}  # fmt: skip
ERRORS = (
    {"error": {"message": "overloaded", "type": "overloaded_error", "code": 529}},
    {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}},
    {"error": "broken"},
    {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}},
    {"choices": [{"index": 0, "delta": {}, "error": {"message": "x"}, "finish_reason": "error"}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
    {"event_type": "error", "error": {"message": "x"}},
    {"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}},
)  # fmt: skip


# --- choosing a place -----------------------------------------------------------------------------


def some(dice: Dice, frames: Frames) -> int:
    """The number of a frame, mostly of one that is about a call."""
    about = [n for n, frame in enumerate(frames) if frame.about]
    if about and dice.random() < 0.75:
        return dice.choice(about)
    return dice.randrange(len(frames))


class Spot(NamedTuple):
    """A value somewhere in a payload."""

    path: tuple[str | int, ...]
    value: Any

    @property
    def key(self) -> str | int:
        return self.path[-1]


def spots(value: Any, path: tuple[str | int, ...] = ()) -> list[Spot]:
    """All values of a payload with where they stand."""
    found: list[Spot] = []
    items = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    for key, inner in items:
        found.append(Spot((*path, key), inner))
        found += spots(inner, (*path, key))
    return found


def changed(value: Any, path: tuple[str | int, ...], change: Callable[[Any, Any], None]) -> Any:
    """A copy in which ``change(container, key)`` was done at the path."""
    key, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[key] = changed(copy[key], tuple(rest), change)
    else:
        change(copy, key)
    return copy


def at_spot(
    dice: Dice, frames: Frames, fits: Callable[[Spot], bool], change: Callable[[Any, Any], None]
) -> Frames:
    """Change one value that fits, in one of the frames that have such a value."""
    for _ in range(4):
        n = some(dice, frames)
        there = [s for s in spots(frames[n].payload) if fits(s)]
        if there:
            spot = dice.choice(there)
            payload = changed(frames[n].payload, spot.path, change)
            return replaced(frames, n, frames[n]._replace(payload=payload))
    return frames


def replaced(frames: Frames, n: int, *instead: Frame) -> Frames:
    return [*frames[:n], *instead, *frames[n + 1 :]]


def put(value: Any) -> Callable[[Any, Any], None]:
    def change(container: Any, key: Any) -> None:
        container[key] = value

    return change


def drop_key(container: Any, key: Any) -> None:
    del container[key]


# --- frame by frame -------------------------------------------------------------------------------


def drop(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    return replaced(frames, some(dice, frames))


def drop_several(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    n = some(dice, frames)
    return frames[:n] + frames[n + dice.randint(2, 4) :]


def duplicate(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    n = some(dice, frames)
    return replaced(frames, n, frames[n], frames[n])


def swap(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    n = some(dice, frames)
    if n + 1 >= len(frames):
        return frames
    return [*frames[:n], frames[n + 1], frames[n], *frames[n + 2 :]]


def move(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    n = some(dice, frames)
    rest = replaced(frames, n)
    to = dice.randint(0, len(rest))
    return [*rest[:to], frames[n], *rest[to:]]


def repeat_later(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A frame is said again some time later; starts of calls among them."""
    n = some(dice, frames)
    to = dice.randint(n, len(frames))
    return [*frames[:to], frames[n], *frames[to:]]


def repeat_run(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A run of frames is sent again, as by a relay that tries twice."""
    n = some(dice, frames)
    end = min(len(frames), n + dice.randint(2, 5))
    return [*frames[:end], *frames[n:end], *frames[end:]]


def donated(dice: Dice, talk: Talk) -> Frames:
    """The frames of another stream; what that says has been said, too."""
    other = converse(talk.wire, dice)
    talk.said += other.said
    return other.frames


def splice(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """Frames of another stream get between."""
    other = donated(dice, talk)
    n, to = some(dice, other), dice.randint(0, len(frames))
    return [*frames[:to], *other[n : n + dice.randint(1, 4)], *frames[to:]]


def graft(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """The stream goes on as another one."""
    other = donated(dice, talk)
    return [*frames[: dice.randint(1, len(frames))], *other[dice.randint(0, len(other) - 1) :]]


def cut(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    return frames[: dice.randint(1, len(frames))]


def retype(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    return at_spot(dice, frames, lambda s: True, put(dice.choice(ODD_VALUES)))


def retype_text(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    odd = dice.choice(ODD_VALUES)
    return at_spot(dice, frames, lambda s: s.key in TEXT_FIELDS, put(odd))


def rename_key(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    def change(container: Any, key: Any) -> None:
        odd = dice.choice(
            (f"{key}_", key.upper(), f"x_{key}", key[:-1], f"a.{key}", f"{key}[0]", "$")
        )
        items = [(odd if k == key else k, v) for k, v in container.items()]
        container.clear()
        container.update(items)

    return at_spot(dice, frames, lambda s: isinstance(s.key, str), change)


def delete_key(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    return at_spot(dice, frames, lambda s: True, drop_key)


def empty_text(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    return at_spot(dice, frames, lambda s: isinstance(s.value, str) and s.value != "", put(""))


def cut_text(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """The end of a text is lost."""

    def change(container: Any, key: Any) -> None:
        container[key] = container[key][: dice.randrange(len(container[key]))]

    return at_spot(dice, frames, _is_text, change)


def half_escape(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A text ends inside an escape, or with half a character."""
    tail = dice.choice(("\\", "\\u", "\\ud83d", "\\u00", "\ud83d", "\udc00"))

    def change(container: Any, key: Any) -> None:
        at = dice.randint(0, len(container[key]))
        keep = "" if dice.random() < 0.5 else container[key][at:]
        container[key] = container[key][:at] + tail + keep

    return at_spot(dice, frames, _is_text, change)


def _is_text(spot: Spot) -> bool:
    return spot.key in TEXT_FIELDS and isinstance(spot.value, str) and spot.value != ""


def change_index(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    odd = dice.choice((0, 1, 2, 3, 7, -1, "0", None, 1.0, 10**20))
    return at_spot(dice, frames, lambda s: s.key in INDEX_FIELDS, put(odd))


def change_id(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    known = [s.value for f in frames for s in spots(f.payload) if s.key in ID_FIELDS]
    odd = dice.choice([*known, "call_other", "", "null", None, 5])
    return at_spot(dice, frames, lambda s: s.key in ID_FIELDS, put(odd))


def change_finish(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    word = dice.choice(FINISH_WORDS)
    having = [
        n for n, f in enumerate(frames) if any(s.key in FINISH_FIELDS for s in spots(f.payload))
    ]
    if not having:
        return frames
    n = dice.choice(having)
    spot = dice.choice([s for s in spots(frames[n].payload) if s.key in FINISH_FIELDS])
    payload = changed(frames[n].payload, spot.path, put(word))
    return replaced(frames, n, frames[n]._replace(payload=payload))


def finish_everywhere(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """Some servers say a finish word on every frame that has the field."""
    word = dice.choice(FINISH_WORDS)
    there = {s.key for f in frames for s in spots(f.payload) if s.key in FINISH_FIELDS}
    fields = there - {"status", "reason"} or there
    out = []
    for frame in frames:
        payload = frame.payload
        for spot in reversed(spots(payload)):  # one may stand inside another
            if spot.key in fields:
                payload = changed(payload, spot.path, put(word))
        out.append(frame._replace(payload=payload))
    return out


def change_type(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A frame or a part of it calls itself something else, known or not."""
    typed = [(n, s) for n, f in enumerate(frames) for s in spots(f.payload) if s.key in TYPE_FIELDS]
    if not typed:
        return frames
    n, spot = dice.choice([t for t in typed if frames[t[0]].about] or typed)
    words = {s.value for _, s in typed if isinstance(s.value, str)}
    known = sorted(word for word in words if word != spot.value)
    odd = dice.choice([*known, "something_new", "function", "custom", "", None])
    payload = changed(frames[n].payload, spot.path, put(odd))
    event = frames[n].event
    if len(spot.path) == 1 and isinstance(odd, str) and dice.random() < 0.7:
        event = odd
    return replaced(frames, n, frames[n]._replace(payload=payload, event=event))


def insert_error(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    n = dice.randint(0, len(frames))
    payload = dice.choice(ERRORS)
    event = str(payload.get("type", ""))
    return [*frames[:n], Frame(payload, event), *frames[n:]]


def insert_done(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    n = dice.randint(0, len(frames))
    return [*frames[:n], Frame(Raw("[DONE]")), *frames[n:]]


def insert_unknown(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A frame that nobody knows."""
    n = dice.randint(0, len(frames))
    odd: Any = dice.choice(
        ({}, [], 7, "text", None, {"type": "new.event", "index": 0}, {"type": "x"}, {"a": 1},
         {"choices": {}}, {"choices": [7]}, {"candidates": 5}, Raw("{"), Raw("not json"), Raw("{}{}"),
         Raw('{"a":NaN}'), Comment(' log {"choices":[]}'))
    )  # fmt: skip
    return [*frames[:n], Frame(odd, "" if dice.random() < 0.5 else "new"), *frames[n:]]


def not_json(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """The data of one frame is cut, or has something behind it."""
    n = some(dice, frames)
    if isinstance(frames[n].payload, Raw | Comment):
        return frames
    text = talk.style.data(frames[n].payload)
    at = dice.randrange(len(text))
    odd = dice.choice((text[:at], text[at:], text + text, text[:at] + "\n" + text[at:], text + "}"))
    return replaced(frames, n, frames[n]._replace(payload=Raw(odd)))


def key_twice(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """Beside its value, a field stands there once more with another."""
    n = some(dice, frames)
    if isinstance(frames[n].payload, Raw | Comment):
        return frames
    text = talk.style.data(frames[n].payload)
    pairs = list(re.finditer(r'"(\w+)": ?("(?:[^"\\]|\\.)*"|-?\d+|null|true|false)', text))
    if not pairs:
        return frames
    pair = dice.choice(pairs)
    odd = dice.choice(('""', "null", "7", '"x"', "{}", pair[2]))
    twin = f'"{pair[1]}":{odd}'
    parts = (pair[0], twin) if dice.random() < 0.5 else (twin, pair[0])
    text = text[: pair.start()] + ",".join(parts) + text[pair.end() :]
    return replaced(frames, n, frames[n]._replace(payload=Raw(text)))


def wrong_event(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """The event line says something else than the payload."""
    n = some(dice, frames)
    others = {f.event for f in frames} | {"", "new", "error", "message"}
    event = dice.choice(sorted(others - {frames[n].event}))
    return replaced(frames, n, frames[n]._replace(event=event))


def extra_field(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A field more, of a name that is used elsewhere."""
    n = some(dice, frames)
    everywhere = [s for f in frames for s in spots(f.payload) if isinstance(s.key, str)]
    objects = [s.path for s in spots(frames[n].payload) if isinstance(s.value, dict)]
    if not everywhere or not isinstance(frames[n].payload, dict):
        return frames
    path = dice.choice([(), *objects])
    spot = dice.choice(everywhere)
    odd = spot.value if dice.random() < 0.7 else dice.choice(ODD_VALUES)

    def change(container: Any, key: Any) -> None:
        container[key] = odd

    payload = changed(frames[n].payload, (*path, spot.key), change)
    return replaced(frames, n, frames[n]._replace(payload=payload))


def lose_data(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """The data line is empty, or has become a part of the event line."""
    n = some(dice, frames)
    if isinstance(frames[n].payload, Raw | Comment):
        return frames
    fused = f"{frames[n].event}data: {talk.style.data(frames[n].payload)}".replace("\n", " ")
    event = dice.choice((frames[n].event, fused))
    return replaced(frames, n, frames[n]._replace(event=event, payload=Raw("")))


def true_for_one(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A text says a truth value for a number, or the other way round: Python takes them for equal."""
    pairs = {"1": "true", "0": "false", "true": "1", "false": "0"}

    def change(container: Any, key: Any) -> None:
        one = dice.choice([one for one in pairs if one in container[key]])
        container[key] = container[key].replace(one, pairs[one], 1)

    return at_spot(
        dice,
        frames,
        lambda s: isinstance(s.value, str) and any(one in s.value for one in pairs),
        change,
    )


def hoist(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """What an object has stands in its place, beside its neighbours."""

    def change(container: Any, key: Any) -> None:
        container.update(container.pop(key))

    return at_spot(
        dice, frames, lambda s: isinstance(s.value, dict) and isinstance(s.key, str), change
    )


def sink(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A value stands one level deeper."""

    def change(container: Any, key: Any) -> None:
        held = container[key]
        container[key] = dice.choice(([held], {str(key): held}, {"value": held}, [None, held]))

    return at_spot(dice, frames, lambda s: True, change)


def coerce(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A value is written as another type: a number as a text, a text as what it says, an object as text."""

    def change(container: Any, key: Any) -> None:
        container[key] = coerced(dice, container[key])

    return at_spot(dice, frames, lambda s: True, change)


def coerced(dice: Dice, value: Any) -> Any:
    if isinstance(value, bool):
        return dice.choice((int(value), str(value).lower()))
    if isinstance(value, str):
        with suppress(ValueError):
            return json.loads(value)
        return dice.choice(([value], list(value), {"text": value}))
    if isinstance(value, dict):
        return dice.choice((json.dumps(value), list(value.values())))
    if isinstance(value, list):
        return dice.choice((json.dumps(value), dict(zip("01234567", value, strict=False))))
    return dice.choice(("null", "", {}, [], 0)) if value is None else str(value)


def relocate(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A field stands in another object of its payload."""
    n = some(dice, frames)
    payload = frames[n].payload
    there = [s for s in spots(payload) if isinstance(s.key, str)]
    if not there or not isinstance(payload, dict):
        return frames
    spot = dice.choice(there)
    objects = [s.path for s in spots(payload) if isinstance(s.value, dict)]
    # (a place that was inside of what is moved is gone with it)
    path = dice.choice([(), *(o for o in objects if o[: len(spot.path)] != spot.path)])
    if path == spot.path[:-1]:
        return frames
    payload = changed(payload, spot.path, drop_key)
    payload = changed(payload, (*path, spot.key), put(spot.value))
    return replaced(frames, n, frames[n]._replace(payload=payload))


def double_item(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """An item of a list stands there twice."""

    def change(container: Any, key: Any) -> None:
        held = container[key]
        at = dice.randrange(len(held))
        container[key] = [*held[: at + 1], *held[at:]]

    return at_spot(dice, frames, lambda s: isinstance(s.value, list) and s.value != [], change)


def merge_frames(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """Two frames have become one: their objects are joined, their lists follow one another."""
    n = some(dice, frames)
    if n + 1 >= len(frames) or any(isinstance(f.payload, Raw | Comment) for f in frames[n : n + 2]):
        return frames
    both = joined(frames[n].payload, frames[n + 1].payload)
    return [*frames[:n], frames[n]._replace(payload=both), *frames[n + 2 :]]


def joined(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        shared = {key: joined(one[key], other[key]) for key in one.keys() & other.keys()}
        return {**one, **other, **shared}
    return one + other if isinstance(one, list) and isinstance(other, list) else other


def in_every_frame(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """One field is lost, null or renamed wherever it stands."""
    names = sorted({s.key for f in frames for s in spots(f.payload) if isinstance(s.key, str)})
    if not names:
        return frames
    name = dice.choice(names)
    instead = dice.choice(((), ((name, None),), ((f"{name}_", ...),)))

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(item) for item in value]
        if not isinstance(value, dict):
            return value
        said: dict[str, Any] = {}
        for key, item in value.items():
            put_in = instead if key == name else ((key, ...),)
            said |= {k: without(item) if v is ... else v for k, v in put_in}
        return said

    return [f._replace(payload=without(f.payload)) for f in frames]


def mix(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """Two streams come through each other, each in its order."""
    left = [list(reversed(frames)), list(reversed(donated(dice, talk)))]
    mixed: Frames = []
    while left := [rest for rest in left if rest]:
        mixed.append(dice.choice(left).pop())
    return mixed


def try_again(dice: Dice, frames: Frames, talk: Talk) -> Frames:
    """A relay begins anew, with the same stream or with another answer."""
    again = frames if dice.random() < 0.5 else donated(dice, talk)
    return [*frames[: dice.randint(0, len(frames))], *again]


FRAMEWISE: dict[str, FrameOp] = {
    op.__name__: op
    for op in (
        drop, drop_several, duplicate, swap, move, repeat_later, repeat_run, splice, graft, cut,
        retype, retype_text, rename_key, delete_key, empty_text, cut_text, half_escape, change_index,
        change_id, change_finish, finish_everywhere, change_type, insert_error, insert_done,
        insert_unknown, not_json, key_twice, wrong_event, extra_field, lose_data, true_for_one, hoist,
        sink, coerce, relocate, double_item, merge_frames, in_every_frame, mix, try_again,
    )
}  # fmt: skip


# --- byte by byte ---------------------------------------------------------------------------------


def cut_bytes(dice: Dice, body: bytes) -> bytes:
    return body[: dice.randrange(len(body))]


def flip(dice: Dice, body: bytes) -> bytes:
    at = dice.randrange(len(body))
    return body[:at] + bytes([body[at] ^ (1 << dice.randrange(8))]) + body[at + 1 :]


def delete_bytes(dice: Dice, body: bytes) -> bytes:
    at, size = _range(dice, body)
    return body[:at] + body[at + size :]


def duplicate_bytes(dice: Dice, body: bytes) -> bytes:
    at, size = _range(dice, body)
    return body[: at + size] + body[at : at + size] + body[at + size :]


def insert_bytes(dice: Dice, body: bytes) -> bytes:
    at = dice.randint(0, len(body))
    return body[:at] + dice.randbytes(dice.choice((1, 1, 2, 5))) + body[at:]


def insert_odd(dice: Dice, body: bytes) -> bytes:
    """A NUL, a byte order mark, a line end, half a character … where none belongs."""
    odd = dice.choice(
        (b"\0", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\n\n", b"\xf0\x9f", b"\xff", b'"', b"\\", b"{",
         b"}", b":", b"\ndata: ", b"\n\ndata: {}\n\n", b"\xe2\x80\xa8", b"[DONE]", b"\n\ndata: [DONE]\n\n")
    )  # fmt: skip
    at = dice.randint(0, len(body))
    return body[:at] + odd + body[at:]


def move_bytes(dice: Dice, body: bytes) -> bytes:
    at, size = _range(dice, body)
    piece, rest = body[at : at + size], body[:at] + body[at + size :]
    to = dice.randint(0, len(rest))
    return rest[:to] + piece + rest[to:]


def network(dice: Dice, body: bytes) -> bytes:
    """A chunk of the network is lost, comes twice or late, or the last ones come again."""
    size = dice.choice((16, 64, 200, 536, 1460))
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    at = dice.randrange(len(chunks))
    before, chunk, after = chunks[:at], chunks[at], chunks[at + 1 :]
    return b"".join(
        dice.choice((
            [*before, *after],
            [*before, chunk, chunk, *after],
            [*before, *after[:1], chunk, *after[1:]],
            [*before, *chunks[max(0, at - 2) :]],
        ))
    )  # fmt: skip


def merge_lines(dice: Dice, body: bytes) -> bytes:
    """Some line ends are lost, or are something else."""
    ends = [match.span() for match in re.finditer(rb"\r\n|\n|\r", body)]
    for start, end in sorted(dice.sample(ends, min(len(ends), dice.choice((1, 1, 2, 3)))))[::-1]:
        body = body[:start] + dice.choice((b"", b" ", b"\n", b"\r", b"\t")) + body[end:]
    return body


def break_character(dice: Dice, body: bytes) -> bytes:
    """A character loses a byte, has one twice, is cut by an event's end, or was read as Latin-1."""
    high = [at for at, byte in enumerate(body) if byte >= 0x80]
    if not high:
        return body
    at = dice.choice(high)
    byte = body[at : at + 1]
    odd = dice.choice((b"", byte + byte, b"\n\n" + byte, byte.decode("latin-1").encode()))
    return body[:at] + odd + body[at + 1 :]


def change_structure(dice: Dice, body: bytes) -> bytes:
    """A quote, bracket, comma, colon or backslash is lost, stands twice or is another."""
    there = [at for at, byte in enumerate(body) if byte in b'"{}[],:\\']
    if not there:
        return body
    at = dice.choice(there)
    odd = dice.choice((b"", body[at : at + 1] * 2, b'"', b"}", b"{", b",", b" "))
    return body[:at] + odd + body[at + 1 :]


def _range(dice: Dice, body: bytes) -> tuple[int, int]:
    at = dice.randrange(len(body))
    return at, dice.choice((1, 1, 2, 4, 16, 64, 200))


BYTEWISE: dict[str, ByteOp] = {
    op.__name__: op
    for op in (
        cut_bytes, flip, delete_bytes, duplicate_bytes, insert_bytes, insert_odd, move_bytes, network,
        merge_lines, break_character, change_structure,
    )
}  # fmt: skip


class Mutant(NamedTuple):
    """A damaged stream, what was done to it, and the calls that all its frames once said."""

    body: bytes
    done: tuple[str, ...]
    said: list[Said]


OPERATORS = (*FRAMEWISE, *BYTEWISE)


def damaged(dice: Dice, talk: Talk) -> Mutant:
    """One to three damages, mostly one."""
    talk = replace(talk, said=list(talk.said))
    frames, done = talk.frames, []
    bytewise = dice.random() < 0.2
    for _ in range(dice.choice((1, 1, 1, 1, 2, 3)) if not bytewise or dice.random() < 0.2 else 0):
        name = dice.choice(tuple(FRAMEWISE))
        if frames:
            frames = FRAMEWISE[name](dice, frames, talk)
            done.append(name)
    body = talk.style.body(frames)
    if bytewise and body:
        name = dice.choice(tuple(BYTEWISE))
        body = BYTEWISE[name](dice, body)
        done.append(name)
    return Mutant(body, tuple(done), talk.said)
