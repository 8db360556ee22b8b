"""A response that is no stream comes in; a ``ProviderError`` with the provider's own words goes out.

Rule: what is held back to be looked at is bounded, and a stream passes untouched whatever its
headers call it. No I/O here: the reader feeds chunks and hears whether they may pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from ..errors import ProviderError
from ..providers import PROVIDERS
from ..takes.redact import bare_url
from ..text.shown import clean, shorten
from .sources import Facts

__all__ = ["BODY", "Gate", "refusal", "retry_after"]

BODY = 64 * 1024  # bytes of an error's body that are read
WHOLE = 1024 * 1024  # bytes of a JSON body that are held to see whether it is one single object
_TRY_AGAIN = {408, 409, 425, 429}
_KEY_REFUSED = 401  # and so it will be again, whatever else is said
_NO_STREAM = 'the answer is one JSON object and no stream; ask for a stream ("stream": true)'


class Gate:
    """Between the response and the pipe, until the first bytes have shown what the body is."""

    def __init__(self, facts: Facts, provider: str) -> None:
        self._facts = facts
        self._provider = provider
        row = PROVIDERS.get(provider)
        self._lines = row is not None and row.lines  # such a stream does begin with a JSON object
        self._held: list[bytes] = []
        self._size = 0
        self._blank = False  # nothing but white space yet
        self._line: bool | None = None  # is the first line an object of its own?
        self.refused = facts.status is not None and not 200 <= facts.status < 300
        kind = facts.headers.get("content-type", "").lower()
        self._html = kind.startswith("text/html")
        self._json = "json" in kind and "ndjson" not in kind and "jsonl" not in kind
        self.open = not (self.refused or self._html or self._json)

    def let_in(self, chunk: bytes) -> bytes:
        """What may pass now; an empty chunk while it is being looked at."""
        if self.open:
            return chunk
        self._held.append(chunk)
        self._size += len(chunk)
        if self.refused or self._html:
            if self._size >= BODY:
                raise self.error()
            return b""
        return self._look_at_json()

    def at_end(self) -> bytes:
        """The body ended: what may still pass."""
        if self.refused or self._html:
            raise self.error()
        body, self._held, self.open = b"".join(self._held), [], True
        if (said := _object(body)) is not None and _words(said):
            raise self.error(body)
        return body

    def no_stream(self) -> ProviderError:
        """For a body that was one JSON object, and nothing that the pipe could read."""
        return ProviderError(_NO_STREAM, status=self._facts.status, provider=self._provider)

    def error(self, body: bytes | None = None) -> ProviderError:
        """The refusal, from as much of the body as was read."""
        body = b"".join(self._held) if body is None else body
        return refusal(self._facts, body, provider=self._provider)

    def _look_at_json(self) -> bytes:
        """Hold an object that may be the whole body; anything else was a stream after all."""
        chunk = self._held[-1]
        if self._line is None and (self._size == len(chunk) or b"\n" in chunk or self._blank):
            self._look_at_line(b"".join(self._held))
        elif self._line and chunk.strip():
            self.open = True  # a whole object on the first line, and more behind it
        if not self.open and self._size <= WHOLE:
            return b""
        body, self._held, self.open = b"".join(self._held), [], True
        return body

    def _look_at_line(self, head: bytes) -> None:
        start = head.lstrip()
        self._blank = not start
        if self._blank:
            self._held.clear()  # white space before JSON says nothing
        if start and (start[:1] != b"{" or self._lines):
            self.open = True  # an array is a stream, and text was never JSON
        line, ended, more = start.partition(b"\n")
        if ended:
            self._line = _object(line) is not None
            self.open |= self._line and bool(more.strip())


def refusal(facts: Facts, body: bytes, *, provider: str = "") -> ProviderError:
    """What a server said instead of streaming: its own message, its code, and whether to retry.

    >>> error = refusal(Facts(status=429), b'{"error":{"message":"Slow down","type":"rate_limit"}}')
    >>> error.message, error.code, error.status, error.retryable
    ('Slow down', 'rate_limit', 429, True)
    """
    body = facts.redacted_body(body)  # before anything is cut: half a key is no key to a redactor
    said = _object(body)
    code = (_code(said) if said else None) or _code_of_headers(facts.headers)
    return ProviderError(
        _words(said or {}) or _in_our_words(facts, body),
        code=code,
        status=facts.status,
        retryable=_retryable(facts, code),
        retry_after=retry_after(facts.headers, said),
        provider=provider,
        excerpt=shorten(clean(body[:400].decode("utf-8", "replace")), 200),
    )


def retry_after(headers: Mapping[str, str], said: Any = None) -> float | None:
    """How many seconds the server asks to wait, if it says so in any of the usual ways.

    >>> retry_after({"retry-after-ms": "1500"}), retry_after({"retry-after": "7"}), retry_after({})
    (1.5, 7.0, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if (seconds := _seconds(headers.get(name, ""))) is not None:
            return seconds * unit
    if date := headers.get("retry-after"):
        try:
            return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return None
    words = (word for row in PROVIDERS.values() for word in _at(said, row.refusals.delay))
    return next((_seconds(word.removesuffix("s")) for word in words), None)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _at(said: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The texts at a path of an object; ``*`` is each item of a list."""
    if isinstance(said, str):
        if not path:
            yield said
    elif path and isinstance(said, list) and path[0] == "*":
        for item in said:
            yield from _at(item, path[1:])
    elif path and isinstance(said, dict):
        yield from _at(said.get(path[0]), path[1:])


def _retryable(facts: Facts, code: str | None) -> bool:
    status = facts.status or 0
    if (word := facts.headers.get("x-should-retry", "").lower()) in ("true", "false"):
        return word == "true" and status != _KEY_REFUSED
    final = any(code in row.refusals.final for row in PROVIDERS.values())
    return not final and (status in _TRY_AGAIN or (status >= 500 and status != 501))


# --- the words of a body --------------------------------------------------------------------------


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 1:  # a stream that is an array wraps its refusal
        value = value[0]
    return value if isinstance(value, dict) else None


def _words(said: dict[str, Any]) -> str | None:
    """The message of an error, wherever it stands; None if this is no error."""
    for key in ("error", "errors", "detail", "message", "msg"):
        value = said.get(key)
        if isinstance(value, list):
            value = next(iter(value), None)
        if isinstance(value, dict):
            value = _words(value)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _code(said: dict[str, Any]) -> str | None:
    error = said.get("error")
    error = error if isinstance(error, dict) else said
    fields = ("status", "code", "type", *(row.refusals.code_field for row in PROVIDERS.values()))
    named = [error.get(field) for field in fields]
    word = next((n for n in named if isinstance(n, str) and n), None)
    return word or next((str(n) for n in named if isinstance(n, int)), None)


def _code_of_headers(headers: Mapping[str, str]) -> str | None:
    names = (row.refusals.code_header for row in PROVIDERS.values())
    return next((code for n in names if (code := headers.get(n, "").partition(":")[0])), None)


def _in_our_words(facts: Facts, body: bytes) -> str:
    status = facts.status or 0
    if 300 <= status < 400:
        location = facts.headers.get("location")
        where = shorten(clean(facts.redacted(bare_url(location) or "elsewhere")), 120)
        return f"HTTP {status}: a redirect to {where}, which was not followed"
    name = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    text = shorten(clean(" ".join(body[:800].decode("utf-8", "replace").split())), 200)
    return f"HTTP {status} {name}".rstrip() + (f": {text}" if text else ", without a body")
