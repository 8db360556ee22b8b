"""A stream is pulled, timed, closed and told: what a reader may rely on, on asyncio and trio."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import tracemalloc
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from streamnorm import Limits, Normalizer
from streamnorm.edge.broadcast import ConsumerTooSlow
from streamnorm.edge.failures import error_of
from streamnorm.edge.refusals import Gate, refusal, retry_after
from streamnorm.edge.replay import replay
from streamnorm.edge.sources import Facts
from streamnorm.edge.stream import Stream, normalize
from streamnorm.errors import (
    BrokenCallError,
    FrameError,
    NoteRaised,
    ProviderError,
    RecordingError,
    StreamTruncated,
    UsageError,
    WireError,
)
from streamnorm.events import Event, Failed, Finish
from tests.conftest import Chat, Messages, assert_well_formed, broken_of, calls_of
from tests.edge.clocks import on_jumping_loop
from tests.edge.servers import Answer, Provider

CALL = Chat.call(0, "call_1", "get_weather", '{"city":') + Chat.call(0, None, None, '"Oslo"}')
TWO = CALL + Chat.call(1, "call_2", "get_time", "{}")
HALF = Chat.call(0, "call_1", "get_weather", '{"city":')
WHOLE = CALL + Chat.end()


def both(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on asyncio and on trio."""

    @pytest.mark.parametrize("backend", ["asyncio", "trio"])
    def run(backend: str) -> None:
        if backend == "trio":
            pytest.importorskip("trio")
        anyio.run(test, backend=backend)

    return run


def in_virtual_time(job: Callable[[], Awaitable[None]]) -> None:
    """On a clock that jumps to the next thing that is waited for: of asyncio, then of trio."""
    on_jumping_loop(job)
    on_jumping_trio(job)


def on_jumping_trio(job: Callable[[], Awaitable[None]]) -> None:
    trio = pytest.importorskip("trio")
    testing = pytest.importorskip("trio.testing")
    trio.run(job, clock=testing.MockClock(autojump_threshold=0))


class Tap:
    """An async source that knows how much was taken from it, and whether it was closed."""

    def __init__(self, items: Any, error: Any = None) -> None:
        self.items = iter(items)
        self.error = error
        self.taken = 0
        self.closed = 0

    def __aiter__(self) -> Tap:
        return self

    async def __anext__(self) -> Any:
        await anyio.lowlevel.checkpoint()
        for item in self.items:
            self.taken += 1
            return item
        if self.error is not None:
            raise self.error() if callable(self.error) else self.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed += 1


class Silent(Tap):
    """… that says nothing more after its items."""

    async def __anext__(self) -> Any:
        for item in self.items:
            return item
        await anyio.sleep_forever()


def chat(source: Any, **options: Any) -> Stream:
    return normalize(source, "openai_chat", **options)


@asynccontextmanager
async def asked(
    answer: Answer, *, path: str = "", library: Any = httpx, **options: Any
) -> AsyncIterator[tuple[Provider, Any]]:
    """A response on its way: the server that gives it, and what its client has of it."""
    with Provider(answer) as server:
        async with (
            library.AsyncClient(**options) as client,
            client.stream("POST", server.url + path) as response,
        ):
            yield server, response


# --- events, calls, text --------------------------------------------------------------------------


@both
async def test_events_come_as_from_the_pipe_and_the_source_is_closed():
    tap = Tap([WHOLE[:70], WHOLE[70:]])
    events = [event async for event in chat(tap)]
    pipe = Normalizer("openai_chat")
    assert events == pipe.feed(WHOLE) + pipe.close()
    assert tap.closed


@both
async def test_calls_gives_the_calls_only():
    stream = chat(Tap([Chat.text("hm"), WHOLE]))
    assert [call.arguments async for call in stream.calls()] == [{"city": "Oslo"}]
    assert [call async for call in stream.calls()] == []


def test_calls_in_a_for_loop():
    assert [call.id for call in chat([WHOLE]).calls()] == ["call_1"]


@both
async def test_text_gives_the_text_only():
    stream = chat(Tap([Chat.text("a"), CALL, Chat.text("b"), Chat.end()]))
    assert [text async for text in stream.text()] == ["a", "b"]


def test_text_of_one_choice():
    body = [Chat.delta({"content": "a"}), Chat.delta({"content": "x"}, choice=1)]
    ends = [Chat.delta({}, "stop", 0), Chat.delta({}, "stop", 1), Chat.DONE]
    assert list(chat(body + ends).text(choice=1)) == ["x"]


FAILURES: list[tuple[str, Any, type[WireError]]] = [
    ("cut", [HALF], StreamTruncated),
    ("reported", [HALF, b'data: {"error":{"message":"Overloaded"}}\n\n'], ProviderError),
    ("no JSON", [HALF, b"data: {oops\n\n"], FrameError),
    ("broken call", [Chat.call(0, "c", "f", "{oops") + Chat.end()], BrokenCallError),
]


