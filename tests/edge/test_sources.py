"""Anything that streams is a source, and the same recording gives the same events through each."""

from __future__ import annotations

import gzip
import io
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import httpx_sse
import pytest

from streamnorm.captures import read_take
from streamnorm.edge.connect import connect
from streamnorm.edge.sources import as_item, is_transport, source_of
from streamnorm.edge.stream import normalize
from streamnorm.errors import UsageError
from streamnorm.events import Event
from streamnorm.framing.sse import SSE, read
from streamnorm.providers import PROVIDERS
from streamnorm.takes.format import Take
from tests.conftest import RECORDINGS, Chat, run, some, take_id, take_paths
from tests.edge.servers import Answer, Provider, Request

TAKES = {take_id(path): read_take(path) for path in take_paths()}
SENT = some(TAKES, 80)  # over each of the networks


def expected(take: Take) -> list[Event]:
    return run(take.provider or "auto", [take.wire], seed=take.seed)


def of(provider: str) -> dict[str, Take]:
    return {name: take for name, take in TAKES.items() if name.startswith(provider + "/")}


def chunks(take: Take, size: int = 700) -> list[bytes]:
    return [take.wire[i : i + size] for i in range(0, len(take.wire), size)]


def differing(heard: dict[str, list[Event]]) -> list[str]:
    return [name for name, events in heard.items() if events != expected(TAKES[name])]


# --- at hand --------------------------------------------------------------------------------------


