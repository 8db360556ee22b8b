"""The gateway as a service: clients that leave, limits, what is kept, logged and measured, its command."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from streamnorm.cli import main
from streamnorm.errors import ProviderError, UsageError
from streamnorm.events import Provenance, ToolCall
from streamnorm.gateway.asking import pause_before
from streamnorm.gateway.flow import Flow
from streamnorm.gateway.headers import Secrets
from streamnorm.gateway.log import line
from streamnorm.gateway.metrics import Metrics
from streamnorm.gateway.store import FileStore, Kept, MemoryStore, Named
from streamnorm.testing import call, say, script, turns
from tests.gateway.kit import TALKS, Chat, Messages, Talk, between, gateway, post, telling

# --- clients that leave ---------------------------------------------------------------------------


class Endless:
    """An upstream that begins an answer (or says nothing) and never ends it; it knows when nobody
    listens any more."""

    def __init__(self, wire: str, says: bool = True) -> None:
        self._says = says
        chunks = script(say("Hello, hello, hello."), say("More.")).chunks(wire)
        kind = {"ollama": b"application/x-ndjson"}.get(wire, b"text/event-stream")
        self._head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        self._body = b"".join(chunks[: len(chunks) // 2])
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked, self.left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            while b'"model"' not in connection.recv(65536):
                continue
            self.asked.set()
            if self._says:
                connection.sendall(self._head + b"%x\r\n%b\r\n" % (len(self._body), self._body))
            while connection.recv(65536):
                continue
        self.left.set()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def endless(wire: str, says: bool = True) -> Iterator[Endless]:
    upstream = Endless(wire, says)
    try:
        yield upstream
    finally:
        upstream.close()


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "ollama"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("says", [True, False], ids=["after_some", "before_any"])
def test_a_client_that_leaves_stops_the_upstream(
    talk: type[Talk], wire: str, stream: bool, says: bool
):
    with endless(wire, says) as upstream, gateway(f"{wire}={upstream.url}") as running:
        address = httpx.URL(running.url)
        body = json.dumps(talk("", stream=stream).body()).encode()
        head = (
            f"POST {address.path}{talk.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((address.host, address.port)) as client:
            client.sendall(head.encode() + body)
            assert upstream.asked.wait(30)
            if stream and says:
                assert client.recv(65536)
        assert upstream.left.wait(30), "the upstream is still being listened to"


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.wire)
def test_more_exchanges_than_are_taken_are_told_to_come_back(talk: type[Talk]):
    with between("ollama", script(say("Hi")), exchanges=0) as (running, upstream):
        heard = post(running.url, talk.path, talk("").body())
    assert heard.status == 503
    assert heard.headers["retry-after"] == "1"
    assert heard.error is not None
    assert upstream.requests == []


def test_the_last_exchanges_are_remembered_and_no_more():
    flow = Flow(Metrics(), lambda row: None, last=3)
    for _ in range(5):
        flow.end(flow.begin("anthropic", Secrets(())))
    open_one = flow.begin("anthropic", Secrets(()))
    assert [row["number"] for row in flow.rows()] == [6, 5, 4, 3]
    assert flow.rows()[0]["state"] == "open"
    assert len(flow) == 1
    flow.end(open_one)


# --- what is kept ---------------------------------------------------------------------------------

KEPT = Kept("id", "f", Provenance("natural", provider="gemini"), {"thoughtSignature": "s"})


def test_a_store_in_memory_keeps_the_latest():
    store = MemoryStore(most=2)
    for name in "abc":
        store.put(name, KEPT)
    assert (store.get("a"), store.get("c")) == (None, KEPT)
    small = MemoryStore(most_bytes=250)
    small.put("a", KEPT)
    small.put("b", KEPT)
    assert (small.get("a"), small.get("b")) == (None, KEPT)


def test_of_what_is_only_named_the_latest_is_known():
    named = Named(most=2, most_bytes=30)
    named.put({"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}})
    assert [named.get(name) for name in "abc"] == [None, {"n": 2}, {"n": 3}]
    assert named.get("b")  # is the latest again
    named.put({"d": {"text": "x"}})
    assert [named.get(name) for name in "bcd"] == [{"n": 2}, None, {"text": "x"}]


def test_a_store_in_a_file_is_found_again_and_nobody_else_s(tmp_path: Path):
    path = tmp_path / "calls.db"
    store = FileStore(path, most=2)
    for name in "abc":
        store.put(name, KEPT)
    store.put("c", KEPT)
    store.close()
    again = FileStore(path)
    assert (again.get("a"), again.get("c")) == (None, KEPT)
    again.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="Name another file"):
        FileStore(tmp_path)


def test_a_row_that_somebody_else_wrote_is_none(tmp_path: Path):
    store = FileStore(tmp_path / "calls.db")
    store._file.execute("INSERT INTO calls (served, kept) VALUES ('a', '{}')")
    assert store.get("a") is None
    store.close()


def test_an_echo_that_is_too_large_is_not_kept():
    store = MemoryStore()
    large = Kept("id", "f", Provenance("natural"), {"x": "y" * 2_000_000})
    store.put("a", large)
    assert store.get("a") == Kept("id", "f", Provenance("natural"), None)


def test_a_call_is_restored_only_under_its_own_name():
    from streamnorm import Conversation
    from streamnorm.gateway.restoring import restored

    store = MemoryStore()
    store.put("a", KEPT)
    for name, id in (("f", "id"), ("g", "a")):
        talk = Conversation().assistant([ToolCall(0, "a", name, {}, "{}")])
        assert restored(talk, store).turns[0].calls[0].id == id


def test_what_a_file_keeps_comes_back_after_a_restart(tmp_path: Path):
    answers = turns(script(call("get_weather", city="Oslo")), script(say("Cold.")))
    path = tmp_path / "calls.db"
    with answers.server("gemini") as upstream:
        client = Chat("")
        for text in ("Is it cold?", None):
            with gateway(f"gemini={upstream.url}", store=path) as running:
                client.url = running.url
                if text:
                    (made,) = client.ask(text).calls
                else:
                    assert client.answer({made.id: "yes"}).text == "Cold."


SIGNED = [
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"get_weather","args":'
    b'{"city":"Oslo"}},"thoughtSignature":"c2lnbmVk"}],"role":"model"},"finishReason":"STOP"}],'
    b'"modelVersion":"g","responseId":"r"}\n\n'
]


def drop_the_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE calls")


def damage(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("spoil", [drop_the_table, damage, Path.unlink], ids=lambda do: do.__name__)
@pytest.mark.parametrize("before", [True, False], ids=["before_the_call", "before_its_result"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_an_exchange_goes_on_when_the_file_of_calls_fails(
    spoil: Callable[[Path], None], before: bool, stream: bool, tmp_path: Path
):
    path = tmp_path / "calls.db"
    answers = telling("gemini", SIGNED, script(say("Cold.")).chunks("gemini"))
    with between("gemini", answers, store=path) as (running, _):
        client = Chat(running.url, stream=stream)
        if before:
            spoil(path)
        (made,) = client.ask("Is it cold?").calls
        if not before:
            spoil(path)
        assert client.answer({made.id: "yes"}).text == "Cold."
    assert [row["state"] for row in running.rows] == ["done", "done"]


@pytest.mark.parametrize("before", [True, False], ids=["before_the_call", "before_its_result"])
def test_what_a_file_of_calls_did_not_keep_is_noted(before: bool, tmp_path: Path):
    path = tmp_path / "calls.db"
    answers = telling("gemini", SIGNED, script(say("Cold.")).chunks("gemini"))
    with between("gemini", answers, store=path) as (running, _):
        client = Chat(running.url)
        if before:
            drop_the_table(path)
        (made,) = client.ask("Is it cold?").calls
        if not before:
            drop_the_table(path)
        client.answer({made.id: "yes"})
    assert ["call.forgotten" in row["notes"] for row in running.rows] == [before, True]


def test_a_table_that_cannot_be_used_is_told_at_the_start(tmp_path: Path):
    path = tmp_path / "calls.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE calls (caller TEXT, number TEXT)")
    with pytest.raises(UsageError, match=r"no column named served\. Name another file"):
        FileStore(path)
    damage(path)
    with pytest.raises(UsageError, match=r"not a database\. Name another file"):
        FileStore(path)


def test_trying_a_file_out_leaves_nothing_in_it(tmp_path: Path):
    store = FileStore(tmp_path / "calls.db")
    assert store.get("") is None
    store.close()


def test_a_row_of_numbers_is_none(tmp_path: Path):
    store = FileStore(tmp_path / "calls.db")
    store._file.execute("INSERT INTO calls (served, kept) VALUES ('a', 7)")
    assert store.get("a") is None
    store.close()


# --- the log and the figures ----------------------------------------------------------------------


def test_a_line_says_what_happened_and_nothing_that_was_said():
    with between("gemini", script(say("A secret thing."), call("get_weather", city="Oslo"))) as (
        running, _,
    ):  # fmt: skip
        post(running.url, Messages.path, Messages("").body())
    written = line(running.row())
    assert "\n" not in written
    said = json.loads(written)
    assert said["upstream"] == "gemini"
    assert said["calls"][0]["name"] == "get_weather"
    assert said["calls"][0]["id_source"] == "natural"
    assert said["tokens"] == {"input": 25, "output": 12}
    assert said["took"] >= said["first"] > 0
    assert "secret" not in written
    assert "Oslo" not in written


def test_no_text_of_a_wire_can_command_a_terminal():
    with between("ollama", script(say("Hi"))) as (running, _):
        post(running.url, Chat.path, Chat("").body(model="\x1b[31mred\u202e"))
    assert running.row()["asked"] == r"\x1b[31mred\u202e"
    assert "\x1b" not in line(running.row())


def test_figures_are_what_prometheus_reads():
    with between("openai_chat", script(say("Hi"), call("get_weather", city="Oslo"))) as (
        running,
        _,
    ):
        post(running.url, Messages.path, Messages("").body())
        assert running.row()["state"] == "done"
        answer = httpx.get(f"{running.url}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = [row for row in answer.text.splitlines() if not row.startswith("#")]
    assert all(re.fullmatch(r'\w+(\{(\w+="[^"]*",?)+\})? \S+', row) for row in samples)
    of = "streamnorm_gateway_"
    assert (
        f'{of}exchanges_total{{client="anthropic",upstream="openai_chat",outcome="done"}} 1'
        in samples
    )
    assert (
        f'{of}calls_total{{upstream="openai_chat",outcome="whole",id_source="natural"}} 1'
        in samples
    )
    assert f"{of}open 0" in samples


def test_calls_that_a_line_has_no_room_for_are_counted_all_the_same():
    many = script(*(call("get_weather", city=f"{number}") for number in range(70)))
    with between("openai_chat", many) as (running, _):
        post(running.url, Messages.path, Messages("").body())
        row = running.row()
        measured = httpx.get(f"{running.url}/metrics").text
    assert 'calls_total{upstream="openai_chat",outcome="whole",id_source="natural"} 70' in measured
    assert (len(row["calls"]), row["more_calls"]) == (64, 6)


def test_calls_of_an_attempt_that_was_given_up_are_not_counted():
    flow = Flow(Metrics(), lambda row: None)
    one = flow.begin("anthropic", Secrets(()))
    one.hear([ToolCall(0, "a", "f", {}, "{}", provenance=Provenance("natural"))])
    one.again()
    assert (one.row()["calls"], one.row()["more_calls"]) == ([], None)


def test_the_page_of_takes_shows_what_was_just_recorded(tmp_path: Path):
    with between("ollama", script(say("Hi")), record=tmp_path) as (running, _):
        post(running.url, Chat.path, Chat("").body())
        assert httpx.get(f"{running.url}/takes").status_code == 200
        name = httpx.get(f"{running.url}/gateway/flow").json()["rows"][0]["take"]
        assert [row["name"] for row in httpx.get(f"{running.url}/api/takes").json()] == [name]
        shown = httpx.get(f"{running.url}/api/takes/{name}").json()
    assert shown["name"] == name
    assert any("Hi" in event for frame in shown["frames"] for event in frame["events"])


# --- the command ----------------------------------------------------------------------------------


def test_the_help_ends_with_the_three_lines_that_set_a_client_up(
    capsys: pytest.CaptureFixture[str],
):
    assert main(["gateway", "--help"]) == 0
    last = capsys.readouterr().out.rstrip().splitlines()[-3:]
    assert [word in row for word, row in zip(("claude", "codex", "OpenAI("), last, strict=True)] == [
        True, True, True,
    ]  # fmt: skip
    assert all("127.0.0.1:8181" in row for row in last)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--to", "nobody"], "no provider 'nobody'"),
        (["--to", "ollama", "--listen", "8181"], "write HOST:PORT"),
        (["--to", "ollama", "--listen", "127.0.0.1:99999"], "0 to 65535"),
        (["--to", "ollama", "--retry", "-1"], "a number from 0 on"),
        (["--to", "ollama", "--key-env", "NO_SUCH_VARIABLE"], "has no NO_SUCH_VARIABLE"),
        (["--to", "ollama", "--client-key-env", "NO_SUCH_VARIABLE"], "has no NO_SUCH_VARIABLE"),
        (["--to", "ollama", "--map", "x"], "CLIENT_MODEL=MODEL"),
    ],
)
def test_a_command_that_cannot_be_followed_says_why(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
):
    listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
    assert main(["gateway", *arguments, *listen]) == 2
    assert why in capsys.readouterr().err


def test_the_command_serves_and_writes_a_line_for_each_exchange(tmp_path: Path):
    with script(say("Hi")).server("ollama") as upstream:
        command = [sys.executable, "-m", "streamnorm", "gateway", "--to", f"ollama={upstream.url}",
                   "--listen", "127.0.0.1:0", "--model", "llama"]  # fmt: skip
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:  # fmt: skip
            assert process.stdout is not None
            told = process.stdout.readline()
            url = re.search(r"http://\S+", told)
            assert url is not None, told
            assert Chat(url.group()).ask("Hello").text == "Hi"
            process.send_signal(signal.SIGINT)
            _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    row = json.loads(log.splitlines()[-1])
    assert (row["client"], row["model"], row["state"]) == ("openai_chat", "llama", "done")
    assert upstream.requests[0].body["model"] == "llama"


def test_whoever_ends_it_finds_a_line_for_what_was_under_way_and_no_other_lines():
    with endless("ollama") as upstream:
        command = [sys.executable, "-m", "streamnorm", "gateway", "--to", f"ollama={upstream.url}",
                   "--listen", "127.0.0.1:0"]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            url = httpx.URL(re.findall(r"http://\S+", process.stdout.readline())[0])
            body = json.dumps(Messages("").body()).encode()
            head = (
                f"POST {Messages.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}"
            )
            with socket.create_connection((url.host, url.port)) as client:
                client.sendall(f"{head}\r\n\r\n".encode() + body)
                assert client.recv(65536)
                process.send_signal(signal.SIGTERM)
                _, log = process.communicate(timeout=60)
    (row,) = [json.loads(line) for line in log.splitlines()]
    assert row["state"] == "stopped"


def test_an_upstream_that_asks_for_a_long_pause_is_not_asked_again():
    """Its client can wait better than a request that is kept open."""
    busy = ProviderError("busy", status=429, retryable=True, retry_after=60.0)
    assert pause_before(1, busy) == 60.0
    busy.retry_after = 61.0
    assert pause_before(1, busy) is None
