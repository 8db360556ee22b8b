"""The processes of a live measurement: contenders and jobs in, answers out.

One server, one process for all that needs only our own environment, and one for each peer; they are
kept for the whole run and work one at a time, in turns, so that a busy machine is busy for all of
them. A process that dies or hangs is said in one line and asked no more.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from bench.environments import ensure
from bench.readers import CONTENDERS

__all__ = ["Crew", "Trouble", "Worker"]

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 120.0  # seconds for one job


class Crew:
    """``with Crew() as crew: crew.ask("streamnorm", job="read", wire=…)``.

    ``left_out`` says why a contender is missing, by its name.
    """

    def __init__(self, *, peers: bool = True) -> None:
        self._peers = peers
        self._workers: dict[str, Worker] = {}
        self.left_out: dict[str, str] = {}

    def __enter__(self) -> Crew:
        self._server = _start([sys.executable, "-m", "bench.server"])
        assert self._server.stdout is not None
        self._port = self._server.stdout.readline().strip()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for worker in self._workers.values():
            worker.stop()
        _end(self._server)

    def contenders(self, wire: str, *kinds: str) -> list[str]:
        """Those that read this wire and are of one of these kinds, as far as they can be had."""
        return [
            name
            for name, one in CONTENDERS.items()
            if wire in one.wires and one.kind in kinds and (self._peers or not one.environment)
        ]

    def ask(self, contender: str, **job: Any) -> dict[str, Any] | None:
        """The answer, or None if there is none: then ``left_out`` says why."""
        if contender in self.left_out:
            return None
        try:
            answer = self._worker(contender).ask(job | {"contender": contender})
        except Trouble as trouble:
            self.left_out[contender] = str(trouble)
            return None
        return answer

    def versions(self) -> list[str]:
        """What was measured, of those that were asked anything."""
        names = [name for name in CONTENDERS if _place(name) in self._workers]
        answers = [self.ask(name, job="version") for name in names]
        return sorted({answer["version"] for answer in answers if answer and "version" in answer})

    def _worker(self, contender: str) -> Worker:
        place = _place(contender)
        if place not in self._workers:
            environment = CONTENDERS[contender].environment
            python = ensure(environment) if environment else Path(sys.executable)
            if python is None:
                raise Trouble(f"the environment {environment} could not be installed")
            self._workers[place] = Worker([str(python), "-m", "bench.worker", self._port])
        return self._workers[place]


def _place(contender: str) -> str:
    """The process that a contender runs in."""
    one = CONTENDERS[contender]
    return one.distribution if one.environment else "our own"


class Trouble(Exception):
    """A process that is of no more use."""


class Worker:
    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by stop
        self._process = _start(command, self._errors)

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(job) + "\n")
            stdin.flush()
        except OSError:
            raise Trouble(self._last_words()) from None
        if not select.select([stdout], [], [], TIMEOUT)[0]:
            self._process.kill()
            raise Trouble(f"not done after {TIMEOUT:.0f} s")
        if not (line := stdout.readline()):
            raise Trouble(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        _end(self._process)
        self._errors.close()

    def _last_words(self) -> str:
        self._process.wait(5)
        self._errors.seek(0)
        return (self._errors.read().strip().splitlines() or ["it ended"])[-1]


def _start(command: list[str], errors: IO[str] | None = None) -> subprocess.Popen[str]:
    # One seed of hashes for all: how dicts collide is not what is compared.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=errors or subprocess.DEVNULL, text=True,
    )  # fmt: skip


def _end(process: subprocess.Popen[str]) -> None:
    """Its standard input is closed, at which it ends; if it does not, it is ended."""
    assert process.stdin is not None
    try:
        process.stdin.close()
        process.wait(5)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
