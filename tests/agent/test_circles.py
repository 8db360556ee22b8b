"""The guard: equal calls, ping-pong, broken calls, volatile keys, policies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import BrokenToolCall, ToolCall
from streamnorm.agent.circles import LoopGuard
from streamnorm.errors import UsageError


def call(name, /, **arguments):
    return ToolCall(0, "c", name, arguments, "")


def patterns(guard, *calls):
    return [v and v.pattern for v in map(guard.heard, calls)]


def test_the_nth_equal_call_is_told_whatever_stands_between():
    guard = LoopGuard(equal=3, ping_pong=0)
    a, b = call("f", x=1), call("f", x=2)
    assert patterns(guard, a, b, a, b, a) == [None] * 4 + ["equal"]
    assert guard.count(a) == 3


def test_key_order_and_the_writing_of_numbers_do_not_matter():
    guard = LoopGuard(equal=2)
    assert guard.heard(ToolCall(0, "1", "f", {"a": 1, "b": {"c": 2.0}}, "")) is None
    assert guard.heard(ToolCall(0, "2", "f", {"b": {"c": 2}, "a": 1.0}, "")).pattern == "equal"


def test_volatile_keys_are_ignored_at_any_depth():
    guard = LoopGuard(equal=2, ignore={"timestamp"})
    assert guard.heard(call("f", q=[{"timestamp": 1, "x": 1}], timestamp=3)) is None
    assert guard.heard(call("f", q=[{"timestamp": 2, "x": 1}])).pattern == "equal"
    assert guard.heard(call("f", q=[{"timestamp": 2, "x": 2}])) is None


@pytest.mark.parametrize("period", [2, 3, 4])
def test_calls_in_turns_are_told(period):
    guard = LoopGuard(equal=0, ping_pong=3)
    cycle = [call(f"f{n}") for n in range(period)]
    assert patterns(guard, *cycle * 3)[-1] == "ping_pong"
    assert patterns(guard.fresh(), *cycle * 2) == [None] * period * 2


def test_the_same_call_again_and_again_is_no_ping_pong():
    guard = LoopGuard(equal=0, ping_pong=2)
    assert patterns(guard, *[call("f")] * 10) == [None] * 10


def test_broken_calls_count_by_tool():
    guard = LoopGuard(broken=2)
    broken = BrokenToolCall(0, "c", "f", '{"a', "truncated")
    assert guard.heard(broken) is None
    assert guard.heard(BrokenToolCall(0, "c", "g", "", "truncated")) is None
    verdict = guard.heard(BrokenToolCall(0, "d", "f", '{"b": ', "invalid_json"))
    assert (verdict.pattern, verdict.times) == ("broken", 2)


def test_a_tool_that_polls_has_a_limit_of_its_own():
    guard = LoopGuard(equal=2, limits={"status": 4})
    assert patterns(guard, *[call("status")] * 4) == [None, None, None, "equal"]


@pytest.mark.parametrize("policy", ["warn", "answer", "stop"])
def test_the_policy_is_the_users(policy):
    guard = LoopGuard(equal=1, policy=policy)
    assert guard.heard(call("f")).policy == policy


def test_an_unknown_policy_is_refused():
    with pytest.raises(UsageError, match="warn, answer, stop"):
        LoopGuard(policy="explode")


def test_a_fresh_guard_has_heard_nothing():
    guard = LoopGuard(equal=2)
    guard.heard(call("f"))
    assert guard.fresh().heard(call("f")) is None
    guard.reset()
    assert guard.heard(call("f")) is None


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(2, 4))
def test_equal_calls_are_told_exactly_when_they_are_that_often(names, most):
    guard, seen = LoopGuard(equal=most, ping_pong=0), {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        verdict = guard.heard(call(name))
        assert (verdict is not None) == (seen[name] >= most)
        assert verdict is None or verdict.times == seen[name]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"equal": "3"}, "equal is how often is too often, or 0 for never, not '3'"),
        ({"broken": -1}, "broken is how often"),
        ({"ping_pong": True}, "ping_pong is how often"),
        ({"limits": {"status": None}}, "status is how often"),
        ({"ignore": "timestamp"}, "ignore is a set of keys, such as {'timestamp'}, not a text"),
    ],
)
def test_settings_of_the_wrong_type_are_named(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        LoopGuard(**options)
