"""streamnorm.framing.sse: bytes in any chunking in, blocks out, by the WHATWG rules.

The table holds the cases of the web platform tests (eventsource/format-*), of eventsource-parser
and of LaunchDarkly's contract tests, said in bytes.
"""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnorm.framing.sse import SSE, Uncut, read
from tests.conftest import at_random, bytewise, chunkings
from tests.framing.reference_sse import Message, messages

BOM = b"\xef\xbb\xbf"
LONG = b"x" * 2048


def blocks(chunks: list[bytes], **options: int) -> list[bytes]:
    framer = SSE(**options)
    return [block for chunk in chunks for block in framer.feed(chunk)]


def dispatched(chunks: list[bytes]) -> list[Message]:
    fields = map(read, blocks(chunks))
    return [
        Message(f.data.decode("utf-8", "replace"), f.event) for f in fields if f.data is not None
    ]


def only_data(*data: str) -> list[Message]:
    return [Message(d) for d in data]


CASES: dict[str, tuple[bytes, list[Message]]] = {
    # --- web platform tests, eventsource/format-*
    "bom": (BOM + b"data:1\n\n" + BOM + b"data:2\n\ndata:3\n\n", only_data("1", "3")),
    "bom-2": (BOM + BOM + b"data:1\n\ndata:2\n\ndata:3\n\n", only_data("2", "3")),
    "comments": (
        b"data:1\r:\0\n:\r\ndata:2\n:" + LONG + b"\rdata:3\n:data:fail\r:" + LONG + b"\ndata:4\n\n",
        only_data("1\n2\n3\n4"),
    ),
    "data-before-final-empty-line": (b"retry:1000\ndata:test1\n\nid:test\ndata:test2", only_data("test1")),
    "field-data": (b"data:\n\ndata\ndata\n\ndata:test\n\n", only_data("", "\n", "test")),
    "field-event": (b"event:test\ndata:x\n\ndata:x\n\n", [Message("x", "test"), Message("x")]),
    "field-event-empty": (b"event: \ndata:data\n\n", only_data("data")),
    "field-id": (b"data:hello\nid:1\n\nretry:10\n", only_data("hello")),
    "field-id-2": (
        b"id:1\ndata:1\n\ndata:2\n\nid:2\ndata:3\n\ndata:4\n\n",
        only_data("1", "2", "3", "4"),
    ),
    "field-id-3": (b"id\ndata:1\n\n", only_data("1")),
    "field-id-null": (b"data:hello\nid: 1\0\n\n", only_data("hello")),
    "field-parsing": (
        b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\r"
        b"data:\r\n data:32\ndata:4\n\n",
        only_data("\0\n 2\n1\n3\n\n4"),
    ),
    "field-retry": (b"retry:03000\ndata:x\n\n", only_data("x")),
    "field-retry-bogus": (b"retry:3000\nretry:1000x\ndata:x\n\n", only_data("x")),
    "field-retry-empty": (b"retry\ndata:test\n\n", only_data("test")),
    "field-unknown": (
        b"data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
        only_data("test\n\ntest"),
    ),
    "leading-space": (b"data:\ttest\rdata: \ndata:test\n\n", only_data("\ttest\n\ntest")),
    "newlines": (b"data:test\r\ndata\ndata:test\r\n\r", only_data("test\n\ntest")),
    "null-character": (b"data:\0\n\n\n\n", only_data("\0")),
    "utf-8": (b"data:ok\xe2\x80\xa6\n\n", only_data("ok…")),
    "event-data": (
        b"data:msg\ndata: msg\n\n:\nfalsefield:msg\n\nfalsefield:msg\nData:data\n\ndata\n\n"
        b"data:end\n\n",
        only_data("msg\nmsg", "", "end"),
    ),
    # --- byte order marks, as LaunchDarkly asks for them
    "bom before event and id": (
        BOM + b"event: greeting\nid: abc\ndata: Hello\n\n",
        [Message("Hello", "greeting")],
    ),
    "bom inside of data stays": (b"data: a\n\ndata: " + BOM + b"b\n\n", only_data("a", "\ufeffb")),
    "only the first bom goes": (BOM + b"data: " + BOM + b"b\n\n", only_data("\ufeffb")),
    "bom before a comment": (BOM + b":comment\ndata: Hello\n\n", only_data("Hello")),
    "bom before empty data": (BOM + b"data:\n\n", only_data("")),
    "bom alone": (BOM, []),
    "two thirds of a bom": (BOM[:2] + b"data: 1\n\ndata: 2\n\n", only_data("2")),
    "a third of a bom and nothing": (BOM[:1], []),
    # --- messages
    "one": (b"data: Hello\n\n", only_data("Hello")),
    "two": (b"data: Hello\n\ndata: World\n\n", only_data("Hello", "World")),
    "two lines": (b"data: Hello\ndata:World\n\n", only_data("Hello\nWorld")),
    "five lines": (b"data:1\ndata:2\ndata:\ndata: 4\ndata:5\n\n", only_data("1\n2\n\n4\n5")),
    "fields in reverse order": (
        b"data: Hello\nid: abc\nevent: greeting\n\n",
        [Message("Hello", "greeting")],
    ),
    "the last event name wins": (b"event: a\nevent: b\ndata: 1\n\n", [Message("1", "b")]),
    "an event name does not outlive its block": (b"event: a\n\ndata: 1\n\n", only_data("1")),
    "an event without data is none": (b"event: a\nid: 3\n\n", []),
    "no space": (b"event:greeting\ndata:Hello\n\n", [Message("Hello", "greeting")]),
    "only one space goes": (b"event:  greeting\ndata:  Hello\n\n", [Message(" Hello", " greeting")]),
    "trailing space stays": (b"data: a \n\n", only_data("a ")),
    "a colon in data": (b"data: a:b: c\n\n", only_data("a:b: c")),
    "a space before the colon is another field": (b"data : 1\n\n", []),
    "field names have case": (b"DATA: 1\nData: 2\n\n", []),
    "no colon": (b"data\n\ndata\ndata\n\n", only_data("", "\n")),
    "many in a row": (
        b"".join(b"data: message %d\n\n" % i for i in range(100)),
        only_data(*(f"message {i}" for i in range(100))),
    ),
    "a word that begins with data": (b"database: 1\ndata: 2\n\n", only_data("2")),
    # --- line ends
    "lf": (b"data: cow\ndata: moo\n\n", only_data("cow\nmoo")),
    "cr": (b"data: dog\rdata: bark\r\rdata: x\r\r", only_data("dog\nbark", "x")),
    "crlf": (b"data: pig\r\ndata: oink\r\n\r\ndata: x\r\n\r\n", only_data("pig\noink", "x")),
    "lf then crlf": (b"data: 1\n\r\ndata: 2\n\r\n", only_data("1", "2")),
    "crlf then lf": (b"data: 1\r\n\ndata: 2\r\n\n", only_data("1", "2")),
    "cr then lf is one line end": (b"data: 1\r\ndata: 2\n\n", only_data("1\n2")),
    "lf then cr are two": (b"data: 1\n\rdata: 2\n\n", only_data("1", "2")),
    "lines that end with cr, blocks with crlf": (b"data: 1\rdata: 2\r\n\r\n", only_data("1\n2")),
    "cr, crlf": (b"data: 1\r\r\ndata: 2\n\n", only_data("1", "2")),
    "blank lines before, between and after": (b"\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n\n", only_data("1", "2")),
    "one blank line before": (b"\ndata: 1\n\n", only_data("1")),
    "only line ends": (b"\n\r\n\r\r\n\n", []),
    "nothing": (b"", []),
    # --- other characters that some readers take for line ends
    "unicode line ends are text": (
        "data: a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n\n".encode(),
        only_data("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"),
    ),
    # --- comments
    "comment blocks": (b": hi\n\n:\n\n::\n\ndata: 1\n\n", only_data("1")),
    "comment between data": (b"data: 1\n: hi\ndata: 2\n\n", only_data("1\n2")),
    "a comment that looks like data": (b":data: 1\n: data: 2\n\n", []),
    # --- text
    "many bytes a character": ("data: €豆腐🍜\n\n".encode(), only_data("€豆腐🍜")),
    "bytes that are not utf-8": (b"data: a\xff\xfeb\xc3\n\n", only_data("a\ufffd\ufffdb\ufffd")),
    "bytes that are not utf-8 in the name": (b"event: a\xff\ndata: 1\n\n", [Message("1", "a\ufffd")]),
    # --- the end
    "no blank line, no event": (b"data: 1\n\ndata: 2\n", only_data("1")),
    "no line end, no event": (b"data: 1\n\ndata: 2", only_data("1")),
    "a huge line": (b"data: " + b"y" * 300_000 + b"\n\n", only_data("y" * 300_000)),
    "many lines": (b"data: z\n" * 5_000 + b"\n", only_data("\n".join(["z"] * 5_000))),
}  # fmt: skip


