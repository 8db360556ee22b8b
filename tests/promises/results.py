"""The figures of the last runs, which documents cite: ``results.json``, a part for each tool that measures.

Rule: a part is what the last run of its tool gave; a run of some rows replaces those rows alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["keep", "keep_sabotage", "read"]

FILE = Path(__file__).with_name("results.json")


def read() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return held


def keep(part: str, figures: Any) -> None:
    held = {**read(), part: figures}
    ordered = {name: held[name] for name in sorted(held)}
    FILE.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def keep_sabotage(red: dict[str, str]) -> None:
    """Which test turned red at which patch; "" where none did. Patches that are gone are forgotten."""
    from tests.sabotage.rows import PATCHES

    known = {**read().get("sabotage", {}), **red}
    keep("sabotage", {p.name: known[p.name] for p in PATCHES if p.name in known})
