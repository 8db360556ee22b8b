"""Every client's wire on every upstream's: conversations with tools, and what is cut is never whole."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from streamnorm import Reasoning, read_request
from streamnorm.conversation import Text
from streamnorm.testing import (
    call,
    cut,
    error,
    finish,
    interleave,
    missing_id,
    say,
    script,
    think,
    turns,
    usage,
)
from streamnorm.testing.http import Answer, Server
from tests.conftest import some
from tests.gateway.kit import (
    MODEL,
    TALKS,
    UPSTREAMS,
    Chat,
    Generate,
    Heard,
    Messages,
    Responses,
    Talk,
    anthropic,
    between,
    gateway,
    genai,
    openai,
    post,
    telling,
    would_run,
)

OSLO, ROME = call("get_weather", city="Oslo"), call("get_weather", city="Rome")
WEATHER = script(think("Two places."), say("Let me look."), OSLO, ROME, usage(input=30, output=20))
LAST = script(say("7 degrees."))
ALL_PAIRS = [*itertools.product(UPSTREAMS, TALKS)]
PAIRS = [(wire, talk) for wire, talk in ALL_PAIRS if wire != talk.wire]
over_pairs = pytest.mark.parametrize(("wire", "talk"), PAIRS)
ENDS = {"anthropic": ("tool_use", "end_turn"), "openai_responses": ("completed", "completed"),
        "openai_chat": ("tool_calls", "stop"), "gemini": ("STOP", "STOP")}  # fmt: skip


def results_in(wire: str, body: Any) -> list[tuple[str, Any, str]]:
    """Each result of a request with the call that it belongs to."""
    conversation = read_request(wire, body).conversation
    results = [result for turn in conversation for result in turn.results]
    return [(r.call.name, r.call.arguments, r.text) for r in results]


# --- conversations --------------------------------------------------------------------------------


# An answer that is no stream is handed on as it is where both sides speak one wire: see test_passing.
TALKED = [(*pair, True) for pair in ALL_PAIRS] + [(*pair, False) for pair in PAIRS]


@pytest.mark.parametrize(("wire", "talk", "stream"), TALKED)
def test_a_conversation_with_tools_is_the_same_on_every_pair_of_wires(
    wire: str, talk: type[Talk], stream: bool
):
    with between(wire, turns(WEATHER, LAST), map=[f"{MODEL}=theirs"]) as (running, upstream):
        client = talk(running.url, stream=stream)
        first = client.ask("Where is it cold?")
        last = client.answer({c.id: f"cold in {c.arguments['city']}" for c in first.calls})
    assert first.text == "Let me look."
    assert [(c.name, c.arguments) for c in first.calls] == [
        ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}),
    ]  # fmt: skip
    assert len({c.id for c in first.calls}) == 2
    assert last.text == "7 degrees."
    assert (first.end, last.end) == ENDS[talk.wire]
    assert results_in(wire, upstream.requests[1].body) == [
        ("get_weather", {"city": "Oslo"}, "cold in Oslo"),
        ("get_weather", {"city": "Rome"}, "cold in Rome"),
    ]
    assert [row["state"] for row in running.rows] == ["done", "done"]
    assert running.rows[0]["model"] == "theirs"
    told = upstream.requests[0]
    assert "theirs" in told.path or told.body["model"] == "theirs"


@over_pairs
@pytest.mark.parametrize("odd", ["no ids", "interleaved"])
def test_calls_that_others_lose_all_run_once(wire: str, talk: type[Talk], odd: str):
    steps = (
        [OSLO, missing_id(), ROME, missing_id()] if odd == "no ids" else [OSLO, ROME, interleave()]
    )
    with between(wire, turns(script(say("Look."), *steps), LAST)) as (running, upstream):
        client = talk(running.url)
        first = client.ask("Where is it cold?")
        client.answer({c.id: f"cold in {c.arguments['city']}" for c in first.calls})
    assert [c.arguments for c in first.calls] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert len({c.id for c in first.calls}) == 2
    assert [text for *_, text in results_in(wire, upstream.requests[1].body)] == [
        "cold in Oslo", "cold in Rome",
    ]  # fmt: skip


@over_pairs
def test_ids_are_unlike_all_others_of_the_conversation(wire: str, talk: type[Talk]):
    """A script has the same ids whenever it is told: the second turn uses those of the first."""
    again = script(OSLO)
    with between(wire, again) as (running, upstream):
        client = talk(running.url)
        first = client.ask("Is it cold?").calls
        second = client.answer({first[0].id: "one"}).calls
        third = client.answer({second[0].id: "two"}).calls
        client.answer({third[0].id: "three"})
    assert len({first[0].id, second[0].id, third[0].id}) == 3
    assert [text for *_, text in results_in(wire, upstream.requests[3].body)] == [
        "one", "two", "three",
    ]  # fmt: skip


def test_what_a_provider_wants_back_with_a_call_comes_back_from_the_store():
    """Gemini's thought signatures have no place on Chat: the store keeps them."""
    signed = [
        b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"get_weather","args":'
        b'{"city":"Oslo"}},"thoughtSignature":"c2lnbmVk"}],"role":"model"},"finishReason":"STOP"}],'
        b'"modelVersion":"g","responseId":"r"}\n\n'
    ]
    last = LAST.chunks("gemini")
    for talk in (Chat, Messages, Responses):
        with between("gemini", telling("gemini", signed, last)) as (running, upstream):
            client = talk(running.url)
            first = client.ask("Is it cold?").calls
            client.answer({first[0].id: "yes"})
        parts = upstream.requests[1].body["contents"][1]["parts"]
        (part,) = [part for part in parts if "functionCall" in part]
        assert part["thoughtSignature"] == "c2lnbmVk"
        assert "id" not in part["functionCall"]


