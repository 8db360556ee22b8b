"""``streamnorm serve`` without a browser: what its endpoints answer, and what they refuse.

Needs the extra ``ui``; left out where Starlette is missing.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from httpx_sse import EventSource

from streamnorm import PROVIDERS, Conversation, event_to_json
from streamnorm.errors import UsageError
from streamnorm.history import SQLiteHistory
from tests.conftest import RECORDINGS, load, over_takes, run, some

pytest.importorskip("starlette", reason="the page needs the extra ui: pip install 'streamnorm[ui]'")

from starlette.applications import Starlette

from streamnorm.cli.serve import _chats, _folder, bind
from streamnorm.page.app import create_app
from streamnorm.page.chat import Chats
from streamnorm.page.dissect import cut, dissect, spans
from streamnorm.page.live import live_models
from streamnorm.page.scripted import SUGGESTIONS, TOOLS, Scripted
from streamnorm.page.takes import LARGEST_UPLOAD, MOST_UPLOADS, Takes
from streamnorm.takes.pipe import pipe_for
from streamnorm.ui.log import MemoryLog, SQLiteLog

ORIGIN = "http://127.0.0.1:8765"
Client = httpx.AsyncClient


async def at_once(seconds: float) -> None:
    await asyncio.sleep(0)


def app_of(**options: Any) -> Starlette:
    return create_app(Takes(RECORDINGS), **{"scripted": Scripted(wait=at_once), **options})


def client_of(app: Starlette) -> Client:
    return Client(transport=httpx.ASGITransport(app), base_url=ORIGIN)


@pytest.fixture
async def chats() -> AsyncIterator[Chats]:
    kept = Chats()
    yield kept
    await kept.aclose()


@pytest.fixture
async def client(chats: Chats) -> AsyncIterator[Client]:
    async with client_of(app_of(chats=chats)) as client:
        yield client


# --- takes ----------------------------------------------------------------------------------------


@over_takes(quick=100)
def test_frames_hold_all_bytes_and_all_events_of_a_take(path: Any) -> None:
    take, wire = load(path)
    shown = dissect(take)
    pipe = pipe_for(take)
    events = [event_to_json(e).decode() for e in pipe.feed(wire) + pipe.close()]
    assert [e for f in shown["frames"] for e in f["events"]] + shown["end"]["events"] == events
    assert "".join(f["raw"] for f in shown["frames"]) == wire.decode("utf-8", "backslashreplace")
    assert {n["name"]: n["count"] for n in shown["notes"]} == dict(pipe.notes)
    raised = [n for f in [*shown["frames"], shown["end"]] for n in f["notes"]]
    assert sorted(raised) == sorted(pipe.notes.elements())


@pytest.mark.parametrize(
    "name", ["anthropic/parallel_calls", "bedrock/parallel_calls", "gemini/json_array_body"]
)
def test_a_cut_anywhere_tells_what_the_pipe_tells_of_those_bytes(name: str) -> None:
    take, wire = load(RECORDINGS / f"{name}.sse")
    frames = dissect(take)["frames"]
    for at in some(range(0, len(wire) + 1, 7), 60):
        told = cut(take, at)
        heard = [e for f in frames[: told["frames"]] for e in f["events"]] + told["tail"]
        expected = run(take.provider or "", [wire[:at]], seed=take.seed)
        assert heard == [event_to_json(e).decode() for e in expected]


def test_frames_end_where_the_wire_ends_them() -> None:
    assert [*spans(b"data: 1\r\n\r\ndata: 2\r\n\r\n", "gemini")] == [11, 22]
    assert [*spans(b'{"a":1}\n{"b":2}', "ollama")] == [8, 15]
    assert [*spans(b"", "openai_chat")] == []


async def test_the_list_names_every_take_and_each_can_be_opened(client: Client) -> None:
    rows = (await client.get("/api/takes")).json()
    known = {*PROVIDERS, "claude_code", "codex"}
    takes = [path for path in RECORDINGS.glob("*/*.sse") if path.parent.name in known]
    assert len(rows) == len(takes)
    assert {row["provider"] for row in rows if row["program"]} == {"claude_code", "codex"}
    answer = await client.get(f"/api/takes/{rows[0]['name']}")
    assert answer.json()["name"] == rows[0]["name"]
    assert answer.json()["frames"]


@pytest.mark.parametrize(
    "name",
    ["anthropic/nowhere", "..%2f..%2fpyproject", "../../pyproject.toml", "anthropic", "%00", ""],
)
async def test_a_take_that_is_not_listed_does_not_exist(client: Client, name: str) -> None:
    answer = await client.get(f"/api/takes/{name}/x")
    assert answer.status_code == 404
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"message"}


async def test_a_file_is_shown_like_a_take_and_can_be_cut(client: Client) -> None:
    data = (RECORDINGS / "anthropic/parallel_calls.sse").read_bytes()
    shown = (await client.post("/api/uploads", content=data)).json()
    assert shown["provider"] == "anthropic"
    told = (await client.get(f"/api/cut/{shown['name']}", params={"at": "700"})).json()
    assert json.loads(told["tail"][-1])["kind"] == "failed"


@pytest.mark.parametrize("data", [b"\x00\xff" * 50, b"<html>no</html>", b"{}", b"data: {\n\n"])
async def test_a_file_that_is_no_stream_is_told_as_failed(client: Client, data: bytes) -> None:
    shown = (await client.post("/api/uploads", content=data)).json()
    last = [e for f in [*shown["frames"], shown["end"]] for e in f["events"]][-1]
    assert json.loads(last)["kind"] == "failed"


async def test_files_are_bounded_in_size_and_number(client: Client) -> None:
    assert (await client.post("/api/uploads", content=b"")).status_code == 400
    too_large = await client.post("/api/uploads", content=b"x" * (LARGEST_UPLOAD + 1))
    assert too_large.status_code == 413
    assert "too large" in too_large.json()["error"]["message"]
    takes = Takes(RECORDINGS)
    names = [takes.keep(b"data: 1\n\n") for _ in range(MOST_UPLOADS + 1)]
    assert takes.get(names[0]) is None
    assert takes.get(names[-1]) is not None


async def test_a_take_with_a_bad_header_says_so(client: Client) -> None:
    answer = await client.post("/api/uploads", content=b": streamnorm nonsense\n")
    assert answer.status_code == 400
    assert "header" in answer.json()["error"]["message"]


@pytest.mark.parametrize("at", ["", "-1", "x", "1e3", "9" * 40, "٣"])
async def test_a_cut_is_a_number_of_bytes(client: Client, at: str) -> None:
    answer = await client.get("/api/cut/anthropic/parallel_calls", params={"at": at})
    assert answer.status_code == 400


async def test_an_unknown_provider_is_refused_with_the_names_there_are(client: Client) -> None:
    answer = await client.get("/api/takes/anthropic/parallel_calls", params={"provider": "x"})
    assert answer.status_code == 400
    assert "anthropic" in answer.json()["error"]["message"]


def test_without_a_folder_there_are_takes_of_every_wire() -> None:
    takes = Takes()
    for row in takes.listing():
        take = takes.get(row["name"])
        assert take is not None
        assert dissect(take)["frames"]


# --- the guard ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/api/takes", "/static/main.js", "/nowhere"])
async def test_every_answer_says_how_it_may_be_used(client: Client, path: str) -> None:
    headers = (await client.get(path)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


async def test_another_host_name_is_refused(client: Client) -> None:
    answer = await client.get("/api/takes", headers={"host": "evil.example"})
    assert answer.status_code == 403


async def test_a_page_of_another_origin_may_not_post_unless_allowed() -> None:
    foreign = {"origin": "http://localhost:5173"}
    async with client_of(app_of()) as client:
        refused = await client.post("/api/chat", json={}, headers=foreign)
        same = await client.post("/api/chat", json={}, headers={"origin": ORIGIN})
    async with client_of(app_of(origins=["http://localhost:5173"])) as client:
        allowed = await client.post("/api/chat", json={}, headers=foreign)
        asked = await client.options("/api/chat", headers=foreign)
    assert (refused.status_code, same.status_code, allowed.status_code) == (403, 400, 400)
    assert allowed.headers["access-control-allow-origin"] == "http://localhost:5173"
    assert asked.status_code == 200


async def test_json_never_holds_what_html_would_take_for_its_own(client: Client) -> None:
    data = (
        b'data: {"choices":[{"delta":{"content":"<img src=x onerror=alert(1)>\xe2\x80\xa8&"}}]}\n\n'
    )
    text = (await client.post("/api/uploads?provider=openai_chat", content=data)).text
    assert not {"<", ">", "&", "\u2028"} & set(text)
    assert "\\u003cimg" in text


async def test_a_mistake_of_ours_leaves_no_trace_in_the_answer() -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a secret")

    takes = Takes(RECORDINGS)
    takes.get = broken  # type: ignore[method-assign]
    app = create_app(takes)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with Client(transport=transport, base_url=ORIGIN) as client:
        answer = await client.get("/api/takes/x")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


# --- chat -----------------------------------------------------------------------------------------


async def heard(client: Client, method: str, path: str, **more: Any) -> list[tuple[str, Any]]:
    """The entries of an answer with their positions, to its end."""
    async with client.stream(method, path, **more) as answer:
        text = (await answer.aread()).decode()
        assert answer.status_code == 200, text
    blocks = [dict(line.split(": ", 1) for line in b.split("\n")) for b in text.split("\n\n") if b]
    return [(b.get("id", ""), json.loads(b["data"])) for b in blocks if "data" in b]


def said(text: str, provider: str = "anthropic", chat: str = "chat-0001") -> dict[str, Any]:
    return {"id": chat, "messages": [{"role": "user", "text": text}], "provider": provider}


async def asked(client: Client, text: str, **more: Any) -> list[Any]:
    return [e for _, e in await heard(client, "POST", "/api/chat", json=said(text, **more))]


def text_of(told: list[Any]) -> str:
    return "".join(e["text"] for e in told if e["kind"] == "text_delta")


def kinds(told: list[Any]) -> list[str]:
    return [entry["kind"] for entry in told]


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "gemini", "bedrock"])
async def test_a_run_calls_tools_and_answers_on_every_wire(client: Client, provider: str) -> None:
    told = await asked(client, SUGGESTIONS[0], provider=provider)
    assert told[0] == {"kind": "said", "text": SUGGESTIONS[0], "to": provider}
    results = [e["output"]["city"] for e in told if e["kind"] == "client_tool_result"]
    assert results == ["Oslo", "Lima"]
    assert "Oslo: 3 °C and snow; Lima: 19 °C and fog" in text_of(told)
    assert kinds(told)[-2:] == ["finish", "end"]


async def test_the_log_of_a_chat_tells_all_answers_and_exactly_the_rest(client: Client) -> None:
    first = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[2]))
    second = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0]))
    told = first + second
    assert await heard(client, "GET", "/api/chat/chat-0001/log") == told
    for at, (position, _) in enumerate(told[:-1]):
        header = {"last-event-id": position}
        rest = await heard(client, "GET", "/api/chat/chat-0001/log", headers=header)
        assert rest == told[at + 1 :]
    idle = await client.get(f"/api/chat/chat-0001/log?after={told[-1][0]}")
    assert idle.status_code == 204
    assert (await client.get("/api/chat/nobody-knows/log")).status_code == 204


async def test_a_broken_call_is_told_as_broken_and_never_run(client: Client) -> None:
    told = await asked(client, SUGGESTIONS[3])
    assert "broken_tool_call" in kinds(told)
    assert "client_tool_result" not in kinds(told)
    assert kinds(told)[-2:] == ["failed", "end"]
    assert told[-2]["reason"] == "truncated"
    assert kinds(await asked(client, SUGGESTIONS[0]))[-2:] == ["finish", "end"]


async def decided(client: Client, answer: Any, told: list[Any]) -> list[Any]:
    """What is told after a person's answer to what was asked."""
    assert kinds(told)[-2:] == ["approval", "end"]
    assert "client_tool_result" not in kinds(told)
    body = {**said(""), "messages": [], "approvals": {told[-2]["approval"]: answer}}
    return [entry for _, entry in await heard(client, "POST", "/api/chat", json=body)]


