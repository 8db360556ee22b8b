"""Writes every take below recordings/; the same bytes in every run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.takes import (
    anthropic,
    bedrock,
    chat,
    cohere,
    foundry,
    gemini,
    interactions,
    mistral,
    ollama,
    responses,
)
from tools.takes.common import Take

ROOT = Path(__file__).resolve().parents[2] / "recordings"
WIRES = (
    anthropic,
    responses,
    chat,
    gemini,
    foundry,
    mistral,
    cohere,
    ollama,
    bedrock,
    interactions,
)


def takes() -> Iterator[Take]:
    for wire in WIRES:
        yield from wire.takes()


def main(root: Path = ROOT) -> None:
    written: set[Path] = set()
    for take in takes():
        path = root / take.provider / f"{take.name}.sse"
        if path in written:
            raise SystemExit(f"two takes are called {take.provider}/{take.name}")
        written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(take.encode())
    for path in sorted(set(root.glob("*/*.sse")) - written):
        print(f"not written by a table: {path.relative_to(root)}")
    print(f"{len(written)} takes below {root.name}/")


if __name__ == "__main__":
    main()
