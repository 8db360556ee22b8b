"""What is no stream, or a bad one: a typed end with a sentence, and all that was heard before it."""

from __future__ import annotations

import gzip
import json

import pytest

from streamnorm import Normalizer
from streamnorm.errors import StreamnormError, UnknownProvider, UsageError
from streamnorm.limits import Limits
from streamnorm.providers import PROVIDERS
from tests.conftest import (
    Chat,
    Messages,
    assert_well_formed,
    broken_of,
    calls_of,
    chunkings,
    said,
    sse,
    text_of,
    tr,
    traced,
)

TWO = ["openai_chat", "anthropic"]
HTML = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n"
)


def hello(provider: str) -> bytes:
    """A beginning with a text and an open call."""
    if provider == "openai_chat":
        return Chat.text("Hello") + Chat.call(0, "call_1", "f", '{"a":')
    return (
        Messages.START
        + Messages.text("Hello")
        + Messages.open(1, "call_1", "f")
        + Messages.args(1, '{"a":')
    )


def goodbye(provider: str) -> bytes:
    if provider == "openai_chat":
        return Chat.call(0, None, None, "1}") + Chat.end()
    return Messages.args(1, "1}") + Messages.close(1) + Messages.end()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("body", [HTML, b"\n  " + HTML, b"\xef\xbb\xbf" + HTML, b"<html>"])
def test_an_html_page_is_named_and_shown(provider: str, body: bytes):
    events = tr(provider, body)
    (failed,) = events
    assert (failed.kind, failed.reason, failed.retryable) == ("failed", "protocol", False)
    assert "HTML page" in failed.error
    assert "URL" in failed.error
    assert "html" in failed.error.split("begins", 1)[1].lower()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_gzip_bytes_are_named_with_the_remedy(provider: str):
    (failed,) = tr(provider, gzip.compress(Chat.text("Hello") * 9, mtime=0))
    assert (failed.kind, failed.reason) == ("failed", "protocol")
    assert "gzip" in failed.error
    assert "feed decoded bytes" in failed.error


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "body", [b"Bad Gateway", b"upstream connect error\n", b"hello\nworld\n\n", b"x" * 500]
)
def test_what_is_no_stream_at_all_is_said_and_shown(provider: str, body: bytes):
    events = tr(provider, body)
    failed = events[-1]
    assert failed.kind == "failed"
    assert failed.reason in ("protocol", "truncated")
    assert not calls_of(events)
    assert failed.error


@pytest.mark.parametrize("provider", TWO)
def test_what_is_not_sse_is_a_protocol_failure_that_shows_its_beginning(provider: str):
    failed = tr(provider, b"upstream connect error or disconnect/reset before headers")[-1]
    assert (failed.kind, failed.reason) == ("failed", "protocol")
    assert "upstream connect error" in failed.error


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("body", [b"\n\n", b"\xef\xbb\xbf", b"\n", b" "])
def test_a_body_without_anything_in_it_fails(provider: str, body: bytes):
    (failed,) = tr(provider, body)
    assert failed.kind == "failed"
    assert failed.reason in ("truncated", "protocol")


