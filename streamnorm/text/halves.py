"""Characters cut in two: JSON text with half of a surrogate pair in, values with the half out.

Some servers cut an emoji between two payloads, each with one half as a ``\\uD83D`` escape. The JSON
reader refuses such text, and no half may leave the library, as it cannot be encoded.

Rule: inside the library a half is a lone surrogate, which no whole text can hold, so nothing is ever
mistaken for one. To get past the reader ``masked`` lets a half stand for a private character that
does not occur in that payload, and ``unmasked`` turns it back in whatever was read. ``join`` makes
whole characters of halves that meet; ``core.mend`` does it for events.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

__all__ = [
    "REPLACEMENT",
    "Mask",
    "decoded",
    "ends_open",
    "has_half",
    "join",
    "joined",
    "masked",
    "replaced",
]

T = TypeVar("T")

REPLACEMENT = "\ufffd"
has_half = re.compile("[\ud800-\udfff]").search
ends_open = re.compile("[\ud800-\udbff]$").search
_lone = re.compile("[\ud800-\udfff]")
_escape = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a proper pair
    rb"|\\u([dD][89a-fA-F][0-9a-fA-F]{2})"  # a half
    rb"|\\."  # any other escape, so that \\\\ud83d is not taken for one
)
# Private planes 15 and 16, in blocks of as many characters as there are halves.
_PRIVATE, _BLOCK = 0xF0000, 0x800
_private = re.compile("[\U000f0000-\U0010ffff]")


class Mask:
    """Which private characters stand for halves in one payload."""

    __slots__ = ("_base", "_bytes", "_texts")

    def __init__(self, base: int) -> None:
        last = chr(base + _BLOCK - 1)
        self._base = base
        self._texts = re.compile(f"[{chr(base)}-{last}]")
        # in UTF-8 these are the four-byte forms whose first two bytes are the block's
        self._bytes = re.compile(b"".join((re.escape(chr(base).encode()[:2]), rb"[\x80-\xbf]{2}")))

    def put(self, half: bytes) -> bytes:
        """The private character for the four digits of a half's escape."""
        return chr(self._base + int(half, 16) - 0xD800).encode()

    def unmasked(self, value: Any) -> Any:
        """The value as it was meant: halves are lone surrogates again."""
        if type(value) is str:
            return self._texts.sub(self._half, value)
        if type(value) is dict:
            return {self.unmasked(k): self.unmasked(v) for k, v in value.items()}
        if type(value) is list:
            return [self.unmasked(item) for item in value]
        if isinstance(value, msgspec.Raw):
            return msgspec.Raw(self._bytes.sub(self._escaped, bytes(value)))
        if isinstance(value, msgspec.Struct):
            for field in value.__struct_fields__:
                setattr(value, field, self.unmasked(getattr(value, field)))
        return value

    def _half(self, match: re.Match[str]) -> str:
        return chr(ord(match[0]) - self._base + 0xD800)

    def _escaped(self, match: re.Match[bytes]) -> bytes:
        char = ord(match[0].decode())
        if not self._base <= char < self._base + _BLOCK:
            return match[0]
        return b"\\u%04x" % (char - self._base + 0xD800)


def masked(data: bytes) -> tuple[bytes, Mask] | None:
    """JSON text with every lone half masked, and the mask; None if there is none to mask."""
    if b"\\u" not in data or not any(match[1] for match in _escape.finditer(data)):
        return None
    taken = {(ord(char) - _PRIVATE) // _BLOCK for char in _private.findall(_spelt(data))}
    free = next((n for n in range((0x110000 - _PRIVATE) // _BLOCK) if n not in taken), None)
    if free is None:
        return None  # a payload with a character of every private block is no honest one
    mask = Mask(_PRIVATE + free * _BLOCK)
    return _escape.sub(lambda m: m[0] if m[1] is None else mask.put(m[1]), data), mask


def decoded(data: bytes, decode: Callable[[bytes], T]) -> T:
    """What ``decode`` reads, halves in it as they were said; whatever it raises otherwise."""
    try:
        return decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        mended = masked(data)
        if mended is None:
            raise
    value: T = mended[1].unmasked(decode(mended[0]))
    return value


def replaced(data: bytes) -> bytes:
    """JSON text in which every lone half is U+FFFD: for readers that need no exact text."""
    return _escape.sub(lambda m: m[0] if m[1] is None else b"\\ufffd", data)


def _spelt(data: bytes) -> str:
    """The text in which private characters are to be looked for, escaped ones among it."""
    text = data.decode("utf-8", "replace")
    pairs = re.findall(r"\\u([dD][bB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})", text)
    return text + "".join(join(chr(int(a, 16)) + chr(int(b, 16))) for a, b in pairs)


def join(text: str) -> str:
    """Text with the halves that meet joined; those left alone stay halves."""
    if has_half(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def joined(text: str) -> str:
    """As ``join``, with those left alone replaced: this may leave the library."""
    return _lone.sub(REPLACEMENT, join(text))
