"""Guards of Chat Completions that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest

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
