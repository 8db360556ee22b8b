"""A loop comes in; three addresses for a chat page go out, for Starlette and FastAPI.

    POST <path>                     ask: the answer streams back, and into the log
    GET  <path>/{chat}/stream       come back: the stream that is told now, from the start or from a
                                    position (``Last-Event-ID``); 204 if there is none
    POST <path>/{chat}/stop         stop it, wherever it is produced

Rule: the producer belongs to nobody's connection. It runs in the background, appends to the log and
goes on when readers leave, stall or never come; it ends with its events or when told to stop. Every
reader, the first one too, reads from the log. Who may read what is decided by ``owner``, which must
be given; somebody else's stream answers as none at all.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from ..conversation import Conversation, Turn
from ..errors import UsageError
from ..events import Failed
from ..sources import spawn
from . import ag_ui, plain, vercel
from ._encoder import INTERNAL, Encoder, ErrorText, plain_error
from ._fold import Item
from ._frames import event_bytes, stream_bytes
from ._pace import WITHIN, pump
from .inbox import BadBody, Inbox, from_ag_ui, from_ai_sdk, from_plain, parse_body
from .log.base import Busy, Entry, EventLog, Gap, Gone, LogError, ProducerLost, Reader, Writer
from .log.memory import MemoryLog

__all__ = ["Chat", "chat_router"]

MAX_BODY = 16 * 1024 * 1024
KEEP_ALIVE = 15.0  # seconds of silence after which a comment is sent
BEAT = 1.0  # seconds between signs of life, and so until a stop from another machine is heard
SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store"}

log_of_router = logging.getLogger("streamnorm.ui")

Owner: TypeAlias = Callable[[Request], str | Awaitable[str | None] | None]
Events: TypeAlias = AsyncIterable[Item]


@dataclass(frozen=True, slots=True)
class Chat:
    """What a loop is given: who asks, in which chat, and what was posted."""

    id: str
    owner: str
    inbox: Inbox

    @property
    def conversation(self) -> Conversation:
        """What was posted, as a conversation."""
        return self.inbox.conversation

    @property
    def name(self) -> str:
        """One name of owner and chat, for a history: no owner can name another's chat.

        >>> Chat("c1", "ann", Inbox("c1", Conversation())).name
        '3:ann:c1'
        """
        return f"{len(self.owner)}:{self.owner}:{self.id}"


class Looped(Protocol):
    """What is used of a ``ToolLoop``."""

    history: Any

    def run(self, said: Any = None, *, conversation: Any = None) -> Any:
        """An async iterable of events."""


Loop: TypeAlias = Looped | Callable[[Chat], Events | Awaitable[Events]]


@dataclass(frozen=True, slots=True)
class _Protocol:
    """A chat protocol: how a body is read, how events are written, how a dead stream is ended."""

    decode: Callable[..., Inbox]
    encoder: Callable[[Inbox, ErrorText], Encoder]
    lost: Callable[[Iterable[bytes]], list[bytes]]
    headers: dict[str, str]


def _vercel(inbox: Inbox, error_text: ErrorText) -> Encoder:
    return vercel.Encoder(message_id=inbox.message_id, used=inbox.call_ids, error_text=error_text)


def _ag_ui(inbox: Inbox, error_text: ErrorText) -> Encoder:
    return ag_ui.Encoder(
        thread_id=inbox.chat, run_id=inbox.run, protocol_version=inbox.protocol_version,
        used=inbox.call_ids, error_text=error_text,
    )  # fmt: skip


def _plain(inbox: Inbox, error_text: ErrorText) -> Encoder:
    return plain.Encoder(error_text=error_text)


PROTOCOLS = {
    "ai-sdk": _Protocol(from_ai_sdk, _vercel, vercel.lost, vercel.HEADERS),
    "ag-ui": _Protocol(from_ag_ui, _ag_ui, ag_ui.lost, ag_ui.HEADERS),
    "plain": _Protocol(from_plain, _plain, plain.lost, plain.HEADERS),
}


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
) -> Router:
    """The routes of a chat.

    ``loop``: a ``ToolLoop``, or a function of a ``Chat`` that gives an async iterable of events (or
    an awaitable of one). ``owner(request)`` says who asks, or None for nobody; it may be async.
    ``protocol``: ``"ai-sdk"``, ``"ag-ui"`` or ``"plain"``. ``log``: in memory unless given.
    ``cross_site=True`` takes requests that pages of other sites send. ::

        routes = chat_router(loop, protocol="ai-sdk", owner=user_of, path="/api/chat").routes
        app = Starlette(routes=routes)             # or: fastapi_app.router.routes.extend(routes)
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    if not callable(owner):
        raise UsageError(
            "owner must be given: a function of the request that says whose chat it is"
        )
    if not path.startswith("/") or path.endswith("/"):
        raise UsageError(f"path {path!r}: it begins with a slash and does not end with one")
    desk = _Desk(loop, owner, PROTOCOLS[protocol], log or MemoryLog())
    desk.error_text, desk.allow_system, desk.cross_site = error_text, allow_system, cross_site
    desk.max_body, desk.within = max_body, within
    return Router(
        routes=[
            Route(path, desk.ask, methods=["POST"]),
            Route(f"{path}/{{chat}}/stream", desk.resume, methods=["GET"]),
            Route(f"{path}/{{chat}}/stop", desk.stop, methods=["POST"]),
        ]
    )


