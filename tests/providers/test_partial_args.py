"""Gemini tells a call value by value, and may state all of its arguments beside or after the values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import sse
from tests.providers.streams import fate, heard

A_IS_X = [{"jsonPath": "$.a", "stringValue": "x"}]
FINISHED = ("finish", "tool_calls")
DOUBTED = (["conflict"], ("finish", "stop"))


def part(**said: Any) -> bytes:
    return sse({"candidates": [{"content": {"parts": [{"functionCall": said}]}}]})


def told(*frames: bytes) -> Any:
    stop = sse({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})
    return fate(heard("gemini", b"".join((*frames, stop)))[0])


BEGUN = part(name="f", partialArgs=A_IS_X, willContinue=True)


@pytest.mark.parametrize("name", [{}, {"name": "f"}], ids=["nameless", "named"])
@pytest.mark.parametrize(
    "args",
    [{"a": "x"}, {"a": "xy"}, {"a": "x", "b": [1, {"c": None}]}],
    ids=["the same", "a longer string", "further values"],
)
def test_arguments_that_begin_with_the_values_are_the_call(name: dict[str, str], args: Any):
    assert told(BEGUN, part(**name, args=args)) == ([args], FINISHED)


@pytest.mark.parametrize(
    "args", [{"a": "y"}, {"b": "x"}, {"a": ["x"]}, {"a": 1}, {"a": {"x": "x"}}, {"a": ""}]
)
def test_arguments_that_contradict_the_values_break_the_call(args: Any):
    assert told(BEGUN, part(args=args)) == DOUBTED


def test_arguments_beside_the_values_are_the_call():
    assert told(part(name="f", partialArgs=A_IS_X, args={"a": "xz"})) == ([{"a": "xz"}], FINISHED)


def test_lists_and_numbers_that_were_told_are_compared_too():
    values = [
        {"jsonPath": "$.l[0]", "numberValue": 1},
        {"jsonPath": "$.l[1]", "boolValue": True},
    ]
    begun = part(name="f", partialArgs=values, willContinue=True)
    assert told(begun, part(args={"l": [1, True, 2]})) == ([{"l": [1, True, 2]}], FINISHED)
    for other in ([1], [2, True], [1, 1], [True, True], "1"):
        assert told(begun, part(args={"l": other})) == DOUBTED


def test_arguments_that_state_all_take_away_a_doubt():
    odd = part(partialArgs=[{"jsonPath": "$.b", "boolValue": "x"}], willContinue=True)
    assert told(BEGUN, odd, part())[0] == ["conflict"]
    assert told(BEGUN, odd, part(args={"a": "x", "b": True}))[0] == [{"a": "x", "b": True}]


def test_arguments_stated_before_the_call_ends_do_not_end_it():
    stated = part(args={"a": "xy"}, willContinue=True)
    assert told(BEGUN, stated) == (["truncated"], ("finish", "stop"))
    assert told(BEGUN, stated, part()) == ([{"a": "xy"}], FINISHED)
