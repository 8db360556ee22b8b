"""Playing a take: its chunks in, events out, at any pace.

Rule: the same pipe as everywhere. What a replay shows is what a live stream would have shown.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..events import Event
    from ..normalizer import Normalizer
    from ..takes.format import Take

__all__ = ["LONGEST_WAIT", "play"]

LONGEST_WAIT = 60.0  # seconds; a take must not be able to hang its reader


def play(take: Take, pipe: Normalizer, *, pace: float = 0.0) -> Iterator[list[Event]]:
    """The events of each chunk. ``pace`` is the speed: 0 at once, 1 as it was, 2 twice as fast."""
    before = 0.0
    for at, chunk in take.chunks:
        if pace > 0:
            time.sleep(min(max(0.0, at - before) / pace, LONGEST_WAIT))
        before = at
        yield pipe.feed(chunk)
    yield pipe.close()
