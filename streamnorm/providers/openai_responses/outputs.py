"""Which output answers which call: outputs in, the call that each is of out.

Outputs need not name their call, nor have an id of their own, and are said again in the final response.
Rule: one that names no call is of the first call of its type that waits for one, if that has no id
of its own; one without an id is the same as one before if it says the same in the same place, and at
the end as often as it was told. Nothing is told here.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable

from ...core.calls import Call, Calls

__all__ = ["Outputs"]


class Outputs:
    """The outputs of one response, and the calls that wait for one."""

    def __init__(self, calls: Calls, type_of: Callable[[Call], str]) -> None:
        self._calls = calls
        self._type_of = type_of
        self._queued = 0  # calls that stand in a queue by now
        self._waiting: defaultdict[str, deque[Call]] = defaultdict(deque)
        self._answered: set[int] = set()
        self._bare: set[tuple[int | None, str]] = set()  # outputs without an id: where, and what
        self._copies: Counter[str] = Counter()

    def answer(self, call: Call) -> bool:
        """The output of a call is at hand. Is it the first?"""
        first = call.ordinal not in self._answered
        self._answered.add(call.ordinal)
        return first

    def call_of(self, type_: str, id: str | None) -> Call | None:
        """The call that an output answers: the one that it names, else the first that waits."""
        call = self._calls.by_id(0, id or "")
        return self._unanswered(type_) if call is None else call

    def is_again(self, type_: str, said: str, index: int | None) -> bool:
        """Is an output without an id the same as one before? One in another place is another."""
        open_ = self._unanswered(type_) is not None
        again = (index, said) in self._bare and not (index is None and open_)
        self._bare.add((index, said))
        self._copies[said] += not again
        return again

    def is_copy(self, said: str) -> bool:
        """At the end those without an id are said again as often as they were told."""
        self._copies[said] -= 1
        return self._copies[said] >= 0

    def _unanswered(self, type_: str) -> Call | None:
        """Calls and outputs that name none pair in order, the first with the first, by type."""
        for call in self._calls.all[self._queued :]:
            self._waiting[self._type_of(call).removesuffix("_call")].append(call)
        self._queued = len(self._calls.all)
        waiting = self._waiting[_called(type_)]
        while waiting and waiting[0].ordinal in self._answered:
            waiting.popleft()
        named = not waiting or waiting[0].source == "natural"
        return None if named else waiting[0]


def _called(type_: str) -> str:
    """The type of the calls that an output of this type answers, in short."""
    return type_.removesuffix("_output").removesuffix("_call")
