"""Values come in; HTTP answers go out that a browser cannot misread.

Rule: JSON never holds a character that HTML or a script would take for its own, every answer says
how it may be used, and an error is one clear sentence. No trace of a program leaves the server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any

from starlette.responses import Response, StreamingResponse

from ..errors import StreamnormError
from ..text.written import safe_json

__all__ = ["HEADERS", "LINES", "MISTAKE", "answer", "json_answer", "problem", "told_in_lines"]

LINES = "application/x-ndjson"

MISTAKE = "the server made a mistake; its log says more"
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


def answer(value: Any, status: int = 200) -> Response:
    """Any plain value as JSON."""
    return json_answer(safe_json(value), status)


def json_answer(written: bytes, status: int = 200) -> Response:
    """What was written as JSON already."""
    return Response(written, status, media_type="application/json")


def problem(status: int, sentence: str) -> Response:
    """What went wrong, and what to do, in one sentence."""
    return answer({"error": {"message": sentence}}, status)


def told_in_lines(steps: AsyncGenerator[int | Future[bytes], None], size: int) -> Response:
    """How far it is, line by line, and in the last one the answer or what went wrong:
    ``{"done": 17, "of": 99}`` … ``{"answer": …}`` or ``{"error": {"message": …}}``. Whoever closes the
    connection before that ends the work."""
    return StreamingResponse(_lines(steps, size), media_type=LINES)


async def _lines(
    steps: AsyncGenerator[int | Future[bytes], None], size: int
) -> AsyncIterator[bytes]:
    async with aclosing(steps):
        try:
            async for step in steps:
                if isinstance(step, Future):
                    yield b'{"answer":' + step.result() + b"}\n"
                else:
                    yield safe_json({"done": step, "of": size}) + b"\n"
        except StreamnormError as error:
            yield safe_json({"error": {"message": str(error)}}) + b"\n"
        except Exception:
            yield safe_json({"error": {"message": MISTAKE}}) + b"\n"
            raise
