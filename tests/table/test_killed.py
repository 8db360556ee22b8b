"""Runs that are killed, interrupted or short of memory: nothing is lost, and nothing is done twice.

A named pipe, named after the folder, is where a run waits until the test has done its worst: whoever opens the
other end knows that it is being read.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from streamnorm import table
from streamnorm.cli import main
from streamnorm.table.parts import FILES
from tests.conftest import ROOT, Chat

COMMAND = [
    sys.executable,
    "-m",
    "streamnorm.cli",
    "table",
    "in",
    "last.sse",
    "-o",
    "calls.parquet",
    "--jobs",
    "1",
]
ONE = Chat.text("Hi") + Chat.call(0, "call_1", "look", '{"x":1}') + Chat.end()
OTHER = Chat.text("Ho") + Chat.call(0, "call_2", "look", '{"x":1}') + Chat.end()
GIB = 1 << 30
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")


@pytest.fixture
def folder(tmp_path) -> Path:
    """As many files as one batch holds, and a named pipe behind them, which is in the next."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:04}.sse").write_bytes(ONE)
    os.mkfifo(tmp_path / "last.sse")
    return folder


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    run = subprocess.Popen(
        COMMAND, cwd=folder.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield run
    finally:
        run.kill()
        run.communicate()


def waited_for(folder: Path) -> int:
    """The pipe's other end, once somebody reads it."""
    return os.open(folder.parent / "last.sse", os.O_WRONLY)


def worker_of(run: subprocess.Popen[str]) -> int:
    """The process that reads for a run."""
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    (worker,) = [
        pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return int(worker)


def gone(pid: int) -> None:
    """Until a process has ended."""
    process = os.pidfd_open(pid)
    assert select.select([process], [], [], 60)[0] == [process]
    os.close(process)


def kill_worker(run: subprocess.Popen[str]) -> None:
    worker = worker_of(run)
    os.kill(worker, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it was buried already
        gone(worker)


def no_pipe(folder: Path) -> None:
    (folder.parent / "last.sse").unlink()
    (folder.parent / "last.sse").write_bytes(ONE)


def again(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(COMMAND, cwd=folder.parent, capture_output=True, text=True, check=False)


def expected(folder: Path, *others: tuple[str, bytes]) -> list[dict]:
    files = [(f"in/{path.name}", path.read_bytes()) for path in sorted(folder.iterdir())]
    last = folder.parent / "last.sse"
    files += [(last.name, last.read_bytes())] if last.is_file() else []
    return table.rows([*files, *others]).to_pylist()


def made(folder: Path) -> list[dict]:
    return pq.read_table(folder.parent / "calls.parquet").to_pylist()


def kill(run: subprocess.Popen[str]) -> None:
    run.kill()
    run.wait()


def interrupt(run: subprocess.Popen[str]) -> None:
    run.send_signal(signal.SIGINT)
    _, said = run.communicate()
    assert run.returncode == 130
    assert said == "interrupted: 1,024 of 1,025 files are done. The same command goes on there.\n"


@pytest.mark.parametrize("stop", [kill, interrupt])
def test_a_run_that_was_stopped_goes_on_and_reads_no_file_twice(
    folder: Path, stop: Callable[[subprocess.Popen[str]], None]
):
    with running(folder) as run:
        end = waited_for(folder)
        stop(run)
        os.close(end)
    assert not (folder.parent / "calls.parquet").exists()
    no_pipe(folder)
    whole = expected(folder)
    for path in folder.iterdir():  # whoever reads these again will tell another call
        before = path.stat()
        path.write_bytes(OTHER)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    done = again(folder)
    assert (done.returncode, done.stderr) == (
        0, "streamnorm: 1,024 of 1,025 files were done by an earlier run\n"
    )  # fmt: skip
    assert made(folder) == whole


def test_of_files_that_changed_meanwhile_nothing_old_is_kept(folder: Path):
    with running(folder) as run:
        end = waited_for(folder)
        kill(run)
        os.close(end)
    no_pipe(folder)
    (folder / "0007.sse").write_bytes(OTHER)
    done = again(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert made(folder) == expected(folder)


def test_a_part_that_a_power_cut_left_damaged_is_made_anew(folder: Path):
    with running(folder) as run:
        end = waited_for(folder)
        kill(run)
        os.close(end)
    no_pipe(folder)
    (part,) = (folder.parent / ".calls.parquet.parts").glob("*.arrow")
    part.write_bytes(part.read_bytes()[:1000])
    done = again(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert made(folder) == expected(folder)


def test_files_over_which_a_process_was_killed_are_read_again(folder: Path):
    with running(folder) as run:
        end = waited_for(folder)
        kill_worker(run)
        os.close(end)
        end = waited_for(folder)
        os.write(end, ONE)
        os.close(end)
        _, said = run.communicate()
    assert run.returncode == 0
    assert (
        said == "streamnorm: a process was killed (SIGKILL); its file is read again, one by one\n"
    )
    assert made(folder) == expected(folder, ("last.sse", ONE))


def test_a_file_that_kills_twice_is_a_row_and_the_others_are_all_there(folder: Path):
    (folder / "more.sse").write_bytes(OTHER)
    with running(folder) as run:
        for _ in range(2):
            end = waited_for(folder)
            kill_worker(run)
            os.close(end)
        said = run.communicate()
    assert run.returncode == 0
    assert said[1] == (
        "streamnorm: a process was killed (SIGKILL); its 2 files are read again, one by one\n"
        "streamnorm: a process was killed (SIGKILL) again, over last.sse, which is left out\n"
    )
    assert said[0].splitlines()[1:] == [
        "unreadable: 1", "  last.sse: the process that read it was killed (SIGKILL)"
    ]  # fmt: skip
    rows = made(folder)
    assert [row["session"] for row in rows if row["kind"] == "session"] == [
        *(f"in/{number:04}.sse" for number in range(FILES)), "in/more.sse", "last.sse"
    ]  # fmt: skip
    assert [row for row in rows if row["session"] != "last.sse"] == expected(folder)


def test_a_file_for_which_memory_is_short_is_a_row(tmp_path: Path):
    (tmp_path / "in").mkdir()
    for name in ("in/a.sse", "last.sse"):
        (tmp_path / name).write_bytes(ONE)
    with open(tmp_path / "in" / "huge.sse", "wb") as huge:
        huge.truncate(16 * GIB)  # of which nothing is written

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))

    done = subprocess.run(
        COMMAND, cwd=tmp_path, capture_output=True, text=True, check=False, preexec_fn=little
    )
    assert done.returncode == 0
    assert (
        "unreadable: 1\n  in/huge.sse: the process that read it ran out of memory\n" in done.stdout
    )
    sessions = [row for row in made(tmp_path / "in") if row["kind"] == "session"]
    assert [(row["session"], row["outcome"]) for row in sessions] == [
        ("in/a.sse", "finish"), ("in/huge.sse", "unreadable"), ("last.sse", "finish")
    ]  # fmt: skip


def test_no_process_outlives_a_run_that_was_killed(folder: Path):
    with running(folder) as run:
        end = waited_for(folder)
        worker = worker_of(run)
        process = os.pidfd_open(worker)
        kill(run)
        assert select.select([process], [], [], 60)[0] == [process]  # although it waits for a file
        os.close(process)
        os.close(end)


def test_two_runs_do_not_write_the_same_output(folder: Path):
    with running(folder) as run:
        end = waited_for(folder)
        done = again(folder)
        os.close(end)
        run.communicate()
    assert done.returncode == 2
    assert "another run is writing .calls.parquet.parts" in done.stderr


def test_a_process_that_reads_never_hears_of_ctrl_c_from_its_first_moment_on(folder: Path):
    with running(folder) as run:
        end = waited_for(folder)
        told = Path(f"/proc/{worker_of(run)}/status").read_text()
        os.close(end)
        run.communicate()
    (blocked,) = [line.split()[1] for line in told.splitlines() if line.startswith("SigBlk")]
    assert int(blocked, 16) & 1 << signal.SIGINT - 1


# --- the last moments -----------------------------------------------------------------------------

# A run that is killed when a file is about to get the name sys.argv[1].
MOMENT = """
import os, signal, sys
def look(event, given):
    if event == "os.rename" and os.path.basename(os.fspath(given[1])) == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(look)
from streamnorm.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("out", "moment"),
    [
        ("calls.parquet", "finished.json"),
        ("calls.parquet", "calls.parquet"),
        ("out/", "results.parquet"),
    ],
)
def test_a_run_that_is_killed_while_its_output_is_put_in_its_place_is_done_by_the_next(
    tmp_path: Path, out: str, moment: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("a.sse").write_bytes(ONE)
    assert main(["table", "a.sse", "-o", out]) == 0
    Path("b.sse").write_bytes(OTHER)
    asked = ["table", "a.sse", "b.sse", "-o", out]
    done = subprocess.run([sys.executable, "-c", MOMENT, moment, *asked], check=False, env=ENV)
    assert done.returncode == -signal.SIGKILL
    assert main(asked) == 0
    whole = table.rows(["a.sse", "b.sse"])
    if out == "calls.parquet":
        assert pq.read_table(out).equals(whole)
    else:
        for kind in table.KINDS:
            assert pq.read_table(f"{out}{kind}s.parquet").equals(table.of_kind(whole, kind))


def test_what_a_killed_run_left_of_its_output_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of the same number as a process of today, which in a container is always the case."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sse").write_bytes(ONE)
    parts = tmp_path / ".calls.duckdb.parts"
    parts.mkdir()
    for name in ("whole", f"whole.{os.getpid()}"):
        duckdb.connect(str(parts / name)).execute("CREATE TABLE sessions (x INTEGER)").close()
    assert main(["table", "a.sse", "-o", "calls.duckdb"]) == 0
    with duckdb.connect("calls.duckdb", read_only=True) as database:
        assert database.execute("SELECT session FROM sessions").fetchall() == [("a.sse",)]


# --- no room --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "room"),
    [
        ("calls.parquet", 1_000),  # not even for a part
        ("calls.csv", 200_000),  # for parts
        ("calls.duckdb", 200_000),
    ],
)
def test_a_disk_that_is_full_is_told_in_a_sentence(tmp_path: Path, out: str, room: int):
    (tmp_path / "in").mkdir()
    for number in range(300):
        (tmp_path / "in" / f"{number}.sse").write_bytes(
            Chat.call(0, "call_1", "look", '{"x":"%s"}' % ("y" * 1000)) + Chat.end()
        )

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    command = [*COMMAND[:3], "table", "in", "-o", out, "--jobs", "1"]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False, preexec_fn=full
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("streamnorm: cannot write ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / out).exists()
