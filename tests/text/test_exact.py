"""streamnorm.text.exact: argument text in, an exact value or a named refusal out."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.text.canonical import _canonical, canonical, checksum
from streamnorm.text.exact import MAX_DEPTH, Refused, parse

# --- what is JSON, and is not ---------------------------------------------------------------------

YES = {
    "null": ("null", None),
    "true": ("true", True),
    "false": ("false", False),
    "zero": ("0", 0),
    "minus zero": ("-0", 0),
    "minus zero point zero": ("-0.0", -0.0),
    "one": ("1", 1),
    "minus one": ("-1", -1),
    "a float": ("1.5", 1.5),
    "a float that is whole": ("1.0", 1.0),
    "an exponent": ("1e2", 100.0),
    "a capital exponent": ("1E2", 100.0),
    "a signed exponent": ("1e+2", 100.0),
    "a negative exponent": ("1e-2", 0.01),
    "zero with an exponent": ("0e1", 0.0),
    "a fraction and an exponent": ("123.456e78", 123.456e78),
    "a number too small for a double": ("1e-400", 0.0),
    "the largest double": ("1.7976931348623157e308", 1.7976931348623157e308),
    "2**53 + 1": ("9007199254740993", 9007199254740993),
    "2**63": ("9223372036854775808", 2**63),
    "2**64": ("18446744073709551616", 2**64),
    "minus 2**70": ("-1180591620717411303424", -(2**70)),
    "white space around": (" \t\n\r1 \t\n\r", 1),
    "an empty string": ('""', ""),
    "a string": ('"abc"', "abc"),
    "all short escapes": (r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
    "a unicode escape": (r'"\u00e9"', "é"),
    "a capital unicode escape": (r'"\u00E9"', "é"),
    "a NUL escape": (r'"\u0000"', "\0"),
    "a pair": (r'"\ud83d\ude00"', "😀"),
    "a capital pair": (r'"\uD83D\uDE00"', "😀"),
    "two pairs": (r'"\ud83d\ude00\ud83d\ude01"', "😀😁"),
    "an escaped backslash before ud83d": (r'"\\ud83d"', r"\ud83d"),
    "utf-8": ('"é日🎌"', "é日🎌"),
    "DEL": ('"\x7f"', "\x7f"),
    "line separators": ('"\u2028\u2029"', "\u2028\u2029"),
    "a noncharacter": ('"\uffff\U0010ffff"', "\uffff\U0010ffff"),
    "a byte order mark inside": ('"\ufeff"', "\ufeff"),
    "an empty array": ("[]", []),
    "an array": ("[1,[2],{}]", [1, [2], {}]),
    "an array with white space": ("[ 1 , 2 ]", [1, 2]),
    "an empty object": ("{}", {}),
    "an object": ('{"a":1,"b":{"c":[]}}', {"a": 1, "b": {"c": []}}),
    "an object with white space": ('{ "a" : 1 , "b" : 2 }', {"a": 1, "b": 2}),
    "white space before a colon": ('{"a"\n:1}', {"a": 1}),
    "an empty key": ('{"":0}', {"": 0}),
    "an escaped key": (r'{"\u0061b":1}', {"ab": 1}),
    "a colon in a key": ('{"a\\":":1}', {'a":': 1}),
    "a colon after a quote in a value": ('{"a":"\\":"}', {"a": '":'}),
    "a float beside such a value": ('{"a":"\\":","b":1.5}', {"a": '":', "b": 1.5}),
    "an escape in an array beside one": (r'{"a":"\":","b":["\u00e9"]}', {"a": '":', "b": ["é"]}),
    "equal keys in different objects": ('[{"a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
    "equal keys on different levels": ('{"a":{"a":1}}', {"a": {"a": 1}}),
    "keys that differ in case": ('{"a":1,"A":2}', {"a": 1, "A": 2}),
    "keys that differ in form": ('{"\u00e9":1,"e\u0301":2}', {"\u00e9": 1, "e\u0301": 2}),
}  # fmt: skip

NO = {
    "nothing": "",
    "white space": "  ",
    "NaN": "NaN",
    "minus NaN": "-NaN",
    "nan": "nan",
    "Infinity": "Infinity",
    "minus Infinity": "-Infinity",
    "NaN in an object": '{"a":NaN}',
    "Infinity in an array": "[Infinity]",
    "1e999": "1e999",
    "minus 1e999": "-1e999",
    "1e999 in an object": '{"a":1e999}',
    "a plus sign": "+1",
    "a leading zero": "01",
    "a negative leading zero": "-01",
    "a bare minus": "-",
    "no digits before the point": ".5",
    "no digits after the point": "1.",
    "no digits after the point, exponent": "1.e1",
    "no exponent": "1e",
    "a signed nothing": "1e+",
    "hexadecimal": "0x1",
    "an underscore": "1_000",
    "full width digits": "\uff11",
    "True": "True",
    "nul": "nul",
    "nulll": "nulll",
    "two values": "1 2",
    "a value and a word": "{} x",
    "a value and a comma": "{},",
    "two objects": "{}{}",
    "an open string": '"a',
    "an open object": '{"a":1',
    "an open array": "[1",
    "a stray bracket": "[]]",
    "brackets that do not match": "[}",
    "a trailing comma in an array": "[1,]",
    "a trailing comma in an object": '{"a":1,}',
    "a leading comma": "[,1]",
    "two commas": "[1,,2]",
    "no comma": "[1 2]",
    "no colon": '{"a" 1}',
    "two colons": '{"a"::1}',
    "a comma for a colon": '{"a",1}',
    "no value": '{"a":}',
    "a bare key": "{a:1}",
    "a number for a key": "{1:1}",
    "single quotes": "{'a':1}",
    "a comment": "{} // x",
    "another comment": "{/**/}",
    "a bad escape": r'"\x41"',
    "a short unicode escape": r'"\u00e"',
    "no unicode escape": r'"\u"',
    "an escape at the end": '"\\',
    "a raw line end": '"a\nb"',
    "a raw tab": '"a\tb"',
    "a raw NUL": '"a\0b"',
    "a byte order mark in front": "\ufeff{}",
    "a no-break space": "\u00a01",
    "a form feed": "\f1",
    "a first half": r'"\ud83d"',
    "a second half": r'"\ude00"',
    "halves in the wrong order": r'"\ude00\ud83d"',
    "a first half and a letter": r'"\ud83dx"',
    "two first halves": r'"\ud83d\ud83d"',
    "a half in a key": r'{"\ud83d":1}',
    "a half deep inside": r'{"a":[{"b":"\udc00"}]}',
    "a raw half": '"\ud83d"',
    "a key twice": '{"a":1,"a":2}',
    "a key twice with one value": '{"a":1,"a":1}',
    "a key twice, nested": '{"x":{"a":1,"a":2}}',
    "a key twice in an array": '[0,{"a":1,"a":2}]',
    "a key twice with white space": '{"a" :1,"a"\n:2}',
    "a key twice, one escaped": r'{"a":1,"\u0061":2}',
    "a key twice, both escaped": r'{"\u0061":1,"\u0061":2}',
    "an empty key twice": '{"":1,"":2}',
    "a key three times": '{"a":1,"b":2,"a":3,"a":4}',
    "a key twice beside a quote and colon in a value": '{"a":"\\":","a":"x"}',
    "a key twice in both of two objects": '{"x":{"a":1,"a":1},"y":{"b":1,"b":1}}',
    "python": "{'a': None}",
    "html": "<p>",
    "a word": "hello",
}  # fmt: skip


@pytest.mark.parametrize("name", YES)
def test_json_is_read_exactly(name: str):
    text, value = YES[name]
    told = parse(text)
    assert told == value
    assert type(told) is type(value)
    assert repr(told) == repr(value) or isinstance(value, int)  # -0.0 is not 0.0


@pytest.mark.parametrize("name", NO)
def test_what_is_not_exact_json_is_refused_with_a_reason(name: str):
    with pytest.raises(Refused) as refused:
        parse(NO[name])
    assert str(refused.value)


def test_there_are_enough_cases():
    assert len(YES) + len(NO) >= 80


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"a":2}', "the key 'a' stands twice in one object"),
        ('{"a":NaN}', "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e999", "a number is beyond a double"),
        (r'"\ud83d"', "half of a surrogate pair"),
        ('{"a":1', "at character 6"),
        ("[" * 129 + "]" * 129, "nested deeper than 128 levels"),
        ("1" * 4301, "4300"),
    ],
)
def test_the_reason_names_what_is_wrong(text: str, reason: str):
    with pytest.raises(Refused, match=re.escape(reason)):
        parse(text)


@pytest.mark.parametrize("digits", [19, 20, 100, 640, 4300])
def test_big_integers_keep_every_digit(digits: int):
    text = "7" * digits
    assert parse(text) == int(text)
    assert parse(f'{{"n":-{text}}}') == {"n": -int(text)}
    assert type(parse(f"[{text}]")[0]) is int


@pytest.mark.parametrize(("depth", "fits"), [(1, True), (127, True), (128, True), (129, False)])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_allowed_up_to_the_limit(depth: int, fits: bool, opening: str, closing: str):
    assert MAX_DEPTH == 128
    inner = "1" if opening != "[" else ""
    text = opening * depth + inner + closing * depth
    if fits:
        parse(text)
    else:
        with pytest.raises(Refused, match="nested deeper than 128"):
            parse(text)


@pytest.mark.parametrize("depth", [500, 1_000, 5_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("[", "")])
def test_any_depth_is_a_refusal_and_never_a_crash(depth: int, opening: str, closing: str):
    inner = "1" if opening != "[" else ""
    with pytest.raises(Refused):
        parse(opening * depth + inner + closing * depth)


@pytest.mark.parametrize("text", ['{"a":[]}', '{"a":{}}'])
def test_depth_counts_in_an_object_of_one_key_too(text: str):
    assert parse(text, max_depth=2)
    with pytest.raises(Refused):
        parse(text, max_depth=1)


def test_depth_counts_in_the_lists_of_an_object_of_one_key():
    assert parse('{"a":[[1]]}', max_depth=3) == {"a": [[1]]}
    with pytest.raises(Refused, match="deeper than 2 levels"):
        parse('{"a":[[1]]}', max_depth=2)


@pytest.mark.parametrize("text", ['{"a":1,"a" :2}', '{"a":1,"a"\t:2}'])
def test_a_key_said_twice_cannot_hide_behind_space_before_its_colon(text: str):
    with pytest.raises(Refused, match="'a' stands twice"):
        parse(text)


def test_a_key_said_twice_cannot_hide_behind_one_that_ends_with_a_backslash():
    with pytest.raises(Refused, match="'a' stands twice"):
        parse('{"a":1,"a":2,"b\\\\":3}')


def test_json_inside_a_text_has_keys_of_its_own():
    assert parse('{"text": "{\\"a\\": 1, \\"a\\": 2}"}') == {"text": '{"a": 1, "a": 2}'}
    with pytest.raises(Refused, match="'b' stands twice"):
        parse('{"b": "{\\"a\\": 1}", "b": 1}')


def test_the_key_that_stands_twice_is_the_one_that_is_named():
    with pytest.raises(Refused, match="'b' stands twice"):
        parse('{"a":1,"b":1,"b":2,"c":3}')


def test_the_strict_reading_takes_all_that_is_exact():
    """A colon in a text, and space before others, leave room for doubt."""
    assert parse('{"a" :["\\u0041:",1.5],"b" :{"c":"\\u0042"}}') == {
        "a": ["A:", 1.5],
        "b": {"c": "B"},
    }


@pytest.mark.parametrize(
    "text",
    [r'["\ud83d","a"]', r'["a","\ud83d"]', r'{"\ud83d":1,"b":"x"}', r'{"a":"\ud83d","b":"x"}'],
)
def test_half_a_character_is_refused_beside_whole_ones(text: str):
    with pytest.raises(Refused, match="half of a surrogate pair"):
        parse(text)


def test_of_two_reasons_depth_is_told_first():
    with pytest.raises(Refused, match="deeper than 2 levels"):
        parse(r'[[["\ud83d"]]]', max_depth=2)


def test_a_lower_depth_can_be_asked_for_and_is_named():
    assert parse("[[1]]", max_depth=2) == [[1]]
    with pytest.raises(Refused, match="deeper than 2 levels"):
        parse("[[[1]]]", max_depth=2)


# --- laws -----------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers(-(10**40), 10**40) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


def same(a, b) -> bool:
    """Equal in value and in type: 1 is not 1.0, True is not 1, 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


