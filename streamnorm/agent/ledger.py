"""The turns of a run come in; requests go out, and commits to the history.

Rule: it knows what the history has, what the service has and what neither has, and nothing of how a
turn came about. Nothing is stored twice, and a commit that has begun is not cut by cancelling.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import TypeAlias

import anyio
import msgspec

from ..conversation import Conversation, Part, Turn
from ..encoding.mending import Mended, mend
from ..encoding.pairs import Repair
from ..errors import UsageError
from ..events import ToolCall
from ..fold import Decision
from ..history.errors import ConversationMoved, ForeignResult, UnknownConversation
from ..history.settled import Settled, fresh
from ..notes import WARNING, log
from ..tools import ToolResult
from .claims import Claimant, is_held, is_live
from .client_tools import own
from .consent import matched, question
from .outgoing import KEPT_HERE, Outgoing
from .persist import store
from .setup import NOTHING_TO_TAKE_UP, Setup

__all__ = ["Ledger"]

_Key: TypeAlias = tuple[str, str]  # a call's id and checksum


class Ledger:
    """What is stored of one run, and who has seen it."""

    def __init__(self, setup: Setup, conversation: str, run: str) -> None:
        self._setup, self._name, self._run = setup, conversation, run
        self.report: list[Repair] = []
        self.journal: list[Settled] = []  # of earlier runs, not in a turn
        self._outgoing = Outgoing(id=conversation, run=run)
        self._stored = 0  # how many turns the history has
        self._seen = 0  # how many turns the service has
        self._unstored: list[Settled] = []
        self._sequence = 0
        self._running: list[Settled] = []  # claims of others, who are at it
        self._claimant = Claimant()
        self._claimed: dict[str, Settled] = {}  # calls that only this run may settle

    async def load(self) -> Conversation | None:
        """The conversation as the history has it; None if there is none."""
        if self._setup.history is None:
            return None
        try:
            stored = await self._setup.history.load(self._name)
        except UnknownConversation:
            return None
        self._running = [r for r in stored.journal if r.claim is not None and is_live(r.claim)]
        self._stored, self.journal = (
            len(stored.turns),
            [r if r.claim is None else r.claimed(None) for r in stored.journal],
        )
        self._outgoing.is_service_kept = stored.is_handed_over
        if stored.is_handed_over and self._setup.asks:
            raise UsageError(NOTHING_TO_TAKE_UP)
        if stored.is_handed_over and stored.service_id is not None:
            if self._setup.persist == "run":  # else the stack hears of it
                self._setup.service_ids.expect(self._name, stored.service_id)
            self._outgoing.service_id = stored.service_id
        return stored.conversation

    # --- calls that wait for a person -------------------------------------------------------------

    @property
    def _scope(self) -> str:
        return self._name if self._setup.history is not None else ""

    def open(self, conversation: Conversation) -> dict[str, ToolCall]:
        """The calls of the last answer that no turn has a result of, by their questions."""
        number, calls = _unanswered(conversation)
        return {question(self._scope, number, call): call for call in calls}

    def untold(self, conversation: Conversation, said: Turn | None) -> dict[str, ToolCall]:
        """Those of which there is no record either, and no result in what is said."""
        told = {(record.id, record.checksum) for record in self.journal}
        told |= {(r.call.id, r.call.checksum) for r in (said.results if said else ())}
        calls = self.open(conversation)
        return {id: c for id, c in calls.items() if (c.id, c.checksum) not in told}

    def matched(
        self, conversation: Conversation, decisions: Collection[Decision]
    ) -> dict[str, ToolCall]:
        """The calls that these decisions are about, waiting or not."""
        return matched(self._scope, conversation, decisions)

    def outcome_of(self, conversation: Conversation, call: ToolCall) -> Settled | ToolResult | None:
        """What came of a call, as far as anybody knows."""
        key = call.id, call.checksum
        for record in self.journal:
            if (record.id, record.checksum) == key:
                return record
        results = (result for turn in conversation.turns for result in turn.results)
        return next((r for r in results if (r.call.id, r.call.checksum) == key), None)

    def check_idle(self, conversation: Conversation) -> None:
        """Nobody goes on with a conversation while somebody runs its calls: a result would be lost."""
        if self._setup.history is None:
            self._check_held(conversation)
        if self._running:
            record = self._running[0]
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.started))
            raise ConversationMoved(
                f"the call {record.id!r} ({record.name}) of {self._name!r} was allowed and is running "
                f"since {since}; try again when it is done"
            )

    def _check_held(self, conversation: Conversation) -> None:
        for call in _unanswered(conversation)[1]:
            if is_held(conversation, call.id):
                raise ConversationMoved(
                    f"the call {call.id!r} ({call.name}) was allowed and is running; try again when "
                    "it is done"
                )

    def _hold(self, conversation: Conversation, records: list[Settled]) -> None:
        """Without a history nobody but this process knows what is running."""
        self._check_held(conversation)
        left = {call.id for call in _unanswered(conversation)[1]}
        if gone := [record.id for record in records if record.id not in left]:
            raise ConversationMoved(f"somebody else has decided on {', '.join(gone)}")
        self._claimant.hold(conversation, (record.id for record in records))

    async def claim(
        self, conversation: Conversation, begun: list[Settled], decided: list[Settled]
    ) -> None:
        """From now on these calls, to be run or not, are this run's, or it ends here."""
        history, setup, records = self._setup.history, self._setup, [*begun, *decided]
        if history is None:
            self._hold(conversation, records)
        if history is None or not records:
            return
        claim = self._claimant.begin(setup.timeout, math.ceil(len(begun) / setup.concurrency))
        claimed = [record.claimed(claim) for record in begun]
        with anyio.CancelScope(shield=True):
            if not await history.claim(self._name, [*claimed, *decided]):
                raise ConversationMoved(
                    f"somebody else has decided on {', '.join(r.id for r in records)} in "
                    f"{self._name!r}; load it again"
                )
        self._claimed = {record.id: record for record in begun}

    async def release(self) -> None:
        """This run runs nothing any more; calls that it leaves undone are no longer claimed."""
        self._claimant.end()
        left, self._claimed = list(self._claimed.values()), {}
        history = self._setup.history
        if history is None or not left:
            return
        with anyio.CancelScope(shield=True):
            try:
                for record in left:
                    await history.settle(self._name, record)
            except Exception as error:  # noqa: BLE001  (why the run ends is what its reader hears)
                ids = {"conversation": self._name, "run": self._run}
                log(WARNING, "approval.unreleased", **ids, reason=str(error))

    # --- turns ------------------------------------------------------------------------------------

    def resume(self, conversation: Conversation, said: Turn | None) -> None:
        """Add what a run begins with: results that nobody was told yet, and what is said.

        A result that is supplied counts before one of the journal, and after one that is stored.
        """
        supplied, rest = self._supplied(conversation, said)
        done = {(record.id, record.checksum): record for record in self.journal}
        results: list[ToolResult] = []
        for call in _unanswered(conversation)[1]:
            key = call.id, call.checksum
            if key in supplied:
                results.append(supplied.pop(key))
            elif key in done:
                results.append(done[key].result(call, self._setup.spool))
        results += supplied.values()  # of older calls, or of calls that only the service knows
        if results:
            conversation.results(results)
        if rest is not None:
            conversation.add(rest)

    def _supplied(
        self, conversation: Conversation, said: Turn | None
    ) -> tuple[dict[_Key, ToolResult], Turn | None]:
        """The results in what is said, by their calls, and the rest of it."""
        if said is None or not said.results:
            return {}, said
        supplied = {(r.call.id, r.call.checksum): r for r in said.results}
        if self._setup.history is None:
            _take_back(conversation, supplied)
        elif not self._outgoing.is_service_kept:
            self._check(conversation, supplied)
        parts = tuple(part for part in said.parts if not isinstance(part, ToolResult))
        rest = msgspec.structs.replace(said, role="user", parts=parts) if parts else None
        return supplied, rest

    def _check(self, conversation: Conversation, supplied: dict[_Key, ToolResult]) -> None:
        """No result without its call; one that is stored stays as it is."""
        known = {(call.id, call.checksum) for turn in conversation.turns for call in turn.calls}
        for key, result in list(supplied.items()):
            if key not in known:
                raise ForeignResult(
                    f"the conversation {self._name!r} has no such call {result.call.id!r} "
                    f"({result.call.name})"
                )
        for number, turn in enumerate(conversation.turns):
            for result in turn.results:
                if supplied.pop((result.call.id, result.call.checksum), None) is not None:
                    why = "the call has a result already"
                    row = Repair("dropped_result", result.call.id, result.call.name,
                                 f"turn {number}", why)  # fmt: skip
                    self.report.append(row)

    def request(self, conversation: Conversation) -> Outgoing:
        """What is sent now."""
        before, setup = self._outgoing, self._setup
        if before.is_service_kept:  # the turns that it has not seen; it knows the calls before them
            unseen = Conversation(conversation.turns[self._seen :], conversation.system)
            mended, report = Mended(unseen)
        else:
            mended, report = mend(
                conversation, orphans=setup.orphans, settled=self.journal, spool=setup.spool
            )
        self.report += [row for row in report if row not in self.report]
        is_kept = before.is_service_kept
        self._outgoing = Outgoing(
            _copied(mended.turns), conversation.system, self._name, self._run, self._sequence,
            list(conversation.turns[self._stored :]), 0 if is_kept else self._stored,
            list(self._unstored), before.service_id if is_kept else None, is_kept, report,
            before.is_stored,
        )  # fmt: skip
        return self._outgoing

    async def answered(self, conversation: Conversation, turn: Turn) -> None:
        """The service has seen all up to this turn; and if calls are stored, so is it."""
        setup = self._setup
        self._seen = len(conversation.turns)
        if setup.history is not None and setup.persist == "call":
            self._stored, self._sequence, self._unstored = self._seen, self._sequence + 1, []
        else:
            has_history = setup.history is not None
            setup.service_ids.hear(self._outgoing, turn, has_history=has_history)

    async def settled(self, record: Settled) -> None:
        """Keep what a handler gave at once; its turn is stored only after it was sent."""
        history = self._setup.history
        # Taken out first: if it is not known whether this was stored, nothing may be put over it. And
        # some servers use an id again.
        is_claimed = self._claimed.pop(record.id, None) is not None
        is_kept = is_claimed or self._outgoing.conversation_id == KEPT_HERE
        if history is not None and is_kept:
            with anyio.CancelScope(shield=True):
                await history.settle(self._name, record)

    def given(self, records: list[Settled]) -> None:
        """These records have become a turn of the conversation."""
        self._unstored += records

    async def finish(self, conversation: Conversation, withheld: set[str]) -> None:
        """The run has ended well: if runs are stored, so is this one.

        What the service has not seen is stored only if it is a result, and wanted. The record of a
        result that is left out is kept beside the turns, as it is per call.
        """
        setup = self._setup
        if setup.history is None or setup.persist == "call" or self._seen <= self._stored:
            return
        turns = conversation.turns[self._stored : self._seen]
        for turn in conversation.turns[self._seen :]:
            kept = tuple(r for r in turn.results if r.call.id not in withheld)
            if kept and not setup.trim:
                turns.append(msgspec.structs.replace(turn, parts=kept))
        self._outgoing.stored = self._stored
        with anyio.CancelScope(shield=True):
            await store(setup.history, self._outgoing, turns, self._unstored, 0)


