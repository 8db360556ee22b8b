"""Packed bytes in any chunking come in; what is in them goes out, in pieces that are bounded.

Rule: nobody is believed about how long a body is. It is unpacked in small steps, and after each of
them what came out is held against what came in: a bomb ends before it is in memory. What a body is
packed with is one of four, once; anything else is refused from its headers.

    gzip, deflate   zlib, which gives no more than it is asked for
    br              brotli (or brotlicffi), the same; one before 1.2 is fed byte by byte, of which each
                    ends at most one block, and no block is longer than 16 MiB
    zstd            zstandard, which gives all that it can: 64 bytes end at most 17 blocks (RFC 8878:
                    four bytes each, the last of one before it), and no block is longer than 128 KiB
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal, TypeAlias

from ..errors import FrameError, MissingExtra, UsageError, needs
from ..limits import Limits
from ..text.shown import clean, shorten

__all__ = ["PLAIN", "Inflater", "NotInflated", "Ratio", "packing_of"]

PIECE = 64 * 1024  # bytes that go out at a time, where the library can be told so
RATIO_AFTER = 1024 * 1024  # so much may come out of next to nothing
WINDOW = 8 * 1024 * 1024  # bytes that zstd may look back: what HTTP allows (RFC 9659)
EXTRA = "packed"
PLAIN = ("", "identity", "none")  # "none" is no word of HTTP, but many servers of SSE say it

Code: TypeAlias = Literal["encoding", "damaged", "ratio", "inflated"]


class NotInflated(FrameError):
    """A body that cannot, or must not, be unpacked. ``code``: its ``encoding`` is none of ours, it is
    ``damaged``, or more came out than the ``ratio`` of the limits or the caller (``inflated``) allow."""

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_limit(self) -> bool:
        return self.code in ("ratio", "inflated")


def packing_of(encoding: str) -> str:
    """What a header ``content-encoding`` says that a body is packed with; "" for nothing.

    >>> packing_of("Identity"), packing_of(" GZip")
    ('', 'gzip')
    >>> packing_of("gzip, br")
    Traceback (most recent call last):
    streamnorm.framing.inflate.NotInflated: the body is packed more than once (content-encoding: \
gzip, br), which is refused
    """
    word = encoding.strip().lower()
    if word in PLAIN:
        return ""
    shown = shorten(clean(encoding.strip()), 80)
    if "," in word:
        raise NotInflated(
            f"the body is packed more than once (content-encoding: {shown}), which is refused",
            "encoding",
        )
    if word not in _DECODERS:
        raise NotInflated(
            f"the body is packed in a way that is not read here (content-encoding: {shown}); ask for "
            f"one of {', '.join(_USUAL)}, or for identity",
            "encoding",
        )
    return word


class Inflater:
    """Unpacks one body.

    ``limits.ratio`` bounds how many times as long as it came a body may get; ``most`` how many bytes
    may come out in all.

    >>> inflater = Inflater("gzip")
    >>> packed = zlib.compress(b"Hello", wbits=31)
    >>> b"".join(inflater.feed(packed)), inflater.received == len(packed), inflater.ended
    (b'Hello', True, True)
    """

    __slots__ = ("_bound", "_decoder", "packing", "received")

    def __init__(
        self, encoding: str, *, limits: Limits | None = None, most: int | None = None
    ) -> None:
        self.packing = packing_of(encoding)
        if not self.packing:
            raise UsageError("this body is not packed: read it as it is")
        try:
            self._decoder: Any = _DECODERS[self.packing]()
        except MissingExtra as missing:
            raise NotInflated(str(missing), "encoding") from missing
        self._bound = Ratio(limits, most)
        self.received = 0  # bytes that came

    @property
    def given(self) -> int:
        """Bytes that went out."""
        return self._bound.given

    @property
    def ended(self) -> bool:
        """Is what came so far whole, as the packing itself tells?"""
        return bool(self._decoder.ended)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes bring, piece by piece: take each before the next is made."""
        step: int = self._decoder.STEP
        for at in range(0, len(data), step):
            part = data[at : at + step]
            self.received += len(part)
            try:
                for piece in self._decoder.feed(part):
                    self._bound.check(self.received, len(piece))
                    yield piece
            except _damage() as error:
                raise NotInflated(
                    f"the body is not the {self.packing} that its headers say it is", "damaged"
                ) from error


