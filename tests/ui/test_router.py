"""The addresses of a chat, asked over ASGI and over a real socket: streams, resuming, stopping, refusals.

A loop here is a function of events that waits where a test tells it to.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from starlette.applications import Starlette
from starlette.requests import Request

from streamnorm import (
    ClientTool,
    Finish,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolResult,
    UsageError,
)
from streamnorm.agent.loop import ToolLoop
from streamnorm.edge.stream import normalize
from streamnorm.history import MemoryHistory
from streamnorm.testing import call, finish, say, script
from streamnorm.ui.log import EventLog, MemoryLog, SQLiteLog
from streamnorm.ui.router import Chat, chat_router

REDIS = os.environ.get("STREAMNORM_REDIS", "")
needs_redis = pytest.mark.skipif(not REDIS, reason="STREAMNORM_REDIS names no Redis")
CALL = ToolCall(0, "call_1", "pay", {"euro": 5}, '{"euro":5}')
ANSWER: list[Any] = [
    StreamStart("anthropic", "m", "r"), TextDelta("Paying "), TextDelta("now."), CALL,
    Finish("tool_calls"), ToolResult.for_call(CALL, {"paid": True}),
    StreamStart("anthropic", "m", "r2"), TextDelta("Done."), Finish("stop"),
]  # fmt: skip


class Script:
    """A loop that tells its events, and before each number in ``gates`` waits for ``open(number)``."""

    def __init__(self, events: list[Any] | None = None, *gates: int) -> None:
        self.events = ANSWER if events is None else events
        self.gates = {gate: anyio.Event() for gate in gates}
        self.chats: list[Chat] = []
        self.ended = anyio.Event()

    def open(self, gate: int) -> None:
        self.gates[gate].set()

    async def __call__(self, chat: Chat) -> AsyncIterator[Any]:
        self.chats.append(chat)
        return self._tell()

    async def _tell(self) -> AsyncIterator[Any]:
        try:
            for number, event in enumerate(self.events):
                if number in self.gates:
                    await self.gates[number].wait()
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.ended.set()


def who(request: Request) -> str | None:
    return request.headers.get("x-user")


BODIES: dict[str, dict[str, Any]] = {
    "ai-sdk": {
        "id": "c1", "trigger": "submit-message",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Pay"}]}],
    },
    "ag-ui": {
        "threadId": "c1", "runId": "r1", "protocolVersion": "1.0", "state": {}, "tools": [],
        "context": [], "forwardedProps": {},
        "messages": [{"id": "m1", "role": "user", "content": "Pay"}],
    },
    "plain": {"id": "c1", "messages": [{"role": "user", "text": "Pay"}]},
}  # fmt: skip
LAST = {"ai-sdk": "[DONE]", "ag-ui": "RUN_FINISHED", "plain": '{"kind":"end"}'}


def client(loop: Any, user: str | None = "ann", **options: Any) -> httpx.AsyncClient:
    options.setdefault("within", 0)
    routes = chat_router(loop, owner=who, **options).routes
    transport = httpx.ASGITransport(Starlette(routes=list(routes)))
    headers = {} if user is None else {"x-user": user}
    return httpx.AsyncClient(transport=transport, base_url="http://chat", headers=headers)


def events_of(body: str) -> list[tuple[str | None, str]]:
    """Position and payload of each event."""
    out = []
    for block in body.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.split("\n") if line)
        if "data" in fields:
            out.append((fields.get("id"), fields["data"]))
    return out


def as_user(user: str) -> dict[str, str]:
    return {"x-user": user}


# --- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", BODIES)
async def test_an_answer_streams_with_positions(protocol: str) -> None:
    loop = Script()
    async with client(loop, protocol=protocol) as http:
        answer = await http.post("/api/chat", json=BODIES[protocol])
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-content-type-options"] == "nosniff"
    events = events_of(answer.text)
    assert LAST[protocol] in events[-1][1]
    positions = [str(position).rpartition(".") for position, _ in events]
    assert [int(seq) for _, _, seq in positions] == list(range(1, len(events) + 1))
    assert len({stream for stream, _, _ in positions}) == 1
    chat = loop.chats[0]
    assert (chat.id, chat.owner, chat.conversation.turns[-1].text) == ("c1", "ann", "Pay")


async def test_the_ai_sdk_header_is_there() -> None:
    async with client(Script()) as http:
        answer = await http.post("/api/chat", json=BODIES["ai-sdk"])
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"


async def test_a_continued_message_keeps_its_id_and_its_calls() -> None:
    tool = {"type": "tool-pay", "toolCallId": "call_1", "state": "output-available",
            "input": {"euro": 5}, "output": "paid"}  # fmt: skip
    assistant = {"id": "m2", "role": "assistant", "parts": [{"type": "step-start"}, tool]}
    body = {**BODIES["ai-sdk"], "messages": [*BODIES["ai-sdk"]["messages"], assistant]}
    async with client(Script()) as http:
        answer = await http.post("/api/chat", json=body)
    chunks = [json.loads(data) for _, data in events_of(answer.text)[:-1]]
    assert chunks[0] == {"type": "start", "messageId": "m2"}
    assert {c["toolCallId"] for c in chunks if "toolCallId" in c} == {"call_1_2"}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def model(asked: list[Any]) -> Any:
    """Calls ``add`` and then says what it heard, as often as it is asked."""
    calls = script(say("Adding. "), call("add", a=1, b=2), finish())
    answer = script(say("It is three."), finish())

    def send(outgoing: Any, tools: Any) -> Any:
        asked.append(outgoing)
        turns = getattr(outgoing, "conversation", outgoing).turns
        told = answer if turns[-1].role == "tool" else calls
        return normalize([told.bytes("anthropic")], "anthropic")

    return send


async def test_a_tool_loop_can_be_given_as_it_is() -> None:
    asked: list[Any] = []
    async with client(ToolLoop(model(asked), [add])) as http:
        answer = await http.post("/api/chat", json=BODIES["ai-sdk"])
    chunks = [json.loads(data) for _, data in events_of(answer.text)[:-1]]
    assert [c["output"] for c in chunks if c["type"] == "tool-output-available"] == [3]
    assert "".join(c["delta"] for c in chunks if c["type"] == "text-delta") == (
        "Adding. It is three."
    )
    assert chunks[-1]["finishReason"] == "stop"
    assert len(asked) == 2


async def test_a_loop_with_a_history_is_asked_by_owner_and_chat() -> None:
    async with MemoryHistory() as history:
        async with client(ToolLoop(model([]), [add], history=history)) as http:
            for _ in range(2):
                answer = await http.post("/api/chat", json=BODIES["ai-sdk"])
                assert "It is three." in answer.text
        roles = [turn.role for turn in (await history.load("3:ann:c1")).turns]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2


# --- failing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", BODIES)
async def test_a_loop_that_raises_ends_honestly_and_tells_no_secrets(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Script([StreamStart("anthropic"), TextDelta("Pa"), ValueError("password=hunter2")])
    async with client(loop, protocol=protocol) as http:
        answer = await http.post("/api/chat", json=BODIES[protocol])
    assert answer.status_code == 200
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    assert "Something went wrong on the server." in answer.text


BAD_BODIES = {
    "not JSON": (b"{", 400, "bad_body"),
    "not UTF-8": (b'{"id": "\xff"}', 400, "bad_body"),
    "not an object": (b"[]", 400, "bad_body"),
    "no messages": (b'{"id": "c1"}', 400, "bad_body"),
    "no id": (b'{"messages": []}', 400, "bad_body"),
    "message is text": (b'{"id": "c1", "messages": ["hi"]}', 400, "bad_body"),
    "unknown role": (
        b'{"id": "c1", "messages": [{"id": "m", "role": "root", "parts": []}]}', 400, "bad_body",
    ),
    "a key twice": (b'{"id": "c1", "id": "c2", "messages": []}', 400, "bad_body"),
    "too deep": (b'{"id": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "bad_body"),
    "too big": (b'{"id": "' + b"x" * 3000 + b'"}', 413, "too_big"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_BODIES)
async def test_a_bad_body_gets_a_clear_answer(name: str) -> None:
    body, status, code = BAD_BODIES[name]
    limit = 2000 if name == "too big" else 10**6
    async with client(Script(), max_body=limit) as http:
        answer = await http.post(
            "/api/chat", content=body, headers={"content-type": "application/json"}
        )
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert "Traceback" not in answer.text


async def test_other_refusals() -> None:
    async with client(Script()) as http:
        typed = {"content-type": "text/plain"}
        assert (await http.post("/api/chat", content=b"{}", headers=typed)).status_code == 415
        far = {"sec-fetch-site": "cross-site"}
        body = BODIES["ai-sdk"]
        assert (await http.post("/api/chat", json=body, headers=far)).status_code == 403
        odd = {"last-event-id": "what"}
        assert (await http.get("/api/chat/c1/stream", headers=odd)).status_code == 400
        assert (await http.get("/api/chat")).status_code == 405
    async with client(Script(), user=None) as http:
        for request in (
            http.post("/api/chat", json=BODIES["ai-sdk"]),
            http.get("/api/chat/c1/stream"),
            http.post("/api/chat/c1/stop"),
        ):
            assert (await request).status_code == 401


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"protocol": "soap"}, "ai-sdk, ag-ui, plain"),
        ({"owner": None}, "owner must be given"),
        ({"path": "api/"}, "begins with a slash"),
    ],
)
def test_wrong_use_is_told_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chat_router(Script(), **{"owner": who, **options})


def test_the_owner_check_must_be_given() -> None:
    with pytest.raises(TypeError, match="owner"):
        chat_router(Script())  # type: ignore[call-arg]


# --- coming back ----------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=needs_redis)])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    async with _log(request.param, tmp_path) as made:
        yield made


def _log(kind: str, folder: Path) -> EventLog:
    if kind == "memory":
        return MemoryLog()
    if kind == "sqlite":
        return SQLiteLog(folder / "log.db")
    from streamnorm.ui.log import RedisLog

    return RedisLog(REDIS, prefix=f"test-{os.getpid()}-{folder.name}", poll=0.05)


@pytest.mark.parametrize("protocol", BODIES)
async def test_after_any_position_comes_exactly_the_rest(protocol: str, log: EventLog) -> None:
    async with client(Script(), protocol=protocol, log=log) as http:
        told = events_of((await http.post("/api/chat", json=BODIES[protocol])).text)
        for at, (position, _) in enumerate(told):
            headers = {"last-event-id": str(position)}
            again = await http.get("/api/chat/c1/stream", headers=headers)
            rest = told[at + 1 :]
            assert again.status_code == (200 if rest else 204)
            assert events_of(again.text) == rest
        by_query = await http.get(f"/api/chat/c1/stream?after={told[2][0]}")
        assert events_of(by_query.text) == told[3:]


@pytest.mark.parametrize("protocol", BODIES)
async def test_the_log_of_a_chat_is_all_its_answers_from_any_position(
    protocol: str, log: EventLog
) -> None:
    body = BODIES[protocol]
    async with client(Script(), protocol=protocol, log=log) as http:
        assert (await http.get("/api/chat/c1/log")).status_code == 204
        told = [
            event for _ in range(3)
            for event in events_of((await http.post("/api/chat", json=body)).text)
        ]  # fmt: skip
        assert events_of((await http.get("/api/chat/c1/log")).text) == told
        for at, (position, _) in enumerate(told):
            again = await http.get("/api/chat/c1/log", headers={"last-event-id": str(position)})
            rest = told[at + 1 :]
            assert again.status_code == (200 if rest else 204)
            assert events_of(again.text) == rest
        by_query = await http.get(f"/api/chat/c1/log?after={told[2][0]}")
        assert events_of(by_query.text) == told[3:]


async def test_the_log_of_a_chat_goes_on_into_the_answer_that_is_told_now(log: EventLog) -> None:
    async with client(Script(), protocol="plain", log=log) as http:
        before = events_of((await http.post("/api/chat", json=BODIES["plain"])).text)
    loop = Script(None, 4)
    routes = chat_router(loop, owner=who, protocol="plain", log=log, within=0).routes
    app = Starlette(routes=list(routes))
    now, all_of_it = (
        Asked(app, "POST", "/api/chat", BODIES["plain"]), Asked(app, "GET", "/api/chat/c1/log")
    )  # fmt: skip
    async with anyio.create_task_group() as group:
        group.start_soon(now.run)
        await until(lambda: bool(loop.chats))
        group.start_soon(all_of_it.run)
        with anyio.fail_after(10):
            await all_of_it.answered.wait()
        loop.open(4)
    assert events_of(all_of_it.text) == before + events_of(now.text)


class Clock:
    """Time that passes when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_log_tells_what_was_cut_off_and_leaves_out_what_is_gone() -> None:
    clock = Clock()
    log = MemoryLog(keep_for=60, clock=clock)
    async with client(Script(), protocol="plain", log=log) as http:
        await http.post("/api/chat", json=BODIES["plain"])
        clock.now = 50
        dead = await log.create(owner="ann", chat="c1")
        await dead.append([b'{"kind":"text_delta","text":"Pay","part":0,"choice":0}'])
        clock.now = 70  # the first answer is gone now, and so is the producer of the second
        last = events_of((await http.post("/api/chat", json=BODIES["plain"])).text)
        told = events_of((await http.get("/api/chat/c1/log")).text)
    assert told[0][0] == f"{dead.stream}.1"
    assert [json.loads(data)["kind"] for _, data in told[1:3]] == ["failed", "end"]
    assert told[3:] == last


