"""Serving live, with a guard: what a client hears, when it may run a call, and what it never hears."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from streamnorm import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Turn,
    Usage,
    UsageError,
    normalize,
    read_request,
)
from streamnorm.testing import Server as Loopback
from streamnorm.testing.http import Answer
from streamnorm.wire import provider
from tests.conftest import ALL, load, over_takes, run, some, take_id
from tests.proof.frames import blocks

from .test_served import events_of, text

SERVED = ["openai_chat", "openai_responses", "anthropic", "gemini"]
on_every_wire = pytest.mark.parametrize("target", SERVED)
# Where a call is told in pieces, and not only when it is whole.
in_pieces = pytest.mark.parametrize("target", SERVED[:3])
NORMAL = ("stop", "tool_calls", "pause")
# What tells a client that all is well and over.
CLEAN = {
    "openai_chat": b"data: [DONE]", "openai_responses": b"event: response.completed",
    "anthropic": b"event: message_stop", "gemini": b'"finishReason"',
}  # fmt: skip
# What makes a client run a call.
RUN = {
    "openai_chat": b'"finish_reason":"tool_calls"', "openai_responses": b"event: response.output_item.done",
    "anthropic": b"event: content_block_stop", "gemini": b'"functionCall"',
}  # fmt: skip

START = StreamStart("gemini", "m", "r1")
PAY = '{"n":1}'
CALL: list[Event] = [
    ToolCallStart(0, "call_1", "pay"), ToolCallDelta(0, PAY), ToolCall(0, "call_1", "pay", {"n": 1}, PAY),
]  # fmt: skip


def client_calls(events: list[Event]) -> list[tuple[str, str, Any]]:
    """The calls of the first answer that a client is to run."""
    return [
        (e.id, e.name, e.arguments)
        for e in events
        if isinstance(e, ToolCall) and e.runs_on == "client" and not e.choice
    ]


def read(target: str, events: list[Event], **options: Any) -> list[Event]:
    return run(target, [b"".join(provider(target).serve(events, **options))])


def payloads(data: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n") if line[:5] == b"data:"]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


# --- no client runs what the source did not end normally ------------------------------------------


@over_takes(quick=60)
def test_whole_or_cut_anywhere_no_call_is_heard_that_was_not_whole_before_a_normal_end(path: Path):
    name, (_, wire) = path.parent.name, load(path)
    body = blocks(wire, framing_of(wire))
    for end in some(range(len(body) + 1), 25):
        events = run(name, [b"".join(body[:end])])
        for target in SERVED:
            _assert_guarded(target, events, f"{take_id(path)} cut after {end} frames")


def framing_of(body: bytes) -> str:
    return {b"{": "lines", b"[": "array", b"\0": "aws"}.get(body.lstrip()[:1], "sse")


def _assert_guarded(target: str, events: list[Event], where: str) -> None:
    end = events[-1]
    for whole in (False, True) if ALL else (False,):
        served = b"".join(provider(target).serve(events, release="end", whole=whole))
        heard = run(target, [served])
        told, known = client_calls(heard), client_calls(events)
        assert all(call in known for call in told), where
        normal = isinstance(end, Finish) and end.reason in NORMAL
        if told:
            assert normal, where
        if isinstance(end, Failed):
            assert heard[-1].kind == "failed", where
            assert CLEAN[target] not in served, where
        if normal and isinstance(heard[-1], Finish):
            assert sorted(told, key=str) == sorted(known, key=str), where


@over_takes(quick=60)
def test_event_by_event_or_at_once_the_bytes_are_the_same(path: Path):
    events = events_of(path)
    for target in SERVED:
        for options in ({}, {"release": "end"}, {"whole": True, "release": "end"}, {"seal": True}):
            wire = provider(target)
            server = wire.server(**options)
            told = [server.tell(event) for event in events]
            assert b"".join(told) == b"".join(wire.serve(events, **options))
            assert (server.over, server.end()) == (True, b"")


@over_takes(quick=60)
def test_calls_that_are_held_until_the_end_are_those_that_are_not(path: Path):
    """After a normal end, and with no call broken, both ways tell the same calls and the same text."""
    events = events_of(path)
    for target in SERVED:
        early, late = read(target, events), read(target, events, release="end")
        if isinstance(early[-1], Finish) and events[-1].reason in NORMAL:  # type: ignore[union-attr]
            assert early[-1] == late[-1]
            assert sorted(client_calls(early), key=str) == sorted(client_calls(late), key=str)
            assert text(early) == text(late)


# --- when it is told ------------------------------------------------------------------------------


@on_every_wire
def test_what_makes_a_client_run_a_call_waits_for_the_end_and_text_does_not(target: str):
    server = provider(target).server(release="end")
    told = b"".join(map(server.tell, [START, TextDelta("Well.", 0), *CALL]))
    begun = told.count(RUN[target])
    after = server.tell(TextDelta("More.", 1))
    assert b"More." in after
    assert RUN[target] not in after
    end = server.tell(Finish("tool_calls"))
    # The texts are items and blocks, too: the first of them had ended before the call began.
    assert (begun, end.count(RUN[target])) == {"openai_chat": (0, 1), "gemini": (0, 1)}.get(
        target, (1, 2)
    )
    heard = run(target, [told + after + end])
    assert client_calls(heard) == [("call_1", "pay", {"n": 1})]
    assert text(heard) == "Well.More."


@in_pieces
def test_fragments_of_a_call_that_waits_for_the_end_are_passed_on(target: str):
    server = provider(target).server(release="end")
    assert b"pay" in server.tell(CALL[0])
    assert b"n" in server.tell(ToolCallDelta(0, PAY[:-1]))


def chat_inputs(data: bytes) -> dict[int, list[str]]:
    """What chunks tell of the inputs of functions, piece by piece, by index."""
    inputs: dict[int, list[str]] = {}
    for payload in payloads(data):
        for choice in payload.get("choices", ()):
            for entry in choice["delta"].get("tool_calls", ()):
                if "function" in entry:
                    inputs.setdefault(entry["index"], []).append(entry["function"]["arguments"])
    return inputs


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (['{"n":', "1}"], ['{"n":']),
        (['{"n":1}'], []),
        (['{"n":{"a":1}', "}\n", "\n"], ['{"n":{"a":1}']),
        (['{"n":"}"', " ", "}"], ['{"n":"}"', " "]),
        ([" ", "{", "}"], [" ", "{"]),
        (['"{', '}"'], []),
        (["1", "2"], []),
    ],
)
def test_a_chat_client_that_runs_what_parses_hears_no_json_value_before_the_end(pieces, told):
    server = provider("openai_chat").server(release="end")
    events = [START, CALL[0], *(ToolCallDelta(0, piece) for piece in pieces)]
    before = b"".join(map(server.tell, events))
    assert chat_inputs(before) == {0: ["", *told]}
    raw = "".join(pieces)
    arguments = json.loads(raw) if is_json(raw) else {}
    rest = server.tell(ToolCall(0, "call_1", "pay", arguments, raw)) + server.tell(
        Finish("tool_calls")
    )
    assert "".join(chat_inputs(before + rest)[0]) == raw
    early = provider("openai_chat").server()
    assert chat_inputs(b"".join(map(early.tell, events))) == {0: ["", *pieces]}


@over_takes(quick=60)
def test_whatever_is_served_no_chat_client_hears_a_json_value_before_the_end(path: Path):
    server, said = provider("openai_chat").server(release="end"), b""
    for event in events_of(path):
        if isinstance(event, Finish | Failed):
            break
        said += server.tell(event)
    assert not any(is_json("".join(pieces)) for pieces in chat_inputs(said).values())


@on_every_wire
def test_nothing_of_a_call_is_told_before_the_end_if_it_is_to_be_whole(target: str):
    server = provider(target).server(release="end", whole=True)
    assert [server.tell(event) for event in [START, *CALL]] == [b""] * 4
    assert not server.shown
    end = server.tell(Finish("tool_calls"))
    assert client_calls(run(target, [end])) == [("call_1", "pay", {"n": 1})]


def test_numbers_of_responses_stay_in_order_when_calls_are_closed_late():
    second = [
        ToolCallStart(1, "call_2", "pay"), ToolCallDelta(1, PAY), ToolCall(1, "call_2", "pay", {"n": 1}, PAY)
    ]  # fmt: skip
    events = [START, *CALL, TextDelta("Hm.", 0), *second, Finish("tool_calls")]
    for options in ({}, {"release": "end"}, {"release": "end", "whole": True}):
        data = b"".join(provider("openai_responses").serve(events, **options))
        numbers = [payload["sequence_number"] for payload in payloads(data)]
        assert numbers == list(range(len(numbers)))
        kinds = [payload["type"] for payload in payloads(data)]
        assert kinds[:2] == ["response.created", "response.in_progress"]


@on_every_wire
@pytest.mark.parametrize("reason", ["length", "content_filter", "refusal", "other"])
@pytest.mark.parametrize("whole", [True, False])
def test_after_an_end_that_is_not_normal_a_pending_call_is_an_error(target, reason, whole: bool):
    served = b"".join(
        provider(target).serve(
            [START, TextDelta("Hi"), *CALL, Finish(reason)], release="end", whole=whole
        )
    )
    heard = run(target, [served])
    assert (client_calls(heard), heard[-1].kind) == ([], "failed")
    assert CLEAN[target] not in served


@on_every_wire
@pytest.mark.parametrize(
    ("reason", "heard_as"),
    [("length", {"length"}), ("content_filter", {"content_filter", "refusal"}),
     ("refusal", {"content_filter", "refusal"}), ("other", {"stop", "other"})],
)  # fmt: skip
def test_without_a_call_the_wires_own_word_for_such_an_end_is_told(target, reason, heard_as):
    end = read(target, [START, TextDelta("Hi"), Finish(reason)], release="end")[-1]
    assert isinstance(end, Finish)
    assert end.reason in heard_as


@on_every_wire
@pytest.mark.parametrize("reason", NORMAL)
def test_after_a_normal_end_the_calls_are_told(target: str, reason):
    heard = read(target, [START, *CALL, Finish(reason)], release="end")
    assert client_calls(heard) == [("call_1", "pay", {"n": 1})]


@on_every_wire
@pytest.mark.parametrize("reason", [*NORMAL, "length"])
def test_a_call_that_broke_fails_the_stream_whatever_its_end_is(target: str, reason):
    broken = BrokenToolCall(0, "call_1", "pay", '{"n', "length")
    events: list[Event] = [START, *CALL[:1], ToolCallDelta(0, '{"n'), broken, Finish(reason)]
    for release in ("call", "end"):
        assert read(target, events, release=release)[-1].kind == "failed"


@on_every_wire
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("release", ["call", "end"])
@pytest.mark.parametrize("id", ["call_1", "syn_1"])
def test_calls_are_told_in_the_order_in_which_they_began(
    target: str, id: str, release, whole: bool
):
    """The first has no arguments, and so is whole only at the end; what its provider wants back may
    be with the first call alone."""
    first = [ToolCallStart(0, id, "now"), ToolCall(0, id, "now", {}, "")]
    others: list[Event] = []
    for number in (1, 2):
        place = f"{id}{number}"
        others += [ToolCallStart(number, place, "pay"), ToolCallDelta(number, PAY),
                   ToolCall(number, place, "pay", {"n": 1}, PAY)]  # fmt: skip
    events = [START, first[0], *others, first[1], Finish("tool_calls")]
    said = b"".join(provider(target).serve(events, release=release, whole=whole))
    heard = Turn.from_events(run(target, [said]))
    assert [call.name for call in heard.calls] == ["now", "pay", "pay"]
    assert [call.id for call in heard.calls] == [id, f"{id}1", f"{id}2"]


@on_every_wire
def test_a_call_that_waits_behind_one_of_another_answer_is_told(target: str):
    begun = [START, ToolCallStart(0, "syn_0", "now")]
    behind = [ToolCall(1, "syn_1", "pay", {"n": 1}, PAY)]
    server = provider(target).server()
    assert [server.tell(event) for event in [*begun, *behind]] == [b""] * 3
    assert b"syn_1" in server.tell(ToolCall(0, "syn_0", "now", {}, "", choice=1))


@on_every_wire
@pytest.mark.parametrize("release", ["call", "end"])
def test_a_call_that_never_ends_is_not_passed_over(target: str, release):
    for options in ({}, {"whole": True}):
        heard = read(target, [START, CALL[0], Finish("stop")], release=release, **options)
        assert heard[-1].kind == "failed"


@on_every_wire
def test_events_that_just_stop_are_a_failure_in_the_wires_own_form(target: str):
    server = provider(target).server(release="end")
    told = b"".join(map(server.tell, [START, TextDelta("Hi"), *CALL]))
    end = server.end()
    assert (server.over, server.failure.reason) == (True, "truncated")  # type: ignore[union-attr]
    heard = run(target, [told + end])
    assert (client_calls(heard), heard[-1].kind) == ([], "failed")
    assert server.tell(Finish("stop")) == b""


@on_every_wire
def test_a_client_is_shown_nothing_before_there_is_something_to_say(target: str):
    server = provider(target).server()
    silent: list[Event] = [START, Usage(1, 2), TextDelta(""), ToolCallStart(0, "syn_1", "pay")]
    assert [server.tell(event) for event in silent] == [b""] * 4
    assert not server.shown
    assert server.tell(TextDelta("Hi")) != b""
    assert server.shown


def test_how_calls_are_released_is_one_of_two_words():
    with pytest.raises(UsageError, match="'call' or 'end'"):
        provider("anthropic").server(release="late")  # type: ignore[typeddict-item]


# --- events that come one by one ------------------------------------------------------------------


@on_every_wire
async def test_events_of_an_async_source_are_served_as_they_come(target: str):
    seen: list[str] = []

    async def events() -> AsyncIterator[Event]:
        for event in [START, TextDelta("Hi"), TextDelta(" there"), Finish("stop")]:
            seen.append(event.kind)
            yield event

    served = provider(target).serve(events())
    first = await anext(served)
    assert seen == ["stream_start", "text_delta"], "nothing was read ahead"
    rest = [chunk async for chunk in served]
    heard = run(target, [first, *rest])
    assert (text(heard), heard[-1].kind) == ("Hi there", "finish")


async def test_a_stream_can_be_served_for_and_async_for():
    body = b"".join(provider("anthropic").serve([START, *CALL, Finish("tool_calls")]))
    wire = provider("openai_chat")
    now = b"".join(wire.serve(normalize([body], "anthropic")))
    later = b"".join([chunk async for chunk in wire.serve(normalize([body], "anthropic"))])
    assert now == later
    assert client_calls(run("openai_chat", [now])) == [("call_1", "pay", {"n": 1})]


async def test_the_wrong_kind_of_loop_says_which_is_right():
    async def events() -> AsyncIterator[Event]:
        yield Finish("stop")

    with pytest.raises(UsageError, match="async for"):
        next(provider("anthropic").serve(events()))
    with pytest.raises(UsageError, match="use `for`"):
        await anext(provider("anthropic").serve([Finish("stop")]))


# --- ids and names --------------------------------------------------------------------------------


def ids(ordinal: int, event: ToolCallStart | ToolCall) -> str:
    return f"served_{ordinal}"


@on_every_wire
@pytest.mark.parametrize("options", [{}, {"release": "end"}, {"whole": True}])
def test_a_call_keeps_the_id_under_which_it_was_begun(target: str, options):
    events: list[Event] = [
        START, ToolCallStart(0, "syn_minted", "pay"), ToolCallDelta(0, PAY),
        ToolCall(0, "late", "pay", {"n": 1}, PAY), Finish("tool_calls"),
    ]  # fmt: skip
    heard = read(target, events, ids=ids, **options)
    assert client_calls(heard) == [("served_0", "pay", {"n": 1})]


@in_pieces
def test_a_call_with_a_minted_id_need_not_wait_if_ids_are_given(target: str):
    server = provider(target).server(ids=ids)
    assert b"served_0" in server.tell(ToolCallStart(0, "syn_minted", "pay"))


@on_every_wire
def test_a_late_id_fails_the_stream_if_the_client_would_answer_another(target: str):
    events: list[Event] = [
        START, ToolCallStart(0, "early", "pay"), ToolCall(0, "late", "pay", {"n": 1}, PAY),
        Finish("tool_calls"),
    ]  # fmt: skip
    assert read(target, events)[-1].kind == "failed"


@on_every_wire
def test_a_client_hears_the_name_that_it_declared(target: str):
    heard = read(target, [START, *CALL, Finish("tool_calls")], tools={"pay": Tool("pay.now")})
    assert client_calls(heard) == [("call_1", "pay.now", {"n": 1})]


# --- text tools and namespaces --------------------------------------------------------------------

PATCH = "*** Begin Patch\n*** End Patch"
AS_TEXT = ["openai_chat", "openai_responses"]


def as_function(arguments: dict[str, Any]) -> list[Event]:
    """A call of a text tool by a provider that has none."""
    raw = json.dumps(arguments)
    return [
        START, ToolCallStart(0, "call_1", "patch"), ToolCallDelta(0, raw),
        ToolCall(0, "call_1", "patch", arguments, raw), Finish("tool_calls"),
    ]  # fmt: skip


AS_CUSTOM: list[Event] = [
    StreamStart("openai_chat", "m", "r1"), ToolCallStart(0, "call_1", "patch", "custom"),
    ToolCallDelta(0, PATCH[:9]), ToolCallDelta(0, PATCH[9:]),
    ToolCall(0, "call_1", "patch", {"input": PATCH}, PATCH, "custom"), Finish("tool_calls"),
]  # fmt: skip


@pytest.mark.parametrize("target", AS_TEXT)
@pytest.mark.parametrize("options", [{}, {"release": "end"}, {"whole": True, "release": "end"}])
def test_a_function_call_becomes_again_the_call_of_the_text_tool_that_was_declared(target, options):
    events = as_function({"input": PATCH})
    heard = read(target, events, tools={"patch": Tool.of_text("patch")}, **options)
    (call,) = [e for e in heard if isinstance(e, ToolCall)]
    assert (call.family, call.raw, call.id, call.name) == ("custom", PATCH, "call_1", "patch")


@pytest.mark.parametrize("target", AS_TEXT)
@pytest.mark.parametrize(
    "arguments", [{}, {"input": 1}, {"input": PATCH, "more": 1}, {"patch": PATCH}]
)
def test_arguments_that_are_not_one_text_fail_the_stream(target: str, arguments):
    heard = read(target, as_function(arguments), tools={"patch": Tool.of_text("patch")})
    assert (client_calls(heard), heard[-1].kind) == ([], "failed")


@on_every_wire
@pytest.mark.parametrize("release", ["call", "end"])
def test_a_call_of_a_text_tool_is_served_as_each_wire_says_it(target: str, release):
    data = b"".join(provider(target).serve(AS_CUSTOM, release=release))
    (call,) = [e for e in run(target, [data]) if isinstance(e, ToolCall)]
    if target in AS_TEXT:
        assert (call.family, call.raw) == ("custom", PATCH)
    else:
        assert (call.family, call.arguments) == ("function", {"input": PATCH})


@pytest.mark.parametrize("target", AS_TEXT)
def test_the_text_of_a_text_tool_is_passed_on_as_it_comes(target: str):
    server = provider(target).server(release="end")
    told = [server.tell(event) for event in AS_CUSTOM[:3]]
    assert b"*** Begin" in told[2]


def test_an_empty_text_is_an_input():
    heard = read(
        "openai_responses", as_function({"input": ""}), tools={"patch": Tool.of_text("patch")}
    )
    (call,) = [e for e in heard if isinstance(e, ToolCall)]
    assert (call.family, call.raw) == ("custom", "")


def test_a_tool_of_a_namespace_is_called_in_it_again():
    tools = {"files__pay": Tool("files__pay", namespace="files")}
    events: list[Event] = [START, ToolCallStart(0, "c", "files__pay"), ToolCallDelta(0, PAY),
                           ToolCall(0, "c", "files__pay", {"n": 1}, PAY), Finish("tool_calls")]  # fmt: skip
    for release in ("call", "end"):
        data = b"".join(provider("openai_responses").serve(events, tools=tools, release=release))  # type: ignore[typeddict-item]
        items = [p["item"] for p in payloads(data) if "item" in p]
        assert [(item["namespace"], item["name"]) for item in items] == [("files", "pay")] * 2


def test_tools_as_a_request_declared_them_are_called_so():
    body = {
        "model": "m", "input": "Patch.",
        "tools": [
            {"type": "custom", "name": "patch", "description": "Edits files"},
            {"type": "namespace", "name": "files", "description": "Files", "tools": [
                {"type": "function", "name": "pay", "parameters": {"type": "object", "properties": {}}}]},
        ],
    }  # fmt: skip
    tools = {tool.name: tool for tool in read_request("openai_responses", body).tools}
    events = [*as_function({"input": PATCH})[:-1], ToolCallStart(1, "call_2", "files__pay"),
              ToolCall(1, "call_2", "files__pay", {}, "{}"), Finish("tool_calls")]  # fmt: skip
    _, answer = provider("openai_responses").server(tools=tools).answer(events)
    patch, pay = answer["output"]
    assert (patch["type"], patch["name"], patch["input"]) == ("custom_tool_call", "patch", PATCH)
    assert (pay["type"], pay["namespace"], pay["name"]) == ("function_call", "files", "pay")


# --- what the client asked for --------------------------------------------------------------------


@on_every_wire
def test_model_id_and_time_are_those_that_the_caller_says(target: str):
    heard = read(
        target, [START, TextDelta("Hi"), Finish("stop")], model="mine", response_id="own", created=7
    )
    assert heard[0] == StreamStart(target, "mine", "own")
    data = b"".join(provider(target).serve([TextDelta("Hi"), Finish("stop")], created=7))
    times = {p.get("created", p.get("response", {}).get("created_at")) for p in payloads(data)}
    assert times - {None} == ({7} if target.startswith("openai") else set())


def test_a_chat_client_that_did_not_ask_is_told_no_usage():
    events: list[Event] = [START, TextDelta("Hi"), Usage(1, 2), Finish("stop")]
    served = [payloads(b"".join(provider("openai_chat").serve(events, tell_usage=asked)))
              for asked in (True, False)]  # fmt: skip
    assert [[len(p["choices"]) for p in each][-1] for each in served] == [0, 1]
    assert [any("usage" in p for p in each) for each in served] == [True, False]


# --- answers that are no streams ------------------------------------------------------------------

THOUGHT = ReasoningDelta("Hm.", 0)
TURN: list[Event] = [
    START, THOUGHT, TextDelta("Paying", 1), TextDelta(" now.", 1), *CALL,
    Usage(10, 5, 2, None, 3), Finish("tool_calls"),
]  # fmt: skip


def test_a_whole_message():
    status, body = provider("anthropic").server(model="claude", response_id="msg_1").answer(TURN)
    assert status == 200
    assert body == {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "text", "text": "Paying now."},
            {"type": "tool_use", "id": "call_1", "name": "pay", "input": {"n": 1}},
        ],
        "stop_reason": "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 8, "output_tokens": 5, "cache_read_input_tokens": 2,
                  "cache_creation_input_tokens": 0},
    }  # fmt: skip


def test_a_whole_completion():
    _, body = provider("openai_chat").server(response_id="chatcmpl-1", created=9).answer(TURN)
    assert body == {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 9, "model": "m",
        "choices": [{
            "index": 0, "finish_reason": "tool_calls", "logprobs": None,
            "message": {
                "role": "assistant", "content": "Paying now.", "refusal": None,
                "reasoning_content": "Hm.",
                "tool_calls": [{"id": "call_1", "type": "function",
                                "function": {"name": "pay", "arguments": PAY}}],
            },
        }],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                  "prompt_tokens_details": {"cached_tokens": 2},
                  "completion_tokens_details": {"reasoning_tokens": 3}},
    }  # fmt: skip


def test_a_whole_response():
    _, body = provider("openai_responses").server(response_id="resp_1", created=9).answer(TURN)
    assert (body["id"], body["status"], body["created_at"]) == ("resp_1", "completed", 9)
    assert [item["type"] for item in body["output"]] == ["reasoning", "message", "function_call"]
    assert body["output"][2]["arguments"] == PAY
    assert body["usage"]["total_tokens"] == 15


@pytest.mark.parametrize("target", AS_TEXT)
def test_a_whole_answer_with_a_text_tool(target: str):
    _, body = provider(target).server().answer(AS_CUSTOM)
    if target == "openai_chat":
        (call,) = body["choices"][0]["message"]["tool_calls"]
        assert call == {
            "id": "call_1",
            "type": "custom",
            "custom": {"name": "patch", "input": PATCH},
        }
    else:
        (item,) = body["output"]
        assert (item["type"], item["input"]) == ("custom_tool_call", PATCH)


@on_every_wire
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ([Failed("truncated", "cut", True)], 502),
        ([Failed("idle", "silence", True)], 504),
        ([Failed("provider_error", "no", False, "bad")], 400),
        ([Failed("provider_error", "later", True, "busy")], 503),
        ([Finish("length")], 400),
        ([], 502),
    ],
)
def test_a_turn_that_failed_is_an_error_and_no_body_with_a_call(target: str, end, status: int):
    for release in ("call", "end"):
        said = provider(target).server(release=release).answer([*TURN[:-1], *end])  # type: ignore[typeddict-item]
        assert said[0] == status
        assert "pay" not in json.dumps(said[1]) or "is not to be run" in json.dumps(said[1])
        assert set(said[1]) <= {"type", "error"}


TYPES = {
    "anthropic": ("anthropic.types", "Message"), "openai_chat": ("openai.types.chat", "ChatCompletion"),
    "openai_responses": ("openai.types.responses", "Response"),
}  # fmt: skip


@over_takes(quick=100)
def test_the_sdks_know_our_whole_answers_and_they_hold_what_the_stream_said(path: Path):
    events = events_of(path)
    for target, (module, name) in TYPES.items():
        if target == path.parent.name:  # which brings items of its own, as they came
            continue
        status, body = provider(target).server().answer(events)
        heard = read(target, events, release="end")
        assert (status == 200) == isinstance(heard[-1], Finish)
        if status == 200:
            getattr(pytest.importorskip(module), name).model_validate(body)
            said, inputs = _said_in[target](body)
            heard_inputs = [arguments for _, _, arguments in client_calls(heard)]
            assert (said, sorted(inputs, key=str)) == (text(heard), sorted(heard_inputs, key=str))


def _in_message(body: dict[str, Any]) -> tuple[str, list[Any]]:
    blocks = body["content"]
    return (
        "".join(b["text"] for b in blocks if b["type"] == "text"),
        [b["input"] for b in blocks if b["type"] == "tool_use"],
    )


def _in_completion(body: dict[str, Any]) -> tuple[str, list[Any]]:
    message = body["choices"][0]["message"]
    said = [c.get("function") or c["custom"] for c in message.get("tool_calls", ())]
    inputs = [
        json.loads(c["arguments"]) if "arguments" in c else {"input": c["input"]} for c in said
    ]
    return (message["content"] or "") + (message["refusal"] or ""), inputs


def _in_response(body: dict[str, Any]) -> tuple[str, list[Any]]:
    parts = [p for item in body["output"] if item["type"] == "message" for p in item["content"]]
    calls = [i for i in body["output"] if i["type"] in ("function_call", "custom_tool_call")]
    inputs = [
        json.loads(i["arguments"]) if "arguments" in i else {"input": i["input"]} for i in calls
    ]
    return "".join(p.get("text") or p.get("refusal") or "" for p in parts), inputs


_said_in: dict[str, Callable[[dict[str, Any]], tuple[str, list[Any]]]] = {
    "anthropic": _in_message, "openai_chat": _in_completion, "openai_responses": _in_response,
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "anthropic", "openai"),
    [
        (400, "invalid_request_error", "invalid_request_error"),
        (401, "authentication_error", "authentication_error"),
        (403, "permission_error", "permission_error"),
        (404, "not_found_error", "invalid_request_error"),
        (413, "request_too_large", "invalid_request_error"),
        (429, "rate_limit_error", "rate_limit_error"),
        (500, "api_error", "server_error"),
        (502, "api_error", "server_error"),
        (529, "overloaded_error", "server_error"),
    ],
)
def test_a_refusal_is_said_in_the_clients_own_form(status: int, anthropic: str, openai: str):
    said = provider("anthropic").server().refused(status, "No.", "why", 2.5)
    assert said == (
        status, {"content-type": "application/json", "retry-after": "2.5"},
        {"type": "error", "error": {"type": anthropic, "message": "No."}},
    )  # fmt: skip
    for target in AS_TEXT:
        said = provider(target).server().refused(status, "No.", "why")
        error = {"message": "No.", "type": openai, "param": None, "code": "why"}
        assert said == (status, {"content-type": "application/json"}, {"error": error})


@on_every_wire
def test_a_stream_that_was_passed_on_can_be_broken_off(target: str):
    events: list[Event] = [StreamStart(target, "m", "r1"), TextDelta("Hi"), *CALL[:2]]
    server = provider(target).server()
    passed = b"".join(map(server.tell, events))
    number = len(payloads(passed))
    last = provider(target).server().broken_off(
        "the connection broke", None, model="m", response_id="r1", number=number
    )  # fmt: skip
    heard = run(target, [passed + last])
    end = heard[-1]
    assert isinstance(end, Failed)
    assert (client_calls(heard), "the connection broke" in end.error) == ([], True)
    assert CLEAN[target] not in last
    if target == "openai_responses":
        (said,) = payloads(last)
        assert (said["type"], said["sequence_number"]) == ("response.failed", number)
        assert said["response"]["id"] == "r1"


@pytest.mark.parametrize(
    ("source", "code", "kind"),
    [("openai_chat", "busy", "api_error"), ("bedrock", "overloaded_error", "overloaded_error"),
     ("anthropic", "new_error", "new_error"), ("anthropic", None, "api_error")],
)  # fmt: skip
def test_an_error_of_a_message_has_a_type_that_its_clients_know(source: str, code, kind: str):
    events = [StreamStart(source, "m", "r"), Failed("provider_error", "No.", True, code)]
    last = payloads(b"".join(provider("anthropic").serve(events)))[-1]
    assert last == {"type": "error", "error": {"type": kind, "message": "No."}}


# --- the official clients -------------------------------------------------------------------------


def loopback(content_type: str, chunks: list[bytes], status: int = 200) -> Loopback:
    return Loopback(lambda number: Answer(status, content_type, chunks))


def streaming(target: str, events: list[Event], **options: Any) -> Loopback:
    served = list(provider(target).serve(events, release="end", **options))
    return loopback("text/event-stream", served)


def whole(said: tuple[int, Any]) -> Loopback:
    return loopback("application/json", [json.dumps(said[1]).encode()], said[0])


@pytest.fixture
def openai() -> Any:
    return pytest.importorskip("openai")


@pytest.fixture
def anthropic() -> Any:
    return pytest.importorskip("anthropic")


ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Pay."}]}


def claude(anthropic: Any, server: Loopback) -> Any:
    return anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0)


def gpt(openai: Any, server: Loopback) -> Any:
    return openai.OpenAI(api_key="k", base_url=server.url + "/v1", max_retries=0)


def test_the_client_of_anthropic_gathers_a_message(anthropic: Any):
    with (
        streaming("anthropic", [*TURN[:-2], TextDelta("Done.", 2), *TURN[-2:]]) as server,
        claude(anthropic, server) as client,
        client.messages.stream(max_tokens=9, **ASK) as stream,
    ):
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "text"]
    assert (message.content[2].input, message.stop_reason) == ({"n": 1}, "tool_use")
    assert message.usage.output_tokens == 5


def test_the_client_of_anthropic_raises_when_a_stream_is_cut(anthropic: Any):
    with (
        streaming("anthropic", TURN[:-2]) as server,
        claude(anthropic, server) as client,
        client.messages.stream(max_tokens=9, **ASK) as stream,
        pytest.raises(anthropic.APIStatusError, match="ended before"),
    ):
        stream.get_final_message()


def test_the_client_of_anthropic_reads_a_whole_message(anthropic: Any):
    with (
        whole(provider("anthropic").server().answer(TURN)) as server,
        claude(anthropic, server) as client,
    ):
        message = client.messages.create(max_tokens=9, **ASK)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]


def test_the_client_of_openai_gathers_chunks(openai: Any):
    with (
        streaming("openai_chat", TURN) as server,
        gpt(openai, server) as client,
        client.chat.completions.stream(**ASK) as stream,
    ):
        completion = stream.get_final_completion()
    (call,) = completion.choices[0].message.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == ("call_1", "pay", PAY)
    assert (completion.choices[0].message.content, completion.usage.total_tokens) == (
        "Paying now.",
        15,
    )


def test_the_client_of_openai_raises_when_chunks_are_cut(openai: Any):
    with streaming("openai_chat", TURN[:-2]) as server, gpt(openai, server) as client:
        stream = client.chat.completions.create(stream=True, **ASK)
        with pytest.raises(openai.APIError, match="ended before"):
            list(stream)


def test_the_client_of_openai_reads_a_whole_completion(openai: Any):
    with (
        whole(provider("openai_chat").server().answer(TURN)) as server,
        gpt(openai, server) as client,
    ):
        completion = client.chat.completions.create(**ASK)
    assert completion.choices[0].message.tool_calls[0].function.arguments == PAY


def test_the_client_of_openai_gathers_a_response(openai: Any):
    events = [*TURN[:-2], TextDelta("Done.", 2), *TURN[-2:]]
    with (
        streaming("openai_responses", events) as server,
        gpt(openai, server) as client,
        client.responses.stream(model="m", input="Pay.") as stream,
    ):
        response = stream.get_final_response()
    kinds = [item.type for item in response.output]
    assert kinds == ["reasoning", "message", "function_call", "message"]
    assert (response.output[2].arguments, response.output_text) == (PAY, "Paying now.Done.")


def test_the_client_of_openai_hears_that_a_response_failed(openai: Any):
    with streaming("openai_responses", TURN[:-2]) as server, gpt(openai, server) as client:
        events = list(client.responses.create(model="m", input="Pay.", stream=True))
    assert events[-1].type == "response.failed"
    assert "ended before" in events[-1].response.error.message
    done = [e.item.type for e in events if e.type == "response.output_item.done"]
    assert "function_call" not in done


def test_the_client_of_openai_reads_a_whole_response(openai: Any):
    with (
        whole(provider("openai_responses").server().answer(AS_CUSTOM)) as server,
        gpt(openai, server) as client,
    ):
        response = client.responses.create(model="m", input="Patch.")
    assert (response.output[0].type, response.output[0].input) == ("custom_tool_call", PATCH)


def test_a_refusal_is_the_right_error_in_the_official_clients(openai: Any, anthropic: Any):
    refused = provider("anthropic").server().refused(429, "Slowly.")
    with (
        whole((refused.status, refused.body)) as server,
        claude(anthropic, server) as client,
        pytest.raises(anthropic.RateLimitError, match="Slowly"),
    ):
        client.messages.create(max_tokens=9, **ASK)
    refused = provider("openai_responses").server().refused(401, "Who?", "invalid_api_key")
    with (
        whole((refused.status, refused.body)) as server,
        gpt(openai, server) as client,
        pytest.raises(openai.AuthenticationError, match="Who") as raised,
    ):
        client.responses.create(model="m", input="Hi")
    assert raised.value.code == "invalid_api_key"
