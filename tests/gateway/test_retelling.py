"""One wire on both sides, and a call that its client cannot tell by its id or its place: what was sent
stays as it was, the rest is told by us, and the upstream hears its own ids again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamnorm import BrokenToolCall, Event, Finish, Normalizer, ToolCall, ToolCallStart
from streamnorm.encoding.encoder import Encoder
from streamnorm.gateway import passing
from streamnorm.providers import provider_row
from streamnorm.testing import Server, call, say, script
from streamnorm.testing.http import Answer
from tests.conftest import Chat as Chunks
from tests.conftest import Messages as Blocks
from tests.conftest import load, some, sse, take_id, take_paths
from tests.gateway.kit import (
    TALKS,
    Chat,
    Messages,
    Responses,
    Talk,
    between,
    post,
    telling,
    would_run,
)

over_wires = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
LAST = script(say("Done."))
OSLO, ROME = '{"city":"Oslo"}', '{"city":"Rome"}'


def asked(
    talk: type[Talk], *answers: list[bytes], **options: Any
) -> tuple[list[Any], list[Any], Any]:
    """A conversation in which every call is answered: the calls of each turn, the bodies that the
    upstream heard, and the rows of the gateway."""
    last = LAST.chunks(talk.wire)
    with between(talk.wire, telling(talk.wire, *answers, last), **options) as (running, upstream):
        client = talk(running.url)
        heard = [client.ask("Where is it cold?").calls]
        while heard[-1]:
            results = {c.id: f"cold in {c.arguments['city']}" for c in heard[-1]}
            heard.append(client.answer(results).calls)
    return heard[:-1], [request.body for request in upstream.requests], running.rows


def cities(calls: list[Any]) -> list[str]:
    return [c.arguments["city"] for c in calls]


def renamed(wire: str, id: str, **arguments: str) -> list[bytes]:
    """The chunks of a call under that id."""
    told = script(call("get_weather", **arguments))
    (old,) = [event.id for event in told.events(wire) if isinstance(event, ToolCall)]
    return [chunk.replace(old.encode(), id.encode()) for chunk in told.chunks(wire)]


# --- every take -------------------------------------------------------------------------------------


TAKES = [path for path in take_paths() if path.parent.name in {talk.wire for talk in TALKS}]


@pytest.mark.parametrize("path", some(TAKES, 60), ids=take_id)
def test_a_take_goes_through_byte_for_byte_unless_a_call_is_odd_or_broken(path: Path) -> None:
    talk = next(talk for talk in TALKS if talk.wire == path.parent.name)
    take, body = load(path)
    pipe = Normalizer(talk.wire, seed=take.seed)
    events = pipe.feed(body) + pipe.close()
    starts = [e for e in events if isinstance(e, ToolCallStart) and e.runs_on == "client"]
    broken = [e for e in events if isinstance(e, BrokenToolCall) and e.runs_on == "client"]
    end = events[-1]
    normal = isinstance(end, Finish) and end.reason in ("stop", "tool_calls", "pause")
    with between(talk.wire, telling(talk.wire, [body])) as (running, _):
        answer = httpx.post(running.url + talk.path, json=talk("").body(), timeout=60)
    heard = answer.content
    needed = provider_row(talk.wire).part("encoder", Encoder).grammar.needed
    odd = any(pipe.is_odd(start, needs_id=needed) for start in starts)
    if is_of_a_socket(body):  # no answer to a request
        assert answer.status_code == 502
    elif normal and not broken and not odd and not body.startswith(b"["):  # which no client reads
        ended = body.endswith((b"\n", b"\r"))
        assert heard == (body if ended else body + b"\n\n")
    elif normal and not broken:
        again = Normalizer(talk.wire)
        assert made(again.feed(heard) + again.close()) == made(events)
    elif broken:
        assert made(Normalizer(talk.wire).feed(heard)) == []


def is_of_a_socket(body: bytes) -> bool:
    """The messages of a WebSocket, one behind the other."""
    return body.startswith(b"{") and b"}{" in body


def made(events: list[Event]) -> list[tuple[str, Any]]:
    """The calls that a client of the first answer would run."""
    calls = [e for e in events if isinstance(e, ToolCall) and e.runs_on == "client"]
    return (
        sorted((c.name, str(c.arguments)) for c in calls) if isinstance(events[-1], Finish) else []
    )


# --- ids ----------------------------------------------------------------------------------------------


@over_wires
def test_the_upstream_hears_the_id_again_that_it_gave_itself(talk: type[Talk]) -> None:
    odd = "functions.get weather:0"
    calls, bodies, rows = asked(talk, renamed(talk.wire, odd, city="Oslo"))
    assert cities(calls[0]) == ["Oslo"]
    assert calls[0][0].id != odd
    assert json.dumps(bodies[1]).count(odd) == 2  # the call and its result
    assert calls[0][0].id not in json.dumps(bodies[1])
    assert rows[0]["notes"] == {"call.retold": 1}
    assert rows[1]["notes"] == {}


def test_an_id_that_is_only_long_is_as_good_as_any() -> None:
    """vLLM's have 46 characters; no client minds, and it is their own server that reads them."""
    long = "chatcmpl-tool-" + "0123456789abcdef" * 2
    with between("openai_chat", telling("openai_chat", renamed("openai_chat", long, city="Oslo"))) as (
        running, _,
    ):  # fmt: skip
        heard = post(running.url, Chat.path, Chat("").body())
    assert heard.text.encode() == b"".join(renamed("openai_chat", long, city="Oslo"))


