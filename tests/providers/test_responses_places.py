"""OpenAI Responses, whose a piece or an item is: places, items and ids in, the call that is meant out."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.core.calls import Call
from streamnorm.providers.openai_responses.numbering import Numbers
from streamnorm.providers.openai_responses.places import Places
from tests.core.test_calls import Desk

TYPE = "function_call"


class Room:
    """One call that stands somewhere."""

    def __init__(
        self, index: int | None, item_id: str | None, id: str | None = "a", name: str | None = "f"
    ) -> None:
        self.desk = Desk()
        self.places = Places(self.desk.calls)
        self.call = self.desk.open(id=id, name=name)
        self.places.opened(self.call, TYPE, index, item_id)

    def closed(self) -> Room:
        self.desk.close(self.call)
        return self

    def of_item(self, index: int | None, name: str = "f", adding: bool = False, **item: Any) -> Any:
        return self.places.of_item(TYPE, item, index, name, adding=adding)

    def is_of_another(self, item_id: str | None) -> bool:
        return self.places.is_of_another(self.call, TYPE, item_id, None)


def known(room: Room, index: int) -> Call | None:
    return room.places.known(index, None, TYPE)


def test_a_call_without_a_place_gets_a_piece_of_a_place_that_nobody_has():
    room = Room(None, None)
    assert known(room, 9) is room.call


def test_the_place_of_an_output_is_none_of_its_call():
    room = Room(None, None)
    room.places.remember(room.call, "function_call_output", 5, None)
    assert known(room, 9) is room.call


def test_a_place_stays_where_another_word_for_the_call_names_none():
    room = Room(3, "fa")
    room.places.remember(room.call, TYPE, None, "fz")
    assert known(room, 9) is None


@pytest.mark.parametrize(("index", "item_id"), [(None, "fa"), (0, None), (0, "fa")])
def test_a_nameless_call_that_has_a_place_or_an_item_is_not_that_of_another_item(index, item_id):
    room = Room(index, item_id, None, None)
    assert room.of_item(9, id="fb") is None


def test_a_nameless_call_that_has_neither_is_that_of_the_next_item():
    room = Room(None, None, None, None)
    assert room.of_item(9, id="fb") is room.call


def test_an_unknown_item_in_the_place_of_a_closed_one_is_of_another():
    assert Room(0, "fa").closed().is_of_another("fb") is True


@pytest.mark.parametrize("item_id", [None, "fa"])
def test_its_own_item_and_no_item_at_all_are_of_no_other(item_id: str | None):
    assert Room(0, "fa").closed().is_of_another(item_id) is False


def test_an_item_in_the_place_of_a_closed_call_that_has_none_is_of_no_other():
    assert Room(0, None).closed().is_of_another("fb") is False


def test_an_item_that_was_learnt_late_is_known():
    room = Room(0, None)
    room.places.remember(room.call, TYPE, 0, "fa")
    assert room.closed().is_of_another("fb") is True


def test_each_of_two_items_of_a_call_is_its_own():
    room = Room(0, "fa")
    room.places.remember(room.call, TYPE, 0, "fz")
    assert room.closed().is_of_another("fz") is False


def test_an_item_without_an_id_is_that_of_its_place_whatever_it_calls_it():
    room = Room(0, "fa")
    assert room.of_item(0, "g", adding=True, call_id="zz") is room.call


def test_an_item_that_is_added_in_the_place_of_a_nameless_one_is_another():
    room = Room(0, "fa", None, None)
    assert room.of_item(0, adding=True, id="fb") is None
    assert room.call.taint == ""


def test_an_item_that_ends_in_the_place_of_a_nameless_one_makes_that_doubtful():
    room = Room(0, "fa", None, None)
    assert room.of_item(0, id="fb") is room.call
    assert room.call.taint == "arguments of another item came in its place"


@pytest.mark.parametrize("adding", [True, False])
def test_another_item_of_that_name_is_the_same_call_unless_it_is_added(adding: bool):
    room = Room(0, "fa")
    found = room.of_item(0, adding=adding, id="fb", call_id="b")
    assert found is (None if adding else room.call)


HEARD: dict[str, tuple[dict[str, Any], int, bool]] = {
    "by the id of its call": ({"call_id": "a"}, 9, True),
    "by its own id": ({"id": "fa"}, 9, True),
    "by its place": ({}, 0, True),
    "by nothing": ({"call_id": "b", "id": "fb"}, 9, False),
}


@pytest.mark.parametrize("name", HEARD)
def test_an_item_was_heard_of_by_its_id_that_of_its_call_or_its_place(name: str):
    item, index, expected = HEARD[name]
    assert Room(0, "fa").places.has_item(TYPE, item, index) is expected


@pytest.mark.parametrize(("item_id", "over"), [("fa", True), ("fz", False), (None, False)])
def test_an_item_is_over_if_it_is_the_very_one_that_was_told(item_id: Any, over: bool):
    room = Room(0, "fa")
    room.desk.append(room.call, "{}")
    room.closed()
    assert room.places.is_over(room.call, {"call_id": "a", "id": item_id}, 0) is over


@pytest.mark.parametrize("text", ["", "{"])
def test_an_item_elsewhere_is_that_of_its_calls_id_if_nothing_of_it_was_heard(text: str):
    room = Room(0, "fa")
    if text:
        room.desk.append(room.call, text)
    assert room.of_item(9, id="fb", call_id="a") is (None if text else room.call)


def test_an_item_that_begins_under_the_id_of_a_call_is_another():
    assert Room(0, "fa", "fb").of_item(0, adding=True, id="fb") is None


def test_an_item_elsewhere_is_the_call_that_it_names_where_no_other_item_was_its_own():
    room = Room(0, None).closed()
    assert room.of_item(1, id="fx", call_id="a") is room.call
    other = Room(0, "fa").closed()
    assert other.of_item(1, id="fx", call_id="a") is None


@pytest.mark.parametrize(
    ("item_id", "index", "heard"), [("fa", 9, True), ("fb", 0, True), ("fb", 9, False)]
)
def test_an_item_was_heard_of_by_its_id_its_place_or_its_call(item_id: str, index: int, heard):
    places = Room(0, "fa").places
    assert places.has_item(TYPE, {"id": item_id}, index) is heard
    assert places.has_item(TYPE, {"id": item_id, "call_id": "a"}, index)


def test_an_item_of_no_tool_is_at_home_where_it_was_added_and_else_where_it_says():
    places = Room(None, None).places
    places.house("m", 0)
    places.house("", 3)
    assert (places.home_of("m", 7), places.home_of("x", 7), places.home_of("", 7)) == (0, 7, 7)


# --- the final response -----------------------------------------------------------------------------

WHOLE = '{"a":1}'


class Rooms(Room):
    """Two calls of one name, each in its place, and its item."""

    def __init__(self, id: str = "b", **options: Any) -> None:
        super().__init__(0, "fa", **options)
        self.other = self.desk.open(id=id, name="f")
        self.places.opened(self.other, TYPE, 1, "fb")

    def tell(self, call: Call, text: str = WHOLE) -> None:
        self.desk.append(call, text)
        self.desk.close(call)

    def final(self, index: int, **item: Any) -> Call | None:
        return self.places.of_final_item(TYPE, item, index, "f")

    def may_be_told(self, text: str = WHOLE, **listed: int) -> bool:
        return self.places.may_be_told(self.call, text, listed)


def test_an_item_at_the_end_whose_only_id_is_its_own_is_that_item_wherever_it_stands():
    rooms = Rooms()
    assert rooms.final(1, id="fa") is rooms.call
    assert rooms.final(0, id="fb") is rooms.other


def test_an_item_at_the_end_that_names_a_call_is_that_one_whatever_its_own_id_is():
    rooms = Rooms()
    assert rooms.final(1, id="fa", call_id="b") is rooms.other


def test_an_item_at_the_end_is_the_call_that_it_names_where_that_said_no_item_of_its_own():
    room = Room(0, None)
    other = room.desk.open(id="b", name="f")
    room.places.opened(other, TYPE, 1, "fb")
    item = {"id": "fb", "call_id": "a"}
    assert room.places.of_final_item(TYPE, item, 1, "f") is room.call


def test_an_item_at_the_end_that_two_calls_may_be_is_the_one_in_its_place():
    rooms = Rooms()
    assert rooms.final(0, id="fb", call_id="a") is rooms.call
    assert rooms.final(1, id="fb", call_id="a") is rooms.other


def test_an_item_at_the_end_may_have_the_id_of_its_call_for_its_own():
    room = Room(0, "fa", "fb", "g").closed()
    item = {"id": "fb", "call_id": "c"}
    assert room.places.of_final_item(TYPE, item, 0, "f") is room.call
    assert room.places.of_final_item(TYPE, {**item, "id": "fc"}, 0, "f") is None


def test_a_call_may_be_told_as_one_that_says_the_same_and_was_never_added():
    rooms = Rooms()
    assert not rooms.may_be_told()
    rooms = Rooms()
    rooms.tell(rooms.other)
    assert rooms.may_be_told()
    assert not rooms.may_be_told("{}")


def test_a_call_that_is_closed_is_no_other():
    rooms = Rooms()
    rooms.tell(rooms.other)
    rooms.closed()
    assert not rooms.may_be_told()


def test_a_call_may_not_be_told_as_one_before_it():
    rooms = Rooms()
    rooms.tell(rooms.call)
    assert not rooms.places.may_be_told(rooms.other, WHOLE, {})


@pytest.mark.parametrize("listed", [{"b": 1}, {"fb": 1}])
def test_a_call_may_not_be_told_as_one_that_the_final_response_has(listed: dict[str, int]):
    rooms = Rooms()
    rooms.tell(rooms.other)
    assert not rooms.may_be_told(**listed)
    assert not rooms.may_be_told()  # that one is known by now


def test_a_call_may_not_be_told_as_one_that_was_added():
    rooms = Rooms()
    rooms.tell(rooms.other)
    rooms.places.add(rooms.other)
    assert not rooms.may_be_told()


@pytest.mark.parametrize("fails", [True, False])
def test_a_call_may_not_be_told_as_one_that_is_open_or_broken(fails: bool):
    rooms = Rooms()
    rooms.desk.append(rooms.other, WHOLE)
    if fails:
        rooms.desk.fail(rooms.other, "conflict", "x")
    assert not rooms.may_be_told()


def test_a_call_may_be_told_as_another_of_its_id_where_that_is_listed_once():
    rooms = Rooms("a")
    rooms.tell(rooms.call)
    assert rooms.places.may_be_told(rooms.other, WHOLE, {"a": 1})
    assert not rooms.places.may_be_told(rooms.other, "{}", {"a": 1})
    assert not rooms.places.may_be_told(rooms.other, WHOLE, {"a": 2})


@pytest.mark.parametrize("fails", [True, False])
def test_a_call_may_not_be_told_as_another_of_its_id_that_is_open_or_broken(fails: bool):
    rooms = Rooms("a")
    rooms.desk.append(rooms.call, WHOLE)
    if fails:
        rooms.desk.fail(rooms.call, "conflict", "x")
    assert not rooms.places.may_be_told(rooms.other, WHOLE, {"a": 1})


def test_what_a_call_said_before_it_was_told_is_not_kept():
    rooms = Rooms("a")
    assert rooms.places.told_alike(TYPE, "f", WHOLE, set()) is None
    rooms.tell(rooms.call)
    assert rooms.places.may_be_told(rooms.other, WHOLE, {"a": 1})


# --- the numbers of events ------------------------------------------------------------------------------


def numbers() -> Numbers:
    desk = Desk()
    return Numbers(desk.calls, desk.scribe)


def test_the_first_number_alone_is_the_last_and_none_if_anything_without_one_came_behind_it():
    heard = numbers()
    heard.look(4)
    assert heard.last == 4
    heard.skip()
    assert heard.last is None
    heard.look(None)
    assert heard.last is None


def test_before_the_first_number_no_event_was_heard():
    due = numbers()
    due.expect(0)
    assert due.last is None
    due.expect(1)
    assert due.last == 0


def test_an_event_beside_a_response_that_is_not_numbered_changes_nothing():
    heard = numbers()
    heard.look_beside(None)
    assert heard.last is None
    heard.look(4)
    heard.look_beside(5)
    heard.look(6)
    assert heard.last == 6
