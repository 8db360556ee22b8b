"""One wire on both sides: the bytes themselves go through, and what is cut never ends as if it were whole."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from streamnorm import ToolCall, read_request
from streamnorm.encoding.steps import Step
from streamnorm.gateway import asking
from streamnorm.testing import (
    Script,
    Server,
    call,
    chunked,
    cut,
    error,
    missing_id,
    say,
    script,
    think,
    turns,
)
from streamnorm.testing.http import Answer
from tests.conftest import some
from tests.gateway.kit import (
    MODEL,
    TALKS,
    Generate,
    Messages,
    Talk,
    between,
    gateway,
    post,
    telling,
    with_more,
    would_run,
)

WEATHER = script(
    say("Let me look."), call("get_weather", city="Oslo"), call("get_weather", city="Rome")
)
IN_PIECES = [talk for talk in TALKS if talk is not Generate]  # whose arguments come as text
over_wires = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)


@over_wires
@pytest.mark.parametrize("pieces", [None, 7])
def test_a_whole_stream_goes_through_byte_for_byte(talk: type[Talk], pieces: int | None) -> None:
    answer = WEATHER if pieces is None else script(*WEATHER.steps, chunked(pieces))
    with between(talk.wire, answer) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.text.encode() == WEATHER.bytes(talk.wire)
    assert heard.headers["content-type"] == "text/event-stream"
    assert would_run(talk.wire, heard) == ["get_weather", "get_weather"]
    assert running.row()["passed"] is True
    assert running.row()["state"] == "done"


@over_wires
def test_a_request_that_only_speaks_of_an_envelope_goes_on_as_it_came(talk: type[Talk]) -> None:
    body = talk("").body(odd={"kept": 'what is streamnorm1. in "streamnorm1.eJw"?'})
    with between(talk.wire, WEATHER) as (running, upstream):
        post(running.url, talk.path, body)
    assert upstream.requests[0].body == body
    assert running.row()["passed"] is True


@over_wires
def test_an_answer_that_is_no_stream_goes_through_as_it_is(talk: type[Talk]) -> None:
    whole = b'{"id": "x",  "odd": 1.50}'
    with (
        Server(lambda number: Answer(200, "application/json", [whole[:9], whole[9:]])) as upstream,
        gateway(f"{talk.wire}={upstream.url}") as running,
    ):
        heard = post(running.url, talk("", stream=False).path, talk("", stream=False).body())
    assert heard.text.encode() == whole
    assert running.row()["state"] == "done"


@over_wires
def test_one_that_is_cut_is_a_status(talk: type[Talk]) -> None:
    with (
        Server(
            lambda number: Answer(200, "application/json", [b'{"id":'], breaks=True)
        ) as upstream,
        gateway(f"{talk.wire}={upstream.url}") as running,
    ):
        heard = post(running.url, talk("", stream=False).path, talk("", stream=False).body())
    assert heard.status == 502
    assert heard.error is not None


@over_wires
def test_a_request_goes_on_byte_for_byte(talk: type[Talk]) -> None:
    body = talk("").body(odd={"n": 1.50, "big": 12345678901234567890123})
    with between(talk.wire, WEATHER) as (running, upstream):
        post(running.url, talk.path, body)
    assert upstream.requests[0].body == body
    assert upstream.requests[0].path == talk.path


@over_wires
@pytest.mark.parametrize("stream", [True, False])
def test_it_does_so_too_if_calls_are_told_as_a_whole(talk: type[Talk], stream: bool) -> None:
    body = talk("", stream=stream).body(odd={"n": 1.50}, context_management={"edits": []})
    with between(talk.wire, WEATHER, whole=True) as (running, upstream):
        path = with_more(talk("", stream=stream).path, "beta=true")
        heard = post(running.url, path, body, anthropic_beta="context-1")
    (asked,) = upstream.requests
    assert asked.body == body
    assert asked.path == path
    assert asked.headers["anthropic-beta"] == "context-1"
    assert running.row()["dropped"] == 0
    assert would_run(talk.wire, heard) == ["get_weather", "get_weather"]


def test_a_request_that_is_said_anew_on_its_own_wire_keeps_its_headers() -> None:
    """They say how its fields are to be read; without them an upstream refuses fields of a beta."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "streamnorm1.AAAA"}
    said = [{"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "Hi."}]},
            {"role": "user", "content": "And?"}]  # fmt: skip
    with between("anthropic", WEATHER) as (running, upstream):
        body = Messages("").body(messages=said, context_management={"edits": []})
        post(running.url, f"{Messages.path}?beta=true", body, anthropic_beta="context-1")
    (asked,) = upstream.requests
    assert "streamnorm1." not in asked.content.decode()
    assert asked.body["context_management"] == {"edits": []}
    assert asked.path == f"{Messages.path}?beta=true"
    assert asked.headers["anthropic-beta"] == "context-1"


@over_wires
def test_a_mapped_model_is_all_that_changes(talk: type[Talk]) -> None:
    body = talk("").body(odd={"n": 1.50, "big": 12345678901234567890123})
    with between(talk.wire, WEATHER, map=[f"{MODEL}=theirs"]) as (running, upstream):
        post(running.url, talk.path, body)
    (request,) = upstream.requests
    in_path = talk is Generate
    assert request.body == (body if in_path else {**body, "model": "theirs"})
    assert request.path == (talk.path.replace(MODEL, "theirs") if in_path else talk.path)
    assert b"1.5" in request.content
    assert (running.row()["asked"], running.row()["model"]) == (MODEL, "theirs")


@pytest.mark.parametrize("stream", [True, False])
def test_of_a_mapped_model_the_client_hears_the_name_that_it_knows(stream: bool) -> None:
    """Claude Code throws thoughts away that are of another model than it asked."""
    told = call("ask", model="theirs")
    chunks = [
        chunk.replace(b"claude-sonnet-4-5-20250929", b"theirs")
        for chunk in script(think("Hm."), told).chunks("anthropic")
    ]
    message = b'{"id":"msg_1","model": "theirs","content":[{"input":{"model":"theirs"}}]}'
    kind, body = ("text/event-stream", chunks) if stream else ("application/json", [message])
    upstream = Server(lambda number: Answer(200, kind, body))
    with between("anthropic", upstream, map=[f"{MODEL}=theirs"]) as (running, _):
        heard = post(running.url, Messages.path, Messages("", stream=stream).body())
    named = b"".join(body).replace(b'"theirs"', f'"{MODEL}"'.encode(), 1).decode()
    assert heard.text.replace('"model":"', '"model": "') == named.replace('"model":"', '"model": "')


@over_wires
def test_a_conversation_with_tools_is_that_of_the_wire_itself(talk: type[Talk]) -> None:
    with between(talk.wire, turns(WEATHER, script(say("7 degrees.")))) as (running, _):
        client = talk(running.url)
        first = client.ask("Where is it cold?")
        last = client.answer({call.id: f"cold in {call.arguments['city']}" for call in first.calls})
    assert first.text == "Let me look."
    assert [(c.name, c.arguments) for c in first.calls] == [
        ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}),
    ]  # fmt: skip
    assert last.text == "7 degrees."
    assert [row["state"] for row in running.rows] == ["done", "done"]


