"""Agent programs, run offline against a scripted server: what they print and save, as takes.

    python -m tools.programs --write          run all of them and write the takes below recordings/
    python -m tools.programs --out DIR        … or what they printed and saved, as it is
    STREAMNORM_AGENTS=DIR                     where the programs are: DIR/node_modules/.bin

In come scenes: what the model answers, one script per request. Out go the lines that the program
printed, those of the sessions that it saved and the requests that it sent, without the names of places.
Rule: nothing leaves the machine. A program runs in a network of its own, in which there is nothing but
the server.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from streamnorm.testing import Script, call, cut, error, say, script, think, turns

__all__ = [
    "AGENTS", "ROOT", "SCENES", "Scene", "alone", "bring_up", "main", "programs_here", "run_scenes",
]  # fmt: skip

ROOT = Path(__file__).resolve().parent.parent
AGENTS = "STREAMNORM_AGENTS"
ASKED = "Say hi with the shell."
TOO_LONG = 400  # characters of a text: what a program tells its model is not ours to keep
MADE = "recorded from {program} {version}, offline, against a scripted server: tools/programs.py"


class Scene(NamedTuple):
    """One run of a program."""

    program: str
    name: str
    proves: str
    answers: tuple[Script, ...]  # of the model, one per request
    saved: dict[str, str] = {}  # takes of what it saved: name -> what that proves
    partial: bool = False  # of Claude Code: with partial messages
    more: tuple[str, ...] = ()  # questions that follow in the same session
    websocket: bool = False  # the scripted one; no take is kept


def _bash(command: str) -> Any:
    return call("Bash", command=command, description="Run it")


def _agent(prompt: str) -> Any:
    return call("Agent", description="say hi", prompt=prompt, subagent_type="general-purpose")


def _command(command: str) -> Any:
    return call("exec_command", cmd=command)


_BOTH = (
    script(think("Two things."), say("Both."), _bash("echo one"), _bash("echo two; exit 3")),
    script(say("One and two.")),
)
_BELOW = (
    script(say("I ask somebody."), _agent("Run echo.")),
    script(say("Running it."), _bash("echo from-below")),
    script(say("It said from-below.")),
    script(say("They said from-below.")),
)
SCENES = (
    Scene("claude_code", "partial_messages", "two calls in partial messages, one fails", _BOTH,
          partial=True),
    Scene("claude_code", "whole_messages", "the same without partial messages: a line per block", _BOTH,
          {"saved_session": "the session that was saved: the same calls and results"}),
    Scene("claude_code", "sub_agent", "an agent below: its lines name the call that it is", _BELOW,
          {"saved_with_sub_agent": "the session that was saved: the agent below is not in it",
           "saved_sub_agent": "the session of the agent below, in a file of its own"}),
    Scene("claude_code", "sub_agent_partial", "partial messages above, whole ones below", _BELOW,
          partial=True),
    Scene("claude_code", "cut_in_arguments", "the answer ends inside the arguments of a call",
          (script(say("Deleting."), _bash("rm -r build"), cut(inside="call")),
           *(script(say("Deleting."), _bash("rm -r build"), cut(inside="call")),) * 12),
          partial=True),
    Scene("claude_code", "refused", "the provider refuses: the program says so in the model's place",
          (script(error("auth", status=401)),) * 12),
    Scene("claude_code", "two_questions", "two questions in one saved session",
          (*_BOTH, script(say("As I said."))),
          {"saved_two_questions": "two questions in one saved session"}, more=("And again?",)),
    Scene("codex", "exec", "a command: a call and what came out of it in one item",
          (script(think("A command."), say("Let me look."), _command("echo hi")),
           script(say("It said hi."))),
          {"rollout": "the session that was saved: items of the Responses wire"}),
    Scene("codex", "exec_parallel", "two commands, one fails",
          (script(say("Both."), _command("echo one"), _command("echo two; exit 3")),
           script(say("One and two."))),
          {"rollout_parallel": "two calls, their outputs by call_id"}),
    Scene("codex", "exec_two_questions", "two questions: two turns of one thread",
          (script(say("Let me look."), _command("echo hi")), script(say("It said hi.")),
           script(say("As I said."))),
          {"rollout_two_questions": "two turns in one rollout"}, more=("And again?",)),
    Scene("codex", "exec_refused", "the provider refuses: the turn failed",
          (script(error("invalid", status=400)),) * 12,
          {"rollout_refused": "an error, and the end of the turn without an answer"}),
    Scene("codex", "exec_websocket", "the same command, and all that was asked for it, on a WebSocket",
          (script(say("Let me look."), _command("echo hi")), script(say("It said hi."))),
          websocket=True),
)  # fmt: skip


# --- the server -----------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, provider: str, answers: tuple[Script, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider, self._lock = provider, threading.Lock()
        self._answers = iter(turns(*answers).scripts)
        self.asked: list[dict[str, Any]] = []  # the bodies of all requests

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, body: dict[str, Any]) -> Script:
        """The next one; a request without tools is the program's own, for a title."""
        with self._lock:
            self.asked.append(body)
            last = script(say("That is all."))
            return next(self._answers, last) if body.get("tools") else script(say("A title."))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if self.headers.get("upgrade"):
            self._send(426, "application/json", b"{}")
        elif path.endswith(("/messages", "/responses")):
            answer = self.server.answer(json.loads(body)).answer(self.server.provider)
            self._send(answer.status, answer.content_type, b"".join(answer.chunks))
        elif path.endswith("/models"):
            self._send(200, "application/json", b'{"data":[],"models":[]}')
        elif path.endswith("/count_tokens"):
            self._send(200, "application/json", b'{"input_tokens":10}')
        else:
            self._send(200 if self.command == "HEAD" else 404, "application/json", b"{}")

    do_GET = do_POST
    do_HEAD = do_POST

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


