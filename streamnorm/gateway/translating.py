"""A request in the client's words and an upstream that speaks others come in; the answer goes out in the
client's words.

Rule: what cannot be said on the upstream's wire is counted and told, never guessed. The upstream is
always asked for a stream. An id that the client hears is legal for it and unlike all others of its
conversation (``ids``); what it cannot give back is in the store when it hears of the call.
"""

from __future__ import annotations

import time
from secrets import token_hex

import msgspec

from ..edge.stream import Stream, normalize
from ..edge.summary import PIECES
from ..encoding.encoder import Encoder
from ..encoding.server import Server
from ..errors import ProviderError
from ..events import Event, Failed, ToolCall
from ..request import Request, read_request
from ..text.written import json_bytes
from ..tools import Tool
from ..wire import Prepared, messages_of
from ..wire import provider as wire_of
from .asking import Refused, ask, close
from .case import Case
from .ids import ServedIds
from .restoring import ids_in, restored
from .thoughts import Thoughts

__all__ = ["Translating"]

_HEADERS = {"accept-encoding": "identity", "content-type": "application/json"}
_CACHED = (b"cache-control", b"no-cache")


class Translating:
    """Attempts to answer one request."""

    def __init__(self, case: Case) -> None:
        self._case = case
        upstream, model = case.route.upstream, case.route.model
        said = case.asked.whole()
        body = messages_of(case.wire.name, said)[1].recalled(said, case.services.named.get)
        self._request: Request = read_request(case.wire.name, body)
        server = case.wire.part("server", Server)
        self._seals, self._names = server.gives_back(body), server.may_name(body)
        self._thoughts: Thoughts | None = None  # where the client gives none back
        self._wire = wire_of(upstream.row.name)
        prepared = self._prepared(model)
        mine = (tool for tool in self._request.tools if not tool.native)
        # By the names that the upstream has heard.
        self._tools: dict[str, Tool] = {self._wire.names.wire(tool.name): tool for tool in mine}
        if case.is_kept:  # and only the answer is told in another way
            self._content = case.content
        else:
            case.exchange.dropped = len(self._request.report) + len(prepared.dropped)
            self._content = json_bytes(prepared.body)
        if case.is_one_wire:
            self._address, self._headers = case.onward()
        else:
            accepted = f"{upstream.row.content_type}, */*;q=0.5"
            self._address = upstream.address(model)
            self._headers = {
                **upstream.row.headers, **_HEADERS, "accept": accepted,
                **upstream.key_for(case.wire.name, case.headers),
            }  # fmt: skip

    def _prepared(self, model: str) -> Prepared:
        talk = restored(self._request.conversation, self._case.store)
        request = msgspec.structs.replace(self._request, conversation=talk)
        return request.prepare(self._wire, model=model, stream=True, images="shown")

    async def attempt(self) -> Failed | None:
        """Answer; or say why nothing was shown."""
        case, wire = self._case, self._wire.name
        response = await ask(
            case.services.http, self._address, self._headers, self._content, wire=wire
        )
        stream = normalize(
            response, wire, limits=case.services.settings.limits, record=case.take(),
            secrets=case.secrets,
        )  # fmt: skip
        try:
            async with stream:
                return await self._serve(stream)
        except ProviderError as error:
            raise Refused(error) from error
        finally:
            case.notes.update(stream.notes)
            case.taken(stream.summary.get("recording", {}).get("path"))
            await close(response)

    async def _serve(self, stream: Stream) -> Failed | None:
        ids = self._ids()
        server = self._server(ids)
        self._thoughts = None if self._seals else Thoughts()
        if self._case.asked.stream:
            failure = await self._live(stream, server, ids)
        else:
            failure = await self._at_once(stream, server, ids)
        if failure is None and self._names:
            self._case.services.named.put(server.nameable)
        return failure

    async def _live(self, stream: Stream, server: Server, ids: ServedIds) -> Failed | None:
        client, exchange = self._case.client, self._case.exchange
        said: list[bytes] = []

        async def alive() -> None:
            if not said:  # else it is about to hear more
                await self._write([server.alive()])

        client.alive = alive
        async for event in stream:
            self._hear(event, ids)
            data = server.tell(event)
            if data:
                said.append(data)
            if server.failure is not None and not client.started:
                return server.failure
            if said and not stream.at_hand:
                await self._write(said)
            if server.over:
                break
        client.alive = None
        await self._write(said)
        exchange.state = "done" if server.failure is None else "broken"
        exchange.error = None if server.failure is None else server.failure.error
        await client.end()
        return None

    async def _write(self, said: list[bytes]) -> None:
        client = self._case.client
        if said and not client.started:
            await client.start(200, [(b"content-type", self._kind), _CACHED])
        if said:
            await client.write(b"".join(said))
            said.clear()

    async def _at_once(self, stream: Stream, server: Server, ids: ServedIds) -> Failed | None:
        events: list[Event] = []
        async for event in stream:
            self._hear(event, ids)
            events.append(event)
        status, body = server.answer(events)
        if server.failure is not None:
            return server.failure
        self._case.exchange.state = "done"
        await self._case.client.answer(
            status, [(b"content-type", b"application/json")], json_bytes(body)
        )
        return None

    def _hear(self, event: Event, ids: ServedIds) -> None:
        if self._thoughts is not None:
            self._thoughts.hear(event)
        if type(event) in PIECES:  # says no more than itself
            return
        self._case.exchange.hear((event,))
        if isinstance(event, ToolCall) and event.runs_on == "client":
            ids.keep(event, self._thoughts)

    @property
    def _kind(self) -> bytes:
        return f"{self._case.wire.content_type}; charset=utf-8".encode()

    def _ids(self) -> ServedIds:
        grammar = self._case.wire.part("encoder", Encoder).grammar
        names = {heard: tool.name for heard, tool in self._tools.items()}
        taken, store = ids_in(self._request.conversation), self._case.store
        return ServedIds(grammar, taken, store, names)

    def _server(self, ids: ServedIds) -> Server:
        settings, wire = self._case.services.settings, self._case.wire
        return wire_of(wire.name).server(
            whole=settings.whole,
            release="call" if settings.eager else "end",
            response_id=wire.part("server", Server).id_prefix + token_hex(12),
            tools=self._tools,
            ids=ids,
            seal=self._seals,
            model=self._case.asked.model,
            created=int(time.time()),
            tell_usage=self._request.options.usage is not False,
        )
