"""The benchmark's own judgement: what it compares, what it calls wrong, what it writes down."""

from __future__ import annotations

import io
import logging
import platform
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree

import httpx
import pytest

from bench import check, page, recording, results, run, ui
from bench.charts import Bar, Group, picture
from bench.crew import Crew, Trouble, Worker
from bench.judge import Heard, judge, judge_take
from bench.latency import percentile
from bench.measure import events_of
from bench.progress import Progress
from bench.readers import heard_from
from bench.report import Figure, Section, number, table, told
from bench.server import http_chunk, stamped
from bench.workloads import MARK, WIRES, build, split_frames
from streamnorm import read_take
from streamnorm.takes.recorder import Recorder
from streamnorm.ui import plain


@pytest.fixture(autouse=True)
def the_log_of_other_tests() -> Iterator[None]:
    """A benchmark switches logging off for its whole process, which here is that of other tests too."""
    yield
    logging.disable(logging.NOTSET)


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


def checked(tmp_path, runs: list[Section]) -> int:
    """The exit code of a check of the pipe, whose runs give these; 1.0 was kept."""
    kept = Section("t")
    kept.figure("Chat text: times the floor", 1.0)
    results.write(tmp_path / "kept.json", {"line": "a day"}, {"pipe": kept})
    words = ["--only", "pipe", "--against", str(tmp_path / "kept.json")]
    return check.main(words, lambda name, options: runs.pop(0))


def a_run(value: float, *wrong: str) -> Section:
    section = Section("t", wrong=list(wrong))
    section.figure("Chat text: times the floor", value)
    return section


def test_what_is_right_and_as_fast_passes_the_check(tmp_path, capsys):
    assert checked(tmp_path, [a_run(1.05)]) == 0
    assert capsys.readouterr().out == (
        "1 ratios, against those of a day\nnothing became slower by more than 10%\n"
    )


@pytest.mark.parametrize(("load", "said"), [(0.5, 0), (9.0, 1)])
def test_what_is_slower_on_a_busy_machine_is_named_and_doubted(
    tmp_path, capsys, monkeypatch, load, said
):
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert checked(tmp_path, [a_run(2.0) for _ in range(1 + check.AGAIN)]) == 1
    doubt = "but the machine is busy (load 9.0, 2 cores): measure when it is quiet"
    named = "slower: pipe, Chat text: times the floor: 1 -> 2 x"
    assert capsys.readouterr().out.splitlines()[1:] == [named, *[doubt] * said]


