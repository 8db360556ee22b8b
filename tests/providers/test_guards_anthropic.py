"""Guards of Anthropic that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.events import Failed
from tests.conftest import sse, traced
from tests.providers.test_evidence_wires import (
    A_CLOSE,
    WHOLE,
    a_delta,
    a_start,
    a_stop,
    calls_in,
)


def heard(*payloads: Any) -> list[Any]:
    return traced("anthropic", b"".join(sse(p) for p in payloads))[0]


def test_a_delta_that_cannot_be_read_is_of_the_call_without_an_index_if_it_has_none_either():
    new = {"type": "content_block_delta", "delta": {"type": "new_delta"}}
    begun = (a_start(None), a_start(0, "B", "b"), a_delta(WHOLE, None), a_delta(WHOLE))
    told = calls_in(heard(*begun, new, a_stop(None), a_stop(), *A_CLOSE))
    assert told == [("b", WHOLE), ("pay", "conflict!")]


def test_the_stop_of_a_call_that_was_begun_elsewhere_says_nothing_of_the_other():
    first, again = a_start(input={"n": 1}), a_start(1)
    told = calls_in(heard(first, again, a_delta(WHOLE, 1), a_stop(), a_stop(1), *A_CLOSE))
    assert told == [("pay", "conflict!"), ("pay", WHOLE)]


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ("boom", "boom", None),
        ({"message": "boom", "type": "e1"}, "boom", "e1"),
        ({"type": "e1"}, "e1", "e1"),
    ],
)
def test_an_error_is_told_in_its_words(error: Any, message: str, code: str | None):
    events = heard(a_start(), {"type": "error", "error": error})
    assert events[-1] == Failed("provider_error", message, False, code)
