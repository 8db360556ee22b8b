"""The events of a stream come in as they are heard; what they amount to goes out, as plain values.

Rule: the saying itself is not kept. Counting happens per batch of events, not per event.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

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

__all__ = ["Tally"]

_PIECES = (TextDelta, ReasoningDelta, ToolCallDelta)  # of which only the number counts


class Tally:
    """What a stream has said so far, without the saying itself."""

    def __init__(self) -> None:
        self.chunks = 0
        self.bytes = 0
        self.calls: list[dict[str, Any]] = []
        self.end: Finish | Failed | None = None
        self.pieces: dict[type[Event], int] = dict.fromkeys(_PIECES, 0)  # that came one by one
        self._counts: Counter[type] = Counter()  # … and all others
        self._start = StreamStart("")
        self._usage: Usage | None = None
        self._born = time.monotonic()
        self._first: float | None = None
        self.last = self._born

    @property
    def events(self) -> int:
        """How many were heard."""
        return self._counts.total() + sum(self.pieces.values())

    @property
    def broken(self) -> list[dict[str, Any]]:
        """The rows of the calls that did not end whole."""
        return [row for row in self.calls if "broken" in row]

    def hear(self, events: list[Event]) -> None:
        """These were told, and in this order."""
        self.last = time.monotonic()
        if self._first is None:
            self._first = self.last
        before = self._ended_calls()
        self._counts.update(map(type, events))  # counts in C; the loop below is for few
        if self._ended_calls() != before:
            self.calls += [_row(e) for e in events if isinstance(e, ToolCall | BrokenToolCall)]
        if isinstance(events[0], StreamStart):
            self._start = events[0]
        if isinstance(events[-1], Finish | Failed):
            self.end = events[-1]
            self._usage = next((e for e in events[-2:] if isinstance(e, Usage)), None)

    def _ended_calls(self) -> int:
        return self._counts[ToolCall] + self._counts[BrokenToolCall]

    def summary(self) -> dict[str, Any]:
        """All of it."""
        end = event_to_dict(self.end) if self.end else {}
        counts = self._counts.copy()
        counts.update(self.pieces)
        return {
            "model": self._start.model,
            "response_id": self._start.response_id,
            "calls": [_plain_row(row) for row in self.calls],
            "counts": {kind.kind: n for kind, n in counts.items() if n},  # type: ignore[attr-defined]
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


def _row(call: ToolCall | BrokenToolCall) -> dict[str, Any]:
    row = {
        "call": call.call, "id": call.id, "name": call.name, "family": call.family,
        "runs_on": call.runs_on, "choice": call.choice, "provenance": call.provenance,
    }  # fmt: skip
    return row | ({"broken": call.reason} if isinstance(call, BrokenToolCall) else {})


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    where: Provenance = row["provenance"]
    plain = {k: v for k, v in row.items() if k != "provenance"}
    return plain | {
        "id_source": where.id_source, "wire_id": where.wire_id, "wire_field": where.wire_field,
        "boundary": where.boundary,
    }  # fmt: skip
