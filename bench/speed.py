"""Speed: bytes to events against the floor. Workloads in, µs per event and ratios out."""

from __future__ import annotations

from functools import partial

from bench import workloads
from bench.judge import judge
from bench.measure import (
    Run,
    best_of,
    chunks_of,
    count_events,
    floor,
    hear,
    split_frames,
)
from bench.report import Options, Section, table
from bench.workloads import Workload

BARS = {"openai_chat": 1.25, "anthropic": 1.25, "openai_responses": 1.5, "gemini": 1.5}
CUTS = ("16 KiB", "1,400 B", "one event")


def run(options: Options) -> Section:
    section = Section("Speed: bytes to events, against the floor")
    rounds = 8 if options.quick else 30
    rows = []
    for wire in options.wires:
        for name in ("W1", "W2"):
            rows.append(_row(section, workloads.build(wire, name), rounds))
    head = ["wire", "workload", "F0 µs/event", *(f"{cut}" for cut in CUTS), "bar", "at 16 KiB"]
    section.lines = [
        "µs per wire event (times the floor). F0: split the frames of the whole body and",
        f"`orjson.loads` the data of each, nothing else. Best of {rounds} interleaved rounds of",
        "20 ms, CPU time, one process, one thread. W1 is text-heavy, W2 tool-heavy. Every result",
        "is checked against what was generated.",
        "",
        table(head, rows, words=2),
    ]
    return section


def _row(section: Section, workload: Workload, rounds: int) -> list[str]:
    wire, name = workload.wire, workload.name
    cuts = dict(
        zip(
            CUTS,
            (chunks_of(workload, 16384), chunks_of(workload, 1400), split_frames(workload)),
            strict=True,
        )
    )
    contenders: dict[str, Run] = {"F0": floor(workload)}
    wrong: list[str] = []
    for cut, chunks in cuts.items():
        contenders[cut] = partial(count_events, wire, chunks)
        wrong += [f"{wire} {name}, {cut}: {what}" for what in check(workload, chunks)]
    section.wrong += wrong
    best = best_of(contenders, rounds)
    ratios = {cut: best[cut] / best["F0"] for cut in CUTS}
    micros = {who: seconds / workload.events * 1e6 for who, seconds in best.items()}
    section.data[f"{wire}/{name}"] = {
        "events": workload.events,
        "bytes": len(workload.body),
        "us_per_event": micros,
        "ratio": ratios,
        "wrong": wrong,
    }
    verdict = section.bar(f"{wire} {name} at 16 KiB, times the floor", ratios[CUTS[0]], BARS[wire])
    cells = [f"{micros[cut]:.2f} ({ratios[cut]:.2f}x)" for cut in CUTS]
    if wrong:
        verdict = "**WRONG**"
    return [wire, name, f"{micros['F0']:.2f}", *cells, f"{BARS[wire]:.2f}x", verdict]


def check(workload: Workload, chunks: list[bytes]) -> list[str]:
    """Everything that is wrong with the events of these chunks, the number of events included."""
    heard, count, wrong = hear(workload.wire, chunks)
    wrong = wrong + judge(workload, heard)
    if (counted := count_events(workload.wire, chunks)) != count:
        wrong.append(f"{counted} events in the timed run, {count} in the checked one")
    return wrong
