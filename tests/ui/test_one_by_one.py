"""However events are cut into batches, a page hears the same: only neighbouring pieces are joined."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Provenance, StreamStart, TextDelta, ToolCall, ToolCallDelta, ToolCallStart
from streamnorm import fold as f
from streamnorm.text.written import safe_json
from streamnorm.ui import ag_ui, plain, vercel
from tests.ui.ui_rules import tellings

MAKERS: dict[str, Callable[[], Any]] = {
    "ai-sdk": lambda: vercel.Encoder(message_id="m"),
    "ag-ui": lambda: ag_ui.Encoder(thread_id="t", run_id="r", message_id="m"),
    "plain": plain.Encoder,
}
TEXTS = ("delta", "inputTextDelta", "text")


@pytest.mark.parametrize("name", MAKERS)
@given(events=tellings, data=st.data())
def test_any_batches_tell_the_same(name: str, events: list[Any], data: st.DataObject) -> None:
    single, batched = MAKERS[name](), MAKERS[name]()
    one_by_one = [p for event in events for p in single.payloads(event)] + single.closing()
    batches: list[bytes] = []
    rest = list(events)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        batches += batched.payloads(*rest[:size])
        rest = rest[size:]
    assert joined(one_by_one) == joined(batches + batched.closing())


def joined(payloads: list[bytes]) -> list[Any]:
    """The frames, with neighbouring pieces of one part as one."""
    out: list[Any] = []
    for payload in payloads:
        frame = json.loads(payload) if payload.startswith(b"{") else {"last": payload}
        key = next((key for key in TEXTS if key in frame), "")
        if key and out and {**out[-1], key: ""} == {**frame, key: ""}:
            out[-1][key] += frame[key]
        else:
            out.append(frame)
    return out


@pytest.mark.parametrize("name", MAKERS)
def test_a_call_that_is_cut_off_after_single_pieces_is_broken_with_all_of_them(name: str) -> None:
    encoder = MAKERS[name]()
    pieces = [ToolCallDelta(0, text) for text in ('{"a"', ":", '"<b')]
    for event in [ToolCallStart(0, "call_1", "pay"), *pieces]:
        encoder.payloads(event)
    (broken,) = [move for move in encoder._fold.close() if isinstance(move, f.CallBroken)]
    assert broken.event.raw == '{"a":"<b'


@pytest.mark.parametrize("name", MAKERS)
def test_an_echo_after_single_pieces_stands_where_it_came(name: str) -> None:
    encoder = MAKERS[name]()
    for event in (TextDelta("ab"), TextDelta("cde"), TextDelta("f")):
        encoder.payloads(event)
    (run,) = encoder._fold._runs.values()
    assert run.size == 6


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([" ", '{"a":', "1}"], [' {"a":', "1}"]),
        (["f(", "{}", ")"], []),
        ([" ", "f(", "{}"], []),
        (["{", "}"], ["{", "}"]),
    ],
)
def test_ag_ui_clients_hear_single_pieces_of_json_alone(pieces: list[str], told: list[str]) -> None:
    encoder = MAKERS["ag-ui"]()
    encoder.payloads(ToolCallStart(0, "call_1", "pay"))
    frames = [json.loads(p) for text in pieces for p in encoder.payloads(ToolCallDelta(0, text))]
    assert [frame["delta"] for frame in frames] == told


STARTS = [
    ToolCallStart(0, "a%b", "<pay>"), ToolCallStart(0, 'é"\u2028', "%s"),
    ToolCallStart(0, "a", "web", "server-tool", "provider"), ToolCallStart(0, "a", "f", agent="x"),
    ToolCallStart(0, "", "f"),
]  # fmt: skip


@pytest.mark.parametrize("begun", STARTS)
@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_a_call_is_told_in_the_same_bytes_alone_and_with_others(
    name: str, begun: ToolCallStart
) -> None:
    """Frames that are filled in say to the byte what they would if they were written as a whole."""
    whole = ToolCall(
        0, begun.id, begun.name, {"a": "<%b>"}, '{"a":"<%b>"}', begun.family, begun.runs_on, 0,
        Provenance("natural", None, None, "stated", ""), None, begun.agent,
    )  # fmt: skip
    again = ToolCallStart(1, begun.id, begun.name)
    events = [
        StreamStart("p", "m", "r"), begun, ToolCallDelta(0, '{"a":'), ToolCallDelta(0, '"<%b>"}'), whole,
        TextDelta("x"), again, ToolCallStart(1, "z", "f"), TextDelta("y"), ToolCallStart(2, "z", "f"), whole,
    ]  # fmt: skip
    single, batched = MAKERS[name](), MAKERS[name]()
    alone = [line for event in events for line in single.payloads(event)]
    assert alone == [safe_json(json.loads(line)) for line in alone]
    assert joined(alone) == joined(batched.payloads(*events))
    ended = [line for line in alone if b'"checksum":' in line]
    assert len(ended) == 2
    assert not any(
        b"null" in line or b'"provider"' in line for line in ended
    )  # what is not known is not told
    by_provider = begun.runs_on == "provider"
    assert any(b'"providerExecuted":true' in line for line in alone[:4]) == by_provider


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_of_calls_that_are_over_nothing_is_held(name: str) -> None:
    encoder = MAKERS[name]()
    for number, text in enumerate(("{}", "", "f()")):
        encoder.payloads(ToolCallStart(number, f"call_{number}", "f"))
        encoder.payloads(ToolCallDelta(number, text))
        encoder.payloads(ToolCall(number, f"call_{number}", "f", {}, text))
    held = [each for each in vars(encoder).values() if isinstance(each, dict | set)]
    assert [each for each in held if any(isinstance(key, f.Call) for key in each)] == []
