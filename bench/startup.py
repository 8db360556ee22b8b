"""Starting: a fresh interpreter and an empty pipe in, what it takes until bytes can be fed out.

The import is held against that of four modules of the standard library which almost every program
has; both in turns, in interpreters of their own. A construction is held against the floor of one
event, so that it can be compared between machines.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import workloads
from bench.measure import Run, best_of, floor
from bench.report import Options, Section, number, table
from bench.workloads import WIRES

__all__ = ["run"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "streamnorm"
USUAL = "json, dataclasses, typing, logging"
OF_USUAL, CONSTRUCTION = 2.0, 12.0  # times, µs
TIMES = 200  # constructions in one run of the clock
# What a consumer should not pay for at import: clients, event loops, terminals, models, SDKs.
FORBIDDEN = ("aiohttp", "anthropic", "anyio", "google.genai", "httpx", "openai", "pydantic", "rich")


def run(options: Options) -> Section:
    section = Section("Starting: import and construction")
    options.tick(0, 2, "import")
    imported = _imports(section, 6 if options.quick else 15)
    options.tick(1, 2, "construction")
    section.lines = [
        *imported,
        "",
        table(["construction", "µs"], _constructions(section, 10 if options.quick else 30)),
    ]
    return section


def _imports(section: Section, rounds: int) -> list[str]:
    taken = [(_seconds(USUAL), _seconds(PACKAGE)) for _ in range(rounds)]
    usual, ours = (min(each) for each in zip(*taken, strict=True))
    modules = _modules(f"import {PACKAGE}")
    section.wrong += [f"import: {name} is imported" for name in FORBIDDEN if name in modules]
    section.data["import_ms"] = {"usual": usual * 1e3, "ours": ours * 1e3, "modules": len(modules)}
    ratio = section.figure("import: times the usual modules", ours / usual, bar=OF_USUAL)
    return [
        f"`import {PACKAGE}`: {number(ours * 1e3)} ms of CPU, {ratio} that of",
        f"`import {USUAL}` ({number(usual * 1e3)} ms); best of {rounds}. None of"
        f" {', '.join(FORBIDDEN)} is imported.",
    ]


def _constructions(section: Section, rounds: int) -> list[list[str]]:
    from streamnorm import Normalizer

    def made(name: str) -> Run:
        def run() -> None:
            for _ in range(TIMES):
                Normalizer(name)

        return run

    yardstick = workloads.build("openai_chat", "W2")
    names = ("auto", *WIRES)
    best = best_of({"floor": floor(yardstick)} | {name: made(name) for name in names}, rounds)
    event = best["floor"] / yardstick.events
    rows = []
    for name in names:
        each = best[name] / TIMES
        section.data[f"Normalizer({name})"] = each * 1e6
        section.figure(f'Normalizer("{name}"): times the floor of an event', each / event)
        told = section.figure(f'Normalizer("{name}")', each * 1e6, "µs", CONSTRUCTION)
        rows.append([f'`Normalizer("{name}")`', told])
    return rows


def _modules(code: str) -> set[str]:
    """The modules that are loaded after ``code``."""
    return set(_python(f"{code}; import sys; print(chr(10).join(sys.modules))").split())


def _seconds(modules: str) -> float:
    """CPU seconds that the import takes in an interpreter of its own; the first one compiles."""
    clock = "time.process_time()"
    return float(_python(f"import time; t = {clock}; import {modules}; print({clock} - t)"))


def _python(code: str) -> str:
    """What it prints, run at the root of the checkout: it is this streamnorm which is imported."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout
