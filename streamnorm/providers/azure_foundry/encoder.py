"""Azure AI Foundry, the way back: the Responses wire with Foundry's own items.

A deployment that speaks Chat or Messages is written to with those providers' encoders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..openai_responses.encoder import ResponsesEncoder
from ..openai_responses.items import TOOLS, Tool, tools_by_type
from .parser import FOUNDRY_TOOLS

__all__ = ["ENCODER", "FoundryEncoder"]


class FoundryEncoder(ResponsesEncoder):
    """One request to the Responses endpoint of a Foundry project."""

    name = "azure_foundry"
    ITEMS: ClassVar[Mapping[str, Tool]] = tools_by_type(TOOLS, FOUNDRY_TOOLS)


ENCODER = FoundryEncoder