def frames(wire: str) -> list[int]:
    """Where each frame ends."""
    ends, at = list[int](), 0
    for chunk in WEATHER.chunks(wire):
        at += len(chunk)
        ends.append(at)
    return ends


def is_whole(wire: str, at: int) -> bool:
    """Does the answer come to its end before this byte, whatever marks the end of its stream?"""
    marks = {"anthropic": b'"stop_reason":"tool_use"', "openai_responses": b"response.completed",
             "openai_chat": b'"finish_reason":"tool_calls"',
             "gemini": b'"finishReason":"STOP"'}  # fmt: skip
    found = WEATHER.bytes(wire).find(marks[wire])
    return at >= WEATHER.bytes(wire).find(b"\n\n", found) + 2


CUTS = [(t, at, a) for t in TALKS for at in some(frames(t.wire)[:-1], 6) for a in (False, True)]


@pytest.mark.parametrize(("talk", "at", "abrupt"), CUTS)
def test_a_cut_between_two_frames_runs_nothing_and_is_told(
    talk: type[Talk], at: int, abrupt: bool
) -> None:
    with between(talk.wire, script(*WEATHER.steps, cut(at=at, abrupt=abrupt))) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    if is_whole(talk.wire, at):
        assert len(would_run(talk.wire, heard)) in (0, 2)
        return
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None
    assert not heard.broke
    assert running.row()["state"] in ("broken", "refused")


