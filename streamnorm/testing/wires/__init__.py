"""WIRES: one row per provider; each tells a script in that provider's exact bytes."""

from __future__ import annotations

from ...errors import UnknownProvider
from ._base import Json, Told, Wire
from .anthropic import Anthropic
from .bedrock import Bedrock
from .cohere import Cohere
from .gemini import Gemini, Interactions
from .ollama import Ollama
from .openai_chat import Chat, Mistral
from .openai_responses import Foundry, Responses

__all__ = ["WIRES", "Json", "Told", "Wire", "wire_of"]

WIRES: dict[str, type[Wire]] = {
    wire.name: wire
    for wire in (
        Anthropic, Responses, Chat, Gemini, Foundry, Mistral, Cohere, Ollama, Bedrock, Interactions
    )
}  # fmt: skip


def wire_of(provider: str) -> type[Wire]:
    """The wire of that name, or an error that lists the names there are."""
    try:
        return WIRES[provider]
    except KeyError:
        raise UnknownProvider(f"no wire {provider!r}; there are: {', '.join(WIRES)}") from None
