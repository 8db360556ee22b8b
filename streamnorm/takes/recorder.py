"""The recorder: the chunks of a live stream in, a take out (``takes/format.py`` says what that is).

Rule: once the file is there, nothing that happens here is heard by the stream that is watched. A
full disk or any other trouble sets ``failed``, logs one warning and ends the recording.

- The file is new, ours and private: ``O_CREAT | O_EXCL | O_NOFOLLOW``, mode 0600.
- A chunk is put aside with its time, which is all that the stream waits for. It is cleaned and
  written together with those that came with it, by another thread (``writer.py``) after at most
  ``DELAY``, or at once when there are ``MOST`` bytes; and whenever the recorder is flushed, closed
  or dropped, and when the process ends or forks. It goes on in the process that began it.
- So a killed process leaves a take that can be read, up to those last moments; ``Take.finished`` is
  told by the last line, which only ``close`` writes.
- Server-sent events stay what they are, with arrival times in comments at line ends. Any other
  body goes into the container, chunk by chunk. The first bytes decide.
- Secrets are overwritten before anything is written (``redact.py``). In AWS frames the checksums
  are made to fit again.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import secrets as random_source
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Protocol, Self, TypeAlias

from ..errors import RecordingError, UsageError
from ..framing import sniff
from ..framing.aws import Frames, resealed
from ..notes import WARNING, Scribe
from ..private import private_file
from ..providers import PROVIDERS
from ..text.shown import clean
from ..text.written import json_bytes, sse
from .redact import (
    SHORTEST,
    Headers,
    Redactor,
    Secret,
    bare_url,
    kept_headers,
    secrets_in_headers,
    secrets_in_url,
)
from .writer import WRITER, at_the_latest

__all__ = ["Recorder"]

MADE = "captured by streamnorm"
SUFFIX = ".sse"
LABEL = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", re.ASCII)
SNIFF = 64  # bytes that decide what a body is, as in the normalizer
MOST = 64 * 1024  # bytes that may wait to be written

Batch: TypeAlias = list[tuple[float, bytes]]  # chunks, each with the seconds after which it came


class Recorder:
    """Writes one take.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Recorder.open(folder, provider="openai_chat", seed="s", secrets=["hunter22"]) as tape:
    ...     tape.chunk(b'data: {"choices":[]}\\n\\n')
    ...     tape.chunk(b'data: {"error":"no user hunter22"}\\n\\n')
    >>> from streamnorm import read_take
    >>> take = read_take(tape.path)
    >>> take.finished, take.wire.splitlines()[2]
    (True, b'data: {"error":"no user xxxxxxxx"}')
    """

    failed: str | None  #: why the recording ended early, or None

    def __init__(
        self,
        file: int,
        path: str,
        *,
        provider: str,
        facts: dict[str, Any],
        redactor: Redactor,
        secrets: set[Secret],
        clock: Callable[[], float],
    ) -> None:
        self.path = path
        self.failed = None
        self._file: int | None = file
        self._provider = provider
        self._facts = facts
        self._redactor = redactor
        self._secrets = secrets
        self._legs = 1  # connections so far
        self._timed = True  # are the times of the chunks written down?
        self._clock = clock
        self._began = clock()
        self._body: _Body | None = None
        self._kind: str | None = None  # what the body is, if payloads told
        self._first: Batch = []  # until the bytes say what it is
        self._size = 0  # bytes that came
        self._waiting: deque[tuple[float, bytes]] = deque()  # … and are not written yet
        self._asked = False  # was the writer asked for a flush that has not begun?
        self._busy = False  # is whoever has the lock at work?
        self._most = MOST  # bytes that may have come until those that wait are written
        self._lock = threading.RLock()
        at_the_latest(self)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        provider: str,
        seed: str,
        url: object = None,
        headers: Headers | None = None,
        request_headers: Headers | None = None,
        secrets: Iterable[Secret] = (),
        status: int | None = None,
        label: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Recorder:
        """Make the file. In a folder the name is ours: ``<utc>-<random>[-<label>].sse``.

        ``headers`` are those of the response, of which an allow-list is written down.
        ``request_headers`` and ``url`` only tell what is secret (of the URL, host and path are
        kept). Raises ``RecordingError`` if the file cannot be made, and that is the last time
        that anything here raises.
        """
        known = {*secrets, *secrets_in_headers(request_headers), *secrets_in_url(url)}
        known |= secrets_in_headers(headers)
        redactor = Redactor(known)
        facts = _facts(provider, seed, url, headers, status, redactor)
        target = _target(path, label)
        if redactor.too_short:
            Scribe(provider).log(
                WARNING, "recorder.secret_too_short", count=redactor.too_short, shortest=SHORTEST
            )
        return cls(
            _create(target),
            target,
            provider=provider,
            facts=facts,
            redactor=redactor,
            secrets=known,
            clock=clock,
        )

    @classmethod
    def copy(
        cls, path: str | os.PathLike[str], header: dict[str, Any], *,
        clock: Callable[[], float] | None,
    ) -> Recorder:  # fmt: skip
        """Make the file of a stream that was captured before, with what is known of it; ``clock`` says
        when its bytes came, counted from 0, if anybody knows."""
        redactor = Redactor()
        target = os.fspath(path)
        facts = json.loads(redactor.whole(json_bytes({**header, "container": None})))
        del facts["container"]  # that is told by the bytes
        provider = header.get("provider") or "auto"
        tape = cls(
            _create(target), target, provider=provider, facts=facts, redactor=redactor, secrets=set(),
            clock=clock or (lambda: 0.0),
        )  # fmt: skip
        tape._timed = clock is not None
        return tape

    def chunk(self, data: bytes) -> None:
        """Bytes that arrived now."""
        if self._file is None:
            return None
        try:
            if type(data) is not bytes:
                data = bytes(data)
            waiting = self._waiting
            waiting.append((self._clock(), data))
            self._size = size = self._size + len(data)
        except Exception as error:  # noqa: BLE001  the stream must not hear of any of them
            return self._refuse(error)
        if not self._asked:
            self._asked = True
            WRITER.soon(self)
        elif size >= self._most:
            self._safely(self._write_waiting, None)  # the writer stays asked: it will come anyway
        return None

    def payload(self, payload: dict[str, Any]) -> None:
        """One decoded payload that arrived now, such as an SDK object's dict."""
        row = PROVIDERS.get(self._provider)
        lines = row is not None and row.lines  # those of all others go into events
        try:
            data = json_bytes(payload)
        except Exception as error:  # noqa: BLE001  the stream must not hear of any of them
            return self._refuse(error)
        if not self._size:
            self._kind = "json" if lines else "text"
        return self.chunk(data + b"\n" if lines else sse(data))

    def flush(self) -> None:
        """Write what came so far, but for the last bytes if they may be the beginning of a secret."""
        self._asked = False  # before what waits is looked at: what comes after that asks again
        self._safely(self._write_waiting, None)  # what the writer has taken it may still be writing

    def leg(self, headers: Headers | None = None, secrets: Iterable[Secret] = ()) -> None:
        """The connection was lost; what comes now is of the next one, whose response has these
        ``headers``."""
        self._safely(self._new_leg, {*secrets, *secrets_in_headers(headers)})

    def close(self, *, finished: bool) -> None:
        """The stream is over; ``finished`` if it was heard to its end. May be called twice."""
        self._safely(self._last, finished)
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(finished=kind is None)

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.flush()
            self._stop()

    def leave(self) -> None:
        """See ``writer.Owner``. Both processes would write into one file, and each its last line."""
        self._lock = threading.RLock()
        if self._file is not None:
            self.failed = "forked: it goes on in the process that began it"
            self._stop()

    def __repr__(self) -> str:
        state = "failed" if self.failed else "open" if self._file is not None else "closed"
        return f"Recorder({clean(self.path)!r}, {state})"

    # --- what may go wrong ------------------------------------------------------------------------

    def _safely(self, act: Callable[[Any], None], value: Any) -> None:
        with self._lock:
            if self._file is None or self._busy:  # by the same thread, which was interrupted in it
                return
            self._busy = True
            try:
                act(value)
            except Exception as error:  # noqa: BLE001  the stream must not hear of any of them
                self._give_up(error)
            except BaseException:  # interrupted in the middle: nothing may follow what is torn
                self._stop()
                raise
            finally:
                self._busy = False

    def _refuse(self, error: Exception) -> None:
        """What came cannot be recorded; what came before it is."""
        self.flush()
        with self._lock:
            if self._file is not None:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.failed = clean(self._redactor.clean_text(f"{type(error).__name__}: {why}"))
        self._stop()
        Scribe(self._provider).log(
            WARNING, "recorder.failed", reason=self.failed, path=self.path, bytes=self._size
        )

    def _stop(self) -> None:
        file, self._file = self._file, None
        self._waiting.clear()
        if file is not None:
            try:
                os.close(file)
            except OSError as error:
                self.failed = self.failed or clean(str(error.strerror))

    # --- writing ----------------------------------------------------------------------------------

    def _write_waiting(self, _: None = None) -> None:
        if not self._waiting:
            return
        # Taken one by one, as the stream may go on adding to them meanwhile.
        take, began = self._waiting.popleft, self._began
        self._most = self._size + MOST
        came = [take() for _ in range(len(self._waiting))]
        batch: Batch = [(at - began if at > began else 0.0, data) for at, data in came]
        if self._body is None:
            batch = self._begun_with(batch)
        if batch and self._body is not None:
            self._write(self._body.batch(batch))

    def _begun_with(self, batch: Batch) -> Batch:
        """The first bytes, once they say what the body is; until then nothing."""
        self._first += batch
        first = b"".join(data for _, data in self._first)
        kind = self._kind or sniff(first[:SNIFF])
        if kind is None and len(first) < SNIFF:
            return []
        self._begin(kind or "text")
        batch, self._first = self._first, []
        return batch

    def _begin(self, kind: str) -> None:
        body = _BODIES.get(kind, _Container)(self._redactor)
        body.timed = self._timed
        facts = self._facts | ({"container": "chunks"} if body.CONTAINER else {})
        self._write(b": streamnorm " + json_bytes(facts) + b"\n")
        self._body = body

    def _new_leg(self, secrets: set[Secret]) -> None:
        body = self._written(self._now())
        self._legs += 1
        self._write(body.comment({"leg": self._legs}))
        if not secrets <= self._secrets:
            self._secrets |= secrets
            self._redactor = body.redactor = Redactor(self._secrets)

    def _last(self, finished: bool) -> None:
        now = self._now()
        body = self._written(now)
        facts = {"finished": finished, "seconds": round(now, 3), "bytes": self._size}
        self._write(body.comment(facts))

    def _written(self, now: float) -> _Body:
        """All that came so far is written: what follows is none of it."""
        self._write_waiting()
        if self._body is None:
            self._begin(self._kind or "text")
        assert self._body is not None
        first, self._first = self._first, []
        self._write(self._body.batch(first) + self._body.rest(now))
        return self._body

    def _now(self) -> float:
        return max(0.0, self._clock() - self._began)

    def _write(self, data: bytes) -> None:
        file = self._file
        left = memoryview(data)
        while left and file is not None:
            left = left[os.write(file, left) :]


