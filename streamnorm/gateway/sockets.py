"""The WebSocket of a client comes in; each request on it is answered as if it had been posted.

    a message           a request with its body; the answer of ``exchange``, frame by frame, as messages
    a status            the wire's own error; the connection stays open for the next request

Rule: nothing is answered in another way than by HTTP, so nothing of that is here. Requests of one lane
are answered one after the other, lanes side by side. A request that goes on from an answer of this
connection gets what was said before put before it; what is remembered for that is bounded, and who
asks for more hears that it is not known, and sends all of it. A client that leaves ends its exchanges.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

import anyio

from ..core.row import Provider
from ..encoding.server import Server
from ..encoding.socket import Asking, Reply, Socket, Telling
from ..errors import ProviderError
from ..events import Failed, Finish
from ..framing.sse import SSE, read
from ..wire import provider as wire_of
from .asking import Refused
from .case import MIB, Case, Services
from .common import problem
from .exchange import JSON, Attempt, Kind, answer
from .headers import client_headers
from .passing import Passing

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from starlette.types import Message, Receive, Scope, Send

__all__ = ["Sockets"]

ANSWERS = 256  # that are remembered on one connection, and no more bytes than a body may have
WAITING = 64  # requests of one connection that wait to be answered
_BUSY = "the gateway has as many WebSockets open as it takes; ask again in a moment"
_NO_STREAM = b"the upstream gave no stream, though it was asked for one"
TOLD = ("retry-after",)  # headers of a refusal
POLICY, MISTAKE = 1008, 1011  # codes with which a connection is closed


class Sockets:
    """The route of a wire whose clients speak on WebSockets."""

    def __init__(self, services: Services, row: Provider, kind: type[Socket]) -> None:
        self._services, self._row, self._kind = services, row, kind
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._open >= self._services.settings.exchanges:
            return await problem(503, _BUSY)(scope, receive, send)
        self._open += 1
        try:
            await _Connection(self._services, self._row, self._kind(), scope, receive, send).run()
        finally:
            self._open -= 1


class _Waiting(NamedTuple):
    """What a client has said and was not answered yet."""

    said: Asking | Reply
    size: int


class _Connection:
    """One client."""

    def __init__(
        self, services: Services, row: Provider, socket: Socket, scope: Scope, receive: Receive,
        send: Send,
    ) -> None:  # fmt: skip
        self._services, self._row, self._socket = services, row, socket
        self._receive, self._send = receive, send
        more = [JSON, (b"accept", row.content_type.encode())]
        headers = [*socket.headers(scope["headers"]), *more]
        self._scope = {"headers": headers, "query_string": scope.get("query_string", b"")}
        self._most = services.settings.body
        self._memory = _Memory(self._most)
        self._lanes: dict[str | None, deque[_Waiting]] = {}
        self._slots = anyio.Semaphore(socket.at_once)
        self._gone = anyio.Event()

    async def run(self) -> None:
        """Until the client leaves."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        async with anyio.create_task_group() as tasks:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                text = message.get("text")
                data = (message.get("bytes") or b"") if text is None else text.encode()
                await self._take(self._read(data), len(data), tasks)
            self._gone.set()

    async def _take(self, said: Asking | Reply, size: int, tasks: TaskGroup) -> None:
        waiting = _Waiting(said, size if isinstance(said, Asking) else 0)
        if isinstance(said, Reply) and not said.in_turn:
            await self._say(said.message)
        elif not self._has_room(waiting.size):
            await self._close(POLICY, "more requests wait than are taken")
        else:
            lane = self._lanes.setdefault(said.lane, deque())
            lane.append(waiting)
            if len(lane) == 1:
                tasks.start_soon(self._work, lane)

    def _read(self, data: bytes) -> Asking | Reply:
        if len(data) > self._most:
            return self._socket.reply(413, f"The message is longer than {self._most // MIB} MiB.")
        return self._socket.read(data)

    def _has_room(self, size: int) -> bool:
        """Those that are being answered wait no more."""
        waiting = [one.size for lane in self._lanes.values() for one in list(lane)[1:]]
        return len(waiting) < WAITING and sum(waiting, size) <= self._most

    # --- one after the other ----------------------------------------------------------------------

    async def _work(self, lane: deque[_Waiting]) -> None:
        while lane:
            async with self._slots:
                if self._gone.is_set():
                    return
                try:
                    await self._answer(lane[0].said)
                except Exception:
                    await self._close(MISTAKE, "the gateway made a mistake")
                    raise
            lane.popleft()

    async def _answer(self, said: Asking | Reply) -> None:
        if isinstance(said, Reply):
            return await self._say(said.message)
        before = () if said.previous is None else self._memory.get(said.previous)
        told = self._socket.telling(said)

        async def tell(message: bytes) -> None:
            if told.id is not None and before is not None:  # known before the client can ask for it
                self._memory.keep(told.id, (*before, *said.items, *told.output))
            await self._say(message)

        await answer(
            self._services, self._row, self._scope,
            self._posted(self._socket.body(said, before)),
            _Told(told, tell, self._row.content_type, self._services.settings.limits.stream).send,
            kind=self._forgotten(said) if before is None else _prepared if said.prepares else None,
        )  # fmt: skip

    def _forgotten(self, said: Asking) -> Kind:
        """It goes on from an answer that is not known here. Its provider may have kept that."""

        def kind(case: Case) -> Attempt:
            if said.stored and not said.prepares and case.is_passed:
                return Passing(case).attempt
            message, code = self._socket.unknown(said.previous or "")

            async def attempt() -> Failed | None:
                raise Refused(ProviderError(message, code=code, status=400))

            return attempt

        return kind

    # --- as by HTTP -------------------------------------------------------------------------------

    def _posted(self, body: bytes) -> Receive:
        parts = iter([{"type": "http.request", "body": body}])

        async def receive() -> Message:
            if (part := next(parts, None)) is not None:
                return part
            await self._gone.wait()
            return {"type": "http.disconnect"}

        return receive

    async def _say(self, message: bytes) -> None:
        if message and not self._gone.is_set():
            try:
                await self._send(
                    {"type": "websocket.send", "text": message.decode(errors="replace")}
                )
            except OSError:  # the client has left
                self._gone.set()

    async def _close(self, code: int, reason: str) -> None:
        if not self._gone.is_set():
            self._gone.set()
            with suppress(OSError):
                await self._send({"type": "websocket.close", "code": code, "reason": reason})


