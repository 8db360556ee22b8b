"""Values come in; HTTP answers go out that a browser cannot misread.

Rule: JSON never holds a character that HTML or a script would take for its own, every answer says
how it may be used, and an error is one clear sentence. No trace of a program leaves the server.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ..text.written import safe_json

__all__ = ["HEADERS", "answer", "problem"]

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
    return Response(safe_json(value), status, media_type="application/json")


def problem(status: int, sentence: str) -> Response:
    """What went wrong, and what to do, in one sentence."""
    return answer({"error": {"message": sentence}}, status)