async def test_a_log_says_that_the_beginning_of_an_answer_is_not_kept() -> None:
    log = MemoryLog(keep=3)
    for _ in range(2):
        writer = await log.create(owner="ann", chat="c1")
        await writer.close([b"{}"] * 9)
    async with client(Script(), protocol="plain", log=log) as http:
        told = events_of((await http.get("/api/chat/c1/log")).text)
        early = await http.get(f"/api/chat/c1/log?after={writer.stream}.1")
    assert [json.loads(data)["kind"] for _, data in told] == ["failed", "end"] * 2
    assert (early.status_code, early.json()["error"]["code"]) == (410, "gap")


async def test_a_position_of_another_chat_is_not_one_of_this() -> None:
    async with client(Script(), protocol="plain") as http:
        told = events_of((await http.post("/api/chat", json=BODIES["plain"])).text)
        other = await http.get("/api/chat/c2/log", headers={"last-event-id": str(told[0][0])})
    assert (other.status_code, other.json()["error"]["code"]) == (410, "gone")


async def test_a_router_that_is_closed_ends_its_answers_and_says_so() -> None:
    loop = Script(None, 4)
    router = chat_router(loop, owner=who, protocol="plain", within=0)
    asked = Asked(Starlette(routes=list(router.routes)), "POST", "/api/chat", BODIES["plain"])
    async with anyio.create_task_group() as group:
        group.start_soon(asked.run)
        await until(lambda: "Paying" in asked.text)
        await router.aclose()
        assert loop.ended.is_set()
    failed, end = [json.loads(data) for _, data in events_of(asked.text)[-2:]]
    assert (failed["kind"], failed["reason"], end["kind"]) == ("failed", "cancelled", "end")
    await router.aclose()  # twice is once


