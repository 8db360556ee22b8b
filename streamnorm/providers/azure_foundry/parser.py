"""Azure AI Foundry: the Responses wire with more items, or whatever wire a deployment speaks.

Foundry's own items are rows of the Responses table; nothing of that wire is said again here. A
deployment may also answer on the Chat or the Messages wire: its first payload tells.
"""

from __future__ import annotations

from typing import ClassVar

from ...events import IdSource
from ..openai_responses.items import CALL_ID, ITEM_ID, TOOLS, Tool, tools_by_type
from ..openai_responses.parser import ResponsesParser

__all__ = ["FOUNDRY_TOOLS", "ITEMS", "PARSER", "FoundryParser"]

_JSON = ("text", "arguments")
ACTION_ID: tuple[tuple[str, IdSource], ...] = (("action_id", "conflated"), ("id", "conflated"))

# Pairs of a call and its output that the service runs itself: type, family, has a name of its own.
_PAIRS = (
    ("a2a_preview_call", "a2a", True),
    ("azure_ai_search_call", "azure-ai-search", False),
    ("azure_function_call", "azure-function", True),
    ("bing_custom_search_preview_call", "bing-custom-search", False),
    ("bing_grounding_call", "bing-grounding", False),
    ("browser_automation_preview_call", "browser-automation", False),
    ("fabric_dataagent_preview_call", "fabric-data-agent", False),
    ("openapi_call", "openapi", True),
    ("sharepoint_grounding_preview_call", "sharepoint-grounding", False),
)
FOUNDRY_TOOLS = (
    *(
        row for type_, family, named in _PAIRS for row in (
            Tool(type_, family, "call", "provider", CALL_ID, _JSON,
                 name="" if named else family.replace("-", "_")),
            Tool(f"{type_}_output", family, "output", "provider", CALL_ID, output=("output",)),
        )
    ),
    Tool("memory_search_call", "memory-search", "call+output", "provider", ITEM_ID,
         ("fields", "query", "queries", "arguments"), ("results", "memories"), "memory_search",
         note="the service may leave its id out"),
    Tool("workflow_action", "workflow-action", "call+output", "provider", ACTION_ID,
         ("fields", "kind", "action_id", "parent_action_id", "previous_action_id"), ("status",),
         "workflow_action", note="a step that the service took; its call is never told"),
    Tool("oauth_consent_request", "oauth-consent", "call+output", "provider", ITEM_ID,
         ("fields", "server_label"), ("consent_link",), "oauth_consent",
         note="the user must follow the link"),
    Tool("structured_outputs", "structured-outputs", "call+output", "provider", ITEM_ID, ("fields",),
         ("output",), "structured_outputs"),
)  # fmt: skip


class FoundryParser(ResponsesParser):
    """A Responses stream of a Foundry project."""

    name = "azure_foundry"
    OF_AGENTS = True
    TOOLS: ClassVar[dict[str, Tool]] = tools_by_type(TOOLS, FOUNDRY_TOOLS)


ITEMS = tuple(tool.item for tool in (*TOOLS, *FOUNDRY_TOOLS))
PARSER = FoundryParser
