"""The half of the report that counts: its numbers are those of the rows, in any order, in bounded memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.errors import UsageError
from streamnorm.report.number import EXAMPLES, Figure
from streamnorm.report.tally import (
    FACETS,
    LISTED,
    MOST_COUNTED,
    MOST_VALUES,
    NO_DATE,
    OTHERS,
    UNNAMED,
    Summary,
    Tally,
)  # fmt: skip
from streamnorm.table.records import records
from tests.conftest import ALL, RECORDINGS
from tests.report.rows import Row, broken, call, note, session, unread


def counted(rows: Any) -> Summary:
    tally = Tally()
    for row in rows:
        tally.add(row)
    return tally.summary()


# --- what is counted ------------------------------------------------------------------------------


def test_calls_are_counted_by_outcome_provider_reason_and_source_of_their_id() -> None:
    summary = counted([
        session("a"), call("a"), call("a", id_source="synthetic"), broken("a"),
        session("b", provider="gemini"), broken("b", "length"), broken("b", "length"),
    ])  # fmt: skip
    assert summary.of(call="whole") == Figure(2, 1)
    assert summary.of(call="broken") == Figure(3, 2)
    assert summary.of(provider="gemini", call="broken") == Figure(2, 1)
    assert summary.of(broken="length") == Figure(2, 1)
    assert summary.of(id="synthetic") == Figure(1, 1)
    assert summary.of(provider="gemini", id="natural") == Figure(2, 1)
    assert summary.values("broken") == ["length", "truncated"]
    assert summary.values("call", provider="gemini") == ["broken"]


def test_endings_are_counted_by_reason_and_what_was_not_read_is_no_stream_of_a_provider() -> None:
    summary = counted([
        session("a"), session("b", outcome="failed", reason="truncated"), unread("c"),
    ])  # fmt: skip
    assert summary.of() == Figure(3, 3)
    assert summary.of(end="failed", reason="truncated") == Figure(1, 1)
    assert summary.of(end="unreadable") == Figure(1, 1)
    assert summary.of(provider="openai_chat").streams == 2
    assert sum(summary.of(server=name).streams for name in summary.values("server")) == 2


def test_a_server_is_the_host_and_without_one_the_provider_and_the_model() -> None:
    summary = counted([
        session("a", host="api.example"), session("b"), session("c", model=None),
        session("d", provider=None, model=None),
    ])  # fmt: skip
    names = ["api.example", "openai_chat", "openai_chat · gpt-x", UNNAMED]
    assert summary.values("server") == names


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([session("a")], None),
        ([session("a"), call("a"), note("a", "wire.field_unknown")], None),
        ([session("a"), note("a", "wire.keepalive", 9)], None),
        ([session("a"), note("a", "call.index_reused")], "odd"),
        ([session("a"), note("a", "of.another_version")], "odd"),
        ([session("a"), call("a", id_source="synthetic")], "odd"),
        ([session("a"), call("a", id_source="conflated")], None),
        ([session("a"), broken("a")], "broken"),
        ([session("a", outcome="failed", reason="protocol")], "broken"),
    ],
)
def test_a_stream_is_affected_by_what_breaks_and_by_warnings(
    rows: list[Row], wrong: str | None
) -> None:
    summary = counted(rows)
    assert summary.values("wrong") == sorted({"any", wrong} if wrong else set())
    assert summary.of(server="openai_chat · gpt-x", wrong="any").streams == (wrong is not None)


def test_tokens_are_summed_by_provider_and_model_and_none_is_not_zero() -> None:
    summary = counted([
        session("a", tokens_input=100, tokens_output=20, tokens_cached=0),
        session("b", tokens_input=5, tokens_reasoning=7),
        session("c"),
    ])  # fmt: skip
    assert summary.of(provider="openai_chat", model="gpt-x", tokens="input") == Figure(105, 2)
    assert summary.of(tokens="reasoning") == Figure(7, 1)
    assert summary.of(tokens="cached") == Figure()
    assert summary.of(tokens="none") == Figure(1, 1)


def test_times_are_told_by_percentiles_and_by_slices_and_streams_without_are_counted() -> None:
    summary = counted([
        *(session(f"{n}", first_event=n / 100, first_call=2.5) for n in range(1, 101)), session("none"),
    ])  # fmt: skip
    timed = summary.of(provider="openai_chat", timed="first_event")
    assert timed.spread is not None
    assert (timed.streams, timed.spread.most) == (100, 1.0)
    assert timed.spread.p50 == pytest.approx(0.5, rel=0.01)
    assert timed.spread.p99 == pytest.approx(0.99, rel=0.01)
    assert summary.of(provider="openai_chat", first_event="0.2 to 0.5 s").streams == 30
    assert summary.of(provider="openai_chat", first_call="2 to 5 s").streams == 100
    assert summary.of(timed="none") == Figure(1, 1)
    assert summary.of(timed="first_token") == Figure()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, "1.5", True, None])
def test_what_is_no_time_is_no_time(value: Any) -> None:
    assert counted([session("a", first_event=value)]).of(timed="none").streams == 1


def test_oddities_are_counted_over_time_and_those_without_a_date_apart() -> None:
    summary = counted([
        session("a", captured="2026-11-18T10:00:00Z"), note("a", "wire.gap", 2),
        session("b", captured="2026-11-25T10:00:00Z"), note("b", "wire.gap", 3),
        session("c", captured="at noon"), note("c", "wire.gap", 5),
    ])  # fmt: skip
    assert (summary.unit, summary.first, summary.last) == (
        "day",
        "2026-11-18T10:00",
        "2026-11-25T10:00",
    )
    assert summary.of(note="wire.gap", when="2026-11-18") == Figure(2, 1)
    assert summary.of(note="wire.gap", when="2026-11-25") == Figure(3, 1)
    assert summary.of(note="wire.gap", when=NO_DATE) == Figure(5, 1)
    assert summary.of(note="wire.gap") == Figure(10, 3)
    assert len(summary.days) == 8


def test_without_dates_oddities_are_counted_in_parts_of_the_streams_as_they_came() -> None:
    rows = chain.from_iterable([session(f"{n}"), note(f"{n}", "wire.gap")] for n in range(1000))
    summary = counted(rows)
    assert summary.days == []
    assert summary.parts[0] == "1 to 32"
    assert summary.parts[-1] == "993 to 1000"
    assert [summary.of(note="wire.gap", part=part).streams for part in summary.parts] == [
        32
    ] * 31 + [8]


def test_a_row_apart_from_its_session_is_refused() -> None:
    with pytest.raises(UsageError, match="a row of b stands apart from the row of its session"):
        counted([session("a"), call("b")])
    with pytest.raises(UsageError, match="stands apart"):
        counted([note("a", "wire.gap")])


def test_counting_goes_on_after_a_summary() -> None:
    tally = Tally()
    tally.add(session("a"))
    assert tally.summary().of().streams == 1
    tally.add(session("b"))
    assert tally.summary().of().streams == 2


# --- laws -----------------------------------------------------------------------------------------

PROVIDERS = ("openai_chat", "gemini", None)
NOTES = ("wire.gap", "wire.keepalive", "call.id_synthetic")


@st.composite
def sessions(draw: st.DrawFn) -> list[list[Row]]:
    """Streams with everything in them, each with its rows."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        name = f"s{number}"
        row = session(
            name, provider=draw(st.sampled_from(PROVIDERS)), host=draw(st.sampled_from(("h", "i", None))),
            outcome=draw(st.sampled_from(("finish", "failed"))), reason=draw(st.sampled_from(("stop", "length"))),
            captured=draw(st.sampled_from(("2026-01-01T10:00", "2026-03-09T11:11", None))),
            tokens_input=draw(st.none() | st.integers(0, 9)), first_event=draw(st.none() | st.floats(0, 50)),
        )  # fmt: skip
        calls = [
            call(name, id_source=source)
            for source in draw(st.lists(st.sampled_from(("natural", "synthetic"))))
        ]
        bad = [
            broken(name, reason)
            for reason in draw(st.lists(st.sampled_from(("length", "conflict")), max_size=3))
        ]
        notes = [note(name, odd, 1 + len(odd)) for odd in draw(st.sets(st.sampled_from(NOTES)))]
        found.append([row, *calls, *bad, *notes])
    return found


