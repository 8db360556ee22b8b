"""One peer beside streamnorm in one process: its name in, one JSON line per wire and workload out.

Started by ``bench.peers`` with the Python of the peer's environment:
``python -m bench.peer_worker NAME ROUNDS WORKLOAD,... WIRE,...``. Peers may print; only our lines
leave.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

from bench import workloads
from bench.adapters import PEERS, WIRE, Peer, Read, offline, streamnorm_reader
from bench.judge import Heard, judge
from bench.measure import best_of, chunks_of, floor, quiet
from bench.workloads import Workload

CHUNK = 16384
# CPU seconds for one wire and workload; a slow peer gets fewer rounds, though never less than two.
BUDGET = 2.0


def main(name: str, rounds: str, names: str, wires: str) -> None:
    out = _only_ours()
    warnings.simplefilter("ignore")
    offline()
    quiet()
    peer = PEERS[name]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    version = importlib.metadata.version(peer.distribution)
    for wire in wires.split(","):
        for workload in (workloads.build(wire, each) for each in names.split(",")):
            row = {"wire": wire, "workload": workload.name, "version": version}
            try:
                row |= _measure(loop, peer, workload, int(rounds))
            except Exception as error:  # noqa: BLE001  # whatever a peer raises is its result
                row["error"] = f"{type(error).__name__}: {error}"[:300]
            print(json.dumps(row), file=out, flush=True)


def _only_ours() -> TextIO:
    """Our way out; what peers print goes nowhere."""
    out = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return out


def _measure(
    loop: asyncio.AbstractEventLoop, peer: Peer, workload: Workload, rounds: int
) -> dict[str, Any]:
    WIRE.chunks = chunks_of(workload, CHUNK)
    theirs, ours = peer.reader(workload.wire), streamnorm_reader(workload.wire)

    def drive(read: Read) -> Callable[[], object]:
        return lambda: loop.run_until_complete(read())

    verdicts = {
        "wrong": _verdict(workload, loop.run_until_complete(ours())),
        "peer_wrong": _verdict(workload, loop.run_until_complete(theirs())),
    }
    contenders = {"F0": floor(workload), "streamnorm": drive(ours), "peer": drive(theirs)}
    best = best_of(contenders, rounds, BUDGET)
    micros = {who: seconds / workload.events * 1e6 for who, seconds in best.items()}
    return verdicts | {"us_per_event": micros}


def _verdict(workload: Workload, heard: Heard | None) -> list[str]:
    return [] if heard is None else judge(workload, heard)


if __name__ == "__main__":
    main(*sys.argv[1:])
