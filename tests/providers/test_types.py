"""The wire types that call tools or bring their outputs: one recording each, and what it must give.

Rows are named as the providers' specifications name them. The same shape has further names at other
borders of an API (a resource, a parameter): those are ``also``. ``said`` is what surveys say of a
type's id; where the wire carries something else, the row says why.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from streamnorm.events import BrokenToolCall, ProviderToolResult, ToolCall
from streamnorm.providers import PROVIDERS, Item
from tests.conftest import RECORDINGS, assert_well_formed, load, sse, traced

# --- what each recording gives: its calls, and the calls its results belong to --------------------


class Told(NamedTuple):
    family: str
    runs_on: str
    id_source: str
    field: str | None


def server(*families: str) -> list[Told]:
    """Server tools of Anthropic: one type of block, but each has the family of its tool."""
    return [Told(family, "provider", "natural", "content_block.id") for family in families]


MCP = Told("mcp", "provider", "natural", "content_block.id")
USE = Told("function", "client", "natural", "content_block.id")


def pair(family: str, runs_on: str = "provider") -> tuple[list[Told], list[int]]:
    return [Told(family, runs_on, "natural", "call_id")], [0]


def hybrid(family: str, number: int = 1, field: str = "item.id") -> tuple[list[Told], list[int]]:
    return [Told(family, "provider", "conflated", field)] * number, list(range(number))


def gemini(family: str, runs_on: str, *ids: str | None) -> list[Told]:
    return [Told(family, runs_on, "natural" if f else "synthetic", f) for f in ids]


SEARCHED = [
    Told("tool-search", "provider", "conflated", "item.id"),
    Told("tool-search", "client", "natural", "call_id"),
]
TAKES: dict[str, tuple[list[Told], list[int]]] = {
    "anthropic/type_tool_use": ([USE], []),
    "anthropic/type_tool_result": ([USE], [0]),
    "anthropic/type_server_tool_use": (server("web-search", "tool-search"), []),
    "anthropic/type_mcp_tool_use": ([MCP, MCP], [0, 1]),
    **{
        f"anthropic/type_{name}_tool_result": (server(family, family), [0, 1])
        for name, family in (
            ("bash_code_execution", "bash-code-execution"), ("code_execution", "code-execution"),
            ("text_editor_code_execution", "text-editor"), ("tool_search", "tool-search"),
            ("web_fetch", "web-fetch"), ("web_search", "web-search"),
        )
    },
    "gemini/type_functionCall": (gemini("function", "client", "functionCall.id", None), []),
    "gemini/type_functionResponse": (gemini("function", "client", "functionCall.id"), [0]),
    "gemini/type_executableCode": (
        gemini("code-execution", "provider", "executableCode.id", None), [0, 1]),
    "gemini/type_executableCode_without_id": (
        gemini("code-execution", "provider", None, None), [0, 1]),
    "gemini/type_toolCall": (gemini("generic-server-tool", "provider", "toolCall.id"), [0]),
    "gemini/type_toolCall_without_id": (gemini("generic-server-tool", "provider", None), [0]),
    "openai_responses/type_function_call": pair("function", "client"),
    "openai_responses/type_custom_tool_call": pair("custom", "client"),
    "openai_responses/type_apply_patch_call": pair("apply-patch", "client"),
    "openai_responses/type_shell_call": pair("function-shell"),  # in a container of the provider
    "openai_responses/type_local_shell_call": pair("local-shell", "client"),
    "openai_responses/type_computer_call": (
        [Told("computer-use", "client", "natural", "call_id")] * 2, [0]),
    "openai_responses/type_tool_search_call": (SEARCHED, [0, 1]),
    "openai_responses/type_code_interpreter_call": hybrid("code-interpreter"),
    "openai_responses/type_file_search_call": hybrid("file-search"),
    "openai_responses/type_image_generation_call": hybrid("image-gen"),
    "openai_responses/type_mcp_call": hybrid("mcp", 2),
    "openai_responses/type_web_search_call": (hybrid("web-search", 2)[0], []),
    "azure_foundry/type_memory_search_call": hybrid("memory-search"),
    "azure_foundry/memory_search_without_id": (
        [Told("memory-search", "provider", "synthetic", None)], [0]),
    "azure_foundry/type_workflow_action": hybrid("workflow-action", 2, "item.action_id"),
    "azure_foundry/type_oauth_consent_request": hybrid("oauth-consent"),
    "azure_foundry/type_a2a_preview_call": pair("a2a"),
    "azure_foundry/type_azure_ai_search_call": pair("azure-ai-search"),
    "azure_foundry/type_azure_function_call": pair("azure-function"),
    "azure_foundry/type_bing_custom_search_preview_call": pair("bing-custom-search"),
    "azure_foundry/type_bing_grounding_call": pair("bing-grounding"),
    "azure_foundry/type_browser_automation_preview_call": pair("browser-automation"),
    "azure_foundry/type_fabric_dataagent_preview_call": pair("fabric-data-agent"),
    "azure_foundry/type_openapi_call": pair("openapi"),
    "azure_foundry/type_sharepoint_grounding_preview_call": pair("sharepoint-grounding"),
}  # fmt: skip

# --- the 58 types ---------------------------------------------------------------------------------


class Type(NamedTuple):
    name: str  # in the provider's specification
    take: str
    type: str  # on the wire
    family: str
    role: str
    runs_on: str
    id_source: str
    field: str
    said: str = ""  # of its id, where that is not ``id_source``
    said_role: str = ""  # likewise
    why: str = ""  # what the wire carries instead
    also: tuple[str, ...] = ()

    @property
    def provider(self) -> str:
        return self.take.split("/")[0]


HAS_ID = "the item carries an id of its own, which serves as one; a service that leaves it out gets a minted id"
BOTH = "the call it answers is never told, so that one item is told as call and result with one id"
MAY_BE_NULL = (
    "call_id is null where the provider searches by itself; the item's id serves as one then"
)
OPTIONAL = "call_id became optional in the specification"


def _foundry(name: str, type_: str, family: str) -> list[Type]:
    take = f"azure_foundry/type_{type_}"
    return [
        Type(name, take, type_, family, "call", "provider", "natural", "call_id"),
        Type(
            f"{name}Output",
            take,
            f"{type_}_output",
            family,
            "output",
            "provider",
            "natural",
            "call_id",
        ),
    ]


def _result(name: str, type_: str, family: str) -> Type:
    take = f"anthropic/type_{type_}"
    return Type(name, take, type_, family, "output", "provider", "natural", "tool_use_id")


def _nullable(name: str, take: str, type_: str, family: str, role: str, runs_on: str) -> Type:
    return Type(name, f"gemini/{take}", type_, family, role, runs_on, "nullable", f"{type_}.id")


def _hybrid(name: str, type_: str, family: str, role: str = "call+output") -> Type:
    take = f"openai_responses/type_{type_}"
    return Type(name, take, type_, family, role, "provider", "conflated", "id")


def _client(
    name: str,
    type_: str,
    family: str,
    also: tuple[str, ...] = (),
    also_output: tuple[str, ...] = (),
) -> list[Type]:
    take, output = f"openai_responses/type_{type_}", f"{type_}_output"
    return [
        Type(name, take, type_, family, "call", "client", "natural", "call_id", also=also),
        Type(f"{name}Output", take, output, family, "output", "client", "natural", "call_id",
             also=also_output),
    ]  # fmt: skip


TYPES: tuple[Type, ...] = (
    # without a natural id that is always there
    Type("MemorySearchToolCallItemParam", "azure_foundry/memory_search_without_id", "memory_search_call",
         "memory-search", "call+output", "provider", "conflated", "id", said="synthetic",
         said_role="call", why=HAS_ID),
    Type("MemorySearchToolCallItemResource", "azure_foundry/type_memory_search_call", "memory_search_call",
         "memory-search", "call+output", "provider", "conflated", "id", said="synthetic", why=HAS_ID),
    Type("WorkflowActionOutputItem", "azure_foundry/type_workflow_action", "workflow_action",
         "workflow-action", "call+output", "provider", "conflated", "action_id", said="synthetic",
         said_role="output", why=f"action_id names the step; {BOTH}"),
    _nullable("ExecutableCode", "type_executableCode", "executableCode", "code-execution", "call", "provider"),
    _nullable("CodeExecutionResult", "type_executableCode_without_id", "codeExecutionResult",
              "code-execution", "output", "provider"),
    _nullable("ToolCall", "type_toolCall", "toolCall", "generic-server-tool", "call", "provider"),
    _nullable("ToolResponse", "type_toolCall_without_id", "toolResponse", "generic-server-tool", "output",
              "provider"),
    _nullable("FunctionCall", "type_functionCall", "functionCall", "function", "call", "client"),
    _nullable("FunctionResponse", "type_functionResponse", "functionResponse", "function", "output", "client"),
    Type("OAuthConsentRequestOutputItem", "azure_foundry/type_oauth_consent_request",
         "oauth_consent_request", "oauth-consent", "call+output", "provider", "conflated", "id",
         said_role="output", why=BOTH),
    _hybrid("CodeInterpreterToolCall", "code_interpreter_call", "code-interpreter"),
    _hybrid("FileSearchToolCall", "file_search_call", "file-search"),
    _hybrid("ImageGenToolCall", "image_generation_call", "image-gen"),
    _hybrid("MCPToolCall", "mcp_call", "mcp"),
    _hybrid("WebSearchToolCall", "web_search_call", "web-search", "call"),
    # Anthropic
    Type("ResponseToolUseBlock", "anthropic/type_tool_use", "tool_use", "function", "call", "client",
         "natural", "content_block.id"),
    Type("ResponseMCPToolUseBlock", "anthropic/type_mcp_tool_use", "mcp_tool_use", "mcp", "call",
         "provider", "natural", "content_block.id"),
    Type("ResponseServerToolUseBlock", "anthropic/type_server_tool_use", "server_tool_use", "server-tool",
         "call", "provider", "natural", "content_block.id"),
    Type("RequestToolResultBlock", "anthropic/type_tool_result", "tool_result", "function", "output",
         "client", "natural", "tool_use_id"),
    Type("ResponseMCPToolResultBlock", "anthropic/type_mcp_tool_use", "mcp_tool_result", "mcp", "output",
         "provider", "natural", "tool_use_id"),
    _result("ResponseBashCodeExecutionToolResultBlock", "bash_code_execution_tool_result", "bash-code-execution"),
    _result("ResponseCodeExecutionToolResultBlock", "code_execution_tool_result", "code-execution"),
    _result("ResponseTextEditorCodeExecutionToolResultBlock", "text_editor_code_execution_tool_result",
            "text-editor"),
    _result("ResponseToolSearchToolResultBlock", "tool_search_tool_result", "tool-search"),
    _result("ResponseWebFetchToolResultBlock", "web_fetch_tool_result", "web-fetch"),
    _result("ResponseWebSearchToolResultBlock", "web_search_tool_result", "web-search"),
    # Azure Foundry
    *_foundry("A2AToolCall", "a2a_preview_call", "a2a"),
    *_foundry("AzureAISearchToolCall", "azure_ai_search_call", "azure-ai-search"),
    *_foundry("AzureFunctionToolCall", "azure_function_call", "azure-function"),
    *_foundry("BingCustomSearchToolCall", "bing_custom_search_preview_call", "bing-custom-search"),
    *_foundry("BingGroundingToolCall", "bing_grounding_call", "bing-grounding"),
    *_foundry("BrowserAutomationToolCall", "browser_automation_preview_call", "browser-automation"),
    *_foundry("FabricDataAgentToolCall", "fabric_dataagent_preview_call", "fabric-data-agent"),
    *_foundry("OpenApiToolCall", "openapi_call", "openapi"),
    *_foundry("SharepointGroundingToolCall", "sharepoint_grounding_preview_call", "sharepoint-grounding"),
    # OpenAI
    Type("FunctionToolCall", "openai_responses/type_function_call", "function_call", "function", "call",
         "client", "natural", "call_id", also=("FunctionToolCallResource",)),
    Type("FunctionToolCallOutput", "openai_responses/type_function_call", "function_call_output",
         "function", "output", "client", "nullable", "call_id", said="natural", why=OPTIONAL,
         also=("FunctionToolCallOutputResource", "FunctionCallOutputItemParam")),
    *_client("ComputerToolCall", "computer_call", "computer-use", (),
             ("ComputerToolCallOutputResource", "ComputerCallOutputItemParam")),
    *_client("CustomToolCall", "custom_tool_call", "custom", ("CustomToolCallResource",),
             ("CustomToolCallOutputResource",)),
    *_client("ApplyPatchToolCall", "apply_patch_call", "apply-patch", ("ApplyPatchToolCallItemParam",),
             ("ApplyPatchToolCallOutputItemParam",)),
    *_client("FunctionShellCall", "shell_call", "function-shell", ("FunctionShellCallItemParam",),
             ("FunctionShellCallOutputItemParam",)),
    Type("LocalShellToolCall", "openai_responses/type_local_shell_call", "local_shell_call",
         "local-shell", "call", "client", "natural", "call_id"),
    Type("LocalShellToolCallOutput", "openai_responses/type_local_shell_call", "local_shell_call_output",
         "local-shell", "output", "client", "conflated", "id", said="natural",
         why="there is no call_id: the item's own id is the call's"),
    Type("ToolSearchCall", "openai_responses/type_tool_search_call", "tool_search_call", "tool-search",
         "call", "provider", "nullable", "call_id", said="natural", why=MAY_BE_NULL,
         also=("ToolSearchCallItemParam",)),
    Type("ToolSearchOutput", "openai_responses/type_tool_search_call", "tool_search_output",
         "tool-search", "output", "provider", "nullable", "call_id", said="natural", why=MAY_BE_NULL,
         also=("ToolSearchOutputItemParam",)),
)  # fmt: skip

over_types = pytest.mark.parametrize("type_", TYPES, ids=lambda t: t.name)


def row_of(type_: Type) -> Item:
    return next(item for item in PROVIDERS[type_.provider].items if item.type == type_.type)


def played(take: str) -> tuple[list[ToolCall], list[ProviderToolResult]]:
    provider, name = take.split("/")
    _, body = load(RECORDINGS / provider / f"{name}.sse")
    events, _ = traced(provider, body)
    assert_well_formed(events)
    assert not [e for e in events if isinstance(e, BrokenToolCall)]
    calls = [e for e in events if isinstance(e, ToolCall)]
    return calls, [e for e in events if isinstance(e, ProviderToolResult)]


def test_there_are_58_types_and_13_further_names():
    assert len({type_.name for type_ in TYPES}) == len(TYPES) == 58
    assert sum(len(type_.also) for type_ in TYPES) == 13


def test_15_types_have_no_natural_id_that_is_always_there_by_what_is_said():
    said = [type_.said or type_.id_source for type_ in TYPES]
    assert {source: said.count(source) for source in set(said)} == {
        "natural": 43, "nullable": 6, "conflated": 6, "synthetic": 3,
    }  # fmt: skip


def test_19_types_have_none_by_what_the_wire_carries():
    sources = [type_.id_source for type_ in TYPES]
    assert {source: sources.count(source) for source in set(sources)} == {
        "natural": 39, "nullable": 9, "conflated": 10,
    }  # fmt: skip


@over_types
def test_a_type_that_is_not_as_is_said_has_a_reason(type_: Type):
    differs = type_.said not in ("", type_.id_source) or type_.said_role not in ("", type_.role)
    assert differs == bool(type_.why)


@over_types
def test_a_type_has_a_row_that_says_the_same(type_: Type):
    row = row_of(type_)
    assert (row.family, row.role, row.runs_on) == (type_.family, type_.role, type_.runs_on)
    assert (row.id_source, row.id_field) == (type_.id_source, type_.field)


@over_types
def test_an_output_has_a_field_that_refers_to_its_call_and_a_call_has_arguments(type_: Type):
    row = row_of(type_)
    assert bool(row.ref_field) == (type_.role == "output")
    assert row.arguments or type_.role == "output"


@over_types
def test_a_type_has_a_recording(type_: Type):
    provider, name = type_.take.split("/")
    path = RECORDINGS / provider / f"{name}.sse"
    take, body = load(path)
    assert type_.take in TAKES
    assert type_.type.encode() in body
    assert type_.type in take.header.get("types", [type_.type])


@pytest.mark.parametrize("take", TAKES)
def test_a_recording_tells_its_calls_with_family_place_and_id_source(take: str):
    calls, _ = played(take)
    told = [
        Told(c.family, c.runs_on, c.provenance.id_source, c.provenance.wire_field) for c in calls
    ]
    assert told == TAKES[take][0]


@pytest.mark.parametrize("take", TAKES)
def test_a_recording_tells_its_results_with_the_id_and_number_of_their_calls(take: str):
    calls, results = played(take)
    by_number = {call.call: call.id for call in calls}
    assert [result.call for result in results] == TAKES[take][1]
    assert [result.id for result in results] == [by_number[n] for n in TAKES[take][1]]


@pytest.mark.parametrize("take", TAKES)
def test_an_id_of_the_wire_is_that_of_the_wire_and_a_minted_one_is_not(take: str):
    provider, name = take.split("/")
    _, body = load(RECORDINGS / provider / f"{name}.sse")
    for call in played(take)[0]:
        minted = call.provenance.id_source == "synthetic"
        assert (call.id.encode() in body) is not minted
        assert call.provenance.wire_id == (None if minted else call.id)


@over_types
def test_a_type_is_told_with_its_family_in_its_recording(type_: Type):
    families = {told.family for told in TAKES[type_.take][0]}
    of_their_tools = {"web-search", "tool-search"} if type_.type == "server_tool_use" else set()
    assert families == (of_their_tools or {type_.family})


@over_types
def test_a_type_with_a_result_tells_its_family_with_the_result(type_: Type):
    _, results = played(type_.take)
    assert {result.family for result in results} <= {type_.family} or type_.role == "call"


@over_types
def test_a_type_with_a_result_has_one_in_its_recording(type_: Type):
    assert "output" not in type_.role or TAKES[type_.take][1]


# --- where a tool runs, if the item says it -------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "runs_on"),
    [
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, "client"),
        ({"type": "shell_call", "action": {"commands": ["ls"]}, "environment": {"type": "local"}}, "client"),
        ({"type": "shell_call", "action": {"commands": ["ls"]},
          "environment": {"type": "container_reference", "container_id": "c"}}, "provider"),
        ({"type": "tool_search_call", "arguments": {}, "execution": "client"}, "client"),
        ({"type": "tool_search_call", "arguments": {}, "execution": "server"}, "provider"),
        ({"type": "tool_search_call", "arguments": {}}, "provider"),
    ],
)  # fmt: skip
def test_a_tool_runs_where_its_item_says(item, runs_on):
    done = {"type": "response.output_item.done", "output_index": 0,
            "item": {"id": "i1", "call_id": "c1", "status": "completed", **item}}  # fmt: skip
    body = sse(done) + sse({"type": "response.completed", "response": {"status": "completed"}})
    events, _ = traced("openai_responses", body)
    assert [e.runs_on for e in events if isinstance(e, ToolCall)] == [runs_on]