def without_parts(summary: Summary) -> dict[Any, Figure]:
    return {key: value for key, value in summary.numbers.items() if "part" not in dict(key)}


@given(sessions(), st.randoms(use_true_random=False))
def test_the_order_of_streams_changes_no_number(
    streams: list[list[Row]], lots: random.Random
) -> None:
    shuffled = streams[:]
    lots.shuffle(shuffled)
    there, here = counted(chain(*streams)), counted(chain(*shuffled))
    assert without_parts(there) == without_parts(here)
    assert [one.facts for one in there.streams] == [one.facts for one in here.streams]


@given(sessions())
def test_numbers_are_the_sums_of_the_rows(streams: list[list[Row]]) -> None:
    rows = list(chain(*streams))
    summary = counted(rows)
    calls = Counter(row["outcome"] for row in rows if row["kind"] == "call")
    assert {end: summary.of(call=end).total for end in summary.values("call")} == calls
    odd: Counter[str] = Counter()
    for row in rows:
        odd += Counter({row["name"]: row["count"]} if row["kind"] == "note" else {})
    assert {name: summary.of(note=name).total for name in summary.values("note")} == odd
    assert summary.of(tokens="input").total == sum(row.get("tokens_input") or 0 for row in rows)
    assert summary.sums.get("bytes", 0) == 100 * len(streams)


