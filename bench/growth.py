"""Growth: one call of 64 KiB to 16 MiB of arguments in, ns per byte of each size out.

Beside it that of the floor, which only splits and parses: large texts are dearer for whoever holds them,
as memory that is used for the first time is, and what no cache holds.
"""

from __future__ import annotations

from functools import partial

from bench import workloads
from bench.judge import judge
from bench.measure import best_of, count_events, floor, hear
from bench.report import NAMES, Options, Section, number, table
from bench.workloads import Workload, chunks_of

__all__ = ["run"]

CHUNKS = {"16 KiB": 16384, "1,400 B": 1400}
STREAMS = (*((wire, "W3") for wire in workloads.WIRES), ("gemini", "W3p"))
LABELS = {("gemini", "W3"): "Gemini, whole", ("gemini", "W3p"): "Gemini, partialArgs"}
ROUNDS = {"64K": 12, "1M": 4, "4M": 3, "16M": 2}
SMALL, LARGE = "64K", "16M"
LARGEST = {"W3p": "4M"}  # partialArgs are ten times as dear
# Of the cost per byte, from the smallest to the largest. A cost that grew with the square would be
# 256 times as much.
BAR = 1.15
FLOOR = "floor"


def run(options: Options) -> Section:
    section = Section("Growth: the cost of a byte in calls of 64 KiB to 16 MiB")
    sizes = [SMALL, "1M"] if options.quick else list(ROUNDS)
    rows = []
    streams = [(wire, kind) for wire, kind in STREAMS if wire in options.wires]
    for done, (wire, kind) in enumerate(streams):
        label = LABELS.get((wire, kind), NAMES[wire])
        options.tick(done, len(streams), label)
        rates: dict[str, list[float]] = {cut: [] for cut in (*CHUNKS, FLOOR)}
        for size in sizes[: _until(sizes, LARGEST.get(kind, LARGE))]:
            workload = workloads.build(wire, f"{kind}-{size}")
            for cut, seconds in _best(section, workload, label).items():
                rates[cut].append(seconds / len(workload.body) * 1e9)
        # A short run has no largest: what it says is told, and held against no bar.
        bar = None if options.quick else BAR
        of_floor = number(_grown(section, f"{label}, {FLOOR}", sizes, rates[FLOOR])) + " x"
        rows += [
            [*_row(section, f"{label}, {cut}", sizes, rates[cut], bar), of_floor] for cut in CHUNKS
        ]
    head = ["ns per byte of the wire", *(f"{s[:-1]} {s[-1]}iB" for s in sizes), "growth", "floor's"]
    section.lines = [
        "One call in deltas of 64 characters. Growth: the cost of a byte of the largest, as a",
        "multiple of that of the smallest. Gemini sends a call whole, or in pieces as partialArgs.",
        "The floor splits the body and parses each frame, and holds nothing but the last.",
        "",
        table(head, rows),
    ]
    return section


def _until(sizes: list[str], largest: str) -> int:
    return sizes.index(largest) + 1 if largest in sizes else len(sizes)


def _best(section: Section, workload: Workload, label: str) -> dict[str, float]:
    """CPU seconds per chunking."""
    pieces = {cut: chunks_of(workload, length) for cut, length in CHUNKS.items()}
    heard, count, wrong = hear(workload.wire, pieces["16 KiB"])
    wrong = wrong + judge(workload, heard)
    contenders = {
        cut: partial(count_events, workload.wire, chunks) for cut, chunks in pieces.items()
    }
    for cut, contender in contenders.items():
        if (counted := contender()) != count:
            wrong.append(f"{counted} events at {cut}, {count} when checked")
    section.wrong += [f"growth, {label} {workload.name}: {what}" for what in wrong]
    rounds = ROUNDS[workload.name.partition("-")[2]]
    return best_of({**contenders, FLOOR: floor(workload)}, rounds)


def _row(
    section: Section, where: str, sizes: list[str], rates: list[float], bar: float | None
) -> list[str]:
    ratio = _grown(section, where, sizes, rates)
    taken = section.data[where]
    grown = section.figure(f"{where}: growth to {list(taken)[-1]}iB", ratio, bar=bar)
    return [where, *(number(taken[s]) if s in taken else "" for s in sizes), grown]


def _grown(section: Section, where: str, sizes: list[str], rates: list[float]) -> float:
    section.data[where] = dict(zip(sizes, rates, strict=False))
    return rates[-1] / rates[0]
