"""Whose cancellation is it? A tool's own is a result with an error; that of the run ends the run."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any

import anyio
import pytest

from streamnorm.agent.client_tools import ClientTool
from streamnorm.agent.loop import ToolLoop
from streamnorm.encoding.pairs import UNAVAILABLE
from streamnorm.testing import call, say, script
from streamnorm.tools import Tool
from tests.agent.models import Model, outputs, ran

WAITED = "CancelledError: what the tool waited for was cancelled"
OWN_TIME = "TimeoutError: a time limit of the tool's own"


async def raises() -> None:
    raise asyncio.CancelledError


async def raises_with_words() -> None:
    raise asyncio.CancelledError("the printer is off")


async def raises_at_once() -> None:
    await asyncio.gather(raises(), asyncio.sleep(60))


async def waits_for_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(raises())
        raise asyncio.CancelledError


async def waits_for_a_future() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


def in_a_thread() -> None:
    raise asyncio.CancelledError


def of_a_pool() -> None:
    raise concurrent.futures.CancelledError


async def cancels_itself_and_takes_it_back() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        task.uncancel()
    raise asyncio.CancelledError


async def own_timeout() -> None:
    async with asyncio.timeout(0):
        await asyncio.sleep(60)


async def own_wait_for() -> None:
    await asyncio.wait_for(asyncio.sleep(60), 0)


async def own_fail_after() -> None:
    with anyio.fail_after(0):
        await anyio.sleep(60)


async def own_scope() -> str:
    with anyio.move_on_after(0):
        await anyio.sleep(60)
    return "moved on"


OWN = {
    raises: WAITED, raises_with_words: "CancelledError: the printer is off", raises_at_once: WAITED,
    waits_for_a_group: WAITED, waits_for_a_future: WAITED, in_a_thread: WAITED, of_a_pool: WAITED,
    cancels_itself_and_takes_it_back: WAITED, own_timeout: OWN_TIME, own_wait_for: OWN_TIME,
    own_fail_after: OWN_TIME, own_scope: "moved on",
}  # fmt: skip


@pytest.mark.parametrize("timeout", [None, 60], ids=["no limit", "a limit"])
@pytest.mark.parametrize("tool", OWN, ids=lambda tool: tool.__name__)
def test_a_cancellation_of_the_tools_own_is_told_as_its_own(
    tool: Any, timeout: float | None
) -> None:
    async def main() -> None:
        async def add(a: int) -> int:
            return a + 1

        model = Model(script(call(tool.__name__), call("add", a=1)), script(say("ok")))
        run, events = await ran(ToolLoop(model, [tool, add], timeout=timeout))
        assert outputs(run) == [OWN[tool], 2]
        assert run.outcome == "finished"
        ended = [event.outcome for event in events if event.kind == "tool_ended"]
        assert ended == ["ok" if tool is own_scope else "error", "ok"]
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(main())


def test_a_tool_that_says_anything_after_our_time_limit_is_believed() -> None:
    """It was told to end, and had something to say."""

    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "half of it"
        return "all of it"

    async def angry() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("I was not done") from None

    async def main() -> None:
        model = Model(script(call("stubborn"), call("angry")), script(say("ok")))
        run, _ = await ran(ToolLoop(model, [stubborn, angry], timeout=0.01))
        assert [type(said) for said in outputs(run)] == [str, str]
        assert outputs(run)[1] == "ValueError: I was not done"

    asyncio.run(main())


# --- of the run -----------------------------------------------------------------------------------


async def obeys(started: anyio.Event) -> None:
    started.set()
    await anyio.sleep_forever()


async def swallows(started: anyio.Event) -> str:
    try:
        await obeys(started)
    except asyncio.CancelledError:
        return "I go on"
    return "never"


async def turns_into_another(started: anyio.Event) -> None:
    try:
        await obeys(started)
    except asyncio.CancelledError:
        raise TimeoutError("my own") from None


async def waits_in_a_scope(started: anyio.Event) -> None:
    with anyio.fail_after(60):
        await obeys(started)


TOOLS = [obeys, swallows, turns_into_another, waits_in_a_scope]


def going(tool: Any) -> tuple[Any, anyio.Event]:
    """A run whose tool waits for ever, and how to know that it does."""
    started = anyio.Event()

    async def work(arguments: dict[str, Any]) -> Any:
        return await tool(started)

    model = Model(script(call("work")), script(say("It went on.")))
    loop = ToolLoop(model, [ClientTool(Tool("work"), work, is_async=True)])
    return loop.run("Go."), started


async def read(run: Any) -> None:
    async for _ in run:
        pass


def was_cancelled(run: Any) -> bool:
    """The run went no further, and what may have run is not told as done or as failed."""
    assert run.text != "It went on."
    assert run.settled[0].error in (UNAVAILABLE, "TimeoutError: my own", None)
    return bool(run.outcome == "cancelled")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_asyncio_timeout_around_a_run_ends_it(tool: Any) -> None:
    async def main() -> None:
        run, started = going(tool)
        limit = asyncio.timeout(None)

        async def fall() -> None:
            await started.wait()
            limit.reschedule(asyncio.get_running_loop().time())

        async def within() -> None:
            async with limit:
                await read(run)

        task = asyncio.create_task(fall())
        with pytest.raises(TimeoutError):
            await within()
        await task
        assert was_cancelled(run)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    asyncio.run(main())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_task_that_is_cancelled_stays_cancelled(tool: Any) -> None:
    async def main() -> None:
        run, started = going(tool)
        task = asyncio.create_task(read(run))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert was_cancelled(run)

    asyncio.run(main())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_scope_around_a_run_ends_it(tool: Any) -> None:
    async def main() -> None:
        run, started = going(tool)
        after = []
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:

                async def fall() -> None:
                    await started.wait()
                    scope.cancel()

                group.start_soon(fall)
                await read(run)
                after.append("went on")
        assert scope.cancelled_caught
        assert not after
        assert was_cancelled(run)

    asyncio.run(main())


def test_a_tool_whose_own_wait_was_cancelled_in_the_moment_in_which_the_run_is() -> None:
    async def main() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def waits(started: anyio.Event) -> None:
            started.set()
            await future

        run, started = going(waits)
        task = asyncio.create_task(read(run))
        await started.wait()
        await asyncio.sleep(0)
        future.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.outcome == "cancelled"
        assert run.settled[0].error in (WAITED, UNAVAILABLE)  # both are true

    asyncio.run(main())