def _copied(turns: list[Turn]) -> list[Turn]:
    """The same turns with calls of their own, as a ``send`` may change what it is given."""
    calls: dict[int, ToolCall] = {}  # a call and its result stay one

    def copied(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return calls.setdefault(id(part), own(part))
        if isinstance(part, ToolResult):
            return msgspec.structs.replace(
                part, call=calls.setdefault(id(part.call), own(part.call)), value=fresh(part.value)
            )
        return part

    return [
        msgspec.structs.replace(turn, parts=tuple(copied(part) for part in turn.parts))
        if any(isinstance(part, ToolCall | ToolResult) for part in turn.parts)
        else turn
        for turn in turns
    ]


def _unanswered(conversation: Conversation) -> tuple[int, list[ToolCall]]:
    """The place of the last answer, and its calls that have no result."""
    answered: set[_Key] = set()
    for number, turn in reversed(list(enumerate(conversation.turns))):
        if turn.role == "assistant":
            return number, [c for c in turn.calls if (c.id, c.checksum) not in answered]
        answered |= {(result.call.id, result.call.checksum) for result in turn.results}
    return 0, []


def _take_back(conversation: Conversation, supplied: dict[_Key, ToolResult]) -> None:
    """Of results that stand at the end, and so were never sent, those that are supplied anew go."""
    while conversation.turns and conversation.turns[-1].role == "tool":
        last = conversation.turns[-1]
        kept = tuple(
            part for part in last.parts
            if not (isinstance(part, ToolResult) and (part.call.id, part.call.checksum) in supplied)
        )  # fmt: skip
        if len(kept) == len(last.parts):
            return
        conversation.turns.pop()
        if kept:
            conversation.turns.append(msgspec.structs.replace(last, parts=kept))
            return
