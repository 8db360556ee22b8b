"""A grid: rows of text in, aligned lines out.

Rule: cells are cleaned here, and the grid fits the terminal: where it is too wide, the columns
that may shrink are cut, in the order in which they are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text.shown import clean, display_width, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .style import Style

__all__ = ["grid"]

GAP = "  "
NARROWEST = 12


def grid(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, style: Style, shrink: Sequence[int]
) -> str:
    """``rows`` under ``heads``; ``shrink`` names the columns that may be cut.

    >>> from streamnorm.cli.style import Style
    >>> plain = Style(color=False, width=20)
    >>> print(grid(["name", "says"], [["a", "hello"]], style=plain, shrink=[1]))
    name  says
    a     hello
    """
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = _fit([*cells, list(heads)], style.width, shrink)
    lines = [style.bold(_line(heads, widths))]
    lines += [_line(row, widths) for row in cells]
    return "\n".join(lines)


def _fit(rows: list[list[str]], width: int, shrink: Sequence[int]) -> list[int]:
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    for column in shrink:
        cut = max(0, min(excess, widths[column] - NARROWEST))
        widths[column] -= cut
        excess -= cut
    return widths


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [shorten(cell, width) for cell, width in zip(row, widths, strict=True)]
    padded = [
        cell + " " * (width - display_width(cell))
        for cell, width in zip(cells, widths, strict=True)
    ]
    return GAP.join(padded).rstrip()