# --- the file -------------------------------------------------------------------------------------


def _target(path: str | os.PathLike[str], label: str | None) -> str:
    target = os.fspath(path)
    if label is not None and not LABEL.fullmatch(label):
        raise UsageError(
            f"the label {clean(label[:80])!r} cannot be part of a file name: use 1 to 64 letters, "
            "digits, dots, dashes or underscores, without a dot at the beginning"
        )
    try:
        inside = os.path.isdir(target)
    except ValueError:  # a NUL; making the file will say so
        inside = False
    return os.path.join(target, _name(label)) if inside else target


def _name(label: str | None) -> str:
    made = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    parts = [made, random_source.token_hex(6), *([label] if label else [])]
    return "-".join(parts) + SUFFIX


_CAUSES = {
    errno.EEXIST: "it is there already, and a take is never overwritten. Name a new file, or a "
    "folder in which the name is chosen for you",
    errno.ELOOP: "it is a symbolic link. Name a new file, or a folder",
    errno.ENOENT: "its folder is not there. Make the folder first",
    errno.ENOTDIR: "what should be its folder is a file. Name another place",
    errno.ENAMETOOLONG: "the name is too long. Name a folder, and the name is chosen for you",
    errno.EACCES: "this user may not write there. Name another place",
    errno.EPERM: "this user may not write there. Name another place",
    errno.EROFS: "that disk is read-only. Name another place",
    errno.ENOSPC: "the disk is full. Make room, or name another place",
}


