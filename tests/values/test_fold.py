"""Events as moves: what is opened is closed once, and echoes stand where they came."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from streamnorm import (
    BrokenToolCall,
    Finish,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallStart,
    ToolResult,
    Unrecognized,
)
from streamnorm import fold as f
from streamnorm.fold import Fold, Move, echoes_of

CALL = ToolCall(0, "call_1", "pay", {"euro": 5}, '{"euro":5}')
REFUSED = {"type": "refusal"}


def names(*items: Any) -> list[str]:
    fold = Fold()
    return [type(move).__name__ for move in [*fold.feed(items), *fold.close()]]


def runs(*items: Any) -> list[f.Run]:
    return [move.run for move in Fold().feed(items) if isinstance(move, f.RunOpen)]


def test_a_run_ends_when_something_else_begins() -> None:
    assert names(
        StreamStart("x"), ReasoningDelta("Hm"), TextDelta("A"), TextDelta("B"),
        ToolCallStart(0, "call_1", "pay"), CALL, TextDelta("C"), Finish("stop"),
    ) == [
        "Step", "RunOpen", "RunText", "RunClose", "RunOpen", "RunText", "RunClose",
        "CallOpen", "CallWhole", "RunOpen", "RunText", "RunClose", "StepEnd",
    ]  # fmt: skip


@pytest.mark.parametrize("last", [(), (Finish("stop"),)])
def test_a_call_that_never_ended_is_broken_once(last: tuple[Any, ...]) -> None:
    assert names(ToolCallStart(0, "call_1", "pay"), *last) == [
        "Step", "CallOpen", "CallBroken", "StepEnd",
    ]  # fmt: skip


def test_text_of_another_type_is_a_run_of_its_own() -> None:
    first, second, third = runs(
        TextDelta("I can say"), TextDelta(" no", echo=REFUSED), TextDelta(", never", echo=REFUSED),
        TextDelta(", sorry"),
    )  # fmt: skip
    assert [first.type, second.type, third.type] == [None, "refusal", None]
    assert (second.echoes, second.marks, second.size) == ([REFUSED], [0], 10)
    assert first.echoes == third.echoes == []


def test_a_type_that_is_no_text_is_none() -> None:
    (run,) = runs(TextDelta("a", echo={"type": ["odd"]}), TextDelta("b"))
    assert run.echoes == [{"type": ["odd"]}]


def test_echoes_of_several_runs_are_counted_in_their_whole_text() -> None:
    told = runs(
        TextDelta("abc", echo={"n": 1}), TextDelta("", echo={"n": 2}), CALL,
        TextDelta("", echo={"n": 2}), TextDelta("de"), TextDelta("", echo={"n": 3}),
    )  # fmt: skip
    assert [run.size for run in told] == [3, 2]
    assert echoes_of(told) == (({"n": 1}, {"n": 2}, {"n": 3}), (0, 3, 5))


def test_a_result_is_told_with_the_event_that_brought_it() -> None:
    ours, theirs = ToolResult.for_call(CALL, {"paid": 5}), ProviderToolResult(7, "x", "found")
    *_, answered, orphan = Fold().feed([CALL, ours, theirs])
    assert isinstance(answered, f.Result)
    assert (answered.event, answered.output) == (ours, {"paid": 5})
    assert isinstance(orphan, f.Orphan)
    assert (orphan.event, orphan.output) == (theirs, "found")


def test_what_no_message_is_made_of_is_counted() -> None:
    fold = Fold()
    assert fold.feed([Unrecognized("ping", {}), Unrecognized("ping", {})]) == []
    assert fold.skipped == {"unrecognized": 2}


def test_a_broken_call_is_never_answered() -> None:
    broken = BrokenToolCall(0, "call_1", "pay", "{", "truncated")
    *_, last = Fold().feed([broken, ToolResult.for_call(CALL, "paid")])
    assert isinstance(last, f.Orphan)


def test_every_move_has_its_method_in_each_encoder() -> None:
    from streamnorm.ui import ag_ui, vercel
    from streamnorm.ui._encoder import METHODS

    assert set(METHODS) == set(get_args(Move))
    for encoder in (ag_ui.Encoder, vercel.Encoder):
        assert [name for name in METHODS.values() if not hasattr(encoder, name)] == []
