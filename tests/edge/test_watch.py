"""A read that takes too long is interrupted, by one timer for a stream; whoever else cancels is heard."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from streamnorm.edge.stream import Stream, normalize
from streamnorm.edge.timer import Timer, TimeUp
from streamnorm.events import Event, Failed, Finish
from tests.conftest import Chat
from tests.edge.clocks import JumpingLoop, on_jumping_loop

HALF = Chat.call(0, "call_1", "get_weather", '{"city":')
WHOLE = HALF + Chat.call(0, None, None, '"Oslo"}') + Chat.end()


def chat(source: Any, **options: Any) -> Stream:
    return normalize(source, "openai_chat", **options)


async def events_of(stream: Stream) -> list[Event]:
    return [event async for event in stream]


def reason_of(events: list[Event]) -> str:
    end = events[-1]
    assert isinstance(end, Failed)
    return end.reason


class Wire:
    """Some chunks, then silence; knows whether it was interrupted and closed."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = iter(chunks)
        self.interrupted = 0
        self.closed = False
        self.waits = asyncio.Event()  # a reader is inside a read that waits

    def __aiter__(self) -> Wire:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self.chunks:
            await asyncio.sleep(0)
            return chunk
        self.waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.interrupted += 1
            await self.on_interruption()
            raise
        raise AssertionError

    async def on_interruption(self) -> None:
        """For those who have more to do then."""

    async def aclose(self) -> None:
        self.closed = True


# --- the times ------------------------------------------------------------------------------------


def test_only_the_time_of_reads_without_events_adds_up():
    timer = Timer(idle=10, deadline=None)
    timer.begin(100)
    assert timer.due(timer.since) == 110
    timer.pause(100, 104)
    timer.begin(200)  # the reader took 96 s: they do not count
    assert timer.due(timer.since) == 206
    timer.heard()
    timer.begin(300)
    assert timer.due(timer.since) == 310


def test_time_that_is_over_is_told_when_a_read_ends_or_begins():
    timer = Timer(idle=10, deadline=30)
    timer.begin(100)
    with pytest.raises(TimeUp) as up:
        timer.pause(100, 110)
    assert timer.why(up.value) == "no event for 10 s, not counting keep-alives"
    timer.heard()
    with pytest.raises(TimeUp) as up:
        timer.begin(130)
    assert timer.why(up.value) == "not at its end after 30 s (deadline)"


def test_while_a_connection_is_made_only_the_deadline_counts():
    timer = Timer(idle=10, deadline=30)
    timer.begin(100, connected=False)
    assert timer.due(timer.since) == 130
    timer.pause(100, 125)
    timer.begin(125)
    assert timer.waited == 0


# --- one timer ------------------------------------------------------------------------------------


def test_a_hundred_reads_set_one_timer():
    async def job() -> None:
        await events_of(chat(Wire(*[Chat.text("a")] * 100, WHOLE)))

    timers = on_jumping_loop(job).timers
    assert [when for when in timers if when >= 1120] == [1120]


def test_streams_of_one_loop_share_a_timer():
    async def job() -> None:
        async with anyio.create_task_group() as readers:
            for _ in range(50):
                readers.start_soon(events_of, chat(Wire(WHOLE)))

    timers = on_jumping_loop(job).timers
    assert [when for when in timers if when >= 1120] == [1120]


def test_each_of_the_streams_that_share_a_timer_has_its_own_time():
    ends: list[tuple[str, float]] = []

    async def read(idle: float | None, deadline: float | None = None) -> None:
        reason = reason_of(await events_of(chat(Wire(HALF), idle=idle, deadline=deadline)))
        ends.append((reason, round(asyncio.get_running_loop().time())))

    async def job() -> None:
        async with anyio.create_task_group() as readers:
            for times in ((50, None), (20, None), (None, 30), (40, None)):
                readers.start_soon(read, *times)

    on_jumping_loop(job)
    assert ends == [("idle", 1020), ("limit", 1030), ("idle", 1040), ("idle", 1050)]


def test_timers_that_a_client_has_cancelled_do_not_pile_up_behind_it():
    handles: weakref.WeakSet[asyncio.TimerHandle] = weakref.WeakSet()
    most = 0

    async def talk() -> AsyncIterator[bytes]:
        nonlocal most
        loop = asyncio.get_running_loop()
        for _ in range(2000):  # as httpx does with the time of a read
            handle = loop.call_later(600, print)
            handles.add(handle)
            await asyncio.sleep(0)
            handle.cancel()
            del handle
            most = max(most, len(handles))
            yield Chat.text("a")
        yield WHOLE

    async def job() -> None:
        loop = asyncio.get_running_loop()
        others = [loop.call_later(700, print) for _ in range(1000)]  # of streams that wait
        assert isinstance((await events_of(chat(talk())))[-1], Finish)
        for other in others:
            other.cancel()

    asyncio.run(job())
    assert most < 500


