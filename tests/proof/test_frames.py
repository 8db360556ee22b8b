"""The slow framings: by the book, and honest about what they could not read."""

from __future__ import annotations

import pytest

from tests.proof.frames import READ, UNREAD, Payload, Twice, array, aws, blocks, lines, sse
from tests.proof.talk import Comment, Frame, Style


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_sse_by_the_book(end: str, bom: bytes) -> None:
    text = ': hi|event: x|data: {"a":|data:1}||id: 7|retry: 5|data|data: 2||: only a comment|||data:[DONE]||'
    body = bom + text.replace("|", end).encode()
    assert sse(body) == [Payload({"a": 1}, "x"), Payload(2, id="7"), Payload(UNREAD, "", "[DONE]")]


def test_the_last_sse_event_counts_without_its_blank_line_if_it_is_whole() -> None:
    assert sse(b'data: 1\n\ndata: {"a":2}') == [Payload(1), Payload({"a": 2})]
    assert sse(b'data: 1\n\ndata: {"a":') == [Payload(1)]


def test_two_payloads_without_a_blank_line_between_are_none() -> None:
    assert sse(b"data: {}\ndata: {}\n\n") == [Payload(UNREAD)]


@pytest.mark.parametrize(
    "data", [b"{", b"NaN", b'{"a":Infinity}', b'"\xff"', b"{}{}", b"[" * 100_000]
)
def test_what_is_no_json_is_unread(data: bytes) -> None:
    (payload,) = sse(b"data: " + data + b"\n\n")
    assert payload.value is UNREAD


def test_bytes_that_are_no_utf8_may_still_name_a_place() -> None:
    assert sse(b'data: {"index":1,"a":"\xff"}\n\n')[0].rough == {"index": 1, "a": "\ufffd"}


def test_a_key_that_stands_twice_is_remembered() -> None:
    (payload,) = lines(b'{"a":1,"a":2}\n')
    assert isinstance(payload.value, Twice)
    assert payload.value == {"a": 2}


def test_lines_leave_out_half_a_line_at_the_end() -> None:
    assert lines(b'{"a":1}\r\n\n{"b":2}\n{"c"') == [Payload({"a": 1}), Payload({"b": 2})]
    assert lines(b'{"a":1}\nnot json\n2') == [Payload({"a": 1}), Payload(UNREAD), Payload(2)]


def test_arrays_may_be_cut_and_have_damaged_elements() -> None:
    assert array(b'[{"a":1},\r\n{"b":2}]') == [Payload({"a": 1}), Payload({"b": 2})]
    assert array(b'[{"a":1},\r\n{"b"') == [Payload({"a": 1}), Payload(UNREAD)]
    assert array(b'[{"a":},\n{"b":2}]') == [Payload(UNREAD), Payload({"b": 2})]
    rough = Payload(UNREAD, rough={"a": "\ufffd"})
    assert array(b'[{"a":"\xff"},{"b":2}]') == [rough, Payload({"b": 2})]


def test_aws_messages_are_read_up_to_the_first_bad_checksum() -> None:
    style = Style("aws")
    one, two = (style.write(Frame({"n": n}, "messageStart")) for n in (1, 2))
    error = style.write(Frame({"message": "x"}, "exception/throttlingException"))
    assert aws(one + two) == [Payload({"n": 1}, "messageStart"), Payload({"n": 2}, "messageStart")]
    assert aws(error)[0].error
    flipped = two[:-6] + bytes([two[-6] ^ 1]) + two[-5:]
    assert aws(one + flipped + one) == [Payload({"n": 1}, "messageStart"), Payload(UNREAD)]


@pytest.mark.parametrize("framing", READ)
def test_what_is_written_is_read_and_can_be_taken_apart(framing: str) -> None:
    frames = [Frame({"n": n, "text": "é😀\n\n"}, "x") for n in range(3)]
    with_comment = [frames[0], Frame(Comment(" hi")), *frames[1:]] if framing == "sse" else frames
    body = Style(framing, "\r\n", ascii=False).body(with_comment)
    assert [p.value for p in READ[framing](body)] == [f.payload for f in frames]
    assert b"".join(blocks(body, framing)) == body
    assert len(blocks(body, framing)) == len(with_comment)
