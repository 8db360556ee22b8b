"""Payloads that differ in one text alone: one that was read in full in, the texts of others out.

Rule: every byte of a payload is either compared or read. A stencil has the bytes before the text and
those behind it: these are compared, and what is between them is read as the JSON string that it must
be. If it is one, the payload says what the first one said, but with this text; else, whatever the
reason, it is read in full. At its end a payload may have padding of letters and digits, which says
nothing.

This pays where reading in full is dear, as the payloads of a wire are deep (``make bench``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["NEVER", "Stencil", "read_text"]

_string = re.compile(rb'[ \t]*("(?:[^"\\]|\\.)*+")').match
read_text = msgspec.json.Decoder(str).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
_SOON, _LATE = 8, 4096  # payloads of one place that are read in full before one is learnt
NEVER = b"\0"  # no payload begins so
# The texts and the padding that a new stencil is tried with.
_PROBES = (("é\\u00e9", "éé", b"q"), ("", "", b"7aZ"))


class Stencil:
    """Payloads of one place, alike but for their text."""

    __slots__ = ("_behind", "_count", "_end", "_last", "_patience", "before", "place", "used")

    def __init__(self) -> None:
        self.before = NEVER  # how these payloads begin, up to their text
        self.place: Any = None  # of what they say something, in the words of the wire
        self.used = False  # since it was learnt
        self._behind = self._end = b""
        self._last: Any = self  # the place of the last payload that was read in full …
        self._count = 0  # … and how many were, one after the other
        self._patience = _SOON

    def text(self, rest: bytes) -> str:
        """The text of a payload whose ``rest`` is behind ``before``; nothing: read it in full."""
        if self._end:
            rest, _, padding = rest.rpartition(b':"')
            pad = padding.removesuffix(self._end)  # itself if it ends otherwise
            if pad is padding or not pad.isalnum():
                return ""
        token = rest.removesuffix(self._behind)
        if token is rest:
            return ""
        try:
            text = read_text(token)
        except _UNREADABLE:
            return ""
        self.used = True
        return text

    def is_due(self, place: Any) -> bool:
        """A payload of this place was read in full. Is it to be learnt? Not where places alternate,
        and ever more seldom where nothing comes of it."""
        if place != self._last:
            self._last, self._count = place, 0
        self._count += 1
        return self._count > self._patience

    def learn(
        self, data: bytes, key: bytes, padding: bytes, says: Callable[[bytes, str, str], bool]
    ) -> None:
        """Cut the string behind ``key`` out of a payload, and that of ``padding`` at its end.
        ``says``: is this read as the same payload with that text and padding? Else nothing is learnt.
        """
        self._patience = _SOON if self.used else min(2 * self._patience, _LATE)
        self._count, self.used, self.before = 0, False, NEVER
        found = _string(data, data.find(key) + len(key)) if key in data else None
        if found is None:
            return
        before, behind, end = data[: found.start(1)], data[found.end(1) :], b""
        if (at := behind.rfind(padding + b':"')) >= 0:
            at += len(padding)
            behind, end = behind[:at], b'"' + behind[at + 2 :].partition(b'"')[2]
        for written, text, pad in _PROBES:
            padded = b':"' + pad + end if end else b""
            made = b'%b"%b"%b%b' % (before, written.encode(), behind, padded)
            try:
                if not says(made, text, pad.decode() if end else ""):
                    return
            except _UNREADABLE:
                return
        self.before, self.place, self._behind, self._end = before, self._last, behind, end
