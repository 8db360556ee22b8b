"""Upstreams and settings come in; the ASGI application goes out.

    POST  <path of each wire that can be served>     also without its version; and its WebSocket
    POST  <where that wire counts tokens>
    GET   <where it lists models>                    the names that --model and --map know
    HEAD, GET /                                      a page of what goes through now
    GET   /gateway/flow, /health, /metrics           the same for programs
    GET   /takes                                     with --record: the takes, in the page for them

Rule: paths come from the rows of providers. A request must name this host and, if it changes something,
come from no foreign page (``page.origins``); with a key for clients, everything but ``HEAD /`` and
``/health`` wants it.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from ..core.row import Provider
from ..encoding.server import Server
from ..errors import UsageError
from ..limits import Limits
from ..page.answers import answer
from ..page.app import STATIC as PAGE
from ..page.app import create_app
from ..page.origins import LOCAL, Guard
from ..page.takes import Takes
from ..private import private_folder
from ..providers import rows_with
from . import exchange
from .asked import Address
from .asking import new_client
from .case import MIB, Services, Settings
from .common import Lists, problem
from .flow import Flow
from .log import to_the_log
from .metrics import CONTENT_TYPE, Metrics
from .sockets import Sockets
from .store import Named, store_at
from .upstreams import Upstreams, sendable

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["app"]

STATIC = Path(__file__).parent / "static"
OPEN = {("HEAD", "/"), ("GET", "/health"), ("HEAD", "/health")}  # for whoever has no key
UPGRADE = {"upgrade": "HTTP/1.1", "connection": "upgrade"}
BASIC = {"www-authenticate": 'Basic realm="streamnorm gateway"'}
NO_SOCKET = "this is asked with POST; the gateway speaks no WebSocket here"
NO_KEY = "this gateway wants the key that it was started with"


def app(
    to: str | Sequence[str],
    *,
    model: str | None = None,
    map: Sequence[str] = (),
    key_env: Sequence[str] = (),
    client_key_env: str | None = None,
    environment: Mapping[str, str] | None = None,
    record: str | os.PathLike[str] | None = None,
    retry: int = 0,
    whole: bool = False,
    eager: bool = False,
    store: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    body: int = 32 * MIB,
    exchanges: int = 1000,
    hosts: Collection[str] = LOCAL,
    origins: Collection[str] = (),
    http: httpx.AsyncClient | None = None,
    tell: Callable[[dict[str, Any]], None] = to_the_log,
) -> Starlette:
    """The gateway as an ASGI application. The options are those of ``streamnorm gateway``.

    ``environment`` is where keys come from, the process's own by default; ``hosts`` are the names of
    this server, ``origins`` the pages that may ask it; ``http`` is a client to ask upstreams with;
    ``tell`` hears the row of each exchange that is over.

    >>> gateway = app("ollama", map=["small=llama3"], environment={})
    >>> sorted(route.path for route in gateway.routes)[:2]
    ['/', '/chat/completions']
    """
    known = os.environ if environment is None else environment
    upstreams = Upstreams(
        [to] if isinstance(to, str) else to,
        model=model, map=map, key_env=key_env, environment=known,
    )  # fmt: skip
    folder = None if record is None else _folder(record)
    settings = Settings(retry, whole, eager, folder, limits or Limits(), body, exchanges)
    metrics = Metrics()
    services = Services(
        upstreams, settings, store_at(store), Flow(metrics, tell), http or new_client(), Named()
    )
    takes = None if folder is None else create_app(Recorded(folder), hosts=hosts, origins=origins)
    guards = [Middleware(Guard, hosts=hosts, origins=origins, advice=("--listen", ""))]
    guards.append(Middleware(KeysInAddresses))
    if client_key_env is not None:
        key = sendable("--client-key-env", client_key_env, known)
        guards.append(Middleware(Door, key=key))
    made = Starlette(
        routes=[*_wires(services), *_pages(services, metrics), *_takes(takes)],
        middleware=guards,
        exception_handlers={HTTPException: _problem},
        lifespan=_lifespan(services, takes, closes=http is None),
    )
    made.router.redirect_slashes = False  # not every client follows one
    made.state.services = services
    return made


def _lifespan(
    services: Services, takes: Starlette | None, *, closes: bool
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """What is open as long as the application is; ``closes`` if the client that asks is its own."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(services.store.close)
            if closes:
                stack.push_async_callback(services.http.aclose)
            if takes is not None:
                await stack.enter_async_context(takes.router.lifespan_context(takes))
            yield

    return lifespan


# --- the wires ------------------------------------------------------------------------------------


def _wires(services: Services) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    for row in rows_with("server", Server):
        ask = _Asked(services, row)
        kind = row.part("server", Server).socket
        socket = _NoSocket() if kind is None else Sockets(services, row, kind)
        for path in _paths(row, row.path):
            routes += [
                Route(path, ask, methods=["POST"]),
                Route(path, _NoSocket(), methods=["GET"]),
            ]
            routes.append(WebSocketRoute(path, socket))
        if row.path_at_once:
            at_once = _Asked(services, row, stream=False)
            routes += [Route(p, at_once, methods=["POST"]) for p in _paths(row, row.path_at_once)]
        if row.counting is not None:
            count = _Asked(services, row, exchange.counted, stream=False)
            routes += [Route(p, count, methods=["POST"]) for p in _paths(row, row.counting.path)]
    return routes


