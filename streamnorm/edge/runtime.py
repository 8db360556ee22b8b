"""Jobs and iterators come in; they run, wait and end here, on asyncio and on trio alike.

Rule: neither event loop is imported by us: the one that runs is there already. Nothing is known here
of streams, and nothing here outlives the loop that it was started on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["in_thread", "spawn", "unwind"]

T = TypeVar("T")
_AHEAD = 10_000  # items that can have been received and not yet read
_JOBS: set[Any] = set()


def spawn(job: Callable[[], Any]) -> bool:
    """Run an async job in the background of whatever event loop runs here; False if none does."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        trio.lowlevel.spawn_system_task(job)
        return True
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return False
    task = asyncio.get_running_loop().create_task(job())
    _JOBS.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_JOBS.discard)
    return True


async def in_thread(job: Callable[[], T]) -> T:
    """What a blocking job gives, while the event loop goes on."""
    from anyio import to_thread

    # Not abandoned when cancelled: a read that goes on in a thread would leak the connection.
    return await to_thread.run_sync(job)


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
