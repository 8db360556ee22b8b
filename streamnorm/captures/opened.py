"""A file or a pipe comes in; the streams in it go out while it is read.

    for one in opened(file, name="a.sse"):
        ...          # Left, or (part, bit): see captures.tape

Rule: a file of any size takes little memory where its form allows that: takes, bodies and sessions of
agent programs, gzip'd or not. A pipe is read as it comes. What ids are minted from, where a file does
not say it, is a digest of its bytes; of a pipe nobody can know that, so it is made up there, as for any
live stream.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import BinaryIO, TypeAlias

from ..errors import RecordingError
from ..takes.format import BOM, HEADER, Reader
from . import Left, streams_of
from .packed import packing_of, unpacked
from .strangers import HEAD, NoStream, form_of, lanes_of
from .tape import Bit, Part, parts, parts_of_take

__all__ = ["IN_PIECES", "Opened", "opened"]

Opened: TypeAlias = Iterator[Left | tuple[Part, Bit | None]]
PIECE = 256 * 1024
IN_PIECES = ("take", "sse", "ndjson", "json", "aws", "session")


def opened(
    file: BinaryIO,
    *,
    name: str,
    provider: str | None = None,
    seed: str | None = None,
    advance: Callable[[int], None] = lambda size: None,
) -> Opened:
    """Its streams; ``advance`` is told how many bytes were read. It raises ``OSError`` alone."""
    try:
        yield from _opened(file, name, provider, seed, advance)
    except RecordingError as error:
        yield Left(name, str(error).removeprefix(name).lstrip(", "))


def _opened(
    file: BinaryIO,
    name: str,
    provider: str | None,
    seed: str | None,
    advance: Callable[[int], None],
) -> Opened:
    again = _is_seekable(file)
    meter = _Meter(advance)
    begun, rest = _begun(_unpacked(meter.read(file), name), provider, whole=again)
    try:
        form = form_of(begun, whole=rest is None, provider=provider)
    except NoStream as none:
        if rest is None or begun.lstrip()[:1] not in (b"{", b"["):
            yield Left(name, none.why)
            return
        form = ""  # one long value, of which only the end tells more
    if form not in IN_PIECES:
        yield from _whole(chain([begun], rest or ()), name, provider)
        return
    if rest is None or not again or seed or _names_seed(begun):
        pieces: Iterator[bytes] = chain([begun], rest or ())
        seed = seed or (_digest(iter([begun]), name) if rest is None and again else None)
    else:
        with meter.paused():
            seed = _digest(chain([begun], rest), name)
        file.seek(0)
        pieces = _unpacked(meter.read(file), name)
    lanes = lanes_of(begun) if form == "session" else None
    for part, bit in parts(pieces, name=name, seed=seed, lanes=lanes):
        part.nth, part.form = (part.number if part.shares else None), form
        part.name = name if part.nth is None else f"{name}#{part.nth}"
        yield part, bit


def _whole(pieces: Iterator[bytes], name: str, provider: str | None) -> Opened:
    for one in streams_of(b"".join(pieces), name=name, provider=provider):
        if isinstance(one, Left):
            yield one
            continue
        for part, bit in parts_of_take(one.take):
            part.name, part.form = one.name, one.form
            part.nth = int(one.name[len(name) + 1 :]) if one.name != name else None
            yield part, bit


# --- the bytes ------------------------------------------------------------------------------------


def _is_seekable(file: BinaryIO) -> bool:
    try:
        return file.seekable() and file.tell() == 0
    except (OSError, ValueError):
        return False


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """What is there, without waiting for more."""
    if isinstance(file, io.BufferedReader):
        while piece := file.read1(PIECE):
            yield piece
    else:
        while piece := file.read(PIECE):
            yield piece


def _unpacked(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same, and what is in them if they are packed; four bytes tell."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) > 3:
            break
    whole = chain([head], pieces)
    packing = packing_of(head)
    return whole if packing is None else unpacked(whole, packing, name=name)


class _Meter:
    """Says how many bytes of a file were read, each of them once, however they are packed."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._said = 0  # bytes at the beginning of the file
        self._paused = False

    def read(self, file: BinaryIO) -> Iterator[bytes]:
        """The pieces of it, from its beginning."""
        at = 0
        for piece in _pieces(file):
            at += len(piece)
            if self._paused:
                self._advance(0)
            elif at > self._said:
                self._advance(at - self._said)
                self._said = at
            yield piece

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is read now will be read again."""
        self._paused = True
        yield
        self._paused = False


def _begun(
    pieces: Iterator[bytes], provider: str | None, *, whole: bool
) -> tuple[bytes, Iterator[bytes] | None]:
    """The beginning, as soon as it tells what the file is, and what follows; None: nothing does."""
    held: list[bytes] = []
    size = looked = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= HEAD:
            return b"".join(held), pieces
        if whole or (b"\n" not in piece and size < 2 * looked):  # not at every byte of a long line
            continue
        looked = size
        if _tells(b"".join(held), provider):
            return b"".join(held), pieces
    return b"".join(held), None


def _tells(begun: bytes, provider: str | None) -> bool:
    """Is it known what this is, before its end or ``HEAD`` bytes have come?"""
    if (BOM + HEADER).startswith(begun[: len(BOM + HEADER)]) or HEADER.startswith(begun):
        return False
    try:
        return form_of(begun, whole=False, provider=provider) in IN_PIECES
    except NoStream:
        return False


def _names_seed(begun: bytes) -> bool:
    reader = Reader()
    try:
        reader.feed(begun)
    except RecordingError:
        return True  # nothing will be minted
    return bool(reader.header.get("seed"))


def _digest(pieces: Iterator[bytes], name: str) -> str:
    """Of the wire: the file without what a take says beside it."""
    reader, digest = Reader(name), hashlib.sha256()
    for piece in chain(pieces, [None]):
        for _, data in reader.feed(piece or b"", last=piece is None):
            digest.update(data)
    return digest.hexdigest()
