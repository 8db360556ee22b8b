"""streamnorm.core.copies: whether a call that is said once more says the same."""

from __future__ import annotations

import pytest

from streamnorm.core.copies import Copy, begins_with, begun_by
from streamnorm.limits import Limits


@pytest.mark.parametrize(
    ("text", "long"),
    [("abcd", 4), ("abcde", 4), ("abc", -1), ("ab", -1), ("", -1), ("xbcd", -1), ("abxd", -1)],
)
def test_a_text_begins_with_pieces_that_it_says_one_after_another(text: str, long: int):
    assert begun_by(text, ["ab", "cd"]) == long


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "abcd"])
def test_a_text_is_how_pieces_begin_wherever_it_ends(text: str):
    assert begins_with(["ab", "cd"], text)


@pytest.mark.parametrize("text", ["b", "x", "ax", "abx", "abd", "abcx", "abcde"])
def test_a_text_that_says_another_thing_or_more_is_not_how_pieces_begin(text: str):
    assert not begins_with(["ab", "cd"], text)


def test_no_pieces_begin_only_as_no_text():
    assert (begun_by("a", []), begins_with([], ""), begins_with([], "a")) == (0, True, False)


@pytest.mark.parametrize("told", ["", '{"a":', "null"])
def test_a_copy_is_not_of_a_call_whose_text_is_no_object_or_another(told: str):
    copy = Copy(Limits(), "f")
    copy.hear('{"a":1}')
    assert not copy.is_one_of([("f", told)])
    assert copy.is_one_of([("f", told), ("f", '{"a": 1}')])
