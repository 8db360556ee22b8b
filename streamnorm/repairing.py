"""A conversation with calls and results that do not match comes in; one that a provider takes goes out.

Rule: nothing that is stored is changed; what is sent is, and every change is a row of the report. An
unanswered call is answered neutrally, as nobody knows whether it ran: never "cancelled", never "ok".
The same conversation is always mended in the same way, so a provider's cache still fits.

    calls without a result      answered by policy: ``"error"`` (neutral), ``"drop"``, ``"raise"``
    results without a call      left out
    results in the wrong place  moved behind their calls, in the order of the calls
    results told twice          the first counts
    calls that were never whole left out
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from .conversation import Conversation, Part, Turn
from .errors import EncodeError
from .events import ToolCall
from .settled import Settled
from .spool import Spool
from .tools import ToolResult

__all__ = ["Mended", "Orphans", "Repair", "Repaired", "UnansweredCall", "mend", "repair"]

Orphans: TypeAlias = Literal["error", "drop", "raise"]
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
UNAVAILABLE = "result unavailable; may or may not have run"


class Repair(NamedTuple):
    """One thing that was mended: what was done to which call, where it stood, and why."""

    what: What
    id: str
    name: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what.replace('_', ' ')} {self.name} ({self.id}): {self.why}"


class Mended(NamedTuple):
    """A conversation that can be sent, and what was done to it."""

    conversation: Conversation
    report: tuple[Repair, ...] = ()


class Repaired(NamedTuple):
    """A request's body that can be sent, and what was done to it."""

    body: Any
    report: tuple[Repair, ...] = ()


class UnansweredCall(EncodeError):
    """A call has no result, and the policy is to raise."""


def mend(
    conversation: Conversation,
    *,
    orphans: Orphans = "error",
    settled: Iterable[Settled] = (),
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
    work = _Mending(conversation, orphans, settled, spool)
    turns = work.turns()
    if not work.report and turns == conversation.turns:
        return Mended(conversation)
    return Mended(msgspec.structs.replace(conversation, turns=turns), tuple(work.report))


def repair(provider: str, body: Any, *, orphans: Orphans = "error") -> Repaired:
    """A request's body, or its list of messages, that another program has left broken, mended.

    ``provider`` is whose wire it is, or ``"auto"``. The body that is passed is not changed.

    >>> body = {"messages": [{"role": "assistant", "tool_calls": [
    ...     {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]}
    >>> repair("openai_chat", body).body["messages"][1]["tool_call_id"]
    'c1'
    """
    from .pairing import repaired

    return repaired(provider, body, orphans)


class _Mending:
    def __init__(
        self,
        conversation: Conversation,
        orphans: Orphans,
        settled: Iterable[Settled],
        spool: Spool | None,
    ) -> None:
        self._turns = conversation.turns
        self._orphans = orphans
        self._spool = spool
        self._settled = {(record.id, record.checksum): record for record in settled}
        self.report: list[Repair] = []
        # Ids may be used again in a later turn, so both are queues in the order of the turns.
        self._given: dict[str, deque[tuple[int, ToolResult]]] = defaultdict(deque)
        self._called: dict[str, deque[int]] = defaultdict(deque)
        self._assistants = [n for n, turn in enumerate(self._turns) if turn.role == "assistant"]
        for number, turn in enumerate(self._turns):
            for result in turn.results:
                self._given[result.call.id].append((number, result))
            for call in _calls(turn):
                self._called[call.id].append(number)

    def turns(self) -> list[Turn]:
        out: list[Turn] = []
        following = iter([*self._assistants[1:], len(self._turns)])
        for number, turn in enumerate(self._turns):
            if turn.role == "assistant":
                out += self._assistant(number, turn, next(following))
            elif turn.results:
                out += _without_results(turn)
            else:
                out.append(turn)
        for queue in self._given.values():
            for number, result in queue:
                self._note("dropped_result", result.call, number, "no call for it stands before")
        return out

    def _assistant(self, number: int, turn: Turn, following: int) -> list[Turn]:
        answers: list[ToolResult] = []
        gone: list[ToolCall] = []
        for call in _calls(turn):
            answer = self._answer(number, call, following)
            if answer is not None:
                answers.append(answer)
            elif call.runs_on == "client":
                gone.append(call)
        said = self._said(number, turn, gone)
        return [*said, self._together(number, answers)] if answers else said

    def _said(self, number: int, turn: Turn, gone: list[ToolCall]) -> list[Turn]:
        for broken in turn.broken:
            why = f"it was never whole ({broken.reason})"
            self.report.append(
                Repair("dropped_call", broken.id, broken.name, f"turn {number}", why)
            )
        if not turn.broken and not gone:
            return [turn]
        parts = tuple(part for part in turn.parts if part not in gone)
        return [msgspec.structs.replace(turn, parts=parts, broken=())] if parts else []

    def _together(self, number: int, answers: list[ToolResult]) -> Turn:
        """The turn with these results; the very one that is there, if it is right."""
        made = Turn("tool", tuple(answers))
        there = self._turns[number + 1] if number + 1 < len(self._turns) else None
        return there if there == made else made

    def _answer(self, number: int, call: ToolCall, following: int) -> ToolResult | None:
        result = self._found(number, call, following)
        if result is None and call.runs_on == "client":
            result = self._restored(number, call) or self._closed(number, call)
        return result

    def _found(self, number: int, call: ToolCall, following: int) -> ToolResult | None:
        self._called[call.id].popleft()
        again = self._called[call.id][0] if self._called[call.id] else len(self._turns)
        queue, found = self._given[call.id], None
        while queue and queue[0][0] <= again:
            at, result = queue.popleft()
            if at < number:
                self._note("dropped_result", result.call, at, "no call for it stands before")
            elif found is not None:
                self._note("dropped_result", result.call, at, "the call has a result already")
            else:
                found = msgspec.structs.replace(result, call=call)
                if at > following:
                    self._note("moved_result", call, at, f"its call is in turn {number}")
        return found

    def _restored(self, number: int, call: ToolCall) -> ToolResult | None:
        record = self._settled.get((call.id, call.checksum))
        if record is None:
            return None
        self._note("restored", call, number, "its handler was done, and its result not yet sent")
        return record.result(call, self._spool)

    def _closed(self, number: int, call: ToolCall) -> ToolResult | None:
        if self._orphans == "raise":
            raise UnansweredCall(f"turn {number}: the call {call.id!r} ({call.name}) has no result")
        if self._orphans == "drop":
            self._note("dropped_call", call, number, "it has no result")
            return None
        self._note("closed", call, number, "it has no result")
        return ToolResult.for_call(call, UNAVAILABLE, is_error=True)

    def _note(self, what: What, call: ToolCall, number: int, why: str) -> None:
        self.report.append(Repair(what, call.id, call.name, f"turn {number}", why))


def _calls(turn: Turn) -> list[ToolCall]:
    return [part for part in turn.parts if isinstance(part, ToolCall)]


def _without_results(turn: Turn) -> list[Turn]:
    rest: tuple[Part, ...] = tuple(p for p in turn.parts if not isinstance(p, ToolResult))
    return [msgspec.structs.replace(turn, role="user", parts=rest)] if rest else []
