"""``streamnorm table``, from the outside: files in; one output with all their rows, whatever happens."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamnorm import table
from streamnorm.cli import main
from tests.conftest import Chat, take_paths

COMMAND = [sys.executable, "-m", "streamnorm.cli", "table"]
ONE = Chat.text("Hi") + Chat.call(0, "call_1", "look", '{"x":1}') + Chat.end()


@pytest.fixture
def takes(tmp_path) -> Path:
    """A folder of takes, and one file that holds no stream."""
    folder = tmp_path / "in"
    folder.mkdir()
    for path in take_paths()[::9]:
        shutil.copy(path, folder / f"{path.parent.name}-{path.name}")
    (folder / "bad.sse").write_bytes(b": streamnorm {oops\n")
    return folder


def rows_of(folder: Path) -> pa.Table:
    return table.rows(sorted(folder.iterdir()))


def made(*arguments: object) -> int:
    return main(["table", *map(str, arguments)])


# --- forms ----------------------------------------------------------------------------------------


def test_parquet_holds_all_kinds_in_the_order_of_the_files(takes, tmp_path, capsys):
    assert made(takes, "-o", tmp_path / "calls.parquet") == 0
    assert pq.read_table(tmp_path / "calls.parquet").equals(rows_of(takes))
    out = capsys.readouterr().out.splitlines()
    whole = rows_of(takes).filter(pa.compute.field("kind") == "call")["outcome"].to_pylist()
    files = len(list(takes.iterdir()))
    assert out[0].startswith(
        f"{tmp_path}/calls.parquet: {files} inputs, {files - 1} streams, {len(whole)} calls "
        f"({whole.count('whole')} whole, {whole.count('broken')} broken), "
    )
    assert out[1:] == [
        "unreadable: 1",
        f"  {takes}/bad.sse: has a header that is not JSON: `{{oops`. "
        'Write `: streamnorm {"provider":"..."}` in line 1, or remove that line.',
    ]


def test_one_core_and_several_give_the_same_rows(takes, tmp_path):
    for jobs in (1, 3):
        assert made(takes, "-o", tmp_path / f"{jobs}.arrow", "--jobs", jobs) == 0
    one, three = (pa.ipc.open_file(tmp_path / f"{jobs}.arrow").read_all() for jobs in (1, 3))
    assert one.equals(three)
    assert one.equals(rows_of(takes))


def test_json_lines_hold_the_columns_of_their_kind(takes, tmp_path):
    assert made(takes, "-o", tmp_path / "calls.jsonl") == 0
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_bytes().splitlines()]
    whole = rows_of(takes).to_pylist()
    assert len(lines) == len(whole)
    for line, row in zip(lines, whole, strict=True):
        names = {"kind", "session", *(column.name for column in table.COLUMNS[row["kind"]])}
        assert line == {name: value for name, value in row.items() if name in names}


def test_duckdb_has_a_table_for_each_kind(takes, tmp_path):
    assert made(takes, "-o", tmp_path / "calls.duckdb") == 0
    with duckdb.connect(str(tmp_path / "calls.duckdb"), read_only=True) as database:
        for kind in table.KINDS:
            found = database.table(f"{kind}s").to_arrow_table()
            assert found.to_pylist() == table.of_kind(rows_of(takes), kind).to_pylist()


def test_a_folder_has_a_file_for_each_kind(takes, tmp_path):
    assert made(takes, "-o", f"{tmp_path}/out/") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "calls.parquet", "notes.parquet", "results.parquet", "sessions.parquet"
    ]  # fmt: skip
    for kind in table.KINDS:
        found = pq.read_table(tmp_path / "out" / f"{kind}s.parquet")
        assert found.equals(table.of_kind(rows_of(takes), kind))


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv", "duckdb", "arrow"])
def test_one_kind_alone_is_written_with_its_own_columns(takes, tmp_path, form):
    out = tmp_path / f"calls.{form}"
    assert made(takes, "-o", out, "--kind", "call") == 0
    names = ["session", *(column.name for column in table.COLUMNS["call"])]
    with duckdb.connect() if form != "duckdb" else duckdb.connect(str(out)) as database:
        if form == "arrow":
            found = pa.ipc.open_file(out).read_all()
        elif form == "duckdb":
            found = database.table("calls").to_arrow_table()
        else:
            found = database.from_query(f"FROM '{out}'").to_arrow_table()
    assert found.column_names == names
    assert found.num_rows == table.of_kind(rows_of(takes), "call").num_rows


# --- CSV and spreadsheets -------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "＝1+1", "\n=1"]


def test_no_cell_of_csv_begins_like_a_formula_and_each_can_be_told_exactly(tmp_path):
    (tmp_path / "in").mkdir()
    for number, name in enumerate(FORMULAS):
        said = Chat.call(0, f"call_{number}", name, '{"a":"=1"}') + Chat.end()
        (tmp_path / "in" / f"{number}.sse").write_bytes(said)
    assert made(tmp_path / "in", "-o", tmp_path / "calls.csv", "--kind", "call") == 0
    assert made(tmp_path / "in", "-o", tmp_path / "calls.jsonl", "--kind", "call") == 0
    with open(tmp_path / "calls.csv", newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    exact = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_bytes().splitlines()]
    assert len(cells) == len(exact) == len(FORMULAS)
    for cell, row in zip(cells, exact, strict=True):
        assert cell["name"][0] not in "=+-@\t\r\n＝"
        assert cell["name"].removeprefix("'") == row["name"]
        assert cell["raw"] == row["raw"] == '{"a":"=1"}'


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_place_that_is_not_there_is_a_row_and_nothing_but_those_is_a_usage_error(
    takes, tmp_path, capsys
):
    assert made(takes, tmp_path / "none", tmp_path / "*.none", "-o", tmp_path / "a.parquet") == 0
    lost = pq.read_table(tmp_path / "a.parquet", filters=[("outcome", "=", "unreadable")])
    assert lost["session"].to_pylist()[1:] == [str(tmp_path / "none"), str(tmp_path / "*.none")]
    for _ in range(2):  # the second time it is there already
        assert made(tmp_path / "none", "-o", tmp_path / "b.parquet") == 2
    assert pq.read_table(tmp_path / "b.parquet")["detail"].to_pylist() == [
        "cannot be read: No such file or directory"
    ]


def test_more_than_ten_that_cannot_be_read_are_counted(tmp_path, capsys):
    places = [str(tmp_path / f"none{number}") for number in range(13)]
    assert made(*places, "-o", tmp_path / "a.parquet") == 2
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "unreadable: 13"
    assert len(out) == 13
    assert out[-1] == "  and 3 more: those whose outcome is unreadable"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-o", "calls.txt"], "cannot tell the form of calls.txt"),
        (["-o", "calls.csv", "--jobs", "0"], "--jobs is a number from 1"),
        (["-o", "calls.csv", "--provider", "typo"], "no provider 'typo'"),
        (["-o", "s3://bucket/calls.csv"], "s3://bucket/calls.csv is an address"),
        (["-o", "/dev/null/calls.csv"], "cannot write /dev/null/.calls.csv.parts"),
    ],
)
def test_what_is_asked_wrongly_is_told_at_once(
    takes, arguments, why, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert made(takes, *arguments) == 2
    assert why in capsys.readouterr().err


def test_names_that_could_harm_a_terminal_are_escaped(tmp_path, capsys):
    (tmp_path / "a\x1b[31m.sse").write_bytes(b": streamnorm {oops\n")
    made(tmp_path / "a\x1b[31m.sse", "-o", tmp_path / "a.parquet")
    assert "\x1b" not in "".join(capsys.readouterr())


# --- again ----------------------------------------------------------------------------------------


def test_an_output_that_is_made_from_the_same_files_is_left_alone(takes, tmp_path, capsys):
    out = tmp_path / "calls.parquet"
    assert made(takes, "-o", out) == 0
    before = out.stat()
    capsys.readouterr()
    assert made(takes, "-o", out) == 0
    assert "is made from these" in capsys.readouterr().out
    assert out.stat() == before
    assert made(takes, "-o", out, "--force") == 0
    assert out.stat().st_mtime_ns > before.st_mtime_ns


def test_files_that_changed_make_it_anew(takes, tmp_path, capsys):
    out = tmp_path / "calls.parquet"
    made(takes, "-o", out)
    (takes / "new.sse").write_bytes(ONE)
    assert made(takes, "-o", out) == 0
    assert pq.read_table(out).equals(rows_of(takes))
    os.utime(takes / "new.sse", ns=(1, 1))
    capsys.readouterr()
    made(takes, "-o", out)
    assert "inputs" in capsys.readouterr().out


def test_what_we_did_not_make_is_not_replaced(takes, tmp_path, capsys):
    out = tmp_path / "calls.csv"
    out.write_text("mine")
    assert made(takes, "-o", out) == 2
    assert out.read_text() == "mine"
    assert "replace it with --force" in capsys.readouterr().err
    assert made(takes, "-o", out, "--force") == 0
    out.write_text("changed")
    assert made(takes, "-o", out) == 2
    assert out.read_text() == "changed"


def test_nothing_but_the_output_and_what_it_was_made_from_is_left(takes, tmp_path):
    made(takes, "-o", tmp_path / "calls.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".calls.parquet.parts",
        "calls.parquet",
        "in",
    ]
    assert sorted(path.name for path in (tmp_path / ".calls.parquet.parts").iterdir()) == [
        "finished.json", "lock"
    ]  # fmt: skip


def test_a_run_reads_neither_its_own_output_nor_a_file_twice(takes, monkeypatch, capsys):
    monkeypatch.chdir(takes)
    assert made(".", "bad.sse", "./bad.sse", ".", "-o", "calls.parquet") == 0
    first = capsys.readouterr().out.splitlines()[0]
    files = len(list(takes.glob("*.sse")))
    assert first.startswith(f"calls.parquet: {files + 1} inputs")  # bad.sse is ./bad.sse as well
    assert made(".", "bad.sse", "-o", "calls.parquet") == 0
    assert "is made from these" in capsys.readouterr().out
    assert made(".", "-o", "out/") == 0
    assert made(".", "-o", "out/") == 0
    assert "is made from these" in capsys.readouterr().out


def test_what_else_is_in_a_folder_stays(takes, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    (tmp_path / "out" / "dangling").symlink_to("nowhere")
    assert made(takes, "-o", tmp_path / "out") == 0
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    (tmp_path / "out" / "calls.parquet").write_text("mine")
    assert made(takes, "-o", tmp_path / "out") == 2
    assert (tmp_path / "out" / "calls.parquet").read_text() == "mine"


def test_a_folder_with_one_kind_keeps_no_file_of_the_kinds_of_before(takes, tmp_path, capsys):
    for more in ([], ["--kind", "call"], ["--kind", "call"]):
        assert made(takes, "-o", f"{tmp_path}/out/", *more) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["calls.parquet"]
    assert "is made from these" in capsys.readouterr().out
