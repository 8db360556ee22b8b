"""The chunks of a response's body come in, packed as they came; what is in them goes out.

Rule: bodies are unpacked here, in bounded steps (``framing/inflate.py``), and not by the client that
brought them: most clients unpack a whole chunk at once, however long it gets. aiohttp does so itself,
in bounded steps too; of its bodies only the ratio is left to be watched.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from ..framing.inflate import Inflater, Ratio, packing_of
from ..limits import Limits

__all__ = ["Unpacking", "Watching"]


class Unpacking:
    """One packed body: read it ``now``, or ``later``."""

    def __init__(self, encoding: str, limits: Limits | None = None) -> None:
        self._encoding = encoding
        self._inflater: Inflater | None = None
        self.limits = limits

    @property
    def received(self) -> int:
        """Bytes that came over the network."""
        return self._inflater.received if self._inflater else 0

    def now(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        inflater = self._begin()
        for chunk in chunks:
            yield from inflater.feed(chunk)

    async def later(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        inflater = self._begin()
        async for chunk in chunks:
            for piece in inflater.feed(chunk):
                yield piece

    def _begin(self) -> Inflater:
        self._inflater = inflater = Inflater(self._encoding, limits=self.limits)
        return inflater


class Watching(Unpacking):
    """A body that its client unpacks, and tells how much came."""

    def __init__(self, encoding: str, content: Any) -> None:
        super().__init__(encoding)
        self._content = content

    @property
    def received(self) -> int:
        return int(self._content.total_compressed_bytes or 0)

    async def later(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        packing_of(self._encoding)  # raises if it is packed twice, of which its client undoes one
        ratio = Ratio(self.limits)
        async for chunk in chunks:
            ratio.check(self.received, len(chunk))
            yield chunk
