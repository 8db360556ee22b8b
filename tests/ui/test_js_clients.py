"""The clients that browsers use read every take as we encode it: no protocol error, same calls, same
text. One Node process per client reads them all.

STREAMNORM_NPM names a folder with ``node_modules``; without it these tests are left out.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from streamnorm import (
    PROVIDERS,
    BrokenToolCall,
    Failed,
    Finish,
    Made,
    Reasoning,
    StreamStart,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    Turn,
    event_from_dict,
)
from streamnorm.text.written import json_text, sse
from streamnorm.ui import Approval, Denied, ag_ui, vercel
from streamnorm.ui.inbox import Inbox, from_ag_ui, from_ai_sdk
from tests.conftest import RECORDINGS, take_id

NPM = os.environ.get("STREAMNORM_NPM", "")
JS = Path(__file__).parent / "js"
needs_node = pytest.mark.skipif(
    not (NPM and shutil.which("node") and (Path(NPM) / "node_modules").is_dir()),
    reason="STREAMNORM_NPM names no folder with the npm packages, or there is no node",
)
pytestmark = [needs_node, pytest.mark.parts]


# --- what is read ---------------------------------------------------------------------------------


@cache
def takes() -> dict[str, list[Any]]:
    """The golden events of every take, by its name."""
    paths = sorted(p for p in RECORDINGS.glob("*/*.events.jsonl") if p.parent.name in PROVIDERS)
    return {
        take_id(path).removesuffix(".events"): [
            event_from_dict(json.loads(line)) for line in path.read_bytes().splitlines()
        ]
        for path in paths
    }


CALL = ToolCall(0, "call_0", "pay", {"euro": 5}, '{"euro":5}')
AGAIN = ToolCall(0, "call_0", "pay", {"euro": 6}, '{"euro":6}')  # a server that counts from 0 again
LOOPS: dict[str, list[Any]] = {
    "loop/two_steps": [
        StreamStart("ollama"), TextDelta("Paying."), CALL, Finish("tool_calls"),
        ToolResult.for_call(CALL, {"paid": True}),
        StreamStart("ollama"), AGAIN, Finish("tool_calls"),
        ToolResult.for_call(AGAIN, "no money", is_error=True),
        StreamStart("ollama"), TextDelta("Paid once."), Finish("stop"),
    ],
    "loop/asks": [StreamStart("ollama"), CALL, Finish("tool_calls"), Approval("ask_1", CALL, "5 €")],
    "loop/denied": [
        StreamStart("ollama"), CALL, Finish("tool_calls"), Denied(CALL, "no"),
        StreamStart("ollama"), TextDelta("Then not."), Finish("stop"),
    ],
    "loop/stopped": [StreamStart("ollama"), TextDelta("Pay"), Failed("cancelled", "stopped")],
}  # fmt: skip


def streams(
    encoder: Callable[[], Any], lost: Callable[[list[bytes]], list[bytes]]
) -> Iterator[Any]:
    """Every take whole, and cut in several places: by the end of events and by a dead producer."""
    for name, events in {**takes(), **LOOPS}.items():
        yield name, b"".join(map(sse, _payloads(encoder(), events)))
        for part in (1, 2):
            some = events[: len(events) * part // 3]
            yield f"{name} cut {part}", b"".join(map(sse, _payloads(encoder(), some)))
        told = _payloads(encoder(), events)
        left = told[: len(told) // 2]
        yield f"{name} dead", b"".join(map(sse, [*left, *lost(left)]))


def _payloads(encoder: Any, events: list[Any]) -> list[bytes]:
    return [p for event in events for p in encoder.payloads(event)] + encoder.closing()


def read_by(script: str, bodies: Iterator[tuple[str, bytes]], *arguments: str) -> dict[str, Any]:
    lines = [json.dumps({"name": name, "body": body.decode()}) for name, body in bodies]
    run = subprocess.run(
        ["node", str(JS / script), *arguments],
        input="\n".join(lines) + "\n", capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    seen = [json.loads(line) for line in run.stdout.split("\n") if line]
    assert len(seen) == len(lines)
    return {one["name"]: one for one in seen}


# One test per client, not one per check: Node reads everything once, whoever runs the tests.


def test_the_ai_sdk_reads_every_take_as_it_was_meant() -> None:
    seen = read_by("ai_sdk.mjs", streams(lambda: vercel.Encoder(message_id="m"), vercel.lost))
    for check in AI_SDK:
        check(seen)


@pytest.mark.parametrize("package", ["@ag-ui/client", "ag-ui-client-old"])
def test_ag_ui_clients_read_every_take_as_it_was_meant(package: str) -> None:
    version = "1.0" if package == "@ag-ui/client" else None
    seen = read_by("ag_ui.mjs", streams(ag_ui_encoder(version), ag_ui.lost), package)
    for check in AG_UI:
        check(seen)


def ag_ui_encoder(version: str | None) -> Callable[[], Any]:
    return lambda: ag_ui.Encoder(
        thread_id="t", run_id="r", message_id="m", protocol_version=version
    )


# --- what must be so ------------------------------------------------------------------------------


def whole(events: list[Any]) -> list[ToolCall]:
    return [e for e in events if isinstance(e, ToolCall)]


def broken(events: list[Any]) -> list[BrokenToolCall]:
    return [e for e in events if isinstance(e, BrokenToolCall)]


def texts(events: list[Any]) -> list[str]:
    """The visible text of each choice, and of each who speaks."""
    said: dict[Any, str] = {}
    for event in events:
        if isinstance(event, TextDelta) and event.text:
            voice = event.choice, event.agent
            said[voice] = said.get(voice, "") + event.text
    return sorted(said.values())


def same(mine: Any, theirs: Any) -> bool:
    """Equal, but for what a JavaScript number cannot hold."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(same(mine[k], theirs[k]) for k in mine)
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if type(mine) in (int, float) and type(theirs) in (int, float):
        return math.isclose(mine, theirs)
    return bool(mine == theirs)


