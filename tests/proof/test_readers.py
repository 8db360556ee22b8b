"""The proof's own tools: readers and engine agree with what undamaged streams say.

Without that, agreement on damaged ones would prove nothing.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamnorm import Finish, ToolCall
from tests.proof.conversations import MAKERS, converse
from tests.proof.judge import key_of, streams
from tests.proof.readers import WIRES, Heard, read
from tests.proof.talk import Said, Talk

CONVERSATIONS = 150


def talks(wire: str) -> Iterator[Talk]:
    return (converse(wire, random.Random(f"readers/{wire}/{n}")) for n in range(CONVERSATIONS))


def in_order(said: list[Any]) -> list[tuple[int, str, str, str | None]]:
    """Calls in a form that can be compared, whatever order choices or blocks end in."""
    return sorted(
        ((s.choice, key_of(s), s.runs_on, s.id) for s in said), key=lambda s: (*s[:3], s[3] or "")
    )


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", ['"new"', "{}", "[]", "7", "null"])
def test_no_reader_falls_over_a_kind_of_any_type_in_bytes_that_are_no_utf8(
    wire: str, kind: str
) -> None:
    for id in (b"\xff", b"A"):
        line = b'{"type":%b,"id":"%b","tool_call_id":"A","x":"\xff"}' % (kind.encode(), id)
        assert read(wire, line + b"\n") == read(wire, b"data: " + line + b"\n\n")


def test_the_name_of_an_event_says_what_its_type_cannot_in_bytes_that_are_no_utf8() -> None:
    """An execution that begins under an id of its own is no piece of another."""
    said = (
        b'data: {"type":"tool.execution.started","id":"A","name":"f","arguments":"{}"}\n\n'
        b'event: tool.execution.started\ndata: {"x\xff":"","id":"B","name":"g","arguments":""}\n\n'
        b'data: {"type":"tool.execution.done","id":"A","name":"f"}\n\n'
    )
    assert [call.id for call in read("mistral_conversations", said).calls] == ["A"]


def test_every_wire_has_a_maker_and_a_reader() -> None:
    assert set(MAKERS) == set(WIRES)


@pytest.mark.parametrize("wire", WIRES)
def test_the_reader_finds_exactly_what_an_undamaged_stream_says(wire: str) -> None:
    for talk in talks(wire):
        reading = read(wire, talk.body)
        assert in_order(reading.calls) == in_order(talk.said)
        assert reading.ended == "normal"


@pytest.mark.parametrize("wire", WIRES)
def test_the_engine_tells_exactly_what_an_undamaged_stream_says(wire: str) -> None:
    for talk in talks(wire):
        answers = streams(wire, [talk.body])
        calls = [e for answer in answers for e in answer if isinstance(e, ToolCall)]
        assert in_order([as_said(c) for c in calls]) == in_order(talk.said)
        sources = {c.id: c.provenance.id_source for c in calls}
        assert all(sources[s.id] == ("conflated" if s.conflated else "natural")
                   for s in talk.said if s.id)  # fmt: skip
        assert all(isinstance(answer[-1], Finish) for answer in answers)


def as_said(call: ToolCall) -> Said:
    id = None if call.provenance.id_source == "synthetic" else call.id
    return Said(id, call.name, call.arguments, call.runs_on, call.choice)


@pytest.mark.parametrize("wire", WIRES)
def test_undamaged_streams_differ_in_calls_and_in_how_they_are_written(wire: str) -> None:
    many = list(talks(wire))
    assert len({t.body for t in many}) > 0.9 * len(many)
    assert {len(t.said) for t in many} >= {0, 1, 2}
    assert any(not s.arguments for t in many for s in t.said)
    assert any(
        not json.dumps(s.arguments, ensure_ascii=False).isascii() for t in many for s in t.said
    )


# --- streams of the real world --------------------------------------------------------------------

CORPUS = os.environ.get("STREAMNORM_CORPUS", "")
without_corpus = pytest.mark.skipif(not CORPUS, reason="STREAMNORM_CORPUS names no folder")


def rows(wire: str) -> Iterator[dict[str, Any]]:
    for line in (Path(CORPUS) / "expected.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        if row["streamnorm_provider"] == wire and row["trust"] in ("agreed", "adjudicated"):
            yield row


@without_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("wire", WIRES)
def test_the_reader_finds_the_whole_calls_of_recorded_streams(wire: str) -> None:
    differing = {}
    for row in rows(wire):
        path = Path(CORPUS) / row["path"]
        if not path.exists():
            continue
        left = list(read(wire, path.read_bytes()).calls)
        missing = [x for x in row["calls"] if not taken(x, left)]
        for optional in row.get("optional_calls") or ():
            taken(optional, left, loosely=True)
        if missing or left:
            differing[row["path"]] = missing, left
    assert differing == {}


def taken(wanted: dict[str, Any], left: list[Heard], loosely: bool = False) -> bool:
    """Take the call that is meant out of those left."""
    for heard in left:
        same = wanted.get("id") in heard.ids or heard.name == wanted["name"] if loosely else (
            is_meant(wanted, heard)
        )  # fmt: skip
        if same:
            left.remove(heard)
            return True
    return False


def is_meant(wanted: dict[str, Any], heard: Heard) -> bool:
    ids = {wanted["id"], *(wanted.get("id_any") or ())}
    if wanted["id"] is not None and not ids & {*heard.ids, heard.id}:
        return False
    if wanted.get("runs_on", heard.runs_on) != heard.runs_on:
        return False
    if wanted.get("mode", "exact") == "exact":
        same = wanted["arguments"] in ("*", heard.arguments)
        return heard.name == wanted["name"] and same
    text = json.dumps(heard.arguments)
    return all(json.dumps(leaf).strip('"') in text for leaf in leaves(wanted["arguments"]))


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    elif value is not None:
        yield value