@pytest.mark.parametrize(("approved", "says"), [(True, "gone"), (False, "nothing was deleted")])
async def test_a_call_that_needs_it_runs_only_when_a_person_agreed(
    client: Client, approved: bool, says: str
) -> None:
    before = await asked(client, SUGGESTIONS[1])
    told = await decided(client, approved, before)
    result = next(e for e in told if e["kind"] == "client_tool_result")
    assert result["is_error"] is not approved
    assert ("denied" in kinds(told)) is not approved
    assert says in text_of(told)
    again = await decided(client, not approved, before)
    assert (kinds(again), again[0]["output"]) == (
        ["client_tool_result", "finish", "end"], result["output"]
    )  # fmt: skip


async def test_a_call_runs_with_the_arguments_that_a_person_gave(client: Client) -> None:
    answer = {"approved": True, "editedArgs": {"pattern": "tmp/*"}}
    told = await decided(client, answer, await asked(client, SUGGESTIONS[1]))
    result = next(e for e in told if e["kind"] == "client_tool_result")
    assert result["output"]["output"] == {"pattern": "tmp/*", "deleted": 3}


async def test_who_says_something_else_has_not_agreed(client: Client) -> None:
    await asked(client, SUGGESTIONS[1])
    told = await asked(client, SUGGESTIONS[0])
    first = next(e for e in told if e["kind"] == "client_tool_result")
    assert (first["output"], first["is_error"]) == ("not run: nobody approved it", True)
    assert kinds(told)[-2:] == ["finish", "end"]


