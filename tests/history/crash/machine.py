"""One of two machines on one PostgreSQL: goes on with a conversation, or is killed in the midst.

``python -m tests.history.crash.machine SCHEMA die|live`` prints ``in the tool`` or what the model said last.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio

from streamnorm.agent.loop import ToolLoop
from streamnorm.history import PostgresHistory
from streamnorm.testing import call, say, script
from tests.history.stores import DSN

SCRIPTS = (
    script(say("First."), call("look").with_id("toolu_1")),
    script(say("Then."), call("wait").with_id("toolu_2")),
    script(say("Both machines did it.")),
)


def look() -> str:
    "Looks."
    return "seen"


async def wait() -> str:
    "Waits for ever on a machine that is to die."
    print("in the tool", flush=True)
    await anyio.sleep_forever()
    return ""


async def send(outgoing: Any, tools: Any) -> Any:
    said = sum(turn.role == "assistant" for turn in outgoing.turns)
    return SCRIPTS[said].events("anthropic")


async def main(schema: str, fate: str) -> None:
    async with PostgresHistory(str(DSN), schema=schema) as history:
        loop = ToolLoop(send, [look, wait], history=history, persist="call")
        async with loop.run("Go." if fate == "die" else None, conversation="story") as run:
            async for _ in run:
                pass
        print(run.text)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
