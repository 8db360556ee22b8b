"""What the tools that write documents share: a cell of a table, and write or check."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

__all__ = ["cell", "main_of"]


def cell(text: str) -> str:
    """A text as a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def main_of(
    name: str, about: str | None, made: Callable[[], dict[Path, str]], argv: list[str] | None = None
) -> int:
    """Writes what ``made`` gives; with ``--check`` only looks, and says 1 if anything differs."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}", description=(about or "").split("\n")[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 on a difference"
    )
    check = parser.parse_args(argv).check
    changed = 0
    for path, text in made().items():
        if path.exists() and path.read_text() == text:
            continue
        changed += 1
        print(f"{path.parent.name}/{path.name} {'is not up to date' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if not changed:
        print("up to date")
    return int(check and changed > 0)