def test_the_reference_reader_agrees_with_the_table():
    for name, (body, expected) in CASES.items():
        assert messages(body) == expected, name


@pytest.mark.parametrize("name", CASES)
def test_a_body_dispatches_what_the_specification_says(name: str):
    body, expected = CASES[name]
    assert dispatched([body]) == expected
    for chunks in chunkings(body) if len(body) < 20_000 else [at_random(body, 999, 1)]:
        assert dispatched(chunks) == expected


@pytest.mark.parametrize("name", [n for n, (body, _) in CASES.items() if len(body) < 200])
def test_every_cut_into_two_gives_the_same_blocks(name: str):
    body, _ = CASES[name]
    whole = blocks([body])
    for at in range(len(body) + 1):
        assert blocks([body[:at], body[at:]]) == whole
        assert blocks([body[:at], b"", body[at:]]) == whole


def test_a_chunk_border_inside_of_crlf_is_one_line_end():
    chunks = [b"data: A\r\n", b"data: B\r", b"\n", b"data: C\r\n", b"\n"]
    assert dispatched(chunks) == only_data("A\nB\nC")


def test_a_block_is_told_with_the_chunk_that_ends_it():
    framer = SSE()
    assert framer.feed(b"data: 1\n") == []
    assert framer.feed(b"\nda") == [b"data: 1"]
    assert framer.feed(b"ta: 2\r\r") == [b"data: 2"]


