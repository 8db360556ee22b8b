"""streamnorm.testing: a script says on every wire what was scripted, and fails as was ordered."""

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
import warnings

import anyio
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnorm import Normalizer
from streamnorm.captures import read_take
from streamnorm.errors import UnknownProvider, UsageError
from streamnorm.events import BrokenToolCall, ToolCall
from streamnorm.providers import PROVIDERS
from streamnorm.takes.recorder import Recorder
from streamnorm.testing import (
    bad_json,
    call,
    chunked,
    cut,
    delay,
    duplicate,
    error,
    finish,
    interleave,
    keep_alives,
    missing_id,
    result,
    say,
    script,
    show,
    think,
    turns,
    usage,
    wrong_index,
)
from streamnorm.testing.loopback import THREAD
from tests.conftest import CALLING, assert_well_formed, broken_of, calls_of, text_of

LOOK = script(say("Let me look."), call("get_weather", city="Oslo"), finish())
# Wires that tell a call at once, and those that close each call with a mark of its own.
WHOLE = {"gemini", "ollama", "mistral"}
OBJECTS = {"gemini", "ollama"}
UNCLOSED = {"openai_chat", "mistral", "mistral_conversations", "dashscope"}
SERVED = [name for name in CALLING if name not in ("mistral", "cohere", "ollama", "dashscope")]
on_every_wire = pytest.mark.parametrize("provider", CALLING)


def simple(events):
    return [(c.name, c.arguments) for c in calls_of(events)]


# --- what is scripted is heard --------------------------------------------------------------------


@on_every_wire
def test_a_script_in_three_lines(provider):
    events = LOOK.events(provider)
    assert_well_formed(events)
    assert text_of(events) == "Let me look."
    assert simple(events) == [("get_weather", {"city": "Oslo"})]
    assert (events[0].kind, events[0].provider) == ("stream_start", provider)
    assert (events[-1].kind, events[-1].reason) == ("finish", "tool_calls")


@on_every_wire
def test_an_ordinary_script_needs_no_tolerance(provider):
    said = script(think("Where?"), say("Let me look."), call("a", x=1), call("b"), usage(900, 40))
    events, pipe = said.heard(provider)
    assert not pipe.notes
    assert not [e for e in events if e.kind == "unrecognized"]
    (used,) = (e for e in events if e.kind == "usage")
    assert (used.input, used.output) == (900, 40)
    assert "".join(e.text for e in events if e.kind == "reasoning_delta") == "Where?"
    assert [c.provenance.id_source for c in calls_of(events)] == ["natural", "natural"]


@on_every_wire
def test_the_wire_is_told_by_its_first_bytes(provider):
    same = {"azure_foundry": "openai_responses", "mistral": "openai_chat"}
    events = LOOK.events(provider)
    pipe = Normalizer("auto", seed="streamnorm.testing")
    told = pipe.feed(LOOK.bytes(provider)) + pipe.close()
    assert pipe.provider == same.get(provider, provider)
    assert simple(told) == simple(events)


@on_every_wire
def test_the_same_script_gives_the_same_bytes_and_another_turn_other_ids(provider):
    again = script(say("Let me look."), call("get_weather", city="Oslo"), finish())
    assert again.bytes(provider) == LOOK.bytes(provider)
    first, second = turns(LOOK, LOOK).scripts
    assert calls_of(first.events(provider))[0].id != calls_of(second.events(provider))[0].id


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
arguments = st.dictionaries(st.text(), values, max_size=4)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True)


@on_every_wire
@settings(max_examples=25)
@given(
    calls=st.lists(st.tuples(names, arguments), max_size=5),
    size=st.integers(1, 90),
    text=st.text(max_size=30),
    side_by_side=st.booleans(),
)
def test_any_calls_in_any_chunking_are_heard_as_scripted(provider, calls, size, text, side_by_side):
    steps = [call(name, said) for name, said in calls]
    ways = [interleave()] if side_by_side else []
    events = script(say(text), *steps, *ways, chunked(size)).events(provider)
    assert_well_formed(events)
    assert simple(events) == calls
    assert text_of(events) == text
    assert events[-1].reason == ("tool_calls" if calls else "stop")


@pytest.mark.parametrize("provider", SERVED)
def test_a_result_makes_the_call_the_providers_own(provider):
    events = script(call("lookup", q="x"), result("found it"), say("So.")).events(provider)
    (ran,) = calls_of(events)
    (came,) = (e for e in events if e.kind == "tool_result")
    assert (ran.name, ran.runs_on, ran.arguments) == ("lookup", "provider", {"q": "x"})
    assert came.id == ran.id
    assert "found it" in json.dumps(came.output)
    assert events[-1].reason == "stop"


