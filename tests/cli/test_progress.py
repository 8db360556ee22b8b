"""How far long work is, on a terminal; nothing anywhere else."""

from __future__ import annotations

import io

import pytest

from streamnorm.cli.progress import Progress
from streamnorm.text.shown import display_width


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def lines(out: io.StringIO) -> list[str]:
    return [line.rstrip() for line in out.getvalue().split("\r") if line.strip()]


def test_it_tells_how_much_is_done_and_how_long_it_will_take() -> None:
    out, clock = Terminal(), Clock()
    with Progress("reading", 200_000_000, "B", out=out, clock=clock) as bar:
        clock.now = 10.0
        bar.advance(50_000_000)
    assert lines(out) == ["reading ██████░░░░░░░░░░░░░░░░░░  25% 50.0 MB of 200.0 MB, 0:30 left"]


def test_without_a_total_it_tells_how_much_and_since_when() -> None:
    out, clock = Terminal(), Clock()
    with Progress("reading", None, "B", out=out, clock=clock) as bar:
        clock.now = 75.0
        bar.advance(1_500)
    assert lines(out) == ["reading 1.5 KB 1:15"]


def test_its_line_is_gone_when_the_work_is_done_or_something_else_is_printed() -> None:
    out, clock = Terminal(), Clock()
    with Progress("reading", 2, "files", out=out, clock=clock) as bar:
        clock.now = 1.0
        bar.advance()
        bar.hide()
        assert out.getvalue().endswith("\r" + " " * 79 + "\r")
        hidden = out.getvalue()
        bar.hide()
        assert out.getvalue() == hidden
        clock.now = 2.0
        bar.advance()
        assert len(lines(out)) == 2
    assert out.getvalue().endswith("\r" + " " * 79 + "\r")


def test_work_that_is_done_in_a_moment_shows_nothing() -> None:
    out, clock = Terminal(), Clock()
    with Progress("reading", 1000, "files", out=out, clock=clock) as bar:
        for _ in range(1000):
            clock.now += 0.0003
            bar.advance()
    assert out.getvalue() == ""


def test_it_is_drawn_a_few_times_a_second_however_often_it_is_told() -> None:
    out, clock = Terminal(), Clock()
    with Progress("reading", 100_000, "files", out=out, clock=clock) as bar:
        for _ in range(100_000):
            clock.now += 0.0001
            bar.advance()
    assert 80 <= len(lines(out)) <= 97


@pytest.mark.parametrize("term", ["no terminal", "dumb"])
def test_nothing_is_written_where_a_line_cannot_be_taken_back(
    term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    out, clock = (io.StringIO() if term == "no terminal" else Terminal()), Clock()
    with Progress("reading", 10, "files", out=out, clock=clock) as bar:
        clock.now = 100.0
        bar.advance()
    assert out.getvalue() == ""


def test_it_has_no_colours_and_moves_nowhere_but_to_the_start_of_its_line() -> None:
    out, clock = Terminal(), Clock()
    with Progress("a\x1b[31m\nb", 10, "files", out=out, clock=clock) as bar:
        clock.now = 100.0
        bar.advance(what="c\r\x07d")
    assert not set(out.getvalue()) & set("\x1b\n\x07")
    assert len(lines(out)) == 1


@pytest.mark.parametrize("columns", [20, 24, 30, 41, 60, 80, 200])
@pytest.mark.parametrize("total", [None, 0, 7, 10**12])
def test_it_fits_the_terminal(
    columns: int, total: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out, clock = Terminal(), Clock()
    with Progress("reading 日本語のファイル.sse " * 3, total, "B", out=out, clock=clock) as bar:
        clock.now = 100.0
        bar.advance(5)
    shown = out.getvalue().split("\r")
    assert lines(out)
    assert {display_width(line) for line in shown} <= {0, columns - 1}


def test_more_steps_than_were_named_are_all_of_them() -> None:
    out, clock = Terminal(), Clock()
    with Progress("reading", 10, "files", out=out, clock=clock) as bar:
        clock.now = 10.0
        bar.advance(30)
    assert lines(out) == ["reading ████████████████████████ 100% 30 files of 10 files, 0:00 left"]


def test_a_terminal_that_went_away_does_not_end_the_work() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    clock = Clock()
    with Progress("reading", 10, "files", out=Gone(), clock=clock) as bar:
        clock.now = 10.0
        bar.advance()
        bar.advance()
