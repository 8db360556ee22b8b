"""``connect``: a request is sent when it is read, again only while nothing was heard, and closed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
import httpx
import pytest

from streamnorm.edge.connect import TIMEOUT, connect
from streamnorm.edge.replay import replay
from streamnorm.errors import ProviderError, StreamTruncated, UnknownProvider, UsageError
from streamnorm.events import Failed, Finish
from tests.conftest import Chat
from tests.edge.servers import Answer, Provider

WHOLE = Chat.call(0, "call_1", "now", "{}") + Chat.end()
OK = Answer([WHOLE])
PATH = "/v1/chat/completions"


def busy(status: int = 429, **headers: str) -> Answer:
    said = json.dumps({"error": {"message": "later", "code": "busy"}}).encode()
    headers = {k.replace("_", "-"): v for k, v in headers.items()} or {"retry-after-ms": "1"}
    return Answer([said], status=status, headers={"content-type": "application/json", **headers})


async def test_it_posts_the_body_and_reads_the_answer():
    with Provider(OK) as server:
        stream = connect(server.url + PATH, json={"stream": True}, headers={"X-Key": "k"})
        assert server.accepted == 0  # nothing is sent before the first read
        assert [call.name async for call in stream.calls()] == ["now"]
        server.wait_closed(1)
    (request,) = server.requests
    assert (request.method, json.loads(request.body)) == ("POST", {"stream": True})
    assert request.headers["x-key"] == "k"
    assert request.headers["accept"].startswith("text/event-stream")
    assert stream.provider == "openai_chat"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("how", ["whole", "break"])
def test_it_works_on_asyncio_and_trio(backend, how):
    pytest.importorskip(backend)
    with Provider(Answer([WHOLE] if how == "whole" else [Chat.text("a")], then="hang")) as server:

        async def job() -> None:
            async with connect(server.url + PATH, json={}) as stream:
                async for _ in stream:
                    if how == "break":
                        break
            server.wait_closed(1)

        anyio.run(job, backend=backend)


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_a_client_of_ones_own_stays_open(library):
    library = pytest.importorskip(library)
    with Provider(OK) as server:
        async with library.AsyncClient() as client:
            for _ in range(3):
                events = [e async for e in connect(server.url + PATH, json={}, client=client)]
                assert isinstance(events[-1], Finish)
            assert not client.is_closed
        assert server.accepted == 1


# --- asking again ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_it_asks_again_when_that_may_help(status):
    with Provider([busy(status), busy(status), OK]) as server:
        assert [c.name async for c in connect(server.url + PATH, json={"a": 1}).calls()] == ["now"]
    assert [json.loads(r.body) for r in server.requests] == [{"a": 1}] * 3


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 422])
async def test_it_does_not_ask_again_when_that_cannot_help(status):
    with Provider([busy(status), OK]) as server:
        with pytest.raises(ProviderError, match="later") as raised:
            await anext(connect(server.url + PATH, json={}))
        server.wait_closed(1)
    assert (raised.value.status, raised.value.code) == (status, "busy")
    assert len(server.requests) == 1


async def test_it_gives_up_after_so_many_times():
    with Provider(busy()) as server:
        with pytest.raises(ProviderError, match="later"):
            await anext(connect(server.url + PATH, json={}, retries=3))
        server.wait_closed(1)
    assert len(server.requests) == 4


async def test_a_pause_that_is_too_long_is_left_to_the_caller():
    with Provider(busy(retry_after="3600")) as server, pytest.raises(ProviderError) as raised:
        await anext(connect(server.url + PATH, json={}))
    assert raised.value.retry_after == 3600
    assert raised.value.retryable
    assert len(server.requests) == 1


async def test_the_server_may_forbid_to_ask_again():
    answer = busy(503, x_should_retry="false", retry_after_ms="1")
    with Provider(answer) as server, pytest.raises(ProviderError):
        await anext(connect(server.url + PATH, json={}))
    assert len(server.requests) == 1


def test_the_pause_is_the_one_that_was_asked_for():
    trio = pytest.importorskip("trio")
    testing = pytest.importorskip("trio.testing")
    answers = [httpx.Response(503, headers={"retry-after": "17"}), httpx.Response(200, text="")]

    async def job() -> None:
        transport = httpx.MockTransport(lambda request: answers.pop(0))
        async with httpx.AsyncClient(transport=transport) as client:
            began = anyio.current_time()
            events = [e async for e in connect("http://h" + PATH, json={}, client=client)]
            assert anyio.current_time() - began == pytest.approx(17)
            assert events[-1].kind == "failed"

    trio.run(job, clock=testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("then", ["cut", "reset"])
async def test_a_connection_that_breaks_before_anything_came_is_tried_again(then):
    with Provider([Answer(then=then), OK]) as server:
        stream = connect(server.url + PATH, json={})
        assert [call.name async for call in stream.calls()] == ["now"]
    assert len(server.requests) == 2


async def test_a_connection_that_breaks_later_is_not_tried_again():
    with Provider([Answer([Chat.text("a")], then="cut"), OK]) as server:
        events = [event async for event in connect(server.url + PATH, json={})]
        server.wait_closed(1)
    assert events[-1].kind == "failed"
    assert events[-1].reason == "transport"
    assert len(server.requests) == 1


async def test_a_server_that_is_not_there_is_a_failure_of_the_connection(unused_port):
    stream = connect(f"http://127.0.0.1:{unused_port}{PATH}", json={}, retries=0)
    events = [event async for event in stream]
    assert len(events) == 1
    assert isinstance(events[0], Failed)
    assert events[0].reason == "transport"
    assert events[0].retryable
    with pytest.raises(StreamTruncated, match="ConnectError"):
        stream.raise_for_end()


@pytest.fixture
def unused_port() -> int:
    with Provider(OK) as server:
        return server.port


# --- time, recording, addresses -------------------------------------------------------------------


async def test_the_timeouts_outlast_a_model_that_thinks():
    seen: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"])
        return httpx.Response(200, content=WHOLE)

    async def read_with(**options: Any) -> float:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer), **options) as client:
            [_ async for _ in connect("http://h" + PATH, json={}, client=client)]
        return float(seen[-1]["read"])

    assert await read_with() == TIMEOUT[1] == 600
    assert await read_with(timeout=42) == 42


async def test_the_deadline_holds_while_connecting():
    with Provider(Answer(then="hang")) as server:
        events = [e async for e in connect(server.url + PATH, json={}, deadline=0.05)]
        server.wait_closed(1)
    assert (events[-1].reason, events[-1].code) == ("limit", "deadline")  # type: ignore[union-attr]


async def test_it_records(tmp_path):
    path = tmp_path / "a.sse"
    key = "sk-secret-0123456"
    with Provider([busy(), OK]) as server:
        url = f"{server.url}{PATH}?key={key}"
        stream = connect(url, json={}, headers={"Authorization": f"Bearer {key}"}, record=path)
        events = [event async for event in stream]
    assert [event async for event in replay(path)] == events
    assert key not in path.read_text()


def test_names_of_providers_are_addresses():
    assert connect("anthropic").provider == "anthropic"
    with pytest.raises(UsageError, match=r"provider='gemini'.*openai_chat, mistral"):
        connect("gemini")
    with pytest.raises(UsageError, match="provider='bedrock'"):
        connect("bedrock")
    with pytest.raises(UnknownProvider, match="anthropic"):
        connect("antropic")


def test_a_provider_may_be_named_beside_the_address():
    assert connect("http://127.0.0.1/x", provider="cohere").provider == "cohere"
    assert connect("http://127.0.0.1/x").provider == "auto"


# --- keys -----------------------------------------------------------------------------------------

KEY = "sk-ant-0123456789"


async def sent(url: str, options: dict[str, Any] | None = None, **more: Any) -> httpx.Headers:
    """The headers that a server at this address would see."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=WHOLE)

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, **(options or {})) as client:
        [_ async for _ in connect(url, json={}, client=client, **more)]
    return seen[0].headers


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-0123456789")


