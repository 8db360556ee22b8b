"""streamnorm.framing.aws: binary frames in any chunking in, one JSON object per frame out.

Frames are built here by the format's description; the public test vectors judge the builder too.
"""

from __future__ import annotations

import gc
import json
import struct
import tracemalloc
from itertools import pairwise
from typing import Any
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Limits
from streamnorm.events import Failed
from streamnorm.framing.aws import Broken, EventStream, Frames, read_headers, resealed, write_frame
from tests.conftest import broken_of, bytewise, chunkings, said, text_of, traced

# --- building -------------------------------------------------------------------------------------


def text_header(name: str, value: str) -> bytes:
    data = value.encode()
    return (
        bytes([len(name.encode())]) + name.encode() + b"\x07" + struct.pack(">H", len(data)) + data
    )


def frame(headers: bytes, payload: bytes) -> bytes:
    start = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    start += struct.pack(">I", crc32(start)) + headers + payload
    return start + struct.pack(">I", crc32(start))


def event(name: str, payload: Any) -> bytes:
    headers = text_header(":event-type", name) + text_header(":message-type", "event")
    return frame(headers, json.dumps(payload).encode())


def exception(name: str, payload: Any) -> bytes:
    headers = text_header(":exception-type", name) + text_header(":message-type", "exception")
    return frame(headers, json.dumps(payload).encode())


def told(body: bytes, **options: int) -> list[bytes]:
    """The frames of a body: whole and in several chunkings, which must all be the same."""
    whole = EventStream(**options)
    frames, rest = whole.feed(body), whole.rest()
    for chunks in chunkings(body):
        framer = EventStream(**options)
        assert [f for chunk in chunks for f in framer.feed(chunk)] == frames
        assert (framer.overflow, framer.rest()) == (whole.overflow, rest)
    return frames


PING = event("ping", {"a": 1})
PONG = event("pong", {"b": "Höfn"})

# --- frames ---------------------------------------------------------------------------------------


def test_the_public_test_vectors_of_the_format_are_read() -> None:
    # As botocore and aws-c-event-stream have them: nothing at all, a payload without headers, and a
    # header of type int32 (whose name is almost, but not quite, that of an event's type).
    assert told(bytes.fromhex("000000100000000005c248eb7d98c8ff")) == [b'{"?":{}}']
    payload = "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936"
    assert told(bytes.fromhex(payload)) == [b"{\"?\":{'foo':'bar'}}"]
    int32 = (
        "0000002d0000001041c424b80a6576656e742d74797065040000a00c7b27666f6f273a27626172277d36f480a0"
    )
    assert told(bytes.fromhex(int32)) == [b"{\"?\":{'foo':'bar'}}"]


def test_a_frame_is_told_when_its_last_byte_has_come() -> None:
    framer = EventStream()
    for byte in bytewise(PING)[:-1]:
        assert framer.feed(byte) == []
    assert framer.feed(PING[-1:]) == [b'{"ping":{"a": 1}}']
    assert framer.rest() == []


def test_many_frames_in_one_chunk() -> None:
    assert told(PING + PONG + PING) == [
        b'{"ping":{"a": 1}}',
        b'{"pong":{"b": "H\\u00f6fn"}}',
        b'{"ping":{"a": 1}}',
    ]


def test_the_payload_is_not_touched() -> None:
    payload = b'{ "n": 1.0, "big": 123456789012345678901234567890, "u": "\xc3\xb6" }'
    assert told(frame(text_header(":event-type", "e"), payload)) == [b'{"e":' + payload + b"}"]


def test_a_name_is_written_as_json() -> None:
    assert told(frame(text_header(":event-type", 'a"b'), b"1")) == [b'{"a\\"b":1}']


def test_an_empty_payload_is_an_empty_object() -> None:
    assert told(frame(text_header(":event-type", "e"), b"")) == [b'{"e":{}}']


def test_a_payload_that_is_text_is_a_json_string() -> None:
    headers = text_header(":event-type", "e") + text_header(":content-type", "text/plain")
    assert told(frame(headers, b'say "hi"')) == [b'{"e":"say \\"hi\\""}']


def test_an_exception_is_marked() -> None:
    assert told(exception("throttlingException", {"message": "slow"})) == [
        b'{":exception":{"type":"throttlingException","payload":{"message": "slow"}}}'
    ]


def test_an_error_stands_in_the_headers() -> None:
    headers = (
        text_header(":message-type", "error")
        + text_header(":error-code", "InternalError")
        + text_header(":error-message", "An internal server error occurred.")
    )
    assert told(frame(headers, b"")) == [
        b'{":error":{"code":"InternalError","message":"An internal server error occurred.",'
        b'"payload":{}}}'
    ]


def test_an_error_that_says_no_message_has_none() -> None:
    headers = text_header(":message-type", "error") + text_header(":error-code", "Oops")
    assert told(frame(headers, b"")) == [b'{":error":{"code":"Oops","message":null,"payload":{}}}']