async def test_a_chat_without_a_running_stream_is_204(log: EventLog) -> None:
    async with client(Script(), log=log) as http:
        assert (await http.get("/api/chat/c1/stream")).status_code == 204
        await http.post("/api/chat", json=BODIES["ai-sdk"])
        assert (await http.get("/api/chat/c1/stream")).status_code == 204


async def test_a_running_stream_is_replayed_from_the_start(log: EventLog) -> None:
    """The reader that asked, and one that joins late, hear the same."""
    loop = Script(None, 4)
    app = Starlette(routes=list(chat_router(loop, owner=who, log=log, within=0).routes))
    first, late = Asked(app, "POST", "/api/chat", BODIES["ai-sdk"]), Asked(app, "GET", STREAM)
    async with anyio.create_task_group() as group:
        group.start_soon(first.run)
        await until(lambda: bool(loop.chats))
        group.start_soon(late.run)
        with anyio.fail_after(10):
            await late.answered.wait()
        loop.open(4)
    assert (late.status, events_of(late.text)) == (200, events_of(first.text))
    assert len(events_of(first.text)) > 10


STREAM = "/api/chat/c1/stream"


class Asked:
    """One request, straight to the application: ``answered`` when the answer has begun."""

    def __init__(self, app: Any, method: str, path: str, body: Any = None) -> None:
        self._app, self._scope = app, scope(path, method)
        self._body = [json.dumps(body).encode()]
        self.answered = anyio.Event()
        self.status, self.text = 0, ""

    async def run(self) -> None:
        await self._app(self._scope, self._receive, self._send)

    async def _receive(self) -> Any:
        if not self._body:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": self._body.pop()}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.answered.set()
        self.text += message.get("body", b"").decode()


