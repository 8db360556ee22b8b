"""A request comes in; it goes on if it is meant for this page, and its answer gets safe headers.

Rule: a page of another site can neither read nor ask for anything. A request must name this host
(else a foreign name could be made to point here), and one that changes something must not come from
a foreign origin, unless that origin was allowed when the server started.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from .answers import HEADERS, problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOCAL", "Guard"]

LOCAL = ("127.0.0.1", "localhost", "[::1]")
ANY = "*"


class Guard:
    """ASGI middleware. ``hosts``: names of this server; ``origins``: other pages that may ask;
    ``advice``: the options of the command that change the one and the other, if it has them."""

    def __init__(
        self, app: ASGIApp, hosts: Collection[str] = LOCAL, origins: Collection[str] = (),
        advice: tuple[str, str] = ("--host", "--allow-origin"),
    ) -> None:  # fmt: skip
        self._app = app
        self._for_hosts, self._for_origins = (
            option and f"; start the server with {option} to change that" for option in advice
        )
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origin.rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or say why not."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        # Any page can open a WebSocket, and a browser only says whose it is.
        why = self._refused(scope.get("method", "POST"), headers)
        answered = self._with_headers(send, headers.get("origin", ""))
        if why:
            return await problem(403, why)(scope, receive, answered)
        if scope.get("method") == "OPTIONS" and headers.get("origin", "") in self._origins:
            return await problem(200, "")(scope, receive, answered)
        await self._app(scope, receive, answered)

    def _refused(self, method: str, headers: Headers) -> str:
        host = headers.get("host", "")
        if ANY not in self._hosts and _name(host) not in self._hosts:
            return f"this server does not answer for {_name(host)!r}{self._for_hosts}"
        origin = headers.get("origin", "")
        if method in ("GET", "HEAD") or not origin or origin in self._origins:
            return ""
        if origin.partition("://")[2] != host:
            return f"a page of another origin may not ask this{self._for_origins}"
        return ""

    def _with_headers(self, send: Send, origin: str) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if origin in self._origins:
                    headers["access-control-allow-origin"] = origin
                    headers["access-control-allow-headers"] = "*"
                    headers["cross-origin-resource-policy"] = "cross-origin"
                    headers.add_vary_header("origin")
            await send(message)

        return sent


def _name(host: str) -> str:
    """The host without its port."""
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
