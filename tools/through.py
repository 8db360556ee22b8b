"""The real Claude Code, Codex and Gemini CLI through the gateway, offline: what runs, row by row.

    python -m tools.through --out FILE [NAME ...]     play rows, write what came of them as JSON
    python -m tools.through --write [NAME ...]        play all of them: the tables of docs/gateway.md
    STREAMNORM_AGENTS=DIR                             where the programs are: DIR/node_modules/.bin

In comes a row: what an upstream answers, on each of six wires. Out goes what the program did: the
commands that it ran, what it asked next, whether it said that something went wrong. Rule: nothing
leaves the machine (tools/programs.py); one gateway serves all rows, and the model's name tells which.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from streamnorm import Normalizer, ToolCall, ToolCallStart, read_request
from streamnorm.conversation import Reasoning, Turn
from streamnorm.providers import provider_row
from streamnorm.testing import (
    Script,
    call,
    chunked,
    error,
    finish,
    interleave,
    keep_alives,
    missing_id,
    say,
    script,
    think,
    turns,
    wrong_index,
)
from streamnorm.tools import File, ToolResult
from tools.programs import AGENTS, ROOT, alone, bring_up, programs_here

__all__ = [
    "PAGE",
    "PLAYS",
    "ROWS",
    "SAMPLES",
    "TOO_LATE",
    "Outcome",
    "Play",
    "is_right",
    "play_all",
]

PAGE = ROOT / "docs" / "gateway.md"
TOO_LATE = "\nthe program did not end in time"
MARKS = re.compile(r"(<!-- made by tools.through: rows -->\n)(.*?)(<!-- end -->)", re.S)
TITLES = {"claude_code": "Claude Code", "codex": "Codex", "gemini_cli": "Gemini CLI"}
HOMES = {"claude_code": "anthropic", "codex": "openai_responses", "gemini_cli": "gemini"}
WIRES = ("anthropic", "openai_responses", "openai_chat", "gemini", "ollama", "bedrock")
RAN = "ran.txt"  # in it each command that runs leaves a word
ASKED = "Run the commands."
PICTURE = "dot.png"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
PATIENCE = 6  # requests after which the model says that all is done, whatever it was told
_KNOWN = "gpt-5.5"  # to this model, or one whose name begins so, Codex gives apply_patch
# Tools that need no arguments, and those that run a command: with the argument that has it.
_BARE = {"claude_code": "TaskList", "codex": "get_goal", "gemini_cli": "list_background_processes"}
_SHELLS = {
    "claude_code": ("Bash", "command"), "codex": ("exec_command", "cmd"),
    "gemini_cli": ("run_shell_command", "command"),
}  # fmt: skip
# Those that look at a picture, with the argument that says where it is.
_LOOKS = {
    "claude_code": ("Read", "file_path", f"/proc/self/cwd/{PICTURE}"),
    "codex": ("view_image", "path", PICTURE), "gemini_cli": ("read_file", "file_path", PICTURE),
}  # fmt: skip
_OBJECTS = ("gemini", "ollama")  # wires that tell a call in one payload


# --- what an upstream answers ---------------------------------------------------------------------


class Answer(NamedTuple):
    """The chunks of one answer, and whether the connection breaks behind them; or a refusal."""

    chunks: list[bytes]
    breaks: bool = False
    status: int = 200


Answering = Callable[[str, str], Answer]  # program, wire


def _leaving(program: str, word: str) -> Any:
    """A command that leaves a word in the file, and says it."""
    command = f"echo {word} | tee -a {RAN}"
    name, field = _SHELLS[program]
    described = {"description": "Leave a word"} if program != "codex" else {}
    return call(name, **{field: command, **described})


def _cut_text(program: str, word: str) -> str:
    """Arguments that end in the middle of the command, where the command still means something."""
    return _leaving(program, word).written().partition(word)[0] + word


def _told(made: Script, provider: str) -> Answer:
    return Answer(made.chunks(provider), made.breaks)


def _until(provider: str, chunks: list[bytes], kind: type) -> int:
    """How many chunks it takes until an event of that kind is heard."""
    pipe = Normalizer(provider)
    for number, chunk in enumerate(chunks, 1):
        if any(isinstance(event, kind) for event in pipe.feed(chunk)):
            return number
    return len(chunks)


def _one(program: str, provider: str) -> list[bytes]:
    return script(say("Let me."), _leaving(program, "one")).chunks(provider)


def _whole(program: str, provider: str) -> Answer:
    return Answer(_one(program, provider))


def _inside(program: str, provider: str, *, breaks: bool = False) -> Answer:
    chunks = _one(program, provider)
    started, closed = (_until(provider, chunks, kind) for kind in (ToolCallStart, ToolCall))
    if started == closed:
        half = chunks[closed - 1]
        return Answer([*chunks[: closed - 1], half[: len(half) // 2]], breaks)
    return Answer(chunks[: (started + closed) // 2], breaks)


def _broken(program: str, provider: str) -> Answer:
    return _inside(program, provider, breaks=True)


def _complete(program: str, provider: str) -> Answer:
    chunks = _one(program, provider)
    return Answer(chunks[: _until(provider, chunks, ToolCall) - 1])


def _closed(program: str, provider: str) -> Answer:
    chunks = _one(program, provider)
    return Answer(chunks[: _until(provider, chunks, ToolCall)])


def _started(program: str, provider: str) -> Answer:
    """A tool that needs no arguments, and none came."""
    name = _BARE[program]
    chunks = script(say("Let me."), call(name)).chunks(provider)
    at = next(at for at, chunk in enumerate(chunks) if name.encode() in chunk)
    if provider in _OBJECTS:
        chunks[at] = chunks[at].partition(name.encode())[0] + f'{name}"'.encode()
    return Answer(chunks[: at + 1])


def _length(program: str, provider: str) -> Answer:
    """Where a call is one payload it is whole, and the turn is not."""
    said = _leaving(program, "one")
    said = said if provider in _OBJECTS else said.with_raw(_cut_text(program, "one"))
    return _told(script(say("Let me."), said, finish("length")), provider)


def _cut_arguments(program: str, provider: str) -> Answer:
    cut = _leaving(program, "one").with_raw(_cut_text(program, "one"))
    return _told(script(say("Let me."), cut, finish("tool_calls")), provider)


def _failed(program: str, provider: str) -> Answer:
    return _told(script(say("Let me."), _leaving(program, "one"), error("server")), provider)


def _said(*words: str, faults: Iterable[Any] = ()) -> Answering:
    """A call for each word."""

    def made(program: str, provider: str) -> Answer:
        calls = (_leaving(program, word) for word in words)
        return _told(script(say("Now."), *calls, *faults), provider)

    return made


def _one_index(program: str, provider: str) -> Answer:
    one, two = _leaving(program, "one"), _leaving(program, "two")
    if provider == "openai_chat":
        return _told(script(say("Both."), one, wrong_index(0), two, wrong_index(0)), provider)
    chunks = script(say("Both."), one, two).chunks(provider)
    return Answer([_remade(provider, chunk, _SECOND, rb"\g<1>1") for chunk in chunks])


def _no_id(program: str, provider: str) -> Answer:
    one, two = _leaving(program, "one"), _leaving(program, "two")
    return _told(script(say("Both."), one, missing_id(), two, missing_id()), provider)


def _same_id(program: str, provider: str) -> Answer:
    one, two = (_leaving(program, word).with_id("call_same") for word in ("one", "two"))
    return _told(script(say("Both."), one, two), provider)


def _odd_word(program: str, provider: str) -> Answer:
    """The word for the end is none that stands for a normal one."""
    end = (
        "length" if provider == "openai_responses" else "tool_calls"
    )  # there only others have words
    chunks = script(say("Let me."), _leaving(program, "one"), finish(end)).chunks(provider)
    return Answer([_remade(provider, chunk, _WORD, rb'\1"network_error"') for chunk in chunks])


_SECOND = re.compile(rb'("(?:index|contentBlockIndex|output_index)":\s?)2\b')
_LOOKING = tuple(name for name, *_ in _LOOKS.values())
_OUTPUT = re.compile(r"^Output: (\S+)$", re.M)  # as one of the programs tells its model
_WORD = re.compile(rb'("(?:(?:finish|stop|done)_?[rR]eason|reason)":\s?)"[A-Za-z_]+"')


def _remade(provider: str, chunk: bytes, what: re.Pattern[bytes], by: bytes) -> bytes:
    """A chunk with something else in it; frames of Bedrock carry their length and checksums."""
    if provider != "bedrock":
        return what.sub(by, chunk)
    size = struct.unpack(">II", chunk[:8])[1]
    headers, body = chunk[12 : 12 + size], what.sub(by, chunk[12 + size : -4])
    prelude = struct.pack(">II", len(body) + size + 16, size)
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return frame + struct.pack(">I", zlib.crc32(frame))


def _picture(program: str, provider: str) -> Answer:
    name, field, place = _LOOKS[program]
    looking = call(name, **{field: place})
    return _told(script(say("Let me see."), looking, _leaving(program, "one")), provider)


def _again(word: str, number: int) -> Answering:
    """A call under an id that each of these uses, after reasoning of its own."""

    def made(program: str, provider: str) -> Answer:
        said = script(think(f"I think of {word}."), _leaving(program, word).with_id("call_0"))
        return _told(turns(*[said] * number).scripts[-1], provider)

    return made


def _between(program: str, provider: str) -> Answer:
    one, two = _leaving(program, "one"), _leaving(program, "two")
    return _told(script(think("Hm."), say("First."), one, say("Then."), two, say("So.")), provider)


def _bare(program: str, provider: str) -> Answer:
    return _told(script(say("Let me."), call(_BARE[program])), provider)


def _patch(program: str, provider: str) -> Answer:
    """A tool that takes a text; where a wire has no such thing, its only argument."""
    text = f"*** Begin Patch\n*** Add File: {RAN}\n+one\n*** End Patch\n"
    if provider != HOMES[program]:
        return _told(script(say("Let me."), call("apply_patch", input=text)), provider)
    chunks = script(say("Let me."), call("apply_patch").with_raw(text)).chunks(provider)
    swap = {b"function_call_arguments": b"custom_tool_call_input", b'"arguments"': b'"input"',
            b'"function_call"': b'"custom_tool_call"'}  # fmt: skip
    for old, new in swap.items():
        chunks = [chunk.replace(old, new) for chunk in chunks]
    return Answer(chunks)


def _refusing(code: str, status: int) -> Answering:
    def made(program: str, provider: str) -> Answer:
        answer = script(error(code, status=status)).answer(provider)
        return Answer(list(answer.chunks), status=status)

    return made


class Row(NamedTuple):
    """What an upstream answers, turn by turn, and the words of the commands that then run."""

    title: str
    answers: tuple[Answering, ...]
    runs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # wires on which there is no such thing
    program: str = ""  # the only one that can do so


BOTH = ("one", "two")
MANY = tuple(f"w{n}" for n in range(30))
ROWS: Mapping[str, Row] = {
    "whole": Row("whole", (_whole,), ("one",)),
    "cut": Row("cut inside the arguments, clean close", (_inside,)),
    "broken": Row("the same, connection broken", (_broken,)),
    "complete": Row("arguments complete, no finish", (_complete,), without=_OBJECTS),
    "closed": Row("block / item closed, no finish", (_closed,), without=("openai_chat",)),
    "started": Row("cut before the arguments, tool without required ones", (_started,)),
    "length": Row("`length` inside the arguments", (_length,)),
    "cut_arguments": Row("finish `tool_calls`, arguments cut", (_cut_arguments,), without=_OBJECTS),
    "failed": Row("error after the call", (_failed,)),
    "parallel": Row("parallel, one after the other", (_said(*BOTH),), BOTH),
    "interleaved": Row(
        "parallel, interleaved", (_said(*BOTH, faults=[interleave()]),), BOTH, without=_OBJECTS
    ),
    "one_chunk": Row("both calls in one chunk", (_said(*BOTH, faults=[chunked(1 << 20)]),), BOTH),
    "one_index": Row("two calls on one index", (_one_index,), BOTH, without=_OBJECTS),
    "no_id": Row("no id", (_no_id,), BOTH),
    "same_id": Row("duplicate id", (_same_id,), BOTH),
    "odd_word": Row("`network_error`, arguments whole", (_odd_word,)),
    "picture": Row("a picture in a result", (_picture,), ("one",)),
    "again": Row(
        "two turns, reasoning in each, both under one id",
        (_again("one", 1), _again("two", 2)),
        BOTH,
    ),
    "between": Row("reasoning, text before, between and after calls", (_between,), BOTH),
    "many": Row("30 calls at once", (_said(*MANY),), MANY),
    "unicode": Row("words in other letters", (_said("naïve", "日本🎉"),), ("naïve", "日本🎉")),
    "alive": Row("keep-alives everywhere", (_said(*BOTH, faults=[keep_alives()]),), BOTH),
    "bare": Row("a call without arguments", (_bare,), ("bare",)),
    "patch": Row("a tool that takes a text", (_patch,), ("one",), program="codex"),
    "refused_429": Row("refuses with 429", (_refusing("rate_limit", 429),)),
    "refused_529": Row("refuses with 529", (_refusing("overloaded", 529),)),
    "refused_400": Row("refuses with 400", (_refusing("invalid", 400),)),
    "refused_401": Row("refuses with 401", (_refusing("auth", 401),)),
}


# --- the upstream ---------------------------------------------------------------------------------


class _Upstream(ThreadingHTTPServer):
    """Answers every request below ``/<play>`` as the row of that play says; then all is done."""

    daemon_threads = True

    def __init__(self, plays: Iterable[Play]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plays = {play.name: play for play in plays}
        self.asked: dict[str, list[dict[str, Any]]] = {name: [] for name in self.plays}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, name: str, body: dict[str, Any]) -> Answer:
        """A request without tools is the program's own, for a title. A row answers as often as there
        are results; who gets none is told the same again."""
        play = self.plays[name]
        if not (body.get("tools") or body.get("toolConfig")):
            return _told(script(say("A title.")), play.upstream)
        with self._lock:
            self.asked[name].append(body)
            patient = len(self.asked[name]) < PATIENCE
        answers, at = ROWS[play.row].answers, play.rounds(body)
        if at >= len(answers) or not patient:
            return _told(script(say("That is all.")), play.upstream)
        return answers[at](play.program, play.upstream)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Upstream

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        name = self.path.split("/")[1]
        answer = self.server.answer(name, body)
        self.send_response(answer.status)
        row = provider_row(self.server.plays[name].upstream)
        kind = row.content_type if answer.status == 200 else "application/json"
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in filter(None, answer.chunks):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        if answer.breaks:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


# --- plays ----------------------------------------------------------------------------------------


class Play(NamedTuple):
    """One program, one row, one wire behind the gateway."""

    program: str
    row: str
    upstream: str

    @property
    def name(self) -> str:
        return f"{self.program}-{self.row}-{self.upstream}"

    @property
    def model(self) -> str:
        """As the program calls it: the gateway finds the upstream in its name, or by a rule."""
        return f"{_KNOWN}-{self.name}" if self.program == "codex" else f"{self.name}/some-model"

    def rounds(self, body: dict[str, Any]) -> int:
        """How many turns of a request have results."""
        return sum(bool(turn.results) for turn in self._turns(body))

    def returned(self, body: dict[str, Any]) -> list[str]:
        """The words of the calls in a request that stand there with their own results."""
        turns = self._turns(body)
        if any(len({r.call.id for r in turn.results}) < len(turn.results) for turn in turns):
            return ["two results have one id"]
        return [self._word(result) for turn in turns for result in turn.results]

    def _word(self, result: ToolResult) -> str:
        arguments, name = result.call.arguments, result.call.name
        if name == "apply_patch":
            return "one" if "Success" in result.text else result.text
        if name in (*_BARE.values(), *_LOOKING):
            return name
        command = str(arguments.get(_SHELLS[self.program][1]))
        found = re.fullmatch(rf"echo (\w+|\S+) \| tee -a {RAN}", command)
        said = (_OUTPUT.findall(result.text) or result.text.split())[-1:]
        return found[1] if found and said == [found[1]] else f"{command} gave {said}"

    def pictures(self, body: dict[str, Any]) -> int:
        """How many there are in a request, in a result or beside it."""
        turns = self._turns(body)
        shown = [part for turn in turns for part in turn.parts if isinstance(part, File)]
        return len(shown) + sum(len(result.media) for turn in turns for result in turn.results)

    def thoughts(self, body: dict[str, Any]) -> int:
        """How many pieces of the model's reasoning came back to it."""
        parts = (part for turn in self._turns(body) for part in turn.parts)
        return sum(isinstance(part, Reasoning) for part in parts)

    def _turns(self, body: dict[str, Any]) -> tuple[Turn, ...]:
        return tuple(read_request(self.upstream, body).conversation.turns)