@pytest.mark.parametrize(("what", "body", "error"), FAILURES, ids=[f[0] for f in FAILURES])
async def test_calls_raises_at_the_end_what_events_only_tell(what, body, error):
    with pytest.raises(error) as raised:
        await _calls(chat([Chat.text("a"), *body]))
    assert raised.value.provider == "openai_chat"
    events = [event async for event in chat([Chat.text("a"), *body])]
    assert_well_formed(events)
    with pytest.raises(error):
        list(chat(body).calls())


def test_a_call_that_was_whole_is_heard_before_the_error():
    body = Messages.START + Messages.open(0, "t1", "f") + Messages.args(0, "{}") + Messages.close(0)
    calls = normalize([body], "anthropic").calls()
    assert next(calls).id == "t1"
    with pytest.raises(StreamTruncated, match="message_stop"):
        next(calls)


def test_text_raises_for_a_failed_stream_but_not_for_a_broken_call():
    with pytest.raises(StreamTruncated):
        list(chat([Chat.text("a")]).text())
    assert list(chat([Chat.text("a"), Chat.call(0, "c", "f", "{oops"), Chat.end()]).text()) == ["a"]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("truncated", StreamTruncated), ("transport", StreamTruncated), ("idle", StreamTruncated),
     ("cancelled", StreamTruncated), ("protocol", FrameError), ("limit", FrameError),
     ("provider_error", ProviderError)],
)  # fmt: skip
def test_every_failure_has_an_exception(reason, kind):
    assert type(error_of(Failed(reason, "why"))) is kind


async def test_after_the_end_there_is_nothing():
    stream = chat([WHOLE])
    assert [e async for e in stream]
    assert [e async for e in stream] == []
    assert isinstance(stream.end, Finish)


def test_strict_raises_after_the_events_before_it():
    body = Chat.text("a") + Chat.delta({"content": "b"}, "surprise")
    stream = chat([body], strict=True)
    assert [next(stream).kind for _ in range(2)] == ["stream_start", "text_delta"]
    with pytest.raises(NoteRaised, match=r"finish\.unknown"):
        list(stream)
    assert list(stream) == []


# --- looking --------------------------------------------------------------------------------------


def test_the_summary_tells_every_id_with_its_source():
    body = [TWO, Chat.call(2, None, "now", "{}"), Chat.end()]
    stream = chat(body, seed="s")
    list(stream)
    summary = stream.summary
    assert [(c["id"][:6], c["id_source"], c["name"]) for c in summary["calls"]] == [
        ("call_1", "natural", "get_weather"),
        ("call_2", "natural", "get_time"),
        (summary["calls"][2]["id"][:6], "synthetic", "now"),
    ]
    assert summary["end"], summary["reason"] == ("finish", "tool_calls")
    assert summary["counts"]["tool_call"] == 3
    assert summary["bytes"] == sum(map(len, body))
    assert summary["seed"] == "s"
    assert summary["notes"]["call.id_synthetic"] == 1
    assert 0 <= summary["timing"]["first_event"] <= summary["timing"]["last_event"]
    assert json.loads(json.dumps(summary)) == summary
    assert stream.provenance[2].id_source == "synthetic"
    assert stream.provenance[0].wire_field


def test_the_summary_of_a_failed_stream_tells_what_broke():
    stream = chat([HALF])
    list(stream)
    assert stream.summary["calls"][0]["broken"] == "truncated"
    assert (stream.summary["end"], stream.summary["reason"]) == ("failed", "truncated")


def test_the_summary_of_a_stream_that_was_not_read():
    stream = chat([WHOLE])
    assert stream.summary["end"] is None
    assert stream.provenance == {}
    assert stream.notes == {}


# --- refusals -------------------------------------------------------------------------------------

REFUSALS = [
    (401, '{"error":{"message":"No such key","type":"auth","code":"invalid_api_key"}}',
     "No such key", "invalid_api_key", False),
    (529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
     "Overloaded", "overloaded_error", True),
    (429, '[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]',
     "Quota", "RESOURCE_EXHAUSTED", True),
    (429, '{"error":{"message":"Pay","code":"insufficient_quota"}}', "Pay", "insufficient_quota",
     False),
    (422, '{"object":"error","message":"Bad","type":"invalid_request_error"}', "Bad",
     "invalid_request_error", False),
    (422, '{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}',
     "field required", None, False),
    (404, '{"error":"model \\"x\\" not found"}', 'model "x" not found', None, False),
    (502, "<html><h1>Bad Gateway</h1></html>",
     "HTTP 502 Bad Gateway: <html><h1>Bad Gateway</h1></html>", None, True),
    (503, "", "HTTP 503 Service Unavailable, without a body", None, True),
    (599, "{", "HTTP 599: {", None, True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "message", "code", "retryable"), REFUSALS)