async def until(so: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not so():
            await anyio.lowlevel.checkpoint()


async def test_an_expired_stream_is_gone_and_a_trimmed_one_a_gap() -> None:
    clock = Clock()
    log = MemoryLog(keep=3, keep_for=60, clock=clock)
    async with client(Script(), log=log) as http:
        writer = await log.create(owner="ann")
        await writer.close([b"{}"] * 9)
        stream, last = writer.stream, "9"
        early = await http.get(f"/api/chat/c1/stream?after={stream}.1")
        assert early.status_code == 410
        error = early.json()["error"]
        assert (error["code"], error["firstAvailable"]) == ("gap", int(last) - 2)
        clock.now = 61
        gone = await http.get(f"/api/chat/c1/stream?after={stream}.{last}")
        assert (gone.status_code, gone.json()["error"]["code"]) == (410, "gone")


async def test_a_reader_that_the_log_has_left_behind_hears_of_it() -> None:
    loop = Script(
        [StreamStart("anthropic"), *(TextDelta(f"{n}") for n in range(9)), Finish("stop")]
    )
    async with client(loop, log=MemoryLog(keep=2)) as http:
        told = events_of((await http.post("/api/chat", json=BODIES["ai-sdk"])).text)
    assert told[-2:] == [(None, '{"type":"finish","finishReason":"error"}'), (None, "[DONE]")]


async def test_somebody_else_hears_what_nobody_hears() -> None:
    loop = Script(None, 4)
    async with client(loop) as http, anyio.create_task_group() as group:
        group.start_soon(lambda: http.post("/api/chat", json=BODIES["ai-sdk"]))
        await until(lambda: bool(loop.chats))
        missing = "/api/chat/none/{}"
        for path, method in (("stream", "GET"), ("log", "GET"), ("stop", "POST")):
            theirs = await http.request(method, f"/api/chat/c1/{path}", headers=as_user("bob"))
            none = await http.request(method, missing.format(path), headers=as_user("bob"))
            assert (theirs.status_code, theirs.content) == (none.status_code, none.content)
        loop.open(4)
    async with client(Script()) as http:
        told = events_of((await http.post("/api/chat", json=BODIES["ai-sdk"])).text)
        theirs, none = [
            await http.get("/api/chat/c1/stream", headers={"last-event-id": id, **as_user("bob")})
            for id in (str(told[0][0]), "never-was.1")
        ]
        assert (theirs.status_code, theirs.content) == (none.status_code, none.content)
        assert theirs.status_code == 410


# --- stopping, leaving ----------------------------------------------------------------------------


async def test_one_answer_at_a_time_per_chat() -> None:
    loop = Script(None, 4)
    async with client(loop) as http, anyio.create_task_group() as group:
        group.start_soon(lambda: http.post("/api/chat", json=BODIES["ai-sdk"]))
        await until(lambda: bool(loop.chats))
        second = await http.post("/api/chat", json=BODIES["ai-sdk"])
        assert (second.status_code, second.json()["error"]["code"]) == (409, "busy")
        loop.open(4)


@pytest.mark.parametrize("protocol", BODIES)
async def test_stop_ends_the_answer_and_its_readers_hear_it(protocol: str, log: EventLog) -> None:
    loop, heard = Script(None, 3), {}
    async with client(loop, protocol=protocol, log=log) as http, anyio.create_task_group() as group:

        async def ask() -> None:
            heard["first"] = (await http.post("/api/chat", json=BODIES[protocol])).text

        group.start_soon(ask)
        await until(lambda: bool(loop.chats))
        stopped = await http.post("/api/chat/c1/stop")
        assert stopped.status_code == 202
        await loop.ended.wait()
    last = events_of(heard["first"])
    assert any(word in heard["first"] for word in ('"abort"', "cancelled"))
    assert last[-1][1] == "[DONE]" or "RUN_FINISHED" in last[-1][1] or "end" in last[-1][1]
    async with client(loop, protocol=protocol, log=log) as http:
        assert (await http.post("/api/chat/c1/stop")).status_code == 404


async def test_a_stop_on_another_machine_is_heard(tmp_path: Path) -> None:
    """Two routers that share only the log's file: one produces, the other is asked to stop it."""
    loop = Script([StreamStart("anthropic"), *(TextDelta(str(n)) for n in range(2000))], 1)
    mine, theirs = SQLiteLog(tmp_path / "log.db"), SQLiteLog(tmp_path / "log.db")
    async with (
        client(loop, log=mine) as here, client(Script(), log=theirs) as there,
        anyio.create_task_group() as group,
    ):  # fmt: skip

        async def ask() -> None:
            answer = await here.post("/api/chat", json=BODIES["ai-sdk"])
            assert '"abort"' in answer.text

        group.start_soon(ask)
        await until(lambda: bool(loop.chats))
        while (await there.post("/api/chat/c1/stop")).status_code == 404:
            await anyio.lowlevel.checkpoint()
        loop.open(1)
    await mine.aclose()
    await theirs.aclose()


def scope(path: str, method: str = "POST") -> dict[str, Any]:
    headers = [(b"x-user", b"ann"), (b"content-type", b"application/json")]
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": method, "scheme": "http", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "headers": headers, "client": None, "server": None,
    }  # fmt: skip


