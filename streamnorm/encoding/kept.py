"""What a model said in a body comes in, and the turn that was read of it; what is in no part goes out.

Rule: a value is kept if it stands anywhere in the turn, also within a longer text. What a block says
that it is, and who speaks, are no values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..conversation import Turn

__all__ = ["unkept"]

_NO_VALUES = ("type", "role")
_MOST = 50  # names that are told of one turn: each is looked for in all of it


def unkept(entries: Any, turn: Turn, usual: Mapping[str, Any]) -> list[str]:
    """The names of fields whose values are not in the turn, each once; ``usual`` values say nothing.

    >>> from streamnorm import Text
    >>> unkept([{"content": "Hi", "mood": "good"}], Turn("assistant", (Text("Hi there"),)), {})
    ['mood']
    """
    held = {value for _, value in _values("", msgspec.to_builtins(turn))}
    whole = "\0".join(value for value in held if isinstance(value, str))
    lost: dict[str, None] = {}
    for field, value in _values("", entries):
        if field in lost or field in _NO_VALUES or value in held or usual.get(field) == value:
            continue
        if not isinstance(value, str) or value not in whole:
            lost[field] = None
        if len(lost) == _MOST:
            break
    return list(lost)


def _values(field: str, said: Any) -> Iterator[tuple[str, Any]]:
    """Texts and numbers, each with the field that it stands in."""
    if isinstance(said, dict):
        for key, inner in said.items():
            yield from _values(key, inner)
    elif isinstance(said, list | tuple):
        for inner in said:
            yield from _values(field, inner)
    elif said and not isinstance(said, bool):
        yield field, said
