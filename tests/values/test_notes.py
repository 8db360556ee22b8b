"""streamnorm.notes: whatever is tolerated has a name, a level, a sentence and a counter."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import streamnorm
from streamnorm import Limits, Normalizer
from streamnorm.errors import NoteRaised, StreamnormError, WireError
from streamnorm.notes import DEBUG, INFO, NOTES, WARNING, Scribe, structure
from tests.conftest import Chat, Messages, piped, sse, text_of, traced

SOURCE = sorted(Path(streamnorm.__file__).parent.rglob("*.py"))


def strings_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def told_in(path: Path) -> set[str]:
    """First arguments of ``note(...)``, ``_tell(...)`` and counters of notes, where they are text."""
    told = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args:
            function = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if function in {"note", "_note", "_tell", "tell"}:
                told |= {
                    n.value for n in ast.walk(node.args[0])
                    if isinstance(n, ast.Constant) and isinstance(n.value, str)
                }  # fmt: skip
    return told


@pytest.mark.parametrize("path", SOURCE, ids=lambda p: p.stem)
def test_every_note_that_is_told_has_a_row(path: Path):
    assert {name for name in told_in(path) if "." in name} <= set(NOTES)


def test_the_scan_finds_notes_at_all():
    assert "call.id_synthetic" in told_in(Path(streamnorm.__file__).parent / "core" / "calls.py")


def test_every_row_is_told_somewhere():
    used = set().union(*(strings_in(p) for p in SOURCE if p.name != "notes.py"))
    assert set(NOTES) - used == set()


@pytest.mark.parametrize("name", NOTES)
def test_every_row_has_a_level_and_a_sentence(name: str):
    note = NOTES[name]
    assert note.level in (DEBUG, INFO, WARNING)
    assert len(note.sentence.split()) >= 4
    assert not note.sentence.endswith(".")
    family, _, what = name.partition(".")
    assert family in {"call", "args", "result", "wire", "stream", "session", "finish"}
    assert what


def test_a_note_without_a_row_is_a_mistake_of_ours():
    with pytest.raises(KeyError):
        Scribe("test").note("nobody.knows")


def test_notes_are_counted_by_name():
    scribe = Scribe("test")
    for _ in range(3):
        scribe.note("args.merged")
    scribe.note("wire.keepalive")
    assert scribe.counts == {"args.merged": 3, "wire.keepalive": 1}


def test_a_stream_without_oddities_has_no_notes():
    body = (
        Messages.START + Messages.text("hi") + Messages.open(1, "a", "f") + Messages.args(1, "{}")
    )
    _, pipe = traced("anthropic", body + Messages.close(1) + Messages.end())
    assert pipe.notes == {}
    _, pipe = traced("openai_chat", Chat.text("hi") + Chat.call(0, "a", "f", "{}") + Chat.end())
    assert pipe.notes == {}


# --- strict ---------------------------------------------------------------------------------------

ODD = {
    "call.id_synthetic": Chat.text("hi") + Chat.call(0, None, "f", "{}") + Chat.end(),
    "args.repeated": Chat.text("hi") + Chat.call(0, "a", "f", '{"a":') + Chat.call(0, None, None, "1}")
    + Chat.call(0, None, None, '{"a":1}') + Chat.end(),
    "wire.kind_unknown": Chat.text("hi") + sse({"type": "odd"}) + Chat.end("stop"),
    "finish.unknown": Chat.text("hi") + Chat.end("moon"),
    "wire.bad_utf8": Chat.text("hi") + Chat.text("XX").replace(b"XX", b"\xff") + Chat.end("stop"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_strict_raises_the_first_tolerance_with_what_was_heard_before(name: str):
    pipe = Normalizer("openai_chat", strict=True)
    with pytest.raises(NoteRaised) as error:
        pipe.feed(ODD[name])
    raised = error.value
    assert raised.note == name
    assert NOTES[name].sentence in str(raised)
    assert text_of(list(raised.events)) == "hi"
    assert raised.provider == "openai_chat"
    assert isinstance(raised, WireError)
    assert isinstance(raised, StreamnormError)
    assert pipe.ended
    assert pipe.feed(Chat.text("more")) == []
    assert pipe.close() == []


@pytest.mark.parametrize("name", ODD)
def test_the_same_is_only_noted_without_strict(name: str):
    events, pipe = piped("openai_chat", [ODD[name]])
    assert pipe.notes[name] == 1
    assert events[-1].kind == "finish"


def test_strict_says_in_which_frame_in_any_chunking():
    body = b": ping\n\n" + ODD["wire.kind_unknown"]
    for chunks in ([body], [bytes([b]) for b in body]):
        pipe = Normalizer("openai_chat", strict=True)
        with pytest.raises(NoteRaised) as error:
            feed_all(pipe, chunks)
        assert error.value.frame == 3


def feed_all(pipe: Normalizer, chunks: list[bytes]) -> None:
    for chunk in chunks:
        pipe.feed(chunk)


HALF = Chat.text("XX").replace(b"XX", b"hi\\ud83d")  # the other half never comes


def test_strict_raises_at_the_end_of_input_with_what_was_heard_there():
    pipe = Normalizer("openai_chat", strict=True)
    assert text_of(pipe.feed(Chat.text("oh ") + HALF[:-2])) == "oh "
    with pytest.raises(NoteRaised) as error:
        pipe.close()
    assert (error.value.note, text_of(list(error.value.events))) == ("wire.half_character", "hi")
    assert (pipe.ended, pipe.close()) == (True, [])


def test_strict_raises_at_a_limit_with_what_was_heard_before():
    pipe = Normalizer("openai_chat", strict=True, limits=Limits(frame_bytes=200))
    with pytest.raises(NoteRaised) as error:
        pipe.feed(HALF + b"data: " + b"x" * 300)
    assert (error.value.note, text_of(list(error.value.events))) == ("wire.half_character", "hi")
    assert (pipe.ended, pipe.close()) == (True, [])


def test_strict_lets_through_what_is_only_information():
    body = (
        b": ping\n\n"
        + Chat.text("hi")
        + sse({"choices": [{"delta": {}}], "new_field": 1})
        + Chat.end("stop")
    )
    events, pipe = piped("openai_chat", [body], strict=True)
    assert events[-1].kind == "finish"
    assert pipe.notes["wire.keepalive"] == 1
    assert pipe.notes["wire.field_unknown"] == 1


# --- the structure of a payload -------------------------------------------------------------------


def test_a_structure_has_keys_and_types_and_no_values():
    payload = {
        "id": None,
        "n": 1.5,
        "ok": True,
        "args": {"pin": "1234"},
        "many": ["x", "y"],
        "none": [],
    }
    assert structure(payload) == {
        "id": "NoneType", "n": "float", "ok": "bool", "args": {"pin": "str"}, "many": ["str"], "none": [],
    }  # fmt: skip
    assert "1234" not in str(structure(payload))
