"""Which unions there are is found by walking the SDKs: each is read, or left out for a reason."""

from __future__ import annotations

import functools

import pytest

from tools import completeness, unions
from tools.unions import KNOWN, LEFT, ROOTS, Found, sentence, stale, verdict

# The SDKs warn while they are imported.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.parts]

# A walk that finds fewer than there were has lost its way.
AT_LEAST = {
    "openai": 180, "anthropic": 120, "mistralai": 85, "cohere": 12, "google-genai": 20,
    "azure-ai-agentserver-responses": 20, "botocore": 8,
}  # fmt: skip
READ = [
    ("openai", "ResponseStreamEvent"), ("openai", "BetaResponseStreamEvent"),
    ("openai", "ResponseOutputItem"), ("openai", "ConversationItem"),
    ("anthropic", "RawMessageStreamEvent"), ("anthropic", "BetaContentBlock"),
    ("anthropic", "BetaRawContentBlockDelta"), ("mistralai", "ConversationEventsData"),
    ("mistralai", "ResponsesStreamFrameData"), ("mistralai", "InputEntries"),
    ("mistralai", "ContentChunk"), ("cohere", "V2ChatStreamResponse"),
    ("google-genai", "InteractionSSEEvent"), ("google-genai", "Step"),
    ("azure-ai-agentserver-responses", "ResponseStreamEvent"), ("botocore", "ConverseStreamOutput"),
]  # fmt: skip
LATER = [
    ("openai", "openai.types.realtime.RealtimeServerEvent", "voice"),
    ("openai", "openai.types.beta.AgentSessionEvent", "sessions of agents"),
    ("anthropic", "anthropic.types.beta.sessions.BetaManagedAgentsStreamSessionEvents", "sessions of"),
    ("google-genai", "google.genai.types.LiveServerMessage", "Gemini Live"),
    ("botocore", "sagemaker-runtime.ResponseStream", "envelope"),
]  # fmt: skip


@functools.cache
def walked(sdk: str) -> list[Found]:
    if completeness.installed(sdk) is None:
        pytest.skip(f"{sdk} is not installed; pip install {sdk}")
    return unions.found(sdk)


@pytest.mark.parametrize("sdk", ROOTS)
def test_every_union_of_an_sdk_is_read_or_left_out_for_a_reason(sdk: str):
    new = [sentence(union) for union in walked(sdk) if verdict(union) is None]
    assert new == []


@pytest.mark.parametrize("sdk", ROOTS)
def test_every_reason_is_about_a_union_that_there_is(sdk: str):
    if walked(sdk):
        assert stale(walked(sdk)) == []


@pytest.mark.parametrize(("sdk", "least"), AT_LEAST.items())
def test_unions_are_found_at_all(sdk: str, least: int):
    assert len(walked(sdk)) >= least


@pytest.mark.parametrize(("sdk", "name"), READ)
def test_what_a_stream_is_made_of_is_read(sdk: str, name: str):
    found = [union for union in walked(sdk) if union.where.endswith(f".{name}")]
    assert found
    assert any(verdict(union) == "read" for union in found)


@pytest.mark.parametrize(("sdk", "where", "why"), LATER)
def test_what_is_for_later_says_so(sdk: str, where: str, why: str):
    (union,) = [union for union in walked(sdk) if union.where == where]
    assert why in (verdict(union) or "")


# --- the judgement itself -------------------------------------------------------------------------


def test_a_new_union_is_neither_and_the_sentence_says_what_to_do():
    new = Found("openai", "openai.types.responses.TeleportEvent", frozenset({"teleport", "error"}))
    assert verdict(new) is None
    said = sentence(new)
    assert "openai.types.responses.TeleportEvent" in said
    assert "no parser knows: teleport (and 1 that one does)" in said
    assert "LEFT of tools/unions.py" in said


def test_a_new_member_of_a_union_that_was_read_is_named():
    known = frozenset(KNOWN["anthropic"])
    where = "anthropic.types.RawMessageStreamEvent"
    assert verdict(Found("anthropic", where, known)) == "read"
    grown = Found("anthropic", where, known | {"teleport_start"})
    assert (verdict(grown), grown.unknown) == (None, ["teleport_start"])


def test_a_reason_for_a_union_that_is_gone_is_stale():
    assert "cohere:*Embed*" in stale([Found("cohere", "cohere.types.Other", frozenset({"a"}))])
    assert all(row.partition(":")[0] in ROOTS for row in LEFT)
