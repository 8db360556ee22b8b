"""Spans and metrics of streams, read back from the OpenTelemetry SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from streamnorm import (
    Approval,
    Denied,
    Failed,
    Finish,
    Media,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolEnded,
    ToolStarted,
    Usage,
    replay,
    telemetry,
)
from streamnorm.telemetry import Telemetry, observe
from tests.conftest import RECORDINGS


class Kit:
    """Providers of a test, and what they were told. Time moves one second per look."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self._tracers, meters = TracerProvider(), MeterProvider([self._reader])
        self._tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._now = 0.0
        self.telemetry = Telemetry(
            tracer_provider=self._tracers, meter_provider=meters, clock=self._tick
        )

    def _tick(self) -> float:
        self._now += 1
        return self._now

    @property
    def spans(self) -> list[Any]:
        return list(self._spans.get_finished_spans())

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and value (count and sum for a histogram) of each point of a metric."""
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        return [
            (dict(point.attributes), getattr(point, "value", None) or (point.count, point.sum))
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics if metric.name == name
            for point in metric.data.data_points
        ]  # fmt: skip

    def parent(self) -> Any:
        return self._tracers.get_tracer("test").start_as_current_span("parent")


async def told(*events: Any) -> AsyncIterator[Any]:
    for event in events:
        yield event


async def all_of(events: Any) -> list[Any]:
    return [event async for event in events]


async def test_a_stream_is_a_span() -> None:
    kit = Kit()
    path = RECORDINGS / "anthropic" / "parallel_calls.sse"
    seen = await all_of(kit.telemetry.observe(replay(path), model="claude"))
    assert seen == list(replay(path))
    (span,) = kit.spans
    assert span.name == "chat claude"
    assert span.kind is trace.SpanKind.CLIENT
    facts = dict(span.attributes)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] == "anthropic"
    assert facts["gen_ai.request.model"] == "claude"
    assert facts["gen_ai.response.model"].startswith("claude-")
    assert facts["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (412, 87)
    assert facts["gen_ai.response.time_to_first_chunk"] == 1.0
    ((tags, value),) = kit.points("streamnorm.tool_calls")
    assert value == 2
    assert (tags["streamnorm.outcome"], tags["streamnorm.id_source"]) == ("whole", "natural")
    tokens = {t["gen_ai.token.type"]: v for t, v in kit.points("gen_ai.client.token.usage")}
    assert tokens == {"input": (1, 412), "output": (1, 87)}
    assert len(kit.points("gen_ai.client.operation.duration")) == 1
    assert len(kit.points("gen_ai.client.operation.time_to_first_chunk")) == 1


async def test_nothing_that_was_said_is_told() -> None:
    kit = Kit()
    await all_of(kit.telemetry.observe(replay(RECORDINGS / "anthropic" / "parallel_calls.sse")))
    text = "".join(span.to_json() for span in kit.spans)
    assert not any(word in text for word in ("Reykjav", "get_weather", "look both"))


async def test_a_loop_is_a_span_per_turn() -> None:
    kit = Kit()
    events = [
        StreamStart("openai_chat", "m", "r1"), ToolCall(0, "a", "f", {}, ""),
        Finish("tool_calls"), StreamStart("openai_chat", "m", "r2"), TextDelta("x"),
        Finish("stop"),
    ]  # fmt: skip
    with kit.parent() as parent:
        await all_of(kit.telemetry.observe(told(*events)))
    *steps, outer = kit.spans
    assert [dict(s.attributes)["gen_ai.response.id"] for s in steps] == ["r1", "r2"]
    assert all(s.parent.span_id == parent.get_span_context().span_id for s in steps)
    assert [s.name for s in steps] == ["chat m", "chat m"]
    assert outer.name == "parent"


async def test_each_tool_that_a_loop_ran_is_a_span() -> None:
    kit = Kit()
    events = [
        StreamStart("openai_chat", "m", "r1"), Finish("tool_calls"),
        ToolStarted(0, "call_1", "pay", "c1"), ToolStarted(1, "call_2", "look", "c2"),
        ToolEnded(1, "call_2", "look", "c2", "ok", 0.25),
        ToolEnded(0, "call_1", "pay", "c1", "timeout", 2.0),
        StreamStart("openai_chat", "m", "r2"), Finish("stop"),
    ]  # fmt: skip
    with kit.parent() as parent:
        await all_of(kit.telemetry.observe(told(*events), attributes={"app": "x"}))
    _, look, pay, _, _ = kit.spans
    assert (look.name, pay.name) == ("execute_tool look", "execute_tool pay")
    assert look.kind is trace.SpanKind.INTERNAL
    assert look.parent.span_id == parent.get_span_context().span_id
    assert dict(look.attributes) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "call_2", "gen_ai.tool.type": "function",
        "streamnorm.checksum": "c2", "app": "x",
    }  # fmt: skip
    assert (look.end_time - look.start_time, pay.end_time - pay.start_time) == (
        250_000_000,
        2 * 10**9,
    )
    assert look.status.status_code is trace.StatusCode.UNSET
    assert (pay.status.status_code, pay.attributes["error.type"]) == (
        trace.StatusCode.ERROR,
        "timeout",
    )
    durations = {
        tags.get("error.type"): value for tags, value in kit.points("gen_ai.execute_tool.duration")
    }
    assert durations == {None: (1, 0.25), "timeout": (1, 2.0)}  # and no tool's name


async def test_a_run_that_takes_up_what_waited_is_no_failed_chat() -> None:
    call = ToolCall(0, "call_1", "pay", {}, "{}")
    ran = [ToolStarted(0, "call_1", "pay", "c1"), ToolEnded(0, "call_1", "pay", "c1", "ok", 1.0)]
    answer = [StreamStart("gemini"), Finish("stop")]
    for events, expected in [
        ([*ran, *answer], ["execute_tool pay", "chat"]),
        ([*ran, Approval("ask_1", call)], ["execute_tool pay"]),
        ([Denied(call), *answer], ["chat"]),
        ([Approval("ask_1", call)], []),
    ]:
        kit = Kit()
        await all_of(kit.telemetry.observe(told(*events)))
        assert [span.name for span in kit.spans] == expected
        assert all("error.type" not in span.attributes for span in kit.spans)


async def test_a_tool_that_was_running_when_the_reader_left_is_cancelled() -> None:
    kit = Kit()
    watched = kit.telemetry.observe(told(ToolStarted(0, "call_1", "pay", "c1"), Finish("stop")))
    await anext(watched)
    await watched.aclose()
    span = next(span for span in kit.spans if span.name == "execute_tool pay")
    assert span.attributes["error.type"] == "cancelled"


ENDS: list[tuple[list[Any], str]] = [
    ([StreamStart("gemini"), Failed("provider_error", "no", code="429")], "provider_error"),
    ([StreamStart("gemini"), TextDelta("x")], "truncated"),
]


@pytest.mark.parametrize(("events", "why"), ENDS)
async def test_a_failure_is_an_error(events: list[Any], why: str) -> None:
    kit = Kit()
    await all_of(kit.telemetry.observe(told(*events)))
    (span,) = kit.spans
    assert span.status.status_code is trace.StatusCode.ERROR
    assert dict(span.attributes)["error.type"] == why
    ((tags, _),) = kit.points("gen_ai.client.operation.duration")
    assert tags["error.type"] == why


async def test_broken_calls_and_notes_are_counted() -> None:
    kit = Kit()
    path = RECORDINGS / "openai_chat" / "late_id.sse"
    await all_of(kit.telemetry.observe(replay(path)))
    notes = {tags["streamnorm.note"]: n for tags, n in kit.points("streamnorm.notes")}
    assert notes == dict((await _noted(path)).items())
    assert kit.spans[0].attributes["streamnorm.notes"] == tuple(sorted(notes))

    kit = Kit()
    take = next(iter(sorted(RECORDINGS.glob("anthropic/*cut*.sse"))), None) or next(
        iter(sorted(RECORDINGS.glob("anthropic/*length*.sse")))
    )
    seen = await all_of(kit.telemetry.observe(replay(take)))
    broken = [e for e in seen if e.kind == "broken_tool_call"]
    counted = [n for tags, n in kit.points("streamnorm.tool_calls")
               if tags["streamnorm.outcome"] != "whole"]  # fmt: skip
    assert sum(counted) == len(broken)


async def _noted(path: Any) -> dict[str, int]:
    stream = replay(path)
    await all_of(stream)
    return dict(stream.notes)


async def test_what_raises_ends_the_span_and_is_raised() -> None:
    async def events() -> AsyncIterator[Any]:
        yield StreamStart("gemini")
        raise ValueError("x")

    kit = Kit()
    with pytest.raises(ValueError, match="x"):
        await all_of(kit.telemetry.observe(events()))
    assert dict(kit.spans[0].attributes)["error.type"] == "ValueError"


async def test_leaving_early_ends_the_span_and_closes_the_stream() -> None:
    kit = Kit()
    stream = replay(RECORDINGS / "anthropic" / "parallel_calls.sse")
    async with kit.telemetry.observe(stream) as watched:
        await anext(watched)
    assert dict(kit.spans[0].attributes)["error.type"] == "cancelled"
    dropped = kit.telemetry.observe(told(StreamStart("a"), TextDelta("x")))
    await anext(dropped)
    del dropped
    assert len(kit.spans) == 2


async def test_no_span_is_current_while_the_reader_has_control() -> None:
    kit = Kit()
    before = trace.get_current_span()
    async for _ in kit.telemetry.observe(told(StreamStart("a"), Finish("stop"))):
        assert trace.get_current_span() is before
        await anyio.lowlevel.checkpoint()


async def test_without_any_setup_it_only_passes_events_on() -> None:
    events = [StreamStart("a"), Usage(1, 2), Finish("stop")]
    assert await all_of(observe(told(*events))) == events


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("anthropic", "anthropic"), ("openai_responses", "openai"), ("openai_chat", "openai"),
        ("gemini", "gcp.gemini"), ("azure_foundry", "azure.ai.inference"),
        ("mistral", "mistral_ai"), ("mistral_conversations", "mistral_ai"), ("cohere", "cohere"),
        ("ollama", "ollama"),
        ("bedrock", "aws.bedrock"), ("gemini_interactions", "gcp.gemini"), ("nobody", "nobody"),
    ],
)  # fmt: skip
async def test_a_provider_is_called_as_the_conventions_do(provider: str, name: str) -> None:
    kit = Kit()
    await all_of(kit.telemetry.observe(told(StreamStart(provider), Finish("stop"))))
    assert kit.spans[0].attributes["gen_ai.provider.name"] == name


# --- names ----------------------------------------------------------------------------------------


def test_every_name_stands_in_the_table_with_the_conventions_that_it_follows() -> None:
    source = Path(telemetry.__file__ or "").read_text()
    used = set(re.findall(r'"((?:gen_ai|streamnorm|error)\.[a-z_.]+)"', source))
    assert used == set(telemetry.NAMES)
    ours = {name for name, row in telemetry.NAMES.items() if row.of == "ours"}
    assert ours == {name for name in telemetry.NAMES if name.startswith("streamnorm.")}
    assert "semantic-conventions-genai" in telemetry.CONVENTIONS


async def test_nothing_is_told_under_a_name_that_is_not_in_the_table() -> None:
    kit = Kit()
    for path in sorted(RECORDINGS.glob("openai_*/*.sse")):
        await all_of(kit.telemetry.observe(replay(path), model="m"))
    ran = [ToolStarted(0, "c", "pay", "x"), ToolEnded(0, "c", "pay", "x", "error", 1.0)]
    await all_of(kit.telemetry.observe(told(*ran)))
    for span in kit.spans:
        assert set(span.attributes) <= set(telemetry.NAMES)
        assert {event.name for event in span.events} <= set(telemetry.NAMES)
    for name, row in telemetry.NAMES.items():
        if row.kind in ("histogram", "counter"):
            points = kit.points(name)
            assert points, name
            assert all(set(tags) <= set(telemetry.NAMES) for tags, _ in points)


async def test_the_time_between_chunks_is_told_for_each_after_the_first() -> None:
    kit = Kit()
    said = [TextDelta("a"), TextDelta("b"), ToolCallDelta(0, "{"), Media(0, "audio/pcm", b"x")]
    await all_of(kit.telemetry.observe(told(StreamStart("gemini"), *said, Finish("stop"))))
    ((_, (count, seconds)),) = kit.points("gen_ai.client.operation.time_per_output_chunk")
    assert (count, seconds) == (3, 3.0)


async def test_what_was_written_to_a_cache_has_its_name_of_today() -> None:
    kit = Kit()
    usage = Usage(10, 2, cached_input=4, cache_write=6)
    await all_of(kit.telemetry.observe(told(StreamStart("anthropic"), usage, Finish("stop"))))
    facts = dict(kit.spans[0].attributes)
    assert facts["gen_ai.usage.cache_write.input_tokens"] == 6
    assert facts["gen_ai.usage.cache_read.input_tokens"] == 4


async def test_who_spoke_is_told_and_whose_call_a_tool_ran_for() -> None:
    kit = Kit()
    call = ToolCall(0, "c1", "pay", {}, "{}", agent="main/scout")
    one = [StreamStart("gemini"), TextDelta("x", agent="main"), Finish("stop")]
    two = [StreamStart("gemini"), TextDelta("x", agent="main"), call, Finish("tool_calls")]
    ran = [ToolStarted(0, "c1", "pay", "s"), ToolEnded(0, "c1", "pay", "s", "ok", 1.0)]
    await all_of(kit.telemetry.observe(told(*one, *two, *ran)))
    first, second, tool = (dict(span.attributes) for span in kit.spans)
    assert first["gen_ai.agent.name"] == "main"
    assert ("gen_ai.agent.name" in second, second["streamnorm.agents"]) == (
        False, ("main", "main/scout"),
    )  # fmt: skip
    assert tool["gen_ai.agent.name"] == "main/scout"
