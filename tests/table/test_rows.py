"""``streamnorm.table.rows``: whatever an engine hands over in, the same rows out, and no file lost."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import UsageError, read_take, table
from streamnorm.errors import UnknownProvider
from streamnorm.table.columns import COLUMNS, UNION
from streamnorm.table.records import records
from tests.conftest import ROOT, Chat, some, sse, take_paths

ONE = Chat.text("Hi") + Chat.call(0, "call_1", "look", '{"x":1}') + Chat.end()
HALF = Chat.call(0, "call_1", "look", '{"x":"\\ud83d"}') + Chat.end()  # an escape in the arguments


def told(found: pa.Table, *names: str) -> list[tuple]:
    return [tuple(row[name] for name in names) for row in found.to_pylist()]


# --- what goes in ---------------------------------------------------------------------------------

NAMED = [("a.sse", ONE), ("b.sse", b"")]
NAMES, DATA = ["a.sse", "b.sse"], [ONE, b""]
BATCHES = {
    "pairs": lambda: NAMED,
    "a generator": lambda: iter(NAMED),
    "pairs as lists": lambda: [list(pair) for pair in NAMED],
    "pairs of a path and a bytearray": lambda: [(Path(name), bytearray(data)) for name, data in NAMED],
    "a table as Ray Data reads files": lambda: pa.table({"bytes": DATA, "path": NAMES}),
    "a batch of it": lambda: pa.record_batch({"bytes": DATA, "path": NAMES}),
    "columns as Ray Data gives them": lambda: {
        "bytes": numpy.array(DATA, dtype=object), "path": numpy.array(NAMES)},
    "a batch as Spark reads files": lambda: pa.record_batch({
        "path": NAMES, "modificationTime": [0, 0], "length": [len(ONE), 0], "content": DATA}),
    "columns of Daft": lambda: {"file": NAMES, "data": DATA},
    "large binaries": lambda: pa.table({
        "url": pa.array(NAMES, pa.large_string()), "body": pa.array(DATA, pa.large_binary())}),
    "a table in several chunks": lambda: pa.table({
        "name": pa.chunked_array([["a.sse"], ["b.sse"]]),
        "bytes": pa.chunked_array([[ONE], [b""]], pa.binary())}),
    "rows of columns": lambda: [
        {"path": name, "bytes": data} for name, data in NAMED],
    "columns that are read once": lambda: {"path": iter(NAMES), "bytes": iter(DATA)},
    "a table with a column twice": lambda: pa.Table.from_arrays(
        [pa.array(NAMES), pa.array(DATA), pa.array(NAMES)], names=["path", "bytes", "path"]),
    "a relation of DuckDB": lambda: duckdb.from_arrow(pa.table({"name": NAMES, "content": DATA})),
}  # fmt: skip


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_whatever_an_engine_hands_over_gives_the_same_rows(batch):
    assert table.rows(batch()).equals(table.rows(NAMED))
    assert told(table.rows(batch()), "kind", "session", "outcome") == [
        ("session", "a.sse", "finish"),
        ("call", "a.sse", "whole"),
        ("session", "b.sse", "unreadable"),
    ]


def test_paths_are_read_and_those_that_cannot_be_are_rows(tmp_path):
    (tmp_path / "a.sse").write_bytes(ONE)
    missing, folder = str(tmp_path / "none.sse"), str(tmp_path)
    found = table.rows([str(tmp_path / "a.sse"), tmp_path / "a.sse", missing, folder, "a\0b"])
    assert told(found, "kind", "session", "outcome", "detail") == [
        ("session", str(tmp_path / "a.sse"), "finish", "tool_calls"),
        ("call", str(tmp_path / "a.sse"), "whole", None),
        ("session", str(tmp_path / "a.sse"), "finish", "tool_calls"),
        ("call", str(tmp_path / "a.sse"), "whole", None),
        ("session", missing, "unreadable", "cannot be read: No such file or directory"),
        ("session", folder, "unreadable", "cannot be read: Is a directory"),
        ("session", "a\0b", "unreadable", "cannot be read: embedded null byte"),
    ]


@pytest.mark.parametrize("array", [pa.array, lambda paths: pa.chunked_array([paths])])
def test_an_array_of_paths_is_read(tmp_path, array):
    (tmp_path / "a.sse").write_bytes(ONE)
    found = table.rows(array([str(tmp_path / "a.sse")]))
    assert told(found, "kind", "outcome") == [("session", "finish"), ("call", "whole")]


def test_no_two_streams_have_one_name():
    """``a#1`` is the first stream of ``a``, unless a file is called so."""
    several = (ROOT / "tests/captures/files/curl_several.txt").read_bytes()
    cut = gzip.compress(ONE + Chat.text("é" * 99))[:-9]  # a stream, and a word on the rest
    files = [("a", several), ("a#1", ONE), ("a#2", b""), ("b.gz", cut)]
    sessions = table.of_kind(table.rows(files), "session")["session"].to_pylist()
    assert len(set(sessions)) == len(sessions)
    assert sessions[:2] == ["a#1", "a#2"]
    assert sessions[-4:] == ["a#1#1", "a#2#1", "b.gz", "b.gz (2)"]


