"""Files with streams come in; rows about their calls, results, oddities and endings go out.

    table = rows([("answer.sse", data)])          # one pyarrow.Table, whichever engine calls it

Rule: one pure function does the work, so that one core, all cores and a cluster give the same rows.
Every input is a row of kind ``session``, also what could not be read: nothing is missing in silence.
Nothing here needs pyarrow to be there before it is called.
"""

from __future__ import annotations

from .arrow import of_kind, rows, schema
from .columns import COLUMNS, KINDS
from .records import records

__all__ = ["COLUMNS", "KINDS", "of_kind", "records", "rows", "schema"]
