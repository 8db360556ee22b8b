"""Gemini, guard by guard: what makes a call whole, doubtful or broken, and how a turn ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamnorm import Limits
from streamnorm.events import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Unrecognized,
    Usage,
)
from streamnorm.limits import LimitReached
from streamnorm.providers.gemini.told import Told
from tests.conftest import sse, text_of
from tests.core.test_calls import Desk
from tests.providers.streams import DONE, Gemini, broken, calls, end, fate, heard

parts = Gemini.parts
STOP = parts(finish="STOP")
CUT = ("failed", "truncated")
CALLED, STOPPED = ("finish", "tool_calls"), ("finish", "stop")


def told(body: bytes, **options: Any) -> list[Event]:
    return heard("gemini", body, **options)[0]


def call(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


def at(path: Any, kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"jsonPath": path, f"{kind}Value": value, **more}


def piece(*values: dict[str, Any], more: bool = True, **fields: Any) -> dict[str, Any]:
    said: dict[str, Any] = {**fields, "partialArgs": list(values)}
    return call(**(said | {"willContinue": True} if more else said))


BEGUN = parts(call(name="f", willContinue=True))
OVER = parts(call())


def deltas(events: list[Event]) -> list[str]:
    return [e.text for e in events if isinstance(e, ToolCallDelta)]


# --- a call told value by value -------------------------------------------------------------------

DEEP = "$" + ".a" * 200
CONFLICT = "conflict"
# values in the order they come -> the arguments, or why there are none
VALUES: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "two texts": ([at("$.a", "string", "x"), at("$.b", "string", "y")], {"a": "x", "b": "y"}),
    "a text in two pieces": ([at("$.a", "string", "x"), at("$.a", "string", "y")], {"a": "xy"}),
    "a text that goes on after another value": (
        [at("$.a", "string", "x"), at("$.b", "number", 1), at("$.a", "string", "y")],
        {"a": "xy", "b": 1},
    ),
    "the same number twice": ([at("$.a", "number", 1), at("$.a", "number", 1)], {"a": 1}),
    "another number": ([at("$.a", "number", 1), at("$.a", "number", 2)], CONFLICT),
    "a number after a text": ([at("$.a", "string", "x"), at("$.a", "number", 5)], CONFLICT),
    "a text after a number": ([at("$.a", "number", 1), at("$.a", "string", "x")], CONFLICT),
    "a list": ([at("$.a[0]", "number", 1), at("$.a[1]", "bool", True)], {"a": [1, True]}),
    "a list from its end": ([at("$.a[1]", "number", 2), at("$.a[0]", "number", 1)], {"a": [1, 2]}),
    "a list with a hole": ([at("$.a[0]", "number", 1), at("$.a[2]", "number", 2)], CONFLICT),
    "a list that begins late": ([at("$.a[1]", "number", 2)], CONFLICT),
    "a list with a key": ([at("$.a[0]", "number", 1), at("$.a.b", "number", 2)], CONFLICT),
    "an object with an index": ([at("$.a.b", "number", 1), at("$.a[0]", "number", 2)], CONFLICT),
    "a value at and below": ([at("$.a", "number", 1), at("$.a.b", "number", 2)], CONFLICT),
    "a value below and at": ([at("$.a.b", "number", 2), at("$.a", "number", 1)], CONFLICT),
    "back into an object": (
        [at("$.a.b", "number", 1), at("$.c", "string", "x"), at("$.a.d", "string", "y")],
        {"a": {"b": 1, "d": "y"}, "c": "x"},
    ),
    "objects and lists": (
        [at("$.a", "struct", {"b": 1}), at("$.c", "list", [1])], {"a": {"b": 1}, "c": [1]},
    ),
    "null": ([at("$.a", "null", "NULL_VALUE")], {"a": None}),
    "null as it is": ([at("$.a", "null", None)], {"a": None}),
    "null beside a value": ([{"jsonPath": "$.a", "nullValue": None, "numberValue": 1}], {"a": 1}),
    "a field that is new": ([at("$.a", "number", 1), {"x": {"y": 1}, **at("$.b", "bool", False)}],
                            {"a": 1, "b": False}),
    "no value": ([{"jsonPath": "$.a"}], CONFLICT),
    "a text that is null": ([at("$.a", "string", None)], CONFLICT),
    "a kind that is new": ([at("$.a", "bytes", "eA==")], CONFLICT),
    "a number that is no number": ([at("$.a", "number", "NaN")], "invalid_json"),
    "a number in quotes": ([at("$.a", "number", "5")], CONFLICT),
    "a text that begins like a number": ([at("$.a", "string", "Nope")], {"a": "Nope"}),
    "no path": ([{"numberValue": 1}], CONFLICT),
    "a path that is no text": ([at(5, "number", 1)], CONFLICT),
    "a path without its root": ([at("a.b", "number", 1)], CONFLICT),
    "a path before its root": ([at("a$.b", "number", 1)], CONFLICT),
    "a path whose first step has no dot": ([at("$a.b", "number", 1)], CONFLICT),
    "a value said in two ways": ([at("$.a", "number", 1, stringValue="x")], CONFLICT),
    "a value that was to go on": ([at("$.a", "string", "x", willContinue=True)], CONFLICT),
    "a value that goes on": (
        [at("$.a", "string", "x", willContinue=True), at("$.a", "string", "y")], {"a": "xy"}),
    "a path with quotes": (
        [at("$['b c']", "number", 1), at('$["d\\"e"]', "number", 2)], {"b c": 1, 'd"e': 2},
    ),
    "a path that nobody can read": ([at("$.a[", "number", 1)], CONFLICT),
    "a deep path": ([at(DEEP, "number", 1)], "deep"),
    "a path that is too deep": ([at(DEEP + ".a", "number", 1)], CONFLICT),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_arguments_are_their_values_in_any_order_unless_they_contradict(name: str):
    values, expected = VALUES[name]
    if expected == "deep":
        expected = 1
        for _ in range(200):
            expected = {"a": expected}
    bodies = [
        parts(piece(*values, name="f", more=False)) + STOP,
        BEGUN + b"".join(parts(piece(value)) for value in values) + OVER + STOP,
    ]
    for body in bodies:
        told_, last = fate(told(body, limits=Limits(depth=300)))
        assert (told_, last) == ([expected], CALLED if isinstance(expected, dict) else STOPPED)


def test_values_are_told_as_they_come_until_one_is_out_of_order():
    values = [at("$.a[0]", "string", "x"), at("$.b", "number", 1), at("$.a[1]", "bool", True)]
    body = BEGUN + b"".join(parts(piece(v)) for v in values)
    body += parts(piece(at("$.c", "number", 2))) + OVER + STOP
    events, notes = heard("gemini", body)
    assert calls(events)[0][2] == {"a": ["x", True], "b": 1, "c": 2}
    assert deltas(events) == ['{"a":["x', '"],"b":1']
    assert notes["wire.shape_odd"] == 1


def test_whole_arguments_may_come_after_the_promise_of_more():
    """Whether they stand in a usual chunk or in one that has more to say."""
    for more in ({}, {"thoughtSignature": "s"}):
        body = BEGUN + parts({**call(name="f", args={"n": 1}), **more}) + STOP
        events, notes = heard("gemini", body)
        assert fate(events) == ([{"n": 1}], CALLED)
        assert deltas(events) == ['{"n": 1}']
        assert notes == {"call.id_synthetic": 1}


@pytest.mark.parametrize("more", [{}, {"thoughtSignature": "s"}], ids=["bare", "signed"])
@pytest.mark.parametrize("finish", [None, "STOP"])
def test_two_calls_of_one_chunk_are_two_and_one_of_a_later_chunk_is_a_copy(more, finish):
    said = {**call(id="a", name="f", args={"n": 1}), **more}
    events, notes = heard("gemini", parts(said, said, finish=finish) + STOP)
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [{"n": 1}] * 2
    assert notes["call.id_duplicate"] == 1
    events, notes = heard("gemini", parts(said) + parts(said, finish=finish) + STOP)
    assert calls(events) == [("a", "f", {"n": 1})]
    assert notes["call.start_repeated"] == 1


def test_a_value_that_could_not_be_read_is_named_in_the_detail():
    body = parts(piece(at("$.a", "bytes", "x"), {"jsonPath": "$.b"}, name="f", more=False)) + STOP
    (first,) = [e for e in told(body) if isinstance(e, BrokenToolCall)]
    assert "(bytesValue)" in first.detail
    body = parts(piece({"jsonPath": "$.b"}, name="f", more=False)) + STOP
    (first,) = [e for e in told(body) if isinstance(e, BrokenToolCall)]
    assert "(none)" in first.detail


def test_a_contradiction_breaks_one_call_and_ends_it():
    body = BEGUN + parts(piece(at("$.a[", "number", 1))) + parts(call(name="g", args={})) + STOP
    events = told(body)
    assert [e.kind for e in events[-5:]] == [
        "broken_tool_call", "tool_call_start", "tool_call_delta", "tool_call", "finish",
    ]  # fmt: skip
    assert fate(events) == (["conflict", {}], CALLED)


def test_an_id_that_comes_with_a_later_piece_is_the_calls():
    body = parts(piece(at("$.a", "number", 1), name="f")) + parts(call(id="late")) + STOP
    assert calls(told(body)) == [("late", "f", {"a": 1})]


def test_the_first_signature_of_a_call_goes_back_with_it():
    one, two = {"thoughtSignature": "one"}, {"thoughtSignature": "two"}
    first = {**call(name="f", willContinue=True), **one}
    for body in (parts(first) + OVER, BEGUN + parts({**call(), **one}),
                 parts(first) + parts({**call(), **two})):  # fmt: skip
        (event,) = [e for e in told(body + STOP) if isinstance(e, ToolCall)]
        assert event.echo == {"thoughtSignature": "one"}


def test_a_piece_of_no_call_is_no_call_and_noted():
    events, notes = heard("gemini", parts(piece(at("$.a", "number", 1), more=False)) + STOP)
    assert (fate(events), notes) == (([], STOPPED), {"call.unannounced": 1})
    events, notes = heard("gemini", parts(call(name="")) + STOP)
    assert (fate(events), notes) == (([], STOPPED), {"call.late": 1})
    events, notes = heard("gemini", OVER + STOP)
    assert (fate(events), notes) == (([], STOPPED), {"call.late": 1})


@pytest.mark.parametrize(
    "said",
    [{"name": "", "args": {"n": 1}}, {"args": {"n": 1}}, {"id": "a"},
     {"name": "", "args": {"n": 1}, "willContinue": False}],
)  # fmt: skip
def test_a_call_without_a_name_is_broken_and_not_lost(said: dict[str, Any]):
    assert fate(told(parts(call(**said)) + STOP)) == (["conflict"], STOPPED)


def test_text_beside_the_pieces_of_a_call_does_it_no_harm():
    for text in ({"text": "x"}, {"text": "x", "thought": True}, {"text": ""}):
        assert fate(told(BEGUN + parts(text) + OVER + STOP)) == ([{}], CALLED)


@pytest.mark.parametrize("part", [{}, {"new": 1}, {"videoMetadata": {}}])
def test_a_part_that_says_nothing_between_the_pieces_of_a_call_breaks_it(part: dict[str, Any]):
    assert fate(told(BEGUN + parts(part) + OVER + STOP)) == (["conflict"], STOPPED)


# --- what is lost ---------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"thoughtSignature": "s"}])
def test_bytes_that_were_replaced_break_their_own_call_alone(more: dict[str, Any]):
    bad, good = ({**call(name=n, args={"a": "?"}), **more} for n in ("bad", "good"))
    body = parts(bad, good).replace(b"?", b"\xff", 1) + STOP
    events = told(body)
    assert [(n, r) for _, n, r in broken(events)] == [("bad", "conflict")]
    assert [(n, a) for _, n, a in calls(events)] == [("good", {"a": "?"})]


@pytest.mark.parametrize(
    "odd", [{"executableCode": {"code": 5}}, {"toolCall": {"id": "1", "args": {"a": "?"}}}]
)
def test_what_is_lost_of_a_call_that_the_provider_runs_is_of_no_other_beside_it(
    odd: dict[str, Any],
):
    body = parts(odd, call(name="good", args={"n": 1})).replace(b"?", b"\xff") + STOP
    assert fate(told(body)) == ([{"n": 1}, "conflict"], CALLED)


@pytest.mark.parametrize("word", ["functionCall", "partialArgs", "args"])
def test_a_new_field_of_a_part_that_has_a_calls_words_inside_breaks_the_open_call(word: str):
    """Beside a text: a part that says nothing would break it anyway."""
    lost = parts({"text": "x", "wrapped": {word: [{"n": 1}]}})
    assert fate(told(BEGUN + lost + OVER + STOP)) == (["conflict"], STOPPED)
    assert fate(told(BEGUN + parts({"text": "x", "new": 1}) + OVER + STOP)) == ([{}], CALLED)


@pytest.mark.parametrize("word", ["functionCall", "partialArgs", "args"])
def test_a_payload_of_no_known_field_that_has_a_calls_words_breaks_the_open_call(word: str):
    assert fate(told(BEGUN + sse({"new": {word: {}}}) + OVER + STOP)) == (["conflict"], STOPPED)
    assert fate(told(BEGUN + sse({"new": {"x": {}}}) + OVER + STOP)) == ([{}], CALLED)


def test_a_place_that_cannot_be_read_breaks_the_open_calls():
    odd = sse({"candidates": [{"content": {"parts": [{"text": "x"}]}, "index": [1]}]})
    assert fate(told(BEGUN + odd + OVER + STOP))[0] == ["conflict"]


def test_what_cannot_be_read_of_one_candidate_breaks_no_call_of_another():
    odd = {"functionCall": {"name": "g", "willContinue": "?"}}
    for index, expected in ((1, [{"n": 1}, "conflict"]), (0, ["conflict"] * 2)):
        candidate = {"content": {"parts": [odd]}, "index": index}
        last = parts(piece(at("$.n", "number", 1), more=False)) + STOP + parts(finish="STOP", at=1)
        body = BEGUN + sse({"candidates": [candidate]}) + last
        assert fate(told(body))[0] == expected
    assert fate(told(BEGUN + sse({"candidates": [5]}) + OVER + STOP)) == (["conflict"], STOPPED)


# --- names that an SDK spells otherwise -----------------------------------------------------------


def test_the_dict_of_an_sdk_object_is_read_as_the_wire():
    part = {
        "function_call": {"name": "f", "args": {"some_arg": 1}, "id": "a", "will_continue": None}
    }
    candidate = {"content": {"parts": [part], "role": None}, "finish_reason": "STOP"}
    events, notes = heard("gemini", sse({"candidates": [candidate], "usage_metadata": None}))
    assert (calls(events), end(events)) == ([("a", "f", {"some_arg": 1})], CALLED)
    assert set(notes) == {"wire.shape_odd"}


def test_the_dict_of_an_sdk_object_may_have_bytes_that_are_replaced():
    candidate = {"content": {"parts": [{"text": "x?"}]}, "finish_reason": "STOP"}
    events = told(sse({"candidates": [candidate]}).replace(b"?", b"\xff"))
    assert (text_of(events), end(events)) == ("x\ufffd", STOPPED)


def test_a_new_field_whose_name_has_bytes_that_are_replaced_is_left_out():
    events = told(parts({"text": "x", "n?w": 1}).replace(b"?", b"\xff") + STOP)
    assert (text_of(events), end(events)) == ("x", STOPPED)


def test_a_field_that_is_new_keeps_its_name():
    events, notes = heard("gemini", parts({"new_field": 1}) + STOP)
    assert [e.payload for e in events if isinstance(e, Unrecognized)] == [{"new_field": 1}]
    assert notes == {"wire.field_unknown": 1, "wire.kind_unknown": 1}


def test_a_known_name_in_another_place_is_a_field_that_is_new():
    body = sse({"candidates": [{"thoughtSignature": "x", "finishReason": "STOP"}]})
    assert heard("gemini", body)[1] == {"wire.field_unknown": 1}


def test_a_field_of_a_part_that_has_another_type_is_odd_and_left_out():
    events, notes = heard("gemini", parts({"text": 5}, {"text": "x"}) + STOP)
    assert (text_of(events), notes) == ("x", {"wire.field_odd": 1})


# --- other parts ----------------------------------------------------------------------------------


def test_parts_that_are_empty_say_nothing():
    body = parts({"text": ""}) + parts({}) + parts({}, finish="STOP")
    events, notes = heard("gemini", body)
    assert ([e.kind for e in events], notes) == (["stream_start", "finish"], {})


def test_a_signature_alone_goes_back():
    events = told(parts({"text": "x"}) + parts({"thoughtSignature": "s"}) + STOP)
    (event,) = [e for e in events if isinstance(e, TextDelta) and not e.text]
    assert event.echo == {"thoughtSignature": "s"}


def test_a_text_beside_code_is_told_and_a_signature_only_once():
    code = {"executableCode": {"language": None, "code": "1"}, "thoughtSignature": "s"}
    events = told(parts({**code, "text": "x"}) + STOP)
    assert text_of(events) == "x"
    events = told(parts(code) + STOP)
    assert not any(isinstance(e, TextDelta | ReasoningDelta) for e in events)
    (event,) = [e for e in events if isinstance(e, ToolCall)]
    assert event.echo == {"thoughtSignature": "s"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [("1", {"code": "1"}), ("", {"code": ""}), (None, "conflict"), (5, "conflict")],
)
def test_code_is_the_text_that_came_or_no_call(code: Any, expected: Any):
    events = told(parts({"executableCode": {"code": code}}) + STOP)
    assert fate(events) == ([expected], STOPPED)
    assert deltas(events) == ([code] if code == "1" else [])


def test_a_server_tool_without_a_type_or_arguments_has_neither():
    events = told(parts({"toolCall": {"id": "a"}}) + STOP)
    (event,) = [e for e in events if isinstance(e, ToolCall)]
    assert (event.name, event.arguments, event.echo) == ("server_tool", {}, None)
    assert deltas(events) == []


def test_a_chunk_in_an_envelope_is_read():
    inner = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}
    events = told(sse({"response": inner}))
    assert (text_of(events), end(events)) == ("x", STOPPED)


def test_an_error_or_a_block_beside_candidates_is_heard():
    beside = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}
    last = told(sse({**beside, "error": {"code": 503, "status": "UNAVAILABLE"}}))[-1]
    assert isinstance(last, Failed)
    assert (last.reason, last.code, last.retryable) == ("provider_error", "UNAVAILABLE", True)
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert end(told(sse({**beside, **blocked}))) == ("finish", "content_filter")


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ("no", "no", None),
        ("", "the provider reported an error", None),
        ({"code": 429}, "429", "429"),
        (
            {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "no"},
            "no",
            "RESOURCE_EXHAUSTED",
        ),
        ({"message": "no"}, "no", None),
        ({"details": []}, "the provider reported an error", None),
    ],
)
def test_an_error_says_what_it_says(error: Any, message: str, code: str | None):
    last = told(Gemini.text("x") + sse({"error": error}))[-1]
    assert isinstance(last, Failed)
    assert (last.error, last.code, last.retryable) == (message, code, code is not None)


def test_counts_that_the_last_chunk_leaves_out_are_kept():
    body = parts({"text": "x"}, usageMetadata={"promptTokenCount": 3, "cachedContentTokenCount": 2})
    body += parts({"text": "y"}, usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 5})
    body += parts({"text": "z"}) + STOP
    (usage,) = [e for e in told(body) if isinstance(e, Usage)]
    assert (usage.input, usage.output, usage.cached_input) == (3, 5, 2)


# --- the end --------------------------------------------------------------------------------------


def test_stop_on_a_chunk_that_promises_more_of_a_call_is_no_end():
    body = parts(call(name="f", willContinue=True), finish="STOP")
    assert fate(told(body)) == (["truncated"], CUT)
    assert fate(told(body + parts(call(), finish="STOP"))) == ([{}], CALLED)
    bad = parts(piece(at("$.a[", "number", 1), name="f"), finish="STOP")
    assert fate(told(bad)) == (["conflict"], CUT)


def test_stop_on_another_chunk_ends_the_turn_and_the_promised_call_is_broken():
    for last in (STOP, sse({"candidates": [{"finishReason": "STOP"}]}),
                 sse({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]})):  # fmt: skip
        assert fate(told(BEGUN + last)) == (["truncated"], STOPPED)


def test_the_token_limit_ends_a_call_that_was_promised_more():
    last = parts(call(willContinue=True), finish="MAX_TOKENS")
    assert fate(told(BEGUN + last)) == (["length"], ("finish", "length"))


def test_a_reason_that_was_said_is_not_taken_back_by_stop():
    for words in (("STOP", "MAX_TOKENS"), ("MAX_TOKENS", "STOP"), ("MAX_TOKENS", "SAFETY")):
        body = b"".join(parts(finish=word) for word in words)
        assert end(told(Gemini.text("x") + body)) == ("finish", "length")


def test_of_two_failures_the_first_is_told_with_its_message():
    failing = {"content": {"parts": []}, "finishReason": "OTHER"}
    second = {"finishReason": "NO_IMAGE", "index": 1, "finishMessage": "no"}
    for message, said in (({"finishMessage": "because"}, "because"),
                          ({}, "the answer ended with OTHER")):  # fmt: skip
        last = told(sse({"candidates": [{**failing, **message}, second]}))[-1]
        assert isinstance(last, Failed)
        assert (last.reason, last.code, last.error) == ("provider_error", "OTHER", said)


@pytest.mark.parametrize(
    ("word", "echo"), [("SAFETY", {"finishMessage": "because"}), ("STOP", msgspec.UNSET)]
)
def test_why_a_turn_did_not_end_normally_is_kept(word: str, echo: Any):
    candidate = {"content": {"parts": [{"text": "x"}]}, "finishReason": word}
    last = told(sse({"candidates": [{**candidate, "finishMessage": "because"}]}))[-1]
    assert isinstance(last, Finish)
    assert last.echo == echo


def test_half_an_event_behind_the_end_is_a_cut():
    body = Gemini.text("x", finish="STOP") + b'data: {"candi'
    assert end(told(body)) == CUT
    blocked = sse({"promptFeedback": {"blockReason": "SAFETY"}})
    assert end(told(blocked)) == ("finish", "content_filter")
    assert end(told(blocked + b'data: {"candi')) == CUT


def test_a_second_candidate_without_an_end_is_a_cut():
    assert end(told(Gemini.text("x", finish="STOP") + Gemini.text("y", at=1))) == CUT


def test_a_reason_that_is_empty_is_none():
    events, notes = heard("gemini", Gemini.text("x", finish=""))
    assert (end(events), notes) == (CUT, {})


def test_nothing_is_read_behind_the_end_mark_of_another_wire():
    events, notes = heard("gemini", Gemini.text("x", finish="STOP") + DONE + Gemini.text("y"))
    assert (text_of(events), end(events), notes) == ("x", STOPPED, {"stream.after_end": 1})


def test_a_blocked_prompt_is_the_reason_whatever_candidates_say():
    blocked = sse({"promptFeedback": {"blockReason": "SAFETY"}})
    assert end(told(blocked + Gemini.text("x"))) == ("finish", "content_filter")
    assert end(told(blocked + Gemini.text("x", finish="STOP"))) == ("finish", "content_filter")


def test_the_old_word_for_the_end_of_a_call_is_known():
    events, notes = heard("gemini", parts(call(id="a", name="f", args={}), finish="FUNCTION_CALL"))
    assert (fate(events), notes) == (([{}], CALLED), {})


@pytest.mark.parametrize(
    ("word", "fates"), [("SAFETY", [{}, "truncated"]), ("STOP", [{}, {}]), ("MAX_TOKENS", [{}, "length"])]
)  # fmt: skip
def test_a_call_without_arguments_is_decided_by_its_own_candidate(word: str, fates: list[Any]):
    body = parts(call(name="f"), finish="STOP") + parts(call(name="g"), finish=word, at=1)
    events = told(body)
    assert fate(events)[0] == fates
    promised = parts(call(name="g", willContinue=True), at=1) + parts(finish=word, at=1)
    events = told(Gemini.text("x", finish="STOP") + promised)
    assert fate(events)[0] == ["length" if word == "MAX_TOKENS" else "truncated"]


def test_nothing_of_an_unknown_part_is_lost():
    (event,) = [e for e in told(parts({"new": 1}) + STOP) if isinstance(e, Unrecognized)]
    assert event.payload == {"new": 1}


# --- limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("many", "code"), [(2, None), (3, "calls")])
def test_as_many_candidates_are_heard_as_there_may_be_calls(many: int, code: str | None):
    body = b"".join(Gemini.text("x", at=n, finish="STOP") for n in range(many))
    assert getattr(told(body, limits=Limits(calls=2))[-1], "code", None) == code


STEP = 32  # what a step of a path counts beside its name


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ([(("a",), "123")], STEP + 1 + 3),
        ([(("a",), "1"), (("a",), "2"), (("a",), "3")], STEP + 1 + 3),
        ([(("a",), "1"), (("bc",), "2")], STEP + 1 + 1 + STEP + 2 + 1),
        ([(("l", 0), "1"), (("l", 1), "2")], 2 * (STEP + 1 + STEP + 1)),
    ],
    ids=["a value", "pieces of one", "another place", "places in a list"],
)
def test_values_and_the_places_that_change_count_until_their_limit(said: list[Any], size: int):
    for limit in (size, size - 1):
        values = Told(Desk().open(id="a", name="f"), limit)
        *before, (path, text) = said
        for each, value in before:
            values.promise(each, False)
            values.say(each, value, True)
        if limit == size:
            values.promise(path, False)
            values.say(path, text, True)
            continue
        with pytest.raises(LimitReached):
            values.promise(path, False)
            values.say(path, text, True)
