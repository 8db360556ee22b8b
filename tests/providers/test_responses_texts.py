"""providers.openai_responses.texts: every text is told once, however often and wherever it is said."""

from __future__ import annotations

from streamnorm.notes import Scribe
from streamnorm.providers.openai_responses.texts import MOST_STRAYS, Texts


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
