"""Framing: bytes in any chunking in, frames out.

Rule: no JSON is read here and no provider is known; limits fall at the same byte in any chunking.

A framer has ``feed(chunk) -> frames``, ``rest() -> frames`` (what was left at the end of input),
``overflow`` (a frame grew beyond the limit), ``head_of(frame)``, what stands before its payload, and
``read(frame) -> Fields`` for frames that are not one payload behind a head.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["CR", "LF", "Fields", "Framer", "sniff"]

LF, CR = 10, 13  # as numbers: looking for a byte is ten times as fast as for bytes


class Fields(NamedTuple):
    """What a frame said: its data (None: nothing to dispatch), its event name, and oddities."""

    data: bytes | None
    event: str = ""
    comments: int = 0
    error: bytes | None = None
    strays: int = 0  # lines that are neither a field nor a comment
    id: bytes = b""  # what stands beside the data, on wires that number their events


class Framer(Protocol):
    """What the normalizer needs of a framing."""

    overflow: bool
    single_lines: bool  # no frame of the last chunk can have a line beside its payload

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that ended in this chunk."""

    def rest(self) -> list[bytes]:
        """What was left when the input ended."""

    def head_of(self, frame: bytes) -> bytes:
        """What stands before the payload of a usual frame; of an unusual one, all of it."""

    def read(self, frame: bytes) -> Fields:
        """Any frame, read by the rules of the framing."""


# How a body begins -> what it is. None: too short to tell.
def sniff(first: bytes) -> str | None:
    """What the first bytes of a body say about it: gzip, html, json, array, aws or text."""
    start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start or b"\xef\xbb\xbf".startswith(first) or first == b"\x1f":
        return None
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    if first[:1] == b"\x00":
        return "aws"
    return {b"<": "html", b"{": "json", b"[": "array"}.get(start[:1], "text")
