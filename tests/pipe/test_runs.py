"""Runs of frames that are alike: whatever stands among them, they say what each says alone.

Frames that come together are read by the loop of their wire, which may compare most of a payload and
read its text alone. On most wires a frame that comes alone is read in full, and one that has a line more
is on all of them. All have to tell the same.
"""

# ruff: noqa: UP031, RUF005  JSON is written out, braces and all
from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.events import Event
from streamnorm.framing.sse import SSE
from streamnorm.providers import PROVIDERS, parsers_of

ALIKE = 30  # frames before and after the odd one: enough for a wire to learn how they look
PIECES = ["{", '\\"', "a", '\\"', ":", " ", "1", ",", '\\"', "é", "\\u00e9", '\\"', ":", '\\"']
FRAGMENTS = [PIECES[n] if n < len(PIECES) else "x" for n in range(2 * ALIKE)]
ID = '"id":"c","object":"chat.completion.chunk","created":1,"model":"m"'


def chat(delta: str, pad: str = ',"obfuscation":"aB3"') -> str:
    choice = '{"index":0,"delta":{%s},"logprobs":null,"finish_reason":null}' % delta
    return 'data: {%s,"choices":[%s],"usage":null%s}\n\n' % (ID, choice, pad)


def chat_call(text: str, index: int = 0) -> str:
    return chat('"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]' % (index, text))


def chat_start(index: int) -> str:
    function = '"type":"function","function":{"name":"f","arguments":""}'
    return chat('"tool_calls":[{"index":%d,"id":"call_%d",%s}]' % (index, index, function))


def messages(kind: str, rest: str) -> str:
    return 'event: %s\ndata: {"type":"%s"%s}\n\n' % (kind, kind, rest)


def json_delta(text: str, index: int = 1, tail: str = "}  ") -> str:
    inner = ',"index":%d,"delta":{"type":"input_json_delta","partial_json":"%s"%s'
    return messages("content_block_delta", inner % (index, text, tail))


def text_delta(text: str, index: int = 0, tail: str = "}") -> str:
    inner = ',"index":%d,"delta":{"type":"text_delta","text":"%s"%s'
    return messages("content_block_delta", inner % (index, text, tail))


def block_start(index: int) -> str:
    block = '{"type":"tool_use","id":"t%d","name":"f","input":{}}' % index
    return messages("content_block_start", ',"index":%d,"content_block":%s' % (index, block))


def responses(kind: str, number: int, rest: str) -> str:
    kind = f"response.{kind}"
    data = '{"type":"%s",%s,"sequence_number":%d}' % (kind, rest, number)
    return "event: %s\ndata: %s\n\n" % (kind, data)


def arguments(text: str, number: int, item: str = "fc_0", index: int = 0) -> str:
    where = '"item_id":"%s","output_index":%d' % (item, index)
    return responses(
        "function_call_arguments.delta", number, '"delta":"%s","obfuscation":"q",%s' % (text, where)
    )


def output_text(text: str, number: int, index: int = 0) -> str:
    where = '"item_id":"m","output_index":%d,"content_index":0' % index
    return responses("output_text.delta", number, '"delta":"%s","logprobs":[],%s' % (text, where))


def item(number: int, index: int) -> str:
    said = '{"id":"fc_%d","type":"function_call","arguments":"","call_id":"c%d","name":"f"}'
    return responses(
        "output_item.added", number, '"item":%s,"output_index":%d' % (said % (index, index), index)
    )


def gemini(part: str, count: int = 100, index: int = 0) -> str:
    content = '{"content": {"parts": [%s],"role": "model"},"index": %d}' % (part, index)
    usage = '"usageMetadata": {"candidatesTokenCount": %d},"modelVersion": "m"' % count
    return 'data: {"candidates": [%s],%s,"responseId": "r"}\r\n\r\n' % (content, usage)


def whole_call(number: int, args: str = '{"a": 1}') -> str:
    return gemini('{"functionCall": {"name": "f","args": %s,"id": "c%d"}}' % (args, number))


ODD_TEXTS = ["", "{", '{\\"a\\"', "\\ud83d", "\\udc4b", '"', "\\", "\n", "\t", "\\x", "}  }", '"}'] + [
    '\\"}}]},\\"logprobs\\":null', '"},"text":"', "null", "žluť \\u0001 \\/"
]  # fmt: skip


def odd_chat(text: str) -> list[str]:
    return [chat_call(text), chat('"content":"%s"' % text)]


