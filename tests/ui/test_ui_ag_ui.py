"""Events as AG-UI: what is told, to new and to old clients, and always an end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import (
    BrokenToolCall,
    Citation,
    Failed,
    Finish,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    ToolResult,
    Usage,
)
from streamnorm.ui import Approval, Denied, ag_ui
from tests.ui.ui_rules import ag_ui_complaints, tellings


def encoder(version: str | None = "1.0", **options: Any) -> ag_ui.Encoder:
    return ag_ui.Encoder(
        thread_id="t", run_id="r", message_id="m", protocol_version=version, **options
    )


def told(*events: Any, version: str | None = "1.0", **options: Any) -> list[dict[str, Any]]:
    """The events of these events, without the brackets that are always there."""
    one = encoder(version, **options)
    out = [json.loads(p) for p in one.payloads(*events) + one.closing()]
    return [e for e in out if e["type"] not in ("RUN_STARTED", "STEP_STARTED", "STEP_FINISHED")]


START = ToolCallStart(0, "call_1", "pay")
CALL = ToolCall(0, "call_1", "pay", {"euro": 5}, '{"euro":5}')


def test_spaces_before_the_arguments_do_not_say_what_they_are() -> None:
    code = ToolCall(0, "c", "python", {"code": "f()"}, " f()", "code")
    start = ToolCallStart(0, "c", "python", "code")
    args = [
        [e["delta"] for e in told(*events) if e["type"] == "TOOL_CALL_ARGS"]
        for events in (
            [start, ToolCallDelta(0, " "), ToolCallDelta(0, "f()"), code],
            [START, ToolCallDelta(0, " "), ToolCallDelta(0, '{"euro":5}')],
        )
    ]
    assert args == [['{"code":"f()"}'], [' {"euro":5}']]


def test_text_reasoning_and_a_call() -> None:
    events = told(
        ReasoningDelta("Hm", echo={"signature": "s"}), TextDelta("Pay", 1), TextDelta("ing", 1),
        START, ToolCallDelta(0, '{"euro":5}'), CALL, Finish("tool_calls"),
    )  # fmt: skip
    assert [e["type"] for e in events] == [
        "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END", "REASONING_ENCRYPTED_VALUE", "REASONING_END",
        "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
        "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED",
    ]  # fmt: skip
    assert events[7]["delta"] == "Paying"
    assert events[9] == {
        "type": "TOOL_CALL_START", "toolCallId": "call_1", "toolCallName": "pay",
        "parentMessageId": "m-1",
    }  # fmt: skip
    assert events[6]["messageId"] == "m-1"
    assert events[11]["metadata"]["streamnorm"]["checksum"] == CALL.checksum


def test_the_version_is_said_only_to_those_who_said_one() -> None:
    modern, old = (json.loads(encoder(v).payloads()[0]) for v in ("1.0", None))
    assert modern == {
        "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0",
    }  # fmt: skip
    assert "protocolVersion" not in old


@pytest.mark.parametrize(
    ("version", "modern"),
    [("1.0", True), ("2.3", True), (None, False), ("0.9", False), ("x", False)],
)
def test_cancelled_is_an_outcome_for_new_clients(version: str | None, modern: bool) -> None:
    last = told(TextDelta("Hel"), Failed("cancelled", "stopped"), version=version)[-1]
    if modern:
        assert last["outcome"] == {"type": "cancelled"}
    else:
        assert (last["type"], last["code"]) == ("RUN_ERROR", "cancelled")


def test_a_broken_call_is_ended_and_answered() -> None:
    broken = BrokenToolCall(0, "call_1", "pay", '{"eu', "truncated", "cut")
    *_, end, result, error = told(
        START, ToolCallDelta(0, '{"eu'), broken, Failed("truncated", "cut")
    )
    assert end["metadata"]["streamnorm"]["broken"] == "truncated"
    assert (result["type"], result["content"]) == ("TOOL_CALL_RESULT", "truncated: cut")
    assert result["metadata"]["streamnorm"] == {"isError": True}
    assert (error["type"], error["message"]) == ("RUN_ERROR", "The answer was cut off.")


def test_text_that_is_no_json_is_told_as_its_object() -> None:
    code = ToolCall(0, "c", "python", {"code": "print(1)"}, "print(1)", "code", "provider")
    events = told(
        ToolCallStart(0, "c", "python", "code", "provider"), ToolCallDelta(0, "print"),
        ToolCallDelta(0, "(1)"), code, ProviderToolResult(0, "c", {"out": "1"}), Finish("stop"),
    )  # fmt: skip
    args = [e["delta"] for e in events if e["type"] == "TOOL_CALL_ARGS"]
    assert [json.loads(a) for a in args] == [{"code": "print(1)"}]
    result = next(e for e in events if e["type"] == "TOOL_CALL_RESULT")
    assert result["content"] == '{"out":"1"}'


def test_white_space_before_the_arguments_is_kept() -> None:
    call = ToolCall(0, "c", "f", {}, "  {}")
    args = [
        e["delta"]
        for e in told(START, ToolCallDelta(0, " "), ToolCallDelta(0, " {}"), call, Finish("stop"))
        if e["type"] == "TOOL_CALL_ARGS"
    ]
    assert "".join(args) == "  {}"


def test_arguments_that_changed_are_told_again() -> None:
    """The closing copy differs from what was streamed: the client must not keep the first."""
    events = told(
        START, ToolCallDelta(0, '{"euro":9}'), CALL, ToolResult.for_call(CALL, "ok"),
        Finish("stop"),
    )  # fmt: skip
    ids = [(e["type"], e["toolCallId"]) for e in events if "toolCallId" in e]
    assert ids == [
        ("TOOL_CALL_START", "call_1"), ("TOOL_CALL_ARGS", "call_1"), ("TOOL_CALL_END", "call_1"),
        ("TOOL_CALL_RESULT", "call_1"),
        ("TOOL_CALL_START", "call_1_2"), ("TOOL_CALL_ARGS", "call_1_2"),
        ("TOOL_CALL_END", "call_1_2"), ("TOOL_CALL_RESULT", "call_1_2"),
    ]  # fmt: skip


def test_a_whole_call_without_deltas_has_its_arguments() -> None:
    events = told(START, CALL, Finish("stop"))
    assert [e["delta"] for e in events if e["type"] == "TOOL_CALL_ARGS"] == ['{"euro":5}']


def test_ids_of_the_conversation_are_not_used_again() -> None:
    assert told(START, CALL, Finish("stop"), used={"call_1"})[0]["toolCallId"] == "call_1_2"


def test_an_approval_is_an_interrupt() -> None:
    *_, finished = told(CALL, Finish("tool_calls"), Approval("ask_1", CALL, "5 €"))
    assert finished["outcome"] == {"type": "interrupt", "interrupts": [
        {"id": "ask_1", "reason": "tool_call", "toolCallId": "call_1", "message": "5 €",
         "responseSchema": ag_ui.ANSWER},
    ]}  # fmt: skip
    *_, finished = told(CALL, Finish("tool_calls"), Approval("ask_1", CALL), Denied(CALL))
    assert "outcome" not in finished  # nothing waits


def test_a_call_of_an_earlier_run_is_answered_and_asked_about_again() -> None:
    other = ToolCall(1, "other", "pay", {"euro": 7}, '{"euro":7}')
    known = {"call_1": "call_1_2", "other": "other"}
    events = told(ToolResult.for_call(CALL, "paid"), Approval("ask_2", other), known=known)
    assert [e["type"] for e in events] == ["TOOL_CALL_RESULT", "CUSTOM", "RUN_FINISHED"]
    assert (events[0]["toolCallId"], events[0]["content"]) == ("call_1_2", "paid")
    assert [i["toolCallId"] for i in events[-1]["outcome"]["interrupts"]] == ["other"]


def test_a_denied_call_is_answered() -> None:
    *_, result, _ = told(CALL, Finish("tool_calls"), Denied(CALL, "too much"))
    said = "The user denied this call: too much"
    assert (result["type"], result["content"]) == ("TOOL_CALL_RESULT", said)


def test_usage_by_step_for_new_clients() -> None:
    events = [StreamStart("anthropic", "c"), Usage(10, 5, 2), Finish("stop")]
    assert told(*events)[-1]["usage"] == [
        {"provider": "anthropic", "model": "c", "inputTokens": 10, "outputTokens": 5,
         "cachedInputTokens": 2},
    ]  # fmt: skip
    assert "usage" not in told(*events, version=None)[-1]


def test_what_agui_has_no_event_for_is_custom() -> None:
    events = told(
        Citation(0, {"url": "https://a.b/"}), ToolProgress(None, "x", "busy"),
        ProviderToolResult(None, "gone", 1), Finish("stop"),
    )  # fmt: skip
    assert [e["name"] for e in events[:-1]] == [
        "streamnorm.citation", "streamnorm.tool_progress", "streamnorm.orphan_result",
    ]  # fmt: skip


def test_the_echo_of_a_call_travels_as_its_encrypted_value() -> None:
    call = ToolCall(0, "c", "f", {}, "{}", echo={"thoughtSignature": "s"})
    value = next(e for e in told(call) if e["type"] == "REASONING_ENCRYPTED_VALUE")
    assert (value["subtype"], value["entityId"]) == ("tool-call", "c")
    assert json.loads(value["encryptedValue"]) == {"thoughtSignature": "s"}


@given(tellings, st.data(), st.sampled_from(["1.0", None]))
def test_any_events_in_any_batches_keep_the_rules(
    events: list[Any], data: st.DataObject, version: str | None
) -> None:
    one, payloads, rest = encoder(version), [], list(events)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        payloads += one.payloads(*rest[:size])
        rest = rest[size:]
    payloads += one.closing()
    assert ag_ui_complaints(payloads) == []


@given(tellings, st.data())
def test_any_beginning_of_a_dead_producer_can_be_ended(
    events: list[Any], data: st.DataObject
) -> None:
    one = encoder()
    payloads = [p for e in events for p in one.payloads(e)] + one.closing()
    left = payloads[: data.draw(st.integers(1, len(payloads)))]
    assert ag_ui_complaints([*left, *ag_ui.lost(left)]) == []


def values(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [
        (e["entityId"], json.loads(e["encryptedValue"]))
        for e in events if e["type"] == "REASONING_ENCRYPTED_VALUE"
    ]  # fmt: skip


def test_the_echoes_of_a_message_are_told_together_as_clients_keep_the_last_ones() -> None:
    events = told(
        TextDelta("Paying", echo={"n": 1}), CALL, TextDelta(" now", 1, echo={"n": 2}),
        Finish("stop"),
    )  # fmt: skip
    assert values(events) == [
        ("m-1", {"echoes": [{"n": 1}], "marks": [0]}),
        ("m-1", {"echoes": [{"n": 1}, {"n": 2}], "marks": [0, 6]}),
    ]


def test_text_of_another_type_is_another_message() -> None:
    refused = {"type": "refusal"}
    events = told(TextDelta("Well"), TextDelta(", no", echo=refused), Finish("refusal"))
    texts = [(e["messageId"], e["delta"]) for e in events if e["type"] == "TEXT_MESSAGE_CONTENT"]
    assert texts == [("m-1", "Well"), ("m-1-t2", ", no")]
    assert values(events) == [("m-1-t2", {"echoes": [refused], "marks": [0]})]
