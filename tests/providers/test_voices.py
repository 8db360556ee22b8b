"""Several agents in one answer: whoever speaks is named, and nobody's words become another's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import (
    BrokenToolCall,
    Conversation,
    Reasoning,
    ReasoningDelta,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Turn,
)
from streamnorm.wire import provider
from tests.conftest import RECORDINGS, load, run
from tests.providers.streams import Responses, heard

MAIN, SCOUT = {"agent_name": "main"}, {"agent_name": "main/scout"}


def message(at: int, agent: Any) -> dict[str, Any]:
    said = {"id": f"msg_{at}", "type": "message", "role": "assistant", "content": []}
    return said if agent is None else {**said, "agent": agent}


def piece(at: int, text: str, **more: Any) -> bytes:
    where = {"item_id": f"msg_{at}", "output_index": at, "content_index": 0}
    return Responses.say("output_text.delta", delta=text, **where, **more)


END = Responses.say("completed", response={"status": "completed", "output": []})


def said(events: list[Any]) -> list[tuple[str, str | None]]:
    return [(e.text, e.agent) for e in events if isinstance(e, TextDelta) and e.text]


def take() -> list[Any]:
    _, wire = load(RECORDINGS / "openai_responses/two_agents.sse")
    return run("openai_responses", [wire])


def test_texts_thoughts_and_calls_name_who_made_them() -> None:
    events = take()
    assert {(e.part, e.agent) for e in events if isinstance(e, TextDelta)} == {
        (0, "main"), (1, "main/scout"),
    }  # fmt: skip
    assert {e.agent for e in events if isinstance(e, ReasoningDelta)} == {"main/scout"}
    for kind in (ToolCallStart, ToolCallDelta, ToolCall):
        assert {(e.call, e.agent) for e in events if isinstance(e, kind)} == {
            (0, "main/scout"), (1, "main"),
        }  # fmt: skip


def test_an_event_may_name_the_agent_where_its_item_does_not() -> None:
    body = (
        Responses.added(message(0, None))
        + piece(0, "Hel", agent=SCOUT)
        + piece(0, "lo", agent=SCOUT)
    )
    assert said(heard("openai_responses", Responses.CREATED + body + END)[0]) == [
        ("Hel", "main/scout"), ("lo", "main/scout"),
    ]  # fmt: skip


@pytest.mark.parametrize("agent", ["main", {}, {"agent_name": ""}, {"agent_name": 3}, None])
def test_an_agent_without_a_name_is_nobody(agent: Any) -> None:
    body = Responses.added(message(0, agent)) + piece(0, "Hello")
    assert said(heard("openai_responses", Responses.CREATED + body + END)[0]) == [("Hello", None)]


def test_an_item_after_that_of_an_agent_is_not_his() -> None:
    body = Responses.added(message(0, SCOUT)) + piece(0, "a")
    body += Responses.added(message(1, None), 1) + piece(1, "b")
    assert said(heard("openai_responses", Responses.CREATED + body + END)[0]) == [
        ("a", "main/scout"), ("b", None),
    ]  # fmt: skip


def test_where_items_have_no_place_an_agent_is_that_of_his_item_alone() -> None:
    call = {"type": "function_call", "name": "pay", "arguments": "{}", "status": "completed"}
    body = Responses.done({**call, "id": "a", "call_id": "a", "agent": SCOUT}, None)
    body += Responses.done({**call, "id": "b", "call_id": "b"}, None)
    events, _ = heard("openai_responses", Responses.CREATED + body + END)
    assert {e.id: e.agent for e in events if isinstance(e, ToolCall)} == {
        "a": "main/scout",
        "b": None,
    }


def test_an_answer_that_begins_again_has_its_own_agents() -> None:
    body = Responses.added(message(0, SCOUT)) + piece(0, "a") + Responses.CREATED
    body += Responses.added(message(0, None)) + piece(0, "b")
    assert said(run("openai_responses", [Responses.CREATED + body + END]))[-1] == ("b", None)


def test_a_text_that_is_told_by_its_copies_alone_has_its_speaker() -> None:
    part = {"type": "output_text", "text": "Hello"}
    item = {**message(0, SCOUT), "content": [part], "status": "completed"}
    for body in (
        Responses.done(item) + END,
        Responses.say("completed", response={"status": "completed", "output": [item]}),
    ):
        assert said(heard("openai_responses", Responses.CREATED + body)[0]) == [
            ("Hello", "main/scout")
        ]


def test_a_copy_is_not_told_again_of_a_text_that_came_in_pieces() -> None:
    body = Responses.added(message(0, SCOUT)) + piece(0, "Hel") + piece(0, "lo")
    part = {"type": "output_text", "text": "Hello"}
    where = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    body += Responses.say("output_text.done", text="Hello", **where)
    body += Responses.done({**message(0, SCOUT), "content": [part], "status": "completed"})
    events, notes = heard("openai_responses", Responses.CREATED + body + END)
    assert said(events) == [("Hel", "main/scout"), ("lo", "main/scout")]
    assert "wire.text_mismatch" not in notes


def test_a_call_that_breaks_and_one_of_the_final_response_have_their_callers() -> None:
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "pay", "arguments": ""}
    body = Responses.added({**call, "agent": SCOUT})
    (broken,) = (
        e
        for e in run("openai_responses", [Responses.CREATED + body])
        if isinstance(e, BrokenToolCall)
    )
    assert broken.agent == "main/scout"
    whole = {**call, "arguments": "{}", "status": "completed", "agent": MAIN}
    final = Responses.say("completed", response={"status": "completed", "output": [whole]})
    events, _ = heard("openai_responses", Responses.CREATED + final)
    assert {e.agent for e in events if isinstance(e, ToolCallStart | ToolCall)} == {"main"}


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc ")), max_size=20))
def test_however_they_interleave_each_voice_is_heard_whole(pieces: list[tuple[int, str]]) -> None:
    agents = [MAIN, SCOUT, None]
    body = b"".join(Responses.added(message(at, agents[at]), at) for at in range(3))
    body += b"".join(piece(at, text) for at, text in pieces)
    events = run("openai_responses", [Responses.CREATED + body + END])
    parts = Turn.from_events(events).parts
    told = {p.agent: p.text for p in parts if isinstance(p, Text)}
    names = ["main", "main/scout", None]
    assert told == {
        names[at]: text
        for at in range(3)
        if (text := "".join(t for where, t in pieces if where == at))
    }


# --- turns, histories and the way back --------------------------------------------------------------


def test_a_turn_keeps_voices_apart_and_survives_json() -> None:
    turn = Turn.from_events(take())
    assert [(p.text, p.agent) for p in turn.parts if isinstance(p, Text | Reasoning)] == [
        ("Let me ask.", "main"),
        ("High water at 04:12.", "main/scout"),
        ("Three days are wanted.", "main/scout"),
    ]
    talk = Conversation().add(turn)
    assert Conversation.from_json(talk.to_json()) == talk


def test_two_agents_in_one_part_are_two_parts_of_a_turn() -> None:
    events = [TextDelta("a", agent="x"), TextDelta("b", agent="y"), TextDelta("c", agent="x")]
    parts = Turn.from_events(events).parts
    assert [(p.text, p.agent) for p in parts if isinstance(p, Text)] == [("ac", "x"), ("b", "y")]


def test_items_go_back_with_their_agents() -> None:
    talk = Conversation().user("Go").add(Turn.from_events(take())).user("On")
    items = provider("openai_responses").request(talk, orphans="error")["input"]
    told = [(item["type"], item["agent"]["agent_name"]) for item in items if "agent" in item]
    assert told == [
        ("message", "main"), ("message", "main/scout"), ("reasoning", "main/scout"),
        ("function_call", "main/scout"), ("function_call", "main"),
    ]  # fmt: skip


def test_other_wires_hear_that_somebody_else_speaks() -> None:
    talk = Conversation().user("Go").add(Turn.from_events(take())).user("On")
    message = provider("openai_chat").request(talk)["messages"][1]
    assert message["content"] == "Let me ask.\n\nHigh water at 04:12."


def test_several_voices_are_served_as_several() -> None:
    again = run("openai_responses", list(provider("openai_responses").serve(take())))
    for kind in (TextDelta, ReasoningDelta):
        before = {(e.text, e.agent) for e in take() if isinstance(e, kind) and e.text}
        assert {(e.text, e.agent) for e in again if isinstance(e, kind) and e.text} == before
    assert {(e.name, e.agent) for e in again if isinstance(e, ToolCall)} == {
        ("get_tides", "main/scout"), ("get_weather", "main"),
    }  # fmt: skip
