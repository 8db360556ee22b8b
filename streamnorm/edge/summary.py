"""The events of a stream come in as they are heard; what they amount to goes out, as plain values.

Rule: the saying itself is not kept. Counting happens per batch of events, not per event.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, get_args

from ..events import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    Provenance,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    event_to_dict,
)

__all__ = ["PIECES", "Tally"]

PIECES = frozenset((TextDelta, ReasoningDelta, ToolCallDelta))  # of which only the number counts
_KINDS = get_args(Event)
_CALLS = frozenset((ToolCall, BrokenToolCall))
_ENDS = frozenset((Finish, Failed))
_FEW = 8  # events that are counted one by one; of more, all at once
_ROW = ("call", "id", "name", "family", "runs_on", "choice", "provenance", "broken")


class Tally:
    """What a stream has said so far, without the saying itself."""

    __slots__ = (
        "_born", "_first", "_rows", "_start", "_usage", "bytes", "chunks", "counts", "end", "last",
    )  # fmt: skip

    def __init__(self) -> None:
        self.chunks = 0
        self.bytes = 0
        self.end: Finish | Failed | None = None
        self.counts: Counter[type[Event]] = Counter(_NONE)  # every kind is in it
        self._rows: list[tuple[Any, ...]] = []  # of the calls that have ended: see _ROW
        self._start = _UNKNOWN
        self._usage: Usage | None = None
        self._born = time.monotonic()
        self._first: float | None = None
        self.last = self._born

    @property
    def events(self) -> int:
        """How many were heard."""
        return self.counts.total()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Of each call that has ended, what is known of it but what it says."""
        return [dict(zip(_ROW, row, strict=False)) for row in self._rows]

    @property
    def broken(self) -> list[dict[str, Any]]:
        """The rows of the calls that did not end whole."""
        return [row for row in self.calls if "broken" in row]

    def hear(self, events: list[Event]) -> None:
        """These were told, and in this order."""
        self.last = time.monotonic()
        if self._first is None:
            self._first = self.last
        counts = self.counts
        if len(events) <= _FEW:
            for event in events:
                kind = type(event)
                counts[kind] += 1
                if kind in _CALLS:
                    self._rows.append(_row(event))
        else:
            before = counts[ToolCall] + counts[BrokenToolCall]
            counts.update(map(type, events))  # in C
            if counts[ToolCall] + counts[BrokenToolCall] != before:
                self._rows += [_row(event) for event in events if type(event) in _CALLS]
        if type(first := events[0]) is StreamStart:
            self._start = first
        if type(last := events[-1]) in _ENDS:
            self.end = last  # type: ignore[assignment]
            self._usage = next((e for e in events[-2:] if isinstance(e, Usage)), None)

    def summary(self) -> dict[str, Any]:
        """All of it."""
        end = event_to_dict(self.end) if self.end else {}
        return {
            "model": self._start.model,
            "response_id": self._start.response_id,
            "calls": [_plain_row(row) for row in self.calls],
            "counts": {kind.kind: n for kind, n in self.counts.items() if n},
            "end": end.pop("kind", None),
            "reason": end.pop("reason", None),
            **{k: end[k] for k in ("error", "retryable", "code", "raw_reason") if k in end},
            "usage": event_to_dict(self._usage) if self._usage else None,
            "bytes": self.bytes,
            "chunks": self.chunks,
            "timing": {
                "first_event": None if self._first is None else round(self._first - self._born, 6),
                "last_event": round(self.last - self._born, 6),
            },
        }


_NONE: dict[type[Event], int] = dict.fromkeys(_KINDS, 0)
_UNKNOWN = StreamStart("")


def _row(call: Any) -> tuple[Any, ...]:
    """A tuple, and no more until somebody asks: a wire may send thousands of calls."""
    row = (call.call, call.id, call.name, call.family, call.runs_on, call.choice, call.provenance)
    return (*row, call.reason) if type(call) is BrokenToolCall else row


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    where: Provenance = row["provenance"]
    plain = {k: v for k, v in row.items() if k != "provenance"}
    return plain | {
        "id_source": where.id_source, "wire_id": where.wire_id, "wire_field": where.wire_field,
        "boundary": where.boundary,
    }  # fmt: skip
