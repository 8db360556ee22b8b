"""Seed 003: who stores what and when, who keeps a conversation, with a kill at every moment.

The processes are in ``tests/history/crash/keeping.py``. Before each run the conversation has two
turns; the run has two calls of a tool and three answers of the service, each under a new name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

EVERY = ["--all"] if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else []
USER, ASKS, GIVES = "user", "assistant", "tool"
OLD = [USER, ASKS]
FIRST = [*OLD, USER, ASKS]
SECOND = [*FIRST, GIVES, ASKS]
ALL = [*SECOND, GIVES, ASKS]
WRITES = {"begun", "turn", "grown", "recorded", "committed"}
HANDING = {"begun", "forgotten", "recorded", "committed"}
HEARING = {"hearing", "running"}


def killed(place, **options):
    """What is left after a kill at each moment."""
    arguments = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.history.crash.keeping", *place, *arguments, *EVERY],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_left(cases, after, moments):
    """``after[n]`` is what is left after n acknowledged writes; and the next run goes on with it."""
    assert {case["moment"] for case in cases} == moments
    for case in cases:
        left = case["left"], case["left_id"]
        assert left == after[case["writes"]], case
        if not case["left"]:  # the service has it: it is sent what it has not seen
            assert (case["sent"], case["sent_id"]) == ([USER], case["left_id"]), case
        else:
            assert case["sent_id"] is None, case
            # Every call is answered before the user speaks again.
            told = [GIVES] if case["left"] in (FIRST, SECOND) else []
            assert case["sent"] == [*case["left"], *told, USER], case
    seen = {len(case["left"]) for case in cases}
    assert seen == {len(turns) for turns, _ in after}  # each state was met


# --- the table: whose stack it is, and when it is stored ------------------------------------------


@pytest.mark.parametrize("stack", ["ours", "own"])
def test_per_run_a_run_that_dies_leaves_nothing_and_one_that_ended_all(place, stack):
    cases = killed(place, stack=stack, persist="run")
    assert_left(cases, [(OLD, None), (ALL, None)], HEARING | WRITES)


@pytest.mark.parametrize("stack", ["ours", "own"])
def test_per_call_what_the_service_has_seen_is_there(place, stack):
    cases = killed(place, stack=stack, persist="call")
    states = [(OLD, None), (FIRST, None), (SECOND, None), (ALL, None)]
    assert_left(cases, states, HEARING | WRITES | {"journal", "journalled"})
    # What a tool gave is known from the moment it was kept.
    assert [c["journal"] for c in cases if c["moment"] == "journalled"] == [
        ["call_1_1"],
        ["call_1_2"],
    ]


def test_per_call_in_a_stack_that_does_not_persist_nothing_is_stored(place):
    assert_left(killed(place, stack="bare", persist="call"), [(OLD, None)], HEARING)


# --- conflict: the service keeps the conversation, too --------------------------------------------


@pytest.mark.parametrize("persist", ["run", "call"])
def test_raise_a_conflict_stores_nothing(place, persist):
    cases = killed(place, persist=persist, policy="raise")
    assert_left(cases, [(OLD, None)], {"hearing"})
    assert all(case["then"] == OLD and case["then_id"] is None for case in cases)


def test_warn_per_run_nothing_of_a_run_that_dies_remains_not_even_the_services_name(place):
    cases = killed(place, persist="run", policy="warn")
    assert_left(cases, [(OLD, None), (ALL, "resp_1_3")], HEARING | WRITES)
    # And the next run stores all that it has, as if the other had never been.
    assert all(case["then"] == [*case["left"], USER, ASKS] for case in cases)
    assert {case["then_id"] for case in cases} == {"resp_2_1"}


def test_warn_per_call_the_services_name_is_stored_with_each_answer(place):
    cases = killed(place, persist="call", policy="warn")
    states = [(OLD, None), (FIRST, "resp_1_1"), (SECOND, "resp_1_2"), (ALL, "resp_1_3")]
    assert_left(cases, states, HEARING | WRITES | {"journal", "journalled"})
    assert {case["then_id"] for case in cases} == {"resp_2_1"}


def test_clear_per_run_the_turns_are_there_until_the_run_has_ended_and_then_gone(place):
    cases = killed(place, persist="run", policy="clear")
    assert_left(cases, [(OLD, None), ([], "resp_1_3")], HEARING | HANDING)
    assert {(len(case["then"]), case["then_id"]) for case in cases} == {(0, "resp_2_1")}


def test_clear_per_call_the_services_name_is_updated_after_each_answer(place):
    cases = killed(place, persist="call", policy="clear")
    states = [(OLD, None), ([], "resp_1_1"), ([], "resp_1_2"), ([], "resp_1_3")]
    assert_left(cases, states, HEARING | HANDING)
    assert {case["left_id"] for case in cases} == {None, "resp_1_1", "resp_1_2", "resp_1_3"}
