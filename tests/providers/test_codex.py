"""Codex: the items of a turn, on standard output and in a rollout."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.events import Failed, Finish
from tests.conftest import broken_of, calls_of, text_of
from tests.providers.test_programs import told

Line = dict[str, Any]


def item(when: str, type_: str, id: str = "item_0", **fields: Any) -> Line:
    return {"type": f"item.{when}", "item": {"id": id, "type": type_, **fields}}


def saved(payload: Line) -> Line:
    return {"timestamp": "t", "type": "response_item", "payload": payload}


def happened(kind: str, **fields: Any) -> Line:
    return {"timestamp": "t", "type": "event_msg", "payload": {"type": kind, **fields}}


BEGIN, END = {"type": "turn.started"}, {"type": "turn.completed", "usage": {"input_tokens": 3}}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}


def one(lines: list[Line]) -> list[Any]:
    ((_, events),) = told("codex", lines)
    return events


def test_a_command_that_was_running_when_the_program_died_is_told_as_it_ran():
    lines = [BEGIN, item("started", "command_execution", command="sleep 9", status="in_progress")]
    events = one(lines)
    assert [c.arguments for c in calls_of(events)] == [{"command": "sleep 9"}]
    assert isinstance(events[-1], Failed)
    assert events[-1].reason == "truncated"


@pytest.mark.parametrize(
    ("fields", "name", "family", "arguments", "output", "is_error"),
    [
        ({"type": "file_change", "changes": [{"path": "a", "kind": "add"}], "status": "completed"},
         "file_change", "apply-patch", {"changes": [{"path": "a", "kind": "add"}]},
         {"status": "completed"}, False),
        ({"type": "mcp_tool_call", "server": "s", "tool": "look", "arguments": {"a": 1},
          "error": {"message": "no"}, "status": "failed"},
         "look", "mcp", {"a": 1}, {"error": {"message": "no"}}, True),
        ({"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "p", "agents_states": {},
          "status": "completed"}, "spawn_agent", "multi-agent", {"prompt": "p"}, {"agents_states": {}},
         False),
    ],
)  # fmt: skip
def test_an_item_is_a_call_and_what_came_out(fields, name, family, arguments, output, is_error):
    type_ = fields.pop("type")
    events = one([BEGIN, item("completed", type_, **fields), END])
    (call,) = calls_of(events)
    assert (call.name, call.family, call.arguments, call.runs_on) == (
        name,
        family,
        arguments,
        "provider",
    )
    (result,) = [e for e in events if e.kind == "tool_result"]
    assert (result.output, result.is_error, result.call) == (output, is_error, call.call)


def notes_of(lines: list[Line]) -> dict[str, int]:
    pipe = Normalizer("codex")
    for line in lines:
        pipe.feed_payload(line)
    pipe.close()
    return dict(pipe.notes)


RUNS = item("started", "command_execution", command="ls")


@pytest.mark.parametrize(
    ("started", "completed", "notes"),
    [
        (RUNS, item("completed", "command_execution", command="ls", exit_code=0), {}),
        (RUNS, item("completed", "command_execution", exit_code=0), {}),
        (item("started", "mcp_tool_call", tool="f", arguments={"a": 1}),
         item("completed", "mcp_tool_call", result={}), {}),
        (RUNS, item("completed", "file_change", changes=[]), {"call.name_changed": 1}),
        (RUNS, item("completed", "command_execution", command="rm"), {"args.mismatch": 1}),
        (item("started", "mcp_tool_call", tool="f", arguments={"a": 1}),
         item("completed", "mcp_tool_call", tool="f", arguments={"a": 2}), {"args.mismatch": 1}),
        (item("started", "mcp_tool_call", tool="f", arguments={"a": 1}),
         item("completed", "mcp_tool_call", tool="g", arguments={"a": 1}), {"call.name_changed": 1}),
        # whom it calls is known when that one was begun
        (item("started", "collab_tool_call", tool="f", prompt="p", receiver_thread_ids=[]),
         item("completed", "collab_tool_call", tool="f", prompt="p", receiver_thread_ids=["t"]), {}),
    ],
)  # fmt: skip
def test_what_is_completed_is_compared_with_what_was_started(started, completed, notes):
    events = one([BEGIN, started, completed, END])
    assert len(calls_of(events)) == (0 if notes else 1)
    assert [b.reason for b in broken_of(events)] == (["conflict"] if notes else [])
    assert notes_of([BEGIN, started, completed, END]) == notes


@pytest.mark.parametrize("end", [END, {"type": "turn.failed", "error": {"message": "no"}}])
def test_a_command_that_is_never_completed_is_told_at_the_end_of_its_turn(end):
    assert [c.arguments for c in calls_of(one([BEGIN, RUNS, end]))] == [{"command": "ls"}]
    assert notes_of([BEGIN, RUNS, end]) == {}


def test_a_call_of_another_name_is_broken_before_what_came_out_of_it():
    events = one([BEGIN, RUNS, item("completed", "file_change", changes=[], status="x"), END])
    assert [e.kind for e in events[3:5]] == ["broken_tool_call", "tool_result"]


def test_a_command_is_told_before_what_came_out_of_it():
    kinds = [e.kind for e in one([BEGIN, RUNS, RAN, END])]
    assert kinds[1:5] == ["tool_call_start", "tool_call_delta", "tool_call", "tool_result"]


def test_arguments_that_are_not_said_at_the_start_are_those_of_the_end():
    started = item("started", "mcp_tool_call", tool="f", arguments=None)
    completed = item("completed", "mcp_tool_call", tool="f", arguments={"a": 1}, result={})
    events = one([BEGIN, started, completed, END])
    assert [c.arguments for c in calls_of(events)] == [{"a": 1}]
    assert [b.reason for b in broken_of(one([BEGIN, started]))] == ["truncated"]
    none = one([BEGIN, started, item("completed", "mcp_tool_call", tool="f", arguments=None), END])
    assert [c.arguments for c in calls_of(none)] == [{}]


def test_a_search_says_its_query_when_it_is_completed():
    events = one(
        [
            BEGIN,
            item("started", "web_search", query=""),
            item("completed", "web_search", query="q"),
            END,
        ]
    )
    assert [c.arguments for c in calls_of(events)] == [{"query": "q"}]


def test_a_plan_that_changes_is_a_call_that_goes_on():
    todo, done = [{"text": "a", "completed": False}], [{"text": "a", "completed": True}]
    lines = [item("started", "todo_list", items=todo), item("updated", "todo_list", items=done)]
    events = one([BEGIN, *lines, item("completed", "todo_list", items=done), END])
    assert [e.payload for e in events if e.kind == "tool_progress"] == [{"items": done}]
    assert [c.arguments for c in calls_of(events)] == [{"items": done}]


def test_an_error_after_which_the_program_tries_again_is_no_end():
    again = {"type": "error", "message": "Reconnecting... 1/5"}
    events = one([BEGIN, again, item("completed", "agent_message", text="Hi."), END])
    assert (text_of(events), events[-1]) == ("Hi.", Finish("stop", "completed"))


def test_an_error_after_which_nothing_comes_is_why_the_turn_failed():
    assert one([BEGIN, {"type": "error", "message": "gone"}])[-1] == Failed(
        "provider_error", "gone"
    )


def test_the_providers_own_words_are_taken_out_of_a_failure():
    said = '{"error":{"message":"Slow down.","type":"requests","code":"rate_limit_exceeded"}}'
    events = one([BEGIN, {"type": "turn.failed", "error": {"message": said}}])
    assert events[-1] == Failed("provider_error", "Slow down.", True, "rate_limit_exceeded")


def test_an_unknown_item_is_passed_on_whole():
    events = one([BEGIN, item("completed", "hologram", beam=1), END])
    (odd,) = [e for e in events if e.kind == "unrecognized"]
    assert (odd.wire_kind, odd.payload["item"]["beam"]) == ("item/hologram", 1)


def test_a_turn_that_the_user_ended_is_cancelled():
    begun = happened("task_started", turn_id="t")
    events = one([begun, saved(SAID), happened("turn_aborted", reason="interrupted", turn_id="t")])
    assert (events[-1].kind, events[-1].reason, events[-1].code) == (
        "failed",
        "cancelled",
        "interrupted",
    )


def test_an_error_behind_which_the_model_was_heard_again_is_not_why_a_turn_ended():
    begun, over = happened("task_started", turn_id="t"), happened("task_complete", turn_id="t")
    wrong = happened("error", message="gone")
    assert one([begun, wrong, saved(SAID), over])[-1] == Finish("stop", "completed")
    assert one([begun, saved(SAID), wrong, over])[-1] == Failed("provider_error", "gone")


def test_a_turn_that_was_left_is_truncated():
    first, second = told("codex", [
        happened("task_started", turn_id="1"), saved(SAID), happened("task_started", turn_id="2"),
        saved(SAID), happened("task_complete", turn_id="2"),
    ])  # fmt: skip
    assert (first[1][-1].kind, second[1][-1].kind) == ("failed", "finish")


def test_a_rollout_without_marks_is_cut_at_the_next_context():
    context = {"type": "turn_context", "payload": {"model": "m"}}
    asked = saved({"type": "message", "role": "user", "content": []})
    first, second = told("codex", [context, asked, saved(SAID), context, asked, saved(SAID)])
    assert (first[1][-1].kind, second[1][-1].kind) == ("finish", "finish")
    assert (text_of(first[1]), text_of(second[1])) == ("Hi.", "Hi.")
    assert first[1][0].model == "m"


def test_in_a_rollout_without_marks_the_next_context_is_the_end_of_a_turn():
    context = {"type": "turn_context", "payload": {"model": "m"}}
    call = saved({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})
    output = saved({"type": "function_call_output", "call_id": "c", "output": "ok"})
    first, _ = told("codex", [context, call, output, context, saved(SAID)])
    assert first[1][-1] == Finish("stop", "completed")


def test_a_rollout_without_marks_that_ends_behind_a_call_was_cut():
    context = {"type": "turn_context", "payload": {"model": "m"}}
    call = saved({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})
    assert one([context, call])[-1].reason == "truncated"


def test_what_the_program_adds_to_an_item_is_no_input_of_a_call():
    added = {"internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", **added}
    output = {"type": "function_call_output", "call_id": "c", "output": "ok", **added}
    begun = happened("task_started", turn_id="t")
    events = one([begun, saved(call), saved(output), happened("task_complete", turn_id="t")])
    assert [(c.arguments, c.echo) for c in calls_of(events)] == [({}, None)]
    assert broken_of(events) == []


def test_the_cost_of_a_turn_is_that_of_its_answers():
    begun, over = happened("task_started", turn_id="t"), happened("task_complete", turn_id="t")

    def count(total: int, last: int) -> Line:
        usage = {
            "total_token_usage": {"input_tokens": total},
            "last_token_usage": {"input_tokens": last},
        }
        return happened("token_count", info=usage)

    events = one([begun, saved(SAID), count(9, 4), count(9, 4), count(12, 3), over])
    assert [e.input for e in events if e.kind == "usage"] == [7]


# --- what is said twice, and what is missing ------------------------------------------------------

COMMAND = {"command": "ls", "exit_code": 0}


def nameless(line: Line) -> Line:
    return {**line, "item": {k: v for k, v in line["item"].items() if k != "id"}}


RAN = item("completed", "command_execution", **COMMAND)


@pytest.mark.parametrize("lines", [[RUNS, RAN, RAN], [RUNS, RUNS, RAN]])
def test_an_item_that_is_said_twice_is_one_call_and_one_result(lines):
    events = one([BEGIN, *lines, END])
    assert [c.arguments for c in calls_of(events)] == [{"command": "ls"}]
    assert sum(e.kind == "tool_result" for e in events) == 1


MESSAGE = item("completed", "agent_message", text="Hi.")


@pytest.mark.parametrize(
    ("again", "note"),
    [
        (MESSAGE, "stream.repeated"),
        (item("completed", "agent_message", text="Ho."), "wire.text_mismatch"),
    ],
)
def test_a_message_that_is_said_twice_is_told_once(again, note):
    assert text_of(one([BEGIN, MESSAGE, again, END])) == "Hi."
    assert notes_of([BEGIN, MESSAGE, again, END]) == {note: 1}


def test_messages_of_other_ids_or_of_none_are_others():
    other = item("completed", "agent_message", "item_1", text="Hi.")
    assert text_of(one([BEGIN, MESSAGE, other, nameless(MESSAGE), END])) == "Hi.Hi.Hi."


def test_a_turn_that_is_said_to_begin_twice_is_one_turn():
    events = one([BEGIN, BEGIN, MESSAGE, END])
    assert (text_of(events), events[-1].kind) == ("Hi.", "finish")


def test_a_turn_that_begins_behind_something_of_another_is_the_next():
    (_, first), (_, second) = told("codex", [BEGIN, MESSAGE, BEGIN, MESSAGE, END])
    assert (first[-1].kind, second[-1].kind) == ("failed", "finish")


@pytest.mark.parametrize("lines", [
    [nameless(RUNS), RAN],  # told when it is completed
    [RUNS, nameless(RAN)],  # it is the one that runs
    [nameless(RUNS), nameless(RAN)],
    [nameless(item("updated", "command_execution", command="ls")), RAN],
])  # fmt: skip
def test_an_item_that_lost_its_id_is_still_one_call(lines):
    events = one([BEGIN, *lines, END])
    assert [c.arguments for c in calls_of(events)] == [{"command": "ls"}]
    assert sum(e.kind == "tool_result" for e in events) == 1


def test_items_without_ids_are_the_first_that_run_and_say_the_same():
    two = [RUNS, item("started", "command_execution", "item_1", command="ls")]
    events = one([BEGIN, *two, nameless(RAN), nameless(RAN), END])
    assert [c.id for c in calls_of(events)] == ["item_0", "item_1"]
    assert [e.id for e in events if e.kind == "tool_result"] == ["item_0", "item_1"]


@pytest.mark.parametrize(("type_", "fields"), [
    ("command_execution", {}),
    ("command_execution", {"command": 5}),
    ("file_change", {"changes": {}}),
    ("mcp_tool_call", {"tool": "f"}),
    ("mcp_tool_call", {"tool": "f", "arguments": "{}"}),
    ("mcp_tool_call", {"arguments": {"a": 1}}),
    ("collab_tool_call", {"tool": "f", "prompt": ["p"]}),
    ("web_search", {}),
    ("todo_list", {"items": "x"}),
])  # fmt: skip
def test_an_item_whose_input_or_name_is_missing_or_of_another_type_is_broken(type_, fields):
    events = one([BEGIN, item("completed", type_, **fields), END])
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]


def test_a_tool_that_is_named_at_the_end_is_called_with_what_is_said_there():
    started = item("started", "mcp_tool_call", arguments={"a": 1})
    completed = item("completed", "mcp_tool_call", tool="f", arguments={"a": 2})
    events = one([BEGIN, started, completed, END])
    assert [(c.name, c.arguments) for c in calls_of(events)] == [("f", {"a": 2})]


def test_what_could_not_be_read_at_the_start_may_be_said_at_the_end():
    events = one([BEGIN, item("started", "command_execution", command=5), RAN, END])
    assert [c.arguments for c in calls_of(events)] == [{"command": "ls"}]


@pytest.mark.parametrize("fields", [
    {"type": "custom_tool_call", "name": "f"},
    {"type": "custom_tool_call", "name": "f", "input": {}},
    {"type": "computer_call"},
    {"type": "computer_call", "action": []},
    {"type": "web_search_call", "id": "w", "arguments": 5},
    {"type": "local_shell_call", "action": 5},
])  # fmt: skip
def test_a_saved_item_without_its_input_is_no_call_without_arguments(fields):
    over = happened("task_complete", turn_id="t")
    lines = [happened("task_started", turn_id="t"), saved({"call_id": "c", **fields}), over]
    events = one(lines)
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["conflict"]
