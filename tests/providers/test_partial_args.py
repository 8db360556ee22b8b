"""Gemini tells a call value by value, and may state all of its arguments beside or after the values."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.events import BrokenToolCall
from tests.conftest import sse
from tests.providers.streams import fate, heard

A_IS_X = [{"jsonPath": "$.a", "stringValue": "x"}]
B_IS_1 = [{"jsonPath": "$.b", "numberValue": 1}]
FINISHED = ("finish", "tool_calls")
DOUBTED = (["conflict"], ("finish", "stop"))


def part(**said: Any) -> bytes:
    return sse({"candidates": [{"content": {"parts": [{"functionCall": said}]}}]})


def told(*frames: bytes) -> Any:
    stop = sse({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})
    return fate(heard("gemini", b"".join((*frames, stop)))[0])


BEGUN = part(name="f", partialArgs=A_IS_X, willContinue=True)


@pytest.mark.parametrize("name", [{}, {"name": "f"}], ids=["nameless", "named"])
@pytest.mark.parametrize(
    "args",
    [{"a": "x"}, {"a": "xy"}, {"a": "x", "b": [1, {"c": None}]}],
    ids=["the same", "a longer string", "further values"],
)
def test_arguments_that_begin_with_the_values_are_the_call(name: dict[str, str], args: Any):
    assert told(BEGUN, part(**name, args=args)) == ([args], FINISHED)


@pytest.mark.parametrize(
    "args", [{"a": "y"}, {"b": "x"}, {"a": ["x"]}, {"a": 1}, {"a": {"x": "x"}}, {"a": ""}]
)
def test_arguments_that_contradict_the_values_break_the_call(args: Any):
    assert told(BEGUN, part(args=args)) == DOUBTED


def test_arguments_beside_the_values_are_the_call():
    assert told(part(name="f", partialArgs=A_IS_X, args={"a": "xz"})) == ([{"a": "xz"}], FINISHED)


def test_lists_and_numbers_that_were_told_are_compared_too():
    values = [
        {"jsonPath": "$.l[0]", "numberValue": 1},
        {"jsonPath": "$.l[1]", "boolValue": True},
    ]
    begun = part(name="f", partialArgs=values, willContinue=True)
    assert told(begun, part(args={"l": [1, True, 2]})) == ([{"l": [1, True, 2]}], FINISHED)
    for other in ([1], [2, True], [1, 1], [True, True], "1"):
        assert told(begun, part(args={"l": other})) == DOUBTED


@pytest.mark.parametrize(
    ("value", "args"),
    [
        ({"jsonPath": "$.a.x", "numberValue": 1}, {"a": "x"}),
        ({"jsonPath": "$.a.x", "numberValue": 1}, {"a": ["x"]}),
        ({"jsonPath": "$.l[0]", "stringValue": "a"}, {"l": "ab"}),
        ({"jsonPath": "$.l[0]", "stringValue": "a"}, {"l": {"a": 1}}),
    ],
)
def test_a_value_of_another_kind_in_its_place_is_a_contradiction(value: Any, args: Any):
    begun = part(name="f", partialArgs=[value], willContinue=True)
    assert told(begun, part(args=args)) == DOUBTED


def test_arguments_beside_values_that_cannot_be_read_are_the_call():
    odd = [{"jsonPath": "$.a", "boolValue": 7}]
    assert told(part(name="f", partialArgs=odd, args={"a": True}))[0] == [{"a": True}]


def test_arguments_that_state_all_take_away_a_doubt():
    odd = part(partialArgs=[{"jsonPath": "$.b", "boolValue": "x"}], willContinue=True)
    assert told(BEGUN, odd, part())[0] == ["conflict"]
    assert told(BEGUN, odd, part(args={"a": "x", "b": True}))[0] == [{"a": "x", "b": True}]


def test_arguments_stated_before_the_call_ends_do_not_end_it():
    stated = part(args={"a": "xy"}, willContinue=True)
    assert told(BEGUN, stated) == (["truncated"], ("finish", "stop"))
    assert told(BEGUN, stated, part()) == ([{"a": "xy"}], FINISHED)


# --- what comes twice, or before its call ---------------------------------------------------------


def test_a_start_said_again_among_the_values_leaves_no_whole_call():
    assert told(BEGUN, part(name="f", willContinue=True), part())[0] == ["conflict", "conflict"]
    again = part(name="f", id="1", willContinue=True)
    values = part(partialArgs=[{"jsonPath": "$.b", "numberValue": 1}], willContinue=True)
    assert told(again, values, again, values, part())[0] == ["conflict", "conflict"]


def test_values_that_come_before_their_call_leave_it_doubtful():
    values = part(partialArgs=A_IS_X, willContinue=True)
    assert told(values, part(name="f", willContinue=True), part())[0] == ["conflict"]


@pytest.mark.parametrize(
    ("begun", "last"),
    [
        ({"args": {"n": 1}, "willContinue": True}, [part()]),
        ({"args": {}, "partialArgs": B_IS_1}, []),
        ({"partialArgs": B_IS_1}, []),
        ({}, []),
    ],
    ids=["arguments that go on", "no arguments beside values", "values", "a name alone"],
)
def test_values_of_no_call_leave_the_next_one_doubtful_unless_it_is_said_at_once(
    begun: dict[str, Any], last: list[bytes]
):
    stray = part(partialArgs=A_IS_X)
    assert told(stray, part(name="f", **begun), *last)[0] == ["conflict"]
    assert told(stray, part(name="f", args={"n": 1}))[0] == [{"n": 1}]


def test_values_of_a_call_given_up_leave_a_name_alone_doubtful_even_if_none_could_be_told():
    late = part(name="f", partialArgs=[{"jsonPath": "$.a[1]", "numberValue": 1}], willContinue=True)
    assert told(late, part(name="g"))[0] == ["conflict", "conflict"]
    assert told(late, part(name="g", args={}))[0] == ["conflict", {}]


def test_a_call_that_broke_may_be_told_anew_under_its_id():
    bad = part(name="f", id="1", args=[1])
    assert told(bad, part(name="f", id="1", partialArgs=B_IS_1))[0] == ["conflict", {"b": 1}]


def test_another_call_begun_or_said_at_once_before_the_end_of_one_without_an_id_breaks_that_one():
    begun = part(name="f", willContinue=True)
    assert told(begun, part(name="g", willContinue=True), part())[0] == ["conflict", {}]
    assert told(begun, part(name="g", args={"n": 1}))[0] == ["conflict", {"n": 1}]


def test_with_ids_calls_may_be_told_side_by_side_and_a_piece_without_one_is_told_for_none():
    first, second = (part(name=n, id=n, willContinue=True) for n in "fg")
    one, two = (part(id=n, partialArgs=A_IS_X, willContinue=True) for n in "fg")
    assert told(first, second, two, one, part(id="f"), part(id="g"))[0] == [{"a": "x"}] * 2
    bare = part(partialArgs=A_IS_X, willContinue=True)
    assert told(first, second, bare, part(id="f"), part(id="g"))[0] == ["conflict"] * 2


def test_a_name_alone_closes_the_call_of_that_name_only_if_its_pieces_repeat_it():
    more = part(name="f", partialArgs=B_IS_1, willContinue=True)
    assert told(BEGUN, more, part(name="f")) == ([{"a": "x", "b": 1}], FINISHED)
    # real servers say a call without arguments so: the first one was given up, or this is its end
    assert told(BEGUN, part(name="f")) == (["conflict", "conflict"], ("finish", "stop"))
    assert told(BEGUN, part(partialArgs=B_IS_1, willContinue=True), part(name="f"))[0] == (
        ["conflict", "conflict"]
    )
    # a piece that leaves the name out takes nothing back
    bare = part(partialArgs=[{"jsonPath": "$.c", "numberValue": 2}], willContinue=True)
    assert told(BEGUN, more, bare, part(name="f")) == ([{"a": "x", "b": 1, "c": 2}], FINISHED)


def test_a_name_alone_and_a_promise_begin_a_call_even_where_pieces_repeat_the_name():
    more = part(name="f", partialArgs=B_IS_1, willContinue=True)
    again = part(name="f", willContinue=True)
    assert told(BEGUN, more, again, part())[0] == ["conflict", "conflict"]


def test_a_call_with_arguments_is_whole_after_one_that_was_given_up():
    assert told(BEGUN, part(name="g", args={"n": 1}))[0] == ["conflict", {"n": 1}]
    assert told(BEGUN, part(name="g"))[0] == ["conflict", "conflict"]  # or the values were its own


def test_arguments_that_are_a_text_are_no_object():
    assert told(part(name="f", args='{"a":1}'))[0] == ["not_object"]


# --- what goes on, and what begins ----------------------------------------------------------------


def test_a_part_that_only_promises_more_goes_on():
    assert told(BEGUN, part(willContinue=True), part()) == ([{"a": "x"}], FINISHED)


def test_a_start_said_again_before_any_value_is_the_same_call():
    again = part(name="f", id="1", willContinue=True)
    assert told(again, again, part(partialArgs=A_IS_X), part(id="1"))[0][:1] == [{"a": "x"}]


@pytest.mark.parametrize("who", [{"name": "f"}, {"name": "f", "id": "1"}])
def test_a_name_beside_values_or_arguments_goes_on(who: dict[str, str]):
    begun = part(**who, partialArgs=A_IS_X, willContinue=True)
    more = part(**who, partialArgs=B_IS_1, willContinue=True)
    assert told(begun, more, part()) == ([{"a": "x", "b": 1}], FINISHED)
    stated = part(**who, args={"a": "xy"}, willContinue=True)
    assert told(begun, stated, part()) == ([{"a": "xy"}], FINISHED)


def test_of_two_open_calls_a_name_says_which_goes_on():
    first, second = (part(name=n, id=n, willContinue=True) for n in "fg")
    named = part(name="g", partialArgs=A_IS_X, willContinue=True)
    assert told(first, second, named, part(id="f"), part(id="g"))[0] == [{"a": "x"}, {}]


def test_stray_values_leave_the_next_call_that_is_told_in_pieces_in_doubt_and_no_other():
    stray, whole = part(partialArgs=A_IS_X, willContinue=True), part(name="g", args={"n": 1})
    pieces = part(name="f", partialArgs=B_IS_1)
    assert told(stray, whole, pieces, pieces)[0] == [{"n": 1}, {"b": 1}, "conflict"]
    begun = part(name="f", willContinue=True)
    assert told(stray, whole, begun, part())[0] == [{"n": 1}, "conflict"]


def test_restated_arguments_that_are_not_exact_break_the_call():
    odd = part(args={"a": "x", "b": 1}).replace(b'"b"', b'"a"')
    assert told(BEGUN, odd) == DOUBTED


def test_restated_arguments_close_their_call():
    stop = sse({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})
    notes = heard("gemini", BEGUN + part(args={"a": "x"}) + stop)[1]
    assert "call.unclosed" not in notes


def test_a_value_that_is_no_object_breaks_the_call():
    assert told(part(name="f", partialArgs=[5], willContinue=True), part())[0] == ["conflict"]


def test_an_empty_object_beside_values_or_before_them_says_nothing():
    values = part(partialArgs=A_IS_X)
    assert told(part(name="f", args={}, willContinue=True), values) == ([{"a": "x"}], FINISHED)
    assert told(part(name="f", args={}, partialArgs=A_IS_X)) == ([{"a": "x"}], FINISHED)
    assert told(BEGUN, part(args={})) == ([{"a": "x"}], FINISHED)
    assert told(part(name="f", willContinue=True), part(args={})) == ([{}], FINISHED)


# --- what follows a call that broke -----------------------------------------------------------------

BEGINS = part(name="f", willContinue=True)


def unread(**said: Any) -> bytes:
    """A piece whose arguments have a byte that is no character."""
    return part(args={"a": "?"}, **said).replace(b"?", b"\xff")


def test_arguments_between_pieces_that_are_no_text_break_the_call_and_not_the_turn():
    assert told(BEGINS, unread()) == DOUBTED
    going_on = unread(willContinue=True)
    assert told(BEGINS, going_on, part(partialArgs=A_IS_X)) == DOUBTED


def test_behind_the_last_piece_of_a_call_that_broke_the_next_one_begins():
    going_on, last = unread(willContinue=True), part(partialArgs=A_IS_X)
    whole = part(name="f", args={"n": 1})
    assert told(BEGINS, going_on, last, whole) == (["conflict", {"n": 1}], FINISHED)
    assert told(BEGINS, unread(), whole) == (["conflict", {"n": 1}], FINISHED)


def test_the_pieces_of_a_call_that_broke_are_its_own_and_no_late_ones():
    stop = sse({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})
    going_on, more = unread(willContinue=True), part(partialArgs=A_IS_X, willContinue=True)
    notes = heard("gemini", BEGINS + going_on + more + more + part() + stop)[1]
    assert "call.late" not in notes


def test_a_name_alone_takes_the_doubt_that_stray_values_left():
    late = part(name="f", partialArgs=[{"jsonPath": "$.a[1]", "numberValue": 1}], willContinue=True)
    pieces = part(name="h", partialArgs=B_IS_1)
    assert told(late, part(name="g"), pieces)[0] == ["conflict", {"b": 1}, "conflict"]


@pytest.mark.parametrize("behind", [(), (part(willContinue=True),)], ids=["at once", "and a piece"])
def test_arguments_of_a_call_that_never_ended_are_told_with_it(behind: tuple[bytes, ...]):
    stated = part(name="f", args={"a": "x"}, willContinue=True)
    events = heard("gemini", b"".join((stated, *behind)))[0]
    (broken,) = [event for event in events if isinstance(event, BrokenToolCall)]
    assert broken.raw == '{"a": "x"}'
