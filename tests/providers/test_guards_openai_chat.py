"""Guards of Chat Completions that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.events import BrokenToolCall, Failed, ToolCall, ToolCallStart
from tests.conftest import Chat, run, sse, text_of
from tests.providers.streams import DONE, PAY, broken, calls, end, fate, heard, payloads

CHATS = ["openai_chat", "mistral"]
PAID = [("a", "pay", {"n": 1})]
CALL = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": PAY}}
EMPTY = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": ""}}
RARE = {"token_id": 7}  # a field that only the full types know


def chunk(part: dict[str, Any], **more: Any) -> bytes:
    return sse({"choices": [{"index": 0, **part}], **more})


# --- the end --------------------------------------------------------------------------------------


def test_a_word_beside_a_call_ends_it_where_payloads_come_without_their_end_mark():
    said = {"choices": [{"index": 0, "delta": {"tool_calls": [EMPTY]}, "finish_reason": "stop"}]}
    assert fate(payloads("openai_chat", said)) == ([{}], ("finish", "tool_calls"))
    assert fate(heard("openai_chat", sse(said))[0]) == (["truncated"], ("finish", "stop"))


def test_the_token_limit_beside_a_call_is_its_end_without_an_end_mark_too():
    events, _ = heard("openai_chat", Chat.call(0, "a", "pay", '{"n"', finish="length"))
    assert fate(events) == (["length"], ("finish", "length"))


@pytest.mark.parametrize("rare", [{}, {"logprobs": 1}, {"seed": 1}])
@pytest.mark.parametrize("provider", CHATS)
def test_an_end_needs_no_delta(provider: str, rare: dict[str, Any]):
    body = Chat.call(0, "a", "pay", PAY) + chunk({"finish_reason": "tool_calls", **rare}) + DONE
    events, _ = heard(provider, body)
    assert fate(events) == ([{"n": 1}], ("finish", "tool_calls"))
    assert "unrecognized" not in {event.kind for event in events}


@pytest.mark.parametrize(
    "said", [{"tool_calls": [EMPTY], **RARE}, {"function_call": EMPTY["function"]}]
)
def test_a_word_beside_a_piece_of_a_call_ends_it_only_with_the_end_mark(said: dict[str, Any]):
    body = Chat.delta(said, "tool_calls")
    assert fate(heard("openai_chat", body)[0]) == (["truncated"], ("finish", "tool_calls"))
    assert fate(run("openai_chat", [body + DONE])) == ([{}], ("finish", "tool_calls"))


# --- fragments, on the way that is written out for speed ------------------------------------------


def test_fragments_of_two_calls_in_one_chunk_reach_both():
    begun = Chat.call(0, "a", "pay", '{"n"') + Chat.call(1, "b", "pay", '{"n"')
    pieces = [{"index": n, "function": {"arguments": f":{n}}}"}} for n in (0, 1)]
    events, _ = heard("openai_chat", begun + Chat.delta({"tool_calls": pieces}) + Chat.end())
    assert calls(events) == [("a", "pay", {"n": 0}), ("b", "pay", {"n": 1})]


@pytest.mark.parametrize("text", ["", None])
def test_a_fragment_without_text_says_nothing(text: str | None):
    nothing = Chat.delta({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
    events, _ = heard("openai_chat", Chat.call(0, "a", "pay", PAY) + nothing + Chat.end())
    assert calls(events) == PAID
    assert [e.text for e in events if e.kind == "tool_call_delta"] == [PAY]


# --- ids that come late ---------------------------------------------------------------------------


def said_of(name: str | None, text: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": text}
    return {**more, "function": {k: v for k, v in function.items() if v is not None}}


@pytest.mark.parametrize("name", [None, "pay"])
def test_without_an_index_an_id_that_comes_late_is_of_the_last_call(name: str | None):
    body = Chat.delta({"tool_calls": [said_of("pay")]})
    body += Chat.delta({"tool_calls": [said_of(name, PAY, id="a")]})
    assert calls(heard("openai_chat", body + Chat.end())[0]) == PAID


FIRST = said_of("pay", "")


@pytest.mark.parametrize(
    ("lists", "name"),
    [
        ([[FIRST, said_of("pay", PAY, id="b")]], "pay"),
        ([[FIRST, said_of("refund", PAY, id="b")]], "refund"),
        ([[FIRST], [said_of("refund", PAY, id="b")]], "refund"),
    ],
)
def test_without_an_index_a_second_entry_or_one_with_a_name_of_its_own_begins_a_call(lists, name):
    body = b"".join(Chat.delta({"tool_calls": each}) for each in lists) + Chat.end()
    first, second = calls(heard("openai_chat", body)[0])
    assert (first[1:], second) == (("pay", {}), ("b", name, {"n": 1}))


@pytest.mark.parametrize(
    ("first", "arguments"), [(said_of("pay", id="a"), {}), (said_of("pay", '{"n":2}'), {"n": 2})]
)
def test_without_an_index_an_id_after_a_call_with_an_id_or_text_begins_another(first, arguments):
    body = Chat.delta({"tool_calls": [first]})
    body += Chat.delta({"tool_calls": [said_of("pay", PAY, id="b")]}) + Chat.end()
    events, _ = heard("openai_chat", body)
    assert fate(events)[0] == [arguments, {"n": 1}]


# --- what a chunk must say to be one --------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "passed_on"),
    [
        ({"usage": {"prompt_tokens": 3}}, False),
        ({"usage": {"prompt_tokens": 3}, "type": "new"}, True),  # other wires have kinds
        ({"id": "x"}, True),
        ({"object": "chat.completion.chunk"}, False),
    ],
)
def test_a_chunk_without_choices_must_say_something_that_we_know(said: Any, passed_on: bool):
    events, _ = heard("openai_chat", Chat.text("hi") + sse({**said, "new": 1}) + Chat.end("stop"))
    told = [e.payload for e in events if e.kind == "unrecognized"]
    assert told == ([{**said, "new": 1}] if passed_on else [])
    counted = [e.input for e in events if e.kind == "usage"]
    assert counted == ([3] if "usage" in said and not passed_on else [])


# --- errors that are the payload itself -----------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {"object": "error", "message": "boom"},
        {"type": "error", "message": "boom"},
        {"detail": "boom"},
        {"error": {"message": "boom"}},
        {"x_groq": {"error": {"message": "boom"}}},
    ],
)
def test_a_payload_that_is_an_error_fails_the_stream(said: dict[str, Any]):
    events, _ = heard("openai_chat", Chat.call(0, "a", "pay", '{"n"') + sse(said))
    assert fate(events) == (["provider_error"], ("failed", "provider_error"))
    assert events[-1].error == "boom"  # type: ignore[union-attr]


def test_a_detail_beside_choices_is_no_error():
    body = chunk({"delta": {"content": "hi"}}, detail="fine") + Chat.end("stop")
    events, _ = heard("openai_chat", body)
    assert (text_of(events), end(events)) == ("hi", ("finish", "stop"))


# --- an answer said all at once -------------------------------------------------------------------


@pytest.mark.parametrize("provider", CHATS)
def test_a_message_in_place_of_a_delta_is_heard_as_one(provider: str):
    message = {"role": "assistant", "content": "hi", "tool_calls": [CALL]}
    events, notes = heard(provider, chunk({"message": message}) + Chat.end())
    assert (text_of(events), calls(events)) == ("hi", PAID)
    assert notes["wire.shape_odd"] == 1


@pytest.mark.parametrize("provider", CHATS)
def test_a_whole_answer_that_is_no_stream_is_told_to_be_one(provider: str):
    said = {"message": {"content": "hi"}, "finish_reason": "stop"}
    events, _ = heard(provider, chunk(said, object="chat.completion"))
    assert end(events) == ("failed", "protocol")
    assert "stream=true" in events[-1].error  # type: ignore[union-attr]


def test_an_end_without_a_message_is_an_end_even_in_a_whole_answers_words():
    said = {"finish_reason": "stop", "seed": 1}
    events, _ = heard("openai_chat", chunk(said, object="chat.completion") + DONE)
    assert end(events) == ("finish", "stop")


@pytest.mark.parametrize("message", [{"content": 5}, "hi"])
@pytest.mark.parametrize("provider", CHATS)
def test_a_message_that_cannot_be_read_may_have_been_of_any_open_call(provider: str, message: Any):
    body = Chat.call(0, "a", "pay", PAY) + chunk({"message": message}) + Chat.end()
    events, _ = heard(provider, body)
    assert broken(events) == [("a", "pay", "conflict")]
    assert [e.payload for e in events if e.kind == "unrecognized"] == [
        {"type": "message", "message": message}
    ]


@pytest.mark.parametrize("provider", CHATS)
def test_a_message_beside_a_delta_says_nothing(provider: str):
    body = chunk({"delta": {"content": "hi"}, "message": {"content": "hi"}}) + Chat.end("stop")
    events, _ = heard(provider, body)
    assert (text_of(events), end(events)) == ("hi", ("finish", "stop"))


# Calls of the whole message beside the last delta, which said a call: ids -> those that are told.
COPIES: dict[str, tuple[list[str | None], list[str]]] = {
    "the same": (["a"], ["a"]),
    "one more": (["a", "b"], ["a", "b"]),
    "another in its stead": (["b"], ["a"]),
    "one more without an id": (["a", None], ["a"]),
    "none": ([], ["a"]),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_message_beside_a_delta_tells_only_calls_of_which_no_delta_said_anything(name: str):
    ids, expected = COPIES[name]
    function = {"name": "pay", "arguments": PAY}
    message = {"role": "assistant", "tool_calls": [{"id": id, "function": function} for id in ids]}
    last = chunk({"delta": {}, "message": message, "finish_reason": "tool_calls"})
    body = Chat.call(0, "a", "pay", PAY) + last + DONE
    assert calls(heard("openai_chat", body)[0]) == [(id, "pay", {"n": 1}) for id in expected]


@pytest.mark.parametrize("pieces", [["", PAY], ['{"n"', ":1}"], ["", '{"n"', ":1}"]])
def test_a_call_whose_id_came_late_is_the_one_of_its_id_in_such_a_message(pieces: list[str]):
    *first, last = pieces
    begun = Chat.call(0, None, "pay", first[0]) + b"".join(
        Chat.call(0, None, None, t) for t in first[1:]
    )
    function = {"name": "pay", "arguments": PAY}
    message = {"role": "assistant", "tool_calls": [{"id": id, "function": function} for id in "ab"]}
    end = chunk({"delta": {}, "message": message, "finish_reason": "tool_calls"})
    body = begun + Chat.call(0, "a", None, last) + end + DONE
    assert calls(heard("openai_chat", body)[0]) == [(id, "pay", {"n": 1}) for id in "ab"]


@pytest.mark.parametrize(("many", "code"), [(2, None), (3, "calls")])
def test_as_many_choices_are_heard_as_there_may_be_calls(many: int, code: str | None):
    said = {"delta": {"content": "x"}, "finish_reason": "stop"}
    body = b"".join(chunk({"index": n, **said}) for n in range(many))
    last = heard("openai_chat", body + DONE, limits=Limits(calls=2))[0][-1]
    assert getattr(last, "code", None) == code


def test_an_executed_tool_that_says_something_else_when_it_is_done_is_broken():
    said = [{"index": 0, "type": "search", "arguments": text} for text in (PAY, '{"n":2}')]
    body = b"".join(Chat.delta({"executed_tools": [tool]}) for tool in said) + Chat.end("stop")
    assert fate(heard("openai_chat", body)[0])[0] == [{"n": 1}, "conflict"]


# --- where a part of a call could be --------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ({"tool_calls": 1}, ["conflict"]),
        ({"type": "function"}, ["conflict"]),
        ({"arguments": "1"}, ["conflict"]),
        ({"function_call": 1}, ["conflict"]),
        ({"anything": 1}, [{"n": 1}]),
    ],
)
def test_a_field_that_we_do_not_know_is_a_loss_if_it_speaks_of_calls(new: Any, told: list[Any]):
    body = Chat.call(0, "a", "pay", PAY) + Chat.delta({"new": new}) + Chat.end()
    assert fate(heard("openai_chat", body)[0])[0] == told


def test_an_input_of_another_type_is_a_loss():
    entry = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    odd = {"index": 0, "custom": {"input": 5}}
    body = Chat.delta({"tool_calls": [entry]}) + Chat.delta({"tool_calls": [odd]}) + Chat.end()
    assert fate(heard("openai_chat", body)[0])[0] == ["conflict"]


def test_an_input_of_another_type_beside_the_name_of_its_tool_is_a_loss():
    entry = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": 5}}
    more = {"index": 0, "custom": {"input": "ls"}}
    body = Chat.delta({"tool_calls": [entry]}) + Chat.delta({"tool_calls": [more]}) + Chat.end()
    assert fate(heard("openai_chat", body)[0])[0] == ["conflict"]


# --- reasoning and media, beside rare fields ------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_is_told_beside_rare_fields(field: str):
    for rare in ({}, RARE):
        events, _ = heard("openai_chat", Chat.delta({field: "hm", **rare}) + Chat.end("stop"))
        assert [e.text for e in events if e.kind == "reasoning_delta"] == ["hm"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"reasoning": "hm", "reasoning_details": [{"text": "ha"}]}, "hm"),
        ({"reasoning_details": [{"text": "ha"}, "x", {"summary": "!"}, {}]}, "ha!"),
        ({"reasoning_details": [3]}, ""),
        ({"reasoning_opaque": "xyz"}, ""),
    ],
)
def test_what_must_go_back_with_a_thought_is_kept_with_its_text(said: dict[str, Any], text: str):
    events, _ = heard("openai_chat", Chat.delta(said) + Chat.end("stop"))
    echo = {k: v for k, v in said.items() if k != "reasoning"}
    assert [(e.text, e.echo) for e in events if e.kind == "reasoning_delta"] == [(text, echo)]


@pytest.mark.parametrize(
    "media", [{"audio": "x"}, {"audio": {"data": "a?"}}, {"images": {"id": "x"}}]
)
def test_media_that_cannot_be_read_are_passed_on_whole(media: dict[str, Any]):
    events, notes = heard("openai_chat", Chat.delta(media) + Chat.end("stop"))
    told = [(e.wire_kind, e.payload) for e in events if e.kind == "unrecognized"]
    ((field, said),) = media.items()
    assert told == [(f"media/delta.{field}", said)]
    assert notes["wire.media_unreadable"] == 1


# --- tools that the provider runs -----------------------------------------------------------------


def executed(*tools: dict[str, Any]) -> list[Any]:
    body = b"".join(Chat.delta({"executed_tools": [tool]}) for tool in tools) + Chat.end("stop")
    events, _ = heard("openai_chat", body)
    return [e for e in events if e.kind not in ("stream_start", "finish")]


def test_an_executed_tool_without_an_index_is_the_first():
    told = executed(
        {"name": "search", "arguments": PAY},
        {"index": 0, "name": "search", "arguments": PAY, "output": "sunny", "score": None},
    )
    assert [e.kind for e in told] == [
        "tool_call_start", "tool_call_delta", "tool_call", "tool_result",
    ]  # fmt: skip
    assert told[-1].output == {"output": "sunny"}


def test_an_executed_tool_whose_arguments_follow_is_told_with_them():
    told = executed({"index": 0, "name": "search", "arguments": ""}, {"index": 0, "arguments": PAY})
    assert [e.kind for e in told] == ["tool_call_start", "tool_call_delta", "tool_call"]
    assert told[-1].arguments == {"n": 1}


def test_what_an_executed_tool_produced_is_not_told_before_its_call():
    told = executed({"index": 0, "name": "search", "output": "sunny"})
    assert [e.kind for e in told] == ["tool_call_start", "tool_call"]


def test_an_executed_tool_whose_arguments_are_no_text_is_not_told_without_them():
    told = executed({"index": 0, "name": "search", "arguments": {"n": 1}})
    assert [(e.kind, getattr(e, "reason", "")) for e in told] == [
        ("tool_call_start", ""), ("broken_tool_call", "conflict"),
    ]  # fmt: skip


# --- Mistral --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "at", "fate_of_it"),
    [("b", 0, {"n": 1}), ("\ud83d", 0, "conflict"), ("\ud83d", 1, {"n": 1})],
)
def test_a_call_whose_id_cannot_be_read_may_be_the_one_whose_place_it_takes(id, at, fate_of_it):
    body = Chat.call(0, "a", "pay", PAY) + Chat.call(at, id, "pay", PAY) + Chat.end()
    told = fate(heard("openai_chat", body)[0])[0]
    assert sorted(told, key=str) == sorted([{"n": 1}, fate_of_it], key=str)


@pytest.mark.parametrize(
    ("word", "fates"),
    [("length", ["conflict"]), ("stop", [{"n": 1}]), ("new_word", [{"n": 1}])],
)
def test_a_call_that_begins_after_the_token_limit_was_said_is_not_told(word, fates):
    body = Chat.delta({"content": "so"}, word) + Chat.call(0, "a", "pay", PAY)
    events, _ = heard("openai_chat", body + Chat.end("tool_calls"))
    assert fate(events)[0] == fates


@pytest.mark.parametrize("provider", [*CHATS, "dashscope"])
@pytest.mark.parametrize(
    ("texts", "fates"),
    [
        (({"n": 1}, {"m": 2}), [{"n": 1, "m": 2}]),
        ((PAY, {"m": 2}), ["conflict"]),
        (({"n": 1}, '{"m":2}'), ["conflict"]),
        (("{}", {"m": 2}), ["conflict"]),
        (("", {"m": 2}), [{"m": 2}]),
    ],
)
def test_only_where_all_arguments_of_a_payload_are_objects_they_add_up(provider, texts, fates):
    entries = [{"index": 0, "id": "a", "function": {"name": "pay", "arguments": t}} for t in texts]
    said = {"tool_calls": entries}
    body = Chat.delta(said, "tool_calls") + DONE
    if provider == "dashscope":
        body = sse({"output": {"choices": [{"message": said, "finish_reason": "tool_calls"}]}})
    assert fate(run(provider, [body]))[0] == fates


@pytest.mark.parametrize("old", [True, False])
def test_of_one_chunk_text_and_an_object_are_the_arguments_of_two_calls_and_of_none_alone(
    old: bool,
):
    if old:
        said = [{"function_call": {"name": "pay", "arguments": t}} for t in ("{}", {"m": 2})]
        parts = [{"index": 0, "delta": delta, "finish_reason": "stop"} for delta in said]
        assert fate(run("openai_chat", [sse({"choices": parts}) + DONE]))[0] == ["conflict"]
    other = {"index": 1, "id": "b", "function": {"name": "pay", "arguments": {"m": 2}}}
    body = Chat.delta({"tool_calls": [CALL, other]}, "tool_calls") + DONE
    assert fate(run("openai_chat", [body]))[0] == [{"n": 1}, {"m": 2}]


@pytest.mark.parametrize("rare", [{}, RARE])
@pytest.mark.parametrize(
    ("first", "rest", "fates"),
    [('{"n":', "1}", [{"n": 1}, {"n": 1}]), ("{}", '{"n":1}', ["conflict", {"n": 1}])],
)
def test_what_was_whole_before_the_word_beside_a_piece_of_another_is_over(rare, first, rest, fates):
    other = {"index": 1, "id": "b", "function": {"name": "pay", "arguments": PAY}}
    body = Chat.call(0, "a", "pay", first) + Chat.delta(
        {"tool_calls": [other], **rare}, "tool_calls"
    )
    body += Chat.delta({"tool_calls": [{"index": 0, "function": {"arguments": rest}}]})
    events, _ = heard("openai_chat", body + Chat.end())
    calls = sorted(
        (e for e in events if isinstance(e, ToolCall | BrokenToolCall)), key=lambda e: e.call
    )
    assert [getattr(e, "arguments", None) or e.reason for e in calls] == fates


@pytest.mark.parametrize(
    ("between", "fates"),
    [
        ({}, ["conflict"]),
        ({"id": "a"}, [{"n": 1}]),
        ({"function": {"name": "pay"}}, [{"n": 1}]),
        ({"extra_content": {"signature": "s"}}, [{"n": 1}]),
    ],
)
def test_a_piece_in_the_midst_of_a_text_says_its_id_its_name_or_what_goes_back(between, fates):
    body = Chat.call(0, "a", "pay", '{"n":')
    for entry in (between, {"function": {"arguments": "1}"}}):
        body += Chat.delta({"tool_calls": [{"index": 0, **entry}]})
    assert fate(heard("openai_chat", body + Chat.end())[0])[0] == fates


@pytest.mark.parametrize(
    ("said", "again", "fates"),
    [
        ("function", {}, ["conflict"]),
        ("function", {"function": {}}, [{}]),
        ("custom", {"custom": {}}, [{"input": ""}]),
    ],
)
def test_a_piece_without_a_function_has_lost_the_arguments_of_an_empty_call(said, again, fates):
    text = {"function": "arguments", "custom": "input"}[said]
    entry = {"index": 0, "id": "a", said: {"name": "pay", text: ""}}
    body = b"".join(Chat.delta({"tool_calls": [e]}) for e in (entry, {"index": 0, **again}))
    assert fate(heard("openai_chat", body + Chat.end())[0])[0] == fates


def test_a_piece_that_only_says_the_id_of_a_text_tool_is_of_no_other_kind():
    begun = {"index": 0, "id": "a", "custom": {"name": "pay", "input": "go"}}
    body = b"".join(Chat.delta({"tool_calls": [e]}) for e in (begun, {"index": 0, "id": "a"}))
    assert fate(heard("openai_chat", body + Chat.end())[0])[0] == [{"input": "go"}]


@pytest.mark.parametrize("new", [{}, {"new": 1}])  # a field that we do not know changes nothing
@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"error": {"message": "boom", "code": "e1"}}, "e1"),
        ({"error": "boom", "code": "e1"}, "e1"),
        ({"object": "error", "message": "boom", "type": "e1"}, "e1"),
        ({"message": "boom", "code": "e1"}, "e1"),
        ({"message": {"message": "boom", "code": "e1"}, "object": "error"}, "e1"),
        ({"detail": "boom"}, None),
        ({"detail": "boom", "choices": []}, None),
    ],
)
def test_an_error_of_mistral_fails_the_stream(said: dict[str, Any], code: str, new: dict[str, Any]):
    events, _ = heard("mistral", Chat.call(0, "a", "pay", '{"n"') + sse({**said, **new}))
    assert fate(events) == (["provider_error"], ("failed", "provider_error"))
    assert (events[-1].error, events[-1].code) == ("boom", code)  # type: ignore[union-attr]


def test_an_error_of_mistral_without_words_is_one_too():
    events, _ = heard("mistral", Chat.text("hi") + sse({"object": "error"}))
    assert end(events) == ("failed", "provider_error")


@pytest.mark.parametrize("new", [{}, {"new": 1}])
def test_counts_alone_and_a_message_beside_choices_are_no_error(new: dict[str, Any]):
    counts = sse({"usage": {"prompt_tokens": 3, "completion_tokens": 4}, **new})
    body = chunk({"delta": {"content": "hi"}}, message="fine", **new) + counts + Chat.end("stop")
    events, _ = heard("mistral", body)
    assert (text_of(events), end(events)) == ("hi", ("finish", "stop"))
    assert [(e.input, e.output) for e in events if e.kind == "usage"] == [(3, 4)]


@pytest.mark.parametrize("provider", CHATS)
@pytest.mark.parametrize("rare", [{}, {"prefix": False}])
def test_a_word_beside_text_is_the_end_of_the_calls_before_it(provider: str, rare: dict[str, Any]):
    body = Chat.call(0, "a", "pay", "") + Chat.delta({"content": "", **rare}, "tool_calls")
    assert fate(heard(provider, body)[0]) == ([{}], ("finish", "tool_calls"))


# --- after the end --------------------------------------------------------------------------------

END = chunk({"delta": {}, "finish_reason": "tool_calls"})


@pytest.mark.parametrize("provider", CHATS)
def test_what_goes_on_after_a_word_for_the_end_that_stood_alone_is_in_doubt(provider: str):
    """The word was of another answer, or the piece is: they are not of one turn."""
    pieces = Chat.call(0, "a", "pay", '{"n"'), END, Chat.call(0, None, None, ":1}")
    body = b"".join(pieces) + END + DONE
    assert fate(heard(provider, body)[0]) == (["conflict"], ("finish", "tool_calls"))


@pytest.mark.parametrize("provider", CHATS)
def test_it_is_in_doubt_for_each_call_that_had_begun_and_for_none_that_begins_later(provider: str):
    begun = Chat.call(0, "a", "pay", '{"n"') + Chat.call(1, "b", "rob", '{"n"')
    rest = (
        Chat.call(1, None, None, ":1}")
        + Chat.call(0, None, None, ":1}")
        + Chat.call(2, "c", "ask", '{"n"')
    )
    body = begun + END + rest + Chat.call(2, None, None, ":3}")
    told = fate(heard(provider, body + END + DONE)[0])
    assert told == (["conflict", "conflict", {"n": 3}], ("finish", "tool_calls"))


@pytest.mark.parametrize(("between", "told"), [({}, "conflict"), ({"x": 1}, {"n": 1})])
def test_a_payload_that_says_nothing_at_all_lost_what_it_had_and_a_new_one_did_not(between, told):
    body = Chat.call(0, "a", "pay", '{"n"') + sse(between) + Chat.call(0, None, None, ":1}")
    assert fate(heard("openai_chat", body + END + DONE)[0])[0] == [told]


# --- entries ----------------------------------------------------------------------------------------


def entries(*said: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    return chunk({"delta": {"tool_calls": list(said)}, "finish_reason": finish, **more})


BEGUN = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": '{"n"'}}
REST = {"index": 0, "function": {"arguments": ":1}"}}


@pytest.mark.parametrize("provider", CHATS)
def test_a_reason_before_the_last_piece_of_a_call_is_not_the_end(provider: str):
    body = entries(BEGUN, finish="stop") + entries(REST)
    assert end(run(provider, [body])) == ("failed", "truncated")
    assert fate(run(provider, [body + DONE])) == ([{"n": 1}], ("finish", "tool_calls"))
    middle = entries({"index": 0, "function": {"arguments": ":"}})
    assert end(run(provider, [entries(BEGUN, finish="stop") + middle])) == ("failed", "truncated")


# Pieces of one call, each with the word for the end beside it, or alone.
WORDS_BESIDE: dict[str, tuple[list[tuple[str | None, str | None]], Any]] = {
    "on every piece": ([("{}", "stop"), (PAY, "stop")], {"n": 1}),
    "on the first one of what was no object": ([('{"n"', "stop"), (":1}", None)], {"n": 1}),
    "on an empty object alone": ([("{}", "stop"), (PAY, None)], "conflict"),
    "on an empty object alone, in pieces": ([("{}", "stop"), ('{"n"', None), (":1}", "stop")], "conflict"),
    "on an empty object alone, as the limit": ([("{}", "length"), (PAY, None)], "conflict"),
    "behind what was no object": ([('{"n"', None), (None, "stop"), (":1}", None)], "conflict"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS_BESIDE)
@pytest.mark.parametrize("old", [False, True])
def test_text_behind_a_whole_object_and_a_word_for_the_end_is_of_nobody(name: str, old: bool):
    pieces, expected = WORDS_BESIDE[name]

    def said(at: int, text: str | None) -> dict[str, Any]:
        function = {"arguments": text} | ({"name": "pay"} if at == 0 else {})
        entry = {"index": 0, "function": function} | ({"id": "a"} if at == 0 else {})
        delta = {"function_call": function} if old else {"tool_calls": [entry]}
        return {} if text is None else delta

    frames = [chunk({"delta": said(at, t), "finish_reason": f}) for at, (t, f) in enumerate(pieces)]
    assert fate(heard("openai_chat", b"".join(frames) + END + DONE)[0])[0] == [expected]


def test_a_word_beside_pieces_is_of_each_call_that_they_are_of():
    """Of the last one, where a piece says no place."""
    first, second = (
        {**EMPTY, "function": {"name": "pay", "arguments": "{}"}},
        {**CALL, "id": "b", "index": 1},
    )
    begun = entries(first, {**second}, finish="stop")
    more = entries({"index": 0, "function": {"arguments": PAY}})
    assert fate(heard("openai_chat", begun + more + END + DONE)[0])[0] == ["conflict", {"n": 1}]
    begun = entries({**first, "index": None}, finish="stop")
    more = entries({"function": {"arguments": PAY}})
    assert fate(heard("openai_chat", begun + more + END + DONE)[0])[0] == ["conflict"]


def test_a_word_beside_each_of_two_pieces_is_no_end_where_each_says_its_id():
    first = {**EMPTY, "function": {"name": "pay", "arguments": "{}"}}
    for word, expected in (("stop", {"n": 1}), (None, "conflict")):
        body = entries(first, finish="stop") + entries(
            {**CALL, "function": {"arguments": PAY}}, finish=word
        )
        assert fate(heard("openai_chat", body + END + DONE)[0])[0] == [expected]


def test_a_word_beside_a_piece_of_a_call_that_stands_elsewhere_is_none_of_a_place():
    more = {"index": 5, "id": "a", "function": {"arguments": ":1}"}}
    body = entries(BEGUN) + entries(more, finish="stop") + END + DONE
    assert fate(heard("openai_chat", body)[0])[0] == [{"n": 1}]


def test_text_that_began_a_call_without_id_and_name_is_anybodys_though_both_come_later():
    bare = entries({"index": 0, "function": {"arguments": '{"n"'}})
    named = entries({"index": 0, "id": "a", "function": {"name": "pay", "arguments": ":1}"}})
    other = Chat.call(1, "b", "rob", PAY)
    told = fate(heard("openai_chat", bare + named + other + END + DONE)[0])
    assert told == (["conflict", "conflict"], ("finish", "tool_calls"))


def test_parameters_where_arguments_should_be_are_a_schema_or_a_loss():
    given = {"index": 0, "id": "a", "function": {"name": "pay", "parameters": {"n": 1}}}
    assert fate(heard("openai_chat", entries(given) + END + DONE)[0])[0] == ["conflict"]
    given["function"]["arguments"] = PAY  # type: ignore[index]
    assert fate(heard("openai_chat", entries(given) + END + DONE)[0])[0] == [{"n": 1}]


def test_what_goes_back_with_a_call_of_the_providers_own_is_kept_when_its_type_comes_again():
    kind = {"index": 0, "type": "builtin_function"}
    first = entries({**BEGUN, **kind, "extra_content": {"x": 1}})
    events, _ = heard("openai_chat", first + entries({**REST, **kind}) + END + DONE)
    echoes = [e.echo for e in events if e.kind == "tool_call"]
    assert echoes == [{"type": "builtin_function", "extra_content": {"x": 1}}]


@pytest.mark.parametrize(
    ("said", "odd"),
    [
        ([BEGUN], [False]),
        ([{**BEGUN, "index": None}], [True]),
        ([BEGUN, {**BEGUN, "id": "b"}], [False, True]),
        ([BEGUN, {**BEGUN, "id": "b", "index": 1}], [False, False]),
    ],
)
def test_a_call_without_a_place_or_in_that_of_another_is_odd(said: Any, odd: list[bool]):
    pipe = Normalizer("openai_chat")
    events = pipe.feed(b"".join(map(entries, said)))
    assert [pipe.is_odd(e) for e in events if isinstance(e, ToolCallStart)] == odd


# --- words for the end, one after the other -----------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("stop", "length"), "length"),
        (("length", "stop"), "length"),
        (("new_word", "stop"), "stop"),
        (("new_word", "length"), "length"),
        (("stop", "stop"), "stop"),
    ],
)
def test_of_two_words_for_the_end_the_one_counts_that_says_more(words: Any, reason: str):
    """A word that nobody knows may stand on every chunk."""
    body = Chat.text("Hi") + b"".join(chunk({"delta": {}, "finish_reason": w}) for w in words)
    assert end(heard("openai_chat", body + DONE)[0]) == ("finish", reason)


# --- functions of the provider's own ------------------------------------------------------------------

OWN = {"type": "builtin_function", "index": 0, "id": "a"}


def own(arguments: str) -> dict[str, Any]:
    return {**OWN, "function": {"name": "$web_search", "arguments": arguments}}


@pytest.mark.parametrize("arguments", [PAY, "{}"])
def test_a_function_of_the_providers_own_is_answered_whenever_it_is_told(arguments: str):
    events, _ = heard("openai_chat", entries(own(arguments)) + END + DONE)
    kinds = [e.kind for e in events if e.kind.startswith("tool_")][-2:]
    assert (kinds, end(events)) == (["tool_call", "tool_result"], ("finish", "pause"))


@pytest.mark.parametrize("arguments", [PAY, "{}"])
def test_a_call_that_began_as_the_clients_is_not_answered_by_us(arguments: str):
    first = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": arguments}}
    late = {**OWN, "function": {"arguments": ""}}
    events, _ = heard("openai_chat", entries(first) + entries(late) + END + DONE)
    assert not [e for e in events if e.kind == "tool_result"]
    assert end(events) == ("finish", "tool_calls")


def test_the_token_limit_behind_a_function_of_the_providers_own_is_the_token_limit():
    last = chunk({"delta": {}, "finish_reason": "length"})
    assert end(heard("openai_chat", entries(own(PAY)) + last + DONE)[0]) == ("finish", "length")


def test_what_another_choice_asks_of_the_client_is_not_asked_by_the_first():
    second = [{"index": 1, "delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]
    body = entries(own(PAY)) + END + sse({"choices": second}) + DONE
    assert end(heard("openai_chat", body)[0]) == ("finish", "pause")


# --- the whole message ----------------------------------------------------------------------------------


def whole_message(delta: Any, message: Any, finish: str | None) -> bytes:
    return chunk({"delta": delta, "message": message, "finish_reason": finish})


MESSAGE = {"content": None, "tool_calls": [CALL]}


def test_a_call_that_only_the_message_beside_the_last_delta_has_is_told_once():
    body = whole_message({}, MESSAGE, "tool_calls") + DONE
    assert calls(heard("openai_chat", body)[0]) == PAID
    said = whole_message({"tool_calls": [CALL]}, MESSAGE, "tool_calls")
    assert calls(heard("openai_chat", said + DONE)[0]) == PAID


@pytest.mark.parametrize("delta", [{}, {"content": "Hi"}])
def test_text_that_only_the_message_beside_the_first_and_last_delta_has_is_told_once(delta: Any):
    events, _ = heard("openai_chat", whole_message(delta, {"content": "Hi"}, "stop") + DONE)
    assert (text_of(events), end(events)) == ("Hi", ("finish", "stop"))
    events, _ = heard(
        "openai_chat", Chat.text("Hi") + whole_message({}, {"content": "Hi"}, "stop") + DONE
    )
    assert text_of(events) == "Hi"


def test_a_message_beside_a_delta_that_is_not_the_last_says_nothing():
    body = whole_message({}, MESSAGE, None) + chunk({"delta": {}, "finish_reason": "stop"}) + DONE
    assert fate(heard("openai_chat", body)[0]) == ([], ("finish", "stop"))


def test_an_answer_said_again_without_a_message_says_nothing():
    again = {"choices": [{"index": 0, "finish_reason": "stop", "logprobs": 1}]}
    body = Chat.text("Hi") + sse({**again, "object": "chat.completion", "seed": 1}) + DONE
    events, notes = heard("openai_chat", body)
    assert (text_of(events), end(events)) == ("Hi", ("finish", "stop"))
    assert "wire.shape_odd" not in notes


@pytest.mark.parametrize(("text", "told"), [("Hi", ["Hi"]), ("", []), (5, []), (None, [])])
def test_the_text_of_a_choice_is_told_if_it_is_one(text: Any, told: list[str]):
    body = chunk({"text": text}) + chunk({"text": "", "finish_reason": "stop"}) + DONE
    events, notes = heard("openai_chat", body)
    assert [e.text for e in events if e.kind == "text_delta"] == told
    assert notes.get("wire.shape_odd", 0) == len(told)


@pytest.mark.parametrize("said", [{}, {"status_msg": ""}, {"status_msg": "slow down"}])
def test_a_status_without_words_is_told_by_its_number(said: dict[str, Any]):
    events = run("openai_chat", [sse({"choices": [], "base_resp": {"status_code": 7, **said}})])
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error, last.code) == (said.get("status_msg") or "the provider reported 7", "7")


# --- what is lost, and whose it was ---------------------------------------------------------------

OPENED = Chat.call(0, "a", "pay", '{"n"')
CLOSING = Chat.delta({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}) + Chat.end()


@pytest.mark.parametrize(
    ("lost", "byte"),
    [
        ({"choices": [], "new": {"tool_calls": [{"arguments": "x"}]}}, b"?"),
        ({"choices": [], "model": "?"}, b"\xff"),
    ],
    ids=["words of a call", "bytes that were replaced"],
)
def test_what_is_lost_beside_no_choices_at_all_may_be_of_any_call(lost: Any, byte: bytes):
    events, _ = heard("openai_chat", OPENED + sse(lost).replace(b"?", byte) + CLOSING)
    assert fate(events)[0] == ["conflict"]


@pytest.mark.parametrize(
    ("function", "fates"),
    [
        ({"arguments": PAY}, ["conflict", "conflict"]),  # the number of its choice may be wrong
        ({"name": "f", "arguments": PAY}, [{"n": 1}, {"n": 1}]),
        ({}, [{"n": 1}, "conflict"]),
    ],
    ids=["text without a name", "a call of its own", "nothing"],
)
def test_a_legacy_call_of_another_choice_harms_an_open_one_only_if_its_text_has_no_name(
    function: dict[str, Any], fates: list[Any]
):
    other = sse({"choices": [{"index": 1, "delta": {"function_call": function}}]})
    assert fate(heard("openai_chat", OPENED + other + CLOSING)[0])[0] == fates


@pytest.mark.parametrize("custom", [{"input": 5}, {"input": {"a": 1}}, "y", 5])
def test_a_piece_of_a_text_tool_that_is_no_text_breaks_its_call_alone(custom: Any):
    tool = {"index": 1, "id": "b", "type": "custom", "custom": {"name": "f", "input": "x"}}
    body = OPENED + Chat.delta({"tool_calls": [tool]})
    body += Chat.delta({"tool_calls": [{"index": 1, "custom": custom}]}) + CLOSING
    assert fate(heard("openai_chat", body)[0])[0] == [{"n": 1}, "conflict"]


@pytest.mark.parametrize(
    ("entry", "fates"),
    [
        ({"custom": {"text": "y"}}, [{"n": 1}, "conflict"]),
        ({"custom": {"input": "y"}, "note": "z"}, [{"n": 1}, {"input": "xy"}]),
    ],
    ids=["under another name", "beside something new"],
)
def test_text_of_a_text_tool_is_lost_under_another_name_and_not_beside_something_new(
    entry: dict[str, Any], fates: list[Any]
):
    tool = {"index": 1, "id": "b", "type": "custom", "custom": {"name": "f", "input": "x"}}
    body = OPENED + Chat.delta({"tool_calls": [tool]})
    body += Chat.delta({"tool_calls": [{"index": 1, **entry}]}) + CLOSING
    assert fate(heard("openai_chat", body)[0])[0] == fates


@pytest.mark.parametrize("provider", ["openai_chat", "mistral"])
def test_a_chunk_without_choices_is_the_same_in_any_chunking(provider: str):
    head = {"object": "chat.completion.chunk", "created": 1, "model": "m", "choices": None}
    more = {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    frames = [sse({"id": "a", **head}), sse({"id": "b", **head, **more}), sse({"id": "a", **head})]
    told = []
    for chunks in ([b"".join(frames)], frames):
        pipe = Normalizer(provider, seed="tests")
        told.append([e for chunk in chunks for e in pipe.feed(chunk)] + pipe.close())
    assert told[0] == told[1]
    assert [e.kind for e in told[0]] == ["stream_start", "usage", "failed"]


@pytest.mark.parametrize(
    ("said", "passed_on"),
    [
        ({"object": "chat.completion.chunk", "model": "m"}, []),
        (
            {"object": "new", "model": "m", "created": 5},
            [{"object": "new", "model": "m", "created": 5}],
        ),
        ({"id": "x", "type": None}, [{"id": "x", "type": None}]),
    ],
)
def test_a_payload_of_mistral_without_choices_is_a_chunk_or_is_passed_on_with_what_it_says(
    said, passed_on
):
    body = Chat.call(0, "a", "pay", PAY) + sse(said) + Chat.end()
    events, _ = heard("mistral", body)
    assert fate(events)[0] == [{"n": 1}]
    assert [e.payload for e in events if e.kind == "unrecognized"] == passed_on


@pytest.mark.parametrize(
    ("index", "word", "ids"),
    [
        ({"index": 0}, None, ["b"]),
        ({"index": 0}, "stop", []),
        ({}, None, ["b"]),
        ({}, "stop", ["?", "b"]),
    ],
)
def test_an_id_that_comes_late_is_of_the_call_before_it_but_not_behind_its_end(index, word, ids):
    first = {"type": "custom", "custom": {"name": "run", "input": "x" if index else ""}, **index}
    second = {"type": "custom", "id": "b", "custom": {"name": "run", "input": ""}, **index}
    body = Chat.delta({"tool_calls": [first]}) + (Chat.end(word) if word else b"")
    body = body.removesuffix(DONE) + Chat.delta({"tool_calls": [second]}) + Chat.end("stop")
    told = [id for id, *_ in calls(run("openai_chat", [body]))]
    assert ["?" if id.startswith("syn_") else id for id in told] == ids


# --- chunks that say whose they are -----------------------------------------------------------------


def of(id: str | None, *, begins: bool = False, text: str = "", finish: str | None = None) -> bytes:
    """A chunk of the answer that has this id: the beginning of a call, a piece of it, or the end."""
    entry = EMPTY if begins else {"index": 0, "function": {"arguments": text}}
    said = {"tool_calls": [entry]} if begins or text else {}
    whose = {} if id is None else {"id": id}
    return sse({**whose, "choices": [{"index": 0, "delta": said, "finish_reason": finish}]})


END_OF = {id: of(id, finish="tool_calls") + DONE for id in ("x", "y", "z")}
ASKED_TWICE = ["conflict"], ("finish", "tool_calls")
TOLD_ONCE = [{"n": 1}], ("finish", "tool_calls")


@pytest.mark.parametrize("provider", CHATS)
def test_an_answer_that_comes_back_says_that_two_are_mixed(provider: str):
    body = of("x", begins=True) + of("y", text='{"n"') + of("x", text=":1}") + END_OF["x"]
    assert fate(heard(provider, body)[0]) == ASKED_TWICE


@pytest.mark.parametrize("provider", CHATS)
def test_an_answer_that_gives_way_in_the_midst_of_a_call_has_cut_it(provider: str):
    body = of("x", begins=True) + of("x", text='{"n') + of("x", text='"') + of("y", text=":1}")
    assert fate(heard(provider, body + END_OF["y"])[0]) == ASKED_TWICE


@pytest.mark.parametrize("provider", CHATS)
def test_a_gateway_may_say_its_own_id_in_the_first_chunk(provider: str):
    body = of("x", begins=True) + of("y", text='{"n') + of("y", text='":') + of("y", text="1}")
    assert fate(heard(provider, body + END_OF["y"])[0]) == TOLD_ONCE


@pytest.mark.parametrize("provider", CHATS)
def test_chunks_may_have_ids_of_their_own(provider: str):
    pieces = [of("x", begins=True)]
    pieces += [of(f"x{n}", text=c) for n, c in enumerate('{"n":' + " " * 30 + "1}")]
    assert fate(heard(provider, b"".join(pieces) + END_OF["z"])[0]) == TOLD_ONCE


@pytest.mark.parametrize("provider", CHATS)
def test_an_answer_that_follows_a_whole_call_takes_nothing_from_it(provider: str):
    pieces = [of("x", begins=True), *(of("x", text=c) for c in PAY)]
    assert fate(heard(provider, b"".join(pieces) + END_OF["y"])[0]) == TOLD_ONCE


@pytest.mark.parametrize("nothing", ["", None])
@pytest.mark.parametrize("provider", CHATS)
def test_a_chunk_without_an_id_is_of_the_answer_that_began(provider: str, nothing: str | None):
    body = of("x", begins=True) + of("x", text='{"n') + of("x", text='"') + of(nothing, text=":1}")
    assert fate(heard(provider, body + END_OF["x"])[0]) == TOLD_ONCE


@pytest.mark.parametrize("provider", CHATS)
def test_a_chunk_without_an_id_is_of_no_other_answer_where_ids_stand_behind_the_choices(
    provider: str,
):
    def chunk_of(function: dict[str, Any], **more: Any) -> bytes:
        entry = {"index": 0, **({"id": "a"} if "name" in function else {}), "function": function}
        return sse({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}], **more})

    pieces = [chunk_of({"arguments": text}, id="x") for text in ('{"n', '"', ":")]
    body = chunk_of({"name": "pay", "arguments": ""}, id="x") + b"".join(pieces)
    assert fate(heard(provider, body + chunk_of({"arguments": "1}"}) + END_OF["x"])[0]) == TOLD_ONCE


@pytest.mark.parametrize("provider", CHATS)
def test_where_no_chunk_has_an_id_all_are_of_one_answer(provider: str):
    body = of(None, begins=True) + of(None, text='{"n') + of(None, text='":1}')
    assert fate(heard(provider, body + of(None, finish="stop") + DONE)[0]) == TOLD_ONCE


@pytest.mark.parametrize(("back", "then"), [("n15", ASKED_TWICE), ("n16", TOLD_ONCE)])
def test_sixteen_answers_are_remembered(back: str, then: Any):
    """Where there are more, ids say nothing, and are not kept."""
    ids = [f"n{n}" for n in range(20)]
    begun = b"".join(sse({"id": id, "choices": []}) for id in ids) + of("n19", begins=True)
    body = begun + of(back, text=PAY) + of("n19", finish="tool_calls") + DONE
    assert fate(heard("openai_chat", body)[0]) == then


def test_a_text_that_was_learnt_under_one_id_does_not_hide_that_another_comes_back():
    def text(id: str) -> bytes:
        return sse({"id": id, "choices": [{"index": 0, "delta": {"content": "a"}}]})

    frames = [text("x")] * 20 + [of("y", begins=True), text("x"), of("y", text=PAY), END_OF["y"]]
    assert fate(run("openai_chat", [b"".join(frames)])) == ASKED_TWICE
    assert fate(run("openai_chat", frames)) == ASKED_TWICE
    frames = [text("x")] * 20 + [of("x", begins=True), of("y", text='{"n"'), text("x")]
    assert fate(run("openai_chat", [*frames, of("y", text=":1}"), END_OF["y"]])) == ASKED_TWICE


def test_whose_a_chunk_is_does_not_depend_on_how_the_bytes_are_cut():
    role = sse({"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]})
    frames = [role, of("x", begins=True), of("x", text='{"n'), of("x", text='"')]
    body = b"".join([*frames, of("y", text=":1}"), END_OF["x"]])
    for size in (1, 3, 17, 100, 700, len(body)):
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        assert fate(run("openai_chat", chunks)) == ASKED_TWICE


@pytest.mark.parametrize("rare", [{}, RARE])
def test_an_answer_that_gives_way_is_heard_frame_by_frame_and_in_rare_chunks(rare: dict[str, Any]):
    delta = {"tool_calls": [{"index": 0, "function": {"arguments": ":1"}}], **rare}
    other = sse({"id": "y", "choices": [{"index": 0, "delta": delta}]})
    frames = [of("x", begins=True), of("x", text='{"n'), of("x", text='"'), other]
    frames += [of("y", text="}"), END_OF["y"]]
    assert fate(run("openai_chat", frames)) == ASKED_TWICE
    frames[4] = of("x", text="}")
    assert fate(run("openai_chat", frames)) == ASKED_TWICE
