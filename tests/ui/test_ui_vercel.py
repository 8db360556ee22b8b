"""Events as the AI SDK's UI message stream: what is told, in which order, and always an end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import (
    BrokenToolCall,
    Citation,
    Failed,
    Finish,
    Provenance,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    ToolResult,
    Unrecognized,
    Usage,
    replay,
)
from streamnorm.history.settled import Settled
from streamnorm.ui import Approval, Denied, full_error, vercel
from tests.conftest import RECORDINGS
from tests.ui.ui_rules import tellings, vercel_complaints


def told(*events: Any, **options: Any) -> list[dict[str, Any]]:
    """The chunks of these events, fed at once, without the brackets that are always there."""
    encoder = vercel.Encoder(message_id="m", **options)
    chunks = _chunks(encoder.payloads(*events) + encoder.closing())
    return [c for c in chunks if c["type"] not in ("start", "start-step", "finish-step")]


def _chunks(payloads: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(p) for p in payloads if p != b"[DONE]"]


START = ToolCallStart(0, "call_1", "pay")
CALL = ToolCall(
    0, "call_1", "pay", {"euro": 5}, '{"euro":5}',
    provenance=Provenance("natural", "call_1", "id", provider="anthropic"),
)  # fmt: skip


def test_text_and_reasoning_are_runs_of_their_own() -> None:
    chunks = told(
        StreamStart("anthropic", "claude", "r1"), ReasoningDelta("Hm", 0), TextDelta("Hel", 1),
        TextDelta("lo", 1), Finish("stop"),
    )  # fmt: skip
    assert chunks == [
        {"type": "message-metadata", "messageMetadata": {
            "provider": "anthropic", "model": "claude", "responseId": "r1"}},
        {"type": "reasoning-start", "id": "reasoning-1"},
        {"type": "reasoning-delta", "id": "reasoning-1", "delta": "Hm"},
        {"type": "reasoning-end", "id": "reasoning-1"},
        {"type": "text-start", "id": "text-2"},
        {"type": "text-delta", "id": "text-2", "delta": "Hello"},
        {"type": "text-end", "id": "text-2"},
        {"type": "finish", "finishReason": "stop"},
    ]  # fmt: skip


def test_a_call_tells_where_it_comes_from() -> None:
    start, delta, available, _ = told(START, ToolCallDelta(0, '{"euro":5}'), CALL, Finish("stop"))
    assert start == {"type": "tool-input-start", "toolCallId": "call_1", "toolName": "pay"}
    assert delta["inputTextDelta"] == '{"euro":5}'
    assert available["input"] == {"euro": 5}
    assert available["toolMetadata"]["streamnorm"] == {
        "id": "call_1", "idSource": "natural", "boundary": "stated", "family": "function",
        "call": 0, "wireId": "call_1", "wireField": "id", "provider": "anthropic", "checksum": CALL.checksum,
    }  # fmt: skip


def test_interleaved_calls_stay_interleaved() -> None:
    chunks = told(
        START, ToolCallStart(1, "call_2", "pay"), ToolCallDelta(0, "{"), ToolCallDelta(1, "{"),
        ToolCallDelta(1, "}"), ToolCallDelta(0, "}"),
        ToolCall(1, "call_2", "pay", {}, "{}"), ToolCall(0, "call_1", "pay", {}, "{}"),
        Finish("tool_calls"),
    )  # fmt: skip
    assert [(c["type"], c.get("toolCallId"), c.get("inputTextDelta")) for c in chunks[2:5]] == [
        ("tool-input-delta", "call_1", "{"),
        ("tool-input-delta", "call_2", "{}"),  # neighbours are merged, others are not
        ("tool-input-delta", "call_1", "}"),
    ]
    assert chunks[-1]["finishReason"] == "tool-calls"


def test_a_broken_call_is_an_input_error() -> None:
    broken = BrokenToolCall(0, "call_1", "pay", '{"euro":5', "truncated", "cut at byte 90")
    *_, error, failed, finish = told(
        START, ToolCallDelta(0, '{"euro":5'), broken, Failed("truncated", "cut")
    )
    assert error["type"] == "tool-input-error"
    assert error["input"] == '{"euro":5'
    assert error["errorText"] == "truncated: cut at byte 90"
    assert error["toolMetadata"]["streamnorm"]["broken"] == "truncated"
    assert failed == {"type": "error", "errorText": "The answer was cut off."}
    assert finish == {"type": "finish", "finishReason": "error"}


def test_events_that_just_end_are_closed_and_failed() -> None:
    chunks = told(TextDelta("Hel"), START, ToolCallDelta(0, "{"))
    assert [c["type"] for c in chunks] == [
        "text-start", "text-delta", "text-end", "tool-input-start", "tool-input-delta",
        "tool-input-error", "error", "finish",
    ]  # fmt: skip


def test_a_stopped_answer_is_an_abort() -> None:
    assert told(TextDelta("Hel"), Failed("cancelled", "stopped"))[-2:] == [
        {"type": "abort", "reason": "The answer was stopped."},
        {"type": "finish", "finishReason": "other"},
    ]


def test_what_went_wrong_is_told_in_the_words_one_chooses() -> None:
    failed = Failed("provider_error", "org-77 is over its quota", code="rate_limit")
    assert told(failed)[0]["errorText"] == "The model's provider reported an error. (rate_limit)"
    assert told(failed, error_text=full_error)[0]["errorText"].endswith("org-77 is over its quota")


def test_what_the_provider_runs_is_marked() -> None:
    start = ToolCallStart(0, "ws_1", "web_search", "web-search", "provider")
    call = ToolCall(0, "ws_1", "web_search", {"q": "x"}, "{}", "web-search", "provider")
    chunks = told(
        start, ToolProgress(0, "ws_1", "searching"), call,
        ProviderToolResult(0, "ws_1", [{"url": "u"}]), Finish("stop"),
    )  # fmt: skip
    assert chunks[0]["providerExecuted"] is True
    assert chunks[1] == {
        "type": "data-tool-progress", "transient": True,
        "data": {"toolCallId": "ws_1", "status": "searching"},
    }  # fmt: skip
    assert chunks[3] == {
        "type": "tool-output-available", "toolCallId": "ws_1", "output": [{"url": "u"}],
        "providerExecuted": True,
    }  # fmt: skip


def test_a_result_without_a_call_is_told_apart() -> None:
    assert told(ProviderToolResult(None, "gone", "x", True), Finish("stop"))[0] == {
        "type": "data-orphan-result", "data": {"id": "gone", "output": "x", "isError": True},
    }  # fmt: skip


def test_results_of_a_loop_belong_to_their_step() -> None:
    """The second step uses the same id again, as servers do that count from 0."""
    again = ToolCall(0, "call_1", "pay", {"euro": 6}, "{}")
    chunks = told(
        StreamStart("ollama"), CALL, Finish("tool_calls"), ToolResult.for_call(CALL, {"ok": 1}),
        StreamStart("ollama"), again, Finish("tool_calls"),
        Settled.of(again, error="no money"),
    )  # fmt: skip
    outputs = [c for c in chunks if c["type"].startswith("tool-output")]
    assert outputs == [
        {"type": "tool-output-available", "toolCallId": "call_1", "output": {"ok": 1}},
        {"type": "tool-output-error", "toolCallId": "call_1_2", "errorText": "no money"},
    ]
    facts = [c["toolMetadata"]["streamnorm"]["id"] for c in chunks if "toolMetadata" in c]
    assert facts == ["call_1", "call_1"]


def test_a_late_id_changes_the_metadata_and_not_the_name_on_the_page() -> None:
    late = ToolCall(0, "call_real", "pay", {}, "{}")
    start, available, output, _ = told(
        ToolCallStart(0, "syn_1", "pay"), late, ToolResult.for_call(late, "ok"), Finish("stop")
    )
    assert start["toolCallId"] == available["toolCallId"] == output["toolCallId"] == "syn_1"
    assert available["toolMetadata"]["streamnorm"]["id"] == "call_real"


def test_only_a_whole_call_is_asked_about_refused_or_answered() -> None:
    encoder = vercel.Encoder()
    encoder.payloads(START, Approval("ask_1", CALL), Denied(CALL))
    assert encoder.skipped == {"approval": 1, "denied": 1}
    broken = BrokenToolCall(0, "call_1", "pay", "{", "truncated")
    chunks = told(START, broken, ProviderToolResult(0, "call_1", "x"), Finish("stop"))
    assert chunks[2]["type"] == "data-orphan-result"


def test_an_approval_is_asked_for() -> None:
    assert told(CALL, Finish("tool_calls"), Approval("ask_1", CALL, "5 €"))[2] == {
        "type": "tool-approval-request", "approvalId": "ask_1", "toolCallId": "call_1",
        "reason": "5 €",
    }  # fmt: skip


def test_a_page_that_does_not_know_the_call_is_told_it_before_it_is_asked() -> None:
    chunks = told(Approval("ask_1", CALL))
    assert [c["type"] for c in chunks] == [
        "tool-input-start", "tool-input-available", "tool-approval-request", "finish",
    ]  # fmt: skip
    assert chunks[1]["input"] == {"euro": 5}


def test_a_denied_call_is_told_once() -> None:
    record = ToolResult.for_call(CALL, "The user denied this call.", is_error=True)
    chunks = told(CALL, Finish("tool_calls"), Denied(CALL), record)
    assert [c["type"] for c in chunks[1:]] == [
        "tool-input-available", "tool-output-denied", "finish",
    ]  # fmt: skip


def test_a_call_of_the_message_that_is_continued_is_answered_in_its_own_step() -> None:
    """The client looks for tools that wait in the last step: an empty one would hide them."""
    other = ToolCall(1, "other", "pay", {"euro": 7}, '{"euro":7}')
    encoder = vercel.Encoder(known={"call_1": "call_1_2", "other": "other"})
    events = [ToolResult.for_call(CALL, "paid"), Approval("ask_2", other, "again")]
    chunks = _chunks(encoder.payloads(*events) + encoder.closing())
    assert [(c["type"], c.get("toolCallId") or c.get("finishReason")) for c in chunks] == [
        ("start", None), ("tool-output-available", "call_1_2"), ("tool-approval-request", "other"),
        ("finish", "tool-calls"),
    ]  # fmt: skip


def test_usage_is_summed_over_the_steps() -> None:
    *_, finish = told(
        StreamStart("a"), Usage(10, 5, 2, None, 1), Finish("tool_calls"),
        StreamStart("a"), Usage(20, 7), Finish("stop"),
    )  # fmt: skip
    assert finish["messageMetadata"] == {
        "usage": {"inputTokens": 30, "outputTokens": 12, "cachedInputTokens": 2,
                  "reasoningTokens": 1, "totalTokens": 42},
    }  # fmt: skip


SOURCES: list[tuple[Any, list[dict[str, Any]]]] = [
    ({"type": "url_citation", "url": "https://a.b/", "title": "A"},
     [{"type": "source-url", "url": "https://a.b/", "title": "A"}]),
    ({"groundingChunks": [{"web": {"uri": "http://a.b/"}}, {"web": {"uri": "http://c.d/"}}]},
     [{"type": "source-url", "url": "http://a.b/"}, {"type": "source-url", "url": "http://c.d/"}]),
    ({"type": "file_citation", "filename": "tides.pdf", "file_id": "f"},
     [{"type": "source-document", "title": "tides.pdf", "filename": "tides.pdf",
       "mediaType": "application/octet-stream"}]),
    ({"url": "javascript:alert(1)", "title": "A"},  # never a link
     [{"type": "source-document", "title": "A", "mediaType": "application/octet-stream"}]),
    (None, [{"type": "source-document", "title": "source",
             "mediaType": "application/octet-stream"}]),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "expected"), SOURCES)
def test_citations_become_sources(payload: Any, expected: list[dict[str, Any]]) -> None:
    chunks = told(Citation(0, payload), Finish("stop"))[:-1]
    for chunk in chunks:
        assert chunk.pop("sourceId")
        assert chunk.pop("providerMetadata")["streamnorm"]["citation"] == payload
    assert chunks == expected


def test_signatures_travel_unless_kept_back() -> None:
    events = [ReasoningDelta("Hm", echo={"signature": "s"}), Finish("stop")]
    end = told(*events)[2]
    assert end["providerMetadata"]["streamnorm"] == {"echoes": [{"signature": "s"}], "marks": [0]}
    assert "providerMetadata" not in told(*events, echo=False)[2]


def test_what_no_page_understands_is_counted_and_not_sent() -> None:
    encoder = vercel.Encoder()
    encoder.payloads(Unrecognized("odd", {"secret": 1}), object())  # type: ignore[arg-type]
    assert encoder.skipped == {"unrecognized": 1, "object": 1}


def test_nothing_in_a_payload_can_leave_its_script() -> None:
    body = vercel.Encoder().feed(TextDelta("</script><!--&\u2028\u2029\n\r\n\ndata: x"))
    for raw in (b"<", b">", b"&", "\u2028".encode(), "\u2029".encode(), b"\r"):
        assert raw not in body
    assert all(line.startswith(b"data: {") for line in body.split(b"\n\n") if line)
    assert _chunks([body.split(b"\n\n")[3][6:]])[0]["delta"].startswith("</script><!--&\u2028")


def test_numbers_stay_what_they_are() -> None:
    call = ToolCall(0, "a", "f", {"n": 2**70}, "")
    assert told(call)[1]["input"] == {"n": 2**70}


def test_after_the_end_nothing_is_told() -> None:
    encoder = vercel.Encoder()
    encoder.close()
    assert encoder.feed(TextDelta("x")) == encoder.close() == b""


# --- any events -----------------------------------------------------------------------------------


@given(tellings, st.data())
def test_any_events_in_any_batches_keep_the_rules(events: list[Any], data: st.DataObject) -> None:
    encoder, payloads, rest = vercel.Encoder(message_id="m"), [], list(events)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        payloads += encoder.payloads(*rest[:size])
        rest = rest[size:]
    payloads += encoder.closing()
    assert vercel_complaints(payloads) == []


@given(tellings, st.data())
def test_any_beginning_of_a_dead_producer_can_be_ended(
    events: list[Any], data: st.DataObject
) -> None:
    encoder = vercel.Encoder(message_id="m")
    payloads = [p for e in events for p in encoder.payloads(e)] + encoder.closing()
    cut = data.draw(st.integers(0, len(payloads)))
    left = payloads[:cut]
    whole = [*left, *vercel.lost(left)]
    assert vercel_complaints(whole) == []


def test_long_arguments_cost_what_they_are_long() -> None:
    """Twice as many pieces are twice as many payloads, and no longer ones."""
    encoder = vercel.Encoder()
    pieces = [encoder.feed(START), *(encoder.feed(ToolCallDelta(0, "x" * 20)) for _ in range(2000))]
    assert max(map(len, pieces[1:])) < 150


# --- with time ------------------------------------------------------------------------------------


async def test_encode_reads_a_stream_to_its_end() -> None:
    stream = replay(RECORDINGS / "anthropic" / "parallel_calls.sse")
    body = b"".join([chunk async for chunk in vercel.encode(stream, message_id="m", within=0)])
    payloads = [line[6:] for line in body.split(b"\n\n") if line]
    assert vercel_complaints(payloads) == []
    assert sum(b"tool-input-available" in p for p in payloads) == 2


async def test_encode_tells_a_failure_and_then_raises_it() -> None:
    async def events() -> AsyncIterator[Any]:
        yield TextDelta("Hel")
        raise ValueError("password")

    chunks: list[bytes] = []

    async def read() -> None:
        async for chunk in vercel.encode(events(), within=0):
            chunks.append(chunk)

    with pytest.raises(ValueError, match="password"):
        await read()
    body = b"".join(chunks)
    assert b"Something went wrong on the server." in body
    assert b"password" not in body
    assert body.endswith(b"data: [DONE]\n\n")


async def test_encode_closes_its_events_when_it_is_left() -> None:
    closed = anyio.Event()

    async def events() -> AsyncIterator[Any]:
        try:
            while True:
                yield TextDelta("more ")
                await anyio.lowlevel.checkpoint()
        finally:
            closed.set()

    for leave in ("aclose", "drop", "cancel"):
        closed = anyio.Event()
        stream = vercel.encode(events(), within=0)
        if leave == "cancel":
            with anyio.CancelScope() as scope:
                async for _ in stream:
                    scope.cancel()
        else:
            await anext(stream)
        if leave == "aclose":
            await stream.aclose()
        del stream
        with anyio.fail_after(5):
            await closed.wait()


async def test_encode_that_was_never_read_closes_its_events() -> None:
    stream = replay(RECORDINGS / "anthropic" / "parallel_calls.sse")
    await vercel.encode(stream).aclose()


async def test_a_slow_reader_slows_the_events() -> None:
    read: list[int] = []

    async def events() -> AsyncIterator[Any]:
        for number in range(100_000):
            read.append(number)
            yield TextDelta("x")

    stream = vercel.encode(events(), within=0)
    await anext(stream)
    for _ in range(100):
        await anyio.lowlevel.checkpoint()
    assert len(read) < 10_000
    await stream.aclose()


def test_text_of_another_type_is_another_part() -> None:
    refused = {"type": "refusal"}
    chunks = told(TextDelta("Well"), TextDelta(", no", echo=refused), Finish("refusal"))
    assert [c for c in chunks if c["type"].startswith("text")] == [
        {"type": "text-start", "id": "text-1"},
        {"type": "text-delta", "id": "text-1", "delta": "Well"},
        {"type": "text-end", "id": "text-1"},
        {"type": "text-start", "id": "text-2"},
        {"type": "text-delta", "id": "text-2", "delta": ", no"},
        {"type": "text-end", "id": "text-2",
         "providerMetadata": {"streamnorm": {"echoes": [refused], "marks": [0]}}},
    ]  # fmt: skip
