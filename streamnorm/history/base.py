"""What a history promises: turns of a conversation go in, all of a commit or nothing; they come back.

Rule: a commit is named by (conversation, run, sequence). The same name with the same content is
stored once, however often it is sent; with other content it is refused. So whoever does not know
whether a commit happened (a crash, a cancelled task, a lost connection) just sends it again.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, TypeAlias

import msgspec

from ..conversation import Conversation, Turn
from .settled import Settled

__all__ = ["CallState", "Committed", "History", "Stored"]

State: TypeAlias = Literal["answered", "settled", "unresolved"]


class Committed(NamedTuple):
    """Where a commit went: ``turns`` of them from ``first`` on. ``repeated``: it was there before."""

    first: int
    turns: int
    repeated: bool = False


class CallState(NamedTuple):
    """How far a stored call is.

    ``answered``: the turn with its result is stored. ``settled``: its handler is done, and its
    result was not sent yet. ``unresolved``: neither; it may or may not have run.
    """

    turn: int
    id: str
    name: str
    checksum: str
    state: State
    settled: Settled | None = None


class Stored(msgspec.Struct, frozen=True):
    """A conversation as it is stored.

    ``service_id``: the service keeps it under that name; if there are no turns here, it alone does.
    """

    id: str
    turns: list[Turn]
    system: str | None = None
    service_id: str | None = None
    calls: list[CallState] = []

    @property
    def is_handed_over(self) -> bool:
        """Does the service alone keep it?"""
        return self.service_id is not None and not self.turns

    @property
    def conversation(self) -> Conversation:
        """The same turns as a conversation of its own, which may grow."""
        return Conversation(list(self.turns), self.system)

    @property
    def unresolved(self) -> list[CallState]:
        """The calls that may or may not have run."""
        return [call for call in self.calls if call.state == "unresolved"]

    @property
    def journal(self) -> list[Settled]:
        """What handlers gave and no stored turn tells."""
        return [c.settled for c in self.calls if c.state == "settled" and c.settled is not None]


class History(abc.ABC):
    """Conversations that survive. Open it with ``async with``, or ``aclose`` it.

    ::

        async with SQLiteHistory("chat.db") as history:
            await history.commit("chat-1", "run-1", 0, [turn], create=True)
            (await history.load("chat-1")).conversation
    """

    @abc.abstractmethod
    async def create(self, conversation: str, *, system: str | None = None) -> None:
        """A conversation of that id, if there is none yet."""

    @abc.abstractmethod
    async def commit(
        self,
        conversation: str,
        run: str,
        sequence: int,
        turns: Sequence[Turn],
        *,
        settled: Sequence[Settled] = (),
        system: str | None = None,
        service_id: str | None = None,
        expect: int | None = None,
        create: bool = False,
    ) -> Committed:
        """Store these turns, all or none. When it returns they are on the disk.

        ``sequence`` counts the commits of a run from 0. ``expect`` is how many turns the caller
        thinks there are; if there are others, ``ConversationMoved``.
        """

    @abc.abstractmethod
    async def settle(self, conversation: str, record: Settled) -> None:
        """Keep what a handler gave, before its turn is committed. Twice is once."""

    @abc.abstractmethod
    async def claim(self, conversation: str, records: Sequence[Settled]) -> bool:
        """Keep these records, all or none, unless one of their calls has a record or a result: then
        False. Of several who claim a call, on whatever machine, one is told True."""

    @abc.abstractmethod
    async def hand_over(
        self,
        conversation: str,
        service_id: str,
        *,
        system: str | None = None,
        expect: int | None = None,
    ) -> None:
        """From now on the service alone keeps this conversation, under that name.

        Its turns here are forgotten, all or none. ``expect`` as in ``commit``: turns that somebody
        else has appended are not thrown away.
        """

    @abc.abstractmethod
    async def load(self, conversation: str, *, until: int | None = None) -> Stored:
        """The conversation, or its first ``until`` turns; ``UnknownConversation`` if there is none."""

    @abc.abstractmethod
    async def conversations(self) -> list[str]:
        """The ids of all conversations, oldest first."""

    @abc.abstractmethod
    async def delete(self, conversation: str) -> None:
        """Forget a conversation, if there is one."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close the store; twice is once."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
