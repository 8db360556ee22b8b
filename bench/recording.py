"""Recording: a live stream with and without ``record=`` in, µs of CPU more per chunk out."""

from __future__ import annotations

from bench import workloads
from bench.crew import Crew
from bench.live import BUDGET, QUICK_BUDGET, WAYS, race
from bench.readers import OURS, RECORDING
from bench.report import NAMES, WORKLOADS, Options, Section, number, table

__all__ = ["run"]

MORE = 5.0  # µs per chunk


def run(options: Options) -> Section:
    section = Section("Recording: what `record=` adds to a live stream")
    budget = QUICK_BUDGET if options.quick else BUDGET
    rows = []
    with Crew(peers=False) as crew:
        for done, wire in enumerate(options.wires):
            options.tick(done, len(options.wires), NAMES[wire])
            rows += [_row(section, crew, wire, name, budget) for name in WORKLOADS]
    head = ["one event per chunk", "without µs/chunk", "with µs/chunk", "more"]
    section.lines = [
        "CPU of the whole process, its threads included, until the recording is closed.",
        "",
        table(head, rows),
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
