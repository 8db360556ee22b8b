"""The real Codex over the WebSocket of the gateway, offline: what it ran and asked, play by play.

    python -m tools.codex_socket [NAME ...]     play, and print what came of it
    STREAMNORM_AGENTS=DIR                       where the program is: DIR/node_modules/.bin

In comes a play: a wire behind the gateway, and the bytes with which it answers. Out goes what the
program did, and how it spoke with the gateway. Rule: nothing leaves the machine (tools/programs.py).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from streamnorm import Normalizer, ToolCall, gateway
from streamnorm.providers import provider_row
from streamnorm.testing import Script, Server, call, cut, error, missing_id, say, script, think
from streamnorm.testing.http import Answer
from tools.programs import AGENTS, ROOT, alone, bring_up, programs_here

__all__ = ["PLAYS", "Outcome", "Play", "play_all"]

RAN = "ran.txt"  # in it each command that runs leaves a word
ASKED = "Run the commands."
PATIENCE = 6  # requests after which the model says that all is done, whatever it was told


def _leaving(word: str) -> Any:
    return call("exec_command", cmd=f"echo {word} >> {RAN}")


_ONE, _BOTH = (_leaving("one"),), (_leaving("one"), _leaving("two"))
SCRIPTS = {
    "two": script(think("Both of them."), say("Both."), *_BOTH),
    "no_id": script(say("Both."), *(step for one in _BOTH for step in (one, missing_id()))),
    "same_id": script(say("Both."), *(one.with_id("call_same") for one in _BOTH)),
    "cut": script(say("Let me."), *_ONE, cut(inside="call")),
    "closed": script(say("Let me."), *_ONE),  # and no end
    "failed": script(say("Let me."), *_ONE, error("server")),
    "refused": script(error("invalid", status=400)),
}
RUNS = {"two": ["one", "two"], "no_id": ["one", "two"], "same_id": ["one", "two"]}


class Play(NamedTuple):
    """A row of those, and the wire behind the gateway."""

    row: str
    wire: str

    @property
    def name(self) -> str:
        return f"{self.row}-{self.wire}"


# Nothing closes a call on Chat but the end of its turn; ids of Responses cannot be left out.
PLAYS = (
    *(Play(row, "openai_responses") for row in SCRIPTS if row != "no_id"),
    *(Play(row, "openai_chat") for row in SCRIPTS if row not in ("closed", "refused")),
    *(Play(row, "anthropic") for row in ("two", "closed")),
)


@dataclass(frozen=True)
class Outcome:
    """What came of a play."""

    ran: list[str]  # the words of the commands that ran
    exit: int
    spoken: list[str]  # how the gateway was spoken with: "websocket" or the method of HTTP
    continued: list[bool]  # of each request on the socket: did it name the answer before?
    asked: list[dict[str, Any]] = field(repr=False)  # the bodies that the upstream was asked with
    rows: list[dict[str, Any]] = field(repr=False)  # the lines of the gateway's log
    output: str = field(default="", repr=False)


def _answer(play: Play, number: int) -> Answer:
    again = number > 0 if play.row in RUNS else number >= PATIENCE
    told: Script = script(say("That is all.")) if again else SCRIPTS[play.row]
    answer = told.answer(play.wire)
    if play.row != "closed" or again:
        return answer
    pipe, chunks = Normalizer(play.wire), list[bytes]()
    for chunk in answer.chunks:  # up to what tells that the call is whole
        chunks.append(chunk)
        if any(isinstance(event, ToolCall) for event in pipe.feed(chunk)):
            break
    return Answer(200, provider_row(play.wire).content_type, chunks)


class _Heard:
    """The application, and what was asked of it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.spoken: list[str] = []
        self.messages: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def heard() -> Any:
            message = await receive()
            if message["type"] == "websocket.receive":
                self.messages.append(json.loads(message["text"]))
            return message

        if scope["type"] != "lifespan" and scope["path"].endswith("/responses"):
            self.spoken.append("websocket" if scope["type"] == "websocket" else scope["method"])
        await self._app(scope, heard, send)


@contextmanager
def _listening(app: Any) -> Iterator[str]:
    import uvicorn

    ready = threading.Event()

    class Listening(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Listening(uvicorn.Config(app, port=0, log_level="error", ws="auto"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(30), "the gateway does not listen"
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def _play(play: Play, bin: Path) -> Outcome:
    rows: list[dict[str, Any]] = []
    with Server(lambda number: _answer(play, number)) as upstream:
        to = f"{play.wire}={upstream.url}"
        heard = _Heard(gateway.app(to, model="some-model", environment={}, tell=rows.append))
        with _listening(heard) as url, tempfile.TemporaryDirectory(prefix="streamnorm") as folder:
            output, exit = _run_codex(bin, Path(folder), url)
            left = Path(folder) / "project" / RAN
            ran = left.read_text().split() if left.exists() else []
        asked = [request.body for request in upstream.requests]
    requests = [m for m in heard.messages if m["type"] == "response.create"]
    continued = [bool(m.get("previous_response_id")) for m in requests]
    return Outcome(sorted(ran), exit, heard.spoken, continued, asked, rows, output[-4000:])


def _run_codex(bin: Path, home: Path, url: str) -> tuple[str, int]:
    settings = home / "x"
    settings.mkdir()
    (home / "project").mkdir()
    (settings / "config.toml").write_text(
        'model = "gpt-5.1-codex"\nmodel_provider = "gateway"\napproval_policy = "never"\n'
        'sandbox_mode = "danger-full-access"\n[model_providers.gateway]\nname = "gateway"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "SOME_KEY"\n'
        "supports_websockets = true\nrequest_max_retries = 0\nstream_max_retries = 1\n"
    )
    ran = subprocess.run(
        [str(bin / "codex"), "exec", "--json", "--skip-git-repo-check", ASKED],
        check=False, cwd=home / "project", stdin=subprocess.DEVNULL, timeout=100,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8",
             "CODEX_HOME": str(settings), "SOME_KEY": "none"},
    )  # fmt: skip
    return ran.stdout.decode(errors="replace"), ran.returncode


def play_all(names: list[str], timeout: float = 900) -> dict[str, Outcome]:
    """Play them in a network in which there is nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.json"
        command = [*alone(), sys.executable, "-m", "tools.codex_socket", "--out", str(out), *names]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=timeout)
        told = json.loads(out.read_text())
    return {name: Outcome(**outcome) for name, outcome in told.items()}


def main(argv: list[str] | None = None) -> int:
    """0: all were played."""
    parser = argparse.ArgumentParser(prog="python -m tools.codex_socket")
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)  # in a network of its own
    parser.add_argument("names", nargs="*", metavar="ROW-WIRE")
    options = parser.parse_args(argv)
    bin = programs_here()
    if bin is None:
        sys.exit(f"{AGENTS} names no folder with the program")
    plays = [play for play in PLAYS if not options.names or play.name in options.names]
    if options.out is None:
        for name, came in play_all([play.name for play in plays]).items():
            print(f"{name:28} {came}")
        return 0
    bring_up()
    told = {play.name: asdict(_play(play, bin)) for play in plays}
    options.out.write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
