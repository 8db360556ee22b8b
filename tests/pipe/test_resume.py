"""A response that is cut and goes on over another connection: nothing is told twice, nothing is lost
in silence. In one pipe (``resume``) the two legs give what the whole would; a new one (``after``), of
another program perhaps, tells the rest."""

from __future__ import annotations

import json
import re
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Normalizer
from streamnorm.core.cursor import Cursor
from streamnorm.errors import UsageError
from streamnorm.events import Event, Failed, TextDelta, ToolCall
from tests.conftest import (
    RECORDINGS,
    assert_well_formed,
    frames_of,
    load,
    run,
    some,
    take_id,
    take_paths,
    text_of,
)

PLACED = ("openai_responses", "azure_foundry", "gemini_interactions")


def can_resume(path: Path) -> bool:
    take, body = load(path)
    pipe = Normalizer(path.parent.name, seed=take.seed)
    pipe.feed(body)
    return pipe.cursor is not None and body[:1] != b"{"


@cache
def resumable() -> list[Path]:
    return [p for p in take_paths() if p.parent.name in PLACED and can_resume(p)]


over_resumable = pytest.mark.parametrize("path", some(resumable(), 60), ids=take_id)


def cuts(frames: list[bytes]) -> list[int]:
    return some(range(1, len(frames)), 12)


def created(number: int) -> dict[str, Any]:
    response = {"id": "resp_1", "model": "m"}
    return {"type": "response.created", "sequence_number": number, "response": response}


def added(number: int) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "now",
        "arguments": "",
    }
    kind = "response.output_item.added"
    return {"type": kind, "sequence_number": number, "output_index": 0, "item": item}


def piece(number: int, text: str) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    where = {"output_index": 0, "item_id": "fc_1"}
    return {"type": kind, "sequence_number": number, **where, "delta": text}


def done(number: int, arguments: str) -> dict[str, Any]:
    said = added(number)
    item = {**said["item"], "arguments": arguments, "status": "completed"}
    return {**said, "type": "response.output_item.done", "item": item}


def end(number: int) -> dict[str, Any]:
    return {**created(number), "type": "response.completed"}


# --- one pipe -------------------------------------------------------------------------------------


def test_takes_of_every_wire_with_places_can_be_resumed():
    assert {path.parent.name for path in resumable()} == set(PLACED)
    assert len(resumable()) > 100


