"""Clients of generateContent: what their addresses say, and what their SDK must never be told."""

from __future__ import annotations

import json

import httpx
import pytest

from streamnorm.encoding.steps import Step
from streamnorm.gateway.upstreams import Upstreams
from streamnorm.testing import Server, call, cut, error, finish, say, script, think, usage
from streamnorm.testing.http import Answer
from tests.gateway.kit import (
    MODEL,
    Generate,
    Heard,
    between,
    gateway,
    genai,
    post,
    telling,
)

STREAM, AT_ONCE = "streamGenerateContent?alt=sse", "generateContent"
BODY = Generate("").body()
ANSWER = script(think("Hm."), say("Let me look."), call("get_weather", city="Oslo"))


@pytest.mark.parametrize("version", ["/v1beta", "/v1", "/v1alpha", ""])
def test_the_model_and_whether_it_is_a_stream_stand_in_the_address(version: str):
    with between("ollama", ANSWER) as (running, upstream):
        for verb in (STREAM, AT_ONCE):
            heard = post(running.url, f"{version}/models/some-model:{verb}", BODY)
            assert heard.status == 200
            assert heard.text.startswith("data: ") is (verb == STREAM)
    assert [request.body["model"] for request in upstream.requests] == ["some-model"] * 2
    assert [row["streaming"] for row in running.rows] == [True, False]


def test_a_model_may_name_its_upstream():
    with between("ollama", ANSWER) as (running, upstream):
        assert post(running.url, f"/v1beta/models/ollama/qwen:{AT_ONCE}", BODY).status == 200
    assert upstream.requests[0].body["model"] == "qwen"


def test_a_stream_that_is_asked_for_as_an_array_is_refused_with_what_to_say():
    with between("ollama", ANSWER) as (running, upstream):
        heard = post(running.url, f"/v1beta/models/{MODEL}:streamGenerateContent", BODY)
    assert heard.status == 400
    assert heard.error == {
        "code": 400, "message": "a stream is asked for with alt=sse in the address",
        "status": "INVALID_ARGUMENT",
    }  # fmt: skip
    assert upstream.requests == []


def test_all_calls_stand_in_the_chunk_that_says_the_end():
    """Its SDK runs a call when it hears it."""
    two = script(call("get_weather", city="Oslo"), say("And"), call("get_weather", city="Rome"))
    with between("openai_chat", two) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    *texts, last = [payload["candidates"][0] for payload in heard.payloads]
    assert [part["functionCall"]["args"]["city"] for part in last["content"]["parts"]] == [
        "Oslo",
        "Rome",
    ]
    assert last["finishReason"] == "STOP"
    assert "functionCall" not in str(texts)


def test_eager_tells_each_when_it_is_whole():
    with between("anthropic", ANSWER, eager=True) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    *_, called, last = [payload["candidates"][0] for payload in heard.payloads]
    assert called["content"]["parts"][0]["functionCall"]["name"] == "get_weather"
    assert "finishReason" not in called
    assert last["finishReason"] == "STOP"


def test_thoughts_are_marked_and_counted_apart():
    with between("openai_responses", ANSWER) as (running, _):
        heard = post(running.url, f"/v1beta/models/{MODEL}:{AT_ONCE}", BODY)
    (answer,) = heard.payloads
    first, second, third = answer["candidates"][0]["content"]["parts"]
    assert first == {"text": "Hm.", "thought": True}
    assert second == {"text": "Let me look."}
    assert third["functionCall"]["args"] == {"city": "Oslo"}
    counts = answer["usageMetadata"]
    assert counts["totalTokenCount"] == counts["promptTokenCount"] + (
        counts["candidatesTokenCount"] + counts["thoughtsTokenCount"]
    )


def test_tokens_of_thoughts_are_none_of_the_candidates():
    counted = script(think("Hm."), say("Hi"), usage(input=30, output=20, cached=5, reasoning=8))
    with between("openai_responses", counted) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert heard.payloads[-1]["usageMetadata"] == {
        "promptTokenCount": 30, "candidatesTokenCount": 12, "thoughtsTokenCount": 8,
        "cachedContentTokenCount": 5, "totalTokenCount": 50,
    }  # fmt: skip


@pytest.mark.parametrize(("word", "said"), [("length", "MAX_TOKENS"), ("content_filter", "SAFETY")])
def test_words_for_the_end_are_its_own(word: str, said: str):
    with between("openai_chat", script(say("Hm"), finish(word))) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert heard.payloads[-1]["candidates"][0]["finishReason"] == said


def test_no_line_of_a_stream_is_one_that_its_sdk_takes_for_an_error():
    with between("anthropic", ANSWER) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert all(not line or line.startswith("data: ") for line in heard.text.split("\n"))


def told_by_gemini(*parts: dict[str, object], end: str = "STOP") -> list[bytes]:
    said = {"content": {"role": "model", "parts": parts}, "finishReason": end, "index": 0}
    return [b"data: %b\n\n" % json.dumps({"candidates": [said], "modelVersion": "g"}).encode()]


