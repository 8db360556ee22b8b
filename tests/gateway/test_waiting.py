"""Clients that wait long hear that their answer is still made; those that take nothing are not waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from streamnorm import Normalizer, provider
from streamnorm.events import TextDelta, ToolCall
from streamnorm.gateway import client as clients
from streamnorm.passage import Passage
from streamnorm.testing import Script, Server, call, say, script
from streamnorm.testing.http import Answer
from tests.gateway.kit import TALKS, Chat, Generate, Messages, Responses, Talk, between

over_wires = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
SIGNS = {
    Messages: "event: ping", Responses: "event: keepalive", Chat: ": keep-alive", Generate: "\n\n\n\n",
}  # fmt: skip


class Paused:
    """An upstream that says nothing more from a chunk on, until it is told to."""

    def __init__(self, wire: str, after: int, said: Script | None = None) -> None:
        self.go_on = threading.Event()
        self._chunks = (said or script(say("Hello."))).chunks(wire)
        self._after, self._wire = after, wire

    def server(self) -> Server:
        kind = provider(self._wire)._row.content_type
        return Server(lambda number: Answer(200, kind, self._told()))  # type: ignore[arg-type]

    def _told(self) -> Iterator[bytes]:
        yield from self._chunks[: self._after]
        assert self.go_on.wait(30)
        yield from self._chunks[self._after :]


@over_wires
@pytest.mark.parametrize("after", [0, 2], ids=["first word", "midst"])
def test_a_client_that_waits_hears_so_and_reads_the_answer_as_ever(
    talk: type[Talk], after: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clients, "TICK", 0.01)
    monkeypatch.setattr(clients, "QUIET", 0.02)
    paused = Paused("ollama" if talk is not Chat else "anthropic", after)
    heard = b""
    with between("ollama" if talk is not Chat else "anthropic", paused.server()) as (running, _):
        body = talk("").body()
        with httpx.stream("POST", running.url + talk.path, json=body, timeout=30) as response:
            for chunk in response.iter_bytes():
                heard += chunk
                if SIGNS[talk].encode() in heard:
                    paused.go_on.set()
    assert heard.count(SIGNS[talk].encode()) >= 1
    if talk is not Generate:  # whose streams begin with nothing
        assert heard.index(b"data: ") < heard.index(SIGNS[talk].encode())
    pipe = Normalizer(talk.wire)
    events = [*pipe.feed(heard), *pipe.close()]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello."
    assert events[-1].kind == "finish"
    assert not [note for note in pipe.notes if note != "wire.keepalive"]
    assert running.row()["state"] == "done"


@over_wires
@pytest.mark.parametrize("same_id", [False, True], ids=["held", "retold"])
def test_on_one_wire_a_client_hears_so_as_long_as_a_call_is_held(
    talk: type[Talk], same_id: bool, monkeypatch: pytest.MonkeyPatch
):
    """The second call can take minutes, and of the first it may not hear yet."""
    monkeypatch.setattr(clients, "TICK", 0.01)
    monkeypatch.setattr(clients, "QUIET", 0.02)
    oslo, rome = (call("get_weather", city=city) for city in ("Oslo", "Rome"))
    calls = (oslo.with_id("call_a"), rome.with_id("call_a")) if same_id else (oslo, rome)
    told = script(*calls)
    closed = Passage(talk.wire)
    after = next(n for n, chunk in enumerate(told.chunks(talk.wire), 1) if not closed.feed(chunk))
    paused = Paused(talk.wire, after + same_id, told)
    heard = b""
    with between(talk.wire, paused.server()) as (running, _):
        body = talk("").body()
        with httpx.stream("POST", running.url + talk.path, json=body, timeout=30) as response:
            for chunk in response.iter_bytes():
                heard += chunk
                if SIGNS[talk].encode() in heard or chunk == b"\n\n":
                    paused.go_on.set()
    pipe = Normalizer(talk.wire)
    events = [*pipe.feed(heard), *pipe.close()]
    made = [event for event in events if isinstance(event, ToolCall)]
    assert [event.arguments for event in made] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert len({event.id for event in made}) == 2
    assert not [note for note in pipe.notes if note != "wire.keepalive"]
    assert running.row()["state"] == "done"


def test_a_client_that_takes_nothing_any_more_is_given_up_and_so_is_its_upstream(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(clients, "TICK", 0.01)
    monkeypatch.setattr(clients, "STUCK", 0.05)
    left = threading.Event()

    def endless() -> Iterator[bytes]:
        start, block, delta, *_ = script(say("x")).chunks("anthropic")
        yield from (start, block)
        chunk = delta.replace(b'"x"', b'"%b"' % (b"x" * 200_000))
        try:
            while True:
                yield chunk
        finally:
            left.set()

    upstream = Server(lambda number: Answer(200, "text/event-stream", endless()))  # type: ignore[arg-type]
    with between("anthropic", upstream) as (running, _):
        host, port = httpx.URL(running.url).host, httpx.URL(running.url).port
        with socket.socket() as client:  # it asks, and never reads
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((host, port))
            client.sendall(_request(running.url + Messages.path, Messages("").body()))
            assert left.wait(30)
    row = running.row()
    assert (row["state"], row["error"]) == ("left", "the client has taken nothing for too long")


def _request(url: str, body: Any) -> bytes:
    request = httpx.Request("POST", url, json=body)
    lines = [f"POST {request.url.raw_path.decode()} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + request.content
