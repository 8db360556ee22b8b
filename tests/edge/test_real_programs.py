"""The real Claude Code and the real Codex, offline: what they print and save reads back to what ran.

STREAMNORM_AGENTS names a folder with ``node_modules``; without it these tests are left out. The model
is a script of ours, and a program runs in a network in which there is nothing else (tools/programs.py).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamnorm import read_request
from streamnorm.events import Event
from streamnorm.sessions import session
from tests.conftest import CALLING, calls_of, text_of
from tests.encoding.pairing_rules import assert_paired
from tests.providers.test_sdk_requests import judge
from tools.programs import AGENTS, programs_here, run_scenes

pytestmark = [
    pytest.mark.parts,
    pytest.mark.skipif(
        programs_here() is None or shutil.which("unshare") is None,
        reason=f"{AGENTS} names no folder with the programs, or there is no unshare",
    ),
]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the programs printed and saved."""
    out = tmp_path_factory.mktemp("printed")
    run_scenes(
        out,
        ["partial_messages", "whole_messages", "sub_agent", "exec_parallel", "exec_websocket"],
    )
    return out


def streams(path: Path) -> list[tuple[str | None, list[Event]]]:
    with path.open("rb") as pipe, session(pipe) as found:
        return [(stream.lane, list(stream)) for stream in found]


def ran(path: Path) -> list[tuple[Any, Any]]:
    """Arguments and output of each call that ran."""
    found = []
    for _, events in streams(path):
        outputs = {e.call: e.output for e in events if e.kind == "tool_result"}
        found += [(c.arguments, outputs[c.call]) for c in calls_of(events)]
    return found


@pytest.mark.parametrize("take", ["partial_messages", "whole_messages", "saved_session"])
def test_claude_code_reads_back_to_the_calls_that_ran(printed, take):
    one, two = ran(printed / "claude_code" / f"{take}.jsonl")
    assert one == ({"command": "echo one", "description": "Run it"}, "one")
    assert two == ({"command": "echo two; exit 3", "description": "Run it"}, "Exit code 3\ntwo")
    found = streams(printed / "claude_code" / f"{take}.jsonl")
    assert [events[-1].kind for _, events in found] == ["finish", "finish"]
    assert text_of(found[1][1]) == "One and two."


def test_the_agent_below_claude_code_is_a_lane(printed):
    found = streams(printed / "claude_code" / "sub_agent.jsonl")
    (asked,) = calls_of(found[0][1])
    below = [events for lane, events in found if lane == asked.id]
    assert [c.arguments["command"] for events in below for c in calls_of(events)] == [
        "echo from-below"
    ]
    assert {c.agent for events in below for c in calls_of(events)} == {asked.id}
    assert {events[-1].kind for _, events in found} == {"finish"}


def test_codex_reads_back_to_the_commands_that_ran(printed):
    # They run side by side.
    one, two = sorted(ran(printed / "codex" / "exec_parallel.jsonl"), key=lambda r: r[0]["command"])
    assert "echo one" in one[0]["command"]
    assert one[1] == {"aggregated_output": "one\n", "exit_code": 0}
    assert "echo two" in two[0]["command"]
    assert two[1] == {"aggregated_output": "two\n", "exit_code": 3}


def test_a_rollout_reads_back_to_the_calls_that_ran(printed):
    one, two = ran(printed / "codex" / "rollout_parallel.jsonl")
    assert (one[0], two[0]) == ({"cmd": "echo one"}, {"cmd": "echo two; exit 3"})
    assert one[1].endswith("one\n")
    assert two[1].endswith("two\n")


def test_codex_runs_a_command_that_it_was_told_on_the_scripted_websocket(printed):
    ((asked, gave),) = ran(printed / "codex" / "exec_websocket.jsonl")
    assert "echo hi" in asked["command"]
    assert gave == {"aggregated_output": "hi\n", "exit_code": 0}
    ((_, events),) = streams(printed / "codex" / "exec_websocket.jsonl")
    assert text_of(events).endswith("It said hi.")
    lines = (printed / "codex" / "exec_websocket_asked.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    # It prepares its session first, without output, and goes on from there.
    assert [a.get("generate") for a in asked] == [False, None, None]
    assert [bool(a.get("previous_response_id")) for a in asked] == [False, True, True]
    assert asked[2]["input"][0]["type"] == "function_call_output"


# Of what the programs send, all that has no place in a conversation.
UNKEPT = {"partial_messages": {"cache_control"}, "exec_parallel": {"id"}}


def requests_of(printed: Path, scene: str) -> list[Any]:
    (path,) = printed.glob(f"*/{scene}_asked.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("scene", UNKEPT)
def test_all_that_a_program_asks_is_read_or_told(printed, scene):
    bodies = requests_of(printed, scene)
    assert len(bodies) >= 2
    for body in bodies:
        request = read_request("auto", body)
        assert {row.what for row in request.report} <= UNKEPT[scene]
        assert len(request.tools) >= 10
    results = [part.text for turn in request.conversation for part in turn.results]
    assert [text.splitlines()[-1] for text in results] == ["one", "two"]


@pytest.mark.parametrize("scene", UNKEPT)
@pytest.mark.parametrize("target", CALLING)
def test_all_that_a_program_asks_can_be_asked_of_others(printed, scene, target):
    for body in requests_of(printed, scene):
        said = read_request("auto", body).prepare(target, model="m").body
        judge(target)(said)
        assert_paired(target, said)
