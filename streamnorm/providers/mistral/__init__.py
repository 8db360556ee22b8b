"""Mistral chat. The Chat Completions wire (``openai_chat``) with these words of its own:"""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, MistralParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "mistral", "Mistral chat", "SSE", "api.mistral.ai and its gateways", MistralParser, ITEMS,
    encoder="streamnorm.providers.mistral.encoder",
)  # fmt: skip