# --- the addresses --------------------------------------------------------------------------------


class _Refused(Exception):
    """An answer other than a stream: a status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.more = status, code, more

    def response(self) -> Response:
        error = {"code": self.code, "message": str(self), **self.more}
        return JSONResponse({"error": error}, self.status, headers=SAFE)


_NOT_THERE = (404, "not_found", "there is no stream to stop in this chat")
_GONE = (410, "gone", "there is no such stream any more: load the messages, or ask again")


class _Desk:
    """Answers the three addresses, and knows which producers run in this process."""

    error_text: ErrorText
    allow_system: bool
    cross_site: bool
    max_body: int
    within: float

    def __init__(self, loop: Loop, owner: Owner, protocol: _Protocol, log: EventLog) -> None:
        self.loop, self.owner, self.protocol, self.log = loop, owner, protocol, log
        self.producers: dict[str, _Producer] = {}

    async def ask(self, request: Request) -> Response:
        """A new answer."""
        return await self._answer(self._ask, request)

    async def resume(self, request: Request) -> Response:
        """The answer that is told now, once more."""
        return await self._answer(self._resume, request)

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
        except LogError:
            log_of_router.exception("the event log cannot be used")
            return _Refused(503, "unavailable", "try again in a moment").response()

    async def _who(self, request: Request) -> str:
        if not self.cross_site and request.headers.get("sec-fetch-site") == "cross-site":
            raise _Refused(403, "cross_site", "pages of other sites may not ask here")
        who = self.owner(request)
        if inspect.isawaitable(who):
            who = await who
        if not who:
            raise _Refused(401, "unauthorized", "who is asking?")
        return str(who)

    async def _ask(self, request: Request, owner: str) -> Response:
        body = parse_body(await self._body(request))
        inbox = self.protocol.decode(body, allow_system=self.allow_system)
        try:
            writer = await self.log.create(owner=owner, chat=inbox.chat)
        except Busy as busy:
            raise _Refused(409, "busy", str(busy)) from None
        encoder = self.protocol.encoder(inbox, self.error_text)
        source = _events(self.loop, Chat(inbox.chat, owner, inbox))
        producer = _Producer(source, encoder, writer, self.within)
        self.producers[writer.stream] = producer
        spawn(lambda: self._produce(producer))
        return self._stream(self.log.read(writer.stream, owner=owner), [])

    async def _produce(self, producer: _Producer) -> None:
        try:
            await producer.run()
        finally:
            del self.producers[producer.writer.stream]

    async def _body(self, request: Request) -> bytes:
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
        position = request.headers.get("last-event-id") or request.query_params.get("after")
        if position:
            stream, after = _position(position)
        else:
            found = await self.log.active(owner=owner, chat=request.path_params["chat"])
            if found is None:
                return Response(status_code=204, headers=SAFE)
            stream, after = found, 0
        reader = self.log.read(stream, owner=owner, after=after)
        try:
            first = await reader.page(within=0)
        except ProducerLost:
            first = None  # told by the stream itself
        if first == []:
            return Response(status_code=204, headers=SAFE)
        return self._stream(reader, first or [])

    async def _stop(self, request: Request, owner: str) -> Response:
        stream = await self.log.active(owner=owner, chat=request.path_params["chat"])
        if stream is None:
            raise _Refused(*_NOT_THERE)
        try:
            await self.log.stop(stream, owner=owner)
        except Gone:
            raise _Refused(*_NOT_THERE) from None
        if (producer := self.producers.get(stream)) is not None:
            producer.stop()
        return JSONResponse({"stopping": True}, 202, headers=SAFE)

    def _stream(self, reader: Reader, first: list[Entry]) -> Response:
        body = _Body(reader, first, self.protocol)
        return StreamingResponse(body, headers=self.protocol.headers)


def _position(text: str) -> tuple[str, int]:
    stream, _, seq = text.rpartition(".")
    if not stream or not seq.isascii() or not seq.isdigit() or len(seq) > 15:
        raise _Refused(400, "bad_position", "Last-Event-ID is not an id that was sent here")
    return stream, int(seq)


def _events(loop: Loop, chat: Chat) -> Events:
    return _Source(loop, chat)


class _Source:
    """The events of a loop, made in the task that reads them."""

    def __init__(self, loop: Loop, chat: Chat) -> None:
        self._loop, self._chat = loop, chat
        self._events: Any = None

    def __aiter__(self) -> _Source:
        return self

    async def __anext__(self) -> Item:
        if self._events is None:
            made = self._made()
            self._events = aiter(await made if inspect.isawaitable(made) else made)
        item: Item = await anext(self._events)
        return item

    async def aclose(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    def _made(self) -> Any:
        run = getattr(self._loop, "run", None)
        if run is None:
            return self._loop(self._chat)  # type: ignore[operator]
        if getattr(self._loop, "history", None) is None:
            return run(None, conversation=self._chat.conversation)
        return run(_last_said(self._chat.conversation), conversation=self._chat.name)


def _last_said(conversation: Conversation) -> Turn | None:
    """What the user said last; with a history the rest is known, and better."""
    last = conversation.turns[-1] if conversation.turns else None
    return last if last is not None and last.role == "user" else None


# --- the producer ---------------------------------------------------------------------------------


class _Producer:
    """Reads the events of one answer and appends them to its log, whoever listens."""

    def __init__(self, events: Events, encoder: Encoder, writer: Writer, within: float) -> None:
        self.writer = writer
        self._events, self._encoder, self._within = events, encoder, within
        self._scope = anyio.CancelScope()
        self._stopped = False

    def stop(self) -> None:
        """End the answer where it is. Reading goes on: readers hear that it was stopped."""
        self._stopped = True
        self._scope.cancel()

    async def run(self) -> None:
        """All of it. Never raises: there is nobody to raise to."""
        failed: Failed | None = Failed("cancelled", "the server is stopping")
        try:
            with self._scope:
                failed = await self._tell()
        finally:
            if self._stopped:
                failed = Failed("cancelled", "stopped")
            with anyio.CancelScope(shield=True):
                await self._close(failed)

    async def _tell(self) -> Failed | None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._beat)
            failed = await self._pumped()
            group.cancel_scope.cancel()
        return failed

    async def _pumped(self) -> Failed | None:
        try:
            await pump(self._events, self._sink, within=self._within)
        except Exception:  # whatever a loop raises: the page hears that it failed, the log why
            log_of_router.exception("a chat answer failed")
            return Failed("transport", "the answer could not be made", code=INTERNAL)
        return None

    async def _sink(self, items: list[Item]) -> None:
        payloads = self._encoder.payloads(*items)
        if payloads and await self.writer.append(payloads):
            self.stop()

    async def _beat(self) -> None:
        while True:
            await anyio.sleep(min(BEAT, self.writer.log.lease / 3))
            with suppress(LogError):  # the next one may get through
                if await self.writer.beat():
                    self.stop()

    async def _close(self, failed: Failed | None) -> None:
        try:
            await self.writer.close(self._encoder.closing(failed))
        except LogError:  # readers hear of it when the lease runs out
            log_of_router.exception("the end of a chat answer could not be kept")


# --- the reader -----------------------------------------------------------------------------------


class _Body:
    """The bytes of a response: what the log has, as it comes, with positions to resume after."""

    def __init__(self, reader: Reader, first: list[Entry], protocol: _Protocol) -> None:
        self._reader, self._first, self._protocol = reader, first, protocol
        self._over = False

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        if self._over:
            raise StopAsyncIteration
        if self._first:
            entries, self._first = self._first, []
            return self._written(entries)
        try:
            page = await self._reader.page(within=KEEP_ALIVE)
        except ProducerLost:
            self._over = True
            return stream_bytes(await self._lost())
        except (Gap, Gone):  # it read so slowly that the log has moved on: never a hole in silence
            self._over = True
            return stream_bytes(self._protocol.lost([]))
        if page == []:
            raise StopAsyncIteration
        return b": still here\n\n" if page is None else self._written(page)

    def _written(self, entries: Iterable[Entry]) -> bytes:
        stream = self._reader.stream
        return b"".join([event_bytes(e.data, f"{stream}.{e.seq}") for e in entries])

    async def _lost(self) -> list[bytes]:
        """The producer died: what it left open is closed for it, and the failure told."""
        told: list[bytes] = []
        again = self._reader.log.read(self._reader.stream, owner=self._reader.owner)
        try:
            async for entry in again:
                told.append(entry.data)
        except ProducerLost:
            return self._protocol.lost(told)
        except Gap:
            return self._protocol.lost([])
        return []
