"""One file comes in; the rows of its streams go out: read from the streams, or from a table of them.

Rule: a table that is finished is not read as streams: its rows are taken as they are, one after the
other, so that memory does not grow with it. What it is tells its first row, not its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from ..errors import RecordingError, needs
from ..table.records import records, unreadable

if TYPE_CHECKING:
    from typing import BinaryIO

    from ..captures.inputs import Input

__all__ = ["rows_of"]

# How such files begin, the last one behind its checksum.
PARQUET, ARROW, DUCKDB = b"PAR1", b"ARROW1\0\0", b"DUCK"
NO_KINDS = "holds rows of one kind alone: make a table of all kinds for a report"
NO_DUCKDB = (
    "is a database: make a .parquet, a .jsonl or an .arrow file of the same streams for a report"
)
BATCH = 1024  # rows
LONGEST_LINE = 64 * 1024 * 1024  # bytes of a row
_OF_A_SESSION = {"kind", "session", "input", "outcome"}


def rows_of(one: Input, *, provider: str | None = None) -> Iterator[dict[str, Any]]:
    """Its rows; a file that cannot be read is a row that says so."""
    try:
        with one.open() as file:
            yield from _rows(one.name, file, provider)
    except OSError as error:
        yield unreadable(one.name, one.name, error.strerror or str(error))


def _rows(name: str, file: BinaryIO, provider: str | None) -> Iterator[dict[str, Any]]:
    first = file.readline(LONGEST_LINE)
    file.seek(0)
    if first.startswith((PARQUET, ARROW)):
        yield from _of_batches(name, file, first.startswith(PARQUET))
    elif first[8:].startswith(DUCKDB):
        yield unreadable(name, name, NO_DUCKDB)
    elif _is_of_rows(first):
        yield from _of_lines(name, file)
    else:
        yield from records(name, file.read(), provider=provider)


def _is_of_rows(line: bytes) -> bool:
    """Is it the row of a session, as every table begins with one?"""
    if not line.startswith(b"{"):
        return False
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return row.get("kind") == "session" and set(row) >= _OF_A_SESSION


def _of_lines(name: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
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
