"""Writes docs/seeds.md from the rows of tests/seeds.

    python -m tools.seeds             write it
    python -m tools.seeds --check     exit 1 if it is not up to date
    python -m tools.seeds --claims    where the documents are reachable: list their claims anew

Rule: every row of the table is in the document, and nothing else; which claims there are is read from the
documents, and that each has a row is a test (tests/seeds/test_table.py).
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from tests.seeds.claims import CLAIMS, SEEDS, claims_of, listed, text_of
from tests.seeds.rows import BESIDE, ROWS, TITLES, Row
from tools.documents import cell, main_of

__all__ = ["made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "seeds.md"

HEAD = """\
# What the source documents ask for

Five documents say what this library is for: which ids calls have (000), how tools are declared, called and
answered on four wires (001), what a settled call is (002), who stores what and when (003), and what is
logged of a call's id (004). Here is every claim of theirs, where in this library it is true, and the test that
shows it. A place is a line of the document, with a number where a line has several sentences or cells.
Where we do otherwise, the row says what and why, and its test proves what we do.

This page is made from `tests/seeds/rows.py` (`make docs`). `tests/seeds/test_table.py` holds it: no claim
without a row, no row without its test, no test of `tests/seeds/` without a row.
"""


def made() -> dict[Path, str]:
    """The document."""
    return {OUT: "\n".join([HEAD, _counted(), *map(_section, SEEDS)])}


def _counted() -> str:
    head = "| document | claims | rows | done otherwise |\n|---|--:|--:|--:|"
    lines = []
    for seed in SEEDS:
        rows = [row for row in ROWS if row.seed == seed]
        count = sum(1 for row in rows if row.otherwise)
        title = TITLES[seed]
        link = title.lower().replace(",", "").replace(" ", "-")
        numbers = f"{len(listed(seed))} | {len(rows)} | {count}"
        lines.append(f"| [{seed} {title}](#{seed}-{link}) | {numbers} |")
    return "\n".join([head, *lines, ""])


def _section(seed: str) -> str:
    rows = [row for row in ROWS if row.seed == seed]
    kept = sorted((row for row in rows if row.tests), key=_place)
    beside = sorted((row for row in rows if not row.tests), key=_place)
    head = "| place | it says | where it is true | test |\n|---|---|---|---|"
    table = [head, *(_line(row) for row in kept)]
    left = [
        f"- {row.says.removeprefix(BESIDE)} (lines {', '.join(row.places.split())})"
        for row in beside
    ]
    return "\n".join([
        f"## {seed} {TITLES[seed]}\n", *table,
        "\nWhat says nothing that a program could do or not do:\n", *left, "",
    ])  # fmt: skip


def _place(row: Row) -> tuple[int, int]:
    line, _, number = row.places.split()[0].partition("-")[0].partition(".")
    return int(line), int(number or 0)


def _line(row: Row) -> str:
    where = ", ".join(f"`{place}`" for place in row.where.split(", "))
    says = f"{row.says}. **Otherwise:** {row.otherwise}" if row.otherwise else row.says
    return (
        f"| {cell(', '.join(row.places.split()))} | {cell(says)} | {where} | {_shown(row.tests)} |"
    )


def _shown(tests: str) -> str:
    """Tests by file, each file once."""
    pairs = [test.removeprefix("tests/").split("::") for test in tests.split()]
    grouped = groupby(pairs, key=lambda pair: pair[0])
    return "; ".join(
        f"{path}: {', '.join(f'`{name}`' for _, name in group)}" for path, group in grouped
    )


def _write_claims() -> int:
    lines = [
        f"{seed} {claim.place} {claim.digest}{' !' if claim.binds else ''}"
        for seed in SEEDS
        for claim in claims_of(seed, text_of(seed))
    ]
    CLAIMS.write_text("\n".join(lines) + "\n")
    print(f"{CLAIMS.name} written: {len(lines)} claims")
    return 0


if __name__ == "__main__":
    if "--claims" in sys.argv[1:]:
        sys.exit(_write_claims())
    sys.exit(main_of("tools.seeds", __doc__, made))
