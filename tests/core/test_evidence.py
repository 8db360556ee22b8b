"""Evidence: each thing that can speak against a call, one by one; without its guard a test here fails."""

from __future__ import annotations

import pytest

from streamnorm.core.calls import Kind
from streamnorm.core.copies import extends, same_value
from tests.core.test_calls import CUSTOM, Desk, opened

WHOLE = '{"a":1}'


def told(desk: Desk) -> tuple[str, ...]:
    """What became of each call: its kind, or why it is broken."""
    return tuple(getattr(event, "reason", "whole") for event in desk.ended())


# --- it was closed --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  "])
def test_a_call_without_text_that_was_never_closed_is_broken_where_calls_are_closed(text: str):
    desk, _ = opened(text)
    desk.end_turn("stop")
    assert told(desk) == ("truncated",)


@pytest.mark.parametrize("text", ["", "ls", WHOLE])
def test_a_text_tool_that_was_never_closed_is_broken_where_calls_are_closed(text: str):
    desk = Desk()
    call = desk.open(CUSTOM, id="a", name="f")
    if text:
        desk.append(call, text)
    desk.end_turn("stop")
    assert told(desk) == ("truncated",)


@pytest.mark.parametrize(
    ("reason", "ends"),
    [
        ("stop", "whole"),
        ("tool_calls", "whole"),
        ("length", "length"),
        ("content_filter", "truncated"),
        ("other", "truncated"),
        (None, "truncated"),
    ],
)
def test_a_text_tool_counts_by_a_normal_end_only_where_nothing_closes_calls(reason, ends: str):
    desk = Desk(closes=False)
    desk.append(desk.open(CUSTOM, id="a", name="f"), "ls")
    desk.end_turn(reason)
    assert told(desk) == (ends,)


def test_a_text_tool_that_was_closed_is_whole_at_once_whatever_its_text():
    desk = Desk()
    call = desk.open(CUSTOM, id="a", name="f")
    desk.append(call, "{")
    desk.close(call)
    assert desk.last().arguments == {"input": "{"}


def test_an_announced_end_tells_whole_objects_and_lets_the_rest_go_on():
    desk = Desk(closes=False)
    whole, open_, empty, text = (
        desk.open(Kind() if name != "t" else CUSTOM, id=name, name=name) for name in "woet"
    )
    desk.append(whole, WHOLE)
    desk.append(open_, '{"a":')
    desk.append(text, "x")
    desk.announce_end("stop")
    assert [e.id for e in desk.ended()] == ["w"]
    desk.append(open_, "1}")
    desk.append(empty, WHOLE)
    desk.end_turn("stop")
    assert told(desk) == ("whole", "whole", "whole", "whole")


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "other"])
def test_an_announced_end_that_is_not_normal_tells_nothing(reason: str):
    desk, _ = opened(WHOLE, closes=False)
    desk.announce_end(reason)
    assert told(desk) == ()


def test_an_announced_end_tells_nothing_where_calls_have_their_own_mark():
    desk, _ = opened(WHOLE)
    desk.announce_end("stop")
    assert told(desk) == ()


# --- nothing of it may be missing -----------------------------------------------------------------


def test_a_tainted_call_is_not_told_when_it_closes_and_is_broken_in_the_end():
    desk, call = opened(WHOLE)
    desk.taint(call, "a fragment was no text")
    desk.close(call)
    assert told(desk) == ()
    desk.end_turn("stop")
    assert (told(desk), desk.last().detail) == (("conflict",), "a fragment was no text")
    assert desk.notes == {"call.tainted": 1}


def test_the_wires_own_copy_of_the_whole_text_heals_its_call_and_no_other():
    desk, call = opened('{"a":')
    other = desk.open(id="b", name="f")
    desk.append(other, WHOLE)
    desk.taint_open("something was lost")
    desk.settle(call, WHOLE)
    for each in (call, other):
        desk.close(each)
    desk.end_turn("stop")
    assert [(e.id, getattr(e, "reason", "whole")) for e in desk.ended()] == [
        ("a", "whole"), ("b", "conflict"),
    ]  # fmt: skip


def test_an_empty_copy_heals_nothing():
    desk, call = opened(WHOLE)
    desk.taint(call, "x")
    desk.settle(call, "")
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == ("conflict",)


