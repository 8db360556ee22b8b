"""Answers that are no streams, on one wire: no call reaches a client that a stream would not have let through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm.testing import Server
from streamnorm.testing.http import Answer
from tests.gateway.kit import (
    TALKS,
    Chat,
    Generate,
    Heard,
    Messages,
    Responses,
    Running,
    Talk,
    between,
    post,
)

over_wires = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
WHOLE, CUT = '{"city":"Oslo"}', '{"city":"Os'


def message(*calls: tuple[str, str], end: str | None = "tool_use") -> dict[str, Any]:
    blocks = [
        {"type": "tool_use", "id": id, "name": "get_weather", "input": _object(text)}
        for id, text in calls
    ]
    usage = {"input_tokens": 3, "output_tokens": 4}
    content = [{"type": "text", "text": "Hm."}, *blocks]
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "odd": 1.5,
            "content": content, "stop_reason": end, "usage": usage}  # fmt: skip


def _object(text: str) -> Any:
    """Where arguments are an object, a cut leaves what was there."""
    return json.loads(text) if text == WHOLE else {}


def response(*calls: tuple[str, str], end: str | None = "completed") -> dict[str, Any]:
    items = [
        {"type": "function_call", "id": f"fc_{number}", "call_id": id, "name": "get_weather",
         "arguments": text, "status": "completed" if text == WHOLE else "incomplete"}
        for number, (id, text) in enumerate(calls)
    ]  # fmt: skip
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    why = {"reason": "max_output_tokens"} if end == "incomplete" else None
    return {"id": "resp_1", "object": "response", "model": "m", "status": end, "odd": 1.5,
            "incomplete_details": why, "output": items, "usage": usage}  # fmt: skip


def completion(*calls: tuple[str, str], end: str | None = "tool_calls") -> dict[str, Any]:
    made = [
        {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": text}}
        for id, text in calls
    ]
    said = {"role": "assistant", "content": None, "tool_calls": made}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    choice = {"index": 0, "message": said, "finish_reason": end}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "odd": 1.5,
            "choices": [choice], "usage": usage}  # fmt: skip


def generated(*calls: tuple[str, str], end: str | None = "STOP") -> dict[str, Any]:
    parts = [
        {
            "functionCall": {
                **({"id": id} if id else {}),
                "name": "get_weather",
                "args": _object(text),
            }
        }
        for id, text in calls
    ]
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    ended = {} if end is None else {"finishReason": end}
    said = {"content": {"role": "model", "parts": [{"text": "Hm."}, *parts]}, **ended, "index": 0}
    return {"candidates": [said], "usageMetadata": usage, "modelVersion": "m", "odd": 1.5}


MAKE = {Messages: message, Responses: response, Chat: completion, Generate: generated}
LENGTH = {
    Messages: "max_tokens", Responses: "incomplete", Chat: "length", Generate: "MAX_TOKENS",
}  # fmt: skip
ODD = {Messages: "network_error", Responses: "weird", Chat: "network_error", Generate: "WEIRD"}


def asked(talk: type[Talk], answer: dict[str, Any], **more: Any) -> tuple[Heard, Running]:
    body = json.dumps(answer).encode()
    upstream = Server(lambda number: Answer(200, "application/json", [body]))
    with between(talk.wire, upstream) as (running, _):
        one = talk(running.url, stream=False)
        return post(running.url, one.path, one.body(**more)), running


@over_wires
def test_one_that_ended_well_is_handed_on_to_the_letter_and_its_line_says_what_was_in_it(talk):
    answer = MAKE[talk](("call_1", WHOLE))
    heard, running = asked(talk, answer)
    assert heard.text == json.dumps(answer)
    row = running.row()
    assert (row["state"], row["finish"]) == ("done", "tool_calls")
    assert [call["id"] for call in row["calls"]] == ["call_1"]
    assert row["tokens"] == {"input": 3, "output": 4}


@over_wires
@pytest.mark.parametrize("text", [WHOLE, CUT], ids=["whole", "cut"])
@pytest.mark.parametrize("ends", [LENGTH, ODD, dict.fromkeys(TALKS)], ids=["length", "odd", "none"])
def test_a_call_of_an_answer_that_did_not_end_normally_is_an_error(talk, text: str, ends: Any):
    heard, running = asked(talk, MAKE[talk](("call_1", text), end=ends[talk]))
    assert heard.status >= 400
    assert heard.error is not None
    assert "get_weather" not in heard.text or "is not whole" in heard.text
    assert running.row()["state"] == "refused"


@pytest.mark.parametrize("talk", [Responses, Chat])
def test_a_call_that_is_not_whole_is_an_error_though_the_answer_ended_normally(talk):
    heard, _ = asked(talk, MAKE[talk](("call_1", WHOLE), ("call_2", CUT)))
    assert heard.status == 502
    assert heard.error is not None


@over_wires
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_in_an_answer_that_says_a_key_twice_is_an_error(talk, stream: bool):
    """Of two values each client would take its own."""
    said = json.dumps(MAKE[talk](("call_1", WHOLE)))
    for written in ('"city": "Oslo"', '"city\\": \\"Oslo\\"', '"city\\":\\"Oslo\\"', '"odd": 1.5'):
        said = said.replace(written, f"{written}, {written.replace('Oslo', 'Rome')}")
    upstream = Server(lambda number: Answer(200, "application/json", [said.encode()]))
    with between(talk.wire, upstream) as (running, _):
        one = talk(running.url, stream=stream)
        heard = post(running.url, one.path, one.body())
    assert heard.status == 502
    assert heard.error is not None


@over_wires
def test_without_a_call_a_key_that_stands_twice_is_the_client_s_to_judge(talk):
    said = json.dumps(MAKE[talk]()).replace('"odd": 1.5', '"odd": 1.5, "odd": 2')
    upstream = Server(lambda number: Answer(200, "application/json", [said.encode()]))
    with between(talk.wire, upstream) as (running, _):
        one = talk(running.url, stream=False)
        assert post(running.url, one.path, one.body()).text == said


@over_wires
def test_what_would_end_so_again_is_not_asked_again_by_an_sdk(talk):
    """SDKs ask again after 5xx."""
    heard, _ = asked(talk, MAKE[talk](("call_1", WHOLE), end=LENGTH[talk]))
    assert heard.status == 400


@over_wires
@pytest.mark.parametrize("ends", [LENGTH, ODD, dict.fromkeys(TALKS)], ids=["length", "odd", "none"])
def test_without_a_call_any_end_is_the_client_s_to_judge(talk, ends: Any):
    answer = MAKE[talk](end=ends[talk])
    heard, running = asked(talk, answer)
    assert heard.text == json.dumps(answer)
    assert running.row()["state"] == "done"


@over_wires
def test_calls_under_one_id_or_none_each_get_one_of_their_own(talk):
    none = "call_1" if talk is Generate else ""  # which needs no id
    heard, running = asked(talk, MAKE[talk](("call_1", WHOLE), ("call_1", WHOLE), (none, WHOLE)))
    ids = set(_ids(talk, heard.payloads[0]))
    assert len(ids) == 3
    assert "" not in ids
    assert running.row()["state"] == "done"


@over_wires
def test_an_id_of_an_earlier_turn_is_not_told_again(talk):
    heard, _ = asked(talk, MAKE[talk](("call_1", WHOLE)), metadata={"seen": "call_1"})
    (id,) = _ids(talk, heard.payloads[0])
    assert id != "call_1"


def _ids(talk: type[Talk], answer: dict[str, Any]) -> list[str]:
    if talk is Messages:
        return [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
    if talk is Responses:
        return [item["call_id"] for item in answer["output"]]
    if talk is Generate:
        parts = answer["candidates"][0]["content"]["parts"]
        return [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    return [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]


@over_wires
@pytest.mark.parametrize("odd", [
    {"choices": 7, "content": 7, "output": 7}, {"choices": [7], "content": [7], "output": [7]},
    {"choices": [{"message": 7}], "content": [{}], "output": [{}]}, {"error": {"message": "no"}},
    {"choices": [{"message": {"tool_calls": [7]}}], "content": [{"type": 7}], "status": 7},
], ids=str)  # fmt: skip
def test_what_is_no_answer_at_all_is_handed_on(talk, odd: dict[str, Any]):
    heard, _ = asked(talk, odd)
    assert heard.text == json.dumps(odd)


def test_an_error_beside_a_call_is_told_and_not_the_call():
    heard, running = asked(Chat, {**completion(("call_1", WHOLE)), "error": {"message": "no more"}})
    assert heard.status >= 400
    assert heard.error is not None
    assert heard.error["message"] == "no more"
    assert running.row()["state"] == "refused"


@pytest.mark.parametrize("made", [
    {"type": "function", "function": {"name": "get_weather", "arguments": ""}},
    {"type": "function", "function": {"name": "get_weather"}},
    {"type": "custom", "custom": {"name": "patch", "input": "+ one"}},
], ids=["no text", "no arguments", "a text"])  # fmt: skip
def test_a_call_that_a_stream_would_have_told_as_whole_is_handed_on(made: dict[str, Any]):
    answer = completion()
    answer["choices"][0]["message"]["tool_calls"] = [{"id": "call_1", **made}]
    heard, running = asked(Chat, answer)
    assert heard.text == json.dumps(answer)
    assert [call["id"] for call in running.row()["calls"]] == ["call_1"]


# --- where a stream was asked for -----------------------------------------------------------------


def streamed(talk: type[Talk], answer: dict[str, Any], **options: Any) -> tuple[Heard, Server]:
    body = json.dumps(answer).encode()
    upstream = Server(lambda number: Answer(200, "application/json", [body]))
    with between(talk.wire, upstream, **options) as (running, server):
        return post(running.url, talk.path, talk("").body()), server


@over_wires
def test_a_client_that_asked_for_a_stream_hears_one_though_its_upstream_gave_none(talk):
    answer = MAKE[talk](("call_1", WHOLE))
    upstream = Server(lambda number: Answer(200, "application/json", [json.dumps(answer).encode()]))
    with between(talk.wire, upstream) as (running, _):
        said = talk(running.url).ask("Hello")
    assert [(call.name, call.arguments) for call in said.calls] == [
        ("get_weather", {"city": "Oslo"})
    ]


LIST = [generated(end=None), generated(("", WHOLE), end=None), generated()]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_payloads_in_a_list_are_told_as_the_client_asked(stream: bool):
    """So Google streams to whom does not say ``alt=sse``, and so a proxy may answer that loses it."""
    told = [json.dumps(LIST).encode()]
    upstream = Server(lambda number: Answer(200, "application/json; charset=UTF-8", told))
    with between("gemini", upstream) as (running, _):
        said = Generate(running.url, stream=stream).ask("Hello")
        again = Generate(running.url, stream=stream)
        heard = post(running.url, again.path, again.body())
    assert heard.headers["content-type"] == ("text/event-stream" if stream else "application/json")
    assert (said.text, [call.arguments for call in said.calls], said.end) == (
        "Hm.Hm.Hm.", [{"city": "Oslo"}], "STOP",
    )  # fmt: skip


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("cut", [
    json.dumps(LIST)[:-1], json.dumps(LIST[:2]), json.dumps(LIST)[: json.dumps(LIST).rindex("{")],
    json.dumps([*LIST[:2], generated(end="MAX_TOKENS")]), "[]", "[",
], ids=["bracket", "no end", "comma", "length", "empty", "nothing"])  # fmt: skip
def test_a_list_that_is_cut_is_an_error(stream: bool, cut: str):
    upstream = Server(lambda number: Answer(200, "application/json", [cut.encode()]))
    with between("gemini", upstream) as (running, _):
        talk = Generate(running.url, stream=stream)
        heard = post(running.url, talk.path, talk.body())
    assert heard.status in (400, 502)
    assert heard.error is not None
    assert running.row()["state"] == "refused"


@over_wires
@pytest.mark.parametrize("end", [LENGTH, ODD], ids=["length", "odd"])
def test_a_call_that_is_not_to_be_run_is_in_no_such_stream(talk, end: Any):
    heard, _ = streamed(talk, MAKE[talk](("call_1", WHOLE), end=end[talk]))
    assert heard.status >= 400
    assert heard.error is not None


@over_wires
def test_an_error_in_place_of_a_stream_is_told_with_its_own_words(talk):
    """SDKs read no event of it, and end as if there had been nothing to say."""
    heard, server = streamed(talk, {"type": "error", "error": {"type": "x", "message": "no more"}})
    assert (heard.status, len(server.requests)) == (502, 1)
    assert "no more" in heard.error["message"]


def test_several_answers_are_told_in_no_such_stream():
    answer = completion(("call_1", WHOLE))
    answer["choices"].append({**answer["choices"][0], "index": 1})
    heard, _ = streamed(Chat, answer)
    assert heard.status == 502
    assert "several answers" in heard.error["message"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_what_a_client_cannot_be_told_is_an_error_in_place_of_the_answer(stream: bool):
    """A tool that takes a text, called with something else; twice under one id, so that we tell it."""
    tools = [{"type": "custom", "custom": {"name": "get_weather"}}]
    answer = completion(("call_1", '{"city":7}'), ("call_1", '{"city":7}'))
    heard, _ = asked(Chat, answer, tools=tools, stream=stream)
    assert heard.status == 502
    assert "no text" in heard.error["message"]


def test_the_upstream_hears_the_id_again_that_stood_in_an_answer_without_a_stream():
    answers = [message(("call.1", WHOLE)), message(end="end_turn")]
    upstream = Server(
        lambda number: Answer(200, "application/json", [json.dumps(answers[number]).encode()])
    )
    with between("anthropic", upstream) as (running, server):
        talk = Messages(running.url)
        (call,) = talk.ask("Hello").calls
        talk.answer({call.id: "rain"})
    assert call.id != "call.1"
    _, said, results = server.requests[1].body["messages"]
    assert said["content"][1]["id"] == results["content"][0]["tool_use_id"] == "call.1"
