"""streamnorm.text.written: what is written says what was given, or nothing is written."""

import enum
import json
import math
from datetime import UTC, date, datetime

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import TextDelta, event_to_dict
from streamnorm.text.written import (
    HOLE,
    data_uri,
    form,
    json_ascii,
    json_bytes,
    json_spaced,
    json_text,
    made_safe,
    one_line,
    phrase,
    phrased,
    plain_values,
    safe_json,
    safe_struct,
    safe_text,
    sse,
    sse_lines,
)


class Named(tuple):
    """A tuple by another name, as a namedtuple is."""


class Point(msgspec.Struct):
    x: int
    y: bytes


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": [1, 2.5, "é", None, True]}, '{"a":[1,2.5,"é",null,true]}'),
        (2**63 - 1, "9223372036854775807"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        ({"big": 2**70, "text": "é"}, '{"big":1180591620717411303424,"text":"é"}'),
        ({1: 2, 2.5: 3}, '{"1":2,"2.5":3}'),
        ({None: 1, True: 2}, '{"null":1,"true":2}'),
        ("half \ud83d", r'"half \ud83d"'),
        ({"\udc00": "é"}, r'{"\udc00":"\u00e9"}'),
        ([2**70, "\ud83d"], r'[1180591620717411303424,"\ud83d"]'),
        ("a\x00\n\t\"\\/\x7f", '"a\\u0000\\n\\t\\"\\\\/\x7f"'),
        ("\u2028 and \u2029", '"\u2028 and \u2029"'),
        (Named((1, 2)), "[1,2]"),
        ({"point": Point(1, b"hi")}, '{"point":{"x":1,"y":"aGk="}}'),
        ([Point(1, b""), "\ud83d"], r'[{"x":1,"y":""},"\ud83d"]'),
        ([0.1, 1e-7, 5e-324, 1e22, -0.0, 1.0], "[0.1,1e-7,5e-324,1e+22,-0.0,1.0]"),
        ("null", '"null"'),
        ([datetime(2026, 11, 17, tzinfo=UTC), None], '["2026-11-17T00:00:00Z",null]'),
        ([Point(1, b"hi"), None], '[{"x":1,"y":"aGk="},null]'),
    ],
)  # fmt: skip
def test_a_value_is_written_exactly(value, written):
    assert json_text(value) == written
    assert json_bytes(value) == written.encode()


@pytest.mark.parametrize(
    "value",
    [math.nan, [math.inf], {"a": {"b": -math.inf}}, [2**70, math.nan], [math.nan, "\ud83d"]],
)
def test_what_is_no_number_is_refused_instead_of_becoming_null(value):
    with pytest.raises(ValueError, match="a number that JSON cannot say: NaN or Infinity"):
        json_bytes(value)


@pytest.mark.parametrize("value", [object(), {"a": object()}, {(1, 2): 3}, [len]])
def test_what_json_has_no_form_for_is_refused(value):
    with pytest.raises(TypeError):
        json_bytes(value)


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_beyond_what_orjson_takes_is_written():
    with pytest.raises(orjson.JSONEncodeError):
        orjson.dumps(nested(300))
    assert json_text(nested(300)) == "[" * 301 + "]" * 301


def test_nesting_without_end_is_an_error_that_can_be_caught():
    with pytest.raises(RecursionError):
        json_bytes(nested(100_000))


any_text = st.text(st.characters(exclude_categories=()))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
    max_leaves=12,
)  # fmt: skip


@given(plain)
def test_everything_plain_comes_back_as_it_was(value):
    assert json.loads(json_bytes(value)) == value
    assert json.loads(json_text(value)) == value


@given(plain)
def test_json_in_ascii_is_what_the_standard_library_writes(value):
    """Files of histories are in this form: it stays as it is."""
    assert json_ascii(value) == json.dumps(value, separators=(",", ":")).encode("ascii")
    assert json_ascii(value, in_lines=True) == json.dumps(value, indent=2).encode("ascii")


@given(plain)
def test_json_for_people_has_spaces_and_halves_as_they_are(value):
    assert json_spaced(value) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("write", [json_ascii, json_spaced, safe_json])
@pytest.mark.parametrize(
    ("value", "error"), [(math.nan, ValueError), ([math.nan], ValueError), ([object()], TypeError)]
)
def test_the_other_forms_refuse_the_same(write, value, error):
    with pytest.raises(error):
        write(value)


@given(plain)
def test_safe_json_says_the_same_without_a_character_of_html_or_a_line_break(value):
    line = safe_json(value)
    assert json.loads(line) == value
    assert not any(char in line.decode() for char in "<>&\u2028\u2029\n\r")