def parts_of(heard: Heard) -> list[dict[str, object]]:
    candidates = [payload["candidates"][0] for payload in heard.payloads]
    return [part for candidate in candidates for part in candidate["content"]["parts"]]


SIGNED = {"text": "", "thoughtSignature": "c2ln"}


def test_a_signature_without_a_text_is_told_where_the_answer_is_told_anew():
    told = telling("gemini", told_by_gemini({"text": "Hi"}, SIGNED))
    with between("gemini", told, whole=True) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert parts_of(heard) == [{"text": "Hi"}, SIGNED, {"text": ""}]


def test_what_its_provider_ran_itself_is_told_as_it_was_where_the_answer_is_told_anew():
    ran = {"executableCode": {"language": "PYTHON", "code": "1"}}
    gave = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    told = telling("gemini", told_by_gemini(ran, gave, {"text": "One."}))
    with between("gemini", told, whole=True) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert parts_of(heard)[:3] == [ran, gave, {"text": "One."}]


def test_a_signature_ends_a_text_in_an_answer_that_is_told_anew():
    """Two calls under one id: so the answer is told by us."""
    signed, made = {"text": "a", "thoughtSignature": "c2ln"}, {"name": "get_weather", "args": {}}
    calls = [{"functionCall": {"id": "same", **made}}] * 2
    (told,) = told_by_gemini(signed, {"text": "b"}, {"text": "c"}, *calls)
    answer = Server(lambda number: Answer(200, "application/json", [told.removeprefix(b"data: ")]))
    with between("gemini", answer) as (running, _):
        heard = post(running.url, f"/v1beta/models/{MODEL}:{AT_ONCE}", BODY)
    assert parts_of(heard)[:2] == [signed, {"text": "bc"}]
    assert len({part["functionCall"]["id"] for part in parts_of(heard)[2:]}) == 2  # type: ignore[index]


@pytest.mark.parametrize(("wire", "end", "said"), [
    ("gemini", "SOMETHING_NEW", "SOMETHING_NEW"), ("openai_chat", "something_new", "STOP"),
])  # fmt: skip
def test_a_word_for_the_end_that_nobody_knows_is_told_to_its_own_wire_alone(
    wire: str, end: str, said: str
):
    told = told_by_gemini({"text": "Hi"}, end=end)
    if wire != "gemini":
        told = [
            c.replace(b'"stop"', b'"%b"' % end.encode()) for c in script(say("Hi")).chunks(wire)
        ]
    with between(wire, telling(wire, told), whole=True) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert heard.payloads[-1]["candidates"][0]["finishReason"] == said


@pytest.mark.parametrize(("steps", "number"), [
    ([cut()], 503), ([error("server")], 503), ([call("get_weather"), finish("length")], 500),
], ids=["cut", "failed", "length"])  # fmt: skip
def test_its_sdk_is_told_by_a_number_whether_to_ask_again(steps: list[Step], number: int):
    with between("openai_chat", script(say("Hi"), *steps)) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert heard.payloads[0]["candidates"][0]["content"]["parts"] == [{"text": "Hi"}]
    assert heard.error is not None
    assert heard.error["code"] == number


@pytest.mark.parametrize(("code", "status", "word"), [
    ("rate_limit", 429, "RESOURCE_EXHAUSTED"), ("auth", 401, "UNAUTHENTICATED"),
    ("invalid", 400, "INVALID_ARGUMENT"), ("overloaded", 529, "INTERNAL"),
])  # fmt: skip
def test_a_refusal_of_another_wire_has_a_status_that_its_clients_know(
    code: str, status: int, word: str
):
    with between("anthropic", script(error(code, status=status))) as (running, _):
        heard = post(running.url, Generate.path, BODY)
    assert heard.error is not None
    assert (heard.status, heard.error["code"], heard.error["status"]) == (status, status, word)


def test_an_answer_at_once_has_no_part_that_says_nothing():
    with between("anthropic", script(think("Hm."))) as (running, _):
        heard = post(running.url, f"/v1beta/models/{MODEL}:{AT_ONCE}", BODY)
    assert parts_of(heard) == [{"text": "Hm.", "thought": True}]


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\n", "\v", "\x1c"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_character_that_its_sdk_takes_for_the_end_of_a_line_ends_none(char: str, stream: bool):
    """So do the Gemini CLI and whoever reads lines with ``splitlines``."""
    said = script(say(f"a{char}b"), call("get_weather", city=f"x{char}y"))
    with between("anthropic", said) as (running, _):
        heard = Generate(running.url, stream=stream).ask("Hello")
        text = post(running.url, Generate.path, BODY).text
    assert heard.text == f"a{char}b"
    assert [call.arguments for call in heard.calls] == [{"city": f"x{char}y"}]
    assert text.splitlines() == text.split("\n")[:-1]


