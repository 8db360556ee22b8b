"""Reads streams with one contender after the other, in its environment: tasks as lines of JSON in, what was heard
out. A task names a contender, a wire and an address; what is heard has ``calls``, and ``told`` if it complained."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from typing import Any

from bench.readers import CONTENDERS, OURS, PATHS, offline

SECONDS = 20.0  # for one stream


async def heard(task: dict[str, str]) -> dict[str, Any]:
    if task["contender"] == OURS:
        return await ours(task["wire"], task["base"])
    read = CONTENDERS[task["contender"]].reader(task["wire"], task["base"])
    result = await read()
    calls = [(name, arguments) for _, name, arguments in result.calls]
    return {"calls": [(name, _plain(arguments)) for name, arguments in calls]}


async def ours(wire: str, base: str) -> dict[str, Any]:
    """As the first page of our documentation shows: calls are run, and all else is not."""
    import httpx

    from streamnorm import BrokenToolCall, Failed, ToolCall, normalize

    calls, told = [], ""
    async with (
        httpx.AsyncClient(verify=False, timeout=SECONDS) as client,
        client.stream("POST", base + PATHS[wire]) as response,
        normalize(response, wire) as stream,
    ):
        async for event in stream:
            if isinstance(event, ToolCall):
                calls.append((event.name, event.arguments))
            elif isinstance(event, BrokenToolCall | Failed):
                told = f"{event.kind}: {event.reason}"
    return {"calls": calls, "told": told}


def _plain(arguments: Any) -> Any:
    return arguments if isinstance(arguments, str | dict) or arguments is None else dict(arguments)


async def work() -> None:
    for line in sys.stdin:
        task = json.loads(line)
        try:
            result = await asyncio.wait_for(heard(task), SECONDS)
        except Exception as error:  # noqa: BLE001  it complained, in whatever way
            result = {"told": type(error).__name__}
        _answer(result)


def _answer(result: dict[str, Any]) -> None:
    OUT.write(json.dumps(result, default=str) + "\n")
    OUT.flush()


if __name__ == "__main__":
    OUT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what peers print does not stand between our lines
    warnings.simplefilter("ignore")
    offline()
    asyncio.run(work())