class Ratio:
    """How much may come out: counted as it comes."""

    __slots__ = ("_most", "_times", "given")

    def __init__(self, limits: Limits | None = None, most: int | None = None) -> None:
        self._times, self._most = (limits or Limits()).ratio, most
        self.given = 0

    def check(self, received: int, size: int) -> None:
        """So many bytes more came out, of as many that were received so far."""
        self.given += size
        if self._most is not None and self.given > self._most:
            raise NotInflated(f"more than {self._most} bytes when it is unpacked", "inflated")
        if self.given > RATIO_AFTER and self.given > self._times * received:
            raise NotInflated(
                f"more than {self._times} times as long unpacked as packed; raise Limits(ratio=…) if "
                "this is wanted",
                "ratio",
            )


# --- members: gzip and zstd, of which one may follow another --------------------------------------


class _Members:
    """What is packed may be several things, one behind the other; zeros fill the place between."""

    STEP = 16 * 1024

    def __init__(self) -> None:
        self._member: Any = None

    @property
    def ended(self) -> bool:
        return self._member is None

    def feed(self, data: bytes) -> Iterator[bytes]:
        full = False  # as much came out as was asked for: there may be more without more coming in
        while data or full:
            if self._member is None and not (data := data.lstrip(b"\0")):
                return
            self._member = self._member or self.new()
            piece, data = self.step(data)
            full = len(piece) >= PIECE
            if self._member.eof:
                data, self._member, full = self._member.unused_data, None, False
            if piece:
                yield piece

    def new(self) -> Any:
        raise NotImplementedError

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        raise NotImplementedError


class _Gzip(_Members):
    def new(self) -> Any:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        return self._member.decompress(data, PIECE), self._member.unconsumed_tail


class _Zstd(_Members):
    STEP = 64

    def __init__(self) -> None:
        needs("zstandard", "a body that is packed as zstd", extra=EXTRA)
        super().__init__()
        self._library = import_module("zstandard")

    def new(self) -> Any:
        return self._library.ZstdDecompressor(max_window_size=WINDOW).decompressobj()

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        return self._member.decompress(data), b""


# --- the others -----------------------------------------------------------------------------------


class _Deflate(_Gzip):
    """As HTTP means it, in zlib's wrapping, or without as some send it: the first two bytes tell."""

    def __init__(self) -> None:
        super().__init__()
        self._first = b""
        self._wrapped: bool | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._first += data if self._wrapped is None else b""
        if self._wrapped is None:
            if len(self._first) < 2:
                return
            data, head = self._first, self._first[:2]
            self._wrapped = head[0] & 15 == 8 and int.from_bytes(head) % 31 == 0
        yield from super().feed(data)

    def new(self) -> Any:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS if self._wrapped else -zlib.MAX_WBITS)


class _Brotli:
    STEP = 16 * 1024

    def __init__(self) -> None:
        library = _brotli()
        self._decoder = library.Decompressor()
        try:
            self._decoder.process(b"", output_buffer_limit=PIECE)
        except TypeError:  # before 1.2
            self.STEP, self._options = 1, {}
        else:
            self._options = {"output_buffer_limit": PIECE}

    @property
    def ended(self) -> bool:
        return bool(self._decoder.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        # Until nothing comes: between two blocks it says that it can take more, and holds some yet.
        while piece := self._decoder.process(data, **self._options):
            yield piece
            data = b""


def _brotli() -> Any:
    """Either library: they are the same to those who use them."""
    with suppress(ImportError):
        return import_module("brotlicffi")
    needs("brotli", "a body that is packed as br", extra=EXTRA)
    return import_module("brotli")


_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": _Gzip, "x-gzip": _Gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _Zstd,
}  # fmt: skip
_USUAL = [word for word in _DECODERS if not word.startswith("x-")]


def _damage() -> tuple[type[Exception], ...]:
    """What the libraries raise; those that nobody used are not there."""
    found = [(sys.modules.get(name), kind) for name, kind in _RAISED]
    return (zlib.error, *(getattr(module, kind) for module, kind in found if module is not None))


_RAISED = (("brotlicffi", "error"), ("brotli", "error"), ("zstandard", "ZstdError"))
