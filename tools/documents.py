"""What the tools that write documents share, and all of them at once.

    python -m tools.documents             write every document that is made from tables
    python -m tools.documents --check     exit 1 if one is not up to date

Rule: a module of this folder that has ``made() -> {path: text}`` makes documents; there is no list.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import tools

__all__ = ["Made", "cell", "main_of", "makers"]

Made = Callable[[], dict[Path, str]]


def cell(text: str) -> str:
    """A text as a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def makers() -> dict[str, Made]:
    """The tools that make documents, by name."""
    modules = {one.name: import_module(f"tools.{one.name}") for one in iter_modules(tools.__path__)}
    return {name: module.made for name, module in modules.items() if hasattr(module, "made")}


def main_of(name: str, about: str | None, made: Made, argv: list[str] | None = None) -> int:
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


def _all() -> dict[Path, str]:
    return {path: text for made in makers().values() for path, text in made().items()}


if __name__ == "__main__":
    logging.getLogger("streamnorm").setLevel(logging.CRITICAL)  # takes with oddities are replayed
    sys.exit(main_of("tools.documents", __doc__, _all))
