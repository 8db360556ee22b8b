"""What goes to a service comes in; what the service has seen is stored, call by call.

Rule: after each call that the service finished, the history holds what the service holds: the turns
that were sent, and its answer. A call that failed is not there, as the service does not have it.

Two keepers of one conversation would drift apart. If a service says that it keeps the conversation
itself (``service_id``) while a history keeps the turns, the policy decides: ``"raise"``, ``"warn"``
and keep both, or ``"clear"``: the history lets go, and keeps only the service's name for it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import anyio
from anyio import lowlevel

from .conversation import Conversation, Turn
from .errors import UsageError
from .events import Event, Failed, Finish
from .history.base import History
from .history.errors import HistoryConflict
from .repairing import Repair
from .settled import Settled
from .tools import Tool

__all__ = ["HistoryWarning", "Outgoing", "PersistEachCall", "Send", "ServiceIds"]

OnConflict: TypeAlias = Literal["raise", "warn", "clear"]
Send: TypeAlias = Callable[["Outgoing", list[Tool]], Any]
POLICIES = ("raise", "warn", "clear")


class HistoryWarning(UserWarning):
    """A history that is not what its user may think: nobody persists, or two do."""


class Outgoing(Conversation):
    """The conversation that a ``send`` function is given: mended, and with what a history must know.

    ``turns`` go to the service: all of them, or, where the service keeps the conversation itself
    under ``service_id``, those that it has not seen. ``fresh`` are the turns that no history has
    yet, ``stored`` counts those that one has, and ``report`` says what was mended.
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


class ServiceIds:
    """How to find a service's own name for a conversation, and what to do if two keep it."""

    def __init__(
        self, find: Callable[[Turn], str | None] | None = None, on_conflict: OnConflict = "raise"
    ) -> None:
        if on_conflict not in POLICIES:
            raise UsageError(f"on_conflict is one of {', '.join(POLICIES)}, not {on_conflict!r}")
        self._find, self._on_conflict = find, on_conflict

    def hear(self, outgoing: Outgoing, turn: Turn, *, has_history: bool) -> None:
        """Note on ``outgoing`` under which name the service keeps it, and whether it alone does."""
        service_id = self._find(turn) if self._find else None
        if service_id is None:
            return
        if not has_history:
            outgoing.is_service_kept = True
        elif not outgoing.is_service_kept:
            said = f"the service keeps the conversation {outgoing.id!r} as {service_id!r}"
            if self._on_conflict == "raise":
                raise HistoryConflict(
                    f"{said}, and a history keeps its turns; choose one, or on_conflict"
                )
            if self._on_conflict == "warn" and service_id != outgoing.service_id:
                warnings.warn(f"{said}, and a history too", HistoryWarning, stacklevel=2)
            outgoing.is_service_kept = self._on_conflict == "clear"
        outgoing.service_id = service_id


class PersistEachCall:
    """A ``send`` that stores what the service has seen, before anybody hears its last event.

    ``ToolLoop(persist="call")`` puts it around yours; with ``as_is=True`` you do, where you want it.

    ::

        send = with_retries(PersistEachCall(post, history))
        ToolLoop(send, tools, history=history, persist="call", as_is=True)
    """

    persists_each_call = True

    def __init__(
        self, send: Send, history: History, *, service_ids: ServiceIds | None = None
    ) -> None:
        self.__wrapped__ = send
        self._history = history
        self._service_ids = service_ids or ServiceIds()

    async def __call__(self, outgoing: Outgoing, tools: list[Tool]) -> AsyncIterator[Event]:
        events = await opened(self.__wrapped__(outgoing, tools))
        return _Persisted(events, lambda turn: self._store(outgoing, turn))

    async def _store(self, outgoing: Outgoing, turn: Turn) -> None:
        self._service_ids.hear(outgoing, turn, has_history=True)
        await store(
            self._history, outgoing, [*outgoing.fresh, turn], outgoing.settled, outgoing.sequence
        )


class _Persisted:
    """The events of one answer; the last one is given when the answer is stored."""

    def __init__(self, events: AsyncIterator[Event], store: Callable[[Turn], Any]) -> None:
        self._events, self._store = events, store
        self._heard: list[Event] = []

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await anext(self._events)
        self._heard.append(event)
        if isinstance(event, Finish):
            with anyio.CancelScope(shield=True):
                await self._store(Turn.from_events(self._heard))
        return event

    async def aclose(self) -> None:
        await closed(self._events)


async def store(
    history: History,
    outgoing: Outgoing,
    turns: Sequence[Turn],
    settled: Sequence[Settled],
    sequence: int,
) -> None:
    """One commit; where the service alone keeps the turns, only its name for them."""
    if outgoing.is_service_kept:
        await history.create(outgoing.id, system=outgoing.system)
        return await history.keep_service_id(outgoing.id, outgoing.service_id)
    await history.commit(
        outgoing.id, outgoing.run, sequence, turns,
        settled=settled, system=outgoing.system, service_id=outgoing.service_id,
        expect=outgoing.stored, create=True,
    )  # fmt: skip


def persists_each_call(send: Any) -> bool:
    """Is there something in this stack of functions that stores each call?"""
    seen: set[int] = set()
    while send is not None and id(send) not in seen:
        seen.add(id(send))
        if getattr(send, "persists_each_call", False):
            return True
        send = getattr(send, "__wrapped__", None) or getattr(send, "func", None)
    return False


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
