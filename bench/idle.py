"""Many streams, many readers that mostly wait: how long does it take to append?

500 streams are told side by side, each to ten readers; every stream gets an entry now and then and a
beat every second, as a chat router's do. Half of the readers ask for a sign of life as often as a page
that is served gets one. Measured is what a producer waits for one append.

    python -m bench.idle sqlite | redis://127.0.0.1:6379/0 | memory
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

import anyio

from streamnorm.ui.log import EventLog, MemoryLog, SQLiteLog

WARM_UP = 2.0  # seconds that are not measured


def opened(where: str, folder: Path) -> EventLog:
    """The log of that name."""
    if where == "memory":
        return MemoryLog()
    if where == "sqlite":
        return SQLiteLog(folder / "log.db")
    from streamnorm.ui.log import RedisLog

    return RedisLog(where, prefix=f"bench-{os.getpid()}", keep_for=120)


async def measured(
    log: EventLog, streams: int, readers: int, every: float, seconds: float
) -> dict[str, float]:
    """What producers waited for, in milliseconds, and what the process worked."""
    took: list[float] = []
    heard = 0
    began = time.monotonic() + WARM_UP
    until = began + seconds

    async def read(stream: str, within: float) -> None:
        nonlocal heard
        reader = log.read(stream, owner="ann")
        while (page := await reader.page(within=within)) != []:
            heard += len(page or ())

    async def produce(writer: object, dice: random.Random) -> None:
        await anyio.sleep(dice.random() * every)
        beat = 0.0
        due = time.monotonic() + every * dice.random()
        while (now := time.monotonic()) < until:
            if now >= due:
                await writer.append([b'{"type":"text-delta","id":"0","delta":"word "}'])  # type: ignore[attr-defined]
                if now >= began:
                    took.append(time.monotonic() - now)
                due, beat = now + every * (0.5 + dice.random()), now
            elif now - beat >= 1.0:
                await writer.beat()  # type: ignore[attr-defined]
                beat = now
            await anyio.sleep(max(0.0, min(due, beat + 1.0) - time.monotonic()))
        await writer.close()  # type: ignore[attr-defined]

    dice = random.Random(7)
    async with anyio.create_task_group() as group:
        cpu = time.process_time()
        for number in range(streams):
            writer = await log.create(owner="ann", chat=f"c{number}")
            for which in range(readers):
                group.start_soon(read, writer.stream, 1.0 if which % 2 else 15.0)
            group.start_soon(produce, writer, random.Random(dice.random()))
    took.sort()
    return {
        "appends": len(took),
        "p50": 1000 * statistics.median(took),
        "p99": 1000 * took[int(len(took) * 0.99)],
        "max": 1000 * took[-1],
        "cpu": time.process_time() - cpu,
        "heard": heard,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log", help="memory, sqlite, or the address of a Redis")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--readers", type=int, default=10)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between appends")
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()

    async def run(folder: Path) -> dict[str, float]:
        async with opened(args.log, folder) as log:
            return await measured(log, args.streams, args.readers, args.every, args.seconds)

    with tempfile.TemporaryDirectory() as folder:
        seen = anyio.run(run, Path(folder))
    print(
        f"{args.streams} streams x {args.readers} readers: append p50 {seen['p50']:.2f} ms, "
        f"p99 {seen['p99']:.2f} ms, max {seen['max']:.1f} ms ({seen['appends']:.0f} appends, "
        f"{seen['heard']:.0f} entries heard, {seen['cpu']:.1f} s of CPU in {args.seconds:g} s)"
    )


if __name__ == "__main__":
    main()
