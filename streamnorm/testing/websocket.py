"""Answers, one per request, come in; a WebSocket server on loopback goes out.

Rule: as with ``http``: the next answer answers a request, in the lane that the request names, what was
asked is kept, and nobody waits but where the script says ``hear()``. Requests that are answered side
by side are told in turn, one message of each. A request that only prepares the next is answered with
nothing, and takes no turn. websockets is imported when a server is asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..encoding.steps import Error
from ..encoding.teller import Asked, Talker
from ..errors import UsageError, needs
from ..text.written import json_text
from .http import Received
from .loopback import HOST, Loopback

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

__all__ = ["CLOSE", "DROP", "HEAR", "PING", "SEND", "Move", "Spoken", "WebSocketServer"]

SEND, PING, HEAR, CLOSE, DROP = "send", "ping", "hear", "close", "drop"
_FAREWELL = 0.5  # seconds for a client to answer that the connection is closed
Move: TypeAlias = tuple[str, Any]  # one of those; the pieces of a message, what is heard, a code


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer as moves; one that ``goes_on`` is followed by the next turn, which nobody asks for."""

    answer: str | None  # its id
    moves: list[Move]
    goes_on: bool = False


# The turn's number, its lane, does it follow a pause? -> the turn
Speaking: TypeAlias = Callable[[int, str | None, bool], Spoken]
Preparing: TypeAlias = Callable[
    [int, str | None], Spoken
]  # what is said where nothing is to be said


class WebSocketServer(Loopback):
    """Answers every request of a WebSocket with the next turn; ``with`` and ``async with`` both work.

    ::

        with turns(first, second).websocket("openai_responses") as server:
            async with websockets.connect(server.url) as socket, session(socket) as streams: ...
        server.requests[0].body
    """

    SCHEME = "ws://"

    def __init__(
        self,
        teller: Talker,
        speaking: Speaking,
        preparing: Preparing,
        *,
        lanes: int = 1,
        turns: int | None = None,
    ) -> None:
        super().__init__()
        needs("websockets", "a scripted WebSocket", extra="testing")
        if not isinstance(lanes, int) or lanes < 1:
            raise UsageError(
                f"lanes={lanes!r}: at least one request is answered at a time, so a number from 1"
            )
        self.teller, self.lanes, self.turns = teller, lanes, turns
        self.told = 0  # turns so far
        self._prepared = 0  # requests that wanted no turn
        self._connections: set[_Connection] = set()  # that are open
        self._speaking, self._preparing = speaking, preparing
        self._requests: list[Received] = []
        self._messages: list[Received] = []
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event

    @property
    def http_url(self) -> str:
        """The same for clients that want ``http``, and change it themselves."""
        return self.url.replace("ws", "http", 1)

    @property
    def requests(self) -> list[Received]:
        """What was asked so far; path and headers are those with which the connection was opened.
        Requests that only prepare the next one are not here, but in ``messages``."""
        return self._requests

    @property
    def messages(self) -> list[Received]:
        """All that came: requests, and what was said to answers."""
        return self._messages

    # --- for its connections

    def received(self, message: Received, *, asks: bool) -> None:
        """It is kept for the test to look at."""
        self._messages.append(message)
        if asks:
            self._requests.append(message)

    def next_turn(self, lane: str | None, *, follows: bool = False) -> Spoken:
        """The turn for this lane."""
        number, self.told = self.told, self.told + 1
        return self._speaking(number, lane, follows)

    def prepared(self, lane: str | None) -> Spoken:
        """An answer without output; no turn is used up."""
        number, self._prepared = self._prepared, self._prepared + 1
        return self._preparing(number, lane)

    def release(self) -> None:
        """The last turn is taken: nobody waits for another request, on no connection."""
        if self.turns is not None and self.told >= self.turns:
            for connection in self._connections:
                connection.release()

    # --- running

    def _serve(self, port: Future[int]) -> None:
        asyncio.run(self._listen(port))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _listen(self, port: Future[int]) -> None:
        from websockets.asyncio.server import serve

        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        options: dict[str, Any] = {"close_timeout": _FAREWELL, "max_size": None}
        async with serve(self._connected, HOST, 0, ping_interval=None, **options) as server:
            port.set_result(next(iter(server.sockets)).getsockname()[1])
            await self._ended.wait()

    async def _connected(self, socket: ServerConnection) -> None:
        connection = _Connection(self, socket)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)