async def later(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


class Items:
    """An async iterable that is no generator."""

    def __init__(self, items: list[Any]) -> None:
        self.items = iter(items)

    def __aiter__(self) -> Items:
        return self

    async def __anext__(self) -> Any:
        for item in self.items:
            return item
        raise StopAsyncIteration


AT_HAND: dict[str, Callable[[list[bytes]], Any]] = {
    "list": list,
    "tuple": tuple,
    "one bytes": b"".join,
    "generator": lambda items: (item for item in items),
    "bytearrays": lambda items: [bytearray(item) for item in items],
    "memoryviews": lambda items: [memoryview(item) for item in items],
    "async generator": later,
    "async iterator": Items,
}


@pytest.mark.parametrize("kind", AT_HAND)
async def test_every_take_gives_the_same_events_from_an_iterable(kind):
    heard = {
        name: [e async for e in normalize(AT_HAND[kind](chunks(t)), t.provider, seed=t.seed)]
        for name, t in TAKES.items()
    }
    assert differing(heard) == []


@pytest.mark.parametrize("kind", ["list", "tuple", "one bytes", "generator"])
def test_every_take_gives_the_same_events_in_a_for_loop(kind):
    heard = {
        name: list(normalize(AT_HAND[kind](chunks(t)), t.provider, seed=t.seed))
        for name, t in TAKES.items()
    }
    assert differing(heard) == []


async def test_text_is_a_source_where_the_bytes_are_text():
    for name, take in TAKES.items():
        try:
            text = take.wire.decode()
        except UnicodeDecodeError:
            continue
        parts = [text[i : i + 100] for i in range(0, len(text), 100)]
        events = [e async for e in normalize(later(parts), take.provider, seed=take.seed)]
        assert events == expected(take), name


def payloads(take: Take) -> list[dict[str, Any]]:
    """The decoded payloads of an SSE body, as somebody else's client would give them."""
    framer = SSE()
    blocks = [read(block) for block in framer.feed(take.wire)]
    found = [json.loads(b.data) for b in blocks if b.data and b.data.strip() != b"[DONE]"]
    return [p for p in found if isinstance(p, dict)]


CLEAN = ("parallel_calls", "text_only", "no_arguments", "max_tokens_in_arguments")
DECODED = [n for n in TAKES if n.endswith(CLEAN) and not n.startswith(("ollama", "bedrock"))]


def without_spacing(events: list[Event]) -> list[Any]:
    """Where a wire gives arguments as an object, decoding it loses the spaces of its text."""
    return [
        (e.kind, e.id, e.name, e.arguments) if e.kind == "tool_call" else e
        for e in events
        if e.kind != "tool_call_delta"
    ]


@pytest.mark.parametrize("name", DECODED)
async def test_decoded_payloads_give_the_same_events(name):
    take = TAKES[name]
    for source in (payloads(take), later(payloads(take)), (p for p in payloads(take))):
        events = [e async for e in normalize(source, take.provider, seed=take.seed)]
        assert without_spacing(events) == without_spacing(expected(take))


# --- over the network -----------------------------------------------------------------------------


@contextmanager
def serving() -> Iterator[Provider]:
    """A provider that answers with the take that the header ``x-take`` names."""

    def answer(request: Request) -> Answer:
        name = request.headers["x-take"]
        provider = name.partition("/")[0]
        kind = PROVIDERS[provider].content_type
        if TAKES[name].wire.lstrip()[:1] == b"[":
            kind = "application/json"
        return Answer(chunks(TAKES[name]), headers={"content-type": kind})

    with Provider(answer) as server:
        yield server


def url_of(server: Provider, name: str) -> str:
    return server.url + PROVIDERS[name.partition("/")[0]].path.format(model="m")


def named(name: str) -> dict[str, Any]:
    """What no address on loopback can tell."""
    provider = name.partition("/")[0]
    told = provider not in ("mistral", "azure_foundry")
    return {"provider": None if told else provider, "seed": TAKES[name].seed}


Heard = dict[str, list[Event]]


async def by_httpx(server: Provider) -> Heard:
    return await _by_async_client(httpx, server)


async def by_httpx2(server: Provider) -> Heard:
    return await _by_async_client(pytest.importorskip("httpx2"), server)


async def _by_async_client(library: Any, server: Provider) -> Heard:
    heard = {}
    async with library.AsyncClient(verify=False) as client:
        for name in SENT:
            asked = client.stream("POST", url_of(server, name), headers={"x-take": name})
            async with asked as response, normalize(response, **named(name)) as stream:
                heard[name] = [event async for event in stream]
    return heard


async def by_sync_httpx(server: Provider) -> Heard:
    return _by_client(httpx, server)


async def by_sync_httpx2(server: Provider) -> Heard:
    return _by_client(pytest.importorskip("httpx2"), server)


def _by_client(library: Any, server: Provider) -> Heard:
    heard = {}
    with library.Client(verify=False) as client:
        for name in SENT:
            asked = client.stream("POST", url_of(server, name), headers={"x-take": name})
            with asked as response, normalize(response, **named(name)) as stream:
                heard[name] = list(stream)
    return heard


async def by_sync_httpx_in_an_async_loop(server: Provider) -> Heard:
    heard = {}
    with httpx.Client(verify=False) as client:
        for name in SENT:
            request = client.build_request("POST", url_of(server, name), headers={"x-take": name})
            response = client.send(request, stream=True)  # noqa: ASYNC212 - on purpose
            heard[name] = [event async for event in normalize(response, **named(name))]
    return heard


async def by_read_response(server: Provider) -> Heard:
    heard = {}
    async with httpx.AsyncClient(verify=False) as client:
        for name in SENT:
            response = await client.post(url_of(server, name), headers={"x-take": name})
            heard[name] = [event async for event in normalize(response, **named(name))]
            assert heard[name] == list(normalize(response, **named(name)))
    return heard


async def by_aiohttp(server: Provider) -> Heard:
    aiohttp = pytest.importorskip("aiohttp")
    heard = {}
    async with aiohttp.ClientSession() as session:
        for name in SENT:
            asked = session.post(url_of(server, name), headers={"x-take": name})
            async with asked as response, normalize(response, **named(name)) as stream:
                heard[name] = [event async for event in stream]
    return heard


async def by_urllib(server: Provider) -> Heard:
    return await anyio.to_thread.run_sync(_by_urllib, server)


def _by_urllib(server: Provider) -> Heard:
    heard = {}
    for name in SENT:
        request = urllib.request.Request(url_of(server, name), b"{}", {"x-take": name})
        with urllib.request.urlopen(request) as response:
            heard[name] = list(normalize(response, **named(name)))
    return heard


async def by_httpx_sse(server: Provider) -> Heard:
    heard = {}
    async with httpx.AsyncClient(verify=False) as client:
        for name in SENT:
            asked = {"url": url_of(server, name), "headers": {"x-take": name}}
            async with httpx_sse.aconnect_sse(client, "POST", **asked) as events:
                heard[name] = [event async for event in normalize(events, **named(name))]
    return heard


async def by_connect(server: Provider) -> Heard:
    heard = {}
    async with httpx.AsyncClient(verify=False) as client:
        for name in SENT:
            stream = connect(
                url_of(server, name), json={}, headers={"x-take": name}, client=client,
                **named(name),
            )  # fmt: skip
            heard[name] = [event async for event in stream]
    return heard


NETWORKS: list[Callable[[Provider], Awaitable[Heard]]] = [
    by_httpx, by_httpx2, by_sync_httpx, by_sync_httpx2, by_sync_httpx_in_an_async_loop,
    by_read_response, by_aiohttp, by_urllib, by_httpx_sse, by_connect,
]  # fmt: skip


@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__[3:])
async def test_every_take_gives_the_same_events_from_a_response(network):
    with serving() as server:
        heard = await network(server)
        server.wait_closed(5)
    assert differing(heard) == []
    assert len(heard) == len(SENT)


