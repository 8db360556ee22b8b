"""What every wire needs to write a take: JSON, SSE lines, ids, fragments, timing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

Json = dict[str, Any]
Piece = str | bytes  # one SSE event, or one chunk of a wire that is not SSE

# One dot of a picture, and four samples of a sound.
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
SOUND = ("AAABAP//", "AgD+/wMA")
MADE = "written by hand after the public wire description"
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Take:
    """One file below recordings/: what it proves, and the wire that proves it."""

    provider: str
    name: str
    model: str
    proves: str
    wire: Sequence[Piece]
    types: tuple[str, ...] = ()
    chunks: bool = False  # the wire is not SSE (or its bytes matter): one event per chunk
    newline: str = "\n"
    suffix: ClassVar[str] = ".sse"

    def header(self) -> Json:
        header: Json = {"provider": self.provider, "model": self.model, "made": MADE}
        header |= {"proves": self.proves, "seed": self._digest("seed")[:32]}
        if self.types:
            header["types"] = list(self.types)
        if self.chunks:
            header["container"] = "chunks"
        return header

    def encode(self) -> bytes:
        lines = [f": streamnorm {dumps(self.header())}\n"]
        for at, piece in zip(self._clock(), self.wire, strict=False):
            lines.append(f": +{at:.3f}\n" if at is not None else "")
            lines.append(_chunk(piece) if self.chunks else str(piece))
        return "".join(lines).replace("\n", self.newline).encode()

    def _clock(self) -> Iterator[float | None]:
        """A time before every third piece: a slow first token, then uneven gaps."""
        gaps = cycle(self._digest("clock"))
        now = 0.25 + int(next(gaps), 16) / 20
        for i in range(len(self.wire)):
            yield round(now, 3) if i % 3 == 0 else None
            now += 0.004 + int(next(gaps), 16) * 0.0063

    def _digest(self, what: str) -> str:
        return hashlib.sha256(f"{what}:{self.provider}/{self.name}".encode()).hexdigest()


def _chunk(piece: Piece) -> str:
    if isinstance(piece, str):
        return f"event: text\ndata: {dumps(piece)}\n\n"
    return f"event: base64\ndata: {base64.b64encode(piece).decode()}\n\n"


def dumps(value: object, comma: str = ",", colon: str = ":") -> str:
    """JSON as providers write it: UTF-8 left alone, half an emoji as its escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(comma, colon))
    if any("\ud800" <= c <= "\udfff" for c in text):
        return json.dumps(value, separators=(comma, colon))
    return text


def spaced(value: object) -> str:
    """Arguments as most models write them: a space after comma and colon."""
    return dumps(value, ", ", ": ")


def sse(payload: object, event: str | None = None) -> str:
    """One SSE event."""
    data = payload if isinstance(payload, str) else dumps(payload)
    return (f"event: {event}\n" if event else "") + f"data: {data}\n\n"


def comment(text: str) -> str:
    return f": {text}\n\n"


DONE = sse("[DONE]")


def ident(prefix: str, *of: object, size: int = 22) -> str:
    """An id in the provider's style, the same in every run."""
    of = (prefix, *of)
    number = int.from_bytes(hashlib.sha512("/".join(map(str, of)).encode()).digest(), "big")
    digits = []
    for _ in range(size):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return prefix + "".join(digits)


def opaque(*of: object, size: int = 60) -> str:
    """A signature or an encrypted blob: base64 that means nothing."""
    blob = hashlib.shake_256("/".join(map(str, of)).encode()).digest(size)
    return base64.b64encode(blob).decode()


def fragments(text: str, sizes: Iterable[int] = (5, 17, 9, 24, 13)) -> list[str]:
    """The text in uneven pieces, as a model's tokens would cut it."""
    pieces: list[str] = []
    for size in cycle(sizes):
        if not text:
            return pieces
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def cut_after(wire: bytes, edges: bytes) -> list[bytes]:
    """The same bytes, cut after each of these."""
    ends = [i + 1 for i, byte in enumerate(wire) if byte in edges]
    starts = [0, *ends]
    return [wire[a:b] for a, b in zip(starts, [*ends, len(wire)], strict=True) if b > a]


def rechunk(wire: bytes, sizes: Iterable[int]) -> list[bytes]:
    """The same bytes, cut where it hurts."""
    chunks: list[bytes] = []
    for size in cycle(sizes):
        if not wire:
            return chunks
        chunks.append(wire[:size])
        wire = wire[size:]
    return chunks
