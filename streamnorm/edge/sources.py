"""Anything that streams comes in; a ``Source`` goes out, which gives chunks of bytes or payloads.

Rule: libraries are known by the shape and the module of their objects, and never imported. Where an
SDK object still has its raw response, the raw bytes are read: they are exact and can be recorded.
Otherwise its items are turned back into the payloads of the wire.

Why no ``except httpx.X``: there are httpx and httpx2, whose exceptions are not related, and aiohttp,
and every SDK's own. So errors are told apart by where their class comes from (``is_transport``).
"""

from __future__ import annotations

import io
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import StreamnormError, UsageError
from ..framing.aws import CONTENT_TYPE as AWS_FRAMES
from ..framing.aws import EXCEPTION, event_frame
from ..framing.inflate import PLAIN
from ..providers import Provider, provider_row
from ..providers.detect import by_address, by_module
from ..takes.redact import Redactor, secrets_in_headers, secrets_in_url, without_secrets
from ..text.written import plain_values
from .runtime import CLOSE_WITHIN, in_thread, to_its_end, unwind
from .unpacking import Unpacking, Watching

if TYPE_CHECKING:
    from ..limits import Limits
    from ..normalizer import Normalizer
    from ..takes.recorder import Recorder

__all__ = [
    "Facts", "Item", "Source", "Tap", "as_item", "body_of", "facts_of", "is_transport", "source_of",
]  # fmt: skip

Item: TypeAlias = bytes | dict[str, Any]  # a chunk of the body, or one decoded payload

# A read that can be begun by ``next``, without waiting, and the one place where what it got is then.
# To begin one that gives the item itself would be to raise and catch ``StopIteration`` for each.
Tap: TypeAlias = tuple[Callable[[], Any], list[Any]]

PART = 64 * 1024  # bytes that a blocking client is asked for at a time
_AT_HAND: tuple[type, ...] = (list, tuple, type(iter([])), type(iter(())))  # nothing to wait for


class Facts:
    """What is known about a response besides its body. ``secrets`` are never to be shown."""

    __slots__ = ("_also", "_raw", "_redactor", "_request_headers", "headers", "status", "url")

    def __init__(
        self,
        *,
        url: str | None = None,
        status: int | None = None,
        headers: Any = None,
        request_headers: Any = None,
    ) -> None:
        self.url = url
        self.status = status
        self.headers = _texts(headers)
        self._request_headers = request_headers
        self._raw = headers  # where a name may come twice
        self._also: frozenset[str] = frozenset()
        self._redactor: Redactor | None = None  # made when something is to be shown

    def hide(self, secrets: frozenset[str]) -> None:
        """These are secrets, too: somebody has named them."""
        self._also, self._redactor = secrets, None

    @property
    def request_headers(self) -> dict[str, str]:
        """What was sent with the request, keys and all."""
        return _texts(self._request_headers)

    @property
    def secrets(self) -> set[str]:
        """The values of the request that must neither be kept nor shown."""
        found = secrets_in_headers(self.request_headers) | secrets_in_headers(self._raw)
        return found | secrets_in_url(self.url or "") | self._also

    def redacted(self, text: str) -> str:
        """The text without any secret of this request, as providers do echo keys in messages, and
        without any in an address that stands in it."""
        return without_secrets(text, self._redacting())

    def redacted_body(self, body: bytes) -> bytes:
        """The same for a body, which may end inside a secret."""
        return self._redacting().whole(body)

    def _redacting(self) -> Redactor:
        self._redactor = self._redactor or Redactor(self.secrets)
        return self._redactor


