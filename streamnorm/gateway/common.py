"""Answers that are no wire's own: what is to be said comes in; one object that every client reads goes out.

Rule: each wire says it in its own form, and all forms are laid over one another. Where two of them say the
same field in other words, the first does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ..core.row import Listing
from ..encoding.server import Server
from ..page.answers import answer
from ..providers import rows_with
from ..wire import provider as wire_of

__all__ = ["listed", "listings", "problem"]


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """What went wrong, and what to do, in one sentence."""
    said: dict[str, Any] = {}
    for row in rows_with("server", Server):
        said = _laid_over(wire_of(row.name).server().refused(status, sentence).body, said)
    refused = answer(said, status)
    refused.headers.update(headers or {})
    return refused


def listings() -> dict[str, list[Listing]]:
    """The ways to list models, by the path where they are asked for."""
    found: dict[str, list[Listing]] = {}
    for row in rows_with("server", Server):
        if row.listing is not None:
            found.setdefault(row.listing.path, []).append(row.listing)
    for path, ways in list(found.items()):  # for addresses that end with a version already
        found.setdefault("/" + path.rpartition("/")[2], ways)
    return found


def listed(ways: list[Listing], names: list[str]) -> dict[str, Any]:
    """The models, in all of these ways at once."""
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