def test_where_ids_reach_for_a_turn_the_same_one_goes_back_in_each() -> None:
    again = [renamed("openai_chat", "call_0", city=city) for city in ("Oslo", "Rome", "Bern")]
    calls, bodies, _ = asked(Chat, *again)
    assert [cities(turn) for turn in calls] == [["Oslo"], ["Rome"], ["Bern"]]
    assert len({turn[0].id for turn in calls}) == 3
    ids = [m["tool_call_id"] for m in bodies[3]["messages"] if m["role"] == "tool"]
    assert ids == ["call_0", "call_0", "call_0"]


@pytest.mark.parametrize("talk", [Messages, Responses], ids=lambda talk: talk.wire)
def test_where_ids_reach_for_a_request_each_call_goes_back_under_one_of_its_own(talk) -> None:
    again = [renamed(talk.wire, "call_0", city=city) for city in ("Oslo", "Rome", "Bern")]
    calls, bodies, _ = asked(talk, *again)
    ids = [turn[0].id for turn in calls]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 3
    assert all(json.dumps(bodies[3]).count(f'"{id}"') == 2 for id in ids)


def test_nothing_is_changed_in_a_request_but_ids_that_were_made_here() -> None:
    with between("anthropic", LAST) as (running, upstream):
        body = Messages("").body(system="toolu_0123456789abcdefghijkl")
        text = json.dumps(body, indent=3).encode()
        httpx.post(running.url + Messages.path, content=text, timeout=60)
    assert upstream.requests[0].content == text


# --- places -------------------------------------------------------------------------------------------


def test_two_calls_on_one_index_are_two() -> None:
    both = [
        Chunks.call(0, "call_1", "get_weather", OSLO),
        Chunks.call(0, "call_2", "get_weather", ROME),
    ]
    calls, _, rows = asked(Chat, [*both, Chunks.end()])
    assert [(c.id, c.arguments["city"]) for c in calls[0]] == [
        ("call_1", "Oslo"),
        ("call_2", "Rome"),
    ]
    assert rows[0]["notes"] == {"call.index_reused": 1, "call.retold": 1}


@pytest.mark.parametrize("chunks", ["apart", "together"])
def test_what_was_sent_before_an_odd_call_stays_as_it_was(chunks: str) -> None:
    """The places that it took are taken: here the first call has the index 5."""
    begun = [Chunks.text("Hi"), Chunks.call(5, "call_1", "get_weather", '{"city":'),
             Chunks.call(5, None, None, '"Os')]  # fmt: skip
    rest = [
        Chunks.call(6, None, "get_weather", ROME),
        Chunks.call(5, None, None, 'lo"}'),
        Chunks.end(),
    ]
    body = [*begun, *rest] if chunks == "apart" else [b"".join(begun + rest)]
    with between("openai_chat", telling("openai_chat", body)) as (running, _):
        heard = post(running.url, Chat.path, Chat("").body())
    assert heard.text.encode().startswith(b"".join(begun))
    pieces: dict[int, str] = {}
    for payload in heard.payloads:
        for choice in payload["choices"]:
            for entry in choice["delta"].get("tool_calls", []):
                at = entry["index"]
                pieces[at] = pieces.get(at, "") + entry["function"]["arguments"]
    assert pieces == {5: OSLO, 6: ROME}


