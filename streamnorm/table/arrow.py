"""A batch of files comes in; one Arrow table of the rows that their streams become goes out.

Rule: pure, whichever engine calls it, and always of the same columns. It raises nothing for what is in
a file: text that no Arrow string can hold says it in another way (half of a surrogate pair stands as
its escape, ``\\ud83d``, which in JSON means the same), and a number that fits no column is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..captures import Found
from ..errors import needs
from ..providers import provider_row
from ..takes.format import Take
from .batches import File, files_in
from .columns import COLUMNS, KIND, KINDS, SESSION, UNION
from .records import Record, records, records_of, unreadable

if TYPE_CHECKING:
    import pyarrow

__all__ = ["of_kind", "rows", "schema"]


def rows(batch: Any, *, provider: str | None = None) -> pyarrow.Table:
    """The rows of all files in ``batch``: pairs of name and bytes, paths, takes, or a table with them.

    >>> table = rows([("a.sse", b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n')])
    >>> table.select(["kind", "session", "outcome", "reason"]).to_pylist()
    [{'kind': 'session', 'session': 'a.sse', 'outcome': 'failed', 'reason': 'truncated'}]
    """
    needs("pyarrow", "a table", extra="table")
    if provider is not None:
        provider_row(provider)  # a wrong name is no fault of a file
    found: list[tuple[Any, ...]] = []
    for file in files_in(batch):
        for row in _of(file, provider):
            found.append(_PLACES[row["kind"]]((*row.values(), None)))
    return _table(found)


def _of(file: File, provider: str | None) -> Iterable[Record]:
    name, data = file
    try:
        if isinstance(data, bytes):
            return list(records(name, data, provider=provider))
        if isinstance(data, Take):
            return records_of(name, Found(name, "take", data), provider=provider)
    except Exception as error:  # noqa: BLE001  a defect of ours with one file must not lose the others
        return [unreadable(name, name, f"{type(error).__name__} while it was read: {error}")]
    return [unreadable(name, data.name, data.why)]


def _places(kind: str) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """What puts the values of a row of that kind, and None behind them, into the columns of all kinds."""
    names = [KIND.name, SESSION.name, *(column.name for column in COLUMNS[kind])]
    return itemgetter(*(names.index(name) if name in names else -1 for name in UNION))


_PLACES = {kind: _places(kind) for kind in KINDS}


# --- Arrow ----------------------------------------------------------------------------------------


@cache
def schema(kind: str | None = None) -> pyarrow.Schema:
    """Of the table of all kinds, or of one kind alone.

    >>> schema("note").names
    ['session', 'name', 'count']
    """
    needs("pyarrow", "a table", extra="table")
    import pyarrow as pa

    columns = UNION.values() if kind is None else (SESSION, *COLUMNS[kind])
    return pa.schema([(one.name, getattr(pa, one.type)()) for one in columns])


def of_kind(table: pyarrow.Table, kind: str) -> pyarrow.Table:
    """The rows of one kind, with its columns alone."""
    import pyarrow.compute as pc

    return table.filter(pc.equal(table[KIND.name], kind)).select(schema(kind).names)


def _table(found: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    import pyarrow as pa

    columns = list(zip(*found, strict=True)) or [()] * len(UNION)
    made = [_array(values, field.type) for values, field in zip(columns, schema(), strict=True)]
    return pa.Table.from_arrays(made, schema=schema())


def _array(values: Sequence[Any], type: pyarrow.DataType) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, type)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
        return pa.array([_fitting(value, type) for value in values], type)


def _fitting(value: Any, type: pyarrow.DataType) -> Any:
    """The value as the column can hold it, or None."""
    import pyarrow as pa

    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode()
    try:
        pa.scalar(value, type)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
        return None
    return value
