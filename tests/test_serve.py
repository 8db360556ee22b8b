"""Streams served as another provider's: what a client of that provider would read of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from streamnorm import (
    BrokenToolCall,
    EncodeError,
    Event,
    Failed,
    Finish,
    Normalizer,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from streamnorm.wires import provider
from tests.conftest import load, over_takes, run, take_paths

SERVED = ["openai_chat", "openai_responses", "anthropic"]
# Reasons that a wire has no word for, and what is nearest.
NEAREST = {
    ("openai_chat", "pause"): "stop",
    ("openai_chat", "refusal"): "content_filter",
    ("openai_responses", "refusal"): "content_filter",
    ("anthropic", "content_filter"): "refusal",
}


@functools.cache
def events_of(path: Any) -> list[Event]:
    take, wire = load(path)
    return run(take.provider or path.parent.name, [wire])


def read(target: str, events: list[Event], **options: Any) -> list[Event]:
    """What we hear of our own serving."""
    return run(target, list(provider(target).serve(iter(events), **options)))


def calls(events: list[Event]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The calls of the first answer that a client is to run."""
    return {
        e.id: (e.name, e.arguments)
        for e in events
        if isinstance(e, ToolCall) and e.choice == 0 and e.runs_on == "client"
    }


def text(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta) and e.choice == 0)


def broke(events: list[Event]) -> bool:
    return any(isinstance(e, BrokenToolCall) for e in events)


@over_takes()
def test_a_client_reads_the_calls_that_we_heard(path):
    for target in SERVED:
        assert_served(target, events_of(path))


def assert_served(target: str, events: list[Event]) -> None:
    heard = read(target, events, whole=True)
    end, served_end = events[-1], heard[-1]
    assert calls(heard).items() <= calls(events).items(), "never a call that was not whole"
    if isinstance(end, Failed) or (broke(events) and end.reason != "length"):  # type: ignore[union-attr]
        assert isinstance(served_end, Failed)
        return
    assert isinstance(end, Finish)
    assert calls(heard) == calls(events)
    assert text(heard) == text(events)
    assert isinstance(served_end, Finish)
    assert served_end.reason in (end.reason, NEAREST.get((target, end.reason)))


@over_takes()
def test_fragments_are_passed_on_and_never_make_another_call(path):
    events = events_of(path)
    for target in SERVED:
        heard = read(target, events)
        assert calls(heard).items() <= calls(events).items()
        if isinstance(heard[-1], Finish):
            assert calls(heard) == calls(events)
            assert text(heard) == text(events)


@pytest.mark.parametrize("target", SERVED)
@pytest.mark.parametrize("whole", [True, False])
def test_a_stream_cut_anywhere_is_never_served_as_whole(target, whole):
    events = events_of(next(p for p in take_paths() if p.match("anthropic/parallel_calls.sse")))
    for length in range(len(events)):
        heard = read(target, events[:length], whole=whole)
        assert isinstance(heard[-1], Failed)
        assert calls(heard).items() <= calls(events).items()


@pytest.mark.parametrize("target", SERVED)
def test_fragments_come_as_they_are_told(target):
    def told() -> Iterator[Event]:
        yield StreamStart("gemini", "m", "r1")
        yield ToolCallStart(0, "call_1", "f")
        for piece in ('{"a', '":', "1}"):
            seen.append(piece)
            yield ToolCallDelta(0, piece)
        yield ToolCall(0, "call_1", "f", {"a": 1}, '{"a":1}')
        yield Usage(10, 5)
        yield Finish("tool_calls")

    seen: list[str] = []
    served = provider(target).serve(told())
    next(chunk for chunk in served if b'{\\"a' in chunk)
    assert seen == ['{"a'], "nothing was read ahead"
    rest = b"".join(served)
    assert b"1}" in rest


@pytest.mark.parametrize("target", SERVED)
def test_a_call_that_differs_from_its_fragments_fails_the_stream(target):
    events = [
        ToolCallStart(0, "call_1", "f"), ToolCallDelta(0, '{"a":1}'),
        ToolCall(0, "call_1", "f", {"a": 2}, '{"a":2}'), Finish("tool_calls"),
    ]  # fmt: skip
    heard = read(target, events)
    assert isinstance(heard[-1], Failed)
    assert calls(heard) == {}
    assert calls(read(target, events, whole=True)) == {"call_1": ("f", {"a": 2})}


@pytest.mark.parametrize("target", SERVED)
def test_reasoning_and_usage_are_served(target):
    events = [
        StreamStart("gemini", "m", "r1"), ReasoningDelta("Hm", 0), TextDelta("Hi", 1),
        Usage(10, 5, 2), Finish("stop"),
    ]  # fmt: skip
    heard = read(target, events)
    assert "".join(e.text for e in heard if isinstance(e, ReasoningDelta)) == "Hm"
    usage = next(e for e in heard if isinstance(e, Usage))
    assert (usage.input, usage.output) == (10, 5)
    start = heard[0]
    assert isinstance(start, StreamStart)
    assert (start.model, start.response_id) == ("m", "r1")


def test_a_provider_that_cannot_be_served_says_which_can():
    with pytest.raises(EncodeError, match="openai_chat, openai_responses or anthropic"):
        provider("gemini").serve([])


# --- official clients read it ---------------------------------------------------------------------


def good_ones() -> Iterator[tuple[str, list[Event]]]:
    """Streams that ended well, by the provider that spoke."""
    for path in take_paths():
        events = events_of(path)
        if isinstance(events[-1], Finish) and not broke(events):
            yield path.parent.name, events


def test_the_sdk_of_openai_reads_our_chunks():
    chat = pytest.importorskip("openai.types.chat")
    for _, events in good_ones():
        for chunk in _payloads(provider("openai_chat").serve(events, whole=True)):
            chat.ChatCompletionChunk.model_validate(json.loads(chunk))


@pytest.mark.parametrize(
    ("target", "types", "union"),
    [("openai_responses", "openai.types.responses", "ResponseStreamEvent"),
     ("anthropic", "anthropic.types", "RawMessageStreamEvent")],
)  # fmt: skip
def test_the_sdk_of_a_provider_reads_our_events(target, types, union):
    module = pytest.importorskip(types)
    adapter = pytest.importorskip("pydantic").TypeAdapter(getattr(module, union))
    for source, events in good_ones():
        if source != target:  # which brings items of its own, as they came
            for event in _payloads(provider(target).serve(events, whole=True)):
                adapter.validate_python(json.loads(event))


def _payloads(served: Iterator[bytes]) -> list[bytes]:
    lines = b"".join(served).split(b"\n")
    data = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    return [payload for payload in data if payload != b"[DONE]"]


def test_the_pipe_knows_what_we_serve_by_itself():
    for target in SERVED:
        pipe = Normalizer("auto")
        events = pipe.feed(b"".join(provider(target).serve([TextDelta("Hi"), Finish("stop")])))
        assert (events + pipe.close())[0].provider == target  # type: ignore[union-attr]
