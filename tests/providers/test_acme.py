"""A provider that another package brings is a provider like ours, everywhere, by its row alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import httpx
import pytest

from streamnorm import (
    Conversation,
    Normalizer,
    Tool,
    ToolResult,
    connect,
    from_messages,
    normalize,
    provider,
    repair,
    to_messages,
)
from streamnorm.captures import read_take
from streamnorm.cli import main
from streamnorm.edge.refusals import refusal
from streamnorm.edge.sources import Facts
from streamnorm.errors import UnknownProvider
from streamnorm.providers import PROVIDERS
from streamnorm.providers.detect import by_address
from streamnorm.testing import call, error, say, script
from tests.conftest import calls_of, text_of
from tests.providers.acme import FILES, installed

LOOK = script(say("Let me look."), call("tides", harbour="Höfn"))
URL = "https://answers.acme.example/v1/answers"
OURS = list(PROVIDERS)  # before acme is there


@pytest.fixture(autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("site"), FILES):
        yield


@pytest.fixture
def sent() -> tuple[httpx.AsyncClient, list[httpx.Request]]:
    """A client that reaches acme wherever it calls, and what it asked."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, content=LOOK.bytes("acme"))

    return httpx.AsyncClient(transport=httpx.MockTransport(answer)), requests


def test_it_stands_behind_ours():
    assert list(PROVIDERS) == [*OURS, "acme"]
    assert (len(PROVIDERS), "acme" in PROVIDERS) == (len(OURS) + 1, True)
    assert PROVIDERS["acme"].title == "Acme Answers"
    assert PROVIDERS["acme"].items[0].type == "use"


@pytest.mark.parametrize("name", ["acme", "auto"])
def test_it_is_read_by_name_and_by_its_first_payload(name):
    pipe = Normalizer(name)
    events = pipe.feed(LOOK.bytes("acme")) + pipe.close()
    assert (events[0].provider, events[0].model) == ("acme", "acme-1")
    assert text_of(events) == "Let me look."
    assert [(c.name, c.arguments) for c in calls_of(events)] == [("tides", {"harbour": "Höfn"})]
    assert (events[-1].kind, events[-1].reason, events[-1].raw_reason) == (
        "finish", "tool_calls", "tools",
    )  # fmt: skip
    assert not pipe.notes


def test_requests_are_written_in_its_words():
    (made,) = calls_of(LOOK.events("acme"))
    talk = Conversation().user("When is high water?").assistant(LOOK.events("acme"))
    talk = talk.results([ToolResult.for_call(made, "04:12")])
    wire = provider("acme")
    tools = [Tool("tides", "High and low water")]
    assert wire.request(talk, tools=tools, system="Be brief", model="m") == {
        "model": "m", "rule": "Be brief",
        "talk": [
            {"role": "user", "content": "When is high water?"},
            {"role": "acme", "content": "Let me look.",
             "uses": [{"id": made.id, "tool": "tides", "with": {"harbour": "Höfn"}}]},
            {"role": "tool", "id": made.id, "gave": "04:12"},
        ],
        "tools": [{"tool": "tides", "about": "High and low water",
                   "takes": {"type": "object", "properties": {}}}],
    }  # fmt: skip
    assert (wire.container, wire.path()) == ("talk", "/v1/answers")


BODY = {
    "rule": "Be brief",
    "talk": [
        {"role": "user", "content": "When is high water?"},
        {
            "role": "acme",
            "content": "I look.",
            "uses": [{"id": "u1", "tool": "tides", "with": {"a": 1}}],
        },
        {"role": "tool", "id": "u1", "gave": "04:12"},
    ],
}


@pytest.mark.parametrize("name", ["acme", "auto"])
def test_its_messages_are_read_back(name):
    talk = from_messages(name, BODY).conversation
    assert talk.system == "Be brief"
    assert [turn.role for turn in talk.turns] == ["user", "assistant", "tool"]
    assert [(c.id, c.name, c.arguments) for c in talk.turns[1].calls] == [("u1", "tides", {"a": 1})]
    assert [(r.call.id, r.output) for r in talk.turns[2].results] == [("u1", "04:12")]
    assert to_messages("acme", talk) == BODY["talk"]


@pytest.mark.parametrize("name", ["acme", "auto"])
def test_its_requests_are_repaired(name):
    assert repair(name, BODY).body is BODY
    broken = {**BODY, "talk": [*BODY["talk"][:2], {"role": "tool", "id": "u7", "gave": "late"}]}
    mended = repair(name, broken)
    assert mended.body["talk"][2:] == [{"role": "tool", "id": "u1", "gave": "nobody knows"}]
    assert sorted(row.what for row in mended.report) == ["closed", "dropped_result"]


@pytest.mark.parametrize("source", ["anthropic", "gemini", "acme"])
def test_streams_of_others_are_served_in_its_words(source):
    served = b"".join(provider("acme").serve(LOOK.events(source)))
    pipe = Normalizer("acme")
    events = pipe.feed(served) + pipe.close()
    assert [(c.name, c.arguments) for c in calls_of(events)] == [("tides", {"harbour": "Höfn"})]
    assert text_of(events) == "Let me look."


