"""The command line: arguments in, an exit code out.

Rule: one file per command, each with ``add(commands)`` and ``run(args)``; nothing here is imported
by the library. Every word of the wire is cleaned before it is printed (``text.shown``).

Exit codes: 0 finished, 2 usage (also a take that cannot be read), 3 the stream failed or a call
broke, 130 interrupted, 141 the reader of our output went away.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from .. import __version__
from ..errors import RecordingError, UsageError
from ..text.shown import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

FINISHED, USAGE, TROUBLE, INTERRUPTED, PIPE_CLOSED = 0, 2, 3, 130, 141

EXAMPLES = """\
examples:
  streamnorm demo                                 one take of each provider, then all calls
  streamnorm replay recordings/gemini/text.sse    watch a recorded stream
  curl -N ... | streamnorm replay - --json        one event per line, for other programs
  streamnorm record -- curl -N ...                record a live stream and watch it
  streamnorm inspect recordings/gemini/text.sse   calls, ids, oddities, timing
  streamnorm table recordings -o calls.parquet    rows of many streams, for questions over all
  streamnorm report recordings --open             a page with plots about many streams
  streamnorm import session.har -o takes/         takes of what other programs captured
  streamnorm repair body.json                     mend a request that another program left broken
  streamnorm serve --open                         the page: watch, cut, compare, chat
  streamnorm gateway --to anthropic               one address for clients; no cut call ever runs
  streamnorm watch http://…/api/chat/c1/stream    follow a chat, also when the line is cut

exit codes: 0 finished, 2 usage, 3 the stream failed or a call broke
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and says how it went.

    >>> main(["providers", "--help"])  # doctest: +ELLIPSIS
    usage: streamnorm providers ...
    0
    """
    try:
        args = _parser().parse_args(argv)
        status: int = args.run(args)
        sys.stdout.flush()  # here, where a closed pipe can still be answered
    except SystemExit as exit_:  # argparse has said why
        return exit_.code if isinstance(exit_.code, int) else USAGE
    except (UsageError, RecordingError) as error:
        print(f"streamnorm: {clean(str(error))}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    return status


def _parser() -> argparse.ArgumentParser:
    from . import (
        demo,
        gateway,
        import_,
        inspect,
        providers,
        record,
        repair,
        replay,
        report,
        serve,
        table,
        watch,
    )

    parser = argparse.ArgumentParser(
        prog="streamnorm",
        description="Streams of any model provider in, one kind of trustworthy tool call out.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"streamnorm {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (
        replay,
        record,
        inspect,
        table,
        report,
        import_,
        repair,
        serve,
        gateway,
        watch,
        demo,
        providers,
    ):
        command.add(commands)
    return parser


def _forget_stdout() -> None:
    # The interpreter flushes stdout once more at its end and would complain about the closed pipe.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stdout that is no file has nothing to forget
        return
