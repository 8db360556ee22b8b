"""Every stream that damage once found: the engine tells nothing that the plain reader does not."""

from __future__ import annotations

import pytest

from streamnorm import Normalizer
from tests.proof.finds import FINDS, LOSSES, body_of
from tests.proof.run import guarded

# Only what was written as bytes can be no JSON, and so be skipped.
ROWS = [(name, "fail") for name in FINDS]
ROWS += [
    (name, "skip") for name, (_, said) in FINDS.items() if any(isinstance(p, bytes) for p in said)
]


@pytest.mark.parametrize(("name", "on_bad_event"), ROWS)
def test_nothing_is_told_that_the_plain_reader_does_not_find(name: str, on_bad_event: str) -> None:
    wire, _ = FINDS[name]
    assert guarded(wire, body_of(FINDS[name]), [], on_bad_event=on_bad_event) == []


@pytest.mark.parametrize("name", LOSSES)
def test_a_call_is_not_told_of_which_a_part_was_moved_or_has_left_its_frame(name: str) -> None:
    pipe = Normalizer(LOSSES[name][0])
    told = [*pipe.feed(body_of(LOSSES[name])), *pipe.close()]
    assert not [event for event in told if event.kind == "tool_call"]
    assert [event for event in told if event.kind == "broken_tool_call"]
