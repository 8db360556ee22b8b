"""Keys: whose goes where, and that none is ever told."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from streamnorm.errors import UsageError
from streamnorm.gateway.headers import asked_with, client_headers, passed_query
from streamnorm.gateway.upstreams import Upstreams
from streamnorm.testing import call, error, say, script
from tests.gateway.kit import TALKS, Chat, Messages, Responses, Talk, between, gateway, post

OURS, THEIRS = "sk-ours-canary-0123456789", "sk-theirs-canary-9876543210"
HOME = "https://api.anthropic.com"


def sent(to: str, wire: str, client: dict[str, str], **options: object) -> dict[str, str]:
    """The headers with a key that go to the only upstream."""
    (upstream,) = Upstreams([to], **options).all.values()  # type: ignore[arg-type]
    return upstream.key_for(wire, client)


# --- whose key goes where -------------------------------------------------------------------------


def test_a_key_of_the_environment_goes_to_its_provider_s_own_host():
    environment = {"ANTHROPIC_API_KEY": OURS}
    assert sent("anthropic", "anthropic", {}, environment=environment) == {"x-api-key": OURS}
    assert sent("anthropic", "openai_chat", {}, environment=environment) == {"x-api-key": OURS}


@pytest.mark.parametrize(
    "base", ["https://gateway.example", "http://api.anthropic.com", "http://127.0.0.1:9000"]
)
def test_it_goes_nowhere_else(base: str):
    environment = {"ANTHROPIC_API_KEY": OURS}
    assert sent(f"anthropic={base}", "anthropic", {}, environment=environment) == {}


def test_a_variable_that_was_named_holds_the_key_for_that_upstream():
    options = {"environment": {"MINE": OURS}, "key_env": ["MINE"]}
    assert sent("openai_chat=https://x.example/v1", "anthropic", {}, **options) == {
        "authorization": f"Bearer {OURS}"
    }


def test_with_several_upstreams_each_key_is_somebody_s():
    to = ["openai_chat=https://x.example/v1", "anthropic"]
    with pytest.raises(UsageError, match="say whose key it is"):
        Upstreams(to, key_env=["MINE"], environment={"MINE": OURS})
    with pytest.raises(UsageError, match="no --to 'other'"):
        Upstreams(to, key_env=["other=MINE"], environment={"MINE": OURS})
    with pytest.raises(UsageError, match="has no MINE"):
        Upstreams(to, key_env=["anthropic=MINE"], environment={})
    both = Upstreams(to, key_env=["openai_chat=MINE"], environment={"MINE": OURS}).all
    assert both["openai_chat"].key_for("anthropic", {}) == {"authorization": f"Bearer {OURS}"}
    assert both["anthropic"].key_for("openai_chat", {}) == {}


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
def test_a_client_s_own_key_goes_to_its_own_provider(header: str):
    assert sent("anthropic", "anthropic", {header: THEIRS}) == {header: THEIRS}


def test_it_goes_to_no_other_wire_and_to_no_other_host():
    client = {"x-api-key": THEIRS, "authorization": f"Bearer {THEIRS}"}
    assert sent("anthropic", "openai_chat", client) == {}
    assert sent("anthropic=https://gateway.example", "anthropic", client) == {}
    assert sent("anthropic=http://127.0.0.1:1", "anthropic", client) == {}
    assert sent("ollama", "anthropic", client) == {}


def test_the_gateway_s_own_key_goes_before_a_client_s():
    options = {"environment": {"ANTHROPIC_API_KEY": OURS}}
    assert sent("anthropic", "anthropic", {"x-api-key": THEIRS}, **options) == {"x-api-key": OURS}


def test_no_password_stands_in_an_address():
    with pytest.raises(UsageError, match="no key in an address"):
        Upstreams(["ollama=http://me:secret@host"])


def test_a_header_that_comes_twice_is_a_list_and_a_key_is_the_last():
    names = (b"anthropic-beta", b"Anthropic-Beta", b"x-api-key", b"x-api-key")
    told = client_headers(zip(names, (b"one", b"two", b"first", b"second"), strict=True))
    assert told == {"anthropic-beta": "one, two", "x-api-key": "second"}


def test_headers_of_the_wire_go_on_and_those_of_a_person_or_a_connection_stay():
    kept = {
        "anthropic-beta": "a,b", "anthropic-version": "2023-06-01", "openai-organization": "o",
        "session-id": "s", "x-client-request-id": "r", "user-agent": "me/1", "accept": "*/*",
        "content-type": "application/json",
    }  # fmt: skip
    stay = {
        "authorization": THEIRS, "x-api-key": THEIRS, "x-goog-api-key": THEIRS, "cookie": "a=b",
        "host": "h", "content-length": "3", "connection": "close", "accept-encoding": "gzip",
        "transfer-encoding": "chunked", "x-forwarded-for": "1.2.3.4", "origin": "http://h",
        "proxy-authorization": THEIRS, "x-auth-token": THEIRS,
    }  # fmt: skip
    assert asked_with({**kept, **stay}) == kept
    assert passed_query("beta=true&api_key=abcdef") == "beta=true"


# --- no key is ever told --------------------------------------------------------------------------


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "gemini"])
def test_a_key_that_an_upstream_repeats_reaches_nobody(talk: type[Talk], wire: str, tmp_path: Path):
    told = f"no such key: {OURS}, or {THEIRS}"
    answers = [
        script(error("auth", told, status=401)),
        script(say(f"Hello {OURS}"), call("get_weather", city="Oslo")),
        script(say("Hello"), error("overloaded", told)),
        script(error("overloaded", told)),
    ]
    options = {"environment": {"MINE": OURS}, "key_env": ["MINE"], "record": tmp_path}
    seen = []
    for one in answers:
        with between(wire, one, **options) as (running, upstream):
            body = talk("").body()
            heard = post(running.url, talk.path, body, x_api_key=THEIRS, authorization=THEIRS)
            seen += [heard.text, str(heard.headers), json.dumps(running.rows)]
            seen += [
                httpx.get(running.url + path).text
                for path in ("/gateway/flow", "/metrics", "/health")
            ]
            names = [take["name"] for take in httpx.get(f"{running.url}/api/takes").json()]
            seen += [httpx.get(f"{running.url}/api/takes/{name}").text for name in names]
            asked = upstream.requests[0]
            assert OURS in str(asked.headers)
            assert THEIRS not in str(asked.headers)
    seen += [path.read_text() for path in tmp_path.rglob("*.sse")]
    assert len(list(tmp_path.rglob("*.sse"))) == 3
    for text in seen:
        assert OURS not in text
        assert THEIRS not in text


def test_takes_are_this_user_s_alone(tmp_path: Path):
    with between("openai_chat", script(say("Hi")), record=tmp_path / "takes") as (running, _):
        post(running.url, Chat.path, Chat("").body())
    (take,) = (tmp_path / "takes").rglob("*.sse")
    assert take.stat().st_mode & 0o777 == 0o600
    assert take.parent.stat().st_mode & 0o777 == 0o700
    assert running.row()["take"] == f"openai_chat/{take.stem}"


# --- who may ask ----------------------------------------------------------------------------------


def test_with_a_key_for_clients_nobody_else_is_answered():
    options = {"client_key_env": "DOOR", "environment": {"DOOR": "open-sesame"}}
    with between("anthropic", script(say("Hi")), **options) as (running, upstream):
        body = Messages("").body()
        assert post(running.url, Messages.path, body).status == 401
        assert post(running.url, Messages.path, body, x_api_key="open-sesam").status == 401
        assert httpx.get(f"{running.url}/gateway/flow").status_code == 401
        assert httpx.get(f"{running.url}/metrics").status_code == 401
        assert upstream.requests == []
        assert httpx.head(running.url + "/").status_code == 200
        assert httpx.get(f"{running.url}/health").status_code == 200
        assert post(running.url, Messages.path, body, x_api_key="open-sesame").status == 200
        bearer = post(running.url, Messages.path, body, authorization="Bearer open-sesame")
        assert bearer.status == 200
        assert httpx.get(f"{running.url}/", auth=("anybody", "open-sesame")).status_code == 200
        assert "open-sesame" not in str([asked.headers for asked in upstream.requests])


def test_a_key_for_clients_that_is_not_there_is_told():
    with pytest.raises(UsageError, match="has no DOOR"), gateway("ollama", client_key_env="DOOR"):
        pass


def test_a_foreign_page_or_name_gets_nothing():
    with between("openai_responses", script(say("Hi"))) as (running, upstream):
        body = Responses("").body()
        assert post(running.url, Responses.path, body, origin="https://evil.example").status == 403
        assert post(running.url, Responses.path, body, host="evil.example").status == 403
        assert (
            httpx.get(f"{running.url}/gateway/flow", headers={"host": "evil.example"}).status_code
            == 403
        )
        assert upstream.requests == []
        assert post(running.url, Responses.path, body).status == 200
