"""JSON without surprises: argument text in, an exact value or a named refusal out.

Rule: a value leaves here only if it is what the text says. Big integers stay integers; NaN,
Infinity, numbers beyond a double, duplicate keys, lone surrogates and depth beyond the limit are
refused, never rounded, dropped or guessed.

Written by hand because no parser refuses duplicate keys: msgspec reads (exact integers, no NaN, a
fifth of stdlib json's time), and the standard library judges only when the count of keys leaves
room for doubt.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

import msgspec

MAX_DEPTH = 128

_read = msgspec.json.Decoder().decode
_space_before_colon = re.compile(r'"[ \t\n\r]+:').search
_half = re.compile(r"[\ud800-\udfff]").search
# What any of the readers can throw at bad text; the reasons are told apart by `refusal`.
UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class Refused(ValueError):
    """The text is not exact JSON; the message says what is wrong with it."""


def parse(text: str, *, max_depth: int = MAX_DEPTH) -> Any:
    """The value of ``text``, or ``Refused``.

    >>> parse('{"id": 1180591620717411303424}')
    {'id': 1180591620717411303424}
    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    streamnorm.exact.Refused: the key 'a' stands twice in one object
    """
    try:
        value = _read(text)
    except UNREADABLE:
        return _judge(text, max_depth)
    # Every key is followed by '":'. If there are as many of those as keys in the value, and none
    # can hide behind white space before its colon, then no key was said twice.
    said = text.count('":')
    if type(value) is dict and said == len(value) and "[" not in text and text.rfind("{") == 0:
        if '" ' not in text and text.isprintable():  # a flat object without odd spaces: the usual
            return value
    elif said != _counted(value, max_depth):
        return _judge(text, max_depth)
    return _judge(text, max_depth) if _space_before_colon(text) else value


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
    try:
        value = _strict.decode(text)
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


_strict = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
)


# --- canonical form -----------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """``value`` as canonical JSON: RFC 8785 order, numbers and escapes.

    Integers beyond 2**53 keep all their digits (RFC 8785 would round them to a double).

    >>> canonical({"b": 1.0, "a": [1e21, 0.000001, "é"]})
    '{"a":[1e+21,0.000001,"é"],"b":1}'
    """
    out: list[str] = []
    _canonical(value, out)
    return "".join(out)


def _canonical(value: Any, out: list[str]) -> None:
    if type(value) is dict:
        mark = "{"
        for key in sorted(value, key=_utf16):
            out.append(f"{mark}{_string(key)}:")
            _canonical(value[key], out)
            mark = ","
        out.append("}" if value else "{}")
    elif type(value) is list:
        mark = "["
        for item in value:
            out.append(mark)
            _canonical(item, out)
            mark = ","
        out.append("]" if value else "[]")
    elif type(value) is str:
        out.append(_string(value))
    elif type(value) is float:
        out.append(_number(value))
    else:
        out.append(json.dumps(value))


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(number: float) -> str:
    """A double as ECMAScript writes it: decimal from 1e-6 up to 1e21, exponent outside."""
    if number == 0:
        return "0"
    sign, (digits, point) = "-" if number < 0 else "", _shortest(abs(number))
    if 0 < point <= 21:
        whole, rest = digits[:point].ljust(point, "0"), digits[point:]
        return f"{sign}{whole}.{rest}" if rest else sign + whole
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}e{point - 1:+d}"


def _shortest(number: float) -> tuple[str, int]:
    """The shortest digits that mean this double, and where the decimal point stands in them."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, rest = mantissa.partition(".")
    rest = "" if rest == "0" else rest
    digits = (whole + rest).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + rest) - len(digits))
    return digits.rstrip("0"), point


def checksum(name: str, arguments: dict[str, Any]) -> str:
    """sha256 of the canonical JSON of ``{"arguments": …, "name": …}``.

    >>> checksum("f", {"x": 1.0, "y": 2}) == checksum("f", {"y": 2, "x": 1})
    True
    """
    import hashlib  # not needed to read a stream

    text = canonical({"name": name, "arguments": arguments})
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