STREAMS: dict[str, tuple[str, list[str], list[str]]] = {
    # wire, frames, and frames to be put among them
    "Chat text": (
        "openai_chat",
        [chat('"role":"assistant","content":""')]
        + [chat('"content":"%s"' % text) for text in FRAGMENTS],
        [chat('"content":"%s"' % text) for text in ODD_TEXTS]
        + [
            chat('"content":null'), chat('"content":5'), chat('"content":"a","refusal":"no"'),
            chat('"content":"a","reasoning":"b"'), chat('"content":"a"', ""),
            chat('"content":"a"', ',"obfuscation":""'), chat('"content":"a"', ',"obfuscation":"a-b"'),
            chat('"content":"a"', ',"obfuscation":"a"b"'), chat('"content":"a"', ',"obfuscation":"a"}'),
            chat('"content":"a"', ',"obfuscation":5'), chat('"content":"a"', ',"new":"x"'),
            chat('"content":"a"').replace('"c"', '"d"'), chat('"content":"a"').replace(": {", ":{"),
            chat('"content":"a"').replace('"index":0', '"index":1'), chat_start(0), ": hi\n\n",
            chat('"content":"a"').replace('_reason":null', '_reason":"stop"'), "data: [DONE]\n\n",
            chat('"content":"a"').replace('"usage":null', '"usage":{"prompt_tokens":1}'),
            chat('"content":"a"').replace('}],"usage"', ',"usage"'), "event: x\ndata: {}\n\n",
        ],
    ),
    "Chat tools": (
        "openai_chat",
        [chat('"role":"assistant","content":null'), chat_start(0)]
        + [chat_call(text) for text in FRAGMENTS],
        [frame for text in ODD_TEXTS for frame in odd_chat(text)]
        + [
            chat_call("".join(FRAGMENTS[:ALIKE]) + "y"),  # all so far, and more
            chat_start(0), chat_start(1), chat_call("a", 1), chat_call("a").replace("}}]}", "}}]"),
            chat_call("a").replace('"index":0,"function"', '"index":0,"id":"other","function"'),
            chat_call("a").replace('_reason":null', '_reason":"tool_calls"'),
        ],
    ),
    "Messages text": (
        "anthropic",
        [messages("message_start", ',"message":{"id":"m","model":"x"}')]
        + [text_delta(text) for text in FRAGMENTS],
        [text_delta(text) for text in ODD_TEXTS]
        + [
            text_delta("a").replace("}\n\n", "\n\n"),
            text_delta("a", 1), text_delta("a", 0, ""), text_delta("a", 0, "}}"), json_delta("a", 0),
            text_delta("a", 0, "}\t"), text_delta("a", 0, ',"x":1}'), text_delta("a", 0, "  "),
            text_delta("a").replace('"index":0,', ""), block_start(0), block_start(1),
            messages("ping", ""), messages("error", ',"error":{"type":"overloaded_error"}'),
        ],
    ),
    "Messages tools": (
        "anthropic",
        [messages("message_start", ',"message":{"id":"m","model":"x"}'), block_start(1)]
        + [json_delta(text) for text in FRAGMENTS],
        [json_delta(text) for text in ODD_TEXTS]
        + [
            json_delta("a").replace("}\n\n", "\n\n"),
            json_delta("a", 2), json_delta("a", 1, ""), json_delta("a", 1, "  "), text_delta("a", 1),
            json_delta("a", 1, "}}"), json_delta("a", 1, "} \r "), block_start(1), block_start(2),
            messages("content_block_stop", ',"index":1'), text_delta("a", 0), "data: 1\n\n",
            messages("content_block_start", ',"index":1,"content_block":{"type":"text","text":""}'),
            messages("message_start", ',"message":{"id":"m2","model":"x"}'),
        ],
    ),
    "Responses text": (
        "openai_responses",
        [responses("created", 0, '"response":{"id":"r","model":"m"}')]
        + [output_text(text, number) for number, text in enumerate(FRAGMENTS, 1)],
        [output_text(text, ALIKE) for text in ODD_TEXTS]
        + [
            output_text("a", 99), output_text("a", ALIKE, 1), arguments("a", ALIKE),
            output_text("a", ALIKE).replace('"delta"', '"agent":{"agent_name":"x"},"delta"'),
            output_text("a", ALIKE).replace('"delta"', '"stream_id":"s","delta"'), item(ALIKE, 1),
        ],
    ),
    "Responses tools": (
        "openai_responses",
        [responses("created", 0, '"response":{"id":"r","model":"m"}'), item(1, 0)]
        + [arguments(text, number) for number, text in enumerate(FRAGMENTS, 2)],
        [arguments(text, ALIKE) for text in ODD_TEXTS]
        + [
            arguments("a", 99), arguments("a", ALIKE, "fc_9"), arguments("a", ALIKE, "fc_0", 1),
            arguments("a", ALIKE).replace('"delta"', '"call_id":"c7","delta"'), item(ALIKE, 0),
            arguments("a", ALIKE).replace('"delta"', '"stream_id":"s","delta"'), item(ALIKE, 1),
            output_text("a", ALIKE),
        ],
    ),
    "Gemini text": (
        "gemini",
        [gemini('{"text": "%s"}' % text) for text in FRAGMENTS],
        [gemini('{"text": "%s"}' % text) for text in ODD_TEXTS]
        + [
            gemini('{"text": "a"}').replace('{"candidatesT', '{"thoughtsTokenCount": 7,"candidatesT'),
            gemini('{"text": "a"}', 9), gemini('{"text": "a"}', 100, 1), whole_call(1),
            gemini('{"text": "a","thought": true}'), gemini('{"text": "a"},{"text": "b"}'),
            gemini('{"text": "a","thoughtSignature": "s"}'), gemini(""), gemini("{}"),
            gemini('{"text": "a","functionCall": {"name": "f","args": {}}}'),
        ],
    ),
    "Gemini tools": (
        "gemini",
        [whole_call(number) for number in range(2 * ALIKE)],
        [whole_call(3), whole_call(99, "null"), whole_call(99, "[]"), whole_call(99, '{"a": 1,"a": 2}')]
        + [
            whole_call(99, '{"a": "\\ud83d"}'), whole_call(99, "5"), whole_call(99, '{"a":NaN}'),
            gemini('{"functionCall": {"name": "f"}}'), gemini('{"functionCall": {"name": ""}}'),
            gemini('{"functionCall": {"name": "f","willContinue": true,"id": "w"}}'),
            gemini('{"text": "a"}'), gemini('{"functionCall": {"name": "g","args": {},"id": "g"}}'),
        ],
    ),
}  # fmt: skip