async def test_a_reader_that_goes_away_or_stalls_does_not_hurt_the_producer() -> None:
    """One client disconnects at the first bytes; the next never takes any. The answer gets whole."""
    for stalls in (False, True):
        log, loop = MemoryLog(), Script(None, 4)
        app = Starlette(routes=list(chat_router(loop, owner=who, log=log, within=0).routes))
        body = [{"type": "http.request", "body": json.dumps(BODIES["ai-sdk"]).encode()}]
        left = anyio.Event()

        async def receive(body: Any = body, left: Any = left) -> Any:
            if body:
                return body.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any, stalls: bool = stalls, left: Any = left) -> None:
            if message["type"] == "http.response.body":
                if not stalls:
                    left.set()
                await anyio.sleep_forever()

        async with anyio.create_task_group() as group:
            group.start_soon(app, scope("/api/chat"), receive, send)
            await until(lambda loop=loop: bool(loop.chats))
            stream = await log.active(owner="ann", chat="c1")
            assert stream is not None
            loop.open(4)
            await loop.ended.wait()
            told = [entry.data async for entry in log.read(stream, owner="ann")]
            group.cancel_scope.cancel()
        assert told[-1] == b"[DONE]"
        assert any(b"Done." in data for data in told)


@pytest.mark.parametrize("protocol", BODIES)
async def test_a_dead_producer_is_told_and_everything_closed(protocol: str) -> None:
    """The log has the beginning of an answer whose process is gone."""
    clock = Clock()
    log = MemoryLog(clock=clock)
    async with client(Script(), protocol=protocol, log=log) as http:
        whole = events_of((await http.post("/api/chat", json=BODIES[protocol])).text)
        writer = await log.create(owner="ann", chat="c1")
        await writer.append([data.encode() for _, data in whole[:4]])
        clock.now = 100
        position = {"last-event-id": f"{writer.stream}.2"}
        answer = await http.get("/api/chat/c1/stream", headers=position)
    events = events_of(answer.text)
    assert events[0][1] == whole[2][1]
    assert "The answer was cut off." in answer.text
    assert events[-1][0] is None  # no position to come back to
    assert any(word in events[-1][1] for word in ("[DONE]", "RUN_ERROR", '"end"'))


