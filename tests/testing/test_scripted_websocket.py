"""A scripted WebSocket: sessions, the websockets library and the openai SDK hear what is scripted."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import anyio
import pytest

from streamnorm.errors import StreamTruncated, UsageError
from streamnorm.events import BrokenToolCall, Failed, Finish
from streamnorm.sessions import session
from streamnorm.testing import (
    bad_json,
    call,
    chunked,
    cut,
    error,
    finish,
    hear,
    keep_alives,
    say,
    script,
    think,
    turns,
)
from streamnorm.testing.loopback import THREAD
from tests.conftest import assert_well_formed, calls_of, text_of

client = pytest.importorskip("websockets.asyncio.client")
exceptions = pytest.importorskip("websockets.exceptions")

WIRE = "openai_responses"
LOOK = script(say("Let me look."), call("get_weather", city="Oslo"))
TELL = script(say("It rains."))


def ask(lane=None, **fields):
    named = {} if lane is None else {"stream_id": lane}
    return json.dumps({"type": "response.create", "model": "m", **named, **fields})


@asynccontextmanager
async def talking(server, **options):
    async with (
        server,
        client.connect(server.url + "/v1/responses", additional_headers={"X-Key": "k"}) as socket,
        session(socket, seed="s", **options) as streams,
    ):
        yield socket, streams


async def heard(streams):
    return [event async for event in await anext(streams)]


async def all_heard(streams):
    return [(stream.lane, [event async for event in stream]) async for stream in streams]


async def until_closed(socket):
    texts = []
    while True:
        try:
            texts.append(await socket.recv())
        except exceptions.ConnectionClosed as closed:
            return texts, closed


# --- turns and lanes ------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai_responses", "azure_foundry"])
async def test_each_request_is_answered_by_the_next_turn(provider):
    server = turns(LOOK, TELL).websocket(provider)
    async with talking(server) as (socket, streams):
        await socket.send(ask(input="What is it like in Oslo?"))
        first = await heard(streams)
        await socket.send(ask(previous_response_id=first[0].response_id))
        second = await heard(streams)
        assert not streams.notes
    assert_well_formed(first)
    assert text_of(first) == "Let me look."
    assert [(c.name, c.arguments) for c in calls_of(first)] == [("get_weather", {"city": "Oslo"})]
    assert (text_of(second), second[-1].reason) == ("It rains.", "stop")
    asked = [request.body for request in server.requests]
    assert [body.get("input") for body in asked] == ["What is it like in Oslo?", None]
    assert asked[1]["previous_response_id"] == first[0].response_id != second[0].response_id
    assert (server.requests[0].path, server.requests[0].headers["x-key"]) == ("/v1/responses", "k")


async def test_what_is_told_is_what_the_script_tells_over_http():
    server = LOOK.websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask())
        assert await heard(streams) == LOOK.events(WIRE)


async def test_one_script_answers_every_request_under_ids_of_its_own():
    async with talking(LOOK.websocket(WIRE)) as (socket, streams):
        ids = set()
        for _ in range(3):
            await socket.send(ask())
            events = await heard(streams)
            ids |= {events[0].response_id, calls_of(events)[0].id}
    assert len(ids) == 6


async def test_a_turn_too_many_is_refused_with_a_sentence():
    async with talking(turns(TELL).websocket(WIRE)) as (socket, streams):
        await socket.send(ask())
        assert isinstance((await heard(streams))[-1], Finish)
        await socket.send(ask("b"))
        stream = await anext(streams)
        (failed,) = [event async for event in stream if isinstance(event, Failed)]
    assert stream.lane == "b"
    assert "request 2 came, but only 1 turns are scripted" in failed.error


async def test_requests_in_lanes_are_answered_side_by_side_message_by_message():
    server = turns(script(say("a" * 30)), script(say("b" * 30))).websocket(WIRE, lanes=2)
    async with server, client.connect(server.url) as socket:
        await socket.send(ask("a"))
        await socket.send(ask("b"))
        messages = [json.loads(await socket.recv()) for _ in range(28)]
    assert [m["stream_id"] for m in messages] == ["a", "b"] * 14
    assert [m["type"] for m in messages[:2]] == ["response.created"] * 2
    assert [m["type"] for m in messages[-2:]] == ["response.completed"] * 2
    assert [m["sequence_number"] for m in messages] == [n for n in range(14) for _ in "ab"]


async def test_a_session_reads_lanes_each_for_itself():
    server = turns(LOOK, TELL, TELL).websocket(WIRE, lanes=2)
    texts = {}

    async def read(stream):
        texts[stream.lane] = text_of([event async for event in stream])

    async with talking(server) as (socket, streams):
        await socket.send(ask("a"))
        await socket.send(ask("b"))
        async with anyio.create_task_group() as tasks:
            for _ in "ab":
                tasks.start_soon(read, await anext(streams))
        await socket.send(ask("c"))  # the last turn waits for no other
        await read(await anext(streams))
    assert texts == {"a": "Let me look.", "b": "It rains.", "c": "It rains."}


@pytest.mark.parametrize("only", [
    {"generate": False}, {"prompt_cache_options": {"prewarm": True}, "generate": True},
])  # fmt: skip
async def test_a_request_that_only_prepares_is_answered_without_output_and_takes_no_turn(only):
    server = turns(LOOK, TELL).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask("a", **only))
        await socket.send(ask("a", input="What is it like in Oslo?"))
        prepared, first = await anext(streams), await anext(streams)
        told = [event async for event in prepared]
        assert (prepared.lane, [event.kind for event in told]) == (
            "a", ["stream_start", "usage", "finish"],
        )  # fmt: skip
        assert text_of([event async for event in first]) == "Let me look."
        await socket.send(ask("a", **only))
        again = await heard(streams)
        await socket.send(ask("a"))
        assert text_of(await heard(streams)) == "It rains."
        assert not streams.notes
    assert told[0].response_id != again[0].response_id
    assert told[-1].reason == "stop"
    assert [request.body.get("input") for request in server.requests] == [
        "What is it like in Oslo?", None,
    ]  # fmt: skip
    assert [only.items() <= message.body.items() for message in server.messages] == [
        True, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("only", [
    {"generate": True}, {"generate": None}, {"prompt_cache_options": {"prewarm": False}},
    {"prompt_cache_options": "prewarm"},
])  # fmt: skip
async def test_a_request_that_wants_output_is_answered_by_a_turn(only):
    server = turns(TELL).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask(**only))
        assert text_of(await heard(streams)) == "It rains."
    assert len(server.requests) == 1


async def test_the_sdk_reads_what_is_said_to_a_request_that_only_prepares():
    openai = pytest.importorskip("openai")
    async with (
        turns(TELL).websocket(WIRE) as server,
        openai.AsyncOpenAI(api_key="sk-test", base_url=server.http_url + "/v1") as sdk,
        sdk.responses.connect() as connection,
    ):
        await connection.response.create(model="m", input="x", generate=False)
        events = [await connection.recv() for _ in range(3)]
    assert [event.type for event in events] == [
        "response.created", "response.in_progress", "response.completed",
    ]  # fmt: skip
    assert (events[-1].response.output, events[-1].response.usage.output_tokens) == ([], 0)


async def test_the_last_turn_lets_nobody_wait_on_any_connection():
    server = turns(LOOK, TELL).websocket(WIRE, lanes=2)
    async with (
        server,
        client.connect(server.url) as one, session(one) as ones,
        client.connect(server.url) as two, session(two) as twos,
    ):  # fmt: skip
        await one.send(ask())
        await one.send('{"type":"no.such"}')
        assert (await heard(ones))[-1].kind == "failed"  # so the request before it is taken
        await two.send(ask())
        assert text_of(await heard(twos)) == "It rains."
        assert text_of(await heard(ones)) == "Let me look."


# --- steering and injection -----------------------------------------------------------------------

STEERED = script(say("The ferry"), hear("steer"), finish("pause"))


async def test_an_answer_waits_to_be_steered_and_the_next_turn_follows_unasked():
    server = turns(STEERED, TELL).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask("a"))
        first = await anext(streams)
        start = await anext(first)
        steer = {"type": "response.steer", "previous_response_id": start.response_id}
        await socket.send(json.dumps(steer | {"input": "The weather, please."}))
        rest = [event async for event in first]
        second = await anext(streams)
        assert (second.lane, text_of([event async for event in second])) == ("a", "It rains.")
    (accepted,) = [event for event in rest if event.kind == "unrecognized"]
    assert accepted.wire_kind == "response.steer.accepted"
    assert accepted.payload["steer"]["previous_response_id"] == start.response_id
    assert (rest[-1].kind, rest[-1].reason) == ("finish", "pause")
    assert [m.body["type"] for m in server.messages] == ["response.create", "response.steer"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("wrapped", [lambda one: one, turns])
async def test_what_pauses_is_not_followed_by_itself(wrapped):
    server = wrapped(script(say("A"), finish("pause"))).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask("a"))
        assert (await heard(streams))[-1].reason == "pause"
        stream = await anext(streams)
        (failed,) = [event async for event in stream]
    assert stream.lane == "a"
    assert 'turn 2 follows finish("pause") without a request, but only 1 turns' in failed.error


async def test_what_waits_does_not_hold_up_other_lanes():
    server = turns(STEERED, TELL, LOOK).websocket(WIRE, lanes=2)
    async with talking(server) as (socket, streams):
        await socket.send(ask("a"))
        await socket.send(ask("b"))
        first, second = await anext(streams), await anext(streams)
        assert text_of([event async for event in second]) == "It rains."
        start = await anext(first)
        await socket.send(
            json.dumps({"type": "response.steer", "previous_response_id": start.response_id})
        )
        assert [event async for event in first][-1].reason == "pause"
        assert calls_of(await heard(streams))[0].name == "get_weather"


async def test_an_answer_waits_for_what_is_handed_in():
    server = script(call("tides"), hear("inject"), say("High at four.")).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask())
        stream = await anext(streams)
        start = called = await anext(stream)
        while called.kind != "tool_call":
            called = await anext(stream)
        output = [{"type": "function_call_output", "call_id": called.id, "output": "16:00"}]
        inject = {"type": "response.inject", "response_id": start.response_id, "input": output}
        await socket.send(json.dumps(inject))
        events = [event async for event in stream]
    kinds = [e.wire_kind for e in events if e.kind == "unrecognized"]
    assert kinds == ["response.inject.created"]
    assert text_of(events) == "High at four."
    assert server.messages[1].body["input"] == output


async def test_an_answer_hears_only_what_its_script_waits_for():
    async with talking(script(hear("inject"), say("Yes.")).websocket(WIRE)) as (socket, streams):
        await socket.send(ask())
        stream = await anext(streams)
        id = (await anext(stream)).response_id
        await socket.send(json.dumps({"type": "response.steer", "previous_response_id": id}))
        refused = await anext(stream)
        await socket.send(json.dumps({"type": "response.inject", "response_id": id}))
        events = [event async for event in stream]
    assert refused.wire_kind == "response.steer.failed"
    assert text_of(events) == "Yes."


@pytest.mark.parametrize(("what", "key"), [
    ("steer", "previous_response_id"), ("inject", "response_id"),
])  # fmt: skip
async def test_what_no_answer_waits_for_fails_and_comes_back(what, key):
    async with talking(turns(TELL, TELL).websocket(WIRE)) as (socket, streams):
        await socket.send(ask())
        events = await heard(streams)
        message = {"type": f"response.{what}", key: events[0].response_id, "input": ["x"]}
        await socket.send(json.dumps(message))
        await socket.send(ask())
        await heard(streams)
        ((lane, notice),) = streams.notices
    assert (lane, notice.wire_kind) == (None, f"response.{what}.failed")
    assert notice.payload["error"]["code"] == "response_already_completed"
    assert (notice.payload.get("steer") or notice.payload)["input"] == ["x"]


@pytest.mark.parametrize(("message", "why"), [
    ('{"type":"no.such"}', "Unknown message: 'no.such'."),
    ('{"type":["a"]}', "Unknown message: ['a']."),
    ("{}", "Unknown message: None."),
    ("[]", "The message is JSON, but not an object."),
    ("7", "The message is JSON, but not an object."),
    ("{", "The message is not JSON."),
    ("é", "The message is not JSON."),
    (b"\xff", "The message is not JSON."),
    ("[" * 200000, "The message is nested too deeply."),
])  # fmt: skip
async def test_what_is_no_message_of_the_wire_is_refused(message, why):
    server = TELL.websocket(WIRE)
    async with server, client.connect(server.url) as socket:
        await socket.send(message)
        said = json.loads(await socket.recv())
        await socket.send(ask())
        assert json.loads(await socket.recv())["type"] == "response.created"
    assert (said["type"], said["status"], said["error"]["code"]) == (
        "error", 400, "invalid_request_error",
    )  # fmt: skip
    assert said["error"]["message"] == why
    assert len(server.messages) == 2
    assert len(server.requests) == 1


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ends", "reason"), [
    (cut(inside="call"), "truncated"),
    (cut(inside="call", code=1001), "truncated"),
    (cut(inside="call", code=1011), "transport"),
    (cut(inside="call", code=4008), "transport"),
    (cut(inside="call", abrupt=True), "transport"),
])  # fmt: skip
async def test_a_connection_that_ends_in_mid_turn_fails_every_lane_and_breaks_its_calls(
    ends, reason
):
    broken = script(say("Deleting."), call("delete", path="/srv"), ends)
    server = turns(broken, script(call("tides", harbour="Höfn" * 20))).websocket(WIRE, lanes=2)
    async with talking(server) as (socket, streams):
        await socket.send(ask("a"))
        await socket.send(ask("b"))
        told = await all_heard(streams)
    assert [lane for lane, _ in told] == ["a", "b"]
    for _, events in told:
        assert calls_of(events) == []
        assert [e.reason for e in events if isinstance(e, BrokenToolCall)] == ["truncated"]
        assert isinstance(events[-1], Failed)
        assert events[-1].reason == reason


@pytest.mark.parametrize("code", [1000, 1011, 3000, 4999])
async def test_the_close_code_is_the_one_that_was_ordered(code):
    server = script(say("Hi"), cut(code=code)).websocket(WIRE)
    async with server, client.connect(server.url) as socket:
        await socket.send(ask())
        texts, closed = await until_closed(socket)
    assert closed.rcvd.code == code
    assert json.loads(texts[-1])["type"] == "response.output_item.done"


@pytest.mark.parametrize(
    "code", [0, 999, 1004, 1005, 1006, 1015, 2000, 5000, 3000.5, 1000.0, "a", True]
)
def test_a_code_that_no_server_may_send_is_refused(code):
    with pytest.raises(UsageError) as refused:
        cut(code=code)
    assert str(refused.value) == (
        f"cut(code={code!r}): a WebSocket is closed with 1000 to 1003, 1007 to 1014 or 3000 to 4999"
    )


def test_a_connection_that_is_dropped_has_no_code():
    with pytest.raises(UsageError, match="a connection that is dropped is closed with no code"):
        cut(code=1011, abrupt=True)


@pytest.mark.parametrize("code", [1000, 1001])
async def test_a_connection_that_is_closed_well_before_any_response_is_raised(code):
    async with talking(script(say("x"), cut(at=0, code=code)).websocket(WIRE)) as (socket, streams):
        await socket.send(ask())
        with pytest.raises(StreamTruncated, match="closed before any response had begun"):
            await anext(streams)
        with pytest.raises(StopAsyncIteration):
            await anext(streams)


async def test_a_connection_that_is_closed_well_after_a_response_just_ends():
    server = turns(TELL, script(say("x"), cut(at=0))).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask())
        assert text_of(await heard(streams)) == "It rains."
        await socket.send(ask())
        assert await all_heard(streams) == []


async def test_a_request_that_is_refused_leaves_the_connection_open():
    refused = script(error("rate_limit", "Later.", status=429))
    async with talking(turns(refused, TELL).websocket(WIRE)) as (socket, streams):
        await socket.send(ask("a"))
        (failed,) = await heard(streams)
        await socket.send(ask("a"))
        assert text_of(await heard(streams)) == "It rains."
    assert (failed.reason, failed.code, failed.error) == (
        "provider_error", "rate_limit_exceeded", "Later.",
    )  # fmt: skip


async def test_an_error_in_an_answer_ends_it_and_not_the_connection():
    server = turns(script(say("Hi"), error("server")), TELL).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask())
        assert (await heard(streams))[-1].code == "server_error"
        await socket.send(ask())
        assert text_of(await heard(streams)) == "It rains."


async def test_messages_in_fragments_between_pings_say_the_same():
    server = script(*LOOK.steps, chunked(7), keep_alives()).websocket(WIRE)
    async with talking(server) as (socket, streams):
        await socket.send(ask())
        assert await heard(streams) == LOOK.events(WIRE)


async def test_a_message_that_is_no_json_fails_the_answers_that_are_open():
    server = turns(script(bad_json()), script(call("tides"))).websocket(WIRE, lanes=2)
    async with talking(server) as (socket, streams):
        await socket.send(ask("a"))
        await socket.send(ask("b"))
        told = [await heard(streams) for _ in "ab"]
    assert [events[-1].reason for events in told] == ["protocol", "protocol"]


# --- clients and servers --------------------------------------------------------------------------


async def test_the_openai_sdk_talks_with_it():
    openai = pytest.importorskip("openai")
    server = turns(script(think("Where?"), *LOOK.steps), TELL, STEERED, TELL).websocket(WIRE)
    async with (
        server,
        openai.AsyncOpenAI(api_key="sk-test", base_url=server.http_url + "/v1") as sdk,
        sdk.responses.connect() as connection,
    ):
        await connection.response.create(model="m", input="What is it like?")
        kinds = []
        while True:
            event = await connection.recv()
            kinds.append(event.type)
            if event.type == "response.completed":
                break
        assert event.response.output[-1].name == "get_weather"
        assert kinds[0] == "response.created"
        async with session(connection) as streams:
            await connection.response.create(model="m", input="And now?")
            assert text_of(await heard(streams)) == "It rains."
            await connection.response.create(model="m", input="More.")
            stream = await anext(streams)
            start = await anext(stream)
            await connection.response.steer(input="No.", previous_response_id=start.response_id)
            assert [event async for event in stream][-1].reason == "pause"
            assert text_of(await heard(streams)) == "It rains."
    assert server.requests[0].headers["authorization"] == "Bearer sk-test"
    assert [r.body["input"] for r in server.messages] == [
        "What is it like?", "And now?", "More.", "No.",
    ]  # fmt: skip


def left_behind(before: set[threading.Thread]) -> list[threading.Thread]:
    """The server waits for its own thread; a client's (its keep-alive) may take a moment to end."""
    others = set(threading.enumerate()) - before
    assert THREAD not in {thread.name for thread in others}
    for thread in others:
        thread.join(timeout=20)
    return [thread for thread in others if thread.is_alive()]


