"""``streamnorm repair``: a request's body that a provider refuses in, one that it takes out.

Rule: the body goes to stdout (or ``--out``), what was mended to stderr, one line each. A body that
needs no repair comes out byte by byte as it went in.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..encoding.pairs import ORPHANS, Orphans
from ..errors import UsageError
from ..text.shown import clean
from ..text.written import json_ascii

if TYPE_CHECKING:
    from ..encoding.repair import Repaired

__all__ = ["add", "run"]

FINE, MENDED = 0, 3

EXAMPLES = """\
examples:
  streamnorm repair session.json > mended.json
  streamnorm repair session.json --provider anthropic --out session.json
  streamnorm repair session.json --check          only say what is broken; 3 if anything is

FILE is a request's body, or its list of messages. A call without a result is answered neutrally:
"result unavailable; may or may not have run".

exit codes: 0 done, 2 usage or no readable file, 3 --check found something to mend
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    parser = commands.add_parser(
        "repair",
        help="mend a conversation whose calls and results do not match",
        description="Mend a request's body whose calls and results do not match.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a JSON file; - for stdin")
    parser.add_argument(
        "--provider",
        metavar="P",
        default="auto",
        help="whose wire it is; default: told by its shape",
    )
    parser.add_argument(
        "--orphans",
        choices=get_args(Orphans),
        default=ORPHANS,
        help="calls without a result: answer them with an error (default), drop them, or give up",
    )
    parser.add_argument("--out", metavar="FILE", help="where to write; default: stdout")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; only say what is broken"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Mends the file and says what was done."""
    from ..wire import repair

    data = _bytes(args.file)
    repaired = repair(args.provider, _parsed(data, args.file), orphans=args.orphans)
    for row in repaired.report:
        print(clean(str(row)), file=sys.stderr)
    if args.check:
        return MENDED if repaired.report else FINE
    _write(_text(repaired, data), args.out)
    return FINE


def _bytes(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


def _parsed(data: bytes, file: str) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no JSON: {error}") from error


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _text(repaired: Repaired, data: bytes) -> bytes:
    if not repaired.report:
        return data
    # ASCII, so that halves of surrogate pairs in it are written as they were read.
    return json_ascii(repaired.body, in_lines=True) + b"\n"


def _write(data: bytes, out: str | None) -> None:
    if out is None:
        sys.stdout.buffer.write(data)
        return
    # All of it or nothing: FILE and --out may be the same.
    path = Path(out)
    try:
        file, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(file, "wb") as whole:
            whole.write(data)
        os.replace(name, path)
    except OSError as error:
        raise UsageError(f"{out}: {error.strerror}") from error