class Source:
    """One stream to read from: in a ``for`` loop, in an ``async for`` loop, or in either.

    ``instant`` says that nothing is ever waited for, so no timer and no thread is needed.
    """

    facts: Facts
    ready = True  # are the facts known before the first read?
    instant = False
    closable = True  # is there anything to close?
    is_socket = False  # on which somebody asks, and waits for an answer?

    def __init__(
        self,
        *,
        now: Callable[[], Iterable[Any]] | None = None,
        later: Callable[[], AsyncIterator[Any]] | None = None,
        provider: str | None = None,
        facts: Facts | None = None,
        close: Iterable[Any] = (),
        instant: bool = False,
    ) -> None:
        self._now, self._later = now, later
        self._iterator: Any = None
        self._tap: AsyncGenerator[None, None] | None = None  # through which it is read
        self.provider = provider
        self.facts = facts or Facts()
        self._to_close = tuple(close)
        self.closable = bool(self._to_close)
        self.instant = instant

    @property
    def is_async(self) -> bool:
        """Can it be read without blocking the event loop?"""
        return self._later is not None

    @property
    def is_sync(self) -> bool:
        """Can it be read in a ``for`` loop?"""
        return self._now is not None

    def whose(self) -> str | None:
        """The provider, if anything tells before the first payload."""
        return self.provider

    def bound(self, limits: Limits, secrets: frozenset[str]) -> None:
        """How much may be unpacked of what is read, and what is never to be shown of it."""
        self.facts.hide(secrets)

    def feeds(self, pipe: Normalizer) -> None:
        """What is read goes to this pipe: one that can be resumed asks it where it is."""

    def recorded_by(self, recorder: Recorder) -> None:
        """What is read is recorded so: one that is resumed says where."""

    def claim(self, error: Exception) -> None:
        """Note on what it raised whose it is."""

    async def next(self) -> Item | None:
        """The next chunk or payload; None at the end."""
        if self._later is None:
            return await in_thread(self.next_now)
        if self._iterator is None:
            self._iterator = self._later()
        try:
            return as_item(await self._iterator.__anext__())
        except StopAsyncIteration:
            return None

    def tap(self) -> Tap | None:
        """What ``next`` asks for each item, once it has begun: see ``Tap``. None: only ``next`` will do."""
        if self._later is None or self._iterator is None:
            return None
        box: list[Any] = [None]
        self._tap = self._tapped(self._iterator.__anext__, box)
        return self._tap.__anext__, box

    def _tapped(
        self, pull: Callable[[], Awaitable[Any]], box: list[Any]
    ) -> AsyncGenerator[None, None]:
        return _tapped(pull, box)

    def next_now(self) -> Item | None:
        """As ``next``, blocking."""
        if self._iterator is None:
            assert self._now is not None
            self._iterator = iter(self._now())
        try:
            return as_item(next(self._iterator))
        except StopIteration:
            return None

    async def aclose(self) -> None:
        """Close the iterator, then what it reads from; a complaint of the one spares the other."""
        try:
            for thing in (self._tap, self._iterator):  # here: it may belong to this task
                with suppress(Exception):
                    closed = _close(thing, later=self.is_async)
                    if hasattr(closed, "__await__"):
                        await closed
        finally:
            for thing in self._to_close:
                with suppress(Exception):
                    closed = _close(thing, later=self.is_async)
                    if hasattr(closed, "__await__"):
                        await to_its_end(closed, CLOSE_WITHIN)

    def close(self) -> None:
        """As ``aclose``, for a source that is read in a ``for`` loop."""
        for thing in (self._iterator, *self._to_close):
            with suppress(Exception):
                _close(thing, later=False)


async def _tapped(pull: Callable[[], Awaitable[Any]], box: list[Any]) -> AsyncGenerator[None, None]:
    try:
        while True:
            box[0] = await pull()
            yield
    except StopAsyncIteration:
        return


async def _counted(
    pull: Callable[[], Awaitable[Any]], box: list[Any], read: list[int]
) -> AsyncGenerator[None, None]:
    try:
        while True:
            box[0] = chunk = await pull()
            read[0] += len(chunk)
            yield
    except StopAsyncIteration:
        return


def _close(thing: Any, *, later: bool) -> Any:
    """Call whatever closes it; the result may have to be awaited."""
    if getattr(thing, "is_closed", False):
        return None
    close = getattr(thing, "aclose", None) if later else None
    close = close or getattr(thing, "close", None)
    return close() if close is not None else None


# --- what is it? ----------------------------------------------------------------------------------


def source_of(thing: Any) -> Source:
    """The source that an object is, told from its shape and module.

    >>> source_of([b"data: {}", b"\\n\\n"]).next_now()
    b'data: {}'
    """
    if isinstance(thing, Source):
        return thing
    _refuse_what_is_none(thing)
    if isinstance(thing, bytes | bytearray | memoryview):
        thing = [bytes(thing)]
    if _is_event_source(thing):
        thing = getattr(thing, "response", None) or thing._response
    if _looks_like_response(thing):
        return _of_response(thing)
    if (response := _raw_response(thing)) is not None:
        return _of_response(response, provider=_sdk_provider(thing), owner=thing)
    return _of_iterable(thing)


