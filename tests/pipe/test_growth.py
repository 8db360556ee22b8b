"""Time is linear: eight times as much of a stream takes about eight times as long, however odd it is.

Only ratios are asked, of the time that this process has spent, and generously: what is quadratic takes
sixty-four times as long.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from streamnorm import Limits, Normalizer, provider
from streamnorm.events import Event, Provenance, ToolCall, ToolCallStart
from tests.conftest import Chat, Messages, some, sse
from tests.providers import test_claude_code as claude_code
from tests.providers.streams import Gemini, Responses

R = Responses
MORE, TOO_MUCH = 8, 20  # times as much, and as long: linear is 8, quadratic 64
LIMITS = Limits(calls=1_000_000)
HALF = "\ud83d"


def row(n: int, frame: Callable[[int], bytes]) -> bytes:
    return b"".join(map(frame, range(n)))


def call(i: int, **more: Any) -> dict[str, Any]:
    return R.call(id=f"fc_{i}", call_id=f"c{i}", **more)


def responses_calls(n: int) -> bytes:
    return R.CREATED + row(n, lambda i: R.done(call(i, arguments="{}"), i))


def chat(i: int, **entry: Any) -> bytes:
    return Chat.delta({"tool_calls": [entry]})


def copies(n: int) -> bytes:
    said = R.CREATED + R.added(call(0))
    return said + row(n, lambda i: R.say(
        "function_call_arguments.done", output_index=0, arguments=f'{{"a":{i},"b":"{"x" * 200}"}}'
    ))  # fmt: skip


def line(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


def steps(kind: str, n: int, **step: Any) -> bytes:
    return row(n, lambda i: (
        sse({"event_type": "step.start", "index": i, "step": {"type": kind, **step}})
        + sse({"event_type": "step.stop", "index": i})
    ))  # fmt: skip


def searches(n: int) -> bytes:
    return row(n, lambda i: (
        Messages.open(i, f"s{i}", "web_search", "server_tool_use") + Messages.close(i)
    ))  # fmt: skip


def found(i: int) -> bytes:
    block = {"type": "web_search_tool_result", "tool_use_id": f"o{i}", "content": []}
    return sse(
        {"type": "content_block_start", "index": i, "content_block": block}
    ) + Messages.close(i)


CREATED = sse({"event_type": "interaction.created", "interaction": {"id": "i", "model": "m"}})
PLACE = 1_000_000  # beyond that of any call

# what there is much of -> whose wire, how many of it are the smaller part, the body with n of it
BODIES: dict[str, tuple[str, int, Callable[[int], bytes]]] = {
    "deltas that name no call, after as many calls": ("openai_responses", 300, lambda n: (
        responses_calls(n) + R.added(call(n), n)
        + row(n, lambda i: R.say("function_call_arguments.delta", delta="x")))),
    "deltas that name no call, with many open": ("openai_responses", 300, lambda n: (
        R.CREATED + row(100, lambda i: R.added(call(i), i))
        + row(n, lambda i: R.say("function_call_arguments.delta", delta="x")))),
    "closing copies that differ": ("openai_responses", 1000, copies),
    "outputs of no call": ("openai_responses", 300, lambda n: responses_calls(n) + row(
        n, lambda i: R.done({"type": "function_call_output", "call_id": f"o{i}", "output": ""}, n + i))),
    "outputs without ids": ("openai_responses", 300, lambda n: (
        R.CREATED + row(n, lambda i: R.done({"type": "program", "code": "x"}, i))
        + row(n, lambda i: R.done({"type": "program_output", "result": str(i)}, n + i)))),
    "payloads of no kind that we know": ("openai_responses", 300, lambda n: responses_calls(n) + row(
        n, lambda i: R.say("nonsense", item_id=f"fc_{i}", output_index="x"))),
    "calls that the final response says under other ids": ("openai_responses", 200, lambda n: (
        responses_calls(n) + R.completed(*(call(n + i, arguments="{}") for i in range(n))))),
    "messages that the final response says otherwise": ("openai_responses", 300, lambda n: (
        R.CREATED + row(n, lambda i: R.text_done(f"t{i}", i))
        + R.completed(*(R.message(f"u{i}", f"m{i}") for i in range(n))))),
    "texts in places without an item": ("openai_responses", 500, lambda n: (
        R.CREATED + row(n, lambda i: R.text(f"t{i}", i))
        + row(n, lambda i: R.text_done(f"u{i}", n + i)))),
    "the end of a call, again and again": ("anthropic", 300, lambda n: (
        Messages.START + Messages.open(0, "a", "f") + Messages.args(0, '{"a":[')
        + row(n, lambda i: Messages.args(0, "1," * 20)) + row(n, lambda i: Messages.close(0)))),
    "the end of a call with half characters, again and again": ("anthropic", 200, lambda n: (
        Messages.START + Messages.open(0, "a", "f") + Messages.args(0, '{"a":"')
        + row(n, lambda i: Messages.args(0, HALF)) + row(n, lambda i: Messages.close(0)))),
    "the end of an item with no copy, again and again": ("openai_responses", 200, lambda n: (
        R.CREATED + R.added(call(0)) + R.say(
            "function_call_arguments.delta", output_index=0, delta='{"a":[' + "1," * 20 * n)
        + row(n, lambda i: R.done(call(0, arguments=""), 0)))),
    "copies that differ from a long call that was told": ("openai_responses", 150, lambda n: (
        R.CREATED + R.done(call(0, arguments='{"a":"' + "x" * 500 * n + '"}'), 0)
        + row(n, lambda i: R.done(call(0, arguments='{"a":1}'), 0)))),
    "a long call that was told, begun again and again": ("anthropic", 150, lambda n: (
        Messages.START + Messages.open(0, "a", "f")
        + Messages.args(0, '{"a":"' + "x" * 500 * n + '"}') + Messages.close(0)
        + row(n, lambda i: (
            Messages.open(0, "a", "f") + Messages.args(0, '{"a":1}') + Messages.close(0))))),
    "fragments that may be whole": ("openai_chat", 300, lambda n: (
        Chat.call(0, "a", "f", '{"a":[')
        + row(n, lambda i: chat(i, index=0, function={"name": "f", "arguments": "{},{}"})))),
    "fragments without an index that may be whole": ("openai_chat", 300, lambda n: row(
        n, lambda i: chat(i, function={"name": "f", "arguments": "x}"}))),
    "names that are said again after a whole call": ("openai_chat", 300, lambda n: (
        Chat.call(0, "a", "f", '{"a":"' + "x" * 50 * n + '"}')
        + row(n, lambda i: chat(i, index=0, function={"name": "f"})))),
    "ends that are said with every fragment": ("openai_chat", 300, lambda n: (
        Chat.call(0, "a", "f", '{"a":[') + row(n, lambda i: Chat.call(
            0, None, None, "{" + '"b":0' + "},", finish="stop")))),
    "objects that are added to a long one": ("openai_chat", 200, lambda n: (
        Chat.call(0, "a", "f") + chat(0, index=0, function={"arguments": {"k": "x" * 2000 * n}})
        + row(n, lambda i: chat(i, index=0, function={"arguments": {f"k{i}": 1}})))),
    "counts of different things": ("openai_chat", 500, lambda n: row(
        n, lambda i: sse({"id": "c", "choices": [], "usage": {f"a{i}": 1}}))),
    "results of no call, Anthropic": ("anthropic", 200, lambda n: (
        Messages.START + searches(n) + row(n, lambda i: found(n + i)))),
    "results of no call, Gemini": ("gemini", 300, lambda n: (
        row(n, lambda i: Gemini.parts({"functionCall": {"name": "f", "args": {}}}))
        + row(n, lambda i: Gemini.parts({"functionResponse": {"name": "g", "response": {}}})))),
    "results without ids, Gemini": ("gemini", 300, lambda n: (
        row(n, lambda i: Gemini.parts({"executableCode": {"code": "x"}}))
        + row(n, lambda i: Gemini.parts({"codeExecutionResult": {"outcome": "OUTCOME_OK"}})))),
    "results of no call, Interactions": ("gemini_interactions", 200, lambda n: (
        CREATED + steps("google_search_call", n, arguments={})
        + steps("google_search_result", n, call_id="o", result=[]))),
    "values of one call": ("gemini", 300, lambda n: row(n, lambda i: Gemini.parts(
        {"functionCall": {"name": "f", "willContinue": True, "partialArgs": [
            {"jsonPath": f"$.a[{i}].b", "numberValue": 1}]}}))),
    "copies that differ from a long call of Claude Code": ("claude_code", 100, lambda n: b"".join(map(line, (
        claude_code.start(), claude_code.opened("a"), claude_code.piece('{"a":"' + "x" * 2000 * n + '"}'),
        claude_code.STOP,
        *(claude_code.assistant("msg_1", claude_code.tool_use("a", x=i)) for i in range(n)),
        *[claude_code.STOP] * n)))),
    "halves of characters": ("openai_chat", 300, lambda n: row(n, lambda i: Chat.text("\ud83d"))),
}  # fmt: skip


def least(job: Callable[[], object]) -> float:
    """Seconds of this process for a job: the least of two."""
    took = []
    for _ in range(2):
        gc.collect()
        since = time.process_time()
        job()
        took.append(time.process_time() - since)
    return min(took)


def read(wire: str, body: bytes) -> None:
    pipe = Normalizer(wire, limits=LIMITS)
    pipe.feed(body)
    pipe.close()


@pytest.mark.parametrize("what", some(BODIES, 8))
def test_much_more_takes_as_much_longer(what: str):
    wire, n, made = BODIES[what]
    more, few = made(MORE * n), made(n)
    assert least(lambda: read(wire, more)) < TOO_MUCH * least(lambda: read(wire, few))


def one_by_one(n: int) -> list[Event]:
    return [e for i in range(n) for e in (ToolCallStart(i, f"c{i}", "f"), whole(i))]


def all_at_once(n: int) -> list[Event]:
    return [*(ToolCallStart(i, f"c{i}", "f") for i in range(n)), *map(whole, reversed(range(n)))]


def whole(i: int) -> ToolCall:
    return ToolCall(i, f"c{i}", "f", {}, "{}", provenance=Provenance("natural"))


@pytest.mark.parametrize("said", [one_by_one, all_at_once])
@pytest.mark.parametrize("release", ["call", "end"])
def test_many_more_calls_take_as_much_longer_to_serve(
    said: Callable[[int], list[Event]], release: Any
):
    def serve(events: list[Event]) -> None:
        server = provider("openai_chat").server(release=release)
        for event in events:
            server.tell(event)

    more, few = said(MORE * 2000), said(2000)
    assert least(lambda: serve(more)) < TOO_MUCH * least(lambda: serve(few))