@over_resumable
@pytest.mark.parametrize("overlap", [0, 1, 3, 1000])
def test_one_pipe_over_both_legs_tells_what_the_whole_would(path: Path, overlap: int):
    take, body = load(path)
    frames, provider = frames_of(body), path.parent.name
    whole = run(provider, [body], seed=take.seed)
    for cut in cuts(frames):
        half = frames[cut][: len(frames[cut]) // 2] if cut % 2 else b""
        pipe = Normalizer(provider, seed=take.seed)
        events = pipe.feed(b"".join(frames[:cut]) + half)
        if pipe.ended or pipe.cursor is None:
            continue
        if provider == "gemini_interactions" and overlap == 3:
            continue  # where a token means nothing, only its own event and the whole are known
        pipe.resume()
        events += pipe.feed(b"".join(frames[max(0, cut - overlap) :])) + pipe.close()
        assert events == whole, f"cut at event {cut}"
        assert pipe.notes["stream.overlap"] == min(cut, overlap) - blank(frames[:cut], overlap)


@over_resumable
def test_frame_by_frame_a_resumed_pipe_tells_what_it_tells_of_all_at_once(path: Path):
    take, body = load(path)
    frames = frames_of(body)
    at = len(frames) // 2
    told = []
    for first, second in (
        (frames[:at], frames[max(0, at - 2) :]),
        ([b"".join(frames[:at])], [b"".join(frames[max(0, at - 2) :])]),
    ):
        pipe = Normalizer(path.parent.name, seed=take.seed)
        events = [event for chunk in first for event in pipe.feed(chunk)]
        if pipe.ended or pipe.cursor is None:
            return
        pipe.resume()
        events += [event for chunk in second for event in pipe.feed(chunk)]
        told.append((events, pipe.cursor, pipe.notes))
    assert told[0] == told[1]


def test_after_a_failure_the_cursor_is_at_the_last_event_that_was_read():
    frames = [created(0), added(1), piece(2, '{"n"'), piece(3, ":1"), piece(4, "}")]
    body = [f"data: {json.dumps(frame)}\n\n".encode() for frame in frames]
    body.insert(3, b"data: {oops\n\n")
    cursors = []
    for chunks in (body, [b"".join(body)]):
        pipe = Normalizer("openai_responses")
        for chunk in chunks:
            pipe.feed(chunk)
        cursors.append(pipe.cursor)
    assert cursors[0] == cursors[1]
    assert Cursor.read(cursors[0] or "").at == 2


@pytest.mark.parametrize("last", ["error", "response.incomplete", "response.completed"])
def test_after_an_end_the_cursor_is_at_the_event_that_ended_it(last: str):
    frames = [created(0), added(1), piece(2, '{"n"'), piece(3, ":1"), piece(4, "}")]
    frames.append({"type": last, "sequence_number": 5, "response": {"id": "resp_1"}})
    body = [f"data: {json.dumps(frame)}\n\n".encode() for frame in frames]
    for chunks in (body, [b"".join(body)], [b"".join(body) + b": bye\n\n"]):
        pipe = Normalizer("openai_responses")
        for chunk in chunks:
            pipe.feed(chunk)
        assert pipe.ended
        assert Cursor.read(pipe.cursor or "").at == 5


def test_another_response_is_not_the_rest_of_this_one():
    pipe = Normalizer("openai_responses")
    for payload in (created(0), added(1), piece(2, '{"to":"bob",'), piece(3, '"sum":1')):
        pipe.feed_payload(payload)
    pipe.resume()
    other = {**created(0), "response": {"id": "resp_other", "model": "m"}}
    events = [
        e
        for p in (other, added(1), piece(2, "{"), piece(3, "9"), piece(4, "00}"))
        for e in pipe.feed_payload(p)
    ]
    assert [event.kind for event in events] == ["broken_tool_call", "failed"]
    assert events[-1].reason == "protocol"


def number_of(frame: bytes) -> int | None:
    """The place that a frame says it has."""
    found = re.search(rb'"sequence_number":(\d+)', frame)
    return int(found[1]) if found else None


def blank(frames: list[bytes], overlap: int) -> int:
    """Frames without a place among the last ones: they pass, and say nothing twice."""
    tail = frames[-overlap:] if overlap else []
    return sum(b'"sequence_number"' not in f and b'"event_id"' not in f for f in tail)


@given(st.data())
def test_any_cut_at_any_byte_and_any_chunking_of_the_rest_tells_the_whole(data: st.DataObject):
    path = data.draw(
        st.sampled_from([p for p in resumable() if p.parent.name == "openai_responses"])
    )
    take, body = load(path)
    whole = run(path.parent.name, [body], seed=take.seed)
    at = data.draw(st.integers(0, len(body)))
    pipe = Normalizer(path.parent.name, seed=take.seed)
    events = pipe.feed(body[:at])
    if pipe.ended or pipe.cursor is None:
        return
    number = Cursor.read(pipe.cursor).at
    frames = frames_of(body)
    begin = next(n for n, f in enumerate(frames) if number_of(f) == number)
    rest = b"".join(frames[data.draw(st.integers(0, begin + 1)) :])
    pipe.resume()
    cut = data.draw(st.integers(0, len(rest)))
    events += pipe.feed(rest[:cut]) + pipe.feed(rest[cut:]) + pipe.close()
    assert events == whole


def place_in(frame: bytes) -> str | None:
    """As it is written, a number or a token."""
    found = re.search(rb'"(?:sequence_number|event_id)": ?"?([^",}]+)', frame)
    return found[1].decode() if found else None


@cache
def placed_everywhere() -> list[Path]:
    """Takes whose events all have a place, and each its own."""
    found = []
    for path in resumable():
        places = [place_in(frame) for frame in frames_of(load(path)[1]) if b"[DONE]" not in frame]
        if None not in places and len(set(places)) == len(places):
            found.append(path)
    return found


def heard(pipe: Normalizer, body: bytes, sizes: list[int]) -> list[Event]:
    """In chunks of these sizes, and all that is left in one."""
    events = []
    for size in sizes:
        events += pipe.feed(body[:size])
        body = body[size:]
    return events + pipe.feed(body)


def reached(pipe: Normalizer, frames: list[bytes]) -> int:
    """How many events were heard, as the cursor says."""
    if pipe.cursor is None:
        return 0
    at = str(Cursor.read(pipe.cursor).at)
    return next(n for n, frame in enumerate(frames, 1) if place_in(frame) == at)


def test_takes_of_every_wire_with_places_have_one_at_each_event():
    assert {path.parent.name for path in placed_everywhere()} == set(PLACED)


@given(st.data())
def test_legs_that_are_lost_anywhere_also_in_what_was_heard_tell_the_whole(data: st.DataObject):
    provider = data.draw(st.sampled_from(PLACED))
    path = data.draw(st.sampled_from([p for p in placed_everywhere() if p.parent.name == provider]))
    take, body = load(path)
    frames, sizes = frames_of(body), st.lists(st.integers(0, 900), max_size=4)
    pipe = Normalizer(provider, seed=take.seed)
    cut = data.draw(st.integers(1, len(frames) - 1))
    events = heard(pipe, b"".join(frames[:cut]), data.draw(sizes))
    for lost in (True, True, False):
        at = reached(pipe, frames)
        if pipe.ended or not at:
            return
        pipe.resume()
        begins = [0, at - 1, at] if provider == "gemini_interactions" else range(at + 1)
        begin = data.draw(st.sampled_from(begins))
        leg = b"".join(frames[begin:])
        if lost:  # in what was heard, or soon behind it
            near = len(b"".join(frames[begin : at + 2]))
            leg = leg[: data.draw(st.integers(0, near))]
        events += heard(pipe, leg, data.draw(sizes))
        assert reached(pipe, frames) >= at, "the cursor went back"
    assert events + pipe.close() == run(provider, [body], seed=take.seed)


SAID = [
    b"data: %s\n\n" % json.dumps(payload).encode()
    for payload in (
        created(0), {**created(1), "type": "response.in_progress"}, added(2), piece(3, '{"a'),
        piece(4, '":1'), piece(5, "}"), done(6, '{"a":1}'), end(7),
    )
]  # fmt: skip


@pytest.mark.parametrize("second", [(0, 1), (0, 3), (2, 4), (3, 5), (4, 4), (4, 5)])
@pytest.mark.parametrize("half", [b"", b"\n", b"\xef\xbb", b"<html>", b'data: {"type"'])
def test_a_leg_that_is_lost_in_its_overlap_takes_nothing_back(second: tuple[int, int], half: bytes):
    pipe = Normalizer("openai_responses")
    events = pipe.feed(b"".join(SAID[:5]))
    pipe.resume()
    events += pipe.feed(b"".join(SAID[slice(*second)]) + half)
    assert pipe.cursor == "openai_responses:resp_1:4:1"
    pipe.resume()
    assert pipe.cursor == "openai_responses:resp_1:4:1"
    events += pipe.feed(b"".join(SAID[second[1] :]))
    assert events == run("openai_responses", [b"".join(SAID)])
    overlap = 5 - second[0]  # each of them came once more, over one leg or the other
    notes = {"stream.resumed": 2, "stream.overlap": overlap, "stream.cut_event": bool(half.strip())}
    assert pipe.notes == {name: times for name, times in notes.items() if times}


@pytest.mark.parametrize("begin", [0, 6, 7])
@pytest.mark.parametrize("second", [(0, 1), (0, 5), (6, 7), (7, 7)])
def test_a_leg_that_is_lost_before_its_token_comes_takes_nothing_back(
    second: tuple[int, int], begin: int
):
    take, body = load(RECORDINGS / "gemini_interactions" / "event_ids.sse")
    frames = frames_of(body)
    pipe = Normalizer("gemini_interactions", seed=take.seed)
    events = pipe.feed(b"".join(frames[:7]))
    cursor = pipe.cursor
    pipe.resume()
    events += pipe.feed(b"".join(frames[slice(*second)]))
    assert pipe.cursor == cursor
    pipe.resume()
    events += pipe.feed(b"".join(frames[begin:])) + pipe.close()
    assert events == run("gemini_interactions", [body], seed=take.seed)


@pytest.mark.parametrize("legs", [[()], [(), (0, 2)], [(0, 2), (1, 3)]])
def test_a_new_pipe_whose_legs_are_lost_before_there_is_news_is_where_it_began(
    legs: list[tuple[int, ...]],
):
    cursor = "openai_responses:resp_1:3:1"
    pipe = Normalizer(after=cursor)
    for leg in legs:
        pipe.feed(b"".join(SAID[slice(*leg)]) if leg else b"")
        assert pipe.cursor == cursor
        pipe.resume()
    events = pipe.feed(b"".join(SAID))
    assert [(e.id, e.arguments) for e in events if isinstance(e, ToolCall)] == [
        ("call_1", {"a": 1})
    ]
    assert pipe.cursor == "openai_responses:resp_1:7:1"


def test_a_new_pipe_that_heard_the_event_of_its_token_alone_is_where_it_began():
    frames = frames_of(load(RECORDINGS / "gemini_interactions" / "event_ids.sse")[1])
    first = Normalizer("gemini_interactions")
    first.feed(b"".join(frames[:7]))
    assert first.cursor is not None
    second = Normalizer(after=first.cursor)
    second.feed(frames[6])
    second.feed(b": a comment\n\n")
    assert second.cursor == first.cursor
    second.resume()
    events = second.feed(b"".join(frames[6:]))
    assert events == Normalizer(after=first.cursor).feed(b"".join(frames[7:]))


def test_another_response_behind_a_cut_leaves_the_cursor_where_it_was():
    pipe = Normalizer("openai_responses")
    pipe.feed(b"".join(SAID[:4]))
    pipe.resume()
    other = {**created(0), "response": {"id": "resp_other", "model": "m"}}
    events = pipe.feed(b"data: %s\n\n" % json.dumps(other).encode())
    assert events[-1].kind == "failed"
    assert pipe.cursor == "openai_responses:resp_1:3:1"


def test_a_pipe_can_be_resumed_again_and_again():
    path = next(p for p in resumable() if take_id(p) == "openai_responses/interleaved_calls")
    take, body = load(path)
    frames = frames_of(body)
    pipe = Normalizer("openai_responses", seed=take.seed)
    events: list[Event] = pipe.feed(b"".join(frames[:2]))
    for at in range(2, len(frames)):
        pipe.resume()
        events += pipe.feed(b"".join(frames[at - 2 : at + 1]))
    assert events + pipe.close() == run("openai_responses", [body], seed=take.seed)
    assert pipe.notes["stream.resumed"] == len(frames) - 2


def test_payloads_are_resumed_as_bytes_are():
    path = next(p for p in resumable() if take_id(p) == "openai_responses/parallel_calls")
    take, body = load(path)
    payloads = [json.loads(f.partition(b"data: ")[2]) for f in frames_of(body)]
    pipe = Normalizer("openai_responses", seed=take.seed)
    events = [event for p in payloads[:9] for event in pipe.feed_payload(p)]
    pipe.resume()
    events += [event for p in payloads[5:] for event in pipe.feed_payload(p)]
    assert events + pipe.close() == run("openai_responses", [body], seed=take.seed)


@pytest.mark.parametrize("number", [4, 5])
def test_a_hole_between_the_legs_breaks_the_calls_that_were_open(number: int):
    pipe = Normalizer("openai_responses")
    said = [created(0), {**created(1), "type": "response.in_progress"}, added(2), piece(3, '{"a')]
    for payload in said:
        pipe.feed_payload(payload)
    pipe.resume()
    events = pipe.feed_payload(piece(number, '":1}')) + pipe.feed_payload(done(number + 1, ""))
    events += pipe.feed_payload(end(number + 2))
    whole = number == 4
    assert events[-2].kind == ("tool_call" if whole else "broken_tool_call")
    assert pipe.notes["wire.gap"] == (0 if whole else 1)


def test_a_hole_that_pieces_hid_is_not_forgotten_by_a_cursor():
    """Pieces are counted, not looked at: the cursor is what the last of them says it is."""
    pipe = Normalizer("openai_responses")
    said = [created(0), {**created(1), "type": "response.in_progress"}, added(2)]
    for payload in [*said, piece(3, '{"a'), piece(7, '":1}')]:
        pipe.feed_payload(payload)
    assert Cursor.read(pipe.cursor or "").at == 7
    pipe.resume()
    events = pipe.feed_payload(done(8, "")) + pipe.feed_payload(end(9))
    assert [event.kind for event in events] == ["broken_tool_call", "finish"]


@pytest.mark.parametrize("number", [4, 44, None])
def test_a_number_beside_the_response_is_no_hole_in_it(number: int | None):
    """What is injected or steered may be numbered with the response, on its own, or not at all."""
    injected = {
        "type": "response.inject.created",
        "sequence_number": number,
        "response_id": "resp_1",
    }
    following = 5 if number == 4 else 4
    said = [created(0), {**created(1), "type": "response.in_progress"}, added(2), piece(3, '{"a')]
    said += [injected, piece(following, '":1}'), done(following + 1, ""), end(following + 2)]
    pipe = Normalizer("openai_responses")
    events = [event for payload in said for event in pipe.feed_payload(payload)]
    assert [event.kind for event in events if event.kind.endswith("tool_call")] == ["tool_call"]
    assert pipe.notes["wire.gap"] == 0


def test_a_cursor_counts_pieces_of_calls_that_broke_though_the_last_bytes_were_a_comment():
    pipe = Normalizer("openai_responses")
    said = [created(0), {**created(1), "type": "response.in_progress"}, added(2), piece(3, '{"a')]
    for payload in said:
        pipe.feed(b"data: " + json.dumps(payload).encode() + b"\n\n")
    pipe.feed(b": ping\n\n")
    pipe.fail("transport", "gone")
    assert pipe.cursor == "openai_responses:resp_1:3:1"


# --- a new pipe -----------------------------------------------------------------------------------

# What no cursor can carry: the text that fragments gave, where no copy says it again or it is another.
UNLIKE = {
    "openai_responses/done_differs_from_deltas": "only the copy is heard, which says otherwise",
    "openai_responses/emptied_done": "its copies are empty",
    "openai_responses/no_arguments": "nothing says that there are none",
    "openai_responses/incomplete_unknown": "it never was closed",
    "openai_responses/empty_output_in_completed": "its end names no call",
    "openai_responses/invalid_json": "its end names a call that broke",
    "openai_responses/text_after_its_copy": "the copy was told before its pieces",
    "azure_foundry/type_output_message": "its text is in the copy alone",
    "azure_foundry/memory_search_without_id": "nothing says that nothing was asked for",
    "azure_foundry/type_memory_search_call": "nothing says that nothing was asked for",
}


@over_resumable
@pytest.mark.parametrize("overlap", [0, 1000])
def test_a_new_pipe_tells_the_rest_and_nothing_twice(path: Path, overlap: int):
    take, body = load(path)
    frames, provider = frames_of(body), path.parent.name
    whole = run(provider, [body], seed=take.seed)
    for cut in cuts(frames):
        first, second = two_pipes(provider, take.seed, frames, cut, overlap)
        if second is None:
            continue
        assert_well_formed(second)
        assert second[-1].kind == whole[-1].kind
        assert take_id(path) in UNLIKE or second[-1].reason == whole[-1].reason
        told = calls_of(first) + calls_of(second)
        if take_id(path) not in UNLIKE:
            assert text_of(first) + text_of(second) == text_of(whole)
        if provider != "gemini_interactions" and take_id(path) not in UNLIKE:
            assert sorted(told) == sorted(calls_of(whole)), f"cut at event {cut}"
        elif take_id(path) != "openai_responses/done_differs_from_deltas":
            assert set(told) <= set(calls_of(whole))
        assert len(told) == len(set(told)), "a call was told twice"


def two_pipes(
    provider: str, seed: str, frames: list[bytes], cut: int, overlap: int
) -> tuple[list[Event], list[Event] | None]:
    pipe = Normalizer(provider, seed=seed)
    first = pipe.feed(b"".join(frames[:cut]))
    over = run(provider, [b"".join(frames[:cut])], seed=seed)[-1].kind == "finish"
    if over or pipe.ended or pipe.cursor is None:
        return first, None
    first += pipe.fail("transport", "gone")
    rest = Normalizer(after=pipe.cursor, seed=seed)
    second = rest.feed(b"".join(frames[max(0, cut - overlap) :])) + rest.close()
    return first, second


def calls_of(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(e.id, e.name, json.dumps(e.arguments)) for e in events if isinstance(e, ToolCall)]


def test_a_call_that_was_open_when_it_was_cut_is_whole_where_a_copy_says_it_again():
    first = Normalizer("openai_responses")
    for payload in [
        created(0),
        {**created(1), "type": "response.in_progress"},
        added(2),
        piece(3, '{"a'),
    ]:
        first.feed_payload(payload)
    assert isinstance(first.fail("transport", "gone")[-1], Failed)
    assert (
        first.cursor == "openai_responses:resp_1:3:1"
    )  # also of pieces that broke with their call
    second = Normalizer(after=first.cursor)
    events = second.feed_payload(piece(4, '":1}')) + second.feed_payload(done(5, '{"a":1}'))
    assert [(e.kind, e.arguments) for e in events if isinstance(e, ToolCall)] == [
        ("tool_call", {"a": 1})
    ]
    assert events[0].response_id == "resp_1"


@pytest.mark.parametrize("copy", ["", '{"a'])
def test_a_call_that_was_open_when_it_was_cut_is_broken_where_no_copy_says_it_again(copy: str):
    second = Normalizer(after="openai_responses:resp_1:3:1")
    events = second.feed_payload(piece(4, '{"b":2}')) + second.feed_payload(done(5, copy))
    events += second.feed_payload(end(6))
    assert [event.kind for event in events if event.kind.endswith("tool_call")] == [
        "broken_tool_call"
    ]


def told_after(cursor: str, *payloads: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a new pipe tells of calls and results: each call's fate and arguments, or the result."""
    pipe = Normalizer(after=cursor)
    events = [event for payload in payloads for event in pipe.feed_payload(payload)] + pipe.close()
    assert events[-1].kind == "finish"
    kinds = ("tool_call", "broken_tool_call", "tool_result")
    return [
        (e.kind, getattr(e, "arguments", getattr(e, "output", None)))
        for e in events
        if e.kind in kinds
    ]


def at(index: int | None, payload: dict[str, Any]) -> dict[str, Any]:
    """The same in another place, or in none."""
    return {k: v for k, v in {**payload, "output_index": index}.items() if v is not None}


@pytest.mark.parametrize(
    ("index", "fate"),
    [(0, "broken_tool_call"), (1, "tool_call"), (2, "tool_call"), (None, "broken_tool_call")],
)
def test_without_a_copy_only_what_began_in_a_place_behind_the_cut_is_whole(
    index: int | None, fate: str
):
    said = (added(4), piece(5, '{"a":1}'), done(6, ""))
    told = told_after("openai_responses:resp_1:3:1", *(at(index, p) for p in said), end(7))
    assert [kind for kind, _ in told] == [fate]


def ended_with(number: int, *items: dict[str, Any]) -> dict[str, Any]:
    response = {**created(0)["response"], "status": "completed", "output": list(items)}
    return {**end(number), "response": response}


def test_the_end_says_all_of_a_call_whose_beginning_came_before_the_cut():
    item = {**added(0)["item"], "arguments": '{"a":1}', "status": "completed"}
    said = (piece(4, '":1}'), ended_with(5, item))
    assert told_after("openai_responses:resp_1:3:1", *said) == [("tool_call", {"a": 1})]


def test_such_a_call_is_known_by_its_item_where_its_place_is_not_said():
    item = {**added(0)["item"], "arguments": '{"a":1}', "status": "completed"}
    said = (at(None, piece(4, '":1}')), ended_with(5, item))
    assert told_after("openai_responses:resp_1:3:1", *said) == [("tool_call", {"a": 1})]


def test_the_end_says_no_call_again_that_was_told_before_the_cut():
    item = {**added(0)["item"], "arguments": '{"a":1}', "status": "completed"}
    assert told_after("openai_responses:resp_1:3:1", ended_with(5, item)) == []


def test_the_end_says_the_output_of_a_call_that_was_added_behind_the_cut_and_never_done():
    output = {"type": "function_call_output", "id": "o_1", "call_id": "call_1", "output": "ok"}
    item = {**added(0)["item"], "arguments": '{"a":1}', "status": "completed"}
    begun = {**at(1, added(5)), "item": {**output, "output": ""}}
    said = (done(4, '{"a":1}'), begun, ended_with(6, item, output))
    assert told_after("openai_responses:resp_1:3:2", *said) == [
        ("tool_call", {"a": 1}), ("tool_result", "ok"),
    ]  # fmt: skip


def test_an_item_in_an_earlier_place_does_not_take_back_how_many_have_begun():
    pipe = Normalizer("openai_responses")
    first = {**created(1), "type": "response.in_progress"}
    for payload in [created(0), first, at(4, added(2)), at(2, added(3))]:
        pipe.feed_payload(payload)
    assert pipe.cursor == "openai_responses:resp_1:3:5"


def test_a_new_pipe_sees_the_hole_before_its_first_event():
    second = Normalizer(after="openai_responses:resp_1:3:1")
    second.feed_payload(added(9))
    assert second.notes["wire.gap"] == 1


def test_a_text_that_was_told_before_the_cut_is_not_told_again_by_its_copies():
    second = Normalizer(after="openai_responses:resp_1:4:1")
    text = {
        "type": "response.output_text.done",
        "sequence_number": 6,
        "output_index": 0,
        "text": "Hello.",
    }
    more = {
        "type": "response.output_text.delta",
        "sequence_number": 5,
        "output_index": 0,
        "delta": "lo.",
    }
    events = second.feed_payload(more) + second.feed_payload(text)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["lo."]
    assert second.notes["stream.retold"] == 1


def test_an_event_without_a_number_leaves_the_cursor_where_it_was_and_hides_no_hole():
    for number, kind in ((3, "tool_call"), (4, "tool_call"), (5, "broken_tool_call")):
        pipe = Normalizer("openai_responses")
        for payload in (created(0), {**created(1), "type": "response.in_progress"}, added(2)):
            pipe.feed_payload(payload)
        before = pipe.cursor
        pipe.feed_payload({"type": "keepalive"})
        assert pipe.cursor == before is not None
        events = pipe.feed_payload(piece(number, "{}")) + pipe.feed_payload(done(number + 1, ""))
        assert (events + pipe.feed_payload(end(number + 2)))[-2].kind == kind


def test_an_event_without_a_number_is_no_end_of_what_was_heard_before():
    second = Normalizer(after="openai_responses:resp_1:4:1")
    said = {"type": "response.output_text.delta", "output_index": 0}
    heard, news = ({**said, "sequence_number": n, "delta": d} for n, d in ((4, "old"), (5, "new")))
    events = [e for p in ({"type": "keepalive"}, heard, news) for e in second.feed_payload(p)]
    assert text_of(events) == "new"
    assert second.notes == {"wire.keepalive": 1, "stream.overlap": 1}


# --- cursors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "gemini", "ollama"])
def test_a_wire_without_places_has_no_cursor_and_cannot_be_resumed(provider: str):
    path = next(p for p in take_paths() if p.parent.name == provider)
    pipe = Normalizer(provider)
    pipe.feed(load(path)[1][:400])
    assert pipe.cursor is None
    with pytest.raises(UsageError, match="cannot be resumed: its wire has no place to go on from"):
        pipe.resume()


def test_a_stream_that_has_ended_cannot_be_resumed():
    path = next(p for p in resumable() if take_id(p) == "openai_responses/text_only")
    pipe = Normalizer("openai_responses")
    pipe.feed(load(path)[1])
    with pytest.raises(UsageError, match="cannot be resumed: it has ended"):
        pipe.resume()


@pytest.mark.parametrize("number", [0, 1, 5])
def test_the_first_event_is_a_place_and_half_of_the_second_is_forgotten(number: int):
    path = next(p for p in resumable() if take_id(p) == "openai_responses/text_only")
    frames = frames_of(load(path)[1])
    payloads = [json.loads(frame.partition(b"data: ")[2]) for frame in frames]
    frames = [
        b"data: %s\n\n" % json.dumps({**p, "sequence_number": at}).encode()
        for at, p in enumerate(payloads, number)
    ]
    pipe, whole = Normalizer("openai_responses"), Normalizer("openai_responses")
    events = pipe.feed(frames[0])
    assert pipe.cursor == f"openai_responses:{payloads[0]['response']['id']}:{number}:0"
    events += pipe.feed(frames[1][:40])
    pipe.resume()
    events += pipe.feed(b"".join(frames[1:])) + pipe.close()
    assert events == whole.feed(b"".join(frames)) + whole.close()
    assert pipe.notes == {"stream.cut_event": 1, "stream.resumed": 1}


def test_a_piece_after_the_first_number_is_no_place_until_another_says_that_they_count():
    pipe = Normalizer("openai_responses")
    pipe.feed_payload(created(0))
    said = {"type": "response.output_text.delta", "output_index": 0, "delta": "x"}
    pipe.feed_payload({**said, "sequence_number": 0})
    assert pipe.cursor is None


def test_numbers_that_do_not_count_up_are_no_places():
    pipe = Normalizer("openai_responses")
    for _ in range(3):
        pipe.feed_payload(created(0))
    assert pipe.cursor is None


def test_a_response_without_an_id_has_no_cursor():
    pipe = Normalizer("openai_responses")
    for number, kind in enumerate(["created", "in_progress"]):
        pipe.feed_payload({**created(number), "type": f"response.{kind}", "response": {}})
    assert pipe.cursor is None


def test_a_response_whose_id_was_not_known_may_say_it_over_the_next_connection():
    pipe = Normalizer("openai_responses")
    for number, kind in enumerate(["created", "in_progress"]):
        pipe.feed_payload({**created(number), "type": f"response.{kind}", "response": {}})
    pipe.resume()
    events = pipe.feed_payload(added(2)) + pipe.feed_payload(done(3, '{"a":1}'))
    events += pipe.feed_payload(ended_with(4, done(3, '{"a":1}')["item"]))
    assert [e.kind for e in events[-2:]] == ["tool_call", "finish"]


def test_what_was_read_as_payloads_goes_on_as_payloads():
    pipe = Normalizer("openai_responses")
    for payload in [created(0), {**created(1), "type": "response.in_progress"}]:
        pipe.feed_payload(payload)
    pipe.resume()
    with pytest.raises(UsageError, match="bytes after payloads"):
        pipe.feed(b"data: " + json.dumps(end(2)).encode() + b"\n\n")


@pytest.mark.parametrize(
    "cursor",
    [
        Cursor("openai_responses", "resp:1/é", 17, 3),
        Cursor("gemini_interactions", "v1_x", "a:b'/+=", 0),
    ],
)
def test_a_cursor_is_text_that_says_the_same_when_it_is_read_back(cursor: Cursor):
    assert Cursor.read(str(cursor)) == cursor
    assert json.loads(json.dumps(str(cursor))) == str(cursor)


@pytest.mark.parametrize(
    "text", ["", "x", "a:b", "a:b:c:1", "a::1:1", "a:b:1", "a:b:-1:0", "a:b:1:1:1"]
)
def test_what_is_no_cursor_is_refused(text: str):
    with pytest.raises(UsageError, match=r"is no cursor: pass what stream\.cursor has given"):
        Normalizer(after=text)


def test_a_cursor_of_another_provider_is_refused():
    with pytest.raises(UsageError, match="a cursor of 'anthropic', not of 'openai_responses'"):
        Normalizer("openai_responses", after="anthropic:r:5:0")
    assert Normalizer(after="openai_responses:r:5:0").provider == "openai_responses"


def test_a_pipe_that_is_over_holds_little_and_knows_where_it_ended():
    """The last event of a response may repeat all of it."""
    said = "x" * 1_000_000
    last = end(1)
    last["response"]["instructions"] = said
    body = b"".join(f"data: {json.dumps(p)}\n\n".encode() for p in (created(0), last))
    del said, last
    pipe = Normalizer("openai_responses")
    tracemalloc.start()
    try:
        for at in range(0, len(body), 16384):
            pipe.feed(body[at : at + 16384])
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert pipe.ended
    assert held < 300_000
    assert Cursor.read(pipe.cursor or "").at == 1
