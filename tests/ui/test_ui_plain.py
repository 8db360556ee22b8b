"""Our own events for a page: what is sent, what stays on the server, and always an end."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given

from streamnorm import (
    Failed,
    Finish,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
    Unrecognized,
    Usage,
    event_from_dict,
)
from streamnorm.ui import Approval, Denied, Said, plain
from tests.ui.ui_rules import tellings

CALL = ToolCall(0, "call_1", "pay", {"euro": 5}, '{"euro":5}')


def told(*events: Any, **options: Any) -> list[dict[str, Any]]:
    encoder = plain.Encoder(**options)
    return [json.loads(p) for p in encoder.payloads(*events) + encoder.closing()]


def test_events_come_out_as_they_are() -> None:
    events = [StreamStart("anthropic", "m"), TextDelta("Hi"), CALL, Finish("tool_calls")]
    assert [event_from_dict(one) for one in told(*events)[:-1]] == events
    assert told(*events)[-1] == {"kind": "end"}


def test_neighbours_are_merged_and_others_are_not() -> None:
    events = told(
        TextDelta("a"), TextDelta("b"), TextDelta("c", 1), ReasoningDelta("d", 1),
        ToolCallStart(0, "x", "f"), ToolCallDelta(0, "{"), ToolCallDelta(0, "}"),
        ToolCall(0, "x", "f", {}, "{}"), Finish("stop"),
    )  # fmt: skip
    assert [e.get("text") for e in events if "text" in e] == ["ab", "c", "d", "{}"]


def test_what_a_page_cannot_use_stays_on_the_server() -> None:
    events = [
        ReasoningDelta("Hm", echo={"signature": "s"}), Unrecognized("odd", {"a": 1}),
        Usage(1, 2, raw={"tier": "x"}), Failed("provider_error", "org-77 has no money"),
    ]  # fmt: skip
    body = json.dumps(told(*events))
    assert not any(word in body for word in ("signature", "odd", "tier", "org-77"))
    full = json.dumps(told(*events, full=True))
    assert all(word in full for word in ("signature", "odd", "tier", "org-77"))


def test_a_loop_tells_results_and_questions() -> None:
    events = told(
        CALL, Finish("tool_calls"), ToolResult.for_call(CALL, {"ok": 1}),
        Approval("ask_1", CALL, "why"), Denied(CALL, "no"), Said("Pay more", "ann"),
    )  # fmt: skip
    assert events[2:6] == [
        {"kind": "client_tool_result", "call": 0, "id": "call_1", "output": {"ok": 1},
         "is_error": False},
        {"kind": "approval", "call": 0, "id": "call_1", "reason": "why", "approval": "ask_1"},
        {"kind": "denied", "call": 0, "id": "call_1", "reason": "no"},
        {"kind": "said", "text": "Pay more", "to": "ann"},
    ]  # fmt: skip


def test_a_question_about_a_call_of_an_earlier_stream_is_told_with_the_call() -> None:
    other = msgspec.structs.replace(CALL, call=1, id="call_2")
    events = told(Approval("ask_1", CALL), Approval("ask_2", other), Approval("ask_1", CALL))
    assert [(e["kind"], e.get("id")) for e in events] == [
        ("tool_call", "call_1"), ("approval", "call_1"), ("tool_call", "call_2"),
        ("approval", "call_2"), ("approval", "call_1"), ("end", None),
    ]  # fmt: skip
    assert (events[0]["name"], events[0]["arguments"]) == (CALL.name, CALL.arguments)


def test_events_that_just_end_break_what_is_open() -> None:
    *_, broken, failed, end = told(ToolCallStart(0, "x", "f"), ToolCallDelta(0, "{"))
    assert (broken["kind"], broken["raw"]) == ("broken_tool_call", "{")
    assert failed["kind"] == "failed"
    assert end == {"kind": "end"}


@given(tellings)
def test_any_events_end_with_an_end_and_stay_harmless(events: list[Any]) -> None:
    encoder = plain.Encoder()
    payloads = encoder.payloads(*events) + encoder.closing()
    assert payloads[-1] == b'{"kind":"end"}'
    assert not any(raw in p for p in payloads for raw in (b"<", b">", b"&", b"\n"))
    assert plain.lost(payloads) == []
    assert plain.lost(payloads[:-1])[-1] == payloads[-1]