def test_the_timer_sets_itself_anew_when_it_fires_too_early():
    async def talk() -> AsyncIterator[bytes]:
        yield HALF
        await asyncio.sleep(70)
        yield Chat.call(0, None, None, "1")
        await asyncio.Event().wait()

    async def job() -> None:
        assert reason_of(await events_of(chat(talk(), idle=100))) == "idle"
        assert asyncio.get_running_loop().time() == pytest.approx(1170)

    # Set at the start; at 1100 it sees that the read began at 1070.
    assert [round(t) for t in on_jumping_loop(job).timers][:3] == [1100, 1070, 1170]


def test_the_timer_of_a_stream_that_is_over_is_gone():
    async def job() -> None:
        await events_of(chat(Wire(WHOLE)))
        loop: Any = asyncio.get_running_loop()
        assert [h for h in loop._scheduled if not h.cancelled()] == []

    on_jumping_loop(job)


async def test_a_timer_does_not_keep_a_stream():
    gc.disable()
    try:
        stream = chat(Wire(HALF, HALF))
        await anext(stream)
        gone = weakref.ref(stream)
        with pytest.warns(ResourceWarning):
            del stream
        assert gone() is None
    finally:
        gc.enable()


def test_a_stream_that_goes_on_in_another_loop_is_timed_there():
    wire = Wire(HALF, HALF)
    stream = chat(wire, idle=100)

    async def begin() -> None:
        await anext(stream)

    async def go_on() -> None:
        await anext(stream)
        assert reason_of(await events_of(stream)) == "idle"
        assert asyncio.get_running_loop().time() == pytest.approx(1100)

    on_jumping_loop(begin)
    on_jumping_loop(go_on)
    assert (wire.interrupted, wire.closed) == (1, True)


def test_the_deadline_may_fall_while_nobody_reads():
    async def job() -> None:
        stream = chat(Wire(HALF, HALF, HALF), idle=None, deadline=100)
        await anext(stream)
        await asyncio.sleep(1000)
        events = await events_of(stream)
        assert reason_of(events) == "limit"

    timers = on_jumping_loop(job).timers
    assert len([t for t in timers if t == 1100]) == 1
    assert len(timers) < 8  # it is not looked at again and again


async def test_keep_alives_that_never_let_anybody_wait_run_the_idle_timer_too():
    async def flood() -> AsyncIterator[bytes]:
        yield HALF
        while True:
            yield b": keep-alive\n\n"

    assert reason_of(await events_of(chat(flood(), idle=0.01))) == "idle"


async def test_a_source_whose_next_is_no_coroutine_is_read_as_well():
    class Futures(Wire):
        def __anext__(self) -> asyncio.Future[bytes]:  # type: ignore[override]
            return asyncio.ensure_future(super().__anext__())

    wire = Futures(*[Chat.text("a")] * 3)
    events = await events_of(chat(wire, idle=0.01))
    assert [e.kind for e in events][1:] == ["text_delta"] * 3 + ["failed"]
    assert (reason_of(events), wire.interrupted, wire.closed) == ("idle", 1, True)


# --- whose cancellation is it? --------------------------------------------------------------------


def test_an_interruption_leaves_no_trace_on_the_task():
    async def job() -> None:
        wire = Wire(HALF)
        task = asyncio.current_task()
        assert task is not None
        assert reason_of(await events_of(chat(wire, idle=5))) == "idle"
        assert task.cancelling() == 0
        await asyncio.sleep(1)
        assert (wire.interrupted, wire.closed) == (1, True)

    on_jumping_loop(job)


def test_a_cancellation_that_a_task_has_outlived_is_not_taken_for_one_of_now():
    async def job() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        assert reason_of(await events_of(chat(Wire(HALF), idle=5))) == "idle"
        assert task.uncancel() == 0

    on_jumping_loop(job)


class CancelledMeanwhile(Wire):
    """Somebody cancels the reader in the moment in which its time is up."""

    task: asyncio.Task[Any]

    async def on_interruption(self) -> None:
        self.task.cancel()