def test_a_thought_goes_back_to_the_provider_that_thought_it():
    with between("anthropic", turns(WEATHER, LAST)) as (running, upstream):
        client = Responses(running.url)
        first = client.ask("Where is it cold?")
        client.answer({c.id: "yes" for c in first.calls})
    blocks = upstream.requests[1].body["messages"][1]["content"]
    (thought,) = [block for block in blocks if block["type"] == "thinking"]
    assert thought["thinking"] == "Two places."
    assert thought["signature"]


@pytest.mark.parametrize("wire", ["anthropic", "openai_responses", "bedrock"])
@pytest.mark.parametrize("stream", [True, False])
def test_thoughts_that_a_client_cannot_keep_come_back_where_they_were(wire: str, stream: bool):
    """Chat has no place for them."""
    first = script(think("First."), say("Well."), think("Then."), OSLO, ROME)
    with between(wire, turns(first, script(OSLO), LAST)) as (running, upstream):
        client = Chat(running.url, stream=stream)
        calls = client.ask("Where is it cold?").calls
        calls = client.answer({c.id: "7" for c in calls}).calls
        client.answer({c.id: "7" for c in calls})
    talk = read_request(wire, upstream.requests[2].body).conversation
    turn, later = [turn for turn in talk if turn.role == "assistant"]
    thought, text, another, *called = turn.parts
    assert [part.text for part in (thought, text, another)] == ["First.", "Well.", "Then."]
    assert isinstance(thought, Reasoning)
    assert isinstance(another, Reasoning)
    assert thought.echoes
    assert another.echoes
    assert len(called) == 2
    assert later.parts == later.calls


@pytest.mark.parametrize("wire", [wire for wire in UPSTREAMS if wire != "anthropic"])
def test_a_call_to_a_tool_that_the_upstream_knows_by_another_name_is_known_again(wire: str):
    """Its id and its echo are kept under the name that the client will give back."""

    class Renamed(Messages):
        tools = [{**Messages.tools[0], "name": "the weather/now"}]

    with between(wire, LAST) as (running, upstream):
        Renamed(running.url).ask("Is it cold?")
    name = read_request(wire, upstream.requests[0].body).tools[0].name
    assert name != "the weather/now"
    called = script(call(name, city="Oslo").with_id("odd id"))
    with between(wire, turns(called, LAST)) as (running, upstream):
        client = Renamed(running.url)
        (heard,) = client.ask("Is it cold?").calls
        client.answer({heard.id: "7"})
    assert (heard.name, heard.id == "odd id") == ("the weather/now", False)
    assert json.dumps(upstream.requests[1].body).count('"odd id"') == 2


