"""The family of what a provider runs itself: of its calls and of its results, orphans too."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.events import ProviderToolResult, ToolCall

# What a server tool is named on the wire, and its family.
SERVER_TOOLS = {
    "web_search": "web-search",
    "web_fetch": "web-fetch",
    "code_execution": "code-execution",
    "bash_code_execution": "bash-code-execution",
    "text_editor_code_execution": "text-editor",
    "tool_search_tool_regex": "tool-search",
    "tool_search_tool_bm25": "tool-search",
    "advisor": "advisor",
    "horoscope": "server-tool",  # one that nobody knows yet
}
# An item that answers a call which never came -> the family that it tells by itself.
ORPHANS: list[tuple[str, dict[str, Any], str]] = [
    ("anthropic", {"type": "web_fetch_tool_result", "tool_use_id": "x", "content": []}, "web-fetch"),
    ("anthropic", {"type": "mcp_tool_result", "tool_use_id": "x", "content": []}, "mcp"),
    ("anthropic", {"type": "star_chart_tool_result", "tool_use_id": "x", "content": []}, "star-chart"),
    ("openai_responses", {"type": "shell_call_output", "call_id": "x", "output": []}, "function-shell"),
    ("openai_responses", {"type": "tool_search_output", "call_id": "x", "tools": []}, "tool-search"),
    ("azure_foundry", {"type": "openapi_call_output", "call_id": "x", "output": ""}, "openapi"),
    ("gemini", {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}}, "code-execution"),
    ("gemini", {"toolResponse": {"id": "x", "response": {}}}, "generic-server-tool"),
    ("gemini", {"functionResponse": {"id": "x", "name": "f", "response": {}}}, "function"),
    ("bedrock", {"toolUseId": "x", "type": "nova_grounding"}, "server-tool"),
    ("gemini_interactions", {"type": "google_maps_result", "call_id": "x", "result": []}, "google-maps"),
]  # fmt: skip
FRAMES: dict[str, Any] = {
    "anthropic": lambda item: [
        {"type": "content_block_start", "index": 0, "content_block": item},
        {"type": "content_block_stop", "index": 0},
    ],
    "openai_responses": lambda item: [
        {"type": "response.output_item.done", "output_index": 0, "item": item}
    ],
    "gemini": lambda item: [{"candidates": [{"content": {"role": "model", "parts": [item]}}]}],
    "bedrock": lambda item: [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolResult": item}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
    ],
    "gemini_interactions": lambda item: [
        {"event_type": "step.start", "index": 0, "step": item},
        {"event_type": "step.stop", "index": 0},
    ],
}
FRAMES["azure_foundry"] = FRAMES["openai_responses"]


def heard(provider: str, item: dict[str, Any]) -> list[Any]:
    pipe = Normalizer(provider)
    events = [event for payload in FRAMES[provider](item) for event in pipe.feed_payload(payload)]
    return [*events, *pipe.close()]


@pytest.mark.parametrize(("name", "family"), SERVER_TOOLS.items())
def test_a_server_call_of_anthropic_has_the_family_of_its_tool(name: str, family: str):
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": {"q": 1}}
    calls = [event for event in heard("anthropic", block) if isinstance(event, ToolCall)]
    assert [(call.name, call.family, call.runs_on) for call in calls] == [
        (name, family, "provider")
    ]


def test_a_tool_of_the_client_that_is_named_like_a_server_tool_is_a_function():
    block = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"q": 1}}
    calls = [event for event in heard("anthropic", block) if isinstance(event, ToolCall)]
    assert [(call.family, call.runs_on) for call in calls] == [("function", "client")]


@pytest.mark.parametrize(("provider", "item", "family"), ORPHANS)
def test_a_result_whose_call_never_came_has_the_family_of_its_item(
    provider: str, item: dict[str, Any], family: str
):
    results = [e for e in heard(provider, item) if isinstance(e, ProviderToolResult)]
    assert [(result.call, result.family) for result in results] == [(None, family)]
