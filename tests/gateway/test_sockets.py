"""The WebSocket of /v1/responses: the same answers as by HTTP, only what is new in each request."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamnorm.gateway.headers import Secrets
from streamnorm.sessions import session
from streamnorm.testing import Server, call, cut, error, say, script, think, turns
from streamnorm.testing.http import Answer
from tests.conftest import calls_of, text_of
from tests.gateway.kit import (
    UPSTREAMS,
    Chat,
    Messages,
    Responses,
    Running,
    Talk,
    between,
    gateway,
    gateways,
    openai,
    post,
    telling,
)  # fmt: skip
from tests.gateway.test_service import endless

pytest.importorskip("websockets", reason="the gateway speaks WebSocket with websockets")

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

WIRE = "openai_responses"
ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}
WEATHER = script(say("Let me look."), call("get_weather", city="Oslo").with_id("call_1"))
DONE = script(say("It rains."))


class Client:
    """A bare client on a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def say(self, **more: Any) -> None:
        body = {"type": "response.create", **Responses("").body(), **more}
        del body["stream"]
        self.socket.send(json.dumps(body))

    def hear(self) -> list[dict[str, Any]]:
        """The messages of the next answer."""
        heard = [self.next()]
        while heard[-1]["type"] not in ENDS:
            heard.append(self.next())
        return heard

    def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.socket.recv(timeout=30))
        return message

    def ask(self, **more: Any) -> list[dict[str, Any]]:
        self.say(**more)
        return self.hear()


@contextmanager
def client_of(running: Running, path: str = "/v1/responses", **options: Any) -> Iterator[Client]:
    with connect(running.url.replace("http", "ws", 1) + path, **options) as opened:
        yield Client(opened)


def id_of(heard: list[dict[str, Any]]) -> str:
    id: str = heard[-1]["response"]["id"]
    return id


