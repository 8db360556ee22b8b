"""What a part of the proof is given, and what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Report", "Share"]


class Report(NamedTuple):
    """``tried`` in one sentence; ``found`` is what does not hold; ``left_out`` what could not be tried."""

    tried: str
    found: list[str]
    left_out: str = ""


@dataclass
class Share:
    """``seconds`` that a part may take, about; ``tell`` is called with a share of 1 and a word."""

    seconds: float
    seed: str = "prove"
    mutants: int = 1_000_000
    jobs: int = 2
    tell: Callable[[float, str], None] = lambda share, what: None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self.began)

    def told(self, what: str) -> bool:
        """Tells how far it is; is there time left?"""
        self.tell(min(1.0, 1 - self.left / self.seconds), what)
        return self.left > 0
