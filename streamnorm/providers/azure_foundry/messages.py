"""Azure AI Foundry, a body read back: as that of the Responses wire.

The body of a deployment that speaks Chat or Messages is told apart by its shape (see the row).
"""

from __future__ import annotations

from ..openai_responses.messages import ResponsesMessages
from .parser import FOUNDRY_TOOLS

__all__ = ["MESSAGES", "FoundryMessages"]


class FoundryMessages(ResponsesMessages):
    """The input of one request."""

    TYPES = ResponsesMessages.TYPES | {tool.type for tool in FOUNDRY_TOOLS} | {"output_message"}


MESSAGES = FoundryMessages
