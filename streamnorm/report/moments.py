"""Times of recordings come in; the slices of time in which they are counted go out.

Rule: a slice is named by the beginning of its ISO time, ``2026-11-19T14`` for an hour, so that a longer
one is a shorter text. They are as short as they can be for ``MOST`` of them to span all times: which
that are depends on the first and the last, and not on the order.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["MOST", "Moments", "moment"]

MOST = 92  # three months of days
# How much of the text names a slice, and how it is called.
UNITS = ((16, "minute"), (15, "ten minutes"), (13, "hour"), (10, "day"), (7, "month"), (4, "year"))
EARLIEST, LATEST = "2000", "2080"  # years; what is said to be outside is no date
_STEPS = {16: timedelta(minutes=1), 15: timedelta(minutes=10), 13: timedelta(hours=1),
          10: timedelta(days=1)}  # fmt: skip
_PAD = "2000-01-01T00:00"


def moment(text: str | None) -> str | None:
    """A time as ISO text in UTC, to the minute; None for what is none.

    >>> moment("2026-11-19T14:05:09+02:00"), moment("2026-11-19"), moment("yesterday")
    ('2026-11-19T12:05', '2026-11-19T00:00', None)
    """
    try:
        at = datetime.fromisoformat(text or "")
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    told = at.isoformat()[:16]
    return told if EARLIEST <= told < LATEST else None


class Moments:
    """The first and the last of all times, and the slices between them."""

    def __init__(self) -> None:
        self.first: str | None = None
        self.last: str | None = None
        self._unit = 0

    @property
    def size(self) -> int:
        """Characters that name a slice."""
        return UNITS[self._unit][0]

    @property
    def unit(self) -> str:
        """What a slice is."""
        return UNITS[self._unit][1]

    def hear(self, at: str) -> bool:
        """One more time. Are slices longer now?"""
        if self.first is not None and self.last is not None and self.first <= at <= self.last:
            return False
        before = self._unit
        self.first = min(self.first or at, at)
        self.last = max(self.last or at, at)
        while len(self._between(MOST + 1)) > MOST:
            self._unit += 1
        return self._unit != before

    def axis(self) -> list[str]:
        """All slices from the first to the last, also empty ones."""
        return self._between(MOST)

    def _between(self, most: int) -> list[str]:
        if self.first is None or self.last is None:
            return []
        at, last, found = self.first[: self.size], self.last[: self.size], [""]
        while found[-1] < last and len(found) <= most:
            found.append(at)
            at = self._next(at)
        return found[1:]

    def _next(self, at: str) -> str:
        start = datetime.fromisoformat(at + _PAD[len(at) :])
        if self.size in _STEPS:
            start += _STEPS[self.size]
        else:
            start = (start + timedelta(days=32 if self.size == 7 else 366)).replace(day=1)
        return start.isoformat()[: self.size]
