"""Claude Code, an agent program: the row."""

from __future__ import annotations

from ...core.row import Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="claude_code",
    title="Claude Code",
    serves="claude --output-format stream-json, its saved sessions, and the agent SDK",
    framing="lines of JSON",
    lines=True,
    content_type="application/x-ndjson",
    telemetry="anthropic",
    sdk_modules=("claude_agent_sdk",),
    sdk_objects=f"{__name__}.objects",
    demo="partial_messages",
    parser=f"{__name__}.parser",
    lanes=f"{__name__}.lanes",
)
