"""Guards of Ollama that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm.events import Failed
from tests.conftest import traced
from tests.providers.streams import fate
from tests.providers.test_evidence_wires import O_END, o_call, o_line


def heard(*lines: Any) -> list[Any]:
    return traced("ollama", b"".join(json.dumps(line).encode() + b"\n" for line in lines))[0]


@pytest.mark.parametrize("new", [{}, {"new": 1}])
def test_the_last_line_is_the_end_and_counts_what_it_counts(new: dict[str, Any]):
    events = heard(o_line(o_call(None)), {**O_END, "eval_count": 4, **new})
    assert fate(events) == ([{}], ("finish", "tool_calls"))
    (usage,) = [e for e in events if e.kind == "usage"]
    assert (usage.output, usage.raw) == (4, {"eval_count": 4})


def test_a_call_without_arguments_has_no_fragment():
    events = heard(o_line(o_call(None)), O_END)
    assert [e.kind for e in events][1:-1] == ["tool_call_start", "tool_call"]


@pytest.mark.parametrize("word", ["function", "arguments", "tool_calls"])
def test_a_field_that_we_do_not_know_is_a_loss_if_it_speaks_of_calls(word: str):
    line = {"message": {"content": "hi"}, "done": False}
    assert fate(heard(o_line(o_call(None)), {**line, "new": {word: 1}}, O_END))[0] == ["conflict"]
    assert fate(heard(o_line(o_call(None)), {**line, "new": {"x": 1}}, O_END))[0] == [{}]


def test_where_there_is_no_message_arguments_under_another_name_are_a_loss_too():
    entry = {"function": {"name": "pay", "ARGUMENTS": {"to": "me"}}}
    assert fate(heard({"tool_calls": [entry], "done": False}, O_END))[0] == ["conflict"]
    assert fate(heard({"tool_calls": [o_call({"to": "me"})]}, O_END))[0] == [{"to": "me"}]


def test_images_are_media_and_what_is_no_base64_is_passed_on_whole():
    events = heard({"message": {"content": "", "images": ["aGk=", "a?"]}, "done": False}, O_END)
    assert [(e.data, e.mime_type) for e in events if e.kind == "media"] == [
        (b"hi", "application/octet-stream")
    ]
    told = [(e.wire_kind, e.payload) for e in events if e.kind == "unrecognized"]
    assert told == [("media/message.images", "a?")]


@pytest.mark.parametrize("new", [{}, {"new": 1}])
@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ("boom", "boom", None),
        ({"message": "boom", "code": 500}, "boom", "500"),
        ({"message": "boom", "type": "api_error"}, "boom", "api_error"),
    ],
)
def test_an_error_is_told_in_its_words(error: Any, message: str, code: str | None, new: Any):
    assert heard({"error": error, **new})[-1] == Failed("provider_error", message, False, code)


def test_calls_beside_a_message_are_told_unless_it_has_its_own():
    beside = {"message": {"content": "hi"}, "tool_calls": [o_call({"to": "me"})]}
    assert fate(heard(beside, O_END)) == ([{"to": "me"}], ("finish", "tool_calls"))
    assert [e.kind for e in heard({**beside, **O_END, "message": beside["message"]})][1:3] == [
        "text_delta",
        "tool_call_start",
    ]
    both = {**o_line(o_call({"to": "me"})), "tool_calls": [o_call({"to": "you"})]}
    assert fate(heard(both, O_END))[0] == [{"to": "me"}, "conflict"]


def test_an_error_without_words_fails_the_stream_too():
    assert [e.kind for e in heard({"error": "", "new": 1}, O_END)] == ["failed"]


def test_bytes_that_were_replaced_in_one_call_are_not_missing_in_the_next_of_its_line():
    calls = [o_call({"to": to}) for to in ("?", "me")]
    body = b"".join(json.dumps(p).encode() + b"\n" for p in (o_line(*calls), O_END))
    events, _ = traced("ollama", body.replace(b"?", b"\xff"))
    assert fate(events)[0] == [{"to": "me"}, "conflict"]


@pytest.mark.parametrize("place", ["message", "line"])
@pytest.mark.parametrize(("new", "told"), [("text", ["conflict"]), (7, [{"n": 1}])])
def test_a_text_beside_a_function_that_is_missing_may_be_of_another_call(place, new, told):
    calls = [o_call({"n": 1}), {"new": new}]
    line = o_line(*calls) if place == "message" else {"tool_calls": calls, "done": False}
    assert fate(heard(line, O_END))[0][:1] == told