@dataclass(frozen=True)
class Outcome:
    """What came of a play."""

    ran: list[str]  # the words of the commands that ran, in any order
    asked: int  # requests to the model
    returned: list[str]  # the words of the calls that the last request carries with their results
    told: bool  # the program said that something went wrong
    exit: int
    pictures: int = 0  # that the last request has
    thoughts: int = 0  # of the model's own, that it has
    output: str = field(default="", repr=False)


# This provider has no keep-alives, and its client no ears for them.
_SAYS_NOTHING = Play("gemini_cli", "alive", "gemini")


def _plays() -> Iterator[Play]:
    for program in TITLES:
        for name, row in ROWS.items():
            if row.program in ("", program):
                plays = (Play(program, name, w) for w in WIRES if w not in row.without)
                yield from (play for play in plays if play != _SAYS_NOTHING)


PLAYS = tuple(_plays())


def _samples() -> Iterator[Play]:
    """Each row once for each program, on one wire after the other: what is played on every change."""
    at = 0
    for program in TITLES:
        for name in ROWS:
            plays = [p for p in PLAYS if (p.program, p.row) == (program, name)]
            if plays:
                at += 1
                yield plays[at % len(plays)]


SAMPLES = tuple(_samples())


def _play(play: Play, gateway: str, upstream: _Upstream, bin: Path) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="streamnorm") as folder:
        home = Path(folder)
        project = home / "project"
        project.mkdir()
        (project / PICTURE).write_bytes(base64.b64decode(DOT))
        output, exit = _PLAYERS[play.program](play, gateway, bin, home)
        left = project / RAN
        ran = left.read_text().split() if left.exists() else []
    asked = upstream.asked[play.name]
    last = asked[-1] if asked else {}
    if not last:
        return Outcome(sorted(ran), 0, [], _complains(output, exit), exit, output=output[-3000:])
    return Outcome(
        sorted(ran), len(asked), play.returned(last), _complains(output, exit), exit,
        play.pictures(last), play.thoughts(last), output[-3000:],
    )  # fmt: skip


