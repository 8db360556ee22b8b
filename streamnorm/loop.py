"""What the user says comes in; the events of all turns go out, tools run between them.

    loop = ToolLoop(send, [read_file, grep], history=SQLiteHistory("chat.db"))
    async with loop.run("Why is the build red?", conversation="build-17") as run:
        async for event in run: ...

Rule: only a whole call that the client is to run is run, once, after its turn has ended well. Its
result, or what went wrong, goes back in the order of the calls. ``Finish`` is heard when what led
to it is stored. No task group and no cancel scope is open while the reader has control.

It is the library used as it is meant to be, and no more: to do something else, copy ``Run``.
"""

from __future__ import annotations

import inspect
import logging
import time
import uuid
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Literal, TypeAlias

import anyio
from anyio import lowlevel, to_thread

from .artifacts import artifact_tools
from .conversation import Conversation, Text, Turn
from .errors import EncodeError, UsageError
from .events import BrokenToolCall, Event, Failed, Finish, ToolCall
from .guard import LoopGuard, Verdict
from .handlers import ClientTool, Given, Running, _running, declared
from .history.base import History, Stored
from .history.errors import UnknownConversation
from .persist import (
    HistoryWarning,
    OnConflict,
    Outgoing,
    PersistEachCall,
    Send,
    ServiceIds,
    closed,
    is_last,
    opened,
    persists_each_call,
    store,
)
from .repairing import UNAVAILABLE, Mended, Orphans, Repair, mend
from .settled import Settled, as_results
from .spool import Spool
from .text import clean
from .tools import ToolResult

__all__ = ["Outcome", "Run", "ToolLoop"]

Said: TypeAlias = str | Turn | None
Approve: TypeAlias = Callable[[ToolCall], bool | str | Awaitable[bool | str]]
Outcome: TypeAlias = Literal[
    "running", "finished", "limit", "stopped", "broken", "failed", "cancelled"
]

LIMIT = 20  # calls of the model in one run
CONCURRENCY = 8  # handlers at the same time
TIMEOUT = 120.0  # seconds for one handler
THREADS = 64  # for handlers, also for those that took too long and still run

ASK_AGAIN = (
    "Your call of {name} could not be read ({why}) and was not run. "
    "Make the call again, with its arguments as one JSON object."
)


class ToolLoop:
    """Asks the model, runs the tools it calls, and asks again until it stops calling.

    ``send(outgoing, tools)`` posts the conversation and returns its ``Stream`` (or an awaitable of
    one). ``tools``: functions, ``ClientTool``, ``(Tool, handler)``, or a bare ``Tool`` that the
    provider runs.

    ``history`` and ``persist``: ``"run"`` stores all of a run when it has ended, or nothing;
    ``"call"`` after each call of the model. ``trim`` leaves out results at the end of a run that
    were never sent. ``as_is`` says that ``send`` is a stack of your own, to be left as it is.

    ``approve(call)`` is asked before each call: True, or False, or why not. ``guard`` watches for
    circles, ``limit`` counts calls of the model, ``orphans`` says what becomes of calls without a
    result (see ``streamnorm.repair``). ``service_id(turn)`` finds the name under which the service
    keeps the conversation itself; ``on_conflict`` what to do if the history keeps it, too.
    """

    def __init__(
        self,
        send: Send,
        tools: Iterable[Given] = (),
        *,
        history: History | None = None,
        persist: Literal["run", "call"] = "run",
        as_is: bool = False,
        trim: bool = False,
        system: str | None = None,
        limit: int = LIMIT,
        concurrency: int = CONCURRENCY,
        timeout: float | None = TIMEOUT,
        approve: Approve | None = None,
        guard: LoopGuard | None = None,
        spool: Spool | None = None,
        orphans: Orphans = "error",
        service_id: Callable[[Turn], str | None] | None = None,
        on_conflict: OnConflict = "raise",
    ) -> None:
        if persist not in ("run", "call"):
            raise UsageError(f'persist is "run" or "call", not {persist!r}')
        self.tools, self.handlers = declared(tools)
        self.history, self.persist, self.trim = history, persist, trim
        self.system, self.limit, self.orphans = system, limit, orphans
        self.concurrency, self.timeout = concurrency, timeout
        self.approve, self.guard = approve, guard
        self.spool = spool or Spool()
        self.service_ids = ServiceIds(service_id, on_conflict)
        self.send = self._stack(send, as_is)

    def run(
        self,
        said: Said = None,
        *,
        conversation: str | Conversation | None = None,
        run: str | None = None,
    ) -> Run:
        """The user says something; or nothing, to go on where a conversation stopped.

        ``conversation`` is its id in the history, or a ``Conversation`` of yours, which then grows.
        ``run`` names this run; the same name again stores nothing twice.
        """
        if isinstance(conversation, Conversation) and self.history is not None:
            raise UsageError("with a history a conversation is named by its id")
        return Run(self, said, conversation, run or uuid.uuid4().hex)

    def _stack(self, send: Send, as_is: bool) -> Send:
        """The seed's table: who persists, by whose stack it is and when it is to be done."""
        if self.history is None or self.persist == "run":
            return send
        if not as_is:
            return PersistEachCall(send, self.history, service_ids=self.service_ids)
        if not persists_each_call(send):
            warnings.warn(
                "persist='call' with as_is=True leaves persistence to your own stack, and there is "
                "no PersistEachCall in it: nothing is stored unless you do it",
                HistoryWarning, stacklevel=3,
            )  # fmt: skip
        return send