def test_text_that_no_call_claims_taints_the_open_calls_of_its_choice():
    desk = Desk()
    here, there = desk.open(id="a", name="f"), desk.open(id="b", name="f", choice=1)
    for call in (here, there):
        desk.append(call, WHOLE)
    desk.astray(7)
    for call in (here, there):
        desk.close(call)
    desk.end_turn("stop")
    assert [(e.id, getattr(e, "reason", "whole")) for e in desk.ended()] == [
        ("b", "whole"), ("a", "conflict"),
    ]  # fmt: skip


def test_text_that_came_before_its_call_began_taints_the_call_of_that_place():
    desk = Desk()
    desk.astray(7)
    for place in (7, 8):
        call = desk.open(id=f"at {place}", name="f", place=place)
        desk.append(call, WHOLE)
        desk.close(call)
    desk.end_turn("stop")
    assert [(e.id, getattr(e, "reason", "whole")) for e in desk.ended()] == [
        ("at 8", "whole"), ("at 7", "conflict"),
    ]  # fmt: skip


def test_text_for_a_call_that_was_told_taints_the_open_ones():
    desk, call = opened(WHOLE)
    desk.close(call)
    other = desk.open(id="b", name="f")
    desk.append(other, WHOLE)
    desk.append(call, "x")
    desk.close(other)
    desk.end_turn("stop")
    assert told(desk) == ("whole", "conflict")


def test_no_empty_object_is_invented_once_anything_was_lost():
    desk, call = opened()
    desk.astray(7)
    desk.settle(call, WHOLE)  # heals this one
    desk.close(call)
    empty = desk.open(id="b", name="f")
    desk.close(empty)
    desk.end_turn("stop")
    assert told(desk) == ("whole", "conflict")


@pytest.mark.parametrize("text", ["{}", WHOLE])
def test_text_of_a_call_that_was_never_named_may_be_anybodys(text: str):
    desk = Desk(closes=False)
    desk.append(desk.open(id="a"), text)
    desk.append(desk.open(id="b", name="f"), WHOLE)
    desk.end_turn("stop")
    assert told(desk) == ("conflict", "conflict")


def test_a_call_that_is_read_from_a_doubtful_payload_is_not_told():
    desk, call = opened(WHOLE)
    desk.calls.lossy = "bytes were replaced"
    desk.close(call)
    desk.calls.lossy = ""
    desk.end_turn("stop")
    assert (told(desk), desk.last().detail) == (("conflict",), "bytes were replaced")


def test_a_copy_from_a_doubtful_payload_heals_nothing_and_replaces_nothing():
    desk, call = opened(WHOLE)
    desk.taint(call, "x")
    desk.calls.lossy = "bytes were replaced"
    desk.settle(call, WHOLE)
    desk.settle(call, '{"b":2}')
    desk.calls.lossy = ""
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.last().raw) == (("conflict",), WHOLE)


def test_calls_that_a_doubtful_payload_grew_or_began_are_tainted_and_the_others_are_not():
    desk, grown = opened()
    still = desk.open(id="s", name="f")
    desk.append(still, WHOLE)
    since = desk.calls.sizes()
    desk.append(grown, WHOLE)
    begun = desk.open(id="n", name="f")
    desk.calls.taint_grown(since, "x")
    assert (bool(grown.taint), bool(still.taint), bool(begun.taint)) == (True, False, True)


# --- the wire does not contradict itself ----------------------------------------------------------


@pytest.mark.parametrize("reason", ["truncated", "provider_error"])
def test_a_call_that_its_item_denies_is_broken_although_its_text_is_whole(reason: str):
    desk, call = opened(WHOLE)
    desk.deny(call, reason, "its item says so")
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == (reason,)


def test_an_item_that_is_incomplete_at_a_token_limit_is_broken_by_it():
    desk, call = opened(WHOLE)
    desk.deny(call, "truncated", "its item says so")
    desk.end_turn("length")
    assert told(desk) == ("length",)


# --- a place is one call --------------------------------------------------------------------------


def test_a_start_said_again_before_anything_was_heard_is_the_same_call():
    desk, call = opened()
    assert desk.restarts(call, "a", "f") is True
    assert (told(desk), desk.notes) == ((), {"call.start_repeated": 1})


