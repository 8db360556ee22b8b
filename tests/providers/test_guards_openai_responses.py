"""OpenAI Responses, guard by guard: whose a text is, what closes or breaks a call, how a turn ends."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from streamnorm.events import (
    BrokenToolCall,
    Event,
    Failed,
    ProviderToolResult,
    ReasoningDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    Unrecognized,
    Usage,
)
from streamnorm.providers.openai_responses.items import TOOLS
from tests.conftest import sse, text_of, traced
from tests.providers.streams import Responses, end, fate, heard

R = Responses
ONE, TWO = '{"n":1}', '{"n":2}'
OVER, CALLED, STOPPED = R.completed(), ("finish", "tool_calls"), ("finish", "stop")


def told(*frames: bytes, wire: str = "openai_responses") -> list[Event]:
    return heard(wire, R.CREATED + b"".join(frames))[0]


def ends(*frames: bytes) -> list[tuple[str, str, Any]]:
    """Every call: its id, its name, its arguments or why it is broken."""
    return [
        (_known(e.id), e.name, e.arguments if isinstance(e, ToolCall) else e.reason)
        for e in told(*frames)
        if isinstance(e, ToolCall | BrokenToolCall)
    ]


def _known(id: str) -> str:
    return id if len(id) < 8 else "minted"


def fc(
    id: str | None, call_id: str | None, name: str | None = "pay", **more: Any
) -> dict[str, Any]:
    said = {"id": id, "call_id": call_id, "name": name, "arguments": "", **more}
    return {"type": "function_call", **{k: v for k, v in said.items() if v is not None}}


def custom(id: str | None, call_id: str | None, **more: Any) -> dict[str, Any]:
    return {**fc(id, call_id, "run", **more), "type": "custom_tool_call"}


def piece(text: Any, **place: Any) -> bytes:
    return R.say("function_call_arguments.delta", delta=text, **place)


def said(text: Any, **place: Any) -> bytes:
    return R.say("function_call_arguments.done", arguments=text, **place)


def output(**fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "output": "ok", **fields}


A, B = R.added(fc("fa", "a"), 0), R.added(fc("fb", "b", "rob"), 1)
GROWN = A + piece(ONE, output_index=0)
A_DONE = R.done(fc("fa", "a", arguments=ONE), 0)
B_DONE = R.done(fc("fb", "b", "rob", arguments=TWO), 1)
CUT = "truncated"


# --- whose a fragment is --------------------------------------------------------------------------

WHOSE: dict[str, tuple[list[bytes], list[tuple[str, str, Any]]]] = {
    "by its place, whatever its item is": (
        [A, B, piece(ONE, output_index=0, item_id="zz")],
        [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "by its place alone": (
        [A, B, piece(ONE, output_index=0)], [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "by its item": (
        [A, B, piece(ONE, item_id="fa")], [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "by its item, in a place that nobody has": (
        [A, B, piece(ONE, item_id="fa", output_index=9)],
        [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "by its id": ([A, B, piece(ONE, call_id="a")], [("a", "pay", {"n": 1}), ("b", "rob", CUT)]),
    "by its id, of an item that nobody has": (
        [A, B, piece(ONE, call_id="a", item_id="zz")],
        [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "a copy, by its id": (
        [A, B, said(ONE, call_id="a")], [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "a copy, by its item": (
        [A, B, said(ONE, item_id="fa")], [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "a copy, by its place": (
        [A, B, said(ONE, output_index=0)], [("a", "pay", {"n": 1}), ("b", "rob", CUT)],
    ),
    "its place is of one and its id of another": (
        [A, B, piece(ONE, output_index=0, call_id="b")],
        [("a", "pay", "conflict"), ("b", "rob", "conflict")],
    ),
    "a copy in the place of one with the id of another": (
        [A, B, said(ONE, output_index=0, call_id="b")],
        [("a", "pay", "conflict"), ("b", "rob", "conflict")],
    ),
    "an id that two calls share": (
        [A, R.added(fc("fb", "a", "rob"), 1), piece(ONE, output_index=0, call_id="a"), A_DONE,
         piece(TWO, output_index=1, call_id="a"),
         R.done(fc("fb", "a", "rob"), 1)],
        [("a", "pay", {"n": 1}), ("minted", "rob", {"n": 2})],
    ),
    "the id of a call of another type": (
        [A, R.added(custom("cu", "c"), 1), piece(ONE, call_id="c")],
        [("a", "pay", {"n": 1}), ("c", "run", CUT)],
    ),
    "of no place, item or id that anybody has": (
        [A, piece(ONE, output_index=9, item_id="zz")],
        [("a", "pay", "conflict"), ("minted", "", "conflict")],
    ),
    "of an item that nobody has, with one call open": (
        [A, piece(ONE, item_id="zz")], [("a", "pay", {"n": 1})],
    ),
    "of a place that nobody has, with a call open in another": (
        [A, piece(ONE, output_index=9)],
        [("a", "pay", "conflict"), ("minted", "", "conflict")],
    ),
    "of a place that nobody has, with a call that grows in another": (
        [A, piece('{"n":', output_index=0), piece("1}", output_index=9)],
        [("a", "pay", "conflict"), ("minted", "", "conflict")],
    ),
    "of a place that nobody has, with a call open in none": (
        [R.added(fc("fa", "a"), None), piece(ONE, output_index=9)],
        [("a", "pay", {"n": 1})],
    ),
    "a copy of a place that nobody has, with a call open in another": (
        [A, said(ONE, output_index=9)],
        [("a", "pay", "conflict"), ("minted", "", "conflict")],
    ),
    "a copy of a place that nobody has, of what came in another": (
        [GROWN, said(ONE, output_index=9)],
        [("a", "pay", {"n": 1})],
    ),
    "a copy of a place that nobody has, of something else": (
        [GROWN, said(TWO, output_index=9)],
        [("a", "pay", "conflict")],
    ),
    "of a place and an item that nobody has, with a call open in no place": (
        [R.added(fc("fa", "a"), None), piece(ONE, output_index=9, item_id="zz")],
        [("a", "pay", "conflict"), ("minted", "", "conflict")],
    ),
    "of nothing, with one call open": ([A, piece(ONE)], [("a", "pay", {"n": 1})]),
    "of nothing, with two open": (
        [A, B, piece(ONE)], [("a", "pay", "conflict"), ("b", "rob", "conflict")],
    ),
    "of nothing, with two open whose items say it again": (
        [A, B, piece(ONE), A_DONE, B_DONE],
        [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
    "a copy of nothing, with two open": (
        [GROWN, B, said(ONE)], [("a", "pay", "conflict"), ("b", "rob", "conflict")],
    ),
    "a copy of nothing, with two open whose items say it again": (
        [A, B, said(ONE), A_DONE, B_DONE], [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
    "a copy of nothing, with one open": ([A, said(ONE)], [("a", "pay", {"n": 1})]),
    "of nothing, with one of another type open": (
        [A, R.added(custom("cu", "c"), 1), piece(ONE)],
        [("a", "pay", {"n": 1}), ("c", "run", CUT)],
    ),
    "of nothing, with one that is closed": (
        [A, R.done(fc("fa", "a"), 0), B, piece(ONE)],
        [("a", "pay", {}), ("b", "rob", {"n": 1})],
    ),
    "empty, and of none": ([piece("", output_index=5), said("", output_index=5)], []),
    "empty, with an id": (
        [R.added(fc("fa", None), 0), piece("", output_index=0, call_id="x"),
         piece(ONE, output_index=0)], [("x", "pay", {"n": 1})],
    ),
    "no text": ([GROWN, piece(None, output_index=0)], [("a", "pay", "conflict")]),
    "no text, and its item says it again": (
        [GROWN, piece(None, output_index=0), A_DONE], [("a", "pay", {"n": 1})],
    ),
    "a copy that says nothing": ([GROWN, said(None, output_index=0)], [("a", "pay", {"n": 1})]),
    "a copy that is an object": ([A, said({"n": 1}, output_index=0)], [("a", "pay", {"n": 1})]),
    "of a kind that nobody knows, in the midst of one": (
        [A, piece('{"n":', output_index=0), R.say("new.thing", delta="x"), piece("1}", output_index=0)],
        [("a", "pay", "conflict")],
    ),
    "behind a copy of all of it": (
        [GROWN, said(ONE, output_index=0), piece(" ", item_id="fa")], [("a", "pay", "conflict")],
    ),
    "empty, behind a copy of all of it": (
        [GROWN, said(ONE, output_index=0), piece("", item_id="fa")], [("a", "pay", {"n": 1})],
    ),
    "behind the end of its item, with another call open": (
        [A, said("{", output_index=0), R.done(fc("fa", "a", arguments="{"), 0), B,
         piece("}", output_index=0), piece(TWO, output_index=1)],
        [("a", "pay", "conflict"), ("b", "rob", "conflict")],
    ),
    "a text in its place": ([GROWN, R.text("x", 0)], [("a", "pay", "conflict")]),
    "a text in another place": ([GROWN, R.text("x", 1)], [("a", "pay", {"n": 1})]),
    "a text in its place when it is closed": (
        [A, R.done(fc("fa", "a"), 0), R.text("x", 0)], [("a", "pay", {})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOSE)
def test_a_text_is_of_the_call_that_it_names_or_breaks_those_that_it_may_be_of(name: str):
    frames, expected = WHOSE[name]
    assert sorted(ends(*frames, OVER), key=str) == sorted(expected, key=str)


def test_pieces_of_an_item_that_was_given_up_are_not_of_the_one_in_its_place():
    """Not the first one, and none of those that go on from it."""
    body = [Responses.CREATED]
    for id in ("x", "y"):
        body.append(sse({"type": "response.output_item.added", "output_index": 1,
                         "item": {"type": "function_call", "id": id, "call_id": id, "name": "pay",
                                  "arguments": ""}}))  # fmt: skip
    body += [piece(text, output_index=1, item_id="x") for text in ('{"n"', ":1", "}")]
    assert [event.raw for event in told(*body) if event.kind == "broken_tool_call"] == ["", ""]


def test_an_empty_fragment_is_not_told():
    events = told(
        A, piece("", output_index=0, call_id="a"), piece(ONE, output_index=0), A_DONE, OVER
    )
    assert [e.text for e in events if isinstance(e, ToolCallDelta)] == [ONE]


def test_a_fragment_of_a_text_tool_is_text():
    frames = (
        R.added(custom("cu", "c"), 0),
        R.say("custom_tool_call_input.delta", delta={"a": 1}, output_index=0),
        R.say("custom_tool_call_input.delta", delta="x", output_index=0),
    )
    events = told(*frames, R.done(custom("cu", "c", status="completed"), 0), OVER)
    assert fate(events) == (["conflict"], STOPPED)


# --- a call of which something came before its item -----------------------------------------------

EARLY: dict[str, tuple[list[bytes], list[tuple[str, str, Any]]]] = {
    "its item comes": (
        [piece(ONE, output_index=0, item_id="fa"), A, A_DONE], [("a", "pay", {"n": 1})],
    ),
    "its item comes only when it is done": (
        [piece(ONE, output_index=0, item_id="fa"), A_DONE], [("a", "pay", {"n": 1})],
    ),
    "it said no place, and one item comes": ([piece(ONE), A, A_DONE], [("a", "pay", {"n": 1})]),
    "it said another place": (
        [piece(ONE, output_index=3, item_id="zz"), A, A_DONE],
        [("a", "pay", {"n": 1}), ("minted", "", "conflict")],
    ),
    "it is of another type": (
        [R.say("custom_tool_call_input.delta", delta="x"), A, A_DONE],
        [("a", "pay", {"n": 1}), ("minted", "", "conflict")],
    ),
    "its item has another id": (
        [piece(ONE, output_index=0, item_id="zz"), A_DONE], [("a", "pay", {"n": 1})],
    ),
    "its copy has the name, and its item the id": (
        [said(ONE, output_index=0, name="pay"), A_DONE], [("a", "pay", {"n": 1})],
    ),
    "its copy has the name, and no item comes": (
        [said(ONE, output_index=0, name="pay")], [("minted", "pay", {"n": 1})],
    ),
    "its copy has name and id, and no item comes": (
        [said(ONE, output_index=0, name="pay", call_id="a")], [("a", "pay", {"n": 1})],
    ),
    "a copy has the name, and another has not": (
        [said(ONE, output_index=0, name="pay"), said(ONE, output_index=0)],
        [("minted", "pay", {"n": 1})],
    ),
    "a copy has the name, and its item another": (
        [said(ONE, output_index=0, name="rob"), A], [("a", "pay", "conflict")],
    ),
    "its item has the name, and a copy another": (
        [GROWN, said(ONE, output_index=0, name="rob"), A_DONE], [("a", "pay", "conflict")],
    ),
    "nobody ever names it": ([said(ONE, output_index=0, call_id="a")], [("a", "", "conflict")]),
    "an id of its item is none of its own": (
        [said(ONE, item_id="fa", name="pay")], [("minted", "pay", {"n": 1})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EARLY)
def test_what_comes_before_its_item_is_of_one_call_with_it(name: str):
    frames, expected = EARLY[name]
    assert sorted(ends(*frames, OVER), key=str) == sorted(expected, key=str)


def test_a_call_starts_with_the_id_that_its_item_brings():
    events = told(said(ONE, output_index=0, name="pay"), A_DONE, OVER)
    assert [e.id for e in events if isinstance(e, ToolCallStart)] == ["a"]


# --- one item is one call -------------------------------------------------------------------------

ITEMS: dict[str, tuple[list[bytes], list[tuple[str, str, Any]]]] = {
    "found by its id": (
        [A, B, R.done(fc(None, "a", arguments=ONE), None), B_DONE],
        [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
    "an id that another family has": (
        [GROWN, A_DONE, R.done(custom("cu", "a", input="x"), 1)],
        [("a", "pay", {"n": 1}), ("minted", "run", {"input": "x"})],
    ),
    "an id that another place and item have": (
        [GROWN, A_DONE, R.done(fc("fz", "a", arguments=TWO), 5)],
        [("a", "pay", {"n": 1}), ("minted", "pay", {"n": 2})],
    ),
    "an id that another place and item have, closed and without text": (
        [A, R.done(fc("fa", "a"), 0), R.done(fc("fz", "a", "rob", arguments=TWO), 5)],
        [("a", "pay", {}), ("minted", "rob", {"n": 2})],
    ),
    "an id that another place and item have, which has text": (
        [GROWN, R.done(fc("fz", "a", "rob", arguments=TWO), 5), A_DONE],
        [("a", "pay", {"n": 1}), ("minted", "rob", {"n": 2})],
    ),
    "an id that another family has, of no item": (
        [GROWN, A_DONE, R.done(custom(None, "a", input="x"), 1)],
        [("a", "pay", {"n": 1}), ("minted", "run", {"input": "x"})],
    ),
    "another item in no place, when it is over": (
        [GROWN, A_DONE, R.done(fc("fz", "a", arguments=ONE), None)], [("a", "pay", {"n": 1})],
    ),
    "another item with an id that it was given later": (
        [GROWN, A_DONE, R.done(fc("fa", "z", arguments=ONE), 0),
         R.done(fc("fy", "z", arguments=ONE), 0)],
        [("a", "pay", {"n": 1})],
    ),
    "another item of a call whose id another has, too": (
        [GROWN, A_DONE, R.done(fc("fb", "a", "rob", arguments=TWO), 1),
         R.done(fc("fz", "a", "rob", arguments=TWO), 1)],
        [("a", "pay", {"n": 1}), ("minted", "rob", {"n": 2})],
    ),
    "another item in the place of one that is closed": (
        [A, R.done(fc("fa", "a"), 0), R.done(fc("fz", "z"), 0)],
        [("a", "pay", {}), ("z", "pay", {})],
    ),
    "an item in no place is not that of another": (
        [R.added(fc(None, None), None), piece(ONE), B, B_DONE],
        [("minted", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
    "an item that has its own id only when it is done, in another place": (
        [R.added(fc(None, "a"), 0), R.done(fc("fa", "a", arguments=ONE), 5)],
        [("a", "pay", {"n": 1})],
    ),
    "the same item in another place": (
        [GROWN, R.done(fc("fa", "a", arguments=ONE), 5)], [("a", "pay", {"n": 1})],
    ),
    "another item in the same place": (
        [GROWN, R.done(fc("fz", "a", arguments=ONE), 0)], [("a", "pay", {"n": 1})],
    ),
    "another item in no place": (
        [GROWN, R.done(fc("fz", "a", arguments=ONE), None)], [("a", "pay", {"n": 1})],
    ),
    "no item in another place": (
        [GROWN, R.done(fc(None, "a", arguments=ONE), 5)], [("a", "pay", {"n": 1})],
    ),
    "item and id are changed in its place": (
        [GROWN, R.done(fc("fz", "z", arguments=ONE), 0)], [("z", "pay", {"n": 1})],
    ),
    "item and id are changed, and it was over": (
        [GROWN, A_DONE, R.done(fc("fz", "z", arguments=TWO), 0)],
        [("a", "pay", {"n": 1}), ("z", "pay", {"n": 2})],
    ),
    "item, id and name are changed": (
        [GROWN, R.done(fc("fz", "z", "rob", arguments=TWO), 0)],
        [("a", "pay", "conflict"), ("z", "rob", {"n": 2})],
    ),
    "another item is added in its place": (
        [GROWN, R.added(fc("fz", "z"), 0), R.done(fc("fz", "z", arguments=TWO), 0)],
        [("a", "pay", "conflict"), ("z", "pay", {"n": 2})],
    ),
    "the same item is added again": ([A, GROWN, A_DONE], [("a", "pay", {"n": 1})]),
    "the same item is added again when it has grown": (
        [GROWN, A, A_DONE], [("a", "pay", "conflict"), ("a", "pay", {"n": 1})],
    ),
    "items without ids are known by their places": (
        [R.added(fc(None, None), 0), R.added(fc(None, None, "rob"), 1),
         R.done(fc(None, None, arguments=ONE), 0),
         R.done(fc(None, None, "rob", arguments=TWO), 1)],
        [("minted", "pay", {"n": 1}), ("minted", "rob", {"n": 2})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_one_item_is_one_call_whatever_ids_it_is_given(name: str):
    frames, expected = ITEMS[name]
    assert sorted(ends(*frames, OVER), key=str) == sorted(expected, key=str)


# --- what closes it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "streamed", "expected"),
    [
        ("completed", False, {}), (None, False, {}), ("in_progress", False, CUT),
        ("in_progress", True, {"n": 1}), ("searching", False, {}), ("incomplete", True, CUT),
        ("cancelled", True, CUT), ("failed", True, "provider_error"), ("new", True, {"n": 1}),
        ([], True, {"n": 1}), ({"a": 1}, False, {}), (5, True, {"n": 1}),
    ],
)  # fmt: skip
def test_an_item_closes_its_call_unless_its_status_denies_it(status, streamed, expected):
    item = {**fc("fa", "a"), "status": status}
    assert ends(GROWN if streamed else A, R.done(item, 0), OVER) == [("a", "pay", expected)]


@pytest.mark.parametrize(
    ("status", "expected"),
    [(None, CUT), ("", CUT), ("searching", CUT), ("failed", "provider_error"),
     ("completed", {"n": 1}), ("new", {"n": 1})],
)  # fmt: skip
def test_an_incomplete_response_closes_what_it_says_is_complete(status, expected):
    response = {"status": "incomplete", "incomplete_details": {"reason": "x"},
                "output": [{**fc("fa", "a", arguments=ONE), "status": status}]}  # fmt: skip
    assert ends(A, R.say("incomplete", response=response)) == [("a", "pay", expected)]


def test_an_item_in_progress_that_has_grown_is_told_when_it_is_done():
    item = {**fc("fa", "a"), "status": "in_progress"}
    assert ends(GROWN, R.done(item, 0)) == [("a", "pay", {"n": 1})]
    assert ends(A, R.done(item, 0)) == [("a", "pay", CUT)]


def test_an_item_in_progress_whose_input_is_empty_may_still_grow():
    item = {**fc("fa", "a"), "status": "in_progress"}
    assert ends(A, R.done(item, 0), piece(ONE, output_index=0), OVER) == [("a", "pay", {"n": 1})]


@pytest.mark.parametrize(
    ("before", "item", "told"),
    [
        (b"", fc(None, None, arguments=TWO), ("minted", "pay", {"n": 2})),
        (GROWN, fc(None, None, arguments=TWO), ("minted", "pay", "conflict")),
        (GROWN, fc(None, None, "rob", arguments=TWO), ("minted", "rob", {"n": 2})),
        (GROWN, fc(None, "b", arguments=TWO), ("b", "pay", {"n": 2})),
    ],
)
def test_an_item_that_was_never_added_is_in_doubt_if_it_may_be_one_that_goes_on(before, item, told):
    assert told in ends(before, R.done(item, 1), OVER)


def test_an_input_that_was_streamed_needs_no_field_of_its_item():
    item = {"type": "custom_tool_call", "id": "cu", "call_id": "c", "name": "run"}
    grown = R.added(item, 0) + R.say("custom_tool_call_input.delta", delta="x", output_index=0)
    assert ends(grown, R.done(item, 0), OVER) == [("c", "run", {"input": "x"})]
    assert ends(R.added(item, 0), R.done(item, 0), OVER) == [("c", "run", "conflict")]


# --- what the provider ran ------------------------------------------------------------------------

SEARCH = {"type": "web_search_call", "id": "ws", "action": {"q": 1}}


def test_a_hosted_call_that_failed_says_so_once():
    failed = {**SEARCH, "status": "failed", "error": "no"}
    events = told(R.done(failed), R.done(failed), R.completed(failed))
    assert [(e.status, e.payload) for e in events if isinstance(e, ToolProgress)] == [
        ("failed", "no")
    ]
    assert not any(isinstance(e, ToolProgress) for e in told(R.done(SEARCH), R.completed(SEARCH)))


def test_a_result_beside_its_call_is_told_once():
    item = {"type": "file_search_call", "id": "fs", "queries": ["x"], "results": [1],
            "status": "completed"}  # fmt: skip
    events = told(R.done(item), R.done(item), R.completed(item))
    assert [e.output for e in events if isinstance(e, ProviderToolResult)] == [[1]]


OUTPUTS: dict[str, tuple[list[bytes], int]] = {
    "with an id, twice": ([R.done(output(id="o"), 1), R.done(output(id="o"), 2)], 1),
    "without one, in two places": ([R.done(output(), 1), R.done(output(), 2)], 2),
    "without one, in one place": ([R.done(output(), 1), R.done(output(), 1)], 1),
    "without one, in no place": ([R.done(output(), None), R.done(output(), None)], 1),
    "two that differ in one place": ([R.done(output(), 1), R.done(output(output="no"), 1)], 2),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_that_is_said_again_is_told_once(name: str):
    frames, expected = OUTPUTS[name]
    events = told(*frames, OVER)
    assert sum(isinstance(e, ProviderToolResult) for e in events) == expected


def test_alike_outputs_in_no_place_answer_as_many_calls_as_wait():
    calls = R.done(fc("fa", None, arguments="{}"), 0) + R.done(fc("fb", None, arguments="{}"), 1)
    events = told(calls, R.done(output(), None), R.done(output(), None), OVER)
    assert [e.call for e in events if isinstance(e, ProviderToolResult)] == [0, 1]


@pytest.mark.parametrize(("times", "expected"), [(1, 1), (2, 2), (3, 3)])
def test_outputs_without_ids_are_said_again_at_the_end_as_often_as_they_were_told(times, expected):
    frames = b"".join(R.done(output(), at) for at in range(2))
    events = told(frames, R.completed(*[output()] * times))
    assert sum(isinstance(e, ProviderToolResult) for e in events) == max(expected, 2)


def test_an_output_that_only_the_end_has_is_told():
    events = told(R.done(output(id="o"), 0), R.completed(output(id="o"), output(id="p", output=1)))
    assert [e.output for e in events if isinstance(e, ProviderToolResult)] == ["ok", 1]


# --- the end --------------------------------------------------------------------------------------

SECOND = fc("fb", "b", "rob", arguments=TWO)
FINAL: dict[str, tuple[list[bytes], list[dict[str, Any]], list[tuple[str, str, Any]]]] = {
    "the same": ([GROWN, A_DONE], [fc("fa", "a", arguments=ONE)], [("a", "pay", {"n": 1})]),
    "with other ids": ([GROWN, A_DONE], [fc("zz", "z", arguments=ONE)], [("a", "pay", {"n": 1})]),
    "with other spaces": (
        [GROWN, A_DONE], [fc("zz", "z", arguments='{"n": 1}')], [("a", "pay", {"n": 1})],
    ),
    "with another item and place": (
        [GROWN, A_DONE], [{"type": "message", "content": []}, fc("zz", "a", arguments=ONE)],
        [("a", "pay", {"n": 1})],
    ),
    "without ids": (
        [GROWN, A_DONE], [fc(None, None, arguments=ONE)], [("a", "pay", {"n": 1})],
    ),
    "two alike, without ids": (
        [R.done(fc("fa", "a", arguments=ONE), 3), R.done(fc("fb", "b", arguments=ONE), 4)],
        [fc("x", "x", arguments=ONE), fc("y", "y", arguments=ONE)],
        [("a", "pay", {"n": 1}), ("b", "pay", {"n": 1})],
    ),
    "one more than was told": (
        [R.done(fc("fa", "a", arguments=ONE), 3)],
        [fc("x", "x", arguments=ONE), fc("y", "y", arguments=ONE)],
        [("a", "pay", {"n": 1}), ("y", "pay", {"n": 1})],
    ),
    "another that was never heard": (
        [GROWN, A_DONE], [fc("fa", "a", arguments=ONE), SECOND],
        [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
    "another name with the same text": (
        [R.done(fc("fa", "a", arguments=ONE), 3)],
        [fc("fa", "a", arguments=ONE), fc("y", "y", "rob", arguments=ONE)],
        [("a", "pay", {"n": 1}), ("y", "rob", {"n": 1})],
    ),
    "a call that was never closed": (
        [GROWN], [fc("fa", "a", arguments=ONE, status="completed")], [("a", "pay", {"n": 1})],
    ),
    "a call that was never heard": ([], [fc("fa", "a", arguments=ONE)], [("a", "pay", {"n": 1})]),
    "without a call that is open": ([GROWN, B], [SECOND],
                                    [("a", "pay", "conflict"), ("b", "rob", {"n": 2})]),
    "nothing": ([GROWN], [], [("a", "pay", {"n": 1})]),
    "in the place of another": (
        [GROWN, B], [SECOND, fc("fa", "a", arguments=ONE)],
        [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
    "without ids, by their places": (
        [R.added(fc(None, None), 0), R.added(fc(None, None, "rob"), 1)],
        [fc(None, None, arguments=ONE), fc(None, None, "rob", arguments=TWO)],
        [("minted", "pay", {"n": 1}), ("minted", "rob", {"n": 2})],
    ),
    "without an id, in a place that nobody has": (
        [R.added(fc(None, None), 3), piece('{"n":', output_index=3)],
        [fc(None, None, arguments=ONE)], [("minted", "pay", {"n": 1})],
    ),
    "an input, where its item said that there is none": (
        [A, R.done(fc("fa", "a"), 0)], [fc("fa", "a", arguments=ONE)], [("a", "pay", "conflict")],
    ),
    "an input, where its item said nothing of one": (
        [A, R.done(fc("fa", "a", arguments=None), 0)], [fc("fa", "a", arguments=ONE)],
        [("a", "pay", {"n": 1})],
    ),
    "all of an input that was cut, where its item said that there is none": (
        [A, piece('{"n":', output_index=0), R.done(fc("fa", "a"), 0)],
        [fc("fa", "a", arguments=ONE)], [("a", "pay", {"n": 1})],
    ),
    "one that began in no place, and was told in one under other ids": (
        [R.added(fc("fa", "a"), None), piece(ONE, item_id="fa"), R.done(fc("fc", "c", arguments=ONE), 2)],
        [fc("fa", "a", arguments=ONE)], [("a", "pay", "conflict"), ("c", "pay", {"n": 1})],
    ),
    "one that began in no place and without a piece, and was told in one under other ids": (
        [R.added(fc("fa", "a"), None), R.done(fc("fc", "c", arguments=ONE), 2)],
        [fc("fa", "a", arguments=ONE)], [("a", "pay", "conflict"), ("c", "pay", {"n": 1})],
    ),
    "nothing of one that began in no place, and was told in one under other ids": (
        [R.added(fc("fa", "a"), None), piece(ONE, item_id="fa"), R.done(fc("fc", "c", arguments=ONE), 2)],
        [], [("a", "pay", "conflict"), ("c", "pay", {"n": 1})],
    ),
    "one that began in no place, and one that says the same in another": (
        [R.added(fc("fa", "a"), None), R.done(fc("fc", "c", arguments=ONE), 2)],
        [fc("fa", "a", arguments=ONE), fc("fc", "c", arguments=ONE)],
        [("a", "pay", {"n": 1}), ("c", "pay", {"n": 1})],
    ),
    "without the ids of calls, in the places of others": (
        [GROWN, R.added(fc("fb", "b"), 1)],
        [fc("fb", None, arguments=TWO), fc("fa", None, arguments=ONE)],
        [("a", "pay", {"n": 1}), ("b", "pay", {"n": 2})],
    ),
    "in the place of another, with other items": (
        [A, B], [fc("x", "b", "rob", arguments=TWO), fc("y", "a", arguments=ONE)],
        [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINAL)
def test_the_final_response_says_every_call_once_more(name: str):
    frames, items, expected = FINAL[name]
    assert sorted(ends(*frames, R.completed(*items)), key=str) == sorted(expected, key=str)


def test_a_copy_of_a_told_call_that_says_a_field_twice_leaves_the_next_one_in_no_doubt():
    end = R.completed(fc("fa", "a", arguments=ONE, status="?"), SECOND)
    end = end.replace(b'"status":"?"', b'"status":"?","status":"completed"')
    assert ends(GROWN, A_DONE, end) == [("a", "pay", {"n": 1}), ("b", "rob", {"n": 2})]


def test_a_copy_of_a_told_call_that_cannot_be_read_leaves_one_without_arguments_in_no_doubt():
    end = R.completed(fc("fa", "a", arguments=5), fc("fb", "b", "rob"))
    assert ends(GROWN, A_DONE, end) == [("a", "pay", {"n": 1}), ("b", "rob", {})]


def test_a_copy_at_the_end_that_differs_from_what_was_told_is_noted():
    frames = GROWN + A_DONE
    for text, mismatch in ((ONE, 0), (TWO, 1)):
        _, notes = heard(
            "openai_responses", R.CREATED + frames + R.completed(fc("fa", "a", arguments=text))
        )
        assert notes.get("args.mismatch", 0) == mismatch


SEARCHED = {"type": "web_search_call", "id": "it_1", "status": "completed"}
RAN = {"type": "mcp_call", "id": "it_1", "name": "f", "status": "completed"}
CODED = {"type": "code_interpreter_call", "id": "it_1", "status": "completed"}
# what an item says when it is done, what a copy says after that, and what is told of the copy
COPIES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a function": (fc("fa", "a", arguments=ONE), fc("fa", "a", arguments=TWO), TWO),
    "a function, with more": (fc("fa", "a", arguments=ONE), fc("fa", "a", arguments='{"n":1,"m":2}'),
                              '{"n":1,"m":2}'),
    "a function, as it was": (fc("fa", "a", arguments=ONE), fc("fa", "a", arguments='{ "n": 1 }'), ""),
    "a function, without its arguments": (fc("fa", "a", arguments=ONE), fc("fa", "a", arguments=""), ""),
    "a search": (SEARCHED | {"action": {"query": "a"}}, SEARCHED | {"action": {"query": "b"}},
                 '{"query": "b"}'),
    "a search, with its sources": (SEARCHED | {"action": {"query": "a"}},
                                   SEARCHED | {"action": {"query": "a", "sources": []}}, ""),
    "a server's tool": (RAN | {"arguments": ONE}, RAN | {"arguments": TWO}, TWO),
    "code": (CODED | {"code": "x"}, CODED | {"code": "y"}, "y"),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("again", [False, True])
def test_a_copy_of_a_told_call_that_says_something_else_is_broken_once(name: str, again: bool):
    done, copy, raw = COPIES[name]
    more = R.done(copy) if again else b""
    events, notes = heard(
        "openai_responses", R.CREATED + R.added(done) + R.done(done) + more + R.completed(copy)
    )
    assert [e.kind for e in events if e.kind == "tool_call"] == ["tool_call"]
    broken = [(e.raw, e.reason) for e in events if e.kind == "broken_tool_call"]
    assert broken == ([(raw, "conflict")] if raw else [])
    assert events[-1].kind == "finish"
    assert again or "call.unlisted" not in notes


def test_what_is_no_item_at_the_end_is_nothing():
    response = {"status": "completed", "output": [5, fc("fa", "a", arguments=ONE), "x", None]}
    events = told(GROWN, A_DONE, R.say("completed", response=response))
    assert fate(events) == ([{"n": 1}], CALLED)


def test_a_message_that_only_the_end_has_is_told_and_one_that_differs_is_not():
    assert text_of(told(R.completed(R.message("x")))) == "x"
    events, notes = heard("openai_responses", R.CREATED + R.text("x") + R.completed(R.message("y")))
    assert (text_of(events), notes) == ("x", {"wire.text_mismatch": 1})
    assert text_of(told(R.text("x", 3), R.completed(R.message("y")))) == "x"
    assert text_of(told(R.text("x"), R.completed(R.message("x"), R.message("y", "m2")))) == "xy"


def test_items_without_ids_at_the_end_are_known_by_their_places():
    added = R.added(fc(None, None), 0) + R.added(fc(None, None, "rob"), 1)
    final = R.completed(fc(None, None, arguments=ONE), fc(None, None, "rob", arguments=TWO))
    events = [e for e in told(added, final) if isinstance(e, ToolCall)]
    assert [(e.call, e.name) for e in events] == [(0, "pay"), (1, "rob")]


def test_bad_bytes_beside_the_items_of_the_end_break_no_call_that_was_closed_before_them():
    closed = R.added(fc("fa", "a"), 0) + R.done(fc("fa", "a"), 0)
    response = {"status": "completed", "output": [], "instructions": "?"}
    assert ends(closed, bad(R.say("completed", response=response))) == [("a", "pay", {})]


ENDS: dict[str, tuple[str, dict[str, Any], tuple[str, str]]] = {
    "completed": ("completed", {"status": "completed"}, STOPPED),
    "completed without a status": ("completed", {}, STOPPED),
    "completed that says in_progress": ("completed", {"status": "in_progress"}, STOPPED),
    "completed that says incomplete": (
        "completed", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        ("finish", "length"),
    ),
    "completed that says failed": ("completed", {"status": "failed"}, ("failed", "provider_error")),
    "completed that says cancelled": ("completed", {"status": "cancelled"}, ("failed", "cancelled")),
    "completed with an error": (
        "completed", {"status": "completed", "error": {"code": "x"}}, ("failed", "provider_error"),
    ),
    "incomplete without a status": ("incomplete", {}, ("finish", "other")),
    "incomplete without a status, for a reason": (
        "incomplete", {"incomplete_details": {"reason": "content_filter"}},
        ("finish", "content_filter"),
    ),
    "failed without a status": ("failed", {}, ("failed", "provider_error")),
    "cancelled without a status": ("cancelled", {}, ("failed", "cancelled")),
    "done without a status": ("done", {}, STOPPED),
    "done that says completed": ("done", {"status": "completed"}, STOPPED),
    "done that says something else": ("done", {"status": "queued"}, ("finish", "other")),
    "done that says incomplete": ("done", {"status": "incomplete"}, ("finish", "other")),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_a_response_ends_as_its_event_and_its_status_say(name: str):
    event, response, expected = ENDS[name]
    assert end(told(R.text("x"), R.say(event, response=response))) == expected


def test_counts_are_those_of_the_final_response():
    response = {"status": "completed", "usage": {"input_tokens": 3, "output_tokens": 5}}
    (usage,) = [e for e in told(R.say("completed", response=response)) if isinstance(e, Usage)]
    assert (usage.input, usage.output) == (3, 5)
    assert not any(isinstance(e, Usage) for e in told(OVER))


# --- what is lost ---------------------------------------------------------------------------------


def bad(frame: bytes) -> bytes:
    """With a byte in place of the question mark that is no UTF-8."""
    assert frame.count(b"?") == 1
    return frame.replace(b"?", b"\xff")


LOST: dict[str, tuple[list[bytes], list[tuple[str, str, Any]]]] = {
    "in the name of an item that is added": (
        [bad(R.added(fc("fa", "a", "p?"), 0)), piece(ONE, output_index=0), B, B_DONE],
        [("a", "p\ufffd", "conflict"), ("b", "rob", {"n": 2})],
    ),
    "in an item that is done": (
        [A, bad(R.done(fc("fa", "a", arguments='{"n":"?"}'), 0)), B, piece(TWO, output_index=1),
         R.done(fc("fb", "b", "rob"), 1)],
        [("a", "pay", "conflict"), ("b", "rob", {"n": 2})],
    ),
    "a kind that is new and has a call's words": (
        [GROWN, R.say("new", x={"arguments": 1})], [("a", "pay", "conflict")],
    ),
    "a kind that is new and has an id": (
        [GROWN, R.say("new", x={"call_id": 1})], [("a", "pay", "conflict")],
    ),
    "a kind that is new": ([GROWN, R.say("new", x={"y": 1})], [("a", "pay", {"n": 1})]),
    "a kind that is new, in its place": (
        [GROWN, R.say("new", x=1, output_index=0)], [("a", "pay", "conflict")],
    ),
    "a kind that is new, of its item": (
        [GROWN, R.say("new", x=1, item_id="fa")], [("a", "pay", "conflict")],
    ),
    "a kind that is new, in another place": (
        [GROWN, R.say("new", x=1, output_index=5)], [("a", "pay", {"n": 1})],
    ),
    "a kind that is new, of another item": (
        [GROWN, R.say("new", x=1, item_id="zz", output_index="x")], [("a", "pay", {"n": 1})],
    ),
    "an item id that is no text": ([A, piece(ONE, item_id=5)], [("a", "pay", "conflict")]),
    "a place that is no number": ([A, piece(ONE, output_index="x")], [("a", "pay", "conflict")]),
    "a place in quotes": ([A, piece(ONE, output_index="0")], [("a", "pay", {"n": 1})]),
    "an event without its item": ([GROWN, R.say("output_item.done")], [("a", "pay", "conflict")]),
    "a copy under another name": (
        [GROWN, R.say("function_call_arguments.done", output_index=0, args=ONE)],
        [("a", "pay", "conflict")],
    ),
    "a new field beside a copy": (
        [GROWN, said(ONE, output_index=0, new="x")], [("a", "pay", {"n": 1})],
    ),
    "a new field beside a fragment": (
        [A, piece(ONE, output_index=0, new="x")], [("a", "pay", {"n": 1})],
    ),
    "a new field of a kind that is of no call": (
        [GROWN, R.say("in_progress", response={}, new="x")], [("a", "pay", {"n": 1})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_what_cannot_be_read_breaks_the_calls_that_it_may_be_of(name: str):
    frames, expected = LOST[name]
    assert sorted(ends(*frames, OVER), key=str) == sorted(expected, key=str)


TEXT_TOOLS = {
    "custom_tool_call": ("custom_tool_call_input", "input", {"call_id": "c", "name": "run"}),
    "code_interpreter_call": ("code_interpreter_call_code", "code", {}),
}


@pytest.mark.parametrize("type_", TEXT_TOOLS)
def test_a_new_field_beside_the_text_of_a_text_tool_is_no_loss(type_: str):
    kind, field, more = TEXT_TOOLS[type_]
    item = {"type": type_, "id": "x", **more}
    added = R.added(item, 0) + R.say(f"{kind}.delta", delta="1", output_index=0)
    done = R.done({**item, "status": "completed"}, 0)
    for body, expected in (
        (added + R.say(f"{kind}.done", output_index=0, new="x", **{field: "1"}), {field: "1"}),
        (added + R.say(f"{kind}.delta", output_index=0, new="x", delta="1"), {field: "11"}),
    ):
        assert fate(told(body, done, OVER))[0] == [expected]
    lost = R.say(f"{kind}.done", output_index=0, new="1")
    assert fate(told(added, lost, R.done({**item, "status": "completed"}, 0), OVER))[0] == [
        "conflict"
    ]


def test_bad_bytes_in_the_final_response_break_the_call_that_only_it_has():
    frame = R.completed(fc("fa", "a", arguments=ONE), fc("fb", "b", "rob", arguments='{"n":"?"}'))
    assert ends(GROWN, A_DONE, bad(frame)) == [("a", "pay", {"n": 1}), ("b", "rob", "conflict")]
    response = {"status": "completed", "output": [fc("fb", "b", "rob", arguments=TWO)]}
    beside = R.say("completed", response=response, agent="?")
    assert ends(bad(beside)) == [("b", "rob", "conflict")]


# --- where text stands ---------------------------------------------------------------------------


def test_a_thought_that_names_only_its_item_is_told_in_the_place_of_that():
    item = {"type": "reasoning", "id": "rs", "summary": []}
    events = told(R.added(item, 2), R.say("reasoning_text.delta", item_id="rs", delta="x"), OVER)
    assert [(e.text, e.part) for e in events if isinstance(e, ReasoningDelta)] == [("x", 2)]


def test_a_message_that_is_done_in_no_place_is_that_of_its_item():
    events = told(
        R.added(R.message("", "m"), 2), R.text("x", 2), R.done(R.message("x", "m"), None), OVER
    )
    assert text_of(events) == "x"


def test_the_id_of_a_hosted_call_is_its_items_without_a_note():
    assert heard("openai_responses", R.CREATED + R.done(SEARCH) + R.completed(SEARCH))[1] == {}


# --- where an item has its input ------------------------------------------------------------------


def item_of(type_: str, **fields: Any) -> dict[str, Any]:
    named = {"name": "f"} if type_ in ("function_call", "custom_tool_call", "mcp_call") else {}
    return {"type": type_, "id": "i", "call_id": "c", "status": "completed", **named, **fields}


INPUTS: dict[str, tuple[dict[str, Any], Any]] = {
    "a text": (item_of("function_call", arguments=ONE), {"n": 1}),
    "an object in place of a text": (item_of("function_call", arguments={"n": 1}), {"n": 1}),
    "nothing": (item_of("function_call", arguments=""), {}),
    "an empty object": (item_of("function_call", arguments="{}"), {}),
    "no field for it": (item_of("function_call"), "conflict"),
    "a number": (item_of("function_call", arguments=5), "conflict"),
    "in a field that is new": (item_of("function_call", arguments="", params=ONE), "conflict"),
    "a new field that is empty": (item_of("function_call", arguments="", params=""), {}),
    "a new field that is a number": (item_of("function_call", arguments="", params=5), {}),
    **{
        f"in the field {field} of another type": (
            item_of("function_call", **{field: {"n": 1}}), {"n": 1},
        )
        for field in ("action", "operation", "queries", "query")
    },
    "as a text in the field of another type": (
        item_of("function_call", action=ONE), {"n": 1},
    ),
    "in the field of another type, and its own says that there is none": (
        item_of("function_call", arguments="", action={"n": 1}), "conflict",
    ),
    "in a field of plain text": (item_of("function_call", arguments="", code=ONE), "conflict"),
    "two fields": (
        item_of("function_call", query={"n": 2}, action={"n": 1}), {"n": 1},
    ),
    "a text tool": (item_of("custom_tool_call", input="x"), {"input": "x"}),
    "a text tool with nothing": (item_of("custom_tool_call", input=""), {"input": ""}),
    "a text tool with an object": (item_of("custom_tool_call", input={"a": 1}), "conflict"),
    "a text tool with a number": (item_of("custom_tool_call", input=5), "conflict"),
    "a text tool whose text is code": (item_of("custom_tool_call", code="x"), {"input": "x"}),
    "a text tool whose code is an object": (item_of("custom_tool_call", code={"a": 1}), "conflict"),
    "a text tool with arguments": (item_of("custom_tool_call", arguments=ONE), "conflict"),
    "code": (item_of("code_interpreter_call", code="x"), {"code": "x"}),
    "code as an input": (item_of("code_interpreter_call", input="x"), {"code": "x"}),
    "an object": (item_of("local_shell_call", action={"n": 1}), {"n": 1}),
    "an object as a text": (item_of("local_shell_call", action=ONE), {"n": 1}),
    "an empty object of a tool that needs one": (item_of("local_shell_call", action={}), "conflict"),
    "no object of a tool that needs one": (item_of("local_shell_call"), "conflict"),
    "no object of a tool that the provider runs": (item_of("web_search_call"), {}),
    "one of two": (item_of("computer_call", action={"n": 1}), {"n": 1}),
    "the other of two": (item_of("computer_call", actions=[1]), {"actions": [1]}),
    "neither of two": (item_of("computer_call"), "conflict"),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_the_input_of_an_item_is_found_or_the_call_is_broken(name: str):
    item, expected = INPUTS[name]
    assert fate(told(R.done(item), OVER))[0] == [expected]


@pytest.mark.parametrize(
    ("item", "where"),
    [
        (item_of("shell_call", action={"n": 1}), "client"),
        (item_of("shell_call", action={"n": 1}, environment={"type": "local"}), "client"),
        (item_of("shell_call", action={"n": 1}, environment={"type": "container_reference"}), "provider"),
        (item_of("shell_call", action={"n": 1}, environment="x"), "client"),
        (item_of("local_shell_call", action={"n": 1}, environment={"type": "container_reference"}),
         "client"),
        (item_of("tool_search_call", arguments={"n": 1}), "provider"),
        (item_of("tool_search_call", arguments={"n": 1}, execution="client"), "client"),
        (item_of("function_call", arguments=ONE, execution="server"), "provider"),
    ],
)  # fmt: skip
def test_an_item_says_where_it_runs(item: dict[str, Any], where: str):
    (call,) = [e for e in told(R.done(item), OVER) if isinstance(e, ToolCall)]
    assert call.runs_on == where


@pytest.mark.parametrize(
    ("more", "failed"),
    [({}, False), ({"status": "failed"}, True), ({"status": "incomplete"}, True), ({"error": "x"}, True)],
)  # fmt: skip
def test_a_result_says_that_it_failed(more: dict[str, Any], failed: bool):
    item = {**item_of("file_search_call", queries=["x"], results=[]), **more}
    (result,) = [e for e in told(R.done(item), OVER) if isinstance(e, ProviderToolResult)]
    assert result.is_error is failed


def test_an_item_that_is_none_is_passed_on():
    events = told(R.done(5), R.done("x"), OVER)
    assert [e.payload["item"] for e in events if isinstance(e, Unrecognized)] == [5, "x"]


def test_an_output_with_an_id_is_the_same_whatever_it_says_the_second_time():
    events = told(R.done(output(id="o"), 1), R.done(output(id="o", output="no"), 2), OVER)
    assert [e.output for e in events if isinstance(e, ProviderToolResult)] == ["ok"]


def test_the_rows_of_the_items_say_where_an_id_stands_and_whether_it_may_be_missing():
    rows = {row.type: row.item for row in TOOLS}
    assert [(rows[t].id_source, rows[t].id_field, rows[t].ref_field) for t in (
        "function_call", "function_call_output", "local_shell_call_output", "file_search_call",
    )] == [
        ("natural", "call_id", ""), ("nullable", "call_id", "call_id"), ("conflated", "id", "id"),
        ("conflated", "id", ""),
    ]  # fmt: skip
    assert {row.type for row in TOOLS if row.is_nullable} == {
        "function_call_output", "tool_search_call", "tool_search_output",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "goes_back"),
    [
        (fc("fa", "a", arguments=ONE), False),
        ({"type": "mcp_call", "id": "fa", "name": "f", "arguments": ONE, "output": "x"}, False),
        ({"type": "web_search_call", "id": "fa", "action": {"type": "search"}}, True),
    ],
)
def test_an_odd_status_goes_back_where_the_provider_runs_it_and_no_result_says_it(item, goes_back):
    (call,) = [
        e for e in told(R.done({**item, "status": "odd"}, 0), OVER) if isinstance(e, ToolCall)
    ]
    assert ("status" in (call.echo or {})) is goes_back


HALTED = {"type": "web_search_call", "id": "ws", "status": "incomplete"}


@pytest.mark.parametrize(
    ("item", "goes_back"),
    [
        ({**HALTED, "action": {"type": "search"}}, True),
        ({**HALTED, "action": 7}, False),
        (fc("fa", "a", arguments=ONE, status="incomplete"), False),
    ],
)
def test_a_call_that_was_cut_goes_back_where_the_provider_runs_it_and_all_of_it_was_read(
    item: dict[str, Any], goes_back: bool
):
    (call,) = [e for e in told(R.done(item, 0), OVER) if isinstance(e, BrokenToolCall)]
    assert call.echo == (item if goes_back else UNSET)


@pytest.mark.parametrize(("character", "goes_back"), [(b"?", True), (b"\xff", False)])
def test_a_call_that_was_cut_goes_back_only_if_all_bytes_of_its_item_could_be_read(
    character: bytes, goes_back: bool
):
    item = {"type": "mcp_call", "id": "fa", "name": "f", "arguments": ONE, "status": "incomplete"}
    begun = R.added({**item, "arguments": "", "status": "in_progress"})
    grown = R.say("mcp_call_arguments.delta", delta=ONE, output_index=0, item_id="fa")
    done = R.done({**item, "error": "?"}).replace(b"?", character)
    (call,) = [e for e in told(begun, grown, done, OVER) if isinstance(e, BrokenToolCall)]
    assert (call.reason, call.echo) == (CUT, {**item, "error": "?"} if goes_back else UNSET)


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ("boom", "boom", None),
        ({"message": "boom", "code": "e1"}, "boom", "e1"),
        ({"code": "e1"}, "e1", "e1"),
        (7, "the provider reported an error", None),
    ],
)
def test_an_error_is_told_in_its_words(error: Any, message: str, code: str | None):
    assert told(sse({"type": "error", "error": error}))[-1] == (
        Failed("provider_error", message, False, code)
    )


def test_a_response_that_begins_again_in_no_lane_is_not_the_one_of_a_lane():
    first = R.say("created", response={"id": "r", "model": "m"}, stream_id="a")
    events = traced("openai_responses", first + R.CREATED + R.text("Hi."))[0]
    assert [e.kind for e in events] == ["stream_start", "failed"]
    assert events[-1].reason == "protocol"
    assert events[-1].error.startswith("responses of several lanes share this connection")


@pytest.mark.parametrize("lane", [{}, {"stream_id": "a"}])
def test_a_response_that_begins_again_in_its_lane_goes_on(lane: dict[str, str]):
    first = R.say("created", response={"id": "r", "model": "m"}, **lane)
    events = traced("openai_responses", first + first + R.text("Hi.") + OVER)[0]
    assert (text_of(events), end(events)) == ("Hi.", STOPPED)


# --- copies and inputs of other types -------------------------------------------------------------


COPY_IN_DOUBT = sse(
    '{"type":7,"type":"response.function_call_arguments.done","output_index":0,'
    '"item_id":"fa","arguments":"{\\"n\\":12}"}',
    "response.function_call_arguments.done",
)
IN_TWO = [A, piece('{"n":1', output_index=0), piece("2}", output_index=0), COPY_IN_DOUBT]


def test_a_copy_that_says_its_type_twice_is_still_a_copy_that_another_one_can_contradict():
    item = fc("fa", "a", arguments=ONE, status="completed")
    assert ends(*IN_TWO, R.done(item), OVER) == [("a", "pay", "conflict")]


def test_a_copy_in_doubt_proves_nothing_and_one_that_says_the_same_does():
    empty, same = fc("fa", "a", status="completed"), fc("fa", "a", arguments='{"n":12}')
    assert ends(*IN_TWO, R.done(empty), OVER) == [("a", "pay", "conflict")]
    assert ends(*IN_TWO, R.done(same), OVER) == [("a", "pay", {"n": 12})]


def code(**more: Any) -> dict[str, Any]:
    return {"type": "code_interpreter_call", "id": "ci", "status": "in_progress", **more}


@pytest.mark.parametrize(("new", "fate"), [({"arguments": "y"}, "conflict"), ("y", {"input": "x"})])
def test_words_of_a_call_in_a_new_field_of_a_piece_of_it_make_it_doubtful(new: Any, fate: Any):
    begun, done = R.added(custom("cu", "c")), R.done(custom("cu", "c", status="completed"))
    odd = R.say("custom_tool_call_input.delta", delta="x", output_index=0, new=new)
    assert ends(begun, odd, done, OVER) == [("c", "run", fate)]
    odd = R.say("code_interpreter_call_code.delta", delta="x", output_index=0, new=new)
    told = "conflict" if fate == "conflict" else {"code": "x"}
    done = R.done(code(status="completed"))
    assert ends(R.added(code()), odd, done, OVER) == [("ci", "code_interpreter", told)]


@pytest.mark.parametrize("value", [{}, [], {"x": 1}, 5, False])
def test_the_text_of_a_custom_tool_must_be_text(value: Any):
    item = custom("cu", "c", status="completed") | {"input": value}
    assert ends(R.added(custom("cu", "c")), R.done(item), OVER) == [("c", "run", "conflict")]


@pytest.mark.parametrize("value", [5, True])
def test_a_number_where_the_arguments_of_a_hosted_search_stand_is_no_empty_search(value: Any):
    item = {"type": "web_search_call", "id": "ws", "status": "completed", "arguments": value}
    assert ends(R.added(item), R.done(item), OVER) == [("ws", "web_search", "conflict")]


@pytest.mark.parametrize(("said", "fate"), [({"arguments": ONE}, {"n": 1}), ({}, "conflict")])
def test_where_something_was_lost_only_an_input_that_came_counts(said: Any, fate: Any):
    item = {"type": "file_search_call", "id": "fs", "status": "completed", **said}
    lost = R.say("function_call_arguments.delta", delta=5)
    assert ("fs", "file_search", fate) in ends(lost, R.done(item, 1), OVER)


# --- the number of every piece --------------------------------------------------------------------


def numbered_pieces(*said: tuple[int, str]) -> list[tuple[str, str, Any]]:
    """A call without a closing copy, whose pieces have these numbers."""
    first = R.say("output_item.added", item=fc("fa", "a"), output_index=0, sequence_number=1)
    place = {"item_id": "fa", "output_index": 0}
    pieces = [piece(text, sequence_number=number, **place) for number, text in said]
    last = R.say("completed", response={"id": "r"}, sequence_number=6)
    created = sse({"type": "response.created", "sequence_number": 0, "response": {"id": "r"}})
    events = heard("openai_responses", created + first + b"".join(pieces) + last)[0]
    return [
        (e.id, e.name, e.arguments if isinstance(e, ToolCall) else e.reason)
        for e in events
        if isinstance(e, ToolCall | BrokenToolCall)
    ]


@pytest.mark.parametrize(
    ("numbers", "whole"),
    [
        ((2, 3, 4, 5), {"n": 123}),
        ((2, 4, 3, 5), None),
        ((2, 4, 4, 5), None),
        ((2, 99, 4, 5), None),
        ((2, 3, 3, 5), None),
    ],
)
def test_the_pieces_of_a_call_come_in_the_order_of_their_numbers(numbers, whole):
    pieces = zip(numbers, ('{"n":1', "2", "3", "}"), strict=True)
    told = numbered_pieces(*pieces)
    assert told == [("a", "pay", whole or "conflict")]


@pytest.mark.parametrize("number", ["x", 2.5, [1], True])
def test_numbers_that_are_none_harm_nothing(number: Any):
    place = {"item_id": "fa", "output_index": 0, "sequence_number": number}
    frames = [A, piece('{"n"', **place), piece(":1", **place), piece("}", **place)]
    assert ends(*frames, R.done(fc("fa", "a", status="completed"), 0), OVER) == [
        ("a", "pay", {"n": 1})
    ]


def test_parts_of_one_item_are_compared_part_by_part_in_any_order():
    def text(part: int, said: str) -> bytes:
        return R.say("output_text.delta", output_index=0, content_index=part, delta=said)

    def all_of(part: int, said: str) -> bytes:
        return R.say("output_text.done", output_index=0, content_index=part, text=said)

    pieces = [text(0, "a"), text(1, "c"), text(0, "b"), text(1, "d")]
    assert text_of(told(*pieces, all_of(0, "ab"), all_of(1, "cd"), OVER)) == "acbd"


def test_a_thought_under_the_id_of_a_message_is_the_one_of_its_place():
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    said = {**thought, "id": "msg_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    grown = R.say("reasoning_summary_text.delta", item_id="rs", output_index=1, summary_index=0,
                  delta="Hm.")  # fmt: skip
    events = told(R.added(R.message(""), 0), R.added(thought, 1), grown, R.done(said, 1), OVER)
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "Hm."


UNASKED = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
ASKED = {**UNASKED, "action": {"type": "search"}}
UNQUERIED = {"type": "file_search_call", "id": "fs_1", "status": "in_progress"}


@pytest.mark.parametrize(
    ("items", "raw"),
    [
        ([UNASKED], ""),
        ([ASKED], '{"type": "search"}'),
        ([ASKED, UNASKED], '{"type": "search"}'),
        ([ASKED, {**UNASKED, "action": 5}], '{"type": "search"}'),
        ([UNQUERIED], ""),
        ([fc("i", "c")], ""),
        ([fc("i", "c", arguments=ONE)], ONE),
        ([fc("i", "c", arguments=ONE), fc("i", "c", arguments=5)], ONE),
    ],
)
def test_of_a_call_that_was_cut_off_the_input_that_came_as_it_was_added_is_what_was_heard(
    items: list[dict[str, Any]], raw: str
):
    broken = [e for e in told(*map(R.added, items)) if isinstance(e, BrokenToolCall)]
    assert [(e.reason, e.raw) for e in broken] == [("truncated", raw)]


# --- a number that is none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "fate"), [(3, {"n": 1}), (4, {"n": 1}), (2, "conflict"), (5, "conflict")]
)
def test_an_event_without_a_number_may_have_been_counted_or_not_and_hides_no_hole(last, fate):
    status = {"type": "response.web_search_call.searching", "item_id": "ws_9"}
    call = fc("fa", "a")
    events = (
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r"}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": call},
        {**status, "sequence_number": 2},
        {**status, "sequence_number": [3]},
        {"type": "response.output_item.done", "sequence_number": last, "output_index": 0,
         "item": {**call, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": {**call, "arguments": ONE}},
    )  # fmt: skip
    told = heard("openai_responses", b"".join(map(sse, events[:4])) + sse(events[4]) + OVER)[0]
    assert fate_of(told) == ({} if fate == {"n": 1} else fate)


def fate_of(events: list[Event]) -> Any:
    (call,) = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    return call.arguments if isinstance(call, ToolCall) else call.reason


# --- an input that only the beginning says --------------------------------------------------------


@pytest.mark.parametrize(
    ("began", "told"),
    [({"query": "q"}, "conflict"), ({}, {}), (None, {})],
)
def test_an_item_that_began_with_an_input_and_is_done_without_one_is_not_empty(began, told):
    item = {"type": "web_search_call", "id": "ws", "status": "completed"}
    assert ends(R.added({**item, "action": began}), R.done(item), OVER) == [
        ("ws", "web_search", told)
    ]


def test_an_item_that_began_with_an_input_and_is_done_without_one_is_what_its_pieces_say():
    began = R.added(fc("fa", "a", arguments=ONE), 0)
    done = R.done(fc("fa", "a"), 0)
    assert ends(began, piece(ONE, output_index=0), done, OVER) == [("a", "pay", {"n": 1})]


def test_a_call_that_is_done_under_another_item_id_is_told_once_though_the_final_response_says_it():
    done = fc("fb", "a", arguments=ONE, status="completed")
    stray = piece(ONE, output_index=0, item_id="fb")
    told = ends(R.added(fc("fa", "a"), None), stray, R.done(done, None), R.completed(done))
    assert [call for call in told if isinstance(call[2], dict)] == [("a", "pay", {"n": 1})]


@pytest.mark.parametrize("call_id", ["b", None])
def test_a_search_that_was_told_and_is_said_again_is_one_whatever_other_id_it_has(call_id: Any):
    item = {"type": "web_search_call", "id": "ws", "call_id": call_id, "action": {"query": "q"}}
    said = [R.added(item), R.done({**item, "status": "completed"})]
    assert ends(*said, *said, OVER) == [("ws", "web_search", {"query": "q"})]


# --- items that cannot be read --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["output_item.added", "output_item.done"])
@pytest.mark.parametrize("odd", [["fa", "function_call"], 5, {"id": "fa"}, {"id": "fa", "type": 7}])
@pytest.mark.parametrize(
    ("place", "fates"),
    [
        ({"output_index": 0}, ["conflict", {"n": 2}]),
        ({"output_index": 1}, ["truncated", {"n": 2}]),
        ({"output_index": 9}, [{"n": 1}, {"n": 2}]),
        ({}, ["conflict", {"n": 2}]),
    ],
)
def test_an_item_that_cannot_be_read_may_be_the_call_in_its_place(kind, odd, place, fates):
    pieces = [piece(ONE, output_index=0), piece(TWO, output_index=1)]
    told = ends(A, B, *pieces, R.say(kind, item=odd, **place), B_DONE, OVER)
    assert [fate for *_, fate in sorted(told, key=lambda call: call[0])] == fates