def _complains(output: str, exit: int) -> bool:
    """All of them print events; they say ``is_error``, that the turn failed, or an error as the result."""
    said = '"is_error":true', "turn.failed", '"type":"error"', '"status":"error"'
    return exit != 0 or any(words in output for words in said)


def _run(command: list[str], home: Path, env: dict[str, str]) -> tuple[str, int]:
    try:
        ran = subprocess.run(
            command, check=False, cwd=home / "project", stdin=subprocess.DEVNULL, timeout=100,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **env},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:  # this play is wrong, and all others can be right
        return (error.stdout or b"").decode(errors="replace") + TOO_LATE, 124
    return ran.stdout.decode(errors="replace"), ran.returncode


def _play_claude(play: Play, gateway: str, bin: Path, home: Path) -> tuple[str, int]:
    env = {
        "ANTHROPIC_BASE_URL": gateway, "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(home / "c"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
    }  # fmt: skip
    options = ["--model", play.model, "--output-format", "stream-json", "--verbose",
               "--allowedTools", "Bash,Read"]  # fmt: skip
    return _run([str(bin / "claude"), "-p", ASKED, *options], home, env)


def _play_codex(play: Play, gateway: str, bin: Path, home: Path) -> tuple[str, int]:
    settings = home / "x"
    settings.mkdir()
    (settings / "config.toml").write_text(
        f'model = "{play.model}"\nmodel_provider = "gateway"\n'
        'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        f'[model_providers.gateway]\nname = "gateway"\nbase_url = "{gateway}/v1"\n'
        'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 1\n'
    )
    command = [str(bin / "codex"), "exec", "--json", "--skip-git-repo-check", ASKED]
    return _run(command, home, {"CODEX_HOME": str(settings)})


