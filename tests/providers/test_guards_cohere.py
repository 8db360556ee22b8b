"""Guards of Cohere that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import calls_of, sse, text_of, traced
from tests.providers.streams import end, fate
from tests.providers.test_evidence_wires import WHOLE, c_call, c_delta, c_end, c_start

ENTRY = {"id": "A", "function": {"name": "pay", "arguments": WHOLE}}
OTHER = {"id": "B", "function": {"name": "pay", "arguments": WHOLE}}
TOLD = [{"to": "me"}]


def heard(*payloads: Any) -> list[Any]:
    return traced("cohere", b"".join(sse(p) for p in payloads))[0]


def said(content: Any, **more: Any) -> dict[str, Any]:
    delta = {"message": {"content": content}}
    return {"type": "content-delta", "index": 0, "delta": delta, **more}


# --- lists where one should stand -----------------------------------------------------------------


def test_a_list_of_one_entry_is_that_entry():
    assert fate(heard(c_call("start", [ENTRY]), c_call("end"), c_end()))[0] == TOLD


@pytest.mark.parametrize("entries", [[ENTRY, OTHER], [], 5])
def test_a_list_of_several_entries_or_none_is_no_call(entries: Any):
    """Which of them has this place? None is told, and none is lost in silence."""
    events = heard(c_call("start", entries), c_call("end"), c_end())
    assert fate(events)[0] == ["conflict"]


def test_the_arguments_of_an_entry_in_a_list_are_exact():
    start = sse(c_call("start", [{"id": "A", "function": {"name": "pay", "arguments": {"n": 7}}}]))
    start = start.replace(b"7", b"12345678901234567890123")
    rest = sse(c_call("end")) + sse(c_end())
    (call,) = calls_of(traced("cohere", start + rest)[0])
    assert call.arguments == {"n": 12345678901234567890123}


def test_content_as_plain_text_and_as_a_list_of_one_is_told():
    events = heard(said("hi"), said([{"type": "text", "text": " you"}]), c_end("COMPLETE"))
    assert text_of(events) == "hi you"


def test_an_empty_list_of_content_says_nothing_and_several_are_passed_on_whole():
    several = said([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    events = heard(said([]), several, c_end("COMPLETE"))
    assert [e.payload for e in events if e.kind == "unrecognized"] == [several]


def test_content_beside_a_field_that_we_do_not_know_is_told_and_that_of_a_new_kind_passed_on():
    new = said({"type": "image", "image": "x"})
    events = heard(said({"type": "text", "text": "hi"}, new=1), new, c_end("COMPLETE"))
    assert text_of(events) == "hi"
    assert [e.payload for e in events if e.kind == "unrecognized"] == [new]


# --- calls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("index", "told"), [(0, ["conflict"]), (1, TOLD), (None, TOLD)])
def test_a_new_kind_makes_the_call_doubtful_whose_place_it_names(index: Any, told: list[Any]):
    new = {"type": "tool-call-new", "index": index}
    assert fate(heard(c_start(WHOLE), new, c_call("end"), c_end()))[0] == told


def test_arguments_of_another_type_in_its_start_make_a_call_doubtful():
    assert fate(heard(c_start(5), c_call("end"), c_end()))[0] == ["conflict"]


@pytest.mark.parametrize("late", [{"id": "A"}, {"id": "A", "function": {}}])
def test_an_id_that_comes_late_counts_and_is_no_lost_fragment(late: dict[str, Any]):
    start = c_start(WHOLE, id=None)
    events = heard(start, c_call("delta", late), c_call("end"), c_end())
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("A", TOLD[0])]


def test_a_start_that_says_an_id_alone_begins_the_call_of_what_follows():
    named = c_call("delta", {"function": {"name": "pay", "arguments": WHOLE}})
    assert fate(heard(c_call("start", {"id": "A"}), named, c_call("end"), c_end()))[0] == TOLD


def test_calls_in_no_place_may_follow_one_another():
    one, two = ((c_start(WHOLE, id, index=None), c_call("end", index=None)) for id in "AB")
    assert fate(heard(*one, *two, c_end()))[0] == TOLD * 2


def test_fragments_follow_what_the_start_said():
    events = heard(c_start('{"to"'), c_delta(':"me"}'), c_call("end"), c_end())
    assert fate(events) == (TOLD, ("finish", "tool_calls"))


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("ERROR", {"message": "boom"}, "boom"),
        ("ERROR", "boom", "boom"),
        ("ERROR", None, "the answer ended with ERROR"),
        ("COMPLETE", {"message": "boom"}, "boom"),
    ],
)
def test_an_error_at_the_end_is_told_in_its_words(word: str, error: Any, message: str):
    events = heard(said("hi"), c_end(word, error=error))
    assert (end(events), events[-1].error) == (("failed", "provider_error"), message)


def test_a_fragment_without_its_text_for_a_closed_call_makes_the_open_ones_doubtful():
    first = (c_start(), c_delta(WHOLE), c_call("end"))
    second = c_call("start", {"id": "B", "function": {"name": "rob", "arguments": WHOLE}}, 1)
    stray = c_call("delta", {"function": {}}, 0)
    events = heard(*first, second, stray, c_call("end", index=1), c_end())
    assert fate(events)[0] == [*TOLD, "conflict"]
