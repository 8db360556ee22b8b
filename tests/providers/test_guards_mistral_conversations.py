"""Guards of Mistral conversations that no recorded stream passes: each test fails without its guard."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.events import Failed, ProviderToolResult, ToolCall
from tests.providers.test_mistral_conversations import (
    DONE,
    EXECUTED,
    HERE,
    OTHER,
    chunk,
    ends,
    entering,
    leaving,
    piece,
    started,
    told,
    unsigned,
)


def in_short(*payloads: dict[str, Any]) -> list[Any]:
    """The arguments of whole calls, and why others are broken."""
    calls = ends(told(*payloads, DONE))
    return [c.arguments if isinstance(c, ToolCall) else c.reason for c in calls]


def delta(text: Any, id: str | None = "x") -> dict[str, Any]:
    said = {"type": "tool.execution.delta", "id": id, "name": "web_search"}
    return {**said, "arguments": text}


# --- what cannot be read -----------------------------------------------------------------------------


def test_a_payload_that_is_no_object_is_passed_on():
    pipe = Normalizer(HERE)
    events = pipe.feed(b"data: [1]\n\n")
    assert [(e.kind, e.payload) for e in events if e.kind == "unrecognized"] == [
        ("unrecognized", [1])
    ]


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"type": "message.output.delt", "id": "fc_1"}, [{"a": 1}]),  # no kind of a call
        ({"type": "function.call.delt", "id": "fc_1"}, ["conflict"]),
        ({"type": "function.call.delt", "id": ["x"], "tool_call_id": "abcdefghi"}, ["conflict"]),
        ({"type": "function.call.delt"}, ["conflict"]),  # anybody's
        ({"type": "agent.handoff.don"}, [{"a": 1}]),  # of a handoff, and there is none
        ({"type": "news"}, [{"a": 1}]),
        ({"type": "news", "arguments": 1}, ["conflict"]),
        ({"type": "news", "tool_call_id": 1}, ["conflict"]),
    ],
)
def test_of_which_call_a_payload_is_that_cannot_be_read(odd, expected):
    assert in_short(piece('{"a": 1}'), odd) == expected


@pytest.mark.parametrize("key", [{"id": "fc_1"}, {"tool_call_id": "abcdefghi"}])
def test_a_payload_that_cannot_be_read_and_names_a_call_is_of_no_other(key):
    odd = {"type": "function.call.delt", **key}
    events = told(piece('{"a": 1}'), OTHER, odd, DONE)
    assert [(c.id, c.kind) for c in ends(events)] == [
        ("abcdefghi", "broken_tool_call"), ("jklmnopqr", "tool_call"),
    ]  # fmt: skip


@pytest.mark.parametrize("odd", [{"id": 5}, {"tool_call_id": ["x"]}, {"arguments": 7}])
def test_a_piece_of_which_something_is_lost_breaks_its_call(odd):
    assert in_short({**piece('{"a": 1}'), **odd}) == ["conflict"]


def test_the_end_mark_of_chat_is_none_here():
    pipe = Normalizer(HERE)
    events = pipe.feed(b'data: {"type":"conversation.response.started"}\n\ndata: [DONE]\n\n')
    assert (events[-1].kind, events[-1].reason) == ("failed", "truncated")


@pytest.mark.parametrize("message", [None, 5, {"a": 1}, ""])
def test_an_error_without_a_text_is_told_by_its_code(message):
    error = {"type": "conversation.response.error", "message": message, "code": 500}
    assert told(error)[-1].error == "500"


def test_an_error_without_a_code_has_none():
    error = {"type": "conversation.response.error", "message": "No."}
    assert told(error)[-1] == Failed("provider_error", "No.", False, None)


# --- texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", None, []])
def test_a_message_that_says_nothing_is_not_told(content):
    said = {"type": "message.output.delta", "content": content}
    assert [e.kind for e in told(said, DONE) if e.kind != "stream_start"] == ["finish"]


def test_every_chunk_of_a_content_is_told():
    content = [{"type": "text", "text": "a"}, None, "b", {"type": "news"}]
    events = told({"type": "message.output.delta", "content": content}, DONE)
    assert [e.text for e in events if e.kind == "text_delta"] == ["a", "b"]
    assert [e.wire_kind for e in events if e.kind == "unrecognized"] == ["content/news"]


def test_calls_behind_a_handoff_are_of_the_agent_that_it_names():
    said = [leaving(), entering(), unsigned("{}"), started(), EXECUTED, DONE]
    assert [c.agent for c in ends(told(*said))] == ["a", "b", "b"]


def test_who_speaks_stays_where_a_handoff_names_nobody():
    nobody = entering(next_agent_id=None)
    events = told(leaving(), entering(), leaving(id="i"), {**nobody, "id": "i"}, chunk(text="Hi."))
    assert [e.agent for e in events if e.kind == "text_delta"] == ["b"]


# --- functions ---------------------------------------------------------------------------------------


def test_a_word_for_no_id_is_none():
    for pieces in (
        [piece('{"a"'), piece(": 1}", tool_call_id="null")],
        [unsigned(""), piece('{"a": 1}', id="null")],
    ):
        assert [c.id for c in ends(told(*pieces, DONE))] == ["abcdefghi"]
    for pieces in (
        [piece('{"a": 1}', tool_call_id="null")],
        [unsigned(""), piece('{"a": 1}', tool_call_id="null")],
    ):
        (call,) = ends(told(*pieces, DONE))
        assert (call.arguments, call.provenance.id_source) == ({"a": 1}, "synthetic")


def test_what_the_provider_runs_is_no_reason_to_doubt_a_function_without_an_id():
    said = [started(arguments='{"q"'), unsigned('{"b": 2}'), delta(": 1}"), EXECUTED]
    assert sorted(map(str, in_short(*said))) == ["{'b': 2}", "{'q': 1}"]


def test_a_function_without_an_id_that_is_alone_is_in_no_doubt():
    assert in_short(unsigned("[1]")) == ["not_object"]
    assert in_short(unsigned('{"a": 1}'), piece('{"b": 2}')) == [{"a": 1}, {"b": 2}]


def test_a_call_goes_back_with_what_its_entry_said_and_nothing_else():
    (call,) = ends(told(piece("{}"), DONE))
    assert call.echo == {"id": "fc_1"}
    (call,) = ends(told(unsigned("{}"), DONE))
    assert call.echo is None
    (call,) = ends(told(piece("{}", agent_id="g"), DONE))
    assert (call.echo, call.agent) == ({"id": "fc_1", "agent_id": "g"}, "g")


# --- what the provider runs --------------------------------------------------------------------------


def test_executions_at_the_same_time_are_told_apart_by_their_ids():
    said = [started(), started(id="y"), delta('{"q": 2}', "y"), delta('{"q": 1}')]
    assert in_short(*said, EXECUTED, {**EXECUTED, "id": "y"}) == [{"q": 1}, {"q": 2}]


def test_executions_without_an_id_that_follow_each_other_are_two():
    one = [started(id=None, arguments='{"q": 1}'), {**EXECUTED, "id": None}]
    two = [started(id=None), delta('{"q": 2}', None), {**EXECUTED, "id": None}]
    assert in_short(*one, *two) == [{"q": 1}, {"q": 2}]


def test_an_execution_that_was_told_is_not_begun_again():
    once = [started(arguments='{"q": 1}'), EXECUTED]
    assert in_short(*once, *once) == [{"q": 1}]


def test_a_piece_of_an_execution_that_nobody_began_is_a_loss_of_others():
    assert in_short(piece('{"a": 1}'), delta("{}", "z")) == ["conflict"]
    assert in_short(started(arguments='{"q": 1}'), delta(None), EXECUTED) == [{"q": 1}]


def test_an_execution_goes_back_with_the_agent_that_it_is_of():
    for agent, echo in (("g", {"agent_id": "g"}), (None, None)):
        (call,) = ends(told(started(agent_id=agent), EXECUTED, DONE))
        assert (call.echo, call.agent) == (echo, agent)


@pytest.mark.parametrize(("info", "echo"), [({"n": 1}, {"info": {"n": 1}}), ({}, {}), (None, {})])
def test_what_came_out_goes_back_as_it_came(info, echo):
    events = told(started(), {**EXECUTED, "info": info}, DONE)
    assert [e.echo for e in events if isinstance(e, ProviderToolResult)] == [echo]


def test_an_object_that_is_never_closed_is_not_whole_where_something_was_lost():
    lost = {"type": "news", "arguments": 1}
    assert in_short(lost, started(arguments='{"q": {}}')) == ["truncated"]


def test_an_execution_that_is_begun_twice_before_anything_of_it_came_is_one():
    assert in_short(started(), started(), delta('{"q": 1}'), EXECUTED) == [{"q": 1}]


def test_an_execution_without_arguments_is_whole_when_it_is_done():
    (call,) = ends(told(started(), EXECUTED))
    assert call.arguments == {}


def test_an_execution_that_was_closed_is_not_noted_as_unclosed():
    pipe = Normalizer(HERE)
    for payload in (started(arguments='{"q": 1}'), EXECUTED, DONE):
        pipe.feed_payload(payload)
    assert pipe.notes["call.unclosed"] == 0


# --- handoffs ----------------------------------------------------------------------------------------


def test_a_handoff_whose_place_another_takes_is_broken():
    said = [leaving(id=None), leaving(id=None, previous_agent_id="c"), entering(id=None)]
    first, second = ends(told(*said, DONE))
    assert (first.kind, second.kind) == ("broken_tool_call", "tool_call")
    assert second.arguments["previous_agent_id"] == "c"


def test_a_function_is_in_no_doubt_for_what_was_lost_of_a_handoff():
    calls = in_short(leaving(), piece('{"a": 1}'), {"type": "agent.handoff.don"})
    assert sorted(map(str, calls)) == ["conflict", "{'a': 1}"]


@pytest.mark.parametrize(("id", "fates"), [("h", 1), ("x", 2)])
def test_what_was_lost_of_a_handoff_is_of_the_one_that_it_names_or_of_any(id: str, fates: int):
    begun = (leaving(), leaving(id="i"))
    odd = {"type": "agent.handoff.don", "id": id}
    calls = in_short(*begun, odd, entering(), entering(id="i"))
    assert len([call for call in calls if call == "conflict"]) == fates


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_heard_of_a_handoff_is_told_once(times):
    (broken,) = ends(told(*[entering()] * times, DONE))
    assert (broken.kind, broken.raw) == (
        "broken_tool_call", '{"next_agent_id":"b","next_agent_name":"B"}',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "kind"),
    [([entering()], "broken_tool_call"), ([leaving(), entering()], "tool_call")],
)
def test_an_end_of_a_handoff_that_broke_may_be_that_of_any(before: list[Any], kind: str):
    begun = {"type": "conversation.response.started", "conversation_id": "c"}
    calls = ends(told(begun, *before, begun, leaving(id=None), entering(), DONE))
    assert [call.kind for call in calls] == [kind, kind]


def test_a_handoff_that_is_another_when_it_is_said_again_is_noted():
    pipe = Normalizer(HERE)
    for payload in (leaving(), entering(), entering(next_agent_id="c"), DONE):
        pipe.feed_payload(payload)
    assert pipe.notes["args.mismatch"] == 1


# --- pieces that say nothing --------------------------------------------------------------------------


@pytest.mark.parametrize(("nothing", "expected"), [("", [{"a": 1}]), (None, ["conflict"])])
def test_an_empty_piece_of_a_text_is_no_loss_and_one_without_text_is(nothing, expected):
    assert in_short(piece('{"a"'), piece(nothing), piece(": 1}")) == expected
    execution = [started(arguments='{"a"'), delta(nothing), delta(": 1}"), EXECUTED]
    assert in_short(*execution) == expected


@pytest.mark.parametrize(
    ("nothing", "expected"), [("", [{"b": 1}, "truncated"]), (None, ["conflict", "conflict"])]
)
def test_a_piece_without_text_of_an_execution_that_was_closed_may_be_of_any(nothing, expected):
    lost, empty = {"type": "function.call.delt"}, started(arguments=None)
    first, rest = {**started(arguments='{"b"'), "id": "y"}, delta(": 1}", "y")
    said = [lost, empty, EXECUTED, first, delta(nothing), rest, {**EXECUTED, "id": "y"}]
    assert in_short(*said) == expected


def test_a_chunk_without_a_type_is_text_only_if_it_has_one():
    events = told({"type": "message.output.delta", "content": [{"x": 1}, {"text": "b"}]}, DONE)
    assert [e.text for e in events if e.kind == "text_delta"] == ["b"]
    assert [e.wire_kind for e in events if e.kind == "unrecognized"] == ["content/?"]


def test_an_execution_said_in_two_objects_and_never_closed_is_not_whole():
    assert in_short(started(arguments=None), delta({"a": 1})) == [{"a": 1}]
    assert in_short(started(arguments=None), delta({"a": 1}), delta({"b": 2})) == ["truncated"]


def test_of_two_executions_whose_id_cannot_be_read_only_the_first_is_whole():
    said = [started(id="\ud83d", arguments='{"q":1}'), {**EXECUTED, "id": "\ud83d"}]
    assert in_short(*said, *said) == [{"q": 1}, "conflict"]