@given(JSON, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_any_value_comes_back_as_it_was(value, ascii_: bool, indent):
    assert same(parse(json.dumps(value, ensure_ascii=ascii_, indent=indent)), value)


def judged(text: str):
    """The standard library with its leniencies closed; None if it refuses."""

    def unique(pairs):
        if len({k for k, _ in pairs}) != len(pairs):
            raise ValueError("twice")
        return dict(pairs)

    def finite(text: str) -> float:
        if math.isinf(float(text)):
            raise ValueError("infinite")
        return float(text)

    def constant(_: str):
        raise ValueError("constant")

    try:
        value = json.loads(
            text, object_pairs_hook=unique, parse_float=finite, parse_constant=constant
        )
        json.dumps(value, ensure_ascii=False).encode()  # no half of a pair
    except (ValueError, RecursionError):
        return None
    return (value,)


PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', '"a"', '"a":', '"a" :', '"\\u0061":', '"b":', "1", "0", "-",
     ".", "e", "1.5", "1e5", "1e400", "true", "null", "NaN", " ", "\n", "\\", "\\u", "d83d", "de00",
     '"\\ud83d\\ude00"', '"\\ud83d"', "x", '"":', '{"a":1}', '{"a":1,"a":2}', "é", '":']
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=20))
def test_any_text_is_judged_as_by_a_strict_reader(text: str):
    expected = judged(text)
    try:
        told = (parse(text),)
    except Refused:
        told = None
    assert (told is None) == (expected is None)
    assert told is None or same(told[0], expected[0])


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "\\u0061", '\\"', "c:", "a\\\\"]),
                          st.sampled_from(["1", "{}", '"x"', '"\\":"', '{"a":1}'])), max_size=6),
       st.sampled_from([":", " :", ": ", "\n:"]))  # fmt: skip
