"""Places come in, as people write them: files, folders, patterns; what is to be read goes out.

    for one in inputs(["recordings", "captures/*.har"]):
        print(one.name if isinstance(one, Input) else one.why)

Rule: every place gives something. One that is not there, and a pattern that nothing fits, is a
``Left`` that says so. The order is always the same: as the places were named, and by name in a folder.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from . import Left

__all__ = ["Input", "inputs"]


class Input(NamedTuple):
    """One file that is to be read."""

    name: str  # its path or address
    size: int | None = None  # bytes, where it is known

    def open(self) -> BinaryIO:
        """Its bytes; an ``OSError`` if it cannot be read."""
        return open(self.name, "rb")


def inputs(places: Iterable[str | os.PathLike[str]]) -> Iterator[Input | Left]:
    """The files in ``places``."""
    for place in places:
        yield from _of_place(os.fspath(place))


def _of_place(place: str) -> Iterator[Input | Left]:
    if os.path.isdir(place):
        found = _files_in(place)
        yield from found if found else [Left(place, "is a folder without files")]
    elif not os.path.lexists(place) and glob.has_magic(place):
        paths = sorted(path for path in glob.iglob(place, recursive=True) if os.path.isfile(path))
        yield from map(_input, paths) if paths else [Left(place, "is a pattern that no file fits")]
    else:
        yield _input(place)


def _files_in(folder: str) -> list[Input]:
    """Its files and those of its folders, but for hidden ones."""
    found = []
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(top, name) for name in sorted(names) if not name.startswith(".")]
    return [_input(path) for path in found]


def _input(path: str) -> Input:
    try:
        return Input(path, os.stat(path).st_size)
    except OSError:
        return Input(path)  # opening it says why
