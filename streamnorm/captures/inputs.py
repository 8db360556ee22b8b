"""Places come in, as people write them: files, folders, patterns, URLs; what is to be read goes out.

    for one in inputs(["recordings", "captures/*.har", "s3://bucket/logs"]):
        print(one.name if isinstance(one, Input) else one.why)

Rule: every place gives something. One that is not there, and a pattern that nothing fits, is a
``Left`` that says so. The order is always the same: as the places were named, and by name in a folder.
What opens a URL is fsspec; a password or a signature in it is needed to open it, and is in no name.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, NamedTuple

from ..errors import UsageError, needs
from ..takes.redact import secrets_in_url
from . import Left

__all__ = ["Input", "input_at", "inputs"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:::|://)")  # one letter is a drive
_CHANGES = ("ETag", "etag", "mtime", "LastModified", "last_modified", "created")
_HIDDEN = "…"  # in place of a secret
ASK = "is a pipe, a socket or a device, which is read only if it is named itself"


class Input(NamedTuple):
    """One file that is to be read."""

    name: str  # its path or address
    size: int | None = None  # bytes, where it is known
    version: str | None = None  # another one when it has changed: its time or its ETag
    url: str | None = None  # what opens it, if that is not its name

    def anywhere(self) -> Input:
        """The same, to be opened by a process that is in another folder."""
        url = self.url or self.name
        return self if _URL.match(url) else self._replace(url=os.path.abspath(url))

    @property
    def is_remote(self) -> bool:
        """Does it wait for others?"""
        return _URL.match(self.url or self.name) is not None

    def open(self) -> BinaryIO:
        """Its bytes; an ``OSError`` if it cannot be read."""
        url = self.url or self.name
        if not self.is_remote:
            return open(url, "rb")
        try:
            system, path = _system(url)
            file: BinaryIO = system.open(path, "rb")
        except Exception as error:  # noqa: BLE001  each store has errors of its own
            raise OSError(_said(error, url)) from None  # which tell the whole address
        return file

    def read(self) -> bytes:
        """All of them."""
        with self.open() as file:
            try:
                return file.read()
            except Exception as error:
                if isinstance(error, MemoryError) or not self.is_remote:
                    raise
                raise OSError(_said(error, self.url or self.name)) from None


def input_at(place: str) -> Input:
    """One file, whatever is there."""
    if _is_url(place):
        name = _shown(place)
        return Input(name, url=None if name == place else place)
    return _input(place)


def inputs(places: Iterable[str | os.PathLike[str]]) -> Iterator[Input | Left]:
    """The files in ``places``."""
    for place in places:
        place = os.fspath(place)
        yield from _of_url(place) if _is_url(place) else _of_place(place)


def _is_url(place: str) -> bool:
    """Is it one, and not a file that is called so?"""
    return _URL.match(place) is not None and not os.path.lexists(place)


def _of_place(place: str) -> Iterator[Input | Left]:
    if os.path.isdir(place):
        yield from list(_files_in(place)) or [Left(place, "is a folder without files")]
    elif not os.path.lexists(place) and glob.has_magic(place):
        yield from list(_fitting(place)) or [Left(place, "is a pattern that no file fits")]
    else:
        yield _input(place)


def _files_in(folder: str) -> Iterator[Input | Left]:
    """Its files and those of its folders, but for hidden ones. Links to folders may lead back."""
    closed: list[OSError] = []
    for top, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if os.path.islink(os.path.join(top, name))]
        shown = [name for name in names if not name.startswith(".")]
        for name in sorted(links + shown):
            yield _met(os.path.join(top, name))
    for error in closed:
        yield Left(error.filename, f"cannot be read: {error.strerror}")


def _fitting(pattern: str) -> Iterator[Input | Left]:
    """As ``_files_in``: what fits, and what is in the folders that fit."""
    head, deep, tail = _parted(pattern)
    if not deep:
        for path in sorted(glob.iglob(pattern)):
            if os.path.isdir(path) and not os.path.islink(path):
                yield from _files_in(path)
            else:
                yield _met(path)
        return
    for folder in sorted(glob.iglob(head)) if head else [os.curdir]:
        if not os.path.isdir(folder):
            continue
        for one in _files_in(folder):
            inside = os.path.relpath(one.name, folder)
            if isinstance(one, Left) and one.why != ASK:
                fits = True  # who knows what is in there
            else:
                fits = _fits(inside.split(os.sep), tail)
            if fits:
                yield one if head else _named(one, inside)


def _parted(pattern: str) -> tuple[str, bool, list[str]]:
    """What is before ``**``, whether there is one, and the names from there."""
    names = pattern.split(os.sep)
    if "**" not in names:
        return pattern, False, []
    at = names.index("**")
    return os.sep.join(names[:at]) or os.sep[: at > 0], True, names[at:]


def _fits(names: list[str], pattern: list[str]) -> bool:
    """Does a path fit, or a folder that it is in?"""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_fits(names[at:], pattern[1:]) for at in range(len(names)))
    return bool(names) and fnmatchcase(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


def _named(one: Input | Left, name: str) -> Input | Left:
    return _input(name) if isinstance(one, Input) else one._replace(name=name)


def _met(path: str) -> Input | Left:
    """What nobody named, but a folder or a pattern has it: reading a pipe might never end."""
    if os.path.isdir(path):
        return Left(path, "is a link to a folder: name it to read what is in there", aside=True)
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return _input(path)  # opening it says why
    return _input(path) if stat.S_ISREG(mode) else Left(path, ASK)


def _input(path: str) -> Input:
    url = os.path.abspath(path) if _URL.match(path) else None  # a file, whatever it is called
    try:
        told = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return Input(path, url=url)  # opening it says why
    return Input(path, told.st_size, str(told.st_mtime_ns), url)


# --- URLs -----------------------------------------------------------------------------------------


def _system(url: str) -> tuple[Any, str]:
    """Who opens a URL, and what it is called there."""
    needs("fsspec", f"{_shown(url).partition(':')[0]}://…", extra="table")
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:  # no such scheme, or its library is not there
        raise UsageError(f"{_shown(url)} cannot be opened: {_said(error, url)}") from error
    return system, path


def _of_url(url: str) -> Iterator[Input | Left]:
    system, path = _system(url)
    try:
        found = _found(system, path, url)
    except Exception as error:  # noqa: BLE001  each store has errors of its own
        found = [Left(_shown(url), f"cannot be read: {_said(error, url)}")]
    yield from found


def _found(system: Any, path: str, url: str) -> list[Input | Left]:
    # A question mark in an address begins its query: there it is no pattern.
    if any(sign in path for sign in ("*?[" if "http" not in system.protocol else "*[")):
        facts = system.glob(path, detail=True)
        return _inputs(system, facts) or [Left(_shown(url), "is a pattern that no file fits")]
    facts = _info(system, path)
    if facts.get("type") != "directory":
        return [_remote(url, facts)]  # with its query
    return _inputs(system, system.find(path, detail=True)) or [
        Left(_shown(url), "is a folder without files")
    ]


def _info(system: Any, path: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = system.info(path)
    except FileNotFoundError:
        return {}  # opening it says why
    return told


def _inputs(system: Any, facts: dict[str, dict[str, Any]]) -> list[Input | Left]:
    files = (path for path, told in facts.items() if told.get("type") != "directory")
    return [_remote(system.unstrip_protocol(path), facts[path]) for path in sorted(files)]


def _remote(url: str, facts: dict[str, Any]) -> Input:
    changed = next((facts[key] for key in _CHANGES if facts.get(key) is not None), None)
    name = _shown(url)
    size = facts.get("size")
    return Input(
        name,
        int(size) if size is not None else None,
        None if changed is None else str(changed),
        None if name == url else url,
    )


def _shown(url: str) -> str:
    """An address without what is secret in it."""
    for secret in secrets_in_url(url):
        url = url.replace(secret, _HIDDEN)
    return url


def _said(error: Exception, url: str) -> str:
    """What an error says, in one line and without the secrets of a URL."""
    said = str(error) or type(error).__name__
    if said == url and error.__cause__ is not None:  # the address alone says nothing
        said = f"{type(error.__cause__).__name__}: {error.__cause__}"
    for secret in secrets_in_url(url):
        said = said.replace(secret, _HIDDEN)
    return " ".join(said.split())
