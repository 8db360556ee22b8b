"""streamnorm.framing.lines: NDJSON in any chunking in, lines out; values one behind the other; and a
body that is one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.framing.lines import Lines, Values, Whole
from tests.conftest import at_random, bytewise, chunkings


def lines(chunks: list[bytes]) -> list[bytes]:
    framer = Lines()
    told = [line for chunk in chunks for line in framer.feed(chunk)]
    return told + framer.rest()


CASES = {
    "two": (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    "crlf": (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
    "blank lines": (b'\n\n{"a":1}\n \n\r\n{"b":2}\n\n', [b'{"a":1}', b'{"b":2}']),
    "no last line end": (b'{"a":1}\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
    "white space around": (b'  {"a":1} \n', [b'{"a":1}']),
    "other line ends are text": ('{"a":"\u2028\x85"}\n'.encode(), ['{"a":"\u2028\x85"}'.encode()]),
    "escaped line ends are text": (b'{"a":"\\n"}\n', [b'{"a":"\\n"}']),
    "nothing": (b"", []),
    "only line ends": (b"\n\n\r\n", []),
}


@pytest.mark.parametrize("name", CASES)
def test_each_line_is_told_once(name: str):
    body, expected = CASES[name]
    assert lines([body]) == expected
    for chunks in chunkings(body):
        assert lines(chunks) == expected


def test_a_line_is_told_with_its_line_end_and_the_last_at_the_end():
    framer = Lines()
    assert framer.feed(b'{"a"') == []
    assert framer.feed(b':1}\n{"b":2}') == [b'{"a":1}']
    assert framer.rest() == [b'{"b":2}']


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"{}", b" "])).map(b"".join),
    st.integers(1, 9),
)
def test_any_bytes_in_any_chunking_give_what_a_split_gives(body: bytes, top: int):
    expected = [line.strip() for line in body.split(b"\n") if line.strip()]
    assert lines([body]) == lines(bytewise(body)) == lines(at_random(body, top, 1)) == expected


@pytest.mark.parametrize("size", [49, 50, 51])
def test_a_line_beyond_the_limit_is_not_told_in_any_chunking(size: int):
    body = b"1\n" + b"x" * size + b"\n3\n"
    for chunks in ([body], bytewise(body), at_random(body, 7, 1)):
        framer = Lines(50)
        told = []
        for chunk in chunks:
            told += framer.feed(chunk)
            if framer.overflow:
                break
        assert framer.overflow is (size > 50)
        assert told == ([b"1"] if size > 50 else [b"1", b"x" * size, b"3"])


def test_a_last_line_beyond_the_limit_is_seen_in_one_chunk_as_well():
    framer = Lines(50)
    assert framer.feed(b"1\n" + b"x" * 51) == [b"1"]
    assert framer.overflow


def test_a_whole_body_is_told_at_the_end_with_its_line_ends():
    framer = Whole()
    assert framer.feed(b'{\n "a"') == []
    assert framer.feed(b": 1\n}\n") == []
    assert framer.rest() == [b'{\n "a": 1\n}']


@pytest.mark.parametrize("size", [49, 50, 51])
def test_a_whole_body_has_a_limit(size: int):
    for chunks in ([b"x" * size], [b"x"] * size):
        framer = Whole(50)
        for chunk in chunks:
            framer.feed(chunk)
        assert framer.overflow is (size > 50)


# --- one behind the other -------------------------------------------------------------------------


def values(chunks: list[bytes], limit: int = 1000) -> list[bytes]:
    framer = Values(limit)
    told = [frame for chunk in chunks for frame in framer.feed(chunk)]
    return told + framer.rest()


VALUES = {
    "nothing between": (b'{"a":1}{"b":"}{"}', [b'{"a":1}', b'{"b":"}{"}']),
    "white space between": (b' {"a":1} \t{"b":2}\n{"c":3}', [b'{"a":1}', b'{"b":2}', b'{"c":3}']),
    "lines": (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    "lines, the last one not ended": (
        b'{"a":1}\n{"b":2}\n{"c":',
        [b'{"a":1}', b'{"b":2}', b'{"c":'],
    ),
    "a line end before the first": (b'\n{"a":1}{"b":2}', [b'{"a":1}', b'{"b":2}']),
    "a line end behind the second": (
        b'{"a":1}{"b":2}\n{"c":3}{"d":4}',
        [b'{"a":1}', b'{"b":2}', b'{"c":3}', b'{"d":4}'],
    ),
    "lines, CR LF": (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
    "one over many lines": (b'{\n "a": [\n1]\n}', [b'{\n "a": [\n1]\n}']),
    "a damaged line is one line": (
        b'{"a":1}\n{"b":"\n{"c":3}\n',
        [b'{"a":1}', b'{"b":"', b'{"c":3}'],
    ),
    "what is no value is told": (b'{"a":1}x y{"b":2} z', [b'{"a":1}', b"x y", b'{"b":2}', b"z"]),
    "one that has not ended": (b'{"a":1}{"b":', [b'{"a":1}', b'{"b":']),
    "a bracket too many": (b'{"a":1}]{"b":2}', [b'{"a":1}', b"]", b'{"b":2}']),
    "escapes": (b'{"a":"\\"}"}{"b":"\\\\"}', [b'{"a":"\\"}"}', b'{"b":"\\\\"}']),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", VALUES)
def test_each_value_is_told_once(name: str):
    body, expected = VALUES[name]
    assert values([body]) == expected
    for chunks in chunkings(body):
        assert values(chunks) == expected


def test_a_value_is_told_with_its_last_bracket():
    framer = Values()
    assert framer.feed(b'{"a":1') == []
    assert framer.feed(b"}") == [b'{"a":1}']
    assert framer.feed(b'{"b":2}') == [b'{"b":2}']


@given(
    st.lists(
        st.sampled_from(
            [b"\n", b"\r\n", b"a", b"{}", b'{"b":1}', b'"', b"{", b"}", b"]", b"\\", b" "]
        )
    ),
    st.integers(1, 9),
)
def test_any_bytes_in_any_chunking_give_the_same_values_and_lose_none(
    pieces: list[bytes], top: int
):
    body = b"{}" + b"".join(pieces)
    told = values([body])
    assert values(bytewise(body)) == values(at_random(body, top, 1)) == told
    assert b"".join(b"".join(told).split()) == b"".join(body.split())


@pytest.mark.parametrize("size", [49, 50, 51, 52])
@pytest.mark.parametrize("begin", [b'{"a":"', b"x", b'{}{"a":"', b"{}x", b"{}\n"])
def test_a_value_beyond_the_limit_is_given_up_in_any_chunking(begin: bytes, size: int):
    whole = begin.startswith(b"{}") and 2
    body = begin[: whole or 0] + begin[whole or 0 :].ljust(size, b"x")
    for chunks in ([body], bytewise(body), at_random(body, 7, 1)):
        framer = Values(50)
        for chunk in chunks:
            framer.feed(chunk)
            if framer.overflow:
                break
        assert framer.overflow is (len(body[whole or 0 :].strip()) > 50)


@pytest.mark.parametrize("between", [b"x" * 51, b'{"a":"%s"}' % (b"x" * 43)])
def test_nothing_is_told_behind_a_value_beyond_the_limit_in_any_chunking(between: bytes):
    body = b"{}" + between + b"{}"
    for chunks in ([body], bytewise(body), at_random(body, 7, 1)):
        framer = Values(50)
        told = []
        for chunk in chunks:
            told += framer.feed(chunk)
            if framer.overflow:
                break
        assert framer.overflow
        assert told == [b"{}"]
