"""A loop comes in; four addresses for a chat page go out, for Starlette and FastAPI.

    POST <path>                     ask: the answer streams back, and into the log
    GET  <path>/{chat}/stream       come back: the stream that is told now, from the start or from a
                                    position (``Last-Event-ID``); 204 if there is none
    GET  <path>/{chat}/log          all streams of the chat that are kept, one after the other, from
                                    the start or from a position; 204 if there is nothing
    POST <path>/{chat}/stop         stop what is told now, wherever it is produced

Rule: every reader, the first one too, reads from the log, and an answer is made to its end whether
anybody reads or not (``_telling``, ``_hearing``). Who may read what is decided by ``owner``, which
must be given; somebody else's stream answers as none at all.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from ..errors import UsageError, needs
from ..text.written import safe_json
from ._encoder import ErrorText, plain_error
from ._hearing import Hearing
from ._pace import WITHIN
from ._protocol import PROTOCOLS, ChatProtocol
from ._telling import Chat, Loop, Producers
from .inbox import BadBody, parse_body
from .log.base import NAMED, Busy, EventLog, Gap, Gone, LogError, is_name
from .log.memory import MemoryLog

with suppress(ImportError):  # an extra, asked for when a router is made
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route, Router

__all__ = ["Chat", "ChatRouter", "chat_router"]

MAX_BODY = 16 * 1024 * 1024
SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store"}

log_of_ui = logging.getLogger("streamnorm.ui")

Owner: TypeAlias = Callable[["Request"], str | Awaitable[str | None] | None]


def chat_router(
    loop: Loop,
    *,
    owner: Owner,
    protocol: str = "ai-sdk",
    log: EventLog | None = None,
    path: str = "/api/chat",
    error_text: ErrorText = plain_error,
    allow_system: bool = False,
    cross_site: bool = False,
    max_body: int = MAX_BODY,
    within: float = WITHIN,
) -> ChatRouter:
    """The routes of a chat.

    ``loop``: a ``ToolLoop``, or a function of a ``Chat`` that gives an async iterable of events (or
    an awaitable of one). If tools of the loop need consent, the clients' own approvals answer them,
    and it must have a history. ``owner(request)`` says who asks, or None for nobody; it may be async.
    ``protocol``: ``"ai-sdk"``, ``"ag-ui"`` or ``"plain"``. ``log``: in memory unless given.
    ``cross_site=True`` takes requests that pages of other sites send. ::

        routes = chat_router(loop, protocol="ai-sdk", owner=user_of, path="/api/chat").routes
        app = Starlette(routes=routes)             # or: fastapi_app.router.routes.extend(routes)
    """
    needs("starlette", "chat_router", extra="ui")
    if protocol not in PROTOCOLS:
        raise UsageError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    if not callable(owner):
        raise UsageError(
            "owner must be given: a function of the request that says whose chat it is"
        )
    if getattr(loop, "asks", False) and getattr(loop, "history", None) is None:
        raise UsageError(
            "a loop with tools that need consent needs a history here: that a page posts a call is "
            "no proof that the model made it; give the ToolLoop a history"
        )
    if not path.startswith("/") or path.endswith("/"):
        raise UsageError(f"path {path!r}: it begins with a slash and does not end with one")
    desk = _Desk(Producers(loop, within), owner, PROTOCOLS[protocol], log or MemoryLog())
    desk.error_text, desk.allow_system, desk.cross_site = error_text, allow_system, cross_site
    desk.max_body = max_body
    return ChatRouter(desk, path)


class ChatRouter:
    """The routes of a chat; also an application by itself. ``aclose`` ends the answers made here."""

    def __init__(self, desk: _Desk, path: str) -> None:
        self._desk = desk
        self.routes = [
            Route(path, desk.ask, methods=["POST"]),
            Route(f"{path}/{{chat}}/stream", desk.resume, methods=["GET"]),
            Route(f"{path}/{{chat}}/log", desk.replay, methods=["GET"]),
            Route(f"{path}/{{chat}}/stop", desk.stop, methods=["POST"]),
        ]
        self._router = Router(routes=self.routes)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._router(scope, receive, send)

    async def aclose(self) -> None:
        """The server goes away: readers hear that, instead of nothing. For an app's lifespan."""
        await self._desk.producers.aclose()


# --- the addresses --------------------------------------------------------------------------------