# --- SDK objects ----------------------------------------------------------------------------------

MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]


def openai_clients(server: Provider) -> Any:
    openai = pytest.importorskip("openai")
    options = {"api_key": "sk-123456", "base_url": server.url + "/v1", "max_retries": 0}
    return SimpleNamespace(now=openai.OpenAI(**options), later=openai.AsyncOpenAI(**options))


def anthropic_clients(server: Provider) -> Any:
    anthropic = pytest.importorskip("anthropic")
    options = {"api_key": "sk-123456", "base_url": server.url, "max_retries": 0}
    return SimpleNamespace(
        now=anthropic.Anthropic(**options), later=anthropic.AsyncAnthropic(**options)
    )


@pytest.mark.parts
async def test_openai_chat_streams():
    with serving() as server:
        clients = openai_clients(server)
        now, later = {}, {}
        for name, take in of("openai_chat").items():
            asked = {"model": "m", "messages": MESSAGES, "stream": True,
                     "extra_headers": {"x-take": name}}  # fmt: skip
            stream = clients.now.chat.completions.create(**asked)
            with normalize(stream, seed=take.seed) as events:
                assert events.provider == "openai_chat"
                now[name] = list(events)
            stream = await clients.later.chat.completions.create(**asked)
            later[name] = [event async for event in normalize(stream, seed=take.seed)]
        clients.now.close()
        await clients.later.close()
        server.wait_closed(5)
    assert differing(now) == differing(later) == []


@pytest.mark.parts
async def test_openai_responses_streams():
    with serving() as server:
        clients = openai_clients(server)
        now, later = {}, {}
        for name, take in of("openai_responses").items():
            asked = {"model": "m", "input": "hi", "stream": True,
                     "extra_headers": {"x-take": name}}  # fmt: skip
            stream = clients.now.responses.create(**asked)
            now[name] = list(normalize(stream, seed=take.seed))
            stream = await clients.later.responses.create(**asked)
            later[name] = [event async for event in normalize(stream, seed=take.seed)]
        clients.now.close()
        await clients.later.close()
    assert differing(now) == differing(later) == []


@pytest.mark.parts
async def test_openai_helper_streams():
    with serving() as server:
        clients = openai_clients(server)
        heard = {}
        more = {"extra_headers": {"x-take": "openai_chat/parallel_calls"}}
        async with clients.later.chat.completions.stream(
            model="m", messages=MESSAGES, **more
        ) as stream:
            events = normalize(stream, seed=TAKES["openai_chat/parallel_calls"].seed)
            heard["openai_chat/parallel_calls"] = [event async for event in events]
        more = {"extra_headers": {"x-take": "openai_responses/parallel_calls"}}
        with clients.now.responses.stream(model="m", input="hi", **more) as stream:
            events = normalize(stream, seed=TAKES["openai_responses/parallel_calls"].seed)
            heard["openai_responses/parallel_calls"] = list(events)
        clients.now.close()
        await clients.later.close()
    assert differing(heard) == []


