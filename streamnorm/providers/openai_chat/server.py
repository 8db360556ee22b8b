"""Chat Completions, served: events in, chunks out.

chunk{delta.role} -> chunk{delta.*}* -> chunk{finish_reason} -> chunk{usage} -> [DONE]

Nothing closes a call here, and some clients run it as soon as its text is JSON. With ``release="end"`` the
piece that makes it so, and the calls that begin after it, are told with the end: in order, as others
take a call for whole when the next one begins.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Unpack

from ...encoding.server import Body, Server, ServerOptions, Serving
from ...events import Failed, Finish, Media, ReasoningDelta, TextDelta, Usage
from ...text.balance import Balance
from ...text.written import data_uri, in_base64, sse

__all__ = ["SERVER", "ChatServer", "error", "error_type"]

REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",  # unless the refusal itself was told
    "pause": "stop",  # the wire has no word for it
    "other": "stop",  # … nor for this, unless it is its own
}
# A call by its type, and where its input stands: JSON, or (True) plain text.
FORMS = {False: ("function", "arguments"), True: ("custom", "input")}
# The type of an error, by its status.
SERVER_ERROR = "server_error"
ERRORS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_type(status: int) -> str:
    """How this wire calls errors with such a status.

    >>> error_type(404), error_type(429), error_type(502)
    ('invalid_request_error', 'rate_limit_error', 'server_error')
    """
    return ERRORS.get(status, "invalid_request_error" if status < 500 else SERVER_ERROR)


def error(kind: str, message: str, code: str | None) -> Body:
    """An error as a body, or as the last chunk of a stream."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class ChatServer(Server):
    """One Chat Completions stream."""

    name = "openai_chat"
    takes_texts = True
    id_prefix = "chatcmpl-"
    one_by_one = True

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        super().__init__(**options)
        self._count = 0
        self._refused = False
        self._heard: dict[int, Balance] = {}  # how far the inputs of calls have come, by place
        self._late: list[bytes] = []  # what is told of calls with the end …
        self._later: set[int] = set()  # … and their places

    @classmethod
    def gives_back(cls, body: Body) -> bool:
        """Its messages have no place for what a client cannot read."""
        return False

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

    def call_opened(self, call: Serving) -> Iterable[bytes]:
        call.place, self._count = self._count, self._count + 1
        kind, field = FORMS[call.text]
        said = {"name": call.name, field: ""}
        entry = {"index": call.place, "id": call.id, "type": kind, kind: said}
        return self._now_or_late(call, entry, late=bool(self._late))

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        kind, field = FORMS[call.text]
        entry = {"index": call.place, kind: {field: text}}
        late = call.place in self._later or self._may_be_all(call)
        return self._now_or_late(call, entry, late=late)

    def _may_be_all(self, call: Serving) -> bool:
        """Can a client take what it would have heard by now for the whole input? What is no object is
        not looked at any closer: it may be a JSON value at any time."""
        heard = self._heard.setdefault(call.place, Balance())
        return not call.text and (heard.is_even(call.pieces) or heard.hopeless)

    def _now_or_late(self, call: Serving, entry: Body, *, late: bool) -> Iterable[bytes]:
        chunk = self._chunk({"tool_calls": [entry]})
        if not late or self.over or not self.releases_at_end:
            return (chunk,)
        self._late.append(chunk)
        self._later.add(call.place)
        return ()

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        return ()  # the end closes them all

    def adopted(self, said: list[Body], calls: dict[str, Serving]) -> None:
        self._count = 0
        self._heard.clear()
        self._late, self._later = [], set()  # whoever heard it from the provider heard all of it
        for entry in _entries(said):
            at, id = entry.get("index"), entry.get("id")
            if isinstance(at, int):
                self._count = max(self._count, at + 1)
                if id in calls:
                    calls[id].place = at

    def finished(self, finish: Finish) -> Iterable[bytes]:
        reason = "stop" if self._refused else REASONS[finish.reason]
        if finish.reason == "other" and self.source == self.name and finish.raw_reason:
            reason = finish.raw_reason
        yield from self._late
        yield self._chunk({}, reason)
        if self.usage is not None and self.tell_usage:
            usage = self._counts(self.usage)
            yield self.say({**self._envelope(), "choices": [], "usage": usage})
        yield sse("[DONE]")

    def failed(self, failure: Failed) -> Iterable[bytes]:
        return (self.say(error(failure.code or SERVER_ERROR, failure.error, failure.code)),)

    def gathered(self, said: list[Body]) -> Body:
        choices = [choice for payload in said for choice in payload["choices"]]
        deltas = [choice["delta"] for choice in choices]
        message: Body = {"role": "assistant", "content": None, "refusal": None}
        fields = {field: None for delta in deltas for field in delta if field != "role"}
        for field in fields:
            pieces = [delta[field] for delta in deltas if delta.get(field)]
            message[field] = GATHERED.get(field, _joined)(pieces)
        reason = choices[-1]["finish_reason"]
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        whole = {**self._envelope(), "object": "chat.completion", "choices": [choice]}
        return whole if self.usage is None else {**whole, "usage": self._counts(self.usage)}

    def error_body(self, status: int, message: str, code: str | None) -> Body:
        return error(error_type(status), message, code)

    def _counts(self, usage: Usage) -> Body:
        counts = usage.input or 0, usage.output or 0
        return {
            "prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts),
            "prompt_tokens_details": {"cached_tokens": usage.cached_input or 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        }  # fmt: skip

    def _envelope(self) -> dict[str, Any]:
        return {
            "id": self.response_id, "object": "chat.completion.chunk", "created": self.created,
            "model": self.model,
        }  # fmt: skip

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return self.say({**self._envelope(), "choices": [choice]})


def _entries(said: list[Body]) -> Iterator[Body]:
    """What chunks of anybody say of calls, as far as it has the right form."""
    for choice in _each(payload.get("choices") for payload in said):
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from _each([delta.get("tool_calls")])


def _each(lists: Iterable[Any]) -> Iterator[Body]:
    rows = (row for rows in lists if isinstance(rows, list) for row in rows)
    return (row for row in rows if isinstance(row, dict))


# --- a whole answer, field by field ---------------------------------------------------------------


def _joined(pieces: list[Any]) -> Any:
    """Texts and lists grow; anything else is what it was last said to be."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces) or None
    if all(isinstance(piece, list) for piece in pieces):
        return [each for piece in pieces for each in piece]
    return pieces[-1]


def _calls(pieces: list[list[Body]]) -> list[Body]:
    calls: dict[int, Body] = {}
    inputs: dict[int, list[str]] = {}
    for entry in (entry for piece in pieces for entry in piece):
        at = entry["index"]
        if "id" in entry:
            calls[at] = {key: value for key, value in entry.items() if key != "index"}
        else:
            inputs.setdefault(at, []).extend(t for f in FORMS.values() for t in _input(entry, *f))
    for at, call in calls.items():
        kind = call["type"]
        field = dict(FORMS.values())[kind]
        call[kind] = {**call[kind], field: "".join(inputs.get(at, ()))}
    return [*calls.values()]


def _input(entry: Body, kind: str, field: str) -> list[str]:
    return [entry[kind][field]] if kind in entry else []


def _voice(pieces: list[Body]) -> Body:
    voice: Body = {"id": "", "expires_at": 0, "transcript": ""}
    for piece in pieces:
        voice |= piece
    data = b"".join(base64.b64decode(piece.get("data") or "") for piece in pieces)
    return {**voice, "data": in_base64(data)}


GATHERED: Mapping[str, Callable[[list[Any]], Any]] = {"tool_calls": _calls, "audio": _voice}
SERVER = ChatServer
