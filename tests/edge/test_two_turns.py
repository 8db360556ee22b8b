"""Two turns of a tool conversation with the real SDK clients, against a mock provider server.

The first request is written here and sent by the SDK, its stream is read here, the call is answered
here, and the second request must be understood. Needs node and a folder with @copilotkit/aimock in
it, named by STREAMNORM_NPM; and an SDK for each client.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamnorm import Conversation, Event, Normalizer, Tool, ToolResult, Turn
from streamnorm.wire import provider

pytestmark = pytest.mark.parts

SERVER = "node_modules/@copilotkit/aimock/dist/cli.js"
TOOLS = [
    Tool("get_weather", "Weather", {"type": "object", "properties": {"location": {"type": "string"}}}),
    Tool("get_time", "Time", {"type": "object", "properties": {"tz": {"type": "string"}}}),
]  # fmt: skip
FIXTURES = {
    "fixtures": [
        {"match": {"userMessage": "weather", "hasToolResult": False},
         "response": {"content": "Let me check.", "toolCalls": [
             {"name": "get_weather", "arguments": {"location": "SF"}},
             {"name": "get_time", "arguments": {"tz": "UTC"}}]}, "chunkSize": 5},
        {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": "60F"}},
    ]
}  # fmt: skip


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = os.environ.get("STREAMNORM_NPM", "")
    if not folder or not (Path(folder) / SERVER).exists() or shutil.which("node") is None:
        pytest.skip("needs node, and @copilotkit/aimock in the folder named by STREAMNORM_NPM")
    fixtures = tmp_path_factory.mktemp("aimock") / "tools.json"
    fixtures.write_text(json.dumps(FIXTURES))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["node", SERVER, "-p", str(port), "-h", "127.0.0.1", "-f", str(fixtures)]
    server = subprocess.Popen([*command, "--log-level", "silent"], cwd=folder)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the mock server did not start")


Send = Callable[[str, dict[str, Any]], Any]


def _openai_chat(url: str, body: dict[str, Any]) -> Any:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="test") as client:
        return [chunk.to_dict() for chunk in client.chat.completions.create(**body)]


def _openai_responses(url: str, body: dict[str, Any]) -> Any:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="test") as client:
        return [event.to_dict() for event in client.responses.create(**body)]


def _azure_foundry(url: str, body: dict[str, Any]) -> Any:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/openai/v1", api_key="test") as client:
        return [event.to_dict() for event in client.responses.create(**body)]


def _anthropic(url: str, body: dict[str, Any]) -> Any:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=url, api_key="test") as client:
        return [event.to_dict() for event in client.messages.create(**body)]


def _gemini(url: str, body: dict[str, Any]) -> Any:
    genai = pytest.importorskip("google.genai")
    config = {"tools": body["tools"], "automatic_function_calling": {"disable": True}}
    with genai.Client(
        api_key="test", http_options={"base_url": url, "api_version": "v1beta"}
    ) as client:
        chunks = client.models.generate_content_stream(
            model="gemini-2.0-flash", contents=body["contents"], config=config
        )
        return [chunk.model_dump(mode="json", by_alias=True, exclude_none=True) for chunk in chunks]


def _ollama(url: str, body: dict[str, Any]) -> Any:
    ollama = pytest.importorskip("ollama")
    client = ollama.Client(url)
    with client._client:
        return [chunk.model_dump(exclude_none=True) for chunk in client.chat(**body)]


CLIENTS: dict[str, Send] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "azure_foundry": _azure_foundry,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}


def ask(target: str, url: str, talk: Conversation) -> Turn:
    body = provider(target).request(talk, TOOLS, model="a-model")
    pipe = Normalizer(target)
    events: list[Event] = []
    for payload in CLIENTS[target](url, body):
        events += pipe.feed_payload(payload)
    return Turn.from_events(events + pipe.close())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("second", CLIENTS)
@pytest.mark.parametrize("first", CLIENTS)
def test_two_turns_with_one_provider_or_two(mock, first, second):
    talk = Conversation().user("What is the weather?")
    turn = ask(first, mock, talk)
    assert [(c.name, c.arguments) for c in turn.calls] == [
        ("get_weather", {"location": "SF"}), ("get_time", {"tz": "UTC"}),
    ]  # fmt: skip
    talk.add(turn).results([ToolResult.for_call(call, {"ok": True}) for call in turn.calls[::-1]])
    assert ask(second, mock, talk).text == "60F"
