"""Writes docs/tables.md from the columns of streamnorm.table.

    python -m tools.tables             write it
    python -m tools.tables --check     exit 1 if it is not up to date

Rule: the columns are those of ``table/columns.py``, in their order and words.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamnorm.table.columns import COLUMNS, KIND, SESSION, Column
from tools.documents import cell, main_of

__all__ = ["made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "tables.md"

HEAD = """\
# Tables

Recorded streams in, a table out: a question over a million sessions is a query.

```
pip install 'streamnorm[table]'
streamnorm table logs -o calls.parquet
```

`logs` is anything that `streamnorm inspect` reads, any number of files, folders, patterns (in quotes) and
addresses. What the output is the end of its name says:

| `-o` | gives |
|---|---|
| `calls.parquet` | all rows in one file: for DuckDB, pandas, polars, Spark, a warehouse |
| `calls.arrow`, `calls.feather` | the same, in Arrow's own form |
| `calls.jsonl` | one object per line, with the columns of its kind |
| `calls.csv` | for spreadsheets |
| `calls.duckdb` | a database with the tables `sessions`, `calls`, `results` and `notes` (`streamnorm[duckdb]`) |
| a name that ends in a slash | a folder with a Parquet file for each kind: `sessions.parquet`, `calls.parquet` … |

`--kind call` writes the rows of one kind, with its columns alone. `--provider` says whose wire it is where the
files do not. `--jobs` is the number of processes. Runs go on where they were stopped, and run on a cluster:
[scale.md](scale.md).

The exit code is 0 if every input is in the table, also as one that cannot be read: the last lines name the
first ten of those. It is 2 if nothing at all could be read, or the command was not understood.

## Questions

With DuckDB, over the Parquet file:

```sql
-- which tools break, and how
SELECT s.provider, c.name, c.reason, count(*) AS broken
FROM 'calls.parquet' AS c JOIN 'calls.parquet' AS s ON s.session = c.session AND s.kind = 'session'
WHERE c.kind = 'call' AND c.outcome = 'broken'
GROUP BY ALL ORDER BY broken DESC, s.provider, c.name
```

```sql
-- where ids come from
SELECT s.provider, c.id_source, c.wire_field, count(*) AS calls
FROM 'calls.parquet' AS c JOIN 'calls.parquet' AS s ON s.session = c.session AND s.kind = 'session'
WHERE c.kind = 'call'
GROUP BY ALL ORDER BY ALL
```

```sql
-- what could not be read, and why
SELECT session, detail FROM 'calls.parquet' WHERE outcome = 'unreadable'
```

```sql
-- the same call in several sessions, on whatever wires
SELECT checksum, any_value(name) AS name, count(DISTINCT session) AS sessions
FROM 'calls.parquet' WHERE kind = 'call' AND outcome = 'whole'
GROUP BY checksum HAVING sessions > 1 ORDER BY sessions DESC, checksum
```

```sql
-- an argument of a call
SELECT session, arguments->>'$.path' AS path FROM 'calls.parquet'
WHERE kind = 'call' AND outcome = 'whole' AND json_valid(arguments) AND path IS NOT NULL
```

With pandas or polars:

```python
import pandas

rows = pandas.read_parquet("calls.parquet")
calls = rows[rows["kind"] == "call"]
print(calls.groupby(["outcome", "reason"], dropna=False).size())
```

```python
import polars

sessions = polars.scan_parquet("calls.parquet").filter(polars.col("kind") == "session")
slow = sessions.group_by("provider").agg(polars.col("first_token").quantile(0.95)).sort("provider")
print(slow.collect())
```

In a program, without the command:

```python
from pathlib import Path

from streamnorm.table import of_kind, rows, schema

table = rows(sorted(Path("logs").glob("*.sse")))
calls = of_kind(table, "call")
print(calls.num_rows, schema().names[:4])
```

`rows` takes paths, pairs of name and bytes, takes, or what an engine hands over: a table or a batch of
Arrow, a frame of pandas or polars, a dict of columns, with the names in one of `path`, `name`, `input`, `file` …
and the bytes in one of `bytes`, `data`, `content` ….

## Exact

- `raw` is the text of the arguments as the wire wrote it; `arguments` the same as canonical JSON, which keeps
  integers of any size. Huge texts and NUL characters are what they were.
- Arrow holds UTF-8. Half of a surrogate pair, which UTF-8 cannot say, stands as its escape, `\\ud83d`, as do bytes
  of a file's name that are no text. Inside the texts of a stream halves are joined, or replaced and noted
  (`wire.half_character`), before they come here.
- A number that its column cannot hold is null: a status of twelve digits, a count beyond 64 bits.
- A spreadsheet takes a cell that begins like a formula for one. In **CSV** alone, a text that begins with one of
  `= + - @ '`, a tab or a line end has an apostrophe before it: take it away, and the text is exact. All other
  forms hold every text as it is.
- The text of a model may say anything. It is data here; whoever shows it on a page must escape it.

## Columns

One table of all kinds has all columns, with nulls in those of other kinds. Rows of one session stand together,
the session's first. Times are seconds from the start of the stream, and null where the file has none.
"""


def made() -> dict[Path, str]:
    """The document."""
    return {OUT: "\n".join([HEAD, _section("All rows", (KIND, SESSION)), *_kinds()])}


def _kinds() -> list[str]:
    return [_section(f"Rows of kind `{kind}`", columns) for kind, columns in COLUMNS.items()]


def _section(title: str, columns: tuple[Column, ...]) -> str:
    rows = [f"| `{one.name}` | {one.type.rstrip('_')} | {cell(one.says)} |" for one in columns]
    return "\n".join([f"### {title}\n", "| column | type | is |\n|---|---|---|", *rows, ""])


if __name__ == "__main__":
    sys.exit(main_of("tools.tables", __doc__, made))
