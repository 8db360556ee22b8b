"""Takes: a file of recorded bytes in, the chunks and their arrival times out.

A take is the body of one response as it came, with what we know about it in SSE comments, which
every SSE reader skips::

    : streamnorm {"provider":"anthropic","model":"claude-sonnet-4-5","seed":"msg_01"}
    : +0.412
    event: content_block_start
    data: {"type":"content_block_start","index":1}

    : +0.430
    event: content_block_delta
    ...

- The first line may be a header, ``: streamnorm`` and a JSON object. Known keys: ``provider``,
  ``seed`` (what minted ids are made from, so that a replay mints the same ones) and ``container``.
  All others are kept as they are.
- A line ``: +SECONDS`` says when the bytes after it arrived, counted from the start.
- The recorder ends a take with one more comment, ``: streamnorm {"finished":true}``. A take
  without it was cut while it was being recorded. With ``"open_line":true`` in it, the line end
  before it is not the wire's either: the wire ended inside a line.
- A line ``: streamnorm {"leg":2}`` says that the connection was lost here, and that the bytes after it
  are those of the next one, over which the answer was resumed. ``"open_line":true`` as above.
- Everything else is the wire, byte for byte; that includes comments of the wire's own, such as
  ``: keep-alive``. So what ``curl -N`` writes is a take already: without a header the provider is
  unknown, and the seed is a digest of the bytes.
- Bytes that do not fit into lines of text (a binary framing, chunks that end in the middle of a
  line) go into a container. With ``"container":"chunks"`` each event of the file is one chunk::

      : +0.412
      event: text
      data: "data: {\\"a\\""

      : +0.413
      event: base64
      data: OjF9Cg0K

Rule: what is read is what was on the wire, exactly, or a ``RecordingError`` that says where the
file is wrong. The one exception is the last chunk of a container that was cut while being written:
it is left out, and ``Take.torn`` says so. A take that is read in pieces (``Reader``) is the take that
is read at once (``parse_take``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol

from ..errors import RecordingError
from ..text.shown import clean, shorten

__all__ = ["HEADER", "Chunk", "Reader", "Take", "digest_of", "parse_take"]

Chunk = tuple[float, bytes]

BOM = b"\xef\xbb\xbf"
HEADER = b": streamnorm "
LONGEST_HEADER = 16 * 1024 * 1024
LONGEST = 4096  # bytes of another line of ours: one that is longer is the wire's
# At the start of a line, whatever ended the line before: the wire may use CR, LF or both.
MARK = re.compile(rb"(?:\A|(?<=[\r\n])): \+(\d{1,9}(?:\.\d{1,9})?)(?:\r?\n|\Z)")
_LEG = rb': streamnorm (\{"leg":[^\r\n]{0,%d}\})' % LONGEST
_LEG_LINE = re.compile(_LEG)
LEG = re.compile(rb"(?:\A|(?<=[\r\n]))" + _LEG + rb"\r?\n")
# The last line of a take whose recorder lived to see the end.
LAST = HEADER + b'{"finished":'
_LAST_LINE = re.compile(rb': streamnorm (\{"finished":[^\r\n]{0,%d}\})\r?\n?' % LONGEST)


@dataclass(frozen=True, slots=True)
class Take:
    """One recorded stream.

    >>> take = parse_take(b': streamnorm {"provider":"anthropic"}\\n: +0.5\\ndata: {}\\n\\n')
    >>> take.provider, take.chunks
    ('anthropic', [(0.5, b'data: {}\\n\\n')])
    """

    header: dict[str, Any]
    chunks: list[Chunk]
    provider: str | None
    seed: str
    timed: bool = False
    torn: bool = False
    finished: bool = False  # the recorder saw the end of the stream
    legs: tuple[int, ...] = ()  # where bytes of another connection begin, in bytes of the wire

    @property
    def wire(self) -> bytes:
        """All bytes of the stream, as they came."""
        return b"".join(chunk for _, chunk in self.chunks)


def parse_take(data: bytes, *, name: str = "the take") -> Take:
    """The take in ``data``; ``name`` is what errors call it.

    >>> parse_take(b"data: [DONE]\\n\\n").chunks
    [(0.0, b'data: [DONE]\\n\\n')]
    """
    reader = Reader(name)
    chunks = [chunk for chunk in reader.feed(data, last=True) if chunk[1]]
    return reader.take(chunks)


class Reader:
    """A take that comes in pieces of any size; its chunks go out as they come.

    A chunk may come in pieces, too: ``goes_on`` says of what the last ``feed`` gave that it begins with
    more of the chunk before. A chunk without bytes says that those after it are of the next
    connection.

    >>> reader = Reader()
    >>> reader.feed(b": streamnorm {}\\n: +0.5\\ndata: 1"), reader.feed(b"2\\n\\n: +"), reader.goes_on
    ([(0.5, b'data: 1')], [(0.5, b'2\\n\\n')], True)
    >>> reader.feed(b"0.7\\ndata: 3", last=True), reader.goes_on
    ([(0.7, b'data: 3')], False)
    """

    def __init__(self, name: str = "the take") -> None:
        self.header: dict[str, Any] = {}
        self.timed = self.torn = self.finished = self.goes_on = False
        self.legs: list[int] = []  # where those of another connection begin, in bytes of the wire
        self.size = 0  # bytes of the wire
        self._name = name
        self._first: list[bytes] = []  # the beginning, until the header is whole
        self._body: _Body | None = None
        self._error: RecordingError | None = None

    @property
    def provider(self) -> str | None:
        """The provider that the header names."""
        return self.header.get("provider")

    def feed(self, data: bytes, *, last: bool = False) -> list[Chunk]:
        """The chunks that are in it; ``last``: nothing comes behind it.

        Raises ``RecordingError`` where the take is wrong, once what stood before that was given.
        """
        if self._error is not None:
            raise self._error
        if self._body is None:
            begun = self._begun_with(data, last)
            if begun is None:
                return []
            data = begun
        assert self._body is not None
        chunks: list[Chunk] = []
        try:
            self.goes_on = self._body.read(data, last, chunks)
        except RecordingError as error:
            self._error = error
            if last or not chunks:
                raise
        return chunks

    def take(self, chunks: list[Chunk]) -> Take:
        """All that was read, once it was read to its end."""
        return Take(
            header=self.header,
            chunks=chunks,
            provider=self.provider,
            seed=self.header.get("seed") or digest_of(chunks),
            timed=self.timed,
            torn=self.torn,
            finished=self.finished,
            legs=tuple(self.legs),
        )

    def _begun_with(self, data: bytes, last: bool) -> bytes | None:
        """What follows the header, once that is whole."""
        self._first.append(data)
        if len(self._first) > 1 and not last and b"\n" not in data and self.header is _COMING:
            if sum(map(len, self._first)) > LONGEST_HEADER:
                raise RecordingError(
                    f"{self._name} has a header of more than {LONGEST_HEADER} bytes. "
                    "Write a shorter one, or remove that line."
                )
            return None
        data = b"".join(self._first)
        # A BOM before our own header came from an editor; before anything else it is the wire's.
        start = len(BOM) if data.startswith(BOM) else 0
        if not data.startswith(HEADER, start):
            if not last and (HEADER.startswith(data[start:]) or BOM.startswith(data)):
                return None
            self.header = {}
            self._body = _Wire(self)
            return data
        end = data.find(b"\n", start)
        if end < 0 and not last:
            self._first, self.header = [data], _COMING
            return None
        line, body = (data[start:], b"") if end < 0 else (data[start:end], data[end + 1 :])
        self.header = _checked_header(line[len(HEADER) :], self._name)
        boxed = self.header.get("container") == "chunks"
        self._body = _Container(self, self._name) if boxed else _Wire(self)
        self._first = []
        return body


_COMING: dict[str, Any] = {}  # a header whose line has not ended


# --- the header


def _checked_header(text: bytes, name: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(
            f"{name} has a header that is not JSON: {_excerpt(text)}. "
            'Write `: streamnorm {"provider":"..."}` in line 1, or remove that line.'
        ) from error
    if not isinstance(header, dict):
        raise RecordingError(
            f"{name} has a header that is not a JSON object: {_excerpt(text)}. "
            'Write `: streamnorm {"provider":"..."}` in line 1, or remove that line.'
        )
    for key in ("provider", "seed", "container"):
        if not isinstance(header.get(key, ""), str):
            raise RecordingError(
                f"{name} has a header whose {key} is not a string: {_excerpt(text)}. "
                f"Write a string for {key}, or leave it out."
            )
    if header.get("container", "chunks") != "chunks":
        raise RecordingError(
            f"{name} has a container of the unknown kind {_excerpt(header['container'].encode())}. "
            'The one there is: "container":"chunks"; or leave it out for plain bytes.'
        )
    return header


# --- the bytes as they are, with marks between them


class _Body(Protocol):
    """What follows the header."""

    def read(self, data: bytes, last: bool, chunks: list[Chunk]) -> bool:
        """More of it. Is the first of the chunks that it adds more of the chunk before?"""


class _Wire:
    """The wire itself."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # Without a header, what looks like our other lines is the wire's own.
        self._ours = bool(reader.header)
        self._held = b""
        self._fresh = True  # does a line begin with what is held?
        self._now = 0.0
        self._open = False  # may more come of the last chunk?

    def read(self, data: bytes, last: bool, chunks: list[Chunk]) -> bool:
        """As much of it as is known to be the wire's; see ``_edge``."""
        was_open = self._open
        data = self._held + data if self._held else data
        if not last:
            edge = self._edge(data)
            data, self._held = data[:edge], data[edge:]
        elif self._ours:
            data = self._without_last_line(data)
        if not data:
            return False
        has_legs = self._ours and LEG_BEGINS in data
        goes_on = (self._read_legs if has_legs else self._read_leg)(data, chunks)
        self._fresh = data[-1] in _ENDS
        if not last:
            self._reader.size += sum([len(chunk) for _, chunk in chunks])
        return was_open and goes_on

    def _read_leg(self, data: bytes, chunks: list[Chunk]) -> bool:
        """Does it begin with more of what came before, and not with a mark?"""
        if MARK_BEGINS not in data:
            first, rest = data, list[bytes]()
        elif self._fresh:
            # re.split with one group: text, seconds, text, seconds, text ...
            first, *rest = MARK.split(data)
        else:
            first, *rest = MARK.split(b"." + data)
            first = first[1:]
        if first:
            chunks.append((self._now, first))
            self._open = True
        if rest:
            texts = rest[1::2]
            times = list(map(float, rest[::2]))
            chunks += [(at, text) for at, text in zip(times, texts, strict=True) if text]
            self._now, self._open, self._reader.timed = times[-1], bool(texts[-1]), True
        return bool(first)

    def _read_legs(self, data: bytes, chunks: list[Chunk]) -> bool:
        # re.split with one group: text, what is said of the next leg, text, ...
        first, *rest = LEG.split(data if self._fresh else b"." + data)
        texts = [first if self._fresh else first[1:], *rest[1::2]]
        goes_on = False
        size, counted = self._reader.size, 0
        for number, (text, said) in enumerate(zip_longest(texts, rest[::2], fillvalue=b"")):
            if b'"open_line":true' in said and text[-2:-1] not in _LINE_ENDS:
                text = text[:-1]
            if number:
                size += sum([len(chunk) for _, chunk in chunks[counted:]])
                counted = len(chunks)
                self._reader.legs.append(size)
                chunks.append((self._now, b""))
                self._open, self._fresh = False, True
            inside = bool(text) and self._read_leg(text, chunks)
            goes_on = goes_on if number else inside
        return goes_on

    def _edge(self, data: bytes) -> int:
        """Up to where it is known what the bytes are. A line that may be ours waits for its end; the
        last line for what follows it; and a line end, as it may be ours, see ``open_line``."""
        end = len(data)
        ended = data.endswith(b"\n")
        start, line = self._last_line(data, end)
        if line.startswith(MARK_BEGINS):
            return end if ended else start
        if not self._ours or not line:
            return start if line and MARK_BEGINS.startswith(line) else end
        if not line.startswith(HEADER) and not HEADER.startswith(line):
            return end - (data[-1] in _ENDS)
        if ended and not line.startswith(LAST):
            return end
        before = self._last_line(data, start)[1]
        return max(0, start - (not before.startswith((MARK_BEGINS, HEADER))))

    def _last_line(self, data: bytes, end: int) -> tuple[int, bytes]:
        """Where the last line before there begins, and what it says without its end."""
        end -= data[end - 1 : end] == b"\n"
        end -= data[end - 1 : end] == b"\r"
        least = max(0, end - LONGEST)
        start = max(data.rfind(b"\n", least, end), data.rfind(b"\r", least, end)) + 1
        inside = start == 0 and (least or not self._fresh)  # of a line that is too long to be ours
        return start, b"." if inside else data[start:end]

    def _without_last_line(self, data: bytes) -> bytes:
        start = data.rfind(HEADER + b"{")
        begins = self._fresh if start == 0 else data[start - 1 : start] in _LINE_ENDS
        found = _LAST_LINE.fullmatch(data, start) if start >= 0 and begins else None
        said = _object(found[1]) if found else None
        if said is None:
            return data
        self._reader.finished = said["finished"] is True
        open_line = said.get("open_line") is True and data[start - 2 : start - 1] not in _LINE_ENDS
        return data[: max(0, start - open_line)]


