"""Trying mutants: collected tests and mutants in, what became of each out.

The tests are collected once. Then each mutant has a process of its own, forked from here, in which
the code of the one changed function (or table) is exchanged and the tests that pass through the changed
lines are run until one fails: so a mutant costs a fork and, mostly, one test.

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
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import IO, Any, NamedTuple, TypeAlias

import pytest
from _pytest.runner import runtestprotocol

from tools.mutate.guards import Mutant

__all__ = ["Outcome", "Trials"]

# Where the code that can be exchanged is held: by file, qualified name and line.
Functions: TypeAlias = dict[tuple[str, str, int], list[FunctionType]]

MEMORY = 4 << 30  # bytes of address space: a guard against growth is seen to be missing
LEAST_SECONDS = 6  # of processor time for one trial
UNTRIED = 3  # what a trial exits with whose code could not be exchanged: nobody has caught it
KNOWN = 20  # tests that caught others before are asked first


class Outcome(NamedTuple):
    """What became of a mutant: ``by`` names the test that caught it, if one did."""

    mutant: Mutant
    by: str
    tests: int  # that pass through its lines


class Run(NamedTuple):
    """One test on the code as it is: how long it took, and the lines that it passed, by file."""

    failed: bool
    seconds: float
    lines: dict[str, set[int]]


class Trials:
    """A pytest plugin that tries mutants in place of running the tests."""

    def __init__(
        self,
        mutants: list[Mutant],
        tests: dict[str, Callable[[str], bool]],
        jobs: int,
        lenient: bool,
        heard: Callable[[Outcome], None],
        said: Callable[[str], None],
    ) -> None:
        self.failing: list[str] = []
        self._mutants = mutants
        self._tests = tests  # file -> is this test one of its?
        self._jobs = jobs
        self._lenient = lenient  # leave tests aside that fail without a change
        self._heard, self._said = heard, said
        self._kills: dict[str, Counter[str]] = defaultdict(Counter)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.failing = ["collecting the tests"]
            return True
        asked = self._tests.values()
        items = {i.nodeid: i for i in session.items if any(mine(i.nodeid) for mine in asked)}
        files = {m.file for m in self._mutants}
        self._said(f"{len(items)} tests on the code as it is")
        runs: dict[str, Run] = _in_child(lambda: _traced(items.values(), files))
        self.failing = [name for name, run in runs.items() if run.failed]
        if self._lenient:
            for name in self.failing:
                del runs[name]
            self.failing = []
        if not self.failing:
            self._said(f"{len(self._mutants)} mutants")
            functions = _functions_of(files)
            gc.collect()
            gc.freeze()
            self._try_all(items, runs, functions)
        return True

    def _try_all(
        self, items: dict[str, pytest.Item], runs: dict[str, Run], functions: Functions
    ) -> None:
        waiting = list(reversed(self._mutants))
        open_: dict[int, tuple[Mutant, int, int]] = {}  # pipe -> mutant, process, tests
        while waiting or open_:
            while waiting and len(open_) < self._jobs:
                mutant = waiting.pop()
                chosen = self._chosen(mutant, runs)
                if not chosen:
                    self._heard(Outcome(mutant, "", 0))
                    continue
                budget = LEAST_SECONDS + 4 * sum(runs[name].seconds for name in chosen)
                tried = [items[name] for name in chosen]
                pipe, process = _forked(mutant, tried, functions, budget)
                open_[pipe] = mutant, process, len(chosen)
            for pipe in select.select(list(open_), [], [], 1)[0]:
                mutant, process, count = open_.pop(pipe)
                self._heard(Outcome(mutant, self._verdict(mutant, pipe, process), count))

    def _verdict(self, mutant: Mutant, pipe: int, process: int) -> str:
        with os.fdopen(pipe) as stream:
            by = stream.read()
        _, status = os.waitpid(process, 0)
        if by:
            self._kills[mutant.file][by] += 1
        elif status and os.waitstatus_to_exitcode(status) != UNTRIED:
            by = "(it did not come to an end)" if os.WIFSIGNALED(status) else f"(exit {status})"
        return by

    def _chosen(self, mutant: Mutant, runs: dict[str, Run]) -> list[str]:
        """The tests that pass through the mutant: those that caught many first, then quick ones."""
        mine, kills = self._tests[mutant.file], self._kills[mutant.file]
        known = dict(kills.most_common(KNOWN))
        passed = {
            name: run.lines.get(mutant.file, set()) for name, run in runs.items() if mine(name)
        }
        through = [
            name for name, lines in passed.items()
            if (not lines.isdisjoint(mutant.lines) if mutant.lines else lines)
        ]  # fmt: skip
        return sorted(through, key=lambda name: (-known.get(name, 0), runs[name].seconds))


# --- the code as it is ----------------------------------------------------------------------------


def _traced(items: Iterable[pytest.Item], files: set[str]) -> dict[str, Run]:
    """Every test once, with the lines of these files that it passed."""
    runs: dict[str, Run] = {}
    ordered = list(items)
    for item, after in zip(ordered, [*ordered[1:], None], strict=True):
        with tempfile.TemporaryFile() as elsewhere:
            lines = _Lines(files, elsewhere.fileno())
            before = _worked()
            sys.settrace(lines.enter)
            try:
                failed = _fails(item, after)
            finally:
                sys.settrace(None)
            seconds = _worked() - before
            runs[item.nodeid] = Run(failed, seconds, lines.passed(elsewhere))
    return runs


def _worked() -> float:
    """Processor time so far, with that of the processes that tests forked."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class _Lines:
    """The lines that are passed, here and in processes that a test forks (those write them down).

    Each line of a file has its mark from the start: a test that measures memory sees nothing grow.
    """

    def __init__(self, files: set[str], elsewhere: int) -> None:
        self._here = {str(Path(file).resolve()): _marks(file) for file in files}
        self._names = dict(zip(self._here, files, strict=True))
        self._process, self._elsewhere = os.getpid(), elsewhere

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        if (mine := self._here.get(file)) is None:
            return None

        def line(frame: FrameType, event: str, arg: Any) -> Any:
            if not mine[frame.f_lineno]:
                mine[frame.f_lineno] = 1
                if os.getpid() != self._process:
                    os.write(self._elsewhere, f"{frame.f_lineno} {file}\n".encode())
            return line

        return line

    def passed(self, elsewhere: IO[bytes]) -> dict[str, set[int]]:
        elsewhere.seek(0)
        for row in elsewhere.read().decode().splitlines():
            number, _, file = row.partition(" ")
            self._here[file][int(number)] = 1
        return {
            self._names[file]: {line for line, passed in enumerate(marks) if passed}
            for file, marks in self._here.items() if any(marks)
        }  # fmt: skip


