"""A connection of messages comes in; a ``Source`` goes out that gives them one by one.

Rule: a socket is asked with its own method for one message, and never iterated: asking can be
cancelled and loses nothing, where an iterator would be over. Libraries are known by the shape of
their objects, as in ``sources``. A connection that is closed as it should be has ended, any other
end is raised as ``Lost``.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from anyio import EndOfStream
from anyio.abc import ByteReceiveStream

from ..captures import read_lines
from ..errors import UsageError
from ..framing.lines import Lines
from .runtime import in_thread
from .sources import Facts, Item, Source, as_item, facts_of, is_transport, source_of

__all__ = ["Lost", "messages_of"]

_CLOSED_WELL = {1000, 1001}
_GOOD_ENDS = {"ConnectionClosedOK", "EndOfStream"}
# What gives one message, in the order in which it is looked for: the SDK's own, where the bytes are
# exact; websockets; trio-websocket; aiohttp and httpx-ws.
_RECEIVERS = ("recv_bytes", "recv", "get_message", "receive")


class Lost(ConnectionError):
    """The connection failed, in the words of its library."""


def messages_of(thing: Any) -> Source:
    """The messages of a socket, of any iterable, of what a program prints, or of a file with lines.

    >>> messages_of(['{"type":"ping"}']).next_now()
    b'{"type":"ping"}'
    """
    if isinstance(thing, str | os.PathLike):
        return source_of(read_lines(thing).wire.splitlines())
    if (read := _reader(thing)) is not None:
        return _Lines(thing, read)
    receive = next((r for name in _RECEIVERS if (r := getattr(thing, name, None))), None)
    if receive is None or isinstance(thing, Source):
        return source_of(thing)
    if not hasattr(thing, "close") and not hasattr(thing, "aclose"):
        raise UsageError(
            f"a {type(thing).__name__} is not open: enter it, and pass what that gives"
        )
    return _Socket(thing, receive)


_SOME = 65536  # bytes of a program's output that are asked for at once


def _reader(thing: Any) -> Callable[[], Any] | None:
    """What reads on in a pipe or a file of bytes: their pieces end anywhere, not with a line."""
    if isinstance(thing, io.TextIOBase):
        thing = getattr(thing, "buffer", None)
    if isinstance(thing, io.IOBase):
        read1 = getattr(thing, "read1", None) or thing.read
        return lambda: read1(_SOME)
    if isinstance(thing, ByteReceiveStream):
        return lambda: thing.receive(_SOME)
    if isinstance(thing, asyncio.StreamReader):
        return lambda: thing.read(_SOME)
    some = getattr(thing, "receive_some", None)  # trio
    return None if some is None else lambda: some(_SOME)


class _Lines(Source):
    """The lines that a program prints."""

    def __init__(self, pipe: Any, read: Callable[[], Any]) -> None:
        super().__init__(close=(pipe,))
        self._read, self._over = read, False
        self._framer, self._lines = Lines(), deque[bytes]()
        self._later_on = not isinstance(pipe, io.IOBase)

    @property
    def is_async(self) -> bool:
        return self._later_on

    @property
    def is_sync(self) -> bool:
        return not self._later_on

    async def next(self) -> Item | None:
        if self.is_sync:
            return await in_thread(self.next_now)
        while not self._lines and not self._over:
            try:
                self._take(await self._read())
            except EndOfStream:  # anyio says it so
                self._take(b"")
        return self._lines.popleft() if self._lines else None

    def next_now(self) -> Item | None:
        while not self._lines and not self._over:
            self._take(self._read())
        return self._lines.popleft() if self._lines else None

    def _take(self, data: bytes | None) -> None:
        self._over = not data
        self._lines.extend(self._framer.feed(data) if data else self._framer.rest())


class _Socket(Source):
    """One WebSocket, of whatever library."""

    is_socket = True

    def __init__(self, socket: Any, receive: Callable[..., Any]) -> None:
        super().__init__(facts=_facts(socket), close=(socket,))
        self._socket, self._receive = socket, receive
        self._later_on = inspect.iscoroutinefunction(receive)

    @property
    def is_async(self) -> bool:
        return self._later_on

    @property
    def is_sync(self) -> bool:
        return not self._later_on

    async def next(self) -> Item | None:
        if self.is_sync:
            return await in_thread(self.next_now)
        try:
            return self._data(await self._receive())
        except Exception as error:
            if _is_good_end(error):
                return None
            if isinstance(error, Lost) or not is_transport(error):
                raise
            raise _lost(error) from error

    def next_now(self) -> Item | None:
        try:
            return self._data(self._receive())
        except Exception as error:
            if _is_good_end(error):
                return None
            if isinstance(error, Lost) or not is_transport(error):
                raise
            raise _lost(error) from error

    def _data(self, message: Any) -> Item | None:
        """The text or the bytes of a message, which some libraries wrap."""
        if isinstance(message, str | bytes | bytearray) or not hasattr(message, "data"):
            return as_item(message)
        kind = getattr(getattr(message, "type", None), "name", "")
        if kind.startswith("CLOS"):
            code = getattr(self._socket, "close_code", None)
            if code is not None and code not in _CLOSED_WELL:
                raise Lost(f"the connection was closed with code {code}")
            return None
        if isinstance(message.data, BaseException):
            raise message.data
        return as_item(message.data)


def _lost(error: Exception) -> Lost:
    name = type(error)
    return Lost(f"{name.__module__.partition('.')[0]}.{name.__name__}: {error}")


def _is_good_end(error: Exception) -> bool:
    own = vars(error)  # not by attribute: there are some that warn
    code = own.get("code", getattr(own.get("reason"), "code", None))
    return type(error).__name__ in _GOOD_ENDS or code in _CLOSED_WELL


def _facts(socket: Any) -> Facts:
    """What is known of the request: its headers hold secrets, which are never kept or shown."""
    for holder in (
        socket,
        getattr(socket, "_connection", None),
        getattr(socket, "_response", None),
    ):
        facts = facts_of(holder)
        if facts.request_headers:
            return Facts(request_headers=facts.request_headers)
    return Facts()
