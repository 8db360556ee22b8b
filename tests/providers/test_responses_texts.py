"""providers.openai_responses.texts: every text is told once, however often and wherever it is said."""

from __future__ import annotations

from typing import Any

from streamnorm import Normalizer
from streamnorm.notes import Scribe
from streamnorm.providers.openai_responses.texts import MOST_STRAYS, NEAR, Texts
from tests.conftest import sse


def texts() -> tuple[Texts, Scribe]:
    scribe = Scribe("openai_responses")
    return Texts(scribe), scribe


def mismatches(scribe: Scribe) -> int:
    return scribe.counts["wire.text_mismatch"]


def test_a_copy_tells_what_its_pieces_did_not():
    some, scribe = texts()
    some.house(0)
    some.pieces(0, 0).append("Hel")
    assert some.news(0, 0, "Hello") == "lo"
    assert some.news(0, 0, "Hello") == ""
    assert some.news(0, 0, "") == ""
    assert mismatches(scribe) == 0


def test_a_copy_that_differs_tells_nothing_and_is_noted():
    some, scribe = texts()
    some.pieces(0, 0).append("Hello")
    assert some.news(0, 0, "Hi there") == ""
    assert mismatches(scribe) == 1
    assert some.news(0, 0, "Hello") == ""  # what was told is what counts
    assert mismatches(scribe) == 1
    assert some.news(0, 0, "Hello you") == ""
    assert mismatches(scribe) == 2


def test_a_part_without_a_number_is_the_first():
    some, _ = texts()
    some.pieces(0, None).append("Hello")
    assert some.news(0, 0, "Hello") == ""
    assert some.news(0, 1, "Hello") == "Hello"


def test_pieces_that_come_after_their_copy_are_not_told_again():
    some, scribe = texts()
    assert some.news(0, 0, "Hello") == "Hello"
    assert some.retold(0, 0, "Hel")
    assert some.retold(0, None, "lo")
    assert mismatches(scribe) == 2
    assert not some.retold(0, 0, "!")
    assert not some.retold(1, 0, "Hello")
    assert some.news(0, 1, "you") == "you"
    assert [some.retold(0, 1, text) for text in ("yo", "u", "u")] == [True, True, False]


def test_a_piece_that_the_copy_did_not_say_is_told():
    some, scribe = texts()
    assert some.news(0, 0, "Hello") == "Hello"
    assert not some.retold(0, 0, "Bye")
    assert mismatches(scribe) == 0


def test_text_in_a_place_without_an_item_is_not_told_again_in_that_of_its_item():
    some, scribe = texts()
    some.pieces(7, 0).append("Hel")
    some.house(0)
    assert some.news(0, 0, "Hello") == "lo"
    assert mismatches(scribe) == 1
    some.house(1)
    assert some.news(1, 0, "Hello") == "Hello"  # told astray only once


def test_text_in_the_place_of_another_item_is_another_text():
    some, scribe = texts()
    some.house(0)
    some.house(1)
    some.pieces(1, 0).append("Hel")
    assert some.news(0, 0, "Hello") == "Hello"
    assert mismatches(scribe) == 0


def test_a_place_whose_item_comes_later_is_no_place_without_an_item():
    some, _ = texts()
    some.pieces(1, 0).append("Hel")
    some.house(1)
    assert some.news(0, 0, "Hello") == "Hello"


def test_text_astray_that_says_something_else_is_another_text():
    some, _ = texts()
    some.pieces(7, 0)  # nothing came of it
    some.pieces(8, 0).append("Bye")
    some.house(0)
    assert some.news(0, 0, "Hello") == "Hello"


def test_an_empty_place_without_an_item_hides_no_other():
    some, _ = texts()
    some.pieces(7, 0)
    some.pieces(8, 0).append("Hel")
    some.house(0)
    assert some.news(0, 0, "Hello") == "lo"


def test_a_part_that_was_copied_is_not_astray():
    some, _ = texts()
    assert some.news(7, 0, "Hello") == "Hello"
    some.pieces(7, 0).append("Bye")
    assert some.news(0, 0, "Bye") == "Bye"


def test_a_copy_is_compared_with_a_few_places_only():
    for before, told in ((MOST_STRAYS - 1, ""), (MOST_STRAYS, "Hello")):
        some, _ = texts()
        for place in range(before):
            some.pieces(place + 10, 0).append("x")
        some.pieces(9, 0).append("Hello")
        assert some.news(0, 0, "Hello") == told


def test_the_places_of_items_are_none_of_these_few():
    some, _ = texts()
    for place in range(10, 10 + MOST_STRAYS):
        some.house(place)
        some.pieces(place, 0).append("x")
    some.pieces(9, 0).append("Hello")
    assert some.news(0, 0, "Hello") == ""


def test_where_something_was_told():
    some, _ = texts()
    assert (some.has(0), some.has_any(), some.places()) == (False, False, 0)
    assert some.has_all(0, [])
    some.pieces(0, None).append("a")
    some.pieces(0, 1).append("b")
    some.pieces(None, 0).append("c")
    assert (some.has(0), some.has(1), some.has_any(), some.places()) == (True, False, True, 2)
    assert some.has_all(0, [None, 1, 2])
    assert not some.has_all(0, [0])
    assert some.has_all(None, [0])