def test_a_byte_order_mark_cut_in_three_is_dropped():
    assert dispatched([b"\xef", b"\xbb", b"", b"\xbf", b"data: 1\n\n"]) == only_data("1")


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        (b"data: 1\n\ndata: 2", [b"data: 2"]),
        (b"data: 1\n\ndata: 2\n", [b"data: 2"]),
        (b"data: 1\n\ndata: 2\r", [b"data: 2"]),
        (b"event: a\r\ndata: 2\r\n", [b"event: a\ndata: 2"]),
        (b"data: 1\n\n", []),
        (b"data: 1\n\n\n", []),
        (b"", []),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb", [b"\xef\xbb"]),
        (b"\r", []),
    ],
)
def test_what_is_left_at_the_end_is_handed_over_and_not_dispatched(body: bytes, rest: list[bytes]):
    for chunks in ([body], bytewise(body)):
        framer = SSE()
        for chunk in chunks:
            framer.feed(chunk)
        assert framer.rest() == rest


def test_a_block_knows_its_comments_and_an_error_field():
    fields = read(b": one\n:two\nevent: e\ndata: 1\nerror: {}\n:")
    assert (fields.data, fields.event, fields.comments, fields.error) == (b"1", "e", 3, b"{}")


def test_only_a_line_that_begins_with_a_colon_is_a_comment():
    assert read(b"id: 3\nretry: 5\nhello\n: hi").comments == 1
    assert read(b"").comments == 0


def test_a_block_without_data_has_none_and_one_with_empty_data_has_it():
    assert read(b": hi").data is None
    assert read(b"data").data == b""
    assert read(b"data:").data == b""
    assert read(b"data: ").data == b""
    assert read(b"").data is None


@pytest.mark.parametrize(
    ("frame", "head"),
    [
        (b'data: {"a":1}', b"data: "),
        (b'data:{"a":1}', b"data:"),
        (b'event: x\ndata: {"a":1}', b"event: x\ndata: "),
        (b"id: 3\ndata: 1", b"id: 3\ndata: 1"),
        (b": hi\ndata: 1", b": hi\ndata: 1"),
        (b"", b""),
    ],
)
def test_what_stands_before_the_data_of_usual_frames(frame: bytes, head: bytes):
    assert SSE().head_of(frame) == head


