"""Trying mutants: collected tests and mutants in, what became of each out.

The tests are collected once. Then each mutant has a process of its own, forked from here, in which
the code of the one changed function (or table) is exchanged and the tests that pass through the changed
lines are run until one fails: so a mutant costs a fork and, mostly, one test. File by file, and first
by the tests that are about this file alone: of the others only what those do not catch is asked.

Rule: nothing is tried in this process itself; memory and time of a trial are bounded.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import pickle
import resource
import select
import signal
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Container, Iterable
from itertools import accumulate
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, Protocol, TypeAlias

import pytest
from _pytest.runner import runtestprotocol

from tools.mutate.guards import Mutant
from tools.mutate.passed import Functions, Passed, codes_in, module_of

__all__ = ["Outcome", "Run", "Trials"]

MEMORY = 4 << 30  # bytes of address space: a guard against growth is seen to be missing
LEAST_SECONDS = 3  # of processor time for one test; else so many times what it takes …
SLOWER = 6  # … on the code as it is
WAITING = 20  # times that, by the clock, if it only waits
UNTRIED = 3  # what a trial exits with whose code could not be exchanged: nobody has caught it
KNOWN = 20  # tests that caught others before are asked first …
NEAR = 4  # … and before them those that did so in the same function
BATCH = 100  # tests that are run on the code as it is, then kept
EXCUSE_SECONDS = 1  # of tests that are asked whether an excuse is still needed


class Outcome(NamedTuple):
    """What became of a mutant: ``by`` names the test that caught it, if one did."""

    mutant: Mutant
    by: str
    tests: int  # that pass through its lines


class Run(NamedTuple):
    """One test on the code as it is: how long it took, and the lines that it passed."""

    failed: bool
    seconds: float
    lines: dict[str, int]  # file -> a bit for each line; files that were looked at and no others


Concerns: TypeAlias = Callable[[str], bool]


class Memory(Protocol):
    """What earlier runs found: see ``judged``."""

    def caught_by(self, mutant: Mutant) -> str: ...
    def run(self, test: str, file: str) -> Run | None: ...
    def keep_runs(self, runs: dict[str, Run]) -> None: ...
    def save_runs(self) -> None: ...


class Teller(Protocol):
    """Who hears of the progress."""

    def traced(self, done: int, total: int) -> None: ...
    def heard(self, outcome: Outcome) -> None: ...
    def judged(self, file: str) -> None: ...


class Trials:
    """A pytest plugin that tries mutants in place of running the tests."""

    def __init__(
        self,
        mutants: list[Mutant],
        tests: dict[str, tuple[Concerns, ...]],
        files: Collection[str],
        excused: Container[tuple[str, str, str]],
        memory: Memory,
        teller: Teller,
        *,
        jobs: int,
        lenient: bool,
    ) -> None:
        self.failing: list[str] = []
        self._mutants: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in mutants:
            self._mutants[mutant.file].append(mutant)
        self._tests = tests  # file -> is this test one of its? First those that are its own
        self._files = files  # whose lines are looked at: once a test is run, for all of them
        self._excused = excused
        self._memory, self._teller = memory, teller
        self._jobs = jobs
        self._lenient = lenient  # leave tests aside that fail without a change
        self._asked: Counter[tuple[str, str, str]] = Counter()  # tests, by mutant
        self._kills: Counter[str] = Counter()  # by these tests, in this file
        self._near: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=NEAR))  # … by function

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.failing = ["collecting the tests"]
            return True
        items = {item.nodeid: item for item in session.items}
        functions = _functions_of(set(self._files))
        gc.collect()
        gc.freeze()
        for file, mutants in self._mutants.items():
            self._kills.clear()
            self._near.clear()
            mutants = self._try_who_caught(mutants, items, functions)
            for concerns in self._tests[file]:
                if not mutants:
                    continue
                mine = {name: item for name, item in items.items() if concerns(name)}
                runs = self._runs_of(mine, file, functions)
                failing = [name for name, run in runs.items() if run.failed]
                if failing and not self._lenient:
                    self.failing += failing
                    break
                last = concerns is self._tests[file][-1]
                mutants = self._try_all(mutants, mine, runs, functions, last=last)
            else:
                self._teller.judged(file)
        return True

    def _try_who_caught(
        self, mutants: list[Mutant], items: dict[str, pytest.Item], functions: Functions
    ) -> list[Mutant]:
        """Asks each mutant the test that caught it last; those that it does not catch now, out. So after
        a change most take one test, and only tests that caught something are run on the code as it is."""
        last = {mutant.key: self._memory.caught_by(mutant) for mutant in mutants}
        concerns = self._tests[mutants[0].file] if mutants else ()
        mine = {
            name: items[name] for name in sorted(set(last.values()))
            if name in items and any(concern(name) for concern in concerns)
        }  # fmt: skip
        runs = self._runs_of(mine, mutants[0].file, functions) if mine else {}
        sound = {name: run for name, run in runs.items() if not run.failed}
        asked = [mutant for mutant in mutants if last[mutant.key] in sound]
        uncaught = self._try_all(asked, mine, sound, functions, only=last) if asked else []
        keys = {mutant.key for mutant in uncaught}
        return [m for m in mutants if m.key in keys or last[m.key] not in sound]

    def _runs_of(
        self, items: dict[str, pytest.Item], file: str, functions: Functions
    ) -> dict[str, Run]:
        """The tests of a file on the code as it is; those that are not known yet are run."""
        memory = self._memory
        unknown = [item for name, item in items.items() if memory.run(name, file) is None]
        for at in range(0, len(unknown), BATCH):
            self._teller.traced(at, len(unknown))
            some = unknown[at : at + BATCH]
            memory.keep_runs(_in_child(lambda some=some: _run(some, self._files, functions)))
        if unknown:
            memory.save_runs()
            self._teller.traced(len(unknown), len(unknown))
        found = {name: memory.run(name, file) for name in items}
        return {name: run for name, run in found.items() if run is not None}

    def _try_all(
        self,
        mutants: list[Mutant],
        items: dict[str, pytest.Item],
        runs: dict[str, Run],
        functions: Functions,
        *,
        last: bool = False,
        only: dict[tuple[str, str, str], str] | None = None,
    ) -> list[Mutant]:
        """Asks these tests; the mutants that none of them catches, if others are asked next, out.
        ``only``: of each mutant this one."""
        uncaught: list[Mutant] = []

        def heard(outcome: Outcome) -> None:
            self._asked[outcome.mutant.key] += outcome.tests
            if outcome.by or last:
                self._teller.heard(outcome._replace(tests=self._asked[outcome.mutant.key]))
            else:
                uncaught.append(outcome.mutant)

        gc.freeze()  # what no process looks for garbage in need not be copied for it
        waiting = list(reversed(mutants))
        open_: dict[int, tuple[Mutant, int, int]] = {}  # pipe -> mutant, process, tests
        while waiting or open_:
            while waiting and len(open_) < self._jobs:
                mutant = waiting.pop()
                chosen = self._chosen(mutant, runs) if only is None else [only[mutant.key]]
                if not chosen:
                    heard(Outcome(mutant, "", 0))
                    continue
                tried = [(items[name], runs[name].seconds) for name in chosen]
                pipe, process = _forked(mutant, tried, functions)
                open_[pipe] = mutant, process, len(chosen)
            for pipe in select.select(list(open_), [], [], 1)[0]:
                mutant, process, count = open_.pop(pipe)
                heard(Outcome(mutant, self._verdict(mutant, pipe, process), count))
        return uncaught

    def _verdict(self, mutant: Mutant, pipe: int, process: int) -> str:
        with os.fdopen(pipe) as stream:
            by = stream.read()
        _, status = os.waitpid(process, 0)
        if by:
            self._kills[by] += 1
            self._near[mutant.function].append(by)
        elif status and os.waitstatus_to_exitcode(status) != UNTRIED:
            by = "(it did not come to an end)" if os.WIFSIGNALED(status) else f"(exit {status})"
        return by

    def _chosen(self, mutant: Mutant, runs: dict[str, Run]) -> list[str]:
        """The tests that pass through the mutant: the one that caught it last time, those that caught
        others in its function, those that caught many; then of each test its quickest case, of each
        its next one, and so on. An excuse is asked for some seconds only: is it needed still?"""
        last, near = self._memory.caught_by(mutant), self._near[mutant.function]
        known = {
            name: -n / (runs[name].seconds + 0.01)
            for name, n in self._kills.most_common(KNOWN)
            if name in runs
        }
        through = [n for n, run in runs.items() if not run.failed and _passes(mutant, run)]
        through.sort(key=lambda n: runs[n].seconds)
        cases: Counter[str] = Counter()
        turn = {}
        for name in through:
            test = name.partition("[")[0]
            turn[name] = cases[test]
            cases[test] += 1
        through.sort(key=lambda n: (n != last, n not in near, known.get(n, 0), turn[n]))
        if mutant.key not in self._excused:
            return through
        spent = accumulate(runs[name].seconds for name in through)
        return [n for n, sum_ in zip(through, spent, strict=True) if sum_ < EXCUSE_SECONDS]


def _passes(mutant: Mutant, run: Run) -> bool:
    passed, lines = run.lines[mutant.file], mutant.lines
    if not lines:
        return bool(passed)
    return bool(passed >> lines.start & (1 << len(lines)) - 1)


# --- the code as it is ----------------------------------------------------------------------------


def _run(
    items: Iterable[pytest.Item], files: Iterable[str], functions: Functions
) -> dict[str, Run]:
    """Every test once, with the lines of these files that it passed."""
    passed = {file: Passed(file) for file in files}
    for each in passed.values():
        each.mark(functions)
    runs: dict[str, Run] = {}
    ordered, keepers = list(items), _keepers(files)
    for item, after in zip(ordered, [*ordered[1:], None], strict=True):
        _forget(keepers)
        before = _worked()
        failed = _fails(item, after)
        lines = {file: each.lines() for file, each in passed.items()}
        runs[item.nodeid] = Run(failed, _worked() - before, lines)
    return runs


def _worked() -> float:
    """Processor time so far, with that of the processes that tests forked."""
    each = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in each)


def _fails(item: pytest.Item, after: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


def _in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` returns, from a process of its own: it leaves no traces here."""
    pipe, process = _fork(lambda write: write(pickle.dumps(work())))
    with os.fdopen(pipe, "rb") as stream:
        said = stream.read()
    os.waitpid(process, 0)
    return pickle.loads(said)


