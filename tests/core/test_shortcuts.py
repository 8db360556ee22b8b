"""Shortcuts past the table of ``core.calls`` are proven: written-out code does what the verbs do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.core.calls import FUNCTION, Calls, Kind, State
from streamnorm.core.marks import Marks
from streamnorm.core.mint import Mint
from streamnorm.events import BrokenToolCall, Event, ToolCall, ToolCallDelta, event_to_dict
from streamnorm.limits import LimitReached, Limits
from streamnorm.notes import Scribe
from tests.conftest import Chat, Messages, piped, sse

KINDS = (FUNCTION, Kind("server-tool", "provider"), Kind("custom", "client", "input"))
# Usual values first, and most: the shortcut is taken for them.
IDS = st.sampled_from(["a", "b", "c", "d", "e", None, "", "x" * 11])
NAMES = st.sampled_from(["f", "g", "f", "g", "f", None, "", "odd name", "x" * 11])
TEXTS = st.sampled_from(
    [
        '{"b":2}',
        '{"c":[3]}',
        '{"d":{}}',
        "",
        " ",
        "{}",
        '{"a":1}',
        '{"a":',
        "[1]",
        '"{}"',
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"\\ud83d":1}',
        '{"a":[[[[1]]]]}',
    ]
)
SAID = st.tuples(
    IDS, NAMES, TEXTS, st.sampled_from(KINDS), st.integers(0, 1), st.sampled_from([None, {"e": 1}])
)
STATES = st.fixed_dictionaries(
    {
        "mended": st.sampled_from([False, False, True]),
        "lossy": st.sampled_from(["", "", "x"]),
        "lost": st.booleans(),
        "open": st.sampled_from([0, 0, 1, 2]),
        "strays": st.sampled_from([(), (), (None,), (0,)]),
    }
)


class Desk:
    def __init__(self, state: dict[str, Any]) -> None:
        self.scribe = Scribe("test")
        self.scribe.response_id = "r"
        self.calls = Calls(
            self.scribe,
            Mint("tests"),
            Limits(calls=9, open_calls=3, name=10, id=10, arguments=60, depth=3),
        )
        self.out: list[Event] = []
        for name in ("f", "g"):  # names that were looked at before: the shortcut is for those
            by_steps(self, f"first {name}", name, "{}", FUNCTION, 0, None)
        for number in range(state.pop("open", 0)):
            self.calls.open(self.out, id=f"open {number}", name="f")
        for place in state.pop("strays", ()):
            self.calls.astray(place)
        for name, value in state.items():
            setattr(self.calls, name, value)

    def told(self) -> tuple[Any, ...]:
        states = [(c.state, c.id, c.wire_id, c.name, c.taint, c.source) for c in self.calls.all]
        return (
            [event_to_dict(event) for event in self.out],
            states,
            dict(self.scribe.counts),
            set(self.calls.called),
            [c.ordinal for c in self.calls.unfinished()],
        )


def at_once(desk: Desk, id: Any, name: Any, text: str, kind: Kind, choice: int, echo: Any) -> None:
    desk.calls.whole(desk.out, text, kind, choice, id, "id", name, echo, None)


def by_steps(desk: Desk, id: Any, name: Any, text: str, kind: Kind, choice: int, echo: Any) -> None:
    calls = desk.calls
    call = calls.open(desk.out, kind, choice=choice, id=id, field="id", name=name, seen=None)
    call.echo = echo
    if text:
        calls.append(call, text, desk.out)
    calls.close(call, desk.out)


@given(st.lists(SAID, max_size=7), STATES, st.sampled_from(["stop", "length", "other", None]))
def test_a_call_that_is_said_at_once_is_open_append_and_close(said, state, reason):
    one, other = Desk(dict(state)), Desk(dict(state))
    one.calls.since = 0  # all of one payload: none is another said again
    for call in said:
        ends = []
        for desk, say in ((one, at_once), (other, by_steps)):
            try:
                say(desk, *call)
                ends.append("")
            except LimitReached as reached:
                ends.append(reached.name)
        assert ends[0] == ends[1]
        if ends[0]:
            assert one.told() == other.told()  # also what was told of the one that is too much
            return
    for desk in (one, other):
        desk.calls.lossy = ""
        desk.calls.end_turn(desk.out, reason)
    assert one.told() == other.told()


@given(st.sampled_from(list(State)), st.text(min_size=1, max_size=4))
def test_an_append_to_an_open_call_is_one_fragment_and_one_delta_and_no_other_state_is_inlined(
    state, text
):
    """What ``append``, ``extend`` and three parsers write out, against the table itself."""
    from streamnorm.core.calls import TABLE

    one, other = Desk({}), Desk({})
    for desk in (one, other):
        call = desk.calls.open(desk.out, id="a", name="f" if state is not State.WAITING else None)
        if state is State.CLOSED:
            desk.calls.close(call, desk.out)
        elif state is State.OVER:
            desk.calls.fail(call, "conflict", "x", desk.out)
        assert call.state is state
    TABLE["append", state](one.calls, one.calls.all[-1], text, one.out)
    if state is State.OPEN:
        other.calls.all[-1].fragments.append(text)
        other.out.append(ToolCallDelta(other.calls.all[-1].ordinal, text))
    else:
        other.calls.append(other.calls.all[-1], text, other.out)
    assert one.told() == other.told()
    assert one.calls.all[-1].raw == other.calls.all[-1].raw


PIECES = st.lists(st.text('ab {}"\\é', min_size=1, max_size=5), min_size=1, max_size=6)


def hot_and_cold(provider: str, frames: list[bytes], odd: list[bytes]) -> list[Event]:
    """The same stream read by the inlined append, and past it: an unknown field is read the long way."""
    hot, cold = (piped(provider, [b"".join(f)])[0] for f in (frames, odd))
    assert [event_to_dict(e) for e in hot] == [event_to_dict(e) for e in cold]
    return hot


def as_the_verb_tells(pieces: list[str], events: list[Event]) -> None:
    """Start, deltas and text of the one call are those that the verbs of a desk give."""
    desk = Desk({})
    call = desk.calls.open(desk.out, id="a", name="f")
    for piece in pieces:
        desk.calls.append(call, piece, desk.out)
    begun = next(n for n, e in enumerate(desk.out) if e.kind == "tool_call_start" and e.id == "a")
    verbs = [(e.kind, getattr(e, "text", "")) for e in desk.out[begun:]]
    kinds = ("tool_call_start", "tool_call_delta")
    assert [(e.kind, getattr(e, "text", "")) for e in events if e.kind in kinds] == verbs
    ended = [e.raw for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    assert ended == [call.raw]


@given(PIECES)
def test_the_inlined_append_of_messages_is_the_verb(pieces: list[str]):
    def delta(text: str, **more: Any) -> bytes:
        return sse(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": text},
                **more,
            }
        )

    start, end = Messages.START + Messages.open(0, "a", "f"), Messages.close(0) + Messages.end()
    hot = hot_and_cold(
        "anthropic",
        [start, *map(delta, pieces), end],
        [start, *(delta(p, x_new=1) for p in pieces), end],
    )
    as_the_verb_tells(pieces, hot)


@given(PIECES)
def test_the_inlined_append_of_chat_is_the_verb(pieces: list[str]):
    def chunk(text: str, **more: Any) -> bytes:
        entry = {"index": 0, "function": {"arguments": text}}
        return sse(
            {
                "id": "c",
                "model": "m",
                "choices": [{"index": 0, "delta": {"tool_calls": [entry]}}],
                **more,
            }
        )

    start, end = Chat.call(0, "a", "f", ""), Chat.end()
    hot_and_cold(
        "openai_chat",
        [start, *map(chunk, pieces), end],
        [start, *(chunk(p, x_new=1) for p in pieces), end],
    )


@given(PIECES)
def test_the_inlined_append_of_responses_is_the_verb(pieces: list[str]):
    item = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": ""}

    def delta(text: str, **more: Any) -> bytes:
        return sse(
            {
                "type": "response.function_call_arguments.delta",
                "output_index": 0,
                "item_id": "fc_1",
                "delta": text,
                **more,
            }
        )

    start = sse({"type": "response.created", "response": {"id": "r", "model": "m"}}) + sse(
        {"type": "response.output_item.added", "output_index": 0, "item": item}
    )
    end = sse(
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": item,  # without a copy, which would hide what was appended
        }
    )
    end += sse(
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    )
    hot = hot_and_cold(
        "openai_responses",
        [start, *map(delta, pieces), end],
        [start, *(delta(p, x_new=1) for p in pieces), end],
    )
    as_the_verb_tells(pieces, hot)


USUAL = ("a", "f", '{"a":1}', FUNCTION, 0, {"e": 1})


def steps_for(
    state: dict[str, Any], call: tuple[Any, ...], *, info: bool = False
) -> tuple[Desk, int]:
    """How often the long way is taken for a call."""
    desk, steps = Desk(dict(state)), []
    desk.scribe.info_on = info
    desk.calls._whole_by_steps = lambda *args: steps.append(args)  # type: ignore[assignment]
    at_once(desk, *call)
    return desk, len(steps)


def test_the_shortcut_is_taken_for_a_usual_call():
    desk, steps = steps_for({}, USUAL)
    last = desk.out[-1]
    assert isinstance(last, ToolCall)
    assert (steps, last.arguments, last.echo) == (0, {"a": 1}, {"e": 1})
    assert last.provenance.response_id == "r"


def test_a_call_said_at_once_is_found_by_its_choice_and_its_id_and_a_copy_is_no_other_call():
    desk = Desk({})
    at_once(desk, "a", "f", '{"a":1}', FUNCTION, 1, None)
    call = desk.calls.by_id(1, "a")
    assert call is desk.calls.all[-1]
    assert desk.calls.by_id(0, "a") is None
    at_once(desk, "a", "f", '{"a":1}', FUNCTION, 1, None)
    assert desk.calls.all[-1] is call


def test_two_calls_without_ids_that_say_the_same_are_two():
    desk = Desk({})
    for _ in range(2):
        at_once(desk, None, "f", '{"a":1}', FUNCTION, 0, None)
    assert len([event for event in desk.out if isinstance(event, ToolCall)]) == 2 + 2


def test_with_a_call_said_at_once_a_client_may_run_it():
    desk = Desk({})
    desk.calls.marks = Marks()
    at_once(desk, *USUAL)
    assert desk.calls.marks.behind_ripe == 0


@pytest.mark.parametrize(
    ("state", "call"),
    [
        ({"mended": True}, USUAL),
        ({"lossy": "x"}, USUAL),
        ({"open": 3}, USUAL),
        ({}, ("first f", *USUAL[1:])),
        ({}, ("x" * 11, *USUAL[1:])),
        ({}, ("", *USUAL[1:])),
        ({}, ("a", "new", *USUAL[2:])),
        ({}, ("a", "f", "", *USUAL[3:])),
        ({}, ("a", "f", '{"a":"' + "x" * 60 + '"}', *USUAL[3:])),
        ({}, ("a", "f", '{"a":[[[[1]]]]}', *USUAL[3:])),
        ({}, ("a", "f", '{"a":1}', KINDS[2], 0, None)),
    ],
)
def test_the_shortcut_is_not_taken_for_any_other(state: dict[str, Any], call: tuple[Any, ...]):
    assert steps_for(state, call)[1] == 1


def test_the_shortcut_is_not_taken_where_each_call_is_logged():
    assert steps_for({}, USUAL, info=True)[1] == 1


def test_nothing_is_appended_to_a_call_that_was_told():
    item = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
    late = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "x"}
    streams = {
        "anthropic": Messages.START + Messages.open(0, "a", "f") + Messages.args(0, "{}")
        + Messages.close(0) + Messages.args(0, "x") + Messages.end(),
        "openai_chat": Chat.call(0, "a", "f", "{}") + Chat.end() + Chat.call(0, None, None, "x"),
        "openai_responses": sse({"type": "response.created", "response": {"id": "r", "model": "m"}})
        + sse({"type": "response.output_item.done", "output_index": 0, "item": item}) + sse(late),
    }  # fmt: skip
    for provider, body in streams.items():
        events, _ = piped(provider, [body])
        kinds = [event.kind for event in events]
        assert "tool_call_delta" not in kinds[kinds.index("tool_call") :], provider
