"""What the official SDKs know and we do not: every member of their unions, by name.

Left out where an SDK is not installed, with its name. ``python -m tools.completeness`` prints the
same as numbers.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pytest

from streamnorm.events import Unrecognized
from streamnorm.providers import PROVIDERS
from tests.conftest import run, sse
from tools import completeness
from tools.completeness import EXCUSED, UNIONS, Union, compared, members, of, tags, walked, words

# The SDKs warn while they are imported.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.parts]

# A union that is found to have fewer members than it had is no union that shrank: it is a
# discovery that broke.
AT_LEAST = {
    "claude-agent-sdk ContentBlock": 6,
    "ResponseStreamEvent": 59,
    "BetaResponseStreamEvent": 59,
    "ResponseOutputItem": 28,
    "ResponseItem": 29,
    "ResponseInputItem": 31,
    "BetaResponseOutputItem": 31,
    "BetaResponseInputItem": 34,
    "ResponseStreamEventType": 58,
    "OutputItemType": 51,
    "ItemType": 50,
    "ItemFieldType": 28,
    "ToolType": 35,
    "ChatCompletionChunk, fields": 27,
    "RawMessageStreamEvent": 6,
    "BetaRawContentBlockDelta": 6,
    "ContentBlock": 12,
    "BetaContentBlock": 18,
    "BetaStopReason": 8,
    "Part, fields": 17,
    "GenerateContentResponse, fields": 30,
    "FinishReason": 20,
    "InteractionSSEEvent": 7,
    "Step": 21,
    "StepDelta.delta": 26,
    "InteractionStatusUpdate.status": 7,
    "CompletionChunk, fields": 15,
    "ContentChunk": 9,
    "V2ChatStreamResponse": 12,
    "ChatFinishReason": 6,
    "ChatResponse, fields": 18,
    "ConverseStreamOutput": 11,
    "ContentBlockDelta": 6,
    "ContentBlockStart": 3,
    "StopReason": 7,
}

over_unions = pytest.mark.parametrize("union", UNIONS, ids=lambda u: f"{u.sdk}-{u.name}")


def need(sdk: str) -> None:
    if completeness.installed(sdk) is None:
        pytest.skip(f"{sdk} is not installed; pip install {sdk}")


@over_unions
def test_every_member_of_a_union_is_known(union: Union):
    need(union.sdk)
    assert union.missing() == []


@over_unions
def test_members_of_a_union_are_found_at_all(union: Union):
    need(union.sdk)
    least = AT_LEAST.get(f"{union.sdk} {union.name}", AT_LEAST.get(union.name, 1))
    assert len(union.check()) >= least


def test_every_provider_is_held_against_an_sdk():
    assert {union.provider for union in UNIONS} == {*PROVIDERS, "claude_code"}


def test_an_excuse_names_a_member_that_there_is():
    for union in UNIONS:
        if union.name in EXCUSED and completeness.installed(union.sdk):
            assert set(EXCUSED[union.name]) <= set(union.check()), union.name


# --- not only in the tables: each member is told when it comes ------------------------------------


def unheard(provider: str, *payloads: dict[str, Any]) -> list[str]:
    body = b"".join(map(sse, payloads))
    return [e.wire_kind for e in run(provider, [body]) if isinstance(e, Unrecognized)]


@pytest.mark.parametrize(
    ("sdk", "module", "union", "provider"),
    [
        ("openai", "openai.types.beta", "BetaResponseOutputItem", "openai_responses"),
        (
            "azure-ai-agentserver-responses",
            "azure.ai.agentserver.responses.models",
            "OutputItem",
            "azure_foundry",
        ),
    ],
)
def test_an_item_of_any_type_is_told_or_kept(sdk: str, module: str, union: str, provider: str):
    need(sdk)
    opening = {"type": "response.created", "response": {"id": "r", "model": "m"}}
    for type_ in tags(of(module, union)):
        item = {"type": type_, "id": "i1", "call_id": "c1", "name": "n", "arguments": "{}"}
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        assert unheard(provider, opening, done) == [], type_


def test_a_block_of_any_type_is_told_or_kept():
    need("anthropic")
    for type_ in tags(of("anthropic.types.beta", "BetaContentBlock")):
        block = {"type": type_, "id": "i1", "tool_use_id": "c1", "name": "n", "input": {}}
        start = {"type": "content_block_start", "index": 0, "content_block": block}
        assert unheard("anthropic", start) == [], type_


def test_a_step_of_any_type_is_told_or_kept():
    need("google-genai")
    opening = {"event_type": "interaction.created", "interaction": {"id": "r", "model": "m"}}
    for type_ in tags(of("google.genai.interactions", "Step")):
        step = {"event_type": "step.start", "index": 0, "step": {"type": type_}}
        assert unheard("gemini_interactions", opening, step) == [], type_


# --- the comparison itself, on types of our own ---------------------------------------------------


class _Dog(TypedDict):
    type: Literal["dog"]
    name: str


class _Cat(TypedDict):
    type: Literal["cat"]
    lives: int
    friend: _Dog


class _OurDog(msgspec.Struct, tag="dog", tag_field="type"):
    name: str


class _OurCat(msgspec.Struct, tag="cat", tag_field="type"):
    friend: _OurDog | None = None


def test_members_are_found_inside_wrappers():
    wrapped = Annotated[Optional[list[_Dog | _Cat]], "an SDK's own mark"]  # noqa: UP045 - as SDKs write it
    assert list(members(wrapped)) == [_Dog, _Cat]
    assert tags(wrapped) == ["dog", "cat"]


def test_words_are_found_inside_unions():
    assert words(Optional[Literal["a", "b"] | str]) == ["a", "b"]  # noqa: UP045


def test_a_member_that_we_do_not_know_is_named():
    union = Union("ours", "Animal", "nobody", lambda: compared(tags(_Dog | _Cat), {"dog"}))
    assert union.missing() == ["cat"]


def test_a_field_that_we_do_not_know_is_named_however_deep():
    found = walked([_Cat], [_OurCat])
    assert found == {"cat.lives": False, "cat.friend": True, "cat.friend.name": True}


def test_the_command_says_n_of_n_for_every_union(capsys):
    if not any(completeness.installed(union.sdk) for union in UNIONS):
        pytest.skip("no SDK is installed")
    assert completeness.main([]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    shown = [line.split() for line in lines if " of " in line and line[:12].strip()]
    assert all(words_[0] == words_[2] for words_ in shown if words_[1] == "of")
    done, _, total, *rest = last.split()
    assert (done, rest) == (total, ["unions", "complete"])


def test_the_command_names_the_sdks_that_are_missing(capsys, monkeypatch):
    monkeypatch.setattr(completeness, "installed", lambda sdk: None)
    assert completeness.main([]) == 2
    said = capsys.readouterr().out
    assert "left out: openai is not installed" in said
    assert json.dumps("0 of 0 unions complete")[1:-1] in said
