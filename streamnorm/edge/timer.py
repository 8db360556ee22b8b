"""The seconds that a stream waited come in; until when the next read may take goes out.

Rule: idle time counts only while the wire is waited for, and not while a connection is made, which
has timeouts of its own; the deadline counts always. No clock is read here.
"""

from __future__ import annotations

__all__ = ["TimeUp", "Timer"]


class TimeUp(Exception):
    """Internal: a read took too long, or was ended from outside, at this time."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at


class Timer:
    """How long a stream may go on without an event, and how long it may take in all."""

    __slots__ = ("_began", "_idle", "_waited", "deadline")

    def __init__(self, idle: float | None, deadline: float | None) -> None:
        self._idle, self.deadline = idle, deadline
        self._began: float | None = None
        self._waited = 0.0  # seconds spent in reads since the last event

    def until(self, now: float, *, connected: bool) -> float:
        """Until when the next read may take; raises if that time is over."""
        if self._began is None:
            self._began = now
        until = float("inf")
        if self._idle is not None and connected:
            until = now + max(0.0, self._idle - self._waited)
        if self.deadline is not None:
            until = min(until, self._began + self.deadline)
        if now >= until:
            raise TimeUp(now)
        return until

    def waited(self, seconds: float) -> None:
        """So long took a read."""
        self._waited += seconds

    def heard(self) -> None:
        """There was an event."""
        self._waited = 0.0

    def is_deadline(self, up: TimeUp) -> bool:
        """Was it the deadline that fell, and not an idle wire?"""
        if self.deadline is None or self._began is None:
            return False
        return up.at >= self._began + self.deadline

    def why(self, up: TimeUp) -> str:
        """What is told of it."""
        if self.is_deadline(up):
            return f"not at its end after {self.deadline:g} s (deadline)"
        return f"no event for {self._idle:g} s, not counting keep-alives"
