"""``streamnorm report`` from the outside: files in; a page, what is said and an exit code out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamnorm.cli import main
from streamnorm.table.columns import COLUMNS
from streamnorm.text.written import json_bytes
from tests.conftest import RECORDINGS, ROOT
from tests.report.rows import broken, call, note, session

TAKE = RECORDINGS / "anthropic" / "parallel_calls.sse"
CUT = RECORDINGS / "anthropic" / "cut_in_arguments.sse"


def test_a_page_is_written_and_a_sentence_says_what_is_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.html"
    assert main(["report", str(TAKE), str(CUT), "-o", str(out), "--title", "Two <b>"]) == 0
    said = capsys.readouterr()
    assert (
        said.out
        == f"{out}: 2 streams from 1 provider; 3 calls, 1 broken; 1 server did something odd.\n"
    )
    assert said.err == ""
    page = out.read_text()
    assert '<h1 id="title">Two &lt;b&gt;</h1>' in page
    assert str(CUT) in page
    assert oct(out.stat().st_mode & 0o777) == oct(0o666 & ~current_umask())
    assert os.listdir(tmp_path) == ["r.html"]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_page_can_go_to_stdout() -> None:
    command = [sys.executable, "-m", "streamnorm", "report", str(TAKE), "-o", "-"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"<!doctype html>")
    assert done.stdout.endswith(b"</html>\n")


def test_what_cannot_be_read_is_told_and_is_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.html"
    missing = tmp_path / "not there\x1b(B.sse"
    assert main(["report", str(TAKE), str(missing), "nothing/*.sse", "-o", str(out)]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "streamnorm: 2 could not be read:"
    assert "  nothing/*.sse: is a pattern that no file fits" in told
    assert any("not there\\x1b(B.sse: No such file or directory" in line for line in told)
    page = out.read_text()
    assert "is a pattern that no file fits" in page
    assert "No such file or directory" in page


def test_without_any_file_there_is_nothing_to_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.html"
    assert main(["report", "nothing/*.sse", "-o", str(out)]) == 2
    assert (
        "there is nothing to read: nothing/*.sse is a pattern that no file fits"
        in capsys.readouterr().err
    )
    assert not out.exists()


def test_a_file_that_is_no_report_is_not_replaced_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "thesis.html"
    out.write_text("<p>years of work")
    assert main(["report", str(TAKE), "-o", str(out)]) == 2
    assert (
        "is there and is no report: choose another name, or replace it with --force"
        in capsys.readouterr().err
    )
    assert out.read_text() == "<p>years of work"
    assert main(["report", str(TAKE), "-o", str(out), "--force"]) == 0
    first = out.read_text()
    assert main(["report", str(CUT), "-o", str(out)]) == 0
    assert out.read_text() != first


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-o", "no/such/folder/r.html"], "there is no folder no/such/folder"),
        (["-o", "."], "is no file that can be replaced; say a file: -o report.html"),
        (["--provider", "acme", "-o", "-"], "acme"),
        (["--open", "-o", "-"], "--open needs a file: leave out -o -"),
    ],
)
def test_usage_errors_say_what_to_do(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(TAKE), *options]) == 2
    assert sentence in capsys.readouterr().err


def test_a_file_is_read_once_and_the_report_itself_never(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "takes"
    folder.mkdir()
    (folder / "a.sse").write_bytes(TAKE.read_bytes())
    out = folder / "r.html"
    for _ in range(2):
        assert main(["report", str(folder), str(folder / "*.sse"), "-o", str(out)]) == 0
        assert capsys.readouterr().out.startswith(f"{out}: 1 stream from 1 provider;")


def test_the_page_is_opened_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    out = tmp_path / "with space.html"
    assert main(["report", str(TAKE), "-o", str(out), "--open"]) == 0
    assert opened == [out.as_uri()]


# --- tables ---------------------------------------------------------------------------------------

ROWS = [
    session("a.sse"), call("a.sse"), broken("a.sse"),
    session("b.sse", provider="gemini"), note("b.sse", "wire.gap"),
]  # fmt: skip


def test_a_finished_table_is_not_read_as_streams(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "calls.jsonl"
    table.write_bytes(b"".join(json_bytes(row) + b"\n" for row in ROWS))
    assert main(["report", str(table), "-o", str(tmp_path / "r.html")]) == 0
    assert "2 streams from 2 providers; 2 calls, 1 broken; 2 servers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [(b"{half a row\n", "line 6: not a row of a table"), (b"[1]\n", "line 6: not a row of a table, but list")],
)  # fmt: skip
def test_a_table_that_is_damaged_is_told_and_the_rest_is_on_the_page(
    line: bytes, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "calls.jsonl"
    table.write_bytes(b"".join(json_bytes(row) + b"\n" for row in ROWS) + line)
    assert main(["report", str(table), str(TAKE), "-o", str(tmp_path / "r.html")]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{tmp_path}/r.html: 3 streams from ")
    assert "streamnorm: 1 could not be read:" in captured.err
    assert sentence in captured.err
    assert sentence in (tmp_path / "r.html").read_text()


def test_rows_that_stand_apart_are_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "calls.jsonl"
    rows = [*ROWS, {"kind": "call", "session": "z"}]
    table.write_bytes(b"".join(json_bytes(row) + b"\n" for row in rows))
    assert main(["report", str(table), "-o", str(tmp_path / "r.html")]) == 2
    assert "a row of z stands apart from the row of its session" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables_of_columns_are_read_batch_by_batch(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa = pytest.importorskip("pyarrow", reason="tables of columns need pyarrow")
    import pyarrow.parquet as pq

    names = sorted({name for row in ROWS for name in row})
    table = pa.table({name: [row.get(name) for row in ROWS] for name in names})
    file = tmp_path / f"calls.{form}"
    if form == "parquet":
        pq.write_table(table, file)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert main(["report", str(file), "-o", str(tmp_path / "r.html")]) == 0
    assert "2 streams from 2 providers; 2 calls, 1 broken; 2 servers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"PAR1 and no more", "cannot be read as a table"), (b"ARROW1\0\0 and no more", "cannot be read as a table"),
     (b"\0" * 8 + b"DUCK" + b"\0" * 9, "is a database: make a .parquet")],
)  # fmt: skip
def test_tables_that_are_none_are_on_the_page_with_the_reason(
    content: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", reason="tables of columns need pyarrow")
    file = tmp_path / "calls.table"
    file.write_bytes(content)
    assert main(["report", str(file), str(TAKE), "-o", str(tmp_path / "r.html")]) == 0
    assert why in capsys.readouterr().err
    assert why in (tmp_path / "r.html").read_text()


def test_the_help_has_examples_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--help"]) == 0
    said = capsys.readouterr().out
    assert "streamnorm report recordings" in said
    assert "exit codes: 0 written" in said


def test_a_table_of_one_kind_of_rows_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "calls.jsonl"
    row = {"session": "a", **{column.name: None for column in COLUMNS["call"]}}
    table.write_bytes(json_bytes(row) + b"\n")
    assert main(["report", str(table), "-o", str(tmp_path / "r.html")]) == 0
    assert "holds rows of one kind alone: make a table of all kinds" in capsys.readouterr().err


def test_a_pipe_is_no_file_that_can_be_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["report", str(TAKE), "-o", str(tmp_path / "pipe"), "--force"]) == 2
    assert "is no file that can be replaced" in capsys.readouterr().err


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "latest.html", tmp_path / "today.html"
    link.symlink_to(target)
    assert main(["report", str(TAKE), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert target.read_text().startswith("<!doctype html>")


def test_secrets_of_an_address_are_not_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fsspec", reason="addresses need fsspec")
    out = tmp_path / "r.html"
    place = "memory://user:hunter2pass@logs/none.sse?token=s3cr3tvalue"
    assert main(["report", str(TAKE), place, "-o", str(out)]) == 0
    said = capsys.readouterr()
    for secret in ("hunter2pass", "s3cr3tvalue"):
        assert secret not in out.read_text() + said.out + said.err


def test_events_of_ours_beside_takes_are_passed_over_and_what_is_no_stream_adds_to_no_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "takes"
    folder.mkdir()
    (folder / "a.sse").write_bytes(TAKE.read_bytes())
    (folder / "a.events.jsonl").write_text('{"kind":"stream_start","provider":"x"}\n')
    (folder / "b.html").write_text("<html>" + "no" * 500_000)
    out = tmp_path / "r.html"
    assert main(["report", str(folder), "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert "1 stream from 1 provider" in captured.out
    assert "1 file could not be read." in captured.out
    assert captured.err.startswith(
        "streamnorm: 1 file with events of streamnorm, which are no streams: passed over.\n"
    )
    page = out.read_text()
    assert "1 file with events of streamnorm, which are no streams" in page
    assert " MB, " not in page


def test_what_is_no_stream_has_no_date_that_is_missing() -> None:
    from streamnorm.report.tally import NO_DATE, Tally
    from streamnorm.table.records import unreadable

    tally = Tally()
    for row in (
        session("a.sse", captured="2026-11-19T08:30:00Z"),
        unreadable("b", "b", "is empty."),
    ):
        tally.add(row)
    assert tally.summary().of(when=NO_DATE).streams == 0
