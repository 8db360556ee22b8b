"""Writes docs/mutants.md: what became of the guards that ``make mutate`` removed, file by file.

python -m tools.mutants             write it
python -m tools.mutants --check     exit 1 if it is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.documents import main_of
from tools.mutate.results import Row, read

__all__ = ["made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "mutants.md"

HEAD = """\
# Would the tests notice?

`make mutate` removes or inverts the guards of the code one by one: every condition that decides whether a
call is whole, whose a fragment is, what ends when and what is too much; every statement that speaks
against a call; every row of the tables about them. In the files that decide what a call is and what its
text says (`calls`, `copies`, `marks`, `exact`, ids) also every other statement, argument with a default,
number and sign. For each the tests that pass through those lines are
run until one fails. It exits 0 only if none survives.

*Equivalent* are guards that nothing can tell from the code without them, mostly shortcuts: each is a row of
`tools/mutate/targets.py` with its reason, and a row that a test contradicts is reported.

| file | mutants | caught | equivalent | survive |
|---|--:|--:|--:|--:|
"""


def made() -> dict[Path, str]:
    rows = read()
    total = Row(*(sum(column) for column in zip(*rows.values(), strict=True)))
    lines = [_line(f"`{file.removeprefix('streamnorm/')}`", row) for file, row in rows.items()]
    return {OUT: "\n".join([HEAD + lines[0], *lines[1:], _line("**all**", total), ""])}


def _line(name: str, row: Row) -> str:
    return f"| {name} | {' | '.join(map(str, row))} |"


if __name__ == "__main__":
    sys.exit(main_of("tools.mutants", __doc__, made))
