"""JSON without surprises: argument text in, an exact value or a named refusal out.

Rule: a value leaves here only if it is what the text says. Big integers stay integers; NaN,
Infinity, numbers beyond a double, duplicate keys, lone surrogates and depth beyond the limit are
refused, never rounded, dropped or guessed.

Written by hand because no parser refuses duplicate keys: msgspec reads (exact integers, no NaN, a
fifth of stdlib json's time), and the standard library judges only when the count of keys leaves
room for doubt.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import Any

import msgspec

MAX_DEPTH = 128
# Levels of a whole payload, counted here: how deep the readers go differs by version of Python, and
# by how deep its own calls are. All of them go deeper than this.
DEEPEST = 512
SHALLOW = 2 * DEEPEST  # so many bytes cannot hold more levels, opened and closed

_read = msgspec.json.Decoder().decode
_space_before_colon = re.compile(r'"[ \t\n\r]+:').search
_brackets = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}\[\]]', re.S).finditer
_half = re.compile(r"[\ud800-\udfff]").search
# What any of the readers can throw at bad text; the reasons are told apart by `refusal`.
UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class Refused(ValueError):
    """The text is not exact JSON; the message says what is wrong with it."""


def parse(text: str, max_depth: int = MAX_DEPTH) -> Any:
    """The value of ``text``, or ``Refused``.

    >>> parse('{"id": 1180591620717411303424}')
    {'id': 1180591620717411303424}
    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    streamnorm.text.exact.Refused: the key 'a' stands twice in one object
    """
    try:
        value = _read(text)
    except UNREADABLE:
        return _judge(text, max_depth)
    colons = text.count(":")  # every key said has one of its own
    if type(value) is dict and len(value) == colons and "[" not in text and max_depth > 1:
        return value  # so what is inside has no keys, and nothing inside it
    keys = _counted(value, max_depth)
    if keys == colons:
        return value
    # Every key is followed by '":'. If there are as many of those as keys in the value, and none
    # can hide behind white space before its colon, then no key was said twice.
    said = text.count('":')
    if said != keys and '\\\\":' not in text:  # (there a key ends with a backslash)
        said -= text.count('\\":')  # in a text, as in one that holds JSON, a quote is escaped
    if said != keys or _space_before_colon(text):
        return _judge(text, max_depth)
    return value


def is_deep(data: bytes) -> bool:
    """Is this payload nested deeper than ``DEEPEST`` levels?

    >>> is_deep(b'{"a":' * 512 + b"1" + b"}" * 512), is_deep(b'{"a":' * 513 + b"1" + b"}" * 513)
    (False, True)
    """
    if len(data) <= SHALLOW or data.count(b"{") + data.count(b"[") <= DEEPEST:
        return False
    depth = 0
    for found in _brackets(data, data.find(b"{")):
        depth += _STEPS.get(found[0], 0)
        if depth > DEEPEST:
            return True
    return False


_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def count_keys(value: Any, depth: int) -> int:
    """How many object keys are in ``value``, all levels together."""
    if type(value) is dict:
        count, children = len(value), list(value.values())
    elif type(value) is list:
        count, children = 0, value
    else:
        return 0
    for child in children:
        if type(child) is dict or type(child) is list:
            if depth <= 1:
                raise Refused("nested too deeply")
            count += count_keys(child, depth - 1)
    return count


def _judge(text: str, max_depth: int) -> Any:
    """The slow and strict reading, by the standard library with every door closed."""
    import json

    try:
        value = _strict().decode(text)
    except RecursionError:
        raise Refused(f"nested deeper than {max_depth} levels") from None
    except json.JSONDecodeError as error:
        raise Refused(f"{error.msg} at character {error.pos}") from None
    except Refused:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise Refused(str(error)) from None
    _counted(value, max_depth)
    if ("\\u" in text and _has_half(value)) or _half(text):
        raise Refused("half of a surrogate pair")
    return value


def _counted(value: Any, max_depth: int) -> int:
    try:
        return count_keys(value, max_depth)
    except Refused:
        raise Refused(f"nested deeper than {max_depth} levels") from None


def _has_half(value: Any) -> bool:
    if type(value) is str:
        return _half(value) is not None
    if type(value) is dict:
        return any(_has_half(k) or _has_half(v) for k, v in value.items())
    return type(value) is list and any(map(_has_half, value))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) != len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key, count in times.items() if count > 1)
        raise Refused(f"the key {twice!r} stands twice in one object")
    return whole


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Refused("a number is beyond a double")
    return number


def _no_constant(name: str) -> Any:
    raise Refused(f"{name} is not JSON")


@cache
def _strict() -> Any:
    import json  # here, as most streams never need it

    return json.JSONDecoder(
        object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
    )
