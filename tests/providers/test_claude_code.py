"""Claude Code: when an answer is over, whose it is, and what is no answer."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.demultiplexer import Demultiplexer
from streamnorm.events import Failed, Finish
from streamnorm.providers.claude_code.parser import KNOWN
from tests.conftest import broken_of, calls_of, text_of
from tests.providers.test_programs import lines as lines_of_take
from tests.providers.test_programs import told

Line = dict[str, Any]


def event(event: Line, agent: str | None = None) -> Line:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": agent, "session_id": "s"}


def start(id: str = "msg_1", agent: str | None = None) -> Line:
    message = {"id": id, "model": "m", "content": [], "usage": {"input_tokens": 1}}
    return event({"type": "message_start", "message": message}, agent)


def opened(id: str, name: str = "Bash", index: int = 0) -> Line:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return event({"type": "content_block_start", "index": index, "content_block": block})


def piece(text: str, index: int = 0) -> Line:
    delta = {"type": "input_json_delta", "partial_json": text}
    return event({"type": "content_block_delta", "index": index, "delta": delta})


STOP = event({"type": "content_block_stop", "index": 0})
DELTA = event({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}})
OVER = event({"type": "message_stop"})


def assistant(id: str | None, *blocks: Line, agent: str | None = None, **more: Any) -> Line:
    message = {"id": id, "model": "m", "role": "assistant", "content": list(blocks)} | more
    message = {field: value for field, value in message.items() if value is not None}
    return {"type": "assistant", "message": message, "parent_tool_use_id": agent}


def tool_use(id: str, **arguments: Any) -> Line:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": arguments}


def result(id: str, content: Any = "ok", agent: str | None = None) -> Line:
    block = {"type": "tool_result", "tool_use_id": id, "content": content}
    return {"type": "user", "message": {"content": [block]}, "parent_tool_use_id": agent}


def text(said: str) -> Line:
    return {"type": "text", "text": said}


DONE = {"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn"}


def test_an_answer_is_over_when_all_its_calls_are_answered():
    both = [start(), opened("a"), piece("{}"), STOP, opened("b", index=1), piece("{}", 1)]
    both += [
        event({"type": "content_block_stop", "index": 1}),
        DELTA,
        OVER,
        result("b"),
        result("a"),
    ]
    ((_, events),) = told("claude_code", both)
    assert [e.kind for e in events[-4:]] == ["tool_result", "tool_result", "usage", "finish"]
    assert events[-1] == Finish("tool_calls", "tool_use")
    ((_, early),) = told("claude_code", both[:-1])  # one is missing: the wire said how it ended
    assert early[-1] == Finish("tool_calls", "tool_use")


def test_an_answer_without_calls_is_over_at_its_end_mark():
    ends = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    said = event(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    )
    ((_, events),) = told("claude_code", [start(), said, ends, OVER])
    assert (text_of(events), events[-1]) == ("Hi", Finish("stop", "end_turn"))


def test_partial_messages_that_the_next_answer_cuts_are_truncated_and_their_call_is_broken():
    cut, whole = told(
        "claude_code", [start(), opened("a"), piece('{"command":"rm'), start("msg_2"), OVER]
    )
    assert calls_of(cut[1]) == []
    assert [b.reason for b in broken_of(cut[1])] == ["truncated"]
    assert isinstance(cut[1][-1], Failed)
    assert cut[1][-1].reason == "truncated"
    assert whole[1][0].response_id == "msg_2"


def test_a_result_that_calls_the_cut_answer_a_success_is_not_believed():
    ((_, events),) = told("claude_code", [start(), opened("a"), piece('{"command":"rm'), DONE])
    assert calls_of(events) == []
    assert isinstance(events[-1], Failed)
    assert events[-1].reason == "truncated"


def test_whole_messages_of_one_id_are_one_answer_though_results_come_in_between():
    lines = [
        assistant("m1", text("Both.")), assistant("m1", tool_use("a", command="x")), result("a"),
        assistant("m1", tool_use("b", command="y")), result("b"), assistant("m2", text("Done.")), DONE,
    ]  # fmt: skip
    first, second = told("claude_code", lines)
    assert [c.arguments for c in calls_of(first[1])] == [{"command": "x"}, {"command": "y"}]
    assert first[1][-1] == Finish("tool_calls", None)
    assert (text_of(second[1]), second[1][-1]) == ("Done.", Finish("stop", "end_turn"))


def test_a_whole_message_that_nothing_follows_was_cut():
    ((_, events),) = told("claude_code", [assistant("m1", text("Let me"))])
    assert isinstance(events[-1], Failed)
    assert events[-1].reason == "truncated"
    ((_, saved),) = told("claude_code", [assistant("m1", text("Bye."), stop_reason="end_turn")])
    assert saved[-1] == Finish("stop", "end_turn")


def test_arguments_are_those_of_the_line_to_the_last_digit():
    line = json.dumps(assistant("m1", tool_use("a", n=1)))
    line = line.replace('{"n": 1}', '{"n": 1.10, "big": 12345678901234567890123}')
    ((_, events),) = told("claude_code", [line, DONE])
    (call,) = calls_of(events)
    assert call.raw == '{"n": 1.10, "big": 12345678901234567890123}'
    assert call.arguments["big"] == 12345678901234567890123


@pytest.mark.parametrize("behind", [[], [DONE]])
def test_a_call_without_arguments_is_told_at_its_line_before_what_came_out(behind):
    ((_, events),) = told("claude_code", [assistant("m1", tool_use("a")), result("a"), *behind])
    kinds = ["tool_call_start", "tool_call_delta", "tool_call", "tool_result"]
    assert [e.kind for e in events[1:5]] == kinds
    assert ([c.arguments for c in calls_of(events)], broken_of(events)) == ([{}], [])


def test_a_call_without_arguments_in_pieces_is_told_before_what_came_out():
    ((_, events),) = told("claude_code", [start(), opened("a"), STOP, DELTA, OVER, result("a")])
    assert [e.kind for e in events[1:4]] == ["tool_call_start", "tool_call", "tool_result"]
    assert [c.arguments for c in calls_of(events)] == [{}]


def test_who_calls_stands_on_a_call_that_is_told_at_the_end():
    block = {"type": "tool_use", "id": "a", "name": "Bash", "input": {}}
    opens = {"type": "content_block_start", "index": 0, "content_block": block}
    cut = [start(agent="t"), event(opens, "t")]
    ((_, events),) = told("claude_code", cut)
    assert [b.agent for b in broken_of(events)] == ["t"]
    ends = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    stops = [{"type": "content_block_stop", "index": 0}, ends, {"type": "message_stop"}]
    ((_, events),) = told("claude_code", [*cut, *(event(e, "t") for e in stops)])
    assert [(c.arguments, c.agent) for c in calls_of(events)] == [({}, "t")]


# --- lines without an id --------------------------------------------------------------------------


def test_without_ids_an_answer_begins_behind_what_came_out_of_the_one_before():
    lines = [
        assistant(None, text("Both.")), assistant(None, tool_use("a", n=1)),
        assistant(None, tool_use("b", n=2)), result("a"), result("b"),
        assistant(None, text("Done.")), DONE | {"result": "Done."},
    ]  # fmt: skip
    first, second = told("claude_code", lines)
    assert text_of(first[1]) == "Both."
    assert [c.arguments for c in calls_of(first[1])] == [{"n": 1}, {"n": 2}]
    assert (first[1][-1], second[1][-1]) == (Finish("tool_calls"), Finish("stop", "end_turn"))
    assert text_of(second[1]) == "Done."


def test_without_ids_the_answer_to_the_next_question_is_another():
    asked = {"type": "user", "message": {"content": "And?"}}
    said = [assistant(None, text("One.")), asked, assistant(None, text("Two.")), DONE]
    again = [assistant(None, text("Three.")), DONE]
    streams = told("claude_code", [*said, *again])
    assert [text_of(events) for _, events in streams] == ["One.", "Two.", "Three."]
    assert {events[-1].kind for _, events in streams} == {"finish"}


def test_one_pipe_alone_ends_without_ids_where_the_next_answer_begins():
    pipe = Normalizer("claude_code")
    lines = [assistant(None, tool_use("a", n=1)), result("a"), assistant(None, text("Done."))]
    events = [e for line in lines for e in pipe.feed_payload(line)]
    assert (text_of(events), events[-1]) == ("", Finish("tool_calls"))


@pytest.mark.parametrize("id", [None, "m1"])
def test_what_the_program_itself_says_in_between_ends_no_answer(id):
    """Lines that are ``isMeta`` have the form of a question, and nobody asked it."""
    aside = {"type": "user", "message": {"content": "<local>"}, "isMeta": True}
    lines = [assistant(id, text("One. ")), aside, assistant(id, text("Two.")), DONE]
    ((_, events),) = told("claude_code", lines)
    assert (text_of(events), events[-1]) == ("One. Two.", Finish("stop", "end_turn"))


def test_a_copy_without_an_id_beside_partial_messages_cuts_nothing():
    copy = assistant(None, tool_use("a", command="x"))
    more = [opened("b", index=1), piece("{}", 1), event({"type": "content_block_stop", "index": 1})]
    lines = [start(), opened("a"), piece('{"command":"x"}'), copy, STOP, result("a"), *more]
    lines += [assistant(None, tool_use("b")), DELTA, OVER, result("b")]
    ((_, events),) = told("claude_code", lines)
    assert [c.arguments for c in calls_of(events)] == [{"command": "x"}, {}]
    assert events[-1] == Finish("tool_calls", "tool_use")


def test_the_text_of_the_result_is_not_told_behind_pieces_whose_start_was_missed():
    delta = {"type": "text_delta", "text": "Hi"}
    said = event({"type": "content_block_delta", "index": 0, "delta": delta})
    ((_, events),) = told("claude_code", [said, DONE | {"result": "Hi"}])
    assert text_of(events) == "Hi"


# --- copies, agents, and what is no answer --------------------------------------------------------


COPY = assistant("msg_1", tool_use("a", command="x"))
X = [{"command": "x"}]


@pytest.mark.parametrize(
    "block",
    [
        [piece('{"comm'), piece('and": "x"}'), COPY, STOP],
        [piece('{"comm'), COPY, piece('and": "x"}'), STOP],  # it waits for the pieces
        [piece('{"command": "x"}'), STOP, COPY],
        [piece('{"comm'), piece('and": "x"}'), COPY],  # … or for the end
        [COPY, STOP],
        [piece('{"comm'), COPY, STOP],  # what cannot be all gives way to it
        [piece('and": "x"}'), piece('{"comm'), COPY, STOP],
        [piece('{"comm'), STOP, COPY],
        [piece('{"comm'), COPY],
    ],
)
def test_the_copy_beside_partial_messages_is_not_told_again_and_fills_what_was_lost(block):
    ((_, events),) = told("claude_code", [start(), opened("a"), *block, DELTA, OVER, result("a")])
    assert [c.arguments for c in calls_of(events)] == X
    assert broken_of(events) == []
    assert sum(e.kind == "tool_call_start" for e in events) == 1


@pytest.mark.parametrize(
    "block",
    [
        [piece('{"command":"y"}'), COPY, STOP],
        [COPY, piece('{"command":"y"}'), STOP],
        [piece('{"command":"y"}'), COPY],
        [piece("{}"), COPY, STOP],
        [piece('{"command":"y"}'), assistant("msg_1", tool_use("a")), STOP],
        [piece('{"command":"x"}'), COPY, assistant("msg_1", tool_use("a", command="z")), STOP],
    ],
)
def test_a_call_that_is_another_in_its_copy_is_a_conflict(block):
    ((_, events),) = told("claude_code", [start(), opened("a"), *block, DELTA, OVER, result("a")])
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


@pytest.mark.parametrize(
    "copy",
    [
        assistant("msg_1", {"type": "tool_use", "id": "a", "name": "Bash"}),
        assistant("msg_1", {"type": "tool_use", "id": "a", "name": "Bash", "input": "{}"}),
        assistant("msg_1", tool_use("of another", command="y")),
        assistant("msg_1", text("Hi.")),
    ],
)
def test_a_copy_that_does_not_say_the_input_of_a_call_states_nothing(copy):
    lines = [start(), opened("a"), piece('{"command":"x"}'), copy, STOP, DELTA, OVER, result("a")]
    ((_, events),) = told("claude_code", lines)
    assert [c.arguments for c in calls_of(events)] == X


def test_a_copy_that_comes_late_and_differs_is_noted():
    pipe = Normalizer("claude_code")
    late = assistant("msg_1", tool_use("a", command="y"))
    for line in [start(), opened("a"), piece('{"command": "x"}'), STOP, COPY, late]:
        pipe.feed_payload(line)
    assert dict(pipe.notes) == {"args.mismatch": 1}


# --- one line of a recorded session is damaged ----------------------------------------------------

PARTIAL = ["claude_code/partial_messages", "claude_code/sub_agent_partial"]


def ran(lines: list[Any]) -> Counter[str]:
    streams = told("claude_code", lines)
    return Counter(f"{c.name} {c.arguments}" for _, events in streams for c in calls_of(events))


@pytest.mark.parametrize("name", PARTIAL)
def test_a_line_that_is_lost_or_in_the_place_of_its_neighbour_makes_no_other_call(name):
    lines = lines_of_take(name)
    whole = ran(lines)
    assert whole.total() == 2
    for at in range(len(lines)):
        assert ran(lines[:at] + lines[at + 1 :]) <= whole
        swapped = lines[:at] + lines[at : at + 2][::-1] + lines[at + 2 :]
        assert ran(swapped) <= whole


@pytest.mark.parametrize("name", PARTIAL)
def test_a_line_that_comes_again_changes_nothing(name):
    lines = lines_of_take(name)
    whole = told("claude_code", lines)
    for at in range(len(lines)):
        assert told("claude_code", lines[: at + 1] + lines[at:]) == whole


def test_one_pipe_alone_drops_a_piece_that_comes_again_and_notes_it():
    pipe = Normalizer("claude_code")
    delta = {"type": "text_delta", "text": "Hi."}
    said = event({"type": "content_block_delta", "index": 0, "delta": delta}) | {"uuid": "u1"}
    begun = start() | {"uuid": "u0"}
    events = [e for line in [begun, begun, said, said] for e in pipe.feed_payload(line)]
    assert text_of(events) == "Hi."
    assert dict(pipe.notes) == {"stream.repeated": 2}


def test_the_names_of_lines_that_are_remembered_are_bounded():
    pipe, turns = Normalizer("claude_code"), Demultiplexer("claude_code")
    ping = event({"type": "ping"})
    for n in range(3000):
        pipe.feed_payload(ping | {"uuid": str(n)})
        turns.feed(ping | {"uuid": str(n)})
    assert len(pipe._parser._lines) == len(turns._router._names) == 1024
    pipe.feed_payload(ping | {"uuid": "x" * 100_000})
    assert max(map(len, pipe._parser._lines)) < 100


def test_a_session_that_says_its_result_again_has_no_stream_for_it():
    over = DONE | {"result": "Hi", "uuid": "u9"}
    turns = Demultiplexer("claude_code")
    streams = {t.stream for line in [over, over] for t in turns.feed(line)}
    assert (streams, dict(turns.notes)) == ({0}, {"stream.repeated": 1})


def test_an_agent_below_is_over_when_the_call_that_it_is_has_its_result():
    lines = [
        assistant("m1", tool_use("t")), assistant("s1", text("Below."), agent="t"), result("t", "Below."),
        assistant("m2", text("Above.")), DONE,
    ]  # fmt: skip
    streams = told("claude_code", lines)
    assert [(lane, text_of(events), events[-1].kind) for lane, events in streams] == [
        (None, "", "finish"), ("t", "Below.", "finish"), (None, "Above.", "finish"),
    ]  # fmt: skip
    below = streams[1][1]
    assert {e.agent for e in below if e.kind == "text_delta"} == {"t"}


def test_one_pipe_alone_does_not_mix_two_agents():
    other = [start("msg_2", "t"), event({"type": "content_block_delta", "index": 0,
             "delta": {"type": "input_json_delta", "partial_json": "}"}}, "t")]  # fmt: skip
    lines = [start(), opened("a"), piece('{"command":"x"}'), *other, STOP, DELTA, OVER, result("a")]
    pipe = Normalizer("claude_code")
    events = [e for line in lines for e in pipe.feed_payload(line)] + pipe.close()
    assert [c.arguments for c in calls_of(events)] == [{"command": "x"}]
    assert events[-1].kind == "finish"
    assert pipe.notes["stream.of_another"] == 2


def test_an_agent_in_the_background_is_over_when_that_is_said():
    note = {
        "type": "system",
        "subtype": "task_notification",
        "tool_use_id": "t",
        "status": "completed",
    }
    lines = [
        assistant("m1", tool_use("t")), result("t", "launched"), assistant("m2", text("Meanwhile.")),
        assistant("s1", text("Below."), agent="t"), note, DONE,
    ]  # fmt: skip
    ends = {lane or text_of(events): events[-1].kind for lane, events in told("claude_code", lines)}
    assert ends == {"": "finish", "Meanwhile.": "finish", "t": "finish"}


BY_ITSELF = {"origin": {"kind": "task-notification", "producer": "session-task"}}


def test_the_results_of_two_questions_behind_the_last_answer_are_no_further_answer():
    lines = [
        assistant("m1", text("It runs below.")), assistant("m2", text("It is done.")),
        DONE | {"result": "It runs below.", "uuid": "u1"},
        DONE | {"result": "It is done.", "uuid": "u2"} | BY_ITSELF,
    ]  # fmt: skip
    told_of = [(text_of(events), events[-1].kind) for _, events in told("claude_code", lines)]
    assert told_of == [("It runs below.", "finish"), ("It is done.", "finish")]
    turns = Demultiplexer("claude_code")
    for line in lines:
        turns.feed(line)
    assert turns.notes["stream.after_end"] == 1


def test_a_result_of_somebody_elses_question_behind_the_last_answer_is_a_further_answer():
    asked = DONE | {"result": "Total cost: $0", "uuid": "u2", "origin": {"kind": "human"}}
    lines = [assistant("m1", text("Done.")), DONE | {"uuid": "u1"}, asked]
    told_of = [(text_of(events), events[-1].kind) for _, events in told("claude_code", lines)]
    assert told_of == [("Done.", "finish"), ("Total cost: $0", "finish")]


@pytest.mark.parametrize(
    "origin", [None, 5, {"kind": ["human"]}, {"kind": "human"}, BY_ITSELF["origin"]]
)
def test_a_result_ends_the_open_answer_whoever_asked(origin):
    lines = [assistant("m1", text("Done.")), DONE | {"result": "Done.", "origin": origin}]
    ((_, events),) = told("claude_code", lines)
    assert (text_of(events), events[-1].raw_reason) == ("Done.", "end_turn")


def test_an_error_behind_the_last_answer_is_heard_also_where_the_program_asked():
    failed = TOO_MANY | BY_ITSELF | {"uuid": "u2"}
    lines = [assistant("m1", text("Done.")), DONE | {"uuid": "u1"}, failed]
    assert [events[-1].kind for _, events in told("claude_code", lines)] == ["finish", "failed"]


def test_lines_of_the_program_in_between_change_nothing():
    beside = [{"type": kind, "sessionId": "s"} for kind in KNOWN]
    beside += [{"type": "system", "subtype": "status", "status": "requesting"}]
    lines = [start(), opened("a"), piece('{"command":"x"}'), STOP, DELTA, OVER, result("a")]
    mixed = [line for pair in zip(lines, [*beside] * 2, strict=False) for line in pair]
    assert told("claude_code", mixed) == told("claude_code", lines)


def test_what_the_program_says_in_the_place_of_the_model_is_a_failure():
    said = assistant("x", text("API Error: Rate limited"), model="<synthetic>") | {
        "error": "rate_limit"
    }
    ((_, events),) = told(
        "claude_code", [said, {"type": "result", "subtype": "success", "is_error": True}]
    )
    assert events[-1] == Failed("provider_error", "API Error: Rate limited", True, "rate_limit")


def test_a_session_that_fails_before_any_answer_is_one_failed_stream():
    over = {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "errors": ["No."],
    }
    ((_, events),) = told("claude_code", [{"type": "system", "subtype": "init"}, over])
    assert events[-1] == Failed("provider_error", "No.", False, "error_during_execution")


TOO_MANY = {"type": "result", "subtype": "error_max_turns", "is_error": True, "errors": ["Max. 1"]}


@pytest.mark.parametrize(
    "answer",
    [[assistant("m1", tool_use("a", n=1))], [start(), opened("a"), piece("{}"), STOP, DELTA, OVER]],
)
def test_a_session_that_fails_behind_an_answer_is_told_outside_of_it(answer):
    turns = Demultiplexer("claude_code")
    heard = [one for line in [*answer, result("a"), TOO_MANY] for one in turns.feed(line)]
    assert [one.events[-1].kind for one in heard if one.stream is not None][-1] == "finish"
    (outside,) = [event for one in heard if one.stream is None for event in one.events]
    assert (outside.wire_kind, outside.payload) == ("result", TOO_MANY)
    assert turns.close() == []


def test_a_session_that_succeeds_says_nothing_outside_of_its_answers():
    turns = Demultiplexer("claude_code")
    heard = [one for line in [assistant("m1", text("Hi")), DONE] for one in turns.feed(line)]
    assert {one.stream for one in heard} == {0}


def test_a_command_of_the_program_is_told_as_text():
    ((_, events),) = told("claude_code", [DONE | {"result": "Total cost: $0"}])
    assert (text_of(events), events[-1].kind) == ("Total cost: $0", "finish")


@pytest.mark.parametrize(
    "damaged",
    [
        piece("x") | {"event": {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta"}}},
        piece("x") | {"event": {"type": "content_block_delta", "delta": {"type": "input_json_delta",
                                "partial_json": 7}}},
        piece("x") | {"event": None},
    ],
)  # fmt: skip
def test_a_damaged_piece_breaks_the_call(damaged):
    lines = [start(), opened("a"), piece('{"command":'), damaged, piece('"x"}'), STOP, DELTA, OVER]
    ((_, events),) = told("claude_code", [*lines, result("a"), DONE])
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


def test_a_line_that_is_no_json_fails_the_answers_that_are_open():
    ((_, events),) = told("claude_code", [start(), opened("a"), piece("{}"), '{"type":"stream_ev'])
    assert calls_of(events) == []
    assert isinstance(events[-1], Failed)
    assert events[-1].reason == "protocol"


# --- what is said twice, and what is missing ------------------------------------------------------


@pytest.mark.parametrize("names", [{}, {"uuid": "u1"}])
def test_a_whole_line_that_is_said_twice_is_told_once(names):
    call = assistant("m1", tool_use("a", command="x")) | names
    ((_, events),) = told("claude_code", [call, call, result("a"), call, DONE])
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("a", {"command": "x"})]
    assert broken_of(events) == []


def test_text_and_results_of_a_line_that_is_said_twice_are_told_once():
    said = assistant("m1", text("Hi."), tool_use("a")) | {"uuid": "u1"}
    out = result("a") | {"uuid": "u2"}
    ((_, events),) = told("claude_code", [said, said, out, out, DONE])
    assert text_of(events) == "Hi."
    assert sum(e.kind == "tool_result" for e in events) == 1


def test_a_call_without_fragments_is_told_before_what_came_out_of_it_before_the_end():
    lines = [start(), opened("a"), STOP, result("a"), DELTA, OVER]
    ((_, events),) = told("claude_code", lines)
    kinds = [e.kind for e in events]
    assert kinds.index("tool_call") < kinds.index("tool_result")
    assert [c.arguments for c in calls_of(events)] == [{}]


def test_what_came_out_of_a_call_does_not_make_up_for_what_was_lost_of_it():
    odd = event({"type": "content_block_delta", "index": 0, "delta": {"type": "new", "x": "y"}})
    ((_, events),) = told(
        "claude_code", [start(), opened("a"), odd, STOP, result("a"), DELTA, OVER]
    )
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


def test_a_copy_beside_pieces_whose_start_was_lost_is_not_told_again():
    copy = assistant("m1", tool_use("a", command="x"))
    lines = [opened("a"), piece('{"command":"x"}'), copy, STOP, DELTA, OVER, result("a")]
    ((_, events),) = told("claude_code", lines)
    assert [c.arguments for c in calls_of(events)] == [{"command": "x"}]
    assert broken_of(events) == []


def test_pieces_whose_start_was_lost_end_where_the_next_answer_begins():
    lines = [opened("a"), piece('{"command":"x"}'), assistant("m1", tool_use("a", command="x")),
             assistant("m2", text("Next.")), DELTA, OVER]  # fmt: skip
    pipe = Normalizer("claude_code")
    events = [e for line in lines for e in pipe.feed_payload(line)] + pipe.close()
    assert calls_of(events) == []
    assert isinstance(events[-1], Failed)


@pytest.mark.parametrize("block", [
    {"type": "tool_use", "id": "a", "name": "Bash"},
    {"type": "tool_use", "id": "a", "name": "Bash", "input": None},
    {"type": "tool_use", "id": "a", "name": "Bash", "input": 5},
])  # fmt: skip
def test_a_whole_block_that_does_not_say_its_input_is_no_call_without_arguments(block):
    ((_, events),) = told("claude_code", [assistant("m1", block), DONE])
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


def test_a_whole_block_beside_half_a_character_is_no_call_without_arguments():
    lines = (assistant("m1", tool_use("\ud83d", command="x")), DONE)
    pipe = Normalizer("claude_code")
    events = pipe.feed("".join(json.dumps(line) + "\n" for line in lines).encode()) + pipe.close()
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


def test_a_piece_of_an_agent_that_cannot_be_read_breaks_the_call_that_it_may_be_of():
    lost = piece('"y"') | {"parent_tool_use_id": 7}
    lines = [start(), opened("a"), piece('{"command":'), lost, piece("}"), STOP, DELTA, OVER, DONE]
    ((_, events),) = told("claude_code", lines)
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


def test_a_line_that_cannot_be_read_says_of_which_answer_it_is():
    first = json.dumps(assistant("m1", text("Hi."))).replace("{", '{"type":"x",', 1)
    streams = told("claude_code", [first, assistant("m2", tool_use("a", command="x")), DONE])
    calls = [[c.id for c in calls_of(events)] for _, events in streams]
    assert calls == [[], ["a"]]
