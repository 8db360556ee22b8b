"""Claims of calls that run: believed while their process can keep them, and no longer."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from streamnorm.agent.claims import LEASE, SPARE, Claimant, is_live
from streamnorm.history.settled import Claim

OTHER = """
import sys, msgspec
from streamnorm.agent.claims import Claimant
mine = Claimant()
print(msgspec.json.encode(mine.begin(600, 1)).decode(), flush=True)
sys.stdin.read()
"""


def test_a_claim_of_this_process_is_live_until_its_run_ends():
    run = Claimant()
    claim = run.begin(1, 1)
    assert is_live(claim)
    assert is_live(msgspec.structs.replace(claim, until=0.0))  # it is known to run
    run.end()
    assert not is_live(claim)


def test_a_run_that_was_let_go_of_claims_nothing():
    run = Claimant()
    claim = run.begin(1, 1)
    del run
    assert not is_live(claim)


def test_the_time_of_a_claim_is_that_of_its_handlers_with_some_to_spare(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert Claimant().begin(120, 2).until == 1000 + 240 + SPARE
    assert Claimant().begin(None, 5).until == 1000 + LEASE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody knows that it is gone")
def test_a_claim_of_a_process_that_was_killed_is_void_at_once():
    with subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        claim = msgspec.json.decode(other.stdout.readline(), type=Claim)
        assert is_live(claim)
        assert not is_live(msgspec.structs.replace(claim, until=0.0))
        other.kill()
    assert not is_live(claim)
    assert is_live(msgspec.structs.replace(claim, machine="elsewhere"))
