"""``streamnorm record``: a command or a URL in; a take, and the live view of it, out.

Rule: a key never stands on our command line. It is read from the environment variable that the
provider's row names, sent to that provider only, and is overwritten wherever it comes back. Values
of all variables that are named like secrets, and of the headers that a command is given, are
overwritten as well.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..text.shown import clean

if TYPE_CHECKING:
    from ..core.row import Key, Provider
    from ..events import Event
    from ..normalizer import Normalizer
    from ..takes.recorder import Recorder

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm record -o takes/ -- curl -sN https://api.openai.com/v1/responses \\
      -H "Authorization: Bearer $OPENAI_API_KEY" -H "Content-Type: application/json" -d @body.json
  streamnorm record https://api.anthropic.com/v1/messages --data @body.json
  streamnorm record http://localhost:11434/api/chat --provider ollama --data @body.json -o a.sse

The key for a URL is read from the environment, by provider:
{keys}
exit codes: 0 finished, 2 usage, 3 the stream failed or a call broke
"""


_SECRET_OPTIONS = frozenset({"-u", "--user", "-b", "--cookie", "--oauth2-bearer", "--proxy-user"})
_HEADER = re.compile(r"(?:-H|--header=)?\s*([\w-]+):(.*)", re.DOTALL)
SHORTEST_SECRET = 8  # of an environment variable: AUTH=yes is none
PIECE = 65536


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .replay import add_log_option
    from .style import add_color_options

    parser = commands.add_parser(
        "record",
        help="record a live stream, from a command or a URL",
        description="Record a live stream and watch it: from what a command prints, or from a URL.",
        epilog=EXAMPLES.format(keys=_key_lines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="streamnorm record [options] (-- COMMAND ... | URL --data DATA)",
    )
    parser.add_argument("what", metavar="URL | -- COMMAND", nargs="+", help="what to record")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        default=".",
        help="a new file, or a folder in which the name is chosen (default: this folder)",
    )
    parser.add_argument(
        "--provider", metavar="P", help="whose wire it is; default: told by the URL or the bytes"
    )
    parser.add_argument(
        "--data", metavar="JSON", help="the request body; @FILE reads it from a file, @- from stdin"
    )
    parser.add_argument(
        "--header", metavar="'N: V'", action="append", default=[], help="a header more; repeatable"
    )
    parser.add_argument("--raw", action="store_true", help="pass the bytes on instead of the view")
    add_color_options(parser)
    add_log_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Records, and says how the stream ended."""
    from .log import log_to_stderr

    log_to_stderr(args.log)
    first = args.what[0]
    if len(args.what) == 1 and re.match(r"https?://", first, re.IGNORECASE):
        return _from_url(first, args)
    if args.data is not None or args.header:
        raise UsageError("--data and --header belong to a URL: streamnorm record URL --data ...")
    return _from_command(args.what, args)


def _key_lines() -> str:
    from ..providers import PROVIDERS

    keys = ((row.name, row.key) for row in PROVIDERS.values() if row.key)
    return "".join(f"  {name:<20} {' or '.join(key.variables)}\n" for name, key in keys)


def _told_by(urls: list[str]) -> str:
    """The provider that the first of these addresses to tell one tells."""
    from ..providers import AUTO
    from ..providers.detect import by_address

    return next(filter(None, (by_address(url).name for url in urls)), AUTO)


# --- what a command prints ------------------------------------------------------------------------


def _from_command(command: list[str], args: argparse.Namespace) -> int:
    if shutil.which(command[0]) is None:  # before there is a file for nothing
        raise UsageError(f"{clean(command[0])} cannot be run: there is no such command")
    urls = [part for part in command if re.match(r"https?://", part)]
    provider = args.provider or _told_by(urls)
    secrets = secrets_in_command(command) | secrets_in_environment(os.environ)
    with _session(args, provider, secrets=secrets, url=urls[0] if urls else None) as session:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise UsageError(f"{clean(command[0])} cannot be run: {why}") from error
        with process:
            assert process.stdout is not None
            while chunk := os.read(process.stdout.fileno(), PIECE):
                session.hear(chunk)
            status = process.wait()
        session.whole = status == 0
        if status:
            _say(f"{clean(command[0])} ended with status {status}")
    return session.ended()


def secrets_in_command(command: list[str]) -> set[str]:
    """The secrets that stand in a command: headers, user and password, keys in URLs.

    >>> sorted(secrets_in_command(["curl", "-H", "x-api-key: abc-def-ghi", "-u", "me:pass-word"]))
    ['abc-def-ghi', 'me:pass-word', 'pass-word']
    """
    from ..takes.redact import secrets_in_headers, secrets_in_url

    found: set[str] = set()
    for before, part in zip(["", *command], command, strict=False):
        if before in _SECRET_OPTIONS:
            found |= {part, part.partition(":")[2]}
        elif "://" in part:
            found |= secrets_in_url(part)
        elif header := _HEADER.match(part):
            found |= secrets_in_headers([(header[1], header[2])])
    return {value for value in found if len(value) >= SHORTEST_SECRET}


def secrets_in_environment(environment: Mapping[str, str]) -> set[str]:
    """The values of variables that are named like secrets.

    >>> secrets_in_environment({"MY_API_KEY": "abcdefgh", "HOME": "/home/someone"})
    {'abcdefgh'}
    """
    from ..takes.redact import is_key_name

    return {
        value
        for name, value in environment.items()
        if is_key_name(name, value) and len(value) >= SHORTEST_SECRET and os.sep != value[0]
    }


# --- what a URL answers ---------------------------------------------------------------------------


def _from_url(url: str, args: argparse.Namespace) -> int:
    import httpx

    from ..takes.redact import Redactor

    provider = args.provider or _told_by([url])
    headers = _headers(url, args)
    secrets = secrets_in_environment(os.environ)
    body = _body(args.data)
    timeout = httpx.Timeout(30, read=600)  # thinking models are silent for minutes
    method = "POST" if body is not None else "GET"
    try:
        with (
            httpx.Client(timeout=timeout) as client,
            client.stream(method, url, headers=headers, content=body) as response,
        ):
            return _from_response(response, args, provider, secrets)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        from ..takes.redact import secrets_in_headers, secrets_in_url

        hide = Redactor(secrets | secrets_in_headers(headers) | secrets_in_url(url))
        _say(hide.clean_text(clean(f"{type(error).__name__}: {error}")))
        return 3


def _from_response(
    response: Any, args: argparse.Namespace, provider: str, secrets: set[str]
) -> int:
    facts = {"url": str(response.url), "status": response.status_code}
    facts |= {"headers": response.headers, "request_headers": response.request.headers}
    with _session(args, provider, secrets=secrets, **facts) as session:
        if response.status_code >= 300:
            _say(f"the answer has the status {response.status_code}")
        for chunk in response.iter_bytes():
            session.hear(chunk)
        session.whole = True
    return session.ended()


def _headers(url: str, args: argparse.Namespace) -> dict[str, str]:
    """Those that the wire needs, the key if this server may see one, and what was given."""
    row, key = _row_and_key(url, args.provider)
    headers = {"accept-encoding": "identity"}  # what is recorded is what was sent
    if args.data is not None:
        headers["content-type"] = "application/json"
    if key is not None:
        _say_key(key)
    known = {**(row.headers if row else {}), **(key.headers(os.environ) if key else {})}
    return {**headers, **known, **dict(map(_header, args.header))}


def _row_and_key(url: str, named: str | None) -> tuple[Provider | None, Key | None]:
    """Whose wire it is, and whose key: that of the host's own provider, or of the one named."""
    from ..providers import AUTO, provider_row
    from ..providers.detect import by_address

    told = by_address(url)
    if named is None or named == AUTO:
        return told.wire, told.key
    row = provider_row(named)
    return row, row.key if told.home is None else told.key


