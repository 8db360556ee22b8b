"""Wires that are damaged or newer than we are: a named outcome, and the other calls unharmed.

Every registered provider is asked the same questions about its take ``parallel_calls``, or, if it
calls no tools, about the one that its row names.
"""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.core.parser import Parser
from streamnorm.events import BrokenToolCall, Event, Failed, Finish, Unrecognized
from streamnorm.framing import sniff
from streamnorm.providers import PROVIDERS
from tests.conftest import (
    CALLING,
    RECORDINGS,
    SEED,
    assert_well_formed,
    broken_of,
    calls_of,
    load,
    piped,
    said,
    text_of,
    traced,
)

Json = dict[str, Any]

over_providers = pytest.mark.parametrize("provider", PROVIDERS)
over_callers = pytest.mark.parametrize("provider", CALLING)


def body_of(provider: str, take: str | None = None) -> bytes:
    take = take or ("parallel_calls" if provider in CALLING else PROVIDERS[provider].demo)
    return load(RECORDINGS / provider / f"{take}.sse")[1]


def payloads_of(provider: str) -> list[Json]:
    body = body_of(provider)
    framer = (
        PROVIDERS[provider].part("parser", Parser).framer(sniff(body[:64]) or "text", len(body))
    )
    data = [framer.read(frame).data or b"" for frame in [*framer.feed(body), *framer.rest()]]
    return [json.loads(d) for d in data if d.startswith(b"{")]


def heard(
    provider: str, payloads: list[Json], **options: Any
) -> tuple[list[Event], dict[str, int]]:
    pipe = Normalizer(provider, **{"seed": SEED, **options})
    events = [event for payload in payloads for event in pipe.feed_payload(payload)]
    events += pipe.close()
    assert_well_formed(events)
    return events, dict(pipe.notes)


def gist(events: list[Event]) -> tuple[Any, ...]:
    """What must not change: the calls, the text, the end."""
    assert isinstance(events[-1], Finish | Failed)
    return said(events), text_of(events), events[-1].kind, events[-1].reason


def unheard(events: list[Event]) -> list[str]:
    return [event.wire_kind for event in events if isinstance(event, Unrecognized)]


@over_callers
def test_the_take_that_is_damaged_here_has_several_calls_and_ends_well(provider: str):
    events, notes = heard(provider, payloads_of(provider))
    assert len(calls_of(events)) >= 2
    assert gist(events)[2:] == ("finish", "tool_calls")
    assert "wire.kind_unknown" not in notes


# --- newer than we are ----------------------------------------------------------------------------

# Values that are the caller's own: a field more there is another argument.
ARGUMENTS = {"args", "arguments", "input"}


def with_more_fields(value: Any, key: str = "") -> Any:
    if isinstance(value, list):
        return [with_more_fields(item) for item in value]
    if isinstance(value, dict) and key not in ARGUMENTS:
        told = {k: with_more_fields(v, k) for k, v in value.items()}
        return {**told, "x_unheard": {"of": [1, None]}}
    return value


@over_providers
def test_fields_that_nobody_knows_in_every_object_change_nothing_and_are_noted(provider: str):
    payloads = payloads_of(provider)
    events, notes = heard(provider, [with_more_fields(payload) for payload in payloads])
    assert gist(events) == gist(heard(provider, payloads)[0])
    assert unheard(events) == []
    assert notes["wire.field_unknown"] >= len(payloads)


@over_providers
def test_a_payload_of_a_kind_that_nobody_knows_is_passed_on_wherever_it_comes(provider: str):
    payloads = payloads_of(provider)
    odd = {"type": "unheard.of", "event_type": "unheard.of", "x": 1}
    usual = gist(heard(provider, payloads)[0])
    for at in range(len(payloads)):
        events, notes = heard(provider, [*payloads[:at], odd, *payloads[at:]])
        assert gist(events) == usual
        assert [e.payload for e in events if isinstance(e, Unrecognized)] == [odd]
        assert notes["wire.kind_unknown"] == 1


def _item(kind: str) -> list[Json]:
    item = {"type": "teleport_call", "id": "tp_1", "call_id": "call_tp", "to": "Höfn"}
    return [{"type": f"response.output_item.{kind}", "output_index": 40, "item": item}]


def _chat(content: Any) -> list[Json]:
    return [{"choices": [{"index": 0, "delta": {"content": content}}]}]


