"""Damage does damage, and the judge sees every kind of lie."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from streamnorm import BrokenToolCall, Event, Failed, Finish, Provenance, ToolCall, ToolCallStart
from tests.proof.conversations import converse
from tests.proof.damage import BYTEWISE, FINISH_WORDS, FRAMEWISE
from tests.proof.judge import Find, invented, judge, misshapen
from tests.proof.readers import WIRES, Heard, Reading, read
from tests.proof.talk import Frame, Said, Talk

# Wires whose payloads have no such field: there this operator finds nothing to do.
NOTHING_TO_DO = {
    ("change_index", "ollama"),
    ("change_type", "gemini"), ("change_type", "ollama"), ("change_type", "bedrock"),
    ("change_type", "mistral"), ("wrong_event", "ollama"), ("wrong_event", "claude_code"),
    ("wrong_event", "codex"), ("change_index", "codex"), ("change_finish", "mistral_conversations"),
    ("finish_everywhere", "mistral_conversations"), ("relocate", "mistral_conversations"),
    *(("double_item", wire) for wire in ("anthropic", "cohere", "bedrock", "gemini_interactions",
                                         "mistral_conversations")),
}  # fmt: skip


def talk_of(wire: str, number: int) -> Talk:
    talk = converse(wire, random.Random(f"damage/{wire}/{number}"))
    return replace(talk, said=list(talk.said))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", FRAMEWISE)
def test_an_operator_on_frames_changes_most_streams_and_no_frame_in_place(
    wire: str, name: str
) -> None:
    changed = 0
    for number in range(12):
        talk = talk_of(wire, number)
        before = talk.body
        frames = FRAMEWISE[name](random.Random(number), talk.frames, talk)
        assert talk.body == before
        changed += talk.style.body(frames) != before
    assert changed >= (0 if (name, wire) in NOTHING_TO_DO else 3)


@pytest.mark.parametrize("wire", WIRES)
def test_every_operator_can_follow_every_other(wire: str) -> None:
    """On payloads that they have never seen in a conversation."""
    talk = talk_of(wire, 1)
    for number, first in enumerate(FRAMEWISE):
        frames = FRAMEWISE[first](random.Random(number), talk.frames, talk)
        for name in FRAMEWISE if frames else ():
            FRAMEWISE[name](random.Random(number), frames, talk)


def test_a_word_for_the_end_is_put_into_every_field_of_one_that_stands_inside_another() -> None:
    talk = talk_of("cohere", 1)
    nested = Frame({"finish_reason": {"finish_reason": "a"}})
    for number in range(40):
        (frame,) = FRAMEWISE["finish_everywhere"](random.Random(number), [nested], talk)
        assert frame.payload["finish_reason"] in FINISH_WORDS


@pytest.mark.parametrize("name", BYTEWISE)
def test_an_operator_on_bytes_changes_the_bytes(name: str) -> None:
    body = talk_of("anthropic", 1).body
    changed = [BYTEWISE[name](random.Random(n), body) != body for n in range(20)]
    assert sum(changed) >= 15


@pytest.mark.parametrize("wire", WIRES)
def test_damage_takes_calls_away_from_the_reader_too(wire: str) -> None:
    """Else the reader would not look at what it reads."""
    lost = 0
    for number in range(40):
        talk = talk_of(wire, number)
        body = BYTEWISE["cut_bytes"](random.Random(number), talk.body)
        lost += len(talk.said) - len(read(wire, body).calls)
    assert lost > 10


# --- the judge ------------------------------------------------------------------------------------

NATURAL = Provenance("natural", "A")


def call(name: str = "pay", id: str = "A", ordinal: int = 0, **arguments: object) -> ToolCall:
    return ToolCall(ordinal, id, name, dict(arguments), "", provenance=NATURAL)


def kinds(finds: list[Find]) -> set[str]:
    return {find.kind for find in finds}


SAID = [Said("A", "pay", {"to": "me"})]
NOTHING = Reading()


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ([call(to="me")], set()),
        ([call(to="you")], {"invented"}),
        ([call("play", to="me")], {"invented"}),
        ([call()], {"emptied"}),
        ([call(to="me"), call(id="B", ordinal=1, to="me")], {"twice", "id"}),
        ([call(id="B", to="me")], {"id"}),
    ],
)
def test_the_judge_knows_what_was_said(told: list[Event], found: set[str]) -> None:
    assert kinds(invented(told, b"", SAID, NOTHING)) == found


def test_what_only_the_reader_has_may_be_told() -> None:
    reading = Reading([Heard("A", "pay", {"to": "you"}, ids=frozenset({"A"}))])
    assert invented([call(to="you")], b"", SAID, reading) == []
    reading = Reading(also=[Heard("A", "pay", {"to": "you"}, ids=frozenset({"A"}))])
    assert invented([call(to="you")], b"", SAID, reading) == []


def test_a_call_told_for_another_to_run_is_found() -> None:
    told = ToolCall(0, "A", "pay", {"to": "me"}, "", "function", "provider", provenance=NATURAL)
    assert kinds(invented([told], b"", SAID, NOTHING)) == {"runs_on"}


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([ToolCallStart(0, "A", "pay"), call(), Finish("stop")], set()),
        ([ToolCallStart(0, "A", "pay"), call()], {"ending"}),
        ([Finish("stop"), Failed("truncated", "")], {"ending"}),
        ([ToolCallStart(0, "A", "pay"), Finish("stop")], {"shape"}),
        ([call(), Finish("stop")], {"shape"}),
        (
            [ToolCallStart(0, "A", "pay"), call(), BrokenToolCall(0, "A", "pay", "", "conflict"),
             Finish("stop")],
            {"shape"},
        ),
        (
            [ToolCallStart(0, "A", "pay"), ToolCallStart(1, "A", "pay"), call(), call(ordinal=1),
             Finish("stop")],
            {"shape"},
        ),
    ],
)  # fmt: skip
def test_the_judge_knows_the_shape_of_a_stream(events: list[Event], found: set[str]) -> None:
    assert kinds(misshapen(events)) == found


def test_an_undamaged_stream_is_judged_clean_in_any_chunks() -> None:
    for number in range(20):
        talk = talk_of("anthropic", number)
        assert judge("anthropic", talk.body, talk.said, random.Random(number)) == []
