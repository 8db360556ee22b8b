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
from streamnorm.wire import provider
from tests.conftest import load, over_takes, run, take_paths

SERVED = ["openai_chat", "openai_responses", "anthropic", "gemini"]
# Reasons that a wire has no word for, and what is nearest.
NEAREST = {
    ("openai_chat", "pause"): "stop",
    ("openai_chat", "refusal"): "content_filter",
    ("openai_responses", "refusal"): "content_filter",
    ("anthropic", "content_filter"): "refusal",
    ("openai_chat", "other"): "stop",
    ("anthropic", "other"): "stop",
    ("gemini", "pause"): "stop",
    ("gemini", "refusal"): "content_filter",
    ("gemini", "other"): "stop",
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


@over_takes(quick=100)
def test_a_client_reads_the_calls_that_we_heard(path):
    for target in SERVED:
        assert_served(target, events_of(path))


def assert_served(target: str, events: list[Event]) -> None:
    heard = read(target, events, whole=True)
    end, served_end = events[-1], heard[-1]
    assert calls(heard).items() <= calls(events).items(), "never a call that was not whole"
    if isinstance(end, Failed) or broke(events):
        assert isinstance(served_end, Failed)
        return
    assert isinstance(end, Finish)
    assert calls(heard) == calls(events)
    assert text(heard) == text(events)
    assert isinstance(served_end, Finish)
    assert served_end.reason in (end.reason, NEAREST.get((target, end.reason)))


@over_takes(quick=100)
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


@pytest.mark.parametrize("target", SERVED[:3])  # the last one tells calls as a whole
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
    with pytest.raises(EncodeError, match="anthropic, openai_responses, openai_chat, gemini"):
        provider("cohere").serve([])


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
            if b'"custom"' not in chunk:  # the wire streams them, and the SDK has no type for that
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


# --- one id, one answer, no call that was not whole -------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")  # pydantic, about items that are no items of its
def test_the_sdk_of_openai_gathers_our_items_under_one_id_each():
    """Its accumulator raises if an item's id changes, or if one is never done."""
    lib = pytest.importorskip("openai.lib.streaming.responses._responses")
    models = pytest.importorskip("openai._models")
    kinds: Any = pytest.importorskip("openai.types.responses").ResponseStreamEvent
    omit = pytest.importorskip("openai").omit
    for _, events in good_ones():
        for whole in (True, False):
            state = lib.ResponseStreamState(input_tools=omit, text_format=omit)
            for payload in _payloads(provider("openai_responses").serve(events, whole=whole)):
                said = models.construct_type_unchecked(type_=kinds, value=json.loads(payload))
                state.handle_event(said)


def items_of(events: list[Event]) -> dict[int, set[str]]:
    """The ids under which the items of our Responses are told, by their place."""
    ids: dict[int, set[str]] = {}
    for data in _payloads(provider("openai_responses").serve(events)):
        said = json.loads(data)
        if "output_index" in said:
            id = said["item"]["id"] if "item" in said else said["item_id"]
            ids.setdefault(said["output_index"], set()).add(id)
    return ids


THOUGHT = {"type": "reasoning", "id": "rs_own", "encrypted_content": "x",
           "summary": [{"type": "summary_text", "text": "Hm"}]}  # fmt: skip


@pytest.mark.parametrize(
    ("rest", "ids"),
    [
        ([ReasoningDelta("", 0, 0, THOUGHT)], {"rs_own"}),
        ([TextDelta("Hi", 1)], {"rs_0"}),
        ([ToolCallStart(0, "call_1", "f"), ToolCall(0, "call_1", "f", {}, "{}")], {"rs_0"}),
        ([], {"rs_0"}),
    ],
    ids=["its item", "a text", "a call", "the end"],
)
def test_reasoning_of_responses_own_has_the_id_of_its_item_from_the_beginning(rest, ids):
    events: list[Event] = [
        StreamStart("openai_responses", "m", "r1"), ReasoningDelta("H", 0), ReasoningDelta("m", 0),
        *rest, Finish("stop"),
    ]  # fmt: skip
    told = items_of(events)
    assert told[0] == ids
    assert all(len(each) == 1 for each in told.values())
    heard = read("openai_responses", events)
    assert "".join(e.text for e in heard if isinstance(e, ReasoningDelta)) == "Hm"


@pytest.mark.parametrize("target", SERVED)
@pytest.mark.parametrize("whole", [True, False])
def test_another_answer_does_not_leak(target: str, whole: bool):
    events: list[Event] = [
        StreamStart("openai_chat", "m", "r1"), TextDelta("Hi"), TextDelta("EVIL", 0, 1),
        ToolCallStart(0, "call_1", "f"), ToolCallDelta(0, "{}"),
        ToolCallStart(1, "call_2", "evil"), ToolCallDelta(1, '{"evil":1}'),
        ToolCall(0, "call_1", "f", {}, "{}"),
        ToolCall(1, "call_2", "evil", {"evil": 1}, '{"evil":1}', choice=1), Finish("tool_calls"),
    ]  # fmt: skip
    served = b"".join(provider(target).serve(events, whole=whole))
    assert b"evil" not in served.lower()
    heard = run(target, [served])
    assert (calls(heard), heard[-1].kind) == ({"call_1": ("f", {})}, "finish")


@pytest.mark.parametrize("target", SERVED)
def test_a_call_of_another_answer_that_was_begun_before_any_was_known_fails_the_stream(target: str):
    events: list[Event] = [
        StreamStart("openai_chat", "m", "r1"), ToolCallStart(0, "call_1", "f"),
        ToolCallDelta(0, "{}"), ToolCall(0, "call_1", "f", {}, "{}", choice=1), Finish("tool_calls"),
    ]  # fmt: skip
    heard = read(target, events)
    assert (calls(heard), heard[-1].kind) == ({}, "failed")
    heard = read(target, events, whole=True)
    assert (calls(heard), heard[-1].kind) == ({}, "finish")


@pytest.mark.parametrize("target", SERVED)
@pytest.mark.parametrize("others", [True, False])
def test_a_broken_call_without_a_name_never_becomes_a_turn_that_calls_tools(target, others: bool):
    whole: list[Event] = [
        ToolCallStart(1, "call_1", "f"), ToolCall(1, "call_1", "f", {}, "{}"),
    ]  # fmt: skip
    nameless = BrokenToolCall(
        0, "syn_x", "", '{"a":1}', "conflict", "the wire never named this call"
    )
    events = [StreamStart("openai_chat", "m", "r1"), *(whole if others else []), nameless]
    heard = read(target, [*events, Finish("tool_calls", "tool_calls")])
    assert heard[-1].kind == "failed"


@pytest.mark.parametrize(
    ("target", "reason"),
    [("openai_chat", "tool_calls"), ("anthropic", "tool_calls"), ("openai_responses", "other")],
)
def test_an_end_that_is_not_normal_is_served_as_what_is_nearest(target: str, reason: str):
    call = [ToolCallStart(0, "call_1", "f"), ToolCall(0, "call_1", "f", {}, "{}")]
    heard = read(target, [StreamStart("gemini", "m", "r1"), *call, Finish("other", "WAT")])
    assert calls(heard) == {"call_1": ("f", {})}
    assert (heard[-1].kind, heard[-1].reason) == ("finish", reason)  # type: ignore[union-attr]


@pytest.mark.parametrize("target", ["openai_chat", "anthropic"])
def test_a_word_of_the_wires_own_is_served_as_it_came(target: str):
    events = [StreamStart(target, "m", "r1"), TextDelta("Hi"), Finish("other", "wat")]
    end = read(target, events)[-1]
    assert (end.kind, end.reason, end.raw_reason) == ("finish", "other", "wat")  # type: ignore[union-attr]
