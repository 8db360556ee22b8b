"""A chat whose tool needs consent, as a process that can be killed: ``python -m tests.ui.approval_server``.

    python -m tests.ui.approval_server PORT PROTOCOL FOLDER

The conversation, the log and what was paid are files in FOLDER: ``paid`` has a line for each payment
that was begun. Paying 13 kills the process in the midst of it. Prints "ready" when it listens.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from streamnorm import ClientTool, Conversation, Event, SQLiteHistory, Tool, ToolLoop
from streamnorm.testing import call, say, script
from streamnorm.ui import SQLiteLog, chat_router

DEADLY = 13


def answer(conversation: Conversation, tools: list[Tool]) -> list[Event]:
    """A model: pays what the user's numbers say, all at once, and then tells what it was told."""
    last = conversation.turns[-1]
    if last.results:
        told = " | ".join(result.text for result in last.results)
        return script(say(f"Told: {told}")).events("anthropic")
    numbers = [int(word) for word in last.text.split() if word.isdigit()]
    calls = [call("pay", euro=n).with_id(f"toolu_{len(conversation)}_{n}") for n in numbers]
    if "balance" in last.text:
        calls.append(call("balance").with_id(f"toolu_{len(conversation)}_b"))
    return script(say("Well."), *calls).events("anthropic")


def tools(folder: Path) -> list[Any]:
    def pay(euro: int) -> dict[str, int]:
        "Pay."
        with (folder / "paid").open("a") as file:
            file.write(f"{euro}\n")
        if euro == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"paid": euro}

    def balance() -> int:
        "The balance."
        return 100

    consent = lambda call: f"{call.arguments['euro']} €"  # noqa: E731
    return [ClientTool.from_function(pay, consent=consent), balance]


def main(port: str, protocol: str, folder: str) -> None:
    here = Path(folder)
    loop = ToolLoop(answer, tools(here), history=SQLiteHistory(here / "history.db"), persist="call")
    log = SQLiteLog(here / "log.db", lease=2)
    router = chat_router(loop, protocol=protocol, owner=lambda request: "ann", log=log)
    app = Starlette(routes=list(router.routes))
    listener = socket.create_server(("127.0.0.1", int(port)))
    print("ready", flush=True)
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
