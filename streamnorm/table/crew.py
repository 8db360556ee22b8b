"""Batches come in; the rows of each are written as its part, on all cores of this machine.

Rule: no batch is lost, and none ends the others. A process that dies over a batch (killed, out of
memory) is told, and another one reads the batch again, file by file; the file over which that one
dies as well becomes a row that says so. The processes end with the one that began them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..captures import Left
from ..captures.inputs import Input
from ..errors import UsageError
from .arrow import rows
from .batches import fetched
from .parts import Batch, write_part

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext

__all__ = ["Work", "on_cores"]

OUT_OF_MEMORY = 70  # the exit code of a process that could not go on
Say = Callable[[str], None]


class Work(NamedTuple):
    """What a process does with each batch."""

    folder: Path  # where parts are written
    provider: str | None


def on_cores(work: Work, batches: Iterable[Batch], jobs: int, say: Say) -> Iterator[Batch]:
    """Each batch, when its part is there."""
    crew = _Crew(work, jobs, say)
    try:
        yield from crew.run(iter(batches))
    finally:
        crew.end()


class _Task(NamedTuple):
    batch: Batch
    again: bool = False  # file by file, as a process died over it


class _Crew:
    def __init__(self, work: Work, jobs: int, say: Say) -> None:
        self._work, self._jobs, self._say = work, jobs, say
        self._context = multiprocessing.get_context("spawn")  # as threads may run here: no copies
        self._again: deque[_Task] = deque()
        self._busy: dict[Connection, _Worker] = {}
        self._idle: list[_Worker] = []

    def run(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        while True:
            self._give(batches)
            if not self._busy:
                return
            for ready in wait(list(self._busy)):
                yield from self._heard(self._busy[ready])  # type: ignore[index]

    def _give(self, batches: Iterator[Batch]) -> None:
        """Everybody has something to do, as long as there is something."""
        while len(self._busy) < self._jobs:
            task = self._again.popleft() if self._again else _task(next(batches, None))
            if task is None:
                return
            worker = self._idle.pop() if self._idle else _Worker(self._context, self._work)
            self._busy[worker.ours] = worker
            worker.give(task)

    def _heard(self, worker: _Worker) -> Iterator[Batch]:
        try:
            told = worker.ours.recv()
        except (EOFError, OSError):  # it died
            del self._busy[worker.ours]
            self._again.append(self._mourned(worker))
            return
        if isinstance(told, int):
            worker.at = told
            return
        del self._busy[worker.ours]
        self._idle.append(worker)
        if told is not None:
            raise told
        yield worker.task.batch

    def _mourned(self, worker: _Worker) -> _Task:
        """What is to be done again of the work of one that died."""
        why = worker.bury()
        batch, again = worker.task
        if not again:
            self._say(f"a process {why}; {_files(batch)} read again, one by one")
            return _Task(batch, again=True)
        lost = batch.files[worker.at]
        self._say(f"a process {why} again, over {lost.name}, which is left out")
        left = Left(lost.name, f"the process that read it {why}")
        files = (*batch.files[: worker.at], left, *batch.files[worker.at + 1 :])
        return _Task(batch._replace(files=files), again=True)

    def end(self) -> None:
        for worker in [*self._idle, *self._busy.values()]:
            worker.end()


def _task(batch: Batch | None) -> _Task | None:
    return None if batch is None else _Task(batch)


def _files(batch: Batch) -> str:
    return "its file is" if len(batch.files) == 1 else f"its {len(batch.files)} files are"


class _Worker:
    """One process, as it is seen from here."""

    task: _Task
    at = 0  # the file that it reads

    def __init__(self, context: SpawnContext, work: Work) -> None:
        self.ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with _undisturbed():
            self._process.start()
        theirs.close()  # so that ours ends when the process does

    def give(self, task: _Task) -> None:
        self.task, self.at = task, 0
        try:
            self.ours.send(task)
        except OSError:  # it died while it had nothing to do: that is heard when it is listened to
            return

    def bury(self) -> str:
        """How it died."""
        self._process.join()
        self.ours.close()
        code = self._process.exitcode or 0
        if code == OUT_OF_MEMORY:
            return "ran out of memory"
        return (
            f"was killed ({signal.Signals(-code).name})"
            if code < 0
            else f"ended (exit code {code})"
        )

    def end(self) -> None:
        self.ours.close()
        self._process.terminate()
        self._process.join()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What begins now never hears of Ctrl-C, from its first moment on; this one hears of it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # whose beginning would let it through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in the process -------------------------------------------------------------------------------


def _serve(pipe: Connection, work: Work) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began this one ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
            pipe.send(_done(task, work, pipe))
        except (EOFError, OSError):  # nobody is there any more
            return


def _end_with_parent() -> None:
    """Also in the middle of a file, or of waiting for one."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _done(task: _Task, work: Work, pipe: Connection) -> Exception | None:
    """The part is written; or why not."""
    files = task.batch.files
    some = _one_by_one(files, pipe) if task.again else fetched(files)
    try:
        write_part(work.folder / task.batch.part, rows(some, provider=work.provider))
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)  # nothing can be relied on now
    except OSError as error:
        return UsageError(f"cannot write {work.folder}: {error.strerror or error}")
    return None


def _one_by_one(files: tuple[Input | Left, ...], pipe: Connection) -> Iterator[Any]:
    for at, file in enumerate(files):
        pipe.send(at)
        yield file
