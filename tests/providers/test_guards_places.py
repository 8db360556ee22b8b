"""Wires whose calls have a place and a mark that closes them: what is said of a place that cannot be read.

One rule for all of them, asked of each; every row fails if its guard is removed (``make mutate``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.conftest import sse, traced
from tests.providers import test_evidence_wires as said
from tests.providers.streams import payloads

Json = dict[str, Any]
WHOLE = said.WHOLE
PAID, DOUBTED = [("pay", WHOLE)], [("pay", "conflict!")]


class Wire(NamedTuple):
    """Its words: of a call's start (index, id, name), a fragment (text, index), a stop, and the end."""

    start: Callable[..., Json]
    delta: Callable[..., Json]
    stop: Callable[..., Json]
    end: tuple[Json, ...]
    word: str  # one that speaks of calls


WIRES = {
    "anthropic": Wire(said.a_start, said.a_delta, said.a_stop, said.A_CLOSE, "partial_json"),
    "cohere": Wire(
        lambda index=0, id="A", name="pay": said.c_start("", id, name, index), said.c_delta,
        lambda index=0: said.c_call("end", index=index), (said.c_end(),), "arguments",
    ),
    "bedrock": Wire(
        lambda index=0, id="A", name="pay": said.b_start(id, name, index), said.b_delta, said.b_stop,
        said.B_END, "toolUse",
    ),
}  # fmt: skip


def doubtful(payload: Json, word: str) -> Json:
    """With a field that we do not know and that speaks of calls."""
    if "contentBlockStart" in payload:
        return {"contentBlockStart": payload["contentBlockStart"] | {"new": {word: 1}}}
    return payload | {"new": {word: 1}}


def told(name: str, *stream: Any) -> list[tuple[str, str]]:
    if name in said.IN_PAYLOADS:
        return said.calls_in(payloads(name, *stream))
    return said.calls_in(traced(name, b"".join(map(sse, stream)))[0])


@pytest.fixture(params=WIRES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_call_without_an_index_has_a_place_as_well(name: str):
    start, delta, stop, end, _ = WIRES[name]
    assert told(name, start(None), delta(WHOLE, None), stop(None), *end) == PAID


def test_a_fragment_without_an_index_that_comes_before_such_a_call_makes_it_doubtful(name: str):
    start, delta, stop, end, _ = WIRES[name]
    stream = (delta("x", None), start(None), delta(WHOLE, None), stop(None), *end)
    assert told(name, *stream) == DOUBTED


def test_a_start_whose_index_cannot_be_read_is_no_place(name: str):
    start, delta, stop, end, _ = WIRES[name]
    assert told(name, start("zero"), delta(WHOLE, None), stop(None), *end) == DOUBTED
    # A fragment without an index is not taken for its own while another call is open.
    other = (start(0, "B", "b"), delta(WHOLE), delta(" ", None), stop(), *end)
    assert told(name, start("zero"), *other) == [("pay", "conflict!"), ("b", "conflict!")]


def test_a_start_of_which_something_could_not_be_read_has_its_place_all_the_same(name: str):
    start, delta, stop, end, word = WIRES[name]
    first = doubtful(start(), word)
    stream = (first, start(1, "B", "b"), delta(WHOLE, 0), delta(WHOLE, 1), stop(1), stop(0), *end)
    assert told(name, *stream) == [("b", WHOLE), ("pay", "conflict!")]


@pytest.mark.parametrize("index", ["zero", 1.5, {}])
def test_a_stop_whose_index_cannot_be_read_makes_the_open_calls_doubtful(name: str, index: Any):
    start, delta, stop, end, _ = WIRES[name]
    assert told(name, start(), delta(WHOLE), stop(index), stop(), *end) == DOUBTED


@pytest.mark.parametrize("index", ["zero", 1.5, {}])
def test_a_fragment_whose_index_cannot_be_read_makes_the_open_calls_doubtful(name: str, index: Any):
    start, delta, stop, end, _ = WIRES[name]
    assert told(name, start(), delta(WHOLE), delta(" ", index), stop(), *end) == DOUBTED


def test_an_index_in_quotes_is_that_index(name: str):
    start, delta, stop, end, _ = WIRES[name]
    assert told(name, start("0"), delta(WHOLE, "0"), stop("0"), *end) == PAID


def test_one_fragment_that_is_an_object_is_all_of_its_call_and_two_are_none(name: str):
    """Nobody was seen to send several here, and on Anthropic not even one."""
    start, delta, stop, end, _ = WIRES[name]
    one = [
        (n, raw.replace(" ", ""))
        for n, raw in told(name, start(), delta({"to": "me"}), stop(), *end)
    ]
    assert one == (DOUBTED if name == "anthropic" else PAID)
    for second in ({"n": 1}, {"to": "me"}, {}):
        stream = (start(), delta({"to": "me"}), delta(second), stop(), *end)
        assert told(name, *stream) == DOUBTED


def test_a_payload_that_became_one_with_a_fragment_makes_all_open_calls_doubtful(name: str):
    """The place that it names is that of one of the two."""
    start, delta, stop, end, _ = WIRES[name]
    if name == "cohere":  # whose starts have the same field
        return
    merged = {**start(1, "B", "b"), **delta(" ")}
    if name == "bedrock":
        both = merged["contentBlockStart"] | {"delta": delta(" ")["contentBlockDelta"]["delta"]}
        merged = {"contentBlockStart": both}
    else:
        merged |= {"type": start()["type"], "index": 1}
    stream = (start(), delta(WHOLE), merged, delta(WHOLE, 1), stop(), stop(1), *end)
    assert told(name, *stream) == [("pay", "conflict!"), ("b", "conflict!")]


def test_a_part_of_a_call_behind_the_word_for_the_end_needs_its_closing_mark(name: str):
    start, delta, stop, end, _ = WIRES[name]
    if len(end) == 1:  # the word is the end
        return
    word, *rest = end
    late = (start(), delta(WHOLE[:4]), word, delta(WHOLE[4:]))
    assert told(name, *late, *rest) == [("pay", "truncated!")]
    assert told(name, *late, stop(), *rest) == PAID


def test_an_empty_fragment_is_not_told(name: str):
    start, delta, stop, end, _ = WIRES[name]
    stream = (start(), delta(""), delta(WHOLE), stop(), *end)
    events = payloads(name, *stream)
    assert [e.text for e in events if e.kind == "tool_call_delta"] == [WHOLE]


def test_of_two_open_calls_without_an_index_none_is_whole(name: str):
    start, delta, stop, end, _ = WIRES[name]
    stream = (start(None), start(None, "B", "b"), delta(WHOLE, None), stop(None), *end)
    assert told(name, *stream) == [("pay", "conflict!"), ("b", "conflict!")]
    stream = (start(None), delta(WHOLE, None), stop(None), start(None, "B", "b"), delta(WHOLE, None),
              stop(None), *end)  # fmt: skip
    assert told(name, *stream) == [("pay", WHOLE), ("b", WHOLE)]
