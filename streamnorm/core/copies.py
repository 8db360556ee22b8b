"""A call that is said once more: its name and the pieces of its text in, whether it says the same out.

Rule: a copy is heard and not begun. What says the same as a call that is there says nothing; what does
not is another word on the same call, and no call that may be run (``core.calls``).
"""

from __future__ import annotations

from ..limits import LimitReached, Limits
from ..text.exact import Refused, parse

__all__ = ["Copy", "extends", "same_value"]


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

    def says(self, name: str, text: str) -> bool:
        """Does it say this call? Where it says no name or no text it says nothing else."""
        if self.name not in ("", name):
            return False
        return not (mine := self.text).strip() or mine == text or same_value(mine, text)


def same_value(one: str, other: str) -> bool:
    """Are these two texts of one value? Gateways write it anew, with other spaces."""
    try:
        return bool(parse(one) == parse(other))
    except Refused:
        return False


def extends(one: str, other: str) -> bool:
    """Does the first text say all that the second one does, and more?"""
    try:
        more, less = parse(one), parse(other)
    except Refused:
        return False
    if not isinstance(more, dict) or not isinstance(less, dict):
        return False
    return all(key in more and more[key] == value for key, value in less.items())
