"""Keys: whose goes where, and that none is ever told."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from streamnorm.edge.refusals import BODY
from streamnorm.errors import UsageError
from streamnorm.gateway.asking import Refused, ask
from streamnorm.gateway.headers import asked_with, client_headers, passed_query
from streamnorm.gateway.upstreams import Upstreams
from streamnorm.providers import provider_row
from streamnorm.testing import call, error, say, script
from tests.gateway.kit import (
    TALKS,
    Chat,
    Generate,
    Messages,
    Responses,
    Talk,
    between,
    gateway,
    gateways,
    post,
    telling,
    with_more,
)

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


def answering(status: int, headers: dict[str, str], chunks: list[bytes]) -> httpx.AsyncClient:
    """A client whose every request is answered so, chunk by chunk."""

    async def said() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, content=said())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


CANARIES = ("canary.of.this.gateway", "canary.of.another.upstream", "canary.of.the.client")


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
@pytest.mark.parametrize("wire", ["anthropic", "openai_responses", "openai_chat", "gemini"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_no_key_of_anybody_is_kept_or_told_though_it_looks_like_none(
    talk: type[Talk], wire: str, stream: bool, tmp_path: Path
):
    """Whoever is asked repeats all keys that it could know, wherever an answer has a place for them."""
    keys = ", ".join(CANARIES)
    steps = say(keys), call("get_weather", id=CANARIES[0], city=keys), say(keys)
    repeats = [
        (200, script(*steps).chunks(wire)),
        (200, script(say("Hello"), error("overloaded", keys)).chunks(wire)),
        (400, [json.dumps({"error": {"message": keys, "type": keys, "code": keys}}).encode()]),
    ]
    kind = provider_row(wire).content_type
    ours, others, theirs = CANARIES
    options = {
        "environment": {"OURS": ours, "OTHERS": others}, "record": tmp_path,
        "key_env": ["asked=OURS", "other=OTHERS"],
    }  # fmt: skip
    to = [f"asked@{wire}=http://upstream", "other@ollama=http://upstream"]
    seen = []
    for status, chunks in repeats:
        headers = {"content-type": kind, "request-id": keys, "x-own": keys}
        with gateway(to, http=answering(status, headers, chunks), **options) as running:
            body = talk("", stream=stream).body()
            heard = post(running.url, talk.path, body, x_api_key=theirs, authorization=theirs)
            seen += [heard.text, str(heard.headers), json.dumps(running.rows)]
            pages = ("/", "/gateway/flow", "/metrics", "/health", "/api/takes")
            seen += [httpx.get(running.url + path).text for path in pages]
    takes = list(tmp_path.rglob("*.sse"))
    assert len(takes) == 2
    for text in (*seen, *(path.read_text() for path in takes)):
        assert not [key for key in CANARIES if key in text]


SPELT = "canary+of/this-gateway=47"
SPELLINGS = [
    SPELT.replace("/", "\\/"),
    SPELT.replace("-", "\\u002d"),
    SPELT.replace("+", "\\u002B").replace("=", "\\u003d"),
    json.dumps(SPELT.replace("/", "\\/"))[1:-1],
    quote(SPELT, safe=""),
    quote(quote(SPELT, safe="")).lower(),
    SPELT.replace("/", "&#x2f;").replace("=", "&#61;"),
]


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("size", [7, 100_000], ids=["in pieces", "at once"])
def test_a_key_is_told_in_no_spelling_and_in_no_pieces(talk: type[Talk], spelling: str, size: int):
    said = script(say("Hi")).bytes(talk.wire).replace(b"Hi", spelling.encode())
    assert spelling.encode() in said
    chunks = [said[at : at + size] for at in range(0, len(said), size)]
    options = {"environment": {"OURS": SPELT}, "key_env": ["OURS"]}
    with between(talk.wire, telling(talk.wire, chunks), **options) as (running, _):
        heard = post(running.url, talk.path, talk("").body())
    assert spelling not in heard.text
    assert len(heard.text) == len(said)
    assert "x" * len(spelling) in heard.text


@pytest.mark.parametrize("written", [OURS, OURS.replace("-", "\\u002d")])
@pytest.mark.parametrize("cut", [1, 13, 20, 24])
async def test_a_refusal_that_is_cut_inside_a_key_tells_no_part_of_it(written: str, cut: int):
    long = b"." * (BODY - cut) + written.encode() + b"!"
    upstream = httpx.MockTransport(lambda request: httpx.Response(401, content=long))
    async with httpx.AsyncClient(transport=upstream) as http:
        with pytest.raises(Refused) as refused:
            await ask(http, f"{HOME}/v1", {"x-api-key": OURS}, b"{}", wire="anthropic")
    assert len(refused.value.body) == BODY
    assert refused.value.body[-cut:].startswith(
        b"xxxxxx"[:cut] if cut > 6 else written.encode()[:cut]
    )


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


def test_a_key_in_the_address_opens_the_door_and_goes_no_further():
    """As clients of generateContent may send it."""
    answers = script(say("Hi"))
    environment = {"DOOR": OURS}
    with between("gemini", answers, client_key_env="DOOR", environment=environment) as (
        at,
        upstream,
    ):
        path, body = Generate.path, Generate("").body()
        assert post(at.url, with_more(path, f"key={THEIRS}"), body).status == 401
        assert post(at.url, with_more(path, f"key={OURS}"), body).status == 200
        assert httpx.get(f"{at.url}/v1beta/models?key={OURS}&pageSize=5").status_code == 200
    (asked,) = upstream.requests
    assert OURS not in asked.path + str(asked.headers)


async def test_a_key_in_the_address_goes_to_its_own_provider_alone_and_is_told_nowhere():
    asked: list[httpx.Request] = []

    def answering(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        told = f"no such key: {request.headers.get('x-goog-api-key')} {request.url}"
        return httpx.Response(401, json={"error": {"message": told}})

    rows: list[dict[str, object]] = []
    heard = []
    for to in ("gemini", "gemini=https://elsewhere.example", "openai_chat"):
        async with httpx.AsyncClient(transport=httpx.MockTransport(answering)) as upstream:
            app = gateways.app(to, environment={}, tell=rows.append, http=upstream)
            inside = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=inside, base_url="http://localhost") as client:
                path = f"/v1beta/models/m:generateContent?%24x=1&key={quote('a+b/' + THEIRS)}"
                heard.append((await client.post(path, json=Generate("").body())).text)
    assert [request.headers.get("x-goog-api-key") for request in asked] == [
        f"a+b/{THEIRS}", None, None
    ]  # fmt: skip
    assert [request.url.query for request in asked] == [b"%24x=1", b"%24x=1", b""]
    assert THEIRS not in str(rows) + "".join(heard) + str([request.url for request in asked])


async def test_a_key_in_a_header_goes_before_one_in_the_address():
    asked: list[httpx.Request] = []

    def answering(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(401, json={})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answering)) as upstream:
        app = gateways.app("gemini", environment={}, tell=lambda row: None, http=upstream)
        inside = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=inside, base_url="http://localhost") as client:
            path = f"/v1beta/models/m:generateContent?key={THEIRS}"
            await client.post(path, json={"contents": []}, headers={"x-goog-api-key": OURS})
    assert [request.headers["x-goog-api-key"] for request in asked] == [OURS]


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


def sent_by_hand(url: str, *lines: str) -> str:
    """The first line of the answer to a request with exactly these headers."""
    address = httpx.URL(url)
    body = json.dumps(Responses("").body()).encode()
    head = "\r\n".join((
        f"POST {address.path}{Responses.path} HTTP/1.1", *lines, "content-type: application/json",
        f"content-length: {len(body)}", "connection: close", "", "",
    ))  # fmt: skip
    with socket.create_connection((address.host, address.port)) as client:
        client.sendall(head.encode() + body)
        return client.makefile("rb").readline().decode()


@pytest.mark.parametrize(
    "lines",
    [
        ["host: 127.0.0.1", "host: evil.example"],
        ["host: 127.0.0.1", "Host: 127.0.0.1"],
        ["host: 127.0.0.1", "origin: http://127.0.0.1", "origin: https://evil.example"],
    ],
)
def test_who_names_two_hosts_or_two_origins_gets_nothing(lines: list[str]):
    with between("openai_responses", script(say("Hi"))) as (running, upstream):
        assert " 400 " in sent_by_hand(running.url, *lines)
        assert upstream.requests == []


@pytest.mark.parametrize(
    "lines",
    [
        ["host: LOCALHOST"],
        ["host: localhost."],
        ["host: 127.0.0.1:"],
        ["host: [::1]:8181"],
        ["host: LocalHost.:80", "origin: http://LOCALHOST:80"],
        ["host: localhost:80", "origin: HTTP://LOCALHOST.:80"],
        ["host: 127.0.0.1", "origin: HTTPS://PAGE.example"],
        ["host: 127.0.0.1", "content-encoding: Identity"],
        ["host: 127.0.0.1", "content-encoding:"],
    ],
)
def test_another_spelling_of_the_same_name_is_that_name(lines: list[str]):
    options = {"origins": ["https://Page.example/"]}
    with between("openai_responses", script(say("Hi")), **options) as (running, _):
        assert " 200 " in sent_by_hand(running.url, *lines)


@pytest.mark.parametrize(
    "lines",
    [
        ["host: localhost.evil.example"],
        ["host: localhost..evil"],
        ["host: evil.example:127.0.0.1"],
        ["host: 127.0.0.1:80:evil"],
        ["host: 127.0.0.1:80", "origin: http://127.0.0.1:8080"],
        ["host: 127.0.0.1", "origin: null"],
        ["host: 127.0.0.1", "origin: 127.0.0.1"],
        ["host: 127.0.0.1", "origin: https://page.example.evil"],
    ],
)
def test_what_only_looks_like_the_name_is_another(lines: list[str]):
    options = {"origins": ["https://Page.example/"]}
    with between("openai_responses", script(say("Hi")), **options) as (running, upstream):
        assert " 403 " in sent_by_hand(running.url, *lines)
        assert upstream.requests == []
