"""streamnorm.events: small, immutable values that survive every way of being carried."""

from __future__ import annotations

import copy
import json
import pickle
import typing

import msgspec
import orjson
import pytest

import streamnorm
from streamnorm import events as e
from streamnorm.events import event_from_dict, event_to_dict, event_to_json
from tests.conftest import load, over_takes, run

# The contract's table: kind -> fields beyond it, in this order.
CONTRACT = {
    "stream_start": "provider, model, response_id",
    "text_delta": "text, part, choice",
    "reasoning_delta": "text, part, choice",
    "media": "part, mime_type, data, url, choice",
    "tool_call_start": "call, id, name, family, runs_on",
    "tool_call_delta": "call, text",
    "tool_call": "call, id, name, arguments, raw, family, runs_on, choice, provenance, echo",
    "broken_tool_call": "call, id, name, raw, reason, detail, family, runs_on, choice, provenance",
    "tool_progress": "call, id, status",
    "tool_result": "call, id, output, is_error",
    "tool_started": "call, id, name, checksum",
    "tool_ended": "call, id, name, checksum, outcome, seconds",
    "citation": "part, payload",
    "usage": "input, output, cached_input, cache_write, reasoning, raw",
    "finish": "reason, raw_reason",
    "failed": "reason, error, retryable",
    "recorder_failed": "path, error",
    "unrecognized": "wire_kind, payload",
}
CLASSES = {c.kind: c for c in typing.get_args(e.Event)}
PROVENANCE = e.Provenance("natural", "call_1", "tool_calls[].id", "stated", "openai_chat", "r1")
ONE_OF_EACH = [
    e.StreamStart("anthropic", "m", "msg_1"),
    e.TextDelta("hé", 1, 2),
    e.TextDelta("no", echo={"type": "refusal"}),
    e.ReasoningDelta("hm", 0, 0, {"signature": "abc"}),
    e.TextDelta("hm", agent="writer"),
    e.Media(1, "image/png", b"\x89PNG", agent="painter"),
    e.Media(0, "audio/wav", url="https://example.org/a.wav"),
    e.ToolCallStart(0, "call_1", "f"),
    e.ToolCallDelta(0, '{"a"'),
    e.ToolCall(
        0, "call_1", "f", {"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}', provenance=PROVENANCE
    ),
    e.ToolCall(1, "call_2", "g", {}, "", "web-search", "provider", 1, PROVENANCE, {"x": 1}),
    e.BrokenToolCall(2, "call_3", "h", '{"a', "truncated", "cut", provenance=PROVENANCE),
    e.ToolProgress(0, "call_1", "searching"),
    e.ToolProgress(None, "call_1", "partial", {"image": "aGk="}),
    e.ProviderToolResult(0, "call_1", [{"type": "text", "text": "x"}], True, {"type": "r"}),
    e.ToolStarted(0, "call_1", "f", "0" * 64),
    e.ToolEnded(0, "call_1", "f", "0" * 64, "ok", 0.25),
    e.Citation(0, {"url": "https://example.org"}),
    e.Usage(1, 2, 3, 4, 5, {"input_tokens": 1}),
    e.Finish("tool_calls", "tool_use", {"container": {"id": "c"}}),
    e.Failed("limit", "too much", False, "event"),
    e.RecorderFailed("takes/a.sse", "OSError: No space left on device"),
    e.Unrecognized("odd", {"type": "odd", "n": 1.5}),
]


def ids(event: e.Event) -> str:
    return event.kind


def test_the_events_are_those_of_the_contract():
    assert set(CLASSES) == set(CONTRACT)


@pytest.mark.parametrize("kind", CONTRACT)
def test_an_event_has_the_contracts_fields_first_and_in_order(kind: str):
    fields = list(CLASSES[kind].__struct_fields__)
    wanted = CONTRACT[kind].split(", ")
    assert fields[: len(wanted)] == wanted
    assert set(fields) - set(wanted) <= {"echo", "payload", "code", "family", "agent"}


def test_there_is_one_of_each_here():
    assert {event.kind for event in ONE_OF_EACH} == set(CONTRACT)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=ids)
