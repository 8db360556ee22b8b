"""Whatever is told first, ``StreamStart`` stands before it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import sse, traced

# wire -> a first payload that says too little of a call to tell it
NAMELESS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]
    },
    "anthropic": {
        "type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "input": {}},
    },
    "openai_responses": {
        "type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{",
    },
    "gemini": {
        "candidates": [{"content": {"parts": [{"functionCall": {"args": {}, "willContinue": True}}]}}]
    },
    "gemini_interactions": {
        "event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "a"},
    },
}  # fmt: skip


@pytest.mark.parametrize("wire", NAMELESS)
def test_a_call_that_is_cut_before_it_was_named_is_broken_after_the_start(wire: str):
    events, _ = traced(wire, sse(NAMELESS[wire]))
    assert [e.kind for e in events] == ["stream_start", "broken_tool_call", "failed"]


def test_a_result_that_only_the_end_of_input_tells_comes_after_the_start():
    result = {"type": "google_search_result", "call_id": "a", "result": [1]}
    body = sse({"event_type": "step.start", "index": 0, "step": result})
    done = {"event_type": "interaction.completed", "interaction": {"status": "completed"}}
    events, _ = traced("gemini_interactions", body + sse(done))
    assert [e.kind for e in events] == ["stream_start", "tool_result", "finish"]
