"""Packed bytes come in, in pieces; what they are unpacked goes out, in pieces of a bounded size.

Rule: a small file can be made to fill any memory, so what comes out is bounded by what came in
(``framing.inflate``). Bytes that are cut or damaged give all that was whole before, and then say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from ..errors import RecordingError
from ..framing.inflate import Inflater, NotInflated

__all__ = ["Damaged", "packing_of", "unpack", "unpacked"]


class Damaged(RecordingError):
    """The packed bytes are cut or wrong; what came before was given."""


def packing_of(first: bytes) -> str | None:
    """What these bytes are packed with, as the word of HTTP for it; None for bytes that are not.

    >>> packing_of(b"\\x1f\\x8b\\x08"), packing_of(b"x\\x9c"), packing_of(b"data: 1")
    ('gzip', 'deflate', None)
    """
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    # zlib: two bytes that are a multiple of 31 and name the one method there is; x is also a letter.
    if first[:1] == b"\x78" and len(first) > 1 and first[1] in (0x01, 0x5E, 0x9C, 0xDA):
        return "deflate"
    return "zstd" if first[:4] == b"\x28\xb5\x2f\xfd" else None


def unpacked(pieces: Iterable[bytes], packing: str, *, name: str) -> Iterator[bytes]:
    """The bytes, member after member. Raises ``RecordingError`` if they become too many.

    >>> import gzip
    >>> b"".join(unpacked([gzip.compress(b"data: 1")], "gzip", name="a.gz"))
    b'data: 1'
    """
    begun = False
    try:
        inflater = Inflater(packing)
        for piece in chain.from_iterable(map(inflater.feed, pieces)):
            if not begun and packing_of(piece) is not None:
                raise RecordingError(
                    f"{name} is packed more than once. Unpack it once, and name what comes out."
                )
            begun = True
            yield piece
    except NotInflated as error:
        raise _error(error, packing, name) from error
    if not inflater.ended:
        raise Damaged(f"{name} is cut: what is packed in it ends before its end.")


def unpack(data: bytes, packing: str, *, name: str) -> tuple[bytes, bool]:
    """All of it at once, and whether it was whole."""
    found: list[bytes] = []
    try:
        for piece in unpacked([data], packing, name=name):
            found.append(piece)  # one by one: those before the damage are kept
    except Damaged:
        return b"".join(found), False
    return b"".join(found), True


def _error(error: NotInflated, packing: str, name: str) -> RecordingError:
    if error.code == "damaged":
        return Damaged(f"{name} is damaged: what is packed in it ({packing}) cannot be read on.")
    if error.is_limit:
        return RecordingError(
            f"{name} becomes too long when it is unpacked: {str(error).partition(';')[0]}, which is "
            "refused. Unpack it by hand if you trust it."
        )
    return RecordingError(f"{name} is not read: {error}")