def test_a_key_said_twice_is_always_found(pairs, colon: str):
    text = "{" + ",".join(f'"{key}"{colon}{value}' for key, value in pairs) + "}"
    keys = [json.loads(f'"{key}"') for key, _ in pairs]
    if len(set(keys)) == len(keys):
        assert list(parse(text)) == keys
    else:
        with pytest.raises(Refused, match="stands twice"):
            parse(text)


# --- canonical form -------------------------------------------------------------------------------

# RFC 8785, appendix B: doubles by their bits, as ECMAScript writes them.
NUMBER_TABLE = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize("bits", NUMBER_TABLE)
def test_numbers_are_written_as_the_rfc_says(bits: str):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == NUMBER_TABLE[bits]


def test_the_rfcs_example_is_written_as_the_rfc_says():
    text = r"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    assert canonical(parse(text)) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16_as_in_the_rfcs_example():
    value = {
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\U0001f600": "Emoji: Grinning Face", "\x80": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }  # fmt: skip
    written = json.loads(canonical(value))
    assert list(written.values()) == [
        "Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign",
        "Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh",
    ]  # fmt: skip


def test_integers_beyond_a_double_keep_their_digits():
    assert canonical({"n": 2**70}) == '{"n":1180591620717411303424}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"b": [1, {"d": None, "c": True}], "a": ""}, '{"a":"","b":[1,{"c":true,"d":null}]}'),
        ("\x00\x1f\x7f\u2028é", '"\\u0000\\u001f\x7f\u2028é"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("</script>", '"</script>"'),
        ([0.5, -0.5, 1.0, 100.0, 0.0], "[0.5,-0.5,1,100,0]"),
    ],
)
def test_the_canonical_form_has_no_choices(value, text: str):
    assert canonical(value) == text