# --- against the reference, for any bytes ---------------------------------------------------------

PIECES = st.sampled_from(
    [b"data", b"data:", b"data: ", b"event: e", b"event:", b"id: 1", b"retry: 3", b":", b": c",
     b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", BOM, b"\xef", b"\xbb", b"\xbf",
     b" ", b"x", b"\0", b"\xff", "é".encode(), "\u2028".encode(), b'{"a":1}', b"1"]
)  # fmt: skip
BODIES = st.lists(PIECES | st.binary(max_size=3), max_size=40).map(b"".join)


@st.composite
def chunked(draw: st.DrawFn, bodies: st.SearchStrategy[bytes] = BODIES) -> list[bytes]:
    body = draw(bodies)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=12)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@given(chunked())
@example([b"\r", b"\n\n", b"data: 1\r", b"\n\r", b"\n"])
@example([b"\n", b"\ndata: 1\n", b"", b"\n"])
def test_any_body_in_any_chunking_dispatches_what_the_reference_does(chunks: list[bytes]):
    assert dispatched(chunks) == messages(b"".join(chunks))


@given(chunked())
@example([b"data:1\n\r\n\r\n", b"\r\n\r\n"])
def test_any_chunking_gives_the_same_blocks_and_rest(chunks: list[bytes]):
    body = b"".join(chunks)
    results = []
    for cut in ([body], chunks, bytewise(body)):
        framer = SSE()
        results.append(([b for c in cut for b in framer.feed(c)], framer.rest()))
    assert results[0] == results[1] == results[2]


@given(BODIES)
def test_the_quick_way_to_data_never_reads_other_json_than_the_slow_one(body: bytes):
    framer = SSE()
    for frame in framer.feed(body + b"\n\n"):
        try:
            quick = msgspec.json.decode(frame[len(framer.head_of(frame)) :])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        data = read(frame).data
        assert data is not None
        assert msgspec.json.decode(data) == quick


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [99, 100, 101])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_a_block_beyond_the_limit_is_not_told_in_any_chunking(size: int, end: bytes):
    block = b"data: " + b"x" * (size - 6)
    body = b"data: 1" + end + block + end + b"data: 3" + end
    for chunks in ([body], bytewise(body), at_random(body, 7, 1), [body[:30], body[30:]]):
        framer = SSE(100)
        told = []
        for chunk in chunks:
            told += framer.feed(chunk)
            if framer.overflow:
                break
        assert framer.overflow is (size > 100)
        assert told == ([b"data: 1", block, b"data: 3"] if size <= 100 else [b"data: 1"])


def test_an_endless_line_is_given_up_and_not_kept():
    framer = SSE(1000)
    for _ in range(50):
        framer.feed(b"x" * 100)
        if framer.overflow:
            break
    assert framer.overflow
    assert framer.rest() == []


def test_a_last_block_that_is_too_big_and_never_ends_is_seen_in_one_chunk_as_well():
    framer = SSE(100)
    assert framer.feed(b"data: 1\n\ndata: " + b"x" * 200) == [b"data: 1"]
    assert framer.overflow


@given(st.lists(st.sampled_from([b"data: 1", b"a", b"\n", b"\n\n", b"\n\n", b"\r\n\r\n", b"\r"])),
       st.integers(1, 9))  # fmt: skip
def test_blocks_told_from_lines_are_those_between_blank_lines(pieces: list[bytes], size: int):
    body = b"".join(pieces)
    plain = re.sub(rb"\r\n?", b"\n", body)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    assert blocks(chunks) == plain.split(b"\n\n")[:-1]


def test_frames_of_one_line_and_of_several_may_follow_each_other():
    body = b"data: 1\n\ndata: 2\nmore\n\ndata: 3\n\n: c\n\nevent: x\ndata: 4\n\n\n\ndata: 5\n\n"
    told = [b"data: 1", b"data: 2\nmore", b"data: 3", b": c", b"event: x\ndata: 4", b"", b"data: 5"]
    for size in range(1, len(body) + 1):
        framer, heard = SSE(), []
        for at in range(0, len(body), size):
            new = framer.feed(body[at : at + size])
            assert not (framer.single_lines and any(b"\n" in block for block in new)), size
            heard += new
        assert heard == told, size
    framer = SSE()
    assert framer.feed(b"data: 1\n\ndata: 2\n\n") == [b"data: 1", b"data: 2"]
    assert framer.single_lines


