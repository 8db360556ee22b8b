"""Seed 004, the call_id of the Responses wire: its twelve criteria, one test each."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog

from streamnorm import (
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolLoop,
    ToolResult,
    provider,
    running,
)
from streamnorm.testing import call, say, script
from tests.agent.models import Model, add, both, ran
from tests.conftest import run
from tests.providers.streams import Responses

Line = dict[str, Any]
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pay", "arguments": ""}


def stream(*, added: dict[str, Any] = ITEM, number: int = 1) -> bytes:
    """Calls side by side: added, then pieces of each in turn, then done."""
    items = [
        {**added, "id": f"fc_{n}", **({"call_id": f"call_{n}"} if added.get("call_id") else {})}
        for n in range(1, number + 1)
    ]
    body = Responses.CREATED
    for at, item in enumerate(items):
        body += Responses.added(item, at)
    for piece in ('{"n":', "{}}"):
        for at, item in enumerate(items):
            said = piece.replace("{}", str(at + 1))
            body += Responses.say("function_call_arguments.delta", item_id=item["id"],
                                  output_index=at, delta=said)  # fmt: skip
    for at, item in enumerate(items):
        body += Responses.done(
            {**item, "arguments": f'{{"n":{at + 1}}}', "status": "completed"}, at
        )
    return body + Responses.completed()


def logged(body: bytes) -> tuple[list[Any], list[Line]]:
    with structlog.testing.capture_logs() as lines:
        events = run("openai_responses", [body])
    structlog.reset_defaults()
    return events, lines


def of(lines: list[Line], name: str) -> list[Line]:
    return [line for line in lines if line["event"] == name]


WITHOUT = [{k: v for k, v in ITEM.items() if k != "call_id"}, {**ITEM, "call_id": ""}]


# --- requirement 1 --------------------------------------------------------------------------------


def test_1_1_call_id_is_extracted_from_the_nested_item_when_it_is_added():
    starts = [e for e in run("openai_responses", [stream()]) if isinstance(e, ToolCallStart)]
    assert [(e.id, e.name) for e in starts] == [("call_1", "pay")]


def test_1_2_pieces_of_arguments_go_to_the_call_of_their_call_id():
    events = run("openai_responses", [stream(number=3)])
    ids = {e.call: e.id for e in events if isinstance(e, ToolCallStart)}
    told: dict[str, str] = {}
    for piece in (e for e in events if isinstance(e, ToolCallDelta)):
        told[ids[piece.call]] = told.get(ids[piece.call], "") + piece.text
    assert told == {f"call_{n}": f'{{"n":{n}}}' for n in (1, 2, 3)}


@both
async def test_1_3_a_tool_is_executed_under_its_call_id_and_so_goes_its_result():
    seen = []

    def look(a: int) -> int:
        "Looks."
        seen.append((running().call.id, a))
        return a

    calls = [call("look", a=n).with_id(f"call_{n}") for n in (1, 2)]
    model = Model(script(*calls), script(say("ok")), wire="openai_responses")
    await ran(ToolLoop(model, [look]))
    assert sorted(seen) == [("call_1", 1), ("call_2", 2)]
    sent = provider("openai_responses").request(model.sent[1], model="m")["input"]
    outputs = [(i["call_id"], i["output"]) for i in sent if i.get("type") == "function_call_output"]
    assert outputs == [("call_1", "1"), ("call_2", "2")]


@both
async def test_1_4_lines_about_a_call_have_its_call_id_at_debug_and_at_info():
    _, lines = logged(stream())
    (started,) = of(lines, "tool_call.started")
    (finished,) = of(lines, "tool_call.finished")
    assert (started["log_level"], started["call_id"]) == ("debug", "call_1")
    assert (finished["log_level"], finished["call_id"]) == ("info", "call_1")
    with structlog.testing.capture_logs() as lines:
        model = Model(script(call("add", a=1).with_id("toolu_1")), script(say("ok")))
        await ran(ToolLoop(model, [add]))
    structlog.reset_defaults()
    around = [*of(lines, "tool.started"), *of(lines, "tool.ended")]
    assert [(line["log_level"], line["call_id"]) for line in around] == [("info", "toolu_1")] * 2


# --- requirement 2 --------------------------------------------------------------------------------


def test_2_1_a_result_has_the_extracted_call_id():
    (made,) = (e for e in run("openai_responses", [stream()]) if isinstance(e, ToolCall))
    (entry,) = provider("openai_responses").results([ToolResult.for_call(made, "paid")])
    assert entry == {"type": "function_call_output", "call_id": "call_1", "output": "paid"}


def test_2_2_the_state_of_a_call_is_kept_by_its_call_id():
    # A gateway that gives an item another id and place in each event: call_id holds it together.
    moved = {**ITEM, "id": "fc_other", "arguments": '{"n":1}', "status": "completed"}
    body = Responses.CREATED + Responses.added(ITEM, 0) + Responses.done(moved, None)
    calls = [
        e
        for e in run("openai_responses", [body + Responses.completed()])
        if isinstance(e, ToolCall)
    ]
    assert [(c.id, c.arguments) for c in calls] == [("call_1", {"n": 1})]


@pytest.mark.parametrize("item", [ITEM, *WITHOUT], ids=["there", "missing", "empty"])
def test_2_3_every_call_that_is_told_has_a_valid_id(item: dict[str, Any]):
    calls = [
        e
        for e in run("openai_responses", [stream(added=item, number=2)])
        if isinstance(e, ToolCall)
    ]
    ids = [c.id for c in calls]
    assert len(ids) == 2
    assert all(ids)
    assert len(set(ids)) == 2


@pytest.mark.parametrize("item", WITHOUT, ids=["missing", "empty"])
def test_2_4_a_missing_or_empty_call_id_is_a_warning_and_another_id_serves(item: dict[str, Any]):
    events, lines = logged(stream(added=item))
    (made,) = (e for e in events if isinstance(e, ToolCall))
    (warning,) = of(lines, "call.id_conflated")
    assert (made.id, made.provenance.id_source) == ("fc_1", "conflated")
    assert (warning["log_level"], warning["call_id"]) == ("warning", "fc_1")


# --- requirement 3 --------------------------------------------------------------------------------


def test_3_1_where_an_id_was_found_is_logged_at_debug_and_trouble_as_a_warning():
    _, lines = logged(stream())
    (started,) = of(lines, "tool_call.started")
    assert (started["log_level"], started["wire_field"], started["id_source"]) == (
        "debug", "call_id", "natural",
    )  # fmt: skip
    _, lines = logged(stream(added=WITHOUT[0]))
    assert {line["log_level"] for line in lines if line["event"].startswith("call.id")} == {
        "warning"
    }


@pytest.mark.parametrize("item", WITHOUT, ids=["missing", "empty"])
def test_3_2_an_id_that_was_not_found_is_logged_with_the_structure_of_its_event(
    item: dict[str, Any],
):
    _, lines = logged(stream(added=item))
    (warning,) = of(lines, "call.id_conflated")
    assert {"type", "id", "name", "arguments"} <= warning["structure"].keys()
    assert "pay" not in json.dumps(warning["structure"])  # its shape, never its values


def test_3_3_a_fallback_is_logged_with_its_reason_and_its_strategy():
    _, lines = logged(stream(added=WITHOUT[0]))
    (warning,) = of(lines, "call.id_conflated")
    assert (warning["reason"], warning["strategy"]) == ("no id in call_id", "taken from item.id")
    nothing = {k: v for k, v in WITHOUT[0].items() if k != "id"}
    body = (
        Responses.CREATED + Responses.done({**nothing, "arguments": "{}"}) + Responses.completed()
    )
    _, lines = logged(body)
    (minted,) = of(lines, "call.id_synthetic")
    assert minted["reason"] == "no id in call_id"
    assert minted["strategy"].startswith("minted: HMAC")


def test_3_4_a_stream_ends_with_a_summary_of_all_call_ids():
    _, lines = logged(stream(number=3))
    assert lines[-1]["event"] == "stream.finished"
    assert lines[-1]["call_ids"] == ["call_1", "call_2", "call_3"]