def _marks(file: str) -> bytearray:
    return bytearray(len(Path(file).read_bytes().splitlines()) + 1)


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
        importlib.import_module(_module(file))  # some are loaded only when they are needed
    for value in gc.get_objects():
        if isinstance(value, FunctionType) and (file := paths.get(value.__code__.co_filename)):
            code = value.__code__
            held[file, code.co_qualname, code.co_firstlineno].append(value)
    return dict(held)


def _forked(
    mutant: Mutant, items: list[pytest.Item], functions: Functions, budget: float
) -> tuple[int, int]:
    def work(write: Callable[[bytes], object]) -> None:
        seconds = int(budget)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(seconds * 20)  # if it only waits
        try:
            install(mutant, functions)
        except ValueError:
            os._exit(UNTRIED)
        for item, after in zip(items, [*items[1:], None], strict=True):
            if _fails(item, after):
                write(item.nodeid.encode())
                return

    return _fork(work)


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
    for code in _codes(compiled):
        name, line = code.co_qualname, code.co_firstlineno
        inside = name.startswith(f"{mutant.function}.<locals>.")
        if inside or (name, line) == (mutant.function, mutant.first_line):
            for function in functions.get((mutant.file, name, line), ()):
                function.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _install_table(mutant: Mutant) -> None:
    """Tables that can change are changed where they are; else the new one takes its place everywhere."""
    module = sys.modules[_module(mutant.file)]
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


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


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
