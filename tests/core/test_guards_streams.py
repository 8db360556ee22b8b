"""Guards of ``core.calls`` and ``core.parser`` that only odd streams pass: each row fails if its guard is
removed. Frames of a wire in; every call with its arguments, or the reason it is broken for, out."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.events import BrokenToolCall, ToolCall, ToolCallDelta
from tests.conftest import Chat, Messages, sse
from tests.providers.streams import Gemini, Responses, heard

R, M, G = Responses, Messages, Gemini
ONE, TWO, THREE, MORE = '{"n":1}', '{"n":2}', '{"n":3}', '{"n":1,"m":2}'


def ends(wire: str, *frames: bytes) -> list[tuple[str, Any]]:
    """Every call: its name, and its arguments or why it is broken."""
    events, _ = heard(wire, b"".join(frames))
    return [
        (e.name, e.arguments if isinstance(e, ToolCall) else e.reason)
        for e in events
        if isinstance(e, ToolCall | BrokenToolCall)
    ]


# --- an item that is said again -------------------------------------------------------------------


def fc(text: str, id: str = "a", name: str = "pay") -> dict[str, Any]:
    return R.call(id=f"fc_{id}", call_id=id, name=name, arguments=text)


def search(**action: Any) -> dict[str, Any]:
    said = {"type": "search", "query": "x", **action}
    return {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": said}


def piece(text: str, at: int, **more: Any) -> bytes:
    return R.say("function_call_arguments.delta", delta=text, output_index=at, **more)


BEGUN = R.CREATED + R.added(fc("")) + piece(ONE, 0)
TOLD = BEGUN + R.done(fc(ONE))
SEARCHED = R.CREATED + R.added(search()) + R.done(search())
PAID, SOUGHT = ("pay", {"n": 1}), ("web_search", {"type": "search", "query": "x"})

SAID_AGAIN: dict[str, tuple[bytes, list[tuple[str, Any]]]] = {
    "the same: one call": (TOLD + R.completed(fc(ONE)), [PAID]),
    "otherwise, before it was told: it is broken, and nothing beside it": (
        BEGUN + R.done(fc(TWO)) + R.completed(), [("pay", "conflict")],
    ),
    "otherwise, after it was told: a broken copy": (
        TOLD + R.completed(fc(TWO)), [PAID, ("pay", "conflict")],
    ),
    "otherwise, and otherwise again: one broken copy": (
        TOLD + R.done(fc(TWO)) + R.done(fc(THREE)) + R.completed(), [PAID, ("pay", "conflict")],
    ),
    "with more, where the client has run it: a broken copy": (
        TOLD + R.completed(fc(MORE)), [PAID, ("pay", "conflict")],
    ),
    "otherwise, after it broke: nothing beside it": (
        BEGUN + R.CREATED + R.completed(fc(TWO)), [("pay", "conflict")],
    ),
    "with more, where the provider runs it: one call": (
        SEARCHED + R.completed(search(sources=[{"url": "u"}])), [SOUGHT],
    ),
    "otherwise, where the provider runs it: a broken copy": (
        SEARCHED + R.completed(search(query="y")), [SOUGHT, ("web_search", "conflict")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "told"), SAID_AGAIN.values(), ids=SAID_AGAIN)
def test_an_item_that_is_said_again(body: bytes, told: list[tuple[str, Any]]):
    assert ends("openai_responses", body) == told


# --- what the start of a call brought -------------------------------------------------------------


def given(name: str | None) -> bytes:
    block = {"type": "tool_use", "id": "a", "input": {"n": 1}} | ({"name": name} if name else {})
    return M.START + sse({"type": "content_block_start", "index": 0, "content_block": block})


@pytest.mark.parametrize(
    ("body", "raw", "deltas"),
    [
        (given("pay"), '{"n": 1}', ['{"n": 1}']),
        (given("pay") + M.args(0, '{"m":'), '{"m":', ['{"m":']),
        (given(None), '{"n": 1}', []),
    ],
    ids=["nothing followed", "fragments followed", "it was never named, so never begun"],
)
def test_the_input_in_a_start_is_what_was_heard_of_a_call_that_broke(
    body: bytes, raw: str, deltas: list[str]
):
    events, _ = heard("anthropic", body)
    assert [e.raw for e in events if isinstance(e, BrokenToolCall)] == [raw]
    assert [e.text for e in events if isinstance(e, ToolCallDelta)] == deltas


# --- whose a loss is ------------------------------------------------------------------------------


def delta(at: int, delta: dict[str, Any], **more: Any) -> bytes:
    return sse({"type": "content_block_delta", "index": at, **more, "delta": delta})


def fragment(text: Any, **more: Any) -> bytes:
    return delta(0, {"type": "input_json_delta", "partial_json": text}, **more)


def step(kind: str, at: int, **more: Any) -> bytes:
    return sse({"event_type": f"step.{kind}", "index": at, **more})


def asked(name: str, text: str) -> dict[str, Any]:
    return {"type": "function_call", "id": name, "name": name, "arguments": {"n": text}}


HALF = M.START + M.open(0, "a", "pay") + M.args(0, '{"n"')
REST = M.args(0, ":1}") + M.close(0) + M.end()
BROKEN = ("pay", "conflict")
OTHER = M.open(1, "b", "rob") + M.args(1, TWO) + M.close(1)

LOSSES: dict[str, tuple[str, bytes, list[tuple[str, Any]]]] = {
    "words of a call in a place that has none may be of any": (
        "anthropic",
        HALF + delta(9, {"type": "text_delta", "text": "x"}, odd={"partial_json": ":"}) + REST,
        [BROKEN],
    ),
    "words of a call in the place of one that was told are no other's": (
        "anthropic",
        HALF + OTHER + sse({"type": "content_block_stop", "index": 1, "input": 1}) + REST,
        [("rob", {"n": 2}), PAID],
    ),
    "a new kind in a place of its own may have words of a call": (
        "anthropic", HALF + delta(9, {"type": "brand_new"}, odd={"input": 1}) + REST, [PAID],
    ),
    "a word of a call that says nothing is no loss": (
        "anthropic", HALF + fragment(":1}", input={}) + M.close(0) + M.end(), [PAID],
    ),
    "a word of a call that says something is": (
        "anthropic", HALF + fragment(":1}", input={"m": 2}) + M.close(0) + M.end(), [BROKEN],
    ),
    "an empty list where a text should be is a loss, though its field has a word of a call": (
        "openai_responses",
        BEGUN + R.say("function_call_arguments.done", output_index=0, arguments=[])
        + R.done(fc("")) + R.completed(),
        [BROKEN],
    ),
    "what a call claims by its id is no other's, whatever place it names": (
        "openai_responses",
        R.CREATED + R.added(fc("")) + R.added(fc("", "b", "rob"), 1) + piece('{"n":2', 1)
        + piece(ONE, 5, item_id="zz", call_id="a", odd={"arguments": 1})
        + piece("}", 1) + R.done(fc("", "b", "rob"), 1) + R.completed(),
        [("rob", {"n": 2}), BROKEN],
    ),
    "a copy of a told call that is broken at once is no other's, whatever place it names": (
        "openai_responses",
        TOLD + R.added(fc("", "b", "rob"), 1) + piece('{"n":2', 1)
        + R.say("output_item.done", output_index=7, item=fc(TWO), odd={"arguments": 1})
        + piece("}", 1) + R.done(fc("", "b", "rob"), 1) + R.completed(),
        [PAID, BROKEN, ("rob", {"n": 2})],
    ),
    "bytes that had to be replaced are those of one call": (
        "gemini_interactions",
        step("start", 0, step=asked("pay", "?")).replace(b"?", b"\xff") + step("stop", 0)
        + step("start", 1, step=asked("rob", "x")) + step("stop", 1)
        + sse({"event_type": "interaction.completed", "interaction": {"status": "requires_action"}}),
        [("rob", {"n": "x"}), BROKEN],
    ),
    "words of a call where they lead to one are in their place, though it is no list": (
        "gemini",
        sse({"candidates": [{"content": {"parts": {"functionCall": {"id": "a", "name": "pay",
             "args": {"n": 1}}}}, "finishReason": "STOP"}]}),
        [PAID],
    ),
    "text that is cut leaves the calls beside it whole": (
        "openai_chat",
        Chat.call(0, "a", "pay", '{"n"') + Chat.call(1, "b", "rob", TWO) + Chat.end(),
        [("pay", "invalid_json"), ("rob", {"n": 2})],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "body", "told"), LOSSES.values(), ids=LOSSES)
def test_whose_a_loss_is(wire: str, body: bytes, told: list[tuple[str, Any]]):
    assert ends(wire, body) == told