class _Refused(Exception):
    """An answer other than a stream: a status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.more = status, code, more

    def response(self) -> Response:
        error = {"code": self.code, "message": str(self), **self.more}
        return _json({"error": error}, self.status)


def _json(value: Any, status: int) -> Response:
    return Response(safe_json(value), status, headers=SAFE, media_type="application/json")


_NOT_THERE = (404, "not_found", "there is no stream to stop in this chat")
_GONE = (410, "gone", "there is no such stream any more: load the messages, or ask again")


class _Desk:
    """Answers the addresses: who asks, may they, and what is there."""

    error_text: ErrorText
    allow_system: bool
    cross_site: bool
    max_body: int

    def __init__(
        self, producers: Producers, owner: Owner, protocol: ChatProtocol, log: EventLog
    ) -> None:
        self.producers, self.owner, self.protocol, self.log = producers, owner, protocol, log

    async def ask(self, request: Request) -> Response:
        """A new answer."""
        return await self._answer(self._ask, request)

    async def resume(self, request: Request) -> Response:
        """The answer that is told now, once more."""
        return await self._answer(self._resume, request)

    async def replay(self, request: Request) -> Response:
        """All answers of the chat."""
        return await self._answer(self._replay, request)

    async def stop(self, request: Request) -> Response:
        """No more of it."""
        return await self._answer(self._stop, request)

    async def _answer(
        self, act: Callable[[Request, str], Awaitable[Response]], request: Request
    ) -> Response:
        try:
            return await act(request, await self._who(request))
        except _Refused as refused:
            return refused.response()
        except BadBody as error:
            return _Refused(400, "bad_body", str(error), where=error.where).response()
        except Gap as gap:
            message = "that position is not kept any more"
            more = {"firstAvailable": gap.first_available}
            return _Refused(410, "gap", message, **more).response()
        except Gone:
            return _Refused(*_GONE).response()
        except LogError as error:
            log_of_ui.warning("the event log cannot be used: %s", error)
            return _Refused(503, "unavailable", "try again in a moment").response()

    async def _who(self, request: Request) -> str:
        if not self.cross_site and request.headers.get("sec-fetch-site") == "cross-site":
            raise _Refused(403, "cross_site", "pages of other sites may not ask here")
        who = self.owner(request)
        if inspect.isawaitable(who):
            who = await who
        if not who:
            raise _Refused(401, "unauthorized", "who is asking?")
        if not is_name(str(who)):
            raise _Refused(403, "bad_owner", f"the name of who asks is to be {NAMED}")
        return str(who)

    async def _ask(self, request: Request, owner: str) -> Response:
        body = parse_body(await self._posted(request))
        inbox = self.protocol.decode(body, allow_system=self.allow_system)
        try:
            writer = await self.log.create(owner=owner, chat=inbox.chat)
        except Busy as busy:
            raise _Refused(409, "busy", str(busy)) from None
        encoder = self.protocol.encoder(inbox, self.error_text)
        self.producers.start(Chat(inbox.chat, owner, inbox), encoder, writer)
        return self._stream(self._hearing(owner).whole(writer.stream))

    async def _posted(self, request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise _Refused(415, "not_json", "the body must be application/json")
        chunks, size = [], 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                if size > self.max_body:
                    raise _Refused(413, "too_big", f"the body is over {self.max_body} bytes")
                chunks.append(chunk)
        except ClientDisconnect:
            raise _Refused(400, "bad_body", "the body was not sent to its end") from None
        return b"".join(chunks)

    async def _resume(self, request: Request, owner: str) -> Response:
        stream, after = _position(request)
        if stream is None:
            stream = await self.log.active(owner=owner, chat=request.path_params["chat"])
        if stream is None:
            return self._stream(None)
        return self._stream(await self._hearing(owner).body(stream, after))

    async def _replay(self, request: Request, owner: str) -> Response:
        streams = await self.log.streams(owner=owner, chat=request.path_params["chat"])
        stream, after = _position(request)
        if stream is not None:
            if stream not in streams:
                raise Gone
            streams = streams[streams.index(stream) :]
        return self._stream(await self._hearing(owner).bodies(streams, after))

    async def _stop(self, request: Request, owner: str) -> Response:
        stream = await self.log.active(owner=owner, chat=request.path_params["chat"])
        if stream is None:
            raise _Refused(*_NOT_THERE)
        try:
            await self.log.stop(stream, owner=owner)
        except Gone:
            raise _Refused(*_NOT_THERE) from None
        self.producers.stop(stream)
        return _json({"stopping": True}, 202)

    def _hearing(self, owner: str) -> Hearing:
        return Hearing(self.log, self.protocol, owner)

    def _stream(self, body: AsyncIterable[bytes] | None) -> Response:
        if body is None:
            return Response(status_code=204, headers=SAFE)
        return StreamingResponse(body, headers=self.protocol.headers)


def _position(request: Request) -> tuple[str | None, int]:
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if not text:
        return None, 0
    stream, _, seq = text.rpartition(".")
    if not stream or not seq.isascii() or not seq.isdigit() or len(seq) > 15:
        raise _Refused(400, "bad_position", "Last-Event-ID is not an id that was sent here")
    return stream, int(seq)
