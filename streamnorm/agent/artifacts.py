"""Settled records with handles come in; five tools that read what lies behind them go out.

Rule: the tools know the handles of the current turn and no others (``callId`` is an enum), calls
that were made by these tools are never in it, and an answer is plain text of bounded size, however
large the artifact is.

Why grep takes the pattern literally unless asked: a pattern comes from a model, and Python's ``re``
can take for ever on a short one (``(a+)+$``) while it holds the interpreter, so neither a thread nor
a timer ends it. Asked for a regular expression, we run it in a process of its own and end that.
"""

from __future__ import annotations

import codecs
import io
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from ..history.settled import Settled
from ..history.spool import Artifact, Spool
from ..text.written import json_ascii
from ..tools import Tool
from .checking import by_words
from .client_tools import ClientTool

__all__ = ["FORGED", "artifact_tools"]

MOST_LINES = 500  # of one answer
MOST_BYTES = 32 * 1024  # of one answer
LONGEST_LINE = 4096  # bytes of a line that an answer shows, and that grep looks at
LONGEST_PATTERN = 1000
GREP_SECONDS = 5.0  # that a regular expression may take

_INTEGER = {"type": "integer", "minimum": 0}
_INDEX = {**_INTEGER, "description": "Which artifact of the call, if it has several."}


def artifact_tools(
    settled: Iterable[Settled], spool: Spool | None = None, *, grep_seconds: float = GREP_SECONDS
) -> list[ClientTool]:
    """The tools for the handles among these calls; none if there is no handle.

    >>> log = Settled("call_1", "build", {}, Artifact.of("ok\\nfailed"), inline=False)
    >>> [tool.name for tool in artifact_tools([log])]
    ['artifact_head', 'artifact_tail', 'artifact_grep', 'artifact_read', 'artifact_count']
    """
    handles = {record.id: record.artifacts for record in settled if record.is_handle}
    reader = _Reader(handles, spool or Spool(), grep_seconds)
    return [_forged(row, list(handles), reader) for row in _ROWS] if handles else []


