"""``streamnorm import``: files with streams in, of any form that is read; takes out.

Rule: names are ours, made of the file's and a number, and no file is overwritten unless that is asked
for. A take says what it was made from, and the replay of it tells what reading the file tells. Secrets
are removed: see ``captures.answer`` and ``takes.redact``.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..errors import RecordingError, UsageError
from ..notes import unheard
from ..survey import Surveying
from ..takes.recorder import Recorder
from ..text.shown import clean, escape_json
from ..text.written import json_text

if TYPE_CHECKING:
    from ..captures.tape import Bit, Part
    from ..survey import Survey
    from .sources import Sources
    from .style import Style

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm import session.har -o takes/            every stream in what a browser or a proxy saw
  streamnorm import tests/cassettes/ -o takes/       cassettes of VCR, all of a folder
  curl -isN ... > answer.txt; streamnorm import answer.txt -o takes/
  streamnorm import ~/.codex/sessions -o takes/ --dry-run

What is no stream is said on stderr. Secrets are removed, requests are not kept.

exit codes: 0 finished, 2 usage, or a file or a part of one that could not be imported
"""
SUFFIX = ".sse"
MADE = "imported by streamnorm"
_ORIGINS = {
    "take": "take", "sse": "saved body, server-sent events", "ndjson": "saved body, lines of JSON",
    "json": "saved body, JSON", "aws": "saved body, AWS event stream",
    "session": "session of an agent program",
}  # fmt: skip
LONGEST = 80  # letters of a name
# What the end of a name says of the form. No digit is part of it: gpt-4.1 and gpt-4.5 are two names.
_FORM = re.compile(r"(?<=.)(?:\.[A-Za-z]\w{0,9})?(?:\.(?:gz|gzip|zst|zlib|z))?\Z", re.IGNORECASE)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .style import add_color_options

    parser = commands.add_parser(
        "import",
        help="make takes of what other programs captured: HAR, cassettes, curl -i, saved sessions",
        description="Make takes of what other programs captured: HAR files of browsers and proxies, "
        "cassettes of VCR, what curl -i printed, saved bodies, saved sessions of agent programs; any of "
        "them gzip'd. Every stream becomes a take of its own.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+",
        help="a file, a folder, a pattern; a.har#3 is the third stream in it; - for stdin",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where the takes go")
    parser.add_argument("--provider", metavar="P", help="whose wire it is; default: as in replay")
    parser.add_argument("--force", action="store_true", help="overwrite takes that are there")
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="say what would be written, and write nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each take")
    add_color_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the takes."""
    from .log import log_to_stderr
    from .sources import Sources
    from .style import style_for

    log_to_stderr(None)
    if not args.dry_run:
        _make_folder(args.output)
    sources = Sources(args.files, args.provider)
    names = _Names()
    writing: dict[Part, _Writing | None] = {}
    written = refused = 0
    style = style_for(sys.stdout, args.color)
    try:
        with unheard():
            for part, bit in sources:
                if part not in writing:
                    name = names.of(sources.file, part)
                    writing[part] = _begin(part, name, args, sources)
                    refused += writing[part] is None
                one = writing[part]
                if one is not None and not _hears(one, bit, sources):
                    writing[part], refused = None, refused + 1
                if bit is None and writing.pop(part) is not None and one is not None:
                    written += 1
                    sources.hide()
                    print(one.as_json() if args.json else one.as_line(style))
    finally:  # interrupted: what is half-written is no take
        for one in filter(None, writing.values()):
            one.drop()
    if not args.json:
        said = f"{written} take{'s'[: written != 1]}"
        where = f" to {clean(args.output)}" * (not args.dry_run)
        print(f"{style.signs.sum} {said} {'would be ' * args.dry_run}written{where}")
    return 2 if refused or sources.failed or not written else 0


def _hears(one: _Writing, bit: Bit | None, sources: Sources) -> bool:
    """Could it be written?"""
    try:
        one.hear(bit)
    except (RecordingError, OSError) as error:
        sources.say(clean(str(error)))
        one.drop()
        return False
    return True


def _make_folder(place: str) -> None:
    try:
        os.makedirs(place, exist_ok=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{clean(place)} cannot be made: {why}. Name another folder.") from error


class _Names:
    """Names of takes: no two are the same."""

    def __init__(self) -> None:
        self._stems: dict[str, str] = {}  # file -> what its takes are called
        self._taken: set[str] = set()

    def of(self, file: str, part: Part) -> str:
        """What the take of this stream is called."""
        if file not in self._stems:
            self._stems[file] = self._stem(file)
        number = "" if part.nth is None else f"-{part.nth}"
        return self._stems[file] + number + SUFFIX

    def _stem(self, file: str) -> str:
        name = _FORM.sub("", PurePath(file).name, count=1)
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:LONGEST] or "stream"
        number = 1
        free = stem
        while free.lower() in self._taken:  # there are disks to which a and A are one name
            number += 1
            free = f"{stem}.{number}"
        self._taken.add(free.lower())
        return free


def _begin(part: Part, name: str, args: argparse.Namespace, sources: Sources) -> _Writing | None:
    path = os.path.join(args.output, name)
    part.seed = part.seed or secrets.token_hex(16)
    try:
        return _Writing(part, path, args)
    except RecordingError as error:
        why = str(error)
        if os.path.lexists(path) and not args.force:
            why = f"{path} is there already. Name another folder, or overwrite it with --force."
        sources.say(clean(why))
        return None


class _Writing:
    """A take that is being written."""

    def __init__(self, part: Part, path: str, args: argparse.Namespace) -> None:
        self._part, self._path = part, path
        self._name = part.name
        self._surveying = Surveying(part, args.provider)
        self._now = 0.0
        self._facts: Survey | None = None
        self._tape: Recorder | None = None
        self._new = path
        if args.dry_run:
            if os.path.lexists(path) and not args.force:
                raise RecordingError(path)
            return
        if args.force:
            folder, name = os.path.split(path)
            self._new = os.path.join(folder, f".{name}.{secrets.token_hex(4)}")
        clock = (lambda: self._now) if part.timed else None
        self._tape = Recorder.copy(self._new, self._header(args.provider), clock=clock)

    def _header(self, provider: str | None) -> dict[str, Any]:
        part = self._part
        header = {"provider": provider or part.provider, "seed": part.seed, **part.header}
        header |= {"made": header.get("made") or MADE}
        header |= {"from": header.get("from") or _ORIGINS.get(part.form, part.form)}
        if provider or part.provider:
            header["provider"] = provider or part.provider
        header["seed"] = part.seed
        return {key: value for key, value in header.items() if value is not None}

    def hear(self, bit: Bit | None) -> None:
        """More of the stream, or its end."""
        part, tape = self._part, self._tape
        if bit is None:
            if tape is not None:
                tape.close(finished=part.finished)
                self._check(tape)
                if self._new != self._path:
                    os.replace(self._new, self._path)
                self._tape = None  # it is whole: nothing takes it away any more
            self._facts = self._surveying.end()
            return
        self._surveying.hear(bit.data, bit.at if part.timed else None, goes_on=bit.goes_on)
        self._now = max(self._now, bit.at)
        if tape is None:
            return
        if bit.data:
            tape.chunk(bit.data)
        else:
            tape.leg()

    def drop(self) -> None:
        """It will not be whole."""
        if self._tape is not None:
            self._tape.close(finished=False)
            with suppress(OSError):
                os.unlink(self._new)

    def _check(self, tape: Recorder) -> None:
        if tape.failed:
            raise RecordingError(f"{self._path} could not be written: {tape.failed}")

    @property
    def facts(self) -> Survey:
        """Once it is over."""
        assert self._facts is not None
        return self._facts

    def as_line(self, style: Style) -> str:
        """What it was, and how it ends."""
        facts, dot = self.facts, style.signs.dot
        calls = f"{len(facts.calls)} call{'s'[: len(facts.calls) != 1]}"
        end = (style.red if facts.end == "failed" else style.green)(f"{facts.end}: {facts.reason}")
        said = dot.join([end, clean(facts.provider), calls, f"from {clean(self._name)}"])
        return f"{clean(self._path)}  {said}"

    def as_json(self) -> str:
        """The same for programs."""
        facts = self.facts
        said = {
            "path": self._path, "from": self._name, "form": self._part.form,
            "provider": facts.provider, "model": facts.model, "end": facts.end,
            "reason": facts.reason, "calls": len(facts.calls), "bytes": facts.bytes,
        }  # fmt: skip
        return escape_json(json_text(said))
