"""``streamnorm table``: files with streams in; a file with the rows of their calls and endings out.

Rule: every input is in the table, also one that cannot be read, and the last lines say how many those
are. Every word of a file is cleaned before it is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from ..text.shown import clean
from .progress import progress

if TYPE_CHECKING:
    from ..table.run import Totals
    from .progress import Progress

__all__ = ["add", "run"]

FINISHED, USAGE, INTERRUPTED = 0, 2, 130

EXAMPLES = """\
examples:
  streamnorm table recordings -o calls.parquet            all rows, one file
  streamnorm table 'logs/**/*.sse' -o calls.duckdb        a table for each kind of row
  streamnorm table logs -o calls.csv --kind call          calls alone
  streamnorm table s3://bucket/logs -o tables/            a folder, a Parquet file for each kind
  streamnorm table logs -o calls.parquet --engine ray     on a cluster

The end of the output's name says its form: .parquet, .jsonl, .csv, .duckdb, .arrow, or / for a folder.
A run that was stopped goes on where it was when the same command is given again.

exit codes: 0 every input is in the table, also what could not be read; 2 usage, or nothing could be
read at all; 130 interrupted
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from ..table.columns import KINDS

    parser = commands.add_parser(
        "table",
        help="make a table of the calls, results and endings in many streams",
        description="Make a table of the calls, results, oddities and endings in many streams.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places", metavar="PATH", nargs="+", help="a file, a folder, a pattern or a URL"
    )
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="where to write")
    parser.add_argument("--kind", choices=KINDS, help="rows of this kind alone; default: all kinds")
    parser.add_argument("--provider", metavar="P", help="whose wire it is; default: as in replay")
    parser.add_argument(
        "--jobs", metavar="N", type=int, help="processes; default: one for each core"
    )
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="who does the work"
    )
    parser.add_argument("--ray-address", metavar="A", help="of a cluster; default: this machine")
    parser.add_argument(
        "--force", action="store_true", help="begin anew, and replace what is there"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Makes the table and says what is in it."""
    from .. import __version__
    from ..errors import UsageError
    from ..table.run import Asked, make_table

    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs is a number from 1, not {args.jobs}")
    asked = Asked(
        places=args.places,
        out=args.out,
        kind=args.kind,
        provider=args.provider,
        jobs=args.jobs or _cores(),
        engine=args.engine,
        address=args.ray_address,
        force=args.force,
        version=__version__,
    )
    watcher = _Watcher()
    try:
        totals = make_table(asked, watcher)
        watcher.hide()
    except KeyboardInterrupt:
        watcher.hide()
        print(
            clean(f"interrupted: {watcher.kept} The same command goes on there."), file=sys.stderr
        )
        return INTERRUPTED
    print("\n".join(_already(args.out, totals) if totals.already else _lines(args.out, totals)))
    return FINISHED if totals.streams or not totals.unreadable else USAGE


def _cores() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Watcher:
    """Tells people how it goes."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._bar: Progress | None = None

    @property
    def kept(self) -> str:
        return f"{self._done:,} of {self._total:,} files are done."

    def begin(self, total: int, done: int) -> None:
        self._total, self._done = total, done
        self._bar = progress("reading", total=total - done, unit="files")
        if done:
            self.say(f"{done:,} of {total:,} files were done by an earlier run")

    def advance(self, files: int) -> None:
        self._done += files
        if self._bar is not None:
            self._bar.advance(files)

    def say(self, sentence: str) -> None:
        self.hide()
        print(clean(f"streamnorm: {sentence}"), file=sys.stderr)

    def hide(self) -> None:
        if self._bar is not None:
            self._bar.hide()


def _already(out: str, totals: Totals) -> list[str]:
    files = "this file" if totals.inputs == 1 else f"these {totals.inputs:,} files"
    return [clean(f"{out} is made from {files} already; --force makes it anew")]


def _lines(out: str, totals: Totals) -> list[str]:
    calls = ", ".join(
        f"{count:,} {outcome}" for outcome, count in sorted(totals.calls.items(), reverse=True)
    )
    told = [
        f"{totals.inputs:,} inputs",
        f"{totals.streams:,} streams",
        f"{totals.kinds['call']:,} calls" + (f" ({calls})" if calls else ""),
        f"{totals.kinds['result']:,} results",
        f"{totals.kinds['note']:,} notes",
    ]
    lines = [clean(f"{out}: {', '.join(told)}")]
    if totals.unreadable:
        lines.append(f"unreadable: {totals.unreadable:,}")
        lines += [clean(f"  {name}: {why.removeprefix(name + ' ')}") for name, why in totals.named]
        if (more := totals.unreadable - len(totals.named)) > 0:
            lines.append(f"  and {more:,} more: those whose outcome is unreadable")
    return lines