def _say_key(key: Key) -> None:
    variable = key.variable(os.environ)
    if variable is not None:
        _say(f"the key is read from {variable}")
    elif key.needed:
        _say(f"no key: set {' or '.join(key.variables)}, if this server wants one")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError(f"--header wants 'name: value', not {clean(name)!r}")
    return name.strip().lower(), value.strip()


def _body(data: str | None) -> bytes | None:
    if data is None or not data.startswith("@"):
        return None if data is None else data.encode()
    if data == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(data[1:]).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{clean(data[1:])} cannot be read: {why}") from error


# --- both -----------------------------------------------------------------------------------------


class _Session:
    """One stream: to the take, through the pipe, and on the screen."""

    def __init__(self, tape: Recorder, pipe: Normalizer, args: argparse.Namespace) -> None:
        from .style import style_for
        from .view import View

        self.whole = False
        self._tape, self._pipe, self._raw = tape, pipe, args.raw
        self._view = None if args.raw else View(sys.stdout, style_for(sys.stdout, args.color))
        self._trouble = False

    def hear(self, chunk: bytes) -> None:
        self._tape.chunk(chunk)
        if self._raw:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        self._show(self._pipe.feed(chunk))

    def close(self) -> None:
        self._tape.close(finished=self.whole)
        self._show(self._pipe.close())
        if self._view is not None:
            self._view.notes(self._pipe.notes)
        if self._tape.failed:
            _say(f"the recording ended early: {self._tape.failed}")
        _say(f"recorded to {clean(self._tape.path)}")

    def ended(self) -> int:
        return 3 if self._trouble or not self.whole else 0

    def _show(self, events: list[Event]) -> None:
        from .replay import is_trouble

        for event in events:
            self._trouble |= is_trouble(event)
            if self._view is not None:
                self._view.show(event)
        if events:
            sys.stdout.flush()


@contextmanager
def _session(
    args: argparse.Namespace, provider: str, *, secrets: set[str], **facts: Any
) -> Iterator[_Session]:
    from ..normalizer import Normalizer
    from ..takes.recorder import Recorder

    pipe = Normalizer(provider)
    tape = Recorder.open(args.output, provider=provider, seed=pipe.seed, secrets=secrets, **facts)
    session = _Session(tape, pipe, args)
    try:
        yield session
    finally:
        session.close()


def _say(text: str) -> None:
    print(f"streamnorm: {text}", file=sys.stderr)