class _Reader:
    """Answers questions about artifacts; each method is the handler of one tool."""

    def __init__(
        self, handles: dict[str, tuple[Artifact, ...]], spool: Spool, grep_seconds: float
    ) -> None:
        self._handles = handles
        self._spool = spool
        self._grep_seconds = grep_seconds

    def head(self, said: dict[str, Any]) -> str:
        with self._opened(said) as file:
            return _joined(_first(_lines(file), _count(said, "lines", 20, MOST_LINES)))

    def tail(self, said: dict[str, Any]) -> str:
        with self._opened(said) as file:
            return _joined(deque(_lines(file), maxlen=_count(said, "lines", 20, MOST_LINES)))

    def grep(self, said: dict[str, Any]) -> str:
        pattern, most = _pattern(said), _count(said, "limit", 50, MOST_LINES)
        with self._opened(said) as file:
            if said.get("regex"):
                found = self._by_process(pattern, bool(said.get("ignoreCase")), most, file)
            else:
                found = _first(_literal(pattern, bool(said.get("ignoreCase")), file), most)
        return _joined(found) or "no line matches"

    def read(self, said: dict[str, Any]) -> str:
        offset = _count(said, "offset", 0, sys.maxsize)
        length = _count(said, "length", 8192, MOST_BYTES)
        with self._opened(said) as file:
            file.seek(offset)
            data = file.read(length)
        end, size = offset + len(data), self._artifact(said).size
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, final=end >= size)
        end -= len(decoder.getstate()[0])  # half a character is read with its other half
        more = f"\n[{size - end} bytes follow; read on from offset {end}]" if end < size else ""
        return text + more

    def count(self, said: dict[str, Any]) -> str:
        artifact = self._artifact(said)
        told = f"{artifact.size} bytes, {artifact.lines} lines"
        if not said.get("pattern"):
            return told
        with self._opened(said) as file:
            hits = sum(1 for _ in _literal(_pattern(said), bool(said.get("ignoreCase")), file))
        return f"{told}; {hits} lines have {said['pattern']!r}"

    def _artifact(self, said: dict[str, Any]) -> Artifact:
        artifacts = self._handles.get(str(said.get("callId")))
        if artifacts is None:
            raise ValueError(f"callId is one of {', '.join(self._handles)}")
        index = _count(said, "index", 0, sys.maxsize)
        if index >= len(artifacts):
            raise ValueError(f"index is below {len(artifacts)}: the call has that many artifacts")
        return artifacts[index]

    def _opened(self, said: dict[str, Any]) -> BinaryIO:
        return self._spool.open(self._artifact(said))

    def _by_process(self, pattern: str, ignore: bool, most: int, file: BinaryIO) -> list[str]:
        """The lines that match, found by another interpreter which can be ended at any time."""
        order = json_ascii([pattern, ignore, most, LONGEST_LINE]).decode()
        command = [sys.executable, "-I", "-S", "-c", _GREP, order]
        # A file is handed over as it is, however large; what is in memory is sent.
        content: dict[str, Any] = {"stdin": file}
        if isinstance(file, io.BytesIO):
            content = {"input": file.read()}
        try:
            done: subprocess.CompletedProcess[bytes] = subprocess.run(
                command, capture_output=True, timeout=self._grep_seconds, check=False, **content
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(
                f"the pattern took longer than {self._grep_seconds:g} s; make it simpler, "
                "or leave regex out"
            ) from None
        if done.returncode:
            raise ValueError(done.stderr.decode(errors="replace").strip() or "grep failed")
        return done.stdout.decode(errors="replace").splitlines()


# Runs by itself: what to look for as an argument and the artifact come in, numbered lines go out.
_GREP = """
import json, re, sys
pattern, ignore, most, longest = json.loads(sys.argv[1])
try:
    match = re.compile(pattern, re.IGNORECASE if ignore else 0).search
except (re.error, OverflowError, RecursionError) as error:
    sys.exit(f"not a regular expression: {error}")
number, read, is_new = 0, sys.stdin.buffer.readline, True
while most > 0 and (line := read(longest)):
    if is_new:
        number += 1
        text = line.rstrip(b"\\r\\n").decode("utf-8", "replace")
        if match(text):
            sys.stdout.buffer.write(f"{number}: {text}\\n".encode("utf-8", "replace"))
            most -= 1
    is_new = line.endswith(b"\\n")
"""


def _lines(file: BinaryIO) -> Iterator[str]:
    """The lines as text; of an endless one only the beginning is held in memory."""
    while line := file.readline(LONGEST_LINE):
        cut = not line.endswith(b"\n")
        while cut and (rest := file.readline(LONGEST_LINE)):
            cut = not rest.endswith(b"\n")
        yield line.rstrip(b"\r\n").decode("utf-8", "replace")


def _literal(pattern: str, ignore: bool, file: BinaryIO) -> Iterator[str]:
    wanted = pattern.casefold() if ignore else pattern
    for number, line in enumerate(_lines(file), start=1):
        if wanted in (line.casefold() if ignore else line):
            yield f"{number}: {line}"


def _first(lines: Iterator[str], most: int) -> list[str]:
    return [line for _, line in zip(range(most), lines, strict=False)]


def _joined(lines: Iterable[str]) -> str:
    """The lines as one answer, cut where it is too long."""
    shown: list[str] = []
    left = MOST_BYTES
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            return "\n".join([*shown, "[the rest is left out; ask for fewer lines]"])
        shown.append(line)
    return "\n".join(shown)


def _count(said: dict[str, Any], field: str, default: int, most: int) -> int:
    value = said.get(field, default)
    if type(value) is not int or value < 0:
        raise ValueError(f"{field} is a whole number from 0 up")
    return min(value, most)


def _pattern(said: dict[str, Any]) -> str:
    pattern = said.get("pattern")
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise ValueError(f"pattern is a text of at most {LONGEST_PATTERN} characters")
    return pattern


# --- the tools as data ----------------------------------------------------------------------------

_LINES = {**_INTEGER, "description": f"How many lines, at most {MOST_LINES}."}
_IGNORE = {"type": "boolean", "description": "Take upper and lower case as the same."}

# name, what it does, its own parameters, which of them are needed, its handler
_ROWS: tuple[tuple[str, str, dict[str, Any], list[str], Callable[..., str]], ...] = (
    (
        "artifact_head", "The first lines of a result that was not shown.",
        {"lines": _LINES}, [], _Reader.head,
    ),
    (
        "artifact_tail", "The last lines of a result that was not shown.",
        {"lines": _LINES}, [], _Reader.tail,
    ),
    (
        "artifact_grep", "The lines of a result that was not shown which contain a pattern.",
        {
            "pattern": {"type": "string", "description": "A text to look for, taken literally."},
            "regex": {"type": "boolean", "description": "Take it as a regular expression instead."},
            "ignoreCase": _IGNORE,
            "limit": {**_INTEGER, "description": f"How many lines, at most {MOST_LINES}."},
        },
        ["pattern"], _Reader.grep,
    ),
    (
        "artifact_read", "Some bytes of a result that was not shown.",
        {
            "offset": {**_INTEGER, "description": "The first byte, from 0."},
            "length": {**_INTEGER, "description": f"How many bytes, at most {MOST_BYTES}."},
        },
        [], _Reader.read,
    ),
    (
        "artifact_count", "The size of a result that was not shown, or how many lines have a text.",
        {"pattern": {"type": "string", "description": "A text."}, "ignoreCase": _IGNORE},
        [], _Reader.count,
    ),
)  # fmt: skip


FORGED = tuple(name for name, *_ in _ROWS)


def _forged(row: Any, ids: list[str], reader: _Reader) -> ClientTool:
    name, description, parameters, needed, handler = row
    call_id = {"type": "string", "enum": ids, "description": "The call whose result is read."}
    schema = {
        "type": "object",
        "properties": {"callId": call_id, **parameters, "index": _INDEX},
        "required": ["callId", *needed],
    }
    tool = Tool(name, description, schema)
    return ClientTool(
        tool, lambda said: handler(reader, said), is_artifact_tool=True, convert=by_words(tool)
    )
