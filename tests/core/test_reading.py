"""What cannot be read and may have been of a call: each test fails if its guard in ``core.parser`` is removed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm.core import even
from streamnorm.core.calls import Calls
from streamnorm.core.mint import Mint
from streamnorm.core.parser import Parser, count, field_of
from streamnorm.limits import Limits
from streamnorm.notes import Scribe
from tests.conftest import Chat, Messages, sse, traced
from tests.providers.streams import PAY, calls, fate, heard

BEGUN = Messages.START + Messages.open(0, "a", "pay") + Messages.args(0, PAY)
CLOSED = Messages.close(0) + Messages.end()


# --- which values are a loss ----------------------------------------------------------------------


class Wire(Parser):
    CALL_TEXTS = ("d.calls[].f.text",)
    CALL_KEYS = ("d.calls[].index",)
    CALL_WORDS = (b'"fn"',)


def parser() -> Wire:
    scribe = Scribe("test")
    return Wire(Calls(scribe, Mint("tests"), Limits()), scribe)


@pytest.mark.parametrize(
    ("where", "value", "loss"),
    [
        ("d.calls[].f.text", b"5", True),
        ("d.calls[].f.text", b"null", True),
        ("d.calls[].index", b'"x"', True),
        ("d.calls[].f", b"5", True),  # on the way to a text
        ("d.calls[].f", b"null", False),  # … but nothing
        ("d.calls[]", b"null", True),  # … but one of several
        ("d.calls", b"5", True),
        ("d", b"5", True),
        ("d.role", b"5", False),
        ("d.role", b'{"fn":1}', True),
        ("d.calls[].f.text2", b"5", False),
    ],
)
def test_a_value_of_another_type_is_a_loss_where_calls_are(where: str, value: bytes, loss: bool):
    assert parser().is_loss(even.Complaint((), where, False), value, {}) is loss


@pytest.mark.parametrize(
    ("inside", "value", "beside", "loss"),
    [
        ("d.calls[].f", b'"x"', {"name"}, True),  # it may be the text, under another name
        ("d.calls[].f", b"{}", {"name"}, True),
        ("d.calls[].f", b"[]", {"name"}, True),
        ("d.calls[].f", b'"x"', {"text"}, False),
        ("d.calls[].f", b'""', set(), False),
        ("d.calls[].f", b"5", set(), False),
        ("d.calls[].f", b"null", set(), False),
        ("d", b'"x"', set(), False),  # no text stands here
        ("d", b'{"fn":"x"}', set(), True),
    ],
)
def test_a_field_that_we_do_not_know_is_a_loss_where_a_text_is_missing(
    inside: str, value: bytes, beside: set[str], loss: bool
):
    complaint = even.Complaint((), f"{inside}.new", True, inside)
    assert parser().is_loss(complaint, value, dict.fromkeys(beside)) is loss  # type: ignore[arg-type]


# --- whose it was ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        # a known kind that cannot be read: it names no place, so it may be of any
        ({"type": "content_block_delta", "delta": {"type": "new_delta"}}, ["conflict"]),
        ({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta"}}, ["conflict"]),
        ({"type": "content_block_delta", "index": 1, "delta": {"type": "new_delta"}}, [{"n": 1}]),
        # a kind that we do not know, but it names the place of a call
        ({"type": "new_kind", "index": 0}, ["conflict"]),
        ({"type": "new_kind", "index": 1}, [{"n": 1}]),
        ({"type": "new_kind"}, [{"n": 1}]),
        ({"type": "new_kind", "partial_json": "x"}, ["conflict"]),
        ({"type": 5}, ["conflict"]),
        ([1], ["conflict"]),
    ],
)
def test_a_payload_that_cannot_be_read_may_be_of_the_call_whose_place_it_names(payload: Any, told):
    events, _ = heard("anthropic", BEGUN + sse(payload) + CLOSED)
    assert fate(events)[0] == told


@pytest.mark.parametrize(
    ("places", "told"), [('"index":1,"index":0', "conflict"), ('"index":0,"index":0', {"n": 1})]
)
def test_what_cannot_be_read_for_a_call_that_is_over_may_be_of_any_if_it_names_two(places, told):
    block = '"content_block":{"type":"tool_use","id":"a","name":"pay","input":{}}'
    odd = f'{{"type":"content_block_start",{places},{block},"new":1}}'
    begun = BEGUN + Messages.close(0) + Messages.open(1, "b", "pay") + Messages.args(1, PAY)
    events, _ = heard("anthropic", begun + sse(odd) + Messages.close(1) + Messages.end())
    assert fate(events)[0] == [{"n": 1}, told]


def test_a_doubtful_payload_taints_the_call_that_it_grew_and_the_one_whose_place_it_names():
    two = Chat.call(0, "a", "pay", '{"n"') + Chat.call(1, "b", "pay", PAY)
    entry = {"index": 1, "id": "a", "function": {"arguments": ":1}", "new": {"arguments": 1}}}
    events, _ = heard("openai_chat", two + Chat.delta({"tool_calls": [entry]}) + Chat.end())
    assert fate(events)[0] == ["conflict", "conflict"]


@pytest.mark.parametrize("error", [{"message": "boom"}, "boom"])
def test_an_error_in_a_kind_that_we_do_not_know_is_not_the_streams(error: Any):
    new = {"type": "new_kind", "error": error}
    events, _ = heard("anthropic", BEGUN + sse(new) + CLOSED)
    assert fate(events) == ([{"n": 1}], ("finish", "tool_calls"))


def test_an_error_beside_what_cannot_be_read_fails_the_stream_on_wires_without_kinds_too():
    many = {f"x{n}": 1 for n in range(200)}
    events, _ = heard("openai_chat", Chat.call(0, "a", "pay", PAY) + sse({"error": "boom", **many}))
    assert fate(events) == (["provider_error"], ("failed", "provider_error"))


def test_a_kind_counts_before_the_name_of_its_event():
    odd = {"type": "content_block_stop", "index": "0"}
    events, _ = heard("anthropic", BEGUN + sse(odd, "message") + Messages.end())
    assert fate(events) == ([{"n": 1}], ("finish", "tool_calls"))


def test_a_payload_without_a_kind_or_the_name_of_an_event_is_passed_on_whole():
    events, _ = heard("anthropic", BEGUN + sse({"index": 0}) + CLOSED)
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{"index": 0}]
    assert fate(events)[0] == ["conflict"]


def nested(field: str, levels: int) -> bytes:
    """A payload of so many levels, around texts that are none."""
    inner = levels - 1
    return sse(f'{{"choices":[],"{field}":' + '{"[\\"[":' * inner + '"{"' + "}" * inner + "}")


@pytest.mark.parametrize("levels", [513, 5000, 50_000])
@pytest.mark.parametrize("field", ["provider", "new"])
def test_a_payload_that_is_nested_too_deeply_fails_the_stream(field: str, levels: int):
    """So it does in any version of Python: how deep their readers go differs."""
    deep = nested(field, levels)
    for before in (b"", Chat.call(0, "a", "pay", PAY)):
        events, _ = heard("openai_chat", before + deep + Chat.end())
        assert fate(events) == (["truncated"] * bool(before), ("failed", "protocol"))


@pytest.mark.parametrize("field", ["provider", "new"])
def test_a_payload_that_is_nested_less_is_read(field: str):
    events, _ = heard(
        "openai_chat", Chat.call(0, "a", "pay", PAY) + nested(field, 512) + Chat.end()
    )
    assert fate(events) == ([{"n": 1}], ("finish", "tool_calls"))


# --- how much is made even ------------------------------------------------------------------------


def test_a_payload_of_too_many_fields_is_given_up_at_the_first():
    many = {f"x{n}": 1 for n in range(200)}
    events, notes = heard("anthropic", BEGUN + sse({"type": "content_block_stop", **many}) + CLOSED)
    assert fate(events)[0] == ["conflict"]
    assert (notes["wire.field_unknown"], notes["wire.kind_unknown"]) == (1, 1)


def test_an_odd_field_is_left_aside_before_the_others_are_counted():
    many = {"choices": [], "usage": 5, **{f"x{n}": 1 for n in range(200)}}
    _, notes = heard("openai_chat", sse(many) + Chat.end("stop"))
    assert (notes["wire.field_odd"], notes["wire.field_unknown"]) == (1, 1)


def test_a_field_that_one_kind_has_is_unknown_in_another():
    """How an odd value of it is read there says nothing here."""
    end = {"type": "message-end", "index": "0", "delta": {"finish_reason": "COMPLETE"}}
    _, notes = heard("cohere", sse({"type": "message-start", "id": "m"}) + sse(end))
    assert notes == {"wire.field_unknown": 1}


def test_a_place_is_made_even_once_and_then_left_aside():
    content = [[{"type": "text", "text": "hi"}]]
    said = {"type": "content-delta", "index": 0, "delta": {"message": {"content": content}}}
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    events, notes = heard("cohere", sse(said) + sse(end))
    assert [e.kind for e in events if e.kind == "text_delta"] == []
    assert notes == {"wire.shape_odd": 1, "wire.field_odd": 1}


# --- bytes that are no text, and halves of characters ---------------------------------------------


def test_a_fragment_with_replaced_bytes_breaks_its_call_and_no_other():
    body = Chat.call(0, "a", "pay", '{"n":"?"}').replace(b"?", b"\xff")
    events, notes = heard("openai_chat", body + Chat.call(1, "b", "pay", PAY) + Chat.end())
    assert (fate(events)[0], notes["wire.bad_utf8"]) == (["conflict", {"n": 1}], 1)


def test_arguments_that_are_an_object_with_replaced_bytes_break_their_call_and_no_other():
    def line(text: str) -> bytes:
        function = {"name": "pay", "arguments": {"n": text}}
        said = {"message": {"role": "assistant", "tool_calls": [{"function": function}]}}
        return json.dumps({**said, "done": False}).replace("?", "\x80").encode("latin-1") + b"\n"

    events, _ = traced("ollama", line("?") + line("!") + b'{"done":true,"done_reason":"stop"}\n')
    assert fate(events)[0] == [{"n": "!"}, "conflict"]


def test_a_call_said_at_once_with_replaced_bytes_is_broken_and_the_next_is_not():
    def said(text: str) -> bytes:
        part = {"functionCall": {"name": "pay", "args": {"n": text}}}
        return sse({"candidates": [{"content": {"parts": [part]}}]}).replace(b"?", b"\xff")

    body = said("?") + said("!") + sse({"candidates": [{"finishReason": "STOP"}]})
    assert fate(heard("gemini", body)[0])[0] == [{"n": "!"}, "conflict"]


def test_halves_in_a_payload_that_we_do_not_know_do_not_leave_the_library():
    events, _ = traced("anthropic", BEGUN + sse('{"type":"new","x":"\\ud83d"}') + CLOSED)
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{"type": "new", "x": "�"}]


def test_a_payload_that_we_do_not_know_between_two_halves_changes_nothing():
    def half(digits: bytes) -> bytes:
        return Chat.call(0, None, None, "?").replace(b"?", b"\\u" + digits)

    body = Chat.call(0, "a", "pay", '{"n":"') + half(b"d83d") + sse({"new": 1})
    events, _ = traced(
        "openai_chat", body + half(b"de00") + Chat.call(0, None, None, '"}') + Chat.end()
    )
    assert calls(events) == [("a", "pay", {"n": "\U0001f600"})]


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b'{"a":1,"b":{"a":2}}', 1),
        (b'{"b":"\xff","a":1}', 1),
        (b'{"\xff":0,"a":1}', 1),
        (b'{"b":"\\ud83d","a":1}', 1),
        (b'{"a":"\xff"}', "\ufffd"),
        (b'{"a":"\\ud83d"}', "\ud83d"),
        (b'{"a":1,"a":2}', 2),
        (b'{"a":null}', None),
        (b'{"b":1}', None),
        (b'[{"a":1}]', None),
        (b'{"a":1', None),
    ],
)
def test_a_field_of_a_payload_is_read_whatever_is_odd_about_the_rest(payload: bytes, value: Any):
    assert field_of(payload, "a") == value


@pytest.mark.parametrize(("said", "counted"), [(3, 3), (3.0, 3), (True, None), ("3", None)])
def test_a_count_is_a_number_and_no_truth_value(said: object, counted: int | None):
    assert count({"usage": {"input": said}}, "usage", "input") == counted
