"""A request's body comes in; nothing goes out, but an error for the first place that no JSON has.

Rule: a body is made of objects with texts for keys, lists, texts, numbers, true, false and null, as deep
as anybody means; bytes may stand where a wire takes media. What is anything else is told with the path
to it and with what to pass, before anybody works with it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, TypeAlias

from ..errors import UsageError
from ..text.shown import clean, shorten

__all__ = ["must_be_plain", "place", "the_kind_of"]

DEEPEST = 256  # levels of a body; JSON itself is read to 1,024, and schemas are a few dozen deep
MOST = 2_000_000  # values; the same object in many places counts in each
_SINGLE = (str, int, float, bytes, type(None))

Path: TypeAlias = tuple[Any, ...]  # (path of what is around it, key), or () for the body itself


def must_be_plain(body: Any, root: str = "", most: int = MOST) -> None:
    """``UsageError`` with the path of what is no plain value of a body.

    ``root`` is what a list is called that stands for a whole body.

    >>> must_be_plain({"messages": [{"content": {1, 2}}]})
    Traceback (most recent call last):
    streamnorm.errors.UsageError: messages[0].content is of type set, which no JSON has; pass plain values, \
for an SDK's object those of its model_dump()
    """
    waiting: list[tuple[Any, Path, int]] = [(body, (), 0)]
    seen = 0
    while waiting:
        value, path, depth = waiting.pop()
        seen += 1
        if seen > most:
            raise UsageError(
                f"{place((), root)} has more than {most:,} values: too many to be read"
            )
        if depth > DEEPEST:
            where = place(path, root)[:80]
            raise UsageError(f"{where} … is nested too deeply; the most is {DEEPEST} levels")
        if type(value) is dict or isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise UsageError(
                        f"{place(path, root)} has a key that is {the_kind_of(key)}; keys are texts"
                    )
                if type(item) is not str:
                    waiting.append((item, (path, key), depth + 1))
        elif isinstance(value, list | tuple):
            waiting += [
                (item, (path, number), depth + 1)
                for number, item in enumerate(value)
                if type(item) is not str
            ]
        else:
            _single(value, path, root)


def _single(value: Any, path: Path, root: str) -> None:
    if not isinstance(value, _SINGLE):
        raise UsageError(
            f"{place(path, root)} is of type {type(value).__name__}, which no JSON has; pass plain "
            "values, for an SDK's object those of its model_dump()"
        )
    if isinstance(value, float) and not isfinite(value):
        raise UsageError(f"{place(path, root)} is NaN or Infinity, which JSON cannot say")


def place(path: Path, root: str = "") -> str:
    """A path as one writes it.

    >>> place(((((), "messages"), 3), "content"))
    'messages[3].content'
    """
    keys: list[Any] = []
    while path:
        path, key = path
        keys.append(key)
    text = root
    for key in reversed(keys):
        text += f"[{key}]" if isinstance(key, int) else f".{clean(shorten(key, 40))}"
    return text.removeprefix(".") or "the body"


def the_kind_of(value: Any) -> str:
    """What a value is, in words.

    >>> the_kind_of({}), the_kind_of(7), the_kind_of(None)
    ('an object', 'an int', 'null')
    """
    known = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    if (words := known.get(type(value))) is not None:
        return words
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