def test_a_name_that_is_no_text_is_written_as_one() -> None:
    number = b"\x0b:event-type\x04" + struct.pack(">i", 5)
    assert told(frame(number, b"1")) == [b'{"5":1}']


def test_headers_that_are_all_different_are_not_kept() -> None:
    framer = EventStream()
    frames = [event(f"{n:04}".rjust(2_000, "x"), n) for n in range(300)]
    gc.collect()
    tracemalloc.start()
    try:
        for one in frames:
            framer.feed(one)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 64 * 2 * 3_000  # the 64 that are kept, with what stands before their payloads


def test_a_cut_frame_is_left() -> None:
    framer = EventStream()
    assert framer.feed(PING + PONG[:20]) == [b'{"ping":{"a": 1}}']
    assert framer.rest() == [PONG[:20]]


# --- frames that cannot be ------------------------------------------------------------------------


def test_a_wrong_prelude_checksum_ends_the_stream() -> None:
    assert told(PING + b"\0\0\0\x10\0\0\0\0????????" + PING) == [
        b'{"ping":{"a": 1}}',
        rb"""{":broken":"the first 12 bytes of a frame, """
        rb"""b'\\x00\\x00\\x00\\x10\\x00\\x00\\x00\\x00????', do not match their checksum"}""",
    ]


def test_a_wrong_message_checksum_ends_the_stream() -> None:
    assert told(PING + PONG[:-4] + b"\0\0\0\0" + PING) == [
        b'{"ping":{"a": 1}}',
        b'{":broken":"a frame of %d bytes does not match its checksum"}' % len(PONG),
    ]


@pytest.mark.parametrize("position", [12, 20, 40, len(PONG) - 5])
def test_any_flipped_bit_is_seen(position: int) -> None:
    flipped = bytearray(PONG)
    flipped[position] ^= 1
    frames = told(PING + bytes(flipped))
    assert frames[0] == b'{"ping":{"a": 1}}'
    assert frames[1].startswith(b'{":broken":')


@pytest.mark.parametrize(
    ("total", "headers"), [(0, 0), (15, 0), (16, 1), (100, 85), (100, 2**32 - 1)]
)
def test_an_impossible_length_ends_the_stream(total: int, headers: int) -> None:
    lengths = struct.pack(">II", total, headers)
    body = PING + lengths + struct.pack(">I", crc32(lengths)) + bytes(100)
    assert told(body) == [
        b'{"ping":{"a": 1}}',
        b'{":broken":"a frame of the impossible length %d, %d of it headers"}' % (total, headers),
    ]


def test_text_is_no_event_stream() -> None:
    assert told(b"event: message\ndata: {}\n\n") == [
        b'{":broken":"the first 12 bytes of a frame, '
        b"b'event: messa', do not match their checksum\"}"
    ]


def test_headers_that_cannot_be_read_end_the_stream() -> None:
    assert told(frame(b"\x01x\x0a", b"{}")) == [
        b'{":broken":"headers that cannot be read, at byte 0 of 3"}'
    ]


def test_a_frame_beyond_the_limit_is_not_waited_for() -> None:
    large = event("large", "x" * 1000)
    framer = EventStream(limit=100)
    assert framer.feed(PING + large[:12]) == [b'{"ping":{"a": 1}}']
    assert framer.overflow
    assert told(PING + large, limit=100) == [b'{"ping":{"a": 1}}']


# --- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x00", True),
        (b"\x01", False),
        (b"\x02\xff", -1),
        (b"\x03\x80\x00", -32768),
        (b"\x04\x00\x00\xa0\x0c", 40972),
        (b"\x05\x7f\xff\xff\xff\xff\xff\xff\xff", 2**63 - 1),
        (b"\x06\x00\x03\x00\x01\x02", b"\x00\x01\x02"),
        (b"\x06\x00\x00", b""),
        (b"\x07\x00\x03\xc3\xb6x", "öx"),
        (b"\x08\x00\x00\x01\x9b\x76\xda\xa8\x00", 1767225600000),
        (bytes([9, *range(16)]), UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")),
    ],
)
def test_every_type_of_header(data: bytes, value: Any) -> None:
    headers = read_headers(b"\x01a" + data + b"\x01z\x00")
    assert headers == {"a": value, "z": True}
    assert type(headers["a"]) is type(value)


def test_frames_have_their_name_among_headers_of_all_types() -> None:
    headers = (
        b"\x01a\x00\x01b\x01\x01c\x02\x01\x01d\x03\x00\x01\x01e\x04\x00\x00\x00\x01"
        + b"\x01f\x05" + bytes(8) + b"\x01g\x06\x00\x01x\x01h\x08" + bytes(8)
        + b"\x01i\x09" + bytes(16) + text_header(":event-type", "e")
    )  # fmt: skip
    assert told(frame(headers, b"1")) == [b'{"e":1}']


