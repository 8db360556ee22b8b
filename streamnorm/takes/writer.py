"""Jobs come in; each is done a moment later, on one thread for all of them.

Rule: the thread knows a job's owner weakly, so that it keeps nobody alive, and it ends when there has
been nothing to do for a while. What has not been done when the process ends, forks or drops the owner
is the owner's to do: ``at_the_latest`` names them.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import Any, Protocol

__all__ = ["DELAY", "WRITER", "Owner", "Writer", "at_the_latest"]

DELAY = 0.1  # seconds from the first thing that is to be written until it is written
PATIENCE = 5.0  # seconds without a job until the thread ends


class Owner(Protocol):
    """Somebody who has something to write."""

    def flush(self) -> None:
        """Write it; raises nothing."""

    def leave(self) -> None:
        """This is another process now, in which no other thread is at work: the first one goes on."""


class Writer:
    """One thread."""

    def __init__(self, delay: float = DELAY, patience: float = PATIENCE) -> None:
        self._delay, self._patience = delay, patience
        self.reset()

    def reset(self) -> None:
        """As if there had been no job yet."""
        self._jobs: deque[tuple[float, weakref.ref[Any]]] = deque()
        self._changed = threading.Condition()
        self._runs = False

    def soon(self, owner: Owner) -> None:
        """Have it flushed a moment later."""
        with self._changed:
            self._jobs.append((time.monotonic() + self._delay, weakref.ref(owner)))
            if self._runs:
                self._changed.notify()
                return
            self._runs = True
        try:
            threading.Thread(target=self._run, name="streamnorm-takes", daemon=True).start()
        except RuntimeError:  # no thread is to be had: then at once, by whoever is here
            with self._changed:
                jobs, self._jobs, self._runs = self._jobs, deque(), False
            for _, known in jobs:
                self._do(known)

    def _run(self) -> None:
        try:
            while (job := self._next()) is not None:
                due, known = job
                time.sleep(max(0.0, due - time.monotonic()))  # all wait equally long: in order
                self._do(known)
        finally:  # whatever ended it: the next job begins another
            with self._changed:
                self._runs = False

    def _do(self, known: weakref.ref[Any]) -> None:
        if (owner := known()) is not None:
            with suppress(Exception):  # a log that raises must not stop those of others
                owner.flush()

    def _next(self) -> tuple[float, weakref.ref[Any]] | None:
        with self._changed:
            if not self._jobs:
                self._changed.wait(self._patience)
            if self._jobs:
                return self._jobs.popleft()
            self._runs = False
            return None


WRITER = Writer()
_OPEN: weakref.WeakSet[Any] = weakref.WeakSet()


def at_the_latest(owner: Owner) -> None:
    """Have it flushed before this process ends, or becomes two that would both do it."""
    _OPEN.add(owner)


def _flush_all() -> None:
    for owner in list(_OPEN):
        owner.flush()


def _in_child() -> None:
    WRITER.reset()
    for owner in list(_OPEN):
        owner.leave()


atexit.register(_flush_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_flush_all, after_in_child=_in_child)