@pytest.mark.parametrize("chunks", ["apart", "together"])
def test_blocks_that_say_nothing_take_their_index_too(chunks: str) -> None:
    empty = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    begun = [Blocks.START, sse(empty, "content_block_start"), Blocks.close(0),
             Blocks.open(1, "toolu_1", "get_weather"), Blocks.args(1, OSLO)]  # fmt: skip
    rest = [Blocks.close(1), Blocks.open(2, None, "get_weather"), Blocks.args(2, ROME), Blocks.close(2),
            Blocks.end()]  # fmt: skip
    body = [*begun, *rest] if chunks == "apart" else [b"".join(begun + rest)]
    with between("anthropic", telling("anthropic", body)) as (running, _):
        heard = post(running.url, Messages.path, Messages("").body())
    assert heard.text.encode().startswith(b"".join(begun))
    starts = [(p["index"], p["content_block"]["type"]) for p in heard.payloads
              if p["type"] == "content_block_start"]  # fmt: skip
    assert starts == [(0, "text"), (1, "tool_use"), (2, "tool_use")]
    stops = [p["index"] for p in heard.payloads if p["type"] == "content_block_stop"]
    assert stops == [0, 1, 2]
    assert would_run("anthropic", heard) == ["get_weather", "get_weather"]


def response(*frames: tuple[str, dict[str, Any]]) -> list[bytes]:
    head = {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "output": [],
        "status": "in_progress",
    }
    told = [("response.created", {"response": head}), *frames,
            ("response.completed", {"response": {**head, "status": "completed"}})]  # fmt: skip
    return [sse({"type": k, "sequence_number": n, **f}, k) for n, (k, f) in enumerate(told)]


def test_items_keep_their_ids_and_the_next_ones_follow() -> None:
    def item(
        at: int, id: str, arguments: str, call_id: str | None
    ) -> list[tuple[str, dict[str, Any]]]:
        said: dict[str, Any] = {
            "type": "function_call",
            "id": id,
            "name": "get_weather",
            "arguments": "",
        }
        if call_id is not None:
            said["call_id"] = call_id
        where = {"output_index": at, "item_id": id}
        return [
            ("response.output_item.added", {"output_index": at, "item": said}),
            ("response.function_call_arguments.delta", {**where, "delta": arguments}),
            ("response.function_call_arguments.done", {**where, "arguments": arguments}),
            ("response.output_item.done",
             {"output_index": at, "item": {**said, "arguments": arguments, "status": "completed"}}),
        ]  # fmt: skip

    odd = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    body = response(
        ("response.output_item.added", {"output_index": 0, "item": odd}),
        ("response.output_item.done", {"output_index": 0, "item": odd}),
        *item(1, "fc_a", OSLO, "call_1"), *item(2, "fc_b", ROME, None),
    )  # fmt: skip
    with between("openai_responses", telling("openai_responses", body)) as (running, _):
        heard = post(running.url, Responses.path, Responses("").body())
    assert heard.text.encode().startswith(b"".join(body[:5]))
    assert [p["sequence_number"] for p in heard.payloads] == list(range(len(heard.payloads)))
    done = [p for p in heard.payloads if p["type"] == "response.output_item.done"]
    assert [(p["output_index"], p["item"]["id"]) for p in done[:2]] == [(0, "cmp_1"), (1, "fc_a")]
    assert done[2]["output_index"] == 2
    output = heard.payloads[-1]["response"]["output"]
    assert [i["type"] for i in output] == ["compaction", "function_call", "function_call"]
    assert [json.loads(i["arguments"])["city"] for i in output[1:]] == ["Oslo", "Rome"]
    assert len({i["call_id"] for i in output[1:]}) == 2


# --- what cannot be told again ------------------------------------------------------------------------


@over_wires
def test_after_too_much_was_sent_an_odd_call_is_an_error(talk: type[Talk], monkeypatch) -> None:
    monkeypatch.setattr(passing, "KEPT", 100)
    answer = script(say("Let me look, and look again."), call("get_weather", city="Oslo"))
    (id,) = [event.id for event in answer.events(talk.wire) if isinstance(event, ToolCall)]
    odd = [chunk.replace(id.encode(), b"a b") for chunk in answer.chunks(talk.wire)]
    with between(talk.wire, telling(talk.wire, odd)) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None
    assert "too late" in heard.error["message"]
    assert running.row()["state"] == "broken"


