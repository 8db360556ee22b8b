"""The pytest plugin: fixtures for tests of programs that read streams.

Rule: loading it costs nothing. streamnorm, and httpx above all, is imported by the fixture that is
used, in the test that uses it. It is found through the entry point ``streamnorm``.

    def test_my_agent(stream_script, provider_server):
        from streamnorm.testing import say, call
        server = provider_server(stream_script(say("Looking."), call("tides")), "anthropic")
        my_agent(base_url=server.url)
        assert server.requests[0].body["model"] == "claude-sonnet-4-5"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import os

    from .events import Event
    from .testing import Script, Server, Turns, WebSocketServer

__all__ = [
    "provider_server",
    "provider_websocket",
    "replay_take",
    "stream_script",
    "streamnorm_notes",
]


@pytest.fixture
def stream_script() -> Callable[..., Script]:
    """``stream_script(say("Hi."), call("tides"))``: a stream, told step by step."""
    from .testing import script

    return script


@pytest.fixture
def provider_server() -> Iterator[Callable[[Script | Turns, str], Server]]:
    """``provider_server(script, "anthropic")``: a server that answers so, at ``.url``; it keeps the
    ``.requests`` and is closed when the test ends."""
    with ExitStack() as servers:

        def serve(script: Script | Turns, provider: str) -> Server:
            return servers.enter_context(script.server(provider))

        yield serve


@pytest.fixture
def provider_websocket() -> Iterator[Callable[..., WebSocketServer]]:
    """``provider_websocket(turns, "openai_responses", lanes=2)``: as ``provider_server``, for answers
    that share a connection."""
    with ExitStack() as servers:

        def serve(script: Script | Turns, provider: str, *, lanes: int = 1) -> WebSocketServer:
            return servers.enter_context(script.websocket(provider, lanes=lanes))

        yield serve


@pytest.fixture
def replay_take() -> Callable[..., list[Event]]:
    """``replay_take("takes/weather.sse")``: the events of a recorded stream, flat out."""

    def replay(
        path: str | os.PathLike[str], provider: str | None = None, **options: Any
    ) -> list[Event]:
        from .captures import read_take
        from .takes.pipe import pipe_for

        take = read_take(path)
        pipe = pipe_for(take, provider, **options)
        events = [event for _, chunk in take.chunks for event in pipe.feed(chunk)]
        return events + pipe.close()

    return replay


@pytest.fixture
def streamnorm_notes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What the streams of this test had to tolerate, by name (``streamnorm.notes.NOTES``).

    ``assert not streamnorm_notes`` says that every stream was by the book. It hears the streams
    that are opened after the fixture was asked for.
    """
    from .notes import Scribe

    heard: Counter[str] = Counter()
    tell = Scribe.note

    def note(self: Scribe, name: str, /, **facts: Any) -> None:
        heard[name] += 1
        tell(self, name, **facts)

    monkeypatch.setattr(Scribe, "note", note)
    return heard
