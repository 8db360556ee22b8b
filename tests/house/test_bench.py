"""The benchmark's own judgement: what it compares, what it calls wrong, what it writes down."""

from __future__ import annotations

import io
import platform
import sys
from argparse import Namespace
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from bench import check, results, run
from bench.charts import Bar, Group, picture
from bench.crew import Crew, Trouble, Worker
from bench.judge import Heard, judge
from bench.latency import percentile
from bench.progress import Progress
from bench.report import Figure, Section, number, table, told
from bench.server import http_chunk, stamped
from bench.workloads import MARK, WIRES, build, split_frames

# --- what became slower ---------------------------------------------------------------------------

FAST, SLOW = ("pipe", "Chat text"), ("pipe", "Chat tools")


def never(suspicious: set[check.What]) -> dict[check.What, float]:
    raise AssertionError(f"nothing is suspicious, yet measured again: {suspicious}")


def test_what_is_slower_by_a_tenth_or_less_is_not_measured_again():
    before = {FAST: 1.0, SLOW: 2.0}
    assert check.slower(before, {FAST: 1.10, SLOW: 1.5}, never) == {}


def test_what_stays_slower_is_named_with_both_values():
    asked: list[set[check.What]] = []

    def again(suspicious: set[check.What]) -> dict[check.What, float]:
        asked.append(set(suspicious))
        return {SLOW: 3.0 - len(asked) / 4}

    found = check.slower({FAST: 1.0, SLOW: 2.0}, {FAST: 1.0, SLOW: 2.9}, again)
    assert found == {SLOW: (2.0, 2.25)}
    assert asked == [{SLOW}] * check.AGAIN


def test_what_was_slow_once_is_not_named():
    asked: list[set[check.What]] = []

    def again(suspicious: set[check.What]) -> dict[check.What, float]:
        asked.append(set(suspicious))
        return {SLOW: 2.1, FAST: 9.0}  # the other one is disturbed now, and was fine before

    assert check.slower({FAST: 1.0, SLOW: 2.0}, {FAST: 1.0, SLOW: 4.0}, again) == {}
    assert asked == [{SLOW}]


def test_a_figure_that_only_one_run_has_is_not_compared():
    assert check.slower({FAST: 1.0}, {SLOW: 9.0}, never) == {}


def test_only_ratios_are_compared():
    section = Section("t")
    section.figure("times the floor", 1.5, bar=1.6)
    section.figure("more per chunk", 4.0, "µs", 5.0)
    assert check.ratios({"pipe": section}) == {("pipe", "times the floor"): 1.5}


@pytest.mark.parametrize(
    ("names", "wires"),
    [
        (["Chat tools, 16 KiB: x", "Chat text: x"], ("openai_chat",)),
        (["Gemini, whole: x", "Anthropic text: x"], ("anthropic", "gemini")),
        (["import: x", "Chat text: x"], WIRES),
    ],
)
def test_only_the_wires_of_suspects_are_measured_again(names, wires):
    assert check.wires_of(names) == wires


# --- what is wrong --------------------------------------------------------------------------------


def heard_of(workload) -> Heard:
    return Heard(workload.text, [(c.id, c.name, c.arguments) for c in workload.calls])


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_generated_is_right(wire):
    assert judge(build(wire, "CROWD"), heard_of(build(wire, "CROWD"))) == []


def test_a_contender_that_is_wrong_is_told_where():
    workload = build("anthropic", "CROWD")
    call_id, name, arguments = heard_of(workload).calls[0]
    right = heard_of(workload)
    assert judge(workload, replace(right, calls=[])) == ["0 calls instead of 1"]
    assert judge(workload, replace(right, calls=[(call_id, name, arguments + " ")])) == [
        "the arguments of call_c differ"
    ]
    assert judge(workload, replace(right, calls=[("x", "y", arguments)])) == [
        "id 'x' instead of 'call_c'",
        "name 'y' instead of 'read_file'",
    ]
    length = len(workload.text)
    assert judge(workload, replace(right, text=workload.text[1:])) == [
        f"{length - 1} characters of text instead of {length}"
    ]
    assert judge(workload, replace(right, end="failed")) == ["the stream ended with failed"]


# --- the processes --------------------------------------------------------------------------------


def test_every_wire_is_read_right_over_http_and_its_times_come_out():
    with Crew(peers=False) as crew:
        for wire in WIRES:
            assert crew.contenders(wire, "ours", "SDK") == ["streamnorm"]
            for way in ("event", "16k"):
                job = {"wire": wire, "workload": "CROWD", "way": way}
                answer = crew.ask("streamnorm", job="read", **job)
                assert answer is not None
                assert answer["wrong"] == []
                assert answer["cpu"] > 0
            for who in ("bare httpx", "httpx-sse + orjson", "streamnorm"):
                answer = crew.ask(who, job="latency", wire=wire, workload="STAMP-5")
                assert answer is not None
                assert answer["wrong"] == []
                assert len(answer["micros"]) == 5
                assert min(answer["micros"]) > 0
        answer = crew.ask("bare httpx", job="read", wire="acme", workload="CROWD", way="event")
        assert answer == {"error": "KeyError: 'acme'"}


