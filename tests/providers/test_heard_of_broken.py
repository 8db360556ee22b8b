"""What a broken call says that was heard of it: small streams in, ``raw`` and the deltas out.

Some wires say a whole text with the start of a call, which counts if no fragment follows. Wherever the
call breaks, that text was heard.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import Normalizer
from streamnorm.events import BrokenToolCall, ToolCallDelta
from tests.conftest import assert_well_formed, sse

GIVEN = {"to": "me"}
TEXT = '{"to":"me"}'


def a_start(**block: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "A", "name": "pay", "input": GIVEN, **block}
    return {"type": "content_block_start", "index": 0, "content_block": block}


def r_added(kind: str, **fields: Any) -> dict[str, Any]:
    item = {"type": kind, "id": "it_1", "call_id": "A", "name": "pay", **fields}
    return {"type": "response.output_item.added", "output_index": 0, "item": item}


def g_piece(**said: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"functionCall": said}]}, "index": 0}]}


def i_start(arguments: Any) -> dict[str, Any]:
    step = {"type": "function_call", "id": "A", "name": "pay", "arguments": arguments}
    return {"event_type": "step.start", "index": 0, "step": step}


A_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
A_DELTA = {"type": "content_block_delta", "index": 0}
STREAMS: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "anthropic, cut": ("anthropic", (a_start(),), TEXT),
    "anthropic, failed": ("anthropic", (a_start(), A_ERROR), TEXT),
    "anthropic, begun again": ("anthropic", (a_start(), a_start(id="B", input={})), TEXT),
    "anthropic, no object": ("anthropic", (a_start(input="{"),), '"{"'),
    "anthropic, without a name": ("anthropic", (a_start(name=None),), TEXT),
    "anthropic, where fragments follow": (
        "anthropic",
        (a_start(), {**A_DELTA, "delta": {"type": "input_json_delta", "partial_json": '{"to'}}),
        '{"to',
    ),
    "interactions, cut": ("gemini_interactions", (i_start(GIVEN),), TEXT),
    "interactions, an empty object, which stands there before any fragment": (
        "gemini_interactions", (i_start({}),), ""),
    "responses, a function": ("openai_responses", (r_added("function_call", arguments=TEXT),), TEXT),
    "responses, a search": ("openai_responses", (r_added("web_search_call", action=GIVEN),), TEXT),
    "responses, a text": ("openai_responses", (r_added("custom_tool_call", input="ls"),), "ls"),
    "responses, nothing yet": ("openai_responses", (r_added("function_call", arguments=""),), ""),
    "gemini, all values at once, and the promise of more": (
        "gemini", (g_piece(name="pay", args=GIVEN, willContinue=True),), TEXT),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_broken_call_says_all_that_was_heard_of_its_arguments(name: str) -> None:
    wire, payloads, raw = STREAMS[name]
    pipe = Normalizer(wire)
    events = [e for p in payloads for e in pipe.feed(sse(p))] + pipe.close()
    assert_well_formed(events)
    broken = next(e for e in events if isinstance(e, BrokenToolCall))
    assert _compact(broken.raw) == raw
    told = "".join(e.text for e in events if isinstance(e, ToolCallDelta) and e.call == broken.call)
    assert told in ((broken.raw,) if broken.name else ("",))  # one without a name never started


def _compact(raw: str) -> str:
    try:
        return json.dumps(json.loads(raw), separators=(",", ":"))
    except ValueError:
        return raw
