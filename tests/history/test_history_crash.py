"""kill -9 at every named moment and at random ones: nothing acknowledged is lost, nothing is half.

The processes are in ``tests/history/crash``. HYPOTHESIS_PROFILE=thorough kills and writes for longer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest

from streamnorm.encoding.mending import mend
from streamnorm.encoding.pairs import UNAVAILABLE
from streamnorm.history import SQLiteHistory
from tests.conftest import ROOT
from tests.history.stores import DSN, needs_postgres, postgres_schema

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
ALL = ["--all"] if THOROUGH else []
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def drive(command, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tests.history.crash.driver", command, *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_per_run_a_crash_at_any_moment_of_any_step_leaves_all_of_the_run_or_nothing(place):
    seen = drive("points", "--mode", "run", *place, *ALL)
    assert seen["cases"] == (33 if THOROUGH else 19)
    assert seen["runs"] == 1  # the one that died after it was stored
    assert seen["unresolved"] == 0


def test_per_call_a_crash_at_any_moment_of_any_step_leaves_what_the_service_has_seen(place):
    seen = drive("points", "--mode", "call", *place, *ALL)
    assert seen["cases"] == (63 if THOROUGH else 27)
    assert seen["unresolved"] > 0
    assert seen["settled"] > 0


def test_killed_at_random_nothing_acknowledged_is_lost_and_nothing_is_half(place):
    kills = 200 if THOROUGH else 40
    seen = drive("random", "--kills", kills, "--patience", 0.1, *place)
    assert seen["kills"] == kills
    assert seen["runs"] >= seen["acknowledged"] > 0


def test_eight_processes_write_one_store_without_gaps(place):
    seen = drive("writers", "--seconds", 30 if THOROUGH else 3, *place)
    assert len(seen["units"]) == 8
    assert all(count > 0 for count in seen["units"])
    assert seen["turns"] == 3 * sum(seen["units"])


@needs_postgres
def test_one_machine_dies_in_the_midst_and_another_goes_on():
    from streamnorm.history import PostgresHistory

    def machine(fate):
        return subprocess.Popen(
            [sys.executable, "-m", "tests.history.crash.machine", schema, fate],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    async def stored():
        async with PostgresHistory(str(DSN), schema=schema) as history:
            return await history.load("story")

    with postgres_schema() as schema:
        with machine("die") as first:
            assert first.stdout.readline() == "in the tool\n"
            first.kill()
        between = anyio.run(stored)
        assert [c.state for c in between.calls] == ["answered", "unresolved"]
        with machine("live") as second:
            assert second.communicate()[0] == "Both machines did it.\n"
        after = anyio.run(stored)
        assert after.turns[: len(between.turns)] == between.turns
        mended = mend(after.conversation)
        assert [r.text for t in mended.conversation.turns for r in t.results] == ["seen", UNAVAILABLE]  # fmt: skip


def test_a_log_that_a_crash_left_beside_the_file_is_read(tmp_path):
    drive("random", "--kills", 1, "--patience", 0, "--store", "sqlite", "--at", tmp_path / "h.db")

    async def look():
        async with SQLiteHistory(tmp_path / "h.db") as history:
            return (await history.settings())["quick_check"]

    assert anyio.run(look) == "ok"
