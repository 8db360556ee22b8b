"""Guards of Codex that no recorded session passes: each test fails if its guard is removed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import Normalizer
from tests.conftest import broken_of, calls_of
from tests.providers.test_codex import BEGIN, END, Line, happened, item, one, saved

# --- characters that cannot be read -----------------------------------------------------------------


def from_bytes(*lines: Line | bytes) -> list[Any]:
    pipe = Normalizer("codex", seed="tests")
    body = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return pipe.feed(b"".join(line + b"\n" for line in body)) + pipe.close()


def odd(line: Line, character: bytes) -> bytes:
    """The line with this in place of XX."""
    return json.dumps(line).encode().replace(b"XX", character)


COMMAND = item("completed", "command_execution", "item_1", command="ls", exit_code=0)


@pytest.mark.parametrize("when", ["started", "updated", "completed"])
@pytest.mark.parametrize(
    ("character", "reason"),
    [(b"\xff", "conflict"), (b"\\ud83d", "invalid_json"), (b"\xff\\ud83d", "conflict")],
)
def test_a_character_that_cannot_be_read_breaks_the_call_of_its_item_alone(when, character, reason):
    line = odd(item(when, "command_execution", command="ls XX", exit_code=0), character)
    events = from_bytes(BEGIN, line, COMMAND, END)
    broken = [b.reason for b in broken_of(events)]
    assert broken == ["truncated" if when == "updated" else reason]
    assert [c.id for c in calls_of(events)] == ["item_1"]
    assert events[-1].kind == "finish"


@pytest.mark.parametrize("character", [b"\xff", b"\\ud83d", b"\xff\\ud83d"])
def test_such_a_character_in_a_rollout_breaks_its_call_alone(character):
    called = {"type": "function_call", "name": "f", "metadata": 1}
    first = saved({**called, "call_id": "a", "arguments": '{"a":"XX"}'})
    second = saved({**called, "call_id": "b", "arguments": '{"a":1}'})
    events = from_bytes(
        happened("task_started"), odd(first, character), second, happened("task_complete")
    )
    assert [(b.id, b.reason) for b in broken_of(events)] == [("a", "conflict")]
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("b", {"a": 1})]


# --- what items say --------------------------------------------------------------------------------


def test_an_update_of_an_item_that_we_do_not_know_says_nothing():
    events = one([BEGIN, item("updated", "novel"), COMMAND, END])
    assert [e.kind for e in events if e.kind == "unrecognized"] == []
    assert ([c.id for c in calls_of(events)], events[-1].kind) == (["item_1"], "finish")


def test_an_error_beside_a_result_is_one_whatever_its_status_says():
    said = {"tool": "look", "server": "s", "arguments": {"a": 1}, "error": {"message": "no"}}
    events = one([BEGIN, item("completed", "mcp_tool_call", **said, status="completed"), END])
    assert [e.is_error for e in events if e.kind == "tool_result"] == [True]
    assert [c.echo for c in calls_of(events)] == [{"server": "s"}]


def test_an_item_without_an_output_has_no_result():
    events = one([BEGIN, item("completed", "web_search", query="tides"), END])
    assert [c.arguments for c in calls_of(events)] == [{"query": "tides"}]
    assert [e for e in events if e.kind == "tool_result"] == []


def in_short(*lines: Line | bytes) -> tuple[list[Any], list[Any]]:
    """The calls that are whole, and those that are not."""
    events = from_bytes(*lines)
    return [c.arguments for c in calls_of(events)], [b.reason for b in broken_of(events)]


def test_an_update_that_names_no_item_is_of_none():
    updated = {"type": "item.updated", "item": {"type": "command_execution", "command": "rm"}}
    assert in_short(BEGIN, updated, COMMAND, END) == ([{"command": "ls"}], [])


def test_what_is_completed_as_it_was_started_is_whole_though_a_part_of_its_start_was_lost():
    started = item("started", "command_execution", command="ls", aggregated_output="XX")
    completed = item("completed", "command_execution", command="ls", exit_code=0)
    assert in_short(BEGIN, odd(started, b"\xff"), completed, END) == ([{"command": "ls"}], [])
    assert in_short(BEGIN, odd(started, b"\xff"), END) == ([], ["conflict"])


@pytest.mark.parametrize(
    ("type_", "fields", "arguments"),
    [
        ("command_execution", {"command": None}, None),
        ("command_execution", {}, None),
        ("mcp_tool_call", {"tool": "look", "arguments": None}, {}),
        ("mcp_tool_call", {"tool": "look"}, None),
    ],
)
def test_only_an_item_that_may_say_that_it_has_no_input_has_none(type_, fields, arguments):
    whole, broken = in_short(BEGIN, item("completed", type_, **fields), END)
    assert (whole, broken) == (([], ["conflict"]) if arguments is None else ([{}], []))


@pytest.mark.parametrize("word", ["arguments", "call_id", "command"])
def test_a_new_line_that_speaks_of_a_call_breaks_the_one_that_runs(word):
    started = item("started", "command_execution", command="ls")
    assert in_short(BEGIN, started, {"type": "novel", word: 1}, END) == ([], ["conflict"])
    assert in_short(BEGIN, started, {"type": "novel", "x": 1}, END) == ([{"command": "ls"}], [])


# --- rollouts ----------------------------------------------------------------------------------------

STARTED, COMPLETE = happened("task_started"), happened("task_complete")
CUSTOM = {"type": "custom_tool_call", "call_id": "a", "name": "p"}
SAYS = saved({"type": "message", "role": "assistant", "content": []})


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ({**CUSTOM, "input": "x"}, ([{"input": "x"}], [])),
        ({**CUSTOM, "input": 5}, ([], ["conflict"])),
        ({**CUSTOM, "input": "x", "arguments": 5}, ([], ["conflict"])),
        (CUSTOM, ([], ["conflict"])),
        ({"type": "web_search_call", "id": "w", "status": "completed"}, ([{}], [])),
    ],
)
def test_what_is_missing_of_a_call_in_a_rollout_is_lost(called, expected):
    assert in_short(STARTED, saved(called), COMPLETE) == expected


def test_what_was_lost_of_a_users_message_is_of_no_call():
    user = odd(saved({"type": "message", "role": "user", "content": "XX"}), b"\xff")
    called = saved({**CUSTOM, "input": "x"})
    assert in_short(STARTED, user, called, COMPLETE) == ([{"input": "x"}], [])


def test_a_turn_that_said_that_it_began_ends_with_its_own_word_alone():
    ends = [from_bytes(*lines)[-1] for lines in ([STARTED, SAYS], [SAYS], [STARTED, SAYS, STARTED])]
    assert [(end.kind, end.reason) for end in ends] == [
        ("failed", "truncated"), ("finish", "stop"), ("failed", "truncated"),
    ]  # fmt: skip
    assert ends[2].error == "the next turn began before this one ended"


def context(turn: str | None = None) -> Line:
    return {"type": "turn_context", "payload": {"turn_id": turn} if turn else {}}


T_STARTED = happened("task_started", turn_id="t")


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ((T_STARTED, SAYS, context("t"), COMPLETE), "finish"),
        ((T_STARTED, SAYS, context(), COMPLETE), "finish"),
        ((T_STARTED, context("u"), SAYS, COMPLETE), "finish"),
        ((STARTED, SAYS, context("u"), COMPLETE), "finish"),
        ((STARTED, context("t"), SAYS, context("t"), COMPLETE), "finish"),
        ((T_STARTED, SAYS, context("u"), COMPLETE), "failed"),
        ((T_STARTED, SAYS, context(), context("u"), COMPLETE), "failed"),
        ((STARTED, context("t"), SAYS, context("u"), COMPLETE), "failed"),
    ],
)
def test_a_context_that_names_another_turn_behind_an_item_is_of_the_next_one(lines, end):
    last = from_bytes(*lines)[-1]
    assert (last.kind, getattr(last, "error", "")) == (
        end, "the next turn began before this one ended" if end == "failed" else "",
    )  # fmt: skip


@pytest.mark.parametrize("said", [context("t"), context()])
def test_a_context_within_a_task_is_not_its_end(said):
    called = saved({**CUSTOM, "input": "x"})
    assert in_short(T_STARTED, SAYS, said, called, COMPLETE) == ([{"input": "x"}], [])


def test_what_runs_when_another_turn_begins_may_be_completed_there():
    started = item("started", "command_execution", command="ls")
    for line in (context(), T_STARTED):
        assert in_short(BEGIN, started, line) == ([], ["truncated"])
    empty = saved({"type": "function_call", "call_id": "a", "name": "p", "arguments": ""})
    assert in_short(T_STARTED, empty, context("t"), COMPLETE) == ([{}], [])


def test_a_call_of_a_rollout_takes_no_name_from_another_of_its_items_id():
    nameless = {**CUSTOM, "id": "i", "call_id": "b", "name": "", "input": "x"}
    whole, broken = in_short(STARTED, saved({**CUSTOM, "id": "i"}), saved(nameless), COMPLETE)
    assert (whole, set(broken)) == ([], {"conflict"})


# --- one id, two items --------------------------------------------------------------------------------


def test_an_item_of_another_type_under_the_id_of_one_without_a_name_breaks_it():
    nameless = item("completed", "collab_tool_call", tool="", prompt="x")
    command = item("completed", "command_execution", command="ls", exit_code=0)
    whole, broken = in_short(BEGIN, nameless, command, END)
    assert (whole, broken) == ([], ["conflict"])


def test_the_end_of_a_turn_is_not_that_of_a_call_from_the_turn_before_it():
    started = item("started", "command_execution", command="ls")
    assert in_short(BEGIN, started, BEGIN, END) == ([], ["conflict"])


@pytest.mark.parametrize("command", [{}, {"command": 5}])
def test_a_copy_that_does_not_say_the_input_either_takes_no_doubt_away(command):
    line = item("completed", "command_execution", **command, exit_code=0)
    assert [b.reason for b in broken_of(one([BEGIN, line, line, END]))] == ["conflict"]
