"""The same rows on other engines: a Ray cluster whose processes are killed, Daft, DuckDB."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamnorm import table
from streamnorm.table.parts import FILES
from tests.conftest import ROOT, take_paths
from tests.table.cluster_kill import ANSWER

LOST = "the process that read it failed"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Takes, and so many small files that they are several batches."""
    folder = tmp_path / "in"
    folder.mkdir()
    for path in take_paths():
        shutil.copy(path, folder / f"{path.parent.name}-{path.name}")
    for number in range(FILES - len(take_paths()) + 20):
        (folder / f"small-{number:04}.sse").write_bytes(ANSWER)
    return folder


def rows_of(folder: Path) -> pa.Table:
    return table.rows([(f"in/{path.name}", path.read_bytes()) for path in sorted(folder.iterdir())])


@pytest.mark.parts
def test_a_cluster_whose_processes_are_killed_loses_and_doubles_nothing(folder: Path):
    pytest.importorskip("ray", reason="ray is not installed")
    os.mkfifo(folder / "z-pipe.sse")
    done = subprocess.run(
        [sys.executable, "-m", "tests.table.cluster_kill", str(folder.parent)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    once, always = json.loads(done.stdout.splitlines()[-1])
    assert once == {"status": 0, "killed": 1}
    assert always["status"] == 0
    assert always["killed"] > 1
    (folder / "z-pipe.sse").unlink()
    (folder / "z-pipe.sse").write_bytes(ANSWER)
    whole = rows_of(folder)
    assert pq.read_table(folder.parent / "once.parquet").equals(whole)
    # The file over which every process died is a row that says so; all others are as they were.
    found = pq.read_table(folder.parent / "always.parquet")
    other = pa.compute.field("session") != "in/z-pipe.sse"
    assert found.filter(other).equals(whole.filter(other))
    (lost,) = found.filter(~other).to_pylist()
    assert (lost["outcome"], lost["detail"]) == ("unreadable", LOST)
