"""Anthropic Messages. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, AnthropicParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "anthropic", "Anthropic Messages", "SSE", "api.anthropic.com and its gateways",
    AnthropicParser, ITEMS,
    encoder="streamnorm.providers.anthropic.encoder", server="streamnorm.providers.anthropic.server",
)  # fmt: skip