async def test_a_refusal_is_raised_in_the_providers_own_words(
    status, body, message, code, retryable
):
    headers = {"content-type": "application/json", "retry-after": "7"}
    with Provider(Answer([body.encode()], status=status, headers=headers)) as server:
        async with httpx.AsyncClient() as client:
            for read in (_events, _calls):
                async with client.stream("POST", server.url) as response:
                    with pytest.raises(ProviderError) as raised:
                        await read(normalize(response, "openai_chat"))
        await anyio.to_thread.run_sync(_refused, server.url)
        server.wait_closed(5)
    error = raised.value
    assert (error.message, error.retryable, error.status) == (message, retryable, status)
    assert error.code == code or code is None
    assert error.retry_after == 7
    assert error.provider == "openai_chat"


def _refused(url: str) -> None:
    with httpx.Client() as client, client.stream("POST", url) as response:
        stream = chat(response)
        with pytest.raises(ProviderError):
            next(stream)


async def _events(stream: Stream) -> list[Event]:
    return [event async for event in stream]


async def _calls(stream: Stream) -> list[Event]:
    return [event async for event in stream.calls()]


async def test_the_body_of_a_refusal_is_read_up_to_a_bound():
    def endless() -> Iterator[bytes]:
        while True:
            yield b"no " * 1000

    async with asked(Answer(endless(), status=500, then="hang")) as (server, response):
        with pytest.raises(ProviderError, match="HTTP 500"):
            await _events(normalize(response))
        server.wait_closed(5)
        assert server.sent < 20 * 1024 * 1024  # what fits into buffers, not what was offered


async def test_a_refusal_that_breaks_off_is_still_a_refusal():
    async with asked(Answer([b'{"error":'], status=400, then="cut")) as (_, response):
        with pytest.raises(ProviderError, match="HTTP 400"):
            await _events(normalize(response))


async def test_a_refusal_does_not_show_the_key():
    key = "sk-very-secret-0123"
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}}).encode()
    headers = {"authorization": f"Bearer {key}"}
    async with asked(Answer([body], status=401), headers=headers) as (_, response):
        with pytest.raises(ProviderError, match="Incorrect API key") as raised:
            await _events(normalize(response))
    assert key not in str(raised.value) + raised.value.excerpt + repr(raised.value)


async def test_a_redirect_is_not_followed():
    answer = Answer(status=307, headers={"location": "https://elsewhere.example/"})
    async with asked(answer) as (_, response):
        with pytest.raises(ProviderError, match="redirect to https://elsewhere"):
            await _events(normalize(response))


JSON = {"content-type": "application/json; charset=utf-8"}


@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        (b'{"error":{"message":"no","code":"x"}}', JSON, "no"),
        (b'{\n  "error": {"message": "pretty"}\n}\n', JSON, "pretty"),
        (b'{"id":"1","object":"chat.completion","choices":[{"message":{"content":"hi"}}]}', JSON,
         "no stream"),
        (b"<html>Log in</html>", {"content-type": "text/html"}, "Log in"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 10_000])
async def test_a_body_that_is_no_stream_is_a_refusal(body, headers, message, size):
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    answer = Answer(pieces, headers=headers)
    async with asked(answer, path="/v1/chat/completions") as (_, response):
        with pytest.raises(ProviderError, match=message) as raised:
            await _events(normalize(response))
    assert raised.value.status == 200
    assert raised.value.provider == "openai_chat"


LINES = b'{"message":{"content":"Hi"},"done":false}\n{"message":{"content":""},"done":true}\n'
GEMINI = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}'


