"""What readers have in common: a call being heard, and when its text is exact.

Text in, a dict or a reason why there is none out. Rule: what is not exactly one JSON object, with
each key once and no half characters, is no arguments.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import Any

from tests.proof.frames import Twice


@dataclass(slots=True)
class Heard:
    """A call that may be told as whole. ``ids``: all that the wire called it."""

    id: str | None
    name: str
    arguments: dict[str, Any]
    runs_on: str = "client"
    choice: int = 0
    ids: frozenset[str] = frozenset()


@dataclass(slots=True)
class Reading:
    """``calls``: those of the plainest reading; ``also``: other honest readings of the same."""

    calls: list[Heard] = field(default_factory=list)
    ended: str = "cut"  # normal, length, other, failed, cut
    also: list[Heard] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Open:
    """A call being heard."""

    id: str | None
    name: str
    runs_on: str = "client"
    key: str | None = None  # the one argument of a tool whose input is text
    choice: int = 0
    kind: str = ""  # the wire's word for what it is
    fragments: list[str] = field(default_factory=list)
    tainted: bool = False
    unsure: bool = False  # without any text it is not whole
    doubted: bool = False  # something may be missing, or nothing: two honest readings
    given: Any = None  # whole arguments that came with the start
    ids: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)  # that it had before
    closed: bool = False
    state: dict[str, Any] = field(default_factory=dict)  # what a wire remembers beside

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def heard(self, arguments: dict[str, Any]) -> Heard:
        ids = self.ids | ({self.id} if self.id else set())
        return Heard(self.id, self.name, arguments, self.runs_on, self.choice, frozenset(ids))

    def under_other_names(self, arguments: dict[str, Any]) -> list[Heard]:
        """Which of its names counts, the first or the last, no wire says."""
        return [replace(self.heard(arguments), name=name) for name in self.names if name]


class NotExact(ValueError):
    """This text is not exactly one value."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) != len(pairs):
        raise NotExact("a key stands twice")
    return whole


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotExact("beyond a double")
    return number


def _no_constant(name: str) -> Any:
    raise NotExact(name)


_decoder = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
)


def joined(text: str) -> str | None:
    """The text with the halves of characters joined; None if one is alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            return None
    return text


def exact(text: str) -> dict[str, Any] | None:
    """The object that this text is; one that was written as a JSON string counts too."""
    value = value_of(text)
    if isinstance(value, str):
        value = value_of(value)
    return value if isinstance(value, dict) else None


def value_of(text: str) -> Any:
    """The value of this text, or None."""
    whole = joined(text)
    if whole is None:
        return None
    try:
        value = _decoder.decode(whole.strip())
    except (ValueError, RecursionError):
        return None
    if "\\u" in whole and not _sound(value):
        return None
    return value


def sound_object(value: Any) -> bool:
    """Is this an object of a payload that is exact: no key twice, no half character, no infinity?"""
    return isinstance(value, dict) and not _twice(value) and _sound(value)


def _twice(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value, Twice) or any(map(_twice, value.values()))
    return isinstance(value, list) and any(map(_twice, value))


def _sound(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def arguments_of(call: Open, text: str) -> dict[str, Any] | None:
    """The arguments that a whole text means; None if it means none, or is empty."""
    if call.key is None:
        return exact(text) if text.strip() else None
    whole = joined(text)
    return {call.key: whole} if whole else None


def nothing(call: Open) -> dict[str, Any]:
    """The arguments of a closed call without any text."""
    return {} if call.key is None else {call.key: ""}


def text_in(value: Any) -> str:
    """A text, or nothing."""
    return value if isinstance(value, str) else ""


def name_in(value: Any) -> str:
    """A name, or nothing; half a character makes none."""
    return value if isinstance(value, str) and joined(value) == value else ""


def said_in(value: Any) -> str:
    """An id or a name on a wire that writes ``null`` where it says none."""
    return "" if value in ("null", "None") else name_in(value)


def id_in(value: Any) -> str:
    """An id; a number is one, too."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return name_in(value)


def place_in(value: Any) -> int | None:
    """A number that names a place; some write it as a text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def unknown(said: dict[str, Any], known: set[str]) -> bool:
    """Does it say something that may be text or arguments under a name that nobody knows?"""
    return any(
        bool(value) and isinstance(value, str | dict | list) and name not in known
        for name, value in said.items()
    )
