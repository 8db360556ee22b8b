"""The row of an exchange comes in; one line of JSON goes out.

Rule: one line for one exchange, and nothing that was said, no key and no character that a terminal would
obey. What is not known is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

from ..notes import INFO, log
from ..text.shown import escape_json
from ..text.written import json_text

__all__ = ["line", "lines_to", "nowhere", "to_the_log"]


def line(row: dict[str, Any]) -> str:
    """The line.

    >>> line({"number": 1, "error": None, "calls": [], "model": "m"})
    '{"number":1,"model":"m"}'
    """
    return escape_json(json_text({k: v for k, v in row.items() if v not in (None, [], {}, "")}))


def lines_to(file: TextIO | None = None) -> Callable[[dict[str, Any]], None]:
    """Writes lines to a file, standard error by default."""

    def tell(row: dict[str, Any]) -> None:
        print(line(row), file=file or sys.stderr, flush=True)

    return tell


def to_the_log(row: dict[str, Any]) -> None:
    """The row as one line of the library's own log."""
    log(INFO, "gateway.exchange", **{k: v for k, v in row.items() if v not in (None, [], {}, "")})


def nowhere(row: dict[str, Any]) -> None:
    """No line."""