def test_safe_json_writes_escapes_for_what_html_and_scripts_would_take_for_their_own():
    line = safe_json({"text": "</script>&\u2028\u2029<!--"})
    assert line == rb'{"text":"\u003c/script\u003e\u0026\u2028\u2029\u003c!--"}'


@pytest.mark.parametrize("char", ["<", ">", "&", "\u2028", "\u2029"])
def test_each_character_that_a_page_would_take_for_its_own_is_escaped_alone(char):
    """Most lines have none of them and are only looked at, so each must be looked for."""
    escaped = f'"a\\u{ord(char):04x}b"'.encode()
    assert made_safe(f'"a{char}b"'.encode()) == escaped
    assert safe_json(f"a{char}b") == escaped


ANY_TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["", "null", "<b>", "é\u2028&", "half \ud83d", "é \udc00 <"]
)


@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=4))
def test_a_phrase_says_what_its_whole_object_would(id, pieces):
    line = phrased(phrase({"id": id, "delta": ""}), "".join(pieces))
    assert line == phrased(form(phrase({"id": HOLE, "delta": ""})) % safe_text(id), "".join(pieces))
    whole = {"id": id, "delta": "".join(pieces)}
    assert json.loads(line) == json.loads(safe_json(whole))
    assert not any(char in line.decode() for char in "<>&\u2028\u2029\n\r")
    if id.isascii():
        assert line == safe_json(whole)


def test_a_form_leaves_what_is_no_hole_as_it_is():
    line = form(safe_json({"a%b": HOLE, "%": "100 %", "c": HOLE}))
    assert line % (safe_text("%b"), b"1") == b'{"a%b":"%b","%":"100 %","c":1}'


@given(ANY_TEXT)
def test_a_struct_is_written_as_its_plain_form_would_be(text):
    assert safe_struct(TextDelta(text)) == safe_json(event_to_dict(TextDelta(text)))


def test_lines_that_are_written_already_are_events_one_by_one():
    assert sse_lines([b"{}", b"[]"]) == sse(b"{}") + sse(b"[]")
    assert sse_lines([]) == b""


def test_json_that_msgspec_wrote_is_made_safe_as_well():
    line = msgspec.json.encode(TextDelta("<b>"))
    written = rb'{"kind":"text_delta","text":"\u003cb\u003e","part":0,"choice":0,"agent":null}'
    assert made_safe(line) == written


@pytest.mark.parametrize(
    ("args", "event"),
    [
        (({"a": "é"},), 'data: {"a":"é"}\n\n'),
        (({"a": 1}, "note"), 'event: note\ndata: {"a":1}\n\n'),
        (("[DONE]",), "data: [DONE]\n\n"),
        (("[DONE]", "done"), "event: done\ndata: [DONE]\n\n"),
        ((b'{"a":1}', None, "s.7"), 'id: s.7\ndata: {"a":1}\n\n'),
        (([], "note", "s.8"), "id: s.8\nevent: note\ndata: []\n\n"),
        (({}, ""), "data: {}\n\n"),
    ],
)
def test_a_server_sent_event(args, event):
    assert sse(*args) == event.encode()


def test_a_data_uri_holds_type_and_bytes():
    assert data_uri(b"\xff\xfe", "image/png") == "data:image/png;base64,//4="


@pytest.mark.parametrize("text", ["<", ">", "&", "\u2028", "\u2029"])
def test_each_sign_that_a_page_or_a_line_could_end_at_is_escaped_in_a_phrase(text: str):
    line = phrased(phrase({"delta": ""}), text)
    assert line == b'{"delta":"\\u%04x"}' % ord(text)
    assert json.loads(line) == {"delta": text}


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({1: b"hi"}, {"1": "aGk="}),
        ([b"hi", (Colour.RED,)], ["aGk=", ["red"]]),
        (date(2026, 11, 17), "2026-11-17"),
        ("text", "text"),
        (None, None),
        (2.5, 2.5),
    ],
)
def test_what_an_sdk_decoded_is_told_as_it_was_in_json(value, plain):
    assert plain_values(value) == plain


@pytest.mark.parametrize("value", [10**5000, ["\ud83d", 10**5000]], ids=["alone", "beside a half"])
def test_an_integer_that_is_too_long_to_be_written_is_refused_and_says_so(value):
    with pytest.raises(ValueError, match="Exceeds the limit"):
        json_bytes(value)


@pytest.mark.parametrize(
    "char", ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "é", "\u2027"]
)
def test_one_line_is_one_to_whoever_reads_it(char: str):
    line = one_line(json_bytes({"a": f"x{char}y"}))
    assert line.decode().splitlines() == [line.decode()]
    assert json.loads(line) == {"a": f"x{char}y"}
