"""Ollama's own API. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, OllamaParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "ollama", "Ollama", "NDJSON", "/api/chat and /api/generate of any Ollama", OllamaParser, ITEMS,
    encoder="streamnorm.providers.ollama.encoder",
)  # fmt: skip
