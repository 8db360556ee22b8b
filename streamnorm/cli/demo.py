"""``streamnorm demo``: a folder of takes in, one take of each provider played and one table out.

Rule: works offline, from files alone, and shows at a glance that calls of all wires look the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text.shown import clean

if TYPE_CHECKING:
    from ..events import ToolCall
    from .style import Style

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm demo                     the takes in ./recordings
  streamnorm demo recordings --pace 1
"""

HEADS = ("provider", "name", "arguments", "id", "id source")
ARGUMENTS, ID = HEADS.index("arguments"), HEADS.index("id")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .replay import add_log_option, pace
    from .style import add_color_options

    parser = commands.add_parser(
        "demo",
        help="replay one take of each provider and compare the calls",
        description="Replay one take of each provider, offline; ends with a table of the calls.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "dir", metavar="DIR", nargs="?", default="recordings", help="default: recordings"
    )
    parser.add_argument("--pace", type=pace, default=0.0, metavar="X", help="as in replay")
    add_color_options(parser)
    add_log_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays the takes and prints the table."""
    from .grid import grid
    from .log import log_to_stderr
    from .style import style_for

    log_to_stderr(args.log)
    style = style_for(sys.stdout, args.color)
    rows: list[tuple[str, ...]] = []
    trouble = False
    for provider, path in _takes(Path(args.dir)):
        calls, broke = _show(provider, path, style, args.pace)
        rows += [_row(provider, call) for call in calls]
        trouble |= broke
    print(style.bold("All calls, normalized"))
    print()
    print(grid(HEADS, rows, style=style, shrink=(ARGUMENTS, ID)))
    return 3 if trouble else 0


def _takes(folder: Path) -> list[tuple[str, Path]]:
    from ..errors import RecordingError
    from ..providers import PROVIDERS

    found = {name: sorted((folder / name).glob("*.sse")) for name in PROVIDERS}
    takes = [(name, _choose(name, paths)) for name, paths in found.items() if paths]
    if not takes:
        raise RecordingError(
            f"no takes in {folder}: expected {folder}/<provider>/*.sse. "
            "Name the folder that holds them: streamnorm demo DIR"
        )
    return takes


def _choose(provider: str, paths: list[Path]) -> Path:
    """The take that its row names, or the first that holds a call."""
    from ..providers import provider_row

    named = [path for path in paths if path.stem == provider_row(provider).demo]
    return (named or [path for path in paths if _has_call(provider, path)] or paths)[0]


def _has_call(provider: str, path: Path) -> bool:
    from ..captures import read_take
    from ..takes.pipe import pipe_for
    from .play import play

    take = read_take(path)
    events = [event for batch in play(take, pipe_for(take, provider)) for event in batch]
    return events[-1].kind == "finish" and any(event.kind == "tool_call" for event in events)


def _show(provider: str, path: Path, style: Style, pace: float) -> tuple[list[ToolCall], bool]:
    from ..captures import read_take
    from ..events import ToolCall
    from ..takes.pipe import pipe_for
    from .play import play
    from .replay import is_trouble
    from .view import View

    take = read_take(path)
    pipe = pipe_for(take, provider)
    view = View(sys.stdout, style)
    print(style.bold(f"{style.signs.rule * 2} {clean(str(path))}"), style.dim(_proves(take.header)))
    calls: list[ToolCall] = []
    trouble = False
    for events in play(take, pipe, pace=pace):
        for event in events:
            view.show(event)
            trouble |= is_trouble(event)
            if isinstance(event, ToolCall):
                calls.append(event)
        sys.stdout.flush()
    view.notes(pipe.notes)
    print()
    return calls, trouble


def _proves(header: dict[str, Any]) -> str:
    proves = header.get("proves")
    return f"({clean(proves)})" if isinstance(proves, str) else ""


def _row(provider: str, call: ToolCall) -> tuple[str, ...]:
    from .view import arguments_text

    return provider, call.name, arguments_text(call), call.id, call.provenance.id_source
