"""Rows come in, one after the other; what a report says goes out, as plain values.

    tally = Tally()
    for row in records("answer.sse", data):
        tally.add(row)
    tally.summary().of(call="broken")        # Figure(count=1, streams=1, spread=None)

Rule: a number is named by the tags that its streams have in common: the streams behind it are those
that have all of them. Memory does not grow with the streams: of each number a sample is kept, and of each
facet so many values (the others count together). The order of streams changes nothing, but for the
parts in which they are counted where recordings have no date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import product
from typing import Any, NamedTuple

from ..captures.strangers import OUR_EVENTS
from ..errors import UsageError
from ..notes import LEVELS, NOTES
from ..takes.redact import Redactor
from ..text.shown import clean
from .moments import Moments, moment
from .number import EXAMPLES, LONGEST, Figure, Number

__all__ = [
    "BANDS", "LISTED", "NO_DATE", "OTHERS", "TIMES", "TOKENS", "UNNAMED", "Key", "Listed", "Summary",
    "Tally", "level_of",
]  # fmt: skip

LISTED = 5_000  # streams that are listed whatever they are; of more a sample
MOST_LISTED = 10_000  # with those behind the numbers
MOST_PARTS = 60
MOST_COUNTED = 10**15  # of anything in one stream: what says more says nothing
MOST_VALUES = 100  # of one facet in one stream
LONGEST_NAME, LONGEST_PATH, LONGEST_DETAIL = 200, 2_000, 500  # characters
_SECRETS = Redactor()  # keys by their shape
OTHERS, UNNAMED, NO_DATE = "(others)", "(not named)", "(no date)"
UNREADABLE = "unreadable"
TIMES = ("first_event", "first_token", "first_call")
TOKENS = ("input", "cached", "cache_write", "output", "reasoning")
# Slices of times, by where they end.
BANDS = ((0.1, "under 0.1 s"), (0.2, "0.1 to 0.2 s"), (0.5, "0.2 to 0.5 s"), (1, "0.5 to 1 s"),
         (2, "1 to 2 s"), (5, "2 to 5 s"), (10, "5 to 10 s"), (30, "10 to 30 s"),
         (float("inf"), "30 s and more"))  # fmt: skip

# What a stream can have in common with others -> how many of its values are told apart; 0: slices of
# time and parts are as wide as they must be to be few.
FACETS = {
    "provider": 50, "server": 200, "model": 300, "form": 30, "end": 10, "reason": 50, "call": 10, "broken": 50,
    "id": 10, "note": 150, "tokens": 10, "timed": 10, "first_event": 10, "first_token": 10,
    "first_call": 10, "wrong": 10, "when": 0, "part": 0,
}  # fmt: skip
# The numbers: each is counted for all values of these facets together.
_NUMBERS = (
    (), ("provider",), ("server",), ("form",), ("when",), ("part",),
    ("end",), ("end", "reason"), ("provider", "end"), ("server", "end"), ("server", "end", "reason"),
    ("call",), ("provider", "call"), ("server", "call"),
    ("broken",), ("provider", "broken"), ("server", "broken"),
    ("id",), ("provider", "id"), ("server", "id"),
    ("note",), ("server", "note"), ("note", "when"), ("note", "part"),
    ("tokens",), ("provider", "model", "tokens"),
    ("timed",), ("provider", "timed"),
    *(("provider", name) for name in TIMES),
    ("wrong",), ("server", "wrong"),
)  # fmt: skip

Key = tuple[tuple[str, str], ...]  # facets with their values, in the order of FACETS


class Listed(NamedTuple):
    """A stream as it is listed."""

    facts: dict[str, Any]
    tags: list[tuple[str, str]]


class Summary(NamedTuple):
    """What a report says."""

    numbers: dict[Key, Figure]
    streams: list[Listed]
    examples: int  # of each number so many streams are listed, if there are so many
    sums: dict[str, int]  # of all streams; ``passed``: files with events of ours, which are none
    first: str | None  # the first and the last time of a recording
    last: str | None
    days: list[str]  # slices of time
    unit: str
    parts: list[str]  # streams in the order in which they came
    noted: dict[str, str]  # oddity -> what it means

    def of(self, **tags: str) -> Figure:
        """The number with these tags."""
        return self.numbers.get(_key(tags), Figure())

    def values(self, facet: str, **tags: str) -> list[str]:
        """The values of a facet for which there is a number, with these tags beside it."""
        fixed, names = set(tags.items()), {facet, *tags}
        found = (
            dict(key)[facet]
            for key in self.numbers
            if {name for name, _ in key} == names and fixed <= set(key)
        )
        return sorted(found, key=_last)


class Tally:
    """Counts rows. What is read from one session stands together, the session's row first."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[str, Any], ...], Number] = {}
        self._rosters = {facet: _Roster(most) for facet, most in FACETS.items() if most}
        self._moments = Moments()
        self._sums: Counter[str] = Counter()
        self._open: _Stream | None = None
        self._count = 0
        self._part_size = 1

    def add(self, row: dict[str, Any]) -> None:
        """One more row; ``UsageError`` for one that stands apart from its session."""
        kind = row.get("kind")
        if kind == "session":
            self._close()
            if row.get("detail") == OUR_EVENTS and row.get("outcome") == UNREADABLE:
                self._sums["passed"] += 1
            else:
                self._open = _Stream(row)
        elif self._open is None or row.get("session") != self._open.session:
            name = clean(str(row.get("session"))[:LONGEST_NAME])
            raise UsageError(f"a row of {name} stands apart from the row of its session")
        elif kind == "call":
            self._open.call(row)
        elif kind == "note":
            self._open.note(row)

    def summary(self) -> Summary:
        """What was counted so far."""
        self._close()
        self._prune(1)
        entries, examples = self._listed()
        return Summary(
            numbers={self._outside(key): number.figure() for key, number in self._numbers.items()},
            streams=[Listed(stream.facts, self._tags(stream)) for stream in entries],
            examples=examples,
            sums=dict(self._sums),
            first=self._moments.first,
            last=self._moments.last,
            days=self._moments.axis(),
            unit=self._moments.unit,
            parts=[self._part(n) for n in range(-(-self._count // self._part_size))],
            noted={name: _sentence(name) for name in self._rosters["note"].names},
        )

    # --- one stream ---------------------------------------------------------------------------------

    def _close(self) -> None:
        """The open stream is complete."""
        if (stream := self._open) is None:
            return
        self._open = None
        stream.close(self._count)
        self._count += 1
        self._sums.update(stream.sums)
        self._widen(stream)
        facets = {facet: self._tagged(facet, stream) for facet in stream.facets}
        for names in _NUMBERS:
            self._count_in(names, facets, stream)
        self._count_times(facets, stream)
        self._prune(2)  # seldom, as it looks at all numbers

    def _tagged(self, facet: str, stream: _Stream) -> list[tuple[tuple[str, Any], int]]:
        """The tags of a facet, and how often each."""
        tags: dict[Any, int] = {}
        for value, count in stream.facets[facet].items():
            admitted = self._admitted(facet, value)
            tags[admitted] = tags.get(admitted, 0) + count  # two may count as others
        return [((facet, value), count) for value, count in tags.items()]

    def _count_in(self, names: tuple[str, ...], facets: _Facets, stream: _Stream) -> None:
        if not all(map(facets.__contains__, names)):
            return
        most = LISTED if not names else EXAMPLES
        for tags in product(*(facets[name] for name in names)):
            count = 1
            for _, times in tags:
                count *= times
            self._number(tuple(tag for tag, _ in tags)).add(count, stream.entry, most)

    def _count_times(self, facets: _Facets, stream: _Stream) -> None:
        for name, seconds in stream.times.items():
            timed = ("timed", name)
            self._number((timed,)).time(seconds)
            for provider, _ in facets.get("provider", ()):
                self._number((provider, timed)).time(seconds)

    def _number(self, key: tuple[tuple[str, Any], ...]) -> Number:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = Number()
        return number

    # --- what is told apart -------------------------------------------------------------------------

    def _admitted(self, facet: str, value: Any) -> Any:
        """The value under which this one is counted now."""
        if facet == "part":
            return value // self._part_size
        if facet == "when":
            return value if value == NO_DATE else value[: self._moments.size]
        return self._rosters[facet].admit(value)

    def _prune(self, most_times: int) -> None:
        """Of facets with more than so many times their values, those that are too many are others."""
        for facet, roster in self._rosters.items():
            if len(roster.names) > most_times * roster.most:
                self._together(facet, roster.prune())

    def _together(self, facet: str, gone: set[str]) -> None:
        self._rename(facet, lambda value: OTHERS if value in gone else value)

    def _widen(self, stream: _Stream) -> None:
        """Slices of time and parts are as wide as they must be for this stream."""
        if stream.moment is not None and self._moments.hear(stream.moment):
            size = self._moments.size
            self._rename("when", lambda value: value if value == NO_DATE else value[:size])
        if self._count > MOST_PARTS * self._part_size:
            self._part_size *= 2
            self._rename("part", lambda value: value // 2)

    def _rename(self, facet: str, to: Callable[[Any], Any]) -> None:
        """What was counted apart is counted together."""
        for key in [key for key in self._numbers if any(name == facet for name, _ in key)]:
            other = tuple((name, to(value) if name == facet else value) for name, value in key)
            if other == key:
                continue
            number = self._numbers.pop(key)
            self._number(other).merge(number)

    # --- out ----------------------------------------------------------------------------------------

    def _listed(self) -> tuple[list[_Stream], int]:
        """The streams that are listed, and of each number at least how many."""
        whatever = self._numbers.get((), Number()).sample
        for most in (EXAMPLES, 10, 5, 2, 1):
            found = {number: stream for _, number, stream in whatever}
            for one in self._numbers.values():
                found |= {number: stream for _, number, stream in sorted(one.sample)[-most:]}
            if len(found) <= MOST_LISTED:
                break
        return sorted(found.values(), key=lambda stream: (stream.session, stream.entry[1])), most

    def _tags(self, stream: _Stream) -> list[tuple[str, str]]:
        """Under the names under which they were counted at last."""
        tags: dict[tuple[str, str], None] = {}
        for facet, counted in stream.facets.items():
            for value in counted:
                tags[self._tag(facet, self._admitted(facet, value))] = None
        return list(tags)

    def _outside(self, key: tuple[tuple[str, Any], ...]) -> Key:
        return tuple(self._tag(facet, value) for facet, value in key)

    def _tag(self, facet: str, value: Any) -> tuple[str, str]:
        return facet, self._part(value) if facet == "part" else value

    def _part(self, number: int) -> str:
        first = number * self._part_size + 1
        last = min(first + self._part_size - 1, max(first, self._count))
        return f"{first}" if first == last else f"{first} to {last}"


_Facets = dict[str, list[tuple[tuple[str, Any], int]]]


class _Roster:
    """The values of a facet that are told apart: those of the smallest hashes."""

    __slots__ = ("_limit", "most", "names")

    def __init__(self, most: int) -> None:
        self.most = most
        self.names: dict[str, int] = {}
        self._limit: int | None = None

    def admit(self, name: str) -> str:
        if name in self.names:
            return name
        hashed = _hash(name)
        if self._limit is not None and hashed >= self._limit:
            return OTHERS
        self.names[name] = hashed
        return name

    def prune(self) -> set[str]:
        """Those that are too many: they are gone, and do not come back."""
        gone = sorted(self.names, key=self.names.__getitem__)[self.most :]
        self._limit = self.names[gone[0]]
        for name in gone:
            del self.names[name]
        return set(gone)


class _Stream:
    """One session: its row, then the rows about what is in it."""

    __slots__ = (
        "_row", "entry", "facets", "facts", "moment", "session", "sums", "times",
    )  # fmt: skip

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row
        self.session = row.get("session")
        self.facets: dict[str, Counter[Any]] = {}
        self.times: dict[str, float] = {}

    def call(self, row: dict[str, Any]) -> None:
        outcome = _name(row.get("outcome")) or UNNAMED
        self._tag("call", outcome)
        self._tag("id", _name(row.get("id_source")) or UNNAMED)
        if outcome == "broken":
            self._tag("broken", _name(row.get("reason")) or UNNAMED)

    def note(self, row: dict[str, Any]) -> None:
        if (name := _name(row.get("name"))) and (count := _whole(row.get("count"))):
            self._tag("note", name, count)

    def close(self, number: int) -> None:
        """All its rows are here."""
        row = self._row
        self.moment = moment(row.get("captured") if isinstance(row.get("captured"), str) else None)
        end = _name(row.get("outcome")) or UNNAMED
        self._tag("end", end)
        self._tag("part", number)
        self.sums: dict[str, int] = {}
        if end != UNREADABLE:
            self._tag_read(row, end)
        self.facts = self._facts(row, end)
        self.session = self.facts["name"]
        self.entry = (-_hash(f"{self.session}\0{row.get('input')}"), number, self)
        self._row = {}

    def _tag_read(self, row: dict[str, Any], end: str) -> None:
        counted = ("bytes", "frames", "events", "results")
        self.sums = {name: _whole(row.get(name)) for name in counted}
        self._tag("when", self.moment or NO_DATE)
        provider = _name(row.get("provider")) or UNNAMED
        model = _name(row.get("model")) or UNNAMED
        self._tag("provider", provider)
        self._tag("model", model)
        self._tag("server", _name(row.get("host")) or _together(provider, model))
        self._tag("form", _name(row.get("form")) or UNNAMED)
        self._tag("reason", _name(row.get("reason")) or UNNAMED)
        self._tag_tokens(row)
        self._tag_times(row)
        for wrong in self._wrong(end):
            self._tag("wrong", wrong)

    def _tag_tokens(self, row: dict[str, Any]) -> None:
        told = {name: row.get(f"tokens_{name}") for name in TOKENS}
        for name, count in told.items():
            if _whole(count):
                self._tag("tokens", name, _whole(count))
        if all(count is None for count in told.values()):
            self._tag("tokens", "none")

    def _tag_times(self, row: dict[str, Any]) -> None:
        for name in TIMES:
            if (seconds := _seconds(row.get(name))) is not None:
                self.times[name] = seconds
                self._tag("timed", name)
                self._tag(name, next(label for below, label in BANDS if seconds < below))
        if not self.times:
            self._tag("timed", "none")

    def _wrong(self, end: str) -> Iterator[str]:
        """Is something wrong with it: is it broken, or only odd?"""
        is_broken = end == "failed" or "broken" in self.facets.get("call", ())
        is_odd = "synthetic" in self.facets.get("id", ()) or any(
            level_of(name) == "warning" for name in self.facets.get("note", ())
        )
        if is_broken or is_odd:
            yield "any"
            yield "broken" if is_broken else "odd"

    def _tag(self, facet: str, value: Any, count: int = 1) -> None:
        counted = self.facets.setdefault(facet, Counter())
        if len(counted) >= MOST_VALUES and value not in counted:
            value = OTHERS
        counted[value] += count

    def _facts(self, row: dict[str, Any], end: str) -> dict[str, Any]:
        calls = self.facets.get("call", Counter())
        return {
            "name": _name(row.get("session"), LONGEST_PATH) or UNNAMED,
            "input": _name(row.get("input"), LONGEST_PATH),
            "provider": _name(row.get("provider")),
            "model": _name(row.get("model")),
            "host": _name(row.get("host")),
            "response": _name(row.get("response_id")),
            "captured": self.moment,
            "status": _whole(row.get("status")) or None,
            "recorded": _name(row.get("recorded")),
            "end": end,
            "reason": _name(row.get("reason")),
            "detail": _detail(row.get("detail")),
            "bytes": _whole(row.get("bytes")),
            "whole": calls["whole"],
            "broken": calls["broken"],
            "notes": dict(self.facets.get("note", {})),
            "ids": dict(self.facets.get("id", {})),
            "reasons": dict(self.facets.get("broken", {})),
            "tokens": {n: _whole(row.get(f"tokens_{n}")) for n in TOKENS
                       if row.get(f"tokens_{n}") is not None},
            "times": self.times,
        }  # fmt: skip


# --- values ---------------------------------------------------------------------------------------


def level_of(note: str) -> str:
    """How bad an oddity is; one that we do not know may be as bad as any."""
    return LEVELS[NOTES[note].level] if note in NOTES else "warning"


def _sentence(note: str) -> str:
    return NOTES[note].sentence if note in NOTES else "an oddity that this version does not know"


def _together(provider: str, model: str) -> str:
    return provider if model == UNNAMED else f"{provider} · {model}"


def _name(value: Any, longest: int = LONGEST_NAME) -> str | None:
    """A text as it is shown, in the length in which it is kept."""
    if not isinstance(value, str) or not value:
        return None
    return clean(value if len(value) <= longest else value[: longest - 1] + "…")


def _detail(value: Any) -> str | None:
    """Why it ended, in the words of the wire: an error may hold a key, which a report must not."""
    if not isinstance(value, str):
        return None
    return _name(_SECRETS.clean_text(value[: 2 * LONGEST_DETAIL]), LONGEST_DETAIL)


def _whole(value: Any) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(value, MOST_COUNTED) if is_number and value > 0 else 0


def _seconds(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= LONGEST else None


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _key(tags: dict[str, str]) -> Key:
    return tuple((facet, tags[facet]) for facet in FACETS if facet in tags)


def _last(value: str) -> tuple[bool, str]:
    """In order of their letters; what is no name stands at the end."""
    return value.startswith("("), value
