"""What nobody can read in the midst of a call: small streams in, whether its call is told out."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import BrokenToolCall, Normalizer, ToolCall
from tests.proof.finds import (
    CREATED,
    DONE,
    END,
    METADATA,
    aws_stop,
    bedrock,
    body_of,
    chat,
    cohere,
    cohere_end,
    cohere_start,
    delta,
    entry,
    function,
    generated,
    interaction,
    named,
    over,
    part,
    reason,
    start,
    step,
    step_start,
    stop,
    use,
)

WHOLE = '{"to":"me"}'
FIRST, REST = '{"to":"m', 'e"}'


def heard(wire: str, *payloads: Any) -> tuple[list[str], dict[str, int]]:
    """Of each call its arguments, or why it is broken; and the notes."""
    pipe = Normalizer(wire, seed="tests")
    events = pipe.feed(body_of((wire, payloads))) + pipe.close()
    ended = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    return [e.raw if isinstance(e, ToolCall) else e.reason for e in ended], dict(pipe.notes)


def told(wire: str, *payloads: Any) -> list[str]:
    return heard(wire, *payloads)[0]


def input_of(text: str) -> Any:
    return bedrock("contentBlockDelta", delta={"toolUse": {"input": text}})


def arguments(text: Any) -> Any:
    return step("delta", delta={"type": "arguments_delta", "arguments": text})


# Wires on which nothing states a text again -> what comes before the payload, and behind it.
MIDST: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "anthropic": ((start(), delta(FIRST)), (delta(REST), stop(), reason(), END)),
    "openai_chat": ((chat(named(FIRST)),), (chat(entry(REST)), chat(finish="stop"), DONE)),
    "cohere": (
        (cohere_start(FIRST),),
        (cohere("delta", {"function": {"arguments": REST}}), cohere("end"), cohere_end("TOOL_CALL")),
    ),
    "bedrock": (
        (use(), input_of(FIRST)),
        (input_of(REST), bedrock("contentBlockStop"), aws_stop("tool_use"), METADATA),
    ),
    "gemini_interactions": (
        (step_start(), arguments(FIRST)), (arguments(REST), step("stop"), interaction("completed")),
    ),
}  # fmt: skip


def new(wire: str, kind: str = "new.thing", **fields: Any) -> dict[str, Any]:
    """A payload of a kind that this wire does not have."""
    return {{"bedrock": "", "gemini_interactions": "event_type"}.get(wire, "type"): kind, **fields}


def in_the_midst(wire: str, odd: Any) -> list[str]:
    before, behind = MIDST[wire]
    return told(wire, *before, odd, *behind)


# --- kinds that nobody knows ------------------------------------------------------------------------


@pytest.mark.parametrize("wire", MIDST)
@pytest.mark.parametrize("fields", [{"x": "y"}, {"x": ["y"]}, {"x": {"z": {"of": "y"}}}])
def test_a_new_kind_that_brings_a_text_breaks_the_call_that_goes_on(wire: str, fields: Any):
    assert in_the_midst(wire, new(wire, **fields)) == ["conflict"]


@pytest.mark.parametrize("wire", MIDST)
@pytest.mark.parametrize(
    "fields", [{}, {"x": 1}, {"x": {"y": [2, None, ""]}}, {"new_type": "y"}, {"x": "new.thing"}]
)
def test_a_new_kind_that_brings_no_text_is_no_loss(wire: str, fields: Any):
    assert in_the_midst(wire, new(wire, **fields)) == [WHOLE]


@pytest.mark.parametrize("wire", MIDST)
@pytest.mark.parametrize("kind", ["ping.new", "keep-alive", "keepalive", "Heartbeat"])
def test_a_sign_of_life_is_no_loss_whatever_it_says(wire: str, kind: str):
    if wire == "bedrock":
        assert in_the_midst(wire, {"": kind, "at": "12:00"}) == [WHOLE]
    else:
        assert in_the_midst(wire, new(wire, kind, at="12:00")) == [WHOLE]


def test_what_a_new_kind_says_in_a_field_that_the_wire_has_is_what_it_is_there():
    assert in_the_midst("openai_chat", new("openai_chat", model="m")) == [WHOLE]
    assert in_the_midst("bedrock", {"": "newThing", "p": "abcd"}) == [WHOLE]
    assert in_the_midst("anthropic", new("anthropic", delta="x")) == ["conflict"]


def test_a_new_kind_is_no_loss_for_calls_that_cannot_go_on():
    odd = {"type": "new.thing", "x": "y"}
    assert told("openai_chat", chat(named(WHOLE)), odd, chat(finish="stop"), DONE) == [WHOLE]
    assert told("anthropic", start(), stop(), odd, reason(), END) == [""]
    assert told("anthropic", odd, start(), stop(), reason(), END) == [""]


def test_a_copy_of_the_whole_text_takes_the_doubt_of_a_new_kind_away():
    odd = {"type": "response.new.thing", "x": "y"}
    assert told("openai_responses", CREATED, function("added", ""), odd, function("done", WHOLE),
                over()) == [WHOLE]  # fmt: skip


# --- events without data ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "fate"), [(b"content_block_delta", "conflict"), (b"ping", WHOLE), (b"new", WHOLE)]
)
def test_an_event_that_has_lost_its_data_breaks_the_call_that_goes_on(event: bytes, fate: str):
    before, behind = MIDST["anthropic"]
    calls, notes = heard("anthropic", *before, b"event: " + event + b"\n\n", *behind)
    assert (calls, notes["wire.no_data"]) == ([fate], 1)


@pytest.mark.parametrize(("type_", "fate"), [("null", WHOLE), ("5", "conflict")])
def test_the_name_of_an_event_stands_in_for_a_type_that_is_null_and_for_no_other(type_, fate):
    odd = b'event: ping\ndata: {"type":%b}\n\n' % type_.encode()
    assert in_the_midst("anthropic", odd) == [fate]


# --- words of a call in the place of none -----------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "odd"),
    [
        ("anthropic", {"type": "content_block_delta", "index": 1,
                       "delta": {"type": "text_delta", "text": "x", "input": "y"}}),
        ("cohere", {"type": "content-delta", "index": 0, "tool_calls": 5,
                    "delta": {"message": {"content": {"text": "x"}}}}),
    ],
)  # fmt: skip
def test_words_of_a_call_in_a_payload_of_a_text_break_the_call_that_goes_on(wire: str, odd: Any):
    assert in_the_midst(wire, odd) == ["conflict"]


# --- fields said twice ------------------------------------------------------------------------------


def block(fields: str) -> bytes:
    said = '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use",%s}}'
    return b"data: " + (said % fields).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("fields", "fate"),
    [
        ('"id":"A","id":"B","name":"pay"', "conflict"),
        ('"id":"A","name":"pay","name":"rob"', "conflict"),
        ('"id":"A","id":"A","name":"pay"', WHOLE),
    ],
)
def test_a_block_that_says_a_field_twice_and_differently_begins_no_call(fields: str, fate: str):
    assert told("anthropic", block(fields), delta(WHOLE), stop(), reason(), END) == [fate]


def item(kind: str, text: str) -> bytes:
    said = (
        '{"type":"response.output_item.%s","output_index":0,"item":{"type":"function_call",'
        '"id":"it_1","call_id":"A","name":"pay","arguments":"{}","arguments":%s}}'
    )
    return b"data: " + (said % (kind, text)).encode() + b"\n\n"


def test_an_item_that_says_a_field_twice_and_differently_states_nothing():
    text = '"{\\"to\\":\\"me\\"}"'
    begun = function("added", "")
    assert told("openai_responses", CREATED, begun, item("done", text), over()) == ["conflict"]
    assert told("openai_responses", CREATED, item("added", text), over()) == ["conflict"]
    assert told("openai_responses", CREATED, begun, item("done", '"{}"'), over()) == ["{}"]


def test_an_unusual_payload_that_says_a_field_twice_breaks_its_call():
    said = (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"A","extra_content":1,'
        b'"function":{"name":"pay","arguments":"{}","arguments":"{\\"a\\":1}"}}]}}]}\n\n'
    )
    assert told("openai_chat", said, chat(finish="stop"), DONE) == ["conflict"]


# --- two calls in one part --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside", "also"),
    [
        ({"executableCode": {"language": "PYTHON", "code": "x"}}, "x"),
        ({"toolCall": {"toolType": "SEARCH", "args": {"q": 1}}}, '{"q":1}'),
    ],
)
def test_a_call_beside_another_in_one_part_is_told_as_well(beside: Any, also: str):
    mine = {"name": "pay", "id": "A", "args": {"to": "me"}}
    assert told("gemini", part("STOP", functionCall=mine, **beside)) == [WHOLE, also]


def test_arguments_in_a_field_of_the_part_are_a_loss_for_its_call():
    odd = {"toolCall": {"toolType": "SEARCH"}, "args": {"q": 1}}
    assert told("gemini", part("STOP", **odd)) == ["conflict"]


def test_of_one_chunk_two_calls_that_say_the_same_are_two():
    mine = {"functionCall": {"name": "pay", "id": "A", "args": {"n": 1}}}
    candidate = {"index": 0, "content": {"parts": [mine, mine]}, "finishReason": "STOP"}
    assert told("gemini", {"candidates": [candidate]}) == ['{"n":1}'] * 2
    last = {"candidates": [{**candidate, "content": {"parts": [{"text": "x"}]}}]}
    del candidate["finishReason"]
    assert told("gemini", {"candidates": [candidate]}, last) == ['{"n":1}'] * 2


# --- new fields where no call stands ------------------------------------------------------------------


@pytest.mark.parametrize("value", [3, 1.5, True, None])
def test_a_new_field_of_a_payload_that_has_no_place_is_no_loss(value: Any):
    ping, ended = {"type": "ping", "new": value}, {**reason(), "new": value}  # type: ignore[dict-item]
    assert told("anthropic", start(), stop(), ping, ended, {**END, "new": value}) == [""]  # type: ignore[dict-item]
    plan = {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "x"}}, "new": value}
    assert told("cohere", plan, cohere_start(), cohere("end"), plan, cohere_end("TOOL_CALL")) == [
        ""
    ]


def test_a_number_where_a_place_is_missing_may_be_the_place():
    odd = {"type": "content_block_stop", "new": 0}
    assert told("anthropic", start(), odd, stop(), reason(), END) == ["conflict"]
    assert told("anthropic", start(), {"type": "ping", "new": 0}, stop(), reason(), END) == [""]


def test_a_new_field_that_says_nothing_beside_a_value_is_no_end_of_its_call():
    first = part(functionCall={"name": "pay", "willContinue": True})
    null = {"jsonPath": "$.to", "stringValue": "me"}
    middle = part(functionCall={"partialArgs": [null], "new": None})
    assert told("gemini", first, middle, part("STOP", text="")) == [WHOLE]


@pytest.mark.parametrize("word", ["ping", "keepalive", "heartbeat"])
def test_a_sign_of_life_without_data_has_lost_nothing(word: str):
    odd = b"event: " + word.encode() + b"\ndata: \n\n"
    own = {"type": "custom_tool_call", "id": "it_2", "call_id": "B", "name": "rob", "input": ""}
    empty = {"type": "response.output_item.done", "output_index": 1, "item": own}
    said = [CREATED, function("added", ""), odd, function("done", WHOLE), empty, over()]
    calls, notes = heard("openai_responses", *said)
    assert (calls, notes["wire.no_data"]) == ([WHOLE, ""], 1)


def test_an_event_whose_name_is_nearly_one_of_the_wire_has_lost_its_data():
    assert in_the_midst("anthropic", b"event: content_block_deltz\ndata: \n\n") == ["conflict"]


def test_an_event_of_a_frame_that_is_null_has_lost_its_data():
    assert in_the_midst("bedrock", {"": "contentBlockDelta", "null": None}) == ["conflict"]


def test_a_chunk_that_is_padding_has_lost_nothing():
    padding = {"object": "chat.completion.chunk", "usage": None, "obfuscation": "abc"}
    assert in_the_midst("openai_chat", padding) == [WHOLE]
    calls, notes = heard("openai_chat", chat(named(WHOLE)), {"object": "chat.completion.chunk"},
                         chat(finish="stop"), DONE)  # fmt: skip
    assert (calls, notes["wire.field_odd"]) == ([WHOLE], 1)


@pytest.mark.parametrize(
    ("value", "fate"), [("x", "conflict"), ({"x": "y"}, "conflict"), (1, WHOLE)]
)
def test_a_new_field_of_a_piece_that_has_no_text_may_be_its_text(value: Any, fate: str):
    pieces = named(WHOLE), {"index": 0, "new": value}
    said = [generated(piece) for piece in pieces]
    assert told("dashscope", *said, generated(finish="tool_calls")) == [fate]


def test_a_start_that_says_nothing_of_its_call_breaks_it():
    bare = {"type": "tool-call-start", "index": 0, "delta": {}}
    named_late = cohere("delta", {"id": "A", "function": {"name": "pay", "arguments": ""}})
    said = (bare, named_late, cohere("end"), cohere_end("TOOL_CALL"))
    assert told("cohere", *said) == ["conflict"]


def test_a_step_that_begins_or_goes_on_after_the_end_is_not_whole():
    ended = interaction("requires_action")
    assert told("gemini_interactions", ended, step_start(), arguments(WHOLE), step("stop")) == [
        "conflict"
    ]
    said = (step_start(), arguments(FIRST), ended, arguments(REST), step("stop"))
    assert told("gemini_interactions", *said) == ["conflict"]


def test_a_stop_said_again_after_the_end_leaves_a_call_that_was_closed_in_no_doubt():
    ended = interaction("requires_action")
    said = (step_start(), step("stop"), ended, step("stop"))
    assert told("gemini_interactions", *said) == [""]


def test_a_fragment_that_is_an_object_is_noted():
    said = (step_start(), arguments({"to": "me"}), step("stop"), interaction("completed"))
    calls, notes = heard("gemini_interactions", *said)
    assert (calls, notes["args.object"]) == ([WHOLE], 1)


def test_a_null_beside_a_call_without_arguments_is_no_part_of_them_and_a_number_is_doubt_for_good():
    entry = {"index": 0, "id": "A", "function": {"name": "pay", "new": None}}
    assert told("openai_chat", chat(entry), chat(finish="stop"), DONE) == [""]
    number = {**entry, "function": {"name": "pay", "new": 1}, "newer": 1}
    also = {"index": 1, "id": "B", "function": {"name": "rob", "arguments": "", "new": 1}}
    assert told("openai_chat", chat(number), chat(also), chat(finish="stop"), DONE) == [
        "conflict", "conflict",
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "fate"), [(5, WHOLE), ("x", "conflict")])
def test_a_text_where_names_lead_to_that_of_a_call_was_moved_and_a_number_was_not(value, fate):
    before, behind = MIDST["bedrock"]
    odd = {**METADATA, "delta": value}
    assert told("bedrock", *before, odd, *behind) == [fate]


def test_a_new_field_elsewhere_or_beside_a_text_that_was_said_is_no_part_of_arguments():
    call = {"index": 0, "id": "A", "function": {"name": "pay", "arguments": "", "new": 1}}
    assert told("openai_chat", chat(call), chat(finish="stop"), DONE) == [""]
    assert told("openai_chat", chat(named(""), new=1), chat(finish="stop"), DONE) == [""]
    own = {"type": "custom_tool_call", "id": "it", "call_id": "B", "name": "rob", "input": ""}
    empty = {"type": "response.output_item.done", "output_index": 0, "item": own}
    assert told("openai_responses", {**CREATED, "new": 1}, empty, over()) == [""]  # type: ignore[dict-item]
