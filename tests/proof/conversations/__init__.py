"""Valid streams of every wire: a seed in, a ``Talk`` (frames, bytes, the calls it says) out.

Rule: what is made here is what honest servers send, in all the variety that they are known for, and
the calls it says are known because they were thought of first and only then written down.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from tests.proof.conversations.parts import Dice
from tests.proof.talk import Frame, Said, Style, Talk

Maker: TypeAlias = Callable[[Dice], tuple[list[Frame], list[Said]]]

WIRES = (
    "anthropic", "openai_chat", "openai_responses", "gemini", "azure_foundry", "mistral", "cohere",
    "ollama", "bedrock", "gemini_interactions", "mistral_conversations", "dashscope", "claude_code",
    "codex",
)  # fmt: skip
# A file has the name of its wire, and so has the maker in it.
MAKERS: dict[str, Maker] = {
    wire: getattr(import_module(f"{__name__}.{wire}"), wire) for wire in WIRES
}
EVENTS = {"anthropic", "openai_responses", "azure_foundry", "cohere", "gemini_interactions",
          "mistral_conversations", "dashscope"}  # fmt: skip
FRAMINGS = {"ollama": "lines", "bedrock": "aws", "claude_code": "lines", "codex": "lines"}


def framing_of(dice: Dice, wire: str) -> str:
    if wire == "gemini":
        return dice.choice(("sse", "sse", "array"))
    return FRAMINGS.get(wire, "sse")


def converse(wire: str, dice: Dice) -> Talk:
    """One stream of this wire."""
    frames, said = MAKERS[wire](dice)
    return Talk(wire, frames, said, Style.at_random(dice, framing_of(dice, wire), wire in EVENTS))
