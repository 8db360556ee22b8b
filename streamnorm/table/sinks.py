"""Tables of rows come in, one after the other; a file of the form that its name says goes out.

Rule: a form is one class and one row of ``FORMS``, and all hold the same values. Memory is that of one
table. Where text can do harm it is made safe: a spreadsheet takes a cell that begins like a formula for
one, so in CSV such a text has an apostrophe before it, and so has one that begins with an apostrophe:
take one away and it is exact.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import UsageError, needs
from ..text.written import json_bytes
from .arrow import of_kind, schema
from .columns import KIND, KINDS

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FOLDER_FILES", "FORMS", "Sink", "form_of", "sink_for"]


class Sink(Protocol):
    """A file that is being written."""

    def add(self, table: pyarrow.Table) -> None:
        """More rows, of all kinds."""

    def close(self) -> None:
        """All are there."""


def sink_for(out: Path, form: str, kind: str | None) -> Sink:
    """What writes ``out``; ``kind``: rows of that kind alone."""
    sink: Sink = FORMS[form](out, kind)
    return sink


class _OneTable:
    """Every kind in one table, or one kind alone."""

    def __init__(self, out: Path, kind: str | None) -> None:
        self._kind = kind
        self._schema = schema(kind)
        self._open(out)

    def add(self, table: pyarrow.Table) -> None:
        self._write(table if self._kind is None else of_kind(table, self._kind))

    def close(self) -> None:
        self._writer.close()

    _writer: Any

    def _open(self, out: Path) -> None:
        raise NotImplementedError

    def _write(self, table: pyarrow.Table) -> None:
        self._writer.write_table(table)


class Parquet(_OneTable):
    """Columns, compressed: what DuckDB, pandas, polars, Spark and the warehouses read."""

    def _open(self, out: Path) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(out, self._schema, compression="zstd")


class Arrow(_OneTable):
    """Arrow's own form (Feather), read without being copied."""

    def _open(self, out: Path) -> None:
        import pyarrow as pa

        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_file(out, self._schema, options=options)


class Csv(_OneTable):
    """For spreadsheets; null is an empty cell, an empty text is ``""``."""

    def _open(self, out: Path) -> None:
        import pyarrow.csv

        self._writer = pyarrow.csv.CSVWriter(out, self._schema)

    def _write(self, table: pyarrow.Table) -> None:
        self._writer.write_table(_harmless(table))


# How a cell begins that spreadsheets may take for a formula, in wide characters, too.
_FORMULA = r"\A(['=+@\t\r\n＝＋＠－-])"


def _harmless(table: pyarrow.Table) -> pyarrow.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        if field.type == pa.string():
            safe = pc.replace_substring_regex(table.column(at), _FORMULA, r"'\1")
            table = table.set_column(at, field, safe)
    return table


class Jsonl(_OneTable):
    """One object per line, with the columns of its kind."""

    def _open(self, out: Path) -> None:
        self._writer = open(out, "wb")  # noqa: SIM115  it stays open until the last table

    def _write(self, table: pyarrow.Table) -> None:
        of = {kind: schema(kind).names for kind in KINDS}
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        kinds = columns.get(KIND.name, [self._kind] * table.num_rows)
        for at, kind in enumerate(kinds):
            names = of[kind] if self._kind else (KIND.name, *of[kind])
            self._writer.write(json_bytes({name: columns[name][at] for name in names}) + b"\n")


# --- several tables -------------------------------------------------------------------------------

FOLDER_FILES = tuple(f"{kind}s.parquet" for kind in KINDS)
TABLES = {kind: f"{kind}s" for kind in KINDS}  # kind -> what its table is called


class Folder:
    """One Parquet file for each kind."""

    def __init__(self, out: Path, kind: str | None) -> None:
        out.mkdir()
        kinds = KINDS if kind is None else (kind,)
        self._files = [Parquet(out / f"{TABLES[one]}.parquet", one) for one in kinds]

    def add(self, table: pyarrow.Table) -> None:
        for file in self._files:
            file.add(table)

    def close(self) -> None:
        for file in self._files:
            file.close()


class DuckDB:
    """A database with one table for each kind."""

    def __init__(self, out: Path, kind: str | None) -> None:
        needs("duckdb", "a .duckdb file", extra="duckdb")
        import duckdb

        self._kinds = KINDS if kind is None else (kind,)
        with _written():
            self._database = duckdb.connect(str(out))
            for one in self._kinds:
                self._database.from_arrow(schema(one).empty_table()).create(TABLES[one])

    def add(self, table: pyarrow.Table) -> None:
        with _written():
            for kind in self._kinds:
                self._database.from_arrow(of_kind(table, kind)).insert_into(TABLES[kind])

    def close(self) -> None:
        with _written():
            self._database.execute("CHECKPOINT")  # closing says nothing of a disk that is full
            self._database.close()


@contextmanager
def _written() -> Iterator[None]:
    """What DuckDB cannot write is an ``OSError``, as of everybody else."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise OSError(" ".join(str(error).split())) from error


# How the name of the output ends -> its form.
FORMS: dict[str, Any] = {
    ".parquet": Parquet,
    ".jsonl": Jsonl,
    ".ndjson": Jsonl,
    ".csv": Csv,
    ".duckdb": DuckDB,
    ".arrow": Arrow,
    ".feather": Arrow,
    "/": Folder,
}


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def form_of(out: str) -> str:
    """The form that a name asks for.

    >>> form_of("calls.parquet"), form_of("calls/")
    ('.parquet', '/')
    """
    if _ADDRESS.match(out):
        raise UsageError(
            f"{out} is an address, and the output is written on this machine: name a file, and copy it"
        )
    form = "/" if out.endswith(("/", os.sep)) or os.path.isdir(out) else Path(out).suffix.lower()
    if form not in FORMS:
        forms = ", ".join(name for name in FORMS if name != "/")
        raise UsageError(
            f"cannot tell the form of {out}: its name ends in one of {forms}, or in / (a folder)"
        )
    return form
