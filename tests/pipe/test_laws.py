"""What holds for every stream, whatever the wire says and wherever it is cut.

Over all takes of all providers, and over streams that Hypothesis builds.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnorm import Normalizer
from streamnorm.errors import NoteRaised
from streamnorm.events import Event, ToolCall
from streamnorm.framing.sse import SSE, read
from streamnorm.providers import PROVIDERS
from tests.conftest import (
    Chat,
    Messages,
    assert_well_formed,
    at_random,
    bytewise,
    calls_of,
    cuts_of,
    frames_of,
    load,
    over_takes,
    piped,
    run,
    said,
    some,
    sse,
    take_id,
    take_paths,
    text_of,
)
from tests.framing.reference_sse import messages


def key(call: ToolCall) -> tuple[Any, ...]:
    """What a call says. A minted id is made from its number, which a cut cannot change."""
    return (call.choice, call.id, call.name, json.dumps(call.arguments), call.runs_on)


def calls_counted(events: list[Event]) -> Counter[Any]:
    return Counter(map(key, calls_of(events)))


# --- chunking and cutting -------------------------------------------------------------------------


@over_takes()
def test_every_cut_gives_no_wrong_call_and_one_end(path: Path):
    take, body = load(path)
    provider = path.parent.name
    whole = run(provider, [body], seed=take.seed)
    assert_well_formed(whole)
    known = calls_counted(whole)
    for cut in cuts_of(body, take_id(path), every=4096):
        events = run(provider, [body[:cut]], seed=take.seed)
        assert_well_formed(events)
        wrong = calls_counted(events) - known
        assert not wrong, f"cut at {cut}, after {body[max(0, cut - 40) : cut]!r}: {list(wrong)}"


@over_takes(quick=100)
def test_every_cut_tells_what_the_whole_tells_up_to_there(path: Path):
    """Until its end, a cut stream is a beginning of the whole one."""
    take, body = load(path)
    provider = path.parent.name
    pipe = Normalizer(provider, seed=take.seed)
    heard: list[Event] = []
    at = 0
    for chunk in at_random(body, 400, 5):
        heard += pipe.feed(chunk)
        at += len(chunk)
        fresh = Normalizer(provider, seed=take.seed)
        assert fresh.feed(body[:at]) == heard, f"cut at {at}"


@st.composite
def a_take_and_its_chunks(draw: st.DrawFn) -> tuple[Path, list[bytes]]:
    path = draw(st.sampled_from(take_paths()))
    body = load_once(path)[1]
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=30)))
    return path, [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@cache
def load_once(path: Path) -> tuple[str, bytes]:
    take, body = load(path)
    return take.seed, body


@cache
def events_once(path: Path) -> list[Event]:
    seed, body = load_once(path)
    return run(path.parent.name, [body], seed=seed)


@given(a_take_and_its_chunks())
def test_any_chunking_of_any_take_gives_the_same_events(case: tuple[Path, list[bytes]]):
    path, chunks = case
    assert run(path.parent.name, chunks, seed=load_once(path)[0]) == events_once(path)


# --- interleaving ---------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text("aé😀\"\\{}[]:,\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{", max_size=2), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ARGUMENTS = st.dictionaries(st.text('abc"}', min_size=1, max_size=3), VALUES, max_size=4)


@st.composite
def interleaved(
    draw: st.DrawFn,
) -> tuple[list[tuple[str, str, dict, str]], list[tuple[int, str | None]]]:
    """Calls, and the order in which their pieces come: (call, fragment), None opens it."""
    number = draw(st.integers(1, 8))
    calls, queues = [], []
    for n in range(number):
        arguments = draw(ARGUMENTS)
        text = json.dumps(arguments, ensure_ascii=draw(st.booleans()))
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=5)))
        bounds = [0, *cuts, len(text)]
        fragments = [text[a:b] for a, b in itertools.pairwise(bounds) if a < b]
        calls.append((f"id_{n}", f"tool_{n % 3}", arguments, text))
        queues.append([(n, None), *((n, f) for f in fragments)])
    order = draw(st.permutations([n for n, q in enumerate(queues) for _ in q]))
    return calls, [queues[n].pop(0) for n in order]


def on_chat(calls, pieces) -> bytes:
    body = b""
    for n, fragment in pieces:
        id, name, _, _ = calls[n]
        body += Chat.call(n, id, name) if fragment is None else Chat.call(n, None, None, fragment)
    return body + Chat.end()


def on_messages(calls, pieces) -> bytes:
    left = Counter(n for n, _ in pieces)
    body = Messages.START
    for n, fragment in pieces:
        id, name, _, _ = calls[n]
        body += Messages.open(n, id, name) if fragment is None else Messages.args(n, fragment)
        left[n] -= 1
        body += Messages.close(n) if not left[n] else b""
    return body + Messages.end()


@pytest.mark.parametrize(
    ("provider", "build"), [("openai_chat", on_chat), ("anthropic", on_messages)]
)
@given(case=interleaved(), seed=st.integers(0, 99))
def test_any_interleaving_gives_the_same_calls(provider: str, build, case, seed: int):
    calls, pieces = case
    body = build(calls, pieces)
    events = run(provider, [body])
    assert_well_formed(events)
    expected = [(id, name, arguments) for id, name, arguments, _ in calls]
    assert sorted(said(events), key=lambda c: c[0]) == sorted(expected, key=lambda c: c[0])
    assert {c.id: c.raw for c in calls_of(events)} == {id: text for id, _, _, text in calls}
    assert all(c.provenance.id_source == "natural" for c in calls_of(events))
    assert run(provider, at_random(body, 50, seed)) == events


@pytest.mark.parametrize(
    ("provider", "build"), [("openai_chat", on_chat), ("anthropic", on_messages)]
)
@given(case=interleaved(), where=st.floats(0, 1, exclude_max=True))
def test_no_cut_of_any_interleaving_gives_a_wrong_call(provider: str, build, case, where: float):
    calls, pieces = case
    body = build(calls, pieces)
    events = run(provider, [body[: int(len(body) * where)]])
    assert_well_formed(events)
    expected = {id: (name, arguments) for id, name, arguments, _ in calls}
    for call in calls_of(events):
        assert (call.name, call.arguments) == expected[call.id]


@pytest.mark.parametrize(
    ("provider", "build"), [("openai_chat", on_chat), ("anthropic", on_messages)]
)
def test_a_hundred_and_twenty_eight_calls_at_once_are_kept_apart(provider: str, build):
    calls = [(f"id_{n}", "f", {"n": n}, json.dumps({"n": n})) for n in range(128)]
    pieces: list[tuple[int, str | None]] = [(n, None) for n in range(128)]
    for at in range(12):
        pieces += [(n, c[3][at]) for n, c in enumerate(calls) if at < len(c[3])]
    assert said(run(provider, [build(calls, pieces)])) == [c[:3] for c in calls]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@given(case=interleaved(), where=st.floats(0, 1, exclude_max=True))
def test_an_early_end_of_the_turn_never_gives_arguments_that_were_not_sent(
    reason: str, case, where: float
):
    calls, pieces = case
    body = b"".join(frames_of(on_chat(calls, pieces[: int(len(pieces) * where)]))[:-2])
    events = run("openai_chat", [body + Chat.end(reason)])
    assert_well_formed(events)
    expected = {id: arguments for id, _, arguments, _ in calls}
    for call in calls_of(events):
        assert call.arguments == expected[call.id]


# --- any bytes ------------------------------------------------------------------------------------

OWN = st.sampled_from(sorted(PROVIDERS))


@given(OWN, st.binary(max_size=200), st.booleans())
def test_any_bytes_end_in_one_end_and_raise_nothing(provider: str, body: bytes, skip: bool):
    options = {"on_bad_event": "skip"} if skip else {}
    events = run(provider, [body], **options)
    assert_well_formed(events)
    assert run(provider, bytewise(body), **options) == events


@given(
    OWN,
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([b"{}", b"[]", b'"\\ud83d"', b"[DONE]", b"-1", b"{"])
    ),
)
def test_any_data_ends_in_one_end_and_raises_nothing(provider: str, datas: list[bytes]):
    body = b"".join(b"data: " + data.replace(b"\n", b" ") + b"\n\n" for data in datas)
    events = run(provider, [body], on_bad_event="skip")
    assert_well_formed(events)
    assert run(provider, at_random(body, 9, 1), on_bad_event="skip") == events


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "tool_use", "null", "0", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "x"]), inner),
    max_leaves=5,
)  # fmt: skip


@cache
def payloads_of(path: Path) -> list[Any]:
    """The decoded payloads of an SSE take; empty for takes that are no SSE or hold a bad event."""
    _, body = load_once(path)
    if body[:1] in b"[{\x00":
        return []
    framer = SSE()
    payloads = []
    for block in [*framer.feed(body), *framer.rest()]:
        data = read(block).data
        if data is None or data.strip() in (b"", b"[DONE]"):
            continue
        try:
            payloads.append(json.loads(data))
        except ValueError:
            return []
    return payloads


def places(value: Any, path: tuple = ()) -> list[tuple]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(p for k, v in inner for p in places(v, (*path, k)))]


def put(value: Any, path: tuple, new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@given(st.data())
def test_a_take_with_any_value_changed_raises_nothing(data: st.DataObject):
    path = data.draw(st.sampled_from(take_paths()).filter(payloads_of))
    payloads = list(payloads_of(path))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payloads) - 1))
        where = data.draw(st.sampled_from(places(payloads[at])))
        payloads[at] = put(payloads[at], where, data.draw(JSON))
    body = b"".join(b"data: " + json.dumps(p).encode() + b"\n\n" for p in payloads)
    events = run(path.parent.name, [body])
    assert_well_formed(events)
    assert run(path.parent.name, at_random(body, 300, 1)) == events


@given(st.data())
def test_a_take_with_any_bytes_changed_raises_nothing(data: st.DataObject):
    path = data.draw(st.sampled_from(take_paths()))
    _, body = load_once(path)
    mutant = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(mutant) - 1)))
        size = data.draw(st.integers(0, 20))
        mutant[at : at + size] = data.draw(
            st.binary(max_size=4) | st.just(bytes(mutant[at : at + size]) * 2)
        )
    for options in ({}, {"on_bad_event": "skip"}):
        events = run(path.parent.name, [bytes(mutant)], **options)
        assert_well_formed(events)
        assert run(path.parent.name, at_random(bytes(mutant), 300, 1), **options) == events


@given(st.data())
def test_strict_raises_only_our_error_and_keeps_what_was_heard(data: st.DataObject):
    path = data.draw(st.sampled_from(take_paths()))
    seed, body = load_once(path)
    at = data.draw(st.integers(0, len(body)))
    mutant = body[:at] + data.draw(st.binary(max_size=3)) + body[at:]
    pipe = Normalizer(path.parent.name, seed=seed, strict=True)
    events, raised = strictly(pipe, mutant)
    if raised is None:
        assert_well_formed(events)
    else:
        assert pipe.notes[raised.note] >= 1
        assert pipe.ended
        assert not any(e.kind in ("finish", "failed") for e in raised.events[:-1])


def strictly(pipe: Normalizer, body: bytes) -> tuple[list[Event], NoteRaised | None]:
    """The events, or the tolerance that was raised; any other exception is a failure."""
    try:
        return pipe.feed(body) + pipe.close(), None
    except NoteRaised as raised:
        return [], raised


# --- what is inserted -----------------------------------------------------------------------------

SSE_TAKES = [p for p in take_paths() if payloads_of(p)]
over_sse_takes = pytest.mark.parametrize("path", some(SSE_TAKES, 150), ids=take_id)


def takes_with_calls(provider: str) -> list[Path]:
    return [p for p in SSE_TAKES if p.parent.name == provider and calls_of(events_once(p))]


@over_sse_takes
def test_a_comment_anywhere_changes_nothing_and_is_counted(path: Path):
    seed, body = load_once(path)
    frames = frames_of(body)
    expected, plain = piped(path.parent.name, [b"".join(frames)], seed=seed)
    for at in range(len(frames)):
        changed = b"".join([*frames[:at], b": keep-alive\n\n", *frames[at:]])
        events, pipe = piped(path.parent.name, [changed], seed=seed)
        assert events == expected, f"before event {at}"
        if at and not ended_before(path, at):
            assert pipe.notes["wire.keepalive"] == plain.notes["wire.keepalive"] + 1, (
                f"before event {at}"
            )


def ended_before(path: Path, at: int) -> bool:
    seed, body = load_once(path)
    pipe = Normalizer(path.parent.name, seed=seed)
    pipe.feed(b"".join(frames_of(body)[:at]))
    return pipe.ended


@pytest.mark.parametrize(
    "path", [p for name in PROVIDERS for p in takes_with_calls(name)[:12]], ids=take_id
)
def test_an_unknown_event_anywhere_never_changes_the_calls_and_is_told(path: Path):
    seed, body = load_once(path)
    frames = frames_of(body)
    expected = run(path.parent.name, [b"".join(frames)], seed=seed)
    odd = sse({"type": "moon.phase", "object": "moon.phase", "light": 0.5}, "moon.phase")
    for at in range(len(frames)):
        changed = b"".join([*frames[:at], odd, *frames[at:]])
        events, pipe = piped(path.parent.name, [changed], seed=seed)
        assert said(events) == said(expected), f"before event {at}"
        assert text_of(events) == text_of(expected)
        assert events[-1] == expected[-1]
        if not ended_before(path, at):
            told = [e.payload for e in events if e.kind == "unrecognized"]
            assert any(p.get("light") == 0.5 for p in told if isinstance(p, dict)), (
                f"before event {at}"
            )
            assert pipe.notes["wire.kind_unknown"] >= 1


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat"])
def test_unknown_fields_in_known_payloads_never_change_the_calls(provider: str):
    places_of_fields = {
        "anthropic": [(), ("delta",), ("message",), ("content_block",)],
        "openai_chat": [(), ("choices", 0), ("choices", 0, "delta"), ("choices", 0, "delta", "tool_calls", 0),
                        ("choices", 0, "delta", "tool_calls", 0, "function")],
    }[provider]  # fmt: skip
    for path in takes_with_calls(provider):
        if "object" in path.stem or "unknown" in path.stem:
            continue
        seed, _ = load_once(path)
        payloads = payloads_of(path)
        plain = body_of(path, payloads)
        expected = said(run(provider, [plain], seed=seed))
        for place in places_of_fields:
            if path.stem == "input_absent" and place == ("content_block",):
                continue  # what says no input may say it there: see tests/proof/finds.py
            changed = [added(p, place) for p in payloads]
            events, pipe = piped(provider, [body_of(path, changed)], seed=seed)
            assert said(events) == expected, f"{take_id(path)}: new field in {place}"
            if changed != payloads and place not in {("message",), ("content_block",), ("delta",)}:
                assert pipe.notes["wire.field_unknown"] >= 1, (
                    f"{take_id(path)}: new field in {place}"
                )


def added(payload: Any, place: tuple) -> Any:
    """The payload with a field more in the object at ``place``, if there is one."""
    value = payload
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return payload
    return put(payload, place, {**value, "moon_phase": 0.5}) if isinstance(value, dict) else payload


def body_of(path: Path, payloads: list[Any]) -> bytes:
    body = b"".join(b"data: " + json.dumps(p).encode() + b"\n\n" for p in payloads)
    return body + (Chat.DONE if path.parent.name in ("openai_chat", "mistral") else b"")


# --- one lane of meaning --------------------------------------------------------------------------


@over_sse_takes
def test_payloads_give_what_their_bytes_give(path: Path):
    seed, _ = load_once(path)
    payloads = payloads_of(path)
    if any("\ud800" <= c <= "\udfff" for c in json.dumps(payloads, ensure_ascii=False)):
        return  # a dict from an SDK cannot hold half a character as msgspec writes it
    body = b"".join(sse(compact(p)) for p in payloads)
    # An SDK hands out no end mark: where it is done, payloads may mean what bytes mean with theirs.
    marks = [b"", Chat.DONE] if b"[DONE]" in path.read_bytes() else [b""]
    expected = [run(path.parent.name, [body + mark], seed=seed) for mark in marks]
    pipe = Normalizer(path.parent.name, seed=seed)
    told = [event for payload in payloads for event in pipe.feed_payload(payload)] + pipe.close()
    assert told in expected


def compact(payload: Any) -> str:
    """As our own writer would write it: arguments that are objects keep their exact text."""
    return msgspec.json.encode(payload).decode()


BLOCKS = st.sampled_from(
    [
        "", ":", ": hi", "event: x", "x", "id: 1",
        "DATA", "event: x\nDATA", ": hi\nDATA", "DATA\n: hi", "id: 3\nDATA", "DATA\nid: 3",
        "event: x\n: hi\nDATA", "DATA\nevent: x", "event: x\nid: 1\nDATA", "DATA\ndata:",
        "JSON", ":JSON", "xJSON", "event: xJSON", ": hiJSON", "event: x\nJSON",
    ]
)  # fmt: skip


@given(
    st.lists(st.tuples(BLOCKS, st.sampled_from(["data: ", "data:"]), st.integers(0, 3)), max_size=12),
    st.sampled_from(["openai_chat", "anthropic"]), st.sampled_from(["\n", "\r\n", "\r"]),
)  # fmt: skip
@example(
    [("DATA", "data: ", 1), (": hi", "data: ", 1), (": hiJSON", "data: ", 2)], "openai_chat", "\n"
)
@example([("JSON", "data: ", 0)], "openai_chat", "\n")
def test_a_frame_is_read_by_the_specification_whatever_stood_before_it(
    blocks, provider: str, end: str
):
    """The quick way through the usual frames must never see what the specification does not."""
    written = []
    for number, (block, head, which) in enumerate(blocks):
        payload = wire_payload(provider, which, f"t{number} ")
        written.append(
            block.replace("DATA", head + payload).replace("JSON", payload).replace("\n", end)
        )
    # The first bytes decide whether this is SSE at all.
    body = "".join(block + end + end for block in [": sse", *written]).encode()
    plain = "".join(f"data: {line}\n\n" for m in messages(body) if (line := m.data.strip()))
    events = run(provider, [body])
    assert text_of(events) == text_of(run(provider, [plain.encode()]))
    assert said(events) == said(run(provider, [plain.encode()]))


def wire_payload(provider: str, which: int, text: str) -> str:
    if provider == "anthropic":
        frame = Messages.text(text) if which else Messages.START
        return read(frame.rstrip(b"\n")).data.decode()
    chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}
    if which == 1:
        chunk = {"choices": [{"index": 0, "delta": {"content": text, "new": 1}}]}
    if which == 2:
        chunk = {"id": "c", "model": "m", "choices": [{"delta": {"content": text}}], "new": 2}
    return json.dumps(chunk, separators=(",", ":") if which == 3 else (", ", ": "))
