"""streamnorm.core.even: an odd payload is changed in the one place the complaint names."""

from __future__ import annotations

import msgspec
import pytest

from streamnorm.core import even as _even
from tests.conftest import Chat, Messages, calls_of, said, sse, text_of, traced


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    n: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    items: list[Inner] = []
    one: Inner | None = None


def complaint_about(data: bytes) -> _even.Complaint:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(data, type=Outer)
    return _even.complaint(error.value)


@pytest.mark.parametrize(
    ("data", "path", "where", "unknown"),
    [
        (b'{"x":1}', ("x",), "x", True),
        (b'{"items":[{},{"x":1}]}', ("items", 1, "x"), "items[].x", True),
        (b'{"items":[{},{"n":"1"}]}', ("items", 1, "n"), "items[].n", False),
        (b'{"one":{"x":1}}', ("one", "x"), "one.x", True),
        (b'{"one":3}', ("one",), "one", False),
        (b'{"items":{}}', ("items",), "items", False),
    ],
)
def test_a_complaint_names_the_place(data: bytes, path: tuple, where: str, unknown: bool):
    assert complaint_about(data)[:3] == (path, where, unknown)


def test_a_complaint_without_a_place_is_uneven():
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(b"3", type=Outer)
    with pytest.raises(_even.Uneven):
        _even.complaint(error.value)


class One(msgspec.Struct, tag="one"):
    n: int


class Two(msgspec.Struct, tag="two"):
    n: int


class Holder(msgspec.Struct):
    it: One | Two


@pytest.mark.parametrize("data", [b'{"it":{"type":"three"}}', b'{"it":{"type":"one"}}'])
def test_a_kind_that_is_unknown_and_a_field_that_is_missing_are_uneven(data: bytes):
    """They name a place, but leaving aside what stands there would make another thing of it."""
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(data, type=Holder)
    assert "at `$" in str(error.value)
    with pytest.raises(_even.Uneven):
        _even.complaint(error.value)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (("a",), b'{"a":7,"b":[1,{"c":2.50}]}'),
        (("b", 0), b'{"a":1e2,"b":[7,{"c":2.50}]}'),
        (("b", 1, "c"), b'{"a":1e2,"b":[1,{"c":7}]}'),
    ],
)
def test_one_value_is_changed_and_the_bytes_of_the_others_stay(path: tuple, told: bytes):
    assert _even.change(b'{"a":1e2,"b":[1,{"c":2.50}]}', path, lambda value: b"7") == told


def test_a_quirk_hears_the_exact_bytes_of_the_value():
    heard: list[bytes] = []
    _even.change(b'{"a": { "b" : 1.0 } }', ("a",), lambda v: heard.append(v) or b"1")
    assert heard == [b'{ "b" : 1.0 }']


def test_a_value_can_be_left_aside():
    drop = lambda value: _even.DROP  # noqa: E731
    assert _even.change(b'{"a":1,"b":2}', ("a",), drop) == b'{"b":2}'
    assert _even.change(b'{"a":[1,2]}', ("a", 0), drop) == b'{"a":[2]}'
    assert _even.change(b"[1]", (), drop) == b"null"


def test_an_empty_path_is_the_payload_itself():
    assert _even.change(b"[1]", (), lambda value: value + b"\n") == b"[1]\n"


@pytest.mark.parametrize("path", [("x",), ("a", 3), ("a", "x"), (0,)])
def test_a_path_that_leads_nowhere_is_uneven(path: tuple):
    with pytest.raises(_even.Uneven):
        _even.change(b'{"a":[1]}', path, lambda value: value)


def test_json_text_keeps_an_objects_exact_text():
    text = _even.quoted(b'{"a": 1.50, "b": 12345678901234567890}')
    assert msgspec.json.decode(text) == '{"a": 1.50, "b": 12345678901234567890}'


def test_a_field_is_added_to_an_object_and_to_nothing_else():
    assert _even.with_field(b'{"a": 1.0}', "type", "x") == b'{"a":1.0,"type":"x"}'
    with pytest.raises(_even.Uneven):
        _even.with_field(b"[1]", "type", "x")


@pytest.mark.parametrize(
    ("quirk", "value", "told"),
    [
        (_even.integer, b'"12"', b"12"),
        (_even.integer, b"12", b"12"),
        (_even.integer, b'"x"', None),
        (_even.integer, b'""', None),
        (_even.integer, b"1.5", None),
        (_even.number_text, b"12", b'"12"'),
        (_even.number_text, b"-1", b'"-1"'),
        (_even.number_text, b"1.5", None),
        (_even.number_text, b"{}", None),
        (_even.object_text, b'{"a":1}', b'"{\\"a\\":1}"'),
        (_even.object_text, b"[1]", None),
        (_even.wrapped, b"1", b"[1]"),
    ],
)
def test_quirks_read_what_is_meant_and_leave_the_rest_aside(quirk, value: bytes, told):
    assert quirk(value) == told


