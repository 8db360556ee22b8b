"""A provider on loopback for tests: answers in, what happened to its connections out.

It runs in a thread of its own, so that it serves blocking clients, asyncio and trio alike, and it
speaks just enough HTTP/1.1: keep-alive, chunked bodies, and all the ways to end one badly.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

SSE = {"content-type": "text/event-stream"}


@dataclass
class Answer:
    """How to answer. ``then``: end the body properly, cut it off, reset, or hang."""

    chunks: Iterable[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(SSE))
    then: str = "end"  # end | cut | reset | hang


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Provider:
    """``with Provider(answer) as server: server.url``.

    ``answer`` is an ``Answer``, a list of them (one per request, the last again and again), or a
    function of the request.
    """

    def __init__(self, answer: Answer | list[Answer] | Callable[[Request], Answer]) -> None:
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._changed = threading.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0
        self.open = 0
        self.requests: list[Request] = []
        self.sent = 0  # bytes of bodies
        self.url = ""

    def __enter__(self) -> Provider:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._accepted, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait_closed(self, within: float) -> float:
        """Wait until no connection is open; how many seconds that took."""
        began = time.monotonic()
        with self._changed:
            done = self._changed.wait_for(lambda: self.open == 0, within)
        assert done, f"{self.open} connections still open after {within} s"
        return time.monotonic() - began

    def _run(self, job: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(job, self._loop).result(20)

    async def _stop(self) -> None:
        """Stop listening, and end what was accepted, be it in this very moment."""
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        await _rounds(5)  # asyncio drops what it is about to accept when a server is closed
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await _rounds(2)  # a transport that was closed is so in the next round

    def _count(self, change: int) -> None:
        with self._changed:
            self.open += change
            self.accepted += change > 0
            self._changed.notify_all()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(+1)
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._left(done, writer))

    def _left(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Also of a task that was cancelled before it began."""
        writer.close()
        if task.cancelled():
            writer.transport.abort()
        self._tasks.discard(task)
        self._count(-1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                if not await self._respond(self._answer_to(request), reader, writer):
                    break

    def _answer_to(self, request: Request) -> Answer:
        if isinstance(self._answer, list):
            return self._answer[min(len(self.requests), len(self._answer)) - 1]
        return self._answer if isinstance(self._answer, Answer) else self._answer(request)

    async def _respond(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send it; True if the connection can be used again."""
        head = [f"HTTP/1.1 {answer.status} X", *(f"{k}: {v}" for k, v in answer.headers.items())]
        writer.write("\r\n".join([*head, "transfer-encoding: chunked", "", ""]).encode())
        gone = asyncio.ensure_future(_gone(reader)) if answer.then == "hang" else None
        for chunk in answer.chunks:
            if chunk:
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await writer.drain()
                self.sent += len(chunk)
            if gone is not None and gone.done():
                break
        if answer.then == "end":
            writer.write(b"0\r\n\r\n")
        elif gone is not None:
            await gone  # raises if the client reset the connection
        elif answer.then == "reset":
            await writer.drain()
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await writer.drain()
        return answer.then == "end"


async def _rounds(count: int) -> None:
    """Let everything run that is ready, and what follows from it."""
    for _ in range(count):
        await asyncio.sleep(0)


async def _gone(reader: asyncio.StreamReader) -> None:
    """Until the client closes or resets the connection."""
    with suppress(OSError):
        await reader.read(1)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
    method, path, _ = first.split(" ", 2)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)