class Run:
    """One run of a loop: an async iterator of events, and of ``Settled`` where a tool was run."""

    def __init__(
        self, loop: ToolLoop, said: Said, conversation: str | Conversation | None, run: str
    ) -> None:
        self._loop, self._said = loop, said
        self.id = run
        self.name = conversation if isinstance(conversation, str) else uuid.uuid4().hex
        self.conversation = (
            conversation if isinstance(conversation, Conversation) else Conversation()
        )
        self.outcome: Outcome = "running"
        self.end: Finish | Failed | None = None  # the last event of the last stream
        self.settled: list[Settled] = []
        self.report: list[Repair] = []
        self.verdicts: list[Verdict] = []
        self._guard = loop.guard.fresh() if loop.guard else None
        self._queue: deque[Event | Settled] = deque()
        self._step: Callable[[], Awaitable[None]] = self._begin
        self._events: Any = None  # the stream that is read
        self._heard: list[Event] = []
        self._outgoing = Outgoing(id=self.name, run=run)
        self._journal: list[Settled] = []  # of earlier runs, not in a turn
        self._stored = 0  # how many turns the history has
        self._seen = 0  # how many turns the service has
        self._unstored: list[Settled] = []
        self._sequence = self._asked = 0
        self._acting: dict[str, Settled] = {}  # what is settled of the calls that run now
        self._busy = False

    # --- reading ----------------------------------------------------------------------------------

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> Event | Settled:
        if self._busy:
            raise UsageError("this run is being read already")
        self._busy = True
        try:
            while not self._queue and self.outcome == "running":
                await self._step()
        except BaseException:
            self._queue.clear()
            self._abandon()
            await closed(self._events)
            raise
        finally:
            self._busy = False
        if not self._queue:
            raise StopAsyncIteration
        return self._queue.popleft()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the run where it is; what was to be stored at its end is not."""
        if self.outcome == "running":
            self._abandon()
        await closed(self._events)

    @property
    def text(self) -> str:
        """What the model said last."""
        said = (turn.text for turn in reversed(self.conversation.turns) if turn.role == "assistant")
        return next(said, "")

    # --- the steps: each ends by choosing the next ------------------------------------------------

    async def _begin(self) -> None:
        stored = await self._load()
        if stored is not None:
            self.conversation = stored.conversation
            self._stored, self._journal = len(stored.turns), stored.journal
            self._outgoing.service_id = stored.service_id
            # A service that keeps the turns alone did so in earlier runs: there are none here.
            self._outgoing.is_service_kept = stored.service_id is not None and not stored.turns
        if self._loop.system is not None:
            self.conversation.system = self._loop.system
        self._resume()
        if self._said is not None:
            turn = Turn("user", (Text(self._said),)) if isinstance(self._said, str) else self._said
            self.conversation.add(turn)
        elif not self._is_open():
            raise UsageError("there is nothing to go on with: say something")
        self._step = self._ask

    async def _ask(self) -> None:
        if self._asked >= self._loop.limit:
            return await self._finish("limit")
        self._asked += 1
        out = self._outgoing = self._request()
        self._heard = []
        # What was settled before a crash is told in this run, so its handles are this run's, too.
        forged = artifact_tools([*self._journal, *self.settled], self._loop.spool)
        tools = [*self._loop.tools, *(tool.tool for tool in forged)]
        self._handlers = self._loop.handlers | {tool.name: tool for tool in forged}
        self._events = await opened(self._loop.send(out, tools))
        self._step = self._hear

    async def _hear(self) -> None:
        async for event in self._events:
            self._heard.append(event)
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
        await self._keep(turn)
        self._queue.append(last)
        await self._follow(turn, last)

    async def _follow(self, turn: Turn, last: Finish) -> None:
        verdict = self._judged(turn.broken)
        if turn.calls and last.reason in ("content_filter", "refusal"):
            await self._answer_all(turn.calls, f"not run: the answer ended with {last.reason}")
            await self._finish("finished")
        elif turn.calls and self._asked >= self._loop.limit:
            await self._answer_all(turn.calls, f"not run: this run may ask {self._asked} times")
            await self._finish("limit")
        elif turn.calls:
            self._step = self._act
        elif verdict is not None and verdict.policy == "stop":
            await self._finish("stopped")
        elif turn.broken and last.reason != "length":
            self._ask_again(turn.broken[0])
        elif turn.broken:
            await self._finish("broken")
        elif last.reason == "pause":
            self._step = self._ask
        else:
            await self._finish("finished")

    async def _act(self) -> None:
        """Run the calls of the last turn, side by side; their results in the order of the calls."""
        calls = self.conversation.turns[-1].calls
        self._acting = {}
        allowed, stopped = [], False
        for call in calls:
            stopped = stopped or not await self._may_run(call)
            if stopped:
                self._refuse(call, "not run: the run was stopped")
            elif call.id not in self._acting:
                allowed.append(call)
        limiter = anyio.CapacityLimiter(self._loop.concurrency)
        try:
            async with anyio.create_task_group() as group:
                for call in allowed:
                    group.start_soon(self._serve, call, limiter)
        except ExceptionGroup as several:  # of the history; what a handler raises is a result
            raise several.exceptions[0] from None
        await self._tell(calls)
        if stopped:
            await self._finish("stopped")
        else:
            self._step = self._ask

    async def _finish(self, outcome: Outcome) -> None:
        loop = self._loop
        if loop.history is not None and loop.persist == "run":
            turns, settled = self._untold(), self._unstored
            if loop.trim and turns and turns[-1].role == "tool":
                gone = {result.call.id for result in turns[-1].results}
                turns = turns[:-1]
                settled = [record for record in settled if record.id not in gone]
            self._outgoing.stored = self._stored
            with anyio.CancelScope(shield=True):
                await store(loop.history, self._outgoing, turns, settled, 0)
        self.outcome = outcome

    # --- history ----------------------------------------------------------------------------------

    async def _load(self) -> Stored | None:
        if self._loop.history is None:
            return None
        try:
            return await self._loop.history.load(self.name)
        except UnknownConversation:
            return None

    def _resume(self) -> None:
        """What handlers gave before a crash, and nobody was told, is told now."""
        last = self.conversation.turns[-1] if self.conversation.turns else None
        done = {(record.id, record.checksum): record for record in self._journal}
        found = [(c, done.get((c.id, c.checksum))) for c in (last.calls if last else ())]
        results = [record.result(call, self._loop.spool) for call, record in found if record]
        if results:
            self.conversation.results(results)

    def _is_open(self) -> bool:
        last = self.conversation.turns[-1] if self.conversation.turns else None
        return last is not None and (last.role != "assistant" or bool(last.calls))

    def _request(self) -> Outgoing:
        before, conversation = self._outgoing, self.conversation
        if before.is_service_kept:  # the turns that it has not seen; it knows the calls before them
            unseen = Conversation(conversation.turns[self._seen :], conversation.system)
            mended, report = Mended(unseen)
        else:
            mended, report = mend(
                conversation,
                orphans=self._loop.orphans, settled=self._journal, spool=self._loop.spool,
            )  # fmt: skip
        self.report += [row for row in report if row not in self.report]
        return Outgoing(
            list(mended.turns), conversation.system, self.name, self.id, self._sequence, self._untold(),
            self._stored, list(self._unstored), before.service_id, before.is_service_kept, report,
        )  # fmt: skip

    def _untold(self) -> list[Turn]:
        """The turns that the history does not have."""
        return list(self.conversation.turns[self._stored :])

    async def _keep(self, turn: Turn) -> None:
        """The service has seen all up to this turn; and if calls are stored, so is it."""
        loop, out = self._loop, self._outgoing
        self._seen = len(self.conversation.turns)
        if loop.persist == "call":
            self._stored, self._sequence, self._unstored = self._seen, self._sequence + 1, []
            return
        loop.service_ids.hear(out, turn, has_history=loop.history is not None)
        if loop.history is not None and out.service_id is not None:
            with anyio.CancelScope(shield=True):
                await loop.history.create(out.id, system=out.system)
                await loop.history.keep_service_id(out.id, out.service_id)

    async def _journalled(self, record: Settled) -> None:
        """Keep what a handler gave at once; its turn is stored only after it was sent."""
        history, out = self._loop.history, self._outgoing
        if history is None or self._loop.persist == "run" or out.is_service_kept:
            return
        if persists_each_call(self._loop.send):
            with anyio.CancelScope(shield=True):
                await history.settle(self.name, record)

    def _abandon(self) -> None:
        """Leave a conversation that can be gone on with: no call of it stays unanswered."""
        self.outcome = "cancelled"
        last = self.conversation.turns[-1] if self.conversation.turns else None
        if last is not None and last.role == "assistant" and last.calls:
            for call in last.calls:
                if call.id not in self._acting:
                    self._refuse(call, UNAVAILABLE)
            self._give_back(last.calls)

    # --- one call ---------------------------------------------------------------------------------

    def _judged(self, broken: Iterable[BrokenToolCall | ToolCall]) -> Verdict | None:
        """The last verdict of the guard on these calls."""
        found = None
        for call in broken if self._guard else ():
            assert self._guard is not None
            if (verdict := self._guard.heard(call)) is not None:
                self.verdicts.append(verdict)
                logging.getLogger("streamnorm").warning("loop.circle: %s", clean(verdict.message))
                found = verdict
        return found

    async def _may_run(self, call: ToolCall) -> bool:
        """False if the run is to stop here. A call that is only refused has its answer already."""
        verdict = self._judged([call])
        if verdict is not None and verdict.policy == "stop":
            return False
        if verdict is not None and verdict.policy == "answer":
            self._refuse(call, f"not run: {verdict.message}; do something else")
        elif self._loop.approve is not None:
            said = self._loop.approve(call)
            said = await said if inspect.isawaitable(said) else said
            if said is not True:
                self._refuse(call, f"not run: {said or 'it was not approved'}")
        return True

    async def _serve(self, call: ToolCall, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            began, clock = time.time(), time.perf_counter()
            tool = self._handlers.get(call.name)
            if tool is None:
                known = ", ".join(self._handlers) or "none"
                return self._refuse(call, f"there is no tool {call.name!r}; there are: {known}")
            results, error = await self._outcome_of(call, tool)
            record = self._record(call, tool, results, error, began, time.perf_counter() - clock)
        await self._journalled(record)
        self._acting[call.id] = record

    async def _outcome_of(self, call: ToolCall, tool: ClientTool) -> tuple[Any, str | None]:
        """What the handler gave, or what went wrong."""
        token = _running.set(Running(call, self.name, self.id))
        try:
            with anyio.fail_after(self._loop.timeout):
                value = await self._called(tool, call.arguments)
                if tool.is_artifact_tool:
                    return value, None
                # In a thread, as large results go to the disk.
                return await to_thread.run_sync(as_results, value, self._loop.spool), None
        except TimeoutError as error:
            why = (
                str(error) or f"no result within {self._loop.timeout:g} s; it may still be running"
            )
            return None, why
        except Exception as error:  # noqa: BLE001  (whatever a tool raises is told to the model)
            return None, f"{type(error).__name__}: {error}"
        finally:
            _running.reset(token)

    async def _called(self, tool: ClientTool, arguments: dict[str, Any]) -> Any:
        if tool.is_async:
            return await tool.handler(arguments)
        # A thread cannot be ended. It is left behind when the time is up, and counts as used until
        # it is done.
        value = await to_thread.run_sync(
            tool.handler, arguments, abandon_on_cancel=True, limiter=_threads()
        )
        return await value if inspect.isawaitable(value) else value

    def _record(
        self, call: ToolCall, tool: ClientTool, results: Any, error: str | None,
        started: float, seconds: float,
    ) -> Settled:  # fmt: skip
        more: dict[str, Any] = {
            "started": started,
            "seconds": seconds,
            "from_artifact_tool": tool.is_artifact_tool,
        }
        if error is not None:
            return Settled.of(call, error=error, **more)
        try:
            inline = tool.inline(results) if callable(tool.inline) else tool.inline
            record = Settled.of(call, results, inline=inline, **more)
            record.result(call, self._loop.spool)  # can it be said at all?
        except (EncodeError, UsageError) as trouble:
            return Settled.of(call, error=f"{type(trouble).__name__}: {trouble}", **more)
        return record

    def _refuse(self, call: ToolCall, why: str) -> None:
        self._acting[call.id] = Settled.of(call, error=why)

    async def _answer_all(self, calls: Iterable[ToolCall], why: str) -> None:
        for call in calls:
            self._refuse(call, why)
        await self._tell(calls)

    async def _tell(self, calls: Iterable[ToolCall]) -> None:
        """The results of these calls become a turn, and their records are heard."""
        records = [self._acting[call.id] for call in calls]
        for record in records:
            if record.started is None:  # refused; those that ran were kept when they were done
                await self._journalled(record)
        self._give_back(calls)
        self._queue.extend(records)

    def _give_back(self, calls: Iterable[ToolCall]) -> None:
        records = [(call, self._acting[call.id]) for call in calls]
        self._acting = {}
        results: list[ToolResult] = [r.result(call, self._loop.spool) for call, r in records]
        self.conversation.results(results)
        self.settled += [record for _, record in records]
        self._unstored += [record for _, record in records]

    def _ask_again(self, broken: BrokenToolCall) -> None:
        why = f"{broken.reason}: {broken.detail}" if broken.detail else broken.reason
        note = ASK_AGAIN.format(name=broken.name or "a tool", why=why)
        self.conversation.user(note)
        self._step = self._ask


def _threads() -> anyio.CapacityLimiter:
    """The threads of handlers, apart from those that everything else shares; one per event loop."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter


_limiter: lowlevel.RunVar[anyio.CapacityLimiter] = lowlevel.RunVar("streamnorm_threads")