async def test_an_answer_to_what_nobody_asked_is_told_as_failed(client: Client) -> None:
    await asked(client, SUGGESTIONS[1])
    body = {**said(""), "messages": [], "approvals": {"ask_1": True}}
    told = [entry for _, entry in await heard(client, "POST", "/api/chat", json=body)]
    assert kinds(told) == ["failed", "end"]
    assert "nobody asked 'ask_1'" in told[0]["error"]


def held() -> tuple[asyncio.Event, Scripted]:
    """A model that stops after its first chunk, for ever, and an event that tells when."""
    gate = asyncio.Event()

    async def hold(seconds: float) -> None:
        if gate.is_set():
            await asyncio.Event().wait()
        gate.set()

    return gate, Scripted(wait=hold)


async def test_stop_in_mid_stream_tells_that_it_was_stopped() -> None:
    gate, model = held()
    async with client_of(app_of(scripted=model)) as client:
        reading = asyncio.create_task(asked(client, SUGGESTIONS[2]))
        await gate.wait()
        busy = await client.post("/api/chat", json=said("more"))
        await client.post("/api/chat/chat-0001/stop")
        told = await reading
    assert busy.status_code == 409
    assert kinds(told)[-2:] == ["failed", "end"]
    assert told[-2]["reason"] == "cancelled"