@pytest.mark.parametrize("provider", ["mistral", "cohere", "ollama", "dashscope"])
def test_a_wire_without_such_tools_says_so(provider):
    with pytest.raises(UsageError, match="leave result"):
        script(call("lookup"), result("found it")).bytes(provider)


NO_PICTURES = {"anthropic", "cohere", "mistral_conversations", "dashscope"}


@on_every_wire
def test_a_picture_is_heard_with_its_bytes_or_the_wire_says_that_it_has_none(provider):
    drawn = script(say("Here:"), show(b"GIF89a", "image/gif"), say("Done."), finish())
    if provider in NO_PICTURES:
        with pytest.raises(UsageError, match="no pictures"):
            drawn.bytes(provider)
        return
    told = [(e.mime_type, e.data) for e in drawn.events(provider) if e.kind == "media"]
    assert told == [("image/gif", b"GIF89a")]
    assert text_of(drawn.events(provider)) == "Here:Done."
    assert not drawn.notes(provider)


def test_a_picture_is_bytes_with_a_type_of_pictures():
    for wrong in ((b"x", "audio/wav"), ("text", "image/png")):
        with pytest.raises(UsageError, match="picture"):
            show(*wrong)


@on_every_wire
def test_an_id_of_ones_own_is_the_id(provider):
    events = script(call("f").with_id("call_of_mine")).events(provider)
    assert [c.id for c in calls_of(events)] == ["call_of_mine"]


# --- faults ---------------------------------------------------------------------------------------


@on_every_wire
def test_a_cut_ends_the_stream_where_it_stands(provider):
    events = script(say("Looking."), call("f", city="Oslo"), cut()).events(provider)
    assert_well_formed(events)
    assert (events[-1].kind, events[-1].reason) == ("failed", "truncated")
    if provider in UNCLOSED:
        assert [c.reason for c in broken_of(events)] == ["truncated"]
    else:
        assert simple(events) == [("f", {"city": "Oslo"})]
    after = script(say("Looking."), call("f", city="Oslo"), cut(after="call"), say("More."))
    assert after.events(provider) == events


@on_every_wire
def test_a_cut_inside_a_call_never_gives_that_call(provider):
    events = script(say("Looking."), call("f", text="Oslo " * 20), cut(inside="call")).events(
        provider
    )
    assert_well_formed(events)
    assert simple(events) == []
    assert (len(broken_of(events)) == 1) == (provider not in WHOLE)
    assert (events[-1].kind, events[-1].reason) == ("failed", "truncated")


