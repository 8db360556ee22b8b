"""Peers: the same bytes through SDKs and frameworks. Nothing comes in, ratios to streamnorm go out.

Each peer runs in a process of its own and streamnorm runs beside it in that process, in turns, so
each row is a ratio of two things measured at the same time. The peers' environments are made by pip
in ``.venv-bench`` when they are missing (``python -m bench.peers`` does only that); what cannot be
installed is left out with one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.adapters import PEERS
from bench.report import Options, Section, table
from bench.workloads import WIRES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-bench"
# Two environments, as litellm wants an older openai than the rest. It needs mcp to pass tools on,
# but does not ask for it.
ENVIRONMENTS = {
    "sdks": (
        "openai",
        "anthropic",
        "google-genai",
        "pydantic-ai-slim[openai,anthropic,google]",
        "langchain-openai",
    ),
    "litellm": ("litellm", "mcp"),
}
WORKLOADS = ("W1", "W2")
TIMEOUT = 240


def run(options: Options) -> Section:
    section = Section("Peers: the same bytes, in the same process")
    pythons = {"": Path(sys.executable)}
    for name in ENVIRONMENTS:
        if (python := ensure(name)) is not None:
            pythons[name] = python
    rows = []
    rounds, names = (2, WORKLOADS[1:]) if options.quick else (4, WORKLOADS)
    for name, peer in PEERS.items():
        if not set(peer.wires) & set(options.wires):
            continue
        if peer.environment in pythons:
            _say(name)
            wires = [wire for wire in peer.wires if wire in options.wires]
            asked = [name, str(rounds), ",".join(names), ",".join(wires)]
            rows += [(name, row) for row in _worker(section, pythons[peer.environment], asked)]
        else:
            section.lines.append(f"- left out: {name} (its environment could not be installed)")
    _tell(section, rows, names)
    return section


# Environments.


def ensure(name: str) -> Path | None:
    """The Python of the environment, made now if it is missing or older than what is asked for."""
    folder = FOLDER / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join([*ENVIRONMENTS[name], *_own_dependencies()])
    stamp = folder / "wanted.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    _say(f"first time only: installing {', '.join(ENVIRONMENTS[name])} into {FOLDER.name}/{name}")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", "-q"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([*pip, *wanted.split("\n")], check=True, stderr=subprocess.PIPE)
    except (subprocess.CalledProcessError, OSError) as error:
        output = getattr(error, "stderr", None) or str(error).encode()
        reason = output.decode(errors="replace").strip().splitlines()[-1:]
        _say(f"left out: {name} could not be installed ({' '.join(reason)})")
        shutil.rmtree(folder, ignore_errors=True)
        return None
    stamp.write_text(wanted)
    return python


def _own_dependencies() -> list[str]:
    """What streamnorm itself needs: it runs in the peers' environments from the checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(requirement) for requirement in project["dependencies"]]


def _say(what: str) -> None:
    print(f"... peers: {what}", file=sys.stderr, flush=True)


# Measuring.


def _worker(section: Section, python: Path, asked: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of one peer; a peer that dies or hangs loses the rest of its rows."""
    name, command = asked[0], [str(python), "-m", "bench.peer_worker", *asked]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile("w+") as output:
        trouble = ""
        try:
            subprocess.run(
                command,
                env=environment,
                cwd=ROOT,
                timeout=TIMEOUT,
                check=True,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
            )
        except subprocess.CalledProcessError as error:
            trouble = (error.stderr.strip().splitlines() or [str(error)])[-1]
        except subprocess.TimeoutExpired:
            trouble = f"not done after {TIMEOUT} s"
        output.seek(0)
        lines = output.read().splitlines()
    if trouble:
        section.lines.append(f"- left out: the rest of {name} ({trouble})")
    for row in map(json.loads, lines):
        where = f"{row['wire']} {row['workload']} beside {name}"
        section.wrong += [f"{where}: {what}" for what in row.get("wrong", ())]
        if "error" in row:
            section.lines.append(f"- left out: {where} ({row['error']})")
        yield row


def _tell(section: Section, rows: list[tuple[str, dict[str, Any]]], names: tuple[str, ...]) -> None:
    section.data["rows"] = [{"peer": name} | row for name, row in rows]
    versions = {f"{PEERS[name].distribution} {row['version']}" for name, row in rows}
    cells = {(row["wire"], name, row["workload"]): row for name, row in rows}
    lines = [
        [wire, name, *(cell for w in names for cell in _cells(cells.get((wire, name, w))))]
        for wire in WIRES
        for name, peer in PEERS.items()
        if wire in peer.wires and any((wire, name, w) in cells for w in names)
    ]
    head = ["wire", "peer", *(c for w in names for c in (f"{w} µs/event", "streamnorm", "times"))]
    section.lines = [
        "µs per wire event at 16 KiB chunks: the peer, streamnorm beside it in the same process,",
        "and how many times slower the peer is. All of them read through httpx or httpx2 from",
        "memory; text and final calls are gathered and checked (httpx-sse gives neither).",
        f"Versions: {', '.join(sorted(versions))}.",
        "",
        table(head, lines, words=2),
        *(["", *section.lines] if section.lines else []),
    ]


def _cells(row: dict[str, Any] | None) -> list[str]:
    if row is None or "error" in row:
        return ["–" if row is None else "error", "", ""]
    micros = row["us_per_event"]
    times = f"{micros['peer'] / micros['streamnorm']:.1f}x"
    if row["peer_wrong"]:
        times += " (wrong)"
    return [f"{micros['peer']:.1f}", f"{micros['streamnorm']:.2f}", times]


if __name__ == "__main__":
    made = [ensure(name) for name in ENVIRONMENTS]
    sys.exit(0 if all(made) else 1)
