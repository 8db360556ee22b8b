"""All parts of the proof: ``make prove``, or ``python -m tests.prove.run [--minutes 30] [--only PART …]``.

The time is shared among the parts; ``--mutants`` says how many streams are damaged, however long that takes.
What came of it is printed, and kept for docs/promises.md if nothing was left out by ``--only`` and the time was
enough (build/prove.json has every run). Exit 0 only if nothing was found that does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.progress import Progress
from tests.promises import results
from tests.prove.cuts import cuts
from tests.prove.damage import damage
from tests.prove.fuzz import fuzz
from tests.prove.kills import kills
from tests.prove.share import Report, Share
from tests.prove.soak import soak

__all__ = ["PARTS", "main"]

BUILD = Path(__file__).resolve().parents[2] / "build"
FULL = 30.0  # minutes, of which each part has so much, on two cores
PARTS: dict[str, tuple[float, Callable[[Share], Report]]] = {
    "damage": (12.0, damage),
    "cuts": (6.0, cuts),
    "fuzz": (5.0, fuzz),
    "kills": (3.0, kills),
    "soak": (4.0, soak),
}
MUTANTS = 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    names = options.only or list(PARTS)
    total = sum(PARTS[name][0] for name in names)
    scale = options.minutes / (FULL if not options.only else total)
    mutants = MUTANTS if options.mutants is None else options.mutants
    if options.mutants is None and options.minutes < FULL:
        mutants = int(MUTANTS * options.minutes / FULL)
    progress = Progress({name: PARTS[name][0] for name in names})
    began, reports = time.monotonic(), dict[str, Report]()
    try:
        for name in names:
            seconds = PARTS[name][0] * scale * 60
            share = Share(seconds, options.seed, mutants, options.jobs, _told(progress, name))
            reports[name] = PARTS[name][1](share)
            progress.done(name)
            print(_line(name, reports[name]), flush=True)
    except KeyboardInterrupt:
        progress.clear()
        print("stopped; nothing is kept")
        return 130
    return _closed(reports, options, time.monotonic() - began)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--minutes", type=float, default=FULL, help="about how long it may take")
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), help="only this part; again for more"
    )
    parser.add_argument("--mutants", type=int, help="how many streams are damaged")
    parser.add_argument("--seed", default=datetime.now(UTC).date().isoformat())
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    return parser.parse_args(argv)


def _told(progress: Progress, name: str) -> Callable[[float, str], None]:
    tick, last = progress.section(name), [0.0]

    def tell(share: float, what: str) -> None:
        if sys.stderr.isatty() or time.monotonic() - last[0] > 10:
            last[0] = time.monotonic()
            tick(int(1000 * share), 1000, what)

    return tell


def _line(name: str, report: Report) -> str:
    found = "nothing found" if not report.found else f"{len(report.found)} FOUND"
    left = f" (left out: {report.left_out})" if report.left_out else ""
    return "\n  ".join([f"{name}: {report.tried}: {found}{left}", *report.found[:20]])


def _closed(reports: dict[str, Report], options: argparse.Namespace, seconds: float) -> int:
    figures = {
        "machine": _machine(options.seed, seconds),
        "parts": [
            {"part": name, "tried": report.tried + (f" (left out: {report.left_out})" if report.left_out else ""),
             "found": "; ".join(report.found[:5]) or "nothing"}
            for name, report in reports.items()
        ],
    }  # fmt: skip
    BUILD.mkdir(exist_ok=True)
    (BUILD / "prove.json").write_text(json.dumps(figures, indent=1) + "\n")
    if not options.only and options.minutes >= FULL / 2:
        results.keep("prove", figures)
    found = sum(len(report.found) for report in reports.values())
    print(f"{seconds / 60:.1f} minutes, seed {options.seed}: {found or 'nothing'} found")
    return 1 if found else 0


def _machine(seed: str, seconds: float) -> str:
    return (
        f"{datetime.now(UTC).date().isoformat()}, Python {platform.python_version()}, {platform.system()}, "
        f"{os.cpu_count()} cores, {seconds / 60:.0f} minutes, seed {seed}."
    )


if __name__ == "__main__":
    sys.exit(main())
