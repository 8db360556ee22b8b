"""What the tests rely on themselves: who shares a worker, and what is made once."""

from __future__ import annotations

import pytest

from tests.conftest import once


@pytest.mark.xdist_group("house")
def test_tests_of_a_group_are_sent_to_one_worker(request: pytest.FixtureRequest) -> None:
    """They are shared out by their ids, to which pytest-xdist adds the group; a pytest in which it
    cannot would have each worker start the programs and browsers of every group."""
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@house")


def test_what_is_made_once_is_made_once_for_each_of_its_arguments() -> None:
    made: list[int] = []

    @once
    def square(number: int) -> int:
        made.append(number)
        return number * number

    assert [square(3), square(4), square(3)] == [9, 16, 9]
    assert made == [3, 4]


def test_what_failed_is_not_tried_again() -> None:
    tried: list[int] = []

    @once
    def broken(number: int) -> int:
        tried.append(number)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        broken(3)
    with pytest.raises(pytest.fail.Exception, match="failed for the first test"):
        broken(3)
    assert tried == [3]
