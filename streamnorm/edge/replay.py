"""A take comes in; the ``Stream`` that it once was goes out, at any pace and in any chunks.

Rule: the pace and the chunks change when events are heard, and nothing else. Minted ids are the
same again, as the take keeps what they are made from. A take of several connections goes on as the
stream did.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

import anyio

from ..captures import read_take
from ..errors import UsageError
from ..takes.format import Chunk, Take
from ..takes.pipe import refused, resume_in
from .reading import Reading
from .sources import Facts, Item, Source
from .stream import Stream

if TYPE_CHECKING:
    import os

    from ..limits import Limits
    from ..normalizer import Normalizer

__all__ = ["replay"]


def replay(
    path: str | os.PathLike[str] | Take,
    pace: float = 0,
    *,
    chunking: int | str | None = None,
    provider: str | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    seed: str | None = None,
    on_bad_event: str = "fail",
) -> Stream:
    """The events of a take, or of any saved response body (``curl -N … > answer.sse``).

    ``pace``: 0 as fast as it can be read, 1.0 as it arrived, 2.0 twice as fast. ``chunking``: as
    recorded (None or ``"recorded"``), ``"lines"``, ``"bytes"``, or chunks of so many bytes.

    >>> stream = replay("recordings/anthropic/parallel_calls.sse")
    >>> [call.name for call in stream.calls()]
    ['get_weather', 'get_tides']
    """
    take = path if isinstance(path, Take) else read_take(path)
    if not 0 <= pace < math.inf:
        raise UsageError(f"pace is a number from 0 up, not {pace!r}")
    reading = Reading(
        limits=limits, strict=strict, seed=seed or take.seed, idle=None, on_bad_event=on_bad_event
    )
    as_recorded = chunking in (None, "recorded")
    chunks = iter(take.chunks) if as_recorded else _timed(take, chunking)
    return Stream(_Replay(chunks, pace, take), provider or take.provider, reading)


class _Replay(Source):
    """Chunks, each when its time has come. A slow reader is not made to wait once more."""

    closable = False

    def __init__(self, chunks: Iterator[Chunk], pace: float, take: Take) -> None:
        super().__init__(instant=not pace, facts=_facts(take.header))
        self._chunks = chunks
        self._legs, self._given = deque(take.legs), 0  # in bytes
        self._pipe: Normalizer | None = None
        self._pace = pace
        self._start: float | None = None

    @property
    def is_async(self) -> bool:
        return True

    @property
    def is_sync(self) -> bool:
        return True

    def feeds(self, pipe: Normalizer) -> None:
        self._pipe = pipe

    async def next(self) -> Item | None:
        chunk = self._next()
        if chunk is not None and self._pace:
            await anyio.sleep(self._wait(chunk[0], anyio.current_time()))
        return chunk and chunk[1]

    def next_now(self) -> Item | None:
        chunk = self._next()
        if chunk is not None and self._pace:
            time.sleep(self._wait(chunk[0], time.monotonic()))
        return chunk and chunk[1]

    def _next(self) -> Chunk | None:
        while self._pipe is not None and self._legs and self._legs[0] <= self._given:
            self._legs.popleft()
            resume_in(self._pipe)
        chunk = next(self._chunks, None)
        self._given += len(chunk[1]) if chunk else 0
        return chunk

    def _wait(self, at: float, now: float) -> float:
        if self._start is None:
            self._start = now
        return max(0.0, self._start + at / self._pace - now)


def _facts(header: dict[str, Any]) -> Facts:
    """Of an answer that was refused; the body of any other is in the take as it was read then."""
    if not refused(header):
        return Facts()
    return Facts(status=header["status"], headers=header.get("headers"))


def _timed(take: Take, chunking: int | str | None) -> Iterator[Chunk]:
    """The same bytes in other pieces, each at the time when its last byte arrived."""
    ends = list(accumulate(len(chunk) for _, chunk in take.chunks))
    wire = take.wire
    pieces = [_pieces(wire[a:b], chunking) for a, b in pairwise([0, *take.legs, len(wire)])]
    return _at_their_times(take, ends, chain(*pieces))


def _at_their_times(take: Take, ends: list[int], pieces: Iterator[bytes]) -> Iterator[Chunk]:
    at = 0
    for piece in pieces:
        at += len(piece)
        yield take.chunks[bisect_left(ends, at)][0], piece


def _pieces(wire: bytes, chunking: int | str | None) -> Iterator[bytes]:
    if chunking == "lines":
        return iter(wire.splitlines(keepends=True))
    size = 1 if chunking == "bytes" else chunking
    if not isinstance(size, int) or size < 1:
        raise UsageError(
            f"chunking is None, 'recorded', 'lines', 'bytes' or a size, not {chunking!r}"
        )
    return (wire[i : i + size] for i in range(0, len(wire), size))
