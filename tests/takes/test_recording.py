"""streamnorm.takes.format, the reading part: what is read is what was on the wire."""

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.captures import read_take
from streamnorm.errors import RecordingError
from streamnorm.takes.format import parse_take

TAKE = b"""\
: streamnorm {"provider":"anthropic","seed":"msg_01","captured":"2026-11-15"}
: +0.412
event: ping
data: {"type":"ping"}

: keep-alive

: +1.5
data: {"type":"message_stop"}

"""


def container(*events: str) -> bytes:
    head = ': streamnorm {"provider":"bedrock","container":"chunks"}\n'
    return (head + "".join(events)).encode()


def test_marks_give_the_arrival_times_and_are_not_part_of_the_wire():
    assert parse_take(TAKE).chunks == [
        (0.412, b'event: ping\ndata: {"type":"ping"}\n\n: keep-alive\n\n'),
        (1.5, b'data: {"type":"message_stop"}\n\n'),
    ]


def test_the_header_tells_provider_and_seed_and_keeps_unknown_keys():
    take = parse_take(TAKE)
    assert (take.provider, take.seed, take.timed) == ("anthropic", "msg_01", True)
    assert take.header["captured"] == "2026-11-15"


def test_comments_of_the_wire_stay():
    assert b": keep-alive\n" in parse_take(TAKE).wire


def test_a_saved_response_body_is_a_take_with_a_seed_made_of_its_bytes():
    body = b": OPENROUTER PROCESSING\n\ndata: [DONE]\n\n"
    take = parse_take(body)
    assert take.chunks == [(0.0, body)]
    assert (take.header, take.provider, take.timed) == ({}, None, False)
    assert take.seed == hashlib.sha256(body).hexdigest()


def test_an_empty_file_is_a_take_without_chunks():
    assert parse_take(b"").chunks == []


def test_a_header_without_a_seed_has_a_seed_made_of_the_wire():
    take = parse_take(b': streamnorm {"provider":"gemini"}\n: +0.1\ndata: 1\n\n')
    assert take.seed == hashlib.sha256(b"data: 1\n\n").hexdigest()


