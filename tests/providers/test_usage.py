"""Usage: where each server counts, and that a later frame which says less takes nothing back."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.events import Usage
from tests.conftest import Chat, sse
from tests.providers.streams import Gemini, heard

BASE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def usage_of(provider: str, body: bytes) -> tuple[Any, ...]:
    (usage,) = [e for e in heard(provider, body)[0] if isinstance(e, Usage)]
    return usage.input, usage.output, usage.cached_input, usage.cache_write, usage.reasoning


def beside(**usage: Any) -> bytes:
    return sse({"id": "chatcmpl-1", "model": "m", "choices": [], "usage": usage})


def in_choice(**usage: Any) -> bytes:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}
    return sse({"id": "chatcmpl-1", "model": "m", "choices": [choice]})


STOP = Chat.text("Hi") + Chat.delta({}, "stop")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (STOP + beside(**BASE, cached_tokens=4), (10, 5, 4, None, None)),
        (Chat.text("Hi") + in_choice(**BASE, cached_tokens=4), (10, 5, 4, None, None)),
        (Chat.text("Hi") + in_choice(**BASE, cached_tokens=4) + beside(**BASE),
         (10, 5, 4, None, None)),
        (STOP + beside(**BASE, prompt_cache_hit_tokens=4), (10, 5, 4, None, None)),
        (STOP + beside(**BASE, cache_creation_input_tokens=3, cache_read_input_tokens=2),
         (10, 5, 2, 3, None)),
        (STOP + beside(**BASE, prompt_tokens_details={"cached_tokens": 1}, cached_tokens=9),
         (10, 5, 1, None, None)),
    ],
    ids=["Kimi", "Kimi, in its choice", "Kimi, in both", "DeepSeek", "Anthropic's counts", "both"],
)  # fmt: skip
def test_cached_tokens_are_found_where_a_server_counts_them(body: bytes, told: tuple[Any, ...]):
    assert usage_of("openai_chat", body + Chat.DONE) == told


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (
            {**BASE, "total_tokens": 22, "reasoning_tokens": 7},
            (12, 7),
        ),  # beside the answer: Copilot
        ({**BASE, "reasoning_tokens": 3}, (5, 3)),  # in it, as the total says
        ({**BASE, "completion_tokens_details": {"reasoning_tokens": 3}}, (5, 3)),
    ],
)
def test_output_has_reasoning_in_it_wherever_that_is_counted(usage: dict[str, Any], told):
    _, output, _, _, reasoning = usage_of("openai_chat", STOP + beside(**usage) + Chat.DONE)
    assert (output, reasoning) == told


def test_a_count_of_zero_on_the_way_and_one_that_says_less_take_nothing_back():
    body = Chat.text("Hi") + beside(**BASE, cached_tokens=4) + beside(prompt_tokens=0)
    body += beside(prompt_tokens=10, completion_tokens=6, cached_tokens=None) + Chat.end("stop")
    assert usage_of("openai_chat", body) == (10, 6, 4, None, None)


RICH = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 2}  # fmt: skip


@pytest.mark.parametrize("finish", ["STOP", None])
@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (RICH, {"promptTokenCount": 10, "candidatesTokenCount": 6}, (10, 9, 2, None, 3)),
        (RICH, {"promptTokenCount": 10, "candidatesTokenCount": 6, "cachedContentTokenCount": None,
                "trafficType": "ON_DEMAND", "promptTokensDetails": [{"modality": "TEXT"}]},
         (10, 9, 2, None, 3)),
        ({"promptTokenCount": 10, "thoughtsTokenCount": 3}, {"candidatesTokenCount": 64},
         (10, 67, None, None, 3)),
    ],
    ids=["shorter", "longer", "other"],
)  # fmt: skip
def test_a_poorer_last_frame_of_gemini_takes_nothing_back(first, last, told, finish):
    body = Gemini.text("a", usageMetadata=first)
    body += Gemini.text("b", finish=finish, usageMetadata=last)
    body += b"" if finish else Gemini.text("", finish="STOP")
    assert usage_of("gemini", body) == told


def test_a_count_that_is_true_is_none():
    usage = {"prompt_tokens": True, "completion_tokens": 5}
    assert usage_of("openai_chat", beside(**usage) + Chat.end())[:2] == (None, 5)