def heard(wire: str, chunks: list[bytes], limits: Limits) -> tuple[list[Event], dict[str, Any]]:
    pipe = Normalizer(wire, seed="s", limits=limits, on_bad_event="skip")
    events = [event for chunk in chunks for event in pipe.feed(chunk)] + pipe.close()
    return events, dict(pipe.notes)


@pytest.mark.parametrize("limits", [Limits(), Limits(frames=45), Limits(arguments=300)], ids=str)
@pytest.mark.parametrize("name", STREAMS)
def test_whatever_stands_among_frames_that_are_alike_each_says_what_it_says_alone(
    name: str, limits: Limits
):
    wire, frames, odd = STREAMS[name]
    for other in ["", *odd]:
        frame_by_frame = [
            frame.encode("utf-8", "surrogatepass")
            for frame in (*frames[:ALIKE], *([other] if other else ()), *frames[ALIKE:])
        ]
        body = b"".join(frame_by_frame)
        alone = heard(wire, frame_by_frame, limits)
        assert len(alone[0]) > 3, other
        assert heard(wire, [body], limits) == alone, other
        by_size = [body[at : at + 1400] for at in range(0, len(body), 1400)]
        assert heard(wire, by_size, limits) == alone, other


@pytest.mark.parametrize("name", STREAMS)
def test_a_frame_that_comes_alone_says_what_it_says_read_in_full(name: str):
    wire, frames, odd = STREAMS[name]
    for other in ["", *odd]:
        told = [*frames[:ALIKE], *([other] if other else ()), *frames[ALIKE:]]
        alone = [frame.encode("utf-8", "surrogatepass") for frame in told]
        in_full = [b"retry: 1\n" + frame for frame in alone]  # a line that says nothing to us
        (events, _), (expected, _) = (heard(wire, each, Limits()) for each in (alone, in_full))
        assert events == expected, other  # what is read in full may be noted more


def test_a_loop_is_of_the_wire_that_has_it():
    parsers = {parser for name in PROVIDERS for parser in parsers_of(name)}
    having = {parser.name for parser in parsers if parser.run is not None}
    assert having == {"anthropic", "gemini", "openai_chat", "openai_responses"}


@pytest.mark.parametrize("wire", PROVIDERS)
def test_what_each_frame_asks_has_few_enough_attributes(wire: str):
    """With thirty or more of its own, CPython finds each attribute of an object by a slower way: a
    tenth of what a frame takes (``docs/performance.md``)."""
    pipe = Normalizer(wire)
    asked = (pipe, pipe._parser, pipe._calls, SSE())
    assert {type(one): len(vars(one)) for one in asked if len(vars(one)) > 28} == {}
