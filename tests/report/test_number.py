"""One number: how much, in how many streams, how long; and the same in any order."""

from __future__ import annotations

import random

import pytest

from streamnorm.report.number import ERROR, EXAMPLES, Figure, Number


def counted(entries: list[tuple[int, int]], most: int = EXAMPLES) -> Number:
    number = Number()
    for place, (hashed, count) in enumerate(entries):
        number.add(count, (-hashed, place, f"stream {hashed}"), most)
    return number


def kept(number: Number) -> set[str]:
    return {stream for _, _, stream in number.sample}


def test_it_counts_what_is_counted_and_the_streams_in_which_it_is() -> None:
    assert counted([(5, 2), (7, 1), (9, 4)]).figure() == Figure(7, 3, None)


def test_of_many_streams_those_with_the_smallest_hashes_are_kept_in_any_order() -> None:
    entries = [(hashed, 1) for hashed in range(100)]
    random.Random(3).shuffle(entries)
    assert kept(counted(entries, most=3)) == {"stream 0", "stream 1", "stream 2"}


def test_two_numbers_together_are_as_one_that_counted_all() -> None:
    entries = [(hashed * 7 % 101, hashed) for hashed in range(60)]
    left, right, whole = counted(entries[:20]), counted(entries[20:]), counted(entries)
    left.merge(right)
    assert left.figure() == whole.figure()
    assert kept(left) == kept(whole)
    assert len(left.sample) == EXAMPLES


@pytest.mark.parametrize("size", [1, 2, 10, 999])
def test_percentiles_are_as_exact_as_is_said(size: int) -> None:
    lots = random.Random(size)
    times = sorted(lots.lognormvariate(0, 2) for _ in range(size))
    number = Number()
    for seconds in times:
        number.time(seconds)
    spread = number.figure().spread
    assert spread is not None
    for share, told in ((0.5, spread.p50), (0.9, spread.p90), (0.99, spread.p99)):
        exact = times[max(0, -int(-share * size // 1) - 1)]
        assert told == pytest.approx(exact, rel=ERROR * 1.1)
    assert spread.most == times[-1]


def test_times_that_no_clock_gives_take_no_slots_of_their_own() -> None:
    number = Number()
    for seconds in (0.0, 1e-9, 1e9, 1e300):
        number.time(seconds)
    assert len(number._slots or ()) == 2
    spread = number.figure().spread
    assert spread is not None
    assert spread.most == 1e300
