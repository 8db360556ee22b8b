"""Times of recordings, and the slices in which they are counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.report.moments import MOST, Moments, moment


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-19T14:05:09Z", "2026-11-19T14:05"),
        ("2026-11-19T00:30:00+02:00", "2026-11-18T22:30"),
        ("2026-11-19", "2026-11-19T00:00"),
        ("2026-11-19 14:05", "2026-11-19T14:05"),
        ("1970-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_a_time_is_told_in_utc_and_what_is_none_is_none(text: str | None, told: str | None) -> None:
    assert moment(text) == told


@pytest.mark.parametrize(
    ("last", "unit", "slices"),
    [
        ("2026-01-01T00:00", "minute", 1),
        ("2026-01-01T01:31", "minute", 92),
        ("2026-01-01T01:32", "ten minutes", 10),
        ("2026-01-02T00:00", "hour", 25),
        ("2026-01-05T00:00", "day", 5),
        ("2026-04-02T23:00", "day", 92),
        ("2026-04-03T00:00", "month", 4),
        ("2035-01-01T00:00", "year", 10),
    ],
)
def test_slices_are_as_short_as_the_span_allows(last: str, unit: str, slices: int) -> None:
    moments = Moments()
    moments.hear("2026-01-01T00:00")
    moments.hear(last)
    assert (moments.unit, len(moments.axis())) == (unit, slices)
    assert moments.axis()[0] == "2026-01-01T00:00"[: moments.size]
    assert moments.axis()[-1] == last[: moments.size]


TIMES = st.datetimes(datetime(2001, 1, 1), datetime(2079, 1, 1)).map(lambda d: d.isoformat()[:16])


@given(st.lists(TIMES, min_size=1, max_size=12), st.randoms())
def test_the_slices_do_not_depend_on_the_order(times: list[str], lots: object) -> None:
    def heard(some: list[str]) -> Moments:
        moments = Moments()
        for at in some:
            moments.hear(at)
        return moments

    there, back = heard(times), heard(times[::-1])
    assert there.axis() == back.axis()
    assert len(there.axis()) <= MOST
    assert {at[: there.size] for at in times} <= set(there.axis())


def test_empty_slices_stand_between_full_ones() -> None:
    moments = Moments()
    start = datetime(2026, 2, 27)
    for days in (0, 4):
        moments.hear((start + timedelta(days=days)).isoformat()[:16])
    assert moments.axis() == ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02", "2026-03-03"]
