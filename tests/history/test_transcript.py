"""Conversations as JSONL, and from and to each provider's messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Conversation, File, Text, ToolCall, ToolResult, Turn, UnansweredCall
from streamnorm.errors import UsageError
from streamnorm.history.transcript import from_jsonl, from_messages, to_jsonl, to_messages
from streamnorm.testing import call, finish, say, script, think
from tests.history.test_settled import any_text, json_values
from tests.providers.test_sdk_requests import talk_of, turn_of, whole_takes

PROVIDERS = [
    "anthropic", "azure_foundry", "bedrock", "cohere", "dashscope", "gemini", "gemini_interactions", "mistral",
    "mistral_conversations", "ollama", "openai_chat", "openai_responses",
]  # fmt: skip
PICTURE = File(b"\x89PNG", "image/png")


def heard(provider, *steps):
    return Turn.from_events(script(*steps).events(provider))


def session(provider):
    first = heard(
        provider, think("Hm."), say("Let me look."), call("f", a=1, b=[2**70]), call("g"), finish()
    )
    results = [ToolResult.for_call(c, {"n": n}) for n, c in enumerate(first.calls)]
    conversation = Conversation(system="Be brief.").user("Hi", PICTURE).add(first)
    return conversation.results(results).user("And?").add(heard(provider, say("Bye.")))  # fmt: skip


# --- JSONL ----------------------------------------------------------------------------------------

texts = any_text
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(File, st.binary(), texts, st.none() | texts),
    st.builds(
        lambda id, name, arguments, raw: ToolCall(0, id, name, arguments, raw),
        texts, texts, st.dictionaries(texts, json_values, max_size=3), texts,
    ),
)  # fmt: skip
turns = st.builds(
    lambda role, p: Turn(role, tuple(p)),
    st.sampled_from(["user", "assistant"]),
    st.lists(parts, max_size=3),
)


@given(turns=st.lists(turns, max_size=4), system=st.none() | st.text())
def test_what_is_read_is_what_was_written(turns, system):
    conversation = Conversation(turns, system)
    again = from_jsonl(to_jsonl(conversation))
    assert again == conversation
    for turn, other in zip(turns, again.turns, strict=True):
        for part, twin in zip(turn.parts, other.parts, strict=True):
            if isinstance(part, ToolCall):
                assert list(part.arguments) == list(twin.arguments)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_heard_session_is_kept_with_all_its_echoes(provider):
    conversation = session(provider)
    assert from_jsonl(to_jsonl(conversation)) == conversation


@pytest.mark.parametrize(
    ("data", "line"),
    [(b"", 1), (b"{}", 1), (b'{"streamnorm":"conversation","version":9}', 1), (b"\xff\n", 1),
     (b'{"streamnorm":"conversation","version":1}\n{"role":"user"}\nhalf a li', 3),
     (b'{"streamnorm":"conversation","version":1}\n{"role":"nobody"}\n', 2)],
)  # fmt: skip
def test_a_line_that_is_none_is_named(data, line):
    with pytest.raises(UsageError, match=f"line {line} "):
        from_jsonl(data)


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_messages_are_read_and_written_again_as_they_were(provider):
    conversation = session(provider)
    messages = to_messages(provider, conversation)
    read = from_messages(provider, messages)
    assert read.report == ()
    assert to_messages(provider, read.conversation) == messages
    assert [t.role for t in read.conversation.turns] == [t.role for t in conversation.turns]


# Takes in which a stream repeats what the client had said: that is read once.
TOLD_BACK = {
    "type_apply_patch_call", "type_computer_call", "type_custom_tool_call", "type_function_call",
    "type_local_shell_call", "type_mcp_approval_request", "type_tool_search_call",
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_recorded_answer_is_read_and_written_again_as_it_was(provider):
    paths = [path for path in whole_takes() if path.parent.name == provider]
    assert paths
    for path in paths:
        if path.stem not in TOLD_BACK:
            messages = to_messages(provider, talk_of(turn_of(path)))
            read = from_messages(provider, messages)
            assert to_messages(provider, read.conversation) == messages, path.name
            assert read.report == (), path.name


CSV = File(b"a,b\n1,2\n", "text/csv", "rows")


@pytest.mark.parametrize(
    ("provider", "output"),
    [
        ("anthropic", ["Here:", PICTURE]),
        ("bedrock", ["Here:", PICTURE, CSV]),
        ("bedrock", {"n": 7}),
        ("gemini_interactions", ["Here:", PICTURE]),
        ("openai_responses", ["Here:", PICTURE]),
    ],
)
def test_media_in_results_are_read_back_where_the_wire_holds_them(provider, output):
    call = ToolCall(0, "call_1", "f", {}, "{}")
    talk = Conversation().user("Go").add(Turn("assistant", (call,)))
    talk.results([ToolResult.for_call(call, output)])
    messages = to_messages(provider, talk)
    read = from_messages(provider, messages)
    assert read.report == ()
    assert read.conversation.turns[2].results[0].output == output
    assert to_messages(provider, read.conversation) == messages


def test_pictures_of_a_user_are_read_back():
    messages = to_messages("ollama", Conversation().user("Look", PICTURE))
    assert from_messages("ollama", messages).conversation.turns[0].parts == (Text("Look"), PICTURE)
    odd = from_messages("ollama", [{"role": "user", "content": "Look", "images": ["!"]}])
    assert [row.what for row in odd.report] == ["left_out"]


def computer(**more):
    item = {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "status": "completed",
            "action": {"type": "screenshot"}, "pending_safety_checks": []}  # fmt: skip
    shown = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw=="}
    return [item, {"type": "computer_call_output", "call_id": "call_1", "output": shown, **more}]


def approval():
    asked = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "pay",
             "arguments": "{}"}  # fmt: skip
    said = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False,
            "reason": "no"}  # fmt: skip
    return [asked, said]


@pytest.mark.parametrize(
    "items",
    [computer(), computer(acknowledged_safety_checks=[{"id": "sc_1", "code": "x"}]), approval()],
)
def test_results_of_their_own_kind_are_read_and_written_again(items):
    read = from_messages("openai_responses", items)
    assert read.report == ()
    assert to_messages("openai_responses", read.conversation)[1] == items[1]


def test_what_a_remote_shell_gave_is_no_result_of_the_client():
    shell = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed",
             "action": {"commands": ["ls"]}, "environment": {"type": "container_reference"}}  # fmt: skip
    gave = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "status": "completed",
            "output": []}  # fmt: skip
    read = from_messages("openai_responses", [shell, gave]).conversation
    assert [turn.role for turn in read.turns] == ["assistant"]


def test_an_interaction_may_be_contents_without_steps():
    said = [{"type": "text", "text": "Look"},
            {"type": "image", "data": "iVBORw==", "mime_type": "image/png"}]  # fmt: skip
    for body in ({"input": said}, {"input": said[0]}, {"input": "Look"}):
        turn = from_messages("gemini_interactions", body).conversation.turns[0]
        assert (turn.role, turn.text) == ("user", "Look")
    assert (
        from_messages("gemini_interactions", {"input": said}).conversation.turns[0].parts[1]
        == PICTURE
    )


def test_a_result_told_twice_is_kept_once():
    function = {"name": "f", "arguments": "{}"}
    asks = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    tells = {"role": "tool", "tool_call_id": "c", "content": "7"}
    read = from_messages("openai_chat", [asks, tells, tells])
    assert [r.text for turn in read.conversation.turns for r in turn.results] == ["7"]
    assert [row.what for row in read.report] == ["dropped_result"]


@pytest.mark.parametrize("name", ["openai_responses", "openai_chat", "anthropic"])
def test_a_body_for_foundry_is_read_as_the_wire_that_it_is(name):
    messages = to_messages(name, session(name))
    read = from_messages("azure_foundry", messages)
    assert read.report == ()
    assert [t.role for t in read.conversation.turns] == [t.role for t in session(name).turns]


def test_calls_without_a_result_are_exported_by_policy():
    talk = from_messages(
        "anthropic", to_messages("anthropic", session("anthropic"))[:2]
    ).conversation
    assert "may or may not have run" in str(to_messages("anthropic", talk))
    assert "tool_use" not in str(to_messages("anthropic", talk, orphans="drop"))
    with pytest.raises(UnansweredCall):
        to_messages("anthropic", talk, orphans="raise")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_calls_read_from_messages_are_those_that_were_heard(provider):
    conversation = session(provider)
    read = from_messages(provider, to_messages(provider, conversation)).conversation
    heard_calls, read_calls = conversation.turns[1].calls, read.turns[1].calls
    assert [(c.name, c.arguments) for c in read_calls] == [
        (c.name, c.arguments) for c in heard_calls
    ]
    if provider not in ("gemini", "ollama"):  # these wires need no ids, and none was sent
        assert [c.id for c in read_calls] == [c.id for c in heard_calls]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_messages_of_one_provider_go_to_another(provider):
    read = from_messages(provider, to_messages(provider, session(provider))).conversation
    for other in PROVIDERS:
        assert to_messages(other, read)


def test_calls_without_a_result_stay_open():
    messages = to_messages("anthropic", session("anthropic"))[:2]
    read = from_messages("anthropic", messages)
    assert len(read.conversation.turns[-1].calls) == 2
    assert read.report == ()


def test_a_result_without_a_call_is_told():
    read = from_messages("openai_chat", [{"role": "tool", "tool_call_id": "x", "content": "7"}])
    assert read.conversation.turns == []
    assert [row.what for row in read.report] == ["dropped_result"]


def test_a_part_that_has_no_place_is_told():
    content = [
        {"type": "text", "text": "Look:"},
        {"type": "hologram", "hologram": {"url": "https://x/y.holo"}},
    ]
    read = from_messages("openai_chat", [{"role": "user", "content": content}, "junk"])
    assert read.conversation.turns == [Turn("user", (Text("Look:"),))]
    assert [row.what for row in read.report] == ["left_out", "left_out"]


def test_a_half_call_is_told_and_not_kept():
    function = {"name": "f", "arguments": '{"a": '}
    message = {
        "role": "assistant",
        "content": "x",
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    read = from_messages("openai_chat", [message])
    assert read.conversation.turns[0].calls == ()
    assert [row.what for row in read.report] == ["dropped_call"]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [], "system": "S"},
        {"messages": [], "system": [{"type": "text", "text": "S"}]},
        {"contents": [], "systemInstruction": {"parts": [{"text": "S"}]}},
        {"input": "Hi", "instructions": "S"},
        {"input": "Hi", "system_instruction": "S"},
        {"messages": [], "system": [{"text": "S"}], "modelId": "m"},
        {"messages": [{"role": "system", "content": "S"}]},
        {"messages": [{"role": "developer", "content": [{"type": "text", "text": "S"}]}]},
    ],
)
def test_the_system_text_is_found(body):
    assert from_messages("auto", body).conversation.system == "S"


def test_bad_arguments_are_named():
    with pytest.raises(UsageError, match="nobody"):
        from_messages("nobody", [])
    with pytest.raises(UsageError, match="messages"):
        from_messages("anthropic", {"prompt": "x"})
