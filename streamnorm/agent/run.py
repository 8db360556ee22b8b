"""What the user says comes in; the events of all turns go out, tools run between them.

Rule: only a whole call that the client is to run is run, once, after its turn has ended well. Its
result, or what went wrong, goes back in the order of the calls. ``Finish`` is heard when what led
to it is stored. No task group and no cancel scope is open while the reader has control.

Calls that need a person's consent are told as ``Approval`` when everything else of their turn is done
and stored, and the run ends as "paused". A run with ``Decision``s takes them up; see ``consent``.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from ..conversation import Conversation, Text, Turn
from ..encoding.pairs import UNAVAILABLE, Repair
from ..errors import UsageError
from ..events import BrokenToolCall, Event, Failed, Finish, ToolCall
from ..fold import Approval, Decision, Denied
from ..history.errors import ConversationMoved
from ..history.settled import Settled
from ..notes import INFO, log
from ..tools import ToolResult
from .acting import STOPPED, Acting
from .artifacts import artifact_tools
from .circles import LoopGuard, Verdict
from .client_tools import own
from .consent import checked
from .ledger import Ledger
from .outgoing import closed, is_last, opened
from .setup import Setup

__all__ = ["Heard", "Outcome", "Run", "Said"]

Said: TypeAlias = str | Turn | None
Heard: TypeAlias = Event | Settled | Approval | Denied | ToolResult
Outcome: TypeAlias = Literal[
    "running", "finished", "paused", "limit", "stopped", "broken", "failed", "cancelled"
]

UNASKED = "not run: nobody approved it"

ASK_AGAIN = (
    "Your call of {name} could not be read ({why}) and was not run. "
    "Make the call again, with its arguments as one JSON object."
)


class Run:
    """One run of a loop: an async iterator of events, and of ``Settled`` where a tool was run.

    ``Approval`` is told of calls that wait for a person, at the end; ``Denied``, and the ``ToolResult``
    of a call that was decided on before, where a decision is taken up.
    """

    def __init__(
        self,
        setup: Setup,
        said: Said,
        conversation: str | Conversation | None,
        run: str,
        decisions: Iterable[Decision] = (),
    ) -> None:
        if not isinstance(said, str | Turn | None):
            raise UsageError(f"say a text, a Turn or nothing, not {type(said).__name__}")
        if not isinstance(conversation, str | Conversation | None):
            raise UsageError(
                f"a conversation is its id or a Conversation, not {type(conversation).__name__}"
            )
        self._setup, self._said, self._decisions = setup, said, checked(decisions)
        self.id = run
        self.name = conversation if isinstance(conversation, str) else uuid.uuid4().hex
        self.conversation = (
            conversation if isinstance(conversation, Conversation) else Conversation()
        )
        self.outcome: Outcome = "running"
        self.end: Finish | Failed | None = None  # the last event of the last stream
        self.settled: list[Settled] = []
        self._ledger = Ledger(setup, self.name, run)
        self._queue: deque[Heard] = deque()
        self._acting = Acting(setup, self.name, run, self._ledger.settled, self._queue.append)
        self._step: Callable[[], Awaitable[None]] = self._begin
        self._events: Any = None  # the stream that is read
        self._heard: list[Event] = []
        self._calls: Sequence[ToolCall] = ()  # that are this run's to answer
        self._asked = 0
        self._busy = False

    # --- reading ----------------------------------------------------------------------------------

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> Heard:
        if self._busy:
            raise UsageError("this run is being read already")
        self._busy = True
        try:
            while not self._queue and self.outcome == "running":
                await self._step()
        except BaseException:
            self._queue.clear()
            await self._abandon()
            await closed(self._events)
            raise
        finally:
            self._busy = False
        if not self._queue:
            raise StopAsyncIteration
        return self._queue.popleft()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the run where it is; what was to be stored at its end is not, unless it was stopped."""
        if self.outcome == "running" and self._acting.is_stopped:
            await closed(self._events)
            await self._halt("stopped")
        elif self.outcome == "running":
            await self._abandon()
        await closed(self._events)

    def stop(self) -> None:
        """End the run with what is done, which is kept: the answer that is being heard is heard to
        its end, tools that run are waited for, and no call is run and nothing asked after that.

        Read on until the run ends, or leave its ``async with``: then it is stored.
        """
        self._acting.is_stopped = True

    @property
    def text(self) -> str:
        """What the model said last."""
        said = (turn.text for turn in reversed(self.conversation.turns) if turn.role == "assistant")
        return next(said, "")

    @property
    def report(self) -> list[Repair]:
        """What was mended in the requests of this run."""
        return self._ledger.report

    @property
    def guard(self) -> LoopGuard:
        """The guard of this run: it has heard the calls of this run, and no others."""
        return self._acting.guard

    @property
    def verdicts(self) -> list[Verdict]:
        """The circles that the guard saw."""
        return self._acting.verdicts

    # --- the steps: each ends by choosing the next ------------------------------------------------

    async def _begin(self) -> None:
        stored = await self._ledger.load()
        if stored is not None:
            self.conversation = stored
        if self._setup.system is not None:
            self.conversation.system = self._setup.system
        about = self._ledger.matched(self.conversation, self._decisions.values())
        self._ledger.check_idle(self.conversation)
        waiting = {
            id: call
            for id, call in self._ledger.untold(self.conversation, self._turn).items()
            if self._acting.unfit(call) is not None or self._acting.asks(call) is not None
        }
        self._tell_again(call for id, call in about.items() if id not in waiting)
        if not waiting:
            self._go_on()
        elif self._acting.is_stopped:
            self.outcome = "stopped"  # before anything was done
        else:
            await self._decide(waiting)
            self._step = self._take_up

    @property
    def _turn(self) -> Turn | None:
        """What is said, as a turn."""
        return Turn("user", (Text(self._said),)) if isinstance(self._said, str) else self._said

    def _go_on(self) -> None:
        """Ask, with the results that nobody was told yet, and what is said."""
        self._ledger.resume(self.conversation, self._turn)
        self._step = self._ask
        if self._said is None and not self._is_open():
            if not self._decisions:
                raise UsageError("there is nothing to go on with: say something")
            self._queue.append(Finish("stop"))  # all was decided and answered before
            self.outcome = "finished"

    def _is_open(self) -> bool:
        last = self.conversation.turns[-1] if self.conversation.turns else None
        return last is not None and (last.role != "assistant" or bool(last.calls))

    async def _ask(self) -> None:
        if self._acting.is_stopped or self._asked >= self._setup.limit:
            return await self._halt("stopped" if self._acting.is_stopped else "limit")
        self._asked += 1
        self._heard = []
        # What was settled before a crash is told in this run, so its handles are this run's, too.
        forged = artifact_tools([*self._ledger.journal, *self.settled], self._setup.spool)
        tools = [*self._setup.tools, *(tool.tool for tool in forged)]
        self._acting.handlers = self._setup.handlers | {tool.name: tool for tool in forged}
        outgoing = self._ledger.request(self.conversation)
        self._events = await opened(self._setup.send(outgoing, tools))
        self._step = self._hear

    async def _hear(self) -> None:
        async for event in self._events:
            self._heard.append(own(event) if isinstance(event, ToolCall) else event)
            if is_last(event):
                self._step = self._close
            else:
                self._queue.append(event)
            return
        raise UsageError("the stream of send ended without Finish or Failed")

    async def _close(self) -> None:
        """A turn is over: keep it, choose what follows, and only then let its last event be heard."""
        await closed(self._events)
        last = self._heard[-1]
        assert isinstance(last, Finish | Failed)
        self.end = last
        if isinstance(last, Failed):
            self.outcome = "failed"  # the turn is not whole, so it is not kept
            return self._queue.append(last)
        turn = Turn.from_events(self._heard)
        self.conversation.add(turn)
        self._calls = turn.calls
        await self._ledger.answered(self.conversation, turn)
        self._queue.append(last)
        await self._follow(turn, last)

    async def _follow(self, turn: Turn, last: Finish) -> None:
        verdict, acting = self._acting.judged(_ours(turn.broken)), self._acting
        acting.is_stopped |= verdict is not None and verdict.policy == "stop" and not turn.calls
        if turn.calls and last.reason in ("content_filter", "refusal"):
            await self._halt("finished", f"not run: the answer ended with {last.reason}")
        elif acting.is_stopped and (turn.calls or turn.broken or last.reason == "pause"):
            await self._halt("stopped")
        elif turn.calls and self._asked >= self._setup.limit:
            await self._halt("limit", f"not run: this run may ask {self._asked} times")
        elif turn.calls:
            self._step = self._admit
        elif last.reason != "length" and (broken := _ours(turn.broken)):
            self._ask_again(broken[0])
        elif turn.broken and last.reason == "length":
            await self._halt("broken")
        elif last.reason == "pause":
            self._step = self._ask
        else:
            await self._halt("finished")

    async def _admit(self) -> None:
        """Ask for each call of the last turn; those that will run are told before they do."""
        await self._acting.admit(self._calls)
        self._acting.start()
        self._step = self._act

    async def _act(self) -> None:
        """Run the calls of the last turn; their results go back in the order of the calls."""
        await self._acting.serve()
        if self._acting.is_stopped:
            return await self._halt("stopped")
        await self._tell([call for call in self._calls if call.id not in self._acting.waiting])
        if self._acting.waiting:
            await self._pause()
        else:
            self._step = self._ask

    # --- calls that wait for a person -------------------------------------------------------------

    async def _decide(self, waiting: dict[str, ToolCall]) -> None:
        """What was said about the calls that wait. Who says something else has not agreed to them."""
        acting, self._calls = self._acting, list(waiting.values())
        for id, call in waiting.items():
            if id in self._decisions and not acting.is_stopped:
                await acting.decide(call, self._decisions[id])
            elif (why := acting.unfit(call)) is not None:
                acting.refuse(call, why)  # the run broke off before it was told so
            elif self._said is not None:
                acting.refuse(call, UNASKED)
            else:
                acting.waiting[call.id] = acting.asks(call) or ""
        try:
            await self._ledger.claim(self.conversation, acting.begun(), list(acting.done.values()))
        except ConversationMoved:
            self._calls = ()  # somebody else answers them
            raise
        acting.start()

    async def _take_up(self) -> None:
        """Run what was allowed; then the run goes on, or waits for what is not decided yet."""
        await self._acting.serve()
        await self._ledger.release()
        calls = [call for call in self._calls if call.id not in self._acting.waiting]
        records = [record for _, record in self._acting.taken(calls)]
        self._calls = ()
        self.settled += records
        self._queue.extend(records)
        self._ledger.journal += records
        if self._acting.waiting:
            self._ledger.resume(self.conversation, None)
            await self._pause()
        else:
            self._go_on()

    def _tell_again(self, calls: Iterable[ToolCall]) -> None:
        """What came of calls that are decided on once more; they are not run again."""
        for call in calls:
            ids = {"conversation": self.name, "run": self.id, "call_id": call.id}
            log(INFO, "approval.repeated", **ids, name=call.name)
            if (told := self._ledger.outcome_of(self.conversation, call)) is not None:
                self._queue.append(told)

    async def _pause(self) -> None:
        """The end for now: what is done is kept, and only then is anybody asked."""
        await self._ledger.finish(self.conversation, self._acting.withheld)
        asked = [
            Approval(id, own(call), self._acting.waiting[call.id])
            for id, call in self._ledger.open(self.conversation).items()
            if call.id in self._acting.waiting
        ]
        ids = {"conversation": self.name, "run": self.id}
        log(INFO, "loop.paused", **ids, call_ids=[approval.call.id for approval in asked])
        self._queue.extend(asked)
        self.outcome = "paused"

    async def _halt(self, outcome: Outcome, why: str = STOPPED) -> None:
        """The end: calls that were not run stay so, and what is done is kept."""
        last = self.conversation.turns[-1] if self.conversation.turns else None
        if last is not None and last.role == "assistant" and last.calls:
            for call in last.calls:
                if call.id not in self._acting.done:
                    self._acting.withhold(call, why)
            await self._tell(last.calls)
        await self._ledger.finish(self.conversation, self._acting.withheld)
        self.outcome = outcome

    # --- results ----------------------------------------------------------------------------------

    async def _tell(self, calls: Iterable[ToolCall]) -> None:
        """The results of these calls become a turn, and their records are heard."""
        records = [self._acting.done[call.id] for call in calls]
        for record in records:
            if record.started is None:  # refused; those that ran were kept when they were done
                await self._ledger.settled(record)
        self._give_back(calls)
        self._queue.extend(records)

    def _give_back(self, calls: Iterable[ToolCall]) -> None:
        pairs = self._acting.taken(calls)
        self._calls = ()
        if pairs:
            self.conversation.results([r.result(call, self._setup.spool) for call, r in pairs])
        records = [record for _, record in pairs]
        self.settled += records
        self._ledger.given(records)

    async def _abandon(self) -> None:
        """Leave a conversation that can be gone on with: what this run began is answered."""
        self.outcome = "cancelled"
        calls = [call for call in self._calls if call.id not in self._acting.waiting]
        for call in calls:
            if call.id not in self._acting.done:
                self._acting.refuse(call, UNAVAILABLE)
        self._give_back(calls)
        await self._ledger.release()

    def _ask_again(self, broken: BrokenToolCall) -> None:
        why = f"{broken.reason}: {broken.detail}" if broken.detail else broken.reason
        note = ASK_AGAIN.format(name=broken.name or "a tool", why=why)
        self.conversation.user(note)
        self._step = self._ask


def _ours(broken: Iterable[BrokenToolCall]) -> list[BrokenToolCall]:
    """Those that the client was to run; the others are the provider's, and nobody is asked again."""
    return [call for call in broken if call.runs_on == "client"]
