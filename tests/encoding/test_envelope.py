"""What another provider wants back, kept by the client: it comes back as it was, or not at all."""

from __future__ import annotations

import base64
import itertools
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import (
    Event,
    Finish,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallStart,
    Turn,
    read_request,
)
from streamnorm.conversation import Reasoning, Text
from streamnorm.encoding.envelope import PREFIX, SIZE, Envelope, opened, restored, sealed
from streamnorm.wire import provider
from tests.conftest import load, over_takes, run

KEEPING = ["anthropic", "openai_responses"]
SIGNED = {"thoughtSignature": "c2lnbmVk"}
CALL: list[Event] = [
    ToolCallStart(0, "call_1", "pay"), ToolCall(0, "call_1", "pay", {}, "{}"), Finish("tool_calls"),
]  # fmt: skip


def back(target: str, events: list[Event], **options: Any) -> Turn:
    """The turn that a client of this wire has after it heard these events."""
    served = provider(target).serve(events, **{"seal": True, "release": "end", **options})
    return Turn.from_events(run(target, [b"".join(served)]))


def said(turn: Turn) -> list[Text | Reasoning]:
    """Texts and thoughts without citations, which nobody is served."""
    return [
        Text(p.text, p.echoes, (), p.marks) if isinstance(p, Text) else p
        for p in turn.parts
        if isinstance(p, Text | Reasoning)
    ]


# --- there and back -------------------------------------------------------------------------------


@over_takes(quick=150)
def test_a_turn_comes_back_as_its_provider_said_it(path: Path):
    take, wire = load(path)
    events = run(take.provider or path.parent.name, [wire])
    turn = Turn.from_events(events)
    for target in KEEPING:
        kept = back(target, events)
        if kept.finish in ("truncated", "protocol", "provider_error") or not _can_come_back(
            turn, target
        ):
            continue
        parts, again = expected(turn, target), restored(kept)
        if any(part.echoes or isinstance(part, Reasoning) for part in parts):
            assert said(again) == parts
            assert (again.provider, again.model) == (turn.provider, turn.model)
        else:
            assert again == kept


def _can_come_back(turn: Turn, target: str) -> bool:
    """A wire's own needs no envelope, and only Responses tells agents apart."""
    agents = {getattr(part, "agent", None) for part in turn.parts}
    return turn.provider != target and agents <= {None}


def expected(turn: Turn, target: str) -> list[Text | Reasoning]:
    """All of it; but the texts that a message of Anthropic's ends with bring no echo."""
    parts = said(turn)
    if target == "anthropic":
        last = [*itertools.takewhile(lambda part: isinstance(part, Text), reversed(turn.parts))]
        bare = [Text(part.text) for part in reversed(last) if isinstance(part, Text) and part.text]
        return [*parts[: len(parts) - len(last)], *bare]
    return parts


@pytest.mark.parametrize("target", KEEPING)
def test_reasoning_without_an_echo_still_says_whose_it_is(target: str):
    events = [StreamStart("openai_chat", "deep", "r1"), ReasoningDelta("Hm."), *CALL]
    again = restored(back(target, events))
    assert (again.provider, again.model) == ("openai_chat", "deep")
    assert again.parts[0] == Reasoning("Hm.")


@pytest.mark.parametrize("target", KEEPING)
def test_echoes_come_back_where_they_stood(target: str):
    events = [
        StreamStart("gemini", "m", "r1"), ReasoningDelta("Let me ", 0), ReasoningDelta("see.", 0, 0, SIGNED),
        TextDelta("Paying", 1), TextDelta("", 1, 0, {"thoughtSignature": "b3RoZXI"}), *CALL,
    ]  # fmt: skip
    again = restored(back(target, events))
    assert again.parts[:2] == (
        Reasoning("Let me see.", (SIGNED,), (7,)),
        Text("Paying", ({"thoughtSignature": "b3RoZXI"},), (), (6,)),
    )
    assert again.calls[0].id == "call_1"


@pytest.mark.parametrize("target", KEEPING)
def test_an_echo_that_comes_without_a_text_is_of_no_text_before_it(target: str):
    events = [
        StreamStart("gemini", "m", "r1"), TextDelta("Hi", 0), TextDelta("", 1, 0, SIGNED), *CALL,
    ]  # fmt: skip
    again = restored(back(target, events))
    assert again.parts[:2] == (Text("Hi"), Text("", (SIGNED,), (), (0,)))


def test_a_message_never_ends_with_what_only_we_can_read():
    events = [StreamStart("gemini", "m", "r1"), TextDelta("Hi", 0, 0, SIGNED), Finish("stop")]
    _, body = provider("anthropic").server(seal=True).answer(events)
    assert body["content"] == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize("target", KEEPING)
