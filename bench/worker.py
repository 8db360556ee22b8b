"""A process that reads streams: jobs in as JSON lines, what they took out as JSON lines.

Started by ``bench.crew`` with the Python of a contender's environment:
``python -m bench.worker PORT``. CPU is that of this whole process, all threads, user and system;
the server is another process. Contenders may print; only our lines leave.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TextIO

from bench import workloads
from bench.judge import judge
from bench.quiet import quiet
from bench.readers import CONTENDERS, Read, offline
from bench.workloads import MARK, Workload

Job = Callable[..., dict[str, Any]]
STAMP = re.compile(rf"\d{{{len(MARK)}}}")


class Desk:
    """Where the jobs are done: an event loop, an address, and readers that keep their clients."""

    def __init__(self, port: str) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self._readers: dict[tuple[str, ...], Read] = {}

    def read(self, contender: str, wire: str, workload: str, way: str) -> dict[str, Any]:
        """One stream, read to its end; what was heard is judged outside the clock."""
        key = (contender, wire, workload, way)
        if key not in self._readers:
            base = f"{self.base}/{way}/{wire}/{workload}"
            self._readers[key] = CONTENDERS[contender].reader(wire, base)
        gc.collect()
        start = time.process_time()
        heard = self.loop.run_until_complete(self._readers[key]())
        cpu = time.process_time() - start
        wrong = [] if heard is None else judge(_workload(wire, workload), heard)
        return {"cpu": cpu, "wrong": wrong}

    def latency(self, contender: str, wire: str, workload: str) -> dict[str, Any]:
        """Microseconds between sending an event and its coming out, for each event of a stream."""
        heard: list[tuple[int, Any]] = []
        now = time.monotonic_ns
        base = f"{self.base}/paced/{wire}/{workload}"
        read = CONTENDERS[contender].reader(wire, base, lambda piece: heard.append((now(), piece)))
        gc.collect()
        start = time.process_time()
        self.loop.run_until_complete(read())
        cpu = time.process_time() - start
        sent = [(at, STAMP.findall(_text(piece))) for at, piece in heard]
        micros = [(at - int(stamps[0])) / 1e3 for at, stamps in sent if len(stamps) == 1]
        wanted = int(workload.partition("-")[2])
        wrong = [] if len(micros) == wanted else [f"{len(micros)} of {wanted} events came out"]
        return {"cpu": cpu, "micros": micros, "wrong": wrong}

    def crowd(self, **job: Any) -> dict[str, Any]:
        from bench.crowd import read_all

        return self.loop.run_until_complete(read_all(self.base, **job))

    def holding(self, **job: Any) -> dict[str, Any]:
        from bench.crowd import hold

        return self.loop.run_until_complete(hold(self.base, **job))

    def version(self, contender: str) -> dict[str, Any]:
        name = CONTENDERS[contender].distribution
        return {"version": f"{name} {importlib.metadata.version(name)}"}


@cache
def _workload(wire: str, name: str) -> Workload:
    return workloads.build(wire, name)


def _text(piece: Any) -> str:
    return piece.decode() if isinstance(piece, bytes) else piece


def _only_ours() -> TextIO:
    """Our way out; what contenders print goes nowhere."""
    out = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return out


def main(port: str) -> None:
    out = _only_ours()
    warnings.simplefilter("ignore")
    offline()
    quiet()
    desk = Desk(port)
    for line in sys.stdin:
        job = json.loads(line)
        work: Job = getattr(desk, job.pop("job"))
        try:
            answer = work(**job)
        except Exception as error:  # noqa: BLE001  # whatever a contender raises is its result
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