@pytest.mark.parametrize(
    ("block", "strays"),
    [
        (b"data: 1\nevent: x\nid: 1\nretry: 5\n: c\n:\nerror: x\ndata\nid", 0),
        (b"\ndata: 1\n\n", 0),
        (b"dat: 1", 1),
        (b"data : 1\nData: 2\n data: 3", 3),
        (b'{"a": 1}\nx', 2),
    ],
)
def test_lines_that_are_neither_a_field_nor_a_comment_are_counted(block: bytes, strays: int):
    assert read(block).strays == strays


# --- runs of one head -----------------------------------------------------------------------------

E, D, CRLF = b"event: a\ndata: ", b"data: ", b"\r\n\r\n"
EVENED = D + b"0" + CRLF  # from here on blocks are known to end so
# what came before, head, chunk -> lines or None, what is left, what ended the last one
RUNS: dict[str, tuple[list[bytes], bytes, bytes, list[bytes] | None, list[bytes], bytes]] = {
    "one": ([b"\n\n"], E, E + b"1\n\n", [b"1"], [], b"\n\n"),
    "two": ([b"\n\n"], E, E + b"1\n\n" + E + b"2\n\n", [b"1", b"2"], [], b"\n\n"),
    "the last is cut": ([b"\n\n"], E, E + b"1\n\n" + E + b"2", [b"1"], [E + b"2"], b""),
    "the last head is cut": ([b"\n\n"], E, E + b"1\n\neve", [b"1"], [b"eve"], b""),
    "the last line end is cut": ([b"\n\n"], E, E + b"1\n\n" + E + b"2\n", [b"1"], [E + b"2"], b""),
    "only a part": ([b"\n\n"], E, E + b"1", None, [], b"\n\n"),
    "the rest of one": ([b"\n\n", E + b"1"], E, b"2\n\n", [b"12"], [], b"\n\n"),
    "the rest of one in pieces": ([b"\n\n", E, b"1"], E, b"2\n\n", None, [E + b"1"], b""),
    "another head first": ([b"\n\n"], E, D + b"1\n\n" + E + b"2\n\n", None, [], b"\n\n"),
    "another head between": (
        [b"\n\n"], E, E + b"1\n\n" + D + b"2\n\n" + E + b"3\n\n", [b"1", D + b"2", b"3"], [], b"\n\n",
    ),
    "a comment between": (
        [b"\n\n"], E, E + b"1\n\n:\n\n" + E + b"3\n\n", [b"1", b":", b"3"], [], b"\n\n",
    ),
    "what may be JSON between": (
        [b"\n\n"], E, E + b"1\n\n2\n\n" + E + b"3\n\n", None, [], b"\n\n",
    ),
    "two lines of data": ([b"\n\n"], E, E + b"1\ndata: 2\n\n", None, [], b"\n\n"),
    "a CR in a line": ([b"\n\n"], E, E + b"1\r\n\n", None, [], b"\n\n"),
    "a CR in the rest": ([b"\n\n"], E, E + b"1\n\n" + E + b"2\r", None, [], b"\n\n"),
    "a head of one line": ([b"\n\n"], D, D + b"1\n\n", [b"1"], [], b"\n\n"),
    "two of one line, and half": (
        [b"\n\n"], D, D + b"1\n\n" + D + b"2\n\n" + D + b"3", [b"1", b"2"], [D + b"3"], b"",
    ),
    "a head of one line, and two lines of data": ([b"\n\n"], D, D + b"1\ndata: 2\n\n", None, [], b"\n\n"),
    "a head of two between those of one": (
        [b"\n\n"], D, D + b"1\n\n" + E + b"2\n\n" + D + b"3\n\n", [b"1", E + b"2", b"3"], [], b"\n\n",
    ),
    "a head of one line, ended by CR LF": ([EVENED], D, D + b"1" + CRLF, [b"1"], [], CRLF),
    "CR LF, and an LF in a line": ([EVENED], D, D + b"1\n" + CRLF, None, [], CRLF),
    "CR LF, and LF behind one": ([EVENED], D, D + b"1\n\n:\n\n" + D + b"2" + CRLF, None, [], CRLF),
    "CR LF, and an LF in the rest": ([EVENED], D, D + b"1" + CRLF + D + b"2\n", None, [], CRLF),
    "CR LF, and half of it": ([EVENED], D, D + b"1" + CRLF + D + b"2\r\n", None, [], CRLF),
    "behind a CR": ([b"\n\n", D + b"0\n\r"], E, E + b"1\n\n", None, [], b""),
    "before the first byte": ([], E, E + b"1\n\n", None, [], b""),
}  # fmt: skip


