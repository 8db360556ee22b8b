"""The beginning of a stream: what is told first, what is known by then, and if nothing comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Normalizer, UsageError
from streamnorm.events import Event, Failed, StreamStart
from streamnorm.framing.aws import write_frame
from streamnorm.opening import SNIFF
from tests.conftest import Chat, bytewise, sse, text_of, traced
from tests.providers.streams import Gemini

# wire -> a first payload that says too little of a call to tell it
NAMELESS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]
    },
    "anthropic": {
        "type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "input": {}},
    },
    "openai_responses": {
        "type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{",
    },
    "gemini": {
        "candidates": [{"content": {"parts": [{"functionCall": {"args": {}, "willContinue": True}}]}}]
    },
    "gemini_interactions": {
        "event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "a"},
    },
}  # fmt: skip


@pytest.mark.parametrize("wire", NAMELESS)
def test_a_call_that_is_cut_before_it_was_named_is_broken_after_the_start(wire: str):
    events, _ = traced(wire, sse(NAMELESS[wire]))
    assert [e.kind for e in events] == ["stream_start", "broken_tool_call", "failed"]


def test_a_result_that_only_the_end_of_input_tells_comes_after_the_start():
    result = {"type": "google_search_result", "call_id": "a", "result": [1]}
    body = sse({"event_type": "step.start", "index": 0, "step": result})
    done = {"event_type": "interaction.completed", "interaction": {"status": "completed"}}
    events, _ = traced("gemini_interactions", body + sse(done))
    assert [e.kind for e in events] == ["stream_start", "tool_result", "finish"]


def failed(provider: str, body: bytes) -> Failed:
    last = traced(provider, body)[0][-1]
    assert isinstance(last, Failed)
    return last


def start(events: list[Event]) -> tuple[str | None, str | None]:
    assert isinstance(events[0], StreamStart)
    return events[0].model, events[0].response_id


# --- framing and wire -----------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["auto", "openai_chat"])
def test_what_is_no_stream_is_told_when_enough_of_it_came_to_be_shown(provider: str):
    page = b"<html>".ljust(SNIFF, b"x")
    for chunks in ([page], bytewise(page)):
        pipe = Normalizer(provider)
        for chunk in chunks[:-1]:
            assert pipe.feed(chunk) == []
        assert [e.kind for e in pipe.feed(chunks[-1])] == ["failed"]
    pipe = Normalizer(provider)
    assert pipe.feed(page[:-1]) == []
    assert not pipe.ended


def test_a_bare_object_behind_a_comment_is_no_payload():
    body = b": hi\n\n" + Chat.text("x").removeprefix(b"data: ")
    assert text_of(traced("openai_chat", body)[0]) == ""


def test_of_a_name_with_several_wires_the_first_payload_says_which_and_the_name_stays():
    events, pipe = traced("azure_foundry", Chat.text("x") + Chat.end("stop"))
    assert (text_of(events), events[-1].kind) == ("x", "finish")
    assert pipe.provider == "azure_foundry"
    events, _ = traced("azure_foundry", sse({"new": 1}) + Chat.text("x") + Chat.end("stop"))
    assert (text_of(events), events[-1].kind) == ("x", "finish")


@pytest.mark.parametrize(
    ("data", "seen"),
    [("5", "is 5"), ("[]", "is []"), ("{}", "is {}"), ('{"a":1,"b":2}', "has the fields 'a', 'b'")],
)
def test_a_first_payload_that_is_nobodys_is_shown(data: str, seen: str):
    for event in ("", "event: x\n"):
        last = failed("auto", f"{event}data: {data}\n\n".encode())
        assert last.reason == "protocol"
        if not event or data[0] != "{":
            assert f"the first payload {seen}; name the provider" in last.error


# --- the heading ----------------------------------------------------------------------------------


def test_model_and_response_are_heard_from_whichever_payload_says_them_first():
    both = {"modelVersion": "m", "responseId": "r"}
    assert start(traced("gemini", Gemini.text("x", **both))[0]) == ("m", "r")
    for first, second in (("modelVersion", "responseId"), ("responseId", "modelVersion")):
        other = {first: "other", second: both[second]}
        body = sse({first: both[first]}) + Gemini.text("x", **other)
        assert start(traced("gemini", body)[0]) == ("m", "r")


# --- if nothing came of it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "body", "reason", "says"),
    [
        ("ollama", b'{"model"', "truncated", "Is this the streaming body of ollama?"),
        ("bedrock", b"oops", "protocol", "Is this the streaming body of bedrock?"),
        ("openai_chat", b'data: {"choi', "truncated", "Is this the streaming body of openai_chat?"),
        ("openai_chat", b"hello", "protocol", "It begins 'hello'."),
        ("openai_chat", b"", "truncated", "The body was empty."),
        ("openai_chat", b": hi\n\n", "truncated", "It begins ': hi"),
        ("auto", b"hello", "protocol", "Name the provider, one of: "),
        ("auto", b"data: hello\n\n", "protocol", "Name the provider, one of: "),
        ("auto", b'data: {"choi', "truncated", "Name the provider, one of: "),
    ],
)
def test_a_body_without_an_event_is_a_cut_if_it_began_as_one(
    provider: str, body: bytes, reason: str, says: str
):
    last = failed(provider, body)
    assert (last.reason, last.retryable) == (reason, reason == "truncated")
    assert f"{len(body)} bytes and no event in them." in last.error
    assert says in last.error


def test_a_stream_that_ended_from_outside_has_no_second_end():
    pipe = Normalizer("openai_chat")
    assert pipe.feed(b"<html>") == []
    assert [e.kind for e in pipe.fail("transport", "gone")] == ["failed"]
    assert pipe.close() == []
    assert pipe.fail("transport", "gone") == []


def test_a_payload_after_bytes_is_a_mistake_of_the_caller():
    pipe = Normalizer("openai_chat")
    pipe.feed(Chat.text("x"))
    with pytest.raises(UsageError, match="not both"):
        pipe.feed_payload({"choices": []})


def test_half_an_event_at_the_end_is_a_cut_and_a_whole_one_counts():
    events, pipe = traced("openai_chat", Chat.text("x") + Chat.text("y").rstrip(b"\n")[:-1])
    assert (text_of(events), events[-1].kind, events[-1].reason) == ("x", "failed", "truncated")
    assert pipe.notes["stream.cut_event"] == 1
    events, pipe = traced("openai_chat", Chat.text("x") + Chat.text("y").rstrip(b"\n"))
    assert (text_of(events), pipe.notes["stream.cut_event"]) == ("xy", 0)


# --- one frame is not read as another -------------------------------------------------------------


def test_a_line_more_is_no_data_unless_it_says_so():
    frame = Chat.text("y").replace(b'"delta"', b'\n"delta"')
    events, _ = traced("openai_chat", Chat.text("x") + frame)
    assert (text_of(events), events[-1].kind, events[-1].reason) == ("x", "failed", "protocol")
    said = frame.replace(b'\n"delta', b'\ndata: "delta')
    assert text_of(traced("openai_chat", Chat.text("x") + said)[0]) == "xy"


def test_half_a_character_is_told_before_what_follows_it_in_any_chunking():
    body = Chat.text("a") + Chat.text("\ud83d") + Chat.text("x") + Chat.text("y") + Chat.end("stop")
    assert text_of(traced("openai_chat", body)[0]) == "a\ufffdxy"


# --- odd frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ['{"message": "no"}', '"no"', "no"])
def test_an_error_field_fails_the_stream(said: str):
    events, _ = traced("openai_chat", Chat.text("x") + f"error: {said}\n\n".encode())
    assert (text_of(events), events[-1]) == ("x", Failed("provider_error", "no"))


def test_half_a_character_of_an_error_is_replaced():
    error = b'data: {"error":{"message":"no \\ud83d"}}\n\n'
    assert traced("openai_chat", Chat.text("x") + error)[0][-1].error == "no \ufffd"


def test_an_event_with_blank_data_says_nothing():
    events, _ = traced("openai_chat", Chat.text("x") + b"data:  \n\n" + Chat.end("stop"))
    assert (text_of(events), events[-1].kind) == ("x", "finish")


def test_an_end_mark_without_its_blank_line_is_one():
    body = (Chat.text("x") + Chat.end("stop")).rstrip(b"\n")
    events, pipe = traced("openai_chat", body)
    assert (events[-1].kind, pipe.notes) == ("finish", {})


def test_a_call_without_arguments_is_broken_if_an_event_was_skipped_before_it():
    body = Chat.text("x") + b"data: {oops\n\n" + Chat.call(0, "a", "f", "") + Chat.end("tool_calls")
    events, _ = traced("openai_chat", body, on_bad_event="skip")
    assert [e.reason for e in events if e.kind == "broken_tool_call"] == ["conflict"]


def test_the_start_is_told_as_soon_as_model_and_response_are_known():
    pipe = Normalizer("anthropic")
    said = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}}
    assert pipe.feed(sse(said)) == [StreamStart("anthropic", "m", "msg_1")]


def test_a_first_payload_that_is_nobodys_leaves_it_open_whose_the_next_is():
    novel = {"type": "novel", "response": {"id": "r", "model": "m"}}
    pipe = Normalizer("azure_foundry")
    events = pipe.feed(sse(novel) + Chat.text("hi") + Chat.end("stop")) + pipe.close()
    assert [event.kind for event in events] == [
        "stream_start", "unrecognized", "text_delta", "finish",
    ]  # fmt: skip


def test_behind_a_first_payload_that_is_new_model_and_response_are_still_heard():
    pipe = Normalizer("openai_responses")
    pipe.feed_payload({"type": "response.novel", "sequence_number": 0})
    for number, kind in enumerate(["created", "in_progress"], 1):
        said = {"type": f"response.{kind}", "sequence_number": number}
        pipe.feed_payload({**said, "response": {"id": "resp_1", "model": "m"}})
    assert pipe.cursor == "openai_responses:resp_1:2:0"


def test_a_bare_object_behind_the_first_payload_is_no_payload_either():
    start = sse({"type": "message_start", "message": {"id": "m", "model": "m", "content": []}})
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
    for chunks in ([start, sse(said)[6:]], [start + sse(said)[6:]]):
        pipe = Normalizer("anthropic")
        events = [event for chunk in chunks for event in pipe.feed(chunk)]
        assert [event.kind for event in events] == ["stream_start"]
        assert pipe.notes["wire.stray_line"] == 1


def test_an_event_that_is_cut_in_its_second_line_is_a_cut_event():
    events, pipe = traced("openai_chat", Chat.text("hi") + Chat.text("x")[:-1] + b"da")
    assert (text_of(events), pipe.notes["stream.cut_event"]) == ("hi", 1)


JOINED = (
    b'{"message":{"content":"a"},"done":false}'
    b'{"message":{"content":"b"},"done":true,"done_reason":"stop"}'
)


def test_objects_that_are_joined_are_the_messages_of_a_socket_if_nobody_said_whose_they_are():
    pipe = Normalizer("auto")
    events = pipe.feed(JOINED) + pipe.close()
    assert (pipe.provider, text_of(events), events[-1].kind) == ("ollama", "ab", "finish")


def test_objects_that_are_joined_are_no_line_of_a_wire_of_lines():
    pipe = Normalizer("ollama")
    assert [e.kind for e in pipe.feed(JOINED) + pipe.close()] == ["failed"]


def test_an_event_of_a_wire_that_is_found_is_read_as_that_wire_reads_it():
    """Of all wires only this one has bare objects between its events."""
    bare = Gemini.text("b", finish="STOP").removeprefix(b"data: ")
    for provider in ("gemini", "auto"):
        events = Normalizer(provider).feed(Gemini.text("a") + bare)
        assert text_of(events) == "ab"


@pytest.mark.parametrize("between", [b"", b"\n"])
def test_objects_of_a_wire_of_events_are_told_by_what_they_say(between: bytes):
    said = [b'{"type":"message_start","message":{"id":"r","model":"m"}}',
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}',
            b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}', b'{"type":"message_stop"}']  # fmt: skip
    pipe = Normalizer("auto")
    events = [event for each in said for event in pipe.feed(each + between)] + pipe.close()
    assert (pipe.provider, text_of(events), events[-1].kind) == ("anthropic", "a", "finish")


def test_events_of_a_wire_of_lines_are_told_by_what_they_say():
    said = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"},
            {"type": "turn.completed", "usage": {}}]  # fmt: skip
    pipe = Normalizer("auto")
    events = pipe.feed(b"".join(map(sse, said))) + pipe.close()
    assert (pipe.provider, events[-1].kind) == ("codex", "finish")


@pytest.mark.parametrize("provider", ["bedrock", "auto"])
def test_a_wire_of_binary_frames_may_come_in_lines(provider: str):
    said = [b'{"messageStart":{"role":"assistant"}}',
            b'{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}',
            b'{"messageStop":{"stopReason":"end_turn"}}', b'{"metadata":{"usage":{}}}', b""]  # fmt: skip
    pipe = Normalizer(provider)
    events = pipe.feed(b"\n".join(said)) + pipe.close()
    assert (pipe.provider, text_of(events), events[-1].kind) == ("bedrock", "a", "finish")


def test_binary_frames_are_no_stream_of_a_wire_that_never_comes_in_them():
    pipe = Normalizer("ollama")
    frame = write_frame({":event-type": "messageStart"}, b'{"role":"assistant"}')
    assert [e.kind for e in pipe.feed(frame) + pipe.close()] == ["failed"]
