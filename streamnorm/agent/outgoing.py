"""A conversation comes in; what a ``send`` function is given goes out, and its answer as events.

Rule: whatever a ``send`` returns (a stream, an awaitable of one, a list) is read as one async
iterator, and what can be closed is closed, also when cancelled.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any, TypeAlias

import anyio
from anyio import lowlevel

from ..conversation import Conversation, Turn
from ..encoding.pairs import Repair
from ..errors import UsageError
from ..events import Event, Failed, Finish
from ..history.settled import Settled
from ..tools import Tool

__all__ = ["KEPT_HERE", "Outgoing", "Send", "closed", "is_last", "opened"]

Send: TypeAlias = Callable[["Outgoing", list[Tool]], Any]

KEPT_HERE = "streamnorm:kept-here"  # stands for a service's id where a history keeps each call


class Outgoing(Conversation):
    """The conversation that a ``send`` function is given: mended, and with what a history must know.

    ``turns`` go to the service: all of them, or, where the service alone keeps the conversation,
    those that it has not seen; then ``service_id`` is its name for it, to be sent with them.
    ``fresh`` are the turns that no history has yet, ``stored`` counts those that one has, and
    ``report`` says what was mended.
    """

    id: str = ""
    run: str = ""
    sequence: int = 0
    fresh: list[Turn] = []
    stored: int = 0
    settled: list[Settled] = []
    service_id: str | None = None
    is_service_kept: bool = False
    report: tuple[Repair, ...] = ()
    is_stored: bool = False

    @property
    def continues(self) -> bool:
        return self.is_service_kept

    @property
    def conversation_id(self) -> str | None:
        """Who has what was said before: the service under its id, a history after each call
        (``KEPT_HERE``, which no service is ever sent), or nobody yet: None."""
        if self.is_service_kept:
            return self.service_id
        return KEPT_HERE if self.is_stored else None


async def opened(answer: Any) -> AsyncIterator[Event]:
    """What a ``send`` returned, as an async iterator of events."""
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, AsyncIterable):
        return aiter(answer)
    if isinstance(answer, Iterable):
        return _Listed(answer)
    raise UsageError(f"send returns a Stream or events, not {type(answer).__name__}")


async def closed(events: Any) -> None:
    """Close what can be closed, also when cancelled."""
    if (aclose := getattr(events, "aclose", None)) is not None:
        with anyio.CancelScope(shield=True):
            await aclose()


class _Listed:
    def __init__(self, events: Iterable[Event]) -> None:
        self._events = iter(events)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        await lowlevel.checkpoint()
        for event in self._events:
            return event
        raise StopAsyncIteration


def is_last(event: Event) -> bool:
    """Is this the last event of its stream?"""
    return isinstance(event, Finish | Failed)
