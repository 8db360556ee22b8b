"""Peak memory is bounded for every hostile input: read in a process that has 512 MiB for everything."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.pipe.hostile import BODIES

pytest.importorskip("resource")

CUT, BAD, LIMIT, END = "failed truncated", "failed protocol", "failed limit", "finish stop"
# How each ends, fed whole and byte by byte (there it is smaller, and so are the limits).
ENDS: dict[str, tuple[str, str]] = {
    "a status with arguments": (CUT, CUT),
    "a status with long arguments": (CUT, CUT),
    "an object of quotes to be quoted": (CUT, CUT),
    "an object of quotes where a list should be": (CUT, CUT),
    "a list without an end": (BAD, BAD),
    "arguments nested without an end": (END, LIMIT),
    "nested arguments": (END, END),
    "a nested object of arguments": (BAD, BAD),
    "a nested item": (BAD, BAD),
    "unknown fields": (BAD, BAD),
    "unknown fields at the top": (BAD, BAD),
    "63 unknown fields beside a long text": (CUT, CUT),
    "64 odd fields": (BAD, BAD),
    "an endless id": (LIMIT, LIMIT),
    "an endless name": (LIMIT, LIMIT),
    "an endless name in pieces": (LIMIT, CUT),
    "ids without an end": (CUT, CUT),
    "ids of one item without an end": (CUT, CUT),
    "an endless frame": (LIMIT, LIMIT),
    "an endless comment": (LIMIT, LIMIT),
    "endless lines": (LIMIT, LIMIT),
    "an endless array": (LIMIT, LIMIT),
    "an endless line": (LIMIT, LIMIT),
    "a frame of two gigabytes": (BAD, BAD),
    "a half beside a character of every private block": (BAD, BAD),
    "halves": (CUT, CUT),
    "halves in arguments": (END, END),
    "choices without an end": (LIMIT, CUT),
    "candidates without an end": (LIMIT, CUT),
    "many choices in a chunk": (LIMIT, CUT),
    "many candidates in a chunk": (LIMIT, LIMIT),
    "deep places of many values, out of order": (LIMIT, CUT),
    "a number with many digits": (END, LIMIT),
    "a number with a large exponent": (END, LIMIT),
    "snapshots": (CUT, CUT),
    "a list with one far item": (CUT, CUT),
    "deep places of values": (CUT, CUT),
    "copies of texts": (CUT, CUT),
    "outputs without ids": (CUT, CUT),
    "no JSON": (BAD, BAD),
}


@pytest.mark.parametrize(("how", "at"), [("whole", 0), ("bytewise", 1)])
def test_no_input_needs_more_memory_than_its_limits_allow(how: str, at: int):
    ran = subprocess.run(
        [sys.executable, "-m", "tests.pipe.hostile", how],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    assert json.loads(ran.stdout) == {what: both[at] for what, both in ENDS.items()}


def test_every_hostile_body_is_asked_for():
    assert list(ENDS) == list(BODIES)
