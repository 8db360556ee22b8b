"""The results of a run as a file: sections in, JSON out, and back.

Nothing in it tells whose machine it was: no names, no paths.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.report import Figure, Section

__all__ = ["RESULTS", "machine", "read", "write"]

RESULTS = Path(__file__).resolve().parent / "results.json"


def machine(*, quick: bool = False) -> dict[str, Any]:
    """What it ran on, as far as it matters, and how."""
    load = round(os.getloadavg()[0], 1)
    python, cores = platform.python_version(), os.cpu_count()
    line = (
        f"Python {python}, {platform.system()} {platform.machine()}, {cores} cores,"
        f" load {load} at the start, {time.strftime('%Y-%m-%d')}"
        f"{', a short run' if quick else ''}"
    )
    return {"line": line, "python": python, "cores": cores, "load": load}


def write(path: Path, about: dict[str, Any], sections: dict[str, Section]) -> None:
    """Four digits of every number: the rest is noise, and makes every difference a long one."""
    results = {"machine": about, "sections": {n: asdict(s) for n, s in sections.items()}}
    path.write_text(json.dumps(_rounded(results), indent=1, ensure_ascii=False) + "\n")


def read(path: Path = RESULTS) -> tuple[dict[str, Any], dict[str, Section]]:
    """The machine and the sections of an earlier run."""
    results = json.loads(path.read_text())
    sections = {}
    for name, row in results["sections"].items():
        row["figures"] = {what: Figure(**one) for what, one in row["figures"].items()}
        sections[name] = Section(**row)
    return results["machine"], sections


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return value
