"""What a server said instead of streaming comes in; a ``ProviderError`` with its own words goes out.

Rule: the words are the server's, wherever they stand in the body; how long to wait and whether asking
again may help are told by status, headers and code. No secret that is named is in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from .errors import ProviderError
from .providers import PROVIDERS
from .text.shown import clean, shorten

__all__ = ["BODY", "object_in", "refusal", "retry_after", "words_in"]

BODY = 64 * 1024  # bytes of an error's body that are read
_TRY_AGAIN = {408, 409, 425, 429}
_KEY_REFUSED = 401  # and so it will be again, whatever else is said


def refusal(
    body: bytes,
    *,
    status: int | None,
    headers: Mapping[str, str],
    provider: str = "",
    redacted: Callable[[str], str] = str,
) -> ProviderError:
    """The error that an answer of this status, with these headers and this body, is.

    >>> body = b'{"error":{"message":"Slow down","type":"rate_limit"}}'
    >>> error = refusal(body, status=429, headers={})
    >>> error.message, error.code, error.status, error.retryable
    ('Slow down', 'rate_limit', 429, True)
    """
    said = object_in(body)
    code = (_code(said) if said else None) or _code_of_headers(headers)
    return ProviderError(
        words_in(said or {}) or _in_our_words(status or 0, headers, body, redacted),
        code=code,
        status=status,
        retryable=_retryable(status or 0, headers, code),
        retry_after=retry_after(headers, said),
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


def _retryable(status: int, headers: Mapping[str, str], code: str | None) -> bool:
    if (word := headers.get("x-should-retry", "").lower()) in ("true", "false"):
        return word == "true" and status != _KEY_REFUSED
    final = any(code in row.refusals.final for row in PROVIDERS.values())
    return not final and (status in _TRY_AGAIN or (status >= 500 and status != 501))


# --- the words of a body --------------------------------------------------------------------------


def object_in(body: bytes) -> dict[str, Any] | None:
    """The object that a body is."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 1:  # a stream that is an array wraps its refusal
        value = value[0]
    return value if isinstance(value, dict) else None


def words_in(said: dict[str, Any]) -> str | None:
    """The message of an error, wherever it stands; None if this is no error."""
    for key in ("error", "errors", "detail", "message", "msg"):
        value = said.get(key)
        if isinstance(value, list):
            value = next(iter(value), None)
        if isinstance(value, dict):
            value = words_in(value)
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


def _in_our_words(
    status: int, headers: Mapping[str, str], body: bytes, redacted: Callable[[str], str]
) -> str:
    if 300 <= status < 400:
        where = shorten(clean(redacted(headers.get("location", "elsewhere"))), 120)
        return f"HTTP {status}: a redirect to {where}, which was not followed"
    name = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    text = shorten(clean(" ".join(body[:800].decode("utf-8", "replace").split())), 200)
    return f"HTTP {status} {name}".rstrip() + (f": {text}" if text else ", without a body")
