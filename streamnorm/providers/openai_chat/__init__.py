"""OpenAI Chat Completions and those who imitate it. Every word of that wire is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, ChatParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "openai_chat", "OpenAI Chat Completions", "SSE",
    "OpenAI, Azure, vLLM, Ollama /v1, OpenRouter, Groq, DeepSeek, Copilot, Perplexity …",
    ChatParser, ITEMS,
    encoder="streamnorm.providers.openai_chat.encoder", server="streamnorm.providers.openai_chat.server",
)  # fmt: skip
