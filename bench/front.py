"""What stands between a client and a provider, in a process of its own.

    python -m bench.front KIND PORT     prints its port and serves until its standard input is closed

KIND: ``passing`` hands bytes on with httpx and Starlette and does nothing else; ``gateway`` is ours. A
client posts to ``/WAY/WIRE/WORKLOAD`` of the first, and names ``WAY.WIRE.WORKLOAD/model`` to the other;
both ask the server of ``bench.server`` at PORT. ``GET /cpu`` is the CPU time of the process so far.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bench.readers import PATHS

__all__ = ["WAYS"]

# What is asked for, all of one wire; the second is another wire than the client's.
WAYS = tuple(
    (way, wire, name)
    for wire in ("anthropic", "openai_chat")
    for way, name in (
        ("event", "W1"),
        ("event", "W2"),
        ("paced", "STAMP-500"),
        ("crowd-500", "CROWD"),
    )
)


async def cpu(request: Request) -> Response:
    return PlainTextResponse(repr(time.process_time()))


def passing(port: str) -> Starlette:
    """Bytes in, the same bytes out."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    client = httpx.AsyncClient(verify=False, timeout=600, limits=limits)

    async def handed_on(request: Request) -> Response:
        path = request.url.path
        wire = path.split("/")[2]
        asked = client.build_request(
            "POST", f"http://127.0.0.1:{port}{path}{PATHS[wire]}", content=await request.body(),
            headers={"content-type": "application/json", "accept-encoding": "identity"},
        )  # fmt: skip
        response = await client.send(asked, stream=True)

        async def body() -> Any:
            try:
                async for chunk in response.aiter_raw():
                    yield chunk
            finally:
                await response.aclose()

        return StreamingResponse(body(), response.status_code, media_type="text/event-stream")

    return Starlette(
        routes=[Route("/cpu", cpu), Route("/{rest:path}", handed_on, methods=["POST"])]
    )


def gateway(port: str) -> Any:
    """Ours, with an upstream for each of the ways."""
    from streamnorm.gateway import app

    to = [
        f"{way}.{wire}.{name}@{wire}=http://127.0.0.1:{port}/{way}/{wire}/{name}{PATHS[wire]}"
        for way, wire, name in WAYS
    ]
    made = app(to, environment={}, exchanges=5000, tell=lambda row: None)
    made.routes.insert(0, Route("/cpu", cpu))
    return made


class _Told(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


async def _main(kind: str, port: str) -> None:
    app = {"passing": passing, "gateway": gateway}[kind](port)
    config = uvicorn.Config(
        app, port=0, log_level="error", access_log=False, ws="none", backlog=4096
    )
    server = _Told(config)
    serving = asyncio.create_task(server.serve())
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
