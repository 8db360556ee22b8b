#!/usr/bin/env python3
"""The benchmark: nothing comes in, markdown on stdout and ``bench/results.json`` go out.

    python bench/run.py                 every section, a few minutes
    python bench/run.py --quick         fewer rounds and sizes
    python bench/run.py --no-peers      without the SDKs and frameworks (nothing is installed)
    python bench/run.py --only speed    some sections, by name; --wires does the same for wires

Exit code 1 if any result was not what the workload says; a missed bar alone is only told.
A new section is a module with ``run(options) -> Section`` and a row in ``SECTIONS``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Run as a script, this folder would come first and its modules could hide others'.
sys.path[:] = [str(HERE.parent), *(p for p in sys.path if Path(p or ".").resolve() != HERE)]

from bench.measure import quiet  # noqa: E402
from bench.report import Options, Section  # noqa: E402
from bench.workloads import WIRES  # noqa: E402

SECTIONS = {
    "speed": "bench.speed",
    "linearity": "bench.linearity",
    "memory": "bench.memory",
    "import": "bench.imports",
    "streams": "bench.streams",
    "history": "bench.history",
    "ui": "bench.ui",
    "peers": "bench.peers",
}


def main() -> int:
    arguments = _arguments()
    options = Options(quick=arguments.quick, wires=tuple(arguments.wires))
    names = [n for n in arguments.only if n != "peers" or not arguments.no_peers]
    quiet()
    machine = _machine()
    print(f"# streamnorm benchmark\n\n{machine['line']}\n", flush=True)
    sections = {}
    for name in names:
        sections[name] = _run(name, options)
    _write(arguments.out, machine, sections)
    return _verdict(list(sections.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure streamnorm against its floor and peers.")
    parser.add_argument("--quick", action="store_true", help="a short run: fewer rounds and sizes")
    parser.add_argument("--no-peers", action="store_true", help="leave the SDKs out")
    _add_choice(parser, "--only", list(SECTIONS))
    _add_choice(parser, "--wires", list(WIRES))
    parser.add_argument("--out", type=Path, default=HERE / "results.json", help="where to write")
    return parser.parse_args()


def _add_choice(parser: argparse.ArgumentParser, option: str, known: list[str]) -> None:
    """An option that takes some of the ``known`` names, joined by commas; all by default."""

    def chosen(text: str) -> list[str]:
        if unknown := set(text.split(",")) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
        return text.split(",")

    parser.add_argument(
        option, metavar="A,B", type=chosen, default=known, help=f"some of {', '.join(known)}"
    )


def _run(name: str, options: Options) -> Section:
    """One section, printed as soon as it is done; progress goes to stderr."""
    print(f"... {name}", file=sys.stderr, flush=True)
    start = time.perf_counter()
    section: Section = importlib.import_module(SECTIONS[name]).run(options)
    section.data["seconds_taken"] = round(time.perf_counter() - start, 1)
    print(f"## {section.title}\n")
    print("\n".join(section.lines))
    print(flush=True)
    return section


def _machine() -> dict[str, Any]:
    load = os.getloadavg()[0]
    python = platform.python_version()
    line = (
        f"Python {python}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores,"
        f" load {load:.1f} at the start, {time.strftime('%Y-%m-%d')}"
    )
    return {"line": line, "python": python, "cores": os.cpu_count(), "load": load}


def _write(path: Path, machine: dict[str, Any], sections: dict[str, Section]) -> None:
    results = {"machine": machine, "sections": {n: asdict(s) for n, s in sections.items()}}
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(f"... written: {path.name}", file=sys.stderr)


def _verdict(sections: list[Section]) -> int:
    wrong = [line for section in sections for line in section.wrong]
    missed = [line for section in sections for line in section.missed]
    print("## Verdict\n")
    for line in wrong:
        print(f"- WRONG: {line}")
    for line in missed:
        print(f"- missed: {line}")
    if not wrong and not missed:
        print("- every result right, every bar reached")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
