"""Who runs which tests: comes in what was collected, goes out a file after another to each worker.

A group is given to one worker as well. pytest-xdist's own way is test by test, and to look through all
that a worker has done for each test that it does: with twenty thousand of them the workers wait for it.
Here what the tests of a file share is made once, and what is done is forgotten.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadGroupScheduling


class FileByFile(LoadGroupScheduling):
    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return group if group != nodeid else nodeid.partition("::")[0]

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        work, scope = self.assigned_work[node], self._split_scope(nodeid)
        del work[scope][nodeid]
        if not work[scope]:
            del work[scope]
        self._reschedule(node)
