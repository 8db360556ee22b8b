"""A stream that was handed on byte for byte so far comes in; the rest goes out, told by us.

For streams with calls that a client cannot tell by their ids or places: without one, under one that two
calls share, of an earlier turn, or with characters that its wire's ids have not. Such a call, and all
calls after it, are told under ids that are served (``ids``).

Rule: what the client has heard stays as it was, and is told to nobody twice; nothing of the frame with
which such a call begins was heard. The server hears all of it, too, and from the payloads themselves
which places are taken, so that it goes on where the upstream was. What cannot be told so (several
answers, calls that are no functions) ends in the wire's own error.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from ..encoding.encoder import Encoder
from ..errors import UsageError
from ..events import Event, Failed, ToolCall, ToolCallStart
from ..framing.borders import all_ends
from ..framing.sse import read
from ..passage import Passage
from ..request import read_request
from ..tools import Tool
from ..wire import provider as wire_of
from .case import Case
from .ids import ServedIds

__all__ = ["Retelling", "begins_oddly", "objection", "served_ids", "tools_of"]

_FAMILIES = ("function", "custom")  # of calls that every server can tell


def begins_oddly(events: Iterable[Event], passage: Passage, case: Case) -> bool:
    """Does a call begin here that its client cannot tell by its id, or by its place?"""
    grammar = case.wire.part("encoder", Encoder).grammar
    return any(
        passage.is_odd(event, needs_id=grammar.needed)
        or not grammar.spells(event.id)
        or f'"{event.id}"'.encode() in case.asked.body
        for event in events
        if type(event) is ToolCallStart and event.runs_on == "client"
    )


class Retelling:
    """The rest of one stream."""

    def __init__(self, case: Case, passage: Passage) -> None:
        self._case, self._passage = case, passage
        self._ids = served_ids(case)
        settings = case.services.settings
        self._server = wire_of(case.wire.name).server(
            release="call" if settings.eager else "end", tools=tools_of(case), ids=self._ids,
            model=passage.model, response_id=passage.response_id,
        )  # fmt: skip
        self._why: str | None = None  # what the client has heard cannot be gone on with
        self.heard = 0  #: events that the client has heard from the provider itself

    @property
    def failure(self) -> Failed | None:
        """Why it did not end well."""
        return self._server.failure

    def begin(self, sent: bytes, more: bytes) -> bytes:
        """The client has heard what was ``sent``; those frames of what is to be sent now that come
        before the call, and before whatever makes a client run another."""
        self._case.scribe.note("call.retold")
        sent, fine = self._parted(sent, more)
        self._server.takes_over(_payloads(sent))
        return fine

    def _parted(self, sent: bytes, more: bytes) -> tuple[bytes, bytes]:
        """All that the client will have heard, and the part of it that is new. It is read once more, as
        nobody knows which event is of which frame."""
        new: list[Event] = []
        settings = self._case.services.settings
        again = Passage(
            self._case.wire.name, eager=settings.eager, listener=new.extend,
            limits=settings.limits, seed=self._passage.seed,
        )  # fmt: skip
        again.feed(sent)
        self._hear(new)
        new.clear()
        fine = 0
        for begin, end in pairwise([0, *all_ends(more)]):
            again.feed(more[begin:end])
            if again.holds or begins_oddly(new, again, self._case):
                break
            if not again.hesitates:
                self._hear(new)
                new.clear()
                fine = end
        return sent + more[:fine], more[:fine]

    def _hear(self, events: list[Event]) -> None:
        """What the client has heard: the server only remembers it."""
        self.heard += len(events)
        for event in events:
            self._why = self._why or objection(event)
            if isinstance(event, ToolCallStart) and event.runs_on == "client":
                self._ids.heard(event)
            self._server.tell(event)

    def tell(self, events: Iterable[Event]) -> bytes:
        """What the client hears of these."""
        return b"".join(map(self._told, events))

    def alive(self) -> bytes:
        """What tells a client that has heard nothing for a while that there is more to come."""
        return self._server.alive()

    def _told(self, event: Event) -> bytes:
        if isinstance(event, ToolCall) and event.runs_on == "client":
            self._ids.keep(event)
        why = self._why or objection(event)
        return self._server.tell(event if why is None else Failed("protocol", why))


def objection(event: Event) -> str | None:
    """Why nothing of a stream can be told by us behind this; None if it can."""
    if getattr(event, "choice", 0):
        return "there are several answers, and only one can be told to this client"
    if not isinstance(event, ToolCallStart) or event.runs_on == "provider":
        return None
    if event.family in _FAMILIES:
        return None
    return "a call has an id that its client cannot work with, and its kind allows no other"


def _payloads(said: bytes) -> Iterable[dict[str, Any]]:
    for begin, end in pairwise([0, *all_ends(said)]):
        data = read(said[begin:end]).data
        try:
            payload = msgspec.json.decode(data or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # the end mark, or what the pipe has read by some tolerance
        if isinstance(payload, dict):
            yield payload


def served_ids(case: Case) -> ServedIds:
    """The ids under which its client is told calls of an answer that is handed on."""
    grammar = case.wire.part("encoder", Encoder).grammar
    return ServedIds(grammar, _Said(case.asked.body), case.store)


class _Said(set[str]):
    """The ids of a request that was not read: whatever stands in it as a text of its own."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = body

    def __contains__(self, id: object) -> bool:
        return super().__contains__(id) or f'"{id}"'.encode() in self._body


def tools_of(case: Case) -> dict[str, Tool]:
    """What the client has declared."""
    try:
        tools = read_request(case.wire.name, case.asked.whole()).tools
    except UsageError:  # a request that the upstream can read, and we cannot
        return {}
    return {tool.name: tool for tool in tools if not tool.native}