@pytest.mark.usefixtures("keys")
async def test_the_key_in_the_environment_is_sent_to_its_own_provider():
    headers = await sent("anthropic")
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    headers = await sent("https://api.anthropic.com/v1/chat/completions")
    assert headers["authorization"] == f"Bearer {KEY}"  # its own key, sent as that wire sends it
    assert "x-api-key" not in headers


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    "url",
    ["https://example.com/v1/messages", "http://api.anthropic.com/v1/messages",
     "https://api.anthropic.com.example.com/v1/messages", "https://openrouter.ai/v1/responses"],
)  # fmt: skip
async def test_no_key_is_sent_to_anybody_else(url):
    headers = await sent(url)
    assert not {"x-api-key", "authorization"} & set(headers)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("given", "header"),
    [
        ({"headers": {"X-Api-Key": "mine-0123"}}, "x-api-key"),
        ({"headers": {"Authorization": "Bearer mine-0123"}}, "authorization"),
        ({"options": {"headers": {"x-api-key": "mine-0123"}}}, "x-api-key"),
        ({"options": {"auth": ("me", "mine-0123")}}, "authorization"),
    ],
)
async def test_a_key_that_is_given_is_the_only_one(given, header):
    headers = await sent("anthropic", **given)
    assert {"x-api-key", "authorization"} & set(headers) == {header}
    assert KEY not in str(headers.multi_items())


@pytest.mark.usefixtures("keys")
async def test_a_key_in_the_address_is_the_only_one():
    assert "x-api-key" not in await sent("https://api.anthropic.com/v1/messages?key=mine-0123")


def test_trio_as_a_guest_of_asyncio_is_trio() -> None:
    """A loop of asyncio runs there as well, and nothing can be asked of it."""
    trio = pytest.importorskip("trio")
    body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body, headers={"content-type": "text/event-stream"})

    async def guest() -> list[str]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            url = "http://api.example/v1/chat/completions"
            async with connect(url, json={}, client=client) as stream:
                return [event.kind async for event in stream]

    async def host() -> list[str]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Any] = loop.create_future()
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=ended.set_result,
        )
        kinds: list[str] = (await ended).unwrap()
        return kinds

    assert asyncio.run(host()) == ["stream_start", "text_delta", "finish"]
