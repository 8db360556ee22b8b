"""Gemini Interactions, guard by guard: whose a fragment is, what breaks a call, how a turn ends."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.core.cursor import Cursor
from streamnorm.events import (
    Citation,
    Event,
    Failed,
    Finish,
    ProviderToolResult,
    ReasoningDelta,
    ToolCall,
    ToolCallDelta,
    Unrecognized,
    Usage,
)
from streamnorm.normalizer import Normalizer
from tests.conftest import sse, text_of, traced
from tests.providers.streams import DONE, calls, end, fate, heard

ACT, STOPPED = ("finish", "tool_calls"), ("finish", "stop")
FAILED = ("failed", "provider_error")


def told(*payloads: bytes) -> list[Event]:
    return heard("gemini_interactions", b"".join(payloads))[0]


def step(kind: str, index: Any = 0, **fields: Any) -> bytes:
    place = {} if index is None else {"index": index}
    return sse({"event_type": f"step.{kind}", **place, **fields})


def start(index: Any = 0, type: str = "function_call", **said: Any) -> bytes:
    if type == "function_call":
        said = {"id": "a", "name": "pay", "arguments": {}} | said
    return step("start", index, step={"type": type, **said})


def delta(arguments: Any, index: Any = 0, type: str = "arguments_delta", **more: Any) -> bytes:
    return step("delta", index, delta={"type": type, "arguments": arguments, **more})


def text(text: str, index: Any = 0, **more: Any) -> bytes:
    return step("delta", index, delta={"type": "text", "text": text}, **more)


def over(*steps: dict[str, Any], **more: Any) -> bytes:
    said = {"status": "requires_action", **more} | ({"steps": list(steps)} if steps else {})
    return sse({"event_type": "interaction.completed", "interaction": said})


STOP = step("stop")
CALL = {"type": "function_call", "id": "a", "name": "pay", "arguments": {"n": 1}}


# --- whose it is, and what breaks a call ----------------------------------------------------------

FATES: dict[str, tuple[list[bytes], list[Any]]] = {
    "fragments": ([start(), delta('{"n":'), delta("1}"), STOP, over()], [{"n": 1}]),
    "fragments behind a start with an empty text": (
        [start(arguments=""), delta('{"n":1}'), STOP, over()], [{"n": 1}],
    ),
    "a start with an empty text": ([start(arguments=""), STOP, over()], [{}]),
    "a text in its place": ([start(), delta('{"n":1}'), text("x"), STOP, over()], ["conflict"]),
    "a text after its end": ([start(), STOP, text("x"), over()], [{}]),
    "no place": ([start(None), delta('{"n":1}', None), step("stop", None), over()], ["conflict"]),
    "another kind of call in its place": (
        [start(), delta({"n": 1}, type="mcp_server_tool_call"), STOP, over()], ["conflict"],
    ),
    "another id in its place": ([start(), delta('{"n":1}', id="b"), STOP, over()], ["conflict"]),
    "its own id again": ([start(), delta('{"n":1}', id="a"), STOP, over()], [{"n": 1}]),
    "an id that is empty": ([start(), delta('{"n":1}', id=""), STOP, over()], [{"n": 1}]),
    "a fragment that is a list": ([start(), delta([1]), STOP, over()], ["conflict"]),
    "a fragment that is a number": ([start(), delta(1), STOP, over()], ["conflict"]),
    "a fragment that is null": ([start(), delta(None), delta("{}"), STOP, over()], ["conflict"]),
    "its start says what nobody reads": (
        [step("start", step={"type": "function_call", "id": "a", "name": "pay", "args": {"n": 1}}),
         STOP, over()], ["conflict"],
    ),
    "an end in a place that nobody can read": (
        [start(), delta('{"n":1}'), step("stop", "x"), over()], ["conflict"],
    ),
    "a text in a place that nobody can read": (
        [start(), delta('{"n":1}'), text("x", "y"), STOP, over()], ["conflict"],
    ),
    "a new kind of event about calls": (
        [start(), delta('{"n":1}'), sse({"event_type": "new", "of": {"type": "x_call"}}), STOP,
         over()], ["conflict"],
    ),
    "a new kind of event with arguments": (
        [start(), delta('{"n":1}'), sse({"event_type": "new", "arguments": "x"}), STOP, over()],
        ["conflict"],
    ),
    "a new kind of event": (
        [start(), delta('{"n":1}'), sse({"event_type": "new", "of": "x"}), STOP, over()],
        [{"n": 1}],
    ),
    "a new kind of step in its place": (
        [start(), delta('{"n":1}'), step("start", step={"type": "new"}), STOP, over()],
        ["conflict"],
    ),
    "another step in its place": (
        [start(), delta('{"n":1}'), start(type="model_output"), over()], ["conflict"],
    ),
    "its end says that it failed": (
        [start(), delta('{"n":1}'), step("stop", status="failed"), over()], ["provider_error"],
    ),
    "an object": ([start(), delta({"n": 1}), STOP, over()], [{"n": 1}]),
    "an empty object before its fragments": (
        [start(), delta({}), delta('{"n":1}'), STOP, over()], [{"n": 1}],
    ),
    "an object between its fragments": (
        [start(), delta('{"n":'), delta({"n": 1}), delta("1}"), STOP, over()], ["conflict"],
    ),
    "a start that brings a text, and fragments": (
        [start(arguments="x"), delta('{"n":1}'), STOP, over()], ["conflict"],
    ),
    "a start that brings another object": (
        [start(arguments={"n": 2}), delta('{"n":1}'), STOP, over()], [{"n": 1}],
    ),
    "another call in its place": (
        [start(), delta('{"n":1}'), start(id="b"), delta('{"n":2}'), STOP, over()],
        ["conflict", {"n": 2}],
    ),
    "said again when it was told": (
        [start(arguments={"n": 1}), STOP, start(arguments={"n": 1}), STOP, over()], [{"n": 1}],
    ),
    "said again, otherwise, when it was told": (
        [start(arguments={"n": 1}), STOP, start(arguments={"n": 2}), STOP, over()],
        [{"n": 1}, "conflict"],
    ),
    "the final interaction says it otherwise than it was told": (
        [start(), delta('{"n":2}'), STOP, over(CALL)], [{"n": 2}, "conflict"],
    ),
    "the final interaction says it as it was told": (
        [start(), delta('{ "n": 1 }'), STOP, over(CALL)], [{"n": 1}],
    ),
    "the final interaction says more of one that was empty": ([start(), STOP, over(CALL)], [{"n": 1}]),
    "the final interaction says another object than its start": (
        [start(arguments={"n": 2}), over(CALL)], ["conflict"],
    ),
    "the final interaction says an empty object of one that was never stopped": (
        [start(), over({**CALL, "arguments": {}})], ["truncated"],
    ),
    "the final interaction has another name": (
        [start(), delta('{"n":1}'), over({**CALL, "name": "run"})], ["conflict"],
    ),
    "the final interaction has another kind": (
        [start(), delta('{"n":1}'), over({**CALL, "type": "mcp_server_tool_call"})], ["conflict"],
    ),
    "the final interaction has one more": (
        [start(), delta('{"n":1}'), STOP, over(CALL, {**CALL, "id": "b"})], [{"n": 1}, {"n": 1}],
    ),
    "the final interaction has another in its stead": (
        [start(), delta('{"n":1}'), STOP, over({**CALL, "id": "b"})], [{"n": 1}, "conflict"],
    ),
    "the final interaction has another in its stead, twice": (
        [start(), delta('{"n":1}'), STOP, over({**CALL, "id": "b"}), over({**CALL, "id": "b"})],
        [{"n": 1}, "conflict"],
    ),
    "nothing, behind a step that says no place": (
        [start(None, type="model_output"), start(), STOP, over()], ["conflict"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FATES)
def test_a_call_is_what_came_in_its_place_or_broken(name: str):
    frames, expected = FATES[name]
    assert fate(told(*frames)) == (expected, ACT)


@pytest.mark.parametrize(
    ("status", "reason"), [("requires_continuation", "pause"), ("budget_exceeded", "length")]
)
def test_the_status_of_an_interaction_says_how_it_ended(status: str, reason: str):
    assert end(told(over(status=status))) == ("finish", reason)


def test_an_empty_fragment_is_not_told():
    events = told(start(), delta(""), delta("{}"), STOP, over())
    assert [e.text for e in events if isinstance(e, ToolCallDelta)] == ["{}"]


def test_a_retrieval_is_named_by_its_type():
    said = {"id": "r", "arguments": {"q": 1}}
    for type_, name in (("vertex_ai_search", "vertex_ai_search"), (None, "retrieval")):
        frames = start(type="retrieval_call", retrieval_type=type_, **said) + STOP
        assert [c[1] for c in calls(told(frames, over()))] == [name]


# --- what the final interaction says again --------------------------------------------------------

AGAIN: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "the same": ([CALL], {"n": 1}),
    "nothing of its arguments": ([{"type": "function_call", "id": "a", "name": "pay"}], "invalid_json"),
    "another call": ([{**CALL, "id": "b"}], "conflict"),
    "something else with its id": ([{"type": "thought", "id": "a"}], "conflict"),
    "no step at all": ([], "invalid_json"),
}  # fmt: skip


@pytest.mark.parametrize("name", AGAIN)
def test_a_call_that_never_ended_is_what_the_final_interaction_says(name: str):
    steps, expected = AGAIN[name]
    assert fate(told(start(), delta('{"n"'), over(*steps)))[0][0] == expected


def test_a_call_without_an_id_is_no_step_without_one():
    body = start(id="") + delta('{"n"')
    assert fate(told(body, over({**CALL, "id": ""})))[0] == ["conflict"]


def test_the_final_interaction_tells_a_call_of_which_nothing_came_and_no_other_again():
    other = ("b", "pay", {"n": 1})
    events = told(start(), delta('{"n":1}'), STOP, over(CALL, {**CALL, "id": "b"}))
    assert calls(events) == [("a", "pay", {"n": 1}), other]


def test_steps_that_were_never_streamed_are_told_from_the_final_interaction():
    said = {"type": "model_output", "content": [{"type": "text", "text": "x"}]}
    events = told(over(said, CALL))
    assert (text_of(events), calls(events)) == ("x", [("a", "pay", {"n": 1})])
    assert fate(told(over()))[0] == []


# --- text and results -----------------------------------------------------------------------------


def test_what_a_step_of_text_brings_when_it_starts_is_told():
    content = [
        {"type": "text", "text": "x", "annotations": [{"url": "u"}]},
        {"text": "y"},
        {"type": "image", "data": "z"},
        {"type": "new", "text": "w"},
        "v",
    ]
    events = told(start(type="model_output", content=content), STOP, over(status="completed"))
    assert text_of(events) == "xy"
    assert [e.payload for e in events if isinstance(e, Citation)] == [{"url": "u"}]
    assert [e.payload for e in events if isinstance(e, Unrecognized)] == [content[2]]


def test_what_a_thought_brings_when_it_starts_is_told():
    summary = [{"type": "text", "text": "x"}, {"type": "image", "data": "z"}, {"type": "new"}]
    events = told(start(type="thought", summary=summary, signature="s"), STOP, over())
    assert [e.text for e in events if isinstance(e, ReasoningDelta)] == ["x", ""]
    assert [e.payload for e in events if isinstance(e, Unrecognized)] == [summary[1]]


def test_a_result_is_told_at_the_end_of_its_step_and_no_later_than_the_end():
    result = {"type": "google_search_result", "call_id": "a", "result": [1]}
    for frames in ((start(**result), STOP, over()), (start(**result), over()),
                   (step("delta", delta=result), STOP, over())):  # fmt: skip
        (event,) = [e for e in told(*frames) if isinstance(e, ProviderToolResult)]
        assert event.output == [1]


# --- the end --------------------------------------------------------------------------------------


def test_counts_are_heard_wherever_they_stand():
    for body in (text("x", metadata={"total_usage": {"total_input_tokens": 3}}) + over(),
                 step("stop", usage={"total_input_tokens": 3}) + over(),
                 over(usage={"total_input_tokens": 3})):  # fmt: skip
        (usage,) = [e for e in told(text("x"), body) if isinstance(e, Usage)]
        assert usage.input == 3


def test_an_interaction_that_says_nothing_but_its_end_is_completed():
    events = told(text("x"), sse({"event_type": "interaction.completed"}))
    assert end(events) == STOPPED
    assert end(told(sse({"event_type": "interaction.created"}), text("x"), over())) == ACT


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        ([start(type="model_output", error={"message": "no"}), over(status="completed")], "no"),
        ([start(type="model_output", error={"message": "no"}), over(status="failed")], "no"),
        ([text("x"), over(status="failed")], "the interaction failed"),
        ([text("x"), over(errors=[{"message": "no"}], status="completed")], "no"),
        ([text("x"), over(errors=[{"message": "no"}], status="failed")], "no"),
    ],
)
def test_an_error_fails_the_turn_and_says_why(frames: list[bytes], error: str):
    last = told(*frames)[-1]
    assert isinstance(last, Failed)
    assert (last.reason, last.error) == ("provider_error", error)


def test_a_cancelled_interaction_is_cancelled_and_so_are_its_calls():
    assert fate(told(start(), over(status="cancelled"))) == (["cancelled"], ("failed", "cancelled"))


def test_a_token_to_go_on_with_is_kept():
    last = told(text("x"), over(continuation_token="t"))[-1]
    assert isinstance(last, Finish)
    assert last.echo == {"continuation_token": "t"}
    assert not told(text("x"), over())[-1].echo


def test_nothing_is_read_behind_the_end_mark():
    events, notes = heard("gemini_interactions", text("x") + over() + DONE + text("y"))
    assert (text_of(events), end(events), notes) == ("x", ACT, {"stream.after_end": 1})


@pytest.mark.parametrize("status", [None, "", "queued", "in_progress"])
def test_a_status_of_an_interaction_that_goes_on_is_no_end(status: str | None):
    created = {"event_type": "interaction.created", "interaction": {"status": status}}
    assert end(told(sse(created), text("x"))) == ("failed", "truncated")


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (None, "the provider reported an error", None),
        ("no", "no", None),
        ({"message": "no"}, "no", None),
        ({"code": "x", "status": "y"}, "x", "x"),
        ({"status": "UNAVAILABLE", "message": "no"}, "no", "UNAVAILABLE"),
    ],
)
def test_an_error_says_what_it_says(error: Any, message: str, code: str | None):
    last = told(text("x"), sse({"event_type": "error", "error": error}))[-1]
    assert isinstance(last, Failed)
    assert (last.error, last.code, last.retryable) == (message, code, code == "UNAVAILABLE")


def test_an_end_mark_before_any_status_is_a_cut():
    assert end(told(text("x"), DONE)) == ("failed", "truncated")
    assert end(told(text("x"), over(), DONE)) == ACT


def test_what_a_call_brings_beside_its_arguments_goes_back_with_it():
    events = told(start(signature="s"), delta('{"n":1}'), STOP, over())
    (event,) = [e for e in events if isinstance(e, ToolCall)]
    assert event.echo == {"signature": "s"}


def test_a_status_that_was_said_before_stays_where_the_end_says_only_that_it_goes_on():
    said = sse({"event_type": "interaction.status_update", "status": "incomplete"})
    assert end(told(text("Hi"), said, over(status="in_progress"), DONE)) == ("finish", "length")
    assert end(told(text("Hi"), over(status="in_progress"), DONE)) == ("finish", "other")


# --- over a second connection ---------------------------------------------------------------------


CREATED = sse(
    {"event_type": "interaction.created", "event_id": "e0", "interaction": {"id": "v1", "model": "m"}}
)  # fmt: skip
EVENTS: dict[str, dict[str, Any]] = {
    "interaction.created": {"interaction": {"id": "v1", "model": "m"}},
    "interaction.status_update": {"status": "in_progress"},
    "step.start": {"index": 0, "step": {"type": "model_output"}},
    "step.delta": {"index": 0, "delta": {"type": "text", "text": "Hi"}},
    "step.stop": {"index": 0},
    "interaction.completed": {"interaction": {"id": "i", "status": "completed"}},
}


@pytest.mark.parametrize("kind", EVENTS)
def test_the_place_of_the_last_event_that_has_one_is_kept(kind: str):
    event = {"event_type": kind, **EVENTS[kind]}
    pipe = Normalizer("gemini_interactions")
    pipe.feed(CREATED + sse({**event, "event_id": "e7"}))
    pipe.feed(sse(event))
    assert Cursor.read(pipe.cursor or "").at == "e7"


def resumed(*payloads: bytes) -> list[Any]:
    """What became of the calls, behind a cut in the first step."""
    pipe = Normalizer(after=str(Cursor("gemini_interactions", "v1", "e1", 1)))
    events = pipe.feed(b"".join(payloads) + over(CALL, {**CALL, "id": "b"})) + pipe.close()
    return [getattr(e, "arguments", e.kind) for e in events if e.kind.endswith("tool_call")]


def test_a_call_that_was_cut_is_told_from_the_end_if_it_ended_behind_the_cut():
    assert resumed(STOP) == [{"n": 1}, {"n": 1}]
    assert resumed(text("Hi", 1)) == [{"n": 1}]


@pytest.mark.parametrize(("index", "fate_"), [(0, "tool_call"), (1, "broken_tool_call")])
def test_fragments_of_a_call_that_was_cut_say_nothing_against_the_others(index: int, fate_: str):
    pipe = Normalizer(after=str(Cursor("gemini_interactions", "v1", "e1", 1)))
    steps = start(2, id="b"), delta("1}", index), delta('{"n":1}', 2), step("stop", 2)
    events = pipe.feed(b"".join(steps) + over()) + pipe.close()
    assert [e.kind for e in events if e.kind.endswith("tool_call")] == [fate_]


def test_a_text_that_was_cut_is_not_told_again_from_the_end():
    pipe = Normalizer(after=str(Cursor("gemini_interactions", "v1", "e1", 1)))
    said = {"type": "model_output", "content": [{"type": "text", "text": "Hi there"}]}
    events = pipe.feed(text(" there") + STOP + over(said, status="completed")) + pipe.close()
    assert text_of(events) == " there"


def test_arguments_that_the_start_and_a_fragment_say_alike_replace_nothing():
    said = start(arguments={"n": 1}), delta('{"n": 1}'), STOP, over(), DONE
    events, notes = heard("gemini_interactions", b"".join(said))
    assert (fate(events), notes) == (([{"n": 1}], ACT), {})


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ({"n": 1}, {"n": 1}, True),
        ({}, {}, True),
        ({"n": 1}, {"n": 2}, False),
        ({"n": 1}, {}, False),
    ],
)
def test_a_start_that_is_said_again_must_bring_the_same_arguments(first, second, whole):
    starts = start(arguments=first), start(arguments=second)
    calls, _ = fate(told(*starts, step("stop"), over("requires_action")))
    assert calls == [first if whole else "conflict"]


@pytest.mark.parametrize(
    ("said", "fate_"), [(delta({"n": 1}, type="text"), "conflict"), (text("x"), {})]
)
def test_a_text_that_has_arguments_is_of_the_call_in_its_place_though_that_has_stopped(said, fate_):
    assert fate(told(start(), step("stop"), said, over()))[0] == [fate_]


def test_a_call_that_begins_behind_the_end_of_its_turn_is_no_sound_one():
    for more in (b"", STOP):
        assert fate(told(over(), start(arguments={"n": 1}), more)) == (["conflict"], ACT)


def test_what_is_no_call_and_only_the_final_interaction_has_is_none():
    said = {"type": "model_output", "id": "x", "content": [{"type": "text", "text": "hi"}]}
    frames = (start(), delta('{"n":1}'), STOP)
    assert fate(told(*frames, over(CALL, said))) == ([{"n": 1}], ACT)
    assert fate(told(*frames, over(said)))[1] == ACT


@pytest.mark.parametrize("said", [{}, {"n": "?"}], ids=["nothing", "no characters"])
def test_arguments_that_a_start_brought_are_held_against_the_final_interaction(said: Any):
    last = over({**CALL, "arguments": said}).replace(b"?", b"\xff")
    assert fate(told(start(arguments={"n": 1}), last))[0] == ["conflict"]


@pytest.mark.parametrize(
    ("heard_of_it", "fate_"),
    [('{"n"', "conflict"), ('{"n":1}', "conflict"), ("{}", {}), ("", "truncated")],
)
@pytest.mark.parametrize("arguments", [{}, "", "{}"])
def test_a_final_interaction_without_arguments_takes_none_of_a_text_away(
    arguments, heard_of_it, fate_
):
    events = told(start(), delta(heard_of_it), over({**CALL, "arguments": arguments}))
    assert fate(events)[0] == [fate_]


@pytest.mark.parametrize(
    ("arguments", "fate_"), [({}, {}), ("{}", {}), ("", "conflict"), (None, "conflict")]
)
def test_an_empty_object_that_was_heard_in_doubt_is_confirmed_by_one(arguments, fate_):
    lost = delta("x", 9)
    events = told(start(), delta("{}"), lost, STOP, over({**CALL, "arguments": arguments}))
    assert fate(events)[0] == [fate_]


@pytest.mark.parametrize(
    ("index", "fates"), [(None, ["conflict", "conflict"]), (1, [{"n": 1}, {}])]
)
def test_a_step_that_does_not_say_its_place_may_be_whose_pieces_come_in_another(index, fates):
    events = told(
        start(), start(index, id="b"), delta('{"n":1}'), STOP, step("stop", index), over()
    )
    assert fate(events)[0] == fates


OTHER = {**CALL, "id": "b"}
NOTHING = {**CALL, "arguments": {}}


@pytest.mark.parametrize(
    ("steps", "fates"),
    [
        ([CALL, OTHER], [{"n": 1}, "conflict"]),
        ([OTHER], [{"n": 1}, "conflict"]),
        ([{**CALL, "arguments": {"n": 2}}], [{"n": 1}, "conflict"]),
        ([NOTHING], [{"n": 1}, "conflict"]),
    ],
)
def test_a_final_interaction_that_is_said_again_is_held_against_what_was_told(steps, fates):
    frames = (start(), delta('{"n":1}'), STOP, over(CALL), over(*steps))
    assert fate(told(*frames))[0] == fates


@pytest.mark.parametrize(
    ("steps", "fates"), [([CALL, OTHER], [{"n": 1}, {"n": 1}]), ([OTHER], [{"n": 1}, "conflict"])]
)
def test_a_call_of_a_later_final_interaction_needs_another_and_all_that_were_heard(steps, fates):
    frames = (start(), delta('{"n":1}'), STOP, over(CALL), over(*steps), over(*steps))
    assert fate(told(*frames))[0] == fates


def test_a_copy_of_a_call_is_what_was_heard_of_it_though_the_final_interaction_says_none():
    nothing = {k: v for k, v in CALL.items() if k != "arguments"}
    frames = (over(CALL), start(), delta('{"n":2}'), over(nothing), STOP)
    assert fate(told(*frames))[0] == [{"n": 1}, "conflict"]


def test_a_call_that_differs_from_the_final_interaction_is_noted_once():
    frames = (start(), delta('{"n":1}'), STOP, over({**CALL, "arguments": {"n": 2}}))
    assert heard("gemini_interactions", b"".join(frames))[1]["args.mismatch"] == 1


def test_a_call_without_arguments_that_broke_does_not_differ_from_one_that_has_none():
    _, pipe = traced("gemini_interactions", over(NOTHING) + start() + over(NOTHING))
    assert "args.mismatch" not in pipe.notes


# --- what begins again with another whole input -----------------------------------------------------

SERVER: dict[str, Any] = {"type": "mcp_server_tool_call", "id": "a"}


@pytest.mark.parametrize(
    ("said", "then"),
    [
        ({"n": 1}, [{"n": 1}]),
        ({"n": 1, "m": 2}, [{"n": 1, "m": 2}]),  # it may know more by then
        ({"n": 2}, []),
        ({"m": 12345678}, []),
        ({}, []),
    ],
)
def test_what_the_provider_runs_may_begin_again_with_more_and_not_with_another_input(
    said: dict[str, Any], then: list[Any]
):
    begun = [start(**SERVER, name=name, arguments=a) for name, a in (("", {"n": 1}), ("f", said))]
    events = told(*begun, STOP, over())
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == then


@pytest.mark.parametrize(
    ("said", "then"), [({"n": 1}, [{"n": 1}]), ({"n": 1, "m": 2}, []), ({"n": 2}, [])]
)
def test_what_the_client_runs_begins_again_with_the_same_input_or_is_broken(
    said: dict[str, Any], then: list[Any]
):
    begun = [start(name=name, arguments=a) for name, a in (("", {"n": 1}), ("pay", said))]
    events = told(*begun, STOP, over())
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == then


def test_a_call_that_the_list_has_twice_is_one_and_said_otherwise_it_is_broken():
    same, other = over(CALL, CALL), over(CALL, {**CALL, "arguments": {"n": 2}})
    assert fate(told(same)) == ([{"n": 1}], ACT)
    assert fate(told(other)) == ([{"n": 1}, "conflict"], ACT)