def _create(target: str) -> int:
    flags = os.O_WRONLY
    for extra in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, extra, 0)
    try:
        return private_file(target, flags)
    except OSError as error:
        why = _CAUSES.get(error.errno or 0, f"{error.strerror}. Name another place")
        raise RecordingError(f"{clean(str(target))} cannot be recorded to: {why}.") from error
    except ValueError as error:
        raise RecordingError(
            f"{clean(str(target))} cannot be recorded to: {error}. Name another place."
        ) from error


# --- what is known beforehand ---------------------------------------------------------------------


def _facts(
    provider: str,
    seed: str,
    url: object,
    headers: Headers | None,
    status: int | None,
    redactor: Redactor,
) -> dict[str, Any]:
    kept, others = kept_headers(headers, redactor)
    facts: dict[str, Any] = {
        "provider": None if provider == "auto" else provider,
        "seed": redactor.clean_text(seed),
        "captured": datetime.now(UTC).date().isoformat(),
        "made": MADE,
        "url": redactor.clean_text(bare_url(url)) if url else None,
        "status": status,
        "headers": kept,
        "other_headers": others,
    }
    return {key: value for key, value in facts.items() if value not in (None, {})}


def _mark(at: float) -> bytes:
    return b": +%.3f\n" % at


# --- bodies ---------------------------------------------------------------------------------------