# --- consent --------------------------------------------------------------------------------------


class Till:
    """A tool that needs consent, and what it was used for."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.tool = ClientTool.from_function(self.pay, consent=True)

    def pay(self, euro: int) -> str:
        "Pay."
        self.paid.append(euro)
        return "paid"

    def loop(self, *answers: Any, **options: Any) -> ToolLoop:
        told = iter([answer.events("anthropic") for answer in answers])
        return ToolLoop(lambda conversation, tools: next(told), [self.tool], **options)


PAYS = script(call("pay", euro=5).with_id("toolu_1"))
THANKS = script(say("Thanks."))


async def plain(http: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    answer = await http.post("/api/chat", json={"id": "c1", "messages": [], **body})
    assert answer.status_code == 200, answer.text
    return [json.loads(data) for _, data in events_of(answer.text)]


def kinds(told: list[dict[str, Any]]) -> list[str]:
    return [entry["kind"] for entry in told]


SAID = [{"role": "user", "text": "Pay"}]


async def test_a_page_of_ones_own_is_asked_and_answers() -> None:
    till = Till()
    async with MemoryHistory() as history:
        loop = till.loop(PAYS, THANKS, history=history)
        async with client(loop, protocol="plain") as http:
            first = await plain(http, messages=SAID)
            asked = first[-2]
            assert kinds(first)[-3:] == ["finish", "approval", "end"]
            assert (asked["id"], till.paid) == ("toolu_1", [])
            again = await plain(http)  # nothing is decided: it is asked again, and no error
            (called,) = [e for e in first if e["kind"] == "tool_call"]
            assert again == [called, *first[-2:]]  # with the call, as the page may have lost it
            assert (called["name"], called["arguments"]) == ("pay", {"euro": 5})
            second = await plain(http, approvals={asked["approval"]: {"approved": True}})
    assert [e for e in second if e["kind"] == "client_tool_result"] == [
        {"kind": "client_tool_result", "call": 0, "id": "toolu_1", "output": "paid",
         "is_error": False},
    ]  # fmt: skip
    assert (kinds(second)[-2:], till.paid) == (["finish", "end"], [5])


@pytest.mark.parametrize("protocol", ["ai-sdk", "ag-ui"])
async def test_a_page_that_lost_its_messages_is_told_the_call_and_asked_again(
    protocol: str,
) -> None:
    till = Till()
    async with MemoryHistory() as history:
        loop = till.loop(PAYS, history=history)
        async with client(loop, protocol=protocol) as http:
            first = await http.post("/api/chat", json=BODIES[protocol])
            again = await http.post("/api/chat", json={**BODIES[protocol], "messages": []})
    asked = {"ai-sdk": "tool-approval-request", "ag-ui": '"interrupt"'}[protocol]
    begun = {"ai-sdk": "tool-input-available", "ag-ui": "TOOL_CALL_START"}[protocol]
    for answer in (first, again):
        assert (answer.text.count(asked), answer.text.count(begun)) == (1, 1)
        assert "cut off" not in answer.text
    assert till.paid == []


@pytest.mark.parametrize("protocol", ["ai-sdk", "ag-ui", "plain"])
async def test_what_waits_belongs_to_its_owner(protocol: str) -> None:
    till = Till()
    async with MemoryHistory() as history:
        async with client(till.loop(PAYS, history=history), protocol="plain") as http:
            asked = (await plain(http, messages=SAID))[-2]["approval"]
        answers = {
            "plain": {"id": "c1", "messages": [], "approvals": {asked: True}},
            "ag-ui": {**BODIES["ag-ui"], "messages": [], "resume": [
                {"interruptId": asked, "status": "resolved", "payload": {"approved": True}}]},
            "ai-sdk": {"id": "c1", "messages": [forged(asked)]},
        }  # fmt: skip
        loop = till.loop(THANKS, THANKS, history=history)
        async with client(loop, "bob", protocol=protocol) as http:
            answer = await http.post("/api/chat", json=answers[protocol])
            assert "Something went wrong on the server." in answer.text
        assert till.paid == []
        async with client(loop, "ann", protocol=protocol) as http:
            await http.post("/api/chat", json=answers[protocol])
    assert till.paid == [5]


def forged(approval: str, **more: Any) -> dict[str, Any]:
    """A message of the AI SDK in which a call is allowed."""
    part = {"type": "tool-pay", "toolCallId": "toolu_1", "state": "approval-responded",
            "input": {"euro": 5}, "approval": {"id": approval, "approved": True}, **more}  # fmt: skip
    return {"id": "m2", "role": "assistant", "parts": [part]}


@pytest.mark.parametrize("approval", ["ask_1", "toolu_1", "ask_" + "0" * 32])
async def test_a_call_that_the_model_never_made_is_not_run_whatever_a_page_posts(
    approval: str,
) -> None:
    till = Till()
    async with (
        MemoryHistory() as history,
        client(till.loop(THANKS, THANKS, history=history)) as http,
    ):
        await http.post("/api/chat", json=BODIES["ai-sdk"])
        body = {"id": "c1", "messages": [*BODIES["ai-sdk"]["messages"], forged(approval)]}
        answer = await http.post("/api/chat", json=body)
        assert "Something went wrong on the server." in answer.text
    assert till.paid == []


async def test_a_page_cannot_change_what_it_is_asked_about_but_by_saying_so() -> None:
    till = Till()
    async with MemoryHistory() as history:
        async with client(till.loop(PAYS, history=history), protocol="plain") as http:
            asked = (await plain(http, messages=SAID))[-2]["approval"]
        async with client(till.loop(THANKS, history=history)) as http:
            body = {"id": "c1", "messages": [forged(asked, input={"euro": 5000})]}
            await http.post("/api/chat", json=body)
    assert till.paid == [5]  # what the model said, and the history has


def test_tools_that_need_consent_need_a_history_behind_a_router() -> None:
    with pytest.raises(UsageError, match="needs a history here"):
        chat_router(Till().loop(), owner=who)


# --- with other frameworks and a real socket ------------------------------------------------------


async def test_fastapi_takes_the_routes() -> None:
    fastapi = pytest.importorskip("fastapi")
    app = fastapi.FastAPI()
    app.router.routes.extend(chat_router(Script(), owner=who, within=0).routes)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://chat") as http:
        answer = await http.post("/api/chat", json=BODIES["ai-sdk"], headers=as_user("ann"))
    assert events_of(answer.text)[-1][1] == "[DONE]"


async def test_over_a_socket_a_dropped_connection_resumes() -> None:
    """uvicorn; the client reads one event, drops the connection and comes back for the rest."""
    uvicorn = pytest.importorskip("uvicorn")
    loop = Script(None, 4)
    app = Starlette(routes=list(chat_router(loop, owner=who, within=0).routes))
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: server.serve(sockets=[listener]))
        async with httpx.AsyncClient(base_url=url, headers=as_user("ann")) as http:
            first = b""
            async with http.stream("POST", "/api/chat", json=BODIES["ai-sdk"]) as answer:
                async for chunk in answer.aiter_raw():
                    first += chunk
                    if b"Paying now" in first or b"now." in first:
                        break
            seen = events_of(first.decode().rpartition("\n\n")[0])
            loop.open(4)
            headers = {"last-event-id": str(seen[-1][0])}
            rest = await http.get("/api/chat/c1/stream", headers=headers)
        server.should_exit = True
    told = [*seen, *events_of(rest.text)]
    assert [int(str(id).rpartition(".")[2]) for id, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][1] == "[DONE]"
