"""Seed 001, the matrix of tool calls: every cell, every do and don't, every shape."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from streamnorm import (
    Conversation,
    EncodeError,
    File,
    ProviderToolResult,
    Text,
    Tool,
    ToolCall,
    ToolProgress,
    ToolResult,
    Turn,
    provider,
)
from tests.conftest import Messages, sse
from tests.providers.streams import Responses, heard
from tests.seeds.claims import claims_of
from tests.seeds.matrix import (
    ALL,
    SCENARIOS,
    WIRES,
    Json,
    Scenario,
    answered,
    called,
    declared,
)

SHELL, READ = SCENARIOS["shell"], SCENARIOS["read_file"]
SUMMARY = "Binary content of type image/png was processed."
PNG = File(b"\x89PNG", "image/png")
PICTURE = base64.b64encode(PNG.data).decode()
CONTAINERS = {"messages", "input", "contents"}

over_wires = pytest.mark.parametrize("wire", WIRES)
over_cells = [
    pytest.mark.parametrize("wire", WIRES),
    pytest.mark.parametrize("scenario", ALL),
]


def cells(test: Any) -> Any:
    for mark in over_cells:
        test = mark(test)
    return test


# --- a cell: how a tool is declared, called and answered ------------------------------------------


@cells
def test_tool_declaration(scenario: str, wire: str):
    body = ALL[scenario].body(wire)
    assert {"tools": body["tools"]} == declared(wire, ALL[scenario])


@cells
def test_assistant_tool_call(scenario: str, wire: str):
    assert ALL[scenario].entries(wire)[0] == called(wire, ALL[scenario])


@cells
def test_tool_result_injection(scenario: str, wire: str):
    assert ALL[scenario].entries(wire)[1:] == [answered(wire, ALL[scenario])]


# Where the id of a call stands, and where its result names it.
CALL_ID = {
    "anthropic": lambda entry: entry["content"][0]["id"],
    "openai_responses": lambda entry: entry["call_id"],
    "openai_chat": lambda entry: entry["tool_calls"][0]["id"],
    "gemini": lambda entry: entry["parts"][0]["functionCall"]["id"],
}
RESULT_ID = {
    "anthropic": lambda entry: entry["content"][0]["tool_use_id"],
    "openai_responses": lambda entry: entry["call_id"],
    "openai_chat": lambda entry: entry["tool_call_id"],
    "gemini": lambda entry: entry["parts"][0]["functionResponse"]["id"],
}


@cells
def test_the_result_names_the_id_of_its_call(scenario: str, wire: str):
    call, result = ALL[scenario].entries(wire)
    assert CALL_ID[wire](call) == RESULT_ID[wire](result) == ALL[scenario].id


PLACES = {  # role and kind of the entry that brings a result
    "anthropic": ("user", "tool_result"),
    "openai_responses": (None, "function_call_output"),
    "openai_chat": ("tool", None),
    "gemini": ("user", None),
}


@over_wires
def test_where_the_result_is_placed(wire: str):
    call, result = SHELL.entries(wire)
    block = result["content"][0] if wire == "anthropic" else result
    assert (result.get("role"), block.get("type")) == PLACES[wire]
    assert call != result


# --- the fields of a body -------------------------------------------------------------------------

SYSTEM = {
    "anthropic": lambda body: body["system"],
    "openai_responses": lambda body: body["instructions"],
    "openai_chat": lambda body: body["messages"][0]["content"],
    "gemini": lambda body: body["systemInstruction"]["parts"][0]["text"],
}


@over_wires
def test_system_text_stands_where_the_wire_has_it(wire: str):
    body = SHELL.body(wire, system="Be brief.")
    assert SYSTEM[wire](body) == "Be brief."
    assert json.dumps(body).count("Be brief.") == 1
    if wire == "openai_chat":
        assert body["messages"][0]["role"] == "system"


@over_wires
def test_the_container_of_messages_is_the_wires_own(wire: str):
    own = {"openai_responses": "input", "gemini": "contents"}.get(wire, "messages")
    body = SHELL.body(wire)
    assert CONTAINERS & body.keys() == {own} == {provider(wire).container}


@over_wires
def test_tools_stand_under_tools(wire: str):
    assert "tools" in SHELL.body(wire)


@pytest.mark.parametrize("native", [{"type": "local_shell"}, {"type": "web_search"}])
def test_responses_takes_tools_that_are_no_functions_beside_functions(native: Json):
    tools = [SHELL.tool, Tool.server("openai_responses", native)]
    body = provider("openai_responses").request(Conversation().user("Go"), tools, model="m")
    assert [tool["type"] for tool in body["tools"]] == ["function", native["type"]]
    assert native in body["tools"]


def test_chat_takes_functions_only():
    tools = [SHELL.tool, Tool.server("openai_responses", {"type": "web_search"})]
    prepared = provider("openai_chat").prepare(Conversation().user("Go"), tools, model="m")
    assert [tool["type"] for tool in prepared.body["tools"]] == ["function"]
    assert [(row.where, row.what) for row in prepared.dropped] == [("web_search", "tool")]


# --- do, and don't --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "name"), [("read_file", "absolute_path"), ("write_file", "file_path")]
)
@over_wires
def test_parameters_keep_their_names(wire: str, scenario: str, name: str):
    said = json.dumps(ALL[scenario].body(wire))
    other = {"absolute_path": "file_path", "file_path": "absolute_path"}[name]
    assert name in said
    assert other not in said


@over_wires
def test_a_result_is_neither_assistant_text_nor_in_the_message_of_the_call(wire: str):
    *_, call, result = SHELL.body(wire)[provider(wire).container]
    assert SHELL.output not in json.dumps(call)
    assert result.get("role") not in ("assistant", "model")


@pytest.mark.parametrize("wire", ["anthropic", "openai_responses", "gemini"])
def test_no_tool_role_but_on_chat(wire: str):
    roles = {entry.get("role") for entry in SHELL.body(wire)[provider(wire).container]}
    assert "tool" not in roles


def test_chat_has_no_items_of_responses():
    said = json.dumps(SHELL.body("openai_chat"))
    assert "function_call" not in said
    assert '"input"' not in said


def test_arguments_are_json_text_on_responses_and_chat_and_an_object_elsewhere():
    sent = {wire: READ.entries(wire)[0] for wire in WIRES}
    assert json.loads(sent["openai_responses"]["arguments"]) == READ.arguments
    chat = sent["openai_chat"]["tool_calls"][0]["function"]
    assert json.loads(chat["arguments"]) == READ.arguments
    assert sent["anthropic"]["content"][0]["input"] == READ.arguments
    assert sent["gemini"]["parts"][0]["functionCall"]["args"] == READ.arguments


def test_results_of_gemini_come_from_the_user_and_never_from_the_model():
    contents = SHELL.body("gemini")["contents"]
    assert [entry["role"] for entry in contents] == ["user", "model", "user"]
    assert "functionResponse" not in json.dumps(contents[1])


# --- binary results -------------------------------------------------------------------------------


def shown(wire: str, **options: Any) -> Json:
    """The entry that brings a picture as the result of ``read_file``."""
    result = ToolResult.for_call(READ.call(wire), PNG)
    (entry,) = provider(wire).results([result], **options)
    return entry


@over_wires
def test_a_binary_result_is_a_text_summary_if_asked_for(wire: str):
    entry = shown(wire, images="summary")
    assert entry == answered(wire, READ._replace(output=SUMMARY))


def test_chat_never_has_binary_in_the_message_of_a_tool():
    assert shown("openai_chat") == answered("openai_chat", READ._replace(output=SUMMARY))


def test_chat_shows_a_picture_in_a_message_of_its_own_if_asked_for():
    result = ToolResult.for_call(READ.call("openai_chat"), PNG)
    said, beside = provider("openai_chat").results([result], images="user")
    assert said == answered("openai_chat", READ._replace(output=SUMMARY))
    assert beside["role"] == "user"
    assert PICTURE in json.dumps(beside)


def test_gemini_has_the_bytes_beside_the_response():
    picture = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    said = answered("gemini", READ._replace(output=SUMMARY))
    assert shown("gemini") == {"role": "user", "parts": [*said["parts"], picture]}


@pytest.mark.parametrize("wire", ["anthropic", "openai_responses"])
def test_pictures_go_natively_where_the_wire_takes_them_today(wire: str):
    # Otherwise than the document: both wires take pictures in results by now. The summary is
    # ``images="summary"``.
    assert PICTURE in json.dumps(shown(wire))
    assert SUMMARY not in json.dumps(shown(wire))


# --- web search and fetch -------------------------------------------------------------------------

SEARCHED: Json = {
    "type": "web_search_call", "id": "ws_1", "status": "completed",
    "action": {"type": "search", "query": "tides"},
}  # fmt: skip


def searched() -> list[Any]:
    begun = {**SEARCHED, "status": "in_progress", "action": None}
    searching = Responses.say("web_search_call.searching", item_id="ws_1", output_index=0)
    wire = Responses.CREATED + Responses.added(begun) + searching + Responses.done(SEARCHED)
    return heard("openai_responses", wire + Responses.completed())[0]


def test_responses_declares_web_search_without_parameters():
    tool = Tool.server("openai_responses", {"type": "web_search"})
    assert provider("openai_responses").tools([tool]) == [{"type": "web_search"}]


def test_a_web_search_of_responses_is_a_call_that_the_provider_runs():
    (call,) = (e for e in searched() if isinstance(e, ToolCall))
    assert (call.family, call.runs_on, call.arguments) == (
        "web-search", "provider", {"type": "search", "query": "tides"},
    )  # fmt: skip


def test_a_web_search_of_responses_tells_its_progress_and_nothing_is_sent_back_for_it():
    events = searched()
    assert "searching" in [e.status for e in events if isinstance(e, ToolProgress)]
    assert not [e for e in events if isinstance(e, ProviderToolResult)]
    turn = Turn.from_events(events)
    assert turn.calls == ()
    talk = Conversation().user("Go").add(turn).user("On")
    sent = provider("openai_responses").request(talk, model="m")["input"]
    assert sent[1:-1] == [SEARCHED]
    (call,) = (e for e in events if isinstance(e, ToolCall))
    with pytest.raises(EncodeError, match="runs itself"):
        provider("openai_responses").request(talk.results([ToolResult.for_call(call, "x")]))


def test_anthropic_has_a_web_search_of_its_own_by_now():
    # Otherwise than the document, which knows none: it may be declared, and so may a function.
    native = {"type": "web_search_20250305", "name": "web_search"}
    tools = [ALL["web_search"].tool, Tool.server("anthropic", native)]
    assert provider("anthropic").tools(tools)[1] == native


def test_a_web_search_of_responses_is_not_declared_on_chat():
    tool = Tool.server("openai_responses", {"type": "web_search"})
    assert provider("openai_chat").tools([tool]) == []


def test_gemini_may_read_addresses_by_itself():
    tools = [ALL["web_fetch"].tool, Tool.server("gemini", {"urlContext": {}})]
    declared_ = provider("gemini").tools(tools)
    assert {"urlContext": {}} in declared_
    assert [list(entry) for entry in declared_] == [["functionDeclarations"], ["urlContext"]]


# --- tools of MCP servers -------------------------------------------------------------------------


def mcp() -> Tool:
    return Tool.mcp("git hub", "create.issue", "Opens one.", SHELL.schema)


@over_wires
def test_an_mcp_tool_is_a_function_with_a_sanitised_qualified_name(wire: str):
    names = {"gemini": "git_hub__create.issue"}  # it takes dots
    name = names.get(wire, "git_hub__create_issue")
    as_function = Scenario(name, "", "", {}, "", SHELL.properties, SHELL.required, "Opens one.")
    assert {"tools": provider(wire).tools([mcp()])} == declared(wire, as_function)


@over_wires
def test_an_mcp_name_that_is_too_long_is_compacted_with_a_hash(wire: str):
    tools = [Tool.mcp("server", f"{'long_' * 20}{end}") for end in "ab"]
    said = provider(wire)
    names = [said.names.wire(tool.name) for tool in tools]
    longest = {"gemini": 63}.get(wire, 64)
    assert all(len(name) <= longest for name in names)
    assert len(set(names)) == 2
    assert all(re.search(r"_[0-9a-f]{6,}$", name) for name in names)


@over_wires
def test_calls_and_results_of_an_mcp_tool_go_as_those_of_any_other(wire: str):
    name = mcp().name
    call = SHELL._replace(name=name).call(wire)
    sent, said = provider(wire), provider(wire)
    (made,) = sent.calls([call])
    (result,) = sent.results([ToolResult.for_call(call, "done")])
    assert CALL_ID[wire](made) == RESULT_ID[wire](result)
    on_wire = said.names.wire(name)
    assert made == called(wire, SHELL._replace(name=on_wire))
    assert result == answered(wire, SHELL._replace(name=on_wire, output="done"))


# --- streams --------------------------------------------------------------------------------------


def _anthropic() -> bytes:
    opened = Messages.open(0, "call_123", "run_shell_command")
    return (
        Messages.START + opened + Messages.args(0, SHELL.text) + Messages.close(0) + Messages.end()
    )


def _responses() -> bytes:
    item = {"id": "fc_1", "type": "function_call", "status": "in_progress", "arguments": "",
            "call_id": "call_123", "name": "run_shell_command"}  # fmt: skip
    half = len('{"command":')
    pieces = (SHELL.text[:half], SHELL.text[half:])
    said = [Responses.say("function_call_arguments.delta", item_id="fc_1", output_index=0, delta=p,
                          sequence_number=2 + n) for n, p in enumerate(pieces)]  # fmt: skip
    added = Responses.say("output_item.added", sequence_number=1, output_index=0, item=item)
    whole = {**item, "status": "completed", "arguments": SHELL.text}
    done = Responses.say("output_item.done", sequence_number=4, output_index=0, item=whole)
    return added + b"".join(said) + done + Responses.completed()


def _chat() -> bytes:
    deltas: list[Json] = [{"name": "run_shell_command"}, {"arguments": SHELL.text}]
    said = [sse({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": delta}]}}]})
            for delta in deltas]  # fmt: skip
    end = sse({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    return b"".join(said) + end + b"data: [DONE]\n\n"


def _gemini() -> bytes:
    part = {"functionCall": {"id": "fc1", "name": SHELL.name, "args": SHELL.arguments}}
    content = {"role": "model", "parts": [part]}
    return sse({"candidates": [{"content": content, "finishReason": "STOP"}]})


@pytest.mark.parametrize(
    ("wire", "body", "id"),
    [
        ("anthropic", _anthropic(), "call_123"),
        ("openai_responses", _responses(), "call_123"),
        ("openai_chat", _chat(), None),  # the document's chunks have none: it is minted
        ("gemini", _gemini(), "fc1"),
    ],
    ids=WIRES,
)
def test_a_streamed_call_is_told_whole(wire: str, body: bytes, id: str | None):
    events = heard(wire, body)[0]
    (call,) = (e for e in events if isinstance(e, ToolCall))
    assert (call.name, call.arguments) == (SHELL.name, SHELL.arguments)
    assert call.id == id or (id is None and call.provenance.id_source == "synthetic")


# --- the document itself --------------------------------------------------------------------------


def _shapes() -> list[Any]:
    """All shapes that are expected above, in the forms in which the document prints them."""
    shapes: list[Any] = []
    for s in SCENARIOS.values():
        for wire in WIRES:
            shapes += [declared(wire, s), called(wire, s), answered(wire, s)]
        said = [called("openai_responses", s), answered("openai_responses", s)]
        shapes.append([{"role": "user", "content": s.asked}, *said])
    shapes.append({"config": declared("gemini", SHELL)})
    # Printed under the id that the document gives this scenario on Gemini.
    fc1 = SHELL._replace(id="fc1")
    shapes += [called("gemini", fc1), answered("gemini", fc1)]
    return [*shapes, *_longer()]


def _longer() -> list[Any]:
    """Shapes with more than one thing in them."""
    first = {"type": "text", "text": "Working on it..."}
    call = called("anthropic", SHELL)
    last = {"type": "text", "text": "Listed files successfully."}
    image = READ._replace(id="rf_img_1", output=SUMMARY)
    bytes_ = {"inlineData": {"mimeType": "image/png", "data": "<base64>"}}
    return [
        {**call, "content": [first, *call["content"]]},
        {"role": "assistant", "content": [last]},
        {"role": "user", "parts": [*answered("gemini", image)["parts"], bytes_]},
    ]


def test_text_before_a_call_and_after_its_result_are_where_they_were_said():
    call = SHELL.call("anthropic")
    talk = Conversation().user(SHELL.asked)
    talk.add(Turn("assistant", (Text("Working on it..."), call), "anthropic"))
    talk.results([ToolResult.for_call(call, SHELL.output)]).assistant("Listed files successfully.")
    sent = provider("anthropic").request(talk, model="m")["messages"]
    assert sent[1] == _longer()[0]
    assert sent[3] == _longer()[1]


def test_every_shape_of_the_document_is_one_that_we_send(seed: Any):
    fences = [c.text for c in claims_of("001", seed("001")) if c.text.startswith("```json {")]
    fences += [c.text for c in claims_of("001", seed("001")) if c.text.startswith("```json [")]
    shapes = [json.loads(fence.removeprefix("```json ")) for fence in fences]
    assert len(shapes) == 48
    known = _shapes()
    assert [shape for shape in shapes if shape not in known] == []
