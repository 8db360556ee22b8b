"""The figures of the files that were judged to their end: rows in, ``results.json`` out and back.

Rule: a row is what the last whole judgement of its file said; documents cite it from here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

__all__ = ["Row", "keep", "read"]

FILE = Path(__file__).with_name("results.json")


class Row(NamedTuple):
    """Mutants of one file, or of all."""

    mutants: int
    caught: int
    equivalent: int
    survive: int

    def told(self) -> str:
        return (
            f"{self.mutants} mutants, {self.caught} caught, {self.equivalent} equivalent, "
            f"{self.survive} survive"
        )


def read() -> dict[str, Row]:
    held = json.loads(FILE.read_text()) if FILE.exists() else {}
    return {file: Row(**row) for file, row in held.items()}


def keep(file: str, row: Row) -> None:
    rows = {**read(), file: row}
    held = {name: rows[name]._asdict() for name in sorted(rows)}
    FILE.write_text(json.dumps(held, indent=1) + "\n")
