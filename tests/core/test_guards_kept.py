"""What ``core.calls`` keeps, counts and hands on of a call: each test fails if that is left out."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.core.calls import FUNCTION, Call, Kind
from streamnorm.events import BrokenToolCall, ToolCall, ToolCallDelta, ToolCallStart
from streamnorm.limits import LimitReached
from tests.core.test_calls import CODE, CUSTOM, Desk, opened
from tests.core.test_guards import WHOLE, told

SERVER = Kind("server-tool", "provider")


def whole(desk: Desk, **options: Any) -> Call:
    """A call that is said all at once."""
    said = {"text": WHOLE, "kind": FUNCTION, "choice": 0, "id": "a", "field": "id", "name": "f"}
    return desk.calls.whole(desk.out, **{**said, "echo": None, "seen": None, **options})


# --- who calls, and what runs it ------------------------------------------------------------------


def test_every_event_of_a_call_says_whose_it_is():
    desk = Desk()
    for name, text in (("told", WHOLE), ("broken", "{")):
        call = desk.open(id=name, name=name, agent="planner")
        desk.append(call, text)
        desk.close(call)
    desk.open(id="given", name="given", agent="planner").given = "{"
    desk.end_turn("stop")
    assert [e.kind for e in desk.ended()] == ["tool_call", "broken_tool_call", "broken_tool_call"]
    assert {type(event) for event in desk.out} == {
        ToolCallStart, ToolCallDelta, ToolCall, BrokenToolCall,
    }  # fmt: skip
    assert {event.agent for event in desk.out} == {"planner"}


def test_text_that_was_held_for_a_name_says_whose_it_is():
    desk = Desk()
    call = desk.open(id="a", agent="planner")
    desk.append(call, "{")
    desk.hear(call, name="f")
    assert desk.out == [
        ToolCallStart(0, "a", "f", agent="planner"),
        ToolCallDelta(0, "{", agent="planner"),
    ]


def test_a_copy_that_is_broken_says_whose_it_is_as_the_call_does_that_was_told():
    desk = Desk()
    call = desk.open(CUSTOM, choice=1, id="a", field="call_id", name="f", agent="planner")
    desk.append(call, "ls")
    desk.close(call)
    desk.end_turn("stop")
    desk.restate(call, "rm")
    first, copy = desk.ended()
    assert (copy.kind, copy.family, copy.choice, copy.agent) == (
        "broken_tool_call", "custom", 1, "planner",
    )  # fmt: skip
    source = copy.provenance
    assert (source.wire_id, source.wire_field) == ("a", "call_id")
    assert copy.id != first.id


def test_a_call_of_the_provider_that_is_said_at_once_starts_as_one():
    desk = Desk()
    for id in ("a", "b"):  # the second one in the short way
        whole(desk, id=id, kind=SERVER)
    starts = [event for event in desk.out if isinstance(event, ToolCallStart)]
    assert [start.runs_on for start in starts] == ["provider", "provider"]


def test_a_call_that_was_said_at_once_keeps_its_name():
    desk = Desk()
    for id in ("a", "b"):  # the second one in the short way
        call = whole(desk, id=id)
        desk.hear(call, name="g")
        assert call.name == "f"
    assert desk.notes["call.name_changed"] == 2


@pytest.mark.parametrize("at_once", [False, True])
def test_a_note_of_a_missing_id_says_where_it_was_looked_for_and_in_what(
    at_once: bool, caplog: pytest.LogCaptureFixture
):
    desk = Desk()
    with caplog.at_level("WARNING", "streamnorm"):
        if at_once:
            whole(desk, id=None, field="call_id", seen={"key": "f"})
        else:
            call = desk.open(field="call_id", name="f", seen={"key": "f"})
            desk.append(call, "{")
    assert "no id in call_id" in caplog.text
    assert "{'key': 'str'}" in caplog.text


# --- how much is held -----------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "fits"), [(8, True), (7, False)])
def test_of_text_that_gave_way_to_another_nothing_is_counted(limit: int, fits: bool):
    desk, call = opened("123456", arguments=limit)
    assert desk.calls.measure() is None  # so many are counted by now
    desk.replace(call, "1234")
    desk.append(call, "5678")
    if fits:
        desk.measure()
    else:
        with pytest.raises(LimitReached):
            desk.measure()


@pytest.mark.parametrize(
    "objects",
    [['{"a":1}', '{"b":2}'], ['{"a":1}\n', ' { "b":2 } '], ["{}", '{"b":2}', '{"c":[3]}\n']],
)
def test_of_objects_that_were_merged_each_character_is_counted_once(objects: list[str]):
    for less in (0, 1):
        desk, call = opened()
        for text in objects:
            desk.merge_object(call, text)
        desk.calls.limits = desk.calls.limits.__class__(arguments=len(call.raw) - less)
        if less:
            with pytest.raises(LimitReached):
                desk.measure()
        else:
            desk.measure()


def test_the_longest_of_the_open_calls_is_held_against_the_limit():
    desk = Desk(arguments=4)
    for id, text in (("a", "1234"), ("b", "12345"), ("c", "1")):
        desk.append(desk.open(id=id, name="f"), text)
    with pytest.raises(LimitReached):
        desk.measure()


def test_where_no_call_is_open_nothing_is_too_much():
    desk = Desk(arguments=0, arguments_total=0)
    desk.measure()
    assert desk.out == []


def test_the_pieces_of_the_open_calls_are_counted_all_together():
    desk = Desk()
    assert desk.calls.pieces() == 0
    first, second = desk.open(id="a", name="f"), desk.open(id="b", name="f")
    for call, text in ((first, "{"), (second, "{"), (second, "}")):
        desk.append(call, text)
    assert desk.calls.pieces() == 3
    desk.close(second)
    assert desk.calls.pieces() == 1


@pytest.mark.parametrize("name", ["hear", "alias"])
def test_ids_of_a_call_are_remembered_up_to_twice_the_number_of_calls(name: str):
    desk, call = opened(calls=3)
    for id in "bcdefg":
        desk.alias(call, id) if name == "alias" else desk.hear(call, id=id)
    assert [desk.calls.by_id(0, id) is call for id in "efg"] == [True, True, False]


@pytest.mark.parametrize(("depth", "ends"), [(3, "whole"), (2, "not_object")])
def test_a_text_in_quotes_keeps_to_the_depth_too(depth: int, ends: str):
    desk, call = opened('"{\\"a\\":[{}]}"', depth=depth)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", ends)]


@pytest.mark.parametrize(("depth", "ends"), [(3, "whole"), (2, "invalid_json")])
def test_fragments_as_they_were_sent_keep_to_the_depth_too(depth: int, ends: str):
    desk, call = opened(depth=depth)
    for text in ('{"a":', '{"a":[]}', "}"):  # the second one looks like a snapshot of the first one
        desk.extend(call, text)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", ends)]


# --- one call at its end --------------------------------------------------------------------------


def test_one_call_can_end_before_its_turn_does():
    desk, call = opened(closes=False)
    desk.append(call, WHOLE)
    other = desk.open(id="b", name="f")
    desk.append(other, WHOLE)
    desk.end(other, "tool_calls")
    assert told(desk) == [("b", "whole")]
    desk.end(other, "tool_calls")
    assert told(desk) == [("b", "whole")]


def test_a_call_that_broke_is_known_to_whoever_hands_the_bytes_on_if_a_client_would_run_it():
    for kind, cut in ((SERVER, False), (FUNCTION, True)):
        desk = Desk()
        desk.fail(desk.open(kind, id="a", name="f"), "length", "x")
        assert desk.calls.marks.cut is cut


def test_an_empty_object_that_was_said_at_once_is_no_other_than_none():
    desk = Desk()
    whole(desk, text="{ }")
    whole(desk, text="")
    assert [type(event) for event in desk.ended()] == [ToolCall]
    assert desk.notes == {"call.start_repeated": 1}


def test_a_minted_id_is_not_odd_where_the_wire_needs_none_and_one_of_another_sort_is():
    desk = Desk()
    without, conflated = desk.open(name="f"), desk.open(id="x", name="f", source="conflated")
    desk.append(without, WHOLE)
    asked = [(without, False), (conflated, False), (without, True)]
    odd = [desk.calls.is_odd(call.ordinal, call.id, needs_id=needs) for call, needs in asked]
    assert odd == [False, True, True]
    without.displaced = True
    assert desk.calls.is_odd(without.ordinal, without.id, needs_id=False)


# --- whose a loss is ------------------------------------------------------------------------------


def lose_by_a_nameless_call(desk: Desk) -> None:
    desk.append(desk.open(id="x"), "{")
    desk.end_turn("stop", 0)


def lose_behind_a_whole_object(desk: Desk) -> None:
    desk.append(desk.open(id="x", name="f"), '{"a":1}{')
    desk.end_turn("stop", 0)


def lose_a_text_of_a_closed_call(desk: Desk) -> None:
    call = desk.open(CODE, id="x", name="f")
    desk.close(call)
    desk.calls.textless(call)


def lose_what_came_late(desk: Desk) -> None:
    call = desk.open(id="x", name="f")
    desk.append(call, WHOLE)
    desk.close(call)
    desk.append(call, "more")


@pytest.mark.parametrize(
    ("lose", "closes"),
    [
        (lose_by_a_nameless_call, True),
        (lose_behind_a_whole_object, False),
        (lose_a_text_of_a_closed_call, True),
        (lose_what_came_late, True),
    ],
)
def test_what_is_lost_in_one_choice_is_of_no_call_in_another(lose: Any, closes: bool):
    desk = Desk(closes=closes)
    calls = [desk.open(choice=choice, id=f"{choice}", name="f") for choice in (1, 0)]
    lose(desk)
    assert calls[0].taint == ""


def test_a_loss_in_one_choice_is_of_its_own_calls():
    for lose in (lose_a_text_of_a_closed_call, lose_what_came_late):
        desk = Desk()
        call = desk.open(id="a", name="f")
        lose(desk)
        assert call.taint


def test_a_call_that_began_in_a_doubtful_payload_without_any_text_is_doubtful_too():
    desk, call = opened()
    assert desk.calls.taint_grown({}, "why")
    assert call.taint == "why"
    other = desk.open(id="b", name="f")
    assert not desk.calls.taint_grown({0: 0, 1: 0}, "why")
    assert other.taint == ""


# --- copies ---------------------------------------------------------------------------------------


def test_a_doubtful_copy_that_agreed_does_not_give_way_to_another_one():
    desk, call = opened('{"b":2}')
    desk.calls.lossy = "bytes were replaced"
    desk.settle(call, '{"b":2}')
    desk.calls.lossy = ""
    desk.taint(call, "a fragment was lost")
    desk.settle(call, WHOLE)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]


def test_a_copy_that_took_the_place_of_the_fragments_does_not_give_way_to_another_one():
    desk, call = opened("null")
    desk.settle(call, "[1]")
    desk.settle(call, WHOLE)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]


def test_where_its_own_item_said_that_there_is_no_text_another_copy_contradicts_it():
    desk, call = opened()
    call.stated = True
    desk.settle(call, WHOLE)
    desk.close(call)
    desk.end_turn("stop")
    assert (told(desk), desk.notes) == ([("a", "conflict")], {"args.mismatch": 1})
    assert desk.last().detail.endswith("(0 and 7 characters)")


@pytest.mark.parametrize("copy", ['{"a":[1,3]}', '{"a":[3,2]}', '{"a":[1,2,3]}'])
def test_a_copy_with_another_element_in_a_list_contradicts(copy: str):
    desk, call = opened('{"a":[1,2]}')
    desk.settle(call, copy)
    desk.close(call)
    desk.end_turn("stop")
    assert told(desk) == [("a", "conflict")]