@pytest.mark.parametrize("wire", [wire for wire in UPSTREAMS if wire != "openai_responses"])
def test_calls_are_told_in_the_order_in_which_they_were_made(wire: str):
    """A patch is told when it is whole; a command that needs it must not be told before."""
    tools = [
        {"type": "custom", "name": "patch", "description": "Changes files"},
        {"type": "function", "name": "run", "parameters": {}, "strict": False},
    ]
    made = script(call("run", n=1), call("patch", input="+ one"), call("run", n=2))
    with between(wire, made) as (running, _):
        heard = post(running.url, Responses.path, Responses("").body(tools=tools))
    done = [p["item"] for p in heard.payloads if p["type"] == "response.output_item.done"]
    told = [item.get("input") or json.loads(item["arguments"])["n"] for item in done]
    assert told == [1, "+ one", 2]


def test_an_answer_may_be_long_where_the_client_names_no_limit():
    """A program that writes files would be cut in the midst of one."""
    with between("anthropic", LAST) as (running, upstream):
        Responses(running.url).ask("Write it down.")
    assert upstream.requests[0].body["max_tokens"] == 32_000


def test_a_thought_of_another_provider_never_reaches_one_that_would_refuse_it():
    """The client talks to one upstream, then to its own: our envelope must not go there."""
    with script(think("Hm."), say("Hi.")).server("openai_chat") as one, LAST.server(
        "anthropic"
    ) as two:  # fmt: skip
        to = [f"a@openai_chat={one.url}", f"b@anthropic={two.url}"]
        with gateway(to, map=[f"{MODEL}=a/x"]) as running:
            client = Messages(running.url)
            client.ask("Hello")
            heard = post(running.url, Messages.path, {
                "model": "b/y", "max_tokens": 9, "stream": True,
                "messages": [*client.messages, {"role": "user", "content": "And?"}],
            })  # fmt: skip
    assert "thinking" in str(client.messages)
    assert heard.error is None
    assert "streamnorm1." not in two.requests[0].content.decode()
    assert two.requests[0].body["messages"][1]["content"][-1]["text"] == "Hi."


COUNTED = {
    Messages: ("model", "usage", "input_tokens", "output_tokens"),
    Responses: ("model", "usage", "input_tokens", "output_tokens"),
    Chat: ("model", "usage", "prompt_tokens", "completion_tokens"),
    Generate: ("modelVersion", "usageMetadata", "promptTokenCount", "candidatesTokenCount"),
}


@over_pairs
def test_counts_and_models_are_told_as_the_client_knows_them(wire: str, talk: type[Talk]):
    with between(wire, WEATHER, map=[f"{MODEL}=theirs"]) as (running, _):
        heard = post(running.url, talk("", stream=False).path, talk("", stream=False).body())
    body = heard.payloads[0]
    assert body[COUNTED[talk][0]] == MODEL
    counts = body[COUNTED[talk][1]]
    assert tuple(counts[field] for field in COUNTED[talk][2:]) == (30, 20)
    assert running.row()["tokens"]["input"] == 30


# --- cuts -----------------------------------------------------------------------------------------


def places(wire: str) -> list[int]:
    """Where each frame ends, without the last."""
    ends = [*itertools.accumulate(map(len, WEATHER.chunks(wire)))]
    return ends[:-1]


def is_whole(wire: str, at: int) -> bool:
    """Has the upstream said by then that its turn ended normally?"""
    told = script(*WEATHER.steps, cut(at=at)).events(wire)
    return told[-1].kind == "finish"


CUTS = [
    (wire, talk, at, abrupt)
    for (wire, talk), abrupt in itertools.product(PAIRS, (False, True))
    for at in some(places(wire), 4)
    if not is_whole(wire, at)
]


@pytest.mark.parametrize(("wire", "talk", "at", "abrupt"), CUTS)
def test_what_is_cut_runs_nothing_and_ends_as_an_error(
    wire: str, talk: type[Talk], at: int, abrupt: bool
):
    with between(wire, script(*WEATHER.steps, cut(at=at, abrupt=abrupt))) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None
    assert not heard.broke
    assert running.row()["state"] in ("broken", "refused")


