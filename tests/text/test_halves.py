"""streamnorm.text.halves: characters cut in two are put together again, or replaced, and never leave."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.core.mend import Halves
from streamnorm.core.parser import plainly
from streamnorm.events import (
    BrokenToolCall,
    Event,
    Provenance,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from streamnorm.text import halves
from tests.conftest import Chat, Messages, broken_of, calls_of, said, sse, text_of, tr, traced

GRIN = "😀"
HIGH, LOW = "\ud83d", "\ude00"


def chat_text(*texts: str) -> bytes:
    return b"".join(map(Chat.text, texts)) + Chat.end("stop")


def chat_args(*fragments: str) -> bytes:
    first, *others = fragments
    body = Chat.call(0, "call_1", "f", first)
    return body + b"".join(Chat.call(0, None, None, f) for f in others) + Chat.end()


def claude_args(*fragments: str) -> bytes:
    body = Messages.START + Messages.open(0, "toolu_1", "f")
    return (
        body + b"".join(Messages.args(0, f) for f in fragments) + Messages.close(0) + Messages.end()
    )


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (rb'"\ud83d"', "\ud83d"),
        (rb'"\ude00"', "\ude00"),
        (rb'"a\ud83dx"', "a\ud83dx"),
        (rb'"\ud83d\ud83d\ude00"', "\ud83d😀"),
        (rb'"\\\ud83d"', "\\\ud83d"),
        (rb'{"\udfff":["\ud800"]}', {"\udfff": ["\ud800"]}),
        # private characters, plain or escaped, are nobody's stand-in
        ('"\U0010d83d \\ud83d"'.encode(), "\U0010d83d \ud83d"),
        ('"\U000f0000 \\udbc0\\udc00 \\ud83d"'.encode(), "\U000f0000 \U00100000 \ud83d"),
        (rb'"\udb80\udc3d \ud83d"', "\U000f003d \ud83d"),
    ],
)
def test_a_lone_half_is_a_lone_surrogate_and_nothing_else_is(data: bytes, value: object):
    hidden, mask = halves.masked(data)
    assert mask.unmasked(msgspec.json.decode(hidden)) == value


@pytest.mark.parametrize(
    "data", [rb'"\ud83d\ude00"', rb'"\uD83D\uDE00"', rb'"\\ud83d"', rb'"\u0041\n"']
)
def test_whole_characters_are_not_masked(data: bytes):
    assert halves.masked(data) is None


def test_what_was_not_read_yet_keeps_its_escapes():
    hidden, mask = halves.masked(rb'{"a":{"b":"\ud83d"},"c":"\ude00"}')
    plain = mask.unmasked(msgspec.json.decode(hidden, type=dict[str, msgspec.Raw]))
    assert {k: bytes(v) for k, v in plain.items()} == {"a": rb'{"b":"\ud83d"}', "c": rb'"\ude00"'}


def test_what_was_not_read_yet_keeps_private_characters_that_stand_beside_the_mask():
    data = '{"a":"\U000f0800\U000f0fff \\ud800 \\udfff"}'.encode()
    hidden, mask = halves.masked(data)
    plain = mask.unmasked(msgspec.json.decode(hidden, type=dict[str, msgspec.Raw]))
    assert bytes(plain["a"]) == data[5:-1]


def test_reading_lets_halves_be_and_raises_what_it_would_raise_without_them():
    assert halves.decoded(rb'"\ud83d"', msgspec.json.decode) == HIGH
    assert halves.decoded(b'"x"', msgspec.json.decode) == "x"
    number = msgspec.json.Decoder(int).decode
    with pytest.raises(msgspec.ValidationError):
        halves.decoded(b'"x"', number)
    with pytest.raises(msgspec.DecodeError):
        halves.decoded(b'"x', msgspec.json.decode)


def test_where_no_exact_text_is_needed_only_lone_halves_are_replaced():
    assert (
        halves.replaced(rb'"\ud83d \ud83d\ude00 \\ud83d \n"')
        == rb'"\ufffd \ud83d\ude00 \\ud83d \n"'
    )


def test_a_payload_with_a_character_of_every_private_block_is_not_masked():
    every = "".join(chr(0xF0000 + n * 0x800) for n in range(64))
    assert halves.masked(f'"{every}\\ud83d"'.encode()) is None


def test_joining_puts_pairs_together_and_keeps_the_lonely():
    assert halves.join(f"a{HIGH}{LOW}b") == "a😀b"
    assert halves.join(f"{LOW}{HIGH}") == f"{LOW}{HIGH}"
    assert halves.join("plain 😀") == "plain 😀"


def test_what_leaves_has_no_half():
    assert halves.joined(f"{LOW}{HIGH}") == "\ufffd\ufffd"
    assert halves.joined(f"{HIGH}{HIGH}{LOW}") == "\ufffd😀"


@given(st.text(st.sampled_from([GRIN, "a", "é", "𝄞", '"', "\\", "\U0010d83d"]), max_size=8))
def test_a_text_that_comes_in_single_units_is_the_text_again(text: str):
    units = text.encode("utf-16-be")
    alone = [
        json.dumps(chr(int.from_bytes(units[i : i + 2], "big"))) for i in range(0, len(units), 2)
    ]
    assert halves.join("".join(plainly(unit.encode()) for unit in alone)) == text


@pytest.mark.parametrize("before", ["", "x", GRIN, "x" + GRIN])
@pytest.mark.parametrize("after", ["", "y", GRIN, GRIN + "y"])
def test_a_pair_split_over_two_texts_is_one_character(before: str, after: str):
    events, pipe = traced("openai_chat", chat_text(before + HIGH, LOW + after))
    assert text_of(events) == before + GRIN + after
    assert pipe.notes["wire.split_character"] == 1
    assert pipe.notes["wire.half_character"] == 0


def test_a_half_waits_for_the_other_past_what_says_nothing_about_its_part():
    body = Chat.text("a" + HIGH) + Chat.delta({"reasoning_content": "hm"}) + b": ping\n\n"
    events = tr("openai_chat", body + Chat.text(LOW + "b") + Chat.end("stop"))
    assert text_of(events) == "a😀b"


def test_a_first_half_that_stays_alone_is_replaced_and_noted():
    events, pipe = traced("openai_chat", chat_text("a" + HIGH, "b"))
    assert text_of(events) == "a\ufffdb"
    assert pipe.notes["wire.half_character"] == 1


def test_a_half_at_the_very_end_is_replaced_before_the_stream_ends():
    events = tr("openai_chat", chat_text("a" + HIGH))
    assert text_of(events) == "a\ufffd"
    assert events[-1].kind == "finish"
    cut = tr("openai_chat", Chat.text("a" + HIGH))
    assert text_of(cut) == "a\ufffd"
    assert cut[-1].kind == "failed"


def test_a_second_half_without_a_first_is_replaced():
    assert text_of(tr("openai_chat", chat_text("a", LOW + "b"))) == "a\ufffdb"


def test_choices_and_parts_do_not_meet():
    body = Chat.delta({"content": HIGH}) + Chat.delta({"content": LOW}, choice=1)
    body += Chat.end("stop", choice=0).replace(Chat.DONE, b"") + Chat.end("stop", choice=1)
    events = tr("openai_chat", body)
    assert [(e.choice, e.text) for e in events if e.kind == "text_delta"] == [
        (1, "\ufffd"),
        (0, "\ufffd"),
    ]


def test_reasoning_is_mended_as_text_is():
    body = Chat.delta({"reasoning_content": "a" + HIGH}) + Chat.delta(
        {"reasoning_content": LOW + "b"}
    )
    events = tr("openai_chat", body + Chat.end("stop"))
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "a😀b"


@pytest.mark.parametrize("build", [chat_args, claude_args])
def test_a_pair_split_over_argument_fragments_is_one_character(build):
    provider = "openai_chat" if build is chat_args else "anthropic"
    text = json.dumps({"say": "x😀y🎌"}, ensure_ascii=False)
    units = text.encode("utf-16-be")
    for at in range(2, len(units), 2):
        parts = [units[:at], units[at:]]
        fragments = [p.decode("utf-16-be", "surrogatepass") for p in parts]
        events = tr(provider, build(*fragments))
        (call,) = calls_of(events)
        assert call.arguments == {"say": "x😀y🎌"}
        assert call.raw == text
        deltas = [e.text for e in events if isinstance(e, ToolCallDelta)]
        assert "".join(deltas) == text


def test_escapes_of_halves_in_the_argument_text_itself_are_joined_by_the_text():
    # Here the arguments' own JSON has the escapes; the fragments cut between them.
    events = tr("openai_chat", chat_args('{"say":"\\ud83d', '\\ude00"}'))
    assert said(events) == [("call_1", "f", {"say": GRIN})]


def test_a_half_that_stays_alone_in_arguments_breaks_no_other_call():
    body = Chat.call(0, "a", "f", '{"x":"') + Chat.call(1, "b", "g", "{}")
    body += Chat.call(0, None, None, HIGH) + Chat.call(0, None, None, '"}') + Chat.end()
    events = tr("openai_chat", body)
    assert said(events) == [("b", "g", {})]
    assert [(c.id, c.reason, c.raw) for c in broken_of(events)] == [
        ("a", "conflict", '{"x":"\ufffd"}')
    ]


@pytest.mark.parametrize("provider", ["openai_chat", "anthropic"])
def test_everything_told_can_be_encoded(provider: str):
    odd = {"type": "odd", "a": ["x" + HIGH, {LOW: HIGH}], "object": "odd"}
    start = b"" if provider == "openai_chat" else Messages.START
    events = tr(provider, start + sse(odd))
    assert any(e.kind == "unrecognized" for e in events)
    for event in events:
        msgspec.json.encode(event)


@given(st.lists(st.sampled_from(["a", GRIN, HIGH, LOW, "é"]), min_size=1, max_size=10),
       st.lists(st.integers(0, 10), max_size=4))  # fmt: skip
def test_any_cut_of_any_text_gives_what_the_uncut_text_gives(units: list[str], cuts: list[int]):
    expected = "".join(units).encode("utf-16-be", "surrogatepass")
    bounds = [0, *sorted(min(c, len(expected) // 2) for c in cuts), len(expected) // 2]
    texts = [
        expected[a * 2 : b * 2].decode("utf-16-be", "surrogatepass")
        for a, b in itertools.pairwise(bounds)
    ]
    told = text_of(tr("openai_chat", chat_text(*texts)))
    assert told == _replaced(expected)


def _replaced(utf16: bytes) -> str:
    """Pairs joined, each lonely half one U+FFFD."""
    units = [int.from_bytes(utf16[i : i + 2], "big") for i in range(0, len(utf16), 2)]
    out, at = [], 0
    while at < len(units):
        unit = units[at]
        follows = units[at + 1] if at + 1 < len(units) else 0
        if 0xD800 <= unit < 0xDC00 and 0xDC00 <= follows < 0xE000:
            out.append(chr(0x10000 + ((unit - 0xD800) << 10) + follows - 0xDC00))
            at += 2
            continue
        out.append("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit))
        at += 1
    return "".join(out)


def test_an_event_without_text_is_told_beside_halves():
    signed = {"type": "signature_delta", "signature": "s"}
    body = Messages.START + Messages.text("a" + HIGH, 3)
    body += sse({"type": "content_block_delta", "index": 4, "delta": signed})
    events = tr("anthropic", body + Messages.text(LOW, 3) + Messages.end("end_turn"))
    thoughts = [e for e in events if isinstance(e, ReasoningDelta)]
    assert [e.echo["signature"] for e in thoughts] == ["s"]


def test_what_goes_back_with_a_text_that_ends_in_half_a_character_is_told_once():
    part = {"text": "a" + HIGH, "thoughtSignature": "s"}
    events = tr("gemini", sse({"candidates": [{"content": {"parts": [part]}}]}))
    told = [(e.text, e.echo is not msgspec.UNSET) for e in events if isinstance(e, TextDelta)]
    assert told == [("a", True), ("\ufffd", False)]


def test_half_a_character_at_the_end_of_a_cut_stream_is_told_to_the_call_it_was_of():
    events = tr("openai_chat", Chat.call(0, "a", "f", '{"x":"' + HIGH))
    assert [e for e in events if isinstance(e, ToolCallDelta)] == [
        ToolCallDelta(0, '{"x":"'), ToolCallDelta(0, "\ufffd"),
    ]  # fmt: skip


def test_text_deltas_keep_their_part_and_choice_when_mended():
    events = tr(
        "anthropic",
        Messages.START
        + Messages.text("a" + HIGH, 3)
        + Messages.text(LOW, 3)
        + Messages.end("end_turn"),
    )
    assert [e for e in events if isinstance(e, TextDelta)] == [
        TextDelta("a", 3),
        TextDelta(GRIN, 3),
    ]


def test_what_is_held_of_a_call_is_told_before_its_end_and_of_others_goes_on_being_held():
    counts: Counter[str] = Counter()
    held = Halves(lambda note: counts.update([note]))
    usage, broken = Usage(1, 2, None, None, None, {}), broken_call(0)
    out: list[Event] = [ToolCallDelta(0, "a" + HIGH), ToolCallDelta(1, "b" + HIGH), usage, broken]
    held.mend(out, 0)
    assert out == [
        ToolCallDelta(0, "a"), ToolCallDelta(1, "b"), usage, ToolCallDelta(0, "\ufffd"), broken,
    ]  # fmt: skip
    later: list[Event] = [broken_call(0), ToolCallDelta(1, LOW)]
    held.mend(later, 0)
    assert later == [broken_call(0), ToolCallDelta(1, GRIN)]
    assert counts == {"wire.half_character": 1, "wire.split_character": 1}
    held.flush(later)
    assert len(later) == 2


def broken_call(number: int) -> BrokenToolCall:
    origin = Provenance("natural", "A", "id", "stated", "anthropic", None)
    return BrokenToolCall(number, "A", "f", "a", "conflict", "", "function", "client", 0, origin)
