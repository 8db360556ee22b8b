"""Places come in; the rows of the streams in them go out: read from the streams, or from a table of them.

Rule: a table that is finished is not read as streams: its rows are taken as they are, one after the
other, so that memory does not grow with it. What a file is tell its first bytes, not its name. Each is read
once, whatever names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson

from ..captures import Left
from ..captures.inputs import Input, inputs
from ..errors import RecordingError, needs
from ..table.columns import COLUMNS
from ..table.records import records, unreadable

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["files_in", "rows_in", "rows_of"]

# How such files begin, the last one behind its checksum.
PARQUET, ARROW, DUCKDB = b"PAR1", b"ARROW1\0\0", b"DUCK"
NO_KINDS = "holds rows of one kind alone: make a table of all kinds for a report"
NO_DUCKDB = (
    "is a database: make a .parquet, a .jsonl or an .arrow file of the same streams for a report"
)
BATCH = 1024  # rows
LONGEST_LINE = 64 * 1024 * 1024  # bytes of a row
_OF_ONE = [{"session", *(column.name for column in kind)} for kind in COLUMNS.values()]


def rows_in(places: Iterable[str], *, provider: str | None = None) -> Iterator[dict[str, Any]]:
    """The rows of all files in ``places``: files, folders, patterns, tables.

    >>> [row["detail"] for row in rows_in(["no/such/*.sse"])]
    ['is a pattern that no file fits']
    """
    for one in files_in(places):
        yield from rows_of(one, provider=provider)


def files_in(places: Iterable[str], *, but: Iterable[str] = ()) -> Iterator[Input | Left]:
    """Each file once, ``but`` these."""
    seen = set(map(_real, but))
    for one in inputs(places):
        if isinstance(one, Left):
            yield one
        elif (real := _real(one.url or one.name)) not in seen:
            seen.add(real)
            yield one


def _real(path: str) -> int:
    return hash(os.path.realpath(path))  # a number, as there may be many


def rows_of(one: Input | Left, *, provider: str | None = None) -> Iterator[dict[str, Any]]:
    """Its rows; a file that cannot be read is a row that says so."""
    if isinstance(one, Left):
        yield unreadable(one.name, one.name, one.why)
        return
    try:
        with one.open() as file:
            yield from _rows(one.name, file, provider)
    except OSError as error:
        yield unreadable(one.name, one.name, error.strerror or str(error))
    except RecordingError as error:  # of a table: the rows before stand
        yield unreadable(one.name, one.name, str(error).removeprefix(one.name).lstrip(", "))


def _rows(name: str, file: BinaryIO, provider: str | None) -> Iterator[dict[str, Any]]:
    first = file.readline(LONGEST_LINE)
    if first.startswith((PARQUET, ARROW)):
        file.seek(0)
        yield from _of_batches(name, file, first.startswith(PARQUET))
    elif first[8:].startswith(DUCKDB):
        yield unreadable(name, name, NO_DUCKDB)
    elif (form := _begins_as(first)) == "one":
        yield unreadable(name, name, NO_KINDS)
    elif form == "all":
        yield from _of_lines(name, chain([first], iter(lambda: file.readline(LONGEST_LINE), b"")))
    else:
        yield from records(name, first + file.read(), provider=provider)


def _begins_as(line: bytes) -> str | None:
    """A table with rows of all kinds begins with that of a session; one of another kind has its columns."""
    try:
        row = orjson.loads(line) if line.startswith(b"{") else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(row, dict):
        return None
    if row.get("kind") == "session" and {"session", "input", "outcome"} <= row.keys():
        return "all"
    return "one" if row.keys() in _OF_ONE else None


def _of_lines(name: str, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise RecordingError(f"{name}, line {number}: not a row of a table: {error}") from None
        if not isinstance(row, dict):
            raise RecordingError(
                f"{name}, line {number}: not a row of a table, but {type(row).__name__}"
            )
        yield row


def _of_batches(name: str, file: BinaryIO, is_parquet: bool) -> Iterator[dict[str, Any]]:
    needs("pyarrow", "a report of a table of that form", extra="table")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file) if is_parquet else pa.ipc.open_file(file)
        if "kind" not in (table.schema_arrow if is_parquet else table.schema).names:
            yield unreadable(name, name, NO_KINDS)
            return
        parts = range(0 if is_parquet else table.num_record_batches)
        batches = table.iter_batches(BATCH) if is_parquet else map(table.get_batch, parts)
        for batch in batches:
            yield from batch.to_pylist()
    except pa.ArrowException as error:
        yield unreadable(name, name, f"cannot be read as a table: {error}")