class _Body(Protocol):
    """How chunks of one kind of body are written down."""

    CONTAINER: bool
    redactor: Redactor
    timed: bool

    def __init__(self, redactor: Redactor) -> None: ...

    def batch(self, chunks: Batch) -> bytes:
        """What to write for bytes that arrived at these times."""

    def rest(self, at: float) -> bytes:
        """What was held back until the end."""

    def comment(self, facts: dict[str, Any]) -> bytes:
        """A line of ours, about what was written: it ended there."""


# A line of the wire's own that would be read as ours, or its beginning at the end of a chunk.
_LIKE_OURS = re.compile(rb"(?<![^\r\n]):(?= (?:\+|streamnorm ))")
_PERHAPS = re.compile(
    rb"(?<![^\r\n]):(?: (?:s(?:t(?:r(?:e(?:a(?:m(?:n(?:o(?:rm?)?)?)?)?)?)?)?)?)?)?\Z"
)
_LONGEST = len(b": streamnorm")
_PLUS, _NEWLINE = b"+\n"
_SURE = 0.000499  # seconds after a mark that are surely rounded to it
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\n|\Z)")


class _Events:
    """Server-sent events: the bytes themselves, with times between lines."""

    CONTAINER = False
    timed = True

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._last = b"\n"  # the last byte written: may a comment of ours stand here?
        self._held = b""
        self._marked = -1.0
        # What is not let go: when it came, and how long it is. Chunks with one mark are one.
        self._coming: deque[list[Any]] = deque()
        self._until = -1.0  # before this, a chunk has the mark of the last one

    def batch(self, chunks: Batch) -> bytes:
        coming, until = self._coming, self._until
        for at, data in chunks:
            if at < until and coming:
                coming[-1][1] += len(data)
            else:
                mark = round(at, 3)
                coming.append([mark, len(data)])
                until = mark + _SURE
        self._until = until
        return self._let_go(self.redactor.feed(b"".join([data for _, data in chunks])))

    def rest(self, at: float) -> bytes:
        return self._let_go(self.redactor.flush(), last=True)

    def comment(self, facts: dict[str, Any]) -> bytes:
        last, self._last = self._last, b"\n"
        if last in b"\r\n":
            return b": streamnorm " + json_bytes(facts) + b"\n"
        return b"\n: streamnorm " + json_bytes(facts | {"open_line": True}) + b"\n"

    def _let_go(self, data: bytes, *, last: bool = False) -> bytes:
        """Clean bytes in their order, with marks between them where chunks with other times begin:
        cleaning changes no length, and what is held back stays in the count of what is coming."""
        data = self._disguised(self._settled(self._held + data, last))
        coming, marked = self._coming, self._marked
        out: list[bytes] = []
        start = written = 0
        total = len(data)
        while start < total:
            entry = coming[0]
            at, size = entry
            end = start + size
            if end > total:
                entry[1] = end - total
                end = total
            else:
                coming.popleft()
            if at != marked and self.timed:
                begins = start and data[start - 1] == _NEWLINE
                if (place := start if begins else self._place(data, start, end)) < end:
                    marked = at
                    out += data[written:place], _mark(at)
                    written = place
            start = end
        self._marked = marked
        self._last = data[-1:] or self._last
        return b"".join((*out, data[written:]))

    def _place(self, data: bytes, start: int, end: int) -> int:
        """Where the first line begins in this part of the data; its end, if none does."""
        before = data[start - 1 : start] if start else self._last
        if before == b"\n" or (before == b"\r" and data[start : start + 1] != b"\n"):
            return start
        line_end = _LINE_END.search(data, start, end)
        return line_end.end() if line_end else end

    def _behind(self, data: bytes) -> bytes:
        """The data, behind what tells whether it begins a line."""
        return (b"\n" if self._last in b"\r\n" else b".") + data

    def _settled(self, data: bytes, last: bool) -> bytes:
        """The data but for what may be the beginning of a line like ours, which is held back."""
        context = self._behind(data)
        perhaps = None if last else _PERHAPS.search(context, max(1, len(context) - _LONGEST))
        edge = perhaps.start() - 1 if perhaps else len(data)
        self._held = data[edge:]
        return data[:edge]

    def _disguised(self, data: bytes) -> bytes:
        """A comment of the wire that reads like one of ours gets a second space."""
        # To look for one byte is cheap, and for a long needle; not for a short one.
        if (_PLUS not in data or b": +" not in data) and b": streamnorm " not in data:
            return data
        context = self._behind(data)
        coming = iter(self._coming)
        entry: list[Any] = []
        end = 1  # the context is one byte longer
        for like in _LIKE_OURS.finditer(context):
            while like.start() >= end:
                entry = next(coming)
                end += entry[1]
            entry[1] += 1  # the space came with the colon
        return _LIKE_OURS.sub(b": ", context)[1:]


