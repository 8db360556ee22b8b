"""Recording: a live stream with and without ``record=`` in, µs of CPU more per chunk out.

Every take has to read back to the body. Streams are read as fast as they can be served, in bursts, so
a batch of the recorder is as large as it gets; what chunks cost that come apart is measured with the
recorder alone, by a clock that goes on by itself: nobody waits, and no other thread is woken.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

from bench import workloads
from bench.crew import Crew
from bench.judge import judge_take
from bench.live import BUDGET, QUICK_BUDGET, WAYS, race
from bench.measure import best_of
from bench.readers import OURS, RECORDING
from bench.report import NAMES, WORKLOADS, Options, Section, number, table
from bench.workloads import Workload, split_frames
from streamnorm.takes import recorder
from streamnorm.takes.recorder import Recorder
from streamnorm.takes.writer import DELAY

__all__ = ["APART", "Pace", "paced", "run", "written_by"]

MORE = 5.0  # µs per chunk
# Seconds between two chunks, and how that is called.
APART = {0.0: "in bursts", 0.001: "1 ms apart", 0.005: "5 ms apart", 0.02: "20 ms apart"}


def run(options: Options) -> Section:
    section = Section("Recording: what `record=` adds to a live stream")
    budget = QUICK_BUDGET if options.quick else BUDGET
    rows = []
    with Crew(peers=False) as crew:
        for done, wire in enumerate(options.wires):
            options.tick(done, len(options.wires), NAMES[wire])
            rows += [_row(section, crew, wire, name, budget) for name in WORKLOADS]
    rounds = 3 if options.quick else 8
    alone = [paced(section, workloads.build(wire, "W1"), rounds) for wire in options.wires]
    head = ["one event per chunk", "without µs/chunk", "with µs/chunk", "more"]
    section.lines = [
        "CPU of the whole process, its threads included, until the recording is closed; chunks come as",
        "fast as they are read. Every take was read back and compared.",
        "",
        table(head, rows),
        "",
        "The recorder alone, µs per chunk: chunks that come apart are cleaned in smaller batches.",
        "",
        table(["one event per chunk", *APART.values()], alone),
    ]
    return section


def _row(section: Section, crew: Crew, wire: str, name: str, budget: float) -> list[str]:
    where = f"{NAMES[wire]} {WORKLOADS[name]}"
    job = {"job": "read", "wire": wire, "workload": name, "way": next(iter(WAYS))}
    best, wrong = race(section, crew, [OURS, RECORDING], job, budget)
    section.wrong += [f"recording, {where}: {what}" for each in wrong.values() for what in each]
    events = workloads.build(wire, name).events
    plain, recorded = (best[who] / events * 1e6 for who in (OURS, RECORDING))
    section.data[where] = {"plain": plain, "recorded": recorded}
    section.figure(f"{where}: times without recording", recorded / plain)
    more = section.figure(f"{where}: more per chunk", recorded - plain, "µs", MORE)
    return [where, number(plain), number(recorded), more]


# Chunks that come apart.


KEY = "sk-none-of-these-0000"  # as the header of a request has one: it is looked for


class Pace:
    """A clock that goes on with every chunk, and in place of the writer's thread one that goes by it."""

    def __init__(self, apart: float) -> None:
        self._apart = apart
        self._now = 0.0
        self._due = math.inf

    def clock(self) -> float:
        return self._now

    def soon(self, owner: object) -> None:
        self._due = self._now + DELAY

    def play(self, tape: Recorder, chunks: list[bytes]) -> None:
        for chunk in chunks:
            self._now += self._apart
            if self._now >= self._due:
                self._due = math.inf
                tape.flush()
            tape.chunk(chunk)


def paced(section: Section, workload: Workload, rounds: int) -> list[str]:
    """The row of a workload: what the recorder takes for a chunk, by how far chunks are apart."""
    where = f"{NAMES[workload.wire]} {WORKLOADS[workload.name]}"
    chunks, numbers = split_frames(workload), count()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        runs = {
            name: partial(_record, Path(folder), numbers, workload.wire, chunks, apart)
            for apart, name in APART.items()
        }
        best = best_of(runs, rounds)
        wrong = {
            what for take in Path(folder).iterdir() for what in judge_take(workload, str(take))
        }
    section.wrong += [f"recorder alone, {where}: {what}" for what in sorted(wrong)]
    cells = []
    for name, seconds in best.items():
        micros = seconds / len(chunks) * 1e6
        cells.append(section.figure(f"recorder alone, {where}, {name}", micros, "µs"))
    return [where, *cells]


def _record(
    folder: Path, numbers: Iterator[int], wire: str, chunks: list[bytes], apart: float
) -> None:
    pace = Pace(apart)
    path = folder / f"{next(numbers)}.sse"
    with written_by(pace):
        tape = Recorder.open(path, provider=wire, seed="s", secrets=[KEY], clock=pace.clock)
        pace.play(tape, chunks)
        tape.close(finished=True)


def written_by(pace: Pace) -> AbstractContextManager[object]:
    """Meanwhile it is this one that has a recorder write its chunks."""
    return patch.object(recorder, "WRITER", pace)
