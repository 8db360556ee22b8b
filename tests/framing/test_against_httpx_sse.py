"""Another implementation as the judge. Where it differs from the specification, the test says so."""

from __future__ import annotations

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import example, given
from hypothesis import strategies as st

from tests.conftest import load, take_id, take_paths
from tests.framing.reference_sse import Message, messages
from tests.framing.test_sse import BODIES, dispatched

BOM = b"\xef\xbb\xbf"


def judged(body: bytes, chunk: int | None = None, charset: str = "utf-8") -> list[Message]:
    """What httpx-sse dispatches for this body."""

    def chunks():
        yield from (
            [body] if chunk is None else (body[i : i + chunk] for i in range(0, len(body), chunk))
        )

    response = httpx.Response(
        200, headers={"content-type": f"text/event-stream; charset={charset}"}, content=chunks()
    )
    return [Message(e.data, unnamed(e.event)) for e in EventSource(response).iter_sse()]


def unnamed(event: str) -> str:
    """It calls an event without a name "message", as a browser does."""
    return "" if event == "message" else event


def ours(body: bytes) -> list[Message]:
    return [Message(m.data, unnamed(m.event)) for m in dispatched([body]) if m.data]


def without_its_differences(body: bytes) -> bytes | None:
    """The body, if httpx-sse is expected to read it as the specification says."""
    if BOM in body:
        return None  # difference 1: it keeps the byte order mark
    try:
        body.decode()
    except UnicodeDecodeError:
        return None  # its text decoder may cut replacement characters differently between chunks
    return body


def with_data(told: list[Message]) -> list[Message]:
    """Difference 2: it dispatches blocks without data, as empty data."""
    return [m for m in told if m.data]


@given(BODIES, st.sampled_from([None, 1, 3, 7]))
@example(b"data: 1\r\n\r\ndata: 2\n\n", 1)
def test_httpx_sse_dispatches_the_same_messages(body: bytes, chunk: int | None):
    plain = without_its_differences(body)
    if plain is not None:
        assert with_data(judged(plain, chunk)) == ours(plain)


READABLE = [
    path
    for path in take_paths()
    if load(path)[1][:1] not in b"[{\x00" and without_its_differences(load(path)[1]) is not None
]


@pytest.mark.parametrize("path", READABLE, ids=take_id)
def test_httpx_sse_reads_the_takes_as_we_do(path):
    _, body = load(path)
    assert with_data(judged(body)) == ours(body)


def test_difference_1_it_keeps_the_byte_order_mark_and_loses_the_first_event():
    body = BOM + b"data: 1\n\ndata: 2\n\n"
    assert judged(body) == [Message("2")]
    assert dispatched([body]) == messages(body) == [Message("1"), Message("2")]


def test_difference_2_it_dispatches_events_without_data():
    body = b"event: ping\n\nid: 7\n\ndata: 1\n\n"
    assert judged(body) == [Message("", "ping"), Message(""), Message("1")]
    assert dispatched([body]) == messages(body) == [Message("1")]


def test_difference_3_it_believes_the_charset_of_the_header():
    body = "data: é\n\n".encode()
    assert judged(body, charset="windows-1252") == [Message("Ã©")]
    assert dispatched([body]) == messages(body) == [Message("é")]
