"""Did something become slower? Kept results in; the names of what did, and exit code 1, out.

    python -m bench.check              a short run against bench/results.json
    python -m bench.check --only pipe  of some sections

Only ratios of two things that were measured in one run are compared, as times of two machines or two
days say nothing. What looks slower by more than ``MOST`` is measured again, up to ``AGAIN`` times,
and its best value counts: noise makes things slower now and then, but not every time. On a machine
that is busy all the time it does, as caches are shared: that is said. What streamnorm got wrong is
named and fails as well, however fast it was.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from bench import results
from bench.progress import Progress
from bench.quiet import quiet
from bench.report import NAMES, RATIO, Options, Section, number
from bench.run import SECTIONS, add_choice

__all__ = ["AGAIN", "MOST", "Ratios", "main", "ratios", "slower", "suspects", "wires_of"]

MOST = 1.10
AGAIN = 3
# Those whose short run measures the same things as a whole one.
CHECKED = ("pipe", "live", "recording", "crowd", "ui", "startup")

What: TypeAlias = tuple[str, str]  # a section, and the name of a figure in it
Ratios: TypeAlias = Mapping[What, float]
Measure: TypeAlias = Callable[[set[What]], Ratios]
Run: TypeAlias = Callable[[str, Options], Section]


def ratios(sections: Mapping[str, Section]) -> dict[What, float]:
    """What can be compared with another run."""
    return {
        (name, what): figure.value
        for name, section in sections.items()
        for what, figure in section.figures.items()
        if figure.unit == RATIO
    }


def suspects(before: Ratios, now: Ratios) -> set[What]:
    """What is slower than before by more than may be; what only one of them has is not compared."""
    return {what for what in before.keys() & now.keys() if now[what] > before[what] * MOST}


def slower(before: Ratios, now: Ratios, measure: Measure) -> dict[What, tuple[float, float]]:
    """What stays slower however often it is measured again: before, and the best of now."""
    best = dict(now)
    for _ in range(AGAIN):
        if not (suspicious := suspects(before, best)):
            break
        for what, value in measure(suspicious).items():
            best[what] = min(value, best.get(what, value))
    return {what: (before[what], best[what]) for what in sorted(suspects(before, best))}


def main(words: list[str] | None = None, run: Run | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare a short run with the kept results.")
    add_choice(parser, "--only", list(CHECKED))
    parser.add_argument("--against", type=Path, default=results.RESULTS, help="other results")
    arguments = parser.parse_args(words)
    names = arguments.only
    quiet()
    about, kept = results.read(arguments.against)
    before = ratios({name: kept[name] for name in names if name in kept})
    runs = Runs(run or _run)
    now = runs.measured(names)
    compared = before.keys() & now.keys()
    print(f"{len(compared)} ratios, against those of {about['line']}")
    found = slower(before, now, runs.again)
    for (section, what), (then, value) in found.items():
        print(f"slower: {section}, {what}: {number(then)} -> {number(value)} x")
    if found and (load := os.getloadavg()[0]) > (cores := os.cpu_count() or 1):
        print(f"but the machine is busy (load {load:.1f}, {cores} cores): measure when it is quiet")
    if not found:
        print(f"nothing became slower by more than {MOST - 1:.0%}")
    for line in runs.wrong:
        print(f"WRONG: {line}")
    return 1 if found or runs.wrong or not compared else 0


def _run(name: str, options: Options) -> Section:
    section: Section = importlib.import_module(f"bench.{name}").run(options)
    return section


class Runs:
    """Short runs of sections. ``wrong`` is what was wrong in any of them, each thing once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.wrong: list[str] = []

    def measured(
        self, names: list[str], wires: tuple[str, ...] = tuple(NAMES)
    ) -> dict[What, float]:
        progress = Progress({name: SECTIONS[name] for name in names})
        sections: dict[str, Section] = {}
        for name in names:
            options = Options(quick=True, peers=False, wires=wires, tick=progress.section(name))
            sections[name] = self._run(name, options)
            self.wrong += [line for line in sections[name].wrong if line not in self.wrong]
            progress.done(name)
        return ratios(sections)

    def again(self, suspicious: set[What]) -> dict[What, float]:
        """The sections of the suspects, on their wires if the names tell."""
        print(f"measuring again: {len(suspicious)} that look slower", file=sys.stderr)
        taken: dict[What, float] = {}
        for name in sorted({section for section, _ in suspicious}):
            figures = (what for section, what in suspicious if section == name)
            taken |= self.measured([name], wires_of(figures))
        return taken


def wires_of(names: Iterable[str]) -> tuple[str, ...]:
    """The wires that the names of figures begin with; all, if one begins otherwise."""
    known = {label: wire for wire, label in NAMES.items()}
    firsts = [name.replace(",", " ").split()[0] for name in names]
    if any(first not in known for first in firsts):
        return tuple(NAMES)
    return tuple(wire for label, wire in known.items() if label in firsts)


if __name__ == "__main__":
    sys.exit(main())
