"""An event loop of asyncio for tests whose clock jumps to whatever is waited for next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["JumpingLoop", "on_jumping_loop"]


class JumpingLoop(asyncio.SelectorEventLoop):
    """``timers`` are those that were set."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[float] = []
        self._jumped = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout: float | None = None) -> Any:
            if timeout is None:
                return select(None)
            self._jumped += timeout
            return select(0)

        selector.select = jump

    def time(self) -> float:
        return 1000.0 + self._jumped

    def call_at(self, when: float, *args: Any, **more: Any) -> asyncio.TimerHandle:
        self.timers.append(when)
        return super().call_at(when, *args, **more)


def on_jumping_loop(job: Callable[[], Awaitable[Any]]) -> JumpingLoop:
    """Run a job; returns the loop, which is closed."""

    async def main() -> None:
        await job()

    loop = JumpingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    return loop
