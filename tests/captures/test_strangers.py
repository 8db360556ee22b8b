"""What is no stream gets a sentence that says what it looks like; nothing of it is quoted."""

from __future__ import annotations

import json

import pytest

from streamnorm.captures import Found, Left, read_take, streams_of
from streamnorm.errors import RecordingError
from streamnorm.testing import say, script
from tests.captures.test_forms import FILES, events_of, found_in, left_in

WHOLE = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
         "object": "chat.completion", "model": "m"}  # fmt: skip
EVENT = b'{"choices":[{"delta":{"content":"Hi"}}]}'
_MESSAGE = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
_CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
# Answers of providers as they are without streaming.
ANSWERS: dict[str, dict[str, object]] = {
    "chat": {"id": "chatcmpl-1", "created": 1, **WHOLE, "usage": {"total_tokens": 2}},
    "chat, a call": {"id": "chatcmpl-1", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [_CALL]},
         "finish_reason": "tool_calls"}]},
    "messages": {"id": "msg_1", "type": "message", **_MESSAGE, "model": "m", "stop_reason": "end_turn",
                 "usage": {"input_tokens": 1, "output_tokens": 1}},
    "responses": {"id": "resp_1", "object": "response", "status": "completed", "output": [
        {"id": "msg_1", "type": "message", **_MESSAGE}]},
    "responses, a call": {"id": "resp_1", "object": "response", "status": "completed", "prompt": None, "output": [
        {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}]},
    "chat of v2": {"id": "x", "finish_reason": "COMPLETE", "message": _MESSAGE},
    "converse": {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
                 "stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}},
    "conversations": {"object": "conversation.response", "conversation_id": "conv_1", "outputs": [
        {"type": "message.output", "role": "assistant", "content": "Hi"}]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty."),
        (b" \r\n\t\n", "holds nothing but white space."),
        (json.dumps(WHOLE).encode(), "is a whole answer, not a stream. Ask with stream=true."),
        (
            json.dumps(WHOLE, indent=2).encode(),
            "is a whole answer, not a stream. Ask with stream=true.",
        ),
        (b"<!doctype html><p>no</p>", "is an HTML or XML page, not a stream."),
        (b'{"model":"m","stream":true,"messages":[]}', "looks like the body of a request"),
        (b'{"model":"m","input":"secret-1"}', "looks like the body of a request"),
        (b'[{"unheard":1},{"of":2}]', "is a JSON list, not the bytes of a stream."),
        (b'{"kind":"stream_start","provider":"x"}\n', "holds events of streamnorm, not what"),
        (
            b'{"kind":"session","session":"a.sse"}\n',
            "is a table that streamnorm made, and no stream.",
        ),
        (b"[0, 12, 44]", "is a JSON list, not the bytes of a stream."),
        (b'["data: 1"]', "is a JSON list, not the bytes of a stream."),
        (
            b'[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]',
            "is a JSON list, not the bytes of a stream.",
        ),
        (b"ZGF0YTogeyJhIjoxfQ==\n", "is text without an event in it."),
        (b"== Info: Trying\n<= Recv data, 9 bytes\n", "looks like what curl --trace writes."),
        (b"a.sse".ljust(257, b"\0") + b"ustar\x0000", "is a tar archive."),
        (b'{"secret-1":1}', "is JSON, but not the answer of a provider that is known."),
        (b"data: " + EVENT + b"\ndata: " + EVENT + b"\n", "has lines of data without blank lines"),
        (b"event: x\ndata: {}\nevent: y\ndata: {}\n", "has lines of data without blank lines"),
        ("data: é\n\n".encode("utf-16"), "is UTF-16 text, as PowerShell's > writes it."),
        ("data: 1\n\n".encode("utf-16-le"), "is UTF-16 text."),
        (b"# keys\nOPENAI_API_KEY=secret-1\n", "looks like a file of settings (NAME=value)"),
        (b"export A=secret-1\n", "looks like a file of settings (NAME=value)"),
        (b"* Trying\n> POST / HTTP/1.1\n< HTTP/1.1 200 OK\n", "looks like what curl -v prints."),
        (b"hello, world\n", "is text without an event in it."),
        (b"PK\x03\x04....", "is a zip archive."),
        (b"\x89PNG\r\n\x1a\n", "is a picture (PNG)"),
        (b"\xff\xd8\xff\xe0", "is a picture (JPEG)"),
        (b"SQLite format 3\0....", "is an SQLite database."),
        (b"PAR1....", "is a Parquet table."),
        (b"BZh91AY", "is packed with bzip2."),
        (b"%PDF-1.7", "is a PDF"),
        (b"\x7fELF....", "is a program"),
        (b"\xd4\xc3\xb2\xa1....", "is a capture of packets."),
        (b"9999:9:websocket;", "looks like the flows of mitmproxy."),
        (b"\x00\x01\x02\x03\xff\xff\xff\xff....", "is binary, and nothing that is known."),
        (b"\xfa\xfb\xfc\xfd" * 20, "is binary, and nothing that is known."),
        (b"[build-system]\nrequires = []\n", "is text without an event in it."),
        (b'{"log": {"entries": [', "begins like a HAR, and is cut or damaged."),
        (b'{"log": {"entries": 7}}', "begins like a HAR, and is not written as one."),
        (b'{"version": 1}', "is JSON that begins like a cassette of VCR, and has no interactions."),
        (b"version: 1\nother: 2\n", "begins like a cassette of VCR, and has no interactions."),
        (b"HTTP/1.1 200 OK\r\nA: b", "begins with a status, and its headers have no end."),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "has the status 204 and no body."),
    ],
)
def test_each_stranger_has_its_sentence(data, why):
    lefts = [one for one in streams_of(data, name="f") if isinstance(one, Left)]
    assert [one for one in streams_of(data, name="f") if isinstance(one, Found)] == []
    (left,) = lefts
    assert why in left.why
    assert left.why.endswith((".", "…", "sse", "-", "curl -N", "jsonl", "har", "FILE"))
    assert "secret-1" not in left.why


