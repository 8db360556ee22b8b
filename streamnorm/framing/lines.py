"""One JSON value per line, one behind the other, or one that is the body: bytes in, payloads out."""

from __future__ import annotations

import re

from ..framing import LF, Fields
from .json_array import JsonArray

__all__ = ["Lines", "Values", "Whole"]


class Lines:
    """NDJSON. A line ends with LF or CRLF; blank lines are dropped.

    >>> lines = Lines()
    >>> lines.feed(b'{"a":1}\\n{"b"'), lines.feed(b":2}\\r\\n")
    ([b'{"a":1}'], [b'{"b":2}'])
    """

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self.overflow = False
        self.single_lines = True
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ended in this chunk."""
        first, *others = chunk.split(b"\n")
        self._held.append(first)
        self._size += len(first)
        if not others:
            self.overflow = self._size > self._limit
            return []
        lines = [b"".join(self._held), *others]
        rest = lines.pop()
        self._held, self._size = [rest], len(rest)
        return [line for line in map(bytes.strip, self._up_to_limit(lines)) if line]

    def rest(self) -> list[bytes]:
        """The last line, if the input ended without a line end."""
        line = b"".join(self._held).strip()
        self._held = []
        return [line] if line else []

    def head_of(self, frame: bytes) -> bytes:
        """Nothing: a line is its own payload."""
        return b""

    def read(self, frame: bytes) -> Fields:
        """A line is its own payload."""
        return Fields(frame)

    def _up_to_limit(self, lines: list[bytes]) -> list[bytes]:
        """Of lines as they came: the white space around them counts, as it does while it is held."""
        for number, line in enumerate(lines):
            if len(line) > self._limit:
                self.overflow = True
                return lines[:number]
        self.overflow = self._size > self._limit
        return lines


class Whole(Lines):
    """A body that is one JSON value and no stream at all: told at the end of input."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Nothing yet."""
        self._held.append(chunk)
        self._size += len(chunk)
        self.overflow = self._size > self._limit
        return []


class Values:
    """JSON objects one behind the other, as the messages of a WebSocket are when they are joined.

    What follows the first one decides: with a line end they are lines from there on, and one that is
    damaged is only that line. Without, an object ends with its last bracket.

    >>> values = Values()
    >>> values.feed(b'{"a":1}{"b"'), values.feed(b":2} x {}")
    ([b'{"a":1}'], [b'{"b":2}', b'x', b'{}'])
    """

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self.overflow = False
        self.single_lines = True
        self._limit = limit
        self._one = _One(limit)
        self._inside = False  # an object has begun and not ended
        self._told = 0  # objects; behind the first it is decided …
        self._lines: Lines | None = None  # … whether they are lines
        self._junk: list[bytes] = []  # between two objects: a frame of its own, as it is none
        self._junk_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The objects that ended in this chunk."""
        frames: list[bytes] = []
        at = 0
        while at < len(chunk) and not self.overflow:
            if self._lines is not None:
                frames += self._lines.feed(chunk[at:])
                self.overflow = self._lines.overflow
                break
            at = (self._within if self._inside else self._between)(chunk, at, frames)
        return frames

    def rest(self) -> list[bytes]:
        """What was left when the input ended."""
        if self._lines is not None:
            return self._lines.rest()
        return [frame for frame in (*self._one.rest(), self._swept()) if frame]

    def head_of(self, frame: bytes) -> bytes:
        """Nothing: an object is its own payload."""
        return b""

    def read(self, frame: bytes) -> Fields:
        """An object is its own payload."""
        return Fields(frame)

    def _within(self, chunk: bytes, at: int, frames: list[bytes]) -> int:
        """Up to the next bracket that may be its last one."""
        found = _closing(chunk, at)
        end = found.end() if found else len(chunk)
        if told := self._one.feed(chunk[at:end]):
            frames += told
            self._told += 1
            self._inside = False
        self.overflow = self._one.overflow
        return end

    def _between(self, chunk: bytes, at: int, frames: list[bytes]) -> int:
        if not self._junk:
            found = _text(chunk, at)
            if found is None:
                return len(chunk)
            at = found.start()
            if self._told == 1 and chunk[at] == LF:
                self._lines = Lines(self._limit)
                return at
        begins = _opening(chunk, at)
        end = begins.start() if begins else len(chunk)
        self._junk.append(chunk[at:end])
        self._junk_size += end - at
        self.overflow = self._junk_size > self._limit
        if begins and not self.overflow:
            self._inside = True
            frames += filter(None, [self._swept()])
        return end

    def _swept(self) -> bytes:
        junk, self._junk, self._junk_size = b"".join(self._junk).strip(), [], 0
        return junk


class _One(JsonArray):
    """One object, and then the next: there is no array around them."""

    _around = 0


_closing = re.compile(rb"[}\]]").search
_opening = re.compile(rb"[{\[]").search
_text = re.compile(rb"[^ \t\r]").search
