"""Azure AI Foundry: Responses, with more items."""

from __future__ import annotations

from tests.proof.conversations.openai_responses import RESPONSES_CALLS, Item, responses
from tests.proof.conversations.parts import Dice, client_call, ident
from tests.proof.talk import Frame, Said


def foundry_item(dice: Dice, said: list[Said]) -> Item:
    kind, name = dice.choice((
        ("openapi_call", ""), ("azure_function_call", ""), ("azure_ai_search_call", "azure_ai_search"),
        ("bing_grounding_call", "bing_grounding"),
    ))  # fmt: skip
    call = client_call(dice, "call_")
    call.name = name or call.name
    base = {"id": ident(dice, "it_"), "type": kind, "call_id": call.id, "agent_reference": None}
    base |= {} if name else {"name": call.name}
    text = call.text or "{}"
    said.append(Said(call.id, call.name, call.arguments, "provider"))
    added = {**base, "arguments": text, "status": "in_progress"}
    return Item(added, {**base, "arguments": text, "status": "completed"})


def azure_foundry(dice: Dice) -> tuple[list[Frame], list[Said]]:
    return responses(dice, (*RESPONSES_CALLS, foundry_item, foundry_item))
