"""What a file of tests depends on among the other tests: files in, and those that each imports, out.

Rule: rather too many than one too few. A package counts with all that is in it, as it may load that by
name; a conftest counts for its folder; what is no Python is read by name, and counts for all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

__all__ = ["Helpers"]

_import = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.M
).findall
_names = re.compile(r"\w+").findall


class Helpers:
    """Of the files of a folder ``tests``, by their paths."""

    def __init__(self, root: Path, files: Collection[str]) -> None:
        self._root = root
        self._files = {file for file in files if file.endswith(".py")}
        self._direct: dict[str, set[str]] = {}
        self._found: dict[str, frozenset[str]] = {}

    def of(self, file: str) -> frozenset[str]:
        """The file itself, and all that it brings in."""
        if file not in self._found:
            found, waiting = set[str](), {file} & self._files
            while waiting:
                each = waiting.pop()
                found.add(each)
                waiting |= self._brought_in(each) - found
            self._found[file] = frozenset(found)
        return self._found[file]

    def _brought_in(self, file: str) -> set[str]:
        if file not in self._direct:
            folders = PurePosixPath(file).parents
            found = {f"{folder}/conftest.py" for folder in folders} & self._files
            for module in _modules((self._root / file).read_text(), file):
                found |= self._files_of(module)
            self._direct[file] = found
        return self._direct[file]

    def _files_of(self, module: str) -> set[str]:
        path = module.replace(".", "/")
        found = {f"{path}.py"} & self._files
        packages = [path, path.rpartition("/")[0]]
        for package in packages:
            if f"{package}/__init__.py" in self._files:
                found |= {file for file in self._files if file.startswith(f"{package}/")}
        return found


def _modules(source: str, file: str) -> Iterator[str]:
    """The modules that may be meant: a name that is imported may be one itself."""
    folder = PurePosixPath(file).parent
    for start, names, plain in _import(source):
        if plain:
            yield from re.findall(r"[\w.]+", plain)
            continue
        bare = start.lstrip(".")
        dots = len(start) - len(bare)
        if dots:
            base = folder if dots == 1 else folder.parents[dots - 2]
            start = ".".join(filter(None, [str(base).replace("/", "."), bare]))
        yield start
        yield from (f"{start}.{name}" for name in _names(names))
