"""A few kills of each store; ``make prove`` does hundreds."""

from __future__ import annotations

import os

import pytest

from tests.conftest import ALL
from tests.kill import STORES, run, wants

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
KILLS = 40 if ALL else 6


@pytest.mark.parametrize("store", STORES)
def test_whoever_is_killed_at_any_moment_has_kept_what_was_acknowledged(store: str) -> None:
    if (name := wants(store)) is not None:
        pytest.skip(f"{name} names no server")
    heard: list[str] = []
    assert run(store, KILLS, heard.append) == []
    assert heard[-1].startswith(f"{store}: {KILLS} of {KILLS} kills, ")
    assert not heard[-1].endswith(" 0 acknowledged writes")


@pytest.mark.parametrize("store", ["sqlite", "nothing-log"])
def test_a_store_that_there_is_none_of_is_named(store: str) -> None:
    with pytest.raises(ValueError, match="none of sqlite-history, sqlite-log"):
        run(store, 1, print)
