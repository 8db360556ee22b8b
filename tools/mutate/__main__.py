"""Removes the guards one by one and asks the tests: survivors out.

    python -m tools.mutate                          all guards of all files
    python -m tools.mutate --file core/calls.py     of the files whose path has this in it
    python -m tools.mutate --sample 100 --seed 7    some of them
    python -m tools.mutate --list                   only say which there are

It may be stopped at any time: what was judged is kept in build/ and counts until the code or its tests
change (``--again`` asks again, first who caught each; ``--afresh`` forgets that too). A file that was
judged to its end gets its row in tools/mutate/results.json, of which docs/mutants.md is made.

Exit 0 only if no mutant survives (``targets.EQUIVALENT`` has those that nothing can tell from the code
as it is) and every row of that table is still needed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.documents import main_of
from tools.mutants import made
from tools.mutate import results
from tools.mutate.guards import Mutant, mutants_of
from tools.mutate.judged import Judged
from tools.mutate.results import Row
from tools.mutate.targets import EQUIVALENT, TARGETS, Test
from tools.mutate.trial import Outcome, Trials

ROOT = Path(__file__).resolve().parents[2]
SAVE_SECONDS = 10
FEW = 6  # files that share tests which are asked first


def main() -> int:
    options = _options()
    os.chdir(ROOT)
    parts = options.file or [""]
    files = dict.fromkeys(file for part in parts for file in TARGETS if part in file)
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
    return _tried(mutants, options, whole=whole)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--file", action="append", help="only files whose path has this in it; again for more"
    )
    parser.add_argument("--match", default="", help="only mutants whose line has this in it")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--sample", type=int, default=0, help="so many, drawn by --seed")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--lenient", action="store_true", help="leave failing tests aside")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--again", action="store_true", help="no verdict of before counts")
    parser.add_argument("--afresh", action="store_true", help="forget what was judged before")
    parser.add_argument("--verbose", action="store_true", help="say which test caught each")
    return parser.parse_args()


def _tried(mutants: list[Mutant], options: argparse.Namespace, *, whole: bool) -> int:
    judged = Judged(ROOT, forget=options.afresh)
    if options.again:
        judged.doubt(mutants)
    bar = _Bar(mutants, judged, verbose=options.verbose, whole=whole)
    known = {m.key: judged.outcome(m, _asked(m.file)) for m in mutants}
    for outcome in filter(None, known.values()):
        bar.recalled(outcome)
    unknown = [mutant for mutant in mutants if known[mutant.key] is None]
    files = list(dict.fromkeys(mutant.file for mutant in unknown))
    for file in TARGETS:
        if file not in files:
            bar.judged(file)
    failing = _try(unknown, files, judged, bar, options) if unknown else []
    judged.save()
    bar.close()
    if whole:
        main_of("tools.mutants", None, made, [])
    if failing:
        print("not judged, as these tests fail without a change:", *failing[:20], sep="\n  ")
    if bar.ahead:
        print(f"{bar.ahead} mutants were not judged")
        return 2
    return 1 if bar.survivors or bar.needless else 0


def _try(
    mutants: list[Mutant], files: list[str], judged: Judged, bar: _Bar, options: argparse.Namespace
) -> list[str]:
    """Has the tests asked; those that fail on the code as it is out."""
    tests = {file: tuple(map(_concerns, _stages(file))) for file in files}
    trials = Trials(
        mutants,
        tests,
        TARGETS,
        EQUIVALENT,
        judged,
        bar,
        jobs=options.jobs,
        lenient=options.lenient,
    )
    plainly = ["--tb=native", "--assert=plain"]  # nobody reads why a test fails
    arguments = ["-qq", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider", *plainly]
    paths = sorted({path for file in files for path in _asked(file)})
    ended = pytest.main([*arguments, *paths], plugins=[trials])
    if ended == pytest.ExitCode.INTERRUPTED and not trials.failing:
        judged.save()
        sys.exit("stopped; what was judged is kept, and the next run goes on from here")
    return trials.failing


def _asked(file: str) -> tuple[str, ...]:
    """The paths of the tests that concern a file."""
    paths = [test if isinstance(test, str) else test[0] for test in TARGETS[file].tests]
    return tuple(path for path in dict.fromkeys(paths) if Path(path).exists())


def _stages(file: str) -> list[tuple[Test, ...]]:
    """The tests of a file: those of few files, then the others."""
    asked = Counter(test for target in TARGETS.values() for test in target.tests)
    own = tuple(test for test in TARGETS[file].tests if asked[test] <= FEW)
    others = tuple(test for test in TARGETS[file].tests if asked[test] > FEW)
    return [tests for tests in (own, others) if tests]


def _concerns(tests: tuple[Test, ...]) -> Callable[[str], bool]:
    rows = [(test, "") if isinstance(test, str) else test for test in tests]

    def concerns(name: str) -> bool:
        return any(name.startswith(path) and word in name for path, word in rows)

    return concerns


def _survives(outcome: Outcome) -> bool:
    return not outcome.by and outcome.mutant.key not in EQUIVALENT


class _Bar:
    """Progress on stderr: one line that is written over, or a line now and then. What is found, file by
    file, on stdout."""

    def __init__(
        self, mutants: list[Mutant], judged: Judged, *, verbose: bool, whole: bool
    ) -> None:
        self.survivors = self.needless = 0
        self._judged, self._verbose, self._whole = judged, verbose, whole
        self._total, self._recalled = len(mutants), 0
        self._outcomes: dict[str, list[Outcome]] = {mutant.file: [] for mutant in mutants}
        self._spent = 0.0  # seconds for mutants alone
        self._since = self._shown = self._saved = time.monotonic()

    @property
    def ahead(self) -> int:
        """Mutants that are not judged."""
        return self._total - sum(map(len, self._outcomes.values()))

    def recalled(self, outcome: Outcome) -> None:
        """Judged by an earlier run."""
        self._recalled += 1
        self._outcomes[outcome.mutant.file].append(outcome)
        self._say(outcome)

    def heard(self, outcome: Outcome) -> None:
        """Judged now."""
        file = outcome.mutant.file
        self._outcomes[file].append(outcome)
        self._judged.keep(outcome, _asked(file))
        self._say(outcome)
        self._spent += time.monotonic() - self._since
        self._since = time.monotonic()
        self._draw(file)
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._judged.save()
            self._saved = time.monotonic()

    def traced(self, done: int, total: int) -> None:
        """Tests on the code as it is."""
        self._show(f"{done} of {total} tests on the code as it is")
        self._since = time.monotonic()

    def judged(self, file: str) -> None:
        """All mutants of this file are: its line, and its row."""
        outcomes = self._outcomes.get(file)
        if outcomes is None:
            return
        self._judged.save()
        self._show("", now=True)
        row = _row(outcomes)
        print(f"{file}: {row.told()}", flush=True)
        if self._whole:
            self._excuses(file, outcomes)
            results.keep(file, row)

    def close(self) -> None:
        self._show("", now=True)
        row = _row([outcome for some in self._outcomes.values() for outcome in some])
        print(f"all: {row.told()}")

    def _say(self, outcome: Outcome) -> None:
        if _survives(outcome):
            self.survivors += 1
            told = f"{outcome.tests} tests pass there" if outcome.tests else "no test passes there"
            print(f"survives: {outcome.mutant}  ({told})", flush=True)
        elif self._verbose:
            print(f"{outcome.by or 'equivalent'}: {outcome.mutant}", flush=True)

    def _excuses(self, file: str, outcomes: list[Outcome]) -> None:
        uncaught = {outcome.mutant.key for outcome in outcomes if not outcome.by}
        for key in (key for key in EQUIVALENT if key[0] == file and key not in uncaught):
            self.needless += 1
            print("no longer needed in EQUIVALENT:", *key, flush=True)

    def _draw(self, file: str) -> None:
        ahead, done = self.ahead, self._total - self.ahead
        filled = "#" * (30 * done // self._total)
        fresh = done - self._recalled
        left = f"about {self._spent / fresh * ahead / 60:.0f} min to go · " if ahead else ""
        line = f"[{filled:<30}] {done} of {self._total} · {left}{self.survivors} survive"
        self._show(f"{line} · {file}")

    def _show(self, line: str, *, now: bool = False) -> None:
        """Written over where that can be, else only now and then."""
        if sys.stderr.isatty():
            if now or time.monotonic() - self._shown > 0.2:
                self._shown = time.monotonic()
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif line and time.monotonic() - self._shown > 15:
            self._shown = time.monotonic()
            print(line, file=sys.stderr, flush=True)


def _row(outcomes: list[Outcome]) -> Row:
    caught = sum(bool(outcome.by) for outcome in outcomes)
    survive = sum(map(_survives, outcomes))
    return Row(len(outcomes), caught, len(outcomes) - caught - survive, survive)


if __name__ == "__main__":
    sys.exit(main())
