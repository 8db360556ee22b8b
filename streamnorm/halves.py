"""Characters cut in two: a JSON payload with half of a surrogate pair in, whole characters out.

Some servers cut an emoji between two payloads, each with one half as a ``\\uD83D`` escape. No half
may leave the library (it cannot be encoded), and none may be lost.

Rule: inside the library a half is never a half. ``stand_in`` rewrites it to a private character
before the payload is read, so that every handler works as ever; ``Halves`` then holds a trailing
first half back from the events of that part until its second half comes; ``join`` does the same for
whole text. A half that stays alone becomes U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from .events import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from .events import Event

# A surrogate U+D800..DFFF stands in the private plane 16 as U+10D800..10DFFF.
_SHIFT = 0x100000
_first, _second = "[\U0010d800-\U0010dbff]", "[\U0010dc00-\U0010dfff]"
_either = re.compile("[\U0010d800-\U0010dfff]")
_pair_or_half = re.compile(f"({_first})({_second})|{_first}|{_second}")
_ends_open = re.compile(f"{_first}$").search
_escape = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a proper pair
    rb"|\\u([dD][89a-fA-F][0-9a-fA-F]{2})"  # a half
    rb"|\\."  # any other escape, so that \\\\ud83d is not taken for one
)
REPLACEMENT = "\ufffd"
Key: TypeAlias = tuple[type, int, int]
Tell: TypeAlias = Callable[[str], None]


def stand_in(data: bytes) -> bytes:
    """JSON text with every lone half replaced by its private character."""
    return _escape.sub(_privately, data)


def _privately(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return match[0]
    return chr(_SHIFT + int(match[1], 16)).encode()


def join(text: str) -> str:
    """Text with its halves joined, and those left alone replaced."""
    return _pair_or_half.sub(_joined, text)


def _joined(match: re.Match[str]) -> str:
    if match[2] is None:
        return REPLACEMENT
    high, low = ord(match[1]) - _SHIFT - 0xD800, ord(match[2]) - _SHIFT - 0xDC00
    return chr(0x10000 + (high << 10) + low)


class Halves:
    """What is held back of each part; ``mend`` goes over the events of one payload."""

    __slots__ = ("_tell", "held")

    def __init__(self, tell: Tell) -> None:
        self.held: dict[Key, str] = {}
        self._tell = tell

    def mend(self, out: list[Event], since: int) -> None:
        """Make the events from ``since`` on encodable; hold a trailing first half back."""
        mended: list[Event] = []
        for event in out[since:]:
            key = _key(event)
            if key is None:
                mended.append(_scrubbed(event))
            else:
                self._mend_delta(cast(TextDelta, event), key, mended)
        out[since:] = mended

    def _mend_delta(self, event: TextDelta, key: Key, mended: list[Event]) -> None:
        text = self.held.pop(key, "") + event.text
        if (open_half := _ends_open(text)) is not None:
            self.held[key], text = open_half[0], text[:-1]
        if (whole := join(text)) != text:
            self._tell("wire.half_character" if REPLACEMENT in whole else "wire.split_character")
        if whole or not event.text:
            mended.append(msgspec.structs.replace(event, text=whole))

    def flush(self, out: list[Event]) -> None:
        """The stream ends: what is still held never met its other half."""
        for kind, where, choice in self.held:
            self._tell("wire.half_character")
            out.append(
                ToolCallDelta(where, REPLACEMENT)
                if kind is ToolCallDelta
                else kind(REPLACEMENT, where, choice)
            )
        self.held.clear()


def _key(event: Event) -> Key | None:
    if type(event) is ToolCallDelta:
        return ToolCallDelta, event.call, 0
    if type(event) is TextDelta or type(event) is ReasoningDelta:
        return type(event), event.part, event.choice
    return None


def _scrubbed(event: Event) -> Event:
    """Any other event, with halves inside its texts joined or replaced."""
    if not _either.search(repr(event)):
        return event
    plain = _scrub(msgspec.to_builtins(event))
    scrubbed: Event = msgspec.convert(plain, type(event))
    return scrubbed


def _scrub(value: Any) -> Any:
    if isinstance(value, str):
        return join(value)
    if isinstance(value, dict):
        return {join(k): _scrub(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_scrub(v) for v in value]
    return value
