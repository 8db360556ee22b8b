"""The quirks, one by one: each stream whole, byte by byte and cut at random gives what its row says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamnorm import NOTES, Normalizer, event_to_dict
from streamnorm.captures import read_take
from streamnorm.events import Event
from tests.conftest import RECORDINGS, ROOT, broken_of, calls_of, noted, text_of, traced
from tests.providers.quirks import QUIRKS, Case, Quirk

ROWS = [
    pytest.param(quirk, case, id=f"{quirk.number}-{case.take or 'written_here'}-{number}")
    for quirk in QUIRKS
    for number, case in enumerate(quirk.cases)
]


def run_case(case: Case) -> tuple[list[Event], Normalizer]:
    wire = (
        read_take(RECORDINGS / case.provider / f"{case.take}.sse").wire if case.take else case.wire
    )
    return traced(case.provider, wire)


@pytest.mark.parametrize(("quirk", "case"), ROWS)
def test_a_quirk_gives_what_its_row_says(quirk: Quirk, case: Case):
    events, pipe = run_case(case)
    told = [(_id(c), c.name, c.arguments) for c in calls_of(events)]
    assert told == list(case.calls)
    assert [(c.name, c.reason) for c in broken_of(events)] == list(case.broken)
    assert text_of(events) == case.text
    assert "".join(e.text for e in events if e.kind == "reasoning_delta") == case.reasoning
    assert f"{events[-1].kind} {events[-1].reason}" == case.end
    assert set(noted(pipe)) == set(case.notes)


@pytest.mark.parametrize(("quirk", "case"), [row for row in ROWS if row.values[1].usage])
def test_a_quirk_counts_the_tokens_its_row_says(quirk: Quirk, case: Case):
    events, _ = run_case(case)
    assert [(e.input, e.output) for e in events if e.kind == "usage"] == [case.usage]


@pytest.mark.parametrize(("quirk", "case"), [row for row in ROWS if row.values[1].has])
def test_a_quirk_tells_the_details_its_row_says(quirk: Quirk, case: Case):
    events, _ = run_case(case)
    told = [event_to_dict(event) for event in events]
    for wanted in case.has:
        assert any(_within(wanted, event) for event in told), f"no event with {wanted} in {told}"


def test_there_is_a_row_for_each_number():
    assert [quirk.number for quirk in QUIRKS] == list(range(1, 122))


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: str(quirk.number))
def test_a_row_has_a_stream_or_a_reason_why_there_is_none(quirk: Quirk):
    assert bool(quirk.cases) != bool(quirk.why_not)
    assert quirk.title
    assert quirk.does


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: str(quirk.number))
def test_a_reason_that_names_a_test_names_one_that_there_is(quirk: Quirk):
    for file, name in re.findall(r"`(tests/\w+\.py)::(\w+)`", quirk.why_not):
        assert f"def {name}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: str(quirk.number))
def test_notes_of_a_row_have_a_sentence(quirk: Quirk):
    assert set(quirk.notes) <= set(NOTES)


def _id(call: Any) -> str | None:
    return None if call.provenance.id_source == "synthetic" else call.id


def _within(wanted: Any, there: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            _within(value, there.get(key)) for key, value in wanted.items()
        )
    return wanted == there
