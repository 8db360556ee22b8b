"""Azure AI Foundry: the Responses wire with more items, or whatever wire a deployment speaks."""

from __future__ import annotations

from .._base import Provider
from ..anthropic.parser import AnthropicParser
from ..openai_chat.parser import ChatParser
from ..openai_responses.parser import TOOLS
from .parser import FOUNDRY_TOOLS, FoundryParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "azure_foundry", "Azure AI Foundry", "SSE",
    "Foundry projects and deployments (Responses superset; Chat and Messages are told apart)",
    FoundryParser, tuple(tool.item for tool in (*TOOLS, *FOUNDRY_TOOLS)),
    (FoundryParser, ChatParser, AnthropicParser),
    encoder="streamnorm.providers.azure_foundry.encoder",
)  # fmt: skip