def test_bytes_before_the_first_mark_arrived_at_zero():
    take = parse_take(b": streamnorm {}\ndata: 1\n\n: +2\ndata: 2\n\n")
    assert take.chunks == [(0.0, b"data: 1\n\n"), (2.0, b"data: 2\n\n")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_wires_own_line_endings_are_kept(end):
    wire = b"data: 1" + end * 2
    assert parse_take(b": streamnorm {}\n: +1\n" + wire + b": +2\n" + wire).chunks == [
        (1.0, wire),
        (2.0, wire),
    ]


@pytest.mark.parametrize(
    "line",
    [b": +", b": +x", b":+1", b": +1.2.3", b": +1 second", b"data: : +1", b": -1", b": +1e3"],
)
def test_a_line_that_only_resembles_a_mark_is_wire(line):
    assert parse_take(line + b"\n\n").wire == line + b"\n\n"


def test_a_byte_order_mark_of_an_editor_is_dropped_but_that_of_the_wire_stays():
    assert parse_take(b"\xef\xbb\xbf: streamnorm {}\ndata: 1\n\n").wire == b"data: 1\n\n"
    assert parse_take(b"\xef\xbb\xbfdata: 1\n\n").wire == b"\xef\xbb\xbfdata: 1\n\n"


def test_a_container_holds_one_chunk_per_event():
    take = parse_take(
        container(
            ": +0.1\n",
            'event: text\ndata: "data: {\\"a\\""\n\n',
            ": +0.2\nevent: base64\ndata: /wAK\n\n",
            ': a comment\nevent: text\ndata: "\\n"\n\n',
        )
    )
    assert take.chunks == [(0.1, b'data: {"a"'), (0.2, b"\xff\x00\n"), (0.2, b"\n")]
    assert take.wire == b'data: {"a"\xff\x00\n\n'
    assert not take.torn


def test_base64_may_be_broken_over_several_lines():
    take = parse_take(container("event: base64\ndata: /w\ndata: AK\n\n"))
    assert take.wire == b"\xff\x00\n"


def test_a_container_without_its_last_blank_line_is_whole_if_its_last_chunk_is():
    take = parse_take(container('event: text\ndata: "a"\n\n', 'event: text\ndata: "b"'))
    assert (take.wire, take.torn) == (b"ab", False)


def test_a_chunk_cut_while_being_written_is_left_out_and_said():
    take = parse_take(container('event: text\ndata: "a"\n\n', 'event: text\ndata: "b'))
    assert (take.wire, take.torn) == (b"a", True)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b": streamnorm {oops\n", "not JSON: `{oops`"),
        (b": streamnorm [1]\n", "not a JSON object: `[1]`"),
        (b": streamnorm " + b"[" * 100_000, "not JSON"),
        (b": streamnorm \xff\xfe\n", "not JSON"),
        (b': streamnorm {"provider":7}\n', "provider is not a string"),
        (b': streamnorm {"seed":null}\n', "seed is not a string"),
        (b': streamnorm {"container":"zip"}\n', "unknown kind `zip`"),
        (container("event: words\ndata: 1\n\n"), "line 2: a chunk of the unknown kind `words`"),
        (container("data: 1\n\n"), "line 2: a chunk of the unknown kind ``"),
        (container('event: text\ndata: "a"\n\nevent: text\ndata: 1\n\n'), "line 5: the data"),
        (container('event: text\ndata: "\\ud800"\n\n'), "line 2: the data"),
        (container("event: base64\ndata: ***\n\n"), "line 2: the data of this base64 chunk"),
    ],
)
def test_a_damaged_take_is_refused_with_a_sentence_that_says_where(data, says):
    with pytest.raises(RecordingError) as refused:
        parse_take(data, name="x.sse")
    assert str(refused.value).startswith("x.sse")
    assert says in str(refused.value)


def test_what_an_error_quotes_is_cleaned():
    with pytest.raises(RecordingError) as refused:
        parse_take(b": streamnorm \x1b[31m\n")
    assert "\x1b" not in str(refused.value)


def test_a_take_is_read_from_its_file(tmp_path):
    path = tmp_path / "ping.sse"
    path.write_bytes(TAKE)
    assert read_take(path) == read_take(str(path)) == parse_take(TAKE)


@pytest.mark.parametrize("name", ["nowhere.sse", "", "\0"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(RecordingError, match=r"cannot be read: .*\. Name a file"):
        read_take(f"{tmp_path}/{name}")


chunk = st.binary(min_size=1, max_size=40)


@given(st.lists(st.tuples(st.floats(0, 1000).map(lambda at: round(at, 3)), chunk)))
def test_any_bytes_survive_a_container(chunks):
    events = [
        f": +{at:.3f}\nevent: base64\ndata: {base64.b64encode(data).decode()}\n\n"
        for at, data in chunks
    ]
    assert parse_take(container(*events)).chunks == chunks


lines = st.sampled_from([b"data: 1", b"data: \xc3\xa9", b"", b": ping", b"event: x", b"data"])
endings = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.lists(st.lists(st.tuples(lines, endings), min_size=1)))
def test_marks_between_lines_can_be_taken_out_again(groups):
    chunks = [b"".join(line + end for line, end in group) for group in groups]
    marked = b"".join(b": +%d\n%b" % (at, data) for at, data in enumerate(chunks))
    take = parse_take(b": streamnorm " + json.dumps({}).encode() + b"\n" + marked)
    assert take.chunks == [(float(at), data) for at, data in enumerate(chunks)]


@given(st.binary())
def test_no_bytes_are_lost_or_cause_another_error(data):
    try:
        take = parse_take(data)
    except RecordingError:
        assert data.startswith((b": streamnorm ", b"\xef\xbb\xbf: streamnorm "))
    else:
        assert take.timed or take.header or take.wire == data
