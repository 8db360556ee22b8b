"""Rows as ``streamnorm.table`` makes them, for the tests of the report."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def session(name: str = "a.sse", **facts: Any) -> Row:
    """A stream that ended well, unless it is said otherwise."""
    usual = {
        "form": "take", "provider": "openai_chat", "model": "gpt-x", "outcome": "finish",
        "reason": "stop", "bytes": 100, "events": 4,
    }  # fmt: skip
    return {"kind": "session", "session": name, "input": name, **usual, **facts}


def call(name: str = "a.sse", **facts: Any) -> Row:
    """A whole call with an id of the wire."""
    return {"kind": "call", "session": name, "outcome": "whole", "id_source": "natural", **facts}


def broken(name: str = "a.sse", reason: str = "truncated", **facts: Any) -> Row:
    """A call that must not run."""
    return call(name, outcome="broken", reason=reason, **facts)


def note(name: str, oddity: str, count: int = 1) -> Row:
    """An oddity."""
    return {"kind": "note", "session": name, "name": oddity, "count": count}


def unread(name: str, why: str = "is no stream") -> Row:
    """What could not be read."""
    return {
        "kind": "session",
        "session": name,
        "input": name,
        "outcome": "unreadable",
        "detail": why,
    }
