"""Hostile bodies, and the process that reads them with little memory: how each of them ended, as JSON.

    python -m tests.pipe.hostile whole | bytewise

A body is made for a size ``n``: large ones are fed whole, small ones byte by byte.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from streamnorm import Limits, Normalizer

MIB = 1024 * 1024
SPACE = 512 * MIB  # what the whole process may use
HALF = "\ud83d"


def sse(payload: Any) -> bytes:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return b"data: " + data + b"\n\n"


def said(kind: str, **fields: Any) -> bytes:
    return sse({"type": f"response.{kind}", **fields})


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    return sse({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def entry(**fields: Any) -> bytes:
    return chunk(tool_calls=[{"index": 0, **fields}])


def call(arguments: Any) -> bytes:
    return entry(id="a", function={"name": "f", "arguments": arguments})


def row(n: int, frame: Callable[[int], bytes]) -> bytes:
    return b"".join(map(frame, range(n)))


def value(*paths: str) -> bytes:
    """Values of one call at these places."""
    values = [{"jsonPath": path, "numberValue": 1} for path in paths]
    called = {"name": "f", "willContinue": True, "partialArgs": values}
    return sse({"candidates": [{"content": {"parts": [{"functionCall": called}]}}]})


def fields(n: int) -> bytes:
    return b",".join(b'"f%d":1' % i for i in range(n))


def nested(n: int) -> bytes:
    return b'{"a":' * n + b"1" + b"}" * n


CREATED = said("created", response={"id": "r", "model": "m"})
FAR = ["$" + "".join(f".{side}{at}" for at in range(150)) for side in "xy"]
STOP = chunk("stop") + b"data: [DONE]\n\n"
BLOCKS = "".join(chr(0xF0000 + 0x800 * i) for i in range(64))  # one of every private block

# what it is -> whose wire, its body for a size n
BODIES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "a status with arguments": ("openai_responses", lambda n: CREATED + said(
        "mcp_call.in_progress", item_id="x", output_index=0, arguments="{}")),
    "a status with long arguments": ("openai_responses", lambda n: CREATED + said(
        "mcp_call.in_progress", item_id="x", output_index=0, arguments='"' * n)),
    "an object of quotes to be quoted": ("openai_chat", lambda n: call({"a": '"' * n})),
    "an object of quotes where a list should be": ("openai_chat", lambda n: chunk(
        tool_calls={"index": 0, "function": {"arguments": {"a": "\\" * n}}})),
    "a list without an end": ("openai_chat", lambda n: (
        chunk(content="x") + b'data: {"choices":' + b"[" * n + b"\n\n")),
    "arguments nested without an end": ("openai_chat", lambda n: call("[" * n) + STOP),
    "nested arguments": ("openai_chat", lambda n: call(nested(n // 8).decode()) + STOP),
    "a nested object of arguments": ("gemini", lambda n: sse(
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":'
        + nested(n // 8) + b"}}]}}]}")),
    "a nested item": ("openai_responses", lambda n: CREATED + sse(
        b'{"type":"response.output_item.done","output_index":0,"item":' + nested(n // 8) + b"}")),
    "unknown fields": ("openai_chat", lambda n: sse(
        b'{"choices":[{"delta":{' + fields(n // 10) + b"}}]}")),
    "unknown fields at the top": ("anthropic", lambda n: sse(
        b'{"type":"content_block_delta","index":0,' + fields(n // 10) + b"}")),
    "63 unknown fields beside a long text": ("openai_chat", lambda n: sse(
        b'{"choices":[{"index":0,"delta":{"content":"' + b"x" * (n // 4) + b'",' + fields(63) + b"}}]}")),
    "64 odd fields": ("openai_chat", lambda n: sse({"choices": [
        {"index": {}, "delta": {"content": {}}} for _ in range(64)]})),
    "an endless id": ("openai_chat", lambda n: entry(id="i" * n, function={"name": "f"})),
    "an endless name": ("openai_chat", lambda n: entry(id="i", function={"name": "n" * n})),
    "an endless name in pieces": ("openai_chat", lambda n: row(
        n // 1000, lambda i: entry(id="i", function={"name": f"n{i}"}))),
    "ids without an end": ("openai_chat", lambda n: row(
        n // 200, lambda i: entry(id=f"i{i}", function={"arguments": "x"}))),
    "ids of one item without an end": ("openai_responses", lambda n: CREATED + row(
        n // 200, lambda i: said("function_call_arguments.delta", item_id=f"i{i}", output_index=0,
                                 call_id=f"c{i}" * 10, delta="x"))),
    "an endless frame": ("openai_chat", lambda n: b"data: " + b"x" * (9 * n)),
    "an endless comment": ("openai_chat", lambda n: b":" + b"x" * (9 * n)),
    "endless lines": ("openai_chat", lambda n: b"data: x\n" * (n * 9 // 4)),
    "an endless array": ("gemini", lambda n: b"[{" + b" " * (9 * n)),
    "an endless line": ("ollama", lambda n: b"{" + b" " * (9 * n)),
    "a frame of two gigabytes": ("bedrock", lambda n: b"\x7f\xff\xff\xff" * 4 + b"x" * n),
    "a half beside a character of every private block": ("openai_chat", lambda n: row(
        n // 1000, lambda i: chunk(content=HALF + BLOCKS))),
    "halves": ("openai_chat", lambda n: chunk(content=HALF * (n // 20)) * 2),
    "halves in arguments": ("openai_chat", lambda n: call(HALF * (n // 20)) + STOP),
    "choices without an end": ("openai_chat", lambda n: row(
        n // 200, lambda i: sse({"choices": [{"index": i, "delta": {"content": "x"}}]}))),
    "candidates without an end": ("gemini", lambda n: row(
        n // 200, lambda i: sse({"candidates": [{"index": i, "content": {"parts": [{"text": "x"}]}}]}))),
    "many choices in a chunk": ("openai_chat", lambda n: row(n // 2500, lambda i: sse(
        {"choices": [{"index": i * 1000 + at} for at in range(1000)]}))),
    "many candidates in a chunk": ("gemini", lambda n: row(n // 1000, lambda i: sse(
        {"candidates": [{"index": i * 1000 + at} for at in range(1000)]}))),
    "deep places of many values, out of order": ("gemini", lambda n: (
        value("$.a", "$.b", "$.a") + value(*FAR) * (n // 64))),
    "a number with many digits": ("openai_chat", lambda n: call('{"a":%s}' % ("9" * n)) + STOP),
    "a number with a large exponent": ("openai_chat", lambda n: call('{"a":1e%s}' % ("9" * n)) + STOP),
    "snapshots": ("openai_chat", lambda n: call("") + row(
        200, lambda i: entry(function={"arguments": '{"a":"' + "x" * (i * n // 40_000)}))),
    "a list with one far item": ("gemini", lambda n: sse({"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "f", "partialArgs": [
            {"jsonPath": "$.a[999999999]", "numberValue": 1}]}}]}}]})),
    "deep places of values": ("gemini", lambda n: sse({"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "f", "partialArgs": [
            {"jsonPath": "$" + "[0]" * (n // 1000) + ".a", "numberValue": 1}]}}]}}]})),
    "copies of texts": ("openai_responses", lambda n: CREATED + row(
        200, lambda i: said("output_text.done", output_index=i, text="x" * (n // 200)))),
    "outputs without ids": ("openai_responses", lambda n: CREATED + row(
        200, lambda i: said("output_item.done", output_index=i, item={
            "type": "program_output", "result": "x" * (n // 200)}))),
    "no JSON": ("openai_chat", lambda n: sse(b"{" * n)),
}  # fmt: skip


def ended(what: str, n: int, size: int, limits: Limits) -> str:
    provider, made = BODIES[what]
    body = made(n)
    try:
        pipe = Normalizer(provider, limits=limits)
        events = []
        for at in range(0, len(body), size):
            events += pipe.feed(body[at : at + size])
        end = (events + pipe.close())[-1]
    except MemoryError:
        return "out of memory"
    return f"{end.kind} {end.reason}"  # type: ignore[union-attr]


def main(how: str) -> None:
    import resource

    logging.getLogger("streamnorm").setLevel(logging.CRITICAL + 1)
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    n, size, limits = (2 * MIB, 64 * MIB, Limits()) if how == "whole" else (20_000, 1, SMALL)
    print(json.dumps({what: ended(what, n, size, limits) for what in BODIES}))


SMALL = Limits(frame_bytes=65_536, arguments=16_384)

if __name__ == "__main__":
    main(sys.argv[1])
