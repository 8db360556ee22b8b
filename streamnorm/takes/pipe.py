"""A take comes in; the pipe that hears it as it was heard then goes out.

Rule: ids that were minted are minted alike again, as the take keeps what they are made from. Where the
take goes on with another connection, the pipe does, too, whatever chunks it is fed.
"""

from __future__ import annotations

from typing import Any

from ..events import Event
from ..normalizer import Normalizer
from ..providers import AUTO
from .format import Take

__all__ = ["pipe_for", "resume_in"]


def pipe_for(take: Take, provider: str | None = None, **options: Any) -> Normalizer:
    """For the provider that is asked for, or the take's own, or told by the bytes."""
    options = {"seed": take.seed} | options
    pipe = _Resumed if take.legs else Normalizer
    made = pipe(provider or take.provider or AUTO, **options)
    if isinstance(made, _Resumed):
        made.legs = list(take.legs)
    return made


def resume_in(pipe: Normalizer) -> None:
    """Another leg begins; a pipe that cannot go on (it is another wire's, or has ended) just hears it."""
    if not pipe.ended and pipe.cursor is not None:
        pipe.resume()


class _Resumed(Normalizer):
    """It is fed the bytes of all legs, and knows where each begins."""

    legs: list[int]
    _fed = 0

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        while self.legs and self._fed + len(data) >= self.legs[0]:
            rest = self.legs.pop(0) - self._fed
            events += super().feed(data[:rest])
            resume_in(self)
            self._fed, data = self._fed + rest, data[rest:]
        self._fed += len(data)
        return events + super().feed(data) if data else events
