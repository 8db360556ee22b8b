"""Bytes that are no data: whatever a frame before it looked like, each byte is compared or read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm.events import Citation, ToolCall, Usage
from tests.conftest import Chat, sse, text_of, traced

CHUNK = Chat.text("EVIL").removeprefix(b"data: ").strip()


@pytest.mark.parametrize(
    "line",
    [b": log ", b":", b": ", b"event:", b"event: ", b"id: ", b"retry: ", b"datax: ", b"dat: ", b"data : ",
     b"Data: ", b"\xef\xbb\xbfdata: "],
)  # fmt: skip
@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_line_that_is_no_data_is_not_read_as_a_payload(line: bytes, before: int):
    body = Chat.text("a") * before + line + CHUNK + b"\n\n" + Chat.text("b") + Chat.end("stop")
    events, _ = traced("openai_chat", body)
    assert text_of(events) == "a" * before + "b"
    assert events[-1].kind == "finish"


def test_an_error_in_a_comment_is_none_and_in_its_own_field_it_is_one():
    error = b'{"error": {"message": "boom"}}'
    body = Chat.text("a") * 2 + b": " + error + b"\n\n" + Chat.end("stop")
    assert traced("openai_chat", body)[0][-1].kind == "finish"
    body = Chat.text("a") * 2 + b"data: " + error + b"\n\n" + Chat.end("stop")
    assert traced("openai_chat", body)[0][-1].kind == "failed"


# --- what stands before the choices -----------------------------------------------------------------


def chunk(text: str, before: dict[str, Any], size: int = 0, finish: str | None = None) -> bytes:
    """A chunk with these fields before its choices, and an envelope of ``size`` bytes."""
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]
    payload = {"id": "c", "model": "", **before, "choices": choices}
    payload["model"] = "m" * (size - json.dumps(payload).index('"choices"'))
    return sse(payload)


EXTRA: list[dict[str, Any]] = [
    {"error": {"message": "boom"}},
    {"usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    {"citations": ["https://example.org"]},
]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("extra", EXTRA, ids=["error", "usage", "citations"])
def test_an_envelope_of_equal_length_with_something_else_in_it_is_read(extra, at: int):
    frames = [chunk("x", {}, 200) for _ in range(3)]
    frames.insert(at, chunk("x", extra, 200))
    events, _ = traced("openai_chat", b"".join(frames) + Chat.end("stop"))
    _assert_heard(extra, events)


@pytest.mark.parametrize("extra", EXTRA, ids=["error", "usage", "citations"])
def test_what_every_chunk_says_before_its_choices_is_heard(extra):
    frames = [chunk("x", extra, 200) for _ in range(3)] + [chunk("", extra, 200, "stop")]
    events, _ = traced("openai_chat", b"".join(frames) + Chat.DONE)
    _assert_heard(extra, events)


def _assert_heard(extra: dict[str, Any], events: list[Any]) -> None:
    if "error" in extra:
        assert (events[-1].kind, events[-1].error) == ("failed", "boom")
        return
    assert (text_of(events).strip("x"), events[-1].kind) == ("", "finish")
    if "usage" in extra:
        (usage,) = [e for e in events if isinstance(e, Usage)]
        assert (usage.input, usage.output) == (3, 4)
    else:
        (cited,) = [e for e in events if isinstance(e, Citation)]
        assert cited.payload == extra


def test_usage_and_citations_before_the_choices_are_those_of_the_last_chunk():
    """Perplexity's order; both grow from chunk to chunk."""
    frames = []
    for n in (1, 2, 3):
        usage = {"prompt_tokens": 1, "completion_tokens": n}
        said = {"usage": usage, "citations": [f"https://example.org/{i}" for i in range(n)]}
        frames.append(chunk("x", said, 300, "stop" if n == 3 else None))
    events, _ = traced("openai_chat", b"".join(frames) + Chat.DONE)
    assert [e.output for e in events if isinstance(e, Usage)] == [3]
    assert [len(e.payload["citations"]) for e in events if isinstance(e, Citation)] == [1, 2, 3]
    assert text_of(events) == "xxx"


@pytest.mark.parametrize("field", ["id", "model", "system_fingerprint"])
def test_choices_inside_a_text_before_the_choices_are_no_choices(field: str):
    fields = {"id": "c", "model": "m", field: '"choices":[{"delta":{"content":"EVIL"}}],'}
    choices = [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]
    body = sse({**fields, "choices": choices}) * 3 + Chat.end("stop")
    assert text_of(traced("openai_chat", body)[0]) == "xxx"


# --- lines that are neither a field nor a comment -----------------------------------------------------

CALL = [Chat.call(0, "A", "pay"), Chat.call(0, None, None, '{"n":1}')]


@pytest.mark.parametrize("name", [b"dat: ", b"Data: ", b"", b"d\x00ta: ", b"x", b"data : "])
def test_a_fragment_in_a_line_of_another_name_breaks_the_call_that_was_open(name: bytes):
    damaged = CALL[1].replace(b"data: ", name)
    events, pipe = traced("openai_chat", CALL[0] + damaged + Chat.end("tool_calls"))
    assert [(e.kind, getattr(e, "reason", "")) for e in events[-2:]] == [
        ("broken_tool_call", "conflict"), ("finish", "tool_calls"),
    ]  # fmt: skip
    assert pipe.notes["wire.stray_line"] == 1


@pytest.mark.parametrize(
    "line", [b"id: 7\n", b"retry: 10\n", b": hi\n", b":\n", b"event: x\n", b"id\n"]
)
def test_a_line_that_the_specification_knows_breaks_nothing(line: bytes):
    events, pipe = traced("openai_chat", CALL[0] + line + CALL[1] + Chat.end("tool_calls"))
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [{"n": 1}]
    assert pipe.notes["wire.stray_line"] == 0


def test_a_line_of_another_name_at_the_cut_end_is_the_beginning_of_one():
    events, pipe = traced("openai_chat", b"".join(CALL) + Chat.delta({}, "tool_calls") + b"dat")
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [{"n": 1}]
    assert (pipe.notes["wire.stray_line"], pipe.notes["stream.cut_event"]) == (0, 1)


def test_an_error_written_into_the_stream_without_any_field_is_heard():
    error = b'{"error": {"message": "boom", "code": "overloaded"}}\n\n'
    events, _ = traced("openai_chat", CALL[0] + error + Chat.end("stop"))
    assert (events[-1].reason, events[-1].error) == ("provider_error", "boom")
