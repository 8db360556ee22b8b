"""Every framing at its limit: what may still end is waited for, one byte more is not."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.framing import sniff
from streamnorm.framing.aws import EventStream, write_frame
from streamnorm.framing.json_array import JsonArray
from streamnorm.framing.lines import Lines, Whole
from streamnorm.framing.sse import SSE
from tests.conftest import bytewise

LIMIT = 50
FRAMERS = [SSE, Lines, Whole, JsonArray, EventStream]
# framing -> a frame that is over, and what begins one that is not, in front of its text
UNENDED: dict[Any, tuple[bytes, bytes]] = {
    SSE: (b"data: 1\n\n", b"data: "),
    Lines: (b"1\n", b'"'),
    Whole: (b"", b'"'),
    JsonArray: (b'[{"a":1},', b'{"b":"'),
}


def overflows(framer: Any, chunks: list[bytes]) -> bool:
    for chunk in chunks:
        framer.feed(chunk)
        if framer.overflow:
            return True
    return False


@pytest.mark.parametrize("framing", FRAMERS)
def test_nothing_is_too_long_before_the_first_byte(framing: Any):
    assert framing(LIMIT).overflow is False


@pytest.mark.parametrize("framing", UNENDED)
@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_what_has_not_ended_is_given_up_at_the_byte_beyond_the_limit(framing: Any, size: int):
    over, begun = UNENDED[framing]
    body = over + begun.ljust(size, b"x")
    for chunks in ([body], bytewise(body), [over, body[len(over) :]]):
        assert overflows(framing(LIMIT), chunks) is (size > LIMIT)


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_a_binary_frame_is_given_up_as_soon_as_its_length_is_known(size: int):
    frame = write_frame({":event-type": "ping"}, b" " * (size - 35))
    assert len(frame) == size
    for chunks in ([frame[:12]], bytewise(frame[:12])):
        assert overflows(EventStream(LIMIT), chunks) is (size > LIMIT)
    told = EventStream(LIMIT).feed(frame)
    assert [bool(payload.strip()) for payload in told] == ([] if size > LIMIT else [True])


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1])
@pytest.mark.parametrize("around", [b"%s\r\n", b"%s \n", b" %s\n"])
def test_the_white_space_around_a_line_counts_in_any_chunking(around: bytes, size: int):
    body = around % (b"x" * (size - 1))
    for chunks in ([body], bytewise(body), [body[:LIMIT], body[LIMIT:]]):
        assert overflows(Lines(LIMIT), chunks) is (size > LIMIT)


def test_frames_have_one_line_again_after_one_that_had_more():
    sse = SSE()
    assert sse.feed(b"event: x\ndata: 1\n\ndata: 2") == [b"event: x\ndata: 1"]
    assert not sse.single_lines
    assert sse.feed(b"\n\ndata: 3\n\n") == [b"data: 2", b"data: 3"]
    assert sse.single_lines


def test_a_line_that_is_cut_is_one_line():
    sse = SSE()
    assert sse.feed(b"data: ") == []
    assert sse.feed(b"1\n\n") == [b"data: 1"]
    assert sse.single_lines


def test_a_line_end_that_is_held_is_remembered_until_its_frame_is_over():
    sse = SSE()
    assert sse.feed(b"event: x\nda") == []
    assert sse.feed(b"ta: ") == []
    assert sse.feed(b"1\r\n\r\n") == [b"event: x\ndata: 1"]
    assert not sse.single_lines
    assert sse.feed(b"data: 2\r\n\r\n") == [b"data: 2"]
    assert sse.single_lines


def test_a_cr_that_ended_a_block_takes_no_line_end_from_a_later_one():
    sse = SSE()
    assert sse.feed(b"data: 0\r\r") == [b"data: 0"]
    assert sse.feed(b"data: 1\r\n\r\ndata: 2") == [b"data: 1"]
    assert sse.feed(b"\n\n") == [b"data: 2"]


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (b"", None),
        (b" \r\n", None),
        (b"\xef\xbb", None),
        (b"\x1f", None),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x00\x00\x00\x80", "aws"),
        (b" <!doctype html>", "html"),
        (b"\xef\xbb\xbf {", "json"),
        (b"\n[", "array"),
        (b"data: {", "text"),
        (b"\x1fdata", "text"),
    ],
)
def test_the_first_bytes_say_what_a_body_is(first: bytes, what: str | None):
    assert sniff(first) == what
