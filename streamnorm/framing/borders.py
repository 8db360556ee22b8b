"""Where frames end: bytes in any chunking in, places between them out. The bytes stay as they are.

Rule: a place is told when the bytes before it are whole frames, never earlier; nothing is decoded.
Server-sent events need no memory but their last bytes (``last_end``, ``all_ends``). For any other
framing ``borders_of`` gives one that is fed every chunk.
"""

from __future__ import annotations

import re
from typing import Protocol

from ..framing import CR
from .aws import Frames
from .json_array import JsonArray

__all__ = ["REACH", "Borders", "all_ends", "borders_of", "last_end"]

REACH = 3  # bytes of an end, at most, that can stand before the chunk in which it is complete
# Two line ends, each of which is CR LF, LF or CR; one CR LF is not two of them.
_end = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_line = re.compile(rb"\n")
_closing = re.compile(rb"[}\]]")


def last_end(data: bytes) -> int:
    """Where the last server-sent event of ``data`` ends; 0 if none does.

    >>> last_end(b"data: 1\\n\\ndata: 2"), last_end(b"data: 1\\r\\n\\r\\n"), last_end(b"data: 1\\r\\n")
    (9, 11, 0)
    """
    at = data.rfind(b"\n\n") + 2
    if CR not in data:
        return at if at > 1 else 0
    at = max(at if at > 1 else 0, data.rfind(b"\r\n\r\n") + 4 if b"\r\n\r\n" in data else 0)
    for found in _end.finditer(data, at):
        at = found.end()
    return at


def all_ends(data: bytes) -> list[int]:
    """Where each server-sent event of ``data`` ends, which begins where one does."""
    return [found.end() for found in _end.finditer(data)]


class Borders(Protocol):
    """Of the frames of one body."""

    def __init__(self, limit: int) -> None: ...

    def ends(self, chunk: bytes) -> list[int]:
        """Where in this chunk frames end."""


def borders_of(start: str, limit: int) -> Borders:
    """For a body that begins so (see ``framing.sniff``)."""
    kinds: dict[str, type[Borders]] = {"array": _Elements, "aws": _Binary}
    return kinds.get(start, _Lines)(limit)


class _Lines:
    def __init__(self, limit: int) -> None:
        pass

    def ends(self, chunk: bytes) -> list[int]:
        return [found.end() for found in _line.finditer(chunk)]


class _Elements:
    """Of an array: behind the last bracket of each."""

    def __init__(self, limit: int) -> None:
        self._array = JsonArray(limit)

    def ends(self, chunk: bytes) -> list[int]:
        ends, at = list[int](), 0
        for found in _closing.finditer(chunk):
            if self._array.feed(chunk[at : found.end()]):
                ends.append(found.end())
            at = found.end()
        self._array.feed(chunk[at:])
        return ends


class _Binary:
    """Of AWS: each says how long it is."""

    def __init__(self, limit: int) -> None:
        self._frames = Frames(limit)
        self._begun = 0  # bytes of a frame that has not ended

    def ends(self, chunk: bytes) -> list[int]:
        ends, at = list[int](), -self._begun
        for frame in self._frames.feed(chunk):
            at += len(frame)
            ends.append(at)
        self._begun = len(chunk) - at
        return ends
