"""Planted secrets come back from a server in every way; nothing that is kept, logged, raised or shown has them."""

from __future__ import annotations

import base64
import io
import json
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import streamnorm
from streamnorm import connect, normalize
from streamnorm.errors import StreamnormError
from streamnorm.takes.logs import SecretsHidden
from streamnorm.takes.redact import is_key_name, is_secret_name, secrets_in_text, secrets_in_url
from streamnorm.ui import ag_ui, plain, vercel
from tests.conftest import bytewise
from tests.edge.servers import SSE, Answer, Provider
from tests.takes.test_redact import cores

HEADERS = {
    "authorization": "Bearer CanaryAuth7Qx/+=aZ91", "x-api-key": "CanaryKey8Wc-71bQ",
    "x-auth-tokens": "CanaryTokens5Tv-83kP", "x-session-affinity": "CanarySession4Rf-62jM",
    "cookie": "id=CanaryCookie3Eg-54hN",
}  # fmt: skip
QUERY = {
    "subscription-key": "CanarySub9Zb/+19gL", "pwd": "CanaryPwd2Yn-28fK", "sig": "CanarySig6Um=37dJ",
    "session": "CanaryVisit1Op-46sH",
}  # fmt: skip
BACK = {"set-cookie": "sid=CanarySet0Ia-55wG; Path=/", "x-session-token": "CanaryBack7Ld-64eF"}
NAMED = "CanaryNamed5 Hk&73rD"
ELSEWHERE = "https://me:CanaryUser8Jm@elsewhere.example/v1?sas=CanarySas6Bn-82tC&next=x%3Fpwd%3DCanaryNext9Vq#CanaryOk"
PLANTED = [
    "CanaryAuth7Qx/+=aZ91", "CanaryCookie3Eg-54hN", "CanarySet0Ia-55wG", "CanaryUser8Jm",
    "CanarySas6Bn-82tC", "CanaryNext9Vq", NAMED, *(v for k, v in HEADERS.items() if k.startswith("x-")),
    *QUERY.values(), BACK["x-session-token"],
]  # fmt: skip
ECHOED = [
    value
    for value in PLANTED
    if value not in ("CanaryUser8Jm", "CanarySas6Bn-82tC", "CanaryNext9Vq")
]
WRITINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda s: s,
    "url": lambda s: quote(s, safe=""),
    "base64": lambda s: base64.b64encode(b"k:" + s.encode()).decode(),
}  # fmt: skip
every_writing = pytest.mark.parametrize("writing", WRITINGS)


def echo(writing: str) -> str:
    return " and ".join(WRITINGS[writing](secret) for secret in ECHOED)


