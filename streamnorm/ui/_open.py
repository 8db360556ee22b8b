"""Payloads that a producer left come in; what was opened and never closed goes out.

Rule: used only where a producer died, so it may read everything again; it trusts its own log.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

__all__ = ["Openings", "Table"]

Table: TypeAlias = dict[str, tuple[str, str | None]]


class Openings:
    """Which parts of a told stream are open, in the order in which they must be closed."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, Any], dict[str, Any]] = {}
        self.first: dict[str, Any] = {}
        self.last = b""
        self.ended = False

    def hear(self, payload: bytes, openers: Table, closers: Table) -> None:
        """One more payload. Steps are closed last, as parts are inside of them."""
        self.last = payload
        if not payload.startswith(b"{"):
            return
        chunk = json.loads(payload)
        self.first = self.first or chunk
        kind = chunk.get("type")
        if kind in openers:
            what, key = openers[kind]
            self.open[what, _key(chunk, what, key)] = chunk
        elif kind in closers:
            what, key = closers[kind]
            self.ended = self.ended or what == "end"
            self.open.pop((what, _key(chunk, what, key)), None)
        if steps := [place for place in self.open if place[0] == "step"]:
            self.open[steps[0]] = self.open.pop(steps[0])


def _key(chunk: dict[str, Any], what: str, key: str | None) -> Any:
    return what if what == "step" or key is None else chunk[key]