# A call, an item, a block or a part of a type that nobody knows, and what it is passed on as.
NEWER: dict[str, tuple[list[Json], list[str]]] = {
    "anthropic": (
        [{"type": "content_block_start", "index": 40, "content_block": {"type": "teleport_use", "id": "t"}},
         {"type": "content_block_delta", "index": 40, "delta": {"type": "teleport_delta", "to": "Höfn"}},
         {"type": "content_block_stop", "index": 40}],
        ["content_block_start/teleport_use", "content_block_delta/teleport_delta"]),
    "openai_responses": (_item("added") + _item("done"), ["output_item/teleport_call"]),
    "azure_foundry": (_item("added") + _item("done"), ["output_item/teleport_call"]),
    "openai_chat": (_chat([{"type": "teleport", "to": "Höfn"}]), ["content/teleport"]),
    "mistral": (_chat([{"type": "teleport", "to": "Höfn"}]), ["content/teleport"]),
    "gemini": (
        [{"candidates": [{"index": 0, "content": {"parts": [{"teleport": {"to": "Höfn"}}]}}]}], ["teleport"]),
    "gemini_interactions": (
        [{"event_type": "step.start", "index": 40, "step": {"type": "teleport_call", "id": "t"}},
         {"event_type": "step.delta", "index": 40, "delta": {"type": "teleport_delta", "to": "Höfn"}},
         {"event_type": "step.stop", "index": 40}],
        ["step.start/teleport_call", "step.delta/teleport_delta"]),
    "mistral_conversations": (
        [{"type": "message.output.delta", "output_index": 40,
          "content": {"type": "teleport", "to": "Höfn"}}],
        ["content/teleport"]),
    "dashscope": (
        [{"output": {"choices": [{"message": {"content": [{"type": "teleport", "to": "Höfn"}]}}]}}],
        ["content/teleport"]),
    "cohere": (
        [{"type": "content-start", "index": 40,
          "delta": {"message": {"content": {"type": "teleport", "to": "Höfn"}}}}],
        ["content-start"]),
    "ollama": ([{"model": "m", "done": False, "teleport": {"to": "Höfn"}}], ["line"]),
    "bedrock": (
        [{"contentBlockStart": {"contentBlockIndex": 40, "start": {"teleport": {"to": "Höfn"}}}},
         {"contentBlockDelta": {"contentBlockIndex": 40, "delta": {"teleport": {"to": "Höfn"}}}},
         {"contentBlockStop": {"contentBlockIndex": 40}}],
        ["contentBlockStart", "contentBlockDelta"]),
    "tgi": ([{"index": 40, "teleport": {"to": "Höfn"}}], ["step"]),
}  # fmt: skip


@over_providers
def test_an_item_of_unknown_type_among_known_ones_is_named_and_harms_none(provider: str):
    odd, kinds = NEWER[provider]
    payloads = payloads_of(provider)
    usual = gist(heard(provider, payloads)[0])
    for at in range(1, len(payloads)):
        events, notes = heard(provider, [*payloads[:at], *odd, *payloads[at:]])
        assert gist(events) == usual, f"before payload {at}"
        assert unheard(events) == kinds
        assert "Höfn" in str([e.payload for e in events if isinstance(e, Unrecognized)])
        assert notes["wire.kind_unknown"] == len(kinds)


# --- damaged in the middle ------------------------------------------------------------------------


def frames_of(provider: str, body: bytes) -> list[bytes]:
    """A body, frame by frame, with all that belongs to each."""
    if provider == "bedrock":
        return _aws_frames(body)
    if provider == "ollama":
        return body.splitlines(keepends=True)
    lines = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    return [part + lines for part in body.split(lines) if part]


def _aws_frames(body: bytes) -> list[bytes]:
    frames, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        frames.append(body[at : at + size])
        at += size
    return frames


def not_json(provider: str, frame: bytes) -> bytes:
    """A frame whose payload is no JSON."""
    return b'{"half": \n' if provider == "ollama" else b'data: {"half": \n\n'


TEXTUAL = [name for name in PROVIDERS if name != "bedrock"]


@pytest.mark.parametrize("provider", TEXTUAL)
def test_an_event_that_is_no_json_fails_the_stream_and_keeps_what_was_told(provider: str):
    frames = frames_of(provider, body_of(provider))
    for at in range(1, len(frames)):
        bad = b"".join([*frames[:at], not_json(provider, frames[at]), *frames[at:]])
        before, _ = piped(provider, [b"".join(frames[:at])])
        events, _ = traced(provider, bad)
        if isinstance(before[-1], Finish):
            continue  # what follows the end is not looked at
        assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
        assert "not JSON" in events[-1].error
        assert said(events) == said(before)
        assert [b.call for b in broken_of(events)] == [b.call for b in broken_of(before)]


