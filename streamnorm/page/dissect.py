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
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ..events import Event, ToolCall, event_to_json
from ..framing import sniff
from ..normalizer import Normalizer
from ..notes import LEVELS, NOTES
from ..opening import framed_by
from ..providers import AUTO, parsers_of
from ..takes.pipe import pipe_for

if TYPE_CHECKING:
    from ..takes.format import Take

__all__ = ["cut", "dissect", "spans"]

STEP = 0.06  # seconds between frames of a take that has no times
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
SNIFFED = 80
LARGEST_EVENT = 16 * 1024 * 1024


def dissect(take: Take, provider: str | None = None) -> dict[str, Any]:
    """The whole take, as the page shows it."""
    wire = take.wire
    whose = _whose(take, provider)
    pipe = pipe_for(take, provider)
    watch = _Watch(pipe)
    clock = _Clock(take)
    frames = [
        _frame(wire, start, end, watch.feed(wire[start:end]), clock)
        for start, end in pairwise([0, *spans(wire, whose)])
    ]
    return {
        "provider": pipe.provider if pipe.provider != AUTO else whose,
        "header": take.header,
        "timed": take.timed,
        "torn": take.torn,
        "size": len(wire),
        "frames": frames,
        "end": watch.close(),
        "notes": _explained(pipe.notes),
    }


def cut(take: Take, at: int, provider: str | None = None) -> dict[str, Any]:
    """What is heard if the wire ends after ``at`` bytes.

    ``frames`` are whole; ``tail`` is what the bytes after them and the early end caused.
    """
    wire = take.wire
    at = max(0, min(at, len(wire)))
    whole = [end for end in spans(wire, _whose(take, provider)) if end <= at]
    pipe = pipe_for(take, provider)
    watch = _Watch(pipe)
    watch.feed(wire[: whole[-1]] if whole else b"")
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


# --- frames ---------------------------------------------------------------------------------------


def spans(wire: bytes, provider: str) -> list[int]:
    """Where each frame ends, in bytes; the last one may not be whole.

    >>> spans(b'data: 1\\n\\ndata: 2\\n\\nda', "openai_chat")
    [9, 18, 20]
    """
    start = sniff(wire[:SNIFFED]) or "text"
    framer = framed_by(start, parsers_of(provider)).framer(start, LARGEST_EVENT)
    pieces = _bytes(wire) if start in ("array", "aws") else LINE.findall(wire)
    ends = [end for piece, end in _placed(pieces) if framer.feed(piece)]
    if len(wire) > (ends[-1] if ends else 0):
        ends.append(len(wire))
    return ends


def _placed(pieces: list[bytes]) -> Iterator[tuple[bytes, int]]:
    return zip(pieces, accumulate(map(len, pieces)), strict=True)


def _bytes(wire: bytes) -> list[bytes]:
    return [wire[i : i + 1] for i in range(len(wire))]


def _whose(take: Take, provider: str | None) -> str:
    """The provider by name; told from the bytes where nobody says."""
    named = provider or take.provider or AUTO
    if named != AUTO:
        parsers_of(named)  # raises with the names there are
        return named
    pipe = Normalizer(AUTO)
    pipe.feed(take.wire)
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
