"""Sessions of agent programs, as they were recorded: what ran, one stream per answer, lanes apart."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Conversation, Normalizer, provider
from streamnorm.demultiplexer import Demultiplexer
from streamnorm.events import Event
from streamnorm.providers import PROGRAMS, provider_row
from streamnorm.sessions import session
from tests.conftest import RECORDINGS, assert_well_formed, calls_of, text_of
from tools.golden import golden_of, lines_of, streams_of

TAKES = sorted(p for name in PROGRAMS for p in (RECORDINGS / name).glob("*.sse"))
over_sessions = pytest.mark.parametrize(
    "path", TAKES, ids=lambda p: f"{p.parent.name}/{p.stem}" if isinstance(p, Path) else str(p)
)


def lines(name: str) -> list[bytes]:
    from streamnorm.captures import read_take

    return read_take(RECORDINGS / f"{name}.sse").wire.splitlines()


def told(
    provider: str, messages: list[Any], **options: Any
) -> list[tuple[str | None, list[Event]]]:
    """The streams of these messages, each with its lane."""
    turns = Demultiplexer(provider, **{"seed": "tests", **options})
    streams: dict[int, tuple[str | None, list[Event]]] = {}
    for one in [*(t for m in messages for t in turns.feed(m)), *turns.close()]:
        if one.stream is not None:
            streams.setdefault(one.stream, (one.lane, []))[1].extend(one.events)
    return [streams[n] for n in sorted(streams)]


def ran(path_or_name: str) -> list[tuple[str, Any, Any, bool]]:
    """The calls that ran: name, arguments, what came out, whether that is an error."""
    path = RECORDINGS / f"{path_or_name}.sse"
    found = []
    for events in streams_of(path):
        results = {e.call: e for e in events if e.kind == "tool_result"}
        for call in calls_of(events):
            result = results[call.call]
            found.append((call.name, call.arguments, result.output, result.is_error))
    return found


# --- the takes ------------------------------------------------------------------------------------


@over_sessions
def test_a_session_gives_its_golden_events(path):
    expected = [json.loads(line) for line in golden_of(path).read_bytes().splitlines()]
    assert [json.loads(line) for line in lines_of(path)] == expected


@over_sessions
def test_every_answer_is_a_stream_with_one_end(path):
    streams = streams_of(path)
    assert streams
    for events in streams:
        assert_well_formed(events)


@over_sessions
def test_whoever_reads_an_answer_runs_nothing_of_it(path):
    calls = [
        e for events in streams_of(path) for e in events if e.kind.endswith(("call", "call_start"))
    ]
    assert {call.runs_on for call in calls} <= {"provider"}


@over_sessions
def test_a_session_is_recognized_by_its_lines(path):
    with session(path) as streams:
        again = [list(stream) for stream in streams]
    assert streams.provider == path.parent.name
    assert [[e.kind for e in s] for s in again] == [[e.kind for e in s] for s in streams_of(path)]


@over_sessions
def test_the_lines_of_a_pipe_may_be_cut_anywhere(path):
    body = b"".join(line + b"\n" for line in lines(f"{path.parent.name}/{path.stem}"))
    dice = random.Random(path.stem)

    class Pipe(io.RawIOBase):
        at = 0

        def readable(self):
            return True

        def read(self, size=-1):
            piece = body[self.at : self.at + dice.randint(1, 900)]
            self.at += len(piece)
            return piece

    with session(Pipe(), seed="tests") as streams:
        assert [list(stream) for stream in streams] == [
            events for _, events in told(path.parent.name, body.splitlines())
        ]


@over_sessions
def test_a_session_that_is_cut_tells_no_call_that_the_whole_one_does_not(path):
    messages = lines(f"{path.parent.name}/{path.stem}")
    whole = Counter(
        call.id for _, events in told(path.parent.name, messages) for call in calls_of(events)
    )
    for cut in range(len(messages)):
        streams = told(path.parent.name, messages[:cut])
        for _, events in streams:
            assert_well_formed(events)
        found = Counter(call.id for _, events in streams for call in calls_of(events))
        assert found <= whole


@over_sessions
def test_one_pipe_alone_reads_the_first_answer(path):
    pipe = Normalizer(path.parent.name, seed="tests")
    body = b"".join(line + b"\n" for line in lines(f"{path.parent.name}/{path.stem}"))
    events = [e for at in range(0, len(body), 700) for e in pipe.feed(body[at : at + 700])]
    events += pipe.close()
    _, first = told(path.parent.name, body.splitlines(), seed="tests")[0]
    assert [(e.name, e.arguments) for e in calls_of(events)] == [
        (e.name, e.arguments) for e in calls_of(first)
    ]
    assert text_of(events) == text_of(first)
    assert_well_formed(events)


@pytest.mark.parametrize("name", ["claude_code/whole_messages", "codex/rollout"])
def test_a_session_can_be_gone_on_with_at_another_provider(name):
    talk = Conversation().user("Say hi.")
    for events in streams_of(RECORDINGS / f"{name}.sse"):
        talk = talk.assistant(events)
    talk = talk.user("And?")
    assert Conversation.from_json(talk.to_json()) == talk
    sent = provider("openai_chat").request(talk, model="m")["messages"]
    assert [entry["role"] for entry in sent][:2] == ["user", "assistant"]
    assert "tool_calls" not in json.dumps(sent)  # what ran there is not ours to answer


def test_there_are_eight_takes_of_each_program():
    for name in PROGRAMS:
        assert len(list((RECORDINGS / name).glob("*.sse"))) >= 8
        assert provider_row(name).can == ("read", "multiplex", "tools")


# --- what ran -------------------------------------------------------------------------------------

ONE = {"command": "echo one", "description": "Run it"}
TWO = {"command": "echo two; exit 3", "description": "Run it"}


@pytest.mark.parametrize(
    "name",
    ["partial_messages", "whole_messages", "saved_session", "two_questions", "saved_two_questions"],
)
def test_claude_code_reads_back_to_the_calls_that_ran(name):
    assert ran(f"claude_code/{name}") == [
        ("Bash", ONE, "one", False),
        ("Bash", TWO, "Exit code 3\ntwo", True),
    ]


def test_codex_reads_back_to_the_commands_that_ran():
    assert ran("codex/exec_parallel") == [
        ("command_execution", {"command": "/bin/bash -lc 'echo one'"},
         {"aggregated_output": "one\n", "exit_code": 0}, False),
        ("command_execution", {"command": "/bin/bash -lc 'echo two; exit 3'"},
         {"aggregated_output": "two\n", "exit_code": 3}, True),
    ]  # fmt: skip


def test_a_rollout_reads_back_to_the_calls_that_ran():
    one, two = ran("codex/rollout_parallel")
    assert one[:2] == ("exec_command", {"cmd": "echo one"})
    assert one[2].endswith("Process exited with code 0\nOriginal token count: 1\nOutput:\none\n")
    assert two[:2] == ("exec_command", {"cmd": "echo two; exit 3"})
    assert "Process exited with code 3" in two[2]


def test_the_agent_below_is_a_lane_of_its_own():
    main, below, last = told("claude_code", lines("claude_code/sub_agent"))
    (asked,) = calls_of(main[1])
    assert asked.name == "Agent"
    assert (main[0], below[0], last[0]) == (None, asked.id, None)
    (call,) = calls_of(below[1])
    assert (call.name, call.agent) == ("Bash", asked.id)
    assert {e.agent for e in main[1] if hasattr(e, "agent")} == {None}
    assert below[1][-1].reason == "tool_calls"
    assert text_of(last[1]) == "They said from-below."


def test_the_saved_session_of_the_agent_below_names_it():
    first, second = told("claude_code", lines("claude_code/saved_sub_agent"))
    assert first[0] == second[0]
    assert {e.agent for e in [*first[1], *second[1]] if hasattr(e, "agent")} == {first[0]}
    assert (text_of(first[1]), text_of(second[1])) == ("Running it.", "It said from-below.")


# --- lanes, interleaved ---------------------------------------------------------------------------


def _answer(agent: str | None, number: int) -> list[dict[str, Any]]:
    """One answer of an agent in partial messages, with a call and what came out."""
    id, call = f"msg_{agent}_{number}", f"toolu_{agent}_{number}"
    start = {"type": "message_start", "message": {"id": id, "model": "m", "content": []}}
    block = {"type": "tool_use", "id": call, "name": "Bash", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": f'{{"command":"{id}"}}'}
    events: list[dict[str, Any]] = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    result = {"type": "tool_result", "tool_use_id": call, "content": f"out of {id}"}
    return [
        *({"type": "stream_event", "event": e, "parent_tool_use_id": agent} for e in events),
        {"type": "user", "message": {"content": [result]}, "parent_tool_use_id": agent},
    ]


AGENTS = (None, "toolu_a", "toolu_b")
ALONE = {agent: [*_answer(agent, 1), *_answer(agent, 2)] for agent in AGENTS}


@given(st.data())
def test_agents_that_speak_at_the_same_time_are_told_as_if_each_were_alone(data):
    left = {agent: list(messages) for agent, messages in ALONE.items()}
    mixed = []
    while any(left.values()):
        agent = data.draw(st.sampled_from([a for a in AGENTS if left[a]]))
        mixed.append(left[agent].pop(0))
    streams = told("claude_code", mixed)
    for agent in AGENTS:
        alone = [events for _, events in told("claude_code", ALONE[agent])]
        assert [events for lane, events in streams if lane == agent] == alone
        assert len(alone) == 2
        for events in alone:
            assert {e.agent for e in calls_of(events)} == {agent}
            assert events[-1].kind == "finish"


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_line_raises_nothing_and_every_stream_still_has_one_end(seed):
    dice = random.Random(seed)
    for _ in range(60):
        path = dice.choice(TAKES)
        messages = lines(f"{path.parent.name}/{path.stem}")
        at = dice.randrange(len(messages))
        line = bytearray(messages[at])
        cut = dice.randrange(len(line))
        if dice.random() < 0.5:
            line[cut] = dice.randrange(256)
        else:
            del line[cut : cut + dice.randint(1, 200)]
        messages[at] = bytes(line)
        for mode in ("fail", "skip"):
            for _, events in told(path.parent.name, messages, on_bad_event=mode):
                assert_well_formed(events)


@pytest.mark.parametrize(
    "line",
    ["null", "[]", "{}", '{"type":7}', '{"type":"stream_event"}', '{"type":"assistant","message":null}',
     '{"type":"user","message":[]}', '{"type":"item.started","item":3}', '{"type":"turn_context"}',
     '{"type":"response_item","payload":[]}', '{"type":"event_msg","payload":{"type":"token_count","info":3}}',
     '{"type":"stream_event","event":{"type":"message_start","message":3}}',
     '{"type":"assistant","message":{"id":"x","content":[3,{"type":"tool_use"},{"type":"tool_use","id":3}]}}'],
)  # fmt: skip
@over_sessions
def test_an_odd_line_anywhere_is_heard_without_harm(path, line):
    messages = lines(f"{path.parent.name}/{path.stem}")
    for at in (0, len(messages) // 2, len(messages)):
        for _, events in told(path.parent.name, [*messages[:at], line, *messages[at:]]):
            assert_well_formed(events)
            assert "shape that cannot be read" not in getattr(events[-1], "error", "")
