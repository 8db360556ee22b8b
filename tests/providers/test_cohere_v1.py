"""Cohere's v1 chat is known and not read: whatever it comes in, its stream fails with what to ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.events import Event, Failed

NEW = [
    {"is_finished": False, "event_type": "stream-start", "generation_id": "g"},
    {"is_finished": False, "event_type": "text-generation", "text": "Hel"},
    {"is_finished": False, "event_type": "tool-calls-generation",
     "tool_calls": [{"name": "get_tides", "parameters": {"harbour": "Höfn"}}]},
    {"is_finished": True, "event_type": "stream-end", "finish_reason": "COMPLETE", "response": {}},
]  # fmt: skip
OLD = [
    {"text": "Hel", "is_finished": False},
    {"is_finished": True, "finish_reason": "COMPLETE"},
]
ENTRY = NEW[1:]  # a stream that is joined late
both = pytest.mark.parametrize("said", [NEW, OLD, ENTRY], ids=["events", "lines", "joined late"])
SAYS = Failed(
    "protocol",
    "this is Cohere's v1 chat, which is not read: ask for v2 (/v2/chat; at Amazon Bedrock, "
    "ConverseStream instead of InvokeModelWithResponseStream)",
    False,
    "v1",
)


def heard(pipe: Normalizer, body: bytes, size: int) -> list[Event]:
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    return [event for chunk in chunks for event in pipe.feed(chunk)] + pipe.close()


@both
@pytest.mark.parametrize("provider", ["auto", "cohere"])
@pytest.mark.parametrize("form", ["lines", "sse"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_it_is_told_by_its_first_event(provider: str, said: list[Any], form: str, size: int):
    form_of = {"lines": "{}\n", "sse": "data: {}\n\n"}[form]
    body = "".join(form_of.replace("{}", json.dumps(one)) for one in said).encode()
    pipe = Normalizer(provider, strict=True, seed="s")
    assert [e for e in heard(pipe, body, size) if e.kind != "stream_start"] == [SAYS]
    assert pipe.provider == "cohere"


@both
@pytest.mark.parametrize("provider", ["auto", "bedrock", "cohere"])
def test_in_the_envelope_of_bedrock_as_well(provider: str, said: list[Any]):
    pipe = Normalizer(provider, seed="s")
    payloads = [{"chunk": {"bytes": json.dumps(one).encode()}} for one in said]
    events = [event for payload in payloads for event in pipe.feed_payload(payload)]
    assert [e for e in events + pipe.close() if e.kind != "stream_start"] == [SAYS]


def test_its_fields_in_an_event_of_v2_mean_nothing():
    pipe = Normalizer("cohere", seed="s")
    content = {"message": {"content": {"text": "Hi"}}}
    said = [
        {"type": "message-start", "id": "i", "is_finished": False},
        {"type": "content-delta", "index": 0, "event_type": "x", "delta": content},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}, "is_finished": True},
    ]
    events = [event for one in said for event in pipe.feed_payload(one)] + pipe.close()
    assert [event.kind for event in events] == ["stream_start", "text_delta", "finish"]


def test_an_event_that_has_neither_a_type_nor_its_words_is_none_of_it():
    pipe = Normalizer("cohere", seed="s")
    said = [{"type": "message-start", "id": "i"}, {"text": "Hi"}]
    events = [event for one in said for event in pipe.feed_payload(one)]
    assert [event.kind for event in events] == ["stream_start", "unrecognized"]
