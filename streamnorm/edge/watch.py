"""Reads come in, one at a time; each ends with what it gives, or with ``TimeUp``.

Rule: a read that need not wait is not watched, and for one that has to, no more is noted than who
waits and since when. There is one timer for all streams of a loop on asyncio: when it fires, it looks
how long each read has lasted that is under way then, and sets itself anew.

To interrupt a read on asyncio is to cancel the task that is inside it, and to take that back when it
has ended, as ``asyncio.timeout`` does: a cancellation that somebody else asked for goes on upwards.
On trio only a scope can do it, so there every read has one.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from .timer import NEVER, Timer, TimeUp

__all__ = ["OnAsyncio", "OnTrio", "Watch", "watch_for"]

AGAIN = 2.0  # seconds until a source that did not heed its interruption is told once more
SHORTEST = 0.001  # seconds between two looks
ASIDE = 250  # reads that wait, after which the timer steps aside


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


class Lookout:
    """The one timer of an event loop, over all streams that are read there.

    A client makes a timer for each read and cancels it. asyncio drops those from the head of its heap,
    or else when they are the half of it: behind a timer that waits for long they pile up, and the
    garbage collector has to go over them. So there is one for all, and it steps aside now and then.
    """

    __slots__ = ("_at", "_handle", "_loop", "_watches", "patience")

    def __init__(self) -> None:
        self._watches: set[OnAsyncio] = set()
        self._loop: Any = None  # only while there are any
        self._handle: Any = None
        self._at = NEVER  # when it fires, or will when it is back
        self.patience = ASIDE

    def add(self, watch: OnAsyncio, loop: Any, within: float) -> None:
        """Look after this one from now on, for the first time in so many seconds."""
        self._loop = loop
        self._watches.add(watch)
        self._look_at(loop.time() + within)

    def remove(self, watch: OnAsyncio) -> None:
        self._watches.discard(watch)
        if not self._watches:
            self._cancel()
            self._loop, self._at = None, NEVER

    def step_aside(self) -> None:
        """Let the loop drop what was cancelled behind this timer: it does so before ``_look_at``."""
        self.patience = ASIDE
        if self._handle is not None:
            self._cancel()
            self._loop.call_soon(self._look_at, NEVER)

    def _look(self) -> None:
        """The timer fired."""
        self._handle, self._at = None, NEVER
        now = self._loop.time()
        watches = (
            self._watches.copy()
        )  # in one step: a stream that is dropped meanwhile takes its own away
        due = min((watch.look(now) for watch in watches), default=NEVER)
        self._look_at(max(due, now + SHORTEST))

    def _look_at(self, at: float) -> None:
        """Then, if not before."""
        at = min(at, self._at)
        if at < NEVER and (at < self._at or self._handle is None):
            self._cancel()
            self._at, self._handle = at, self._loop.call_at(at, self._look)

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


_lookouts: WeakKeyDictionary[Any, Lookout] = WeakKeyDictionary()  # of each loop


class OnAsyncio:
    """The task that reads. It knows no stream, whoever may keep it."""

    __slots__ = (
        "_again", "_asked", "_asyncio", "_current_task", "_lookout", "_loop", "_running_loop", "_timer",
        "fired", "now", "task",
    )  # fmt: skip

    def __init__(self, timer: Timer, asyncio: Any) -> None:
        self._timer = timer
        self._asyncio = asyncio
        self._running_loop, self._current_task = asyncio.get_running_loop, asyncio.current_task
        self._loop: Any = None
        self.now: Callable[[], float] = self._running_loop().time
        self._lookout = _NOBODY  # that looks after it
        self._again = 0.0  # until then it is not interrupted once more
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
        lookout = self._lookout
        lookout.patience -= 1
        if not lookout.patience:
            lookout.step_aside()

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
        self._lookout.remove(self)

    def _move(self, loop: Any) -> None:
        """The first read on this loop."""
        self.stop()
        self._loop, self.now = loop, loop.time
        if self._timer.runs:
            self._lookout = _lookouts.setdefault(loop, Lookout())
            self._lookout.add(self, loop, self._timer.longest)

    def look(self, now: float) -> float:
        """Interrupt a read that takes too long. Returns when to look again, at the latest."""
        timer, reading = self._timer, self.task is not None
        if reading and now < self._again:
            return self._again
        due = timer.due(timer.since if reading else now)
        if now < due:
            return min(due, now + timer.longest)
        if not reading:  # the deadline fell meanwhile: the next read is told when it begins
            return NEVER
        self.interrupt()
        self._again = now + AGAIN
        return self._again


_NOBODY = Lookout()  # for what has no time to keep


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
