"""``streamnorm serve`` without a browser: what its endpoints answer, and what they refuse.

Needs the extra ``ui``; left out where Starlette is missing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from streamnorm import event_to_json
from streamnorm.errors import UsageError
from tests.conftest import RECORDINGS, load, over_takes, run

pytest.importorskip("starlette", reason="the page needs the extra ui: pip install 'streamnorm[ui]'")

from starlette.applications import Starlette

from streamnorm.cli.serve import _bind, _folder
from streamnorm.serve.app import create_app
from streamnorm.serve.dissect import cut, dissect, pipe_for, spans
from streamnorm.serve.live import live_models
from streamnorm.serve.log import Log
from streamnorm.serve.scripted import SUGGESTIONS, TOOLS, Scripted
from streamnorm.serve.takes import LARGEST_UPLOAD, MOST_UPLOADS, Takes

ORIGIN = "http://127.0.0.1:8765"
Client = httpx.AsyncClient


async def at_once(seconds: float) -> None:
    await asyncio.sleep(0)


def app_of(**options: Any) -> Starlette:
    return create_app(Takes(RECORDINGS), **{"scripted": Scripted(wait=at_once), **options})


def client_of(app: Starlette) -> Client:
    return Client(transport=httpx.ASGITransport(app), base_url=ORIGIN)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with client_of(app_of()) as client:
        yield client


# --- takes ----------------------------------------------------------------------------------------


@over_takes()
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
    for at in range(0, len(wire) + 1, 7):
        told = cut(take, at)
        heard = [e for f in frames[: told["frames"]] for e in f["events"]] + told["tail"]
        expected = run(take.provider or "", [wire[:at]], seed=take.seed)
        assert heard == [event_to_json(e).decode() for e in expected]


def test_frames_end_where_the_wire_ends_them() -> None:
    assert spans(b"data: 1\r\n\r\ndata: 2\r\n\r\n", "gemini") == [11, 22]
    assert spans(b'{"a":1}\n{"b":2}', "ollama") == [8, 15]
    assert spans(b"", "openai_chat") == []


async def test_the_list_names_every_take_and_each_can_be_opened(client: Client) -> None:
    rows = (await client.get("/api/takes")).json()
    assert len(rows) == len(list(RECORDINGS.glob("*/*.sse")))
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
    assert "too large" in too_large.json()["error"]
    takes = Takes(RECORDINGS)
    names = [takes.keep(b"data: 1\n\n") for _ in range(MOST_UPLOADS + 1)]
    assert takes.get(names[0]) is None
    assert takes.get(names[-1]) is not None


async def test_a_take_with_a_bad_header_says_so(client: Client) -> None:
    answer = await client.post("/api/uploads", content=b": streamnorm nonsense\n")
    assert answer.status_code == 400
    assert "header" in answer.json()["error"]


@pytest.mark.parametrize("at", ["", "-1", "x", "1e3", "9" * 40, "٣"])
async def test_a_cut_is_a_number_of_bytes(client: Client, at: str) -> None:
    answer = await client.get("/api/cut/anthropic/parallel_calls", params={"at": at})
    assert answer.status_code == 400


async def test_an_unknown_provider_is_refused_with_the_names_there_are(client: Client) -> None:
    answer = await client.get("/api/takes/anthropic/parallel_calls", params={"provider": "x"})
    assert answer.status_code == 400
    assert "anthropic" in answer.json()["error"]


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


async def heard(client: Client, method: str, path: str, **more: Any) -> list[tuple[int, Any]]:
    """The numbered entries of an answer, to its end."""
    async with client.stream(method, path, **more) as answer:
        text = (await answer.aread()).decode()
        assert answer.status_code == 200, text
    blocks = [dict(line.split(": ", 1) for line in b.split("\n")) for b in text.split("\n\n") if b]
    return [(int(b["id"]), json.loads(b["data"])) for b in blocks if "data" in b]


def said(text: str, provider: str = "anthropic", chat: str = "chat-0001") -> dict[str, Any]:
    return {"id": chat, "text": text, "provider": provider}


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "gemini", "bedrock"])
async def test_a_run_calls_tools_and_answers_on_every_wire(client: Client, provider: str) -> None:
    entries = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0], provider))
    assert [number for number, _ in entries] == list(range(1, len(entries) + 1))
    told = [entry for _, entry in entries]
    results = [e["output"]["city"] for e in told if e["kind"] == "client_tool_result"]
    assert results == ["Oslo", "Lima"]
    text = "".join(e["text"] for e in told if e["kind"] == "text_delta")
    assert "Oslo: 3 °C and snow; Lima: 19 °C and fog" in text
    assert told[-1] == {"kind": "end", "reason": "done", "error": ""}


async def test_a_reader_hears_exactly_what_follows_the_last_number_it_has(client: Client) -> None:
    entries = await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[2]))
    for after in range(len(entries)):
        header = {"last-event-id": str(after)}
        again = await heard(client, "GET", "/api/chat/chat-0001/stream", headers=header)
        assert again == entries[after:]
    idle = await client.get(f"/api/chat/chat-0001/stream?after={len(entries)}")
    assert idle.status_code == 204
    assert (await client.get("/api/chat/nobody-knows/stream")).status_code == 204


async def test_a_broken_call_is_told_as_broken_and_never_run(client: Client) -> None:
    told = [e for _, e in await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[3]))]
    kinds = [e["kind"] for e in told]
    assert "broken_tool_call" in kinds
    assert "client_tool_result" not in kinds
    assert told[-1]["reason"] == "failed"
    again = [e for _, e in await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0]))]
    assert again[-1]["reason"] == "done"


async def reach(client: Client, kind: str, act: Callable[[Any], Awaitable[Any]]) -> list[Any]:
    """Start the run that asks for approval; act when that entry is there; everything it told."""
    begun = asyncio.create_task(heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[1])))
    log = (await _chat(client)).log
    async for _, line in log.read(0):
        if (entry := json.loads(line))["kind"] == kind:
            await act(entry)
            break
    return [entry for _, entry in await begun]


async def _chat(client: Client) -> Any:
    transport: Any = client._transport
    chats = transport.app.state.chats
    while chats.get("chat-0001") is None:  # noqa: ASYNC110  (nothing else tells of a request)
        await asyncio.sleep(0)
    return chats.get("chat-0001")


@pytest.mark.parametrize(("approved", "says"), [(True, "gone"), (False, "nothing was deleted")])
async def test_a_call_that_needs_it_runs_only_when_a_person_agreed(
    client: Client, approved: bool, says: str
) -> None:
    async def answer(entry: Any) -> None:
        body = {"call": entry["id"], "approved": approved}
        first = await client.post("/api/chat/chat-0001/approval", json=body)
        second = await client.post("/api/chat/chat-0001/approval", json=body)
        assert (first.json(), second.json()) == ({"taken": True}, {"taken": False})

    told = await reach(client, "approval", answer)
    result = next(e for e in told if e["kind"] == "client_tool_result")
    assert result["is_error"] is not approved
    assert says in "".join(e["text"] for e in told if e["kind"] == "text_delta")


async def test_stop_ends_a_run_that_waits_and_the_conversation_goes_on(client: Client) -> None:
    async def stop(entry: Any) -> None:
        stopped = (await client.post("/api/chat/chat-0001/stop")).json()
        again = (await client.post("/api/chat/chat-0001/stop")).json()
        assert (stopped, again) == ({"stopped": True}, {"stopped": False})

    told = await reach(client, "approval", stop)
    assert told[-1]["reason"] == "stopped"
    assert {"kind": "approval_answer", "approved": False}.items() <= told[-2].items()
    after = [e for _, e in await heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[0]))]
    assert after[-1]["reason"] == "done"


async def test_stop_in_mid_stream_tells_what_it_breaks() -> None:
    gate = asyncio.Event()

    async def hold(seconds: float) -> None:
        if gate.is_set():
            await asyncio.Event().wait()  # for ever: only stop ends it
        gate.set()

    async with client_of(app_of(scripted=Scripted(wait=hold))) as client:
        reading = asyncio.create_task(heard(client, "POST", "/api/chat", json=said(SUGGESTIONS[2])))
        await gate.wait()
        busy = await client.post("/api/chat", json=said("more"))
        await client.post("/api/chat/chat-0001/stop")
        told = [entry for _, entry in await reading]
    assert busy.status_code == 409
    assert told[-2]["kind"] == "failed"
    assert told[-2]["reason"] == "cancelled"
    assert told[-1]["reason"] == "stopped"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "JSON"), (b"[]", "object"), (b'"x"', "object"), (b"{}", "id"),
        (b'{"id":"short"}', "id"), (b'{"id":"long-enough"}', "text"),
        (b'{"id":"long-enough","text":"hi"}', "provider"),
        (b'{"id":"long-enough","text":"hi","provider":"none"}', "provider"),
        (b'{"id":"long-enough","text":"hi","provider":"anthropic","live":true}', "--live"),
        (b"[" * 60_000, "JSON"),
    ],
)  # fmt: skip
async def test_a_message_that_is_wrong_is_refused_in_one_sentence(
    client: Client, body: bytes, word: str
) -> None:
    answer = await client.post("/api/chat", content=body)
    assert answer.status_code == 400
    assert word in answer.json()["error"]


async def test_an_unknown_conversation_cannot_be_stopped(client: Client) -> None:
    assert (await client.post("/api/chat/nobody-knows/stop")).status_code == 404
    body = {"call": "x", "approved": True}
    assert (await client.post("/api/chat/nobody-knows/approval", json=body)).status_code == 404
    assert (await client.post("/api/chat/nobody-knows/approval", json={})).status_code == 400


async def test_several_readers_hear_the_same_and_a_late_one_everything() -> None:
    log = Log()
    log.begin()
    early = asyncio.create_task(_all(log, 0))
    for n in range(5):
        log.append(str(n))
        await asyncio.sleep(0)
    late = asyncio.create_task(_all(log, 3))
    await asyncio.sleep(0)
    log.append("5")
    log.end()
    assert await early == [(n + 1, str(n)) for n in range(6)]
    assert await late == [(4, "3"), (5, "4"), (6, "5")]


async def _all(log: Log, after: int) -> list[tuple[int, str]]:
    return [entry async for entry in log.read(after)]


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
    with _bind("127.0.0.1", 0) as bound, pytest.raises(UsageError, match="--port"):
        _bind("127.0.0.1", bound.getsockname()[1])
    with pytest.raises(UsageError, match="65535"):
        _bind("127.0.0.1", 70000)


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


async def test_a_tool_that_needs_consent_is_refused_where_nobody_can_be_asked(
    client: Client,
) -> None:
    part = {"type": "text", "text": SUGGESTIONS[1]}
    body = {"id": "chat-2", "messages": [{"id": "m1", "role": "user", "parts": [part]}]}
    answer = await client.post("/api/ai-sdk", json=body)
    assert "nobody can be asked here" in answer.text


async def test_a_live_model_is_asked_with_the_key_and_the_whole_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from streamnorm import connecting
    from streamnorm.testing import call, say, script, turns

    talk = turns(script(call("get_weather", city="Oslo")), script(say("Three degrees.")))
    with talk.server("anthropic") as server:
        monkeypatch.setitem(connecting.ADDRESSES, "anthropic", (f"{server.url}/v1/messages", {}))
        live = live_models(["anthropic=some-model"], {"ANTHROPIC_API_KEY": "canary"}, TOOLS)
        async with client_of(app_of(live=live)) as client:
            body = {**said("How cold is it?"), "live": True}
            told = [entry for _, entry in await heard(client, "POST", "/api/chat", json=body)]
            config = (await client.get("/api/config")).text
    first, second = server.requests
    assert first.headers["x-api-key"] == "canary"
    assert first.body["model"] == "some-model"
    assert [message["role"] for message in second.body["messages"]] == ["user", "assistant", "user"]
    assert told[-1]["reason"] == "done"
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
    args = parser.parse_args(["serve", str(RECORDINGS), "--port", "0"])
    assert args.run(args) == 0
    assert capsys.readouterr().out.startswith("streamnorm is at http://127.0.0.1:")
