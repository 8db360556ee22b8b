#!/usr/bin/env python3
"""The benchmark: nothing comes in, markdown on stdout and ``bench/results.json`` go out.

    python bench/run.py                 every section; the results are kept
    python bench/run.py --quick         fewer rounds and sizes
    python bench/run.py --no-peers      without the SDKs and frameworks (nothing is installed)
    python bench/run.py --only live     some sections, by name; --wires does the same for wires

Only a whole run writes ``bench/results.json``, from which the documents are made; another one writes
where ``--out`` says, if it does. Exit code 1 if streamnorm made of a stream what was not generated;
a missed bar alone is only told. A new section is a module with ``run(options) -> Section`` and a row
in ``SECTIONS``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
# Run as a script, this folder would come first and its modules could hide others'.
sys.path[:] = [str(HERE.parent), *(p for p in sys.path if Path(p or ".").resolve() != HERE)]

from bench import results  # noqa: E402
from bench.environments import ENVIRONMENTS, ensure  # noqa: E402
from bench.progress import Progress  # noqa: E402
from bench.quiet import quiet  # noqa: E402
from bench.report import Options, Section  # noqa: E402
from bench.workloads import WIRES  # noqa: E402

# Modules of this folder, and about how many seconds each takes.
SECTIONS = {
    "live": 150,
    "latency": 60,
    "crowd": 100,
    "recording": 30,
    "ui": 6,
    "memory": 25,
    "pipe": 25,
    "growth": 60,
    "startup": 5,
    "history": 10,
    "gateway": 150,
}


def main() -> int:
    arguments = _arguments()
    quiet()
    about = results.machine(quick=arguments.quick)
    print(f"# streamnorm benchmark\n\n{about['line']}\n", flush=True)
    if not arguments.no_peers and {"live", "latency"} & set(arguments.only):
        for environment in ENVIRONMENTS:  # now, and not while something is measured
            ensure(environment)
    progress = Progress({name: SECTIONS[name] for name in arguments.only})
    start = time.monotonic()
    modules = {name: importlib.import_module(f"bench.{name}") for name in arguments.only}
    sections = {name: _run(name, each, progress, arguments) for name, each in modules.items()}
    about["minutes"] = round((time.monotonic() - start) / 60, 1)
    if (out := arguments.out or kept_as(arguments)) is not None:
        results.write(out, about, sections)
        print(f"... written: {out.name}, after {about['minutes']} minutes", file=sys.stderr)
    return _verdict(list(sections.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what users get, and the pipe.")
    parser.add_argument("--quick", action="store_true", help="a short run: fewer rounds and sizes")
    parser.add_argument("--no-peers", action="store_true", help="leave SDKs and frameworks out")
    add_choice(parser, "--only", list(SECTIONS))
    add_choice(parser, "--wires", list(WIRES))
    parser.add_argument("--out", type=Path, help="where to write the results of a part")
    return parser.parse_args()


def add_choice(parser: argparse.ArgumentParser, option: str, known: list[str]) -> None:
    """An option that takes some of the ``known`` names, joined by commas; all by default."""

    def chosen(text: str) -> list[str]:
        if unknown := set(text.split(",")) - set(known):
            names = ", ".join(sorted(unknown))
            raise argparse.ArgumentTypeError(f"{names!r} is none of {', '.join(known)}")
        return text.split(",")

    parser.add_argument(
        option, metavar="A,B", type=chosen, default=known, help=f"some of {', '.join(known)}"
    )


def kept_as(arguments: argparse.Namespace) -> Path | None:
    """Where the results go without being told: only those of a whole run."""
    everything = (arguments.only, arguments.wires) == (list(SECTIONS), list(WIRES))
    part = arguments.quick or arguments.no_peers or not everything
    return None if part else results.RESULTS


def _run(
    name: str, module: ModuleType, progress: Progress, arguments: argparse.Namespace
) -> Section:
    """One section, printed as soon as it is done; progress goes to stderr."""
    options = Options(
        quick=arguments.quick,
        peers=not arguments.no_peers,
        wires=tuple(arguments.wires),
        tick=progress.section(name),
    )
    section: Section = module.run(options)
    progress.done(name)
    print(f"## {section.title}\n")
    print("\n".join(section.lines))
    for note in section.notes:
        print(f"- {note}")
    print(flush=True)
    return section


def _verdict(sections: list[Section]) -> int:
    wrong = [line for section in sections for line in section.wrong]
    bars = [one for section in sections for one in section.figures.values() if one.bar is not None]
    print(f"## Verdict\n\n{sum(one.reached for one in bars)} of {len(bars)} bars reached.")
    for section in sections:
        for line in section.missed():
            print(f"- missed: {section.title.partition(':')[0]}, {line}")
    for line in wrong:
        print(f"- WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