def items_of(heard: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [m["item"] for m in heard if m["type"] == "response.output_item.done"]


def calls_in(heard: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items_of(heard) if item["type"] == "function_call"]


def result_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": item["call_id"], "output": "rain"}]


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", UPSTREAMS)
def test_a_conversation_of_which_only_the_news_is_sent_is_asked_as_if_all_of_it_was_posted(
    wire: str,
):
    first = script(think("Where?"), *WEATHER.steps) if wire == "anthropic" else WEATHER
    with between(wire, turns(first, DONE, DONE)) as (running, upstream), client_of(
        running
    ) as client:  # fmt: skip
        heard = client.ask(input="How is Oslo?")
        (asked,) = calls_in(heard)
        assert (asked["name"], json.loads(asked["arguments"])) == ("get_weather", {"city": "Oslo"})
        last = client.ask(previous_response_id=id_of(heard), input=result_of(asked))
        assert last[-1]["response"]["output"][-1]["content"][0]["text"] == "It rains."
        talk = [{"type": "message", "role": "user", "content": "How is Oslo?"}, *items_of(heard)]
        post(running.url, Responses.path, Responses("").body(input=[*talk, *result_of(asked)]))
    news, whole = upstream.requests[1:]
    assert news.body == whole.body
    assert [row["state"] for row in running.rows] == ["done", "done", "done"]
    assert {row["client"] for row in running.rows} == {WIRE}


def test_what_the_upstream_says_on_the_same_wire_is_told_as_it_is():
    with between(WIRE, WEATHER) as (running, _), client_of(running) as client:
        heard = client.ask()
        posted = post(running.url, Responses.path, Responses("").body())
    assert [m["type"] for m in heard] == [m["type"] for m in posted.payloads]
    payloads = re.findall(r"^data: (.*)$", WEATHER.bytes(WIRE).decode(), re.M)
    assert heard == [json.loads(payload) for payload in payloads]
    assert running.rows[0]["passed"]


@pytest.mark.parametrize("wire", UPSTREAMS)
def test_a_session_reads_the_answers_one_after_the_other(wire: str):
    with between(wire, turns(WEATHER, DONE)) as (running, _), client_of(running) as client:
        streams = session(client.socket)
        client.say(input="How is Oslo?")
        first = list(next(streams))
        assert [(c.name, c.arguments) for c in calls_of(first)] == [
            ("get_weather", {"city": "Oslo"})
        ]
        client.say(input="And now?", previous_response_id=first[0].response_id)
        second = list(next(streams))
        assert (text_of(second), second[-1].kind) == ("It rains.", "finish")
        assert not streams.notes


async def test_the_openai_sdk_talks_with_it():
    with between("anthropic", turns(WEATHER, DONE)) as (running, upstream):
        async with (
            openai.AsyncOpenAI(api_key="any", base_url=f"{running.url}/v1") as sdk,
            sdk.responses.connect() as connection,
            session(connection) as streams,
        ):
            await connection.response.create(model="m", input="How is Oslo?")
            first = [event async for event in await anext(streams)]
            (asked,) = calls_of(first)
            await connection.response.create(
                model="m", previous_response_id=first[0].response_id,
                input=[{"type": "function_call_output", "call_id": asked.id, "output": "rain"}],
            )  # fmt: skip
            second = [event async for event in await anext(streams)]
    assert text_of(second) == "It rains."
    assert [m["role"] for m in upstream.requests[1].body["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


def test_fifty_clients_at_once_each_hear_their_own_answers():
    answers = [script(say(f"Answer {n}")) for n in range(50)]
    with between("openai_chat", turns(*answers)) as (running, _), ExitStack() as stack:
        clients = [stack.enter_context(client_of(running, "/responses")) for _ in range(50)]
        for client in clients:
            client.say()
        heard = [client.hear() for client in clients]
    texts = {messages[-1]["response"]["output"][0]["content"][0]["text"] for messages in heard}
    assert texts == {f"Answer {n}" for n in range(50)}
    assert len({id_of(messages) for messages in heard}) == 50


# --- what is cut ----------------------------------------------------------------------------------


def some(wire: str) -> list[int]:
    """Places between frames, a few of them."""
    ends, at = list[int](), 0
    for chunk in WEATHER.chunks(wire)[:-1]:
        at += len(chunk)
        ends.append(at)
    return sorted({*ends[:: max(1, len(ends) // 5)], *ends[-2:]})


CUTS = [
    (wire, at, abrupt)
    for wire in ("openai_responses", "openai_chat", "anthropic", "gemini")
    for at in some(wire)
    for abrupt in (False, True)
]


@pytest.mark.parametrize(("wire", "at", "abrupt"), CUTS)
def test_a_cut_is_never_a_clean_end_and_runs_nothing(wire: str, at: int, abrupt: bool):
    """Unless the wire had said its word for the end before."""
    broken = script(*WEATHER.steps, cut(at=at, abrupt=abrupt))
    with between(wire, turns(broken, DONE)) as (running, _), client_of(running) as client:
        heard = client.ask()
        if heard[-1]["type"] == "response.completed":
            assert len(calls_in(heard)) == 1
            assert b"finish" in WEATHER.bytes(wire)[:at].lower() or wire == "anthropic"
            assert b"stop_reason" in WEATHER.bytes(wire)[:at] or wire != "anthropic"
        else:
            assert calls_in(heard) == []
            assert heard[-1]["type"] in ("response.failed", "error")
        # The connection is as good as before.
        assert client.ask()[-1]["type"] == "response.completed"


def test_a_failure_inside_of_a_stream_has_the_form_that_it_has_on_a_socket():
    with between(WIRE, script(say("Well."), error("overloaded"))) as (running, _), client_of(
        running
    ) as client:  # fmt: skip
        last = client.ask()[-1]
    number = last.pop("sequence_number")
    assert isinstance(number, int)
    assert last == {
        "type": "error", "status": 500, "error": {
            "type": "server_error", "code": "server_error", "message": "The model is overloaded.",
            "param": None},
    }  # fmt: skip


def test_an_answer_that_failed_is_not_gone_on_from():
    broken = script(*WEATHER.steps, cut(inside="call"))
    with between("openai_chat", turns(broken, DONE)) as (running, upstream), client_of(
        running
    ) as client:  # fmt: skip
        heard = client.ask()
        assert heard[-1]["type"] == "response.failed"
        again = client.ask(previous_response_id=heard[-1]["response"]["id"])
        assert again[-1]["error"]["code"] == "previous_response_not_found"
        assert len(upstream.requests) == 1


def test_what_an_upstream_says_behind_the_end_is_no_part_of_the_next_answer():
    stray = {
        "id": "fc_9",
        "type": "function_call",
        "call_id": "call_9",
        "name": "rm",
        "arguments": "{}",
    }
    behind = [
        {
            "type": "response.output_item.done",
            "output_index": 9,
            "item": stray,
            "sequence_number": 99,
        },
        "[DONE]",
    ]
    more = b"".join(
        b"data: %b\n\n" % (one if isinstance(one, str) else json.dumps(one)).encode()
        for one in behind
    )
    with between(WIRE, telling(WIRE, [DONE.bytes(WIRE) + more], [DONE.bytes(WIRE)])) as (
        running, _
    ), client_of(running) as client:  # fmt: skip
        assert client.ask()[-1]["type"] == "response.completed"
        second = client.ask()
    assert second[0]["type"] == "response.created"
    assert calls_in(second) == []


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["openai_responses", "openai_chat"])
def test_a_refusal_is_an_error_and_the_connection_stays_open(wire: str):
    with between(wire, turns(script(error("rate_limit", status=429)), DONE)) as (
        running, _
    ), client_of(running) as client:  # fmt: skip
        (refused,) = client.ask()
        assert (refused["type"], refused["status"]) == ("error", 429)
        assert refused["error"]["message"] == "Too many requests."
        assert client.ask()[-1]["type"] == "response.completed"
    assert [(row["state"], row["status"]) for row in running.rows] == [
        ("refused", 429),
        ("done", 200),
    ]


def test_a_refusal_says_how_long_to_wait():
    with between("ollama", DONE, exchanges=1) as (running, upstream), client_of(running) as client:
        app = running.app.state.services
        busy = app.flow.begin(WIRE, Secrets(()))
        (refused,) = client.ask()
        app.flow.end(busy)
        assert client.ask()[-1]["type"] == "response.completed"
    assert (refused["status"], refused["error"]["headers"]) == (503, {"retry-after": "1"})
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>Bad gateway</html>", "HTTP 502 Bad Gateway: <html>Bad gateway</html>"),
        (b"", "HTTP 502 Bad Gateway, without a body"),
        (b'{"detail":"No."}', "No."),
        (b'{"error":"No."}', "No."),
    ],
)
def test_a_refusal_in_any_other_form_is_told_in_the_wire_s(body: bytes, message: str):
    with between(WIRE, Server(lambda _: Answer(502, "text/html", [body]))) as (
        running, _
    ), client_of(running) as client:  # fmt: skip
        (refused,) = client.ask()
    assert (refused["type"], refused["status"]) == ("error", 502)
    assert refused["error"]["type"] == "server_error"
    assert refused["error"]["message"] == message


def test_an_upstream_that_answers_at_once_is_told_in_messages():
    whole = b'{"id":"resp_1","object":"response","status":"completed","output":[]}'
    with between(WIRE, Server(lambda _: Answer(200, "application/json", [whole]))) as (
        running, _
    ), client_of(running) as client:  # fmt: skip
        told = client.ask()
    kinds = [message["type"] for message in told]
    assert kinds == ["response.created", "response.in_progress", "response.completed"]


def test_an_upstream_that_gives_no_stream_is_no_answer():
    chunks = WEATHER.chunks(WIRE)
    with between(WIRE, Server(lambda _: Answer(200, "text/plain", chunks))) as (
        running, _
    ), client_of(running) as client:  # fmt: skip
        (refused,) = client.ask()
    assert (refused["type"], refused["status"]) == ("error", 502)
    assert "no stream" in refused["error"]["message"]


def test_a_last_frame_without_its_end_is_told():
    said = WEATHER.bytes(WIRE).rstrip(b"\n")
    with between(WIRE, telling(WIRE, [said])) as (running, _), client_of(running) as client:
        assert client.ask()[-1]["type"] == "response.completed"


# --- messages that are no request -----------------------------------------------------------------

ODD = [
    ("{", 400, "no request"),
    ("[]", 400, "no request"),
    ("", 400, "no request"),
    ('{"model":"m"}', 400, "no request"),
    ('{"type":"response.create","input":7}', 400, "no request"),
    ('{"type":"response.create","stream_id":7}', 400, "no request"),
    ("[" * 100_000, 400, "no request"),
    ('{"type":"response.create"}', 400, "names no model"),
    ('{"type":"session.update"}', 400, "Unknown message: 'session.update'"),
    ('{"type":"response.create","model":"m","stream_id":"a b"}', 400, "'stream_id' field must be"),
    ('{"type":"response.create","model":"m","stream_id":""}', 400, "'stream_id' field must be"),
    ('{"type":"response.create","model":"m","background":true}', 400, "Background"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "status", "words"), ODD, ids=range(len(ODD)))
def test_what_is_no_request_is_refused_and_the_connection_stays_open(
    message: str, status: int, words: str
):
    with between("ollama", DONE) as (running, upstream), client_of(running) as client:
        client.socket.send(message)
        refused = client.next()
        assert (refused["type"], refused["status"]) == ("error", status)
        assert refused["error"]["type"] == "invalid_request_error"
        assert words in refused["error"]["message"]
        assert client.ask()[-1]["type"] == "response.completed"
        assert len(upstream.requests) == 1


def test_a_request_in_bytes_is_a_request():
    with between("ollama", DONE) as (running, _), client_of(running) as client:
        client.socket.send(json.dumps({"type": "response.create", **Responses("").body()}).encode())
        assert client.hear()[-1]["type"] == "response.completed"


def test_a_message_that_is_too_long_is_refused():
    with between("ollama", DONE, body=2000) as (running, upstream), client_of(running) as client:
        (refused,) = client.ask(input="x" * 2000)
        assert refused["status"] == 413
        assert client.ask()[-1]["type"] == "response.completed"
        assert len(upstream.requests) == 1


def test_nobody_can_be_steered_and_what_was_said_comes_back():
    with between("ollama", DONE) as (running, _), client_of(running) as client:
        client.socket.send(
            '{"type":"response.steer","previous_response_id":"resp_1","input":"Stop."}'
        )
        steered = client.next()
        client.socket.send('{"type":"response.inject","response_id":"resp_1","input":[]}')
        injected = client.next()
        client.socket.send('{"type":"response.processed","response_id":"resp_1"}')  # no reply
        assert client.ask()[-1]["type"] == "response.completed"
    assert steered["type"] == "response.steer.failed"
    assert steered["error"]["code"] == "steering_not_supported"
    assert steered["steer"] == {"input": "Stop.", "previous_response_id": "resp_1"}
    assert injected["type"] == "response.inject.failed"
    assert (injected["input"], injected["response_id"]) == ([], "resp_1")


def test_a_mistake_in_the_midst_of_a_message_does_not_end_the_answer_that_is_told():
    """Its error comes behind that answer, which is whole."""
    with between("ollama", DONE) as (running, _), client_of(running) as client:
        client.say()
        client.socket.send("{")
        assert client.hear()[-1]["type"] == "response.completed"
        assert client.next()["status"] == 400


# --- what is remembered ---------------------------------------------------------------------------


def test_an_answer_that_is_not_known_is_told_so_that_all_is_sent_again():
    with between("anthropic", DONE) as (running, upstream), client_of(running) as client:
        (refused,) = client.ask(previous_response_id="resp_1")
        assert refused == {
            "type": "error", "status": 400, "error": {
                "type": "invalid_request_error", "code": "previous_response_not_found",
                "message": "Previous response with id 'resp_1' not found.", "param": None},
        }  # fmt: skip
        assert client.ask(previous_response_id=None)[-1]["type"] == "response.completed"
        assert len(upstream.requests) == 1
    assert [row["state"] for row in running.rows] == ["refused", "done"]


def test_one_that_its_own_provider_keeps_is_asked_for_there():
    with between(WIRE, DONE) as (running, upstream), client_of(running) as client:
        assert client.ask(previous_response_id="resp_1", store=True)[-1]["type"] in ENDS
        (refused,) = client.ask(previous_response_id="resp_1", store=False)
        assert refused["error"]["code"] == "previous_response_not_found"
    (asked,) = upstream.requests
    assert asked.body["previous_response_id"] == "resp_1"


def test_no_client_goes_on_from_what_another_heard():
    with between("ollama", DONE) as (running, upstream), client_of(running) as client:
        heard = client.ask(input="A secret.")
        with client_of(running) as other:
            (refused,) = other.ask(previous_response_id=id_of(heard))
            assert refused["error"]["code"] == "previous_response_not_found"
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("only", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_a_request_that_only_prepares_asks_nobody_and_can_be_gone_on_from(only: dict[str, Any]):
    with between("openai_chat", DONE) as (running, upstream), client_of(running) as client:
        ready = client.ask(input="Hello.", **only)
        assert [m["type"] for m in ready] == [
            "response.created", "response.in_progress", "response.completed",
        ]  # fmt: skip
        assert ready[-1]["response"]["output"] == []
        assert upstream.requests == []
        assert client.ask(previous_response_id=id_of(ready), input=[])[-1]["type"] in ENDS
    (asked,) = upstream.requests
    assert asked.body["messages"] == [{"role": "user", "content": "Hello."}]


def test_a_conversation_forks_where_an_answer_is_gone_on_from_twice():
    with between("openai_chat", DONE) as (running, upstream), client_of(running) as client:
        first = id_of(client.ask(input="One."))
        for text in ("Two.", "Three."):
            client.ask(previous_response_id=first, input=text)
    users = [
        [m["content"] for m in asked.body["messages"] if m["role"] == "user"]
        for asked in upstream.requests
    ]
    assert users == [["One."], ["One.", "Two."], ["One.", "Three."]]


def test_what_is_remembered_is_bounded_and_the_latest_is_known():
    with between("ollama", DONE, body=3000) as (running, _), client_of(running) as client:
        old = id_of(client.ask(input="x" * 1500))
        new = id_of(client.ask(input="y" * 1500))
        (refused,) = client.ask(previous_response_id=old, input="And?")
        assert refused["error"]["code"] == "previous_response_not_found"
        newest = id_of(client.ask(previous_response_id=new, input="And?"))
        (refused,) = client.ask(previous_response_id=newest, input="z" * 1500)
        assert refused["status"] == 413  # as if all of it was posted


def test_ids_that_an_upstream_says_again_are_new_ones_for_the_client():
    """The second call of that id is another one, in a turn of which only the news was sent."""
    with between("openai_chat", turns(WEATHER, WEATHER, DONE)) as (running, upstream), client_of(
        running
    ) as client:  # fmt: skip
        first = client.ask(input="How is Oslo?")
        (one,) = calls_in(first)
        second = client.ask(previous_response_id=id_of(first), input=result_of(one))
        (two,) = calls_in(second)
        client.ask(previous_response_id=id_of(second), input=result_of(two))
    assert one["call_id"] != two["call_id"]
    said = [
        m["tool_calls"][0]["id"] for m in upstream.requests[2].body["messages"] if "tool_calls" in m
    ]
    results = [
        m["tool_call_id"] for m in upstream.requests[2].body["messages"] if m["role"] == "tool"
    ]
    assert said == results
    assert len(said) == 2


def test_answers_of_one_id_are_told_apart_by_which_came_last():
    with between(WIRE, telling(WIRE, *[[DONE.bytes(WIRE)]] * 3)) as (running, upstream), client_of(
        running
    ) as client:  # fmt: skip
        one, two = client.ask(input="One."), client.ask(input="Two.")
        assert id_of(one) == id_of(two)
        client.ask(previous_response_id=id_of(two), input="Three.")
    texts = [
        item["content"] for item in upstream.requests[2].body["input"] if item["role"] == "user"
    ]
    assert texts == ["Two.", "Three."]


THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": []}
SEALED = {**THOUGHT, "encrypted_content": "abc"}


@pytest.mark.parametrize(
    ("item", "store", "comes_back"),
    [(THOUGHT, False, False), (THOUGHT, True, True), (SEALED, False, True)],
)
def test_a_thought_goes_back_if_its_provider_can_read_it(
    item: dict[str, Any], store: bool, comes_back: bool
):
    response = {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [],
    }
    payloads = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    numbered = [{**payload, "sequence_number": n} for n, payload in enumerate(payloads)]
    said = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in numbered)
    with between(WIRE, telling(WIRE, [said], [DONE.bytes(WIRE)])) as (running, upstream), client_of(
        running
    ) as client:  # fmt: skip
        client.ask(input="Think.", store=store)
        client.ask(input="Go on.", store=store, previous_response_id="resp_1")
    assert (item in upstream.requests[1].body["input"]) is comes_back


# --- lanes ----------------------------------------------------------------------------------------


def test_requests_of_one_lane_are_answered_one_after_the_other():
    with between("openai_chat", turns(WEATHER, DONE)) as (running, _), client_of(running) as client:
        client.say(input="One.")
        client.say(input="Two.")
        first, second = client.hear(), client.hear()
    assert len(calls_in(first)) == 1
    assert second[-1]["response"]["output"][0]["content"][0]["text"] == "It rains."


def test_lanes_are_answered_side_by_side_and_each_message_names_its_own():
    both = threading.Event()

    def answer(number: int) -> Answer:
        if number == 1:
            both.set()
        assert both.wait(30), "the second is asked only when the first has ended"
        return DONE.answer("openai_chat")

    with between("openai_chat", Server(answer)) as (running, _), client_of(running) as client:
        client.say(stream_id="a", input="One.")
        client.say(stream_id="b", input="Two.")
        heard: list[dict[str, Any]] = []
        while sum(message["type"] in ENDS for message in heard) < 2:
            heard.append(client.next())
        fork = next(m for m in heard if m["type"] == "response.completed" and m["stream_id"] == "a")
        client.say(stream_id="c", input="Three.", previous_response_id=fork["response"]["id"])
        last = client.hear()
    assert {m["stream_id"] for m in heard} == {"a", "b"}
    assert {m["stream_id"] for m in last} == {"c"}
    assert last[-1]["type"] == "response.completed"


def test_an_error_names_its_lane():
    with between(WIRE, turns(script(error("rate_limit", status=429)), DONE)) as (
        running, _
    ), client_of(running) as client:  # fmt: skip
        (refused,) = client.ask(stream_id="main")
        assert (refused["status"], refused["stream_id"]) == (429, "main")
        (unknown,) = client.ask(stream_id="main", previous_response_id="resp_x")
        assert unknown["stream_id"] == "main"


def test_a_connection_has_so_many_lanes_and_no_more():
    with between("ollama", DONE) as (running, _), client_of(running) as client:
        for number in range(32):
            client.ask(stream_id=f"lane_{number}", generate=False)
        (refused,) = client.ask(stream_id="lane_32")
        assert refused["error"]["code"] == "websocket_stream_limit_reached"
        assert client.ask(stream_id="lane_31")[-1]["type"] == "response.completed"
        assert client.ask()[-1]["type"] == "response.completed"


def flooded(client: Client) -> ConnectionClosed:
    """How the connection ends for one that asks and asks."""
    try:
        for _ in range(100):
            client.say()
        while True:
            client.next()
    except ConnectionClosed as closed:
        return closed


def test_a_client_that_never_waits_for_an_answer_is_left():
    with endless("openai_chat") as upstream, gateway(f"openai_chat={upstream.url}") as running:
        with client_of(running) as client:
            client.say()
            assert upstream.asked.wait(30)
            closed = flooded(client)
        assert closed.rcvd is not None
        assert closed.rcvd.code == 1008
        assert upstream.left.wait(30)


# --- clients that leave ---------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["openai_responses", "openai_chat", "ollama"])
@pytest.mark.parametrize("politely", [True, False], ids=["closed", "dropped"])
def test_a_client_that_leaves_stops_the_upstream(wire: str, politely: bool):
    with endless(wire) as upstream, gateway(f"{wire}={upstream.url}") as running:
        with client_of(running) as client:
            client.say()
            assert upstream.asked.wait(30)
            client.next()
            if not politely:
                client.socket.socket.close()
        assert upstream.left.wait(30), "the upstream is still being listened to"


def test_a_mistake_of_the_gateway_is_no_clean_end():
    def tell(row: dict[str, Any]) -> None:
        raise ZeroDivisionError

    with between("ollama", DONE, tell=tell) as (running, _), client_of(running) as client:
        client.ask()
        with pytest.raises(ConnectionClosed) as closed:
            client.next()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1011


# --- who may open one -----------------------------------------------------------------------------


def refused_with(running: Running, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as refused, client_of(running, **options):
        pass
    return refused.value.response.status_code


def test_a_foreign_page_or_name_opens_none():
    with between("ollama", DONE, origins=["https://mine.example"]) as (running, upstream):
        assert refused_with(running, origin="https://evil.example") == 403
        assert refused_with(running, origin="null") == 403
        address = httpx.URL(running.url)
        with (
            socket.create_connection((address.host, address.port)) as here,
            pytest.raises(InvalidStatus) as refused,
            connect(f"ws://evil.example{address.path}/v1/responses", sock=here),
        ):
            pass
        assert refused.value.response.status_code == 403
        own = f"http://{address.host}:{address.port}"
        for origin in (None, own, "https://mine.example"):
            with client_of(running, origin=origin) as client:
                assert client.ask()[-1]["type"] == "response.completed"
        assert len(upstream.requests) == 3


def test_with_a_key_for_clients_nobody_else_opens_one():
    options = {"client_key_env": "DOOR", "environment": {"DOOR": "open-sesame"}}
    with between("ollama", DONE, **options) as (running, upstream):
        assert refused_with(running) == 401
        wrong = {"authorization": "Bearer open-sesam"}
        assert refused_with(running, additional_headers=wrong) == 401
        right = {"authorization": "Bearer open-sesame"}
        with client_of(running, additional_headers=right) as client:
            assert client.ask()[-1]["type"] == "response.completed"
        (asked,) = upstream.requests
        assert "open-sesame" not in str(asked.headers)


def test_more_than_are_taken_are_told_to_come_back():
    with between("ollama", DONE, exchanges=1) as (running, _), client_of(running):
        assert refused_with(running) == 503


@pytest.mark.parametrize("talk", [Messages, Chat], ids=lambda talk: talk.wire)
def test_a_wire_whose_clients_speak_no_websocket_is_asked_with_http(talk: type[Talk]):
    with gateway("ollama") as running:
        assert refused_with(running, path=talk.path) == 426


def test_headers_of_the_connection_stay_and_those_of_the_wire_go_on():
    sent = {"openai-beta": "responses_websockets=2026-02-06, other=v1", "session-id": "s1"}
    with between(WIRE, DONE) as (running, upstream), client_of(
        running, additional_headers=sent
    ) as client:  # fmt: skip
        client.ask()
    (asked,) = upstream.requests
    assert (asked.headers["openai-beta"], asked.headers["session-id"]) == ("other=v1", "s1")
    assert asked.headers["content-type"] == "application/json"
    assert not {name for name in asked.headers if name.startswith(("sec-", "upgrade"))}
    assert asked.body["stream"] is True
    assert not {"type", "generate", "stream_id", "previous_response_id"} & set(asked.body)


def test_a_key_that_an_upstream_repeats_reaches_nobody():
    said = script(say("Your key is sk-mine-1234567.")).bytes(WIRE)
    options = {"key_env": ["MINE"], "environment": {"MINE": "sk-mine-1234567"}}
    with between(WIRE, telling(WIRE, [said]), **options) as (running, _), client_of(
        running
    ) as client:  # fmt: skip
        assert "sk-mine-1234567" not in json.dumps(client.ask())


def test_each_answer_is_recorded_and_counted(tmp_path: Path):
    with between("openai_chat", turns(WEATHER, DONE), record=tmp_path) as (running, _), client_of(
        running
    ) as client:  # fmt: skip
        client.ask()
        client.ask()
    assert len([*tmp_path.glob("openai_chat/*")]) >= 2
    assert [row["take"] is not None for row in running.rows] == [True, True]
    assert [call["name"] for call in running.rows[0]["calls"]] == ["get_weather"]


# --- the command ----------------------------------------------------------------------------------


def test_the_command_speaks_websocket_and_takes_no_message_without_end():
    with script(say("Hi")).server("ollama") as upstream:
        command = [sys.executable, "-m", "streamnorm", "gateway", "--to", f"ollama={upstream.url}",
                   "--listen", "127.0.0.1:0", "--model", "llama"]  # fmt: skip
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:  # fmt: skip
            assert process.stdout is not None
            found = re.search(r"http://(\S+)", process.stdout.readline())
            assert found is not None
            running = Running(found.group(), [], None)
            with client_of(running) as client:
                assert client.ask()[-1]["type"] == "response.completed"
                head = b"\x81\xff" + (33 * 1024 * 1024).to_bytes(8, "big") + b"mask"
                client.socket.socket.sendall(head)  # and nothing of what it announces
                with pytest.raises(ConnectionClosed) as closed:
                    client.next()
            with client_of(running) as client:
                process.send_signal(signal.SIGINT)
                with pytest.raises(ConnectionClosed) as ended:
                    client.next()
            _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == 1012
    assert [json.loads(line)["state"] for line in log.splitlines()] == ["done"]


async def test_where_no_library_speaks_websocket_http_is_asked_for():
    """A server without one takes the upgrade for a request like any other."""
    upgrade = {
        "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    app = gateways.app("ollama", environment={})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        refused = await client.get("http://127.0.0.1/v1/responses", headers=upgrade)
    assert refused.status_code == 426
    assert refused.headers["upgrade"] == "HTTP/1.1"
