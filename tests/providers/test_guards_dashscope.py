"""Guards of DashScope that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.providers.dashscope.growth import Arguments, Growth
from streamnorm.providers.dashscope.numbering import Numbers
from tests.conftest import broken_of, calls_of, piped
from tests.providers.test_dashscope import said, text_of, told

# --- texts -------------------------------------------------------------------------------------------


def grown(*texts: str) -> tuple[Growth, list[str]]:
    """These texts in one place, and what may be told at each."""
    growth = Growth()
    return growth, ["".join(new for _, new in growth.news("p", text)) for text in texts]


def test_so_many_texts_are_held_and_no_more():
    _, heard = grown(*["a"] * 66)
    assert heard == ["a", *[""] * 64, "a" * 65]


@pytest.mark.parametrize(("size", "whole"), [(256, None), (257, True)])
def test_a_text_that_is_said_again_is_whole_if_it_is_longer_than_any_piece(size, whole):
    growth, _ = grown("x" * size, "x" * size)
    assert growth.whole is whole


def test_what_has_to_be_told_decides_nothing_where_nothing_is_held():
    growth, _ = grown("a")
    assert growth.settled() == []
    assert [growth.news("p", text) for text in ("ab", "abc")] == [[], [("p", "bc")]]


def test_what_is_said_in_one_place_says_nothing_of_what_is_held_in_another():
    growth, _ = grown("a", "a")
    assert growth.silence("q") == []
    assert growth.silence("p") == [("p", "a")]
    assert growth.whole is False


def test_a_text_that_went_on_may_be_whole_though_it_is_not_said_again():
    growth, _ = grown("a", "ab")
    assert growth.silence("p") == []
    assert growth.silence("p", last=True) == [("p", "ab")]


def test_a_text_that_is_said_again_does_not_go_on():
    assert grown("a", "ab", "ab")[0].whole is None


def test_nothing_is_decided_twice():
    growth, heard = grown("a", "b", "bc", "bcd", "bcde")
    assert (growth.whole, heard) == (False, ["a", "b", "bc", "bcd", "bcde"])
    assert growth.silence("p", last=True) == []
    growth, heard = grown("a", "ab", "abc", "x", "xy")
    assert (growth.whole, heard) == (True, ["a", "", "bc", "x", "xy"])
    assert growth.settled(whole=False) == []
    assert growth.whole is True


def test_texts_of_several_places_are_told_in_their_order():
    growth = Growth()
    for place, text in (("p", "a"), ("q", "b"), ("p", "a"), ("q", "b")):
        growth.news(place, text)
    assert growth.news("p", "c") == [("p", "a"), ("q", "b"), ("p", "c")]


# --- arguments ---------------------------------------------------------------------------------------


def added(*texts: tuple[str | None, str, bool]) -> list[str | None]:
    """What each adds: of an id, a text, and whether the call is named."""
    arguments = Arguments()
    return [arguments.news("p", id, text, named=named) for id, text, named in texts]


@pytest.mark.parametrize(
    ("texts", "news"),
    [
        ([("a", '{"x"', True), (None, ":1}", False)], ['{"x"', ":1}"]),
        ([("a", '{"x"', True), ("a", '{"x":1}', True)], ['{"x"', ":1}"]),
        ([("a", "", True), (None, '{"x"', False), (None, ":1}", False)], ["", '{"x"', ":1}"]),
        ([("a", "", True), ("a", '{"x"', True), ("a", '{"x":1}', True)], ["", '{"x"', ":1}"]),
        ([(None, "{", True), ("a", '{"x"', True)], ["{", '"x"']),
        ([("a", "{", True), ("b", "{}", True)], ["{", None]),
        ([("a", "", True), ("b", "{}", True)], ["", "{}"]),
        ([("a", "{", True), ("b", "[", True)], ["{", "["]),
        ([("a", "{", True), ("a", "{}", True), ("a", "{", True)], ["{", "}", ""]),
        ([("a", "{", True), ("a", "{}", True), ("a", "x", True)], ["{", "}", None]),
        ([("a", "{", True), ("a", "{}", True), (None, "{", False)], ["{", "}", None]),
        ([("a", "1", True), (None, "1", False), ("a", "11", True)], ["1", "1", "11"]),
        ([("a", "{", True), (None, "", False), ("a", "{}", True)], ["{", "", "}"]),
        ([("a", "", True), ("a", "{", True), (None, "}", False)], ["", "{", "}"]),
        ([("a", "{", True), (None, "{}", True), ("b", "{}x", True)], ["{", "}", None]),
        ([(None, "{", True), ("a", "{}", True), ("b", "{}x", True)], ["{", "}", None]),
        (
            [(None, "{", True), ("a", "}", True), ("b", "[", True), ("b", "[1", True)],
            ["{", "}", "[", "1"],
        ),
        ([("a", "{", True), (None, "}", False), ("b", "{}", True)], ["{", "}", "{}"]),
        (
            [("a", "{", True), (None, "}", False), ("b", "[", True), ("b", "[1", True)],
            ["{", "}", "[", "1"],
        ),
    ],
)
def test_what_a_text_adds_to_the_arguments_before_it(texts: Any, news: list[str | None]):
    assert added(*texts) == news


# --- numbers -----------------------------------------------------------------------------------------


def numbered(lines: bytes, choice: dict[str, Any], reason: str | None = None) -> bytes:
    message = {"role": "assistant", "content": "", **choice}
    output = {"choices": [{"message": message, "finish_reason": reason}]}
    return lines + b"\nevent:result\ndata:" + json.dumps({"output": output}).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("last", "holes"),
    [
        (b"id:4", 1),
        (b"id: 4 ", 1),
        (b"id:3\nid:4", 1),  # the last one counts
        (b"id:4\nid:3", 0),
        (b"id:3", 0),
        (b"id:" + b"4" * 9, 1),
        (b"id:" + b"4" * 10, 0),  # too long for the number of an event
        (b"id:x", 0),
        (b"id:", 0),
        (b"retry:4", 0),
    ],
)
def test_the_number_of_an_event_is_its_id(last: bytes, holes: int):
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    stream = numbered(b"id:1", {"content": "a"}) + numbered(b"id:2", call)
    pipe = Normalizer("dashscope", seed="tests")
    events = pipe.feed(stream + numbered(last, {}, "tool_calls")) + pipe.close()
    assert pipe.notes["wire.gap"] == holes
    assert (len(calls_of(events)), len(broken_of(events))) == (1 - holes, holes)


@pytest.mark.parametrize(
    ("numbers", "goes_on"),
    [
        ([1, 2, 3], [True, True, True]),
        ([5, 6, 8], [True, True, False]),
        ([1, 3], [True, False]),
        ([4, 9, 2], [True, True, True]),  # they never go up by one: no numbers
        ([1, 1, 1], [True, True, True]),
        ([1, 1, 2], [True, True, False]),  # one came twice, as is known now
        ([1, 2, 2, 3], [True, True, False, True]),
        ([1, 1, 2, 3], [True, True, False, True]),
    ],
)
def test_any_number_but_the_next_is_a_hole(numbers: list[int], goes_on: list[bool]):
    held = Numbers()
    assert [held.go_on(number) for number in numbers] == goes_on


# --- events ------------------------------------------------------------------------------------------


def entry(arguments: str, **more: Any) -> dict[str, Any]:
    return {"index": 0, "function": {"arguments": arguments}, **more}


def named(index: int, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"index": index, "id": f"c{index}", "type": "function", "function": function}


def test_what_cannot_be_read_is_of_the_call_whose_place_it_names():
    odd = said(tool_calls=[{"index": 1, "function": "odd"}])
    events = told(said(tool_calls=[named(0), named(1)]), odd, said("tool_calls"))
    assert [c.id for c in calls_of(events)] == ["c0"]
    assert [(b.id, b.reason) for b in broken_of(events)] == [("c1", "conflict")]


def test_an_event_without_a_number_is_no_hole():
    lines = [b"id:1", b"retry:1", b"id:2"]
    payloads = [said(content="Hi."), said(tool_calls=[named(0)]), said("tool_calls")]
    body = [
        line + b"\nevent:result\ndata:" + json.dumps(payload).encode() + b"\n\n"
        for line, payload in zip(lines, payloads, strict=True)
    ]
    events, pipe = piped("dashscope", body)
    assert [c.id for c in calls_of(events)] == ["c0"]
    assert pipe.notes["wire.gap"] == 0


def test_a_choice_has_the_number_that_it_says():
    choice = {"index": 1, "message": {"content": "Hi."}, "finish_reason": "stop"}
    events = told({"output": {"choices": [choice]}})
    assert [e.choice for e in events if e.kind == "text_delta"] == [1]
    events = told({"output": {"choices": [choice | {"index": None}]}})
    assert [e.choice for e in events if e.kind == "text_delta"] == [0]


def test_a_text_beside_choices_is_not_told_again():
    both = said("stop", content="Hi.")
    both["output"]["text"] = "Hi."
    assert text_of(told(both)) == "Hi."


def test_an_output_without_a_text_does_not_say_that_there_is_none():
    found = {"output": {"search_info": {"n": 1}}}
    assert (
        text_of(told(said(content="a"), said(content="a"), found, said("stop", content="ab")))
        == "ab"
    )


def test_sound_is_passed_on():
    events = told({"output": {"audio": {"data": "x"}}}, said("stop", content="Hi."))
    assert [e.payload for e in events if e.kind == "unrecognized"] == [
        {"type": "output.audio", "audio": {"data": "x"}}
    ]


def in_short(*entries: dict[str, Any]) -> list[Any]:
    """The arguments of whole calls, and why others are broken, of entries that come one by one."""
    events = told(*(said(tool_calls=[entry]) for entry in entries), said("tool_calls"))
    return [c.arguments for c in calls_of(events)] + [b.reason for b in broken_of(events)]


def test_arguments_that_are_objects_are_put_together():
    one: Any = {"a": 1}
    other: Any = {"b": 2}
    assert in_short(named(0, one), named(0, other)) == [{"a": 1, "b": 2}]
    assert in_short(*(named(0, each) for each in (one, one, other))) == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("name", [{"id": "c0"}, {"function": {"name": "f"}}])
def test_arguments_are_whole_every_time_where_an_id_or_a_name_says_whose_they_are(name):
    function = {**name.get("function", {}), "arguments": '{"a":1}'}
    first = {**name, "index": 0, "function": {"name": "f", "arguments": '{"a"'}}
    assert in_short(first, {**name, "index": 0, "function": function}) == [{"a": 1}]


def test_arguments_said_again_under_another_name_begin_no_other_call():
    def of(name: str, text: str) -> dict[str, Any]:
        return {"index": 0, "function": {"name": name, "arguments": text}}

    whole = of("f", '{"a":1}')
    assert in_short(whole, whole) == [{"a": 1}]
    for name in ("g", "f\ud83d"):
        assert in_short(whole, of(name, '{"a":1}')) == ["conflict"]
        assert in_short(whole, of(name, '{"a":1}'), whole) == ["conflict"]
    assert in_short(of("f", ""), of("f", '{"a":1}')) == [{"a": 1}]
    one, other = ({**of(n, ""), "id": n} for n in "fg")
    other_text = {**of("g", '{"b":2}'), "id": "g"}
    assert in_short({**whole, **one, "function": whole["function"]}, other, other_text) == [
        {"a": 1}, {"b": 2},
    ]  # fmt: skip
    nameless = {**entry('{"a":1}'), "id": "f"}
    assert in_short(nameless, {**whole, "id": "f"}) == [{"a": 1}]
    both = told(said(tool_calls=[whole, whole]), said("tool_calls"))
    assert [c.arguments for c in calls_of(both)] == [{"a": 1}]


def test_an_object_in_another_place_under_the_id_of_a_call_is_a_doubt():
    other: Any = {"a": 1}
    entry_in_two = {**named(1, other), "id": "c0"}
    assert in_short(named(0, '{"b":1}'), entry_in_two) == ["conflict", "conflict"]


def test_calls_without_an_index_that_say_the_same_are_two():
    both = [{k: v for k, v in named(n, '{"a":1}').items() if k != "index"} for n in (0, 1)]
    events = told(said("tool_calls", tool_calls=both))
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("c0", {"a": 1}), ("c1", {"a": 1})]


def test_a_piece_that_begins_as_the_one_before_it_is_one_in_any_place():
    pieces = [named(1, '{"x":'), *(entry(text) | {"index": 1} for text in ('{"x":', "1}}"))]
    assert in_short(named(0), *pieces) == [{}, {"x": {"x": 1}}]
    both = [named(1, '{"x":'), entry('{"x":1}') | {"index": 1}]
    assert in_short(named(0), *both) == [{}, "invalid_json"]


@pytest.mark.parametrize("odd", [{"index": "x"}, {"function": {"arguments": 5}}])
def test_a_piece_whose_place_or_text_cannot_be_read_breaks_the_call(odd):
    assert in_short(named(0, '{"a":1}'), {**entry(""), **odd}) == ["conflict"]


def test_a_piece_whose_choice_cannot_be_read_breaks_the_call():
    odd = said(tool_calls=[entry("")])
    odd["output"]["choices"][0]["index"] = "x"
    events = told(said(tool_calls=[named(0)]), odd, said("tool_calls"))
    assert [b.reason for b in broken_of(events)] == ["conflict"]


@pytest.mark.parametrize(("status", "kind"), [(399, "finish"), (400, "failed")])
def test_a_status_says_whether_there_is_an_error(status, kind):
    assert told(said("stop", content="Hi.") | {"status_code": status})[-1].kind == kind


def test_a_call_of_one_event_is_whole():
    first = entry('{"a":1}', id="c1") | {"function": {"name": "f", "arguments": '{"a":1}'}}
    events = told(said("tool_calls", tool_calls=[first]))
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("c1", {"a": 1})]
    assert broken_of(events) == []


def test_content_that_is_no_text_is_passed_on_and_the_text_beside_it_is_told():
    events = told(said(content=["a", {"text": "b"}, {"image": "i"}, 5]), said("stop"))
    assert text_of(events) == "ab"
