"""An exchange as some program wrote it down comes in; the take of its answer goes out.

Rule: of a request nothing is kept but the address, without what is secret in it, and its secrets tell
what is overwritten in the answer. An answer is unpacked as its headers say; what is then no stream is
``NoStream``, with the reason.
"""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec

from ..events import Failed
from ..framing import sniff
from ..framing.aws import CONTENT_TYPE as AWS_FRAMES
from ..framing.aws import Frames, resealed
from ..framing.inflate import PLAIN
from ..normalizer import Normalizer
from ..notes import unheard
from ..providers.detect import by_address
from ..takes.format import Chunk, Take, digest_of
from ..takes.redact import (
    Redactor,
    bare_url,
    kept_headers,
    secrets_in_headers,
    secrets_in_url,
)
from ..text.shown import clean
from .packed import packing_of, unpack
from .strangers import HEAD, MADE_BY_HAND, NoStream, form_of

__all__ = ["MADE", "Answer", "Headers", "Unread", "pairs_of", "take_of", "when"]

MADE = "imported by streamnorm"
Headers = list[tuple[str, str]]
LONGEST_HEADER = 16 * 1024
MOST_HEADERS = 256
# Media types of streams; JSON is none, although an error may be that, and a stream that is a list.
_STREAMS = ("text/event-stream", "ndjson", "jsonl", "json-seq", "stream+json", AWS_FRAMES)
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class Answer(msgspec.Struct, kw_only=True):
    """One exchange."""

    where: str  # it stands in its file: ``entry 3``
    body: bytes = b""
    url: str | None = None
    status: int | None = None
    headers: Headers = []
    request_headers: Headers = []
    captured: str | None = None
    remark: str = ""  # on how its body is kept
    times: list[tuple[float, int]] = []  # when so many bytes of the body came, if that is known
    torn: bool = False
    raw: bool = False  # may the body still be in chunks of HTTP/1.1?

    def header(self, name: str) -> str:
        """The value of a header; nothing if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def asked_for_a_stream(self) -> bool:
        """Would anybody look for a stream here?"""
        kind = self.header("content-type").lower()
        return any(name in kind for name in _STREAMS) or by_address(self.url).wire is not None

    @property
    def called(self) -> str:
        """Where it stands, and from where it came, for a sentence."""
        return self.where + (f" ({clean(bare_url(self.url))})" if self.url else "")


class Unread(NamedTuple):
    """An exchange without an answer that could be read."""

    where: str
    why: str
    aside: bool = False  # nobody would look for a stream there


def take_of(answer: Answer, origin: str) -> Take:
    """Its take; ``origin`` is what it was made from. Raises ``NoStream``."""
    body = _unpacked(answer)
    refused = answer.status is not None and not 200 <= answer.status < 300
    if refused:
        _check_refused(answer, body)
    else:
        _check(answer, body)
    redactor = Redactor(
        secrets_in_headers(answer.request_headers)
        | secrets_in_headers(answer.headers)
        | secrets_in_url(answer.url or "")
    )
    chunks = _timed(_redacted(body, redactor), answer.times)
    seed = digest_of(chunks)
    whence = f"{origin}, {answer.remark}" if answer.remark else origin
    facts = _facts(answer, whence, redactor, seed)
    return Take(facts, chunks, facts.get("provider"), seed, bool(answer.times), answer.torn)


# --- the body -------------------------------------------------------------------------------------


def _unpacked(answer: Answer) -> bytes:
    body = answer.body
    if answer.raw and "chunked" in answer.header("transfer-encoding").lower():
        body = _dechunked(answer)
    coding = answer.header("content-encoding").lower().strip()
    packing = packing_of(body)
    if packing is None:
        if coding in PLAIN or not _is_binary(body):  # a browser and a proxy unpack what they keep
            return body
        if sniff(body[:64]) == "aws":
            return body
        packing = coding
    body, whole = unpack(body, packing, name="the body")
    answer.torn |= not whole
    return body


def _dechunked(answer: Answer) -> bytes:
    """What is in the chunks of HTTP/1.1, if they are still there."""
    body, parts, at = answer.body, list[bytes](), 0
    while (found := _SIZE.match(body, at)) is not None:
        end = found.end() + int(found[1], 16)
        parts.append(body[found.end() : end])
        if body[end : end + 2] not in (b"\r\n", b"\r", b""):
            return body  # these were no chunks
        at = end + 2
        if not parts[-1]:
            return b"".join(parts)
    answer.torn |= bool(parts)  # without the last one
    return b"".join(parts) if parts else body


def _is_binary(body: bytes) -> bool:
    try:
        body[:HEAD].decode()
    except UnicodeDecodeError as error:
        return error.start < len(body[:HEAD]) - 4
    return False


def _redacted(body: bytes, redactor: Redactor) -> bytes:
    if sniff(body[:64]) != "aws":
        return redactor.whole(body)
    frames = Frames()
    whole = [resealed(frame, redactor.whole) for frame in frames.feed(body)]
    return b"".join(whole) + redactor.whole(b"".join(frames.rest()))


def _timed(body: bytes, times: list[tuple[float, int]]) -> list[Chunk]:
    """Redaction changes no length, so that each time still belongs to the same bytes."""
    if not times:
        return [(0.0, body)] if body else []
    ends = [0, *accumulate(size for _, size in times)]
    chunks = [(at, body[a:b]) for (at, _), (a, b) in zip(times, pairwise(ends), strict=True)]
    return [chunk for chunk in chunks if chunk[1]]


# --- is it a stream? ------------------------------------------------------------------------------


def _check(answer: Answer, body: bytes) -> None:
    wanted = answer.asked_for_a_stream
    try:
        form_of(body[:HEAD] if len(body) > HEAD else body, whole=len(body) <= HEAD)
    except NoStream as none:
        why = none.why.removesuffix(MADE_BY_HAND).rstrip()  # here another program keeps them
        raise NoStream(why, aside=not wanted) from None
    if not wanted and _heard_nothing(body) is not None:
        raise NoStream("is no answer of a provider that is known.", aside=True)


def _check_refused(answer: Answer, body: bytes) -> None:
    """What a server says instead of streaming counts where a stream was asked for."""
    failed = _heard_nothing(body)
    said = failed is not None and failed.reason == "provider_error"
    if not said and not answer.asked_for_a_stream:
        raise NoStream(f"was answered with the status {answer.status}.", aside=True)


def _heard_nothing(body: bytes) -> Failed | None:
    """How it failed before a word of it was told."""
    pipe = Normalizer()
    with unheard():
        events = pipe.feed(body[:HEAD])
        if not events and len(body) <= HEAD:
            events = pipe.close()
    first = events[0] if events else None
    return first if isinstance(first, Failed) else None


# --- what is known of it --------------------------------------------------------------------------


def _facts(answer: Answer, origin: str, redactor: Redactor, seed: str) -> dict[str, Any]:
    kept, others = kept_headers(answer.headers, redactor)
    wire = by_address(answer.url).wire
    facts: dict[str, Any] = {
        "provider": wire.name if wire else None,
        "seed": seed,
        "captured": answer.captured,
        "made": MADE,
        "from": redactor.clean_text(origin),
        "url": redactor.clean_text(bare_url(answer.url)) if answer.url else None,
        "status": answer.status,
        "headers": kept,
        "other_headers": others,
    }
    return {key: value for key, value in facts.items() if value not in (None, "", {})}


def pairs_of(headers: Any) -> Headers:
    """Headers in any of the ways in which programs write them: a list of pairs, a mapping to a text or
    to several."""
    if isinstance(headers, dict):
        items = list(headers.items())
    elif isinstance(headers, list):
        items = [(one.get("name"), one.get("value")) for one in headers if isinstance(one, dict)]
    else:
        items = []
    pairs: Headers = []
    for name, values in items[:MOST_HEADERS]:
        for value in values[:MOST_HEADERS] if isinstance(values, list) else [values]:
            if isinstance(name, str) and isinstance(value, str):
                pairs.append((name[:LONGEST_HEADER], value[:LONGEST_HEADER]))
    return pairs[:MOST_HEADERS]


def when(text: Any) -> str | None:
    """A time as ISO 8601, from that or from the form of HTTP and mail; None if it is neither.

    >>> when("Thu, 19 Nov 2026 08:30:00 GMT"), when("2026-11-19T08:30:00.000Z"), when("today")
    ('2026-11-19T08:30:00+00:00', '2026-11-19T08:30:00+00:00', None)
    """
    if not isinstance(text, str) or len(text) > 100:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(text).isoformat()
        except (ValueError, TypeError, OverflowError):
            continue
    return None
