"""An address and a request body come in; a ``Stream`` goes out.

Rule: a request is sent again only while nothing of an answer was heard: on errors of the connection
and on the statuses 408, 409, 429 and 5xx, after the pause that the server asks for. Once a byte of
the body is here it never is, as what was heard cannot be unheard. The answer itself can be asked for
again where its provider keeps it: from the place on that a cursor names (``after``, ``resumes``).

Why not httpx-sse's ``aconnect_sse``: it yields events of decoded text, so bytes could neither be
recorded nor be read by the framings that are no SSE; it does not look at the status; and as a
generator it holds the response open across a yield. The request itself is three lines of httpx.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio

from ..core.cursor import Cursor
from ..errors import ProviderError, UsageError
from ..framing.inflate import NotInflated
from ..limits import Limits
from ..normalizer import Normalizer
from ..providers import AUTO, PROVIDERS, provider_row
from ..providers.detect import by_address
from ..takes.redact import is_key_name, secrets_in_headers, secrets_in_url
from ..text.written import json_bytes
from .reading import IDLE, Reading, named_secrets
from .refusals import BODY, refusal
from .runtime import CLOSE_WITHIN, apart, to_its_end
from .sources import Facts, Item, Source, Tap, is_transport, source_of
from .stream import Stream

if TYPE_CHECKING:
    from ..takes.recorder import Recorder

__all__ = ["connect"]

# httpx gives up reading after 5 s, which ends every model that thinks first. Our idle timer counts
# events, so the socket's own timer only has to outlast it.
TIMEOUT = (10.0, 600.0, 60.0, 60.0)  # seconds to connect, read, write, and wait for the pool
PATIENCE = 60.0  # seconds; a server that asks for a longer pause is not asked again
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
HEADERS = {"accept": "text/event-stream, */*;q=0.5", "cache-control": "no-store"}


def connect(
    url_or_provider: str,
    *,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    provider: str | None = None,
    client: Any = None,
    retries: int = 2,
    patience: float = PATIENCE,
    timeout: Any = None,
    record: str | os.PathLike[str] | None = None,
    secrets: Iterable[str] = (),
    limits: Limits | None = None,
    strict: bool = False,
    seed: str | None = None,
    idle: float | None = IDLE,
    deadline: float | None = None,
    on_bad_event: str = "fail",
    after: str | None = None,
    resumes: int = 0,
) -> Stream:
    """Post a request and read the answer as events. Nothing is sent before the first read.

    ``url_or_provider``: an address, or the name of a provider that has a well-known one. ``client``
    is an ``AsyncClient`` of httpx or httpx2 to use (and leave open); otherwise one is made and
    closed with the stream. ``json`` is sent as it is, so it must ask for a stream. The key is that of
    ``headers`` or of the client; else, at the provider's own address, that of its variable in the
    environment (``streamnorm record --help`` lists them).

    ``retries``: how often to ask again, before anything was heard, pausing as ``retry-after`` says;
    a pause longer than ``patience`` seconds is left to the caller (``ProviderError.retry_after``).
    The other options, ``secrets`` among them, are those of ``normalize``.

    ``after`` is ``stream.cursor`` of a stream that was cut, of this program or of one before it: ``json``
    is not sent, but the rest of that answer is asked for, where the provider keeps it (OpenAI's
    responses with ``background``, Gemini's interactions). ``resumes``: how often to do so within one
    stream when its connection is lost; it then goes on as if nothing had happened. Whatever was heard
    is not told twice, and what is missing breaks the calls that were open.

    ::

        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "messages": [...]}
        async with connect("anthropic", json=body) as stream:  # with the key of ANTHROPIC_API_KEY
            async for call in stream.calls(): ...
    """
    url, name = _where(url_or_provider, provider)
    if after is not None:
        name = Cursor.read(after, None if name == AUTO else name).provider
    source = Connection(
        url, json=json, headers=_headers(url, name, headers or {}, client),
        client=client, retries=retries, patience=patience, timeout=timeout, provider=name,
        after=after, resumes=resumes,
    )  # fmt: skip
    reading = Reading(
        record=record, secrets=named_secrets(secrets), limits=limits, strict=strict, seed=seed,
        idle=idle, deadline=deadline, on_bad_event=on_bad_event, after=after,
    )  # fmt: skip
    return Stream(source, name, reading)


def _where(url_or_provider: str, provider: str | None) -> tuple[str, str | None]:
    """The address, and whose wire is spoken there if anything tells."""
    if "://" in url_or_provider:
        return url_or_provider, provider or by_address(url_or_provider).name
    return _address(url_or_provider), provider or url_or_provider


def _address(name: str) -> str:
    """The one address of a provider."""
    if (address := provider_row(name).address()) is not None:
        return address
    known = ", ".join(row.name for row in PROVIDERS.values() if row.address())
    raise UsageError(
        f"{name!r} has no address of its own: connect(url, provider={name!r}, ...). "
        f"Those that have: {known}"
    )


def _headers(url: str, name: str | None, given: Mapping[str, str], client: Any) -> dict[str, str]:
    """Ours, those that the wire needs, the key if nobody gave one, and what was given."""
    row = PROVIDERS.get(name or AUTO)
    known = row.headers if row else {}
    key = by_address(url).key
    sent = {} if key is None or _has_key(url, given, client) else key.headers(os.environ)
    return {**HEADERS, **known, **sent, **{k.lower(): v for k, v in given.items()}}


def _has_key(url: str, given: Mapping[str, str], client: Any) -> bool:
    """Does the request carry a key already?"""
    own = getattr(client, "headers", None)
    keys = secrets_in_url(url, is_key_name)
    keys |= secrets_in_headers(given, is_key_name) | secrets_in_headers(own, is_key_name)
    return bool(keys) or getattr(client, "auth", None) is not None


class Connection(Source):
    """A source that is opened by the first read, and again if that fails in a way that may pass."""

    ready = False

    def __init__(
        self,
        url: str,
        *,
        json: Any,
        headers: dict[str, str],
        client: Any,
        retries: int,
        patience: float,
        timeout: Any,
        provider: str | None,
        after: str | None = None,
        resumes: int = 0,
    ) -> None:
        super().__init__(provider=provider, facts=Facts(url=url, request_headers=headers))
        self._method, self._asked = "POST", url
        self._headers = headers
        self._request: dict[str, Any] = {"headers": headers}
        if json is not None:  # bytes in it become base64, as a wire that takes bytes wants them
            self._request = {
                "content": json_bytes(json),
                "headers": {"content-type": "application/json", **headers},
            }
        self._url = url
        self._client, self._own = client, client is None
        self._retries, self._patience = retries, patience
        self._timeout = timeout
        self._body: Source | None = None
        self.closable = False  # until something is open
        self.attempts = 0
        self._pipe: Normalizer | None = None
        self._limits, self._secrets = Limits(), frozenset[str]()
        self._recorder: Recorder | None = None
        self._resumes = resumes
        if after is not None:
            self._ask_for_rest(after)

    @property
    def is_async(self) -> bool:
        return True

    @property
    def is_sync(self) -> bool:
        return False

    def bound(self, limits: Limits, secrets: frozenset[str]) -> None:
        super().bound(limits, secrets)
        self._limits, self._secrets = limits, secrets

    def feeds(self, pipe: Normalizer) -> None:
        self._pipe = pipe

    def recorded_by(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def claim(self, error: Exception) -> None:
        if self._body is not None:
            self._body.claim(error)

    async def next(self) -> Item | None:
        if self._body is None:
            return await self._first()
        if not self._resumes:
            return await self._body.next()
        try:
            item, lost = await self._body.next(), None
        except Exception as error:
            if not is_transport(error):
                raise
            item, lost = None, error
        return item if item is not None else await self._rest(lost)

    # --- the rest of an answer that was cut -------------------------------------------------------

    async def _rest(self, lost: Exception | None) -> Item | None:
        """The body has ended or failed: if that was not the end of the answer, go on with it.

        A connection that is lost before it says anything is one of those that may be lost. If none
        is left, or the rest is refused, what is told is how the first of them was lost.
        """
        pipe = self._pipe
        cursor = pipe.cursor if pipe is not None and not pipe.ended and self._resumes else None
        if pipe is None or cursor is None or not _resume_of(self.provider or pipe.provider):
            if lost is not None:
                raise lost
            return None
        self._resumes -= 1
        await self._give_back()
        self._ask_for_rest(cursor)
        pipe.resume()
        self.attempts = 0
        try:
            item = await self._first()
        except Exception as error:
            if isinstance(error, ProviderError):
                if lost is not None:
                    raise lost from error
                return None
            if not is_transport(error):
                raise
            item = None
        finally:  # if there is nothing of it, that the last one was left is in the take as well
            if self._recorder is not None:
                self._recorder.leg(self.facts.headers, self.facts.secrets)
        return item if item is not None else await self._rest(lost)

    def _ask_for_rest(self, cursor: str) -> None:
        """From here on, what follows the cursor is asked for, and the request is not sent again."""
        self._method, self._request = "GET", {"headers": self._headers}
        self._asked = _rest_of(self._url, self.provider, Cursor.read(cursor))

    def tap(self) -> Tap | None:
        # One that resumes looks at each end of a body itself.
        return self._body.tap() if self._body and not self._resumes else None

    async def aclose(self) -> None:
        try:
            if self._body is not None:
                await self._body.aclose()
        finally:
            if self._own and self._client is not None:
                await to_its_end(self._client.aclose(), CLOSE_WITHIN)

    async def _first(self) -> Item | None:
        """Ask until there is a first chunk, or a reason to give up."""
        while True:
            self.attempts += 1
            try:
                return await self._ask()
            except Exception as error:
                pause = self._pause(error)
                if pause is None:
                    raise
            await self._give_back()
            await anyio.sleep(pause)

    async def _ask(self) -> Item | None:
        self.closable = True
        client = self._client = self._client or _new_client()
        request = client.build_request(
            self._method,
            self._asked,
            timeout=self._timeout or _timeout_for(client),
            **self._request,
        )
        # A client that is cancelled between two steps of connecting forgets what it has opened.
        response = await apart(
            lambda: client.send(request, stream=True), lambda response: response.aclose()
        )
        self._body = source_of(response)
        self._body.bound(self._limits, self._secrets)
        self.facts = self._body.facts
        if self._pipe is not None:
            self._pipe.conceal(self.facts.redacted)
        status = self.facts.status or 200
        if not 200 <= status < 300:
            raise refusal(self.facts, await _some_of(self._body), provider=self.provider or "")
        return await self._body.next()

    def _pause(self, error: Exception) -> float | None:
        """How many seconds to wait before asking again; None: do not."""
        if self.attempts > self._retries:
            return None
        asked = None
        if isinstance(error, ProviderError):
            if not error.retryable:
                return None
            asked = error.retry_after
        elif not is_transport(error):
            return None
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self.attempts - 1))
        pause = asked if asked is not None else longest * random.uniform(0.75, 1.0)
        return pause if pause <= self._patience else None

    async def _give_back(self) -> None:
        if self._body is not None:
            await self._body.aclose()
            self._body = None


def _resume_of(provider: str | None) -> str:
    row = PROVIDERS.get(provider or AUTO)
    return row.resume if row is not None else ""


def _rest_of(url: str, provider: str | None, cursor: Cursor) -> str:
    """The address of what follows a cursor: that of the request, and what its provider adds.

    >>> _rest_of("https://x.example/v1/responses?v=1", None, Cursor("openai_responses", "r 1", 17))
    'https://x.example/v1/responses/r%201?stream=true&starting_after=17&v=1'
    """
    from urllib.parse import quote

    name = provider or cursor.provider
    pattern = _resume_of(name)
    if not pattern:
        known = ", ".join(row.name for row in PROVIDERS.values() if row.resume)
        raise UsageError(f"{name!r} cannot be resumed; those that can: {known}")
    added = pattern.format(id=quote(cursor.response_id, safe=""), at=quote(str(cursor.at), safe=""))
    path, _, query = url.partition("?")
    return path.rstrip("/") + added + (f"&{query}" if query else "")


def _new_client() -> Any:
    import httpx

    return httpx.AsyncClient(timeout=httpx.Timeout(None), verify=_certificates())


@cache
def _certificates() -> Any:
    """Read once for all clients: it takes longer (25 ms) than everything else that a new one does."""
    import httpx

    return httpx.create_ssl_context()


def _timeout_for(client: Any) -> Any:
    """Ours, unless the client has one that somebody chose: 5 s is what nobody chose."""
    read = getattr(getattr(client, "timeout", None), "read", 5.0)
    return TIMEOUT if read in (None, 5.0) else client.timeout


async def _some_of(body: Source) -> bytes:
    """The beginning of a refusal. That it cannot be read makes it no less of a refusal."""
    said = b""
    try:
        while len(said) < BODY and (item := await body.next()) is not None:
            said += item if isinstance(item, bytes) else b""
    except NotInflated:
        pass
    except Exception as error:
        if not is_transport(error):
            raise
    return said[:BODY]
