"""Bars as SVG: groups of values in, the text of a picture out that is readable on light and dark.

No library: the picture is a list of rectangles and words. Less is better in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from bench.report import number

__all__ = ["Bar", "Group", "picture"]

WIDTH, NAME, ROOM = (
    760,
    190,
    110,
)  # of the picture, of the names at the left, of numbers at the right
ROW, GAP, TOP = 18, 26, 46
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .group { font-weight: 600 }
  .small { fill: #59636e }
  .ours { fill: #0969da }
  .other { fill: #afb8c1 }
  .bar { stroke: #cf222e; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #9198a1 }
    .ours { fill: #4493f8 }
    .other { fill: #57606a }
    .bar { stroke: #f85149 }
  }
"""


class Bar(NamedTuple):
    """One value; ``limit`` is drawn as a line across it."""

    name: str
    value: float
    ours: bool = False
    limit: float | None = None


class Group(NamedTuple):
    name: str
    bars: Sequence[Bar]


def picture(title: str, unit: str, groups: Sequence[Group]) -> str:
    """All groups below each other, on one scale that begins at zero."""
    longest = max((_reach(bar) for group in groups for bar in group.bars), default=1.0)
    scale = (WIDTH - NAME - ROOM) / longest
    parts = [_words(0, 16, title, "title"), _words(0, 34, f"{unit}; less is better", "small")]
    y = TOP
    for group in groups:
        y += GAP
        parts.append(_words(0, y - 7, group.name, "group"))
        for bar in group.bars:
            parts += _row(bar, y, scale, unit)
            y += ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" role="img">'
    lines = [head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *parts, "</svg>"]
    return "\n".join(lines) + "\n"


def _reach(bar: Bar) -> float:
    return max(bar.value, bar.limit or 0.0)


def _row(bar: Bar, y: int, scale: float, unit: str) -> list[str]:
    wide = max(1.0, bar.value * scale)
    kind = "ours" if bar.ours else "other"
    parts = [
        _words(NAME - 8, y + 13, bar.name, "", "end"),
        f'<rect class="{kind}" x="{NAME}" y="{y + 2}" width="{wide:.1f}" height="{ROW - 4}" rx="2"/>',
        _words(
            NAME + max(wide, _reach(bar) * scale) + 6,
            y + 13,
            f"{number(bar.value)} {unit.split()[0]}",
            "small",
        ),
    ]
    if bar.limit is not None:
        x = NAME + bar.limit * scale
        parts.append(f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + ROW}"/>')
    return parts


def _words(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
