"""Latency: events that carry the time of their sending in, µs until they come out, out.

The server sends an event each millisecond, alone in its HTTP chunk, and writes the time into its
text; the reader notes when the text comes out. What a contender adds is its percentile less that of
a bare httpx loop on the same wire in the same run. CPU per event is told as well: here every event
is a wake-up of its own, as it is when a model talks.
"""

from __future__ import annotations

from bench.crew import Crew
from bench.readers import BARE, OURS
from bench.report import NAMES, Options, Section, number, table

__all__ = ["percentile", "run"]

EVENTS = 500
KINDS = ("chunks", "dicts", "ours", "SDK")
WARM = 50  # the first events of a stream: connecting, imports, caches


def run(options: Options) -> Section:
    section = Section("Latency: from the server's write to the reader's loop")
    rounds = 2 if options.quick else 5
    rows = []
    with Crew(peers=options.peers) as crew:
        for done, wire in enumerate(options.wires):
            options.tick(done, len(options.wires), NAMES[wire])
            rows += _rows(section, crew, wire, rounds)
        section.notes += [f"left out: {name} ({why})" for name, why in crew.left_out.items()]
    head = ["", "reader", "p50 µs", "p99 µs", "p50 added", "p99 added", "CPU µs/event"]
    section.lines = [
        f"{EVENTS:,} text deltas a millisecond apart, the best of {rounds} rounds in turns;",
        "added: more than a bare httpx loop on the same wire.",
        "",
        table(head, rows, words=2),
    ]
    return section


def _rows(section: Section, crew: Crew, wire: str, rounds: int) -> list[list[str]]:
    taken: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name in crew.contenders(wire, *KINDS):
            answer = crew.ask(name, job="latency", wire=wire, workload=f"STAMP-{EVENTS}")
            if answer is None or "error" in answer:
                continue
            section.wrong += [f"latency, {NAMES[wire]}, {name}: {w}" for w in answer["wrong"]]
            waits = answer["micros"][WARM:]
            round_ = {
                "p50": percentile(waits, 50),
                "p99": percentile(waits, 99),
                "cpu": answer["cpu"] / EVENTS * 1e6,
            }
            before = taken.get(name, round_)
            taken[name] = {key: min(value, before[key]) for key, value in round_.items()}
    section.data[NAMES[wire]] = taken
    bare = taken[BARE]
    section.figure(f"{NAMES[wire]}: p50 added", taken[OURS]["p50"] - bare["p50"], "µs")
    section.figure(f"{NAMES[wire]}: p99 added", taken[OURS]["p99"] - bare["p99"], "µs")
    section.figure(
        f"{NAMES[wire]}, a wake-up per event: times bare", taken[OURS]["cpu"] / bare["cpu"]
    )
    return [
        [NAMES[wire], name, number(t["p50"]), number(t["p99"]),
         _added(t["p50"] - bare["p50"]), _added(t["p99"] - bare["p99"]), number(t["cpu"])]
        for name, t in taken.items()
    ]  # fmt: skip


def _added(value: float) -> str:
    return f"{value:+.0f}"


def percentile(values: list[float], percent: float) -> float:
    """The value that ``percent`` of them do not exceed.

    >>> percentile([5.0, 1.0, 4.0, 2.0, 3.0], 50)
    3.0
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