@given(JSON)
def test_the_short_way_to_the_canonical_form_writes_what_the_long_way_does(value):
    long: list[str] = []
    _canonical(value, long)
    assert canonical(value) == "".join(long)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": {"b": [1.0]}}, '{"a":{"b":[1]}}'),
        ([{"\uffff": 1, "\U0001f600": 2}], '[{"\U0001f600":2,"\uffff":1}]'),
        ({"a": [2**64, "\ud83d"]}, '{"a":[18446744073709551616,"\ud83d"]}'),
    ],
)
def test_what_no_dependency_writes_canonically_takes_the_long_way(value, text: str):
    assert canonical(value) == text


@given(JSON)
def test_the_canonical_form_says_the_same_and_is_its_own(value):
    text = canonical(value)
    again = parse(text)
    assert equal(again, value)
    assert canonical(again) == text


def equal(a, b) -> bool:
    """Equal, where a double may come back as the whole number that is written for it."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b or (isinstance(b, float) and float(a) == b)


def test_equal_calls_have_equal_checksums():
    one = checksum("f", {"a": 1, "b": [1.0, {"x": "é", "y": None}]})
    two = checksum("f", {"b": [1, {"y": None, "x": "\u00e9"}], "a": 1.0})
    assert one == two
    assert len(one) == 64


def test_other_calls_have_other_checksums():
    sums = [
        checksum("f", {}), checksum("g", {}), checksum("f", {"a": 1}), checksum("f", {"a": 2}),
        checksum("f", {"a": "1"}), checksum("f", {"a": True}), checksum("f", {"a": None}),
        checksum("f", {"a": [1]}), checksum("f", {"b": 1}), checksum("f", {"a": 2**53}),
        checksum("f", {"a": 2**53 + 1}), checksum("f", {"a": 1.5}),
    ]  # fmt: skip
    assert len(set(sums)) == len(sums)


def test_the_checksum_is_sha256_of_the_canonical_call():
    text = '{"arguments":{"city":"Oslo"},"name":"weather"}'
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert checksum("weather", {"city": "Oslo"}) == expected
