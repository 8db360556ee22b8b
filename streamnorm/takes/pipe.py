"""A take comes in; the pipe that hears it as it was heard then goes out.

Rule: ids that were minted are minted alike again, as the take keeps what they are made from. Where the
take goes on with another connection, the pipe does, too, whatever chunks it is fed. An answer that was
refused, as its status says, is what the server said, and no stream.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from ..events import Event
from ..normalizer import Normalizer
from ..providers import AUTO
from ..refusals import BODY, refusal

__all__ = ["Heard", "pipe_for", "refused", "resume_in"]


class Heard(Protocol):
    """What is to be heard: a take, or a part of a file."""

    @property
    def header(self) -> dict[str, Any]:
        """What is known of it."""

    @property
    def provider(self) -> str | None:
        """Whose it is, if that is known."""

    @property
    def seed(self) -> str | None:
        """What ids are minted from."""

    @property
    def legs(self) -> tuple[int, ...]:
        """Where those of other connections begin."""


def pipe_for(take: Heard, provider: str | None = None, **options: Any) -> Normalizer:
    """For the provider that is asked for, or the take's own, or told by the bytes."""
    options = {"seed": take.seed} | options
    pipe = _Refused if refused(take.header) else _Resumed if take.legs else Normalizer
    made = pipe(provider or take.provider or AUTO, **options)
    if isinstance(made, _Resumed):
        made.legs = deque(take.legs)
    if isinstance(made, _Refused):
        made.header = take.header
    return made


def refused(header: dict[str, Any]) -> bool:
    """Does the status say that there is no stream?"""
    status = header.get("status")
    return type(status) is int and 100 <= status < 600 and status // 100 != 2


def resume_in(pipe: Normalizer) -> None:
    """Another leg begins; a pipe that cannot go on (it is another wire's, or has ended) just hears it."""
    if not pipe.ended and pipe.cursor is not None:
        pipe.resume()


class _Resumed(Normalizer):
    """It is fed the bytes of all legs, and knows where each begins."""

    legs: deque[int]
    _fed = 0

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        at = 0
        while self.legs and self._fed + len(data) >= self.legs[0]:
            begins = self.legs.popleft() - self._fed
            events += super().feed(data[at:begins])
            resume_in(self)
            at = begins
        self._fed += len(data)
        return events + super().feed(data[at:]) if at < len(data) else events


class _Refused(Normalizer):
    """It hears a refusal, of which it tells at the end."""

    header: dict[str, Any]
    _body = b""

    def feed(self, data: bytes) -> list[Event]:
        self._body += data[: BODY - len(self._body)]
        return []

    def close(self) -> list[Event]:
        headers = self.header.get("headers")
        error = refusal(
            self._body,
            status=self.header["status"],
            headers=headers if isinstance(headers, dict) else {},
        )
        return self.fail(
            "provider_error", error.message, retryable=error.retryable, code=error.code
        )  # fmt: skip