def test_a_file_without_a_stream_is_not_read_as_a_take(tmp_path):
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(WHOLE))
    with pytest.raises(RecordingError) as refused:
        read_take(file)
    assert str(refused.value) == f"{file} is a whole answer, not a stream. Ask with stream=true."


def test_a_folder_is_named(tmp_path):
    with pytest.raises(RecordingError, match="cannot be read: Is a directory"):
        read_take(tmp_path)


def test_what_a_killed_recorder_left_is_a_take_however_little(tmp_path):
    file = tmp_path / "a.sse"
    file.write_bytes(b"")
    assert read_take(file).chunks == []


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_stream_that_was_cut_in_its_first_event_is_one(cut):
    body = script(say("Hello.")).bytes("anthropic")[:cut]
    (found,) = found_in(body)
    assert events_of(found.take)[-1].kind == "failed"


def test_json_of_a_provider_that_is_named_is_a_stream():
    data = b'{"unheard":1}\n{"of":2}\n'
    (left,) = left_in(data)
    assert "Name it with --provider" in left.why
    (found,) = streams_of(data, name="f", provider="ollama")
    assert isinstance(found, Found)


def test_lines_that_are_mended_as_the_sentence_says_are_a_stream(tmp_path):
    import subprocess

    body = (FILES / "body.sse").read_bytes()
    file = tmp_path / "lines.txt"
    file.write_bytes(b"".join(line + b"\n" for line in body.splitlines() if line))
    (left,) = left_in(file.read_bytes())
    assert "sed '/^data:/G' FILE" in left.why
    mended = subprocess.run(["sed", "/^data:/G", file], check=True, stdout=subprocess.PIPE).stdout
    assert mended == body


def test_a_cassette_without_the_library_for_it_says_what_to_install(monkeypatch):
    import builtins
    import sys

    there = builtins.__import__
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert there is builtins.__import__
    (left,) = left_in((FILES / "vcrpy.yaml").read_bytes())
    assert "needs yaml: pip install 'streamnorm[captures]'" in left.why


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_whole_answer_of_any_provider_is_told_to_be_one(answer, indent):
    body = json.dumps(answer, indent=indent)
    (left,) = left_in(body.encode())
    assert left.why == "is a whole answer, not a stream. Ask with stream=true."
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    (left,) = left_in((head + body).encode())
    assert left.why == (
        "is a dump of curl -i with one exchange, which is a whole answer, not a stream. "
        "Ask with stream=true."
    )


@pytest.mark.parametrize(
    "line",
    [
        {"choices": [{"delta": {"role": "assistant", "content": "Hi"}}]},
        {"type": "message_start", "message": {"role": "assistant", "content": [], "id": "msg_1"}},
        {"error": {"message": "no"}},
    ],
)
def test_a_stream_of_one_line_is_no_whole_answer(line):
    assert left_in(json.dumps(line).encode()) == []
