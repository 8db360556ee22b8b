"""Cohere v2 chat. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, CohereParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "cohere", "Cohere v2 chat", "SSE", "api.cohere.com and its deployments", CohereParser, ITEMS,
    encoder="streamnorm.providers.cohere.encoder",
)  # fmt: skip
