"""Addresses as inputs: object stores through fsspec, a server of HTTP, and the secrets in an address."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

from streamnorm import UsageError, table
from streamnorm.captures import Left
from streamnorm.captures.inputs import Input, inputs
from streamnorm.cli import main
from tests.conftest import Chat

ONE = Chat.text("Hi") + Chat.end("stop")


@pytest.fixture
def store() -> Iterator[str]:
    """An object store in memory, with three files in it."""
    system = fsspec.filesystem("memory")
    for path in ("/logs/b.sse", "/logs/a.sse", "/logs/deep/c.har"):
        system.pipe(path, ONE)
    yield "memory://logs"
    system.rm("/logs", recursive=True)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server of HTTP for the folder ``web``."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.sse").write_bytes(ONE)
    handler = functools.partial(Quiet, directory=tmp_path / "web")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def names(*places: str) -> list[str]:
    return [one.name for one in inputs(places) if isinstance(one, Input)]


def test_a_store_is_read_as_a_folder_a_pattern_and_a_file(store: str):
    assert names(store) == [
        f"memory://logs/{name}" for name in ("a.sse", "b.sse", "deep/c.har")
    ] or names(store) == [f"memory:///logs/{name}" for name in ("a.sse", "b.sse", "deep/c.har")]
    assert len(names(f"{store}/*.sse")) == 2
    assert len(names(f"{store}/**/*.har")) == 1
    (one,) = inputs([f"{store}/a.sse"])
    assert isinstance(one, Input)
    assert one.size == len(ONE)
    assert one.version is not None
    with one.open() as file:
        assert file.read() == ONE


def test_the_rows_of_a_store_are_those_of_its_files(store: str):
    found = table.rows(inputs([store]))
    assert found["outcome"].to_pylist() == ["finish"] * 3
    assert table.rows([f"{store}/a.sse"])["bytes"].to_pylist() == [len(ONE)]


def test_what_a_store_does_not_have_is_told(store: str):
    missing, pattern = inputs([f"{store}/none.sse", f"{store}/*.none"])
    assert isinstance(pattern, Left)
    assert pattern.why == "is a pattern that no file fits"
    (row,) = table.rows([missing]).to_pylist()
    assert (row["outcome"], row["detail"][:15]) == ("unreadable", "cannot be read:")


def test_a_file_that_changes_has_another_version(store: str):
    (before,) = inputs([f"{store}/a.sse"])
    fsspec.filesystem("memory").pipe("/logs/a.sse", ONE + ONE)
    (after,) = inputs([f"{store}/a.sse"])
    assert isinstance(before, Input)
    assert isinstance(after, Input)
    assert before.version != after.version


def test_a_command_reads_from_a_server_and_names_what_it_has_not(server: str, tmp_path: Path):
    out = tmp_path / "a.parquet"
    assert main(["table", f"{server}/a.sse", f"{server}/none.sse", "-o", str(out)]) == 0
    rows = pq.read_table(out).to_pylist()
    assert [(row["session"], row["outcome"]) for row in rows] == [
        (f"{server}/a.sse", "finish"),
        (f"{server}/none.sse", "unreadable"),
    ]


def test_a_command_reads_addresses_of_files(tmp_path: Path):
    (tmp_path / "a.sse").write_bytes(ONE)
    assert main(["table", f"file://{tmp_path}/a.sse", "-o", str(tmp_path / "a.parquet")]) == 0
    (row,) = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert (row["session"], row["outcome"]) == (f"file://{tmp_path}/a.sse", "finish")


def test_secrets_of_an_address_open_it_and_stand_in_no_row(server: str, tmp_path: Path):
    secret = f"{server}/a.sse?X-Amz-Signature=0123456789abcdef&part=7"
    assert main(["table", secret, "-o", str(tmp_path / "a.parquet")]) == 0
    (row,) = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert (row["session"], row["outcome"]) == (
        f"{server}/a.sse?X-Amz-Signature=…&part=7",
        "finish",
    )
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".a.parquet.parts").iterdir())
    assert b"0123456789abcdef" not in kept


@pytest.mark.parametrize(
    ("url", "why"),
    [("s3://bucket/logs", "s3fs"), ("nowhere://a/b", "nowhere"), ("gs://bucket/a", "gcsfs")],
)
def test_a_store_whose_library_is_not_there_names_it(url: str, why: str, tmp_path: Path, capsys):
    with pytest.raises(UsageError, match=why):
        list(inputs([url]))
    assert main(["table", url, "-o", str(tmp_path / "a.parquet")]) == 2
    assert why in capsys.readouterr().err


def test_a_store_that_cannot_be_opened_does_not_end_a_batch():
    (row,) = table.rows(["s3://bucket/a.sse"]).to_pylist()
    assert row["outcome"] == "unreadable"
    assert "s3fs" in row["detail"]
