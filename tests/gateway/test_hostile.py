"""Upstreams and clients that do what they should not: nothing of it runs a call, tells a key, or is a
mistake of the gateway's."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from streamnorm import StreamStart, ToolCall
from streamnorm.errors import UsageError
from streamnorm.gateway import client as clients
from streamnorm.gateway.metrics import Metrics
from streamnorm.gateway.store import FileStore
from streamnorm.gateway.upstreams import Upstreams
from streamnorm.testing import call, say, script
from tests.gateway.kit import (
    MODEL,
    TALKS,
    Chat,
    Heard,
    Messages,
    Talk,
    between,
    gateway,
    post,
    telling,
    would_run,
)

over_wires = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
OURS, THEIRS = "Zx81hunterCanaryTwo", "Qw92visitorCanaryTen"  # of no shape that keys are known by
WEATHER = script(say("Let me look."), call("get_weather", city="Oslo"))
LAST = {"anthropic": b"event: message_delta", "openai_responses": b"event: response.completed",
        "openai_chat": b'"finish_reason":"tool_calls"', "gemini": b'"finishReason":"STOP"'}  # fmt: skip


def head(status: int = 200, kind: str = "text/event-stream", more: bytes = b"") -> bytes:
    """A response whose end is that of its connection: whoever reads it cannot tell that it was cut."""
    return b"HTTP/1.1 %d X\r\ncontent-type: %b\r\n%bconnection: close\r\n\r\n" % (
        status, kind.encode(), more,
    )  # fmt: skip


@contextmanager
def saying(response: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """An upstream that answers with exactly these bytes, and the requests that it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    request = b""
                    while not request.endswith(b"}"):
                        request += connection.recv(65536)
                    heard.append(request)
                    connection.sendall(response)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        server.shutdown(socket.SHUT_RDWR)


def asked(
    talk: type[Talk], response: bytes, wire: str = "", stream: bool = True
) -> tuple[Heard, dict]:
    """What a client of this wire hears when its upstream says so, and the row of it."""
    with saying(response) as (url, _), gateway(f"{wire or talk.wire}={url}") as running:
        one = talk("", stream=stream)
        heard = post(running.url, one.path, one.body())
    return heard, running.row()


# --- what a response says of itself ---------------------------------------------------------------


@over_wires
@pytest.mark.parametrize("kind", ["text/plain", "", "application/json", "Text/Event-Stream"])
def test_a_stream_is_guarded_whatever_its_header_calls_it(talk: type[Talk], kind: str) -> None:
    whole = WEATHER.bytes(talk.wire)
    heard, row = asked(talk, head(kind=kind) + whole)
    assert heard.text.encode() == whole
    assert would_run(talk.wire, heard) == ["get_weather"]
    end = whole.rfind(b"\n\n", 0, whole.find(LAST[talk.wire])) + 2
    heard, row = asked(talk, head(kind=kind) + whole[:end])
    assert would_run(talk.wire, heard) == []
    assert heard.error is not None
    assert row["state"] == "broken"


@over_wires
@pytest.mark.parametrize("body", [b'{"id": "x", "output": [', b'{"id": 1} {', b'{"a": \xff}'])
def test_an_answer_that_is_no_whole_json_is_a_status(talk: type[Talk], body: bytes) -> None:
    heard, row = asked(talk, head(kind="application/json") + body, stream=False)
    assert heard.status == 502
    assert heard.error is not None
    assert "no whole JSON" in heard.error["message"]
    assert row["state"] == "refused"


@over_wires
@pytest.mark.parametrize("wire", ["", "ollama"], ids=["same", "other"])
@pytest.mark.parametrize(
    "response",
    [
        head(kind="text/html") + b"<html>please log in</html>",
        head(204),
        head(301, more=b"location: http://127.0.0.1:1/\r\n") + b"moved",
        head(999) + b"?",
    ],
    ids=["a page", "nothing", "a redirect", "no status"],
)
def test_what_is_no_answer_is_a_bad_gateway(talk: type[Talk], wire: str, response: bytes) -> None:
    heard, row = asked(talk, response, wire)
    assert heard.status == 502
    assert heard.error is not None
    assert row["state"] == "refused"