def _refuse_what_is_none(thing: Any) -> None:
    if isinstance(thing, str | os.PathLike) or (
        isinstance(thing, io.IOBase) and _root(thing) != "http"
    ):
        raise UsageError("a path or a file is no live stream: use replay(path) or read_take(path)")
    if isinstance(thing, dict):
        raise UsageError(
            "a dict is no stream: pass an iterable of payloads, e.g. [payload], or the stream in it"
        )
    if hasattr(thing, "__await__") and not hasattr(thing, "__aiter__"):
        raise UsageError(
            "this is not awaited yet: normalize(await it), or enter it with async with"
        )
    if type(thing).__name__.endswith(("StreamManager", "ContextManager")):
        raise UsageError(
            f"a {type(thing).__name__} is not open yet: `with it as stream:` and pass that stream"
        )


def _of_iterable(thing: Any) -> Source:
    now = (lambda: thing) if hasattr(thing, "__iter__") else None
    later = thing.__aiter__ if hasattr(thing, "__aiter__") else None
    if now is None and later is None:
        raise UsageError(
            f"cannot stream from a {type(thing).__module__}.{type(thing).__name__}: pass a response "
            "(httpx, httpx2, aiohttp), an SDK's stream, or an iterable of bytes or payloads"
        )
    at_hand = isinstance(thing, _AT_HAND)
    provider = _sdk_provider(thing)
    if provider is not None and (row := provider_row(provider)).sdk_frames:
        now, later = _framed(thing, row, now, later)
    return Source(
        now=now,
        later=later,
        provider=provider,
        close=() if at_hand else (thing,),
        instant=at_hand,
    )


def _framed(thing: Any, row: Provider, now: Any, later: Any) -> Readers:
    """The same, but events that may hold another wire are put into their frames again."""
    raw = {event.name: event.raw for event in row.sdk_frames}

    def framed(item: Any) -> Any:
        name = next(iter(item), None) if isinstance(item, dict) else None
        if name not in raw or not isinstance(item[name], dict):
            return item
        return event_frame(str(name), item[name], raw[name])

    def each_now() -> Iterator[Any]:
        item = None
        try:
            for item in map(framed, thing):
                yield item
        except Exception as error:
            if (said := _told_by(error)) is None:
                raise
            yield _failure_frame(*said, payload=isinstance(item, dict))

    async def each() -> AsyncIterator[Any]:
        item = None
        try:
            async for item in thing:
                item = framed(item)
                yield item
        except Exception as error:
            if (said := _told_by(error)) is None:
                raise
            yield _failure_frame(*said, payload=isinstance(item, dict))

    return each_now if now else None, each if later else None


def _told_by(error: Exception) -> tuple[str, str] | None:
    """Code and message of an exception in the stream, which this SDK raises instead of an event."""
    response = getattr(error, "response", None)
    said = response.get("Error") if isinstance(response, dict) else None
    if not isinstance(said, dict) or not said.get("Code"):
        return None
    return str(said["Code"]), str(said.get("Message") or "")


def _failure_frame(code: str, message: str, *, payload: bool) -> Item:
    """The exception as it came, so that the wire's own parser reads it; beside payloads, as one."""
    said = {"message": message}
    return (
        {EXCEPTION: {"type": code, "payload": said}} if payload else event_frame(code, said, None)
    )


def _root(thing: Any) -> str:
    return _module(thing).partition(".")[0]


def _module(thing: Any) -> str:
    """The module that an object comes from; for a generator, the one that it was written in."""
    frame = getattr(thing, "gi_frame", None) or getattr(thing, "ag_frame", None)
    return str(frame.f_globals.get("__name__", "")) if frame else type(thing).__module__


# --- responses ------------------------------------------------------------------------------------


def _looks_like_response(thing: Any) -> bool:
    return hasattr(thing, "headers") and (
        hasattr(thing, "aiter_bytes")
        or hasattr(thing, "iter_content")  # requests
        or hasattr(getattr(thing, "content", None), "iter_any")  # aiohttp
        or hasattr(thing, "read1")  # http.client, urllib
    )


def _is_event_source(thing: Any) -> bool:
    return type(thing).__name__ == "EventSource" and (
        hasattr(thing, "response") or hasattr(thing, "_response")
    )


def _raw_response(thing: Any) -> Any:
    """The httpx response below an SDK's object, if its body is untouched and plain SSE."""
    for name in ("response", "_response", "http_response"):
        response = getattr(thing, name, None)
        if response is None or not _looks_like_response(response):
            continue
        # Other framings are a matter of the SDK's own decoder (AnthropicBedrock), and of a body
        # that was read in part only the SDK knows the rest.
        kind = response.headers.get("content-type", "text/event-stream")
        if AWS_FRAMES in kind or getattr(response, "is_stream_consumed", False):
            return None
        return response
    return None


