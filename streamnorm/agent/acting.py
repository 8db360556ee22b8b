"""The calls of one turn come in; a settled record for each goes out.

Rule: a call is run once, after it was allowed, beside the others of its turn. Whatever its handler
raises is a record with an error; only an error of the history ends the run.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import anyio
from anyio import lowlevel, to_thread

from ..events import BrokenToolCall, Event, ToolCall, ToolEnded, ToolOutcome, ToolStarted
from ..history.settled import Settled, as_results, fresh
from ..notes import INFO, WARNING, log
from .checking import Unfit
from .circles import LoopGuard, Verdict
from .client_tools import ClientTool, Running, Stop, own, serving
from .setup import Setup

__all__ = ["Acting"]

THREADS = 64  # for handlers, also for those that took too long and still run


STOPPED = "not run: the run was stopped"
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
    on them, so their results may still be supplied when the conversation goes on.
    """

    def __init__(
        self,
        setup: Setup,
        conversation: str,
        run: str,
        keep: Callable[[Settled], Awaitable[None]],
        tell: Callable[[Event], None],
    ) -> None:
        self._setup, self._conversation, self._run = setup, conversation, run
        self._keep, self._tell = keep, tell
        self.guard = setup.guard.fresh() if setup.guard else LoopGuard.counting()
        self.handlers: dict[str, ClientTool] = setup.handlers
        self.verdicts: list[Verdict] = []
        self.done: dict[str, Settled] = {}
        self.withheld: set[str] = set()
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
        """Each call is allowed, and told as started, or has its answer already."""
        self.done = {}
        for call in calls:
            if not self.is_stopped:
                await self._ask_for(call)
            if self.is_stopped and call.id not in self.done:
                self.withhold(call)
        for call in calls:
            if call.id not in self.done:
                self._tell(ToolStarted(call.call, call.id, call.name, call.checksum))

    async def serve(self, calls: Sequence[ToolCall]) -> None:
        """A record for each call that was allowed, side by side."""
        limiter = anyio.CapacityLimiter(self._setup.concurrency)
        try:
            async with anyio.create_task_group() as group:
                for call in calls:
                    if call.id not in self.done:
                        group.start_soon(self._serve, call, limiter)
        except ExceptionGroup as several:  # of the history; what a handler raises is a result
            raise several.exceptions[0] from None
        for call in calls:
            await self._look_at(self.done[call.id])

    async def _ask_for(self, call: ToolCall) -> None:
        """May this call be run? If not it has its answer already, or the run stops."""
        verdict = self.judged([call])
        if verdict is not None and verdict.policy == "stop":
            self.is_stopped = True
        elif verdict is not None and verdict.policy == "answer":
            self.refuse(call, f"not run: {verdict.message}; do something else")
        elif call.name not in self.handlers:
            known = ", ".join(self.handlers) or "none"
            self.refuse(call, f"there is no tool {call.name!r}; there are: {known}")
        elif self._setup.approve is not None:
            with self.guard.asked():
                said = self._setup.approve(own(call))
                said = await said if inspect.isawaitable(said) else said
            self.is_stopped |= isinstance(said, Stop)
            if said is not True:
                why = said.value if isinstance(said, Stop) else said
                self.refuse(call, f"not run: {why or 'it was not approved'}")

    async def _look_at(self, record: Settled) -> None:
        """Is this what the run was for?"""
        if self._setup.until is not None and record.started is not None:
            said = self._setup.until(record)
            self.is_stopped |= bool(await said if inspect.isawaitable(said) else said)

    # --- one call ---------------------------------------------------------------------------------

    async def _serve(self, call: ToolCall, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            with self._told(call) as came:
                tool = self.handlers[call.name]
                results, error, came.outcome = await self._outcome_of(call, tool)
                record = came.record = self._record(call, tool, results, error, came)
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
        try:
            with (
                self.guard.asked(),
                serving(Running(own(call), self._conversation, self._run)),
                anyio.fail_after(timeout),
            ):
                given = fresh(call.arguments)
                value = await _called(tool, tool.convert(given) if tool.convert else given)
                if isinstance(value, Stop):
                    self.is_stopped, value = True, value.value
                if tool.is_artifact_tool:
                    return value, None, "ok"
                # In a thread, as large results go to the disk.
                return await to_thread.run_sync(as_results, value, self._setup.spool), None, "ok"
        except Unfit as error:
            return None, f"not run: the arguments do not fit: {error}", "invalid"
        except TimeoutError as error:
            why = str(error) or f"no result within {timeout:g} s; it may still be running"
            return None, why, "timeout"
        except Exception as error:  # noqa: BLE001  (whatever a tool raises is told to the model)
            return None, f"{type(error).__name__}: {error}", "error"

    def _record(
        self, call: ToolCall, tool: ClientTool, results: Any, error: str | None, came: _Came
    ) -> Settled:
        more: dict[str, Any] = {
            "started": came.began,
            "seconds": came.seconds,
            "from_artifact_tool": tool.is_artifact_tool,
        }
        if error is not None:
            return Settled.of(call, error=error, **more)
        try:
            inline = tool.inline(results) if callable(tool.inline) else tool.inline
            record = Settled.of(call, results, inline=inline, **more)
            record.result(call, self._setup.spool)  # can it be said at all?
        except Exception as trouble:  # noqa: BLE001  (inline, too, is the tool's)
            return Settled.of(call, error=f"{type(trouble).__name__}: {trouble}", **more)
        return record


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
