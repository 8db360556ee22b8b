"""Packed bytes come in, in pieces; what they are unpacked goes out, in pieces of a bounded size.

Rule: a small file can be made to fill any memory, so what comes out is bounded by what came in. Bytes
that are cut or damaged give all that was whole before, and then say so.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from ..errors import RecordingError

__all__ = ["PACKED", "Damaged", "packing_of", "unpack", "unpacked"]

RATIO = 200  # times as long unpacked as packed, at most …
FREE = 16 * 1024 * 1024  # … from this size on
PIECE = 256 * 1024
PACKED = ("gzip", "deflate")  # content encodings that are read here
_WINDOW = 32 + zlib.MAX_WBITS  # gzip or zlib, as the first bytes say


class Damaged(RecordingError):
    """The packed bytes are cut or wrong; what came before was given."""


def packing_of(first: bytes) -> str | None:
    """``gzip``, ``zlib``, or None for bytes that are neither."""
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    # Two bytes that are a multiple of 31 and name the one method there is; x is also a letter.
    if first[:1] == b"\x78" and len(first) > 1 and first[1] in (0x01, 0x5E, 0x9C, 0xDA):
        return "zlib"
    return None


def unpacked(pieces: Iterable[bytes], *, name: str) -> Iterator[bytes]:
    """The bytes, member after member. Raises ``RecordingError`` if they become too many.

    >>> import gzip
    >>> b"".join(unpacked([gzip.compress(b"data: 1")], name="a.gz"))
    b'data: 1'
    """
    machine = zlib.decompressobj(_WINDOW)
    came = gone = 0
    begun = False
    for piece in pieces:
        came += len(piece)
        while piece:
            if machine.eof:  # another member, or zeros that fill a block
                if not piece.lstrip(b"\0"):
                    break
                machine = zlib.decompressobj(_WINDOW)
            begun = True
            try:
                data = machine.decompress(piece, PIECE)
            except zlib.error as error:
                raise Damaged(f"{name} is damaged: what is packed in it ends here") from error
            piece = machine.unused_data if machine.eof else machine.unconsumed_tail
            gone += len(data)
            if gone > FREE and gone > RATIO * came:
                raise RecordingError(
                    f"{name} becomes more than {RATIO} times as long when it is unpacked, which is "
                    "refused. Unpack it by hand if you trust it."
                )
            if data:
                yield data
    while begun and not machine.eof:  # it may hold more than it gave
        try:
            data = machine.decompress(machine.unconsumed_tail, PIECE)
        except zlib.error as error:
            raise Damaged(f"{name} is damaged: what is packed in it ends here") from error
        gone += len(data)
        if not data or (gone > FREE and gone > RATIO * came):
            raise Damaged(f"{name} is cut: what is packed in it ends before its end")
        yield data


def unpack(data: bytes, *, name: str) -> tuple[bytes, bool]:
    """All of it at once, and whether it was whole."""
    found: list[bytes] = []
    try:
        for piece in unpacked([data], name=name):
            found.append(piece)  # one by one: those before the damage are kept
    except Damaged:
        return b"".join(found), False
    return b"".join(found), True
