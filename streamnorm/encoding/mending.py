"""A conversation with calls and results that do not match comes in; one that a provider takes goes out.

Rule: nothing that is stored is changed; what is sent is, and every change is a row of the report. An
unanswered call is answered neutrally, as nobody knows whether it ran: never "cancelled", never "ok".
The same conversation is always mended in the same way, so a provider's cache still fits.

                                ``mend``                               ``answered``, for a request
    calls without a result      by policy, see ``pairs``               by policy
    results in the wrong place  moved behind their calls, in order     moved
    results without a call      left out                               refused
    results told twice          the first counts                       refused
    calls that were never whole left out                               refused

What a request refuses is the caller's own mistake, and something would be lost: the error names the fix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from ..conversation import Conversation, Part, Turn
from ..errors import EncodeError
from ..events import ToolCall
from ..tools import ToolResult
from .pairs import (
    ORPHANS,
    SECOND,
    UNAVAILABLE,
    Asked,
    Given,
    Orphans,
    Repair,
    What,
    call_shown,
    checked,
    is_closed,
    paired,
)  # fmt: skip

__all__ = ["Mended", "Record", "answered", "mend"]

Spool = TypeVar("Spool", contravariant=True)


class Record(Protocol[Spool]):
    """What a handler gave, as a history keeps it; ``spool`` is where its content lies."""

    @property
    def id(self) -> str: ...

    @property
    def checksum(self) -> str: ...

    def result(self, call: ToolCall, spool: Spool | None) -> ToolResult: ...


class Mended(NamedTuple):
    """A conversation that can be sent, and what was done to it."""

    conversation: Conversation
    report: tuple[Repair, ...] = ()


def mend(
    conversation: Conversation,
    *,
    orphans: Orphans = ORPHANS,
    settled: Iterable[Record[Spool]] = (),
    spool: Spool | None = None,
) -> Mended:
    """The conversation with every call answered once, directly behind it; stored turns stay as they are.

    ``settled`` are records of calls whose results were never stored in a turn: they answer first.

    >>> call = ToolCall(0, "call_1", "pay", {"amount": 5}, '{"amount":5}')
    >>> broken = Conversation().user("Pay 5.").add(Turn("assistant", (call,))).user("Well?")
    >>> mended = mend(broken)
    >>> mended.conversation.turns[2].results[0].text
    'result unavailable; may or may not have run'
    >>> print(mended.report[0])
    turn 1: closed pay (call_1): it has no result
    """
    return _Mending(conversation, orphans, settled, spool).mended()


def answered(conversation: Conversation, *, orphans: Orphans = ORPHANS) -> Mended:
    """The same for a request: orphans by policy, but what the caller got wrong is refused.

    >>> call = ToolCall(0, "call_1", "pay", {}, "{}")
    >>> answered(Conversation().results([ToolResult.for_call(call, "done")]))
    Traceback (most recent call last):
      ...
    streamnorm.errors.EncodeError: turn 0: a result for the call 'call_1' (pay), which the talk before \
