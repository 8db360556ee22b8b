"""The pipe: bytes to events against the floor. Workloads in, µs per event and ratios out."""

from __future__ import annotations

from functools import partial

from bench import workloads
from bench.judge import judge
from bench.measure import Run, best_of, count_events, floor, hear
from bench.report import NAMES, WORKLOADS, Options, Section, number, table
from bench.workloads import Workload, chunks_of, split_frames

__all__ = ["CUTS", "run"]

# How the body comes, and at most how many times the floor that may take.
CUTS = {"16 KiB": 1.0, "1,400 B": 1.15, "one event": 1.6}
WHOLE_CALLS = {"16 KiB": 1.8}  # Gemini, 2,000 whole calls: each has three events and an exact parse


def run(options: Options) -> Section:
    section = Section("The pipe: bytes to events, against the floor")
    rounds = 8 if options.quick else 30
    cells = [(wire, name) for wire in options.wires for name in WORKLOADS]
    rows = []
    for done, (wire, name) in enumerate(cells):
        options.tick(done, len(cells), f"{NAMES[wire]} {WORKLOADS[name]}")
        rows.append(_row(section, workloads.build(wire, name), rounds))
    section.lines = [
        "Times the floor: splitting the whole body into frames and `orjson.loads` of each, nothing",
        f"else. Best of {rounds} rounds in turns, CPU time, one process. Every result is checked.",
        "",
        table(["", "floor µs/event", *CUTS], rows),
    ]
    return section


def _row(section: Section, workload: Workload, rounds: int) -> list[str]:
    wire, name = workload.wire, workload.name
    where = f"{NAMES[wire]} {WORKLOADS[name]}"
    bars = WHOLE_CALLS if (wire, name) == ("gemini", "W2") else CUTS
    pieces = (chunks_of(workload, 16384), chunks_of(workload, 1400), split_frames(workload))
    contenders: dict[str, Run] = {"floor": floor(workload)}
    for cut, chunks in zip(CUTS, pieces, strict=True):
        contenders[cut] = partial(count_events, wire, chunks)
        section.wrong += [f"pipe, {where}, {cut}: {what}" for what in check(workload, chunks)]
    best = best_of(contenders, rounds)
    section.data[where] = {
        "events": workload.events,
        "bytes": len(workload.body),
        "us_per_event": {who: seconds / workload.events * 1e6 for who, seconds in best.items()},
    }
    cells = [
        section.figure(f"{where}, {cut}: times the floor", best[cut] / best["floor"], bar=bars.get(cut))
        for cut in CUTS
    ]  # fmt: skip
    return [where, number(best["floor"] / workload.events * 1e6), *cells]


def check(workload: Workload, chunks: list[bytes]) -> list[str]:
    """Everything that is wrong with the events of these chunks, the number of events included."""
    heard, count, wrong = hear(workload.wire, chunks)
    wrong = wrong + judge(workload, heard)
    if (counted := count_events(workload.wire, chunks)) != count:
        wrong.append(f"{counted} events in the timed run, {count} in the checked one")
    return wrong