@pytest.mark.parametrize(
    ("id", "name", "heard"), [("b", "f", ""), ("a", "g", ""), ("a", "f", '{"a"'), (None, "f", "")]
)
def test_another_start_in_its_place_voids_a_call_that_was_not_closed(id, name: str, heard: str):
    desk, call = opened(heard)
    assert desk.restarts(call, id, name) is False
    assert told(desk) == ("conflict",)


def test_the_id_of_a_voided_call_is_free_for_the_one_that_is_told():
    desk, call = opened('{"a"')
    desk.restarts(call, "a", "f")
    again = desk.open(id="a", name="f")
    desk.append(again, WHOLE)
    desk.close(again)
    assert (desk.last().id, desk.last().provenance.id_source) == ("a", "natural")


@pytest.mark.parametrize(
    ("first", "again", "ends"), [("f", "f", "whole"), ("f", "g", "conflict"), ("", "g", "whole")]
)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_call_that_was_given_up_comes_again_under_its_own_name_or_is_broken(
    first: str, again: str, ends: str, at_once: bool
):
    desk = Desk()
    for name in "fg":  # the shortcut is for names that were told before
        desk.close(desk.open(id=name, name=name))
    desk.void(desk.open(id="a", name=first))
    if at_once:
        desk.calls.whole(desk.out, WHOLE, Kind(), 0, "a", "id", again, None, None)
    else:
        call = desk.open(id="a", name=again)
        desk.append(call, WHOLE)
        desk.close(call)
    desk.end_turn("stop")
    assert told(desk)[-1] == ends


@pytest.mark.parametrize(
    ("given", "text", "by_client", "by_provider"),
    [
        ("", '{"a":1}', "whole", "whole"),
        ('{"a":1}', '{"a":1}', "whole", "whole"),
        ('{"a":1}', '{"a":1,"b":2}', "conflict", "whole"),  # it may know more by then
        ('{"a":1}', '{"a":2,"b":2}', "conflict", "conflict"),
        ('{"a":1}', '{"a":2}', "conflict", "conflict"),
        ('{"a":1}', "", "conflict", "conflict"),
    ],
)
def test_a_call_that_begins_again_says_the_input_that_it_began_with(
    given: str, text: str, by_client: str, by_provider: str
):
    for kind, ends in ((Kind(), by_client), (Kind("mcp", "provider"), by_provider)):
        desk = Desk()
        first = desk.open(kind, id="a", name="")
        first.given = given
        desk.void(first)
        call = desk.open(kind, id="a", name="f")
        if text:
            desk.append(call, text)
        desk.close(call)
        desk.end_turn("stop")
        assert told(desk)[-1] == ends


@pytest.mark.parametrize(("text", "ends"), [("", "whole"), ('{"a"', "conflict")])
def test_where_nothing_closes_a_call_one_that_was_given_up_with_a_text_is_not_told_again(
    text: str, ends: str
):
    desk = Desk(closes=False)
    first = desk.open(id="a", name="f")
    if text:
        desk.append(first, text)
    desk.void(first)
    desk.append(desk.open(id="a", name="f"), WHOLE)
    desk.end_turn("stop")
    assert told(desk)[-1] == ends


def test_a_copy_that_may_be_of_another_has_to_agree_with_what_states_the_text():
    for aside, ends in (('{"a":1}', "whole"), ('{"a":2}', "conflict")):
        desk, call = opened('{"a"')
        desk.taint(call, "a copy came that names two calls")
        call.aside = hash(aside)
        desk.settle(call, '{"a":1}')
        desk.close(call)
        desk.end_turn("stop")
        assert told(desk)[-1] == ends


def test_where_calls_are_closed_an_id_that_begins_again_elsewhere_voids_the_one_that_was_open():
    desk, _ = opened(WHOLE)
    again = desk.open(id="a", name="f", place=1)
    desk.append(again, WHOLE)
    desk.close(again)
    desk.end_turn("stop")
    assert [(e.id, getattr(e, "reason", "whole")) for e in desk.ended()] == [
        ("a", "conflict"), ("a", "whole"),
    ]  # fmt: skip


def test_where_nothing_closes_calls_two_may_have_one_id():
    desk, _ = opened(WHOLE, closes=False)
    desk.append(desk.open(id="a", name="g"), WHOLE)
    desk.end_turn("stop")
    assert told(desk) == ("whole", "whole")


