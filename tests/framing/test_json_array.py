"""streamnorm.framing.json_array: one array in any chunking in, the bytes of its elements out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.framing.json_array import JsonArray
from tests.conftest import at_random, bytewise, chunkings


def elements(chunks: list[bytes]) -> list[bytes]:
    framer = JsonArray()
    return [element for chunk in chunks for element in framer.feed(chunk)]


CASES = {
    "empty": (b"[]", []),
    "one": (b'[{"a":1}]', [b'{"a":1}']),
    "two with white space": (b'[\r\n{"a": 1}\r\n,\r\n{"b":2}\n]\n', [b'{"a": 1}', b'{"b":2}']),
    "nested": (b'[{"a":{"b":[{},[{}]]}},{}]', [b'{"a":{"b":[{},[{}]]}}', b"{}"]),
    "arrays in the array": (b"[[1],[[2]]]", [b"[1]", b"[[2]]"]),
    "brackets in strings": (b'[{"a":"]}[{"},{"b":"}"}]', [b'{"a":"]}[{"}', b'{"b":"}"}']),
    "escaped quotes": (rb'[{"a":"\"}"},{"b":"\\"}]', [rb'{"a":"\"}"}', rb'{"b":"\\"}']),
    "many backslashes": (rb'[{"a":"\\\\\""}]', [rb'{"a":"\\\\\""}']),
    "brackets in keys": (b'[{"]":1,"{":2}]', [b'{"]":1,"{":2}']),
    "utf-8": ('[{"a":"日本🎌"}]'.encode(), ['{"a":"日本🎌"}'.encode()]),
    "a comma in front, as Gemini sends it": (b'[{"a":1}\n,\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
    "never closes": (b'[{"a":1},{"b":', [b'{"a":1}']),
    "ends inside of a string": (b'[{"a":1},{"b":"x]}', [b'{"a":1}']),
    "ends after a backslash": (b'[{"a":1},{"b":"x\\', [b'{"a":1}']),
    "white space before": (b'\n \t[{"a":1}]', [b'{"a":1}']),
    "words before": (b'x y[{"a":1}]', [b'{"a":1}']),
    "nothing": (b"", []),
    "words in front": (b'[ x y ,{"a":1}]', [b"x y", b'{"a":1}']),
    "words between": (b'[{"a":1}, x  y ,{"b":2}]', [b'{"a":1}', b"x  y", b'{"b":2}']),
    "words behind": (b'[{"a":1} x y ]', [b'{"a":1}', b"x y"]),
    "words that never end": (b'[{"a":1}, x', [b'{"a":1}']),
}


@pytest.mark.parametrize("name", CASES)
def test_each_element_is_told_once_and_whole(name: str):
    body, expected = CASES[name]
    assert elements([body]) == expected
    for chunks in chunkings(body):
        assert elements(chunks) == expected
    for at in range(len(body)):
        assert elements([body[:at], body[at:]]) == expected
        assert elements([body[:at], b"", body[at:]]) == expected


def test_an_element_is_told_with_its_last_bracket_and_not_earlier():
    framer = JsonArray()
    assert framer.feed(b'[{"a":[1]') == []
    assert framer.feed(b"}") == [b'{"a":[1]}']


def test_what_never_ended_is_left_over():
    framer = JsonArray()
    assert framer.feed(b'[{"a":1},{"b":') == [b'{"a":1}']
    assert framer.rest() == [b'{"b":']
    assert not framer.closed


def test_words_behind_an_element_are_left_over_in_any_chunking():
    body = b'[{"a":1}, x y'
    for chunks in ([body], bytewise(body), [body[:9], body[9:]]):
        framer = JsonArray()
        assert [element for chunk in chunks for element in framer.feed(chunk)] == [b'{"a":1}']
        assert framer.rest() == [b"x y"]


def test_the_end_of_the_array_is_known():
    framer = JsonArray()
    framer.feed(b'[{"a":1}')
    assert not framer.closed
    framer.feed(b"]")
    assert framer.closed
    assert framer.rest() == []


@pytest.mark.parametrize("behind", [b'[{"a":1}]', b"[DONE]", b"]", b'}, {"b":[1]}]'])
def test_what_follows_the_array_is_left_over_and_is_none_of_its_elements(behind: bytes):
    body = b'[{"a":1}]\n' + behind
    for chunks in ([body], bytewise(body), [body[:9], body[9:]]):
        framer = JsonArray()
        assert [element for chunk in chunks for element in framer.feed(chunk)] == [b'{"a":1}']
        assert framer.rest() == [behind]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
OBJECTS = st.lists(st.dictionaries(st.text('"\\]}[{a\n', max_size=4), JSON, max_size=3), max_size=5)


@given(OBJECTS, st.integers(0, 10_000), st.sampled_from([1, 2, 5, 40]), st.booleans())
def test_any_array_in_any_chunking_gives_its_elements(values, seed: int, top: int, ascii_: bool):
    body = json.dumps(values, ensure_ascii=ascii_, indent=seed % 3 or None).encode()
    told = elements(at_random(body, top, seed))
    assert [json.loads(element) for element in told] == values
    assert elements([body]) == told


@given(st.lists(st.sampled_from([*b'[]{}",\\a \n']), max_size=40).map(bytes), st.integers(1, 9))
def test_any_bytes_give_the_same_elements_in_any_chunking(body: bytes, top: int):
    assert elements(at_random(body, top, 1)) == elements([body]) == elements(bytewise(body))


@pytest.mark.parametrize("size", [49, 50, 51])
def test_an_element_beyond_the_limit_is_seen_in_any_chunking(size: int):
    element = b'{"a":"' + b"x" * (size - 8) + b'"}'
    body = b'[{"b":1},' + element + b',{"c":2}]'
    for chunks in ([body], bytewise(body), at_random(body, 7, 1)):
        framer = JsonArray(50)
        told = []
        for chunk in chunks:
            told += framer.feed(chunk)
            if framer.overflow:
                break
        assert framer.overflow is (size > 50)
        if size <= 50:
            assert told == [b'{"b":1}', element, b'{"c":2}']
        else:
            assert told == [b'{"b":1}']


def test_an_element_that_never_ends_is_given_up():
    framer = JsonArray(100)
    framer.feed(b"[{")
    for _ in range(11):
        framer.feed(b'"a": 1234,')
    assert framer.overflow


@pytest.mark.parametrize("size", [49, 50, 51])
@pytest.mark.parametrize("around", [b"[{} ,%s{}]", b"[{}, %s]"])
def test_what_stands_between_elements_has_a_limit_in_any_chunking(around: bytes, size: int):
    stray = b"x" * size
    for chunks in ([around % stray], bytewise(around % stray), at_random(around % stray, 7, 1)):
        framer = JsonArray(50)
        told = []
        for chunk in chunks:
            told += framer.feed(chunk)
            if framer.overflow:
                break
        assert framer.overflow is (size > 50)
        assert told[:2] == ([b"{}"] if size > 50 else [b"{}", stray])
