"""Seed 000, ids of calls and results: every wire type, and what is said of ids in general.

The decision here: an id is always there, minted in one place if the wire has none, and its provenance
says so; pairs share it; nothing is minted for the wire on the way back that the wire never had.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from streamnorm import BrokenToolCall, Conversation, ToolCall, ToolResult, Turn, provider
from streamnorm.core.mint import Mint
from streamnorm.errors import StreamnormError
from streamnorm.events import ProviderToolResult, ToolCallStart
from streamnorm.providers import PROVIDERS
from tests.conftest import SEED, load, over_takes, run, traced
from tests.providers.streams import Gemini, Responses, heard
from tests.providers.test_types import TAKES, TYPES, played, row_of

# --- the rows of both tables ----------------------------------------------------------------------


class Said(NamedTuple):
    """A row as the document has it: whose it is, its type, its role, its family, what its id is."""

    provider: str
    type: str
    role: str
    family: str
    id: str


_A, _F, _G, _O = "anthropic", "azure_foundry", "gemini", "openai_responses"
_USE, _REF, _OWN, _CALL_ID = "id", "tool_use_id", "own id", "call_id"


def _pair(provider: str, name: str, family: str) -> list[Said]:
    return [
        Said(provider, name, "call", family, _CALL_ID),
        Said(provider, f"{name}Output", "output", family, _CALL_ID),
    ]


def _result(name: str, family: str) -> Said:
    return Said(_A, f"Response{name}ToolResultBlock", "output", family, _REF)


WITHOUT = [
    Said(_F, "MemorySearchToolCallItemParam", "call", "memory-search", "none"),
    Said(_F, "MemorySearchToolCallItemResource", "call+output", "memory-search", "none"),
    Said(_F, "WorkflowActionOutputItem", "output", "workflow-action", "none"),
    Said(_G, "ExecutableCode", "call", "code-execution", "optional"),
    Said(_G, "CodeExecutionResult", "output", "code-execution", "optional"),
    Said(_G, "ToolCall", "call", "generic-server-tool", "optional"),
    Said(_G, "ToolResponse", "output", "generic-server-tool", "optional"),
    Said(_G, "FunctionCall", "call", "function", "optional"),
    Said(_G, "FunctionResponse", "output", "function", "optional"),
    Said(_F, "OAuthConsentRequestOutputItem", "output", "oauth-consent", _OWN),
    Said(_O, "CodeInterpreterToolCall", "call+output", "code-interpreter", _OWN),
    Said(_O, "FileSearchToolCall", "call+output", "file-search", _OWN),
    Said(_O, "ImageGenToolCall", "call+output", "image-gen", _OWN),
    Said(_O, "MCPToolCall", "call+output", "mcp", _OWN),
    Said(_O, "WebSearchToolCall", "call", "web-search", _OWN),
]
NATURAL = [
    Said(_A, "ResponseToolUseBlock", "call", "function", _USE),
    Said(_A, "ResponseMCPToolUseBlock", "call", "mcp", _USE),
    Said(_A, "ResponseServerToolUseBlock", "call", "server-tool", _USE),
    Said(_A, "RequestToolResultBlock", "output", "function", _REF),
    _result("MCP", "mcp"),
    _result("BashCodeExecution", "bash-code-execution"),
    _result("CodeExecution", "code-execution"),
    _result("TextEditorCodeExecution", "text-editor"),
    _result("ToolSearch", "tool-search"),
    _result("WebFetch", "web-fetch"),
    _result("WebSearch", "web-search"),
    *_pair(_F, "A2AToolCall", "a2a"),
    *_pair(_F, "AzureAISearchToolCall", "azure-ai-search"),
    *_pair(_F, "AzureFunctionToolCall", "azure-function"),
    *_pair(_F, "BingCustomSearchToolCall", "bing-custom-search"),
    *_pair(_F, "BingGroundingToolCall", "bing-grounding"),
    *_pair(_F, "BrowserAutomationToolCall", "browser-automation"),
    *_pair(_F, "FabricDataAgentToolCall", "fabric-data-agent"),
    *_pair(_F, "OpenApiToolCall", "openapi"),
    *_pair(_F, "SharepointGroundingToolCall", "sharepoint-grounding"),
    *_pair(_O, "FunctionToolCall", "function"),
    *_pair(_O, "ComputerToolCall", "computer-use"),
    *_pair(_O, "CustomToolCall", "custom"),
    *_pair(_O, "ApplyPatchToolCall", "apply-patch"),
    *_pair(_O, "FunctionShellCall", "function-shell"),
    *_pair(_O, "LocalShellToolCall", "local-shell"),
    Said(_O, "ToolSearchCall", "call", "tool-search", _CALL_ID),
    Said(_O, "ToolSearchOutput", "output", "tool-search", _CALL_ID),
]
SAID = {said.type: said for said in (*WITHOUT, *NATURAL)}
KNOWN = {type_.name: type_ for type_ in TYPES}
# What the document says of an id -> where ours may come from; "by now" where the wire has changed.
SOURCES = {
    "none": {
        "synthetic",
        "conflated",
    },  # the wire gives its items ids by now, and may leave them out
    "optional": {"natural", "synthetic"},
    _OWN: {"conflated"},
    _USE: {"natural"},
    _REF: {"natural"},
    _CALL_ID: {"natural", "conflated"},  # tool searches of the server have a null call_id by now
}

over_rows = pytest.mark.parametrize("name", SAID)


@over_rows
def test_a_type_of_the_table_is_told_with_its_family_and_role(name: str):
    said, known = SAID[name], KNOWN[name]
    row = row_of(known)
    assert (known.provider, row.family) == (said.provider, said.family)
    # Outputs whose call is never told are told as both, see ``why`` of the type.
    assert row.role == said.role or (row.role == "call+output" and known.why)


@over_rows
def test_a_type_of_the_table_has_an_id_that_is_never_missing_and_says_where_it_is_from(name: str):
    calls, results = played(KNOWN[name].take)
    assert calls
    assert all(call.id for call in calls)
    assert all(result.id for result in results)
    assert {call.provenance.id_source for call in calls} <= SOURCES[SAID[name].id]
    assert all(
        (c.provenance.wire_id is None) == (c.provenance.id_source == "synthetic") for c in calls
    )


@over_rows
def test_a_call_and_its_result_share_their_id(name: str):
    calls, results = played(KNOWN[name].take)
    by_number = {call.call: call.id for call in calls}
    assert [result.id for result in results] == [by_number[n] for n in TAKES[KNOWN[name].take][1]]
    if "output" in SAID[name].role:
        assert results


# --- what is said of ids in general ---------------------------------------------------------------


def test_the_tables_have_15_and_43_rows_and_we_know_each():
    # The document counts 49 in the second, with variants of the same shape: those are ``also``.
    assert (len(WITHOUT), len(NATURAL)) == (15, 43)
    assert SAID.keys() == KNOWN.keys()


def test_variants_of_a_shape_at_other_borders_of_an_api_are_named_with_it():
    also = {name: type_.name for type_ in TYPES for name in type_.also}
    assert also["FunctionToolCallOutputResource"] == "FunctionToolCallOutput"
    assert also["ApplyPatchToolCallOutputItemParam"] == "ApplyPatchToolCallOutput"


@over_takes(quick=60)
def test_every_call_and_result_has_an_id_and_no_consumer_needs_to_look_for_none(path):
    take, body = load(path)
    events = run(path.parent.name, [body], seed=take.seed)
    kinds = ToolCallStart | ToolCall | BrokenToolCall | ProviderToolResult
    ids = [event.id for event in events if isinstance(event, kinds)]
    assert all(isinstance(id, str) for id in ids)
    assert all(event.id for event in events if isinstance(event, ToolCall | ToolCallStart))


def test_an_id_that_the_wire_never_gave_is_minted_in_one_form_on_every_wire():
    gemini = heard(
        "gemini", Gemini.parts({"functionCall": {"name": "f", "args": {}}}, finish="STOP")
    )[0]
    item = {"type": "memory_search_call", "status": "completed", "results": []}
    foundry = heard(
        "azure_foundry", Responses.CREATED + Responses.done(item) + Responses.completed()
    )[0]
    for events in (gemini, foundry):
        (call,) = (e for e in events if isinstance(e, ToolCall))
        assert call.id == Mint(SEED).id(0)
        assert (call.provenance.id_source, call.provenance.wire_id) == ("synthetic", None)


def test_a_minted_id_is_not_mistaken_for_one_of_the_wire():
    # "Cannot distinguish after construction": here it can.
    body = Gemini.parts({"functionCall": {"name": "f", "args": {}, "id": "a"}},
                        {"functionCall": {"name": "f", "args": {}}}, finish="STOP")  # fmt: skip
    sources = [e.provenance.id_source for e in heard("gemini", body)[0] if isinstance(e, ToolCall)]
    assert sources == ["natural", "synthetic"]


def test_an_id_of_the_item_that_serves_as_one_says_so():
    item = {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "status": "completed"}
    events = heard(
        "openai_responses", Responses.CREATED + Responses.done(item) + Responses.completed()
    )[0]
    (call,) = (e for e in events if isinstance(e, ToolCall))
    origin = call.provenance
    assert (call.id, origin.id_source, origin.wire_field) == ("fs_1", "conflated", "item.id")


def test_an_empty_id_is_a_missing_one():
    body = Gemini.parts({"functionCall": {"name": "f", "args": {}, "id": ""}}, finish="STOP")
    (call,) = (e for e in heard("gemini", body)[0] if isinstance(e, ToolCall))
    assert call.id
    assert call.provenance.id_source == "synthetic"


def test_a_minted_id_survives_a_round_trip_inside_and_is_not_sent_to_a_wire_that_has_none():
    body = Gemini.parts({"functionCall": {"name": "f", "args": {}}}, finish="STOP")
    turn = Turn.from_events(heard("gemini", body)[0])
    (call,) = turn.calls
    talk = Conversation().user("Go").add(turn).results([ToolResult.for_call(call, "done")])
    assert Conversation.from_json(talk.to_json()).turns[1].calls[0].id == call.id
    assert call.id not in str(provider("gemini").request(talk))
    messages = provider("openai_chat").request(talk, model="m")["messages"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] != ""


def test_the_same_stream_read_again_has_the_same_minted_ids():
    body = Gemini.parts({"functionCall": {"name": "f", "args": {}}}, finish="STOP")
    ids = [[e.id for e in run("gemini", [body]) if isinstance(e, ToolCall)] for _ in range(2)]
    assert ids[0] == ids[1]


def test_a_result_is_made_from_its_call_so_that_the_pair_cannot_differ():
    call = ToolCall(0, "call_1", "f", {}, "{}")
    assert ToolResult.for_call(call, "x").call.id == "call_1"
    for wrong in (None, "call_1"):
        with pytest.raises(StreamnormError, match="pass the call itself"):
            ToolResult.for_call(wrong, "x")  # type: ignore[arg-type]
        with pytest.raises(StreamnormError, match="pass the call itself"):
            ToolResult(wrong, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("group", ["none", "optional", _OWN], ids=["none", "optional", "own"])
def test_pairs_share_an_id_in_each_group_that_has_none_of_its_own(group: str):
    for said in WITHOUT:
        if said.id == group and "output" in said.role:
            calls, results = played(KNOWN[said.type].take)
            assert {result.id for result in results} <= {call.id for call in calls}


def test_no_type_of_a_provider_falls_through_to_something_generic():
    # 16 types were unmapped there. Here each has a row, and tells its family.
    for said in SAID.values():
        items = {item.type for item in PROVIDERS[said.provider].items}
        assert KNOWN[said.type].type in items


def test_a_result_whose_call_was_never_heard_keeps_its_id_and_belongs_to_no_call():
    item = {"type": "function_call_output", "id": "fco", "call_id": "call_9", "output": "x"}
    events, _ = traced(
        "openai_responses", Responses.CREATED + Responses.done(item) + Responses.completed()
    )
    (result,) = (e for e in events if isinstance(e, ProviderToolResult))
    assert (result.id, result.call) == ("call_9", None)


def test_the_output_of_a_local_shell_has_the_call_id_that_the_specification_requires():
    item = {"type": "local_shell_call", "id": "ls_1", "call_id": "c_1", "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}}}  # fmt: skip
    events = heard(
        "openai_responses", Responses.CREATED + Responses.done(item) + Responses.completed()
    )[0]
    (call,) = (e for e in events if isinstance(e, ToolCall))
    (entry,) = provider("openai_responses").results([ToolResult.for_call(call, "ok")])
    assert entry["call_id"] == "c_1"