it does not have; put results after the turn that made the call, and make them with \
ToolResult.for_call(call, …) of that very call
    """
    nothing: tuple[Record[None], ...] = ()
    return _Mending(conversation, orphans, nothing, None, refuses=True).mended()


class _Mending(Generic[Spool]):
    def __init__(
        self,
        conversation: Conversation,
        orphans: Orphans,
        settled: Iterable[Record[Spool]],
        spool: Spool | None,
        *,
        refuses: bool = False,
    ) -> None:
        if not isinstance(conversation, Conversation):
            raise EncodeError(f"pass a Conversation, not {type(conversation).__name__}")
        for turn in conversation.turns:
            if not isinstance(turn, Turn):
                raise EncodeError(f"a conversation is made of turns, not {type(turn).__name__}")
        self._conversation = conversation
        self._turns = conversation.turns
        self._orphans = checked(orphans)
        self._refuses = refuses
        self._spool = spool
        self._settled = {(record.id, record.checksum): record for record in settled}
        self._report: list[Repair] = []
        self._calls: list[ToolCall] = []
        self._calls_of: dict[int, list[int]] = defaultdict(list)  # turn -> numbers of its calls
        self._gives: set[int] = set()  # turns with results
        self._results: list[ToolResult] = []
        self._given: list[Given] = []
        self._pair()

    def mended(self) -> Mended:
        if self._refuses:
            self._refuse()
        turns = [said for n, turn in enumerate(self._turns) for said in self._said(n, turn)]
        for number, why in self._strays.items():
            self._note("dropped_result", self._results[number].call, self._given[number].place, why)
        if not self._report and turns == self._turns:
            return Mended(self._conversation)
        return Mended(msgspec.structs.replace(self._conversation, turns=turns), tuple(self._report))

    def _pair(self) -> None:
        asked: list[Asked] = []
        after = -1
        for number, turn in enumerate(self._turns):
            if turn.role == "assistant":
                after = number
                for call in _calls(turn):
                    self._calls_of[number].append(len(asked))
                    self._calls.append(call)
                    asked.append(Asked(number, call.id, call.name))
                continue
            if after < 0 and self._conversation.continues:
                continue  # results of calls that the service has
            for result in turn.results:
                self._gives.add(number)
                self._results.append(result)
                self._given.append(Given(number, after, result.call.id, result.call.name))
        self._answers, self._strays = paired(asked, self._given, fits=self._fits, by_place=False)

    def _fits(self, call: int, result: int) -> bool:
        """An id may be used again, so a result is bound to the call that it was made for."""
        one, other = self._calls[call], self._results[result].call
        return one.name == other.name and one.arguments == other.arguments

    # --- turns ------------------------------------------------------------------------------------

    def _said(self, number: int, turn: Turn) -> list[Turn]:
        if turn.role == "assistant":
            return self._assistant(number, turn)
        return _without_results(turn) if number in self._gives else [turn]

    def _assistant(self, number: int, turn: Turn) -> list[Turn]:
        answers: list[ToolResult] = []
        gone: list[ToolCall] = []
        for at in self._calls_of[number]:
            answer = self._answer(at, number)
            if answer is not None:
                answers.append(answer)
            elif self._calls[at].runs_on == "client":
                gone.append(self._calls[at])
        said = self._without(number, turn, gone)
        return [*said, self._together(number, answers)] if answers else said

    def _without(self, number: int, turn: Turn, gone: list[ToolCall]) -> list[Turn]:
        lost = [broken for broken in turn.broken if not broken.goes_back]
        for broken in lost:
            why = f"it was never whole ({broken.reason})"
            self._report.append(
                Repair("dropped_call", broken.id, broken.name, f"turn {number}", why)
            )
        if not lost and not gone:
            return [turn]
        parts = tuple(part for part in turn.parts if not any(part is call for call in gone))
        return [msgspec.structs.replace(turn, parts=parts, broken=())] if parts else []

    def _together(self, number: int, answers: list[ToolResult]) -> Turn:
        """The turn with these results; the very one that is there, if it is right."""
        made = Turn("tool", tuple(answers))
        there = self._turns[number + 1] if number + 1 < len(self._turns) else None
        return there if there == made else made

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, at: int, number: int) -> ToolResult | None:
        call, result = self._calls[at], self._answers[at]
        if result is not None:
            given = self._given[result]
            if given.after != number:
                self._note("moved_result", call, given.place, f"its call is in turn {number}")
            return msgspec.structs.replace(self._results[result], call=call)
        if call.runs_on != "client":
            return None
        return self._restored(number, call) or self._closed(number, call)

    def _restored(self, number: int, call: ToolCall) -> ToolResult | None:
        record = self._settled.get((call.id, call.checksum)) if self._settled else None
        if record is None:
            return None
        self._note("restored", call, number, "its handler was done, and its result not yet sent")
        return record.result(call, self._spool)

    def _closed(self, number: int, call: ToolCall) -> ToolResult | None:
        closing = is_closed(self._orphans, f"turn {number}", call.id, call.name)
        self._note("closed" if closing else "dropped_call", call, number, "it has no result")
        return ToolResult.for_call(call, UNAVAILABLE, is_error=True) if closing else None

    # --- what a request refuses -------------------------------------------------------------------

    def _refuse(self) -> None:
        for number, turn in enumerate(self._turns):
            for broken in turn.broken:
                if broken.goes_back:
                    continue
                raise EncodeError(
                    f"turn {number} has a call that was never whole: {broken.name!r} "
                    f"({broken.reason}); send turn.whole() instead, which leaves it out, or ask the "
                    "model again"
                )
        for result, why in self._strays.items():
            call, where = self._results[result].call, f"turn {self._given[result].place}"
            if why == SECOND:
                raise EncodeError(
                    f"{where}: two results answer {call_shown(call.id, call.name)}; keep one of "
                    "them"
                )
            raise EncodeError(
                f"{where}: a result for {call_shown(call.id, call.name)}, which the talk before "
                "it does not have; put results after the turn that made the call, and make them with "
                "ToolResult.for_call(call, …) of that very call"
            )

    def _note(self, what: What, call: ToolCall, number: int, why: str) -> None:
        self._report.append(Repair(what, call.id, call.name, f"turn {number}", why))


def _calls(turn: Turn) -> list[ToolCall]:
    return [part for part in turn.parts if isinstance(part, ToolCall)]


def _without_results(turn: Turn) -> list[Turn]:
    rest: tuple[Part, ...] = tuple(p for p in turn.parts if not isinstance(p, ToolResult))
    return [msgspec.structs.replace(turn, role="user", parts=rest)] if rest else []
