"""Against provider servers that nobody here wrote, through httpx and through each SDK's own objects.

``@copilotkit/aimock`` (npm; the folder that holds its ``node_modules`` is named by STREAMNORM_NPM)
and ``llmock`` (PyPI) are started on loopback; what is not installed is left out, with the reason.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamnorm.edge.connect import connect
from streamnorm.edge.stream import Stream, normalize
from streamnorm.errors import ProviderError
from streamnorm.events import Event, Failed, Finish
from tests.conftest import assert_well_formed, calls_of, text_of

pytestmark = [
    pytest.mark.parts,
    pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning"),  # genai on aiohttp
    pytest.mark.filterwarnings("ignore:.* is not a valid FinishReason:UserWarning"),  # aimock's
]

NOTE = "a longer argument text, so that it takes several chunks"
WEATHER = [
    ("get_weather", {"location": "Höfn", "note": NOTE}),
    ("get_time", {"tz": "UTC"}),
]
WRITE = [("write", {"content": "0123456789" * 8})]
ANSWER = "It is sunny in Oslo, and it will stay so until the evening, they say."
FIXTURES = [
    {"match": {"userMessage": "weather"}, "chunkSize": 12, "response": {
        "content": "Let me check.",
        "toolCalls": [
            {"name": WEATHER[0][0], "arguments": WEATHER[0][1]},
            {"id": "call_fixed_2", "name": WEATHER[1][0], "arguments": WEATHER[1][1]},
        ]}},
    {"match": {"userMessage": "talk"}, "response": {"content": ANSWER}},
    {"match": {"userMessage": "cut"}, "truncateAfterChunks": 3, "latency": 5, "chunkSize": 8,
     "response": {"toolCalls": [{"name": WRITE[0][0], "arguments": WRITE[0][1]}]}},
    {"match": {"userMessage": "babble"}, "truncateAfterChunks": 3, "latency": 5, "chunkSize": 4,
     "response": {"content": ANSWER}},
    {"match": {"userMessage": "drop"}, "disconnectAfterMs": 60, "latency": 20, "chunkSize": 4,
     "response": {"content": ANSWER}},
    {"match": {"userMessage": "boom"}, "response": {
        "error": {"message": "Overloaded", "type": "overloaded_error"}, "status": 529}},
]  # fmt: skip
USER = {"role": "user"}


# --- starting them --------------------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def _running(command: list[str], port: int) -> Iterator[str]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"{process.args!r} does not listen")


def _aimock() -> Path | None:
    root = Path(os.environ.get("STREAMNORM_NPM", "."))
    places = (root / "node_modules", root)
    found = (place / "@copilotkit/aimock/dist/cli.js" for place in places)
    return next((path for path in found if path.is_file()), None)


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = _aimock()
    if script is None or shutil.which("node") is None:
        pytest.skip("needs node, and @copilotkit/aimock in the folder STREAMNORM_NPM")
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}))
    port = _free_port()
    more = ["-p", str(port), "-h", "127.0.0.1", "-f", str(fixtures), "-l", "5", "-c", "12"]
    with _running(["node", str(script), *more, "--log-level", "warn"], port) as url:
        yield url


@contextmanager
def llmock(*options: str) -> Iterator[str]:
    if importlib.util.find_spec("llmock") is None:
        pytest.skip("needs llmock")
    port = _free_port()
    command = [sys.executable, "-c", "from llmock.cli import app; app()", "serve"]
    with _running([*command, "-h", "127.0.0.1", "-p", str(port), *options], port) as url:
        yield url


# --- the routes -----------------------------------------------------------------------------------

Route = Callable[[str], tuple[str, dict[str, Any]]]


def _messages(word: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": word}]


ROUTES: dict[str, tuple[str, str, Callable[[str], dict[str, Any]]]] = {
    "chat": ("openai_chat", "/v1/chat/completions",
             lambda w: {"model": "m", "stream": True, "messages": _messages(w)}),
    "responses": ("openai_responses", "/v1/responses",
                  lambda w: {"model": "m", "stream": True, "input": _messages(w)}),
    "messages": ("anthropic", "/v1/messages",
                 lambda w: {"model": "m", "max_tokens": 9, "stream": True,
                            "messages": _messages(w)}),
    "gemini": ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse",
               lambda w: {"contents": [USER | {"parts": [{"text": w}]}]}),
    "interactions": ("gemini_interactions", "/v1beta/interactions",
                     lambda w: {"model": "m", "stream": True, "input": w}),
    "azure chat": ("azure_foundry", "/openai/deployments/d/chat/completions?api-version=1",
                   lambda w: {"stream": True, "messages": _messages(w)}),
    "azure responses": ("azure_foundry", "/openai/v1/responses",
                        lambda w: {"model": "m", "stream": True, "input": _messages(w)}),
    "ollama": ("ollama", "/api/chat", lambda w: {"model": "m", "messages": _messages(w)}),
    "bedrock": ("bedrock", "/model/m/converse-stream",
                lambda w: {"messages": [USER | {"content": [{"text": w}]}]}),
    "cohere": ("cohere", "/v2/chat",
               lambda w: {"model": "m", "stream": True, "messages": _messages(w)}),
}  # fmt: skip
each_route = pytest.mark.parametrize("route", ROUTES)


@asynccontextmanager
async def by_httpx(url: str, route: str, word: str) -> AsyncIterator[Stream]:
    provider, path, body = ROUTES[route]
    told = None if provider != "azure_foundry" else provider  # its host would tell, a port cannot
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", url + path, json=body(word)) as response,
        normalize(response, told) as stream,
    ):
        yield stream
    assert stream.provider == provider


async def heard(url: str, route: str, word: str) -> list[Event]:
    async with by_httpx(url, route, word) as stream:
        events = [event async for event in stream]
    assert_well_formed(events)
    return events


def said(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in calls_of(events)]


# --- aimock through httpx -------------------------------------------------------------------------


@each_route
async def test_tools_through_httpx(aimock, route):
    events = await heard(aimock, route, "weather")
    assert said(events) == WEATHER
    assert text_of(events) == "Let me check."
    end = events[-1]
    assert isinstance(end, Finish)
    assert end.reason == "tool_calls"
    if route != "ollama":  # whose calls have no ids on this server
        assert calls_of(events)[1].id == "call_fixed_2"


@each_route
async def test_text_through_httpx(aimock, route):
    events = await heard(aimock, route, "talk")
    assert text_of(events) == ANSWER
    assert isinstance(events[-1], Finish)


@each_route
async def test_a_cut_never_makes_a_call_that_was_not_said(aimock, route):
    events = await heard(aimock, route, "cut")
    whole_at_once = ("gemini", "ollama", "interactions")  # the call fits before the cut
    if isinstance(events[-1], Finish):
        assert route in whole_at_once
        assert said(events) == WRITE
    else:
        assert said(events) in ([], WRITE)


@each_route
@pytest.mark.parametrize("word", ["babble", "drop"])
async def test_a_cut_in_text_is_a_failure(aimock, route, word):
    events = await heard(aimock, route, word)
    end = events[-1]
    assert isinstance(end, Failed)
    assert end.reason in ("transport", "truncated")
    assert end.retryable
    assert ANSWER.startswith(text_of(events))


@each_route
async def test_an_error_is_the_providers(aimock, route):
    with pytest.raises(ProviderError, match="Overloaded") as raised:
        await heard(aimock, route, "boom")
    error = raised.value
    assert (error.status, error.retryable, error.code) == (529, True, "overloaded_error")


@each_route
async def test_connect_speaks_to_it(aimock, route):
    provider, path, body = ROUTES[route]
    stream = connect(aimock + path, json=body("weather"), provider=provider)
    assert [(call.name, call.arguments) async for call in stream.calls()] == WEATHER


# --- aimock through the SDKs ----------------------------------------------------------------------


def _openai(aimock: str, *, azure: bool = False, later: bool = False) -> Any:
    openai = pytest.importorskip("openai")
    if azure:
        make = openai.AsyncAzureOpenAI if later else openai.AzureOpenAI
        return make(api_key="k-123456", azure_endpoint=aimock, api_version="1", max_retries=0)
    make = openai.AsyncOpenAI if later else openai.OpenAI
    return make(api_key="k-123456", base_url=aimock + "/v1", max_retries=0)


def _anthropic(aimock: str, *, later: bool = False) -> Any:
    anthropic = pytest.importorskip("anthropic")
    make = anthropic.AsyncAnthropic if later else anthropic.Anthropic
    return make(api_key="k-123456", base_url=aimock, max_retries=0)


def _genai(aimock: str) -> Any:
    genai = pytest.importorskip("google.genai")
    options = {"base_url": aimock, "api_version": "v1beta"}
    return genai.Client(api_key="k-123456", http_options=options)


def openai_chat(aimock: str, word: str) -> list[Event]:
    with _openai(aimock) as client:
        asked = {"model": "m", "messages": _messages(word), "stream": True}
        return list(normalize(client.chat.completions.create(**asked)))


async def openai_chat_later(aimock: str, word: str) -> list[Event]:
    async with _openai(aimock, later=True) as client:
        asked = {"model": "m", "messages": _messages(word), "stream": True}
        stream = await client.chat.completions.create(**asked)
        return [event async for event in normalize(stream)]


def openai_responses(aimock: str, word: str) -> list[Event]:
    with _openai(aimock) as client:
        asked = {"model": "m", "input": _messages(word), "stream": True}
        return list(normalize(client.responses.create(**asked)))


async def openai_responses_later(aimock: str, word: str) -> list[Event]:
    async with _openai(aimock, later=True) as client:
        asked = {"model": "m", "input": _messages(word), "stream": True}
        return [event async for event in normalize(await client.responses.create(**asked))]


def azure(aimock: str, word: str) -> list[Event]:
    with _openai(aimock, azure=True) as client:
        asked = {"model": "d", "messages": _messages(word), "stream": True}
        return list(normalize(client.chat.completions.create(**asked)))


async def azure_later(aimock: str, word: str) -> list[Event]:
    async with _openai(aimock, azure=True, later=True) as client:
        asked = {"model": "d", "messages": _messages(word), "stream": True}
        stream = await client.chat.completions.create(**asked)
        return [event async for event in normalize(stream, "azure_foundry")]


def anthropic(aimock: str, word: str) -> list[Event]:
    with _anthropic(aimock) as client:
        asked = {"model": "m", "max_tokens": 9, "messages": _messages(word), "stream": True}
        return list(normalize(client.messages.create(**asked)))


async def anthropic_helper_later(aimock: str, word: str) -> list[Event]:
    async with _anthropic(aimock, later=True) as client:
        asked = {"model": "m", "max_tokens": 9, "messages": _messages(word)}
        async with client.messages.stream(**asked) as stream:
            return [event async for event in normalize(stream)]


def genai(aimock: str, word: str) -> list[Event]:
    with _genai(aimock) as client:
        return list(normalize(client.models.generate_content_stream(model="m", contents=word)))


async def genai_later(aimock: str, word: str) -> list[Event]:
    async with _genai(aimock).aio as client:
        stream = await client.models.generate_content_stream(model="m", contents=word)
        return [event async for event in normalize(stream)]


SDKS = [
    openai_chat, openai_chat_later, openai_responses, openai_responses_later, azure, azure_later,
    anthropic, anthropic_helper_later, genai, genai_later,
]  # fmt: skip
each_sdk = pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.__name__)


async def through(sdk: Callable[[str, str], Any], aimock: str, word: str) -> list[Event]:
    events = sdk(aimock, word)
    events = events if isinstance(events, list) else await events
    assert_well_formed(events)
    return list(events)


@each_sdk
async def test_tools_through_an_sdk(aimock, sdk):
    events = await through(sdk, aimock, "weather")
    assert said(events) == WEATHER
    assert text_of(events) == "Let me check."
    assert isinstance(events[-1], Finish)


@each_sdk
async def test_text_through_an_sdk(aimock, sdk):
    events = await through(sdk, aimock, "talk")
    assert text_of(events) == ANSWER
    assert isinstance(events[-1], Finish)


@each_sdk
@pytest.mark.parametrize("word", ["cut", "babble", "drop"])
async def test_a_cut_through_an_sdk(aimock, sdk, word):
    events = await through(sdk, aimock, word)
    assert said(events) in ([], WRITE)
    if isinstance(events[-1], Finish):
        assert (sdk in (genai, genai_later), said(events)) == (True, WRITE)
    assert ANSWER.startswith(text_of(events))


async def test_an_error_through_genai(aimock):
    with pytest.raises(ProviderError, match="Overloaded") as raised:
        genai(aimock, "boom")
    assert raised.value.status == 529


# --- llmock and its faults ------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALL = [("get_weather", {"city": "mock-city"})]
OFFERS: dict[str, tuple[str, str, list[Any]]] = {
    "chat": ("", "tools", [{"type": "function", "function": {
        "name": "get_weather", "description": "d", "parameters": SCHEMA}}]),
    "responses": ("", "tools", [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]),
    "messages": ("/anthropic", "tools", [{"name": "get_weather", "input_schema": SCHEMA}]),
    "gemini": ("/gemini", "tools", [{"functionDeclarations": [
        {"name": "get_weather", "parameters": SCHEMA}]}]),
}  # fmt: skip
FAULTS = {
    "none": (),
    "truncate": ("truncated", "protocol"),
    "disconnect": ("transport", "truncated"),
    "malformed": ("protocol",),
    "stall": ("idle",),
}


async def offered(url: str, route: str, *, tools: bool) -> list[Event]:
    _, path, body = ROUTES[route]
    prefix, field, offer = OFFERS[route]
    asked = body("weather in Oslo") | ({field: offer} if tools else {})
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", url + prefix + path, json=asked) as response,
        normalize(response, idle=1) as stream,
    ):
        events = [event async for event in stream]
    assert_well_formed(events)
    return events


@pytest.mark.parametrize("fault", FAULTS)
async def test_llmock_and_its_faults(fault):
    options = [] if fault == "none" else ["--stream-fault", f"{fault}=1.0"]
    ends = []
    with llmock(*options) as url:
        for route, tools in itertools.product(OFFERS, (True, False)):
            events = await offered(url, route, tools=tools)
            ends.append(end := events[-1])
            what = (route, tools, end)
            assert said(events) in ([], CALL), what
            if isinstance(end, Failed):
                assert end.reason in FAULTS[fault], what
            else:  # a fault comes anywhere, so also after the end: then everything is there
                assert said(events) == (CALL if tools else []), what
                assert tools or text_of(events), what
    assert any(isinstance(end, Failed) for end in ends) == (fault != "none")


async def test_llmock_refuses():
    with llmock("--error-rate", "429=1.0") as url:
        for route in OFFERS:
            with pytest.raises(ProviderError) as raised:
                await offered(url, route, tools=True)
            assert (raised.value.status, raised.value.retryable) == (429, True)
            assert raised.value.message
