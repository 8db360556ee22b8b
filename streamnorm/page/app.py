"""Takes and models come in; the Starlette application behind the page goes out.

    GET  /                           the page
    GET  /api/config                 providers, live models, suggestions
    GET  /api/takes                  the list of takes
    GET  /api/takes/{name}           one take, frame by frame, with its events and notes
    GET  /api/cut/{name}?at=N        what is heard if the wire ends after N bytes
    POST /api/uploads                a file as the body; answers like a take, with a name for cuts
                                     (these three as lines with progress, if asked for in ``accept``)
    GET  /api/chats                  the chats that are kept, the latest first
    POST /api/chat                   {"id","messages","approvals","provider","live"}: a run begins
    GET  /api/chat/{id}/log          what was told in a chat, and what is; ``ui.router`` has the rest
    POST /api/ai-sdk, /api/ag-ui     the same loop for other people's clients: see protocols.py

Rule: each endpoint checks what came, asks one thing of the modules beside this one, and answers in
JSON or SSE. What is wrong with a request is said in one sentence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
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
from ..providers import AUTO, PROVIDERS, programs
from ..text.shown import shorten
from ..text.written import safe_json
from ..ui.router import chat_router
from .answers import LINES, MISTAKE, answer, json_answer, problem, told_in_lines
from .chat import ME, Chats, Model, Talk, chosen, owned
from .dissect import cut, dissect
from .origins import LOCAL, Guard
from .protocols import protocol_routers
from .scripted import SUGGESTIONS, TOOLS, Scripted
from .takes import LARGEST_UPLOAD, Takes, scripted_wires
from .work import Budget, Busy, Workshop

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from ..takes.format import Take

__all__ = ["create_app"]

STATIC = Path(__file__).parent / "static"
LARGEST_MESSAGE = 64 * 1024  # bytes
MOST_CHATS = 50  # that are listed
TITLE = 80  # characters


def create_app(
    takes: Takes,
    *,
    scripted: Model | None = None,
    live: Mapping[str, Model] | None = None,
    chats: Chats | None = None,
    hosts: Collection[str] = LOCAL,
    origins: Collection[str] = (),
    more: Collection[BaseRoute] = (),
) -> Starlette:
    """The application. ``live`` are models by provider; ``chats`` is where chats are kept, in memory
    unless given; ``more`` are routes of one's own."""
    chats, scripted, live = chats or Chats(), scripted or Scripted(), live or {}
    workshop = Workshop()
    talk = Talk(partial(chosen, scripted=scripted, live=live), TOOLS, chats.history)
    cross_site = bool(origins)  # those are checked before it comes to this
    routers = [
        chat_router(
            talk, protocol="plain", path="/api/chat", owner=lambda request: ME, log=chats.log,
            error_text=lambda failed: failed.error, max_body=LARGEST_MESSAGE, cross_site=cross_site,
        ),
        *protocol_routers(
            scripted, TOOLS, log=chats.log, history=chats.history, cross_site=cross_site
        ),
    ]  # fmt: skip
    chat_routes = [route for router in routers for route in router.routes]

    async def end_answers() -> None:
        for router in routers:
            await router.aclose()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await chats.open()
        yield
        workshop.close()
        await end_answers()
        await chats.aclose()

    app = Starlette(
        routes=[
            *more, *_Page(takes, workshop).routes(), *_Chats(chats, live).routes(), *chat_routes,
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, hosts=hosts, origins=origins)],
        exception_handlers={
            HTTPException: _http_problem, StreamnormError: _our_problem, Exception: _mistake,
        },
        lifespan=lifespan,
    )  # fmt: skip
    app.state.end_answers = end_answers
    return app


class _Page:
    """The page itself, and the takes that it shows."""

    def __init__(self, takes: Takes, workshop: Workshop) -> None:
        self._takes, self._workshop = takes, workshop

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
        take, provider = self._found(request.path_params["name"]), _provider(request)
        at = request.query_params.get("at", "")
        if not at.isascii() or not at.isdigit() or len(at) > 12:
            raise HTTPException(400, "say where to cut: ?at= and a number of bytes")
        return await self._worked(
            request, len(take.wire), lambda budget: cut(take, int(at), provider, budget)
        )

    async def upload(self, request: Request) -> Response:
        data = await _body(request, LARGEST_UPLOAD)
        if not data:
            raise HTTPException(400, "the file is empty: there is nothing to show")
        name = await run_in_threadpool(self._takes.keep, data)
        return await self._dissected(name, request)

    async def _dissected(self, name: str, request: Request) -> Response:
        take, provider = self._found(name), _provider(request)
        return await self._worked(
            request,
            len(take.wire),
            lambda budget: {"name": name, **dissect(take, provider, budget)},
        )

    async def _worked(self, request: Request, size: int, act: Callable[[Budget], Any]) -> Response:
        """What comes of reading a whole file: at once, or at the end of lines that tell how far it is."""
        budget = Budget(size)
        if LINES in request.headers.get("accept", ""):
            steps = self._workshop.work(lambda budget: safe_json(act(budget)), budget)
            return told_in_lines(steps, size)
        try:
            return json_answer(
                await self._workshop.result(lambda budget: safe_json(act(budget)), budget)
            )
        except Busy as busy:
            raise HTTPException(503, str(busy)) from busy

    def _found(self, name: str) -> Take:
        take = self._takes.get(name)
        if take is None:
            raise HTTPException(
                404, "there is no take of that name; uploads are kept for a while only"
            )
        return take


class _Chats:
    """What the page asks about its chats; the router answers what is told in them."""

    def __init__(self, chats: Chats, live: Mapping[str, Model]) -> None:
        self._chats, self._live = chats, live

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/api/config", self.config),
            Route("/api/chats", self.listing),
        ]

    async def config(self, request: Request) -> Response:
        talking = scripted_wires()
        rows = [
            {"name": row.name, "title": row.title, "scripted": row.name in talking}
            for row in PROVIDERS.values()
        ]
        agents = [{"name": row.name, "title": row.title, "reads": row.serves} for row in programs()]
        facts = {"version": __version__, "providers": rows, "programs": agents}
        facts["live"] = sorted(self._live)
        return answer({**facts, "suggestions": SUGGESTIONS})

    async def listing(self, request: Request) -> Response:
        names = [n for n in await self._chats.history.conversations() if owned(n)[0] == ME]
        last = reversed(names[-MOST_CHATS:])
        return answer([{"id": name, "title": await self._title(name)} for name in last])

    async def _title(self, name: str) -> str:
        first = await self._chats.history.load(name, until=1)
        return shorten(first.turns[0].text, TITLE) if first.turns else name


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


def _provider(request: Request) -> str | None:
    name = request.query_params.get("provider") or None
    if name is not None and name != AUTO and name not in PROVIDERS:
        raise HTTPException(400, f"provider: one of {', '.join(PROVIDERS)}, or {AUTO}")
    return name


# --- what went wrong ------------------------------------------------------------------------------


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, error.detail)


async def _our_problem(request: Request, error: Exception) -> Response:
    return problem(400, str(error))


async def _mistake(request: Request, error: Exception) -> Response:
    return problem(500, MISTAKE)