async def test_when_the_server_ends_its_readers_hear_it() -> None:
    gate, model = held()
    app = app_of(scripted=model)
    async with client_of(app) as client:
        reading = asyncio.create_task(asked(client, SUGGESTIONS[2]))
        await gate.wait()
        await app.state.end_answers()
        told = await reading
    assert told[-2]["reason"] == "cancelled"
    assert told[-2]["error"] == "the server is stopping"
    assert told[-1] == {"kind": "end"}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "JSON"), (b"[]", "object"), (b'"x"', "object"), (b"{}", "id"),
        (b'{"id":"c"}', "messages"), (b'{"id":"c","messages":[{}]}', "role"),
        (b"[" * 60_000, "JSON"),
    ],
)  # fmt: skip
async def test_a_message_that_is_wrong_is_refused_in_one_sentence(
    client: Client, body: bytes, word: str
) -> None:
    as_json = {"content-type": "application/json"}
    answer = await client.post("/api/chat", content=body, headers=as_json)
    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"provider": "none"}, "provider: one of anthropic"),
        ({"provider": None}, "provider: one of anthropic"),
        ({"live": True}, "--live anthropic=MODEL"),
        ({"messages": []}, "say something"),
        ({"messages": [{"role": "user", "text": "  "}]}, "say something"),
        ({"messages": [{"role": "assistant", "text": "Hi"}]}, "say something"),
    ],
)
async def test_what_no_model_can_be_asked_is_told_as_failed(
    client: Client, more: dict[str, Any], word: str
) -> None:
    body = {**said("Hello"), **more}
    told = [entry for _, entry in await heard(client, "POST", "/api/chat", json=body)]
    assert kinds(told) == ["failed", "end"]
    assert word in told[0]["error"]