@pytest.mark.parts
async def test_openai_raw_responses():
    with serving() as server:
        clients = openai_clients(server)
        name = "openai_chat/parallel_calls"
        async with clients.later.chat.completions.with_streaming_response.create(
            model="m", messages=MESSAGES, stream=True, extra_headers={"x-take": name}
        ) as response:
            heard = {name: [e async for e in normalize(response, seed=TAKES[name].seed)]}
        clients.now.close()
        await clients.later.close()
    assert differing(heard) == []


@pytest.mark.parts
async def test_anthropic_streams():
    with serving() as server:
        clients = anthropic_clients(server)
        now, later = {}, {}
        for name, take in of("anthropic").items():
            asked = {"model": "m", "messages": MESSAGES, "max_tokens": 9, "stream": True,
                     "extra_headers": {"x-take": name}}  # fmt: skip
            stream = clients.now.messages.create(**asked)
            now[name] = list(normalize(stream, seed=take.seed))
            stream = await clients.later.messages.create(**asked)
            later[name] = [event async for event in normalize(stream, seed=take.seed)]
        clients.now.close()
        await clients.later.close()
    assert differing(now) == differing(later) == []


@pytest.mark.parts
async def test_anthropic_helper_streams():
    with serving() as server:
        clients = anthropic_clients(server)
        now, later = {}, {}
        for name, take in of("anthropic").items():
            asked = {"model": "m", "messages": MESSAGES, "max_tokens": 9,
                     "extra_headers": {"x-take": name}}  # fmt: skip
            with clients.now.messages.stream(**asked) as stream:
                now[name] = list(normalize(stream, seed=take.seed))
            async with clients.later.messages.stream(**asked) as stream:
                later[name] = [event async for event in normalize(stream, seed=take.seed)]
        clients.now.close()
        await clients.later.close()
    assert differing(now) == differing(later) == []


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # of aiohttp's
@pytest.mark.parametrize("name", [n for n in of("gemini") if n.endswith(CLEAN)])
@pytest.mark.parts
async def test_google_genai_streams(name):
    genai = pytest.importorskip("google.genai")
    take = TAKES[name]
    with serving() as server:
        options = {"base_url": server.url, "headers": {"x-take": name}}
        client = genai.Client(api_key="key-123456", http_options=options)
        stream = client.models.generate_content_stream(model="m", contents="hi")
        events = normalize(stream, seed=take.seed)
        assert events.provider == "gemini"
        now = list(events)
        stream = await client.aio.models.generate_content_stream(model="m", contents="hi")
        later = [event async for event in normalize(stream, seed=take.seed)]
        client.close()
        await client.aio.aclose()
    assert without_spacing(now) == without_spacing(later) == without_spacing(expected(take))


@pytest.mark.parts
async def test_a_stream_that_was_read_in_part_goes_on_from_there():
    with serving() as server:
        clients = openai_clients(server)
        take = TAKES["openai_chat/parallel_calls"]
        stream = await clients.later.chat.completions.create(
            model="m", messages=MESSAGES, stream=True,
            extra_headers={"x-take": "openai_chat/parallel_calls"},
        )  # fmt: skip
        await stream.__anext__()  # the role, and nothing of a call
        heard = [event async for event in normalize(stream).calls()]
        clients.now.close()
        await clients.later.close()
    assert [c.arguments for c in heard] == [
        e.arguments for e in expected(take) if e.kind == "tool_call"
    ]


# --- whose stream it is ---------------------------------------------------------------------------


def test_a_payload_tells_the_provider_if_nothing_else_does():
    stream = normalize([Chat.text("hi")])
    assert stream.provider == "auto"
    next(stream)
    assert stream.provider == "openai_chat"