@over_wires
def test_a_header_in_any_letters_is_handed_on(talk: type[Talk]) -> None:
    with (
        saying(head(more="x-request-id: €\r\n".encode()) + WEATHER.bytes(talk.wire)) as (url, asks),
        gateway(f"{talk.wire}={url}") as running,
    ):
        answer = httpx.post(
            running.url + talk.path,
            json=talk("").body(),
            headers=[(b"x-who", "Zoë".encode("latin-1"))],
        )
    assert answer.status_code == 200
    assert (b"x-request-id", "€".encode()) in answer.headers.raw
    assert "x-who: Zoë".encode("latin-1") in asks[0].lower().replace(b"zo\xeb", b"Zo\xeb")


@pytest.mark.parametrize("wire", ["gemini", "bedrock"])
def test_a_model_of_which_no_address_can_be_made_is_told(wire: str) -> None:
    with between(wire, WEATHER) as (running, upstream):
        heard = post(running.url, Chat.path, Chat("").body(model="m" * 100_000))
    assert heard.status == 400
    assert heard.error is not None
    assert "makes no address" in heard.error["message"]
    assert upstream.requests == []


def test_a_long_pause_is_told_in_figures() -> None:
    response = head(429, "application/json", b"retry-after: 12345678\r\n") + b"{}"
    heard, _ = asked(Messages, response, "openai_chat")
    assert (heard.status, heard.headers["retry-after"]) == (429, "12345678")


# --- keys -----------------------------------------------------------------------------------------


@over_wires
@pytest.mark.parametrize("wire", ["anthropic", "openai_responses", "openai_chat", "gemini"])
def test_a_key_that_an_upstream_uses_as_a_name_or_an_id_is_in_no_line_and_not_on_the_page(
    talk: type[Talk], wire: str
) -> None:
    events = WEATHER.events(wire)
    ids = [e.id for e in events if isinstance(e, ToolCall)]
    ids += [e.response_id or "-none-" for e in events if isinstance(e, StreamStart)]
    said = [chunk.replace(b"get_weather", THEIRS.encode()) for chunk in WEATHER.chunks(wire)]
    for id in ids:
        said = [chunk.replace(id.encode(), OURS.encode()) for chunk in said]
    options = {"environment": {"MINE": OURS}, "key_env": ["MINE"]}
    with between(wire, telling(wire, said), **options) as (running, _):
        body = talk("").body(model=f"model-{THEIRS}")
        heard = post(running.url, talk.path, body, x_api_key=THEIRS, authorization=THEIRS)
        page = httpx.get(f"{running.url}/gateway/flow").text
    assert "xxxx" in page
    for text in (heard.text, page, json.dumps(running.rows)):
        assert OURS not in text
        assert THEIRS not in text


@over_wires
def test_a_key_in_a_header_of_an_upstream_reaches_nobody(talk: type[Talk]) -> None:
    options = {"environment": {"MINE": OURS}, "key_env": ["MINE"]}
    for status in (200, 401):
        response = head(status, more=b"x-request-id: req-%b\r\n" % OURS.encode())
        with (
            saying(response + WEATHER.bytes(talk.wire)) as (url, _),
            gateway(f"{talk.wire}={url}", **options) as running,
        ):
            heard = post(running.url, talk.path, talk("").body())
        assert heard.headers["x-request-id"] == "req-" + "x" * len(OURS)


def test_a_cookie_of_an_upstream_is_told_to_nobody() -> None:
    response = head(more=b"set-cookie: sid=of-the-first-client; path=/\r\n")
    with (
        saying(response + WEATHER.bytes("openai_chat")) as (url, asks),
        gateway([f"a@openai_chat={url}", f"b@openai_chat={url}"]) as running,
    ):
        for model in ("a/m", "a/m", "b/m"):
            assert (
                "set-cookie" not in post(running.url, Chat.path, Chat("").body(model=model)).headers
            )
    assert len(asks) == 3
    assert all(b"cookie" not in request.lower() for request in asks)


def test_nobody_is_followed_elsewhere_with_a_key() -> None:
    asks: list[httpx.Request] = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        asks.append(request)
        return httpx.Response(307, headers={"location": "https://evil.example/v1/messages"})

    http = httpx.AsyncClient(transport=httpx.MockTransport(elsewhere), follow_redirects=True)
    options = {"environment": {"MINE": OURS}, "key_env": ["MINE"], "http": http}
    with gateway("anthropic=https://h.example", **options) as running:
        assert post(running.url, Messages.path, Messages("").body()).status == 502
    assert [request.url.host for request in asks] == ["h.example"]


