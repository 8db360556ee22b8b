"""Answers that are no wire's own: what is to be said comes in; one object that every client reads goes out.

Rule: each wire says it in its own form, and all forms are laid over one another. Where two of them say the
same field in other words, the first does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ..core.row import Listing, Provider
from ..encoding.server import Server
from ..page.answers import answer
from ..providers import rows_with
from ..wire import provider as wire_of

__all__ = ["Lists", "problem"]

SHARED = "authorization"  # the header for keys of whichever wire


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """What went wrong, and what to do, in one sentence."""
    said: dict[str, Any] = {}
    for row in rows_with("server", Server):
        said = _laid_over(wire_of(row.name).server().refused(status, sentence).body, said)
    refused = answer(said, status)
    refused.headers.update(headers or {})
    return refused


class Lists:
    """The models that a client can ask for, listed wherever a wire has its list.

    One path can be that of several wires. In another version than its own, a wire whose keys come in a
    header of their own is told only to who sends that: to others its fields would mean something else.
    """

    def __init__(self) -> None:
        self._ways: dict[str, list[tuple[str, Listing]]] = {}  # the header that must be there
        for row in rows_with("server", Server):
            if row.listing is not None:
                self._add(row, row.listing)

    def _add(self, row: Provider, listing: Listing) -> None:
        rest = listing.path.removeprefix(row.version)
        own = row.key.header if row.key and row.key.header != SHARED else ""
        for path in dict.fromkeys((listing.path, rest, *(v + rest for v in row.other_versions))):
            header = "" if path == listing.path else own
            self._ways.setdefault(path, []).append((header, listing))

    @property
    def paths(self) -> list[str]:
        """Where a list is asked for."""
        return list(self._ways)

    def told(self, path: str, headers: Mapping[str, str], names: list[str]) -> dict[str, Any]:
        """The models, in all the ways at once in which this client may ask for them."""
        ways = [way for header, way in self._ways[path] if not header or header in headers]
        entries = [{k: v for way in ways for k, v in way.said(name).items()} for name in names]
        said = {k: v for way in ways for k, v in way.whole.items()}
        return {**said, **{way.field: entries for way in ways}}


def _laid_over(below: Any, above: Any) -> Any:
    """
    >>> _laid_over({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 0}})
    {'a': {'b': 0, 'c': 2}, 'd': 3}
    """
    if above is None:  # nothing is said there
        return below
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    both = {name: _laid_over(below[name], above[name]) for name in below if name in above}
    return {**below, **above, **both}
