"""Planted keys come back from a model's server; neither the page, its lists nor its files have them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs the extra ui: pip install 'streamnorm[ui]'")

import httpx
import msgspec

from streamnorm.page.app import create_app
from streamnorm.page.chat import Chats
from streamnorm.page.live import live_models
from streamnorm.page.scripted import TOOLS
from streamnorm.page.takes import Takes
from streamnorm.providers import openai_chat
from tests.conftest import bytewise
from tests.edge.servers import SSE, Answer, Provider
from tests.edge.test_canaries import WRITINGS, Heard, every_writing

KEY = "CanaryAuth7Qx/+=aZ91"
JSON, HTML = {"content-type": "application/json"}, {"content-type": "text/html"}
PAGE = "http://127.0.0.1:8765"
SAID = {
    "id": "chat-0001", "messages": [{"role": "user", "text": "Hello"}],
    "provider": "openai_chat", "live": True,
}  # fmt: skip


def echoing(way: str, writing: str) -> Answer:
    """What a server may say with the one key that it is sent by the page."""
    words = WRITINGS[writing](KEY)
    error = json.dumps({"error": {"message": f"no such key: {words}", "code": words}}).encode()
    kinds = {**SSE, "x-session-token": "CanaryBack7Ld-64eF"}
    return {
        "a refusal": Answer(bytewise(error), status=401, headers=JSON),
        "a page": Answer([f"<html>{words}</html>".encode()], status=403, headers=HTML),
        "a redirect": Answer(
            [], status=307, headers={"location": f"https://x.example/?next={words}&sig={words}"}
        ),
        "an error in the stream": Answer(bytewise(b"data: " + error + b"\n\n"), headers=kinds),
        "no JSON": Answer(bytewise(f"data: {words}\n\n".encode()), headers=kinds),
        "one object": Answer(bytewise(json.dumps({"x": words}).encode()), headers=JSON),
    }[way]


@asynccontextmanager
async def page(
    server: Provider, folder: Path, monkeypatch: Any
) -> AsyncIterator[httpx.AsyncClient]:
    row = msgspec.structs.replace(openai_chat.PROVIDER, base=server.url)
    monkeypatch.setattr(openai_chat, "PROVIDER", row)
    live = live_models(["openai_chat=m"], {"OPENAI_API_KEY": KEY}, TOOLS)
    chats = Chats(folder / "chats.db")
    await chats.open()
    app = create_app(Takes(), live=live, chats=chats)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=PAGE) as client:
        yield client
    await chats.aclose()


def kept(folder: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in folder.iterdir())


@every_writing
@pytest.mark.parametrize(
    "way", ["a refusal", "a page", "a redirect", "an error in the stream", "no JSON", "one object"]
)
async def test_no_canary_reaches_the_page(
    way: str, writing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    caplog.set_level("DEBUG", "streamnorm")
    heard = Heard()
    with Provider(echoing(way, writing)) as server:
        async with page(server, tmp_path, monkeypatch) as client:
            told = (await client.post("/api/chat", json=SAID)).text
            assert '"kind":"failed"' in told
            again = [
                await client.get(path)
                for path in ("/api/chat/chat-0001/log", "/api/chats", "/api/config", "/api/takes")
            ]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    heard.add(told, caplog.text, *(answer.text for answer in again), kept(tmp_path))
    assert heard.secrets() == []
