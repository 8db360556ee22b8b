"""``streamnorm replay``: a file or a pipe with streams in, a live view or one event per line out.

Rule: the exit code tells a program what the view tells a person: 3 if the stream failed or any
call of it broke.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import TYPE_CHECKING, Protocol

from ..events import event_to_json
from ..takes.pipe import pipe_for, resume_in
from ..text.shown import clean, escape_json
from .play import LONGEST_WAIT

if TYPE_CHECKING:
    from collections import Counter

    from ..captures.tape import Bit, Part
    from ..events import Event
    from .sources import Sources
    from .view import View

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm replay recordings/anthropic/parallel_calls.sse
  streamnorm replay recordings/gemini/thinking.sse --pace 1         as it arrived
  streamnorm replay answer.sse --provider openai_chat --json | jq 'select(.kind == "tool_call")'
  streamnorm replay ~/.codex/sessions/…/rollout-….jsonl             what an agent program saved
  streamnorm replay session.har#3                                   the third stream of a capture
  curl -N ... | streamnorm replay -                                 events as the bytes come

exit codes: 0 finished, 2 usage or no readable take, 3 the stream failed or a call broke
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .style import add_color_options

    parser = commands.add_parser(
        "replay",
        help="replay a recorded stream and watch its events",
        description="Replay a recorded stream: text, reasoning, tool calls, results, the ending.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", metavar="FILE",
        help="a take, a saved body, or a capture (HAR, cassette, curl -i …), of which a.har#3 is the "
        "third stream; - for stdin, whose events are told as the bytes come",
    )  # fmt: skip
    parser.add_argument(
        "--provider",
        metavar="P",
        help="whose wire it is (see `streamnorm providers`); default: what the take says, or auto",
    )
    parser.add_argument("--json", action="store_true", help="print one event per line as JSON")
    parser.add_argument(
        "--pace",
        type=pace,
        default=0.0,
        metavar="X",
        help="the speed: 0 at once (default), 1 as it arrived, 2 twice as fast",
    )
    parser.add_argument(
        "--seed", metavar="TEXT",
        help="what ids are minted from; default: what the take says, a digest of the file, or, of a "
        "pipe, made up",
    )  # fmt: skip
    add_color_options(parser)
    add_log_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replays the file and says how it ended."""
    from .log import log_to_stderr
    from .sources import Sources

    log_to_stderr(args.log)
    sources = Sources([args.file], args.provider, seed=args.seed, quiet=sys.stdout.isatty())
    teller = _AsJson() if args.json else _AsView(args)
    replayed = _Replayed(args, teller)
    for part, bit in sources:
        replayed.hear(part, bit, sources)
    return replayed.end(sources)


def pace(text: str) -> float:
    """A pace from the command line: a number from 0 up.

    >>> pace("0.5")
    0.5
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return value


def add_log_option(parser: argparse.ArgumentParser) -> None:
    """``--log``: off unless asked for, as the view shows the notes by itself."""
    parser.add_argument(
        "--log",
        choices=("debug", "info", "warning"),
        metavar="LEVEL",
        help="also write the log to stderr: debug, info or warning",
    )


class _Teller(Protocol):
    """Says what is heard."""

    def begin(self, part: Part, number: int) -> None:
        """Another stream, of several."""

    def tell(self, events: list[Event]) -> None:
        """What it tells."""

    def end(self, notes: Counter[str]) -> None:
        """It is over."""


class _AsJson:
    """One event to a line."""

    def __init__(self) -> None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # JSON, whatever the locale says

    def begin(self, part: Part, number: int) -> None:
        """Lines follow lines."""

    def tell(self, events: list[Event]) -> None:
        lines = [escape_json(event_to_json(event).decode()) + "\n" for event in events]
        sys.stdout.write("".join(lines))
        sys.stdout.flush()

    def end(self, notes: Counter[str]) -> None:
        """The last event has said so."""


class _AsView:
    """For people."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._color = args.color
        self._view = self._new()

    def _new(self) -> View:
        from .style import style_for
        from .view import View

        return View(sys.stdout, style_for(sys.stdout, self._color))

    def begin(self, part: Part, number: int) -> None:
        whose = "" if part.lane is None else f", agent {clean(part.lane)}"
        print(f"\n── {number}{whose}")
        self._view = self._new()

    def tell(self, events: list[Event]) -> None:
        for event in events:
            self._view.show(event)
        sys.stdout.flush()

    def end(self, notes: Counter[str]) -> None:
        self._view.notes(notes)


class _Playing:
    """A stream that has begun: its pipe, and what it told while another one was shown."""

    def __init__(self, part: Part, provider: str | None) -> None:
        self.part = part
        self.pipe = pipe_for(part, provider)
        self.before = 0.0
        self.waiting: list[Event] = []
        self.over = False

    def hear(self, bit: Bit | None) -> list[Event]:
        """What it tells now."""
        if bit is None:
            self.over = True
            limit = self.part.limit
            return (
                self.pipe.close() if limit is None else self.pipe.fail("limit", limit, code="lanes")
            )
        if not bit.data:
            resume_in(self.pipe)
        return self.pipe.feed(bit.data)


class _Replayed:
    """The streams of a file, shown one after the other: of those that are said at the same time, the one
    that began first is shown as it comes, and the others wait."""

    def __init__(self, args: argparse.Namespace, teller: _Teller) -> None:
        self._args, self._teller = args, teller
        self._playing: dict[Part, _Playing] = {}  # in the order in which they began
        self._number = 0
        self._trouble = False
        self._untimed = False

    def hear(self, part: Part, bit: Bit | None, sources: Sources) -> None:
        """A stream says something."""
        if part not in self._playing:
            self._playing[part] = _Playing(part, self._args.provider)
            if len(self._playing) == 1:
                self._show(part, sources)
        playing = self._playing[part]
        if bit is not None:
            self._wait(playing, bit)
        told = playing.hear(bit)
        self._trouble |= any(map(is_trouble, told))
        if playing is next(iter(self._playing.values())):
            self._tell(told, sources)
            self._go_on(sources)
        else:
            playing.waiting += told

    def end(self, sources: Sources) -> int:
        """All were told; the exit code."""
        if self._untimed:
            sources.say("the take has no arrival times; --pace changes nothing")
        if not self._number:
            return 2
        return 3 if self._trouble else 2 if sources.failed else 0

    def _tell(self, events: list[Event], sources: Sources) -> None:
        if events:
            sources.hide()
            self._teller.tell(events)

    def _show(self, part: Part, sources: Sources) -> None:
        self._number += 1
        if part.nth is not None or self._number > 1:
            sources.hide()
            self._teller.begin(part, self._number)

    def _go_on(self, sources: Sources) -> None:
        """To the next ones, if this one is over."""
        while self._playing:
            shown = next(iter(self._playing.values()))
            self._tell(shown.waiting, sources)
            shown.waiting = []
            if not shown.over:
                return
            self._teller.end(shown.pipe.notes)
            del self._playing[shown.part]
            if shown.part.torn:
                sources.say("the take's last chunk is torn and was left out")
            self._untimed |= bool(self._args.pace) and not shown.part.timed
            if self._playing:
                self._show(next(iter(self._playing)), sources)

    def _wait(self, playing: _Playing, bit: Bit) -> None:
        if self._args.pace > 0:
            passed = max(0.0, bit.at - playing.before) / self._args.pace
            time.sleep(min(passed, LONGEST_WAIT))
            playing.before = bit.at


def is_trouble(event: Event) -> bool:
    """Does this event make the exit code 3?"""
    return event.kind in ("failed", "broken_tool_call")
