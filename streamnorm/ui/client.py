"""The address of one of our streams comes in; its events go out, each once, whatever cuts the line.

    async for event in follow("https://example.org/api/chat/c1/stream"): ...

Rule: every event of ``chat_router`` has a position, so what was heard is never asked for again. A
connection that ends before the stream does is made again with ``Last-Event-ID``; if that brings no
event ``retries`` times in a row, or the server says that there is nothing to go on with, it is an
error that tells the position. What was posted is posted once, and an address at which nobody
listens is told at once.

httpx-sse reads the events. It hands on an event only when its last line was there, so a cut inside
of one loses nothing: it is told again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Self, TypeAlias
from urllib.parse import quote

import anyio
import httpx
import msgspec
from httpx_sse import EventSource, ServerSentEvent, SSEError

from ..errors import StreamnormError, UsageError
from ..events import Event, event_from_dict
from ..text.halves import replaced
from ..text.written import json_bytes
from ._encoder import UNAVAILABLE

__all__ = ["FollowError", "Following", "follow"]

Told: TypeAlias = "Event | dict[str, Any]"

RETRIES = 8
PAUSE, LONGEST_PAUSE = 0.25, 8.0  # seconds
PATIENCE = httpx.Timeout(10.0, read=45.0)  # the router says something every 15 seconds
AGAIN = {429, 500, 502, 503, 504}
DONE = "[DONE]"  # the last payload of the AI SDK
LAST = {"RUN_FINISHED", "RUN_ERROR"}  # the last events of AG-UI
ASKED_BY = ("id", "threadId")  # the chat's id in what is posted
LONGEST_ANSWER = 65_536  # bytes of a refusal that are read


class FollowError(StreamnormError):
    """The stream was not heard to its end. ``position`` is the last that was; ``status`` what an
    HTTP answer said, if one did."""

    def __init__(self, message: str, position: str | None, status: int | None = None) -> None:
        super().__init__(message)
        self.position, self.status = position, status


def follow(
    url: str,
    *,
    json: Mapping[str, Any] | None = None,
    after: str | None = None,
    headers: Mapping[str, str] | None = None,
    client: httpx.AsyncClient | None = None,
    retries: int = RETRIES,
    pause: float = PAUSE,
    wait: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> Following:
    """The events of a stream that ``chat_router`` tells.

    ``url`` is ``…/{chat}/stream`` or ``…/{chat}/log``; with ``json`` it is where a message is posted,
    and the answer is followed. ``after`` is a position: what was told up to there is left out. ::

        async with follow(url, headers={"authorization": token}) as events:
            async for event in events: ...
            events.position                   # of the last event, to go on there another day

    Of the plain form events are ``Event`` and what is no event (``said``, ``client_tool_result``,
    ``approval``, ``denied``) is a dict; of the AI SDK and of AG-UI every part is a dict.
    """
    if after is not None and json is not None:
        raise UsageError("either post a message (json=) or go on after a position (after=)")
    sent = {**(headers or {}), "last-event-id": after or ""}
    for name, value in sent.items():
        if not (name.isascii() and value.isascii() and value.isprintable()):
            raise UsageError(f"the header {name}: {value!r} cannot be sent: it must be ASCII")
    return Following(url, json, after, dict(headers or {}), client, retries, pause, wait)


class Following:
    """An async iterator of events. ``position`` is that of the last; ``heard`` counts them."""

    def __init__(
        self,
        url: str,
        json: Mapping[str, Any] | None,
        after: str | None,
        headers: dict[str, str],
        client: httpx.AsyncClient | None,
        retries: int,
        pause: float,
        wait: Callable[[float], Awaitable[None]],
    ) -> None:
        self.position = after
        self.heard = 0
        self._url, self._json, self._headers = url, json, headers
        self._client, self._own = client or httpx.AsyncClient(timeout=PATIENCE), client is None
        self._retries, self._pause, self._wait = retries, pause, wait
        self._response: httpx.Response | None = None
        self._events: AsyncGenerator[ServerSentEvent, None] | None = None
        self._failures = 0  # in a row
        self._ended = False  # the last that was heard is an end
        self._over = False

    # --- reading ----------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Told:
        while not self._over:
            try:
                event = await self._next()
                told = None if event is None else self._told(event)
            except _Cut as cut:
                await self._pause_after(cut)
                continue
            except FollowError:
                await self.aclose()
                raise
            if event is None:
                await self.aclose()
            elif told is not None:
                self.heard += 1
                return told
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop listening; the answer goes on."""
        self._over = True
        await self._hang_up()
        if self._own:
            await self._client.aclose()

    def _told(self, event: ServerSentEvent) -> Told | None:
        """What is said of an event; None if it is an end and no more."""
        is_kept = (
            bool(event.id) and event.id != self.position
        )  # in the log: an id lasts until the next
        if is_kept:
            self._failures, self.position = 0, event.id
        if event.data == DONE:
            self._ended = True
            return None
        payload = self._read(event.data)
        if not is_kept and UNAVAILABLE in payload.values():
            raise _Cut(UNAVAILABLE)
        self._ended = payload.get("kind") == "end" or payload.get("type") in LAST
        return None if payload.get("kind") == "end" else _typed(payload)

    def _read(self, data: str) -> dict[str, Any]:
        try:
            payload = _json_of(data.encode())
        except msgspec.DecodeError:
            payload = None
        if not isinstance(payload, dict):
            raise FollowError(f"this is no stream of ours: it says {data[:80]!r}", self.position)
        return payload

    # --- connections ------------------------------------------------------------------------------

    async def _next(self) -> ServerSentEvent | None:
        """The next event that says something; None at the end of the stream."""
        try:
            if self._events is None and not await self._connect():
                return None
            assert self._events is not None
            async for event in self._events:
                if event.data:  # a comment that keeps the line open comes without
                    return event
                self.position = self.position or event.id or None  # no event, but where we are
        except SSEError as error:
            raise FollowError(f"this is no stream of events: {error}", self.position) from error
        except httpx.TransportError as error:
            raise _Cut(str(error) or type(error).__name__) from error
        if not self._ended:
            raise _Cut("the connection ended before the stream did")
        return None

    async def _connect(self) -> bool:
        """Listen from where we are; False: there is nothing more to hear."""
        request = self._request()
        try:
            self._response = await self._client.send(request, stream=True)
        except httpx.ConnectError as error:
            if self._failures == 0 and not self.heard:  # a wrong address need not be tried again
                raise FollowError(f"cannot connect: {error}", self.position) from error
            raise
        except httpx.TransportError as error:
            if request.method == "POST":
                message = f"whether it was asked is not known: {error or type(error).__name__}"
                raise FollowError(message, None) from error
            raise
        status = self._response.status_code
        if status == httpx.codes.OK:
            self._events = EventSource(self._response).aiter_sse()
        elif status in AGAIN and request.method == "GET":
            raise _Cut(f"the server answered {status}")
        elif status != httpx.codes.NO_CONTENT:
            raise FollowError(await _refusal(self._response), self.position, status)
        elif self._json is not None and self.position is None:
            raise FollowError("the answer ended while nobody listened; its log has it", None)
        return status == httpx.codes.OK

    def _request(self) -> httpx.Request:
        headers = {**self._headers, "accept": "text/event-stream", "cache-control": "no-store"}
        if self._json is not None and self._failures == 0:
            headers["content-type"] = "application/json"
            content = json_bytes(self._json)
            return self._client.build_request("POST", self._url, headers=headers, content=content)
        if self.position is not None:
            headers["last-event-id"] = self.position
        return self._client.build_request("GET", self._stream_url(), headers=headers)

    def _stream_url(self) -> str:
        if self._json is None:
            return self._url
        chat = next((self._json[key] for key in ASKED_BY if key in self._json), "")
        return f"{self._url}/{quote(str(chat), safe='')}/stream"

    async def _pause_after(self, cut: _Cut) -> None:
        await self._hang_up()
        self._failures += 1
        if self.heard and self.position is None:
            await self.aclose()
            message = (
                f"{cut}, and its events have no ids: it would be heard again from its beginning"
            )
            raise FollowError(message, None) from cut.__cause__
        if self._failures > self._retries:
            await self.aclose()
            message = f"the stream cannot be heard to its end: {cut}"
            raise FollowError(message, self.position) from cut.__cause__
        await self._wait(min(LONGEST_PAUSE, self._pause * 2 ** (self._failures - 1)))

    async def _hang_up(self) -> None:
        response, self._response = self._response, None
        events, self._events = self._events, None
        if events is not None:
            await events.aclose()
        if response is not None:
            await response.aclose()


class _Cut(Exception):
    """The line was cut: it may be taken up again."""


def _typed(payload: dict[str, Any]) -> Told:
    try:
        return event_from_dict(payload)
    except msgspec.ValidationError:  # of another protocol, or no event
        return payload


def _json_of(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:  # half of a surrogate pair, or no JSON
        return msgspec.json.decode(replaced(data).decode("utf-8", "replace"))


async def _refusal(response: httpx.Response) -> str:
    """What the server says, in its own words where it has any."""
    said = bytearray()
    async for chunk in response.aiter_bytes():
        said += chunk
        if len(said) > LONGEST_ANSWER:
            break
    try:
        told = _json_of(bytes(said))["error"]["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        told = ""
    return f"the server answered {response.status_code}" + (f": {told}" if told else "")
