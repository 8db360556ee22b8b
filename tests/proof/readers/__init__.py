"""One plain reader for each wire: the whole bytes in, the calls that may be told as whole out.

Rule: a reader says what the rule of evidence allows, in dicts and loops, and shares nothing with
the engine. Where a stream can be read in two honest ways both are allowed; where it is doubtful
whether there is a call, there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from tests.proof.readers.said import Heard, Reading

__all__ = ["FRAMING", "WIRES", "Heard", "Reading", "read"]

FRAMING = {
    "anthropic": "sse",
    "openai_chat": "sse",
    "openai_responses": "sse",
    "gemini": "sse",
    "azure_foundry": "sse",
    "mistral": "sse",
    "cohere": "sse",
    "ollama": "lines",
    "bedrock": "aws",
    "gemini_interactions": "sse",
    "mistral_conversations": "sse",
    "dashscope": "sse",
    "claude_code": "lines",
    "codex": "lines",
}
WIRES = tuple(FRAMING)


def reader(wire: str) -> Callable[[bytes], Reading]:
    """The reader of this wire."""
    found: Callable[[bytes], Reading] = import_module(f"tests.proof.readers.{wire}").read
    return found


def read(wire: str, body: bytes) -> Reading:
    """What this body says on this wire."""
    return reader(wire)(body)
