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
