"""Results and the way back: what a provider ran goes back as it came, what a client ran in full."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import (
    Conversation,
    EncodeError,
    File,
    ToolResult,
    Turn,
    Wire,
    from_messages,
    mend,
    provider,
)
from streamnorm.events import BrokenToolCall, ProviderToolResult, ToolCall, ToolProgress
from tests.conftest import CALLING
from tests.providers.streams import Responses, heard

PNG = File(b"\x89PNG", "image/png")
PICTURE = "iVBORw=="
SUMMARY = "Binary content of type image/png was processed."
FOUNDRY = (
    "a2a_preview_call", "azure_ai_search_call", "azure_function_call", "bing_custom_search_preview_call",
    "bing_grounding_call", "browser_automation_preview_call", "fabric_dataagent_preview_call",
    "openapi_call", "sharepoint_grounding_preview_call",
)  # fmt: skip
NAMED = {"a2a_preview_call", "azure_function_call", "openapi_call"}
SEARCH: dict[str, Any] = {
    "type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "tides"},
}  # fmt: skip
FOUND: dict[str, Any] = {
    "type": "tool_search_call", "id": "ts_1", "call_id": None, "execution": "server",
    "arguments": {"query": "tides"}, "status": "completed",
}  # fmt: skip


def foundry(type_: str) -> dict[str, Any]:
    named = {"name": "tides"} if type_ in NAMED else {}
    return {"type": type_, "id": "i_1", "call_id": "c_1", "arguments": '{"q":"tides"}', **named}


HOSTED = [
    ("openai_responses", SEARCH),
    *(("azure_foundry", foundry(type_)) for type_ in FOUNDRY),
]


# Call and result in one item.
HYBRID: list[tuple[str, dict[str, Any]]] = [
    (
        "openai_responses",
        {"type": "file_search_call", "id": "i_1", "queries": ["x"], "results": None},
    ),
    (
        "openai_responses",
        {"type": "code_interpreter_call", "id": "i_1", "code": "1", "outputs": None},
    ),
    ("openai_responses", {"type": "image_generation_call", "id": "i_1", "result": None}),
    ("openai_responses", {"type": "mcp_call", "id": "i_1", "name": "f", "arguments": "{}"}),
    ("azure_foundry", {"type": "memory_search_call", "id": "i_1", "results": []}),
]


def told(wire: str, *items: dict[str, Any]) -> list[Any]:
    done = (Responses.done(item, at) for at, item in enumerate(items))
    return heard(wire, Responses.CREATED + b"".join(done) + Responses.completed())[0]


def back(wire: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    """The items as they are in the input of the next request."""
    turn = Turn.from_events(told(wire, *items))
    body = provider(wire).request(Conversation().user("Go").add(turn).user("On"))
    sent: list[dict[str, Any]] = body["input"][1:-1]
    return sent


# --- what the provider ran ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", ["failed", "incomplete", "completed", "cancelled", "searching", "denied"]
)
@pytest.mark.parametrize(
    ("wire", "item"), HOSTED, ids=lambda v: v["type"] if isinstance(v, dict) else v
)
def test_the_status_of_a_hosted_call_goes_back_as_it_came(
    wire: str, item: dict[str, Any], status: str
):
    item = {**item, "status": status}
    assert back(wire, item) == [item]


@pytest.mark.parametrize(
    ("wire", "item"), HOSTED, ids=lambda v: v["type"] if isinstance(v, dict) else v
)
def test_the_failure_of_a_hosted_call_is_visible_in_the_events(wire: str, item: dict[str, Any]):
    events = told(wire, {**item, "status": "failed", "error": {"code": "quota"}})
    (call,) = (e for e in events if isinstance(e, ToolCall))
    assert [e for e in events if isinstance(e, ToolProgress)] == [
        ToolProgress(0, call.id, "failed", {"code": "quota"})
    ]


@pytest.mark.parametrize(
    ("wire", "item"), HOSTED, ids=lambda v: v["type"] if isinstance(v, dict) else v
)
def test_a_hosted_call_that_says_it_is_incomplete_is_told_so_and_broken(
    wire: str, item: dict[str, Any]
):
    events = told(wire, {**item, "status": "incomplete"})
    assert [e.status for e in events if isinstance(e, ToolProgress)] == ["incomplete"]
    assert [e.reason for e in events if isinstance(e, BrokenToolCall)] == ["truncated"]


@pytest.mark.parametrize("status", ["failed", "incomplete", "completed"])
@pytest.mark.parametrize(
    ("wire", "item"), HYBRID, ids=lambda v: v["type"] if isinstance(v, dict) else v
)
def test_a_call_that_brings_its_own_result_goes_back_once_and_as_it_came(
    wire: str, item: dict[str, Any], status: str
):
    item = {**item, "status": status}
    assert back(wire, item) == [item]
    (result,) = (e for e in told(wire, item) if isinstance(e, ProviderToolResult))
    assert result.is_error is (status != "completed")


def test_what_a_provider_left_unfinished_goes_back_in_its_place():
    said = [Responses.message("Hm.", "m_1"), {**SEARCH, "status": "incomplete"}]
    said = [*said, {**SEARCH, "id": "ws_2", "status": "completed"}]
    sent = back("openai_responses", *said)
    assert [item["id"] for item in sent] == ["m_1", "ws_1", "ws_2"]


def test_what_a_provider_left_unfinished_is_mended_read_and_stored_as_it_is():
    item = {**SEARCH, "status": "incomplete", "error": {"code": "quota"}}
    turn = Turn.from_events(told("openai_responses", item))
    talk = Conversation().user("Go").add(turn).user("On")
    assert mend(talk) == (talk, ())
    assert Conversation.from_json(talk.to_json()) == talk
    body = provider("openai_responses").request(talk)
    assert from_messages("openai_responses", body).report == ()
    again = from_messages("openai_responses", body).conversation
    assert provider("openai_responses").request(again) == body


def test_what_a_provider_left_unfinished_goes_to_no_other():
    turn = Turn.from_events(told("openai_responses", {**SEARCH, "status": "incomplete"}))
    prepared = provider("anthropic").prepare(Conversation().user("Go").add(turn).user("On"))
    assert "ws_1" not in json.dumps(prepared.body)
    assert [row.why for row in prepared.dropped] == [
        "only the provider that ran the tool knows its result"
    ]


def test_an_item_of_which_something_is_missing_does_not_go_back():
    whole = Responses.done({**SEARCH, "status": "incomplete"})
    odd = whole.replace(b'"tides"', b'"tid\xffs"')
    events = heard("openai_responses", Responses.CREATED + odd + Responses.completed())[0]
    turn = Turn.from_events(events)
    assert [call.goes_back for call in turn.broken] == [False]
    with pytest.raises(EncodeError, match="never whole"):
        provider("openai_responses").request(Conversation().user("Go").add(turn))


def test_a_failure_that_the_final_response_says_again_is_told_once():
    item = {**SEARCH, "status": "failed"}
    wire = Responses.CREATED + Responses.done(item) + Responses.completed(item)
    events = heard("openai_responses", wire)[0]
    assert [e.status for e in events if isinstance(e, ToolProgress)] == ["failed"]


def test_a_call_of_the_client_that_is_incomplete_is_still_broken():
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "pay", "arguments": "{}"}
    events = told("openai_responses", {**item, "status": "incomplete"})
    assert [type(e) for e in events if isinstance(e, ToolCall | BrokenToolCall)] == [BrokenToolCall]


def test_a_tool_search_of_the_server_goes_back_with_its_null_call_id_on_both_sides():
    output = {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
              "status": "completed", "tools": []}  # fmt: skip
    assert back("openai_responses", FOUND, output) == [FOUND, output]


def test_a_tool_search_of_the_client_is_paired_by_the_id_that_serves_as_one():
    item = {**FOUND, "execution": "client"}
    (call,) = (e for e in told("openai_responses", item) if isinstance(e, ToolCall))
    wire = provider("openai_responses")
    (called,), (result,) = wire.calls([call]), wire.results([ToolResult.for_call(call, [])])
    assert (called["call_id"], result["call_id"]) == ("ts_1", "ts_1")


def test_no_action_is_invented_for_a_search_that_has_none():
    item = {"type": "web_search_call", "id": "ws_1", "status": "failed"}
    assert back("openai_responses", item) == [item]


# --- what the client ran --------------------------------------------------------------------------


def shell(output: Any, is_error: bool = False, **action: Any) -> dict[str, Any]:
    item = {"type": "shell_call", "id": "sh_1", "call_id": "c_1", "status": "completed",
            "action": {"commands": ["ls"], **action}}  # fmt: skip
    (call,) = (e for e in told("openai_responses", item) if isinstance(e, ToolCall))
    made = ToolResult.for_call(call, output, is_error)
    (entry,) = provider("openai_responses").results([made])
    return entry


@pytest.mark.parametrize(
    ("output", "stdout"),
    [
        ({"error": "no such file"}, '{"error":"no such file"}'),
        ({"result": "a.txt", "exit_code": 0}, '{"result":"a.txt","exit_code":0}'),
        ({}, "{}"),
        ([], "[]"),
        ({"stdout": 5}, '{"stdout":5}'),
        ({"stdout": "a", "exit_code": None}, '{"stdout":"a","exit_code":null}'),
        ({"stdout": "a", "exit_code": "0"}, '{"stdout":"a","exit_code":"0"}'),
        ({"outcome": "timeout"}, '{"outcome":"timeout"}'),
        (7, "7"),
        (None, ""),
    ],
)
def test_a_dict_that_is_no_run_of_a_command_is_not_an_empty_success(output: Any, stdout: str):
    assert [run["stdout"] for run in shell(output)["output"]] == [stdout]


def test_a_run_of_a_command_may_print_nothing():
    exit = {"type": "exit", "exit_code": 2}
    assert shell({"stderr": "x", "exit_code": 2})["output"] == [
        {"stdout": "", "stderr": "x", "outcome": exit}
    ]


def test_a_run_may_have_no_pipe_and_no_exit():
    outcome = {"type": "timeout"}
    assert shell({"stdout": "a", "stderr": None, "outcome": outcome})["output"] == [
        {"stdout": "a", "stderr": "", "outcome": outcome}
    ]


def test_each_of_several_runs_is_said_by_itself():
    assert [run["stdout"] for run in shell(["a", {"b": 1}, {"stdout": "c"}])["output"]] == [
        "a", '{"b":1}', "c",
    ]  # fmt: skip


def test_a_shell_that_failed_without_a_code_did_not_exit_with_success():
    assert shell({"stderr": "x"}, is_error=True)["output"][0]["outcome"]["exit_code"] == 1


def test_the_longest_output_that_a_shell_call_asked_for_goes_back():
    assert shell("ok", max_output_length=4096)["max_output_length"] == 4096
    assert "max_output_length" not in shell("ok")


@pytest.mark.parametrize(
    ("options", "ids"),
    [({}, {"id": "c_1", "call_id": "c_1"}), ({"sdk_types": True}, {"id": "c_1"})],
)
def test_the_output_of_a_local_shell_carries_call_id_beside_id(options: Any, ids: dict[str, str]):
    item = {"type": "local_shell_call", "id": "ls_1", "call_id": "c_1", "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}}}  # fmt: skip
    events = told("openai_responses", item)
    (call,) = (e for e in events if isinstance(e, ToolCall))
    results = [ToolResult.for_call(call, "ok")]
    expected = {"type": "local_shell_call_output", **ids, "output": "ok"}
    wire = provider("openai_responses")
    assert wire.results(results, **options) == [expected]
    talk = Conversation().user("Go").add(Turn.from_events(events)).results(results)
    assert wire.request(talk, **options)["input"][-1] == expected


# --- binary results -------------------------------------------------------------------------------


def shot(wire: Wire, **options: Any) -> str:
    """A request in which a picture is the result of a call."""
    call = ToolCall(0, "call_1", "look", {}, "{}")
    talk = Conversation().user("Go").add(Turn("assistant", (call,)))
    body = wire.request(talk.results([ToolResult.for_call(call, ["seen", PNG])]), **options)
    return json.dumps(body, default=lambda data: PICTURE)


@pytest.mark.parametrize("target", CALLING)
def test_a_summary_is_all_that_any_wire_gets_if_it_is_asked_for(target: str):
    sent = shot(provider(target), images="summary")
    assert SUMMARY in sent
    assert PICTURE not in sent


NATIVE = {
    "anthropic",
    "openai_responses",
    "azure_foundry",
    "gemini",
    "bedrock",
    "gemini_interactions",
}


@pytest.mark.parametrize("target", CALLING)
def test_a_picture_goes_natively_where_the_wire_takes_it_and_is_described_elsewhere(target: str):
    sent = shot(provider(target), images="native")
    assert (PICTURE in sent) is (target in NATIVE)
    assert sent == shot(provider(target))
    assert SUMMARY in sent or target in NATIVE


@pytest.mark.parametrize("target", sorted(set(CALLING) - {"mistral"}))
def test_a_picture_for_the_user_is_described_in_the_result_and_sent_beside_it(target: str):
    sent = shot(provider(target), images="user")
    assert sent.index(SUMMARY) < sent.index(PICTURE)


@pytest.mark.parametrize(
    ("model", "inside"),
    [
        (None, False),
        ("gemini-2.5-flash", False),
        ("models/gemini-2.0-pro", False),
        ("gemini-3-pro", True),
        ("models/gemini-3.1-flash", True),
        ("gemini-4-pro", True),
        ("gemini-10-flash", True),
        ("gemini-exp-1206", False),
        ("gemma-3", False),
    ],
)
def test_gemini_takes_a_picture_beside_the_response_and_from_the_third_generation_on_inside(
    model: str | None, inside: bool
):
    call = ToolCall(0, "call_1", "look", {}, "{}")
    (entry,) = provider("gemini").results([ToolResult.for_call(call, PNG)], model=model)
    response, *beside = entry["parts"]
    picture = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    assert response["functionResponse"].get("parts", []) == ([picture] if inside else [])
    assert beside == ([] if inside else [picture])
    assert response["functionResponse"]["response"] == {"output": SUMMARY}


@pytest.mark.parametrize("target", CALLING)
def test_a_word_that_images_does_not_have_is_refused_for_results_too(target: str):
    call = ToolCall(0, "call_1", "look", {}, "{}")
    with pytest.raises(EncodeError, match="native, summary, user"):
        provider(target).results([ToolResult.for_call(call, PNG)], images="inline")
