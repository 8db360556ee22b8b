"""Writes docs/quirks.md from the rows of tests/providers/quirks.

    python -m tools.quirks             write it
    python -m tools.quirks --check     exit 1 if it is not up to date

Rule: nothing is said in the document that is not in a row, and every row is in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamnorm import NOTES
from tests.providers.quirks import QUIRKS, Quirk
from tools.documents import cell, main_of

__all__ = ["made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "quirks.md"

GROUPS = (
    (1, "Chat Completions: whose delta is this?"),
    (17, "Chat Completions: name and arguments"),
    (37, "Chat Completions: the end, usage, errors"),
    (57, "Responses"),
    (75, "Anthropic"),
    (87, "Gemini"),
    (98, "Ollama, Bedrock, Cohere"),
    (104, "Framing"),
    (116, "Of single vendors"),
)
HEAD = """\
# Quirks

Odd things that servers were seen to do, and what streamnorm does about each. Every row is a test
(`tests/providers/quirks/`): its streams are read whole, byte by byte and cut at random, and must give the same
calls, text, end and notes. A proof is a take below `recordings/`, or a stream that is written in the
row itself. This page is made from the rows: `python -m tools.quirks`.
"""


def made() -> dict[Path, str]:
    """The document."""
    return {OUT: _written()}


def _written() -> str:
    """The document."""
    tested = [quirk for quirk in QUIRKS if quirk.cases]
    taken = [quirk for quirk in tested if quirk.takes]
    count = (
        f"{len(QUIRKS)} quirks: {len(taken)} proven by a take, {len(tested) - len(taken)} by a stream "
        f"in the test, {len(QUIRKS) - len(tested)} with a reason why no stream can.\n"
    )
    return "\n".join([HEAD, count, *_groups(), _notes(), _otherwise()])


def _groups() -> list[str]:
    ends = [first for first, _ in GROUPS[1:]] + [len(QUIRKS) + 1]
    lines: list[str] = []
    for (first, title), end in zip(GROUPS, ends, strict=True):
        rows = [_row(quirk) for quirk in QUIRKS if first <= quirk.number < end]
        head = "| # | what servers do | what we do | note | proof |\n|--:|---|---|---|---|"
        lines.append("\n".join([f"## {title}\n", head, *rows, ""]))
    return lines


def _row(quirk: Quirk) -> str:
    notes = " ".join(f"`{note}`" for note in quirk.notes) or "none"
    does = f"{quirk.does} [*](#done-otherwise)" if quirk.otherwise else quirk.does
    return (
        f"| {quirk.number} | {cell(quirk.title)} | {cell(does)} | {notes} | {cell(_proof(quirk))} |"
    )


def _proof(quirk: Quirk) -> str:
    if quirk.why_not:
        return f"none: {quirk.why_not}"
    here = ["in the test"] if any(not case.take for case in quirk.cases) else []
    return ", ".join([*(f"`{take}`" for take in quirk.takes), *here])


def _notes() -> str:
    raised = sorted({note for quirk in QUIRKS for note in quirk.notes})
    rows = [f"| `{note}` | {cell(NOTES[note].sentence)} |" for note in raised]
    return "\n".join(["## The notes they raise\n", "| note | what it says |\n|---|---|", *rows, ""])


def _otherwise() -> str:
    said = [f"- **{quirk.number}**: {quirk.otherwise}" for quirk in QUIRKS if quirk.otherwise]
    return "\n".join(["## Done otherwise\n", *said, ""])


if __name__ == "__main__":
    sys.exit(main_of("tools.quirks", __doc__, made))
