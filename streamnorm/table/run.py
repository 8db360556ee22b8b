"""Places come in; one output with the rows of all files in them goes out, whatever happens in between.

Rule: what was done once is not done again. A run that was killed goes on behind what it had finished,
an output that is whole for the same files is left alone, and one that we did not make is not replaced
unless asked. The output appears when it is whole, in the order of the files, whoever read them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..captures import Left
from ..captures.inputs import Input, inputs
from ..errors import UsageError, needs
from ..providers import provider_row
from .cluster import on_cluster
from .columns import UNION
from .crew import Work, on_cores
from .parts import Batch, Parts, batches
from .sinks import FOLDER_FILES, form_of, sink_for

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Asked", "Totals", "Watcher", "make_table"]

TOLD = ("inputs", "streams", "unreadable")  # what is kept of the totals
NAMED = 10  # files that could not be read are named, so many of them
Engine = Callable[["Asked", Work, list[Batch], Callable[[str], None]], Iterator[Batch]]


class Watcher(Protocol):
    """Who is told how it goes."""

    def begin(self, total: int, done: int) -> None:
        """So many files there are, and so many were done by an earlier run."""

    def advance(self, files: int) -> None:
        """So many more."""

    def say(self, sentence: str) -> None:
        """Something that should be known."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted."""

    places: list[str]
    out: str
    kind: str | None = None
    provider: str | None = None
    jobs: int = 1
    engine: str = "local"
    address: str | None = None  # of a cluster
    force: bool = False
    version: str = ""  # of what reads: another one may give other rows


@dataclass(slots=True)
class Totals:
    """What is in the output."""

    inputs: int = 0
    streams: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)  # outcome -> how many
    unreadable: int = 0
    named: list[tuple[str, str]] = field(default_factory=list)  # the first that could not be read
    already: bool = False  # it was there, made from the same files

    def add(self, table: pyarrow.Table) -> None:
        """The rows of one part."""
        import pyarrow.compute as pc

        self.kinds += _counts(table["kind"])
        sessions = table.filter(pc.equal(table["kind"], "session"))
        self.calls += _counts(table.filter(pc.equal(table["kind"], "call"))["outcome"])
        lost = sessions.filter(pc.equal(sessions["outcome"], "unreadable"))
        self.unreadable += lost.num_rows
        self.streams += sessions.num_rows - lost.num_rows
        first = lost.slice(0, NAMED - len(self.named)).select(["session", "detail"])
        self.named += [(row["session"], row["detail"]) for row in first.to_pylist()]


def _counts(column: Any) -> Counter[str]:
    return Counter({one["values"]: one["counts"] for one in column.value_counts().to_pylist()})


def make_table(asked: Asked, watcher: Watcher) -> Totals:
    """Makes the output, and says what is in it."""
    needs("pyarrow", "streamnorm table", extra="table")
    if asked.provider is not None:
        provider_row(asked.provider)  # before anything is read
    form = form_of(asked.out)
    parts = Parts(Path(asked.out))
    parts.begin()
    try:
        return _Run(asked, form, parts, watcher).run()
    except OSError as error:
        raise UsageError(f"cannot write {asked.out}: {error.strerror or error}") from error
    finally:
        parts.end()


class _Run:
    def __init__(self, asked: Asked, form: str, parts: Parts, watcher: Watcher) -> None:
        self._asked, self._form, self._parts, self._watcher = asked, form, parts, watcher
        self._out = Path(asked.out)
        settings = (asked.version, asked.provider, list(UNION))
        self._batches = list(batches(self._inputs(), settings))
        marks = "\n".join([form, asked.kind or "", *(batch.mark for batch in self._batches)])
        self._mark = sha256(marks.encode()).hexdigest()

    def _inputs(self) -> Iterator[Input | Left]:
        """Each once, whatever places overlap, and none that this run writes."""
        seen = set[str]()
        ours = tuple(os.path.abspath(one) for one in (self._parts.folder, self._out))
        for one in inputs(self._asked.places):
            if one.name in seen:
                continue
            seen.add(one.name)
            path = os.path.abspath(one.name)
            if path not in ours and not path.startswith(tuple(f"{our}{os.sep}" for our in ours)):
                yield one

    def run(self) -> Totals:
        if self._is_there() and not self._asked.force:
            told = self._parts.finished()
            counts = {name: int(told.get(name) or 0) for name in TOLD}
            return Totals(already=True, **counts)
        if self._asked.force:
            self._parts.clear()
        self._read()
        return self._merge()

    def _is_there(self) -> bool:
        """Is the output there, made from the same? One that we did not make is not ours to replace."""
        told, looks = self._parts.finished(), _looks(self._out, self._out)
        ours = [*told.get("looks", []), *told.get("before", [])]
        if not self._asked.force and any(look not in ours for look in looks):
            raise UsageError(
                f"{self._asked.out} is there, and not as streamnorm table left it: "
                "choose another name, or replace it with --force"
            )
        return bool(looks) and looks == told.get("looks") and told.get("mark") == self._mark

    def _read(self) -> None:
        missing = [batch for batch in self._batches if not self._parts.has(batch)]
        total, left = self._files(self._batches), self._files(missing)
        self._watcher.begin(total, total - left)
        work = Work(self._parts.folder, self._asked.provider)
        engine = ENGINES[self._asked.engine]
        for batch in engine(self._asked, work, missing, self._watcher.say):
            self._watcher.advance(len(batch.files))

    def _merge(self) -> Totals:
        totals = Totals(inputs=self._files(self._batches))
        whole = self._parts.room_for_whole()
        sink = sink_for(whole, self._form, self._asked.kind)
        for batch in self._batches:
            table = self._parts.rows(batch)
            sink.add(table)
            totals.add(table)
        sink.close()
        looks, before = _looks(whole, self._out), _looks(self._out, self._out)
        told = {name: getattr(totals, name) for name in TOLD}
        told |= {"mark": self._mark, "looks": looks, "before": before}
        self._parts.finish(told)  # before it is in its place, so that it is known for ours there
        _put(whole, self._out)
        self._parts.clear()
        return totals

    def _files(self, some: Iterable[Batch]) -> int:
        return sum(len(batch.files) for batch in some)


def _put(whole: Path, out: Path) -> None:
    """The output is in its place, at once; in a folder, file by file."""
    if not whole.is_dir():
        os.replace(whole, out)
        return
    out.mkdir(parents=True, exist_ok=True)
    for name in FOLDER_FILES:
        if (whole / name).exists():
            os.replace(whole / name, out / name)
        else:  # of an earlier run, with other kinds
            (out / name).unlink(missing_ok=True)


def _looks(at: Path, out: Path) -> list[list[Any]]:
    """What tells an output from another one of that name; nothing, if there is none."""
    files = [(at, out.name)]
    if at.is_dir():  # whatever else is in a folder is not touched
        files = [(at / name, name) for name in FOLDER_FILES]
    there = [(path.stat(), name) for path, name in files if path.exists()]
    return [[name, told.st_size, told.st_mtime_ns] for told, name in there]


def _locally(
    asked: Asked, work: Work, missing: list[Batch], say: Callable[[str], None]
) -> Iterator[Batch]:
    return on_cores(work, missing, asked.jobs, say)


def _on_ray(
    asked: Asked, work: Work, missing: list[Batch], say: Callable[[str], None]
) -> Iterator[Batch]:
    return on_cluster(work, missing, asked.address, say)


ENGINES: dict[str, Engine] = {"local": _locally, "ray": _on_ray}