@on_every_wire
def test_a_cut_at_any_byte_gives_the_beginning(provider):
    whole = LOOK.bytes(provider)
    for at in (0, 1, 50, len(whole) // 2, len(whole) - 1, len(whole), len(whole) + 9):
        part = script(*LOOK.steps, cut(at=at))
        assert part.bytes(provider) == whole[:at]
        assert_well_formed(part.events(provider))


@on_every_wire
def test_an_abrupt_cut_is_a_failure_of_the_transport(provider):
    events = script(call("f", a=1), cut(inside="call", abrupt=True)).events(provider)
    assert (events[-1].kind, events[-1].reason) == ("failed", "transport")


@on_every_wire
def test_an_error_of_the_provider_ends_the_stream(provider):
    events = script(say("One mom"), error("overloaded", "Too much of it.")).events(provider)
    assert (events[-1].kind, events[-1].reason) == ("failed", "provider_error")
    assert "Too much of it." in events[-1].error


@on_every_wire
def test_an_event_that_is_no_json_ends_the_stream(provider):
    events = script(say("Hi"), bad_json(), call("f", a=1)).events(provider)
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
    assert text_of(events) == "Hi"


@on_every_wire
def test_a_missing_id_is_minted_or_found_elsewhere(provider):
    events, pipe = script(call("f", a=1), missing_id()).heard(provider)
    (made,) = calls_of(events)
    if provider in ("openai_responses", "azure_foundry"):
        assert made.provenance.id_source == "conflated"
    else:
        assert made.provenance.id_source == "synthetic"
        assert pipe.notes["call.id_synthetic"] == 1


@on_every_wire
def test_a_fragment_sent_twice_is_noticed(provider):
    events, pipe = script(call("f", city="Oslo"), duplicate()).heard(provider)
    ends = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    assert pipe.notes or [e.reason for e in broken_of(events)] == ["invalid_json"]
    assert all(e.arguments == {"city": "Oslo"} for e in ends if isinstance(e, ToolCall))


@pytest.mark.parametrize(
    "provider", sorted({*CALLING} - {"dashscope"})
)  # there it may be all again
def test_text_sent_twice_is_heard_twice(provider):
    assert text_of(script(say("one"), duplicate()).events(provider)) == "oneone"


@pytest.mark.parametrize("provider", ["openai_chat", "mistral", "openai_responses"])
def test_fragments_under_a_wrong_index_are_told_apart(provider):
    said = script(call("f", a="one"), call("g", b="two"), wrong_index(0))
    events, pipe = said.heard(provider)
    assert simple(events) == [("f", {"a": "one"}), ("g", {"b": "two"})]
    assert pipe.notes


@pytest.mark.parametrize("provider", sorted(set(CALLING) - WHOLE))
def test_interleaved_calls_are_told_at_the_same_time(provider):
    events = script(interleave(), call("f", a="x" * 40), call("g", b="y" * 40)).events(provider)
    order = [e.call for e in events if e.kind == "tool_call_delta"]
    assert order != sorted(order)
    assert simple(events) == [("f", {"a": "x" * 40}), ("g", {"b": "y" * 40})]


@on_every_wire
def test_keep_alives_change_nothing_but_the_bytes(provider):
    noisy = script(keep_alives(), *LOOK.steps)
    assert noisy.events(provider) == LOOK.events(provider)
    if provider != "bedrock":  # its framing has none
        assert len(noisy.bytes(provider)) > len(LOOK.bytes(provider))


def test_delays_move_the_clock_of_the_script_and_nothing_else(tmp_path):
    timed = script(say("one"), delay(30), say("two"), finish()).timed("gemini")
    assert [at for at, _ in timed] == [0.02, 30.04, 30.06]
    tape = Recorder.open(tmp_path / "a.sse", provider="gemini", seed="s", clock=iter_clock(timed))
    for _, chunk in timed:
        tape.chunk(chunk)
    tape.close(finished=True)
    assert [at for at, _ in read_take(tape.path).chunks] == [0.02, 30.04, 30.06]


def iter_clock(timed):
    moments = iter([0.0, *(at for at, _ in timed), 99.0])
    return lambda: next(moments)


@on_every_wire
def test_chunks_have_the_size_that_was_ordered(provider):
    sizes = [len(chunk) for chunk in script(*LOOK.steps, chunked(7)).chunks(provider)]
    assert set(sizes[:-1]) == {7}
    assert sum(sizes) == len(LOOK.bytes(provider))


# Mistral's conversations have no word for it.
@pytest.mark.parametrize("provider", sorted(set(CALLING) - OBJECTS - {"mistral_conversations"}))
def test_arguments_that_are_cut_by_the_length_limit(provider):
    said = script(call("f").with_raw('{"city": "Os'), finish("length"))
    assert [c.reason for c in broken_of(said.events(provider))] == ["length"]


# --- what makes no sense is refused ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: script("Hello"), "steps such as say"),
        (lambda: script(say("x"), missing_id()).bytes("anthropic"), "right after a call"),
        (lambda: script(say("x"), result("y")).bytes("anthropic"), "right after the call"),
        (lambda: script(say("x"), cut(after="call")).bytes("gemini"), r"no call\(\) to cut at"),
        (lambda: cut(at=1, after="call"), "one of at=, after= and inside="),
        (lambda: cut(after="lunch"), "say, think, show, call, result, not 'lunch'"),
        (lambda: chunked(0), "at least one byte"),
        (lambda: script(finish("pause")).bytes("gemini"), "gemini cannot finish with 'pause'"),
        (lambda: script(call("f").with_raw("{")).bytes("ollama"), "must be JSON here"),
        (lambda: script().server("openai_chat").url, "in a with statement"),
    ],
)
def test_a_script_that_makes_no_sense_says_why(wrong, says):
    with pytest.raises(UsageError, match=says):
        wrong()


def test_an_unknown_wire_lists_the_known_ones():
    with pytest.raises(UnknownProvider, match="there are: anthropic"):
        LOOK.bytes("opena")


# --- over HTTP ------------------------------------------------------------------------------------


def libraries():
    yield httpx
    try:
        import httpx2
    except ImportError:
        return
    yield httpx2


every_library = pytest.mark.parametrize("library", list(libraries()), ids=lambda m: m.__name__)


