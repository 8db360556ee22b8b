"""``Normalizer("auto")``: whose stream this is, from its first bytes; and what is said if they do not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamnorm import Normalizer, event_to_dict
from streamnorm.events import Event, Failed
from streamnorm.framing.aws import event_frame
from streamnorm.providers import PROGRAMS, PROVIDERS
from tests.conftest import RECORDINGS, bytewise, calls_of, load, over_takes, piped, sse

# These speak another provider's wire, so that the first payload cannot tell them from it.
SPEAK = {
    "mistral": {"openai_chat"},
    "tgi": {"tgi", "openai_chat"},  # an error alone: that server words it so on both wires
    "azure_foundry": {"azure_foundry", "openai_responses", "openai_chat"},
    "bedrock": {"bedrock", "anthropic", "openai_chat", "cohere"},  # what is in its envelope
}


def without_names(events: list[Event]) -> list[Any]:
    """The events, without the provider's name in them."""
    told = [event_to_dict(event) for event in events]
    for event in told:
        event.pop("provider", None)
        if isinstance(event.get("provenance"), dict):
            event["provenance"].pop("provider")
    return told


@over_takes(quick=100)
def test_the_wire_of_a_take_is_found_from_its_first_bytes(path: Path):
    _, body = load(path)
    _, pipe = piped("auto", [body])
    assert pipe.provider in SPEAK.get(path.parent.name, {path.parent.name})


@over_takes(quick=100)
def test_a_take_gives_the_same_events_whether_its_provider_is_named_or_found(path: Path):
    _, body = load(path)
    found, pipe = piped("auto", [body])
    named, _ = piped(pipe.provider, [body])
    assert without_names(found) == without_names(named)
    assert {e.provider for e in found if e.kind == "stream_start"} <= {pipe.provider}


SHORT = [
    RECORDINGS / name / ("parallel_calls.sse" if row.tools else f"{row.demo}.sse")
    for name, row in PROVIDERS.items()
]


def test_a_response_that_names_its_agent_is_foundrys_and_its_tools_are_known():
    _, body = load(RECORDINGS / "azure_foundry" / "agent_named_first.sse")
    events, pipe = piped("auto", [body])
    assert pipe.provider == "azure_foundry"
    assert [(e.family, e.runs_on) for e in calls_of(events)] == [("bing-grounding", "provider")]


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.parent.name)
def test_the_wire_is_found_byte_by_byte_too(path: Path):
    _, body = load(path)
    at_once, pipe = piped("auto", [body])
    one_by_one, other = piped("auto", bytewise(body))
    assert one_by_one == at_once
    assert other.provider == pipe.provider


def test_the_name_is_auto_until_the_first_payload_has_told():
    pipe = Normalizer("auto")
    assert pipe.provider == "auto"
    pipe.feed(b": keep-alive\n\n")
    assert pipe.provider == "auto"
    pipe.feed(sse({"type": "message_start", "message": {"id": "m", "model": "m"}}))
    assert pipe.provider == "anthropic"


def test_auto_is_what_no_provider_means():
    assert Normalizer().provider == "auto"


@pytest.mark.parametrize(
    ("payload", "provider"),
    [
        ({"type": "message_start", "message": {}}, "anthropic"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "anthropic"),
        ({"type": "response.created", "response": {}}, "openai_responses"),
        ({"type": "error", "code": "c", "message": "m", "sequence_number": 0}, "openai_responses"),
        (
            {"type": "error", "code": "c", "message": "m", "request_id": "r", "param": None},
            "openai_responses",
        ),
        ({"type": "error", "message": "m", "request_id": "r"}, "openai_responses"),
        (
            {"type": "error", "code": "c", "message": "m", "request_id": "r", "sequence_number": 0},
            "openai_responses",
        ),
        ({"code": "Throttling", "message": "m", "request_id": "r"}, "dashscope"),
        ({"type": "response.created", "response": {"agent_reference": None}}, "azure_foundry"),
        ({"choices": []}, "openai_chat"),
        ({"error": {"message": "m"}}, "openai_chat"),
        ({"candidates": []}, "gemini"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "gemini"),
        (
            {"type": "conversation.response.started", "conversation_id": "c"},
            "mistral_conversations",
        ),
        ({"output": {"text": "Hi"}, "request_id": "r"}, "dashscope"),
        ({"type": "message-start", "id": "i"}, "cohere"),
        ({"message": {"content": "Hi"}, "done": False}, "ollama"),
        ({"messageStart": {"role": "assistant"}}, "bedrock"),
        ({"hookEvent": {"hookName": "before"}}, "bedrock"),
        ({"event_type": "interaction.created", "interaction": {}}, "gemini_interactions"),
    ],
)
def test_a_first_payload_tells_whose_it_is(payload: dict[str, Any], provider: str):
    pipe = Normalizer("auto")
    pipe.feed_payload(payload)
    assert pipe.provider == provider


@pytest.mark.parametrize(
    ("body", "provider"),
    [
        (b'[{"candidates":[]}', "gemini"),
        (b'{"message":{"content":"Hi"},"done":false}\n', "ollama"),
        (b'event: message_start\ndata: {"message":{}}\n\n', "anthropic"),
        (b'data: {"type":"response.created","response":{}}\r\n\r\n', "openai_responses"),
        (b'\xef\xbb\xbfdata: {"choices":[]}\n\n', "openai_chat"),
        (event_frame("hookEvent", {"hookName": "before"}), "bedrock"),
    ],
)
def test_the_framing_is_found_with_the_wire(body: bytes, provider: str):
    _, pipe = piped("auto", [body])
    assert pipe.provider == provider
    _, pipe = piped("auto", bytewise(body))
    assert pipe.provider == provider


UNDECIDABLE = {
    "sse": sse({"hello": 1, "world": 2}),
    "a line": b'{"hello":1,"world":2}\n',
    "an array": b'[{"hello":1,"world":2}]',
}


@pytest.mark.parametrize("body", UNDECIDABLE.values(), ids=UNDECIDABLE)
def test_a_first_payload_that_is_nobodys_fails_and_says_what_was_seen_and_who_there_is(body: bytes):
    for chunks in ([body], bytewise(body)):
        events, pipe = piped("auto", chunks)
        (failed,) = events
        assert isinstance(failed, Failed)
        assert failed.reason == "protocol"
        assert "the first payload has the fields 'hello', 'world'" in failed.error
        assert failed.error.endswith("one of: " + ", ".join([*PROVIDERS, *PROGRAMS]))
        assert pipe.provider == "auto"


@pytest.mark.parametrize("payload", [[1, 2], 7, "text", None])
def test_a_first_payload_that_is_no_object_fails(payload: Any):
    events, _ = piped("auto", [sse(json.dumps(payload))])
    assert (events[-1].kind, len(events)) == ("failed", 1)


@pytest.mark.parametrize("body", [b"", b"hello", b": only a comment\n\n", b"data: [DONE]\n\n"])
def test_a_body_without_any_payload_fails_and_stays_undecided(body: bytes):
    events, pipe = piped("auto", [body])
    assert [event.kind for event in events] == ["failed"]
    assert pipe.provider == "auto"