@pytest.mark.parametrize(
    "data",
    [
        b"\x05abc",  # the name is cut
        b"\x01a",  # no type
        b"\x01a\x0a",  # a type that there is not
        b"\x01a\x04\x00\x00",  # the number is cut
        b"\x01a\x07\x00\x05abc",  # the text is cut
        b"\x01a\x07\x00",  # its length is cut
        b"\x01a\x09\x00",  # the uuid is cut
        b"\x01\xff\x00",  # a name that is not UTF-8
    ],
)
def test_bad_headers_are_refused(data: bytes) -> None:
    with pytest.raises(Broken):
        read_headers(data)


# --- laws -----------------------------------------------------------------------------------------


@given(st.binary(max_size=200), st.lists(st.integers(0, 250), max_size=6))
def test_any_bytes_in_any_chunking_give_the_same(noise: bytes, cuts: list[int]) -> None:
    body = PING + noise + PONG
    points = [0, *sorted(min(c, len(body)) for c in cuts), len(body)]
    framer = EventStream()
    frames = [f for a, b in pairwise(points) for f in framer.feed(body[a:b])]
    assert frames == EventStream().feed(body)


# --- as they came, and written --------------------------------------------------------------------


def test_frames_are_split_and_kept_as_they_came() -> None:
    for chunks in chunkings(PING + PONG + PING[:20]):
        frames = Frames()
        assert [f for chunk in chunks for f in frames.feed(chunk)] == [PING, PONG]
        assert (frames.lost, frames.rest()) == (False, [PING[:20]])


@pytest.mark.parametrize(
    "wrong", [PONG[:-1] + b"?", PONG[:9] + b"?" + PONG[10:], b"no frame at all"]
)
def test_what_is_no_frame_is_left_from_its_first_byte_on(wrong: bytes) -> None:
    for chunks in chunkings(PING + wrong):
        frames = Frames()
        heard: list[bytes] = []
        left = b""
        for chunk in chunks:
            left += chunk if frames.lost else b""
            heard += frames.feed(chunk)
            left += b"".join(frames.rest()) if frames.lost else b""
        assert (heard, frames.lost, left) == ([PING], True, wrong)


@given(
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=4), st.binary(max_size=99)
)
def test_a_frame_is_written_as_the_format_says(headers: dict[str, str], payload: bytes) -> None:
    head = b"".join(text_header(*pair) for pair in headers.items())
    assert write_frame(headers, payload) == frame(head, payload)


def test_a_name_that_is_longer_than_its_length_can_say_is_refused() -> None:
    with pytest.raises(ValueError, match="256"):
        write_frame({"n" * 256: ""}, b"")


def test_a_changed_frame_gets_a_checksum_that_fits() -> None:
    assert resealed(PING, lambda body: body) == PING
    changed = resealed(PING, lambda body: body.replace(b"ping", b"pong"))
    assert changed == event("pong", {"a": 1})


# --- through the pipe -----------------------------------------------------------------------------


def call(index: int, id: str, name: str, *fragments: str) -> bytes:
    start = {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": id, "name": name}}}
    deltas = [
        event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": f}}})
        for f in fragments
    ]
    return event("contentBlockStart", start) + b"".join(deltas)


TEXT = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Höfn"}})
WHOLE = call(1, "t1", "tides", '{"days"', ": 3}") + event(
    "contentBlockStop", {"contentBlockIndex": 1}
)
OPEN = call(2, "t2", "weather", '{"ci')


def test_a_wrong_checksum_fails_the_stream_and_keeps_what_was_heard() -> None:
    events, _ = traced("bedrock", TEXT + WHOLE + OPEN + PING[:-1] + b"?" + WHOLE)
    what = f"a frame of {len(PING)} bytes does not match its checksum"
    assert text_of(events) == "Höfn"
    assert said(events) == [("t1", "tides", {"days": 3})]
    assert [(b.id, b.raw, b.reason, b.detail) for b in broken_of(events)] == [
        ("t2", '{"ci', "truncated", what)
    ]
    assert events[-1] == Failed("protocol", what)


def test_a_cut_frame_is_a_truncated_stream() -> None:
    events, pipe = traced("bedrock", TEXT + WHOLE + OPEN[:-7])
    assert said(events) == [("t1", "tides", {"days": 3})]
    end = "the stream ended before its end mark (messageStop, then metadata)"
    assert events[-1] == Failed("truncated", end, retryable=True)
    assert pipe.notes["stream.cut_event"] == 1


def test_a_frame_beyond_the_limit_fails_the_stream() -> None:
    body = TEXT + event("contentBlockDelta", {"delta": {"text": "x" * 1000}})
    events, _ = traced("bedrock", body, limits=Limits(frame_bytes=300))
    assert text_of(events) == "Höfn"
    what = "more than 300 (frame_bytes); raise Limits(frame_bytes=…) if this is wanted"
    assert events[-1] == Failed("limit", what, code="frame_bytes")


def test_an_exception_that_nobody_knows_is_a_failure() -> None:
    events, _ = traced("bedrock", WHOLE + exception("newException", {"message": "no more"}))
    assert said(events) == [("t1", "tides", {"days": 3})]
    assert events[-1] == Failed("provider_error", "no more", code="newException")
