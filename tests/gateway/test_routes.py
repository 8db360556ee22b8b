"""Which upstream is asked for which model, at which address; and the small questions of clients."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from streamnorm.errors import UnknownProvider, UsageError
from streamnorm.gateway.upstreams import Upstreams
from streamnorm.testing import Server, say, script
from streamnorm.testing.http import Answer
from tests.gateway.kit import TALKS, Chat, Messages, Talk, anthropic, between, gateway, openai, post

# --- addresses ------------------------------------------------------------------------------------

ADDRESSES = [
    ("openai_chat", "https://api.openai.com/v1/chat/completions"),
    ("openai_chat=https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
    ("openai_chat=http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
    ("openai_chat=http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/chat/completions"),
    ("openai_chat=https://h.example/v1beta/openai", "https://h.example/v1beta/openai/chat/completions"),
    ("openai_chat=https://h.example/x/chat/completions?v=1", "https://h.example/x/chat/completions?v=1"),
    ("openai_responses=https://h.example/openai?v=1", "https://h.example/openai/responses?v=1"),
    ("anthropic", "https://api.anthropic.com/v1/messages"),
    ("anthropic=https://h.example/anthropic", "https://h.example/anthropic/v1/messages"),
    ("anthropic=https://h.example/v1", "https://h.example/v1/messages"),
    ("gemini=http://h.example/v1beta",
     "http://h.example/v1beta/models/a%2Fb:streamGenerateContent?alt=sse"),
    ("bedrock=https://h.example", "https://h.example/model/a%2Fb/converse-stream"),
    ("ollama", "http://127.0.0.1:11434/api/chat"),
]  # fmt: skip


@pytest.mark.parametrize(("to", "address"), ADDRESSES)
def test_a_base_is_what_people_give_to_other_clients(to: str, address: str):
    (upstream,) = Upstreams([to]).all.values()
    assert upstream.address("a/b") == address


@pytest.mark.parametrize(
    ("to", "why"),
    [
        (["bedrock"], "no address of its own"),
        (["openai_chat=localhost:8000"], "such as https://host/path"),
        (["codex=http://h"], "can only be read"),
        (["anthropic", "anthropic=https://h.example"], "two upstreams are called"),
        (["a b@anthropic"], "letters, digits"),
        ([], "say where requests go"),
    ],
)
def test_what_cannot_be_asked_is_told_when_the_gateway_starts(to: list[str], why: str):
    with pytest.raises(UsageError, match=why):
        Upstreams(to)


def test_an_unknown_provider_is_told_with_those_there_are():
    for name in ("antropic", "auto"):
        with pytest.raises(UnknownProvider, match="there are: anthropic") as told:
            Upstreams([name])
        assert "or 'auto'" not in str(told.value)


# --- models ---------------------------------------------------------------------------------------

TO = ["anthropic", "fast@gemini", "local@ollama"]
MAPS = ["claude-haiku=fast/flash", "claude-*=local/llama", "*-mini=small", "claude-opus=opus-5"]


@pytest.mark.parametrize(
    ("asked", "upstream", "model"),
    [
        ("claude-haiku", "fast", "flash"),
        ("claude-sonnet", "local", "llama"),
        ("claude-opus", "anthropic", "opus-5"),  # exactly, though a pattern stands before it
        ("gpt-mini", "anthropic", "small"),
        ("fast/pro", "fast", "pro"),
        ("local/org/model", "local", "org/model"),
        ("org/model", "anthropic", "org/model"),
        ("gpt", "anthropic", "gpt"),
    ],
)
def test_a_model_goes_where_the_first_rule_says_that_fits(asked: str, upstream: str, model: str):
    route = Upstreams(TO, map=MAPS).route(asked)
    assert (route.upstream.name, route.model) == (upstream, model)


def test_one_model_for_everything_but_what_is_mapped_or_named():
    upstreams = Upstreams(TO, model="local/llama", map=["claude-*=opus"])
    routes = {name: upstreams.route(name) for name in ("gpt", "claude-1", "fast/pro")}
    assert {n: (r.upstream.name, r.model) for n, r in routes.items()} == {
        "gpt": ("local", "llama"), "claude-1": ("anthropic", "opus"), "fast/pro": ("fast", "pro"),
    }  # fmt: skip


@pytest.mark.parametrize("text", ["claude", "=x", "x="])
def test_a_rule_that_is_none_is_told(text: str):
    with pytest.raises(UsageError, match="CLIENT_MODEL=MODEL"):
        Upstreams(TO, map=[text])


def test_each_model_reaches_its_own_upstream():
    with script(say("One")).server("openai_chat") as one, script(say("Two")).server(
        "openai_chat"
    ) as two:  # fmt: skip
        to = [f"one@openai_chat={one.url}", f"two@openai_chat={two.url}"]
        with gateway(to, map=["big-*=two/huge"]) as running:
            for model in ("big-1", "two/x", "one/y", "z"):
                post(running.url, Chat.path, Chat("").body(model=model))
    assert [asked.body["model"] for asked in one.requests] == ["y", "z"]
    assert [asked.body["model"] for asked in two.requests] == ["huge", "x"]
    assert [row["upstream"] for row in running.rows] == ["two", "two", "one", "one"]


def test_both_kinds_of_clients_read_the_list_of_models():
    with gateway("ollama", model="llama", map=["claude-a=x", "claude-*=y"]) as running:
        listed = httpx.get(f"{running.url}/v1/models").json()
        with anthropic.Anthropic(base_url=running.url, api_key="any") as client:
            ours = client.models.list()
        with openai.OpenAI(base_url=f"{running.url}/v1", api_key="any") as client:
            theirs = client.models.list()
    names = ["claude-a", "llama", "ollama/x", "ollama/y", "ollama/llama"]
    assert [model.id for model in ours.data] == [model.id for model in theirs.data] == names
    assert ours.data[0].display_name == "claude-a"
    assert theirs.data[0].object == "model"
    assert listed["models"] == []


# --- small questions ------------------------------------------------------------------------------


def test_tokens_are_counted_by_an_upstream_of_the_same_wire():
    with Server(counted) as upstream, gateway(f"anthropic={upstream.url}") as running:
        said = [{"role": "user", "content": "Hello"}]
        with anthropic.Anthropic(base_url=running.url, api_key="any", max_retries=0) as client:
            known = client.messages.count_tokens(model="m", messages=said)
            reckoned = client.messages.count_tokens(model="m", messages=said)
    assert known.input_tokens == 42
    assert upstream.requests[0].path == "/v1/messages/count_tokens"
    assert 5 <= reckoned.input_tokens <= 30  # it could not count the second time


def test_tokens_of_a_request_for_a_stream_are_a_number_all_the_same():
    with Server(counted) as upstream, gateway(f"anthropic={upstream.url}") as running:
        heard = post(running.url, "/v1/messages/count_tokens", Messages("").body())
    assert (heard.status, heard.payloads) == (200, [{"input_tokens": 42}])


def counted(number: int) -> Answer:
    if number:
        return Answer(404, "application/json", [b"{}"])
    return Answer(200, "application/json", [b'{"input_tokens":42}'])


def test_tokens_are_reckoned_where_nobody_counts_them():
    with between("openai_chat", script(say("Hi"))) as (running, upstream):
        said = [{"role": "user", "content": "word " * 400}]
        with anthropic.Anthropic(base_url=running.url, api_key="any") as client:
            reckoned = client.messages.count_tokens(model="m", messages=said)
        assert 400 <= reckoned.input_tokens <= 1000
        body = {"model": "m", "input": "word " * 400}
        answer = post(running.url, "/v1/responses/input_tokens", body)
    assert answer.payloads[0]["object"] == "response.input_tokens"
    assert upstream.requests == []


@pytest.mark.parametrize("talk", [Messages, Chat], ids=lambda talk: talk.wire)
def test_a_websocket_is_asked_to_use_http(talk: type[Talk]):
    with gateway("ollama") as running:
        upgrade = {
            "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        }  # fmt: skip
        assert httpx.get(running.url + talk.path, headers=upgrade).status_code == 426


def test_the_paths_without_a_version_are_the_same():
    with between("openai_chat", script(say("Hi"))) as (running, _):
        assert post(running.url, "/chat/completions", Chat("").body()).status == 200


@pytest.mark.parametrize("record", [False, True], ids=["", "record"])
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/messages/", 404),
        ("POST", "/v1/messages/batches", 404),
        ("GET", "/v1/responses/resp_1", 404),
        ("PUT", "/v1/messages", 405),
        ("DELETE", "/v1/chat/completions", 405),
        ("GET", "/v1/messages/count_tokens", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/models/x", 404),
        ("GET", "/v1/chat/completions", 426),
        ("GET", "/nothing", 404),
        ("GET", "/takes/", 404),
    ],
)
def test_where_nothing_is_answered_every_client_reads_why(
    method: str, path: str, status: int, record: bool, tmp_path: Path
):
    with gateway("ollama", record=tmp_path if record else None) as running:
        heard = httpx.request(method, running.url + path)
    assert heard.status_code == status
    said = heard.json()
    assert said["type"] == "error"
    assert said["error"]["type"] in ("not_found_error", "invalid_request_error")
    assert said["error"]["message"].startswith(("there is no", "this is asked with"))
    assert {"param", "code"} <= said["error"].keys()
    assert ("allow" in heard.headers) is (status == 405)


def test_sdks_hear_of_a_path_that_is_not_there_in_their_own_way():
    with gateway("ollama") as running:
        theirs = anthropic.Anthropic(base_url=running.url, api_key="any", max_retries=0)
        with theirs, pytest.raises(anthropic.NotFoundError, match="ask /v1/messages"):
            theirs.models.retrieve("x")
        ours = openai.OpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0)
        with ours, pytest.raises(openai.NotFoundError) as told:
            ours.models.retrieve("x")
    assert told.value.type == "not_found_error"


def test_whoever_asks_whether_it_is_there_hears_so():
    with gateway(["ollama", "a@anthropic"]) as running:
        assert httpx.head(f"{running.url}/").status_code == 200
        assert httpx.get(f"{running.url}/health").json() == {
            "status": "ok", "upstreams": ["ollama", "a"], "open": 0,
        }  # fmt: skip
        page = httpx.get(f"{running.url}/")
        assert page.headers["content-type"].startswith("text/html")
        assert "What goes through now" in page.text
        for path in ("/gateway/flow.js", "/gateway/flow.css", "/static/base.css", "/static/dom.js"):
            assert httpx.get(running.url + path).status_code == 200
        assert httpx.get(f"{running.url}/nothing").status_code == 404
        assert httpx.get(f"{running.url}/takes").status_code == 404  # without --record


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[1]", 400),
        (b"{", 400),
        (b'{"stream":true}', 400),
        (b'{"model":7}', 400),
        (b'{"model":"m","stream":"yes"}', 400),
        (b'{"model":"\xff"}', 400),
        (b'{"model":"' + b"m" * 2000 + b'"}', 413),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_in_the_client_s_own_form(
    talk: type[Talk], body: bytes, status: int
):
    with between("ollama", script(say("Hi")), body=1024) as (running, upstream):
        answer = httpx.post(running.url + talk.path, content=body)
    assert answer.status_code == status
    said = json.loads(answer.text)
    assert said["error"]["message"]
    assert ("type" in said) is (talk is Messages)
    assert upstream.requests == []
    assert running.row()["state"] == "refused"


def test_a_packed_body_is_refused():
    with between("ollama", script(say("Hi"))) as (running, _):
        answer = httpx.post(
            running.url + Chat.path, content=b"x", headers={"content-encoding": "gzip"}
        )
    assert answer.status_code == 400
