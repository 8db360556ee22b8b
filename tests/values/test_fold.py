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
    ToolCallDelta,
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


def test_calls_of_one_id_get_the_next_free_names() -> None:
    fold = Fold(used=["c_3"])
    assert [fold.unique(id) for id in ("c", "c", "c", "", "c_2", "c")] == [
        "c", "c_2", "c_4", "call", "c_2_2", "c_5",
    ]  # fmt: skip


def test_a_name_for_the_thousandth_call_of_one_id_costs_what_the_second_did() -> None:
    class Counted(set[str]):
        looks = 0

        def __contains__(self, name: object) -> bool:
            self.looks += 1
            return super().__contains__(name)

    fold = Fold()
    fold._used = used = Counted()
    for _ in range(1000):
        fold.unique("c")
    assert used.looks < 3000


def test_pieces_of_one_part_are_joined_and_those_of_others_are_not() -> None:
    moves = Fold().feed(
        [
            ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "f"), ToolCallDelta(0, "1"),
            ToolCallDelta(0, "2"), ToolCallDelta(1, "3"), ToolCallDelta(0, "4"),
            TextDelta("5"), TextDelta("6"), TextDelta("7", choice=1), TextDelta("8"),
        ]
    )  # fmt: skip
    texts = [move.text for move in moves if isinstance(move, f.CallText | f.RunText)]
    assert texts == ["12", "3", "4", "56", "7", "8"]


@pytest.mark.parametrize(
    "item",
    [
        TextDelta("x", part=1), TextDelta("x", choice=1), ReasoningDelta("x"), TextDelta(""),
        TextDelta("x", echo=REFUSED), ToolCallDelta(1, "x"), ToolCallDelta(0, ""), Finish("stop"),
        CALL, object(),
    ],
)  # fmt: skip
def test_only_a_piece_of_an_open_part_goes_on(item: Any) -> None:
    fold = Fold()
    fold.feed([ToolCallStart(0, "a", "f"), TextDelta("a")])
    assert fold.going(item) is None
    assert isinstance(fold.going(TextDelta("x")), f.Run)
    assert isinstance(fold.going(ToolCallDelta(0, "x")), f.Call)


def test_after_text_of_a_type_plain_text_does_not_go_on() -> None:
    fold = Fold()
    fold.feed([TextDelta("no", echo=REFUSED)])
    assert fold.going(TextDelta("x")) is None