_ENDS = b"\r\n"  # as numbers
_LINE_ENDS = (b"\n", b"\r")
MARK_BEGINS, LEG_BEGINS = b": +", HEADER + b'{"leg":'


# --- one chunk per event


class _Container:
    """Chunks in events."""

    def __init__(self, reader: Reader, name: str) -> None:
        self._reader, self._name = reader, name
        self._held: list[bytes] = []  # of a line that has not ended
        self._line = 2  # the header was line 1
        self._at: float | None = None  # as the event that has begun says
        self._now = 0.0
        self._kind: list[bytes] = []
        self._data: list[bytes] = []
        self._has_fields = False
        self._begun = 2  # the line of its first field
        self._said: bytes | None = None  # by what may be the last line

    def read(self, data: bytes, last: bool, chunks: list[Chunk]) -> bool:
        """The chunks whose events have ended."""
        first, *others = data.split(b"\n")
        self._held.append(first)
        if others:
            lines = [b"".join(self._held), *others]
            self._held = [lines.pop()]
            for line in lines:
                self._read_line(line.removesuffix(b"\r"), chunks)
        if last:
            self._read_end(chunks)
        return False

    def _read_line(self, line: bytes, chunks: list[Chunk]) -> None:
        number, self._line = self._line, self._line + 1
        self._said = None
        if not line:
            self._end(chunks, ended=True)
        elif line[:1] != b":":
            key, _, value = line.partition(b":")
            if not self._has_fields:
                self._begun, self._has_fields = number, True
            if key in (b"data", b"event"):
                (self._data if key == b"data" else self._kind).append(value.removeprefix(b" "))
        elif mark := MARK.fullmatch(line):
            self._at = float(mark[1])
        elif _LEG_LINE.fullmatch(line):
            self._reader.legs.append(self._reader.size)
            chunks.append((self._now, b""))
        elif (found := _LAST_LINE.fullmatch(line)) is not None:
            self._said = found[1]

    def _read_end(self, chunks: list[Chunk]) -> None:
        line, before = b"".join(self._held).removesuffix(b"\r"), self._said
        self._read_line(line, chunks)
        text = self._said if line else before
        said = _object(text) if text else None
        self._reader.finished = said is not None and said["finished"] is True
        if self._has_fields:
            self._end(chunks, ended=False)

    def _end(self, chunks: list[Chunk], *, ended: bool) -> None:
        """The event is over; one that the input cut may be half of what it was."""
        reader = self._reader
        if self._at is not None:
            self._now, self._at, reader.timed = self._at, None, True
        if not self._has_fields:
            return
        kind, data = self._kind, self._data
        self._kind, self._data, self._has_fields = [], [], False
        try:
            chunk = _decode(b"\n".join(kind), b"\n".join(data), self._name, self._begun)
        except RecordingError:
            if ended:
                raise
            reader.torn = True
            return
        if chunk:
            reader.size += len(chunk)
            chunks.append((self._now, chunk))


def _decode(kind: bytes, data: bytes, name: str, line: int) -> bytes:
    try:
        if kind == b"text":
            return _text(data)
        if kind == b"base64":
            return base64.b64decode(data.replace(b"\n", b""), validate=True)
    except (ValueError, RecursionError, binascii.Error) as error:
        raise RecordingError(
            f"{name}, line {line}: the data of this {kind.decode()} chunk cannot be read: "
            f"{_excerpt(data)}. A text chunk holds one JSON string, a base64 chunk plain base64."
        ) from error
    raise RecordingError(
        f"{name}, line {line}: a chunk of the unknown kind {_excerpt(kind)}. "
        "In a container each event is `event: text` with a JSON string or `event: base64`."
    )


def _text(data: bytes) -> bytes:
    text = json.loads(data)
    if not isinstance(text, str):
        raise ValueError("not a JSON string")
    return text.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError


# --- small helpers


def digest_of(chunks: list[Chunk]) -> str:
    """What ids are minted from where nothing else is said: a digest of the bytes."""
    digest = hashlib.sha256()
    for _, chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _excerpt(data: bytes) -> str:
    return "`" + shorten(clean(data.decode("utf-8", "replace")), 60) + "`"
