"""streamnorm.text.balance: even for the first time is a yes, anything behind it a no for good."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.text.balance import Balance

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='{}[]"\\a '),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(alphabet='{}"\\b'), VALUES, max_size=4), st.integers(1, 7))
def test_an_object_in_pieces_is_even_at_its_last_character_and_not_before(value, size: int):
    text = json.dumps(value)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    balance = Balance()
    told = [balance.is_even(pieces[: n + 1]) for n in range(len(pieces))]
    assert told == [False] * (len(pieces) - 1) + [True]


@pytest.mark.parametrize("text", ["{}{}", "{} x", "[]", '"{}"', "x{}", "1", "}{"])
def test_what_is_no_single_object_is_never_even(text: str):
    assert not Balance().is_even([text])
    assert not Balance().is_even(list(text))


@pytest.mark.parametrize("text", [" {} ", "\n{}\t", '{"a\\"}": "\\\\"}'])
def test_space_around_it_and_escapes_within_it_do_not_matter(text: str):
    assert Balance().is_even([text])
    assert Balance().is_even(list(text))


@pytest.mark.parametrize(
    ("text", "whole"),
    [('{"a":1}', True), ("{}", True), ('{"a" 1}', False), ("{]}", False)],
)
def test_a_whole_object_is_even_and_can_be_read(text: str, whole: bool):
    balance, pieces = Balance(), list(text)
    assert not any(balance.is_whole(pieces[:n]) for n in range(len(pieces)))
    assert [balance.is_whole(pieces), balance.is_whole([*pieces, " "])] == [whole, whole]
    assert not balance.is_whole([*pieces, " ", "x"])


def test_an_empty_piece_changes_nothing():
    balance, pieces = Balance(), ['{"a\\', "", '"']
    assert not balance.is_even(pieces)
    assert balance.is_even([*pieces, '":1}', ""])


@pytest.mark.parametrize(
    ("text", "too_much"),
    [("{}", False), ("{} ", False), ('{"a":', False), ("x", False), ("", False), ("{}{}", True), ("{} x", True)],
)  # fmt: skip
def test_too_much_is_what_stands_behind_a_whole_object(text: str, too_much: bool):
    assert Balance().is_too_much(list(text)) is too_much
