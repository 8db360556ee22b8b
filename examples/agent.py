"""An agent with a shell, on any provider: ``python examples/agent.py [PROVIDER MODEL QUESTION]``.

With the provider's key in the environment it is live; without, a script plays the model and the
tools are real. The conversation is kept in a file: ask again under the same AGENT_DB and it goes on.
"""

import os
import subprocess
import sys
from pathlib import Path

import anyio

from streamnorm import ClientTool, LoopGuard, SQLiteHistory, ToolLoop, connect, provider
from streamnorm.testing import call, say, script, turns

WHERE, MODEL, QUESTION = sys.argv[1:] or ["anthropic", "claude-sonnet-4-5", "Who are you?"]
KEY = os.environ.get(f"{WHERE.partition('_')[0].upper()}_API_KEY")
HEADERS = {"anthropic": {"x-api-key": f"{KEY}"}, "gemini": {"x-goog-api-key": f"{KEY}"}}
GEMINI = "https://generativelanguage.googleapis.com"
PLAYED = turns(
    script(call("grep", pattern="loop", path=__file__), call("read_file", path=__file__)),
    script(call("shell", command="echo a program that reads itself")),
    script(say("An agent: "), say("a program that reads itself.")),
)


def shell(command: str) -> str:
    """Run a command and give what it prints."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def read_file(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text()


def grep(pattern: str, path: str) -> str:
    """The lines of a file that contain a text."""
    return "\n".join(line for line in Path(path).read_text().splitlines() if pattern in line)


def send(conversation, tools):
    if not KEY:
        said = sum(turn.role == "assistant" for turn in conversation.turns) % len(PLAYED.scripts)
        return PLAYED.turn(said).events(WHERE)
    wire = provider(WHERE)
    url = GEMINI + wire.path(MODEL) if WHERE == "gemini" else WHERE
    body = wire.request(conversation, tools=tools, model=MODEL)
    bearer = {"authorization": f"Bearer {KEY}"}
    return connect(url, provider=WHERE, json=body, headers=HEADERS.get(WHERE, bearer))


def approve(call) -> bool | str:
    quiet = call.name != "shell" or not KEY
    return quiet or input(f"\nrun {call.arguments!r}? [y/N] ") == "y" or "the user said no"


async def main() -> None:
    async with SQLiteHistory(os.environ.get("AGENT_DB", ":memory:")) as history:
        files = ClientTool.from_function(read_file, inline=lambda text: text.size < 20_000)
        tools, guard = [shell, files, grep], LoopGuard()
        loop = ToolLoop(send, tools, history=history, persist="call", approve=approve, guard=guard)
        async with loop.run(QUESTION, conversation="agent") as run:
            async for event in run:
                if event.kind == "text_delta":
                    print(event.text, end="", flush=True)
                elif event.kind in ("settled", "failed"):
                    print(f"\n[{getattr(event, 'name', 'failed')}: {event.error or 'done'}]")
        print(f"\n({run.outcome} after {len(run.settled)} calls)")


anyio.run(main)
