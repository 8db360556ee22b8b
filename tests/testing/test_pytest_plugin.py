"""The pytest plugin, from the outside: tests of a user, run in a process of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

USER_TESTS = """
import json, sys, urllib.request
import pytest
from streamnorm.testing import call, missing_id, say, turns

def test_a_script(stream_script):
    events = stream_script(say("Hi"), call("tides", harbour="Höfn")).events("anthropic")
    assert [e.name for e in events if e.kind == "tool_call"] == ["tides"]
    assert "httpx" not in sys.modules

kept = []

def test_a_server(stream_script, provider_server):
    one = provider_server(stream_script(say("Hi")), "ollama")
    two = provider_server(turns(stream_script(say("Ho"))), "openai_chat")
    for server in (one, two):
        urllib.request.urlopen(server.url + "/x", b'{"model":"m"}').read()
        assert server.requests[0].body == {"model": "m"}
    kept.append(one.url)

def test_a_websocket(stream_script, provider_websocket):
    client = pytest.importorskip("websockets.sync.client")
    server = provider_websocket(turns(stream_script(say("Hi"))), "openai_responses", lanes=2)
    with client.connect(server.url) as socket:
        socket.send('{"type":"response.create","stream_id":"a"}')
        assert json.loads(socket.recv())["stream_id"] == "a"
    assert server.requests[0].body["stream_id"] == "a"

def test_that_the_servers_are_closed():
    with pytest.raises(OSError):
        urllib.request.urlopen(kept[0], b"{}")

def test_a_take(replay_take):
    events = replay_take(TAKE)
    assert events[-1].kind == "finish"
    assert replay_take(TAKE, "anthropic", strict=True) == events

def test_notes(streamnorm_notes, stream_script):
    stream_script(say("Hi")).events("gemini")
    assert not streamnorm_notes
    stream_script(call("f"), missing_id(), call("f"), missing_id()).events("gemini")
    assert streamnorm_notes == {"call.id_synthetic": 2}

def test_that_notes_are_counted_per_test(streamnorm_notes):
    assert not streamnorm_notes
"""


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def test_the_fixtures_do_what_a_user_would_want(tmp_path):
    take = ROOT / "recordings" / "anthropic" / "parallel_calls.sse"
    (tmp_path / "test_user.py").write_text(USER_TESTS.replace("TAKE", repr(str(take))))
    options = ("-q", "-W", "error", "-p", "streamnorm.pytest_plugin", "-p", "no:cacheprovider")
    done = run("-m", "pytest", *options, cwd=tmp_path)
    assert "7 passed" in done.stdout, done.stdout + done.stderr


def test_the_fixtures_are_listed_with_what_they_do(tmp_path):
    options = ("--fixtures", "-q", "-p", "streamnorm.pytest_plugin")
    done = run("-m", "pytest", *options, cwd=tmp_path)
    for name in ("stream_script", "provider_server", "replay_take", "streamnorm_notes"):
        assert name in done.stdout


def test_loading_the_plugin_imports_nothing_heavy(tmp_path):
    code = (
        "import sys, streamnorm.pytest_plugin;"
        "print(*[n for n in ('httpx', 'httpx2', 'anyio', 'http.server', 'streamnorm.testing')"
        " if n in sys.modules])"
    )
    done = run("-c", code, cwd=tmp_path)
    assert (done.stdout.split(), done.stderr) == ([], "")
