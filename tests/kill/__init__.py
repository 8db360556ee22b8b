"""Writers that are killed at random moments, over and over; what they were told is held against what is there.

    python -c "from tests.kill import run; print(run('sqlite-history', 100, print))"

``run`` starts a process (``tests/kill/nursery.py``) that forks writers and kills them with SIGKILL. After
each kill another process looks into the store, and goes on where the dead one stopped.

The promises, of a history: each commit that was acknowledged is there, no commit is there in part, each
settled record that was acknowledged is there, and to do once more what the dead one was doing is done
once. Of a log: each entry that was acknowledged is there under its number, without a hole, an append that
is done again is there once, and readers are told that the producer is gone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["STORES", "run", "wants"]

ROOT = Path(__file__).resolve().parents[2]
STORES = ("sqlite-history", "sqlite-log", "postgres-history", "redis-log")
NEEDS = {"postgres-history": "STREAMNORM_POSTGRES", "redis-log": "STREAMNORM_REDIS"}
# A killed process loses nothing that it gave to the system, on a disk or not; memory is quicker.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def wants(store: str) -> str | None:
    """The variable that is to name a server for this store, if it is missing."""
    name = NEEDS.get(store)
    return name if name is not None and not os.environ.get(name) else None


def run(store: str, kills: int, tell: Callable[[str], None], *, seed: int = 0) -> list[str]:
    """Kill so many writers of this store. Returns the promises that were violated: none, if all is well.

    ``tell`` hears a line now and then. ``store`` is one of ``STORES``; ``STREAMNORM_POSTGRES`` and
    ``STREAMNORM_REDIS`` name the servers of those that want one.
    """
    if store not in STORES:
        raise ValueError(f"{store!r} is none of {', '.join(STORES)}")
    if (name := wants(store)) is not None:
        raise ValueError(f"{store} needs {name}")
    violated: list[str] = []
    with _place(store) as where, _nursery(store, where, kills, seed) as lines:
        done = 0
        for line in lines:
            said = json.loads(line)
            violated += said["violated"]
            done = said["kills"]
            if done % 25 == 0 or done == kills or said["violated"]:
                found = f", {len(violated)} violations" if violated else ""
                tell(f"{store}: {done} of {kills} kills, {said['kept']} acknowledged writes{found}")
        if done != kills:
            violated.append(f"{store}: only {done} of {kills} kills could be done")
    return violated


@contextmanager
def _place(store: str) -> Iterator[str]:
    if store == "postgres-history":
        from tests.history.stores import postgres_schema

        with postgres_schema() as schema:
            yield schema
    elif store == "redis-log":
        yield f"kill-{os.getpid()}-{os.urandom(4).hex()}"
    else:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            yield os.path.join(folder, "store.db")


@contextmanager
def _nursery(store: str, where: str, kills: int, seed: int) -> Iterator[Iterator[str]]:
    command = [sys.executable, "-m", "tests.kill.nursery", store, where, str(kills), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield iter(process.stdout)
        finally:
            process.terminate()
