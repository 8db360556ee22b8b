"""The ids of an upstream's calls come in; the ids under which a client is told them go out.

Rule: an id that a client hears is legal on its wire and unlike any other in its conversation, also one of
an earlier turn; a call keeps it from its first word to its last. An id of the upstream that is so is
kept, any other is made here. The store knows from that word on what it stands for, so that no call of
another conversation is ever told under it: that would be given what belongs to this one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from itertools import count

from ..encoding.ids import Grammar
from ..events import Provenance, ToolCall, ToolCallStart
from .store import Kept, Store
from .thoughts import Thoughts

__all__ = ["ServedIds"]

_NOT_WHOLE = Provenance("synthetic")  # nobody gives back a call that did not become whole


class ServedIds:
    """The ids of the calls of one answer.

    >>> from streamnorm.gateway.store import MemoryStore
    >>> ids = ServedIds(Grammar("[a-z0-9_]{1,20}"), {"call_1"}, MemoryStore())
    >>> ids(0, ToolCallStart(0, "call_1", "now")) == "call_1", ids(1, ToolCallStart(1, "call_2", "now"))
    (False, 'call_2')
    """

    def __init__(
        self,
        grammar: Grammar,
        taken: set[str],
        store: Store,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._grammar = grammar
        self._taken = taken
        self._store = store
        self._names = (
            names or {}
        )  # of tools, as the upstream has heard them: what the client calls them
        self._given: dict[int, str] = {}
        self._salt = ""

    def __call__(self, ordinal: int, event: ToolCallStart | ToolCall) -> str:
        """The id of a call, told by its number in the stream."""
        if ordinal not in self._given:
            served = self._kept(event.id) or self._made(event.id)
            self._given[ordinal] = served
            self._taken.add(served)
            if event.runs_on == "client":
                self._store.put(served, Kept(event.id, self._name(event), _NOT_WHOLE))
        return self._given[ordinal]

    def heard(self, start: ToolCallStart) -> None:
        """The client was told this call by its provider, under its own id."""
        self._given[start.call] = start.id
        self._taken.add(start.id)

    def keep(self, call: ToolCall, thoughts: Thoughts | None = None) -> None:
        """The call is whole: what the client will not give back is put into the store."""
        served = self(call.call, call)
        before, leads = ((), 0) if thoughts is None else thoughts.taken()
        self._store.put(served, Kept.of(call, self._name(call), before, leads))

    def _name(self, event: ToolCallStart | ToolCall) -> str:
        return self._names.get(event.name, event.name)

    def _kept(self, id: str) -> str | None:
        """The same, if it is nobody else's. One that is in the store stands for another call there."""
        free = id and id not in self._taken and self._grammar.takes(id)
        return id if free and self._store.get(id) is None else None

    def _made(self, id: str) -> str:
        self._salt = self._salt or secrets.token_hex(16)
        made = (self._grammar.made_from(id, f"{self._salt}/{n}") for n in count())
        return next(id for id in made if id not in self._taken)
