"""``streamnorm watch`` at a real ``streamnorm serve``: what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from streamnorm.cli import main
from streamnorm.ui.log import MemoryLog

pytest.importorskip("uvicorn", reason="the page needs the extra ui: pip install 'streamnorm[ui]'")

from tests.page.browser.conftest import Gate, serving

WEATHER, BREAK = "What is the weather in Oslo and Lima?", "Break the stream inside a call."


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "streamnorm", "serve", "--port", "0", "--chats", "none"]
    folder = tmp_path_factory.mktemp("page")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    assert process.stdout is not None
    yield process.stdout.readline().split()[3].rstrip("/")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
    process.stdout.close()


def ask(page: str, chat: str, text: str, wire: str = "anthropic") -> None:
    body = {"id": chat, "messages": [{"role": "user", "text": text}], "provider": wire}
    httpx.post(f"{page}/api/chat", json=body, timeout=60).raise_for_status()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_is_one_event_per_line(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask(page, "json", WEATHER)
    assert main(["watch", f"{page}/api/chat/json/log", "--json"]) == 0
    told = lines(capsys.readouterr().out)
    assert told[0] == {"kind": "said", "text": WEATHER, "to": "anthropic"}
    calls = [event["arguments"] for event in told if event["kind"] == "tool_call"]
    assert calls == [{"city": "Oslo"}, {"city": "Lima"}]
    assert told[-1] == {"kind": "finish", "reason": "stop", "raw_reason": "end_turn"}


def test_people_see_what_was_said_called_and_given(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(page, "view", WEATHER)
    assert main(["watch", f"{page}/api/chat/view/log", "--no-color"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"> {WEATHER}"
    assert '● get_weather  {"city": "Oslo"}' in shown
    assert '↳ result of get_weather: {"city": "Oslo", "celsius": 3, "sky": "snow"}' in shown
    assert "  Here is what I found. Oslo: 3 °C and snow; Lima: 19 °C and fog." in shown


def test_a_broken_call_is_exit_code_3(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask(page, "broken", BREAK)
    assert main(["watch", f"{page}/api/chat/broken/log", "--json"]) == 3
    kinds = [event["kind"] for event in lines(capsys.readouterr().out)]
    assert kinds[-3:] == ["broken_tool_call", "usage", "failed"]


def test_other_protocols_are_told_part_by_part(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    part = {"type": "text", "text": WEATHER}
    body = {"id": "parts", "messages": [{"id": "m", "role": "user", "parts": [part]}]}
    httpx.post(f"{page}/api/ai-sdk", json=body, timeout=60).raise_for_status()
    assert main(["watch", f"{page}/api/ai-sdk/parts/log", "--json"]) == 0
    types = [part["type"] for part in lines(capsys.readouterr().out)]
    assert types[0] == "start"
    assert types[-1] == "finish"
    assert main(["watch", f"{page}/api/ai-sdk/parts/log", "--no-color"]) == 0
    assert capsys.readouterr().out.startswith('. {"type":"start","messageId":"msg_')


def test_from_goes_on_after_a_position(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask(page, "from", WEATHER)
    log = httpx.get(f"{page}/api/chat/from/log").text
    positions = [line[4:] for line in log.splitlines() if line.startswith("id: ")]
    assert main(["watch", f"{page}/api/chat/from/log", "--json"]) == 0
    whole = lines(capsys.readouterr().out)
    again = main(["watch", f"{page}/api/chat/from/log", "--json", "--from", positions[3]])
    said = capsys.readouterr()
    assert (again, said.err) == (0, "")
    assert lines(said.out) == whole[4:]


def test_where_nothing_is_told_it_says_so(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", f"{page}/api/chat/nobody/stream"]) == 0
    assert capsys.readouterr().err == "streamnorm: nothing is told there now\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["127.0.0.1/x"], "an address begins with http:// or https://"),
        (["http://127.0.0.1:1/api/chat/c/stream"], "cannot connect"),
        (["{page}/nowhere"], "the server answered 404"),
        (
            ["{page}/api/chat/c/log", "--from", "never-was.1"],
            "410: there is no such stream any more",
        ),
        (["{page}/api/takes"], "this is no stream of events"),
        (["{page}/api/chat/c/log", "--header", "no colon"], "write 'NAME: VALUE'"),
        (["{page}/api/chat/c/log", "--header", "Host: evil.example"], "the server answered 403"),
    ],
)
def test_what_cannot_be_watched_is_exit_code_2(
    page: str, more: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", *(word.format(page=page) for word in more)]) == 2
    assert says in capsys.readouterr().err


def kinds_of(events: Iterable[str]) -> list[str]:
    """The kinds of a log, as it is sent."""
    return [json.loads(line[6:])["kind"] for line in events if line.startswith("data: ")]


def test_an_interrupted_watch_says_where_to_go_on() -> None:
    """The model is held in mid-story, so it is in the middle whenever it is interrupted."""
    gate = Gate()
    gate.hold_after(15)
    body = {
        "id": "wait", "messages": [{"role": "user", "text": "Tell me a long story."}],
        "provider": "anthropic",
    }  # fmt: skip
    with contextmanager(serving)(gate) as served:
        url = f"{served.url}api/chat"
        with httpx.stream("POST", url, json=body, timeout=60) as answer:
            assert any('"kind":"text_delta"' in line for line in answer.iter_lines())
        command = [sys.executable, "-m", "streamnorm", "watch", f"{url}/wait/stream", "--json"]
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watch.stdout is not None
        told = []
        while not told or '"kind":"text_delta"' not in told[-1]:
            told.append(watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        more, said = watch.communicate(timeout=20)
        assert watch.returncode == 130
        position = said.split("--from ")[1].split()[0]
        httpx.post(f"{url}/wait/stop").raise_for_status()
        whole = httpx.get(f"{url}/wait/log", timeout=60).text
        rest = httpx.get(f"{url}/wait/log", headers={"last-event-id": position}, timeout=60).text
    heard = [json.loads(line)["kind"] for line in [*told, *more.splitlines()]]
    assert heard + kinds_of(rest.splitlines()) == kinds_of(whole.splitlines())
    assert kinds_of(rest.splitlines())[-2:] == ["failed", "end"]


def test_a_position_never_looks_like_an_option() -> None:
    ids = {asyncio.run(MemoryLog().create(owner="o")).stream for _ in range(200)}
    assert all(id.isalnum() for id in ids)