def _play_gemini(play: Play, gateway: str, bin: Path, home: Path) -> tuple[str, int]:
    settings = home / ".gemini"
    settings.mkdir()
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    quiet = {
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True, "maxAttempts": 2},
    }
    (settings / "settings.json").write_text(json.dumps({**chosen, **quiet}))
    env = {"GOOGLE_GEMINI_BASE_URL": gateway, "GEMINI_API_KEY": "none", "TERM": "xterm-256color"}
    options = ["--model", play.model, "--output-format", "stream-json", "--yolo", "--skip-trust"]
    return _run([str(bin / "gemini"), *options, "-p", ASKED], home, env)


_PLAYERS = {"claude_code": _play_claude, "codex": _play_codex, "gemini_cli": _play_gemini}


def _play_here(plays: list[Play], bin: Path) -> dict[str, Outcome]:
    upstream = _Upstream(plays)
    threading.Thread(target=upstream.serve_forever, args=(0.01,), daemon=True).start()
    rows = [f"--to={play.name}@{play.upstream}={upstream.url}/{play.name}" for play in plays]
    rows += [
        f"--map={play.model}={play.name}/some-model" for play in plays if play.program == "codex"
    ]
    command = [sys.executable, "-m", "streamnorm.cli", "gateway", "--listen", "127.0.0.1:0", *rows]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found, "the gateway says where it is"
            url = found.group()
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                outcomes = pool.map(lambda play: _play(play, url, upstream, bin), plays)
                return {play.name: came for play, came in zip(plays, outcomes, strict=True)}
        finally:
            process.terminate()
            upstream.shutdown()
            upstream.server_close()


