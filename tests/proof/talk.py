"""A stream as frames: payloads in, the bytes of a body out, in one of the ways servers write them.

Rule: a frame is a value; damage makes new frames and never changes one. What servers may choose
(line ends, byte order mark, event lines, comments, escapes) is in ``Style`` and nowhere else.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Comment(str):
    """A line that says nothing."""


class Raw(str):
    """Data that is written as it stands, JSON or not."""


class Frame(NamedTuple):
    """One event: its payload, the name beside it, whether it is about a call, and its number."""

    payload: Any
    event: str = ""
    about: bool = False
    number: int | None = None


@dataclass
class Said:
    """A call that a conversation says: the truth that both readings are held against."""

    id: str | None
    name: str
    arguments: dict[str, Any]
    runs_on: str = "client"
    choice: int = 0
    conflated: bool = False  # its id is that of its item


@dataclass
class Style:
    """How a server writes its frames."""

    framing: str = "sse"
    newline: str = "\n"
    bom: bool = False
    events: bool = True  # event lines beside the data
    space: str = " "
    ascii: bool = True
    separators: tuple[str, str] = (",", ":")
    lines: bool = False  # one data line for each line of pretty JSON
    ids: bool = False

    @classmethod
    def at_random(cls, dice: random.Random, framing: str, events: bool) -> Style:
        if framing in ("aws", "lines", "array"):
            compact = dice.random() < 0.7
            return cls(
                framing, dice.choice(("\n", "\r\n")), ascii=dice.random() < 0.6,
                separators=(",", ":") if compact else (", ", ": "),
            )  # fmt: skip
        return cls(
            "sse", dice.choice(("\n", "\n", "\n", "\r\n", "\r\n", "\r")), dice.random() < 0.08,
            not events or dice.random() < 0.9, dice.choice((" ", " ", "")), dice.random() < 0.6,
            dice.choice(((",", ":"), (",", ":"), (", ", ": "))), dice.random() < 0.04,
            dice.random() < 0.05,
        )  # fmt: skip

    def data(self, payload: Any) -> str:
        if isinstance(payload, str) and isinstance(payload, Raw):
            return str(payload)
        indent = 1 if self.lines else None
        separators = (",", ": ") if self.lines else self.separators
        text = json.dumps(payload, ensure_ascii=self.ascii, separators=separators, indent=indent)
        if not self.ascii and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                text = json.dumps(payload, separators=separators, indent=indent)
        return text

    def write(self, frame: Frame) -> bytes:
        """One frame as bytes."""
        if self.framing == "aws":
            return aws_message(frame, self.data(frame.payload).encode("utf-8", "replace"))
        end = self.newline
        if isinstance(frame.payload, Comment):
            return f":{frame.payload}{end}{end}".encode() if self.framing == "sse" else b""
        data = self.data(frame.payload)
        if self.framing != "sse":
            return (data + (end if self.framing == "lines" else "")).encode("utf-8", "replace")
        head = f"event:{self.space}{frame.event}{end}" if self.events and frame.event else ""
        if frame.number is not None or self.ids:
            head += f"id:{self.space}{7 if frame.number is None else frame.number}{end}"
        for line in data.split("\n"):
            head += f"data:{self.space}{line}{end}"
        return (head + end).encode("utf-8", "replace")

    def body(self, frames: list[Frame]) -> bytes:
        """All frames as one body."""
        pieces = [self.write(frame) for frame in frames]
        if self.framing == "array":
            between = b"," + self.newline.encode()
            return b"[" + between.join(p for p in pieces if p) + b"]"
        return (b"\xef\xbb\xbf" if self.bom else b"") + b"".join(pieces)


def aws_message(frame: Frame, payload: bytes) -> bytes:
    """An AWS event stream message with good checksums."""
    kind, _, name = frame.event.rpartition("/")
    headers = b"".join(
        bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(value)) + value
        for key, value in (
            (f":{kind or 'event'}-type".encode(), name.encode()),
            (b":content-type", b"application/json"),
            (b":message-type", (kind or "event").encode()),
        )
    )
    head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


@dataclass
class Talk:
    """A whole stream: its frames, how they are written, and the calls it says."""

    wire: str
    frames: list[Frame]
    said: list[Said]
    style: Style = field(default_factory=Style)

    @property
    def body(self) -> bytes:
        return self.style.body(self.frames)
