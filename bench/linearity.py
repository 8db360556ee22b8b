"""Linearity: one call of 64 KiB to 4 MiB in, ns per byte and the exponent of growth out."""

from __future__ import annotations

from functools import partial

from bench import workloads
from bench.judge import judge
from bench.measure import best_of, chunks_of, count_events, growth, hear
from bench.report import Options, Section, mark, table
from bench.workloads import SIZES, Workload

CHUNKS = {"16 KiB": 16384, "64 B": 64}
STREAMS = (*((wire, "W3") for wire in workloads.WIRES), ("gemini", "W3p"))
LABELS = {("gemini", "W3"): "gemini, whole", ("gemini", "W3p"): "gemini, partialArgs"}
ROUNDS = {"64K": 10, "256K": 6, "1M": 4, "4M": 3}
# Not 1.0: large bodies leave the processor's caches and few rounds are noisy. Square is 2.
BAR, BAR_LAST = 1.15, 1.25


def run(options: Options) -> Section:
    section = Section("Linearity: one call, 64 KiB to 4 MiB of arguments in 20-character deltas")
    sizes = [size for size in SIZES if not (options.quick and size == "4M")]
    rows = []
    for wire, kind in STREAMS:
        if wire not in options.wires:
            continue
        label = LABELS.get((wire, kind), wire)
        seconds, lengths = _measure(section, wire, kind, label, sizes)
        rows += [_row(section, label, cut, seconds[cut], lengths) for cut in CHUNKS]
    head = [
        "wire",
        "chunks",
        *(f"{size[:-1]} {size[-1]}iB" for size in sizes),
        "growth",
        "last step",
        "linear",
    ]
    section.lines = [
        "ns per byte of the wire. Growth is k in time ~ size^k over all sizes; the last step is k",
        f"between the two largest. The bars are {BAR} and {BAR_LAST}. Gemini sends a whole call in",
        "one event, or streams it as partialArgs.",
        "",
        table(head, rows, words=2),
    ]
    return section


def _measure(
    section: Section, wire: str, kind: str, label: str, sizes: list[str]
) -> tuple[dict[str, list[float]], list[int]]:
    """CPU seconds per chunking and the lengths of the bodies, smallest size first."""
    seconds: dict[str, list[float]] = {cut: [] for cut in CHUNKS}
    lengths = []
    for size in sizes:
        workload = workloads.build(wire, f"{kind}-{size}")
        lengths.append(len(workload.body))
        for cut, best in _best(section, workload, label).items():
            seconds[cut].append(best)
    return seconds, lengths


def _best(section: Section, workload: Workload, label: str) -> dict[str, float]:
    pieces = {cut: chunks_of(workload, length) for cut, length in CHUNKS.items()}
    heard, count, wrong = hear(workload.wire, pieces["16 KiB"])
    wrong = wrong + judge(workload, heard)
    for cut, chunks in pieces.items():
        if (counted := count_events(workload.wire, chunks)) != count:
            wrong.append(f"{counted} events at {cut}, {count} when checked")
    section.wrong += [f"{label} {workload.name}: {what}" for what in wrong]
    contenders = {
        cut: partial(count_events, workload.wire, chunks) for cut, chunks in pieces.items()
    }
    return best_of(contenders, ROUNDS[workload.name.partition("-")[2]])


def _row(
    section: Section, label: str, cut: str, seconds: list[float], lengths: list[int]
) -> list[str]:
    whole = growth(seconds[0], seconds[-1], lengths[-1] / lengths[0])
    last = growth(seconds[-2], seconds[-1], lengths[-1] / lengths[-2])
    rates = [s / n * 1e9 for s, n in zip(seconds, lengths, strict=True)]
    section.data[f"{label}/{cut}"] = {
        "bytes": lengths,
        "seconds": seconds,
        "ns_per_byte": rates,
        "growth": whole,
        "growth_last_step": last,
    }
    section.bar(f"{label} at {cut}, growth exponent", whole, BAR)
    section.bar(f"{label} at {cut}, growth exponent of the last step", last, BAR_LAST)
    cells = [*(f"{rate:.1f}" for rate in rates), f"{whole:.2f}", f"{last:.2f}"]
    return [label, cut, *cells, mark(whole <= BAR and last <= BAR_LAST)]