async def test_an_unknown_conversation_cannot_be_stopped(client: Client) -> None:
    assert (await client.post("/api/chat/nobody-knows/stop")).status_code == 404


async def test_chats_are_listed_the_latest_first(client: Client) -> None:
    assert (await client.get("/api/chats")).json() == []
    await asked(client, SUGGESTIONS[0], chat="one")
    await asked(client, "Tell me a long story. " + "Very " * 50, chat="two")
    two, one = (await client.get("/api/chats")).json()
    assert one == {"id": "one", "title": SUGGESTIONS[0]}
    assert two["id"] == "two"
    assert two["title"].startswith("Tell me a long story. Very Very")
    assert len(two["title"]) == 80


# --- a server that is started again ---------------------------------------------------------------


class Served:
    """``streamnorm serve`` as a process of its own."""

    def __init__(self, chats: Path) -> None:
        command = [sys.executable, "-m", "streamnorm", "serve", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--chats", str(chats)], stdout=subprocess.PIPE, text=True, cwd=chats.parent
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[3].rstrip("/")

    def end(self, signal: int) -> None:
        self.process.send_signal(signal)
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[], Served]]:
    made: list[Served] = []

    def start() -> Served:
        made.append(Served(tmp_path / "chats.db"))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


async def log_of(served: Served, after: str = "") -> list[tuple[str, Any]]:
    headers = {"last-event-id": after} if after else {}
    async with Client(base_url=served.url, timeout=30) as client:
        return await heard(client, "GET", "/api/chat/chat-0001/log", headers=headers)


async def test_a_chat_survives_a_server_that_is_ended_and_started_again(
    serve: Callable[[], Served], tmp_path: Path
) -> None:
    served = serve()
    async with Client(base_url=served.url, timeout=30) as client:
        first = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0]))
    served.end(signal.SIGTERM)
    served = serve()
    assert await log_of(served) == first
    assert await log_of(served, first[4][0]) == first[5:]
    async with Client(base_url=served.url, timeout=30) as client:
        second = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[4]))
        chats = (await client.get("/api/chats")).json()
    assert await log_of(served) == first + second
    assert chats == [{"id": "chat-0001", "title": SUGGESTIONS[0]}]
    served.end(signal.SIGTERM)
    async with SQLiteHistory(tmp_path / "chats.db") as history:
        turns = (await history.load("chat-0001")).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "assistant"] * 2


