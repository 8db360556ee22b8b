"""Reads come in, one at a time; each ends with what it gives, or with ``TimeUp``.

Rule: a read that need not wait is not watched, and for one that has to, no more is noted than who
waits and since when. There is one timer for a stream on asyncio: when it fires, it looks how long the
read has lasted that is under way then, and sets itself anew.

To interrupt a read on asyncio is to cancel the task that is inside it, and to take that back when it
has ended, as ``asyncio.timeout`` does: a cancellation that somebody else asked for goes on upwards.
On trio only a scope can do it, so there every read has one.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Protocol

from .timer import Timer, TimeUp

__all__ = ["OnAsyncio", "OnTrio", "Watch", "watch_for"]

AGAIN = 2.0  # seconds until a source that did not heed its interruption is told once more
SHORTEST = 0.001  # seconds between two looks


class Watch(Protocol):
    """Over the reads of one stream."""

    @property
    def now(self) -> Callable[[], float]:
        """Tells the time, on the clock of the timer."""

    async def read(self, job: Callable[[], Awaitable[Any]], *, connected: bool) -> Any:
        """What the job gives; raises ``TimeUp`` if it takes too long or is interrupted."""

    async def end_with(self, error: BaseException) -> None:
        """A read ended with this; raises ``TimeUp`` if it was interrupted."""

    def interrupt(self) -> None:
        """Have the read that is under way end as ``TimeUp``."""

    def stop(self) -> None:
        """There will be no more reads."""


def watch_for(timer: Timer) -> Watch:
    """For the event loop that runs here."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return OnTrio(timer, trio)
    return OnAsyncio(timer, sys.modules["asyncio"])


class OnAsyncio:
    """One timer, and the task that reads. It knows no stream: the loop may keep it until it fires."""

    __slots__ = (
        "_asked", "_asyncio", "_current_task", "_handle", "_loop", "_running_loop", "_timer",
        "fired", "now", "task",
    )  # fmt: skip

    def __init__(self, timer: Timer, asyncio: Any) -> None:
        self._timer = timer
        self._asyncio = asyncio
        self._running_loop, self._current_task = asyncio.get_running_loop, asyncio.current_task
        self._loop: Any = None
        self.now: Callable[[], float] = self._running_loop().time
        self._handle: Any = None
        self.task: Any = None  # that is inside a read
        self._asked = 0  # cancellations that it knew of when the read began
        self.fired = 0  # … and those of ours since then

    def begin(self) -> None:
        """Somebody waits from now on, for a wire that is connected or for a connection. When that is
        over: ``end``, or only ``task = None`` if nothing ``fired``."""
        loop = self._running_loop()
        if loop is not self._loop:
            self._move(loop)
        self.task = self._current_task(loop)
        self._asked = self.task.cancelling()
        self._timer.since = self.now()

    @coroutine
    def wait(self, step: Coroutine[Any, Any, Any], waiting: Any) -> Generator[Any, None, Any]:
        """The rest of a read that was begun, and has to wait: ``step.send`` gave what for."""
        self.begin()
        try:
            while True:
                try:
                    yield waiting
                except BaseException as error:  # noqa: BLE001  all of them are the source's
                    waiting = step.throw(error)
                else:
                    waiting = step.send(None)
        except StopIteration as there:
            return there.value

    def end(self) -> bool:
        """The read is over: take back what was asked of its task. True: that was ours alone."""
        task, fired = self.task, self.fired
        self.task, self.fired = None, 0
        for _ in range(fired):
            task.uncancel()
        return bool(fired) and task.cancelling() <= self._asked

    async def end_with(self, error: BaseException) -> None:
        """The read ended with this; raises ``TimeUp`` if it is our own interruption."""
        fired = self.fired
        ours = self.end()
        if not fired or not isinstance(error, self._asyncio.CancelledError):
            return
        if ours:
            raise TimeUp(self.now()) from None
        # Somebody else cancelled, too, and this may not be the exception that they look for: a
        # scope of anyio knows its own, and raises it again wherever its task waits.
        await self._asyncio.sleep(0)

    async def read(self, job: Callable[[], Awaitable[Any]], *, connected: bool) -> Any:
        self._timer.begin(self.now(), connected=connected)
        self.begin()
        try:
            item = await job()
        except BaseException as error:
            await self.end_with(error)
            raise
        self.end()
        return item

    def interrupt(self) -> None:
        if self.task is not None:
            self.fired += 1
            self.task.cancel()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _move(self, loop: Any) -> None:
        """The first read on this loop."""
        self.stop()
        self._loop, self.now = loop, loop.time
        if self._timer.runs:
            self._look_after(self._timer.longest)

    def _look(self) -> None:
        """The timer fired."""
        now, timer = self.now(), self._timer
        reading = self.task is not None
        due = timer.due(timer.since if reading else now)
        if now < due:
            self._look_after(min(due - now, timer.longest))
        elif reading:
            self.interrupt()
            self._look_after(AGAIN)
        # else the deadline fell while nobody read: the next read is told when it begins

    def _look_after(self, seconds: float) -> None:
        self._handle = self._loop.call_later(max(SHORTEST, seconds), self._look)


class OnTrio:
    """A scope for each read."""

    __slots__ = ("_scope", "_timer", "_trio", "now")

    def __init__(self, timer: Timer, trio: Any) -> None:
        self._timer, self._trio = timer, trio
        self.now: Callable[[], float] = trio.current_time
        self._scope: Any = None

    async def read(self, job: Callable[[], Awaitable[Any]], *, connected: bool) -> Any:
        now = self.now()
        self._timer.begin(now, connected=connected)
        with self._trio.CancelScope(deadline=self._timer.due(now)) as self._scope:
            try:
                return await job()
            finally:
                self._scope = None
        raise TimeUp(self.now())

    async def end_with(self, error: BaseException) -> None:
        """Told by ``read``."""

    def interrupt(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def stop(self) -> None:
        """The timer was that of the last scope."""
