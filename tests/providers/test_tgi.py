"""Hugging Face TGI's own wire: text and its end, requests as one text, and no tools."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from streamnorm import Conversation, File, Normalizer, Tool, ToolCall, ToolResult, Turn, provider
from streamnorm.edge.refusals import refusal
from streamnorm.edge.sources import Facts
from streamnorm.errors import EncodeError, UsageError
from streamnorm.page.takes import scripted_wires
from streamnorm.providers import PROVIDERS
from streamnorm.providers.detect import by_address
from streamnorm.testing import bad_json, call, cut, error, finish, keep_alives, say, script, think
from streamnorm.testing import usage as used
from tests.conftest import piped, text_of

Json = dict[str, Any]
PARAMETERS = {"details": True, "return_full_text": False}
HELLO = script(say("Good morning, Höfn."), used(900, 40))


def sse(*payloads: Json) -> bytes:
    return b"".join(b"data:" + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def step(text: str, **more: Any) -> Json:
    token = {"id": 1, "text": text, "logprob": -0.1, "special": False}
    return {"index": 1, "token": token, "generated_text": None, "details": None} | more


# --- in -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tgi", "auto"])
def test_a_script_is_heard_as_it_was_told(name):
    pipe = Normalizer(name)
    events = pipe.feed(HELLO.bytes("tgi")) + pipe.close()
    assert (events[0].kind, events[0].provider, events[0].model) == ("stream_start", "tgi", None)
    assert text_of(events) == "Good morning, Höfn."
    assert [(e.input, e.output) for e in events if e.kind == "usage"] == [(900, 40)]
    assert (events[-1].kind, events[-1].reason, events[-1].raw_reason) == (
        "finish", "stop", "eos_token",
    )  # fmt: skip
    assert not pipe.notes


@pytest.mark.parametrize(
    ("raw", "reason"), [("eos_token", "stop"), ("stop_sequence", "stop"), ("length", "length")]
)
def test_its_reasons(raw, reason):
    last = step(".", generated_text="Hi.", details={"finish_reason": raw, "generated_tokens": 2})
    events, _ = piped("tgi", [sse(step("Hi"), last)])
    assert text_of(events) == "Hi."
    assert (events[-1].reason, events[-1].raw_reason) == (reason, raw)


def test_a_reason_that_nobody_knows_is_noted():
    last = step(".", generated_text=".", details={"finish_reason": "tired"})
    _, pipe = piped("tgi", [sse(last)])
    assert pipe.notes["finish.unknown"] == 1


def test_a_whole_text_without_tokens_is_told_and_one_with_tokens_is_not_told_twice():
    assert text_of(piped("tgi", [sse({"generated_text": "Hi", "details": None})])[0]) == "Hi"
    body = sse(step("Hi"), {"generated_text": "Hi", "details": None})
    assert text_of(piped("tgi", [body])[0]) == "Hi"


@pytest.mark.parametrize(("code", "again"), [("overloaded", True), ("validation", False)])
def test_an_error_ends_the_stream(code, again):
    body = sse(step("Hi"), {"error": "no more", "error_type": code})
    events, _ = piped("tgi", [body])
    end = events[-1]
    assert (end.kind, end.reason, end.error) == ("failed", "provider_error", "no more")
    assert (end.code, end.retryable) == (code, again)


def test_faults_of_a_script():
    *_, end = script(say("Hi"), cut()).events("tgi")
    assert (end.kind, end.reason) == ("failed", "truncated")
    *_, end = script(say("Hi"), bad_json(), say("!")).events("tgi")
    assert (end.kind, end.reason) == ("failed", "protocol")
    *_, end = script(say("Hi"), error("rate_limit")).events("tgi")
    assert (end.code, end.retryable) == ("overloaded", True)
    *_, end = script(say("Hi"), finish("length")).events("tgi")
    assert end.reason == "length"
    assert script(say("Hi there"), keep_alives()).notes("tgi") == {"wire.keepalive": 3}


def test_a_script_says_what_it_cannot_tell():
    for step_ in (call("f"), think("Hm.")):
        with pytest.raises(UsageError, match="tgi has no"):
            script(step_).bytes("tgi")
    assert "tgi" not in scripted_wires()


# --- out ------------------------------------------------------------------------------------------


def test_one_question_is_sent_as_it_is():
    body = provider("tgi").request(Conversation().user("Is it open?"), max_tokens=9, model="m")
    assert body == {"inputs": "Is it open?", "parameters": PARAMETERS | {"max_new_tokens": 9}}


def test_a_longer_talk_says_who_speaks_and_is_open_for_the_answer():
    talk = Conversation(system="Be brief.").user("Is it open?").assistant("Yes.").user("When?")
    assert provider("tgi").request(talk) == {
        "inputs": "System: Be brief.\nUser: Is it open?\nAssistant: Yes.\nUser: When?\nAssistant:",
        "parameters": PARAMETERS,
    }


def test_pictures_stand_in_the_text():
    talk = Conversation().user("Look: ", File(b"hi", "image/png"))
    assert provider("tgi").request(talk)["inputs"] == "Look: ![](data:image/png;base64,aGk=)"
    talk = Conversation().user("Look: ", File(b"hi", "application/pdf"))
    assert "application/pdf" in provider("tgi").request(talk)["inputs"]


def test_tools_are_refused_with_the_way_out():
    asked = ToolCall(0, "c1", "f", {}, "{}")
    talk = Conversation().user("Go").add(Turn("assistant", (asked,)))
    talk.results([ToolResult.for_call(asked, "done")])
    wire = provider("tgi")
    for refused in (
        lambda: wire.request(talk),
        lambda: wire.request(Conversation().user("Go"), [Tool("f")]),
        lambda: wire.calls([asked]),
        lambda: wire.results([ToolResult.for_call(asked, "done")]),
    ):
        with pytest.raises(EncodeError, match="/v1/chat/completions"):
            refused()


# --- around ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "wire", "key"),
    [
        ("http://127.0.0.1:8080/generate_stream", "tgi", False),
        ("https://x.endpoints.huggingface.cloud/generate_stream", "tgi", False),
        ("https://api-inference.huggingface.co/models/m/generate_stream", "tgi", True),
        ("https://router.huggingface.co/v1/chat/completions", "openai_chat", True),
    ],
)
def test_its_addresses(url, wire, key):
    told = by_address(url)
    assert (told.name, told.key is not None) == (wire, key)


def test_what_it_can():
    assert PROVIDERS["tgi"].can == ("read", "write", "repair", "script")
    assert PROVIDERS["tgi"].items == ()


def test_its_refusals_are_read():
    said = {"error": "Model is overloaded", "error_type": "overloaded"}
    refused = refusal(Facts(status=429), json.dumps(said).encode())
    assert (refused.message, refused.code) == ("Model is overloaded", "overloaded")
    assert refused.retryable


def test_a_server_of_it_answers():
    with HELLO.server("tgi") as server:
        response = httpx.post(server.url + "/generate_stream", json={"inputs": "Hi"})
    assert response.headers["content-type"] == "text/event-stream"
    assert response.content == HELLO.bytes("tgi")
