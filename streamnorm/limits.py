"""How much of a stream is too much. Crossing a limit ends the stream as ``Failed("limit")``."""

from __future__ import annotations

import msgspec

__all__ = ["LimitReached", "Limits"]

KIB, MIB = 1024, 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one stream, and of a session; the defaults bound memory, not honest answers.

    >>> Limits(frame_bytes=64 * 1024).frame_bytes
    65536
    """

    frame_bytes: int = 16 * MIB  # of one frame
    arguments: int = 4 * MIB  # characters of one call's argument text
    arguments_total: int = 32 * MIB  # … of all calls together
    open_calls: int = 128
    # Batch callers do ask for thousands of small calls in one turn; bounded, but not at 1,024.
    calls: int = 8192  # … and as many choices, each of which may call something
    frames: int = 1_000_000
    stream: int = 256 * MIB  # bytes of the decoded body
    ratio: int = 100  # of unpacked to packed bytes, once a mebibyte was unpacked
    name: int = 256
    id: int = 256
    depth: int = 128  # nesting of arguments
    media: int = 64 * MIB  # bytes of one picture, or of one sound, all its pieces
    held: int = 64 * MIB  # bytes that are not handed on before the end has come (``Passage``)
    # Of a session, whose connection many streams share:
    lanes: int = 256  # streams that are open at once
    unread: int = 64 * MIB  # bytes that came for streams whose readers have not taken them


class LimitReached(Exception):
    """Internal: which limit was crossed, caught by the normalizer."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(f"more than {limit} ({name}); raise Limits({name}=…) if this is wanted")
        self.name = name
