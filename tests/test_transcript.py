"""Conversations as JSONL, and from and to each provider's messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Conversation, Media, Text, ToolCall, ToolResult, Turn
from streamnorm.errors import UsageError
from streamnorm.testing import call, finish, say, script, think
from streamnorm.transcript import from_jsonl, from_messages, to_jsonl, to_messages
from tests.test_settled import any_text, json_values

PROVIDERS = [
    "anthropic", "bedrock", "cohere", "gemini", "mistral", "ollama", "openai_chat", "openai_responses",
]  # fmt: skip
PICTURE = Media(b"\x89PNG", "image/png")


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
    st.builds(Media, st.binary(), texts, st.none() | texts),
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
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
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