# --- what is no source ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "advice"),
    [
        ("takes/a.sse", "replay"),
        (Path("takes/a.sse"), "replay"),
        (io.BytesIO(b"data: {}"), "replay"),
        ({"choices": []}, r"\[payload\]"),
        (42, "iterable of bytes"),
        (None, "iterable of bytes"),
        (httpx.AsyncClient.get, "iterable of bytes"),
    ],
)
def test_what_is_no_source_is_told_so(thing, advice):
    with pytest.raises(UsageError, match=advice):
        normalize(thing)


async def test_a_coroutine_is_to_be_awaited():
    async def ask() -> None: ...

    job = ask()
    with pytest.raises(UsageError, match="await"):
        normalize(job)
    await job


def test_an_item_of_an_unknown_type_is_an_error_of_the_caller():
    with pytest.raises(UsageError, match=r"builtins\.int"):
        list(normalize([1, 2, 3]))


async def test_an_async_source_cannot_be_read_in_a_for_loop():
    async with normalize(later([b""])) as stream:
        with pytest.raises(UsageError, match="async for"):
            list(stream)
        with pytest.raises(UsageError, match="async with"):
            stream.close()


async def test_a_response_that_was_consumed_is_an_error_of_the_caller():
    with serving() as server:
        async with httpx.AsyncClient() as client:
            name = "openai_chat/text_only"
            async with client.stream(
                "POST", url_of(server, name), headers={"x-take": name}
            ) as response:
                async for _ in response.aiter_raw():
                    pass
                with pytest.raises(UsageError, match="read already"):
                    normalize(response)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [None, "identity", "gzip"])
async def test_a_response_knows_how_much_of_it_was_read(encoding):
    body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    sent = gzip.compress(body) if encoding == "gzip" else body
    headers = {"content-encoding": encoding} if encoding else {}

    async def parts():
        for at in range(0, len(sent), 9):
            yield sent[at : at + 9]

    response = httpx.Response(200, content=parts(), headers=headers)
    async with normalize(response, "openai_chat") as stream:
        assert [event.kind async for event in stream][-1] == "finish"
    assert response.num_bytes_downloaded == len(sent)


@pytest.mark.parametrize("resumes", [0, 1])
async def test_a_response_that_was_asked_for_knows_how_much_of_it_was_read(resumes):
    sent = TAKES["openai_responses/text_only"].wire
    parts = [sent[at : at + 99] for at in range(0, len(sent), 99)]
    responses: list[httpx.Response] = []

    async def heard(response: httpx.Response) -> None:
        responses.append(response)

    with Provider(Answer(parts)) as server:
        async with httpx.AsyncClient(event_hooks={"response": [heard]}) as client:
            stream = connect(
                server.url + "/v1/responses", json={}, client=client, resumes=resumes,
                provider="openai_responses",
            )  # fmt: skip
            assert [event.kind async for event in stream][-1] == "finish"
    assert [response.num_bytes_downloaded for response in responses] == [len(sent)]


def test_a_decoded_server_sent_event_becomes_one_again():
    event = httpx_sse.ServerSentEvent(event="ping", data='{"a":1}\nb')
    assert as_item(event) == b'event: ping\ndata: {"a":1}\ndata: b\n\n'


def test_library_errors_are_failures_of_the_connection_and_mistakes_are_not():
    assert is_transport(httpx.ReadError("x"))
    assert is_transport(TimeoutError())
    assert is_transport(EOFError())
    assert not is_transport(KeyError("x"))
    assert not is_transport(UsageError("x"))
    assert not is_transport(KeyboardInterrupt())


def test_a_list_is_at_hand_and_a_generator_is_waited_for():
    assert source_of([b""]).instant
    assert not source_of(item for item in [b""]).instant


def test_there_is_a_take_for_every_provider():
    assert {name.partition("/")[0] for name in TAKES} >= set(PROVIDERS)
    assert RECORDINGS.is_dir()