def test_functions_of_python_run_through_the_sdk_and_their_results_go_back():
    ran = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        ran.append(city)
        return f"cold in {city}"

    two = script(call("get_weather", city="Oslo"), call("get_weather", city="Rome"))
    answers = [two.chunks("anthropic"), script(say("Both are cold.")).chunks("anthropic")]
    with (
        between("anthropic", telling("anthropic", *answers)) as (running, upstream),
        genai.Client(api_key="any", http_options={"base_url": running.url}) as client,
    ):
        chat = client.chats.create(model=MODEL, config={"tools": [get_weather]})
        said = "".join(c.text or "" for c in chat.send_message_stream("Where is it cold?"))
    assert ran == ["Oslo", "Rome"]
    assert said.endswith("Both are cold.")
    results = [
        b
        for m in upstream.requests[1].body["messages"]
        for b in m["content"]
        if b["type"] == "tool_result"
    ]
    assert len({b["tool_use_id"] for b in results}) == 2


def test_tokens_are_counted_and_models_listed_in_its_own_form():
    with between("ollama", ANSWER, map=["small=qwen"]) as (running, upstream):
        with genai.Client(api_key="any", http_options={"base_url": running.url}) as client:
            counted = client.models.count_tokens(model=MODEL, contents="Hello " * 40)
        listed = httpx.get(f"{running.url}/v1beta/models").json()
    assert counted.total_tokens == 74  # 4 bytes each
    assert [model["name"] for model in listed["models"]] == ["models/small", "models/ollama/qwen"]
    assert upstream.requests == []


def test_its_own_provider_counts_and_answers_at_once_by_itself():
    home = Upstreams(["gemini"]).route("m").upstream
    here = Upstreams(["gemini=http://host/base?x=1"]).route("m").upstream
    count = "/v1beta/models/{model}:countTokens"
    base = "https://generativelanguage.googleapis.com/v1beta/models/m"
    assert home.address("m") == f"{base}:streamGenerateContent?alt=sse"
    assert home.address("m", stream=False) == f"{base}:generateContent"
    assert home.beside(count, "m") == f"{base}:countTokens"
    assert here.address("m", stream=False) == "http://host/base/models/m:generateContent?x=1"


def test_an_address_that_names_its_model_has_the_other_paths_beside_it():
    full = "http://host/v1beta/models/mine:streamGenerateContent?alt=sse"
    upstream = Upstreams([f"gemini={full}"]).route("m").upstream
    assert upstream.address("m") == full
    assert upstream.address("m", stream=False) == "http://host/v1beta/models/m:generateContent"


def test_what_is_not_there_is_told_with_a_number():
    with gateway("ollama") as running:
        heard = post(running.url, "/v1beta/models/m:embedContent", {})
    assert heard.status == 404
    assert heard.error is not None
    assert heard.error["code"] == 404


def test_a_picture_of_its_sdk_reaches_another_provider():
    """The SDK writes bytes in the alphabet of addresses."""
    picture = bytes(range(240, 256))
    with (
        between("anthropic", ANSWER) as (running, upstream),
        genai.Client(api_key="any", http_options={"base_url": running.url}) as client,
    ):
        part = genai.types.Part.from_bytes(data=picture, mime_type="image/png")
        client.models.generate_content(model=MODEL, contents=[part, "What is it?"])
    image, _ = upstream.requests[0].body["messages"][0]["content"]
    assert image["source"]["data"] == "8PHy8/T19vf4+fr7/P3+/w=="
    assert running.row()["dropped"] == 0


def test_a_streamed_chat_of_its_sdk_goes_back_as_one_turn():
    """The SDK keeps each chunk as a content of its own."""
    answers = [script(say("Hel"), say("lo"), say("!")), script(say("Bye"))]
    chunks = [answer.chunks("openai_chat") for answer in answers]
    with (
        between("openai_chat", telling("openai_chat", *chunks)) as (running, upstream),
        genai.Client(api_key="any", http_options={"base_url": running.url}) as client,
    ):
        chat = client.chats.create(model=MODEL)
        for text in ("Hi", "Go on"):
            list(chat.send_message_stream(text))
    assert upstream.requests[1].body["messages"] == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Go on"},
    ]


def test_its_sdk_lists_models_where_other_clients_list_theirs():
    """It asks ``/v1/models``, where Codex wants to hear of none: the header of its key tells the two apart."""
    with gateway("ollama", model="qwen") as running:
        for version in ("v1", "v1alpha", "v1beta"):
            options = {"base_url": running.url, "api_version": version}
            with genai.Client(api_key="any", http_options=options) as client:
                assert [model.name for model in client.models.list()] == [
                    "models/qwen",
                    "models/ollama/qwen",
                ]
        for headers in ({}, {"authorization": "Bearer any"}, {"x-api-key": "any"}):
            listed = httpx.get(f"{running.url}/v1/models", headers=headers).json()
            assert listed["models"] == []
            assert [model["id"] for model in listed["data"]] == ["qwen", "ollama/qwen"]


def test_a_model_of_dots_is_no_other_path_of_its_provider():
    with between("bedrock", ANSWER) as (running, upstream):
        for model in ("..", "%2E%2E", "."):
            heard = post(running.url, f"/v1beta/models/{model}:{AT_ONCE}", BODY)
            assert heard.status == 400
            assert heard.error is not None
            assert heard.error["status"] == "INVALID_ARGUMENT"
    assert upstream.requests == []
