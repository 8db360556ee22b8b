"""A request for an upstream comes in; its response goes out, once it is one that streams.

Rule: what is refused, or does not come at all, is ``Refused``, with the upstream's own words and status.
Nothing is decided here about asking again but how long to wait before it.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import suppress
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import anyio
import httpx

from ..edge.refusals import BODY, refusal
from ..edge.sources import Facts, body_of
from ..edge.unpacking import Unpacking
from ..errors import ProviderError
from ..events import Failed
from ..framing.inflate import PLAIN, NotInflated
from ..limits import Limits
from .headers import Pairs

__all__ = [
    "BAD_GATEWAY",
    "Refused",
    "ask",
    "chunks_of",
    "close",
    "new_client",
    "pause_before",
    "refused_by",
]

# httpx gives up reading after 5 s, which ends every model that thinks first.
TIMEOUT = httpx.Timeout(connect=10.0, read=600.0, write=60.0, pool=60.0)
PATIENCE = 60.0  # seconds; an upstream that asks for a longer pause is not asked again
WORDS = 10.0  # seconds for the words of a refusal
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
BAD_GATEWAY = 502
_NO_ADDRESS = "the name of the model makes no address of the upstream"


class Refused(Exception):
    """The upstream did not answer with a stream: ``error`` says why, ``body`` is what it said."""

    def __init__(
        self, error: ProviderError, headers: Pairs | None = None, body: bytes = b""
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.headers = headers or []
        self.body = body


def new_client() -> httpx.AsyncClient:
    """One for all exchanges: connections are used again, and there may be many. What an upstream wants
    to be reminded of in the answer to one client (a cookie) is not told to it by the next."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    client = httpx.AsyncClient(timeout=TIMEOUT, limits=limits)
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
    return client


async def ask(
    http: httpx.AsyncClient, address: str, headers: dict[str, str], content: bytes, *, wire: str
) -> httpx.Response:
    """Post it. The response is the caller's to close. Nobody is followed elsewhere with a key."""
    named = httpx.Headers(headers, encoding="latin-1")  # as they came from the client
    try:
        request = http.build_request("POST", address, headers=named, content=content)
        response = await http.send(request, stream=True, follow_redirects=False)
    except httpx.InvalidURL as error:
        raise Refused(ProviderError(_NO_ADDRESS, status=400, provider=wire)) from error
    except (httpx.TransportError, OSError) as error:
        raise Refused(_unreachable(error, wire)) from error
    if 200 <= response.status_code < 300:
        return response
    try:
        said = await _some_of(response)
    finally:
        await close(response)
    raise refused_by(response, said, wire=wire)


def refused_by(response: httpx.Response, said: bytes, *, wire: str) -> Refused:
    """What its body says of why there is no stream."""
    request = response.request
    facts = Facts(
        url=str(request.url),
        status=response.status_code,
        headers=response.headers,
        request_headers=request.headers,
    )
    refused = refusal(facts, said, provider=wire)
    return Refused(refused, response.headers.raw, facts.redacted_body(said))


def chunks_of(response: httpx.Response, limits: Limits | None = None) -> AsyncIterator[bytes]:
    """The body as it comes; unpacked, if the upstream packed it although it was asked not to."""
    if hasattr(response, "_content"):  # somebody has read all of it already
        return response.aiter_bytes()
    encoding, body = response.headers.get("content-encoding", ""), body_of(response)
    if encoding.strip().lower() in PLAIN:
        return body
    return Unpacking(encoding, limits).later(body)


async def close(response: httpx.Response) -> None:
    """Also in a task that is cancelled: the upstream is to hear at once that nobody listens."""
    with anyio.CancelScope(shield=True):
        await response.aclose()


def pause_before(attempt: int, error: ProviderError | Failed) -> float | None:
    """How many seconds to wait before the attempt of that number, from 1; None: do not ask again."""
    if not error.retryable:
        return None
    asked: float | None = getattr(error, "retry_after", None)
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
    pause = asked if asked is not None else longest * random.uniform(0.75, 1.0)
    return pause if pause <= PATIENCE else None


def _unreachable(error: Exception, wire: str) -> ProviderError:
    timed_out = isinstance(error, httpx.TimeoutException)
    why = "did not answer in time" if timed_out else "cannot be reached"
    return ProviderError(
        f"the upstream {why} ({type(error).__name__})",
        code="timeout" if timed_out else "unreachable",
        status=504 if timed_out else BAD_GATEWAY,
        retryable=True,
        provider=wire,
    )


async def _some_of(response: Any) -> bytes:
    """The beginning of a refusal. That it cannot be read, or does not end, makes it no less of one."""
    said = b""
    with suppress(httpx.TransportError, NotInflated), anyio.move_on_after(WORDS):
        async for chunk in chunks_of(response):
            said += chunk
            if len(said) >= BODY:
                break
    return said[:BODY]
