"""Events pass through; OpenTelemetry spans and metrics go out, by the GenAI conventions.

    async for event in observe(normalize(response), model="claude-sonnet-4-5"): ...

Rule: watching changes nothing. Every event passes as it came and when it came, closing passes
through, and no context is left bound while the reader has control. Counts, kinds and ids of
responses are told; never a word of what was said, no argument, no tool's name in a metric (a model
can be talked into any).

A stream is one span; a tool loop tells several, one after the other, and one for each tool that it
ran (``execute_tool``). ``NAMES`` is every name that is told, ``CONVENTIONS`` whose they are. The extra
is ``otel``.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from .errors import needs
from .events import (
    BrokenToolCall,
    Failed,
    Finish,
    Media,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolEnded,
    ToolStarted,
    Usage,
)
from .providers import PROVIDERS

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["Observed", "Telemetry", "observe"]

T = TypeVar("T")

SCOPE = "streamnorm"
FIRST = (
    TextDelta,
    ReasoningDelta,
    Media,
    ToolCallStart,
    ToolCall,
)  # what counts as the first chunk
PIECES = (TextDelta, ReasoningDelta, Media, ToolCallDelta)  # … and what as one after it

# --- names ----------------------------------------------------------------------------------------

# Whose names these are. The conventions of GenAI have a repository of their own and no release yet;
# all of it is in development there.
CONVENTIONS = "semantic-conventions-genai at 066d4a7, on semantic-conventions 1.44.0"


class Name(NamedTuple):
    """A name that is told. ``of``: of the conventions, or our own where they have none."""

    of: Literal["conventions", "ours"]
    kind: Literal["attribute", "histogram", "counter", "event"] = "attribute"
    unit: str = ""
    text: str = ""
    buckets: tuple[float, ...] = ()  # those that the conventions advise


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (
    1,
    4,
    16,
    64,
    256,
    1024,
    4096,
    16384,
    65536,
    262144,
    1048576,
    4194304,
    16777216,
    67108864,
)


def _seconds(text: str) -> Name:
    return Name("conventions", "histogram", "s", text, _SECONDS)


NAMES: dict[str, Name] = {
    **dict.fromkeys(
        (
            "error.type",
            "gen_ai.agent.name",
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.request.stream",
            "gen_ai.response.finish_reasons",
            "gen_ai.response.id",
            "gen_ai.response.model",
            "gen_ai.response.time_to_first_chunk",
            "gen_ai.token.type",
            "gen_ai.tool.call.id",
            "gen_ai.tool.name",
            "gen_ai.tool.type",
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.reasoning.output_tokens",
        ),
        Name("conventions"),
    ),
    "gen_ai.client.operation.duration": _seconds("GenAI operation duration."),
    "gen_ai.client.operation.time_to_first_chunk": _seconds("Time to the first chunk."),
    "gen_ai.client.operation.time_per_output_chunk": _seconds("Time between two chunks."),
    "gen_ai.execute_tool.duration": _seconds("Duration of a tool's execution."),
    "gen_ai.client.token.usage": Name(
        "conventions", "histogram", "{token}", "Number of input and output tokens used.", _TOKENS
    ),
    **dict.fromkeys(
        (
            "streamnorm.agents",  # where several speak
            "streamnorm.checksum",
            "streamnorm.error.code",
            "streamnorm.id_source",
            "streamnorm.note",
            "streamnorm.outcome",
            "streamnorm.reason",
            "streamnorm.runs_on",
        ),
        Name("ours"),
    ),
    "streamnorm.broken_tool_call": Name("ours", "event"),
    "streamnorm.tool_calls": Name(
        "ours", "counter", "{call}", "Tool calls by outcome and by where their id came from."
    ),
    "streamnorm.notes": Name("ours", "counter", "{note}", "Tolerances by name."),  # and of a span
}
_USAGE = {
    "gen_ai.usage.input_tokens": "input",
    "gen_ai.usage.output_tokens": "output",
    "gen_ai.usage.cache_read.input_tokens": "cached_input",
    "gen_ai.usage.cache_write.input_tokens": "cache_write",
    "gen_ai.usage.reasoning.output_tokens": "reasoning",
}


# What a loop tells between streams.
BETWEEN = {"tool_started", "tool_ended", "settled", "result", "approval", "denied"}


class Telemetry:
    """Instruments, made once and used for any number of streams.

    ::

        telemetry = Telemetry()                        # the global providers, or those given
        async for event in telemetry.observe(stream): ...
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        needs("opentelemetry.trace", "telemetry", extra="otel")
        from opentelemetry import metrics, trace

        self._trace = trace
        self.clock = clock
        self.tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self.histograms = {
            name: meter.create_histogram(
                name, row.unit, row.text, explicit_bucket_boundaries_advisory=row.buckets
            )
            for name, row in NAMES.items() if row.kind == "histogram"
        }  # fmt: skip
        self.counters = {
            name: meter.create_counter(name, row.unit, row.text)
            for name, row in NAMES.items() if row.kind == "counter"
        }  # fmt: skip

    def observe(
        self,
        events: AsyncIterable[T],
        *,
        model: str | None = None,
        operation: str = "chat",
        attributes: Mapping[str, Any] | None = None,
    ) -> Observed[T]:
        """The same events, watched. ``model`` is what was asked for; ``attributes`` are added."""
        return Observed(events, self, model, operation, dict(attributes or {}))

    def begin(self, name: str, attributes: dict[str, Any], *, internal: int | None = None) -> Any:
        """A span below the one that is current here; it is never made current itself.

        ``internal``: it is of this process, and began at that time.
        """
        kinds = self._trace.SpanKind
        kind = kinds.CLIENT if internal is None else kinds.INTERNAL
        return self.tracer.start_span(name, kind=kind, attributes=attributes, start_time=internal)

    def error(self, what: str) -> Any:
        """The status of a span that failed."""
        return self._trace.Status(self._trace.StatusCode.ERROR, what)


