"""Requests in each wire's words: the golden scenarios, and what each wire wants back or elsewhere."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamnorm import (
    Conversation,
    EncodeError,
    File,
    Normalizer,
    Provenance,
    ProviderToolResult,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamnorm.wire import provider
from tests.conftest import CALLING, RECORDINGS, load
from tools.golden_requests import files

PNG = File(b"\x89PNG", "image/png")
PDF = File(b"%PDF", "application/pdf", "paper (1).pdf")
ODD = File(b"?", "application/x-odd")


def call(id: str = "call_1", name: str = "f", wire: str = "", **more: Any) -> ToolCall:
    said = more.pop("arguments", {"a": 1})
    raw = more.pop("raw", json.dumps(said))
    origin = Provenance(more.pop("source", "natural"), id, "id", "stated", wire)
    return ToolCall(more.pop("ordinal", 0), id, name, said, raw, provenance=origin, **more)


def answered(
    made: ToolCall, output: Any = "ok", *before: Any, wire: str | None = None
) -> Conversation:
    talk = Conversation().user("Go").add(Turn("assistant", (*before, made), wire))
    return talk.results([ToolResult.for_call(made, output)])


def folded(take: str) -> Turn:
    recorded, wire = load(RECORDINGS / f"{take}.sse")
    pipe = Normalizer(recorded.provider or take.partition("/")[0], seed="tests")
    return Turn.from_events(pipe.feed(wire) + pipe.close())


@pytest.mark.parametrize("path", files(), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_golden_requests(path):
    assert path.read_text() == files()[path], (
        "read the difference, then: python -m tools.golden_requests"
    )


# --- text and placement ---------------------------------------------------------------------------


def test_results_lead_the_user_message_that_follows_on_anthropic():
    messages = provider("anthropic").request(answered(call()).user("And?"))["messages"]
    assert [block["type"] for block in messages[-1]["content"]] == ["tool_result", "text"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]


def test_a_user_who_speaks_before_the_results_is_heard_after_them():
    made = call()
    talk = Conversation().user("Go").add(Turn("assistant", (made,))).user("Hurry")
    talk.results([ToolResult.for_call(made, "ok")])
    messages = provider("openai_chat").request(talk)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "user"]


def test_a_system_turn_in_the_midst():
    talk = Conversation(system="One").user("Hi").assistant("Hello")
    talk.add(Turn("system", (Text("Two"),))).user("Bye")
    chat = provider("openai_chat").request(talk, system="Zero")["messages"]
    assert chat[0] == {"role": "system", "content": "Zero\n\nOne"}
    assert chat[3] == {"role": "system", "content": "Two"}
    prepared = provider("anthropic").prepare(talk)
    assert prepared.body["system"] == "One\n\nTwo"
    assert prepared.dropped[0].what == "place"


def test_blank_texts_are_left_out_where_they_are_refused():
    talk = Conversation().user("Hi").add(Turn("assistant", (Text("  "),))).user("Hello?")
    for target in ("anthropic", "bedrock"):
        (message,) = provider(target).request(talk)["messages"]
        assert len(message["content"]) == 2


def test_a_call_without_arguments_is_an_empty_object():
    empty = call(arguments={}, raw="")
    assert (
        provider("openai_chat").calls([empty])[0]["tool_calls"][0]["function"]["arguments"] == "{}"
    )
    assert provider("anthropic").calls([empty])[0]["content"][0]["input"] == {}


def test_extra_fields_and_paths():
    wire = provider("openai_responses")
    assert wire.request(Conversation().user("Hi"), store=False)["store"] is False
    assert "stream" not in wire.request(Conversation().user("Hi"), stream=False)
    assert provider("bedrock").path("m") == "/model/m/converse-stream"


# --- errors, empty results, media -----------------------------------------------------------------


def test_an_error_is_a_flag_or_a_text():
    result = ToolResult.for_call(call(), "no such file", is_error=True)
    assert provider("anthropic").results([result])[0]["content"][0]["is_error"] is True
    assert provider("bedrock").results([result])[0]["content"][0]["toolResult"]["status"] == "error"
    assert provider("gemini").results([result])[0]["parts"][0]["functionResponse"]["response"] == {
        "error": "no such file"
    }
    for target in ("openai_chat", "mistral", "cohere", "ollama"):
        assert provider(target).results([result])[0]["content"] == "Error: no such file"
    assert provider("openai_responses").results([result])[0]["output"] == "Error: no such file"


def test_an_empty_result():
    result = ToolResult.for_call(call(), "")
    assert provider("anthropic").results([result])[0]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_1"}
    ]
    assert provider("openai_chat").results([result])[0]["content"] == ""
    assert provider("gemini").results([result])[0]["parts"][0]["functionResponse"]["response"] == {
        "output": ""
    }


def test_media_go_natively_where_the_wire_takes_them():
    result = ToolResult.for_call(call(), ["see", PNG, PDF, ODD])
    assert [b["type"] for b in provider("anthropic").results([result])[0]["content"][0]["content"]] == [
        "text", "image", "document", "text",
    ]  # fmt: skip
    assert [b["type"] for b in provider("openai_responses").results([result])[0]["output"]] == [
        "input_text", "input_image", "input_file", "input_file",
    ]  # fmt: skip
    response, beside = provider("gemini").results([result], model="gemini-3-pro")[0]["parts"]
    assert len(response["functionResponse"]["parts"]) == 2
    assert beside["inlineData"]["mimeType"] == "application/x-odd"
    content = provider("bedrock").results([result])[0]["content"][0]["toolResult"]["content"]
    assert [next(iter(b)) for b in content] == ["text", "image", "document", "text"]
    assert content[1]["image"]["source"]["bytes"] == PNG.data


@pytest.mark.parametrize("target", ["openai_chat", "mistral", "cohere", "ollama"])
def test_media_are_described_elsewhere(target):
    result = ToolResult.for_call(call(), PNG)
    (entry,) = provider(target).results([result])
    assert entry["content"] == "Binary content of type image/png was processed."


@pytest.mark.parametrize("target", [*CALLING, "tgi", "dashscope"])
def test_a_text_that_a_user_attaches_reaches_every_model(target):
    note = File(b"Tea, no milk.", "text/markdown", "note.md")
    said = provider(target).prepare(Conversation().user("Read it.", note)).body
    plain, packed = "Tea, no milk.", base64.b64encode(note.data).decode()
    shown = json.dumps(said, default=lambda data: base64.b64encode(data).decode())
    assert plain in shown or packed in shown


def test_what_only_calls_itself_a_text_is_described():
    odd = File(b"\xff\xfe", "text/plain")
    (said,) = provider("openai_chat").prepare(Conversation().user(odd)).body["messages"]
    assert said["content"][0]["text"] == "Binary content of type text/plain was processed."


def test_a_file_without_a_name_has_one_that_says_its_kind():
    files = [
        File(b"%PDF", "application/pdf"),
        File(b"Hi", "text/plain"),
        File(b"?", "application/x-odd"),
    ]
    (said,) = provider("openai_responses").prepare(Conversation().user(*files)).body["input"]
    assert [part["filename"] for part in said["content"]] == ["file.pdf", "file.txt", "file"]


@pytest.mark.parametrize("target", CALLING)
def test_media_that_are_not_to_be_sent_are_described_everywhere(target):
    result = ToolResult.for_call(call(), PNG, inline=False)
    said = str(provider(target).results([result]))
    assert "Binary content of type image/png was processed." in said
    assert "iVBO" not in said
    assert "base64" not in said


@pytest.mark.parametrize(
    ("target", "beside"),
    [("anthropic", 0), ("openai_responses", 0), ("openai_chat", 1), ("cohere", 1), ("ollama", 1)],
)
def test_a_picture_is_shown_in_its_result_or_else_beside_it(target: str, beside: int):
    wire = provider(target)
    shown = wire.request(answered(call(), PNG), images="shown")
    assert shown == wire.request(answered(call(), PNG), images="user" if beside else "native")
    assert "iVBO" in str(shown)


@pytest.mark.parametrize("target", ["openai_chat", "cohere", "ollama"])
def test_a_picture_follows_in_a_user_message_when_asked(target):
    body = provider(target).request(answered(call(), PNG), images="user")
    assert [m["role"] for m in body["messages"]][-2:] == ["tool", "user"]
    assert "iVBO" in str(body["messages"][-1])


def test_a_picture_cannot_follow_on_mistral():
    prepared = provider("mistral").prepare(answered(call(), PNG), images="user")
    assert prepared.body["messages"][-1]["role"] == "tool"
    assert prepared.dropped[-1].what == "images"


# --- what each provider wants back ----------------------------------------------------------------


def test_anthropic_gets_thinking_redacted_blocks_and_its_container_back():
    thinking = Reasoning("Hm", ({"type": "thinking", "signature": "sig"},), (2,))
    redacted = Reasoning("", ({"type": "redacted_thinking", "data": "xyz"},), (0,))
    turn = Turn(
        "assistant", (thinking, redacted, Text("Hi")), "anthropic", echo={"container": {"id": "c1"}}
    )
    body = provider("anthropic").request(
        [Turn("user", (Text("?"),)), turn, Turn("user", (Text("!"),))]
    )
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"}, {"type": "text", "text": "Hi"},
    ]  # fmt: skip
    assert body["container"] == "c1"


def test_anthropic_does_not_get_thinking_that_nobody_signed():
    turn = Turn("assistant", (Reasoning("Hm"), Text("Hi")), "anthropic")
    prepared = provider("anthropic").prepare([turn])
    assert prepared.body["messages"][0]["content"] == [{"type": "text", "text": "Hi"}]
    assert prepared.dropped[0].what == "thinking"


def test_anthropic_gets_its_server_tools_back_in_order():
    made = call("srvtoolu_1", "web_search", "anthropic", family="server-tool", runs_on="provider")
    block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    turn = Turn(
        "assistant", (made, ProviderToolResult(0, "srvtoolu_1", [], False, block)), "anthropic"
    )
    wire = provider("anthropic").prepare([turn])
    assert [b["type"] for b in wire.body["messages"][0]["content"]] == [
        "server_tool_use",
        block["type"],
    ]
    elsewhere = provider("openai_chat").prepare([turn])
    assert elsewhere.body["messages"] == []
    assert [d.what for d in elsewhere.dropped] == ["web_search", "tool_result"]


def test_programmatic_calls_keep_their_caller():
    made = call("toolu_1", wire="anthropic", echo={"caller": {"type": "direct"}})
    block = provider("anthropic").calls([made])[0]["content"][0]
    assert block["caller"] == {"type": "direct"}
    made = call(
        "call_1", wire="openai_responses", echo={"caller": {"type": "program", "caller_id": "p"}}
    )
    output = provider("openai_responses").results([ToolResult.for_call(made, "x")])[0]
    assert output["caller"]["caller_id"] == "p"


def test_responses_gets_its_items_back():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zzz"}
    message = {"type": "message", "id": "msg_1", "phase": "commentary", "status": "completed"}
    made = call("call_1", wire="openai_responses", echo={"id": "fc_1"})
    talk = answered(made, "ok", Reasoning("Hm", (item,), (0,)), Text("Hi", (message,), (), (0,)),
                    wire="openai_responses")  # fmt: skip
    reasoning, text, function, output = provider("openai_responses").request(talk)["input"][1:]
    assert reasoning == item
    assert text == {**message, "role": "assistant",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}  # fmt: skip
    assert (function["id"], function["call_id"]) == ("fc_1", "call_1")
    assert output["call_id"] == "call_1"


def test_a_refusal_goes_back_in_its_message():
    turn = Turn(
        "assistant",
        (Text("No", ({"type": "refusal"},), (), (0,)), Text("", ({"type": "message", "id": "m"},), (), (0,))),
        "openai_responses",
    )  # fmt: skip
    (item,) = provider("openai_responses").request([turn])["input"]
    assert (item["id"], item["content"]) == ("m", [{"type": "refusal", "refusal": "No"}])


@pytest.mark.parametrize(
    ("family", "name", "output", "expected"),
    [
        ("custom", "f", "done", {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}),
        ("function-shell", "shell", "hi", {"type": "shell_call_output", "call_id": "c", "output": [
            {"stdout": "hi", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
        ("function-shell", "shell", [{"stdout": "", "stderr": "x", "outcome": {"type": "timeout"}}],
         {"type": "shell_call_output", "call_id": "c", "output": [
            {"stdout": "", "stderr": "x", "outcome": {"type": "timeout"}}]}),
        ("local-shell", "local_shell", "hi", {
            "type": "local_shell_call_output", "id": "c", "call_id": "c", "output": "hi"}),
        ("apply-patch", "apply_patch", "ok", {
            "type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "ok"}),
        ("computer-use", "computer_use", [PNG, {"acknowledged_safety_checks": [{"id": "s"}]}], {
            "type": "computer_call_output", "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw=="},
            "acknowledged_safety_checks": [{"id": "s"}]}),
        ("tool-search", "tool_search", [], {"type": "tool_search_output", "call_id": "c",
            "execution": "client", "status": "completed", "tools": []}),
        ("mcp", "mcp_approval_request", {"approve": False, "reason": "no"}, {
            "type": "mcp_approval_response", "approval_request_id": "c", "approve": False,
            "reason": "no"}),
    ],
)  # fmt: skip
def test_results_of_other_tools_have_items_of_their_own(family, name, output, expected):
    made = call("c", name, "openai_responses", family=family)
    said = provider("openai_responses").results([ToolResult.for_call(made, output)])
    if family == "computer-use":
        said[0]["output"]["image_url"] = said[0]["output"]["image_url"][:31] + "=="
        expected["output"]["image_url"] = said[0]["output"]["image_url"]
    assert said == [expected]
    elsewhere = provider("openai_chat").results([ToolResult.for_call(made, output)])
    assert elsewhere[0]["role"] == "tool"


def test_an_approval_is_sent_although_the_provider_runs_the_tool():
    made = call("mcpr_1", "mcp_approval_request", "openai_responses", family="mcp", runs_on="provider",
                arguments={"name": "x", "server_label": "s", "arguments": "{}"}, echo={"id": "mcpr_1"})  # fmt: skip
    talk = answered(made, True, wire="openai_responses")
    request, response = provider("openai_responses").request(talk)["input"][1:]
    assert request == {"type": "mcp_approval_request", "id": "mcpr_1", "name": "x",
                       "server_label": "s", "arguments": "{}"}  # fmt: skip
    assert response == {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
    }
    with pytest.raises(EncodeError, match="return True"):
        provider("openai_responses").results([ToolResult.for_call(made, "maybe")])


def test_hosted_items_go_back_as_one_item():
    turn = folded("openai_responses/type_code_interpreter_call")
    items = provider("openai_responses").request([turn])["input"]
    kinds = [item.get("type") for item in items]
    assert kinds.count("code_interpreter_call") == len(
        [p for p in turn.parts if isinstance(p, ToolCall)]
    )


def test_a_computer_without_a_picture_is_refused():
    made = call("c", "computer_use", "openai_responses", family="computer-use")
    with pytest.raises(EncodeError, match="return an image"):
        provider("openai_responses").results([ToolResult.for_call(made, "text")])


def test_gemini_gets_a_signature_on_the_part_that_it_came_with():
    text = Text("Hello world", ({"thoughtSignature": "A"},), (), (6,))
    last = Text("End", ({"thoughtSignature": "B"},), (), (3,))
    made = call("c", wire="gemini", echo={"thoughtSignature": "C"})
    talk = answered(made, "ok", text, last, wire="gemini")
    assert provider("gemini").request(talk)["contents"][1]["parts"] == [
        {"text": "Hello "}, {"text": "world", "thoughtSignature": "A"},
        {"text": "End"}, {"text": "", "thoughtSignature": "B"},
        {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}, "thoughtSignature": "C"},
    ]  # fmt: skip


def test_gemini_is_told_that_a_foreign_call_has_no_signature_where_it_checks():
    talk = answered(call(), "ok")
    checked = provider("gemini").request(talk, model="models/gemini-3-pro")["contents"][1]["parts"][
        0
    ]
    assert checked["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in provider("gemini").request(talk)["contents"][1]["parts"][0]


def test_a_minted_id_is_on_both_sides_or_on_none():
    made = call("syn_abc", source="synthetic", wire="gemini")
    assert "syn_abc" not in str(provider("gemini").request(answered(made)))
    assert str(provider("openai_chat").request(answered(made))).count("syn_abc") == 2


def test_chat_gets_details_of_reasoning_back_as_one():
    pieces = (
        {"reasoning_details": [{"type": "reasoning.text", "text": "He", "index": 0}]},
        {
            "reasoning_details": [
                {"type": "reasoning.text", "text": "llo", "index": 0, "signature": "s"}
            ]
        },
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "z", "index": 1}]},
    )
    turn = Turn("assistant", (Reasoning("Hello", pieces, (0, 2, 5)), Text("Hi")), "openai_chat")
    (message,) = provider("openai_chat").request([turn])["messages"]
    assert message["reasoning"] == "Hello"
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Hello", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "z", "index": 1},
    ]


def test_chat_gets_reasoning_back_beside_calls_only():
    made = call(wire="openai_chat")
    talk = answered(made, "ok", Reasoning("Hm"), wire="openai_chat")
    talk.add(Turn("assistant", (Reasoning("Ah"), Text("Done")), "openai_chat")).user("Again")
    second = call("call_2", wire="openai_chat")
    talk.add(Turn("assistant", (second,), "openai_chat")).results([ToolResult.for_call(second, "")])
    messages = provider("openai_chat").request(talk)["messages"]
    assert [m.get("reasoning_content") for m in messages if m["role"] == "assistant"] == [
        "Hm",
        None,
        "",
    ]
    silent = provider("openai_chat").request(talk, reasoning="none")["messages"]
    assert all("reasoning_content" not in m for m in silent)


def test_the_field_of_reasoning_is_the_one_that_it_came_in():
    made = call(wire="openai_chat")
    turn = Turn(
        "assistant", (Reasoning("Hm"), made), "openai_chat", echo={"reasoning_field": "reasoning"}
    )
    talk = Conversation([turn]).results([ToolResult.for_call(made, "")])
    assert provider("openai_chat").request(talk)["messages"][0]["reasoning"] == "Hm"


def test_custom_tools_of_chat():
    made = call(
        "c", "f", "openai_chat", family="custom", raw="free text", arguments={"input": "free text"}
    )
    entry = provider("openai_chat").calls([made])[0]["tool_calls"][0]
    assert entry == {"id": "c", "type": "custom", "custom": {"name": "f", "input": "free text"}}
    function = provider("openai_responses").calls([made])[0]
    assert (function["type"], function["arguments"]) == ("function_call", '{"input":"free text"}')


def test_cohere_gets_its_plan_back_and_bedrock_its_bytes():
    plan = Reasoning("First look", ({"type": "tool_plan"},), (0,))
    made = call(wire="cohere")
    message = provider("cohere").request(answered(made, "ok", plan, wire="cohere"))["messages"][1]
    assert message["tool_plan"] == "First look"
    thought = Reasoning("Hm", ({"signature": "s"}, {"redactedContent": "AAEC"}), (2, 2))
    turn = Turn("assistant", (thought,), "bedrock")
    assert provider("bedrock").request([turn])["messages"][0]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": b"\x00\x01\x02"}},
    ]


def test_mistral_gets_thinking_back_as_a_chunk():
    thought = Reasoning("Hm", ({"type": "thinking", "signature": "s"},), (2,))
    turn = Turn("assistant", (thought, Text("Hi")), "mistral")
    assert provider("mistral").request([turn])["messages"][0]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "signature": "s"},
        {"type": "text", "text": "Hi"},
    ]


def test_bedrock_hears_of_tools_that_the_history_calls():
    prepared = provider("bedrock").prepare(answered(call()))
    assert prepared.body["toolConfig"]["tools"][0]["toolSpec"]["name"] == "f"
    assert prepared.dropped[-1].where == "f"
    assert "toolConfig" in provider("bedrock").request(answered(call()), [Tool("f")])


def test_a_media_part_in_an_assistant_turn_is_refused():
    with pytest.raises(EncodeError, match="put it into a user"):
        provider("anthropic").request([Turn("assistant", (PNG,))])
