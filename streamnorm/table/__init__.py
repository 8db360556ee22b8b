"""Files with streams come in; rows about their calls, results, oddities and endings go out.

    table = rows([("answer.sse", data)])          # one pyarrow.Table, whichever engine calls it

Rule: one pure function does the work, so that one core, all cores and a cluster give the same rows.
Every input is a row of kind ``session``, also what could not be read: nothing is missing in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrow import of_kind, rows
from .columns import COLUMNS, KINDS
from .records import records

if TYPE_CHECKING:
    import pyarrow

    SCHEMA: pyarrow.Schema

__all__ = ["COLUMNS", "KINDS", "SCHEMA", "of_kind", "records", "rows"]


def __getattr__(name: str) -> Any:
    if name == "SCHEMA":  # when it is asked for: nothing else here needs pyarrow to be there
        from .arrow import schema

        return schema()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
