"""Writes every take below recordings/; the same bytes in every run.

A wire is a module beside this one with a function ``takes()``; there is no list to add it to.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tools import takes as folder
from tools.takes.common import Take

ROOT = Path(__file__).resolve().parents[2] / "recordings"


def takes() -> Iterator[Take]:
    for found in pkgutil.iter_modules(folder.__path__):
        if found.name != "__main__":
            module = import_module(f"{folder.__name__}.{found.name}")
            if module.__name__ != __name__ and hasattr(module, "takes"):
                yield from module.takes()


def main(root: Path = ROOT) -> None:
    written: set[Path] = set()
    for take in takes():
        path = root / take.provider / f"{take.name}{take.suffix}"
        if path in written:
            raise SystemExit(f"two takes are called {take.provider}/{take.name}")
        written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(take.encode())
    for path in sorted({*root.glob("*/*.sse"), *root.glob("*/sessions/*.jsonl")} - written):
        print(f"not written by a table: {path.relative_to(root)}")
    print(f"{len(written)} takes below {root.name}/")


if __name__ == "__main__":
    main()
