"""The real Claude Code, Codex and Gemini CLI through the gateway, offline: each row of tools/through.py once
for each program, on one wire after the other. All of them are played by the tool, for docs/gateway.md.

STREAMNORM_AGENTS names a folder with ``node_modules``; without it these tests are left out.
"""

from __future__ import annotations

import re
import shutil

import pytest

from tests.conftest import once
from tools.programs import AGENTS, programs_here
from tools.through import PAGE, PLAYS, ROWS, SAMPLES, TOO_LATE, Outcome, Play, is_right, play_all

TOGETHER = 11  # plays by one gateway, few enough to be done in time on a busy machine
needs_programs = pytest.mark.skipif(
    programs_here() is None or shutil.which("unshare") is None,
    reason=f"{AGENTS} names no folder with the programs, or there is no unshare",
)


@once
def played(first: int) -> dict[str, Outcome]:
    """What came of some of them, side by side."""
    return play_all(SAMPLES[first : first + TOGETHER])


def came_of(play: Play) -> Outcome:
    return played(SAMPLES.index(play) // TOGETHER * TOGETHER)[play.name]


@pytest.mark.parts
@pytest.mark.xdist_group("programs")
@needs_programs
@pytest.mark.parametrize("play", SAMPLES, ids=lambda play: play.name)
def test_what_is_whole_runs_once_and_nothing_else_does(play: Play):
    assert is_right(play, came_of(play)), came_of(play)


def test_the_page_has_every_row_of_all_programs_and_none_is_wrong():
    page = PAGE.read_text()
    rows = page.partition("made by tools.through: rows")[2].partition("<!-- end -->")[0]
    assert "wrong" not in rows
    cells = re.findall(r"\| (✔+|✔ all|error|asked again) (?=\|)", rows)
    assert len(cells) == len(PLAYS)
    assert all(f"| {row.title} |" in rows for row in ROWS.values())


# --- the judge --------------------------------------------------------------------------------------


WHOLE = Play("codex", "parallel", "gemini")
CUT = Play("codex", "cut", "gemini")
BOTH = ["one", "two"]


@pytest.mark.parametrize(
    ("play", "came"),
    {
        "one did not run": (WHOLE, Outcome(["one"], 2, BOTH, told=False, exit=0)),
        "it did not end": (CUT, Outcome([], 2, [], told=True, exit=124, output=TOO_LATE)),
        "one ran twice": (WHOLE, Outcome(["one", "one", "two"], 2, BOTH, told=False, exit=0)),
        "one result is not there": (WHOLE, Outcome(BOTH, 2, ["one"], told=False, exit=0)),
        "the model was asked once more": (WHOLE, Outcome(BOTH, 3, BOTH, told=False, exit=0)),
        "it complained": (WHOLE, Outcome(BOTH, 2, BOTH, told=True, exit=1)),
        "a cut call ran": (CUT, Outcome(["one"], 1, [], told=True, exit=1)),
        "a cut call went back": (CUT, Outcome([], 2, ["one"], told=False, exit=0)),
        "a cut ended quietly": (CUT, Outcome([], 1, [], told=False, exit=0)),
    }.values(),
)
def test_what_others_do_is_wrong(play: Play, came: Outcome):
    assert not is_right(play, came)


def test_what_is_right_is():
    assert is_right(WHOLE, Outcome(BOTH, 2, BOTH, told=False, exit=0))
    assert is_right(CUT, Outcome([], 1, [], told=True, exit=1))
    assert is_right(CUT, Outcome([], 2, [], told=False, exit=0))
