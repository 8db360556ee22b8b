"""How far long work is: steps in, one line on the terminal out, which is gone when the work is done.

    with progress("reading", total=size, unit="B") as bar:
        bar.advance(len(piece))

Rule: it stands on stderr, and only where that is a terminal; a program that reads our output never
sees it. Work that is done in a moment shows none. What is printed meanwhile says ``hide`` first.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from ..text.shown import clean, display_width, shorten
from .style import style_for

__all__ = ["Progress", "progress"]

PATIENCE = 0.4  # seconds that work may take without a word
PAUSE = 0.1  # seconds between two looks at the line
BAR = 24  # columns of the bar, where there is room
LEAST = 8
FULL, EMPTY = "█", "░"
PLAIN_FULL, PLAIN_EMPTY = "#", "."
UNITS = ((1e9, " GB"), (1e6, " MB"), (1e3, " KB"))


def progress(
    what: str, total: int | None = None, unit: str = "", *, out: TextIO | None = None
) -> Progress:
    """Of ``total`` steps, if that is known. ``unit``: ``B`` for bytes, or a word: ``files``."""
    return Progress(what, total, unit, out=out or sys.stderr)


class Progress:
    """One line that tells how far the work is.

    >>> import io
    >>> with Progress("reading", 3, "files", out=io.StringIO()) as bar:  # no terminal: no line
    ...     bar.advance()
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        unit: str = "",
        *,
        out: TextIO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._total, self._unit = clean(what), total, unit
        self._out, self._clock = out, clock
        self._done = 0
        self._began = clock()
        self._next = self._began + PATIENCE
        self._shown = False
        self._here = out.isatty() and os.environ.get("TERM") != "dumb"

    def advance(self, steps: int = 1, what: str | None = None) -> None:
        """So many more are done; from here on it is called ``what``."""
        self._done += steps
        if what is not None:
            self._what = clean(what)
        if self._here and (now := self._clock()) >= self._next:
            self._next = now + PAUSE
            self._show(now)

    def hide(self) -> None:
        """Takes the line away, so that something else can be printed; it comes back by itself."""
        if self._shown:
            self._shown = False
            self._write("\r" + " " * (style_for(self._out).width - 1) + "\r")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()
        self._here = False

    def _show(self, now: float) -> None:
        style = style_for(self._out)
        width = style.width - 1  # a terminal goes on to the next line after the last column
        tail = self._tail(now)
        head = shorten(self._what, max(4, width - display_width(tail) - 1))
        room = min(BAR, width - display_width(head) - display_width(tail) - 2)
        signs = (FULL, EMPTY) if style.signs.call == "●" else (PLAIN_FULL, PLAIN_EMPTY)
        bar = "" if self._total is None or room < LEAST else _bar(self._share, room, *signs)
        line = shorten(" ".join(part for part in (head, bar, tail) if part), width)
        self._write("\r" + line + " " * (width - display_width(line)))
        self._shown = True

    @property
    def _share(self) -> float:
        return min(1.0, self._done / self._total) if self._total else 1.0

    def _tail(self, now: float) -> str:
        passed = now - self._began
        if self._total is None:
            return f"{self._amount(self._done)} {_minutes(passed)}"
        left = passed / self._share - passed if self._share else None
        of = f"{self._amount(self._done)} of {self._amount(self._total)}"
        return f"{self._share:4.0%} {of}" + ("" if left is None else f", {_minutes(left)} left")

    def _amount(self, count: int) -> str:
        if self._unit != "B":
            return f"{count} {self._unit}".rstrip()
        for size, name in UNITS:
            if count >= size:
                return f"{count / size:.1f}{name}"
        return f"{count} B"

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:  # the terminal went away; the work goes on
            self._here = False


def _bar(share: float, width: int, full: str, empty: str) -> str:
    done = int(share * width)
    return full * done + empty * (width - done)


def _minutes(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02}"
