"""A damaged take is read as far as it can be, or refused in our own words: a file is anybody's text."""

from __future__ import annotations

import random

from streamnorm.errors import StreamnormError
from streamnorm.takes.format import Take, parse_take
from streamnorm.takes.pipe import pipe_for
from tests.conftest import ALL, RECORDINGS
from tests.encoding.mutants import flipped

TAKES = [path.read_bytes() for path in sorted(RECORDINGS.glob("*/*.sse"))[::12]]


def test_no_damage_to_a_take_raises_anything_foreign():
    read = 0
    for seed in range(20_000 if ALL else 400):
        dice = random.Random(seed)
        try:
            take = parse_take(flipped(dice.choice(TAKES), dice), name="this file")
            assert _end_of(take) in ("finish", "failed")
            read += 1
        except StreamnormError:
            continue
    assert read > 100  # most damage is somewhere in the stream, which its pipe tells


def _end_of(take: Take) -> str:
    pipe = pipe_for(take, None)
    events = [event for _, chunk in take.chunks for event in pipe.feed(chunk)]
    return (events + pipe.close())[-1].kind