def _paths(row: Provider, path: str) -> Iterable[str]:
    """The path in each version and, for addresses that end with one already, the rest of it. The name
    of a model may have slashes."""
    path = path.partition("?")[0].replace("{model}", "{model:path}")
    rest = path.removeprefix(row.version)
    return dict.fromkeys((path, *(version + rest for version in row.other_versions), rest))


class _Asked:
    """A route of a wire; no function, so that nothing stands between it and the server."""

    def __init__(
        self,
        services: Services,
        row: Provider,
        kind: exchange.Kind | None = None,
        *,
        stream: bool | None = None,
    ) -> None:
        self._services, self._row, self._kind = services, row, kind
        # Where a stream has a path of its own, no body says whether it is one.
        self._stream = bool(row.path_at_once) or None if stream is None else stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = Address(scope["path_params"].get("model", ""), self._stream)
        await exchange.answer(
            self._services, self._row, scope, receive, send, kind=self._kind, said=said
        )


class _NoSocket:
    """Where no WebSocket is spoken: by the wire, or by the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await problem(426, NO_SOCKET, UPGRADE)(scope, receive, send)


# --- pages ----------------------------------------------------------------------------------------


def _pages(services: Services, metrics: Metrics) -> list[BaseRoute]:
    upstreams, lists = services.upstreams, Lists()

    async def index(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def health(request: Request) -> Response:
        return answer(
            {"status": "ok", "upstreams": list(upstreams.all), "open": len(services.flow)}
        )

    async def measured(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    async def flow(request: Request) -> Response:
        named = [{"name": one.name, "wire": one.row.name} for one in upstreams.all.values()]
        return answer({"upstreams": named, "rows": services.flow.rows()})

    async def models(request: Request) -> Response:
        said = lists.told(request.scope["path"], request.headers, upstreams.models)
        return answer(said)

    return [
        Route("/", index),
        Route("/health", health),
        Route("/metrics", measured),
        *(Route(path, models) for path in lists.paths),
        Route("/gateway/flow", flow),
        Mount("/gateway", StaticFiles(directory=STATIC)),
        Mount("/static", StaticFiles(directory=PAGE)),
    ]


class Recorded(Takes):
    """The takes of a folder that fills while it is looked at."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder

    def listing(self) -> list[dict[str, Any]]:
        """Those that are there now."""
        self.look_into(self._folder)
        return super().listing()

    def get(self, name: str) -> Any:
        """Also one that has just been made."""
        found = super().get(name)
        if found is None:
            self.look_into(self._folder)
            found = super().get(name)
        return found


def _takes(takes: Starlette | None) -> list[BaseRoute]:
    async def page(request: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    return [] if takes is None else [Route("/takes", page), Route("/api/{rest:path}", takes)]


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    try:
        private_folder(folder)
    except OSError as error:
        raise UsageError(f"--record {folder}: {error.strerror or error}") from error
    return folder


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    served = ", ".join(row.path for row in rows_with("server", Server))
    said = f"this is asked with {allowed}" if allowed else f"there is no such thing; ask {served}"
    return problem(error.status_code, said, error.headers)


# --- who may come in ------------------------------------------------------------------------------


class KeysInAddresses:
    """ASGI middleware: a key that a client writes into the address, as some wires let it, is from here on
    the header that it stands for. So it opens the door, goes where a key goes, and is told nowhere."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        keys = [row.key for row in rows_with("server", Server) if row.key and row.key.query]
        self._headers = {key.query: key.header.encode() for key in keys}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, with its keys in the headers."""
        query = scope.get("query_string", b"").decode("latin-1")
        said = [p.partition("=") for p in query.split("&")] if query else []
        keys = {self._headers[name]: key for name, _, key in said if name in self._headers}
        if keys:
            there = {name for name, _ in scope["headers"]}
            more = [(n, unquote_to_bytes(k)) for n, k in keys.items() if k and n not in there]
            rest = "&".join("".join(pair) for pair in said if pair[0] not in self._headers)
            headers = [*scope["headers"], *more]
            scope = {**scope, "query_string": rest.encode("latin-1"), "headers": headers}
        await self._app(scope, receive, send)


class Door:
    """ASGI middleware: whoever has the key comes in, in any of the ways in which clients send keys. It
    stays at the door: behind it, a key that a client brings is one for a provider."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()
        keys = (row.key for row in rows_with("server", Server))
        self._names = {b"authorization", *(key.header.encode() for key in keys if key)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or ask for the key."""
        if scope["type"] == "lifespan" or self._is_open(scope):
            return await self._app(scope, receive, send)
        rest = [pair for pair in scope["headers"] if not self._opens(*pair)]
        if len(rest) < len(scope["headers"]):
            return await self._app({**scope, "headers": rest}, receive, send)
        return await problem(401, NO_KEY, BASIC)(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        return (scope.get("method"), scope["path"]) in OPEN

    def _opens(self, name: bytes, value: bytes) -> bool:
        if name not in self._names:
            return False
        scheme, _, rest = value.rpartition(b" ")
        if scheme.strip().lower() == b"basic":  # a browser's: any name, and the key as its password
            rest = _password(rest)
        return hmac.compare_digest(rest, self._key)


def _password(pair: bytes) -> bytes:
    try:
        return base64.b64decode(pair, validate=True).partition(b":")[2]
    except ValueError:
        return b""
