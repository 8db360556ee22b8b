"""A request comes in; it goes on if it is meant for this page, and its answer gets safe headers.

Rule: a page of another site can neither read nor ask for anything. A request must name this host
(else a foreign name could be made to point here), and one that changes something must not come from
a foreign origin, unless that origin was allowed when the server started. A host is the same in capitals,
with a dot behind it and with a port that is left empty; who names two is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from .answers import HEADERS, problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOCAL", "Guard"]

LOCAL = ("127.0.0.1", "localhost", "[::1]")
ANY = "*"
_PLACE = re.compile(r"(.*?)\.?(?::([0-9]*))?", re.DOTALL)
_SEVERAL = "a request names one host, and one origin at most"


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
        self._hosts = frozenset(map(str.lower, hosts))
        self._origins = frozenset(_origin(origin.rstrip("/")) for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or say why not."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        # Any page can open a WebSocket, and a browser only says whose it is.
        if any(len(headers.getlist(name)) > 1 for name in ("host", "origin")):
            return await problem(400, _SEVERAL)(scope, receive, self._with_headers(send, ""))
        origin = headers.get("origin", "")
        why = self._refused(scope.get("method", "POST"), headers.get("host", ""), origin)
        answered = self._with_headers(send, origin)
        if why:
            return await problem(403, why)(scope, receive, answered)
        if scope.get("method") == "OPTIONS" and _origin(origin) in self._origins:
            return await problem(200, "")(scope, receive, answered)
        await self._app(scope, receive, answered)

    def _refused(self, method: str, host: str, origin: str) -> str:
        name, port = _place(host)
        if ANY not in self._hosts and name not in self._hosts:
            return f"this server does not answer for {name!r}{self._for_hosts}"
        if method in ("GET", "HEAD") or not origin or _origin(origin) in self._origins:
            return ""
        if _place(origin.partition("://")[2]) != (name, port):
            return f"a page of another origin may not ask this{self._for_origins}"
        return ""

    def _with_headers(self, send: Send, origin: str) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if _origin(origin) in self._origins:
                    headers["access-control-allow-origin"] = origin
                    headers["access-control-allow-headers"] = "*"
                    headers["cross-origin-resource-policy"] = "cross-origin"
                    headers.add_vary_header("origin")
            await send(message)

        return sent


def _place(host: str) -> tuple[str, str]:
    """The name and the port, however they are written.

    >>> _place("LocalHost.:80"), _place("127.0.0.1:"), _place("[::1]:80")
    (('localhost', '80'), ('127.0.0.1', ''), ('[::1]', '80'))
    """
    found = _PLACE.fullmatch(host.lower())
    assert found is not None  # there is nothing that it does not match
    return found[1], found[2] or ""


def _origin(origin: str) -> str:
    """The same for an origin, as one text."""
    scheme, mark, host = origin.lower().partition("://")
    return scheme + mark + ":".join(_place(host))
