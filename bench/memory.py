"""Memory: streams of text and one large call in, growth of the process out.

Every figure is taken in a process of its own (``python -m bench.memory``), which reads the bytes
from a file in chunks of 16 KiB and drops the events, so that only the pipe can grow. Traced bytes
are Python's own allocations (``tracemalloc``); resident bytes are the kernel's (Linux only).
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

from bench import workloads
from bench.measure import count_events
from bench.quiet import quiet
from bench.report import NAMES, Options, Section, table

ROOT = Path(__file__).resolve().parent.parent
SHORT, LONG = "TEXT-1", "TEXT-20"
CALL = "W3-1M"
CHUNK = 16384
# What one stream may hold at its end beyond another that was shorter by 19 MB: allocator noise.
BAR_KIB = 64.0
MIB = 1 << 20


def run(options: Options) -> Section:
    section = Section("Memory: what the pipe holds")
    names = (SHORT, "TEXT-5" if options.quick else LONG, CALL)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for done, wire in enumerate(options.wires):
            options.tick(done, len(options.wires), NAMES[wire])
            taken = {name: _take(section, wire, name, Path(folder)) for name in names}
            rows.append(_row(section, wire, taken))
    short, long = (name.partition("-")[2] for name in names[:2])
    head = [
        "",
        f"end, {short} MB",
        f"end, {long} MB",
        "more",
        f"RSS +{short} MB",
        f"RSS +{long} MB",
        "peak, 1 MiB call",
        "RSS peak",
    ]
    section.lines = [
        f"Traced KiB held at the end of {short} MB and of {long} MB of text (256-character deltas,",
        f"events dropped), which may differ by {BAR_KIB:.0f} KiB; growth of the resident",
        "set over the same streams; and the peak while one call of 1 MiB goes through. (The",
        "Responses wire repeats the whole text in its last four frames, which is seen in RSS.)",
        "",
        table(head, rows),
    ]
    return section


def _row(section: Section, wire: str, taken: dict[str, dict[str, float]]) -> list[str]:
    short, long, call = taken.values()
    section.data[wire] = taken
    more = (long["end"] - short["end"]) / 1024
    verdict = section.figure(f"{NAMES[wire]}: held more after longer text", more, "KiB", BAR_KIB)
    return [
        NAMES[wire],
        f"{short['end'] / 1024:.1f} KiB",
        f"{long['end'] / 1024:.1f} KiB",
        verdict,
        f"{short['rss_end'] / MIB:.1f} MiB",
        f"{long['rss_end'] / MIB:.1f} MiB",
        f"{call['peak'] / MIB:.1f} MiB",
        f"{call['rss_peak'] / MIB:.1f} MiB",
    ]


def _take(section: Section, wire: str, name: str, folder: Path) -> dict[str, float]:
    """One stream, measured twice: with tracing, and without it for the resident set."""
    path = folder / "body"
    path.write_bytes(workloads.build(wire, name).body)
    figures: dict[str, float] = {}
    for mode in ("traced", "resident"):
        command = [sys.executable, "-m", "bench.memory", mode, wire, str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
        answer = json.loads(done.stdout)
        if (end := answer.pop("last")) != "finish":
            section.wrong.append(f"{wire} {name}: the stream ended with {end}")
        figures |= answer
    return figures


# In the process of its own.


def _traced(wire: str, path: Path) -> dict[str, object]:
    tracemalloc.start()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    pipe, last = _drain(wire, path)
    peak = tracemalloc.get_traced_memory()[1] - before
    gc.collect()
    end = tracemalloc.get_traced_memory()[0] - before
    del pipe
    return {"end": end, "peak": peak, "last": last}


def _resident(wire: str, path: Path) -> dict[str, object]:
    gc.collect()
    rss, high = _status("VmRSS"), _status("VmHWM")
    pipe, last = _drain(wire, path)
    top = _status("VmHWM")
    peak = top - rss if top > high else 0
    gc.collect()
    end = _status("VmRSS") - rss
    del pipe
    return {"rss_end": end, "rss_peak": peak, "last": last}


def _drain(wire: str, path: Path) -> tuple[object, str]:
    """The pipe after the whole file, still alive, and the kind of its last event."""
    from streamnorm import Limits, Normalizer

    pipe = Normalizer(wire, limits=Limits(frame_bytes=64 * MIB))
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            events = pipe.feed(chunk)
    events = pipe.close() or events
    return pipe, events[-1].kind


def _status(field: str) -> int:
    """A line of /proc/self/status in bytes; 0 where there is none."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    line = next(row for row in status.read_text().splitlines() if row.startswith(field))
    return int(line.split()[1]) * 1024


def _worker(mode: str, wire: str, path: str) -> None:
    quiet()
    warm = workloads.build(wire, "W1")
    count_events(wire, [warm.body])
    del warm
    take = _traced if mode == "traced" else _resident
    print(json.dumps(take(wire, Path(path))))


if __name__ == "__main__":
    _worker(*sys.argv[1:])
