"""Paths come in; files and folders go out that nobody else may read.

Rule: what we make is 0600, and a folder 0700, whatever the umask. What is there already keeps its
mode: whoever made it has chosen it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["FILE", "private_database", "private_file", "private_folder"]

FILE, FOLDER = 0o600, 0o700


def private_file(path: str | os.PathLike[str], flags: int) -> int:
    """``os.open`` of a file that it makes; raises as that does if it is there."""
    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE)
    if hasattr(os, "fchmod"):
        os.fchmod(file, FILE)  # a umask may take away more than it is asked for
    return file


def private_folder(path: str | os.PathLike[str]) -> None:
    """Make this folder, and those above it that are missing."""
    folder = Path(path)
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # somebody made it meanwhile
            each.mkdir(FOLDER)
            each.chmod(FOLDER)
    folder.mkdir(exist_ok=True)  # raises if it is something else


def private_database(path: str) -> None:
    """Have the file that SQLite is about to open. It would make one that all may read; what it puts
    beside a file (``-wal``, ``-shm``) has the mode of that."""
    if path and path != ":memory:":
        with suppress(OSError):  # it is there, or cannot be: SQLite says why
            os.close(private_file(os.path.realpath(path), os.O_RDWR))