@pytest.mark.parametrize(
    ("body", "provider"),
    [(LINES, None), (LINES, "ollama"), (WHOLE, "openai_chat"), (b"[" + GEMINI + b"]", "gemini"),
     (GEMINI, "gemini"), (b"\n \n" + GEMINI, "gemini")],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_stream_that_is_labelled_json_passes(body, provider, size):
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    async with asked(Answer(pieces, headers=JSON)) as (_, response):
        events = await _events(normalize(response, provider))
    assert isinstance(events[-1], Finish), events


def test_json_lines_pass_before_the_body_ends():
    gate = Gate(Facts(headers=JSON), "auto")
    first, second = LINES.splitlines(keepends=True)
    assert gate.let_in(first) == b""
    assert gate.let_in(second) == LINES
    assert gate.open


def test_a_large_json_body_is_not_held_for_ever():
    gate = Gate(Facts(headers=JSON), "openai_chat")
    passed = b"".join(gate.let_in(b'{"a":"' + b"x" * 4096) for _ in range(300))
    assert len(passed) == 300 * 4102


KEY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"


def half_told(text: str) -> bool:
    """Is there more of the key than its family?"""
    return any(KEY[at : at + 12] in text for at in range(len(KEY) - 11))


@pytest.mark.parametrize(
    "said", [f"no key {KEY} here", f"no key {KEY}", json.dumps({"error": {"message": f"no {KEY}"}})]
)
def test_no_part_of_a_key_is_left_where_a_refusal_is_cut(said: str):
    facts = Facts(status=401, request_headers={"x-api-key": KEY})
    for before in range(800):
        error = refusal(facts, b" " + b"." * before + said.encode())
        assert not half_told(f"{error.message} {error.excerpt}"), before


def test_no_part_of_a_key_is_left_where_the_address_of_a_redirect_is_cut():
    for before in range(200):
        away = {"location": f"https://x.example/{'.' * before}{KEY}"}
        facts = Facts(status=302, headers=away, request_headers={"authorization": f"Bearer {KEY}"})
        assert not half_told(refusal(facts, b"").message), before


def test_when_to_come_back():
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    details = {"error": {"details": [{"@type": "RetryInfo", "retryDelay": "3.5s"}]}}
    assert retry_after({}, details) == 3.5
    assert not refusal(Facts(status=503, headers={"x-should-retry": "false"}), b"").retryable
    assert refusal(Facts(status=400, headers={"x-should-retry": "true"}), b"").retryable
    assert not refusal(Facts(status=401, headers={"x-should-retry": "true"}), b"").retryable


# --- failures of the connection -------------------------------------------------------------------


@both
async def test_what_any_library_raises_ends_the_stream_as_an_event():
    for error in (httpx.ReadError("gone"), ConnectionResetError("gone"), EOFError("gone"),
                  anyio.BrokenResourceError("gone")):  # fmt: skip
        tap = Tap([HALF], error)
        stream = chat(tap)
        events = [event async for event in stream]
        assert [e.reason for e in broken_of(events)] == ["truncated"]
        end = events[-1]
        assert isinstance(end, Failed)
        assert (end.reason, end.retryable) == ("transport", True)
        assert type(error).__name__ in end.error
        assert tap.closed
        with pytest.raises(StreamTruncated, match="gone") as raised:
            stream.raise_for_end()
        assert raised.value.__cause__ is error


@pytest.mark.parametrize("then", ["cut", "reset"])
@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_a_connection_that_breaks(library, then):
    library = pytest.importorskip(library)
    with Provider(Answer([HALF], then=then)) as server:
        async with library.AsyncClient() as client, client.stream("POST", server.url) as response:
            stream = chat(response)
            events = await _events(stream)
            with pytest.raises(StreamTruncated) as raised:
                stream.raise_for_end()
            assert raised.value.__cause__.request is response.request  # type: ignore[union-attr]
        with library.Client() as client, client.stream("POST", server.url) as response:
            assert [e.kind for e in chat(response)] == [e.kind for e in events]
    assert events[-1].reason == "transport"  # type: ignore[union-attr]
    assert broken_of(events)


@pytest.mark.parametrize("then", ["cut", "reset"])
async def test_a_connection_of_aiohttp_that_breaks(then):
    aiohttp = pytest.importorskip("aiohttp")
    with Provider(Answer([HALF], then=then)) as server:
        async with aiohttp.ClientSession() as session, session.post(server.url) as response:
            events = await _events(chat(response))
    assert events[-1].reason == "transport"  # type: ignore[union-attr]


@both
async def test_a_mistake_in_the_callers_code_is_not_hidden():
    tap = Tap([HALF], KeyError("typo"))
    stream = chat(tap)
    with pytest.raises(KeyError, match="typo"):
        await _events(stream)
    assert tap.closed
    assert stream.summary["reason"] == "cancelled"


def test_a_mistake_in_a_for_loop_is_not_hidden_either():
    def source() -> Iterator[bytes]:
        yield HALF
        raise KeyError("typo")

    with pytest.raises(KeyError, match="typo"):
        list(chat(source()))


async def test_an_error_that_an_sdk_reports_mid_stream_is_the_providers():
    class APIError(Exception):  # as google-genai and openai make them
        code, status, message = 503, "UNAVAILABLE", "The model is overloaded."

    events = await _events(chat(Tap([HALF], APIError())))
    assert events[-1] == Failed("provider_error", "The model is overloaded.", True, "UNAVAILABLE")
    with pytest.raises(ProviderError) as raised:
        await _events(chat(Tap([], APIError())))
    assert raised.value.status == 503


# --- limits and time ------------------------------------------------------------------------------


async def test_a_limit_ends_the_stream_and_closes_the_connection():
    def endless() -> Iterator[bytes]:
        yield HALF
        while True:
            yield Chat.call(0, None, None, "x" * 1000)

    async with asked(Answer(endless(), then="hang")) as (server, response):
        events = await _events(chat(response, limits=Limits(arguments=50_000)))
        assert server.wait_closed(1) < 1
    assert (events[-1].kind, events[-1].code) == ("failed", "arguments")  # type: ignore[union-attr]
    assert [b.reason for b in broken_of(events)] == ["limit"]


async def test_a_body_that_unpacks_to_a_thousand_times_its_size_is_refused():
    bomb = gzip.compress(b": keep-alive\n\n" * 2_000_000)
    pieces = [bomb[i : i + 1000] for i in range(0, len(bomb), 1000)]
    answer = Answer(pieces, headers={"content-encoding": "gzip"}, then="hang")
    async with asked(answer) as (server, response):
        stream = chat(response)
        events = await _events(stream)
        server.wait_closed(1)
    assert (events[-1].reason, events[-1].code) == ("limit", "ratio")  # type: ignore[union-attr]
    assert stream.summary["bytes"] < 8 * 1024 * 1024


async def test_an_honest_gzip_body_passes():
    answer = Answer([gzip.compress(WHOLE)], headers={"content-encoding": "gzip"})
    async with asked(answer) as (_, response):
        assert len(await _calls(chat(response))) == 1


async def test_a_body_that_is_packed_twice_is_refused():
    answer = Answer([b"x"], headers={"content-encoding": "gzip, gzip"})
    async with asked(answer) as (_, response):
        with pytest.raises((ProviderError, UsageError), match="packed more than once"):
            await _events(chat(response))


async def drip(every: float) -> AsyncIterator[bytes]:
    yield HALF
    while True:
        await anyio.sleep(every)
        yield b": keep-alive\n\n"


def test_keep_alives_do_not_hold_the_idle_timer():
    async def job() -> None:
        began = anyio.current_time()
        events = await _events(chat(drip(7)))
        assert events[-1].reason == "idle"  # type: ignore[union-attr]
        assert events[-1].retryable  # type: ignore[union-attr]
        assert broken_of(events)
        assert anyio.current_time() - began == pytest.approx(120)

    in_virtual_time(job)


def test_events_hold_the_idle_timer():
    async def talk() -> AsyncIterator[bytes]:
        for _ in range(10):
            await anyio.sleep(119)
            yield Chat.text("a")
        yield Chat.end("stop")

    async def job() -> None:
        assert isinstance((await _events(chat(talk())))[-1], Finish)

    in_virtual_time(job)


def test_a_slow_reader_does_not_run_the_idle_timer():
    async def job() -> None:
        heard = 0
        async for _ in chat(Tap([Chat.text("a")] * 5 + [WHOLE]), idle=10):
            heard += 1
            await anyio.sleep(1000)
        assert heard > 8

    in_virtual_time(job)


def test_the_deadline_is_for_the_whole_stream():
    async def talk() -> AsyncIterator[bytes]:
        while True:
            await anyio.sleep(60)
            yield Chat.text("a")

    async def job() -> None:
        began = anyio.current_time()
        events = await _events(chat(talk(), deadline=300))
        assert anyio.current_time() - began == pytest.approx(300)
        assert (events[-1].reason, events[-1].code) == ("limit", "deadline")  # type: ignore[union-attr]

    in_virtual_time(job)


def test_the_deadline_counts_a_slow_reader():
    async def job() -> None:
        events = []
        async for event in chat(Tap([Chat.text("a")] * 50), deadline=100):
            events.append(event)
            await anyio.sleep(30)
        assert events[-1].kind == "failed"
        assert len(events) < 8

    in_virtual_time(job)


def test_without_timers_a_stream_may_take_its_time():
    async def talk() -> AsyncIterator[bytes]:
        await anyio.sleep(50_000)
        yield WHOLE

    async def job() -> None:
        assert isinstance((await _events(chat(talk(), idle=None)))[-1], Finish)

    in_virtual_time(job)


async def test_an_idle_connection_is_closed():
    async with asked(Answer([HALF], then="hang")) as (server, response):
        events = await _events(chat(response, idle=0.05))
        assert server.wait_closed(1) < 1
    assert events[-1].reason == "idle"  # type: ignore[union-attr]


def test_time_is_told_in_a_for_loop_too():
    def keep_alives() -> Iterator[bytes]:
        yield HALF
        while True:
            yield b": keep-alive\n\n"

    assert list(chat(keep_alives(), idle=0.01))[-1].reason == "idle"  # type: ignore[union-attr]
    end = list(chat(keep_alives(), idle=None, deadline=0.01))[-1]
    assert end.reason == "limit"  # type: ignore[union-attr]


# --- closing --------------------------------------------------------------------------------------


@both
async def test_leaving_the_scope_closes():
    tap = Tap([Chat.text("a")] * 100)
    async with chat(tap) as stream:
        async for _ in stream:
            break
    assert tap.closed
    assert await _events(stream) == []
    assert stream.summary["reason"] == "cancelled"


@both
async def test_an_exception_of_the_reader_closes():
    tap = Tap([Chat.text("a")] * 100)

    async def read() -> None:
        async with chat(tap) as stream:
            async for _ in stream:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await read()
    assert tap.closed


@both
async def test_cancelling_closes_and_goes_on_upwards():
    tap = Silent([HALF])
    stream = chat(tap)
    reached = anyio.Event()

    async def read() -> None:
        async for event in stream:
            if event.kind == "tool_call_delta":
                reached.set()
        raise AssertionError("the cancellation was swallowed")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await reached.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert tap.closed
    assert stream.summary["calls"][0]["broken"] == "cancelled"


async def test_cancelling_a_task_closes():
    tap = Silent([HALF])
    task = asyncio.ensure_future(_events(chat(tap)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tap.closed


@both
async def test_another_task_may_close_and_the_reader_hears_it():
    tap = Silent([HALF])
    stream = chat(tap)
    heard: list[Event] = []
    reached = anyio.Event()

    async def read() -> None:
        async for event in stream:
            heard.append(event)
            if event.kind == "tool_call_delta":
                reached.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await reached.wait()
        await anyio.wait_all_tasks_blocked()
        await stream.aclose()
        assert tap.closed
    assert [e.kind for e in heard[-2:]] == ["broken_tool_call", "failed"]
    assert heard[-1].reason == "cancelled"  # type: ignore[union-attr]


@both
async def test_opening_and_closing_in_different_tasks_is_safe():
    tap = Tap([WHOLE, *[b""] * 100])
    stream = chat(tap)

    async def begin() -> None:
        await stream.__aenter__()
        await anext(stream)

    async def end() -> None:
        await stream.__aexit__(None, None, None)

    for job in (begin, end):
        async with anyio.create_task_group() as group:
            group.start_soon(job)
    assert tap.closed


@both
async def test_two_readers_are_told_what_to_do_instead():
    stream = chat(Silent([Chat.text("a")]))
    reading = anyio.Event()

    async def read() -> None:
        async for _ in stream:
            reading.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await reading.wait()
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(UsageError, match="broadcast"):
            await anext(stream)
        await stream.aclose()


@both
async def test_closing_twice_is_closing_once():
    tap = Tap([Chat.text("a")])
    stream = chat(tap)
    await stream.aclose()
    await stream.aclose()
    assert tap.closed == 1


@both
async def test_a_source_that_cannot_be_closed_harms_nobody():
    class Stubborn(Tap):
        async def aclose(self) -> None:
            raise OSError("no")

    assert isinstance((await _events(chat(Stubborn([WHOLE]))))[-1], Finish)


async def _first(stream: Stream) -> None:
    async for _ in stream:
        break


async def _drop(stream: Stream) -> None:
    del stream


@pytest.mark.parametrize("way", ["break", "never read"])
async def test_dropping_closes_and_warns(way):
    gc.disable()
    try:
        tap = Tap([Chat.text("a")] * 100)
        with pytest.warns(ResourceWarning, match="async with"):
            await (_first(chat(tap)) if way == "break" else _drop(chat(tap)))
        for _ in range(4):  # the closing was scheduled, not done
            await asyncio.sleep(0)
        assert tap.closed
    finally:
        gc.enable()


async def test_dropping_after_the_last_event_closes_without_a_warning():
    tap = Tap([WHOLE])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async for event in chat(tap):
            if event.kind == "finish":
                break
        for _ in range(4):
            await asyncio.sleep(0)
    assert tap.closed


def test_dropping_on_trio_closes_too():
    async def job() -> None:
        tap = Tap([Chat.text("a")] * 100)
        with pytest.warns(ResourceWarning):
            await _first(chat(tap))
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        assert tap.closed

    on_jumping_trio(job)


def test_dropping_in_a_for_loop_closes():
    closed = []

    def source() -> Iterator[bytes]:
        try:
            while True:
                yield Chat.text("a")
        finally:
            closed.append(True)

    with pytest.warns(ResourceWarning):
        next(chat(source()))
    assert closed


@pytest.mark.parametrize("end", ["finish", "transport", "refusal", "break", "calls"])
async def test_a_stream_is_in_no_reference_cycle(end):
    gc.collect()
    gc.disable()
    try:
        errors = {
            "transport": partial(httpx.ReadError, "x"),
            "refusal": partial(ProviderError, "x"),
        }
        body = [Chat.text("a")] if end in errors else [WHOLE]
        stream = chat(Tap(body, errors.get(end)))
        gone = weakref.ref(stream)
        if end == "break":
            async with stream:
                async for _ in stream:
                    break
        elif end == "calls":
            assert len(await _calls(stream)) == 1
        else:
            try:
                await _events(stream)
            except ProviderError:
                assert end == "refusal"
        del stream
        assert gone() is None
    finally:
        gc.enable()


# --- pulled ---------------------------------------------------------------------------------------


@both
async def test_nothing_is_read_before_it_is_asked_for():
    tap = Tap([Chat.text("a")] * 100)
    async with chat(tap) as stream:
        await anyio.lowlevel.checkpoint()
        assert tap.taken == 0
        for n in range(2, 50):
            await anext(stream)
            assert tap.taken <= n


async def test_a_reader_that_stops_stops_the_wire():
    def endless() -> Iterator[bytes]:
        while True:
            yield Chat.text("x" * 8000)

    async with (
        asked(Answer(endless(), then="hang")) as (server, response),
        chat(response) as stream,
    ):
        await anext(stream)
        before = -1
        while server.sent != before:  # until the buffers between us are full
            before = server.sent
            await asyncio.sleep(0.05)
        assert server.sent < 32 * 1024 * 1024


async def test_memory_does_not_grow_with_the_stream():
    def long(n: int) -> Iterator[bytes]:
        for _ in range(n):
            yield Chat.text("x" * 1000)
        yield Chat.end("stop")

    async def peak(n: int) -> int:
        tracemalloc.start()
        async for _ in chat(Tap(long(n))):
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    await peak(10)
    assert await peak(5_000) < await peak(500) + 200_000


async def test_a_finished_body_leaves_a_connection_that_is_used_again():
    with Provider(Answer([WHOLE])) as server:
        async with httpx.AsyncClient() as client:
            for _ in range(3):
                async with client.stream("POST", server.url) as response:
                    await _events(chat(response))
        assert server.accepted == 1


async def test_a_body_that_was_read_cannot_be_read_again():
    async with asked(Answer([WHOLE])) as (_, response):
        await _events(chat(response))
        assert response.is_closed
        assert response.is_stream_consumed
        with pytest.raises(httpx.StreamConsumed):
            await response.aread()
        with pytest.raises(UsageError, match="read already"):
            chat(response)


async def test_a_body_that_is_read_between_making_a_stream_and_reading_it_is_told():
    async with asked(Answer([WHOLE])) as (_, response):
        stream = chat(response)
        async for _ in response.aiter_raw():
            pass
        with pytest.raises(UsageError, match="read already"):
            await _events(stream)


async def test_the_end_mark_ends_the_stream_although_the_connection_stays():
    async with asked(Answer([WHOLE], then="hang")) as (server, response):
        events = await _events(chat(response))
        assert server.wait_closed(1) < 1
    assert isinstance(events[-1], Finish)


async def test_what_follows_the_end_is_noted():
    stream = chat(Tap([WHOLE, Chat.text("late")]))
    assert isinstance((await _events(stream))[-1], Finish)
    assert stream.notes["stream.after_end"] == 1


# --- recording ------------------------------------------------------------------------------------


async def test_a_recording_replays_to_the_same_events(tmp_path):
    body = Chat.call(0, None, "now", "{}") + Chat.end()
    path = tmp_path / "a.sse"
    key = "sk-secret-0123456"
    headers = {"authorization": f"Bearer {key}"}
    answer = Answer([body[:50], body[50:]])
    url = "/v1/chat/completions?key=" + key
    async with asked(answer, path=url, headers=headers) as (_, response):
        stream = normalize(response, record=path)
        events = await _events(stream)
    assert stream.summary["recording"] == {"path": str(path), "failed": None}
    assert [event async for event in replay(path)] == events
    assert calls_of(events)[0].provenance.id_source == "synthetic"
    assert key not in path.read_text()


async def test_payloads_are_recorded_too(tmp_path):
    payloads = [json.loads(b.partition(b"data: ")[2]) for b in (CALL[: CALL.index(b"\n")],)]
    path = tmp_path / "a.sse"
    stream = chat([*payloads, {"choices": [{"delta": {}, "finish_reason": "stop"}]}], record=path)
    events = await _events(stream)
    assert [event async for event in replay(path)] == events


@pytest.mark.parametrize("how", ["read to its end", "broken off"])
async def test_a_take_says_whether_it_is_finished(tmp_path, how):
    from streamnorm.captures import read_take

    path = tmp_path / "a.sse"
    async with chat(Tap([Chat.text("a"), WHOLE]), record=path) as stream:
        async for _ in stream:
            if how == "broken off":
                break
    assert read_take(path).header is not None
    assert (b'"finished":true' in path.read_bytes()) == (how == "read to its end")


def test_a_recording_that_cannot_be_made_is_told_at_once(tmp_path):
    path = tmp_path / "there.sse"
    path.write_text("")
    with pytest.raises(RecordingError, match="never overwritten"):
        chat([WHOLE], record=path)


# --- several readers ------------------------------------------------------------------------------


@both
async def test_a_broadcast_gives_everybody_everything():
    tap = Tap([Chat.text(str(n)) for n in range(300)] + [Chat.end("stop")])
    heard: dict[int, list[Event]] = {}

    async def read(n: int, consumer: Any) -> None:
        heard[n] = [event async for event in consumer]

    async with chat(tap).broadcast(3, buffer=4) as consumers, anyio.create_task_group() as group:
        for n, consumer in enumerate(consumers):
            group.start_soon(read, n, consumer)
    assert heard[0] == heard[1] == heard[2]
    assert len(heard[0]) == 302
    assert tap.closed


@both
async def test_a_slow_reader_holds_up_the_others():
    tap = Tap([Chat.text(str(n)) for n in range(300)])
    fast, slow = consumers = chat(tap).broadcast(2, buffer=4)
    assert len(consumers) == 2
    assert consumers[0] is fast
    for _ in range(4):
        await anext(fast)
    with anyio.move_on_after(0.02) as scope:
        await anext(fast)
    assert scope.cancelled_caught
    assert tap.taken <= 5
    await anext(slow)
    await anext(fast)
    await consumers.aclose()
    assert [event async for event in slow] != []  # what it had already
    assert tap.closed


@both
async def test_a_slow_reader_is_dropped_if_asked():
    tap = Tap([Chat.text(str(n)) for n in range(30)])
    fast, slow = chat(tap).broadcast(2, buffer=4, on_slow="drop")
    assert len([event async for event in fast]) == 32
    with pytest.raises(ConsumerTooSlow, match="4 events behind"):
        await anext(slow)


@both
async def test_a_reader_that_is_cancelled_takes_nothing_from_the_others():
    sent, receive = anyio.create_memory_object_stream[bytes](0)
    one, two = chat(receive).broadcast(2)

    async def read(consumer: Any, into: list[Event], scope: anyio.CancelScope) -> None:
        with scope:
            async for event in consumer:
                into.append(event)

    first: list[Event] = []
    second: list[Event] = []
    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(read, one, first, scope)
        group.start_soon(read, two, second, anyio.CancelScope())
        await sent.send(Chat.text("a"))
        scope.cancel()
        await anyio.lowlevel.checkpoint()
        await one.aclose()
        await sent.send(WHOLE)
        await sent.aclose()
    assert isinstance(second[-1], Finish)


@both
async def test_a_reader_that_is_gone_holds_up_nobody():
    one, two = chat(Tap([Chat.text("a")] * 50)).broadcast(2, buffer=2)
    await anext(two)
    del two
    assert len([event async for event in one]) == 52


@both
async def test_the_last_reader_to_leave_closes_the_stream():
    tap = Tap([Chat.text("a")] * 50)
    one, two = chat(tap).broadcast(2)
    await anext(one)
    await one.aclose()
    assert not tap.closed
    await two.aclose()
    assert tap.closed


@both
async def test_every_reader_hears_a_refusal():
    one, two = chat(Tap([], ProviderError("no", status=400))).broadcast(2)
    for consumer in (one, two):
        with pytest.raises(ProviderError, match="no"):
            await anext(consumer)
        with pytest.raises(StopAsyncIteration):
            await anext(consumer)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 1, "buffer": 0}, {"n": 1, "on_slow": "?"}])
def test_a_broadcast_to_nobody_is_an_error(wrong):
    with pytest.raises(UsageError):
        chat([WHOLE]).broadcast(**wrong)


async def test_a_source_that_swallows_its_interruption_is_closed_all_the_same():
    forever = asyncio.Event()

    async def stubborn() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield Chat.text("Hi")
        with suppress(asyncio.CancelledError):
            await forever.wait()
        yield Chat.text("again")
        await forever.wait()

    stream, waiting = normalize(stubborn(), "openai_chat"), asyncio.Event()
    heard: list[Event] = []

    async def read() -> None:
        async for event in stream:
            heard.append(event)
            if len(heard) == 4:
                waiting.set()

    reader = asyncio.create_task(read())
    await waiting.wait()
    await asyncio.sleep(0)
    await stream.aclose()
    await asyncio.wait_for(reader, 20)
    assert isinstance(heard[-1], Failed)
    assert heard[-1].reason == "cancelled"
