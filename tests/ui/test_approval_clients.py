"""Consent, end to end: the clients that browsers use ask, allow, deny, edit and come back after a crash.

A real server in a process of its own, a ``ToolLoop`` behind ``chat_router``; the chat of the AI SDK
(what ``useChat`` uses) and ``HttpAgent`` of AG-UI in Node. What was really paid is read from a file.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("uvicorn")

from tests.conftest import ROOT

NPM = os.environ.get("STREAMNORM_NPM", "")
needs_node = pytest.mark.skipif(
    not (NPM and shutil.which("node") and (Path(NPM) / "node_modules").is_dir()),
    reason="STREAMNORM_NPM names no folder with the npm packages, or there is no node",
)
pytestmark = [needs_node, pytest.mark.parts]
JS = Path(__file__).parent / "js" / "approval.mjs"
LOST = "result unavailable; may or may not have run"


class Server:
    """The server, which can be started again at the same address."""

    def __init__(self, protocol: str, folder: Path) -> None:
        self.protocol, self.folder = protocol, folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.ui.approval_server", str(self.port)]
        self.process = subprocess.Popen(
            [*command, self.protocol, str(self.folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> None:
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def paid(self) -> list[int]:
        file = self.folder / "paid"
        return [int(line) for line in file.read_text().split()] if file.exists() else []


class Page:
    """A person at a page: each command gives what the page shows then."""

    def __init__(self, protocol: str, port: int) -> None:
        self.process = subprocess.Popen(
            ["node", str(JS), protocol, f"http://127.0.0.1:{port}/api/chat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def does(self, **command: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()


@pytest.fixture(params=["ai-sdk", "ag-ui"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(protocol: str, tmp_path: Path) -> Iterator[Server]:
    server = Server(protocol, tmp_path)
    yield server
    if server.process.poll() is None:
        server.kill()


@pytest.fixture
def page(protocol: str, server: Server) -> Iterator[Page]:
    page = Page(protocol, server.port)
    yield page
    page.end()


def output_of(tool: Any) -> str:
    """What a tool gave, as text: AG-UI has nothing else."""
    told = tool.get("output")
    return told if isinstance(told, str) else json.dumps(told, separators=(",", ":"))


def test_it_is_asked_and_runs_when_it_is_allowed(server: Server, page: Page) -> None:
    shown = page.does(say="Pay 5 and tell the balance")
    (asked,) = shown["asked"]
    assert (asked["tool"], asked["input"], asked["reason"]) == ("pay", {"euro": 5}, "5 €")
    assert [t["state"] for t in shown["tools"]][1] == "output-available"  # it needs no consent
    assert (server.paid, shown["errors"]) == ([], [])
    shown = page.does(answer={"approved": True})
    assert (shown["asked"], shown["errors"]) == ([], [])
    assert [output_of(tool) for tool in shown["tools"]] == ['{"paid":5}', "100"]
    assert 'Told: {"paid":5} | 100' in shown["text"]
    assert server.paid == [5]


def test_it_is_not_run_when_it_is_denied_and_the_model_is_told(
    protocol: str, server: Server, page: Page
) -> None:
    page.does(say="Pay 5")
    shown = page.does(answer={"approved": False, "reason": "too much"})
    assert "Told: The user denied this call: too much" in shown["text"]
    assert (server.paid, shown["asked"], shown["errors"]) == ([], [], [])
    (tool,) = shown["tools"]
    if protocol == "ai-sdk":
        assert tool["state"] == "output-denied"
    else:
        assert tool["output"] == "The user denied this call: too much"


def test_it_runs_with_the_arguments_that_a_person_gave(server: Server, page: Page) -> None:
    page.does(say="Pay 5")
    shown = page.does(answer={"approved": True, "editedArgs": {"euro": 3}})
    assert (server.paid, shown["errors"]) == ([3], [])
    assert "It was run with {" in shown["text"]
    assert '{"paid":3}' in shown["text"]
    assert shown["tools"][0]["input"] == {"euro": 5}  # what the model said


def test_arguments_that_do_not_fit_are_asked_about_again(server: Server, page: Page) -> None:
    before = page.does(say="Pay 5")["asked"]
    shown = page.does(answer={"approved": True, "editedArgs": {"euro": "all"}})
    (again,) = shown["asked"]
    assert again["id"] == before[0]["id"]
    assert again["reason"].startswith("the arguments do not fit")
    assert (server.paid, shown["errors"]) == ([], [])
    assert 'Told: {"paid":5}' in page.does(answer={"approved": True})["text"]
    assert server.paid == [5]


def test_several_are_decided_on_one_by_one(server: Server, page: Page) -> None:
    shown = page.does(say="Pay 5 and 7 and tell the balance")
    assert shown["errors"] == []
    assert [a["input"]["euro"] for a in shown["asked"]] == [5, 7]
    shown = page.does(answers=[{"approved": False}, {"approved": True}])
    assert 'Told: The user denied this call. | {"paid":7} | 100' in shown["text"]
    assert (server.paid, shown["asked"], shown["errors"]) == ([7], [], [])
    page.does(say="Pay 8 and 9")
    page.does(answers=[{"approved": True, "editedArgs": {"euro": 2}}, {"approved": True}])
    assert sorted(server.paid) == [2, 7, 9]


def test_a_new_server_and_a_new_page_take_up_what_was_asked(server: Server, page: Page) -> None:
    asked = page.does(say="Pay 5")["asked"]
    server.kill()
    server.start()
    assert page.does(reload=True)["asked"] == asked
    shown = page.does(answer={"approved": True})
    assert 'Told: {"paid":5}' in shown["text"]
    assert (server.paid, shown["errors"]) == ([5], [])


def test_a_server_that_dies_while_it_pays_never_pays_again(server: Server, page: Page) -> None:
    page.does(say="Pay 13")
    page.does(answer={"approved": True})  # the connection is lost
    server.wait()
    assert server.paid == [13]
    server.start()
    # What was told is heard to its end, or there is nothing any more: the chat is free.
    httpx.get(f"http://127.0.0.1:{server.port}/api/chat/c1/stream", timeout=30)
    page.does(reload=True)
    shown = page.does(again=True)  # the same answer, once more
    assert server.paid == [13]
    assert f"Told: {LOST}" in shown["text"]


def test_an_answer_that_is_sent_again_changes_nothing_and_is_no_error(
    protocol: str, server: Server, page: Page
) -> None:
    page.does(say="Pay 5")
    before = page.does(answer={"approved": True})
    if protocol == "ag-ui":  # the AI SDK's chat has nothing more to send
        shown = page.does(again=True)
        assert (shown["errors"], shown["text"]) == ([], before["text"])
    assert server.paid == [5]
    assert 'Told: {"paid":7}' not in before["text"]
    assert page.does(say="Pay 7")["asked"][0]["input"] == {"euro": 7}
    assert 'Told: {"paid":7}' in page.does(answer={"approved": True})["text"]
    assert server.paid == [5, 7]
