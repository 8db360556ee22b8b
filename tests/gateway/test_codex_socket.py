"""The real Codex over the WebSocket of the gateway, offline: each play of tools/codex_socket.py.

STREAMNORM_AGENTS names a folder with ``node_modules``; without it these tests are left out.
"""

from __future__ import annotations

import shutil

import pytest

from streamnorm import read_request
from tools.codex_socket import PLAYS, RUNS, Outcome, Play, play_all
from tools.programs import AGENTS, programs_here

pytestmark = [
    pytest.mark.parts,
    pytest.mark.xdist_group("programs"),
    pytest.mark.skipif(
        programs_here() is None or shutil.which("unshare") is None,
        reason=f"{AGENTS} names no folder with the program, or there is no unshare",
    ),
]


@pytest.fixture
def came(play: Play) -> Outcome:
    return play_all([play.name])[play.name]


@pytest.mark.parametrize(
    "play", [play for play in PLAYS if play.row in RUNS], ids=lambda play: play.name
)
def test_what_is_whole_runs_once_and_only_the_news_is_sent(play: Play, came: Outcome):
    assert (came.ran, came.exit) == (RUNS[play.row], 0)
    assert came.spoken == ["websocket"]
    assert came.continued == [False, True, True]  # the first only prepares
    assert len(came.asked) == 2
    turns = read_request(play.wire, came.asked[1]).conversation.turns
    returned = [result.call.arguments["cmd"] for turn in turns for result in turn.results]
    assert sorted(command.split()[1] for command in returned) == RUNS[play.row]
    assert [row["state"] for row in came.rows] == ["done", "done", "done"]


@pytest.mark.parametrize(
    "play", [play for play in PLAYS if play.row not in RUNS], ids=lambda play: play.name
)
def test_nothing_else_runs_and_codex_says_so(play: Play, came: Outcome):
    assert (came.ran, came.exit) == ([], 1)
    assert came.spoken[0] == "websocket"
    assert "turn.failed" in came.output