def test_an_event_survives_every_way_of_being_carried(event: e.Event):
    assert event_from_dict(event_to_dict(event)) == event
    assert event_from_dict(json.loads(event_to_json(event))) == event
    assert pickle.loads(pickle.dumps(event)) == event
    assert copy.copy(event) == event
    assert copy.deepcopy(event) == event
    assert event_to_dict(event)["kind"] == event.kind


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=ids)
def test_the_json_is_one_line_that_begins_with_the_kind(event: e.Event):
    line = event_to_json(event)
    assert b"\n" not in line
    assert line.startswith(b'{"kind":"%s"' % event.kind.encode())


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=ids)
def test_an_event_cannot_be_changed_and_has_no_room_for_more(event: e.Event):
    for name in (*event.__struct_fields__, "kind", "more"):
        with pytest.raises(AttributeError):
            setattr(event, name, None)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=ids)
def test_an_event_prints_its_name_and_what_it_says(event: e.Event):
    text = repr(event)
    assert text.startswith(type(event).__name__ + "(")
    assert event.__struct_fields__[0] + "=" in text


def test_orjson_writes_an_event_with_a_word_from_us():
    event = ONE_OF_EACH[6]
    assert orjson.loads(orjson.dumps(event, default=event_to_dict)) == event_to_dict(event)


def test_what_the_wire_did_not_give_is_not_in_the_json():
    assert event_to_dict(e.TextDelta("hi")) == {
        "kind": "text_delta",
        "text": "hi",
        "part": 0,
        "choice": 0,
        "agent": None,
    }
    assert event_to_dict(e.Finish("stop")) == {
        "kind": "finish",
        "reason": "stop",
        "raw_reason": None,
    }


def test_big_integers_survive_as_json():
    call = e.ToolCall(0, "a", "f", {"n": 2**80, "m": -(10**30)}, "")
    assert event_from_dict(json.loads(event_to_json(call))).arguments == {
        "n": 2**80,
        "m": -(10**30),
    }


def test_a_call_can_be_matched():
    match next(event for event in ONE_OF_EACH if event.kind == "tool_call"):
        case e.ToolCall(name="f", arguments={"a": [first, *_]}):
            assert first == 1
        case _:
            pytest.fail("no match")


def test_an_unknown_kind_is_no_event():
    with pytest.raises(msgspec.ValidationError):
        event_from_dict({"kind": "nonsense"})


def test_equal_calls_of_two_providers_have_one_checksum():
    chat = e.ToolCall(0, "call_1", "f", {"a": 1, "b": 2.0}, '{"a":1,"b":2.0}')
    claude = e.ToolCall(3, "toolu_1", "f", {"b": 2, "a": 1}, '{"b": 2, "a": 1}', echo={"x": 1})
    assert chat.checksum == claude.checksum
    assert chat.checksum != e.ToolCall(0, "call_1", "g", {"a": 1, "b": 2.0}, "").checksum


def test_every_event_class_is_public():
    for cls in CLASSES.values():
        assert getattr(streamnorm, cls.__name__) is cls
        assert cls.__doc__


@over_takes(quick=100)
def test_every_event_of_every_take_survives(path):
    take, body = load(path)
    for event in run(path.parent.name, [body], seed=take.seed):
        line = event_to_json(event)
        assert event_from_dict(json.loads(line)) == event
        assert pickle.loads(pickle.dumps(event)) == event
        line.decode()


@pytest.mark.parametrize(
    ("name", "valid"),
    [("get_weather", True), ("fs.read:2-b", True), ("a" * 128, True), ("a" * 129, False), ("", False),
     ("\x1b[31mred", False), ("two words", False), ("line\n", False), ("wéather", False), ("a/b", False)],
)  # fmt: skip
def test_a_name_that_no_tool_should_have_is_said_to_be_none(name: str, valid: bool):
    assert e.ToolCall(0, "call_1", name, {}, "{}").name_valid is valid
