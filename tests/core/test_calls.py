"""streamnorm.core.calls: what a wire says about calls in, events out. One table, every row tested here."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.core.calls import FUNCTION, TABLE, Call, Calls, Kind, State
from streamnorm.core.mint import Mint
from streamnorm.events import BrokenToolCall, Event, ToolCall, ToolCallDelta, ToolCallStart
from streamnorm.limits import LimitReached, Limits
from streamnorm.notes import Scribe

VERBS = ("hear", "append", "settle", "close", "announce", "end", "break")
WAITING, OPEN, CLOSED, OVER = State
CUSTOM = Kind("custom", "client", "input")
CODE = Kind("code-interpreter", "provider", "code")


class Desk:
    """The calls of one stream and what was heard of them."""

    def __init__(
        self, *, eager: bool = True, strict: bool = False, closes: bool = True, **limits: int
    ) -> None:
        self.scribe = Scribe("test", strict=strict)
        self.mint = Mint("tests")
        self.calls = Calls(self.scribe, self.mint, Limits(**limits))
        self.calls.eager = eager
        self.calls.closes = closes  # the wire has a closing mark for each call
        self.out: list[Event] = []

    def __getattr__(self, verb: str) -> Any:
        """A verb of ``Calls``, with ``out`` filled in."""
        method = getattr(self.calls, verb)
        places_out_first = {"open", "announce_end", "end_turn", "break_all", "result", "progress"}

        def say(*args: Any, **more: Any) -> Any:
            if verb in places_out_first:
                return method(self.out, *args, **more)
            if verb in {"replace", "measure", "taint", "taint_open", "astray", "deny", "alias"}:
                return method(*args, **more)
            if verb == "hear":
                return method(args[0], self.out, **more)
            return method(*args, self.out, **more)

        return say

    @property
    def notes(self) -> dict[str, int]:
        return dict(self.scribe.counts)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.out]

    def ended(self) -> list[Any]:
        return [e for e in self.out if isinstance(e, ToolCall | BrokenToolCall)]

    def last(self) -> Any:
        return self.out[-1]


def waiting() -> tuple[Desk, Call]:
    desk = Desk()
    call = desk.open(id="a")  # no name yet
    assert call.state is WAITING
    return desk, call


def opened(fragment: str = "", **options: Any) -> tuple[Desk, Call]:
    desk = Desk(**options)
    call = desk.open(id="a", field="id", name="f")
    if fragment:
        desk.append(call, fragment)
    assert call.state is OPEN
    return desk, call


def closed(fragment: str = "") -> tuple[Desk, Call]:
    desk, call = opened(fragment)
    desk.close(call)
    assert call.state is CLOSED
    return desk, call


def over() -> tuple[Desk, Call]:
    desk, call = opened('{"x":1}')
    desk.close(call)
    assert call.state is OVER
    return desk, call


IN = {WAITING: waiting, OPEN: opened, CLOSED: closed, OVER: over}


# --- the table ------------------------------------------------------------------------------------


def test_the_table_is_total():
    assert Desk().calls.unfinished() == []  # so that what removes rows one by one asks this test
    assert set(TABLE) == set(itertools.product(VERBS, State))


def test_every_row_is_a_function_of_calls():
    for action in TABLE.values():
        assert getattr(Calls, action.__name__) is action


def test_hear_while_waiting_starts_the_call_once_it_has_a_name():
    desk, call = waiting()
    desk.hear(call, name="f")
    assert desk.out == [ToolCallStart(0, "a", "f")]
    assert call.state is OPEN


@pytest.mark.parametrize("state", [OPEN, CLOSED, OVER])
def test_hear_later_changes_nothing(state: State):
    desk, call = IN[state]()
    before = list(desk.out)
    desk.hear(call, id="a", name="f")
    assert desk.out == before
    assert desk.notes == {}
    assert call.state is state


def test_append_while_waiting_is_held_until_there_is_a_name():
    desk, call = waiting()
    desk.append(call, '{"a"')
    desk.append(call, ":1}")
    assert desk.out == []
    desk.hear(call, name="f")
    assert desk.out == [ToolCallStart(0, "a", "f"), ToolCallDelta(0, '{"a":1}')]


def test_append_while_open_is_a_delta():
    desk, call = opened()
    desk.append(call, '{"a"')
    assert desk.last() == ToolCallDelta(0, '{"a"')
    assert call.raw == '{"a"'


@pytest.mark.parametrize(
    ("state", "notes"),
    [(CLOSED, {"call.late": 1, "call.tainted": 1}), (OVER, {"call.late": 1})],
)
def test_append_after_the_close_is_late_and_adds_nothing(state: State, notes: dict[str, int]):
    desk, call = IN[state]()
    before, raw = list(desk.out), call.raw
    desk.append(call, "more")
    assert (desk.out, call.raw, call.state) == (before, raw, state)
    assert desk.notes == notes


def test_settle_while_waiting_is_held():
    desk, call = waiting()
    desk.settle(call, '{"a":1}')
    assert (desk.out, call.raw) == ([], '{"a":1}')


def test_settle_while_open_fills_a_gap():
    desk, call = opened()
    desk.settle(call, '{"a":1}')
    assert desk.last() == ToolCallDelta(0, '{"a":1}')
    desk.close(call)
    assert desk.last().arguments == {"a": 1}
    assert desk.notes == {}


def test_settle_after_the_close_fills_a_gap_in_silence():
    desk, call = closed()
    before = list(desk.out)
    desk.settle(call, '{"a":1}')
    assert desk.out == before
    desk.end_turn("tool_calls")
    assert desk.last().arguments == {"a": 1}


def test_settle_after_the_end_is_compared_and_changes_nothing():
    desk, call = over()
    before = list(desk.out)
    desk.settle(call, '{"x":1}')
    assert desk.notes == {}
    desk.settle(call, "")
    assert desk.notes == {}
    desk.settle(call, '{"x":2}')
    assert desk.notes == {"args.mismatch": 1}
    assert desk.out == before


def test_close_while_waiting_without_a_name_waits_for_the_turn():
    desk, call = waiting()
    desk.append(call, "{}")
    desk.close(call)
    assert call.state is CLOSED
    assert desk.out == []


def test_close_of_a_whole_object_is_a_call_at_once():
    desk, call = opened('{"a":1}')
    desk.close(call)
    assert desk.last().arguments == {"a": 1}
    assert call.state is OVER


@pytest.mark.parametrize("text", ["", "  ", '{"a"', "[1]", '"x"', "{}{}", '{"a":NaN}'])
def test_close_of_anything_else_waits_for_the_turn(text: str):
    desk, call = opened(text)
    desk.close(call)
    assert call.state is CLOSED
    assert desk.ended() == []


def test_close_twice_decides_with_what_came_in_between():
    desk, call = closed()
    desk.settle(call, '{"a":1}')
    desk.close(call)
    assert desk.last().arguments == {"a": 1}


def test_close_after_the_end_is_ignored():
    desk, call = over()
    before = list(desk.out)
    desk.close(call)
    assert desk.out == before


def test_end_while_waiting_breaks_a_call_that_was_never_named():
    desk, call = waiting()
    desk.append(call, "{}")
    desk.end_turn("tool_calls")
    (broken,) = desk.ended()
    assert (broken.reason, broken.raw, broken.id, broken.name) == ("conflict", "{}", "a", "")
    assert "tool_call_start" not in desk.kinds()


def test_end_while_waiting_starts_and_tells_a_call_that_only_lacked_an_id():
    desk = Desk(closes=False)
    call = desk.open(name="f")
    assert call.state is WAITING
    desk.end_turn("tool_calls")
    assert desk.kinds() == ["tool_call_start", "tool_call"]
    assert desk.last().id == desk.mint.id(0)


def never_closed() -> tuple[Desk, Call]:
    """A call of a wire that has no closing marks."""
    return opened(closes=False)


@pytest.mark.parametrize("build", [never_closed, closed])
@pytest.mark.parametrize("reason", ["stop", "tool_calls", "pause"])
def test_end_of_a_normal_turn_gives_empty_arguments_to_empty_text(build, reason: str):
    desk, _ = build()
    desk.end_turn(reason)
    assert (desk.last().arguments, desk.last().raw) == ({}, "")


@pytest.mark.parametrize("build", [opened, closed])
@pytest.mark.parametrize(
    ("reason", "broken"),
    [
        ("length", "length"),
        ("content_filter", "truncated"),
        ("refusal", "truncated"),
        (None, "truncated"),
    ],
)
def test_end_of_another_turn_never_invents_arguments(build, reason: str | None, broken: str):
    desk, _ = build()
    desk.end_turn(reason)
    assert (desk.last().kind, desk.last().reason) == ("broken_tool_call", broken)


@pytest.mark.parametrize(
    ("text", "reason", "broken"),
    [
        ('{"a"', "stop", "invalid_json"),
        ('{"a"', "length", "length"),
        ('{"a"', None, "truncated"),
        ("[1]", "stop", "not_object"),
        ("[1]", "length", "length"),
        ("3", "stop", "not_object"),
        ("null", "stop", "not_object"),
        ('"x"', "stop", "not_object"),
        ('{"a":1,"a":2}', "stop", "invalid_json"),
        ('{"a":NaN}', "stop", "invalid_json"),
        ('{"a":1}{"b":2}', "stop", "invalid_json"),
        ("hello", "stop", "invalid_json"),
    ],
)
def test_end_breaks_what_is_no_object_and_keeps_its_text(text: str, reason, broken: str):
    desk, _ = opened(text)
    desk.end_turn(reason)
    (told,) = desk.ended()
    assert (told.kind, told.reason, told.raw) == ("broken_tool_call", broken, text)
    assert told.detail


@pytest.mark.parametrize(
    ("reason", "closes"),
    [*itertools.product(["stop", "tool_calls", "pause"], [True, False]), ("length", False)],
)
def test_a_whole_object_counts_by_a_normal_end_as_no_token_limit_can_have_cut_it(reason, closes):
    desk, _ = opened('{"a":1}', closes=closes)
    desk.end_turn(reason)
    assert desk.last().arguments == {"a": 1}
    assert desk.notes == ({"call.unclosed": 1} if closes else {})


def test_where_calls_are_closed_a_token_limit_cuts_one_that_was_not():
    desk, _ = opened('{"a":1}')
    desk.end_turn("length")
    assert desk.last().reason == "length"


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("reason", ["content_filter", "refusal", "other"])
def test_a_whole_object_that_was_not_closed_does_not_count_by_another_end(reason, closes):
    desk, _ = opened('{"a":1}', closes=closes)
    desk.end_turn(reason)
    assert (desk.last().kind, desk.last().reason) == ("broken_tool_call", "truncated")


def test_an_end_without_a_word_completes_whole_objects_where_nothing_closes_calls():
    desk, _ = opened('{"a":1}', closes=False)
    desk.end_turn(None)
    assert desk.last().arguments == {"a": 1}
    desk, _ = opened('{"a":1}')
    desk.end_turn(None)
    assert desk.last().reason == "truncated"


def test_end_is_ignored_by_a_call_that_is_over():
    desk, _ = over()
    before = list(desk.out)
    desk.end_turn("stop")
    assert desk.out == before


@pytest.mark.parametrize("state", [WAITING, OPEN, CLOSED])
def test_break_ends_any_call_that_is_not_over(state: State):
    desk, call = IN[state]()
    desk.append(call, "") if state is CLOSED else desk.append(call, '{"a"')
    desk.break_all("provider_error", "they said so")
    told = desk.last()
    assert (told.kind, told.reason, told.detail) == (
        "broken_tool_call",
        "provider_error",
        "they said so",
    )
    assert told.raw == ("" if state is CLOSED else '{"a"')
    assert call.state is OVER


def test_break_is_ignored_by_a_call_that_is_over():
    desk, call = over()
    before = list(desk.out)
    desk.fail(call, "conflict", "x")
    desk.break_all("truncated", "x")
    assert desk.out == before


def test_parsable_is_not_finished():
    desk, _ = opened('{"a":1}')
    desk.break_all("truncated", "the bytes ended")
    assert desk.last().kind == "broken_tool_call"
    assert desk.last().raw == '{"a":1}'


# --- any story ------------------------------------------------------------------------------------

TEXTS = st.sampled_from(["", "{", '{"a":1}', "}", '"x"', "{}", '{"a":', "1}"])
STEPS = st.one_of(
    st.tuples(st.just("open"), st.sampled_from([None, "a", "b"]), st.sampled_from([None, "f"])),
    st.tuples(
        st.just("hear"), st.sampled_from([None, "a", "c"]), st.sampled_from([None, "f", "g"])
    ),
    st.tuples(st.sampled_from(["append", "extend", "settle", "merge_object"]), TEXTS, st.none()),
    st.tuples(st.sampled_from(["close", "end", "break"]), st.none(), st.none()),
)


@given(st.lists(st.tuples(STEPS, st.integers(0, 3)), max_size=25), st.booleans())
def test_whatever_is_said_each_started_call_ends_once(story, eager: bool):
    desk = Desk(eager=eager)
    for (verb, one, two), which in story:
        calls = desk.calls.all
        if verb == "open":
            desk.open(id=one, name=two)
        elif not calls:
            continue
        elif verb == "hear":
            desk.hear(calls[which % len(calls)], id=one, name=two)
        elif verb == "end":
            desk.end_turn("stop")
        elif verb == "break":
            desk.fail(calls[which % len(calls)], "conflict", "x")
        elif verb == "close":
            desk.close(calls[which % len(calls)])
        elif one or verb == "settle":  # parsers never say an empty fragment
            getattr(desk, verb)(calls[which % len(calls)], one)
    desk.break_all("truncated", "the end")
    assert desk.calls.unfinished() == []
    started = [e.call for e in desk.out if isinstance(e, ToolCallStart)]
    ended = [e.call for e in desk.ended()]
    assert sorted(ended) == list(range(len(desk.calls.all)))
    assert len(set(started)) == len(started)
    assert all(e.id for e in desk.ended())
    ids = [e.id for e in desk.ended() if isinstance(e, ToolCall)]  # a voided one leaves its id
    assert len(set(ids)) == len(ids)
    for event in desk.ended():
        if isinstance(event, ToolCall):
            assert event.call in started
            assert event.name


# --- identity -------------------------------------------------------------------------------------


def test_an_id_from_the_wire_is_natural_and_says_where_it_was_read():
    desk, call = opened("{}")
    desk.close(call)
    source = desk.last().provenance
    assert (source.id_source, source.wire_id, source.wire_field) == ("natural", "a", "id")
    assert (source.boundary, source.provider) == ("stated", "test")


def test_another_identifier_that_serves_as_id_is_conflated():
    desk = Desk()
    call = desk.open(
        Kind("computer", id_source="conflated"), id="item_1", field="item.id", name="f"
    )
    desk.append(call, "{}")
    desk.close(call)
    assert desk.last().provenance.id_source == "conflated"
    other = desk.open(id="item_2", name="f", source="conflated")
    desk.append(other, "{}")
    desk.close(other)
    assert desk.last().provenance.id_source == "conflated"


def test_a_missing_id_is_minted_at_the_first_fragment_with_one_note():
    desk = Desk()
    call = desk.open(name="f", field="tool_calls[].id", inferred=True)
    assert desk.out == []  # an id may still come
    desk.append(call, "{}")
    assert desk.out[0] == ToolCallStart(0, desk.mint.id(0), "f")
    desk.close(call)
    source = desk.last().provenance
    assert (source.id_source, source.wire_id, source.wire_field) == ("synthetic", None, None)
    assert source.boundary == "inferred"
    assert desk.notes == {"call.id_synthetic": 1}


def test_a_late_id_wins_over_a_minted_one():
    desk = Desk()
    call = desk.open(name="f")
    desk.append(call, "{")
    desk.hear(call, id="call_9", field="id")
    desk.append(call, "}")
    desk.close(call)
    assert desk.last().id == "call_9"
    assert desk.last().provenance.id_source == "natural"
    assert desk.notes == {"call.id_synthetic": 1, "call.id_late": 1}


def test_an_id_that_comes_before_the_first_fragment_is_not_late():
    desk = Desk()
    call = desk.open(name="f")
    desk.hear(call, id="call_9")
    desk.append(call, "{}")
    assert desk.out[0] == ToolCallStart(0, "call_9", "f")
    assert desk.notes == {}


def test_an_id_that_changes_is_noted_and_the_last_counts():
    desk, call = opened("{}")
    desk.hear(call, id="b")
    desk.close(call)
    assert desk.last().id == "b"
    assert desk.notes == {"call.id_changed": 1}
    assert desk.calls.by_id(0, "b") is call  # what is said under the new id is still about it


def test_a_duplicate_id_is_made_distinct_and_the_wires_is_kept():
    desk, first = opened("{}", closes=False)
    second = desk.open(id="a", field="id", name="g")
    for call in (first, second):
        desk.append(call, "" if call is first else "{}")
        desk.close(call)
    one, two = desk.ended()
    assert (one.id, two.id) == ("a", desk.mint.id(1))
    assert two.provenance.id_source == "synthetic"
    assert (two.provenance.wire_id, two.provenance.wire_field) == ("a", "id")
    assert desk.notes["call.id_duplicate"] == 1
    assert desk.calls.by_id(0, "a") is first


def test_the_same_id_in_two_choices_is_two_calls_and_no_duplicate():
    desk = Desk()
    for choice in (0, 1):
        call = desk.open(id="a", name="f", choice=choice)
        desk.append(call, "{}")
        desk.close(call)
    assert [(c.choice, c.id) for c in desk.ended()] == [(0, "a"), (1, "a")]
    assert desk.notes == {}


def test_a_name_that_changes_after_the_start_breaks_the_call_even_if_its_text_is_stated_again():
    desk, call = opened("{}")
    desk.hear(call, name="g")
    desk.settle(call, "{}")
    desk.close(call)
    desk.end_turn("stop")
    assert (desk.last().kind, desk.last().reason, desk.last().name) == (
        "broken_tool_call", "conflict", "f",
    )  # fmt: skip
    assert desk.notes == {"call.name_changed": 1}


def test_a_wire_that_is_not_eager_starts_a_call_with_its_first_fragment():
    desk = Desk(eager=False)
    call = desk.open(id="a", name="get_")
    assert desk.out == []
    desk.hear(call, name="get_weather")
    desk.append(call, "{")
    assert desk.out == [ToolCallStart(0, "a", "get_weather"), ToolCallDelta(0, "{")]


def test_a_call_without_id_that_breaks_before_it_started_has_an_id():
    desk = Desk()
    desk.open()
    desk.break_all("truncated", "x")
    assert desk.last().id == desk.mint.id(0)


def test_calls_keep_their_order_and_choices_their_own_end():
    desk = Desk()
    for n, choice in enumerate((0, 1, 0)):
        desk.append(desk.open(id=f"c{n}", name="f", choice=choice), "{}")
    desk.end_turn("tool_calls", 0)
    assert [c.id for c in desk.ended()] == ["c0", "c2"]
    assert [c.ordinal for c in desk.calls.unfinished()] == [1]
    assert desk.calls.unfinished(0) == []


# --- closing copies against fragments -------------------------------------------------------------


def test_a_copy_that_agrees_is_silent():
    desk, call = opened('{"a":1}')
    desk.settle(call, '{"a":1}')
    desk.close(call)
    assert desk.last().arguments == {"a": 1}
    assert desk.notes == {}


def test_an_empty_copy_is_ignored_with_a_note():
    desk, call = opened('{"a":1}')
    desk.settle(call, "")
    desk.close(call)
    assert desk.last().arguments == {"a": 1}
    assert desk.notes == {"args.done_empty": 1}


def test_a_copy_that_contradicts_whole_fragments_breaks_the_call():
    desk, call = opened('{"a":1}')
    desk.settle(call, '{"a":22}')
    desk.close(call)
    assert desk.ended() == []  # one against one: undecided
    desk.end_turn("tool_calls")
    told = desk.last()
    assert (told.kind, told.reason) == ("broken_tool_call", "conflict")
    assert "7 and 8 characters" in told.detail
    assert desk.notes == {"args.mismatch": 1}


def test_a_copy_with_other_spaces_is_no_contradiction():
    desk, call = opened('{"a":1}')
    desk.settle(call, '{ "a": 1 }')
    desk.close(call)
    assert (desk.last().arguments, desk.last().raw) == ({"a": 1}, '{"a":1}')
    assert desk.notes == {}


def test_fragments_that_cannot_be_all_give_way_to_the_copy():
    desk, call = opened('{"a":1')
    desk.settle(call, '{"a":2}')
    desk.close(call)
    assert desk.last().arguments == {"a": 2}
    assert desk.notes == {"args.mismatch": 1}


def test_two_copies_that_contradict_each_other_break_the_call():
    desk, call = opened('{"a":1')
    desk.settle(call, '{"a":2}')
    desk.settle(call, '{"a":3}')
    desk.close(call)
    desk.end_turn("stop")
    assert (desk.last().kind, desk.last().reason) == ("broken_tool_call", "conflict")


def test_copies_of_a_text_tool_must_be_the_same_text():
    desk = Desk()
    call = desk.open(CUSTOM, id="a", name="f")
    desk.settle(call, "rm a")
    desk.settle(call, "rm ab")
    desk.close(call)
    desk.end_turn("stop")
    assert (desk.last().kind, desk.last().reason) == ("broken_tool_call", "conflict")


def test_a_second_copy_that_agrees_with_the_fragments_outvotes_the_first():
    desk, call = opened('{"a":1}')
    desk.settle(call, '{"a":2}')
    desk.settle(call, '{"a":1}')
    desk.close(call)
    assert desk.last().arguments == {"a": 1}


def test_three_that_all_differ_are_decided_by_nobody():
    desk, call = opened('{"a":1}')
    for number in range(2, 30):
        desk.settle(call, f'{{"a":{number}}}')
    desk.settle(call, '{"a":1}')  # too late: it was contradicted too often
    desk.end_turn("tool_calls")
    assert (desk.last().kind, desk.last().reason) == ("broken_tool_call", "conflict")
    assert desk.notes == {"args.mismatch": 3}


def test_a_stream_that_fails_undecided_breaks_the_call_with_its_fragments():
    desk, call = opened('{"a":1}')
    desk.settle(call, '{"a":2}')
    desk.close(call)
    desk.break_all("truncated", "x")
    assert (desk.last().kind, desk.last().raw) == ("broken_tool_call", '{"a":1}')


# --- wires that say things again ------------------------------------------------------------------


def extended(*texts: str) -> tuple[Desk, Any]:
    desk, call = opened(closes=False)
    for text in texts:
        desk.extend(call, text)
    desk.end_turn("tool_calls")
    return desk, desk.ended()[0]


def deltas(desk: Desk) -> list[str]:
    return [e.text for e in desk.out if isinstance(e, ToolCallDelta)]


def test_growing_snapshots_are_told_as_news():
    desk, told = extended('{"a":', '{"a":1', '{"a":1,"b":2}')
    assert told.arguments == {"a": 1, "b": 2}
    assert deltas(desk) == ['{"a":', "1", ',"b":2}']
    assert desk.notes == {"args.cumulative": 2}


def test_whole_arguments_said_again_are_told_once():
    desk, told = extended('{"a":', "1}", '{"a":1}')
    assert (told.arguments, told.raw) == ({"a": 1}, '{"a":1}')
    assert deltas(desk) == ['{"a":', "1}"]
    assert desk.notes == {"args.repeated": 1}


def test_an_empty_object_before_the_arguments_is_a_placeholder():
    desk, told = extended("{}", '{"a":1}')
    assert (told.arguments, told.raw) == ({"a": 1}, '{"a":1}')
    assert desk.notes == {"args.placeholder": 1}


def test_an_empty_object_said_again_is_an_empty_object():
    desk, told = extended("{}", "{}")
    assert (told.arguments, told.raw) == ({}, "{}")
    assert desk.notes == {"args.repeated": 1}


def test_a_fragment_that_begins_like_the_whole_is_a_fragment_after_all():
    _, told = extended('{"a":', '{"a":1}', "}")
    assert told.arguments == {"a": {"a": 1}}
    assert told.raw == '{"a":{"a":1}}'


def test_a_fragment_equal_to_what_is_held_is_a_fragment_if_that_is_not_whole():
    _, told = extended('{"a":', '{"a":', "1}}")
    assert told.arguments == {"a": {"a": 1}}


def test_plain_fragments_that_begin_with_a_brace_are_fragments():
    _, told = extended('{"a":', '{"b":1},"c":', '{"d":2}}')
    assert told.arguments == {"a": {"b": 1}, "c": {"d": 2}}


@given(st.lists(st.integers(1, 60), max_size=12),
       st.sampled_from(['{"a":{"a":{"a":1}}}', '{"x":"{}","y":[{},{"x":1}]}', '{"a":1,"b":"{\\"a\\":1"}',
                        '{"q":"a }{ b"}', "{}", '{ "a" : { } }']))  # fmt: skip
def test_any_fragmentation_of_any_text_gives_its_value(cuts: list[int], text: str):
    bounds = [0, *sorted({c for c in cuts if c < len(text)}), len(text)]
    fragments = [text[a:b] for a, b in itertools.pairwise(bounds)]
    _, told = extended(*fragments)
    assert isinstance(told, ToolCall)
    assert told.raw == text


@given(
    st.lists(st.integers(1, 60), max_size=6), st.sampled_from(['{"a":1,"b":{"c":2}}', '{"x":"yz"}'])
)
def test_any_growing_snapshots_of_any_text_give_its_value(cuts: list[int], text: str):
    _, told = extended(*[text[:c] for c in sorted({c for c in cuts if c < len(text)})], text)
    assert isinstance(told, ToolCall)
    assert told.raw == text


# --- objects --------------------------------------------------------------------------------------


def merged(*texts: str) -> tuple[Desk, Any]:
    desk, call = opened(closes=False)
    for text in texts:
        desk.merge_object(call, text)
    desk.end_turn("tool_calls")
    return desk, desk.ended()[0]


@pytest.mark.parametrize(
    ("texts", "arguments"),
    [
        (['{"a":1}'], {"a": 1}),
        (['{"a":1}', '{"b":2}'], {"a": 1, "b": 2}),
        (["{}", '{"b":2}'], {"b": 2}),
        (['{"a":1}', "{}"], {"a": 1}),
        (['{"a":1}', '{"a":1}'], {"a": 1}),
        ([' {"a":1} ', ' { "b" : {"c":2} } '], {"a": 1, "b": {"c": 2}}),
        (['{"a":1}', '{"b":2}', '{"c":3}'], {"a": 1, "b": 2, "c": 3}),
    ],
)
def test_objects_are_merged_and_no_key_is_lost(texts: list[str], arguments: dict):
    _, told = merged(*texts)
    assert told.arguments == arguments


def test_objects_that_disagree_about_a_key_break_the_call():
    _, told = merged('{"a":1}', '{"a":2}')
    assert (told.kind, told.reason) == ("broken_tool_call", "invalid_json")


# --- arguments that are no JSON object ------------------------------------------------------------


@pytest.mark.parametrize(("kind", "key"), [(CUSTOM, "input"), (CODE, "code")])
@pytest.mark.parametrize("text", ["print(1)", '{"a":1}', "{", " ", "é\n"])
def test_free_text_is_kept_whole_under_its_key(kind: Kind, key: str, text: str):
    desk = Desk()
    call = desk.open(kind, id="a", name="f")
    desk.append(call, text)
    desk.close(call)
    told = desk.last()
    assert (told.arguments, told.raw, told.family) == ({key: text}, text, kind.family)
    assert told.runs_on == kind.runs_on


def test_no_free_text_is_an_empty_text_only_when_the_turn_ended_well():
    desk = Desk(closes=False)
    desk.open(CUSTOM, id="a", name="f")
    desk.end_turn("stop")
    assert desk.last().arguments == {"input": ""}
    desk = Desk(closes=False)
    desk.open(CUSTOM, id="a", name="f")
    desk.end_turn("length")
    assert desk.last().reason == "length"


def test_json_inside_a_json_string_is_unwrapped_and_the_text_kept():
    desk, call = opened('"{\\"a\\":1}"')
    desk.close(call)
    assert (desk.last().arguments, desk.last().raw) == ({"a": 1}, '"{\\"a\\":1}"')
    assert desk.notes == {"args.double_encoded": 1}


def test_only_calls_of_the_client_make_a_turn_of_tool_calls():
    desk = Desk()
    call = desk.open(Kind("web-search", "provider"), id="a", name="web_search")
    desk.append(call, "{}")
    desk.close(call)
    assert not desk.calls.called
    call = desk.open(FUNCTION, id="b", name="f")
    desk.append(call, "{}")
    desk.close(call)
    assert desk.calls.called == {0}


# --- what the provider ran ------------------------------------------------------------------------


def test_a_result_is_paired_by_id_with_its_call():
    desk, call = opened("{}")
    desk.close(call)
    desk.result({"ok": 1}, id="a", family="function", is_error=True, echo={"type": "r"})
    told = desk.last()
    assert (told.call, told.id, told.output, told.is_error) == (0, "a", {"ok": 1}, True)
    assert told.echo == {"type": "r"}


def test_a_result_has_the_family_of_its_call_whatever_its_item_is_called():
    desk = Desk()
    desk.open(CODE, id="a", field="id", name="python")
    desk.result("42", id="a", family="server-tool")
    assert desk.last().family == "code-interpreter"


def test_a_result_without_a_call_has_the_family_of_its_item():
    desk = Desk()
    desk.result("42", id="nobody", family="web-search")
    assert (desk.last().call, desk.last().family) == (None, "web-search")


def test_a_result_without_a_call_is_told_as_an_orphan_with_an_id():
    desk = Desk()
    desk.result("x", id="nobody", family="mcp")
    assert (desk.last().call, desk.last().id) == (None, "nobody")
    desk.result("x", id=None, family="mcp")
    assert desk.last().id
    assert desk.notes == {"result.orphan": 2}


def test_progress_names_its_call():
    desk, call = opened()
    desk.progress(call, "searching")
    assert (desk.last().call, desk.last().id, desk.last().status) == (0, "a", "searching")


# --- limits ---------------------------------------------------------------------------------------


def test_more_calls_than_allowed_are_a_limit():
    desk = Desk(calls=2)
    for n in range(2):
        call = desk.open(id=f"{n}", name="f")
        desk.append(call, "{}")
        desk.close(call)
    with pytest.raises(LimitReached, match=r"calls"):
        desk.open(id="x", name="f")


def test_more_open_calls_than_allowed_are_a_limit_and_closed_ones_do_not_count():
    desk = Desk(open_calls=2)
    first = desk.open(id="0", name="f")
    desk.open(id="1", name="f")
    with pytest.raises(LimitReached, match="open_calls"):
        desk.open(id="2", name="f")
    desk.append(first, "{}")
    desk.close(first)
    desk.open(id="3", name="f")


@pytest.mark.parametrize(("size", "fits"), [(9, True), (10, True), (11, False)])
def test_names_and_ids_have_a_limit(size: int, fits: bool):
    for said in ({"id": "x" * size, "name": "f"}, {"id": "a", "name": "x" * size}):
        desk = Desk(name=10, id=10)
        if fits:
            desk.open(**said)
        else:
            with pytest.raises(LimitReached):
                desk.open(**said)


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_the_arguments_of_a_call_have_a_limit(size: int, fits: bool):
    desk, call = opened(arguments=100)
    for _ in range(size):
        desk.append(call, "x")
        if fits:
            desk.measure()
    if not fits:
        with pytest.raises(LimitReached, match=r"\(arguments\)"):
            desk.measure()


@pytest.mark.parametrize(("size", "fits"), [(49, True), (50, True), (51, False)])
def test_the_arguments_of_all_calls_have_a_limit(size: int, fits: bool):
    desk = Desk(arguments_total=100)
    for id in "ab":
        desk.append(desk.open(id=id, name="f"), "x" * size)
    if fits:
        desk.measure()
    else:
        with pytest.raises(LimitReached, match="arguments_total"):
            desk.measure()


@pytest.mark.parametrize(("depth", "fits"), [(2, True), (3, True), (4, False)])
def test_the_depth_of_arguments_has_a_limit(depth: int, fits: bool):
    desk, _ = opened('{"a":' * depth + "1" + "}" * depth, depth=3)
    desk.end_turn("stop")
    assert desk.last().kind == ("tool_call" if fits else "broken_tool_call")
