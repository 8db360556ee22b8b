"""Writes the measured figures into README.md and docs/performance.md, and draws docs/bench/*.svg.

    python -m tools.performance             write them
    python -m tools.performance --check     exit 1 if they are not up to date

Everything is made from ``bench/results.json``, which a whole ``make bench`` writes. The words of the
pages are written by hand; what stands between two marks is made here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bench import results
from bench.charts import Bar, Group, picture
from bench.live import WAYS, cell_name
from bench.readers import BARE, CONTENDERS, OURS, SSE
from bench.recording import APART
from bench.report import NAMES, WORKLOADS, Figure, Section, number, told
from tools.documents import main_of

__all__ = ["made"]

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "performance.md")
PICTURES = ROOT / "docs" / "bench"
MARKS = re.compile(r"(<!-- made by tools.performance: (\w+) -->\n).*?(<!-- end -->)", re.S)


@cache
def _kept() -> tuple[dict[str, Any], dict[str, Section]]:
    return results.read()


def made() -> dict[Path, str]:
    """The pages with their figures made again, and the pictures."""
    pages = {page: MARKS.sub(_filled, page.read_text()) for page in PAGES}
    return pages | {PICTURES / f"{name}.svg": draw() for name, draw in DRAWN.items()}


def _filled(found: re.Match[str]) -> str:
    name = found[2]
    text = PARTS[name]() if name in PARTS else _section(name)
    return f"{found[1]}{text}\n{found[3]}"


# --- parts of the pages ---------------------------------------------------------------------------


def _section(name: str) -> str:
    """A section as the benchmark printed it, with what it left out."""
    section = _kept()[1][name]
    notes = [f"- {note}" for note in section.notes]
    return "\n".join([*section.lines, *([""] if notes else []), *notes])


def _machine() -> str:
    about, sections = _kept()
    versions = ", ".join(sections["live"].data["versions"])
    return f"{about['line']}; {about['minutes']} minutes. Measured: {versions}."


def _bars() -> str:
    """Every bar and whether it was reached."""
    rows = ["| section | figure | measured |", "|---|---|--:|"]
    for name, section in _kept()[1].items():
        rows += [
            f"| {name} | {what} | {told(figure)} |"
            for what, figure in section.figures.items()
            if figure.bar is not None
        ]
    bars = [one for s in _kept()[1].values() for one in s.figures.values() if one.bar is not None]
    reached = sum(one.reached for one in bars)
    return "\n".join([f"{reached} of {len(bars)} bars were reached in this run.", "", *rows])


def _live_ratios() -> str:
    """Live streams as multiples of a bare loop: the table of the README."""
    cells = _kept()[1]["live"].data
    head = (
        f"| one event per HTTP chunk | bare `httpx` | {SSE} | **streamnorm** | SDK | SDK helper |"
    )
    rows = [f"{head} frameworks |", "|---|--:|--:|--:|--:|--:|--:|"]
    for wire, label in NAMES.items():
        for name, kind in WORKLOADS.items():
            where = cell_name(wire, name, "event")
            micros = cells[where]["us_per_event"]
            bare = micros[BARE]
            ours = _figure("live", f"{where}: times a bare httpx loop")
            others = [
                _range([each / bare for who, each in micros.items() if CONTENDERS[who].kind == k])
                for k in ("SDK", "helper", "framework")
            ]
            own = f"{number(bare)} µs", f"{number(micros[SSE] / bare)} x", told(ours)
            rows.append(f"| {label} {kind} | {' | '.join((*own, *others))} |")
    return "\n".join(rows)


def _range(values: list[float]) -> str:
    if not values:
        return "–"
    least, most = number(min(values)), number(max(values))
    return f"{least} x" if least == most else f"{least} to {most} x"


def _figure(section: str, name: str) -> Figure:
    return _kept()[1][section].figures[name]


def _worst(section: str, ending: str, but: str = "-") -> str:
    """The largest figure of those whose names end so: the promise is about all of them."""
    figures = [
        figure
        for name, figure in _kept()[1][section].figures.items()
        if name.endswith(ending) and not name.startswith(but)
    ]
    return _largest(figures)


def _largest(figures: list[Figure]) -> str:
    return told(max(figures, key=lambda figure: figure.value)) if figures else "not measured"


def _others() -> str:
    """What else users get, one line each: the worst of all wires."""
    latency, crowd = _kept()[1]["latency"].figures, _kept()[1]["crowd"].figures
    added = [f"{number(max(f.value for n, f in latency.items() if n.endswith(end)))} µs"
             for end in ("p50 added", "p99 added")]  # fmt: skip
    rows = {
        "live, 16 KiB chunks, against httpx-sse + orjson": _worst(
            "live", f"{WAYS['16k']}: times httpx-sse + orjson", "Gemini tools"
        ),
        "the same, Gemini with 2,000 whole calls": _worst(
            "live", f"{cell_name('gemini', 'W2', '16k')}: times httpx-sse + orjson"
        ),
        "live, one event per chunk, against httpx-sse + orjson": _worst(
            "live", f"{WAYS['event']}: times httpx-sse + orjson", "Gemini tools"
        ),
        "live, one event per chunk, against the fastest SDK": _worst(
            "live", f"{WAYS['event']}: times the fastest SDK"
        ),
        "2,000 streams at once, CPU against bare httpx": told(
            next(f for n, f in crowd.items() if n.endswith("streams: times bare httpx"))
        ),
        "latency added to an event, p50 and p99": " and ".join(added),
        "memory of an open `Stream`": told(crowd["held by an open Stream"]),
        "`record=`, more per chunk of a burst": _worst("recording", "more per chunk"),
        **_apart(),
        "AI SDK encoder, per event": _worst_starting("ui", "AI SDK", "µs"),
        "AG-UI encoder, per event": _worst_starting("ui", "AG-UI", "µs"),
        "logs in batches of 50, per event": _worst("ui", "50 at once"),
        "the pipe alone at 16 KiB, against split and `orjson.loads`": _worst(
            "pipe", "16 KiB: times the floor", "Gemini tools"
        ),
        "the pipe alone, one event per chunk, against the same": _worst(
            "pipe", "one event: times the floor", "Gemini tools"
        ),
        "Gemini, 2,000 whole calls, at 16 KiB, against the same": told(
            _figure("pipe", "Gemini tools, 16 KiB: times the floor")
        ),
        "cost of a byte, a call of 16 MiB against one of 64 KiB": _worst("growth", "16MiB"),
        "`import streamnorm` against `import json, dataclasses, typing, logging`": told(
            _figure("startup", "import: times the usual modules")
        ),
    }
    lines = ["| the worst of all wires | |", "|---|--:|"]
    return "\n".join([*lines, *(f"| {what} | {cell} |" for what, cell in rows.items())])


def _apart() -> dict[str, str]:
    """What a chunk costs the recorder that comes alone; nothing of results that do not say it."""
    figures = _kept()[1]["recording"].figures
    those = [figure for name, figure in figures.items() if name.endswith(APART[0.005])]
    return {"the recorder alone, per chunk, 5 ms apart": _largest(those)} if those else {}


def _worst_starting(section: str, start: str, unit: str) -> str:
    figures = _kept()[1][section].figures
    those = [f for name, f in figures.items() if name.startswith(start) and f.unit == unit]
    return _largest(those)


PARTS: dict[str, Callable[[], str]] = {
    "machine": _machine,
    "bars": _bars,
    "live_ratios": _live_ratios,
    "others": _others,
}


# --- pictures -------------------------------------------------------------------------------------


def _draw_live(way: str) -> str:
    cells = _kept()[1]["live"].data
    groups = []
    for wire, label in NAMES.items():
        where = cell_name(wire, "W2", way)
        micros = cells[where]["us_per_event"]
        bars = [Bar(who, micros[who], who == OURS) for who in CONTENDERS if who in micros]
        groups.append(Group(f"{label}, tool calls", bars))
    return picture(f"Live over HTTP, {WAYS[way]}", "µs of CPU per event", groups)


def _draw_latency() -> str:
    data = _kept()[1]["latency"].data
    groups = [
        Group(f"{label}, {key}", [Bar(who, row[key], who == OURS) for who, row in rows.items()])
        for label, rows in data.items()
        for key in ("p50", "p99")
    ]
    return picture("From the server's write to the reader's loop", "µs", groups)


def _draw_pipe() -> str:
    figures = _kept()[1]["pipe"].figures
    groups: dict[str, list[Bar]] = {}
    for name, figure in figures.items():
        where, cut = name.removesuffix(": times the floor").split(", ", 1)
        groups.setdefault(where, []).append(Bar(cut, figure.value, True, figure.bar))
    title = "The pipe against split and orjson.loads; a line is the bar"
    return picture(title, "x the floor", [Group(name, bars) for name, bars in groups.items()])


def _draw_crowd() -> str:
    data = _kept()[1]["crowd"].data
    micros = {who: each / data["events"] * 1e6 for who, each in data["reading"].items()}
    bars = [Bar(who, each, who == OURS) for who, each in micros.items()]
    group = Group(f"{data['streams']:,} streams in one event loop", bars)
    return picture("Many streams at once", "µs of CPU per event", [group])


DRAWN: dict[str, Callable[[], str]] = {
    "live": lambda: _draw_live("event"),
    "live_16k": lambda: _draw_live("16k"),
    "latency": _draw_latency,
    "pipe": _draw_pipe,
    "crowd": _draw_crowd,
}


if __name__ == "__main__":
    sys.exit(main_of("tools.performance", __doc__, made))