def test_streams_of_a_crowd_wait_for_each_other_and_are_all_right():
    with Crew(peers=False) as crew:
        answer = crew.ask("streamnorm", job="crowd", streams=8)
    assert answer is not None
    assert answer["wrong"] == []
    assert 0 < answer["reading"] <= answer["whole"]


def test_a_process_that_dies_tells_its_last_words():
    worker = Worker([sys.executable, "-c", "raise SystemExit('no such module')"])
    with pytest.raises(Trouble, match="no such module"):
        worker.ask({"job": "read"})
    worker.stop()


def test_an_event_carries_the_time_at_which_it_is_asked_for():
    frames = tuple(split_frames(build("openai_responses", "STAMP-3")))
    made = list(stamped(frames))
    assert not [frame for frame in made if MARK.encode() in frame]
    deltas = [
        frame for frame, asked in zip(made, frames, strict=True) if asked.count(b"@" * 20) == 1
    ]
    whole = next(frame for frame in made if b'"response.output_text.done"' in frame)
    stamps = [delta.split(b'"delta":"')[1][:20] for delta in deltas]
    assert stamps == sorted(stamps)
    assert b"".join(stamps) in whole


def test_a_chunk_of_a_body_begins_with_its_length_in_hex():
    assert http_chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


# --- what is said and kept ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(1.4321, "x", 1.6), "1.43 x (≤ 1.6)"),
        (Figure(1.9, "x", 1.6), "**1.9 x** (missed, bar 1.6)"),
        (Figure(17.26, "µs"), "17.3 µs"),
        (Figure(1.6, "x", 1.6), "1.6 x (≤ 1.6)"),
    ],
)
def test_a_figure_says_whether_its_bar_was_reached(figure, text):
    assert told(figure) == text


def test_a_missed_bar_is_a_sentence_and_a_reached_one_is_none():
    section = Section("t")
    section.figure("a", 2.0, bar=1.6)
    section.figure("b", 1.0, bar=1.6)
    assert section.missed() == ["a: 2 x, the bar is 1.6"]


def test_numbers_have_the_digits_that_say_something():
    values = (0.333, 1.6, 12.34, 456.7, 12345.6, 0.0, 100.0)
    assert [number(value) for value in values] == [
        "0.33",
        "1.6",
        "12.3",
        "457",
        "12,346",
        "0",
        "100",
    ]


def test_a_table_aligns_numbers_to_the_right():
    assert table(["a", "n"], [["xyz", "1.0"]]).splitlines() == [
        "| a   |   n |",
        "| --- | --: |",
        "| xyz | 1.0 |",
    ]


def test_a_percentile_is_one_of_the_values():
    assert percentile([float(n) for n in range(100)], 99) == 99.0
    assert percentile([float(n) for n in range(1000)], 99) == 990.0
    assert percentile([7.0], 50) == 7.0


def test_results_come_back_as_they_were_and_name_no_machine(tmp_path):
    section = Section("t", ["a line"], {"us": 1.23456789}, wrong=["w"], notes=["n"])
    section.figure("a", 1.5, bar=1.6)
    about = results.machine()
    results.write(tmp_path / "r.json", about, {"pipe": section})
    machine, sections = results.read(tmp_path / "r.json")
    assert machine == about
    assert sections == {"pipe": replace(section, data={"us": 1.235})}
    assert platform.node() not in (tmp_path / "r.json").read_text()


@pytest.mark.parametrize("part", [{"quick": True}, {"no_peers": True}, {"only": ["live"]}])
def test_only_a_whole_run_is_kept(part):
    whole = {"quick": False, "no_peers": False, "only": list(run.SECTIONS), "wires": list(WIRES)}
    assert run.kept_as(Namespace(**whole)) == results.RESULTS
    assert run.kept_as(Namespace(**whole | part)) is None


def test_every_section_is_a_module_that_runs_and_those_checked_are_sections():
    assert set(check.CHECKED) < set(run.SECTIONS)
    assert all((run.HERE / f"{name}.py").exists() for name in run.SECTIONS)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (io.StringIO(), "...  25% 0:00  live: Chat\n"),
        (Terminal(), "\r\x1b[2K██████░░░░░░░░░░░░░░░░░░  25% 0:00  live: Chat"),
    ],
)
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(out, said):
    progress = Progress({"live": 30, "pipe": 30}, out)
    progress.section("live")(1, 2, "Chat")
    assert out.getvalue() == said


def test_a_picture_has_bars_as_long_as_their_values_for_light_and_dark():
    text = picture(
        "T & t", "µs per event", [Group("g", [Bar("a", 10.0), Bar("b<", 5.0, True, 4.0)])]
    )
    root = ElementTree.fromstring(text)
    svg = "{http://www.w3.org/2000/svg}"
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{svg}rect")]
    assert widths == [460.0, 230.0]
    assert [rect.attrib["class"] for rect in root.iter(f"{svg}rect")] == ["other", "ours"]
    assert [line.attrib["x1"] for line in root.iter(f"{svg}line")] == ["374.0"]
    assert "prefers-color-scheme: dark" in text
    words = [one.text for one in root.iter(f"{svg}text")]
    assert words == ["T & t", "µs per event; less is better", "g", "a", "10 µs", "b<", "5 µs"]
