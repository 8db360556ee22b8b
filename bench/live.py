"""Live: the same bytes over HTTP on loopback to every contender; µs of CPU per event out.

One event per HTTP chunk, as providers send, and chunks of 16 KiB. The contenders take turns, the
best of the rounds counts, and every single run is judged: whoever gets a text or a call wrong is
named. The first run of each is a warm-up.
"""

from __future__ import annotations

import math
from typing import Any

from bench import workloads
from bench.crew import Crew
from bench.readers import BARE, CONTENDERS, OURS, SSE
from bench.report import NAMES, WORKLOADS, Options, Section, number, table

__all__ = ["WAYS", "cell_name", "run"]

WAYS = {"event": "one event per chunk", "16k": "16 KiB chunks"}
QUICK_KINDS = ("chunks", "dicts", "ours", "SDK", "helper")
KINDS = (*QUICK_KINDS, "framework")
# CPU seconds of one contender in one cell, which say how many rounds it gets; one at least.
BUDGET, QUICK_BUDGET = 1.2, 0.5
ROUNDS = 16  # at most
# At most so many times a bare loop, httpx-sse + orjson, and the fastest SDK.
OF_BARE, OF_BARE_CALLS, OF_SSE, OF_SSE_16K, OF_SDK = 1.6, 2.2, 0.9, 0.6, 1 / 3


def run(options: Options) -> Section:
    section = Section("Live: HTTP on loopback, CPU of the reading process")
    cells = [(wire, name, way) for way in WAYS for wire in options.wires for name in WORKLOADS]
    with Crew(peers=options.peers) as crew:
        for done, (wire, name, way) in enumerate(cells):
            where = cell_name(wire, name, way)
            options.tick(done, len(cells), where)
            _cell(section, crew, (wire, name, way), options)
        section.data["versions"] = crew.versions()
        section.notes += [f"left out: {name} ({why})" for name, why in crew.left_out.items()]
    section.lines = _told(section)
    return section


def cell_name(wire: str, name: str, way: str) -> str:
    return f"{NAMES[wire]} {WORKLOADS[name]}, {WAYS[way]}"


def _cell(section: Section, crew: Crew, cell: tuple[str, str, str], options: Options) -> None:
    wire, name, way = cell
    where = cell_name(*cell)
    names = crew.contenders(wire, *(QUICK_KINDS if options.quick else KINDS))
    job = {"job": "read", "wire": wire, "workload": name, "way": way}
    events = workloads.build(wire, name).events
    budget = QUICK_BUDGET if options.quick else BUDGET
    best, wrong = race(section, crew, names, job, budget)
    micros = {who: seconds / events * 1e6 for who, seconds in best.items()}
    section.data[where] = {"events": events, "us_per_event": micros, "wrong": wrong}
    section.wrong += [f"{where}: {what}" for what in wrong.pop(OURS, [])]
    section.notes += [f"wrong: {who}, {where}: {'; '.join(what)}" for who, what in wrong.items()]
    _hold(section, cell, micros)


def race(
    section: Section, crew: Crew, names: list[str], job: dict[str, Any], budget: float
) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The least CPU seconds of each contender, in turns, and what each got wrong.

    The first run of each warms up, and says how many more it can have.
    """
    wrong: dict[str, list[str]] = {}

    def taken(name: str) -> float | None:
        answer = crew.ask(name, **job)
        if answer is None:
            return None
        if "error" in answer:
            section.notes.append(f"left out: {name}, {_of(job)} ({answer['error']})")
            return None
        if answer["wrong"]:
            wrong[name] = answer["wrong"]
        return float(answer["cpu"])

    warm = {name: cpu for name in names if (cpu := taken(name)) is not None}
    rounds = {name: max(1, min(ROUNDS, int(budget / cpu))) for name, cpu in warm.items()}
    best = dict.fromkeys(warm, math.inf)
    for turn in range(max(rounds.values(), default=0)):
        for name in _rotated([name for name in rounds if turn < rounds[name]], turn):
            best[name] = min(best[name], taken(name) or math.inf)
    return best, wrong


def _of(job: dict[str, Any]) -> str:
    return " ".join(str(value) for key, value in job.items() if key != "job")


def _rotated(names: list[str], by: int) -> list[str]:
    """Who goes first changes with every round."""
    shift = by % len(names)
    return names[shift:] + names[:shift]


def _hold(section: Section, cell: tuple[str, str, str], micros: dict[str, float]) -> None:
    """The ratios of a cell, and the bars that there are for it."""
    wire, name, way = cell
    where, ours = cell_name(*cell), micros[OURS]
    calls = (wire, name) == ("gemini", "W2")  # 2,000 whole calls
    of_bare = {"event": OF_BARE_CALLS if calls else OF_BARE}.get(way)
    of_sse = OF_SSE_16K if way == "16k" else None if calls else OF_SSE
    section.figure(f"{where}: times a bare httpx loop", ours / micros[BARE], bar=of_bare)
    section.figure(f"{where}: times httpx-sse + orjson", ours / micros[SSE], bar=of_sse)
    sdks = {who: each for who, each in micros.items() if CONTENDERS[who].kind in ("SDK", "helper")}
    if sdks:
        fastest = min(sdks.values())
        bar = OF_SDK if way == "event" else None
        section.figure(f"{where}: times the fastest SDK", ours / fastest, bar=bar)


def _told(section: Section) -> list[str]:
    lines = [
        "µs of CPU per event of the wire, best of several rounds in turns; everything that gives",
        "text and calls was compared with what was generated, in every run.",
    ]
    for way, title in WAYS.items():
        cells = {k: v for k, v in section.data.items() if k.endswith(title)}
        if not cells:
            continue
        names = [who for who in CONTENDERS if any(who in c["us_per_event"] for c in cells.values())]
        rows = [[who, *(_micros(cell, who) for cell in cells.values())] for who in names]
        head = [title, *(where.removesuffix(f", {WAYS[way]}") for where in cells)]
        lines += ["", table(head, rows)]
    return lines


def _micros(cell: dict[str, Any], who: str) -> str:
    if who not in cell["us_per_event"]:
        return ""
    return number(cell["us_per_event"][who]) + (" (wrong)" if who in cell["wrong"] else "")
