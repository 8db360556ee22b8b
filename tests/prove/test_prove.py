"""The parts of ``make prove`` in small: each finds nothing here, and finds what is put there to be found."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from streamnorm import Finish, ToolCall
from tests.conftest import ALL, Chat, some
from tests.prove import cuts as cuts_module
from tests.prove.cuts import Stream, every_cut, our_takes, places
from tests.prove.damage import damage
from tests.prove.fuzz import in_its_own_process
from tests.prove.kills import kills, reachable
from tests.prove.run import PARTS, main
from tests.prove.share import Report, Share
from tests.prove.soak import FAULTS, READERS, Case, soak, wrong
from tests.prove.targets import JSON, TARGETS, changed, samples

CALL = Chat.call(0, "c1", "f", '{"a":1}') + Chat.end()


def test_some_damaged_streams_of_each_wire_tell_nothing_that_nobody_said():
    report = damage(Share(60, mutants=14 * 40, jobs=1))
    assert report.found == []
    assert report.tried.startswith("560 damaged streams of 14 wires")


@pytest.mark.parametrize("stream", some(our_takes(), 12), ids=lambda stream: stream.name)
def test_a_stream_that_is_cut_tells_no_other_call(stream: Stream, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cuts_module, "SHORT", 400)  # the others are cut here and there
    monkeypatch.setattr(cuts_module, "ANYWHERE", 15)
    count, found = every_cut(stream)
    assert count > 10
    assert found == []


def test_a_cut_that_tells_another_call_is_found(monkeypatch: pytest.MonkeyPatch):
    stream = Stream("x", "openai_chat", CALL)
    assert every_cut(stream) == (len(CALL), [])
    told = cuts_module.told

    def one_more(stream: Stream, cut: int, end: str):
        events = told(stream, cut, end)
        call = ToolCall(0, "c1", "f", {"a": cut}, "{}")
        return [call, *events] if cut == 20 else events

    monkeypatch.setattr(cuts_module, "told", one_more)
    found = every_cut(stream)[1]
    assert [line.partition(": ")[0] for line in found] == [
        "x cut at 20 (close)",
        "x cut at 20 (fail)",
    ]


def test_a_short_stream_is_cut_at_every_byte():
    assert places(Stream("x", "openai_chat", CALL)) == list(range(len(CALL)))


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_that_are_made_up_break_no_promise(target: str):
    known = list(samples(target))
    assert known
    for number, sample in enumerate(some(known, 30)):
        TARGETS[target](sample)
        dice = random.Random(number)
        body = bytearray(sample)
        for _ in range(dice.randint(1, 5)):
            at = dice.randrange(len(body))
            body[at : at + dice.randint(0, 4)] = dice.randbytes(dice.randint(0, 4))
        TARGETS[target](bytes(body))
        if target in JSON:
            TARGETS[target](changed(sample, number))


@pytest.mark.skipif(not ALL, reason="make test-all has a process for each target")
@pytest.mark.parametrize("target", TARGETS)
def test_each_target_is_fuzzed_in_a_process_of_its_own(target: str):
    count, problem = in_its_own_process(target, 3, "tests")
    assert problem == ""
    assert count > 100


def test_streams_under_faults_tell_no_wrong_call_and_leave_nothing(
    capfd: pytest.CaptureFixture[str],
):
    report = soak(Share(0.1, seed="tests"))
    assert report.found == []
    assert report.tried.startswith("256 streams over loopback")


def test_a_call_that_nobody_said_and_one_that_was_not_told_are_found():
    cases = (Case("s", number) for number in range(500))
    case = next(
        c for c in cases if c.fault == "none" and c.reader == "all" and len(c.talk.said) == 1
    )
    assert len(wrong(case, [ToolCall(0, "c", "none", {}, "{}"), Finish("stop")])) == 2
    assert wrong(case, [])[0].endswith("it does not end well: []")


def test_all_faults_and_readers_have_their_turn():
    cases = [Case("s", number) for number in range(300)]
    assert set(Counter(case.fault for case in cases)) == set(FAULTS)
    assert set(Counter(case.reader for case in cases)) == set(READERS)


# --- the tool ---------------------------------------------------------------------------------------


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, tmp_path) -> dict[str, Report]:
    """What each part says, instead of being run."""
    said = {name: Report(f"tried {name}", []) for name in PARTS}
    for name, (minutes, _) in PARTS.items():
        monkeypatch.setitem(PARTS, name, (minutes, lambda share, name=name: said[name]))
    monkeypatch.setattr("tests.prove.run.BUILD", tmp_path)
    monkeypatch.setattr("tests.promises.results.FILE", tmp_path / "results.json")
    return said


def test_all_parts_are_run_and_told(parts, capsys, tmp_path):
    assert main(["--seed", "s"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:-1] == [f"{name}: tried {name}: nothing found" for name in PARTS]
    assert said[-1].endswith("minutes, seed s: nothing found")
    assert (tmp_path / "results.json").exists()


def test_what_is_found_makes_it_fail(parts, capsys, tmp_path):
    parts["soak"] = Report("tried", ["one call too many"], "redis")
    assert main(["--only", "soak", "--seed", "s"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["soak: tried: 1 FOUND (left out: redis)", "  one call too many"]
    assert not (tmp_path / "results.json").exists()


def test_ctrl_c_ends_it_and_nothing_is_kept(parts, monkeypatch, capsys, tmp_path):
    def stopped(share: Share) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setitem(PARTS, "cuts", (1.0, stopped))
    assert main([]) == 130
    said = capsys.readouterr().out.splitlines()
    assert said == ["damage: tried damage: nothing found", "stopped; nothing is kept"]
    assert not (tmp_path / "results.json").exists()


def test_a_store_without_a_server_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("STREAMNORM_POSTGRES", raising=False)
    monkeypatch.delenv("STREAMNORM_REDIS", raising=False)
    stores, absent = reachable()
    assert stores == ["sqlite-history", "sqlite-log"]
    assert absent == "postgres-history (STREAMNORM_POSTGRES), redis-log (STREAMNORM_REDIS)"


@pytest.mark.skipif(not ALL, reason="make test-all kills some")
def test_processes_that_are_killed_lose_nothing():
    assert kills(Share(0.1)).found == []
