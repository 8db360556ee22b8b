"""One JSON value per line, and a body that is one JSON value: bytes in, payloads out."""

from __future__ import annotations

from ..framing import Fields

__all__ = ["Lines", "Whole"]


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
