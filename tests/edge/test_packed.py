"""Packed bodies: unpacked in bounded steps whatever client brought them, bombs refused, words kept."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

import streamnorm
from streamnorm import Limits, connect, normalize
from streamnorm.errors import FrameError, ProviderError
from tests.conftest import ROOT, Chat, calls_of, once
from tests.edge.packed import CLIENTS, ENCODINGS, LIBRARY, ended
from tests.edge.servers import SSE, Answer, Provider, Request

brotli = pytest.importorskip("brotli")
zstandard = pytest.importorskip("zstandard")

WHOLE = (
    Chat.call(0, "call_1", "get_weather", '{"city":')
    + Chat.call(0, None, None, '"Oslo"}')
    + Chat.end()
)
KEEP_ALIVE = b": keep-alive\n\n"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress,
}  # fmt: skip
every_way = pytest.mark.parametrize("encoding", ENCODINGS)


def answer(encoding: str, body: bytes, size: int = 65_536, **more: Any) -> Answer:
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    return Answer(chunks, headers={**SSE, "content-encoding": encoding}, **more)


@asynccontextmanager
async def asked(said: Answer) -> AsyncIterator[httpx.Response]:
    with Provider(said) as server:
        async with httpx.AsyncClient() as client, client.stream("GET", server.url) as response:
            yield response


async def events_of(response: Any, **options: Any) -> list[Any]:
    return [event async for event in normalize(response, "openai_chat", **options)]


# --- bombs, in a process that has little memory -----------------------------------------------------


@once
def bombs() -> dict[str, bytes]:
    plain = b": " + b"keep-alive" * 10_000_000  # 100 MB of one comment
    return {encoding: pack(plain) for encoding, pack in PACK.items()}


def bomb_or_small(request: Request) -> Answer:
    *small, encoding = request.path.strip("/").split("/")
    return answer(encoding, PACK[encoding](WHOLE) if small else bombs()[encoding])


def test_no_bomb_needs_more_memory_than_48_mib_whatever_client_reads_it():
    pytest.importorskip("resource")
    bombs()
    with Provider(bomb_or_small) as server:
        ran = subprocess.run(
            [sys.executable, "-m", "tests.edge.packed", server.url],
            cwd=ROOT, capture_output=True, text=True, timeout=100, check=True,
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        )  # fmt: skip
    ends = json.loads(ran.stdout)
    assert len(ends) == len(CLIENTS) * len(ENCODINGS)
    expected = dict.fromkeys(CLIENTS, "failed limit ratio")
    expected |= {"transport": "FrameError limit", "gateway": "NotInflated ratio"}
    for row, end in ends.items():
        how = row.partition(": ")[0]
        assert end in (expected[how], f"not installed: {LIBRARY.get(how)}"), row


# --- honest bodies --------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("size", [1, 50, 65_536])
async def test_an_honest_body_passes(encoding: str, size: int):
    async with asked(answer(encoding, PACK[encoding](WHOLE), size)) as response:
        (call,) = calls_of(await events_of(response))
        assert call.arguments == {"city": "Oslo"}
        assert response.num_bytes_downloaded == len(PACK[encoding](WHOLE))


@every_way
async def test_a_take_of_a_packed_body_holds_what_was_in_it(encoding: str, tmp_path):
    async with asked(answer(encoding, PACK[encoding](WHOLE))) as response:
        await events_of(response, record=tmp_path)
    (path,) = tmp_path.iterdir()
    assert streamnorm.read_take(path).wire == WHOLE


@pytest.mark.parametrize("word", ["identity", "none", ""])
async def test_words_for_no_packing_at_all(word: str):
    async with asked(answer(word, WHOLE)) as response:
        assert len(calls_of(await events_of(response))) == 1


async def test_a_body_that_is_read_already_is_unpacked_already():
    response = httpx.Response(
        200, content=gzip.compress(WHOLE), headers={**SSE, "content-encoding": "gzip"}
    )
    assert len(calls_of(await events_of(response))) == 1


async def test_a_higher_ratio_can_be_asked_for():
    body = gzip.compress(KEEP_ALIVE * 150_000 + WHOLE)
    async with asked(answer("gzip", body)) as response:
        assert (await events_of(response))[-1].code == "ratio"
    async with asked(answer("gzip", body)) as response:
        assert len(calls_of(await events_of(response, limits=Limits(ratio=2000)))) == 1
    with Provider(answer("gzip", body)) as server:
        stream = connect(server.url, json={}, provider="openai_chat", limits=Limits(ratio=2000))
        assert len(calls_of([event async for event in stream])) == 1


async def test_what_follows_the_last_event_may_be_damaged():
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(WHOLE + b"data: [DONE]\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    async with asked(answer("gzip", body + b"\xff" * 99, size=len(body))) as response:
        assert (await events_of(response))[-1].kind == "finish"


# --- what is refused ------------------------------------------------------------------------------

REFUSED = [
    ("gzip, gzip", "packed more than once"),
    ("br, gzip", "packed more than once"),
    ("compress", "packed in a way that is not read here"),
]


@pytest.mark.parametrize(("encoding", "words"), REFUSED)
async def test_an_encoding_that_is_not_read_is_refused_from_the_headers(encoding: str, words: str):
    async with asked(answer(encoding, b"x", then="hang")) as response:
        with pytest.raises(ProviderError, match=words) as caught:
            await events_of(response)
        assert caught.value.status == 200
    with Provider(answer(encoding, b"x", then="hang")) as server:
        with pytest.raises(ProviderError, match=words):
            [event async for event in connect(server.url, json={}, provider="openai_chat")]
        assert len(server.requests) == 1


@pytest.mark.parametrize("client", ["httpx", "aiohttp", "aiohttp, raw", "urllib", "requests"])
async def test_a_header_that_comes_twice_packs_twice(client: str):
    """Of ``content-encoding: gzip`` and again ``content-encoding: gzip`` both count."""
    pytest.importorskip(LIBRARY.get(client, client))
    twice = {**SSE, "content-encoding": "gzip\r\ncontent-encoding: gzip"}
    with (
        Provider(Answer([gzip.compress(gzip.compress(WHOLE))], headers=twice)) as server,
        pytest.raises(ProviderError, match="packed more than once"),
    ):
        await ended(client, server.url)


async def test_a_status_says_more_than_a_body_that_cannot_be_unpacked():
    with Provider(answer("gzip, gzip", b"x", status=429)) as server:
        stream = connect(server.url, json={}, provider="openai_chat", retries=0)
        with pytest.raises(ProviderError, match="HTTP 429") as caught:
            [event async for event in stream]
    assert caught.value.retryable
    async with asked(answer("compress", b"x", status=503)) as response:
        with pytest.raises(ProviderError, match="HTTP 503") as caught:
            await events_of(response)


async def test_a_packed_refusal_is_read_in_its_own_words():
    said = gzip.compress(b'{"error":{"message":"Slow down","type":"rate_limit"}}')
    async with asked(answer("gzip", said, status=429)) as response:
        with pytest.raises(ProviderError, match="Slow down"):
            await events_of(response)


@every_way
async def test_a_body_that_is_not_what_its_headers_say_is_no_stream_of_the_wire(encoding: str):
    async with asked(answer(encoding, b"\x07 never packed " * 9)) as response:
        end = (await events_of(response))[-1]
    assert (end.reason, end.code) == ("protocol", "damaged")
    assert encoding in end.error


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("gzip, gzip", b"x", "packed more than once"),
        ("compress", b"x", "not read here"),
        ("gzip", b"never packed", "not the gzip"),
        ("gzip", gzip.compress(KEEP_ALIVE * 300_000), "100 times as long"),
    ],
    ids=["twice", "unknown", "damaged", "bomb"],
)
def test_a_guarded_client_hears_its_own_error(library: str, encoding: str, body: bytes, words: str):
    made = pytest.importorskip(library)
    with (
        Provider(answer(encoding, body)) as server,
        made.Client(transport=streamnorm.transport()) as client,
        pytest.raises(made.RemoteProtocolError, match=words) as caught,
    ):
        client.get(server.url)
    assert isinstance(caught.value, FrameError)


def test_a_body_that_is_surely_nobodys_is_left_to_its_client():
    """Only the address says that it may be a stream, and its packing is not ours to judge."""
    inner = httpx.MockTransport(
        lambda _: httpx.Response(
            200, headers={"content-type": "text/plain", "content-encoding": "compress"},
            stream=httpx.ByteStream(b"as it came"),
        )
    )  # fmt: skip
    with httpx.Client(transport=streamnorm.transport(inner)) as client:
        response = client.post("https://api.openai.com/v1/chat/completions")
    assert response.content == b"as it came"
    assert response.headers["content-encoding"] == "compress"
