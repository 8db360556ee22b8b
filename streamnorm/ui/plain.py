"""Events come in; the same events go out as server-sent events, one JSON object each.

Rule: the form is ours and documented in ``docs/ui.md``: ``data:`` is what ``event_to_json`` writes,
told apart by ``kind``. Neighbouring pieces of one part are merged. What only a provider or a
developer can use (``echo``, raw usage, unrecognized payloads) stays on the server unless
``full=True``. A question about a call that this stream did not tell is told with the call before it: its
page may have lost it. The last event is ``{"kind":"end"}``: after it a reader need not connect again.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from itertools import groupby
from typing import Any, get_args

import msgspec

from ..events import (
    Event,
    Failed,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Unrecognized,
    event_to_dict,
)
from ..fold import Approval, CallBroken, CallWhole, Denied, Fold, Move, Said, output_of
from ..text.written import safe_json
from ..tools import ToolResult
from ._encoder import INTERNAL, SSE_HEADERS, ErrorText, Item, as_item, plain_error
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
    b'data: {"kind":"text_delta","text":"Hello","part":0,"choice":0}\\n\\n'
    >>> encoder.feed(Finish("stop")) + encoder.close()
    b'data: {"kind":"finish","reason":"stop","raw_reason":null}\\n\\ndata: {"kind":"end"}\\n\\n'
    """

    def __init__(self, *, full: bool = False, error_text: ErrorText = plain_error) -> None:
        super().__init__(Fold(echo=False), error_text)
        self._full = full

    def payloads(self, *items: Item) -> list[bytes]:
        """The payloads of these items, each for one event of the stream."""
        if self._closed:
            return []
        events = [as_item(item) for item in items]
        moves = self._fold.feed(events)  # it knows what was told, and what is open
        told = (self._plain(event) for event in _merged(_with_calls(events, moves)))
        return [safe_json(plain) for plain in told if plain is not None]

    def closing(self, failed: Failed | None = None) -> list[bytes]:
        """The last payloads: what is open is broken, and the end is told."""
        if self._closed:
            return []
        self._closed = True
        broken = [move.event for move in self._fold.close() if isinstance(move, CallBroken)]
        failed = failed or self._cut()
        last = [*broken, *([failed] if failed else [])]
        told = [plain for item in last if (plain := self._plain(item)) is not None]
        return [safe_json(plain) for plain in (*told, END)]

    def _plain(self, item: Any) -> dict[str, Any] | None:
        if isinstance(item, Unrecognized) and not self._full:
            return None
        if isinstance(item, Failed) and not self._full:
            item = msgspec.structs.replace(item, error=self._error_text(item))
        plain = _as_plain(item)
        if plain is not None and not self._full:
            plain.pop("echo", None)
            if plain["kind"] == "usage":
                plain.pop("raw", None)
        return plain


def encode(events: AsyncIterable[Item], *, within: float = WITHIN, **options: Any) -> Encoded:
    """These events as bytes to send; see ``Encoder``."""
    return Encoded(events, Encoder(**options), within)


def lost(payloads: Iterable[bytes], why: str = "The answer was cut off.") -> list[bytes]:
    """How to end a stream whose producer has died, given all payloads that it left."""
    last = b""
    for payload in payloads:
        last = payload
    if last == safe_json(END):
        return []
    failed = Failed("truncated", why, code=INTERNAL)
    return [safe_json(event_to_dict(failed)), safe_json(END)]


_EVENTS = frozenset(get_args(Event))


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
    if isinstance(item, ToolCallDelta):
        return ToolCallDelta, item.call
    if isinstance(item, TextDelta | ReasoningDelta) and item.echo is msgspec.UNSET:
        return type(item), item.part, item.choice
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
    return event_to_dict(item) if type(item) in _EVENTS else None


def _of_call(kind: str, item: Any, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "call": item.call.call, "id": item.call.id, **fields}
