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
it is left out, and ``Take.torn`` says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import RecordingError
from ..text.shown import clean, shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

__all__ = ["Chunk", "Take", "parse_take", "read_take"]

Chunk = tuple[float, bytes]

BOM = b"\xef\xbb\xbf"
HEADER = b": streamnorm "
# At the start of a line, whatever ended the line before: the wire may use CR, LF or both.
MARK = re.compile(rb"(?:\A|(?<=[\r\n])): \+(\d{1,9}(?:\.\d{1,9})?)(?:\r?\n|\Z)")
# The last line of a take whose recorder lived to see the end.
_LEG = rb': streamnorm (\{"leg":[^\r\n]*\})'
_LEG_LINE = re.compile(_LEG)
LEG = re.compile(rb"(?:\A|(?<=[\r\n]))" + _LEG + rb"\r?\n")
TRAILER = re.compile(rb'(?:\A|(?<=[\r\n])): streamnorm (\{"finished":[^\r\n]*\})\r?\n?\Z')


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


def read_take(path: str | os.PathLike[str]) -> Take:
    """The take in the file ``path``.

    >>> read_take("recordings/anthropic/nowhere.sse")
    Traceback (most recent call last):
    ...
    streamnorm.errors.RecordingError: recordings/anthropic/nowhere.sse cannot be read: \
No such file or directory. Name a file with a recorded stream.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RecordingError(
            f"{_shown(path)} cannot be read: {why}. Name a file with a recorded stream."
        ) from error
    return parse_take(data, name=_shown(path))


def parse_take(data: bytes, *, name: str = "the take") -> Take:
    """The take in ``data``; ``name`` is what errors call it.

    >>> parse_take(b"data: [DONE]\\n\\n").chunks
    [(0.0, b'data: [DONE]\\n\\n')]
    """
    header, body = _split_header(data, name)
    body, finished = _split_trailer(body) if header else (body, False)
    torn, legs = False, list[int]()
    if header.get("container") == "chunks":
        chunks, timed, torn = _chunks_of_container(body, name, legs)
    else:
        chunks, timed = _chunks_of_wire(body, legs if header else None)
    return Take(
        header=header,
        chunks=chunks,
        provider=header.get("provider"),
        seed=header.get("seed") or _digest(chunks),
        timed=timed,
        torn=torn,
        finished=finished,
        legs=tuple(legs),
    )


# --- the header


def _split_header(data: bytes, name: str) -> tuple[dict[str, Any], bytes]:
    # A BOM before our own header came from an editor; before anything else it is the wire's.
    start = len(BOM) if data.startswith(BOM + HEADER) else 0
    if not data.startswith(HEADER, start):
        return {}, data
    end = data.find(b"\n", start)
    line, body = (data[start:], b"") if end < 0 else (data[start:end], data[end + 1 :])
    return _checked_header(line[len(HEADER) :], name), body


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


def _split_trailer(body: bytes) -> tuple[bytes, bool]:
    found = TRAILER.search(body, max(0, body.rfind(b": streamnorm {")))
    try:
        said = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        said = None
    if found is None or not isinstance(said, dict):
        return body, False
    end = found.start() - (said.get("open_line") is True and found.start() > 0)
    return body[:end], said["finished"] is True


# --- the bytes as they are, with marks between them


def _chunks_of_wire(body: bytes, legs: list[int] | None) -> tuple[list[Chunk], bool]:
    """``legs`` is told where they begin; None: those that it has are the wire's own."""
    if legs is None or b': streamnorm {"leg":' not in body:
        return _chunks_of_leg(body, 0.0)
    chunks: list[Chunk] = []
    timed = False
    # re.split with one group: text, what is said of the next leg, text, ...
    texts = LEG.split(body)
    for number, text in enumerate(texts[::2]):
        if number:
            legs.append(sum(len(chunk) for _, chunk in chunks))
        if 2 * number + 1 < len(texts) and b'"open_line":true' in texts[2 * number + 1]:
            text = text[:-1]
        more, marked = _chunks_of_leg(text, chunks[-1][0] if chunks else 0.0)
        chunks, timed = chunks + more, timed or marked
    return chunks, timed


def _chunks_of_leg(body: bytes, now: float) -> tuple[list[Chunk], bool]:
    # re.split with one group: text, seconds, text, seconds, text ...
    first, *rest = MARK.split(body)
    chunks = [(now, first)] if first else []
    chunks += [(float(at), chunk) for at, chunk in zip(rest[::2], rest[1::2], strict=True) if chunk]
    return chunks, bool(rest)


# --- one chunk per event


def _chunks_of_container(body: bytes, name: str, legs: list[int]) -> tuple[list[Chunk], bool, bool]:
    chunks: list[Chunk] = []
    timed = False
    at = 0.0
    for event in _events_of_container(body):
        if event.leg:
            legs.append(sum(len(chunk) for _, chunk in chunks))
        if event.at is not None:
            at, timed = event.at, True
        if not event.fields:
            continue
        try:
            chunks.append((at, _decode(event, name)))
        except RecordingError:
            if event.ended:
                raise
            return chunks, timed, True
    return chunks, timed, False


@dataclass(frozen=True, slots=True)
class _ContainerEvent:
    line: int
    at: float | None
    fields: dict[bytes, bytes]
    ended: bool
    leg: bool = False  # no chunk, but the beginning of the next leg


def _events_of_container(body: bytes) -> Iterator[_ContainerEvent]:
    fields: dict[bytes, bytes] = {}
    at: float | None = None
    begun = 2
    for number, line in enumerate(body.split(b"\n"), start=2):  # the header was line 1
        line = line.removesuffix(b"\r")
        if mark := MARK.fullmatch(line):
            at = float(mark[1])
        elif _LEG_LINE.fullmatch(line):
            yield _ContainerEvent(number, None, {}, ended=True, leg=True)
        elif not line:
            if fields or at is not None:
                yield _ContainerEvent(begun, at, fields, ended=True)
            fields, at = {}, None
        elif not line.startswith(b":"):
            begun = begun if fields else number
            key, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            fields[key] = fields[key] + b"\n" + value if key in fields else value
    if fields:
        yield _ContainerEvent(begun, at, fields, ended=False)


def _decode(event: _ContainerEvent, name: str) -> bytes:
    kind, data = event.fields.get(b"event", b""), event.fields.get(b"data", b"")
    try:
        if kind == b"text":
            return _text(data)
        if kind == b"base64":
            return base64.b64decode(data.replace(b"\n", b""), validate=True)
    except (ValueError, RecursionError, binascii.Error) as error:
        raise RecordingError(
            f"{name}, line {event.line}: the data of this {kind.decode()} chunk cannot be read: "
            f"{_excerpt(data)}. A text chunk holds one JSON string, a base64 chunk plain base64."
        ) from error
    raise RecordingError(
        f"{name}, line {event.line}: a chunk of the unknown kind {_excerpt(kind)}. "
        "In a container each event is `event: text` with a JSON string or `event: base64`."
    )


def _text(data: bytes) -> bytes:
    text = json.loads(data)
    if not isinstance(text, str):
        raise ValueError("not a JSON string")
    return text.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError


# --- small helpers


def _digest(chunks: list[Chunk]) -> str:
    digest = hashlib.sha256()
    for _, chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _excerpt(data: bytes) -> str:
    return "`" + shorten(clean(data.decode("utf-8", "replace")), 60) + "`"


def _shown(path: str | os.PathLike[str]) -> str:
    return clean(str(path))