def test_what_was_told_wherever_it_was():
    some, _ = texts()
    some.pieces(0, 0).extend(["Hel", "lo"])
    some.news(1, 0, "Bye")
    assert some.told(["Hello", "Bye"])
    assert some.told(["Bye", None, ""])
    assert not some.told(["Hello", "you"])
    assert not texts()[0].told(["Hello"])
    assert texts()[0].told([])


def test_a_copy_that_another_part_of_its_item_told_is_that_parts():
    some, scribe = texts()
    some.pieces(0, 0).append("Hi")
    assert some.news(0, 1, "Hi") == ""
    assert mismatches(scribe) == 1
    assert some.news(0, 0, "Hi") == ""
    assert mismatches(scribe) == 1


def test_a_copy_that_no_other_part_told_is_told():
    some, _ = texts()
    some.pieces(0, 0).append("Hi")
    assert some.news(0, 1, "Ho") == "Ho"
    some.pieces(2, 0).append("Hi")
    some.pieces(2, 1).append("H")
    assert some.news(2, 1, "Hi") == "i"
    assert some.news(2, 0, "Hi") == ""


def test_text_that_was_told_in_another_part_of_the_item_is_not_told_again():
    some, scribe = texts()
    some.house(0)
    some.pieces(0, 0).append("Hel")
    some.pieces(0, 1).append("lo")
    assert some.news(0, 0, "Hello you") == " you"
    assert mismatches(scribe) == 1
    assert some.news(0, 1, "lo") == "lo"  # it counts once: here another part says it anew


def test_pieces_that_come_after_their_copy_in_another_order_are_not_told_again():
    some, _ = texts()
    assert some.news(0, 0, "one two three") == "one two three"
    assert [some.retold(0, 0, text) for text in ("two ", "three", "one ", "one ")] == [
        True, True, True, False,
    ]  # fmt: skip


def test_a_piece_without_text_takes_nothing_of_a_copy():
    some, _ = texts()
    assert some.news(0, 0, "one") == "one"
    assert not some.retold(0, 0, "")


def test_a_copy_is_searched_near_its_place_and_held_in_few_stretches():
    some, _ = texts()
    far = "x" * (NEAR + 1)
    assert some.news(0, 0, f"{far}end") == f"{far}end"
    assert not some.retold(0, 0, "end")
    words = [f"{n:02} " for n in range(3 * MOST_STRAYS)]
    assert some.news(1, 0, "".join(words)) == "".join(words)
    taken = [some.retold(1, 0, word) for word in words[1::2]]
    assert taken.count(True) == MOST_STRAYS - 1


# --- whole streams --------------------------------------------------------------------------------------

ANSWER = {"type": "message", "role": "assistant"}
TEXT = {"type": "output_text", "text": "Hello"}


def told(*payloads: Any) -> tuple[str, str]:
    """The text and the reasoning of a whole response."""
    begun = {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
    over = {
        "type": "response.completed",
        "response": {"id": "r", "status": "completed", "output": []},
    }
    pipe = Normalizer("openai_responses")
    events = pipe.feed(b"".join(map(sse, (begun, *payloads, over)))) + pipe.close()
    kinds = "text_delta", "reasoning_delta"
    text, thought = ("".join(e.text for e in events if e.kind == kind) for kind in kinds)
    return text, thought


def of(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, **fields}


def test_an_item_that_is_done_under_the_id_of_one_of_another_kind_is_that_of_its_place():
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    assert told(
        of("output_item.added", 0, item=thought), of("output_item.done", 0, item=thought),
        of("output_item.added", 1, item={**ANSWER, "id": "m", "content": []}),
        of("output_text.delta", 1, item_id="m", content_index=0, delta="Hello"),
        of("output_text.done", 1, item_id="rs", content_index=0, text="Hello"),
        of("output_item.done", 1, item={**ANSWER, "id": "rs", "content": [TEXT]}),
    ) == ("Hello", "")  # fmt: skip


def test_an_item_without_an_id_is_not_the_home_of_all_that_name_none():
    thought = {"type": "reasoning", "summary": []}
    assert told(
        of("output_item.done", 1, item={**ANSWER, "content": [TEXT]}),
        of("output_item.added", 0, item=thought),
        of("output_text.done", 1, content_index=0, text="Hello"),
        of("output_text.delta", 1, content_index=0, delta="Hello"),
    ) == ("Hello", "")  # fmt: skip


def test_a_part_that_does_not_say_what_it_is_is_of_the_kind_of_its_item():
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    assert told(
        of("output_item.added", 0, item=thought),
        of("reasoning_text.delta", 0, item_id="rs", content_index=0, delta="Hm"),
        of("content_part.done", 0, item_id="rs", content_index=0, part={"text": "Hm"}),
    ) == ("", "Hm")  # fmt: skip


def test_pieces_in_order_leave_no_stretches_behind_that_count():
    some, _ = texts()
    words = [f"{n:02} " for n in range(4 * MOST_STRAYS)]
    assert some.news(0, 0, "".join(words)) == "".join(words)
    assert all(some.retold(0, 0, word) for word in words[: 2 * MOST_STRAYS])
    assert some.retold(0, 0, words[-1])
    odd = words[2 * MOST_STRAYS + 1 :: 2]
    assert [some.retold(0, 0, word) for word in odd].count(False)  # so many stretches are there
    assert some.retold(0, 0, words[2 * MOST_STRAYS])  # what comes next is still known
