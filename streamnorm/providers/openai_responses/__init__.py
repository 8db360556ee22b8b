"""OpenAI Responses. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import TOOLS, ResponsesParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "openai_responses", "OpenAI Responses", "SSE", "OpenAI, Azure OpenAI, Copilot, vLLM, OpenRouter …",
    ResponsesParser, tuple(tool.item for tool in TOOLS),
    encoder="streamnorm.providers.openai_responses.encoder", server="streamnorm.providers.openai_responses.server",
)  # fmt: skip
