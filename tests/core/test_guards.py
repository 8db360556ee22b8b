"""The guards of ``core.calls`` that no ordinary stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from streamnorm.core.calls import FUNCTION, MOST_CONTRADICTIONS, Call, Kind, State
from streamnorm.core.copies import Copy
from streamnorm.core.parser import replaces
from streamnorm.events import (
    BrokenToolCall,
    ProviderToolResult,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
)
from streamnorm.limits import LimitReached, Limits
from tests.conftest import Chat, Messages, sse, traced
from tests.core.test_calls import CODE, CUSTOM, Desk, opened

WHOLE = '{"a":1}'
HIGH, LOW = "\ud83d", "\ude00"  # the two halves of an emoji


def told(desk: Desk) -> list[tuple[str, str]]:
    """What became of each call, in order: its id, and why it is broken if it is."""
    return [(e.id, getattr(e, "reason", "whole")) for e in desk.ended()]


def mended(**options: Any) -> Desk:
    desk = Desk(**options)
    desk.calls.mended = True  # a half of a character was seen on this wire
    return desk


# --- starts that say no place ---------------------------------------------------------------------


def test_a_start_of_an_id_that_was_told_is_that_call_and_the_one_that_was_begun_is_void():
    desk, call = opened(WHOLE)
    desk.close(call)
    other = desk.open(id="b", name="g")
    assert desk.again(other, "a") is call
    assert told(desk) == [("a", "whole"), ("b", "conflict")]


@pytest.mark.parametrize("id", ["b", "", None])
def test_a_start_of_an_id_that_was_not_told_is_of_the_last_call(id):
    desk, call = opened(WHOLE)
    desk.close(call)
    last = desk.open(id="b", name="g")
    assert desk.again(last, id) is last
    assert desk.again(None, "c") is None
    assert told(desk) == [("a", "whole")]


def test_a_start_of_an_id_that_was_told_needs_no_call_before_it():
    desk, call = opened(WHOLE)
    desk.close(call)
    assert desk.again(None, "a") is call
    assert desk.again(call, "a") is call
    assert told(desk) == [("a", "whole")]


def test_a_start_of_an_id_whose_call_is_open_or_was_broken_is_of_the_last_call():
    desk, call = opened()
    other = desk.open(id="b", name="g")
    assert desk.again(other, "a") is other
    desk.append(call, "{")
    desk.end_turn("length")
    assert told(desk) == [("a", "length"), ("b", "length")]
    last = desk.open(id="c", name="h")
    assert desk.again(last, "a") is last


def test_a_call_that_is_closed_and_waits_for_its_end_is_not_void_when_another_is_said_again():
    desk, call = opened(WHOLE)
    desk.close(call)
    waits = desk.open(id="b", name="g")
    desk.close(waits)
    assert desk.again(waits, "a") is call
    desk.end_turn("tool_calls")
    assert told(desk) == [("a", "whole"), ("b", "whole")]


# --- halves of characters -------------------------------------------------------------------------


def test_halves_of_a_name_and_an_id_that_meet_are_one_character():
    desk = mended()
    call = desk.open(id=f"a{HIGH}{LOW}", name=f"f{HIGH}{LOW}")
    assert (call.id, call.name) == ("a😀", "f😀")
    assert desk.calls.by_id(0, "a😀") is call


@pytest.mark.parametrize("half", [HIGH, LOW])
def test_a_name_or_an_id_with_half_a_character_is_none(half: str):
    desk = mended()
    call = desk.open(id=f"a{half}", name=f"f{half}")
    assert (call.wire_id, call.name, call.state) == (None, "", State.WAITING)
    desk.hear(call, id="a", name="f")
    assert (call.id, call.name) == ("a", "f")


def test_a_sound_name_beside_an_id_with_half_a_character_counts_and_the_other_way_round():
    desk = mended()
    nameless = desk.open(id="a", name=f"f{HIGH}")
    without_id = desk.open(id=f"b{HIGH}", name="f")
    assert (nameless.id, nameless.name) == ("a", "")
    assert (without_id.wire_id, without_id.name) == (None, "f")


def test_halves_of_the_arguments_that_meet_are_one_character():
    desk = mended()
    call = desk.open(id="a", name="f")
    desk.append(call, f'{{"a":"{HIGH}')
    desk.append(call, f'{LOW}"}}')
    desk.close(call)
    assert (desk.last().arguments, desk.last().raw) == ({"a": "😀"}, '{"a":"😀"}')


def test_half_a_character_in_the_arguments_breaks_the_call_and_never_leaves():
    desk = mended()
    call = desk.open(id="a", name="f")
    desk.append(call, f'{{"a":"{HIGH}"}}')
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.last().raw) == ([("a", "conflict")], '{"a":"\ufffd"}')
    assert desk.last().detail == "half of a character of its arguments never came"


def test_half_a_character_in_the_text_of_a_text_tool_breaks_it():
    desk = mended()
    call = desk.open(CUSTOM, id="a", name="f")
    desk.append(call, f"x{LOW}")
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]


def test_a_copy_of_the_text_with_whole_characters_is_the_same_as_one_said_in_halves():
    desk = mended()
    call = desk.open(id="a", name="f")
    desk.append(call, f'{{"a":"{HIGH}{LOW}"}}')
    desk.settle(call, '{"a":"😀"}')
    desk.close(call)
    desk.settle(call, f'{{"a":"{HIGH}{LOW}"}}')
    assert (told(desk), desk.notes) == ([("a", "whole")], {})


def test_of_a_call_that_was_contradicted_often_only_its_very_text_is_the_same():
    """Reading a long text again for each of many copies would cost their product."""
    desk, call = opened()
    desk.append(call, WHOLE)
    desk.close(call)
    for _ in range(MOST_CONTRADICTIONS):
        desk.settle(call, '{"a":2}')
    assert desk.notes["args.mismatch"] == MOST_CONTRADICTIONS
    desk.settle(call, '{"a": 1}')
    assert desk.notes["args.mismatch"] == MOST_CONTRADICTIONS
    desk.settle(call, '{"a":2}')
    desk.settle(call, '{"a": 1}')
    assert desk.notes["args.mismatch"] == MOST_CONTRADICTIONS + 2
    desk.settle(call, WHOLE)
    assert desk.notes["args.mismatch"] == MOST_CONTRADICTIONS + 2


def test_of_a_call_that_was_misheard_often_only_a_sound_copy_is_looked_at():
    desk, call = opened()
    desk.append(call, WHOLE)
    desk.calls.lossy = "bytes were replaced"
    for _ in range(MOST_CONTRADICTIONS + 3):
        desk.settle(call, '{"a":2}')
    assert desk.notes["args.mismatch"] == MOST_CONTRADICTIONS + 1
    desk.calls.lossy = ""
    desk.settle(call, '{"a":2}')
    desk.settle(call, '{"a":3}')
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]


def test_a_copy_in_other_spaces_takes_the_place_of_nothing_however_often_it_is_said():
    desk, call = opened('{"a":')
    desk.append(call, " 1}")
    for _ in range(3):
        desk.settle(call, WHOLE)
    desk.close(call)
    assert (told(desk), desk.last().raw) == ([("a", "whole")], '{"a": 1}')


def test_a_copy_is_held_against_what_came_behind_the_last_one():
    desk, call = opened('{"a": 1}')
    desk.settle(call, WHOLE)
    desk.append(call, "x")
    desk.settle(call, WHOLE)
    assert desk.notes["args.mismatch"] == 1


@pytest.mark.parametrize(
    ("objects", "raw"),
    [
        (['{"a":1}', '{"b":2}'], '{"a":1,"b":2}'),
        (['{"a":1} ', ' { "b":2} ', '{"c":3}'], '{"a":1,"b":2,"c":3}'),
        (["{ }", '{"b":2}'], '{ "b":2}'),
    ],
)
def test_objects_of_one_call_count_as_much_as_their_text(objects: list[str], raw: str):
    for limit in (len(raw), len(raw) - 1):
        desk, call = opened(closes=False, arguments=limit)
        for text in objects:
            desk.merge_object(call, text)
        assert call.raw == raw
        if limit == len(raw):
            desk.measure()
            continue
        with pytest.raises(LimitReached):
            desk.measure()


def test_the_first_text_of_a_call_is_in_no_doubt_where_others_are_objects_and_more_of_it_is():
    desk, call = opened()
    desk.calls.both_ways = True
    desk.calls.ask_whether_text(call)
    assert call.taint == ""
    desk.append(call, WHOLE)
    desk.calls.ask_whether_text(call)
    assert call.taint == "its arguments may have come as text and as an object"


# --- a piece that says nothing --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "behind", "became"),
    [([], [WHOLE], "whole"), (['{"a"'], [":1}"], "conflict"), ([WHOLE], [], "whole")],
)
def test_a_piece_that_says_nothing_is_a_loss_only_in_the_midst_of_a_text(before, behind, became):
    desk, call = opened()
    for text in before:
        desk.append(call, text)
    desk.calls.hollow(call)
    for text in behind:
        desk.append(call, text)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [(call.id, became)]


# --- ids and limits -------------------------------------------------------------------------------


def test_another_id_of_a_call_finds_it_and_takes_no_call_away_from_its_own():
    desk, call = opened()
    other = desk.open(id="b", name="f")
    desk.alias(call, "z")
    desk.alias(call, "b")
    assert (desk.calls.by_id(0, "z"), desk.calls.by_id(0, "b")) == (call, other)
    assert call.id == "a"


def test_another_id_may_be_as_long_as_an_id_may_be_and_no_longer():
    desk, call = opened(id=4)
    desk.alias(call, "four")
    with pytest.raises(LimitReached):
        desk.alias(call, "fives")


def test_ids_are_remembered_up_to_two_for_each_call_that_may_come():
    desk, call = opened(calls=2)
    for id in ("b", "c", "d", "e"):
        desk.alias(call, id)
    assert [desk.calls.by_id(0, id) is call for id in "abcde"] == [True, True, True, True, False]


def test_an_id_that_changes_all_the_time_is_remembered_up_to_the_same_bound():
    desk, call = opened(calls=2)
    for id in ("b", "c", "d", "e"):
        desk.hear(call, id=id)
    assert [desk.calls.by_id(0, id) is call for id in "abcde"] == [True, True, True, True, False]
    assert call.id == "e"


def test_an_id_of_another_call_that_comes_later_is_not_taken():
    desk, call = opened(WHOLE)
    other = desk.open(id="b", name="f")
    desk.append(other, WHOLE)
    desk.hear(other, id="a")
    desk.close(call)
    desk.close(other)
    assert told(desk) == [("a", "whole"), ("b", "whole")]


def test_a_poorer_id_after_the_call_was_told_is_a_note_too():
    desk, call = opened(WHOLE)
    desk.close(call)
    desk.hear(call, id="item_1", source="conflated")
    assert (call.id, call.source, desk.notes) == ("a", "natural", {"call.id_changed": 1})


def test_a_better_id_after_the_call_was_told_changes_nothing():
    desk = Desk()
    call = desk.open(id="item_1", field="item.id", name="f", source="conflated")
    desk.append(call, WHOLE)
    desk.close(call)
    desk.hear(call, id="call_A", source="natural")
    assert (call.id, call.source, call.wire_id) == ("item_1", "conflated", "item_1")
    assert desk.notes == {"call.id_changed": 1}


def test_a_call_whose_id_was_minted_for_want_of_one_needs_no_mark_of_its_own():
    desk = Desk()
    desk.append(desk.open(name="f"), WHOLE)
    desk.end_turn("stop")
    assert [e.kind for e in desk.ended()] == ["tool_call"]


def test_arguments_are_measured_when_they_are_read_whoever_asked_before():
    desk, call = opened('{"a":"123"}', arguments=10)
    with pytest.raises(LimitReached) as reached:
        desk.close(call)
    assert reached.value.name == "arguments"


# --- a call said all at once ----------------------------------------------------------------------


def whole(
    desk: Desk, text: str = WHOLE, id: str | None = "a", name: str | None = "f",
    kind: Kind = FUNCTION, choice: int = 0,
) -> Call:  # fmt: skip
    """The second time a name comes the shortcut may be taken: it must not be told from the steps."""
    call: Call = desk.calls.whole(desk.out, text, kind, choice, id, "id", name, None, None)
    return call


def usual(**options: Any) -> Desk:
    """A desk where the name ``f`` was looked at before."""
    desk = Desk(**options)
    whole(desk, id="first")
    return desk


def test_a_call_said_all_at_once_is_told_with_all_its_events_either_way():
    desk = usual()
    whole(desk, id="second")
    first, second = desk.out[:3], desk.out[3:]
    assert [e.kind for e in first] == ["tool_call_start", "tool_call_delta", "tool_call"]
    assert second[:2] == [ToolCallStart(1, "second", "f"), ToolCallDelta(1, WHOLE)]
    told = second[2]
    assert (told.call, told.id, told.arguments, told.raw) == (1, "second", {"a": 1}, WHOLE)
    assert (told.provenance.id_source, told.provenance.wire_field) == ("natural", "id")
    assert desk.calls.by_id(0, "second") is desk.calls.all[1]


@pytest.mark.parametrize(
    ("text", "ends"),
    [('{"a"', "invalid_json"), ("[1]", "not_object"), ('{"a":1,"a":2}', "invalid_json")],
)
def test_a_call_said_all_at_once_that_is_no_object_is_broken_at_the_end(text: str, ends: str):
    desk = usual()
    whole(desk, text)
    desk.end_turn("stop")
    assert told(desk) == [("first", "whole"), ("a", ends)]


def test_a_call_said_all_at_once_without_text_has_no_arguments():
    desk = usual()
    whole(desk, "")
    desk.end_turn("stop")
    assert (told(desk)[1], desk.last().arguments, desk.last().raw) == (("a", "whole"), {}, "")
    assert desk.kinds()[3:] == ["tool_call_start", "tool_call"]


@pytest.mark.parametrize("id", [None, ""])
def test_a_call_said_all_at_once_without_an_id_gets_a_minted_one(id: str | None):
    desk = usual()
    whole(desk, id=id)
    assert (desk.last().id, desk.last().provenance.id_source) == (desk.mint.id(1), "synthetic")


def test_a_call_said_all_at_once_without_a_name_is_broken():
    desk = usual()
    whole(desk, name="")
    desk.end_turn("stop")
    assert told(desk) == [("first", "whole"), ("a", "conflict")]


def test_an_id_that_was_used_before_is_not_used_again_by_a_call_said_all_at_once():
    desk = usual()
    whole(desk, id="first", text='{"b":2}')
    whole(desk, id="first", choice=1)
    assert [e.id for e in desk.ended()] == ["first", desk.mint.id(1), "first"]


def test_a_call_said_all_at_once_and_again_is_one_call():
    desk = usual()
    whole(desk, id="first")
    assert (told(desk), desk.notes) == ([("first", "whole")], {"call.start_repeated": 1})


def test_a_text_said_all_at_once_is_not_the_same_as_none():
    """Of arguments that are JSON an empty object is."""
    desk = Desk()
    whole(desk, "", kind=CUSTOM)
    whole(desk, "{}", kind=CUSTOM)
    desk.end_turn("stop")
    assert [e.arguments for e in desk.ended()] == [{"input": "{}"}, {"input": ""}]


@pytest.mark.parametrize(
    "other", [{"name": "g"}, {"text": '{"a":2}'}, {"kind": Kind("server-tool", "provider")}]
)
def test_a_call_said_all_at_once_under_an_id_that_was_told_otherwise_is_another(other):
    desk = usual()
    whole(desk, id="first", **other)
    assert len(told(desk)) == 2


def test_a_call_said_all_at_once_by_the_shortcut_and_again_is_one_call():
    desk = usual()
    whole(desk, id="b", text='{"b":2}')
    whole(desk, id="b", text='{"b":2}')
    assert told(desk) == [("first", "whole"), ("b", "whole")]
    whole(desk, id="b", text='{"b":3}')
    assert [e.id for e in desk.ended()] == ["first", "b", desk.mint.id(2)]


def test_a_call_under_the_id_of_another_that_is_said_again_is_one_call():
    desk = usual()
    for text in ('{"b":2}', '{"b":3}', '{"b":2}', '{"b":3}', WHOLE):
        whole(desk, id="first", text=text)
    assert [e.raw for e in desk.ended()] == [WHOLE, '{"b":2}', '{"b":3}']


def test_of_one_payload_two_calls_that_say_the_same_are_two():
    desk = usual()
    desk.calls.since = 1
    whole(desk, id="b")
    whole(desk, id="b")
    whole(desk, id="first")
    assert [e.id for e in desk.ended()] == ["first", "b", desk.mint.id(2)]


def test_a_call_said_all_at_once_keeps_to_the_limits():
    for limits, options in (
        ({"calls": 1}, {}), ({"id": 5}, {"id": "longer"}), ({"arguments": 7}, {"text": WHOLE + " "}),
        ({"arguments_total": 13}, {}), ({"name": 1}, {"name": "ff"}),
    ):  # fmt: skip
        desk = usual(**limits)
        with pytest.raises(LimitReached) as reached:
            whole(desk, **options)
        assert reached.value.name == next(iter(limits))


def test_a_call_said_all_at_once_may_reach_the_limits():
    desk = usual(calls=2, id=5, arguments=7, arguments_total=14, name=1)
    whole(desk, id="equal")
    assert [e.id for e in desk.ended()] == ["first", "equal"]


def test_a_call_said_all_at_once_is_one_of_the_open_calls_for_a_moment():
    desk = usual(open_calls=2)
    desk.open(id="b", name="g")
    whole(desk, id="second")
    desk.open(id="c", name="g")
    with pytest.raises(LimitReached) as reached:
        whole(desk, id="third")
    assert reached.value.name == "open_calls"


def test_text_that_has_no_place_makes_what_is_open_doubtful_and_nothing_that_begins_later():
    desk, call = opened(WHOLE)
    desk.astray()
    later = desk.open(id="b", name="f")
    for each in (call, later):
        desk.append(each, " " if each is call else WHOLE)
        desk.close(each)
    desk.end_turn("stop")
    assert told(desk) == [("b", "whole"), ("a", "conflict")]


def test_arguments_of_calls_said_all_at_once_add_up():
    desk = usual(arguments_total=20)
    whole(desk, id="second")
    with pytest.raises(LimitReached):
        whole(desk, id="third")


def test_half_a_character_breaks_a_call_said_all_at_once_too():
    desk = usual()
    desk.calls.mended = True
    whole(desk, f'{{"a":"{HIGH}"}}')
    whole(desk, f'{{"a":"{HIGH}{LOW}"}}', id="b")
    whole(desk, id=f"c{HIGH}{LOW}")
    desk.end_turn("stop")
    assert told(desk)[1:] == [("b", "whole"), ("c😀", "whole"), ("a", "conflict")]


def test_a_call_said_all_at_once_in_a_doubtful_payload_is_not_told():
    desk = usual()
    desk.calls.lossy = "bytes were replaced"
    whole(desk)
    desk.calls.lossy = ""
    desk.end_turn("stop")
    assert told(desk) == [("first", "whole"), ("a", "conflict")]


def test_a_text_tool_said_all_at_once_has_its_text():
    desk = usual()
    whole(desk, '{"x":1}', kind=CUSTOM)
    assert desk.last().arguments == {"input": '{"x":1}'}


def test_only_a_call_that_the_client_runs_says_that_a_client_has_to_act():
    desk = Desk()
    for id in ("first", "second"):
        whole(desk, id=id, kind=Kind("web", "provider"))
        assert desk.calls.called == set()
    whole(desk)
    assert desk.calls.called == {0}


def test_the_size_of_a_call_is_that_of_its_text_whether_its_fragments_are_kept_or_not():
    desk = usual()
    whole(desk)
    call = desk.open(id="b", name="f")
    desk.append(call, '{"a"')
    assert [c.size for c in desk.calls.all] == [7, 7, 4]


# --- announced ends -------------------------------------------------------------------------------


def test_an_announced_end_tells_calls_in_their_order_and_stops_at_one_that_goes_on():
    desk = Desk(closes=False)
    first, second, third = (desk.open(id=id, name="f") for id in "abc")
    desk.append(first, WHOLE)
    desk.append(second, '{"a":')
    desk.append(third, WHOLE)
    desk.announce_end("stop")
    assert told(desk) == [("a", "whole")]
    desk.append(second, "1}")
    desk.announce_end("stop")
    assert told(desk) == [("a", "whole"), ("b", "whole"), ("c", "whole")]


def test_an_announced_end_tells_no_doubtful_and_no_nameless_call_and_no_text_tool():
    for build in (
        lambda desk: desk.taint(desk.open(id="a", name="f"), "x"),
        lambda desk: desk.open(id="a"),
        lambda desk: desk.open(CUSTOM, id="a", name="f"),
    ):
        desk = Desk(closes=False)
        build(desk)
        desk.append(desk.calls.all[0], WHOLE)
        desk.announce_end("stop")
        assert told(desk) == []


def test_text_of_a_call_that_was_begun_by_text_alone_may_be_anybodys():
    desk = Desk(closes=False)
    stray = desk.open(id="a", name="f")
    stray.orphan = True
    desk.append(stray, WHOLE)
    desk.append(desk.open(id="b", name="f"), WHOLE)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict"), ("b", "conflict")]


def test_a_nameless_call_without_text_takes_nothing_from_the_others():
    desk = Desk(closes=False)
    desk.open(id="a")
    desk.append(desk.open(id="b", name="f"), WHOLE)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict"), ("b", "whole")]


# --- what is lost makes emptiness doubtful --------------------------------------------------------


@pytest.mark.parametrize("lose", ["taint", "taint_open", "astray", "late", "begun again"])
def test_after_any_loss_a_call_without_text_is_not_taken_for_one_without_arguments(lose: str):
    desk, call = opened(WHOLE)
    if lose == "taint":
        desk.taint(call, "x")
    elif lose == "begun again":
        desk.restarts(call, "b", "f")
    desk.close(call)
    if lose in ("taint_open", "astray"):
        getattr(desk, lose)("x")
    elif lose == "late":
        desk.append(call, "x")
    empty = desk.open(id="b", name="f")
    desk.close(empty)
    desk.end_turn("stop")
    assert told(desk)[-1] == ("b", "conflict")


def test_nothing_said_late_loses_nothing():
    desk, call = opened(WHOLE)
    desk.close(call)
    desk.append(call, "")
    empty = desk.open(id="b", name="f")
    desk.close(empty)
    desk.end_turn("stop")
    assert told(desk) == [("a", "whole"), ("b", "whole")]


def test_a_loss_is_not_forgotten_when_a_call_without_text_is_begun_again():
    desk, call = opened()
    desk.calls.lost = True
    desk.restarts(call, "b", "f")
    desk.close(desk.open(id="b", name="f"))
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict"), ("b", "conflict")]


@pytest.mark.parametrize("say", ["announce_end", "end_turn"])
def test_an_end_in_a_doubtful_payload_tells_nothing_as_whole(say: str):
    desk, _ = opened(WHOLE, closes=False)
    desk.calls.lossy = "bytes were replaced"
    getattr(desk, say)("stop")
    assert told(desk) == ([] if say == "announce_end" else [("a", "conflict")])


def test_a_call_with_text_is_whole_although_something_else_was_lost():
    desk = Desk()
    desk.astray(7)
    call = desk.open(id="a", name="f", place=8)
    desk.append(call, WHOLE)
    desk.close(call)
    assert told(desk) == [("a", "whole")]


def test_the_first_doubt_about_a_call_is_the_one_that_is_told():
    desk, call = opened(WHOLE)
    desk.taint(call, "first")
    desk.taint(call, "second")
    desk.end_turn("stop")
    assert (desk.last().detail, desk.notes["call.tainted"]) == ("first", 1)


def test_a_call_that_was_told_cannot_become_doubtful():
    desk, call = opened(WHOLE)
    desk.close(call)
    desk.taint(call, "x")
    assert (call.taint, desk.notes) == ("", {})


def test_places_of_stray_text_are_remembered_up_to_the_number_of_calls():
    desk = Desk(calls=3)
    for place in (1, 2, 3, 4):
        desk.astray(place)
    tainted = []
    for place in (3, 4):
        call = desk.open(id=str(place), name="f", place=place)
        tainted.append(bool(call.taint))
    assert tainted == [True, False]


# --- a start in the place of another --------------------------------------------------------------


def test_a_start_in_a_free_place_or_under_another_id_in_that_of_a_told_call_is_a_new_one():
    desk, call = opened(WHOLE)
    assert desk.restarts(None, "a", "f") is False
    desk.close(call)
    assert desk.restarts(call, "b", "f") is False
    assert desk.restarts(call, None, "f") is False
    assert told(desk) == [("a", "whole")]


# --- told, and said once more ---------------------------------------------------------------------


def retold(*texts: str, name: str = "f") -> Desk:
    desk, call = opened(WHOLE)
    desk.close(call)
    assert desk.restarts(call, "a", name) is True
    for text in texts:
        desk.append(call, text)
    desk.close(call)
    return desk


@pytest.mark.parametrize("texts", [(WHOLE,), (WHOLE[:3], WHOLE[3:]), ('{ "a" : 1 }',), ()])
def test_a_told_call_that_is_said_once_more_in_its_place_is_told_once(texts):
    desk = retold(*texts)
    assert (told(desk), desk.notes) == ([("a", "whole")], {"call.start_repeated": 1})


@pytest.mark.parametrize(("text", "name"), [('{"a":2}', "f"), ('{"a":', "f"), (WHOLE, "g")])
def test_a_told_call_that_is_said_otherwise_in_its_place_is_no_second_call(text: str, name: str):
    desk = retold(text, name=name)
    assert [(e.kind, e.name, e.raw) for e in desk.ended()] == [
        ("tool_call", "f", WHOLE), ("broken_tool_call", name, text),
    ]  # fmt: skip
    assert desk.ended()[1].reason == "conflict"


def test_what_is_said_once_more_is_no_doubt_for_others():
    desk, call = opened(WHOLE)
    desk.close(call)
    other = desk.open(id="b", name="g")
    desk.restarts(call, "a", "f")
    desk.append(call, WHOLE)
    desk.append(other, WHOLE)
    desk.close(other)
    assert told(desk) == [("a", "whole"), ("b", "whole")]


def test_after_a_copy_has_ended_text_for_its_call_is_late_again():
    desk = retold(WHOLE)
    desk.append(desk.calls.all[0], "x")
    assert desk.notes["call.late"] == 1


def test_a_call_that_broke_may_be_tried_again_in_its_place():
    desk, call = opened(WHOLE)
    desk.calls.fail(call, "conflict", "x", desk.out)
    assert desk.restarts(call, "a", "f") is False


def test_a_copy_keeps_to_the_limits():
    desk, call = opened(WHOLE, arguments=8)
    desk.close(call)
    desk.restarts(call, "a", "f")
    with pytest.raises(LimitReached):
        desk.append(call, "123456789")


def test_a_start_without_an_id_is_never_the_same_one_again():
    desk = Desk()
    call = desk.open(name="f")
    assert desk.restarts(call, None, "f") is False
    assert [e.reason for e in desk.ended()] == ["conflict"]


def test_a_start_said_again_after_something_of_it_was_lost_begins_another():
    desk, call = opened()
    desk.taint(call, "x")
    assert desk.restarts(call, "a", "f") is False
    assert told(desk) == [("a", "conflict")]


def test_the_id_of_a_call_that_had_it_first_stays_when_one_under_the_same_id_is_voided():
    desk, call = opened(WHOLE)
    desk.close(call)
    again = desk.open(id="a", name="f")  # under the id of another, so with a minted one
    desk.append(again, '{"a"')
    assert desk.restarts(again, "b", "f") is False
    assert desk.calls.by_id(0, "a") is call


@pytest.mark.parametrize(
    ("closes", "place", "first"),
    [(True, 1, [("a", "conflict")]), (True, None, []), (False, 1, [])],
)
def test_an_id_begun_again_elsewhere_voids_what_is_open_where_calls_are_closed(
    closes, place, first
):
    desk = Desk(closes=closes)
    desk.open(id="a", name="f", place=0)
    desk.open(id="a", name="f", place=place)
    assert told(desk) == first


def test_an_id_begun_again_elsewhere_leaves_what_was_closed():
    desk, call = opened()
    desk.close(call)
    desk.open(id="a", name="f", place=1)
    assert told(desk) == []


# --- results and progress -------------------------------------------------------------------------


def test_a_result_is_paired_by_its_call_then_by_its_id():
    desk, call = opened()
    other = desk.open(CODE, id="b", name="f")
    desk.result("x", id="b", call=call, family="own")
    desk.result("y", id="b", family="own", is_error=True, echo={"k": 1})
    assert desk.out[-2:] == [
        ProviderToolResult(call.ordinal, "a", "x", family="function"),
        ProviderToolResult(other.ordinal, "b", "y", True, {"k": 1}, "code-interpreter"),
    ]
    assert desk.notes == {}


def test_a_result_that_no_call_claims_keeps_its_id_or_gets_one():
    desk = Desk()
    desk.result("x", id="z", family="own")
    desk.result("y", id=None, family="own")
    assert desk.out == [
        ProviderToolResult(None, "z", "x", family="own"),
        ProviderToolResult(None, desk.mint.id(0, "orphan"), "y", family="own"),
    ]
    assert desk.notes == {"result.orphan": 2}


def test_progress_names_its_call_or_the_id_that_it_came_with():
    desk, call = opened()
    desk.progress(call, "searching")
    desk.progress(None, "searching", {"n": 1}, id="z")
    assert desk.out[-2:] == [
        ToolProgress(0, "a", "searching"), ToolProgress(None, "z", "searching", {"n": 1}),
    ]  # fmt: skip


# --- snapshots ------------------------------------------------------------------------------------


def test_a_text_that_is_said_again_with_more_adds_what_is_new():
    desk, call = opened('{"a":', closes=False)
    desk.extend(call, '{"a":1}')
    desk.end_turn("stop")
    assert (desk.last().arguments, desk.notes) == ({"a": 1}, {"args.cumulative": 1})


def test_fragments_that_only_look_like_snapshots_count_as_they_were_sent():
    desk, call = opened('{"a":', closes=False)
    for piece in ('{"a":', "1}}"):
        desk.extend(call, piece)
    desk.end_turn("stop")
    assert (desk.last().arguments, desk.last().raw) == ({"a": {"a": 1}}, '{"a":{"a":1}}')


@pytest.mark.parametrize(
    ("pieces", "ends"),
    [
        (('{"a":', "1}"), "invalid_json"),
        (('{"a":', '{"a":1', "}"), "invalid_json"),
        (('{"a":', '{"a":1}'), "whole"),
    ],
)
def test_who_sends_snapshots_sends_nothing_else(pieces: tuple[str, ...], ends: str):
    desk, call = opened("{", closes=False)
    for piece in pieces:
        desk.extend(call, piece)
    desk.end_turn("stop")
    assert told(desk) == [("a", ends)]


@pytest.mark.parametrize(("limit", "ends"), [(19, "whole"), (18, "invalid_json")])
def test_what_was_sent_is_tried_only_up_to_the_limit(limit: int, ends: str):
    desk, call = opened('{"a":', closes=False, arguments=limit)
    desk.extend(call, '{"a":{"b":1}}}')  # as a snapshot it has a brace too many
    desk.end_turn("stop")
    assert told(desk) == [("a", ends)]


@pytest.mark.parametrize("pieces", [("{}", ' {"a":1}'), ("{}" + 20 * " ", WHOLE)])
def test_an_empty_object_gives_way_only_to_one_that_is_longer_and_begins_at_once(pieces):
    desk, call = opened(pieces[0], closes=False)
    desk.extend(call, pieces[1])
    desk.end_turn("stop")
    assert (told(desk), desk.last().raw) == ([("a", "invalid_json")], "".join(pieces))


def test_an_empty_object_gives_way_to_the_first_character_of_one():
    desk, call = opened("{}", closes=False)
    for piece in ("{", '"a":1', "}"):
        desk.extend(call, piece)
    desk.end_turn("stop")
    assert (told(desk), desk.last().raw) == ([("a", "whole")], WHOLE)


def test_fragments_that_begin_unlike_an_object_are_no_snapshots():
    desk, call = opened("[", closes=False)
    desk.extend(call, "{}]")
    desk.end_turn("stop")
    assert (desk.last().reason, desk.last().raw) == ("not_object", "[{}]")


def test_a_fragment_that_waits_for_its_name_is_held_and_one_for_a_told_call_is_late():
    desk = Desk(eager=False, closes=False)
    call = desk.open(id="a")
    desk.extend(call, WHOLE)
    assert desk.out == []
    desk.hear(call, name="f")
    desk.end_turn("stop")
    desk.extend(call, "x")
    assert (told(desk), desk.notes) == ([("a", "whole")], {"call.late": 1})


def test_an_empty_text_takes_back_what_was_held():
    desk, call = opened(WHOLE)
    desk.replace(call, "")
    assert call.fragments == []


def test_a_text_in_quotes_is_read_as_the_object_that_it_holds_and_as_nothing_else():
    for text, ends in (('"{\\"a\\":1}"', "whole"), ('"[1]"', "not_object"), ('"3"', "not_object")):
        desk, call = opened(text)
        desk.close(call)
        desk.end_turn("stop")
        assert told(desk) == [("a", ends)]
        assert ("args.double_encoded" in desk.notes) is (ends == "whole")
    assert desk.last().detail == "the arguments are str, not an object"


# --- the wire's own copy --------------------------------------------------------------------------


def test_a_gap_that_is_filled_from_a_doubtful_payload_stays_doubtful():
    desk, call = opened()
    desk.calls.lossy = "bytes were replaced"
    desk.settle(call, WHOLE)
    desk.calls.lossy = ""
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.last().detail) == ([("a", "conflict")], "bytes were replaced")


def test_a_copy_replaces_text_that_something_is_missing_of():
    desk, call = opened('{"b":2}')
    desk.taint(call, "x")
    desk.settle(call, WHOLE)
    desk.close(call)
    assert (told(desk), desk.last().arguments) == ([("a", "whole")], {"a": 1})


@pytest.mark.parametrize(
    ("held", "copy", "ends"),
    [("ls", "ls -l", "whole"), ("ls", "rm", "conflict"), ('{"a":1}', '{"a": 1}', "conflict")],
)
def test_of_a_text_tool_a_copy_that_goes_on_counts_and_one_that_differs_does_not(held, copy, ends):
    desk = Desk()
    call = desk.open(CODE, id="a", name="f")
    desk.append(call, held)
    desk.settle(call, copy)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", ends)]


def test_a_copy_replaces_text_that_is_no_object():
    desk, call = opened("null")
    desk.settle(call, WHOLE)
    desk.close(call)
    assert (told(desk), desk.last().arguments) == ([("a", "whole")], {"a": 1})


@pytest.mark.parametrize("copy", [WHOLE, '{ "a": 1 }'])
def test_a_copy_with_other_spaces_is_the_same_object(copy: str):
    desk, call = opened(WHOLE)
    desk.settle(call, copy)
    desk.close(call)
    assert (told(desk), desk.notes) == ([("a", "whole")], {})


def test_a_copy_that_is_the_very_text_confirms_it_even_if_it_is_no_json():
    desk, call = opened("{oops")
    desk.taint(call, "x")
    desk.settle(call, "{oops")
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.notes) == ([("a", "invalid_json")], {"call.tainted": 1})


# --- ends -----------------------------------------------------------------------------------------


def test_a_closed_call_is_started_when_it_closes_and_so_is_a_broken_one():
    desk = Desk(eager=False)
    call = desk.open(id="a", name="f")
    desk.close(call)
    assert desk.out == [ToolCallStart(0, "a", "f")]
    desk = Desk(eager=False)
    call = desk.open(id="a", name="f")
    desk.fail(call, "conflict", "x")
    assert desk.kinds() == ["tool_call_start", "broken_tool_call"]


def test_white_space_is_no_text_for_an_object_and_a_text_for_a_text_tool():
    desk, call = opened("  ")
    desk.close(call)
    desk.end_turn("stop")
    assert desk.last().arguments == {}
    desk = Desk()
    call = desk.open(CUSTOM, id="a", name="f")
    desk.append(call, "  ")
    desk.close(call)
    assert desk.last().arguments == {"input": "  "}


@pytest.mark.parametrize("reason", ["other", "content_filter", None])
def test_a_closed_text_tool_and_a_closed_object_count_whatever_the_end_is(reason: str | None):
    """They wait only for their name: it may come after they were closed."""
    for kind in (CUSTOM, FUNCTION):
        desk = Desk()
        call = desk.open(kind, id="a")
        desk.append(call, WHOLE)
        desk.close(call)
        desk.hear(call, name="f")
        desk.end_turn(reason)
        assert told(desk) == [("a", "whole")]


@pytest.mark.parametrize("kind", [CUSTOM, FUNCTION])
def test_a_closed_call_without_text_needs_a_normal_end_too(kind: Kind):
    for reason, ends in (("stop", "whole"), ("other", "truncated"), (None, "truncated")):
        desk = Desk()
        desk.close(desk.open(kind, id="a", name="f"))
        desk.end_turn(reason)
        assert told(desk) == [("a", ends)]


def test_a_call_that_waits_for_the_end_says_how_it_ended():
    for reason, detail in (
        ("other", "the wire closes no call by itself, and the turn ended with other"),
        (
            "content_filter",
            "the wire closes no call by itself, and the turn ended with content_filter",
        ),
    ):
        desk, _ = opened(WHOLE, closes=False)
        desk.end_turn(reason)
        assert desk.last().detail == detail
    desk = Desk(closes=False)
    desk.append(desk.open(CUSTOM, id="a", name="f"), "x")
    desk.end_turn(None)
    assert desk.last().detail == "no end of it came, and the turn ended with no reason"


def test_names_are_looked_at_once_each():
    desk = Desk()
    for name in ("bad name", "bad name", "other name", "fine"):
        desk.open(id=f"{len(desk.calls.all)}", name=name)
    assert desk.notes == {"call.name_invalid": 2}


def test_a_name_of_the_providers_own_is_not_judged():
    desk = Desk()
    desk.open(Kind("web-search", "provider", own_name=True), id="a", name="$web_search")
    assert desk.notes == {}
    desk.open(Kind("mcp", "provider"), id="b", name="$web_search")
    assert desk.notes == {"call.name_invalid": 1}


# --- what is whole, and yet may go on ---------------------------------------------------------------


@pytest.mark.parametrize(("text", "at_once"), [("{}", False), (" {} ", False), (WHOLE, True)])
def test_a_placeholder_is_not_told_at_a_word_for_the_end_but_at_the_end(text: str, at_once: bool):
    desk, _ = opened(text, closes=False)
    desk.announce_end("stop")
    assert bool(told(desk)) is at_once
    desk.end_turn("stop")
    assert told(desk) == [("a", "whole")]


def test_one_object_of_several_is_not_told_at_a_word_for_the_end():
    desk, call = opened(closes=False)
    desk.calls.merge_object(call, WHOLE, desk.out)
    desk.announce_end("stop")
    assert told(desk) == []
    desk.calls.merge_object(call, '{"b":2}', desk.out)
    desk.end_turn("stop")
    assert desk.last().arguments == {"a": 1, "b": 2}


@pytest.mark.parametrize(("unwraps", "fate"), [(True, "whole"), (False, "not_object")])
def test_an_object_that_is_written_as_a_text_counts_where_arguments_are_text(unwraps, fate: str):
    desk = Desk()
    desk.calls.unwraps = unwraps
    call = desk.open(id="a", name="f")
    desk.append(call, '"{\\"a\\":1}"')
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", fate)]


@pytest.mark.parametrize("item", [None, {"type": "x"}])
def test_a_broken_call_has_what_goes_back_of_it_if_there_is_something(item: Any):
    desk, call = opened(WHOLE)
    call.returned = item
    desk.deny(call, "truncated", "its item says so")
    desk.end_turn("stop")
    assert desk.last().echo == (UNSET if item is None else item)


def test_arguments_that_are_told_at_a_word_for_the_end_are_read_once():
    desk, call = opened('"{\\"a\\":1}"', closes=False)
    desk.announce_end("stop")
    assert (told(desk), desk.notes) == ([(call.id, "whole")], {"args.double_encoded": 1})


def test_a_text_that_a_copy_has_confirmed_does_not_give_way_to_another_copy():
    desk, call = opened('{"a":')
    desk.settle(call, '{"a":')
    desk.settle(call, WHOLE)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]


@pytest.mark.parametrize(("spaces", "goes_on"), [(0, True), (62, True), (63, False)])
def test_a_placeholder_is_short(spaces: int, goes_on: bool):
    desk, call = opened("{}" + " " * spaces)
    assert desk.calls.may_go_on(call) is goes_on


def test_of_a_call_that_is_over_the_text_is_kept_in_one_piece():
    desk, call = opened('{"a":')
    desk.append(call, "1}")
    desk.close(call)
    assert (told(desk), call.fragments) == ([("a", "whole")], [WHOLE])


# --- objects that add up ----------------------------------------------------------------------------


def test_an_object_that_text_follows_is_not_whole():
    desk, call = opened(closes=False)
    desk.merge_object(call, WHOLE)
    assert desk.calls.is_whole(call)
    desk.append(call, "x")
    assert not desk.calls.is_whole(call)


@pytest.mark.parametrize("objects", [("{}",), (WHOLE,), (WHOLE, '{"b":2}')])
def test_text_behind_objects_that_says_nothing_breaks_their_call_all_the_same(objects):
    desk, call = opened(closes=False)
    for text in objects:
        desk.merge_object(call, text)
    desk.append(call, "\n ")
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]


def test_an_empty_object_in_place_of_text_is_a_placeholder_for_its_pieces():
    desk, call = opened(closes=False)
    desk.merge_object(call, "{}")
    desk.extend(call, '{"a":')
    assert not desk.calls.is_whole(call)
    desk.extend(call, "1}")
    desk.end_turn("stop")
    assert (told(desk), desk.last().arguments) == ([("a", "whole")], {"a": 1})


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(
    ("objects", "fate"),
    [((WHOLE,), "whole"), ((WHOLE, '{"b":2}'), "conflict"), ((WHOLE, WHOLE), "conflict")],
)
def test_where_calls_are_closed_one_object_may_be_all_and_two_may_not(objects, fate, closed: bool):
    desk, call = opened()
    for text in objects:
        desk.merge_object(call, text)
    if closed:
        desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", fate)]


# --- text behind the word for the end -------------------------------------------------------------


def test_without_its_closing_mark_a_call_is_not_whole_if_a_part_of_it_came_behind_the_word_for_the_end():
    desk, call = opened('{"a":')
    desk.calls.hear_word()
    desk.append(call, "1}")
    desk.end_turn("stop")
    assert told(desk) == [("a", "truncated")]


def test_with_its_closing_mark_it_is_whole_whenever_its_text_came():
    desk, call = opened('{"a":')
    desk.calls.hear_word()
    desk.append(call, "1}")
    desk.close(call)
    assert told(desk) == [("a", "whole")]


def test_the_last_word_for_the_end_counts():
    desk, call = opened('{"a":')
    desk.calls.hear_word()
    desk.append(call, "1}")
    desk.calls.hear_word()
    desk.end_turn("stop")
    assert told(desk) == [("a", "whole")]


@pytest.mark.parametrize("say", ["give", "settle"])
def test_what_a_start_gave_or_a_copy_states_behind_the_word_for_the_end_is_in_time(say: str):
    desk, call = opened()
    desk.calls.hear_word()
    getattr(desk.calls, say)(call, WHOLE, desk.out)
    desk.end_turn("stop")
    assert told(desk) == [("a", "whole")]


@pytest.mark.parametrize("closed", ['{"b":2}', "[1]"])
def test_an_object_for_a_call_that_was_closed_may_be_of_the_one_that_is_open(closed: str):
    """Told or waiting for the end, what it said stays as it is."""
    desk, call = opened(closed)
    desk.close(call)
    other = desk.open(id="b", name="f")
    desk.append(other, WHOLE)
    desk.merge_object(call, '{"c":3}')
    desk.close(other)
    desk.end_turn("stop")
    assert dict(told(desk))["b"] == "conflict"
    assert [e.raw for e in desk.ended() if e.id == "a"] == [closed]
    assert desk.notes["call.late"] == 1


def test_pieces_that_grow_to_an_empty_object_are_no_placeholder():
    desk, call = opened("{", closes=False)
    desk.append(call, "}")
    desk.announce_end("stop")
    assert told(desk) == [("a", "whole")]


# --- said once more -------------------------------------------------------------------------------


@pytest.mark.parametrize(("copy", "ends"), [(WHOLE, []), ('{"b":2}', ["conflict"])])
def test_the_copy_of_a_told_call_is_what_is_stated_of_it_and_the_call_stays(copy: str, ends):
    desk, call = opened(WHOLE)
    desk.close(call)
    assert desk.restarts(call, "a", "f")
    desk.settle(call, copy)
    desk.close(call)
    assert [reason for _, reason in told(desk)] == ["whole", *ends]
    assert call.raw == WHOLE


def test_a_told_call_that_is_stated_with_other_spaces_is_the_same():
    desk, call = opened(WHOLE)
    desk.close(call)
    desk.settle(call, '{ "a": 1 }')
    assert (told(desk), desk.notes) == ([("a", "whole")], {})


def test_a_call_said_all_at_once_and_again_in_a_doubtful_payload_is_no_copy():
    desk = usual()
    desk.calls.lossy = "bytes were replaced"
    whole(desk, id="first")
    desk.calls.lossy = ""
    desk.end_turn("stop")
    assert told(desk) == [("first", "whole"), (desk.mint.id(1), "conflict")]


def test_two_calls_said_all_at_once_without_an_id_are_two_though_they_say_the_same():
    desk = usual()
    whole(desk, id=None)
    whole(desk, id=None)
    assert [e.id for e in desk.ended()] == ["first", desk.mint.id(1), desk.mint.id(2)]


def test_a_doubtful_copy_does_not_take_the_place_of_text_that_something_is_missing_of():
    desk, call = opened('{"b":2}')
    desk.taint(call, "x")
    desk.calls.lossy = "bytes were replaced"
    desk.settle(call, WHOLE)
    desk.calls.lossy = ""
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.last().raw) == ([("a", "conflict")], '{"b":2}')


# --- text behind an object, and calls without any ---------------------------------------------------


def test_text_of_a_text_tool_that_looks_like_two_objects_is_nobody_elses():
    desk = Desk(closes=False)
    desk.append(desk.open(CUSTOM, id="a", name="f"), "{} x")
    desk.open(id="b", name="f")
    desk.end_turn("stop")
    assert [e.arguments for e in desk.ended()] == [{"input": "{} x"}, {}]


def test_text_behind_an_object_makes_none_doubtful_where_every_call_has_its_own():
    desk, call = opened(WHOLE)
    desk.append(call, "x")
    desk.append(desk.open(id="b", name="f"), WHOLE)
    desk.end_turn("stop")
    assert told(desk) == [("a", "invalid_json"), ("b", "whole")]


# --- closed again -----------------------------------------------------------------------------------


def test_a_call_that_was_named_behind_its_closing_mark_is_told_when_the_mark_comes_again():
    desk = Desk()
    call = desk.open(id="a")
    desk.append(call, WHOLE)
    desk.close(call)
    desk.hear(call, name="f")
    desk.close(call)
    assert told(desk) == [("a", "whole")]


def test_a_call_whose_doubt_was_healed_behind_its_closing_mark_is_told_when_it_comes_again():
    desk, call = opened(WHOLE)
    desk.taint(call, "x")
    desk.close(call)
    desk.settle(call, WHOLE)
    desk.close(call)
    assert told(desk) == [("a", "whole")]


def test_a_call_without_text_that_is_closed_twice_has_no_arguments():
    desk, call = opened()
    desk.close(call)
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.last().arguments) == ([("a", "whole")], {})


def test_of_a_broken_call_too_the_text_is_kept_in_one_piece():
    desk, call = opened('{"a":')
    desk.append(call, "1")
    desk.fail(call, "truncated", "x")
    assert call.fragments == ['{"a":1']


# --- which calls said all at once were said before --------------------------------------------------


@pytest.mark.parametrize("text", ["[1]", '{"a"'])
def test_a_call_that_is_no_object_and_said_again_all_at_once_is_one_call(text: str):
    desk = usual()
    whole(desk, text)
    whole(desk, text)
    desk.end_turn("stop")
    assert [id for id, _ in told(desk)] == ["first", "a"]


def test_a_call_said_all_at_once_is_no_copy_of_one_that_is_still_open():
    desk, call = opened(WHOLE)
    whole(desk)
    assert (told(desk), call.state) == ([(desk.mint.id(1), "whole")], State.OPEN)


def test_a_call_said_all_at_once_after_it_broke_is_told():
    desk, call = opened(WHOLE)
    desk.fail(call, "truncated", "x")
    whole(desk)
    assert told(desk) == [("a", "truncated"), (desk.mint.id(1), "whole")]


# --- fragments that were taken for snapshots --------------------------------------------------------


def test_where_a_wire_has_no_snapshots_the_fragments_count_as_they_were_sent_and_only_so():
    desk, call = opened('{"a":', closes=False)
    desk.extend(call, '{"a":1}')
    desk.calls.as_pieces(call)
    assert (call.raw, call.latches) == ('{"a":{"a":1}', ())
    desk.append(call, "}")
    desk.end_turn("stop")
    assert desk.last().arguments == {"a": {"a": 1}}


@pytest.mark.parametrize(("limit", "fits"), [(12, True), (11, False)])
def test_fragments_as_they_were_sent_keep_to_the_limit(limit: int, fits: bool):
    desk, call = opened('{"a":', closes=False, arguments=limit)
    desk.extend(call, '{"a":1}')
    if fits:
        return desk.calls.as_pieces(call)
    with pytest.raises(LimitReached):
        desk.calls.as_pieces(call)
    return None


def test_the_name_of_a_copy_that_comes_in_pieces_keeps_to_the_limit():
    copy = Copy(Limits(name=4))
    copy.hear_name("fo")
    copy.hear_name("ur")
    assert copy.name == "four"
    with pytest.raises(LimitReached):
        copy.hear_name("x")


# --- with which piece a client may run a call ---------------------------------------------------------


def ripe(*pieces: str, kind: Kind = FUNCTION, closes: bool = False) -> list[bool]:
    """After each piece: may a client that runs what it can read run it?"""
    desk = Desk(closes=closes)
    desk.calls.watch()
    call = desk.open(kind, id="a", name="f")
    found = []
    for piece in pieces:
        desk.append(call, piece)
        found.append(desk.calls.marks.behind_ripe is not None)
    return found


def test_a_piece_that_makes_an_object_whole_makes_it_ripe():
    assert ripe('{"a":', '{"b":1}', "}\n") == [False, False, True]


def test_a_text_tool_a_tool_of_the_provider_and_a_wire_that_closes_calls_wait_for_the_end():
    assert ripe("{}", kind=CUSTOM) == [False]
    assert ripe("{}", kind=Kind("server-tool", "provider")) == [False]
    assert ripe("{}", closes=True) == [False]


def test_the_first_call_that_is_ripe_is_looked_for_and_no_other():
    desk = Desk(closes=False)
    desk.calls.watch()
    first, second = desk.open(id="a", name="f"), desk.open(id="b", name="f")
    desk.append(first, "{}")
    desk.append(second, "{}")
    assert (first.reach is not None, second.reach) == (True, None)


@pytest.mark.parametrize(
    ("eager", "verbs", "is_ripe"),
    [
        (False, ["settle"], True),
        (True, ["settle"], False),
        (False, ["append", "close"], True),
        (True, ["append", "close"], False),
        (True, ["close"], True),
        (True, ["fail", "close"], True),
    ],
)
def test_where_whole_calls_may_run_at_once_only_a_call_that_is_not_whole_is_ripe(
    eager: bool, verbs: list[str], is_ripe: bool
):
    desk, call = opened()
    desk.calls.marks.eager = eager
    said = {"settle": [WHOLE], "append": [WHOLE], "close": [], "fail": ["conflict", "why"]}
    for verb in verbs:
        getattr(desk, verb)(call, *said[verb])
    assert (desk.calls.marks.behind_ripe is not None) is is_ripe


def test_the_first_call_that_broke_is_named_unless_the_token_limit_says_it_itself():
    desk = Desk()
    for name, reason in (("cut", "length"), ("first", "truncated"), ("second", "conflict")):
        desk.fail(desk.open(id=name, name=name), reason, "x")
    assert desk.calls.marks.broke == "first"


# --- calls that a client cannot tell by their id or place -----------------------------------------------


def test_a_call_is_odd_if_its_id_or_its_place_is_not_what_its_wire_should_give():
    desk = Desk()
    natural = desk.open(id="a", name="f")
    conflated = desk.open(id="item", name="f", source="conflated")
    displaced = desk.open(id="c", name="f")
    displaced.displaced = True
    odd = [desk.calls.is_odd(call.ordinal, call.id) for call in (natural, conflated, displaced)]
    assert odd == [False, True, True]


def test_a_call_that_was_told_under_a_minted_id_is_odd_though_its_own_came_later():
    desk = Desk()
    call = desk.open(name="f")
    desk.append(call, WHOLE)
    minted = call.id
    desk.hear(call, id="a")
    assert (call.id, desk.calls.is_odd(0, minted), desk.calls.is_odd(0, "a")) == ("a", True, False)


def test_a_minted_id_is_not_odd_where_a_wire_has_none():
    desk = Desk()
    call = desk.open(Kind(id_source="synthetic"), name="f")
    desk.append(call, WHOLE)
    assert not desk.calls.is_odd(0, call.id)


# --- what every parser does -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "reason", "counts"),
    [
        (None, "stop", True),
        ("stop", "stop", True),
        ("stop", "length", True),
        ("tool_calls", "length", True),
        ("tool_calls", "stop", False),
        ("pause", "length", True),
        ("pause", "stop", False),
        ("length", "tool_calls", False),
        ("other", "length", False),
    ],
)
def test_a_second_word_for_the_end_counts_if_it_says_more(held: Any, reason: Any, counts: bool):
    assert replaces(reason, held) is counts


BEGUN = Messages.START + Messages.open(0, "toolu_1", "f")
CLOSED = Messages.close(0) + Messages.end()


@pytest.mark.parametrize(("text", "ends"), [("{}", BrokenToolCall), (WHOLE, ToolCall)])
def test_an_event_without_its_data_may_have_been_of_a_call_that_can_go_on(text: str, ends: type):
    lost = b"event: content_block_delta\n\n"
    events, _ = traced("anthropic", BEGUN + Messages.args(0, text) + lost + CLOSED)
    assert [type(e) for e in events if isinstance(e, ToolCall | BrokenToolCall)] == [ends]


@pytest.mark.parametrize(
    ("new", "ends"),
    [
        ({"item_type": "thing"}, ToolCall),
        ({"item_type": "thing", "label": "thing"}, ToolCall),
        ({"item_type": {"a": 1}}, ToolCall),
        ({"words": "thing"}, BrokenToolCall),
    ],
)
def test_what_a_new_kind_says_of_types_is_no_text_of_a_call(new: Any, ends: type):
    said = sse({"type": "brand_new", **new})
    body = BEGUN + Messages.args(0, '{"a"') + said + Messages.args(0, ":1}") + CLOSED
    events, _ = traced("anthropic", body)
    assert [type(e) for e in events if isinstance(e, ToolCall | BrokenToolCall)] == [ends]


@pytest.mark.parametrize(
    ("odd", "ends"), [('"annotations":[]', ToolCall), ('"odd":1', BrokenToolCall)]
)
def test_a_payload_without_words_of_calls_that_says_a_field_twice(odd: str, ends: type):
    """It is a loss if it is odd in other ways, too."""
    twice = f'data: {{"object":"a","object":"b","choices":[{{"index":0,"delta":{{"content":"x",{odd}}}}}]}}\n\n'
    body = Chat.call(0, "a", "f", '{"a"') + twice.encode() + Chat.call(0, None, None, ":1}")
    events, _ = traced("openai_chat", body + Chat.end())
    assert [type(e) for e in events if isinstance(e, ToolCall | BrokenToolCall)] == [ends]


def test_a_told_call_that_begins_again_has_the_text_of_its_copy_only():
    desk, call = opened(WHOLE)
    desk.close(call)
    assert desk.calls.has_text(call)
    desk.restarts(call, "a", "f")
    assert not desk.calls.has_text(call)
    desk.append(call, WHOLE)
    assert desk.calls.has_text(call)


# --- calls that may be others ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "taken", "fate"),
    [(HIGH, True, "conflict"), (HIGH, False, "whole"), (None, True, "whole"), ("b", True, "whole")],
)
def test_a_call_whose_id_cannot_be_read_may_be_the_one_whose_place_it_takes(id, taken, fate):
    desk = mended()
    held = desk.open(id="a", name="f")
    desk.append(held, WHOLE)
    desk.close(held)
    call = desk.open(id=id, name="f", instead=held if taken else None)
    desk.append(call, WHOLE)
    desk.close(call)
    desk.end_turn("stop")
    assert [fate for _, fate in told(desk)] == ["whole", fate]


@pytest.mark.parametrize(("closes", "text", "fate"), [
    (False, "", "conflict"), (False, WHOLE, "whole"), (True, "", "whole"), (True, WHOLE, "whole"),
])  # fmt: skip
def test_a_call_that_was_given_up_and_begins_again_without_any_text(closes, text, fate):
    """Where nothing closes it, that may not be all of it."""
    desk = Desk(closes=closes)
    desk.calls.void(desk.open(id="a", name="f"), desk.out)
    call = desk.open(id="a", name="f")
    if text:
        desk.append(call, text)
    if closes:
        desk.close(call)
    desk.end_turn("stop")
    assert [fate for _, fate in told(desk)] == ["conflict", fate]
