"""The calls of one turn come in; a settled record for each goes out.

Rule: a call is run once, after it was allowed, beside the others of its turn. What needs a person's
consent waits and is run after ``decide`` alone, and only what is in ``_going`` is ever run. Whatever a
handler raises is a record with an error; only an error of the history ends the run.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import anyio
import msgspec
from anyio import lowlevel, to_thread

from ..encoding.pairs import UNAVAILABLE
from ..events import BrokenToolCall, Event, ToolCall, ToolEnded, ToolOutcome, ToolStarted
from ..fold import Decision, Denied, denial
from ..history.settled import Settled, as_results, fresh
from ..notes import INFO, WARNING, log
from ..text.written import json_text
from .checking import Unfit
from .circles import LoopGuard, Verdict
from .client_tools import ClientTool, Running, Stop, own, serving
from .setup import Setup

__all__ = ["Acting"]

THREADS = 64  # for handlers, also for those that took too long and still run


STOPPED = "not run: the run was stopped"
MISFIT = "the arguments do not fit"
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
_Outcome: TypeAlias = tuple[Any, str | None, ToolOutcome]


class _Came:
    """What came of a handler. If nothing did, it was cancelled."""

    def __init__(self) -> None:
        self.began, self._clock = time.time(), time.perf_counter()
        self.outcome: ToolOutcome = "cancelled"
        self.record: Settled | None = None

    @property
    def seconds(self) -> float:
        """How long it took until now."""
        return time.perf_counter() - self._clock


class Acting:
    """Serves the calls of one run, turn by turn. ``done`` are the records of the present turn.

    ``withheld`` are those of its calls that were not run because the run ends: nobody has decided
    on them, so their results may still be supplied when the conversation goes on. ``waiting`` are
    those that a person must agree to first, by their ids, with what there is to agree to.
    """

    def __init__(
        self,
        setup: Setup,
        conversation: str,
        run: str,
        keep: Callable[[Settled], Awaitable[None]],
        tell: Callable[[Event | Denied], None],
    ) -> None:
        self._setup, self._conversation, self._run = setup, conversation, run
        self._keep, self._tell = keep, tell
        self.guard = setup.guard.fresh() if setup.guard else LoopGuard.counting()
        self.handlers: dict[str, ClientTool] = setup.handlers
        self.verdicts: list[Verdict] = []
        self.done: dict[str, Settled] = {}
        self.withheld: set[str] = set()
        self.waiting: dict[str, str] = {}
        self._going: list[tuple[ToolCall, ToolCall]] = []  # as it was said, and as it will be run
        self.is_stopped = False  # by the guard, approve, a tool, until, or the caller

    def judged(self, calls: Iterable[BrokenToolCall | ToolCall]) -> Verdict | None:
        """The last verdict of the guard on these calls."""
        found = None
        for call in calls:
            if (verdict := self.guard.heard(call)) is not None:
                self.verdicts.append(verdict)
                self._log(
                    WARNING, "loop.circle", call, name=verdict.name, pattern=verdict.pattern,
                    times=verdict.times, policy=verdict.policy, reason=verdict.message,
                )  # fmt: skip
                found = verdict
        return found

    def _log(self, level: int, event: str, call: BrokenToolCall | ToolCall, **facts: Any) -> None:
        """One line, with the ids of the conversation, the run and the call."""
        ids = {"conversation": self._conversation, "run": self._run, "call_id": call.id}
        log(level, event, **ids, **facts)

    def refuse(self, call: ToolCall, why: str) -> None:
        """This call is not run, and answered with why."""
        self.done[call.id] = Settled.of(call, error=why)

    def withhold(self, call: ToolCall, why: str = STOPPED) -> None:
        """This call is not run, as the run ends."""
        self.refuse(call, why)
        self.withheld.add(call.id)

    def taken(self, calls: Iterable[ToolCall]) -> list[tuple[ToolCall, Settled]]:
        """The records of these calls, in their order; the turn is over."""
        pairs = [(call, self.done[call.id]) for call in calls]
        self.done = {}
        return pairs

    async def admit(self, calls: Sequence[ToolCall]) -> None:
        """Each call may run, or has its answer already, or waits for a person's."""
        self.done = {}
        for call in calls:
            may = not self.is_stopped and await self._may_run(call)
            if self.is_stopped and call.id not in self.done:
                self.withhold(call)
            elif may and (why := self.asks(call)) is not None:
                self._wait(call, why)
            elif may:
                self._going.append((call, call))

    async def decide(self, call: ToolCall, decision: Decision) -> None:
        """A person's word on a call that waits: it may run, is denied, or waits on if it cannot run
        with the arguments that the person gave."""
        run = call if decision.arguments is None else _edited(call, decision.arguments)
        facts = {"name": call.name, "checksum": run.checksum, "edited": run is not call}
        if not decision.allow:
            self._log(INFO, "approval.denied", call, name=call.name, reason=decision.reason)
            self.refuse(call, denial(decision.reason))
            self._tell(Denied(call, decision.reason))
        elif (misfit := self._misfit(run)) is not None:
            self._log(INFO, "approval.unfit", call, **facts, reason=misfit)
            if (why := self.unfit(call)) is None:
                self._wait(call, misfit)
            else:
                self.refuse(call, why)
        elif await self._is_approved(call, run):
            self._log(INFO, "approval.allowed", call, **facts)
            self._going.append((call, run))

    def unfit(self, call: ToolCall) -> str | None:
        """The answer to a call that needs consent and cannot run as it is: nobody is asked about it."""
        tool = self.handlers.get(call.name)
        misfit = self._misfit(call) if tool is not None and tool.consent is not False else None
        return None if misfit is None else f"not run: {misfit}"

    def asks(self, call: ToolCall) -> str | None:
        """What a person must agree to before this call is run; None: nobody need be asked.

        A consent function that fails has not said that nobody need be.
        """
        tool = self.handlers.get(call.name)
        try:
            return None if tool is None else tool.asks(call)
        except Exception as error:  # noqa: BLE001  (a function of the tool's own)
            reason = _words(error)
            self._log(WARNING, "approval.unclear", call, name=call.name, reason=reason)
            return ""

    def _wait(self, call: ToolCall, why: str) -> None:
        self.waiting[call.id] = why

    def begun(self) -> list[Settled]:
        """What is to be known of the calls that will run now, should nobody say more of them."""
        began = time.time()
        return [
            Settled.of(call, error=UNAVAILABLE, started=began, edited=_changed(call, run))
            for call, run in self._going
        ]

    def start(self) -> None:
        """Tell of each call that will run now."""
        for _, run in self._going:
            self._tell(ToolStarted(run.call, run.id, run.name, run.checksum))

    async def serve(self) -> None:
        """A record for each call that may run, side by side; they begin in the order of the calls."""
        going, self._going = self._going, []
        left = iter(going)

        async def serve_next() -> None:
            for call, run in left:  # whoever is free takes the next
                await self._serve(call, run)

        try:
            async with anyio.create_task_group() as group:
                for _ in range(min(self._setup.concurrency, len(going))):
                    group.start_soon(serve_next)
        except ExceptionGroup as several:  # of the history; what a handler raises is a result
            raise several.exceptions[0] from None
        for call, _ in going:
            if call.id not in self.done:  # its task was ended, and not by whoever reads the run
                self.refuse(call, UNAVAILABLE)
            await self._look_at(self.done[call.id])

    async def _may_run(self, call: ToolCall) -> bool:
        """May this call be run? If not it has its answer already, or the run stops."""
        verdict = self.judged([call])
        if verdict is not None and verdict.policy == "stop":
            self.is_stopped = True
            return False
        if verdict is not None and verdict.policy == "answer":
            self.refuse(call, f"not run: {verdict.message}; do something else")
        elif call.name not in self.handlers:
            known = ", ".join(self.handlers) or "none"
            self.refuse(call, f"there is no tool {call.name!r}; there are: {known}")
        elif (why := self.unfit(call)) is not None:
            self.refuse(call, why)
        else:
            return await self._is_approved(call, call)
        return False

    def _misfit(self, call: ToolCall) -> str | None:
        """Why the tool does not take these arguments, if it does not."""
        convert = self.handlers[call.name].convert
        try:
            if convert is not None:
                convert(fresh(call.arguments))
        except Unfit as error:
            return f"{MISFIT}: {error}"
        except Exception as error:  # noqa: BLE001  (a function of the tool's own)
            return f"{MISFIT}: {_words(error)}"
        return None

    async def _is_approved(self, call: ToolCall, run: ToolCall) -> bool:
        """What the program says; a call that it does not want is answered so."""
        if self._setup.approve is None:
            return True
        with self.guard.asked():
            said = self._setup.approve(own(run))
            said = await said if inspect.isawaitable(said) else said
        self.is_stopped |= isinstance(said, Stop)
        if said is not True:
            why = said.value if isinstance(said, Stop) else said
            self.refuse(call, f"not run: {why or 'it was not approved'}")
        return said is True

    async def _look_at(self, record: Settled) -> None:
        """Is this what the run was for?"""
        if self._setup.until is not None and record.started is not None:
            said = self._setup.until(record)
            self.is_stopped |= bool(await said if inspect.isawaitable(said) else said)

    # --- one call ---------------------------------------------------------------------------------

    async def _serve(self, call: ToolCall, run: ToolCall) -> None:
        with self._told(run) as came:
            tool = self.handlers[call.name]
            results, error, came.outcome = await self._outcome_of(run, tool)
            edited = _changed(call, run)
            record = came.record = self._record(call, tool, results, error, came, edited)
            if record.error is not None and came.outcome == "ok":
                came.outcome = "error"  # it cannot be told
        await self._keep(record)
        self.done[call.id] = record

    @contextmanager
    def _told(self, call: ToolCall) -> Iterator[_Came]:
        """A handler runs in it: its beginning and its end are logged, and the end is told."""
        came, checksum = _Came(), call.checksum
        self._log(INFO, "tool.started", call, name=call.name, checksum=checksum)
        try:
            yield came
        finally:
            seconds = came.seconds if came.record is None else came.record.seconds or 0.0
            self._log(INFO, "tool.ended", call, name=call.name, checksum=checksum,
                      outcome=came.outcome, seconds=seconds)  # fmt: skip
            ids = call.call, call.id, call.name, checksum
            self._tell(ToolEnded(*ids, came.outcome, seconds))

    async def _outcome_of(self, call: ToolCall, tool: ClientTool) -> _Outcome:
        """What the handler gave, or what went wrong."""
        timeout = self._setup.timeout
        with (
            self.guard.asked(),
            serving(Running(own(call), self._conversation, self._run)),
            anyio.move_on_after(timeout),
        ):
            try:
                given = fresh(call.arguments)
                value = await _called(tool, tool.convert(given) if tool.convert else given)
                if isinstance(value, Stop):
                    self.is_stopped, value = True, value.value
                if tool.is_artifact_tool:
                    return value, None, "ok"
                # In a thread, as large results go to the disk.
                return await to_thread.run_sync(as_results, value, self._setup.spool), None, "ok"
            except Unfit as error:
                return None, f"not run: {MISFIT}: {error}", "invalid"
            except BaseException as error:
                if not _is_its_own(error):
                    raise
                return None, _words(error), "error"  # is told to the model
        return None, f"no result within {timeout:g} s; it may still be running", "timeout"

    def _record(
        self,
        call: ToolCall,
        tool: ClientTool,
        results: Any,
        error: str | None,
        came: _Came,
        edited: dict[str, Any] | None,
    ) -> Settled:
        more: dict[str, Any] = {
            "started": came.began,
            "seconds": came.seconds,
            "from_artifact_tool": tool.is_artifact_tool,
            "edited": edited,
        }
        if error is not None:
            return Settled.of(call, error=error, **more)
        try:
            inline = tool.inline(results) if callable(tool.inline) else tool.inline
            record = Settled.of(call, results, inline=inline, **more)
            record.result(call, self._setup.spool)  # can it be said at all?
        except Exception as trouble:  # noqa: BLE001  (inline, too, is the tool's)
            return Settled.of(call, error=_words(trouble), **more)
        return record


