"""An error that a gateway reports in nobody's kind fails the stream of every wire that has kinds."""

import pytest

from streamnorm.events import Failed
from tests.conftest import Messages, broken_of, calls_of, piped, sse

BEGINNINGS = {
    "anthropic": Messages.START + Messages.open(0, "a", "f") + Messages.args(0, "{}"),
    "openai_responses": sse({"type": "response.created", "response": {"id": "r", "model": "m"}}),
    "cohere": sse({"type": "message-start", "id": "m"}),
    "gemini_interactions": sse({"event_type": "interaction.created", "interaction": {"id": "i"}}),
}


@pytest.mark.parametrize("provider", BEGINNINGS)
@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ({"message": "busy", "code": "e1"}, "busy", "e1"),
        ({"type": "overloaded"}, "overloaded", "overloaded"),
        ("out of credit", "out of credit", None),
    ],
)
def test_an_error_without_a_kind_is_a_failure(provider, error, message, code):
    events, _ = piped(provider, [BEGINNINGS[provider] + sse({"error": error})])
    assert events[-1] == Failed("provider_error", message, False, code)
    assert calls_of(events) == []
    assert [call.reason for call in broken_of(events)] == ["provider_error"] * (
        provider == "anthropic"
    )


@pytest.mark.parametrize("provider", [*BEGINNINGS, "openai_chat", "mistral", "gemini", "ollama"])
@pytest.mark.parametrize("error", [{"message": "busy"}, {"type": "overloaded", "message": "busy"}])
def test_an_error_that_only_the_name_of_its_event_calls_so_is_a_failure(provider, error):
    events, _ = piped(provider, [BEGINNINGS.get(provider, b"") + sse(error, "error")])
    assert (events[-1].kind, events[-1].reason, events[-1].error) == (
        "failed", "provider_error", "busy",
    )  # fmt: skip


ENDS = {
    "cohere": {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    "anthropic": {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    "openai_responses": {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {"type": "message", "id": "m", "role": "assistant", "content": []},
    },
    "gemini_interactions": {
        "event_type": "interaction.completed",
        "interaction": {"id": "i", "status": "completed"},
    },
    "gemini": {"candidates": [{"finishReason": "STOP", "index": 0}]},
    "mistral_conversations": {"type": "conversation.response.done"},
}
ERROR = {"code": "e1", "message": "busy"}
FAILED = [
    *((provider, {**end, "error": ERROR}) for provider, end in ENDS.items()),
    ("gemini_interactions", {**ENDS["gemini_interactions"],
                             "interaction": {"id": "i", "status": "completed", "error": ERROR}}),
    ("gemini", {"candidates": [{"finishReason": "STOP", "index": 0, "error": ERROR}]}),
    ("mistral_conversations", {"type": "message.output.delta", "content": "Hi", "error": ERROR}),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "payload"), FAILED)
def test_an_error_in_a_payload_of_another_kind_is_a_failure(provider, payload):
    rest = sse({"type": "message_stop"}) if provider == "anthropic" else b""
    events, _ = piped(provider, [BEGINNINGS.get(provider, b"") + sse(payload) + rest])
    assert events[-1] == Failed("provider_error", "busy", False, "e1")


@pytest.mark.parametrize("provider", ["cohere", "anthropic", "mistral_conversations"])
def test_an_error_that_is_null_is_none(provider):
    rest = sse({"type": "message_stop"}) if provider == "anthropic" else b""
    end = sse({**ENDS[provider], "error": None})
    events, _ = piped(provider, [BEGINNINGS.get(provider, b"") + end + rest])
    assert events[-1].kind == "finish"


def test_an_error_beside_the_end_breaks_the_calls_that_only_the_end_tells():
    piece = {"type": "function.call.delta", "id": "e", "tool_call_id": "t", "name": "pay"}
    body = sse({**piece, "arguments": "{}"})
    body += sse({"type": "conversation.response.done", "error": {"code": 429, "message": "busy"}})
    events, _ = piped("mistral_conversations", [body])
    assert [call.reason for call in broken_of(events)] == ["provider_error"]
    assert calls_of(events) == []
    assert events[-1] == Failed("provider_error", "busy", False, "429")


def test_an_error_that_calls_itself_so_is_not_read_twice():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    for event in ("error", None):
        events, _ = piped("anthropic", [BEGINNINGS["anthropic"] + sse(error, event)])
        assert events[-1] == Failed("provider_error", "busy", True, "overloaded_error")
    events, _ = piped("openai_chat", [sse({"error": {"message": "busy"}, "id": 1}, "error")])
    assert events[-1] == Failed("provider_error", "busy")


def test_a_fragment_that_is_no_text_changes_nothing_of_how_later_ones_are_read():
    def said(text):
        entry = {"function": {"arguments": text}}
        return sse(
            {"type": "tool-call-delta", "index": 1, "delta": {"message": {"tool_calls": entry}}}
        )

    entry = {"id": "a", "function": {"name": "f", "arguments": ""}}
    start = {"type": "tool-call-start", "index": 1, "delta": {"message": {"tool_calls": entry}}}
    body = BEGINNINGS["cohere"] + said(5).replace(b'"index": 1', b'"index": 0')
    body += sse(start) + said('{"x":"a') + said(' b"}') + sse({"type": "tool-call-end", "index": 1})
    events, _ = piped("cohere", [body])
    assert [call.arguments for call in calls_of(events)] == [{"x": "a b"}]


ITEM = {"type": "function_call", "arguments": ""}
TWO = BEGINNINGS["openai_responses"] + b"".join(
    sse({"type": "response.output_item.added", "output_index": n,
         "item": {**ITEM, "id": f"fc_{n}", "call_id": f"call_{n}", "name": "f"}})
    for n in (0, 1)
)  # fmt: skip
COMPLETED = sse({"type": "response.completed", "response": {"status": "completed", "output": []}})


def test_a_copy_that_names_no_call_is_nobodys_while_two_are_open():
    done = {"type": "response.function_call_arguments.done", "arguments": '{"a":1}'}
    events, pipe = piped("openai_responses", [TWO + sse(done) + COMPLETED])
    assert calls_of(events) == []
    assert [call.reason for call in broken_of(events)] == ["conflict", "conflict"]
    assert pipe.notes["call.unannounced"] == 1


def test_text_in_a_calls_place_may_have_been_its_fragment():
    piece = {"type": "response.output_text.delta", "output_index": 0, "delta": "x"}
    args = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    events, _ = piped("openai_responses", [TWO + sse(piece) + sse(args) + COMPLETED])
    assert calls_of(events) == []