class _Told:
    """What HTTP would send to a client, as messages."""

    def __init__(
        self, told: Telling, tell: Callable[[bytes], Awaitable[None]], kind: str, limit: int
    ) -> None:
        self._told, self._tell, self._kind, self._limit = told, tell, kind, limit
        self._status, self._headers = 0, dict[str, str]()
        self._frames: SSE | None = None
        self._body: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], client_headers(message["headers"])
            if self._headers.get("content-type", "").startswith(self._kind):
                self._frames = SSE(self._limit)
            return
        ends, data = not message.get("more_body", False), message.get("body", b"")
        if self._frames is None:
            self._body.append(data)
        else:
            await self._say(self._frames.feed(data))
            if ends:
                await self._say(self._frames.rest())
        if ends and not self._told.over:
            refused = self._status >= 400
            status, body = (self._status, b"".join(self._body)) if refused else (502, _NO_STREAM)
            told = {name: value for name, value in self._headers.items() if name in TOLD}
            await self._tell(self._told.refused(status, body, told))

    async def _say(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            payload = read(frame).data
            # What follows the end would be taken for the next answer; a word that only ends the stream
            # is none on a socket.
            if payload is not None and payload.startswith(b"{") and not self._told.over:
                await self._tell(self._told.tell(payload))


def _prepared(case: Case) -> Attempt:
    """It wants no output: an answer without any, so that others can go on from it."""

    async def attempt() -> Failed | None:
        client, wire = case.client, case.wire
        server = wire_of(wire.name).server(
            response_id=wire.part("server", Server).id_prefix + token_hex(12),
            model=case.asked.model,
            created=int(time.time()),
        )
        case.exchange.state = "done"
        await client.start(200, [(b"content-type", wire.content_type.encode())])
        await client.write(server.tell(Finish("stop")))
        await client.end()
        return None

    return attempt


class _Memory:
    """What stands before an answer and in it, by its id: the latest, up to so many bytes.

    >>> memory = _Memory(10)
    >>> memory.keep("a", (b"12345",)); memory.keep("b", (b"12345", b"6"))
    >>> memory.get("a"), memory.get("b")
    (None, (b'12345', b'6'))
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._answers: dict[str, tuple[bytes, ...]] = {}  # the oldest first

    def get(self, id: str) -> tuple[bytes, ...] | None:
        return self._answers.get(id)

    def keep(self, id: str, items: tuple[bytes, ...]) -> None:
        self._drop(id)
        self._answers[id] = items
        self._size += sum(map(len, items))
        while self._size > self._most or len(self._answers) > ANSWERS:
            self._drop(next(iter(self._answers)))

    def _drop(self, id: str) -> None:
        self._size -= sum(map(len, self._answers.pop(id, ())))
