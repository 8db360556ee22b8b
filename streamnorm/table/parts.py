"""Files that are to be read come in; batches of them, and a folder that keeps what is done, go out.

    .calls.parquet.parts/
        000000-1f3a….arrow        the rows of one batch: a run that was killed goes on behind it
        finished.json             what the output was made from, once it is whole

Rule: a part is there, whole, or it is not: it is written beside and renamed. Its name says what it was
made from, by the name, size and version (time of change, ETag) of each file, so that a part of other
files is never taken for it. How files fall into batches depends on them alone, not on who reads them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..captures import Left
from ..captures.inputs import Input
from ..errors import UsageError
from ..text.written import json_bytes

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Batch", "Parts", "batches", "write_part"]

BYTES = 8 << 20  # of files in one batch, where there is more than one
FILES = 1024


class Batch(NamedTuple):
    """Files that are read together."""

    number: int
    files: tuple[Input | Left, ...]
    mark: str  # a digest of what they are

    @property
    def part(self) -> str:
        """The name of its part."""
        return f"{self.number:06}-{self.mark}.arrow"


def batches(files: Iterable[Input | Left], settings: object) -> Iterator[Batch]:
    """The files in batches; ``settings``: what else its rows depend on.

    >>> [len(batch.files) for batch in batches([Input("a", 5 << 20), Input("b", 5 << 20)], None)]
    [1, 1]
    """
    number, held, size = 0, list[Input | Left](), 0
    for file in files:
        more = file.size or 0 if isinstance(file, Input) else 0
        if held and (size + more > BYTES or len(held) == FILES):
            yield _batch(number, held, settings)
            number, held, size = number + 1, [], 0
        held.append(file)
        size += more
    if held:
        yield _batch(number, held, settings)


def _batch(number: int, files: list[Input | Left], settings: object) -> Batch:
    told = json_bytes([repr(settings), *map(list, files)])
    return Batch(number, tuple(files), sha256(told).hexdigest()[:24])


class Parts:
    """The folder beside one output."""

    def __init__(self, out: Path) -> None:
        self.folder = out.with_name(f".{out.name}.parts")
        self._lock: Any = None

    def begin(self) -> None:
        """Nobody else writes here now."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / "lock", "wb")  # noqa: SIM115  held until the end
        except OSError as error:
            raise UsageError(f"cannot write {self.folder}: {error.strerror}") from error
        if not _locked(self._lock):
            raise UsageError(
                f"another run is writing {self.folder}: let it end, or choose another output"
            )

    def end(self) -> None:
        """Others may."""
        if self._lock is not None:
            self._lock.close()

    def path(self, batch: Batch) -> Path:
        """Where its rows are, or will be."""
        return self.folder / batch.part

    def has(self, batch: Batch) -> bool:
        """Are they there, whole?"""
        import pyarrow as pa

        try:
            with pa.memory_map(os.fspath(self.path(batch))) as file:
                pa.ipc.open_file(file)
        except (OSError, pa.ArrowInvalid):
            return False
        return True

    def rows(self, batch: Batch) -> pyarrow.Table:
        """The rows of one batch."""
        import pyarrow as pa

        with pa.memory_map(os.fspath(self.path(batch))) as file:
            return pa.ipc.open_file(file).read_all()

    # --- when all is done -------------------------------------------------------------------------

    @property
    def _finished(self) -> Path:
        return self.folder / "finished.json"

    def finished(self) -> dict[str, Any]:
        """What the output was made from, and how it looked then; nothing if it was never whole."""
        try:
            told = json.loads(self._finished.read_bytes())
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    def finish(self, told: dict[str, Any]) -> None:
        """The output is whole, and this is what it was made from."""
        whole = self.folder / f"finished.{os.getpid()}"
        whole.write_bytes(json_bytes(told) + b"\n")
        os.replace(whole, self._finished)

    def room_for_whole(self) -> Path:
        """Where the output is written; what a run that was killed left there is gone."""
        self._remove("whole*")
        return self.folder / "whole"

    def clear(self) -> None:
        """Everything but what was said when the output was whole."""
        self._remove("*")

    def _remove(self, pattern: str) -> None:
        for path in self.folder.glob(pattern):
            if path.name not in ("lock", self._finished.name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_part(path: Path, table: pyarrow.Table) -> None:
    """All of it, or nothing."""
    import pyarrow as pa

    beside = path.with_name(f"{path.name}.{os.getpid()}")
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with open(beside, "wb") as file:
        with pa.ipc.new_file(file, table.schema, options=options) as writer:
            writer.write_table(table)
        os.fsync(file.fileno())
    os.replace(beside, path)


def _locked(file: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # where there is none, nobody is kept out
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
