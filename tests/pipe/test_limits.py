"""Each limit at its edge, the same in any chunking; and memory that does not grow with the text."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.events import Event, Failed
from tests.conftest import (
    ALL,
    Chat,
    Messages,
    assert_well_formed,
    at_random,
    broken_of,
    bytewise,
    calls_of,
    frames_of,
    run,
    said,
    text_of,
    tr,
)
from tests.providers.streams import Gemini

TWO = ["openai_chat", "anthropic"]


def reached(events: list[Event], name: str, limit: int) -> bool:
    """Did the stream end at this limit, with a sentence that says which and what to do?"""
    assert_well_formed(events)
    last = events[-1]
    if not isinstance(last, Failed):
        return False
    assert (last.reason, last.code, last.retryable) == ("limit", name, False)
    assert f"more than {limit} ({name})" in last.error
    assert f"Limits({name}=" in last.error
    assert all(b.reason == "limit" for b in broken_of(events))
    return True


def call(provider: str, text: str, pieces: int = 1, n: int = 0) -> bytes:
    """One call in so many fragments."""
    size = -(-len(text) // pieces)
    fragments = [text[i : i + size] for i in range(0, len(text), size)]
    if provider == "openai_chat":
        opening = Chat.call(n, f"call_{n}", "f")
        return opening + b"".join(Chat.call(n, None, None, f) for f in fragments)
    body = Messages.open(n, f"call_{n}", "f") + b"".join(Messages.args(n, f) for f in fragments)
    return body + Messages.close(n)


def around(provider: str, body: bytes, reason: str | None = None) -> bytes:
    if provider == "openai_chat":
        return body + Chat.end(reason or "tool_calls")
    return Messages.START + body + Messages.end(reason or "tool_use")


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_the_size_of_a_frame(provider: str, over: int, end: bytes):
    limit = 600
    text = Chat.text if provider == "openai_chat" else Messages.text
    room = limit - len(text("").rstrip(b"\n")) + over
    body = around(
        provider,
        text("a") + text("x" * room) + text("z"),
        "stop" if provider == "openai_chat" else "end_turn",
    )
    body = body.replace(b"\n\n", end)
    if end != b"\n\n":
        body = body.replace(b"\ndata", b"\r\ndata").replace(b"\r\r\n", b"\r\n")
    events = tr(provider, body, limits=Limits(frame_bytes=limit))
    assert reached(events, "frame_bytes", limit) is (over > 0)
    assert text_of(events) == ("a" if over > 0 else "a" + "x" * room + "z")


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("pieces", [1, 5, 63, 64, 200])
def test_the_arguments_of_one_call(provider: str, over: int, pieces: int):
    limit = 1_000
    text = '{"a":"' + "x" * (limit + over - 8) + '"}'
    body = around(provider, call(provider, text, pieces) + call(provider, "{}", n=1))
    events = tr(provider, body, limits=Limits(arguments=limit))
    assert reached(events, "arguments", limit) is (over > 0)
    assert [c.raw for c in calls_of(events)] == ([] if over > 0 else [text, "{}"])


@pytest.mark.parametrize("provider", TWO)
def test_the_arguments_of_one_call_after_a_long_calm(provider: str):
    """The stream was short of the limit for many chunks; then a call grows beyond it."""
    limit = 2_000
    text = '{"a":"' + "x" * 20_000 + '"}'
    body = around(provider, call(provider, text, 500))
    for chunks in (frames_of(body), at_random(body, 300, 1), [body], bytewise(body)):
        pipe = Normalizer(provider, limits=Limits(arguments=limit))
        events: list[Event] = []
        held = 0
        for chunk in chunks:
            events += pipe.feed(chunk)
            held += len(chunk)
            if pipe.ended:
                break
        assert reached(events, "arguments", limit)


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_arguments_of_all_calls(provider: str, over: int):
    limit = 1_000
    half = '{"a":"' + "x" * (limit // 2 - 8) + '"}'
    other = '{"a":"' + "x" * (limit // 2 - 8 + over) + '"}'
    body = around(provider, call(provider, half, 40) + call(provider, other, 40, n=1))
    events = tr(provider, body, limits=Limits(arguments_total=limit))
    assert reached(events, "arguments_total", limit) is (over > 0)


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_number_of_calls(provider: str, over: int):
    limit = 5
    body = around(provider, b"".join(call(provider, "{}", n=n) for n in range(limit + over)))
    events = tr(provider, body, limits=Limits(calls=limit))
    assert reached(events, "calls", limit) is (over > 0)
    if over <= 0:
        assert len(calls_of(events)) == limit + over


def test_the_number_of_calls_that_come_whole_in_a_frame_each():
    frames = [Gemini.parts({"functionCall": {"name": "f", "args": {"n": n}}}) for n in range(4)]
    pipe = Normalizer("gemini", limits=Limits(calls=2))
    events = [event for frame in frames for event in pipe.feed(frame)]
    assert reached(events, "calls", 2)


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_number_of_open_calls(provider: str, over: int):
    limit = 5
    opening = {
        "openai_chat": lambda n: Chat.call(n, f"call_{n}", "f", "{}"),
        "anthropic": lambda n: Messages.open(n, f"call_{n}", "f"),
    }[provider]
    body = around(provider, b"".join(opening(n) for n in range(limit + over)))
    events = tr(provider, body, limits=Limits(open_calls=limit))
    assert reached(events, "open_calls", limit) is (over > 0)


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_number_of_frames(provider: str, over: int):
    text = Chat.text if provider == "openai_chat" else Messages.text
    body = around(provider, text("x") * 200, "stop" if provider == "openai_chat" else "end_turn")
    frames = len(frames_of(body))
    limit = frames - over
    events = tr(provider, body, limits=Limits(frames=limit))
    # The end mark is the event too many: what came before it is told.
    assert reached(events, "frames", limit) is (over > 0)
    assert text_of(events) == "x" * 200
    few = tr(provider, body, limits=Limits(frames=100))
    assert reached(few, "frames", 100)
    assert len(text_of(few)) == 100 - (provider == "anthropic")


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_bytes_of_the_stream(provider: str, over: int):
    body = around(provider, call(provider, '{"a":1}', 3))
    limit = len(body) - over
    events = tr(provider, body, limits=Limits(stream=limit))
    if over <= 0:
        assert events[-1].kind == "finish"
    else:
        # The last byte is the second half of the last blank line.
        assert reached(events, "stream", limit)
    assert run(provider, [body], limits=Limits(stream=len(body) + 1))[-1].kind == "finish"


@pytest.mark.parametrize("provider", TWO)
def test_the_bytes_of_the_stream_fall_at_the_same_byte_in_any_chunking(provider: str):
    text = Chat.text if provider == "openai_chat" else Messages.text
    body = around(provider, b"".join(text(f"{n} ") for n in range(50)))
    for limit in (1, 63, 64, 65, 700, 1_001, 2_500):
        events = tr(provider, body, limits=Limits(stream=limit))
        assert reached(events, "stream", limit)
        told = run(provider, [body[:limit]])
        assert text_of(events) == text_of(told)


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("what", ["name", "id"])
def test_names_and_ids(provider: str, over: int, what: str):
    limit = 20
    word = "x" * (limit + over)
    id, name = (word, "f") if what == "id" else ("call_1", word)
    if provider == "openai_chat":
        body = Chat.text("a") + Chat.call(0, id, name, "{}")
    else:
        body = Messages.text("a") + Messages.open(0, id, name) + Messages.close(0)
    events = tr(provider, around(provider, body), limits=Limits(id=limit, name=limit))
    assert reached(events, what, limit) is (over > 0)
    assert text_of(events) == "a"
    if over <= 0:
        assert said(events) == [(id, name, {})]


@pytest.mark.parametrize("provider", TWO)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_depth_of_arguments_breaks_one_call_and_not_the_stream(provider: str, over: int):
    depth = 10 + over
    deep = '{"a":' * depth + "1" + "}" * depth
    events = tr(
        provider,
        around(provider, call(provider, deep) + call(provider, "{}", n=1)),
        limits=Limits(depth=10),
    )
    assert [b.id for b in broken_of(events)] == (["call_0"] if over > 0 else [])
    assert len(calls_of(events)) == (1 if over > 0 else 2)
    assert events[-1].kind == "finish"
    if over > 0:
        assert "deeper than 10 levels" in broken_of(events)[0].detail


def test_the_defaults_are_those_promised():
    mib = 1024 * 1024
    limits = Limits()
    assert (limits.frame_bytes, limits.arguments, limits.arguments_total) == (
        16 * mib,
        4 * mib,
        32 * mib,
    )
    assert (limits.open_calls, limits.frames, limits.stream) == (128, 1_000_000, 256 * mib)
    assert (limits.name, limits.id, limits.depth) == (256, 256, 128)


def test_limits_cannot_be_changed_and_have_names():
    with pytest.raises(AttributeError):
        Limits().frame_bytes = 1
    with pytest.raises(TypeError):
        Limits(5)


# --- memory ---------------------------------------------------------------------------------------


def held_after(provider: str, frames: int) -> int:
    """Bytes that a pipe holds after so many text events, all of them consumed and dropped."""
    text = Chat.text if provider == "openai_chat" else Messages.text
    frame = text("lorem ipsum dolor sit amet " * 4)
    chunk = frame * 50
    gc.collect()
    tracemalloc.start()
    try:
        pipe = Normalizer(provider)
        pipe.feed(Messages.START if provider == "anthropic" else Chat.text("x"))
        pipe.feed(chunk)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(frames // 50):
            pipe.feed(chunk)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("provider", TWO)
def test_memory_at_the_end_does_not_depend_on_the_length_of_the_text(provider: str):
    assert held_after(provider, 10_000 if ALL else 2_000) < 4_096  # of about 2 MB read, or 400 KB


@pytest.mark.parametrize("provider", TWO)
def test_an_endless_event_is_not_kept_beyond_its_limit(provider: str):
    limit = 64 * 1024
    gc.collect()
    tracemalloc.start()
    try:
        pipe = Normalizer(provider, limits=Limits(frame_bytes=limit))
        pipe.feed(b"data: {")
        for _ in range(200):
            pipe.feed(b"x" * 8_192)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert pipe.ended
    assert peak < 3 * limit + 64 * 1024
