"""Draws the floor plan into docs/architecture.md, from the table in tools/rooms.py and the imports.

    python -m tools.architecture             write it
    python -m tools.architecture --check     exit 1 if it is not up to date

The words of the page are written by hand; what stands between two marks is made here. The arrows
are the imports that there are, without those that follow from others. Rows name their modules as
text, and are themselves found by name: that arrow is no import.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.documents import cell, main_of
from tools.rooms import PROVIDER, ROOMS, House, Room

__all__ = ["made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"
MARKS = re.compile(r"(<!-- made by tools.architecture: (\w+) -->\n).*?(<!-- end -->)", re.S)


def made() -> dict[Path, str]:
    """The document, with what is made from the table made again."""
    parts = {"drawing": _drawing, "rooms": _rooms}
    text = MARKS.sub(lambda found: found[1] + parts[found[2]]() + found[3], OUT.read_text())
    return {OUT: text}


def name_of(room: Room) -> str:
    """The folder, or the files at the root."""
    if room.lines == "*":
        return f"{room.name}/*/"
    if room.name:
        return f"{room.name}/"
    return ", ".join("__init__" if line == "." else line for line in room.lines.split())


def needed(house: House) -> dict[int, set[int]]:
    """Room -> the rooms above that it imports from, without those that follow from others."""
    uses: dict[int, set[int]] = {number: set() for number in range(len(ROOMS))}
    for module in house.modules:
        here = house.plan[module][0]
        uses[here] |= {house.plan[one.module][0] for one in house.imports(module)} - {here}
    reach: dict[int, set[int]] = {}
    for number in uses:  # from top to bottom: what is above is known already
        reach[number] = uses[number] | {far for near in uses[number] for far in reach[near]}
    return {
        number: {one for one in near if not any(one in reach[other] for other in near)}
        for number, near in uses.items()
    }


def _drawing() -> str:
    lines = ["```mermaid", "flowchart BT"]
    lines += [f'    r{number}["{name_of(room)}"]' for number, room in enumerate(ROOMS)]
    for number, above in needed(House()).items():
        lines += [f"    r{number} --> r{one}" for one in sorted(above)]
    folders = next(number for number, room in enumerate(ROOMS) if room.lines == "*")
    lines.append(f"    r{folders + 1} -. by name .-> r{folders}")
    return "\n".join([*lines, "```\n"])


def _rooms() -> str:
    lines = ["| room | files, from top to bottom | comes in | goes out |", "|---|---|---|---|"]
    for room in ROOMS:
        files = PROVIDER if room.lines == "*" else room.lines.split()
        shown = " ".join("`__init__`" if f == "." else f if f == "*" else f"`{f}`" for f in files)
        row = (f"`{name_of(room)}`" if room.name else "(root)", shown, room.comes_in, room.goes_out)
        lines.append(f"| {' | '.join(map(cell, row))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main_of("tools.architecture", __doc__, made))
