"""Ollama's own API: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="ollama",
    title="Ollama",
    serves="/api/chat and /api/generate of any Ollama",
    framing="NDJSON",
    lines=True,
    content_type="application/x-ndjson",
    base="http://127.0.0.1:11434",
    path="/api/chat",
    hosts=("ollama.com", "127.0.0.1:11434", "localhost:11434", "[::1]:11434"),
    paths=("/api/chat", "/api/generate"),
    key=Key(("OLLAMA_API_KEY",), needed=False),
    sdk_modules=("ollama",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
