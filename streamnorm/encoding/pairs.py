"""Calls and results come in, in order; who answers which call goes out. It is decided only here.

Rule: a call is answered once. A result answers the call of its id that stands before it, the latest
one if the id was used again. Where one of the two has no id, the result answers a call of the turn
before it: one of its name, and without a name the first that is left. All other results are strays.

A call without a result is an orphan. What becomes of it is the policy ``orphans``, which is the same
wherever a conversation is sent, mended or repaired:

    "error"   it is answered neutrally: nobody knows whether it ran. The default, see ``ORPHANS``
    "drop"    it is left out
    "raise"   ``UnansweredCall``
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from ..errors import EncodeError
from ..text.shown import clean, shorten

__all__ = [
    "NO_CALL", "ORPHANS", "SECOND", "UNAVAILABLE", "Asked", "Given", "Orphans", "Pairs", "Repair",
    "UnansweredCall", "call_shown", "checked", "is_closed", "paired",
]  # fmt: skip

Orphans: TypeAlias = Literal["error", "drop", "raise"]
# One unanswered call makes a provider refuse the whole conversation, now and in every later turn,
# and it is there because something crashed, was cancelled or is another program's. The neutral
# answer keeps the conversation alive and claims nothing; each one is told (a row of the report, or
# a warning where there is no report). "raise" would make `repair` and every resumed loop fail on
# the very thing they are for, and "drop" would hide from the model that something may have run.
ORPHANS: Orphans = "error"
UNAVAILABLE = "result unavailable; may or may not have run"

# Why a result is a stray.
NO_CALL = "no call for it stands before"
SECOND = "the call has a result already"

What: TypeAlias = Literal[
    "closed",
    "restored",
    "dropped_call",
    "dropped_result",
    "moved_result",
    "renamed",
    "evened",
    "left_out",
]


class UnansweredCall(EncodeError):
    """A call has no result, and the policy is to raise."""


class Repair(NamedTuple):
    """One thing that was mended: what was done to which call, where it stood, and why."""

    what: What
    id: str
    name: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what.replace('_', ' ')} {self.name} ({self.id}): {self.why}"


# --- who answers ----------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A call: the place of its turn or entry, and how a result may name it."""

    place: int
    id: str | None
    name: str | None


class Given(NamedTuple):
    """A result. ``after`` is the place of the last thing that the model said before it."""

    place: int
    after: int
    id: str | None
    name: str | None


class Pairs(NamedTuple):
    """The number of the result that answers each call, and why the other results answer none."""

    answers: list[int | None]
    strays: dict[int, str]


Fits: TypeAlias = Callable[[int, int], bool]  # may this result answer that call of its id?


def paired(
    asked: Sequence[Asked],
    given: Sequence[Given],
    *,
    fits: Fits = lambda call, result: True,
    by_place: bool = True,
) -> Pairs:
    """Who answers which call. ``by_place=False``: without an id nobody answers anything.

    >>> paired([Asked(0, "a", "f"), Asked(0, "b", "f")], [Given(1, 0, "b", None)]).answers
    [None, 0]
    """
    pairing = _Pairing(asked, given, fits)
    pairing.by_id()
    if by_place:
        pairing.by_place()
    return Pairs(pairing.answers, pairing.strays)


class _Pairing:
    def __init__(self, asked: Sequence[Asked], given: Sequence[Given], fits: Fits) -> None:
        self._asked, self._given, self._fits = asked, given, fits
        self.answers: list[int | None] = [None] * len(asked)
        self.strays: dict[int, str] = {}

    def by_id(self) -> None:
        called: dict[str, list[int]] = defaultdict(list)
        for number, call in enumerate(self._asked):
            if call.id:
                called[call.id].append(number)
        for number, result in enumerate(self._given):
            calls = called.get(result.id) if result.id else None
            self._answer(number, self._meant(number, calls) if calls else [])

    def _meant(self, number: int, calls: list[int]) -> list[int]:
        """The calls of one place that a result may mean: those of its id that were made last."""
        end = bisect_left(calls, self._given[number].place, key=lambda n: self._asked[n].place)
        while end and not self._fits(calls[end - 1], number):
            end -= 1
        if not end:
            return []
        place = self._asked[calls[end - 1]].place
        begin = bisect_left(calls, place, key=lambda n: self._asked[n].place)
        return [call for call in calls[begin:end] if self._fits(call, number)]

    def _answer(self, number: int, calls: list[int]) -> None:
        """The first of the calls that has no answer gets it."""
        free = next((call for call in calls if self.answers[call] is None), None)
        if free is not None:
            self.answers[free] = number
            self.strays.pop(number, None)
        elif calls:
            self.strays[number] = SECOND
        else:
            self.strays[number] = NO_CALL

    def by_place(self) -> None:
        near: dict[int, list[int]] = defaultdict(list)
        for number in sorted(self.strays):
            near[self._given[number].after].append(number)
        for call, asked in enumerate(self._asked):
            loose = near.get(asked.place)
            if loose and self.answers[call] is None:
                self._answer_loosely(call, loose)

    def _answer_loosely(self, call: int, loose: list[int]) -> None:
        asked = self._asked[call]
        fitting = [n for n in loose if not (self._given[n].id and asked.id)]
        named = (n for n in fitting if self._given[n].name and self._given[n].name == asked.name)
        nameless = (n for n in fitting if not self._given[n].name)
        number = next(named, None)
        if number is None:
            number = next(nameless, None)
        if number is not None:
            self._answer(number, [call])
            loose.remove(number)


# --- what becomes of orphans ----------------------------------------------------------------------


def checked(orphans: Orphans) -> Orphans:
    """The policy, if it is one."""
    if orphans not in get_args(Orphans):
        raise EncodeError(f"orphans={orphans!r} is not one of {', '.join(get_args(Orphans))}")
    return orphans


def call_shown(id: str | None, name: str | None) -> str:
    """A call in a sentence.

    >>> call_shown("call_1", "pay")
    "the call 'call_1' (pay)"
    """
    return f"the call {shorten(clean(repr(id)), 80)} ({shorten(clean(name or ''), 80)})"


def is_closed(orphans: Orphans, where: str, id: str | None, name: str | None) -> bool:
    """Is an orphan to be answered (or else left out)?"""
    if orphans == "raise":
        raise UnansweredCall(
            f"{where}: {call_shown(id, name)} has no result; add one, made with "
            'ToolResult.for_call(call, …), or let it be answered neutrally with orphans="error"'
        )
    return orphans == "error"
