"""A file that is read in pieces has the streams that it has when it is read at once."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from streamnorm.captures import Found, Left, streams_of
from streamnorm.captures.opened import opened
from streamnorm.survey import Surveying, survey
from streamnorm.takes.format import Take
from tests.captures.test_forms import FILES, HELD
from tests.conftest import RECORDINGS, over_takes

CAPTURES = sorted(FILES / name for name in HELD)
SESSIONS = sorted((RECORDINGS / "claude_code").glob("*.sse"))[:6]


class Slow(io.BytesIO):
    """A pipe that brings a few bytes at a time, and cannot be read again."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(100)

    def seekable(self) -> bool:
        return False


def read_on(file: io.BytesIO, **options: str) -> tuple[dict[int, tuple], list[Left]]:
    """The streams by their number: wire, header, provider, how they end; and what is none."""
    reading: dict = {}
    ended: dict[int, tuple] = {}
    lefts = []
    for one in opened(file, name="f", **options):
        if isinstance(one, Left):
            lefts.append(one)
            continue
        part, bit = one
        surveying, wire = reading.setdefault(part, (Surveying(part), bytearray()))
        if bit is None:
            facts = surveying.end()
            ended[len(ended)] = (
                part.name,
                bytes(wire),
                part.provider,
                facts.end,
                facts.calls,
                part.torn,
            )
        else:
            wire += bit.data
            surveying.hear(bit.data, bit.at, goes_on=bit.goes_on)
    return ended, lefts


def facts_of(name: str, take: Take) -> tuple:
    facts = survey(take)
    calls = [(call.told, call.end) for call in facts.calls]
    return (name.partition("#")[0], take.wire, take.provider, facts.end, calls, take.torn)


def plain(told: tuple) -> tuple:
    name, wire, provider, end, calls, torn = told
    return (name.partition("#")[0], wire, provider, end, [(c.told, c.end) for c in calls], torn)


def wanted(data: bytes) -> list[tuple]:
    found = [one for one in streams_of(data, name="f") if isinstance(one, Found)]
    return sorted(map(repr, (facts_of(one.name, one.take) for one in found)))


@pytest.mark.parametrize("path", [*CAPTURES, *SESSIONS], ids=lambda path: path.name)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_capture_in_pieces_is_the_capture(path: Path, pack):
    data = pack(path.read_bytes())
    ended, lefts = read_on(io.BytesIO(data))
    assert sorted(repr(plain(told)) for told in ended.values()) == wanted(data)
    assert lefts == [one for one in streams_of(data, name="f") if isinstance(one, Left)]


@over_takes(quick=40)
def test_a_recording_in_pieces_is_the_recording(path):
    data = path.read_bytes()
    ended, _ = read_on(io.BytesIO(data))
    assert sorted(repr(plain(told)) for told in ended.values()) == wanted(data)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_slow_pipe_brings_the_same_bytes(path: Path):
    data = path.read_bytes()
    ended, _ = read_on(Slow(data), seed="s")
    found = [one for one in streams_of(data, name="f") if isinstance(one, Found)]
    assert [told[1] for told in ended.values()] == [one.take.wire for one in found]


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"<html>", b'{"a":1}', b"PK\x03\x04", b"\x1f\x8b\x08"]
)
@pytest.mark.parametrize("kind", [io.BytesIO, Slow])
def test_what_is_no_stream_is_the_same_sentence(data, kind):
    ended, lefts = read_on(kind(data))
    assert ended == {}
    assert len(lefts) == 1
    assert lefts[0].name == "f"


def test_a_file_that_is_long_and_no_stream_is_not_read_to_its_end():
    class Endless(Slow):
        def read(self, size: int | None = -1) -> bytes:
            self.given = getattr(self, "given", 0) + 1
            assert self.given < 10
            return b"no stream, and nothing of one\n" * 1000

    _, (left,) = read_on(Endless())
    assert "is text without an event in it" in left.why


@pytest.mark.parametrize("name", ["curl_several.txt.gz", "browser.har", "body.sse", "vcrpy.yaml"])
def test_each_byte_of_a_file_is_told_once_packed_or_not(name):
    file, told = FILES / name, []
    list(opened(io.BytesIO(file.read_bytes()), name="f", advance=told.append))
    assert sum(told) == file.stat().st_size


@pytest.mark.parametrize("packed", [False, True])
def test_of_a_file_that_is_read_twice_each_byte_is_told_once(packed):
    event = b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n'
    wire = b"".join(event % number for number in range(20_000))
    data = gzip.compress(wire) if packed else wire
    told: list[int] = []
    list(opened(io.BytesIO(data), name="f", advance=told.append))
    assert sum(told) == len(data)
    assert min(told) == (0 if not packed else len(data))  # nothing is told while its digest is made