def play_all(plays: Iterable[Play] = PLAYS, timeout: float = 3600) -> dict[str, Outcome]:
    """Play them in a network in which there is nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.json"
        names = [play.name for play in plays]
        command = [*alone(), sys.executable, "-m", "tools.through", "--alone", "--out", str(out)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([*command, *names], cwd=ROOT, env=env, check=True, timeout=timeout)
        told = json.loads(out.read_text())
    return {name: Outcome(**outcome) for name, outcome in told.items()}


# --- the table ------------------------------------------------------------------------------------


def is_right(play: Play, came: Outcome) -> bool:
    """Did what was to run, run once, with its result in the next request; and did nothing else?"""
    row = ROWS[play.row]
    if came.output.endswith(TOO_LATE):
        return False
    if not row.runs:
        return not came.ran and not came.returned and (came.told or came.asked > 1)
    leaving = sorted(word for word in row.runs if word in _WORDS)
    answered = sorted(word for word in came.returned if word not in _LOOKING)
    bare = [_BARE[play.program]] if play.row == "bare" else []
    shown = bool(came.pictures) or play.row != "picture"
    known = came.thoughts == len(row.runs) or play.row != "again" or play.upstream not in _SIGNED
    ran = came.ran == leaving and answered == (leaving or bare)
    return ran and shown and known and not came.told and came.asked == len(row.answers) + 1


_WORDS = {word for row in ROWS.values() for word in row.runs} - {"bare"}
_SIGNED = ("anthropic", "openai_responses", "bedrock")  # who wants its reasoning back


def _table(outcomes: Mapping[str, Outcome], before: str) -> str:
    """A part for each program; that of one which was not played stays as it is."""
    parts = dict(zip(TITLES, before.split("\n\n"), strict=False))
    played = {play.program for play in PLAYS if play.name in outcomes}
    parts |= {program: _part(program, outcomes) for program in TITLES if program in played}
    return "\n\n".join(part.strip("\n") for part in parts.values()) + "\n"


def _part(program: str, outcomes: Mapping[str, Outcome]) -> str:
    wires = " | ".join(f"`{wire}`" for wire in WIRES)
    lines = [f"| {TITLES[program]}; the upstream speaks | {wires} |", "|---" * 7 + "|"]
    for name, row in ROWS.items():
        plays = [Play(program, name, wire) for wire in WIRES]
        cells = [_cell(play, outcomes.get(play.name)) for play in plays]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(play: Play, came: Outcome | None) -> str:
    if came is None:
        return "–"
    if not is_right(play, came):
        return f"**wrong**: {came}"
    if not ROWS[play.row].runs:
        return "asked again" if came.asked > 1 else "error"
    return "✔" * len(ROWS[play.row].runs) if len(ROWS[play.row].runs) < 3 else "✔ all"


def _write(outcomes: Mapping[str, Outcome]) -> None:
    text = MARKS.sub(
        lambda found: found[1] + _table(outcomes, found[2]) + found[3], PAGE.read_text()
    )
    PAGE.write_text(text)


def main(argv: list[str] | None = None) -> int:
    """0: all were played."""
    parser = argparse.ArgumentParser(prog="python -m tools.through")
    parser.add_argument("--out", type=Path, help="where what came of it goes, as JSON")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the tables of docs/gateway.md; of a program all plays must be named",
    )
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="PROGRAM-ROW-WIRE")
    options = parser.parse_args(argv)
    bin = programs_here()
    if bin is None:
        sys.exit(f"{AGENTS} names no folder with the programs")
    if unknown := set(options.names) - {play.name for play in PLAYS}:
        sys.exit(f"there are no plays {', '.join(sorted(unknown))}")
    plays = [p for p in PLAYS if not options.names or p.name in options.names]
    if options.alone:
        bring_up()
        outcomes = _play_here(plays, bin)
    else:
        outcomes = play_all(plays)
    told = {name: asdict(outcome) for name, outcome in outcomes.items()}
    if options.out:
        options.out.write_text(json.dumps(told, indent=1))
    if options.write:
        _write(outcomes)
    for play in plays if not options.alone else ():
        right = "right" if is_right(play, outcomes[play.name]) else "WRONG"
        print(f"{right}  {play.name:45} {outcomes[play.name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