# --- a mutant -------------------------------------------------------------------------------------


def _functions_of(files: set[str]) -> Functions:
    paths = {str(Path(file).resolve()): file for file in files}
    held: Functions = defaultdict(list)
    for file in files:
        importlib.import_module(module_of(file))  # some are loaded only when they are needed
    gc.unfreeze()  # what is frozen is not listed: the tests freeze what they collected
    for value in gc.get_objects():
        if isinstance(value, FunctionType) and (file := paths.get(value.__code__.co_filename)):
            code = value.__code__
            held[file, code.co_qualname, code.co_firstlineno].append(value)
    if unheld := files - {file for file, _, _ in held}:
        raise LookupError(f"no function of these is found: {sorted(unheld)}")
    return dict(held)


def _forked(
    mutant: Mutant, tests: list[tuple[pytest.Item, float]], functions: Functions
) -> tuple[int, int]:
    """Asks these tests, each with the seconds it takes on the code as it is."""
    items = [item for item, _ in tests]

    def work(write: Callable[[bytes], object]) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            install(mutant, functions)
        except ValueError:
            os._exit(UNTRIED)
        for (item, seconds), after in zip(tests, [*items[1:], None], strict=True):
            _limit(seconds)
            if _fails(item, after):
                write(item.nodeid.encode())
                return

    return _fork(work)


