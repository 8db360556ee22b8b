"""One text for one value: a JSON value in, its canonical JSON (RFC 8785) and checksums out.

Rule: equal calls are equal across providers, whatever order, spaces or number forms their wires
used. Written by hand because no dependency of ours writes RFC 8785, and integers beyond a double
must keep their digits. Without doubles and with keys in ASCII, as most arguments are, orjson writes
the same text ten times as fast.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .written import json_sorted, json_spaced

__all__ = ["canonical", "checksum", "sealed"]


def canonical(value: Any) -> str:
    """``value`` as canonical JSON: RFC 8785 order, numbers and escapes.

    Integers beyond 2**53 keep all their digits (RFC 8785 would round them to a double).

    >>> canonical({"b": 1.0, "a": [1e21, 0.000001, "é"]})
    '{"a":[1e+21,0.000001,"é"],"b":1}'
    """
    return _written(value).decode("utf-8", "surrogatepass")


def _written(value: Any) -> bytes:
    try:
        text = json_sorted(value)
    except TypeError:  # longer integers than it writes, halves of characters, deep nesting
        pass
    else:
        if _is_easy(value, text.isascii()):
            return text
    out: list[str] = []
    _canonical(value, out)
    return "".join(out).encode("utf-8", "surrogatepass")


_EASY = frozenset({str, int, bool, type(None)})


def _is_easy(value: Any, ascii: bool) -> bool:
    """Does orjson write this in the same way? Not doubles, and not the order of all keys.
    ``ascii``: nothing else is in it, so not in its keys either."""
    kind = type(value)
    if kind is dict:
        if not ascii and not "".join(value).isascii():
            return False
        value = value.values()
    elif kind is not list:
        return kind in _EASY
    # Not all(...): a generator would take longer than the few values that arguments have.
    for each in value:  # noqa: SIM110
        if type(each) not in _EASY and not _is_easy(each, ascii):
            return False
    return True


def _canonical(value: Any, out: list[str]) -> None:
    if type(value) is dict:
        mark = "{"
        for key in sorted(value, key=_utf16):
            out.append(f"{mark}{json_spaced(key)}:")
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
    elif type(value) is float:
        out.append(_number(value))
    else:
        out.append(json_spaced(value))


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


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
    digits = (whole + rest).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + rest) - len(digits))
    return digits.rstrip("0"), point


def checksum(name: str, arguments: dict[str, Any]) -> str:
    """sha256 of the canonical JSON of ``{"arguments": …, "name": …}``.

    >>> checksum("f", {"x": 1.0, "y": 2}) == checksum("f", {"y": 2, "x": 1})
    True
    """
    return _digest(name, _written(arguments))


def sealed(name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    """The canonical text of the arguments, and the checksum, of one writing.

    >>> text, digest = sealed("f", {"y": 2, "x": 1})
    >>> text, digest == checksum("f", {"x": 1, "y": 2})
    ('{"x":1,"y":2}', True)
    """
    written = _written(arguments)
    return written.decode("utf-8", "surrogatepass"), _digest(name, written)


def _digest(name: str, written: bytes) -> str:
    global _sha256
    if _sha256 is None:
        from hashlib import sha256  # not needed to read a stream

        _sha256 = sha256
    text = b'{"arguments":%b,"name":%b}' % (written, _named(name))
    digest: str = _sha256(text).hexdigest()
    return digest


_named = lru_cache(maxsize=256)(_written)  # a stream has few names, and tells them often


_sha256: Any = None  # once it was needed: to import it takes half as long as to use it