def test_a_blocking_client_reads_it_in_a_for_loop_and_nothing_is_left_behind():
    sync = pytest.importorskip("websockets.sync.client")
    before = set(threading.enumerate())
    with (
        turns(LOOK, TELL).websocket(WIRE) as server,
        sync.connect(server.url) as socket,
        session(socket) as streams,
    ):
        told = []
        for _ in range(2):
            socket.send(ask())
            told.append(text_of(list(next(streams))))
    assert told == ["Let me look.", "It rains."]
    assert left_behind(before) == []


async def test_several_connections_share_the_turns():
    server = turns(LOOK, TELL).websocket(WIRE)
    async with server:
        for expected in ("Let me look.", "It rains."):
            async with client.connect(server.url) as socket, session(socket) as streams:
                await socket.send(ask())
                assert text_of(await heard(streams)) == expected


async def test_a_client_that_goes_away_does_not_stop_the_server():
    server = script(say("word " * 5000)).websocket(WIRE)
    async with server:
        for _ in range(3):
            async with client.connect(server.url) as socket:
                await socket.send(ask())
                await socket.recv()
                socket.transport.abort()
        assert len(server.requests) == 3


def test_a_server_that_is_closed_closes_what_is_open():
    async def talk():
        with script(say("Hi"), hear()).websocket(WIRE) as server:
            socket = await client.connect(server.url)
            await socket.send(ask())
            await socket.recv()
        _, closed = await until_closed(socket)
        assert closed.rcvd.code == 1001
        with pytest.raises(OSError):
            await client.connect(server.url)

    before = set(threading.enumerate())
    asyncio.run(talk())
    assert left_behind(before) == []


# --- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_told_in_a_sentence():
    with pytest.raises(UsageError, match="anthropic cannot multiplex"):
        TELL.websocket("anthropic")
    with pytest.raises(UsageError, match="codex"):
        TELL.websocket("codex")
    with pytest.raises(UsageError, match="lanes=0: at least one request"):
        TELL.websocket(WIRE, lanes=0)
    with pytest.raises(UsageError, match="lanes='2': at least one request"):
        TELL.websocket(WIRE, lanes="2")
    with pytest.raises(UsageError, match="the server is not running"):
        _ = TELL.websocket(WIRE).url
    with pytest.raises(UsageError, match="anthropic hears nothing while it answers"):
        STEERED.bytes("anthropic")
    with pytest.raises(UsageError, match="hear\\(\\) is for one of steer, inject, not 'x'"):
        hear("x")


async def test_a_script_that_the_wire_cannot_say_is_refused_with_its_sentence():
    async with talking(script(finish("no such")).websocket(WIRE)) as (socket, streams):
        await socket.send(ask())
        assert "cannot finish with 'no such'" in (await heard(streams))[-1].error
