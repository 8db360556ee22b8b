"""What goes to a service comes in; what the service has seen is stored, call by call.

Rule: after each call that the service finished, the history holds what the service holds: the turns
that were sent, and its answer. A call that failed is not there, as the service does not have it.

Two keepers of one conversation would drift apart. If a service says that it keeps the conversation
itself (``service_id``) while a history keeps the turns, the policy decides: ``"raise"``, ``"warn"``
and keep both, or ``"clear"``: the history lets go of its turns, which the service has been sent, and
keeps only the service's name for them.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import anyio

from ..conversation import Turn
from ..errors import UsageError
from ..events import Event, Finish, ToolCall
from ..history.base import History
from ..history.errors import HistoryConflict
from ..history.settled import Settled
from ..tools import Tool
from .client_tools import own
from .outgoing import Outgoing, Send, closed, opened

__all__ = ["HistoryWarning", "OnConflict", "PersistEachCall", "ServiceIds"]

OnConflict: TypeAlias = Literal["raise", "warn", "clear"]
POLICIES = ("raise", "warn", "clear")


class HistoryWarning(UserWarning):
    """A history that is not what its user may think: nobody persists, or two do."""


class ServiceIds:
    """How to find a service's own name for a conversation, and what to do if two keep it."""

    def __init__(
        self, find: Callable[[Turn], str | None] | None = None, on_conflict: OnConflict = "raise"
    ) -> None:
        if on_conflict not in POLICIES:
            raise UsageError(f"on_conflict is one of {', '.join(POLICIES)}, not {on_conflict!r}")
        if find is not None and not callable(find):
            raise UsageError(f"service_id is a function of a turn, not {find!r}")
        self._find, self._on_conflict = find, on_conflict
        self._warned: set[str] = set()

    @property
    def are_told(self) -> bool:
        """Is there somebody who finds the service's names?"""
        return self._find is not None

    @property
    def are_alone(self) -> bool:
        """Will the service alone keep a conversation, if it says its name for it?"""
        return self.are_told and self._on_conflict == "clear"

    def expect(self, conversation: str, service_id: str) -> None:
        """The service alone keeps this conversation: without its next name, what is said is lost."""
        if not self.are_told:
            raise HistoryConflict(
                f"the service keeps the conversation {conversation!r} as {service_id!r}, and nobody "
                "says its next name; pass service_id, a function of the answer's turn"
            )

    def hear(self, outgoing: Outgoing, turn: Turn, *, has_history: bool) -> None:
        """Note on ``outgoing`` under which name the service keeps it, and whether it alone does."""
        service_id = self._find(turn) if self._find else None
        if service_id is None:
            return
        if has_history and not outgoing.is_service_kept:
            self._conflict(outgoing.id, service_id)
        outgoing.is_service_kept |= not has_history or self._on_conflict == "clear"
        outgoing.service_id = service_id

    def _conflict(self, conversation: str, service_id: str) -> None:
        said = f"the service keeps the conversation {conversation!r} as {service_id!r}"
        if self._on_conflict == "raise":
            raise HistoryConflict(
                f"{said}, and a history keeps its turns; choose one, or on_conflict"
            )
        if self._on_conflict == "warn" and conversation not in self._warned:
            self._warned.add(conversation)
            warnings.warn(f"{said}, and a history too", HistoryWarning, stacklevel=2)


class PersistEachCall:
    """A ``send`` that stores what the service has seen, before anybody hears its last event.

    ``ToolLoop(persist="call")`` puts it around yours; with ``as_is=True`` you do, where you want it.
    ``service_id`` and ``on_conflict`` are those of ``ToolLoop``.

    ::

        send = with_retries(PersistEachCall(post, history))
        ToolLoop(send, tools, history=history, persist="call", as_is=True)
    """

    persists_each_call = True

    def __init__(
        self,
        send: Send,
        history: History,
        *,
        service_id: Callable[[Turn], str | None] | None = None,
        on_conflict: OnConflict = "raise",
        service_ids: ServiceIds | None = None,
    ) -> None:
        self.__wrapped__ = send
        self._history = history
        self.service_ids = service_ids or ServiceIds(service_id, on_conflict)

    async def __call__(self, outgoing: Outgoing, tools: list[Tool]) -> AsyncIterator[Event]:
        if outgoing.is_service_kept and outgoing.service_id is not None:
            self.service_ids.expect(outgoing.id, outgoing.service_id)
        events = await opened(self.__wrapped__(outgoing, tools))
        return _Persisted(events, lambda turn: self._store(outgoing, turn))

    async def _store(self, outgoing: Outgoing, turn: Turn) -> None:
        self.service_ids.hear(outgoing, turn, has_history=True)
        await store(
            self._history, outgoing, [*outgoing.fresh, turn], outgoing.settled, outgoing.sequence
        )
        outgoing.is_stored = True


class _Persisted:
    """The events of one answer; the last one is given when the answer is stored."""

    def __init__(self, events: AsyncIterator[Event], store: Callable[[Turn], Any]) -> None:
        self._events, self._store = events, store
        self._heard: list[Event] = []

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await anext(self._events)
        self._heard.append(own(event) if isinstance(event, ToolCall) else event)
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
    if outgoing.is_service_kept and outgoing.service_id is not None:
        return await history.hand_over(
            outgoing.id, outgoing.service_id, system=outgoing.system, expect=outgoing.stored
        )
    await history.commit(
        outgoing.id, outgoing.run, sequence, turns,
        settled=settled, system=outgoing.system, service_id=outgoing.service_id,
        expect=outgoing.stored, create=True,
    )  # fmt: skip


def persists_each_call(send: Any) -> bool:
    """Is there something in this stack of functions that stores each call?"""
    return any(getattr(layer, "persists_each_call", False) for layer in _layers(send))


def lets_go(send: Any) -> bool:
    """Is there something in this stack that leaves conversations to the service alone?"""
    stores = (layer for layer in _layers(send) if isinstance(layer, PersistEachCall))
    return any(layer.service_ids.are_alone for layer in stores)


def _layers(send: Any) -> Iterator[Any]:
    seen: set[int] = set()
    while send is not None and id(send) not in seen:
        seen.add(id(send))
        yield send
        send = getattr(send, "__wrapped__", None) or getattr(send, "func", None)
