"""Many responses on one connection: each is a stream of its own, whatever comes in between."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Limits, Normalizer
from streamnorm.demultiplexer import Demultiplexer, Router, Told
from streamnorm.errors import NoteRaised, UsageError
from streamnorm.events import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    TextDelta,
    ToolCall,
    Unrecognized,
)
from tests.conftest import RECORDINGS, assert_well_formed, load, take_id, take_paths
from tests.pipe.test_laws import payloads_of
from tools.golden import golden_of, told_of

SESSIONS = sorted(RECORDINGS.glob("*/sessions/*.jsonl"))
over_sessions = pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)


def streams_of(told: list[Told]) -> dict[int | None, list[Event]]:
    """The events of each stream, by its number; under None what belongs to none."""
    found: dict[int | None, list[Event]] = defaultdict(list)
    for one in told:
        found[one.stream] += one.events
    return dict(found)


def demultiplexed(messages: list[Any], **options: Any) -> dict[int | None, list[Event]]:
    turns = Demultiplexer(**{"provider": "openai_responses", "seed": "s", **options})
    told = [one for message in messages for one in turns.feed(message)]
    return streams_of(told + turns.close())


def alone(messages: list[Any]) -> list[Event]:
    pipe = Normalizer("openai_responses")
    events = [event for message in messages for event in pipe.feed_payload(message)]
    return events + pipe.close()


def created(lane: str | None = None, id: str = "resp_1", **more: Any) -> dict[str, Any]:
    said = {"type": "response.created", "response": {"id": id, "model": "m"}, **more}
    return said | ({"stream_id": lane} if lane else {})


def delta(text: str, lane: str | None = None) -> dict[str, Any]:
    said = {"type": "response.output_text.delta", "output_index": 0, "delta": text}
    return said | ({"stream_id": lane} if lane else {})


def ended(lane: str | None = None, id: str = "resp_1", status: str = "completed") -> dict[str, Any]:
    said = {"type": f"response.{status}", "response": {"id": id, "status": status}}
    return said | ({"stream_id": lane} if lane else {})


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


# --- lanes ----------------------------------------------------------------------------------------


@cache
def spoken() -> list[tuple[list[dict[str, Any]], list[Event]]]:
    """The messages of every take that begins and ends a response, and what they give alone."""
    found = []
    for path in take_paths():
        messages = payloads_of(path) if path.parent.name == "openai_responses" else []
        types = [m.get("type") for m in messages if isinstance(m, dict)]
        if types[:1] == ["response.created"] and types.count("response.created") == 1:
            events = alone(messages)
            if not any("syn_" in str(getattr(e, "id", "")) for e in events):
                found.append((messages, events))
    return found


def in_lane(message: dict[str, Any], lane: str | None) -> dict[str, Any]:
    return message if lane is None else {**message, "stream_id": lane}


@st.composite
def woven(draw: st.DrawFn) -> tuple[list[tuple[int, dict[str, Any]]], list[list[Event]]]:
    """Messages of two to four takes, each in a lane of its own, in any order between lanes."""
    takes = draw(st.lists(st.sampled_from(range(len(spoken()))), min_size=2, max_size=4))
    queues = []
    for n, at in enumerate(takes):
        lane = None if n == 0 and draw(st.booleans()) else f"lane-{n}"
        queues.append([(n, in_lane(message, lane)) for message in spoken()[at][0]])
    order = draw(st.permutations([n for n, queue in enumerate(queues) for _ in queue]))
    return [queues[n].pop(0) for n in order], [spoken()[at][1] for at in takes]


@given(woven())
def test_each_lane_tells_what_it_would_alone_in_any_interleaving(case: Any):
    messages, expected = case
    order = list(dict.fromkeys(n for n, _ in messages))  # streams are numbered as they begin
    streams = demultiplexed([message for _, message in messages])
    told = [[without_lane(event) for event in streams[at]] for at in range(len(order))]
    assert told == [expected[n] for n in order]


def without_lane(event: Event) -> Event:
    """What is passed on whole names its lane."""
    if not isinstance(event, Unrecognized) or not isinstance(event.payload, dict):
        return event
    payload = {key: value for key, value in event.payload.items() if key != "stream_id"}
    return Unrecognized(event.wire_kind, payload)


@given(woven(), st.floats(0, 1))
def test_a_cut_ends_every_open_lane_and_makes_no_call_that_was_not_made(case: Any, where: float):
    messages, expected = case
    cut = messages[: int(len(messages) * where)]
    streams = demultiplexed([message for _, message in cut])
    for at, n in enumerate(dict.fromkeys(n for n, _ in cut)):
        assert_well_formed(streams[at])
        calls = [event for event in streams[at] if isinstance(event, ToolCall)]
        assert calls == [e for e in expected[n] if isinstance(e, ToolCall)][: len(calls)]


def test_there_are_many_takes_to_weave():
    assert len(spoken()) > 40


# --- sessions that were written down --------------------------------------------------------------


@over_sessions
def test_a_session_tells_what_is_written_beside_it(path: Path):
    assert b"".join(line + b"\n" for line in told_of(path)) == golden_of(path).read_bytes()


@over_sessions
def test_every_stream_of_a_session_cut_anywhere_has_one_end(path: Path):
    messages = path.read_bytes().splitlines()
    whole = demultiplexed(messages)
    for cut in range(len(messages) + 1):
        streams = demultiplexed(messages[:cut])
        for number, events in streams.items():
            if number is not None:
                assert_well_formed(events)
                calls = [e for e in events if isinstance(e, ToolCall)]
                assert all(call in whole[number] for call in calls), f"cut at {cut}"


@over_sessions
@pytest.mark.parametrize("how", ["text", "bytes", "dict", "spread over lines", "auto"])
def test_a_message_may_come_as_text_bytes_or_a_dict(path: Path, how: str):
    lines = path.read_text().splitlines()
    shaped = {
        "bytes": lambda line: line.encode(),
        "dict": json.loads,
        "spread over lines": lambda line: json.dumps(json.loads(line), indent=1),
    }.get(how, str)
    options = {"provider": "auto"} if how == "auto" else {}
    assert demultiplexed([shaped(line) for line in lines], **options) == demultiplexed(lines)


def test_what_is_no_message_is_refused():
    with pytest.raises(UsageError, match="a message is text, bytes or a dict, not a list"):
        Demultiplexer().feed([1])  # type: ignore[arg-type]


# --- turns ----------------------------------------------------------------------------------------


def test_turns_follow_each_other_in_one_lane():
    one, two = (
        [created(), delta("a"), ended()],
        [created(id="resp_2"), delta("b"), ended(id="resp_2")],
    )
    streams = demultiplexed(one + two)
    assert streams == {0: alone(one), 1: alone(two)}


def test_what_comes_after_the_end_of_its_response_is_noted_and_begins_nothing():
    turns = Demultiplexer("openai_responses")
    for message in (created(), ended()):
        turns.feed(message)
    for late in (delta("late"), ended(), {**created(), "type": "response.in_progress"}):
        assert turns.feed(late) == []
    assert turns.notes == {"stream.after_end": 3}
    assert turns.close() == []


def test_a_late_end_of_the_last_response_does_not_end_the_next_one():
    turns = Demultiplexer("openai_responses")
    for message in (created(), ended(), created(id="resp_2")):
        turns.feed(message)
    assert turns.feed(ended(id="resp_1", status="failed")) == []
    assert turns.notes == {"stream.after_end": 1}
    ((stream, _, events),) = turns.feed(ended(id="resp_2"))
    assert (stream, kinds(events)) == (1, ["finish"])


def test_a_response_that_begins_where_another_is_open_ends_that_one_as_cut():
    streams = demultiplexed([created(), delta("a"), created(id="resp_2"), ended(id="resp_2")])
    assert streams[0][-1].reason == "truncated"
    assert kinds(streams[1]) == ["stream_start", "finish"]


def test_a_beginning_that_is_said_again_is_the_same_response():
    assert kinds(demultiplexed([created(), created(), delta("a"), ended()])[0])[-1] == "finish"


def test_a_beginning_that_comes_late_begins_nothing_new():
    queued = {**created(), "type": "response.queued"}
    streams = demultiplexed([queued, created(), delta("a"), ended()])
    assert list(streams) == [0]
    assert isinstance(streams[0][-1], Finish)


def test_a_response_that_nobody_announced_is_one():
    assert kinds(demultiplexed([delta("a", "x"), ended("x")])[0]) == [
        "stream_start",
        "text_delta",
        "finish",
    ]


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_every_word_for_the_end_ends_a_response(status: str):
    router = Router("openai_responses")
    router.route(json.dumps(created()).encode())
    moves = router.route(json.dumps(ended(status=status)).encode())
    assert [move.step.value for move in moves] == ["hear", "end"]


# --- errors ---------------------------------------------------------------------------------------

ERROR = {"type": "error", "status": 400, "error": {"code": "bad", "message": "No.", "type": "x"}}


def test_a_request_that_is_refused_is_a_stream_that_fails():
    streams = demultiplexed([ERROR, {**ERROR, "stream_id": "b"}, created("c"), ended("c")])
    assert [streams[n][-1] for n in (0, 1)] == [Failed("provider_error", "No.", False, "bad")] * 2
    assert isinstance(streams[2][-1], Finish)


def test_an_error_ends_the_open_response_of_its_lane_and_no_other():
    streams = demultiplexed(
        [created("a"), created("b"), {**ERROR, "stream_id": "a"}, delta("x", "b"), ended("b")]
    )
    assert streams[0][-1] == Failed("provider_error", "No.", False, "bad")
    assert kinds(streams[1]) == ["stream_start", "text_delta", "finish"]


def test_an_error_without_a_lane_leaves_the_lanes_alone():
    streams = demultiplexed([created("a"), ERROR, delta("x", "a"), ended("a")])
    assert kinds(streams[0]) == ["stream_start", "text_delta", "finish"]
    assert kinds(streams[1]) == ["failed"]


def test_an_error_of_a_response_that_has_ended_is_late():
    turns = Demultiplexer("openai_responses")
    for message in (created(), ended(status="failed")):
        turns.feed(message)
    assert turns.feed({**ERROR, "sequence_number": 7}) == []
    assert turns.notes == {"stream.after_end": 1}


CALL = {
    "type": "response.output_item.added", "output_index": 0,
    "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "now", "arguments": ""},
}  # fmt: skip


@pytest.mark.parametrize("damaged", ['{"type":"response.output_t', "[1]", "hello", b"\xff\xfe{"])
@pytest.mark.parametrize("how", ["fail", "skip"])
def test_what_cannot_be_read_may_be_of_any_open_stream_so_all_of_them_hear_it(
    damaged: Any, how: str
):
    lanes = ("a", "b")
    turns = Demultiplexer("openai_responses", on_bad_event=how)
    done = {**CALL, "type": "response.output_item.done"}
    said = [created(lane) for lane in lanes] + [{**CALL, "stream_id": lane} for lane in lanes]
    told = [one for message in said for one in turns.feed(message)]
    told += turns.feed(damaged)
    told += [one for lane in lanes for one in turns.feed({**done, "stream_id": lane})]
    told += [one for lane in lanes for one in turns.feed(ended(lane))]
    for events in streams_of(told).values():
        assert_well_formed(events)
        assert not [event for event in events if isinstance(event, ToolCall)]
        assert [event for event in events if isinstance(event, BrokenToolCall)]


def test_half_of_a_surrogate_pair_is_no_reason_to_tell_it_to_others():
    half = (
        '{"type":"response.output_text.delta","stream_id":"a","output_index":0,"delta":"\\ud83d"}'
    )
    streams = demultiplexed([created("a"), created("b"), half, ended("a"), ended("b")])
    assert kinds(streams[1]) == ["stream_start", "finish"]


# --- beside the streams ---------------------------------------------------------------------------


def test_what_belongs_to_no_response_is_told_outside_of_them():
    turns = Demultiplexer("openai_responses")
    pending = {"type": "response.steer.pending", "stream_id": "a", "sequence_number": 9}
    for message in (created("a"), ended("a")):
        turns.feed(message)
    ((stream, lane, (event,)),) = turns.feed(pending)
    assert (stream, lane, event.kind) == (None, "a", "unrecognized")
    assert (event.wire_kind, event.payload) == ("response.steer.pending", pending)
    ((stream, lane, (event,)),) = turns.feed("not JSON at all")
    assert (stream, lane, event.wire_kind, event.payload) == (None, None, "?", "not JSON at all")
    assert turns.notes == {"session.outside": 2}


def test_what_is_steered_while_a_response_is_open_is_told_by_its_stream():
    accepted = {"type": "response.steer.accepted", "stream_id": "a", "steer": {"id": "s"}}
    streams = demultiplexed([created("a"), accepted, ended("a", status="incomplete")])
    assert kinds(streams[0])[:2] == ["stream_start", "unrecognized"]
    assert None not in streams


def test_messages_of_no_wire_that_we_know_are_told_until_one_comes():
    streams = demultiplexed([{"hello": 1}, created("a"), ended("a")], provider="auto")
    assert kinds(streams[None]) == ["unrecognized"]
    assert kinds(streams[0]) == ["stream_start", "finish"]


# --- bounds ---------------------------------------------------------------------------------------


def test_more_lanes_than_may_be_open_fail_as_they_begin():
    limits = Limits(lanes=2)
    messages = [created(lane) for lane in "abc"] + [delta("x", "c"), ended("c")]
    messages += [ended("a"), created("d"), ended("d"), ended("b")]
    streams = demultiplexed(messages, limits=limits)
    assert streams[2] == [
        Failed(
            "limit", "more than 2 (lanes); raise Limits(lanes=…) if this is wanted", False, "lanes"
        )
    ]
    assert [streams[n][-1].kind for n in (0, 1, 3)] == ["finish"] * 3


def test_streams_that_have_ended_are_forgotten():
    turns = Demultiplexer("openai_responses")
    for n in range(3000):
        for message in (created(f"lane-{n}"), ended(f"lane-{n}")):
            turns.feed(message)
    assert turns.pipes == {}
    assert len(turns._router._ended) <= 1024


def test_a_lane_whose_name_is_too_long_is_not_kept():
    turns = Demultiplexer("openai_responses", limits=Limits(id=8))
    ((stream, _, _),) = turns.feed(created("x" * 9))
    assert stream is None
    assert turns._router._open == {}


def test_a_response_whose_id_is_too_long_is_read_and_its_id_is_not_kept():
    turns = Demultiplexer("openai_responses", limits=Limits(id=8))
    messages = [created("a", "x" * 9), delta("y", "a"), ended("a", "x" * 9)]
    events = [event for m in messages for told in turns.feed(m) for event in told.events]
    assert kinds(events) == ["stream_start", "text_delta", "finish"]
    assert turns._router._ended == {"a": None}


def arguments(text: str, lane: Any = None) -> dict[str, Any]:
    said = {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0}
    return said | {"delta": text} | ({"stream_id": lane} if lane else {})


def call_done(lane: str) -> dict[str, Any]:
    """The end of a call that does not say its arguments again."""
    item = {k: v for k, v in CALL["item"].items() if k != "arguments"}
    return {**CALL, "type": "response.output_item.done", "stream_id": lane, "item": item}


def test_a_lane_whose_name_is_too_long_is_heard_by_no_other():
    begun = [created("a"), CALL | {"stream_id": "a"}, arguments('{"amount": 1', "a")]
    rest = [arguments("}", "a"), call_done("a"), ended("a")]
    streams = demultiplexed([*begun, arguments("000", "z" * 257), *rest])
    (call,) = [event for event in streams[0] if isinstance(event, ToolCall)]
    assert call.arguments == {"amount": 1}
    assert kinds(streams[None]) == ["unrecognized"]


def test_a_lane_that_is_a_number_is_not_the_one_whose_name_is_its_text():
    messages = [created("1"), delta("x", "1"), created(1), delta("y", 1), ended("1"), ended(1)]  # type: ignore[arg-type]
    streams = demultiplexed(messages)
    texts = [[e.text for e in streams[n] if isinstance(e, TextDelta)] for n in (0, 1)]
    assert texts == [["x"], ["y"]]
    assert [kinds(streams[n])[-1] for n in (0, 1)] == ["finish", "finish"]


def test_a_message_beyond_the_limit_fails_its_own_stream():
    limits = Limits(frame_bytes=2000)
    streams = demultiplexed(
        [created("a"), created("b"), delta("x" * 3000, "a"), ended("b")], limits=limits
    )
    assert streams[0][-1].reason == "limit"
    assert isinstance(streams[1][-1], Finish)


def test_streams_mint_ids_of_their_own():
    item = {"type": "function_call", "name": "now", "arguments": "{}", "status": "completed"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    messages = [
        m for lane in "ab" for m in (created(lane), {**done, "stream_id": lane}, ended(lane))
    ]
    first, second = (demultiplexed(messages, seed="s")[n] for n in (0, 1))
    ids = [e.id for events in (first, second) for e in events if isinstance(e, ToolCall)]
    assert len(set(ids)) == 2
    assert demultiplexed(messages, seed="s") == {0: first, 1: second}


def test_under_strict_a_tolerance_of_one_stream_is_raised():
    turns = Demultiplexer("openai_responses", strict=True)
    turns.feed(created("a"))
    with pytest.raises(NoteRaised):
        turns.feed({"type": "response.moon", "stream_id": "a"})


def test_a_failed_connection_fails_every_stream_that_is_open():
    turns = Demultiplexer("openai_responses")
    for lane in "ab":
        turns.feed(created(lane))
    told = streams_of(turns.fail("transport", "gone", retryable=True))
    assert told == {n: [Failed("transport", "gone", True)] for n in (0, 1)}
    assert turns.close() == []


def test_a_failed_connection_says_nothing_of_a_stream_that_had_failed():
    turns = Demultiplexer("openai_responses", limits=Limits(frame_bytes=2000))
    turns.feed(created())
    ((_, _, events),) = turns.feed(delta("x" * 3000))
    assert events[-1].reason == "limit"
    assert turns.fail("transport", "gone") == []


def test_lanes_are_limited_by_default():
    streams = demultiplexed([created(f"{n}") for n in range(Limits().lanes + 1)])
    assert streams[Limits().lanes][-1].code == "lanes"


def test_streams_without_a_seed_have_secrets_of_their_own():
    turns = [Demultiplexer("openai_responses") for _ in range(2)]
    for each in turns:
        each.feed(created())
    assert turns[0].pipes[0].seed != turns[1].pipes[0].seed


def test_a_provider_without_sessions_says_so():
    with pytest.raises(UsageError, match="anthropic cannot multiplex; it can read, write"):
        Demultiplexer("anthropic")


# --- one pipe -------------------------------------------------------------------------------------


def test_two_lanes_in_one_pipe_are_refused_instead_of_merged():
    pipe = Normalizer("openai_responses")
    events = pipe.feed_payload(created("a")) + pipe.feed_payload(delta("x", "a"))
    events += pipe.feed_payload(created("b"))
    assert events[-1].reason == "protocol"
    assert "streamnorm.sessions" in events[-1].error


@pytest.mark.parametrize(
    "begun", [[created("a"), delta("x", "a")], [created(), delta("x")], [delta("x", "a")]]
)
@pytest.mark.parametrize(
    "stray", [delta("y", "b"), arguments("{}", "b"), CALL | {"stream_id": "b"}, ended("b")]
)
@pytest.mark.parametrize("how", ["payloads", "bytes"])
def test_a_part_of_another_lane_in_one_pipe_is_refused_instead_of_merged(
    begun: list[Any], stray: dict[str, Any], how: str
):
    pipe = Normalizer("openai_responses")
    if how == "payloads":
        events = [event for message in [*begun, stray] for event in pipe.feed_payload(message)]
    else:
        body = (b"data: %s\n\n" % json.dumps(m).encode() for m in [*begun, stray])
        events = [event for frame in body for event in pipe.feed(frame)]
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["x"]
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
    assert "streamnorm.sessions" in events[-1].error


def test_a_part_that_names_no_lane_is_of_the_one_that_is_read():
    assert kinds(alone([created("a"), delta("x"), delta("y", "a"), ended()])) == [
        "stream_start", "text_delta", "text_delta", "finish",
    ]  # fmt: skip


@pytest.mark.parametrize("glue", ["", "\n", "\r\n", " ", "\n\n"])
def test_messages_as_bytes_are_read_whatever_stands_between_them(glue: str):
    path = next(p for p in take_paths() if take_id(p) == "openai_responses/parallel_calls")
    messages = payloads_of(path)
    body = glue.join(json.dumps(message) for message in messages).encode()
    pipe = Normalizer("openai_responses")
    assert pipe.feed(body) + pipe.close() == alone(messages)
    assert load(path)[0].provider == "openai_responses"


# --- the router, message by message -----------------------------------------------------------------


def steps(
    *messages: dict[str, Any], provider: str = "openai_responses", **limits: int
) -> list[Any]:
    """What is done at the last of these messages."""
    router = Router(provider, limits=Limits(**limits))
    moves = [router.route(json.dumps(message).encode()) for message in messages]
    return [move.step.value for move in moves[-1]]


def nameless(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {}, **more}


def test_a_connection_is_nobodys_until_a_message_says_whose():
    router = Router()
    assert [move.step.value for move in router.route(b'{"type":"novel"}')] == ["outside"]
    assert router.provider == "auto"
    router.route(json.dumps(created()).encode())
    assert router.provider == "openai_responses"


def test_names_of_lanes_and_responses_may_be_as_long_as_ids_and_no_longer():
    assert steps(created("four"), id=4) == ["begin", "hear"]
    assert steps(created("fives"), id=4) == ["outside"]
    again, other = ["hear"], ["end", "begin", "hear"]
    assert steps(created(id="four"), created(id="four"), id=4) == again
    assert steps(created(id="fives"), created(id="fives"), id=4) == other  # it is not kept


def test_responses_without_an_id_that_begin_after_one_another_are_two():
    assert steps(nameless("created"), nameless("created")) == ["end", "begin", "hear"]


@pytest.mark.parametrize("last", [ended("b"), {"type": "error", "stream_id": "b"}])
def test_where_no_lane_is_free_an_end_is_refused_and_ends_nothing(last: dict[str, Any]):
    assert steps(created("a"), last, lanes=1) == ["begin", "refuse"]


def test_an_error_without_a_number_ends_the_response_that_is_open():
    assert steps(created(), {"type": "error", "message": "no"}) == ["hear", "end"]
    assert steps({"type": "error", "message": "no"}) == ["begin", "hear", "end"]


def test_behind_an_end_only_what_names_another_response_begins_one():
    named = {**delta("x"), "response_id": "resp_1"}
    assert steps(created(), ended(), delta("x")) == []
    assert steps(created(), ended(), named) == []
    assert steps(created(), ended(), {**named, "response_id": "resp_2"}) == ["begin", "hear"]


def test_what_names_no_response_is_of_the_one_that_is_open_though_one_without_an_id_has_ended():
    before = (nameless("created"), nameless("completed"), created(id="resp_2"))
    assert steps(*before, delta("x")) == ["hear"]


def turn(id: str | None = None) -> dict[str, Any]:
    return {"type": "turn_context", "payload": {"turn_id": id} if id else {}}


def test_a_turn_of_codex_without_an_id_is_none_that_has_one():
    assert steps(turn(), turn(), provider="codex") == ["hear"]
    assert steps(turn("a"), turn(), provider="codex") == ["hear", "end", "begin", "hear"]


def test_an_agent_below_is_not_ended_by_what_it_says_itself():
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    said = {
        "type": "assistant",
        "parent_tool_use_id": "toolu_1",
        "message": {"id": "m", "content": []},
    }
    result = {"type": "user", "message": {"content": [block]}}
    own = {**result, "parent_tool_use_id": "toolu_1"}
    assert steps(said, own, provider="claude_code") == ["hear"]
    assert steps(said, result, provider="claude_code") == ["outside", "hear", "end"]


def test_an_answer_whose_beginning_lost_its_id_is_the_one_that_says_one_and_no_other():
    begun = {"type": "stream_event", "event": {"type": "message_start", "message": {}}}
    said = {"type": "assistant", "message": {"id": "m", "content": []}}
    other = {"type": "assistant", "message": {"id": "n", "content": []}}
    piece = {"type": "stream_event", "event": {"type": "content_block_stop"}}
    for before in ((begun,), (piece,)):
        assert steps(*before, said, provider="claude_code") == ["hear"]
        again = steps(*before, said, other, provider="claude_code")
        assert again == ["hear", "end", "begin", "hear"]


def test_an_error_of_claude_code_is_told_outside_too_where_it_is_not_all_that_is_heard():
    said = {"type": "assistant", "message": {"id": "m", "content": []}}
    over = {"type": "result", "subtype": "error_during_execution", "is_error": True}
    assert steps(over, provider="claude_code") == ["begin", "hear", "end"]
    assert steps(said, over, provider="claude_code") == ["hear", "end", "outside"]


def ping(name: str) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": "ping"}, "uuid": name}


def test_names_of_messages_may_be_as_long_as_ids_and_no_longer():
    assert steps(ping("four"), ping("four"), provider="claude_code", id=4) == []
    assert steps(ping("fives"), ping("fives"), provider="claude_code", id=4) == ["hear"]


def test_as_many_messages_are_remembered_as_may_be_and_the_first_is_forgotten():
    names = [ping(str(number)) for number in range(1024)]
    assert steps(*names, names[0], provider="claude_code") == []
    assert steps(*names, ping("more"), names[1], provider="claude_code") == []
    assert steps(*names, ping("more"), names[0], provider="claude_code") == ["hear"]


def test_as_many_lanes_that_ended_are_remembered_as_may_be_and_the_first_is_forgotten():
    over = [said for n in range(1024) for said in (created(f"{n}"), ended(f"{n}"))]
    late, more = delta("x", "0"), (created("more"), ended("more"))
    assert steps(*over, late) == []
    assert steps(*over, *more, delta("x", "1")) == []
    assert steps(*over, *more, late) == ["begin", "hear"]
    again = (created("0"), ended("0"))  # it is the last one now
    assert steps(*over, *again, *more, late) == []


def event_of_codex(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


@pytest.mark.parametrize("said", [{"type": "novel", "payload": {}}, {"type": "event_msg"}])
def test_a_line_that_only_looks_like_one_of_codex_is_none(said: dict[str, Any]):
    router = Router()
    router.route(json.dumps(said).encode())
    assert router.provider == "auto"
    router.route(json.dumps(event_of_codex("task_started")).encode())
    assert router.provider == "codex"


def test_what_begins_and_ends_a_turn_of_codex():
    asked = {"type": "response_item", "payload": {"type": "message", "role": "user"}}
    assert steps(asked, provider="codex") == ["outside"]
    assert steps(event_of_codex("task_started"), provider="codex") == ["outside"]
    named = event_of_codex("task_started", turn_id="a")
    assert steps(named, provider="codex") == ["begin", "hear"]
    assert steps(named, event_of_codex("task_complete"), provider="codex") == ["hear", "end"]
