"""Takes and models come in; the Starlette application behind the page goes out.

    GET  /                           the page
    GET  /api/config                 providers, live models, suggestions
    GET  /api/takes                  the list of takes
    GET  /api/takes/{name}           one take, frame by frame, with its events and notes
    GET  /api/cut/{name}?at=N        what is heard if the wire ends after N bytes
    POST /api/uploads                a file as the body; answers like a take, with a name for cuts
    POST /api/chat                   {"id","text","provider","live"}: a run begins; its log as SSE
    GET  /api/chat/{id}/stream       the log after ``Last-Event-ID`` (or ?after=N); 204 when idle
    POST /api/chat/{id}/stop         the run ends as stopped
    POST /api/chat/{id}/approval     {"call","approved"}: a person's answer
    POST /api/ai-sdk, /api/ag-ui     the same loop for other people's clients: see protocols.py

Rule: each endpoint checks what came, asks one thing of the modules beside this one, and answers in
JSON or SSE. What is wrong with a request is said in one sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .. import __version__
from ..errors import StreamnormError
from ..providers import AUTO, PROVIDERS
from .answers import Sse, answer, problem
from .chat import Chat, Chats, Model
from .dissect import cut, dissect
from .guard import LOCAL, Guard
from .protocols import protocol_routes
from .scripted import SUGGESTIONS, TOOLS, Scripted, needs_approval
from .takes import LARGEST_UPLOAD, Takes

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from ..recording import Take

__all__ = ["create_app"]

STATIC = Path(__file__).parent / "static"
LARGEST_MESSAGE = 64 * 1024  # bytes
IDS = re.compile(r"[A-Za-z0-9_-]{8,64}")


def create_app(
    takes: Takes,
    *,
    scripted: Model | None = None,
    live: Mapping[str, Model] | None = None,
    hosts: Collection[str] = LOCAL,
    origins: Collection[str] = (),
    more: Collection[BaseRoute] = (),
) -> Starlette:
    """The application. ``live`` are models by provider; ``more`` are routes of one's own."""
    chats = Chats(TOOLS, needs_approval)
    scripted = scripted or Scripted()
    page = _Page(takes)
    talk = _Talk(chats, scripted, live or {})
    spoken = protocol_routes(scripted, TOOLS, needs_approval, cross_site=bool(origins))
    static = Mount("/static", StaticFiles(directory=STATIC))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await chats.close()

    app = Starlette(
        routes=[*more, *page.routes(), *talk.routes(), *spoken, static],
        middleware=[Middleware(Guard, hosts=hosts, origins=origins)],
        exception_handlers={
            HTTPException: _http_problem, StreamnormError: _our_problem, Exception: _mistake,
        },
        lifespan=lifespan,
    )  # fmt: skip
    app.state.chats = chats
    return app


class _Page:
    """The page itself, and the takes that it shows."""

    def __init__(self, takes: Takes) -> None:
        self._takes = takes

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", _index),
            Route("/api/takes", self.listing),
            Route("/api/takes/{name:path}", self.take),
            Route("/api/cut/{name:path}", self.cut),
            Route("/api/uploads", self.upload, methods=["POST"]),
        ]

    async def listing(self, request: Request) -> Response:
        return answer(await run_in_threadpool(self._takes.listing))

    async def take(self, request: Request) -> Response:
        return await self._dissected(request.path_params["name"], request)

    async def cut(self, request: Request) -> Response:
        take = self._found(request.path_params["name"])
        at = request.query_params.get("at", "")
        if not at.isascii() or not at.isdigit() or len(at) > 12:
            raise HTTPException(400, "say where to cut: ?at= and a number of bytes")
        return answer(await run_in_threadpool(cut, take, int(at), _provider(request)))

    async def upload(self, request: Request) -> Response:
        data = await _body(request, LARGEST_UPLOAD)
        if not data:
            raise HTTPException(400, "the file is empty: there is nothing to show")
        return await self._dissected(self._takes.keep(data), request)

    async def _dissected(self, name: str, request: Request) -> Response:
        shown = await run_in_threadpool(dissect, self._found(name), _provider(request))
        return answer({"name": name, **shown})

    def _found(self, name: str) -> Take:
        take = self._takes.get(name)
        if take is None:
            raise HTTPException(
                404, "there is no take of that name; uploads are kept for a while only"
            )
        return take