def test_nothing_is_sealed_unless_that_is_wanted_nor_of_the_wires_own(target: str):
    thought = [ReasoningDelta("Hm.", 0, 0, SIGNED), TextDelta("Hi", 1, 0, SIGNED), *CALL]
    served = b"".join(provider(target).serve([StreamStart("gemini", "m", "r1"), *thought]))
    assert PREFIX.encode() not in served
    own = b"".join(provider(target).serve([StreamStart(target, "m", "r1"), *thought], seal=True))
    assert PREFIX.encode() not in own


@pytest.mark.parametrize("target", KEEPING)
def test_a_provider_gets_its_signatures_back_from_a_client_that_speaks_otherwise(target: str):
    events = [
        StreamStart("gemini", "m", "r1"), ReasoningDelta("Let me see.", 0), TextDelta("Paying", 1, 0, SIGNED),
        *CALL,
    ]  # fmt: skip
    _, answer = provider(target).server(seal=True).answer(events)
    body = {
        "anthropic": {
            "messages": [
                {"role": "user", "content": "Pay."},
                {"role": "assistant", "content": answer.get("content")},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "done"}]},
            ],
        },
        "openai_responses": {
            "input": [
                {"role": "user", "content": "Pay."}, *answer.get("output", ()),
                {"type": "function_call_output", "call_id": "call_1", "output": "done"},
            ],
        },
    }[target]  # fmt: skip
    turns = [restored(turn) for turn in read_request(target, body).conversation]
    said = provider("gemini").request(turns)["contents"][1]
    assert said["parts"][:2] == [
        {"thought": True, "text": "Let me see."}, {"text": "Paying", **SIGNED},
    ]  # fmt: skip
    assert said["parts"][2]["functionCall"]["name"] == "pay"


# --- what is not ours -----------------------------------------------------------------------------


def test_a_turn_without_an_envelope_stays_as_it_is():
    turn = Turn(
        "assistant", (Reasoning("Hm.", ({"type": "thinking", "signature": "EqQB"},)),), "anthropic"
    )
    assert restored(turn) is turn


def test_echoes_of_others_never_go_to_the_provider_of_the_turn():
    ours, others = sealed("gemini", "m", [SIGNED], [0]), sealed("cohere", "c", [{"plan": "x"}], [0])
    turn = Turn(
        "assistant",
        (
            Reasoning("a", ({"type": "thinking", "signature": "EqQB"},), (0,)),
            Reasoning("b", ({"type": "thinking", "signature": others},), (0,)),
            Reasoning("", ({"type": "redacted_thinking", "data": others},), (0,)),
            Text("c", ({"type": "message", "id": "msg_1"},), ({"url": "x"},), (0,)),
            Reasoning("d", ({"type": "thinking", "signature": ours},), (0,)),
        ),
        "anthropic", "claude", "msg_1", echo={"container": {"id": "c1"}},
    )  # fmt: skip
    assert restored(turn) == Turn(
        "assistant", (Reasoning("a"), Reasoning("b"), Text("c"), Reasoning("d", (SIGNED,), (0,))),
        "gemini", "m",
    )  # fmt: skip


@given(
    st.text() | st.text("ABCabc-_012=").map(lambda text: PREFIX + text) | st.none() | st.integers()
)
def test_anything_else_is_no_envelope(text: Any):
    assert opened(text) is None


@given(st.binary(max_size=200), st.integers(0, 200))
def test_a_damaged_envelope_is_none_or_says_what_it_said(noise: bytes, at: int):
    whole = sealed("gemini", "m", [SIGNED], [3], "text")
    damaged = whole[:at] + base64.urlsafe_b64encode(noise).decode() + whole[at + len(noise) :]
    assert opened(damaged) in (None, Envelope("gemini", "m", (SIGNED,), (3,), "text"))
    assert at >= len(whole) or opened(whole[:at]) is None


@pytest.mark.parametrize(
    "plain",
    [
        b'["gemini","m",[],[],"reasoning"]' + b" " * SIZE,
        b"[" * 100_000,
        b'["gemini"]',
        b'["gemini","m",[1],[],"text"]',
        b'["gemini","m",[{}],["0"],"text"]',
        b'["gemini","m",[{}],[0],"else"]',
        b'{"provider":"gemini"}',
        b'["gemini\xff","m",[],[],"text"]',
    ],
    ids=["too large", "deep", "short", "echoes", "marks", "about", "object", "utf-8"],
)
def test_an_envelope_that_somebody_else_made_is_none(plain: bytes):
    text = PREFIX + base64.urlsafe_b64encode(zlib.compress(plain, 9)).decode()
    assert opened(text) is None
    assert opened(text.rstrip("=")) is None


def test_echoes_beyond_all_measure_are_left_out():
    envelope = opened(sealed("gemini", "m", [{"thoughtSignature": "x" * SIZE}], [0]))
    assert envelope == Envelope("gemini", "m", (), (), "reasoning")
