"""``streamnorm report``: files with streams, or tables of them, in; one page to look at out.

Rule: every input is on the page, also one that cannot be read, and stderr says how many those are. A
file that is no report is never replaced unasked, and a report is there when it is whole.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..text.shown import clean

if TYPE_CHECKING:
    from ..report.tally import Summary

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm report recordings                          report.html, about all takes in a folder
  streamnorm report 'logs/**/*.har' -o today.html --open
  streamnorm report calls.parquet -o calls.html         from what streamnorm table made: nothing is
                                                        read again; .jsonl and .arrow do as well

exit codes: 0 written (what could not be read is on the page), 2 usage, or there was nothing to read
"""
USUAL = "report.html"
STDOUT = "-"
NAMED = 10  # files that could not be read are named, so many of them


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    parser = commands.add_parser(
        "report",
        help="make a page with plots about many streams, and what is wrong with each server",
        description="Make one page, complete in itself, about many streams: calls, ids, oddities, endings, "
        "times, tokens, and what is wrong with each server. Every number leads to the streams behind it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places", metavar="PATH", nargs="+",
        help="a file, a folder, a pattern, or a table that streamnorm table made",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        default=USUAL,
        help=f"the page; default: {USUAL}; - for stdout",
    )
    parser.add_argument("--title", metavar="T", help="what stands at its top")
    parser.add_argument("--provider", metavar="P", help="whose wire it is; default: as in replay")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    parser.add_argument(
        "--force", action="store_true", help="replace a file of that name also if it is no report"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Makes the page and says in a sentence what is on it."""
    from ..providers import provider_row
    from ..report.document import in_a_sentence, written

    if args.open and args.out == STDOUT:
        raise UsageError("--open needs a file: leave out -o -")
    if args.provider is not None:
        provider_row(args.provider)  # before anything is read
    if args.out != STDOUT:
        _check(Path(args.out), args.force)
    summary = _counted(args)
    places = [_without_secrets(place) for place in args.places]
    title = args.title or f"Streams in {', '.join(places[:3])}" + " …" * (len(places) > 3)
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    page = written(summary, title=title, places=places, made=made)
    if args.out == STDOUT:
        sys.stdout.write(page)
    else:
        _write(Path(args.out), page)
        print(clean(f"{args.out}: {in_a_sentence(summary)}"))
    _tell_unread(summary)
    if args.open:
        import webbrowser

        webbrowser.open(Path(args.out).resolve().as_uri())
    return 0


def _without_secrets(place: str) -> str:
    """As the page names it: an address may hold a password or a signature."""
    from ..takes.redact import Redactor, secrets_in_url

    return Redactor(secrets_in_url(place)).clean_text(place)


# --- in -------------------------------------------------------------------------------------------


def _counted(args: argparse.Namespace) -> Summary:
    from ..captures import Left
    from ..report.rows import files_in, rows_of
    from ..report.tally import Tally
    from .progress import progress

    tally = Tally()
    files = 0
    with progress("reading", unit="files") as bar:
        for one in files_in(args.places, but=[] if args.out == STDOUT else [args.out]):
            for row in rows_of(one, provider=args.provider):
                tally.add(row)
            files += not isinstance(one, Left)
            bar.advance()
    summary = tally.summary()
    if not files:
        why = [f"{one.facts['name']} {one.facts['detail']}" for one in summary.streams]
        raise UsageError(f"there is nothing to read: {'; '.join(why[:3])}")
    return summary


# --- out ------------------------------------------------------------------------------------------


def _check(out: Path, force: bool) -> None:
    """May it be written?"""
    from ..report.document import is_report

    if not out.parent.is_dir():
        raise UsageError(f"{out} cannot be written: there is no folder {out.parent}")
    if out.exists() and not out.is_file():
        raise UsageError(f"{out} is no file that can be replaced; say a file: -o {USUAL}")
    if out.exists() and not force and not is_report(out):
        raise UsageError(
            f"{out} is there and is no report: choose another name, or replace it with --force"
        )


def _write(out: Path, page: str) -> None:
    """Whole, or not at all."""
    target = out.resolve()  # a link stays one
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{out.name}.", delete=False) as file:
            try:
                file.write(page.encode())
                file.flush()
                os.chmod(file.name, 0o666 & ~_umask())
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _tell_unread(summary: Summary) -> None:
    from ..report.document import passed_over

    if passed := passed_over(summary):
        print(f"streamnorm: {passed}: passed over.", file=sys.stderr)
    unread = [one.facts for one in summary.streams if one.facts["end"] == "unreadable"]
    count = summary.of(end="unreadable").streams
    if not count:
        return
    lines = [f"streamnorm: {count:,} could not be read:"]
    lines += [f"  {one['name']}: {one['detail']}" for one in unread[:NAMED]]
    if count > NAMED:
        lines.append(f"  and {count - NAMED:,} more, which are on the page")
    print("\n".join(map(clean, lines)), file=sys.stderr)
