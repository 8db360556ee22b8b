"""A batch comes in, as whichever engine hands it over; the files in it go out, one by one.

Rule: what is no batch is a ``UsageError`` that says what to pass; what is in a batch is never one. A
value that is missing, or a path that cannot be read, is a ``Left``, which becomes a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from ..captures import Left
from ..captures.inputs import Input, input_at
from ..errors import UsageError
from ..takes.format import Take

__all__ = ["DATA", "NAMES", "File", "fetched", "files_in"]

# The columns that are looked for, in this order: as Ray Data (path, bytes), Spark (path, content),
# Daft and people call them.
NAMES = ("path", "name", "input", "file", "filename", "url", "uri", "key", "session")
DATA = ("bytes", "data", "content", "contents", "body", "value")
PASS = (
    "pass (name, bytes) pairs, paths, takes, or columns: one of "
    f"{', '.join(NAMES)} and one of {', '.join(DATA)}"
)

SHOWN = 10  # columns that an error names
FETCHED = 16  # files that are asked for at once, where each waits for the answer

File: TypeAlias = tuple[str, bytes | Take | Left]


def files_in(batch: Any) -> Iterator[File]:
    """The files of a batch.

    >>> list(files_in([("a.sse", b"data: 1")])) == list(files_in({"path": ["a.sse"], "bytes": [b"data: 1"]}))
    True
    """
    if hasattr(
        batch, "__arrow_c_stream__"
    ):  # tables and batches of pyarrow, pandas, polars, DuckDB
        batch = _of_arrow(batch)
    if hasattr(batch, "to_pylist") and not hasattr(batch, "column_names"):
        batch = batch.to_pylist()  # an array
    if hasattr(batch, "column_names"):
        yield from _of_table(batch)
    elif isinstance(batch, Mapping):
        yield from _of_columns(batch)
    elif isinstance(batch, Iterable) and not isinstance(
        batch, str | bytes | bytearray | memoryview
    ):
        for number, one in enumerate(batch, start=1):
            yield _of_one(one, number)
    else:
        raise UsageError(f"{_kind(batch)} is no batch: {PASS}")


def _of_arrow(batch: Any) -> Any:
    """A table; or the values of a single column that has no name."""
    import pyarrow

    try:
        return pyarrow.table(batch)
    except pyarrow.ArrowInvalid:
        return pyarrow.chunked_array(batch).to_pylist()


# --- columns --------------------------------------------------------------------------------------


def _of_table(table: Any) -> Iterator[File]:
    name, data = map(table.column_names.index, _chosen(table.column_names))
    for batch in table.select([name, data]).to_batches():  # no more at once than a batch of it
        yield from _pairs(batch.column(0).to_pylist(), (one.as_py() for one in batch.column(1)))


def _of_columns(columns: Mapping[str, Any]) -> Iterator[File]:
    name, data = _chosen(list(columns))
    names, values = _column(columns[name], name), _column(columns[data], data)
    if len(names) != len(values):
        raise UsageError(f"column {name!r} has {len(names)} values, {data!r} {len(values)}")
    yield from _pairs(names, values)


def _column(values: Any, name: str) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"column {name!r} is {_kind(values)}, not a list: {PASS}")
    return values if hasattr(values, "__len__") else list(values)  # type: ignore[return-value]


def _chosen(columns: list[str]) -> tuple[str, str]:
    name = next((one for one in NAMES if one in columns), None)
    data = next((one for one in DATA if one in columns), None)
    if name is None or data is None:
        raise UsageError(f"no files in the columns {_listed(columns)}: {PASS}")
    return name, data


def _listed(columns: list[Any]) -> str:
    more = ["…"] if len(columns) > SHOWN else []
    return ", ".join([*map(str, columns[:SHOWN]), *more]) or "(none)"


def _pairs(names: Iterable[Any], values: Iterable[Any]) -> Iterator[File]:
    return (_pair(name, value) for name, value in zip(names, values, strict=True))


# --- one by one -----------------------------------------------------------------------------------


def _of_one(one: Any, number: int) -> File:
    if type(one) is tuple and len(one) == 2 and type(one[0]) is str and type(one[1]) is bytes:
        return one  # as nearly all are
    if isinstance(one, str | os.PathLike):
        return _read(input_at(os.fspath(one)))
    if isinstance(one, Input):
        return _read(one)
    if isinstance(one, Take):
        return _pair(f"#{number}", one)
    if isinstance(one, Left):
        return one.name, one
    if isinstance(one, tuple | list) and len(one) == 2:
        return _pair(*one)
    if isinstance(one, Mapping):
        name, data = _chosen(list(one))
        return _pair(one[name], one[data])
    raise UsageError(f"{_kind(one)} in a batch: {PASS}")


def _pair(name: Any, value: Any) -> File:
    name = _name(name)
    if isinstance(value, bytes | Take | Left):
        return name, value
    if isinstance(value, bytearray | memoryview):
        return name, bytes(value)
    if value is None or value != value:  # NaN is what pandas says for it
        return name, Left(name, "has no bytes: the value is missing")
    raise UsageError(f"the bytes of {name} are {_kind(value)}: {PASS}")


def _name(name: Any) -> str:
    if isinstance(name, str | os.PathLike):
        return str(os.fspath(name))
    if isinstance(name, bytes):
        return os.fsdecode(name)
    if name is None:
        return ""
    if isinstance(name, int):
        return str(name)
    raise UsageError(f"the name of a file is {_kind(name)}: {PASS}")


def _read(input: Input) -> File:
    try:
        return input.name, input.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = getattr(error, "strerror", None) or str(error)
        return input.name, Left(input.name, f"cannot be read: {why}")


def fetched(files: Sequence[Input | Left]) -> Iterator[File | Input | Left]:
    """The same files; those that wait for others are asked for at once, as many as are one batch."""
    remote = [file for file in files if isinstance(file, Input) and file.is_remote]
    with ThreadPoolExecutor(max(1, min(FETCHED, len(remote)))) as pool:
        coming = dict(zip(remote, pool.map(_read, remote), strict=True)) if remote else {}
    for file in files:
        yield coming.pop(file, file) if isinstance(file, Input) else file


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