def test_what_is_faster_but_wrong_fails_the_check_and_is_named(tmp_path, capsys):
    assert checked(tmp_path, [a_run(0.5, "Chat text: 0 calls instead of 2000")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "WRONG: Chat text: 0 calls instead of 2000"


def test_what_is_wrong_only_when_measured_again_fails_the_check_and_is_named_once(tmp_path, capsys):
    runs = [a_run(2.0), a_run(1.9, "lost"), a_run(1.0, "lost")]
    assert checked(tmp_path, runs) == 1
    assert runs == []
    assert capsys.readouterr().out.splitlines()[1:] == [
        "nothing became slower by more than 10%",
        "WRONG: lost",
    ]


def test_a_section_that_is_none_is_refused_with_those_there_are(capsys, monkeypatch):
    with pytest.raises(SystemExit) as ended:
        check.main(["--only", "recordng,pipe"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(
        "argument --only: 'recordng' is none of pipe, live, recording, crowd, ui, startup\n"
    )
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "pip"])
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert "'pip' is none of live, latency, crowd, recording," in capsys.readouterr().err


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


async def test_a_recording_is_judged_by_what_its_take_reads_back_to(tmp_path):
    workload = build("openai_chat", "CROWD")
    path = tmp_path / "take.sse"
    heads = {"content-type": "text/event-stream"}
    response = httpx.Response(200, headers=heads, content=workload.body)
    heard = await heard_from(response, "openai_chat", record=path)
    assert judge(workload, heard) == []
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"read_file"', b'"rm_a_file"'))
    size = len(workload.body)
    changed = f"the take reads back to {size} bytes instead of {size}, or to others"
    assert judge(workload, heard) == [changed]
    path.unlink()
    assert judge(workload, heard) == [
        f"the take cannot be read: [Errno 2] No such file or directory: '{path}'"
    ]


def test_a_recording_that_failed_or_ended_early_or_is_none_is_wrong(tmp_path):
    workload = build("openai_chat", "CROWD")
    first, *_ = split_frames(workload)
    tape = Recorder.open(tmp_path / "cut.sse", provider="openai_chat", seed="s")
    tape.chunk(first)
    tape.close(finished=False)
    assert judge_take(workload, tape.path) == [
        "the take is not finished",
        f"the take reads back to {len(first)} bytes instead of {len(workload.body)}, or to others",
    ]
    failed = {"path": tape.path, "failed": "OSError: File too large"}
    heard = replace(heard_of(workload), recording=failed)
    assert judge(workload, heard) == ["the recording failed: OSError: File too large"]
    assert judge(workload, replace(heard, recording={})) == ["nothing was recorded"]


def test_chunks_that_come_apart_are_written_in_batches_of_a_tenth_of_a_second(tmp_path):
    sizes = []

    class Counted(Recorder):
        def flush(self) -> None:
            sizes.append(len(self._waiting))
            super().flush()

    pace = recording.Pace(0.03)
    path = tmp_path / "take.sse"
    with recording.written_by(pace):
        tape = Counted.open(path, provider="openai_chat", seed="s", clock=pace.clock)
        pace.play(tape, split_frames(build("openai_chat", "CROWD"))[:12])
        assert sizes == [4, 4]  # the other four still wait
        tape.close(finished=True)
    times = [at for at, _ in read_take(path).chunks]
    assert times == [0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.21, 0.24, 0.27, 0.3, 0.33, 0.36]


def test_the_recorder_alone_has_a_figure_without_a_bar_for_each_pace():
    section = Section("t")
    row = recording.paced(section, build("gemini", "W1"), 1)
    assert section.wrong == []
    assert list(section.figures) == [
        "recorder alone, Gemini text, in bursts",
        "recorder alone, Gemini text, 1 ms apart",
        "recorder alone, Gemini text, 5 ms apart",
        "recorder alone, Gemini text, 20 ms apart",
    ]
    assert {(one.unit, one.bar) for one in section.figures.values()} == {("µs", None)}
    assert row == ["Gemini text", *map(told, section.figures.values())]


def told_by(name: str, workload) -> bytes:
    encoder = ui.ENCODERS[name]()
    events = events_of(workload.wire, [workload.body])
    return b"".join([*map(encoder.feed, events), encoder.close()])


@pytest.mark.parametrize("name", ui.ENCODERS)
@pytest.mark.parametrize("wire", WIRES)
def test_what_an_encoder_tells_reads_back_to_what_was_generated(name, wire):
    workload = build(wire, "CROWD")
    assert page.check(name, workload, told_by(name, workload)) == []


@pytest.mark.parametrize(
    ("name", "piece", "end"),
    [
        ("AI SDK", b'"tool-input-delta"', "('finish-step', 'finish')"),
        ("AG-UI", b'"TOOL_CALL_ARGS"', "('TOOL_CALL_END', 'STEP_FINISHED')"),
        ("plain", b'"tool_call_delta"', "('usage', 'finish')"),
    ],
)
def test_what_an_encoder_loses_or_changes_is_wrong(name, piece, end):
    workload = build("openai_chat", "CROWD")
    frames = told_by(name, workload).split(b"\n\n")[:-1]

    def wrong(kept: list[bytes]) -> list[str]:
        return page.check(name, workload, b"\n\n".join([*kept, b""]))

    assert wrong(frames) == []
    assert wrong(frames[:-1]) == [f"the stream ended with {end}"]
    lost = next(n for n, frame in enumerate(frames) if piece in frame)
    again = [] if name == "AG-UI" else ["the arguments of call_c are not those of its pieces"]
    differs = ["the arguments of call_c differ", *again]
    assert wrong(frames[:lost] + frames[lost + 1 :]) == differs
    first = workload.text.split()[0].encode()
    spoken = next(n for n, frame in enumerate(frames) if first in frame)
    length = len(workload.text)
    assert wrong(frames[:spoken] + frames[spoken + 1 :]) == [
        f"{length - len(first) - 1} characters of text instead of {length}"
    ]
    renamed = [frame.replace(b'"read_file"', b'"rm"') for frame in frames]
    assert wrong(renamed) == ["name 'rm' instead of 'read_file'"]


def test_an_encoder_that_loses_text_is_wrong_in_its_section(monkeypatch):
    class Forgetful(plain.Encoder):
        def feed(self, event) -> bytes:
            return b"" if event.kind == "text_delta" else super().feed(event)

    monkeypatch.setitem(ui.ENCODERS, "plain", Forgetful)
    section = Section("t")
    ui.encoders(section, "text", 1)
    length = len(build("openai_chat", "W1").text)
    assert section.wrong == [f"plain, text: 0 characters of text instead of {length}"]


# --- the processes --------------------------------------------------------------------------------


def test_every_wire_is_read_right_over_http_and_its_times_come_out():
    with Crew(peers=False) as crew:
        for wire in WIRES:
            assert crew.contenders(wire, "ours", "SDK") == ["streamnorm"]
            for way in ("event", "16k"):
                job = {"wire": wire, "workload": "CROWD", "way": way}
                for who in ("streamnorm", "streamnorm, record="):
                    answer = crew.ask(who, job="read", **job)
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