@over_pairs
def test_a_client_that_wants_no_stream_gets_a_status_for_what_is_cut(wire: str, talk: type[Talk]):
    with between(wire, script(say("Look."), OSLO, cut(inside="call"))) as (running, _):
        heard = post(running.url, talk("", stream=False).path, talk("", stream=False).body())
    assert heard.status == 502
    assert heard.error is not None
    assert running.row()["state"] == "refused"


@over_pairs
def test_a_call_under_the_length_limit_is_not_run(wire: str, talk: type[Talk]):
    with between(wire, script(say("Look."), OSLO, finish("length"))) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("wire", "talk"), ALL_PAIRS)
def test_what_would_end_so_again_is_asked_again_by_nobody(
    wire: str, talk: type[Talk], stream: bool
):
    if not stream and wire == talk.wire:  # test_wholes
        return
    ending = script(OSLO, finish("length"))
    with between(wire, turns(ending, LAST), retry=1, whole=True) as (running, upstream):
        heard = post(running.url, talk.path, talk("", stream=stream).body())
    assert (heard.status, len(upstream.requests)) == (400, 1)
    assert "length" in heard.error["message"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@over_pairs
def test_a_call_that_is_not_whole_is_asked_for_again(wire: str, talk: type[Talk], stream: bool):
    broken = OSLO.with_raw('{"city":"Os') if wire not in ("gemini", "ollama") else OSLO
    with between(wire, turns(script(broken), LAST), retry=1, whole=True) as (running, upstream):
        heard = post(running.url, talk.path, talk("", stream=stream).body())
    assert (heard.status, heard.error) == (200, None)
    assert len(upstream.requests) == 1 + (broken is not OSLO)


@over_pairs
def test_nothing_of_a_call_is_told_before_it_is_whole_if_that_is_wanted(
    wire: str, talk: type[Talk]
):
    with between(wire, script(say("Look."), OSLO, cut(inside="call")), whole=True) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert "get_weather" not in heard.text
    assert heard.error is not None


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
def test_what_was_whole_before_the_cut_runs_early_only_if_that_is_wanted(talk: type[Talk]):
    broken = script(OSLO, say("More."), cut(after="call"))
    wire = "anthropic" if talk is not Messages else "openai_responses"
    runs = {}
    for eager in (False, True):
        with between(wire, broken, eager=eager) as (running, _):
            heard = post(running.url, talk.path, talk("").body())
        runs[eager] = would_run(talk.wire, heard)
        assert heard.error is not None
    assert runs == {False: [], True: [] if talk is Chat else ["get_weather"]}


# --- refusals -------------------------------------------------------------------------------------

REFUSED = [
    ("auth", 401, anthropic.AuthenticationError, openai.AuthenticationError),
    ("rate_limit", 429, anthropic.RateLimitError, openai.RateLimitError),
    ("invalid", 400, anthropic.BadRequestError, openai.BadRequestError),
    ("overloaded", 503, anthropic.InternalServerError, openai.InternalServerError),
]


@over_pairs
@pytest.mark.parametrize(("kind", "status", "ours", "theirs"), REFUSED)
def test_a_refusal_is_the_client_s_own_error(
    wire: str, talk: type[Talk], kind: str, status: int, ours: type, theirs: type
):
    if talk is Generate:
        ours = genai.errors.ClientError if status < 500 else genai.errors.ServerError
    expected = pytest.raises(theirs if talk in (Chat, Responses) else ours, match="Because")
    refused = script(error(kind, "Because.", status=status))
    with between(wire, refused) as (running, _), expected as caught:
        talk(running.url).ask("Hello")
    said = caught.value
    assert (said.code if talk is Generate else said.status_code) == status
    assert running.row()["state"] == "refused"


@over_pairs
def test_a_failure_within_the_answer_is_the_client_s_own_error(wire: str, talk: type[Talk]):
    with between(wire, script(say("Look."), error("overloaded", "Too busy"))) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 200
    assert heard.error is not None
    assert heard.error["message"] == "Too busy"


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
def test_an_upstream_that_is_not_there_is_a_bad_gateway(talk: type[Talk]):
    with LAST.server("ollama") as gone:
        url = gone.url
    with gateway(f"ollama={url}") as running:
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 502
    assert heard.error is not None
    assert url not in heard.text


@over_pairs
def test_it_is_asked_again_while_nothing_was_shown(wire: str, talk: type[Talk]):
    answers = turns(script(error("overloaded", status=503)), script(say("Hi"), cut(at=1)), LAST)
    with between(wire, answers, retry=2) as (running, upstream):
        assert talk(running.url).ask("Hello").text == "7 degrees."
    assert len(upstream.requests) == running.row()["attempts"] == 3
    assert [asked.body for asked in upstream.requests[1:]] == [upstream.requests[0].body] * 2


@over_pairs
def test_it_is_never_asked_again_once_something_was_shown(wire: str, talk: type[Talk]):
    answers = turns(script(say("Hi"), say("there"), cut(after="say")), LAST)
    with between(wire, answers, retry=5) as (running, upstream):
        heard = post(running.url, talk.path, talk("").body())
    assert len(upstream.requests) == 1
    assert heard.error is not None


def test_what_cannot_be_said_to_an_upstream_is_counted():
    body = Messages("").body(metadata={"user_id": "u"}, context_management={"edits": []}, top_k=7)
    with between("openai_chat", LAST) as (running, _):
        post(running.url, Messages.path, body)
    assert running.row()["dropped"] >= 2


def test_a_body_that_cannot_be_read_is_refused_before_anybody_is_asked():
    with between("ollama", LAST) as (running, upstream):
        heard = post(running.url, Messages.path, {"model": "m", "messages": 7})
    assert heard.status == 400
    assert upstream.requests == []


# --- what is only named -----------------------------------------------------------------------------


def named(upstream: str, **options: Any) -> tuple[Heard, list[Any]]:
    """The second answer to a client that names what it was told, and all that the upstream was asked."""
    talk = turns(script(say("Well."), OSLO), script(say("Done.")))
    options = {"stream": False, **options}
    with between(upstream, talk) as (running, server):
        first = post(running.url, Responses.path, Responses("").body(**options))
        text, made = first.payloads[0]["output"]
        result = {"type": "function_call_output", "call_id": made["call_id"], "output": "rain"}
        said = [{"type": "item_reference", "id": item["id"]} for item in (text, made)]
        asked = {**options, "input": [{"role": "user", "content": "Hello"}, *said, result]}
        second = post(running.url, Responses.path, Responses("").body(**asked))
        return second, [request.body for request in server.requests]


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "gemini"])
def test_what_a_client_names_in_place_of_saying_it_is_said_to_the_upstream(wire: str):
    second, asked = named(wire, store=True)
    assert second.status == 200
    _, answer, results = read_request(wire, asked[1]).conversation.turns
    assert [part.text for part in answer.parts if isinstance(part, Text)] == ["Well."]
    assert [(r.call.name, r.call.arguments, r.text) for r in results.results] == [
        ("get_weather", {"city": "Oslo"}, "rain")
    ]


def test_what_a_client_told_not_to_keep_is_not_known_by_its_name():
    second, asked = named("anthropic", store=False)
    assert (second.status, len(asked)) == (400, 1)
    assert "send the whole conversation" in second.error["message"]


def test_no_two_answers_tell_anything_under_one_id():
    with between("gemini", script(think("Hm."), say("Hi."), OSLO)) as (running, _):
        heard = [post(running.url, Responses.path, Responses("").body()) for _ in range(2)]
    ids = [
        payload["item"]["id"]
        for answer in heard
        for payload in answer.payloads
        if payload["type"] == "response.output_item.done"
    ]
    assert len(set(ids)) == len(ids) == 6
    assert all(len(id) <= 64 for id in ids)


def test_of_a_refusal_of_another_wire_only_what_it_means_goes_on():
    """Also where both have one form for it."""
    said = {"message": "no", "type": "odd", "param": None, "code": "odd", "more": {"of": "theirs"}}
    answer = Answer(418, "application/json", [json.dumps({"error": said, "more": 1}).encode()])
    with between("openai_chat", Server(lambda number: answer)) as (running, _):
        heard = post(running.url, Responses.path, Responses("").body())
    assert heard.status == 418
    assert heard.payloads == [
        {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": "odd"}}
    ]
