"""Streams come in, one after the other; one number about them goes out, with a sample of them.

Rule: bounded, whatever the number of streams, and the same in any order: the sample is the streams
of the smallest hashes, and times are counted in slots whose borders do not depend on them.
"""

from __future__ import annotations

import math
from collections import Counter
from heapq import heappush, heappushpop
from typing import Any, NamedTuple

__all__ = ["ERROR", "EXAMPLES", "Figure", "Number", "Spread"]

EXAMPLES = 20  # streams that are kept of each number
GROWTH = 1.02  # from one slot of times to the next
ERROR = (GROWTH - 1) / 2  # of a percentile, as a part of it
SHORTEST, LONGEST = 1e-4, 1e6  # seconds; what is beyond counts as these
_LOG = math.log(GROWTH)


class Spread(NamedTuple):
    """How long things took, in seconds."""

    p50: float
    p90: float
    p99: float
    most: float


class Figure(NamedTuple):
    """A number as it goes out."""

    total: int = 0  # of calls, oddities, tokens …; of streams, if nothing else is counted
    streams: int = 0  # that are behind it
    spread: Spread | None = None


class Number:
    """A number as it grows."""

    __slots__ = ("_most", "_slots", "count", "sample", "streams")

    def __init__(self) -> None:
        self.count = self.streams = 0
        # The largest hash first; the second item tells two streams of one name apart.
        self.sample: list[tuple[int, int, Any]] = []
        self._slots: Counter[int] | None = None
        self._most = 0.0

    def add(self, count: int, entry: tuple[int, int, Any], most: int = EXAMPLES) -> None:
        """One more stream, by its negative hash, with so much of what is counted."""
        self.count += count
        self.streams += 1
        self._keep(entry, most)

    def time(self, seconds: float) -> None:
        """How long it took in one stream."""
        if self._slots is None:
            self._slots = Counter()
        within = min(max(seconds, SHORTEST), LONGEST)
        self._slots[math.ceil(math.log(within) / _LOG)] += 1
        self._most = max(self._most, seconds)

    def merge(self, other: Number, most: int = EXAMPLES) -> None:
        """What another counted of other streams."""
        self.count += other.count
        self.streams += other.streams
        for entry in other.sample:
            self._keep(entry, most)
        if other._slots is not None:
            self._slots = (self._slots or Counter()) + other._slots
            self._most = max(self._most, other._most)

    def figure(self) -> Figure:
        """As it goes out."""
        return Figure(self.count, self.streams, self._spread())

    def _keep(self, entry: tuple[int, int, Any], most: int) -> None:
        if len(self.sample) < most:
            heappush(self.sample, entry)
        elif entry > self.sample[0]:
            heappushpop(self.sample, entry)

    def _spread(self) -> Spread | None:
        if self._slots is None:
            return None
        slots = sorted(self._slots.items())
        p50, p90, p99 = (min(self._at(slots, share), self._most) for share in (0.5, 0.9, 0.99))
        return Spread(p50, p90, p99, self._most)

    @staticmethod
    def _at(slots: list[tuple[int, int]], share: float) -> float:
        left = math.ceil(share * sum(count for _, count in slots))
        for slot, count in slots:
            left -= count
            if left <= 0:
                return float(2 * GROWTH**slot / (GROWTH + 1))
        return 0.0
