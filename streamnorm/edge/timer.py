"""The times at which reads begin and end come in; until when a read may take goes out.

Rule: idle time counts only while the wire is waited for, and not while a connection is made, which
has timeouts of its own; the deadline counts always. No clock is read here.
"""

from __future__ import annotations

__all__ = ["TimeUp", "Timer"]

NEVER = float("inf")


class TimeUp(Exception):
    """Internal: a read took too long, or was ended from outside, at this time."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at


class Timer:
    """How long a stream may go on without an event, and how long it may take in all."""

    __slots__ = ("_idle", "connected", "deadline", "latest", "since", "waited")

    def __init__(self, idle: float | None, deadline: float | None) -> None:
        self._idle, self.deadline = idle, deadline
        self.latest: float | None = None  # when the whole stream has to be over; None: not begun
        self.since = 0.0  # when the read that is under way began
        self.waited = 0.0  # seconds spent in reads since the last event, without that one
        self.connected = True  # does the wire count as waited for?

    @property
    def runs(self) -> bool:
        """Is there anything to watch?"""
        return self.longest < NEVER

    @property
    def longest(self) -> float:
        """So many seconds may a read take at the most, if it does not begin at once."""
        known = [seconds for seconds in (self._idle, self.deadline) if seconds is not None]
        return min(known, default=NEVER)

    def begin(self, now: float, *, connected: bool = True) -> None:
        """A read begins; raises if its time is over."""
        if self.latest is None:
            self.latest = NEVER if self.deadline is None else now + self.deadline
        self.since, self.connected = now, connected
        if now >= self.due(now):
            raise TimeUp(now)

    def due(self, since: float) -> float:
        """Until when a read may take that began then."""
        until = NEVER if self.latest is None else self.latest
        if self._idle is not None and self.connected:
            until = min(until, since + max(0.0, self._idle - self.waited))
        return until

    def pause(self, since: float, now: float) -> None:
        """A read took so long, and there was no event in it; raises if none came for too long."""
        if self.connected:
            self.waited += now - since
            if self._idle is not None and self.waited >= self._idle:
                raise TimeUp(now)

    def heard(self) -> None:
        """There was an event."""
        self.waited = 0.0

    def is_deadline(self, up: TimeUp) -> bool:
        """Was it the deadline that fell, and not an idle wire?"""
        return self.latest is not None and up.at >= self.latest

    def why(self, up: TimeUp) -> str:
        """What is told of it."""
        if self.is_deadline(up):
            return f"not at its end after {self.deadline:g} s (deadline)"
        return f"no event for {self._idle:g} s, not counting keep-alives"
