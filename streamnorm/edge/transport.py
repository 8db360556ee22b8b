"""Around other people's clients: a transport comes in, one that guards and records its streams goes out.

    client = OpenAI(http_client=httpx.Client(transport=streamnorm.transport(record="takes/")))

Rule: a response that is no stream of a wire we know is handed on as it is. Of one that is, every byte
goes through a ``Passage``: the client hears a call only with the normal end of its turn behind it, and
where the stream was cut or cannot be read, its own library's error instead of a quiet end. What the
provider itself says of a failure is handed on in its own words.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import msgspec

from ..errors import RecordingError, UsageError
from ..events import Event, Failed, FailedReason, StreamStart, Unrecognized, event_to_dict
from ..framing import sniff
from ..framing.aws import CONTENT_TYPE as AWS_FRAMES
from ..framing.inflate import PLAIN, Inflater, NotInflated
from ..limits import Limits
from ..notes import WARNING, Scribe
from ..passage import Passage
from ..providers import AUTO, PROGRAMS, parsers_of
from ..providers.detect import by_address
from ..text.shown import clean
from .clients import library_of, stream_class, transport_class
from .failures import error_of
from .reading import named_secrets
from .sources import Facts
from .summary import Tally
from .unpacking import Unpacking

if TYPE_CHECKING:
    from ..takes.recorder import Recorder

__all__ = ["transport"]

Told: TypeAlias = Callable[[dict[str, Any]], object]
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", AWS_FRAMES)
_CUT_SHORT = ("transport", "limit", "cancelled")  # the body went on, or would have
_SAYING_NOTHING = {StreamStart, Unrecognized, Failed}
SNIFFED = 4  # bytes: a byte order mark, and whether blanks follow it
MOST_BLANK = 1024 * 1024  # bytes before a body says anything: no answer of a provider begins so


def transport(
    inner: Any = None,
    *,
    record: str | os.PathLike[str] | None = None,
    eager: bool = False,
    limits: Limits | None = None,
    secrets: Iterable[str] = (),
    on_summary: Told | None = None,
) -> Any:
    """A transport for ``Client`` and ``AsyncClient`` of httpx and httpx2, around ``inner``.

    Without ``inner`` it is the library's own, with its defaults. ``record`` is a folder: each stream
    becomes a take in it, without keys and without the ``secrets`` that are named. ``eager`` hands a call
    on when it is closed, and does not wait for the end of its turn. ``on_summary`` is called at the end
    of each stream, by whoever reads it, with what ``Stream.summary`` has, ``failure`` and ``handed_on``
    (bytes).

    ::

        client = anthropic.AsyncAnthropic(
            http_client=httpx.AsyncClient(transport=streamnorm.transport(record="takes/"))
        )
    """
    if record is not None and not os.path.isdir(record):
        raise UsageError(f"record is a folder that is there: make {clean(os.fspath(record))} first")
    return transport_class(_GuardingTransport)(
        inner, _Options(record, eager, limits, named_secrets(secrets), on_summary)
    )


class _Options:
    def __init__(
        self,
        record: str | os.PathLike[str] | None,
        eager: bool,
        limits: Limits | None,
        secrets: frozenset[str],
        on_summary: Told | None,
    ) -> None:
        self.record, self.eager, self.limits, self.on_summary = record, eager, limits, on_summary
        self.secrets = secrets


class _GuardingTransport:
    def __init__(self, inner: Any, options: _Options) -> None:
        self._inner, self._options = inner, options
        self._own: dict[tuple[Any, bool], Any] = {}  # library, is it async? -> its own transport

    def handle_request(self, request: Any) -> Any:
        inner = self._for(request, later=False)
        return self._guarded(request, inner.handle_request(request))

    async def handle_async_request(self, request: Any) -> Any:
        inner = self._for(request, later=True)
        return self._guarded(request, await inner.handle_async_request(request))

    def close(self) -> None:
        for inner in self._open("close", later=False):
            inner.close()

    async def aclose(self) -> None:
        for inner in self._open("aclose", later=True):
            await inner.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _for(self, request: Any, *, later: bool) -> Any:
        if self._inner is not None:
            if not hasattr(self._inner, "handle_async_request" if later else "handle_request"):
                kind = "an AsyncClient needs an async" if later else "a Client needs a sync"
                raise UsageError(f"{kind} transport; inner is a {type(self._inner).__name__}")
            return self._inner
        library = library_of(request)
        if (library, later) not in self._own:
            make = library.AsyncHTTPTransport if later else library.HTTPTransport
            self._own[library, later] = make()
        return self._own[library, later]

    def _open(self, name: str, *, later: bool) -> list[Any]:
        """Those that are to be closed so. One of our own is made anew if another request comes."""
        if self._inner is not None:
            return [self._inner] if hasattr(self._inner, name) else []
        return [self._own.pop(key) for key in list(self._own) if key[1] is later]

    def _guarded(self, request: Any, response: Any) -> Any:
        """The response, its body guarded if that may be a stream."""
        wire = _wire_of(request, response)
        if wire is None:
            return response
        library, encoding = library_of(request), response.headers.get("content-encoding", "")
        unpacking: Unpacking | None = None
        if encoding.strip().lower() not in PLAIN:
            if _kind(response) not in _STREAMS and not _is_read(encoding):
                return response  # as likely as not it is no stream: that is the client's to read
            unpacking = Unpacking(encoding, self._options.limits)
        guard = _Guard(_facts(request, response), wire, library, self._options)
        if unpacking is not None:  # what the client hears is unpacked already
            for name in ("content-encoding", "content-length"):
                response.headers.pop(name, None)
        guarded = stream_class(library, _GuardedStream)
        response.stream = guarded(response.stream, guard, unpacking)
        return response


class _Wire(NamedTuple):
    """Whose stream a body may be."""

    name: str
    sure: bool  # else its first bytes decide whether it is


def _wire_of(request: Any, response: Any) -> _Wire | None:
    """None: it is no stream."""
    if not 200 <= response.status_code < 300 or request.method == "HEAD":
        return None
    kind, named = _kind(response), by_address(request.url).name
    if kind in _STREAMS:
        return _Wire(named or AUTO, sure=named is not None)
    if named is not None and kind == "application/json":  # as an answer that is none, too
        arrays = any("array" in parser.STARTS for parser in parsers_of(named))
        return _Wire(named, sure=False) if arrays else None
    return _Wire(AUTO, sure=False) if named is not None and kind in ("", "text/plain") else None


def _kind(response: Any) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _is_read(encoding: str) -> bool:
    """Is a body that is packed so one that can be read here?"""
    try:
        Inflater(encoding)
    except NotInflated:
        return False
    return True


def _facts(request: Any, response: Any) -> Facts:
    return Facts(
        url=str(request.url),
        status=response.status_code,
        headers=response.headers,
        request_headers=request.headers,
    )


class _GuardedStream:
    """The body of a response, read once, in a ``for`` or in an ``async for`` loop."""

    def __init__(self, body: Any, guard: _Guard, unpacking: Unpacking | None) -> None:
        self._body, self._guard, self._unpacking = body, guard, unpacking

    def __iter__(self) -> Iterator[bytes]:
        guard, body = self._guard, self._body
        try:
            for chunk in self._unpacking.now(body) if self._unpacking else body:
                if given := guard.feed(chunk):
                    yield given
                if guard.failed:
                    break
        except NotInflated as error:
            raise guard.left_packed(error) from error
        except Exception as error:
            guard.broken(error)
            raise
        if given := guard.end():
            yield given
        guard.raise_if_failed()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        guard, body = self._guard, self._body
        try:
            async for chunk in self._unpacking.later(body) if self._unpacking else body:
                if given := guard.feed(chunk):
                    yield given
                if guard.failed:
                    break
        except NotInflated as error:
            raise guard.left_packed(error) from error
        except Exception as error:
            guard.broken(error)
            raise
        if given := guard.end():
            yield given
        guard.raise_if_failed()

    def close(self) -> None:
        self._guard.left()
        self._body.close()

    async def aclose(self) -> None:
        self._guard.left()
        await self._body.aclose()


class _Guard:
    """Between a body and its reader: chunks in, what may be handed on out. No waiting here."""

    def __init__(self, facts: Facts, wire: _Wire, library: Any, options: _Options) -> None:
        self._facts, self._library, self._options = facts, library, options
        facts.hide(options.secrets)
        self._tally = Tally()
        self._passage = Passage(
            wire.name, eager=options.eager, limits=options.limits, listener=self._tally.hear
        )
        self._passage.conceal(facts.redacted)
        self._recorder: Recorder | None = None
        self._sure = wire.sure
        self._first: list[bytes] = []  # until it is sure: what came …
        self._given: list[bytes] = []  # … and what may be handed on of it
        self._start = b""  # as much of it as has to be looked at
        self._foreign = False  # it is no stream of ours after all
        self._over = False
        if self._sure:
            self._record()

    def feed(self, chunk: bytes) -> bytes:
        """What may be handed on now."""
        if self._foreign:
            return chunk
        self._tally.chunks += 1
        self._tally.bytes += len(chunk)
        if not self._sure:
            return self._looked_at(chunk)
        if self._recorder is not None:
            self._recorder.chunk(chunk)
        return self._passage.feed(chunk)

    @property
    def failed(self) -> bool:
        """Is there something that the client has to hear instead of the rest?"""
        return self._passage.failure is not None and not self._foreign

    def end(self) -> bytes:
        """The body has ended: what may still be handed on."""
        if self._foreign:
            return b""
        last = self._passage.close()
        if not self._sure:  # nothing has told whose it is
            self._foreign = True
            return b"".join(self._first)
        return last

    def broken(self, error: Exception) -> None:
        """The connection failed, which the client hears from its library."""
        self._passage.fail("transport", self._facts.redacted(str(error)), retryable=True)
        self._finish()

    def left_packed(self, error: NotInflated) -> Any:
        """The body must not be unpacked, or cannot be: the client's own error, whoever's stream it is."""
        reason: FailedReason = "limit" if error.is_limit else "protocol"
        self._passage.fail(reason, str(error))
        self._finish()
        failed = Failed(reason, str(error), code=error.code)
        return error_of(failed, self._passage.provider, partial(_mixed, self._library))

    def left(self) -> None:
        """The client reads no more."""
        self._passage.fail("cancelled", "the client closed the stream before it had ended")
        self._finish()

    def raise_if_failed(self) -> None:
        """The client's own error, if the stream did not come to an end that it may hear."""
        failure = self._passage.failure
        self._finish()
        if failure is None or self._foreign or self._is_unknown(failure):
            return
        shown = msgspec.structs.replace(failure, error=self._facts.redacted(failure.error))
        raise error_of(shown, self._passage.provider, partial(_mixed, self._library))

    # --- is it a stream of ours? ----------------------------------------------------------------

    def _looked_at(self, chunk: bytes) -> bytes:
        self._first.append(chunk)
        if self._passage.provider != AUTO:  # the address names it, and the first byte decides
            start = sniff(self._start + chunk)
            if start is None and self._tally.bytes <= MOST_BLANK:
                self._start = (self._start + chunk)[:SNIFFED]  # blanks behind those say nothing
                return b""
            self._foreign = start not in ("array", None)
            self._sure = not self._foreign
        else:
            self._given.append(self._passage.feed(chunk))
            self._foreign = self._is_foreign
            self._sure = not self._foreign and self._passage.provider != AUTO
        return self._decided() if self._sure or self._foreign else b""

    @property
    def _is_foreign(self) -> bool:
        """Is it nobody's, or like what a program prints? Many say an error as providers do: by itself
        that tells nothing, and what follows is theirs to hear."""
        ended = self._passage.ending is not None
        name = self._passage.provider
        return name in PROGRAMS or (ended and (name == AUTO or self._said <= _SAYING_NOTHING))

    def _decided(self) -> bytes:
        first, given = b"".join(self._first), b"".join(self._given)
        fed = bool(self._given)
        self._first, self._given = [], []
        if self._foreign:
            return first
        self._record()
        if self._recorder is not None:
            self._recorder.chunk(first)
        return given if fed else self._passage.feed(first)

    def _is_unknown(self, failure: Failed) -> bool:
        """Was nothing of it understood? Then it may be whole in a way that we do not know."""
        said = self._said
        return failure.reason == "protocol" and Unrecognized in said and said <= _SAYING_NOTHING

    @property
    def _said(self) -> set[type[Event]]:
        return {kind for kind, number in self._tally.counts.items() if number}

    # --- what is kept of it ---------------------------------------------------------------------

    def _record(self) -> None:
        if self._options.record is None:
            return
        from ..takes.recorder import Recorder

        facts, passage = self._facts, self._passage
        try:
            self._recorder = Recorder.open(
                self._options.record, provider=passage.provider, seed=passage.seed, url=facts.url,
                headers=facts.headers, request_headers=facts.request_headers,
                secrets=facts.secrets, status=facts.status,
            )  # fmt: skip
        except RecordingError as error:  # the client must not hear of it
            Scribe(passage.provider).log(WARNING, "recorder.failed", reason=str(error))

    def _finish(self) -> None:
        """Once: the take is closed, and the summary told."""
        if self._over or not self._sure:
            return
        self._over = True
        ending, recorder, passage = self._passage.ending, self._recorder, self._passage
        if recorder is not None:
            cut_short = isinstance(ending, Failed) and ending.reason in _CUT_SHORT
            recorder.close(finished=ending is not None and not cut_short)
        if self._options.on_summary is not None:
            summary = self._tally.summary()
            summary |= {"provider": passage.provider, "seed": passage.seed}
            summary |= {"notes": dict(passage.notes), "handed_on": passage.bytes}
            if (failure := passage.failure) is not None:
                failure = msgspec.structs.replace(
                    failure, error=self._facts.redacted(failure.error)
                )
            summary["failure"] = event_to_dict(failure) if failure else None
            if recorder is not None:
                summary["recording"] = {"path": recorder.path, "failed": recorder.failed}
            self._options.on_summary(summary)


@lru_cache
def _mixed(library: Any, ours: Any) -> type[Any]:
    """An error of ours that the client's library, and so everybody's SDK, takes for its own."""
    return type(ours.__name__, (ours, library.RemoteProtocolError), {"__module__": ours.__module__})
