"""Guards of Anthropic that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.events import BrokenToolCall, Failed
from tests.conftest import sse, text_of, traced
from tests.providers.test_evidence_wires import (
    A_BEGIN,
    A_CLOSE,
    WHOLE,
    a_delta,
    a_start,
    a_stop,
    calls_in,
)


def heard(*payloads: Any) -> list[Any]:
    return traced("anthropic", b"".join(sse(p) for p in payloads))[0]


def test_a_delta_that_cannot_be_read_is_of_the_call_without_an_index_if_it_has_none_either():
    new = {"type": "content_block_delta", "delta": {"type": "new_delta"}}
    begun = (a_start(None), a_start(0, "B", "b"), a_delta(WHOLE, None), a_delta(WHOLE))
    told = calls_in(heard(*begun, new, a_stop(None), a_stop(), *A_CLOSE))
    assert told == [("b", WHOLE), ("pay", "conflict!")]


def test_a_call_that_was_told_is_the_same_one_when_it_is_said_again_where_blocks_say_no_place():
    first = a_start(None), a_delta(WHOLE, None), a_stop(None)
    other, differs = a_start(None, "B", "rob"), a_delta("{}", None)
    both = [("pay", WHOLE), ("rob", "conflict!")]
    assert calls_in(heard(*first, other, *first, *A_CLOSE)) == both
    again = first[0], differs, first[2]
    assert calls_in(heard(*first, other, *again, *A_CLOSE)) == [*both, ("pay", "conflict!")]


def test_a_call_that_says_its_place_is_another_than_the_one_told_under_its_id_elsewhere():
    first, second = (
        (a_start(), a_delta(WHOLE), a_stop()),
        (a_start(1), a_delta(WHOLE, 1), a_stop(1)),
    )
    assert calls_in(heard(*first, *second, *A_CLOSE)) == [("pay", WHOLE)] * 2


def test_a_call_that_is_closed_leaves_the_next_one_in_no_doubt_where_blocks_say_no_place():
    first, second = a_start(None), (a_start(None, "B", "rob"), a_delta(WHOLE, None))
    stop = a_stop(None)
    told = calls_in(heard(first, stop, *second, stop, *A_CLOSE))
    assert told == [("rob", WHOLE), ("pay", "")]
    told = calls_in(heard(first, *second, stop, *A_CLOSE))
    assert told == [("pay", "conflict!"), ("rob", "conflict!")]


def test_the_stop_of_a_call_that_was_begun_elsewhere_says_nothing_of_the_other():
    first, again = a_start(input={"n": 1}), a_start(1)
    pieces = a_delta(WHOLE[:3], 1), a_stop(), a_delta(WHOLE[3:], 1)
    told = calls_in(heard(first, again, *pieces, a_stop(1), *A_CLOSE))
    assert told == [("pay", "conflict!"), ("pay", WHOLE)]


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ({"input": None, "new": '{"n":'}, "conflict!"),
        ({"input": None, "new": ["n"]}, "conflict!"),
        ({"input": {}, "new": '{"n":'}, WHOLE),
        ({"input": None, "new": "n"}, WHOLE),
        ({"input": None, "caller": {"type": "direct"}}, WHOLE),
    ],
)
def test_an_input_that_may_stand_elsewhere_in_its_start_makes_its_pieces_doubtful(start, told):
    assert calls_in(heard(a_start(**start), a_delta(WHOLE), a_stop(), *A_CLOSE)) == [("pay", told)]


@pytest.mark.parametrize(
    ("new", "told"), [(7, ""), ("n", ""), ("{", "conflict!"), (["n"], "conflict!")]
)
def test_a_field_that_can_be_no_input_takes_nothing_from_a_call_without_any(new, told):
    assert calls_in(heard(a_start(new=new), a_stop(), *A_CLOSE)) == [("pay", told)]


@pytest.mark.parametrize(("again", "told"), [({"n": 1}, '{"n": 1}'), ({"n": 2}, "conflict!")])
def test_a_call_that_begins_again_before_it_is_closed_says_the_same_input(again, told):
    starts = a_start(input={"n": 1}), a_start(input=again)
    assert calls_in(heard(*starts, a_stop(), *A_CLOSE)) == [("pay", told)]


def test_a_start_without_its_input_takes_nothing_from_what_was_heard_of_the_broken_call():
    events = heard(a_start(input={"n": 1}), a_start(), a_stop(), *A_CLOSE)
    assert [e.raw for e in events if isinstance(e, BrokenToolCall)] == ['{"n": 1}']


@pytest.mark.parametrize(("again", "more"), [({"n": 1}, []), ({"n": 2}, [("pay", "conflict!")])])
def test_a_told_call_that_begins_again_with_its_input_is_a_copy_if_it_says_the_same(again, more):
    first, second = a_start(input={"n": 1}), a_start(input=again)
    told = calls_in(heard(first, a_stop(), second, a_stop(), *A_CLOSE))
    assert told == [("pay", '{"n": 1}'), *more]


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ("boom", "boom", None),
        ({"message": "boom", "type": "e1"}, "boom", "e1"),
        ({"type": "e1"}, "e1", "e1"),
    ],
)
def test_an_error_is_told_in_its_words(error: Any, message: str, code: str | None):
    events = heard(a_start(), {"type": "error", "error": error})
    assert events[-1] == Failed("provider_error", message, False, code)


# --- what could not be read: whose was it? ---------------------------------------------------------


def said_twice(index: int, *inner: str) -> bytes:
    """A delta that says one field of its inside twice, the second time as no text."""
    said = ",".join(f'"{key}":{value}' for key, value in zip(inner[::2], inner[1::2], strict=True))
    delta = f'{{"type":"content_block_delta","index":{index},"delta":{{{said}}}}}'
    return b"data: " + delta.encode() + b"\n\n"


def said(*frames: Any) -> list[tuple[str, str]]:
    body = b"".join(frame if isinstance(frame, bytes) else sse(frame) for frame in frames)
    return calls_in(traced("anthropic", body)[0])


TWO_OPEN = (a_start(), a_start(1, "B", "b"), a_delta(WHOLE), a_delta(WHOLE, 1))
TWO_STOPS = (a_stop(), a_stop(1), *A_CLOSE)
JSON = ("type", '"input_json_delta"')
TEXT = ("type", '"text_delta"')
UNKNOWN = {"type": "content_block_delta", "delta": {"type": "new_delta"}}


def test_a_payload_that_says_a_field_twice_breaks_only_the_open_call_whose_place_it_names():
    odd = said_twice(1, *JSON, "partial_json", '" "', "partial_json", "7")
    assert said(*TWO_OPEN, odd, *TWO_STOPS) == [("pay", WHOLE), ("b", "conflict!")]


def test_a_text_that_is_said_twice_in_a_place_of_no_call_harms_none():
    odd = said_twice(5, *TEXT, "text", '"a"', "text", "7")
    assert said(*TWO_OPEN, odd, *TWO_STOPS) == [("pay", WHOLE), ("b", WHOLE)]


def test_words_of_a_call_said_twice_in_a_place_of_no_call_may_be_of_any_open_one():
    odd = said_twice(5, *JSON, "partial_json", '" "', "partial_json", "7")
    assert said(*TWO_OPEN, odd, *TWO_STOPS) == [("pay", "conflict!"), ("b", "conflict!")]


def test_a_kind_that_we_do_not_know_with_words_of_a_call_elsewhere_harms_none_that_is_open():
    odd = {**UNKNOWN, "index": 5, "delta": {"type": "new_delta", "partial_json": WHOLE}}
    assert said(*TWO_OPEN, odd, *TWO_STOPS) == [("pay", WHOLE), ("b", WHOLE)]


@pytest.mark.parametrize(
    ("odd", "empty"),
    [
        ({**UNKNOWN, "index": 5, "delta": {"type": "new_delta", "partial_json": "{"}}, "conflict!"),
        (UNKNOWN, "conflict!"),
        ({**UNKNOWN, "index": 5}, ""),
    ],
    ids=["words of a call", "no place", "another place"],
)
def test_a_call_that_begins_after_a_loss_and_looks_empty_may_not_be(odd: Any, empty: str):
    later = (a_start(9, "C", "c"), a_stop(9), *A_CLOSE)
    assert said(odd, *later) == [("c", empty)]


# --- what is read on its own ------------------------------------------------------------------------


def started(block: bytes) -> bytes:
    return b'data: {"type":"content_block_start","index":0,"content_block":%s}\n\n' % block


def test_a_number_that_is_none_in_a_block_is_an_event_that_is_no_json():
    begun = sse({"type": "message_start", "message": {"id": "m", "model": "m"}})
    odd = started(b'{"type":"tool_use","id":"a","name":"f","input":{"n":1e999}}')
    last = traced("anthropic", begun + odd)[0][-1]
    assert isinstance(last, Failed)
    assert (last.reason, last.error.startswith("an event is not JSON (Number out of range")) == (
        "protocol",
        True,
    )


def test_half_a_character_and_bytes_that_are_no_text_in_one_block_are_replaced_both():
    odd = started(b'{"type":"text","text":"a\xff\\ud83d"}')
    call = (a_start(1), a_delta(WHOLE, 1), a_stop(1), *A_CLOSE)
    events, pipe = traced("anthropic", odd + b"".join(map(sse, call)))
    assert (text_of(events), calls_in(events)) == ("a\ufffd\ufffd", [("pay", WHOLE)])
    assert (pipe.notes["wire.bad_utf8"], pipe.notes["wire.half_character"]) == (1, 1)


@pytest.mark.parametrize(
    ("input", "ends"),
    [
        (b'{"a":"\xff"}', "conflict!"),
        (b'{"a":"\\ud83d"}', "invalid_json!"),
        (b'{"a":"\xff","b":"\\ud83d"}', "conflict!"),
    ],
)
def test_a_call_is_broken_and_no_more_by_such_characters_in_its_start(input: bytes, ends: str):
    odd = started(b'{"type":"tool_use","id":"a","name":"f","input":%s}' % input)
    later = (a_start(1), a_delta(WHOLE, 1), a_stop(1))
    assert said(odd, a_stop(), *later, *A_CLOSE) == [("pay", WHOLE), ("f", ends)]


@pytest.mark.parametrize(
    ("value", "told"), [("text", "conflict!"), (-5, WHOLE), (True, WHOLE), ({"a": 1}, WHOLE)]
)
def test_a_text_where_a_name_leads_to_the_text_of_a_call_was_moved_there(value, told):
    pieces = a_delta(WHOLE[:3]), {"type": "ping", "delta": value}, a_delta(WHOLE[3:])
    assert calls_in(heard(a_start(), *pieces, a_stop(), *A_CLOSE)) == [("pay", told)]


def test_a_call_that_was_told_and_is_said_again_in_a_later_answer_is_the_same_call():
    """However many answers were begun in between."""
    call = (a_start(), a_delta(WHOLE), a_stop())
    for begun in (1, 2, 3):
        assert calls_in(heard(A_BEGIN, *call, *[A_BEGIN] * begun, *call, *A_CLOSE)) == [
            ("pay", WHOLE)
        ]