async def test_what_was_asked_can_be_answered_after_the_server_was_killed(
    serve: Callable[[], Served],
) -> None:
    served = serve()
    async with Client(base_url=served.url, timeout=30) as client:
        before = await asked(client, SUGGESTIONS[1])
    served.end(signal.SIGKILL)
    served = serve()
    assert [entry for _, entry in await log_of(served)] == before
    async with Client(base_url=served.url, timeout=30) as client:
        assert "Three old log files are gone." in text_of(await decided(client, True, before))


async def test_a_chat_survives_a_server_that_is_killed_in_the_middle_of_an_answer(
    serve: Callable[[], Served],
) -> None:
    served = serve()
    before: list[tuple[str, Any]] = []
    async with Client(base_url=served.url, timeout=30) as client:
        first = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0]))
        async with client.stream("POST", "/api/chat", json=said(SUGGESTIONS[2])) as answer:
            async for event in EventSource(answer).aiter_sse():
                before.append((event.id, event.json()))
                if event.json()["kind"] == "text_delta":
                    break
            served.end(signal.SIGKILL)
    served = serve()
    told = await log_of(served)
    kept = [entry for entry in told if entry[0]]
    assert kept[: len(first) + len(before)] == first + before
    assert [entry for position, entry in told if not position] == [
        {"kind": "failed", "reason": "truncated", "error": "The answer was cut off.",
         "retryable": False, "code": "internal"},
        {"kind": "end"},
    ]  # fmt: skip
    async with Client(base_url=served.url, timeout=30) as client:
        again = [e for _, e in await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0]))]
    assert kinds(again)[-2:] == ["finish", "end"]


