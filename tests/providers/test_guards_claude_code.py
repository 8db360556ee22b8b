"""Guards of Claude Code that no recorded session passes: each test fails if its guard is removed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.demultiplexer import Router
from streamnorm.events import Event
from tests.conftest import broken_of, calls_of, text_of
from tests.providers.test_claude_code import (
    DELTA,
    OVER,
    STOP,
    Line,
    assistant,
    event,
    opened,
    piece,
    result,
    start,
    tool_use,
)


def heard(*lines: Line) -> tuple[list[Event], Normalizer]:
    """The events of one pipe that is still open."""
    pipe = Normalizer("claude_code", seed="tests")
    return [event for line in lines for event in pipe.feed_payload(line)], pipe


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def end_of(events: list[Any]) -> tuple[str, str]:
    return events[-1].kind, events[-1].reason


# --- in pieces ---------------------------------------------------------------------------------------


def test_an_event_that_cannot_be_read_is_of_the_call_whose_place_it_names():
    odd = event({"type": "content_block_novel", "index": 1, "partial_json": "x"})
    stop = event({"type": "content_block_stop", "index": 1})
    lines = (opened("a"), opened("b", index=1), piece("{}"), piece("{}", 1), odd, STOP, stop)
    events, _ = heard(start(), *lines, DELTA, OVER)
    assert [c.id for c in calls_of(events)] == ["a"]
    assert [(b.id, b.reason) for b in broken_of(events)] == [("b", "conflict")]


def foreign(line: Line) -> Line:
    return {**line, "session_id": "another"}


@pytest.mark.parametrize(
    "lines",
    [
        (foreign(opened("a")), piece("{}"), STOP),
        (opened("a"), foreign(piece("{}")), STOP),
        (opened("a"), piece("{}"), foreign(STOP)),
    ],
)
def test_a_piece_of_another_session_breaks_what_is_open(lines: tuple[Line, ...]):
    events, _ = heard(start(), *lines, DELTA, OVER)
    assert calls_of(events) == []
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]


def test_a_sign_of_life_of_another_session_breaks_nothing_that_begins_behind_it():
    ping = event({"type": "ping"})
    unsaid = {k: v for k, v in ping.items() if k != "session_id"}
    lines = (foreign(ping), opened("a"), unsaid, piece("{}"), STOP)
    for first in (start(), {**start(), "session_id": None}):
        events, _ = (
            heard(first, *lines, DELTA, OVER) if first["session_id"] else heard(first, *lines[1:])
        )
        assert [c.id for c in calls_of(events)] == ["a"]


def test_an_answer_in_pieces_behind_one_in_whole_lines_is_the_next_one():
    events, pipe = heard(assistant("msg_1", tool_use("a")), start("msg_2"))
    assert (pipe.ended, end_of(events)) == (True, ("finish", "tool_calls"))


def test_a_line_whose_uuid_is_no_text_is_read():
    odd = {**assistant("msg_1", tool_use("a")), "uuid": [1]}
    assert [move.step.value for move in Router("claude_code").route(json.dumps(odd).encode())] == [
        "begin", "hear",
    ]  # fmt: skip


def test_an_answer_without_calls_is_over_with_its_last_piece():
    events, pipe = heard(start(), DELTA, OVER)
    assert (pipe.ended, end_of(events)) == (True, ("finish", "tool_calls"))


def test_an_answer_is_over_when_the_last_of_its_calls_is_answered():
    begun = (start(), opened("a"), piece("{}"), STOP, DELTA, OVER)
    assert not heard(*begun)[1].ended
    events, pipe = heard(*begun, result("a"))
    assert (pipe.ended, end_of(events)) == (True, ("finish", "tool_calls"))


def test_an_answer_that_never_says_how_it_ended_ended_otherwise():
    assert end_of(heard(start(), OVER)[0]) == ("finish", "other")


def test_a_copy_without_an_id_does_not_make_the_next_answer_a_copy():
    begun = (start("msg_1"), opened("a"), assistant(None, tool_use("a")))
    events, _ = heard(*begun, assistant("msg_2", text("Hi.")))
    assert end_of(events) == ("failed", "truncated")


def test_a_copy_says_whose_pieces_those_are_that_did_not_say_it():
    begun = (start(""), opened("a"), assistant("msg_1", tool_use("a")))
    events, _ = heard(*begun, assistant("msg_2", text("Hi.")))
    assert end_of(events) == ("failed", "truncated")


def test_copies_of_one_id_are_of_one_answer_whose_pieces_did_not_say_it():
    copies = [assistant("msg_1", text("Hm.")), assistant("msg_1", tool_use("a", x=1))]
    events, _ = heard(start(""), *PIECES[1:], *copies, *ENDS)
    assert end_of(events) == ("finish", "tool_calls")


def test_a_call_that_is_whole_in_its_start_is_told_though_it_is_never_closed():
    block = {"type": "tool_use", "id": "a", "name": "Bash", "input": {"x": 1}}
    begun = event({"type": "content_block_start", "index": 0, "content_block": block})
    events, _ = heard(start(), begun, DELTA, OVER)
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]


PIECES = (start(), opened("a"), piece('{"x":1}'))
ENDS = (STOP, DELTA, OVER, result("a"))


@pytest.mark.parametrize(
    "copies",
    [
        ["odd", tool_use("a", x=1)],
        [{"type": "tool_use", "id": "a", "input": "x"}],
        [tool_use("another", x=1)],
        [tool_use("a", x=1)] * 5,
    ],
)
def test_a_copy_that_says_nothing_else_of_a_call_changes_nothing(copies):
    events, _ = heard(*PIECES, assistant("msg_1", *copies), *ENDS)
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]
    assert (broken_of(events), end_of(events)) == ([], ("finish", "tool_calls"))


@pytest.mark.parametrize("pieces", [(), (piece('{"x":1}'),)])
def test_a_copy_without_its_type_states_nothing_and_makes_no_call_empty(pieces):
    copy = {
        field: value for field, value in tool_use("a", type="tool_use").items() if field != "type"
    }
    events, _ = heard(start(), opened("a"), *pieces, assistant("msg_1", copy), *ENDS)
    told = [c.arguments for c in calls_of(events)], [b.reason for b in broken_of(events)]
    assert told == (([{"x": 1}], []) if pieces else ([], ["conflict"]))


def test_a_copy_that_differs_is_one_however_often_the_same_was_said_before():
    same = [assistant("msg_1", tool_use("a", x=1)) for _ in range(9)]
    events, _ = heard(*PIECES, *same, assistant("msg_1", tool_use("a", x=2)), *ENDS)
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]


def test_a_copy_of_which_a_character_was_lost_states_nothing():
    copy = assistant("msg_1", tool_use("a", x="XX"))
    pipe = Normalizer("claude_code")
    body = [json.dumps(line).encode() + b"\n" for line in (*PIECES, copy, *ENDS)]
    events = [e for line in body for e in pipe.feed(line.replace(b"XX", b"\xff"))]
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]


def test_the_name_of_a_line_may_be_as_long_as_an_id_and_no_longer():
    for name, told in (("four", "Hi."), ("fives", "Hi.Hi.")):
        pipe = Normalizer("claude_code", limits=Limits(id=4))
        delta = {"type": "text_delta", "text": "Hi."}
        said = event({"type": "content_block_delta", "index": 0, "delta": delta}) | {"uuid": name}
        assert text_of([e for line in (said, said) for e in pipe.feed_payload(line)]) == told


# --- whole messages ----------------------------------------------------------------------------------


def test_a_line_without_an_id_does_not_make_the_next_answer_a_part_of_this_one():
    said = [assistant(id, text(f"{id} ")) for id in ("m1", None, "m2")]
    events, _ = heard(*said)
    assert (text_of(events), end_of(events)) == ("m1 None ", ("finish", "stop"))
    events, pipe = heard(*said[:2], said[0])
    assert (text_of(events), pipe.ended) == ("m1 None m1 ", False)


def test_a_whole_message_whose_line_is_said_twice_is_told_once():
    said = assistant("m", text("Hi.")) | {"uuid": "u"}
    events, pipe = heard(said, said, said | {"uuid": "v"})
    assert (text_of(events), pipe.notes["stream.repeated"]) == ("Hi.Hi.", 1)


def test_how_an_answer_ended_stays_though_a_later_line_does_not_say_it():
    cut = assistant("m1", text("Hi."), stop_reason="max_tokens")
    events, _ = heard(cut, assistant("m1", text("Ho.")), assistant("m2", text("No.")))
    assert (text_of(events), end_of(events)) == ("Hi.Ho.", ("finish", "length"))


def test_a_block_that_is_no_object_is_passed_on():
    events, _ = heard(assistant("m", "odd", text("Hi.")))
    assert [e.kind for e in events] == ["stream_start", "unrecognized", "text_delta"]


@pytest.mark.parametrize("odd", [assistant("m", text("XX")), result("z", "XX")])
def test_a_character_that_is_lost_in_one_line_is_of_no_call_in_the_next(odd):
    lines = [odd, assistant("m", tool_use("a", x=1))]
    pipe = Normalizer("claude_code")
    body = [json.dumps(line).encode().replace(b"XX", b"\xff") + b"\n" for line in lines]
    events = [e for line in body for e in pipe.feed(line)]
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]


def test_only_a_call_is_told_before_by_its_id():
    lines = [assistant("m", tool_use("a")), assistant("m", text("Hi.") | {"id": "a", "input": {}})]
    events, pipe = heard(*lines)
    assert ([c.id for c in calls_of(events)], text_of(events)) == (["a"], "Hi.")
    assert pipe.notes["call.start_repeated"] == 0


@pytest.mark.parametrize(
    "said",
    [
        {"error": "server_error", "message": {"content": []}},
        {"isApiErrorMessage": True, "message": {"content": []}},
        {"message": {"model": "<synthetic>", "content": []}},
        {"message": {"model": "<synthetic>", "content": ["odd", text("No.")]}},
    ],
)
def test_what_the_program_says_in_the_place_of_the_model_is_a_failure_however_it_says_so(said):
    events, _ = heard({"type": "assistant", **said})
    assert end_of(events) == ("failed", "provider_error")


# --- what came out -----------------------------------------------------------------------------------


def test_the_copy_of_a_call_that_waits_for_its_end_is_heard_before_what_came_out():
    begun = (start(), opened("a"), STOP, assistant("msg_1", tool_use("a", x=1)))
    events, _ = heard(*begun, result("a"))
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]


@pytest.mark.parametrize(
    "odd",
    [
        event({"type": "content_block_stop", "index": "x"}),
        event({"type": "ping"}) | {"agentId": 5},
        event({"type": "ping"}, agent=5),  # type: ignore[arg-type]
    ],
)
def test_an_event_whose_place_cannot_be_read_may_be_of_the_call_that_is_open(odd):
    events, _ = heard(*PIECES, odd, *ENDS)
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]


@pytest.mark.parametrize("kind", ["rate_limit_event", "system", "tool_progress"])
def test_a_piece_in_a_line_whose_kind_became_another_breaks_the_call_that_is_open(kind):
    begun, rest = (start(), opened("a"), piece('{"x":')), (piece("1}"), *ENDS)
    line = piece('"y"') | {"type": kind}
    events, _ = heard(*begun, line, *rest)
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]
    (odd,) = [e for e in events if e.kind == "unrecognized"]
    assert (odd.wire_kind, odd.payload) == (kind, {"type": kind, "event": line["event"]})
    del line["event"]
    events, _ = heard(*begun, line, *rest)
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]
    assert [e for e in events if e.kind == "unrecognized"] == []


def test_copies_of_a_call_are_bounded():
    copies = [assistant("msg_1", tool_use("a", x=n)) for n in range(9)]
    _, pipe = heard(*PIECES, *copies)
    assert [len(held) for held in pipe._parser._copies.values()] == [3]


def test_copies_of_calls_that_never_come_are_as_many_as_calls_may_be_and_as_long():
    few = [assistant("msg_1", tool_use(f"t{n}", x=n)) for n in range(3)]
    long = [assistant("msg_1", tool_use("t", x="y" * n)) for n in (4, 3)]
    for limits, lines, name in (
        (Limits(calls=3), few, None),
        (Limits(calls=2), few, "calls"),
        (Limits(arguments_total=31), long, None),
        (Limits(arguments_total=30), long, "arguments_total"),
    ):
        pipe = Normalizer("claude_code", limits=limits)
        events = [e for line in (start(), *lines) for e in pipe.feed_payload(line)]
        assert getattr(events[-1], "code", None) == name


COPIES = [assistant("msg_1", tool_use("a", x=n)) for n in (1, 2)]


@pytest.mark.parametrize("copies", [COPIES, COPIES[::-1]])
def test_of_copies_of_a_call_the_one_that_differs_breaks_it_whichever_came_first(copies):
    events, _ = heard(start(), opened("a"), piece('{"x":2}'), *copies, *ENDS)
    assert calls_of(events) == []
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]


def test_copies_of_a_call_that_was_closed_and_waits_for_its_end_are_held_against_it_once_each():
    events, pipe = heard(start(), opened("a"), STOP, *COPIES, STOP, *ENDS)
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]
    assert pipe.notes["args.mismatch"] == 1


@pytest.mark.parametrize(
    ("named", "fate"),
    [(b"msg_1", ["{}"]), (b"msg_1\\ud83d", ["conflict"])],
)
def test_a_copy_that_could_not_be_read_does_not_say_that_a_call_without_pieces_is_empty(
    named, fate
):
    copy = assistant("XX", text("Psst."))
    body = [json.dumps(line).encode() for line in (start(""), opened("a"), copy, *ENDS)]
    pipe = Normalizer("claude_code")
    events = pipe.feed(b"\n".join(body).replace(b"XX", named) + b"\n")
    assert [c.raw or "{}" for c in calls_of(events)] + [b.reason for b in broken_of(events)] == fate


def test_a_copy_that_names_no_call_is_of_none():
    events, pipe = heard(
        start(), opened(""), PIECES[2], assistant("msg_1", tool_use("", x=2)), *ENDS
    )
    assert ([c.arguments for c in calls_of(events)], broken_of(events)) == ([{"x": 1}], [])
    assert pipe._parser._copies == {}


def test_copies_of_a_call_are_kept_whose_id_is_no_longer_than_one_may_be():
    for id, kept in (("four", 1), ("fives", 0)):
        pipe = Normalizer("claude_code", limits=Limits(id=4))
        pipe.feed_payload(start(""))
        pipe.feed_payload(assistant("", tool_use(id)))
        assert len(pipe._parser._copies) == kept


def test_copies_that_differ_from_a_call_that_was_told_are_noted_once_each():
    copies = [assistant("msg_1", tool_use("a", x=n)) for n in (1, 2, 2, 3)]
    events, pipe = heard(*PIECES, STOP, *copies, STOP, DELTA, OVER, result("a"))
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]
    assert (broken_of(events), pipe.notes["args.mismatch"]) == ([], 2)


@pytest.mark.parametrize("message", [["odd"], {"content": ["odd"]}, {"content": [text("Psst.")]}])
def test_what_a_user_says_between_pieces_ends_no_answer(message):
    events, _ = heard(*PIECES, {"type": "user", "message": message}, *ENDS)
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"x": 1})]
    assert end_of(events) == ("finish", "tool_calls")


def test_what_comes_out_before_the_pieces_have_ended_ends_no_answer():
    words = event({"type": "content_block_start", "index": 1, "content_block": text("Hi.")})
    events, _ = heard(*PIECES, STOP, result("a"), words, DELTA, OVER)
    assert (text_of(events), end_of(events)) == ("Hi.", ("finish", "tool_calls"))


@pytest.mark.parametrize("more", [{"subtype": "task_notification"}, {"subtype": "novel"}])
def test_a_notice_that_names_no_agent_ends_none(more):
    for named in ({}, {"tool_use_id": "a"}):
        _, pipe = heard(assistant("m", tool_use("a")), {"type": "system", **more, **named})
        assert not pipe.ended


def test_what_a_user_says_behind_whole_messages_ends_the_answer():
    asked = {"type": "user", "message": {"content": [text("And?") | {"tool_use_id": "a"}]}}
    events, pipe = heard(assistant("m", tool_use("a")), asked)
    assert (pipe.ended, end_of(events)) == (True, ("finish", "tool_calls"))


# --- the end -----------------------------------------------------------------------------------------

SUCCESS = {"type": "result", "subtype": "success"}


@pytest.mark.parametrize(
    ("answer", "over", "reason"),
    [
        ({"stop_reason": "max_tokens"}, {"stop_reason": "end_turn"}, "length"),
        ({}, {"stop_reason": "max_tokens"}, "length"),
        ({}, {}, "stop"),
        ({"agent": "toolu_1"}, {"stop_reason": "max_tokens"}, "stop"),
    ],
)
def test_the_result_says_how_an_answer_ended_that_did_not_say_it(answer, over, reason):
    events, _ = heard(assistant("m", text("Hi."), **answer), SUCCESS | over)
    assert end_of(events) == ("finish", reason)


@pytest.mark.parametrize("said", [5, ""])
def test_a_result_that_is_no_text_is_not_told(said):
    events, _ = heard(SUCCESS | {"result": said})
    assert [e.kind for e in events if e.kind == "text_delta"] == []
    assert end_of(events) == ("finish", "stop")


CUT = {"type": "result", "subtype": "error_during_execution", "is_error": True}


@pytest.mark.parametrize("over", [start("msg_2"), CUT])
def test_pieces_that_have_ended_are_an_answer_whatever_follows(over):
    events, _ = heard(*PIECES, STOP, DELTA, OVER, over)
    assert end_of(events) == ("finish", "tool_calls")


def test_what_cut_the_pieces_is_told():
    events, _ = heard(*PIECES, start("msg_2"))
    assert events[-1].error == "the next answer began before this one had ended"
    events, _ = heard(*PIECES, SUCCESS)
    assert events[-1].error == "the program went on before the answer had ended"


def test_the_status_of_the_provider_is_the_code_of_a_failure():
    assert heard(CUT | {"api_error_status": 529})[0][-1].code == "529"
    assert heard(CUT | {"api_error_status": "?"})[0][-1].code == "error_during_execution"


def test_errors_that_are_no_texts_are_not_told():
    failed = {
        "type": "result",
        "subtype": "error_max_turns",
        "is_error": True,
        "errors": [5, "No."],
    }
    events, _ = heard(failed)
    assert (events[-1].error, events[-1].code) == ("No.", "error_max_turns")


# --- several voices ----------------------------------------------------------------------------------


def test_what_an_agent_says_that_names_nobody_is_told_as_it_is():
    novel = {"type": "novel"}
    events, _ = heard(assistant("m", novel, text("Hi."), agent="toolu_1"))
    assert [e.kind for e in events] == ["stream_start", "unrecognized", "text_delta"]
    assert [e.agent for e in events if e.kind == "text_delta"] == ["toolu_1"]


def test_another_agent_is_not_heard_in_an_answer_of_whole_messages():
    events, pipe = heard(assistant("m", text("Hi.")), assistant("m", text("No."), agent="toolu_1"))
    assert (text_of(events), pipe.notes["stream.of_another"]) == ("Hi.", 1)


# --- lanes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "is_one"),
    [
        ({"type": "assistant", "message": {}}, True),
        ({"type": "user", "message": {}}, True),
        ({"type": "user", "message": "Hi.", "sessionId": "s"}, False),
        ({"type": "assistant", "subtype": "init"}, False),
        ({"type": "system", "subtype": "init"}, True),
        ({"type": "result", "subtype": "success"}, True),
        ({"type": "result", "subtype": 5, "sessionId": "s"}, False),
        ({"type": "stream_event"}, True),
        ({"type": "summary", "sessionId": "s"}, True),
        ({"type": "summary", "subtype": "init"}, False),
        ({"type": 5, "sessionId": "s"}, False),
        ([1], False),
    ],
)
def test_which_lines_are_of_claude_code(said, is_one):
    router = Router()
    router.route(json.dumps(said).encode())
    assert router.provider == ("claude_code" if is_one else "auto")


def lane_of(*lines: Line) -> list[tuple[str, str | None]]:
    """What is done at the last of these lines, and in which lane."""
    router = Router("claude_code")
    moves = [router.route(json.dumps(line).encode()) for line in lines]
    return [(move.step.value, move.lane) for move in moves[-1]]


def test_the_lane_is_the_agent_however_it_is_named():
    named = assistant("m", agent="toolu_1") | {"agentId": "x"}
    assert lane_of(named) == [("begin", "toolu_1"), ("hear", "toolu_1")]
    saved = assistant("m") | {"agentId": "x"}
    assert lane_of(saved) == [("begin", "x"), ("hear", "x")]
    notice = {"type": "rate_limit_event", "parent_tool_use_id": "toolu_1"}
    assert lane_of(notice) == [("outside", "toolu_1")]


def test_where_a_piece_begins_an_answer():
    assert lane_of(start("m"), start("n")) == [
        ("hear", None), ("end", None), ("begin", None), ("hear", None),
    ]  # fmt: skip
    assert lane_of(start("m"), piece("{}")) == [("hear", None)]


def test_a_line_without_an_id_behind_a_reply_begins_an_answer():
    said, reply = assistant(None, text("Hi.")), result("a")
    assert lane_of(said, said) == [("hear", None)]
    begun = [("hear", None), ("end", None), ("begin", None), ("hear", None)]
    assert lane_of(said, reply, said) == begun
    meta = {"type": "user", "isMeta": True, "message": {"content": ["odd", text("Note.")]}}
    assert lane_of(said, meta, said) == [("hear", None)]
    assert lane_of(said, {**meta, "isMeta": None}, said) == begun
    assert lane_of(said, reply | {"isMeta": True}, said) == begun


def test_an_agent_is_over_with_its_result_or_when_that_is_said():
    below = assistant("m", agent="toolu_1")
    over = [("hear", "toolu_1"), ("end", "toolu_1")]
    assert lane_of(below, result("toolu_1")) == [("outside", None), *over]
    assert lane_of(below, result("")) == [("outside", None)]
    told = {"type": "system", "subtype": "task_notification", "tool_use_id": "toolu_1"}
    assert lane_of(below, told) == [("outside", None), *over]
    assert lane_of(below, {**told, "subtype": "task_started"}) == [("outside", None)]
    unnamed = {**told, "tool_use_id": None, "parent_tool_use_id": "toolu_2"}
    assert lane_of(assistant("m"), unnamed) == [("outside", "toolu_2")]


def test_an_agent_is_over_once_however_often_its_result_is_said():
    twice = result("toolu_1")
    twice["message"]["content"] *= 2
    over = [("hear", "toolu_1"), ("end", "toolu_1")]
    assert lane_of(assistant("m", agent="toolu_1"), twice) == [("outside", None), *over]


def test_the_copy_of_a_call_of_another_name_is_none_of_a_call_that_begins_under_its_id_later():
    copy = assistant("m", tool_use("a", x=1) | {"name": "other"})
    events, _ = heard(start("m"), copy, opened("a"), STOP, DELTA, OVER)
    assert ([c.id for c in calls_of(events)], [b.reason for b in broken_of(events)]) == (
        [],
        ["conflict"],
    )


@pytest.mark.parametrize("odd", [[1], "x", 5])
def test_a_copy_that_cannot_be_read_makes_the_open_calls_doubtful(odd: Any):
    events, _ = heard(start("m"), opened("a"), assistant("m") | {"message": odd}, STOP, DELTA, OVER)
    assert [b.reason for b in broken_of(events)] == ["conflict"]
