"""Colours and signs: what the terminal can show in, strings dressed for it out.

Rule: colour only on a terminal, never under ``NO_COLOR``, unless asked for; and each dressed piece
takes its colour off again, so that an interrupted view leaves the terminal as it was.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import argparse

__all__ = ["Signs", "Style", "add_color_options", "style_for"]

PLAIN_WIDTH = 100  # where there is no terminal to ask


@dataclass(frozen=True, slots=True)
class Signs:
    """What stands at the start of a line of our own; wire text never stands there."""

    start: str = "…"
    call: str = "●"
    broken: str = "✗"
    result: str = "↳"
    cite: str = "❞"
    odd: str = "?"
    sum: str = "Σ"
    end: str = "■"
    aside: str = "┆ "
    rule: str = "─"
    dot: str = " · "


ASCII = Signs(
    start=".", call="*", broken="x", result=">", cite='"', sum="+", end="#", aside="| ", rule="-",
    dot=" - ",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How to print on one stream.

    >>> Style(color=True, width=80).red("no")
    '\\x1b[31mno\\x1b[0m'
    >>> Style(color=False, width=80).red("no")
    'no'
    """

    color: bool
    width: int
    signs: Signs = Signs()
    wrap: bool = False  # only where a terminal would wrap by itself: piped text stays as it is

    def bold(self, text: str) -> str:
        return self._dress("1", text)

    def dim(self, text: str) -> str:
        return self._dress("2", text)

    def red(self, text: str) -> str:
        return self._dress("31", text)

    def green(self, text: str) -> str:
        return self._dress("32", text)

    def yellow(self, text: str) -> str:
        return self._dress("33", text)

    def cyan(self, text: str) -> str:
        return self._dress("36", text)

    def _dress(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


def add_color_options(parser: argparse.ArgumentParser) -> None:
    """``--color`` and its short form ``--no-color``."""
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto (default): on a terminal, unless NO_COLOR is set",
    )
    parser.add_argument(
        "--no-color", dest="color", action="store_const", const="never", help="as --color never"
    )


def style_for(out: TextIO, choice: str = "auto") -> Style:
    """The style for ``out``; makes sure that what it cannot encode does not stop us."""
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="backslashreplace")
    return Style(_wants_color(out, choice), _width(), _signs_for(out), wrap=out.isatty())


def _wants_color(out: TextIO, choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    return max(20, shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns)


def _signs_for(out: TextIO) -> Signs:
    signs = Signs()
    drawn = "".join(getattr(signs, name) for name in signs.__slots__)
    try:
        drawn.encode(out.encoding or sys.getdefaultencoding())
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return signs
