"""Answers that are no wire's own: what is to be said comes in; one object that every client reads goes out.

Rule: each wire says it in its own form, and all forms are laid over one another. Where two of them say the
same field in other words, the first does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ..encoding.server import Server
from ..page.answers import answer
from ..providers import rows_with
from ..wire import provider as wire_of

__all__ = ["listed", "problem"]


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """What went wrong, and what to do, in one sentence."""
    said: dict[str, Any] = {}
    for row in rows_with("server", Server):
        said = _laid_over(wire_of(row.name).server().refused(status, sentence).body, said)
    refused = answer(said, status)
    refused.headers.update(headers or {})
    return refused


def listed(names: list[str]) -> dict[str, Any]:
    """The models."""
    ways = [row.listing for row in rows_with("server", Server) if row.listing is not None]
    entries = [{k: v for way in ways for k, v in way.said(name).items()} for name in names]
    return {**{k: v for way in ways for k, v in way.whole.items()}, "data": entries}


def _laid_over(below: Any, above: Any) -> Any:
    """
    >>> _laid_over({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 0}})
    {'a': {'b': 0, 'c': 2}, 'd': 3}
    """
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    both = {name: _laid_over(below[name], above[name]) for name in below if name in above}
    return {**below, **above, **both}
