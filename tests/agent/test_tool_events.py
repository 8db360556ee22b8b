"""What is told around each execution of a tool: events, log lines, and what a page hears."""

from __future__ import annotations

import json

import anyio
import pytest
import structlog

from streamnorm import ClientTool, LoopGuard, ToolEnded, ToolLoop, ToolStarted
from streamnorm.testing import call, say, script
from streamnorm.tools import Tool
from streamnorm.ui import ag_ui, vercel
from tests.agent.models import Model, add, both, echo, fail, ran

AROUND = ("tool_started", "tool_ended", "settled", "finish")


async def never() -> None:
    "Waits."
    await anyio.sleep_forever()


def around(events):
    return [
        (e.kind, getattr(e, "outcome", None) or getattr(e, "name", None)) for e in events
        if e.kind in AROUND
    ]  # fmt: skip


@both
async def test_each_execution_is_told_before_it_begins_and_when_it_has_ended():
    order = []

    def look(x: int) -> int:
        "Looks."
        order.append("ran")
        return x

    model = Model(script(call("look", x=1)), script(say("ok")))
    async with ToolLoop(model, [look]).run("Go.") as run:
        async for event in run:
            if event.kind in AROUND:
                order.append(event.kind)
    assert order == ["finish", "tool_started", "ran", "tool_ended", "settled", "finish"]


@both
async def test_beginning_end_call_and_record_have_one_checksum_and_one_duration():
    model = Model(script(call("add", a=1).with_id("toolu_1")), script(say("ok")))
    run, events = await ran(ToolLoop(model, [add]))
    (asked,) = run.conversation.turns[1].calls
    (began,) = [e for e in events if isinstance(e, ToolStarted)]
    (ended,) = [e for e in events if isinstance(e, ToolEnded)]
    (record,) = run.settled
    assert began == ToolStarted(0, "toolu_1", "add", asked.checksum)
    assert ended == ToolEnded(0, "toolu_1", "add", asked.checksum, "ok", record.seconds)
    assert record.checksum == asked.checksum


@both
async def test_every_outcome_has_its_word():
    tools = [add, fail, never, (Tool("odd"), lambda said: object())]
    tools.append(ClientTool(Tool("nan"), lambda said: "x", inline=lambda results: 1 / 0))
    steps = [
        call("add", a=1),
        call("fail"),
        call("never"),
        call("add", a="x"),
        call("odd"),
        call("nan"),
    ]
    model = Model(script(*steps), script(say("ok")))
    run, events = await ran(ToolLoop(model, tools, timeout=0.05))
    told = {e.call: e.outcome for e in events if isinstance(e, ToolEnded)}
    assert told == {0: "ok", 1: "error", 2: "timeout", 3: "invalid", 4: "error", 5: "error"}
    assert [record.error is None for record in run.settled] == [
        o == "ok" for _, o in sorted(told.items())
    ]


@both
async def test_what_is_not_run_is_not_told_as_run():
    model = Model(
        script(call("add", a=1), call("none"), call("echo", text="x"), call("add", a=1)),
        script(say("ok")),
    )
    guard = LoopGuard(equal=2, ping_pong=0)
    loop = ToolLoop(model, [add, echo], approve=lambda call: call.name != "echo", guard=guard)
    run, events = await ran(loop)
    assert len(run.settled) == 4
    assert [(e.kind, e.call) for e in events if isinstance(e, ToolStarted | ToolEnded)] == [
        ("tool_started", 0), ("tool_ended", 0),
    ]  # fmt: skip


@both
async def test_who_stops_when_a_tool_has_been_told_still_hears_its_end():
    model = Model(script(call("add", a=1)), script(say("never")))
    async with ToolLoop(model, [add]).run("Go.") as run:
        heard = []
        async for event in run:
            heard.append(event)
            if event.kind == "tool_started":
                run.stop()
    assert around(heard)[-3:] == [("tool_started", "add"), ("tool_ended", "ok"), ("settled", "add")]
    assert run.outcome == "stopped"


@both
async def test_who_leaves_when_a_tool_has_been_told_does_not_run_it():
    served = []
    model = Model(script(call("look")))
    loop = ToolLoop(model, [(Tool("look"), served.append)])
    for stop in (True, False):
        async with loop.run("Go.") as run:
            async for event in run:
                if event.kind == "tool_started":
                    if stop:
                        run.stop()
                    break
        model.sent.clear()
        assert run.outcome == ("stopped" if stop else "cancelled")
    assert served == []


# --- the log --------------------------------------------------------------------------------------


def logged(job):
    log = structlog.testing.LogCapture()
    structlog.configure(processors=[log])
    try:
        job()
    finally:
        structlog.reset_defaults()
    return [entry for entry in log.entries if entry["event"].startswith("tool.")]


def test_each_execution_is_logged_at_info_with_its_ids():
    def job():
        async def main():
            model = Model(script(call("add", a=41).with_id("toolu_1")), script(say("ok")))
            async with ToolLoop(model, [add]).run("Go.", conversation="chat-1", run="run-1") as run:
                async for _ in run:
                    pass
            records.extend(run.settled)

        anyio.run(main)

    records = []
    began, ended = logged(job)
    ids = {"conversation": "chat-1", "run": "run-1", "call_id": "toolu_1", "name": "add",
           "checksum": records[0].checksum, "log_level": "info"}  # fmt: skip
    assert began == {"event": "tool.started", **ids}
    assert ended == {"event": "tool.ended", **ids, "outcome": "ok", "seconds": records[0].seconds}
    assert "41" not in str(
        [began["name"], ended["name"], ended["outcome"]]
    )  # no argument is logged


def test_a_tool_that_was_cancelled_is_logged_as_such():
    def job():
        async def main():
            model = Model(script(call("never")))
            with anyio.move_on_after(0.05):
                await ran(ToolLoop(model, [never]))

        anyio.run(main)

    assert [entry.get("outcome") for entry in logged(job)] == [None, "cancelled"]


# --- what a page hears ----------------------------------------------------------------------------


@pytest.fixture
def told():
    model = Model(script(call("add", a=1).with_id("toolu_1")), script(say("ok")))
    run, events = anyio.run(ran, ToolLoop(model, [add]))
    return run.settled[0], events


def payloads(encoder, events):
    return [json.loads(payload) for payload in encoder.payloads(*events)]


def facts(record):
    checksum = {"checksum": record.checksum}
    return [
        {"toolCallId": "toolu_1", "status": "started", "payload": checksum},
        {"toolCallId": "toolu_1", "status": "ended",
         "payload": {**checksum, "outcome": "ok", "seconds": record.seconds}},
    ]  # fmt: skip


def test_the_ai_sdk_hears_of_both_as_transient_data(told):
    record, events = told
    chunks = payloads(vercel.Encoder(), events)
    progress = [chunk for chunk in chunks if chunk["type"] == "data-tool-progress"]
    assert [chunk["data"] for chunk in progress] == facts(record)
    assert all(chunk["transient"] for chunk in progress)
    # They stand between the steps, before the result, and open none.
    kinds = [chunk["type"] for chunk in chunks]
    assert kinds.count("start-step") == 2
    assert kinds.index("data-tool-progress") < kinds.index("tool-output-available")


def test_ag_ui_hears_of_both_as_custom_events(told):
    record, events = told
    chunks = payloads(ag_ui.Encoder(thread_id="t", run_id="r"), events)
    progress = [c for c in chunks if c.get("name") == "streamnorm.tool_progress"]
    assert [chunk["value"] for chunk in progress] == facts(record)
