"""Chunks that end where frames end take shorter ways: what they say must be the same to the byte."""

from __future__ import annotations

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.errors import NoteRaised
from streamnorm.events import Event


def _said(delta: str, more: str = "") -> str:
    return f'{{{more}"id":"c1","model":"m","choices":[{{"index":0,"delta":{delta}}}]}}'


def _text(text: str, more: str = "") -> str:
    return _said(f'{{"content":"{text}"}}', more)


def _arguments(text: str) -> str:
    return _said(f'{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}')


_OPEN = _said('{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":""}}]}')
_CLOSE = '{"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}'
_USUAL = [_text("a"), _text("b"), _OPEN, _arguments('{\\"a\\"'), _arguments(":"), _arguments("1}")]
_END = [_CLOSE, "[DONE]"]

# What stands between usual frames, each in place of one of them or beside them.
ODD = {
    "nothing": "",
    "a comment": ": still here\n\n",
    "a blank line more": "\n",
    "two blank lines more": "\n\n",
    "a comment behind the data": f"data: {_text('x')}\n: hi\n\n",
    "a line behind the data": f"data: {_text('x')}\nid: 7\n\n",
    "a line that is no field": f"data: {_text('x')}\n{_text('y')}\n\n",
    "an error field behind the data": f"data: {_text('x')}\nerror: down\n\n",
    "an error field": "error: down\n\n",
    "data in two lines": 'data: {"id":"c1","model":"m",\ndata: "choices":[]}\n\n',
    "a line end between tokens": 'data: {"id":"c1","model":"m",\n"choices":[]}\n\n',
    "a carriage return between tokens": 'data: {"id":"c1","model":"m",\r"choices":[]}\n\n',
    "a carriage return at the end": f"data: {_text('x')}\r\n\n",
    "ends of lines with both": f"data: {_text('x')}\r\n\r\n",
    "carriage returns alone": f"data: {_text('x')}\r\r",
    "two payloads in one frame": f"data: {_text('x')}{_text('y')}\n\n",
    "no payload": "data: \n\n",
    "spaces": f"data:   {_text('x')}  \n\n",
    "no space": f"data:{_text('x')}\n\n",
    "another envelope": f"data: {_text('x').replace('c1', 'c2')}\n\n",
    "a rare field": "data: " + _text("x", '"nvext":1,') + "\n\n",
    "a field that nobody knows": "data: " + _text("x", '"novel":1,') + "\n\n",
    "half a character": "data: " + _text("\\ud83d") + "\n\n",
    "no JSON": "data: {oops\n\n",
    "the end": "data: [DONE]\n\n",
    "an error": 'data: {"error":{"message":"overloaded"}}\n\n',
    "a name for the event": f"event: chunk\ndata: {_text('x')}\n\n",
    "two events with names": f"event: c\ndata: {_text('x')}\n\nevent: c\ndata: {_text('y')}\n\n",
}


def _frames(odd: str, at: int) -> list[str]:
    frames = [f"data: {payload}\n\n" for payload in _USUAL + _END]
    return [*frames[:at], odd, *frames[at:]]


def _heard(chunks: list[bytes], **options: object) -> tuple[list[Event], dict[str, int]]:
    pipe = Normalizer("openai_chat", seed="s", **options)  # type: ignore[arg-type]
    events = [event for chunk in chunks for event in pipe.feed(chunk)]
    return events + pipe.close(), dict(pipe.notes)


def _chunkings(frames: list[bytes]) -> dict[str, list[bytes]]:
    body = b"".join(frames)
    return {
        "bytes": [body[at : at + 1] for at in range(len(body))],
        "frames": frames,
        "pairs": [b"".join(frames[at : at + 2]) for at in range(0, len(frames), 2)],
        "threes": [b"".join(frames[at : at + 3]) for at in range(0, len(frames), 3)],
        "across": [body[at : at + 150] for at in range(0, len(body), 150)],
        "all at once": [body],
        "ends late": [b"".join(frames)[:-1], body[-1:]],
    }


