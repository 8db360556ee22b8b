"""Responses says every text up to four times: it is told once, whatever happens to its frames."""

from __future__ import annotations

import pytest

from streamnorm.events import Event
from tests.conftest import text_of
from tests.providers.streams import Responses, heard

R = Responses
HELLO = R.message("Hello")
BEGUN = R.CREATED + R.added(R.message(""))
CLOSING = R.text_done("Hello") + R.done(HELLO) + R.completed(HELLO)
MISMATCH = "wire.text_mismatch"


def told(body: bytes) -> tuple[str, int]:
    events, notes = heard("openai_responses", body)
    return text_of(events), notes.get(MISMATCH, 0)


def thoughts(events: list[Event]) -> str:
    return "".join(e.text for e in events if e.kind == "reasoning_delta")


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (R.text("Hel") + R.text("lo"), "Hello"),
        (R.text("Hel"), "Hello"),
        (b"", "Hello"),
        (R.text("Hel") + R.text(5), "Hello"),
        (R.text("Hel") + R.text("lo", item_id="another"), "Hello"),
    ],
    ids=["all", "last one lost", "all lost", "no text", "another item"],
)
@pytest.mark.parametrize("closing", [CLOSING, R.done(HELLO) + R.completed(HELLO), R.completed(HELLO)],
                         ids=["three copies", "two", "one"])  # fmt: skip
def test_what_is_missing_at_the_end_of_a_text_is_told_once(pieces: bytes, text: str, closing):
    if closing == R.completed(HELLO) and pieces:
        closing = (
            R.done(HELLO) + closing
        )  # gateways number the final response anew: only as a whole
    assert told(BEGUN + pieces + closing) == (text, 0)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (R.text("Hel") * 2 + R.text("lo"), "HelHello"),
        (R.text("lo") + R.text("Hel"), "loHel"),
        (R.text("Hel") + R.text("p!"), "Help!"),
        (R.text("He") + R.text("o"), "Heo"),
    ],
    ids=["repeated", "swapped", "changed", "one in the middle lost"],
)
def test_a_copy_that_differs_from_what_was_told_is_a_note_and_not_told(pieces: bytes, text: str):
    said, notes = told(BEGUN + pieces + CLOSING)
    assert said == text
    assert notes >= 1


@pytest.mark.parametrize(
    "pieces",
    [
        R.text("Hel", 3) + R.text("lo", 3),
        R.text("Hel") + R.text("lo", 3),
        R.text("Hel", 3),
        R.text("Hello", None),
    ],
    ids=["all", "the last", "all there are", "no place"],
)
def test_pieces_in_a_place_where_no_item_is_are_not_told_again_by_the_copy(pieces: bytes):
    begun = R.CREATED + R.added(R.message(""), 1)
    closing = R.text_done("Hello", 1) + R.done(HELLO, 1) + R.completed(HELLO)
    if b'"output_index": 0' in pieces:
        begun, closing = BEGUN, CLOSING
    assert told(begun + pieces + closing) == ("Hello", 1)


@pytest.mark.parametrize(
    ("before", "after", "notes"),
    [(R.text("Hel"), R.text("lo"), 1), (b"", R.text("Hel") + R.text("lo"), 2)],
)
def test_pieces_that_come_after_their_copy_are_not_told_again(before, after, notes: int):
    body = BEGUN + before + R.text_done("Hello") + after + R.done(HELLO) + R.completed(HELLO)
    assert told(body) == ("Hello", notes)


def test_another_text_in_the_place_of_one_that_is_done_is_told():
    """Some gateways use one place for all."""
    body = BEGUN + R.text("Hello") + CLOSING.partition(b'data: {"type": "response.completed"')[0]
    body += R.text(" World") + R.completed()
    assert told(body) == ("Hello World", 0)


def test_a_copy_without_a_place_belongs_to_its_item():
    begun = R.CREATED + R.added(R.message(""), 1) + R.text("Hello", 1)
    closing = R.text_done("Hello", None, item_id="msg_1") + R.done(HELLO, None)
    assert told(begun + closing + R.completed(HELLO)) == ("Hello", 0)


def test_equal_texts_of_two_items_are_two():
    two = R.message("Hello", "msg_2")
    body = BEGUN + R.text("Hello") + R.done(HELLO) + R.added(R.message("", "msg_2"), 1)
    body += R.text("Hello", 1) + R.done(two, 1) + R.completed(HELLO, two)
    assert told(body) == ("HelloHello", 0)


def test_a_message_that_only_the_final_response_has_is_told():
    world = R.message(" World", "msg_2")
    body = BEGUN + R.text("Hello") + CLOSING.partition(b'data: {"type": "response.completed"')[0]
    assert told(body + R.completed(HELLO, world)) == ("Hello World", 0)


def test_a_final_message_that_differs_from_the_one_that_was_told_is_a_note():
    assert told(BEGUN + R.text("Hello") + R.completed(R.message("Hello!"))) == ("Hello", 1)


def reasoning(*summary: str) -> dict[str, object]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": parts}


def thought(kind: str, text: str, at: int = 0) -> bytes:
    field = "delta" if kind == "delta" else "text"
    place = {"output_index": 0, "summary_index": at, "item_id": "rs_1"}
    return R.say(f"reasoning_summary_text.{kind}", **place, **{field: text})


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        (thought("delta", "Hm") + thought("done", "Hmm"), "Hmm Yes"),
        (thought("delta", "Hm") + thought("done", "Hmm") + thought("delta", " Yes", 1), "Hmm Yes"),
        (thought("done", "Hmm") + thought("delta", "Hm") + thought("delta", "m"), "Hmm Yes"),
        (b"", "Hmm\n Yes"),
    ],
    ids=["second part lost", "all", "copy first", "item only"],
)
def test_reasoning_is_told_once_too_and_a_lost_part_is_told_from_its_item(frames, text: str):
    item = reasoning("Hmm", " Yes")
    body = R.CREATED + R.added(reasoning()) + frames + R.done(item) + R.completed(item)
    assert thoughts(heard("openai_responses", body)[0]) == text
