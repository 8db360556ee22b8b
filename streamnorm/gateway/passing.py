"""A request and an upstream that speaks the client's own wire come in; the bytes themselves go through.

Rule: bytes go on as they came, as soon as they may (``Passage``), and never one of a call that may be
run before its turn has ended well. What comes before the answer itself (its heading, keep-alives) is
held for a moment, so that an upstream that fails at once can be asked again or be told as a status. If
the stream ends in any other way than its own, the wire's own error is the last thing that is sent. From
the frame on with which a call begins whose id its client cannot work with, the rest is told by us
(``retelling``); for that what was sent is kept, up to a bound. A request goes on as it came, but for the
model's name and for ids that the upstream knows by another; of an answer only the model's name is changed
back, and only for clients that keep no thoughts of another model than they asked. While frames are held,
a client that hears nothing is told in its wire's own way that there is more to come.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator

import httpx
import msgspec

from ..errors import UsageError
from ..events import Event, Failed, StreamStart, Usage
from ..framing.inflate import NotInflated
from ..passage import Passage
from ..takes.recorder import Recorder
from ..text.written import json_bytes
from .asked import Asked
from .asking import ask, chunks_of, close, refused_by
from .case import MIB, Case
from .headers import Pairs, passed_back
from .retelling import Retelling, begins_oddly
from .wholes import Whole

__all__ = ["Passing"]

# Seconds, and bytes, for which the beginning of a stream may wait for its first word.
MOMENT, BEGINNING = 5.0, 64 * 1024
KEPT = 4 * MIB  # bytes of what was sent that are kept, in case that the rest is to be told by us
_BEFORE = (StreamStart, Usage, Failed)  # what may be told before the answer itself
_TOO_LATE = "a call came under an id that its client cannot work with, too late to give it another"
_NO_ANSWER = "the answer of the upstream is no whole JSON object, nor a list of those"
_ANSWER = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]])
_BLANK = b"\n\n"  # the end of an event
_LOST = (httpx.TransportError, httpx.StreamError, NotInflated, OSError)


class Passing:
    """Attempts to answer one request."""

    def __init__(self, case: Case, address: str | None = None) -> None:
        self._case = case
        case.exchange.passed = True
        own = case.route.upstream.address(case.route.model, stream=case.asked.stream)
        self._address, self._headers = case.onward(address or own)
        self._content = case.content

    async def attempt(self) -> Failed | None:
        """Answer; or say why nothing was shown."""
        case = self._case
        response = await ask(
            case.services.http, self._address, self._headers, self._content, wire=case.wire.name
        )
        chunks = chunks_of(response, case.services.settings.limits)
        try:
            begin = await _begin_of(chunks)
            if isinstance(begin, Failed):
                return begin
            if begin.lstrip().startswith((b"{", b"[")):
                return await self._whole(response, begin, chunks)
            return await _Through(case, response, begin, chunks).run()
        finally:
            await close(response)

    async def _whole(
        self, response: httpx.Response, begin: bytes, chunks: AsyncIterator[bytes]
    ) -> Failed | None:
        """An answer that is no stream: all of it is read before any of it is sent."""
        case, said, size = self._case, [begin], len(begin)
        try:
            async for chunk in chunks:
                said.append(chunk)
                size += len(chunk)
                if size > case.services.settings.limits.stream:
                    return Failed("limit", "the answer is too large to be handed on")
        except _LOST as error:
            return lost(error)
        body = b"".join(said)
        if not _is_answer(body):
            if _is_answer(body.partition(b"\n")[0]):  # the first of several lines: a stream, too
                return await _Through(case, response, body, chunks).run()
            return Failed("truncated", _NO_ANSWER, retryable=True)
        whole = Whole(case, body)
        if case.asked.stream:  # what counts, and the like, is none
            return await self._streamed(response, whole, body)
        told = whole.failure or whole.retold() or body
        if isinstance(told, Failed):
            return told
        headers = dict(passed_back(response.headers.raw))
        if told is not body:
            headers[b"content-type"] = b"application/json"
        case.exchange.state, body = "done", told
        if case.is_renamed:
            body = _of_model(body, case.asked.model)
        await case.client.answer(response.status_code, list(headers.items()), body)
        return None

    async def _streamed(self, response: httpx.Response, whole: Whole, body: bytes) -> Failed | None:
        """For a client that asked for a stream, and reads nothing else."""
        case, told = self._case, whole.streamed()
        if told is None:
            raise refused_by(response, body, wire=case.wire.name)
        if isinstance(told, Failed):
            return told
        case.exchange.state = "done"
        await case.client.start(200, [(b"content-type", case.wire.content_type.encode())])
        await case.client.write(told)
        await case.client.end()
        return None


async def _begin_of(chunks: AsyncIterator[bytes]) -> bytes | Failed:
    """As much as tells a stream from an answer that is none. Its header is not asked: by a wrong word
    there a stream would go through that nobody guards."""
    begin = b""
    try:
        while not begin.strip() and len(begin) < BEGINNING:
            chunk = await anext(chunks, None)
            if chunk is None:
                break
            begin += chunk
    except _LOST as error:
        return lost(error)
    return begin


def _is_answer(body: bytes) -> bool:
    try:
        _ANSWER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


class _Through:
    """One stream on its way through."""

    def __init__(
        self, case: Case, response: httpx.Response, begin: bytes, chunks: AsyncIterator[bytes]
    ) -> None:
        self._case, self._client = case, case.client
        self._response, self._first, self._chunks = response, begin, chunks
        settings = case.services.settings
        self._passage = Passage(
            case.wire.name, eager=settings.eager, listener=self._hear, limits=settings.limits
        )
        self._tape = self._recorder()
        self._speaks = False  # has the answer itself begun?
        self._beginning: list[bytes] = []
        self._sent: list[bytes] | None = []  # what was handed on; None: it was too much to be kept
        self._size = 0
        self._heard = 0  # events
        self._new: list[Event] = []  # the last of them, of which the client may have heard nothing
        self._withheld = b""  # the beginning of a call whose id is not known yet
        self._odd = False  # a call has begun whose id the client cannot work with
        self._retelling: Retelling | None = None
        self._stopped: Failed | None = None
        self._renames = case.is_renamed

    async def run(self) -> Failed | None:
        self._client.alive = self._reassure
        try:
            await self._read()
        finally:
            self._client.alive = None
            self._case.notes.update(self._passage.notes)
            if self._tape is not None:
                ended = self._passage.ending is not None and self._passage.failure is None
                self._tape.close(finished=ended)
        return await self._end()

    async def _read(self) -> None:
        passage, tape, chunk = self._passage, self._tape, self._first
        try:
            while True:
                if tape is not None:
                    tape.chunk(chunk)
                await self._take(passage.feed(chunk))
                chunk = await anext(self._chunks)
        except StopAsyncIteration:
            frames, rest = passage.frames, passage.close()
            # An event that nothing ends is one to the pipe, and none to most clients.
            await self._take(rest + _BLANK if rest and passage.frames > frames else rest)
        except _LOST as error:
            failed = lost(error)
            passage.fail(failed.reason, failed.error, retryable=failed.retryable)
            await self._take(b"")

    async def _take(self, data: bytes) -> None:
        """What the passage gives; what it has heard is in ``_new``."""
        if self._stopped is not None:
            return
        if self._retelling is not None:
            data, self._new = self._retelling.tell(self._new), []
        elif self._odd:
            data = self._retold(self._withheld + data)
        else:
            data = self._handed_on(self._withheld + data)
        if data:
            await self._give(data)

    def _handed_on(self, data: bytes) -> bytes:
        """As it came, unless a call begins in it whose id is not known yet."""
        self._withheld = data if data and self._passage.hesitates else b""
        if self._withheld:
            return b""
        if not self._passage.holds:
            self._new = []
        if data and self._sent is not None:
            self._size += len(data)
            self._sent.append(data)
            if self._size > KEPT:
                self._sent = None
        return data

    def _retold(self, data: bytes) -> bytes:
        """From a frame of this on the client is told by us."""
        if self._sent is None:
            self._stopped = Failed("limit", _TOO_LATE, False)
            return b""
        self._retelling = Retelling(self._case, self._passage)
        fine = self._retelling.begin(b"".join(self._sent), data)
        since = self._heard - self._retelling.heard
        said, self._new = self._retelling.tell(self._new[-since:] if since else ()), []
        return fine + said

    def _renamed(self, data: bytes) -> bytes:
        """The first name of the model that is told here is the one that the client knows."""
        theirs, ours = (json_bytes(name) for name in (self._passage.model, self._case.asked.model))
        named = re.compile(rb'("model":\s*)' + re.escape(theirs))
        data, number = named.subn(lambda found: found[1] + ours, data, count=1)
        self._renames = not (number or self._speaks)  # it is said before the answer itself
        return data

    async def _give(self, data: bytes) -> None:
        if self._renames:
            data = self._renamed(data)
        if self._client.started:
            return await self._client.write(data)
        self._beginning.append(data)
        late = time.monotonic() - self._case.exchange.began > MOMENT
        if self._speaks or late or sum(map(len, self._beginning)) > BEGINNING:
            await self._begin()
        return None

    async def _begin(self) -> None:
        headers: Pairs = passed_back(self._response.headers.raw)
        await self._client.start(self._response.status_code, headers)
        if data := b"".join(self._beginning):
            await self._client.write(data)

    async def _reassure(self) -> None:
        """Of what the upstream says its client hears nothing, as long as it is held. While nothing is,
        the upstream's own keep-alives go through."""
        if self._retelling is not None:
            said = self._retelling.alive()
        elif self._passage.holds and self._stopped is None:
            said = self._case.server().keep_alive()
        else:
            return
        if not self._client.started:
            await self._begin()
        await self._client.write(said)

    async def _end(self) -> Failed | None:
        passage, exchange = self._passage, self._case.exchange
        broken = self._stopped or passage.failure
        ending = broken or passage.ending
        if self._retelling is not None:
            broken, ending = None, self._retelling.failure
        exchange.state = "broken" if isinstance(ending, Failed) else "done"
        if isinstance(ending, Failed):
            exchange.error = ending.error
            if not self._client.started:
                return ending
        if not self._client.started:
            await self._begin()
        if broken is not None:
            await self._client.write(self._error(broken))
        await self._client.end()
        return None

    def _error(self, failure: Failed) -> bytes:
        passage, last = self._passage, self._passage.number
        return self._case.server().broken_off(
            failure.error, failure, model=passage.model, response_id=passage.response_id,
            number=last + 1 if isinstance(last, int) else 0,
        )  # fmt: skip

    def _hear(self, events: list[Event]) -> None:
        if not self._speaks:
            self._speaks = any(type(event) not in _BEFORE for event in events)
        self._new += events
        self._heard += len(events)
        self._odd = self._odd or begins_oddly(events, self._passage, self._case)
        self._case.exchange.hear(events)

    def _recorder(self) -> Recorder | None:
        case, response = self._case, self._response
        if (folder := case.take()) is None:
            return None
        tape = Recorder.open(
            folder, provider=case.wire.name, seed=self._passage.seed, url=response.url,
            headers=response.headers, request_headers=response.request.headers,
            secrets=case.secrets, status=response.status_code,
        )  # fmt: skip
        case.taken(tape.path)
        return tape


def _of_model(body: bytes, model: str) -> bytes:
    try:
        return Asked(body).for_model(model)  # an answer names its model as a request does
    except UsageError:
        return body


def lost(error: Exception) -> Failed:
    """The connection to the upstream was lost, or what came over it cannot be unpacked."""
    if isinstance(error, NotInflated):
        return Failed("limit" if error.is_limit else "protocol", str(error))
    timed_out = isinstance(error, httpx.TimeoutException)
    words = "the upstream went silent" if timed_out else "the connection to the upstream was lost"
    return Failed("idle" if timed_out else "transport", words, retryable=True)
