"""Chat Completions, served: events in, chunks out.

chunk{delta.role} -> chunk{delta.*}* -> chunk{finish_reason} -> chunk{usage} -> [DONE]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...encoding.server import Server, Serving
from ...events import Failed, Finish, Media, ReasoningDelta, TextDelta
from ...text.written import data_uri, in_base64, sse

__all__ = ["SERVER", "ChatServer"]

REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",  # unless the refusal itself was told
    "pause": "stop",  # the wire has no word for it
    "other": "stop",  # … nor for this, unless it is its own
}


class ChatServer(Server):
    """One Chat Completions stream."""

    name = "openai_chat"

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self._count = 0
        self._refused = False

    def opening(self) -> Iterable[bytes]:
        return (self._chunk({"role": "assistant", "content": ""}),)

    def text(self, event: TextDelta) -> Iterable[bytes]:
        if not event.text:
            return ()
        refused = isinstance(event.echo, dict) and event.echo.get("type") == "refusal"
        self._refused |= refused
        return (self._chunk({"refusal" if refused else "content": event.text}),)

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        delta: dict[str, Any] = {"reasoning_content": event.text} if event.text else {}
        if self.source == self.name and isinstance(event.echo, dict):
            delta |= event.echo
        return (self._chunk(delta),) if delta else ()

    def media(self, event: Media) -> Iterable[bytes] | None:
        """A picture as vendors say it, beside the content; a voice piece by piece."""
        own = event.echo if self.source == self.name and isinstance(event.echo, dict) else {}
        if event.mime_type.startswith("audio/") and event.url is None:
            said = dict(own.get("audio") or ({} if own else {"id": f"audio_{event.part}"}))
            if event.data:
                said["data"] = in_base64(event.data)
            return (self._chunk({"audio": said}),)
        url = event.url if event.data is None else data_uri(event.data, event.mime_type)
        if url is None or not event.mime_type.startswith("image/"):
            return None
        image = {"type": "image_url", "image_url": {"url": url}, **own.get("images", {})}
        return (self._chunk({"images": [image]}),)

    def call_opened(self, id: str, name: str, family: str) -> tuple[int, Iterable[bytes]]:
        place, self._count = self._count, self._count + 1
        entry = {
            "index": place, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""},
        }  # fmt: skip
        return place, (self._chunk({"tool_calls": [entry]}),)

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        entry = {"index": call.place, "function": {"arguments": text}}
        return (self._chunk({"tool_calls": [entry]}),)

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        return ()  # the end closes them all

    def finished(self, finish: Finish) -> Iterable[bytes]:
        reason = "stop" if self._refused else REASONS[finish.reason]
        if finish.reason == "other" and self.source == self.name and finish.raw_reason:
            reason = finish.raw_reason
        yield self._chunk({}, reason)
        if self.usage is not None:
            counts = self.usage.input or 0, self.usage.output or 0
            usage = {
                "prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts),
            }  # fmt: skip
            yield sse({**self._envelope(), "choices": [], "usage": usage})
        yield sse("[DONE]")

    def failed(self, message: str, failure: Failed | None) -> Iterable[bytes]:
        code = failure.code if failure is not None else None
        return (sse({"error": {"message": message, "type": code or "server_error", "code": code}}),)

    def _envelope(self) -> dict[str, Any]:
        return {
            "id": self.response_id, "object": "chat.completion.chunk", "created": 0,
            "model": self.model,
        }  # fmt: skip

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return sse({**self._envelope(), "choices": [choice]})


SERVER = ChatServer
