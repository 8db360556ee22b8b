"""Known streams damaged by every operator, read by the engine and by two plain readers."""

from __future__ import annotations

from collections import Counter

from tests.proof.readers import WIRES
from tests.proof.run import Figures, run_all, save, table
from tests.prove.share import Report, Share

__all__ = ["damage"]


def damage(share: Share) -> Report:
    figures = run_all(
        list(WIRES), share.seed, share.mutants, share.jobs, quiet=share.mutants < 5_000
    )
    if share.mutants >= 5_000:
        save(figures, share.seed, share.seconds - share.left)
        print(table(figures), flush=True)
    if figures.mutants < share.mutants:  # it was interrupted, and said what it had
        raise KeyboardInterrupt
    return Report(told(figures), found(figures))


def told(figures: Figures) -> str:
    calls = Counter[str]()
    for (_, name), count in figures.calls.items():
        calls[name] += count
    return (
        f"{figures.mutants:,} damaged streams of {len(figures.wires)} wires by "
        f"{len(figures.operators)} operators; {calls['told']:,} calls told"
    )


def found(figures: Figures) -> list[str]:
    return [
        f"{wire}, {kind}: {count} (build/finds)" for (wire, kind), count in figures.finds.items()
    ]
