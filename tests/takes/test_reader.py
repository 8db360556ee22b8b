"""A take that is read in pieces is the take that is read at once."""

from __future__ import annotations

import json
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.errors import RecordingError
from streamnorm.takes.format import LONGEST_HEADER, Chunk, Reader, Take, parse_take
from tests.conftest import over_takes


def in_pieces(data: bytes, sizes: list[int]) -> Take:
    """The take, of pieces of these sizes over and over."""
    reader = Reader()
    chunks: list[Chunk] = []
    at = turn = 0

    def add(more: list[Chunk]) -> None:
        for number, (when, piece) in enumerate(more):
            if number == 0 and reader.goes_on:
                assert chunks[-1][0] == when
                chunks[-1] = when, chunks[-1][1] + piece
            elif piece:
                chunks.append((when, piece))

    while at < len(data):
        size = sizes[turn % len(sizes)]
        add(reader.feed(data[at : at + size]))
        at, turn = at + size, turn + 1
    add(reader.feed(b"", last=True))
    return reader.take(chunks)


def outcome(read, *args):
    try:
        return read(*args)
    except RecordingError as error:
        return str(error)


words = st.sampled_from(
    [b"data: 1", b"\n", b"\n\n", b"\r", b"\r\n", b": +0.5", b": +12\n", b": streamnorm ", b": ", b":", b"x",
     b'{"finished":true}', b'{"finished":true,"open_line":true}', b'{"leg":2}\n',
     b'{"leg":2,"open_line":true}\n', b': streamnorm {"finished":false}\n', b': streamnorm {"leg":3}\n',
     b"event: text\n", b'data: "ab"\n', b"event: base64\ndata: YQ==", b"\xff", b"id: 4\n", b": +1"]
)  # fmt: skip
heads = st.sampled_from(
    [b"", b": streamnorm {}\n", b': streamnorm {"provider":"gemini"}\n', b': streamnorm {"a":1}',
     b': streamnorm {"container":"chunks"}\n', b'\xef\xbb\xbf: streamnorm {"a":1}\r\n', b"\xef\xbb\xbf",
     b": streamnorm {oops\n"]
)  # fmt: skip
sizes = st.lists(st.sampled_from([1, 1, 2, 3, 7, 50]), min_size=1, max_size=5)


@given(heads, st.lists(words, max_size=14), sizes)
def test_any_pieces_of_a_file_give_the_same_take(head, body, pieces):
    data = head + b"".join(body)
    assert outcome(in_pieces, data, pieces) == outcome(parse_take, data)


@over_takes(quick=60)
def test_any_pieces_of_a_recording_give_the_same_take(path):
    data = path.read_bytes()
    for pieces in ([1], [2, 3], [64], [4096]):
        assert in_pieces(data, pieces) == parse_take(data)


def test_bytes_go_out_as_they_come():
    reader = Reader()
    assert reader.feed(b"data: 1\n\nda") == [(0.0, b"data: 1\n\nda")]
    assert reader.feed(b"ta: 2\n\n") == [(0.0, b"ta: 2\n\n")]
    assert reader.goes_on


def test_of_a_take_no_event_waits_for_the_next_one():
    reader = Reader()
    reader.feed(b': streamnorm {"provider":"gemini"}\n')
    assert reader.feed(b": +0.5\ndata: 1\n\n") == [(0.5, b"data: 1\n\n")]
    assert reader.feed(b": +0.7\ndata: 2\r\n\r\n") == [(0.7, b"data: 2\r\n\r\n")]


def test_what_is_held_back_is_bounded():
    reader = Reader()
    reader.feed(b': streamnorm {"provider":"gemini"}\n')
    given_back = sum(
        len(data) for _ in range(100) for _, data in reader.feed(b": streamnorm x" * 1000)
    )
    assert given_back > 99 * 14_000


def test_a_header_without_an_end_is_refused():
    reader = Reader("a.sse")
    reader.feed(b": streamnorm {")
    for _ in range(LONGEST_HEADER // 1_000_000):
        reader.feed(b"x" * 1_000_000)
    with pytest.raises(RecordingError, match=r"a\.sse has a header of more than"):
        reader.feed(b"x" * 1_000_000)


def test_what_stood_before_a_damaged_chunk_is_told():
    reader = Reader()
    head = b': streamnorm {"container":"chunks"}\n'
    good = b'event: text\ndata: "a"\n\n'
    assert reader.feed(head + good + b"event: text\ndata: 1\n\n" + good) == [(0.0, b"a")]
    with pytest.raises(RecordingError, match="line 5: the data of this text chunk"):
        reader.feed(good)


@pytest.mark.parametrize("kind", ["marks", "container", "one line"])
def test_reading_in_small_pieces_takes_little_memory(kind):
    unit = {
        "marks": b": +1.5\ndata: 1\n\n",
        "container": b'event: text\ndata: "a"\n\n',
        "one line": b"x" * 20,
    }
    head = (
        b": streamnorm "
        + json.dumps({"container": "chunks"} if kind == "container" else {"a": 1}).encode()
    )
    piece = unit[kind] * 100
    reader = Reader()
    reader.feed(head + b"\n")
    tracemalloc.start()
    try:
        for _ in range(2000):
            reader.feed(piece)
        assert tracemalloc.get_traced_memory()[1] < 300_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("between", [b"", b"data: 1\n\n"])
def test_a_file_of_nothing_but_lost_connections_is_read_in_one_go(between):
    """Each of them was counted from the beginning once: that took minutes."""
    lost = b': streamnorm {"leg":2}\n' + between
    number = 4 * 1024 * 1024 // len(lost)
    take = parse_take(b': streamnorm {"provider":"gemini"}\n' + lost * number)
    assert take.legs == tuple(at * len(between) for at in range(number))


def test_random_bytes_in_random_pieces_are_the_same_bytes():
    rng = random.Random(1)
    for _ in range(200):
        data = rng.randbytes(rng.randrange(300))
        assert in_pieces(data, [rng.randrange(1, 40)]) == parse_take(data)
