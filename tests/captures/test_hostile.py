"""Damaged and hostile files: nothing is raised, and time and memory stay in proportion."""

from __future__ import annotations

import base64
import gzip
import json
import random
import subprocess
import sys
import tracemalloc
import zlib

import pytest

from streamnorm.captures import FREE, Found, Left, streams_of
from streamnorm.survey import survey
from tests.captures.test_forms import BODY, FILES, HELD, cassette, entry, found_in, har, left_in
from tests.conftest import ALL, RECORDINGS

MUTANTS = 20_000 if ALL else 25  # of each file
SMALL = sorted(HELD)
SAVED = [RECORDINGS / "claude_code" / "sub_agent.sse", RECORDINGS / "codex" / "rollout.sse"]


def mutant(data: bytes, rng: random.Random) -> bytes:
    """The file, damaged in one of many ways."""
    at, other = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
    kind = rng.randrange(7)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[other:]
    if kind == 2:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 3:
        return data[:at] + data[at : at + 300] * rng.randrange(2, 5) + data[at:]
    if kind == 4:
        return data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:]
    if kind == 5:
        return data[at:] + data[:at]
    old, new = rng.choice([(b'"', b"{"), (b":", b": &a"), (b"\n", b"\r"), (b"200", b"999"),
                           (b"[", b"*a"), (b"data", b"dota"), (b"base64", b"text")])  # fmt: skip
    return data.replace(old, new, rng.randrange(1, 4))


@pytest.mark.parametrize("file", [*SMALL, *SAVED], ids=str)
def test_nothing_is_raised_for_what_is_in_a_file(file):
    data = file.read_bytes() if file in SAVED else (FILES / file).read_bytes()
    rng = random.Random(str(file if file not in SAVED else file.name))
    for number in range(MUTANTS):
        streams = list(streams_of(mutant(data, rng), name="m"))
        assert streams
        assert all(isinstance(one, Found | Left) for one in streams)
        if number % 20 == 0:
            for one in streams:
                if isinstance(one, Found):
                    survey(one.take)


def peak_of(data: bytes) -> int:
    """The most memory that is in use while the file is read, stream by stream."""
    tracemalloc.start()
    try:
        for _ in streams_of(data, name="h"):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_of_gzip_is_refused():
    bomb = gzip.compress(gzip.compress(b"data: 1\n\n" * 4000) + b"\0")
    zeros = gzip.compress(b"\0" * (FREE * 3))
    (left,) = left_in(zeros)
    assert left.why == (
        "becomes too long when it is unpacked: more than 100 times as long unpacked as packed, "
        "which is refused. Unpack it by hand if you trust it."
    )
    assert left_in(bomb)[0].why.startswith("is packed more than once")
    assert peak_of(zeros) < FREE


def test_a_bomb_inside_a_har_is_refused():
    zeros = base64.b64encode(zlib.compress(b"\0" * (FREE * 3))).decode()
    data = har(
        entry(zeros, content={"encoding": "base64"}), entry(zeros, content={"encoding": "base64"})
    )
    assert found_in(data) == []
    assert all("times as long" in left.why for left in left_in(data))


def test_many_small_bombs_inside_a_har_are_refused_together():
    event = 'data: {"choices":[{"delta":{"content":"' + "x" * 3000 + '"}}]}\n\n'
    small = base64.b64encode(gzip.compress(event.encode() * 300)).decode()
    data = har(*[entry(small, content={"encoding": "base64"}) for _ in range(100)])
    size = len(event) * 300
    assert [len(one.take.wire) for one in found_in(data)] == [size] * (
        (FREE + 100 * len(data)) // size + 1
    )
    assert left_in(data)[-1].why == ("becomes too long when it is read. What follows is left out.")


def test_aliases_that_grow_are_refused():
    laughs = "a0: &a0 [" + "x, " * 1000 + "]\n"
    laughs += "".join(f"a{n}: &a{n} [" + f"*a{n - 1}, " * 50 + "]\n" for n in range(1, 12))
    (left,) = left_in(b"version: 1\n" + laughs.encode())
    assert left.why == "begins like a cassette of VCR, and repeats itself too often."