@pytest.mark.parametrize("provider", TEXTUAL)
def test_an_event_that_is_no_json_can_be_skipped_and_breaks_only_what_was_open(provider: str):
    frames = frames_of(provider, body_of(provider))
    whole, _ = piped(provider, [b"".join(frames)])
    wanted = {call.call: call.arguments for call in calls_of(whole)}
    for at in range(1, len(frames)):
        bad = b"".join([*frames[:at], not_json(provider, frames[at]), *frames[at:]])
        events, pipe = piped(provider, [bad], on_bad_event="skip")
        assert_well_formed(events)
        assert events[-1].kind == "finish"
        ended = {c.call: c.arguments for c in calls_of(events)}
        assert ended.items() <= wanted.items()
        lost = [e for e in events if isinstance(e, BrokenToolCall)]
        assert {b.reason for b in lost} <= {"conflict"}
        if pipe.notes["wire.bad_event_skipped"]:
            assert len(ended) + len(lost) == len(wanted)


@pytest.mark.parametrize("frame", range(18))
def test_a_wrong_checksum_fails_the_stream_at_its_frame(frame: int):
    frames = frames_of("bedrock", body_of("bedrock"))
    assert len(frames) == 18
    before, _ = piped("bedrock", [b"".join(frames[:frame])])
    for at in (9, len(frames[frame]) // 2, len(frames[frame]) - 1):  # prelude, payload, checksum
        bad = bytearray(frames[frame])
        bad[at] ^= 0x20
        events, _ = traced("bedrock", b"".join([*frames[:frame], bytes(bad), *frames[frame + 1 :]]))
        assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
        assert "checksum" in events[-1].error
        assert said(events) == said(before)


def test_a_frame_that_is_cut_truncates_the_stream_wherever_the_cut_falls():
    body = body_of("bedrock")
    frames = frames_of("bedrock", body)
    edges = [0, *accumulate(map(len, frames))]
    stop = next(i for i, f in enumerate(frames) if b"messageStop" in f)
    for number, (start, end) in enumerate(pairwise(edges)):
        whole, _ = piped("bedrock", [body[:start]])
        for at in (start + 1, start + 7, start + 12, (start + end) // 2, end - 1):
            events, pipe = piped("bedrock", [body[:at]])
            assert_well_formed(events)
            assert said(events) == said(whole)
            assert pipe.notes["stream.cut_event"] == 1
            if number <= stop:
                assert events[-1].kind == "failed"
                # Before the first event there is no telling whether it is this wire at all.
                assert events[-1].reason in ({"truncated"} if number else {"truncated", "protocol"})


@pytest.mark.parametrize("line", range(5))
def test_a_broken_line_among_lines_fails_the_stream_and_keeps_the_calls_before_it(line: int):
    lines = body_of("ollama").splitlines(keepends=True)
    assert len(lines) == 5
    before, _ = piped("ollama", [b"".join(lines[:line])])
    broken = lines[line][: len(lines[line]) // 2] + b"\n"
    events, _ = traced("ollama", b"".join([*lines[:line], broken, *lines[line + 1 :]]))
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
    assert said(events) == said(before)


def test_an_array_that_never_closes_but_has_finished_is_whole():
    body = body_of("gemini", "json_array_body")
    assert body.rstrip().endswith(b"]")
    usual, _ = piped("gemini", [body])
    events, _ = traced("gemini", body.rstrip().removesuffix(b"]"))
    assert gist(events) == gist(usual)


def test_an_array_that_never_closes_and_never_finishes_is_truncated():
    body = body_of("gemini", "json_array_body")
    last = body.rindex(b'"finishReason"')
    events, _ = traced("gemini", body[: body.rindex(b"}", 0, body.rindex(b"{", 0, last))])
    assert (events[-1].kind, events[-1].reason) == ("failed", "truncated")


@over_providers
def test_a_stream_that_ends_anywhere_tells_no_call_that_the_whole_stream_does_not(provider: str):
    body = body_of(provider)
    whole, _ = piped(provider, [body])
    wanted = {call.call: (call.name, call.arguments) for call in calls_of(whole)}
    for at in range(0, len(body), 7):
        events, _ = piped(provider, [body[:at]])
        assert_well_formed(events)
        assert {c.call: (c.name, c.arguments) for c in calls_of(events)}.items() <= wanted.items()
