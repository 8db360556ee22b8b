"""What we make is nobody else's to read, whatever the umask; what was there keeps the mode that it had."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamnorm import Conversation, Recorder, RecordingError, Spool, SQLiteHistory
from streamnorm.private import private_database, private_file, private_folder
from streamnorm.ui.log import SQLiteLog

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
UMASKS = [0, 0o022, 0o077, 0o377]

# Makes one of each, and says what the modes are while all of it is open.
MAKES = """
import json, os, stat, sys
from pathlib import Path
import anyio
from streamnorm import Conversation, Recorder, SQLiteHistory, Spool
from streamnorm.ui.log import SQLiteLog
os.umask(int(sys.argv[1]))
root = Path(sys.argv[2])

async def main():
    spool = Spool(root / "deep" / "spool", above=10)
    spool.put("x" * 100)
    spool.take(iter([b"y" * 100]))
    async with SQLiteHistory(root / "history.db", spool=spool) as history, SQLiteLog(root / "log.db") as log:
        await history.commit("c", "r", 0, Conversation().user("Hi").turns, create=True)
        await history.load("c")
        writer = await log.create(owner="ann")
        await writer.append([b"x"])
        await log.read(writer.stream, owner="ann").page()
        with Recorder.open(root / "deep", provider="anthropic", seed="s") as tape:
            tape.chunk(b"data: {}\\n\\n")
        print(json.dumps({str(p.relative_to(root)): stat.S_IMODE(p.stat().st_mode)
                          for p in root.rglob("*")}))

anyio.run(main)
"""


@pytest.mark.parametrize("umask", UMASKS, ids=oct)
def test_everything_that_we_make_is_private(umask: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKES, str(umask), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    modes = json.loads(done.stdout)
    folders = {"deep", "deep/spool"}
    files = set(modes) - folders
    for name in ("history.db", "log.db"):
        assert {name, f"{name}-wal", f"{name}-shm"} <= files
    assert sum(name.startswith("deep/spool/art_") for name in files) == 2
    assert sum(name.endswith(".sse") for name in files) == 1
    assert {name: oct(modes[name]) for name in folders} == dict.fromkeys(folders, "0o700")
    assert {name: oct(modes[name]) for name in files} == dict.fromkeys(files, "0o600")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def used(history: Any, log: Any) -> None:
    async with history, log:
        await history.commit("c", "r", 0, Conversation().user("Hi").turns, create=True)
        await log.create(owner="ann")


def test_what_was_there_keeps_its_mode(tmp_path: Path) -> None:
    """Who shares a database with a group has chosen that."""
    for name in ("history.db", "log.db"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o664)
    folder = tmp_path / "spool"
    folder.mkdir()
    folder.chmod(0o775)
    Spool(folder, above=1).put("content")
    anyio.run(used, SQLiteHistory(tmp_path / "history.db"), SQLiteLog(tmp_path / "log.db"))
    assert [oct(mode(tmp_path / name)) for name in ("history.db", "log.db")] == ["0o664"] * 2
    assert oct(mode(folder)) == "0o775"
    assert [oct(mode(file)) for file in folder.iterdir()] == ["0o600"]


def test_a_history_that_was_only_read_is_private_too(tmp_path: Path) -> None:
    async def read() -> None:
        async with SQLiteHistory(tmp_path / "h.db") as history:
            assert await history.conversations() == []

    anyio.run(read)
    assert oct(mode(tmp_path / "h.db")) == "0o600"


def test_behind_a_link_that_leads_nowhere_yet_it_is_private_too(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
        (tmp_path / "log.db").symlink_to(tmp_path / "real_log.db")
        anyio.run(used, SQLiteHistory(tmp_path / "link.db"), SQLiteLog(tmp_path / "log.db"))
    finally:
        os.umask(before)
    assert [oct(mode(tmp_path / n)) for n in ("real.db", "real_log.db")] == ["0o600"] * 2


def test_what_cannot_be_made_is_told_by_whoever_needs_it(tmp_path: Path) -> None:
    private_database(str(tmp_path / "no" / "such" / "folder.db"))  # SQLite says what is wrong
    private_database(":memory:")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        private_folder(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        private_folder(tmp_path / "file" / "below")
    with pytest.raises(FileExistsError):
        private_file(tmp_path / "file", os.O_WRONLY)
    with pytest.raises(RecordingError, match="Make the folder first"):
        Recorder.open(tmp_path / "no" / "log.db", provider="anthropic", seed="s")
