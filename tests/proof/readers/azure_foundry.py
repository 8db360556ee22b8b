"""Azure AI Foundry, read plainly: the Responses wire with more types of items."""

from __future__ import annotations

from tests.proof.readers import openai_responses
from tests.proof.readers.openai_responses import TOOLS, Tool
from tests.proof.readers.said import Reading

NAMED = ("a2a_preview_call", "azure_function_call", "openapi_call")
NAMELESS = {
    "azure_ai_search_call": "azure_ai_search",
    "bing_custom_search_preview_call": "bing_custom_search",
    "bing_grounding_call": "bing_grounding",
    "browser_automation_preview_call": "browser_automation",
    "fabric_dataagent_preview_call": "fabric_data_agent",
    "sharepoint_grounding_preview_call": "sharepoint_grounding",
}
FOUNDRY = {
    **TOOLS,
    **{type_: Tool("text", ("arguments",)) for type_ in NAMED},
    **{type_: Tool("text", ("arguments",), name) for type_, name in NAMELESS.items()},
    "memory_search_call": Tool(
        "fields", ("query", "queries", "arguments"), "memory_search", id_fields=("id",)
    ),
    "workflow_action": Tool(
        "fields", ("kind", "action_id", "parent_action_id", "previous_action_id"),
        "workflow_action", id_fields=("action_id", "id"),
    ),
    "oauth_consent_request": Tool("fields", ("server_label",), "oauth_consent", id_fields=("id",)),
    "structured_outputs": Tool("fields", (), "structured_outputs", id_fields=("id",)),
}  # fmt: skip


def read(body: bytes) -> Reading:
    return openai_responses.read(body, FOUNDRY)
