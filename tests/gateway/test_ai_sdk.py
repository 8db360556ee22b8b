"""The AI SDK as a client of the gateway, of today and an earlier one, which runs a tool as soon as the text
of its call parses. What ran is what an upstream has called in a turn that ended well.

STREAMNORM_NPM names a folder with ``node_modules``; without it these tests are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamnorm import Normalizer, ToolCall, ToolCallStart, read_request
from streamnorm.conversation import Text
from streamnorm.testing import (
    call,
    error,
    finish,
    interleave,
    say,
    script,
    think,
    turns,
    wrong_index,
)
from tests.conftest import once
from tests.gateway.kit import between, telling

NPM = Path(os.environ.get("STREAMNORM_NPM", "."))
CLIENTS = (
    "ai", "ai-old", "@ai-sdk/openai-compatible", "openai-compatible-old", "@ai-sdk/openai",
    "@ai-sdk/anthropic", "@ai-sdk/google",
)  # fmt: skip
pytestmark = [
    pytest.mark.skipif(
        not (
            shutil.which("node") and all((NPM / "node_modules" / name).is_dir() for name in CLIENTS)
        ),
        reason="STREAMNORM_NPM names no folder with the npm packages, or there is no node",
    ),
    pytest.mark.parts,
    pytest.mark.xdist_group("ai_sdk"),  # one process plays them all
]
WIRES = ("openai_chat", "openai_responses", "anthropic")
SPOKEN = (*WIRES, "gemini")  # by the client
ONE, TWO = call("leave", word="one"), call("leave", word="two")


def told(*steps: Any) -> Callable[[str], list[bytes]]:
    return lambda wire: script(say("Well."), *steps).chunks(wire)


def until(wire: str, kind: type) -> int:
    """How many chunks of a call it takes until an event of that kind is heard."""
    pipe = Normalizer(wire)
    heard = (any(isinstance(e, kind) for e in pipe.feed(chunk)) for chunk in told(ONE)(wire))
    return list(heard).index(True) + 1


def cut_inside(wire: str) -> list[bytes]:
    return told(ONE)(wire)[: (until(wire, ToolCallStart) + until(wire, ToolCall)) // 2]


def complete(wire: str) -> list[bytes]:
    return told(ONE)(wire)[: until(wire, ToolCall) - 1]


def closed(wire: str) -> list[bytes]:
    at = until(wire, ToolCall)
    return told(ONE)(wire)[: at if wire != "openai_chat" else at - 1]


class Row(NamedTuple):
    """What an upstream says, and the words that the tool leaves then."""

    chunks: Callable[[str], list[bytes]]
    ran: list[str]


ROWS = {
    "whole": Row(told(ONE), ["one"]),
    "parallel": Row(told(ONE, TWO), ["one", "two"]),
    "interleaved": Row(told(ONE, TWO, interleave()), ["one", "two"]),
    "cut inside": Row(cut_inside, []),
    "complete without an end": Row(complete, []),
    "closed without an end": Row(closed, []),
    "failed after the call": Row(told(ONE, error("server")), []),
    "cut by the limit": Row(told(ONE.with_raw('{"word":"on'), finish("length")), []),
    "cut in a normal turn": Row(told(ONE.with_raw('{"word":"on'), finish("tool_calls")), []),
    "one id for both": Row(told(ONE.with_id("call_1"), TWO.with_id("call_1")), ["one", "two"]),
}
ON_CHAT = {
    "one index for both": Row(told(ONE, wrong_index(0), TWO, wrong_index(0)), ["one", "two"])
}
PLAYS = [
    (client, upstream, row)
    for client in (*SPOKEN, "openai_chat_early")
    for upstream in WIRES
    for row in (*ROWS, *(ON_CHAT if upstream == "openai_chat" else ()))
]


@once
def outcomes() -> dict[str, Any]:
    """Of all plays, which one Node process plays."""
    with ExitStack() as open:
        return _played([_line(open, *play) for play in PLAYS])


def _played(lines: list[dict[str, Any]]) -> dict[str, Any]:
    ran = subprocess.run(
        ["node", str(Path(__file__).parent / "js" / "ai_sdk.mjs")],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return {(said := json.loads(line))["name"]: said for line in ran.stdout.splitlines()}


def _line(open: ExitStack, client: str, upstream: str, row: str) -> dict[str, Any]:
    chunks = {**ROWS, **ON_CHAT}[row].chunks(upstream)
    running, _ = open.enter_context(between(upstream, telling(upstream, chunks)))
    name = f"{client} {upstream} {row}"
    return {"name": name, "wire": client, "url": running.url, "steps": 1}


@pytest.mark.parametrize(("client", "upstream", "row"), PLAYS)
def test_a_tool_runs_once_for_each_call_of_a_turn_that_ended_well(
    client: str, upstream: str, row: str
) -> None:
    came = outcomes()[f"{client} {upstream} {row}"]
    ran = {**ROWS, **ON_CHAT}[row].ran
    assert sorted(came["ran"]) == ran
    assert bool(came["errors"]) is (not ran)
    assert came["text"] == "Well."


STEPS = [(client, up) for client in SPOKEN for up in ("anthropic", "openai_chat", "gemini")]


@once
def conversations() -> dict[str, tuple[dict[str, Any], Any]]:
    """What came of each conversation of two steps, and what the upstream was asked in the second."""
    talk = turns(script(think("Hm."), say("Well."), ONE, TWO), script(say("Done.")))
    with ExitStack() as open:
        begun = {
            f"{client} {up}": (client, *open.enter_context(between(up, talk)))
            for client, up in STEPS
        }
        played = _played(
            [
                {"name": name, "wire": client, "url": running.url, "steps": 2}
                for name, (client, running, _) in begun.items()
            ]
        )
        return {
            name: (played[name], upstream.requests[1].body)
            for name, (_, _, upstream) in begun.items()
        }


@pytest.mark.parametrize(("client", "upstream"), STEPS)
def test_in_the_next_step_the_model_knows_all_that_it_said(client: str, upstream: str) -> None:
    """On Responses this client sends the ids of texts in their place."""
    came, asked = conversations()[f"{client} {upstream}"]
    assert (came["ran"], came["text"], came["errors"]) == (["one", "two"], "Well.Done.", [])
    _, answer, results = read_request(upstream, asked).conversation.turns
    assert [part.text for part in answer.parts if isinstance(part, Text)] == ["Well."]
    left = '{"name":"leave","content":"left"}' if client == "gemini" else "left"  # so it says it
    assert [(r.call.arguments, r.text) for r in results.results] == [
        ({"word": "one"}, left), ({"word": "two"}, left),
    ]  # fmt: skip
