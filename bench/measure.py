"""The clock and the floor: a workload in, CPU seconds out; chunks in, what the pipe heard out.

Rules: contenders of one table run in one process, in turns, so that a busy machine is busy for all
of them; the best of the rounds counts, in CPU time of the process. Checking is never timed, yet a
timed run has to give as many events as the checked one.
"""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from bench.judge import Heard
from bench.workloads import Workload, separator
from streamnorm import Limits, Normalizer

__all__ = [
    "Run",
    "best_of",
    "count_events",
    "events_of",
    "floor",
    "hear",
]

Run = Callable[[], object]
# CPU seconds: a short contender runs several times in its turn, so none is judged by one run.
TURN = 0.02


def best_of(contenders: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """The least CPU seconds of each contender; who goes first changes with every round."""
    names = list(contenders)
    best = dict.fromkeys(names, math.inf)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            best[name] = min(best[name], _turn(contenders[name]))
    return best


def _turn(run: Run) -> float:
    """The best of as many runs as fit into a turn, one at least; user and system time."""
    gc.collect()
    best = math.inf
    begin = end = time.process_time()
    while end - begin < TURN:
        start = time.process_time()
        run()
        end = time.process_time()
        best = min(best, end - start)
    return best


# The floor.


def floor(workload: Workload) -> Run:
    """F0: split the whole body into frames and ``orjson.loads`` the data of each, nothing else."""
    frames = separator(workload.wire)
    body = workload.body.removesuffix(b"data: [DONE]\n\n").removesuffix(frames)
    loads = orjson.loads

    def data_only() -> None:
        for frame in body.split(frames):
            loads(frame[6:])

    def named() -> None:
        for frame in body.split(frames):
            loads(frame[frame.index(b"\ndata: ") + 7 :])

    return named if body.startswith(b"event:") else data_only


# The pipe.

ROOMY = Limits(
    frame_bytes=64 << 20, arguments=32 << 20, arguments_total=64 << 20
)  # of 16 MiB calls


def count_events(wire: str, chunks: Sequence[bytes]) -> int:
    """Feed everything and drop what comes out, as a consumer does that has dealt with it."""
    pipe = Normalizer(wire, limits=ROOMY)
    feed = pipe.feed
    count = 0
    for chunk in chunks:
        count += len(feed(chunk))
    return count + len(pipe.close())


def events_of(wire: str, chunks: Iterable[bytes]) -> list[Any]:
    """All events of the pipe."""
    pipe = Normalizer(wire, limits=ROOMY)
    return [event for chunk in chunks for event in pipe.feed(chunk)] + pipe.close()


def hear(wire: str, chunks: Iterable[bytes]) -> tuple[Heard, int, list[str]]:
    """What the pipe understands, the number of its events, and where it contradicts itself."""
    events = events_of(wire, chunks)
    calls = [event for event in events if event.kind == "tool_call"]
    wrong = [
        f"raw of {c.id} is not its arguments" for c in calls if json.loads(c.raw) != c.arguments
    ]
    heard = Heard(
        "".join(event.text for event in events if event.kind == "text_delta"),
        [(c.id, c.name, c.arguments if wire == "gemini" else c.raw) for c in calls],
        events[-1].kind if events else "nothing",
    )
    return heard, len(events), wrong
