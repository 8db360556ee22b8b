"""What the tests rely on themselves: who shares a worker, and what is made once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.conftest import once


@pytest.mark.xdist_group("house")
def test_tests_of_a_group_are_sent_to_one_worker(request: pytest.FixtureRequest) -> None:
    """They are shared out by their ids, to which pytest-xdist adds the group; a pytest in which it
    cannot would have each worker start the programs and browsers of every group."""
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@house")


class Worker:
    """What pytest-xdist sees of a worker."""

    shutting_down = False
    gateway = SimpleNamespace(id="worker")

    def __init__(self) -> None:
        self.sent: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Config:
    """What it asks of the configuration: two workers, and files in any order."""

    option = SimpleNamespace(loadscopereorder=True)

    def getvalue(self, name: str) -> list[str]:
        return ["2*popen"]


def test_every_test_is_sent_once_and_those_of_a_file_or_a_group_to_one_worker() -> None:
    pytest.importorskip("xdist")
    from tests.sharing import FileByFile

    tests = [f"{n % 7}.py::test_{n}[a@b]" for n in range(40)]
    tests += [f"{n}.py::test_grouped@group" for n in range(5)]
    workers, sharing = [Worker(), Worker()], FileByFile(Config())  # type: ignore[arg-type]
    for worker in workers:
        sharing.add_node(worker)  # type: ignore[arg-type]
        sharing.add_node_collection(worker, tests)  # type: ignore[arg-type]
    sharing.schedule()
    done = dict.fromkeys(workers, 0)
    while open_ones := [w for w in workers if done[w] < len(w.sent)]:
        for worker in open_ones:
            sharing.mark_test_complete(worker, worker.sent[done[worker]])
            done[worker] += 1

    assert sorted(workers[0].sent + workers[1].sent) == list(range(len(tests)))
    assert all(worker.sent and worker.shutting_down for worker in workers)
    assert sharing.tests_finished
    assert not sharing.has_pending
    homes = [
        {tests[at].partition("::")[0] for at in w.sent if "@group" not in tests[at]}
        for w in workers
    ]
    assert not homes[0] & homes[1]
    assert [sum("@group" in tests[at] for at in w.sent) for w in workers] in ([5, 0], [0, 5])


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
