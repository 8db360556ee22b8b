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
        Messages.open(i, f"s{i}", "web_search", "server_tool_use")
        + Messages.args(i, '{"a":1}') + Messages.close(i)
    ))  # fmt: skip


def found(i: int) -> bytes:
    block = {"type": "web_search_tool_result", "tool_use_id": f"o{i}", "content": []}
    return sse(
        {"type": "content_block_start", "index": i, "content_block": block}
    ) + Messages.close(i)


def other_object(i: int) -> str:
    """The same value as of all others, in another text of about the same length."""
    return '{"a":' + " " * (i % 40) + "1" + " " * (i // 40) + "}"


def doubtful(i: int) -> bytes:
    """A copy of the arguments in a payload that says a field twice."""
    said = '{"type":"response.function_call_arguments.done","output_index":0,"z":1,"z":2,"arguments":"{%d}"}'
    return sse(said % i)


def final(*step: dict[str, Any]) -> bytes:
    return sse({"event_type": "interaction.completed", "interaction": {
        "id": "i", "status": "completed", "steps": list(step)}})  # fmt: skip


def result(**delta: Any) -> bytes:
    return sse(
        {
            "event_type": "step.delta",
            "index": 0,
            "delta": {"type": "mcp_server_tool_result", **delta},
        }
    )


def said_at_the_end(*ids: str) -> bytes:
    """A chunk with a word for the end and the whole message, in which these calls are."""
    function = {"name": "f", "arguments": '{"a":1}'}
    said = {
        "tool_calls": [{"index": i, "id": id, "function": function} for i, id in enumerate(ids)]
    }
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "message": said}
    return sse({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def in_both_fields(i: int) -> bytes:
    """A call in the new field, and another in the old one."""
    return (
        Chat.call(0, f"c{i}", "f", '{"a":1}', choice=i)
        + Chat.delta({"function_call": {"name": "f", "arguments": f'{{"a":{i + 2}}}'}}, choice=i)
    )  # fmt: skip


def grown(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return sse(
        {"output": {"choices": [{"message": message, "finish_reason": "null"}]}, "request_id": "r"}
    )


def handoff(i: int) -> bytes:
    return sse({"type": "agent.handoff.started", "id": f"h{i}", "previous_agent_id": "a"}) + sse(
        {"type": "agent.handoff.done", "id": f"h{i}", "next_agent_id": "b"}
    )


def in_a_session(event: dict[str, Any]) -> bytes:
    line = {"type": "stream_event", "event": event, "session_id": "s", "parent_tool_use_id": None}
    return json.dumps(line).encode() + b"\n"


def called_in_a_session(i: int) -> bytes:
    block = {"type": "tool_use", "id": f"t{i}", "name": "f", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"a":1}'}
    return (
        in_a_session({"type": "content_block_start", "index": i, "content_block": block})
        + in_a_session({"type": "content_block_delta", "index": i, "delta": delta})
        + in_a_session({"type": "content_block_stop", "index": i})
    )  # fmt: skip


def answered_in_a_session(i: int) -> bytes:
    block = {"type": "tool_result", "tool_use_id": f"t{i}", "content": "x"}
    line = {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s"}
    return json.dumps(line | {"parent_tool_use_id": None}).encode() + b"\n"


def session(n: int) -> bytes:
    start = {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}
    return (
        in_a_session(start) + row(n, called_in_a_session)
        + in_a_session({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
        + in_a_session({"type": "message_stop"})
    )  # fmt: skip


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
        CREATED + steps("google_search_call", n, arguments={"a": 1})
        + steps("google_search_result", n, call_id="o", result=[]))),
    "values of one call": ("gemini", 300, lambda n: row(n, lambda i: Gemini.parts(
        {"functionCall": {"name": "f", "willContinue": True, "partialArgs": [
            {"jsonPath": f"$.a[{i}].b", "numberValue": 1}]}}))),
    "copies that differ from a long call of Claude Code": ("claude_code", 100, lambda n: b"".join(map(line, (
        claude_code.start(), claude_code.opened("a"), claude_code.piece('{"a":"' + "x" * 2000 * n + '"}'),
        claude_code.STOP,
        *(claude_code.assistant("msg_1", claude_code.tool_use("a", x=i)) for i in range(n)),
        *[claude_code.STOP] * n)))),
    "other texts of what a long call said": ("openai_responses", 100, lambda n: (
        R.CREATED + R.done(call(0, arguments='{"a":1' + " " * 2000 * n + "}"), 0)
        + row(n, lambda i: R.done(call(0, arguments=other_object(i)), 0)))),
    "other texts of what a long open call says": ("openai_responses", 100, lambda n: (
        R.CREATED + R.added(call(0)) + R.say("function_call_arguments.delta", output_index=0, delta='{"a":1')
        + R.say("function_call_arguments.delta", output_index=0, delta=" " * 2000 * n + "}")
        + row(n, lambda i: R.say("function_call_arguments.done", output_index=0, arguments=other_object(i))))),
    "doubtful copies of a long call": ("openai_responses", 60, lambda n: (
        R.CREATED + R.added(call(0)) + R.say("function_call_arguments.delta", output_index=0, delta='{"a":1,')
        + R.say("function_call_arguments.delta", output_index=0, delta='"b":"' + "x" * 4000 * n + '"}')
        + row(n, doubtful))),
    "words for an end on which no call counts": ("openai_chat", 100, lambda n: (
        Chat.call(0, "a", "f", '{"a":"' + "x" * 2000 * n + '"}')
        + row(n, lambda i: Chat.delta({}, "repetition")))),
    "ends of a turn behind a call that the provider runs": ("openai_chat", 1000, lambda n: (
        chat(0, index=0, id="a", type="builtin_function", function={"name": "$web_search", "arguments": "{}"})
        + row(n, lambda i: Chat.text("x") + Chat.delta({}, "tool_calls")))),
    "whole messages beside an end": ("openai_chat", 500, lambda n: (
        row(n, lambda i: Chat.call(i, f"c{i}", "f", '{"a":1}', finish="tool_calls"))
        + row(n, lambda i: said_at_the_end(f"x{i}")))),
    "calls of a whole message beside an end": ("openai_chat", 1000, lambda n: (
        row(n, lambda i: Chat.call(i, f"c{i}", "f", '{"a":1}', finish="tool_calls"))
        + said_at_the_end(*(f"c{i}" for i in range(n + 100))))),
    "calls in both fields, in many choices": ("openai_chat", 800, lambda n: (
        row(n, lambda i: in_both_fields(i) + Chat.delta({}, "stop", choice=i)) + Chat.DONE)),
    "a long call in the old field beside many": ("openai_chat", 100, lambda n: (
        row(n, lambda i: Chat.call(i, f"c{i}", "f", '{"a":1}', finish="tool_calls"))
        + Chat.delta({"function_call": {"name": "f", "arguments": '{"a":'}})
        + Chat.delta({"function_call": {"arguments": '"' + "x" * 2000 * n + '"}'}}) + Chat.end())),
    "copies of texts beside a long one": ("openai_responses", 150, lambda n: (
        R.CREATED + R.text("x") + R.text("x" * 4000 * n)
        + row(n, lambda i: R.say("output_text.done", text=f"t{i}", output_index=0, content_index=i + 1)))),
    "copies of texts beside pieces that say nothing": ("openai_responses", 150, lambda n: (
        R.CREATED + R.text("x") + row(n, lambda i: R.text("") * 8) + row(n, lambda i: R.say(
            "output_text.done", text="y", output_index=0, content_index=i + 1)))),
    "pieces of a long result": ("gemini_interactions", 150, lambda n: (
        CREATED + sse({"event_type": "step.start", "index": 0, "step": {"type": "mcp_server_tool_result"}})
        + result(result="x" * 4000 * n) + row(n, lambda i: result(result="y")))),
    "lists that a long result comes in": ("gemini_interactions", 150, lambda n: (
        CREATED + sse({"event_type": "step.start", "index": 0, "step": {"type": "mcp_server_tool_result"}})
        + result(result=[0] * 400 * n) + row(n, lambda i: result(result=[1])))),
    "final interactions, again and again": ("gemini_interactions", 200, lambda n: (
        CREATED + steps("google_search_call", n, arguments={"a": 1})
        + row(n, lambda i: final({"type": "thought"})))),
    "calls that only the final interaction has": ("gemini_interactions", 600, lambda n: (
        CREATED + steps("model_output", n)
        + final(*({"type": "google_search_call", "id": f"x{i}", "arguments": {"a": 1}} for i in range(n))))),
    "texts that do not go on from a long one": ("dashscope", 100, lambda n: (
        row(4, lambda i: grown("x" * 2000 * n * (i + 1))) + row(n, lambda i: grown(f"y{i}")))),
    "payloads of no kind beside handoffs": ("mistral_conversations", 200, lambda n: (
        row(n, handoff) + row(n, lambda i: sse({"type": "agent.handoff.nonsense", "id": f"x{i}"})))),
    "results in a session, all but the first": ("claude_code", 500, lambda n: (
        session(n) + row(n - 1, lambda i: answered_in_a_session(i + 1)) * 2)),
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
    """To its own end, and not only to that of a limit."""
    pipe = Normalizer(wire, limits=LIMITS)
    end = [*pipe.feed(body), *pipe.close()][-1]
    assert getattr(end, "reason", "") != "limit", end


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
