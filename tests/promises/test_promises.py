"""Every promise has its tests, which are there, and the figures that documents cite are of these rows."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ALL, ROOT
from tests.promises import results
from tests.promises.rows import GROUPS, PROMISES, Promise
from tests.sabotage.rows import PATCHES
from tests.seeds.test_table import collected, functions

# How many promises each group has: none of them is taken back in silence.
COUNTED = {"A": 4, "B": 7, "C": 7, "D": 3, "E": 4, "F": 6, "G": 8, "H": 5, "I": 5, "J": 4}


def test_there_are_53_promises_each_with_its_number():
    ids = [f"{group}{number}" for group, count in COUNTED.items() for number in range(1, count + 1)]
    assert [promise.id for promise in PROMISES] == ids
    assert COUNTED.keys() == GROUPS.keys()


def test_every_test_of_a_promise_exists():
    nodes = {node for promise in PROMISES for node in promise.nodes}
    files = {node.partition("::")[0] for node in nodes}
    assert sorted(nodes - {name for file in files for name in functions(ROOT / file)}) == []


@pytest.mark.skipif(not ALL, reason="make test-all collects them")
def test_every_test_of_a_promise_is_collected():
    nodes = {node for promise in PROMISES for node in promise.nodes}
    found = {name.partition("[")[0] for name in collected({n.partition("::")[0] for n in nodes})}
    assert sorted(nodes - found) == []


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.id)
def test_a_promise_is_a_sentence_with_a_test(promise: Promise):
    assert re.fullmatch(r"[A-Z`].*\.", promise.says)
    assert promise.nodes


def test_every_figure_is_of_a_patch_that_is_there():
    assert results.read().get("sabotage", {}).keys() <= {patch.name for patch in PATCHES}
