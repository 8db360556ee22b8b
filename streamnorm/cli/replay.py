"""``streamnorm replay``: a take in, a live view or one event per line out.

Rule: the exit code tells a program what the view tells a person: 3 if the stream failed or any
call of it broke.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..events import Event
    from ..takes.format import Take

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm replay recordings/anthropic/parallel_calls.sse
  streamnorm replay recordings/gemini/thinking.sse --pace 1         as it arrived
  streamnorm replay answer.sse --provider openai_chat --json | jq 'select(.kind == "tool_call")'
  streamnorm replay ~/.codex/sessions/…/rollout-….jsonl             what an agent program saved
  curl -N ... > answer.sse && streamnorm replay answer.sse          any response body is a take

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
    parser.add_argument("file", metavar="FILE", help="a take or a saved response body; - for stdin")
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
    add_color_options(parser)
    add_log_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replays the file and says how it ended."""
    from .log import log_to_stderr

    log_to_stderr(args.log)
    take = _take(args.file)
    _mention(take, args)
    if (told := _as_session(take, args)) is not None:
        return told
    return _as_json(take, args) if args.json else _as_view(take, args)


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


def _take(file: str) -> Take:
    from ..takes.format import parse_take, read_take

    return parse_take(sys.stdin.buffer.read(), name="stdin") if file == "-" else read_take(file)


def _mention(take: Take, args: argparse.Namespace) -> None:
    if take.torn:
        print("streamnorm: the take's last chunk is torn and was left out", file=sys.stderr)
    if args.pace and not take.timed:
        print("streamnorm: the take has no arrival times; --pace changes nothing", file=sys.stderr)


def _as_json(take: Take, args: argparse.Namespace) -> int:
    from ..events import event_to_json
    from ..takes.pipe import pipe_for
    from ..text.shown import escape_json
    from .play import play

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # JSON, whatever the locale says
    trouble = False
    for events in play(take, pipe_for(take, args.provider), pace=args.pace):
        for event in events:
            trouble |= is_trouble(event)
            sys.stdout.write(escape_json(event_to_json(event).decode()) + "\n")
        sys.stdout.flush()
    return 3 if trouble else 0


def _as_session(take: Take, args: argparse.Namespace) -> int | None:
    """The streams of an agent program one after the other; None if it is no such session."""
    from ..events import event_to_json
    from ..text.shown import clean, escape_json
    from .play import programs_streams
    from .style import style_for
    from .view import View

    streams = programs_streams(take, args.provider)
    if streams is None:
        return None
    for number, (lane, events, notes) in enumerate(streams, start=1):
        if args.json:
            lines = (escape_json(event_to_json(event).decode()) for event in events)
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            continue
        whose = "" if lane is None else f", agent {clean(lane)}"
        print(f"\n── {number} of {len(streams)}{whose}")
        view = View(sys.stdout, style_for(sys.stdout, args.color))
        for event in events:
            view.show(event)
        view.notes(notes)
    return 3 if any(is_trouble(e) for _, events, _ in streams for e in events) else 0


def _as_view(take: Take, args: argparse.Namespace) -> int:
    from ..takes.pipe import pipe_for
    from .play import play
    from .style import style_for
    from .view import View

    pipe = pipe_for(take, args.provider)
    view = View(sys.stdout, style_for(sys.stdout, args.color))
    trouble = False
    for events in play(take, pipe, pace=args.pace):
        for event in events:
            trouble |= is_trouble(event)
            view.show(event)
        sys.stdout.flush()
    view.notes(pipe.notes)
    return 3 if trouble else 0


def is_trouble(event: Event) -> bool:
    """Does this event make the exit code 3?"""
    return event.kind in ("failed", "broken_tool_call")
