"""Reads bombs with every client there is, in a process that has little memory: ``python -m tests.edge.packed URL``.

Prints how each ended. Nothing is left out in silence: a client that is not installed says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import urllib.request
import warnings
from collections.abc import Callable
from typing import Any

import httpx

import streamnorm
from streamnorm import connect, normalize
from streamnorm.gateway.asking import chunks_of

ENCODINGS = ("gzip", "deflate", "br", "zstd")
SPACE = 48 * 1024 * 1024  # bytes that reading may need, beyond what the process has when it begins
LIBRARY = {
    "httpx2": "httpx2",
    "aiohttp": "aiohttp",
    "aiohttp, raw": "aiohttp",
    "requests": "requests",
}


def end_of(events: list[Any]) -> str:
    end = events[-1]
    return " ".join(filter(None, (end.kind, getattr(end, "reason", ""), getattr(end, "code", ""))))


async def heard(stream: Any) -> str:
    return end_of([event async for event in stream])


async def by_httpx(url: str, library: Any = httpx) -> str:
    async with library.AsyncClient() as client, client.stream("GET", url) as response:
        return await heard(normalize(response, "openai_chat"))


async def by_httpx2(url: str) -> str:
    import httpx2

    return await by_httpx(url, httpx2)


def by_blocking_httpx(url: str) -> str:
    with httpx.Client() as client, client.stream("GET", url) as response:
        return end_of(list(normalize(response, "openai_chat")))


async def by_aiohttp(url: str, **options: Any) -> str:
    import aiohttp

    try:
        async with aiohttp.ClientSession(**options) as session, session.get(url) as response:
            return await heard(normalize(response, "openai_chat"))
    except aiohttp.ClientResponseError as error:  # it wants a library for zstd that we do not
        raise ImportError(error.message) from error


async def by_raw_aiohttp(url: str) -> str:
    return await by_aiohttp(url, auto_decompress=False)


def by_requests(url: str) -> str:
    import requests

    with requests.get(url, stream=True) as response:
        return end_of(list(normalize(response, "openai_chat")))


def by_urllib(url: str) -> str:
    with urllib.request.urlopen(url) as response:
        return end_of(list(normalize(response, "openai_chat")))


async def by_connect(url: str) -> str:
    return await heard(connect(url, json={}, provider="openai_chat", retries=0))


async def by_transport(url: str) -> str:
    told: list[dict[str, Any]] = []
    guarded = streamnorm.transport(on_summary=told.append)
    async with httpx.AsyncClient(transport=guarded) as client:
        try:
            await client.get(url)
        except httpx.RemoteProtocolError as error:
            return f"{type(error).__name__} {str(error).partition(':')[0]}"
    return "read"


async def by_gateway(url: str) -> str:
    async with httpx.AsyncClient() as client, client.stream("GET", url) as response:
        try:
            async for _ in chunks_of(response):
                pass
        except streamnorm.StreamnormError as error:
            return f"{type(error).__name__} {getattr(error, 'code', '')}"
    return "read"


CLIENTS: dict[str, Callable[[str], Any]] = {
    "httpx": by_httpx, "httpx, blocking": by_blocking_httpx, "httpx2": by_httpx2,
    "aiohttp": by_aiohttp, "aiohttp, raw": by_raw_aiohttp, "requests": by_requests,
    "urllib": by_urllib, "connect": by_connect, "transport": by_transport, "gateway": by_gateway,
}  # fmt: skip


async def ended(how: str, url: str) -> str:
    try:
        end = CLIENTS[how](url)
        return str(await end if hasattr(end, "__await__") else end)
    except ImportError as missing:
        return f"not installed: {LIBRARY.get(how, missing.name)}"
    except MemoryError:
        return "out of memory"


async def main(url: str) -> dict[str, str]:
    return {f"{how}: {e}": await ended(how, f"{url}/{e}") for how in CLIENTS for e in ENCODINGS}


if __name__ == "__main__":
    import resource
    from pathlib import Path

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # Each library once, on something small: what it loads is not what a bomb needs.
    asyncio.run(main(sys.argv[1] + "/small"))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    space = pages * resource.getpagesize() + SPACE
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
