"""What all conversations are made of: dice in; values, words, calls and pieces of them out.

Rule: nothing here knows a wire.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.proof.talk import Comment, Frame

Dice: TypeAlias = random.Random

NAMES = ("pay", "search", "get_weather", "f", "run", "read_file", "list.items", "a-b_c", "look:up")
WORDS = (
    "Oslo", "héllo", "", "日本", "a b", "😀", "👩‍👩‍👧 x", "line\nline", 'say "hi"', "back\\slash", "\u2028",
    "data: x", "[DONE]", "{}", '{"a":1}', "\u0085", "tab\t", "x" * 40, "𝒳𝒴", "0", "null", "\x7f",
)  # fmt: skip
KEYS = ("city", "q", "amount", "to", "path", "ключ", "a", "b", "x y", "nested", "list", "é😀")
NUMBERS = (0, 1, -1, 42, 2**53 + 1, 2**70, -(10**30), 0.5, -1.25e-7, 1e21, 3.14)


@dataclass
class Called:
    """A call, thought of before it is written."""

    id: str
    name: str
    arguments: dict[str, Any]
    text: str  # its argument text as the wire will say it; "": none
    key: str | None = None  # of tools whose input is plain text
    type: str = "function"
    runs_on: str = "client"
    extra: dict[str, Any] = field(default_factory=dict)


def value(dice: Dice, depth: int = 0) -> Any:
    roll = dice.random()
    if depth < 3 and roll < 0.15:
        return {dice.choice(KEYS): value(dice, depth + 1) for _ in range(dice.randint(0, 3))}
    if depth < 3 and roll < 0.25:
        return [value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    if roll < 0.65:
        return dice.choice(WORDS)
    return dice.choice(NUMBERS) if roll < 0.9 else dice.choice((True, False, None))


def arguments(dice: Dice) -> dict[str, Any]:
    return {dice.choice(KEYS): value(dice) for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 4)))}


def written(dice: Dice, said: dict[str, Any]) -> str:
    """The argument text as a model may write it."""
    if not said and dice.random() < 0.6:
        return ""
    separators = dice.choice(((",", ":"), (", ", ": ")))
    text = json.dumps(said, ensure_ascii=dice.random() < 0.4, separators=separators)
    if dice.random() < 0.05:
        text = json.dumps(said, ensure_ascii=False, indent=1)
    return text


def prose(dice: Dice) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(1, 4)))


def fragments(dice: Dice, text: str, halves: bool = True) -> list[str]:
    """The text in pieces, cut anywhere: in an escape, and even inside a character."""
    if not text or dice.random() < 0.15:
        return [text] if text or dice.random() < 0.5 else []
    units = list(text)
    if halves and not text.isascii() and dice.random() < 0.4:
        raw = text.encode("utf-16-le", "surrogatepass")
        units = [chr(raw[i] | raw[i + 1] << 8) for i in range(0, len(raw), 2)]
    count = min(len(units), dice.choice((1, 2, 2, 3, 4, 6)))
    cuts = sorted(dice.sample(range(1, len(units)), count - 1)) if len(units) > 1 else []
    pieces = ["".join(units[a:b]) for a, b in zip([0, *cuts], [*cuts, len(units)], strict=True)]
    if dice.random() < 0.2:
        pieces.insert(dice.randint(0, len(pieces)), "")
    return [p if whole_characters(p) or halves else text for p in pieces]


def whole_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def ident(dice: Dice, prefix: str) -> str:
    return prefix + "".join(dice.choices("abcdefghijkmnpqrstuvwxyz0123456789", k=9))


def client_call(dice: Dice, prefix: str) -> Called:
    said = arguments(dice)
    return Called(ident(dice, prefix), dice.choice(NAMES), said, written(dice, said))


def merged(dice: Dice, tracks: list[list[Frame]], interleave: float) -> list[Frame]:
    """The tracks one after the other, or through each other, each in its own order."""
    if dice.random() >= interleave:
        return [frame for track in tracks for frame in track]
    left = [list(reversed(track)) for track in tracks if track]
    frames: list[Frame] = []
    while left:
        track = dice.choice(left)
        frames.append(track.pop())
        left = [t for t in left if t]
    return frames


def sprinkled(dice: Dice, frames: list[Frame], extra: list[Frame]) -> list[Frame]:
    """Some of the extra frames anywhere between the first and the last."""
    frames = list(frames)
    for frame in extra:
        frames.insert(dice.randint(1, max(1, len(frames) - 1)), frame)
    return frames


COMMENT = Frame(Comment(" keep-alive"))


def comments(dice: Dice) -> list[Frame]:
    return [COMMENT] * dice.choice((0, 0, 0, 1, 2))


def typed(payload: dict[str, Any], about: bool = False, field: str = "type") -> Frame:
    return Frame(payload, str(payload[field]), about)