def _limit(seconds: float) -> None:
    """A test that takes so long usually has only some times as long from here."""
    allowed = LEAST_SECONDS + int(SLOWER * seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + 1 + allowed
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
    signal.alarm(allowed * WAITING)


def _fork(work: Callable[[Callable[[bytes], object]], None]) -> tuple[int, int]:
    """A process that does this, mute but for what it writes; the pipe's end to read, and its number."""
    theirs, ours = os.pipe()
    process = os.fork()
    if process:
        os.close(ours)
        return theirs, process
    code = 1
    try:
        os.close(theirs)
        mute = os.open(os.devnull, os.O_RDWR)
        os.dup2(mute, 1)
        os.dup2(mute, 2)
        with os.fdopen(ours, "wb") as stream:
            work(stream.write)
        code = 0
    finally:
        os._exit(code)


def install(mutant: Mutant, functions: Functions) -> None:
    """Exchange the code of the function and of those inside it, or the table, that the mutant changes."""
    mutant.edit()
    if mutant.table:
        return _install_table(mutant)
    compiled = compile(mutant.tree, str(Path(mutant.file).resolve()), "exec")
    for code in codes_in(compiled):
        name, line = code.co_qualname, code.co_firstlineno
        inside = name.startswith(f"{mutant.function}.<locals>.")
        if inside or (name, line) == (mutant.function, mutant.first_line):
            for function in functions.get((mutant.file, name, line), ()):
                function.__code__ = code
    _forget(_keepers([mutant.file]))


def _keepers(files: Iterable[str]) -> list[Any]:
    """The functions of these files that keep what they found."""
    modules = (vars(sys.modules[module_of(file)]) for file in files)
    return [value for held in modules for value in held.values() if hasattr(value, "cache_clear")]


def _forget(keepers: Iterable[Any]) -> None:
    """What was found before says nothing of the code as it is now, nor which lines find it."""
    for keeper in keepers:
        keeper.cache_clear()


def _install_table(mutant: Mutant) -> None:
    """Tables that can change are changed where they are; else the new one takes its place everywhere."""
    module = sys.modules[module_of(mutant.file)]
    holder: Any = getattr(module, mutant.function) if mutant.function else module
    body = _body(mutant)
    node = next(n for n in body if _target(n) == mutant.table)
    expression = ast.Expression(node.value)
    scope = {**vars(module), **vars(holder)}
    new = eval(compile(ast.fix_missing_locations(expression), mutant.file, "eval"), scope)
    old = getattr(holder, mutant.table)
    if isinstance(old, dict | set):
        old.clear()
        old.update(new)
        return
    for other in list(sys.modules.values()):
        spaces = [other, *(v for v in vars(other).values() if isinstance(v, type))]
        for space in spaces:
            for name, value in list(vars(space).items()):
                if value is old and old != () and getattr(space, "__module__", "streamnorm"):
                    setattr(space, name, new)


def _body(mutant: Mutant) -> list[Any]:
    if not mutant.function:
        return mutant.tree.body
    classes = (n for n in mutant.tree.body if isinstance(n, ast.ClassDef))
    return next(n.body for n in classes if n.name == mutant.function)


def _target(node: Any) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else None
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""