def test_a_body_that_is_repeated_by_aliases_is_bounded():
    body = cassette(f"body: {{string: &body '{BODY}{'x' * 100_000}'}}")
    again = b"- {request: {}, response: {body: {string: *body}}}\n" * 20_000
    data = body.replace(b"version: 1\n", again + b"version: 1\n")
    streams = list(streams_of(data, name="h"))
    assert "repeats itself too often" in streams[-1].why
    assert len(streams) < 100


@pytest.mark.parametrize("size", [1_000, 200_000])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"interactions: " + b"[" * n,
        lambda n: b"interactions:\n" + b"".join(b" " * at + b"-\n" for at in range(min(n, 2000))),
        lambda n: b'{"log":{"entries":' + b"[" * n,
        lambda n: b'{"interactions":' + b'{"a":' * n,
        lambda n: b'{"log":{"entries":[{"request":' + b"[" * n + b"]" * n + b"}]}}",
    ],
    ids=["yaml", "yaml_block", "har", "json_cassette", "har_entry"],
)
def test_what_is_nested_without_end_is_a_sentence(make, size):
    streams = list(streams_of(make(size), name="h"))
    assert [type(one) for one in streams] == [Left]


SIZES = (2_000, 20_000)
LARGE = {
    "har": lambda n: har(*[entry(None, "image/png", request={"url": "https://x.example/"})] * n),
    "har_of_streams": lambda n: har(*[entry(BODY + "\n\n")] * n),
    "curl": lambda n: (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n" + BODY.encode() + b"\n\n") * n,
    "curl_heads": lambda n: b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * n * 4,
    "curl_status": lambda n: b"HTTP/1.1 200 OK\r\n\r\n" * n,
    "chunks": lambda n: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * n,
    "cassette": lambda n: cassette(f"body: '{BODY}'").replace(
        b"version: 1", b"- {request: {}, response: {body: x}}\n" * n + b"version: 1"),
    "lines": lambda n: b'{"type":"system","subtype":"x"}\n' * n,
    "marks": lambda n: b": streamnorm {}\n" + b": +1\n" * n,
}  # fmt: skip


@pytest.mark.parametrize("kind", LARGE)
def test_ten_times_the_file_takes_about_ten_times_the_work(kind):
    def work(size: int) -> int:
        """Calls and returns of functions, Python's and C's: what it did, whatever else runs."""
        count = 0

        def step(*_: object) -> None:
            nonlocal count
            count += 1

        data = LARGE[kind](size)
        sys.setprofile(step)
        try:
            for _ in streams_of(data, name="h"):
                pass
        finally:
            sys.setprofile(None)
        return count

    small, large = (work(size // 10) for size in SIZES)
    assert large < 12 * small + 5000


def test_a_file_with_many_entries_is_read_in_proportion():
    data = b'{"log":{"entries":[' + b"{}," * 300_000 + b"{}]}}"
    code = (
        "import sys; from streamnorm.captures import streams_of\n"
        "n = sum(1 for _ in streams_of(sys.stdin.buffer.read(), name='h'))\n"
        # of this program alone: getrusage counts what began it as well
        "peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "print(n, *peak)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=data, check=True, stdout=subprocess.PIPE, timeout=100
    )
    count, kilobytes = map(int, done.stdout.split())
    assert count == 300_001
    assert kilobytes < 300_000


def test_headers_of_any_number_and_length_are_bounded():
    headers = [{"name": "x-a", "value": "v" * 20_000}] * 2000
    one = entry(BODY + "\n\n", response={"status": 200, "headers": headers,
                                        "content": {"text": BODY + "\n\n"}})  # fmt: skip
    (found,) = found_in(har(one))
    assert len(json.dumps(found.take.header)) < 10_000
