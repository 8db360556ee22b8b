"""How many sessions a core reads into rows in a second of its time.

    python -m bench.table                       sessions of 5 kB on each wire

Rule: CPU time, of the best of several rounds, so that others on the machine count little. Everything
is in it: reading the take, telling its wire, the pipe, the rows, the Arrow table.
"""

from __future__ import annotations

import argparse
import sys
import time

from bench.workloads import WIRES, build
from streamnorm.table import rows

__all__ = ["main", "per_second"]

SIZE, BATCH, ROUNDS = 5000, 500, 9


def per_second(bodies: list[bytes], rounds: int = ROUNDS) -> float:
    """Sessions for each second of CPU time: these bodies, again and again, in one batch."""
    batch = [(f"{number}.sse", bodies[number % len(bodies)]) for number in range(BATCH)]
    rows(batch)
    best = min(_taken(batch) for _ in range(rounds))
    return len(batch) / best


def _taken(batch: list[tuple[str, bytes]]) -> float:
    began = time.process_time()
    rows(batch)
    return time.process_time() - began


def main(argv: list[str] | None = None) -> int:
    """Measures, and prints what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.table", description=__doc__.split("\n")[0]
    )
    parser.parse_args(argv)
    bodies = {wire: build(wire, f"SIZE-{SIZE}").body for wire in WIRES}
    for wire, body in bodies.items():
        named = b': streamnorm {"provider":"%b","seed":"5"}\n' % wire.encode() + body
        bare, known = per_second([body]), per_second([named])
        print(
            f"{wire:17} {len(body):5} bytes {bare:7,.0f} a second, a take that says its wire {known:7,.0f}"
        )
    print(f"{'all of them':17} {'':11} {per_second(list(bodies.values())):7,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
