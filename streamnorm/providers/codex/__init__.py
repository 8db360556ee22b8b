"""Codex, an agent program: the row."""

from __future__ import annotations

from ...core.row import Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="codex",
    title="Codex",
    serves="codex exec --json, and its saved sessions (rollouts)",
    framing="lines of JSON",
    lines=True,
    content_type="application/x-ndjson",
    telemetry="openai",
    demo="exec",
    parser=f"{__name__}.parser",
    lanes=f"{__name__}.lanes",
)
