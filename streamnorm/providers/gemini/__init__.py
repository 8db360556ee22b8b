"""Gemini generateContent. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, GeminiParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "gemini", "Gemini generateContent", "SSE, JSON array",
    "Gemini API, Vertex AI, Code Assist", GeminiParser, ITEMS,
    encoder="streamnorm.providers.gemini.encoder",
)  # fmt: skip
