"""One suite over all logs: exactly the missing suffix, after any position, whoever dies.

Redis is a real one: STREAMNORM_REDIS names its address, and where ``redis-server`` is installed the
tests of a restart start their own. Without them those tests are left out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import UsageError
from streamnorm.ui.log import (
    Busy,
    Conflict,
    EventLog,
    Gap,
    Gone,
    LogUnavailable,
    MemoryLog,
    ProducerLost,
    SQLiteLog,
)
from tests.ui.redis_server import RedisServer, needs_server

REDIS = os.environ.get("STREAMNORM_REDIS", "")
needs_redis = pytest.mark.skipif(not REDIS, reason="STREAMNORM_REDIS names no Redis")
ODD = [b"", b"\0\xff", "\u2028 é".encode(), b"x" * 70_000]


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


Make = Callable[..., EventLog]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=needs_redis)])
async def make(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[Make]:
    """Makes logs on one store; they are closed at the end."""
    made: list[EventLog] = []

    def build(**options: Any) -> EventLog:
        if request.param == "memory":
            log: EventLog = MemoryLog(clock=clock, **options)
        elif request.param == "sqlite":
            log = SQLiteLog(tmp_path / "log.db", clock=clock, **options)
        else:
            from streamnorm.ui.log import RedisLog

            log = RedisLog(REDIS, prefix=f"test-{os.getpid()}-{tmp_path.name}", **options)
        made.append(log)
        return log

    yield build
    for log in made:
        await log.aclose()


async def all_of(log: EventLog, stream: str, after: int = 0, owner: str = "ann") -> list[bytes]:
    return [entry.data async for entry in log.read(stream, owner=owner, after=after)]


async def heard_before_loss(log: EventLog, stream: str) -> list[bytes]:
    heard: list[bytes] = []
    try:
        async for entry in log.read(stream, owner="ann"):
            heard.append(entry.data)
    except ProducerLost:
        return heard
    raise AssertionError("the stream ended as if its producer lived")


def payloads(n: int) -> list[bytes]:
    return [b"payload %d" % i for i in range(1, n + 1)]


# --- positions ------------------------------------------------------------------------------------


async def test_every_position_gives_exactly_the_rest(make: Make) -> None:
    log, told = make(), payloads(12) + ODD
    writer = await log.create(owner="ann")
    for data in told:
        await writer.append([data])
    await writer.close()
    for after in range(len(told) + 1):
        entries = [e async for e in log.read(writer.stream, owner="ann", after=after)]
        assert [e.data for e in entries] == told[after:]
        assert [e.seq for e in entries] == list(range(after + 1, len(told) + 1))


async def test_a_reader_that_leaves_at_any_point_misses_nothing(make: Make) -> None:
    """Told live: at each cut the reader goes away while the producer goes on."""
    log, told = make(), payloads(9)
    for cut in range(1, len(told) + 1):
        writer = await log.create(owner="ann")
        await writer.append(told[:cut])
        reader = log.read(writer.stream, owner="ann")
        before = [await anext(reader) for _ in range(cut)]
        await writer.append(told[cut:])
        await writer.close()
        rest = await all_of(log, writer.stream, after=before[-1].seq)
        assert [e.data for e in before] + rest == told


async def test_several_readers_live_and_late(make: Make) -> None:
    log, told = make(), payloads(50)
    writer = await log.create(owner="ann")
    heard: list[list[bytes]] = []

    async def follow() -> None:
        heard.append(await all_of(log, writer.stream))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(follow)
        for at in range(0, 50, 7):
            await writer.append(told[at : at + 7])
        await writer.close()
    assert heard == [told] * 5
    assert await all_of(log, writer.stream) == told


async def test_a_trimmed_position_is_a_gap(make: Make) -> None:
    log = make(keep=10)
    writer = await log.create(owner="ann")
    await writer.append(payloads(30))
    await writer.close()
    assert len(await all_of(log, writer.stream, after=20)) == 10
    for after in (0, 19):
        with pytest.raises(Gap) as gap:
            await all_of(log, writer.stream, after=after)
        assert gap.value.first_available == 21


async def test_a_position_that_never_was_is_a_gap(make: Make) -> None:
    log = make()
    writer = await log.create(owner="ann")
    await writer.append(payloads(3))
    with pytest.raises(Gap) as gap:
        await all_of(log, writer.stream, after=4)
    assert gap.value.first_available == 1


async def test_a_page_waits_no_longer_than_told(make: Make) -> None:
    log = make()
    writer = await log.create(owner="ann")
    reader = log.read(writer.stream, owner="ann")
    assert await reader.page(within=0) is None
    await writer.close([b"x"])
    assert [e.data for e in await reader.page() or ()] == [b"x"]
    assert await reader.page() == []


# --- appending ------------------------------------------------------------------------------------


async def test_the_same_append_again_changes_nothing(make: Make) -> None:
    """A reply got lost: the producer cannot know, and asks again."""
    log = make()
    writer = await log.create(owner="ann")
    await writer.append(payloads(3))
    await log._append(writer.stream, 2, payloads(5)[1:], "open")
    await log._append(writer.stream, 1, payloads(5), "done")
    assert await all_of(log, writer.stream) == payloads(5)


async def test_two_producers_on_one_stream_are_told_apart(make: Make) -> None:
    log = make()
    writer = await log.create(owner="ann")
    await writer.append(payloads(3))
    with pytest.raises(Conflict):
        await log._append(writer.stream, 3, [b"another"], "open")
    with pytest.raises(Conflict):
        await log._append(writer.stream, 7, [b"a hole"], "open")
    await writer.close()
    assert await all_of(log, writer.stream) == payloads(3)


async def test_who_conflicts_in_a_crowd_fails_alone(make: Make) -> None:
    failed: list[int] = []

    async def append(number: int, writer: Any, payload: bytes) -> None:
        try:
            await writer.append([payload])
        except Conflict:
            failed.append(number)

    async with make() as log:
        writers = [await log.create(owner="ann") for _ in range(8)]
        for writer in writers[::3]:
            await log._append(writer.stream, 1, [b"other"], "open")
        async with anyio.create_task_group() as group:
            for number, writer in enumerate(writers):
                group.start_soon(append, number, writer, b"%d" % number)
        assert sorted(failed) == [0, 3, 6]
        pages = [await log.read(w.stream, owner="ann").page() for w in writers]
    other = b"other"
    assert [[entry.data for entry in page or ()] for page in pages] == [
        [other], [b"1"], [b"2"], [other], [b"4"], [b"5"], [other], [b"7"],
    ]  # fmt: skip


async def test_nothing_is_appended_after_the_end(make: Make) -> None:
    writer = await make().create(owner="ann")
    await writer.close([b"last"])
    await writer.close()
    with pytest.raises(UsageError):
        await writer.append([b"more"])


async def test_a_cancelled_append_leaves_the_numbers_right(make: Make) -> None:
    log = make()
    writer = await log.create(owner="ann")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await writer.append([b"one"])
    told = [b"one"] if writer.last else []
    await writer.append([b"two"])
    await writer.close()
    assert await all_of(log, writer.stream) == [*told, b"two"]


# --- owners and chats -----------------------------------------------------------------------------


async def test_somebody_elses_stream_is_as_gone_as_none(make: Make) -> None:
    log = make()
    writer = await log.create(owner="ann", chat="c")
    await writer.append([b"secret"])
    for stream, owner in ((writer.stream, "bob"), ("no-such-stream", "ann")):
        with pytest.raises(Gone) as gone:
            await all_of(log, stream, owner=owner)
        assert str(gone.value) == "there is no such stream"
        with pytest.raises(Gone):
            await log.stop(stream, owner=owner)
    assert await log.active(owner="bob", chat="c") is None


async def test_stream_ids_cannot_be_guessed(make: Make) -> None:
    log = make()
    ids = {(await log.create(owner="ann")).stream for _ in range(50)}
    assert len(ids) == 50
    assert all(len(id) == 64 for id in ids)  # 256 bits


async def test_a_chat_has_one_stream_at_a_time(make: Make) -> None:
    log = make()
    assert await log.active(owner="ann", chat="c") is None
    first = await log.create(owner="ann", chat="c")
    assert await log.active(owner="ann", chat="c") == first.stream
    with pytest.raises(Busy) as busy:
        await log.create(owner="ann", chat="c")
    assert busy.value.stream == first.stream
    await log.create(owner="bob", chat="c")
    await first.close()
    assert await log.active(owner="ann", chat="c") is None
    second = await log.create(owner="ann", chat="c")
    assert await log.active(owner="ann", chat="c") == second.stream


async def test_a_chat_knows_its_streams_in_order(make: Make) -> None:
    log = make()
    assert await log.streams(owner="ann", chat="c") == []
    told = []
    for _ in range(3):
        writer = await log.create(owner="ann", chat="c")
        told.append(writer.stream)
        assert await log.streams(owner="ann", chat="c") == told
        await writer.close()
    await log.create(owner="ann", chat="d")
    await log.create(owner="bob", chat="c")
    await log.create(owner="ann")
    assert await log.streams(owner="ann", chat="c") == told


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_chat_forgets_its_streams_with_them(
    kind: str, tmp_path: Path, clock: Clock
) -> None:
    options = {"keep_for": 60.0, "clock": clock}
    async with (
        MemoryLog(**options) if kind == "memory" else SQLiteLog(tmp_path / "l.db", **options) as log
    ):  # type: ignore[arg-type]
        old = await log.create(owner="ann", chat="c")
        await old.close()
        clock.now += 40
        young = await log.create(owner="ann", chat="c")
        clock.now += 40
        await log.create(owner="bob", chat="x")  # when something begins, what is old goes
        assert await log.streams(owner="ann", chat="c") == [young.stream]
        clock.now += 40
        await log.create(owner="bob", chat="y")
        assert await log.streams(owner="ann", chat="c") == []


async def test_a_stop_reaches_the_producer(make: Make) -> None:
    log = make()
    writer = await log.create(owner="ann")
    assert await writer.append([b"one"]) is False
    await log.stop(writer.stream, owner="ann")
    assert await writer.beat() is True
    assert await writer.append([b"two"]) is True
    await writer.close()
    assert await all_of(log, writer.stream) == [b"one", b"two"]


@pytest.mark.parametrize("name", ["", "x" * 513])
async def test_names_have_a_size(name: str) -> None:
    with pytest.raises(UsageError):
        await MemoryLog().create(owner=name)
    with pytest.raises(UsageError):
        await MemoryLog().create(owner="ann", chat=name)


# --- time -----------------------------------------------------------------------------------------


async def test_a_producer_without_a_lease_is_lost(make: Make, clock: Clock) -> None:
    log = make(lease=0.2)
    writer = await log.create(owner="ann", chat="c")
    await writer.append(payloads(3))
    clock.now += 60
    assert await heard_before_loss(log, writer.stream) == payloads(3)
    assert await log.active(owner="ann", chat="c") is None
    await log.create(owner="ann", chat="c")  # the chat is free again


async def test_a_beat_renews_the_lease(make: Make, clock: Clock) -> None:
    log = make(lease=30)
    writer = await log.create(owner="ann", chat="c")
    for _ in range(3):
        clock.now += 20
        await writer.beat()
    assert await log.active(owner="ann", chat="c") == writer.stream


async def test_an_expired_stream_is_gone(tmp_path: Path, clock: Clock) -> None:
    for log in (
        MemoryLog(keep_for=60, clock=clock),
        SQLiteLog(tmp_path / "log.db", keep_for=60, clock=clock),
    ):
        writer = await log.create(owner="ann", chat="c")
        await writer.close(payloads(3))
        clock.now += 59
        assert len(await all_of(log, writer.stream)) == 3
        clock.now += 2
        with pytest.raises(Gone):
            await all_of(log, writer.stream)
        other = await log.create(owner="ann", chat="c")
        with pytest.raises(Gone):
            await log._append(writer.stream, 4, [b"x"], "open")
        assert await log.active(owner="ann", chat="c") == other.stream
        await log.aclose()


@needs_redis
async def test_an_expired_redis_stream_is_gone() -> None:
    from streamnorm.ui.log import RedisLog

    async with RedisLog(REDIS, keep_for=0.001, lease=0.001) as log:
        writer = await log.create(owner="ann")
        with anyio.fail_after(10):
            while True:  # the server's own clock decides
                try:
                    await log._look(writer.stream, "ann", 0, 0)
                except Gone:
                    return


def test_a_log_can_be_made_before_there_is_a_loop(tmp_path: Path) -> None:
    """As modules of applications do."""
    logs: list[EventLog] = [MemoryLog(), SQLiteLog(tmp_path / "log.db")]
    if REDIS:
        from streamnorm.ui.log import RedisLog

        logs.append(RedisLog(REDIS))

    async def main() -> None:
        for log in logs:
            writer = await log.create(owner="ann")
            await writer.close(payloads(3))
            assert await all_of(log, writer.stream) == payloads(3)
            await log.aclose()

    anyio.run(main)


# --- other processes ------------------------------------------------------------------------------

PRODUCER = """
import sys, anyio
from streamnorm.ui.log import RedisLog, SQLiteLog
kind, where, lease = sys.argv[1:4]

