"""What was judged before, kept in ``build/``: an interrupted run goes on where it was.

Rule: a verdict counts as long as what it came from stays: the mutated file, the takes, this tool, and
the file of the test that caught the mutant with all that it imports (of one that nobody caught: all the
files that were asked). After a change the test that caught it last is asked first. Which lines a test
passes is asked again after any change of the library.

So a change in one file of the library leaves the verdicts on the others: ``doubt`` has them all asked
again, which takes a process and mostly one test each.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.mutate.guards import Mutant
from tools.mutate.helpers import Helpers
from tools.mutate.trial import Outcome, Run

__all__ = ["Judged"]

LIBRARY = "streamnorm/"
# What any test may depend on, besides the library and its own file.
SHARED = (
    "recordings/",
    "tests/",
    "tools/mutate/guards.py",
    "tools/mutate/passed.py",
    "tools/mutate/trial.py",
)


class Judged:
    """Verdicts and the lines that tests pass, of this run and of earlier ones."""

    def __init__(self, root: Path, *, forget: bool = False) -> None:
        self._verdicts = root / "build" / "mutants.json"
        self._lines = root / "build" / "mutants.lines"
        self._contents = _contents(root)  # read now, as the code and the tests are
        self._helpers = Helpers(root, self._contents)
        self._shared = _digest(sys.version, *self._under(SHARED))
        self._world = _digest(self._shared, *self._under((LIBRARY,)))
        self._brought: dict[tuple[str, ...], str] = {}  # files of tests -> what they depend on
        self._said: dict[str, tuple[str, int, str]] = {}  # mutant -> caught by, tests, proof
        self._runs: dict[str, tuple[str, Run]] = {}  # test -> proof, run
        if not forget and self._verdicts.exists():
            self._said = {name: tuple(row) for name, row in _read(self._verdicts).items()}
        if not forget and self._lines.exists():
            self._runs = pickle.loads(zlib.decompress(self._lines.read_bytes()))

    # --- mutants --------------------------------------------------------------------------------

    def outcome(self, mutant: Mutant, asked: tuple[str, ...]) -> Outcome | None:
        """The verdict, if it still counts. ``asked``: the paths of its tests."""
        by, tests, proof = self._said.get(_name(mutant), ("", 0, ""))
        return Outcome(mutant, by, tests) if proof == self._proof(mutant, by, asked) else None

    def caught_by(self, mutant: Mutant) -> str:
        """The test that caught it last, whatever has changed since."""
        return self._said.get(_name(mutant), ("",))[0]

    def keep(self, outcome: Outcome, asked: tuple[str, ...]) -> None:
        proof = self._proof(outcome.mutant, outcome.by, asked)
        self._said[_name(outcome.mutant)] = outcome.by, outcome.tests, proof

    def doubt(self, mutants: Iterable[Mutant]) -> None:
        """What was said of these counts no longer; who caught them is asked first."""
        for mutant in mutants:
            by, tests, _ = self._said.get(_name(mutant), ("", 0, ""))
            self._said[_name(mutant)] = by, tests, ""
        self.save()

    def _proof(self, mutant: Mutant, by: str, asked: tuple[str, ...]) -> str:
        caught = by and not by.startswith("(")
        of_tests = self._brought_by((_file(by),) if caught else asked)
        return _digest(self._shared, self._contents.get(mutant.file, ""), of_tests)

    def _brought_by(self, paths: tuple[str, ...]) -> str:
        """What these files of tests, and all of those in a folder, say and import."""
        if paths not in self._brought:
            files = [f for f in self._contents if f.startswith(paths) and _is_test(f)]
            brought = sorted({each for file in files for each in self._helpers.of(file)})
            self._brought[paths] = _digest(*(f"{f} {self._contents[f]}" for f in brought))
        return self._brought[paths]

    def _under(self, paths: tuple[str, ...]) -> list[str]:
        """All that stands there, but for what files of tests import."""
        held = self._contents.items()
        return [f"{f} {text}" for f, text in held if f.startswith(paths) and not _is_of_tests(f)]

    # --- tests ----------------------------------------------------------------------------------

    def run(self, test: str, file: str) -> Run | None:
        """A test on the code as it is, if the lines of that file were looked at."""
        proof, run = self._runs.get(test, ("", None))
        known = run is not None and file in run.lines and proof == self._proof_of_run(test)
        return run if known else None

    def keep_runs(self, runs: dict[str, Run]) -> None:
        for test, run in runs.items():
            proof, (before, old) = self._proof_of_run(test), self._runs.get(test, ("", None))
            if old is not None and before == proof:
                run = run._replace(lines=old.lines | run.lines)
            self._runs[test] = proof, run

    def _proof_of_run(self, test: str) -> str:
        return _digest(self._world, self._brought_by((_file(test),)))

    # --- to disk --------------------------------------------------------------------------------

    def save(self) -> None:
        _write(self._verdicts, json.dumps(self._said, indent=0).encode())

    def save_runs(self) -> None:
        _write(self._lines, zlib.compress(pickle.dumps(self._runs), 1))


def _name(mutant: Mutant) -> str:
    return " | ".join(mutant.key)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _read(path: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(path.read_bytes())
    return said


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_bytes(data)
    os.replace(beside, path)


def _contents(root: Path) -> dict[str, str]:
    """What stands in each file, in short."""
    tops = (root / part for part in (LIBRARY, *SHARED))
    paths = sorted({path for top in tops for path in (top, *top.rglob("*"))})
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _is_of_tests(file: str) -> bool:
    return file.startswith("tests/") and file.endswith(".py")


def _is_test(file: str) -> bool:
    return _is_of_tests(file) and Path(file).name.startswith("test_")
