"""Ids on another wire: legal, deterministic, injective; on their own wire: as they came."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Provenance, ToolCall
from streamnorm.encoding.ids import Grammar, Ids
from streamnorm.wire import provider

PATTERNS = {
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "openai_chat": r".{1,40}",
    "openai_responses": r".{1,64}",
    "azure_foundry": r".{1,64}",
    "mistral": r"[a-zA-Z0-9]{9}",
    "mistral_conversations": r"[a-zA-Z0-9]{9}",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
    "cohere": r".+",
    "dashscope": r".{1,40}",
}


def call(id: str, source: str = "natural", wire: str = "elsewhere", ordinal: int = 0) -> ToolCall:
    origin = Provenance(source, id, "id", "stated", wire)  # type: ignore[arg-type]
    return ToolCall(ordinal, id, "f", {}, "{}", provenance=origin)


def ids(wire: str) -> Ids:
    return Ids(wire, provider(wire)._encoder.grammar)


@pytest.mark.parametrize("wire", PATTERNS)
@given(names=st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=8))
def test_foreign_ids_become_legal_and_stay_apart(wire, names):
    assigned = ids(wire).assign([call(name, ordinal=i) for i, name in enumerate(names)])
    assert len(set(assigned)) == len(names)
    assert all(re.fullmatch(PATTERNS[wire], id or "") for id in assigned)
    assert assigned == ids(wire).assign([call(name, ordinal=i) for i, name in enumerate(names)])


@pytest.mark.parametrize("wire", PATTERNS)
@given(id=st.text(min_size=1, max_size=90))
def test_own_ids_go_back_as_they_came(wire, id):
    assert ids(wire).assign([call(id, wire=wire)]) == [id]


def test_an_id_that_fits_is_kept():
    assert ids("anthropic").assign([call("call_abc")]) == ["call_abc"]


@pytest.mark.parametrize(
    ("wire", "id", "made"),
    [
        ("mistral", "toolu_01A", "pbhZN6veq"),
        ("anthropic", "a b", "toolu_VWHH8z3SKw6DZwShithPcd"),
        ("anthropic", "a\ud83d", "toolu_30W2da8RnxV4JDAdi6RU2K"),
    ],
)
def test_a_rewritten_id_is_the_same_one_as_ever(wire: str, id: str, made: str):
    """A history that was sent before is sent with the same ids again, by any version."""
    assert ids(wire).assign([call(id)]) == [made]


def test_an_id_used_again_in_another_turn_is_made_unique():
    given_out = ids("anthropic")
    first, second = given_out.assign([call("x")]), given_out.assign([call("x")])
    assert first == ["x"]
    assert second != first


def test_a_server_that_numbers_anew_in_each_turn_gets_its_own_numbers_back():
    given_out = ids("openai_chat")
    turn = [call("functions.x:0", wire="openai_chat"), call("functions.y:1", wire="openai_chat")]
    assert given_out.assign(turn) == given_out.assign(turn) == ["functions.x:0", "functions.y:1"]


def test_the_same_numbers_for_another_server_are_made_unique():
    given_out = ids("openai_responses")
    turn = [call("functions.x:0", wire="openai_chat")]
    assert given_out.assign(turn) == ["functions.x:0"]
    assert given_out.assign(turn) != ["functions.x:0"]


@pytest.mark.parametrize("wire", ["gemini", "ollama"])
def test_a_minted_id_is_left_out_where_none_is_needed(wire):
    assert ids(wire).assign([call("syn_1", "synthetic"), call("c")]) == [None, "c"]


def test_a_minted_id_is_kept_where_one_is_needed():
    assert ids("openai_chat").assign([call("syn_1", "synthetic", "openai_chat")]) == ["syn_1"]


def test_two_equal_ids_of_one_turn_are_told_apart():
    a, b = ids("openai_chat").assign([call("x"), call("x", ordinal=1)])
    assert a != b


def test_an_id_that_happens_to_be_a_rewritten_one_is_not_taken_twice():
    grammar = Grammar("[a-z]{1,4}", ("", 2))
    given_out = Ids("here", grammar)
    first = given_out.assign([call("TOO LONG")])[0]
    assert first is not None
    assert given_out.assign([call(first)]) != [first]


TINY = Grammar("[0-9a-zA-Z]", ("", 1))  # ids of one letter: rewritten ones collide soon


@pytest.mark.parametrize("within", ["turn", "request"])
def test_an_own_id_that_stands_twice_in_one_turn_is_given_out_once(within: str):
    grammar = Grammar("[a-z]+", within=within)  # type: ignore[arg-type]
    first, second = Ids("here", grammar).assign([call("x", wire="here"), call("x", wire="here")])
    assert first == "x" != second


def test_an_own_id_that_another_turn_used_goes_back_only_where_ids_reach_one_turn():
    given_out = [Ids("here", Grammar("[a-z]+", within=w)) for w in ("turn", "request")]
    turns = [[ids.assign([call("x", wire="here")])[0] for _ in range(2)] for ids in given_out]
    assert turns[0] == ["x", "x"]
    assert turns[1][0] == "x" != turns[1][1]


def test_an_id_that_was_minted_here_is_no_own_id_of_the_wire():
    (assigned,) = Ids("here", TINY).assign([call("syn_0", "synthetic", "here")])
    assert re.fullmatch("[0-9a-zA-Z]", assigned or "")


def test_rewritten_ids_stay_apart_in_one_turn_and_between_turns():
    names = [f"foreign {i}" for i in range(40)]
    at_once = Ids("here", TINY).assign([call(name) for name in names])
    assert len(set(at_once)) == 40
    given_out = Ids("here", TINY)
    one_by_one = [given_out.assign([call(name)])[0] for name in names]
    assert len(set(one_by_one)) == 40


def test_an_id_is_spelled_as_a_wire_spells_its_own_however_long_it_is():
    grammar = Grammar("[a-z]{1,3}")
    spelled = [grammar.spells(id) for id in ("abc", "abcdef", "a:b", "A", "")]
    assert spelled == [True, True, False, False, False]
