"""Jobs and iterators come in; they run, wait and end here, on asyncio and on trio alike.

Rule: neither event loop is imported by us: the one that runs is there already. Nothing is known here
of streams, and nothing here outlives the loop that it was started on.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

__all__ = ["CLOSE_WITHIN", "apart", "in_thread", "spawn", "to_its_end", "unwind"]

T = TypeVar("T")
CLOSE_WITHIN = 2.0  # seconds that closing may take, cancelled or not
_AHEAD = 10_000  # items that can have been received and not yet read
_JOBS: set[Any] = set()


def spawn(job: Callable[[], Any]) -> bool:
    """Run an async job in the background of whatever event loop runs here; False if none does."""
    if _in_trio():
        sys.modules["trio"].lowlevel.spawn_system_task(job)
        return True
    loop = _loop()
    if loop is None:
        return False
    task = loop.create_task(job())
    _JOBS.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_JOBS.discard)
    return True


async def in_thread(job: Callable[[], T]) -> T:
    """What a blocking job gives, while the event loop goes on."""
    from anyio import to_thread

    # Not abandoned when cancelled: a read that goes on in a thread would leak the connection.
    return await to_thread.run_sync(job)


async def to_its_end(job: Awaitable[Any], within: float) -> None:
    """Wait for this, which is not broken off when we are.

    A scope of anyio can be shielded. ``asyncio`` cancels a task wherever it waits, and what was half
    closed then stays open: so it is closed in a task of its own, for so many seconds.
    """
    loop = _loop()
    if loop is None:
        await job
        return

    async def run() -> None:
        await job

    task = _started(loop, run())
    if hasattr(job, "close"):  # a loop that ends may cancel a task before it has begun
        task.add_done_callback(lambda _: job.close())
    limit = loop.call_later(within, task.cancel)
    try:
        await sys.modules["asyncio"].shield(task)
    except BaseException:
        await _end_of(task)
        raise
    finally:
        if task.done():
            limit.cancel()


async def apart(job: Callable[[], Awaitable[T]], undo: Callable[[T], Awaitable[None]]) -> T:
    """What the job gives. If we are cancelled before we have it, it is told so in the gentle way: by a
    scope, which interrupts no step that is done already. What it gives all the same is undone."""
    from anyio import CancelScope

    loop = _loop()
    if loop is None:
        return await job()
    scope = CancelScope()

    async def run() -> list[T]:
        given: list[T] = []
        with scope:
            given.append(await job())
        if scope.cancel_called and given:
            await undo(given.pop())
        return given

    task = _started(loop, run())
    try:
        given: list[T] = await sys.modules["asyncio"].shield(task)
        return given[0]
    except BaseException:
        scope.cancel()
        await _end_of(task)
        if task.done() and not task.cancelled() and task.exception() is None and task.result():
            await to_its_end(undo(task.result().pop()), CLOSE_WITHIN)  # it was just done
        raise


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())


def _loop() -> Any:
    """The event loop of asyncio that runs here, if one does. It may also be the host of one of trio."""
    asyncio = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio._get_running_loop()
    return None if loop is None or _in_trio() else loop


def _started(loop: Any, job: Any) -> Any:
    task = loop.create_task(job)
    _JOBS.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_ended)
    return task


def _ended(task: Any) -> None:
    _JOBS.discard(task)
    if not task.cancelled():
        task.exception()  # somebody has looked at it: whoever waited, or nobody needs to


async def _end_of(task: Any) -> None:
    from anyio import CancelScope

    with CancelScope(shield=True):
        if not task.done():
            await sys.modules["asyncio"].wait([task])


async def unwind(iterator: Any) -> None:
    """End an async generator together with those inside it.

    Closing it would leave the inner ones to the garbage collector, about which trio complains. A
    read that is cancelled ends all of them; before that, it may give what was received already.
    """
    from anyio import CancelScope

    with CancelScope() as scope:
        scope.cancel()
        for _ in range(_AHEAD):
            await iterator.__anext__()