@pytest.mark.parametrize("provider", TWO)
def test_a_stream_that_only_kept_alive_is_truncated_and_may_be_tried_again(provider: str):
    (failed,) = tr(provider, b": OPENROUTER PROCESSING\n\n" * 3)
    assert (failed.kind, failed.reason, failed.retryable) == ("failed", "truncated", True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_empty_body_says_so_and_may_be_tried_again(provider: str):
    (failed,) = tr(provider, b"")
    assert (failed.kind, failed.reason, failed.retryable) == ("failed", "truncated", True)
    assert "0 bytes" in failed.error
    assert "empty" in failed.error


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize(
    "bad", [b'{"choices":[', b"{'type': 'x'}", b"hello", b"{}{}", b'{"a":NaN}', b"[DONE"]
)
def test_an_event_that_is_not_json_fails_the_stream_and_keeps_what_was_heard(
    provider: str, bad: bytes
):
    body = hello(provider) + b"data: " + bad + b"\n\n" + goodbye(provider)
    events = tr(provider, body)
    assert_well_formed(events)
    assert text_of(events) == "Hello"
    (broken,) = broken_of(events)
    assert (broken.id, broken.name, broken.raw) == ("call_1", "f", '{"a":')
    failed = events[-1]
    assert (failed.kind, failed.reason) == ("failed", "protocol")
    assert "not JSON" in failed.error
    assert repr(bad.decode()) in failed.error


@pytest.mark.parametrize("provider", TWO)
def test_a_bad_event_can_be_skipped_and_breaks_the_calls_that_were_open(provider: str):
    body = hello(provider) + b"data: {oops\n\n"
    if provider == "openai_chat":
        body += Chat.call(1, "call_2", "g", '{"b":2}')
    else:
        body += Messages.open(2, "call_2", "g") + Messages.args(2, '{"b":2}') + Messages.close(2)
    events, pipe = traced(provider, body + goodbye(provider), on_bad_event="skip")
    assert_well_formed(events)
    (broken,) = broken_of(events)
    assert (broken.id, broken.reason) == ("call_1", "conflict")
    assert said(events) == [("call_2", "g", {"b": 2})]
    assert events[-1].kind == "finish"
    assert pipe.notes["wire.bad_event_skipped"] == 1


def test_how_to_treat_bad_events_has_two_answers():
    with pytest.raises(UsageError, match="'fail' or 'skip', not 'ignore'"):
        Normalizer("openai_chat", on_bad_event="ignore")


@pytest.mark.parametrize("provider", TWO)
def test_bytes_that_are_not_utf_8_are_replaced_and_counted(provider: str):
    body = hello(provider) + goodbye(provider)
    spoiled = body.replace(b"Hello", b"He\xff\xfello")
    events, pipe = traced(provider, spoiled)
    assert text_of(events) == "He\ufffd\ufffdllo"
    assert pipe.notes["wire.bad_utf8"] == 2
    assert said(events) == [("call_1", "f", {"a": 1})]


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("where", [b"call_1", b'"f"', b"tool_use", b"function"])
def test_bytes_that_are_not_utf_8_never_raise_wherever_they_stand(provider: str, where: bytes):
    body = hello(provider) + goodbye(provider)
    events = tr(provider, body.replace(where, where[:-1] + b"\xff" + where[-1:]))
    assert_well_formed(events)
    assert text_of(events) == "Hello"


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("filler", [b"x", b"data: ", b": ", b"{", b"data: {\n"])
def test_an_endless_line_is_given_up_at_the_limit(provider: str, filler: bytes):
    body = hello(provider) + filler * (9_000 // len(filler))
    events = tr(provider, body, limits=Limits(frame_bytes=4096))
    assert_well_formed(events)
    assert text_of(events) == "Hello"
    assert [b.reason for b in broken_of(events)] == ["limit"]
    assert (events[-1].reason, events[-1].code) == ("limit", "frame_bytes")
    assert "4096" in events[-1].error
    assert "Limits(frame_bytes=" in events[-1].error


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_of_any_depth_in_a_payload_never_crashes(provider: str, opening: str):
    deep = opening * 100_000
    closing = ("1" if opening != "[" else "") + ("]" if opening == "[" else "}") * 100_000
    body = (
        hello(provider)
        + f'data: {{"type":"x","choices":{deep}{closing}}}\n\n'.encode()
        + goodbye(provider)
    )
    pipe = Normalizer(provider)
    events = pipe.feed(body) + pipe.close()
    assert_well_formed(events)
    assert text_of(events) == "Hello"


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("depth", [200, 1_000, 100_000])
def test_arguments_of_any_depth_break_their_call_and_no_other(provider: str, depth: int):
    deep = '{"a":' * depth + "1" + "}" * depth
    if provider == "openai_chat":
        body = Chat.call(0, "deep", "f", deep) + Chat.call(1, "flat", "g", "{}") + Chat.end()
    else:
        body = (
            Messages.START
            + Messages.open(0, "deep", "f")
            + Messages.args(0, deep)
            + Messages.close(0)
        )
        body += Messages.open(1, "flat", "g") + Messages.close(1) + Messages.end()
    pipe = Normalizer(provider)
    events = pipe.feed(body) + pipe.close()
    assert_well_formed(events)
    (broken,) = broken_of(events)
    assert (broken.id, broken.reason) == ("deep", "invalid_json")
    assert "nested deeper" in broken.detail
    assert broken.raw == deep
    assert said(events) == [("flat", "g", {})]
    assert events[-1].kind == "finish"


@pytest.mark.parametrize(
    ("named", "spoken"), [("anthropic", "openai_chat"), ("openai_chat", "anthropic")]
)
def test_the_wrong_provider_is_told_with_the_others_there_are(named: str, spoken: str):
    body = hello(spoken) + goodbye(spoken).replace(Chat.DONE, b"")
    events = tr(named, body)
    assert_well_formed(events)
    assert not calls_of(events)
    failed = events[-1]
    assert (failed.kind, failed.reason) == ("failed", "protocol")
    assert f"known to '{named}'" in failed.error
    assert spoken in failed.error
    assert [e for e in events if e.kind == "unrecognized"]  # nothing is lost in silence


def test_a_provider_that_does_not_exist_is_refused_with_the_list():
    with pytest.raises(UnknownProvider) as error:
        Normalizer("openia")
    assert "no provider 'openia'" in str(error.value)
    for name in PROVIDERS:
        assert name in str(error.value)


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("indent", [None, 2])
def test_an_error_body_instead_of_a_stream_is_the_providers_error(
    provider: str, indent: int | None
):
    error = {"message": "Invalid API key", "type": "authentication_error"}
    payload = {"error": error} if provider == "openai_chat" else {"type": "error", "error": error}
    events = tr(provider, json.dumps(payload, indent=indent).encode())
    failed = events[-1]
    assert (failed.kind, failed.reason) == ("failed", "provider_error")
    assert failed.error == "Invalid API key"
    assert (failed.code, failed.retryable) == ("authentication_error", False)


CHAT_ANSWER = {
    "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        "finish_reason": "tool_calls"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
}  # fmt: skip
CLAUDE_ANSWER = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
    "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "answer"), [("openai_chat", CHAT_ANSWER), ("anthropic", CLAUDE_ANSWER)]
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_answer_instead_of_a_stream_is_read_or_told(
    provider: str, answer: dict, indent: int | None
):
    """Either it is understood, or it ends as a failure; never as a finish with nothing in it."""
    events = tr(provider, json.dumps(answer, indent=indent).encode())
    assert_well_formed(events)
    if events[-1].kind == "finish":
        assert text_of(events) == "Hello"
    else:
        assert events[-1].reason == "protocol"
        assert events[-1].error


@pytest.mark.parametrize("provider", PROVIDERS)
def test_bytes_after_payloads_are_a_mistake_of_the_caller(provider: str):
    pipe = Normalizer(provider)
    pipe.feed_payload({"type": "ping"})
    with pytest.raises(UsageError, match="bytes after payloads"):
        pipe.feed(b"data: {}\n\n")


@pytest.mark.parametrize(
    "payload",
    [{"a": object()}, {"a": 1j}, {1j: 2}, {"a": [float("nan"), None]}, {"a": float("-inf")}],
)
def test_a_payload_that_is_no_json_is_a_mistake_of_the_caller(payload: dict):
    with pytest.raises(UsageError, match="not plain JSON"):
        Normalizer("openai_chat").feed_payload(payload)


def test_halves_of_a_character_in_two_payloads_are_one_character():
    pipe = Normalizer("openai_chat")
    halves = [{"choices": [{"index": 0, "delta": {"content": half}}]} for half in "\ud83d\ude00"]
    events = [event for payload in halves for event in pipe.feed_payload(payload)]
    assert text_of(events + pipe.close()) == "\U0001f600"


def test_a_payload_that_holds_itself_is_a_mistake_of_the_caller():
    payload: dict = {}
    payload["me"] = payload
    with pytest.raises(StreamnormError):
        Normalizer("openai_chat").feed_payload(payload)


@pytest.mark.parametrize("provider", TWO)
def test_whatever_follows_the_end_is_counted_and_not_told(provider: str):
    body = hello(provider) + goodbye(provider)
    expected = tr(provider, body)
    events, pipe = traced(provider, body + hello(provider) + b"data: not json\n\n" + HTML)
    assert events == expected
    assert pipe.notes["stream.after_end"] >= 3


def test_closing_twice_and_feeding_after_the_close_is_calm():
    pipe = Normalizer("openai_chat")
    first = pipe.feed(hello("openai_chat")) + pipe.close()
    assert first[-1].reason == "truncated"
    assert pipe.ended
    assert pipe.close() == []
    assert pipe.feed(goodbye("openai_chat")) == []
    assert pipe.fail("cancelled", "too late") == []


@pytest.mark.parametrize(
    ("reason", "broken"),
    [
        ("transport", "truncated"),
        ("idle", "truncated"),
        ("cancelled", "cancelled"),
        ("limit", "limit"),
    ],
)
def test_a_failure_from_outside_breaks_what_is_open(reason: str, broken: str):
    pipe = Normalizer("openai_chat")
    events = pipe.feed(hello("openai_chat")) + pipe.fail(
        reason, "the line went dead", retryable=True
    )
    assert_well_formed(events)
    assert [b.reason for b in broken_of(events)] == [broken]
    assert (events[-1].reason, events[-1].error, events[-1].retryable) == (
        reason,
        "the line went dead",
        True,
    )


@pytest.mark.parametrize("provider", TWO)
def test_a_last_event_without_its_blank_line_counts_if_it_is_whole(provider: str):
    body = hello(provider) + goodbye(provider)
    assert tr(provider, body.rstrip(b"\n")) == tr(provider, body)
    cut = tr(provider, body.rstrip(b"\n")[:-2])
    assert_well_formed(cut)


@pytest.mark.parametrize("provider", TWO)
def test_an_error_in_the_stream_is_the_providers_with_its_code(provider: str):
    error = {"type": "overloaded_error", "message": "Overloaded"}
    payload = {"error": error} if provider == "openai_chat" else {"type": "error", "error": error}
    events = tr(provider, hello(provider) + sse(payload) + goodbye(provider))
    assert [b.reason for b in broken_of(events)] == ["provider_error"]
    assert (events[-1].reason, events[-1].error) == ("provider_error", "Overloaded")
    assert (events[-1].code, events[-1].retryable) == ("overloaded_error", True)


def test_chunks_of_nothing_are_fine():
    body = hello("openai_chat") + goodbye("openai_chat")
    expected = tr("openai_chat", body)
    for chunks in chunkings(body):
        pipe = Normalizer("openai_chat", seed="tests")
        events = [e for chunk in chunks for part in (b"", chunk, b"") for e in pipe.feed(part)]
        assert events + pipe.close() == expected
