"""How far the run is: sections and steps in; a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

__all__ = ["Progress"]

WIDTH = 24


class Progress:
    """``weights``: about how many seconds each section takes; only their proportion matters."""

    def __init__(self, weights: Mapping[str, float], out: TextIO = sys.stderr) -> None:
        self._weights, self._out = weights, out
        self._total = sum(weights.values()) or 1.0
        self._before = 0.0
        self._start = time.monotonic()
        self._bar = out.isatty()

    def section(self, name: str) -> Callable[[int, int, str], None]:
        """What a section calls before each of its steps: how many are done, of how many, what."""

        def tick(done: int, of: int, what: str) -> None:
            share = (self._before + self._weights[name] * done / of) / self._total
            self._show(share, f"{name}: {what}")

        return tick

    def done(self, name: str) -> None:
        """The section is over; what it says can be printed."""
        self._before += self._weights[name]
        self.clear()

    def clear(self) -> None:
        if self._bar:
            self._out.write("\r\x1b[2K")
            self._out.flush()

    def _show(self, share: float, what: str) -> None:
        seconds = int(time.monotonic() - self._start)
        clock = f"{seconds // 60}:{seconds % 60:02}"
        if self._bar:
            full = round(share * WIDTH)
            bar = "█" * full + "░" * (WIDTH - full)
            self._out.write(f"\r\x1b[2K{bar} {share:4.0%} {clock}  {what[:60]}")
        else:
            self._out.write(f"... {share:4.0%} {clock}  {what}\n")
        self._out.flush()
