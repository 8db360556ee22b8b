"""Removes the guards one by one and asks the tests: survivors out.

    python -m tools.mutate                          all guards of all files (a long while)
    python -m tools.mutate --file core/calls.py     of the files whose path has this in it
    python -m tools.mutate --sample 100 --seed 7    some of them
    python -m tools.mutate --list                   only say which there are

Exit 0 only if no mutant survives (``targets.EQUIVALENT`` has those that nothing can tell from the code
as it is) and every row of that table is still needed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.mutate.guards import Mutant, mutants_of
from tools.mutate.targets import EQUIVALENT, TARGETS, Test
from tools.mutate.trial import Outcome, Trials

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    options = _options()
    os.chdir(ROOT)
    files = [file for file in TARGETS if options.file in file]
    mutants = [
        mutant
        for file in files
        for mutant in mutants_of(file, Path(file).read_text(), TARGETS[file].scope)
        if options.match in str(mutant)
    ]
    if options.sample and options.sample < len(mutants):
        chosen = set(random.Random(options.seed).sample(range(len(mutants)), options.sample))
        mutants = [mutant for index, mutant in enumerate(mutants) if index in chosen]
    if options.list or not mutants:
        print(*mutants, f"{len(mutants)} mutants", sep="\n")
        return 0 if mutants else 2
    whole = not options.sample and not options.match
    return _tried(mutants, files if whole else [], options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--file", default="", help="only files whose path has this in it")
    parser.add_argument("--match", default="", help="only mutants whose line has this in it")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--sample", type=int, default=0, help="so many, drawn by --seed")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--lenient", action="store_true", help="leave failing tests aside")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--verbose", action="store_true", help="say which test caught each")
    return parser.parse_args()


def _tried(mutants: list[Mutant], complete: list[str], options: argparse.Namespace) -> int:
    bar = _Bar(len(mutants), verbose=options.verbose)
    files = {mutant.file for mutant in mutants}
    tests = {file: _concerns(TARGETS[file].tests) for file in files}
    paths = {_path(test) for file in files for test in TARGETS[file].tests}
    trials = Trials(mutants, tests, options.jobs, options.lenient, bar.heard, bar.said)
    arguments = ["-qq", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider"]
    pytest.main(
        [*arguments, *sorted(path for path in paths if Path(path).exists())], plugins=[trials]
    )
    bar.close()
    if trials.failing:
        print("no trial, as these fail without a change:", *trials.failing[:20], sep="\n  ")
        return 2
    return _reported(bar.outcomes, complete)


def _path(test: Test) -> str:
    return test if isinstance(test, str) else test[0]


def _concerns(tests: tuple[Test, ...]) -> Callable[[str], bool]:
    rows = [(test, "") if isinstance(test, str) else test for test in tests]

    def concerns(name: str) -> bool:
        return any(name.startswith(path) and word in name for path, word in rows)

    return concerns


def _survives(outcome: Outcome) -> bool:
    return not outcome.by and outcome.mutant.key not in EQUIVALENT


def _reported(outcomes: list[Outcome], complete: list[str]) -> int:
    """Rows that are no longer needed, and a line for each file."""
    keys = {outcome.mutant.key for outcome in outcomes if not outcome.by}
    survivors = [outcome for outcome in outcomes if _survives(outcome)]
    needless = [key for key in EQUIVALENT if key[0] in complete and key not in keys]
    for key in needless:
        print("no longer needed in EQUIVALENT:", *key)
    for file in dict.fromkeys(outcome.mutant.file for outcome in outcomes):
        print(_line(file, [o for o in outcomes if o.mutant.file == file]))
    print(_line("all", outcomes))
    return 1 if survivors or needless else 0


def _line(name: str, outcomes: list[Outcome]) -> str:
    caught = sum(bool(outcome.by) for outcome in outcomes)
    survive = sum(map(_survives, outcomes))
    equivalent = len(outcomes) - caught - survive
    return f"{name}: {len(outcomes)} mutants, {caught} caught, {equivalent} equivalent, {survive} survive"


class _Bar:
    """Progress on stderr: one line that is written over, or a line now and then."""

    def __init__(self, total: int, *, verbose: bool) -> None:
        self.outcomes: list[Outcome] = []
        self._total, self._verbose = total, verbose
        self._began = self._shown = time.monotonic()

    def said(self, text: str) -> None:
        print(f"{text} …", file=sys.stderr, flush=True)
        self._began = time.monotonic()

    def heard(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if _survives(outcome):
            told = f"{outcome.tests} tests pass there" if outcome.tests else "no test passes there"
            print(f"survives: {outcome.mutant}  ({told})", flush=True)
        elif self._verbose:
            print(f"{outcome.by or 'equivalent'}: {outcome.mutant}", flush=True)
        now, tty = time.monotonic(), sys.stderr.isatty()
        if now - self._shown > (0.2 if tty else 15):
            self._shown = now
            self._draw("\r" if tty else "", "" if tty else "\n")

    def close(self) -> None:
        self._draw("\r" if sys.stderr.isatty() else "", "\n")

    def _draw(self, before: str, after: str) -> None:
        done = len(self.outcomes)
        survive = sum(map(_survives, self.outcomes))
        filled = "#" * (30 * done // self._total)
        took = time.monotonic() - self._began
        ahead = self._total - done
        left = f"about {took / done * ahead:.0f} s to go · " if done and ahead else ""
        line = f"[{filled:<30}] {done} of {self._total} · {took:.0f} s · {left}{survive} survive"
        print(before + line, end=after, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
