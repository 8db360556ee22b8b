"""``streamnorm record`` and ``streamnorm inspect``, from the outside."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamnorm.captures import read_take
from streamnorm.cli import main
from streamnorm.providers import PROVIDERS
from streamnorm.takes.recorder import Recorder
from streamnorm.testing import call, cut, error, missing_id, say, script, usage
from tests.conftest import CALLING

LOOK = script(say("Let me look."), call("get_weather", city="Oslo"))
SECRET = "sesame-4711-open"
KEYS = {name: row.key for name, row in PROVIDERS.items() if row.key}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for key in KEYS.values():
        for variable in key.variables:
            monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def body(tmp_path):
    file = tmp_path / "body.bin"

    def write(data: bytes) -> str:
        file.write_bytes(data)
        return str(file)

    return write


def taken(folder: Path):
    (file,) = folder.glob("*.sse")
    return read_take(file)


# --- record -- COMMAND ----------------------------------------------------------------------------


def test_what_a_command_prints_is_recorded_and_shown(tmp_path, capsys, body):
    file = body(LOOK.bytes("anthropic"))
    assert main(["record", "-o", str(tmp_path), "--", "cat", file]) == 0
    shown = capsys.readouterr()
    assert 'get_weather  {"city": "Oslo"}' in shown.out
    assert "recorded to" in shown.err
    take = taken(tmp_path)
    assert (take.wire, take.finished, take.timed) == (LOOK.bytes("anthropic"), True, True)


def test_raw_passes_the_bytes_on(tmp_path, capfdbinary, body):
    file = body(LOOK.bytes("bedrock"))
    options = ["--provider", "bedrock", "--raw", "-o", str(tmp_path)]
    assert main(["record", *options, "--", "cat", file]) == 0
    assert capfdbinary.readouterr().out == LOOK.bytes("bedrock")
    assert taken(tmp_path).wire == LOOK.bytes("bedrock")


def test_the_bytes_are_shown_as_they_come(tmp_path):
    """The child waits for its line to be recorded before it prints the next."""
    code = (
        "import glob\n"
        'print(\'data: {"choices":[{"delta":{"content":"first"}}]}\', flush=True)\n'
        "print(flush=True)\n"
        "while not any(b'first' in open(f, 'rb').read() for f in glob.glob('*.sse')):\n"
        "    pass\n"
        "print('data: [DONE]\\n', flush=True)\n"
    )
    command = [sys.executable, "-m", "streamnorm.cli", "record", "--", sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert b"first" in done.stdout
    assert taken(tmp_path).wire.endswith(b"data: [DONE]\n\n")


def test_secrets_of_the_command_and_of_the_environment_are_not_in_the_take(
    tmp_path, monkeypatch, body
):
    monkeypatch.setenv("SOME_API_KEY", "environment-secret")
    said = f"you sent {SECRET} and environment-secret and in-the-url-1 and pass-word-1"
    file = body(b"data: " + json.dumps({"error": {"message": said}}).encode() + b"\n\n")
    code = f"import sys; sys.stdout.buffer.write(open({file!r}, 'rb').read())"
    command = [sys.executable, "-c", code, "-H", f"x-api-key: {SECRET}", "-u", "me:pass-word-1"]
    command.append("https://host/v1?key=in-the-url-1")
    assert main(["record", "-o", str(tmp_path), "--", *command]) == 3
    (recorded,) = tmp_path.glob("*.sse")
    text = recorded.read_text()
    for secret in (SECRET, "environment-secret", "in-the-url-1", "pass-word-1"):
        assert secret not in text
    assert read_take(recorded).header["url"] == "https://host/v1"


def test_a_command_that_fails_leaves_an_unfinished_take(tmp_path, capsys):
    assert main(["record", "-o", str(tmp_path), "--", sys.executable, "-c", "exit(7)"]) == 3
    assert "ended with status 7" in capsys.readouterr().err
    assert not taken(tmp_path).finished


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_curl_is_recorded_with_its_options(tmp_path, capsys):
    with LOOK.server("openai_chat") as server:
        header = f"Authorization: Bearer {SECRET}"
        command = [
            "curl",
            "-sN",
            f"{server.url}/v1/chat?a=b",
            "-H",
            header,
            "-d",
            '{"stream":true}',
        ]
        assert main(["record", "-o", str(tmp_path), "--", *command]) == 0
    (request,) = server.requests
    assert (request.path, request.body) == ("/v1/chat?a=b", {"stream": True})
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    take = taken(tmp_path)
    assert take.wire == LOOK.bytes("openai_chat")
    assert take.header["url"] == f"{server.url}/v1/chat"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--", "no-such-command-here"], "no-such-command-here cannot be run"),
        (["-o", "/nowhere/a.sse", "--", "true"], "Make the folder first"),
        (["--data", "{}", "--", "true"], "belong to a URL"),
        (["--provider", "opena", "--", "true"], "no provider 'opena'"),
        (["http://127.0.0.1:9/", "--data", "@/nowhere"], "/nowhere cannot be read"),
        (["http://127.0.0.1:9/", "--data", "{}", "--header", "x"], "wants 'name: value'"),
        ([], "required"),
    ],
)
def test_wrong_use_is_said_and_is_exit_code_2(tmp_path, monkeypatch, capsys, args, says):
    monkeypatch.chdir(tmp_path)
    assert main(["record", *args]) == 2
    assert says in capsys.readouterr().err
    assert [file for file in tmp_path.iterdir() if file.stat().st_size] == []


def test_a_take_is_never_overwritten(tmp_path, capsys):
    file = tmp_path / "a.sse"
    file.write_text("precious")
    assert main(["record", "-o", str(file), "--", "true"]) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert file.read_text() == "precious"


# --- record URL -----------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", KEYS)
def test_a_url_is_asked_with_the_key_of_its_provider(tmp_path, monkeypatch, capsys, provider, body):
    key = KEYS[provider]
    monkeypatch.setenv(key.variables[-1], SECRET)
    data = "@" + body(b'{"stream":true}')
    said = LOOK if provider in CALLING else script(say("Let me look."))
    with said.server(provider) as server:
        args = [server.url + "/v1/x", "--provider", provider, "--data", data, "-o", str(tmp_path)]
        assert main(["record", *args]) == 0
    (request,) = server.requests
    assert request.headers[key.header] == key.prefix + SECRET
    assert request.body == {"stream": True}
    shown = capsys.readouterr()
    assert f"the key is read from {key.variables[-1]}" in shown.err
    assert SECRET not in shown.err + shown.out
    take = taken(tmp_path)
    assert (take.wire, take.finished, take.header["status"]) == (said.bytes(provider), True, 200)
    assert take.header["url"] == server.url + "/v1/x"


def test_a_key_that_the_server_echoes_is_not_in_the_take(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    refused = script(error("auth", f"Incorrect API key provided: {SECRET}.", status=401))
    with refused.server("openai_chat") as server:
        args = [server.url, "--provider", "openai_chat", "--data", "{}", "-o", str(tmp_path)]
        assert main(["record", *args]) == 3
    assert "status 401" in capsys.readouterr().err
    (file,) = tmp_path.glob("*.sse")
    assert SECRET not in file.read_text()
    assert b"Incorrect API key provided: xxxxxxxxxxxxxxxx." in read_take(file).wire


def test_no_key_goes_to_a_server_whose_provider_is_not_known(tmp_path, monkeypatch):
    for key in KEYS.values():
        monkeypatch.setenv(key.variables[0], SECRET)
    with LOOK.server("openai_chat") as server:
        url = server.url + "/api.openai.com/chat/completions"
        assert (
            main(["record", url, "--data", "{}", "--header", "X-Mine: 1", "-o", str(tmp_path)]) == 0
        )
    (request,) = server.requests
    assert SECRET not in json.dumps(request.headers)
    assert request.headers["x-mine"] == "1"


def test_a_server_that_breaks_off_leaves_an_unfinished_take(tmp_path, capsys):
    with script(say("Hi"), cut(abrupt=True)).server("openai_chat") as server:
        url = f"{server.url}/?key={SECRET}"
        assert main(["record", url, "--data", "{}", "-o", str(tmp_path)]) == 3
    shown = capsys.readouterr()
    assert "RemoteProtocolError" in shown.err
    assert SECRET not in shown.err
    assert not taken(tmp_path).finished


def test_the_address_in_a_command_tells_the_provider(tmp_path, body):
    file = body(LOOK.bytes("mistral"))
    url = "https://api.mistral.ai/v1/chat/completions"
    code = f"import sys; sys.stdout.buffer.write(open({file!r}, 'rb').read())"
    assert main(["record", "-o", str(tmp_path), "--", sys.executable, "-c", code, url]) == 0
    assert taken(tmp_path).provider == "mistral"


# --- inspect --------------------------------------------------------------------------------------


@pytest.fixture
def take(tmp_path):
    def record(said, provider="anthropic", *, finished=True, **options) -> str:
        timed = said.timed(provider)
        moments = iter([0.0, *(at for at, _ in timed), timed[-1][0]])
        file = tmp_path / "take.sse"
        tape = Recorder.open(
            file, provider=provider, seed="s", clock=lambda: next(moments), **options
        )
        for _, chunk in timed:
            tape.chunk(chunk)
        tape.close(finished=finished)
        return str(file)

    return record


def test_inspect_says_what_is_in_a_take(take, capsys):
    said = script(say("Looking."), call("f", city="Oslo"), missing_id(), usage(900, 40))
    assert main(["inspect", take(said, url="https://host/v1/messages"), "--no-color"]) == 0
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert lines[0].startswith("anthropic · claude-sonnet-4-5-20250929 · msg_01")
    assert "recorded to its end" in lines[1]
    assert "from https://host/v1/messages" in text
    assert "1 tool_call," in text
    assert "synthetic" in text
    assert "call.id_synthetic x 1  the wire gave no id; one was minted" in text
    assert "input 900, output 40" in text
    assert "first token 0.06 s" in text
    assert "█" in text
    assert lines[-1] == "■ finished: tool_calls (the wire said tool_use)"


def test_inspect_says_the_same_to_programs(take, capsys):
    said = script(say("Looking."), call("f", city="Oslo"), cut(inside="call"))
    assert main(["inspect", take(said, finished=False), "--json"]) == 3
    facts = json.loads(capsys.readouterr().out)
    assert (facts["provider"], facts["recorded"]) == ("anthropic", "unfinished")
    assert (facts["end"], facts["reason"]) == ("failed", "truncated")
    (broken,) = facts["calls"]
    assert (broken["name"], broken["end"], broken["id_source"]) == ("f", "truncated", "natural")
    assert sum(facts["timing"]["bytes_per_slot"]) == facts["bytes"]


def test_inspect_finds_the_longest_gap(take, capsys):
    from streamnorm.testing import delay

    main(["inspect", take(script(say("one"), delay(5), say("two")), "gemini"), "--json"])
    timing = json.loads(capsys.readouterr().out)["timing"]
    assert (timing["first_token"], timing["longest_gap"], timing["longest_gap_at"]) == (
        0.02,
        5.02,
        0.02,
    )


def test_inspect_shows_no_command_of_the_wire(take, capsys):
    said = script(
        say("x"), call("f\x1b]0;owned\x07\u202e", a=1).with_id("a\x1b[31m\nb"), error("\x1b[2J")
    )
    main(["inspect", take(said), "--no-color"])
    shown = capsys.readouterr().out
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    main(["inspect", take_path(take), "--json"])
    assert not set(capsys.readouterr().out) & {"\x1b", "\x07", "\u202e"}


def take_path(take) -> str:
    return str(Path(take.__closure__[0].cell_contents) / "take.sse")


@pytest.mark.parametrize("data", [b": streamnorm {}\n", b": streamnorm {}\n: +0.5\n"])
def test_inspect_of_nothing_is_a_failed_stream_and_no_error(tmp_path, capsys, data):
    file = tmp_path / "a.sse"
    file.write_bytes(data)
    assert main(["inspect", str(file)]) == 3
    assert "failed: truncated" in capsys.readouterr().out


def test_inspect_of_a_saved_body(tmp_path, capsys):
    file = tmp_path / "answer.txt"
    file.write_bytes(LOOK.bytes("cohere"))
    assert main(["inspect", str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("cohere")
    assert "the take has no arrival times" in shown


def test_the_help_names_the_variables(capsys):
    assert main(["record", "--help"]) == 0
    shown = capsys.readouterr().out
    for key in KEYS.values():
        assert key.variables[0] in shown
