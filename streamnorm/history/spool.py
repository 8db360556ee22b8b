"""Content of any size comes in; an ``Artifact`` with a handle goes out, and the content again for it.

Rule: a handle is made from the content (its sha256), so the same content has one handle and one file,
writing twice is writing once, and a file name never comes from a model or a wire. A file is complete
and on the disk before its artifact exists: a history can refer to it after any crash.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Literal, TypeAlias

import msgspec

from ..conversation import Made, Turn
from ..errors import StreamnormError, UsageError
from ..private import private_file, private_folder
from ..text.halves import decoded
from ..text.written import json_bytes

__all__ = ["Artifact", "ArtifactMissing", "Spool"]

Form: TypeAlias = Literal["text", "json", "bytes"]

ABOVE = 64 * 1024  # bytes; content up to this size stays in the artifact itself
_handle = re.compile(r"art_[0-9a-f]{40}").fullmatch
# Text is kept as UTF-8; halves of surrogate pairs, which models do send, come back as they were.
_ENCODING = "utf-8", "surrogatepass"


class ArtifactMissing(StreamnormError):
    """The content of an artifact is not in this spool: another directory, or it was removed."""


class Artifact(msgspec.Struct, frozen=True, tag_field="kind", tag="artifact"):
    """What a tool produced, under a handle. ``content`` is None if it lies in a spool.

    >>> Artifact.of("two\\nlines").lines
    2
    """

    handle: str
    size: int
    form: Form = "text"
    lines: int = 0
    name: str | None = None
    content: bytes | None = None

    @classmethod
    def of(cls, content: Any, *, name: str | None = None) -> Artifact:
        """An artifact that carries its content: text, bytes, or any JSON value."""
        data, form = as_bytes(content)
        return cls(_handle_of(data), len(data), form, _lines(data), name, data)

    def __repr__(self) -> str:
        where = "in a spool" if self.content is None else "here"
        return f"Artifact({self.summary}, {where})"

    @property
    def summary(self) -> str:
        """What is said of it where the content is not shown."""
        lines = "" if self.form == "bytes" else f", {self.lines} lines"
        return f"{self.name or self.handle}: {self.form}, {self.size} bytes{lines}"


class Spool:
    """Keeps large content in files of one directory; without a directory, all of it in memory.

    ``above`` is the size in bytes from which content goes to a file. Nothing is ever removed: what a
    history still refers to, only its owner knows.

    >>> Spool().put("small").content
    b'small'
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, *, above: int = ABOVE
    ) -> None:
        self.directory = None if directory is None else Path(directory)
        self.above = above
        if self.directory is not None:
            private_folder(self.directory)

    def put(self, content: Any, *, name: str | None = None) -> Artifact:
        """An artifact of text, bytes, or any JSON value."""
        artifact = Artifact.of(content, name=name)
        if self.directory is None or artifact.size <= self.above:
            return artifact
        assert artifact.content is not None
        self._keep([artifact.content], artifact.handle)
        return msgspec.structs.replace(artifact, content=None)

    def take(
        self, chunks: Iterable[bytes], *, form: Form = "text", name: str | None = None
    ) -> Artifact:
        """An artifact of content that is larger than memory, chunk by chunk."""
        if self.directory is None:
            data = b"".join(chunks)
            return Artifact(_handle_of(data), len(data), form, _lines(data), name, data)
        digest, size, newlines, last = hashlib.sha256(), 0, 0, b""

        def counted() -> Iterable[bytes]:
            nonlocal size, newlines, last
            for chunk in chunks:
                digest.update(chunk)
                size, newlines, last = size + len(chunk), newlines + chunk.count(b"\n"), chunk[-1:]
                yield chunk

        path = self._written(counted())
        handle = f"art_{digest.hexdigest()[:40]}"
        os.replace(path, self.directory / handle)
        self._settle_directory()
        lines = newlines + (size > 0 and last != b"\n")
        return Artifact(handle, size, form, lines, name)

    def open(self, artifact: Artifact) -> BinaryIO:
        """The content as a binary file, at its beginning."""
        if artifact.content is not None:
            return io.BytesIO(artifact.content)
        if self.directory is None or not _handle(artifact.handle):
            raise ArtifactMissing(f"no content for {artifact.handle!r} in this spool")
        try:
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
            return os.fdopen(os.open(self.directory / artifact.handle, flags), "rb")
        except OSError as error:
            raise ArtifactMissing(
                f"no content for {artifact.handle!r}: {error.strerror}"
            ) from error

    def read(self, artifact: Artifact) -> bytes:
        """The whole content."""
        with self.open(artifact) as file:
            return file.read()

    def value(self, artifact: Artifact) -> Any:
        """The whole content as what was put in: text, bytes or a JSON value."""
        data = self.read(artifact)
        if artifact.form == "bytes":
            return data
        if artifact.form == "json":
            return decoded(data, msgspec.json.decode)
        return data.decode(*_ENCODING)

    def kept(self, turn: Turn) -> Turn:
        """The turn as a history stores it: large media that the model made lie here, under handles."""
        return _changed(turn, self._put_away)

    def filled(self, turn: Turn) -> Turn:
        """The turn with its media again; one that does not lie here stays a handle."""
        return _changed(turn, self._brought_back)

    def _put_away(self, part: Made) -> Made:
        if self.directory is None or part.data is None or len(part.data) <= self.above:
            return part
        return msgspec.structs.replace(part, data=None, handle=self.put(part.data).handle)

    def _brought_back(self, part: Made) -> Made:
        if part.handle is None:
            return part
        try:
            data = self.read(Artifact(part.handle, 0, "bytes"))
        except ArtifactMissing:
            return part
        return msgspec.structs.replace(part, data=data, handle=None)

    def _keep(self, chunks: Iterable[bytes], handle: str) -> None:
        assert self.directory is not None
        if (self.directory / handle).exists():
            return
        os.replace(self._written(chunks), self.directory / handle)
        self._settle_directory()

    def _written(self, chunks: Iterable[bytes]) -> Path:
        """A new file with this content, on the disk."""
        assert self.directory is not None
        path = self.directory / f".new_{token_hex(12)}"
        file = private_file(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            with os.fdopen(file, "wb") as out:
                for chunk in chunks:
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
        except BaseException:
            os.unlink(path)
            raise
        return path

    def _settle_directory(self) -> None:
        # The name, too, must be on the disk before anybody hears of the handle.
        if self.directory is None or os.name == "nt":
            return
        directory = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _changed(turn: Turn, change: Callable[[Made], Made]) -> Turn:
    parts = tuple(change(part) if isinstance(part, Made) else part for part in turn.parts)
    same = all(new is old for new, old in zip(parts, turn.parts, strict=True))
    return turn if same else msgspec.structs.replace(turn, parts=parts)


def as_bytes(content: Any) -> tuple[bytes, Form]:
    """Text, bytes or a JSON value as bytes, and which of them it was."""
    if isinstance(content, str):
        return content.encode(*_ENCODING), "text"
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content), "bytes"
    try:
        return json_bytes(content), "json"
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"content of type {type(content).__name__} cannot be kept ({error}); "
            "give text, bytes, File or a JSON value"
        ) from error


def _handle_of(data: bytes) -> str:
    return f"art_{hashlib.sha256(data).hexdigest()[:40]}"


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
