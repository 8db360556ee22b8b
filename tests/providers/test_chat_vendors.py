"""What single vendors add to Chat Completions: their own tools, sources and errors at HTTP 200."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import (
    Conversation,
    Normalizer,
    ToolLoop,
    ToolResult,
    from_messages,
    provider,
    repair,
)
from streamnorm.events import Citation, Failed, Finish, ReasoningDelta, TextDelta, ToolCall
from tests.conftest import RECORDINGS, load, run, sse

CHAT = RECORDINGS / "openai_chat"
ASKED: dict[str, Any] = {"index": 0, "id": "call_4", "type": "builtin_function"}


def heard(take: str) -> list[Any]:
    return run("openai_chat", [load(CHAT / f"{take}.sse")[1]])


def chunk(finish: str | None = None, /, beside: Any = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice], **(beside or {})}


def told(*payloads: dict[str, Any]) -> list[Any]:
    return run("openai_chat", [*map(sse, payloads), b"data: [DONE]\n\n"])


# --- completions that are no chat -----------------------------------------------------------------


def test_the_text_of_a_completion_is_text_and_noted():
    said = [("Hel", None), ("lo", None), ("", "stop")]
    pipe = Normalizer("openai_chat")
    choices = [{"index": 0, "text": text, "finish_reason": reason} for text, reason in said]
    body = b"".join(sse({"choices": [choice]}) for choice in choices)
    events = pipe.feed(body + b"data: [DONE]\n\n")
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hel", "lo"]
    assert events[-1] == Finish("stop", "stop")
    assert pipe.notes["wire.shape_odd"] == 2


def test_text_beside_a_delta_is_not_told_twice():
    delta = {"index": 0, "text": "Hi.", "delta": {"content": "Hi."}}
    events = told({"choices": [delta]}, chunk("stop"))
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hi."]


# --- a function of the provider's own (Kimi) ------------------------------------------------------


def test_a_function_of_the_providers_own_goes_back_with_its_arguments_as_its_result():
    events = heard("builtin_web_search")
    said = '{"search_result": {"search_id": "c7e5"}, "usage": {"total_tokens": 9120}}'
    assert events[-1] == Finish("pause", "tool_calls")
    body = provider("openai_chat").request(Conversation().user("When?").assistant(events))
    assert body["messages"][1:] == [
        {
            "role": "assistant", "content": None,
            "tool_calls": [
                {"id": "call_4", "type": "builtin_function",
                 "function": {"name": "$web_search", "arguments": said}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_4", "name": "$web_search", "content": said},
    ]  # fmt: skip


def test_such_a_body_is_read_back_to_the_same_body_and_needs_no_repair():
    asked = Conversation().user("When?").assistant(heard("builtin_web_search"))
    body = provider("openai_chat").request(asked)
    again = from_messages("openai_chat", body["messages"]).conversation
    assert provider("openai_chat").request(again)["messages"] == body["messages"]
    assert repair("openai_chat", body).body == body


def test_beside_a_function_of_the_client_each_call_has_its_own_result():
    events = heard("builtin_beside_function")
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(c.name, c.runs_on) for c in calls] == [
        ("$web_search", "provider"), ("get_tides", "client"),
    ]  # fmt: skip
    talk = Conversation().user("When?").assistant(events)
    talk = talk.results([ToolResult.for_call(calls[1], "low")])
    messages = provider("openai_chat").request(talk)["messages"]
    assert [m.get("tool_call_id") for m in messages] == [None, None, "call_4", calls[1].id]
    assert messages[2]["content"] == '{"search_id": "c7e5"}'


async def test_a_loop_runs_no_tool_for_it_and_asks_again():
    sent: list[Any] = []

    def model(outgoing: Any, tools: Any) -> list[Any]:
        sent.append(provider("openai_chat").request(outgoing, tools)["messages"])
        last = told(chunk(content="At 07:40."), chunk("stop"))
        return heard("builtin_web_search") if len(sent) == 1 else last

    run = ToolLoop(model).run("When?")
    events = [event async for event in run]
    assert (run.outcome, run.text) == ("finished", "At 07:40.")
    assert [message["role"] for message in sent[1]] == ["user", "assistant", "tool"]
    assert not [event for event in events if event.kind == "tool_started"]


def test_other_wires_hear_nothing_of_it():
    talk = Conversation().user("When?").assistant(heard("builtin_web_search")).user("And then?")
    body = provider("anthropic").request(talk, max_tokens=9)
    assert "web_search" not in str(body)


def test_a_broken_one_has_no_result():
    function = {"name": "$web_search", "arguments": '{"search_id": "c7'}
    events = told(chunk(tool_calls=[{**ASKED, "function": function}]), chunk("tool_calls"))
    assert [e.kind for e in events] == [
        "stream_start", "tool_call_start", "tool_call_delta", "broken_tool_call", "finish",
    ]  # fmt: skip


# --- errors at HTTP 200 (MiniMax) -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "retryable"),
    [(1027, False), (1002, True), (1004, False), (1013, True), (2045, True), (2056, False)],
)
def test_a_status_other_than_zero_is_a_failure_with_its_code(code: int, retryable: bool):
    status = {"status_code": code, "status_msg": "no"}
    assert told({"choices": None, "base_resp": status}) == [
        Failed("provider_error", "no", retryable, str(code))
    ]


def test_a_status_of_zero_is_none_and_the_answer_said_again_is_told_once():
    assert "".join(e.text for e in heard("base_resp") if e.kind == "text_delta") == "Twelve boats."


def test_a_call_that_only_the_answer_said_again_has_is_told():
    call = {"id": "c", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    whole = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    last = {"index": 0, "message": whole, "finish_reason": "tool_calls"}
    events = told(chunk(content="Hi"), {"object": "chat.completion", "choices": [last]})
    assert [(e.id, e.arguments) for e in events if isinstance(e, ToolCall)] == [("c", {})]
    assert [e.text for e in events if e.kind == "text_delta"] == ["Hi"]


# --- sources (GLM, Perplexity) --------------------------------------------------------------------


@pytest.mark.parametrize(
    "field", ["citations", "search_results", "web_search", "images", "related_questions"]
)
def test_sources_beside_the_choices_are_told_once_however_often_they_come(field: str):
    found = {field: [{"title": "Ferries"}]}
    events = told(chunk(beside=found, content="Hi"), chunk("stop", beside=found))
    assert [e for e in events if isinstance(e, Citation)] == [Citation(0, found)]


def test_a_step_of_reasoning_that_is_said_again_is_told_once():
    step = {"thought": "Where?", "web_search": {"search_keywords": ["a"], "search_results": [1]}}
    events = told(chunk(reasoning_steps=[step]), chunk(reasoning_steps=[step, {"thought": "So."}]))
    assert [e.text for e in events if isinstance(e, ReasoningDelta)] == ["Where?", "So."]
    assert [e.output for e in events if e.kind == "tool_result"] == [{"search_results": [1]}]


@pytest.mark.parametrize(("step", "asked", "came_out"), [
    ({"fetch_url_content": {"contents": [{"url": "u"}]}}, {}, {"contents": [{"url": "u"}]}),
    ({"execute_python": {"code": "1", "result": "1"}}, {"code": "1"}, {"result": "1"}),
    ({"agent_progress": {"action": "click", "url": "u", "screenshot": "s"}},
     {"action": "click", "url": "u"}, {"screenshot": "s"}),
    ({"browser_agent": {"url": "u", "result": "Done."}}, {"url": "u"}, {"result": "Done."}),
])  # fmt: skip
def test_what_a_step_asked_for_is_its_arguments_and_the_rest_came_out(
    step: dict[str, Any], asked: dict[str, Any], came_out: dict[str, Any]
):
    events = told(chunk(reasoning_steps=[step]), chunk("stop"))
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [asked]
    assert [e.output for e in events if e.kind == "tool_result"] == [came_out]


def test_a_step_that_nobody_knows_is_a_call_with_all_that_it_says_as_its_result():
    events = told(chunk(reasoning_steps=[{"horoscope": {"sign": "fish"}}]), chunk("stop"))
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (call.name, call.family, call.runs_on) == ("horoscope", "server-tool", "provider")
    assert [e.output for e in events if e.kind == "tool_result"] == [{"sign": "fish"}]
