"""A job that reads a whole file comes in; what it gives goes out, and on the way how far it is.

Rule: nobody's file keeps the page from others. Jobs run in two threads of their own and no more wait for
them than a few; each has a budget of frames and of seconds, is asked at every frame whether it may go on,
and ends with what it has. Whoever does not wait for it any longer ends it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import aclosing
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from ..errors import StreamnormError

__all__ = ["AT_ONCE", "FRAMES", "SECONDS", "WAITING", "Budget", "Busy", "Workshop"]

T = TypeVar("T")

FRAMES = 20_000  # of one file that are shown
SECONDS = 10.0  # that one file may take
AT_ONCE, WAITING = 2, 8  # jobs that run, and that wait for their turn
PATIENCE = 0.15  # seconds between two words about how far it is
_BREATH = 128  # steps after which others may run, and the clock is looked at


class Busy(StreamnormError):
    """Too many wait already."""

    def __init__(self) -> None:
        super().__init__("too many files are being read just now; try again in a moment")


class Budget:
    """How much of a file may be read. ``step`` is asked before each piece of work."""

    def __init__(
        self,
        size: int,
        *,
        frames: int = FRAMES,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.size, self.done = size, 0  # bytes
        self.spent: str | None = None  # of what nothing is left: frames, time
        self.cancelled = False
        self._frames, self._seconds, self._clock = frames, seconds, clock
        self._began: float | None = None  # until its turn has come
        self._steps = 0

    def step(self, at: int, frames: int = 0) -> bool:
        """May it go on? It is at this byte, and would show so many frames."""
        self.done = at
        self._steps += 1
        if self._began is None or self._steps % _BREATH == 0:
            now = self._clock()
            self._began = now if self._began is None else self._began
            if now - self._began > self._seconds:
                self.spent = self.spent or "time"
            time.sleep(0)
        if frames > self._frames:
            self.spent = self.spent or "frames"
        return self.spent is None and not self.cancelled

    @property
    def sentence(self) -> str:
        """What is left out, and why; for whoever sees only a part."""
        why = (
            f"only the first {self._frames:,} frames of a file are shown"
            if self.spent == "frames"
            else f"reading it took more than {self._seconds:g} seconds"
        )
        return f"This is the beginning, {self.done:,} of {self.size:,} bytes: {why}."


class Workshop:
    """Threads for jobs. ``close`` ends what is under way."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._budgets: set[Budget] = set()  # of jobs that run or wait

    async def work(
        self, act: Callable[[Budget], T], budget: Budget
    ) -> AsyncGenerator[int | Future[T], None]:
        """How many bytes are done, now and then; at last the future, which is done. Whoever closes this
        before it is at its end ends the job."""
        if len(self._budgets) >= AT_ONCE + WAITING:
            raise Busy
        self._threads = self._threads or ThreadPoolExecutor(AT_ONCE, "streamnorm-page")
        self._budgets.add(budget)
        try:
            future = self._threads.submit(act, budget)
            while not future.done():
                yield budget.done
                await to_thread.run_sync(_wait_for, future, limiter=CapacityLimiter(1))
            yield future
        finally:
            budget.cancelled = True
            self._budgets.discard(budget)

    async def result(self, act: Callable[[Budget], T], budget: Budget) -> T:
        """The same, for those who only want what comes of it."""
        async with aclosing(self.work(act, budget)) as steps:
            async for step in steps:
                if isinstance(step, Future):
                    return step.result()
        raise AssertionError("a job that is done has a future")

    def close(self) -> None:
        for budget in self._budgets:
            budget.cancelled = True
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)


def _wait_for(future: Future[Any]) -> None:
    wait([future], PATIENCE)
