"""The columns of the rows that streams become; nothing comes in.

Rule: the one place that says which columns there are, what is in them and of which type they are.
Each kind of row has its own; in one table with the others it has nulls in theirs. Every row names
its session, and what is read from one session stands together, the session's row first.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COLUMNS", "KIND", "KINDS", "SESSION", "UNION", "Column"]


class Column(NamedTuple):
    """One column."""

    name: str
    type: str  # as ``pyarrow`` names it
    says: str  # for the documents


KIND = Column("kind", "string", "which kind of row this is: `session`, `call`, `result` or `note`")
SESSION = Column(
    "session", "string", "the stream: the name of its file, and `#2` … if there are several in it"
)

# Kind of row -> its columns, beside KIND and SESSION. Times are seconds from the start of the stream.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "session": (
        Column("input", "string", "the path or address of the file"),
        Column("form", "string", "what kind of file it is: `take`, `har`, `vcr`, `curl` …"),
        Column("provider", "string", "whose wire it is"),
        Column("model", "string", "the model, as the wire names it"),
        Column("response_id", "string", "the id of the answer"),
        Column("host", "string", "the server that was asked, where the file says so"),
        Column("captured", "string", "when it was recorded, where the file says so (ISO 8601)"),
        Column("status", "int32", "the HTTP status, where the file says so"),
        Column("recorded", "string", "`finished`, `unfinished`, `torn` or `not told`"),
        Column("outcome", "string", "`finish`, `failed`, or `unreadable`: no stream was found"),
        Column("reason", "string", "why it ended: `stop`, `tool_calls`, `truncated` …"),
        Column("detail", "string", "the same in the words of the wire, or what went wrong"),
        Column("retryable", "bool_", "may asking again help?"),
        Column("bytes", "int64", "bytes of the wire"),
        Column("chunks", "int64", "pieces in which they came"),
        Column("frames", "int64", "frames of the wire"),
        Column("events", "int64", "events that were told"),
        Column("text_chars", "int64", "characters of text"),
        Column("reasoning_chars", "int64", "characters of reasoning"),
        Column("calls", "int64", "calls that are whole"),
        Column("broken", "int64", "calls that are not"),
        Column("results", "int64", "results of tools that the provider ran"),
        Column("notes", "int64", "oddities that were tolerated"),
        Column("tokens_input", "int64", "tokens of the request"),
        Column("tokens_output", "int64", "tokens of the answer"),
        Column("tokens_cached", "int64", "of the request: read from a cache"),
        Column("tokens_cache_write", "int64", "of the request: written to a cache"),
        Column("tokens_reasoning", "int64", "of the answer: for reasoning"),
        Column("seconds", "float64", "when the last bytes came"),
        Column("first_event", "float64", "when the first event was told"),
        Column("first_token", "float64", "when the first text, reasoning or call came"),
        Column("first_call", "float64", "when the first call began"),
    ),
    "call": (
        Column("ordinal", "int64", "the number of the call in its stream, from 0"),
        Column("id", "string", "what a result is paired with"),
        Column("id_source", "string", "`natural`, `conflated` or `synthetic`"),
        Column("wire_id", "string", "the id that the wire gave, if it is another"),
        Column("wire_field", "string", "where on the wire the id was read"),
        Column("boundary", "string", "`stated` or `inferred`: how its end was known"),
        Column("name", "string", "the name of the tool; in a row of kind `note`, of the oddity"),
        Column("family", "string", "`function`, `web_search` …"),
        Column("raw", "string", "the arguments as the wire wrote them"),
        Column("arguments", "string", "the arguments as canonical JSON (RFC 8785); null if broken"),
        Column("checksum", "string", "of name and arguments; equal calls are equal across wires"),
        Column("outcome", "string", "`whole` or `broken`"),
        Column("reason", "string", "why it broke"),
        Column("detail", "string", "the same in a sentence"),
        Column("runs_on", "string", "`client` or `provider`: who runs it"),
        Column("choice", "int64", "which of several answers it belongs to"),
        Column("agent", "string", "who made it, where several speak"),
        Column("size", "int64", "bytes of the arguments"),
        Column("started", "float64", "when it began"),
        Column("ended", "float64", "when it was whole, or broken"),
    ),
    "result": (
        Column("ordinal", "int64", "the number of the call that it answers"),
        Column("id", "string", "the id of that call"),
        Column("family", "string", "as of a call"),
        Column("is_error", "bool_", "did the tool fail?"),
        Column("output", "string", "what it gave: a text, or JSON"),
        Column("size", "int64", "bytes of the output"),
        Column("ended", "float64", "when it came"),
    ),
    "note": (
        Column("name", "string", "what was tolerated (docs/quirks.md)"),
        Column("count", "int64", "how often"),
    ),
}
KINDS = tuple(COLUMNS)
# All of them, each name once: what one table of every kind has.
UNION: dict[str, Column] = {}
for _group in ((KIND, SESSION), *COLUMNS.values()):
    UNION |= {column.name: UNION.get(column.name, column) for column in _group}