def test_a_closed_call_stays_when_its_place_is_used_under_another_id():
    desk, call = opened()
    desk.close(call)
    assert desk.restarts(call, "b", "f") is False
    assert told(desk) == ()
    assert desk.restarts(call, "a", "f") is False  # under its own id it is begun again
    assert told(desk) == ("conflict",)


def test_where_something_was_lost_a_call_needs_its_closing_mark_or_its_whole_text_stated():
    for settled, fate in ((False, "truncated"), (True, "whole")):
        desk, other = opened()
        desk.calls.taint(other, "x")
        call = desk.open(id="b", name="f")
        desk.append(call, WHOLE)
        if settled:
            desk.settle(call, WHOLE)
        desk.end_turn("stop")
        assert told(desk) == ("conflict", fate)


def test_a_call_under_the_id_of_another_needs_its_own_closing_mark():
    desk, call = opened(WHOLE)
    desk.close(call)
    desk.append(desk.open(id="a", name="f"), WHOLE)
    desk.end_turn("stop")
    assert told(desk) == ("whole", "truncated")


# --- ids ------------------------------------------------------------------------------------------


def test_a_natural_id_wins_over_a_conflated_one_whenever_it_comes():
    desk = Desk()
    call = desk.open(id="item_1", field="item.id", name="f", source="conflated")
    call.fallback = "call_id"
    desk.append(call, WHOLE)
    desk.hear(call, id="call_A", field="call_id", source="natural")
    desk.close(call)
    assert (desk.last().id, desk.last().provenance.id_source) == ("call_A", "natural")
    assert desk.notes == {"call.id_late": 1}


def test_a_conflated_id_never_replaces_a_natural_one_and_finds_the_call_too():
    desk, call = opened(WHOLE)
    desk.hear(call, id="item_1", field="item.id", source="conflated")
    desk.close(call)
    assert (desk.last().id, desk.notes) == ("a", {})
    assert desk.calls.by_id(0, "item_1") is call


def test_a_fallback_to_another_identifier_is_a_note():
    desk = Desk()
    call = desk.open(id="item_1", field="item.id", name="f", source="conflated")
    call.fallback = "call_id"
    desk.append(call, WHOLE)
    desk.close(call)
    assert desk.notes == {"call.id_conflated": 1}


def test_an_id_that_comes_after_the_call_was_told_finds_it_and_changes_nothing():
    desk, call = opened(WHOLE)
    desk.close(call)
    desk.hear(call, id="late", source="natural")
    assert (desk.last().id, desk.notes) == ("a", {"call.id_changed": 1})
    assert desk.calls.by_id(0, "late") is call


# --- snapshots and text ---------------------------------------------------------------------------


def test_text_tools_are_never_taken_for_snapshots():
    desk = Desk(closes=False)
    call = desk.open(CUSTOM, id="a", name="f")
    for piece in ("{", "{x}}"):
        desk.extend(call, piece)
    desk.end_turn("stop")
    assert desk.last().arguments == {"input": "{{x}}"}


def test_an_object_between_fragments_is_no_object_to_merge():
    desk, call = opened('{"a":', closes=False)
    desk.merge_object(call, '{"b":1}')
    desk.append(call, "1}")
    desk.end_turn("stop")
    assert told(desk) == ("conflict",)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1}', '{"a":1}', True),
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": [0]}', '{"a": [false]}', False),
        ('{"a": {"b": true}}', '{"a": {"b": 1}}', False),
        ('{"a": true}', '{"a": true}', True),
        ('{"a": [1]}', '{"a": [1, 2]}', False),
        ('{"a": 1}', '{"b": 1}', False),
        ('{"a": 1', '{"a": 1', False),
    ],
)
def test_two_texts_of_one_value_are_the_same_where_a_truth_value_is_no_number(one, other, same):
    assert same_value(one, other) is same
    assert same_value(other, one) is same


def test_a_copy_extends_a_text_only_with_all_its_values():
    assert extends('{"a": 1, "b": 2}', '{"a": 1}')
    assert not extends('{"a": true, "b": 2}', '{"a": 1}')
    assert not extends('{"b": 2}', '{"a": 1}')
    for one, other in (
        (WHOLE, "[1]"),
        ('["a"]', WHOLE),
        ("[1]", "[1]"),
        (WHOLE, "{"),
        ("{", WHOLE),
    ):
        assert not extends(one, other)
