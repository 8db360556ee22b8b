"""Values come in; HTTP answers go out that a browser cannot misread.

Rule: JSON never holds a character that HTML or a script would take for its own, every answer says
how it may be used, and an error is one clear sentence. No trace of a program leaves the server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from .log import Numbered

__all__ = ["HEADERS", "Sse", "answer", "problem", "safe_json"]

HEADERS = {
    "content-security-policy": "default-src 'self'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-cache",
}
# In JSON these stand inside strings only, so an escape says the same.
_ESCAPES = {
    "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029",
}  # fmt: skip
_TABLE = str.maketrans(_ESCAPES)


def safe_json(line: bytes) -> str:
    r"""A line of JSON that is safe wherever it is put.

    >>> safe_json(b'{"text":"<script>"}')
    '{"text":"\\u003cscript\\u003e"}'
    """
    return line.decode().translate(_TABLE)


def answer(value: Any, status: int = 200) -> Response:
    """Any plain value as JSON."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return Response(safe_json(body), status, media_type="application/json")


def problem(status: int, sentence: str) -> Response:
    """What went wrong, and what to do, in one sentence."""
    return answer({"error": sentence}, status)


class Sse(StreamingResponse):
    """Numbered lines of JSON as server-sent events; the number is the event's id."""

    media_type = "text/event-stream"

    def __init__(self, entries: AsyncIterator[Numbered]) -> None:
        super().__init__(_told(entries), headers={"x-accel-buffering": "no"})


async def _told(entries: AsyncIterator[Numbered]) -> AsyncIterator[str]:
    yield ": here\n\n"  # so that the reader knows at once that it is connected
    async for number, line in entries:
        yield f"id: {number}\ndata: {line}\n\n"
