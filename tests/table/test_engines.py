"""The same rows on other engines: a Ray cluster whose processes are killed, Daft, DuckDB."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamnorm import Normalizer, read_take, table
from streamnorm.cli import main
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


# --- the recipes of docs/scale.md and the questions of docs/tables.md, as they stand there ---------


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


RECIPES = {
    block.partition("\n")[0].removeprefix("# "): block for block in blocks("scale.md", "python")
}


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder called logs, and this one is the folder that it is in."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for path in take_paths()[::10]:
        shutil.copy(path, logs / f"{path.parent.name}-{path.name}")
    monkeypatch.chdir(tmp_path)
    return logs


def without_places(found: pa.Table) -> list[str]:
    """Rows in any order, without what engines call a file."""
    rows = found.drop_columns(["session", "input"]).to_pylist()
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_the_recipes_are_all_tested():
    assert set(RECIPES) == {"ray", "daft", "spark", "live"}


@pytest.mark.parts
def test_daft_makes_the_same_rows(logs: Path):
    pytest.importorskip("daft", reason="daft is not installed")
    done = subprocess.run(
        [sys.executable, "-c", RECIPES["daft"]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert without_places(pq.read_table("tables")) == without_places(
        table.rows(sorted(logs.iterdir()))
    )


def on_cluster(folder: Path, *recipes: str) -> str:
    """What is said when that was tried on a cluster of its own, each of which takes long to begin."""
    pytest.importorskip("ray", reason="ray is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.table.cluster_kill", str(folder), *recipes],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parts
def test_a_cluster_whose_processes_are_killed_loses_and_doubles_nothing(folder: Path):
    os.mkfifo(folder.parent / "z-pipe.sse")
    once, always = json.loads(on_cluster(folder.parent).splitlines()[-1])
    assert once == {"status": 0, "killed": 1}
    assert always["status"] == 0
    assert always["killed"] > 1
    whole = pa.concat_tables([rows_of(folder), table.rows([("z-pipe.sse", ANSWER)])])
    assert pq.read_table(folder.parent / "once.parquet").equals(whole)
    # The file over which every process died is a row that says so; all others are as they were.
    found = pq.read_table(folder.parent / "always.parquet")
    other = pa.compute.field("session") != "z-pipe.sse"
    assert found.filter(other).equals(whole.filter(other))
    (lost,) = found.filter(~other).to_pylist()
    assert (lost["outcome"], lost["detail"]) == ("unreadable", LOST)


@pytest.mark.parts
def test_ray_and_daft_on_ray_make_the_same_rows(logs: Path):
    recipes = {"ray": RECIPES["ray"]}
    if importlib.util.find_spec("daft"):
        recipes["daft"] = "import daft\n\ndaft.set_runner_ray()\n" + RECIPES["daft"]
    for name, recipe in recipes.items():
        (logs.parent / f"recipe_{name}.py").write_text(recipe)
    on_cluster(logs.parent, *recipes)
    for name in recipes:
        made = pq.read_table(f"tables-{name}")
        assert without_places(made) == without_places(table.rows(sorted(logs.iterdir())))


def test_the_function_for_spark_makes_batches_of_batches(logs: Path):
    names: dict = {}
    exec(RECIPES["spark"], names)
    files = sorted(logs.iterdir())
    batches = [
        pa.record_batch({
            "path": [str(path)], "modificationTime": pa.array([0], pa.timestamp("us")),
            "length": [path.stat().st_size], "content": [path.read_bytes()]})
        for path in files
    ]  # fmt: skip
    found = pa.Table.from_batches(names["rows_of"](iter(batches)))
    assert found.equals(table.rows(files))


def test_a_consumer_of_messages_hears_sessions_that_are_mixed(logs: Path):
    names: dict = {}
    exec(RECIPES["live"], names)
    bodies = {path.name: read_take(path).wire for path in sorted(logs.iterdir())[:5]}
    heard: dict[str, list] = {name: [] for name in bodies}
    for at in range(0, max(map(len, bodies.values())), 500):
        for name, body in bodies.items():
            if body[at : at + 500]:
                heard[name] += names["hear"](name, body[at : at + 500])
    for name, body in bodies.items():
        heard[name] += names["hear"](name, None)
        pipe = Normalizer(seed=name)
        assert heard[name] == pipe.feed(body) + pipe.close()
    assert names["open_sessions"] == {}


def test_the_questions_have_answers(logs: Path):
    (logs / "bad.sse").write_bytes(b": streamnorm {oops\n")
    assert main(["table", "logs", "-o", "calls.parquet"]) == 0
    questions = blocks("tables.md", "sql")
    assert len(questions) == 5
    with duckdb.connect() as database:
        for question in questions:
            assert database.execute(question).fetchall(), question


@pytest.mark.parametrize("snippet", blocks("tables.md", "python"))
def test_the_snippets_run(logs: Path, snippet: str, capsys: pytest.CaptureFixture[str]):
    library = snippet.split()[1]
    if library in ("pandas", "polars"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    assert main(["table", "logs", "-o", "calls.parquet"]) == 0
    capsys.readouterr()
    exec(snippet, {})
    assert capsys.readouterr().out