def test_an_odd_call_in_one_of_several_answers_is_an_error() -> None:
    body = [Chunks.text("Hi"), Chunks.delta({"content": "Ho"}, choice=1),
            Chunks.call(0, None, "get_weather", OSLO), Chunks.end()]  # fmt: skip
    with between("openai_chat", telling("openai_chat", body)) as (running, _):
        heard = post(running.url, Chat.path, Chat("").body(n=2))
    assert would_run("openai_chat", heard) == []
    assert heard.error is not None
    assert "several answers" in heard.error["message"]


def test_an_odd_call_of_a_kind_that_cannot_be_told_otherwise_is_an_error() -> None:
    item = {"type": "local_shell_call", "id": "lsh_1", "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}}}  # fmt: skip
    body = response(
        (
            "response.output_item.added",
            {"output_index": 0, "item": {**item, "status": "in_progress"}},
        ),
        ("response.output_item.done", {"output_index": 0, "item": item}),
    )
    with between("openai_responses", telling("openai_responses", body)) as (running, _):
        heard = post(running.url, Responses.path, Responses("").body())
    assert heard.error is not None
    assert "response.output_item.done" not in heard.text


# --- several answers, and others that stay as they are --------------------------------------------------


def test_several_answers_go_through_as_they_came() -> None:
    """Two that use the same id and index: they are told apart by their choice."""
    body = [Chunks.text("Hi"), Chunks.call(0, "call_1", "get_weather", OSLO),
            Chunks.call(0, "call_1", "get_weather", ROME, choice=1),
            Chunks.delta({}, "tool_calls"), Chunks.delta({}, "tool_calls", 1), Chunks.DONE]  # fmt: skip
    with between("openai_chat", telling("openai_chat", body)) as (running, _):
        heard = post(running.url, Chat.path, Chat("").body(n=2))
    assert heard.text.encode() == b"".join(body)


def test_of_several_answers_one_that_the_limit_cut_does_not_spoil_the_others() -> None:
    body = [Chunks.call(0, "call_1", "get_weather", OSLO),
            Chunks.call(0, "call_2", "get_weather", '{"ci', choice=1),
            Chunks.delta({}, "tool_calls"), Chunks.delta({}, "length", 1), Chunks.DONE]  # fmt: skip
    with between("openai_chat", telling("openai_chat", body)) as (running, _):
        heard = post(running.url, Chat.path, Chat("").body(n=2))
    assert heard.text.encode() == b"".join(body)


def test_a_call_in_the_old_field_has_no_id_and_needs_none() -> None:
    function = {"name": "get_weather", "arguments": OSLO}
    body = [Chunks.delta({"role": "assistant", "content": None, "function_call": function}),
            Chunks.delta({}, "function_call"), Chunks.DONE]  # fmt: skip
    with between("openai_chat", telling("openai_chat", body)) as (running, _):
        heard = post(running.url, Chat.path, Chat("").body())
    assert heard.text.encode() == b"".join(body)


@over_wires
def test_a_whole_answer_is_handed_on_as_it_is_whatever_is_in_it(talk: type[Talk]) -> None:
    body = b'{"status": "queued", "background": true,  "output": [], "n": 1.50}'
    kind = "application/json"
    with between(talk.wire, Server(lambda number: Answer(200, kind, [body]))) as (running, _):
        heard = post(running.url, talk("", stream=False).path, talk("", stream=False).body())
    assert heard.text.encode() == body
    assert heard.headers["content-type"] == kind


# --- calls that are not whole -----------------------------------------------------------------------------


@pytest.mark.parametrize("talk", TALKS[:3], ids=lambda talk: talk.wire)  # others tell objects
def test_a_call_that_is_not_whole_does_not_reach_a_client_by_a_normal_end(talk: type[Talk]) -> None:
    cut = script(say("Hi"), call("get_weather", city="Oslo").with_raw('{"city":"Os'))
    assert isinstance(cut.events(talk.wire)[-1], Finish)
    with between(talk.wire, cut) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None
    assert "is not whole" in heard.error["message"]
    assert "Hi" in heard.text
    assert running.row()["state"] == "broken"
