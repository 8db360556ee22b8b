"""What a section hands back: findings in, markdown and a verdict out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.workloads import WIRES

__all__ = ["Options", "Section", "mark", "table"]


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    quick: bool = False
    wires: tuple[str, ...] = WIRES


@dataclass
class Section:
    """The result of one section.

    ``wrong`` fails the run: somebody's result is not what was generated. ``missed`` does not, as
    time on a shared machine proves little: it is a bar that was not reached.
    """

    title: str
    lines: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def bar(self, what: str, value: float, limit: float) -> str:
        """Hold ``value`` against ``limit``, remember a miss, give the mark for the table."""
        if value > limit:
            self.missed.append(f"{what}: {value:.2f}, the bar is {limit:.2f}")
        return mark(value <= limit)


def mark(passed: bool) -> str:
    """How a cell says that a bar was reached."""
    return "pass" if passed else "**FAIL**"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A markdown table, aligned for people; all but the first ``words`` columns are numbers."""
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    rule = ["-" * w if n < words else "-" * (w - 1) + ":" for n, w in enumerate(widths)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(widths[n]) if n < words else cell.rjust(widths[n])
            for n, cell in enumerate(cells)
        ]
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(head), line(rule), *(line(row) for row in rows)])