def test_takes_are_numbered_unless_they_come_with_names():
    take = read_take(take_paths()[0])
    found = table.rows([take, ("mine", take)]).filter(pc.field("kind") == "session")
    assert told(found, "session", "form") == [("#1", "take"), ("mine", "take")]


def test_values_that_are_missing_are_rows():
    found = table.rows({"path": ["a.sse", "nan", None], "bytes": [None, float("nan"), ONE]})
    assert told(found, "kind", "session", "outcome", "detail") == [
        ("session", "a.sse", "unreadable", "has no bytes: the value is missing"),
        ("session", "nan", "unreadable", "has no bytes: the value is missing"),
        ("session", "", "finish", "tool_calls"),
        ("call", "", "whole", None),
    ]


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (b"data: 1", "a bytes is no batch"),
        ("a.sse", "a str is no batch"),
        (7, "an int is no batch"),
        (None, "a NoneType is no batch"),
        ([7], "an int in a batch"),
        ([("a", "text")], "the bytes of a are a str"),
        ([(1.5, b"")], "the name of a file is a float"),
        ([("a", b"", 1)], "a tuple in a batch"),
        ({"path": "a", "bytes": b""}, "column 'path' is a str, not a list"),
        (
            {str(number): b"" for number in range(99)},
            "columns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …: pass",
        ),
        ({"path": ["a"]}, "no files in the columns path"),
        ({}, "no files in the columns (none)"),
        (pa.table({"x": [1]}), "no files in the columns x"),
        ({"path": ["a"], "bytes": []}, "column 'path' has 1 values, 'bytes' 0"),
        ({"path": ["a"], "bytes": ["text"]}, "the bytes of a are a str"),
    ],
)
def test_what_is_no_batch_is_told_what_to_pass(batch, why):
    with pytest.raises(UsageError) as error:
        table.rows(batch)
    assert why in str(error.value)


def test_a_provider_that_is_not_known_is_told_at_once():
    with pytest.raises(UnknownProvider, match="no provider 'typo'"):
        table.rows([], provider="typo")


# --- what comes out -------------------------------------------------------------------------------


def test_the_columns_are_always_the_same():
    for batch in ([], [("a", b"")], [("a", ONE)], {"path": [], "bytes": []}):
        assert table.rows(batch).schema == table.schema()
    assert table.schema().names == list(UNION)
    assert table.schema().field("notes").type == pa.int64()


def test_a_column_that_several_kinds_have_is_of_one_type():
    for columns in COLUMNS.values():
        for column in columns:
            assert UNION[column.name].type == column.type


def test_one_kind_alone_has_its_own_columns():
    calls = table.of_kind(table.rows([("a", ONE)]), "call")
    assert calls.num_rows == 1
    assert calls.column_names == ["session", *(column.name for column in COLUMNS["call"])]


@pytest.mark.parametrize("path", some(take_paths(), 40), ids=lambda path: path.stem)
def test_the_table_says_what_the_records_say(path):
    data = path.read_bytes()
    plain = [dict.fromkeys(UNION) | record for record in records("a", data)]
    assert table.rows([("a", data)]).to_pylist() == plain


