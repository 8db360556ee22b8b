"""Seed 002, the record of a call: what it holds, how it is known, what its results may be."""

from __future__ import annotations

import hashlib
import json

import pytest

from streamnorm import (
    Artifact,
    ClientTool,
    File,
    LoopGuard,
    Settled,
    Spool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolLoop,
    event_to_dict,
)
from streamnorm.agent.artifacts import artifact_tools
from streamnorm.errors import UsageError
from streamnorm.testing import call, say, script
from tests.agent.models import Model, add, both, outputs, ran
from tests.conftest import Chat, calls_of, run

LOG = "ok\n" * 40_000


def log() -> str:
    "A long log."
    return LOG


# --- a record is a call that has settled ----------------------------------------------------------


@both
async def test_a_record_pairs_name_and_validated_arguments_with_results_and_provenance():
    model = Model(script(call("add", a=1).with_id("toolu_1")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [add]))
    (record,) = loop_run.settled
    assert (record.id, record.name, record.arguments, record.error) == (
        "toolu_1",
        "add",
        {"a": 1},
        None,
    )
    assert record.artifacts[0].content == b"2"
    assert (record.provenance.provider, record.provenance.id_source) == ("anthropic", "natural")


@both
async def test_when_a_record_exists_the_call_has_settled_with_results_or_an_error():
    model = Model(script(call("add", a=1), call("add", a="x")), script(say("ok")))
    loop_run, events = await ran(ToolLoop(model, [add]))
    kinds = [e.kind for e in events]
    assert kinds.index("settled") > len(kinds) - 1 - kinds[::-1].index("tool_ended")
    assert [(r.results is None) != (r.error is None) for r in loop_run.settled] == [True, True]


def test_what_is_streamed_in_pieces_is_no_record():
    events = run(
        "openai_chat",
        [Chat.call(0, "call_1", "f", '{"a":') + Chat.call(0, None, None, "1}") + Chat.end()],
    )
    shapes = [type(e) for e in events if isinstance(e, ToolCallStart | ToolCallDelta | ToolCall)]
    assert shapes == [ToolCallStart, ToolCallDelta, ToolCallDelta, ToolCall]
    for piece in (e for e in events if isinstance(e, ToolCallStart | ToolCallDelta)):
        with pytest.raises(UsageError):
            Settled.of(piece, error="never")  # type: ignore[arg-type]


# --- the checksum ---------------------------------------------------------------------------------


def test_the_checksum_is_sha256_over_the_name_and_the_canonical_arguments():
    record = Settled("call_1", "f", '{"b": 1.0, "a": [true, null]}', error="x")
    canonical = json.dumps(
        {"args": {"a": [True, None], "b": 1}, "tool": "f"}, separators=(",", ":")
    )
    same = ToolCall(3, "another", "f", {"a": [True, None], "b": 1}, "")
    assert record.checksum == same.checksum
    assert len(record.checksum) == len(hashlib.sha256(canonical.encode()).hexdigest())


def test_nobody_sets_the_checksum():
    with pytest.raises(TypeError):
        Settled("call_1", "f", {}, error="x", checksum="0" * 64)  # type: ignore[call-arg]
    record = Settled("call_1", "f", {}, error="x")
    with pytest.raises(AttributeError):
        record.checksum = "0" * 64  # type: ignore[misc]


@both
async def test_an_identical_call_in_a_later_turn_is_counted_as_the_same():
    model = Model(
        *[script(call("add", b=2, a=1)), script(call("add", a=1, b=2))], script(say("ok"))
    )
    guard = LoopGuard(equal=0)
    loop_run, _ = await ran(ToolLoop(model, [add], guard=guard))
    first, second = loop_run.settled
    assert (first.checksum, first.id == second.id) == (second.checksum, False)
    assert loop_run.guard.count(loop_run.conversation.turns[1].calls[0]) == 2


@both
async def test_begin_and_end_of_an_execution_are_told_under_the_checksum_before_arguments_are_checked():
    model = Model(script(call("add", a="no number")), script(say("ok")))
    loop_run, events = await ran(ToolLoop(model, [add]))
    (asked,) = loop_run.conversation.turns[1].calls
    told = [(e.kind, e.checksum) for e in events if e.kind in ("tool_started", "tool_ended")]
    assert told == [("tool_started", asked.checksum), ("tool_ended", asked.checksum)]
    assert loop_run.settled[0].error.startswith("not run: the arguments do not fit")


def test_a_record_tells_that_it_was_tampered_with():
    record = Settled("call_1", "pay", {"euro": 5}, Artifact.of("paid"))
    assert record.is_intact
    object.__setattr__(record, "_arguments", {"euro": 5000})
    assert not record.is_intact
    with pytest.raises(UsageError, match="was changed"):
        record.result()


