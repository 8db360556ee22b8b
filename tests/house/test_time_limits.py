"""No test goes on for ever, whatever it waits for: it is failed, and the next one has its turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

HANGING = """
import asyncio
import threading

import pytest


async def test_that_waits_for_what_never_comes():
    await asyncio.Event().wait()


async def test_that_is_never_idle():
    while True:
        await asyncio.sleep(0)


async def test_whose_other_task_is_interrupted_in_its_place():
    busy = asyncio.create_task(never_done())
    await asyncio.Event().wait()


async def never_done():
    while True:
        pass


def test_that_waits_for_a_thread():
    threading.Event().wait()


def test_that_swallows_what_interrupts_it():
    for _ in range(3):
        try:
            threading.Event().wait()
        except BaseException:
            pass
    threading.Event().wait()


async def test_that_goes_on_when_it_is_cancelled():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass


@pytest.fixture
def never_given():
    threading.Event().wait()


def test_that_is_never_given_what_it_needs(never_given):
    pass


@pytest.fixture
async def never_taken_away():
    yield
    await asyncio.Event().wait()


async def test_that_leaves_what_never_ends(never_taken_away):
    pass


def test_that_has_its_turn_behind_all_of_them():
    pass
"""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="the system has no SIGALRM")
def test_a_test_that_hangs_is_failed_and_the_next_one_has_its_turn(tmp_path: Path):
    (tmp_path / "test_hanging.py").write_text(HANGING)
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", tmp_path, "-rA", "--tb=line",
         *options, tmp_path / "test_hanging.py"],
        cwd=ROOT, env=os.environ | {"STREAMNORM_LIMIT": "0.5"}, timeout=60,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = told.stdout.splitlines()
    passed = {line.partition("::")[2] for line in lines if line.startswith("PASSED ")}
    stopped = {
        line.partition("::")[2].partition(" - ")[0]
        for line in lines
        if line.startswith(("FAILED ", "ERROR ")) and "::" in line
    }
    assert passed == {
        "test_that_has_its_turn_behind_all_of_them",
        "test_that_leaves_what_never_ends",  # that is: until it left
    }, told.stdout + told.stderr
    assert stopped == {
        "test_that_waits_for_what_never_comes", "test_that_is_never_idle",
        "test_whose_other_task_is_interrupted_in_its_place", "test_that_waits_for_a_thread",
        "test_that_swallows_what_interrupts_it", "test_that_goes_on_when_it_is_cancelled",
        "test_that_is_never_given_what_it_needs", "test_that_leaves_what_never_ends",
    }  # fmt: skip
    assert "not done after 0.5 s" in told.stdout