def test_chats_go_to_the_file_that_is_named_or_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert isinstance(_chats("none").log, MemoryLog)
    assert isinstance(_chats(str(tmp_path / "mine" / "talks.db")).log, SQLiteLog)
    assert isinstance(_chats(None).log, SQLiteLog)
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert files == ["mine/talks.db", "state/streamnorm/chats.db"]
    assert (tmp_path / "state/streamnorm/chats.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--chats none"):
        _chats(str(tmp_path / "file" / "talks.db"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert isinstance(_chats(None).log, MemoryLog)
    assert "they are kept in memory" in capsys.readouterr().err


async def test_a_conversation_whose_chat_is_gone_is_forgotten(tmp_path: Path) -> None:
    chats = Chats(tmp_path / "chats.db")
    await chats.open()
    for name in ("kept", "gone", "6:ai-sdk:kept", "5:ag-ui:gone"):
        await chats.history.commit(name, "run", 0, Conversation().user("Hi").turns, create=True)
    await chats.log.create(owner="local", chat="kept")
    await chats.log.create(owner="ai-sdk", chat="kept")
    await chats.aclose()
    chats = Chats(tmp_path / "chats.db")
    await chats.open()
    assert await chats.history.conversations() == ["kept", "6:ai-sdk:kept"]
    async with client_of(app_of(chats=chats)) as client:  # those of others are not listed
        assert (await client.get("/api/chats")).json() == [{"id": "kept", "title": "Hi"}]
    await chats.aclose()


# --- live models and the command ------------------------------------------------------------------


def test_a_live_model_needs_its_key_in_the_environment() -> None:
    models = live_models(["anthropic=m", "ollama=n"], {"ANTHROPIC_API_KEY": "k"}, TOOLS)
    assert sorted(models) == ["anthropic", "ollama"]
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        live_models(["openai_chat=m"], {}, TOOLS)
    for wrong in ("anthropic", "anthropic=", "nobody=m", "=m"):
        with pytest.raises(UsageError, match="PROVIDER=MODEL"):
            live_models([wrong], {}, TOOLS)


def test_a_port_in_use_is_told_with_the_way_out() -> None:
    with bind("127.0.0.1", 0) as bound, pytest.raises(UsageError, match="--port"):
        bind("127.0.0.1", bound.getsockname()[1])
    with pytest.raises(UsageError, match="65535"):
        bind("127.0.0.1", 70000)


def test_a_folder_without_takes_is_told(tmp_path: Any) -> None:
    from streamnorm.errors import RecordingError

    with pytest.raises(RecordingError, match="no takes"):
        _folder(str(tmp_path))


# --- other people's clients -----------------------------------------------------------------------


async def test_the_loop_speaks_the_protocol_of_the_ai_sdk(client: Client) -> None:
    part = {"type": "text", "text": SUGGESTIONS[0]}
    message = {"id": "m1", "role": "user", "parts": [part]}
    body = {"id": "chat-1", "messages": [message], "trigger": "submit-message"}
    answer = await client.post("/api/ai-sdk", json=body)
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.rstrip().endswith("data: [DONE]")
    assert answer.text.count('"tool-output-available"') == 2


async def test_the_loop_speaks_ag_ui(client: Client) -> None:
    said = {"id": "m1", "role": "user", "content": SUGGESTIONS[0]}
    body = {
        "threadId": "t1", "runId": "r1", "protocolVersion": "1.0", "state": {}, "messages": [said],
        "tools": [], "context": [], "forwardedProps": {},
    }  # fmt: skip
    answer = await client.post("/api/ag-ui", json=body)
    assert answer.text.count('"TOOL_CALL_RESULT"') == 2
    assert '"RUN_FINISHED"' in answer.text


async def test_other_clients_are_asked_where_a_tool_needs_consent(client: Client) -> None:
    part = {"type": "text", "text": SUGGESTIONS[1]}
    body = {"id": "chat-2", "messages": [{"id": "m1", "role": "user", "parts": [part]}]}
    answer = await client.post("/api/ai-sdk", json=body)
    assert '"tool-approval-request"' in answer.text
    assert '"tool-output-available"' not in answer.text


async def test_a_live_model_is_asked_with_the_key_and_the_whole_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from streamnorm.providers import anthropic
    from streamnorm.testing import call, say, script, turns

    talk = turns(script(call("get_weather", city="Oslo")), script(say("Three degrees.")))
    with talk.server("anthropic") as server:
        row = msgspec.structs.replace(anthropic.PROVIDER, base=server.url)
        monkeypatch.setattr(anthropic, "PROVIDER", row)
        live = live_models(["anthropic=some-model"], {"ANTHROPIC_API_KEY": "canary"}, TOOLS)
        async with client_of(app_of(live=live)) as client:
            body = {**said("How cold is it?"), "live": True}
            told = [entry for _, entry in await heard(client, "POST", "/api/chat", json=body)]
            config = (await client.get("/api/config")).text
    first, second = server.requests
    assert first.headers["x-api-key"] == "canary"
    assert first.body["model"] == "some-model"
    assert [message["role"] for message in second.body["messages"]] == ["user", "assistant", "user"]
    assert kinds(told)[-2:] == ["finish", "end"]
    assert "canary" not in json.dumps(told) + config


def test_the_command_says_where_the_page_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import argparse

    import uvicorn

    from streamnorm.cli import serve

    parser = argparse.ArgumentParser()
    serve.add(parser.add_subparsers())
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    args = parser.parse_args(["serve", str(RECORDINGS), "--port", "0", "--chats", "none"])
    assert args.run(args) == 0
    assert capsys.readouterr().out.startswith("streamnorm is at http://127.0.0.1:")


async def test_the_agent_programs_are_named_apart_and_their_takes_can_be_opened(
    client: Client,
) -> None:
    config = (await client.get("/api/config")).json()
    assert [row["name"] for row in config["programs"]] == ["claude_code", "codex"]
    assert not {"claude_code", "codex"} & {row["name"] for row in config["providers"]}
    assert config["programs"][1]["reads"].startswith("codex exec --json")
    for name in ("claude_code/partial_messages", "codex/exec"):
        shown = (await client.get(f"/api/takes/{name}")).json()
        assert (shown["provider"], bool(shown["frames"])) == (name.partition("/")[0], True)
        told = [json.loads(event) for frame in shown["frames"] for event in frame["events"]]
        assert told[-1]["kind"] == "finish"
