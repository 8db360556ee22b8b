"""What the tests of loops share: a scripted model, tools, a run from its beginning to its end."""

from __future__ import annotations

import functools

import anyio
import pytest

from streamnorm.testing import call, finish, say, script, turns
from streamnorm.wire import provider
from tests.encoding.pairing_rules import assert_paired


def both(test):
    """Run an async test on asyncio and on trio."""

    @pytest.mark.parametrize("backend", ["asyncio", "trio"])
    @functools.wraps(test)
    def run(backend):
        if backend == "trio":
            pytest.importorskip("trio")
        anyio.run(test, backend=backend)

    del run.__wrapped__
    return run


class Model:
    """A scripted model: answers in turn, and remembers what it was sent."""

    def __init__(self, *scripts, wire="anthropic"):
        self.turns, self.wire = turns(*scripts), wire
        self.sent = []
        self.tools = []

    def __call__(self, outgoing, tools):
        assert_paired(self.wire, provider(self.wire).request(outgoing, tools=tools, model="m"))
        self.sent.append(outgoing)
        self.tools.append([tool.name for tool in tools])
        return self.turns.turn(len(self.sent) - 1).events(self.wire)


def add(a: int, b: int = 1) -> int:
    "Add two numbers."
    return a + b


async def echo(text: str) -> str:
    "Say it again."
    await anyio.lowlevel.checkpoint()
    return text


def fail() -> str:
    "Always fails."
    raise RuntimeError("no luck")


TWO = (script(say("Hm."), call("add", a=1), call("echo", text="x"), finish()), script(say("Done.")))


async def ran(loop, said="Go.", **options):
    async with loop.run(said, **options) as run:
        events = [event async for event in run]
    return run, events


def outputs(run):
    return [result.output for turn in run.conversation.turns for result in turn.results]
