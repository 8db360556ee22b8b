"""Chunks that end where frames end take shorter ways: what they say must be the same to the byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.errors import NoteRaised
from streamnorm.events import Event


def _chat(delta: str, more: str = "") -> str:
    return f'{{{more}"id":"c1","model":"m","choices":[{{"index":0,"delta":{delta}}}]}}'


class Wire(NamedTuple):
    """How a wire writes a text, a fragment and a whole stream of usual frames."""

    name: str
    lead: str
    text: Callable[[str], str]
    more: Callable[[str], str]  # a text, with this field before all others
    arguments: Callable[[str], str]
    before: list[str]  # frames, as are those that follow it
    opening: str
    after: list[str]

    def frames(self, odd: str, at: int) -> list[str]:
        """The stream, with something odd in it."""
        pieces = [self.arguments(piece) for piece in ('{\\"a\\"', ":", "1}")]
        usual = [self.text("a"), self.text("b"), self.opening, *pieces]
        frames = [each if "data:" in each else f"{self.lead}{each}\n\n" for each in usual]
        return [*self.before, *frames[:at], odd, *frames[at:], *self.after]


CHAT = Wire(
    "openai_chat",
    "data: ",
    lambda text: _chat(f'{{"content":"{text}"}}'),
    lambda more: _chat('{"content":"x"}', more),
    lambda text: _chat(f'{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}'),
    [],
    _chat('{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":""}}]}'),
    [
        'data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n',
        "data: [DONE]\n\n",
    ],
)


def _delta(inner: str, more: str = "", index: int = 0) -> str:
    return f'{{{more}"type":"content_block_delta","index":{index},"delta":{inner}}}'


def _named(kind: str, fields: str = "") -> str:
    return f'event: {kind}\ndata: {{"type":"{kind}"{fields}}}\n\n'


MESSAGES = Wire(
    "anthropic",
    "event: content_block_delta\ndata: ",
    lambda text: _delta(f'{{"type":"text_delta","text":"{text}"}}'),
    lambda more: _delta('{"type":"text_delta","text":"x"}', more),
    lambda text: _delta(f'{{"type":"input_json_delta","partial_json":"{text}"}}', index=1),
    [
        _named("message_start", ',"message":{"id":"m1","model":"m","content":[]}'),
        _named("content_block_start", ',"index":0,"content_block":{"type":"text","text":""}'),
    ],
    _named(
        "content_block_start",
        ',"index":1,"content_block":{"type":"tool_use","id":"call_1","name":"f","input":{}}',
    ),
    [
        _named("content_block_stop", ',"index":1'),
        _named("message_delta", ',"delta":{"stop_reason":"tool_use"}'),
        _named("message_stop"),
    ],
)
WIRES = [pytest.param(wire, id=wire.name) for wire in (CHAT, MESSAGES)]

# What stands between usual frames: the wire's head and a text are filled in.
ODD = {
    "nothing": "",
    "a comment": ": still here\n\n",
    "two comments": ": still here\n\n: and here\n\n",
    "a blank line more": "\n",
    "two blank lines more": "\n\n",
    "three blank lines more": "\n\n\n",
    "a comment behind the data": "{x}\n: hi\n\n",
    "a comment before the data": ": hi\n{x}\n\n",
    "a line behind the data": "{x}\nid: 7\n\n",
    "a line that is no field": "{x}\n{y}\n\n",
    "nothing but a payload": "{y}\n\n",
    "nothing but an error": '{{"error":{{"message":"down"}}}}\n\n',
    "an error field behind the data": "{x}\nerror: down\n\n",
    "an error field": "error: down\n\n",
    "data in two lines": '{lead}{{\ndata: "type":"ping"}}\n\n',
    "a line end between tokens": '{lead}{{\n"type":"ping"}}\n\n',
    "a carriage return between tokens": '{lead}{{\r"type":"ping"}}\n\n',
    "a carriage return at the end": "{x}\r\n\n",
    "ends of lines with both": "{x}\r\n\r\n",
    "carriage returns alone": "{x}\r\r",
    "two payloads in one frame": "{x}{y}\n\n",
    "two payloads in one frame and none in the next": "{x}{y}\n\n{lead}\n\n",
    "half a payload": '{lead}{{"type":"ping"\n\n',
    "no payload": "{lead}\n\n",
    "spaces": "{x}  \n\n",
    "no space": "data:{y}\n\n",
    "no name of the event": "data: {y}\n\n",
    "another name of the event": "event: ping\ndata: {y}\n\n",
    "a ping": 'event: ping\ndata: {{"type":"ping"}}\n\n',
    "a ping and a comment": 'event: ping\ndata: {{"type":"ping"}}\n\n: hi\n\n{x}\n\n',
    "a field that nobody knows": "{lead}{more}\n\n",
    "half a character": "{lead}{half}\n\n",
    "half a character under another name": "event: x\ndata: {half}\n\n{x}\n\n",
    "no JSON": "{lead}{{oops\n\n",
    "no JSON under another name": "event: x\ndata: {{oops\n\n",
    "the end": "data: [DONE]\n\n",
    "an error": 'data: {{"type":"error","error":{{"message":"overloaded"}}}}\n\n',
    "two events with names": "event: c\ndata: {y}\n\nevent: c\ndata: {y}\n\n",
    "a payload without its first brace": '{lead}"type":"ping"}}\n\n',
    "a line of a space behind the data": "{x}\n \n\n",
    "a line of a space under another name": "event: c\ndata: {y}\n \n\n",
}


def _frames(wire: Wire, odd: str, at: int) -> list[bytes]:
    lead, x, y, half = wire.lead, wire.text("x"), wire.text("y"), wire.text("\\ud83d")
    more = wire.more('"novel":1,')
    told = ODD[odd].format(lead=lead, x=lead + x, y=y, half=half, more=more)
    return [frame.encode() for frame in wire.frames(told, at)]


def _heard(
    wire: Wire, chunks: list[bytes], **options: object
) -> tuple[list[Event], dict[str, int]]:
    pipe = Normalizer(wire.name, seed="s", **options)  # type: ignore[arg-type]
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


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("at", [1, 4, 5])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_frame_is_heard_alike_in_any_chunking(wire: Wire, odd: str, at: int) -> None:
    cuts = _chunkings(_frames(wire, odd, at))
    wanted = _heard(wire, cuts.pop("bytes"))
    for name, chunks in cuts.items():
        assert _heard(wire, chunks) == wanted, name


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("odd", ODD)
def test_with_ends_of_lines_of_both_characters_too(wire: Wire, odd: str) -> None:
    cuts = _chunkings([frame.replace(b"\n", b"\r\n") for frame in _frames(wire, odd, 4)])
    wanted = _heard(wire, cuts.pop("bytes"))
    for name, chunks in cuts.items():
        assert _heard(wire, chunks) == wanted, name


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("odd", ODD)
def test_strict_raises_the_same_note_at_the_same_frame(wire: Wire, odd: str) -> None:
    def raised(chunks: list[bytes]) -> object:
        pipe = Normalizer(wire.name, seed="s", strict=True)
        heard: list[Event] = []
        try:
            for chunk in chunks:
                heard += pipe.feed(chunk)
            heard += pipe.close()
        except NoteRaised as note:
            assert pipe.feed(frames[3]) == []  # nothing is read after it
            return note.note, note.frame, [*heard, *note.events]
        return heard

    frames = _frames(wire, odd, 4)
    cuts = _chunkings(frames)
    wanted = raised(cuts.pop("bytes"))
    for name, chunks in cuts.items():
        assert raised(chunks) == wanted, name


LIMITS = [
    Limits(frames=4), Limits(frames=7), Limits(frame_bytes=80), Limits(frame_bytes=100),
    Limits(stream=300), Limits(stream=377), Limits(arguments=1), Limits(arguments_total=2),
    Limits(id=2), Limits(name=0), Limits(calls=0),
]  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_falls_at_the_same_frame(wire: Wire, limit: Limits) -> None:
    cuts = _chunkings(_frames(wire, "nothing", 0))
    events, _ = _heard(wire, cuts.pop("bytes"), limits=limit)
    assert (events[-1].kind, getattr(events[-1], "reason", "")) == ("failed", "limit")
    for name, chunks in cuts.items():
        assert _heard(wire, chunks, limits=limit)[0] == events, name


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("limit", [Limits(arguments=200), Limits(arguments=1000, frames=150)])
def test_a_long_stream_is_measured_at_the_same_frames(wire: Wire, limit: Limits) -> None:
    frames = _frames(wire, "nothing", 0)[: len(wire.before) + 5]
    frames += [f"{wire.lead}{wire.arguments('12345')}\n\n".encode()] * 200
    events, _ = _heard(wire, [b"".join(frames)], limits=limit)
    assert [event.kind for event in events[-2:]] == ["broken_tool_call", "failed"]
    assert [getattr(event, "reason", "") for event in events[-2:]] == ["limit", "limit"]
    for name, chunks in _chunkings(frames).items():
        assert _heard(wire, chunks, limits=limit)[0] == events, name


@pytest.mark.parametrize("wire", WIRES)
def test_many_runs_and_what_stands_between_them(wire: Wire) -> None:
    once = _frames(wire, "a ping and a comment", 1)[len(wire.before) : -len(wire.after)]
    frames = [*(frame.encode() for frame in wire.before), *once[:4] * 40, *once[4:]]
    body = b"".join(frames)
    wanted = _heard(wire, [body[at : at + 1] for at in range(len(body))])
    for size in (64, 200, 1400, 16384):
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        assert _heard(wire, chunks) == wanted, size


@pytest.mark.parametrize("wire", WIRES)
def test_what_comes_after_the_end_is_noted_alike(wire: Wire) -> None:
    frames = [*_frames(wire, "nothing", 0), f"{wire.lead}{wire.text('late')}\n\n".encode()]
    wanted = _heard(wire, [b"".join(frames)])
    assert wanted[1]["stream.after_end"] == 1
    assert _heard(wire, frames) == wanted


@pytest.mark.parametrize("wire", WIRES)
def test_nothing_is_read_after_a_failure_from_outside(wire: Wire) -> None:
    frames = [frame for frame in _frames(wire, "nothing", 0) if frame]
    at = len(wire.before)
    pipe = Normalizer(wire.name)
    heard = [event for frame in frames[: at + 2] for event in pipe.feed(frame)]
    assert [event.kind for event in heard] == ["stream_start", "text_delta", "text_delta"]
    assert [event.kind for event in pipe.fail("idle", "nothing came")] == ["failed"]
    assert pipe.feed(frames[1 + at]) == []


class Bytes(bytes):
    """As some libraries hand them out."""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", [Bytes, bytearray, memoryview])
def test_other_kinds_of_bytes_are_heard_alike(wire: Wire, kind: Callable[[bytes], bytes]) -> None:
    frames = _frames(wire, "nothing but a payload", 1)
    wanted = _heard(wire, frames)
    assert wanted[1]["wire.stray_line"] == 1
    assert _heard(wire, [kind(frame) for frame in frames]) == wanted
    halves = [half for frame in frames for half in (frame[:20], frame[20:])]
    assert _heard(wire, [kind(half) for half in halves]) == wanted


BRACES = {
    "its first brace is missing": (CHAT, '"choices":[{"index":0,"delta":{"content":"x"}}]}'),
    "an object where a field should be": (
        CHAT, '{"id":"c1","model":"m",{"choices":[{"index":0,"delta":{"content":"x"}}]}',
    ),
    "its first brace is missing, and each has another": (
        MESSAGES, MESSAGES.text("x").removeprefix("{"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BRACES)
def test_what_was_cut_off_the_last_payload_makes_no_other_one_whole(name: str) -> None:
    wire, payload = BRACES[name]
    odd = f"{wire.lead}{payload}\n\n"
    for frames in (wire.frames(odd, 2), [*wire.before, odd]):
        for cut, chunks in _chunkings([frame.encode() for frame in frames]).items():
            events, _ = _heard(wire, chunks)
            assert (events[-1].kind, getattr(events[-1], "reason", "")) == ("failed", "protocol"), (
                cut
            )


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("odd", [odd for odd in ODD if odd.startswith("a line of a space")])
@pytest.mark.parametrize("at", [1, 4])
def test_a_line_of_a_space_is_no_field_wherever_it_stands(wire: Wire, odd: str, at: int) -> None:
    for name, chunks in _chunkings(_frames(wire, odd, at)).items():
        assert _heard(wire, chunks)[1]["wire.stray_line"] == 1, name


def test_a_payload_that_is_as_long_before_its_choices_as_the_others_is_read_from_its_beginning():
    usual = CHAT.text("a")
    size = usual.index('"choices"')
    said = '{"error":"down",'
    error = said[:-1] + " " * (size - len(said)) + "," + usual[size:]
    assert error.index('"choices"') == size
    frames = CHAT.frames(f"event: c\ndata: {usual}\n\ndata: {error}\n\n", 2)
    for name, chunks in _chunkings([frame.encode() for frame in frames]).items():
        events, _ = _heard(CHAT, chunks)
        assert (events[-1].kind, getattr(events[-1], "error", "")) == ("failed", "down"), name


@pytest.mark.parametrize("wire", WIRES)
def test_a_frame_is_heard_when_its_blank_line_has_come_and_not_before(wire: Wire) -> None:
    frames = [frame for frame in _frames(wire, "nothing", 0) if frame]
    at = len(wire.before)
    pipe = Normalizer(wire.name)
    for frame in frames[: at + 1]:
        pipe.feed(frame)
    assert pipe.feed(frames[at + 1][:-2]) == []
    assert [event.kind for event in pipe.feed(b"\n\n")] == ["text_delta"]


def test_text_behind_half_a_character_comes_behind_it_whatever_its_frame_is_called() -> None:
    wire = MESSAGES
    half = f"{wire.lead}{wire.text(chr(92) + 'ud83d')}\n\n"
    other = f"event: c\ndata: {wire.text('x')}\n\n"
    usual = f"{wire.lead}{wire.text('a')}\n\n"
    frames = [*wire.before, usual, half, *[usual, other, usual] * 2, *wire.after]
    for name, chunks in _chunkings([frame.encode() for frame in frames]).items():
        events, _ = _heard(wire, chunks)
        text = "".join(event.text for event in events if event.kind == "text_delta")
        assert text == "a\ufffdaxaaxa", name


@pytest.mark.parametrize("wire", [CHAT, MESSAGES, CHAT._replace(name="mistral")])
@pytest.mark.parametrize("behind", ["usual", "other"])
def test_half_a_character_that_stays_half_is_told_before_the_frame_behind_it(
    wire: Wire, behind: str
) -> None:
    usual = f"{wire.lead}{wire.text('a')}\n\n"
    half = f"{wire.lead}{wire.text(chr(92) + 'ud83d')}\n\n"
    other = f"event: c\ndata: {wire.text('a')}\n\n"
    next_ = {"usual": usual, "other": other}[behind]
    frames = [*wire.before, usual, usual, half, next_, usual, usual, *wire.after]
    for name, chunks in _chunkings([frame.encode() for frame in frames]).items():
        events, _ = _heard(wire, chunks)
        text = "".join(event.text for event in events if event.kind == "text_delta")
        assert text == "aa\ufffdaaa", name


STRAYS = {
    "an error": ('{"error":{"message":"down"}}', ("failed", "provider_error"), "provider_error"),
    "an error that is no JSON": ('{"error": oops', ("finish", "tool_calls"), "conflict"),
    "a list with such a word": ('["error"]', ("finish", "tool_calls"), "conflict"),
    "another object": ('{"warning":"slow"}', ("finish", "tool_calls"), "conflict"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", STRAYS)
def test_a_line_without_a_field_may_be_an_error_and_breaks_the_call_that_is_open(
    wire: Wire, name: str
) -> None:
    line, end, broken = STRAYS[name]
    for cut, chunks in _chunkings(
        [frame.encode() for frame in wire.frames(f"{line}\n\n", 4)]
    ).items():
        events, notes = _heard(wire, chunks)
        assert (events[-1].kind, getattr(events[-1], "reason", "")) == end, cut
        reasons = [event.reason for event in events if event.kind == "broken_tool_call"]
        assert (reasons, notes["wire.stray_line"]) == ([broken], 1), cut
        assert all(event.kind != "unrecognized" for event in events), cut


def test_a_comment_after_the_end_is_no_event_whatever_run_it_stands_in() -> None:
    wire = MESSAGES
    late = f"{wire.lead}{wire.text('late')}\n\n"
    usual = wire.frames("", 6)[: len(wire.before) + 2]
    frames = [*usual, *wire.frames("", 6)[-3:], ": hi\n\n", late, ": hi\n\n", late]
    cuts = _chunkings([frame.encode() for frame in frames if frame])
    at = len(wire.before)
    rest = [frame.encode() for frame in frames if frame]
    cuts["a run"] = [*rest[: at + 1], b"".join(rest[at + 1 :])]
    for name, chunks in cuts.items():
        assert _heard(wire, chunks)[1]["stream.after_end"] == 2, name