def _of_response(response: Any, *, provider: str | None = None, owner: Any = None) -> Source:
    facts = facts_of(response)
    unpacking = _unpacking(response, facts)
    now, later = _readers(response, unpacking)
    if now is None and later is None:
        raise UsageError("the body of this response was read already; ask for it as a stream")
    close = [thing for thing in (owner, response) if thing is not None]
    return _Response(
        response, unpacking, now=now, later=later, provider=provider, facts=facts, close=close
    )


class _Response(Source):
    """The body of a response."""

    def __init__(self, response: Any, unpacking: Unpacking | None, **more: Any) -> None:
        super().__init__(**more)
        self._response, self._unpacking = response, unpacking
        self._read = [0]  # bytes, if it is async

    def bound(self, limits: Limits, secrets: frozenset[str]) -> None:
        super().bound(limits, secrets)
        if self._unpacking is not None:
            self._unpacking.limits = limits

    def whose(self) -> str | None:
        told = by_address(self.facts.url)
        if (
            self.provider is None or told.at_home
        ):  # at home it may speak a dialect of its SDK's wire
            return told.name or self.provider
        if told.home is not None and told.home.name == self.provider:
            return (
                told.name
            )  # its SDK, at home: of several wires the path says which, else nothing does
        return self.provider

    def claim(self, error: Exception) -> None:
        if hasattr(type(error), "request") and _attribute(error, "request") is None:
            error.request = _attribute(self._response, "request")  # type: ignore[attr-defined]

    async def next(self) -> Item | None:
        item = await super().next()
        self._read[0] += len(item or b"")
        return item

    def _tapped(
        self, pull: Callable[[], Awaitable[Any]], box: list[Any]
    ) -> AsyncGenerator[None, None]:
        return _counted(pull, box, self._read)

    async def aclose(self) -> None:
        # Below ``aiter_raw`` nobody counts for those who ask the response.
        if getattr(self._response, "_num_bytes_downloaded", None) == 0:
            packed = self._unpacking
            self._response._num_bytes_downloaded = packed.received if packed else self._read[0]
        # A generator that has ended has no frame; to end one that has not costs a scope.
        begun = self.is_async and getattr(self._iterator, "ag_frame", None) is not None
        if begun and hasattr(self._response, "aiter_bytes"):
            with suppress(Exception):
                await unwind(self._iterator)
        await super().aclose()


Readers: TypeAlias = tuple[
    Callable[[], Iterable[Any]] | None, Callable[[], AsyncIterator[Any]] | None
]


def _unpacking(response: Any, facts: Facts) -> Unpacking | None:
    """How its body is unpacked; None if it is not, or was read as a whole already."""
    encoding = facts.headers.get("content-encoding", "")
    if encoding.strip().lower() in PLAIN or isinstance(getattr(response, "_content", None), bytes):
        return None
    content = getattr(response, "content", None) if _is_of_aiohttp(response) else None
    if getattr(content, "total_compressed_bytes", None) is not None:
        return Watching(encoding, content)
    return Unpacking(encoding)


def _is_of_aiohttp(response: Any) -> bool:
    return not hasattr(response, "aiter_bytes") and not hasattr(response, "iter_content")


def _readers(response: Any, unpacking: Unpacking | None) -> Readers:
    now, later = _raw_readers(response, packed=unpacking is not None)
    if unpacking is None:
        return now, later
    return (
        (lambda: unpacking.now(now())) if now is not None else None,
        (lambda: unpacking.later(later())) if later is not None else None,
    )


def _raw_readers(response: Any, *, packed: bool) -> Readers:
    """As the bytes came over the network, where there is a way to them."""
    if hasattr(response, "aiter_bytes"):
        return _httpx_readers(response)
    if hasattr(response, "iter_content"):
        raw: Any = getattr(response, "raw", None)
        if packed and hasattr(raw, "stream"):
            return lambda: raw.stream(PART, decode_content=False), None
        return lambda: response.iter_content(chunk_size=None), None
    if hasattr(getattr(response, "content", None), "iter_any"):
        return None, response.content.iter_any().__aiter__
    return lambda: iter(lambda: response.read1(PART), b""), None