@over_wires
def test_what_is_cut_before_it_says_anything_is_a_status(talk: type[Talk]) -> None:
    first = 1 if talk is Generate else frames(talk.wire)[0]  # where each frame says something
    with between(talk.wire, script(say("Hi"), cut(at=first))) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 502
    assert heard.error is not None


@over_wires
def test_a_client_that_believes_each_closing_mark_runs_early_only_if_that_is_wanted(
    talk: type[Talk],
) -> None:
    at = 0 if talk.wire == "openai_chat" else 1
    steps = (call("get_weather", city="Oslo"), say("More."), cut(after="call"))
    with between(talk.wire, script(*steps), eager=True) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert len(would_run(talk.wire, heard)) == at
    assert heard.error is not None


@pytest.mark.parametrize("talk", IN_PIECES, ids=lambda talk: talk.wire)
@pytest.mark.parametrize("ends", [True, False], ids=["ends", "is_cut"])
def test_a_call_that_is_not_whole_is_not_run_early_either(talk: type[Talk], ends: bool) -> None:
    chunks = script(say("Look."), OSLO).chunks(talk.wire)
    chunks = [chunk.replace(b'Oslo\\"}', b"Os") for chunk in chunks]
    with between(talk.wire, telling(talk.wire, chunks if ends else chunks[:-1]), eager=True) as (
        running, _,
    ):  # fmt: skip
        heard = post(running.url, talk.path, talk("").body())
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None


@over_wires
def test_a_refusal_is_handed_on_as_it_is(talk: type[Talk]) -> None:
    refused = script(error("rate_limit", "Slow down", status=429))
    with between(talk.wire, refused) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 429
    assert json.loads(heard.text) == json.loads(b"".join(refused.answer(talk.wire).chunks))
    assert running.row()["state"] == "refused"
    assert running.row()["error"] == "Slow down"


@over_wires
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><h1>Bad gateway</h1>", "HTTP 502 Bad Gateway: <html><h1>Bad gateway</h1>"),
        (b'{"detail":"No room"}', "No room"),
        (b'{"error":"No room","type":"error"}', "No room"),
        (b'{"error":{"code":7},"type":"error"}', 'HTTP 502 Bad Gateway: {"error":{"code":7}'),
        (b'[{"error":{"message":"No room"}}]', "No room"),
        (b'{"error":{"message":"No ro', 'HTTP 502 Bad Gateway: {"error":{"message":"No ro'),
        (b"", "HTTP 502 Bad Gateway, without a body"),
    ],
)
def test_a_refusal_in_another_form_is_told_in_the_client_s(
    talk: type[Talk], body: bytes, words: str
) -> None:
    with between(talk.wire, Server(lambda number: Answer(502, "text/html", [body]))) as (
        running, _,
    ):  # fmt: skip
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 502
    assert heard.headers["content-type"] == "application/json"
    assert heard.error is not None
    assert heard.error["message"].startswith(words)
    assert ("type" in heard.payloads[0]) is (talk is Messages)