def test_the_key_of_the_door_goes_to_no_provider() -> None:
    asks: list[httpx.Request] = []

    def answered(request: httpx.Request) -> httpx.Response:
        asks.append(request)
        kind = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=kind, stream=Said(WEATHER.bytes("anthropic")))

    http = httpx.AsyncClient(transport=httpx.MockTransport(answered))
    options = {"environment": {"DOOR": OURS}, "client_key_env": "DOOR", "http": http}
    with gateway("anthropic", **options) as running:
        body = Messages("").body()
        post(running.url, Messages.path, body, x_api_key=OURS)
        post(running.url, Messages.path, body, x_api_key=THEIRS, authorization=f"Bearer {OURS}")
    assert [request.headers.get("x-api-key") for request in asks] == [None, THEIRS]
    assert all(OURS not in str(request.headers.raw) for request in asks)


class Said(httpx.AsyncByteStream):
    """A body for a transport that is none."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self):
        yield self._body


@pytest.mark.parametrize("key", ["sk-abc\r", "sk abc", "sk-€", "sk\x00"])
def test_a_key_that_no_header_can_hold_is_told_when_the_gateway_starts(key: str) -> None:
    for options in ({"key_env": ["KEY"]}, {"client_key_env": "KEY"}):
        with (
            pytest.raises(UsageError, match="what KEY holds is no key") as told,
            gateway("ollama", environment={"KEY": key}, **options),
        ):
            pass
        assert key not in str(told.value)
    with pytest.raises(UsageError, match="what ANTHROPIC_API_KEY holds is no key"):
        Upstreams(["anthropic"], environment={"ANTHROPIC_API_KEY": key})


@pytest.mark.parametrize(
    ("base", "why"),
    [
        ("http://h.example:99999", "such as https://host/path"),
        ("http://[bad", "such as https://host/path"),
        ("https://h.example/v1?api_key=hunter222", "no key in an address"),
        ("https://me@h.example/v1", "no key in an address"),
    ],
)
def test_an_address_that_is_none_or_holds_a_key_is_told_when_the_gateway_starts(
    base: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why) as told:
        Upstreams([f"openai_chat={base}"])
    assert "hunter222" not in str(told.value)


def test_a_model_without_a_name_is_told() -> None:
    with pytest.raises(UsageError, match="--model"):
        Upstreams(["ollama"], model="")


def test_a_foreign_page_is_told_nothing_of_options_that_are_not_there() -> None:
    with gateway("ollama") as running:
        names = {"origin": "https://evil.example"}
        page = httpx.post(running.url + Chat.path, json={}, headers=names).json()
        host = httpx.get(running.url, headers={"host": "evil.example"}).json()
    assert page["error"]["message"] == "a page of another origin may not ask this"
    assert "--listen" in host["error"]["message"]


# --- limits, files and figures --------------------------------------------------------------------


def test_a_body_that_stops_coming_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "PATIENCE", 0.05)
    with gateway("ollama") as running:
        url = httpx.URL(running.url)
        with socket.create_connection((url.host, url.port)) as client:
            client.sendall(
                f"POST {url.path}{Chat.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                "content-length: 100\r\n\r\n{".encode()
            )
            assert client.recv(65536).startswith(b"HTTP/1.1 408 ")
    assert running.row()["state"] == "refused"


def test_whoever_comes_too_many_is_told_before_anything_of_the_body_is_there() -> None:
    with gateway("ollama", exchanges=0) as running:
        url = httpx.URL(running.url)
        with socket.create_connection((url.host, url.port)) as client:
            client.sendall(
                f"POST {url.path}{Chat.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                "content-length: 30000000\r\n\r\n".encode()
            )
            assert client.recv(65536).startswith(b"HTTP/1.1 503 ")


def test_a_mistake_of_ours_is_one_in_the_log_and_in_the_figures() -> None:
    class Wrong(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise ZeroDivisionError

    http = httpx.AsyncClient(transport=Wrong())
    with gateway(f"openai_chat=http://{MODEL}", http=http) as running:
        assert post(running.url, Chat.path, Chat("").body()).status == 500
        figures = httpx.get(f"{running.url}/metrics").text
    assert (running.row()["state"], running.row()["error"]) == ("failed", "ZeroDivisionError")
    assert 'outcome="failed"} 1' in figures


def test_a_file_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("mine")
    other.chmod(0o644)
    tmp_path.chmod(0o755)
    for place in (other, tmp_path):
        with pytest.raises(UsageError, match="Name another file"):
            FileStore(place)
    assert other.stat().st_mode & 0o777 == 0o644
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_large_figures_are_told_to_the_last_digit() -> None:
    metrics = Metrics()
    metrics.sent.add("anthropic", by=123_456_789)
    assert 'sent_bytes_total{client="anthropic"} 123456789\n' in metrics.text()
