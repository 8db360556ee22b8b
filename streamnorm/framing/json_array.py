"""A JSON array streamed element by element: bytes in any chunking in, elements out.

Rule: an element is told when its own last bracket has come, never earlier; commas, white space and
the array's brackets are dropped. Whatever else stands between elements is told as one, and so is what
follows the array, at the very end: elements of another one, sent again by a relay, are none of this.
Written by hand: the two streaming parsers on PyPI hand out parsed trees, and we need each element's
bytes. Only structural bytes are looked at, each once.
"""

from __future__ import annotations

import re

from ..framing import Fields

__all__ = ["JsonArray"]

_outside = re.compile(rb'["{}\[\]]')  # what matters outside of a string …
_inside = re.compile(rb'["\\]')  # … and inside of one
_NOTHING = b", \t\r\n"  # between elements


class JsonArray:
    """An incremental splitter of one top-level array.

    >>> array = JsonArray()
    >>> array.feed(b'[{"a": "}'), array.feed(b'"}\\n,{}'), array.feed(b"]")
    ([], [b'{"a": "}"}', b'{}'], [])
    """

    _around = 1  # brackets around an element: those of the array itself

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self.overflow = False
        self.single_lines = True
        self.closed = False  # the array's own end was seen
        self._limit = limit
        self._held: list[bytes] = []
        self._loose: list[bytes] = []  # what stands between two elements, and is none
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._skip = 0  # bytes to skip: the one after a backslash at the end of a chunk

    def feed(self, chunk: bytes) -> list[bytes]:
        """The elements that ended in this chunk."""
        elements: list[bytes] = []
        if self.closed:
            self._stray(chunk)
            return elements
        around = self._around
        begin = 0 if self._depth > around else None
        between = 0 if self._depth == around else None
        at, self._skip = self._skip, 0
        while True:
            match = (_inside if self._in_string else _outside).search(chunk, at)
            if match is None:
                break
            at = match.end()
            byte = match[0]
            if self._in_string:
                if byte == b"\\":
                    at += 1
                else:
                    self._in_string = False
            elif byte == b'"':
                self._in_string = True
            elif byte in b"{[":
                self._depth += 1
                if self._depth == around + 1:
                    begin = match.start()
                    self._stray(chunk[between:begin])
                    if self.overflow:
                        return elements
                    elements += self._swept()
                    between = None
                elif self._depth == 1:
                    between = at
            else:
                self._depth -= 1
                if self._depth == around and begin is not None:
                    element = self._whole(chunk[begin:at])
                    if self.overflow:
                        return elements
                    elements.append(element)
                    begin, between = None, at
                elif self._depth <= 0:
                    if between is not None:
                        self._stray(chunk[between : match.start()])
                        if self.overflow:
                            return elements
                        elements += self._swept()
                    self._depth, self.closed, between = 0, True, None
                    self._stray(chunk[at:])
                    break
        self._skip = max(0, at - len(chunk))
        if begin is not None:
            self._hold(chunk[begin:])
        elif between is not None:
            self._stray(chunk[between:])
        return elements

    def rest(self) -> list[bytes]:
        """An element without its last bracket, which is not whole."""
        held = b"".join(self._held)
        return [held] if held else self._swept()

    def head_of(self, frame: bytes) -> bytes:
        """Nothing: an element is its own payload."""
        return b""

    def read(self, frame: bytes) -> Fields:
        """An element is its own payload."""
        return Fields(frame)

    def _whole(self, last: bytes) -> bytes:
        self._held.append(last)
        whole = b"".join(self._held)
        self._held, self._size = [], 0
        self.overflow = len(whole) > self._limit
        return whole

    def _stray(self, piece: bytes) -> None:
        """What stands between two elements, usually a comma; white space before it does not count."""
        if stray := piece if self._loose else piece.lstrip(_NOTHING):
            self._loose.append(stray)
            self._grow(len(stray))

    def _swept(self) -> list[bytes]:
        if not self._loose:
            return []
        stray, self._loose, self._size = b"".join(self._loose).strip(_NOTHING), [], 0
        return [stray]

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._grow(len(piece))

    def _grow(self, size: int) -> None:
        self._size += size
        self.overflow = self._size > self._limit
