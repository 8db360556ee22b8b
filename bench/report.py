"""What a section hands back: findings in, markdown, figures and a verdict out.

A figure is a number where less is better. One with a bar is held against it; one that is a ratio of
two things measured in one run (``x``) is what ``bench.check`` compares with an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.workloads import WIRES

__all__ = [
    "NAMES", "RATIO", "WORKLOADS", "Figure", "Options", "Section", "number", "table", "told", "verdict",
]  # fmt: skip

NAMES = {
    "openai_chat": "Chat",
    "anthropic": "Anthropic",
    "openai_responses": "Responses",
    "gemini": "Gemini",
}
WORKLOADS = {"W1": "text", "W2": "tools"}
RATIO = "x"


@dataclass(frozen=True)
class Options:
    """What the command line asked for; ``tick`` is told what comes next, of how many."""

    quick: bool = False
    peers: bool = True
    wires: tuple[str, ...] = WIRES
    tick: Callable[[int, int, str], None] = lambda done, of, what: None


@dataclass(frozen=True)
class Figure:
    """A measured number. ``bar`` is the most it should be, or None."""

    value: float
    unit: str = RATIO
    bar: float | None = None

    @property
    def reached(self) -> bool:
        return self.bar is None or self.value <= self.bar


@dataclass
class Section:
    """The result of one section.

    ``wrong`` fails the run: what streamnorm made of a stream is not what was generated. A bar that
    is missed does not, as time on a shared machine proves little. ``notes`` say what was left out,
    and what others got wrong.
    """

    title: str
    lines: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def figure(self, name: str, value: float, unit: str = RATIO, bar: float | None = None) -> str:
        """Keep a figure; gives the cell of a table."""
        self.figures[name] = Figure(value, unit, bar)
        return told(self.figures[name])

    def missed(self) -> list[str]:
        """The bars that were not reached, as sentences."""
        return [
            f"{name}: {number(one.value)} {one.unit}, the bar is {number(one.bar or 0)}"
            for name, one in self.figures.items()
            if not one.reached
        ]


def verdict(figure: Figure) -> str:
    """How a cell says whether a bar was reached; nothing where there is none."""
    if figure.bar is None:
        return ""
    sign = "≤" if figure.reached else "missed, bar"
    return f"{sign} {number(figure.bar)}"


def told(figure: Figure) -> str:
    """A figure and its bar as a cell: ``1.43 x (≤ 1.6)``, ``**1.92 x** (missed, bar 1.6)``."""
    text = f"{number(figure.value)} {figure.unit}"
    if figure.bar is None:
        return text
    return f"{text if figure.reached else f'**{text}**'} ({verdict(figure)})"


def number(value: float) -> str:
    """As many digits as say something.

    >>> [number(value) for value in (0.333, 1.6, 12.34, 456.7, 12345.6)]
    ['0.33', '1.6', '12.3', '457', '12,346']
    """
    if value >= 100:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


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