class _Answer:
    """A turn that is being told."""

    def __init__(self, spoken: Spoken, lane: str | None) -> None:
        self.id, self.lane, self.goes_on = spoken.answer, lane, spoken.goes_on
        self.moves = deque(spoken.moves)
        self._heard: Counter[str] = Counter()  # and not yet come to

    def hears(self, what: str) -> bool:
        """Is this waited for, now or later? Then it is taken."""
        waits = sum(move == (HEAR, what) for move in self.moves)
        taken = self._heard[what] < waits
        self._heard[what] += taken
        return taken

    @property
    def waits(self) -> bool:
        """Does it wait for the client?"""
        kind, what = self.moves[0]
        return kind == HEAR and not self._heard[what]

    def next(self) -> Move:
        kind, what = self.moves.popleft()
        if kind == HEAR:
            self._heard[what] -= 1
        return kind, what


class _Connection:
    """One connection: who is answered, and what the client says meanwhile."""

    def __init__(self, server: WebSocketServer, socket: ServerConnection) -> None:
        self._server, self._socket = server, socket
        self._waiting: list[_Answer] = []  # for others to be told beside them
        self._open: list[_Answer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._said = asyncio.Event()  # by the client, to an answer; a new one each time

    async def run(self) -> None:
        try:
            async for message in self._socket:
                self._take(message if isinstance(message, bytes) else message.encode())
        except _closed():
            pass  # a client that goes away is part of many tests
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- what the client says

    def _take(self, content: bytes) -> None:
        said = _read(content)
        asked = self._server.teller.asked(said) if isinstance(said, dict) else Asked("")
        request = self._socket.request
        assert request is not None  # it is what opened the connection
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        received = Received("GET", request.path, headers, content)
        self._server.received(received, asks=asked.what == "ask")
        if isinstance(said, str):
            self._start(self._send(self._server.teller.refused(Error("invalid", said))))
        elif asked.what == "ask":
            self._ask(asked.lane)
        elif asked.what == "prepare":
            self._answer([_Answer(self._server.prepared(asked.lane), asked.lane)])
        elif any(a.id == asked.answer and a.hears(asked.what) for a in self._open):
            self._said.set()
            self._said = asyncio.Event()
        else:
            self._start(self._send(self._server.teller.unheard(said)))

    def _ask(self, lane: str | None) -> None:
        self._waiting.append(_Answer(self._server.next_turn(lane), lane))
        if len(self._waiting) == self._server.lanes:
            self.release()
        self._server.release()

    def release(self) -> None:
        """Those that wait are answered now."""
        together, self._waiting = self._waiting, []
        if together:
            self._answer(together)

    def _answer(self, together: list[_Answer]) -> None:
        self._open += together
        self._start(self._tell(together))

    def _start(self, job: Any) -> None:
        task = asyncio.get_running_loop().create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the client is gone: that is looked at, and no more

    # --- what is told

    async def _tell(self, answers: list[_Answer]) -> None:
        """These, in turn; one that waits for the client is passed over."""
        going, passed = deque(answers), 0
        while going:
            answer = going.popleft()
            if not answer.moves:
                going.extend(self._successor(answer))
                continue
            going.append(answer)
            if not answer.waits:
                passed = 0
                await self._do(*answer.next())
            elif (passed := passed + 1) >= len(going):  # all of them wait
                passed = 0
                await self._said.wait()

    def _successor(self, answer: _Answer) -> list[_Answer]:
        self._open.remove(answer)
        if not answer.goes_on:
            return []
        follower = self._server.next_turn(answer.lane, follows=True)
        self._open.append(_Answer(follower, answer.lane))
        self._server.release()
        return self._open[-1:]

    async def _do(self, kind: str, what: Any) -> None:
        if kind == SEND:
            await self._socket.send(what if len(what) > 1 else what[0])
        elif kind == PING:
            await self._socket.ping()
        elif kind == CLOSE:
            await self._socket.close(what)
        elif kind == DROP:
            self._socket.transport.abort()

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send(json_text(message))


def _read(content: bytes) -> dict[str, Any] | str:
    """The message, or why it is none."""
    try:
        said = json.loads(content)
    except ValueError:
        return "The message is not JSON."
    except RecursionError:
        return "The message is nested too deeply."
    return said if isinstance(said, dict) else "The message is JSON, but not an object."


def _closed() -> type[Exception]:
    from websockets.exceptions import ConnectionClosed

    return ConnectionClosed