@over_wires
def test_of_a_refusal_in_its_own_form_every_field_goes_on(talk: type[Talk]) -> None:
    body = b'{"type": "error", "error": {"message": "No", "metadata": {"raw": 1}}, "id": "r"}'
    with between(talk.wire, Server(lambda number: Answer(429, "application/json", [body]))) as (
        running, _,
    ):  # fmt: skip
        assert post(running.url, talk.path, talk("").body()).text == body.decode()


@over_wires
@pytest.mark.parametrize("wire", ["", "ollama"], ids=["same", "other"])
def test_a_refusal_whose_words_do_not_end_is_told_with_those_that_came(
    talk: type[Talk], wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WORDS", 0.05)
    over = threading.Event()

    def slow() -> Iterator[bytes]:
        yield b"Busy, because"
        assert over.wait(30)

    answers = Server(lambda number: Answer(503, "text/plain", slow()))  # type: ignore[arg-type]
    with between(wire or talk.wire, answers) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
        over.set()
    assert heard.status == 503
    assert heard.error is not None
    assert heard.error["message"] == "HTTP 503 Service Unavailable: Busy, because"


@over_wires
@pytest.mark.parametrize("wire", ["", "ollama"], ids=["same", "other"])
def test_a_key_that_was_refused_is_not_tried_again(talk: type[Talk], wire: str) -> None:
    asked = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(401, headers={"x-should-retry": "true"}, json={"error": "No"})

    http = httpx.AsyncClient(transport=httpx.MockTransport(refuse))
    with gateway(f"{wire or talk.wire}=http://upstream", http=http, retry=3) as running:
        assert post(running.url, talk.path, talk("").body()).status == 401
    assert len(asked) == 1


@over_wires
def test_a_failure_that_comes_first_is_a_status(talk: type[Talk]) -> None:
    with between(talk.wire, script(error("overloaded", "Too busy"))) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 503
    assert heard.error is not None
    assert heard.error["message"] == "Too busy"


@over_wires
def test_the_provider_s_own_error_in_a_stream_is_handed_on_once(talk: type[Talk]) -> None:
    failing = script(say("Let me look."), error("overloaded", "Too busy"))
    with between(talk.wire, failing) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 200
    assert heard.text.encode() == failing.bytes(talk.wire)
    assert running.row()["state"] == "broken"


@over_wires
def test_it_is_asked_again_while_nothing_was_shown(talk: type[Talk]) -> None:
    answers = turns(
        script(error("overloaded", status=503)), script(say("Hi"), cut(at=1)), script(say("Hi"))
    )
    with between(talk.wire, answers, retry=2) as (running, upstream):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 200
    assert heard.error is None
    assert len(upstream.requests) == running.row()["attempts"] == 3


@over_wires
def test_it_is_never_asked_again_once_something_was_shown(talk: type[Talk]) -> None:
    answers = turns(script(say("Hi"), say("there"), cut(after="say")), script(say("Hi")))
    with between(talk.wire, answers, retry=5) as (running, upstream):
        heard = post(running.url, talk.path, talk("").body())
    assert len(upstream.requests) == 1
    assert heard.error is not None


@over_wires
@pytest.mark.parametrize("less", [1, 2])
def test_an_end_without_its_blank_line_is_heard(talk: type[Talk], less: int) -> None:
    whole = WEATHER.bytes(talk.wire)
    mark = {"openai_chat": b'"finish_reason":"tool_calls"'}.get(talk.wire, b"")
    last = whole.find(b"\n\n", whole.rfind(mark)) + 2 if mark else len(whole)
    with between(talk.wire, telling(talk.wire, [whole[: last - less]])) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.text.encode() == whole[: last - less] + b"\n\n"
    assert len(would_run(talk.wire, heard)) == 2
    assert running.row()["state"] == "done"


# --- ids with which a client cannot work ----------------------------------------------------------


OSLO, ROME = call("get_weather", city="Oslo"), call("get_weather", city="Rome")
ODD = {
    "no ids": (OSLO, missing_id(), ROME, missing_id()),
    "one id for both": (OSLO, ROME),
    "no second id": (OSLO, ROME, missing_id()),
}


def ids_of(wire: str, answer: Script) -> list[str]:
    return [event.id for event in answer.events(wire) if isinstance(event, ToolCall)]


def renamed(wire: str, answer: Script, ids: list[str]) -> list[bytes]:
    """The chunks of a script, its calls under these ids."""
    chunks = answer.chunks(wire)
    for old, new in zip(ids_of(wire, answer), ids, strict=True):
        chunks = [chunk.replace(old.encode(), new.encode()) for chunk in chunks]
    return chunks


def test_calls_without_an_id_stay_as_they_are_where_none_is_needed() -> None:
    answer = script(say("Let me look."), *ODD["no ids"])
    with between("gemini", answer) as (running, _):
        heard = post(running.url, Generate.path, Generate("").body())
    assert heard.text.encode() == answer.bytes("gemini")
    assert [call["id_source"] for call in running.row()["calls"]] == ["synthetic", "synthetic"]
    assert running.row()["notes"].get("call.retold") is None


ODDLY = [
    (talk, odd) for talk in TALKS for odd in ODD if talk is not Generate or odd == "one id for both"
]


@pytest.mark.parametrize("before", [(), (say("Let me look."),)], ids=["first", "after_text"])
@pytest.mark.parametrize(("talk", "odd"), ODDLY)
def test_calls_without_an_id_of_their_own_get_one(
    talk: type[Talk], odd: str, before: tuple[Step, ...]
) -> None:
    answer = script(*before, *ODD[odd])
    same = ["call_1", "call_1"] if odd == "one id for both" else ids_of(talk.wire, answer)
    last = script(say("7 degrees.")).chunks(talk.wire)
    with between(talk.wire, telling(talk.wire, renamed(talk.wire, answer, same), last)) as (
        running, upstream,
    ):  # fmt: skip
        client = talk(running.url)
        first = client.ask("Where is it cold?")
        said = client.answer({c.id: f"cold in {c.arguments['city']}" for c in first.calls})
    assert said.text == "7 degrees."
    assert [(c.name, c.arguments) for c in first.calls] == [
        ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}),
    ]  # fmt: skip
    ids = [c.id for c in first.calls]
    assert len(set(ids)) == 2
    assert all(ids)
    assert results_in(talk.wire, upstream.requests[1].body) == [
        ("Oslo", "cold in Oslo"), ("Rome", "cold in Rome"),
    ]  # fmt: skip
    assert [row["state"] for row in running.rows] == ["done", "done"]


def results_in(wire: str, body: Any) -> list[tuple[str, str]]:
    turns = read_request(wire, body).conversation
    return [(r.call.arguments["city"], r.text) for turn in turns for r in turn.results]


@over_wires
def test_an_id_of_an_earlier_turn_is_not_told_again(talk: type[Talk]) -> None:
    again = [renamed(talk.wire, script(one), ["call_1"]) for one in (OSLO, ROME)]
    last = script(say("Cold.")).chunks(talk.wire)
    with between(talk.wire, telling(talk.wire, *again, last)) as (running, upstream):
        client = talk(running.url)
        first = client.ask("Is it cold?").calls
        second = client.answer({first[0].id: "yes"}).calls
        client.answer({second[0].id: "still"})
    assert first[0].id == "call_1"
    assert second[0].id != "call_1"
    assert results_in(talk.wire, upstream.requests[2].body) == [("Oslo", "yes"), ("Rome", "still")]


@over_wires
def test_what_is_cut_after_such_a_call_is_told(talk: type[Talk]) -> None:
    cut_off = script(say("Let me look."), *ODD["no ids"], say("More."), cut(after="call"))
    with between(talk.wire, cut_off) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None
    assert running.row()["state"] == "broken"