# --- the programs ---------------------------------------------------------------------------------


class Printed(NamedTuple):
    """What a run of a program gave: take -> its lines."""

    takes: dict[str, list[str]]
    exit: int
    complaint: str


def programs_here() -> Path | None:
    """Where the programs are, if they are there."""
    where = Path(os.environ.get(AGENTS) or "nowhere") / "node_modules" / ".bin"
    return where if all((where / name).exists() for name in ("claude", "codex", "gemini")) else None


def _play(scene: Scene, bin: Path) -> Printed:
    with tempfile.TemporaryDirectory(prefix="streamnorm") as folder:
        home = Path(folder)
        (home / "project").mkdir()
        play, wire = _PLAYERS[scene.program], _WIRES[scene.program]
        if scene.websocket:
            with turns(*scene.answers).websocket(wire) as scripted:
                printed = play(scene, bin, home, scripted.http_url)
            asked = "\n".join(json.dumps(message.body) for message in scripted.messages)
            printed.takes[f"{scene.name}_asked"] = _lines(asked, home, scripted.http_url)
            return printed
        server = _Server(wire, scene.answers)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            printed = play(scene, bin, home, server.url)
        finally:
            server.shutdown()
            server.server_close()
        asked = "\n".join(map(json.dumps, server.asked))
        printed.takes[f"{scene.name}_asked"] = _lines(asked, home, server.url)
        return printed


def _run(command: list[str], home: Path, env: dict[str, str]) -> tuple[str, int, str]:
    ran = subprocess.run(
        command, check=False, cwd=home / "project", stdin=subprocess.DEVNULL, capture_output=True,
        timeout=100,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **env},
    )  # fmt: skip
    return ran.stdout.decode(), ran.returncode, ran.stderr.decode()[-2000:]


def _play_claude(scene: Scene, bin: Path, home: Path, url: str) -> Printed:
    env = {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": str(home / "c"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
    }  # fmt: skip
    options = ["--model", "claude-sonnet-4-5", "--output-format", "stream-json", "--verbose",
               "--allowedTools", "Bash,Agent,Task"]  # fmt: skip
    options += ["--include-partial-messages"] if scene.partial else []
    out, exit, complaint = _run([str(bin / "claude"), "-p", ASKED, *options], home, env)
    for more in scene.more:
        next_out, exit, complaint = _run(
            [str(bin / "claude"), "-p", more, "--continue", *options], home, env
        )
        out += next_out
    takes = {scene.name: _lines(out, home, url)}
    for path in sorted((home / "c").rglob("*.jsonl")):
        below = path.name.startswith("agent-")
        names = [name for name in scene.saved if (name == "saved_sub_agent") is below]
        if below or path.parent.parent.name == "projects":
            takes |= {name: _lines(path.read_text(), home, url) for name in names}
    return Printed(takes, exit, complaint)


def _play_codex(scene: Scene, bin: Path, home: Path, url: str) -> Printed:
    settings = home / "x"
    settings.mkdir()
    (settings / "config.toml").write_text(
        'model = "gpt-5.1-codex"\nmodel_provider = "scripted"\napproval_policy = "never"\n'
        'sandbox_mode = "danger-full-access"\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
        # As at home: a WebSocket is dialled first, and 426 sends it to HTTP.
        "supports_websockets = true\nrequest_max_retries = 0\nstream_max_retries = 0\n"
    )
    env = {"CODEX_HOME": str(settings), "SCRIPTED_KEY": "none"}
    command = [str(bin / "codex"), "exec", "--json", "--skip-git-repo-check"]
    out, exit, complaint = _run([*command, ASKED], home, env)
    for more in scene.more:
        next_out, exit, complaint = _run([*command, "resume", "--last", more], home, env)
        out += next_out
    takes = {scene.name: _lines(out, home, url)}
    for path in sorted(settings.rglob("rollout-*.jsonl")):
        takes |= {name: _lines(path.read_text(), home, url) for name in scene.saved}
    return Printed(takes, exit, complaint)


