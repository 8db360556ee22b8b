"""Plain values come in; JSON that is safe in any page, and server-sent events, go out.

Rule: no byte of a payload can end a script element, start a tag or break a line: ``<``, ``>``, ``&``,
U+2028 and U+2029 are written as escapes. In JSON they occur inside strings only, so replacing the
bytes is exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["SSE_HEADERS", "event_bytes", "safe_json", "stream_bytes"]

SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "connection": "keep-alive",
    "x-accel-buffering": "no",  # nginx would collect the stream before passing it on
    "x-content-type-options": "nosniff",
}

_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def safe_json(value: Any) -> bytes:
    r"""``value`` as one line of JSON that is harmless in HTML and in scripts.

    >>> safe_json({"text": "</script>"})
    b'{"text":"\\u003c/script\\u003e"}'
    """
    return escaped(_write(value).encode("utf-8", "replace"))


def escaped(line: bytes) -> bytes:
    """JSON that was written elsewhere, made harmless."""
    for raw, escape in _ESCAPES:
        if raw in line:
            line = line.replace(raw, escape)
    return line


def event_bytes(payload: bytes, id: str | None = None) -> bytes:
    """One server-sent event; ``id`` is the position that a reader may resume after."""
    head = b"" if id is None else b"id: " + id.encode() + b"\n"
    return head + b"data: " + payload + b"\n\n"


def stream_bytes(payloads: Iterable[bytes]) -> bytes:
    """Several events, without ids."""
    return b"".join([b"data: " + payload + b"\n\n" for payload in payloads])
