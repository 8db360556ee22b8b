"""Whose call it is: one place is one call, natural ids win, and arguments are found where they are."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from streamnorm.core.parser import Parser
from streamnorm.events import ProviderToolResult, ToolCall
from streamnorm.providers import PROVIDERS
from streamnorm.providers.openai_responses.items import Tool
from tests.conftest import Chat, Messages, run, sse, text_of
from tests.providers.streams import (
    PAY,
    Gemini,
    Responses,
    broken,
    calls,
    end,
    fate,
    heard,
)

R = Responses
PAID = [("call_A", "pay", {"n": 1})]

# --- ids of Responses, for every type of item that has a call_id --------------------------------------

INPUTS: dict[str, Any] = {
    "arguments": PAY, "input": "ls", "code": "ls", "action": {"n": 1}, "operation": {"n": 1},
}  # fmt: skip
BY_CALL_ID = [
    (provider, tool)
    for provider in ("openai_responses", "azure_foundry")
    for tool in PROVIDERS[provider].part("parser", Parser).TOOLS.values()
    if "call" in tool.role and ("call_id", "natural") in tool.ids
]
over_types = pytest.mark.parametrize(
    ("provider", "tool"), BY_CALL_ID, ids=[f"{p}/{t.type}" for p, t in BY_CALL_ID]
)


def item(tool: Tool, call_id: str | None, *, full: bool = True) -> dict[str, Any]:
    """An item of this type, with its input or without."""
    said: dict[str, Any] = {"type": tool.type, "id": "item_1", "name": "pay"}
    if tool.name_field != "name":
        said[tool.name_field] = "pay"
    if call_id is not None:
        said["call_id"] = call_id
    if full:
        field = tool.said[1]
        said[field] = {"n": 1} if tool.said[0] == "object" else INPUTS[field]
    return said


def only_call(provider: str, *frames: bytes) -> tuple[ToolCall, dict[str, int]]:
    events, notes = heard(provider, R.CREATED + b"".join(frames))
    told = [e for e in events if isinstance(e, ToolCall)]
    assert (len(told), broken(events)) == (1, [])
    return told[0], notes


def source(call: ToolCall) -> tuple[str, str, str | None]:
    assert call.provenance is not None
    return call.id, call.provenance.id_source, call.provenance.wire_field


def test_every_type_of_call_with_a_call_id_is_asked():
    assert len(BY_CALL_ID) >= 25


@over_types
@pytest.mark.parametrize("first", [None, ""])
def test_an_id_that_comes_with_the_done_item_wins_over_that_of_the_item(provider, tool, first):
    call, notes = only_call(
        provider,
        R.added(item(tool, first, full=False)),
        R.done(item(tool, "call_A")),
        R.completed(),
    )
    assert source(call) == ("call_A", "natural", "call_id")
    assert notes == {"call.id_late": 1}


@over_types
def test_an_id_that_comes_with_the_final_response_wins_if_the_call_was_not_told(provider, tool):
    call, notes = only_call(
        provider, R.added(item(tool, None, full=False)), R.completed(item(tool, "call_A"))
    )
    assert source(call) == ("call_A", "natural", "call_id")
    assert notes == {"call.id_late": 1}


@over_types
def test_an_id_that_comes_after_the_call_was_told_is_a_note_and_changes_nothing(provider, tool):
    call, notes = only_call(
        provider, R.added(item(tool, None, full=False)), R.done(item(tool, None)),
        R.completed(item(tool, "call_A")),
    )  # fmt: skip
    assert source(call) == ("item_1", "conflated", "item.id")
    assert notes == {"call.id_conflated": 1, "call.id_changed": 1}


@over_types
def test_one_item_whose_id_changes_is_one_call_and_the_last_id_before_it_is_told_counts(
    provider, tool
):
    call, notes = only_call(
        provider, R.added(item(tool, "A", full=False)), R.done(item(tool, "B")),
        R.completed(item(tool, "C")),
    )  # fmt: skip
    assert source(call) == ("B", "natural", "call_id")
    assert notes == {"call.id_changed": 2}


@over_types
def test_a_fallback_to_the_items_id_is_logged_with_reason_strategy_and_structure(provider, tool):
    body = R.CREATED + R.added(item(tool, None, full=False)) + R.done(item(tool, None))
    with structlog.testing.capture_logs() as lines:
        run(provider, [body + R.completed()])
    structlog.reset_defaults()
    (line,) = [line for line in lines if line["event"] == "call.id_conflated"]
    assert line["log_level"] == "warning"
    assert line["call_id"] == "item_1"
    assert line["reason"] == "no id in call_id"
    assert line["strategy"] == "taken from item.id"
    assert "id" in str(line["structure"])


PIECES = {
    "function_call": ("function_call_arguments", "arguments", PAY),
    "mcp_call": ("mcp_call_arguments", "arguments", PAY),
    "custom_tool_call": ("custom_tool_call_input", "input", "ls"),
    "code_interpreter_call": ("code_interpreter_call_code", "code", "ls"),
}


@pytest.mark.parametrize("how", ["delta", "done"])
@pytest.mark.parametrize("type_", PIECES)
def test_an_id_that_comes_with_a_piece_or_its_closing_copy_wins(type_: str, how: str):
    kind, field, text = PIECES[type_]
    said = {"type": type_, "id": "item_1", "name": "pay"}
    place = {"output_index": 0, "item_id": "item_1"}
    pieces = R.say(f"{kind}.delta", delta=text, **place, **_id(how == "delta"))
    pieces += R.say(f"{kind}.done", **{field: text}, **place, **_id(how == "done"))
    call, _ = only_call(
        "openai_responses", R.added(said), pieces, R.done({**said, field: text}), R.completed()
    )
    assert source(call) == ("call_A", "natural", "call_id")


def _id(there: bool) -> dict[str, str]:
    return {"call_id": "call_A"} if there else {}


# --- calls and outputs without ids ------------------------------------------------------------------

PAIRS = [
    ("program", "program_output", "code", "result"),
    ("function_call", "function_call_output", "arguments", "output"),
    ("custom_tool_call", "custom_tool_call_output", "input", "output"),
    ("tool_search_call", "tool_search_output", "arguments", "tools"),
    ("shell_call", "shell_call_output", "action", "output"),
]


def pair(types: tuple[str, ...], n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    call, output, field, result = types
    text: Any = {"n": n} if field == "action" else f'{{"n":{n}}}'
    return {"type": call, "name": "f", field: text}, {"type": output, result: f"out {n}"}


def paired(events: list[Any]) -> list[tuple[int | None, Any]]:
    return [(e.call, e.output) for e in events if isinstance(e, ProviderToolResult)]


@pytest.mark.parametrize("types", PAIRS, ids=[p[0] for p in PAIRS])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("none", [{}, {"id": None}], ids=["no id", "an id that is null"])
def test_calls_and_outputs_without_ids_pair_in_order(types, indexed: bool, none: dict[str, Any]):
    (one, out_one), (two, out_two) = pair(types, 1), pair(types, 2)
    items = [{**none, **item} for item in (one, two, out_one, out_two)]
    body = R.CREATED + b"".join(R.done(it, n if indexed else None) for n, it in enumerate(items))
    events, notes = heard("openai_responses", body + R.completed(*(items if indexed else [])))
    assert paired(events) == [(0, "out 1"), (1, "out 2")]
    assert notes["call.id_synthetic"] == 2


def test_two_equal_outputs_without_ids_are_two_and_their_copies_at_the_end_are_none():
    (one, out), (two, _) = pair(PAIRS[0], 1), pair(PAIRS[0], 2)
    items = [one, two, out, out]
    body = R.CREATED + b"".join(R.done(it, n) for n, it in enumerate(items)) + R.completed(*items)
    assert paired(heard("openai_responses", body)[0]) == [(0, "out 1"), (1, "out 1")]


def test_an_output_that_is_said_again_in_its_place_is_told_once():
    call, out = pair(PAIRS[0], 1)
    other, _ = pair(PAIRS[0], 2)
    body = R.CREATED + R.done(call) + R.done(other, 1) + R.done(out, 2) + R.done(out, 2)
    assert paired(heard("openai_responses", body + R.completed())[0]) == [(0, "out 1")]


def test_outputs_without_ids_pair_with_calls_of_their_own_type():
    program, out = pair(PAIRS[0], 1)
    search, found = pair(PAIRS[3], 2)
    body = R.CREATED + R.done(program) + R.done(search, 1) + R.done(found, 2) + R.done(out, 3)
    events, _ = heard("openai_responses", body + R.completed())
    assert paired(events) == [(1, "out 2"), (0, "out 1")]


# --- a start said twice -----------------------------------------------------------------------------


def test_a_start_said_twice_is_one_call_under_its_own_id():
    body = Messages.START + Messages.open(0, "a", "pay") * 2 + Messages.args(0, PAY)
    events, notes = heard("anthropic", body + Messages.close(0) + Messages.end())
    assert (calls(events), broken(events)) == ([("a", "pay", {"n": 1})], [])
    assert notes == {"call.start_repeated": 1}


def test_a_gateway_that_tries_again_before_the_first_fragment_leaves_no_empty_call():
    body = Messages.START + Messages.open(0, "a", "pay") + Messages.open(0, "b", "pay")
    body += Messages.args(0, PAY) + Messages.close(0) + Messages.end()
    events, _ = heard("anthropic", body)
    assert calls(events) == [("b", "pay", {"n": 1})]
    assert broken(events) == [("a", "pay", "conflict")]


def test_another_id_for_the_same_index_leaves_no_empty_call_on_chat():
    body = Chat.call(0, "a", "pay") + Chat.call(0, "b", "pay") + Chat.call(0, None, None, PAY)
    events, notes = heard("openai_chat", body + Chat.end())
    assert calls(events) == [("b", "pay", {"n": 1})]
    assert broken(events) == [("a", "pay", "conflict")]
    assert notes == {"call.index_reused": 1}


def cohere(kind: str, id: str | None = None, text: str = "") -> bytes:
    said: dict[str, Any] = {"function": {"arguments": text}}
    if id is not None:
        said = {"id": id, "type": "function", "function": {"name": "pay", "arguments": text}}
    more = {} if kind.endswith("end") else {"delta": {"message": {"tool_calls": said}}}
    return sse({"type": kind, "index": 0, **more})


@pytest.mark.parametrize(("id", "lost"), [("a", []), ("b", [("a", "pay", "conflict")])])
def test_a_start_said_twice_on_cohere(id: str, lost: list[Any]):
    body = sse({"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}})
    body += cohere("tool-call-start", "a") + cohere("tool-call-start", id)
    body += cohere("tool-call-delta", text=PAY) + cohere("tool-call-end")
    body += sse({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}})
    events, _ = heard("cohere", body)
    assert (calls(events), broken(events)) == ([(id, "pay", {"n": 1})], lost)


def test_a_step_that_never_stops_is_no_empty_call():
    step = {"type": "function_call", "id": "a", "name": "pay"}
    body = sse({"event_type": "interaction.created", "interaction": {"id": "i", "model": "m"}})
    body += sse({"event_type": "step.start", "index": 0, "step": step})
    body += sse(
        {"event_type": "interaction.completed", "interaction": {"id": "i", "status": "completed"}}
    )
    events, _ = heard("gemini_interactions", body)
    assert fate(events) == (["truncated"], ("finish", "stop"))


# --- arguments where nobody looks -------------------------------------------------------------------


def test_a_search_that_has_arguments_instead_of_an_action_has_them():
    said = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    body = (
        R.CREATED + R.added(said) + R.done({**said, "arguments": '{"query":"x"}'}) + R.completed()
    )
    events, _ = heard("openai_responses", body)
    assert calls(events) == [("ws_1", "web_search", {"query": "x"})]


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"type": "function_call", "name": "f"}, "parameters", {"n": 1}),
        ({"type": "function_call", "name": "f"}, "body", PAY),
        ({"type": "custom_tool_call", "name": "f"}, "arguments", "ls"),
        ({"type": "apply_patch_call"}, "patch", {"n": 1}),
        ({"type": "shell_call"}, "commands", ["ls"]),
    ],
)
def test_an_input_in_a_field_that_the_type_does_not_have_is_never_told_as_empty(said, field, value):
    body = R.CREATED + R.done({"id": "i", "call_id": "a", **said, field: value}) + R.completed()
    events, _ = heard("openai_responses", body)
    assert (calls(events), [b[2] for b in broken(events)]) == ([], ["conflict"])


CALLED = {"functionCall": {"id": "call_A", "name": "pay", "args": {"n": 1}}}


@pytest.mark.parametrize("finish", ["STOP", None])
@pytest.mark.parametrize("text", ["", "Hi"])
@pytest.mark.parametrize("thought", [{}, {"thought": False}, {"thoughtSignature": "c2ln"}])
def test_a_part_with_a_text_and_a_call_says_both(text: str, finish: str | None, thought):
    body = Gemini.parts({"text": text, **CALLED, **thought}, finish=finish)
    events, _ = heard("gemini", body + (b"" if finish else Gemini.text("", finish="STOP")))
    assert (text_of(events), calls(events), end(events)) == (text, PAID, ("finish", "tool_calls"))


@pytest.mark.parametrize("text", ["", "Hi"])
@pytest.mark.parametrize(
    ("part", "arguments"),
    [
        ({"executableCode": {"id": "c", "language": "PYTHON", "code": "ls"}}, {"code": "ls"}),
        ({"toolCall": {"id": "c", "toolType": "SEARCH", "args": {"q": 1}}}, {"q": 1}),
    ],
)
def test_a_part_with_a_text_and_a_call_of_the_providers_own_says_both(part, arguments, text: str):
    events, _ = heard("gemini", Gemini.parts({"text": text, **part}, finish="STOP"))
    assert text_of(events) == text
    assert [c[2] for c in calls(events)] == [arguments]