_Player = Callable[[Scene, Path, Path, str], Printed]
_PLAYERS: dict[str, _Player] = {"claude_code": _play_claude, "codex": _play_codex}
_WIRES = {"claude_code": "anthropic", "codex": "openai_responses"}
_PROGRAMS = {"claude_code": ("claude", "Claude Code"), "codex": ("codex", "Codex")}


def _lines(text: str, home: Path, url: str) -> list[str]:
    """Without the names of places, and without the long texts that a program tells its model."""
    for place, name in ((str(home), "/home/user"), (re.sub(r"[/_.]", "-", str(home)), "-home-user"),
                        (url, "http://127.0.0.1:8000")):  # fmt: skip
        text = text.replace(place, name)
    told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [
        json.dumps(_shortened(line), ensure_ascii=False, separators=(",", ":")) for line in told
    ]


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _shortened(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_shortened(v) for v in value]
    if isinstance(value, str) and len(value) > TOO_LONG:
        return f"… ({len(value)} characters)"
    return value


# --- a network of its own -------------------------------------------------------------------------


def alone() -> list[str]:
    """What a command begins with that is to run in a network of its own."""
    unshare = shutil.which("unshare") or "unshare"
    return [unshare, "-n"] if os.geteuid() == 0 else [unshare, "-rn"]


def bring_up() -> None:
    """In a new network nothing is up, the loopback interface included."""
    flags = struct.pack("16sh22x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, flags)  # SIOCSIFFLAGS


def run_scenes(out: Path, names: list[str], timeout: float = 110) -> None:
    """Play scenes in a network of their own; each take goes to ``out/<program>/<name>.jsonl``."""
    command = [*alone(), sys.executable, "-m", __spec__.name, "--alone", "--out", str(out), *names]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=timeout)


def _write(out: Path, root: Path) -> None:
    bin = programs_here()
    assert bin is not None
    told = {s.name: (s.program, s.proves) for s in SCENES if not s.websocket}
    told |= {name: (s.program, proves) for s in SCENES for name, proves in s.saved.items()}
    for path in sorted(out.glob("*/*.jsonl")):
        if path.stem not in told:
            continue
        program, proves = told[path.stem]
        file, title = _PROGRAMS[program]
        said = subprocess.run([bin / file, "--version"], capture_output=True, check=True).stdout
        version = re.search(r"\d+(\.\d+)+", said.decode())
        made = MADE.format(program=title, version=version.group() if version else "?")
        seed = hashlib.sha256(f"seed:{program}/{path.stem}".encode()).hexdigest()[:32]
        header = {"provider": program, "made": made, "proves": proves, "seed": seed,
                  "container": "chunks"}  # fmt: skip
        lines = [f": streamnorm {json.dumps(header, separators=(',', ':'))}\n"]
        for line in path.read_text().splitlines():
            chunk = json.dumps(line + "\n", ensure_ascii=False)
            lines.append(f"event: text\ndata: {chunk}\n\n")
        (root / program).mkdir(parents=True, exist_ok=True)
        (root / program / f"{path.stem}.sse").write_text("".join(lines))


def main(argv: list[str] | None = None) -> int:
    """0: all ran."""
    parser = argparse.ArgumentParser(prog="python -m tools.programs")
    parser.add_argument("--write", action="store_true", help="write the takes below recordings/")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="SCENE")
    options = parser.parse_args(argv)
    bin = programs_here()
    if bin is None:
        sys.exit(f"{AGENTS} names no folder with the programs")
    if not options.alone:
        with tempfile.TemporaryDirectory() as folder:
            out = options.out or Path(folder)
            run_scenes(out, options.names, timeout=600)
            if options.write:
                _write(out, ROOT / "recordings")
        return 0
    bring_up()
    for scene in SCENES:
        if options.names and scene.name not in options.names:
            continue
        printed = _play(scene, bin)
        print(f"{scene.program}/{scene.name}: exit {printed.exit}, {printed.complaint[:200]!r}")
        for name, lines in printed.takes.items():
            path = options.out / scene.program / f"{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(line + "\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
