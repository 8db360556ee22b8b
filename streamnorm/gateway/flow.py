"""What goes through the gateway, and what went through last: events come in, plain rows go out.

Rule: what was said is not here. A row has ids, names, counts and times; every text of a wire is cleaned
when the row is written, also of keys: an upstream can repeat one wherever it names something.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..events import BrokenToolCall, Event, Failed, Finish, StreamStart, ToolCall, Usage
from ..text.shown import clean, shorten
from .headers import Secrets
from .metrics import Metrics

__all__ = ["Exchange", "Flow"]

LAST = 100  # exchanges that are remembered
CALLS = 64  # of one exchange that are told
WIDTH = 200  # characters of a text
_TELLING = frozenset((StreamStart, ToolCall, BrokenToolCall, Usage, Finish, Failed))
_TOKENS = ("input", "output", "cached_input", "cache_write", "reasoning")


class Exchange(msgspec.Struct):
    """One request of a client and its answer."""

    number: int
    client: str  # its wire
    began: float
    at: float  # seconds since 1970
    secrets: Secrets
    upstream: str = ""
    asked: str = ""  # the model, as the client calls it
    model: str = ""  # … and as the upstream does
    streaming: bool = False
    passed: bool = False  # byte for byte?
    state: str = "open"
    status: int = 0
    attempts: int = 0
    first: float | None = None  # seconds until the first byte
    took: float | None = None
    received: int = 0  # bytes of the request
    sent: int = 0
    response_id: str | None = None
    finish: str | None = None
    error: str | None = None
    dropped: int = 0  # things that the upstream's wire cannot say
    notes: dict[str, int] = {}
    usage: Usage | None = None
    calls: list[dict[str, Any]] = []  # the first of them
    ended: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)  # all: outcome, source
    take: str | None = None

    def hear(self, events: Iterable[Event]) -> None:
        """What the upstream has told."""
        for event in events:
            if type(event) not in _TELLING:
                continue
            if isinstance(event, ToolCall | BrokenToolCall):
                self._call(event)
            elif isinstance(event, Usage):
                self.usage = event
            elif isinstance(event, StreamStart):
                self.response_id = event.response_id
            elif isinstance(event, Finish):
                self.finish = event.reason
            elif isinstance(event, Failed):
                self.finish, self.error = event.reason, event.error

    def _call(self, event: ToolCall | BrokenToolCall) -> None:
        outcome = "broken" if isinstance(event, BrokenToolCall) else "whole"
        self.ended[outcome, event.provenance.id_source] += 1
        if len(self.calls) < CALLS:
            broken = {"broken": event.reason} if isinstance(event, BrokenToolCall) else {}
            self.calls.append({
                "id": event.id, "name": event.name, "runs_on": event.runs_on,
                "id_source": event.provenance.id_source, **broken,
            })  # fmt: skip

    def again(self) -> None:
        """The upstream is asked once more: what it told before was not shown to anybody."""
        self.calls, self.usage, self.finish, self.error = [], None, None, None
        self.ended.clear()

    def row(self) -> dict[str, Any]:
        """As plain values, safe to show."""
        usage = self.usage
        row: dict[str, Any] = {
            "number": self.number, "at": round(self.at, 3), "client": self.client,
            "upstream": self.upstream, "asked": self.asked, "model": self.model,
            "streaming": self.streaming, "passed": self.passed, "state": self.state,
            "status": self.status, "attempts": self.attempts, "first": self.first,
            "took": self.took, "received": self.received, "sent": self.sent,
            "response_id": self.response_id, "finish": self.finish, "error": self.error,
            "dropped": self.dropped, "notes": dict(self.notes), "calls": self.calls,
            "more_calls": self.ended.total() - len(self.calls) or None,
            "tokens": {k: n for k in _TOKENS if usage and (n := getattr(usage, k)) is not None},
            "take": self.take,
        }  # fmt: skip
        cleaned: dict[str, Any] = _cleaned(row, self.secrets)
        return cleaned


class Flow:
    """The exchanges that are under way, and the last that were."""

    def __init__(
        self, metrics: Metrics, tell: Callable[[dict[str, Any]], None], last: int = LAST
    ) -> None:
        self._metrics = metrics
        self._tell = tell
        self._open: dict[int, Exchange] = {}
        self._last: deque[Exchange] = deque(maxlen=last)
        self._count = 0

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._open)

    def begin(self, client: str, secrets: Secrets) -> Exchange:
        """A client asks; these are the keys that nothing may tell."""
        self._count += 1
        exchange = Exchange(self._count, client, time.monotonic(), time.time(), secrets)
        self._open[exchange.number] = exchange
        self._metrics.open.add()
        return exchange

    def end(self, exchange: Exchange, notes: Counter[str] | None = None) -> None:
        """It is over: counted, logged, remembered."""
        del self._open[exchange.number]
        exchange.took = round(time.monotonic() - exchange.began, 6)
        exchange.notes = dict(notes or ())
        self._last.append(exchange)
        self._measure(exchange)
        self._tell(exchange.row())

    def rows(self) -> list[dict[str, Any]]:
        """The latest first."""
        return [one.row() for one in (*reversed(self._open.values()), *reversed(self._last))]

    def _measure(self, one: Exchange) -> None:
        metrics, upstream = self._metrics, one.upstream or "none"
        metrics.open.add(by=-1)
        metrics.exchanges.add(one.client, upstream, one.state)
        metrics.sent.add(one.client, by=one.sent)
        metrics.seconds.add(one.client, upstream, seconds=one.took or 0.0)
        if one.first is not None:
            metrics.first.add(one.client, upstream, seconds=one.first)
        if one.attempts > 1:
            metrics.retries.add(upstream, by=one.attempts - 1)
        for (outcome, source), number in one.ended.items():
            metrics.calls.add(upstream, outcome, source, by=number)
        for kind in _TOKENS if one.usage else ():
            if number := getattr(one.usage, kind):
                metrics.tokens.add(upstream, kind, by=number)
        for note, number in one.notes.items():
            metrics.notes.add(upstream, note, by=number)


def _cleaned(value: Any, secrets: Secrets) -> Any:
    if isinstance(value, str):
        return shorten(clean(secrets.clean_text(value)), WIDTH)
    if isinstance(value, dict):
        return {k: _cleaned(v, secrets) for k, v in value.items()}
    return [_cleaned(v, secrets) for v in value] if isinstance(value, list) else value