@given(sessions())
def test_what_is_told_apart_sums_up_to_what_is_not(streams: list[list[Row]]) -> None:
    summary = counted(chain(*streams))
    for facet in ("call", "id", "end"):
        for value in summary.values(facet):
            for of in ("provider", "server"):
                parts = [summary.of(**{of: one, facet: value}) for one in summary.values(of)]
                assert sum(part.total for part in parts) == summary.of(**{facet: value}).total
                assert sum(part.streams for part in parts) == summary.of(**{facet: value}).streams


@given(sessions())
def test_behind_every_number_are_the_streams_that_have_its_tags(streams: list[list[Row]]) -> None:
    summary = counted(chain(*streams))
    for key, figure in summary.numbers.items():
        behind = [one for one in summary.streams if set(key) <= set(one.tags)]
        assert len(behind) == figure.streams, key


def real() -> Iterator[Row]:
    for path in sorted(RECORDINGS.rglob("*.sse")):
        yield from records(str(path.relative_to(RECORDINGS)), path.read_bytes())


def test_the_laws_hold_for_real_streams() -> None:
    rows = list(real())
    summary = counted(rows)
    assert summary.of().streams == sum(row["kind"] == "session" for row in rows)
    whole = sum(row["kind"] == "call" and row["outcome"] == "whole" for row in rows)
    assert summary.of(call="whole").total == whole > 100
    for key, figure in summary.numbers.items():
        assert sum(set(key) <= set(one.tags) for one in summary.streams) == figure.streams, key


# --- bounds ---------------------------------------------------------------------------------------


def many(count: int) -> Iterator[Row]:
    """Streams of which each has names of its own, as hostile ones do."""
    for n in range(count):
        name = f"logs/{n}.sse"
        yield session(name, host=f"host-{n}.example", model=f"model-{n}", provider=f"p{n % 3}",
                      captured=f"2026-{1 + n % 12:02}-{1 + n % 28:02}T{n % 24:02}:00", tokens_input=1,
                      first_event=(n % 1000) / 100, outcome="failed", reason=f"why-{n}")  # fmt: skip
        yield broken(name, f"broke-{n}")
        yield note(name, f"odd.{n}")


def held(tally: Tally) -> tuple[int, int]:
    """How many numbers, and how many entries in their samples."""
    return len(tally._numbers), sum(len(number.sample) for number in tally._numbers.values())