def run_after(before: list[bytes], limit: int = 1000) -> SSE:
    framer = SSE(limit)
    for chunk in before:
        framer.feed(chunk)
    return framer


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_one_head_is_cut_behind_it_and_nothing_else_is(name: str):
    before, head, chunk, lines, left, end = RUNS[name]
    framer = run_after(before)
    told = framer.run(chunk, head)
    assert (told, framer.end) == (lines, end)
    if told is None:  # it is fed instead
        assert framer.feed(chunk) == run_after(before).feed(chunk)
    else:
        whole = [line if type(line) is Uncut else head + line for line in told]
        assert whole == run_after(before).feed(chunk)
        assert framer.rest() == left


@pytest.mark.parametrize("over", [0, 1])
def test_a_run_that_is_longer_than_a_block_may_be_is_fed(over: int):
    chunk = E + b"1\n\n"
    framer = run_after([b"\n\n"], len(chunk) - over)
    assert framer.run(chunk, E) == (None if over else [b"1"])


def test_heads_of_many_kinds_are_fed_for_four_chunks():
    mixed = (E + b"1\n\n" + D + b"2\n\n") * 4 + E + b"3\n\n"
    framer = run_after([b"\n\n"])
    told = [framer.run(mixed, E) is not None for _ in range(7)]
    assert told == [True, False, False, False, False, True, False]


def test_now_and_then_another_head_is_no_mixture():
    framer = run_after([b"\n\n"])
    chunk = E + b"1\n\n" + (D + b"2\n\n") * 3 + E + b"3\n\n"
    assert all(framer.run(chunk, E) is not None for _ in range(3))


def run_or_fed(chunks: list[bytes], head: bytes, limit: int = 1000) -> list[bytes]:
    """The whole blocks of chunks that are taken for runs wherever that can be."""
    framer = run_after([b"\n\n"], limit)
    told: list[bytes] = []
    for chunk in chunks:
        lines = framer.run(chunk, head)
        if lines is None:
            told += framer.feed(chunk)
        else:
            told += [line if type(line) is Uncut else head + line for line in lines]
    return [*told, *framer.rest()]


@pytest.mark.parametrize("head", [E, D])
@pytest.mark.parametrize(
    "last", [E + b"34", D + b"34", b"", E + b"3\ndata: 4\n\n", D + b"3\r\n\r\n"]
)
def test_runs_that_end_anywhere_are_gone_on_with(head: bytes, last: bytes):
    body = head + b"1\n\n" + head + b"{22}\n\n" + head + b"3\n\n" + last
    whole = run_or_fed([body], b"no head at all")
    for one in range(len(body) + 1):
        for other in range(one, len(body) + 1):
            chunks = [body[:one], body[one:other], body[other:]]
            assert run_or_fed(chunks, head) == whole, chunks


def test_a_run_may_be_followed_by_one_of_another_head():
    framer = run_after([b"\n\n"])
    assert framer.run(E + b"1\n\n" + E + D + b"2", E) == [b"1"]
    assert framer.run(b"3\n\n", D) is None
    assert framer.feed(b"3\n\n") == [E + D + b"23"]


@pytest.mark.parametrize("over", [0, 1])
def test_the_head_of_a_line_that_is_held_counts(over: int):
    framer = run_after([b"\n\n"], 2 * len(E) + 8 - over)
    assert framer.run(E + b"1\n\n" + E + b"2", E) == [b"1"]
    more = b"3" * (len(E) + 5)
    assert framer.run(more + b"\n\n", E) == (None if over else [b"2" + more])
