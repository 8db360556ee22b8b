"""Gemini generateContent, served: events in, chunks out.

    chunk{parts: text | thought | picture}* -> chunk{parts: calls, finishReason, usageMetadata}

A call is one part, and clients run it when they hear it. With ``release="end"`` all calls are therefore in
the chunk that says the end. Official clients take each line that is neither data nor blank for an error: a
keep-alive is a blank line, and no event has a name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from ...encoding.server import Body, Server, ServerOptions, Serving
from ...events import (
    Failed,
    Finish,
    Media,
    ProviderToolResult,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Usage,
)
from ...text.written import in_base64
from .encoder import SIGNATURE, part_of

__all__ = ["SERVER", "GeminiServer"]

REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",  # the wire has no word for it
    "pause": "STOP",  # … nor for this
    "other": "STOP",  # … nor for this, unless it is its own: OTHER is an answer that failed
}
# The status of an error, by that of HTTP.
ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# What an error in the midst of a stream is told as: clients raise for such a number alone.
AGAIN, FINAL = 503, 500


class GeminiServer(Server):
    """One generateContent stream."""

    name = "gemini"
    one_by_one = True  # a call is told when it is whole: in the order in which they began

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        super().__init__(**options)
        self._last: list[Body] = []  # parts that are told with the end

    @classmethod
    def gives_back(cls, body: Body) -> bool:
        """Many clients keep no thoughts; all of them keep their calls, by whose ids the rest is found."""
        return False

    def opening(self) -> Iterable[bytes]:
        return ()

    def keep_alive(self) -> bytes:
        return b"\n\n"

    def text(self, event: TextDelta) -> Iterable[bytes]:
        return self._piece(event, {})

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        return self._piece(event, {"thought": True})

    def _piece(self, event: TextDelta | ReasoningDelta, flags: Body) -> Iterable[bytes]:
        said = {"text": event.text, **flags, **self._own(event.echo)}
        return (self._chunk([said]),) if event.text or SIGNATURE in said else ()

    def media(self, event: Media) -> Iterable[bytes] | None:
        if event.data is None:
            return None
        data = {"mimeType": event.mime_type, "data": in_base64(event.data)}
        return (self._chunk([{"inlineData": data}]),)

    # --- calls ------------------------------------------------------------------------------------

    def call_opened(self, call: Serving) -> Iterable[bytes]:
        return ()  # it is told when it is whole

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        return ()

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        assert call.made is not None  # only what is whole is closed
        made = call.made
        part = part_of(made, call.id, call.name, self._own(made.echo))
        if not self.over:
            return (self._chunk([part]),)
        self._last.append(part)
        return ()

    def hosted_call(self, call: ToolCall) -> Iterable[bytes]:
        id = call.id if call.provenance.id_source == "natural" else None
        return (self._chunk([part_of(call, id, call.name, self._own(call.echo))]),)

    def hosted_result(self, result: ProviderToolResult) -> Iterable[bytes]:
        return (self._chunk([result.echo]),) if isinstance(result.echo, dict) else ()

    def adopted(self, said: list[Body], calls: dict[str, Serving]) -> None:
        """Parts have no places."""

    # --- the end ----------------------------------------------------------------------------------

    def finished(self, finish: Finish) -> Iterable[bytes]:
        reason = REASONS[finish.reason]
        if finish.reason == "other" and self.source == self.name and finish.raw_reason:
            reason = finish.raw_reason
        counts = {} if self.usage is None else {"usageMetadata": _counts(self.usage)}
        yield self._chunk(self._last or [{"text": ""}], {"finishReason": reason}, counts)

    def failed(self, failure: Failed) -> Iterable[bytes]:
        number = AGAIN if failure.retryable else FINAL
        return (self.say(self.error_body(number, failure.error, failure.code)),)

    def error_body(self, status: int, message: str, code: str | None) -> Body:
        word = ERRORS.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
        own = code if code in ERRORS.values() else word
        return {"error": {"code": status, "message": message, "status": own}}

    def gathered(self, said: list[Body]) -> Body:
        parts: list[Body] = []
        for part in (p for one in said for p in one["candidates"][0]["content"]["parts"]):
            if parts and _goes_on(parts[-1], part):
                parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + part["text"]}
            elif part != {"text": ""}:
                parts.append(part)
        candidate = {**said[-1]["candidates"][0], "content": {"role": "model", "parts": parts}}
        return {**said[-1], "candidates": [candidate]}

    def _own(self, echo: Any) -> Body:
        """What the provider itself wants back."""
        return dict(echo) if self.source == self.name and isinstance(echo, dict) else {}

    def _chunk(
        self, parts: list[Body], candidate: Body | None = None, more: Body | None = None
    ) -> bytes:
        content = {"role": "model", "parts": parts}
        return self.say({
            "candidates": [{"content": content, **(candidate or {}), "index": 0}], **(more or {}),
            "modelVersion": self.model, "responseId": self.response_id,
        })  # fmt: skip


def _goes_on(before: Body, part: Body) -> bool:
    """Is it more of the same text? A signature ends one."""
    texts = "text" in before and "text" in part
    return texts and before.get("thought") == part.get("thought") and SIGNATURE not in before


def _counts(usage: Usage) -> Body:
    """Thoughts are counted apart here."""
    thoughts, output = usage.reasoning or 0, usage.output or 0
    return {
        "promptTokenCount": usage.input or 0, "candidatesTokenCount": max(0, output - thoughts),
        "thoughtsTokenCount": thoughts, "cachedContentTokenCount": usage.cached_input or 0,
        "totalTokenCount": (usage.input or 0) + output,
    }  # fmt: skip


SERVER = GeminiServer
