"""Texts are kept exactly: nothing is eaten as a repetition, no half character becomes another one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamnorm import Normalizer, UsageError
from streamnorm.events import Citation, ReasoningDelta, TextDelta, event_to_dict, event_to_json
from tests.conftest import Chat, sse, text_of
from tests.providers.streams import (
    DONE,
    PAY,
    Gemini,
    Responses,
    broken,
    calls,
    end,
    fate,
    heard,
)

R = Responses
HIGH, LOW = "\ud83d", "\ude00"  # the halves of an emoji
PRIVATE = "\U0010d83d"  # a real character, in the range where halves once were kept

# --- snapshots --------------------------------------------------------------------------------------


def custom(text: str, **more: Any) -> bytes:
    entry = {"index": 0, "type": "custom", "custom": {"input": text, **more}}
    if more:
        entry["id"] = "a"
    return Chat.delta({"tool_calls": [entry]})


@pytest.mark.parametrize(
    "pieces", [["{", "{x}}"], ["{}", "{}"], ["{a", "{ab"], ["a", "ab", "abc"], ["{", "{", "{"]]
)
def test_the_input_of_a_text_tool_is_all_that_was_said(pieces: list[str]):
    body = custom("", name="sh") + b"".join(map(custom, pieces)) + Chat.end()
    assert calls(heard("openai_chat", body)[0]) == [("a", "sh", {"input": "".join(pieces)})]


def pieces(*texts: str) -> bytes:
    said = b"".join(Chat.call(0, None, None, text) for text in texts)
    return Chat.call(0, "a", "pay") + said + Chat.end()


@pytest.mark.parametrize(
    ("texts", "arguments"),
    [
        (('{"a":', '{"a":1}}'), {"a": {"a": 1}}),
        (('{"a":', '{"a":', '{"a":1}}}'), {"a": {"a": {"a": 1}}}),
        (('{"a":[{"a":', '{"a":[{"a":1}]}}]}'), {"a": [{"a": {"a": [{"a": 1}]}}]}),
        (('{"a":', '{"a":1', '{"a":1}'), {"a": 1}),
        (('{"a":1}', '{"a":1}'), {"a": 1}),
        (("{}", '{"a":1}'), {"a": 1}),
    ],
)
def test_a_call_that_resembles_itself_and_one_that_is_said_again_are_both_right(texts, arguments):
    assert calls(heard("openai_chat", pieces(*texts))[0]) == [("a", "pay", arguments)]


def test_what_is_no_object_in_either_reading_is_broken():
    assert fate(heard("openai_chat", pieces("{", "{x"))[0])[0] == ["invalid_json"]


# --- halves of characters ---------------------------------------------------------------------------


def assert_encodable(events: list[Any]) -> None:
    """No half has left the library: it could not be written."""
    for event in events:
        repr(event_to_dict(event)).encode()
        event_to_json(event)


@pytest.mark.parametrize(
    ("id", "name", "kept"),
    [("a" + HIGH, "pay", "call"), ("a", "pay" + HIGH, None), ("a" + HIGH, "pay" + LOW, None)],
)
def test_half_a_character_in_an_id_or_a_name_is_no_part_of_it(id: str, name: str, kept: str | None):
    events, notes = heard("openai_chat", Chat.call(0, id, name, PAY) + Chat.end())
    assert_encodable(events)
    assert notes["wire.half_character"] >= 1
    assert [c[1] for c in calls(events)] == (["pay"] if kept else [])
    assert all("\ufffd" not in c[0] + c[1] for c in calls(events) + broken(events))


def test_a_lone_half_in_arguments_breaks_the_call_and_a_pair_that_was_cut_is_one_character():
    body = Chat.call(0, "a", "pay", '{"a":"' + HIGH) + Chat.call(0, None, None, LOW + '"}')
    assert calls(heard("openai_chat", body + Chat.end())[0]) == [("a", "pay", {"a": "😀"})]
    for lone in (HIGH, LOW, LOW + HIGH, "\\ud83d"):
        events, _ = heard("openai_chat", Chat.call(0, "a", "pay", f'{{"a":"{lone}"}}') + Chat.end())
        assert fate(events)[0] in (["conflict"], ["invalid_json"])
        assert_encodable(events)


@pytest.mark.parametrize("before", [b"", Chat.text(HIGH) + Chat.text(LOW), Chat.text(HIGH)])
def test_real_characters_of_the_private_planes_are_never_changed(before: bytes):
    said = PRIVATE + "\U0010d800\U0010dfff\U000f0000\U0010ffff"
    body = before + Chat.text(said) + Chat.text(HIGH + said)
    body += Chat.call(0, "a", "pay", f'{{"a":"{said}"}}') + Chat.end()
    events, _ = heard("openai_chat", body)
    assert calls(events) == [("a", "pay", {"a": said})]
    assert text_of(events).count(said) == 2


def test_half_a_character_in_a_result_or_an_argument_of_the_providers_own_tool_fails_no_stream():
    found = {"type": "file_search_call", "id": "fs", "queries": ["q"], "results": [{"t": HIGH}]}
    body = R.CREATED + R.done(found) + R.completed(found)
    events, _ = heard("openai_responses", body)
    assert (calls(events), end(events)) == (
        [("fs", "file_search", {"queries": ["q"]})],
        ("finish", "stop"),
    )
    assert [e.output for e in events if e.kind == "tool_result"] == [[{"t": "\ufffd"}]]
    searched = {"type": "web_search_call", "id": "ws", "action": {"query": HIGH}}
    events, _ = heard("openai_responses", R.CREATED + R.done(searched) + R.completed(searched))
    assert fate(events) == (["invalid_json"], ("finish", "stop"))


def test_half_a_character_in_the_final_response_does_not_unsay_it():
    item = R.call(id="fc", call_id="a", arguments=PAY)
    body = R.CREATED + R.added(item) + R.done(item) + R.completed(item, R.message(HIGH))
    events, _ = heard("openai_responses", body)
    assert fate(events) == ([{"n": 1}], ("finish", "tool_calls"))


def test_half_a_character_in_an_object_of_arguments_breaks_the_call():
    called = {"functionCall": {"id": "a", "name": "pay", "args": {"a": HIGH}}}
    assert fate(heard("gemini", Gemini.parts(called, finish="STOP"))[0])[0] == ["invalid_json"]


# --- other odds -------------------------------------------------------------------------------------

THINKING = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, {"type": "reference", "reference_ids": [1]}],
     "signature": "c2ln"},
]  # fmt: skip


@pytest.mark.parametrize("provider", ["auto", "openai_chat", "mistral"])
def test_thinking_in_a_list_of_content_is_reasoning_whatever_the_wire_is_called(provider: str):
    body = Chat.delta({"role": "assistant", "content": ""}) + Chat.delta({"content": THINKING})
    events, notes = heard(provider, body + Chat.text("Hi") + Chat.end("stop"))
    thoughts = [e for e in events if isinstance(e, ReasoningDelta)]
    assert ["".join(e.text for e in thoughts), text_of(events)] == ["Hm", "Hi"]
    assert thoughts[-1].echo["signature"] == "c2ln"
    assert [e.payload["reference_ids"] for e in events if isinstance(e, Citation)] == [[1]]
    assert notes == {}


def test_thinking_that_is_one_text_and_parts_of_a_kind_that_is_new():
    content = ["a", {"type": "thinking", "thinking": "Hm"}, {"type": "new", "x": 1}]
    events, notes = heard("openai_chat", Chat.delta({"content": content}) + Chat.end("stop"))
    assert [(type(e), e.text) for e in events if isinstance(e, TextDelta | ReasoningDelta)] == [
        (TextDelta, "a"), (ReasoningDelta, "Hm"),
    ]  # fmt: skip
    assert notes == {"wire.kind_unknown": 1}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("depth", [0, 3])
def test_a_number_that_json_cannot_say_is_refused_and_not_told_as_null(number: float, depth: int):
    value: Any = number
    for _ in range(depth):
        value = [{"x": value}]
    called = {"functionCall": {"id": "a", "name": "pay", "args": {"n": value}}}
    pipe = Normalizer("gemini")
    with pytest.raises(UsageError, match="NaN or Infinity"):
        pipe.feed_payload({"candidates": [{"content": {"parts": [called]}}]})


def test_null_is_still_null():
    called = {"functionCall": {"id": "a", "name": "pay", "args": {"n": None}}}
    events = Normalizer("gemini").feed_payload({"candidates": [{"content": {"parts": [called]}}]})
    assert calls(events) == [("a", "pay", {"n": None})]


@pytest.mark.parametrize("id", [None, "a"])
def test_a_name_that_changes_in_mid_call_is_a_note_and_may_be_two_calls(id: str | None):
    body = Chat.call(0, "a", "pay", '{"n"') + Chat.call(0, id, "ray", ":1}") + Chat.end()
    events, notes = heard("openai_chat", body)
    assert (fate(events)[0], notes) == (["conflict"], {"call.name_changed": 1})


def test_a_name_in_pieces_before_the_first_fragment_is_joined_with_a_note():
    body = Chat.call(0, "a", "get_") + Chat.call(0, None, "weather") + Chat.call(0, None, None, PAY)
    events, notes = heard("openai_chat", body + Chat.end())
    assert (calls(events), notes) == ([("a", "get_weather", {"n": 1})], {"call.name_joined": 1})


def test_a_proxy_that_ends_the_first_event_with_its_own_mark_is_no_stream():
    assert end(heard("openai_responses", sse("[DONE]") + DONE)[0])[0] == "failed"


def test_half_a_character_behind_the_text_of_a_call_is_told_before_its_end():
    item = {"type": "function_call", "id": "it", "call_id": "A", "name": "pay", "arguments": ""}
    placed = {"output_index": 0, "item_id": "it"}
    events, _ = heard(
        "openai_responses",
        b"".join(
            map(sse, (
                {"type": "response.created", "response": {"id": "r"}},
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.function_call_arguments.delta", **placed, "delta": "{}" + HIGH},
                {"type": "response.output_item.done", "output_index": 0,
                 "item": {**item, "arguments": "{}", "status": "completed"}},
            ))
        ),
    )  # fmt: skip
    kinds = [e.kind for e in events]
    ends = [n for n, kind in enumerate(kinds) if kind in ("tool_call", "broken_tool_call")]
    assert len(ends) == 1
    assert "tool_call_delta" not in kinds[ends[0] :]
    assert [e.text for e in events if e.kind == "tool_call_delta"] == ["{}", "\ufffd"]