@pytest.mark.parametrize("at", [1, 4, 5])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_frame_is_heard_alike_in_any_chunking(odd: str, at: int) -> None:
    frames = [frame.encode() for frame in _frames(ODD[odd], at)]
    cuts = _chunkings(frames)
    wanted = _heard(cuts.pop("bytes"))
    for name, chunks in cuts.items():
        assert _heard(chunks) == wanted, name


@pytest.mark.parametrize("odd", ODD)
def test_with_ends_of_lines_of_both_characters_too(odd: str) -> None:
    frames = [frame.replace("\n", "\r\n").encode() for frame in _frames(ODD[odd], 4)]
    cuts = _chunkings(frames)
    wanted = _heard(cuts.pop("bytes"))
    for name, chunks in cuts.items():
        assert _heard(chunks) == wanted, name


@pytest.mark.parametrize("odd", ODD)
def test_strict_raises_the_same_note_at_the_same_frame(odd: str) -> None:
    def raised(chunks: list[bytes]) -> object:
        pipe = Normalizer("openai_chat", seed="s", strict=True)
        heard: list[Event] = []
        try:
            for chunk in chunks:
                heard += pipe.feed(chunk)
            heard += pipe.close()
        except NoteRaised as note:
            assert pipe.feed(frames[0]) == []  # nothing is read after it
            return note.note, note.frame, [*heard, *note.events]
        return heard

    frames = [frame.encode() for frame in _frames(ODD[odd], 4)]
    cuts = _chunkings(frames)
    wanted = raised(cuts.pop("bytes"))
    for name, chunks in cuts.items():
        assert raised(chunks) == wanted, name


@pytest.mark.parametrize("limit", [
    Limits(frames=4), Limits(frames=7), Limits(frame_bytes=90), Limits(frame_bytes=100),
    Limits(stream=300), Limits(stream=377), Limits(arguments=1), Limits(arguments_total=2),
    Limits(id=2), Limits(name=0), Limits(calls=0),
])  # fmt: skip
def test_a_limit_falls_at_the_same_frame(limit: Limits) -> None:
    frames = [frame.encode() for frame in _frames("", 0)]
    cuts = _chunkings(frames)
    events, _ = _heard(cuts.pop("bytes"), limits=limit)
    assert (events[-1].kind, getattr(events[-1], "reason", "")) == ("failed", "limit")
    for name, chunks in cuts.items():
        assert _heard(chunks, limits=limit)[0] == events, name


@pytest.mark.parametrize("limit", [Limits(arguments=200), Limits(arguments=1000, frames=150)])
def test_a_long_stream_is_measured_at_the_same_frames(limit: Limits) -> None:
    frames = [f"data: {payload}\n\n".encode() for payload in _USUAL[:4]]
    frames += [f"data: {_arguments('12345')}\n\n".encode()] * 200
    events, _ = _heard([b"".join(frames)], limits=limit)
    assert [event.kind for event in events[-2:]] == ["broken_tool_call", "failed"]
    assert _heard(frames, limits=limit)[0] == events


def test_what_comes_after_the_end_is_noted_alike() -> None:
    frames = [frame.encode() for frame in [*_frames("", 0), f"data: {_text('late')}\n\n"]]
    wanted = _heard([b"".join(frames)])
    assert wanted[1]["stream.after_end"] == 1
    assert _heard(frames) == wanted


def test_nothing_is_read_after_a_failure_from_outside() -> None:
    frames = [frame.encode() for frame in _frames("", 0)[1:]]
    pipe = Normalizer("openai_chat")
    heard = [event for frame in frames[:2] for event in pipe.feed(frame)]
    assert [event.kind for event in heard] == ["stream_start", "text_delta", "text_delta"]
    assert [event.kind for event in pipe.fail("idle", "nothing came")] == ["failed"]
    assert pipe.feed(frames[2]) == []
