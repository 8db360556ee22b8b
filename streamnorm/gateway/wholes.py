"""An answer that is no stream, of the client's own wire, comes in; what its client may have goes out.

It is told to the guard of streams as the stream that it would have been (``Messages.answered``), so that
there is one rule for both: no call whose answer did not end normally, and none that is not whole. Calls
that a client cannot tell by their ids are told by us, as in a stream (``retelling``).

Rule: the bytes stay as they are unless such a call is in them, or they are the payloads of a stream in a
list. An answer without a call of the client's is nobody's business, whatever it is. But a client that
asked for a stream hears one: of JSON it would hear nothing, and that quietly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..encoding.server import Server
from ..events import BrokenToolCall, Event, Failed, Finish, ToolCall
from ..passage import Passage
from ..text.exact import Refused, parse
from ..text.written import json_bytes, sse
from ..wire import messages_of
from ..wire import provider as wire_of
from .case import Case
from .ids import ServedIds
from .retelling import begins_oddly, objection, served_ids, tools_of

__all__ = ["Whole"]

_NO_END = "the answer has a call in it and no word for its end"


class Whole:
    """One answer. ``failure`` says why its client must not have it."""

    def __init__(self, case: Case, body: bytes) -> None:
        self._case = case
        self._events: list[Event] = []
        said = msgspec.json.decode(body)
        self._odd = isinstance(said, list)  # a stream's payloads: its client reads one answer
        self._passage = Passage(
            case.wire.name, listener=self._hear, limits=case.services.settings.limits
        )
        for payload in _payloads(case, said):
            self._passage.feed(sse(payload))
        self._passage.close()
        case.notes.update(self._passage.notes)
        self.failure = (self._passage.failure or _doubt(body)) if self._has_calls else None
        if self.failure is not None and self.failure.reason == "truncated":
            self.failure = msgspec.structs.replace(self.failure, error=_NO_END)

    @property
    def _has_calls(self) -> bool:
        calls = (event for event in self._events if isinstance(event, ToolCall | BrokenToolCall))
        return any(call.runs_on == "client" for call in calls)

    def _hear(self, events: list[Event]) -> None:
        self._events += events
        self._odd = self._odd or begins_oddly(events, self._passage, self._case)
        self._case.exchange.hear(events)

    def retold(self) -> bytes | Failed | None:
        """The answer as its client can work with it; None if it can."""
        return (
            self._told(lambda server: json_bytes(server.answer(self._events)[1]))
            if self._odd
            else None
        )

    def streamed(self) -> bytes | Failed | None:
        """The answer as the stream that its client asked for; None if it has no end of its own."""
        if self.failure is not None or not isinstance(self._passage.ending, Finish):
            return self.failure
        return self._told(lambda server: b"".join(map(server.tell, self._events)))

    def _told(self, tell: Callable[[Server], bytes]) -> bytes | Failed:
        """By us, under ids that are served."""
        for why in filter(None, map(objection, self._events)):
            return Failed("protocol", why)
        ids = served_ids(self._case)
        server = self._server(ids)
        said = tell(server)
        for event in self._events:
            if isinstance(event, ToolCall) and event.runs_on == "client":
                ids.keep(event)
        return server.failure or said

    def _server(self, ids: ServedIds) -> Server:
        case, passage = self._case, self._passage
        return wire_of(case.wire.name).server(
            tools=tools_of(case), ids=ids, model=passage.model, response_id=passage.response_id
        )


def _doubt(body: bytes) -> Failed | None:
    """Why not every client would read the same calls in these bytes."""
    try:
        parse(body.decode())
    except Refused as why:
        return Failed("protocol", f"the answer has a call in it, and is no exact JSON: {why}", True)
    return None


def _payloads(case: Case, said: Any) -> Iterable[dict[str, Any]]:
    for answer in said if isinstance(said, list) else [said]:
        yield from messages_of(case.wire.name, answer)[1].answered(answer)
