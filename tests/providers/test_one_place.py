"""One place is one call, one answer is one turn: what comes twice, or for two, is told for none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Chat, sse, text_of
from tests.providers.streams import Responses, calls, end, fate, heard

R = Responses
PAY, ROB = '{"n":1}', '{"n":2}'


def function(id: str, call_id: str, name: str, arguments: str = "", **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": id, "call_id": call_id, "name": name}
    return {**item, "arguments": arguments, **more}


def responses(*frames: bytes) -> Any:
    return fate(heard("openai_responses", b"".join((R.CREATED, *frames)))[0])


def piece(text: str, place: int, item: str, kind: str = "delta") -> bytes:
    field = "delta" if kind == "delta" else "arguments"
    return sse(
        {"type": f"response.function_call_arguments.{kind}", "output_index": place, "item_id": item,
         field: text}
    )  # fmt: skip


# --- Responses: places and items ------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        function("f2", "c2", "rob", ROB),
        {"type": "custom_tool_call", "id": "f2", "call_id": "c2", "name": "rob", "input": "x"},
    ],
    ids=["another name", "another type"],
)
def test_another_item_in_the_place_of_an_open_call_breaks_that_one(other: dict[str, Any]):
    told, _ = responses(
        R.added(function("f1", "c1", "pay"), 0), piece(PAY, 0, "f2"), R.done(other, 0), R.completed()
    )  # fmt: skip
    assert told == ["conflict", {"n": 2} if "arguments" in other else {"input": "x"}]


def test_a_copy_whose_place_and_item_are_those_of_two_calls_is_told_for_neither():
    told, _ = responses(
        R.added(function("f1", "c1", "pay"), 0), R.added(function("f2", "c2", "rob"), 1),
        piece(ROB, 0, "f2", "done"), R.done(function("f1", "c1", "pay"), 0),
        R.done(function("f2", "c2", "rob"), 1), R.completed(),
    )  # fmt: skip
    assert told == ["conflict", "conflict"]


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_fragment_whose_place_and_item_are_those_of_two_calls_is_told_for_neither(before: int):
    told, _ = responses(
        R.added(function("f1", "c1", "pay"), 0), R.added(function("f2", "c2", "rob"), 1),
        piece(" ", 0, "f1") * before, piece(ROB, 0, "f2"), R.done(function("f1", "c1", "pay"), 0),
        R.done(function("f2", "c2", "rob"), 1), R.completed(),
    )  # fmt: skip
    assert told == ["conflict", "conflict"]


def test_what_an_item_called_incomplete_stays_so_whatever_the_final_response_says():
    item = function("f1", "c1", "pay", PAY, status="completed")
    told, _ = responses(R.done({**item, "status": "incomplete"}, 0), R.completed(item))
    assert told == ["truncated"]


@pytest.mark.parametrize(
    "copy",
    [
        R.text_done("Hi", 1, item_id="msg_1"),
        R.text_done("Hi").replace(b'"content_index": 0', b'"content_index": 1'),
        R.done(R.message("Hi"), 1),
    ],
    ids=["its place", "its part", "the place of its item"],
)
def test_a_copy_of_a_text_whose_place_was_changed_is_not_told_again(copy: bytes):
    body = R.CREATED + R.added(R.message("")) + R.text("Hi") + copy + R.completed()
    assert text_of(heard("openai_responses", body)[0]) == "Hi"


# --- an answer that begins again ------------------------------------------------------------------

BEGUN_TWICE = {
    "openai_responses": (
        R.CREATED, R.added(function("f1", "c1", "pay"), 0) + piece(PAY, 0, "f1"), R.completed(),
    ),
    "cohere": (
        sse({"type": "message-start", "id": "m"}),
        sse({"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {
            "id": "c1", "type": "function", "function": {"name": "pay", "arguments": PAY}}}}}),
        sse({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}),
    ),
    "gemini_interactions": (
        sse({"event_type": "interaction.created", "interaction": {"id": "i"}}),
        sse({"event_type": "step.start", "index": 0,
             "step": {"type": "function_call", "id": "c1", "name": "pay"}})
        + sse({"event_type": "step.delta", "index": 0,
               "delta": {"type": "arguments_delta", "arguments": PAY}}),
        sse({"event_type": "interaction.completed", "interaction": {"status": "completed"}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("wire", BEGUN_TWICE)
def test_a_call_that_was_open_when_the_answer_began_again_is_void(wire: str):
    start, call, over = BEGUN_TWICE[wire]
    assert fate(heard(wire, start + call + over)[0])[0] == [{"n": 1}]
    assert fate(heard(wire, start + call + start + over)[0])[0] == ["conflict"]


# --- ends -----------------------------------------------------------------------------------------


def test_an_interaction_that_does_not_say_how_it_ended_ends_as_other():
    start, call, _ = BEGUN_TWICE["gemini_interactions"]
    odd = sse({"event_type": "interaction.completed", "interaction": {"id": "i"}})
    assert fate(heard("gemini_interactions", start + call + odd)[0]) == (
        ["truncated"], ("finish", "other"),
    )  # fmt: skip


@pytest.mark.parametrize("text", [PAY, ""])
def test_messages_without_their_end_mark_tell_only_what_was_closed_and_is_there(text: str):
    def block(index: int) -> bytes:
        started = {"type": "tool_use", "id": f"t{index}", "name": "pay", "input": {}}
        begun = sse({"type": "content_block_start", "index": index, "content_block": started})
        said = {"type": "input_json_delta", "partial_json": text}
        return begun + sse({"type": "content_block_delta", "index": index, "delta": said})

    start = sse({"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}})
    closed = block(0) + sse({"type": "content_block_stop", "index": 0})
    reason = sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    told, ended = fate(heard("anthropic", start + closed + block(1) + reason)[0])
    assert told == ([{"n": 1}, "truncated"] if text else ["truncated", "truncated"])
    assert ended == ("finish", "tool_calls")


@pytest.mark.parametrize(
    "error",
    [{"error": {"message": "boom"}}, {"type": "error", "error": {"message": "boom"}},
     {"type": "error", "error": "boom"}],
)  # fmt: skip
@pytest.mark.parametrize("wire", ["cohere", "gemini_interactions", "anthropic", "openai_responses"])
def test_an_error_is_one_on_every_wire_whatever_it_is_wrapped_in(wire: str, error: dict[str, Any]):
    start = {"anthropic": sse({"type": "message_start", "message": {"id": "m"}})}.get(
        wire, BEGUN_TWICE.get(wire, (b"",))[0]
    )
    last = heard(wire, start + sse(error))[0][-1]
    assert (last.kind, last.reason, last.error) == ("failed", "provider_error", "boom")


def test_a_list_of_errors_is_an_error():
    body = Chat.text("Hi") + sse({"errors": [{"message": "boom"}], "success": False}) + Chat.end()
    assert end(heard("openai_chat", body)[0]) == ("failed", "provider_error")


# --- kinds that were damaged ----------------------------------------------------------------------


def test_a_kind_with_a_letter_lost_is_a_damaged_one_and_another_is_new():
    begun = R.CREATED + R.added(function("f1", "c1", "pay"), 0)
    closed = R.done(function("f1", "c1", "pay"), 0) + R.completed()
    lost = sse({"type": "response.function_call_arguments.delt", "text": PAY})
    new = sse({"type": "response.weather_report.added", "text": PAY})
    assert fate(heard("openai_responses", begun + lost + closed)[0])[0] == ["conflict"]
    assert fate(heard("openai_responses", begun + new + closed)[0])[0] == [{}]


def test_a_kind_that_is_no_text_leaves_what_it_closes_in_doubt():
    start = sse({"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}})
    block = {"type": "tool_use", "id": "t", "name": "pay", "input": {"n": 1}}
    begun = sse({"type": "content_block_start", "index": 0, "content_block": block})
    over = sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    over += sse({"type": "message_stop"})
    for kind, told in (("content_block_stop", [{"n": 1}]), ({"x": 1}, ["conflict"])):
        stop = sse({"type": kind, "index": 0}, "content_block_stop")
        assert fate(heard("anthropic", start + begun + stop + over)[0])[0] == told


def test_an_odd_payload_that_says_a_field_twice_leaves_its_calls_in_doubt():
    entry = Chat.call(0, "a", "pay", PAY)
    twice = entry.replace(b'"id": "a"', b'"id": 7, "id": "a"')
    assert twice != entry
    assert fate(heard("openai_chat", twice + Chat.end())[0])[0] == ["conflict"]


def test_a_damaged_chunk_that_does_not_say_of_which_answer_it_is_may_be_of_any():
    begun = Chat.call(0, "a", "pay", PAY) + Chat.call(1, "b", "rob", '{"n":', choice=0)
    piece = Chat.call(1, None, None, "2}").replace(b'"index": 0, "delta"', b'"in\xff": 0, "delta"')
    assert fate(heard("openai_chat", begun + piece + Chat.end())[0])[0] == ["conflict"] * 2


# --- Chat: words on every chunk, names, other answers ---------------------------------------------


@pytest.mark.parametrize("word", ["stop", "tool_calls", "length"])
@pytest.mark.parametrize("wire", ["openai_chat", "mistral"])
def test_a_placeholder_beside_a_word_for_the_end_is_not_the_call(wire: str, word: str):
    first = Chat.call(0, "a", "pay", "{}", finish=word)
    body = first + Chat.call(0, None, None, PAY, finish=word) + Chat.DONE
    assert calls(heard(wire, body)[0]) == [("a", "pay", {"n": 1})]
    alone = heard(wire, first + Chat.DONE)[0]
    assert calls(alone) == [("a", "pay", {})]


def test_a_placeholder_after_which_the_end_is_said_is_the_call_also_without_the_end_mark():
    body = Chat.call(0, "a", "pay", "{}") + Chat.delta({}, "tool_calls")
    assert calls(heard("openai_chat", body)[0]) == [("a", "pay", {})]


def test_objects_that_add_up_wait_for_the_end():
    def said(arguments: Any, **more: Any) -> bytes:
        function = {"arguments": arguments, **more}
        return Chat.delta({"tool_calls": [{"index": 0, "id": "a", "function": function}]}, "stop")

    events, _ = heard("openai_chat", said({"a": 1}, name="pay") + said({"b": 2}) + Chat.DONE)
    assert calls(events) == [("a", "pay", {"a": 1, "b": 2})]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((None, "pay", ""), (None, "rob", ROB), ["conflict"]),
        ((None, "pay", ""), (None, "rob", ""), ["conflict"]),
        (("a", "get_", ""), (None, "weather", ROB), [{"n": 2}]),
        (("a", "get_x", ""), (None, "get_", ROB), ["conflict"]),
        ((None, "pay", ""), (None, "pay", ROB), [{"n": 2}]),
        ((None, "pa", ""), (None, "pay", ROB), [{"n": 2}]),
        ((None, None, ""), (None, "pay", ROB), [{"n": 2}]),
    ],
    ids=["two calls", "two empty ones", "in pieces", "cut", "again", "grown", "late"],
)
def test_another_name_is_the_rest_of_the_first_or_a_doubt(first: Any, second: Any, told: Any):
    body = Chat.call(0, *first) + Chat.call(0, *second) + Chat.end()
    assert fate(heard("openai_chat", body)[0])[0] == told


@pytest.mark.parametrize(
    ("text", "told"), [("", ["conflict", {"n": 2}]), (PAY, [{"n": 1}, {"n": 2}])]
)
def test_an_id_that_begins_again_in_another_place_leaves_an_empty_call_in_doubt(
    text: str, told: Any
):
    body = Chat.call(0, "a", "pay", text) + Chat.call(1, "a", "pay", ROB) + Chat.end()
    assert fate(heard("openai_chat", body)[0])[0] == told


def test_the_end_of_the_stream_is_that_of_the_first_answer_that_speaks():
    both = Chat.text("Hi") + Chat.call(0, "a", "pay", PAY, choice=1)
    ends = Chat.delta({}, "stop", 1) + Chat.delta({}, "stop") + Chat.DONE
    events, _ = heard("openai_chat", both + ends)
    assert (calls(events), end(events)) == ([("a", "pay", {"n": 1})], ("finish", "stop"))
    alone = Chat.call(0, "a", "pay", PAY, choice=1) + Chat.delta({}, "stop", 1) + Chat.DONE
    events, _ = heard("openai_chat", alone)
    assert (calls(events), end(events)) == ([("a", "pay", {"n": 1})], ("finish", "tool_calls"))