def _edited(call: ToolCall, arguments: dict[str, Any]) -> ToolCall:
    """The call with other arguments; the very same if they are no others."""
    made = msgspec.structs.replace(call, arguments=fresh(arguments), raw=json_text(arguments))
    return call if made.checksum == call.checksum else made


def _changed(call: ToolCall, run: ToolCall) -> dict[str, Any] | None:
    """The arguments that it is run with, if they are not those that the model said."""
    return None if run is call else run.arguments


def _words(error: BaseException) -> str:
    """What went wrong in a handler. Two errors that say nothing would be taken for ours."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  (its words are the tool's, too)
        said = "it cannot say what went wrong"
    if not said and isinstance(error, TimeoutError):
        said = "a time limit of the tool's own"
    elif not said and isinstance(error, _CANCELLED):
        said = "what the tool waited for was cancelled"
    return f"{type(error).__name__}: {said}"


def _is_its_own(error: BaseException) -> bool:
    """Does a handler raise this by itself, or because somebody ends it, or all of the program?

    ``CancelledError`` is both: of a task that a handler waits for, and of the handler's own.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(_is_its_own(inner) for inner in error.exceptions)
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return not _is_cancelled()
    return isinstance(error, Exception | SystemExit | asyncio.CancelledError)


def _is_cancelled() -> bool:
    """Is the present task to end? On trio whoever hears of it is."""
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
        return True
    task = asyncio.current_task()
    is_ended = task is not None and task.cancelling() > 0
    return is_ended or anyio.current_effective_deadline() == -math.inf


async def _called(tool: ClientTool, arguments: Any) -> Any:
    if tool.is_async:
        return await tool.handler(arguments)
    # A thread cannot be ended. It is left behind when the time is up, and counts as used until it
    # is done.
    value = await to_thread.run_sync(
        tool.handler, arguments, abandon_on_cancel=True, limiter=_threads()
    )
    return await value if inspect.isawaitable(value) else value


def _threads() -> anyio.CapacityLimiter:
    """The threads of handlers, apart from those that everything else shares; one per event loop."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter


_limiter: lowlevel.RunVar[anyio.CapacityLimiter] = lowlevel.RunVar("streamnorm_threads")
