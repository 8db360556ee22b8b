"""Places as people write them: whatever is there is read or told, and nothing is read twice or for ever."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from streamnorm import table
from streamnorm.captures import Left
from streamnorm.captures.inputs import ASK, inputs


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (
        "logs/a.sse",
        "logs/b.txt",
        "logs/deep/c.sse",
        "logs/x.d/e.txt",
        "logs/.hidden/f.sse",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def found(*places: str) -> dict[str, str | None]:
    """Names in their order, and why those are not read that are not."""
    every = list(inputs(places))
    told = {one.name: one.why if isinstance(one, Left) else None for one in every}
    assert len(told) == len(every), "something comes twice"
    return told


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("logs", ["logs/a.sse", "logs/b.txt", "logs/deep/c.sse", "logs/x.d/e.txt"]),
        ("logs/*", ["logs/a.sse", "logs/b.txt", "logs/deep/c.sse", "logs/x.d/e.txt"]),
        ("logs/*.sse", ["logs/a.sse"]),
        ("logs/d*", ["logs/deep/c.sse"]),
        ("logs/**", ["logs/a.sse", "logs/b.txt", "logs/deep/c.sse", "logs/x.d/e.txt"]),
        ("logs/**/*.sse", ["logs/a.sse", "logs/deep/c.sse"]),
        ("l*/**/[ac].sse", ["logs/a.sse", "logs/deep/c.sse"]),
        ("**/*.sse", ["logs/a.sse", "logs/deep/c.sse"]),
        ("**/deep/**/*.sse", ["logs/deep/c.sse"]),
        ("logs/**/*.d", ["logs/x.d/e.txt"]),
        ("logs/.*/*.sse", ["logs/.hidden/f.sse"]),
    ],
)
def test_a_folder_and_a_pattern_give_the_files_in_them(here: Path, place: str, names: list[str]):
    assert found(place) == dict.fromkeys(names)
    whole = {str(here / name): None for name in names}
    assert found(str(here / place)) == whole


def test_what_is_no_file_is_told_and_not_waited_for(here: Path):
    (here / "logs/broken").symlink_to("nowhere")
    os.mkfifo(here / "logs/pipe")
    (here / "logs/null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("logs/socket")
    for place in ("logs", "logs/*", "logs/**"):
        told = found(place)
        assert told["logs/broken"] is None  # opening it says why
        assert told["logs/pipe"] == ASK
        assert told["logs/socket"] == ASK
        assert told["logs/null"] == ASK
        assert len(told) == 8
    assert found("logs/pipe") == {"logs/pipe": None}


@pytest.mark.parametrize("place", ["logs", "logs/*", "logs/**", "**"])
def test_links_that_lead_back_are_told_and_not_followed(here: Path, place: str):
    for name in ("back", "again"):  # each of which would be in each
        (here / "logs" / name).symlink_to(".")
    told = found(place)
    assert told["logs/back"] == "is a link to a folder: name it to read what is in there"
    assert list(told) == [
        "logs/a.sse", "logs/again", "logs/b.txt", "logs/back", "logs/deep/c.sse", "logs/x.d/e.txt"
    ]  # fmt: skip
    assert len(found("logs/back")) == 6  # a link that is named is read


def test_a_folder_that_cannot_be_looked_into_is_told(here: Path):
    """By its length, as a right to read keeps nobody out who is root."""
    os.chdir("logs/deep")
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    os.chdir(here)
    for place in ("logs", "logs/*", "logs/**/*.sse"):
        (told,) = [(name, why) for name, why in found(place).items() if why]
        assert told[0].startswith("logs/deep/ddd")
        assert told[1] == "cannot be read: File name too long"


@pytest.mark.parametrize("name", ["a::b.sse", "http::z.sse", "memory::c.sse"])
def test_a_file_that_is_called_like_an_address_is_a_file(here: Path, name: str):
    (here / name).write_bytes(b"data: [DONE]\n\n")
    for place in (name, f"?{name[1:]}"):
        assert found(place) == {name: None}
        (row,) = table.rows(inputs([place])).to_pylist()
        assert (row["session"], row["outcome"]) == (name, "failed")
    (row,) = table.rows([name]).to_pylist()
    assert row["outcome"] == "failed"