def told(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def answers(writing: str) -> dict[str, Answer]:
    """What a server may do with the keys that it was sent."""
    words = echo(writing)
    error = json.dumps({"error": {"message": f"no such key: {words}", "code": words}}).encode()
    chunk = {"id": words, "model": words, "choices": [{"index": 0, "delta": {"content": words}}]}
    heads = {**SSE, **BACK}
    return {
        "a refusal": Answer(bytewise(error), status=401, headers={**BACK, "content-type": "application/json"}),
        "a page": Answer(
            [f"<html>{words}</html>".encode()], status=500, headers={**BACK, "content-type": "text/html"}),
        "a redirect": Answer([], status=307, headers={**BACK, "location": ELSEWHERE}),
        "an error in the stream": Answer(bytewise(told(chunk) + b"data: " + error + b"\n\n"), headers=heads),
        "no JSON": Answer(bytewise(told(chunk) + f"data: {words}\n\n".encode()), headers=heads),
        "odd fields": Answer(bytewise(told({**chunk, words: 1, "choices": [{"index": words}]})), headers=heads),
        "a cut": Answer(bytewise(told(chunk)), headers=heads, then="cut"),
        "one object": Answer(bytewise(json.dumps({"x": words}).encode()), headers=heads),
    }  # fmt: skip


WAYS = list(answers("plain"))
every_way = pytest.mark.parametrize("way", WAYS)


class Heard:
    """Everything that could show a secret."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, *things: Any) -> None:
        for thing in things:
            if isinstance(thing, BaseException):
                self.texts.append("".join(traceback.format_exception(thing)))
                own = {k: v for k, v in vars(thing).items() if k not in ("request", "_request")}
                self.texts += [str(thing), repr(thing), repr(own)]  # a request is its client's
            elif isinstance(thing, bytes):
                self.texts.append(thing.decode("utf-8", "surrogateescape"))
            else:
                self.texts.append(thing if isinstance(thing, str) else repr(thing))

    def secrets(self) -> list[str]:
        everything = "\n".join(self.texts).encode("utf-8", "surrogateescape")
        return [s for s in PLANTED if any(core in everything for core in cores(s))]


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All lines of all loggers, of clients and of ours, through logging and through structlog."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    root = logging.getLogger()
    ours = logging.getLogger("streamnorm")
    before, our_level = root.level, ours.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    ours.setLevel(logging.DEBUG)
    hidden = streamnorm.redact_logs(secrets=[NAMED])
    yield lines
    for name in streamnorm.takes.logs.CLIENTS:
        logging.getLogger(name).removeFilter(hidden)
    root.removeHandler(handler)
    root.setLevel(before)
    ours.setLevel(our_level)


@asynccontextmanager
async def asked(answer: Answer) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    with Provider(answer) as server:
        async with httpx.AsyncClient(headers=HEADERS) as client:
            yield client, f"{server.url}/v1/chat/completions?{httpx.QueryParams(QUERY)}"


async def listen(stream: Any, heard: Heard) -> None:
    """To the end, and then ask it in every way how it ended."""
    events: list[Any] = []
    try:
        async for event in stream:
            events.append(event)
    except StreamnormError as error:
        heard.add(error)
    heard.add(*(event for event in events if event.kind in ("failed", "finish")))
    try:
        stream.raise_for_end()
    except StreamnormError as error:
        heard.add(error)
    heard.add(stream, stream.summary["end"], repr(stream._source), repr(stream._pipe))
    ends = [event for event in events if event.kind == "failed"]
    for protocol in (vercel, ag_ui, plain):
        heard.add(protocol.Encoder().feed(ends))


def takes(folder: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in folder.iterdir())


@every_writing
@every_way
async def test_no_canary_is_kept_raised_or_logged(
    way: str, writing: str, tmp_path: Path, logged: io.StringIO
):
    heard = Heard()
    async with asked(answers(writing)[way]) as (client, url):
        async with client.stream("POST", url) as response:
            stream = normalize(response, "openai_chat", record=tmp_path, secrets=[NAMED])
            await listen(stream, heard)
        stream = connect(
            url, json={}, client=client, provider="openai_chat", record=tmp_path, secrets=[NAMED], retries=0
        )  # fmt: skip
        await listen(stream, heard)
    heard.add(takes(tmp_path), logged.getvalue())
    assert heard.secrets() == []
    assert "CanaryOk" not in takes(tmp_path)


async def test_a_redirect_is_told_without_the_query_of_its_address():
    async with (
        asked(answers("plain")["a redirect"]) as (client, url),
        client.stream("POST", url) as response,
    ):
        with pytest.raises(StreamnormError) as caught:
            [event async for event in normalize(response, "openai_chat")]
    assert str(caught.value) == (
        "HTTP 307: a redirect to https://elsewhere.example/v1, which was not followed"
    )


@every_way
async def test_no_canary_is_raised_under_strict(way: str, logged: io.StringIO):
    heard = Heard()
    async with (
        asked(answers("plain")[way]) as (client, url),
        client.stream("POST", url) as response,
    ):
        await listen(normalize(response, "openai_chat", strict=True, secrets=[NAMED]), heard)
    heard.add(logged.getvalue())
    assert heard.secrets() == []


@every_writing
@every_way
async def test_no_canary_is_kept_or_raised_around_other_clients(
    way: str, writing: str, tmp_path: Path, logged: io.StringIO
):
    heard, told = Heard(), []
    guarded = streamnorm.transport(record=tmp_path, secrets=[NAMED], on_summary=told.append)
    with Provider(answers(writing)[way]) as server:
        async with httpx.AsyncClient(headers=HEADERS, transport=guarded) as client:
            url = f"{server.url}/v1/chat/completions?{httpx.QueryParams(QUERY)}"
            try:
                await client.post(url)
            except httpx.HTTPError as error:
                heard.add(error)
    heard.add(takes(tmp_path), logged.getvalue(), *(row["failure"] for row in told))
    assert heard.secrets() == []


@every_way
async def test_no_canary_goes_into_a_span(way: str):
    pytest.importorskip("opentelemetry.sdk")
    from tests.ui.test_telemetry import Kit

    kit, heard = Kit(), Heard()
    failing = answers("plain")[way]
    async with asked(failing) as (client, url):
        stream = connect(
            url, json={}, client=client, provider="openai_chat", secrets=[NAMED], retries=0
        )
        try:
            async for _ in kit.telemetry.observe(stream):
                pass
        except StreamnormError as error:
            heard.add(error)
    for span in kit.spans:
        heard.add(
            json.dumps([span.status.description, [dict(e.attributes or {}) for e in span.events]])
        )
        heard.add({k: v for k, v in span.attributes.items() if k not in CONTENT})
    assert heard.secrets() == []


CONTENT = {"gen_ai.response.id", "gen_ai.response.model"}  # what the provider says that they are


async def test_httpx_itself_would_show_them(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    async with asked(Answer([b"data: [DONE]\n\n"])) as (client, url):
        await client.get(url)
    shown = caplog.text
    assert QUERY["pwd"] in shown


# --- names --------------------------------------------------------------------------------------

KEYS = [
    "key",
    "api-key",
    "x-api-key",
    "apiKey",
    "api_key",
    "apikey",
    "subscription-key",
    "Ocp-Apim-Subscription-Key",
    "x-goog-api-key",
    "access_token",
    "accessToken",
    "sessionToken",
    "x-amz-security-token",
    "authtoken",
    "x-auth-tokens",
    "tokens",
    "token",
    "id_token",
    "refresh_token",
    "secret",
    "client_secret",
    "clientSecret",
    "pwd",
    "pass",
    "passwd",
    "password",
    "passphrase",
    "sig",
    "signature",
    "X-Amz-Signature",
    "X-Amz-Credential",
    "auth",
    "Authorization",
    "proxy-authorization",
    "oauth_token",
    "x-oauth",
    "cookie",
    "Set-Cookie",
    "jwt",
    "bearer",
    "code",
    "hmac",
    "sas",
    "otp",
    "csrf-token",
    "XSRF-TOKEN",
    "credentials",
    "AWSAccessKeyId",
    "key1",
    "passkey",
    "accesskey",
    "x-functions-key",
    "sharedaccesskey",
    "KEY",
    "PASSWORD",
    "x-auth-code",
]
SESSIONS = [
    "session",
    "session-id",
    "sessionid",
    "x-session-affinity",
    "PHPSESSID_session",
    "sid",
    "sess",
]
HARMLESS = [
    "tokenizer",
    "top_k",
    "keep_alive",
    "keep-alive",
    "author",
    "authority",
    "monkey",
    "turkey",
    "keyboard",
    "keywords",
    "encode",
    "decode",
    "status_code",
    "error_code",
    "language_code",
    "passage",
    "compass",
    "bypass",
    "assign",
    "signal",
    "design",
    "signup",
    "significance",
    "token_type",
    "token_type_hint",
    "auth_type",
    "auth_url",
    "x-amz-signature-version",
    "alt",
    "api-version",
    "model",
    "stream",
    "content-type",
    "x-request-id",
    "processing-ms",
    "deployment-id",
    "secretary",
    "credence",
    "sidebar",
    "sidecar",
    "cookbook",
    "obsession_level",
    "www-authenticate",
]
COUNTS = [("max_tokens", "1024"), ("max_output_tokens", "100000"), ("x-ratelimit-remaining-tokens", "39990000"),
          ("anthropic-ratelimit-tokens-reset", "2026-01-31T00:00:00Z"), ("x-ratelimit-reset-tokens", "6m0s"),
          ("maxTokens", "4096"), ("total_token_count", "123456")]  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_a_name_of_a_key(name: str):
    assert is_key_name(name, "some-value")
    assert is_secret_name(name, "some-value")


@pytest.mark.parametrize("name", SESSIONS)
def test_a_name_of_a_session_is_secret_and_no_key(name: str):
    assert is_secret_name(name, "some-value")
    assert not is_key_name(name, "some-value")


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name(name: str):
    assert not is_secret_name(name, "some-value")


@pytest.mark.parametrize(("name", "value"), COUNTS)
def test_a_name_that_counts_tokens_is_harmless_while_it_counts(name: str, value: str):
    assert not is_secret_name(name, value)
    assert is_secret_name(name, "a-real-secret")


def test_secrets_in_addresses_in_any_text():
    assert secrets_in_text(f"redirected to '{ELSEWHERE}', and gave up") >= {
        "CanaryUser8Jm", "CanarySas6Bn-82tC", "CanaryNext9Vq"
    }  # fmt: skip
    assert secrets_in_text('{"error":"Post \\"https://h/?a=1\\u0026key=abcdefgh\\": refused"}') == {
        "abcdefgh"
    }
    twice = "to=https%253A%252F%252Fme%253Apass-word%2540h%252F%253Fsig%253Dabcdefgh"
    assert secrets_in_text(twice) >= {"abcdefgh", "pass-word"}
    assert secrets_in_text("a=1 & token=abcdefgh (no address); x?max_tokens=100000") == set()
    assert secrets_in_url("http://[broken/?key=abcdefgh") == {"abcdefgh"}


@pytest.mark.parametrize("named", ["secret", 7, [b"bytes"], [None]])
def test_secrets_are_texts(named: Any):
    if named == "secret":  # one text is one secret, and not its letters
        assert normalize([b""], "openai_chat", secrets=named)._source.facts.secrets == {"secret"}
    else:
        with pytest.raises((TypeError, StreamnormError)):
            normalize([b""], "openai_chat", secrets=named)


# --- the filter ---------------------------------------------------------------------------------


def filtered(message: str, *values: Any, secrets: tuple[str, ...] = ()) -> str:
    line = logging.LogRecord("any", logging.INFO, "", 0, message, values, None)
    assert SecretsHidden(secrets).filter(line)
    return line.getMessage()


def test_a_line_keeps_everything_but_the_secrets():
    asked = ("GET", "https://h/v1?alt=sse&key=abcdefgh", "HTTP/1.1", 200, "OK")
    assert filtered('HTTP Request: %s %s "%s %d %s"', *asked) == (
        'HTTP Request: GET https://h/v1?alt=sse&key=xxxxxxxx "HTTP/1.1 200 OK"'
    )
    assert filtered("headers=[(b'Set-Cookie', b'a=b-c-d-e'), (b'Via', b'1.1 x')]") == (
        "headers=[(b'Set-Cookie', b'xxxxxxxxx'), (b'Via', b'1.1 x')]"
    )
    assert filtered("{'x-api-key': 'abcdefgh', 'accept': '*/*'}") == (
        "{'x-api-key': 'xxxxxxxx', 'accept': '*/*'}"
    )
    assert filtered("named: %s", "hunter22", secrets=("hunter22",)) == "named: xxxxxxxx"
    assert filtered("nothing %s", "here") == "nothing here"


def test_a_line_of_secrets_alone_is_not_shown():
    line = "".join(f"&key=abcdef{number:06}" for number in range(5000))
    assert filtered("%s", line) == "(not shown: too many secrets are in it)"


def test_a_line_that_cannot_be_made_is_left_to_its_handler():
    line = logging.LogRecord("any", logging.INFO, "", 0, "%d", ("x",), None)
    assert SecretsHidden().filter(line)


def test_the_filter_can_be_taken_away_again():
    hidden = streamnorm.redact_logs("some.client")
    logger = logging.getLogger("some.client")
    assert logger.filters == [hidden]
    logger.removeFilter(hidden)
    assert logger.filters == []
