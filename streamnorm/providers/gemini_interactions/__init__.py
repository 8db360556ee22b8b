"""Gemini Interactions. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, InteractionsParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "gemini_interactions", "Gemini Interactions", "SSE", "Gemini API, /interactions",
    InteractionsParser, ITEMS,
    encoder="streamnorm.providers.gemini_interactions.encoder",
)  # fmt: skip
