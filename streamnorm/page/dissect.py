"""A take comes in; its wire goes out frame by frame, each with the events and notes it caused.

Rule: the real pipe decides. The bytes are fed to one ``Normalizer`` a frame at a time, so what a
frame is shown to have caused is what it caused; any chunking gives the same events. Events travel as
the library's own JSON text, since a browser's numbers would round what is exact here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise, takewhile
from math import inf
from typing import TYPE_CHECKING, Any

from ..errors import StreamnormError
from ..events import Event, ToolCall, event_to_json
from ..framing import sniff
from ..normalizer import Normalizer
from ..notes import LEVELS, NOTES
from ..opening import framed_by
from ..providers import AUTO, parsers_of
from ..takes.pipe import pipe_for
from .work import Budget

if TYPE_CHECKING:
    from ..takes.format import Take

__all__ = ["TooLong", "cut", "dissect", "spans"]

STEP = 0.06  # seconds between frames of a take that has no times
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
SNIFFED = 80
PIECE = 16 * 1024  # bytes that are read at a time to tell whose they are
_STRIDE = 64  # frames that are fed at a time where nobody asks what each of them caused
LARGEST_EVENT = 16 * 1024 * 1024


def dissect(
    take: Take, provider: str | None = None, budget: Budget | None = None
) -> dict[str, Any]:
    """The whole take, as the page shows it; or the beginning of it that the budget allows, and
    ``bound`` says so."""
    wire = take.wire
    budget = budget or Budget(len(wire), frames=len(wire), seconds=inf)
    whose = _whose(take, provider, budget)
    pipe = pipe_for(take, provider)
    watch = _Watch(pipe)
    clock = _Clock(take)
    frames: list[dict[str, Any]] = []
    shown = 0
    for end in spans(wire, whose, budget):
        if not budget.step(end, len(frames) + 1):
            break
        frames.append(_frame(wire, shown, end, watch.feed(wire[shown:end]), clock))
        shown = end
    whole = shown == len(wire)
    budget.done = shown
    return {
        "provider": pipe.provider if pipe.provider != AUTO else whose,
        "header": take.header,
        "timed": take.timed,
        "torn": take.torn,
        "size": shown,
        "frames": frames,
        "end": watch.close() if whole else {"events": [], "sums": {}, "notes": []},
        "notes": _explained(pipe.notes),
        "bound": None if whole else {
            "reason": budget.spent or "cancelled", "size": len(wire), "sentence": budget.sentence,
        },
    }  # fmt: skip


def cut(
    take: Take, at: int, provider: str | None = None, budget: Budget | None = None
) -> dict[str, Any]:
    """What is heard if the wire ends after ``at`` bytes.

    ``frames`` are whole; ``tail`` is what the bytes after them and the early end caused.
    """
    wire = take.wire
    at = max(0, min(at, len(wire)))
    budget = budget or Budget(at, frames=at, seconds=inf)
    whose = _whose(take, provider, budget)
    whole = list(takewhile(lambda end: end <= at, spans(wire, whose, budget)))
    pipe = pipe_for(take, provider)
    watch = _Watch(pipe)
    for start, stop in pairwise([0, *whole[_STRIDE - 1 :: _STRIDE], *whole[-1:]]):
        if not budget.step(stop):
            break
        watch.feed(wire[start:stop])
    if budget.spent or budget.cancelled:
        raise TooLong(budget.sentence)
    inside = watch.feed(wire[whole[-1] if whole else 0 : at])
    end = watch.close()
    return {
        "at": at,
        "frames": len(whole),
        "tail": inside["events"] + end["events"],
        "sums": inside["sums"] | end["sums"],
        "raised": inside["notes"] + end["notes"],
        "notes": _explained(pipe.notes),
    }


class TooLong(StreamnormError):
    """A take that would have to be read for longer than anybody may keep the page."""


# --- frames ---------------------------------------------------------------------------------------


def spans(wire: bytes, provider: str, budget: Budget | None = None) -> Iterator[int]:
    """Where each frame ends, in bytes; the last one may not be whole.

    >>> list(spans(b'data: 1\\n\\ndata: 2\\n\\nda', "openai_chat"))
    [9, 18, 20]
    """
    start = sniff(wire[:SNIFFED]) or "text"
    framer = framed_by(start, parsers_of(provider)).framer(start, LARGEST_EVENT)
    pieces = range(1, len(wire) + 1) if start in ("array", "aws") else _lines(wire)
    before = last = 0
    for end in pieces:
        if budget is not None and not budget.step(before):
            return
        if framer.feed(wire[before:end]):
            yield (last := end)
        before = end
    if len(wire) > last:
        yield len(wire)


def _lines(wire: bytes) -> Iterator[int]:
    return (line.end() for line in LINE.finditer(wire))


def _whose(take: Take, provider: str | None, budget: Budget) -> str:
    """The provider by name; told from the bytes where nobody says."""
    named = provider or take.provider or AUTO
    if named != AUTO:
        parsers_of(named)  # raises with the names there are
        return named
    pipe, wire = Normalizer(AUTO), take.wire
    for at in range(0, len(wire), PIECE):
        pipe.feed(wire[at : at + PIECE])
        if pipe.provider != AUTO or pipe.ended or not budget.step(0):
            break
    pipe.close()
    return pipe.provider


def _frame(
    wire: bytes, start: int, end: int, caused: dict[str, Any], clock: _Clock
) -> dict[str, Any]:
    raw = wire[start:end].decode("utf-8", "backslashreplace")
    return {"raw": raw, "start": start, "end": end, "at": clock.at(end)} | caused


class _Watch:
    """A pipe, and what each piece of input made it say."""

    def __init__(self, pipe: Normalizer) -> None:
        self._pipe = pipe

    def feed(self, data: bytes) -> dict[str, Any]:
        before = Counter(self._pipe.notes)
        return self._told(self._pipe.feed(data) if data else [], before)

    def close(self) -> dict[str, Any]:
        before = Counter(self._pipe.notes)
        return self._told(self._pipe.close(), before)

    def _told(self, events: list[Event], before: Counter[str]) -> dict[str, Any]:
        return {
            "events": [event_to_json(event).decode() for event in events],
            "sums": {event.call: event.checksum for event in events if isinstance(event, ToolCall)},
            "notes": sorted((self._pipe.notes - before).elements()),
        }


class _Clock:
    """When the bytes up to a place had arrived, in seconds."""

    def __init__(self, take: Take) -> None:
        self._ends = list(accumulate(len(chunk) for _, chunk in take.chunks))
        self._times = [at for at, _ in take.chunks]
        self._timed = take.timed
        self._asked = 0

    def at(self, end: int) -> float:
        self._asked += 1
        if not self._timed:
            return round(self._asked * STEP, 3)
        return self._times[bisect_left(self._ends, end)]


def _explained(notes: Counter[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "count": count, "level": LEVELS[NOTES[name].level],
         "sentence": NOTES[name].sentence}
        for name, count in sorted(notes.items())
    ]  # fmt: skip