class _Container:
    """Any other body: each chunk in an event of its own."""

    CONTAINER = True
    timed = True

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def batch(self, chunks: Batch) -> bytes:
        return b"".join([self.chunk(at, data) for at, data in chunks])

    def chunk(self, at: float, data: bytes) -> bytes:
        """One of them."""
        return self.boxed(at, self.redactor.feed(data))

    def rest(self, at: float) -> bytes:
        return self.boxed(at, self.redactor.flush())

    def comment(self, facts: dict[str, Any]) -> bytes:
        return b": streamnorm " + json_bytes(facts) + b"\n"

    def boxed(self, at: float, data: bytes) -> bytes:
        """An event for clean bytes."""
        if not data:
            return b""
        try:
            kind, text = b"text", json_bytes(data.decode())
        except UnicodeDecodeError:
            kind, text = b"base64", base64.b64encode(data)
        mark = _mark(at) if self.timed else b""
        return mark + b"event: " + kind + b"\ndata: " + text + b"\n\n"


class _Frames(_Container):
    """AWS frames: each is redacted as a whole, so that its checksum can be made to fit again.

    A frame whose checksum does not fit is written as it came: a take hides no fault of the wire.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(redactor)
        self._frames = Frames()

    def chunk(self, at: float, data: bytes) -> bytes:
        if self._frames.lost:  # not frames after all: from here on, bytes like any others
            return super().chunk(at, data)
        frames = [resealed(frame, self.redactor.whole) for frame in self._frames.feed(data)]
        return self.boxed(at, b"".join(frames)) + (self._no_frame(at) if self._frames.lost else b"")

    def rest(self, at: float) -> bytes:
        rest = self._no_frame(at) + super().rest(at)
        self._frames = Frames()
        return rest

    def _no_frame(self, at: float) -> bytes:
        return super().chunk(at, b"".join(self._frames.rest()))


_BODIES: dict[str, type[_Body]] = {"text": _Events, "aws": _Frames}