@every_library
@on_every_wire
def test_a_transport_answers_a_client(library, provider):
    transport = LOOK.transport(provider)
    with (
        library.Client(transport=transport, base_url="http://provider") as client,
        client.stream("POST", "/v1/x?alt=sse", json={"stream": True}) as response,
    ):
        assert response.headers["content-type"] == PROVIDERS[provider].content_type
        assert list(response.iter_raw()) == LOOK.chunks(provider)
    (request,) = transport.requests
    assert (request.method, request.path, request.body) == (
        "POST",
        "/v1/x?alt=sse",
        {"stream": True},
    )
    assert isinstance(transport, library.BaseTransport)


@every_library
def test_a_transport_answers_an_async_client(library):
    async def talk():
        transport = LOOK.transport("anthropic")
        async with (
            library.AsyncClient(transport=transport, base_url="http://provider") as client,
            client.stream("POST", "/", json={}) as response,
        ):
            return [chunk async for chunk in response.aiter_raw()]

    assert asyncio.run(talk()) == LOOK.chunks("anthropic")


@every_library
def test_an_abrupt_cut_is_an_error_of_the_client(library):
    broken = script(say("Hi"), cut(abrupt=True)).transport("openai_chat")
    client = library.Client(transport=broken, base_url="http://provider")
    with client, pytest.raises(library.RemoteProtocolError):
        client.post("/")


@on_every_wire
def test_a_server_answers_over_the_loopback(provider):
    with LOOK.server(provider) as server:
        assert server.url.startswith("http://127.0.0.1:")
        request = urllib.request.Request(server.url + "/v1/x", b'{"a":1}', {"X-Api-Key": "k"})
        with urllib.request.urlopen(request) as response:
            assert response.headers["content-type"] == PROVIDERS[provider].content_type
            assert response.read() == LOOK.bytes(provider)
    (received,) = server.requests
    assert (received.path, received.headers["x-api-key"], received.body) == ("/v1/x", "k", {"a": 1})


def test_a_server_works_in_async_code_and_leaves_nothing_behind():
    async def talk() -> bytes:
        async with LOOK.server("gemini") as server, httpx.AsyncClient() as client:
            return (await client.post(server.url, json={})).content

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(talk()) == LOOK.bytes("gemini")
    assert [thread for thread in threading.enumerate() if thread.name == THREAD] == []


def test_a_server_that_breaks_off_is_an_error_of_the_client():
    broken = script(say("Hi"), cut(abrupt=True)).server("openai_chat")
    with broken as server, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(server.url, json={})


@pytest.mark.parametrize("serve", [
    lambda: LOOK.server("openai_responses"), lambda: turns(LOOK).websocket("openai_responses"),
])  # fmt: skip
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_server_of_a_test_that_is_cancelled_is_closed(serve, backend):
    pytest.importorskip("websockets")
    server = serve()

    async def cancelled() -> None:
        with anyio.CancelScope() as scope:
            async with server:
                scope.cancel()
                await anyio.sleep_forever()

    anyio.run(cancelled, backend=backend)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))


def test_a_client_that_goes_away_does_not_stop_the_server():
    with script(say("word " * 5000)).server("openai_chat") as server:
        for _ in range(3):
            with httpx.stream("POST", server.url) as response:
                next(response.iter_raw())
        assert len(server.requests) == 3


def test_each_turn_answers_one_request_and_a_turn_too_many_says_so():
    talk = turns(script(call("tides")), script(say("High at four.")))
    with talk.server("anthropic") as server:
        bodies = [httpx.post(server.url, json={"n": n}) for n in range(3)]
    assert [r.status_code for r in bodies] == [200, 200, 500]
    assert b"tides" in bodies[0].content
    assert "only 2 turns are scripted" in bodies[2].json()["error"]["message"]
    assert [r.body for r in server.requests] == [{"n": 0}, {"n": 1}, {"n": 2}]
    transport = talk.transport("anthropic")
    with httpx.Client(transport=transport, base_url="http://provider") as client:
        client.post("/")
        client.post("/")
        with pytest.raises(UsageError, match="only 2 turns"):
            client.post("/")


@on_every_wire
def test_an_error_with_a_status_is_an_http_error(provider):
    refused = script(error("overloaded", "Come back later.", status=529))
    with refused.server(provider) as server:
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(server.url, b"{}")
        with answer.value as response:
            assert response.code == 529
            assert "Come back later." in json.dumps(json.loads(response.read()))


@pytest.mark.parametrize("provider", ["openai_chat", "gemini"])  # as text, and as an object
@pytest.mark.parametrize("value", [float("nan"), object()])
def test_arguments_that_are_no_json_are_told(provider, value):
    with pytest.raises(UsageError, match="the arguments of 'f' are no JSON"):
        script(call("f", x=value)).bytes(provider)