def assert_no_protocol_error(seen: dict[str, Any]) -> None:
    wrong = {name: one["protocolErrors"] for name, one in seen.items() if one["protocolErrors"]}
    assert wrong == {}


def parts_of(one: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = (one.get("message") or {}).get("parts", [])
    return parts


def tools_of(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [p for p in parts_of(one) if p["type"].startswith("tool-")]


def the_ai_sdk_reads_every_take(ai_sdk: dict[str, Any]) -> None:
    assert_no_protocol_error(ai_sdk)
    assert len(ai_sdk) == 4 * (len(takes()) + len(LOOPS))


def the_ai_sdk_is_left_with_nothing_open(ai_sdk: dict[str, Any]) -> None:
    for name, one in ai_sdk.items():
        states = {part.get("state") for part in parts_of(one)}
        assert not states & {"streaming", "input-streaming"}, name
        assert one["finish"], name


def the_ai_sdk_hears_the_same_calls(ai_sdk: dict[str, Any]) -> None:
    for name, events in takes().items():
        heard = {p["toolMetadata"]["streamnorm"]["id"]: p for p in tools_of(ai_sdk[name])}
        done = [p for p in heard.values() if "checksum" in p["toolMetadata"]["streamnorm"]]
        assert len(done) == len({c.id for c in whole(events)}), name
        for call in whole(events):
            part = heard[call.id]
            if call.choice == 0:
                assert part["type"] == f"tool-{call.name}", name
                assert same(call.arguments, part["input"]), name
                assert part["toolMetadata"]["streamnorm"]["checksum"] == call.checksum
                assert part["state"].startswith(("input-available", "output-")), name


def the_ai_sdk_hears_broken_calls_as_errors(ai_sdk: dict[str, Any]) -> None:
    for name, events in takes().items():
        ended = [p for p in tools_of(ai_sdk[name]) if "broken" in p["toolMetadata"]["streamnorm"]]
        assert [p["state"] for p in ended] == ["output-error"] * len(broken(events)), name
        assert sorted(p["input"] for p in ended) == sorted(b.raw for b in broken(events)), name


def the_ai_sdk_hears_the_same_text(ai_sdk: dict[str, Any]) -> None:
    for name, events in takes().items():
        heard = "".join(p["text"] for p in parts_of(ai_sdk[name]) if p["type"] == "text")
        if len(texts(events)) < 2:
            assert heard == "".join(texts(events)), name
        else:
            assert sorted(heard) == sorted("".join(texts(events))), name


def the_ai_sdk_hears_failures(ai_sdk: dict[str, Any]) -> None:
    for name, events in takes().items():
        failed = isinstance(events[-1], Failed)
        stopped = failed and events[-1].reason == "cancelled"
        assert bool(ai_sdk[name]["told"]) == (failed and not stopped), name
        assert bool(ai_sdk[name].get("aborted")) == stopped, name


def the_ai_sdk_follows_a_loop(ai_sdk: dict[str, Any]) -> None:
    first, second = tools_of(ai_sdk["loop/two_steps"])
    assert (first["toolCallId"], first["state"], first["output"]) == (
        "call_0", "output-available", {"paid": True},
    )  # fmt: skip
    assert (second["toolCallId"], second["state"], second["errorText"]) == (
        "call_0_2", "output-error", "no money",
    )  # fmt: skip
    (asked,) = tools_of(ai_sdk["loop/asks"])
    assert (asked["state"], asked["approval"]["id"]) == ("approval-requested", "ask_1")
    (denied,) = tools_of(ai_sdk["loop/denied"])
    assert denied["state"] == "output-denied"
    assert ai_sdk["loop/stopped"]["aborted"]


def what_the_ai_sdk_would_post_back_is_the_same_turn(ai_sdk: dict[str, Any]) -> None:
    for name, events in takes().items():
        if message := ai_sdk[name].get("message"):
            inbox = from_ai_sdk({"id": "c", "messages": [message]})
            turn = Turn.from_events(events)
            assert_same_turn(inbox, turn, name)
            theirs = [p for t in inbox.conversation.turns for p in t.parts if isinstance(p, Made)]
            mine = [p for p in turn.parts if isinstance(p, Made) and (p.data or p.url)]
            assert theirs == mine, name


def assert_same_turn(inbox: Inbox, turn: Turn, name: str) -> None:
    """Text, whole calls, their ids, provenance and echoes: as if it had never left the server."""
    turns = inbox.conversation.turns
    if any(p.choice for p in turn.parts if isinstance(p, ToolCall)) or "two_c" in name:
        return
    assert "".join(t.text for t in turns if t.role == "assistant") == turn.text, name
    mine = [p for p in turn.parts if isinstance(p, ToolCall)]
    theirs = [p for t in turns for p in t.parts if isinstance(p, ToolCall)]
    assert [(c.id, c.name, c.provenance, c.echo, c.runs_on) for c in theirs] == [
        (c.id, c.name, c.provenance, c.echo, c.runs_on) for c in mine
    ], name
    assert all(same(c.arguments, d.arguments) for c, d in zip(mine, theirs, strict=True)), name
    for kind in (Reasoning, Text):
        kept = [e for p in turn.parts if isinstance(p, kind) for e in p.echoes]
        back = [e for t in turns for p in t.parts if isinstance(p, kind) for e in p.echoes]
        assert sorted(map(json_text, back)) == sorted(map(json_text, kept)), name
    assert voices([p for t in turns for p in t.parts]) == voices(turn.parts), name
    assert [c.agent for c in theirs] == [c.agent for c in mine], name


def voices(parts: Iterable[Any]) -> dict[tuple[str, type], str]:
    """What each agent said and thought; parts of one message may be one text at a client."""
    said: dict[tuple[str, type], str] = {}
    for part in parts:
        if isinstance(part, Text | Reasoning) and part.agent:
            key = part.agent, type(part)
            said[key] = said.get(key, "") + part.text
    return said


# --- AG-UI ----------------------------------------------------------------------------------------


def calls_of(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for m in one["messages"] for call in m.get("toolCalls") or []]


def ag_ui_clients_read_every_take(http_agent: dict[str, Any]) -> None:
    assert_no_protocol_error(http_agent)
    assert len(http_agent) == 4 * (len(takes()) + len(LOOPS))


def ag_ui_clients_hear_the_same_calls(http_agent: dict[str, Any]) -> None:
    for name, events in takes().items():
        heard = [(call["metadata"]["streamnorm"], call) for call in calls_of(http_agent[name])]
        done = {facts["checksum"]: call for facts, call in heard if "checksum" in facts}
        assert set(done) == {call.checksum for call in whole(events)}, name
        for call in whole(events):
            function = done[call.checksum]["function"]
            assert function["name"] == call.name
            assert json.loads(function["arguments"]) == json.loads(json_text(call.arguments)), name


def ag_ui_clients_hear_broken_calls_answered(http_agent: dict[str, Any]) -> None:
    for name, events in takes().items():
        one = http_agent[name]
        ended = [c for c in calls_of(one) if "broken" in c["metadata"]["streamnorm"]]
        told_again = [c for c in ended if c["metadata"]["streamnorm"]["broken"] == "superseded"]
        assert len(ended) - len(told_again) == len(broken(events)), name
        answered = {m["toolCallId"] for m in one["messages"] if m["role"] == "tool"}
        assert {c["id"] for c in ended} <= answered, name


def ag_ui_clients_hear_the_same_text(http_agent: dict[str, Any]) -> None:
    for name, events in takes().items():
        messages = http_agent[name]["messages"]
        heard = [m["content"] for m in messages if m["role"] == "assistant" and m.get("content")]
        assert sorted(heard) == texts(events), name


def ag_ui_clients_hear_failures(http_agent: dict[str, Any]) -> None:
    for name, events in takes().items():
        one, failed = http_agent[name], isinstance(events[-1], Failed)
        cancelled = one.get("finished", {}).get("outcome") == {"type": "cancelled"}
        assert (bool(one["told"]) or cancelled) == failed, name


def what_ag_ui_clients_would_post_back_is_the_same_turn(http_agent: dict[str, Any]) -> None:
    for name, events in takes().items():
        messages = http_agent[name]["messages"][1:]
        inbox = from_ag_ui({"threadId": "t", "runId": "r2", "messages": messages})
        assert_same_turn(inbox, Turn.from_events(events), name)


def ag_ui_clients_follow_a_loop(http_agent: dict[str, Any]) -> None:
    messages = http_agent["loop/two_steps"]["messages"]
    assert [m["role"] for m in messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert [m["toolCallId"] for m in messages if m["role"] == "tool"] == ["call_0", "call_0_2"]
    asks = http_agent["loop/asks"]["finished"]["outcome"]
    assert asks["interrupts"][0] == {
        "id": "ask_1", "reason": "tool_call", "toolCallId": "call_0", "message": "5 €",
        "responseSchema": ag_ui.ANSWER,
    }  # fmt: skip


AI_SDK = [
    the_ai_sdk_reads_every_take,
    the_ai_sdk_is_left_with_nothing_open,
    the_ai_sdk_hears_the_same_calls,
    the_ai_sdk_hears_broken_calls_as_errors,
    the_ai_sdk_hears_the_same_text,
    the_ai_sdk_hears_failures,
    the_ai_sdk_follows_a_loop,
    what_the_ai_sdk_would_post_back_is_the_same_turn,
]
AG_UI = [
    ag_ui_clients_read_every_take,
    ag_ui_clients_hear_the_same_calls,
    ag_ui_clients_hear_broken_calls_answered,
    ag_ui_clients_hear_the_same_text,
    ag_ui_clients_hear_failures,
    what_ag_ui_clients_would_post_back_is_the_same_turn,
    ag_ui_clients_follow_a_loop,
]


# --- coming back over a real socket ---------------------------------------------------------------


async def test_the_ai_sdk_comes_back_to_a_running_answer() -> None:
    """Its transport drops the connection in mid-stream, and reads all of it when it comes back."""
    pytest.importorskip("starlette")
    uvicorn = pytest.importorskip("uvicorn")
    from starlette.applications import Starlette

    from streamnorm.ui.router import Chat, chat_router

    gate = anyio.Event()

    async def loop(chat: Chat) -> AsyncIterator[Any]:
        for event in LOOPS["loop/two_steps"][:2]:
            yield event
        await gate.wait()
        for event in LOOPS["loop/two_steps"][2:]:
            yield event

    async def ask(chat: Chat) -> AsyncIterator[Any]:
        return loop(chat)

    router = chat_router(ask, owner=lambda request: request.headers.get("x-user"))
    config = uvicorn.Config(
        Starlette(routes=list(router.routes)), log_level="error", lifespan="off", ws="none"
    )
    server, listener = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    api = f"http://127.0.0.1:{listener.getsockname()[1]}/api/chat"
    lines: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: server.serve(sockets=[listener]))
        command = ["node", str(JS / "resume.mjs"), api]
        async with await anyio.open_process(command, stderr=None) as node:
            assert node.stdout is not None
            rest = ""
            async for text in TextReceiveStream(node.stdout):
                *whole, rest = (rest + text).split("\n")
                lines += whole
                if "reconnected" in lines:
                    gate.set()
        server.should_exit = True
    assert lines[:3] == ["idle", "dropped", "reconnected"]
    message = json.loads(lines[3])
    assert [p["text"] for p in message["parts"] if p["type"] == "text"] == ["Paying.", "Paid once."]
    assert [p["state"] for p in message["parts"] if p["type"] == "tool-pay"] == [
        "output-available", "output-error",
    ]  # fmt: skip