def test_what_is_kept_does_not_grow_with_the_streams() -> None:
    count = 33_000 if ALL else 9_000
    tally, sizes = Tally(), []
    for at, row in enumerate(many(count), 1):
        tally.add(row)
        if at % count == 0:
            sizes.append(held(tally))
    assert len(sizes) == 3
    for (few, few_kept), (lots, lots_kept) in pairwise(sizes):
        assert lots < 1.4 * few  # it comes and goes, as those that are too many go all at once
        assert lots_kept < 1.4 * few_kept


def test_hostile_names_are_counted_together_and_the_sums_stay_right() -> None:
    summary = counted(many(4_000))
    for facet in ("server", "model", "reason", "broken", "note"):
        values = {dict(key)[facet] for key in summary.numbers if facet in dict(key)}
        assert len(values) <= FACETS[facet] + 1, facet
    apart = [summary.of(note=name) for name in summary.values("note")]
    assert sum(figure.total for figure in apart) == 4_000
    assert summary.of(note=OTHERS).streams > 3_500


def test_which_values_are_told_apart_does_not_depend_on_the_order() -> None:
    rows = list(many(1500))
    streams = [rows[at : at + 3] for at in range(0, len(rows), 3)]
    random.Random(5).shuffle(streams)
    there, here = counted(rows), counted(chain(*streams))
    assert without_parts(there) == without_parts(here)


def test_of_more_streams_than_are_listed_each_number_has_its_sample() -> None:
    def rows() -> Iterator[Row]:
        for n in range(LISTED + 2_000):
            yield session(f"{n}.sse")
            if n % 1_000 == 0:
                yield broken(f"{n}.sse")
            if n % 2 == 0:
                yield note(f"{n}.sse", "wire.gap")

    summary = counted(rows())
    assert LISTED <= len(summary.streams) <= LISTED + 500
    assert summary.examples == EXAMPLES
    for key, figure in summary.numbers.items():
        behind = sum(set(key) <= set(one.tags) for one in summary.streams)
        assert behind >= min(EXAMPLES, figure.streams), key


def test_one_stream_with_more_oddities_than_there_are_counts_them_together() -> None:
    rows = [session("a"), *(note("a", f"odd.{n}") for n in range(3 * MOST_VALUES))]
    summary = counted(rows)
    assert sum(summary.of(note=name).total for name in summary.values("note")) == 3 * MOST_VALUES
    assert len(summary.values("note")) <= MOST_VALUES + 1


def test_text_of_the_wire_is_kept_in_bounds_and_without_what_hides() -> None:
    facts = (
        counted([session("a", model="m" * 10_000, detail="\u202ex\x1b[31m", host="\ud800")])
        .streams[0]
        .facts
    )
    assert len(facts["model"]) == 200
    assert facts["detail"] == "\\u202ex\\x1b[31m"
    assert facts["host"] == "\\ud800"


def test_rows_from_elsewhere_with_values_of_other_types_do_no_harm() -> None:
    odd: list[Row] = [
        session("a", provider=5, model=["x"], host={}, outcome=None, reason=3.5, bytes="many", tokens_input=-4),
        {"kind": "call", "session": "a"}, {"kind": "note", "session": "a", "name": None, "count": "x"},
        {"kind": "result", "session": "a"}, {"kind": "of another version", "session": "a"},
    ]  # fmt: skip
    summary = counted(odd)
    assert summary.of(provider=UNNAMED).streams == 1
    assert summary.of(call=UNNAMED).total == 1


@pytest.mark.parametrize("before", [0, 490, 900])
def test_a_key_in_the_words_of_an_error_is_not_kept(before: int) -> None:
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
    detail = f"{'x ' * (before // 2)}Incorrect API key provided: {key}. You can find"
    told = counted([session("a", outcome="failed", detail=detail)]).streams[0].facts["detail"]
    assert key[8:20] not in told
    assert before or "Incorrect API key provided: xx" in told


def test_numbers_beyond_reason_stay_in_bounds() -> None:
    summary = counted([
        session("a", tokens_input=10**5000, bytes=10**400, first_event=1e300), note("a", "wire.gap", 10**5000),
    ])  # fmt: skip
    assert summary.of(tokens="input").total == summary.of(note="wire.gap").total == MOST_COUNTED
    assert summary.of(timed="none").streams == 1
