"""The client of one exchange: its body comes in, bounded; what it is answered goes out.

Rule: whatever is sent is counted, and nothing is sent that holds one of our keys. An answer that was
begun and cannot be ended as it should is broken off, never closed as if it were whole. While an answer
is made the client is listened to: when it leaves, or takes nothing any more, the work for it is cancelled.
One that has heard nothing for a while is told that the work goes on.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from .flow import Exchange
from .headers import Pairs, Secrets

if TYPE_CHECKING:
    from starlette.types import Receive, Send

__all__ = ["Client", "Left", "TooLarge", "read_body", "while_there"]


PATIENCE = 60.0  # seconds for the next piece of a body
TICK = 5.0  # seconds between two looks at a client
QUIET = 15.0  # seconds without a word after which it hears that the answer is still being made
STUCK = 300.0  # seconds for which it may take nothing of what is sent to it


class TooLarge(Exception):
    """More was sent than is taken."""


class Left(Exception):
    """The client went away."""


async def read_body(receive: Receive, most: int) -> bytes:
    """The body of a request, up to so many bytes; more is not even read. If nothing more comes of it for
    too long it is given up (``TimeoutError``)."""
    chunks: list[bytes] = []
    size = 0
    while True:
        with anyio.fail_after(PATIENCE):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > most:
            raise TooLarge
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks) if len(chunks) > 1 else chunk


async def while_there(
    receive: Receive, client: Client, work: Callable[[], Awaitable[None]]
) -> None:
    """Do the work as long as the client waits for it."""
    mistake = None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        tasks.cancel_scope.cancel()

    async def tend() -> None:
        while not client.is_stuck:
            await anyio.sleep(TICK)
            await client.reassure()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        tasks.start_soon(tend)
        try:
            await work()
        except Exception as error:  # noqa: BLE001  told outside of the group, which would wrap it
            mistake = error
        tasks.cancel_scope.cancel()
    if mistake is not None:
        raise mistake


class Client:
    """Where the answer goes."""

    __slots__ = ("_at", "_exchange", "_secrets", "_send", "_sending", "alive", "started")

    def __init__(self, send: Send, exchange: Exchange, secrets: Secrets) -> None:
        self._send = send
        self._exchange = exchange
        self._secrets = secrets
        self._at = time.monotonic()  # when it was last sent anything, or was asked to take it
        self._sending = False
        self.started = False
        #: Tells it that the answer is still being made; None while nothing can be told.
        self.alive: Callable[[], Awaitable[None]] | None = None

    @property
    def is_stuck(self) -> bool:
        """Has it taken nothing for too long of what is sent to it?"""
        return self._sending and self._quiet > STUCK

    @property
    def _quiet(self) -> float:
        return time.monotonic() - self._at

    async def reassure(self) -> None:
        """Say that there is more to come, if nothing was said for a while."""
        if self.alive is not None and not self._sending and self._quiet > QUIET:
            await self.alive()

    async def start(self, status: int, headers: Pairs) -> None:
        """The head of the answer."""
        self.started = True
        self._exchange.status = status
        self._exchange.first = round(time.monotonic() - self._exchange.began, 6)
        told = [(name, self._secrets.clean(value)) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": told})

    async def write(self, data: bytes) -> None:
        """A piece of its body."""
        data = self._secrets.clean(data)
        self._exchange.sent += len(data)
        self._sending, self._at = True, time.monotonic()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._sending = False

    async def end(self) -> None:
        """All of it was sent."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def answer(self, status: int, headers: Pairs, body: bytes) -> None:
        """All of it at once."""
        body = self._secrets.clean(body)
        length = (b"content-length", str(len(body)).encode())
        await self.start(status, [*headers, length])
        self._exchange.sent += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