def test_who_cancels_in_the_moment_of_the_interruption_is_heard():
    async def job() -> None:
        wire = CancelledMeanwhile(HALF)
        wire.task = asyncio.ensure_future(events_of(chat(wire, idle=5)))
        with pytest.raises(asyncio.CancelledError):
            await wire.task
        assert wire.task.cancelled()
        assert wire.closed

    on_jumping_loop(job)


@pytest.mark.parametrize("first", ["timer", "outside"])
def test_a_timeout_around_the_reader_at_the_same_time_is_a_timeout(first):
    async def job() -> None:
        wire = Wire(HALF)
        stream = chat(wire, idle=100)
        await anext(stream)  # the timer is set

        async def read() -> None:
            async with asyncio.timeout(100 if first == "timer" else 99.9999999):
                await events_of(stream)
                await asyncio.sleep(1)  # if the idle stream could be told in time, this is too late

        with pytest.raises(TimeoutError):
            await read()
        assert wire.closed
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    on_jumping_loop(job)


@pytest.mark.parametrize("order", ["scope first", "close first"])
def test_a_scope_that_is_cancelled_together_with_a_close_raises_nothing_elsewhere(order):
    async def job() -> None:
        wire = Wire(HALF)
        stream = chat(wire)
        scope = anyio.CancelScope()

        async def read() -> bool:
            heard = []
            with scope:
                heard = await events_of(stream)
            await asyncio.sleep(1)  # nothing is left that would be raised here
            return bool(heard)

        reader = asyncio.ensure_future(read())
        await wire.waits.wait()
        closing = asyncio.ensure_future(stream.aclose())
        if order == "scope first":
            scope.cancel()
        await asyncio.sleep(0)
        scope.cancel()
        heard, _ = await asyncio.gather(reader, closing)
        assert scope.cancelled_caught != heard
        assert scope.cancelled_caught == (order == "scope first")
        assert wire.closed

    on_jumping_loop(job)


class ScopeCancelledMeanwhile(Wire):
    """A scope around the reader is cancelled while the source clears up after its interruption."""

    scope: anyio.CancelScope

    async def on_interruption(self) -> None:
        self.scope.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)


def test_a_scope_that_is_cancelled_during_an_interruption_catches_its_own():
    async def job() -> None:
        wire = ScopeCancelledMeanwhile(HALF)
        with anyio.CancelScope() as wire.scope:
            await events_of(chat(wire, idle=5))
        assert wire.scope.cancelled_caught
        await asyncio.sleep(1)

    on_jumping_loop(job)


class Stubborn(Wire):
    """Does not heed its interruption, but once more than that."""

    async def __anext__(self) -> bytes:
        for chunk in self.chunks:
            return chunk
        while self.interrupted < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.interrupted += 1
        return b": so be it\n\n"


def test_a_source_that_does_not_heed_its_interruption_is_told_again():
    async def job() -> None:
        wire = Stubborn(HALF)
        assert reason_of(await events_of(chat(wire, idle=5))) == "idle"
        assert asyncio.get_running_loop().time() == pytest.approx(1007)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    on_jumping_loop(job)


class Late(Wire):
    """Gives what it has when it is interrupted."""

    async def __anext__(self) -> bytes:
        try:
            return await super().__anext__()
        except asyncio.CancelledError:
            return WHOLE


def test_what_a_source_gives_when_it_is_interrupted_is_heard():
    async def job() -> None:
        assert isinstance((await events_of(chat(Late(Chat.text("a")), idle=5)))[-1], Finish)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    on_jumping_loop(job)


def test_who_closes_a_source_that_gives_something_then_does_not_wait_for_ever():
    async def job() -> None:
        wire = Late(Chat.text("a"))
        stream = chat(wire)
        reader = asyncio.ensure_future(events_of(stream))
        await wire.waits.wait()
        await asyncio.wait_for(stream.aclose(), 10)
        assert (await reader)[-1].kind in ("finish", "failed")

    on_jumping_loop(job)


@pytest.mark.parametrize("steps", range(1, 40))
async def test_a_cancellation_at_any_point_closes_and_goes_on_upwards(steps):
    wire = Wire(*[Chat.text("a")] * 5, b": keep-alive\n\n", *[Chat.text("b")] * 5)
    task = asyncio.ensure_future(events_of(chat(wire)))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wire.closed


def test_the_loop_of_these_tests_jumps():
    async def job() -> None:
        await asyncio.sleep(100_000)

    loop = on_jumping_loop(job)
    assert isinstance(loop, JumpingLoop)
    assert loop.time() == pytest.approx(101_000)