def observe(events: AsyncIterable[T], **options: Any) -> Observed[T]:
    """These events, watched with the global OpenTelemetry providers; see ``Telemetry``."""
    telemetry = Telemetry()
    return telemetry.observe(events, **options)


class Observed(Generic[T]):
    """Events on their way through: an async iterator and context manager."""

    def __init__(
        self,
        events: AsyncIterable[T],
        telemetry: Telemetry,
        model: str | None,
        operation: str,
        attributes: dict[str, Any],
    ) -> None:
        self.stream = events
        self._iterator: Any = None
        self._telemetry = telemetry
        self._model, self._operation, self._more = model, operation, attributes
        self._step: _Step | None = None
        self._tools: dict[str, _Tool] = {}  # that run now, by the ids of their calls
        self._callers: dict[str, str] = {}  # who made a call, where several do
        self._noted: dict[str, int] = {}

    def __aiter__(self) -> Observed[T]:
        return self

    async def __anext__(self) -> T:
        if self._iterator is None:
            self._iterator = aiter(self.stream)
            self._open()
        try:
            event: T = await anext(self._iterator)
        except StopAsyncIteration:
            self._close("truncated")
            raise
        except BaseException as error:
            self._close(type(error).__name__)
            raise
        self._hear(event)
        return event

    async def __aenter__(self) -> Observed[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what is watched. A span that is open ends as cancelled."""
        self._close("cancelled")
        close = getattr(self._iterator or self.stream, "aclose", None)
        if close is not None:
            await close()

    def __del__(self) -> None:
        if getattr(self, "_step", None) is not None or getattr(self, "_tools", None):
            self._close("cancelled")

    def _open(self) -> None:
        self._step = _Step(self._telemetry, self._model, self._operation, self._more)

    def _hear(self, event: Any) -> None:
        if isinstance(event, ToolStarted):
            caller = self._callers.pop(event.id, None)
            self._tools[event.id] = _Tool(self._telemetry, event, caller, self._more)
        elif isinstance(event, ToolCall) and event.agent is not None:
            self._callers[event.id] = event.agent
        elif isinstance(event, ToolEnded) and event.id in self._tools:
            self._tools.pop(event.id).close(event.outcome, event.seconds)
        if getattr(event, "kind", "") in BETWEEN:
            if self._step is not None and not self._step.heard:
                self._step = None  # nothing was asked yet: the run took up what waited
            return
        if isinstance(event, StreamStart) and self._step is None:
            self._open()  # the next turn of a loop
        if self._step is not None:
            self._step.hear(event)
            if isinstance(event, Finish | Failed):
                self._close(None)

    def _close(self, why: str | None) -> None:
        """The end of a step. ``why``: it ended without saying so."""
        if why is not None:
            for tool in self._tools.values():
                tool.close("cancelled", None)
            self._tools = {}
        step, self._step = self._step, None
        if step is not None and (why is None or step.heard):
            step.close(why, self._notes())

    def _notes(self) -> dict[str, int]:
        """What was noted since the last time."""
        notes = dict(getattr(self.stream, "notes", None) or {})
        news = {name: n - self._noted.get(name, 0) for name, n in notes.items()}
        self._noted = notes
        return {name: n for name, n in news.items() if n > 0}


class _Tool:
    """One tool that a loop runs: its span. Its end may be heard late, so it ends after its time."""

    def __init__(
        self, telemetry: Telemetry, event: ToolStarted, caller: str | None, more: dict[str, Any]
    ) -> None:
        self._telemetry = telemetry
        self._tags: dict[str, Any] = {"gen_ai.operation.name": "execute_tool"}
        about = {
            "gen_ai.tool.name": event.name, "gen_ai.tool.call.id": event.id,
            "gen_ai.tool.type": "function", "streamnorm.checksum": event.checksum,
        }  # fmt: skip
        if caller is not None:
            about["gen_ai.agent.name"] = caller
        self._began = time.time_ns()
        self._span = telemetry.begin(
            f"execute_tool {event.name}", {**self._tags, **about, **more}, internal=self._began
        )

    def close(self, outcome: str, seconds: float | None) -> None:
        if outcome != "ok":
            self._tags["error.type"] = outcome
            self._span.set_attribute("error.type", outcome)
            self._span.set_status(self._telemetry.error(outcome))
        if seconds is not None:
            self._telemetry.histograms["gen_ai.execute_tool.duration"].record(seconds, self._tags)
        self._span.end(None if seconds is None else self._began + round(seconds * 1e9))


class _Step:
    """One stream: its span and its numbers."""

    def __init__(
        self, telemetry: Telemetry, model: str | None, operation: str, more: dict[str, Any]
    ) -> None:
        self._telemetry, self._operation = telemetry, operation
        self._began = telemetry.clock()
        self._tags: dict[str, Any] = {"gen_ai.operation.name": operation}
        if model is not None:
            self._tags["gen_ai.request.model"] = model
        name = f"{operation} {model}" if model else operation
        self._span = telemetry.begin(name, {**self._tags, "gen_ai.request.stream": True, **more})
        self._last: float | None = None  # when the last chunk came
        self._agents: dict[str, None] = {}  # who spoke, where several do
        self.heard = False

    def hear(self, event: Any) -> None:
        self.heard = True
        if self._last is None:
            if isinstance(event, FIRST):
                self._first()
        elif isinstance(event, PIECES):
            self._next()
        if (agent := getattr(event, "agent", None)) is not None:
            self._agents[agent] = None
        handler = _HEARD.get(type(event))
        if handler is not None:
            handler(self, event)

    def close(self, why: str | None, notes: dict[str, int]) -> None:
        if why is not None:
            self._fail(why)
        for name, count in notes.items():
            self._telemetry.counters["streamnorm.notes"].add(
                count, {**self._tags, "streamnorm.note": name}
            )
        if notes:
            self._span.set_attribute("streamnorm.notes", sorted(notes))
        if len(self._agents) == 1:
            self._span.set_attribute("gen_ai.agent.name", next(iter(self._agents)))
        elif self._agents:
            self._span.set_attribute("streamnorm.agents", list(self._agents))
        self._record("gen_ai.client.operation.duration", self._telemetry.clock() - self._began)
        self._span.end()

    def _first(self) -> None:
        self._last = self._telemetry.clock()
        took = self._last - self._began
        self._record("gen_ai.client.operation.time_to_first_chunk", took)
        self._span.set_attribute("gen_ai.response.time_to_first_chunk", took)

    def _next(self) -> None:
        before, self._last = self._last or self._began, self._telemetry.clock()
        self._record("gen_ai.client.operation.time_per_output_chunk", self._last - before)

    def _start(self, event: StreamStart) -> None:
        row = PROVIDERS.get(event.provider)
        provider = row.convention if row else event.provider
        self._tags["gen_ai.provider.name"] = provider
        self._span.set_attribute("gen_ai.provider.name", provider)
        if event.model is not None:
            self._tags["gen_ai.response.model"] = event.model
            self._span.set_attribute("gen_ai.response.model", event.model)
            if "gen_ai.request.model" not in self._tags:
                self._span.update_name(f"{self._operation} {event.model}")
        if event.response_id is not None:
            self._span.set_attribute("gen_ai.response.id", event.response_id)

    def _call(self, event: ToolCall) -> None:
        self._count("whole", event)

    def _broken(self, event: BrokenToolCall) -> None:
        self._count(event.reason, event)
        self._span.add_event(
            "streamnorm.broken_tool_call",
            {"streamnorm.reason": event.reason, "gen_ai.tool.call.id": event.id},
        )

    def _count(self, outcome: str, event: ToolCall | BrokenToolCall) -> None:
        tags = {
            "streamnorm.outcome": outcome,
            "streamnorm.id_source": event.provenance.id_source,
            "streamnorm.runs_on": event.runs_on,
        }
        self._telemetry.counters["streamnorm.tool_calls"].add(1, {**self._tags, **tags})

    def _usage(self, event: Usage) -> None:
        for attribute, field in _USAGE.items():
            if (count := getattr(event, field)) is not None:
                self._span.set_attribute(attribute, count)
        for kind, tokens in (("input", event.input), ("output", event.output)):
            if tokens is not None:
                self._record("gen_ai.client.token.usage", tokens, {"gen_ai.token.type": kind})

    def _finish(self, event: Finish) -> None:
        self._span.set_attribute("gen_ai.response.finish_reasons", [event.reason])

    def _failed(self, event: Failed) -> None:
        self._fail(event.reason)
        if event.code is not None:
            self._span.set_attribute("streamnorm.error.code", event.code)

    def _fail(self, why: str) -> None:
        self._tags["error.type"] = why
        self._span.set_attribute("error.type", why)
        self._span.set_status(self._telemetry.error(why))

    def _record(self, name: str, value: float, more: dict[str, Any] | None = None) -> None:
        self._telemetry.histograms[name].record(value, {**self._tags, **(more or {})})


_HEARD: dict[type, Callable[[_Step, Any], None]] = {
    StreamStart: _Step._start,
    ToolCall: _Step._call,
    BrokenToolCall: _Step._broken,
    Usage: _Step._usage,
    Finish: _Step._finish,
    Failed: _Step._failed,
}