def test_a_session_stands_before_what_was_read_from_it():
    found = table.rows([(path.name, path.read_bytes()) for path in take_paths()])
    seen: list[str] = []
    for kind, session in told(found, "kind", "session"):
        if kind == "session":
            seen.append(session)
        assert session == seen[-1]
    assert seen == [path.name for path in take_paths()]


# --- what no column can hold ----------------------------------------------------------------------


def test_half_of_a_character_never_makes_a_table_that_cannot_be_read():
    # As an escape in the arguments, and as one of the wire.
    found = table.rows([("a", HALF), ("b", Chat.text("\ud83d") + Chat.end())])
    found.validate(full=True)
    (call,) = table.of_kind(found, "call").to_pylist()
    assert (call["raw"], call["outcome"]) == ('{"x":"\\ud83d"}', "broken")
    assert ("b", "wire.half_character") in told(table.of_kind(found, "note"), "session", "name")


def test_a_name_with_bytes_that_are_no_text_is_a_row():
    (row,) = table.rows([(b"a\xff.sse", b"")]).to_pylist()
    assert row["session"] == "a\\udcff.sse"


def test_integers_and_nul_are_exact():
    said = '{"x":1180591620717411303424,"y":"\\u0000"}'
    (call,) = table.of_kind(
        table.rows([("a", Chat.call(0, "call_1", "look", said) + Chat.end())]), "call"
    ).to_pylist()
    assert call["raw"] == said
    assert json.loads(call["arguments"]) == {"x": 2**70, "y": "\0"}


def test_numbers_that_no_column_holds_are_null_and_the_others_stay():
    def used(tokens: int) -> bytes:
        told = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": 1}
        return Chat.text("Hi") + sse({"choices": [], "usage": told}) + Chat.end("stop")

    found = table.rows([("odd", used(2**70)), ("fine", used(7))])
    found = found.filter(pa.compute.field("kind") == "session")
    assert told(found, "session", "tokens_input", "tokens_output", "outcome") == [
        ("odd", None, 1, "finish"),
        ("fine", 7, 1, "finish"),
    ]


def test_a_text_of_three_megabytes_is_exact():
    said = json.dumps({"x": "é" * 1_500_000}, ensure_ascii=False)
    found = table.rows([("a", Chat.call(0, "call_1", "look", said) + Chat.end())])
    (call,) = table.of_kind(found, "call").to_pylist()
    assert call["raw"] == said
    assert call["size"] == len(said.encode())


def test_a_defect_with_one_file_does_not_lose_the_others():
    class Odd(bytes):
        def startswith(self, *_):
            raise RuntimeError("this one cannot be read")

    found = table.rows([("a", Odd(ONE)), ("b", ONE)])
    assert told(found, "kind", "session", "outcome", "detail") == [
        ("session", "a", "unreadable", "RuntimeError while it was read: this one cannot be read"),
        ("session", "b", "finish", "tool_calls"),
        ("call", "b", "whole", None),
    ]


@given(st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=300)), max_size=5))
def test_any_bytes_under_any_name_are_rows(batch):
    found = table.rows(batch)
    assert found.schema == table.schema()
    assert sum(row["kind"] == "session" for row in found.to_pylist()) >= len(batch)
    found.validate(full=True)


@given(st.data())
def test_a_damaged_take_is_rows(data):
    path = data.draw(st.sampled_from(take_paths()))
    said = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        said[data.draw(st.integers(0, len(said) - 1))] = data.draw(st.integers(0, 255))
    found = table.rows([(path.name, bytes(said))])
    found.validate(full=True)
    assert found["kind"][0].as_py() == "session"


# --- what need not be there -----------------------------------------------------------------------


def test_without_pyarrow_everything_is_there_that_needs_none_and_the_rest_says_what_to_install():
    code = """
import sys
class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "fsspec", "duckdb", "ray"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
from streamnorm import table, MissingExtra
print(next(table.records("a", b"data: [DONE]"))["outcome"])
for use in (lambda: table.rows([]), lambda: table.schema()):
    try:
        use()
    except MissingExtra as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    line = "a table needs pyarrow: pip install 'streamnorm[table]'\n"
    assert (done.stdout, done.stderr) == ("failed\n" + line * 2, "")


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(table, "no_such_name")
    assert set(table.__all__) <= {name for name in table.__all__ if hasattr(table, name)}