# --- how much is repaired -------------------------------------------------------------------------


def repairs_of(size: int) -> int:
    """How many places are repaired in a payload of so many bytes."""
    repairs = _even.Repairs(bytes(size))
    try:
        for count in range(100):
            repairs.begin((count,))
    except _even.Uneven:
        return count
    return -1


def test_of_a_big_payload_fewer_places_are_repaired():
    assert [repairs_of(n) for n in (0, 1, 1 << 20, 1 << 22, 1 << 24)] == [64, 64, 64, 16, 8]


def test_a_place_is_repaired_once():
    repairs = _even.Repairs(b"{}")
    assert [repairs.begin(path) for path in (("a",), ("b",), ("a",))] == [True, True, False]


def test_a_payload_doubles_at_most():
    repairs = _even.Repairs(bytes(10))
    assert repairs.checked(bytes(84)) == bytes(84)
    with pytest.raises(_even.Uneven, match="grow"):
        repairs.checked(bytes(85))


def test_an_object_with_more_fields_than_we_know_of_any_is_hopeless():
    repairs = _even.Repairs(b"{}")
    assert [repairs.hopeless(n) for n in (128, 129)] == [False, True]


# --- what it gives on the wires -------------------------------------------------------------------


def test_an_unknown_field_beside_a_call_is_noted_and_the_call_is_whole():
    chunk = {"choices": [{"index": 0, "new": 1, "delta": {"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}", "x": []}}]}}], "y": {}}  # fmt: skip
    events, pipe = traced("openai_chat", sse(chunk) + Chat.end())
    assert said(events) == [("a", "f", {})]
    assert pipe.notes["wire.field_unknown"] == 3


def test_an_unknown_field_with_a_dot_or_a_bracket_in_its_name_is_survived():
    chunk = {"choices": [{"delta": {"content": "hi"}}], "a.b[0]": 1, "`$x`": 2, "": 3}
    events, pipe = traced("openai_chat", sse(chunk) + Chat.end("stop"))
    assert text_of(events) == "hi"
    assert pipe.notes["wire.field_unknown"] == 3


def test_a_field_of_another_type_is_left_aside_with_a_note():
    chunk = {"choices": [{"delta": {"content": "hi", "reasoning_content": 5}}]}
    events, pipe = traced("openai_chat", sse(chunk) + Chat.end("stop"))
    assert text_of(events) == "hi"
    assert pipe.notes["wire.field_odd"] == 1


def test_arguments_as_an_object_keep_their_exact_text():
    call = b'{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 12345678901234567890, "x": 1.50}}}'
    chunk = b'data: {"choices":[{"delta":{"tool_calls":[' + call + b"]}}]}\n\n"
    events, pipe = traced("openai_chat", chunk + Chat.end())
    (call,) = calls_of(events)
    assert call.raw == '{"n": 12345678901234567890, "x": 1.50}'
    assert call.arguments == {"n": 12345678901234567890, "x": 1.5}
    assert pipe.notes["args.object"] == 1


def test_an_event_name_stands_in_for_a_missing_type():
    body = Messages.START + Messages.open(0, "a", "f") + Messages.args(0, '{"x":1}')
    body += b'event: content_block_stop\ndata: {"index":0}\n\n' + Messages.end()
    events, _ = traced("anthropic", body)
    assert said(events) == [("a", "f", {"x": 1})]


@pytest.mark.parametrize("payload", ["3", '"x"', "[1]", "null", "true", "[]", '{"type":5}', "{}"])
@pytest.mark.parametrize("provider", ["openai_chat", "anthropic"])
def test_json_that_is_no_payload_is_passed_on_whole(provider: str, payload: str):
    events, pipe = traced(provider, sse(payload) + Chat.text("") + Messages.START)
    kinds = [e.payload for e in events if e.kind == "unrecognized"]
    assert msgspec.json.decode(payload.encode()) in kinds
    assert pipe.notes["wire.kind_unknown"] >= 1


@pytest.mark.parametrize(
    ("data", "twice"),
    [(b'{"a":1,"a":2}', True), (b'[{"a":{"b":1,"b":2}}]', True), (b'{"a":1,"b":{"a":1}}', False),
     (b'{"a":1,"a":1}', False), (b'{"a" :1,"a":2}', True), (b'{"a\\\\":1,"b":1,"b":2}', True),
     (b'{"a":"\\":","b":1,"b":2}', True), (b'{"a":"\\":\\":","b":1}', False), (b"{", False),
     (b"[" * 100_000, False)],
)  # fmt: skip
def test_a_field_that_is_said_twice_and_differently_is_seen(data: bytes, twice: bool):
    assert _even.says_twice(data) is twice


def test_before_the_first_repair_of_a_payload_all_of_it_is_as_it_came():
    repairs = _even.Repairs(b"{}")
    assert repairs.fresh
    repairs.begin(("a",))
    assert not repairs.fresh
