"""Turns folded from streams, and conversations that survive being written down."""

from __future__ import annotations

import pytest

from streamnorm import (
    BrokenToolCall,
    Citation,
    Conversation,
    File,
    Finish,
    ProviderToolResult,
    Reasoning,
    ReasoningDelta,
    StreamStart,
    Text,
    TextDelta,
    ToolCall,
    ToolCallStart,
    ToolResult,
    Turn,
)
from streamnorm.errors import UsageError
from tests.conftest import load, over_takes, run


def call(ordinal: int, name: str = "f", **more: object) -> ToolCall:
    return ToolCall(ordinal, f"call_{ordinal}", name, {}, "{}", **more)  # type: ignore[arg-type]


def test_deltas_become_parts_in_the_order_in_which_they_began():
    events = [
        StreamStart("anthropic", "m", "msg_1"),
        ReasoningDelta("Hm", 0), ReasoningDelta("", 0, 0, {"type": "thinking", "signature": "s"}),
        TextDelta("Let me ", 1), TextDelta("see.", 1),
        ToolCallStart(0, "call_0", "f"), ToolCallStart(1, "call_1", "f"),
        call(1), call(0), Finish("tool_calls"),
    ]  # fmt: skip
    turn = Turn.from_events(events)
    assert turn.provider == "anthropic"
    assert turn.parts == (
        Reasoning("Hm", ({"type": "thinking", "signature": "s"},), (2,)),
        Text("Let me see."), call(0), call(1),
    )  # fmt: skip
    assert turn.finish == "tool_calls"


def test_text_of_another_type_is_another_part():
    refused = {"type": "refusal"}
    turn = Turn.from_events(
        [TextDelta("No", 0), TextDelta(", never", 0, 0, refused), Finish("refusal")]
    )
    assert turn.parts == (Text("No"), Text(", never", (refused,), (), (0,)))


def test_text_around_a_call_is_one_part_if_the_wire_says_so():
    signed = {"thoughtSignature": "s"}
    events = [
        TextDelta("Paying", 0), call(0), TextDelta(" now.", 0), TextDelta("", 0, 0, signed),
        TextDelta("Next", 1),
    ]  # fmt: skip
    turn = Turn.from_events(events)
    assert turn.parts == (
        Text("Paying now.", (signed,), (), (11,)), call(0), Text("Next"),
    )  # fmt: skip


def test_citations_stay_with_the_text_that_they_are_of():
    turn = Turn.from_events(
        [TextDelta("A", 0), TextDelta("B", 1), Citation(1, {"url": "u"}), Finish("stop")]
    )
    assert turn.parts == (Text("A"), Text("B", (), ({"url": "u"},)))


def test_a_call_that_is_open_at_the_end_is_kept_as_broken():
    turn = Turn.from_events([ToolCallStart(0, "call_0", "f"), Finish("stop")])
    assert turn.parts == ()
    (broken,) = turn.broken
    assert (broken.id, broken.name, broken.reason) == ("call_0", "f", "truncated")


def test_broken_calls_are_kept_apart():
    broken = BrokenToolCall(0, "call_0", "f", "{", "truncated")
    turn = Turn.from_events([ToolCallStart(0, "call_0", "f"), broken, Finish("length")])
    assert turn.parts == ()
    assert turn.broken == (broken,)
    assert turn.whole().broken == ()


def test_only_one_choice_is_folded():
    turn = Turn.from_events(
        [TextDelta("a", 0, 0), TextDelta("b", 0, 1), call(0, choice=1)], choice=1
    )
    assert turn.text == "b"
    assert turn.calls == (call(0, choice=1),)


def test_calls_that_the_provider_ran_are_no_calls_for_the_client():
    hosted = call(0, runs_on="provider")
    turn = Turn.from_events([hosted, ProviderToolResult(0, "call_0", {"a": 1}), call(1)])
    assert turn.calls == (call(1),)
    assert len(turn.parts) == 3


def test_a_conversation_survives_json():
    image = File(b"\x00\xff", "image/png", "a.png")
    big = ToolCall(0, "c", "f", {"n": 2**80, "x": 1.5}, '{"n":1208925819614629174706176,"x":1.50}')
    talk = Conversation(system="Be brief.").user("Look", image)
    talk.add(Turn("assistant", (Reasoning("Hm", ({"signature": "s"},), (0,)), big), "anthropic"))
    talk.results([ToolResult.for_call(big, ["text", image, {"n": 2**80}], is_error=True)])
    again = Conversation.from_json(talk.to_json())
    assert again == talk
    assert again.to_json() == talk.to_json()
    assert again.turns[2].results[0].media == [image]


@over_takes(quick=100)
def test_every_take_folds_and_survives_json(path):
    take, wire = load(path)
    events = run(take.provider or path.parent.name, [wire])
    turn = Turn.from_events(events)
    told = [e for e in events if isinstance(e, ToolCall) and e.choice == 0]
    assert [p for p in turn.parts if isinstance(p, ToolCall)] == sorted(told, key=lambda c: c.call)
    texts = [e for e in events if isinstance(e, TextDelta) and e.choice == 0]
    parts = dict.fromkeys(e.part for e in texts)  # in the order in which they began
    assert turn.text == "".join(e.text for part in parts for e in texts if e.part == part)
    talk = Conversation([turn])
    assert Conversation.from_json(talk.to_json()) == talk


@pytest.mark.parametrize(
    "said", ["Hello", Turn("assistant", (Text("Hello"),)), [TextDelta("Hello")]]
)
def test_an_assistant_turn_comes_in_three_forms(said):
    assert Conversation().assistant(said).turns[0].text == "Hello"


def test_two_conversations_do_not_share_their_turns():
    Conversation().user("Hello")
    assert len(Conversation()) == 0
    assert next(iter(Conversation().user("Hi"))).text == "Hi"


RESULT = ToolResult.for_call(call(0), "7")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Turn("user", "Hello"), r'such as Turn\("user", \(Text\("Hello"\),\)\), not str'),
        (lambda: Turn("tool", RESULT), "parts are a tuple, .* not ToolResult"),
        (lambda: Turn("user", ("Hello",)), "a part is a Text, .* not str"),
        (lambda: Turn("user", ({"text": "x"},)), "a part is a Text, .* not dict"),
        (lambda: Turn("user", (Text(5),)), "a Text has a text, not int"),
        (lambda: Turn("assistant", (Reasoning(5),)), "a Reasoning has a text, not int"),
        (lambda: Turn("usr", (Text("Hello"),)), "a turn is of system, .* not of 'usr'"),
    ],
)
def test_a_turn_that_could_not_be_read_again_is_refused_where_it_is_made(made, said):
    with pytest.raises(UsageError, match=said):
        made()
