"""Installed packages come in; the rows of the providers that they bring go out.

A package brings a provider by an entry point, to a row or to a module that holds one as PROVIDER:

    [project.entry-points."streamnorm.providers"]
    acme = "acme_streamnorm"

Rule: what others bring breaks nothing of ours. One that fails is told once in the log, is left out
of every list, and says why when it is asked for by name. Packages are looked for when a name is not
ours or all names are wanted, and again when ``sys.path`` has changed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.row import Provider
from ..notes import WARNING, Scribe

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "Plugins"]

GROUP = "streamnorm.providers"


class Plugins:
    """The providers of other packages: their rows, and why those that fail do."""

    def __init__(self, ours: tuple[str, ...]) -> None:
        self._ours = ours
        self._path: tuple[str, ...] | None = None
        self._told: set[str] = set()
        self._rows: dict[str, Provider] = {}
        self.broken: dict[str, str] = {}

    def rows(self) -> dict[str, Provider]:
        """Those that can be used; the same dict until something has changed."""
        path = tuple(sys.path)
        if path != self._path:
            self._path, self._rows, self.broken = path, {}, {}
            for point in _entry_points():
                self._take(point)
        return self._rows

    def give_up(self, name: str, why: str) -> None:
        """Leave this one out from now on."""
        self._rows = {other: row for other, row in self._rows.items() if other != name}
        self.broken[name] = why
        self.warn(name, why)

    def warn(self, name: str, why: str) -> None:
        """Something of this one cannot be used: told once."""
        if why not in self._told:
            self._told.add(why)
            Scribe(name).log(WARNING, "provider.broken", reason=why)

    def _take(self, point: EntryPoint) -> None:
        try:
            self._rows[point.name] = self._row(point)
        except Exception as error:  # noqa: BLE001  the code of others may raise anything
            whose = point.dist.name if point.dist else "an unnamed package"
            why = f"{type(error).__name__}: {error}"
            self.give_up(point.name, f"{point.value} of {whose} cannot be used: {why}")

    def _row(self, point: EntryPoint) -> Provider:
        if point.name in self._ours or point.name in self._rows:
            raise ValueError(f"there is a provider {point.name!r} already")
        row: Any = point.load()
        row = getattr(row, "PROVIDER", row)
        if not isinstance(row, Provider):
            raise TypeError(f"it is a {type(row).__name__}, and neither a row nor has PROVIDER")
        if row.name != point.name:
            raise ValueError(f"the entry point is {point.name!r}, its row is {row.name!r}")
        _check(row)
        return row


def _check(row: Provider) -> None:
    """A value of another type than its field wants would fail much later, and elsewhere."""
    msgspec.convert(msgspec.to_builtins(row), Provider)
    try:
        row.path.format(model="")
    except (LookupError, ValueError):
        raise ValueError(f"its path {row.path!r} may hold {{model}} and nothing else") from None


def _entry_points() -> list[EntryPoint]:
    from importlib.metadata import entry_points

    return list(entry_points(group=GROUP))