def _httpx_readers(response: Any) -> Readers:
    if hasattr(response, "_content"):  # read as a whole: either way will do
        return response.iter_bytes, response.aiter_bytes
    if response.is_stream_consumed or response.is_closed:
        return None, None
    stream = getattr(response, "stream", None)
    return (
        response.iter_raw if hasattr(stream, "__iter__") else None,
        (lambda: body_of(response)) if hasattr(stream, "__aiter__") else None,
    )


def body_of(response: Any) -> AsyncIterator[bytes]:
    """The chunks below ``aiter_raw``, with its checks; whoever reads them closes the response."""
    body: AsyncIterator[bytes]
    if response.is_stream_consumed or response.is_closed:
        body = response.aiter_raw()  # says which of the two
    else:
        response.is_stream_consumed = True
        body = response.stream.__aiter__()
    return body


def facts_of(response: Any) -> Facts:
    """What a response, or anything that has a request, says of itself."""
    request = _attribute(response, "request_info") or _attribute(response, "request")
    url = _attribute(response, "url") or _attribute(request, "url")
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    return Facts(
        url=str(url) if url else None,
        status=status if isinstance(status, int) else None,
        headers=getattr(response, "headers", None),
        request_headers=getattr(request, "headers", None),
    )


def _attribute(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except RuntimeError:  # httpx: a response that was made by hand has no request
        return None


def _texts(headers: Any) -> dict[str, str]:
    """By name. One that came several times is one list: what a body is packed with, say, and again."""
    items = headers.items() if hasattr(headers, "items") else ()
    texts: dict[str, str] = {}
    for name, value in ((str(k).lower(), str(v)) for k, v in items):
        texts[name] = f"{texts[name]}, {value}" if name in texts else value
    return texts


# --- whose stream is it? --------------------------------------------------------------------------


def _sdk_provider(thing: Any) -> str | None:
    """Told by the class of the items if the object knows it, else by its own class or its code."""
    modules = (_module_of_items(getattr(thing, "_cast_to", None)), _module(thing))
    rows = (by_module(module) for module in modules if module)
    return next((row.name for row in rows if row), None)


def _module_of_items(kind: Any) -> str | None:
    """Of a stream of these items: the module of the class, or of one class of the union."""
    if (args := getattr(kind, "__args__", None)) and not isinstance(kind, type):
        return _module_of_items(args[0])
    return getattr(kind, "__module__", None)


# --- one item -------------------------------------------------------------------------------------


def as_item(thing: Any) -> Item:
    """A chunk as bytes, or a payload as plain values, whatever it came as.

    >>> as_item("data: 1")
    b'data: 1'
    """
    if type(thing) is bytes or type(thing) is dict:
        return thing
    if isinstance(thing, bytearray | memoryview):
        return bytes(thing)
    if isinstance(thing, str):
        return thing.encode("utf-8", "surrogatepass")
    if isinstance(thing, Mapping):
        return dict(thing)
    if callable(getattr(thing, "model_dump", None)):
        return _payload_of(thing)
    if hasattr(thing, "data") and hasattr(thing, "event"):  # a decoded server-sent event
        return _as_sse(str(thing.event or ""), str(thing.data or ""))
    row = by_module(type(thing).__module__)
    if row is not None and (payload := row.payload_of(thing)) is not None:
        return payload
    raise UsageError(
        f"an item is a {type(thing).__module__}.{type(thing).__name__}: bytes, str, a dict or an "
        "SDK's model object is needed"
    )


def _payload_of(model: Any) -> dict[str, Any]:
    # pydantic writes bytes as URL-safe base64, wires do not; so the bytes are kept, and written here.
    row = by_module(type(model).__module__)
    said = model.model_dump(
        by_alias=True, exclude_unset=True, exclude=set(row.sdk_fields) if row else None
    )
    return {k: v for k, v in plain_values(said).items() if v is not None}


def _as_sse(event: str, data: str) -> bytes:
    lines = [f"event: {event}"] if event else []
    lines += [f"data: {line}" for line in data.split("\n")]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


# --- errors ---------------------------------------------------------------------------


def is_transport(error: BaseException) -> bool:
    """Did the connection fail, rather than the program? Decided by where the class comes from.

    A library's own exceptions come from the network it reads; those of the language itself, apart
    from ``OSError`` and ``EOFError``, are mistakes in somebody's code and are not to be hidden.

    >>> is_transport(ConnectionResetError()), is_transport(TypeError())
    (True, False)
    """
    if isinstance(error, StreamnormError) or not isinstance(error, Exception):
        return False
    return isinstance(error, OSError | EOFError) or type(error).__module__ != "builtins"