async def main():
    log = (SQLiteLog if kind == "sqlite" else RedisLog)(where, lease=float(lease))
    writer = await log.create(owner="ann")
    print(writer.stream, flush=True)
    while True:
        await writer.append([b"payload %d" % (writer.last + 1)])
        print(writer.last, flush=True)

anyio.run(main)
"""


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("redis", marks=needs_redis)])
async def test_kill_9_of_the_producer(kind: str, tmp_path: Path) -> None:
    """All that was acknowledged is there, without a hole, and the death is told."""
    where = REDIS if kind == "redis" else str(tmp_path / "log.db")
    stream, acknowledged = killed_producer(kind, where)
    log = _log(kind, where)
    with anyio.fail_after(20):
        heard = await heard_before_loss(log, stream)
    await log.aclose()
    assert len(heard) >= acknowledged
    assert heard == payloads(len(heard))


def killed_producer(kind: str, where: str) -> tuple[str, int]:
    """The stream of a process that was killed while it produced, and what it had been told."""
    producer = subprocess.Popen(
        [sys.executable, "-c", PRODUCER, kind, where, "1"], stdout=subprocess.PIPE, text=True
    )
    assert producer.stdout is not None
    stream = producer.stdout.readline().strip()
    acknowledged = [int(producer.stdout.readline()) for _ in range(25)][-1]
    producer.send_signal(signal.SIGKILL)
    rest = producer.stdout.read().split()  # told before it died
    producer.wait()
    producer.stdout.close()
    return stream, int(rest[-1]) if rest and rest[-1].isdigit() else acknowledged


def _log(kind: str, where: str) -> EventLog:
    if kind == "sqlite":
        return SQLiteLog(where, lease=1)
    from streamnorm.ui.log import RedisLog

    return RedisLog(where, lease=1)


async def test_a_reader_in_another_process_than_the_producer(tmp_path: Path) -> None:
    """Two logs on one file know nothing of each other but the file."""
    mine, theirs = (SQLiteLog(tmp_path / "log.db", poll=0.01) for _ in range(2))
    writer = await mine.create(owner="ann")
    async with anyio.create_task_group() as group:

        async def produce() -> None:
            for data in payloads(20):
                await writer.append([data])
            await writer.close()

        group.start_soon(produce)
        assert await all_of(theirs, writer.stream) == payloads(20)
    await mine.aclose()
    await theirs.aclose()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"not a database" * 100)
    log = SQLiteLog(tmp_path / "log.db")
    with pytest.raises(LogUnavailable, match=r"log\.db"):
        await log.create(owner="ann")
    await log.aclose()


# --- a Redis of our own ---------------------------------------------------------------------------


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    yield server
    server.kill()


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, "--appendonly", "no")
    yield server
    server.kill()


@needs_server
async def test_a_restarted_redis_loses_nothing(durable: RedisServer) -> None:
    from streamnorm.ui.log import RedisLog

    heard: list[bytes] = []
    async with RedisLog(durable.url, lease=60, poll=0.05, patience=60) as log:
        writer = await log.create(owner="ann")

        async def follow() -> None:
            async for entry in log.read(writer.stream, owner="ann"):
                heard.append(entry.data)

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await writer.append(payloads(10)[:5])
            durable.kill()
            durable.start()
            await writer.append(payloads(10)[5:])
            await writer.close()
        assert heard == payloads(10)
        assert await all_of(log, writer.stream) == payloads(10)


@needs_server
async def test_a_redis_that_forgets_is_refused(forgetful: RedisServer) -> None:
    from streamnorm.ui.log import RedisLog

    async with RedisLog(forgetful.url) as log:
        with pytest.raises(LogUnavailable, match="appendonly yes"):
            await log.create(owner="ann")
    async with RedisLog(forgetful.url, allow_loss=True) as log:
        writer = await log.create(owner="ann")
        await writer.append(payloads(3))
        forgetful.kill()
        forgetful.start()
        with pytest.raises(Gone):  # lost, and said so
            await all_of(log, writer.stream, after=3)


@needs_server
async def test_a_redis_that_throws_away_is_refused(tmp_path: Path) -> None:
    from streamnorm.ui.log import RedisLog

    server = RedisServer(
        tmp_path, "--appendonly", "yes", "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"
    )
    try:
        async with RedisLog(server.url) as log:
            with pytest.raises(LogUnavailable, match="noeviction"):
                await log.create(owner="ann")
    finally:
        server.kill()


# --- any history of appends -----------------------------------------------------------------------


@given(
    batches=st.lists(st.lists(st.binary(max_size=20), max_size=5), max_size=8),
    again=st.lists(st.integers(0, 7), max_size=4),
    after=st.integers(0, 40),
)
def test_any_batches_with_any_repeats_read_the_same(
    batches: list[list[bytes]], again: list[int], after: int
) -> None:
    told = [data for batch in batches for data in batch]

    async def main() -> None:
        log = MemoryLog()
        writer = await log.create(owner="ann")
        starts = []
        for batch in batches:
            starts.append(writer.last + 1)
            await writer.append(batch)
        for which in again:
            if which < len(batches):
                await log._append(writer.stream, starts[which], batches[which], "open")
        await writer.close()
        if after <= len(told):
            assert await all_of(log, writer.stream, after=after) == told[after:]
        else:
            with pytest.raises(Gap):
                await all_of(log, writer.stream, after=after)

    anyio.run(main)
