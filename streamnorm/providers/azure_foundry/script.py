"""Azure AI Foundry, told from a script: the Responses wire, as Foundry's agents stream it."""

from __future__ import annotations

from ...encoding.teller import Json
from ..openai_responses.script import Responses

__all__ = ["SCRIPT", "Foundry"]

_AGENT = {"type": "agent_reference", "name": "harbour-master", "version": "3"}


class Foundry(Responses):
    """Responses as Foundry agents stream them: every item names its agent and response."""

    name = "azure_foundry"
    MODEL = "gpt-4.1"

    def extra(self) -> Json:
        return {"agent_reference": _AGENT, "response_id": self.body["id"]}


SCRIPT = Foundry