def test_what_a_tool_gave_is_bound_to_the_call_that_produced_it():
    record = Settled("call_1", "f", {"a": 1}, Artifact.of("x"))
    other = ToolCall(0, "call_1", "f", {"a": 2}, "")
    with pytest.raises(UsageError, match="this record is of"):
        record.result(other)


# --- three shapes of results ----------------------------------------------------------------------


@both
async def test_what_a_normal_tool_gives_is_an_artifact_or_several():
    def several() -> list[Artifact]:
        "Two."
        return [Artifact.of("one"), Artifact.of("two")]

    tools = [add, (ClientTool.from_function(several).tool, lambda said: several())]
    model = Model(script(call("add", a=1), call("several")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, tools))
    one, two = (record.results for record in loop_run.settled)
    assert isinstance(one, Artifact)
    assert [type(item) for item in two] == [Artifact, Artifact]


@both
async def test_media_are_not_wrapped_in_artifacts():
    picture = File(b"\x89PNG", "image/png")
    tool = (ClientTool.from_function(log, name="look").tool, lambda said: picture)
    model = Model(script(call("look")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [tool]))
    assert loop_run.settled[0].results == picture


@both
async def test_a_result_is_shown_inline_unless_the_tool_says_otherwise_however_large_it_is():
    model = Model(script(call("log")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [log]))
    assert outputs(loop_run) == [LOG]
    assert loop_run.settled[0].inline
    huge = "x" * 20_000_000
    model = Model(script(call("pages")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [ClientTool.from_function(lambda: huge, name="pages")]))
    assert outputs(loop_run)[0] == huge
    short = ClientTool.from_function(lambda: "ok", name="short", inline=False)
    model = Model(script(call("short")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [short]))
    assert "not shown" in outputs(loop_run)[0]


@both
async def test_the_producing_tool_decides_by_what_it_produced():
    tool = ClientTool.from_function(log, inline=lambda results: results.size < 100)
    model = Model(script(call("log")), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [tool]))
    assert not loop_run.settled[0].inline


# --- artifact tools -------------------------------------------------------------------------------


def handles() -> list[Settled]:
    said = {"callId": "call_log", "pattern": "x"}
    return [
        Settled("call_log", "log", {}, Artifact.of("ok\nfailed\n"), inline=False),
        Settled("call_grep", "artifact_grep", said, "2: failed", from_artifact_tool=True),
    ]


def test_the_model_cannot_call_an_artifact_tool_on_what_an_artifact_tool_gave():
    for tool in artifact_tools(handles(), Spool()):
        assert tool.tool.schema["properties"]["callId"]["enum"] == ["call_log"]
        with pytest.raises(ValueError, match="callId is one of call_log"):
            tool.handler({"callId": "call_grep", "pattern": "x"})


def test_the_enum_is_of_ids_and_not_of_checksums():
    records = handles()
    (schema, *_) = (tool.tool.schema for tool in artifact_tools(records, Spool()))
    assert schema["properties"]["callId"]["enum"] == [records[0].id]
    assert records[0].checksum not in json.dumps(schema)


@both
async def test_the_answer_of_an_artifact_tool_is_plain_text_and_marked():
    tool = ClientTool.from_function(log, inline=False)
    head = call("artifact_head", callId="toolu_log", lines=1)
    model = Model(script(call("log").with_id("toolu_log")), script(head), script(say("ok")))
    loop_run, _ = await ran(ToolLoop(model, [tool]))
    assert [(r.from_artifact_tool, r.results == "ok") for r in loop_run.settled] == [
        (False, False), (True, True),
    ]  # fmt: skip


# --- three names ----------------------------------------------------------------------------------


@both
async def test_id_checksum_and_the_key_of_an_execution_are_three_and_each_stands_under_its_name():
    model = Model(script(call("add", a=1).with_id("toolu_1")), script(say("ok")))
    loop_run, events = await ran(ToolLoop(model, [add]))
    (record,) = loop_run.settled
    plain = event_to_dict(record)
    assert (plain["id"], plain["checksum"]) == ("toolu_1", record.checksum)
    (began,) = (event_to_dict(e) for e in events if e.kind == "tool_started")
    assert (began["id"], began["checksum"]) == ("toolu_1", record.checksum)


def test_the_id_of_the_provider_is_kept_to_the_letter_and_used_once_in_a_turn():
    twice = Chat.call(0, "call_A", "f", "{}") + Chat.call(1, "call_A", "g", "{}") + Chat.end()
    ids = [c.id for c in calls_of(run("openai_chat", [twice]))]
    assert ids[0] == "call_A"
    assert len(set(ids)) == 2
