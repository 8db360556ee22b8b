"""A call that is said once more: its name and the pieces of its text in, whether it says the same out.

Rule: a copy is heard and not begun. What says the same as a call that is there says nothing; what does
not is another word on the same call, and no call that may be run (``core.calls``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..limits import LimitReached, Limits
from ..text.exact import Refused, parse

__all__ = ["Copy", "begins_with", "begun_by", "extends", "same_value"]


class Copy:
    """What a copy has said so far."""

    __slots__ = ("_limits", "_size", "fragments", "name")

    def __init__(self, limits: Limits, name: str = "") -> None:
        self.name = name
        self.fragments: list[str] = []
        self._limits, self._size = limits, 0

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def hear_name(self, name: str) -> None:
        """A name, or a piece of one."""
        self.name = name if name.startswith(self.name) else self.name + name
        if len(self.name) > self._limits.name:
            raise LimitReached("name", self._limits.name)

    def hear(self, text: str) -> None:
        """A piece of its text."""
        self.fragments.append(text)
        self._size += len(text)
        if self._size > self._limits.arguments:
            raise LimitReached("arguments", self._limits.arguments)

    def is_one_of(self, calls: Iterable[tuple[str, str]]) -> bool:
        """Does it say one of these calls, which are names and texts? Where it says no name or no text it
        says nothing else."""
        mine = self.text
        empty, value = (
            not mine.strip(),
            _value_of(mine),
        )  # it may be long, and there may be many calls
        texts = (text for name, text in calls if self.name in ("", name))
        return any(empty or mine == text or _says(text, value) for text in texts)


_NO_VALUE = object()


def _value_of(text: str) -> Any:
    try:
        return parse(text)
    except Refused:
        return _NO_VALUE


def _says(text: str, value: Any) -> bool:
    return value is not _NO_VALUE and _is_same(_value_of(text), value)


def begun_by(text: str, pieces: Sequence[str]) -> int:
    """How long all these pieces are if a text begins with them, else -1. None of them is empty, so no more
    is looked at than the text is long."""
    at = 0
    for piece in pieces:
        if not text.startswith(piece, at):
            return -1
        at += len(piece)
    return at


def begins_with(pieces: Sequence[str], text: str) -> bool:
    """Is a text how these pieces begin? None of them is empty."""
    at = 0
    for piece in pieces:
        if at >= len(text):
            break
        if not piece.startswith(text[at : at + len(piece)]):
            return False
        at += len(piece)
    return at >= len(text)


def same_value(one: str, other: str) -> bool:
    """Are these two texts of one value? Gateways write it anew, with other spaces."""
    return _says(one, _value_of(other))


def _is_same(one: Any, other: Any) -> bool:
    """Are these equal in JSON, where a truth value is no number? (Python takes 1 for true.)"""
    if type(one) is dict and type(other) is dict:
        return one.keys() == other.keys() and all(_is_same(one[k], other[k]) for k in one)
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(_is_same, one, other))
    return (type(one) is bool) is (type(other) is bool) and bool(one == other)


def extends(one: str, other: str) -> bool:
    """Does the first text say all that the second one does, and more?"""
    try:
        more, less = parse(one), parse(other)
    except Refused:
        return False
    if not isinstance(more, dict) or not isinstance(less, dict):
        return False
    return all(key in more and _is_same(more[key], value) for key, value in less.items())
