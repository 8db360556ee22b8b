"""A source document comes in; its claims go out: every sentence, row, cell and shape, with its place.

Rule: nothing is judged here and nothing is left out. A place is a line of the document, and a number in
that line where there are several: ``45``, ``45.2``. A claim is known by a digest of its words, so that
the table of rows can be compared with a document that is not in this repository.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

CLAIMS = Path(__file__).with_name("claims.txt")
SEEDS = ("000", "001", "002", "003", "004")
# By cell where a table is a matrix; elsewhere a row is one claim.
MATRICES = {"001"}
# Without a border before it: where the documents have code, spaces were lost.
BINDING = re.compile(r"(must|shall|should|never|always|\bdon['’]t|\bdo)\b", re.IGNORECASE)

_ENTRY = re.compile(r"^\s*(?:-|\*|\d+\.)(?:\s+|$)")
_RULE = re.compile(r"^[|\s:-]+$")
_SENTENCE = re.compile(
    r"(?<=[.!?])[\"')`*]*\s+(?=[A-Z`*\"'(])|\s-\s(?=(?:Pro|Con|Good|Bad|Neutral|Per-run)\b)"
)
_BARE_RULE = re.compile(r"^\|(?:---\s*\|)+(?=\s*[^\s|-])")


class Claim(NamedTuple):
    """One thing that a document says. ``binds``: it says must, shall, should, do, don't, never, always."""

    place: str
    digest: str
    binds: bool
    text: str = ""

    @property
    def line(self) -> int:
        return int(self.place.partition(".")[0])


def folder() -> Path | None:
    """Where the documents lie: STREAMNORM_SEEDS, or beside the checkout. None if nowhere."""
    if named := os.environ.get("STREAMNORM_SEEDS"):
        return Path(named)  # if it is not there, the tests say so
    beside = ROOT.parent / "shared" / "seeds"
    return beside if beside.is_dir() else None


def text_of(seed: str) -> str:
    """The words of one document."""
    at = folder()
    assert at is not None
    (path,) = at.glob(f"{seed}_*.txt")
    return path.read_text()


def listed(seed: str) -> list[Claim]:
    """The claims of a document as they are listed here: by place and digest, without their words."""
    rows = [line.split() for line in CLAIMS.read_text().splitlines()]
    return [Claim(place, digest, bool(binds)) for of, place, digest, *binds in rows if of == seed]


def claims_of(seed: str, text: str) -> list[Claim]:
    """All claims of a document, in order."""
    return list(_numbered(_parts(seed, text)))


def _numbered(parts: Iterator[tuple[int, str]]) -> Iterator[Claim]:
    by_line: dict[int, list[str]] = {}
    for line, said in parts:
        by_line.setdefault(line, []).append(said)
    for line, texts in by_line.items():
        for number, said in enumerate(texts, 1):
            place = f"{line}.{number}" if len(texts) > 1 else str(line)
            plain = " ".join(said.split())
            digest = hashlib.sha256(plain.encode()).hexdigest()[:10]
            yield Claim(place, digest, BINDING.search(plain) is not None, plain)


def _parts(seed: str, text: str) -> Iterator[tuple[int, str]]:
    for line, block in _blocks(text):
        if block.startswith("```"):
            yield line, block
        elif rule := _BARE_RULE.match(block):
            yield from ((line, row) for row in _of_bare_table(block, rule.group()))
        elif block.lstrip().startswith("|"):
            yield from ((line, part) for part in _of_table(seed, block))
        else:
            yield from ((line, part) for part in _SENTENCE.split(_ENTRY.sub("", block)) if part)


def _of_bare_table(block: str, rule: str) -> Iterator[str]:
    """Rows of a table that lost its outer bars and its line ends."""
    cells = [cell.strip() for cell in block[len(rule) :].strip().rstrip("|").split("|")]
    columns = rule.count("|") - 1
    for at in range(0, len(cells), columns):
        yield " | ".join(cells[at : at + columns])


def _of_table(seed: str, row: str) -> list[str]:
    if _RULE.match(row):
        return []
    cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
    return cells if seed in MATRICES else [" | ".join(cells)]


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Shapes in fences, rows of tables, entries of lists and paragraphs, with their first line."""
    begun, held, fenced = 0, "", False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if held and not fenced:
                yield begun, held
                held = ""
            fenced = not fenced
            if fenced:
                begun, held = number, line
            else:
                yield begun, held
                held = ""
        elif fenced:
            held += "\n" + line
        elif not line.strip() or _begins(line, held):
            if held:
                yield begun, held
            begun, held = number, line.strip() and line
        else:
            begun, held = (begun, f"{held} {line.strip()}") if held else (number, line)
    if held:
        yield begun, held


def _begins(line: str, held: str) -> bool:
    """Does this line begin something new? A row of a table may go on in the next line."""
    if held.lstrip().startswith("|"):
        is_open = held.rstrip().endswith("|") and not line.lstrip().startswith("|")
        return not (is_open and line.rstrip().endswith("|"))
    return line.lstrip().startswith(("|", "#")) or _ENTRY.match(line) is not None
