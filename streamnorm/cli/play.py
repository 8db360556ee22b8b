"""Playing a take: its chunks in, events out, at any pace.

Rule: the same pipe as everywhere. What a replay shows is what a live stream would have shown.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from ..events import Event
    from ..normalizer import Normalizer
    from ..takes.format import Take

__all__ = ["play", "programs_streams"]

FIRST_LINES = 20  # that may tell whose session it is
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


def programs_streams(
    take: Take, provider: str | None
) -> list[tuple[str | None, list[Event], Counter[str]]] | None:
    """What an agent program printed or saved: the lane, the events and the notes of each stream.

    None: it is no session of such a program.
    """
    from ..core.lanes import Lanes
    from ..providers import AUTO, PROGRAMS, programs
    from ..sessions import session

    name, lines = provider or take.provider or AUTO, take.wire.splitlines()
    if name == AUTO:
        rows = [row for row in programs() for line in lines[:FIRST_LINES]
                if row.part("lanes", Lanes).looks_like(line)]  # fmt: skip
        name = rows[0].name if rows else AUTO
    if name not in PROGRAMS:
        return None
    with session(lines, name, seed=take.seed) as streams:
        return [(stream.lane, list(stream), stream.notes) for stream in streams]