class _Talk:
    """The conversations."""

    def __init__(self, chats: Chats, scripted: Model, live: Mapping[str, Model]) -> None:
        self._chats = chats
        self._scripted = scripted
        self._live = live

    def routes(self) -> list[BaseRoute]:
        post = partial(Route, methods=["POST"])
        return [
            Route("/api/config", self.config),
            post("/api/chat", self.say),
            Route("/api/chat/{id}/stream", self.stream),
            post("/api/chat/{id}/stop", self.stop),
            post("/api/chat/{id}/approval", self.decide),
        ]

    async def config(self, request: Request) -> Response:
        rows = [{"name": row.name, "title": row.title} for row in PROVIDERS.values()]
        facts = {"version": __version__, "providers": rows, "live": sorted(self._live)}
        return answer({**facts, "suggestions": SUGGESTIONS})

    async def say(self, request: Request) -> Response:
        said = await _message(request)
        chat_id, text, provider = said.get("id"), said.get("text"), said.get("provider")
        if not isinstance(chat_id, str) or not IDS.fullmatch(chat_id):
            raise HTTPException(400, "id: 8 to 64 letters, digits, _ or -")
        if not isinstance(text, str) or not text.strip():
            raise HTTPException(400, "text: say something")
        chat = self._chats.open(chat_id)
        if chat.log.live:
            raise HTTPException(409, "an answer is still under way; stop it or wait for its end")
        after = len(chat.log)
        chat.start(text, *self._model(provider, live=said.get("live") is True))
        return Sse(chat.log.read(after))

    async def stream(self, request: Request) -> Response:
        chat = self._chats.get(request.path_params["id"])
        after = _after(request)
        if chat is None or (not chat.log.live and after >= len(chat.log)):
            return Response(status_code=204)
        return Sse(chat.log.read(after))

    async def stop(self, request: Request) -> Response:
        return answer({"stopped": await self._known(request).stop()})

    async def decide(self, request: Request) -> Response:
        said = await _message(request)
        call, approved = said.get("call"), said.get("approved")
        if not isinstance(call, str) or not isinstance(approved, bool):
            raise HTTPException(400, "call: the id of the call; approved: true or false")
        return answer({"taken": self._known(request).decide(call, approved)})

    def _known(self, request: Request) -> Chat:
        chat = self._chats.get(request.path_params["id"])
        if chat is None:
            raise HTTPException(404, "there is no conversation of that id")
        return chat

    def _model(self, provider: Any, *, live: bool) -> tuple[str, Model]:
        if not isinstance(provider, str) or provider not in PROVIDERS:
            raise HTTPException(400, f"provider: one of {', '.join(PROVIDERS)}")
        if not live:
            return provider, self._scripted
        if provider not in self._live:
            raise HTTPException(
                400, f"{provider} is not live here: start with --live {provider}=MODEL"
            )
        return provider, self._live[provider]


# --- what came ------------------------------------------------------------------------------------


async def _index(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def _body(request: Request, most: int) -> bytes:
    """The body, up to so many bytes; more is not even read."""
    chunks: list[bytes] = []
    left = most
    async for chunk in request.stream():
        chunks.append(chunk)
        left -= len(chunk)
        if left < 0:
            raise HTTPException(413, f"more than {most // 1024} KiB: too large to take here")
    return b"".join(chunks)


async def _message(request: Request) -> dict[str, Any]:
    try:
        said = json.loads(await _body(request, LARGEST_MESSAGE))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(said, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return said


def _provider(request: Request) -> str | None:
    name = request.query_params.get("provider") or None
    if name is not None and name != AUTO and name not in PROVIDERS:
        raise HTTPException(400, f"provider: one of {', '.join(PROVIDERS)}, or {AUTO}")
    return name


def _after(request: Request) -> int:
    text = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


# --- what went wrong ------------------------------------------------------------------------------


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, error.detail)


async def _our_problem(request: Request, error: Exception) -> Response:
    return problem(400, str(error))


async def _mistake(request: Request, error: Exception) -> Response:
    return problem(500, "the server made a mistake; its log says more")
