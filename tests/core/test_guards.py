"""The guards of ``core.calls`` that no ordinary stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from streamnorm.core.calls import FUNCTION, Call, Kind, State
from streamnorm.events import ProviderToolResult, ToolCallDelta, ToolCallStart, ToolProgress
from streamnorm.limits import LimitReached
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
    whole(desk, id="first")
    whole(desk, id="first", choice=1)
    assert [e.id for e in desk.ended()] == ["first", desk.mint.id(1), "first"]


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


def test_a_start_in_a_free_place_or_that_of_a_told_call_is_a_new_one():
    desk, call = opened(WHOLE)
    assert desk.restarts(None, "a", "f") is False
    desk.close(call)
    assert desk.restarts(call, "a", "f") is False
    assert told(desk) == [("a", "whole")]


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