async def test_it_is_connected_to_by_name_with_its_headers_and_its_key(sent, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "acme-0123456789")
    client, requests = sent
    stream = connect("acme", json={"talk": []}, client=client)
    assert [c.name async for c in stream.calls()] == ["tides"]
    assert (stream.provider, str(requests[0].url)) == ("acme", URL)
    assert requests[0].headers["acme-version"] == "7"
    assert requests[0].headers["x-acme-key"] == "acme-0123456789"


@pytest.mark.parametrize(
    ("url", "wire", "home"),
    [
        (URL, "acme", "acme"),
        ("https://answers.acme.example/chat/completions", "acme", "acme"),
        ("https://answers.acme.example/v1/messages", "anthropic", "acme"),
        ("https://proxy.example/v1/answers", "acme", None),
        ("https://proxy.example/chat/completions", "openai_chat", None),
    ],
)
def test_addresses_tell_it(url, wire, home):
    told = by_address(url)
    assert (told.name, told.home.name if told.home else None) == (wire, home)


def test_a_response_from_its_address_is_its_stream():
    response = httpx.Response(200, content=b"", request=httpx.Request("POST", URL))
    with normalize(response) as stream:
        assert stream.provider == "acme"


def test_objects_of_its_sdk_tell_it_and_are_its_payloads():
    sdk = ModuleType("acme_sdk")
    exec(SDK, sdk.__dict__)
    stream = normalize(sdk.Stream([{"acme": "text", "text": "Hi", "debug": "x"}]))
    assert stream.provider == "acme"
    assert [e.text for e in stream if e.kind == "text_delta"] == ["Hi"]
    assert not stream.notes["wire.field_unknown"]


SDK = """
class Chunk:
    def __init__(self, said): self.said = said
    def model_dump(self, *, exclude=None, **_):
        return {k: v for k, v in self.said.items() if k not in (exclude or ())}

class Stream:
    def __init__(self, said): self.said = said
    def __iter__(self): return map(Chunk, self.said)
"""


def test_it_is_recorded_with_its_key_from_its_variable(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ACME_KEY", "acme-0123456789")
    with LOOK.server("acme") as server:
        args = [server.url, "--provider", "acme", "--data", "{}", "-o", str(tmp_path)]
        assert main(["record", *args]) == 0
    (request,) = server.requests
    assert (request.headers["x-acme-key"], request.headers["acme-version"]) == (
        "acme-0123456789", "7",
    )  # fmt: skip
    assert "the key is read from ACME_KEY" in capsys.readouterr().err
    (file,) = tmp_path.glob("*.sse")
    assert (read_take(file).provider, read_take(file).wire) == ("acme", LOOK.bytes("acme"))
    assert main(["record", "--help"]) == 0
    assert "acme                 ACME_KEY or ACME_TOKEN" in capsys.readouterr().out


def test_its_words_in_refusals_are_known():
    facts = Facts(status=503, headers={"x-acme-error": "acme_is_closed"})
    assert not refusal(facts, b"{}").retryable
    assert refusal(Facts(status=503), b'{"wait":"4s"}').retry_after == 4


def test_its_errors_and_what_it_cannot_say_are_told():
    (*_, end) = script(say("Hi"), error("overloaded", "too much")).events("acme")
    assert (end.kind, end.code, end.error) == ("failed", "overloaded", "too much")


async def test_telemetry_calls_it_by_its_name():
    pytest.importorskip("opentelemetry.sdk")
    from tests.ui.test_telemetry import Kit, all_of, told

    kit = Kit()
    await all_of(kit.telemetry.observe(told(*LOOK.events("acme"))))
    assert kit.spans[0].attributes["gen_ai.provider.name"] == "acme.answers"


async def test_the_page_lists_it_and_talks_in_its_words():
    pytest.importorskip("starlette")
    from streamnorm.page.app import create_app
    from streamnorm.page.live import live_models
    from streamnorm.page.takes import Takes

    live = live_models(["acme=acme-1"], {"ACME_KEY": "k"}, ())
    transport = httpx.ASGITransport(create_app(Takes(None), live=live))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
        config: dict[str, Any] = (await client.get("/api/config")).json()
    assert {"name": "acme", "title": "Acme Answers", "scripted": True} in config["providers"]
    assert "acme" in json.dumps(config["live"])


def test_the_command_line_lists_it(capsys):
    assert main(["providers", "--provider", "acme", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["name"], row["wire"]) == ("acme", "Acme Answers")
    assert main(["providers", "--types", "--provider", "acme"]) == 0
    assert "use" in capsys.readouterr().out


def test_without_the_package_it_is_unknown(monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[1:])
    assert list(PROVIDERS) == OURS
    with pytest.raises(UnknownProvider, match="no provider 'acme'"):
        Normalizer("acme")
