"""Events come in; the same events go out as server-sent events, one JSON object each.

Rule: the form is ours and documented in ``docs/ui.md``: ``data:`` is what ``event_to_json`` writes,
told apart by ``kind``. Neighbouring pieces of one part are merged. What only a provider or a
developer can use (``echo``, raw usage, unrecognized payloads) stays on the server unless
``full=True``. A question about a call that this stream did not tell is told with the call before it: its
page may have lost it. The last event is ``{"kind":"end"}``: after it a reader need not connect again.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from itertools import groupby
from typing import Any, get_args

import msgspec
from msgspec import UNSET

from ..events import (
    Event,
    Failed,
    Media,
    ReasoningDelta,
    RecorderFailed,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Unrecognized,
    event_to_dict,
)
from ..fold import Approval, CallBroken, CallWhole, Denied, Fold, Move, Said, output_of
from ..text.media import is_web
from ..text.written import json_bytes, safe_json, safe_struct
from ..tools import ToolResult
from ._encoder import (
    CUT_OFF,
    INTERNAL,
    PIECES,
    SSE_HEADERS,
    UNAVAILABLE,
    ErrorText,
    Item,
    as_item,
    plain_error,
)
from ._encoder import Encoder as _Encoder
from ._pace import WITHIN, Encoded

__all__ = ["HEADERS", "Encoder", "encode", "lost"]

HEADERS = dict(SSE_HEADERS)
END = {"kind": "end"}


class Encoder(_Encoder):
    """Our own events for a page.

    >>> from streamnorm import Finish, TextDelta
    >>> encoder = Encoder()
    >>> encoder.feed(TextDelta("Hel"), TextDelta("lo"))
    b'data: {"kind":"text_delta","text":"Hello","part":0,"choice":0,"agent":null}\\n\\n'
    >>> encoder.feed(Finish("stop")) + encoder.close()
    b'data: {"kind":"finish","reason":"stop","raw_reason":null}\\n\\ndata: {"kind":"end"}\\n\\n'
    """

    def __init__(self, *, full: bool = False, error_text: ErrorText = plain_error) -> None:
        super().__init__(Fold(echo=False), error_text)
        self._full = full

    def _lines_of(self, items: tuple[Item, ...]) -> list[bytes]:
        if self._closed:
            return []
        if len(items) == 1:  # most often one piece of a part that is open
            item = items[0]
            if type(item) in PIECES and (part := self._fold.going(item)) is not None:
                part.add(item.text)  # type: ignore[union-attr]
                return [safe_struct(item)]  # type: ignore[arg-type]
            if type(item) in _WRITTEN and not self._full:
                self._fold.feed(items)  # type: ignore[arg-type]
                return [_WRITTEN[type(item)](item)]
        events: list[Any] = [i if type(i) in _EVENTS else as_item(i) for i in items]
        moves = self._fold.feed(events)  # it knows what was told, and what is open
        if Approval in map(type, events):
            events = list(_with_calls(events, moves))
        return self._lines(events if len(events) == 1 else _merged(events))

    def closing(self, failed: Failed | None = None) -> list[bytes]:
        """The last payloads: what is open is broken, and the end is told."""
        if self._closed:
            return []
        self._closed = True
        broken = [move.event for move in self._fold.close() if isinstance(move, CallBroken)]
        failed = failed or self._cut()
        return [*self._lines([*broken, *([failed] if failed else [])]), safe_json(END)]

    def _lines(self, items: Iterable[Any]) -> list[bytes]:
        return [line for item in items if (line := self._line(item)) is not None]

    def _line(self, item: Any) -> bytes | None:
        """What a page may read of this item."""
        if self._full:
            plain = _as_plain(item)
            return None if plain is None else safe_json(plain)
        write = _WRITTEN.get(type(item))
        if write is not None:
            return write(item)
        if isinstance(item, Unrecognized):
            return None
        if isinstance(item, Failed):
            item = msgspec.structs.replace(item, error=self._error_text(item))
        plain = _as_plain(item)
        if plain is None:
            return None
        plain.pop("echo", None)
        if plain["kind"] == "usage":
            plain.pop("raw", None)
        return safe_json(plain)


def _said(event: Any) -> bytes:
    bare = event if event.echo is UNSET else msgspec.structs.replace(event, echo=UNSET)
    return safe_struct(bare)


def _call(call: ToolCall) -> bytes:
    """The arguments are written apart, as they may hold what JSON cannot say."""
    arguments: Any = msgspec.Raw(json_bytes(call.arguments))
    try:
        return safe_struct(msgspec.structs.replace(call, arguments=arguments, echo=UNSET))
    except TypeError:  # halves of characters: no struct can be written then
        return safe_json({k: v for k, v in event_to_dict(call).items() if k != "echo"})


def _medium(event: Media) -> bytes:
    """An address that is none of the web stays on the server."""
    url = event.url if event.url is not None and is_web(event.url) else None
    return _said(msgspec.structs.replace(event, url=url))


# What most of a stream is made of: structs that are written without a plain copy of them.
_WRITTEN: dict[type, Callable[[Any], bytes]] = {
    TextDelta: _said,
    ReasoningDelta: _said,
    Media: _medium,
    ToolCallStart: safe_struct,
    ToolCallDelta: safe_struct,
    ToolCall: _call,
}


def encode(events: AsyncIterable[Item], *, within: float = WITHIN, **options: Any) -> Encoded:
    """These events as bytes to send; see ``Encoder``."""
    return Encoded(events, Encoder(**options), within)


def lost(payloads: Iterable[bytes], why: str = CUT_OFF) -> list[bytes]:
    """How to end a stream whose producer has died, given all payloads that it left."""
    last = b""
    for payload in payloads:
        last = payload
    if last == safe_json(END):
        return []
    failed = Failed("truncated", why, code=INTERNAL)
    if why == UNAVAILABLE:
        failed = Failed("transport", why, retryable=True, code="unavailable")
    return [safe_json(event_to_dict(failed)), safe_json(END)]


_EVENTS = frozenset(get_args(Event))
_TOLD = _EVENTS - {RecorderFailed}  # which names a file of the server's


def _with_calls(items: list[Any], moves: Iterable[Move]) -> Iterable[Any]:
    """The items, and before each question the call that the fold had to add for it."""
    heard = {id(item) for item in items}
    added = {id(m.event) for m in moves if isinstance(m, CallWhole)} - heard
    for item in items:
        if isinstance(item, Approval) and id(item.call) in added:
            added.discard(id(item.call))
            yield item.call
        yield item


def _merged(items: Iterable[Item]) -> Iterable[Item]:
    """Neighbouring pieces of one part as one; a piece that brings an echo stays alone."""
    for part, group in groupby(items, _part):
        first, *rest = group
        yield first if not rest or part is None else _joined(first, rest)
        if part is None:
            yield from rest


def _part(item: Any) -> Any:
    kind = type(item)
    if kind is ToolCallDelta:
        return kind, item.call
    if (kind is TextDelta or kind is ReasoningDelta) and item.echo is UNSET:
        part = kind, item.part, item.choice
        return part if item.agent is None else (part, item.agent)
    return None


def _joined(first: Any, rest: list[Any]) -> Any:
    text = "".join([first.text, *(piece.text for piece in rest)])
    return msgspec.structs.replace(first, text=text)


def _as_plain(item: Any) -> dict[str, Any] | None:
    if isinstance(item, ToolResult):
        output = output_of(item)
        return _of_call("client_tool_result", item, output=output, is_error=item.is_error)
    if isinstance(item, Approval):
        return {**_of_call("approval", item, reason=item.reason), "approval": item.id}
    if isinstance(item, Denied):
        return _of_call("denied", item, reason=item.reason)
    if isinstance(item, Said):
        return {"kind": "said", "text": item.text, "to": item.to}
    return event_to_dict(item) if type(item) in _TOLD else None


def _of_call(kind: str, item: Any, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "call": item.call.call, "id": item.call.id, **fields}
